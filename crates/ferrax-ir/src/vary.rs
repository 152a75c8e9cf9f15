//! Over which named axes a value varies: the positions along them may hold different values. Any other axis holds one value everywhere.
//!
//! INVARIANT: equal sets have one number, so that types compare and hash by it. The empty set is 0 and costs nothing.
//!
//! ```
//! use ferrax_ir::vary::Vary;
//! let (x, y) = (Vary::over(&"x".into()), Vary::over(&"y".into()));
//! assert_eq!(x | y, y | x);
//! assert_eq!((x | y).without(x), y);
//! ```
use crate::effects::Name;
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Vary(u32);

/// All sets so far, each sorted; set `n` is at index `n - 1`. Programs have few axes, so there are
/// few.
static SETS: Mutex<Vec<Vec<Name>>> = Mutex::new(vec![]);
fn sets() -> MutexGuard<'static, Vec<Vec<Name>>> {
    SETS.lock().unwrap_or_else(|e| e.into_inner())
}

thread_local! { static ENTERED: RefCell<Vec<Name>> = const { RefCell::new(vec![]) } }
/// A user's function is mapped over the axis: types name it behind those that came before.
pub fn entered(name: &Name) {
    ENTERED.with(|e| {
        let mut e = e.borrow_mut();
        e.retain(|n| n != name);
        e.push(name.clone());
    });
}

impl Vary {
    pub const NONE: Vary = Vary(0);
    pub fn over(name: &Name) -> Vary {
        Vary::of([name.clone()])
    }
    pub fn of(names: impl IntoIterator<Item = Name>) -> Vary {
        let mut names: Vec<Name> = names.into_iter().collect();
        if names.is_empty() {
            return Vary::NONE;
        }
        names.sort_unstable();
        names.dedup();
        let mut sets = sets();
        let at = sets.iter().position(|s| *s == names).unwrap_or_else(|| {
            sets.push(names);
            sets.len() - 1
        });
        Vary(at as u32 + 1)
    }
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
    /// The names, sorted.
    pub fn names(self) -> Vec<Name> {
        if self.is_none() { vec![] } else { sets().get(self.0 as usize - 1).cloned().unwrap_or_default() }
    }
    /// The names, in the order in which functions were mapped over them.
    pub fn in_order(self) -> Vec<Name> {
        let mut names = self.names();
        ENTERED.with(|e| names.sort_by_key(|n| e.borrow().iter().position(|m| m == n)));
        names
    }
    pub fn has(self, name: &str) -> bool {
        !self.is_none() && self.names().iter().any(|n| **n == *name)
    }
    pub fn without(self, o: Vary) -> Vary {
        match (self.0, o.0) {
            (0, _) | (_, 0) => self,
            _ => {
                let out = o.names();
                Vary::of(self.names().into_iter().filter(|n| !out.contains(n)))
            }
        }
    }
}
impl std::ops::BitOr for Vary {
    type Output = Vary;
    fn bitor(self, o: Vary) -> Vary {
        match (self.0, o.0) {
            (_, 0) => self,
            (0, _) => o,
            (a, b) if a == b => self,
            _ => Vary::of(self.names().into_iter().chain(o.names())),
        }
    }
}
