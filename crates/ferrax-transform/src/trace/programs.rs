//! Transforms of programs: each runs the program under the trace that transforms values, with Stage beneath, so that each transform has one
//! implementation. Results are stored in the program they come from, and freed with it.
use super::Trace;
use crate::backward::backward;
use ferrax_ir::cut::Lenient;
use ferrax_ir::cx::{Axis, AxisKind, Body, Cx, Fun, KnownSplit, Lanes, Masked, Put, Recur, Residual, Tan, with_axis};
use ferrax_ir::effects::Name;
use ferrax_ir::mask::{not, pick};
use ferrax_ir::ops::reduce::Monoid;
use ferrax_ir::program::MemoKey;
use ferrax_ir::support::{Crossing, Leaf, Place, Selector, Support};
use ferrax_ir::vary::Vary;
use ferrax_ir::{Aval, Op, Program, Res, Value};
use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct Transforms;

/// A result of a transform that a program may cache.
trait Memorable: Clone + Send + Sync + 'static {
    fn programs(&self) -> [&Arc<Program>; 2];
}
impl Memorable for Masked {
    fn programs(&self) -> [&Arc<Program>; 2] {
        [&self.0, &self.0]
    }
}
impl Memorable for Arc<Crossing> {
    fn programs(&self) -> [&Arc<Program>; 2] {
        [&self.program, &self.program]
    }
}
impl Memorable for Arc<KnownSplit> {
    fn programs(&self) -> [&Arc<Program>; 2] {
        [&self.known, &self.unknown]
    }
}
/// Not remembered: a program that holds tracers (they end with their trace), and `p` itself (it would keep itself alive).
fn memo<T: Memorable>(
    what: &'static str,
    p: &Arc<Program>,
    size: usize,
    name: Option<&Name>,
    masks: &[&[bool]],
    groups: &[usize],
    f: impl FnOnce() -> Res<T>,
) -> Res<T> {
    let key: MemoKey = (what, size, name.cloned(), masks.iter().map(|m| m.to_vec()).collect(), groups.to_vec());
    let table = || p.memo().lock().unwrap_or_else(|e| e.into_inner());
    if let Some(hit) = table().get(&key).and_then(|v| v.downcast_ref::<T>()).cloned() {
        return Ok(hit);
    }
    let typed = p.avals().iter().any(|a| !a.cut.is_none()).then(Lenient::enter);
    let out = f()?;
    drop(typed);
    let keep = |q: &Arc<Program>| !Arc::ptr_eq(q, p) && !q.held().iter().any(Value::is_tracer);
    if p.held().is_empty() && out.programs().into_iter().all(keep) {
        let boxed: Arc<dyn Any + Send + Sync> = Arc::new(out.clone());
        table().insert(key, boxed);
    }
    Ok(out)
}

/// The program of `outs`. It holds the captures of a user's rule until the op that it becomes a
/// body of takes them as operands.
fn closed(s: &Trace, outs: &[Value]) -> Res<Arc<Program>> {
    let (p, consts) = s.close(outs)?;
    for v in &consts {
        v.check_alive()?;
    }
    Ok(Arc::new(if consts.is_empty() { p.open() } else { p.hold(consts) }))
}

/// [`backward`] under a trace that keeps supports beside cotangents, and applies them at the end.
pub fn transposed(
    cx: &dyn Cx,
    p: &Program,
    known: &[Option<Value>],
    cts: Vec<Tan>,
    wanted: impl Fn(usize) -> bool,
    place: impl Fn(u32) -> u32,
) -> Res<Vec<Tan>> {
    let s = Trace::support(cx.handle(), false, "jvp");
    let cts = backward(&*s, p, known, cts, wanted, place)?;
    cts.iter().map(|t| t.as_ref().map(|t| s.settled(t)).transpose()).collect()
}
/// A part of a memo's key: the shapes of supports, and the types of their selectors.
fn support_key(all: &[Option<Support<Aval>>]) -> Vec<usize> {
    let (mut key, mut leaves) = (vec![], vec![]);
    for s in all.iter().flatten() {
        s.shape_key(&mut key);
        s.leaves(&mut leaves);
    }
    for l in leaves {
        let mut h = DefaultHasher::new();
        l.which.hash(&mut h);
        key.push(h.finish() as usize);
    }
    key
}
/// Supports whose selectors are new inputs of the program under construction.
fn new_supports(s: &Trace, all: &[Option<Support<Aval>>], ins: &mut Vec<Value>) -> Res<Vec<Option<Support>>> {
    let mut leaf = |l: &Leaf<Aval>| {
        let which = s.new_in(l.which.clone());
        ins.push(which.clone());
        Ok(Leaf { which: Selector::Known(which), axes: l.axes.clone() })
    };
    all.iter().map(|s| s.as_ref().map(|s| s.map(&mut leaf)).transpose()).collect()
}
/// The program of `y` and of tangents, whose supports are recorded and not applied.
fn crossing(s: &Trace, w: &Trace, ins: &[Value], y: Vec<Value>, t: &[Tan]) -> Res<Arc<Crossing>> {
    let (mut flat, mut selectors, mut outs) = (y, Vec::<Value>::new(), vec![]);
    for t in t {
        let Some(t) = t else {
            outs.push(None);
            continue;
        };
        let (v, support) = w.bare(t);
        flat.push(v);
        let placed = support.map(&mut |l: &Leaf| {
            let v = l.which.value(s)?;
            let which = match ins.iter().position(|i| i.is_same(&v)) {
                Some(i) => Place::In(i),
                None => Place::Out(selectors.iter().position(|s| s.is_same(&v)).unwrap_or_else(|| {
                    selectors.push(v.clone());
                    selectors.len() - 1
                })),
            };
            Ok(Leaf { which, axes: l.axes.clone() })
        })?;
        outs.push(Some(placed));
    }
    flat.extend(selectors);
    Ok(Arc::new(Crossing { program: closed(s, &flat)?, outs }))
}

