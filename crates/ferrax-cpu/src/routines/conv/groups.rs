//! Grouped convolutions with few columns in each group: as many groups side by side as fill a vector.
//!
//! ```text
//! cell[q, i, p] = x[start + q * strides + p * group + i]        q a position that some window reads (0 where a guard refuses it), i of the unit
//! sums[row, o * P + p] = sum over terms of cell[q(row, term), i(row, term), p] * y[p, term, o]
//! ```
//!
//! The cells of P groups are copied once for all windows. Axes of rows and of terms are paired into levels of positions:
//!
//! | | axis of rows | axis of terms |
//! |---|---|---|
//! | forward, derivative by the input | output places | window taps |
//! | derivative by the weights | window taps | output places |
//!
//! An axis without a partner is a level of its own. The unit, channels of one group that are contiguous, is the last axis of either. Where cells are many,
//! the outermost level is processed in blocks of rows or of terms, in order.
use super::ConvAxes;
use super::grouped::{self, GroupedRows};
use super::interleaved::{Interleave, InterleaveFn, Placing, PlacingFn, pick_interleave, pick_place};
use super::lines::gcd;
use super::reading::{ReadAxis, Sides, ceil};
use crate::kernels::lane::Lane;
use crate::kernels::{Bases, Scratch};
use crate::routines::dot::is_small;
use crate::routines::{CompiledRoutine, Run};
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::Target;
use ferrax_kernel::Res;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use std::ops::Range;

/// Positions along which an axis of rows, one of terms or both go: elements from one to the next, and how far that moves each guard.
#[derive(Clone)]
struct Level {
    stride: i64,
    steps: Sides,
    /// How many indices, and positions from one to the next.
    rows: (usize, usize),
    terms: (usize, usize),
}
impl Level {
    fn positions(&self) -> usize {
        let along = |(n, step): (usize, usize)| (n - 1) * step;
        along(self.rows) + along(self.terms) + 1
    }
    fn of_rows(a: &ReadAxis) -> Level {
        Level { stride: a.stride, steps: a.steps.clone(), rows: (a.n, 1), terms: (1, 0) }
    }
    fn of_terms(a: &ReadAxis) -> Level {
        Level { stride: a.stride, steps: a.steps.clone(), rows: (1, 0), terms: (a.n, 1) }
    }
    /// For both, if they move through the same positions.
    fn of_both(r: &ReadAxis, t: &ReadAxis) -> Option<Level> {
        let stride = gcd(r.stride, t.stride);
        let [row, term] = [r.stride / stride, t.stride / stride];
        let steps: Sides = r.steps.iter().map(|s| s / row).collect();
        let agree = |a: &ReadAxis, by: i64| a.steps.iter().zip(&steps).all(|(s, one)| *s == one * by);
        let level = Level { stride, steps: steps.clone(), rows: (r.n, row as usize), terms: (t.n, term as usize) };
        (agree(r, row) && agree(t, term) && level.positions() <= 2 * r.n * t.n).then_some(level)
    }
}

/// Levels of these axes, the outermost first.
fn levels(mut rows: &[ReadAxis], mut terms: &[ReadAxis]) -> Option<Vec<Level>> {
    let mut levels = vec![];
    loop {
        let level = match (rows.split_last(), terms.split_last()) {
            (None, None) => break,
            (Some((r, rest)), None) => {
                rows = rest;
                Level::of_rows(r)
            }
            (None, Some((t, rest))) => {
                terms = rest;
                Level::of_terms(t)
            }
            (Some((r, other_rows)), Some((t, other_terms))) => {
                let meet = r.steps.iter().zip(&t.steps).any(|(a, b)| *a != 0 && *b != 0);
                let inside = |a: &ReadAxis, b: &ReadAxis| a.stride * a.n as i64 <= b.stride;
                if meet || !inside(r, t) && !inside(t, r) {
                    (rows, terms) = (other_rows, other_terms);
                    Level::of_both(r, t)?
                } else if inside(r, t) {
                    rows = other_rows;
                    Level::of_rows(r)
                } else {
                    terms = other_terms;
                    Level::of_terms(t)
                }
            }
        };
        levels.push(level);
    }
    levels.reverse();
    Some(levels)
}

/// Axes of more than one index; two that no guard distinguishes, and that have one stride, as one.
fn joined(axes: &[ReadAxis]) -> Vec<ReadAxis> {
    let mut out: Vec<ReadAxis> = vec![];
    for a in axes.iter().filter(|a| a.n > 1) {
        let free = |a: &ReadAxis| a.steps.iter().all(|s| *s == 0);
        match out.last_mut() {
            Some(last) if free(last) && free(a) && last.stride == a.stride * a.n as i64 => {
                (last.n, last.stride) = (last.n * a.n, a.stride)
            }
            _ => out.push(a.clone()),
        }
    }
    out
}

