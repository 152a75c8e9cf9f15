//! Programs made ready to run: lowered, compiled for a device, and run at once or in the device's queue.
//!
//! A run whose inputs are there and whose work is small is done on the spot; other runs are handed to the device's queue, and the
//! arrays they return are pending. An error in a queued run poisons its results: whoever reads one gets it.
use crate::array::{self, Shard};
use crate::device::{self, Device};
use crate::queue::Queue;
use crate::world::Member;
use ferrax_ir::error::{Error, Kind, Res};
use ferrax_ir::lower;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Program, Value};
use ferrax_kernel::backend::{Arg, Buffers, World};
use ferrax_kernel::{Buffer, Executable, Plan, RunCx};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Scalar operations from which a run is handed to the queue: about 100 microseconds of one core.
const ASYNC_WORK: u64 = 200_000;

/// Set to stop what is running; the binding sets it when the user interrupts a wait.
pub static CANCEL: AtomicBool = AtomicBool::new(false);

pub struct Compiled {
    pub program: Arc<Program>,
    pub device: &'static Device,
    exe: Arc<dyn Executable>,
    outs: Vec<Aval>,
    /// Work is unknown or large, or others must be waited for.
    queued: bool,
}

impl Compiled {
    /// Lowers and compiles `program`, whose captured values are its leading inputs.
    pub fn new(program: Arc<Program>, device: &'static Device) -> Res<Compiled> {
        for a in program.avals() {
            if a.tape == 0 {
                array::check_dtype(a, device)?;
            }
        }
        let plan = lower::lower(&program)?;
        let results = plan.outputs.iter().map(|s| plan.slots[*s as usize].bytes());
        let bytes = results.fold(plan.arena, usize::saturating_add);
        if device.backend.memory().is_some_and(|most| bytes > most) {
            return Err(Error::new(
                Kind::Memory,
                format!("RESOURCE_EXHAUSTED: Out of memory allocating {bytes} bytes."),
            ));
        }
        let queued = plan.work() > ASYNC_WORK || plan.unbounded() || plan.waits();
        let exe = device.backend.compile(Arc::new(plan))?;
        Ok(Compiled { outs: program.out_avals().to_vec(), program, device, exe, queued })
    }
    pub fn plan(&self) -> &Plan {
        self.exe.plan()
    }
    /// The plan as the backend runs it, for people and tests.
    pub fn text(&self) -> String {
        self.exe.text()
    }
    pub fn out_avals(&self) -> &[Aval] {
        &self.outs
    }
    /// Runs on arrays that are on this device. `donated[i]` gives up argument i: it is deleted, and its memory may become a result's.
    pub fn run(&self, args: &[Value], donated: &[bool]) -> Res<Values> {
        let mut ins: SmallVec<[Arg; 4]> = SmallVec::with_capacity(args.len());
        let (mut ready, mut committed) = (true, false);
        for (i, x) in args.iter().enumerate() {
            let data = match x {
                Value::Array(a) => Some(array::data(a)?),
                _ => None,
            };
            let here = data.and_then(|d| d.whole_on(self.device.id));
            let buffer = match here {
                Some(b) => b,
                None => self.brought(x)?,
            };
            committed |= data.is_some_and(|d| d.committed);
            ready &= buffer.is_ready();
            ins.push(Arg { buffer, donated: donated.get(i) == Some(&true) });
        }
        for (x, _) in args.iter().zip(donated).filter(|d| *d.1) {
            if let Value::Array(a) = x {
                array::data(a)?.delete();
            }
        }
        let bufs = if Queue::serving() || (ready && !self.queued) { self.now(ins)? } else { self.later(ins) };
        Ok(bufs
            .into_iter()
            .zip(&self.outs)
            .map(|(b, a)| Value::Array(array::array(a.clone(), self.device, b, committed)))
            .collect())
    }
    /// The buffer of a value that does not stand whole on this device.
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
        Ok(self.device.backend.upload(&device.backend.download(&buffer)?)?)
    }
    fn now(&self, ins: SmallVec<[Arg; 4]>) -> Res<Buffers> {
        for a in &ins {
            if !a.buffer.is_ready() {
                // on the queue's own thread: what is waited for may stand behind us
                while !a.buffer.is_ready() && self.device.queue.help() {}
                array::wait(&a.buffer)?;
            }
        }
        Ok(self.exe.run(&RunCx { cancel: &CANCEL, world: None }, ins)?)
    }
    fn later(&self, ins: SmallVec<[Arg; 4]>) -> Buffers {
        self.enqueue(ins, None)
    }
    /// Hands a run to the device's queue, as one member of a pmap or by itself.
    pub fn enqueue(&self, ins: SmallVec<[Arg; 4]>, member: Option<Member>) -> Buffers {
        let plan = self.exe.plan();
        let outs: Buffers = plan.outputs.iter().map(|s| Buffer::pending(plan.slots[*s as usize].bytes())).collect();
        let (exe, filled) = (self.exe.clone(), outs.clone());
        self.device.queue.push(move || {
            let run = || {
                for a in &ins {
                    a.buffer.memory()?;
                }
                exe.run(&RunCx { cancel: &CANCEL, world: member.as_ref().map(|m| m as &dyn World) }, ins)
            };
            let bug = || ferrax_kernel::Error::Device("a kernel panicked: this is a bug in ferrax".into());
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|_| Err(bug())) {
                Ok(bufs) => bufs.into_iter().zip(&filled).for_each(|(b, to)| to.fill(b)),
                Err(e) => {
                    if let Some(m) = &member {
                        m.fail(e.clone());
                    }
                    filled.iter().for_each(|to| to.poison(e.clone()));
                }
            }
        });
        outs
    }
}

/// The device that a set of values asks for: a committed array's, else any array's, else the default.
pub fn device_of(x: &[Value], default: &'static Device) -> Res<&'static Device> {
    let mut found: Option<(usize, bool)> = None;
    for v in x {
        let Value::Array(a) = v else { continue };
        let d = array::data(a)?;
        match found {
            Some((f, true)) if d.committed && f != d.device => {
                let name = |id: usize| device::by_id(id).map_or_else(String::new, |d| d.to_string());
                return Err(Error::value(format!(
                    "Received incompatible devices for jitted computation. Got arguments on {} and on {}\nhelp: move one of them with device_put",
                    name(f),
                    name(d.device)
                )));
            }
            Some((_, c)) if c || !d.committed => (),
            _ => found = Some((d.device, d.committed)),
        }
    }
    Ok(match found {
        Some((id, _)) if id != default.id => device::by_id(id).unwrap_or(default),
        _ => default,
    })
}