/// Replaces residuals that are broadcast masks by their operands, which the program broadcasts
/// again, so that it sees along which axes they extend.
fn unrepeated(cx: &dyn Cx, p: Program, residuals: Vec<Value>) -> Res<(Program, Vec<Value>)> {
    let source = |v: &Value| {
        let (op, args) = cx.made_by(v).filter(|(op, _)| v.dtype().is_bool() && op.rules().repeats().is_some())?;
        args.first().filter(|a| a.is_tracer()).map(|a| (op, a.clone()))
    };
    let sources: Vec<Option<(Op, Value)>> = residuals.iter().map(source).collect();
    if sources.iter().all(Option::is_none) {
        return Ok((p, residuals));
    }
    let kept: Vec<Value> =
        residuals.into_iter().zip(&sources).map(|(v, s)| s.as_ref().map_or(v, |s| s.1.clone())).collect();
    let s = Trace::stage();
    let mut x: Vec<Value> = kept.iter().map(|v| s.new_in(v.aval())).collect();
    x.extend(p.in_avals()[kept.len()..].iter().map(|a| s.new_in(a.clone())));
    let sx: &dyn Cx = &*s;
    for (v, source) in x.iter_mut().zip(&sources) {
        if let Some((op, _)) = source {
            *v = sx.bind1(op.clone(), std::slice::from_ref(v))?;
        }
    }
    let outs = sx.inline(&p, &x)?;
    let (q, consts) = s.close(&outs)?;
    Ok((if consts.is_empty() { q.open() } else { q.hold(consts) }, kept))
}

impl Recur for Transforms {
    fn jvp_within(&self, p: &Arc<Program>, dx: &[Option<Support<Aval>>]) -> Res<Arc<Crossing>> {
        let nz: Vec<bool> = dx.iter().map(Option::is_some).collect();
        memo("jvp within", p, 0, None, &[&nz], &support_key(dx), || {
            let s = Trace::stage();
            let w = Trace::support(s.clone(), false, "jit");
            let j = Trace::jvp(w.clone(), "jvp");
            let primal: Vec<Value> = p.in_avals().iter().map(|a| s.new_in(a.clone())).collect();
            let of_nz = |(a, nz): (&Aval, &bool)| nz.then(|| s.new_in(a.clone()));
            let tangents: Vec<Tan> = p.in_avals().iter().zip(&nz).map(of_nz).collect();
            let mut ins: Vec<Value> = primal.iter().chain(tangents.iter().flatten()).cloned().collect();
            let supports = new_supports(&s, dx, &mut ins)?;
            let mut x = vec![];
            for ((v, t), support) in primal.iter().zip(tangents).zip(supports) {
                let t = t.zip(support).map(|(t, support)| w.supported(t, support)).transpose()?;
                x.push(j.dual(v.clone(), t));
            }
            let cx: &dyn Cx = &*j;
            let (y, dy): (Vec<Value>, Vec<Tan>) = cx.inline(p, &x)?.iter().map(|v| j.undual(v)).unzip();
            crossing(&s, &w, &ins, y, &dy)
        })
    }
    fn transpose_within(&self, p: &Arc<Program>, lin: &[bool], ct: &[Option<Support<Aval>>]) -> Res<Arc<Crossing>> {
        let nz: Vec<bool> = ct.iter().map(Option::is_some).collect();
        memo("transpose within", p, 0, None, &[lin, &nz], &support_key(ct), || {
            let s = Trace::stage();
            let w = Trace::support(s.clone(), false, "jit");
            let known: Vec<Option<Value>> =
                p.in_avals().iter().zip(lin).map(|(a, l)| (!l).then(|| s.new_in(a.clone()))).collect();
            let cts: Vec<Tan> =
                p.out_avals().iter().zip(&nz).map(|(a, nz)| nz.then(|| s.new_in(a.cotangent()))).collect();
            let mut ins: Vec<Value> = known.iter().flatten().chain(cts.iter().flatten()).cloned().collect();
            let supports = new_supports(&s, ct, &mut ins)?;
            let within = |(t, s): (Tan, Option<Support>)| t.zip(s).map(|(t, s)| w.supported(t, s)).transpose();
            let cts = cts.into_iter().zip(supports).map(within).collect::<Res<_>>()?;
            let out = backward(&*w, p, &known, cts, |_| true, |line| line)?;
            crossing(&s, &w, &ins, vec![], &pick(&out, lin))
        })
    }

