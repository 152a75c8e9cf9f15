//! select_n: `out[i] = cases[which[i]][i]`; `which` is bool or an integer, of the cases' shape or rank 0. numpy: `choose`, `where`.
use super::pointwise::{align, common_shape};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, values1};
use crate::error::{Res, mixed_dtypes, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Support, Supports, Within, within_cases};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::{Bin, DType, Dims};
use smallvec::{SmallVec, smallvec};

primitive! {
    /// Operands: which, then the cases. A bool picks between two: on false, on true.
    pub struct Select = "select_n" {}
}
impl Rules for Select {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let Some((which, cases)) = x.split_first().filter(|(_, c)| !c.is_empty()) else {
            return type_err("select_n takes a selector and at least one case");
        };
        if !which.dtype.is_bool() && !which.dtype.is_int() {
            return type_err(format!("select `which` must be boolean or integer type, got {}.", which.dtype.long()));
        }
        if which.dtype.is_bool() && cases.len() > 2 {
            return type_err("select with boolean `which` cannot have > 2 cases.");
        }
        if cases.iter().any(|c| c.dtype != cases[0].dtype) {
            let dtypes: Vec<&str> = cases.iter().map(|c| c.dtype.long()).collect();
            return mixed_dtypes("select", &dtypes);
        }
        if let Some(a) = cases.iter().find(|a| a.tape > 0) {
            return type_err(format!("select_n does not accept {a}"));
        }
        let full = cases.iter().find(|c| c.rank() > 0).unwrap_or(&cases[0]);
        if cases.iter().any(|c| c.rank() > 0 && c.shape != full.shape) {
            let shapes: Vec<String> = cases.iter().map(|c| c.shape.to_string()).collect();
            return type_err(format!("select cases must have the same shapes, got [{}].", shapes.join(", ")));
        }
        if which.rank() > 0 && full.rank() > 0 && which.shape != full.shape {
            return type_err(format!(
                "select `which` must be scalar or have the same shape as cases, got `which` shape {} but case shape {}.",
                which.shape, full.shape
            ));
        }
        let mut out = cases[0].with_shape(common_shape("select_n", x)?);
        out.weak = cases.iter().all(|c| c.weak);
        Ok(smallvec![out])
    }
    /// A zero tangent is the literal 0: rank 0, so nothing is materialised.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind1(Select {}, x)?;
        if dx[1..].iter().all(Option::is_none) {
            return Ok((values1(y), smallvec![None]));
        }
        let d = y.dtype();
        let args: Values = std::iter::once(x[0].clone())
            .chain(dx[1..].iter().map(|t| t.clone().unwrap_or_else(|| lit(d, 0.0))))
            .collect();
        let dy = cx.stretch(&cx.bind1(Select {}, &args)?, &Dims::new(y.shape()))?;
        Ok((values1(y), smallvec![Some(dy)]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let mut out: Tans = smallvec![None; x.len()];
        let Some(ct) = &ct[0] else { return Ok(out) };
        let which = x[0].value()?;
        let zero = lit(ct.dtype(), 0.0);
        for i in 1..x.len() {
            if let Arg::Linear(a) = &x[i] {
                let mut args: Values = smallvec![zero.clone(); x.len()];
                args[0] = which.clone();
                args[i] = ct.clone();
                out[i] = Some(cx.sum_to(cx.bind1(Select {}, &args)?, a)?);
            }
        }
        Ok(out)
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (mut x, at) = align(cx, x, d)?;
        // the operands of select_n do not broadcast, but for rank 0
        let rank = x.iter().map(|v| v.rank()).max().unwrap_or(0);
        let mut shape: Dims = (0..rank).map(|_| 1).collect();
        for v in x.iter().filter(|v| v.rank() == rank) {
            // sizes agree but for those of 1, which repeat: to none where the others have none
            (0..rank).filter(|k| v.shape()[*k] != 1).for_each(|k| shape[k] = v.shape()[k]);
        }
        for v in x.iter_mut().filter(|v| v.rank() > 0) {
            *v = cx.stretch(v, &shape)?;
        }
        Ok((cx.bind(&Select {}.into(), &x)?, smallvec![Some(at)]))
    }
    /// A case that is not taken is zero; one that is the literal 0 is not there.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let zero = |v: &Value| matches!(v, Value::Lit(l) if l.is_zero());
        if s[0].is_some() || x[1..].iter().zip(&s[1..]).any(|(v, s)| s.is_none() && !zero(v)) {
            return Ok(None);
        }
        let shape = common_shape("select_n", &x.iter().map(Value::aval).collect::<Vec<_>>())?;
        let terms: Vec<(usize, Support)> =
            s[1..].iter().enumerate().filter_map(|(k, s)| Some((k, s.clone()?))).collect();
        // a case of rank 0 beside others of higher rank keeps a support without axes
        let support = within_cases(cx, &x[0], &terms, x.len() - 1, &shape);
        let y = match terms.as_slice() {
            [(k, _)] => cx.stretch(&x[k + 1], &shape)?,
            _ => cx.stretch(&cx.bind1(Select {}, x)?, &shape)?,
        };
        Ok(Some((values1(y), SmallVec::from_iter([Some(support)]))))
    }
    fn sums(&self) -> Sums {
        Sums::Chosen
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let first = t.alike(1, |all| format!("select cases must have the same shardings, got [{all}]."))?;
        if t.x[0].rank() > 0 && t.typed[0] && t.typed[1..].contains(&true) && t.specs[0].dims != first.dims {
            t.refuse(|| {
                let (which, case) = (t.sharding_text(0), t.sharding_text(1));
                format!(
                    "select `which` must be scalar or have the same sharding as cases, got `which` sharding {which} but case sharding {case}."
                )
            })?;
        }
        Ok(smallvec![first])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let spread =
            |b: &mut Graph, v: TensorId| b.broadcast(v, out[0].shape.clone(), &(0..b.rank(v)).collect::<Dims>());
        let x: TensorIds = x.iter().map(|v| spread(b, *v)).collect();
        // out = case k where k <= which, the last such k
        let mut y = x[1];
        for (k, case) in x[2..].iter().enumerate() {
            let p = if b.dtype(x[0]) == DType::Bool {
                x[0]
            } else {
                let k = b.scalar(x[0], (k + 1) as f64);
                b.bin(Bin::Ge, x[0], k)
            };
            y = b.select(p, *case, y);
        }
        Ok(smallvec![y])
    }
}
