//! `Cumulative`: the running combination, strictly in sequence. The accumulator has the lane dtype; each element is rounded as it is
//! written.
use super::kernel::lane;
use super::scalar::{bin, convert, un};
use crate::error::Res;
use crate::routine::CumulativeKind;
use crate::{Bin, Scalar, Un};

pub fn cumulative(
    kind: CumulativeKind,
    [outer, n, inner]: [usize; 3],
    reverse: bool,
    x: &[Scalar],
) -> Res<Vec<Scalar>> {
    let mut out = x.to_vec();
    for o in 0..outer {
        for i in 0..inner {
            let mut acc: Option<Scalar> = None;
            for k in 0..n {
                let at = (o * n + if reverse { n - 1 - k } else { k }) * inner + i;
                let next = lane(x[at]);
                let sum = acc.map_or(Ok(next), |acc| combine(kind, acc, next))?;
                out[at] = convert(sum, x[at].dtype);
                acc = Some(sum);
            }
        }
    }
    Ok(out)
}

fn combine(kind: CumulativeKind, a: Scalar, b: Scalar) -> Res<Scalar> {
    match kind {
        CumulativeKind::Sum => bin(Bin::Add, a, b),
        CumulativeKind::Prod => bin(Bin::Mul, a, b),
        CumulativeKind::Max => bin(Bin::Max, a, b),
        CumulativeKind::Min => bin(Bin::Min, a, b),
        CumulativeKind::LogSumExp => log_add_exp(a, b),
    }
}

/// `log(exp a + exp b) = max(a, b) + log1p(exp(-|a - b|))`; where `a - b` is nan (equal infinities, or a nan) it is `a + b`.
fn log_add_exp(a: Scalar, b: Scalar) -> Res<Scalar> {
    let difference = bin(Bin::Sub, a, b)?;
    if difference.to_f64().is_nan() {
        return bin(Bin::Add, a, b);
    }
    let smaller = un(Un::Exp, un(Un::Neg, un(Un::Abs, difference)?)?)?;
    bin(Bin::Add, bin(Bin::Max, a, b)?, un(Un::Log1p, smaller)?)
}
