//! `Sort`: the permutation that orders the keys, applied to every operand.
use crate::Scalar;
use std::cmp::Ordering;

pub fn sort([outer, n, inner]: [usize; 3], num_keys: usize, x: &[Vec<Scalar>]) -> Vec<Vec<Scalar>> {
    let mut out = x.to_vec();
    for o in 0..outer {
        for i in 0..inner {
            let at = |k: usize| (o * n + k) * inner + i;
            let mut order: Vec<usize> = (0..n).collect();
            // `sort_by` is stable.
            order.sort_by(|a, b| {
                x[..num_keys]
                    .iter()
                    .map(|key| compare(key[at(*a)], key[at(*b)]))
                    .find(|c| c.is_ne())
                    .unwrap_or(Ordering::Equal)
            });
            for (to, from) in order.into_iter().enumerate() {
                for (out, x) in out.iter_mut().zip(x) {
                    out[at(to)] = x[at(from)];
                }
            }
        }
    }
    out
}

/// Ascending; nans last and equal to each other; -0 equals 0.
pub fn compare(a: Scalar, b: Scalar) -> Ordering {
    match a.dtype.kind() {
        crate::dtype::DTypeKind::Float => {
            let (a, b) = (a.to_f64(), b.to_f64());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        crate::dtype::DTypeKind::Int => a.to_i64().cmp(&b.to_i64()),
        _ => a.bits.cmp(&b.bits),
    }
}
