//! From steps to a nest: what is an array and what is in registers, loops, branches, kernels of few elements.
//!
//! INVARIANT: an element in registers has one value at a time; the elements of an array are loaded and stored in the order of the steps.
use super::CellNumber;
use crate::executable::scalars::tiled_kernel;
use crate::executable::{Cell, Compiler};
use crate::kernels::lane::Lane;
use crate::kernels::unroll::fold_lanes;
use crate::kernels::{moves, pieces};
use crate::nest::{ArrayId, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::plan::{Carry, Loop, SlotId, Step, Trip, Window};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Routine, Scalar, order};
use rustc_hash::{FxHashMap, FxHashSet};

/// A nest and where its arrays and numbers stand.
pub struct WrittenNest {
    pub nest: Nest,
    pub inputs: Vec<CellNumber>,
    pub arrays: Vec<Cell>,
    pub before: Vec<(Cell, Cell, usize)>,
    pub after: Vec<(Cell, Cell, usize)>,
    pub outs: Vec<CellNumber>,
}

pub struct Builder<'a, 'c> {
    pub c: &'a Compiler<'c>,
    pub nest: Nest,
    blocks: Vec<Vec<Stmt>>,
    /// The values of elements in registers, by cell and offset in bytes.
    known: FxHashMap<(Cell, usize), (DType, NestValue)>,
    /// Cells that were set to values in registers.
    set: FxHashSet<Cell>,
    inputs: Vec<CellNumber>,
    input_values: FxHashMap<(Cell, usize), NestValue>,
    arrays: Vec<Cell>,
    /// Cells whose elements are indexed: they stay in memory.
    is_array: FxHashSet<Cell>,
    /// Cells that are one element of a stacked array: the array, and the index of its first number.
    views: FxHashMap<Cell, (ArrayId, NestValue)>,
    most: usize,
}

impl<'a, 'c> Builder<'a, 'c> {
    pub fn of(c: &'a Compiler<'c>, l: &Loop) -> Option<WrittenNest> {
        let mut b = Builder {
            c,
            nest: Nest::default(),
            blocks: vec![vec![]],
            known: FxHashMap::default(),
            set: FxHashSet::default(),
            inputs: vec![],
            input_values: FxHashMap::default(),
            arrays: vec![],
            is_array: FxHashSet::default(),
            views: FxHashMap::default(),
            most: c.target.tuning.scalars.max_slot_elements,
        };
        b.find_arrays(l)?;
        let (mut before, mut after) = (vec![], vec![]);
        for k in l.carries.iter().filter(|k| b.is_array.contains(&c.cell(k.slot))) {
            let [init, slot, out] = [k.init, k.slot, k.out].map(|s| c.cell(s));
            if init != slot {
                before.push((init, slot, c.bytes(k.slot)));
            }
            if out != slot {
                after.push((slot, out, c.bytes(k.slot)));
            }
        }
        b.looped(l, true)?;
        let mut outs = vec![];
        for k in &l.carries {
            if !b.is_array(c.cell(k.slot)) {
                b.leave(k.out, &mut outs)?;
            }
        }
        if let Some(count) = l.count {
            b.leave(count, &mut outs)?;
        }
        b.nest.body = b.blocks.pop()?;
        b.nest.arrays = b.arrays.len() as u32;
        b.nest.inputs = b.inputs.iter().map(|p| p.dtype).collect();
        let is_nest = !b.arrays.is_empty() || b.nest.counts().loops > 1;
        is_nest.then_some(WrittenNest { nest: b.nest, inputs: b.inputs, arrays: b.arrays, before, after, outs })
    }
    /// Has the elements of a slot written to memory after the nest.
    fn leave(&mut self, s: SlotId, outs: &mut Vec<CellNumber>) -> Option<()> {
        let (cell, slot) = (self.c.cell(s), &self.c.plan.slots[s as usize]);
        for e in 0..slot.len {
            let offset = e * slot.dtype.size();
            let v = self.get(cell, offset, slot.dtype)?;
            self.nest.outs.push(v);
            outs.push(CellNumber { cell, offset, dtype: slot.dtype });
        }
        Some(())
    }
    /// Which cells are arrays: what is indexed, and what has too many elements for registers.
    fn find_arrays(&mut self, l: &Loop) -> Option<()> {
        let many = |b: &Self, s: SlotId| b.c.plan.slots[s as usize].len > b.most;
        for k in &l.carries {
            for s in [k.init, k.slot, k.next, k.out] {
                if self.c.plan.slots[s as usize].tape > 0 {
                    return None;
                }
                if many(self, s) {
                    self.is_array.insert(self.c.cell(s));
                }
            }
        }
        for w in l.xs.iter().chain(&l.ys) {
            if self.c.plan.slots[w.all as usize].tape > 0 {
                return None;
            }
            self.is_array.insert(self.c.cell(w.all));
            if many(self, w.each) {
                self.is_array.insert(self.c.cell(w.each));
            }
        }
        if let Trip::While { cond, .. } = &l.trip {
            self.find_arrays_of(cond)?;
        }
        self.find_arrays_of(&l.body)
    }
    fn find_arrays_of(&mut self, steps: &[Step]) -> Option<()> {
        for s in steps {
            let (ins, outs) = match s {
                Step::Loop(l) => {
                    self.find_arrays(l)?;
                    continue;
                }
                Step::Switch { branches, .. } => {
                    branches.iter().try_for_each(|b| self.find_arrays_of(b))?;
                    continue;
                }
                Step::Copy { from, to } => (vec![*from], vec![*to]),
                Step::Kernel { ins, outs, .. } => (ins.clone(), outs.clone()),
                Step::Routine { routine, ins, outs } => {
                    match **routine {
                        Routine::DynamicSlice { .. } | Routine::Gather(_) => {
                            self.is_array.insert(self.c.cell(ins[0]));
                        }
                        Routine::DynamicUpdateSlice { .. } | Routine::Scatter(_) => {
                            self.is_array.insert(self.c.cell(ins[0]));
                            self.is_array.insert(self.c.cell(outs[0]));
                        }
                        Routine::Dot(_) => (),
                        _ => return None,
                    }
                    (ins.clone(), outs.clone())
                }
                _ => return None,
            };
            for s in ins.iter().chain(&outs) {
                if self.c.plan.slots[*s as usize].len > self.most {
                    self.is_array.insert(self.c.cell(*s));
                }
            }
        }
        Some(())
    }

