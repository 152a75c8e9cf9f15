//! The scheduler of the process, and the hooks of its host: how to block, and what to check during
//! a wait.
//!
//! ```text
//!   a call --> inputs ready, little work --> runs inline
//!          `-> else a [`Handed`] run --> the device's lane --> its results are filled, or poisoned
//! ```
//!
//! ORDER OF LOCKS, first to last: the host's own (Python's interpreter lock); the locations of
//! arrays (`array.rs`); the scheduler's; those of a pmap's collectives (`world.rs`); the thread
//! pool's and the memory pool's (`ferrax-cpu`); the lock for creating devices (`device.rs`). A
//! waiting thread holds none of them: [`detached`] releases the host's. A fork takes all but the
//! collectives' ([`crate::fork`]), whose members a child abandons.
use crate::device::{Device, found_gpus};
use crate::world::MeshMember;
use ferrax_ir::error::{Error, Res};
use ferrax_kernel::backend::{Buffers, Look, RunArg, World};
use ferrax_kernel::error::copied;
use ferrax_kernel::{Buffer, Executable, Promise, RunCx};
use ferrax_runtime::{RunFacts, RunId, Runtime, Stop, Token, Work};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

pub(crate) static RUNTIME: LazyLock<Runtime<Handed>> = LazyLock::new(Runtime::default);
/// For runs on the spot: too short to be stopped.
pub static NEVER: AtomicBool = AtomicBool::new(false);

pub type RunArgs = SmallVec<[RunArg; 4]>;

/// The services that the library needs from its host program.
pub struct Host {
    /// Runs something that blocks, with the host's lock given up.
    pub detached: fn(&mut (dyn FnMut() + Send)),
    /// Looks for signals; an error ends the wait.
    pub look_up: fn() -> Res<()>,
    /// Warns the user of the program.
    pub warn: fn(&str),
}
static HOST: OnceLock<Host> = OnceLock::new();
pub fn install(host: Host) {
    HOST.get_or_init(|| host);
}
/// Warns the user by the host's means, else on standard error.
pub(crate) fn warn(text: &str) {
    match HOST.get() {
        Some(h) => (h.warn)(text),
        None => eprintln!("{text}"),
    }
}
fn detached<T: Send>(mut f: impl FnMut() -> T + Send) -> T {
    let mut out = None;
    let mut run = || out = Some(f());
    match HOST.get() {
        Some(h) => (h.detached)(&mut run),
        None => run(),
    }
    out.expect("whoever detaches runs what it is given")
}
/// The scheduler's errors are the waist's; a look up may raise the host's own, which pass through here.
struct Looking(Option<Error>);
impl Looking {
    fn up(&mut self) -> Result<(), ferrax_kernel::Error> {
        let looked = HOST.get().map_or(Ok(()), |h| (h.look_up)());
        looked.map_err(|e| {
            self.0 = Some(e);
            ferrax_kernel::Error::Cancelled
        })
    }
    fn end<T>(self, r: ferrax_kernel::Res<T>) -> Res<T> {
        match (self.0, r) {
            (_, Ok(x)) => Ok(x),
            (Some(e), Err(_)) => Err(e),
            (None, Err(e)) => Err(e.into()),
        }
    }
}
fn waiting<T: Send>(f: impl Fn(&mut Look) -> ferrax_kernel::Res<T> + Sync) -> Res<T> {
    detached(|| {
        let mut looking = Looking(None);
        let r = f(&mut || looking.up());
        looking.end(r)
    })
}

/// Waits until the buffers are ready; an error if one is poisoned. An interruption cancels the runs that make them.
pub fn wait<'a>(buffers: impl Iterator<Item = &'a Buffer> + Clone) -> Res<()> {
    let ids: SmallVec<[RunId; 4]> = buffers.clone().filter_map(Buffer::awaited).collect();
    if !ids.is_empty() {
        waiting(|tick| RUNTIME.wait(&ids, tick))?;
    }
    for b in buffers {
        b.memory()?;
    }
    Ok(())
}
/// Waits until the device has completed the work that produces a buffer, which is ready: the error
/// if it is poisoned, or the device failed.
pub fn finished(b: &Buffer) -> Res<()> {
    let m = b.memory()?;
    if m.is_done() { Ok(()) } else { waiting(|tick| m.wait(tick)) }
}
/// The bytes of a buffer that is ready.
pub fn read(device: &Device, b: &Buffer) -> Res<Vec<u8>> {
    match b.memory()?.host() {
        Some(bytes) => Ok(copied(bytes)?),
        None => waiting(|tick| device.backend.read(b, tick)),
    }
}
/// Waits until the effects of all runs so far have happened, and devices have completed their work;
/// the error of one that failed.
pub fn barrier() -> Res<()> {
    waiting(|tick| RUNTIME.barrier(tick))?;
    let handed = |d: &Device| d.handed.load(Ordering::Relaxed);
    let handed: SmallVec<[RunId; 2]> = found_gpus().iter().map(handed).collect();
    waiting(|tick| RUNTIME.wait(&handed, tick))?;
    found_gpus().iter().try_for_each(|d| waiting(|tick| d.backend.drain(tick)))
}
/// The end of the process: effects happen, all else stops, threads go.
pub fn close() -> Res<()> {
    waiting(|tick| RUNTIME.close(tick))
}
/// Runs code of the host from within a run. It may wait for any other run: another thread serves the device meanwhile. `None` where the run has
/// been stopped.
pub fn host<T>(f: impl FnOnce() -> T) -> Option<T> {
    crate::speculation::keep().then(|| RUNTIME.host(f))
}
/// The token of the run that the calling thread is inside of: its computations are part of that,
/// and run immediately.
pub fn inside() -> Option<Token> {
    ferrax_runtime::current()
}

