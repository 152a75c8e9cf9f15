//! `Conv`: blocks of rows are read out of the array into scratch memory, some terms at a time, and multiplied by [`super::panel`].
//!
//! ```text
//! for each block of rows, for each piece of the terms:
//!     packed[row, term] = x[at(batch, row, term)]       (0 where a guard refuses it; rows or terms innermost, whichever lie in runs)
//!     out[row, n] += packed[row, term] * y[term, n]
//! ```
//!
//! Groups of few columns are done many at a time: [`groups`]. Where the result lies along its places and so does the array, no rows are packed: [`planes`] are copied, and windows are read where they lie.
//! Where rows and terms are one stride each, and nothing is refused, x itself is the left side. Where windows overlap, [`lines`] are copied
//! once for all of them: the left side's rows then overlap in scratch memory.
mod groups;
mod interleaved;
mod lines;
mod planes;
mod reading;

use self::lines::{LineWay, WindowLines};
use self::reading::{ConvReading, PlaceRun, ReadAxis, Sides, merged, places, uniform};
use super::Run;
use super::dot;
use super::panel::{DEPTH, MEMORY, Matrices};
use super::walk::SharedPtr;
use crate::kernels::lane::Lane;
use crate::kernels::moves;
use crate::kernels::{Bases, Scratch};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::Res;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use std::ops::Range;

/// Writes `n` rows of `count` sums, `apart` from each other, as columns.
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

fn cost(c: &Conv) -> Cost {
    let each = (c.batch.size() * c.rows.size()) as f64 * c.terms.size() as f64;
    Cost::of(each * (c.columns as f64 * dot::NANOS + 0.2))
}

