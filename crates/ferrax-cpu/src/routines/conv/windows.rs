//! Convolutions as matrix products. The rows of the left operand are windows: of x itself, of lines that windows share, or packed.
use super::lines::{LineWay, WindowLines};
use super::reading::{ConvReading, PlaceRun, ReadAxis, Sides, merged, places, uniform};
use super::{ConvAxes, cost};
use crate::kernels::lane::Lane;
use crate::kernels::moves::{self, LoadFn};
use crate::kernels::{Bases, Scratch};
use crate::routines::{CompiledRoutine, dot};
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::Target;
use ferrax_host::panel::{DEPTH, MEMORY, Matrices, Rows};
use ferrax_kernel::Res;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use std::ops::Range;

/// The source of the left side.
enum LeftSide {
    /// From x itself: elements from row to row, and from term to term.
    Direct([i64; 2]),
    Lines(Box<WindowLines>),
    Packed(Packing),
}
/// Rows are copied out of x, some terms at a time. Runs go along the axis with the smallest stride
/// in x, and the longest one among these.
struct Packing {
    /// Whether runs go along rows; else along terms.
    by_rows: bool,
    /// The axes along which runs go, and the others.
    runs: Vec<ReadAxis>,
    singles: Vec<ReadAxis>,
    /// Terms at a time.
    depth: usize,
}
impl Packing {
    /// And the axis of a run.
    fn new(axes: &ConvAxes, guards: usize) -> (Packing, ReadAxis) {
        let (grouped, row_run) = (merged(axes.terms.clone()), axes.rows.last().expect("an axis"));
        let term_run = grouped.last().expect("an axis");
        let length = |a: &ReadAxis| if a.unit > 1 || a.stride == 1 { a.len().min(DEPTH) } else { 1 };
        let by_rows = length(row_run) > length(term_run);
        let (mut singles, runs) =
            if by_rows { (axes.terms.clone(), axes.rows.clone()) } else { (axes.rows.clone(), grouped) };
        singles.push(ReadAxis::one(guards));
        let run = runs.last().expect("an axis").clone();
        let depth = if by_rows || run.len() > DEPTH { DEPTH } else { DEPTH / run.len().max(1) * run.len().max(1) };
        (Packing { by_rows, runs, singles, depth }, run)
    }
}

/// A convolution, its left side read by windows.
pub struct ConvWindows {
    c: Conv,
    /// Bytes of an element.
    size: usize,
    left: LeftSide,
    reading: ConvReading,
    /// Rows that are done at a time.
    block: usize,
    product: Rows,
    transpose: LoadFn,
    cost: Cost,
}
/// A block of rows: its first row, the number of rows, and the offset of its batch element.
struct WindowBlock<'a> {
    shared: [SharedPtr; 3],
    scratch: *mut u8,
    /// Line and row of the line; the first row of all, and their number.
    line: usize,
    row: usize,
    from: usize,
    count: usize,
    /// The first element of x, and the sides of the guards there.
    offset: i64,
    sides: Sides,
    /// The first elements of y and of the result.
    y: usize,
    to: usize,
    lines: Option<&'a WindowLines>,
}

