//! Forks: the locks that the forking thread takes before, so that parent and child find what they guard whole.
//!
//! INVARIANT: they are taken in the order that [`crate::runtime`] states.
//!
//! ```
//! let still = ferrax::fork::freeze(); // before
//! drop(still); // in the parent; `still.in_child()` in the child
//! ```
use crate::runtime::{Handed, RUNTIME};
use crate::{array, device};
use ferrax_runtime::Frozen;

/// All locks that a thread may hold while another forks, held so that the child finds them free and what they guard whole.
pub struct Still {
    runtime: Frozen<Handed>,
    others: [Box<dyn std::any::Any>; 3],
}
pub fn freeze() -> Still {
    let places = array::freeze();
    let runtime = RUNTIME.freeze();
    Still { runtime, others: [Box::new(places), ferrax_cpu::freeze(), Box::new(device::freeze())] }
}
impl Still {
    /// In the child, where no other thread is left.
    pub fn in_child(self) {
        drop(self.others); // what the child gives up goes back to the pools
        self.runtime.in_child();
    }
}
