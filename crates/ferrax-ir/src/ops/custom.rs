//! custom_jvp_call, custom_vjp_call: a function with custom derivative rules. custom_lin: the linear map whose transpose the user wrote.
//!
//! Eager use keeps the user's closures, so they see concrete values. A program holds the function itself traced, with its captures as
//! leading operands, and the derivative rules as closures, which run only when the call is differentiated.
//!
//! ```text
//! jvp:  (x.., dx of inexact x..)      -> (y.., dy of inexact y..)
//! fwd:  (x..)                         -> (y.., res..)
//! bwd:  (res.., ct of inexact y..)    -> ct of inexact x..
//! ```
//!
//! Rules may leave out tangents and cotangents that are zero. With `symbolic_zeros` their arguments leave out zeros as well, and fwd takes,
//! after all x, a literal bool for each: whether it is being differentiated.
use super::call::{fronts, lanes};
use crate::aval::{Aval, same_avals};
use crate::cx::{Arg, Axis, AxisKind, Cx, Dim, Fun, Lanes, Put, Tan, truth};
use crate::effects::Effects;
use crate::error::{Error, ErrorKind, Res, not_linear, type_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, merge, pick};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::program::{Program, mismatch};
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn avals(x: &[Value]) -> Vec<Aval> {
    x.iter().map(Value::aval).collect()
}
/// Tangents for the inexact outputs, in order.
fn spread_tangents(y: &[Value], dy: impl IntoIterator<Item = Tan>) -> Tans {
    let mut dy = dy.into_iter();
    y.iter().map(|v| if v.has_tangent() { dy.next().flatten() } else { None }).collect()
}
/// As they are, or zeros made.
fn zeros_as(symbolic: bool, cx: &dyn Cx, t: &Tan, a: &Aval) -> Res<Tan> {
    if symbolic { Ok(t.clone()) } else { cx.inst(t, a).map(Some) }
}
fn somes(x: &[Value]) -> Vec<Tan> {
    x.iter().cloned().map(Some).collect()
}
fn closed_over(kind: &str, dx: &[Tan]) -> Res<()> {
    match dx.iter().any(Option::is_some) {
        true => Err(Error::new(
            ErrorKind::UnexpectedTracer,
            format!(
                "Detected differentiation of a custom_{kind} function with respect to a closed-over value. That isn't supported because the custom {} rule only specifies how to differentiate the custom_{kind} function with respect to explicit input parameters. Try passing the closed-over value into the custom_{kind} function as an argument, and adapting the custom_{kind} {}.",
                kind.to_uppercase(),
                if kind == "jvp" { "rule" } else { "fwd and bwd rules" }
            ),
        )),
        false => Ok(()),
    }
}
fn traced<'a>(name: &str, f: &'a Fun) -> Res<&'a Arc<Program>> {
    match f {
        Fun::Prog(p) => Ok(p),
        Fun::User(_) => type_err(format!("{name} holds a function that has not been traced")),
    }
}
fn infer(name: &str, f: &Fun, x: &[Aval]) -> Res<Avals> {
    let p = traced(name, f)?;
    if same_avals(x, p.in_avals()) { Ok(p.out_avals().into()) } else { Err(mismatch(name, x, p.in_avals())) }
}
fn effects(f: &Fun) -> Effects {
    match f {
        Fun::Prog(p) => p.effects().clone(),
        // the effects of a closure are unknown before it is called
        Fun::User(_) => Effects { any_axis: true, ..Effects::default() },
    }
}
/// The entries that belong to operands with tangents.
fn of_inexact<T: Clone>(x: &[Value], of: &[T]) -> Vec<T> {
    x.iter().zip(of).filter(|(v, _)| v.has_tangent()).map(|(_, t)| t.clone()).collect()
}
/// The number of outputs among the results of a jvp rule: the tangents of inexact outputs follow
/// them.
fn n_outputs(out: &[Tan]) -> Option<usize> {
    let inexact = |v: &Tan| v.as_ref().is_some_and(Value::has_tangent);
    (0..=out.len()).find(|n| {
        out[..*n].iter().all(Option::is_some) && n + out[..*n].iter().filter(|v| inexact(v)).count() == out.len()
    })
}

