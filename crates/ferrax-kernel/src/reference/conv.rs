//! `Conv`: for each element of the output, the sum over input channels and window, in sequence, in the accumulator's dtype.
use super::array::position;
use super::dot::{accumulator, multiply_add};
use super::reduce_window::Window;
use super::scalar::convert;
use crate::Scalar;
use crate::error::Res;
use crate::routine::Conv;
use crate::shape::Dims;

pub fn conv(c: &Conv, lhs: &[Scalar], rhs: &[Scalar]) -> Res<Vec<Scalar>> {
    let spatial = Dims::new(&c.lhs[2..]);
    let size = Dims::new(&c.rhs[2..]);
    let w = Window {
        size: &size,
        strides: &c.strides,
        base_dilation: &c.lhs_dilation,
        dilation: &c.rhs_dilation,
        padding: &c.padding,
    };
    let (channels, out_channels) = (c.rhs[1], c.rhs[0]);
    let one = |o: usize| {
        let o = c.out.unravel(o);
        let (n, co) = (o[0], o[1]);
        // Output channels come in equal groups; each group sees its own input channels, or its own part of the batch.
        let group = |groups: usize| co / (out_channels / groups);
        let n = group(c.batch_groups) * (c.lhs[0] / c.batch_groups) + n;
        let mut sum = Scalar::zero(accumulator(c.dtype, c.out_dtype));
        for ci in 0..channels {
            for i in 0..size.size() {
                let within = size.unravel(i);
                if let Some(at) = w.at(&spatial, &o[2..], &within) {
                    let x = lhs[position(&c.lhs, &[&[n, group(c.feature_groups) * channels + ci], &at[..]].concat())];
                    let y = rhs[position(&c.rhs, &[&[co, ci], &within[..]].concat())];
                    sum = multiply_add(sum, x, y)?;
                }
            }
        }
        Ok(convert(sum, c.out_dtype))
    };
    (0..c.out.size()).map(one).collect()
}
