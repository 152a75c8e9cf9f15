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
mod moves;

use crate::aval::{Aval, Lit};
use crate::cut::Lenient;
use crate::cx::{Cx, lit};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::ops::select::Select;
use crate::value::{Value, Values};
pub use crossing::{Bared, Crossing, Place, agreed};
use ferrax_kernel::{DType, Dims};
pub use moves::{parts_to_join, within_joined, within_moved, within_parts, within_reshape, within_written};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The selector of a selection, or a way to make it when a mask is applied: one that is never
/// applied costs nothing.
#[derive(Clone)]
pub enum Selector {
    Known(Value),
    Later(Arc<Later>),
}
pub struct Later {
    aval: Aval,
    make: Box<Making>,
    made: OnceLock<Value>,
}
type Making = dyn Fn(&dyn Cx) -> Res<Value> + Send + Sync;
/// A change of a selector, as that of the value it belongs to. The last argument is a selector that
/// takes another case: for elements that the value did not have.
pub type Move = Arc<dyn Fn(&dyn Cx, &Value, Lit) -> Res<Value> + Send + Sync>;
/// A selector of this dtype that does not take this case.
fn another(dtype: Dtype, case: usize) -> Lit {
    if dtype.is_bool() { Lit::from(case == 0) } else { Lit::from_i64(dtype, (case == 0) as i64) }
}
impl Selector {
    /// One of this type, made by `make`.
    pub fn later(aval: Aval, make: impl Fn(&dyn Cx) -> Res<Value> + Send + Sync + 'static) -> Selector {
        Selector::Later(Arc::new(Later { aval, make: Box::new(make), made: OnceLock::new() }))
    }
    /// A mask of this shape.
    pub fn mask(shape: &Dims, make: impl Fn(&dyn Cx) -> Res<Value> + Send + Sync + 'static) -> Selector {
        let full = shape.clone();
        Selector::later(Aval::of(Dtype::BOOL, shape.clone()), move |cx| cx.stretch(&make(cx)?, &full))
    }
    pub fn value(&self, cx: &dyn Cx) -> Res<Value> {
        match self {
            Selector::Known(v) => Ok(v.clone()),
            Selector::Later(l) => match l.made.get() {
                Some(v) => Ok(v.clone()),
                None => {
                    let v = (l.make)(cx)?;
                    Ok(l.made.get_or_init(|| v).clone())
                }
            },
        }
    }
    fn aval(&self) -> Aval {
        match self {
            Selector::Known(v) => v.aval(),
            Selector::Later(l) => l.aval.clone(),
        }
    }
    fn same(&self, o: &Selector) -> bool {
        match (self, o) {
            (Selector::Known(a), Selector::Known(b)) => a.is_same(b),
            (Selector::Later(a), Selector::Later(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A selector that extends along some axes of the value whose support it describes: its axis k
/// along axis `axes[k]`.
#[derive(Clone)]
pub struct Leaf<W = Selector> {
    pub which: W,
    pub axes: Dims,
}
#[derive(Clone)]
pub enum Pick<W = Selector> {
    /// Where a selection among `of` cases takes this one. `clean`: elsewhere the value is zero
    /// already.
    Case { which: Leaf<W>, case: usize, of: usize, clean: bool },
    /// In any of these.
    Any { of: Arc<[Support<W>]>, clean: bool },
}
/// In all of these; of none, everywhere.
#[derive(Clone)]
pub struct Support<W = Selector>(SmallVec<[Pick<W>; 1]>);

/// How many selectors of a union are kept separate; one of more is merged into one mask. Unions of unions would have twice as many with each step of a
/// recursion.
const MOST_LEAVES: usize = 16;

impl Pick {
    fn same(&self, o: &Pick) -> bool {
        match (self, o) {
            (Pick::Case { which: a, case: i, of: m, .. }, Pick::Case { which: b, case: j, of: n, .. }) => {
                (i, m) == (j, n) && a.which.same(&b.which) && a.axes == b.axes
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
        let which = self.which.value(cx)?;
        if self.axes.is_empty() { Ok(which) } else { cx.broadcast(&which, shape, &self.axes) }
    }
    /// The same without those of its axes, of size 1, that lie along these axes of the value.
    pub fn squeezed(&self, gone: &dyn Fn(usize) -> bool) -> Leaf {
        let kept: Vec<usize> = (0..self.axes.len()).filter(|k| !gone(self.axes[*k])).collect();
        if kept.len() == self.axes.len() {
            return self.clone();
        }
        let (old, from) = (self.which.aval(), self.which.clone());
        let shape: Dims = kept.iter().map(|k| old.shape[*k]).collect();
        let which = Selector::later(old.with_shape(shape.clone()), move |cx| cx.reshape(&from.value(cx)?, &shape));
        Leaf { which, axes: kept.iter().map(|k| self.axes[*k]).collect() }
    }
    /// The selector of a case, as long as a value of shape `old`, and changed by `f` to one of shape `new`.
    fn changed(&self, case: usize, old: &Dims, new: &Dims, f: &Move) -> Leaf {
        let (leaf, old, f) = (self.clone(), old.clone(), f.clone());
        let other = another(self.which.aval().dtype, case);
        let make = move |cx: &dyn Cx| f(cx, &cx.broadcast(&leaf.which.value(cx)?, &old, &leaf.axes)?, other);
        Leaf { which: Selector::later(self.which.aval().with_shape(new.clone()), make), axes: (0..new.len()).collect() }
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
    /// Where a mask over all axes is true.
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
    /// Each selector once for each of its positions in the support.
    pub fn leaves<'a>(&'a self, out: &mut Vec<&'a Leaf<W>>) {
        for p in &self.0 {
            match p {
                Pick::Case { which, .. } => out.push(which),
                Pick::Any { of, .. } => of.iter().for_each(|s| s.leaves(out)),
            }
        }
    }
    /// Numbers that distinguish how supports are composed of their selectors.
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
        Support::of_leaf(Leaf { axes: (0..which.rank()).collect(), which: Selector::Known(which.clone()) }, case, of)
    }
    /// The same; a `which` that was broadcast is replaced by its operand, with the axes of that
    /// operand.
    fn case_found(cx: &dyn Cx, which: &Value, case: usize, of: usize) -> Support {
        let mut leaf = Leaf { axes: (0..which.rank()).collect(), which: Selector::Known(which.clone()) };
        let mut found = which.clone();
        while let Some((op, args)) = cx.made_by(&found) {
            let (Some(to), [from]) = (op.rules().repeats(), args.as_slice()) else { break };
            let longer = |k: usize| from.shape()[k] != found.shape()[to[k]];
            let axes: Dims = to.iter().map(|k| leaf.axes[*k]).collect();
            let gone: Vec<usize> = (0..to.len()).filter(|k| longer(*k)).map(|k| axes[k]).collect();
            let whole = Leaf { which: Selector::Known(from.clone()), axes };
            leaf = whole.squeezed(&|a| gone.contains(&a));
            if !gone.is_empty() {
                break;
            }
            found = from.clone();
        }
        Support::of_leaf(leaf, case, of)
    }
    fn of_leaf(leaf: Leaf, case: usize, of: usize) -> Support {
        Support(SmallVec::from_iter([Pick::Case { which: leaf, case, of, clean: false }]))
    }
    /// Where a mask is true, for a value that is zero elsewhere.
    pub fn masked_already(mask: Selector) -> Support {
        let rank = mask.aval().rank();
        Support::of_mask(mask, rank).cleaned(true)
    }
    /// The same for a value that is already zero elsewhere, or no longer is.
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
    /// The intersection.
    pub fn and(&self, o: &Support) -> Support {
        let mut all = self.clone();
        all.0.extend(o.without(&self.0).0);
        all
    }
    /// The common part of all supports, the remaining part of each, and the union of the remaining
    /// parts.
    fn apart(all: &[&Support], shape: &Dims) -> (Support, Vec<Support>, Support) {
        let Some((first, others)) = all.split_first() else { return Default::default() };
        let common = first.shared(others);
        let rest: Vec<Support> = all.iter().map(|s| s.without(&common.0)).collect();
        let union = Support::union(&rest, shape);
        (common, rest, union)
    }
    fn union(all: &[Support], shape: &Dims) -> Support {
        let mut terms: Vec<Support> = vec![];
        for s in all {
            match s.0.as_slice() {
                [] => return Support::everywhere(),
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
            return Support::everywhere();
        }
        if let [one] = distinct.as_slice() {
            return one.clone();
        }
        let any = Support(SmallVec::from_iter([Pick::Any { of: distinct.into(), clean: false }]));
        let mut leaves = vec![];
        any.leaves(&mut leaves);
        if leaves.len() <= MOST_LEAVES {
            return any;
        }
        let rank = shape.len();
        let full = shape.clone();
        Support::of_mask(Selector::mask(shape, move |cx| any.mask(cx, &full)), rank)
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
            let mine = |(b, _, n): &&(&Leaf, usize, usize)| n == of && a.which.same(&b.which) && a.axes == b.axes;
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
            // the mask is cut as the value is, if only one of them has a cut
            let _resolved = Lenient::of([which.cut(), y.cut()].into_iter());
            args[0] = which;
            args[case + 1] = y;
            y = cx.stretch(&cx.bind1(Select {}, &args)?, &shape)?;
        }
        Ok(y)
    }
    /// Whether no selector extends along one of these axes.
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
    /// The support of a value whose axis k is axis `to[k]` of this one: no equation.
    pub fn moved(&self, to: &dyn Fn(usize) -> usize) -> Support {
        let moved =
            self.map(&mut |l| Ok(Leaf { which: l.which.clone(), axes: l.axes.iter().map(|a| to(*a)).collect() }));
        moved.unwrap_or_default()
    }
    /// The same support with each selector that extends along one of `axes` broadcast to the
    /// value's shape `old`, and changed by `f` as the value is, to `new`.
    pub fn by(&self, old: &Dims, new: &Dims, axes: &[usize], f: &Move) -> Support {
        let pick = |p: &Pick| match p {
            Pick::Case { which, case, of, clean } if which.axes.iter().any(|a| axes.contains(a)) => {
                Pick::Case { which: which.changed(*case, old, new, f), case: *case, of: *of, clean: *clean }
            }
            Pick::Case { .. } => p.clone(),
            Pick::Any { of, clean } => {
                Pick::Any { of: of.iter().map(|s| s.by(old, new, axes, f)).collect(), clean: *clean }
            }
        };
        Support(self.0.iter().map(pick).collect())
    }
    /// The same of a value that `f` puts into zeros along these axes. A selector that lies along none
    /// of them does not tell the zeros around: they are outside of another mask.
    pub fn into_zeros(&self, old: &Dims, new: &Dims, axes: &[usize], f: &Move) -> Support {
        let moved = self.by(old, new, axes, f);
        let mut leaves = vec![];
        self.leaves(&mut leaves);
        if axes.is_empty() || leaves.iter().all(|l| l.axes.iter().any(|a| axes.contains(a))) {
            return moved;
        }
        let (old, f) = (Aval::of(Dtype::BOOL, old.clone()), f.clone());
        let inside = Selector::mask(new, move |cx| f(cx, &cx.full(Lit::from(true), &old)?, Lit::from(false)));
        moved.and(&Support::masked_already(inside))
    }
    /// The support of a sum over these axes: where any summed element may differ from zero.
    pub fn any_along(&self, axes: &Dims, shape: &Dims) -> Support {
        if self.is_everywhere() {
            return Support::everywhere();
        }
        let (of, axes, full) = (self.clone(), axes.clone(), shape.clone());
        let kept: Dims = (0..shape.len()).filter(|k| !axes.contains(k)).map(|k| shape[k]).collect();
        Support::masked_already(Selector::mask(&kept, move |cx| {
            cx.reduce(Monoid::Or, &cx.stretch(&of.mask(cx, &full)?, &full)?, axes.clone())
        }))
    }
}

/// The supports of a primitive's operands: `None` for an operand that is not a tangent.
pub type Supports = [Option<Support>];
/// Its results, each with its support if it is a tangent.
pub type Within = Option<(Values, SmallVec<[Option<Support>; 1]>)>;

/// A result that is zero wherever any of its tangent operands is: functions of one tangent that keep zero.
pub fn within_each(y: Value, x: &[Value], s: &Supports) -> Within {
    let mut all = Support::everywhere();
    for (v, s) in x.iter().zip(s) {
        if let Some(s) = s {
            all = all.and(&stretched(v, s, y.shape()));
        }
    }
    Some((Values::from_iter([y]), SmallVec::from_iter([Some(all)])))
}
/// The same of products and quotients, where a zero does not stay one if the other operand is not finite.
pub fn within_product(y: Value, x: &[Value], s: &Supports) -> Within {
    within_each(y, x, s).map(|(y, s)| (y, s.iter().map(|s| s.as_ref().map(|s| s.cleaned(false))).collect()))
}
/// A support of an operand of a pointwise primitive, as one of its result's shape.
fn stretched(v: &Value, s: &Support, shape: &[usize]) -> Support {
    if s.is_everywhere() || v.rank() == 0 || v.shape() == shape {
        return s.clone();
    }
    let grows = |k: usize| v.shape()[k] == 1 && shape[k] != 1;
    s.map(&mut |l| Ok(l.squeezed(&grows))).unwrap_or_default()
}
/// A sum of tangents: their common support becomes that of the result, the rest is applied, and the
/// union is known. `f` computes the result from the operands.
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
        full.push(stretched(v, s, shape));
    }
    let (common, rest, union) = Support::apart(&full.iter().collect::<Vec<_>>(), shape);
    let mut terms = Values::new();
    for (v, r) in x.iter().zip(&rest) {
        let v = if r.is_everywhere() { v.clone() } else { cx.stretch(v, shape)? };
        terms.push(r.apply(cx, &v)?);
    }
    let y = f(&terms)?;
    Ok(Some((Values::from_iter([y]), SmallVec::from_iter([Some(common.and(&union.cleaned(true)))]))))
}
/// The support of a selection by `which` whose given cases are tangents: the other cases are zero.
pub fn within_cases(cx: &dyn Cx, which: &Value, terms: &[(usize, Support)], of: usize, shape: &Dims) -> Support {
    let each: Vec<Support> = terms.iter().map(|(k, s)| s.and(&Support::case_found(cx, which, *k, of))).collect();
    let (common, _, union) = Support::apart(&each.iter().collect::<Vec<_>>(), shape);
    common.and(&union)
}
