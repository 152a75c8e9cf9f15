//! Control steps: loops, branches, host functions, collectives, tapes.
//!
//! INVARIANT: an iteration allocates nothing but the growth of tapes (doubled when full); carries are exchanged instead of being
//! copied; windows are a pointer and a stride.
#![allow(unsafe_code)]
use super::combine::{BlockArithmetic, Combiner};
use super::row_groups::{self, MemberWork, RowGroup};
use super::{Compiler, Ready, RunState, run_steps};
use crate::lowering::{Cell, CompiledKernel, Location};
use crate::routines::CompiledRoutine;
use crate::tape::{Items, Tape, Writing};
use crate::threads::Cost;

use ferrax_kernel::backend::{RunCx, TermArithmetic};
use ferrax_kernel::plan::{Across, Collective, HostCall, SlotId, Step, Trip};
use ferrax_kernel::{DType, Error, Res, Scalar};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

pub enum Control {
    Loop(CompiledLoop),
    Switch {
        index: Cell,
        branches: Vec<Vec<Ready>>,
    },
    Callback {
        call: HostCall,
        ins: Vec<(Cell, usize)>,
        outs: Vec<(Cell, usize)>,
    },
    Collective {
        kind: Collective,
        across: Across,
        ins: Vec<(Cell, usize)>,
        outs: Vec<(Cell, usize)>,
        combine: Vec<Option<Combiner>>,
    },
    TapeLen {
        tape: usize,
        out: Cell,
        bytes: usize,
    },
    EmptyTape {
        out: usize,
    },
    CopyTape {
        from: usize,
        to: usize,
    },
}
enum Trips {
    Static(usize),
    Dyn(Cell, DType),
    While { cond: Vec<Ready>, pred: Cell },
}
struct CellCarry {
    init: Cell,
    slot: Cell,
    next: Cell,
    out: Cell,
    bytes: usize,
    /// init, slot, next, out as tapes.
    tape: Option<[usize; 4]>,
}
struct CellWindow {
    all: Cell,
    each: Cell,
    bytes: usize,
    /// The tape it runs along, the tape of an element if that is one, and how deep.
    tape: Option<(usize, Option<usize>, u8)>,
}
pub struct CompiledLoop {
    trips: Trips,
    reverse: bool,
    carries: Vec<CellCarry>,
    xs: Vec<CellWindow>,
    ys: Vec<CellWindow>,
    count: Option<(Cell, usize)>,
    body: Vec<Ready>,
    /// Set if all iterations run on one chunk of rows before the next chunk: the body, and the
    /// cells to swap after each iteration.
    by_rows: Option<(Box<RowGroup>, Vec<(Cell, Cell)>)>,
}

impl Compiler<'_> {
    fn tape(&self, c: Cell) -> Option<usize> {
        if let Location::Tape(t) = self.locations[c as usize] { Some(t as usize) } else { None }
    }
    fn need_tape(&self, s: SlotId) -> Res<usize> {
        self.tape(self.cell(s)).ok_or_else(|| Error::Invalid(format!("slot {s} is not a tape")))
    }
    fn sized(&self, s: &[SlotId]) -> Vec<(Cell, usize)> {
        s.iter().map(|s| (self.cell(*s), self.bytes(*s))).collect()
    }
    fn dtype(&self, s: SlotId) -> DType {
        self.plan.slots[s as usize].dtype
    }
    fn window(&self, w: &ferrax_kernel::plan::Window) -> CellWindow {
        let (all, each) = (self.cell(w.all), self.cell(w.each));
        let tape = self.tape(all).map(|t| (t, self.tape(each), self.plan.slots[w.all as usize].tape));
        CellWindow { all, each, bytes: self.bytes(w.each), tape }
    }
}

