//! Nested blocks: loops, branches, host calls. Operands and results of a block are materialized.
//! Inside a loop a pair is two arrays, so that no step strides over every second element; stacked
//! windows and the results of the plan have their physical, interleaved form.
use super::graph::{Def, Graph, Guard, TensorId, TensorIds, unit};
use super::{Physical, physical};
use crate::aval::Aval;
use crate::dtype::Dtype;
use crate::error::Res;
use crate::program::Program;
use ferrax_kernel::plan::{Across, Carry, Collective, HostCall, Loop, SlotId, Trip, Window};
use ferrax_kernel::{Affine, DType, Dims, Step};
use smallvec::{SmallVec, smallvec};

/// The end condition of a loop, in terms of values.
pub enum TripOf<'a> {
    Static(usize),
    Dyn(TensorId),
    /// The predicate's program takes these leading operands, then the carries.
    While(&'a Program, &'a [TensorId]),
}

/// `carry, ys = init, []; for x in xs { carry, y = body(consts, carry, x); ys.push(y) }`.
pub struct LoopOf<'a> {
    pub trip: TripOf<'a>,
    pub reverse: bool,
    pub body: &'a Program,
    pub consts: &'a [TensorId],
    pub init: &'a [TensorId],
    pub xs: &'a [TensorId],
    /// The types of the results: carries, stacked ys and, for a loop with a computed trip count,
    /// the count.
    pub outs: &'a [Aval],
    pub counted: bool,
}

impl Graph {
    /// A value of `aval` whose memory is `slot`.
    pub(super) fn bring_in(&mut self, aval: &Aval, slot: SlotId) -> TensorId {
        let Physical { shape, paired, .. } = physical(aval);
        let x = self.input(shape, slot);
        if aval.tape == 0 && paired { self.unzip(x) } else { x }
    }
    /// The physical form: pairs interleaved along a trailing axis of 2.
    pub fn take_out(&mut self, x: TensorId) -> TensorId {
        let Some((a, b)) = self.parts(x) else { return x };
        if let Some(whole) = self.zipped(a, b) {
            return whole;
        }
        let rank = self.rank(a);
        let shape = self.shape(a).insert(rank, 2);
        let map: SmallVec<[Affine; 4]> = (0..rank).map(unit).collect();
        // Each part is read at its own index of the new axis only, so that it is computed once.
        let mut part = |x: TensorId, k: i64| {
            let guard = Guard { at: unit(rank), lo: k, hi: k + 1 };
            self.guarded(x, shape.clone(), &map, &[guard], None)
        };
        let (a, b) = (part(a, 0), part(b, 1));
        let i = self.iota(DType::I32, shape, rank);
        let zero = self.scalar(i, 0.0);
        let first = self.bin(ferrax_kernel::Bin::Eq, i, zero);
        self.select(first, a, b)
    }
    /// The array of pairs that x is, if it was not computed but moved, whole pairs at a time.
    pub fn in_pairs(&self, x: TensorId) -> Option<TensorId> {
        self.parts(x).and_then(|(a, b)| self.zipped(a, b))
    }
    /// The same, if a view with this map takes neighbours in the last axis side by side.
    pub(super) fn in_pairs_by_rows(&self, x: TensorId, map: &[Affine], shape: &Dims) -> Option<TensorId> {
        let (last, (along, others)) = (shape.len().checked_sub(1)?, map.split_last()?);
        let is_row = along.stride(last) == 1 && others.iter().all(|m| m.stride(last) == 0);
        self.in_pairs(x).filter(|_| is_row)
    }
    /// The value that a and b are the two halves of, as [`Graph::unzip`] made them.
    fn zipped(&self, a: TensorId, b: TensorId) -> Option<TensorId> {
        let half = |x: TensorId, k: i64| match &self.tensors[x as usize].def {
            Def::View(v) if !self.written(x) && v.guards.is_empty() && self.tape(v.of) == 0 => {
                let (rank, last) = (self.rank(x), v.map.last()?);
                let whole = self.shape(v.of) == self.shape(x).insert(rank, 2);
                let fixed = last.offset == k && last.strides.iter().all(|s| *s == 0);
                (whole && fixed && v.map[..rank].iter().enumerate().all(|(i, m)| *m == unit(i))).then_some(v.of)
            }
            _ => None,
        };
        half(a, 0).filter(|of| half(b, 1) == Some(*of))
    }
    /// `[.., 2]` as a pair.
    pub fn unzip(&mut self, x: TensorId) -> TensorId {
        let shape = self.shape(x);
        let rank = shape.len() - 1;
        let shape = shape.remove(rank);
        let part = |k: i64| -> Vec<Affine> { (0..rank).map(unit).chain([Affine::constant(k)]).collect() };
        let (a, b) = (self.view(x, shape.clone(), &part(0)), self.view(x, shape, &part(1)));
        self.pair(a, b)
    }
    fn out_slot(&mut self, a: &Aval) -> SlotId {
        let p = physical(a);
        self.plan.add_slot(p.dtype, p.shape.size(), a.tape)
    }
    /// Makes slots for a value of a block.
    fn place(&mut self, a: &Aval) -> ValueSlots {
        match parts_of(a) {
            Some((dtype, n)) => (0..2).map(|_| self.plan.add_slot(dtype, n.size(), 0)).collect(),
            None => smallvec![self.out_slot(a)],
        }
    }
    /// Operands of a block, in memory.
    fn operands(&mut self, xs: &[TensorId]) -> Vec<ValueSlots> {
        xs.iter().map(|x| self.operand(*x)).collect()
    }
    fn operand(&mut self, x: TensorId) -> ValueSlots {
        match self.parts(x) {
            Some((a, b)) => smallvec![self.force(a), self.force(b)],
            None => smallvec![self.force(x)],
        }
    }
    fn bring_in_from(&mut self, a: &Aval, place: &ValueSlots) -> TensorId {
        match place[..] {
            [x, y] => {
                let [x, y] = [x, y].map(|slot| self.input(a.shape.clone(), slot));
                self.pair(x, y)
            }
            _ => self.bring_in(a, place[0]),
        }
    }

