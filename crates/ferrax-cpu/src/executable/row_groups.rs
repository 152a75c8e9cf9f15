//! Row-fused groups: kernels and gathers over the same rows, run chunk by chunk. What one writes, the next reads from the cache.
//!
//! ```text
//!     softmax:   m = max x;  e = exp(x - m);  s = sum e;  y = e / s
//!
//!     one kernel at a time:   m, all rows;  e, all rows;  s, all rows;  y, all rows         x and e are read from memory twice
//!     one chunk at a time:    m, e, s, y of rows 0..5;  m, e, s, y of rows 5..10; ..        x is read once, and e is never materialized
//! ```
//!
//! A value that only the group reads lives in working memory of the thread, one chunk long.
//!
//! INVARIANT: a member computes its rows from the same rows of earlier members, and no two members touch different rows of memory that one of
//! them writes. So the order of rows does not matter, and the bits are those of the members run one after the other.
#![allow(unsafe_code)]
use super::{Compiler, Ready, RunState};
use crate::kernels::{Bases, GroupScratch};
use crate::lowering::{Cell, CompiledKernel, Location};
use crate::routines::Gathering;
use crate::threads::{self, Cost};
use ferrax_kernel::backend::RunCx;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::routine::Gather;
use ferrax_kernel::{Dims, Kernel, Node, Res, Routine};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The work of a member on its rows.
pub enum MemberWork {
    Kernel(CompiledKernel),
    /// Each row of the result is positions, whose indices are a row of the second operand.
    Gather(Gathering),
}
impl MemberWork {
    fn nanos(&self) -> f64 {
        match self {
            MemberWork::Kernel(k) => k.nanos(),
            MemberWork::Gather(g) => g.cost.estimate,
        }
    }
    /// Whether it can be cut into so many rows.
    fn splits(&self, rows: usize) -> bool {
        match self {
            MemberWork::Kernel(k) => k.splits(rows),
            MemberWork::Gather(g) => g.positions.is_multiple_of(rows),
        }
    }
    /// # Safety
    /// As [`CompiledKernel::run_rows`], or [`Gathering::run_positions`] of the positions of these rows.
    unsafe fn run_rows(&self, bases: Bases, rows: Range<usize>, of: usize) -> Res<()> {
        match self {
            // SAFETY: by the contract.
            MemberWork::Kernel(k) => unsafe { k.run_rows(bases, rows, of) },
            MemberWork::Gather(g) => {
                let each = g.positions / of;
                // SAFETY: by the contract.
                unsafe { g.run_positions(bases, rows.start * each..rows.end * each) };
                Ok(())
            }
        }
    }
}
struct Member {
    work: MemberWork,
    ins: Box<[Cell]>,
    outs: Box<[Cell]>,
}
impl Member {
    fn alone(self) -> Ready {
        let Member { work, ins, outs } = self;
        match work {
            MemberWork::Kernel(kernel) => Ready::Kernel { kernel, ins, outs },
            MemberWork::Gather(g) => Ready::Routine { run: Box::new(g), ins, outs },
        }
    }
}
/// A cell that lives in working memory: where, and how many bytes a row of it has.
struct Inner {
    cell: Cell,
    at: usize,
    row_bytes: usize,
}
pub struct RowGroup {
    members: Vec<Member>,
    rows: usize,
    /// Rows of a chunk.
    step: usize,
    inner: Vec<Inner>,
    inner_bytes: usize,
    cost: Cost,
}

/// A step that may become a member, as the plan holds it.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    Kernel(&'a Kernel),
    Gather(&'a Gather),
}
impl Origin<'_> {
    /// The dimensions that rows are made up of, from the first on.
    fn dims(&self) -> &[usize] {
        match self {
            Origin::Kernel(k) => &k.grid,
            Origin::Gather(g) => &g.out[..g.offset_dims.first().copied().unwrap_or(g.out.len())],
        }
    }
    /// How many leading dimensions make up so many rows.
    fn leading(&self, rows: usize) -> Option<usize> {
        let mut n = 1;
        self.dims().iter().position(|d| {
            n *= d;
            n == rows
        })
    }
    /// Whether it reads of this operand, for each of so many rows, the same row of it.
    fn reads_by_rows(&self, input: usize, rows: usize) -> bool {
        match (self, self.leading(rows)) {
            (_, None) => false,
            (Origin::Kernel(k), Some(last)) => reads_by_rows(k, input, rows, last),
            (Origin::Gather(_), _) => input > 0,
        }
    }
}
struct Prospect<'a> {
    of: Origin<'a>,
    member: Member,
    in_slots: &'a [SlotId],
    out_slots: &'a [SlotId],
}
/// Kernels that follow one another, as long as they make a group.
#[derive(Default)]
pub struct RowGroupBuilder<'a> {
    prospects: Vec<Prospect<'a>>,
    rows: usize,
    /// The cells that an enclosing loop carries: the one that is read, and the one that holds the
    /// next value.
    carried: Vec<(Cell, Cell)>,
}

