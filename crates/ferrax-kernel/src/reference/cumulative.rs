//! `Cumulative`: the running combination, in sequence or in blocks. The accumulator has the lane dtype; each element is rounded as it is
//! written.
use super::kernel::lane;
use super::scalar::{bin, convert, un};
use crate::error::Res;
use crate::routine::CumulativeKind;
use crate::{Bin, Scalar, Un, order};

pub fn cumulative(
    kind: CumulativeKind,
    [outer, n, inner]: [usize; 3],
    reverse: bool,
    x: &[Scalar],
) -> Res<Vec<Scalar>> {
    let mut out = x.to_vec();
    for o in 0..outer {
        for i in 0..inner {
            let at = |k: usize| (o * n + if reverse { n - 1 - k } else { k }) * inner + i;
            let mut line: Vec<Scalar> = (0..n).map(|k| lane(x[at(k)])).collect();
            if kind.in_blocks() {
                line = order::running(&line, &|a, b| combine(kind, a, b))?;
            } else {
                for k in 1..n {
                    line[k] = combine(kind, line[k - 1], line[k])?;
                }
            }
            for (k, sum) in line.into_iter().enumerate() {
                out[at(k)] = convert(sum, x[at(k)].dtype);
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
