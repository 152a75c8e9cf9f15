//! Plans, step by step; every slot has memory of its own.
use super::scalar::{bin, convert};
use super::{array, kernel, undefined};
use crate::backend::RunCx;
use crate::collective::TermArithmetic;
use crate::collective::tree::accumulator;
use crate::error::{Error, Res};
use crate::plan::{Across, Carry, Collective, Loop, Plan, SlotId, Step, Trip, Window};
use crate::{DType, ReduceKind, Scalar};
use std::sync::atomic::Ordering;

/// The value of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotValue {
    Bytes(Vec<u8>),
    /// A sequence of values; of sequences, where tapes nest.
    Tape(Vec<SlotValue>),
    /// A tape that reads as zeros however far.
    Zeros,
}

/// Runs `plan` on the values of its inputs; inputs and outputs may be tapes.
pub fn run_values(plan: &Plan, cx: &RunCx, ins: Vec<SlotValue>) -> Res<Vec<SlotValue>> {
    let mut run = Run { plan, cx, slots: vec![None; plan.slots.len()] };
    if ins.len() != plan.inputs.len() {
        return Err(Error::Invalid(format!("a plan of {} inputs is given {}", plan.inputs.len(), ins.len())));
    }
    for (slot, v) in plan.inputs.iter().zip(ins) {
        run.set(*slot, v)?;
    }
    run.steps(&plan.steps)?;
    plan.outputs.iter().map(|o| run.get(*o).cloned()).collect()
}

struct Run<'a> {
    plan: &'a Plan,
    cx: &'a RunCx<'a>,
    slots: Vec<Option<SlotValue>>,
}

