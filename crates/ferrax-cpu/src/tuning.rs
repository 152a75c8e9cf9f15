//! What plans are compiled for, and the thresholds between strategies: each is documented where it is read.
use crate::executable::{RowGroupTuning, ScalarTuning};
use crate::routines::{
    ConvTuning, DotTuning, FftTuning, GatherTuning, LinalgTuning, ScatterTuning, SortTuning, TopKTuning,
};
use crate::tier::Tier;

/// The instructions of the machine, and the thresholds.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub tier: Tier,
    pub tuning: Tuning,
}
impl From<Tier> for Target {
    fn from(tier: Tier) -> Target {
        Target { tier, tuning: Tuning::DEFAULT }
    }
}

/// Thresholds by component. Tests override single ones:
/// `Tuning { sort: SortTuning { radix_from: 2, ..SortTuning::DEFAULT }, ..Tuning::DEFAULT }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuning {
    pub row_groups: RowGroupTuning,
    pub scalars: ScalarTuning,
    pub conv: ConvTuning,
    pub dot: DotTuning,
    pub fft: FftTuning,
    pub gather: GatherTuning,
    pub linalg: LinalgTuning,
    pub scatter: ScatterTuning,
    pub sort: SortTuning,
    pub top_k: TopKTuning,
}
impl Tuning {
    pub const DEFAULT: Tuning = Tuning {
        row_groups: RowGroupTuning::DEFAULT,
        scalars: ScalarTuning::DEFAULT,
        conv: ConvTuning::DEFAULT,
        dot: DotTuning::DEFAULT,
        fft: FftTuning::DEFAULT,
        gather: GatherTuning::DEFAULT,
        linalg: LinalgTuning::DEFAULT,
        scatter: ScatterTuning::DEFAULT,
        sort: SortTuning::DEFAULT,
        top_k: TopKTuning::DEFAULT,
    };
}
