//! Where a tangent or cotangent may differ from zero, kept beside its value instead of in it.
//!
//! A selection says where a tangent is zero whatever the numbers are. Pointwise linear maps, broadcasts, transposes and reshapes
//! commute with such a mask, so it is carried along and applied last: before a sum, a product, or whatever mixes elements. An
//! element that is masked then never meets an infinite slope, and `0 * inf` does not occur.
//!
//! ```text
//! ct of select(p, a, b)        ct where p, for b              value ct, support {p is 1}
//! ct * slope                   value ct * slope, support {p is 1}
//! broadcast                    value broadcast(ct * slope), support {p is 1, its axes moved}: no equation
//! applied                      select(p, 0, ct * slope)
//! ```
mod crossing;

use crate::cx::{Cx, lit};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::op::Op;
use crate::ops::pointwise::Pw;
use crate::ops::select::Select;
use crate::value::{Value, Values};
pub use crossing::{Bared, Crossing, Place, agreed};
use ferrax_kernel::{DType, Dims};
use smallvec::SmallVec;
use std::sync::Arc;

/// A selector that lies along some axes of the value whose support it describes: its axis k along axis `axes[k]`.
#[derive(Clone, Debug)]
pub struct Leaf<W = Value> {
    pub which: W,
    pub axes: Dims,
}
#[derive(Clone, Debug)]
pub enum Pick<W = Value> {
    /// Where a selection among `of` cases takes this one. `clean`: elsewhere the value is zero already.
    Case { which: Leaf<W>, case: usize, of: usize, clean: bool },
    /// In any of these.
    Any { of: Arc<[Support<W>]>, clean: bool },
}
/// In all of these; of none, everywhere.
#[derive(Clone, Debug)]
pub struct Support<W = Value>(SmallVec<[Pick<W>; 1]>);

/// As many terms of a union are kept apart; of more one mask is made.
const MOST_TERMS: usize = 8;

