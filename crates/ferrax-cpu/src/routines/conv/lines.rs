//! Convolutions by lines: where windows overlap, a line of the input is copied once for all of them, zero padded.
//!
//! ```text
//! line[p, u] = x[start + p * stride + u]                    p a position, u of the unit: channels that are contiguous
//! element (i, t, u) of the moving side = line[i * step + t * dilation, u]        i along the line, t a tap of its window
//! ```
//!
//! Forward, i counts rows and (t, u) terms; in the derivative by the weights the roles are exchanged. Where columns are few, vectors go along the line
//! instead: the line is transposed, so that the positions of each unit are contiguous, and the result is transposed back.
use super::reading::{ReadAxis, Sides, ceil};
use crate::tuning::ConvTuning;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineWay {
    /// Rows go along a line, terms are taps and units.
    Rows,
    /// Terms go along a line, rows are taps and units.
    Terms,
    /// As `Rows`, with vectors of rows.
    Transposed,
}
impl LineWay {
    pub fn name(self) -> &'static str {
        match self {
            LineWay::Rows => "rows",
            LineWay::Terms => "terms",
            LineWay::Transposed => "rows_transposed",
        }
    }
}

pub struct WindowLines {
    pub way: LineWay,
    /// Places along a line, and positions from one to the next.
    pub along: usize,
    pub step: usize,
    pub taps: usize,
    pub dilation: usize,
    pub unit: usize,
    /// Positions that are read; elements from one to the next, and how far that moves each guard.
    positions: usize,
    stride: i64,
    steps: Sides,
    /// The axes that number the lines: the remaining axes of rows and of terms.
    pub rows: Vec<ReadAxis>,
    pub terms: Vec<ReadAxis>,
}
impl WindowLines {
    /// The lines of a convolution with these axes of rows and terms, where its windows overlap along one; `columns` of `size` bytes each.
    pub fn new(
        rows: &[ReadAxis],
        terms: &[ReadAxis],
        by_rows: bool,
        columns: usize,
        size: usize,
        t: &ConvTuning,
    ) -> Option<WindowLines> {
        let (across, windows) = if by_rows { (terms, rows) } else { (rows, terms) };
        let (along, outer) = across.split_last()?;
        // the last axis is one of units if it is contiguous; the taps precede it
        let side_by_side = |a: &ReadAxis| a.stride == 1 && a.steps.iter().all(|s| *s == 0);
        let (unit, taps, rest) = match windows {
            [rest @ .., taps, unit] if side_by_side(unit) && gcd(along.stride, taps.stride) >= unit.n as i64 => {
                (unit.n, taps, rest)
            }
            [rest @ .., taps] => (1, taps, rest),
            [] => return None,
        };
        let stride = gcd(along.stride, taps.stride);
        if along.stride <= 0
            || taps.stride < 0
            || stride < unit as i64
            || along.n < t.min_windows_on_line
            || unit * taps.n < 2
        {
            return None;
        }
        let [step, dilation] = [along.stride / stride, taps.stride / stride];
        let steps: Sides = along.steps.iter().map(|s| s / step).collect();
        let agree = |a: &ReadAxis, by: i64| a.n == 1 || a.steps.iter().zip(&steps).all(|(s, one)| *s == one * by);
        let [step_by, dilation_by] = [step as usize, dilation as usize];
        let positions = (along.n - 1) * step_by + (taps.n - 1) * dilation_by + 1;
        let is_dense = positions <= 2 * along.n * taps.n;
        if !agree(along, step) || !agree(taps, dilation) || !is_dense || positions * unit * size > t.max_line_bytes {
            return None;
        }
        let but_last = |axes: &[ReadAxis], guards: usize| {
            let mut axes = axes.to_vec();
            axes.push(ReadAxis::one(guards));
            axes
        };
        let (outer, rest) = (but_last(outer, steps.len()), but_last(rest, steps.len()));
        let transposes = !by_rows && step == 1 && unit >= 4 && columns * size <= 32;
        let (way, rows, terms) = match by_rows {
            true => (LineWay::Terms, rest, outer),
            false => (if transposes { LineWay::Transposed } else { LineWay::Rows }, outer, rest),
        };
        let (along, taps) = (along.n, taps.n);
        Some(WindowLines {
            way,
            along,
            step: step_by,
            taps,
            dilation: dilation_by,
            unit,
            positions,
            stride,
            steps,
            rows,
            terms,
        })
    }
    /// The rows and terms that one line covers.
    pub fn shape(&self) -> [usize; 2] {
        match self.way {
            LineWay::Terms => [self.taps * self.unit, self.along],
            _ => [self.along, self.taps * self.unit],
        }
    }
    /// Rows that are done at a time, of those of a line, where there are so many lines of rows.
    pub fn block(&self, lines: usize) -> usize {
        /// So many blocks keep some threads busy.
        const BLOCKS: usize = 8;
        match self.way {
            // rows of different taps are together where they lie so
            LineWay::Terms if self.dilation != 1 && self.taps > 1 => self.unit,
            LineWay::Terms => self.shape()[0].div_ceil(BLOCKS.div_ceil(lines.max(1))).next_multiple_of(8),
            _ => self.along,
        }
    }
    /// The products that a line takes part in: the first element and the first term of each, and how many terms.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let (taps, each) = match self.way {
            LineWay::Terms => (1, self.along),
            LineWay::Rows if self.dilation == 1 => (1, self.taps * self.unit),
            _ => (self.taps, self.unit),
        };
        let apart = self.dilation * if self.way == LineWay::Transposed { 1 } else { self.unit };
        (0..taps).map(move |t| (t * apart, t * each, each))
    }
    /// The offset of row `r` of a line, and the strides from row to row and from term to term.
    pub fn place(&self, r: usize) -> (usize, [isize; 2]) {
        let by = (self.step * self.unit) as isize;
        match self.way {
            LineWay::Terms => (r / self.unit * self.dilation * self.unit + r % self.unit, [1, by]),
            LineWay::Rows => (r * by as usize, [by, 1]),
            LineWay::Transposed => (r, [1, self.width() as isize]),
        }
    }
    /// Columns of the transposed result, which whole vectors fill.
    pub fn columns(&self) -> usize {
        self.along.next_multiple_of(16)
    }
    /// Positions of a transposed line.
    pub fn width(&self) -> usize {
        self.columns() + (self.taps - 1) * self.dilation
    }
    /// Elements of scratch memory: a line, the transposed one, and `columns` of the transposed result.
    pub fn room(&self, columns: usize) -> usize {
        match self.way {
            LineWay::Transposed => 2 * self.width() * self.unit + columns * self.columns(),
            _ => self.positions * self.unit,
        }
    }
    /// Copies a line from `x`, zeros where guards fail: `bounds` are lowest, highest and first
    /// position.
    ///
    /// # Safety
    /// Each element whose guards hold lies in `x`; `to` has [`Self::room`].
    pub unsafe fn copy<T: Copy + Default>(
        &self,
        to: *mut T,
        x: *const T,
        first: i64,
        sides: &[i64],
        bounds: &[(i64, i64, i64)],
    ) {
        let (mut from, mut end) = (0, self.positions as i64);
        for ((side, step), (lo, hi, start)) in sides.iter().zip(&self.steps).zip(bounds) {
            let base = start + side;
            match *step {
                0 if base < *lo || base >= *hi => end = 0,
                0 => (),
                k => (from, end) = (from.max(ceil(lo - base, k)), end.min(ceil(hi - base, k))),
            }
        }
        let (from, end) = if from < end { (from as usize, end as usize) } else { (0, 0) };
        let unit = self.unit;
        let all = if self.way == LineWay::Transposed { self.width() } else { self.positions };
        // SAFETY: by the contract; positions from..end passed the guards.
        unsafe {
            to.write_bytes(0, from * unit);
            to.add(end * unit).write_bytes(0, (all - end) * unit);
            let x = x.wrapping_offset((first + from as i64 * self.stride) as isize);
            let to = to.add(from * unit);
            if self.stride == unit as i64 {
                to.copy_from_nonoverlapping(x, (end - from) * unit);
                return;
            }
            for p in 0..end - from {
                let (to, x) = (to.add(p * unit), x.wrapping_offset(p as isize * self.stride as isize));
                for u in 0..unit {
                    *to.add(u) = *x.wrapping_add(u);
                }
            }
        }
    }
}
pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
