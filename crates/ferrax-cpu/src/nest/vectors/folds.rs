//! Reductions in vectors: the sixteen sums of the documented order are those of two or four vectors.
//!
//! INVARIANT: the same elements are added to the same sums, and the sums in the written order.
use super::Vectorizer;
use crate::nest::{Def, FOLD_SCRATCH, LoopKind, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::{Bin, DType, order};

impl Vectorizer<'_> {
    pub(super) fn fold(
        mut self,
        l: &NestLoop,
        n: usize,
        counter: &NestCarry,
        slot: NestValue,
        folds: &[NestCarry],
    ) -> Option<Vec<Stmt>> {
        let (groups, whole, rest) = (order::LANES / self.lanes, n / order::LANES, n % order::LANES);
        if folds.len() * order::LANES * 8 > FOLD_SCRATCH {
            return None;
        }
        let inits: Vec<NestValue> = folds.iter().map(|c| self.splat(c.init)).collect();
        let mut sums: Vec<NestValue> = inits.iter().flat_map(|init| vec![*init; groups]).collect();
        let mut out = vec![];
        if whole > 0 {
            let mut carries = vec![];
            for (k, c) in folds.iter().enumerate() {
                let next = *self.nest.def(c.next);
                for g in 0..groups {
                    let of = self.vector(next.args[1], g)?;
                    let [slot, after] = [NestOp::Carry, NestOp::After].map(|op| {
                        let v = self.nest.add(op, next.dtype, &[]);
                        self.in_lanes(v)
                    });
                    let next = self.applied(&next, &[slot, of]);
                    carries.push(NestCarry { init: inits[k], slot, next, after });
                }
            }
            sums = carries.iter().map(|c| c.after).collect();
            let by = self.nest.constant(order::LANES as i64);
            let next = self.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by], 1);
            let (init, after) = (self.nest.constant(0), self.nest.add(NestOp::After, DType::I64, &[]));
            carries.push(NestCarry { init, slot, next, after });
            let body = std::mem::take(&mut self.body);
            out.append(&mut self.before);
            let (kind, trip) = (LoopKind::Sequential, NestTrip::Static(whole));
            out.push(Stmt::Loop(Box::new(NestLoop { kind, trip, carries, body })));
        }
        if rest > 0 {
            match self.last_elements(n - rest, rest, counter, folds, &sums) {
                Some(all) => sums = all,
                None => {
                    self.body.clear();
                    out.append(&mut self.before);
                    self.through_memory(l, n, counter, folds, &mut sums, &mut out)?;
                }
            }
        }
        for (k, c) in folds.iter().enumerate() {
            let next = *self.nest.def(c.next);
            let parts = sums[k * groups..(k + 1) * groups].to_vec();
            let sum = self.folded(next.op, next.dtype, parts);
            // later statements refer to it by the carry's number
            self.nest.defs[c.after as usize] =
                Def { op: NestOp::First, dtype: next.dtype, args: [sum, 0, 0], lanes: 1, wide: false, is_exact: false };
            self.body.push(Stmt::Let(c.after));
        }
        out.append(&mut self.before);
        out.append(&mut self.body);
        Some(out)
    }
    /// The last elements, fewer than there are sums: whole vectors of them, and one of which only the first lanes count.
    pub(super) fn last_elements(
        &mut self,
        first: usize,
        rest: usize,
        counter: &NestCarry,
        folds: &[NestCarry],
        sums: &[NestValue],
    ) -> Option<Vec<NestValue>> {
        let groups = order::LANES / self.lanes;
        let first = self.nest.constant(first as i64);
        self.scalars = [(counter.slot, first)].into_iter().collect();
        self.vectors.clear();
        let mut sums = sums.to_vec();
        for g in 0..rest.div_ceil(self.lanes) {
            let lanes = self.lanes.min(rest - g * self.lanes);
            self.last_lanes = (lanes < self.lanes).then_some(lanes);
            for (k, c) in folds.iter().enumerate() {
                let next = *self.nest.def(c.next);
                let of = self.vector(next.args[1], g)?;
                let sum = &mut sums[k * groups + g];
                let new = self.applied(&next, &[*sum, of]);
                *sum = match self.last_lanes {
                    Some(lanes) => self.push(NestOp::Blend(lanes as u8), next.dtype, &[new, *sum], self.lanes),
                    None => new,
                };
            }
        }
        Some(sums)
    }
    /// The same where a vector cannot have fewer lanes: in working memory, where the last elements are added to the sums one by one.
    pub(super) fn through_memory(
        &mut self,
        l: &NestLoop,
        n: usize,
        counter: &NestCarry,
        folds: &[NestCarry],
        sums: &mut [NestValue],
        out: &mut Vec<Stmt>,
    ) -> Option<()> {
        let (scratch, _) = self.nest.scratch?;
        let (groups, first) = (order::LANES / self.lanes, self.nest.constant(0));
        let place = |k: usize| (k / groups * order::LANES + k % groups * self.lanes) as i32;
        for (k, value) in sums.iter().enumerate() {
            let (offset, dtype) = (place(k), self.nest.dtype(*value));
            out.push(Stmt::Store { array: scratch, index: first, offset, value: *value, dtype, stride: 1 });
        }
        let places: Vec<i32> = (0..sums.len()).map(place).collect();
        out.push(self.left_over(l, n, counter, folds));
        for (sum, place) in sums.iter_mut().zip(places) {
            *sum = self.push(NestOp::Load(scratch, place), self.nest.dtype(*sum), &[first], self.lanes);
        }
        Some(())
    }
    /// One vector whose first lane is the fold of all: by halves, as the written order has it.
    pub(super) fn folded(&mut self, op: NestOp, dtype: DType, mut parts: Vec<NestValue>) -> NestValue {
        while parts.len() > 1 {
            let half = parts.len() / 2;
            parts = (0..half).map(|g| self.computed(op, dtype, dtype, &[parts[g], parts[g + half]])).collect();
        }
        let (mut sum, mut by) = (parts[0], self.lanes / 2);
        while by > 0 {
            let down = self.push(NestOp::Down(by as u8), dtype, &[sum], self.lanes);
            sum = self.computed(op, dtype, dtype, &[sum, down]);
            by /= 2;
        }
        sum
    }
    /// The last elements, each added to its sum.
    pub(super) fn left_over(&mut self, l: &NestLoop, n: usize, counter: &NestCarry, folds: &[NestCarry]) -> Stmt {
        let (rest, scratch) = (n % order::LANES, self.nest.scratch.map_or(0, |s| s.0));
        let nexts: Vec<NestValue> = folds.iter().map(|c| c.next).collect();
        let is_sum = |s: &Stmt| matches!(s, Stmt::Let(v) if nexts.contains(v));
        let mut body: Vec<Stmt> = l.body.iter().filter(|s| !is_sum(s)).cloned().collect();
        for (k, c) in folds.iter().enumerate() {
            let next = *self.nest.def(c.next);
            let offset = (k * order::LANES) as i32 - (n - rest) as i32;
            let old = self.nest.add(NestOp::Load(scratch, offset), next.dtype, &[counter.slot]);
            let value = self.nest.add(next.op, next.dtype, &[old, next.args[1]]);
            body.extend([Stmt::Let(old), Stmt::Let(value)]);
            body.push(Stmt::Store { array: scratch, index: counter.slot, offset, value, dtype: next.dtype, stride: 1 });
        }
        let init = self.nest.add(NestOp::Const((n - rest) as u64), DType::I64, &[]);
        let carries = vec![NestCarry { init, ..counter.clone() }];
        let trip = NestTrip::Static(rest);
        Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body }))
    }
}
