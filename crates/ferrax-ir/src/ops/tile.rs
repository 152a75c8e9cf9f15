//! tile: the operand `reps[k]` times along each axis k, as a whole. numpy: `tile`.
//!
//! ```text
//! tile[reps=(2, 1)] f32[2,3] -> f32[4,3]           out[i, j] = x[i % 2, j % 3]
//! ```
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::ops::reduce::Monoid;
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Tile = "tile" {
        reps: Dims,
    }
}
impl Tile {
    /// Each axis as two: repetitions, then the operand's own.
    fn split(&self, shape: &Dims) -> Dims {
        self.reps.iter().zip(shape.iter()).flat_map(|(r, n)| [*r, *n]).collect()
    }
}
impl Rules for Tile {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("tile takes 1 operand, got {}", x.len())) };
        if self.reps.len() != a.rank() || a.tape > 0 {
            return type_err(format!(
                "reps length must be equal to the ndim of x, got len(reps)={} and x.ndim={}.",
                self.reps.len(),
                a.rank()
            ));
        }
        let mut shape = a.shape.clone();
        for (n, r) in shape.iter_mut().zip(self.reps.iter()) {
            *n = n.saturating_mul(*r);
        }
        shape.checked(a.dtype.size())?;
        Ok(smallvec![a.with_shape(shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None]) };
        let wide = cx.reshape(ct, &self.split(&x[0].aval().shape))?;
        let times = (0..self.reps.len()).map(|k| 2 * k).collect();
        Ok(smallvec![Some(cx.reduce(Monoid::Sum, &wide, times)?)])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let reps = d[0].map_or(self.reps.clone(), |d| self.reps.insert(d, 1));
        Ok((cx.bind(&Tile { reps }.into(), x)?, d.into()))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::along(x, out, |d| self.reps[d] == 1)
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let repeated = |d: &usize| self.reps[*d] != 1 && !t.specs[0].dims[*d].is_empty();
        if let Some(d) = (0..t.x[0].rank()).find(repeated) {
            t.refuse(|| {
                let of = t.x[0].long();
                format!("Operand cannot be sharded on dimension {d} when the tiling is non-trivial. Got input type: {of} with reps: {}", self.reps)
            })?;
        }
        t.by_factors(&self.factors(t.x, t.out))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let shape = b.shape(x[0]);
        let own: Dims = (0..shape.len()).map(|k| 2 * k + 1).collect();
        let wide = b.broadcast(x[0], self.split(&shape), &own);
        Ok(smallvec![b.reshape(wide, out[0].shape.clone())])
    }
}
