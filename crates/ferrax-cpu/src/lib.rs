//! Runs plans on the cores of the host.
//!
//! INVARIANT: the bits of a result are a function of the plan and its inputs; the number of threads and the instruction tier change
//! none of them. (A matrix product of floats is the exception to the latter: it takes the fused multiply-add where there is one.)
#![deny(unsafe_code)]
pub mod dlpack;
pub mod executable;
mod instructions;
pub mod kernels;
pub mod lowering;
pub mod native;
mod nest;
pub mod routines;
pub mod stats;
pub mod tape;
pub mod tuning;

pub use ferrax_host::{Tier, memory, threads, tier};
use ferrax_kernel::backend::{Backend, Executable, Look};
use ferrax_kernel::error::copied;
use ferrax_kernel::{Buffer, DType, Error, Res, VerifiedPlan};
use memory::{Block, Fresh};
pub use stats::{Stats, stats};
use std::sync::Arc;
pub use threads::{num_threads, set_num_threads};
pub use tuning::{Target, Tuning};

/// Takes the locks of the thread pool and of the memory pool, to be held over a fork.
pub fn freeze() -> Box<dyn std::any::Any> {
    Box::new((threads::freeze(), memory::freeze()))
}

/// The host as a device.
pub struct CpuBackend {
    target: Target,
}
impl Default for CpuBackend {
    fn default() -> CpuBackend {
        CpuBackend::new()
    }
}
impl CpuBackend {
    pub fn new() -> CpuBackend {
        CpuBackend { target: Tier::current().into() }
    }
    /// With the loops of a given tier; none where the machine lacks it.
    pub fn with_tier(tier: Tier) -> Option<CpuBackend> {
        CpuBackend::with_target(tier.into())
    }
    /// With the loops of a given tier and other thresholds; none where the machine lacks the tier.
    pub fn with_target(target: Target) -> Option<CpuBackend> {
        target.tier.is_available().then_some(CpuBackend { target })
    }
}

impl Backend for CpuBackend {
    fn platform(&self) -> &'static str {
        "cpu"
    }
    fn description(&self) -> String {
        format!("{} threads, {}", num_threads(), self.target.tier.name())
    }
    fn supports(&self, _: DType) -> bool {
        true
    }
    fn memory(&self) -> Option<usize> {
        memory::installed()
    }
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>> {
        Ok(Arc::new(executable::CpuExecutable::compile(plan, self.target)?))
    }
    fn upload(&self, bytes: &[u8]) -> Res<Buffer> {
        Ok(Fresh::copy_of(bytes)?.buffer())
    }
    fn zeros(&self, bytes: usize) -> Res<Buffer> {
        Ok(Buffer::ready(Block::zeroed(bytes)?))
    }
    fn read(&self, b: &Buffer, _look: &mut Look) -> Res<Vec<u8>> {
        match b.try_memory() {
            Some(m) => copied(m?.host().ok_or_else(|| Error::Invalid("the buffer is on another device".into()))?),
            None => Err(Error::Invalid("the buffer is still pending".into())),
        }
    }
}
