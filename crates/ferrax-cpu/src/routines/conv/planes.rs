//! Convolutions by planes: part of each plane of the input is copied once for all windows, zero padded, and vectors go along its lines.
//!
//! ```text
//! plane[h, w] = x[start + h * line + w]                     h and w from before the first window to behind the last
//! term (c, i, j) of the output place (h, w) = plane_c[h * step + i * dilation, w + j * dilation]
//! out[n, h, ..] = sum over terms of y[term, n] * plane_c[h * step + i * dilation, .. + j * dilation]
//! ```
//!
//! A line of output places is a row of the right operand for each term; one table says where the row of each term begins, for all lines. Which axes
//! are a plane's lines and windows is found by their strides. Further axes of terms number the planes.
use super::ConvAxes;
use super::lines::gcd;
use super::reading::{ReadAxis, Sides, ceil, places};
use crate::kernels::lane::Lane;
use crate::kernels::{Bases, Scratch};
use crate::routines::{CompiledRoutine, Run};
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::ConvTuning;
use crate::tuning::Target;
use ferrax_host::panel::{MEMORY, Matrices, RowsByTable, SLACK, pick_by_table};
use ferrax_kernel::Res;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use std::ops::Range;

struct WindowPlanes {
    /// Lines of places, and places on each.
    height: usize,
    along: usize,
    /// Lines of a plane from line to line of places, and between the first and the last that a window reads.
    step: usize,
    reach: usize,
    /// Positions on a line of a plane; how far a line of it, and a position on it, move each guard; elements from line to line.
    positions: usize,
    by_line: Sides,
    by_position: Sides,
    line: i64,
    /// The axes of rows that are left, and of terms.
    rows: Vec<ReadAxis>,
    planes: Vec<ReadAxis>,
    /// Lines of places that are done together, and where each term begins.
    block: usize,
    table: Vec<i32>,
}
impl WindowPlanes {
    /// The windows of rows and of terms, if they have such windows.
    fn new(axes: &ConvAxes, lines_of_places: usize, size: usize, tuning: &ConvTuning) -> Option<WindowPlanes> {
        let (w, rows) = axes.rows.split_last()?;
        let (j, terms) = axes.terms.split_last()?;
        let times = |by: i64, of: &Sides| of.iter().map(|s| s * by).collect::<Sides>();
        if w.stride != 1
            || w.n < tuning.min_windows_on_line
            || j.stride < 0
            || j.n < 2
            || j.steps != times(j.stride, &w.steps)
            || w.steps.iter().any(|s| *s < 0)
        {
            return None;
        }
        let positions = w.n + (j.n - 1) * j.stride as usize;
        let guards = w.steps.len();
        // the next axes of both, where they belong together
        let next = rows.split_last().zip(terms.split_last()).and_then(|((h, rows), (i, terms))| {
            let line = gcd(h.stride, i.stride);
            if h.n < 2 || i.n < 2 || h.stride <= 0 || i.stride <= 0 {
                return None;
            }
            let (step, dilation) = (h.stride / line, i.stride / line);
            let by_line: Sides = h.steps.iter().map(|s| s / step).collect();
            let agree = h.steps == times(step, &by_line) && i.steps == times(dilation, &by_line);
            let is_dense = (h.n - 1) * step as usize + (i.n - 1) * dilation as usize <= 2 * h.n * i.n;
            (agree && is_dense).then_some((h.n, step as usize, i.n, dilation as usize, line, by_line, rows, terms))
        });
        let one = (1, 1, 1, 1, 0, Sides::from_elem(0, guards), rows, terms);
        let (height, step, lines, dilation, line, by_line, rows, terms) = next.unwrap_or(one);
        let reach = (lines - 1) * dilation + 1;
        let count: usize = terms.iter().map(|t| t.len()).product();
        let bytes = |block: usize| count * ((block - 1) * step + reach) * positions * size;
        let fair = lines_of_places.div_ceil(tuning.min_units).max(1);
        let block = (1..=height.min(fair)).rev().find(|b| bytes(*b) <= tuning.max_line_bytes)?;
        let plane = ((block - 1) * step + reach) * positions;
        let begin = |p: usize, i: usize, j_of: usize| p * plane + i * dilation * positions + j_of * j.stride as usize;
        let table = (0..count).flat_map(|p| (0..lines).flat_map(move |i| (0..j.n).map(move |k| begin(p, i, k) as i32)));
        let with_one = |axes: &[ReadAxis]| {
            let mut axes = axes.to_vec();
            axes.push(ReadAxis::one(guards));
            axes
        };
        Some(WindowPlanes {
            height,
            along: w.n,
            step,
            reach,
            positions,
            by_line,
            by_position: w.steps.clone(),
            line,
            rows: with_one(rows),
            planes: with_one(terms),
            block,
            table: table.collect(),
        })
    }
    /// Lines of a plane that some lines of places are read from.
    fn lines(&self, block: usize) -> usize {
        (block - 1) * self.step + self.reach
    }
    /// Elements of scratch memory.
    fn room(&self) -> usize {
        self.planes.iter().map(|p| p.len()).product::<usize>() * self.lines(self.block) * self.positions + SLACK
    }
    /// Copies `count` lines of a plane from `x` on, zeros where guards fail: `bounds` are lowest,
    /// highest and first position.
    ///
    /// # Safety
    /// Each element whose guards hold lies in `x`; `to` has room for the lines.
    unsafe fn copy<T: Copy>(
        &self,
        to: *mut T,
        x: *const T,
        first: i64,
        sides: &[i64],
        bounds: &[(i64, i64, i64)],
        count: usize,
    ) {
        for h in 0..count {
            let (mut from, mut end) = (0, self.positions as i64);
            for (g, (lo, hi, start)) in bounds.iter().enumerate() {
                let base = start + sides[g] + h as i64 * self.by_line[g];
                match self.by_position[g] {
                    0 if base < *lo || base >= *hi => end = 0,
                    0 => (),
                    k => (from, end) = (from.max(ceil(lo - base, k)), end.min(ceil(hi - base, k))),
                }
            }
            let (from, end) = if from < end { (from as usize, end as usize) } else { (0, 0) };
            // SAFETY: by the contract; positions from..end passed the guards.
            unsafe {
                let to = to.add(h * self.positions);
                to.write_bytes(0, from);
                to.add(end).write_bytes(0, self.positions - end);
                let x = x.wrapping_offset((first + h as i64 * self.line + from as i64) as isize);
                to.add(from).copy_from_nonoverlapping(x, end - from);
            }
        }
    }
}