pub fn compile(c: &mut Compiler, s: &Step) -> Res<Control> {
    Ok(match s {
        Step::Loop(l) => Control::Loop(compile_loop(c, l)?),
        Step::Switch { index, branches, .. } => Control::Switch {
            index: c.cell(*index),
            branches: branches.iter().map(|b| c.steps(b)).collect::<Res<_>>()?,
        },
        Step::Callback { call, ins, outs } => {
            Control::Callback { call: call.clone(), ins: c.sized(ins), outs: c.sized(outs) }
        }
        Step::Collective { kind, across, ins, outs } => {
            let combiner = |s: &SlotId| {
                let Some(r) = kind.combines() else { return Ok(None) };
                let slot = &c.plan.slots[*s as usize];
                Combiner::new(r, slot.dtype, slot.len, c.target).map(Some)
            };
            let combine = outs.iter().map(combiner).collect::<Res<_>>()?;
            Control::Collective {
                kind: kind.clone(),
                across: across.clone(),
                ins: c.sized(ins),
                outs: c.sized(outs),
                combine,
            }
        }
        Step::TapeLen { tape, out } => {
            Control::TapeLen { tape: c.need_tape(*tape)?, out: c.cell(*out), bytes: c.bytes(*out) }
        }
        Step::EmptyTape { out } => Control::EmptyTape { out: c.need_tape(*out)? },
        Step::Kernel { .. } | Step::Routine { .. } | Step::Copy { .. } => {
            return Err(Error::Invalid("not a control step".into()));
        }
    })
}
fn compile_loop(c: &mut Compiler, l: &ferrax_kernel::plan::Loop) -> Res<CompiledLoop> {
    let outside = std::mem::replace(&mut c.is_repeated, true);
    let trips = match &l.trip {
        Trip::Static(n) => Trips::Static(*n),
        Trip::Dyn(s) => Trips::Dyn(c.cell(*s), c.dtype(*s)),
        Trip::While { cond, pred } => Trips::While { cond: c.steps(cond)?, pred: c.cell(*pred) },
    };
    let mut carries = vec![];
    for k in &l.carries {
        let slots = [k.init, k.slot, k.next, k.out];
        let cells = c.cells(&slots);
        let bytes = c.bytes(k.slot);
        let tapes: Vec<usize> = cells.iter().filter_map(|x| c.tape(*x)).collect();
        let tape = match tapes[..] {
            [a, b, d, e] => Some([a, b, d, e]),
            _ => None,
        };
        carries.push(CellCarry { init: cells[0], slot: cells[1], next: cells[2], out: cells[3], bytes, tape });
    }
    let windows = |w: &[ferrax_kernel::plan::Window]| -> Vec<CellWindow> { w.iter().map(|w| c.window(w)).collect() };
    let (xs, ys) = (windows(&l.xs), windows(&l.ys));
    let count = l.count.map(|s| (c.cell(s), c.bytes(s)));
    let body = c.steps(&l.body)?;
    c.is_repeated = outside;
    let is_plain = xs.is_empty() && ys.is_empty() && carries.iter().all(|k| k.tape.is_none());
    let (body, by_rows) = if is_plain && !matches!(trips, Trips::While { .. }) {
        let carried: Vec<(Cell, Cell)> = carries.iter().map(|k| (k.slot, k.next)).collect();
        match row_groups::of_loop(c, &l.body, body, carried.clone()) {
            Ok(group) => (vec![], Some((Box::new(group), carried))),
            Err(body) => (body, None),
        }
    } else {
        (body, None)
    };
    Ok(CompiledLoop { trips, reverse: l.reverse, carries, xs, ys, count, body, by_rows })
}

impl Control {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        match self {
            Control::Loop(l) => l.run(state, cx),
            Control::Switch { index, branches } => {
                // SAFETY: verify, sizes: the index of a switch is one i32; written: it is live.
                let i = unsafe { state.ptrs[*index as usize].cast::<i32>().read_unaligned() };
                run_steps(&branches[i.clamp(0, branches.len() as i32 - 1) as usize], (state, cx))
            }
            Control::Callback { call, ins, outs } => {
                // SAFETY: `bytes` are the sizes of the slots, and verify has: places, each cell
                // points at so many bytes; written, operands are live; disjoint, no result overlaps an
                // operand or another result, so the slices are exclusive.
                unsafe {
                    let ins: SmallVec<[&[u8]; 4]> = ins
                        .iter()
                        .map(|(c, n)| std::slice::from_raw_parts(state.ptrs[*c as usize].cast_const(), *n))
                        .collect();
                    let mut outs: SmallVec<[&mut [u8]; 4]> =
                        outs.iter().map(|(c, n)| std::slice::from_raw_parts_mut(state.ptrs[*c as usize], *n)).collect();
                    call.f.call(&ins, &mut outs)
                }
            }
            Control::Collective { kind, across, ins, outs, combine } => {
                collective(kind, across, ins, outs, combine, state, cx)
            }
            Control::TapeLen { tape, out, bytes } => {
                // SAFETY: verify, sizes: the result is one integer; `bytes` is its slot's.
                unsafe { write_int(state.ptrs[*out as usize], *bytes, state.tapes[*tape].length()) };
                Ok(())
            }
            Control::EmptyTape { out } => {
                state.tapes[*out] = Tape::default();
                Ok(())
            }
            Control::CopyTape { from, to } => {
                if from != to {
                    state.tapes[*to] = state.tapes[*from].clone();
                }
                Ok(())
            }
        }
    }
}

