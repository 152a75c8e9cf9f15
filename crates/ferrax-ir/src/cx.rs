//! `Cx`: the interface of rules. A rule gets `cx` and values, and emits equations; it does not know which trace it runs under.
//!
//! INVARIANT: inside a rule everything goes through the `cx` that was passed. The thread-local current trace is read only where
//! user code calls in ([`bind`]) and set only where the system calls user code ([`enter`]).
mod scope;

pub use scope::{
    AxisKind, Line, Lines, Named, NamedAxis, Saved, Scopes, ToLit, Transforming, at_root, axes, axis_named, axis_size,
    bind, current, cuts_lanes, enter, eval_root, install_lines, install_root, install_to_lit, is_manual, line, moved,
    name_axes, named, names, no_axes, open_scopes, place, replace_current, restore_current, to_lit, transforming,
    with_axis, with_cut_lanes,
};

use crate::aval::{Aval, Lit};
use crate::cut::{Lenient, TypedCut};
use crate::dtype::Dtype;
use crate::effects::Name;
use crate::error::{Error, ErrorKind, Res};
use crate::layout::CutAxes;
use crate::op::Op;
use crate::ops::broadcast::BroadcastInDim;
use crate::ops::collective::{CastKind, Names, VaryCast, as_terms};
use crate::ops::convert::Convert;
use crate::ops::pointwise::{Pointwise, Pw};
use crate::ops::reduce::{Monoid, Reduce};
use crate::ops::reshape::Reshape;
use crate::ops::reshard::Reshard;
use crate::ops::select::Select;
use crate::ops::transpose::Transpose;
use crate::program::{Atom, Program};
use crate::support::{Crossing, Support};
use crate::value::{Tag, Value, Values};
use crate::vary::Vary;
use ferrax_kernel::{DType, Dims};
use smallvec::smallvec;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// A tangent or cotangent. `None` is the symbolic zero: it has no array, in any trace, ever.
pub type Tan = Option<Value>;
/// The position of the batch axis; `None`: the value is the same for the whole batch.
pub type Dim = Option<usize>;

/// The axis that a `vmap` adds: its size, its name for collectives, and the tag of its trace, by
/// which a closure that runs later (custom_jvp) can find the batch axes of the values that it
/// captured.
#[derive(Clone, Copy)]
pub struct Axis<'a> {
    pub n: usize,
    pub name: Option<&'a Name>,
    pub tag: &'a Arc<Tag>,
    pub kind: AxisKind,
}
impl Axis<'_> {
    pub fn is(&self, name: &str) -> bool {
        self.name.is_some_and(|n| **n == *name)
    }
    /// The mesh axes that types say cut the lanes.
    pub fn cut(&self) -> CutAxes {
        self.tag.lanes.get().cloned().unwrap_or_default()
    }
    /// The mesh axes that cut the lanes, where the user named any.
    pub fn spmd(&self) -> &[Name] {
        self.tag.spmd.get().map_or(&[], |names| names)
    }
}

/// An operand of a transpose rule.
pub enum Arg<'a> {
    Known(&'a Value),
    Linear(Aval),
}
impl Arg<'_> {
    pub fn is_linear(&self) -> bool {
        matches!(self, Arg::Linear(_))
    }
    pub fn cut(&self) -> TypedCut {
        match self {
            Arg::Known(v) => v.cut(),
            Arg::Linear(a) => a.cut,
        }
    }
    pub fn aval(&self) -> Aval {
        match self {
            Arg::Known(v) => v.aval(),
            Arg::Linear(a) => a.clone(),
        }
    }
    pub fn rank(&self) -> usize {
        match self {
            Arg::Known(v) => v.rank(),
            Arg::Linear(a) => a.rank(),
        }
    }
    pub fn known(&self) -> Option<&Value> {
        match self {
            Arg::Known(v) => Some(v),
            Arg::Linear(_) => None,
        }
    }
    /// The value of an operand in which the primitive is not linear.
    pub fn value(&self) -> Res<&Value> {
        self.known().ok_or_else(|| {
            Error::not_implemented("transposition with respect to an operand in which the primitive is not linear")
        })
    }
}

