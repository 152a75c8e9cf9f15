//! bitcast_convert_type: the same bits read as another dtype; for a dtype of another size, a trailing axis is added or removed.
//! reduce_precision: rounds to fewer exponent and mantissa bits, in the same dtype.
use super::{linear_jvp, zero_jvp};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_each};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::{Bin, DType, Dims, Scalar};
use smallvec::smallvec;

primitive! {
    pub struct Bitcast = "bitcast_convert_type" {
        new_dtype: Dtype,
    }
}
impl Rules for Bitcast {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("bitcast_convert_type takes 1 operand, got {}", x.len())) };
        let (from, to) = (a.dtype.bits(), self.new_dtype.bits());
        if a.dtype.is_key() || self.new_dtype.is_key() || a.dtype.is_complex() || self.new_dtype.is_complex() {
            return type_err(format!(
                "bitcast_convert_type does not accept {} to {}",
                a.dtype.long(),
                self.new_dtype.long()
            ));
        }
        let shape = if from == to {
            a.shape.clone()
        } else if from > to {
            a.shape.insert(a.rank(), from / to)
        } else {
            match a.shape.last() {
                Some(n) if *n == to / from => a.shape.remove(a.rank() - 1),
                _ => {
                    let (name, new, last) = (a.dtype.long(), self.new_dtype.long(), a.shape.last().unwrap_or(&1));
                    return value_err(format!(
                        "Attempting to convert array of shape {} from {name} of size {from} bits to {new} of size {to}, bits but {last} * {from} != {to}",
                        a.shape
                    ));
                }
            }
        };
        Ok(smallvec![Aval::of(self.new_dtype, shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("bitcast_convert_type")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let x = cx.to_front(&x[0], d[0])?;
        Ok((cx.bind(&self.clone().into(), &[x])?, smallvec![d[0].map(|_| 0)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().min(out[0].rank()))
    }
    /// Between sizes, the low part first.
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (from, to) = (b.dtype(x[0]), physical(&out[0]).dtype);
        if from.bits() == to.bits() {
            return Ok(smallvec![b.bitcast(x[0], to)]);
        }
        let word = |bits: u32| match bits {
            2 => DType::U2,
            4 => DType::U4,
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::U32,
            _ => DType::U64,
        };
        let (wide, narrow) = (word(from.bits().max(to.bits())), word(from.bits().min(to.bits())));
        let step = narrow.bits() as i64;
        let rank = out[0].rank();
        if from.bits() > to.bits() {
            let v = b.bitcast(x[0], wide);
            let dims: Dims = (0..rank - 1).collect();
            let v = b.broadcast(v, out[0].shape.clone(), &dims);
            let i = b.iota(wide, out[0].shape.clone(), rank - 1);
            let by = b.constant(Scalar::from_i64(wide, step), Dims::default());
            let by = b.bin(Bin::Mul, i, by);
            let v = b.bin(Bin::ShrLogical, v, by);
            let v = b.convert(v, narrow);
            return Ok(smallvec![b.bitcast(v, to)]);
        }
        let v = b.bitcast(x[0], narrow);
        let shape = b.shape(v);
        let mut acc: Option<TensorId> = None;
        for k in 0..shape[rank] {
            let starts: Vec<usize> = (0..=rank).map(|j| if j == rank { k } else { 0 }).collect();
            let part = b.slice(v, &starts, &vec![1; rank + 1], out[0].shape.insert(rank, 1));
            let part = b.reshape(part, out[0].shape.clone());
            let part = b.convert(part, wide);
            let by = b.constant(Scalar::from_i64(wide, step * k as i64), Dims::default());
            let part = b.bin(Bin::Shl, part, by);
            acc = Some(match acc {
                Some(a) => b.bin(Bin::Or, a, part),
                None => part,
            });
        }
        let zero = b.constant(Scalar::zero(wide), out[0].shape.clone());
        Ok(smallvec![b.bitcast(acc.unwrap_or(zero), to)])
    }
}

primitive! {
    pub struct ReducePrecision = "reduce_precision" {
        exponent_bits: usize,
        mantissa_bits: usize,
    }
}
impl Rules for ReducePrecision {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        match x {
            [a] if a.dtype.is_float() && self.exponent_bits == 0 => {
                value_err("reduce_precision: exponent_bits must be positive; got 0")
            }
            [a] if a.dtype.is_float() => Ok(smallvec![a.clone()]),
            [a] => type_err(format!(
                "reduce_precision does not accept dtype {}. Accepted dtypes are subtypes of floating.",
                a.dtype.long()
            )),
            _ => type_err(format!("reduce_precision takes 1 operand, got {}", x.len())),
        }
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(self.clone(), std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&self.clone().into(), x)?, d.into()))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        Ok(within_each(cx.bind1(self.clone(), x)?, x, s))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![b.round(x[0], self.exponent_bits as u8, self.mantissa_bits as u8)])
    }
}
