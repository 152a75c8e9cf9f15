//! The rules that make a plan safe to run without further checks, and the only constructor of
//! verified plans.
//!
//! The verifier goes through the [`Timeline`] once. For every cell (slots that share memory by
//! `Place::Same`) it keeps the slot whose value the cell holds. A write ends every value in
//! overlapping memory; a read requires that its value is still held. A loop is visited once: values
//! from outside that an iteration reads must still be held at its end, for the next iteration. Each
//! branch of a switch is visited with the memory as the switch found it; after the switch no value
//! is held that some branch wrote over.
//!
//! INVARIANT: a [`VerifiedPlan`], run step by step in the memory that its places name, computes the
//! same as with separate memory for each slot, and touches no byte outside of it. The proofs of the
//! backends' `unsafe` blocks name its rules:
//!
//! - *places*: a slot lies inside the arena, at a multiple of 64, or is the one root of its input or output; slots that share are equal in
//!   size; tapes are tapes, windows belong to a loop that is running
//! - *sizes*: operands and results of kernels, routines, copies and control steps have the sizes that these state; kernels and routines pass
//!   [`crate::Kernel::verify`] and [`Routine::verify`]
//! - *written*: a slot is written once in a run of its block, before it is read; a block's own slots end with it
//! - *disjoint*: results of a step overlap neither each other nor its operands, except result 0 of a routine that updates its
//!   operand 0, and results of kernels that read the operand only where they write; also where an output reuses a donated input
//! - *inputs*: they are never written; a donated one is not read once its output is begun
//! - *loops*: no other step touches the places of a loop's carries (both of each: they are exchanged) and of its stacked
//!   results while it runs
mod loops;

use super::timeline::{Moment, Timeline};
use super::{Collective, Place, Plan, SlotId, Step};
use crate::dtype::DType;
use crate::error::{Error, Res};
use crate::routine::Routine;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// A plan that keeps the rules of this module.
#[derive(Clone, Debug)]
pub struct VerifiedPlan(Arc<Plan>);
impl Deref for VerifiedPlan {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Plan {
    /// # Errors
    /// `Invalid`, naming the slot and the rule; `TooLarge` for sizes no machine has.
    pub fn verify(self) -> Res<VerifiedPlan> {
        let line = Timeline::of(&self.steps);
        let mut check = Check::new(&self)?;
        for (_, m) in line.moments() {
            check.moment(m)?;
        }
        for s in &self.outputs {
            check.read(*s)?;
        }
        Ok(VerifiedPlan(Arc::new(self)))
    }
}

fn bad<T>(what: String) -> Res<T> {
    Err(Error::Invalid(what))
}

type Cell = usize;
const NONE: usize = usize::MAX;

struct Check<'a> {
    plan: &'a Plan,
    bytes: Vec<usize>,
    /// The cell of each slot: its root's number.
    cells: Vec<Cell>,
    /// The input whose memory an output may be, and the reverse, by cell.
    twin: Vec<Cell>,
    /// How often each cell was written, and after which of these writes it holds each slot's value;
    /// 0 if it does not.
    version: Vec<u32>,
    stamp: Vec<u32>,
    /// The slots defined so far in the open blocks, and each one's place among them.
    defined: Vec<SlotId>,
    order: Vec<u32>,
    /// Cells of the arena by their first byte, those that a later write overlapped taken out.
    arena: BTreeMap<usize, (usize, Cell)>,
    /// How many running loops keep the cell for a carry.
    kept: Vec<u32>,
    /// Whether a running loop stacks results there.
    stacked: Vec<bool>,
    /// The memory that a window of a running loop covers.
    window: Vec<Option<WindowUse>>,
    /// Whether the body may write the carry's slot itself.
    rewritten: Vec<bool>,
    loops: Vec<Frame>,
    branches: Vec<OpenSwitch>,
    /// The loop and carry that marked a cell last, the loop that noted a read last.
    mark: Vec<(u32, u32)>,
    noted: Vec<u32>,
    loops_seen: u32,
}
#[derive(Clone, Copy)]
enum WindowUse {
    Of(SlotId),
    Into,
}
struct Frame {
    id: u32,
    /// Slots defined before it.
    outside: usize,
    /// Of those, the ones it reads.
    reads: Vec<SlotId>,
}

