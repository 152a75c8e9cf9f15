//! reduce_window_sum, reduce_window_max, reduce_window_min: each window of x combined, without elements outside x. numpy:
//! `sliding_window_view(x, window).sum(..)`. 16-bit floats are summed in single precision.
use super::pointwise::Pw;
use super::reduce::{Monoid, identity};
use super::select_and_gather::{Comparison, SelectAndGatherAdd};
use super::windows::{Windows, lower_as, windowed};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::ops::pad::Pad;
use crate::param::Member;
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WindowKind {
    Sum,
    Max,
    Min,
}
impl Member for WindowKind {
    const ALL: &'static [(WindowKind, &'static str)] = &[
        (WindowKind::Sum, "reduce_window_sum"),
        (WindowKind::Max, "reduce_window_max"),
        (WindowKind::Min, "reduce_window_min"),
    ];
}

primitive! {
    pub struct ReduceWindow = kind: WindowKind {
        base_dilation: Dims,
        padding: Box<[(i64, i64)]>,
        window_dilation: Dims,
        window_dimensions: Dims,
        window_strides: Dims,
    }
}
windowed!(ReduceWindow);
impl ReduceWindow {
    fn new(kind: WindowKind, w: Windows) -> ReduceWindow {
        ReduceWindow {
            kind,
            base_dilation: w.base,
            padding: w.padding.into(),
            window_dilation: w.dilation,
            window_dimensions: w.size,
            window_strides: w.strides,
        }
    }
    fn monoid(&self) -> Monoid {
        match self.kind {
            WindowKind::Sum => Monoid::Sum,
            WindowKind::Max => Monoid::Max,
            WindowKind::Min => Monoid::Min,
        }
    }
    /// The value of windows outside of the array.
    fn fill(&self, d: Dtype) -> Value {
        match (d.is_complex(), self.kind) {
            (true, WindowKind::Max) => lit(d, f64::NEG_INFINITY),
            (true, WindowKind::Min) => lit(d, f64::INFINITY),
            _ => identity(self.monoid(), d),
        }
    }
    fn meaning(&self, cx: &dyn Cx, x: &Value) -> Res<Values> {
        let f = match self.kind {
            WindowKind::Sum => Pw::Add,
            WindowKind::Max => Pw::Max,
            WindowKind::Min => Pw::Min,
        };
        let dtype = x.dtype();
        let narrow = dtype.is_float() && dtype.size() < 4 && self.kind == WindowKind::Sum;
        let x = if narrow { cx.convert(x, Dtype::F32)? } else { x.clone() };
        let (whole, fill) = (self.monoid(), self.fill(x.dtype()));
        let combine = |cx: &dyn Cx, a: &[Value], b: &[Value]| Ok(values1(cx.pw2(f, &a[0], &b[0])?));
        let y = self.windows().fold(cx, &[x], &[fill], Some(whole), &combine)?;
        Ok(values1(cx.convert(&y[0], dtype)?))
    }
}
impl Rules for ReduceWindow {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = self.kind.name();
        let [a] = x else { return type_err(format!("{name} takes 1 operand, got {}", x.len())) };
        if a.dtype.is_bool() && self.kind == WindowKind::Sum || a.dtype.is_key() || a.tape > 0 {
            return type_err(format!("operand to {name} must have a number dtype, got {}", a.dtype.long()));
        }
        Ok(smallvec![a.with_shape(self.windows().over("reduce_window", &a.shape)?)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let op: Op = self.clone().into();
        let y = cx.bind1(op.clone(), x)?;
        let Some(t) = &dx[0] else { return Ok((values1(y), smallvec![None])) };
        let select = match self.kind {
            WindowKind::Sum => {
                let dy = cx.bind1(op, std::slice::from_ref(t))?;
                return Ok((values1(y), smallvec![Some(dy)]));
            }
            WindowKind::Max => Comparison::Ge,
            WindowKind::Min => Comparison::Le,
        };
        let chosen = SelectAndGatherAdd::new(select, self.windows());
        let dy = cx.bind1(chosen, &[t.clone(), x[0].clone()])?;
        Ok((values1(y), smallvec![Some(dy)]))
    }
    /// The cotangent spread by the strides, summed over the same windows.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if self.kind != WindowKind::Sum {
            return not_linear(self.kind.name());
        }
        let Some(ct) = &ct[0] else { return Ok(smallvec![None]) };
        let (w, a) = (self.windows(), x[0].aval());
        let ones: Dims = a.shape.iter().map(|_| 1).collect();
        let around = w.transposed_padding(&a.shape, ct.shape());
        let config = around.iter().zip(w.strides.iter()).map(|((lo, hi), s)| (*lo, *hi, *s as i64 - 1)).collect();
        let spread = cx.bind1(Pad { padding_config: config }, &[ct.clone(), lit(ct.dtype(), 0.0)])?;
        let padding = vec![(0, 0); a.rank()];
        let back = Windows { strides: w.base, padding, base: ones, ..w };
        Ok(smallvec![Some(cx.bind1(ReduceWindow::new(WindowKind::Sum, back), &[spread])?)])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let w = self.windows();
        let w = d[0].map_or(w.clone(), |d| w.insert(d));
        Ok((cx.bind(&ReduceWindow::new(self.kind, w).into(), x)?, d.into()))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, w) = (Factors::along(x, out, |d| self.windows().stays(d)), self.windows());
        if let Value::Lit(fill) = self.fill(x[0].dtype) {
            f.windows = (0..x[0].rank()).filter_map(|d| w.parted(d, (d, d), fill)).collect();
        }
        f
    }
    fn around(&self, padding: &[(usize, (i64, i64))]) -> Option<Op> {
        let mut op = self.clone();
        padding.iter().for_each(|(d, around)| op.padding[*d] = *around);
        Some(op.into())
    }
    /// Of an array that is padded with what windows have outside.
    fn joined(&self, made: &Op, x: &[Value]) -> Option<(Op, Values)> {
        let (Op::Pad(pad), [x, Value::Lit(fill)]) = (made, x) else { return None };
        let (w, Value::Lit(outside)) = (self.windows(), self.fill(x.dtype())) else { return None };
        let is_plain = w.padding.iter().all(|p| *p == (0, 0)) && w.base.iter().all(|n| *n == 1);
        let padding = pad.padding_config.iter().map(|(lo, hi, _)| (*lo, *hi)).collect();
        let base = pad.padding_config.iter().map(|(_, _, holes)| *holes as usize + 1).collect();
        let op = ReduceWindow::new(self.kind, Windows { padding, base, ..w });
        (is_plain && fill.bits() == outside.bits()).then(|| (op.into(), smallvec![x.clone()]))
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.varying("reduce_window")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        lower_as(b, x, &|cx, x| self.meaning(cx, &x[0]))
    }
}
