//! Loop fusion: two free loops over the same indices, where one reads what the other writes, become one loop.
//!
//! ```text
//!     loop n { store t[i] <- f(a[i - 1], a[i + 1]) }; loop n { store b[i + 1] <- load t[i] }    ->    loop n { store b[i + 1] <- f(a[i - 1], a[i + 1]) }
//! ```
//!
//! INVARIANT: if accesses of the two loops may conflict and one is a store, both access the same element in the same iteration.
use super::facts::Linear;
use super::{ArrayId, LoopKind, Nest, NestLoop, NestOp, NestTrip, NestValue, Stmt, loads};
use ferrax_kernel::Bin;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Fuses free loops with earlier ones, with so many statements between them at most. Returns whether there were any.
pub fn fuse(nest: &mut Nest, max_between: usize) -> bool {
    let mut body = std::mem::take(&mut nest.body);
    let fused = block(nest, &mut body, max_between);
    nest.body = body;
    fused
}
/// Removes stores to arrays without loads, except arrays that are read after the nest.
pub fn drop_dead_stores(nest: &mut Nest, is_seen: &dyn Fn(ArrayId) -> bool) {
    let mut loaded = FxHashSet::default();
    loads(nest, &nest.body, &mut loaded);
    for (a, b) in &nest.meeting {
        if loaded.contains(a) || is_seen(*a) {
            loaded.insert(*b);
        }
    }
    retain(&mut nest.body, &|array| loaded.contains(&array) || is_seen(array));
    super::simplify::prune(nest);
}
fn retain(body: &mut Vec<Stmt>, is_wanted: &dyn Fn(ArrayId) -> bool) {
    body.retain_mut(|s| match s {
        Stmt::Store { array, .. } => is_wanted(*array),
        Stmt::Loop(l) => {
            retain(&mut l.body, is_wanted);
            true
        }
        _ => true,
    });
}

fn block(nest: &mut Nest, body: &mut Vec<Stmt>, max_between: usize) -> bool {
    let mut fused = false;
    let mut out: Vec<Stmt> = vec![];
    for mut s in std::mem::take(body) {
        if let Stmt::Loop(l) = &mut s {
            let earlier = |s: &usize| !matches!(out[*s], Stmt::Let(_));
            let mut candidates = (0..out.len()).rev().filter(earlier).take(max_between + 1);
            let found = candidates.find_map(|before| {
                let Stmt::Loop(first) = &out[before] else { return None };
                Some((before, joined(nest, first, &out[before + 1..], l)?))
            });
            if let Some((before, both)) = found {
                // the first loop moves behind the statements between them
                out.remove(before);
                out.push(Stmt::Loop(Box::new(both)));
                fused = true;
                continue;
            }
            fused |= block(nest, &mut l.body, max_between);
        }
        out.push(s);
    }
    *body = out;
    fused
}

/// A loop or loops within each other, with nothing but numbers beside the innermost statements.
struct Perfect<'a> {
    slots: Vec<NestValue>,
    sizes: Vec<usize>,
    innermost: &'a [Stmt],
}
fn perfect<'a>(nest: &Nest, l: &'a NestLoop) -> Option<Perfect<'a>> {
    let (mut slots, mut sizes, mut l) = (vec![], vec![], l);
    loop {
        let (NestTrip::Static(n), LoopKind::Free, [counter]) = (l.trip, l.kind, &l.carries[..]) else { return None };
        slots.push(counter.slot);
        sizes.push(n);
        let mut inner = l.body.iter().filter_map(|s| if let Stmt::Loop(l) = s { Some(l) } else { None });
        let Some(next) = inner.next() else { return Some(Perfect { slots, sizes, innermost: &l.body }) };
        let is_plain = |s: &Stmt| match s {
            Stmt::Let(v) => !matches!(nest.def(*v).op, NestOp::Load(..) | NestOp::Call(..)),
            Stmt::Loop(_) => true,
            _ => false,
        };
        if inner.next().is_some() || !l.body.iter().all(is_plain) {
            return None;
        }
        l = next;
    }
}

