//! Quantiles in the tails of the normal distribution, where erf is 1 to rounding.
//!
//! INVARIANT: the continued fraction of Mills' ratio has converged from `TAIL_START` on.
use super::{Cells, Finfo};
use crate::mistakes::ok;
use crate::tensor::{Tensor, constant, where_};
use crate::transforms::{cond, custom_jvp};
use ferrax_ir::Dtype;
use std::f64::consts::PI;

const TAIL_START: f64 = 1.5;
/// The probability beyond it.
const TAIL_PROBABILITY: f64 = 0.066_807_201_268_858_07;
const LEVELS: usize = 20;
const STEPS: usize = 5;

/// The upper tail's probability over the density, 1 / (x + 1 / (x + 2 / (x + ..))) (DLMF 7.9.1).
fn mills(x: &Tensor) -> Tensor {
    1.0 / (x + (1..=LEVELS).rev().fold(x.zeros_like(), |rest, n| n as f64 / (x + rest)))
}
/// The logarithm of the tail's probability beyond TAIL_START + d, over that beyond TAIL_START.
fn survives(d: &Tensor) -> Tensor {
    let low = d.full_like(TAIL_START);
    (mills(&(d + TAIL_START)) / mills(&low)).log() - d * (TAIL_START + 0.5 * d)
}
/// x beyond which the probability is p, for p up to TAIL_PROBABILITY.
fn upper_quantile(p: &Tensor) -> Tensor {
    let value = |p: &Tensor| {
        let target = p.log() - TAIL_PROBABILITY.ln();
        // Mills' ratio falls, so this is too far; from there Newton's method on a concave function comes down to the root.
        let mut d = -2.0 * &target / (TAIL_START + (TAIL_START * TAIL_START - 2.0 * &target).sqrt());
        for _ in 0..STEPS {
            let step = (survives(&d) - &target) * mills(&(&d + TAIL_START));
            d = (d + step).maximum(0.0);
        }
        d + TAIL_START
    };
    let rule = |p: &Tensor, dp: &Tensor| {
        let x = upper_quantile(p);
        let slope = (2.0 * PI).sqrt() * (0.5 * &x * &x).exp();
        (x, -dp * slope)
    };
    ok(custom_jvp(value, rule)(p))
}

/// The draws `out` between `low` and `high`; where they are infinite, or in the outer cells of u and in a tail, those of the finer uniform number.
#[track_caller]
pub(super) fn refined(out: Tensor, u: &Tensor, cells: &Cells, low: &Tensor, high: &Tensor) -> Tensor {
    let outer = (&cells.first | &cells.last) & u.abs().gt(constant(cells.dtype, 0.98));
    let beyond = out.is_inf() | outer;
    let eps = Finfo::of("truncated_normal", cells.dtype).eps;
    let wide = if cells.dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
    let given = cells.dtype;
    type State = (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor);
    let yes = move |(out, beyond, below, unit, rest, low, high): &State| {
        let [unit, rest, low, high] = [unit, rest, low, high].map(|x| x.astype(wide));
        // The image of the upper tail is a lower one.
        let (near, far) = (where_(below, &low, -&high), where_(below, &high, -&low));
        let share = where_(below, &unit + eps * &rest, (1.0 - &unit) - eps * &rest);
        let beyond_of = |x: &Tensor| (-x / 2f64.sqrt()).erfc() / 2.0;
        let start = beyond_of(&near);
        let p = &start + share * (beyond_of(&far) - &start);
        let x = upper_quantile(&where_(beyond, p, TAIL_PROBABILITY));
        where_(beyond, where_(below, -&x, &x).astype(given), out)
    };
    let state = (out, beyond.clone(), u.lt(0.0), cells.unit.clone(), cells.rest.clone(), low.clone(), high.clone());
    ok(cond(&beyond.any(), yes, |s: &State| s.0.clone(), &state))
}