impl<'a> RowGroupBuilder<'a> {
    /// Adds a kernel or a gather. If it cannot join the group, the group is emitted first.
    pub fn add(
        &mut self,
        c: &mut Compiler,
        (of, work): (Origin<'a>, MemberWork),
        (in_slots, out_slots): (&'a [SlotId], &'a [SlotId]),
        out: &mut Vec<Ready>,
    ) {
        let member = Member { work, ins: c.cells(in_slots), outs: c.cells(out_slots) };
        if !c.leaves_cache {
            return out.push(member.alone());
        }
        self.prospects.push(Prospect { of, member, in_slots, out_slots });
        // PERF: members that were compatible without the new one still are, so only pairs with the
        // new one are checked.
        let known = self.prospects.len() - 1;
        let fits = self.prospects.len() <= c.target.tuning.row_groups.max_members;
        if fits && self.rows > 0 && self.holds(c, self.rows, known) {
            return;
        }
        match if fits { self.common_rows(c) } else { None } {
            Some(rows) => self.rows = rows,
            None => {
                let last = self.prospects.pop();
                self.finish(c, out);
                self.prospects.extend(last);
                self.rows = self.common_rows(c).unwrap_or(0);
            }
        }
    }
    pub fn is_empty(&self) -> bool {
        self.prospects.is_empty()
    }
    /// Whether a step has no data dependence on the group: it will be a member, or touches no
    /// memory that members touch.
    pub fn can_reorder_before(&self, c: &Compiler, s: &Step) -> bool {
        let (kernel, ins, outs) = match s {
            Step::Kernel { kernel, ins, outs } => (kernel, ins, outs),
            Step::Routine { routine, .. } if matches!(**routine, Routine::Gather(_)) => return true,
            _ => return self.prospects.is_empty(),
        };
        if self.prospects.is_empty() || kernel.domain().size() > 1 {
            return true;
        }
        // Inner cells of a group that does not form stay in the arena.
        let pays = self.pays(c);
        let meets = |s: &SlotId, cell: Cell, bytes: usize| {
            let apart = || {
                let other = (c.cell(*s), c.bytes(*s));
                pays && is_inner(c, &self.prospects, cell) || !overlap(c, other, (cell, bytes))
            };
            c.cell(*s) == cell || !apart()
        };
        let touched = touched(c, &self.prospects);
        let is_written = |cell: Cell| self.prospects.iter().any(|l| l.member.outs.contains(&cell));
        touched.iter().all(|(cell, bytes)| {
            outs.iter().all(|s| !meets(s, *cell, *bytes))
                && (!is_written(*cell) || ins.iter().all(|s| !meets(s, *cell, *bytes)))
        })
    }
    /// Whether the members so far form a group in any case: their memory exceeds the cache, and an
    /// array that several members touch would be evicted before the second member touches it. Small
    /// arrays stay in the cache.
    fn pays(&self, c: &Compiler) -> bool {
        let all = &self.prospects;
        let (touched, t) = (streamed(c, all), &c.target.tuning.row_groups);
        let members =
            |cell: Cell| all.iter().filter(|l| l.member.ins.contains(&cell) || l.member.outs.contains(&cell)).count();
        self.rows > 1
            && touched.iter().any(|(cell, bytes)| *bytes > t.max_chunk_bytes && members(*cell) > 1)
            && touched.iter().map(|t| t.1).sum::<usize>() >= t.min_plan_bytes
    }
    /// Emits the members so far as steps.
    pub fn finish(&mut self, c: &mut Compiler, out: &mut Vec<Ready>) {
        let pays = self.pays(c);
        let prospects = std::mem::take(&mut self.prospects);
        let rows = std::mem::take(&mut self.rows);
        if pays {
            let bytes: usize = streamed(c, &prospects).iter().map(|t| t.1).sum();
            // A multiple of the pieces of work (`threads::for_ranges`): a thread that ends early
            // would sleep, and wake late for the next group.
            let rows_of_chunk = c.target.tuning.row_groups.max_chunk_bytes / (bytes / rows).max(1);
            let chunks = rows.div_ceil(rows_of_chunk.max(1)).next_multiple_of(4 * threads::num_threads());
            let group = row_group(c, prospects, rows, rows.div_ceil(chunks));
            return out.push(Ready::RowGroup(Box::new(group)));
        }
        out.extend(prospects.into_iter().map(|l| l.member.alone()));
    }
    /// The most rows into which all prospects can be cut.
    fn common_rows(&self, c: &Compiler) -> Option<usize> {
        let first = self.prospects.first()?;
        let mut counts: SmallVec<[usize; 4]> = SmallVec::new();
        first.of.dims().iter().fold(1, |n, d| {
            counts.push(n * d);
            n * d
        });
        counts.reverse();
        counts.dedup();
        counts.into_iter().find(|rows| *rows > 1 && self.holds(c, *rows, 0))
    }
    /// The invariant, for so many rows, where it is `known` of the first prospects.
    fn holds(&self, c: &Compiler, rows: usize, known: usize) -> bool {
        let all = &self.prospects;
        let (old, new) = all.split_at(known);
        let touched = touched(c, all);
        let cuts = |l: &Prospect| l.of.leading(rows).is_some() && l.member.work.splits(rows);
        if !new.iter().all(cuts)
            || streamed(c, all).iter().map(|t| t.1).sum::<usize>() / rows > c.target.tuning.row_groups.max_chunk_bytes
        {
            return false;
        }
        let bytes = |cell: Cell| touched.binary_search_by_key(&cell, |t| t.0).map_or(0, |at| touched[at].1);
        // Inner cells overlap nothing, wherever the plan has them. PERF: that is checked last, since few cells meet.
        let meet = |a: Cell, b: Cell| {
            a == b || overlap(c, (a, bytes(a)), (b, bytes(b))) && !is_inner(c, all, a) && !is_inner(c, all, b)
        };
        let alike = |a: Cell, b: Cell| a == b || bytes(a) == bytes(b) && c.meet(a, b);
        let written = |of: &[Prospect]| -> SmallVec<[Cell; 8]> {
            let mut cells: SmallVec<[Cell; 8]> = of.iter().flat_map(|l| l.member.outs.iter().copied()).collect();
            cells.extend(self.carried.iter().flat_map(|(slot, next)| [*slot, *next]));
            cells
        };
        let (by_all, by_new) = (written(all), written(new));
        let reads_rows = |of: &[Prospect], by: &[Cell]| {
            of.iter().all(|l| {
                l.member.ins.iter().enumerate().all(|(input, cell)| {
                    by.iter().all(|w| !meet(*cell, *w) || alike(*cell, *w) && l.of.reads_by_rows(input, rows))
                })
            })
        };
        reads_rows(new, &by_all)
            && reads_rows(old, &by_new)
            && by_new.iter().all(|a| by_all.iter().all(|b| !meet(*a, *b) || alike(*a, *b)))
    }
}

/// Cells with their bytes, in order.
type Cells = Vec<(Cell, usize)>;
fn cells<'a>(c: &Compiler, slots: impl Iterator<Item = &'a SlotId>) -> Cells {
    let mut cells: Cells = slots.map(|s| (c.cell(*s), c.bytes(*s))).collect();
    cells.sort_by_key(|x| x.0);
    cells.dedup_by_key(|x| x.0);
    cells
}
/// The buffers that members read or write.
fn touched(c: &Compiler, all: &[Prospect]) -> Cells {
    cells(c, all.iter().flat_map(|l| l.in_slots.iter().chain(l.out_slots)))
}
/// The cells that members traverse row by row. Gathers read their operands at any position.
fn streamed(c: &Compiler, all: &[Prospect]) -> Cells {
    let skipped = |l: &Prospect| usize::from(matches!(l.of, Origin::Gather(_)));
    cells(c, all.iter().flat_map(|l| l.in_slots[skipped(l)..].iter().chain(l.out_slots)))
}
/// Whether the members write this cell before they read it, and nothing else reads it.
fn is_inner(c: &Compiler, all: &[Prospect], cell: Cell) -> bool {
    let touches = |cells: &[Cell]| cells.iter().filter(|x| **x == cell).count();
    let first = all.iter().find(|l| touches(&l.member.ins) + touches(&l.member.outs) > 0);
    let reads: usize = all.iter().map(|l| touches(&l.member.ins)).sum();
    matches!(c.locations[cell as usize], Location::Arena(_))
        && first.is_some_and(|l| touches(&l.member.ins) == 0)
        && reads == c.reads(cell)
}
/// Whether bytes of the two cells, of so many each, may be the same memory.
fn overlap(c: &Compiler, (a, bytes_of_a): (Cell, usize), (b, bytes_of_b): (Cell, usize)) -> bool {
    #[cfg(test)]
    tests::LOOKS.with(|n| n.set(n.get() + 1));
    match (c.locations[a as usize], c.locations[b as usize]) {
        // A window overlaps the array that it runs along, at an unknown position.
        (Location::Window | Location::Tape(_), _) | (_, Location::Window | Location::Tape(_)) => true,
        _ => c.overlap((a, bytes_of_a), (b, bytes_of_b)),
    }
}
/// Whether the kernel reads of this input, for each of so many rows, which end with this dimension of its grid, the same row of it.
fn reads_by_rows(k: &Kernel, input: usize, rows: usize, last: usize) -> bool {
    let len = k.inputs[input].1;
    let width = (len / rows) as i64;
    let mut rest = k.domain();
    rest[..=last].fill(1);
    let whole = |a: &Access| {
        let mut step = width;
        let dense = (0..=last).rev().all(|d| {
            let right = k.grid[d] == 1 || a.at.stride(d) == step;
            step *= k.grid[d] as i64;
            right
        });
        dense && range_of(a, &k.domain(), &rest).is_none_or(|(lo, hi)| lo >= 0 && hi < width as i128)
    };
    len.is_multiple_of(rows)
        && k.nodes.iter().all(|(_, n)| !matches!(n, Node::Load(a) if a.input as usize == input && !whole(a)))
}
/// The range of elements that a load reads at indices below `rest`, where its guards along one
/// dimension hold; none where it reads nothing.
fn range_of(a: &Access, domain: &Dims, rest: &Dims) -> Option<(i128, i128)> {
    let mut within: SmallVec<[(i128, i128); 6]> = rest.iter().map(|n| (0, *n as i128 - 1)).collect();
    for g in &a.guards {
        let mut varying = (0..domain.len()).filter(|d| domain[*d] > 1 && g.at.stride(*d) != 0);
        let (Some(d), None) = (varying.next(), varying.next()) else { continue };
        if g.at.stride(d) == 1 && rest[d] == domain[d] {
            let (from, to) = &mut within[d];
            *from = (*from).max(g.lo as i128 - g.at.offset as i128);
            *to = (*to).min(g.hi as i128 - 1 - g.at.offset as i128);
        }
    }
    let mut lo = a.at.offset as i128;
    let mut hi = lo;
    for (d, (from, to)) in within.iter().enumerate() {
        if from > to {
            return None;
        }
        let ends = [from * a.at.stride(d) as i128, to * a.at.stride(d) as i128];
        lo += ends[0].min(ends[1]);
        hi += ends[0].max(ends[1]);
    }
    Some((lo, hi))
}
fn row_group(c: &Compiler, prospects: Vec<Prospect>, rows: usize, step: usize) -> RowGroup {
    let (mut inner, mut inner_bytes) = (vec![], 0);
    for (cell, bytes) in touched(c, &prospects) {
        if is_inner(c, &prospects, cell) {
            let row_bytes = bytes / rows;
            inner.push(Inner { cell, at: inner_bytes, row_bytes });
            inner_bytes += (row_bytes * step).next_multiple_of(64);
        }
    }
    for l in &prospects {
        if let MemberWork::Kernel(k) = &l.member.work {
            k.in_parts(rows);
        }
    }
    let cost = Cost::of(prospects.iter().map(|l| l.member.work.nanos()).sum());
    RowGroup { members: prospects.into_iter().map(|l| l.member).collect(), rows, step, inner, inner_bytes, cost }
}

