//! A compiled plan: steps with their kernels compiled, and a table of pointers they share.
//!
//! Every slot is a cell of the pointer table; slots that share memory (`Place::Same`) share a cell. A run sets the cells of inputs
//! and outputs, those of the arena are set when the arena is made, and loops move those of their windows and carries.
//!
//! INVARIANT: between runs no thread holds the state; a run that finds it taken (a second thread) makes another.
#![allow(unsafe_code)]
mod combine;
mod control;
mod nests;
mod row_groups;

use crate::kernels::Bases;
use crate::lowering::{Cell, CompiledKernel, Location, PlanCells};
use crate::memory::{Block, Fresh};
use crate::routines::Gathering;
use crate::tape::Tape;
use crate::threads::Running;
use crate::tuning::Target;
use crate::{routines, stats};
use control::Control;
use ferrax_kernel::backend::{Buffers, Executable, RunArg, RunCx};
use ferrax_kernel::kernel::Access;
use ferrax_kernel::plan::timeline::{Timeline, Touch};
use ferrax_kernel::plan::{Place, SlotId, Step};
use ferrax_kernel::{Affine, Buffer, Dims, Error, Kernel, Node, Plan, Res, Routine, VerifiedPlan};
use row_groups::{MemberWork, Origin, RowGroupBuilder};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Bytes of an arena that stays with its executable between runs. A larger one goes back to the pool, which all executables share: a function that
/// was compiled for many shapes holds memory for none of them.
const KEPT_ARENA: usize = 16 << 10;

/// A step, ready to run.
#[allow(clippy::large_enum_variant)] // most steps are kernels
pub enum Ready {
    Kernel { kernel: CompiledKernel, ins: Box<[Cell]>, outs: Box<[Cell]> },
    RowGroup(Box<row_groups::RowGroup>),
    Routine { run: routines::Run, ins: Box<[Cell]>, outs: Box<[Cell]> },
    Copy { from: Cell, to: Cell, bytes: usize },
    Nest(Box<nests::CompiledNest>),
    Control(Box<Control>),
}

/// The working memory of one run.
pub struct RunState {
    pub ptrs: SmallVec<[*mut u8; 16]>,
    pub tapes: Vec<Tape>,
    /// As many zero bytes as the largest element of a tape.
    pub zeros: Option<Block>,
    /// The memory that the cells of the arena point into.
    _arena: Option<Block>,
    pub launches: u64,
}
// SAFETY: the pointers point into the arena, which the state owns, or are set again by each run.
unsafe impl Send for RunState {}

pub struct CpuExecutable {
    plan: VerifiedPlan,
    locations: Vec<Location>,
    steps: Vec<Ready>,
    state: Mutex<Option<Box<RunState>>>,
    /// Cell of each plan input and of each output that is made here; outputs that are inputs or other outputs.
    input_cells: Vec<(Cell, usize)>,
    outputs: Vec<Out>,
    /// Input -> output that may take its memory.
    donation_aliases: Vec<Option<u32>>,
    n_tapes: usize,
    zero_bytes: usize,
    /// As many null pointers as cells.
    nulls: SmallVec<[*mut u8; 16]>,
    /// Whether any slot lies in the arena (whose size may be zero bytes).
    has_arena: bool,
    combined_elements: usize,
}
// SAFETY: the only raw pointers are the nulls.
unsafe impl Send for CpuExecutable {}
// SAFETY: as above.
unsafe impl Sync for CpuExecutable {}

#[derive(Clone, Copy)]
enum Out {
    /// Made for the run.
    Fresh(Cell, usize),
    Input(u32),
    /// The same as an earlier output.
    Output(u32),
    /// Copied out of the arena at the end.
    Copied(Cell, usize),
    /// The tape that an eager loop leaves for another one.
    Tape(u32),
}

/// Shared by the compilation of all steps.
pub struct Compiler<'a> {
    cells: PlanCells<'a>,
    /// Whether the steps are those of a loop.
    pub is_repeated: bool,
    /// Whether all slots together leave the cache, so that row-fused groups may be worth looking for.
    pub leaves_cache: bool,
    /// How often each cell is read; counted at first use.
    reads: OnceCell<Vec<usize>>,
}
impl<'a> Deref for Compiler<'a> {
    type Target = PlanCells<'a>;
    fn deref(&self) -> &PlanCells<'a> {
        &self.cells
    }
}

