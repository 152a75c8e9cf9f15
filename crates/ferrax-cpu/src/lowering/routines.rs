//! Slices, gathers and scatters of few elements in a nest: loads and stores at clamped positions.
//!
//! INVARIANT: each index is clamped as its routine clamps it, so that every position lies inside its array.
use super::Cell;
use super::build::Builder;
use crate::nest::{LoopKind, NestValue};
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::routine::{Combine, Gather, OutOfBounds, Scatter};
use ferrax_kernel::{Affine, Bin, DType, Dims, Routine};

impl Builder<'_, '_> {
    pub fn routine(&mut self, r: &Routine, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let most = self.c.target.tuning.scalars.max_block_elements;
        match r {
            Routine::DynamicSlice { operand, sizes, dtype, index_dtype }
                if sizes.size() <= most && !self.is_array(self.c.cell(outs[0])) =>
            {
                let first = self.starts(operand, sizes, &ins[1..], *index_dtype)?;
                let mut values = vec![];
                for i in 0..sizes.size() {
                    let at = self.further(first, offset(operand, &sizes.unravel(i)))?;
                    values.push(self.load(self.c.cell(ins[0]), at, *dtype)?);
                }
                self.put(outs[0], &values)
            }
            Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype }
                if update.size() <= most && !self.is_array(self.c.cell(ins[1])) =>
            {
                if self.c.cell(ins[0]) != self.c.cell(outs[0]) {
                    return None;
                }
                let first = self.starts(operand, update, &ins[2..], *index_dtype)?;
                let values = self.elements(ins[1])?;
                for (i, v) in values.into_iter().enumerate() {
                    let at = self.further(first, offset(operand, &update.unravel(i)))?;
                    self.store(self.c.cell(outs[0]), at, v, *dtype)?;
                }
                Some(())
            }
            Routine::DynamicSlice { operand, sizes, dtype, index_dtype } if self.is_array(self.c.cell(outs[0])) => {
                let first = self.starts(operand, sizes, &ins[1..], *index_dtype)?;
                let (from, to) = (self.c.cell(ins[0]), self.c.cell(outs[0]));
                self.window(sizes, [&dense(operand), &dense(sizes)], first, &mut |b, at, within| {
                    let v = b.load(from, at, *dtype)?;
                    b.store(to, within, v, *dtype)
                })
            }
            Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype }
                if self.is_array(self.c.cell(ins[1])) && self.c.cell(ins[0]) == self.c.cell(outs[0]) =>
            {
                let first = self.starts(operand, update, &ins[2..], *index_dtype)?;
                let (from, to) = (self.c.cell(ins[1]), self.c.cell(outs[0]));
                self.window(update, [&dense(operand), &dense(update)], first, &mut |b, at, within| {
                    let v = b.load(from, within, *dtype)?;
                    b.store(to, at, v, *dtype)
                })
            }
            Routine::Gather(g) => self.gather(g, ins, outs),
            Routine::Scatter(s) => self.scatter(s, ins, outs),
            _ => None,
        }
    }
    /// The place of a window's first element.
    fn starts(&mut self, operand: &Dims, sizes: &Dims, starts: &[SlotId], index: DType) -> Option<NestValue> {
        let mut first = self.index(0)?;
        for (k, s) in starts.iter().enumerate() {
            let last = operand[k].checked_sub(sizes[k])?;
            let moved = match self.c.constant(*s) {
                Some(x) => self.index(x.to_i64().clamp(0, last as i64))?,
                None => {
                    let start = self.get_of(*s, 0, index)?;
                    let start = self.wide(start, index)?;
                    self.clamped(start, last)?
                }
            };
            first = self.plus(first, moved, operand.strides()[k])?;
        }
        Some(first)
    }
    fn clamped(&mut self, start: NestValue, last: usize) -> Option<NestValue> {
        let (zero, last) = (self.index(0)?, self.index(last as i64)?);
        let start = self.bin(Bin::Min, DType::I64, start, last)?;
        self.bin(Bin::Max, DType::I64, start, zero)
    }
    fn plus(&mut self, sum: NestValue, x: NestValue, stride: isize) -> Option<NestValue> {
        let stride = self.index(stride as i64)?;
        let term = self.bin(Bin::Mul, DType::I64, x, stride)?;
        self.bin(Bin::Add, DType::I64, sum, term)
    }
    fn further(&mut self, first: NestValue, by: i64) -> Option<NestValue> {
        let by = self.index(by)?;
        self.bin(Bin::Add, DType::I64, first, by)
    }
    /// The position of a window's first element; and, on request, whether the window is in bounds.
    fn target(&mut self, w: &WindowSet, starts: &[Option<NestValue>]) -> Option<(NestValue, Option<NestValue>)> {
        let mut at = self.index(0)?;
        let mut inside = None;
        for (k, start) in starts.iter().enumerate() {
            let Some(start) = start else { continue };
            let moved = self.clamped(*start, w.operand[k].checked_sub(w.extents[k])?)?;
            at = self.plus(at, moved, w.operand.strides()[k])?;
            if w.is_dropped {
                let same = self.bin(Bin::Eq, DType::Bool, moved, *start)?;
                inside = Some(match inside {
                    None => same,
                    Some(all) => self.bin(Bin::And, DType::Bool, all, same)?,
                });
            }
        }
        Some((at, inside))
    }
    fn component(&mut self, cell: Cell, at: usize, d: DType) -> Option<NestValue> {
        let v = self.get(cell, at * d.size(), d)?;
        self.wide(v, d)
    }
    /// Where the window of a position begins, for each axis of the operand.
    fn starts_of(&mut self, w: &WindowSet, position: Position) -> Option<Vec<Option<NestValue>>> {
        let mut starts = vec![None; w.operand.len()];
        for (j, axis) in w.components.iter().enumerate() {
            let (array, form) = index_of(w.shape, j, w.components.len(), w.apart);
            let cell = self.c.cell(w.indices[array]);
            starts[*axis] = Some(match position {
                Position::Known(p) => self.component(cell, form.at(p.iter().copied()) as usize, w.index_dtype)?,
                Position::Counted(p) => self.index_at(cell, &form, p, w.index_dtype)?,
            });
        }
        for (axis, of) in w.batching[0].iter().zip(w.batching[1].iter()) {
            starts[*axis] = Some(match position {
                Position::Known(p) => self.index(p[*of] as i64)?,
                Position::Counted(p) => p[*of],
            });
        }
        Some(starts)
    }
    /// Calls `f` for the window of each position, in a loop or one by one.
    fn each_window(
        &mut self,
        w: &WindowSet,
        in_loop: bool,
        f: &mut dyn FnMut(&mut Self, PlacedWindow) -> Option<()>,
    ) -> Option<()> {
        let places = w.all.without(w.inner);
        let others: Vec<usize> = (0..w.all.len()).filter(|a| !w.inner.contains(a)).collect();
        let (of_places, mut part) = (picked(w.all, &others), picked(w.all, w.inner));
        if in_loop {
            return self.for_each(LoopKind::Sequential, &places, &mut vec![], &mut |b, position| {
                let starts = b.starts_of(w, Position::Counted(position))?;
                let (first, inside) = b.target(w, &starts)?;
                let base = Some(b.affine(&of_places, position)?);
                f(b, PlacedWindow { first, inside, part: &part, base })
            });
        }
        for p in 0..places.size() {
            let position = places.unravel(p);
            let starts = self.starts_of(w, Position::Known(&position))?;
            let (first, inside) = self.target(w, &starts)?;
            part.offset = of_places.at(position.iter().copied());
            f(self, PlacedWindow { first, inside, part: &part, base: None })?;
        }
        Some(())
    }
    /// Calls `f` with the places of each element of a window in the operand and in the other array.
    fn each_element(
        &mut self,
        w: &WindowSet,
        window: &PlacedWindow,
        f: &mut dyn FnMut(&mut Self, NestValue, NestValue) -> Option<()>,
    ) -> Option<()> {
        let base = window.base;
        let whole = picked(w.operand, &w.axes);
        self.window(&w.all.pick(w.inner), [&whole, window.part], window.first, &mut |b, at, within| {
            let within = match base {
                Some(base) => b.bin(Bin::Add, DType::I64, base, within)?,
                None => within,
            };
            f(b, at, within)
        })
    }
    /// Whether windows of many elements are a loop, or one by one; none where they are too many for a nest, or not in arrays.
    fn is_loop(&self, w: &WindowSet, array: Cell, operand: Cell) -> Option<bool> {
        let (places, t) = (w.all.without(w.inner).size(), &self.c.target.tuning.scalars);
        let is_loop = places > self.most();
        let fits = if is_loop {
            w.all.size() <= t.max_scattered && self.is_array(array) && self.is_array(operand)
        } else {
            places <= t.max_nest_registers && self.is_array(array)
        };
        fits.then_some(is_loop)
    }
    fn gather(&mut self, g: &Gather, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let w = WindowSet::of_gather(g, &ins[1..]);
        let (from, to) = (self.c.cell(ins[0]), self.c.cell(outs[0]));
        let fill = self.constant(g.dtype, crate::kernels::moves::lane_bits(g.fill))?;
        let read = |b: &mut Self, at, inside: Option<NestValue>| {
            let v = b.load(from, at, g.dtype)?;
            match inside {
                Some(inside) => b.emit(crate::nest::NestOp::Select, g.dtype, &[inside, v, fill]),
                None => Some(v),
            }
        };
        if g.out.size() <= self.c.target.tuning.scalars.max_block_elements {
            let (sizes, whole) = (w.all.pick(w.inner), picked(w.operand, &w.axes));
            let mut values = vec![None; g.out.size()];
            self.each_window(&w, false, &mut |b, window| {
                for i in 0..sizes.size() {
                    let index = sizes.unravel(i);
                    let at = b.further(window.first, whole.at(index.iter().copied()))?;
                    values[window.part.at(index.iter().copied()) as usize] = Some(read(b, at, window.inside)?);
                }
                Some(())
            })?;
            let values: Option<Vec<NestValue>> = values.into_iter().collect();
            return self.put(outs[0], &values?);
        }
        let in_loop = self.is_loop(&w, to, from)?;
        self.each_window(&w, in_loop, &mut |b, window| {
            b.each_element(&w, &window, &mut |b, at, within| {
                let v = read(b, at, window.inside)?;
                b.store(to, within, v, g.dtype)
            })
        })
    }
    fn scatter(&mut self, s: &Scatter, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let w = WindowSet::of_scatter(s, &ins[1..]);
        let (cell, from) = (self.c.cell(outs[0]), self.c.cell(ins[2]));
        if cell != self.c.cell(ins[0]) {
            return None;
        }
        if s.updates.size() <= self.c.target.tuning.scalars.max_block_elements {
            let (sizes, whole) = (w.all.pick(w.inner), picked(w.operand, &w.axes));
            let updates = self.elements(ins[2])?;
            return self.each_window(&w, false, &mut |b, window| {
                for i in 0..sizes.size() {
                    let index = sizes.unravel(i);
                    let at = b.further(window.first, whole.at(index.iter().copied()))?;
                    let update = updates[window.part.at(index.iter().copied()) as usize];
                    let v = b.updated(s, cell, at, update, window.inside)?;
                    b.store(cell, at, v, s.dtype)?;
                }
                Some(())
            });
        }
        let in_loop = self.is_loop(&w, from, cell)?;
        self.each_window(&w, in_loop, &mut |b, window| {
            b.each_element(&w, &window, &mut |b, at, within| {
                let update = b.load(from, within, s.dtype)?;
                let v = b.updated(s, cell, at, update, window.inside)?;
                b.store(cell, at, v, s.dtype)
            })
        })
    }
    /// A component of an index at a position that is not known yet.
    fn index_at(&mut self, cell: Cell, form: &Affine, position: &[NestValue], d: DType) -> Option<NestValue> {
        if !self.is_array(cell) {
            return None;
        }
        let place = self.affine(form, position)?;
        let v = self.load(cell, place, d)?;
        self.wide(v, d)
    }
    /// The new value of an element.
    fn updated(
        &mut self,
        s: &Scatter,
        cell: Cell,
        at: NestValue,
        update: NestValue,
        inside: Option<NestValue>,
    ) -> Option<NestValue> {
        let old =
            if s.combine == Combine::Set && inside.is_none() { None } else { Some(self.load(cell, at, s.dtype)?) };
        let v = match (s.combine, old) {
            (Combine::Set, _) => update,
            (Combine::Sub, Some(old)) => self.combined(Bin::Sub, s.dtype, old, update)?,
            (Combine::Reduce(kind), Some(old)) => self.combined(kind.bin()?, s.dtype, old, update)?,
            _ => return None,
        };
        match (inside, old) {
            (Some(inside), Some(old)) => self.emit(crate::nest::NestOp::Select, s.dtype, &[inside, v, old]),
            _ => Some(v),
        }
    }
    fn combined(&mut self, f: Bin, d: DType, old: NestValue, new: NestValue) -> Option<NestValue> {
        let v = self.apply(f, d, old, new)?;
        if d == DType::Bool { Some(v) } else { self.wrapped(v, d) }
    }
}

