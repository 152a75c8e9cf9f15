//! Plans: compiled to tasks, run slot by slot.
//!
//! Loops and branches of small kernels are a persistent kernel. The host executes others: it reads predicates, indices and trip counts back, and
//! records the body again for each iteration. Slots hold references to buffers, so copies, carries and elements of tapes move no data.
mod between;
mod computed;
mod host;
mod loops;
mod moves;
mod persistent;
mod rows;
mod together;
mod units;
mod updates;

use crate::device::Gpu;
use crate::device::memory::{self, GpuMemory, Slab};
use crate::device::pipeline::Pipeline;
use crate::recorder::{Copiers, Recorder};
use crate::task::{Limits, Pass, Task};
use crate::{routines, wgsl};
use ferrax_kernel::backend::{Backend, Buffers, Executable, RunArg, RunCx};
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::collective::tree;
use ferrax_kernel::error::filled;
use ferrax_kernel::kernel::{Access, Affine, Kernel, Node};
use ferrax_kernel::plan::{Across, Collective, HostCall, Loop, Plan, SlotId, Step, Trip};
use ferrax_kernel::{Buffer, DType, Dims, Error, ReduceKind, Res, Scalar, VerifiedPlan};
use host::HostStep;
use persistent::Persistent;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Unit;

/// A plan whose every step has its pipelines.
pub struct CompiledPlan {
    device: Arc<Gpu>,
    plan: VerifiedPlan,
    ops: Vec<Op>,
    /// The slots that nothing reads after each of `ops`.
    dies: Vec<Vec<SlotId>>,
    copiers: Copiers,
    host: Arc<dyn Backend>,
}

