//! `Program`: the nodes of a kernel as a list of block-function calls over tiles of a loop nest.
//!
//! ```text
//!     x + sin(y)[:, None]     ->   direct in0 +pos      (x is read in place, tile after tile)
//!                                  load r0 <- in1       (one row's value, repeated)
//!                                  call sin r1 <- r0
//!                                  call add out0 <- in0, r1
//! ```
//!
//! Positions are linear over the loop dimensions, after neighbouring ones that every access walks alike were merged. Values that
//! do not vary are computed once per run. Registers are reused when their last reader has run.
//!
//! INVARIANT: evaluating a range of positions touches only these positions of what is read in place or written, and the elements that
//! the kernel's loads name for them, which `Kernel::verify` proved to exist.
use super::block::BlockFn;
use super::lane::Lane;
use super::{moves, scalar};
use crate::tier::Tier;
use ferrax_kernel::{Affine, Bin, DType, Error, Kernel, Node, NodeId, Res, Un};
use smallvec::SmallVec;

/// Position of a pointer in the frame's table: registers first, then what is used in place.
type Op = u16;
const DIRECT: u16 = 0x8000;

#[derive(Clone, Copy, Debug)]
enum Buf {
    In(u32),
    Out(u32),
}
/// A buffer that positions walk contiguously.
struct Direct {
    buf: Buf,
    offset: i64,
    size: usize,
}
enum Ins {
    Call { f: BlockFn, d: Op, a: Op, b: Op, c: Op },
    Load { load: u32, d: Op },
    Index { index: u32, d: Op },
}
struct Loads {
    f: moves::LoadFn,
    input: u32,
    size: usize,
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    guards: Vec<Between>,
    fill: u64,
    lane_bytes: usize,
    /// A row of this can stand for the register: lanes are stored as they are, one after the other.
    in_place: bool,
}
struct Between {
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    lo: i64,
    hi: i64,
}
struct Indices {
    f: moves::IndexFn,
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    lane_bytes: usize,
}
enum Setup {
    Fill { d: Op, bytes: usize, bits: u64 },
    Splat { d: Op, f: moves::LoadFn, input: u32, size: usize, offset: i64 },
    Call { f: BlockFn, d: Op, a: Op, b: Op, c: Op },
}

pub struct Program {
    dims: SmallVec<[usize; 4]>,
    total: usize,
    tile: usize,
    /// Length of the rows that tiles should not straddle.
    row: usize,
    n_regs: usize,
    reg_bytes: usize,
    directs: Vec<Direct>,
    setup: Vec<Setup>,
    body: Vec<Ins>,
    loads: Vec<Loads>,
    indices: Vec<Indices>,
    /// Estimated nanoseconds for one position.
    pub cost: f64,
}

/// What to compile of a kernel.
pub struct Spec<'a> {
    pub kernel: &'a Kernel,
    /// Loop dimensions, outermost first, as positions in the kernel's domain.
    pub loops: &'a [usize],
    /// Nodes that become outputs.
    pub outs: &'a [(NodeId, u32)],
    /// Nodes whose lanes the caller reads after a tile was evaluated.
    pub keep: &'a [NodeId],
    /// Nodes whose lanes the caller provides before.
    pub given: &'a [NodeId],
    /// Whether an output may be the memory of an input.
    pub aliased: bool,
    pub tier: Tier,
    pub max_tile: usize,
}

/// Where the buffers are: pointers by cell, and the cells of inputs and outputs.
#[derive(Clone, Copy)]
pub struct Bases<'a> {
    pub ptrs: &'a [*mut u8],
    pub ins: &'a [u32],
    pub outs: &'a [u32],
}
// SAFETY: the pointers are to memory that the run holds; tiles write disjoint ranges of the outputs and only read the inputs.
unsafe impl Sync for Bases<'_> {}
impl Bases<'_> {
    #[inline(always)]
    pub fn input(&self, k: u32) -> *mut u8 {
        self.ptrs[self.ins[k as usize] as usize]
    }
    #[inline(always)]
    pub fn output(&self, k: u32) -> *mut u8 {
        self.ptrs[self.outs[k as usize] as usize]
    }
}

/// The working memory of one thread for one program: pointer table, bases of what is used in place, registers.
pub struct Frame<'a> {
    p: &'a mut [*mut u8],
    base: &'a mut [*mut u8],
    bases: Bases<'a>,
}

