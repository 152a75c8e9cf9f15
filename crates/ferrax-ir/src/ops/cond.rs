//! cond: `out = branches[clamp(index)](x)`; operands index (rank 0, i32), then x. Serves `cond` and `switch`.
use super::call::{check_ins, fronts, lanes};
use crate::aval::{Aval, same_avals};
use crate::cx::{Arg, Axis, Cx, Dim, Residual, Tan, int};
use crate::dtype::Dtype;
use crate::effects::Effects;
use crate::error::{Error, Res, type_err};
use crate::factors::{BodyTies, Ties};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, count, fixpoint, merge, nonzero, not, or, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::ops::argreduce::{ArgKind, ArgReduce};
use crate::ops::dynamic_slice::DynamicSlice;
use crate::ops::loops::Trip;
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::primitive;
use crate::program::{In, Program};
use crate::support::{Bared, Crossing, agreed};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::sync::Arc;

primitive! {
    pub struct Cond = "cond" {
        branches: Vec<Arc<Program>>,
    }
}

/// `p` takes its own captures first; the result takes everyone's (types `all[k]` for program k), in order, then the last `n_own`.
pub fn widen(p: &Program, mine: usize, all: &[Vec<Aval>], n_own: usize) -> Arc<Program> {
    let mut ins = vec![];
    for (j, consts) in all.iter().enumerate() {
        ins.extend(consts.iter().enumerate().map(|(i, a)| if j == mine { In::Old(i) } else { In::New(a.clone()) }));
    }
    ins.extend((p.n_ins() - n_own..p.n_ins()).map(In::Old));
    p.rewire(&ins, None)
}

/// The source of an operand of the unknown half: an operand of the whole op, or a residual.
#[derive(Clone, Copy, PartialEq)]
enum Residue {
    Operand(usize),
    Place(usize),
}
/// Shares places for the residuals of several branches, only one of which runs: for each branch the
/// places of its residuals, and the types of all places.
fn share(residuals: &[Vec<Aval>]) -> (Vec<Vec<usize>>, Vec<Aval>) {
    let mut places: Vec<Aval> = vec![];
    let of_branch = |avals: &Vec<Aval>| {
        let mut mine: Vec<usize> = vec![];
        for a in avals {
            let free = (0..places.len()).find(|p| places[*p] == *a && !mine.contains(p));
            mine.push(free.unwrap_or_else(|| {
                places.push(a.clone());
                places.len() - 1
            }));
        }
        mine
    };
    let each = residuals.iter().map(of_branch).collect();
    (each, places)
}