enum Op {
    Task {
        what: &'static str,
        task: Task<Arc<Pipeline>>,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    Host(Box<HostStep>),
    /// The whole plan, where most of its steps are the host's.
    HostPlan(Arc<dyn Executable>),
    Copy {
        from: SlotId,
        to: SlotId,
    },
    Persistent(Box<Persistent>),
    Loop {
        it: Box<Loop>,
        cond: Vec<Op>,
        body: Vec<Op>,
    },
    Switch {
        index: SlotId,
        branches: Vec<Vec<Op>>,
    },
    Callback {
        call: HostCall,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    Collective {
        kind: Collective,
        across: Across,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    TapeLen {
        tape: SlotId,
        out: SlotId,
    },
    EmptyTape {
        out: SlotId,
    },
}

impl CompiledPlan {
    /// # Errors
    /// `Unsupported` for a feature that the device lacks, which the error names; `Invalid` for
    /// kernels that break their invariants.
    pub fn new(device: &Arc<Gpu>, host: &Arc<dyn Backend>, plan: VerifiedPlan) -> Res<CompiledPlan> {
        for slot in plan.slots.iter().filter(|s| s.tape == 0) {
            if slot.bytes() as u64 > device.max_bytes() {
                let limit = device.max_bytes();
                return Err(Error::OutOfMemory(format!(
                    "{}: {} bytes are more than the {limit} one buffer can have",
                    device.name(),
                    slot.bytes()
                )));
            }
        }
        let (ops, dies) = if host::is_plan_for_host(&plan) {
            (vec![Op::HostPlan(host.compile(plan.clone())?)], vec![vec![]])
        } else {
            let compiling = Compiling { device, host: &**host, plan: &plan, uses: rows::uses(&plan) };
            let units = compiling.units(&plan.steps);
            let ops = units.iter().map(|unit| compiling.unit(unit)).collect::<Res<Vec<Vec<Op>>>>()?;
            let dies = deaths(&plan, &units, &ops);
            (ops.into_iter().flatten().collect(), dies)
        };
        let copiers = Copiers::new(device)?;
        Ok(CompiledPlan { device: device.clone(), plan, ops, dies, copiers, host: host.clone() })
    }
}

impl CompiledPlan {
    fn input(&self, s: SlotId, arg: RunArg) -> Res<Value> {
        let slot = &self.plan.slots[s as usize];
        if slot.tape > 0 {
            let tape = arg.buffer.memory()?.downcast_ref::<GpuTape>();
            return tape.map(|t| t.0.clone()).ok_or_else(|| Error::Invalid(format!("input slot {s} is given no tape")));
        }
        if arg.buffer.bytes() != slot.bytes() {
            return Err(Error::Invalid(format!("input slot {s} is given {} bytes", arg.buffer.bytes())));
        }
        let slab = memory::slab_of(&self.device, &arg.buffer)?;
        // The argument is dropped here: a donated buffer that have no other owner leaves its slab with one reference, the slot's.
        Ok(Value::Array(slab))
    }
}

pub use host::{has_routine, is_for_host};

/// The context of the compilation of a plan's steps.
struct Compiling<'a> {
    device: &'a Gpu,
    host: &'a dyn Backend,
    plan: &'a Plan,
    /// How often each slot is named.
    uses: Vec<usize>,
}

impl Compiling<'_> {
    fn steps(&self, steps: &[Step]) -> Res<Vec<Op>> {
        let units = self.units(steps);
        Ok(units.iter().map(|unit| self.unit(unit)).collect::<Res<Vec<_>>>()?.into_iter().flatten().collect())
    }
    fn unit(&self, unit: &Unit) -> Res<Vec<Op>> {
        if let Unit::Updates(updates, _) = unit {
            return Ok(vec![self.of_updates(updates)?]);
        }
        if let Unit::Together(it, _) = unit {
            return match self.of_together(it) {
                // then one by one
                Err(Error::Unsupported(_)) => {
                    Ok(it.units.iter().map(|u| self.unit(u)).collect::<Res<Vec<_>>>()?.into_iter().flatten().collect())
                }
                op => Ok(vec![op?]),
            };
        }
        if let Unit::Computed(it, _) = unit {
            match self.of_computed(it) {
                // then its steps, one by one
                Err(Error::Unsupported(_)) => (),
                op => return Ok(vec![op?]),
            }
        }
        if let Unit::Rows(program, _) = unit {
            match program.lower(Limits::of(&self.device.limits)) {
                // then its steps, one by one
                Err(Error::Unsupported(_)) => (),
                lowered => {
                    let (ins, outs) = (program.ins.clone(), program.outs.clone());
                    let task = lowered?.compile(self.device)?;
                    return Ok(vec![Op::Task { what: program.name(), task, ins, outs }]);
                }
            }
        }
        unit.steps().iter().map(|s| self.step(s)).collect()
    }
    fn step(&self, step: &Step) -> Res<Op> {
        let limits = Limits::of(&self.device.limits);
        let lowered = match step {
            _ if is_for_host(step) => return host::op(self.host, self.plan, step),
            Step::Kernel { kernel, ins, outs } => ("kernel", wgsl::lower(kernel, limits), ins, outs),
            Step::Routine { routine, ins, outs } => (routine.name(), routines::lower(routine, limits), ins, outs),
            _ => return self.control(step),
        };
        let (what, lowered, ins, outs) = lowered;
        match lowered {
            // more positions than a shader counts, say
            Err(Error::Unsupported(_)) => host::op(self.host, self.plan, step),
            lowered => {
                let is_read: Vec<bool> = outs.iter().map(|s| self.uses[*s as usize] > 1).collect();
                let (task, stay) = lowered?.only(&is_read);
                let outs = stay.iter().map(|o| outs[*o]).collect();
                Ok(Op::Task { what, task: task.compile(self.device)?, ins: ins.clone(), outs })
            }
        }
    }
    fn control(&self, step: &Step) -> Res<Op> {
        if let Some(kernel) = self.persistent(step)? {
            return Ok(Op::Persistent(Box::new(kernel)));
        }
        Ok(match step {
            Step::Copy { from, to } => Op::Copy { from: *from, to: *to },
            Step::Loop(l) => {
                let cond = if let Trip::While { cond, .. } = &l.trip { self.steps(cond)? } else { vec![] };
                let it = Loop { body: vec![], ..(**l).clone() };
                Op::Loop { it: Box::new(it), cond, body: self.steps(&l.body)? }
            }
            Step::Switch { index, branches, .. } => {
                Op::Switch { index: *index, branches: branches.iter().map(|b| self.steps(b)).collect::<Res<_>>()? }
            }
            Step::Callback { call, ins, outs } => {
                Op::Callback { call: call.clone(), ins: ins.clone(), outs: outs.clone() }
            }
            Step::Collective { kind, across, ins, outs } => {
                Op::Collective { kind: kind.clone(), across: across.clone(), ins: ins.clone(), outs: outs.clone() }
            }
            Step::TapeLen { tape, out } => Op::TapeLen { tape: *tape, out: *out },
            Step::EmptyTape { out } => Op::EmptyTape { out: *out },
            Step::Kernel { .. } | Step::Routine { .. } => return Err(Error::Invalid("a step without blocks".into())),
        })
    }
}

/// For each of the ops that the plan's own steps have become, the slots that no later one names.
fn deaths(plan: &Plan, units: &[Unit], ops: &[Vec<Op>]) -> Vec<Vec<SlotId>> {
    let mut last: Vec<Option<usize>> = vec![None; plan.slots.len()];
    let mut n = 0;
    for (unit, ops) in units.iter().zip(ops) {
        n += ops.len();
        unit.steps().iter().for_each(|step| names(step, &mut |s| last[s as usize] = Some(n - 1)));
    }
    plan.outputs.iter().for_each(|o| last[*o as usize] = None);
    let mut dies = vec![vec![]; n];
    for (slot, at) in last.iter().enumerate() {
        if let Some(i) = at {
            dies[*i].push(slot as SlotId);
        }
    }
    dies
}
fn names(step: &Step, f: &mut dyn FnMut(SlotId)) {
    match step {
        Step::Kernel { ins, outs, .. }
        | Step::Routine { ins, outs, .. }
        | Step::Callback { ins, outs, .. }
        | Step::Collective { ins, outs, .. } => ins.iter().chain(outs).for_each(|s| f(*s)),
        Step::Copy { from, to } => [*from, *to].into_iter().for_each(f),
        Step::TapeLen { tape, out } => [*tape, *out].into_iter().for_each(f),
        Step::EmptyTape { out } => f(*out),
        Step::Switch { index, branches, outs } => {
            f(*index);
            outs.iter().for_each(|s| f(*s));
            branches.iter().flatten().for_each(|s| names(s, f));
        }
        Step::Loop(l) => {
            match &l.trip {
                Trip::Static(_) => (),
                Trip::Dyn(n) => f(*n),
                Trip::While { cond, pred } => {
                    f(*pred);
                    cond.iter().for_each(|s| names(s, f));
                }
            }
            l.carries.iter().for_each(|c| [c.init, c.slot, c.next, c.out].into_iter().for_each(&mut *f));
            l.xs.iter().chain(&l.ys).for_each(|w| [w.all, w.each].into_iter().for_each(&mut *f));
            l.count.iter().for_each(|c| f(*c));
            l.body.iter().for_each(|s| names(s, f));
        }
    }
}

/// The value of a slot.
#[derive(Clone)]
enum Value {
    Array(Arc<Slab>),
    /// A sequence of values; of sequences, where tapes nest.
    Tape(Vec<Value>),
    /// A tape that reads as zeros however far.
    Zeros,
}

/// A tape between two plans: an eager loop left it for another.
struct GpuTape(Value);

impl Memory for GpuTape {
    fn len(&self) -> usize {
        0
    }
    fn host(&self) -> Option<&[u8]> {
        None
    }
}

struct Run<'a> {
    compiled: &'a CompiledPlan,
    cx: &'a RunCx<'a>,
    slots: Vec<Option<Value>>,
    recorder: Recorder<'a>,
}

