//! From nodes to a program: merging loop dimensions, choosing how each load is done, allocating registers.
//!
//! INVARIANT: an instruction reads only what earlier ones, the setup or the caller have written; a register has one value at a time.
use super::super::block::{self, BlockFn, choose};
use super::super::lane::Lane;
use super::super::{moves, scalar};
use super::nest::{is_counted, is_for_code, is_part_of_vector, is_shared_row, is_strided, merged_dims};
use super::patterns::{Rotation, Rounds, WordPatterns};
use super::{Between, Buf, DIRECT, Direct, Indices, Ins, Loads, Op, Setup, Spec, Stores, TileProgram};
use crate::instructions::Function;
use crate::tier::Tier;
use ferrax_kernel::{Access, Affine, Bin, DType, Error, Kernel, Node, NodeId, Res, Scalar, Un};
use smallvec::SmallVec;

pub(super) struct TileBuilder<'a> {
    pub(super) spec: &'a Spec<'a>,
    pub(super) dims: SmallVec<[usize; 4]>,
    /// For each merged dimension, the domain dimension whose stride it has.
    pub(super) innermost: SmallVec<[usize; 4]>,
    pub(super) total: usize,
    /// Whether native code makes each row a part of one vector: then it handles strided elements.
    pub(super) masked: bool,
    pub(super) by_rows: bool,
    pub(super) directs: Vec<Direct>,
    pub(super) setup: Vec<Setup>,
    pub(super) body: Vec<Ins>,
    pub(super) loads: Vec<Loads>,
    pub(super) stores: Vec<Stores>,
    pub(super) indices: Vec<Indices>,
    /// For each virtual register, whether it is computed once, and whether its lanes are bytes.
    pub(super) uniform: Vec<bool>,
    pub(super) of_bytes: Vec<bool>,
    pub(super) wide: usize,
    pub(super) cost: f64,
    /// The share of it that native code would not shorten.
    pub(super) long: f64,
    /// Registers that became outputs.
    pub(super) renamed: Vec<(Op, Op)>,
}

enum Stepping {
    /// The same everywhere.
    Still(i64),
    /// Its offset + position.
    Straight,
    Other(SmallVec<[i64; 4]>),
}