/// How groups are done.
struct GroupedWindows {
    /// For P groups.
    together: usize,
    lanes: usize,
    /// Channels of a group that lie side by side, in elements from group to group of x.
    unit: usize,
    group: i64,
    /// Axes that are taken index by index outside of the levels: each of rows is a unit of work, those of terms follow one another.
    outer_rows: Vec<ReadAxis>,
    outer_terms: Vec<ReadAxis>,
    levels: Vec<Level>,
    /// Indices of the first level that are done together: of its rows, or of its terms.
    block: usize,
    by_rows: bool,
    /// Elements of the cells at which each row of a block begins, and each term of one.
    rows: Vec<i32>,
    terms: Vec<i32>,
}

impl GroupedWindows {
    fn new(c: &Conv, axes: &ConvAxes, target: &Target) -> Option<GroupedWindows> {
        let (tier, tuning) = (target.tier, &target.tuning.conv);
        let nb = c.batch.len();
        let groups = *c.batch.last()?;
        let (lane, last) = (Lane::of(c.dtype), nb - 1);
        if groups < 2 || !matches!(lane, Lane::F32 | Lane::F64) || c.guards.iter().any(|g| g.at.stride(last) != 0) {
            return None;
        }
        let lanes = grouped::lanes(lane, tier);
        let together = (lanes / c.columns.next_power_of_two()).min(groups.next_power_of_two());
        // one group, or few lanes of a vector, are better done otherwise; so are rows that lie side by side, as vectors of rows
        if together < 2 || 4 * together * c.columns < lanes || c.out[nb] == 1 {
            return None;
        }
        let (mut rows, mut terms) = (joined(&axes.rows), joined(&axes.terms));
        let group = c.at.stride(last);
        let is_unit = |a: &ReadAxis| a.stride == 1 && a.n as i64 <= group && a.steps.iter().all(|s| *s == 0);
        let of_rows = rows.last().filter(|a| is_unit(a)).map(|a| a.n);
        let of_terms = terms.last().filter(|a| is_unit(a)).map(|a| a.n);
        if of_rows.is_some() {
            rows.pop();
        } else if of_terms.is_some() {
            terms.pop();
        }
        let unit = of_rows.or(of_terms).unwrap_or(1);
        if group < unit as i64 || rows.iter().chain(&terms).any(|a| a.stride <= 0 || a.steps.iter().any(|s| *s < 0)) {
            return None;
        }
        let mut levels = levels(&rows, &terms)?;
        let guards = c.guards.len();
        let (mut outer_rows, mut outer_terms) = (vec![ReadAxis::one(guards)], vec![ReadAxis::one(guards)]);
        while levels.len() > 1 && (levels[0].rows.0 == 1 || levels[0].terms.0 == 1) {
            let first = levels.remove(0);
            let axis = |n: usize| ReadAxis { n, stride: first.stride, steps: first.steps.clone(), unit: 1 };
            let to = if first.rows.0 > 1 { &mut outer_rows } else { &mut outer_terms };
            to.push(axis(first.rows.0.max(first.terms.0)));
        }
        if levels.is_empty() {
            levels.push(Level::of_rows(&ReadAxis::one(guards)));
        }
        let first = levels[0].clone();
        let by_rows = first.rows.0 >= first.terms.0;
        let inner: usize = levels[1..].iter().map(Level::positions).product();
        let cut = |block: usize| {
            let mut l = first.clone();
            if by_rows {
                l.rows.0 = block
            } else {
                l.terms.0 = block
            }
            l
        };
        let bytes = |block: usize| cut(block).positions() * inner * unit * together * lane.size();
        let all = if by_rows { first.rows.0 } else { first.terms.0 };
        let units = c.batch[..last].iter().product::<usize>()
            * groups.div_ceil(together)
            * outer_rows.iter().map(|a| a.n).product::<usize>();
        let fair = if by_rows { all.div_ceil(tuning.min_units.div_ceil(units.max(1))) } else { all };
        let block = (1..=fair).rev().find(|b| bytes(*b) <= tuning.near_cell_bytes).unwrap_or(1);
        if bytes(block) > tuning.max_cell_bytes {
            return None;
        }
        levels[0] = cut(block);
        // cells in row-major order of levels, unit, groups
        let mut apart = unit * together;
        let (mut row_axes, mut term_axes) = (vec![], vec![]);
        if of_rows.is_some() {
            row_axes.push((unit, together));
        } else if of_terms.is_some() {
            term_axes.push((unit, together));
        }
        for l in levels.iter().rev() {
            row_axes.push((l.rows.0, l.rows.1 * apart));
            term_axes.push((l.terms.0, l.terms.1 * apart));
            apart *= l.positions();
        }
        let table = |axes: &[(usize, usize)]| {
            axes.iter().rev().fold(vec![0i32], |begin, (n, step)| {
                begin.iter().flat_map(|b| (0..*n).map(move |i| b + (i * step) as i32)).collect()
            })
        };
        let (rows, terms) = (table(&row_axes), table(&term_axes));
        if rows.len().max(terms.len()) * lanes * lane.size() > tuning.max_cell_bytes {
            return None;
        }
        Some(GroupedWindows {
            together,
            lanes,
            unit,
            group,
            outer_rows,
            outer_terms,
            block,
            by_rows,
            rows,
            terms,
            levels,
        })
    }
    /// Elements of the cells.
    fn cells(&self) -> usize {
        self.levels.iter().map(Level::positions).product::<usize>() * self.unit * self.together
    }
    /// Copies the cells of `live` groups: the first level has `count` positions of them.
    ///
    /// # Safety
    /// Each element whose guards hold lies in `x`; `to` has [`Self::cells`], of `size` bytes each.
    unsafe fn copy(&self, to: *mut u8, x: *const u8, c: &CellRun, size: usize, run: InterleaveFn) {
        let (last, outer) = self.levels.split_last().expect("a level");
        let positions = if outer.is_empty() { c.count } else { last.positions() };
        let each = self.unit * self.together * size;
        let lines: usize =
            outer.iter().enumerate().map(|(k, l)| if k == 0 { c.count } else { l.positions() }).product();
        for line in 0..lines {
            let (mut rest, mut first, mut sides) = (line, c.first, c.sides.clone());
            for l in outer.iter().rev() {
                // the outermost position is the quotient that remains
                let q = if std::ptr::eq(l, &outer[0]) { rest } else { rest % l.positions() } as i64;
                rest /= l.positions();
                first += q * l.stride;
                sides.iter_mut().zip(&l.steps).for_each(|(s, by)| *s += q * by);
            }
            let (mut from, mut end) = (0, positions as i64);
            for ((base, by), (lo, hi)) in sides.iter().zip(&last.steps).zip(c.bounds) {
                match *by {
                    0 if base < lo || base >= hi => end = 0,
                    0 => (),
                    k => (from, end) = (from.max(ceil(lo - base, k)), end.min(ceil(hi - base, k))),
                }
            }
            let (from, end) = if from < end { (from as usize, end as usize) } else { (0, 0) };
            // SAFETY: by the contract; positions from..end passed the guards.
            unsafe {
                let to = to.add(line * positions * each);
                to.write_bytes(0, from * each);
                to.add(end * each).write_bytes(0, (positions - end) * each);
                run(&Interleave {
                    to: to.add(from * each),
                    from: x.wrapping_offset((first + from as i64 * last.stride) as isize * size as isize),
                    n: self.unit,
                    group: self.group as isize,
                    step: 1,
                    live: c.live,
                    positions: end - from,
                    apart: [each as isize, last.stride as isize * size as isize],
                });
            }
        }
    }
}
/// Which cells: the element and the sides of the guards at the first, their bounds, positions of the first level, groups.
struct CellRun<'a> {
    first: i64,
    sides: Sides,
    bounds: &'a [(i64, i64)],
    count: usize,
    live: usize,
}