    /// Lowers `p` as a block that reads `ins` and writes `outs`; the first `constants` of `ins` are the same each time the block runs.
    fn block(&mut self, p: &Program, ins: &[ValueSlots], constants: usize, outs: &[ValueSlots]) -> Res<Vec<Step>> {
        let block = self.opened(p, ins)?;
        Ok(self.closed(block, constants, outs))
    }
    /// The values of a block, which has the plan until it is closed.
    fn opened(&mut self, p: &Program, ins: &[ValueSlots]) -> Res<Block> {
        let plan = std::mem::take(&mut self.plan);
        let mut sub = Graph { plan, unfused: self.unfused, unshared: self.unshared, ..Graph::default() };
        let ins: Vec<TensorId> = p.in_avals().iter().zip(ins).map(|(a, s)| sub.bring_in_from(a, s)).collect();
        let simple = if self.unshared { crate::simplify::inline_calls(p) } else { crate::simplify::simplify(p) };
        match sub.inline(&simple, &ins) {
            Ok(outs) => Ok(Block { graph: sub, ins, outs }),
            Err(e) => {
                self.plan = sub.plan;
                Err(e)
            }
        }
    }
    fn closed(&mut self, block: Block, constants: usize, outs: &[ValueSlots]) -> Vec<Step> {
        let Block { graph: mut sub, ins, outs: ys } = block;
        for (y, place) in ys.iter().zip(outs) {
            match (&place[..], sub.parts(*y)) {
                ([p, q], Some((a, b))) => {
                    sub.write_to(a, *p);
                    sub.write_to(b, *q);
                }
                _ => {
                    let y = sub.take_out(*y);
                    sub.write_to(y, place[0]);
                }
            }
        }
        if constants > 0 {
            sub.materialize_invariant(&ins[..constants]);
        }
        let steps = super::fuse::steps(&mut sub);
        self.plan = sub.plan;
        steps
    }
    /// Has `x` written to `slot`.
    fn write_to(&mut self, x: TensorId, slot: SlotId) {
        if self.tensors[x as usize].slot == Some(slot) {
            return;
        }
        if self.fresh(x) {
            self.tensors[x as usize].slot = Some(slot);
            return;
        }
        if self.tape(x) > 0 {
            // one tape, two names
            let from = self.force(x);
            self.steps.push(Step::Copy { from, to: slot });
            return;
        }
        let map: Vec<Affine> = (0..self.rank(x)).map(unit).collect();
        let shape = self.shape(x);
        let copy = self.view(x, shape, &map);
        self.force_fresh(copy, slot);
    }