    fn jvp(&self, p: &Arc<Program>, nz: &[bool], inst: &[bool], gi: &[usize], go: &[usize]) -> Res<Masked> {
        memo("jvp", p, 0, None, &[nz, inst], &[gi, go].concat(), || {
            let s = Trace::stage();
            let w = Trace::support(s.clone(), false, "jit");
            let j = Trace::jvp(w.clone(), "jvp");
            let mut ins: Vec<Value> = vec![];
            let mut at = 0;
            for g in gi {
                let avals = &p.in_avals()[at..at + g];
                ins.extend(avals.iter().map(|a| s.new_in(a.clone())));
                for i in (at..at + g).filter(|i| nz[*i]) {
                    let t = s.new_in(p.in_avals()[i].clone());
                    ins[i] = j.dual(ins[i].clone(), Some(t));
                }
                at += g;
            }
            let cx: &dyn Cx = &*j;
            let outs: Vec<_> = cx.inline(p, &ins)?.iter().map(|v| j.undual(v)).collect();
            let sx: &dyn Cx = &*s;
            let (mut flat, mut out_nz, mut at) = (vec![], vec![], 0);
            for g in go {
                let group = &outs[at..at + g];
                flat.extend(group.iter().map(|o| o.0.clone()));
                for (k, (y, dy)) in group.iter().enumerate() {
                    let on = dy.is_some() || inst[at + k];
                    out_nz.push(on);
                    if on {
                        let dy = dy.as_ref().map(|t| w.settled(t)).transpose()?;
                        flat.push(sx.inst(&dy, &y.aval())?);
                    }
                }
                at += g;
            }
            Ok((closed(&s, &flat)?, out_nz))
        })
    }

    fn split(&self, p: &Arc<Program>, unk: &[bool], force: &[bool], fwd: &[bool]) -> Res<Arc<KnownSplit>> {
        memo("split", p, 0, None, &[unk, force, fwd], &[], || {
            let s = Trace::stage();
            let r = Trace::record(s.clone());
            let ins: Vec<Value> = p
                .in_avals()
                .iter()
                .zip(unk)
                .map(|(a, u)| if *u { r.new_in(a.clone()) } else { s.new_in(a.clone()) })
                .collect();
            let cx: &dyn Cx = &*r;
            let outs = cx.inline(p, &ins)?;
            let out_unk: Vec<bool> = outs.iter().zip(force).map(|(v, f)| *f || r.owns(v)).collect();
            let (unknown, residuals) = r.close(&pick(&outs, &out_unk))?;
            let (unknown, residuals) = unrepeated(&*s, unknown.open(), residuals)?;
            let mut known = pick(&outs, &not(&out_unk));
            let mut res = vec![];
            for v in residuals {
                match (0..ins.len()).find(|&i| fwd[i] && !unk[i] && ins[i].is_same(&v)) {
                    Some(i) => res.push(Residual::In(i)),
                    None => {
                        res.push(Residual::New);
                        known.push(v);
                    }
                }
            }
            let unknown = Arc::new(unknown);
            Ok(Arc::new(KnownSplit { known: closed(&s, &known)?, unknown, out_unk, res }))
        })
    }

    fn transpose(&self, p: &Arc<Program>, lin: &[bool], ct_nz: &[bool], inst: &[bool]) -> Res<Masked> {
        memo("transpose", p, 0, None, &[lin, ct_nz, inst], &[], || {
            let s = Trace::stage();
            let known: Vec<Option<Value>> =
                p.in_avals().iter().zip(lin).map(|(a, l)| (!l).then(|| s.new_in(a.clone()))).collect();
            let cts: Vec<_> =
                p.out_avals().iter().zip(ct_nz).map(|(a, nz)| nz.then(|| s.new_in(a.cotangent()))).collect();
            let cx: &dyn Cx = &*s;
            let out = transposed(cx, p, &known, cts, |_| true, |line| line)?;
            let lin_avals = pick(p.in_avals(), lin);
            let out: Vec<_> = pick(&out, lin);
            let nz: Vec<bool> = out.iter().zip(inst).map(|(ct, i)| *i || ct.is_some()).collect();
            let flat: Vec<Value> =
                (0..out.len()).filter(|i| nz[*i]).map(|i| cx.inst(&out[i], &lin_avals[i])).collect::<Res<_>>()?;
            Ok((closed(&s, &flat)?, nz))
        })
    }

