//! Eager evaluation: the root of every stack of traces. One primitive is a program of one equation,
//! compiled once per type.
use crate::array;
use crate::compiled::Compiled;
use crate::device::{Device, default_device, numbered};
use crate::instead;
use crate::key_reuse::{self, KeyCall};
use crate::parts::Layout;
use crate::spmd::{self, Where};
use ferrax_ir::error::Res;
use ferrax_ir::host;
use ferrax_ir::ops::callback::CallbackKind;
use ferrax_ir::ops::device_put::DevicePut;
use ferrax_ir::ops::sharding_constraint::ShardingConstraint;
use ferrax_ir::program::{Atom, Eqn};
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Op, Program, Value};
use ferrax_transform::trace::{Executor, Trace};
use rustc_hash::{FxHashMap, FxHasher};
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

struct Entry {
    op: Op,
    ins: Vec<Aval>,
    device: usize,
    compiled: Rc<Compiled>,
    used: u64,
}

/// Compiled primitives of this thread. Bounded: programs that never repeat a shape do not grow it for ever.
#[derive(Default)]
struct Cache {
    map: FxHashMap<u64, Vec<Entry>>,
    len: usize,
    clock: u64,
}
const MAX_ENTRIES: usize = 4096;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
    static DEFAULT: Cell<Option<&'static Device>> = const { Cell::new(None) };
}

/// The device that this thread's unplaced results go to.
pub fn set_default_device(d: Option<&'static Device>) {
    DEFAULT.set(d);
}
pub fn current_device() -> &'static Device {
    DEFAULT.get().unwrap_or_else(default_device)
}
/// Forgets all compiled primitives of this thread.
pub fn clear_cache() {
    spmd::clear_cache();
    drop(CACHE.with(|c| c.take())); // not while it is borrowed: a callback's finaliser may compute
}

pub struct Eager;

/// Makes eager evaluation the root of every thread's traces. Idempotent.
pub fn init() {
    ferrax_transform::install(|| Trace::eval(Rc::new(Eager)));
}

impl Executor for Eager {
    fn run(&self, op: &Op, x: &[Value]) -> Res<Values> {
        if let Some(out) = instead::run(op, x) {
            return out;
        }
        if let Some(s) = op.spread() {
            return crate::pmap::run(&s, x);
        }
        if let Op::DevicePut(p) = op {
            return moved(p, x);
        }
        if let Op::Callback(c) = op
            && matches!(c.kind, CallbackKind::Debug | CallbackKind::Print)
        {
            // effects happen immediately, whatever they have to wait for
            x.iter().try_for_each(ready)?;
        }
        if let Op::ShardingConstraint(c) = op {
            return constrained(c, x);
        }
        if let Some(place) = op.body().and_then(|_| spmd::mesh_of_bodies(op)) {
            let made = spmd::equation(op, x, &place, |ins| single(op, ins))?;
            return Ok(made.into_iter().map(Value::Array).collect());
        }
        if let Op::Reshard(r) = op
            && !matches!(spmd::place_of(x)?, Some(Where::Mesh(_)))
        {
            return laid_out(Layout::of_cut(r.dst_sharding), x);
        }
        let device = match spmd::place_of(x)? {
            Some(Where::Mesh(place)) => {
                let made = spmd::equation(op, x, &place, |ins| single(op, ins))?;
                return Ok(made.into_iter().map(Value::Array).collect());
            }
            Some(Where::One(d)) => d,
            None if let Some(place) = spmd::in_use() => {
                let made = spmd::equation(op, x, &place, |ins| single(op, ins))?;
                return Ok(made.into_iter().map(Value::Array).collect());
            }
            None => current_device(),
        };
        // A cached program refers to nothing that a user's rule captures.
        let bare = if op.body().is_some() { host::without_rules(op)? } else { None };
        let op = bare.as_ref().unwrap_or(op);
        let run =
            || -> Res<Values> { Ok(compiled(op, x, device)?.run(x, &[])?.into_iter().map(Value::Array).collect()) };
        if (x.iter().any(|v| v.dtype().is_key()) || op.body().is_some()) && key_reuse::wanted() {
            let call = KeyCall::of_op(op, &x.iter().collect::<Vec<_>>())?;
            let out = run()?;
            call.end(&out);
            return Ok(out);
        }
        run()
    }
}

/// Waits for an array that is not there yet.
fn ready(v: &Value) -> Res<()> {
    let Value::Array(a) = v else { return Ok(()) };
    array::shards(a)?.iter().try_for_each(|s| array::wait(&s.buffer))
}