impl Compiler<'_> {
    /// How many steps read a cell, its uses at the end of the plan or of an iteration included.
    fn reads(&self, cell: Cell) -> usize {
        self.reads.get_or_init(|| {
            let mut reads = vec![0; self.locations.len()];
            for (_, moment) in Timeline::of(&self.plan.steps).moments() {
                moment.touches(|s, how| reads[self.cell(s) as usize] += usize::from(how == Touch::Read));
            }
            self.plan.outputs.iter().for_each(|s| reads[self.cell(*s) as usize] += 1);
            reads
        })[cell as usize]
    }
    /// Whether the steps are repeated in the cache: they form no groups, and those of few elements are scalar.
    pub fn repeats_in_cache(&self) -> bool {
        self.is_repeated && !self.leaves_cache
    }
    pub fn steps(&mut self, steps: &[Step]) -> Res<Vec<Ready>> {
        let mut out = vec![];
        let few = self.repeats_in_cache();
        let mut group = RowGroupBuilder::default();
        let mut at = 0;
        while let Some(s) = steps.get(at) {
            // Scalar steps that do not depend on the group are hoisted before it.
            if few || !group.can_reorder_before(self, s) {
                group.finish(self, &mut out);
            }
            if let Some((block, n)) = nests::compile_block(self, &steps[at..], |s| group.can_reorder_before(self, s)) {
                out.extend(block.map(|b| Ready::Nest(Box::new(b))));
                at += n;
                continue;
            }
            at += 1;
            match s {
                Step::Kernel { kernel, ins, outs }
                    if group.is_empty()
                        && let n = steps[at..].iter().take_while(|s| is_constant(s)).count()
                        && let Some(placed) = self.placed(kernel, (ins, outs), steps.get(at + n))? =>
                {
                    out.push(placed);
                    out.extend(self.steps(&steps[at..at + n])?);
                    at += n + 1;
                }
                Step::Kernel { kernel, ins, outs } => {
                    let (i, o) = (self.cells(ins), self.cells(outs));
                    let aliased = o.iter().any(|o| i.iter().any(|i| self.meet(*i, *o)));
                    let compiled = CompiledKernel::new(kernel, aliased, self.target)?;
                    group.add(self, (Origin::Kernel(kernel), MemberWork::Kernel(compiled)), (ins, outs), &mut out);
                }
                Step::Routine { routine, ins, outs } if let Routine::Gather(g) = &**routine => {
                    let gathering = Gathering::new(g, &self.target)?;
                    group.add(self, (Origin::Gather(g), MemberWork::Gather(gathering)), (ins, outs), &mut out);
                }
                _ => out.push(self.step(s)?),
            }
        }
        group.finish(self, &mut out);
        Ok(out)
    }
    /// A kernel whose result the next step writes to a window of an array, in place, and nothing else reads: it writes the window itself.
    fn placed(&self, k: &Kernel, (ins, outs): (&[SlotId], &[SlotId]), next: Option<&Step>) -> Res<Option<Ready>> {
        let Some(Step::Routine { routine, ins: given, outs: array }) = next else { return Ok(None) };
        let (Routine::DynamicUpdateSlice { operand, update, .. }, &[result], &[array]) = (&**routine, outs, &array[..])
        else {
            return Ok(None);
        };
        let to = self.cell(array);
        let in_place = self.cell(given[0]) == to && !matches!(self.locations[to as usize], Location::Window);
        let is_last = given[1] == result && self.reads(self.cell(result)) == 1;
        if !in_place || !is_last {
            return Ok(None);
        }
        let starts = given[2..].iter().map(|s| Some(self.constant(*s)?.to_i64()));
        let Some(starts) = starts.collect::<Option<SmallVec<[i64; 4]>>>() else { return Ok(None) };
        let Some(at) = window(&k.grid, operand, update, &starts) else { return Ok(None) };
        // It may read an element that it writes at the same position.
        let met = |input: u32| self.meet(self.cell(ins[input as usize]), to);
        let is_same = |l: &Access| {
            l.guards.is_empty() && l.at.offset == at.offset && {
                (0..k.grid.len()).all(|d| k.grid[d] == 1 || l.at.stride(d) == at.stride(d))
            }
        };
        if k.nodes.iter().any(|n| matches!(&n.1, Node::Load(l) if met(l.input) && !is_same(l))) {
            return Ok(None);
        }
        let aliased = (0..ins.len() as u32).any(met);
        let Some(kernel) = CompiledKernel::placed(k, &at, aliased, &self.target)? else { return Ok(None) };
        Ok(Some(Ready::Kernel { kernel, ins: self.cells(ins), outs: [to].into() }))
    }
    fn step(&mut self, s: &Step) -> Res<Ready> {
        Ok(match s {
            Step::Routine { routine, ins, outs } => Ready::Routine {
                run: routines::compile(routine, self.target)?,
                ins: self.cells(ins),
                outs: self.cells(outs),
            },
            Step::Copy { from, to } => {
                let (a, b) = (self.cell(*from), self.cell(*to));
                if let (Location::Tape(x), Location::Tape(y)) = (self.locations[a as usize], self.locations[b as usize])
                {
                    return Ok(Ready::Control(Box::new(Control::CopyTape { from: x as usize, to: y as usize })));
                }
                Ready::Copy { from: a, to: b, bytes: self.bytes(*from) }
            }
            Step::Loop(l) if let Some(nest) = nests::compile(self, l) => Ready::Nest(Box::new(nest)),
            other => Ready::Control(Box::new(control::compile(self, other)?)),
        })
    }
}

