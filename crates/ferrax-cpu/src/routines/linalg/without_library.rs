//! Without the feature `linalg` there are no blocked decompositions: the reference implementation computes all matrices.
use crate::memory::Block;
use crate::tier::Tier;
use ferrax_kernel::Res;
use ferrax_kernel::linalg::Linalg;
use std::sync::atomic::AtomicBool;

pub use NothingLarge as Large;

/// There is none.
pub enum NothingLarge {}
impl NothingLarge {
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
pub fn of(_: &Linalg, _: Tier) -> Option<NothingLarge> {
    None
}