/// Which results of a function under `vmap` have a batch axis, and which of them have batched
/// cotangents. The function and its rules record it as they run, independently of each other; later
/// runs keep the first record.
///
/// A bwd gets one cotangent of an output without a batch axis; on devices each output has its own.
#[derive(Clone, Default)]
struct BatchedOutputs {
    lanes: Arc<Mutex<Option<Vec<bool>>>>,
    devices: bool,
}
impl BatchedOutputs {
    fn new(ax: Axis) -> BatchedOutputs {
        BatchedOutputs { devices: ax.kind == AxisKind::Devices, ..BatchedOutputs::default() }
    }
    fn get(&self) -> Option<Vec<bool>> {
        self.lanes.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
    fn settle(&self, mut found: Vec<bool>) -> Res<Vec<bool>> {
        found.iter_mut().for_each(|f| *f |= self.devices);
        let batched = self.lanes.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_with(|| found.clone()).clone();
        match batched.len() != found.len() || found.iter().zip(&batched).any(|(f, t)| *f && !t) {
            true => type_err(
                "a custom derivative rule returned a batched value for an output of its function that is not batched",
            ),
            false => Ok(batched),
        }
    }
    /// The batched op on operands whose batch axis is moved to the front, and the batch axes of its results.
    fn bind(&self, cx: &dyn Cx, op: &Op, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let y = cx.bind(op, &fronts(cx, x, d)?)?;
        let all = self.get().unwrap_or_else(|| vec![true; y.len()]);
        let axes = all.into_iter().map(|l| l.then_some(0)).collect();
        Ok((y, axes))
    }
}
fn fronts_or_alone(lanes: &[bool]) -> impl Iterator<Item = Put> + '_ {
    lanes.iter().map(|l| if *l { Put::Front } else { Put::Alone })
}
/// Operands with the axes in `d`, and the following values (flags, tangents) with those in `rest`.
fn operands(d: &[Dim], rest: &[Dim]) -> Box<dyn Fn(usize, usize) -> bool + Send + Sync> {
    let all: Vec<bool> = d.iter().chain(rest).map(Option::is_some).collect();
    Box::new(move |i, _| all.get(i) == Some(&true))
}
/// A function whose results are outputs.
fn plain(d: &[Dim], batched: &BatchedOutputs) -> Lanes {
    let batched = batched.clone();
    let of_results = move |_: &[Tan], found: &[bool]| Ok(fronts_or_alone(&batched.settle(found.to_vec())?).collect());
    Lanes { of_operand: operands(d, &[]), of_results: Box::new(of_results) }
}