/// Whether a step sets scalars to constants, as those are set where a window begins.
fn is_constant(s: &Step) -> bool {
    matches!(s, Step::Kernel { kernel, ins, .. } if ins.is_empty() && kernel.domain().size() == 1)
}
/// The positions in an array of the elements of a window, by the index of a grid of as many; none where one dimension of the grid is several of a
/// window that are not contiguous.
fn window(grid: &[usize], operand: &Dims, update: &Dims, starts: &[i64]) -> Option<Affine> {
    let strides = operand.strides();
    let start = |d: usize| starts[d].clamp(0, operand[d] as i64 - update[d] as i64) * strides[d] as i64;
    let mut at = Affine::constant((0..operand.len()).map(start).sum());
    let mut axes = (0..operand.len()).filter(|d| update[*d] != 1).peekable();
    for n in grid {
        let (mut size, mut stride) = (1, 0);
        while size < *n {
            let d = axes.next()?;
            if size > 1 && stride != (update[d] as i64) * strides[d] as i64 {
                return None;
            }
            (size, stride) = (size * update[d], strides[d] as i64);
        }
        if size != *n {
            return None;
        }
        at.strides.push(stride);
    }
    axes.next().is_none().then_some(at)
}

impl CpuExecutable {
    pub fn compile(plan: VerifiedPlan, target: Target) -> Res<CpuExecutable> {
        let n = plan.slots.len();
        let mut cells = vec![Cell::MAX; n];
        let mut locations = vec![];
        let mut n_tapes = 0;
        for s in 0..n {
            let r = plan.root(s as SlotId) as usize;
            if cells[r] == Cell::MAX {
                cells[r] = locations.len() as Cell;
                locations.push(match plan.places[r] {
                    Place::Input(i) => Location::Input(i),
                    Place::Output(i) => Location::Output(i),
                    Place::Arena(at) => Location::Arena(at),
                    Place::Window => Location::Window,
                    Place::Tape => {
                        n_tapes += 1;
                        Location::Tape(n_tapes - 1)
                    }
                    Place::Same(_) => unreachable!("a root is not Same"),
                });
            }
            cells[s] = cells[r];
        }
        let zero_bytes = plan.slots.iter().filter(|s| s.tape > 0).map(|s| s.bytes()).max().unwrap_or(0);
        let input_cells: Vec<(Cell, usize)> =
            plan.inputs.iter().map(|s| (cells[*s as usize], plan.slots[*s as usize].bytes())).collect();
        let mut outputs: Vec<Out> = vec![];
        let mut first_of: Vec<Option<u32>> = vec![None; locations.len()];
        for (i, s) in plan.outputs.iter().enumerate() {
            let c = cells[*s as usize];
            let bytes = plan.slots[*s as usize].bytes();
            let first = first_of[c as usize];
            first_of[c as usize] = first.or(Some(i as u32));
            outputs.push(match (locations[c as usize], first) {
                (_, Some(o)) => Out::Output(o),
                (Location::Output(_), None) => Out::Fresh(c, bytes),
                (Location::Input(k), None) => Out::Input(k),
                (Location::Arena(_), None) => Out::Copied(c, bytes),
                (Location::Tape(t), None) => Out::Tape(t),
                (Location::Window, None) => unreachable!("a window ends with its loop"),
            });
        }
        let mut donation_aliases = vec![None; plan.inputs.len()];
        for (o, d) in plan.donatable.iter().enumerate() {
            if let (Some(i), Out::Fresh(..)) = (d, outputs[o]) {
                donation_aliases[*i as usize] = Some(o as u32);
            }
        }
        let leaves_cache = plan.slots.iter().map(|s| s.bytes()).fold(0, usize::saturating_add)
            >= target.tuning.row_groups.min_plan_bytes;
        let cells = PlanCells::new(&plan, cells, locations, target);
        let mut c = Compiler { cells, is_repeated: false, leaves_cache, reads: OnceCell::new() };
        let steps = c.steps(&plan.steps)?;
        let locations = c.cells.locations;
        let nulls = SmallVec::from_elem(std::ptr::null_mut(), locations.len());
        let has_arena = locations.iter().any(|h| matches!(h, Location::Arena(_)));
        Ok(CpuExecutable {
            plan,
            nulls,
            has_arena,
            locations,
            steps,
            state: Mutex::new(None),
            input_cells,
            outputs,
            donation_aliases,
            n_tapes: n_tapes as usize,
            zero_bytes,
            combined_elements: target.tuning.kernels.combined_elements,
        })
    }
    fn new_state(&self) -> Res<RunState> {
        let mut ptrs = self.nulls.clone();
        let arena = if self.has_arena { Some(Block::new(self.plan.arena)?) } else { None };
        if let Some(a) = &arena {
            for (p, h) in ptrs.iter_mut().zip(&self.locations) {
                if let Location::Arena(o) = h {
                    *p = a.ptr().wrapping_add(*o);
                }
            }
        }
        let tapes = (0..self.n_tapes).map(|_| Tape::default()).collect();
        let zeros = if self.zero_bytes > 0 { Some(Block::zeroed(self.zero_bytes)?) } else { None };
        Ok(RunState { ptrs, tapes, zeros, _arena: arena, launches: 0 })
    }
    /// Calls `run` with a state that have no other owner.
    fn with_state(&self, run: impl FnOnce(&mut RunState) -> Res<Buffers>) -> Res<Buffers> {
        if !self.has_arena && self.n_tapes == 0 {
            // Nothing to keep between runs.
            let mut state = self.new_state()?;
            let out = run(&mut state);
            stats::add_launches(state.launches);
            return out;
        }
        let kept = self.state.try_lock().ok().and_then(|mut s| s.take());
        let mut state = match kept {
            Some(s) => s,
            None => Box::new(self.new_state()?),
        };
        let out = run(&mut state);
        stats::add_launches(std::mem::take(&mut state.launches));
        for t in &mut state.tapes {
            *t = Tape::default();
        }
        if out.is_ok()
            && self.plan.arena <= KEPT_ARENA
            && let Ok(mut s) = self.state.try_lock()
        {
            *s = Some(state);
        }
        out
    }
    fn nothing_made(&self) -> SmallVec<[Option<Fresh>; 2]> {
        let mut made = SmallVec::with_capacity(self.outputs.len());
        made.extend(self.outputs.iter().map(|_| None));
        made
    }
    fn expect_inputs(&self, n: usize) -> Res<()> {
        if n == self.input_cells.len() {
            return Ok(());
        }
        Err(Error::Invalid(format!("the plan takes {} inputs, {n} were given", self.input_cells.len())))
    }
    /// Points the cell of input `k` at its buffer.
    fn read(&self, k: usize, buffer: &Buffer, state: &mut RunState) -> Res<()> {
        let (cell, bytes) = self.input_cells[k];
        let m = match buffer.try_memory() {
            Some(m) => m?,
            None => return Err(Error::Invalid(format!("input {k} is still pending"))),
        };
        if let Location::Tape(t) = self.locations[cell as usize] {
            let slot = &self.plan.slots[self.plan.inputs[k] as usize];
            let tape = m.downcast_ref::<Tape>().filter(|t| t.is_of(slot.tape, bytes));
            state.tapes[t as usize] =
                tape.cloned().ok_or_else(|| Error::Invalid(format!("input {k} is not a tape of this type")))?;
            return Ok(());
        }
        let host = m.host().ok_or_else(|| Error::Invalid(format!("input {k} is on another device")))?;
        if host.len() != bytes {
            return Err(Error::Invalid(format!("input {k} has {} bytes where the plan says {bytes}", host.len())));
        }
        state.ptrs[cell as usize] = host.as_ptr().cast_mut();
        Ok(())
    }
    /// Runs the steps once the inputs are read. `made[o]` is the memory that output o inherits;
    /// `input` returns inputs that are outputs as well.
    fn go(
        &self,
        cx: &RunCx,
        state: &mut RunState,
        mut made: SmallVec<[Option<Fresh>; 2]>,
        input: impl Fn(usize) -> Buffer,
    ) -> Res<Buffers> {
        let _running = Running::enter();
        for (o, out) in self.outputs.iter().enumerate() {
            if let Out::Fresh(cell, bytes) = out {
                let fresh = match made[o].take() {
                    Some(f) => f,
                    None => Fresh::new(*bytes)?,
                };
                state.ptrs[*cell as usize] = fresh.ptr();
                made[o] = Some(fresh);
            }
        }
        run_steps(&self.steps, (state, cx))?;
        if cx.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled); // the last step may have left work
        }
        let mut out = Buffers::with_capacity(self.outputs.len());
        for (o, kind) in self.outputs.iter().enumerate() {
            out.push(match kind {
                Out::Fresh(..) => match made[o].take() {
                    Some(f) => f.buffer(),
                    None => return Err(Error::Invalid("an output was lost".into())),
                },
                Out::Input(k) => input(*k as usize),
                Out::Output(k) => out[*k as usize].clone(),
                Out::Tape(t) => Buffer::ready(state.tapes[*t as usize].clone()),
                Out::Copied(cell, bytes) => {
                    let f = Fresh::new(*bytes)?;
                    // SAFETY: `bytes` is the size of the output's slot; verify, places: the slots
                    // lie inside the arena, which the state owns; written: an output is live at the
                    // end. The memory is fresh, so it overlaps no slot.
                    unsafe { f.ptr().copy_from_nonoverlapping(state.ptrs[*cell as usize], *bytes) };
                    f.buffer()
                }
            });
        }
        Ok(out)
    }
}