pub trait Cx {
    fn bind(&self, op: &Op, x: &[Value]) -> Res<Values>;
    /// `bind`, but a recording trace takes the equation as it is, without splitting known from unknown.
    fn record(&self, op: &Op, x: &[Value]) -> Res<Values>;
    fn recur(&self) -> &dyn Recur;
    fn handle(&self) -> Rc<dyn Cx>;
    /// The program under construction that emitted equations end up in; none if they are evaluated.
    fn staging(&self) -> Option<&Arc<Tag>>;
    /// The tags of the traces that an emitted equation passes through, this one first.
    fn tags(&self, out: &mut Vec<Arc<Tag>>);
    /// Whether emitted equations end up in a program, rather than being evaluated.
    fn stages(&self) -> bool {
        self.staging().is_some()
    }
    /// The equation that made a value, where it is one of the program under construction.
    fn made_by(&self, v: &Value) -> Option<(Op, Values)>;
    /// Whether this trace keeps supports beside tangents.
    fn keeps_supports(&self) -> bool;
    /// A value as a tangent, which this trace may keep a support beside.
    fn tangent(&self, v: Value) -> Value;
    /// A value with its support applied, as the trace below has it.
    fn settled(&self, v: &Value) -> Res<Value>;
    /// A value and its support, which is not applied.
    fn bare(&self, v: &Value) -> (Value, Support);
    /// A value that is zero outside of a support.
    fn supported(&self, v: Value, s: Support) -> Res<Value>;
    /// The inputs of the program under construction that a staged value depends on; none where the trace stages nothing.
    fn origins(&self, v: &Value) -> Vec<usize>;
}

/// A program and a mask over its (or its source's) inputs or outputs.
pub type Masked = (Arc<Program>, Vec<bool>);

/// Programs to programs: how a rule with bodies recurs. Implemented once, above this crate, and remembered in the program.
/// Masks are per input or output of `p`. A body is always batched on axis 0. A result may hold values that a closure's rule
/// captured (`Program::held`); `Cx::bind_body` makes operands of them.
pub trait Recur {
    /// (x.., dx where nz..) -> (y.., dy where out_nz..), group by group: each group's tangents follow its primals.
    fn jvp(&self, p: &Arc<Program>, nz: &[bool], inst: &[bool], gi: &[usize], go: &[usize]) -> Res<Masked>;
    /// Known from unknown; `force` makes an output unknown; a residual that is a known input with `fwd` is named, not output.
    fn split(&self, p: &Arc<Program>, unk: &[bool], force: &[bool], fwd: &[bool]) -> Res<Arc<KnownSplit>>;
    /// (known ins.., cts of outs where ct_nz..) -> cts of linear ins where out_nz; masks `inst`, `out_nz` are per linear input.
    fn transpose(&self, p: &Arc<Program>, lin: &[bool], ct_nz: &[bool], inst: &[bool]) -> Res<Masked>;
    /// (x.., the dx that exist.., selectors of their supports..) -> (y.., the dy that exist.., selectors..).
    fn jvp_within(&self, p: &Arc<Program>, dx: &[Option<Support<Aval>>]) -> Res<Arc<Crossing>>;
    /// (known ins.., the cts that exist.., selectors of their supports..) -> (the cts of linear ins that exist.., selectors..).
    fn transpose_within(&self, p: &Arc<Program>, lin: &[bool], ct: &[Option<Support<Aval>>]) -> Res<Arc<Crossing>>;
    fn batch(&self, p: &Arc<Program>, ax: Axis, b: &[bool], force: &[bool]) -> Res<Masked>;
    /// Builds a program by running `f` on tracers. Also returns the captured values, its leading inputs.
    fn stage(&self, ins: &[Aval], f: Body) -> Res<(Arc<Program>, Vec<Value>)>;
    /// A user function lifted over a batch.
    fn batch_fun(&self, f: &Fun, ax: Axis, lanes: Lanes) -> Fun;
}
/// How a function that is lifted over a batch is called: lanes of operands and results are on axis 0.
pub struct Lanes {
    /// Whether operand i of n has lanes.
    pub of_operand: Box<dyn Fn(usize, usize) -> bool + Send + Sync>,
    /// Maps the results to their batch axes, given which of them have one.
    pub of_results: Box<dyn Fn(&[Tan], &[bool]) -> Res<Vec<Put>> + Send + Sync>,
}
/// What happens to a result of a function that is lifted over a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Put {
    /// It has none, and none is made.
    Alone,
    /// They are on axis 0.
    Front,
    /// The sum over them.
    Sum,
}

