//! Programs over sharded arrays: partitioned once for the layouts of their inputs, then run by every device of the mesh.
//!
//! ```text
//! f(x in parts, y whole)  --layouts-->  partition  -->  one compiled program  -->  a run in each device's queue  -->  parts
//! ```
//!
//! INVARIANT: the runs of one call are enqueued together, as members of one gang; a small program without collectives runs on the calling thread.
use crate::array::{self, Shard};
use crate::compiled::{Arrays, Compiled};
use crate::device::Device;
use crate::parts::{DeviceMesh, Layout};
use crate::processes::{self, ProgramText};
use crate::runtime::{self, NEVER, Order, RunArgs};
use crate::world::{Mesh, Moved, Remote};
use ferrax_ir::error::{Error, Res};
use ferrax_ir::layout::Spec;
use ferrax_ir::program::Atom;
use ferrax_ir::value::Array;
use ferrax_ir::{Aval, Op, Program, Value, host};
use ferrax_kernel::RunCx;
use ferrax_kernel::backend::{Buffers, RunArg};
use ferrax_kernel::plan::{Communication, Exchange};
use ferrax_transform::partition::{Gathered, partition};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Where a computation happens.
pub enum Where {
    One(&'static Device),
    /// On the mesh of this layout.
    Mesh(Arc<Layout>),
}

/// The place that values require: the mesh of those in parts, else the device of those that are committed.
pub fn place_of<V: Borrow<Value>>(x: &[V]) -> Res<Option<Where>> {
    let mut found: Option<(usize, Where)> = None;
    for (i, v) in x.iter().enumerate() {
        let Value::Array(a) = v.borrow() else { continue };
        let d = array::data(a)?;
        if !d.committed {
            continue;
        }
        let here = |l: &Option<Arc<Layout>>| match l {
            Some(l) => Where::Mesh(l.clone()),
            None => Where::One(d.device),
        };
        match (&found, &d.layout) {
            (None, l) => found = Some((i, here(l))),
            (Some((_, Where::One(f))), None) if *f == d.device => (),
            (Some((_, Where::One(f))), Some(l)) if l.devices() == [*f] => found = Some((i, here(&d.layout))),
            (Some((_, Where::Mesh(m))), None) if m.devices() == [d.device] => (),
            (Some((_, Where::Mesh(m))), Some(l)) if Arc::ptr_eq(&m.mesh, &l.mesh) || m.devices() == l.devices() => (),
            (Some((j, _)), _) => return Err(incompatible(x[*j].borrow(), *j, v.borrow(), i)),
        }
    }
    found.map(|(i, place)| beside_in_use(x[i].borrow(), i, place)).transpose()
}
/// The place; if a mesh is in use, it must be that mesh.
fn beside_in_use(x: &Value, i: usize, place: Where) -> Res<Where> {
    let Some(mesh) = in_use() else { return Ok(place) };
    let same = match &place {
        Where::One(d) => mesh.devices() == [*d],
        Where::Mesh(l) => mesh.devices() == l.devices(),
    };
    if same {
        return Ok(place);
    }
    let ids: Vec<String> = mesh.devices().iter().map(|d| d.index.to_string()).collect();
    let platform = mesh.devices()[0].platform().to_uppercase();
    Err(Error::value(format!(
        "Received incompatible devices for jitted computation. Got {} and jit's context mesh with device ids [{}] on platform {platform}",
        told(x, i),
        ids.join(", ")
    )))
}
fn told(v: &Value, i: usize) -> String {
    let shards = if let Value::Array(a) = v { array::shards(a).unwrap_or_default() } else { vec![] };
    let ids: Vec<String> = shards.iter().map(|s| s.device.index.to_string()).collect();
    let platform = shards.first().map_or(String::new(), |s| s.device.platform().to_uppercase());
    let ids = ids.join(", ");
    format!("argument {i} with shape {} and with device ids [{ids}] on platform {platform}", v.aval().long())
}
/// As [`place_of`], for a computation on one device: arrays in parts are brought to their first device.
pub fn device_of<V: Borrow<Value>>(x: &[V], default: &'static Device) -> Res<&'static Device> {
    Ok(match place_of(x)? {
        Some(Where::Mesh(l)) => l.devices()[0],
        Some(Where::One(d)) => d,
        None => default,
    })
}
fn incompatible(x: &Value, i: usize, y: &Value, j: usize) -> Error {
    Error::value(format!(
        "Received incompatible devices for jitted computation. Got {} and {}\nhelp: move one of them with device_put",
        told(x, i),
        told(y, j)
    ))
}

/// The mesh that a program names, if it names devices: the mesh of a `shard_map`, whose axes its body names, else that of a constraint.
pub fn mesh_of_program(p: &Program) -> Option<Arc<Layout>> {
    let bodies = || p.eqns().iter().find_map(|e| mesh_of_bodies(&e.op));
    bodies().or_else(|| mesh_of_constraints(p))
}
/// The mesh of a `shard_map`: of this op, or of one within it.
pub fn mesh_of_bodies(op: &Op) -> Option<Arc<Layout>> {
    match op {
        Op::ShardMap(s) => Layout::of_shard_map(s).map(Arc::new),
        op => op.bodies().iter().find_map(|b| b.eqns().iter().find_map(|e| mesh_of_bodies(&e.op))),
    }
}
fn mesh_of_constraints(p: &Program) -> Option<Arc<Layout>> {
    p.eqns().iter().find_map(|e| match &e.op {
        Op::ShardingConstraint(c) => Layout::of_constraint(c).map(Arc::new),
        Op::Reshard(r) => Layout::of_cut(r.dst_sharding).map(Arc::new),
        op => op.bodies().iter().find_map(|b| mesh_of_constraints(b)),
    })
}
/// The layout of a value on a mesh: its own if it is on the mesh already, else whole on each device.
fn on_mesh(l: Option<&Arc<Layout>>, a: &Aval, place: &Layout) -> Arc<Layout> {
    let whole = || Arc::new(place.with(Spec::whole(a.rank())));
    match l {
        Some(l) if l.on_same_mesh(place) => l.clone(),
        Some(l) => l.named_by(place, &a.shape).map_or_else(whole, Arc::new),
        None => whole(),
    }
}

thread_local! { static IN_USE: RefCell<Option<Arc<Layout>>> = const { RefCell::new(None) } }
/// Sets the mesh for values of this thread that require no place; `None`: they go to the thread's device.
pub fn set_in_use(mesh: Option<Arc<Layout>>) {
    drop(IN_USE.replace(mesh));
}
/// The mesh for values that require no place, if one is in use.
pub fn in_use() -> Option<Arc<Layout>> {
    IN_USE.with(|m| m.borrow().clone())
}
/// The layouts of values; `None` for values on one device.
pub fn layouts_of<V: Borrow<Value>>(x: &[V]) -> Vec<Option<Arc<Layout>>> {
    x.iter().map(|v| layout_of(v.borrow()).cloned()).collect()
}

type Kept = HashMap<u64, Vec<(Op, Vec<Aval>, Arc<Spmd>)>>;
thread_local! { static EAGER: RefCell<Kept> = RefCell::default() }
const MAX_KEPT: usize = 1024;
/// Forgets this thread's partitioned equations.
pub fn clear_cache() {
    drop(EAGER.with(|c| c.take())); // not while it is borrowed: the finaliser of a callback may compute
}
/// One equation on a mesh, as a program that is kept for the types and layouts of its operands.
pub fn equation(op: &Op, x: &[Value], place: &Layout, program: impl Fn(&[Aval]) -> Res<Program>) -> Res<Arrays> {
    let ins: Vec<Aval> = x.iter().map(Value::aval).collect();
    let mut h = FxHasher::default();
    (op, &ins).hash(&mut h);
    let key = h.finish();
    let same = |k: &&(Op, Vec<Aval>, Arc<Spmd>)| k.0 == *op && k.1 == ins && k.2.fits(place, x);
    let known = EAGER.with(|c| c.borrow().get(&key)?.iter().find(same).map(|k| k.2.clone()));
    if let Some(s) = known {
        return s.run(x, &[]);
    }
    let made = Arc::new(Spmd::new(&Arc::new(program(&ins)?), place, layouts_of(x), &[], &[])?);
    let mut refers = false;
    host::objects_of(op, &mut |_| refers = true);
    if !refers {
        let old = EAGER.with(|c| {
            let c = &mut *c.borrow_mut();
            let old = if c.len() >= MAX_KEPT { std::mem::take(c) } else { HashMap::new() };
            c.entry(key).or_default().push((op.clone(), ins, made.clone()));
            old
        });
        drop(old);
    }
    made.run(x, &[])
}

/// A program ready to run on the devices of a mesh.
pub struct Spmd {
    pub mesh: Arc<DeviceMesh>,
    /// The layouts of the values that it was made for, by which it is found.
    given: Vec<Option<Arc<Layout>>>,
    /// The layouts that the inputs must have.
    pub ins: Vec<Arc<Layout>>,
    pub outs: Vec<Arc<Layout>>,
    /// The layouts of the program's results: `outs`, except where those are on a mesh whose axes this one cannot express.
    made: Vec<Arc<Layout>>,
    avals: Vec<Aval>,
    /// For each device; one for all CPUs.
    each: Vec<Arc<Compiled>>,
    /// Of the program's text, where other processes run it too.
    digest: Option<u64>,
    /// The positions on the mesh of this process's devices.
    local: Vec<usize>,
    /// The bytes that the devices of this process have read from each other and from other processes, in all runs.
    pub moved: Arc<Moved>,
    pub gathered: Vec<Gathered>,
}
/// As [`array::lay_out`], where parts may have to come from other processes, or sums are to be taken: then all of them call it.
pub fn lay_out(a: &Array, to: &Arc<Layout>) -> Res<Array> {
    let Some(from) = &array::data(a)?.layout else {
        if to.spec.unreduced.is_empty() {
            return array::lay_out(a, to);
        }
        return lay_out(&array::lay_out(a, &Arc::new(to.with(Spec::whole(a.aval().rank()))))?, to);
    };
    let shape = &a.aval().shape;
    let terms = !(from.lies_as(to, shape) || from.spec.unreduced.is_empty() && to.spec.unreduced.is_empty());
    if terms && !to.on_same_mesh(from) {
        let whole = |l: &Layout| Arc::new(l.with(Spec::whole(shape.len())));
        return lay_out(&lay_out(&lay_out(a, &whole(from))?, &whole(to))?, to);
    }
    if from.lies_as(to, shape) || !terms && (from.is_addressable() || from.is_replicated()) {
        return array::lay_out(a, to);
    }
    let wanted =
        if to.on_same_mesh(from) { to.clone() } else { to.named_by(from, shape).map_or_else(|| to.clone(), Arc::new) };
    let avals = vec![a.aval().clone()];
    let program = Arc::new(Program::new(0, 1, avals, vec![], vec![Atom::Var(0)], vec![])?);
    let x = [Value::Array(a.clone())];
    let moved = Spmd::new(&program, from, layouts_of(&x), &[], &[Some(wanted)])?.run(&x, &[])?.remove(0);
    array::lay_out(&moved, to)
}
fn layout_of(v: &Value) -> Option<&Arc<Layout>> {
    if let Value::Array(a) = v { array::data(a).ok()?.layout.as_ref() } else { None }
}
fn same(a: Option<&Arc<Layout>>, b: Option<&Arc<Layout>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

/// The layout of a result by its type, if types determine it along all axes.
fn typed(a: &Aval, place: &Layout) -> Option<Layout> {
    let mesh = place.mesh.typed.as_ref()?;
    let cut = a.cut.get().filter(|p| p.mesh == *mesh && mesh.explicit.iter().all(|e| *e))?;
    Some(place.with(cut.spec.clone()))
}

impl Spmd {
    /// Partitions and compiles a program for inputs, captured ones first, whose layouts are `given`. `ins` and `outs` are the layouts that inputs and results
    /// must have, where they are fixed.
    pub fn new(
        program: &Arc<Program>,
        place: &Layout,
        given: Vec<Option<Arc<Layout>>>,
        ins: &[Option<Arc<Layout>>],
        outs: &[Option<Arc<Layout>>],
    ) -> Res<Spmd> {
        let (mesh, avals) = (place.mesh.clone(), program.out_avals());
        let wanted = |i: usize| ins.get(i).cloned().flatten();
        let each = given.iter().zip(program.in_avals()).enumerate();
        let ins: Vec<Arc<Layout>> =
            each.map(|(i, (l, a))| on_mesh(wanted(i).as_ref().or(l.as_ref()), a, place)).collect();
        ins.iter().zip(program.in_avals()).try_for_each(|(l, a)| l.part_shape(&a.shape).map(drop))?;
        let outs: Vec<Option<Arc<Layout>>> = avals
            .iter()
            .enumerate()
            .map(|(i, a)| outs.get(i).cloned().flatten().or_else(|| typed(a, place).map(Arc::new)))
            .collect();
        let asked = |i: usize| outs[i].as_ref();
        let out_specs: Vec<Option<Spec>> =
            avals.iter().enumerate().map(|(i, a)| Some(on_mesh(Some(asked(i)?), a, place).spec.clone())).collect();
        let in_specs: Vec<Spec> = ins.iter().map(|l| l.spec.clone()).collect();
        let parted = partition(program, &mesh.grid, &in_specs, &out_specs)?;
        let runs = if mesh.devices.len() == 1 { program.clone() } else { parted.program };
        let mut each: Vec<Arc<Compiled>> = vec![];
        for d in &mesh.devices {
            let shared = each.iter().find(|c| c.device.platform() == "cpu" && d.platform() == "cpu").cloned();
            each.push(match shared {
                Some(c) => c,
                None => Arc::new(Compiled::new(runs.clone(), d)?),
            });
        }
        let made: Vec<Arc<Layout>> = parted.outs.into_iter().map(|spec| Arc::new(place.with(spec))).collect();
        let outs = made.iter().enumerate().map(|(i, l)| asked(i).unwrap_or(l).clone()).collect();
        let digest = (!place.is_addressable()).then(|| {
            let mut h = FxHasher::default();
            each[0].program.to_string().hash(&mut h);
            h.finish()
        });
        let local = place.local();
        let gathered = parted.gathered;
        Ok(Spmd { mesh, given, ins, outs, made, avals, each, digest, local, moved: Arc::default(), gathered })
    }
    /// Whether it was made for values with these layouts.
    pub fn fits<V: Borrow<Value>>(&self, place: &Layout, x: &[V]) -> bool {
        (Arc::ptr_eq(&self.mesh, &place.mesh) || self.mesh == place.mesh)
            && self.given.len() == x.len()
            && self.given.iter().zip(x).all(|(l, v)| same(l.as_ref(), layout_of(v.borrow())))
    }
    /// The bytes that a device reads from others in one run, by collective.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let c = &self.each[0];
        if self.mesh.devices.len() == 1 {
            return vec![];
        }
        c.plan().exchanges(&self.mesh.grid.axes, c.executable().combined_elements())
    }
    /// The sum of all exchanges.
    pub fn communication(&self) -> Communication {
        self.exchanges().iter().map(|e| e.moved).sum()
    }
    /// The program of one device.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.each[0]
    }
    /// Runs it. `donated[i]` gives up argument i.
    pub fn run<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Res<Arrays> {
        let made =
            if self.mesh.devices.len() == 1 { self.alone(args, donated)? } else { self.together(args, donated)? };
        let mut made: Vec<_> = made.into_iter().map(IntoIterator::into_iter).collect();
        let mut arrays = Arrays::new();
        for ((aval, l), out) in self.avals.iter().zip(&self.made).zip(&self.outs) {
            let parts = made.iter_mut().filter_map(Iterator::next).collect();
            let there = l.lies_as(out, &aval.shape);
            let a = array::in_parts(aval.clone(), if there { out } else { l }.clone(), parts)?;
            arrays.push(if there { a } else { lay_out(&a, out)? });
        }
        Ok(arrays)
    }
    fn alone<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Res<Vec<Buffers>> {
        let out = self.each[0].run(args, donated)?;
        Ok(vec![out.iter().map(|a| Ok(array::single(a)?.buffer)).collect::<Res<_>>()?])
    }
    /// The donated arguments whose parts are as large as those of a result, each paired with another result.
    fn usable(&self, donated: &[bool]) -> SmallVec<[bool; 16]> {
        if !donated.contains(&true) {
            return SmallVec::new();
        }
        let part = &self.each[0];
        let bytes = |a: &Aval| a.shape.size().saturating_mul(a.dtype.size());
        let mut free: SmallVec<[usize; 16]> = part.out_avals().iter().map(bytes).collect();
        let mut takes = |(a, donated): (&Aval, &bool)| {
            let found = free.iter().position(|n| *n == bytes(a)).filter(|_| *donated);
            found.map(|k| free.swap_remove(k)).is_some()
        };
        part.program.in_avals().iter().zip(donated).map(&mut takes).collect()
    }
    fn together<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Res<Vec<Buffers>> {
        let devices = &self.mesh.devices;
        let local = &self.local;
        let first_device = *local.first().ok_or_else(|| Error::value("this process has no device of the mesh"))?;
        let mut ins: Vec<RunArgs> = local.iter().map(|_| RunArgs::with_capacity(args.len())).collect();
        let (mut ready, mut gone) = (true, SmallVec::<[Array; 4]>::new());
        let own = if self.digest.is_some() { own_values(args)? } else { vec![] };
        let donated = self.usable(donated);
        for (i, (x, layout)) in args.iter().map(V::borrow).zip(&self.ins).enumerate() {
            let donated = donated.get(i) == Some(&true);
            let a = match x {
                Value::Array(a) => a.clone(),
                Value::Lit(l) => array::from_lit(l, devices[first_device])?,
                Value::Tracer(_) => return Err(x.leaked()),
            };
            let placed = if same(Some(layout), layout_of(x)) { a.clone() } else { lay_out(&a, layout)? };
            // if none of an array's buffers is passed itself, it was copied and is not donated
            let own = if donated { array::shards(&a)? } else { array::Shards::new() };
            let mut passed = false;
            for (to, Shard { buffer, .. }) in ins.iter_mut().zip(array::shards(&placed)?) {
                ready &= buffer.is_ready();
                passed |= own.iter().any(|o| o.buffer.same(&buffer));
                to.push(RunArg { buffer, donated });
            }
            if passed {
                gone.push(a);
            }
        }
        for a in gone {
            array::data(&a)?.delete();
        }
        let world = Mesh::counted(self.mesh.grid.axes.clone(), self.remote(own)?, self.moved.clone());
        let first = &self.each[0];
        if ready && first.is_brief() && !first.plan().meets() {
            let spot = |(i, ins): (&usize, RunArgs)| {
                let member = world.member(*i);
                Ok(self.each[*i].executable().run(&RunCx { cancel: &NEVER, world: Some(&member) }, ins)?)
            };
            return local.iter().zip(ins).map(spot).collect();
        }
        if runtime::inside().is_none() {
            local.iter().try_for_each(|i| runtime::make_room(devices[*i].id))?;
        }
        let order = |(i, ins): (&usize, RunArgs)| {
            let order = self.each[*i].order(ins, Some(world.member(*i)));
            // other processes wait for it, whether or not its results are read here
            Order { lane: devices[*i].id, effects: order.effects || self.digest.is_some(), ..order }
        };
        let orders = local.iter().zip(ins).map(order);
        Ok(if ready && first.calls_host() {
            runtime::carry_out_all(orders)?
        } else {
            runtime::hand_over(orders).into_vec()
        })
    }
    /// What the mesh must know to meet the devices of other processes. Inputs that each process passes itself must be equal on all of them: they are part
    /// of the call.
    fn remote(&self, own: Vec<OwnValue>) -> Res<Option<Remote>> {
        let (Some(digest), Some(transport)) = (self.digest, processes::transport().cloned()) else { return Ok(None) };
        let hosts: Vec<usize> = self.mesh.devices.iter().map(|d| d.process).collect();
        let mut h = FxHasher::default();
        let devices: Vec<(usize, usize)> = self.mesh.devices.iter().map(|d| (d.process, d.index)).collect();
        (digest, &own, &devices).hash(&mut h);
        let call_digest = h.finish();
        let program = self.each[0].program.clone();
        let text: ProgramText = Arc::new(move || {
            let value = |(i, aval, print): &OwnValue| {
                format!("\ninput {i} ({aval}), of which each process gave its own: elements {print:016x}")
            };
            let place = |(process, index): &(usize, usize)| format!(" {process}:{index}");
            let on = devices.iter().map(place).collect::<String>();
            format!("{program}{}\non devices (process:index){on}", own.iter().map(value).collect::<String>())
        });
        let mut peers: Vec<usize> = hosts.iter().copied().filter(|h| *h != processes::here()).collect();
        peers.sort_unstable();
        peers.dedup();
        let call = transport.call(&peers, call_digest, &text)?;
        let (run, digest) = processes::next_run(&hosts, call_digest);
        Ok(Some(Remote { here: processes::here(), run, hosts, digest, call, transport }))
    }
}
/// An argument that this process alone holds: which it is, its type, and a hash of its elements.
type OwnValue = (usize, String, u64);
fn own_values<V: Borrow<Value>>(args: &[V]) -> Res<Vec<OwnValue>> {
    let mut own = vec![];
    for (i, x) in args.iter().map(V::borrow).enumerate() {
        let print = match x {
            Value::Array(a) => array::fingerprint(a)?,
            Value::Lit(l) => {
                let mut h = FxHasher::default();
                l.hash(&mut h);
                Some(h.finish())
            }
            Value::Tracer(_) => None,
        };
        own.extend(print.map(|p| (i, x.aval().long(), p)));
    }
    Ok(own)
}