impl Run<'_> {
    fn slot(&self, s: SlotId) -> &ferrax_kernel::plan::Slot {
        &self.compiled.plan.slots[s as usize]
    }
    fn get(&self, s: SlotId) -> Res<&Value> {
        self.slots[s as usize].as_ref().ok_or_else(|| Error::Invalid(format!("slot {s} is read before it is written")))
    }
    fn array(&self, s: SlotId) -> Res<Arc<Slab>> {
        match self.get(s)? {
            Value::Array(a) => Ok(a.clone()),
            _ => Err(Error::Invalid(format!("slot {s} is a tape where an array is needed"))),
        }
    }
    fn set(&mut self, s: SlotId, v: Value) {
        self.slots[s as usize] = Some(v);
    }
    fn take(&mut self, s: SlotId) -> Res<Value> {
        self.slots[s as usize].take().ok_or_else(|| Error::Invalid(format!("slot {s} is read before it is written")))
    }
    /// A new array for slot `s`.
    fn fresh(&mut self, s: SlotId) -> Res<Arc<Slab>> {
        self.recorder.slab(self.slot(s).bytes())
    }
    fn cancelled(&self) -> Res<()> {
        if self.cx.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
    /// The bytes of slot `s` on the host, once all that was recorded has run.
    fn bytes(&mut self, s: SlotId) -> Res<Vec<u8>> {
        let slab = self.array(s)?;
        self.download(&slab, self.slot(s).bytes())
    }
    fn download(&mut self, slab: &Slab, bytes: usize) -> Res<Vec<u8>> {
        let cancel = self.cx.cancel;
        let mut look = || if cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) };
        memory::download(self.recorder.device, slab, bytes, &mut look)
    }
    fn set_bytes(&mut self, s: SlotId, bytes: &[u8]) -> Res<()> {
        if bytes.len() != self.slot(s).bytes() {
            return Err(Error::Invalid(format!("slot {s} of {} bytes is given {}", self.slot(s).bytes(), bytes.len())));
        }
        let slab = memory::upload(self.recorder.device, bytes)?;
        self.set(s, Value::Array(slab));
        Ok(())
    }
    fn integer(&mut self, s: SlotId) -> Res<i64> {
        let bytes = self.bytes(s)?;
        Ok(Scalar::from_bytes(self.slot(s).dtype, &bytes).to_i64())
    }
    fn set_integer(&mut self, s: SlotId, n: usize) -> Res<()> {
        let x = Scalar::from_i64(self.slot(s).dtype, n as i64);
        self.set_bytes(s, &x.bytes()[..x.dtype.size()])
    }

    fn ops(&mut self, ops: &[Op]) -> Res<()> {
        ops.iter().try_for_each(|op| self.op(op))
    }
    fn op(&mut self, op: &Op) -> Res<()> {
        self.cancelled()?;
        match op {
            Op::Task { task, ins, outs, .. } => self.task(task, ins, outs),
            Op::Copy { from, to } => {
                let v = self.get(*from)?.clone();
                self.set(*to, v);
                Ok(())
            }
            Op::Persistent(kernel) => self.persistent(kernel),
            Op::Loop { it, cond, body } => self.run_loop(it, cond, body),
            Op::Switch { index, branches } => {
                let chosen = self.integer(*index)?.clamp(0, branches.len() as i64 - 1);
                self.ops(&branches[chosen as usize])
            }
            Op::Callback { call, ins, outs } => {
                let ins = ins.iter().map(|s| self.bytes(*s)).collect::<Res<Vec<_>>>()?;
                let mut results: Vec<Vec<u8>> =
                    outs.iter().map(|o| filled(self.slot(*o).bytes(), 0)).collect::<Res<_>>()?;
                let ins: Vec<&[u8]> = ins.iter().map(|b| &b[..]).collect();
                call.f.call(&ins, &mut results.iter_mut().map(|r| &mut r[..]).collect::<Vec<_>>())?;
                outs.iter().zip(results).try_for_each(|(o, r)| self.set_bytes(*o, &r))
            }
            Op::Host(step) => self.host_step(step),
            Op::HostPlan(exe) => self.run_on_host(&**exe, &self.compiled.plan.inputs, &self.compiled.plan.outputs),
            Op::Collective { kind, across, ins, outs } => self.collective(kind, across, ins, outs),
            Op::TapeLen { tape, out } => {
                let n = match self.get(*tape)? {
                    Value::Tape(t) => t.len(),
                    Value::Zeros => 0,
                    Value::Array(_) => return Err(Error::Invalid(format!("slot {tape} is no tape"))),
                };
                self.set_integer(*out, n)
            }
            Op::EmptyTape { out } => {
                self.set(*out, Value::Zeros);
                Ok(())
            }
        }
    }

    fn task(&mut self, task: &Task<Arc<Pipeline>>, ins: &[SlotId], outs: &[SlotId]) -> Res<()> {
        let mut arrays = ins.iter().map(|s| self.array(*s)).collect::<Res<Vec<_>>>()?;
        let (mut results, mut copies) = (vec![], false);
        for (i, o) in outs.iter().enumerate() {
            let taken = if i == 0 && task.updates { self.taken(ins[0], *o, &mut arrays[0]) } else { None };
            copies |= i == 0 && task.updates && taken.is_none();
            results.push(match taken {
                Some(slab) => slab,
                None => self.fresh(*o)?,
            });
        }
        if copies && task.copying.is_none() {
            self.recorder.copy(&arrays[0], 0, &results[0], 0, self.slot(outs[0]).bytes())?;
        }
        self.recorder.task(task, &arrays, &results, copies && task.copying.is_some())?;
        drop(arrays);
        outs.iter().zip(results).for_each(|(o, r)| self.set(*o, Value::Array(r)));
        Ok(())
    }

    /// Operand `x` itself, referenced by `array`, where the plan gives it and `out` one place and it has no other owner.
    fn taken(&mut self, x: SlotId, out: SlotId, array: &mut Arc<Slab>) -> Option<Arc<Slab>> {
        // The slot's reference, and `array`.
        (self.compiled.plan.one_place(x, out) && Arc::strong_count(array) == 2).then(|| {
            drop(self.slots[x as usize].take());
            // The task does not read operand 0, so that any array will do.
            array.clone()
        })
    }

    fn collective(&mut self, kind: &Collective, across: &Across, ins: &[SlotId], outs: &[SlotId]) -> Res<()> {
        let world = self
            .cx
            .world
            .ok_or_else(|| Error::Invalid(format!("a collective over {across:?} runs on a single device")))?;
        let (rank, size) = world.rank(across)?;
        if *kind == Collective::AxisIndex {
            return outs.iter().try_for_each(|o| self.set_integer(*o, rank));
        }
        for (x, out) in ins.iter().zip(outs) {
            let mine = self.bytes(*x)?;
            let n = self.slot(*out).bytes();
            let Some(by) = kind.combines() else {
                let mut bytes = filled(n, 0)?;
                world.meet(across, kind, &mine, &mut bytes, None)?;
                self.set_bytes(*out, &bytes)?;
                continue;
            };
            // the device combines them itself
            kind.check(size, mine.len(), n)?;
            let moves = if let Collective::AllReduce(_) = kind { Collective::AllGather } else { Collective::AllToAll };
            let mut bytes = filled(n.saturating_mul(size), 0)?;
            world.meet(across, &moves, &mine, &mut bytes, None)?;
            self.combine(by, *out, &bytes.chunks(n.max(1)).collect::<Vec<_>>())?;
        }
        Ok(())
    }
    /// Combines the operands of all devices, in the order of `collective::tree`.
    fn combine(&mut self, kind: ReduceKind, out: SlotId, all: &[&[u8]]) -> Res<()> {
        let (d, len) = (self.slot(out).dtype, self.slot(out).len);
        let f = kind.bin().ok_or_else(|| Error::Invalid(format!("a collective by {}", kind.name())))?;
        let acc = if d == DType::Bool { d } else { d.lane() };
        let mut nodes = vec![];
        let mut leaf = |input: usize| {
            let (input, at) = (input as u32, Affine::new(0, [1]));
            let load = Access { input, at, guards: vec![].into(), fill: Scalar::zero(d) };
            nodes.push((d, Node::Load(Box::new(load))));
            nodes.push((acc, Node::Convert(nodes.len() as u32 - 1)));
            nodes.len() as u32 - 1
        };
        let leaves: Vec<u32> = (0..all.len()).map(&mut leaf).collect();
        tree::fold(0..all.len(), &mut |k| leaves[k], &mut |a, b| {
            nodes.push((acc, Node::Bin(f, a, b)));
            nodes.len() as u32 - 1
        });
        nodes.push((d, Node::Convert(nodes.len() as u32 - 1)));
        let outputs = vec![nodes.len() as u32 - 1];
        let k =
            Kernel { grid: [len].into(), rdims: Dims::default(), inputs: vec![(d, len); all.len()], nodes, outputs };
        if d.size() > 4 {
            return self.host_reduce(out, k, all);
        }
        let device = self.recorder.device.clone();
        let task = wgsl::lower(&k, Limits::of(&device.limits))?.compile(&device)?;
        let ins = all.iter().map(|b| memory::upload(&device, b)).collect::<Res<Vec<_>>>()?;
        let result = self.fresh(out)?;
        self.recorder.task(&task, &ins, std::slice::from_ref(&result), false)?;
        self.set(out, Value::Array(result));
        Ok(())
    }
}

