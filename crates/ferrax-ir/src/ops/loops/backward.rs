//! The transpose of a loop: ct_carry runs backwards through the transposed body; linear consts gain a carry that adds up; linear xs
//! become ys.
//!
//! Cotangents keep their supports through the body: selectors of ys' cotangents are consts or xs, those of xs' cotangents are consts,
//! xs, or ys besides, and a carry whose cotangent is masked in the body carries its mask.
use super::{Loop, Trip};
use crate::aval::Aval;
use crate::cx::{Arg, Cx, Tan, truth};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::mask::{cat, count, fixpoint, merge, nonzero, pick, spread};
use crate::op::Tans;
use crate::support::{Crossing, Leaf, Place, Selector, Support};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use std::ops::Range;
use std::sync::Arc;

/// Cotangents of ys, and the selectors of their supports as operands of the loop.
struct Stacked {
    values: Vec<Value>,
    /// Of an element of each.
    supports: Vec<Option<Support<Aval>>>,
    /// Each with whether it has a part for each iteration, on axis 0.
    selectors: Vec<(Value, bool)>,
}
impl Stacked {
    fn of(l: &Loop, cx: &dyn Cx, ct: &[Tan]) -> Res<Stacked> {
        let mut all = Stacked { values: vec![], supports: vec![], selectors: vec![] };
        for t in ct {
            let Some(t) = t else {
                all.supports.push(None);
                continue;
            };
            if !matches!(l.trip, Trip::Static(_)) {
                all.values.push(cx.settled(t)?);
                all.supports.push(Some(Support::everywhere()));
                continue;
            }
            let (v, s) = cx.bare(t);
            all.values.push(v);
            let element = s.map(&mut |leaf: &Leaf| {
                let axes: Dims = leaf.axes.iter().filter(|a| **a > 0).map(|a| a - 1).collect();
                let Some(k) = leaf.axes.iter().position(|a| *a == 0) else {
                    let which = leaf.which.value(cx)?;
                    let aval = which.aval();
                    all.selectors.push((which, false));
                    return Ok(Leaf { which: aval, axes });
                };
                let which = cx.move_axis(&leaf.which.value(cx)?, k, 0)?;
                let aval = which.aval().unbatched(0);
                all.selectors.push((which, true));
                Ok(Leaf { which: aval, axes })
            })?;
            all.supports.push(Some(element));
        }
        Ok(all)
    }
    fn part(&self, stacked: bool) -> Vec<Value> {
        self.selectors.iter().filter(|s| s.1 == stacked).map(|s| s.0.clone()).collect()
    }
}
/// A mask of a carry's cotangent as a support, in the body's derivative.
fn carried(a: &Aval, masked: bool) -> Support<Aval> {
    if masked {
        Support::of_mask(Aval { dtype: Dtype::BOOL, weak: false, ..a.clone() }, a.rank())
    } else {
        Support::everywhere()
    }
}
/// The location of a selector of the cotangent of xs, outside of the loop.
enum From {
    Operand(Value, bool),
    Result(usize),
}