fn collective(
    kind: &Collective,
    across: &Across,
    ins: &[(Cell, usize)],
    outs: &[(Cell, usize)],
    combine: &[Option<Combiner>],
    state: &mut RunState,
    cx: &RunCx,
) -> Res<()> {
    let world = cx.world.ok_or_else(|| Error::Invalid(format!("a collective over {across:?} outside of any mesh")))?;
    if let Collective::AxisIndex = kind {
        let (rank, _) = world.rank(across)?;
        for (c, bytes) in outs {
            // SAFETY: verify, sizes: the result of an axis index is one i32; `bytes` is its slot's.
            unsafe { write_int(state.ptrs[*c as usize], *bytes, rank) };
        }
        return Ok(());
    }
    for (((from, bytes), (to, out_bytes)), combine) in ins.iter().zip(outs).zip(combine) {
        // SAFETY: `bytes` is the size of the slot; verify, places: the cell points at so many;
        // written: it is live. The slice ends before `out` begins.
        let mine = unsafe { std::slice::from_raw_parts(state.ptrs[*from as usize].cast_const(), *bytes) };
        // SAFETY: as above for the result, which overlaps no other live slot (disjoint), hence this slice is exclusive; a later operand in the
        // same memory would not be live after this write (written).
        let out = unsafe { std::slice::from_raw_parts_mut(state.ptrs[*to as usize], *out_bytes) };
        let combining = combine.as_ref().map(|with| BlockArithmetic { with, cx });
        world.meet(across, kind, mine, out, combining.as_ref().map(|c| c as &dyn TermArithmetic))?;
    }
    Ok(())
}