/// Moves by the indices of the place `at` of these axes.
fn shifted(axes: &[ReadAxis], mut at: usize, first: &mut i64, sides: &mut Sides) {
    for a in axes.iter().rev() {
        let i = (at % a.n) as i64;
        at /= a.n;
        *first += i * a.stride;
        sides.iter_mut().zip(&a.steps).for_each(|(s, by)| *s += i * by);
    }
}

/// A convolution whose groups have few columns.
struct Groups {
    c: Conv,
    w: GroupedWindows,
    product: grouped::Grouped,
    interleave: InterleaveFn,
    place: PlacingFn,
    /// Bytes of an element.
    size: usize,
    /// The lowest and the highest index of each guard.
    bounds: Vec<(i64, i64)>,
    /// Indices of the outer axes of rows and of terms.
    outer: [usize; 2],
    /// Rows and terms within an index of these.
    m: usize,
    k: usize,
    /// Rows, or terms, of an index of the first level.
    each: usize,
    /// Blocks of rows, and of terms.
    row_blocks: usize,
    term_blocks: usize,
    /// Vectors of groups.
    vectors: usize,
    /// Whether y is read in place.
    dense_y: bool,
    /// Bytes of scratch memory: cells, sums, and a panel of y.
    cells: usize,
    sums: usize,
    panel: usize,
    cost: Cost,
}