impl ConvWindows {
    pub fn new(c: &Conv, axes: &ConvAxes, target: &Target) -> ConvWindows {
        let (lane, guards) = (Lane::of(c.dtype), c.guards.len());
        let (m, k, n, size) = (c.rows.size(), c.terms.size(), c.columns, lane.size());
        let small = dot::is_small(m * n * k, lane, target.tier, &target.tuning.dot);
        let direct = if guards == 0 { uniform(&axes.rows).zip(uniform(&axes.terms)) } else { None };
        let (packing, run) = Packing::new(axes, guards);
        let lines = WindowLines::new(&axes.rows, &axes.terms, packing.by_rows, n, size, &target.tuning.conv);
        let (left, block) = match (direct, lines) {
            (Some((row, term)), _) => (LeftSide::Direct([row, term]), 256),
            // how many rows are done at a time depends on the lines
            (None, Some(lines)) if k > 0 => {
                let block = lines.block(c.batch.size() * m / lines.shape()[0]);
                (LeftSide::Lines(Box::new(lines)), block)
            }
            (None, _) => {
                let block = (32768 / packing.depth.min(k).max(1)).clamp(64, 512) / 32 * 32;
                (LeftSide::Packed(packing), block)
            }
        };
        let bounds = c.guards.iter().map(|g| (g.lo, g.hi, g.at.offset)).collect();
        ConvWindows {
            c: c.clone(),
            size,
            left,
            reading: ConvReading { run, bounds },
            block,
            product: dot::rows_function(lane, small, target.tier),
            transpose: moves::load_raw(size, target.tier),
            cost: cost(c),
        }
    }
    pub fn are_packed(&self) -> bool {
        matches!(self.left, LeftSide::Packed(_))
    }
    fn lines(&self) -> Option<&WindowLines> {
        if let LeftSide::Lines(l) = &self.left { Some(l) } else { None }
    }
    /// Rows of a line; one line of all rows if there are no lines.
    fn rows_of_line(&self) -> usize {
        self.lines().map_or(self.c.rows.size(), |l| l.shape()[0])
    }
    /// Blocks of the rows of a line.
    fn blocks_of_line(&self) -> usize {
        self.rows_of_line().div_ceil(self.block)
    }
    fn blocks(&self) -> usize {
        self.c.rows.size() / self.rows_of_line() * self.blocks_of_line()
    }
    /// Bytes of scratch memory behind [`MEMORY`].
    fn packed_bytes(&self) -> usize {
        match &self.left {
            LeftSide::Direct(_) => 0,
            LeftSide::Lines(l) => l.room(self.c.columns) * self.size,
            LeftSide::Packed(p) => self.block * p.depth.min(self.c.terms.size()) * self.size,
        }
    }
    fn at(&self, p: *mut u8, i: i64) -> *mut u8 {
        p.wrapping_offset(i as isize * self.size as isize)
    }
    fn unit(&self, shared: [SharedPtr; 3], unit: usize, scratch: *mut u8) -> WindowBlock<'_> {
        let (c, nb, blocks) = (&self.c, self.c.batch.len(), self.blocks());
        let (rows_of, blocks_of) = (self.rows_of_line(), self.blocks_of_line());
        let b = c.batch.unravel(unit / blocks);
        let (line, row) = (unit % blocks / blocks_of, unit % blocks_of * self.block);
        let from = line * rows_of + row;
        let along = |strides: &[usize]| b.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
        let start = |a: &Affine| (0..nb).map(|k| a.stride(k) * b[k] as i64).sum::<i64>();
        WindowBlock {
            shared,
            scratch,
            line,
            row,
            from,
            count: self.block.min(rows_of - row),
            offset: c.at.offset + start(&c.at),
            sides: c.guards.iter().map(|g| start(&g.at)).collect(),
            y: along(&c.y),
            to: along(&c.out) + from * c.out[nb],
            lines: self.lines(),
        }
    }
    /// Multiplies `part` terms from `done` on, and adds the products to the sums of the terms
    /// before.
    fn multiply(&self, u: &WindowBlock, left: *const u8, strides: [isize; 2], [done, part]: [usize; 2]) {
        let (c, nb, n, count) = (&self.c, self.c.batch.len(), self.c.columns, u.count);
        let right = self.at(u.shared[1].get(), (u.y + done * c.y[nb]) as i64);
        let y_strides = [c.y[nb] as isize, c.y[nb + 1] as isize];
        let lies_by_rows = Matrices {
            a: left,
            b: right,
            c: self.at(u.shared[2].get(), u.to as i64),
            m: count,
            n,
            k: part,
            a_strides: strides,
            b_strides: y_strides,
            c_row: c.out[nb],
            adds: done > 0,
            scratch: u.scratch,
            blocks: std::ptr::null_mut(),
        };
        let lies_by_columns = Matrices {
            a: right,
            b: left,
            m: n,
            n: count,
            a_strides: [y_strides[1], y_strides[0]],
            b_strides: [strides[1], strides[0]],
            c_row: c.out[nb + 1],
            ..lies_by_rows
        };
        // rows of the result lie along whichever of the two is not side by side
        let x = match u.lines.filter(|l| l.way == LineWay::Transposed) {
            Some(l) => Matrices { c: self.transposed(u, l)[1], n: l.columns(), c_row: l.columns(), ..lies_by_columns },
            None if c.out[nb] == 1 && (c.out[nb + 1] != 1 || n < count) => lies_by_columns,
            None => lies_by_rows,
        };
        // SAFETY: `Routine::verify`: the greatest positions of y and of the result lie inside them,
        // and those of x where there are no guards; the result is dense, and the rows of this block
        // belong to this unit; scratch has `MEMORY` bytes, and room for a line and the rows made
        // from it.
        unsafe { (self.product)(&x) };
    }
    /// Scratch memory of a transposed line, and of its result.
    fn transposed(&self, u: &WindowBlock, l: &WindowLines) -> [*mut u8; 2] {
        let (packed, bytes) = (u.scratch.wrapping_add(MEMORY), l.width() * l.unit * self.size);
        [packed.wrapping_add(bytes), packed.wrapping_add(2 * bytes)]
    }
    fn run_lines(&self, u: &WindowBlock, l: &WindowLines) -> Res<()> {
        let (packed, guards, size) = (u.scratch.wrapping_add(MEMORY), self.c.guards.len(), self.size);
        let transposed = l.way == LineWay::Transposed;
        let [across, sums] = self.transposed(u, l);
        let [_, each] = l.shape();
        let here = places(&l.rows, u.line..u.line + 1, guards)?.remove(0);
        for (i, t) in places(&l.terms, 0..self.c.terms.size() / each, guards)?.into_iter().enumerate() {
            let first = u.offset + here.offset + t.offset;
            let sides: Sides = (0..guards).map(|g| u.sides[g] + here.sides[g] + t.sides[g]).collect();
            let x = u.shared[0].get().cast_const();
            // SAFETY: as in `pack`.
            unsafe {
                match size {
                    4 => l.copy::<u32>(packed.cast(), x.cast(), first, &sides, &self.reading.bounds),
                    _ => l.copy::<u64>(packed.cast(), x.cast(), first, &sides, &self.reading.bounds),
                }
                if transposed {
                    (self.transpose)(across, packed, l.unit, 1, l.width(), l.unit as isize);
                }
            }
            let (place, strides) = l.place(u.row);
            let from = if transposed { across } else { packed };
            for (element, term, part) in l.pieces() {
                self.multiply(u, self.at(from, (place + element) as i64), strides, [i * each + term, part]);
            }
        }
        if transposed {
            let (c, nb) = (&self.c, self.c.batch.len());
            let (to, strides) = (self.at(u.shared[2].get(), u.to as i64), [c.out[nb], c.out[nb + 1]]);
            // SAFETY: these rows of the result are this unit's; `sums` has n rows of columns.
            unsafe {
                match size {
                    4 => put::<u32>(to.cast(), strides, sums.cast(), l.columns(), [u.count, c.columns]),
                    _ => put::<u64>(to.cast(), strides, sums.cast(), l.columns(), [u.count, c.columns]),
                }
            }
        }
        Ok(())
    }
    fn run_packed(&self, u: &WindowBlock, p: &Packing) -> Res<()> {
        let (guards, k, count) = (self.c.guards.len(), self.c.terms.size(), u.count);
        let packed = u.scratch.wrapping_add(MEMORY);
        let of_block = places(if p.by_rows { &p.runs } else { &p.singles }, u.from..u.from + count, guards)?;
        let mut done = 0;
        while done < k.max(1) {
            let part = p.depth.min(k - done);
            let of_terms = places(if p.by_rows { &p.singles } else { &p.runs }, done..done + part, guards)?;
            let (singles, runs) = if p.by_rows { (&of_terms, &of_block) } else { (&of_block, &of_terms) };
            self.pack(u, singles, runs, if p.by_rows { count } else { part });
            let strides = if p.by_rows { [1, count as isize] } else { [part as isize, 1] };
            self.multiply(u, packed, strides, [done, part]);
            done += part.max(1);
        }
        Ok(())
    }
    fn pack(&self, u: &WindowBlock, singles: &[PlaceRun], runs: &[PlaceRun], width: usize) {
        let (to, x) = (u.scratch.wrapping_add(MEMORY), u.shared[0].get().cast_const());
        // SAFETY: `Routine::verify` proved by `Conv::kernel` that every element whose guards hold
        // lies in x; the scratch memory holds `block` rows of `depth` terms, or a line, behind
        // `MEMORY`, which places do not exceed.
        unsafe {
            match self.size {
                4 => self.reading.pack::<u32>(to.cast(), x.cast(), u.offset, &u.sides, singles, runs, width),
                _ => self.reading.pack::<u64>(to.cast(), x.cast(), u.offset, &u.sides, singles, runs, width),
            }
        }
    }
    fn units(&self, shared: [SharedPtr; 3], units: Range<usize>, scratch: *mut u8) -> Res<()> {
        for unit in units {
            let u = self.unit(shared, unit, scratch);
            match &self.left {
                LeftSide::Direct([row, term]) => {
                    let left = self.at(shared[0].get(), u.offset + u.from as i64 * row);
                    self.multiply(&u, left, [*row as isize, *term as isize], [0, self.c.terms.size()]);
                }
                LeftSide::Lines(l) => self.run_lines(&u, l)?,
                LeftSide::Packed(p) => self.run_packed(&u, p)?,
            }
        }
        Ok(())
    }
}
impl CompiledRoutine for ConvWindows {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        if self.c.batch.size() * self.c.rows.size() * self.c.columns == 0 {
            return Ok(());
        }
        let shared = [bases.input(0), bases.input(1), bases.output(0)].map(SharedPtr);
        let (units, bytes) = (self.c.batch.size() * self.blocks(), MEMORY + self.packed_bytes());
        threads::try_ranges(units, parallel.then_some(&self.cost), bases.cancel, &|units| {
            Scratch.with(bytes, |scratch| self.units(shared, units, scratch))?
        })
    }
    fn text(&self) -> String {
        let left = match &self.left {
            LeftSide::Direct(_) => "direct".to_string(),
            LeftSide::Lines(l) => format!("lines along={}", l.way.name()),
            LeftSide::Packed(p) => {
                format!("packed runs={} terms={}", if p.by_rows { "rows" } else { "terms" }, p.depth)
            }
        };
        format!("conv strategy={left} block={}", self.block)
    }
}

/// Writes `n` rows of `count` sums, at distance `apart`, as columns.
///
/// # Safety
/// `to` has such elements at the strides, `sums` such rows.
unsafe fn put<T: Copy>(to: *mut T, strides: [usize; 2], sums: *const T, apart: usize, [count, n]: [usize; 2]) {
    for r in 0..count {
        for j in 0..n {
            // SAFETY: by the contract.
            unsafe { *to.add(r * strides[0] + j * strides[1]) = *sums.add(j * apart + r) };
        }
    }
}
