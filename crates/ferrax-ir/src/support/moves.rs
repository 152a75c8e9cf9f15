//! Supports of operations that move elements: selectors are moved as the values are. Elements that a value did not have lie outside of
//! its support.
use super::{Leaf, Move, Selector, Support, Supports, Within};
use crate::aval::Aval;
use crate::cx::{Cx, Tan, truth};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::op::Op;
use crate::ops::pointwise::Pw;
use crate::ops::slice::Slice;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::SmallVec;
use std::sync::Arc;

/// One operand, moved by the op itself along `axes`: selectors that lie along one of them are moved the same way.
pub fn within_moved(cx: &dyn Cx, op: &Op, x: &[Value], s: &Supports, axes: &[usize]) -> Res<Within> {
    let Some(s0) = s[0].as_ref().filter(|_| s[1..].iter().all(Option::is_none)) else { return Ok(None) };
    let y = cx.bind(op, x)?;
    let (op, others) = (op.clone(), Values::from(&x[1..]));
    let f: Move = Arc::new(move |cx, w, _| {
        let args: Values = std::iter::once(w).chain(&others).cloned().collect();
        cx.bind1(op.clone(), &args)
    });
    let moved = s0.by(&Dims::new(x[0].shape()), &Dims::new(y[0].shape()), axes, &f);
    Ok(Some((y, SmallVec::from_iter([Some(moved)]))))
}
/// Splits an operand along an axis into parts of these sizes, or into elements without that axis,
/// and its support likewise.
pub fn within_parts(cx: &dyn Cx, op: &Op, x: &[Value], s: &Supports, axis: usize, sizes: Option<&Dims>) -> Res<Within> {
    let Some(s) = &s[0] else { return Ok(None) };
    let parts = cx.bind(op, x)?;
    let gone = |k: usize| k - (sizes.is_none() && k > axis) as usize;
    let mut start = 0;
    let part = |i: usize, start: usize| {
        let n = sizes.map_or(1, |s| s[i]);
        s.map(&mut |l: &Leaf| {
            let Some(at) = l.axes.iter().position(|k| *k == axis) else {
                return Ok(Leaf { which: l.which.clone(), axes: l.axes.iter().map(|k| gone(*k)).collect() });
            };
            let (old, from, whole) = (l.which.aval(), l.which.clone(), sizes.is_none());
            let mut cut = old.shape.clone();
            cut[at] = n;
            let shape = if whole { cut.without(&[at]) } else { cut.clone() };
            let aval = old.with_shape(shape.clone());
            let which = Selector::later(aval, move |cx| {
                let mut first: Dims = cut.iter().map(|_| 0).collect();
                first[at] = start;
                let mut last = cut.clone();
                last[at] = start + n;
                let slice = Slice { limit_indices: last, start_indices: first, strides: None };
                cx.reshape(&cx.bind1(slice, &[from.value(cx)?])?, &shape)
            });
            let kept = l.axes.iter().filter(|k| sizes.is_some() || **k != axis);
            Ok(Leaf { which, axes: kept.map(|k| gone(*k)).collect() })
        })
    };
    let mut each = SmallVec::new();
    for i in 0..parts.len() {
        each.push(Some(part(i, start)?));
        start += sizes.map_or(1, |s| s[i]);
    }
    Ok(Some((parts, each)))
}
/// Joins operands along an axis of theirs, or along a new one: their common support that does not
/// extend along it remains. `to` maps an axis of theirs to one of the result. The rest is applied;
/// the joined masks are known.
pub fn within_joined(
    cx: &dyn Cx,
    op: &Op,
    x: &[Value],
    s: &Supports,
    axis: usize,
    to: &dyn Fn(usize) -> usize,
) -> Res<Within> {
    let all: Vec<Support> = s.iter().map(|s| s.clone().unwrap_or_default()).collect();
    let Some(first) = all.first() else { return Ok(None) };
    let stays = first.split_by(&[axis]).0.shared(&all[1..].iter().collect::<Vec<_>>());
    let rest: Vec<Support> = all.iter().map(|s| s.without(&stays.0)).collect();
    let parts: Values = x.iter().zip(&rest).map(|(v, s)| s.apply(cx, v)).collect::<Res<_>>()?;
    let y = cx.bind(op, &parts)?;
    let mut support = stays.moved(to);
    if rest.iter().any(|s| !s.is_everywhere()) {
        let shapes: Vec<Dims> = x.iter().map(|v| Dims::new(v.shape())).collect();
        let op = op.clone();
        let joined = Selector::mask(&Dims::new(y[0].shape()), move |cx| {
            let mask = |(s, shape): (&Support, &Dims)| cx.stretch(&s.mask(cx, shape)?, shape);
            cx.bind1(op.clone(), &rest.iter().zip(&shapes).map(mask).collect::<Res<Values>>()?)
        });
        support = support.and(&Support::masked_already(joined));
    }
    Ok(Some((y, SmallVec::from_iter([Some(support)]))))
}
/// Writes or adds one operand, `x[from]`, into another, `x[0]`; `of_masks` does the same to masks, as
/// integers. Their supports are applied; the mask of the result is known.
pub fn within_written(cx: &dyn Cx, op: &Op, of_masks: Op, x: &[Value], s: &Supports, from: usize) -> Res<Within> {
    if s.iter().flatten().all(Support::is_everywhere) {
        return Ok(None);
    }
    let mut args = Values::from(x);
    for (v, s) in args.iter_mut().zip(s) {
        if let Some(s) = s {
            *v = s.apply(cx, v)?;
        }
    }
    let y = cx.bind(op, &args)?;
    // beside a tangent, a value that is none may be anything
    let masks = [0, from].map(|k| (k, s[k].clone().unwrap_or_default(), x[k].aval().with_dtype(Dtype::I32)));
    let written = Selector::mask(&Dims::new(y[0].shape()), move |cx| {
        let mut args = args.clone();
        for (k, s, a) in &masks {
            args[*k] = cx.convert(&cx.stretch(&s.mask(cx, &a.shape)?, &a.shape)?, a.dtype)?;
        }
        cx.pw2(Pw::Gt, &cx.bind1(of_masks.clone(), &args)?, &crate::cx::int(Dtype::I32, 0))
    });
    Ok(Some((y, SmallVec::from_iter([Some(Support::masked_already(written))]))))
}
/// Cotangents of parts, to be joined: one that is not there is zeros, outside of a mask if another has one.
pub fn parts_to_join(cx: &dyn Cx, ct: &[Tan], aval: &dyn Fn(usize) -> Aval) -> Res<Values> {
    let masked = ct.iter().flatten().any(|t| !cx.bare(t).1.is_everywhere());
    let part = |(k, t): (usize, &Tan)| {
        let v = cx.inst(t, &aval(k))?;
        if t.is_some() || !masked {
            return Ok(v);
        }
        let nowhere = Selector::mask(&Dims::new(v.shape()), |_| Ok(truth(false)));
        cx.supported(cx.bare(&v).0, Support::masked_already(nowhere))
    };
    ct.iter().enumerate().map(part).collect()
}
/// `y` is the operand in another shape. An axis that is one of both shapes' keeps its selectors.
pub fn within_reshape(x: &[Value], s: &Supports, y: Value) -> Within {
    let s = s[0].as_ref()?;
    let (old, new) = (Dims::new(x[0].shape()), Dims::new(y.shape()));
    let before = |d: &Dims, k: usize| d[..k].iter().product::<usize>();
    let empty = old.contains(&0);
    let to = |k: usize| {
        let fits = |j: &usize| !empty && new[*j] == old[k] && before(&new, *j) == before(&old, k);
        if old[k] == 1 { None } else { (0..new.len()).find(fits) }
    };
    let shape = new.clone();
    let whole: Move = Arc::new(move |cx, w, _| cx.reshape(w, &shape));
    let moved = s.map(&mut |l| {
        let l = l.squeezed(&|k| old[k] == 1);
        Ok(match l.axes.iter().map(|k| to(*k)).collect::<Option<Dims>>() {
            Some(axes) => Leaf { which: l.which.clone(), axes },
            None => l.changed(0, &old, &new, &whole),
        })
    });
    Some((Values::from_iter([y]), SmallVec::from_iter([Some(moved.unwrap_or_default())])))
}
