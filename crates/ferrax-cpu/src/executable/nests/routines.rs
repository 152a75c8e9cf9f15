//! Slices, gathers and scatters of few elements in a nest: loads and stores at clamped positions.
//!
//! INVARIANT: each index is clamped as its routine clamps it, so that every position lies inside its array.
use super::build::Builder;
use crate::executable::Cell;
use crate::nest::{LoopKind, NestValue};
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::routine::{Combine, Gather, OutOfBounds, Scatter};
use ferrax_kernel::{Affine, Bin, DType, Dims, Routine};

impl Builder<'_, '_> {
    pub fn routine(&mut self, r: &Routine, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let most = self.c.target.tuning.scalars.max_block_elements;
        match r {
            Routine::DynamicSlice { operand, sizes, dtype, index_dtype } if sizes.size() <= most => {
                let first = self.starts(operand, sizes, &ins[1..], *index_dtype)?;
                let mut values = vec![];
                for i in 0..sizes.size() {
                    let at = self.further(first, offset(operand, &sizes.unravel(i)))?;
                    values.push(self.load(self.c.cell(ins[0]), at, *dtype)?);
                }
                self.put(outs[0], &values)
            }
            Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype } if update.size() <= most => {
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
            Routine::Gather(g) if g.out.size() <= most => self.gather(g, ins, outs),
            Routine::Gather(g) if g.out.without(&g.offset_dims).size() > self.most() => self.gather_all(g, ins, outs),
            Routine::Gather(g) if self.is_array(self.c.cell(outs[0])) => self.gather_windows(g, ins, outs),
            Routine::Scatter(s) if s.updates.size() <= most => self.scatter(s, ins, outs),
            Routine::Scatter(s) if s.updates.without(&s.update_window_dims).size() > self.most() => {
                self.scatter_all(s, ins, outs)
            }
            Routine::Scatter(s) if self.is_array(self.c.cell(ins[2])) => self.scatter_windows(s, ins, outs),
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
    /// The position that the start and an index within the window give; and, on request, whether
    /// the window is in bounds.
    fn target(
        &mut self,
        operand: &Dims,
        sizes: &[usize],
        starts: &[Option<NestValue>],
        within: &[usize],
        asked: bool,
    ) -> Option<(NestValue, Option<NestValue>)> {
        let mut at = self.index(0)?;
        let mut inside = None;
        for (k, start) in starts.iter().enumerate() {
            at = self.further(at, within[k] as i64 * operand.strides()[k] as i64)?;
            let Some(start) = start else { continue };
            let moved = self.clamped(*start, operand[k].checked_sub(sizes[k])?)?;
            at = self.plus(at, moved, operand.strides()[k])?;
            if asked {
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
    /// Where the windows of a position begin, for each axis of the operand.
    fn starts_of_gather(&mut self, g: &Gather, ins: &[SlotId], position: &Dims) -> Option<Vec<Option<NestValue>>> {
        let mut starts = vec![None; g.operand.len()];
        for (j, axis) in g.start_index_map.iter().enumerate() {
            let at = offset(&g.indices, &position.concat(&[j])) as usize;
            let (array, at) = if g.apart { (1 + j, at / g.start_index_map.len()) } else { (1, at) };
            starts[*axis] = Some(self.component(self.c.cell(ins[array]), at, g.index_dtype)?);
        }
        for (axis, of) in g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()) {
            starts[*axis] = Some(self.index(position[*of] as i64)?);
        }
        Some(starts)
    }
    fn starts_of_scatter(&mut self, s: &Scatter, ins: &[SlotId], position: &Dims) -> Option<Vec<Option<NestValue>>> {
        let mut starts = vec![None; s.operand.len()];
        for (j, axis) in s.scatter_dims_to_operand_dims.iter().enumerate() {
            let at = offset(&s.indices, &position.concat(&[j])) as usize;
            starts[*axis] = Some(self.component(self.c.cell(ins[1]), at, s.index_dtype)?);
        }
        for (axis, of) in s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter()) {
            starts[*axis] = Some(self.index(position[*of] as i64)?);
        }
        Some(starts)
    }
    fn gather(&mut self, g: &Gather, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let rank = g.operand.len();
        let mut values = vec![];
        for o in 0..g.out.size() {
            let out = g.out.unravel(o);
            let (window, positions) = (out.pick(&g.offset_dims), out.without(&g.offset_dims));
            let starts = self.starts_of_gather(g, ins, &positions)?;
            let mut inside = window.iter();
            let mut within = vec![0; rank];
            for (axis, w) in within.iter_mut().enumerate() {
                if !g.collapsed_slice_dims.contains(&axis) && !g.operand_batching_dims.contains(&axis) {
                    *w = *inside.next()?;
                }
            }
            let asked = g.mode == OutOfBounds::FillOrDrop;
            let (at, inside) = self.target(&g.operand, &g.slice_sizes, &starts, &within, asked)?;
            let mut v = self.load(self.c.cell(ins[0]), at, g.dtype)?;
            if let Some(inside) = inside {
                let fill = self.constant(g.dtype, crate::kernels::moves::lane_bits(g.fill))?;
                v = self.emit(crate::nest::NestOp::Select, g.dtype, &[inside, v, fill])?;
            }
            values.push(v);
        }
        self.put(outs[0], &values)
    }
    fn scatter(&mut self, s: &Scatter, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (cell, rank) = (self.c.cell(outs[0]), s.operand.len());
        if cell != self.c.cell(ins[0]) {
            return None;
        }
        let updates = self.elements(ins[2])?;
        let sizes_of_window = s.updates.pick(&s.update_window_dims);
        for (u, update) in updates.into_iter().enumerate() {
            let index = s.updates.unravel(u);
            let (window, positions) = (index.pick(&s.update_window_dims), index.without(&s.update_window_dims));
            let starts = self.starts_of_scatter(s, ins, &positions)?;
            let mut inside = window.iter().zip(sizes_of_window.iter());
            let (mut within, mut sizes) = (vec![0; rank], vec![1; rank]);
            for axis in 0..rank {
                if !s.inserted_window_dims.contains(&axis) && !s.operand_batching_dims.contains(&axis) {
                    let (w, n) = inside.next()?;
                    (within[axis], sizes[axis]) = (*w, *n);
                }
            }
            let asked = s.mode == OutOfBounds::FillOrDrop;
            let (at, inside) = self.target(&s.operand, &sizes, &starts, &within, asked)?;
            let v = self.updated(s, cell, at, update, inside)?;
            self.store(cell, at, v, s.dtype)?;
        }
        Some(())
    }
    /// Few windows of many elements.
    fn gather_windows(&mut self, g: &Gather, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (rank, (from, to)) = (g.operand.len(), (self.c.cell(ins[0]), self.c.cell(outs[0])));
        let axes: Vec<usize> =
            (0..rank).filter(|a| !g.collapsed_slice_dims.contains(a) && !g.operand_batching_dims.contains(a)).collect();
        let sizes = g.out.pick(&g.offset_dims);
        let places = g.out.without(&g.offset_dims);
        if places.size() > self.c.target.tuning.scalars.max_nest_registers {
            return None;
        }
        let whole = picked(&g.operand, &axes);
        let mut part = picked(&g.out, &g.offset_dims);
        let others: Vec<usize> = (0..g.out.len()).filter(|a| !g.offset_dims.contains(a)).collect();
        let of_places = picked(&g.out, &others);
        for p in 0..places.size() {
            let position = places.unravel(p);
            let starts = self.starts_of_gather(g, ins, &position)?;
            let asked = g.mode == OutOfBounds::FillOrDrop;
            let (first, inside) = self.target(&g.operand, &g.slice_sizes, &starts, &vec![0; rank], asked)?;
            part.offset = of_places.at(position.iter().copied());
            let fill = self.constant(g.dtype, crate::kernels::moves::lane_bits(g.fill))?;
            self.window(&sizes, [&whole, &part], first, &mut |b, at, within| {
                let mut v = b.load(from, at, g.dtype)?;
                if let Some(inside) = inside {
                    v = b.emit(crate::nest::NestOp::Select, g.dtype, &[inside, v, fill])?;
                }
                b.store(to, within, v, g.dtype)
            })?;
        }
        Some(())
    }
    /// Few windows of many elements.
    fn scatter_windows(&mut self, s: &Scatter, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (cell, from, rank) = (self.c.cell(outs[0]), self.c.cell(ins[2]), s.operand.len());
        let sizes = s.updates.pick(&s.update_window_dims);
        let places = s.updates.without(&s.update_window_dims);
        if cell != self.c.cell(ins[0]) || places.size() > self.c.target.tuning.scalars.max_nest_registers {
            return None;
        }
        let axes: Vec<usize> =
            (0..rank).filter(|a| !s.inserted_window_dims.contains(a) && !s.operand_batching_dims.contains(a)).collect();
        let mut of_window = vec![1; rank];
        axes.iter().zip(sizes.iter()).for_each(|(a, n)| of_window[*a] = *n);
        let whole = picked(&s.operand, &axes);
        let mut part = picked(&s.updates, &s.update_window_dims);
        let others: Vec<usize> = (0..s.updates.len()).filter(|a| !s.update_window_dims.contains(a)).collect();
        let of_places = picked(&s.updates, &others);
        for p in 0..places.size() {
            let position = places.unravel(p);
            let starts = self.starts_of_scatter(s, ins, &position)?;
            let asked = s.mode == OutOfBounds::FillOrDrop;
            let (first, inside) = self.target(&s.operand, &of_window, &starts, &vec![0; rank], asked)?;
            part.offset = of_places.at(position.iter().copied());
            self.window(&sizes, [&whole, &part], first, &mut |b, at, within| {
                let update = b.load(from, within, s.dtype)?;
                let v = b.updated(s, cell, at, update, inside)?;
                b.store(cell, at, v, s.dtype)
            })?;
        }
        Some(())
    }
    /// The windows of many positions, one after the other.
    fn gather_all(&mut self, g: &Gather, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (rank, (from, to)) = (g.operand.len(), (self.c.cell(ins[0]), self.c.cell(outs[0])));
        let axes: Vec<usize> =
            (0..rank).filter(|a| !g.collapsed_slice_dims.contains(a) && !g.operand_batching_dims.contains(a)).collect();
        let (sizes, places) = (g.out.pick(&g.offset_dims), g.out.without(&g.offset_dims));
        if g.out.size() > self.c.target.tuning.scalars.max_scattered || ![from, to].iter().all(|c| self.is_array(*c)) {
            return None;
        }
        let others: Vec<usize> = (0..g.out.len()).filter(|a| !g.offset_dims.contains(a)).collect();
        let (whole, part) = (picked(&g.operand, &axes), picked(&g.out, &g.offset_dims));
        let of_places = picked(&g.out, &others);
        let fill = self.constant(g.dtype, crate::kernels::moves::lane_bits(g.fill))?;
        self.for_each(LoopKind::Sequential, &places, &mut vec![], &mut |b, position| {
            let mut starts = vec![None; rank];
            for (j, axis) in g.start_index_map.iter().enumerate() {
                let (array, form) = index_of(&g.indices, j, g.start_index_map.len(), g.apart);
                starts[*axis] = Some(b.index_at(b.c.cell(ins[array]), &form, position, g.index_dtype)?);
            }
            for (axis, of) in g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()) {
                starts[*axis] = Some(position[*of]);
            }
            let asked = g.mode == OutOfBounds::FillOrDrop;
            let (first, inside) = b.target(&g.operand, &g.slice_sizes, &starts, &vec![0; rank], asked)?;
            let base = b.affine(&of_places, position)?;
            b.window(&sizes, [&whole, &part], first, &mut |b, at, within| {
                let mut v = b.load(from, at, g.dtype)?;
                if let Some(inside) = inside {
                    v = b.emit(crate::nest::NestOp::Select, g.dtype, &[inside, v, fill])?;
                }
                let within = b.bin(Bin::Add, DType::I64, base, within)?;
                b.store(to, within, v, g.dtype)
            })
        })
    }
    /// The windows of many positions, one after the other.
    fn scatter_all(&mut self, s: &Scatter, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (cell, from, rank) = (self.c.cell(outs[0]), self.c.cell(ins[2]), s.operand.len());
        let (sizes, places) = (s.updates.pick(&s.update_window_dims), s.updates.without(&s.update_window_dims));
        let is_little = s.updates.size() <= self.c.target.tuning.scalars.max_scattered;
        if cell != self.c.cell(ins[0]) || !is_little || ![cell, from].iter().all(|c| self.is_array(*c)) {
            return None;
        }
        let axes: Vec<usize> =
            (0..rank).filter(|a| !s.inserted_window_dims.contains(a) && !s.operand_batching_dims.contains(a)).collect();
        let mut of_window = vec![1; rank];
        axes.iter().zip(sizes.iter()).for_each(|(a, n)| of_window[*a] = *n);
        let others: Vec<usize> = (0..s.updates.len()).filter(|a| !s.update_window_dims.contains(a)).collect();
        let (whole, part) = (picked(&s.operand, &axes), picked(&s.updates, &s.update_window_dims));
        let of_places = picked(&s.updates, &others);
        self.for_each(LoopKind::Sequential, &places, &mut vec![], &mut |b, position| {
            let mut starts = vec![None; rank];
            for (j, axis) in s.scatter_dims_to_operand_dims.iter().enumerate() {
                let (_, form) = index_of(&s.indices, j, s.scatter_dims_to_operand_dims.len(), false);
                starts[*axis] = Some(b.index_at(b.c.cell(ins[1]), &form, position, s.index_dtype)?);
            }
            for (axis, of) in s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter()) {
                starts[*axis] = Some(position[*of]);
            }
            let asked = s.mode == OutOfBounds::FillOrDrop;
            let (first, inside) = b.target(&s.operand, &of_window, &starts, &vec![0; rank], asked)?;
            let base = b.affine(&of_places, position)?;
            b.window(&sizes, [&whole, &part], first, &mut |b, at, within| {
                let within = b.bin(Bin::Add, DType::I64, base, within)?;
                let update = b.load(from, within, s.dtype)?;
                let v = b.updated(s, cell, at, update, inside)?;
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

/// Where component `j` of an index stands by its position: which operand has it, and where in that.
fn index_of(indices: &Dims, j: usize, components: usize, apart: bool) -> (usize, Affine) {
    let strides = indices.strides();
    let positions = &strides[..strides.len() - 1];
    if apart {
        return (1 + j, Affine::new(0, positions.iter().map(|s| *s as i64 / components as i64)));
    }
    (1, Affine::new(strides[strides.len() - 1] as i64 * j as i64, positions.iter().map(|s| *s as i64)))
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
