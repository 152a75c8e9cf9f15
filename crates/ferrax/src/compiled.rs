//! Compiled programs: lowered, compiled for a device, and executed inline or in the device's queue.
//!
//! A run with little work whose inputs are ready executes inline; other runs are enqueued and return pending arrays. An error in an
//! enqueued run poisons its results, and every reader gets it. A run that calls host functions is awaited if its inputs are ready, so
//! that the functions' effects and errors belong to the call. Loops of unknown length first execute speculatively
//! ([`crate::speculation`]).
use crate::array::{self, Reading, Shard};
use crate::device::Device;
use crate::rescue;
use crate::runtime::{self, NEVER, Order, RunArgs};
use crate::speculation::Pace;
use crate::world::MeshMember;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::value::Array;
use ferrax_ir::{Aval, Program, Value};
use ferrax_kernel::backend::{Buffers, RunArg};
use ferrax_kernel::{Buffer, Executable, Plan, RunCx};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

/// Scalar operations from which a run is enqueued: about 100 microseconds of one core.
const ASYNC_WORK: u64 = 200_000;
/// Scalar operations up to which a run executes speculatively all the same: the fastest take a
/// hundredth of a nanosecond each, and enqueuing costs as much as copying a megabyte.
const MAX_SPECULATIVE_WORK: u64 = 10_000_000;

/// The results of a run.
pub type Arrays = SmallVec<[Array; 2]>;

pub struct Compiled {
    pub program: Arc<Program>,
    pub device: &'static Device,
    exe: Arc<dyn Executable>,
    outs: Vec<Aval>,
    /// Its work is unknown or large, or it must wait for other runs.
    queued: bool,
    /// It calls host functions.
    calls: bool,
    /// Its run is observable.
    effects: bool,
    /// Set if it is enqueued but may be short enough to run inline.
    pace: Option<Pace>,
}

