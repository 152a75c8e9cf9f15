//! `Dot`: three loops; the sum over k in sequence, in the accumulator's dtype.
use super::kernel::lane;
use super::scalar::{bin, convert};
use crate::error::Res;
use crate::routine::Dot;
use crate::{Bin, DType, Scalar};

pub fn dot(d: &Dot, lhs: &[Scalar], rhs: &[Scalar]) -> Res<Vec<Scalar>> {
    let at = |index: [usize; 3], strides: [i64; 3]| (0..3).map(|k| index[k] as i64 * strides[k]).sum::<i64>() as usize;
    let acc = accumulator(d.dtype, d.out);
    let mut out = vec![];
    for b in 0..d.b {
        for m in 0..d.m {
            for n in 0..d.n {
                let mut sum = Scalar::zero(acc);
                for k in 0..d.k {
                    let (x, y) = (lhs[at([b, m, k], d.lhs)], rhs[at([b, k, n], d.rhs)]);
                    sum = multiply_add(sum, x, y)?;
                }
                out.push(convert(sum, d.out));
            }
        }
    }
    Ok(out)
}

/// The accumulator's dtype: the lane dtype of the operands, or of the result if that is wider.
pub fn accumulator(operands: DType, out: DType) -> DType {
    let lane = |d: DType| if d == DType::Bool { d } else { d.lane() };
    let (x, o) = (lane(operands), lane(out));
    if o.size() > x.size() || o.is_float() && !x.is_float() { o } else { x }
}

/// `sum + x * y` in the dtype of `sum`; for bool, `or` of `and`.
pub fn multiply_add(sum: Scalar, x: Scalar, y: Scalar) -> Res<Scalar> {
    let wide = |v: Scalar| convert(lane(v), sum.dtype);
    bin(Bin::Add, sum, bin(Bin::Mul, wide(x), wide(y))?)
}
