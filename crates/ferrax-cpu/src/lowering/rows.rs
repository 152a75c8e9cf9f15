//! Kernels, slices and products of many elements in a nest: loops over arrays, which `nest/vectors.rs` vectorizes.
//!
//! INVARIANT: a loop over a kernel's grid is free (parallel): each iteration writes its own elements, and reads no others of an array that is written.
use super::Cell;
use super::build::Builder;
use crate::kernels::lane::Lane;
use crate::kernels::{moves, pieces};
use crate::nest::{LoopKind, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use crate::tuning::KernelTuning;
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, NodeId, ReduceKind, order};

/// The parts of a kernel to compute, and where their elements are stored.
struct NestPart<'k> {
    kernel: &'k Kernel,
    outs: Vec<(NodeId, u32, Affine)>,
}

/// A reduction of a kernel.
struct NestReduction {
    node: usize,
    kind: ReduceKind,
    of: NodeId,
    dtype: DType,
}
impl NestReduction {
    /// Whether another order of the elements gives other bits.
    fn is_ordered(&self) -> bool {
        self.dtype.is_float() && matches!(self.kind.bin(), Some(f) if !matches!(f, Bin::Max | Bin::Min))
    }
    /// Whether vectors hold its sums.
    fn has_vectors(&self) -> bool {
        self.kind.bin().is_some()
            && matches!(self.dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U32 | DType::U64)
    }
}

impl Builder<'_, '_> {
    /// A loop of so many iterations; `f` gets the iteration's number and the carries, and returns
    /// the new carries.
    pub fn repeat(
        &mut self,
        kind: LoopKind,
        trip: NestTrip,
        inits: &[NestValue],
        f: &mut dyn FnMut(&mut Self, NestValue, &[NestValue]) -> Option<Vec<NestValue>>,
    ) -> Option<Vec<NestValue>> {
        let zero = self.index(0)?;
        if trip == NestTrip::Static(1) {
            return f(self, zero, inits);
        }
        self.begin_block();
        let mut carries = vec![];
        for init in inits.iter().chain([&zero]) {
            let dtype = self.nest.dtype(*init);
            let [slot, after] = [NestOp::Carry, NestOp::After].map(|op| self.nest.add(op, dtype, &[]));
            carries.push(NestCarry { init: *init, slot, next: slot, after });
        }
        let slots: Vec<NestValue> = carries.iter().map(|c| c.slot).collect();
        let (counter, carried) = slots.split_last()?;
        let mut next = f(self, *counter, carried)?;
        let one = self.index(1)?;
        next.push(self.bin(Bin::Add, DType::I64, *counter, one)?);
        carries.iter_mut().zip(next).for_each(|(c, n)| c.next = n);
        let body = self.end_block()?;
        let after = carries[..inits.len()].iter().map(|c| c.after).collect();
        self.statement(Stmt::Loop(Box::new(NestLoop { kind, trip, carries, body })))?;
        Some(after)
    }
    /// Loops over all indices below these sizes.
    pub fn for_each(
        &mut self,
        kind: LoopKind,
        sizes: &[usize],
        index: &mut Vec<NestValue>,
        f: &mut dyn FnMut(&mut Self, &[NestValue]) -> Option<()>,
    ) -> Option<()> {
        let Some(n) = sizes.get(index.len()) else { return f(self, &index[..]) };
        self.repeat(kind, NestTrip::Static(*n), &[], &mut |b, i, _| {
            index.push(i);
            b.for_each(kind, sizes, index, f)?;
            index.pop();
            Some(vec![])
        })?;
        Some(())
    }
    pub fn affine(&mut self, a: &Affine, index: &[NestValue]) -> Option<NestValue> {
        let mut sum = self.index(a.offset)?;
        for (k, i) in index.iter().enumerate() {
            if a.stride(k) != 0 {
                let stride = self.index(a.stride(k))?;
                let term = self.bin(Bin::Mul, DType::I64, *i, stride)?;
                sum = self.bin(Bin::Add, DType::I64, sum, term)?;
            }
        }
        Some(sum)
    }

    // ---- kernels ----

