//! From steps to a nest: assigns slots to arrays or registers, and translates loops, branches and kernels of few elements.
//!
//! INVARIANT: an element in registers has one value at a time; the elements of an array are loaded and stored in the order of the steps.
mod arrays;
mod branches;

use super::{Cell, CellNumber, PlanCells};
use crate::kernels::lane::Lane;
use crate::kernels::moves;
use crate::nest::{ArrayId, FOLD_SCRATCH, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::plan::{Carry, Loop, SlotId, Step, Trip, Window};
use ferrax_kernel::{Bin, DType, Routine};
use rustc_hash::{FxHashMap, FxHashSet};

/// A nest, with the cells of its arrays and of its numbers.
pub struct WrittenNest {
    pub nest: Nest,
    pub inputs: Vec<CellNumber>,
    pub arrays: Vec<Cell>,
    pub before: Vec<(Cell, Cell, usize)>,
    pub after: Vec<(Cell, Cell, usize)>,
    pub outs: Vec<CellNumber>,
}

/// From cell to cell, so many elements of a dtype.
type ArrayMove = (Cell, Cell, usize, DType);

pub struct Builder<'a, 'c> {
    pub c: &'a PlanCells<'c>,
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
    pub style: Style,
    /// The order in which cells of a block were set, with the dtype and the number of elements of the last setting.
    settings: Vec<(Cell, DType, usize)>,
}

/// The step that a nest computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A loop as native code: arrays of many elements are gone through in loops.
    Rows,
    /// A loop as native code, with few elements in registers and single elements of arrays.
    Scalars,
    /// The same for the interpreter, whose operations take longer.
    Interpreted,
    /// Steps between others: no loops and no arrays.
    Block,
}