impl CompiledPlan {
    /// Whether it was compiled for this device as it is open now.
    pub fn is_for(&self, device: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }
    /// As [`ferrax_kernel::Executable::run`].
    pub fn run(&self, cx: &RunCx, args: smallvec::SmallVec<[RunArg; 4]>) -> Res<Buffers> {
        self.device.check()?;
        let plan = &*self.plan;
        if args.len() != plan.inputs.len() {
            return Err(Error::Invalid(format!("a plan of {} inputs is given {}", plan.inputs.len(), args.len())));
        }
        let recorder = Recorder::new(&self.device, &self.copiers);
        let mut run = Run { compiled: self, cx, slots: vec![None; plan.slots.len()], recorder };
        for (slot, arg) in plan.inputs.iter().zip(args) {
            run.slots[*slot as usize] = Some(self.input(*slot, arg)?);
        }
        for (op, dies) in self.ops.iter().zip(&self.dies) {
            run.op(op)?;
            for s in dies {
                run.slots[*s as usize] = None;
            }
        }
        let outs = plan.outputs.iter().map(|o| run.get(*o).cloned()).collect::<Res<Vec<_>>>()?;
        let made = self.device.end_of_run()?;
        let buffer = |(o, v): (&SlotId, Value)| match v {
            Value::Array(slab) => {
                Buffer::ready(GpuMemory { slab, bytes: plan.slots[*o as usize].bytes(), made: made.clone() })
            }
            tape => Buffer::ready(GpuTape(tape)),
        };
        Ok(plan.outputs.iter().zip(outs).map(buffer).collect())
    }
    /// The compiled plan as text, with the WGSL of each pass.
    pub fn text(&self) -> String {
        let mut text = String::new();
        write_ops(&mut text, &self.ops, 0);
        text
    }
}