/// The whole of a convolution whose groups have few columns, if it is one.
pub fn compile(c: &Conv, axes: &ConvAxes, target: &Target) -> Option<Run> {
    let (nb, lane, k, tier) = (c.batch.len(), Lane::of(c.dtype), c.terms.size(), target.tier);
    if k == 0 || is_small(c.rows.size() * c.columns * k, lane, tier, &target.tuning.dot) {
        return None;
    }
    let w = GroupedWindows::new(c, axes, target)?;
    let product = grouped::pick(lane, w.together, tier)?;
    let size = lane.size();
    let size_of = |axes: &[ReadAxis]| axes.iter().map(|a| a.n).product::<usize>();
    let outer = [size_of(&w.outer_rows), size_of(&w.outer_terms)];
    let (m, k) = (c.rows.size() / outer[0], k / outer[1]);
    let each = if w.by_rows { w.rows.len() } else { w.terms.len() } / w.block;
    let blocks = if w.by_rows { m } else { k }.div_ceil(each * w.block);
    let (row_blocks, term_blocks) = if w.by_rows { (blocks, 1) } else { (1, blocks) };
    let bytes = |n: usize| (n * size).next_multiple_of(64);
    Some(Box::new(Groups {
        product,
        interleave: pick_interleave(size, w.together, tier),
        place: pick_place(size, w.together, w.lanes, tier),
        size,
        bounds: c.guards.iter().map(|g| (g.lo, g.hi)).collect(),
        outer,
        m,
        k,
        each,
        row_blocks,
        term_blocks,
        vectors: c.batch[nb - 1].div_ceil(w.together),
        dense_y: w.together == w.lanes && c.y[nb - 1] == 1 && c.columns == 1,
        cells: bytes(w.cells()),
        sums: bytes(w.rows.len() * w.lanes),
        panel: bytes(w.terms.len() * w.lanes),
        cost: super::cost(c),
        c: c.clone(),
        w,
    }))
}
/// A block of rows of as many groups as fill a vector.
struct GroupBlock {
    /// The index of the batch, the group the last of it; groups that there are.
    b: Vec<usize>,
    live: usize,
    /// Index of the outer axes of rows; of the first level, the first row and how many.
    outer_row: usize,
    row_from: usize,
    row_count: usize,
    rows: usize,
}
impl Groups {
    /// An index of the first level's rows or terms, with how many are done.
    fn part(&self, block: usize, all: usize) -> (usize, usize) {
        (block * self.w.block, self.w.block.min(all / self.each - block * self.w.block))
    }
    fn block(&self, unit: usize) -> GroupBlock {
        let (c, w, last) = (&self.c, &self.w, self.c.batch.len() - 1);
        let (row_block, rest) = (unit % self.row_blocks, unit / self.row_blocks);
        let (outer_row, rest) = (rest % self.outer[0], rest / self.outer[0]);
        let group = rest % self.vectors * w.together;
        let mut b = c.batch[..last].to_vec();
        let mut left = rest / self.vectors;
        for (b, n) in b.iter_mut().zip(&c.batch[..last]).rev() {
            (*b, left) = (left % n, left / n);
        }
        b.push(group);
        let (row_from, row_count) = if w.by_rows { self.part(row_block, self.m) } else { (0, self.m) };
        let rows = if w.by_rows { row_count * self.each } else { self.m };
        GroupBlock { b, live: w.together.min(c.batch[last] - group), outer_row, row_from, row_count, rows }
    }
    fn along(&self, g: &GroupBlock, strides: &[usize]) -> usize {
        g.b.iter().zip(strides).map(|(i, s)| i * s).sum()
    }
    /// Adds the terms of block `t` to the sums.
    fn add_terms(&self, g: &GroupBlock, t: usize, [x, y]: [SharedPtr; 2], scratch: *mut u8) {
        let (c, w, nb, size) = (&self.c, &self.w, self.c.batch.len(), self.size);
        let (sums, to) = (scratch, scratch.wrapping_add(self.sums));
        let start = |a: &Affine| a.offset + (0..nb).map(|k| a.stride(k) * g.b[k] as i64).sum::<i64>();
        let (outer_term, term_block) = (t / self.term_blocks, t % self.term_blocks);
        let (term_from, term_count) = if w.by_rows { (0, 0) } else { self.part(term_block, self.k) };
        let terms = if w.by_rows { self.k } else { term_count * self.each };
        let term = outer_term * self.k + if w.by_rows { 0 } else { term_from * self.each };
        let (mut first, mut sides) = (start(&c.at), c.guards.iter().map(|g| start(&g.at)).collect::<Sides>());
        shifted(&w.outer_rows, g.outer_row, &mut first, &mut sides);
        shifted(&w.outer_terms, outer_term, &mut first, &mut sides);
        let level = &w.levels[0];
        let (by, block) = if w.by_rows {
            (g.row_from * level.rows.1, Level { rows: (g.row_count, level.rows.1), ..level.clone() })
        } else {
            (term_from * level.terms.1, Level { terms: (term_count, level.terms.1), ..level.clone() })
        };
        first += by as i64 * level.stride;
        sides.iter_mut().zip(&level.steps).for_each(|(s, step)| *s += by as i64 * step);
        let here = CellRun { first, sides, bounds: &self.bounds, count: block.positions(), live: g.live };
        let y = y.get().wrapping_add((self.along(g, &c.y) + term * c.y[nb]) * size).cast_const();
        // SAFETY: `Routine::verify` proved by `Conv::kernel` that every element whose guards hold
        // lies in x, and that the greatest positions of y lie inside it; scratch memory has the
        // sums of a block, its cells, and a panel of its terms.
        unsafe {
            w.copy(to, x.get().cast_const(), &here, size, self.interleave);
            let (y, y_row) = match self.dense_y && g.live == w.lanes {
                true => (y, c.y[nb]),
                false => (self.panel(y, terms, g.live, to.wrapping_add(self.cells)), w.lanes),
            };
            let (rows, terms) = (&w.rows[..g.rows], &w.terms[..terms]);
            (self.product)(&GroupedRows { x: to, rows, terms, y, y_row, sums, adds: t > 0 });
        }
    }
    /// The terms of y for `live` groups, interleaved.
    ///
    /// # Safety
    /// `y` has them, `panel` is scratch memory of a panel.
    unsafe fn panel(&self, y: *const u8, terms: usize, live: usize, panel: *mut u8) -> *const u8 {
        let (c, w, nb, size) = (&self.c, &self.w, self.c.batch.len(), self.size);
        // SAFETY: by the contract.
        unsafe {
            if w.together * c.columns < w.lanes {
                panel.write_bytes(0, terms * w.lanes * size);
            }
            (self.interleave)(&Interleave {
                to: panel,
                from: y,
                n: c.columns,
                group: c.y[nb - 1] as isize,
                step: c.y[nb + 1] as isize,
                live,
                positions: terms,
                apart: [(w.lanes * size) as isize, (c.y[nb] * size) as isize],
            });
        }
        panel.cast_const()
    }
    fn unit(&self, [x, y, out]: [SharedPtr; 3], unit: usize, scratch: *mut u8) {
        let (c, nb, g) = (&self.c, self.c.batch.len(), self.block(unit));
        (0..self.outer[1] * self.term_blocks).for_each(|t| self.add_terms(&g, t, [x, y], scratch));
        let row = g.outer_row * self.m + if self.w.by_rows { g.row_from * self.each } else { 0 };
        let to = out.get().wrapping_add((self.along(&g, &c.out) + row * c.out[nb]) * self.size);
        let strides = [c.out[nb], c.out[nb - 1], c.out[nb + 1]];
        let placing = Placing { to, sums: scratch, rows: g.rows, live: g.live, columns: c.columns, strides };
        // SAFETY: `Routine::verify` found the greatest positions of the result inside it; these rows of these groups are this unit's.
        unsafe { (self.place)(&placing) };
    }
}
impl CompiledRoutine for Groups {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let operands = [bases.input(0), bases.input(1), bases.output(0)].map(SharedPtr);
        let outer = self.c.batch[..self.c.batch.len() - 1].iter().product::<usize>();
        let units = outer * self.vectors * self.outer[0] * self.row_blocks;
        threads::try_ranges(units, parallel.then_some(&self.cost), bases.cancel, &|units: Range<usize>| {
            Scratch.with(self.sums + self.cells + self.panel, |scratch| {
                units.into_iter().for_each(|unit| self.unit(operands, unit, scratch));
            })
        })
    }
    fn text(&self) -> String {
        let w = &self.w;
        let of = if w.by_rows { "rows" } else { "terms" };
        format!("conv strategy=groups in_vector={} block={} of={of} levels={}", w.together, w.block, w.levels.len())
    }
}