impl Run<'_> {
    fn dtype(&self, s: SlotId) -> DType {
        self.plan.slots[s as usize].dtype
    }
    fn get(&self, s: SlotId) -> Res<&SlotValue> {
        self.slots[s as usize].as_ref().ok_or_else(|| Error::Invalid(format!("slot {s} is read before it is written")))
    }
    fn bytes(&self, s: SlotId) -> Res<&[u8]> {
        match self.get(s)? {
            SlotValue::Bytes(b) => Ok(b),
            _ => Err(Error::Invalid(format!("slot {s} is a tape where an array is needed"))),
        }
    }
    fn set(&mut self, s: SlotId, v: SlotValue) -> Res<()> {
        let slot = &self.plan.slots[s as usize];
        let fits = match &v {
            SlotValue::Bytes(b) => slot.tape == 0 && b.len() == slot.bytes(),
            _ => slot.tape > 0,
        };
        if !fits {
            return Err(Error::Invalid(format!("slot {s} ({slot:?}) is given another kind of value")));
        }
        self.slots[s as usize] = Some(v);
        Ok(())
    }
    fn set_all(&mut self, outs: &[SlotId], values: Vec<Vec<u8>>) -> Res<()> {
        if outs.len() != values.len() {
            return Err(Error::Invalid(format!("a step of {} results fills {} slots", values.len(), outs.len())));
        }
        outs.iter().zip(values).try_for_each(|(o, v)| self.set(*o, SlotValue::Bytes(v)))
    }
    fn all_bytes(&self, ins: &[SlotId]) -> Res<Vec<&[u8]>> {
        ins.iter().map(|s| self.bytes(*s)).collect()
    }
    /// The value of a rank-0 slot.
    fn scalar(&self, s: SlotId) -> Res<Scalar> {
        let x = array::read(self.dtype(s), self.bytes(s)?);
        x.first().copied().ok_or_else(|| Error::Invalid(format!("slot {s} is empty where one number is needed")))
    }
    /// Writes a number at the slot's dtype.
    fn set_number(&mut self, s: SlotId, n: usize) -> Res<()> {
        let x = Scalar::from_i64(self.dtype(s), n as i64);
        self.set(s, SlotValue::Bytes(array::write(&[x])))
    }

    fn steps(&mut self, steps: &[Step]) -> Res<()> {
        steps.iter().try_for_each(|s| self.step(s))
    }
    fn step(&mut self, step: &Step) -> Res<()> {
        if self.cx.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match step {
            Step::Kernel { kernel: k, ins, outs } => {
                let values = kernel::kernel(k, &self.all_bytes(ins)?)?;
                self.set_all(outs, values)
            }
            Step::Routine { routine, ins, outs } => {
                let values = super::routine(routine, &self.all_bytes(ins)?)?;
                self.set_all(outs, values)
            }
            Step::Copy { from, to } => self.set(*to, self.get(*from)?.clone()),
            Step::Loop(l) => self.run_loop(l),
            Step::Switch { index, branches, .. } => {
                let last =
                    branches.len().checked_sub(1).ok_or_else(|| Error::Invalid("a switch without branches".into()))?;
                let chosen = array::as_index(self.scalar(*index)?).clamp(0, last as i64);
                self.steps(&branches[chosen as usize])
            }
            Step::Callback { call, ins, outs } => {
                let mut values: Vec<Vec<u8>> =
                    outs.iter().map(|o| vec![0; self.plan.slots[*o as usize].bytes()]).collect();
                let mut places: Vec<&mut [u8]> = values.iter_mut().map(|v| &mut v[..]).collect();
                call.f.call(&self.all_bytes(ins)?, &mut places)?;
                self.set_all(outs, values)
            }
            Step::Collective { kind, across, ins, outs } => self.collective(kind, across, ins, outs),
            Step::TapeLen { tape, out } => {
                let n = match self.get(*tape)? {
                    SlotValue::Tape(t) => t.len(),
                    SlotValue::Zeros => 0,
                    SlotValue::Bytes(_) => return Err(Error::Invalid(format!("slot {tape} is not a tape"))),
                };
                self.set_number(*out, n)
            }
            Step::EmptyTape { out } => self.set(*out, SlotValue::Zeros),
        }
    }

    fn run_loop(&mut self, l: &Loop) -> Res<()> {
        for Carry { init, slot, .. } in &l.carries {
            self.set(*slot, self.get(*init)?.clone())?;
        }
        let trip = match l.trip {
            Trip::Static(n) => Some(n),
            Trip::Dyn(n) => Some(array::as_index(self.scalar(n)?).max(0) as usize),
            Trip::While { .. } => None,
        };
        // Element i of each of ys, in the order of iterations.
        let mut ys: Vec<Vec<SlotValue>> = vec![vec![]; l.ys.len()];
        let mut i = 0;
        loop {
            if self.cx.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let goes_on = match (&l.trip, trip) {
                (Trip::While { cond, pred }, _) => {
                    self.steps(cond)?;
                    !self.scalar(*pred)?.is_zero()
                }
                (_, n) => Some(i) < n,
            };
            if !goes_on {
                break;
            }
            for w in &l.xs {
                let x = self.element(w, i, trip.filter(|_| l.reverse))?;
                self.set(w.each, x)?;
            }
            self.steps(&l.body)?;
            for (y, w) in ys.iter_mut().zip(&l.ys) {
                y.push(self.get(w.each)?.clone());
            }
            // All are read before any is written: carries may be exchanged.
            let next: Vec<SlotValue> = l.carries.iter().map(|c| self.get(c.next).cloned()).collect::<Res<_>>()?;
            for (c, v) in l.carries.iter().zip(next) {
                self.set(c.slot, v)?;
            }
            i += 1;
        }
        for Carry { slot, out, .. } in &l.carries {
            self.set(*out, self.get(*slot)?.clone())?;
        }
        for (mut y, w) in ys.into_iter().zip(&l.ys) {
            if l.reverse {
                y.reverse();
            }
            self.set(w.all, if self.plan.slots[w.all as usize].tape > 0 { SlotValue::Tape(y) } else { stacked(y) })?;
        }
        l.count.map_or(Ok(()), |c| self.set_number(c, i))
    }

    /// The element that the window covers at iteration `i`; `from_end_of` is the trip count of a
    /// reverse loop.
    fn element(&self, w: &Window, i: usize, from_end_of: Option<usize>) -> Res<SlotValue> {
        let k = from_end_of.map_or(i, |n| n - 1 - i);
        let each = &self.plan.slots[w.each as usize];
        let missing =
            || Error::Invalid(format!("iteration {i} reads element {k} of slot {}, which ends before", w.all));
        // past its end a tape reads as zeros
        let zeros = || if each.tape > 0 { SlotValue::Zeros } else { SlotValue::Bytes(vec![0; each.bytes()]) };
        match self.get(w.all)? {
            SlotValue::Zeros => Ok(zeros()),
            SlotValue::Tape(t) => Ok(t.get(k).cloned().unwrap_or_else(zeros)),
            SlotValue::Bytes(b) => b
                .get(k * each.bytes()..(k + 1) * each.bytes())
                .map(|b| SlotValue::Bytes(b.to_vec()))
                .ok_or_else(missing),
        }
    }

    fn collective(&mut self, kind: &Collective, across: &Across, ins: &[SlotId], outs: &[SlotId]) -> Res<()> {
        let world = self
            .cx
            .world
            .ok_or_else(|| Error::Invalid(format!("a collective over {across:?} runs on a single device")))?;
        let (rank, _) = world.rank(across)?;
        if *kind == Collective::AxisIndex {
            return outs.iter().try_for_each(|o| self.set_number(*o, rank));
        }
        for (x, out) in ins.iter().zip(outs) {
            let mut value = vec![0; self.plan.slots[*out as usize].bytes()];
            let d = self.dtype(*x);
            let numbers = kind.combines().map(|by| Numbers { by, dtype: d });
            let combine = numbers.as_ref().map(|n| n as &dyn TermArithmetic);
            world.meet(across, kind, self.bytes(*x)?, &mut value, combine)?;
            self.set(*out, SlotValue::Bytes(value))?;
        }
        Ok(())
    }
}

fn stacked(elements: Vec<SlotValue>) -> SlotValue {
    SlotValue::Bytes(elements.into_iter().flat_map(|e| if let SlotValue::Bytes(b) = e { b } else { vec![] }).collect())
}

/// The function that combines the elements of devices.
struct Numbers {
    by: ReduceKind,
    dtype: DType,
}
impl Numbers {
    fn convert(&self, from: &[u8], d: DType, e: DType, to: &mut [u8]) {
        let all: Vec<Scalar> = array::read(d, from).into_iter().map(|x| convert(x, e)).collect();
        to.copy_from_slice(&array::write(&all));
    }
}
impl TermArithmetic for Numbers {
    fn sizes(&self) -> [usize; 3] {
        [self.dtype.size(), accumulator(self.dtype).size(), 64]
    }
    fn widen(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        self.convert(from, self.dtype, accumulator(self.dtype), to);
        Ok(())
    }
    fn round(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        self.convert(from, accumulator(self.dtype), self.dtype, to);
        Ok(())
    }
    fn pair(&self, a: &[u8], b: &[u8], to: &mut [u8]) -> Res<()> {
        let d = accumulator(self.dtype);
        let f = self.by.bin().ok_or_else(|| undefined(self.by.name(), Scalar::zero(d)))?;
        let both = array::read(d, a).into_iter().zip(array::read(d, b));
        let one = |(a, b)| Ok(convert(bin(f, kernel::lane(a), kernel::lane(b))?, d));
        to.copy_from_slice(&array::write(&both.map(one).collect::<Res<Vec<Scalar>>>()?));
        Ok(())
    }
}
