//! The interface of a backend: memory, and compiling and running plans.
use crate::buffer::Buffer;
pub use crate::buffer::Look;
pub use crate::collective::{Part, Parts, World};
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
    /// How often memory was asked for.
    pub requests: u64,
    /// What arrays and runs hold, and the most they ever held.
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
    /// Whether it has this routine; others are left to the host, or compiling a plan with one says `Unsupported`.
    fn runs(&self, _: &Routine) -> bool {
        true
    }
    /// Whether a run of the plan waits for the device in between, to ask the host for something.
    fn asks_host(&self, _plan: &Plan) -> bool {
        false
    }
    /// The bytes there are on the device, where it is known.
    fn memory(&self) -> Option<usize>;
    /// What its arrays take there now; `None` where it is not counted.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
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
    /// The bytes on the host. `b` must be ready. While it waits for the device it asks `look`, every 50 ms or oftener, whether to go on.
    fn read(&self, b: &Buffer, look: &mut Look) -> Res<Vec<u8>>;
    /// As `read`, however long it takes.
    fn download(&self, b: &Buffer) -> Res<Vec<u8>> {
        self.read(b, &mut || Ok(()))
    }
    /// Waits until the device has done all it was given, looking up as `read` does.
    fn drain(&self, _look: &mut Look) -> Res<()> {
        Ok(())
    }
}

/// What a run is given beside its inputs.
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
    /// Runs to the end on the calling thread (and the backend's pool). Inputs must be ready and as long as the plan says. Device
    /// work may still be in flight when it returns, in the device's own order.
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> Res<Buffers>;
    /// As `run`, with inputs that are only lent.
    fn run_lent(&self, cx: &RunCx, ins: &[&Buffer]) -> Res<Buffers> {
        self.run(cx, ins.iter().map(|b| RunArg { buffer: (*b).clone(), donated: false }).collect())
    }
    fn plan(&self) -> &Plan;
    /// Elements of the blocks in which it combines what devices hand in; more where it combines all at once.
    fn combined_elements(&self) -> usize {
        usize::MAX
    }
    /// What the backend made of it, for people and tests.
    fn text(&self) -> String;
}