struct Builder<'a> {
    spec: &'a Spec<'a>,
    dims: SmallVec<[usize; 4]>,
    /// Of each merged dimension, the domain dimension whose stride it has.
    innermost: SmallVec<[usize; 4]>,
    total: usize,
    directs: Vec<Direct>,
    setup: Vec<Setup>,
    body: Vec<Ins>,
    loads: Vec<Loads>,
    indices: Vec<Indices>,
    /// For each virtual register, whether it is computed once.
    uniform: Vec<bool>,
    wide: usize,
    cost: f64,
    /// Registers that became outputs.
    renamed: Vec<(Op, Op)>,
}

enum Walk {
    /// The same everywhere.
    Still(i64),
    /// offset + position.
    Straight(i64),
    Other(SmallVec<[i64; 4]>),
}

impl Program {
    /// Also gives the operands of `keep` and of `given`.
    pub fn compile(spec: &Spec) -> Res<(Program, Vec<u16>, Vec<u16>)> {
        let k = spec.kernel;
        let mut needed = vec![false; k.nodes.len()];
        for n in spec.outs.iter().map(|o| o.0).chain(spec.keep.iter().copied()) {
            needed[n as usize] = true;
        }
        for n in (0..k.nodes.len()).rev() {
            if needed[n] && !spec.given.contains(&(n as u32)) {
                for o in k.nodes[n].1.operands() {
                    needed[o as usize] = true;
                }
            }
        }
        let (dims, innermost) = merged_dims(spec, &needed);
        let total = dims.iter().product();
        // One dimension at least, so that every access has a stride.
        let (mut dims, mut innermost) = (dims, innermost);
        if dims.is_empty() {
            dims.push(1);
            innermost.push(usize::MAX);
        }
        let mut b = Builder {
            spec,
            dims,
            innermost,
            total,
            directs: vec![],
            setup: vec![],
            body: vec![],
            loads: vec![],
            indices: vec![],
            uniform: vec![],
            wide: 1,
            cost: 0.0,
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
            if needed[n] && value[n] == u16::MAX {
                if !spec.aliased && is_raw(n) && b.raw_move(n)? {
                    raw_done.push(n as u32);
                    continue;
                }
                value[n] = b.node(n, &value)?;
            }
        }
        let keep: Vec<Op> = spec.keep.iter().map(|n| value[*n as usize]).collect();
        // Registers that the caller reads or fills keep their place.
        let fixed: Vec<Op> = keep.iter().chain(&given).copied().collect();
        for (n, out) in spec.outs {
            if !raw_done.contains(n) {
                b.output(*n, value[*n as usize], *out, &fixed)?;
            }
        }
        b.finish(keep, given)
    }
    pub fn tile(&self) -> usize {
        self.tile
    }
    pub fn total(&self) -> usize {
        self.total
    }
    /// Bytes of working memory a frame needs.
    pub fn frame_bytes(&self) -> usize {
        let table = (self.n_regs + 2 * self.directs.len()) * 8;
        table.next_multiple_of(64) + self.n_regs * self.reg_bytes
    }
    pub fn n_tiles(&self) -> usize {
        match self.total {
            0 => 0,
            n if self.row >= self.tile => n / self.row * self.row.div_ceil(self.tile),
            n => (n / self.row).div_ceil(self.tile / self.row),
        }
    }
    /// First position and length of a tile.
    #[inline]
    pub fn tile_range(&self, t: usize) -> (usize, usize) {
        if self.row >= self.tile {
            let pieces = self.row.div_ceil(self.tile);
            let (row, piece) = (t / pieces, t % pieces);
            let from = piece * self.tile;
            (row * self.row + from, self.tile.min(self.row - from))
        } else {
            let step = self.tile / self.row * self.row;
            (t * step, step.min(self.total - t * step))
        }
    }
    /// Lays the frame out in `memory` and computes what does not vary, for tiles of up to `n` positions.
    ///
    /// # Safety
    /// `memory` has `frame_bytes` bytes, 64-byte aligned, for as long as the frame lives; `bases` point at buffers as long as the kernel says.
    #[inline]
    pub unsafe fn start<'a>(&self, memory: *mut u8, bases: Bases<'a>, n: usize) -> Frame<'a> {
        // SAFETY: `frame_bytes` counts exactly these pieces.
        unsafe {
            let n_p = self.n_regs + self.directs.len();
            let p = std::slice::from_raw_parts_mut(memory.cast::<*mut u8>(), n_p);
            let base = std::slice::from_raw_parts_mut(memory.cast::<*mut u8>().add(n_p), self.directs.len());
            let regs = memory.add(((n_p + self.directs.len()) * 8).next_multiple_of(64));
            for (r, slot) in p[..self.n_regs].iter_mut().enumerate() {
                *slot = regs.add(r * self.reg_bytes);
            }
            for (b, d) in base.iter_mut().zip(&self.directs) {
                let start = match d.buf {
                    Buf::In(k) => bases.input(k),
                    Buf::Out(k) => bases.output(k),
                };
                *b = start.wrapping_offset(d.offset as isize * d.size as isize);
            }
            for s in &self.setup {
                match s {
                    Setup::Fill { d, bytes, bits } => moves::fill(p[*d as usize], *bytes, *bits, n),
                    Setup::Splat { d, f, input, size, offset } => {
                        f(p[*d as usize], bases.input(*input).offset(*offset as isize * *size as isize), 1, 0, n, 0)
                    }
                    Setup::Call { f, d, a, b, c } => f(p[*d as usize], p[*a as usize], p[*b as usize], p[*c as usize], n),
                }
            }
            Frame { p, base, bases }
        }
    }
    /// Evaluates positions `pos .. pos + n`, n at most the tile and what the frame was started for.
    ///
    /// # Safety
    /// The frame is one of this program's; the positions lie below `total`; no other thread evaluates them.
    #[inline]
    pub unsafe fn eval(&self, frame: &mut Frame, pos: usize, n: usize) {
        // SAFETY: pointers advance to elements of positions below total, inside their buffers; registers hold a tile.
        unsafe {
            for (k, d) in self.directs.iter().enumerate() {
                frame.p[self.n_regs + k] = frame.base[k].add(pos * d.size);
            }
            for i in &self.body {
                match *i {
                    Ins::Call { f, d, a, b, c } => {
                        let p = &frame.p;
                        f(p[d as usize], p[a as usize], p[b as usize], p[c as usize], n)
                    }
                    Ins::Load { load, d } => self.load(&self.loads[load as usize], d, frame, pos, n),
                    Ins::Index { index, d } => self.index(&self.indices[index as usize], frame.p[d as usize], pos, n),
                }
            }
        }
    }
    /// The lanes of an operand, as the last `eval` left them.
    #[inline]
    pub fn lanes(&self, frame: &Frame, op: u16) -> *mut u8 {
        frame.p[op as usize]
    }

    /// # Safety
    /// As `eval`.
    unsafe fn load(&self, l: &Loads, d: Op, frame: &mut Frame, pos: usize, mut n: usize) {
        // SAFETY: the elements read are those the kernel names for the positions, inside the input by `Kernel::verify`.
        unsafe {
            let src = frame.bases.input(l.input);
            let at = |off: i64| src.cast_const().wrapping_offset(off as isize * l.size as isize);
            let last = self.dims.len() - 1;
            let (width, stride) = (self.dims[last], l.strides[last]);
            let mut j = pos % width;
            let mut ix: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last);
            let mut rest = pos / width;
            let mut off = l.offset;
            for k in (0..last).rev() {
                ix[k] = rest % self.dims[k];
                rest /= self.dims[k];
                off += ix[k] as i64 * l.strides[k];
            }
            if l.in_place && j + n <= width && stride == 1 {
                frame.p[d as usize] = at(off + j as i64).cast_mut();
                return;
            }
            let mut out = if l.in_place { self.own_register(frame, d) } else { frame.p[d as usize] };
            while n > 0 {
                let mut rows = 1;
                let len = (width - j).min(n);
                if !l.guards.is_empty() {
                    self.guarded(l, &ix, at(off), out, j, len);
                } else if len == width && last > 0 {
                    rows = (n / width).min(self.dims[last - 1] - ix[last - 1]);
                    (l.f)(out, at(off), rows, l.strides[last - 1] as isize, width, stride as isize);
                } else {
                    (l.f)(out, at(off + j as i64 * stride), 1, 0, len, stride as isize);
                }
                let done = if rows > 1 { rows * width } else { len };
                out = out.add(done * l.lane_bytes);
                n -= done;
                j = 0;
                // Next row.
                let mut k = last;
                let mut step = rows;
                while k > 0 && step > 0 {
                    k -= 1;
                    ix[k] += step;
                    off += step as i64 * l.strides[k];
                    step = 0;
                    if ix[k] == self.dims[k] {
                        off -= ix[k] as i64 * l.strides[k];
                        ix[k] = 0;
                        step = 1;
                    }
                }
            }
        }
    }
    /// A register whose pointer an earlier tile may have turned to a row in place.
    fn own_register(&self, frame: &mut Frame, d: Op) -> *mut u8 {
        // The registers lie one after the other behind the table, which the frame's slices span.
        let regs = frame.p.as_ptr().cast::<u8>().wrapping_add(((frame.p.len() + frame.base.len()) * 8).next_multiple_of(64));
        let own = regs.wrapping_add(d as usize * self.reg_bytes).cast_mut();
        frame.p[d as usize] = own;
        own
    }
    /// Part of a row: fill, elements, fill.
    ///
    /// # Safety
    /// As `load`; `row` is the (possibly imaginary) element at inner index 0.
    unsafe fn guarded(&self, l: &Loads, ix: &[usize], row: *const u8, out: *mut u8, j: usize, len: usize) {
        let last = self.dims.len() - 1;
        let (mut lo, mut hi) = (j as i64, (j + len) as i64);
        for g in &l.guards {
            let fixed: i64 = g.offset + ix.iter().zip(&g.strides).map(|(i, s)| *i as i64 * s).sum::<i64>();
            let s = g.strides[last];
            // g.lo <= fixed + s i < g.hi
            let (a, b) = (g.lo - fixed, g.hi - 1 - fixed);
            let (first, end) = match s {
                0 if a <= 0 && b >= 0 => continue,
                0 => (0, 0),
                s if s > 0 => (-(-a).div_euclid(s), b.div_euclid(s) + 1),
                s => (-b.div_euclid(-s), (-a).div_euclid(-s) + 1),
            };
            lo = lo.max(first);
            hi = hi.min(end);
        }
        let (start, end) = (j as i64, (j + len) as i64);
        let lo = lo.clamp(start, end);
        let hi = hi.clamp(lo, end);
        let (before, inside, after) = ((lo - start) as usize, (hi - lo) as usize, (end - hi) as usize);
        // SAFETY: before + inside + after = len lanes; the guards let exactly `inside` elements through, which exist.
        unsafe {
            moves::fill(out, l.lane_bytes, l.fill, before);
            let stride = l.strides[last] as isize;
            if inside > 0 {
                (l.f)(out.add(before * l.lane_bytes), row.wrapping_offset(lo as isize * stride * l.size as isize), 1, 0, inside, stride);
            }
            moves::fill(out.add((before + inside) * l.lane_bytes), l.lane_bytes, l.fill, after);
        }
    }
    /// # Safety
    /// `out` holds n lanes.
    unsafe fn index(&self, x: &Indices, mut out: *mut u8, mut pos: usize, mut n: usize) {
        let last = self.dims.len() - 1;
        let width = self.dims[last];
        while n > 0 {
            let j = pos % width;
            let len = (width - j).min(n);
            let mut rest = pos / width;
            let mut at = x.offset.wrapping_add((j as i64).wrapping_mul(x.strides[last]));
            for k in (0..last).rev() {
                at = at.wrapping_add(((rest % self.dims[k]) as i64).wrapping_mul(x.strides[k]));
                rest /= self.dims[k];
            }
            // SAFETY: lanes out .. out + len of n.
            unsafe {
                (x.f)(out, at, x.strides[last], len);
                out = out.add(len * x.lane_bytes);
            }
            pos += len;
            n -= len;
        }
    }
    /// One line for each instruction, for people.
    pub fn text(&self) -> String {
        let op = |o: Op| {
            if (o as usize) < self.n_regs {
                format!("r{o}")
            } else {
                match self.directs[o as usize - self.n_regs].buf {
                    Buf::In(k) => format!("in{k}"),
                    Buf::Out(k) => format!("out{k}"),
                }
            }
        };
        let mut s = format!("  loops {:?} tile {} registers {}\n", &self.dims[..], self.tile, self.n_regs);
        for i in &self.setup {
            s += &match i {
                Setup::Fill { d, bits, .. } => format!("  once {} = {bits:#x}\n", op(*d)),
                Setup::Splat { d, input, offset, .. } => format!("  once {} = in{input}[{offset}]\n", op(*d)),
                Setup::Call { d, a, b, c, .. } => format!("  once {} = f({}, {}, {})\n", op(*d), op(*a), op(*b), op(*c)),
            };
        }
        for i in &self.body {
            s += &match i {
                Ins::Call { d, a, b, c, .. } => format!("  {} = f({}, {}, {})\n", op(*d), op(*a), op(*b), op(*c)),
                Ins::Load { load, d } => {
                    let l = &self.loads[*load as usize];
                    format!("  {} = in{}[{} + {:?}]\n", op(*d), l.input, l.offset, &l.strides[..])
                }
                Ins::Index { index, d } => format!("  {} = {:?} indices\n", op(*d), &self.indices[*index as usize].strides[..]),
            };
        }
        s
    }
}

