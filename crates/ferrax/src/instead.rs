//! Replacements of primitives during evaluation: functions that a user installed in place of implementations, to count calls or to watch them.
//!
//! ```text
//! lax.sin_p.def_impl(lambda x, **params: called.append(1) or sin(x, **params))
//! ```
//!
//! INVARIANT: compiled programs ignore them. While any primitive is replaced, a checkpoint that is evaluated is evaluated equation by equation.
use ferrax_ir::error::Res;
use ferrax_ir::value::Values;
use ferrax_ir::{Op, Value};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A replacement of an operation, called with the operation and its operands.
pub type Instead = Arc<dyn Fn(&Op, &[Value]) -> Res<Values> + Send + Sync>;

static ANY: AtomicBool = AtomicBool::new(false);
static TABLE: RwLock<Option<FxHashMap<&'static str, Instead>>> = RwLock::new(None);
thread_local! {
    static PLAIN: Cell<bool> = const { Cell::new(false) };
}

/// Puts a function in the place of a primitive's implementation, or takes it away.
pub fn replace(name: &'static str, by: Option<Instead>) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let map = table.get_or_insert_default();
    match by {
        Some(f) => map.insert(name, f),
        None => map.remove(name),
    };
    ANY.store(!map.is_empty(), Ordering::Relaxed);
}

/// Runs `f` with the built-in implementations on this thread: for functions that replace an
/// implementation.
pub fn plainly<T>(f: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            PLAIN.set(self.0);
        }
    }
    let _back = Back(PLAIN.replace(true));
    f()
}

/// The results of an operation that is replaced, or whose body may contain one that is; nothing for
/// any other.
pub fn run(op: &Op, x: &[Value]) -> Option<Res<Values>> {
    if !ANY.load(Ordering::Relaxed) || PLAIN.get() {
        return None;
    }
    let found = TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(op.name()).cloned();
    match (found, op) {
        (Some(f), _) => Some(f(op, x)),
        (None, Op::Remat(r)) => Some(ferrax_ir::current().inline(&r.jaxpr, x)),
        _ => None,
    }
}