impl TileProgram {
    /// Also gives the operands of `keep` and of `given`.
    pub fn compile(spec: &Spec) -> Res<(TileProgram, Vec<u16>, Vec<u16>)> {
        let t = &spec.target.tuning.kernels;
        let shortest = if spec.target.tier == Tier::Avx512 { t.min_masked_row } else { t.min_short_row };
        let by_short_rows = Self::compile_by_rows(spec, shortest.min(t.min_native_row))?;
        let p = &by_short_rows.0;
        let is_short = p.by_rows && p.dims.len() > 1 && p.row() < t.min_native_row;
        if is_short && !p.becomes_rows_of_code() {
            Self::compile_by_rows(spec, t.min_native_row)
        } else {
            Ok(by_short_rows)
        }
    }
    /// The same, where code may take rows from `row_in_code` on.
    fn compile_by_rows(spec: &Spec, row_in_code: usize) -> Res<(TileProgram, Vec<u16>, Vec<u16>)> {
        let k = spec.kernel;
        let mut needed = vec![false; k.nodes.len()];
        for n in spec.outs.iter().map(|o| o.0).chain(spec.keep.iter().copied()) {
            needed[n as usize] = true;
        }
        let mut turns = WordPatterns::find(spec);
        for n in (0..k.nodes.len()).rev() {
            if needed[n] && !spec.given.contains(&(n as u32)) {
                turns.operands(n).into_iter().for_each(|o| needed[o as usize] = true);
            }
        }
        let (mut dims, mut innermost) = merged_dims(spec, &needed);
        let total = dims.iter().product();
        // One dimension at least, so that every access has a stride.
        if dims.is_empty() {
            dims.push(1);
            innermost.push(usize::MAX);
        }
        let t = &spec.target.tuning.kernels;
        let fits = is_part_of_vector(spec, &needed, &dims, &innermost);
        let is_in_code = is_for_code(spec, &needed, &dims, &innermost, fits);
        let row = if is_in_code { row_in_code } else { t.min_row };
        let by_rows = !spec.places.is_empty() && (dims.len() == 1 || dims[dims.len() - 1] >= row);
        let masked = fits && is_in_code && by_rows;
        let mut b = TileBuilder {
            spec,
            dims,
            innermost,
            total,
            masked,
            by_rows,
            directs: vec![],
            setup: vec![],
            body: vec![],
            loads: vec![],
            stores: vec![],
            indices: vec![],
            uniform: vec![],
            of_bytes: vec![],
            wide: 1,
            cost: 0.0,
            long: 0.0,
            renamed: vec![],
        };
        let mut value: Vec<Op> = vec![u16::MAX; k.nodes.len()];
        let mut given = vec![];
        for n in spec.given {
            let v = b.fresh(false, Lane::of(k.dtype(*n)).size())?;
            value[*n as usize] = v;
            given.push(v);
        }
        let is_raw = |n: usize| -> bool {
            // A narrow element that is only moved need not become a lane.
            let (d, node) = &k.nodes[n];
            !Lane::of(*d).is_storage_of(*d)
                && matches!(node, Node::Load(_))
                && !spec.keep.contains(&(n as u32))
                && spec.outs.iter().filter(|o| o.0 as usize == n).count() == 1
                && !k.nodes.iter().enumerate().any(|(m, x)| needed[m] && x.1.operands().contains(&(n as u32)))
        };
        let mut raw_done = vec![];
        for n in 0..k.nodes.len() {
            if let Some(r) = turns.rounds_from(n) {
                let (x, y) = b.rounds(r, &value)?;
                value[r.ends.0 as usize] = x;
                value[r.ends.1 as usize] = y;
                continue;
            }
            if needed[n] && value[n] == u16::MAX {
                if !spec.aliased && is_raw(n) && b.raw_move(n as u32)? {
                    raw_done.push(n as u32);
                    continue;
                }
                value[n] = match turns.turn(n) {
                    Some(t) => b.turn(t, &value)?,
                    None => b.node(n, &value)?,
                };
            }
        }
        let keep: Vec<Op> = spec.keep.iter().map(|n| value[*n as usize]).collect();
        // Registers that the caller reads or fills keep their place.
        let fixed: Vec<Op> = keep.iter().chain(&given).copied().collect();
        let mut out = 0;
        while out < spec.outs.len() {
            let interleaved = b.interleaved(out);
            if interleaved > 1 {
                b.interleave(out, interleaved, &value);
            } else if !raw_done.contains(&spec.outs[out].0) {
                b.output(out, value[spec.outs[out].0 as usize], &fixed);
            }
            out += interleaved;
        }
        b.finish(keep, given)
    }
}

/// The node whose value this one is: conversions to the dtype that is there already do nothing.
fn unconverted(k: &Kernel, n: NodeId) -> NodeId {
    match k.nodes[n as usize].1 {
        Node::Convert(x) if k.dtype(x) == k.dtype(n) => unconverted(k, x),
        _ => n,
    }
}

