//! `Conv`: for each element of the result, the sum over terms, in sequence.
use super::dot::multiply_add;
use crate::Scalar;
use crate::error::Res;
use crate::routine::Conv;

pub fn conv(c: &Conv, x: &[Scalar], y: &[Scalar]) -> Res<Vec<Scalar>> {
    let nb = c.batch.len();
    let zero = Scalar::zero(c.dtype);
    let mut out = vec![zero; c.batch.size() * c.rows.size() * c.columns];
    for b in 0..c.batch.size() {
        let b = c.batch.unravel(b);
        let along = |strides: &[usize]| b.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
        for m in 0..c.rows.size() {
            let row = b.concat(&c.rows.unravel(m));
            for n in 0..c.columns {
                let mut sum = zero;
                for k in 0..c.terms.size() {
                    let i = row.concat(&c.terms.unravel(k));
                    let at = |a: &crate::Affine| a.at(i.iter().copied());
                    let met = c.guards.iter().all(|g| (g.lo..g.hi).contains(&at(&g.at)));
                    let l = if met { x[at(&c.at) as usize] } else { zero };
                    sum = multiply_add(sum, l, y[along(&c.y) + k * c.y[nb] + n * c.y[nb + 1]])?;
                }
                out[along(&c.out) + m * c.out[nb] + n * c.out[nb + 1]] = sum;
            }
        }
    }
    Ok(out)
}