    /// A kernel as loops, its results in arrays.
    pub fn kernel_in_loops(&mut self, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let t = &self.c.target.tuning.scalars;
        if k.grid.size().saturating_mul(k.rdims.size().max(1)) > t.max_nest_elements || k.grid.size() == 0 {
            return None;
        }
        let reduces = k.nodes.iter().any(|n| matches!(n.1, Node::Reduce { .. }));
        if reduces {
            let dense = Affine::new(0, k.grid.strides().iter().map(|s| *s as i64));
            let all = k.outputs.iter().enumerate().map(|(j, o)| (*o, j as u32, dense.clone())).collect();
            return self.part(&NestPart { kernel: k, outs: all }, ins, outs);
        }
        let tuning = KernelTuning { min_piece_elements: t.min_nest_piece, ..self.c.target.tuning.kernels };
        for piece in pieces::pieces(k, &pieces::dense(&k.grid), &tuning, false) {
            let part = NestPart { kernel: piece.kernel.as_ref().unwrap_or(k), outs: piece.outs };
            self.part(&part, ins, outs)?;
        }
        Some(())
    }
    fn part(&mut self, p: &NestPart, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let k = p.kernel;
        let (merged, places);
        let (k, outs_of) = if let Some((kernel, of)) = merged_axes(k, &p.outs) {
            (merged, places) = (kernel, of);
            (&merged, &places)
        } else {
            (k, &p.outs)
        };
        if outs.iter().all(|o| self.is_array(self.c.cell(*o))) {
            return self.kernel_at(k, outs_of, (ins, outs), &mut vec![]);
        }
        let mut few: Vec<Vec<NestValue>> = vec![vec![]; outs.len()];
        // results in registers are no more than a loop's worth, and of one part
        if k.grid.size() > self.most() || outs_of.len() != outs.len() {
            return None;
        }
        for i in 0..k.grid.size() {
            let index: Vec<NestValue> =
                k.grid.unravel(i).iter().map(|x| self.index(*x as i64)).collect::<Option<_>>()?;
            for (out, value) in self.element(k, outs_of, (ins, outs), &index)? {
                few[out as usize].push(value);
            }
        }
        let in_registers = outs.iter().zip(few).filter(|(_, values)| !values.is_empty());
        in_registers.collect::<Vec<_>>().into_iter().try_for_each(|(out, values)| self.put(*out, &values))
    }
    /// Loops over the axes of a kernel's grid behind those that have an index, with results in arrays.
    pub fn kernel_at(
        &mut self,
        k: &Kernel,
        outs_of: &[(NodeId, u32, Affine)],
        (ins, outs): (&[SlotId], &[SlotId]),
        index: &mut Vec<NestValue>,
    ) -> Option<()> {
        self.for_each(LoopKind::Free, &k.grid, index, &mut |b, index| {
            b.element(k, outs_of, (ins, outs), index)?.is_empty().then_some(())
        })
    }
    /// Computes the results at one index, and stores those of arrays. Returns the others.
    fn element(
        &mut self,
        k: &Kernel,
        outs_of: &[(NodeId, u32, Affine)],
        (ins, outs): (&[SlotId], &[SlotId]),
        index: &[NestValue],
    ) -> Option<Vec<(u32, NestValue)>> {
        let reduced = terms(k);
        let once = k.needed(outs_of.iter().map(|o| o.0));
        let sums = if reduced.contains(&true) { self.sums(k, ins, index, &reduced)? } else { vec![] };
        let at = self.values_at(k, ins, index, &sums, &once)?;
        let mut few = vec![];
        for (node, out, place) in outs_of {
            let (cell, d) = (self.c.cell(outs[*out as usize]), k.nodes[*node as usize].0);
            if self.is_array(cell) {
                let place = self.affine(place, index)?;
                self.store(cell, place, at[*node as usize], d)?;
            } else {
                few.push((*out, at[*node as usize]));
            }
        }
        Some(few)
    }
    /// The reductions of a kernel at one index of its grid, by node.
    fn sums(
        &mut self,
        k: &Kernel,
        ins: &[SlotId],
        index: &[NestValue],
        reduced: &[bool],
    ) -> Option<Vec<(usize, NestValue)>> {
        let n = k.rdims.size();
        let t = &self.c.target.tuning.scalars;
        let all: Vec<NestReduction> = k
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(node, n)| match n.1 {
                Node::Reduce { kind, of } => Some(NestReduction { node, kind, of, dtype: n.0 }),
                _ => None,
            })
            .collect();
        if n <= t.max_unrolled_reduction {
            return self.unrolled_sums(k, ins, index, reduced, &all);
        }
        if all.iter().all(|r| !r.is_ordered()) {
            let is_little = n.saturating_mul(k.grid.size()) <= t.max_scalar_reduction;
            let has_vectors = k.rdims.len() == 1 && all.iter().all(NestReduction::has_vectors);
            if is_little && !has_vectors {
                return self.scalar_reductions(k, ins, index, reduced, &all);
            }
        }
        // no more than there are lanes, as which their results are folded
        let max_blocks = t.max_reduction_blocks.min(order::LANES);
        if k.rdims.len() != 1 || n.div_ceil(order::BLOCK) > max_blocks || !all.iter().all(NestReduction::has_vectors) {
            return None;
        }
        let mut inits = vec![];
        for r in &all {
            inits.push(self.constant(r.dtype, moves::lane_bits(r.kind.identity(r.dtype)?))?);
        }
        let mut blocks: Vec<Vec<NestValue>> = vec![];
        for first in (0..n).step_by(order::BLOCK) {
            let trip = NestTrip::Static(order::BLOCK.min(n - first));
            blocks.push(self.repeat(LoopKind::Fold, trip, &inits, &mut |b, r, carried| {
                let r = if first == 0 {
                    r
                } else {
                    let first = b.index(first as i64)?;
                    b.bin(Bin::Add, DType::I64, r, first)?
                };
                let index: Vec<NestValue> = index.iter().copied().chain([r]).collect();
                let at = b.values_at(k, ins, &index, &[], reduced)?;
                all.iter()
                    .zip(carried)
                    .map(|(r, sum)| b.apply(r.kind.bin()?, r.dtype, *sum, at[r.of as usize]))
                    .collect()
            })?);
        }
        // the results of blocks, as those of lanes
        let mut width = order::LANES / 2;
        while width > 0 {
            for j in 0..width.min(blocks.len().saturating_sub(width)) {
                for (i, r) in all.iter().enumerate() {
                    blocks[j][i] = self.apply(r.kind.bin()?, r.dtype, blocks[j][i], blocks[j + width][i])?;
                }
            }
            blocks.truncate(width);
            width /= 2;
        }
        let sums = blocks.swap_remove(0);
        let mut out = vec![];
        for (r, sum) in all.iter().zip(sums) {
            let settled = if r.dtype.is_float() { self.emit(NestOp::Settle, r.dtype, &[sum])? } else { sum };
            out.push((r.node, settled));
        }
        Some(out)
    }
    /// Reductions of few elements, which are written out one by one.
    fn unrolled_sums(
        &mut self,
        k: &Kernel,
        ins: &[SlotId],
        index: &[NestValue],
        reduced: &[bool],
        all: &[NestReduction],
    ) -> Option<Vec<(usize, NestValue)>> {
        let mut rows = vec![];
        for r in 0..k.rdims.size() {
            let mut whole = index.to_vec();
            for i in k.rdims.unravel(r).iter() {
                whole.push(self.index(*i as i64)?);
            }
            rows.push(self.values_at(k, ins, &whole, &[], reduced)?);
        }
        let mut out = vec![];
        for r in all {
            let of: Vec<NestValue> = rows.iter().map(|row| row[r.of as usize]).collect();
            out.push((r.node, self.reduce(r.kind, k.dtype(r.of), r.dtype, &of)?));
        }
        Some(out)
    }
    /// Reductions whose results do not depend on the order of the elements, one element after the other.
    fn scalar_reductions(
        &mut self,
        k: &Kernel,
        ins: &[SlotId],
        index: &[NestValue],
        reduced: &[bool],
        all: &[NestReduction],
    ) -> Option<Vec<(usize, NestValue)>> {
        let mut first = index.to_vec();
        first.resize(index.len() + k.rdims.len(), self.index(0)?);
        let at_first = self.values_at(k, ins, &first, &[], reduced)?;
        // of a position: the extreme and where it is
        let mut carried = vec![];
        for r in all {
            match r.kind.identity(r.dtype).filter(|_| r.kind.bin().is_some()) {
                Some(identity) => carried.push(self.constant(Lane::of(r.dtype).dtype(), moves::lane_bits(identity))?),
                None => carried.extend([at_first[r.of as usize], self.index(0)?]),
            }
        }
        let place = Affine::new(0, k.rdims.strides().iter().map(|s| *s as i64));
        let after = self.reduce_along(k, &mut vec![], &carried, &mut |b, along, carried| {
            let whole: Vec<NestValue> = index.iter().chain(along).copied().collect();
            let at = b.values_at(k, ins, &whole, &[], reduced)?;
            let (mut next, mut carried) = (vec![], carried.iter().copied());
            for r in all {
                let (of, best) = (at[r.of as usize], carried.next()?);
                match r.kind.bin() {
                    Some(f) => next.push(b.apply(f, r.dtype, best, of)?),
                    None => {
                        let here = b.affine(&place, along)?;
                        next.extend(b.better(r.kind, k.dtype(r.of), [best, carried.next()?], [of, here])?);
                    }
                }
            }
            Some(next)
        })?;
        let (mut out, mut after) = (vec![], after.into_iter());
        for r in all {
            let value = after.next()?;
            let value = match r.kind.bin() {
                Some(_) if r.dtype.is_float() => self.emit(NestOp::Settle, r.dtype, &[value])?,
                Some(_) => self.wrapped(value, r.dtype)?,
                None => {
                    let position = after.next()?;
                    self.converted(DType::I64, r.dtype, position)?
                }
            };
            out.push((r.node, value));
        }
        Some(out)
    }
    /// Loops over all reduced indices, in row-major order.
    fn reduce_along(
        &mut self,
        k: &Kernel,
        along: &mut Vec<NestValue>,
        carried: &[NestValue],
        f: &mut dyn FnMut(&mut Self, &[NestValue], &[NestValue]) -> Option<Vec<NestValue>>,
    ) -> Option<Vec<NestValue>> {
        let Some(n) = k.rdims.get(along.len()) else { return f(self, along, carried) };
        self.repeat(LoopKind::Sequential, NestTrip::Static(*n), carried, &mut |b, i, carried| {
            along.push(i);
            let next = b.reduce_along(k, along, carried, f);
            along.pop();
            next
        })
    }
    /// The requested nodes at an index that is known only at run time.
    fn values_at(
        &mut self,
        k: &Kernel,
        ins: &[SlotId],
        index: &[NestValue],
        sums: &[(usize, NestValue)],
        wanted: &[bool],
    ) -> Option<Vec<NestValue>> {
        let mut at: Vec<NestValue> = vec![];
        for (n, (d, node)) in k.nodes.iter().enumerate() {
            at.push(match node {
                _ if !wanted[n] => 0,
                Node::Reduce { .. } => sums.iter().find(|s| s.0 == n)?.1,
                Node::Index(a) => {
                    let x = self.affine(a, index)?;
                    self.converted(DType::I64, *d, x)?
                }
                Node::Load(a) => {
                    if !a.guards.is_empty() || !self.holds(*d) {
                        return None;
                    }
                    let slot = ins[a.input as usize];
                    let cell = self.c.cell(slot);
                    if self.is_array(cell) {
                        let place = self.affine(&a.at, index)?;
                        self.load(cell, place, *d)?
                    } else {
                        if (0..index.len()).any(|i| a.at.stride(i) != 0) {
                            return None;
                        }
                        let offset = usize::try_from(a.at.offset).ok()?;
                        self.get_of(slot, offset * d.size(), *d)?
                    }
                }
                _ => self.node(k, *d, node, &[], ins, &at)?,
            });
        }
        Some(at)
    }

    // ---- windows ----

    /// All elements of a slot to another.
    pub fn copied(&mut self, from: Cell, to: Cell, n: usize, d: DType) -> Option<()> {
        if from == to {
            return Some(());
        }
        self.for_each(LoopKind::Free, &[n], &mut vec![], &mut |b, index| {
            let v = b.load(from, index[0], d)?;
            b.store(to, index[0], v, d)
        })
    }
    /// A window of these sizes: `f` gets the places of its elements in the array, where `first` is that of the first one, and in the window.
    pub fn window(
        &mut self,
        sizes: &[usize],
        [whole, part]: [&Affine; 2],
        first: NestValue,
        f: &mut dyn FnMut(&mut Self, NestValue, NestValue) -> Option<()>,
    ) -> Option<()> {
        if sizes.iter().product::<usize>() > self.c.target.tuning.scalars.max_nest_elements {
            return None;
        }
        let (sizes, mut both) = merged(sizes, &[whole, part]);
        let (part, whole) = (both.pop()?, both.pop()?);
        self.for_each(LoopKind::Free, &sizes, &mut vec![], &mut |b, index| {
            let (at, within) = (b.affine(&whole, index)?, b.affine(&part, index)?);
            let at = b.bin(Bin::Add, DType::I64, first, at)?;
            f(b, at, within)
        })
    }

    // ---- products ----

    /// Matrices by vectors, in the order of `routines/vector.rs`: `nest/vectors.rs` goes along rows or along columns, as their elements lie.
    pub fn matrix_vector(&mut self, d: &Dot, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let t = &self.c.target.tuning;
        let plain = d.dtype == d.out && matches!(d.dtype, DType::F32 | DType::F64);
        let is_rows = plain && (d.m == 1) != (d.n == 1) && d.m * d.n * d.k > t.dot.max_loop_work;
        if !is_rows || d.b * d.m * d.n * d.k > t.scalars.max_nest_elements {
            return None;
        }
        // the matrix: its operand, strides from one to the next, from row to row and along one; the vector: its strides
        let (matrix, [next, row, along], [other, step], rows) = match d.n {
            1 => (0, d.lhs, [d.rhs[0], d.rhs[1]], d.m),
            _ => (1, [d.rhs[0], d.rhs[2], d.rhs[1]], [d.lhs[0], d.lhs[2]], d.n),
        };
        let (a, v, out) = (self.c.cell(ins[matrix]), self.c.cell(ins[1 - matrix]), self.c.cell(outs[0]));
        if ![a, v, out].into_iter().all(|cell| self.is_array(cell)) {
            return None;
        }
        let (of_matrix, of_vector) = (Affine::new(0, [next, row, along]), Affine::new(0, [other, 0, step]));
        let of_result = Affine::new(0, [rows as i64, 1]);
        self.for_each(LoopKind::Free, &[d.b, rows], &mut vec![], &mut |b, index| {
            let zero = b.constant(d.dtype, 0)?;
            let sum = b.repeat(LoopKind::Fold, NestTrip::Static(d.k), &[zero], &mut |b, p, carried| {
                let index = [index[0], index[1], p];
                let (x, y) = (b.affine(&of_matrix, &index)?, b.affine(&of_vector, &index)?);
                let (x, y) = (b.load(a, x, d.dtype)?, b.load(v, y, d.dtype)?);
                let product = b.bin(Bin::Mul, d.dtype, x, y)?;
                Some(vec![b.bin(Bin::Add, d.dtype, carried[0], product)?])
            })?;
            let place = b.affine(&of_result, index)?;
            b.store(out, place, sum[0], d.dtype)
        })
    }
}