pub type Body<'a> = &'a dyn Fn(&dyn Cx, &[Value]) -> Res<Values>;
/// (consts, one element of each tape) -> an element
pub type PerElement<'a> = &'a dyn Fn(&dyn Cx, &[Value], &[Value]) -> Res<Value>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// The input of that position, forwarded.
    In(usize),
    New,
}
/// known: (known ins) -> (known outs.., new residuals..); unknown: (residuals.., unknown ins) -> (unknown outs).
pub struct KnownSplit {
    pub known: Arc<Program>,
    pub unknown: Arc<Program>,
    pub out_unk: Vec<bool>,
    pub res: Vec<Residual>,
}

/// A function of the host language: its name, and the way to call it. A rule may take and return
/// symbolic zeros.
pub struct HostRule {
    pub name: String,
    pub call: Box<dyn Fn(&[Tan]) -> Res<Vec<Tan>> + Send + Sync>,
    /// The host's object that `call` refers to, for a host that counts references.
    pub held: Option<Held>,
}
pub type Held = Arc<dyn Any + Send + Sync>;

/// A function given by the user (a closure) or already traced (a program).
#[derive(Clone)]
pub enum Fun {
    User(Arc<HostRule>),
    Prog(Arc<Program>),
}
impl Fun {
    pub fn user(name: &str, f: impl Fn(&[Value]) -> Res<Values> + Send + Sync + 'static) -> Fun {
        Fun::user_tans(name, move |x| Ok(f(&all_values(x.iter().cloned())?)?.into_iter().map(Some).collect()))
    }
    /// A user's rule that handles symbolic zeros.
    pub fn user_tans(name: &str, f: impl Fn(&[Tan]) -> Res<Vec<Tan>> + Send + Sync + 'static) -> Fun {
        Fun::User(Arc::new(HostRule { name: name.into(), call: Box::new(f), held: None }))
    }
    /// Names the object of the host that the function, made just now, refers to.
    pub fn holding(mut self, held: Held) -> Fun {
        if let Fun::User(f) = &mut self
            && let Some(f) = Arc::get_mut(f)
        {
            f.held = Some(held);
        }
        self
    }
    /// The host's object, if nothing but this function refers to it.
    pub fn holds_alone(&self) -> Option<&Held> {
        match self {
            Fun::User(f) if Arc::strong_count(f) == 1 => f.held.as_ref().filter(|h| Arc::strong_count(h) == 2),
            _ => None,
        }
    }
    pub fn call(&self, cx: &dyn Cx, x: &[Value]) -> Res<Values> {
        match self {
            Fun::User(_) => all_values(self.call_tans(cx, &x.iter().cloned().map(Some).collect::<Vec<_>>())?),
            Fun::Prog(p) => cx.inline(p, x),
        }
    }
    /// The same where operands and results may be symbolic zeros; a program takes none.
    pub fn call_tans(&self, cx: &dyn Cx, x: &[Tan]) -> Res<Vec<Tan>> {
        match self {
            Fun::User(f) => {
                let plain = |t: &Tan| t.as_ref().map(|v| cx.settled(v)).transpose();
                let x = x.iter().map(plain).collect::<Res<Vec<Tan>>>()?;
                enter(cx.handle(), || (f.call)(&x))
            }
            Fun::Prog(p) => Ok(cx.inline(p, &all_values(x.iter().cloned())?)?.into_iter().map(Some).collect()),
        }
    }
    pub fn to_program(&self, cx: &dyn Cx, ins: &[Aval]) -> Res<(Arc<Program>, Vec<Value>)> {
        match self {
            Fun::User(_) => cx.recur().stage(ins, &|cx, x| self.call(cx, x)),
            Fun::Prog(p) => Ok((p.clone(), vec![])),
        }
    }
    pub fn prog(&self) -> Option<&Arc<Program>> {
        match self {
            Fun::User(_) => None,
            Fun::Prog(p) => Some(p),
        }
    }
    pub fn name(&self) -> &str {
        match self {
            Fun::User(f) => &f.name,
            Fun::Prog(_) => "<program>",
        }
    }
}
fn all_values(x: impl IntoIterator<Item = Tan>) -> Res<Values> {
    let known = |t: Tan| t.ok_or_else(|| Error::type_error("a symbolic zero where the function knows none"));
    x.into_iter().map(known).collect()
}
/// Closures are equal if they are the same one.
impl PartialEq for Fun {
    fn eq(&self, o: &Fun) -> bool {
        match (self, o) {
            (Fun::User(a), Fun::User(b)) => Arc::ptr_eq(a, b),
            (Fun::Prog(a), Fun::Prog(b)) => a == b,
            _ => false,
        }
    }
}
impl Eq for Fun {}
impl Hash for Fun {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self {
            Fun::User(f) => (Arc::as_ptr(f) as usize).hash(h),
            Fun::Prog(p) => p.hash(h),
        }
    }
}
impl std::fmt::Debug for Fun {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

// ---- operations for rules, in terms of `bind` ----

/// A constant of a rule. It is weak, so that the result is weak if the operands are.
pub fn lit(dtype: Dtype, x: f64) -> Value {
    let mut l = Lit::from_f64(dtype, x);
    l.weak = true;
    Value::Lit(l)
}
/// Zero as a strongly typed value: a combination with it is not weak.
pub fn zero(dtype: Dtype) -> Value {
    Value::Lit(Lit::zero(dtype))
}
pub fn int(dtype: Dtype, x: i64) -> Value {
    Value::Lit(Lit::from_i64(dtype, x))
}

impl dyn Cx + '_ {
    pub fn bind1(&self, op: impl Into<Op>, x: &[Value]) -> Res<Value> {
        one(self.bind(&op.into(), x)?)
    }
    /// Binds an op whose bodies a transform made: values that a rule's closure captured in them
    /// become operands.
    pub fn bind_body(&self, op: &Op, x: &[Value]) -> Res<Values> {
        match op.body().and_then(|b| b.lift(x)) {
            Some((op, x)) => self.bind(&op, &x),
            None => self.bind(op, x),
        }
    }
    pub fn record_body(&self, op: &Op, x: &[Value]) -> Res<Values> {
        match op.body().and_then(|b| b.lift(x)) {
            Some((op, x)) => self.record(&op, &x),
            None => self.record(op, x),
        }
    }
    /// Emits a program equation by equation. Iterative: the depth of the chain costs no stack.
    pub fn inline(&self, p: &Program, x: &[Value]) -> Res<Values> {
        self.inline_at(p, x, |line| line)
    }
    /// The same for a user's call of a program: its equations are in the scopes that are open here, then in their own beneath
    /// those that were open (`beneath`) when the program was traced. Where an equation is being transformed, no call is the user's.
    pub fn inline_here(&self, p: &Program, x: &[Value], beneath: u32) -> Res<Values> {
        if Line::is_set() { self.inline(p, x) } else { self.inline_at(p, x, |line| moved(line, beneath, None)) }
    }
    /// The same for the equations of a part of a transformed program: their scopes are beneath one of that name.
    pub fn inline_named(&self, p: &Program, x: &[Value], name: &'static str) -> Res<Values> {
        self.inline_at(p, x, |line| named(line, name))
    }
    fn inline_at(&self, p: &Program, x: &[Value], place: impl Fn(u32) -> u32) -> Res<Values> {
        if x.len() != p.n_ins() {
            return Err(Error::type_error(format!("a program of {} inputs was given {} values", p.n_ins(), x.len())));
        }
        let mut env: Vec<Value> = Vec::with_capacity(p.avals().len());
        env.extend_from_slice(p.held());
        env.extend_from_slice(x);
        let mut args = Values::new();
        let (at, _typed) = (Line::kept(), Lenient::of(x.iter().map(Value::cut)));
        for (e, line) in p.eqns().iter().zip(p.lines()) {
            at.set(place(*line));
            args.clear();
            args.extend(e.args.iter().map(|a| read(&env, a)));
            env.extend(self.bind(&e.op, &args).map_err(|e| at.blame(e))?);
        }
        Ok(p.outs().iter().map(|a| read(&env, a)).collect())
    }
    pub fn pw(&self, f: Pw, x: &[Value]) -> Res<Value> {
        self.bind1(Pointwise { f, y: 0 }, x)
    }
    pub fn pw2(&self, f: Pw, x: &Value, y: &Value) -> Res<Value> {
        self.pw(f, &[x.clone(), y.clone()])
    }
    pub fn add(&self, x: &Value, y: &Value) -> Res<Value> {
        self.pw2(Pw::Add, x, y)
    }
    pub fn sub(&self, x: &Value, y: &Value) -> Res<Value> {
        self.pw2(Pw::Sub, x, y)
    }
    pub fn mul(&self, x: &Value, y: &Value) -> Res<Value> {
        self.pw2(Pw::Mul, x, y)
    }
    pub fn div(&self, x: &Value, y: &Value) -> Res<Value> {
        self.pw2(Pw::Div, x, y)
    }
    pub fn neg(&self, x: &Value) -> Res<Value> {
        self.pw(Pw::Neg, std::slice::from_ref(x))
    }
    pub fn full(&self, l: Lit, a: &Aval) -> Res<Value> {
        if a.tape > 0 {
            return self.bind1(crate::ops::tape::EmptyTape { aval: a.clone() }, &[]);
        }
        let x = self.broadcast(&Value::Lit(l), &a.shape, &[])?;
        self.vary_over(&x, a.vary)
    }
    /// x as a value whose type says this cut, if the cut says anything.
    pub fn cut_as(&self, x: Value, cut: TypedCut) -> Res<Value> {
        if cut.is_none() || x.cut() == cut {
            return Ok(x);
        }
        let ([terms, reduced], had) = (cut.manual_sums(), x.cut().manual_sums());
        if !(terms.is_empty() && reduced.is_empty()) {
            // in a body for parts only casts say it
            let new =
                |names: Vec<Name>, had: &[Name]| names.into_iter().filter(|n| !had.contains(n)).collect::<Vec<_>>();
            let (terms, reduced) = (new(terms, &had[0]), new(reduced, &had[1]));
            let x = if terms.is_empty() { x } else { as_terms(self, &x, &terms)? };
            let cast = VaryCast { kind: CastKind::Reduced, axes: Names(reduced.into()) };
            return if cast.axes.0.is_empty() { Ok(x) } else { self.bind1(cast, &[x]) };
        }
        self.bind1(Reshard { dst_sharding: cut }, std::slice::from_ref(&x))
    }
    /// x as a value that varies over these axes besides its own.
    pub fn vary_over(&self, x: &Value, over: Vary) -> Res<Value> {
        match over.without(x.vary()) {
            Vary::NONE => Ok(x.clone()),
            rest => {
                let reduced = !x.cut().is_none() && Vary::of(x.cut().manual_sums()[1].iter().cloned()) == rest;
                let kind = if reduced { CastKind::ReducedVary } else { CastKind::Vary };
                self.bind1(VaryCast { kind, axes: Names(rest.names().into()) }, std::slice::from_ref(x))
            }
        }
    }
    /// Operands of which some vary over fewer axes than others, brought to those of all; `None` where they agree.
    pub fn vary_together(&self, x: &[Value]) -> Res<Option<Values>> {
        let Some((first, rest)) = x.split_first() else { return Ok(None) };
        let own = first.vary();
        if rest.iter().all(|v| v.vary() == own) {
            return Ok(None);
        }
        let all = x.iter().fold(own, |all, v| all | v.vary());
        x.iter().map(|v| self.vary_over(v, all)).collect::<Res<Values>>().map(Some)
    }
    pub fn zeros(&self, a: &Aval) -> Res<Value> {
        let mut zero = Lit::zero(a.dtype);
        zero.weak = a.weak;
        self.full(zero, a)
    }
    /// Materialises a symbolic zero. The only place that does.
    pub fn inst(&self, t: &Tan, a: &Aval) -> Res<Value> {
        t.clone().map_or_else(|| self.zeros(a), Ok)
    }
    /// The sum of two tangents of one type.
    pub fn add_tan(&self, a: Tan, b: Tan) -> Res<Tan> {
        Ok(match (a, b) {
            (Some(a), Some(b)) if a.tape() > 0 => {
                let sum =
                    |cx: &dyn Cx, _: &[Value], e: &[Value]| match cx.add_tan(Some(e[0].clone()), Some(e[1].clone()))? {
                        Some(v) => Ok(v),
                        None => Ok(e[0].clone()),
                    };
                Some(self.zip_tapes(&[], &[a, b], &sum)?)
            }
            (Some(a), Some(b)) => Some(self.pw2(Pw::AddAny, &a, &b)?),
            (a, b) => a.or(b),
        })
    }
    pub fn broadcast(&self, x: &Value, shape: &Dims, dims: &[usize]) -> Res<Value> {
        if *x.shape() == **shape && dims.iter().copied().eq(0..shape.len()) {
            return Ok(x.clone());
        }
        self.bind1(
            BroadcastInDim { broadcast_dimensions: dims.into(), shape: shape.clone().into() },
            std::slice::from_ref(x),
        )
    }
    /// A rank-0 value, or one with axes of size 1, repeated to `shape`.
    pub fn stretch(&self, x: &Value, shape: &Dims) -> Res<Value> {
        if *x.shape() == **shape {
            return Ok(x.clone());
        }
        self.broadcast(x, shape, &(0..x.rank()).collect::<Dims>())
    }
    pub fn reshape(&self, x: &Value, shape: &Dims) -> Res<Value> {
        if *x.shape() == **shape {
            return Ok(x.clone());
        }
        self.bind1(Reshape { new_sizes: shape.clone() }, std::slice::from_ref(x))
    }
    pub fn transpose(&self, x: &Value, perm: Dims) -> Res<Value> {
        if perm.iter().copied().eq(0..perm.len()) {
            return Ok(x.clone());
        }
        self.bind1(Transpose { permutation: perm }, std::slice::from_ref(x))
    }
    pub fn move_axis(&self, x: &Value, from: usize, to: usize) -> Res<Value> {
        if x.tape() > 0 || from == to {
            // A tape's batch axis is axis 0 of its elements.
            return Ok(x.clone());
        }
        let perm: Dims = (0..x.rank()).filter(|i| *i != from).collect();
        self.transpose(x, perm.insert(to, from))
    }
    fn zip_tapes(&self, consts: &[Value], tapes: &[Value], f: PerElement) -> Res<Value> {
        crate::ops::tape::zip_tapes(&*self.handle(), consts, tapes, f)
    }
    /// Repeats `x` along a new axis.
    pub fn expand(&self, x: &Value, n: usize, at: usize) -> Res<Value> {
        if x.tape() > 0 {
            return self.zip_tapes(&[], std::slice::from_ref(x), &|cx, _, e| cx.expand(&e[0], n, at));
        }
        let shape = Dims::new(x.shape()).insert(at, n);
        let dims: Dims = (0..shape.len()).filter(|i| *i != at).collect();
        self.broadcast(x, &shape, &dims)
    }
    /// The batch axis brought to `at`, or made there.
    pub fn batch_at(&self, x: &Value, d: Dim, n: usize, at: usize) -> Res<Value> {
        match d {
            Some(d) => self.move_axis(x, d, at),
            None => self.expand(x, n, at),
        }
    }
    /// The batch axis, where there is one, brought to 0.
    pub fn to_front(&self, x: &Value, d: Dim) -> Res<Value> {
        d.map_or(Ok(x.clone()), |d| self.move_axis(x, d, 0))
    }
    pub fn reduce(&self, kind: Monoid, x: &Value, axes: Dims) -> Res<Value> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        self.bind1(Reduce { kind, axes }, std::slice::from_ref(x))
    }
    /// Undoes implicit broadcasting: the sum of `x` over the axes along which a value of type `a`
    /// was repeated.
    pub fn sum_to(&self, x: Value, a: &Aval) -> Res<Value> {
        if *x.shape() == *a.shape {
            return Ok(x);
        }
        if a.rank() == 0 {
            return self.reduce(Monoid::Sum, &x, (0..x.rank()).collect());
        }
        let axes = (0..x.rank()).filter(|i| x.shape()[*i] != a.shape[*i]).collect();
        let sum = self.reduce(Monoid::Sum, &x, axes)?;
        self.reshape(&sum, &a.shape)
    }
    pub fn select(&self, p: &Value, on_false: &Value, on_true: &Value) -> Res<Value> {
        self.bind1(Select {}, &[p.clone(), on_false.clone(), on_true.clone()])
    }
    /// `select` by lane: `p` is `bool[n]`, the others have the lanes on axis 0.
    pub fn select_lanes(&self, p: &Value, on_false: &Value, on_true: &Value) -> Res<Value> {
        if on_true.tape() > 0 {
            let lanes = |cx: &dyn Cx, p: &[Value], e: &[Value]| cx.select_lanes(&p[0], &e[0], &e[1]);
            return self.zip_tapes(std::slice::from_ref(p), &[on_false.clone(), on_true.clone()], &lanes);
        }
        let p = self.broadcast(p, &Dims::new(on_true.shape()), &[0])?;
        self.select(&p, on_false, on_true)
    }
    pub fn convert(&self, x: &Value, dtype: Dtype) -> Res<Value> {
        if x.dtype() == dtype {
            return Ok(x.clone());
        }
        self.bind1(Convert { new_dtype: dtype, weak_type: false }, std::slice::from_ref(x))
    }
}

/// The one result of an op that has one.
pub fn one(mut v: Values) -> Res<Value> {
    match (v.pop(), v.is_empty()) {
        (Some(v), true) => Ok(v),
        _ => Err(Error::new(ErrorKind::Runtime, "a primitive with one output returned another number of them")),
    }
}
pub fn values1(v: Value) -> Values {
    smallvec![v]
}
pub fn truth(x: bool) -> Value {
    Value::Lit(Lit::from_i64(Dtype::Num(DType::Bool), x as i64))
}

pub fn read(env: &[Value], a: &Atom) -> Value {
    match a {
        Atom::Var(v) => env[*v as usize].clone(),
        Atom::Lit(l) => Value::Lit(*l),
    }
}
