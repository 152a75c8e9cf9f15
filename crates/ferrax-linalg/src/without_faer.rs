//! Without the feature `blocked` there are no blocked decompositions: the reference implementation computes all matrices.
#![allow(unsafe_code)]
use ferrax_host::Tier;
use ferrax_host::memory::Block;
use ferrax_kernel::Res;
use ferrax_kernel::linalg::Linalg;
use std::sync::atomic::AtomicBool;

pub use NothingBlocked as BlockedDecomposition;

/// Without the feature there are no blocked decompositions.
pub enum NothingBlocked {}
impl NothingBlocked {
    pub fn bytes(&self) -> usize {
        match *self {}
    }
    /// # Safety
    /// Never called.
    pub unsafe fn run(
        &self,
        _: &Linalg,
        _: &Block,
        _: &[*const u8],
        _: &[*mut u8],
        _: bool,
        _: &AtomicBool,
    ) -> Res<bool> {
        match *self {}
    }
}
pub fn takes(_: &Linalg, _: &crate::tuning::LinalgTuning) -> bool {
    false
}
pub fn of(_: &Linalg, _: Tier) -> Option<NothingBlocked> {
    None
}