    pub fn loop_(&mut self, l: LoopOf) -> Res<TensorIds> {
        let n_carry = l.init.len();
        let consts = self.operands(l.consts);
        let init = self.operands(l.init);
        let xs: Vec<SlotId> = l.xs.iter().map(|x| self.whole(*x)).collect();
        let n_slots = self.plan.slots.len();
        let (carry_avals, rest) = l.body.in_avals()[consts.len()..].split_at(n_carry);
        let slots: Vec<ValueSlots> = carry_avals.iter().map(|a| self.place(a)).collect();
        let nexts: Vec<ValueSlots> = carry_avals.iter().map(|a| self.place(a)).collect();
        let xs_each: Vec<ValueSlots> = rest.iter().map(|a| smallvec![self.out_slot(a)]).collect();
        let ys_each: Vec<ValueSlots> =
            l.body.out_avals()[n_carry..].iter().map(|a| smallvec![self.out_slot(a)]).collect();
        let trip = match l.trip {
            TripOf::Static(n) => Trip::Static(n),
            TripOf::Dyn(n) => Trip::Dyn(self.force(n)),
            TripOf::While(p, head) => {
                let head = self.operands(head);
                let ins = [&head[..], &slots].concat();
                let pred = self.plan.add_slot(DType::Bool, 1, 0);
                let cond = self.block(p, &ins, head.len(), &[smallvec![pred]])?;
                Trip::While { cond: self.invariant(cond, &head.concat(), &[pred]), pred }
            }
        };
        let ins: Vec<ValueSlots> = [&consts[..], &slots, &xs_each].concat();
        let block = self.opened(l.body, &ins)?;
        // A carry that is passed on unchanged is its own successor.
        let passed: Vec<bool> = (0..n_carry).map(|k| block.outs[k] == block.ins[consts.len() + k]).collect();
        let is_idle = passed.iter().all(|p| *p) && ys_each.is_empty() && !l.counted && !l.body.effects().io;
        if is_idle && matches!(trip, Trip::Static(_)) {
            self.plan = block.graph.plan;
            self.plan.slots.truncate(n_slots);
            return Ok(l.init.into());
        }
        let nexts: Vec<ValueSlots> =
            (0..n_carry).map(|k| if passed[k] { &slots[k] } else { &nexts[k] }.clone()).collect();
        let made = [&nexts[..], &ys_each].concat();
        let body = self.closed(block, consts.len(), &made);
        let body = self.invariant(body, &consts.concat(), &made.concat());
        let (carried, stacked) = l.outs.split_at(n_carry);
        let outs: Vec<(DType, Dims, u8)> =
            carried.iter().flat_map(placed).chain(stacked.iter().map(physical_of)).collect();
        let reverse = l.reverse;
        let (init, slots, nexts) = (init.concat(), slots.concat(), nexts.concat());
        let (n, n_ys) = (init.len(), ys_each.len());
        let ys = self.step(&[], &outs, |_, outs| {
            let carries =
                (0..n).map(|k| Carry { init: init[k], slot: slots[k], next: nexts[k], out: outs[k] }).collect();
            let window = |all: &[SlotId], each: &[ValueSlots]| {
                all.iter().zip(each).map(|(all, each)| Window { all: *all, each: each[0] }).collect()
            };
            let count = l.counted.then(|| outs[n + n_ys]);
            Step::Loop(Box::new(Loop {
                trip,
                reverse,
                carries,
                xs: window(&xs, &xs_each),
                ys: window(&outs[n..n + n_ys], &ys_each),
                count,
                body,
            }))
        });
        let (carries, rest) = ys.split_at(n);
        let mut values = self.from_places(carries, carried);
        values.extend(rest.iter().zip(stacked).map(|(y, a)| self.from_physical(*y, a)));
        Ok(values)
    }

    /// `branches[clamp(index)](xs)`; the index is a rank-0 i32.
    pub fn switch(&mut self, index: TensorId, branches: &[&Program], xs: &[TensorId], outs: &[Aval]) -> Res<TensorIds> {
        let index = self.convert(index, DType::I32);
        let index = self.force(index);
        let ins = self.operands(xs);
        let places: Vec<ValueSlots> = outs.iter().map(|a| self.place(a)).collect();
        let blocks: Vec<Vec<Step>> = branches.iter().map(|p| self.block(p, &ins, 0, &places)).collect::<Res<_>>()?;
        let out_slots = places.concat();
        let ys = self.step_into(
            &outs.iter().flat_map(placed).collect::<Vec<_>>(),
            &out_slots,
            Step::Switch { index, branches: blocks, outs: out_slots.clone() },
        );
        Ok(self.from_places(&ys, outs))
    }

