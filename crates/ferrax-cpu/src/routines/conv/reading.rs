//! The axes of the elements that a convolution reads, and copies of contiguous runs.
use ferrax_host::panel::DEPTH;
use ferrax_kernel::Res;
use ferrax_kernel::error::room;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A number for each guard.
pub type Sides = SmallVec<[i64; 3]>;

/// One axis of the left side: its size, and how far a step moves in the array and in each guard.
#[derive(Clone, Debug)]
pub struct ReadAxis {
    pub n: usize,
    pub stride: i64,
    pub steps: Sides,
    /// Elements, side by side, that one step is long.
    pub unit: usize,
}
impl ReadAxis {
    pub fn one(guards: usize) -> ReadAxis {
        ReadAxis { n: 1, stride: 0, steps: smallvec![0; guards], unit: 1 }
    }
    pub fn len(&self) -> usize {
        self.n * self.unit
    }
}

/// Places that follow one another along the last axis.
pub struct PlaceRun {
    /// The first of them, within the block.
    pub at: usize,
    pub len: usize,
    pub offset: i64,
    pub sides: Sides,
}

/// The places `range` of these axes, in row-major order; the last axis is taken in runs.
pub fn places(axes: &[ReadAxis], range: Range<usize>, guards: usize) -> Res<Vec<PlaceRun>> {
    let (last, outer) = axes.split_last().expect("an axis");
    let mut out = room(range.len().div_ceil(last.len().max(1)) + 1)?;
    let mut i = range.start;
    while i < range.end {
        let (mut rest, start) = (i / last.len(), i % last.len());
        let len = (last.len() - start).min(range.end - i);
        let mut p = PlaceRun { at: i - range.start, len, offset: 0, sides: smallvec![0; guards] };
        let mut step = |a: &ReadAxis, by: usize| {
            p.offset += a.stride * by as i64;
            for (s, g) in p.sides.iter_mut().zip(&a.steps) {
                *s += g * by as i64;
            }
        };
        // an axis of units is never entered between two
        step(last, start / last.unit);
        for a in outer.iter().rev() {
            step(a, rest % a.n);
            rest /= a.n;
        }
        out.push(p);
        i += len;
    }
    Ok(out)
}

/// The elements to read from an array, and whether runs go along rows.
pub struct ConvReading {
    /// The axis that runs go along.
    pub run: ReadAxis,
    /// Lowest and highest position that each guard lets through, and where it starts.
    pub bounds: Vec<(i64, i64, i64)>,
}
impl ConvReading {
    /// Copies runs and single places; single places are `width` elements apart.
    ///
    /// # Safety
    /// Each element whose guards hold lies in `x`; `to` has room for them all.
    pub unsafe fn pack<T: Copy + Default>(
        &self,
        to: *mut T,
        x: *const T,
        offset: i64,
        sides: &[i64],
        singles: &[PlaceRun],
        runs: &[PlaceRun],
        width: usize,
    ) {
        let unit = self.run.unit;
        for s in singles {
            for r in runs {
                let (mut from, mut end) = (0, (r.len / unit) as i64);
                for (g, (lo, hi, start)) in self.bounds.iter().enumerate() {
                    let base = start + sides[g] + s.sides[g] + r.sides[g];
                    match self.run.steps[g] {
                        0 if base < *lo || base >= *hi => end = 0,
                        0 => (),
                        1 => (from, end) = (from.max(lo - base), end.min(hi - base)),
                        k => (from, end) = (from.max(ceil(lo - base, k)), end.min(ceil(hi - base, k))),
                    }
                }
                let (from, end) = match from < end {
                    true => (from as usize * unit, end as usize * unit),
                    false => (0, 0),
                };
                // SAFETY: by the contract; the guards hold for each element that is read.
                unsafe {
                    let to = to.add(s.at * width + r.at);
                    for i in (0..from).chain(end..r.len) {
                        *to.add(i) = T::default();
                    }
                    let first = offset + s.offset + r.offset;
                    if unit > 1 || self.run.stride == 1 {
                        let x = x.wrapping_offset(first as isize + from as isize);
                        match end - from {
                            n if n < 16 => (0..n).for_each(|i| *to.add(from + i) = *x.wrapping_add(i)),
                            n => to.add(from).copy_from_nonoverlapping(x, n),
                        }
                    } else {
                        for i in from..end {
                            *to.add(i) = *x.wrapping_offset((first + i as i64 * self.run.stride) as isize);
                        }
                    }
                }
            }
        }
    }
}
/// The smallest k with `k * b >= a`.
pub fn ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// One stride for all of the axes, if they have one.
pub fn uniform(axes: &[ReadAxis]) -> Option<i64> {
    let mut next = None;
    let mut least = 0;
    for a in axes.iter().rev().filter(|a| a.n > 1) {
        match next {
            None => least = a.stride,
            Some(s) if s != a.stride => return None,
            _ => (),
        }
        next = Some(a.stride * a.n as i64);
    }
    Some(least)
}
/// The last two axes as one of units, where the elements of both lie side by side.
pub fn merged(mut axes: Vec<ReadAxis>) -> Vec<ReadAxis> {
    if let [.., a, b] = &axes[..]
        && b.stride == 1
        && a.stride == b.n as i64
        && b.steps.iter().all(|s| *s == 0)
        && a.n * b.n <= DEPTH
    {
        let (a, b) = (a.clone(), b.n);
        axes.truncate(axes.len() - 2);
        axes.push(ReadAxis { unit: b, ..a });
    }
    axes
}
