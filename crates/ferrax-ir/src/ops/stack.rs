//! stack: operands of one shape side by side along a new axis. numpy: `stack`. unstack: its inverse.
//!
//! ```text
//! stack[axis=0] f32[3] f32[3] -> f32[2,3]          unstack[axis=1] f32[3,2] -> f32[3] f32[3]
//! ```
use super::{joint_jvp, linear_jvp};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, values1};
use crate::error::{Res, type_err, value_err};
use crate::factors::{Factors, In, Out};
use crate::layout::CutAxes;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, parts_to_join, within_joined, within_parts};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

/// Results are variables of a program, each of which has a type: a larger number is surely a
/// mistake.
const MOST_PARTS: usize = 1 << 24;

primitive! {
    pub struct Stack = "stack" {
        axis: usize,
    }
}
impl Rules for Stack {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let Some(a) = x.first() else { return value_err("Need at least one array to stack.") };
        if x.iter().any(|b| b.shape != a.shape || b.tape > 0) {
            let shapes: Vec<String> = x.iter().map(|b| b.shape.to_string()).collect();
            return type_err(format!("All input arrays must have the same shape: got {}.", shapes.join(", ")));
        }
        if x.iter().any(|b| b.dtype != a.dtype) {
            let d: Vec<&str> = x.iter().map(|b| b.dtype.long()).collect();
            return type_err(format!("lax.stack requires arguments to have the same dtypes, got {}.", d.join(", ")));
        }
        if self.axis > a.rank() {
            return value_err(format!("axis {} is out of bounds for array of dimension {}", self.axis, a.rank() + 1));
        }
        let shape = a.shape.insert(self.axis, x.len());
        shape.checked(a.dtype.size())?;
        Ok(smallvec![Aval { weak: x.iter().all(|b| b.weak), ..a.with_shape(shape) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        joint_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; x.len()]) };
        let parts = cx.bind(&Unstack { axis: self.axis }.into(), std::slice::from_ref(ct))?;
        Ok(x.iter().zip(parts).map(|(a, p)| a.is_linear().then_some(p)).collect())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let at = d.iter().flatten().next().copied().unwrap_or(0);
        let moved: Values = x.iter().zip(d).map(|(v, d)| cx.batch_at(v, *d, ax.n, at)).collect::<Res<_>>()?;
        // the new axis comes before the lanes, or after them
        let before = self.axis <= at;
        let y = cx.bind1(Stack { axis: self.axis + !before as usize }, &moved)?;
        Ok((values1(y), smallvec![Some(at + before as usize)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_joined(cx, &self.clone().into(), x, s, usize::MAX, &|k| k + (k >= self.axis) as usize)
    }
    fn sums(&self) -> Sums {
        Sums::Alike
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, a) = (Factors::whole(x, out), &x[0]);
        for d in 0..a.rank() {
            let dims: Vec<_> = (0..x.len()).map(|i| In(i, d)).chain([Out(0, d + (d >= self.axis) as usize)]).collect();
            f.link(a.shape[d], &dims);
        }
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let words = |all: &str| format!("All operands should have the same sharding. Got shardings {all}");
        let mut spec = t.alike(0, words)?;
        spec.dims.insert(self.axis.min(spec.dims.len()), CutAxes::new());
        Ok(smallvec![spec])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let mut shape = out[0].shape.clone();
        shape[self.axis] = 1;
        let x: TensorIds = x.iter().map(|v| b.reshape(*v, shape.clone())).collect();
        Ok(smallvec![b.concatenate(&x, self.axis)])
    }
}

primitive! {
    pub struct Unstack = "unstack" {
        axis: usize,
    }
}
impl Rules for Unstack {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("unstack takes 1 operand, got {}", x.len())) };
        if self.axis >= a.rank() || a.tape > 0 {
            return value_err(format!("axis {} is out of bounds for array of dimension {}", self.axis, a.rank()));
        }
        let n = a.shape[self.axis];
        if n > MOST_PARTS {
            return value_err(format!(
                "unstack gives at most {MOST_PARTS} arrays, but axis {} has size {n}",
                self.axis
            ));
        }
        Ok(smallvec![a.unbatched(self.axis); n])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let part = x[0].aval().unbatched(self.axis);
        let parts = parts_to_join(cx, ct, &|_| part.clone())?;
        Ok(smallvec![Some(cx.bind1(Stack { axis: self.axis }, &parts)?)])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let before = d[0].is_some_and(|d| d <= self.axis);
        let y = cx.bind(&Unstack { axis: self.axis + before as usize }.into(), x)?;
        let (n, at) = (y.len(), d[0].map(|d| d - !before as usize));
        Ok((y, smallvec![at; n]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_parts(cx, &self.clone().into(), x, s, self.axis, None)
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, a) = (Factors::whole(x, out), &x[0]);
        for d in (0..a.rank()).filter(|d| *d != self.axis) {
            let dims: Vec<_> = (0..out.len()).map(|i| Out(i, d - (d > self.axis) as usize)).chain([In(0, d)]).collect();
            f.link(a.shape[d], &dims);
        }
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        if !t.specs[0].dims[self.axis].is_empty() {
            t.refuse(|| {
                format!(
                    "unstack operand cannot be sharded on the unstacking axis {}. Got operand type={}",
                    self.axis, t.x[0]
                )
            })?;
        }
        t.by_factors(&self.factors(t.x, t.out))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let mut shape: Dims = b.shape(x[0]);
        shape[self.axis] = 1;
        let strides = vec![1; shape.len()];
        let part = |(i, a): (usize, &Aval)| {
            let start: Dims = (0..shape.len()).map(|k| if k == self.axis { i } else { 0 }).collect();
            let piece = b.slice(x[0], &start, &strides, shape.clone());
            b.reshape(piece, a.shape.clone())
        };
        Ok(out.iter().enumerate().map(part).collect())
    }
}