fn write_ops(text: &mut String, ops: &[Op], depth: usize) {
    let pad = "  ".repeat(depth);
    for op in ops {
        let _ = match op {
            Op::Task { what, task, ins, outs } => {
                let _ = writeln!(text, "{pad}{what} {ins:?} -> {outs:?}: {} passes", task.passes.len());
                for pass in task.passes.iter().chain(&task.copying) {
                    let _ = match pass {
                        Pass::Run { pipeline, reads, writes, groups, .. } => {
                            writeln!(
                                text,
                                "{pad}  {reads:?} -> {writes:?} in {groups:?} workgroups\n{}",
                                pipeline.source.wgsl
                            )
                        }
                        copy => writeln!(text, "{pad}  {}", describe_copy(copy)),
                    };
                }
                Ok(())
            }
            Op::Copy { from, to } => writeln!(text, "{pad}{to} = {from}"),
            Op::Persistent(kernel) => {
                let Persistent { pipeline, ins, outs, .. } = &**kernel;
                writeln!(text, "{pad}persistent kernel {ins:?} -> {outs:?} in 1 workgroups\n{}", pipeline.source.wgsl)
            }
            Op::Loop { it, cond, body } => {
                let _ = writeln!(
                    text,
                    "{pad}loop {}",
                    match &it.trip {
                        Trip::Static(n) => format!("{n} times"),
                        Trip::Dyn(s) => format!("as often as slot {s} says"),
                        Trip::While { pred, .. } => format!("while slot {pred}"),
                    }
                );
                write_ops(text, cond, depth + 1);
                write_ops(text, body, depth + 1);
                Ok(())
            }
            Op::Switch { index, branches } => {
                let _ = writeln!(text, "{pad}switch slot {index}");
                for (i, b) in branches.iter().enumerate() {
                    let _ = writeln!(text, "{pad}  {i}:");
                    write_ops(text, b, depth + 2);
                }
                Ok(())
            }
            Op::Callback { call, ins, outs } => writeln!(text, "{pad}{call:?} {ins:?} -> {outs:?}"),
            Op::Host(step) => writeln!(text, "{pad}{}", step.line()),
            Op::HostPlan(exe) => writeln!(text, "{pad}the whole plan on the host\n{}", exe.text()),
            Op::Collective { kind, across, ins, outs } => {
                writeln!(text, "{pad}{kind:?} over {across:?} {ins:?} -> {outs:?}")
            }
            Op::TapeLen { tape, out } => writeln!(text, "{pad}{out} = length of tape {tape}"),
            Op::EmptyTape { out } => writeln!(text, "{pad}{out} = empty tape"),
        };
    }
}
fn describe_copy(p: &Pass<Arc<Pipeline>>) -> String {
    match p {
        Pass::Copy { from, from_at, to, to_at, bytes } => {
            format!("{bytes} bytes from {from:?} at {from_at} to {to:?} at {to_at}")
        }
        Pass::Run { .. } => String::new(),
    }
}