fn same_value(a: &Value, b: &Value) -> bool {
    a.id().is_some() && a.id() == b.id()
}
impl Pick {
    fn same(&self, o: &Pick) -> bool {
        match (self, o) {
            (Pick::Case { which: a, case: i, of: m, .. }, Pick::Case { which: b, case: j, of: n, .. }) => {
                (i, m) == (j, n) && same_value(&a.which, &b.which) && a.axes == b.axes
            }
            (Pick::Any { of: a, .. }, Pick::Any { of: b, .. }) => {
                Arc::ptr_eq(a, b) || a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| a.same(b))
            }
            _ => false,
        }
    }
    fn is_clean(&self) -> bool {
        match self {
            Pick::Case { clean, .. } | Pick::Any { clean, .. } => *clean,
        }
    }
    fn cleaned(&self, on: bool) -> Pick {
        let mut p = self.clone();
        match &mut p {
            Pick::Case { clean, .. } | Pick::Any { clean, .. } => *clean = on,
        }
        p
    }
}
impl Leaf {
    /// The selector of a value of this shape; one of rank 0 stays.
    fn spread(&self, cx: &dyn Cx, shape: &Dims) -> Res<Value> {
        if self.axes.is_empty() { Ok(self.which.clone()) } else { cx.broadcast(&self.which, shape, &self.axes) }
    }
}
impl<W> Default for Support<W> {
    fn default() -> Self {
        Support(SmallVec::new())
    }
}
impl<W> Support<W> {
    pub fn everywhere() -> Self {
        Self::default()
    }
    /// Where a mask of all axes is true.
    pub fn of_mask(which: W, rank: usize) -> Self {
        let which = Leaf { which, axes: (0..rank).collect() };
        Support(std::iter::once(Pick::Case { which, case: 1, of: 2, clean: false }).collect())
    }
    pub fn is_everywhere(&self) -> bool {
        self.0.is_empty()
    }
    /// The same with other selectors.
    pub fn map<V>(&self, f: &mut dyn FnMut(&Leaf<W>) -> Res<Leaf<V>>) -> Res<Support<V>> {
        let pick = |p: &Pick<W>| {
            Ok(match p {
                Pick::Case { which, case, of, clean } => {
                    Pick::Case { which: f(which)?, case: *case, of: *of, clean: *clean }
                }
                Pick::Any { of, clean } => {
                    Pick::Any { of: of.iter().map(|s| s.map(f)).collect::<Res<Vec<_>>>()?.into(), clean: *clean }
                }
            })
        };
        Ok(Support(self.0.iter().map(pick).collect::<Res<_>>()?))
    }
    /// Each selector once for each place where it stands.
    pub fn leaves<'a>(&'a self, out: &mut Vec<&'a Leaf<W>>) {
        for p in &self.0 {
            match p {
                Pick::Case { which, .. } => out.push(which),
                Pick::Any { of, .. } => of.iter().for_each(|s| s.leaves(out)),
            }
        }
    }
    /// Numbers that tell apart the ways in which supports are made of their selectors.
    pub fn shape_key(&self, out: &mut Vec<usize>) {
        out.push(self.0.len());
        for p in &self.0 {
            match p {
                Pick::Case { which, case, of, clean } => {
                    out.extend([*clean as usize, *case, *of, which.axes.len()]);
                    out.extend(which.axes.iter());
                }
                Pick::Any { of, clean } => {
                    out.extend([2 + *clean as usize, of.len()]);
                    of.iter().for_each(|s| s.shape_key(out));
                }
            }
        }
    }
}
impl Support {
    /// Where a selection by `which` among `of` cases takes this one.
    pub fn case(which: &Value, case: usize, of: usize) -> Support {
        let leaf = Leaf { which: which.clone(), axes: (0..which.rank()).collect() };
        Support(SmallVec::from_iter([Pick::Case { which: leaf, case, of, clean: false }]))
    }
    /// Where a mask is true, of a value that is zero elsewhere.
    pub fn masked_already(mask: &Value) -> Support {
        Support::case(mask, 1, 2).cleaned(true)
    }
    /// The same of a value that is zero elsewhere already, or is so no more.
    pub fn cleaned(&self, on: bool) -> Support {
        Support(self.0.iter().map(|p| p.cleaned(on)).collect())
    }
    fn same(&self, o: &Support) -> bool {
        self.0.len() == o.0.len() && self.0.iter().all(|p| o.0.iter().any(|q| p.same(q)))
    }
    fn without(&self, o: &[Pick]) -> Support {
        Support(self.0.iter().filter(|p| !o.iter().any(|q| q.same(p))).cloned().collect())
    }
    /// The parts that all of these have too.
    fn shared(&self, others: &[&Support]) -> Support {
        let shared = |p: &&Pick| others.iter().all(|o| o.0.iter().any(|q| p.same(q)));
        let clean = |p: &Pick| others.iter().all(|o| o.0.iter().any(|q| p.same(q) && q.is_clean()));
        Support(self.0.iter().filter(shared).map(|p| p.cleaned(p.is_clean() && clean(p))).collect())
    }
    /// Where both are.
    pub fn and(&self, o: &Support) -> Support {
        let mut all = self.clone();
        all.0.extend(o.without(&self.0).0);
        all
    }
    /// The parts common to all, what each has besides, and where any of those besides is.
    fn apart(cx: &dyn Cx, all: &[&Support], shape: &Dims) -> Res<(Support, Vec<Support>, Support)> {
        let Some((first, others)) = all.split_first() else { return Ok(Default::default()) };
        let common = first.shared(others);
        let rest: Vec<Support> = all.iter().map(|s| s.without(&common.0)).collect();
        let union = Support::union(cx, &rest, shape)?;
        Ok((common, rest, union))
    }
    fn union(cx: &dyn Cx, all: &[Support], shape: &Dims) -> Res<Support> {
        let mut terms: Vec<Support> = vec![];
        for s in all {
            match s.0.as_slice() {
                [] => return Ok(Support::everywhere()),
                [Pick::Any { of, .. }] => terms.extend(of.iter().cloned()),
                _ => terms.push(s.clone()),
            }
        }
        let mut distinct: Vec<Support> = vec![];
        for t in terms {
            if !distinct.iter().any(|d| d.same(&t)) {
                distinct.push(t);
            }
        }
        if Support::is_whole(&distinct) {
            return Ok(Support::everywhere());
        }
        if let [one] = distinct.as_slice() {
            return Ok(one.clone());
        }
        let many = distinct.len() > MOST_TERMS;
        let any = Support(SmallVec::from_iter([Pick::Any { of: distinct.into(), clean: false }]));
        if !many {
            return Ok(any);
        }
        Ok(Support::case(&cx.stretch(&any.mask(cx, shape)?, shape)?, 1, 2))
    }
    /// Whether these are all cases of one selection.
    fn is_whole(all: &[Support]) -> bool {
        let mut found: SmallVec<[(&Leaf, usize, usize); 4]> = SmallVec::new();
        for s in all {
            if let [Pick::Case { which, case, of, .. }] = s.0.as_slice() {
                found.push((which, *case, *of));
            }
        }
        found.iter().any(|(a, _, of)| {
            let mine =
                |(b, _, n): &&(&Leaf, usize, usize)| n == of && same_value(&a.which, &b.which) && a.axes == b.axes;
            found.iter().filter(mine).count() == *of // each is there once
        })
    }
    /// True where it is; of rank 0, or of this shape.
    pub fn mask(&self, cx: &dyn Cx, shape: &Dims) -> Res<Value> {
        let mut all: Option<Value> = None;
        for p in &self.0 {
            let m = match p {
                Pick::Case { which, case, of, .. } => {
                    let w = which.spread(cx, shape)?;
                    match (w.dtype() == Dtype::Num(DType::Bool), case) {
                        (true, 0) => cx.pw(Pw::Not, &[w])?,
                        (true, _) => w,
                        // a selector outside of the cases takes the nearest
                        (false, c) => {
                            let c_is = if *c == 0 {
                                Pw::Le
                            } else if c + 1 == *of {
                                Pw::Ge
                            } else {
                                Pw::Eq
                            };
                            cx.pw2(c_is, &w, &crate::cx::int(w.dtype(), *c as i64))?
                        }
                    }
                }
                Pick::Any { of: terms, .. } => {
                    let mut any: Option<Value> = None;
                    for t in terms.iter() {
                        let m = t.mask(cx, shape)?;
                        any = Some(match any {
                            Some(a) => cx.pw2(Pw::Or, &a, &m)?,
                            None => m,
                        });
                    }
                    any.unwrap_or_else(|| crate::cx::truth(false))
                }
            };
            all = Some(match all {
                Some(a) => cx.pw2(Pw::And, &a, &m)?,
                None => m,
            });
        }
        Ok(all.unwrap_or_else(|| crate::cx::truth(true)))
    }
    /// The value with zeros where the support is not.
    pub fn apply(&self, cx: &dyn Cx, x: &Value) -> Res<Value> {
        let mut y = x.clone();
        let shape = Dims::new(x.shape());
        let zero = lit(x.dtype(), 0.0);
        for p in self.0.iter().filter(|p| !p.is_clean()) {
            let (which, case, of) = match p {
                Pick::Case { which, case, of, .. } => (which.spread(cx, &shape)?, *case, *of),
                Pick::Any { .. } => (Support(SmallVec::from_iter([p.clone()])).mask(cx, &shape)?, 1, 2),
            };
            let mut args: Values = (0..of + 1).map(|_| zero.clone()).collect();
            args[0] = which;
            args[case + 1] = y;
            y = cx.stretch(&cx.bind1(Select {}, &args)?, &shape)?;
        }
        Ok(y)
    }
    /// Whether no selector lies along one of these axes.
    pub fn is_free_of(&self, axes: &[usize]) -> bool {
        let mut leaves = vec![];
        self.leaves(&mut leaves);
        !leaves.iter().any(|l| l.axes.iter().any(|a| axes.contains(a)))
    }
    /// The parts that lie along none of these axes, and the others.
    pub fn split_by(&self, axes: &[usize]) -> (Support, Support) {
        let free = |p: &Pick| Support(SmallVec::from_iter([p.clone()])).is_free_of(axes);
        let (a, b): (SmallVec<[Pick; 1]>, SmallVec<[Pick; 1]>) = self.0.iter().cloned().partition(|p| free(p));
        (Support(a), Support(b))
    }
    /// The same of a value whose axis k lies at `to[k]` of this one's: no equation.
    pub fn moved(&self, to: &dyn Fn(usize) -> usize) -> Support {
        let moved =
            self.map(&mut |l| Ok(Leaf { which: l.which.clone(), axes: l.axes.iter().map(|a| to(*a)).collect() }));
        moved.unwrap_or_default()
    }
    /// The same with each selector that lies along one of `axes` as long as the value it describes, and changed by `f`.
    pub fn by(
        &self,
        cx: &dyn Cx,
        shape: &Dims,
        axes: &[usize],
        f: &dyn Fn(&dyn Cx, &Value) -> Res<Value>,
    ) -> Res<Support> {
        self.map(&mut |l| {
            if !l.axes.iter().any(|a| axes.contains(a)) {
                return Ok(l.clone());
            }
            let which = f(cx, &cx.broadcast(&l.which, shape, &l.axes)?)?;
            Ok(Leaf { axes: (0..which.rank()).collect(), which })
        })
    }
}