pub(super) fn transpose(l: &Loop, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
    let [h, c, k, s] = l.groups();
    x[h.clone()].iter().try_for_each(|a| a.value().map(|_| ()))?;
    let lin_of = |r: &Range<usize>| x[r.clone()].iter().map(Arg::is_linear).collect::<Vec<_>>();
    let (c_lin, s_lin) = (lin_of(&c), lin_of(&s));
    let lin = cat(&[&c_lin, &vec![true; k.len()], &s_lin]); // a known initial carry is an instantiated zero
    let n_c = count(&c_lin);
    let (ct_k, ct_y) = ct.split_at(k.len());
    let ys = Stacked::of(l, cx, ct_y)?;
    let k_avals: Vec<Aval> = x[k.clone()].iter().map(Arg::aval).collect();
    let last: Vec<(Tan, Support)> = ct_k.iter().map(|t| t.as_ref().map(|t| cx.bare(t))).map(split_pair).collect();
    // which carries have a cotangent, then which of those a mask
    let start = cat(&[&nonzero(ct_k), &last.iter().map(|t| !t.1.is_everywhere()).collect::<Vec<_>>()]);
    let (state, back) = fixpoint(start, |state| {
        let (nz, masked) = state.split_at(k.len());
        let of_carry = |i: usize| nz[i].then(|| carried(&k_avals[i], masked[i]));
        let supports: Vec<_> = (0..k.len()).map(of_carry).chain(ys.supports.iter().cloned()).collect();
        let back = cx.recur().transpose_within(&l.body, &lin, &supports)?;
        let outs = &back.outs[n_c..n_c + k.len()];
        let masks = outs.iter().map(|s| s.as_ref().is_some_and(|s| !s.is_everywhere())).collect::<Vec<_>>();
        Ok((cat(&[&outs.iter().map(Option::is_some).collect::<Vec<_>>(), &masks]), back))
    })?;
    let (k_nz, k_masked) = state.split_at(k.len());
    let (c_nz, s_nz): (Vec<bool>, Vec<bool>) = (
        back.outs[..n_c].iter().map(Option::is_some).collect(),
        back.outs[n_c + k.len()..].iter().map(Option::is_some).collect(),
    );
    let known = |r: &Range<usize>| x[r.clone()].iter().filter_map(|a| a.known().cloned()).collect::<Vec<_>>();
    let (kc, ks) = (known(&c), known(&s));
    let c_avals: Vec<Aval> = x[c.clone()].iter().filter(|a| a.is_linear()).map(|a| a.aval()).collect();
    let acc: Vec<Value> = pick(&c_avals, &c_nz).iter().map(|a| cx.zeros(a)).collect::<Res<_>>()?;
    let (mut carry, mut masks) = (vec![], vec![]);
    for i in (0..k.len()).filter(|i| k_nz[*i]) {
        carry.push(cx.inst(&last[i].0, &k_avals[i])?);
        if k_masked[i] {
            // a missing cotangent is zero everywhere: its support is empty
            let (ct, support) = &last[i];
            let shape = &k_avals[i].shape;
            let mask = if ct.is_some() { support.mask(cx, shape)? } else { truth(false) };
            masks.push(cx.stretch(&mask, shape)?);
        }
    }
    let (const_selectors, xs_selectors) = (ys.part(false), ys.part(true));
    // body': known consts, selectors; accumulators, ct carry, masks; ct ys, known xs, selectors
    let parts = [&kc, &const_selectors, &acc, &carry, &masks, &ys.values, &ks, &xs_selectors];
    let mut ins: Vec<Aval> = vec![];
    for (i, v) in parts.iter().enumerate().flat_map(|(i, p)| p.iter().map(move |v| (i, v))) {
        ins.push(if i < 5 { v.aval() } else { l.element(&v.aval())? });
    }
    let sizes = parts.map(|p| p.len());
    let step = Step {
        back: &back,
        sizes,
        stacked: ys.selectors.iter().map(|s| s.1).collect(),
        k_nz,
        k_masked,
        n_c,
        k_avals: &k_avals,
        keeps: matches!(l.trip, Trip::Static(_)),
    };
    let (body, consts) = cx.recur().stage(&ins, &|cx, a| step.emit(cx, a))?;
    let n_s = count(&s_nz);
    let op = Loop {
        reverse: !l.reverse,
        n_consts: consts.len() + kc.len() + const_selectors.len(),
        n_carry: acc.len() + carry.len() + masks.len(),
        body,
        ..l.clone()
    };
    let operands = cat(&parts.map(|p| p.as_slice()));
    let out = cx.bind(&op.into(), &cat(&[&known(&h), &consts, &operands]))?;
    let (ct_c, rest) = out.split_at(acc.len());
    let (ct_k, rest) = rest.split_at(carry.len());
    let (masks, rest) = rest.split_at(masks.len());
    let (ct_s, selectors) = rest.split_at(n_s);
    // a mask by the same selectors in every step is a mask of the sum
    let mut summed = vec![];
    for (t, s) in ct_c.iter().zip(back.outs[..n_c].iter().flatten()) {
        let mut fixed = true;
        let outside = s.map(&mut |leaf: &Leaf<Place>| {
            let which = match step.found(leaf.which, &kc, &ks, &ys) {
                From::Operand(v, false) => v,
                _ => {
                    fixed = false;
                    truth(true)
                }
            };
            Ok(Leaf { which: Selector::Known(which), axes: leaf.axes.clone() })
        })?;
        summed.push(if fixed { cx.supported(t.clone(), outside.cleaned(true))? } else { t.clone() });
    }
    let ct_c = merge(&c_lin, spread(&c_nz, summed), vec![None; c.len()]);
    let mut masks = masks.iter();
    let mut firsts = ct_k.iter();
    let mut ct_k = vec![];
    for i in 0..k.len() {
        let t = if k_nz[i] { firsts.next().cloned() } else { None };
        let mask = if k_nz[i] && k_masked[i] { masks.next() } else { None };
        ct_k.push(match (t, mask) {
            (Some(t), Some(m)) => Some(cx.supported(t, Support::case(m, 1, 2))?),
            (t, _) => t,
        });
    }
    let mut ct_s = ct_s.iter();
    let mut cts = vec![];
    for s in &back.outs[n_c + k.len()..] {
        let (Some(s), Some(t)) = (s, if s.is_some() { ct_s.next() } else { None }) else {
            cts.push(None);
            continue;
        };
        if !matches!(l.trip, Trip::Static(_)) {
            cts.push(Some(t.clone()));
            continue;
        }
        let s = s.map(&mut |leaf: &Leaf<Place>| {
            let (which, stacked) = match step.found(leaf.which, &kc, &ks, &ys) {
                From::Operand(v, stacked) => (v, stacked),
                From::Result(j) => (selectors[j].clone(), true),
            };
            let own = leaf.axes.iter().map(|a| a + 1);
            Ok(Leaf { which: Selector::Known(which), axes: stacked.then_some(0).into_iter().chain(own).collect() })
        })?;
        cts.push(Some(cx.supported(t.clone(), s)?));
    }
    let ct_s = merge(&s_lin, cts, vec![None; s.len()]);
    Ok(cat(&[&vec![None; h.len()], &ct_c, &ct_k, &ct_s]).into())
}
fn split_pair(t: Option<(Value, Support)>) -> (Tan, Support) {
    match t {
        Some((v, s)) => (Some(v), s),
        None => (None, Support::everywhere()),
    }
}