/// Sizes without axes of one element, and with neighbours made one where all of these forms go through both as through one.
fn merged(sizes: &[usize], forms: &[&Affine]) -> (Vec<usize>, Vec<Affine>) {
    let mut kept: Vec<usize> = vec![];
    let mut out: Vec<usize> = vec![];
    for axis in (0..sizes.len()).filter(|k| sizes[*k] != 1) {
        let follows = |last: usize| {
            let n = sizes[axis] as i64;
            forms.iter().all(|f| f.stride(last) == f.stride(axis) * n)
        };
        match kept.last_mut() {
            Some(last) if follows(*last) => {
                *last = axis;
                *out.last_mut().expect("as many sizes as axes") *= sizes[axis];
            }
            _ => {
                kept.push(axis);
                out.push(sizes[axis]);
            }
        }
    }
    let forms = forms.iter().map(|f| Affine::new(f.offset, kept.iter().map(|k| f.stride(*k)))).collect();
    (out, forms)
}
/// The nodes that reductions are of, and those that these need.
pub fn terms(k: &Kernel) -> Vec<bool> {
    k.needed(k.nodes.iter().filter_map(|n| if let Node::Reduce { of, .. } = n.1 { Some(of) } else { None }))
}
/// A kernel with neighbouring axes made one, and where its results go.
pub fn merged_axes(k: &Kernel, outs: &[(NodeId, u32, Affine)]) -> Option<(Kernel, Vec<(NodeId, u32, Affine)>)> {
    let mut forms: Vec<&Affine> = vec![];
    for (_, node) in &k.nodes {
        match node {
            Node::Index(a) => forms.push(a),
            Node::Load(a) if a.guards.is_empty() => forms.push(&a.at),
            Node::Load(_) => return None,
            _ => (),
        }
    }
    let loads = forms.len();
    forms.extend(outs.iter().map(|o| &o.2));
    let (grid, by_grid) = merged(&k.grid, &forms);
    let ends = k.grid.len()..k.grid.len() + k.rdims.len();
    let tails: Vec<Affine> = forms[..loads].iter().map(|f| Affine::new(0, ends.clone().map(|a| f.stride(a)))).collect();
    let (rdims, along) = merged(&k.rdims, &tails.iter().collect::<Vec<_>>());
    let mut new = k.clone();
    (new.grid, new.rdims) = (grid.iter().copied().collect(), rdims.iter().copied().collect());
    let mut at = by_grid.iter().zip(&along).map(|(g, r)| {
        let mut form = g.clone();
        form.strides.resize(grid.len(), 0);
        form.strides.extend(r.strides.iter().copied());
        form
    });
    for (_, node) in &mut new.nodes {
        match node {
            Node::Index(a) => *a = at.next()?,
            Node::Load(a) => a.at = at.next()?,
            _ => (),
        }
    }
    let outs = outs.iter().zip(&by_grid[loads..]).map(|(o, f)| (o.0, o.1, f.clone())).collect();
    Some((new, outs))
}
