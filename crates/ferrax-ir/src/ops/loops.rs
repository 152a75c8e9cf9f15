//! One primitive for `scan`, `while` and the loop that reverse mode makes of a `while`: they differ in their trip count.
//!
//! ```text
//! carry, ys = init, []
//! for x in xs:  carry, y = body(consts, carry, x);  ys.push(y)
//!
//! Trip::Static(n)   prints scan       head: nothing        ys stack into arrays with a leading axis n
//! Trip::Dyn         prints tape_scan  head: n, an i32      xs, ys are tapes: sequences of run-time length
//! Trip::While       prints while      head: cond's consts  no xs; ys are tapes; `counted` adds an output, the trip count
//! ```
//!
//! Operands: head, consts, carry, xs. Outputs: carry, ys, count. One set of rules serves all three. Reverse mode through a
//! `while` is then no special case: `split` leaves a counted While whose ys are the residuals, and a Dyn over those tapes, and a
//! Dyn transposes as a scan does, `reverse` flipped.
mod backward;

use super::call::lanes;
use crate::aval::{Aval, Lit, same_avals};
use crate::cx::{Arg, Axis, Cx, Dim, Residual, Tan, int};
use crate::dtype::Dtype;
use crate::effects::Effects;
use crate::error::{Error, Res, not_linear, type_err};
use crate::factors::{BodyTies, Tie, Ties};
use crate::lower::{Graph, LoopOf, TensorId, TensorIds, TripOf};
use crate::mask::{cat, count, fixpoint, merge, nonzero, not, or, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::param::{Field, Param, ParamList, ParamMap, ParamValue, Params, Show, order, order_fields};
use crate::program::{In, Program};
use crate::value::{Value, Values};
use smallvec::smallvec;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Trip {
    Static(usize),
    Dyn,
    While { cond: Arc<Program>, n_cond: usize, counted: bool },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loop {
    pub trip: Trip,
    pub reverse: bool,
    pub n_consts: usize,
    pub n_carry: usize,
    /// scan's hint; it changes no result.
    pub unroll: u32,
    pub body: Arc<Program>,
}

impl Params for Loop {
    fn names() -> Vec<&'static str> {
        vec!["scan", "tape_scan", "while"]
    }
    fn fields(name: &str) -> Vec<Field> {
        let program = |k| Field::of::<Arc<Program>>(k, Show::always);
        let count = |k| Field::of::<usize>(k, Show::always);
        let flag = |k, show| Field::of::<bool>(k, show);
        order_fields(match name {
            "while" => vec![
                program("body_jaxpr"),
                count("body_nconsts"),
                program("cond_jaxpr"),
                count("cond_nconsts"),
                flag("counted", Show::nonempty),
                Field::of::<usize>("num_ys", Show::nonempty),
                flag("reverse", Show::nonempty),
            ],
            name => {
                let mut v =
                    vec![program("jaxpr"), count("num_carry"), count("num_consts"), flag("reverse", Show::always)];
                if name == "scan" {
                    v.extend([count("length"), Field::of::<u32>("unroll", Show::always)]);
                }
                v
            }
        })
    }
    fn name(&self) -> &'static str {
        match self.trip {
            Trip::Static(_) => "scan",
            Trip::Dyn => "tape_scan",
            Trip::While { .. } => "while",
        }
    }
    fn params(&self) -> ParamList {
        let always = |k, v| (k, v, Show::always);
        let n = |n: usize| Param::Int(n as i64);
        let body = Param::Prog(self.body.clone());
        order(match &self.trip {
            Trip::While { cond, n_cond, counted } => vec![
                always("body_jaxpr", body),
                always("body_nconsts", n(self.n_consts)),
                always("cond_jaxpr", Param::Prog(cond.clone())),
                always("cond_nconsts", n(*n_cond)),
                ("counted", Param::Bool(*counted), Show::nonempty),
                ("num_ys", n(self.n_ys()), Show::nonempty),
                ("reverse", Param::Bool(self.reverse), Show::nonempty),
            ],
            trip => {
                let mut v = vec![
                    always("jaxpr", body),
                    always("num_carry", n(self.n_carry)),
                    always("num_consts", n(self.n_consts)),
                    always("reverse", Param::Bool(self.reverse)),
                ];
                if let Trip::Static(length) = trip {
                    v.push(always("length", n(*length)));
                    v.push(always("unroll", Param::Int(self.unroll as i64)));
                }
                v
            }
        })
    }
    fn from_params(name: &str, p: &mut ParamMap) -> Res<Loop> {
        if name == "while" {
            let body: Arc<Program> = p.take("body_jaxpr")?;
            let n_ys: usize = p.take("num_ys")?;
            let Some(n_carry) = body.n_outs().checked_sub(n_ys) else {
                return type_err("while has more ys than outputs");
            };
            let trip = Trip::While {
                cond: p.take("cond_jaxpr")?,
                n_cond: p.take("cond_nconsts")?,
                counted: p.take("counted")?,
            };
            return Loop {
                trip,
                reverse: p.take("reverse")?,
                n_consts: p.take("body_nconsts")?,
                n_carry,
                unroll: 1,
                body,
            }
            .checked();
        }
        p.remove("linear");
        p.remove("_split_transpose");
        let trip = if name == "scan" { Trip::Static(p.take("length")?) } else { Trip::Dyn };
        let unroll = p.remove("unroll").and_then(|u| u32::from_param(&u)).unwrap_or(1);
        Loop {
            trip,
            reverse: p.take("reverse")?,
            n_consts: p.take("num_consts")?,
            n_carry: p.take("num_carry")?,
            unroll,
            body: p.take("jaxpr")?,
        }
        .checked()
    }
}

