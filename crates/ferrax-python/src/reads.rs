//! Reads of mutable references of surrounding programs, whose values became constants of the program under construction.
//!
//! INVARIANT: no trace in which such a read happened is kept for later calls, since the reference may have another value by then.
//!
//!     jit(lambda x: ref[...] + x)(1.0)    # traced with the value as a constant; the next call traces again, with it as an input
use crate::trace::TraceTag;
use ferrax_ir::value::Tag;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// The programs that the references belong to (None: to none), since the outermost trace began.
    static READS: RefCell<Vec<Option<Arc<Tag>>>> = const { RefCell::new(vec![]) };
    /// How many traces are open whose program takes references as inputs.
    static FORBIDDEN: Cell<u32> = const { Cell::new(0) };
}

/// note_read(home): a reference of the program `home` was read as a constant.
#[pyfunction]
#[pyo3(signature = (home))]
pub fn note_read(home: Option<&TraceTag>) {
    READS.with_borrow_mut(|r| r.push(home.map(TraceTag::tag)));
}
/// reading_forbidden(): whether a program under construction is to have references as inputs.
#[pyfunction]
pub fn reading_forbidden() -> bool {
    FORBIDDEN.get() > 0
}
/// read_mark(): how many reads there were.
#[pyfunction]
pub fn read_mark() -> usize {
    READS.with_borrow(Vec::len)
}
/// reads_outside(mark): whether a reference was read since that belongs to none of the programs that were begun since.
#[pyfunction]
pub fn reads_outside(mark: usize) -> bool {
    READS.with_borrow_mut(|r| {
        // The reads were cleared by what was evaluated inside: any of them may be one.
        let Some(new) = r.get(mark..) else { return true };
        if new.is_empty() {
            return false;
        }
        let mut open = vec![];
        ferrax_ir::current().tags(&mut open);
        let outside = new.iter().any(|home| home.as_ref().is_none_or(|h| open.iter().any(|t| Arc::ptr_eq(t, h))));
        if ferrax_ir::cx::at_root() {
            r.clear();
        }
        outside
    })
}

/// Held while a program is made that has references as inputs.
pub struct Forbidden;
impl Forbidden {
    pub fn begin() -> Forbidden {
        FORBIDDEN.set(FORBIDDEN.get() + 1);
        Forbidden
    }
}
impl Drop for Forbidden {
    fn drop(&mut self) {
        FORBIDDEN.set(FORBIDDEN.get() - 1);
    }
}