/// An element that is loaded or stored: its index by the counters.
struct Access {
    array: ArrayId,
    at: Option<Linear>,
    is_store: bool,
}
fn accesses(nest: &Nest, p: &Perfect, forms: &mut FxHashMap<NestValue, Option<Linear>>) -> Option<Vec<Access>> {
    let mut all = vec![];
    for s in p.innermost {
        match s {
            Stmt::Let(v) => {
                let def = nest.def(*v);
                if let NestOp::Load(array, offset) = def.op {
                    let at = form(nest, def.args[0], forms).and_then(|f| f.plus(&Linear::constant(offset as i64), 1));
                    all.push(Access { array, at, is_store: false });
                }
            }
            Stmt::Store { array, index, offset, .. } => {
                let at = form(nest, *index, forms).and_then(|f| f.plus(&Linear::constant(*offset as i64), 1));
                all.push(Access { array: *array, at, is_store: true });
            }
            _ => return None,
        }
    }
    Some(all)
}
/// A value as a sum of multiples of others.
fn form(nest: &Nest, v: NestValue, known: &mut FxHashMap<NestValue, Option<Linear>>) -> Option<Linear> {
    if let Some(form) = known.get(&v) {
        return form.clone();
    }
    let def = *nest.def(v);
    let constant = |v: NestValue| i64::try_from(nest.known_integer(v)?).ok();
    let new = match def.op {
        NestOp::Const(_) => constant(v).map(Linear::constant),
        NestOp::Bin(Bin::Add) => {
            let (a, b) = (form(nest, def.args[0], known)?, form(nest, def.args[1], known)?);
            a.plus(&b, 1)
        }
        NestOp::Bin(Bin::Mul) => {
            let (a, b) = (def.args[0], def.args[1]);
            match (constant(a), constant(b)) {
                (_, Some(by)) => form(nest, a, known)?.times(by),
                (Some(by), None) => form(nest, b, known)?.times(by),
                _ => Some(Linear::of(v)),
            }
        }
        _ => Some(Linear::of(v)),
    };
    known.insert(v, new.clone());
    new
}
/// Whether different iterations have different indices.
fn is_injective(at: &Linear, slots: &[NestValue], sizes: &[usize]) -> bool {
    let mut strides: SmallVec<[(i64, i64); 4]> = SmallVec::new();
    for (slot, n) in slots.iter().zip(sizes).filter(|(_, n)| **n > 1) {
        match at.terms.iter().find(|t| t.0 == *slot) {
            Some((_, by)) => strides.push((by.abs(), *n as i64)),
            None => return false,
        }
    }
    strides.sort_unstable();
    let mut reach = 0i64;
    strides.iter().all(|(by, n)| {
        let fits = *by > reach;
        reach = reach.saturating_add(by.saturating_mul(n - 1));
        fits
    })
}

/// The two loops as one, if the second reads elements that the first writes, and no dependence
/// prevents it.
fn joined(nest: &mut Nest, first: &NestLoop, between: &[Stmt], second: &NestLoop) -> Option<NestLoop> {
    let (a, b) = (perfect(nest, first)?, perfect(nest, second)?);
    if a.sizes != b.sizes {
        return None;
    }
    let mut forms = FxHashMap::default();
    let earlier = accesses(nest, &a, &mut forms)?;
    // the second's counters are the first's
    forms.clear();
    for (mine, other) in b.slots.iter().zip(&a.slots) {
        forms.insert(*mine, Some(Linear::of(*other)));
    }
    let later = accesses(nest, &b, &mut forms)?;
    let meet = |x: ArrayId, y: ArrayId| x == y || nest.meeting.contains(&(x, y));
    let mut is_producer = false;
    for x in &earlier {
        for y in later.iter().filter(|y| (x.is_store || y.is_store) && meet(x.array, y.array)) {
            let (Some(p), Some(q)) = (&x.at, &y.at) else { return None };
            if x.array != y.array || p != q || !is_injective(p, &a.slots, &a.sizes) {
                return None;
            }
            is_producer |= x.is_store && !y.is_store;
        }
    }
    if !is_producer {
        return None;
    }
    // statements between the loops move before both: they must not access arrays that the first
    // loop stores, nor store to arrays that it loads
    let touched = |body: &[Stmt]| {
        let (mut loaded, mut stored) = (FxHashSet::default(), SmallVec::new());
        loads(nest, body, &mut loaded);
        super::stored(body, &mut stored);
        (loaded, stored)
    };
    let ((loaded, stored), (loaded_between, stored_between)) = (touched(&first.body), touched(between));
    let meets = |x: &ArrayId, y: &ArrayId| meet(*x, *y);
    if stored.iter().any(|x| loaded_between.iter().chain(&stored_between).any(|y| meets(x, y)))
        || loaded.iter().any(|x| stored_between.iter().any(|y| meets(x, y)))
    {
        return None;
    }
    let renamed: FxHashMap<NestValue, NestValue> = b.slots.iter().copied().zip(a.slots.iter().copied()).collect();
    let tail = b.innermost.to_vec();
    let (depth, mut inner) = (a.slots.len(), second);
    // numbers computed between the second's loops
    let mut numbers = vec![];
    for _ in 1..depth {
        let mut next = None;
        for s in &inner.body {
            match s {
                Stmt::Loop(l) => next = Some(&**l),
                s => numbers.push(s.clone()),
            }
        }
        inner = next?;
    }
    for def in &mut nest.defs {
        let n = def.op.operands();
        for arg in &mut def.args[..n] {
            if let Some(new) = renamed.get(arg) {
                *arg = *new;
            }
        }
    }
    let mut both = first.clone();
    let mut at = &mut both;
    for _ in 1..depth {
        at = at.body.iter_mut().find_map(|s| if let Stmt::Loop(l) = s { Some(&mut **l) } else { None })?;
    }
    at.body.extend(numbers);
    at.body.extend(tail.into_iter().map(|s| match s {
        Stmt::Store { array, index, offset, value, dtype, stride } => {
            let of = |v: NestValue| renamed.get(&v).copied().unwrap_or(v);
            Stmt::Store { array, index: of(index), offset, value: of(value), dtype, stride }
        }
        s => s,
    }));
    Some(both)
}