    fn batch(&self, p: &Arc<Program>, ax: Axis, b: &[bool], force: &[bool]) -> Res<Masked> {
        let n = ax.n;
        let what = match ax.kind {
            AxisKind::Lanes | AxisKind::CutsLanes => "batch",
            AxisKind::Devices => "batch over devices",
            AxisKind::Manual => "batch over parts",
        };
        let make = || {
            let s = Trace::stage();
            let t = Trace::batch(s.clone(), n, ax.name.cloned(), ax.kind);
            if !ax.spmd().is_empty() {
                let _ = t.tag.spmd.set(ax.spmd().to_vec());
            }
            if !ax.cut().is_empty() {
                let _ = t.tag.lanes.set(ax.cut());
            }
            // over the removed axis batched values vary, and no others
            let gone = ax.name.filter(|_| ax.kind.is_manual()).map_or(Vary::NONE, Vary::over);
            let lane = |(a, b): (&Aval, &bool)| {
                let a = &a.varying(a.vary.without(gone));
                if *b { t.lanes(s.new_in(a.batched_cut(n, 0, ax.cut())), Some(0)) } else { s.new_in(a.clone()) }
            };
            let ins: Vec<Value> = p.in_avals().iter().zip(b).map(lane).collect();
            let cx: &dyn Cx = &*t;
            let outs = with_axis(ax.name, n, ax.kind, || cx.inline(p, &ins))?;
            let outs: Vec<_> = outs.iter().map(|v| t.unlanes(v)).collect();
            let out_b: Vec<bool> = outs.iter().zip(force).map(|((_, d), f)| *f || d.is_some()).collect();
            let sx: &dyn Cx = &*s;
            let flat: Vec<Value> = outs
                .iter()
                .zip(&out_b)
                .map(|((v, d), b)| if *b { sx.batch_at(v, *d, n, 0) } else { Ok(v.clone()) })
                .collect::<Res<_>>()?;
            Ok((closed(&s, &flat)?, out_b))
        };
        if ax.spmd().is_empty() && ax.cut().is_empty() {
            memo(what, p, n, ax.name, &[b, force], &[], make)
        } else {
            make()
        }
    }

    fn stage(&self, ins: &[Aval], f: Body) -> Res<(Arc<Program>, Vec<Value>)> {
        let s = Trace::stage();
        let x: Vec<Value> = ins.iter().map(|a| s.new_in(a.clone())).collect();
        let outs = s.run(|| f(&*s, &x))?;
        let (p, consts) = s.close(&outs)?;
        Ok((Arc::new(p.open()), consts))
    }

    fn batch_fun(&self, f: &Fun, ax: Axis, lanes: Lanes) -> Fun {
        let (f, tag, n, name, kind) = (f.clone(), ax.tag.clone(), ax.n, ax.name.cloned(), ax.kind);
        let shown = f.name().to_string();
        Fun::user_tans(&shown, move |x| {
            let parent = ferrax_ir::current();
            let was_alive = tag.alive.swap(true, Ordering::Relaxed); // the vmap may be over: a bwd runs after it
            let t = Trace::batch_again(parent.clone(), n, name.clone(), tag.clone(), kind);
            let lane = |(i, v): (usize, &Tan)| {
                let dim = (lanes.of_operand)(i, x.len()).then_some(0);
                v.as_ref().map(|v| t.lanes(v.clone(), dim))
            };
            let x: Vec<Tan> = x.iter().enumerate().map(lane).collect();
            let outs = with_axis(name.as_ref(), n, kind, || f.call_tans(&*t, &x));
            tag.alive.store(was_alive, Ordering::Relaxed);
            let outs = outs?;
            let found: Vec<bool> = outs.iter().map(|v| v.as_ref().is_some_and(|v| t.owns(v))).collect();
            let puts = (lanes.of_results)(&outs, &found)?;
            let out = outs.iter().zip(puts).map(|(v, put)| {
                let Some(v) = v else { return Ok(None) };
                let (v, at) = t.unlanes(v);
                let front = |v: &Value| parent.batch_at(v, at, n, 0);
                Ok(Some(match put {
                    Put::Alone => v,
                    Put::Front => front(&v)?,
                    Put::Sum => parent.reduce(Monoid::Sum, &front(&v)?, [0].into())?,
                }))
            });
            out.collect()
        })
    }
}
