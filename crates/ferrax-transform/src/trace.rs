//! The traces. Each is a `Cx`; all but Eval and Stage pass what they emit to a parent.
//!
//! ```text
//! Eval     runs ops on arrays                                  (root)
//! Stage    adds equations to a program; foreign values become captured inputs
//! Jvp      values are primal + tangent; rules emit to the parent
//! Record   the linear half of linearize: ops that touch its tracers are recorded, all others go to the parent.
//!          linearize(f) = Jvp over Record: the same jvp rules, their primal halves run, their tangent halves are kept
//! Batch    values carry a batch axis
//! Support  tangents carry where they are zero by structure; masks are applied last
//! Fold     the root evaluates known operations; the others go to the enclosing trace
//! ```
//!
//! INVARIANT: a trace looks only inside its own tracers; any other value is a constant to it and is passed to the parent unchanged.
//! This rule alone covers closures over outer tracers, nesting and perturbation confusion: no levels are compared.
pub mod programs;

use ferrax_ir::cut::Lenient;
use ferrax_ir::cx::{Axis, AxisKind, Cx, Dim, Recur, Tan, is_manual};
use ferrax_ir::effects::Name;
use ferrax_ir::op::{Avals, Tans};
use ferrax_ir::program::{Atom, Builder};
use ferrax_ir::support::Support;
use ferrax_ir::value::{Tag, TracerNode, Values};
use ferrax_ir::vary::Vary;
use ferrax_ir::{Aval, Error, Op, Program, Res, Value};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs ops on arrays.
pub trait Executor {
    fn run(&self, op: &Op, x: &[Value]) -> Res<Values>;
}

pub struct Trace {
    me: Weak<Trace>,
    pub tag: Arc<Tag>,
    kind: TraceKind,
    borrowed_tag: bool,
}
/// Tracers hold the tag and not the trace, so a trace ends where its transform returns, errors and panics included.
impl Drop for Trace {
    fn drop(&mut self) {
        if !self.borrowed_tag {
            self.tag.alive.store(false, Ordering::Relaxed);
        }
    }
}

enum TraceKind {
    Eval(Rc<dyn Executor>),
    Stage(RefCell<Builder>),
    Record(Rc<dyn Cx>, RefCell<Builder>),
    Jvp(Rc<dyn Cx>),
    Batch(Rc<dyn Cx>, usize, Option<Name>, AxisKind),
    /// `true`: every value that depends on a tangent is a tangent.
    Support(Rc<dyn Cx>, bool),
    Fold(Rc<dyn Cx>, Rc<dyn Cx>),
}

impl Trace {
    fn new(what: &'static str, kind: TraceKind) -> Rc<Trace> {
        let tag = Tag::new(what);
        Rc::new_cyclic(|me| Trace { me: me.clone(), tag, kind, borrowed_tag: false })
    }
    pub fn eval(e: Rc<dyn Executor>) -> Rc<Trace> {
        Trace::new("eval", TraceKind::Eval(e))
    }
    pub fn stage() -> Rc<Trace> {
        Trace::new("jit", TraceKind::Stage(RefCell::default()))
    }
    /// Staging that keeps dead equations.
    pub fn stage_all() -> Rc<Trace> {
        Trace::new("jit", TraceKind::Stage(RefCell::new(Builder::keeping_dead())))
    }
    pub fn record(parent: Rc<dyn Cx>) -> Rc<Trace> {
        Trace::new("grad", TraceKind::Record(parent, RefCell::new(Builder::keeping_arrays())))
    }
    /// `what` names the user's transform: jvp, or grad, whose values are those of its jvp.
    pub fn jvp(parent: Rc<dyn Cx>, what: &'static str) -> Rc<Trace> {
        Trace::new(what, TraceKind::Jvp(parent))
    }
    pub fn batch(parent: Rc<dyn Cx>, n: usize, name: Option<Name>, kind: AxisKind) -> Rc<Trace> {
        Trace::new("vmap", TraceKind::Batch(parent, n, name, kind))
    }
    /// Operations that are linear in the tracers; `all`: every result that depends on one is a
    /// tangent, as in the programs of `linearize`. `what` names the origin of the tangents: a call
    /// of jvp, of grad, or a staged program.
    pub fn support(parent: Rc<dyn Cx>, all: bool, what: &'static str) -> Rc<Trace> {
        Trace::new(what, TraceKind::Support(parent, all))
    }
    /// Operations on known values run at once, by `root`; those that touch a tracer go to `outer`.
    pub fn fold(root: Rc<dyn Cx>, outer: Rc<dyn Cx>) -> Rc<Trace> {
        Trace::new("ensure_compile_time_eval", TraceKind::Fold(root, outer))
    }
    /// The trace of a tag once more, over another parent: it owns the values of the first.
    pub fn batch_again(parent: Rc<dyn Cx>, n: usize, name: Option<Name>, tag: Arc<Tag>, kind: AxisKind) -> Rc<Trace> {
        let kind = TraceKind::Batch(parent, n, name, kind);
        Rc::new_cyclic(|me| Trace { me: me.clone(), tag, kind, borrowed_tag: true })
    }