/// The windows of a gather or a scatter: where they begin in the operand, and where they lie in the other array.
struct WindowSet<'a> {
    operand: &'a Dims,
    /// A window's size along each axis of the operand, and the axes along which it has elements.
    extents: Vec<usize>,
    axes: Vec<usize>,
    /// The result of a gather, or a scatter's updates; and its axes that run over a window.
    all: &'a Dims,
    inner: &'a Dims,
    /// Index vectors: the operands that hold them, all components in one or one in each, and their shape.
    indices: &'a [SlotId],
    shape: &'a Dims,
    apart: bool,
    index_dtype: DType,
    /// The axis of the operand that each component is for.
    components: &'a Dims,
    /// Axes of the operand along which a window begins at a coordinate of its position, and which one.
    batching: [&'a Dims; 2],
    /// Whether windows out of bounds have no effect.
    is_dropped: bool,
}
/// The coordinates of a window among all: numbers, or counters of loops.
#[derive(Clone, Copy)]
enum Position<'a> {
    Known(&'a Dims),
    Counted(&'a [NestValue]),
}
/// A window: its first element in the operand, whether it is in bounds where that matters, and where it lies in the other array.
struct PlacedWindow<'a> {
    first: NestValue,
    inside: Option<NestValue>,
    part: &'a Affine,
    base: Option<NestValue>,
}
impl WindowSet<'_> {
    fn of_gather<'a>(g: &'a Gather, indices: &'a [SlotId]) -> WindowSet<'a> {
        let is_kept = |a: &usize| !g.collapsed_slice_dims.contains(a) && !g.operand_batching_dims.contains(a);
        WindowSet {
            operand: &g.operand,
            extents: g.slice_sizes.to_vec(),
            axes: (0..g.operand.len()).filter(is_kept).collect(),
            all: &g.out,
            inner: &g.offset_dims,
            indices,
            shape: &g.indices,
            apart: g.apart,
            index_dtype: g.index_dtype,
            components: &g.start_index_map,
            batching: [&g.operand_batching_dims, &g.start_indices_batching_dims],
            is_dropped: g.mode == OutOfBounds::FillOrDrop,
        }
    }
    fn of_scatter<'a>(s: &'a Scatter, indices: &'a [SlotId]) -> WindowSet<'a> {
        let is_kept = |a: &usize| !s.inserted_window_dims.contains(a) && !s.operand_batching_dims.contains(a);
        let axes: Vec<usize> = (0..s.operand.len()).filter(is_kept).collect();
        let mut extents = vec![1; s.operand.len()];
        axes.iter().zip(s.update_window_dims.iter()).for_each(|(a, u)| extents[*a] = s.updates[*u]);
        WindowSet {
            operand: &s.operand,
            extents,
            axes,
            all: &s.updates,
            inner: &s.update_window_dims,
            indices,
            shape: &s.indices,
            apart: false,
            index_dtype: s.index_dtype,
            components: &s.scatter_dims_to_operand_dims,
            batching: [&s.operand_batching_dims, &s.scatter_indices_batching_dims],
            is_dropped: s.mode == OutOfBounds::FillOrDrop,
        }
    }
}

/// Where component `j` of an index stands by its position: in which array of indices, and where in that.
fn index_of(indices: &Dims, j: usize, components: usize, apart: bool) -> (usize, Affine) {
    let strides = indices.strides();
    let positions = &strides[..strides.len() - 1];
    if apart {
        return (j, Affine::new(0, positions.iter().map(|s| *s as i64 / components as i64)));
    }
    (0, Affine::new(strides[strides.len() - 1] as i64 * j as i64, positions.iter().map(|s| *s as i64)))
}
/// The places of all elements, and of those along some axes.
fn dense(dims: &Dims) -> Affine {
    Affine::new(0, dims.strides().iter().map(|s| *s as i64))
}
fn picked(dims: &Dims, axes: &[usize]) -> Affine {
    let strides = dims.strides();
    Affine::new(0, axes.iter().map(|a| strides[*a] as i64))
}
/// The row-major position of an index.
fn offset(dims: &Dims, index: &[usize]) -> i64 {
    dims.strides().iter().zip(index).map(|(s, i)| *s as i64 * *i as i64).sum()
}