impl Loop {
    pub fn new(trip: Trip, n_consts: usize, n_carry: usize, body: Arc<Program>) -> Loop {
        Loop { trip, reverse: false, n_consts, n_carry, unroll: 1, body }
    }
    /// Checks that the counts fit the bodies.
    fn checked(self) -> Res<Loop> {
        let fits = self.n_consts.checked_add(self.n_carry).is_some_and(|n| n <= self.body.n_ins())
            && self.n_carry <= self.body.n_outs();
        let fits = fits
            && match &self.trip {
                Trip::While { cond, n_cond, .. } => {
                    n_cond.checked_add(self.n_carry) == Some(cond.n_ins()) && cond.n_outs() == 1
                }
                _ => true,
            };
        if fits {
            Ok(self)
        } else {
            type_err(format!("{}: the numbers of consts and carries do not fit its programs", Params::name(&self)))
        }
    }
    pub fn n_head(&self) -> usize {
        match self.trip {
            Trip::Static(_) => 0,
            Trip::Dyn => 1,
            Trip::While { n_cond, .. } => n_cond,
        }
    }
    pub fn n_xs(&self) -> usize {
        self.body.n_ins() - self.n_consts - self.n_carry
    }
    pub fn n_ys(&self) -> usize {
        self.body.n_outs() - self.n_carry
    }
    pub fn counted(&self) -> bool {
        matches!(self.trip, Trip::While { counted: true, .. })
    }
    /// Operand ranges: head, consts, carry, xs.
    pub fn groups(&self) -> [Range<usize>; 4] {
        let h = self.n_head();
        let (c, k) = (h + self.n_consts, h + self.n_consts + self.n_carry);
        [0..h, h..c, c..k, k..k + self.n_xs()]
    }
    /// The type of a per-iteration value when collected over the loop, and back.
    pub fn stacked(&self, a: &Aval) -> Aval {
        match self.trip {
            Trip::Static(n) if a.tape == 0 => a.batched(n, 0),
            _ => Aval { tape: a.tape + 1, ..a.clone() },
        }
    }
    pub fn element(&self, a: &Aval) -> Res<Aval> {
        match (a.tape, &self.trip) {
            (0, Trip::Static(n)) if a.shape.first() == Some(n) => Ok(a.unbatched(0)),
            (0, Trip::Static(n)) => Err(Error::value(format!(
                "scan got value with no leading axis to scan over, or one that is not of length {n}: {}",
                a.long()
            ))),
            (0, _) => Err(Error::type_error(format!("{}: {} is not a tape", Params::name(self), a.long()))),
            _ => Ok(Aval { tape: a.tape - 1, ..a.clone() }),
        }
    }
    fn with_cond(&self, f: impl FnOnce(&Arc<Program>) -> Arc<Program>) -> Trip {
        match &self.trip {
            Trip::While { cond, n_cond, counted } => Trip::While { cond: f(cond), n_cond: *n_cond, counted: *counted },
            t => t.clone(),
        }
    }
    fn with_counted(trip: Trip, on: bool) -> Trip {
        match trip {
            Trip::While { cond, n_cond, .. } => Trip::While { cond, n_cond, counted: on },
            t => t,
        }
    }
}