impl<'a, 'c> Builder<'a, 'c> {
    fn new(c: &'a PlanCells<'c>, style: Style, most: usize) -> Builder<'a, 'c> {
        Builder {
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
            most,
            style,
            settings: vec![],
        }
    }
    /// The first of these steps, as far as they may be taken and have few elements, and how many they are. All cells that they set are left in
    /// memory.
    pub fn block(
        c: &'a PlanCells<'c>,
        steps: &[Step],
        most: usize,
        may_take: impl Fn(&Step) -> bool,
    ) -> Option<(WrittenNest, usize)> {
        let mut b = Builder::new(c, Style::Block, most);
        let n = steps.iter().take_while(|s| may_take(s) && b.taken(s)).count();
        if n == 0 {
            return None;
        }
        let mut outs = vec![];
        // Where two cells share memory, one after the other's death, the one that is set later stays.
        let settings = std::mem::take(&mut b.settings);
        let last: FxHashMap<Cell, usize> = settings.iter().zip(0..).map(|(s, at)| (s.0, at)).collect();
        for (at, (cell, d, len)) in settings.into_iter().enumerate() {
            if last[&cell] == at {
                b.leave_elements(cell, d, len, &mut outs)?;
            }
        }
        Some((b.written(vec![], vec![], outs)?, n))
    }
    /// Takes a step into a block; gives false, and changes nothing, if it cannot be.
    fn taken(&mut self, s: &Step) -> bool {
        let (defs, statements, inputs) = (self.nest.defs.len(), self.blocks[0].len(), self.inputs.len());
        let before = matches!(s, Step::Switch { .. }).then(|| (self.known.clone(), self.set.clone()));
        let settings = self.settings.len();
        let is_taken = match s {
            Step::Routine { routine, .. } => matches!(**routine, Routine::Dot(_)),
            Step::Kernel { .. } | Step::Copy { .. } | Step::Switch { .. } => true,
            _ => false,
        };
        if is_taken && self.step(s).is_some() && self.arrays.is_empty() {
            return true;
        }
        // A kernel, a product or a copy sets its results last.
        if let Some((known, set)) = before {
            (self.known, self.set) = (known, set);
        }
        self.settings.truncate(settings);
        self.blocks.truncate(1);
        self.blocks[0].truncate(statements);
        self.nest.defs.truncate(defs);
        self.inputs.truncate(inputs);
        self.input_values.retain(|_, v| (*v as usize) < defs);
        false
    }
    /// The loop as a nest.
    pub fn of(c: &'a PlanCells<'c>, l: &Loop, style: Style) -> Option<WrittenNest> {
        let t = &c.target.tuning.scalars;
        let most = if style == Style::Rows { t.max_nest_registers } else { t.max_slot_elements };
        let mut b = Builder::new(c, style, most);
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
        b.written(before, after, outs)
    }
    /// For code whose slots are all arrays.
    pub fn of_arrays(c: &'a PlanCells<'c>, slots: impl Iterator<Item = SlotId>) -> Builder<'a, 'c> {
        let mut b = Builder::new(c, Style::Rows, 0);
        b.is_array = slots.map(|s| c.cell(s)).collect();
        b
    }
    /// A number that the nest is given for each run, which is in no cell.
    pub fn number(&mut self, dtype: DType) -> NestValue {
        let v = self.nest.add(NestOp::Input(self.inputs.len() as u32), dtype, &[]);
        self.blocks[0].push(Stmt::Let(v));
        self.inputs.push(CellNumber { cell: Cell::MAX, offset: 0, dtype });
        v
    }
    pub fn written(
        mut self,
        before: Vec<(Cell, Cell, usize)>,
        after: Vec<(Cell, Cell, usize)>,
        outs: Vec<CellNumber>,
    ) -> Option<WrittenNest> {
        self.nest.body = self.blocks.pop()?;
        self.nest.arrays = self.arrays.len() as u32;
        self.nest.lengths = self.arrays.iter().map(|a| self.c.cell_bytes(*a)).collect();
        if self.style == Style::Rows {
            self.find_meeting();
            self.nest.scratch = Some((self.nest.arrays, FOLD_SCRATCH));
            self.nest.arrays += 1;
        }
        self.nest.inputs = self.inputs.iter().map(|p| p.dtype).collect();
        Some(WrittenNest { nest: self.nest, inputs: self.inputs, arrays: self.arrays, before, after, outs })
    }
    /// Finds the arrays that may share memory: an input that is given away and the output that takes its memory, and temporaries of which one is dead
    /// before the other is set.
    fn find_meeting(&mut self) {
        let n = self.arrays.len();
        let all = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let with_bytes = |n: usize| (self.arrays[n], self.c.cell_bytes(self.arrays[n]));
        let meet = all.filter(|(a, b)| a != b && self.c.overlap(with_bytes(*a), with_bytes(*b)));
        self.nest.meeting = meet.map(|(a, b)| (a as ArrayId, b as ArrayId)).collect();
    }
    /// Has the elements of a slot written to memory after the nest.
    fn leave(&mut self, s: SlotId, outs: &mut Vec<CellNumber>) -> Option<()> {
        let slot = &self.c.plan.slots[s as usize];
        self.leave_elements(self.c.cell(s), slot.dtype, slot.len, outs)
    }
    fn leave_elements(&mut self, cell: Cell, dtype: DType, n: usize, outs: &mut Vec<CellNumber>) -> Option<()> {
        for offset in (0..n).map(|e| e * dtype.size()) {
            let v = self.get(cell, offset, dtype)?;
            self.nest.outs.push(v);
            outs.push(CellNumber { cell, offset, dtype });
        }
        Some(())
    }
    // ---- values ----