/// Turns the steps of a loop's body into a group that does all iterations of a chunk before the
/// next chunk, if each row of a carry depends on the same rows only. Otherwise returns the steps
/// unchanged.
pub fn of_loop(
    c: &Compiler,
    body: &[Step],
    ready: Vec<Ready>,
    carried: Vec<(Cell, Cell)>,
) -> std::result::Result<RowGroup, Vec<Ready>> {
    let t = &c.target.tuning.row_groups;
    let is_link = |r: &Ready| match r {
        Ready::Kernel { .. } => true,
        Ready::RowGroup(group) => group.members.iter().all(|l| matches!(l.work, MemberWork::Kernel(_))),
        _ => false,
    };
    if ready.is_empty() || !ready.iter().all(is_link) {
        return Err(ready);
    }
    // each member is one of the steps
    let step_of = |ins: &[Cell], outs: &[Cell]| {
        body.iter().find_map(|s| match s {
            Step::Kernel { kernel, ins: i, outs: o } if *c.cells(i) == *ins && *c.cells(o) == *outs => {
                Some((kernel, i, o))
            }
            _ => None,
        })
    };
    let cells = |r: &Ready| -> Vec<(Box<[Cell]>, Box<[Cell]>)> {
        match r {
            Ready::Kernel { ins, outs, .. } => vec![(ins.clone(), outs.clone())],
            Ready::RowGroup(group) => group.members.iter().map(|l| (l.ins.clone(), l.outs.clone())).collect(),
            _ => vec![],
        }
    };
    let all: Vec<_> = ready.iter().flat_map(cells).collect();
    let writes = |cell: Cell| all.iter().flat_map(|l| l.1.iter()).filter(|o| **o == cell).count();
    if all.len() > t.max_members
        || !all.iter().all(|(i, o)| step_of(i, o).is_some())
        || !carried.iter().all(|(slot, next)| writes(*next) == 1 && (slot == next || writes(*slot) == 0))
    {
        return Err(ready);
    }
    let mut builder = RowGroupBuilder { carried, ..RowGroupBuilder::default() };
    let members = ready.into_iter().flat_map(|r| match r {
        Ready::Kernel { kernel, ins, outs } => vec![Member { work: MemberWork::Kernel(kernel), ins, outs }],
        Ready::RowGroup(group) => group.members,
        _ => vec![],
    });
    for member in members {
        let Some((kernel, in_slots, out_slots)) = step_of(&member.ins, &member.outs) else {
            unreachable!("seen above")
        };
        builder.prospects.push(Prospect { of: Origin::Kernel(kernel), member, in_slots, out_slots });
    }
    let bytes: usize = streamed(c, &builder.prospects).iter().map(|t| t.1).sum();
    let rows = builder.common_rows(c).filter(|_| bytes >= t.min_loop_bytes);
    let trades = |cell: Cell| builder.carried.iter().any(|(a, b)| [*a, *b].contains(&cell));
    let is_lost =
        touched(c, &builder.prospects).iter().any(|(cell, _)| trades(*cell) && is_inner(c, &builder.prospects, *cell));
    let Some(rows) = rows.filter(|_| !is_lost) else {
        return Err(builder.prospects.into_iter().map(|l| l.member.alone()).collect());
    };
    let threads = threads::num_threads();
    let chunks = if bytes < threads * t.min_loop_bytes {
        1
    } else {
        bytes.div_ceil(t.near_loop_bytes).next_multiple_of(threads)
    };
    Ok(row_group(c, builder.prospects, rows, rows.div_ceil(chunks)))
}