fn olds(r: Range<usize>) -> impl Iterator<Item = In> {
    r.map(In::Old)
}
fn avals(v: &[Value]) -> Vec<Aval> {
    v.iter().map(Value::aval).collect()
}

impl Rules for Loop {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [h, c, k, s] = self.groups();
        let name = Params::name(self);
        if x.len() != s.end {
            return type_err(format!("{name}: {} operands, wants {}", x.len(), s.end));
        }
        let mut ins: Vec<Aval> = x[c.start..k.end].to_vec();
        for a in &x[s] {
            crate::typing::leading_is_whole(a)?;
            ins.push(self.element(a)?);
        }
        let out = self.body.out_avals();
        if !same_avals(&ins, self.body.in_avals()) || !same_avals(&x[k.clone()], &out[..self.n_carry]) {
            return type_err(format!(
                "{name} body function carry input and carry output must have equal types: it takes {:?} and returns {out:?}; operands are {x:?}",
                self.body.in_avals()
            ));
        }
        if let Trip::While { cond, .. } = &self.trip {
            let p = cond.out_avals();
            if !same_avals(&cat(&[&x[h], &x[k]]), cond.in_avals())
                || p.len() != 1
                || p[0].dtype != Dtype::BOOL
                || p[0].rank() != 0
            {
                return type_err(format!("cond_fun must return a boolean scalar, but got output type(s) {p:?}."));
            }
        }
        let count = self.counted().then(|| Aval::scalar(Dtype::I32));
        Ok(out[..self.n_carry]
            .iter()
            .cloned()
            .chain(out[self.n_carry..].iter().map(|a| self.stacked(a)))
            .chain(count)
            .collect())
    }

    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let [h, c, k, s] = self.groups();
        let (c_nz, s_nz, n_ys) = (nonzero(&dx[c.clone()]), nonzero(&dx[s.clone()]), self.n_ys());
        let (k_nz, (body, y_nz)) = fixpoint(nonzero(&dx[k.clone()]), |k_nz| {
            let (nz, inst) = (cat(&[&c_nz, k_nz, &s_nz]), cat(&[k_nz, &vec![false; n_ys]]));
            let (body, out) = cx.recur().jvp(&self.body, &nz, &inst, &[c.len(), k.len(), s.len()], &[k.len(), n_ys])?;
            Ok((out[..k.len()].to_vec(), (body, out[k.len()..].to_vec())))
        })?;
        let mut args = x[h].to_vec();
        for (r, nz) in [(&c, &c_nz), (&k, &k_nz), (&s, &s_nz)] {
            args.extend_from_slice(&x[r.clone()]);
            for i in r.clone().filter(|i| nz[i - r.start]) {
                args.push(cx.inst(&dx[i], &x[i].aval())?);
            }
        }
        let extra: Vec<In> = pick(&x[k.clone()], &k_nz).iter().map(|v| In::New(v.aval())).collect();
        let trip = self.with_cond(|p| p.rewire(&olds(0..p.n_ins()).chain(extra).collect::<Vec<_>>(), None));
        let op = Loop { trip, n_consts: c.len() + count(&c_nz), n_carry: k.len() + count(&k_nz), body, ..self.clone() };
        let mut out = cx.bind_body(&op.into(), &args)?.into_iter();
        let mut take = |n: usize| out.by_ref().take(n).collect::<Vec<_>>();
        let (mut y, dk) = (take(k.len()), take(count(&k_nz)));
        y.extend(take(n_ys));
        let dy = take(count(&y_nz));
        let n_count = self.counted() as usize;
        y.extend(take(n_count));
        let mut dys: Tans = spread(&k_nz, dk).into();
        dys.extend(spread(&y_nz, dy));
        dys.extend(vec![None; n_count]);
        Ok((y.into(), dys))
    }

    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if matches!(self.trip, Trip::While { .. }) {
            return not_linear("while");
        }
        backward::transpose(self, cx, x, ct)
    }

    /// Lanes that end at different times: every lane runs until the last is done, and a done lane keeps its carry.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let effects = BodyRules::effects(self);
        if effects.external && effects.ordered && matches!(self.trip, Trip::While { .. }) {
            return Err(Error::not_implemented("Ordered IO effects not supported in vmap."));
        }
        let n = ax.n;
        let [h, c, k, s] = self.groups();
        let b = |r: &Range<usize>| lanes(&d[r.clone()]);
        let (h_b, c_b, s_b, n_ys) = (b(&h), b(&c), b(&s), self.n_ys());
        let carry_and_body = |start: Vec<bool>| {
            fixpoint(start, |k_b| {
                let (body, out) =
                    cx.recur().batch(&self.body, ax, &cat(&[&c_b, k_b, &s_b]), &cat(&[k_b, &vec![false; n_ys]]))?;
                Ok((out[..k.len()].to_vec(), (body, out[k.len()..].to_vec())))
            })
        };
        let (mut k_b, (mut body, mut y_b)) = carry_and_body(b(&k))?;
        let predicate = |k_b: &[bool]| match &self.trip {
            Trip::While { cond, .. } => cx.recur().batch(cond, ax, &cat(&[&h_b, k_b]), &[false]).map(Some),
            _ => Ok(None),
        };
        let mut cond_b = predicate(&k_b)?;
        let ragged = match (&self.trip, &cond_b) {
            (Trip::Dyn, _) => h_b[0],
            (_, Some((_, out))) => out[0],
            _ => false,
        };
        if ragged {
            (k_b, (body, y_b)) = carry_and_body(vec![true; k.len()])?;
            cond_b = predicate(&k_b)?;
        }
        let cond_b = cond_b.map(|c| c.0);
        let lane_axis = |v: &Value, to: usize| if v.tape() > 0 { 0 } else { to };
        let head: Vec<Value> = h.map(|i| cx.to_front(&x[i], d[i])).collect::<Res<_>>()?;
        let consts: Vec<Value> = c.map(|i| cx.to_front(&x[i], d[i])).collect::<Res<_>>()?;
        let carry: Vec<Value> = k
            .clone()
            .map(|i| if k_b[i - k.start] { cx.batch_at(&x[i], d[i], n, 0) } else { Ok(x[i].clone()) })
            .collect::<Res<_>>()?;
        let xs: Vec<Value> = s
            .map(|i| d[i].map_or(Ok(x[i].clone()), |d| cx.move_axis(&x[i], d, lane_axis(&x[i], 1))))
            .collect::<Res<_>>()?;
        let y_dims =
            |outs: &[Value]| outs.iter().zip(&y_b).map(|(v, b)| b.then_some(lane_axis(v, 1))).collect::<Vec<Dim>>();
        if !ragged {
            let trip = self.with_cond(|p| cond_b.unwrap_or_else(|| p.clone()));
            let op = Loop { trip, body, ..self.clone() };
            let out = cx.bind_body(&op.into(), &cat(&[&head, &consts, &carry, &xs]))?;
            let mut dims: Axes = k_b.iter().map(|b| b.then_some(0)).collect();
            dims.extend(y_dims(&out[k.len()..k.len() + n_ys]));
            dims.resize(out.len(), None);
            return Ok((out, dims));
        }
        if effects.external {
            return Err(Error::not_implemented(
                "Unordered IO effects not supported in while_loop with batched predicate",
            ));
        }
        let (n_c, n_k) = (consts.len(), carry.len());
        let elements: Vec<Aval> = xs.iter().map(|v| self.element(&v.aval())).collect::<Res<_>>()?;
        // one step for the active lanes: (active, consts, carry, xs) -> (carry, ys)
        let step = |cx: &dyn Cx, active: &Value, c: &[Value], k: &[Value], s: &[Value]| -> Res<Vec<Value>> {
            let mut out = cx.inline(&body, &cat(&[c, k, s]))?.into_vec();
            for (new, old) in out.iter_mut().zip(k) {
                *new = cx.select_lanes(active, old, new)?;
            }
            Ok(out)
        };
        let i32_ = |x: i64| int(Dtype::I32, x);
        let (mut out, counts) = match &self.trip {
            Trip::Static(_) | Trip::Dyn => {
                // carry' = i, carry; a lane is active while i < its own n
                let max = cx.reduce(Monoid::Max, &head[0], [0].into())?;
                let start = if self.reverse { cx.add(&max, &i32_(-1))? } else { i32_(0) };
                let one = i32_(if self.reverse { -1 } else { 1 });
                let ins =
                    cat(&[&avals(&head), &avals(&consts), &[Aval::scalar(Dtype::I32)], &avals(&carry), &elements]);
                let (body, held) = cx.recur().stage(&ins, &|cx, a| {
                    let (i, rest) = (&a[1 + n_c], &a[2 + n_c..]);
                    let active = cx.pw2(Pw::Lt, i, &a[0])?;
                    let out = step(cx, &active, &a[1..1 + n_c], &rest[..n_k], &rest[n_k..])?;
                    Ok(cat(&[&[cx.add(i, &one)?], &out]).into())
                })?;
                let op = Loop { n_consts: held.len() + 1 + n_c, n_carry: 1 + n_k, body, ..self.clone() };
                let mut out =
                    cx.bind(&op.into(), &cat(&[&[max], &held, &head, &consts, &[start], &carry, &xs]))?.into_vec();
                out.remove(0);
                (out, None)
            }
            // carry' = active, count of each lane, carry; the predicate is evaluated once a step, in the body
            Trip::While { counted, .. } => {
                let Some(cond) = cond_b else { return type_err("while without a predicate") };
                let n_h = head.len();
                let active = cx.inline(&cond, &cat(&[&head, &carry]))?.remove(0);
                let counts = cx.full(Lit::zero(Dtype::I32), &Aval::new(Dtype::I32, &[n]))?;
                let mut ins = cat(&[&avals(&head), &avals(&consts), &[active.aval(), counts.aval()], &avals(&carry)]);
                let (body, held) = cx.recur().stage(&ins, &|cx, a| {
                    let (h, a) = a.split_at(n_h);
                    let (c, a) = a.split_at(n_c);
                    let out = step(cx, &a[0], c, &a[2..], &[])?;
                    let next = cx.inline(&cond, &cat(&[h, &out[..n_k]]))?.remove(0);
                    let active = cx.pw2(Pw::And, &a[0], &next)?;
                    let counts = cx.add(&a[1], &cx.convert(&a[0], Dtype::I32)?)?;
                    Ok(cat(&[&[active, counts], &out]).into())
                })?;
                ins.drain(..n_h + n_c);
                let (any, _) =
                    cx.recur().stage(&ins, &|cx, a| Ok(smallvec![cx.reduce(Monoid::Or, &a[0], [0].into())?]))?;
                let trip = Trip::While { cond: any, n_cond: 0, counted: false };
                let op = Loop { trip, n_consts: held.len() + n_h + n_c, n_carry: 2 + n_k, body, ..self.clone() };
                let mut out =
                    cx.bind(&op.into(), &cat(&[&held, &head, &consts, &[active, counts], &carry]))?.into_vec();
                let counts = out.drain(..2).next_back();
                (out, counts.filter(|_| *counted))
            }
        };
        let mut dims: Axes = smallvec![Some(0); n_k];
        dims.extend(y_dims(&out[n_k..]));
        if let Some(counts) = counts {
            out.push(counts);
            dims.push(Some(0));
        }
        Ok((out.into(), dims))
    }

    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [h, c, k, s] = self.groups();
        let trip = match &self.trip {
            Trip::Static(n) => TripOf::Static(*n),
            Trip::Dyn => TripOf::Dyn(x[0]),
            Trip::While { cond, .. } => TripOf::While(cond, &x[h]),
        };
        b.loop_(LoopOf {
            trip,
            reverse: self.reverse,
            body: &self.body,
            consts: &x[c],
            init: &x[k],
            xs: &x[s],
            outs: out,
            counted: self.counted(),
        })
    }
}