/// The loop dimensions, without those of size 1, and with neighbours merged where every affine form of a needed node allows it.
fn merged_dims(spec: &Spec, needed: &[bool]) -> (SmallVec<[usize; 4]>, SmallVec<[usize; 4]>) {
    let domain = spec.kernel.domain();
    let mut forms: Vec<&Affine> = vec![];
    for (n, (_, node)) in spec.kernel.nodes.iter().enumerate() {
        match node {
            _ if !needed[n] || spec.given.contains(&(n as u32)) => (),
            Node::Index(a) => forms.push(a),
            Node::Load(l) => {
                forms.push(&l.at);
                forms.extend(l.guards.iter().map(|g| &g.at));
            }
            _ => (),
        }
    }
    let mut out: SmallVec<[usize; 4]> = SmallVec::new(); // innermost first
    let mut innermost: SmallVec<[usize; 4]> = SmallVec::new();
    let mut inner: Option<usize> = None; // the domain dimension that the last merged one ends with, outermost
    let mut inner_size = 1;
    for k in spec.loops.iter().rev().copied() {
        let n = domain[k];
        if n == 1 {
            continue;
        }
        if let Some(i) = inner
            && forms.iter().all(|f| f.stride(k) == f.stride(i) * inner_size as i64)
        {
            *out.last_mut().expect("inner is set with the first") *= n;
        } else {
            out.push(n);
            innermost.push(k);
        }
        inner = Some(k);
        inner_size = n;
    }
    out.reverse();
    innermost.reverse();
    (out, innermost)
}

