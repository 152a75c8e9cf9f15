//! sort: the operands sorted together along one axis, by the first `num_keys` of them; stable, nan last. numpy: `sort`, `lexsort`.
use super::gather::take_along;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, Shared};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::ops::iota::Iota;
use crate::parts::Here;
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::Routine;

primitive! {
    pub struct Sort = "sort" {
        dimension: usize,
        is_stable: bool,
        num_keys: usize,
    }
}
impl Rules for Sort {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let Some(a) = x.first() else { return type_err("Sort requires at least one operand") };
        if x.iter().any(|b| b.shape != a.shape) {
            let shapes: Vec<String> = x.iter().map(|b| b.shape.to_string()).collect();
            return type_err(format!("Arguments to sort must have equal shapes, got: {}", shapes.join(" ")));
        }
        if self.dimension >= a.rank() {
            return value_err(format!(
                "dimension {} is out of bounds for array of dimension {}",
                self.dimension,
                a.rank()
            ));
        }
        if self.num_keys == 0 || self.num_keys > x.len() {
            return value_err(format!("num_keys={} must be between 1 and len(operand)={}", self.num_keys, x.len()));
        }
        Ok(x.iter().cloned().collect())
    }
    /// The permutation comes along as one more operand; tangents are read through it.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let shape = Dims::new(x[0].shape());
        let index = cx.bind1(Iota { dimension: self.dimension, dtype: Dtype::I32, shape: shape.into() }, &[])?;
        let mut args: Values = x.into();
        args.push(index);
        let mut y = cx.bind(&self.clone().into(), &args)?;
        let Some(index) = y.pop() else { return type_err("sort returned nothing") };
        let read = |t: &Tan| t.as_ref().map(|t| take_along(cx, t, &index, self.dimension)).transpose();
        let dy = dx.iter().map(read).collect::<Res<_>>()?;
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("sort")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let x: Values = x.iter().zip(d).map(|(v, d)| cx.batch_at(v, *d, ax.n, 0)).collect::<Res<_>>()?;
        let y = cx.bind(&Sort { dimension: self.dimension + 1, ..self.clone() }.into(), &x)?;
        let dims = y.iter().map(|_| Some(0)).collect();
        Ok((y, dims))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let shared = Some(Shared { dim: self.dimension, cut: true, last: true });
        Factors { shared, ..Factors::along(x, out, |d| d != self.dimension) }
    }
    fn shared(&self, here: &Here, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        here.sorted(self, x, axes)
    }
    /// A complex operand is two: real parts decide before imaginary ones.
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        for i in (0..t.x.len()).filter(|i| !t.specs[*i].dims[self.dimension].is_empty()) {
            t.refuse(|| {
                format!(
                    "Arguments to sort must be unsharded over the sorting dimension. Got arg sharding={} and sorting dimension={}",
                    t.sharding_text(i),
                    self.dimension
                )
            })?;
        }
        let words =
            |all: &str| format!("Arguments to sort must have equal shardings, got: {}", all.replace("), N", ") N"));
        let mut spec = t.alike(0, words)?;
        spec.dims[self.dimension].clear();
        Ok(t.out.iter().map(|_| spec.clone()).collect())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (mut ins, mut num_keys) = (TensorIds::new(), 0);
        for (k, v) in x.iter().enumerate() {
            match b.parts(*v) {
                Some((p, q)) => ins.extend([p, q]),
                None => ins.push(*v),
            }
            if k < self.num_keys {
                num_keys = ins.len();
            }
        }
        let shape = &out[0].shape;
        let (outer, inner) = (shape[..self.dimension].iter().product(), shape[self.dimension + 1..].iter().product());
        let dtypes = ins.iter().map(|v| b.dtype(*v)).collect();
        let r = Routine::Sort { outer, n: shape[self.dimension], inner, dtypes, num_keys };
        let shapes: Vec<Dims> = ins.iter().map(|_| shape.clone()).collect();
        let mut y = b.routine(r, &ins, &shapes).into_iter();
        let mut next = || y.next().unwrap_or_default();
        Ok(x.iter()
            .map(|v| match b.parts(*v) {
                Some(_) => {
                    let (p, q) = (next(), next());
                    b.pair(p, q)
                }
                None => next(),
            })
            .collect())
    }
}