impl BodyRules for Loop {
    /// Known loop: the known carries, and the residuals as ys. Unknown loop: the rest, residuals as consts or xs.
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        let [h, c, k, s] = self.groups();
        let n_ys = self.n_ys();
        let fwd = cat(&[&vec![true; c.len()], &vec![false; k.len()], &vec![true; s.len()]]);
        let (k_unk, sp) = fixpoint(unk[k.clone()].to_vec(), |k_unk| {
            let (ins, force) = (cat(&[&unk[c.clone()], k_unk, &unk[s.clone()]]), cat(&[k_unk, &vec![false; n_ys]]));
            let sp = cx.recur().split(&self.body, &ins, &force, &fwd)?;
            Ok((sp.out_unk[..k.len()].to_vec(), sp))
        })?;
        let ends_unknown = match &self.trip {
            Trip::While { cond, .. } => cond.used_ins()[h.len()..].iter().zip(&k_unk).any(|(used, unk)| *used && *unk),
            _ => false,
        };
        if ends_unknown || unk[h.clone()].contains(&true) {
            return rec.record(&self.clone().into(), x);
        }
        let (c_unk, s_unk, k_known) = (&unk[c.clone()], &unk[s.clone()], not(&k_unk));
        let (kc, kk, ks) =
            (pick(&x[c.clone()], &not(c_unk)), pick(&x[k.clone()], &k_known), pick(&x[s.clone()], &not(s_unk)));
        let n_out = count(&not(&sp.out_unk));
        // Hoists the part that depends on consts alone: splits the known body again, with carry and
        // xs as the unknowns.
        let ins = cat(&[&vec![false; kc.len()], &vec![true; kk.len() + ks.len()]]);
        let io = sp.known.effects().io;
        let stays: Vec<bool> = (0..sp.known.n_outs()).map(|j| j < n_out || io).collect();
        let inv = cx.recur().split(&sp.known, &ins, &stays, &vec![false; ins.len()])?;
        let fixed = not(&inv.out_unk[n_out..]);
        let (body, consts, hoisted) = if fixed.contains(&true) {
            let mut known = cx.inline(&inv.known, &kc)?.into_vec();
            let consts = known.split_off(count(&fixed));
            (inv.unknown.clone(), consts, known)
        } else {
            (sp.known.clone(), kc, vec![])
        };
        let mut head = x[h.clone()].to_vec();
        let (mut known, mut new) = (vec![], vec![]);
        let is_while = matches!(self.trip, Trip::While { .. });
        let mut count_out = None;
        if is_while || body.n_outs() > 0 || io {
            let ins: Vec<In> =
                olds(0..h.len()).chain((0..k.len()).filter(|i| k_known[*i]).map(|i| In::Old(h.len() + i))).collect();
            let trip = Loop::with_counted(self.with_cond(|p| p.rewire(&ins, None)), true);
            let op = Loop { trip, n_consts: consts.len(), n_carry: kk.len(), body, ..self.clone() };
            known = cx.bind_body(&op.into(), &cat(&[&head, &consts, &kk, &ks]))?.into_vec();
            if is_while {
                count_out = known.pop();
                head = count_out.iter().cloned().collect();
            }
            new = known.split_off(n_out);
        }
        // the unknown body takes (residuals.., consts, carry, xs); a stacked residual moves to the xs
        let mut new =
            merge(&fixed, hoisted.into_iter().map(|v| (v, true)), new.into_iter().map(|v| (v, false))).into_iter();
        let (mut rc, mut rs, mut rc_at, mut rs_at) = (vec![], vec![], vec![], vec![]);
        for (at, r) in sp.res.iter().enumerate() {
            let found = match r {
                Residual::In(i) => Some((x[h.len() + i].clone(), *i < c.len())),
                Residual::New => new.next(),
            };
            let Some((v, fixed)) = found else { continue };
            let (to, to_at) = if fixed { (&mut rc, &mut rc_at) } else { (&mut rs, &mut rs_at) };
            to.push(v);
            to_at.push(In::Old(at));
        }
        let n_res = sp.res.len();
        let (uc, uk, us) = (pick(&x[c.clone()], c_unk), pick(&x[k.clone()], &k_unk), pick(&x[s.clone()], s_unk));
        let ins: Vec<In> = rc_at.into_iter().chain(olds(n_res..sp.unknown.n_ins())).chain(rs_at).collect();
        let trip = if is_while { Trip::Dyn } else { self.trip.clone() };
        let op = Loop {
            trip,
            n_consts: rc.len() + uc.len(),
            n_carry: uk.len(),
            body: sp.unknown.rewire(&ins, None),
            ..self.clone()
        };
        let y = rec.record_body(&op.into(), &cat(&[&head, &rc, &uc, &uk, &us, &rs]))?;
        let mut out = merge(&sp.out_unk, y, known);
        if self.counted() {
            out.extend(count_out);
        }
        Ok(out.into())
    }

    /// A carry is needed if its output is, or if a needed output (or the predicate) reads it.
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        let [h, c, k, _] = self.groups();
        let y_used = &used[k.len()..k.len() + self.n_ys()];
        let read_by_cond = match &self.trip {
            Trip::While { cond, .. } => cond.used_ins()[h.len()..].to_vec(),
            _ => vec![false; k.len()],
        };
        let (k_used, ins) = fixpoint(or(&used[..k.len()], &read_by_cond), |k_used| {
            let ins = self.body.dce(&cat(&[k_used, y_used])).1;
            Ok((ins[c.len()..c.len() + k.len()].to_vec(), ins))
        })
        .ok()?;
        let keep = cat(&[&ins[..c.len()], &k_used, &ins[c.len() + k.len()..]]);
        let ins: Vec<In> = (0..keep.len()).filter(|i| keep[*i]).map(In::Old).collect();
        let kept_outs = cat(&[&k_used, y_used, &used[k.len() + self.n_ys()..]]);
        let outs: Vec<usize> = (0..self.body.n_outs()).filter(|i| kept_outs[*i]).collect();
        let cond_ins: Vec<In> =
            olds(0..h.len()).chain((0..k.len()).filter(|i| k_used[*i]).map(|i| In::Old(h.len() + i))).collect();
        let trip = Loop::with_counted(
            self.with_cond(|p| p.rewire(&cond_ins, None)),
            self.counted() && used.last() == Some(&true),
        );
        let op = Loop {
            trip,
            n_consts: count(&keep[..c.len()]),
            n_carry: count(&k_used),
            body: self.body.rewire(&ins, Some(&outs)),
            ..self.clone()
        };
        Some((op.into(), cat(&[&vec![true; h.len()], &keep]), kept_outs))
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        let (body, held) = if self.body.held().is_empty() { (self.body.clone(), vec![]) } else { self.body.release() };
        let (trip, cond_held) = match &self.trip {
            Trip::While { cond, n_cond, counted } if !cond.held().is_empty() => {
                let (cond, held) = cond.release();
                (Trip::While { cond, n_cond: n_cond + held.len(), counted: *counted }, held)
            }
            t => (t.clone(), vec![]),
        };
        if held.is_empty() && cond_held.is_empty() {
            return None;
        }
        let h = self.n_head();
        let op = Loop { trip, n_consts: held.len() + self.n_consts, body, ..self.clone() };
        Some((op.into(), cat(&[&cond_held, &x[..h], &held, &x[h..]]).into()))
    }
    /// In the order of `bodies`.
    fn ties(&self, _: &[Aval]) -> Option<Ties> {
        let [h, c, k, s] = self.groups();
        let ins = c.chain(k.clone()).map(Tie::Same).chain(s.map(Tie::Element)).collect();
        let outs = (0..k.len()).map(Tie::Same).chain((k.len()..k.len() + self.n_ys()).map(Tie::Element)).collect();
        let carried = (0..k.len()).map(|i| (i, k.start + i)).collect();
        let mut bodies = vec![BodyTies { ins, outs, carried }];
        if let Trip::While { .. } = &self.trip {
            let ins = h.chain(k).map(Tie::Same).collect();
            bodies.insert(0, BodyTies { ins, outs: vec![Tie::Whole], carried: vec![] });
        }
        Some(Ties { bodies })
    }
    fn with_bodies(&self, bodies: Vec<Arc<Program>>) -> Option<Op> {
        let mut bodies = bodies.into_iter();
        let trip = self.with_cond(|p| bodies.next().unwrap_or_else(|| p.clone()));
        let body = bodies.next()?;
        Some(Loop { trip, body, ..self.clone() }.into())
    }
    fn effects(&self) -> Effects {
        let mut all = self.body.effects().clone();
        if let Trip::While { cond, .. } = &self.trip {
            all.join(cond.effects());
        }
        all
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        match &self.trip {
            Trip::While { cond, .. } => vec![cond, &self.body],
            _ => vec![&self.body],
        }
    }
}

/// The batch rule of ops that handle one batch element at a time: a scan over the batch.
pub fn lane_by_lane(op: &Op, cx: &dyn Cx, n: usize, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
    let lanes: Vec<bool> = d.iter().map(Option::is_some).collect();
    let moved: Vec<Value> =
        x.iter().zip(d).filter(|(_, d)| d.is_some()).map(|(v, d)| cx.to_front(v, *d)).collect::<Res<_>>()?;
    let fixed = pick(x, &not(&lanes));
    let ins: Vec<Aval> = fixed.iter().map(Value::aval).chain(moved.iter().map(|v| v.aval().unbatched(0))).collect();
    let n_fixed = fixed.len();
    let (body, consts) =
        cx.recur().stage(&ins, &|cx, a| cx.bind(op, &merge(&lanes, a[n_fixed..].to_vec(), a[..n_fixed].to_vec())))?;
    let l = Loop::new(Trip::Static(n), consts.len() + n_fixed, 0, body);
    let y = cx.bind(&l.into(), &cat(&[&consts, &fixed, &moved]))?;
    let dims = y.iter().map(|_| Some(0)).collect();
    Ok((y, dims))
}