    fn node<'a>(&self, v: &'a Value) -> Option<&'a TracerNode> {
        match v {
            Value::Tracer(t) if Arc::ptr_eq(&t.0.tag, &self.tag) => Some(&t.0.node),
            _ => None,
        }
    }
    fn owns_any(&self, x: &[Value]) -> bool {
        x.iter().any(|v| self.node(v).is_some())
    }
    pub fn owns(&self, v: &Value) -> bool {
        self.node(v).is_some()
    }

    // ---- Jvp ----
    pub fn dual(&self, primal: Value, tangent: Tan) -> Value {
        match tangent {
            Some(tangent) if let TraceKind::Jvp(parent) = &self.kind => {
                let tangent = parent.tangent(tangent);
                Value::tracer(&self.tag, primal.aval(), TracerNode::Dual { primal, tangent })
            }
            Some(tangent) => Value::tracer(&self.tag, primal.aval(), TracerNode::Dual { primal, tangent }),
            None => primal,
        }
    }
    pub fn undual(&self, v: &Value) -> (Value, Tan) {
        match self.node(v) {
            Some(TracerNode::Dual { primal, tangent }) => (primal.clone(), Some(tangent.clone())),
            _ => (v.clone(), None),
        }
    }

    // ---- Support ----
    fn within(&self, val: Value, support: Support) -> Value {
        Value::tracer(&self.tag, val.aval(), TracerNode::Within { val, support })
    }
    /// The results of an op of which some operands are tangents.
    fn bind_within(&self, parent: &dyn Cx, all: bool, op: &Op, x: &[Value]) -> Res<Values> {
        if let Some(body) = op.inlined().filter(|_| all) {
            return self.as_cx().inline(body, x);
        }
        let mut vals = Values::new();
        let mut supports = SmallVec::<[Option<Support>; 2]>::new();
        for v in x {
            let (val, support) = match self.node(v) {
                Some(TracerNode::Within { val, support }) => (val.clone(), Some(support.clone())),
                _ => (v.clone(), None),
            };
            vals.push(val);
            supports.push(support);
        }
        if let Some((y, s)) = op.rules().within(parent, &vals, &supports)? {
            let back = |(y, s): (Value, Option<Support>)| match s {
                Some(s) => self.within(y, s),
                None => y,
            };
            return Ok(y.into_iter().zip(s).map(back).collect());
        }
        for (v, s) in vals.iter_mut().zip(&supports) {
            if let Some(s) = s {
                *v = s.apply(parent, v)?;
            }
        }
        let tangents = all || op.pure();
        let wrap = |y: Value| if tangents && y.has_tangent() { self.within(y, Support::everywhere()) } else { y };
        Ok(parent.bind(op, &vals)?.into_iter().map(wrap).collect())
    }

    // ---- Batch ----
    pub fn lanes(&self, val: Value, dim: Dim) -> Value {
        match dim {
            Some(dim) => {
                let mut aval = val.aval().unbatched(dim);
                if let TraceKind::Batch(_, _, Some(name), AxisKind::Manual) = &self.kind {
                    aval.vary = aval.vary | Vary::over(name);
                }
                Value::tracer(&self.tag, aval, TracerNode::Batched { val, dim })
            }
            None => val,
        }
    }
    pub fn unlanes(&self, v: &Value) -> (Value, Dim) {
        match self.node(v) {
            Some(TracerNode::Batched { val, dim }) => (val.clone(), Some(*dim)),
            _ => (v.clone(), None),
        }
    }

    // ---- Stage, Record ----
    fn builder(&self) -> &RefCell<Builder> {
        match &self.kind {
            TraceKind::Stage(b) | TraceKind::Record(_, b) => b,
            _ => unreachable!("only stage and record build programs"),
        }
    }
    pub fn new_in(&self, a: Aval) -> Value {
        let v = self.builder().borrow_mut().new_in(a.clone());
        Value::tracer(&self.tag, a, TracerNode::Var(v, 0))
    }
    fn atom(&self, b: &mut Builder, v: &Value) -> Atom {
        match self.node(v) {
            Some(TracerNode::Var(v, _)) => Atom::Var(*v),
            _ => b.capture(v),
        }
    }
    /// The operands as the op requires them: for a first-order op, and for one that solves, all
    /// vary over the axes that any varies over.
    fn together(&self, op: &Op, x: &[Value]) -> Res<Option<Values>> {
        let all = op.pure() || op.body().is_some_and(|b| b.vary_alike());
        let cast = if all { self.as_cx().vary_together(x)? } else { None };
        // a program of parts has no such axes in scope
        let in_body = || x.iter().any(|v| v.vary().names().iter().any(|n| is_manual(n)));
        if cast.is_some() && ferrax_ir::settings::casts_by_hand() && in_body() {
            let set = |v: &Value| {
                let names: Vec<String> = v.vary().in_order().iter().map(|n| format!("'{n}'")).collect();
                if names.is_empty() { "frozenset()".into() } else { format!("frozenset({{{}}})", names.join(", ")) }
            };
            return Err(Error::value(format!(
                "Primitive {} requires varying manual axes to match, but got [{}]: cast them by `jax.lax.pcast`, or pass check_vma=False to \
                 `jax.shard_map`",
                op.name(),
                x.iter().map(set).collect::<Vec<String>>().join(", ")
            )));
        }
        Ok(cast)
    }
    /// Equations that rules emit were typed when the user wrote them: nothing is refused where an
    /// operand is cut.
    fn typed(&self, op: &Op, x: &[Value]) -> Res<Option<Lenient>> {
        if op.pure() && x.iter().any(|v| !v.cut().is_none()) {
            op.results(&x.iter().map(Value::aval).collect::<Avals>())?;
        }
        Ok(Lenient::of(x.iter().map(Value::cut)))
    }
    fn as_cx(&self) -> &dyn Cx {
        self
    }
    fn push(&self, op: &Op, x: &[Value]) -> Res<Values> {
        if let Some(x) = self.together(op, x)? {
            return self.push(op, &x);
        }
        let ins: Avals = x.iter().map(Value::aval).collect();
        let outs = op.results(&ins)?;
        let line = if self.stages() { ferrax_ir::cx::line() } else { 0 };
        let mut b = self.builder().borrow_mut();
        let args = x.iter().map(|v| self.atom(&mut b, v)).collect();
        let first = b.push(op, args, &outs, line);
        Ok((first..).zip(outs).map(|(v, a)| Value::tracer(&self.tag, a, TracerNode::Var(v, line))).collect())
    }
    /// Ends the trace. Returns the program and its captured values, which are its leading inputs.
    pub fn close(&self, outs: &[Value]) -> Res<(Program, Vec<Value>)> {
        self.tag.alive.store(false, Ordering::Relaxed);
        let mut b = self.builder().take();
        for v in outs.iter().filter(|v| !self.owns(v)) {
            v.check_alive()?;
        }
        let outs = outs.iter().map(|v| self.atom(&mut b, v)).collect();
        let (program, captured) = b.close(outs);
        ferrax_ir::checks::built(&program)?;
        Ok((program, captured))
    }
    /// Runs user code under this trace.
    pub fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        ferrax_ir::enter(self.handle(), f)
    }
}

