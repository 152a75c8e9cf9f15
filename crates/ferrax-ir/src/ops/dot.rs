//! dot_general: `out[b.., l.., r..] = sum_c lhs[b, l, c] * rhs[b, r, c]`; which axes are contracted (c) and which are batch axes (b)
//! is named by `dimension_numbers`. numpy: `einsum`.
use super::conv::Asked;
use super::reduce::Monoid;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err};
use crate::factors::{Factors, In, Out};
use crate::layout::CutAxes;
use crate::lower::{DotAxes, Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::support::{Supports, Within};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::{DType, Dims};
use smallvec::smallvec;

/// `(([lhs contracted], [rhs contracted]), ([lhs batch], [rhs batch]))`
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DotDims {
    pub lc: Dims,
    pub rc: Dims,
    pub lb: Dims,
    pub rb: Dims,
}
impl ParamValue for DotDims {
    fn words() -> String {
        "((lhs contracting axes, rhs contracting axes), (lhs batch axes, rhs batch axes))".into()
    }
    fn to_param(&self) -> Param {
        let list = |d: &Dims| Param::List(d.iter().map(|i| Param::Int(*i as i64)).collect());
        Param::Tuple(vec![
            Param::Tuple(vec![list(&self.lc), list(&self.rc)]),
            Param::Tuple(vec![list(&self.lb), list(&self.rb)]),
        ])
    }
    fn from_param(p: &Param) -> Option<DotDims> {
        let ((lc, rc), (lb, rb)) = ParamValue::from_param(p)?;
        Some(DotDims { lc, rc, lb, rb })
    }
}

primitive! {
    pub struct Dot = "dot_general" {
        dimension_numbers: Box<DotDims>,
        precision: Asked = nonempty,
        preferred_element_type: Option<Dtype>,
    } always_none { out_sharding = hidden }
}

/// The axes that are neither in `a` nor in `b`.
pub fn free(rank: usize, a: &[usize], b: &[usize]) -> Dims {
    (0..rank).filter(|i| !a.contains(i) && !b.contains(i)).collect()
}
fn join(parts: &[&[usize]]) -> Dims {
    parts.concat().into_iter().collect()
}

impl Dot {
    pub fn new(dims: DotDims) -> Dot {
        Dot { dimension_numbers: Box::new(dims), precision: Asked::default(), preferred_element_type: None }
    }
    fn with(&self, dims: DotDims) -> Dot {
        Dot { dimension_numbers: Box::new(dims), ..self.clone() }
    }
    /// Cotangent of one side: contract `ct` with the other side over the other's free axes, then put the axes in order.
    /// `me`, `it` are (contract, batch) axes of this side and the other.
    fn side(
        &self,
        cx: &dyn Cx,
        ct: &Value,
        a: &Aval,
        me: (&Dims, &Dims),
        other: &Value,
        it: (&Dims, &Dims),
        i_am_left: bool,
    ) -> Res<Value> {
        let nb = me.1.len();
        let my_free = free(a.rank(), me.0, me.1);
        let its_free = free(other.rank(), it.0, it.1);
        let its_at: Dims =
            if i_am_left { (nb + my_free.len()..ct.rank()).collect() } else { (nb..nb + its_free.len()).collect() };
        let dims = DotDims { lc: its_at, rc: its_free, lb: (0..nb).collect(), rb: it.1.clone() };
        // a real operand beside a complex one takes the real part of the whole product
        let dtype = if other.dtype().is_complex() { a.dtype.complex() } else { a.dtype };
        let op = Dot { preferred_element_type: Some(dtype), ..self.with(dims) };
        let (ct, other) = (cx.convert(ct, dtype)?, cx.convert(other, dtype)?);
        let g = cx.bind1(op, &[ct, other])?;
        let g = cx.convert(&g, a.dtype)?;
        // g's axes: batch, my free, then the contracted axes in the other's axis order
        let mut order: Vec<usize> = (0..it.0.len()).collect();
        order.sort_by_key(|&k| it.0[k]);
        let axes = join(&[me.1, &my_free, &order.iter().map(|&k| me.0[k]).collect::<Vec<_>>()]);
        let mut perm = axes.clone();
        axes.iter().enumerate().for_each(|(k, a)| perm[*a] = k);
        cx.transpose(&g, perm)
    }
}
/// The dtype of a product of two: of the higher kind, then the wider; of equal widths the signed, and bfloat16.
fn richer(a: Dtype, b: Dtype) -> Dtype {
    let rank = |d: Dtype| {
        (
            d.is_int() as u8 + 2 * d.is_float() as u8 + 3 * d.is_complex() as u8,
            d.size(),
            !d.is_unsigned() && d != Dtype::F16,
            // of small floats, as they are listed: that of more exponent bits
            d.num().filter(|n| n.is_small()),
        )
    };
    if rank(b) > rank(a) { b } else { a }
}
/// Which dimensions of the operands go together, checked in JAX's order and words.
fn check_dimensions(n: &DotDims, l: &Aval, r: &Aval) -> Res<()> {
    let sides = [("lhs", l, &n.lb, &n.lc), ("rhs", r, &n.rb, &n.rc)];
    for (side, a, batch, contracting) in sides {
        if batch.iter().chain(contracting.iter()).any(|k| *k >= a.rank()) {
            return type_err(format!(
                "dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of the {side} value, got {side}_batch of {batch} and {side}_contracting of {contracting} for {side} of rank {}",
                a.rank()
            ));
        }
    }
    if n.lb.len() != n.rb.len() {
        return type_err(format!(
            "dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch {} and rhs_batch {}.",
            n.lb, n.rb
        ));
    }
    for (what, lhs, rhs) in [("batch", &n.lb, &n.rb), ("contracting", &n.lc, &n.rc)] {
        for (side, d) in [("lhs", lhs), ("rhs", rhs)] {
            if (1..d.len()).any(|i| d[..i].contains(&d[i])) {
                return type_err(format!(
                    "dot_general requires {side} {what} dimensions to be distinct, got {side}_{what} {d}."
                ));
            }
        }
    }
    for (side, _, batch, contracting) in sides {
        if batch.iter().any(|k| contracting.contains(k)) {
            return type_err(format!(
                "dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, got {side}_batch {batch} and {side}_contracting {contracting}."
            ));
        }
    }
    let batches = "lhs batch dimensions and rhs batch dimensions";
    for (what, lhs, rhs) in [(batches, &n.lb, &n.rb), ("contracting dimensions", &n.lc, &n.rc)] {
        let (ls, rs) = (l.shape.pick(lhs), r.shape.pick(rhs));
        if ls != rs {
            return type_err(format!("dot_general requires {what} to have the same shape, got {ls} and {rs}."));
        }
    }
    Ok(())
}

impl Rules for Dot {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [l, r] = x else { return type_err(format!("dot_general takes 2 operands, got {}", x.len())) };
        let n = &*self.dimension_numbers;
        check_dimensions(n, l, r)?;
        if l.dtype.is_key() || r.dtype.is_key() || l.tape + r.tape > 0 {
            return type_err(format!("dot_general does not accept {} and {}", l.long(), r.long()));
        }
        let common = richer(l.dtype, r.dtype);
        let dtype = self.preferred_element_type.unwrap_or(common);
        let width = |d: Dtype| if d.is_bool() { 1 } else { 8 * d.real().size() };
        if !common.is_float() && width(dtype) < width(common) {
            return type_err(format!(
                "`preferred_element_type` must not be narrower than the original type, got preferred_element_type of {} for result type of {}.",
                dtype.long(),
                common.long()
            ));
        }
        let shape: Dims = join(&[&n.lb, &free(l.rank(), &n.lc, &n.lb)])
            .iter()
            .map(|&i| l.shape[i])
            .chain(free(r.rank(), &n.rc, &n.rb).iter().map(|&i| r.shape[i]))
            .collect();
        shape.checked(dtype.size())?;
        Ok(smallvec![Aval { weak: l.weak && r.weak && dtype == l.dtype, ..Aval::of(dtype, shape) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let op: Op = self.clone().into();
        let y = cx.bind1(op.clone(), x)?;
        let l = dx[0].as_ref().map(|t| cx.bind1(op.clone(), &[t.clone(), x[1].clone()])).transpose()?;
        let r = dx[1].as_ref().map(|t| cx.bind1(op.clone(), &[x[0].clone(), t.clone()])).transpose()?;
        let dy = if y.has_tangent() { cx.add_tan(l, r)? } else { None };
        Ok((values1(y), smallvec![dy]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; 2]) };
        let n = &*self.dimension_numbers;
        let (l, r) = ((&n.lc, &n.lb), (&n.rc, &n.rb));
        Ok(match (&x[0], &x[1]) {
            (Arg::Linear(a), Arg::Known(y)) => smallvec![Some(self.side(cx, ct, a, l, y, r, true)?), None],
            (Arg::Known(x), Arg::Linear(a)) => smallvec![None, Some(self.side(cx, ct, a, r, x, l, false)?)],
            _ => return not_linear("dot_general"),
        })
    }
    /// One batch axis per operand becomes a batch dimension; a lone one becomes a free axis.
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let shift = |v: &Dims, d: Dim| v.iter().map(|&a| a + d.is_some_and(|d| a >= d) as usize).collect::<Dims>();
        let n = &*self.dimension_numbers;
        let mut dims =
            DotDims { lc: shift(&n.lc, d[0]), rc: shift(&n.rc, d[1]), lb: shift(&n.lb, d[0]), rb: shift(&n.rb, d[1]) };
        let nb = n.lb.len();
        let lfree = free(x[0].rank(), &dims.lc, &dims.lb);
        let at = |f: &Dims, d: usize| f.iter().position(|a| *a == d).unwrap_or(0);
        let out = match (d[0], d[1]) {
            (Some(l), Some(r)) => {
                dims.lb = dims.lb.insert(0, l);
                dims.rb = dims.rb.insert(0, r);
                Some(0)
            }
            (Some(l), None) => Some(nb + at(&lfree, l)),
            (None, Some(r)) => Some(nb + lfree.len() + at(&free(x[1].rank(), &dims.rc, &dims.rb), r)),
            (None, None) => None,
        };
        Ok((cx.bind(&self.with(dims).into(), x)?, smallvec![out]))
    }
    /// A support along free axes becomes that of the product; rows that are masked along contracted
    /// axes are zero in both operands.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let (i, s) = match s {
            [Some(s), None] => (0, s),
            [None, Some(s)] => (1, s),
            _ => return Ok(None),
        };
        let n = &*self.dimension_numbers;
        let (mine, its) = if i == 0 { ((&n.lc, &n.lb), (&n.rc, &n.rb)) } else { ((&n.rc, &n.rb), (&n.lc, &n.lb)) };
        let (stays, applied) = s.split_by(mine.0);
        let my_free = free(x[i].rank(), mine.0, mine.1);
        let its_free = free(x[1 - i].rank(), its.0, its.1);
        let (rows, _) = applied.split_by(&my_free);
        let at = |v: &[usize], k: usize| v.iter().position(|a| *a == k);
        let across = rows.moved(&|k| at(mine.1, k).map(|b| its.1[b]).or(at(mine.0, k).map(|c| its.0[c])).unwrap_or(k));
        let mut args: Values = x.into();
        args[i] = applied.apply(cx, &x[i])?;
        args[1 - i] = across.cleaned(false).apply(cx, &x[1 - i])?;
        let first = n.lb.len() + if i == 0 { 0 } else { its_free.len() };
        let stays = stays.cleaned(false).moved(&|k| at(mine.1, k).or(at(&my_free, k).map(|f| first + f)).unwrap_or(k));
        Ok(Some((values1(cx.bind1(self.clone(), &args)?), smallvec![Some(stays)])))
    }
    fn sums(&self) -> Sums {
        Sums::Dot
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, d) = (Factors::whole(x, out), &*self.dimension_numbers);
        let (l, r) = (&x[0], &x[1]);
        let (lf, rf) = (free(l.rank(), &d.lc, &d.lb), free(r.rank(), &d.rc, &d.rb));
        for (k, (i, j)) in d.lb.iter().zip(d.rb.iter()).enumerate() {
            f.link(l.shape[*i], &[In(0, *i), In(1, *j), Out(0, k)]);
        }
        let at = d.lb.len();
        lf.iter().enumerate().for_each(|(k, i)| f.link(l.shape[*i], &[In(0, *i), Out(0, at + k)]));
        let at = at + lf.len();
        rf.iter().enumerate().for_each(|(k, j)| f.link(r.shape[*j], &[In(1, *j), Out(0, at + k)]));
        for (i, j) in d.lc.iter().zip(d.rc.iter()) {
            f.fold(l.shape[*i], Monoid::of_sum(out[0].dtype), &[In(0, *i), In(1, *j)]);
        }
        f
    }
    fn wider(&self, results: Dtype) -> Option<Op> {
        Some(Dot { preferred_element_type: Some(results), ..self.clone() }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let d = &*self.dimension_numbers;
        let of = |i: usize, at: &Dims| at.iter().map(|k| t.specs[i].dims[*k].clone()).collect::<Vec<_>>();
        let differ =
            |l: &[CutAxes], r: &[CutAxes]| l.iter().zip(r).any(|(l, r)| !l.is_empty() && !r.is_empty() && l != r);
        let (lb, rb, lc, rc) = (of(0, &d.lb), of(1, &d.rb), of(0, &d.lc), of(1, &d.rc));
        let (ltext, rtext) = (t.tuple(&lc), t.tuple(&rc));
        if differ(&lb, &rb) {
            t.refuse(|| {
                format!(
                    "dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding, got {} and {}.",
                    t.tuple(&lb),
                    t.tuple(&rb)
                )
            })?;
        }
        if differ(&lc, &rc) {
            t.refuse(|| {
                format!(
                    "dot_general requires contracting dimensions to have consistent sharding, got {ltext} and {rtext}."
                )
            })?;
        }
        if lc.iter().zip(&rc).any(|(l, r)| !l.is_empty() && !r.is_empty()) {
            t.refuse(|| {
                format!(
                    "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify the output \
                     sharding via the `out_sharding` parameter. Got lhs_contracting_spec={ltext} and rhs_contracting_spec={rtext}"
                )
            })?;
        }
        // of a batch, as the left operand
        let mut made = t.by_factors(&self.factors(t.x, t.out))?;
        lb.into_iter().enumerate().for_each(|(k, cut)| made[0].dims[k] = cut);
        Ok(made)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let n = &*self.dimension_numbers;
        let (lf, rf) = (free(b.rank(x[0]), &n.lc, &n.lb), free(b.rank(x[1]), &n.rc, &n.rb));
        let (l, r) = (
            DotAxes { batch: &n.lb, free: &lf, contract: &n.lc },
            DotAxes { batch: &n.rb, free: &rf, contract: &n.rc },
        );
        let (dtype, paired) = (crate::lower::physical(&out[0]).dtype, out[0].dtype.is_complex());
        if !(self.precision.is_double() && dtype.is_float()) {
            return Ok(smallvec![b.dot(x[0], x[1], &l, &r, dtype, paired, &out[0].shape)]);
        }
        let [x, y] = [x[0], x[1]].map(|x| b.convert(x, DType::F64));
        let wide = b.dot(x, y, &l, &r, DType::F64, paired, &out[0].shape);
        Ok(smallvec![b.convert(wide, dtype)])
    }
}