/// Runs steps in order.
pub fn run_steps(steps: &[Ready], (state, cx): (&mut RunState, &RunCx)) -> Res<()> {
    for s in steps {
        if cx.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match s {
            Ready::Kernel { kernel, ins, outs } => {
                state.launches += 1;
                // SAFETY: verify, places and sizes: every cell points at as many elements as the kernel states, at multiples of 64 or of an
                // element in a window; disjoint: results overlap operands only where `Kernel::in_place` allows it, and `aliased` said so at compilation
                // (`Compiler::meet` names every pair of cells that may be one memory).
                unsafe { kernel.run(Bases { ptrs: &state.ptrs, ins, outs, cancel: cx.cancel }, true) }?
            }
            Ready::Routine { run, ins, outs } => {
                state.launches += 1;
                run.run(Bases { ptrs: &state.ptrs, ins, outs, cancel: cx.cancel }, true)?;
            }
            Ready::RowGroup(c) => c.run(state, cx)?,
            Ready::Nest(n) => n.run(state, cx)?,
            Ready::Copy { from, to, bytes } => {
                let (from, to) = (state.ptrs[*from as usize], state.ptrs[*to as usize]);
                if from != to {
                    // SAFETY: verify, sizes: a copy's slots are equal in size; `bytes` is theirs. (`copy_from` allows overlap.)
                    unsafe { to.copy_from(from, *bytes) }
                }
            }
            Ready::Control(c) => c.run(state, cx)?,
        }
    }
    Ok(())
}