pub fn compile(c: &Conv, tier: Tier) -> Res<Run> {
    let (nb, nr, nt) = (c.batch.len(), c.rows.len(), c.terms.len());
    let lane = Lane::of(c.dtype);
    let sizes = c.batch.concat(&c.rows).concat(&c.terms);
    let guards = c.guards.len();
    let axis = |k: usize| ReadAxis {
        n: sizes[k],
        stride: c.at.stride(k),
        steps: c.guards.iter().map(|g| g.at.stride(k)).collect(),
        unit: 1,
    };
    let axes =
        |r: Range<usize>| -> Vec<ReadAxis> { std::iter::once(ReadAxis::one(guards)).chain(r.map(axis)).collect() };
    let (rows, terms) = (axes(nb..nb + nr), axes(nb + nr..nb + nr + nt));
    let (m, k, n) = (c.rows.size(), c.terms.size(), c.columns);
    let product = dot::pick(lane, dot::is_small(m * n * k, lane, tier), tier);
    // Runs go along what lies closest in the array, for longest.
    let (grouped, row_run) = (merged(terms.clone()), rows.last().expect("an axis"));
    let term_run = grouped.last().expect("an axis");
    let length = |a: &ReadAxis| if a.unit > 1 || a.stride == 1 { a.len().min(DEPTH) } else { 1 };
    let by_rows = length(row_run) > length(term_run);
    let mut singles = if by_rows { terms.clone() } else { rows.clone() };
    singles.push(ReadAxis::one(guards));
    let runs = if by_rows { rows.clone() } else { grouped };
    let run = runs.last().expect("an axis").clone();
    let depth = if by_rows || run.len() > DEPTH { DEPTH } else { DEPTH / run.len().max(1) * run.len().max(1) };
    let direct = if guards == 0 { uniform(&rows).zip(uniform(&terms)) } else { None };
    let block = match direct {
        Some(_) => 256,
        None => (32768 / depth.min(k).max(1)).clamp(64, 512) / 32 * 32,
    };
    let by_lines = WindowLines::new(&rows, &terms, by_rows, n, lane.size());
    let lines = by_lines.filter(|_| direct.is_none() && k > 0);
    let bounds = c.guards.iter().map(|g| (g.lo, g.hi, g.at.offset)).collect();
    let reading = ConvReading { run, bounds };
    let size = lane.size();
    let transpose = moves::load_raw(size, tier);
    let cost = cost(c);
    if let Some(run) = groups::compile(c, &rows, &terms, tier) {
        return Ok(run);
    }
    if direct.is_none()
        && lines.is_none()
        && let Some(run) = planes::compile(c, &rows, &terms, tier)
    {
        return Ok(run);
    }
    let c = c.clone();
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if c.batch.size() * m * n == 0 {
            return Ok(());
        }
        let shared = [bases.input(0), bases.input(1), bases.output(0)].map(SharedPtr);
        // rows of a line, of which blocks are done at a time; one line of all rows where there are none
        let rows_of = lines.as_ref().map_or(m, |l| l.shape()[0]);
        let block = lines.as_ref().map_or(block, |l| l.block(c.batch.size() * m / rows_of));
        let blocks_of = rows_of.div_ceil(block);
        let blocks = m / rows_of * blocks_of;
        let packed_bytes = match &lines {
            Some(l) => l.room(n) * size,
            None if direct.is_some() => 0,
            None => block * depth.min(k) * size,
        };
        let work = |units: Range<usize>, scratch: *mut u8| -> Res<()> {
            let packed = scratch.wrapping_add(MEMORY);
            for unit in units {
                let b = c.batch.unravel(unit / blocks);
                let (line, row) = (unit % blocks / blocks_of, unit % blocks_of * block);
                let (from, count) = (line * rows_of + row, block.min(rows_of - row));
                let along = |strides: &[usize]| b.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
                let start = |a: &Affine| (0..nb).map(|k| a.stride(k) * b[k] as i64).sum::<i64>();
                let offset = c.at.offset + start(&c.at);
                let sides: Sides = c.guards.iter().map(|g| start(&g.at)).collect();
                let (y_start, to_start) = (along(&c.y), along(&c.out) + from * c.out[nb]);
                let at = |p: *mut u8, i: i64| p.wrapping_offset(i as isize * size as isize);
                let turned = lines.as_ref().filter(|l| l.way == LineWay::Turned);
                // a line, transposed, and the result of it
                let line_bytes = turned.map_or(0, |l| l.width() * l.unit * size);
                let (across, sums) = (packed.wrapping_add(line_bytes), packed.wrapping_add(2 * line_bytes));
                // the terms from `done` on, `part` of them, added to what the first of them left
                let multiply = |left: *const u8, strides: [isize; 2], done: usize, part: usize| {
                    let right = at(shared[1].get(), (y_start + done * c.y[nb]) as i64);
                    let y_strides = [c.y[nb] as isize, c.y[nb + 1] as isize];
                    let to = at(shared[2].get(), to_start as i64);
                    let lies_by_rows = Matrices {
                        a: left,
                        b: right,
                        c: to,
                        m: count,
                        n,
                        k: part,
                        a_strides: strides,
                        b_strides: y_strides,
                        c_row: c.out[nb],
                        adds: done > 0,
                        scratch,
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
                    let x = match turned {
                        Some(l) => Matrices { c: sums, n: l.columns(), c_row: l.columns(), ..lies_by_columns },
                        None if c.out[nb] == 1 && (c.out[nb + 1] != 1 || n < count) => lies_by_columns,
                        None => lies_by_rows,
                    };
                    // SAFETY: `Routine::verify`: the greatest positions of y and of the result lie inside them, those of x where there are no guards
                    // too; the result is dense, and its rows from .. from + count are this unit's alone; scratch has `MEMORY` bytes, and room for
                    // a line and what is made of it.
                    unsafe { product(&x) };
                };
                let pack = |singles: &[PlaceRun], runs: &[PlaceRun], width: usize| {
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
                    let [_, each] = l.shape();
                    let here = places(&l.rows, line..line + 1, guards)?.remove(0);
                    for (i, t) in places(&l.terms, 0..k / each, guards)?.into_iter().enumerate() {
                        let first = offset + here.offset + t.offset;
                        let sides: Sides = (0..guards).map(|g| sides[g] + here.sides[g] + t.sides[g]).collect();
                        let x = shared[0].get().cast_const();
                        // SAFETY: as for `pack`.
                        unsafe {
                            match size {
                                4 => l.copy::<u32>(packed.cast(), x.cast(), first, &sides, &reading.bounds),
                                _ => l.copy::<u64>(packed.cast(), x.cast(), first, &sides, &reading.bounds),
                            }
                            if turned.is_some() {
                                transpose(across, packed, l.unit, 1, l.width(), l.unit as isize);
                            }
                        }
                        let (place, strides) = l.place(row);
                        for (element, term, part) in l.pieces() {
                            multiply(at(across, (place + element) as i64), strides, i * each + term, part);
                        }
                    }
                    if let Some(l) = turned {
                        let to = at(shared[2].get(), to_start as i64);
                        let strides = [c.out[nb], c.out[nb + 1]];
                        // SAFETY: these rows of the result are this unit's; `sums` has n rows of columns.
                        unsafe {
                            match size {
                                4 => put::<u32>(to.cast(), strides, sums.cast(), l.columns(), [count, n]),
                                _ => put::<u64>(to.cast(), strides, sums.cast(), l.columns(), [count, n]),
                            }
                        }
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
