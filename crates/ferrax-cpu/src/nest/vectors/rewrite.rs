//! A free loop, written anew with a vector where an iteration has a number.
//!
//! INVARIANT: the lanes of a vector are the values of iterations that follow each other.
use super::values::is_near;
use super::{Vectorizer, statements};
use crate::nest::facts::lane;
use crate::nest::{ArrayId, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::{Bin, DType};
use rustc_hash::FxHashSet;

impl Vectorizer<'_> {
    pub(super) fn push(&mut self, op: NestOp, dtype: DType, args: &[NestValue], lanes: usize) -> NestValue {
        let v = self.nest.add(op, dtype, args);
        if lanes > 1 {
            self.in_lanes(v);
        }
        self.body.push(Stmt::Let(v));
        v
    }
    /// Makes a vector of a value.
    pub(super) fn in_lanes(&mut self, v: NestValue) -> NestValue {
        let def = &mut self.nest.defs[v as usize];
        (def.lanes, def.wide) = (self.lanes as u8, self.wide);
        v
    }
    /// The number of the first lane.
    pub(super) fn scalar(&mut self, v: NestValue) -> NestValue {
        if !self.inside.contains(&v) {
            return v;
        }
        if let Some(known) = self.scalars.get(&v) {
            return *known;
        }
        let def = *self.nest.def(v);
        let args: Vec<NestValue> = def.args().iter().map(|a| self.scalar(*a)).collect();
        let new = self.push(def.op, def.dtype, &args, 1);
        self.scalars.insert(v, new);
        new
    }
    pub(super) fn splat(&mut self, v: NestValue) -> NestValue {
        if let Some(known) = self.splats.get(&v) {
            return *known;
        }
        let new = self.nest.add(NestOp::Splat, self.nest.dtype(v), &[v]);
        self.in_lanes(new);
        self.before.push(Stmt::Let(new));
        self.splats.insert(v, new);
        new
    }
    /// A number in the first lane, and so much more from lane to lane.
    pub(super) fn grown(&mut self, first: NestValue, dtype: DType, stride: i64) -> Option<NestValue> {
        let reach = stride.checked_mul(self.lanes as i64).and_then(|r| i8::try_from(r).ok());
        match (stride, reach) {
            (0, _) => Some(self.push(NestOp::Splat, dtype, &[first], self.lanes)),
            (_, Some(_)) => Some(self.push(NestOp::Ramp(stride as i8), dtype, &[first], self.lanes)),
            _ => None,
        }
    }
    /// The value of the lanes that come so many vectors behind the counter.
    pub(super) fn vector(&mut self, v: NestValue, behind: usize) -> Option<NestValue> {
        if !self.inside.contains(&v) {
            return Some(self.splat(v));
        }
        if let Some(known) = self.vectors.get(&(v, behind)) {
            return Some(*known);
        }
        let (def, lanes) = (*self.nest.def(v), self.lanes);
        if def.op == NestOp::Carry && lane(def.dtype) != DType::I64 {
            return None;
        }
        let far = (behind * lanes) as i64;
        let new = if let Some(stride) = self.stride(v) {
            let mut first = self.scalar(v);
            if far * stride != 0 {
                let more = self.nest.add(NestOp::Const((far * stride) as u64), def.dtype, &[]);
                first = self.push(NestOp::Bin(Bin::Add), def.dtype, &[first, more], 1);
            }
            self.grown(first, def.dtype, stride)?
        } else if let Some((array, offset, index, stride)) = self.widened(&def) {
            let (index, NestOp::Convert(from)) = (self.scalar(index), def.op) else { return None };
            if stride == 0 {
                let one = self.scalar(v);
                self.push(NestOp::Splat, def.dtype, &[one], lanes)
            } else if self.last_lanes.is_some() {
                return None;
            } else {
                let offset = i32::try_from(offset as i64 + far).ok()?;
                self.push(NestOp::LoadWide(array, offset, from), def.dtype, &[index], lanes)
            }
        } else if let NestOp::Load(array, offset) = def.op {
            let (stride, index) = (self.stride(def.args[0])?, self.scalar(def.args[0]));
            let offset = i32::try_from(offset as i64 + far * stride).ok()?;
            match stride {
                0 => {
                    let one = self.push(NestOp::Load(array, offset), def.dtype, &[index], 1);
                    self.push(NestOp::Splat, def.dtype, &[one], lanes)
                }
                1 if self.last_lanes.is_none() => self.push(NestOp::Load(array, offset), def.dtype, &[index], lanes),
                // truth values are bytes in memory, of which no few are loaded
                _ if def.dtype == DType::Bool => return None,
                s => {
                    let elements = self.last_lanes.unwrap_or(lanes) as u8;
                    self.push(NestOp::LoadApart(array, offset, s as i32, elements), def.dtype, &[index], lanes)
                }
            }
        } else {
            let args: Vec<NestValue> = def.args().iter().map(|a| self.vector(*a, behind)).collect::<Option<_>>()?;
            self.applied(&def, &args)
        };
        self.vectors.insert((v, behind), new);
        Some(new)
    }
    /// The statements of the iterations of `width` vectors, in their order.
    pub(super) fn iteration(&mut self, l: &NestLoop, width: usize) -> Option<()> {
        let mut wanted: FxHashSet<NestValue> = FxHashSet::default();
        for s in l.body.iter().rev() {
            match s {
                Stmt::Store { value, .. } => {
                    wanted.insert(self.narrowed(*value).unwrap_or(*value));
                }
                Stmt::Let(v) if wanted.contains(v) && self.widened(&self.nest.def(*v).clone()).is_some() => (),
                Stmt::Let(v) if wanted.contains(v) && !matches!(self.nest.def(*v).op, NestOp::Load(..)) => {
                    wanted.extend(self.nest.def(*v).args());
                }
                _ => (),
            }
        }
        for s in &l.body {
            if let Stmt::Loop(fold) = s {
                self.column(fold, width)?;
                continue;
            }
            for behind in 0..width {
                match s {
                    Stmt::Let(v) if wanted.contains(v) => {
                        self.vector(*v, behind)?;
                    }
                    Stmt::Store { array, index, offset, value, dtype, .. } => {
                        let stride = self.stride(*index)?;
                        let half = self.narrowed(*value);
                        let (index, value) = (self.scalar(*index), self.vector(half.unwrap_or(*value), behind)?);
                        if half.is_some() && stride != 1 {
                            return None;
                        }
                        if stride == 0 || stride != 1 && *dtype == DType::Bool || !is_near(*offset as i64, stride) {
                            return None;
                        }
                        let far = (behind * self.lanes) as i64 * stride;
                        let offset = i32::try_from(*offset as i64 + far).ok()?;
                        let (array, dtype, stride) = (*array, *dtype, stride as i32);
                        self.body.push(Stmt::Store { array, index, offset, value, dtype, stride });
                    }
                    _ => (),
                }
            }
        }
        Some(())
    }
    /// A free loop, in each iteration of which are `width` vectors.
    pub(super) fn free(
        mut self,
        l: &NestLoop,
        n: usize,
        counter: &NestCarry,
        slot: NestValue,
        width: usize,
    ) -> Option<Vec<Stmt>> {
        self.iteration(l, width)?;
        let step = self.lanes * width;
        let (whole, rest) = (n / step, n % step);
        let by = self.nest.constant(step as i64);
        let mut next = self.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by], 1);
        // if no load reads an element that a store wrote, the last vector may overlap the previous
        // one
        let again = rest > 0 && !reads_what_it_writes(self.nest, &l.body);
        if again {
            let last = self.nest.constant((n - step) as i64);
            next = self.push(NestOp::Bin(Bin::Min), DType::I64, &[next, last], 1);
        }
        let (init, after) = (self.nest.constant(0), self.nest.add(NestOp::After, DType::I64, &[]));
        let carries = vec![NestCarry { init, slot, next, after }];
        let trip = NestTrip::Static(whole + again as usize);
        let mut out = self.before;
        out.push(Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body: self.body })));
        if rest > 0 && !again {
            let init = self.nest.add(NestOp::Const((n - rest) as u64), DType::I64, &[]);
            let carries = vec![NestCarry { init, ..counter.clone() }];
            let (trip, body) = (NestTrip::Static(rest), statements(self.nest, l.body.clone(), self.target, 1)?);
            out.push(Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body })));
        }
        Some(out)
    }
}
pub(super) fn reads_what_it_writes(nest: &Nest, body: &[Stmt]) -> bool {
    let mut written = smallvec::SmallVec::new();
    crate::nest::stored(body, &mut written);
    for (a, b) in &nest.meeting {
        if written.contains(a) {
            written.push(*b);
        }
    }
    reads(nest, body, &written)
}
pub(super) fn reads(nest: &Nest, body: &[Stmt], of: &[ArrayId]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Let(v) => matches!(nest.def(*v).op, NestOp::Load(array, _) if of.contains(&array)),
        Stmt::Loop(l) => reads(nest, &l.body, of),
        _ => false,
    })
}