/// What a primitive makes of operands with supports: `None` for an operand that is no tangent.
pub type Supports = [Option<Support>];
/// Its results, each with its support if it is a tangent.
pub type Within = Option<(Values, SmallVec<[Option<Support>; 1]>)>;

/// A result that is zero wherever any of its tangent operands is: functions of one tangent that keep zero.
pub fn within_each(cx: &dyn Cx, y: Value, x: &[Value], s: &Supports) -> Res<Within> {
    let shape = Dims::new(y.shape());
    let mut all = Support::everywhere();
    for (v, s) in x.iter().zip(s) {
        if let Some(s) = s {
            all = all.and(&stretched(cx, v, s, &shape)?);
        }
    }
    Ok(Some((Values::from_iter([y]), SmallVec::from_iter([Some(all)]))))
}
/// The same of products and quotients, where a zero does not stay one if the other operand is not finite.
pub fn within_product(cx: &dyn Cx, y: Value, x: &[Value], s: &Supports) -> Res<Within> {
    let y = within_each(cx, y, x, s)?;
    Ok(y.map(|(y, s)| (y, s.iter().map(|s| s.as_ref().map(|s| s.cleaned(false))).collect())))
}
/// A support of an operand of a pointwise primitive, as one of its result's shape.
fn stretched(cx: &dyn Cx, v: &Value, s: &Support, shape: &Dims) -> Res<Support> {
    if s.is_everywhere() || *v.shape() == **shape {
        return Ok(s.clone());
    }
    if v.rank() == 0 {
        return Ok(s.clone());
    }
    let grows = |k: usize| v.shape()[k] == 1 && shape[k] != 1;
    s.map(&mut |l| squeezed(cx, l, &|k| grows(k)))
}
/// A selector without those of its axes, of size 1, that lie along these axes of the value.
pub fn squeezed(cx: &dyn Cx, l: &Leaf, gone: &dyn Fn(usize) -> bool) -> Res<Leaf> {
    let kept: Vec<usize> = (0..l.axes.len()).filter(|k| !gone(l.axes[*k])).collect();
    if kept.len() == l.axes.len() {
        return Ok(l.clone());
    }
    let shape: Dims = kept.iter().map(|k| l.which.shape()[*k]).collect();
    Ok(Leaf { which: cx.reshape(&l.which, &shape)?, axes: kept.iter().map(|k| l.axes[*k]).collect() })
}
/// A sum of tangents: what their supports share stays beside it, the rest is applied, and where any term may be is known.
/// `f` makes the result of the operands.
pub fn within_sum(
    cx: &dyn Cx,
    x: &[Value],
    s: &Supports,
    shape: &Dims,
    f: &dyn Fn(&[Value]) -> Res<Value>,
) -> Res<Within> {
    let mut full = vec![];
    for (v, s) in x.iter().zip(s) {
        // beside a value that is no tangent nothing is zero
        let Some(s) = s else { return Ok(None) };
        full.push(stretched(cx, v, s, shape)?);
    }
    let (common, rest, union) = Support::apart(cx, &full.iter().collect::<Vec<_>>(), shape)?;
    let mut terms = Values::new();
    for (v, r) in x.iter().zip(&rest) {
        let v = if r.is_everywhere() { v.clone() } else { cx.stretch(v, shape)? };
        terms.push(r.apply(cx, &v)?);
    }
    let y = f(&terms)?;
    Ok(Some((Values::from_iter([y]), SmallVec::from_iter([Some(common.and(&union.cleaned(true)))]))))
}
/// Where a selection by `which` takes a case that is a tangent: those it does not take are zero.
pub fn within_cases(cx: &dyn Cx, which: &Value, terms: &[(usize, Support)], of: usize, shape: &Dims) -> Res<Support> {
    let each: Vec<Support> = terms.iter().map(|(k, s)| s.and(&Support::case(which, *k, of))).collect();
    let (common, _, union) = Support::apart(cx, &each.iter().collect::<Vec<_>>(), shape)?;
    Ok(common.and(&union))
}
/// One operand, moved by the op itself along `axes`: selectors that lie along one of them are moved the same way.
pub fn within_moved(cx: &dyn Cx, op: &Op, x: &[Value], s: &Supports, axes: &[usize]) -> Res<Within> {
    let Some(s0) = s[0].as_ref().filter(|_| s[1..].iter().all(Option::is_none)) else { return Ok(None) };
    let y = cx.bind(op, x)?;
    let moved = s0.by(cx, &Dims::new(x[0].shape()), axes, &|cx, w| {
        let mut args: Values = x.into();
        args[0] = w.clone();
        cx.bind1(op.clone(), &args)
    })?;
    Ok(Some((y, SmallVec::from_iter([Some(moved)]))))
}
/// The parts of one operand along an axis, which goes with `gone`: each has its part of the selectors that lie along it.
pub fn within_parts(cx: &dyn Cx, op: &Op, x: &[Value], s: &Supports, axis: usize, gone: bool) -> Res<Within> {
    let Some(s) = &s[0] else { return Ok(None) };
    let parts = cx.bind(op, x)?;
    let (stays, along) = s.split_by(&[axis]);
    let stays = if gone { stays.moved(&|k| k - (k > axis) as usize) } else { stays };
    let mut each: SmallVec<[Option<Support>; 1]> = SmallVec::from_elem(Some(stays), parts.len());
    if !along.is_everywhere() {
        let shape = Dims::new(x[0].shape());
        let mut pieces: Vec<(Value, Values)> = vec![];
        for (i, own) in each.iter_mut().enumerate() {
            let mine = along.map(&mut |l: &Leaf| {
                if !l.axes.contains(&axis) {
                    let axes = l.axes.iter().map(|k| k - (gone && *k > axis) as usize).collect();
                    return Ok(Leaf { which: l.which.clone(), axes });
                }
                let at = pieces.iter().position(|p| same_value(&p.0, &l.which));
                let which = match at {
                    Some(at) => pieces[at].1[i].clone(),
                    None => {
                        let cut = cx.bind(op, &[cx.broadcast(&l.which, &shape, &l.axes)?])?;
                        let part = cut[i].clone();
                        pieces.push((l.which.clone(), cut));
                        part
                    }
                };
                Ok(Leaf { axes: (0..which.rank()).collect(), which })
            })?;
            *own = own.take().map(|s| s.and(&mine));
        }
    }
    Ok(Some((parts, each)))
}
/// Operands joined along an axis of theirs, or along a new one: what their supports share and does not lie along it stays.
/// `to` is where an axis of theirs lies in the result.
pub fn within_joined(
    cx: &dyn Cx,
    op: &Op,
    x: &[Value],
    s: &Supports,
    axis: usize,
    to: &dyn Fn(usize) -> usize,
) -> Res<Within> {
    let Some(all) = s.iter().map(Option::as_ref).collect::<Option<Vec<&Support>>>() else { return Ok(None) };
    let Some(first) = all.first() else { return Ok(None) };
    let stays = first.split_by(&[axis]).0.shared(&all[1..]);
    let parts: Values = x.iter().zip(&all).map(|(v, s)| s.without(&stays.0).apply(cx, v)).collect::<Res<_>>()?;
    Ok(Some((cx.bind(op, &parts)?, SmallVec::from_iter([Some(stays.moved(to))]))))
}
/// `y` is the operand in another shape. An axis that is one of both shapes' keeps its selectors.
pub fn within_reshape(cx: &dyn Cx, x: &[Value], s: &Supports, y: Value) -> Res<Within> {
    let Some(s) = &s[0] else { return Ok(None) };
    let (old, new) = (Dims::new(x[0].shape()), Dims::new(y.shape()));
    let before = |d: &Dims, k: usize| d[..k].iter().product::<usize>();
    let empty = old.contains(&0);
    let to = |k: usize| {
        let fits = |j: &usize| !empty && new[*j] == old[k] && before(&new, *j) == before(&old, k);
        if old[k] == 1 { None } else { (0..new.len()).find(fits) }
    };
    let moved = s.map(&mut |l| {
        let l = squeezed(cx, l, &|k| old[k] == 1)?;
        if let Some(axes) = l.axes.iter().map(|k| to(*k)).collect::<Option<Dims>>() {
            return Ok(Leaf { which: l.which.clone(), axes });
        }
        let which = cx.reshape(&cx.broadcast(&l.which, &old, &l.axes)?, &new)?;
        Ok(Leaf { axes: (0..new.len()).collect(), which })
    })?;
    Ok(Some((Values::from_iter([y]), SmallVec::from_iter([Some(moved)]))))
}