/// One step backwards.
struct Step<'a> {
    back: &'a Arc<Crossing>,
    /// Of known consts, selectors, accumulators, carries, masks, ys, known xs, selectors.
    sizes: [usize; 8],
    stacked: Vec<bool>,
    k_nz: &'a [bool],
    k_masked: &'a [bool],
    n_c: usize,
    k_avals: &'a [Aval],
    /// Whether results of the steps are stacked as arrays, beside which supports can be.
    keeps: bool,
}
impl Step<'_> {
    /// The selectors of xs' cotangents that each step makes, or has as a carried mask: they become ys.
    fn shown(&self) -> Vec<Place> {
        let mut all = vec![];
        for s in self.back.outs[self.n_c + self.k_nz.len()..].iter().flatten() {
            let mut leaves = vec![];
            s.leaves(&mut leaves);
            for l in leaves {
                if self.is_made(l.which) && !all.contains(&l.which) {
                    all.push(l.which);
                }
            }
        }
        all
    }
    fn is_made(&self, p: Place) -> bool {
        match p {
            Place::Out(_) => true,
            Place::In(i) => {
                let [kc, _, _, carry, masks, ys, ks, _] = self.sizes;
                let first = kc + ks + carry + ys;
                (first..first + masks).contains(&i)
            }
        }
    }
    /// The location of a selector after the loop has run.
    fn found(&self, p: Place, kc: &[Value], ks: &[Value], ys: &Stacked) -> From {
        if let Some(at) = self.shown().iter().position(|q| *q == p) {
            return From::Result(at);
        }
        let (Place::In(i) | Place::Out(i)) = p;
        if self.is_made(p) {
            return From::Result(usize::MAX);
        }
        let selectors = kc.len() + ks.len() + self.sizes[3] + self.sizes[4] + self.sizes[5];
        match i {
            i if i < kc.len() => From::Operand(kc[i].clone(), false),
            i if i < kc.len() + ks.len() => From::Operand(ks[i - kc.len()].clone(), true),
            i => {
                let (v, stacked) = &ys.selectors[i - selectors];
                From::Operand(v.clone(), *stacked)
            }
        }
    }
    fn emit(&self, cx: &dyn Cx, a: &[Value]) -> Res<Values> {
        let mut rest = a;
        let take = |n: usize| {
            let (first, more) = rest.split_at(n);
            rest = more;
            first
        };
        let [kc, cs, acc, carry, masks, ys, ks, ss] = self.sizes.map(take);
        let (mut cs, mut ss) = (cs.iter(), ss.iter());
        let selectors: Vec<Value> =
            self.stacked.iter().filter_map(|s| if *s { ss.next() } else { cs.next() }).cloned().collect();
        let args = cat(&[kc, ks, carry, ys, masks, &selectors]);
        let (_, tangents, extra) = self.back.results(cx, &args, 0)?;
        let mut sums = acc.iter();
        let (mut out, mut new_masks, mut xs) = (vec![], vec![], vec![]);
        for (i, t) in tangents.iter().enumerate() {
            let k = i.wrapping_sub(self.n_c);
            match t {
                Some((v, s)) if i < self.n_c => {
                    let sum = cx.add_tan(sums.next().cloned(), Some(s.apply(cx, v)?))?;
                    out.extend(sum);
                }
                t if k < self.k_nz.len() && self.k_nz[k] => {
                    let a = &self.k_avals[k];
                    out.push(t.as_ref().map_or_else(|| cx.zeros(a), |t| Ok(t.0.clone()))?);
                    if self.k_masked[k] {
                        let mask = t.as_ref().map_or_else(|| Ok(truth(false)), |t| t.1.mask(cx, &a.shape))?;
                        new_masks.push(cx.stretch(&mask, &a.shape)?);
                    }
                }
                Some((v, s)) => xs.push(if self.keeps { v.clone() } else { s.apply(cx, v)? }),
                None => (),
            }
        }
        let shown = if self.keeps { self.shown() } else { vec![] };
        let at = |p: &Place| match p {
            Place::In(i) => args[*i].clone(),
            Place::Out(k) => extra[*k].clone(),
        };
        Ok(cat(&[&out, &new_masks, &xs, &shown.iter().map(at).collect::<Vec<_>>()]).into())
    }
}
