//! broadcast_in_dim: `out[j..] = x[..]`, operand axis k lying along output axis `broadcast_dimensions[k]`; an axis of size 1 stretches.
//! numpy: `broadcast_to` of a reshape.
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::ops::reduce::Monoid;
use crate::param::Shape;
use crate::primitive;
use crate::support::{Supports, Within};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct BroadcastInDim = "broadcast_in_dim" {
        broadcast_dimensions: Dims = nonempty,
        shape: Shape = hidden,
    } always_none { sharding = hidden }
}
impl Rules for BroadcastInDim {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let ([a], dims, shape) = (x, &self.broadcast_dimensions, &self.shape) else {
            return type_err(format!("broadcast_in_dim takes 1 operand, got {}", x.len()));
        };
        let name = "broadcast_in_dim";
        if a.tape > 0 {
            return type_err(format!("{name} does not accept {a}"));
        }
        if a.rank() > shape.len() {
            return type_err(format!(
                "{name} target broadcast shape must have equal or higher rank to the operand shape; got operand ndim {} and target broadcast ndim {}.",
                a.rank(),
                shape.len()
            ));
        }
        if a.rank() != dims.len() {
            return type_err(format!(
                "{name} broadcast_dimensions must have length equal to operand ndim; got broadcast_dimensions {dims} for operand ndim {}.",
                a.rank()
            ));
        }
        if dims.iter().any(|d| *d >= shape.len()) {
            return type_err(format!(
                "{name} broadcast_dimensions must be a subset of output dimensions, got {dims} for operand ndim {} and shape {}.",
                a.rank(),
                shape.0
            ));
        }
        if (1..dims.len()).any(|k| dims[..k].contains(&dims[k])) {
            return type_err(format!(
                "{name} broadcast_dimensions must not contain duplicates, got broadcast_dimensions {dims}"
            ));
        }
        if dims.iter().enumerate().any(|(k, d)| a.shape[k] != 1 && a.shape[k] != shape[*d]) {
            return type_err(format!(
                "{name} operand dimension sizes must either be 1, or be equal to their corresponding dimensions in the target broadcast shape; got operand of shape {}, target broadcast shape {}, broadcast_dimensions {dims} ",
                a.shape, shape.0
            ));
        }
        shape.checked(a.dtype.size())?;
        Ok(smallvec![a.with_shape(shape.0.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None]) };
        let a = x[0].aval();
        let kept = |d: &usize| {
            self.broadcast_dimensions.iter().position(|k| k == d).is_some_and(|k| a.shape[k] == self.shape[*d])
        };
        let summed = cx.reduce(Monoid::Sum, ct, (0..self.shape.len()).filter(|d| !kept(d)).collect())?;
        // the operand's axes as they lie in the output, then in their own order
        let mut order: Vec<usize> = (0..a.rank()).collect();
        order.sort_by_key(|k| self.broadcast_dimensions[*k]);
        let laid = cx.reshape(&summed, &a.shape.pick(&order))?;
        let mut back: Dims = order.iter().copied().collect();
        order.iter().enumerate().for_each(|(at, k)| back[*k] = at);
        Ok(smallvec![Some(cx.transpose(&laid, back)?)])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let x = cx.to_front(&x[0], d[0])?;
        let dims: Dims = std::iter::once(0).chain(self.broadcast_dimensions.iter().map(|d| d + 1)).collect();
        Ok((smallvec![cx.broadcast(&x, &self.shape.insert(0, ax.n), &dims)?], smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let Some(s) = &s[0] else { return Ok(None) };
        let to = &self.broadcast_dimensions;
        let grows = |k: usize| x[0].shape()[k] != self.shape[to[k]];
        let s = s.map(&mut |l| Ok(l.squeezed(&grows)))?.moved(&|k| to[k]);
        Ok(Some((smallvec![cx.bind1(self.clone(), x)?], smallvec![Some(s)])))
    }
    fn repeats(&self) -> Option<&Dims> {
        Some(&self.broadcast_dimensions)
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn numbers(&self, x: &dyn Fn(usize) -> Option<Vec<i64>>, n: usize) -> Option<Vec<i64>> {
        let [number] = x(0)?[..] else { return None };
        Some(vec![number; n])
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        for (d, n) in self.shape.iter().enumerate() {
            match self.broadcast_dimensions.iter().position(|k| *k == d).filter(|k| x[0].shape[*k] == *n) {
                Some(k) => f.link(*n, &[In(0, k), Out(0, d)]),
                None => f.link(*n, &[Out(0, d)]),
            }
        }
        f
    }
    fn local(&self, _: &[Aval], out: &[Aval]) -> Option<Op> {
        Some(BroadcastInDim { shape: out[0].shape.clone().into(), ..self.clone() }.into())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let _ = out;
        Ok(smallvec![b.broadcast(x[0], self.shape.0.clone(), &self.broadcast_dimensions)])
    }
}