impl Builder<'_> {
    fn fresh(&mut self, uniform: bool, bytes: usize) -> Res<Op> {
        if self.uniform.len() + 1 >= DIRECT as usize {
            return Err(Error::Unsupported("a kernel of more than 32,000 values".into()));
        }
        self.uniform.push(uniform);
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
    fn walk(&self, a: &Affine) -> Walk {
        let strides: SmallVec<[i64; 4]> = self.innermost.iter().map(|k| a.stride(*k)).collect();
        let mut straight = 1i64;
        let is_straight = (0..self.dims.len()).rev().all(|g| {
            let ok = strides[g] == straight || self.dims[g] == 1;
            straight = straight.saturating_mul(self.dims[g] as i64);
            ok
        });
        if is_straight {
            Walk::Straight(a.offset)
        } else if strides.iter().all(|s| *s == 0) {
            Walk::Still(a.offset)
        } else {
            Walk::Other(strides)
        }
    }
    fn strides(&self, a: &Affine) -> SmallVec<[i64; 4]> {
        match self.walk(a) {
            Walk::Other(s) => s,
            Walk::Still(_) => SmallVec::from_elem(0, self.dims.len()),
            Walk::Straight(_) => {
                let mut s: SmallVec<[i64; 4]> = SmallVec::from_elem(1, self.dims.len());
                for k in (0..s.len().saturating_sub(1)).rev() {
                    s[k] = s[k + 1] * self.dims[k + 1] as i64;
                }
                s
            }
        }
    }
    /// A call, in the setup where all its operands are there.
    fn call(&mut self, f: BlockFn, bytes: usize, ops: &[Op], cost: f64) -> Res<Op> {
        let uniform = ops.iter().all(|o| self.is_uniform(*o));
        let d = self.fresh(uniform, bytes)?;
        let (a, b, c) = (ops[0], *ops.get(1).unwrap_or(&ops[0]), *ops.get(2).unwrap_or(&ops[0]));
        if uniform {
            self.setup.push(Setup::Call { f, d, a, b, c });
        } else {
            self.body.push(Ins::Call { f, d, a, b, c });
            self.cost += cost;
        }
        Ok(d)
    }
    fn calls(&mut self, fs: [Option<BlockFn>; 3], bytes: usize, op: Op, cost: f64) -> Res<Op> {
        fs.into_iter().flatten().try_fold(op, |x, f| self.call(f, bytes, &[x], cost))
    }
    fn constant(&mut self, bytes: usize, bits: u64) -> Res<Op> {
        let d = self.fresh(true, bytes)?;
        self.setup.push(Setup::Fill { d, bytes, bits });
        Ok(d)
    }
    fn node(&mut self, n: usize, value: &[Op]) -> Res<Op> {
        let (spec, tier) = (self.spec, self.spec.tier);
        let k = spec.kernel;
        let (dtype, node) = &k.nodes[n];
        let (dtype, lane) = (*dtype, Lane::of(*dtype));
        let bytes = lane.size();
        let at = |o: NodeId| value[o as usize];
        let undefined = |what: &str| Error::Invalid(format!("{what} is not defined for {dtype}"));
        let simple = 0.02 * bytes as f64;
        Ok(match node {
            Node::Const(s) => self.constant(bytes, moves::lane_bits(*s))?,
            Node::Index(a) => {
                let d = self.fresh(false, bytes)?;
                let strides = self.strides(a);
                self.body.push(Ins::Index { index: self.indices.len() as u32, d });
                self.indices.push(Indices { f: moves::index(lane, tier), offset: a.offset, strides, lane_bytes: bytes });
                self.cost += 0.1;
                self.canonical(dtype, d)?
            }
            Node::Load(a) => self.load_node(n, a)?,
            Node::Un(f, x) => {
                let fs = scalar::un(*f, k.dtype(*x), tier).ok_or_else(|| undefined(f.name()))?;
                let d = self.calls(fs, bytes, at(*x), un_cost(*f).max(simple))?;
                let keeps = matches!(f, Un::IsFinite | Un::Popcnt | Un::Clz | Un::Floor | Un::Ceil | Un::Trunc);
                if keeps { d } else { self.canonical(dtype, d)? }
            }
            Node::Bin(f, x, y) => {
                let of = k.dtype(*x);
                let g = scalar::bin(*f, of, tier).ok_or_else(|| undefined(f.name()))?;
                let d = self.call(g, bytes, &[at(*x), at(*y)], bin_cost(*f, of).max(simple))?;
                let keeps = f.is_comparison() || matches!(f, Bin::Max | Bin::Min | Bin::And | Bin::Or | Bin::Xor | Bin::NextAfter);
                if keeps { d } else { self.canonical(dtype, d)? }
            }
            Node::Select { p, t, f } => self.call(super::block::choose(bytes, tier), bytes, &[at(*p), at(*t), at(*f)], simple)?,
            Node::Convert(x) if k.dtype(*x) == dtype => at(*x),
            Node::Convert(x) => self.call(scalar::convert(k.dtype(*x), dtype, tier), bytes, &[at(*x)], 2.0 * simple)?,
            Node::Bitcast(x) => self.calls(scalar::bitcast(k.dtype(*x), dtype, tier), 8, at(*x), simple)?,
            Node::Round { of, exponent, mantissa } => {
                let words = self.constant(8, *exponent as u64 | (*mantissa as u64) << 32)?;
                let d = self.call(scalar::round(dtype, tier), bytes, &[at(*of), words], 0.2)?;
                self.canonical(dtype, d)?
            }
            Node::Reduce { .. } => return Err(Error::Invalid(format!("node {n} reduces where nothing is reduced"))),
        })
    }
    fn canonical(&mut self, d: DType, op: Op) -> Res<Op> {
        match scalar::canonical(d, self.spec.tier) {
            Some(f) => self.call(f, 4, &[op], 0.1),
            None => Ok(op),
        }
    }
    /// Whether guards let every position through, none, or it depends.
    fn guards_pass(&self, a: &ferrax_kernel::Access) -> Option<bool> {
        let domain = self.spec.kernel.domain();
        let dims: SmallVec<[usize; 6]> = (0..domain.len()).map(|k| if self.spec.loops.contains(&k) { domain[k] } else { 1 }).collect();
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
    fn load_node(&mut self, n: usize, a: &ferrax_kernel::Access) -> Res<Op> {
        let (spec, tier) = (self.spec, self.spec.tier);
        let dtype = spec.kernel.dtype(n as u32);
        let lane = Lane::of(dtype);
        let pass = self.guards_pass(a);
        if pass == Some(false) && self.total > 0 {
            return self.constant(lane.size(), moves::lane_bits(a.fill));
        }
        // In place, an output that is merely an input must be read before anything is written.
        let is_moved = spec.aliased && spec.outs.iter().any(|o| o.0 as usize == n);
        match self.walk(&a.at) {
            Walk::Straight(offset) if pass == Some(true) && lane.is_storage_of(dtype) && !is_moved => {
                self.cost += 0.025 * dtype.size() as f64;
                Ok(self.direct(Direct { buf: Buf::In(a.input), offset, size: dtype.size() }))
            }
            Walk::Still(offset) if pass == Some(true) && self.total > 0 => {
                let d = self.fresh(true, lane.size())?;
                self.setup.push(Setup::Splat { d, f: moves::load(dtype, tier), input: a.input, size: dtype.size(), offset });
                Ok(d)
            }
            _ => {
                let d = self.fresh(false, lane.size())?;
                self.general(a, d, moves::load(dtype, tier), lane.size(), moves::lane_bits(a.fill), pass, lane.is_storage_of(dtype) && !is_moved);
                Ok(d)
            }
        }
    }
    fn general(&mut self, a: &ferrax_kernel::Access, d: Op, f: moves::LoadFn, lane_bytes: usize, fill: u64, pass: Option<bool>, in_place: bool) {
        let strides = self.strides(&a.at);
        let guards: Vec<Between> = match pass {
            Some(true) => vec![],
            _ => a.guards.iter().map(|g| Between { offset: g.at.offset, strides: self.strides(&g.at), lo: g.lo, hi: g.hi }).collect(),
        };
        let inner = *strides.last().unwrap_or(&0);
        self.cost += if inner.abs() <= 1 { 0.1 } else { 0.5 } + if *self.dims.last().unwrap_or(&1) < 16 { 0.5 } else { 0.0 };
        let size = a.fill.dtype.size();
        let in_place = in_place && guards.is_empty() && inner == 1;
        self.body.push(Ins::Load { load: self.loads.len() as u32, d });
        self.loads.push(Loads { f, input: a.input, size, offset: a.at.offset, strides, guards, fill, lane_bytes, in_place });
    }
    /// Moves a narrow load straight to its output. False where it is better done as a value (a constant).
    fn raw_move(&mut self, n: usize) -> Res<bool> {
        let Node::Load(a) = &self.spec.kernel.nodes[n].1 else { return Ok(false) };
        let pass = self.guards_pass(a);
        let Some((_, out)) = self.spec.outs.iter().find(|o| o.0 as usize == n) else { return Ok(false) };
        if pass == Some(false) {
            return Ok(false);
        }
        let size = a.fill.dtype.size();
        let d = self.direct(Direct { buf: Buf::Out(*out), offset: 0, size });
        self.general(a, d, moves::load_raw(size, self.spec.tier), size, a.fill.bits, pass, false);
        Ok(true)
    }
    /// Makes a value an output: by renaming its register where that can be, else by a store.
    fn output(&mut self, n: NodeId, v: Op, out: u32, fixed: &[Op]) -> Res<()> {
        let dtype = self.spec.kernel.dtype(n);
        let lane = Lane::of(dtype);
        let v = self.renamed.iter().find(|r| r.0 == v).map_or(v, |r| r.1);
        let to = self.direct(Direct { buf: Buf::Out(out), offset: 0, size: dtype.size() });
        self.cost += 0.025 * dtype.size() as f64;
        let can_rename = v & DIRECT == 0 && !self.uniform[v as usize] && lane.is_storage_of(dtype) && !self.spec.aliased && !fixed.contains(&v);
        if can_rename {
            for i in &mut self.body {
                let mut swap = |o: &mut Op| {
                    if *o == v {
                        *o = to
                    }
                };
                match i {
                    Ins::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(&mut swap),
                    Ins::Load { d, load } => {
                        if *d == v {
                            self.loads[*load as usize].in_place = false;
                        }
                        swap(d)
                    }
                    Ins::Index { d, .. } => swap(d),
                }
            }
            // Another output of the same node then copies from this one.
            self.renamed.push((v, to));
            return Ok(());
        }
        self.body.push(Ins::Call { f: moves::store(dtype, self.spec.tier), d: to, a: v, b: v, c: v });
        Ok(())
    }
    /// Gives virtual registers real ones, and directs their place behind them.
    fn finish(mut self, keep: Vec<Op>, given: Vec<Op>) -> Res<(Program, Vec<Op>, Vec<Op>)> {
        let n_virtual = self.uniform.len();
        let mut last = vec![usize::MAX; n_virtual]; // position of the last reader; MAX where nobody may take the register
        for (at, i) in self.body.iter().enumerate() {
            let mut see = |o: Op| {
                if o & DIRECT == 0 && !self.uniform[o as usize] {
                    last[o as usize] = at
                }
            };
            match *i {
                Ins::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(&mut see),
                Ins::Load { d, .. } | Ins::Index { d, .. } => see(d),
            }
        }
        for o in keep.iter().chain(&given) {
            if o & DIRECT == 0 {
                last[*o as usize] = usize::MAX;
            }
        }
        let mut real = vec![u16::MAX; n_virtual];
        let mut n_regs: u16 = 0;
        for v in 0..n_virtual {
            if self.uniform[v] || given.contains(&(v as u16)) {
                real[v] = n_regs;
                n_regs += 1;
            }
        }
        let mut free: Vec<u16> = vec![];
        for (at, i) in self.body.iter().enumerate() {
            let d = match *i {
                Ins::Call { d, .. } | Ins::Load { d, .. } | Ins::Index { d, .. } => d,
            };
            if d & DIRECT == 0 && real[d as usize] == u16::MAX {
                // A register that holds rows in place is not shared: its pointer wanders.
                let wanders = matches!(i, Ins::Load { load, .. } if self.loads[*load as usize].in_place);
                real[d as usize] = if wanders { None } else { free.pop() }.unwrap_or_else(|| {
                    n_regs += 1;
                    n_regs - 1
                });
                if wanders {
                    last[d as usize] = usize::MAX;
                }
            }
            let mut ops: SmallVec<[Op; 4]> = match *i {
                Ins::Call { d, a, b, c, .. } => SmallVec::from_slice(&[d, a, b, c]),
                Ins::Load { d, .. } | Ins::Index { d, .. } => SmallVec::from_slice(&[d]),
            };
            ops.sort_unstable();
            ops.dedup();
            for o in ops {
                if o & DIRECT == 0 && !self.uniform[o as usize] && last[o as usize] == at {
                    free.push(real[o as usize]);
                }
            }
        }
        let map = |o: Op| if o & DIRECT != 0 { n_regs + (o & !DIRECT) } else { real[o as usize] };
        for i in &mut self.body {
            match i {
                Ins::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(|o| *o = map(*o)),
                Ins::Load { d, .. } | Ins::Index { d, .. } => *d = map(*d),
            }
        }
        for s in &mut self.setup {
            match s {
                Setup::Fill { d, .. } | Setup::Splat { d, .. } => *d = map(*d),
                Setup::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(|o| *o = map(*o)),
            }
        }
        const L1: usize = 24 << 10;
        let fit = L1 / (self.wide * (n_regs as usize + self.directs.len()).max(1)) / 64 * 64;
        let tile = fit.clamp(128, 1024).min(self.spec.max_tile).min(self.total.max(1).next_multiple_of(16));
        let reg_bytes = (tile * self.wide).next_multiple_of(64) + 64;
        let row = if self.loads.is_empty() { self.total } else { *self.dims.last().unwrap_or(&1) };
        let program = Program {
            dims: self.dims,
            total: self.total,
            tile,
            row: row.max(1),
            n_regs: n_regs as usize,
            reg_bytes,
            directs: self.directs,
            setup: self.setup,
            body: self.body,
            loads: self.loads,
            indices: self.indices,
            cost: self.cost,
        };
        Ok((program, keep.into_iter().map(map).collect(), given.into_iter().map(map).collect()))
    }
}

fn un_cost(f: Un) -> f64 {
    match f {
        Un::Neg | Un::Abs | Un::Sign | Un::Not | Un::Popcnt | Un::Clz | Un::Floor | Un::Ceil | Un::RoundEven | Un::Trunc | Un::IsFinite => 0.1,
        Un::RoundAway | Un::Sqrt | Un::Rsqrt => 0.4,
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
