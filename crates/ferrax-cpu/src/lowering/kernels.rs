//! Kernels and products of few elements in a nest, unrolled element by element.
//!
//! INVARIANT: reductions and products add in the order of their kernel or routine.
use super::build::{Builder, Style};
use super::kernel_nanos;
use crate::kernels::unroll::fold_lanes;
use crate::kernels::{moves, pieces};
use crate::nest::{NestOp, NestValue};
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Scalar, Un, order};

impl Builder<'_, '_> {
    pub fn kernel(&mut self, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let n = k.grid.size();
        let nanos = self.c.target.tuning.scalars.nanos;
        let operations = n * k.rdims.size().max(1) * k.nodes.len();
        let work = match self.style {
            Style::Rows | Style::Scalars => nanos[1] * operations as f64,
            // the whole loop is weighed
            Style::Interpreted => 0.0,
            Style::Block => nanos[0] * (operations + n * (ins.len() + outs.len())) as f64,
        };
        let is_small = self.is_small(k);
        if self.style == Style::Rows && !is_small {
            return self.kernel_in_loops(k, ins, outs);
        }
        if !is_small || self.style != Style::Rows && n > 1 && work > kernel_nanos(k) {
            return None;
        }
        let reduced =
            k.needed(k.nodes.iter().filter_map(|n| if let Node::Reduce { of, .. } = n.1 { Some(of) } else { None }));
        let once = k.needed(k.outputs.iter().copied());
        let mut results: Vec<Vec<NestValue>> = vec![vec![]; k.outputs.len()];
        for i in 0..n {
            let index = k.grid.unravel(i);
            if n > 1 && k.rdims.is_empty() {
                // A choice by an index is decided here.
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
    pub fn product(&mut self, d: &Dot, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let plain = d.dtype == d.out && matches!(d.dtype, DType::F32 | DType::F64);
        if !self.is_written_out(d) {
            return self.matrix_vector(d, ins, outs);
        }
        let t = &self.c.target.tuning;
        let is_block = self.style == Style::Block;
        let most = if is_block { t.scalars.max_block_product } else { t.dot.max_loop_work };
        if !plain || self.most() == 1 || d.b != 1 || d.m * d.n > t.scalars.max_slot_elements || d.m * d.n * d.k > most {
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
    /// The requested nodes at one index; a reduction goes over `rows`, the values at each reduced
    /// index.
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
                    let dtype = k.dtype(*of);
                    let of: Vec<NestValue> = rows.iter().map(|row| row[*of as usize]).collect();
                    self.reduce(*kind, dtype, *d, &of)?
                }
                _ => self.node(k, *d, node, index, ins, &at)?,
            });
        }
        Some(at)
    }
    /// In the order of [`order`], for at most as many elements as there are lanes; `of` has this dtype, the result has dtype `d`.
    pub fn reduce(&mut self, kind: ReduceKind, dtype: DType, d: DType, of: &[NestValue]) -> Option<NestValue> {
        let Some(f) = kind.bin() else {
            let mut best = [*of.first()?, self.index(0)?];
            for (i, x) in of.iter().enumerate().skip(1) {
                let here = self.index(i as i64)?;
                best = self.better(kind, dtype, best, [*x, here])?;
            }
            return self.converted(DType::I64, d, best[1]);
        };
        let identity = self.constant(d, moves::lane_bits(kind.identity(d)?))?;
        if of.is_empty() || of.len() > order::LANES {
            return of.is_empty().then_some(identity);
        }
        let lanes: Vec<NestValue> = of.iter().map(|x| self.apply(f, d, identity, *x)).collect::<Option<_>>()?;
        let sum = fold_lanes(lanes, |a, b| self.apply(f, d, a, b))?;
        let settled = if d.is_float() { self.emit(NestOp::Settle, d, &[sum])? } else { sum };
        self.wrapped(settled, d)
    }
    /// The better of two elements with their positions: the greatest or least, the first of equals, the first nan if there is one.
    pub fn better(
        &mut self,
        kind: ReduceKind,
        d: DType,
        best: [NestValue; 2],
        next: [NestValue; 2],
    ) -> Option<[NestValue; 2]> {
        let is_max = kind == ReduceKind::ArgMax;
        let is_better = if d.is_float() {
            let is_worse = self.apply(if is_max { Bin::Le } else { Bin::Ge }, d, next[0], best[0])?;
            let is_better = self.emit(NestOp::Un(Un::Not), DType::Bool, &[is_worse])?;
            let is_number = self.apply(Bin::Eq, d, best[0], best[0])?;
            self.bin(Bin::And, DType::Bool, is_better, is_number)?
        } else {
            self.apply(if is_max { Bin::Gt } else { Bin::Lt }, d, next[0], best[0])?
        };
        let value = self.emit(NestOp::Select, self.nest.dtype(best[0]), &[is_better, next[0], best[0]])?;
        let position = self.emit(NestOp::Select, DType::I64, &[is_better, next[1], best[1]])?;
        Some([value, position])
    }
    pub fn node(
        &mut self,
        k: &Kernel,
        d: DType,
        node: &Node,
        index: &[usize],
        ins: &[SlotId],
        at: &[NestValue],
    ) -> Option<NestValue> {
        let of = |n: &u32| at[*n as usize];
        if !self.holds(d) {
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
}