primitive! {
    pub struct CustomJvp = "custom_jvp_call" {
        name: Arc<str>,
        call_jaxpr: Fun,
        jvp: Fun,
        num_consts: usize = nonempty,
        symbolic_zeros: bool,
    }
}
impl Rules for CustomJvp {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        infer("custom_jvp_call", &self.call_jaxpr, x)
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        closed_over("jvp", &dx[..self.num_consts])?;
        let x = &x[self.num_consts..];
        let mut args = somes(x);
        for (v, t) in x.iter().zip(&dx[self.num_consts..]).filter(|(v, _)| v.has_tangent()) {
            args.push(zeros_as(self.symbolic_zeros, cx, t, &v.aval())?);
        }
        let out = self.jvp.call_tans(cx, &args)?;
        let n = n_outputs(&out);
        let Some(n) = n else {
            return type_err(format!(
                "Custom JVP rule {} must produce a tangent for each differentiable output, but it returned {} values",
                self.jvp.name(),
                out.len()
            ));
        };
        let y: Values = out[..n].iter().flatten().cloned().collect();
        let dy = spread_tangents(&y, out[n..].iter().cloned());
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("custom_jvp_call")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let own = &d[self.num_consts..];
        let own_tan = of_inexact(&x[self.num_consts..], own);
        let batched = BatchedOutputs::new(ax);
        let rule = batched.clone();
        // a tangent has lanes where its output has, and the other way round
        let of_results = move |out: &[Tan], found: &[bool]| {
            let n = n_outputs(out).unwrap_or(out.len());
            let inexact: Vec<usize> = (0..n).filter(|i| out[*i].as_ref().is_some_and(Value::has_tangent)).collect();
            let mut outs = found[..n].to_vec();
            inexact.iter().zip(&found[n..]).for_each(|(i, t)| outs[*i] |= t);
            let outs = rule.settle(outs)?;
            let tangents: Vec<bool> = inexact.iter().map(|i| outs[*i]).collect();
            Ok(fronts_or_alone(&outs).chain(fronts_or_alone(&tangents)).collect())
        };
        let jvp = Lanes { of_operand: operands(own, &own_tan), of_results: Box::new(of_results) };
        let op = CustomJvp {
            call_jaxpr: cx.recur().batch_fun(&self.call_jaxpr, ax, plain(d, &batched)),
            jvp: cx.recur().batch_fun(&self.jvp, ax, jvp),
            ..self.clone()
        };
        batched.bind(cx, &op.into(), x, d)
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(self.call_jaxpr.prog().map(|p| (p.clone(), (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        b.inline(traced("custom_jvp_call", &self.call_jaxpr)?, x)
    }
}
/// How many of fwd's results are outputs: recorded by a closure when it has run, shared by all copies of the op, and not part of equality
/// (fwd decides it).
#[derive(Clone, Default, Debug)]
pub struct NumOuts(Arc<AtomicUsize>);
impl NumOuts {
    pub fn new(n: usize) -> NumOuts {
        NumOuts(Arc::new(AtomicUsize::new(n)))
    }
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    pub fn set(&self, n: usize) {
        self.0.store(n, Ordering::Relaxed)
    }
}
impl PartialEq for NumOuts {
    fn eq(&self, _: &NumOuts) -> bool {
        true
    }
}
impl Eq for NumOuts {}
impl Hash for NumOuts {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
impl ParamValue for NumOuts {
    fn words() -> String {
        "a nonnegative integer".into()
    }
    fn to_param(&self) -> Param {
        Param::Int(self.get() as i64)
    }
    fn from_param(p: &Param) -> Option<NumOuts> {
        usize::from_param(p).map(NumOuts::new)
    }
    fn missing(_: &[Aval]) -> Option<NumOuts> {
        Some(NumOuts::default())
    }
}

primitive! {
    pub struct CustomVjp = "custom_vjp_call" {
        name: Arc<str>,
        call_jaxpr: Fun,
        fwd: Fun,
        bwd: Fun,
        num_consts: usize = nonempty,
        /// How many of fwd's results are outputs.
        num_outs: NumOuts = hidden,
        symbolic_zeros: bool,
    }
}
impl Rules for CustomVjp {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        infer("custom_vjp_call", &self.call_jaxpr, x)
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        closed_over("vjp", &dx[..self.num_consts])?;
        let x = &x[self.num_consts..];
        let mut args = x.to_vec();
        if self.symbolic_zeros {
            args.extend(dx[self.num_consts..].iter().map(|t| truth(t.is_some())));
        }
        let mut y = self.fwd.call(cx, &args)?.into_vec();
        let n = match &self.call_jaxpr {
            Fun::Prog(p) => p.out_avals().len(),
            Fun::User(_) => self.num_outs.get(),
        };
        if y.len() < n {
            return type_err(format!(
                "Custom VJP fwd rule {} returned {} values where the function has {} outputs",
                self.fwd.name(),
                y.len(),
                n
            ));
        }
        let res = y.split_off(n);
        let t = of_inexact(x, &dx[self.num_consts..]);
        let zero_ins = (0..t.len()).filter(|i| t[*i].is_none()).collect();
        let t: Vec<Value> = t.into_iter().flatten().collect();
        let outs: Vec<Aval> = y.iter().filter(|v| v.has_tangent()).map(|v| v.aval()).collect();
        let lin = CustomLin {
            bwd: self.bwd.clone(),
            num_res: res.len(),
            out_avals: outs,
            symbolic_zeros: self.symbolic_zeros,
            zero_ins,
        };
        let dy = cx.bind(&lin.into(), &cat(&[&res, &t]))?;
        let dy = spread_tangents(&y, dy.into_iter().map(Some));
        Ok((y.into(), dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("custom_vjp_call")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let own = &d[self.num_consts..];
        let own_tan = of_inexact(&x[self.num_consts..], own);
        let batched = BatchedOutputs::new(ax);
        // recorded by fwd for bwd: which residuals have a batch axis, and which cotangents
        let seen: Arc<Mutex<(Vec<bool>, Vec<bool>)>> = Arc::default();
        let (outs, record, num_outs) = (batched.clone(), seen.clone(), self.num_outs.clone());
        let fwd = move |out: &[Tan], found: &[bool]| {
            let n = num_outs.get().min(out.len());
            let outs = outs.settle(found[..n].to_vec())?;
            let cts = (0..n).filter(|i| out[*i].as_ref().is_some_and(Value::has_tangent)).map(|i| outs[i]).collect();
            *record.lock().unwrap_or_else(|e| e.into_inner()) = (found[n..].to_vec(), cts);
            Ok(fronts_or_alone(&outs).chain(fronts_or_alone(&found[n..])).collect())
        };
        let fwd = Lanes { of_operand: operands(own, &[]), of_results: Box::new(fwd) };
        let recorded_by_fwd = seen.clone();
        let bwd = Lanes {
            of_operand: Box::new(move |i, _| {
                let seen = recorded_by_fwd.lock().unwrap_or_else(|e| e.into_inner());
                seen.0.iter().chain(&seen.1).nth(i) == Some(&true)
            }),
            of_results: Box::new(move |_, found| {
                let cts = &seen.lock().unwrap_or_else(|e| e.into_inner()).1;
                Ok(of_cotangents(found, &lanes(&own_tan), cts.iter().all(|l| *l)))
            }),
        };
        let op = CustomVjp {
            call_jaxpr: cx.recur().batch_fun(&self.call_jaxpr, ax, plain(d, &batched)),
            fwd: cx.recur().batch_fun(&self.fwd, ax, fwd),
            bwd: cx.recur().batch_fun(&self.bwd, ax, bwd),
            ..self.clone()
        };
        batched.bind(cx, &op.into(), x, d)
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(self.call_jaxpr.prog().map(|p| (p.clone(), (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        b.inline(traced("custom_vjp_call", &self.call_jaxpr)?, x)
    }
}
/// The two ops that are equal to a function until they are differentiated.
trait Custom: Clone + Into<Op> {
    fn function(&self) -> &Fun;
    /// The op of the function traced, with `n` captures in front of the operands.
    fn with(&self, function: Fun, n: usize) -> Self;
}
impl Custom for CustomJvp {
    fn function(&self) -> &Fun {
        &self.call_jaxpr
    }
    fn with(&self, function: Fun, n: usize) -> CustomJvp {
        CustomJvp { call_jaxpr: function, num_consts: n + self.num_consts, ..self.clone() }
    }
}
impl Custom for CustomVjp {
    fn function(&self) -> &Fun {
        &self.call_jaxpr
    }
    fn with(&self, function: Fun, n: usize) -> CustomVjp {
        CustomVjp { call_jaxpr: function, num_consts: n + self.num_consts, ..self.clone() }
    }
}
impl<C: Custom> BodyRules for C {
    /// Known and unknown operands: it is no longer to be differentiated, so it is replaced by its function.
    fn split(&self, _: &dyn Cx, rec: &dyn Cx, x: &[Value], _: &[bool]) -> Res<Values> {
        self.function().call(rec, x)
    }
    fn dce(&self, _: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        None
    }
    fn stage(&self, cx: &dyn Cx, x: &[Value]) -> Res<Option<(Op, Values)>> {
        if let Fun::Prog(_) = self.function() {
            return Ok(None);
        }
        let (f, consts) = self.function().to_program(cx, &avals(x))?;
        Ok(Some((self.with(Fun::Prog(f), consts.len()).into(), cat(&[&consts, x]).into())))
    }
    fn means(&self) -> Option<&Fun> {
        Some(self.function())
    }
    fn lift(&self, _: &[Value]) -> Option<(Op, Values)> {
        None
    }
    fn effects(&self) -> Effects {
        effects(self.function())
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        self.function().prog().into_iter().collect()
    }
}

primitive! {
    /// Known operands (residuals), then tangents. It has no value of its own: only its transpose is known.
    pub struct CustomLin = "custom_lin" {
        bwd: Fun,
        num_res: usize,
        out_avals: Vec<Aval>,
        symbolic_zeros: bool = nonempty,
        /// The function's inexact operands that have no tangent: they are not operands here.
        zero_ins: Dims = nonempty,
    }
}
/// The treatment of a bwd's results: those for `mapped` operands get a batch axis, those for the
/// others are summed over it. A result without a batch axis is the sum already, unless every
/// cotangent has one: then it is a constant that each batch element returned.
fn of_cotangents(found: &[bool], mapped: &[bool], all_cts: bool) -> Vec<Put> {
    let put = |(found, mapped): (&bool, &bool)| match (mapped, *found || all_cts) {
        (true, _) => Put::Front,
        (false, true) => Put::Sum,
        (false, false) => Put::Alone,
    };
    found.iter().zip(mapped.iter().chain(std::iter::repeat(&true))).map(put).collect()
}
impl CustomLin {
    /// For each of `n` tangents and the zeros between them, whether it is a tangent.
    fn nonzero(&self, n: usize) -> Vec<bool> {
        (0..n + self.zero_ins.len()).map(|i| !self.zero_ins.contains(&i)).collect()
    }
    fn forward<T>() -> Res<T> {
        type_err("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
    }
}
impl Rules for CustomLin {
    fn infer(&self, _: &[Aval]) -> Res<Avals> {
        Ok(self.out_avals.clone().into())
    }
    fn jvp(&self, _: &dyn Cx, _: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        CustomLin::forward()
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let known: Vec<Value> = x[..self.num_res].iter().map(|a| a.value().cloned()).collect::<Res<_>>()?;
        let mut args = somes(&known);
        for (ct, a) in ct.iter().zip(&self.out_avals) {
            args.push(zeros_as(self.symbolic_zeros, cx, ct, a)?);
        }
        let out = self.bwd.call_tans(cx, &args)?;
        let nz = self.nonzero(x.len() - self.num_res);
        if out.len() != nz.len() {
            return type_err(format!(
                "Custom VJP bwd rule {} must produce a cotangent for each of the {} differentiable arguments, but it returned {}",
                self.bwd.name(),
                nz.len(),
                out.len()
            ));
        }
        let linear = x[self.num_res..].iter().zip(pick(&out, &nz)).map(|(a, v)| v.filter(|_| a.is_linear()));
        Ok(std::iter::repeat_n(None, self.num_res).chain(linear).collect())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let t = &d[self.num_res..];
        let mapped = merge(&self.nonzero(t.len()), lanes(t), vec![true; self.zero_ins.len()]);
        let (n, res) = (self.num_res, lanes(&d[..self.num_res]));
        let bwd = Lanes {
            of_operand: Box::new(move |i, _| i >= n || res[i]),
            of_results: Box::new(move |_, found| Ok(of_cotangents(found, &mapped, true))),
        };
        let bwd = cx.recur().batch_fun(&self.bwd, ax, bwd);
        let out_avals: Vec<Aval> = self.out_avals.iter().map(|a| a.batched(ax.n, 0)).collect();
        let y = cx.bind(&CustomLin { bwd, out_avals, ..self.clone() }.into(), &fronts(cx, x, d)?)?;
        let n = y.len();
        Ok((y, smallvec![Some(0); n]))
    }
    fn lower(&self, _: &mut Graph, _: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        CustomLin::forward()
    }
}
impl crate::op::Effectful for CustomLin {
    fn effects(&self) -> Effects {
        effects(&self.bwd)
    }
    fn vary(&self, _: Vary) -> Option<Vary> {
        None
    }
}
