//! `Conv`: blocks of rows are read out of the array into scratch memory, some terms at a time, and multiplied by [`super::panel`].
//!
//! ```text
//! for each block of rows, for each piece of the terms:
//!     packed[row, term] = x[at(batch, row, term)]       (0 where a guard refuses it; rows or terms innermost, whichever lie in runs)
//!     out[row, n] += packed[row, term] * y[term, n]
//! ```
//!
//! Where rows and terms are one stride each, and nothing is refused, x itself is the left side. Where windows along the last axis of the
//! rows overlap, a line is copied once, zeros around it, for all of them: the left side's rows then overlap in scratch memory.
use super::Run;
use super::dot;
use super::panel::{DEPTH, MEMORY, Matrices};
use super::walk::SharedPtr;
use crate::kernels::lane::Lane;
use crate::kernels::{Bases, Scratch};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::Res;
use ferrax_kernel::error::room;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A number for each guard.
type Sides = SmallVec<[i64; 3]>;

/// One axis of the left side: its size, and how far a step moves in the array and in each guard.
#[derive(Clone, Debug)]
struct Axis {
    n: usize,
    stride: i64,
    steps: Sides,
    /// Elements, side by side, that one step is long.
    unit: usize,
}
impl Axis {
    fn one(guards: usize) -> Axis {
        Axis { n: 1, stride: 0, steps: smallvec![0; guards], unit: 1 }
    }
    fn len(&self) -> usize {
        self.n * self.unit
    }
}

/// Places that follow one another along the last axis.
struct Places {
    /// The first of them, within the block.
    at: usize,
    len: usize,
    offset: i64,
    sides: Sides,
}