/// Whether a program has a loop whose length its operands decide.
fn may_not_end(p: &Program) -> bool {
    p.eqns().iter().any(|e| {
        matches!(&e.op, Op::Loop(l) if !matches!(l.trip, Trip::Static(_)))
            || e.op.bodies().iter().any(|b| may_not_end(b))
    })
}
/// A batched branch for the lanes that chose it: the others repeat the first of those, and if no lane chose it, it does not run.
fn for_these_lanes(cx: &dyn Cx, q: Arc<Program>, lanes: &Value, b: &[bool], args: &[Value]) -> Res<Values> {
    let ones = cx.convert(lanes, Dtype::I32)?;
    let first = ArgReduce { kind: ArgKind::Max, axes: Dims::new(&[0]), index_dtype: Dtype::I32 };
    let first = cx.bind1(first, std::slice::from_ref(&ones))?;
    let somebody = cx.reduce(Monoid::Max, &ones, Dims::new(&[0]))?;
    let usual = |x: &Value| {
        if x.tape() > 0 {
            return Ok(x.clone());
        }
        let mut sizes: Vec<usize> = x.shape().to_vec();
        sizes[0] = 1;
        let mut at = vec![x.clone(), first.clone()];
        at.resize(x.rank() + 1, int(Dtype::I32, 0));
        let row = cx.bind1(DynamicSlice { slice_sizes: Dims::new(&sizes) }, &at)?;
        cx.select_lanes(lanes, &cx.stretch(&row, &Dims::new(x.shape()))?, x)
    };
    let args: Vec<Value> =
        args.iter().zip(b).map(|(x, batched)| if *batched { usual(x) } else { Ok(x.clone()) }).collect::<Res<_>>()?;
    let (avals, outs): (Vec<Aval>, Vec<Aval>) = (args.iter().map(Value::aval).collect(), q.out_avals());
    let (nothing, _) = cx.recur().stage(&avals, &|cx, _| outs.iter().map(|a| cx.zeros(a)).collect())?;
    let mut x = vec![somebody];
    x.extend(args);
    cx.bind_body(&Cond { branches: vec![nothing, q] }.into(), &x)
}
fn avals(x: &[Value]) -> Vec<Aval> {
    x.iter().map(Value::aval).collect()
}
impl Cond {
    fn each<T>(&self, f: impl FnMut(&Arc<Program>) -> Res<T>) -> Res<Vec<T>> {
        self.branches.iter().map(f).collect()
    }
    fn n_out(&self) -> usize {
        self.branches.first().map_or(0, |b| b.n_outs())
    }
    /// Transforms each branch with the union of the outputs that any branch needs.
    fn agree(
        &self,
        n: usize,
        mut f: impl FnMut(&Arc<Program>, &[bool]) -> Res<(Arc<Program>, Vec<bool>)>,
    ) -> Res<(Vec<bool>, Vec<Arc<Program>>)> {
        fixpoint(vec![false; n], |m| {
            let each = self.each(|b| f(b, m))?;
            let union = each.iter().fold(m.to_vec(), |u, e| or(&u, &e.1));
            Ok((union, each.into_iter().map(|e| e.0).collect()))
        })
    }
}
impl Rules for Cond {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (Some(first), Some((index, x))) = (self.branches.first(), x.split_first()) else {
            return type_err("cond takes an index and at least one branch");
        };
        if index.dtype != Dtype::I32 || index.rank() != 0 {
            return type_err(format!("cond called with index of type {} instead of int32.", index.long()));
        }
        let mut out = first.out_avals();
        for b in &self.branches {
            check_ins("cond", x, b)?;
            let other = b.out_avals();
            if !same_avals(&out, &other) {
                return type_err(format!(
                    "cond branches must have equal output types but they differ: {out:?} and {other:?}"
                ));
            }
            out.iter_mut().zip(&other).for_each(|(a, b)| a.weak &= b.weak);
        }
        // where different branches may run, the results may differ
        out.iter_mut().for_each(|a| a.vary = a.vary | index.vary);
        Ok(out.into())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let (nz, m) = (nonzero(&dx[1..]), self.n_out());
        if cx.keeps_supports() {
            let bare = Bared::of(cx, &dx[1..])?;
            let made = self.each(|b| cx.recur().jvp_within(b, &bare.supports))?;
            let args = cat(&[&x[1..], &bare.values, &bare.selectors]);
            let outs = self.branches[0].out_avals();
            let (branches, outs) = agreed(cx, &made, &avals(&args), &outs, m)?;
            let y = cx.bind_body(&Cond { branches: branches.clone() }.into(), &cat(&[&x[..1], &args]))?;
            let dy = Crossing { program: branches[0].clone(), outs }.tangents(cx, &args, &y[m..])?;
            return Ok((y[..m].into(), dy.into()));
        }
        let (out_nz, branches) = self.agree(m, |b, inst| cx.recur().jvp(b, &nz, inst, &[nz.len()], &[m]))?;
        let args: Values = x.iter().cloned().chain(dx[1..].iter().flatten().cloned()).collect();
        let mut y = cx.bind_body(&Cond { branches }.into(), &args)?.into_vec();
        let dy = spread(&out_nz, y.split_off(m));
        Ok((y.into(), dy.into()))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let index = x[0].value()?;
        let lin: Vec<bool> = x[1..].iter().map(Arg::is_linear).collect();
        let bare = Bared::of(cx, ct)?;
        let made = self.each(|b| cx.recur().transpose_within(b, &lin, &bare.supports))?;
        let known: Vec<Value> = x[1..].iter().filter_map(|a| a.known().cloned()).collect();
        let args = cat(&[&known, &bare.values, &bare.selectors]);
        let linear: Vec<Aval> = x[1..].iter().filter(|a| a.is_linear()).map(Arg::aval).collect();
        let (branches, outs) = agreed(cx, &made, &avals(&args), &linear, 0)?;
        let operands = cat(&[std::slice::from_ref(index), &args]);
        let y = cx.bind_body(&Cond { branches: branches.clone() }.into(), &operands)?;
        let cts = Crossing { program: branches[0].clone(), outs }.tangents(cx, &args, &y)?;
        let mut out: Tans = smallvec![None];
        out.extend(merge(&lin, cts, vec![None; lin.len()]));
        Ok(out)
    }
    /// A batched index: run every branch on every lane, select; but loops that may not end run for the lanes that chose them. Otherwise batch the branches.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let b = lanes(&d[1..]);
        let args = fronts(cx, &x[1..], &d[1..])?;
        if d[0].is_none() {
            let (out, branches) = self.agree(self.n_out(), |p, force| cx.recur().batch(p, ax, &b, force))?;
            let y = cx.bind_body(&Cond { branches }.into(), &cat(&[&x[..1], &args]))?;
            return Ok((y, super::call::front_dims(&out)));
        }
        if BodyRules::effects(self).external {
            return Err(Error::not_implemented("IO effect not supported in vmap-of-cond."));
        }
        let all = vec![true; self.n_out()];
        let last = self.branches.len() as i64 - 1;
        let mut chosen = 0i64..;
        let run = |p: &Arc<Program>| {
            let q = cx.recur().batch(p, ax, &b, &all)?.0;
            let k = chosen.next().unwrap_or_default();
            if !may_not_end(p) || p.eqns().iter().any(|e| ax.name.is_some_and(|n| e.op.uses_axis(n))) || last == 0 {
                return cx.inline(&q, &args);
            }
            let k_is = if k == 0 {
                Pw::Le
            } else if k == last {
                Pw::Ge
            } else {
                Pw::Eq
            };
            let lanes = cx.pw2(k_is, &cx.to_front(&x[0], d[0])?, &int(Dtype::I32, k))?;
            for_these_lanes(cx, q, &lanes, &b, &args)
        };
        let mut results = self.each(run)?.into_iter();
        let mut out = results.next().unwrap_or_default();
        for (k, other) in (1i64..).zip(results) {
            let p = cx.pw2(Pw::Ge, &x[0], &int(Dtype::I32, k))?;
            out = out.iter().zip(&other).map(|(f, t)| cx.select_lanes(&p, f, t)).collect::<Res<_>>()?;
        }
        let n = out.len();
        Ok((out, smallvec![Some(0); n]))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let branches: Vec<&Program> = self.branches.iter().map(|p| &**p).collect();
        b.switch(x[0], &branches, &x[1..], out)
    }
}
impl BodyRules for Cond {
    /// Branches share the places of their residuals, by type; places that the executed branch does
    /// not use are zeros.
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        if unk[0] {
            return rec.record(&self.clone().into(), x);
        }
        let ops_unk = &unk[1..];
        let fwd = vec![true; ops_unk.len()];
        let (out_unk, sps) = fixpoint(vec![false; self.n_out()], |force| {
            let sps = self.each(|b| cx.recur().split(b, ops_unk, force, &fwd))?;
            Ok((sps.iter().fold(force.to_vec(), |u, s| or(&u, &s.out_unk)), sps))
        })?;
        let n_known = count(&not(&out_unk));
        let new_avals: Vec<Vec<Aval>> = sps.iter().map(|s| s.known.out_avals()[n_known..].to_vec()).collect();
        let (places, shared) = share(&new_avals);
        let known_avals = pick(self.branches[0].in_avals(), &not(ops_unk));
        // known branch k: its known outputs, then its residuals where they belong, zeros elsewhere
        let known = (0..sps.len()).map(|k| {
            let f = |cx: &dyn Cx, a: &[Value]| {
                let mut out = cx.inline(&sps[k].known, a)?.into_vec();
                let mine = out.split_off(n_known);
                let mut out: Values = out.into();
                for (place, aval) in shared.iter().enumerate() {
                    out.push(match places[k].iter().position(|p| *p == place) {
                        Some(i) => mine[i].clone(),
                        None => cx.zeros(aval)?,
                    });
                }
                Ok(out)
            };
            cx.recur().stage(&known_avals, &f)
        });
        let known: Vec<(Arc<Program>, Vec<Value>)> = known.collect::<Res<_>>()?;
        let consts: Vec<Vec<Aval>> = known.iter().map(|k| k.1.iter().map(Value::aval).collect()).collect();
        let captured: Vec<Value> = known.iter().flat_map(|k| k.1.clone()).collect();
        let branches = known.iter().enumerate().map(|(k, p)| widen(&p.0, k, &consts, known_avals.len())).collect();
        let known = Cond { branches };
        let known_x = cat(&[&x[..1], &captured, &pick(&x[1..], &not(ops_unk))]);
        let idle = known.n_out() == 0 && !BodyRules::effects(&known).io;
        let mut out = if idle { vec![] } else { cx.bind(&known.into(), &known_x)?.into_vec() };
        let new = out.split_off(n_known);
        // operands of the unknown cond: the operands and residuals that any branch needs, each
        // once, then the unknown operands
        let mut needed: Vec<Residue> = vec![];
        let mut mine: Vec<Vec<Option<usize>>> = vec![];
        for (s, places) in sps.iter().zip(&places) {
            let mut places = places.iter();
            let mut own: Vec<Option<usize>> = vec![None; needed.len()];
            for (k, r) in s.res.iter().enumerate() {
                let source = match r {
                    Residual::In(i) => Residue::Operand(*i),
                    Residual::New => Residue::Place(places.next().copied().unwrap_or_default()),
                };
                let free = |at: &usize| needed[*at] == source && own[*at].is_none();
                let at = (0..needed.len()).find(free).unwrap_or_else(|| {
                    needed.push(source);
                    own.push(None);
                    needed.len() - 1
                });
                own[at] = Some(k);
            }
            mine.push(own);
        }
        let slots: Vec<Value> = needed
            .iter()
            .map(|r| match r {
                Residue::Operand(i) => x[1 + i].clone(),
                Residue::Place(p) => new[*p].clone(),
            })
            .collect();
        let slot_avals: Vec<Aval> = slots.iter().map(Value::aval).collect();
        let unk_avals = pick(self.branches[0].in_avals(), ops_unk);
        let branches = sps.iter().zip(&mine).map(|(s, mine)| {
            let at = |k: usize| mine.get(k).copied().flatten();
            let mut ins: Vec<In> =
                slot_avals.iter().enumerate().map(|(k, a)| at(k).map_or_else(|| In::New(a.clone()), In::Old)).collect();
            ins.extend((0..unk_avals.len()).map(|k| In::Old(s.res.len() + k)));
            s.unknown.rewire(&ins, None)
        });
        let unknown = Cond { branches: branches.collect() };
        let y = rec.record_body(&unknown.into(), &cat(&[&x[..1], &slots, &pick(&x[1..], ops_unk)]))?;
        Ok(merge(&out_unk, y, out).into())
    }
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        let kept = self.branches.iter().map(|b| b.dce(used).1).reduce(|a, b| or(&a, &b))?;
        let ins: Vec<In> = (0..kept.len()).filter(|i| kept[*i]).map(In::Old).collect();
        let outs: Vec<usize> = (0..used.len()).filter(|i| used[*i]).collect();
        let branches = self.branches.iter().map(|b| b.rewire(&ins, Some(&outs))).collect();
        Some((Cond { branches }.into(), cat(&[&[true], &kept]), used.to_vec()))
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        if self.branches.iter().all(|b| b.held().is_empty()) {
            return None;
        }
        let open: Vec<_> = self.branches.iter().map(|b| b.release()).collect();
        let consts: Vec<Vec<Aval>> = open.iter().map(|b| b.1.iter().map(Value::aval).collect()).collect();
        let branches = open.iter().enumerate().map(|(k, b)| widen(&b.0, k, &consts, x.len() - 1)).collect();
        let held = open.iter().flat_map(|b| b.1.clone());
        Some((Cond { branches }.into(), x[..1].iter().cloned().chain(held).chain(x[1..].iter().cloned()).collect()))
    }
    fn effects(&self) -> Effects {
        let mut all = Effects::default();
        self.branches.iter().for_each(|b| all.join(b.effects()));
        all
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        self.branches.iter().collect()
    }
    fn ties(&self, x: &[Aval]) -> Option<Ties> {
        Some(Ties { bodies: self.branches.iter().map(|b| BodyTies::same(1..x.len(), b.n_outs())).collect() })
    }
    fn with_bodies(&self, branches: Vec<Arc<Program>>) -> Option<Op> {
        Some(Cond { branches }.into())
    }
}