/// A switch whose branches are visited.
struct OpenSwitch {
    /// Slots defined before it.
    outside: usize,
    /// How many branches have ended.
    ended: usize,
    /// The changes by the current branch, to be undone for the next one.
    log: Vec<Undo>,
    /// Cells that a branch wrote.
    written: Vec<Cell>,
}
enum Undo {
    Version(Cell),
    Stamp(SlotId, u32),
    /// The previous entry of the arena's map at this byte.
    Arena(usize, Option<(usize, Cell)>),
}

impl<'a> Check<'a> {
    fn new(plan: &'a Plan) -> Res<Check<'a>> {
        let n = plan.slots.len();
        if plan.places.len() != n || plan.donatable.len() != plan.outputs.len() {
            return bad("places go with slots, and donations with outputs".into());
        }
        let all = plan.inputs.iter().chain(&plan.outputs);
        if let Some(s) = all.into_iter().find(|s| **s as usize >= n) {
            return bad(format!("slot {s} does not exist"));
        }
        let most = isize::MAX as usize;
        let bytes = |s: &super::Slot| s.len.checked_mul(s.dtype.size()).filter(|b| *b <= most);
        let bytes: Vec<usize> = plan
            .slots
            .iter()
            .map(|s| bytes(s).ok_or_else(|| Error::TooLarge(format!("a slot of {} elements of {}", s.len, s.dtype))))
            .collect::<Res<_>>()?;
        let mut check = Check {
            plan,
            bytes,
            cells: vec![NONE; n],
            twin: vec![NONE; n],
            version: vec![0; n],
            stamp: vec![0; n],
            defined: vec![],
            order: vec![0; n],
            arena: BTreeMap::new(),
            kept: vec![0; n],
            stacked: vec![false; n],
            window: vec![None; n],
            rewritten: vec![false; n],
            loops: vec![],
            branches: vec![],
            mark: vec![(0, 0); n],
            noted: vec![0; n],
            loops_seen: 0,
        };
        check.places()?;
        check.donations()?;
        for s in &plan.inputs {
            let is_given = match plan.places[*s as usize] {
                Place::Input(_) | Place::Tape => check.stamp[*s as usize] == 0,
                _ => false,
            };
            if !is_given {
                return bad(format!("input slot {s} is not placed there, or given twice"));
            }
            check.version[*s as usize] = 1;
            check.define(*s);
        }
        Ok(check)
    }
    fn places(&mut self) -> Res<()> {
        let plan = self.plan;
        for s in 0..plan.slots.len() {
            let mut path = vec![];
            let mut at = s;
            while self.cells[at] == NONE {
                let Place::Same(to) = plan.places[at] else {
                    self.cells[at] = at;
                    break;
                };
                if path.len() > plan.slots.len() || to as usize >= plan.slots.len() {
                    return bad(format!("slot {s} shares memory with itself, or with a slot that does not exist"));
                }
                path.push(at);
                at = to as usize;
            }
            let root = self.cells[at];
            path.into_iter().for_each(|p| self.cells[p] = root);
            let slot = &plan.slots[s];
            if root != s {
                let alike = self.bytes[root] == self.bytes[s] && slot.tape == 0 && plan.slots[root].tape == 0;
                if !alike || plan.places[root] == Place::Window {
                    return bad(format!("slot {s} shares the memory of slot {root}, which has another size"));
                }
                continue;
            }
            let fits = match plan.places[s] {
                Place::Input(i) => slot.tape == 0 && plan.inputs.get(i as usize) == Some(&(s as SlotId)),
                Place::Output(o) => slot.tape == 0 && plan.outputs.get(o as usize).is_some(),
                Place::Arena(at) => {
                    let end = at.checked_add(self.bytes[s]);
                    slot.tape == 0 && at.is_multiple_of(64) && end.is_some_and(|e| e <= plan.arena)
                }
                Place::Window => true,
                Place::Tape => slot.tape > 0,
                Place::Same(_) => false,
            };
            if !fits {
                return bad(format!("slot {s} ({slot:?}) cannot lie in {:?}", plan.places[s]));
            }
        }
        for (s, place) in plan.places.iter().enumerate() {
            if let Place::Output(o) = place
                && self.cells[plan.outputs[*o as usize] as usize] != s
            {
                return bad(format!("slot {s} lies in output {o}, which is another's"));
            }
        }
        if plan.arena > isize::MAX as usize {
            return Err(Error::TooLarge(format!("an arena of {} bytes", plan.arena)));
        }
        Ok(())
    }
    fn donations(&mut self) -> Res<()> {
        let plan = self.plan;
        for (o, i) in plan.donatable.iter().enumerate() {
            let Some(i) = i else { continue };
            let out = self.cells[plan.outputs[o] as usize];
            let Some(input) = plan.inputs.get(*i as usize).map(|s| *s as usize) else {
                return bad(format!("output {o} takes over input {i}, which does not exist"));
            };
            let fits = plan.places[out] == Place::Output(o as u32)
                && plan.places[input] == Place::Input(*i)
                && self.bytes[out] == self.bytes[input]
                && self.twin[input] == NONE;
            if !fits {
                return bad(format!("output {o} cannot take over input {i}"));
            }
            (self.twin[out], self.twin[input]) = (input, out);
        }
        Ok(())
    }

    fn cell(&self, s: SlotId) -> Cell {
        self.cells[s as usize]
    }
    fn exists(&self, s: SlotId) -> Res<()> {
        if (s as usize) < self.plan.slots.len() { Ok(()) } else { bad(format!("slot {s} does not exist")) }
    }
    fn define(&mut self, s: SlotId) {
        let k = s as usize;
        self.stamp[k] = self.version[self.cells[k]];
        self.order[k] = self.defined.len() as u32;
        self.defined.push(s);
    }
    /// Ends all that was defined since.
    fn close(&mut self, mark: usize) {
        for s in self.defined.split_off(mark) {
            let s = s as usize;
            self.stamp[s] = 0;
        }
    }
    fn is_live(&self, s: SlotId) -> bool {
        let k = s as usize;
        let mine = self.stamp[k] != 0 && self.stamp[k] == self.version[self.cells[k]];
        mine && if let Some(WindowUse::Of(all)) = self.window[k] { self.is_live(all) } else { true }
    }
    fn read(&mut self, s: SlotId) -> Res<()> {
        self.exists(s)?;
        if !self.is_live(s) {
            return bad(format!("slot {s} is read where it does not hold its value"));
        }
        if let Some(l) = self.loops.last_mut()
            && (self.order[s as usize] as usize) < l.outside
            && self.noted[s as usize] != l.id
        {
            self.noted[s as usize] = l.id;
            l.reads.push(s);
        }
        if let Some(WindowUse::Of(all)) = self.window[s as usize] {
            self.read(all)?;
        }
        Ok(())
    }
    fn write(&mut self, s: SlotId) -> Res<()> {
        self.exists(s)?;
        let (k, cell) = (s as usize, self.cell(s));
        if self.stamp[k] != 0 && !self.rewritten[k] {
            return bad(format!("slot {s} is written twice"));
        }
        match (&self.plan.places[cell], self.window[k]) {
            (Place::Input(_), _) => return bad(format!("slot {s} is written, which lies in an input")),
            (_, Some(WindowUse::Of(_))) | (Place::Window, None) => {
                return bad(format!("slot {s} is written, which is not a window that a running loop fills"));
            }
            _ if self.stacked[cell] => return bad(format!("slot {s} is written where a running loop stacks results")),
            _ => (),
        }
        self.write_over(cell);
        if let Place::Arena(at) = self.plan.places[cell] {
            self.take(at, cell)?;
        }
        if self.twin[cell] != NONE {
            self.write_over(self.twin[cell]);
        }
        if self.stamp[k] == 0 {
            self.define(s);
        } else {
            self.log(Undo::Stamp(s, self.stamp[k]));
            self.stamp[k] = self.version[cell];
        }
        Ok(())
    }
    fn log(&mut self, undo: Undo) {
        if let Some(b) = self.branches.last_mut() {
            b.log.push(undo);
        }
    }
    /// Ends the values that a cell holds.
    fn write_over(&mut self, cell: Cell) {
        self.log(Undo::Version(cell));
        self.version[cell] += 1;
    }
    /// The memory as the innermost open switch found it.
    fn roll_back(&mut self) {
        let Some(open) = self.branches.last_mut() else { return };
        for undo in std::mem::take(&mut open.log).into_iter().rev() {
            match undo {
                Undo::Version(cell) => {
                    self.version[cell] -= 1;
                    open.written.push(cell);
                }
                Undo::Stamp(s, stamp) => self.stamp[s as usize] = stamp,
                Undo::Arena(at, Some(before)) => drop(self.arena.insert(at, before)),
                Undo::Arena(at, None) => drop(self.arena.remove(&at)),
            }
        }
    }
    /// Assigns bytes of the arena to a cell; the values that they held are lost.
    fn take(&mut self, at: usize, cell: Cell) -> Res<()> {
        let end = at + self.bytes[cell];
        if at == end || self.arena.get(&at) == Some(&(end, cell)) {
            return Ok(());
        }
        while let Some((&from, &(to, other))) = self.arena.range(..end).next_back() {
            if to <= at {
                break;
            }
            if self.kept[other] > 0 || self.stacked[other] {
                return bad(format!(
                    "slot {cell} is written over the place of slot {other}, which a running loop keeps"
                ));
            }
            self.write_over(other);
            self.log(Undo::Arena(from, Some((to, other))));
            self.arena.remove(&from);
        }
        self.log(Undo::Arena(at, None));
        self.arena.insert(at, (end, cell));
        Ok(())
    }

    fn moment(&mut self, m: Moment) -> Res<()> {
        match m {
            Moment::Step(s) => self.step(s),
            Moment::Enter(l) => self.enter(l),
            Moment::Test(l, pred) => {
                self.number(pred, |d| d == DType::Bool, "a predicate")?;
                self.read(pred)?;
                self.show(l)
            }
            Moment::Leave(l, _) => self.leave(l),
            Moment::Choose(index, outs) => {
                self.number(index, |d| d == DType::I32, "a branch index")?;
                self.read(index)?;
                for s in outs {
                    self.exists(*s)?;
                    if self.stamp[*s as usize] != 0 {
                        return bad(format!("slot {s} is written twice"));
                    }
                }
                self.branches.push(OpenSwitch { outside: self.defined.len(), ended: 0, log: vec![], written: vec![] });
                Ok(())
            }
            Moment::Branch(outs) => {
                if let Some(s) = outs.iter().find(|s| !self.is_live(**s)) {
                    return bad(format!("slot {s} is not written by every branch"));
                }
                if let Some(open) = self.branches.last_mut() {
                    open.ended += 1;
                    let outside = open.outside;
                    self.close(outside);
                }
                self.roll_back();
                Ok(())
            }
            Moment::Join(outs) => {
                let Some(mut open) = self.branches.pop().filter(|open| open.ended > 0) else {
                    return bad("a switch without branches".into());
                };
                open.written.sort_unstable();
                open.written.dedup();
                open.written.iter().for_each(|cell| self.write_over(*cell));
                outs.iter().try_for_each(|s| self.write(*s))?;
                self.apart(outs)
            }
        }
    }
    /// Whether none of these results was written over by another.
    fn apart(&self, outs: &[SlotId]) -> Res<()> {
        match outs.iter().find(|s| !self.is_live(**s)) {
            Some(s) => bad(format!("slot {s} shares memory with another result of its step")),
            None => Ok(()),
        }
    }
    fn array(&self, s: SlotId) -> Res<usize> {
        self.exists(s)?;
        match self.plan.slots[s as usize].tape {
            0 => Ok(self.bytes[s as usize]),
            _ => bad(format!("slot {s} is a tape where an array is needed")),
        }
    }
    fn number(&self, s: SlotId, is: impl Fn(DType) -> bool, what: &str) -> Res<()> {
        self.array(s)?;
        let slot = &self.plan.slots[s as usize];
        if slot.len == 1 && is(slot.dtype) { Ok(()) } else { bad(format!("{what} is slot {s}: {slot:?}")) }
    }
    fn integer(&self, s: SlotId, what: &str) -> Res<()> {
        self.number(s, |d| matches!(d, DType::I32 | DType::I64), what)
    }
    fn sized(&self, what: &str, slots: &[SlotId], want: &[(DType, usize)], longer: bool) -> Res<()> {
        if slots.len() != want.len() {
            return bad(format!("{what} has {} slots where it needs {want:?}", slots.len()));
        }
        for (s, (d, n)) in slots.iter().zip(want) {
            let (have, need) = (self.array(*s)?, n.checked_mul(d.size()));
            if need != Some(have) && !(longer && need.is_some_and(|need| have > need)) {
                return bad(format!("{what} takes slot {s} of {have} bytes for {n} of {d}"));
            }
        }
        Ok(())
    }

    fn step(&mut self, s: &Step) -> Res<()> {
        match s {
            Step::Kernel { kernel: k, ins, outs } => {
                k.verify()?;
                self.sized("a kernel", ins, &k.inputs, false)?;
                let n = k.grid.size();
                self.sized("a kernel", outs, &k.output_dtypes().map(|d| (d, n)).collect::<Vec<_>>(), false)?;
                self.apply(ins, outs, |i, o| k.in_place(i, o))
            }
            Step::Routine { routine: r, ins, outs } => {
                r.verify()?;
                // a product's strides may leave out elements after the last one
                self.sized(r.name(), ins, &r.operands(), matches!(**r, Routine::Dot(_)))?;
                self.sized(r.name(), outs, &r.results(), false)?;
                self.apply(ins, outs, |i, o| r.updates_operand() && i == 0 && o == 0)
            }
            Step::Copy { from, to } => {
                self.exists(*from)?;
                self.exists(*to)?;
                let (a, b) = (&self.plan.slots[*from as usize], &self.plan.slots[*to as usize]);
                if a.tape != b.tape || self.bytes[*from as usize] != self.bytes[*to as usize] {
                    return bad(format!("slot {from} is copied to slot {to}, which is of another kind"));
                }
                if self.cell(*from) != self.cell(*to) {
                    return self.apply(&[*from], &[*to], |_, _| false);
                }
                self.read(*from)?;
                if self.stamp[*to as usize] != 0 {
                    return bad(format!("slot {to} is written twice"));
                }
                self.define(*to);
                Ok(())
            }
            Step::Callback { ins, outs, .. } => {
                for s in ins.iter().chain(outs) {
                    self.array(*s)?;
                }
                self.apply(ins, outs, |_, _| false)
            }
            Step::Collective { kind, ins, outs, .. } => {
                self.collective(kind, ins, outs)?;
                self.apply(ins, outs, |_, _| false)
            }
            Step::TapeLen { tape, out } => {
                self.tape(*tape)?;
                self.integer(*out, "a tape's length")?;
                self.apply(&[*tape], &[*out], |_, _| false)
            }
            Step::EmptyTape { out } => {
                self.tape(*out)?;
                self.write(*out)
            }
            Step::Loop(_) | Step::Switch { .. } => unreachable!("laid out"),
        }
    }
    fn tape(&self, s: SlotId) -> Res<()> {
        self.exists(s)?;
        if self.plan.slots[s as usize].tape > 0 { Ok(()) } else { bad(format!("slot {s} is not a tape")) }
    }
    /// Reads, then writes; operand i and result o may share memory where `in_place` allows it.
    fn apply(&mut self, ins: &[SlotId], outs: &[SlotId], in_place: impl Fn(usize, usize) -> bool) -> Res<()> {
        ins.iter().try_for_each(|s| self.read(*s))?;
        outs.iter().try_for_each(|s| self.write(*s))?;
        self.apart(outs)?;
        for (i, s) in ins.iter().enumerate().filter(|(_, s)| !self.is_live(**s)).collect::<Vec<_>>() {
            let cell = self.cell(*s);
            let over = |o: &SlotId| self.cell(*o) == cell || self.twin[self.cell(*o)] == cell;
            let by: Vec<usize> = (0..outs.len()).filter(|k| over(&outs[*k])).collect();
            if by.is_empty() {
                return bad(format!("slot {s} is overwritten in part by a step that reads it"));
            }
            if let Some(o) = by.iter().find(|o| !in_place(i, **o)) {
                return bad(format!("slot {s} is read by a step that writes slot {} in its place", outs[*o]));
            }
        }
        Ok(())
    }
    fn collective(&self, kind: &Collective, ins: &[SlotId], outs: &[SlotId]) -> Res<()> {
        if *kind == Collective::AxisIndex {
            outs.iter().try_for_each(|s| self.integer(*s, "a device's index"))?;
            return if ins.is_empty() { Ok(()) } else { bad("a device's index has no operands".into()) };
        }
        if ins.len() != outs.len() {
            return bad(format!("a collective of {} operands has {} results", ins.len(), outs.len()));
        }
        for (x, y) in ins.iter().zip(outs) {
            let (a, b) = (self.array(*x)?, self.array(*y)?);
            let (d, e) = (self.plan.slots[*x as usize].dtype, self.plan.slots[*y as usize].dtype);
            let fits = match kind {
                Collective::AllGather => a == 0 && b == 0 || a > 0 && b.is_multiple_of(a),
                Collective::ReduceScatter(r) => (a == 0 && b == 0 || b > 0 && a.is_multiple_of(b)) && r.bin().is_some(),
                Collective::AllReduce(r) => a == b && r.bin().is_some(),
                _ => a == b,
            };
            if !fits || d != e {
                return bad(format!("{kind:?} makes slot {y} of slot {x}, which is of another size"));
            }
        }
        Ok(())
    }
}