/// An enqueued run.
pub struct Handed {
    pub exe: Arc<dyn Executable>,
    /// Taken when something is donated, since then it cannot run twice, and when it has run: another run may want the memory before this one is dropped.
    ins: Mutex<Option<RunArgs>>,
    outs: Mutex<Promises>,
    member: Option<MeshMember>,
}
type Promises = SmallVec<[Promise; 2]>;
impl Handed {
    fn ins(&self) -> std::sync::MutexGuard<'_, Option<RunArgs>> {
        self.ins.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn outs(&self) -> std::sync::MutexGuard<'_, Promises> {
        self.outs.lock().unwrap_or_else(|e| e.into_inner())
    }
}
impl Work for Handed {
    type Error = ferrax_kernel::Error;
    fn run(&self, token: &Token) -> Result<(), ferrax_kernel::Error> {
        let cx = RunCx { cancel: token, world: self.member.as_ref().map(|m| m as &dyn World) };
        let taken = {
            let mut ins = self.ins();
            for a in ins.iter().flatten() {
                a.buffer.memory()?;
            }
            let gives_up = ins.iter().flatten().any(|a| a.donated);
            if gives_up { ins.take() } else { ins.as_ref().map(|i| i.iter().map(kept).collect()) }
        };
        let made = self.exe.run(&cx, taken.ok_or_else(|| ferrax_kernel::Error::from(Stop::Forked))?)?;
        let ins = self.ins().take();
        drop(ins);
        let mut outs = self.outs();
        made.into_iter().zip(&*outs).for_each(|(b, to)| to.fill(b));
        outs.clear();
        Ok(())
    }
    fn fail(&self, e: ferrax_kernel::Error) {
        if let Some(m) = &self.member {
            m.fail(e.clone());
        }
        self.lost(e);
    }
    fn lost(&self, e: ferrax_kernel::Error) {
        // in a child of a fork a thread that is no more may hold the lock: the results are then settled, or never read
        if let Ok(outs) = self.outs.try_lock() {
            outs.iter().for_each(|to| to.poison(e.clone()));
        }
    }
    fn again(&self) -> bool {
        // the locks are free, or a thread that is no more holds them
        self.outs.try_lock().is_ok() && self.ins.try_lock().is_ok_and(|i| i.is_some())
    }
}
fn kept(a: &RunArg) -> RunArg {
    RunArg { buffer: a.buffer.clone(), donated: false }
}

/// A run to enqueue: by itself, or with the other members of its pmap.
pub struct Order {
    pub exe: Arc<dyn Executable>,
    /// The device that runs it.
    pub lane: usize,
    pub ins: RunArgs,
    pub member: Option<MeshMember>,
    pub effects: bool,
    /// The thread that enqueues it waits for it: [`carry_out`].
    pub awaited: bool,
}
/// Waits until a device has room for another run.
pub fn make_room(lane: usize) -> Res<()> {
    waiting(|tick| RUNTIME.make_room(lane, tick))
}
/// Hands runs over, together; returns their pending results.
pub fn hand_over(orders: impl IntoIterator<Item = Order>) -> SmallVec<[Buffers; 1]> {
    push(orders).into_iter().map(|r| r.1).collect()
}
/// Hands a run over and waits till it has ended; its error is the caller's, also where it has no result that could hold it.
pub fn carry_out(order: Order) -> Res<Buffers> {
    let (id, outs) = push([Order { awaited: true, ..order }]).remove(0);
    waiting(|tick| RUNTIME.awaited(id, tick))?;
    for b in &outs {
        b.memory()?;
    }
    Ok(outs)
}
/// As [`carry_out`], of the members of one gang.
pub fn carry_out_all(orders: impl IntoIterator<Item = Order>) -> Res<Vec<Buffers>> {
    let runs = push(orders.into_iter().map(|o| Order { awaited: true, ..o }));
    for (id, _) in &runs {
        waiting(|tick| RUNTIME.awaited(*id, tick))?;
    }
    runs.iter().flat_map(|r| &r.1).try_for_each(|b| b.memory().map(drop))?;
    Ok(runs.into_iter().map(|r| r.1).collect())
}
fn push(orders: impl IntoIterator<Item = Order>) -> SmallVec<[(RunId, Buffers); 1]> {
    let mut results = SmallVec::new();
    let mut gang = None;
    let runs = orders.into_iter().map(|o| {
        let id = RUNTIME.next_id();
        if let Some(gpu) = found_gpus().iter().find(|d| d.id == o.lane) {
            gpu.handed.store(id, Ordering::Relaxed);
        }
        if o.member.is_some() {
            gang.get_or_insert(id);
        }
        let plan = o.exe.plan();
        let pending = |s: &u32| Buffer::pending(plan.slots[*s as usize].bytes(), id);
        let (outs, promises): (Buffers, Promises) = plan.outputs.iter().map(pending).unzip();
        results.push((id, outs));
        let inputs = o.ins.iter().filter_map(|a| a.buffer.awaited()).collect();
        let facts = RunFacts {
            lane: o.lane,
            inputs,
            effects: o.effects,
            gang: o.member.as_ref().and(gang),
            awaited: o.awaited,
        };
        (id, facts, Handed { exe: o.exe, ins: Mutex::new(Some(o.ins)), outs: Mutex::new(promises), member: o.member })
    });
    let runs = runs.collect();
    RUNTIME.push(runs);
    results
}