/// The operand with the layout of a constraint, on the devices that it names or else on its own.
fn constrained(c: &ShardingConstraint, x: &[Value]) -> Res<Values> {
    laid_out(Layout::of_constraint(c), x)
}
fn laid_out(to: Option<Layout>, x: &[Value]) -> Res<Values> {
    let Some(to) = to.map(Arc::new) else { return Ok(x.into()) };
    let one = |v: &Value| match v {
        Value::Array(a) => Ok(Value::Array(spmd::lay_out(a, &to)?)),
        Value::Lit(l) => Ok(Value::Array(array::lay_out(&array::from_lit(l, to.devices()[0])?, &to)?)),
        Value::Tracer(_) => Err(v.leaked()),
    };
    x.iter().map(one).collect()
}

/// The operand on the device of a `device_put`; a placement without a device changes nothing.
fn moved(p: &DevicePut, x: &[Value]) -> Res<Values> {
    let to = p.devices.0.first().and_then(|id| numbered(*id));
    let one = |v: &Value| match (v, to) {
        (Value::Array(a), Some(to)) => Ok(Value::Array(array::put(a, to, true)?)),
        (Value::Lit(l), Some(to)) => Ok(Value::Array(array::put(&array::from_lit(l, to)?, to, true)?)),
        (v, _) => Ok(v.clone()),
    };
    x.iter().map(one).collect()
}

fn compiled(op: &Op, x: &[Value], device: &'static Device) -> Res<Rc<Compiled>> {
    let mut h = FxHasher::default();
    op.hash(&mut h);
    for v in x {
        v.shape().hash(&mut h);
        v.dtype().hash(&mut h);
        v.weak().hash(&mut h);
    }
    let key = h.finish();
    let hit = CACHE.with(|c| {
        let c = &mut *c.borrow_mut();
        c.clock += 1;
        let same = |e: &&mut Entry| {
            e.device == device.id
                && e.op == *op
                && e.ins.len() == x.len()
                && e.ins.iter().zip(x).all(|(a, v)| {
                    a.dtype == v.dtype() && *a.shape == *v.shape() && a.weak == v.weak() && a.tape == v.tape()
                })
        };
        let e = c.map.get_mut(&key)?.iter_mut().find(same)?;
        e.used = c.clock;
        Some(e.compiled.clone())
    });
    if let Some(c) = hit {
        return Ok(c);
    }
    let ins: Vec<Aval> = x.iter().map(Value::aval).collect();
    let compiled = Rc::new(Compiled::new(Arc::new(single(op, &ins)?), device)?);
    let mut refers = false;
    host::objects_of(op, &mut |_| refers = true);
    if refers {
        return Ok(compiled); // not cached: it would keep the captures of callbacks alive
    }
    CACHE.with(|c| {
        let c = &mut *c.borrow_mut();
        let old = if c.len >= MAX_ENTRIES { c.evict() } else { vec![] };
        c.len += 1;
        let used = c.clock;
        c.map.entry(key).or_default().push(Entry {
            op: op.clone(),
            ins,
            device: device.id,
            compiled: compiled.clone(),
            used,
        });
        old // dropped when the cache is no longer borrowed: a callback's finaliser may compute
    });
    Ok(compiled)
}

/// The program of one equation.
fn single(op: &Op, ins: &[Aval]) -> Res<Program> {
    let outs = op.results(ins)?;
    let n = ins.len() as u32;
    let eqn = Eqn { op: op.clone(), args: (0..n).map(Atom::Var).collect(), n_out: outs.len() as u32 };
    let vars = (n..n + outs.len() as u32).map(Atom::Var).collect();
    Program::new(0, ins.len(), ins.iter().cloned().chain(outs).collect(), vec![eqn], vars, vec![])
}

impl Cache {
    /// Takes out the half that was used longest ago.
    fn evict(&mut self) -> Vec<Entry> {
        let mut ages: Vec<u64> = self.map.values().flatten().map(|e| e.used).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 2];
        let mut old = vec![];
        self.map.retain(|_, v| {
            old.extend(v.extract_if(.., |e| e.used <= limit));
            !v.is_empty()
        });
        self.len = self.map.values().map(Vec::len).sum();
        old
    }
}

/// A value of zeros of a type.
pub fn zeros(a: &Aval) -> Res<Value> {
    let p = ferrax_ir::lower::physical(a);
    let bytes = p.shape.checked(p.dtype.size())?;
    let d = current_device();
    Ok(Value::Array(array::array(a.clone(), d, d.backend.zeros(bytes)?, false)))
}