/// The places `range` of these axes, in row-major order; the last axis is taken in runs.
fn places(axes: &[Axis], range: Range<usize>, guards: usize) -> Res<Vec<Places>> {
    let (last, outer) = axes.split_last().expect("an axis");
    let mut out = room(range.len().div_ceil(last.len().max(1)) + 1)?;
    let mut i = range.start;
    while i < range.end {
        let (mut rest, start) = (i / last.len(), i % last.len());
        let len = (last.len() - start).min(range.end - i);
        let mut p = Places { at: i - range.start, len, offset: 0, sides: smallvec![0; guards] };
        let mut step = |a: &Axis, by: usize| {
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

/// Rows of which `m` at a time read one line, `by` positions apart.
struct Lines {
    by: usize,
    m: usize,
    positions: usize,
    lines: Vec<Axis>,
    terms: Vec<Axis>,
}

/// What is read of an array: which elements, and whether a run lies along rows.
struct Reading {
    /// The axis that runs go along.
    run: Axis,
    /// Lowest and highest position that each guard lets through, and where it starts.
    bounds: Vec<(i64, i64, i64)>,
}
impl Reading {
    /// Writes runs and single places, `width` elements from one single place to the next.
    ///
    /// # Safety
    /// Each element that the guards let through lies in `x`; `to` holds them all.
    unsafe fn pack<T: Copy + Default>(
        &self,
        to: *mut T,
        x: *const T,
        offset: i64,
        sides: &[i64],
        singles: &[Places],
        runs: &[Places],
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
                // SAFETY: by the contract; what is read passed the guards.
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
fn ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// One stride for all of the axes, if they have one.
fn uniform(axes: &[Axis]) -> Option<i64> {
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
fn merged(mut axes: Vec<Axis>) -> Vec<Axis> {
    if let [.., a, b] = &axes[..]
        && b.stride == 1
        && a.stride == b.n as i64
        && b.steps.iter().all(|s| *s == 0)
        && a.n * b.n <= DEPTH
    {
        let (a, b) = (a.clone(), b.n);
        axes.truncate(axes.len() - 2);
        axes.push(Axis { unit: b, ..a });
    }
    axes
}

/// How many steps along the terms one along the rows is, if a step along either moves all guards alike.
fn overlap(row: &Axis, run: &Axis) -> Option<usize> {
    let by = usize::try_from(row.stride.checked_div(run.stride)?).ok()?;
    let steps = row.steps.iter().zip(&run.steps).all(|(r, s)| *r == s * by as i64);
    (steps && row.stride == run.stride * by as i64 && (1..=run.n).contains(&by)).then_some(by)
}
/// Rows of a line from which on lines are worth it.
const LINE: usize = 12;

pub fn compile(c: &Conv, tier: Tier) -> Res<Run> {
    let (nb, nr, nt) = (c.batch.len(), c.rows.len(), c.terms.len());
    let lane = Lane::of(c.dtype);
    let sizes = c.batch.concat(&c.rows).concat(&c.terms);
    let guards = c.guards.len();
    let axis = |k: usize| Axis {
        n: sizes[k],
        stride: c.at.stride(k),
        steps: c.guards.iter().map(|g| g.at.stride(k)).collect(),
        unit: 1,
    };
    let axes = |r: Range<usize>| -> Vec<Axis> { std::iter::once(Axis::one(guards)).chain(r.map(axis)).collect() };
    let (rows, terms) = (axes(nb..nb + nr), axes(nb + nr..nb + nr + nt));
    let (m, k, n) = (c.rows.size(), c.terms.size(), c.columns);
    let product = dot::pick(lane, dot::is_small(m * n * k, lane, tier), tier);
    // Runs go along what lies closest in the array, for longest.
    let (grouped, row_run) = (merged(terms.clone()), rows.last().expect("an axis"));
    let term_run = grouped.last().expect("an axis");
    let length = |a: &Axis| if a.unit > 1 || a.stride == 1 { a.len().min(DEPTH) } else { 1 };
    let by_rows = length(row_run) > length(term_run);
    let mut singles = if by_rows { terms.clone() } else { rows.clone() };
    singles.push(Axis::one(guards));
    let runs = if by_rows { rows.clone() } else { grouped };
    let run = runs.last().expect("an axis").clone();
    let depth = if by_rows || run.len() > DEPTH { DEPTH } else { DEPTH / run.len().max(1) * run.len().max(1) };
    let direct = if guards == 0 { uniform(&rows).zip(uniform(&terms)) } else { None };
    let block = match direct {
        Some(_) => 256,
        None => (32768 / depth.min(k).max(1)).clamp(64, 512) / 32 * 32,
    };
    let row = rows.last().expect("an axis");
    let apt = !by_rows && direct.is_none() && run.n > 1 && row.n >= LINE && run.len() <= k;
    let lines = overlap(row, &run).filter(|_| apt).map(|by| {
        // lines, and what stands before the runs of terms
        let but_last = |axes: &[Axis]| {
            let mut outer = axes[..axes.len() - 1].to_vec();
            outer.push(Axis::one(guards));
            outer
        };
        Lines { by, m: row.n, positions: (row.n - 1) * by + run.n, lines: but_last(&rows), terms: but_last(&runs) }
    });
    let bounds = c.guards.iter().map(|g| (g.lo, g.hi, g.at.offset)).collect();
    let reading = Reading { run, bounds };
    let size = lane.size();
    let c = c.clone();
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if c.batch.size() * m * n == 0 {
            return Ok(());
        }
        let shared = [bases.input(0), bases.input(1), bases.output(0)].map(SharedPtr);
        let block = lines.as_ref().map_or(block, |l| l.m);
        let blocks = m.div_ceil(block);
        let cost = Cost::of(c.batch.size() as f64 * m as f64 * k as f64 * (n as f64 * dot::NANOS + 0.2));
        let packed_bytes = match &lines {
            Some(l) => l.positions * reading.run.unit * size,
            None if direct.is_some() => 0,
            None => block * depth.min(k) * size,
        };
        let work = |units: Range<usize>, scratch: *mut u8| -> Res<()> {
            let packed = scratch.wrapping_add(MEMORY);
            for unit in units {
                let b = c.batch.unravel(unit / blocks);
                let from = unit % blocks * block;
                let count = block.min(m - from);
                let along = |strides: &[usize]| b.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
                let start = |a: &Affine| (0..nb).map(|k| a.stride(k) * b[k] as i64).sum::<i64>();
                let offset = c.at.offset + start(&c.at);
                let sides: Sides = c.guards.iter().map(|g| start(&g.at)).collect();
                let (y_start, to_start) = (along(&c.y), along(&c.out) + from * c.out[nb]);
                let at = |p: *mut u8, i: i64| p.wrapping_offset(i as isize * size as isize);
                // the terms from `done` on, `part` of them, added to what the first of them left
                let multiply = |left: *const u8, strides: [isize; 2], done: usize, part: usize| {
                    let right = at(shared[1].get(), (y_start + done * c.y[nb]) as i64);
                    let y_strides = [c.y[nb] as isize, c.y[nb + 1] as isize];
                    let to = at(shared[2].get(), to_start as i64);
                    let adds = done > 0;
                    // rows of the result lie along whichever of the two is not side by side
                    let x = if c.out[nb] == 1 && (c.out[nb + 1] != 1 || n < count) {
                        Matrices {
                            a: right,
                            b: left,
                            c: to,
                            m: n,
                            n: count,
                            k: part,
                            a_strides: [y_strides[1], y_strides[0]],
                            b_strides: [strides[1], strides[0]],
                            c_row: c.out[nb + 1],
                            adds,
                            scratch,
                            blocks: std::ptr::null_mut(),
                        }
                    } else {
                        Matrices {
                            a: left,
                            b: right,
                            c: to,
                            m: count,
                            n,
                            k: part,
                            a_strides: strides,
                            b_strides: y_strides,
                            c_row: c.out[nb],
                            adds,
                            scratch,
                            blocks: std::ptr::null_mut(),
                        }
                    };
                    // SAFETY: `Routine::verify`: the greatest positions of y and of the result lie inside them, those of x where there are no guards
                    // too; the result is dense, and its rows from .. from + count are this unit's alone; scratch has `MEMORY` bytes.
                    unsafe { product(&x) };
                };
                let pack = |singles: &[Places], runs: &[Places], width: usize| {
                    let (to, x) = (packed, shared[0].get().cast_const());
                    // SAFETY: `Routine::verify` proved by `Conv::kernel` that every element which the guards let through lies in x; the scratch
                    // memory holds `block` rows of `depth` terms, or a line, behind `MEMORY`, which places do not exceed.
                    unsafe {
                        match size {
                            4 => reading.pack::<u32>(to.cast(), x.cast(), offset, &sides, singles, runs, width),
                            _ => reading.pack::<u64>(to.cast(), x.cast(), offset, &sides, singles, runs, width),
                        }
                    }
                };
                if let Some(l) = &lines {
                    let (unit, len) = (reading.run.unit, reading.run.len());
                    let line = places(&l.lines, from / l.m..from / l.m + 1, guards)?.remove(0);
                    for (i, t) in places(&l.terms, 0..k / len, guards)?.into_iter().enumerate() {
                        let sides = line.sides.iter().zip(&t.sides).map(|(a, b)| a + b).collect();
                        let whole = Places { at: 0, len: l.positions * unit, offset: line.offset + t.offset, sides };
                        let here = Places { at: 0, len: 1, offset: 0, sides: smallvec![0; guards] };
                        pack(&[here], &[whole], 0);
                        multiply(packed, [(l.by * unit) as isize, 1], i * len, len);
                    }
                    continue;
                }
                let by_block = places(if by_rows { &runs } else { &singles }, from..from + count, guards)?;
                let mut done = 0;
                while done < k.max(1) {
                    let part = if direct.is_some() { k } else { depth.min(k - done) };
                    match direct {
                        Some((row, term)) => {
                            let left = at(shared[0].get(), offset + from as i64 * row);
                            multiply(left, [row as isize, term as isize], done, part);
                        }
                        None => {
                            let by_term = places(if by_rows { &singles } else { &runs }, done..done + part, guards)?;
                            let (s, r) = if by_rows { (&by_term, &by_block) } else { (&by_block, &by_term) };
                            pack(s, r, if by_rows { count } else { part });
                            let strides = if by_rows { [1, count as isize] } else { [part as isize, 1] };
                            multiply(packed, strides, done, part);
                        }
                    }
                    done += part.max(1);
                }
            }
            Ok(())
        };
        threads::try_ranges(c.batch.size() * blocks, parallel.then_some(&cost), bases.cancel, &|units| {
            Scratch.with(MEMORY + packed_bytes, |scratch| work(units, scratch))?
        })
    }))
}
