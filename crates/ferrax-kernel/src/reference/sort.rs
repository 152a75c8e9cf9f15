//! `Sort`: the permutation that orders the keys, applied to every operand. `TopK`: the first of the descending order.
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

pub fn top_k([outer, n, inner]: [usize; 3], k: usize, x: &[Scalar]) -> Vec<Vec<Scalar>> {
    let zero = x.first().map_or(Scalar::i32(0), |x| Scalar::zero(x.dtype));
    let mut out = vec![vec![zero; outer * k * inner], vec![Scalar::i32(0); outer * k * inner]];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |j: usize| (o * n + j) * inner + i;
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| total_order(x[at(*b)], x[at(*a)]));
        for (j, from) in order[..k].iter().enumerate() {
            let to = (o * k + j) * inner + i;
            (out[0][to], out[1][to]) = (x[at(*from)], Scalar::i32(*from as i32));
        }
    }
    out
}

/// Floats by sign and magnitude of their bits.
fn total_order(a: Scalar, b: Scalar) -> Ordering {
    if !a.dtype.is_float() {
        return compare(a, b);
    }
    let key = |x: Scalar| {
        let sign = 1u64 << (8 * x.dtype.size() - 1);
        let magnitude = (x.bits & (sign - 1)) as i128;
        if x.bits & sign != 0 { -1 - magnitude } else { magnitude }
    };
    key(a).cmp(&key(b))
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