impl CompiledLoop {
    fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        let known = match self.trips {
            Trips::Static(n) => Some(n),
            Trips::Dyn(c, d) => {
                // SAFETY: verify, sizes: the trip count is one number of dtype d; written: it is
                // live.
                let bytes = unsafe { std::slice::from_raw_parts(state.ptrs[c as usize].cast_const(), d.size()) };
                Some(Scalar::from_bytes(d, bytes).to_i64().max(0) as usize)
            }
            Trips::While { .. } => None,
        };
        let home: SmallVec<[(*mut u8, *mut u8); 8]> =
            self.carries.iter().map(|c| (state.ptrs[c.slot as usize], state.ptrs[c.next as usize])).collect();
        for c in &self.carries {
            self.enter(c, known, state);
        }
        let mut tapes: SmallVec<[Option<Writing>; 2]> = SmallVec::new();
        for y in &self.ys {
            tapes.push(y.tape.map(|(.., depth)| Writing::new(y.bytes, depth, known.unwrap_or(0))).transpose()?);
        }
        let done = self.iterate(known, &mut tapes, state, cx);
        let results: SmallVec<[*mut u8; 8]> = self.carries.iter().map(|c| state.ptrs[c.slot as usize]).collect();
        for (c, (slot, next)) in self.carries.iter().zip(home) {
            state.ptrs[c.next as usize] = next;
            state.ptrs[c.slot as usize] = slot;
        }
        let count = done?;
        for (c, from) in self.carries.iter().zip(results) {
            match c.tape {
                Some([_, slot, _, out]) => {
                    if slot != out {
                        state.tapes[out] = std::mem::take(&mut state.tapes[slot]);
                    }
                }
                None => {
                    let to = state.ptrs[c.out as usize];
                    if to != from {
                        // SAFETY: verify, sizes: the four slots of a carry are equal in size, `bytes`; loops: nothing touched them meanwhile.
                        unsafe { to.copy_from(from, c.bytes) };
                    }
                }
            }
        }
        for (y, w) in self.ys.iter().zip(tapes) {
            if let (Some((t, ..)), Some(w)) = (y.tape, w) {
                state.tapes[t] = w.done(self.reverse);
            }
        }
        if let Some((c, bytes)) = self.count {
            // SAFETY: verify, sizes: the count is one integer; `bytes` is its slot's.
            unsafe { write_int(state.ptrs[c as usize], bytes, count) };
        }
        Ok(())
    }
    /// Brings the initial value into the carry's slot; if an odd number of iterations is to come, into its other place, so that
    /// the last value ends up where it belongs.
    fn enter(&self, c: &CellCarry, known: Option<usize>, state: &mut RunState) {
        if let Some([init, slot, ..]) = c.tape {
            if init != slot {
                state.tapes[slot] = state.tapes[init].clone();
            }
            return;
        }
        let from = state.ptrs[c.init as usize];
        if c.slot != c.next && c.init != c.slot && known.is_some_and(|n| n % 2 == 1) {
            state.ptrs.swap(c.slot as usize, c.next as usize);
        }
        let to = state.ptrs[c.slot as usize];
        if from != to {
            // SAFETY: verify, sizes: the four slots of a carry are equal in size, `bytes`; written:
            // the initial value is live. (They may overlap, which `copy_from` allows.)
            unsafe { to.copy_from(from, c.bytes) };
        }
    }
    fn iterate(
        &self,
        known: Option<usize>,
        tapes: &mut [Option<Writing>],
        state: &mut RunState,
        cx: &RunCx,
    ) -> Res<usize> {
        if let (Some((group, carried)), Some(n)) = (&self.by_rows, known) {
            group.run_times(n, &Cost::of(group.nanos() * n as f64), carried, state, cx)?;
            if cx.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if n % 2 == 1 {
                carried.iter().for_each(|(a, b)| state.ptrs.swap(*a as usize, *b as usize));
            }
            return Ok(n);
        }
        let mut i = 0;
        loop {
            match (&self.trips, known) {
                (_, Some(n)) if i >= n => return Ok(i),
                (Trips::While { cond, pred }, _) => {
                    run_steps(cond, (state, cx))?;
                    // SAFETY: verify, sizes: the predicate is one bool; written: the condition's steps have just set it.
                    if unsafe { *state.ptrs[*pred as usize] } == 0 {
                        return Ok(i);
                    }
                }
                _ => (),
            }
            if cx.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let at = match known {
                Some(n) if self.reverse => n - 1 - i,
                _ => i,
            };
            for x in &self.xs {
                x.read(at, state);
            }
            for (y, w) in self.ys.iter().zip(tapes.iter_mut()) {
                match w {
                    Some(w) => {
                        let p = w.push()?;
                        state.ptrs[y.each as usize] = p;
                    }
                    None => state.ptrs[y.each as usize] = state.ptrs[y.all as usize].wrapping_add(at * y.bytes),
                }
            }
            run_steps(&self.body, (state, cx))?;
            for (y, w) in self.ys.iter().zip(tapes.iter_mut()) {
                if let (Some(Writing::Nested(v)), Some((_, Some(each), _))) = (w, y.tape) {
                    v.push(state.tapes[each].clone());
                }
            }
            for c in &self.carries {
                match c.tape {
                    Some([_, slot, next, _]) => state.tapes.swap(slot, next),
                    None => state.ptrs.swap(c.slot as usize, c.next as usize),
                }
            }
            i += 1;
        }
    }
}
impl CellWindow {
    /// Points the element's cell at element `at`.
    #[inline]
    fn read(&self, at: usize, state: &mut RunState) {
        let Some((tape, each, _)) = self.tape else {
            state.ptrs[self.each as usize] = state.ptrs[self.all as usize].wrapping_add(at * self.bytes);
            return;
        };
        match (state.tapes[tape].0.as_deref(), each) {
            (Some(Items::Nested(v)), Some(each)) => state.tapes[each] = v.get(at).cloned().unwrap_or_default(),
            (None, Some(each)) => state.tapes[each] = Tape::default(),
            (Some(Items::Flat { data, each, len }), None) if at < *len => {
                state.ptrs[self.each as usize] = data.ptr().wrapping_add(at * each)
            }
            _ => {
                state.ptrs[self.each as usize] =
                    state.zeros.as_ref().map_or(std::ptr::dangling_mut::<u64>().cast(), |z| z.ptr())
            }
        }
    }
}