impl Cx for Trace {
    fn handle(&self) -> Rc<dyn Cx> {
        match self.me.upgrade() {
            Some(me) => me,
            None => unreachable!("a trace outlives the calls made on it"),
        }
    }
    fn recur(&self) -> &dyn Recur {
        &programs::Transforms
    }
    fn tags(&self, out: &mut Vec<Arc<Tag>>) {
        out.push(self.tag.clone());
        match &self.kind {
            TraceKind::Eval(_) | TraceKind::Stage(_) => {}
            TraceKind::Record(parent, _)
            | TraceKind::Jvp(parent)
            | TraceKind::Batch(parent, ..)
            | TraceKind::Support(parent, _)
            | TraceKind::Fold(_, parent) => parent.tags(out),
        }
    }
    fn staging(&self) -> Option<&Arc<Tag>> {
        match &self.kind {
            TraceKind::Eval(_) => None,
            TraceKind::Stage(_) => Some(&self.tag),
            TraceKind::Record(parent, _)
            | TraceKind::Jvp(parent)
            | TraceKind::Batch(parent, ..)
            | TraceKind::Support(parent, _)
            | TraceKind::Fold(_, parent) => parent.staging(),
        }
    }
    fn made_by(&self, v: &Value) -> Option<(Op, Values)> {
        let below = match (&self.kind, self.node(v)) {
            (TraceKind::Stage(b), Some(TracerNode::Var(i, line))) => {
                let b = b.borrow();
                let e = b.maker(*i)?;
                let value = |a: &Atom| match a {
                    Atom::Lit(l) => Value::Lit(*l),
                    Atom::Var(v) => match b.captured(*v) {
                        (Some(v), _) => v.clone(),
                        (None, a) => Value::tracer(&self.tag, a.clone(), TracerNode::Var(*v, *line)),
                    },
                };
                return Some((e.op.clone(), e.args.iter().map(value).collect()));
            }
            (TraceKind::Record(parent, _), None)
            | (TraceKind::Jvp(parent), None)
            | (TraceKind::Support(parent, _), None) => parent,
            _ => return None,
        };
        below.made_by(v)
    }
    fn keeps_supports(&self) -> bool {
        matches!(self.kind, TraceKind::Support(..))
    }
    fn tangent(&self, v: Value) -> Value {
        match &self.kind {
            TraceKind::Support(..) if !self.owns(&v) => self.within(v, Support::everywhere()),
            _ => v,
        }
    }
    fn settled(&self, v: &Value) -> Res<Value> {
        match (&self.kind, self.node(v)) {
            (TraceKind::Support(parent, _), Some(TracerNode::Within { val, support })) => support.apply(&**parent, val),
            _ => Ok(v.clone()),
        }
    }
    fn bare(&self, v: &Value) -> (Value, Support) {
        match self.node(v) {
            Some(TracerNode::Within { val, support }) => (val.clone(), support.clone()),
            _ => (v.clone(), Support::everywhere()),
        }
    }
    fn supported(&self, v: Value, s: Support) -> Res<Value> {
        match &self.kind {
            TraceKind::Support(..) => Ok(self.within(v, s)),
            _ => s.apply(self, &v),
        }
    }
    fn origins(&self, v: &Value) -> Vec<usize> {
        match (&self.kind, self.node(v)) {
            (TraceKind::Stage(b), Some(TracerNode::Var(v, _))) => b.borrow().origins(*v),
            _ => vec![],
        }
    }
    fn record(&self, op: &Op, x: &[Value]) -> Res<Values> {
        match &self.kind {
            TraceKind::Record(parent, _) => {
                if !self.owns_any(x) {
                    return parent.bind(op, x);
                }
                self.push(op, x)
            }
            _ => self.bind(op, x),
        }
    }
    fn bind(&self, op: &Op, x: &[Value]) -> Res<Values> {
        match &self.kind {
            TraceKind::Eval(e) => {
                if let Some(v) = x.iter().find(|v| v.is_tracer()) {
                    return Err(v.leaked());
                }
                match op.means() {
                    Some(f) => f.call(self, x),
                    None => e.run(op, x),
                }
            }
            TraceKind::Stage(_) => match op.body() {
                Some(b) => match b.stage(self, x)? {
                    Some((op, x)) => self.push(&op, &x),
                    None => self.push(op, x),
                },
                None => self.push(op, x),
            },
            TraceKind::Record(parent, _) => {
                if !self.owns_any(x) {
                    return parent.bind(op, x);
                }
                let Some(body) = op.body() else { return self.push(op, x) };
                let unk: Vec<bool> = x.iter().map(|v| self.owns(v)).collect();
                body.split(&**parent, self, x, &unk)
            }
            TraceKind::Jvp(parent) => {
                if !self.owns_any(x) {
                    return parent.bind(op, x);
                }
                if let Some(x) = self.together(op, x)? {
                    return self.bind(op, &x);
                }
                let _typed = self.typed(op, x)?;
                let (mut p, mut t) = (Values::new(), Tans::new());
                for v in x {
                    let (primal, tangent) = self.undual(v);
                    p.push(primal);
                    t.push(tangent);
                }
                let (y, dy) = op.rules().jvp(&**parent, &p, &t)?;
                Ok(y.into_iter().zip(dy).map(|(y, dy)| self.dual(y, dy)).collect())
            }
            TraceKind::Batch(parent, n, name, kind) => {
                // a closure may capture batched values, and programs have types that record which
                // values vary over a manual axis
                let typed = kind.is_manual() && op.body().is_some();
                let used = name.as_ref().is_some_and(|name| op.uses_axis(name));
                if !self.owns_any(x) && !used && !typed && !op.is_closure() {
                    return parent.bind(op, x);
                }
                let (mut v, mut d) = (Values::new(), SmallVec::<[Dim; 2]>::new());
                for a in x {
                    let (val, dim) = self.unlanes(a);
                    v.push(val);
                    d.push(dim);
                }
                let _typed = self.typed(op, x)?;
                let (y, dy) = op.rules().batch(
                    &**parent,
                    Axis { n: *n, name: name.as_ref(), tag: &self.tag, kind: *kind },
                    &v,
                    &d,
                )?;
                Ok(y.into_iter().zip(dy).map(|(y, d)| self.lanes(y, d)).collect())
            }
            TraceKind::Support(parent, all) => {
                if !self.owns_any(x) {
                    return parent.bind(op, x);
                }
                self.bind_within(&**parent, *all, op, x)
            }
            TraceKind::Fold(root, outer) => {
                if x.iter().any(Value::is_tracer) {
                    return outer.bind(op, x);
                }
                match op.means() {
                    Some(f) => f.call(self, x),
                    None => root.bind(op, x),
                }
            }
        }
    }
}
