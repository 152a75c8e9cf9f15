//! pmap on several devices: one queue each, collectives between them.
//!
//! INVARIANT: the members of one pmap are enqueued together, so two pmaps meet in the same order on every device.
use crate::array::{self, Shards};
use crate::compiled::Compiled;
use crate::device::{self, Device};
use crate::runtime;
use crate::world::Mesh;
use ferrax_ir::error::{Error, Res};
use ferrax_ir::layout::Spec;
use ferrax_ir::ops::pmap::Spread;
use ferrax_ir::value::{Array, Values};
use ferrax_ir::{Program, Value};
use ferrax_kernel::Buffer;
use ferrax_kernel::backend::RunArg;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

type Key = (Arc<Program>, usize);
thread_local! { static CACHE: RefCell<HashMap<Key, Arc<Compiled>>> = RefCell::default() }
const MAX_ENTRIES: usize = 256;

#[allow(clippy::mutable_key_type)] // a program's hash does not see its caches
fn compiled(p: &Arc<Program>, d: &'static Device) -> Res<Arc<Compiled>> {
    let key = (p.clone(), d.id);
    if let Some(c) = CACHE.with(|c| c.borrow().get(&key).cloned()) {
        return Ok(c);
    }
    let made = Arc::new(Compiled::new(p.clone(), d)?);
    CACHE.with(|c| {
        let c = &mut *c.borrow_mut();
        let old = if c.len() >= MAX_ENTRIES { std::mem::take(c) } else { HashMap::new() };
        c.insert(key, made.clone());
        old // dropped when the cache is no longer borrowed: a callback's finaliser may compute
    });
    Ok(made)
}

/// The axis of a result's mesh: as the user named it, else as JAX names it.
fn shown(axis: &str) -> &str {
    if axis.starts_with('<') { "_internal_pmap_axis_name" } else { axis }
}
/// The axis of what is only laid out by rows.
const ROWS: &str = "rows";

/// The devices of a pmap: those it was given, else those that a mapped operand is spread over already, else the first `n`.
fn placement(x: &[Value], s: &Spread) -> Res<Vec<&'static Device>> {
    if !s.places.is_empty() {
        let find = |id: &usize| device::cpus().iter().chain(device::found_gpus()).find(|d| d.id == *id);
        return s
            .places
            .iter()
            .map(|id| find(id).ok_or_else(|| Error::value(format!("there is no device {id}"))))
            .collect();
    }
    for (v, _) in x.iter().zip(s.mapped).filter(|(_, m)| **m) {
        if let Value::Array(a) = v {
            let shards = array::shards(a)?;
            if shards.len() == s.n && s.n > 1 && v.shape().first() == Some(&s.n) {
                return Ok(shards.into_iter().map(|s| s.device).collect());
            }
        }
    }
    let all = device::cpus();
    match all.get(..s.n) {
        Some(d) => Ok(d.iter().collect()),
        None => Err(Error::value(format!(
            "pmap over an axis of size {} needs as many devices, but only {} are available\nhelp: set FERRAX_NUM_CPU_DEVICES={} before the first use",
            s.n,
            all.len(),
            s.n
        ))),
    }
}

pub fn run(s: &Spread, x: &[Value]) -> Res<Values> {
    let devices = placement(x, s)?;
    let each: Vec<Arc<Compiled>> = devices.iter().map(|d| compiled(s.body, d)).collect::<Res<_>>()?;
    let mut args: Vec<SmallVec<[RunArg; 4]>> = devices.iter().map(|_| SmallVec::new()).collect();
    let mut gone = vec![];
    for (i, (v, mapped)) in x.iter().zip(s.mapped).enumerate() {
        let a = match v {
            Value::Array(a) => a.clone(),
            Value::Lit(l) => array::from_lit(l, devices[0])?,
            Value::Tracer(_) => return Err(v.leaked()),
        };
        let parts = if *mapped { rows(&a, &devices)? } else { copies(&a, &devices)? };
        let donated = s.donated.get(i) == Some(&true);
        // an array none of whose buffers is passed unchanged was copied, and stays
        if donated && array::shards(&a)?.iter().any(|own| parts.iter().any(|p| p.buffer.same(&own.buffer))) {
            gone.push(a);
        }
        for (to, p) in args.iter_mut().zip(parts) {
            to.push(RunArg { buffer: p.buffer, donated });
        }
    }
    for a in gone {
        array::data(&a)?.delete();
    }
    let mesh = Mesh::new(vec![(s.axis.clone(), s.n)]);
    let mut outs: Vec<Vec<Buffer>> = s.body.out_avals().iter().map(|_| vec![]).collect();
    if runtime::inside().is_none() {
        devices.iter().try_for_each(|d| runtime::make_room(d.id))?;
    }
    let members = each.iter().zip(args).enumerate().map(|(i, (c, ins))| c.order(ins, Some(mesh.member(i))));
    for made in runtime::hand_over(members) {
        outs.iter_mut().zip(made).for_each(|(parts, buffer)| parts.push(buffer));
    }
    let made = outs.into_iter().zip(s.body.out_avals()).map(|(parts, a)| {
        let aval = a.batched(s.n, 0);
        let layout = array::rows_layout(&devices, aval.rank(), shown(s.axis))?;
        Ok(Value::Array(array::in_parts(aval, Arc::new(layout), parts)?))
    });
    made.collect()
}

/// Row i on device i.
fn rows(a: &Array, devices: &[&'static Device]) -> Res<Shards> {
    array::shards(&array::lay_out(a, &Arc::new(array::rows_layout(devices, a.aval().rank(), ROWS)?))?)
}
/// The whole on every device.
fn copies(a: &Array, devices: &[&'static Device]) -> Res<Shards> {
    let whole = array::rows_layout(devices, 0, ROWS)?;
    array::shards(&array::lay_out(a, &Arc::new(whole.with(Spec::whole(a.aval().rank()))))?)
}
