//! Forks: the forking thread takes all locks first, so that parent and child find the guarded state
//! consistent.
//!
//! INVARIANT: locks are taken in the order that [`crate::runtime`] states. Nothing but the fork
//! runs while they are held, and the thread that holds a lock does not need what it guards.
//!
//! ```
//! let still = ferrax::fork::freeze(); // before
//! drop(still); // in the parent; in the child: drop(still.in_child())
//! ```
use crate::runtime::{Handed, RUNTIME};
use crate::{array, device};
use ferrax_runtime::Frozen;

/// All locks that a thread may hold while another forks, held so that the child finds them free and
/// the guarded state consistent.
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
    /// Called in the child, where no other thread is left. The caller drops the values that the
    /// child has lost with them, where host code may run.
    pub fn in_child(self) -> Box<dyn std::any::Any> {
        crate::speculation::in_child();
        drop(self.others); // memory that the child gives up returns to the pools
        Box::new(self.runtime.in_child())
    }
}
