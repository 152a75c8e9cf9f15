//! The interface of a backend: memory, and compiling and running plans.
use crate::buffer::Buffer;
pub use crate::buffer::Look;
pub use crate::collective::{TermArithmetic, World};
use crate::dtype::DType;
use crate::error::Res;
use crate::plan::{Plan, VerifiedPlan};
use crate::routine::Routine;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of a device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The number of allocation requests.
    pub requests: u64,
    /// The bytes that arrays and runs hold now, and their peak.
    pub in_use: u64,
    pub peak: u64,
    /// The largest request.
    pub largest: u64,
    /// Kept for later requests.
    pub kept: u64,
}

pub type Buffers = SmallVec<[Buffer; 2]>;

/// One device.
pub trait Backend: Send + Sync {
    /// `cpu` or `gpu`.
    fn platform(&self) -> &'static str;
    /// For people: the adapter's name.
    fn description(&self) -> String;
    fn supports(&self, d: DType) -> bool;
    /// Whether the backend runs this routine. If not, the host does, or `compile` of a plan with it
    /// returns `Unsupported`.
    fn runs(&self, _: &Routine) -> bool {
        true
    }
    /// Whether a run of the plan waits for the device in between, for a result that the host needs.
    fn asks_host(&self, _plan: &Plan) -> bool {
        false
    }
    /// The size of the device's memory in bytes, if it is known.
    fn memory(&self) -> Option<usize>;
    /// The memory of the backend's arrays; `None` if it is not counted.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }
    /// How often the device was used for each kind of work since it was opened, by name; empty if that is not counted.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }
    /// DLPack's number for its kind of memory: 1 is the host's.
    fn memory_kind(&self) -> u32 {
        1
    }
    /// A verified plan needs no checks of its own: what [`Plan::verify`] states may be relied on.
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>>;
    /// A new buffer with these bytes.
    fn upload(&self, bytes: &[u8]) -> Res<Buffer>;
    /// A new zeroed buffer.
    fn zeros(&self, bytes: usize) -> Res<Buffer>;
    /// Copies the bytes to the host. `b` must be ready. While it waits for the device it calls `look` at least every 50 ms; an error of
    /// `look` ends the wait.
    fn read(&self, b: &Buffer, look: &mut Look) -> Res<Vec<u8>>;
    /// As `read`, however long it takes.
    fn download(&self, b: &Buffer) -> Res<Vec<u8>> {
        self.read(b, &mut || Ok(()))
    }
    /// Waits until the device has completed all its work, calling `look` as `read` does.
    fn drain(&self, _look: &mut Look) -> Res<()> {
        Ok(())
    }
}

/// The context of a run, beside its inputs.
pub struct RunCx<'a> {
    /// Polled between steps and iterations; when set, the run ends with `Error::Cancelled`.
    pub cancel: &'a AtomicBool,
    /// The other devices, for collectives.
    pub world: Option<&'a dyn World>,
}

pub struct RunArg {
    pub buffer: Buffer,
    /// The caller gives it up: its memory may be reused if it has no other owner.
    pub donated: bool,
}

/// A compiled plan.
pub trait Executable: Send + Sync {
    /// Runs the plan on the calling thread (and the backend's pool) until it is complete. Inputs must be ready and have the sizes that the
    /// plan states. Device work may still be in flight on return, in the device's own order.
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> Res<Buffers>;
    /// As `run`, with borrowed inputs.
    fn run_lent(&self, cx: &RunCx, ins: &[&Buffer]) -> Res<Buffers> {
        self.run(cx, ins.iter().map(|b| RunArg { buffer: (*b).clone(), donated: false }).collect())
    }
    fn plan(&self) -> &Plan;
    /// Elements of the blocks in which the backend combines the operands of devices; `usize::MAX`
    /// if it combines all at once.
    fn combined_elements(&self) -> usize {
        usize::MAX
    }
    /// The compiled plan as text, for people and tests.
    fn text(&self) -> String;
}