impl TileBuilder<'_> {
    fn fresh(&mut self, uniform: bool, bytes: usize) -> Res<Op> {
        if self.uniform.len() + 1 >= DIRECT as usize {
            return Err(Error::Unsupported("a kernel of more than 32,000 values".into()));
        }
        self.uniform.push(uniform);
        self.of_bytes.push(bytes == 1);
        self.wide = self.wide.max(bytes);
        Ok(self.uniform.len() as u16 - 1)
    }
    fn direct(&mut self, d: Direct) -> Op {
        self.directs.push(d);
        DIRECT | (self.directs.len() as u16 - 1)
    }
    fn is_uniform(&self, o: Op) -> bool {
        o & DIRECT == 0 && self.uniform[o as usize]
    }
    /// Whether positions are `step` elements apart.
    fn is_straight(&self, strides: &[i64], step: i64) -> bool {
        let mut straight = step;
        (0..self.dims.len()).rev().all(|g| {
            let ok = strides[g] == straight || self.dims[g] == 1;
            straight = straight.saturating_mul(self.dims[g] as i64);
            ok
        })
    }
    fn walk(&self, a: &Affine) -> Stepping {
        let strides: SmallVec<[i64; 4]> = self.innermost.iter().map(|k| a.stride(*k)).collect();
        if self.is_straight(&strides, 1) {
            Stepping::Straight
        } else if strides.iter().all(|s| *s == 0) {
            Stepping::Still(a.offset)
        } else {
            Stepping::Other(strides)
        }
    }
    fn strides(&self, a: &Affine) -> SmallVec<[i64; 4]> {
        match self.walk(a) {
            Stepping::Other(s) => s,
            Stepping::Still(_) => SmallVec::from_elem(0, self.dims.len()),
            Stepping::Straight => {
                let mut s: SmallVec<[i64; 4]> = SmallVec::from_elem(1, self.dims.len());
                for k in (0..s.len().saturating_sub(1)).rev() {
                    s[k] = s[k + 1] * self.dims[k + 1] as i64;
                }
                s
            }
        }
    }
    /// The pairs that these elements are the first of, or the second, if all of the pairs lie inside the operand.
    fn pairs(&mut self, buf: Buf, a: &Access) -> Option<(Op, bool)> {
        let (Buf::In(k), size) = (buf, a.fill.dtype.size()) else { return None };
        if size < 4 || self.masked {
            return None;
        }
        let (lo, hi) = a.at.range(&self.positions_of_loops())?;
        let second = hi + 1 >= self.spec.kernel.inputs[k as usize].1 as i64;
        if second && lo < 1 {
            return None;
        }
        let mut d = self.in_place(buf, size, &a.at, 2)?;
        d.offset -= second as i64;
        let there = self.directs.iter().position(|e| {
            matches!(e.buf, Buf::In(of) if of == k) && (e.offset, e.step, &e.strides) == (d.offset, d.step, &d.strides)
        });
        let op = there.map_or_else(|| self.direct(d), |at| DIRECT | at as u16);
        Some((op, second))
    }
    /// The domain, with one position where nothing loops.
    fn positions_of_loops(&self) -> SmallVec<[usize; 6]> {
        let domain = self.spec.kernel.domain();
        (0..domain.len()).map(|k| if self.spec.loops.contains(&k) { domain[k] } else { 1 }).collect()
    }
    /// A buffer's elements used in place, if they lie one after the other (`step` 1) or evenly, as far as tiles go.
    fn in_place(&self, buf: Buf, size: usize, a: &Affine, step: i64) -> Option<Direct> {
        let strides = self.strides(a);
        let fits = match self.by_rows {
            true => strides.last() == Some(&step),
            false => self.is_straight(&strides, step),
        };
        fits.then_some(Direct { buf, offset: a.offset, size, step: step as usize, strides })
    }
    fn out_direct(&self, out: usize) -> Option<Direct> {
        let (n, to) = self.spec.outs[out];
        let size = self.spec.kernel.dtype(n).size();
        match self.spec.places.get(out) {
            Some(place) => self.in_place(Buf::Out(to), size, place, 1),
            None => Some(Direct { buf: Buf::Out(to), offset: 0, size, step: 1, strides: SmallVec::new() }),
        }
    }
    /// How many outputs from this one on lie in turn in one buffer, where a call can interleave them.
    fn interleaved(&self, out: usize) -> usize {
        let (outs, places) = (self.spec.outs, self.spec.places);
        let Some(first) = places.get(out).filter(|_| self.by_rows && !self.masked) else { return 1 };
        let step = *self.strides(first).last().unwrap_or(&0);
        let follows = |j: usize| {
            outs.get(out + j).is_some_and(|o| o.1 == outs[out].1)
                && places[out + j].offset == first.offset + j as i64
                && places[out + j].strides == first.strides
        };
        if (2..=3).contains(&step) && (1..step as usize).all(follows) { step as usize } else { 1 }
    }
    fn interleave(&mut self, out: usize, n: usize, value: &[Op]) {
        let (node, to) = self.spec.outs[out];
        let dtype = self.spec.kernel.dtype(node);
        let place = self.spec.places[out];
        let Some(d) = self.in_place(Buf::Out(to), dtype.size(), place, n as i64) else {
            unreachable!("seen to be even")
        };
        let d = self.direct(d);
        let of = |j: usize| {
            let v = value[self.spec.outs[out + j].0 as usize];
            self.renamed.iter().find(|r| r.0 == v).map_or(v, |r| r.1)
        };
        let (a, b, c) = (of(0), of(1), of(n - 1));
        self.cost += 0.05 * (n * dtype.size()) as f64;
        let what = (n == 2).then_some(Function::Interleave(dtype));
        self.body.push(Ins::Call { f: moves::interleave(dtype, n, self.spec.target.tier), d, a, b, c, what });
    }
    /// A call, in the setup where all its operands are there.
    fn call(&mut self, f: BlockFn, what: Option<Function>, bytes: usize, ops: &[Op], cost: f64) -> Res<Op> {
        let uniform = ops.iter().all(|o| self.is_uniform(*o));
        let d = self.fresh(uniform, bytes)?;
        let (a, b, c) = (ops[0], *ops.get(1).unwrap_or(&ops[0]), *ops.get(2).unwrap_or(&ops[0]));
        if uniform {
            self.setup.push(Setup::Call { f, d, a, b, c });
        } else {
            self.body.push(Ins::Call { f, d, a, b, c, what });
            self.cost += cost;
            // a long function's loop is a good one already
            self.long += what.map_or(cost, |f| if f.is_long() { 0.7 * cost } else { 0.0 });
        }
        Ok(d)
    }
    /// Several calls in turn; `what` is the function that they compute together.
    fn calls(&mut self, fs: [Option<BlockFn>; 3], what: Option<Function>, bytes: usize, op: Op, cost: f64) -> Res<Op> {
        let what = what.filter(|_| fs[1].is_none());
        fs.into_iter().flatten().try_fold(op, |x, f| self.call(f, what, bytes, &[x], cost))
    }
    fn constant(&mut self, bytes: usize, bits: u64) -> Res<Op> {
        let same = self.setup.iter().find_map(|s| match *s {
            Setup::Fill { d, bytes: w, bits: x } if (w, x) == (bytes, bits) => Some(d),
            _ => None,
        });
        if let Some(d) = same {
            return Ok(d);
        }
        let d = self.fresh(true, bytes)?;
        self.setup.push(Setup::Fill { d, bytes, bits });
        Ok(d)
    }
    fn turn(&mut self, t: &Rotation, value: &[Op]) -> Res<Op> {
        let by = self.constant(4, t.by as u64)?;
        let of = value[t.of as usize];
        match t.with {
            Some(w) => {
                let f = scalar::rotate_xor(self.spec.target.tier);
                self.call(f, Some(Function::RotateXor), 4, &[of, value[w as usize], by], 0.1)
            }
            None => self.call(scalar::rotate(self.spec.target.tier), Some(Function::Rotate), 4, &[of, by], 0.1),
        }
    }
    /// The two words after some rounds.
    fn rounds(&mut self, r: &Rounds, value: &[Op]) -> Res<(Op, Op)> {
        let (d, e) = (self.fresh(false, 4)?, self.fresh(false, 4)?);
        let f = block::rounds(r.by.len(), self.spec.target.tier);
        let by = r.by.iter().rev().fold(0, |all, by| all << 8 | *by as u32);
        self.body.push(Ins::Rounds { f, d, e, a: value[r.from.0 as usize], b: value[r.from.1 as usize], by });
        self.cost += 0.1 * r.by.len() as f64;
        Ok((d, e))
    }
    fn node(&mut self, n: usize, value: &[Op]) -> Res<Op> {
        let (spec, tier) = (self.spec, self.spec.target.tier);
        let k = spec.kernel;
        let (dtype, node) = &k.nodes[n];
        let (dtype, lane) = (*dtype, Lane::of(*dtype));
        let bytes = lane.size();
        let at = |o: NodeId| value[o as usize];
        let undefined = |what: &str| Error::Invalid(format!("{what} is not defined for {dtype}"));
        let simple = 0.02 * bytes as f64;
        Ok(match node {
            Node::Const(s) => self.constant(bytes, moves::lane_bits(*s))?,
            Node::Index(a) if is_counted(k, dtype, a) => {
                let fill = Scalar::from_f64(lane.dtype(), 0.0);
                let numbers = Access { input: 0, at: a.clone(), guards: SmallVec::new(), fill };
                let d = self.load(Buf::Counted(lane), &numbers, false)?;
                self.canonical(dtype, d)?
            }
            Node::Index(a) => {
                let d = self.fresh(false, bytes)?;
                let strides = self.strides(a);
                self.body.push(Ins::Index { index: self.indices.len() as u32, d });
                self.indices.push(Indices {
                    f: moves::index(lane, tier),
                    offset: a.offset,
                    strides,
                    lane_bytes: bytes,
                });
                self.cost += 0.1;
                self.canonical(dtype, d)?
            }
            Node::Load(a) => self.load_node(n, a)?,
            Node::Un(f, x) => {
                let g = scalar::un(*f, k.dtype(*x), tier).ok_or_else(|| undefined(f.name()))?;
                let what = Some(Function::un(*f, k.dtype(*x)));
                let d = self.call(g, what, bytes, &[at(*x)], un_cost(*f).max(simple))?;
                let keeps = matches!(f, Un::IsFinite | Un::Popcnt | Un::Clz | Un::Floor | Un::Ceil | Un::Trunc);
                if keeps || scalar::is_exact(*f, dtype) { d } else { self.canonical(dtype, d)? }
            }
            Node::Bin(f, x, y) => {
                let of = k.dtype(*x);
                let g = scalar::bin(*f, of, tier).ok_or_else(|| undefined(f.name()))?;
                let what = Function::bin(*f, of, k.known(*y));
                let d = self.call(g, Some(what), bytes, &[at(*x), at(*y)], bin_cost(*f, of).max(simple))?;
                let keeps = f.is_comparison()
                    || matches!(f, Bin::Max | Bin::Min | Bin::And | Bin::Or | Bin::Xor | Bin::NextAfter);
                if keeps { d } else { self.canonical(dtype, d)? }
            }
            Node::Select { p, t, f } => {
                let what = Function::Select(bytes);
                self.call(choose(bytes, tier), Some(what), bytes, &[at(*p), at(*t), at(*f)], simple)?
            }
            Node::Convert(x) if k.dtype(*x) == dtype => at(*x),
            Node::Convert(x) => {
                let what = Function::Convert(k.dtype(*x), dtype);
                self.call(scalar::convert(k.dtype(*x), dtype, tier), Some(what), bytes, &[at(*x)], 2.0 * simple)?
            }
            Node::Bitcast(x) => {
                let fs = scalar::bitcast(k.dtype(*x), dtype, tier);
                let what = (dtype.size() >= 4).then_some(Function::Copy(dtype));
                self.calls(fs, what, 8, at(*x), simple)?
            }
            Node::Round { of, exponent, mantissa } => {
                let words = self.constant(8, *exponent as u64 | (*mantissa as u64) << 32)?;
                let d = self.call(scalar::round(dtype, tier), None, bytes, &[at(*of), words], 0.2)?;
                self.canonical(dtype, d)?
            }
            Node::Reduce { .. } => return Err(Error::Invalid(format!("node {n} reduces where nothing is reduced"))),
        })
    }
    fn canonical(&mut self, d: DType, op: Op) -> Res<Op> {
        match scalar::canonical(d, self.spec.target.tier) {
            Some(f) => self.call(f, Some(Function::Narrow(d)), 4, &[op], 0.1),
            None => Ok(op),
        }
    }
    /// Whether guards let every position through, none, or it depends.
    fn guards_pass(&self, a: &Access) -> Option<bool> {
        let dims = self.positions_of_loops();
        let mut all = true;
        for g in &a.guards {
            let (lo, hi) = g.at.range(&dims)?;
            if hi < g.lo || lo >= g.hi {
                return Some(false);
            }
            all &= lo >= g.lo && hi < g.hi;
        }
        all.then_some(true)
    }
    fn load_node(&mut self, n: usize, a: &Access) -> Res<Op> {
        // In place, an output that is merely an input must be read before anything is written.
        let k = self.spec.kernel;
        let is_moved = self.spec.aliased && self.spec.outs.iter().any(|o| unconverted(k, o.0) as usize == n);
        self.load(Buf::In(a.input), a, is_moved)
    }
    fn load(&mut self, buf: Buf, a: &Access, is_moved: bool) -> Res<Op> {
        let tier = self.spec.target.tier;
        let dtype = a.fill.dtype;
        let lane = Lane::of(dtype);
        let pass = self.guards_pass(a);
        if pass == Some(false) && self.total > 0 {
            return self.constant(lane.size(), moves::lane_bits(a.fill));
        }
        if pass == Some(true)
            && lane.is_storage_of(dtype)
            && !is_moved
            && let Some(d) = self.in_place(buf, dtype.size(), &a.at, 1)
        {
            self.cost += 0.025 * dtype.size() as f64;
            return Ok(self.direct(d));
        }
        if pass == Some(true)
            && !lane.is_storage_of(dtype)
            && !is_moved
            && let Some(d) = self.in_place(buf, dtype.size(), &a.at, 1)
        {
            let d = self.direct(d);
            return self.call(moves::widen(dtype, tier), Some(Function::Widen(dtype)), lane.size(), &[d], 0.1);
        }
        if pass == Some(true)
            && lane.is_storage_of(dtype)
            && !is_moved
            && let Some((d, second)) = self.pairs(buf, a)
        {
            let what = Function::Plane { of: dtype, second };
            return self.call(moves::plane(dtype.size(), second, tier), Some(what), lane.size(), &[d], 0.15);
        }
        let strides = self.strides(&a.at);
        if pass == Some(true)
            && lane.is_storage_of(dtype)
            && !is_moved
            && self.by_rows
            && !self.spec.aliased
            && is_shared_row(&self.dims, &strides, &self.spec.target.tuning.kernels)
        {
            let (row, last) = (self.dims[self.dims.len() - 1], strides.len() - 1);
            let (d, f, size) = (self.fresh(true, lane.size())?, moves::load(dtype, tier), dtype.size());
            self.setup.push(Setup::Row { d, f, buf, size, offset: a.at.offset, stride: strides[last], n: row });
            let strides = (0..=last).map(|k| (k == last) as i64).collect();
            return Ok(self.direct(Direct { buf: Buf::Row(d), offset: 0, size, step: 1, strides }));
        }
        match self.walk(&a.at) {
            Stepping::Still(offset) if pass == Some(true) && self.total > 0 => {
                let d = self.fresh(true, lane.size())?;
                self.setup.push(Setup::Splat { d, f: moves::load(dtype, tier), buf, size: dtype.size(), offset });
                Ok(d)
            }
            _ => {
                let d = self.fresh(false, lane.size())?;
                self.general(
                    (buf, a),
                    d,
                    moves::load(dtype, tier),
                    lane.size(),
                    moves::lane_bits(a.fill),
                    pass,
                    lane.is_storage_of(dtype) && !is_moved,
                );
                Ok(d)
            }
        }
    }
    fn general(
        &mut self,
        (buf, a): (Buf, &Access),
        d: Op,
        f: moves::LoadFn,
        lane_bytes: usize,
        fill: u64,
        pass: Option<bool>,
        is_storage: bool,
    ) {
        let strides = self.strides(&a.at);
        let guards: Vec<Between> = match pass {
            Some(true) => vec![],
            _ => a
                .guards
                .iter()
                .map(|g| Between { offset: g.at.offset, strides: self.strides(&g.at), lo: g.lo, hi: g.hi })
                .collect(),
        };
        let inner = *strides.last().unwrap_or(&0);
        self.cost +=
            if inner.abs() <= 1 { 0.1 } else { 0.5 } + if *self.dims.last().unwrap_or(&1) < 16 { 0.5 } else { 0.0 };
        let size = a.fill.dtype.size();
        let in_place = is_storage && guards.is_empty() && inner == 1;
        // `is_for_code` saw that elements are lanes, and that nothing is guarded
        let in_code = self.masked && is_strided(inner);
        self.body.push(Ins::Load { load: self.loads.len() as u32, d });
        self.loads.push(Loads {
            f,
            buf,
            size,
            offset: a.at.offset,
            strides,
            guards,
            fill,
            lane_bytes,
            is_storage,
            in_place,
            in_code,
        });
    }
    /// Moves a narrow load straight to its output. False where it is better done as a value (a constant).
    fn raw_move(&mut self, n: NodeId) -> Res<bool> {
        let Node::Load(a) = &self.spec.kernel.nodes[n as usize].1 else { return Ok(false) };
        let pass = self.guards_pass(a);
        let Some(out) = self.spec.outs.iter().position(|o| o.0 == n) else { return Ok(false) };
        let Some(d) = self.out_direct(out).filter(|_| pass != Some(false)) else { return Ok(false) };
        let size = a.fill.dtype.size();
        let d = self.direct(d);
        self.general(
            (Buf::In(a.input), a),
            d,
            moves::load_raw(size, self.spec.target.tier),
            size,
            a.fill.bits,
            pass,
            false,
        );
        Ok(true)
    }
    /// Makes a value an output: by renaming its register where that can be, else by a store.
    fn output(&mut self, out: usize, v: Op, fixed: &[Op]) {
        let (n, to) = self.spec.outs[out];
        let dtype = self.spec.kernel.dtype(n);
        let lane = Lane::of(dtype);
        let v = self.renamed.iter().find(|r| r.0 == v).map_or(v, |r| r.1);
        self.cost += 0.025 * dtype.size() as f64;
        let Some(direct) = self.out_direct(out) else {
            let place = self.spec.places[out];
            self.body.push(Ins::Store { store: self.stores.len() as u32, v });
            self.cost += 0.3;
            self.stores.push(Stores {
                f: moves::spread(dtype, self.spec.target.tier),
                output: to,
                size: dtype.size(),
                offset: place.offset,
                strides: self.strides(place),
                lane_bytes: lane.size(),
                in_code: (self.masked && lane.is_storage_of(dtype) && dtype.size() >= 4).then_some(dtype),
            });
            return;
        };
        let to = self.direct(direct);
        let can_rename = v & DIRECT == 0
            && !self.uniform[v as usize]
            && lane.is_storage_of(dtype)
            && !self.spec.aliased
            && !fixed.contains(&v);
        if can_rename {
            for i in &mut self.body {
                if let Ins::Load { d, load } = i
                    && *d == v
                {
                    self.loads[*load as usize].in_place = false;
                }
                i.operands().into_iter().filter(|o| **o == v).for_each(|o| *o = to);
            }
            // Another output of the same node then copies from this one.
            self.renamed.push((v, to));
            return;
        }
        let what = Some(Function::Copy(dtype));
        self.body.push(Ins::Call { f: moves::store(dtype, self.spec.target.tier), d: to, a: v, b: v, c: v, what });
    }
}

fn un_cost(f: Un) -> f64 {
    match f {
        Un::Neg
        | Un::Abs
        | Un::Sign
        | Un::Not
        | Un::Popcnt
        | Un::Clz
        | Un::Floor
        | Un::Ceil
        | Un::RoundEven
        | Un::Trunc
        | Un::IsFinite => 0.1,
        Un::RoundAway | Un::Sqrt | Un::Rsqrt => 0.4,
        Un::Exp | Un::Exp2 | Un::Expm1 | Un::Log | Un::Log1p | Un::Tanh | Un::Logistic => 1.0,
        Un::Lgamma | Un::Digamma => 10.0,
        _ => 2.0,
    }
}
fn bin_cost(f: Bin, d: DType) -> f64 {
    match f {
        Bin::Div if d.is_float() => 0.3,
        Bin::Div | Bin::Rem => 2.0,
        Bin::Pow | Bin::Atan2 => 4.0,
        _ => 0.1,
    }
}