impl RowGroup {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        self.run_times(1, &self.cost, &[], state, cx)
    }
    /// Estimated time of one run.
    pub fn nanos(&self) -> f64 {
        self.cost.estimate
    }
    /// Runs so many times, all of a chunk before the next chunk; after each run these cells are exchanged.
    pub fn run_times(
        &self,
        times: usize,
        cost: &Cost,
        trading: &[(Cell, Cell)],
        state: &mut RunState,
        cx: &RunCx,
    ) -> Res<()> {
        state.launches += (self.members.len() * times) as u64;
        for l in &self.members {
            if let MemberWork::Kernel(k) = &l.work {
                k.expect(times);
            }
        }
        let bases = Bases { ptrs: &state.ptrs, ins: &[], outs: &[], cancel: cx.cancel };
        threads::try_ranges(self.rows.div_ceil(self.step), Some(cost), cx.cancel, &|chunks| {
            let bases = &bases;
            GroupScratch.with(self.inner_bytes, |memory| {
                let whole: SmallVec<[*mut u8; 16]> = SmallVec::from_slice(bases.ptrs);
                let mut ptrs = whole.clone();
                for k in chunks {
                    let (from, to) = (k * self.step, self.rows.min((k + 1) * self.step));
                    ptrs.copy_from_slice(&whole);
                    for i in &self.inner {
                        // The address of row 0, if all rows were in memory.
                        ptrs[i.cell as usize] = memory.wrapping_add(i.at).wrapping_sub(from * i.row_bytes);
                    }
                    for _ in 0..times {
                        if bases.cancel.load(Ordering::Relaxed) {
                            return Ok(());
                        }
                        for l in &self.members {
                            let bases = Bases { ptrs: &ptrs, ins: &l.ins, outs: &l.outs, ..*bases };
                            // SAFETY: cells that are not inner are valid as `run_steps` says for a
                            // kernel, by verify; rows belong to this thread, and other threads
                            // write other rows meanwhile, which this member does not touch
                            // (`RowGroupBuilder::holds`), in this iteration or another. An inner
                            // cell's rows from..to lie in `memory`, which has `inner_bytes`; a
                            // member touches no others (`reads_by_rows`), and earlier members have
                            // written them (`is_inner`).
                            unsafe { l.work.run_rows(bases, from..to, self.rows) }?;
                        }
                        trading.iter().for_each(|(a, b)| ptrs.swap(*a as usize, *b as usize));
                    }
                }
                Ok(())
            })?
        })
    }
    pub fn members(&self) -> impl Iterator<Item = (&MemberWork, &[Cell], &[Cell])> {
        self.members.iter().map(|l| (&l.work, &*l.ins, &*l.outs))
    }
    pub fn text(&self) -> String {
        format!(
            "row-fused group of {} over {} rows, {} at a time, {} bytes inside",
            self.members.len(),
            self.rows,
            self.step,
            self.inner_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::CpuBackend;
    use ferrax_kernel::backend::Backend;
    use ferrax_kernel::kernel::Access;
    use ferrax_kernel::plan::{Place, SlotId, Step};
    use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, Plan, Scalar};
    use std::cell::Cell;

    thread_local! { pub static LOOKS: Cell<usize> = const { Cell::new(0) } }

    /// How many prospects are examined while so many independent kernels might become groups.
    fn looks(kernels: usize) -> usize {
        const N: usize = 4096;
        const EACH: usize = 8;
        let mut k = Kernel { grid: [N].into(), inputs: vec![(DType::F32, N); 2 * EACH], ..Kernel::default() };
        for input in 0..2 * EACH as u32 {
            let (at, fill) = (Affine::new(0, [1]), Scalar::zero(DType::F32));
            k.nodes.push((DType::F32, Node::Load(Box::new(Access { input, at, guards: Default::default(), fill }))));
        }
        for j in 0..EACH as u32 {
            k.nodes.push((DType::F32, Node::Bin(Bin::Add, 2 * j, 2 * j + 1)));
            k.outputs.push(2 * EACH as u32 + j);
        }
        let mut p = Plan::default();
        for _ in 0..kernels {
            let ins: Vec<SlotId> = (0..2 * EACH).map(|_| p.add_slot(DType::F32, N, 0)).collect();
            let outs: Vec<SlotId> = (0..EACH).map(|_| p.add_slot(DType::F32, N, 0)).collect();
            p.places.extend((p.inputs.len()..).take(ins.len()).map(|i| Place::Input(i as u32)));
            p.places.extend((p.outputs.len()..).take(outs.len()).map(|i| Place::Output(i as u32)));
            p.inputs.extend(&ins);
            p.outputs.extend(&outs);
            p.steps.push(Step::Kernel { kernel: k.clone().into(), ins, outs });
        }
        p.donatable = vec![None; p.outputs.len()];
        LOOKS.with(|n| n.set(0));
        CpuBackend::new().compile(p.verify().unwrap()).unwrap();
        LOOKS.with(Cell::get)
    }
    #[test]
    fn chains_are_found_in_a_time_that_grows_with_kernels() {
        let (once, twice) = (looks(100), looks(200));
        assert!(once > 0 && 4 * twice <= 9 * once, "{once}, then {twice}");
        // each prospect is compared with each possible member of a group, once
        assert!(once <= 100 * crate::tuning::RowGroupTuning::DEFAULT.max_members * 8 * 24 * 2, "{once}");
    }
}