    // ---- values ----

    pub fn emit(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> Option<NestValue> {
        if self.nest.defs.len() > self.c.target.tuning.scalars.max_nest_values {
            return None;
        }
        let v = self.nest.add(op, dtype, args);
        self.blocks.last_mut()?.push(Stmt::Let(v));
        Some(v)
    }
    pub fn constant(&mut self, dtype: DType, bits: u64) -> Option<NestValue> {
        self.emit(NestOp::Const(bits), dtype, &[])
    }
    pub fn index(&mut self, x: i64) -> Option<NestValue> {
        self.constant(DType::I64, x as u64)
    }
    pub fn bin(&mut self, f: Bin, dtype: DType, a: NestValue, b: NestValue) -> Option<NestValue> {
        self.emit(NestOp::Bin(f), dtype, &[a, b])
    }
    pub fn is_array(&self, cell: Cell) -> bool {
        self.is_array.contains(&cell)
    }
    /// The array of a cell, and the index of its first element.
    pub fn array(&mut self, cell: Cell) -> Option<(ArrayId, Option<NestValue>)> {
        if let Some((array, base)) = self.views.get(&cell) {
            return Some((*array, Some(*base)));
        }
        if let Some(n) = self.arrays.iter().position(|a| *a == cell) {
            return Some((n as ArrayId, None));
        }
        self.arrays.push(cell);
        Some((self.arrays.len() as ArrayId - 1, None))
    }
    fn place(&mut self, cell: Cell, index: NestValue) -> Option<(ArrayId, NestValue)> {
        let (array, base) = self.array(cell)?;
        let index = match base {
            Some(base) => self.bin(Bin::Add, DType::I64, base, index)?,
            None => index,
        };
        Some((array, index))
    }
    pub fn load(&mut self, cell: Cell, index: NestValue, dtype: DType) -> Option<NestValue> {
        let (array, index) = self.place(cell, index)?;
        self.emit(NestOp::Load(array, 0), dtype, &[index])
    }
    pub fn store(&mut self, cell: Cell, index: NestValue, value: NestValue, dtype: DType) -> Option<()> {
        let (array, index) = self.place(cell, index)?;
        self.blocks.last_mut()?.push(Stmt::Store { array, index, offset: 0, value, dtype });
        Some(())
    }
    /// An element of a cell at a fixed place.
    pub fn get(&mut self, cell: Cell, offset: usize, d: DType) -> Option<NestValue> {
        if !is_held(d) {
            return None;
        }
        if self.is_array(cell) {
            let index = self.index((offset / d.size()) as i64)?;
            return self.load(cell, index, d);
        }
        if let Some((known, v)) = self.known.get(&(cell, offset)) {
            return (*known == d).then_some(*v);
        }
        if self.set.contains(&cell) {
            return None;
        }
        if let Some(v) = self.input_values.get(&(cell, offset)) {
            return (self.nest.dtype(*v) == d).then_some(*v);
        }
        let v = self.nest.add(NestOp::Input(self.inputs.len() as u32), d, &[]);
        self.blocks[0].push(Stmt::Let(v));
        self.inputs.push(CellNumber { cell, offset, dtype: d });
        self.input_values.insert((cell, offset), v);
        Some(v)
    }
    /// An element of a slot at a fixed place, which may be known.
    pub fn get_of(&mut self, s: SlotId, offset: usize, d: DType) -> Option<NestValue> {
        let cell = self.c.cell(s);
        match self.c.constant(s) {
            Some(x) if x.dtype == d && offset == 0 && is_held(d) && !self.is_array(cell) => {
                self.constant(d, moves::lane_bits(x))
            }
            _ => self.get(cell, offset, d),
        }
    }
    /// All elements of a slot.
    pub fn elements(&mut self, s: SlotId) -> Option<Vec<NestValue>> {
        let slot = &self.c.plan.slots[s as usize];
        if slot.len > self.most || slot.tape > 0 {
            return None;
        }
        (0..slot.len).map(|e| self.get_of(s, e * slot.dtype.size(), slot.dtype)).collect()
    }
    /// Sets a slot to these values.
    pub fn put(&mut self, s: SlotId, values: &[NestValue]) -> Option<()> {
        let (cell, slot) = (self.c.cell(s), &self.c.plan.slots[s as usize]);
        if slot.len != values.len() || !is_held(slot.dtype) {
            return None;
        }
        if self.is_array(cell) {
            for (e, v) in values.iter().enumerate() {
                let index = self.index(e as i64)?;
                self.store(cell, index, *v, slot.dtype)?;
            }
            return Some(());
        }
        // Read before it is set, it would be a carry.
        if self.input_values.keys().any(|k| k.0 == cell) {
            return None;
        }
        for (e, v) in values.iter().enumerate() {
            self.known.insert((cell, e * slot.dtype.size()), (slot.dtype, *v));
        }
        self.set.insert(cell);
        Some(())
    }

    // ---- loops ----

    fn looped(&mut self, l: &Loop, is_outermost: bool) -> Option<()> {
        let (arrays, few): (Vec<&Carry>, Vec<&Carry>) =
            l.carries.iter().partition(|k| self.is_array(self.c.cell(k.slot)));
        for k in arrays {
            let [init, slot, next, out] = [k.init, k.slot, k.next, k.out].map(|s| self.c.cell(s));
            let is_one_place = slot == next && (is_outermost || init == slot && out == slot);
            if !is_one_place || !self.is_array(init) && !is_outermost {
                return None;
            }
        }
        let mut inits = vec![];
        for k in &few {
            if [k.init, k.next, k.out].into_iter().any(|s| self.c.plan.slots[s as usize].len > self.most) {
                return None;
            }
            inits.push(self.elements(k.init)?);
        }
        let trip = match &l.trip {
            Trip::Static(n) => NestTrip::Static(*n),
            Trip::Dyn(s) => {
                let d = self.c.plan.slots[*s as usize].dtype;
                let n = self.get_of(*s, 0, d)?;
                NestTrip::Dyn(self.wide(n, d)?)
            }
            Trip::While { .. } => NestTrip::Forever,
        };
        let zero = self.index(0)?;
        let outside = (self.known.clone(), self.set.clone());
        self.blocks.push(vec![]);
        let mut carries = vec![];
        for (k, inits) in few.iter().zip(&inits) {
            let (cell, dtype) = (self.c.cell(k.slot), self.c.plan.slots[k.slot as usize].dtype);
            for (e, init) in inits.iter().enumerate() {
                let slot = self.nest.add(NestOp::Carry, dtype, &[]);
                let after = self.nest.add(NestOp::After, dtype, &[]);
                self.known.insert((cell, e * dtype.size()), (dtype, slot));
                carries.push(NestCarry { init: *init, slot, next: slot, after });
            }
            self.set.insert(cell);
        }
        let counter = self.nest.add(NestOp::Carry, DType::I64, &[]);
        let counted = self.nest.add(NestOp::After, DType::I64, &[]);
        if let Trip::While { cond, pred } = &l.trip {
            let carried = (self.known.clone(), self.set.clone());
            cond.iter().try_for_each(|s| self.step(s))?;
            let goes_on = self.get(self.c.cell(*pred), 0, DType::Bool)?;
            self.blocks.last_mut()?.push(Stmt::ExitUnless(goes_on));
            (self.known, self.set) = carried;
        }
        self.windows(l, counter)?;
        l.body.iter().try_for_each(|s| self.step(s))?;
        self.leave_windows(l)?;
        let mut next = vec![];
        for k in &few {
            next.extend(self.elements(k.next)?);
        }
        let one = self.index(1)?;
        let grown = self.bin(Bin::Add, DType::I64, counter, one)?;
        carries.iter_mut().zip(next).for_each(|(c, n)| c.next = n);
        carries.push(NestCarry { init: zero, slot: counter, next: grown, after: counted });
        let body = self.blocks.pop()?;
        (self.known, self.set) = outside;
        let after: Vec<NestValue> = carries.iter().map(|c| c.after).collect();
        self.blocks.last_mut()?.push(Stmt::Loop(Box::new(NestLoop { trip, carries, body })));
        let mut after = after.into_iter();
        for (k, inits) in few.iter().zip(&inits) {
            let values: Vec<NestValue> = after.by_ref().take(inits.len()).collect();
            self.put(k.out, &values)?;
        }
        if let (Some(s), Some(n)) = (l.count, after.next()) {
            let d = self.c.plan.slots[s as usize].dtype;
            let n = self.emit(NestOp::Convert(DType::I64), d, &[n])?;
            self.put(s, &[n])?;
        }
        Some(())
    }
    /// Brings the elements of this iteration in, and says where those lie that are indexed or written.
    fn windows(&mut self, l: &Loop, counter: NestValue) -> Option<()> {
        if l.xs.is_empty() && l.ys.is_empty() {
            return Some(());
        }
        let Trip::Static(n) = l.trip else { return None };
        let mut at = counter;
        if l.reverse {
            let last = self.index(n as i64 - 1)?;
            at = self.bin(Bin::Sub, DType::I64, last, counter)?;
        }
        for w in l.xs.iter().chain(&l.ys) {
            let (all, each) = (&self.c.plan.slots[w.all as usize], &self.c.plan.slots[w.each as usize]);
            if n.saturating_mul(each.len) > all.len || each.dtype != all.dtype || !is_held(each.dtype) {
                return None;
            }
            let len = self.index(each.len as i64)?;
            let first = self.bin(Bin::Mul, DType::I64, at, len)?;
            let place = self.place(self.c.cell(w.all), first)?;
            self.views.insert(self.c.cell(w.each), place);
        }
        for Window { each, .. } in &l.xs {
            let (cell, slot) = (self.c.cell(*each), &self.c.plan.slots[*each as usize]);
            if self.is_array(cell) {
                continue;
            }
            for e in 0..slot.len {
                let index = self.index(e as i64)?;
                let v = self.load(cell, index, slot.dtype)?;
                self.known.insert((cell, e * slot.dtype.size()), (slot.dtype, v));
            }
            self.set.insert(cell);
        }
        Some(())
    }
    fn leave_windows(&mut self, l: &Loop) -> Option<()> {
        for Window { each, .. } in &l.ys {
            let cell = self.c.cell(*each);
            if self.is_array(cell) {
                continue;
            }
            let d = self.c.plan.slots[*each as usize].dtype;
            for (e, v) in self.elements(*each)?.into_iter().enumerate() {
                let index = self.index(e as i64)?;
                self.store(cell, index, v, d)?;
            }
        }
        Some(())
    }

    // ---- steps ----

    fn step(&mut self, s: &Step) -> Option<()> {
        match s {
            Step::Kernel { kernel, ins, outs } => self.kernel(kernel, ins, outs),
            Step::Copy { from, to } => {
                if self.c.cell(*from) == self.c.cell(*to) {
                    return Some(());
                }
                let (a, b) = (&self.c.plan.slots[*from as usize], &self.c.plan.slots[*to as usize]);
                if a.dtype != b.dtype {
                    return None;
                }
                let values = self.elements(*from)?;
                self.put(*to, &values)
            }
            Step::Routine { routine, ins, outs } => match &**routine {
                Routine::Dot(d) => self.product(d, ins, outs),
                routine => self.routine(routine, ins, outs),
            },
            Step::Switch { index, branches, outs } => self.choice(*index, branches, outs),
            Step::Loop(l) => self.looped(l, false),
            _ => None,
        }
    }
    /// All branches, and of each result the one that the index says.
    fn choice(&mut self, index: SlotId, branches: &[Vec<Step>], outs: &[SlotId]) -> Option<()> {
        let i = self.get(self.c.cell(index), 0, DType::I32)?;
        let begin = self.nest.defs.len();
        let most = self.c.target.tuning.scalars.max_branch_operations[0];
        let mut chosen: Vec<Vec<NestValue>> = vec![];
        for (k, branch) in branches.iter().enumerate().rev() {
            let outside = (self.known.clone(), self.set.clone());
            self.blocks.push(vec![]);
            branch.iter().try_for_each(|s| self.step(s))?;
            let values: Vec<Vec<NestValue>> = outs.iter().map(|o| self.elements(*o)).collect::<Option<_>>()?;
            let body = self.blocks.pop()?;
            (self.known, self.set) = outside;
            if self.nest.defs.len() - begin > most || body.iter().any(|s| !matches!(s, Stmt::Let(_))) {
                return None;
            }
            self.blocks.last_mut()?.extend(body);
            if chosen.is_empty() {
                chosen = values;
                continue;
            }
            // the first of those that the index may still say
            let end = self.constant(DType::I32, k as u64 + 1)?;
            let is_here = self.bin(Bin::Lt, DType::Bool, i, end)?;
            for (o, (all, mine)) in outs.iter().zip(chosen.iter_mut().zip(values)) {
                let d = self.c.plan.slots[*o as usize].dtype;
                for (other, here) in all.iter_mut().zip(mine) {
                    *other = self.emit(NestOp::Select, d, &[is_here, here, *other])?;
                }
            }
        }
        outs.iter().zip(chosen).try_for_each(|(o, values)| self.put(*o, &values))
    }
    fn kernel(&mut self, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let n = k.grid.size();
        let t = &self.c.target.tuning.scalars;
        let work = t.nanos[1] * (n * k.rdims.size().max(1) * k.nodes.len()) as f64;
        let is_small = n > 0 && n <= self.most && k.rdims.size() <= self.most;
        if !is_small || n > 1 && work > tiled_kernel(k) {
            return None;
        }
        let reduced =
            k.needed(k.nodes.iter().filter_map(|n| if let Node::Reduce { of, .. } = n.1 { Some(of) } else { None }));
        let once = k.needed(k.outputs.iter().copied());
        let mut results: Vec<Vec<NestValue>> = vec![vec![]; k.outputs.len()];
        for i in 0..n {
            let index = k.grid.unravel(i);
            if n > 1 && k.rdims.is_empty() {
                // What an index chooses is known here.
                let one = pieces::element(k, &index);
                let at = self.values(&one, ins, &[], &[], &vec![true; one.nodes.len()])?;
                results.iter_mut().zip(&one.outputs).for_each(|(r, o)| r.push(at[*o as usize]));
                continue;
            }
            let mut rows = vec![];
            if reduced.contains(&true) {
                for r in 0..k.rdims.size() {
                    rows.push(self.values(k, ins, &index.concat(&k.rdims.unravel(r)), &[], &reduced)?);
                }
            }
            let at = self.values(k, ins, &index, &rows, &once)?;
            results.iter_mut().zip(&k.outputs).for_each(|(r, o)| r.push(at[*o as usize]));
        }
        outs.iter().zip(&results).try_for_each(|(o, r)| self.put(*o, r))
    }
    /// A small product, as its routine takes it: each element sums in increasing k, and every product rounds.
    fn product(&mut self, d: &Dot, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let plain = d.dtype == d.out && matches!(d.dtype, DType::F32 | DType::F64);
        if !plain || d.b != 1 || d.m * d.n > self.most || d.m * d.n * d.k > self.c.target.tuning.dot.max_loop_work {
            return None;
        }
        let (x, y) = (self.c.cell(ins[0]), self.c.cell(ins[1]));
        let mut sums = vec![];
        for i in 0..d.m as i64 {
            for j in 0..d.n as i64 {
                let mut sum = self.constant(d.dtype, 0)?;
                for k in 0..d.k as i64 {
                    let at = |row: i64, strides: [i64; 3], column: i64| {
                        usize::try_from(row * strides[1] + column * strides[2]).ok().map(|e| e * d.dtype.size())
                    };
                    let (l, r) = (at(i, d.lhs, k)?, at(k, d.rhs, j)?);
                    let (l, r) = (self.get(x, l, d.dtype)?, self.get(y, r, d.dtype)?);
                    let product = self.bin(Bin::Mul, d.dtype, l, r)?;
                    sum = self.bin(Bin::Add, d.dtype, sum, product)?;
                }
                sums.push(sum);
            }
        }
        self.put(outs[0], &sums)
    }
    /// The wanted nodes at one index; a reduction goes over `rows`, the values at each reduced index.
    fn values(
        &mut self,
        k: &Kernel,
        ins: &[SlotId],
        index: &[usize],
        rows: &[Vec<NestValue>],
        wanted: &[bool],
    ) -> Option<Vec<NestValue>> {
        let mut at: Vec<NestValue> = vec![];
        for ((d, node), wanted) in k.nodes.iter().zip(wanted) {
            at.push(match node {
                _ if !wanted => 0,
                Node::Reduce { kind, of } => {
                    let of: Vec<NestValue> = rows.iter().map(|row| row[*of as usize]).collect();
                    self.reduce(*kind, *d, &of)?
                }
                _ => self.node(k, *d, node, index, ins, &at)?,
            });
        }
        Some(at)
    }
    /// In the order of [`order`], for at most as many elements as there are lanes.
    fn reduce(&mut self, kind: ReduceKind, d: DType, of: &[NestValue]) -> Option<NestValue> {
        let identity = self.constant(d, moves::lane_bits(kind.identity(d)?))?;
        if of.is_empty() || of.len() > order::LANES {
            return of.is_empty().then_some(identity);
        }
        let f = kind.bin()?;
        let lanes: Vec<NestValue> = of.iter().map(|x| self.apply(f, d, identity, *x)).collect::<Option<_>>()?;
        let sum = fold_lanes(lanes, |a, b| self.apply(f, d, a, b))?;
        let settled = if d.is_float() { self.emit(NestOp::Settle, d, &[sum])? } else { sum };
        self.wrapped(settled, d)
    }
    fn node(
        &mut self,
        k: &Kernel,
        d: DType,
        node: &Node,
        index: &[usize],
        ins: &[SlotId],
        at: &[NestValue],
    ) -> Option<NestValue> {
        let of = |n: &u32| at[*n as usize];
        if !is_held(d) {
            return None;
        }
        match node {
            Node::Const(s) => self.constant(d, moves::lane_bits(*s)),
            Node::Index(a) => {
                let x = self.constant(DType::I64, a.at(index.iter().copied()) as u64)?;
                self.converted(DType::I64, d, x)
            }
            Node::Load(a) => {
                let form = |f: &Affine| f.at(index.iter().copied());
                if a.guards.iter().any(|g| !(g.lo..g.hi).contains(&form(&g.at))) {
                    return self.constant(d, moves::lane_bits(a.fill));
                }
                self.get_of(ins[a.input as usize], usize::try_from(form(&a.at)).ok()? * d.size(), d)
            }
            Node::Un(f, x) => self.unary(*f, k.dtype(*x), d, of(x)),
            Node::Bin(f, x, y) => {
                let r = self.apply(*f, k.dtype(*x), of(x), of(y))?;
                if d == DType::Bool { Some(r) } else { self.wrapped(r, d) }
            }
            Node::Select { p, t, f } => self.emit(NestOp::Select, d, &[of(p), of(t), of(f)]),
            Node::Convert(x) => self.converted(k.dtype(*x), d, of(x)),
            Node::Bitcast(x) => self.bits(k.dtype(*x), d, of(x)),
            Node::Round { of: x, exponent, mantissa } => {
                let words = Scalar { dtype: DType::U64, bits: *exponent as u64 | (*mantissa as u64) << 32 };
                self.rounded(d, of(x), words)
            }
            Node::Reduce { .. } => None,
        }
    }
    /// An integer as an index.
    pub fn wide(&mut self, v: NestValue, d: DType) -> Option<NestValue> {
        match d {
            DType::I64 => Some(v),
            DType::U64 | DType::Bool => None,
            _ if Lane::of(d) == Lane::F32 => None,
            _ => self.emit(NestOp::Convert(d), DType::I64, &[v]),
        }
    }
}
/// Whether a nest holds numbers of this dtype.
pub fn is_held(d: DType) -> bool {
    use DType::*;
    matches!(d, Bool | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | F32 | F64)
}
