//! From steps to scalar code: selects kernels with few enough elements, and translates the operations of each element.
//!
//! INVARIANT: an element of a cell has one register at a time. All elements of a cell are assigned together.
use super::repeat::LazyLoop;
use super::{CellScalar, Code, Reg, ScalarBlock, ScalarIns, TIER, direct, exec, tier_of};
use crate::executable::{Cell, Compiler};
use crate::kernels::block::BlockFn;
use crate::kernels::lane::Lane;
use crate::kernels::unroll::fold_lanes;
use crate::kernels::{moves, pieces, scalar};
use crate::native::{self, CalledFn, Function, LoopOperation, LoopText, Replaced};
use crate::tier::Tier;
use crate::tuning::{ScalarTuning, Tuning};
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Bin, DType, Kernel, Node, ReduceKind, Routine, Scalar, order};
use rustc_hash::FxHashMap;

/// An instruction's code, and the function that native code would have in its place.
type Operation = (Code, Option<Function>);

/// Builds a block out of steps.
pub struct ScalarBuilder {
    pub(super) block: ScalarBlock,
    /// The register that holds an element of a cell now, by cell and offset in bytes.
    pub(super) known: FxHashMap<(Cell, usize), (DType, Reg)>,
    /// The largest offset in bytes that was read of each cell: writes update the cell up to there.
    read: FxHashMap<Cell, usize>,
    /// The cells that were set, with the number of the last setting and of elements.
    pub(super) written: FxHashMap<Cell, (usize, DType, usize)>,
    settings: usize,
    constants: FxHashMap<u64, Reg>,
    /// The native equivalent of each instruction of the block, where there is one.
    pub(super) what: Vec<Option<Function>>,
    tuning: ScalarTuning,
    /// Multiplications of products that are taken in.
    max_dot_work: usize,
    /// Elements that a slot may have.
    most: usize,
    /// Operations beyond which nothing is taken in; without a bound, steps of several elements are where they are less work than tiles.
    longest: Option<usize>,
}
impl ScalarBuilder {
    /// Of a run of steps that are not all scalar; `repeated` ones may have a few elements.
    pub fn block(repeated: bool, tuning: &Tuning) -> ScalarBuilder {
        ScalarBuilder::of(if repeated { tuning.scalars.max_block_elements } else { 1 }, None, tuning)
    }
    pub(super) fn of(most: usize, longest: Option<usize>, tuning: &Tuning) -> ScalarBuilder {
        ScalarBuilder {
            tuning: tuning.scalars,
            max_dot_work: tuning.dot.max_loop_work,
            block: ScalarBlock::default(),
            known: FxHashMap::default(),
            read: FxHashMap::default(),
            written: FxHashMap::default(),
            settings: 0,
            constants: FxHashMap::default(),
            what: vec![],
            most,
            longest,
        }
    }
    pub fn is_empty(&self) -> bool {
        self.block.kernels == 0 && self.block.code.is_empty() && self.written.is_empty()
    }
    pub(super) fn fresh(&mut self, value: u64) -> Option<Reg> {
        self.block.file.push(value);
        Reg::try_from(self.block.file.len() - 1).ok()
    }
    fn constant(&mut self, value: u64) -> Option<Reg> {
        if let Some(r) = self.constants.get(&value) {
            return Some(*r);
        }
        let r = self.fresh(value)?;
        self.constants.insert(value, r);
        Some(r)
    }
    fn emit(&mut self, (code, what): Operation, ops: &[Reg]) -> Option<Reg> {
        if self.block.code.len() > self.longest.unwrap_or(self.tuning.max_loop_operations) {
            return None;
        }
        let d = self.fresh(0)?;
        let (a, b, c) = (ops[0], *ops.get(1).unwrap_or(&ops[0]), *ops.get(2).unwrap_or(&ops[0]));
        let i = ScalarIns { code, d, a, b, c };
        let is_constant = |r: &Reg| self.constants.get(&self.block.file[*r as usize]) == Some(r);
        if ops.iter().all(is_constant) {
            // SAFETY: all four registers are the file's.
            unsafe { exec(&[i], self.block.file.as_mut_ptr()) };
            let value = self.block.file.pop()?;
            return self.constant(value);
        }
        self.block.code.push(i);
        self.what.push(what);
        Some(d)
    }
    /// The register of an element of a cell, read before the block if nothing wrote it.
    pub(super) fn element(&mut self, cell: Cell, offset: usize, d: DType) -> Option<Reg> {
        if let Some((known, reg)) = self.known.get(&(cell, offset)) {
            return (*known == d).then_some(*reg);
        }
        // Another element of a cell that was written whole cannot be.
        if self.written.contains_key(&cell) {
            return None;
        }
        let reg = self.fresh(0)?;
        self.block.reads.push(CellScalar { cell, offset, dtype: d, reg });
        self.known.insert((cell, offset), (d, reg));
        let far = self.read.entry(cell).or_default();
        *far = offset.max(*far);
        Some(reg)
    }
    /// Whether a cell may be set to `n` elements: no access reaches farther.
    fn may_set(&self, cell: Cell, d: DType, n: usize) -> bool {
        self.read.get(&cell).is_none_or(|far| *far < n * d.size())
            && self.written.get(&cell).is_none_or(|(_, e, m)| m * e.size() <= n * d.size())
    }
    fn set(&mut self, cell: Cell, d: DType, regs: &[Reg]) {
        for (e, reg) in regs.iter().enumerate() {
            self.known.insert((cell, e * d.size()), (d, *reg));
        }
        self.settings += 1;
        self.written.insert(cell, (self.settings, d, regs.len()));
    }
    /// Takes a step in, if it is scalar; gives false, and changes nothing that counts, if not.
    pub fn step(&mut self, c: &Compiler, s: &Step) -> bool {
        let (n_code, n_file, n_reads) = (self.block.code.len(), self.block.file.len(), self.block.reads.len());
        let done = match s {
            Step::Kernel { kernel, ins, outs } => self.kernel(c, kernel, ins, outs),
            Step::Copy { from, to } => self.copy(c, *from, *to),
            Step::Routine { routine, ins, outs } => match &**routine {
                Routine::Dot(d) => self.product(c, d, ins, outs),
                _ => None,
            },
            Step::Switch { index, branches, outs } => self.choice(c, *index, branches, outs),
            _ => None,
        };
        if done.is_none() {
            // Nothing was set yet: a step sets its results last.
            self.block.code.truncate(n_code);
            self.what.truncate(n_code);
            self.block.file.truncate(n_file);
            self.constants.retain(|_, r| (*r as usize) < n_file);
            for p in self.block.reads.drain(n_reads..) {
                self.known.remove(&(p.cell, p.offset));
            }
        }
        done.is_some()
    }
    fn copy(&mut self, c: &Compiler, from: SlotId, to: SlotId) -> Option<()> {
        let (a, b) = (&c.plan.slots[from as usize], &c.plan.slots[to as usize]);
        if a.len != b.len || a.len > self.most || a.tape + b.tape > 0 || a.dtype != b.dtype {
            return None;
        }
        let (x, y) = (c.cell(from), c.cell(to));
        let regs = self.elements(c, from)?;
        if x != y {
            if !self.may_set(y, a.dtype, a.len) {
                return None;
            }
            self.set(y, a.dtype, &regs);
        }
        Some(())
    }
    /// Evaluates all branches and selects each result by the index.
    fn choice(&mut self, c: &Compiler, index: SlotId, branches: &[Vec<Step>], outs: &[SlotId]) -> Option<()> {
        let slot = |o: &SlotId| &c.plan.slots[*o as usize];
        if outs.iter().any(|o| slot(o).len > self.most || slot(o).tape > 0) {
            return None;
        }
        let i = self.element(c.cell(index), 0, DType::I32)?;
        let begin = self.block.code.len();
        let most = self.tuning.max_branch_operations[self.longest.is_none() as usize];
        let mut chosen: Vec<Vec<Reg>> = vec![];
        for (k, branch) in branches.iter().enumerate().rev() {
            let (known, written, n_reads) = (self.known.clone(), self.written.clone(), self.block.reads.len());
            let taken = branch.iter().all(|s| self.step(c, s)) && self.block.code.len() - begin <= most;
            let values: Option<Vec<Vec<Reg>>> =
                if taken { outs.iter().map(|o| self.elements(c, *o)).collect() } else { None };
            (self.known, self.written) = (known, written);
            for p in &self.block.reads[n_reads..] {
                self.known.insert((p.cell, p.offset), (p.dtype, p.reg));
            }
            let values = values?;
            if chosen.is_empty() {
                chosen = values;
                continue;
            }
            // the first of those that the index may still say
            let end = self.constant(k as u64 + 1)?;
            let is_here =
                self.emit((direct(Bin::Lt, Lane::I32)?, Some(Function::Bin(Bin::Lt, DType::I32))), &[i, end])?;
            for ((o, all), mine) in outs.iter().zip(&mut chosen).zip(values) {
                let what = Function::Select(Lane::of(slot(o).dtype).size());
                for (other, here) in all.iter_mut().zip(mine) {
                    if *other != here {
                        *other = self.emit((Code::Select, Some(what)), &[is_here, here, *other])?;
                    }
                }
            }
        }
        if outs.iter().any(|o| !self.may_set(c.cell(*o), slot(o).dtype, slot(o).len)) {
            return None;
        }
        for (o, regs) in outs.iter().zip(&chosen) {
            self.set(c.cell(*o), slot(o).dtype, regs);
        }
        Some(())
    }
    /// The registers of all elements of a slot.
    fn elements(&mut self, c: &Compiler, s: SlotId) -> Option<Vec<Reg>> {
        let (cell, slot) = (c.cell(s), &c.plan.slots[s as usize]);
        (0..slot.len).map(|e| self.element(cell, e * slot.dtype.size(), slot.dtype)).collect()
    }
    fn kernel(&mut self, c: &Compiler, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let n = k.grid.size();
        if n == 0
            || n > self.most
            || k.rdims.size() > self.most
            || outs.iter().any(|o| c.plan.slots[*o as usize].len != n)
        {
            return None;
        }
        let (cells, n_code) = (c.cells(ins), self.block.code.len());
        let reduced =
            k.needed(k.nodes.iter().filter_map(|n| if let Node::Reduce { of, .. } = n.1 { Some(of) } else { None }));
        let once = k.needed(k.outputs.iter().copied());
        let mut results: Vec<Vec<Reg>> = vec![vec![]; k.outputs.len()];
        for i in 0..n {
            let index = k.grid.unravel(i);
            if n > 1 && k.rdims.is_empty() {
                // A choice by an index is decided here.
                let one = pieces::element(k, &index);
                let at = self.values(&one, &cells, &[], &[], &vec![true; one.nodes.len()])?;
                results.iter_mut().zip(&one.outputs).for_each(|(r, o)| r.push(at[*o as usize]));
                continue;
            }
            let mut rows = vec![];
            if reduced.contains(&true) {
                for r in 0..k.rdims.size() {
                    rows.push(self.values(k, &cells, &index.concat(&k.rdims.unravel(r)), &[], &reduced)?);
                }
            }
            let at = self.values(k, &cells, &index, &rows, &once)?;
            results.iter_mut().zip(&k.outputs).for_each(|(r, o)| r.push(at[*o as usize]));
        }
        let moved = n * (ins.len() + outs.len());
        if self.longest.is_none()
            && n > 1
            && self.tuning.nanos[0] * (self.block.code.len() - n_code + moved) as f64 > tiled_kernel(k)
        {
            return None;
        }
        // Results become visible together.
        let to = c.cells(outs);
        if to.iter().zip(&k.outputs).any(|(o, node)| !self.may_set(*o, k.dtype(*node), n)) {
            return None;
        }
        for ((o, node), regs) in to.iter().zip(&k.outputs).zip(&results) {
            self.set(*o, k.dtype(*node), regs);
        }
        self.block.kernels += 1;
        Some(())
    }
    /// A small product, as its routine takes it: each element sums in increasing k, and every product rounds.
    fn product(&mut self, c: &Compiler, d: &Dot, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let plain = d.dtype == d.out && matches!(d.dtype, DType::F32 | DType::F64);
        if self.most == 1
            || !plain
            || d.b != 1
            || d.m * d.n > self.tuning.max_slot_elements
            || d.m * d.n * d.k > self.max_dot_work
        {
            return None;
        }
        let lane = Lane::of(d.dtype);
        let bin = |f| Some((direct(f, lane)?, Some(Function::Bin(f, d.dtype))));
        let (times, plus) = (bin(Bin::Mul)?, bin(Bin::Add)?);
        let (x, y, to) = (c.cell(ins[0]), c.cell(ins[1]), c.cell(outs[0]));
        let mut sums = vec![];
        for i in 0..d.m as i64 {
            for j in 0..d.n as i64 {
                let mut sum = self.constant(0)?;
                for k in 0..d.k as i64 {
                    let at = |row: i64, strides: [i64; 3], column: i64| {
                        usize::try_from(row * strides[1] + column * strides[2]).ok().map(|e| e * d.dtype.size())
                    };
                    let (l, r) = (at(i, d.lhs, k)?, at(k, d.rhs, j)?);
                    let (l, r) = (self.element(x, l, d.dtype)?, self.element(y, r, d.dtype)?);
                    let product = self.emit(times, &[l, r])?;
                    sum = self.emit(plus, &[sum, product])?;
                }
                sums.push(sum);
            }
        }
        if !self.may_set(to, d.dtype, sums.len()) {
            return None;
        }
        self.set(to, d.dtype, &sums);
        self.block.kernels += 1;
        Some(())
    }
    /// The registers of the requested nodes at one index; a Reduce goes over `rows`, the registers
    /// at each reduced index.
    fn values(
        &mut self,
        k: &Kernel,
        cells: &[Cell],
        index: &[usize],
        rows: &[Vec<Reg>],
        wanted: &[bool],
    ) -> Option<Vec<Reg>> {
        let mut at: Vec<Reg> = vec![];
        for ((d, node), wanted) in k.nodes.iter().zip(wanted) {
            at.push(match node {
                _ if !wanted => 0,
                Node::Reduce { kind, of } => {
                    let of: Vec<Reg> = rows.iter().map(|row| row[*of as usize]).collect();
                    self.reduce(*kind, *d, &of)?
                }
                _ => self.node(k, *d, node, index, cells, &at)?,
            });
        }
        Some(at)
    }
    /// In the order of [`order`], for at most as many elements as there are lanes.
    fn reduce(&mut self, kind: ReduceKind, d: DType, of: &[Reg]) -> Option<Reg> {
        let identity = self.constant(moves::lane_bits(kind.identity(d)?))?;
        if of.is_empty() || of.len() > order::LANES {
            return of.is_empty().then_some(identity);
        }
        let f = kind.bin()?;
        let code = direct(f, Lane::of(d)).or_else(|| scalar::bin(f, d, TIER).map(Code::Call))?;
        let code = (code, Some(Function::Bin(f, d)));
        let lanes: Vec<Reg> = of.iter().map(|x| self.emit(code, &[identity, *x])).collect::<Option<_>>()?;
        let sum = fold_lanes(lanes, |a, b| self.emit(code, &[a, b]))?;
        let settled = match Lane::of(d) {
            Lane::F32 => self.emit((Code::Settle32, Some(Function::Settle(d))), &[sum])?,
            Lane::F64 => self.emit((Code::Settle64, Some(Function::Settle(d))), &[sum])?,
            _ => sum,
        };
        match scalar::canonical(d, TIER) {
            Some(f) => self.emit((Code::Call(f), None), &[settled]),
            None => Some(settled),
        }
    }
    fn node(&mut self, k: &Kernel, d: DType, node: &Node, index: &[usize], cells: &[Cell], at: &[Reg]) -> Option<Reg> {
        let of = |n: &u32| at[*n as usize];
        let canonical = |b: &mut ScalarBuilder, r: Reg| match scalar::canonical(d, TIER) {
            Some(f) => b.emit((Code::Call(f), None), &[r]),
            None => Some(r),
        };
        let calls = |b: &mut ScalarBuilder, fs: [Option<BlockFn>; 3], what: Function, r: Reg| {
            let what = (fs.iter().flatten().count() == 1).then_some(what);
            fs.into_iter().flatten().try_fold(r, |r, f| b.emit((Code::Call(f), what), &[r]))
        };
        match node {
            Node::Const(s) => self.constant(moves::lane_bits(*s)),
            Node::Index(a) => {
                let x = Scalar::from_i64(DType::I64, a.at(index.iter().copied()));
                let r = self.constant(x.bits)?;
                self.emit((Code::Call(scalar::convert(DType::I64, d, TIER)), None), &[r])
            }
            Node::Load(a) => {
                let form = |f: &ferrax_kernel::Affine| f.at(index.iter().copied());
                if a.guards.iter().any(|g| !(g.lo..g.hi).contains(&form(&g.at))) {
                    return self.constant(moves::lane_bits(a.fill));
                }
                self.element(cells[a.input as usize], usize::try_from(form(&a.at)).ok()? * d.size(), d)
            }
            Node::Un(f, x) => {
                let from = k.dtype(*x);
                let what = Function::Un(*f, from);
                let code = Code::Call(scalar::un(*f, from, tier_of(what.is_long()))?);
                let r = self.emit((code, Some(what)), &[of(x)])?;
                if d == DType::Bool || scalar::is_exact(*f, d) { Some(r) } else { canonical(self, r) }
            }
            Node::Bin(f, x, y) => {
                let from = Lane::of(k.dtype(*x));
                let code = match direct(*f, from) {
                    Some(code) => code,
                    None => {
                        let is_long = matches!(f, Bin::Pow | Bin::Atan2);
                        Code::Call(scalar::bin(*f, k.dtype(*x), tier_of(is_long))?)
                    }
                };
                let what = Function::bin(*f, k.dtype(*x), k.known(*y));
                let r = self.emit((code, Some(what)), &[of(x), of(y)])?;
                if d == DType::Bool { Some(r) } else { canonical(self, r) }
            }
            Node::Select { p, t, f } => {
                let what = Function::Select(Lane::of(d).size());
                self.emit((Code::Select, Some(what)), &[of(p), of(t), of(f)])
            }
            Node::Convert(x) if k.dtype(*x) == d => Some(of(x)),
            Node::Convert(x) => {
                let what = Function::Convert(k.dtype(*x), d);
                self.emit((Code::Call(scalar::convert(k.dtype(*x), d, TIER)), Some(what)), &[of(x)])
            }
            Node::Bitcast(x) => calls(self, scalar::bitcast(k.dtype(*x), d, TIER), Function::Copy(d), of(x)),
            Node::Round { of: x, exponent, mantissa } => {
                let words = self.constant(*exponent as u64 | (*mantissa as u64) << 32)?;
                let r = self.emit((Code::Call(scalar::round(d, TIER)), None), &[of(x), words])?;
                canonical(self, r)
            }
            Node::Reduce { .. } => None,
        }
    }
    /// The block, which writes all cells it set back to memory.
    pub fn finish(mut self, c: &Compiler) -> ScalarBlock {
        // In the order of the settings: where two cells share memory, one after the other's death, the later one stays.
        let mut written: Vec<(usize, Cell, DType, usize)> =
            self.written.drain().map(|(cell, (at, d, n))| (at, cell, d, n)).collect();
        written.sort_unstable_by_key(|w| w.0);
        for (_, cell, dtype, n) in written {
            for offset in (0..n).map(|e| e * dtype.size()) {
                if let Some((_, reg)) = self.known.get(&(cell, offset)) {
                    self.block.writes.push(CellScalar { cell, offset, dtype, reg: *reg });
                }
            }
        }
        let mut is_constant = vec![true; self.block.file.len()];
        self.block.reads.iter().for_each(|p| is_constant[p.reg as usize] = false);
        self.block.code.iter().for_each(|i| is_constant[i.d as usize] = false);
        let file = self.block.file.iter().zip(0..).filter(|(_, reg)| is_constant[*reg as usize]);
        self.block.constants = file.map(|(x, reg)| (reg, *x)).collect();
        if self.most > 1 && self.block.code.len() >= self.tuning.min_native_operations {
            self.block.lazy = self.text(c).map(|text| {
                let state = |p: &CellScalar| text.state.iter().position(|s| s.0 == p.reg);
                let states = self.block.writes.iter().map(state).collect();
                (LazyLoop::new(text, vec![]), states)
            });
        }
        self.block
    }
    /// The block as a loop of one iteration, whose written values are its state.
    fn text(&mut self, c: &Compiler) -> Option<LoopText> {
        let body = replaced(&self.block.code, std::mem::take(&mut self.what))?;
        let mut state: Vec<(Reg, DType)> = self.block.reads.iter().map(|p| (p.reg, p.dtype)).collect();
        let mut next = vec![];
        for p in &self.block.writes {
            let is_computed = self.block.code.iter().any(|i| i.d == p.reg);
            if is_computed && !next.contains(&(p.reg, p.reg)) {
                state.push((p.reg, p.dtype));
                next.push((p.reg, p.reg));
            }
        }
        as_code(
            c,
            LoopText { state, next, condition: vec![], goes_on: None, body, xs: vec![], ys: vec![], steps: vec![] },
        )
    }
}