    /// Calls the host with the operands' bytes.
    pub fn callback(&mut self, call: HostCall, xs: &[TensorId], outs: &[Aval]) -> TensorIds {
        let xs = reads_in_memory(self, xs);
        let ys = self.step(&xs, &outs.iter().map(physical_of).collect::<Vec<_>>(), |ins, outs| Step::Callback {
            call,
            ins,
            outs,
        });
        ys.iter().zip(outs).map(|(y, a)| self.from_physical(*y, a)).collect()
    }
    pub fn collective(&mut self, kind: Collective, across: Across, xs: &[TensorId], outs: &[Aval]) -> TensorIds {
        let small = |a: &Aval| matches!(a.dtype, Dtype::Num(d) if d.is_small());
        if kind.combines().is_some() && outs.iter().any(small) {
            // devices combine in the lane
            let lane = |d: DType| if d.is_small() { d.lane() } else { d };
            let xs: TensorIds = xs.iter().map(|x| self.convert(*x, lane(self.dtype(*x)))).collect();
            let wide: Vec<Aval> =
                outs.iter().map(|a| a.with_dtype(a.dtype.num().map_or(a.dtype, |d| lane(d).into()))).collect();
            let ys = self.collective(kind, across, &xs, &wide);
            return ys.iter().zip(outs).map(|(y, a)| self.convert(*y, physical(a).dtype)).collect();
        }
        let xs = reads_in_memory(self, xs);
        let ys = self.step(&xs, &outs.iter().map(physical_of).collect::<Vec<_>>(), |ins, outs| Step::Collective {
            kind,
            across,
            ins,
            outs,
        });
        ys.iter().zip(outs).map(|(y, a)| self.from_physical(*y, a)).collect()
    }
    pub fn tape_len(&mut self, tape: TensorId, dtype: DType) -> TensorId {
        self.step(&[tape], &[(dtype, Dims::default(), 0)], |ins, outs| Step::TapeLen { tape: ins[0], out: outs[0] })[0]
    }
    pub fn empty_tape(&mut self, a: &Aval) -> TensorId {
        self.step(&[], &[physical_of(a)], |_, outs| Step::EmptyTape { out: outs[0] })[0]
    }
    /// A value in memory, in its physical form.
    fn whole(&mut self, x: TensorId) -> SlotId {
        let x = self.take_out(x);
        self.force(x)
    }
    /// Values of blocks, one or two tensors each.
    fn from_places(&mut self, mut ys: &[TensorId], avals: &[Aval]) -> TensorIds {
        let mut one = |a: &Aval| match (parts_of(a), ys) {
            (Some(_), [p, q, rest @ ..]) => {
                ys = rest;
                self.pair(*p, *q)
            }
            (_, [y, rest @ ..]) => {
                ys = rest;
                *y
            }
            (_, []) => unreachable!("each value has its tensors"),
        };
        avals.iter().map(&mut one).collect()
    }
    fn from_physical(&mut self, x: TensorId, a: &Aval) -> TensorId {
        if a.tape == 0 && physical(a).paired { self.unzip(x) } else { x }
    }
}

/// A block whose results are not written yet.
struct Block {
    graph: Graph,
    ins: Vec<TensorId>,
    outs: TensorIds,
}
/// The slots of a value: one, or two for a pair.
type ValueSlots = SmallVec<[SlotId; 2]>;

/// The dtype and shape of the parts of a pair.
fn parts_of(a: &Aval) -> Option<(DType, &Dims)> {
    let p = physical(a);
    (p.paired && a.tape == 0).then_some((p.dtype, &a.shape))
}
/// The dtype and shape of each slot of a value.
fn placed(a: &Aval) -> SmallVec<[(DType, Dims, u8); 2]> {
    match parts_of(a) {
        Some((dtype, shape)) => smallvec![(dtype, shape.clone(), 0), (dtype, shape.clone(), 0)],
        None => smallvec![physical_of(a)],
    }
}
fn physical_of(a: &Aval) -> (DType, Dims, u8) {
    let p = physical(a);
    (p.dtype, p.shape, a.tape)
}
/// Operands in the form in which a step reads them.
fn reads_in_memory(g: &mut Graph, xs: &[TensorId]) -> Vec<TensorId> {
    xs.iter().map(|x| g.take_out(*x)).collect()
}