impl Executable for CpuExecutable {
    fn run(&self, cx: &RunCx, mut args: SmallVec<[RunArg; 4]>) -> Res<Buffers> {
        self.expect_inputs(args.len())?;
        self.with_state(|state| {
            let mut made = self.nothing_made();
            // Inputs stay alive to the end of the run; donated ones that have no other owner become outputs.
            for (k, arg) in args.iter_mut().enumerate() {
                self.read(k, &arg.buffer, state)?;
                if arg.donated
                    && let Some(o) = self.donation_aliases[k]
                {
                    made[o as usize] = Fresh::taken(&mut arg.buffer);
                }
            }
            self.go(cx, state, made, |k| args[k].buffer.clone())
        })
    }
    fn run_lent(&self, cx: &RunCx, ins: &[&Buffer]) -> Res<Buffers> {
        self.expect_inputs(ins.len())?;
        self.with_state(|state| {
            for (k, b) in ins.iter().enumerate() {
                self.read(k, b, state)?;
            }
            self.go(cx, state, self.nothing_made(), |k| ins[k].clone())
        })
    }
    fn plan(&self) -> &Plan {
        &self.plan
    }
    fn combined_elements(&self) -> usize {
        self.combined_elements
    }
    fn text(&self) -> String {
        let mut s = format!("arena {} bytes\n", self.plan.arena);
        control::describe(&self.steps, &mut s, 0);
        s
    }
}
