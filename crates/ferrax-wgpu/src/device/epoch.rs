//! What all commands of one submission have in common: its number, or why there is none.
use ferrax_kernel::Res;
use std::sync::OnceLock;
use wgpu::SubmissionIndex;

/// Commands that are submitted together.
#[derive(Default)]
pub struct Epoch(OnceLock<Res<SubmissionIndex>>);

impl Epoch {
    /// The outcome of its submission, once there was one.
    pub fn outcome(&self) -> Option<Res<SubmissionIndex>> {
        self.0.get().cloned()
    }
    /// The error of its submission.
    pub fn check(&self) -> Res<()> {
        self.0.get().map_or(Ok(()), |made| made.clone().map(|_| ()))
    }
    pub fn set(&self, outcome: Res<SubmissionIndex>) {
        self.0.get_or_init(|| outcome);
    }
}