fn describe_kernel(kernel: &CompiledKernel, ins: &[Cell], outs: &[Cell], s: &mut String, pad: &str) {
    describe_lines(&format!("{outs:?} = kernel {ins:?}\n{}", kernel.text()), s, pad);
}
fn describe_lines(text: &str, s: &mut String, pad: &str) {
    text.lines().for_each(|line| *s += &format!("{pad}{line}\n"));
}
fn describe_group(c: &RowGroup, s: &mut String, pad: &str) {
    *s += &format!("{pad}{}\n", c.text());
    for (work, ins, outs) in c.members() {
        match work {
            MemberWork::Kernel(k) => describe_kernel(k, ins, outs, s, &format!("{pad}  ")),
            MemberWork::Gather(g) => *s += &format!("{pad}  {outs:?} = {} {ins:?}\n", g.text()),
        }
    }
}
/// # Safety
/// `p` points at an integer of `bytes` bytes.
unsafe fn write_int(p: *mut u8, bytes: usize, x: usize) {
    // SAFETY: by the contract.
    unsafe {
        match bytes {
            4 => p.cast::<i32>().write_unaligned(x as i32),
            8 => p.cast::<i64>().write_unaligned(x as i64),
            _ => p.copy_from_nonoverlapping(x.to_le_bytes().as_ptr(), bytes.min(8)),
        }
    }
}
/// Steps as text, one line each.
pub fn describe(steps: &[Ready], s: &mut String, depth: usize) {
    let pad = "  ".repeat(depth);
    for step in steps {
        match step {
            Ready::Kernel { kernel, ins, outs } => describe_kernel(kernel, ins, outs, s, &pad),
            Ready::RowGroup(c) => describe_group(c, s, &pad),
            Ready::Nest(n) => describe_lines(&n.text(), s, &pad),
            Ready::Routine { run, ins, outs } => *s += &format!("{pad}{outs:?} = {} {ins:?}\n", run.text()),
            Ready::Copy { from, to, .. } if from == to => (),
            Ready::Copy { from, to, bytes } => *s += &format!("{pad}[{to}] = copy [{from}] {bytes} bytes\n"),
            Ready::Control(c) => match &**c {
                Control::Loop(l) => {
                    *s += &format!("{pad}loop, {} carries, {} in, {} out\n", l.carries.len(), l.xs.len(), l.ys.len());
                    if let Trips::While { cond, .. } = &l.trips {
                        *s += &format!("{pad}while\n");
                        describe(cond, s, depth + 1);
                    }
                    match &l.by_rows {
                        Some((group, _)) => {
                            *s += &format!("{pad}do, all times for each chunk\n");
                            describe_group(group, s, &"  ".repeat(depth + 1));
                        }
                        None => {
                            *s += &format!("{pad}do\n");
                            describe(&l.body, s, depth + 1);
                        }
                    }
                }
                Control::Switch { branches, .. } => {
                    for (k, b) in branches.iter().enumerate() {
                        *s += &format!("{pad}branch {k}\n");
                        describe(b, s, depth + 1);
                    }
                }
                Control::Callback { call, .. } => *s += &format!("{pad}{call:?}\n"),
                Control::Collective { kind, across, .. } => *s += &format!("{pad}{kind} over {across:?}\n"),
                Control::TapeLen { out, .. } => *s += &format!("{pad}[{out}] = length of a tape\n"),
                Control::EmptyTape { out } => *s += &format!("{pad}tape {out} = empty\n"),
                Control::CopyTape { from, to } => *s += &format!("{pad}tape {to} = tape {from}\n"),
            },
        }
    }
}
