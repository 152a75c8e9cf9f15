//! clamp: `min(max(x, lo), hi)`; `lo` and `hi` have x's shape or rank 0. numpy: `clip`.
use super::pointwise::Pw;
use super::pointwise::lower::lower;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, values1};
use crate::error::{Res, mixed_dtypes, not_linear, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    /// Operands lo, x, hi.
    pub struct Clamp = "clamp" {}
}
impl Rules for Clamp {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [lo, a, hi] = x else { return type_err(format!("clamp takes 3 operands, got {}", x.len())) };
        if lo.dtype != a.dtype || hi.dtype != a.dtype {
            return mixed_dtypes("clamp", &[lo.dtype.long(), a.dtype.long(), hi.dtype.long()]);
        }
        for (v, what) in [(lo, "min"), (hi, "max")] {
            if v.rank() > 0 && v.shape != a.shape {
                return type_err(format!(
                    "clamp requires {what}.shape == operand.shape or {what}.shape == (), got {what}.shape={}, operand.shape={}.",
                    v.shape, a.shape
                ));
            }
        }
        Ok(smallvec![a.clone()])
    }
    /// The tangent passes where lo < x < hi, as do those of the bounds where they are the result.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind1(Clamp {}, x)?;
        if !y.has_tangent() {
            return Ok((values1(y), smallvec![None]));
        }
        let shape = Dims::new(x[1].shape());
        let at = |f: Pw, a: &Value, b: &Value| -> Res<Value> { cx.pw2(f, a, b) };
        // complex numbers are ordered by their real parts first
        let less = |a: &Value, b: &Value| -> Res<Value> {
            if !a.dtype().is_complex() {
                return at(Pw::Lt, a, b);
            }
            let part = |f: Pw, v: &Value| cx.pw(f, std::slice::from_ref(v));
            let (re, im) = ((part(Pw::Real, a)?, part(Pw::Real, b)?), (part(Pw::Imag, a)?, part(Pw::Imag, b)?));
            let second = at(Pw::And, &at(Pw::Eq, &re.0, &re.1)?, &at(Pw::Lt, &im.0, &im.1)?)?;
            at(Pw::Or, &at(Pw::Lt, &re.0, &re.1)?, &second)
        };
        let more = |a: &Value, b: &Value| if a.dtype().is_complex() { less(b, a) } else { at(Pw::Gt, a, b) };
        let mut dy: Tan = None;
        let mut add = |cx: &dyn Cx, p: Value, t: &Value| -> Res<()> {
            let t = cx.stretch(t, &shape)?;
            let p = cx.stretch(&p, &shape)?;
            let zero = if cx.keeps_supports() { lit(t.dtype(), 0.0) } else { cx.zeros(&t.aval())? };
            dy = cx.add_tan(dy.take(), Some(cx.select(&p, &zero, &t)?))?;
            Ok(())
        };
        if let Some(t) = &dx[0] {
            // lo > x and lo < hi
            add(cx, at(Pw::And, &more(&x[0], &x[1])?, &less(&x[0], &x[2])?)?, t)?;
        }
        if let Some(t) = &dx[1] {
            add(cx, at(Pw::And, &more(&x[1], &x[0])?, &less(&x[1], &x[2])?)?, t)?;
        }
        if let Some(t) = &dx[2] {
            add(cx, less(&x[2], &x[1])?, t)?;
        }
        Ok((values1(y), smallvec![dy]))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("clamp")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        // bounds without lanes that are scalars stay; all others get x's axis
        if d[0].is_none() && d[2].is_none() && x[0].rank() == 0 && x[2].rank() == 0 {
            return Ok((cx.bind(&Clamp {}.into(), x)?, smallvec![d[1]]));
        }
        let v = cx.batch_at(&x[1], d[1], ax.n, 0)?;
        let shape = Dims::new(v.shape());
        let fit = |b: &Value, d: Dim| -> Res<Value> {
            let lane_rank = b.rank() - d.is_some() as usize;
            match (d, lane_rank) {
                (None, 0) => cx.broadcast(b, &shape, &[]),
                (Some(_), 0) => cx.broadcast(b, &shape, &[0]),
                _ => cx.batch_at(b, d, ax.n, 0),
            }
        };
        Ok((cx.bind(&Clamp {}.into(), &[fit(&x[0], d[0])?, v, fit(&x[2], d[2])?])?, smallvec![Some(0)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        Ok(smallvec![t.specs[1].clone()])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        let y = lower(Pw::Max, 0, b, &[x[1], x[0]])?;
        Ok(smallvec![lower(Pw::Min, 0, b, &[y, x[2]])?])
    }
}