    pub fn most(&self) -> usize {
        self.most
    }
    pub fn begin_block(&mut self) {
        self.blocks.push(vec![]);
    }
    pub fn end_block(&mut self) -> Option<Vec<Stmt>> {
        self.blocks.pop()
    }
    pub fn statement(&mut self, s: Stmt) -> Option<()> {
        self.blocks.last_mut()?.push(s);
        Some(())
    }
    pub fn emit(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> Option<NestValue> {
        let t = &self.c.target.tuning.scalars;
        let most = if self.style == Style::Interpreted { t.max_loop_operations } else { t.max_nest_values };
        if self.nest.defs.len() > most {
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
        self.blocks.last_mut()?.push(Stmt::Store { array, index, offset: 0, value, dtype, stride: 1 });
        Some(())
    }
    /// An element of a cell at a fixed place.
    pub fn get(&mut self, cell: Cell, offset: usize, d: DType) -> Option<NestValue> {
        if !self.holds(d) {
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
    /// An element of a slot at a fixed position, as a constant where its value is known.
    pub fn get_of(&mut self, s: SlotId, offset: usize, d: DType) -> Option<NestValue> {
        let cell = self.c.cell(s);
        match self.c.constant(s) {
            Some(x) if x.dtype == d && offset == 0 && self.holds(d) && !self.is_array(cell) => {
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
        if slot.len != values.len() || slot.tape > 0 || !self.holds(slot.dtype) {
            return None;
        }
        if self.is_array(cell) {
            for (e, v) in values.iter().enumerate() {
                let index = self.index(e as i64)?;
                self.store(cell, index, *v, slot.dtype)?;
            }
            return Some(());
        }
        // Read before it is set, it would be a carry of the loop around.
        if self.blocks.len() > 1 && self.input_values.keys().any(|k| k.0 == cell) {
            return None;
        }
        for (e, v) in values.iter().enumerate() {
            self.known.insert((cell, e * slot.dtype.size()), (slot.dtype, *v));
        }
        self.set.insert(cell);
        if self.blocks.len() == 1 {
            self.settings.push((cell, slot.dtype, slot.len));
        }
        Some(())
    }
    /// Whether it holds numbers of this dtype. There are no vectors of halves, and no instructions for them.
    pub fn holds(&self, d: DType) -> bool {
        is_held(d) || matches!(self.style, Style::Interpreted | Style::Block) && matches!(d, DType::F16 | DType::BF16)
    }

    // ---- loops ----

    /// Which arrays of carries are copied: before a loop, after each iteration, and after the loop.
    fn moves(&self, arrays: &[&Carry], is_outermost: bool) -> Option<[Vec<ArrayMove>; 3]> {
        let moved = |k: &Carry, from: SlotId, to: SlotId| {
            let slot = &self.c.plan.slots[k.slot as usize];
            let [from, to] = [from, to].map(|s| self.c.cell(s));
            (from != to).then_some((from, to, slot.len, slot.dtype))
        };
        let mut moves = [vec![], vec![], vec![]];
        for k in arrays.iter().copied() {
            let cells = [k.init, k.slot, k.next, k.out].map(|s| self.c.cell(s));
            let stays = is_outermost && cells[1] == cells[2];
            if !stays && !cells.iter().all(|c| self.is_array(*c)) {
                return None;
            }
            if !is_outermost {
                moves[0].extend(moved(k, k.init, k.slot));
                moves[2].extend(moved(k, k.slot, k.out));
            }
            moves[1].extend(moved(k, k.next, k.slot));
        }
        // whether one copy overwrites memory that another copy reads
        let meet = |m: &[ArrayMove]| {
            let apart = |a: &ArrayMove, b: &ArrayMove| {
                let bytes = |n: usize, d: DType| n * d.size();
                !self.c.overlap((a.1, bytes(a.2, a.3)), (b.0, bytes(b.2, b.3)))
            };
            m.iter().enumerate().any(|(i, a)| m.iter().enumerate().any(|(j, b)| i != j && !apart(a, b)))
        };
        let copied: usize = moves[1].iter().map(|m| m.2).sum();
        let is_much = copied > self.c.target.tuning.scalars.max_nest_copies;
        if is_much || moves.iter().any(|m| meet(m) || !m.is_empty() && self.style != Style::Rows) {
            return None;
        }
        Some(moves)
    }
    fn looped(&mut self, l: &Loop, is_outermost: bool) -> Option<()> {
        let (arrays, few): (Vec<&Carry>, Vec<&Carry>) =
            l.carries.iter().partition(|k| self.is_array(self.c.cell(k.slot)));
        let moves = self.moves(&arrays, is_outermost)?;
        for (from, to, n, d) in &moves[0] {
            self.copied(*from, *to, *n, *d)?;
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
        for (from, to, n, d) in &moves[1] {
            self.copied(*from, *to, *n, *d)?;
        }
        let one = self.index(1)?;
        let grown = self.bin(Bin::Add, DType::I64, counter, one)?;
        carries.iter_mut().zip(next).for_each(|(c, n)| c.next = n);
        carries.push(NestCarry { init: zero, slot: counter, next: grown, after: counted });
        let body = self.blocks.pop()?;
        (self.known, self.set) = outside;
        let after: Vec<NestValue> = carries.iter().map(|c| c.after).collect();
        self.blocks.last_mut()?.push(Stmt::Loop(Box::new(NestLoop {
            kind: LoopKind::Sequential,
            trip,
            carries,
            body,
        })));
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
        for (from, to, n, d) in &moves[2] {
            self.copied(*from, *to, *n, *d)?;
        }
        Some(())
    }
    /// Loads the elements of this iteration, and records the positions of windows that are indexed
    /// or written.
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
            if n.saturating_mul(each.len) > all.len || each.dtype != all.dtype || !self.holds(each.dtype) {
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
                let [x, y] = [*from, *to].map(|s| self.c.cell(s));
                if self.style == Style::Rows && self.is_array(x) && self.is_array(y) {
                    return self.copied(x, y, a.len, a.dtype);
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
fn is_held(d: DType) -> bool {
    use DType::*;
    matches!(d, Bool | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | F32 | F64)
}