/// The text, where this machine makes code of it.
pub(super) fn as_code(c: &Compiler, text: LoopText) -> Option<LoopText> {
    (c.target.tier != Tier::Portable && native::is_available() && text.width().is_some()).then_some(text)
}
/// The estimated time of a kernel as a tile program, in nanoseconds.
pub fn tiled_kernel(k: &Kernel) -> f64 {
    80.0 + 6.0 * k.nodes.len() as f64
}
/// The estimated time of steps as tile programs and routines, in nanoseconds.
pub(super) fn tiled(steps: &[Step]) -> f64 {
    let each = |s: &Step| match s {
        Step::Kernel { kernel, .. } => tiled_kernel(kernel),
        Step::Routine { routine, .. } => 60.0 + 0.3 * routine.work() as f64,
        Step::Switch { branches, .. } => branches.iter().map(|b| tiled(b)).fold(0.0, f64::max),
        _ => 30.0,
    };
    steps.iter().map(each).sum()
}
/// Code with each instruction replaced by its native equivalent.
pub(super) fn replaced(code: &[ScalarIns], what: Vec<Option<Function>>) -> Option<Vec<LoopOperation>> {
    let each = |(i, what): (&ScalarIns, Option<Function>)| {
        let call = if let Code::Call(f) = i.code { Some(CalledFn::new(f)) } else { None };
        Some(LoopOperation { what: Replaced { function: what?, d: i.d, ops: [i.a, i.b, i.c] }, call })
    };
    code.iter().zip(what).map(each).collect()
}