/// Called before a program is compiled for a device; its error is the compilation's.
pub type CompileCheck = Arc<dyn Fn(&'static Device) -> Res<()> + Send + Sync>;
static CHECK: RwLock<Option<CompileCheck>> = RwLock::new(None);
/// Puts a check in place of the one there is.
pub fn set_check(check: Option<CompileCheck>) {
    let old = std::mem::replace(&mut *CHECK.write().unwrap_or_else(|e| e.into_inner()), check);
    drop(old); // without the lock: it may be the host's
}
fn ask_check(device: &'static Device) -> Res<()> {
    let check = CHECK.read().unwrap_or_else(|e| e.into_inner()).clone();
    check.map_or(Ok(()), |g| g(device))
}

impl Compiled {
    /// Lowers and compiles `program`, whose captured values are its leading inputs.
    pub fn new(program: Arc<Program>, device: &'static Device) -> Res<Compiled> {
        ask_check(device)?;
        for a in program.avals() {
            if a.tape == 0 {
                array::check_dtype(a, device)?;
            }
        }
        let plan = rescue::lowered(&program)?;
        let results = plan.outputs.iter().map(|s| plan.slots[*s as usize].bytes());
        let bytes = results.fold(plan.arena, usize::saturating_add);
        if device.backend.memory().is_some_and(|most| bytes > most) {
            return Err(Error::new(
                ErrorKind::Memory,
                format!("RESOURCE_EXHAUSTED: Out of memory allocating {bytes} bytes."),
            ));
        }
        // that waits for all that the device was given before
        let asks = device.backend.asks_host(&plan);
        let queued = plan.work() > ASYNC_WORK || plan.unbounded() || plan.waits() || asks;
        let (calls, effects) = (plan.calls(), program.effects().io);
        let ends = !plan.unbounded() && !plan.waits();
        // a decomposition takes a hundred times as long as a sum of as many terms, and cannot be stopped
        let most = if ends { MAX_SPECULATIVE_WORK } else { ASYNC_WORK };
        let brief = plan.work() <= most && plan.slow_work() <= ASYNC_WORK;
        let pace =
            (queued && brief && !plan.meets() && !effects && device.platform() == "cpu").then(|| Pace::new(ends));
        let exe = rescue::compiled(&program, device, plan)?;
        Ok(Compiled { outs: program.out_avals().to_vec(), program, device, exe, queued, calls, effects, pace })
    }
    pub fn plan(&self) -> &Plan {
        self.exe.plan()
    }
    /// The plan as the backend runs it, for people and tests.
    pub fn text(&self) -> String {
        self.exe.text()
    }
    pub fn executable(&self) -> &dyn Executable {
        &*self.exe
    }
    /// Whether it is short enough for the calling thread.
    pub fn is_brief(&self) -> bool {
        !self.queued
    }
    pub fn calls_host(&self) -> bool {
        self.calls
    }
    pub fn out_avals(&self) -> &[Aval] {
        &self.outs
    }
    /// Runs on arrays that are on this device. `donated[i]` gives up argument i: it is deleted, and its memory may become a result's.
    pub fn run<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Res<Arrays> {
        let (bufs, committed) = match self.at_once(args, donated) {
            Some(made) => made?,
            None => self.taken(args, donated)?,
        };
        let array = |(b, a): (Buffer, &Aval)| array::array(a.clone(), self.device, b, committed);
        Ok(bufs.into_iter().zip(&self.outs).map(array).collect())
    }
    /// The most frequent case, which reads the arguments' buffers in place: all are ready and whole
    /// on this device, none is donated, and the work is small. The results, and whether they are
    /// committed.
    fn at_once<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Option<Res<(Buffers, bool)>> {
        if self.queued || !donated.is_empty() {
            return None;
        }
        let reading = Reading::begin();
        let mut committed = false;
        let mut ins: SmallVec<[&Buffer; 8]> = SmallVec::with_capacity(args.len());
        for x in args {
            let Value::Array(a) = x.borrow() else { return None };
            let d = array::data(a).ok()?;
            ins.push(reading.whole_on(d, self.device).filter(|b| b.is_ready())?);
            committed |= d.committed;
        }
        let run = self.exe.run_lent(&RunCx { cancel: &NEVER, world: None }, &ins);
        Some(run.map(|b| (b, committed)).map_err(Error::from))
    }
    fn taken<V: Borrow<Value>>(&self, args: &[V], donated: &[bool]) -> Res<(Buffers, bool)> {
        let mut ins = RunArgs::with_capacity(args.len());
        let (mut ready, mut committed) = (true, false);
        for (i, x) in args.iter().map(V::borrow).enumerate() {
            if let Value::Array(a) = x {
                committed |= array::data(a)?.committed;
            }
            let buffer = self.brought(x)?;
            ready &= buffer.is_ready();
            ins.push(RunArg { buffer, donated: donated.get(i) == Some(&true) });
        }
        let inside = runtime::inside();
        if let (Some(pace), None, true, false) = (&self.pace, &inside, ready, donated.contains(&true)) {
            let lent: SmallVec<[&Buffer; 8]> = ins.iter().map(|a| &a.buffer).collect();
            if let Some(made) = pace.run_inline(|stop| self.exe.run_lent(&RunCx { cancel: stop, world: None }, &lent)) {
                return Ok((made?, committed));
            }
        }
        if inside.is_none() && (self.queued || !ready) {
            runtime::make_room(self.device.id)?;
        }
        for (x, _) in args.iter().zip(donated).filter(|d| *d.1) {
            if let Value::Array(a) = x.borrow() {
                array::data(a)?.delete();
            }
        }
        let bufs = match inside {
            // a callback's own computations are part of the run that it belongs to
            Some(token) => self.now(ins, &token)?,
            None if ready && !self.queued => self.now(ins, &NEVER)?,
            None if ready && self.calls => runtime::carry_out(self.order(ins, None))?,
            None => runtime::hand_over([self.order(ins, None)]).remove(0),
        };
        Ok((bufs, committed))
    }
    /// The buffer of a value, brought to this device whole where it is not.
    fn brought(&self, x: &Value) -> Res<Buffer> {
        let a = match x {
            Value::Array(a) => a,
            Value::Lit(l) => return Ok(array::single(&array::from_lit(l, self.device)?)?.buffer),
            Value::Tracer(_) => return Err(x.leaked()),
        };
        let Shard { device, buffer } = array::single(a)?;
        if device == self.device {
            return Ok(buffer);
        }
        array::wait(&buffer)?;
        Ok(self.device.backend.upload(&runtime::read(device, &buffer)?)?)
    }
    fn now(&self, ins: RunArgs, cancel: &AtomicBool) -> Res<Buffers> {
        runtime::wait(ins.iter().map(|a| &a.buffer))?;
        Ok(self.exe.run(&RunCx { cancel, world: None }, ins)?)
    }
    /// A run to enqueue, by itself or as one member of a pmap.
    pub fn order(&self, ins: RunArgs, member: Option<MeshMember>) -> Order {
        Order { exe: self.exe.clone(), lane: self.device.id, ins, member, effects: self.effects, awaited: false }
    }
}
