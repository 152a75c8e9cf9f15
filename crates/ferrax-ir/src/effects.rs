//! The effects of a program besides its outputs. An equation with `io` is never dropped, moved or run twice; one that uses a
//! named axis reads or writes across the lanes of the `vmap` (or the devices of the `pmap`) that has the name.
use smallvec::SmallVec;
use std::sync::Arc;

pub type Name = Arc<str>;

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Effects {
    /// Callbacks, prints.
    pub io: bool,
    /// Some of the io is more than prints: it may happen only for lanes that run.
    pub external: bool,
    /// The io happens in program order.
    pub ordered: bool,
    /// A closure: its effects are unknown before it is called.
    pub any_axis: bool,
    pub axes: SmallVec<[Name; 1]>,
}
impl Effects {
    pub fn axis(name: &Name) -> Effects {
        Effects { axes: SmallVec::from_elem(name.clone(), 1), ..Effects::default() }
    }
    pub fn io(external: bool, ordered: bool) -> Effects {
        Effects { io: true, external, ordered, ..Effects::default() }
    }
    pub fn uses_axis(&self, name: &str) -> bool {
        self.any_axis || self.axes.iter().any(|a| **a == *name)
    }
    pub fn join(&mut self, o: &Effects) {
        self.io |= o.io;
        self.external |= o.external;
        self.ordered |= o.ordered;
        self.any_axis |= o.any_axis;
        for a in &o.axes {
            if !self.axes.contains(a) {
                self.axes.push(a.clone());
            }
        }
    }
}
