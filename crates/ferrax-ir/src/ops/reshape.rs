//! reshape: the same elements, row-major, in another shape. numpy: `reshape`.
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_reshape};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Reshape = "reshape" {
        new_sizes: Dims,
    } always_none { dimensions, sharding }
}
impl Rules for Reshape {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("reshape takes 1 operand, got {}", x.len())) };
        self.new_sizes.checked(a.dtype.size())?;
        if a.shape.size() != self.new_sizes.size() || a.tape > 0 {
            return type_err(format!(
                "reshape total size must be unchanged, got new_sizes {} for shape {}.",
                self.new_sizes, a.shape
            ));
        }
        Ok(smallvec![a.with_shape(self.new_sizes.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.reshape(ct, &x[0].aval().shape)).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let x = cx.to_front(&x[0], d[0])?;
        Ok((smallvec![cx.reshape(&x, &self.new_sizes.insert(0, ax.n))?], smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let y = cx.bind1(self.clone(), x)?;
        Ok(within_reshape(x, s, y))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::reshape(x, out)
    }
    fn local(&self, _: &[Aval], out: &[Aval]) -> Option<Op> {
        Some(Reshape { new_sizes: out[0].shape.clone() }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        Ok(smallvec![t.reshaped(&self.new_sizes)?])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let _ = out;
        Ok(smallvec![b.reshape(x[0], self.new_sizes.clone())])
    }
}
