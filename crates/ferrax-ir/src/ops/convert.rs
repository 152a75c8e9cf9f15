//! convert_element_type: `out[i] = x[i]` in another dtype. numpy: `astype`. To an integer it truncates; to bool it is `x != 0`; from
//! complex to real it drops the imaginary part.
use super::{linear_jvp, zero_jvp};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::dtype::Dtype;
use crate::error::{Res, type_err, value_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_each};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::{Bin, DType, Scalar};
use smallvec::smallvec;

primitive! {
    pub struct Convert = "convert_element_type" {
        new_dtype: Dtype,
        weak_type: bool,
    } always_none { sharding = hidden }
}
impl Rules for Convert {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("convert_element_type takes 1 operand, got {}", x.len())) };
        if a.dtype.is_key() != self.new_dtype.is_key() {
            return value_err(format!(
                "Cannot convert_element_type from {} to {}",
                a.dtype.long(),
                self.new_dtype.long()
            ));
        }
        if a.tape > 0 {
            return type_err(format!("convert_element_type cannot convert {} to {}", a.long(), self.new_dtype.long()));
        }
        Ok(smallvec![Aval { dtype: self.new_dtype, weak: self.weak_type, ..a.clone() }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        if self.new_dtype.is_inexact() {
            linear_jvp(&self.clone().into(), cx, x, dx)
        } else {
            zero_jvp(&self.clone().into(), cx, x)
        }
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let a = x[0].aval();
        let back = |ct: &Value| match (ct.dtype(), ct.weak()) == (a.dtype, a.weak) {
            true => Ok(ct.clone()),
            false => cx.bind1(Convert { new_dtype: a.dtype, weak_type: a.weak }, std::slice::from_ref(ct)),
        };
        Ok(smallvec![ct[0].as_ref().map(back).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&self.clone().into(), x)?, d.into()))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        if self.new_dtype.is_inexact() { Ok(within_each(cx.bind1(self.clone(), x)?, x, s)) } else { Ok(None) }
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let to = crate::lower::physical(&out[0]);
        let (re, im) = match b.parts(x[0]) {
            Some((re, im)) => (re, Some(im)),
            None => (x[0], None),
        };
        if to.dtype == DType::Bool
            && let Some(im) = im
        {
            let (p, q) = (b.convert(re, DType::Bool), b.convert(im, DType::Bool));
            return Ok(smallvec![b.bin(Bin::Or, p, q)]);
        }
        let y = b.convert(re, to.dtype);
        if !to.paired {
            return Ok(smallvec![y]);
        }
        let im = match im {
            Some(im) => b.convert(im, to.dtype),
            None => b.constant(Scalar::zero(to.dtype), b.shape(y)),
        };
        Ok(smallvec![b.pair(y, im)])
    }
}