/// A convolution by planes.
struct Planes {
    c: Conv,
    p: WindowPlanes,
    product: RowsByTable,
    /// Bytes of an element.
    size: usize,
    /// The lowest, the highest and the first index of each guard.
    bounds: Vec<(i64, i64, i64)>,
    /// Rows outside of planes, and blocks of lines of places on each.
    outer: usize,
    blocks: usize,
    cost: Cost,
}

/// A convolution whose result is contiguous along its places, if its windows are planes.
pub fn compile(c: &Conv, axes: &ConvAxes, target: &Target) -> Option<Run> {
    let (nb, lane) = (c.batch.len(), Lane::of(c.dtype));
    let product = pick_by_table(lane.dtype(), target.tier)?;
    let lines_of_places = c.batch.size() * (c.rows.size() / axes.rows.last()?.n.max(1));
    let planes = WindowPlanes::new(axes, lines_of_places, lane.size(), &target.tuning.conv);
    let p = planes.filter(|_| c.out[nb] == 1)?;
    Some(Box::new(Planes {
        product,
        size: lane.size(),
        bounds: c.guards.iter().map(|g| (g.lo, g.hi, g.at.offset)).collect(),
        outer: c.rows.size() / (p.height * p.along).max(1),
        blocks: p.height.div_ceil(p.block),
        cost: super::cost(c),
        c: c.clone(),
        p,
    }))
}
impl Planes {
    fn unit(&self, [x, y, out]: [SharedPtr; 3], unit: usize, scratch: *mut u8) -> Res<()> {
        let (c, p, size, nb, guards) = (&self.c, &self.p, self.size, self.c.batch.len(), self.c.guards.len());
        let own = scratch.wrapping_add(MEMORY);
        let b = c.batch.unravel(unit / (self.outer * self.blocks));
        let (row, h) = (unit / self.blocks % self.outer, unit % self.blocks * p.block);
        let count = p.block.min(p.height - h);
        let along = |strides: &[usize]| b.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
        let start = |a: &Affine| (0..nb).map(|k| a.stride(k) * b[k] as i64).sum::<i64>();
        let here = places(&p.rows, row..row + 1, guards)?.remove(0);
        let lines_before = (h * p.step) as i64;
        let first = c.at.offset + start(&c.at) + here.offset + lines_before * p.line;
        let each = p.lines(p.block) * p.positions;
        let planes = p.planes.iter().map(|a| a.len()).product::<usize>();
        for (i, t) in places(&p.planes, 0..planes, guards)?.into_iter().enumerate() {
            let sides: Sides = (0..guards)
                .map(|g| start(&c.guards[g].at) + here.sides[g] + t.sides[g] + lines_before * p.by_line[g])
                .collect();
            let (to, x, bounds) = (own.wrapping_add(i * each * size), x.get().cast_const(), &self.bounds);
            // SAFETY: `Routine::verify` proved by `Conv::kernel` that every element whose guards
            // hold lies in x; the scratch memory has `WindowPlanes::room` behind `MEMORY`.
            unsafe {
                match size {
                    4 => p.copy::<u32>(to.cast(), x.cast(), first + t.offset, &sides, bounds, p.lines(count)),
                    _ => p.copy::<u64>(to.cast(), x.cast(), first + t.offset, &sides, bounds, p.lines(count)),
                }
            }
        }
        for line in 0..count {
            let to = along(&c.out) + (row * p.height + h + line) * p.along;
            let at = |p: *mut u8, i: usize| p.wrapping_add(i * size);
            let m = Matrices {
                a: at(y.get(), along(&c.y)),
                b: at(own, line * p.step * p.positions),
                c: at(out.get(), to),
                m: c.columns,
                n: p.along,
                k: p.table.len(),
                a_strides: [c.y[nb + 1] as isize, c.y[nb] as isize],
                b_strides: [0, 1],
                c_row: c.out[nb + 1],
                adds: false,
                scratch,
                blocks: std::ptr::null_mut(),
            };
            // SAFETY: `Routine::verify`: the greatest positions of y and of the result lie inside
            // them; the result is dense, and these lines of it belong to this unit; each term of
            // each place lies in the scratch memory, with the slack behind it.
            unsafe { (self.product)(&m, &p.table) };
        }
        Ok(())
    }
}
impl CompiledRoutine for Planes {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let operands = [bases.input(0), bases.input(1), bases.output(0)].map(SharedPtr);
        let units = self.c.batch.size() * self.outer * self.blocks;
        threads::try_ranges(units, parallel.then_some(&self.cost), bases.cancel, &|units: Range<usize>| {
            Scratch.with(MEMORY + self.p.room() * self.size, |scratch| {
                units.into_iter().try_for_each(|unit| self.unit(operands, unit, scratch))
            })?
        })
    }
    fn text(&self) -> String {
        format!("conv strategy=planes lines={} places={}", self.p.block, self.p.along)
    }
}
