//! `Gather`: for each position of the indices, a window of the operand.
use super::CompiledRoutine;
use super::strided::{Odometer, StridedLoop, copy, merged, strides};
use crate::kernels::Bases;
use crate::kernels::address::{self, AT_ONCE, Addresses, Component, IndexArrays, OUTSIDE};
use crate::threads::{self, Cost};
use crate::tuning::Target;
use ferrax_kernel::routine::{Gather, OutOfBounds};
use ferrax_kernel::{DType, Error, Res, Scalar};
use smallvec::SmallVec;
use std::ops::Range;

/// How windows are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GatherStrategy {
    /// The only window there is.
    One,
    /// One element of all windows, then the next.
    Across,
    /// Windows of so many bytes that lie together on both sides, by a function of that size.
    Rows(usize),
    /// Window by window.
    Windows,
}

/// A gather that any of its positions can be taken of.
pub struct Gathering {
    /// Copies a window, from the operand or from the fill value of windows out of bounds.
    walk: StridedLoop,
    filling: StridedLoop,
    addresses: Addresses,
    /// Each component of the index vectors is an operand.
    apart: bool,
    /// No window is in bounds: a window larger than the operand exists only where nothing is read.
    never: bool,
    /// Axes of the positions: size, bytes between positions in the output, and in the operand for
    /// batching axes.
    dims: SmallVec<[(usize, isize, isize); 4]>,
    strategy: GatherStrategy,
    /// Positions move through nothing but the output, and there one after the other.
    even: bool,
    fill: Scalar,
    bytes: usize,
    take: address::TakeFn,
    pub positions: usize,
    pub cost: Cost,
}

/// The same gather with the last axis as one element, if every window has it whole and it is no longer than an element can be.
fn of_longer_elements(g: &Gather) -> Option<Gather> {
    let (last, to) = (g.operand.len().checked_sub(1)?, g.out.len().checked_sub(1)?);
    let n = g.slice_sizes.get(last).copied().filter(|n| *n > 1 && *n == g.operand[last])?;
    let dtype = match n * g.dtype.size() {
        2 => DType::U16,
        4 => DType::U32,
        8 => DType::U64,
        _ => return None,
    };
    let moves =
        [&g.collapsed_slice_dims, &g.start_index_map, &g.operand_batching_dims].iter().any(|d| d.contains(&last));
    if moves || g.offset_dims.last() != Some(&to) {
        return None;
    }
    let fill = (0..n).fold(0, |bits, _| bits << (8 * g.dtype.size()) | g.fill.bits);
    Some(Gather {
        operand: g.operand.remove(last),
        slice_sizes: g.slice_sizes.remove(last),
        offset_dims: g.offset_dims.remove(g.offset_dims.len() - 1),
        out: g.out.remove(to),
        fill: Scalar { dtype, bits: fill },
        dtype,
        ..g.clone()
    })
}

impl Gathering {
    pub fn new(g: &Gather, target: &Target) -> Res<Gathering> {
        let tier = target.tier;
        let longer = of_longer_elements(g);
        let g = longer.as_ref().unwrap_or(g);
        let bytes = g.dtype.size();
        let rank = g.operand.len();
        let (from, to) = (strides(&g.operand), strides(&g.out));
        let positions: Vec<usize> = (0..g.out.len()).filter(|k| !g.offset_dims.contains(k)).collect();
        let kept: Vec<usize> =
            (0..rank).filter(|k| !g.collapsed_slice_dims.contains(k) && !g.operand_batching_dims.contains(k)).collect();
        let vector = g.start_index_map.len();
        let n_positions: usize = positions.iter().map(|k| g.out[*k]).product();
        if kept.len() != g.offset_dims.len() || g.slice_sizes.len() != rank || n_positions * vector != g.indices.size()
        {
            return Err(Error::Invalid(format!("inconsistent gather {g:?}")));
        }
        let window = || kept.iter().zip(g.offset_dims.iter()).map(|(o, t)| (g.slice_sizes[*o], to[*t], from[*o]));
        let walk = StridedLoop::new(bytes, window());
        let components = g.start_index_map.iter().map(|axis| Component {
            stride: from[*axis] * bytes as isize,
            last: g.operand[*axis].saturating_sub(g.slice_sizes[*axis]) as i64,
        });
        let along = |k: usize| {
            let batch =
                g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()).find(|(_, of)| **of == k);
            batch.map_or(0, |(axis, _)| from[*axis])
        };
        let b = bytes as isize;
        let is_trailing =
            g.offset_dims.iter().all(|k| g.out[*k] == 1 || positions.iter().all(|p| g.out[*p] == 1 || k < p));
        let dims = merged(positions.iter().enumerate().map(|(k, t)| (g.out[*t], to[*t] * b, along(k) * b)));
        let never = g.start_index_map.iter().any(|axis| g.operand[*axis] < g.slice_sizes[*axis]);
        let inside = g.mode != OutOfBounds::FillOrDrop && !never;
        let run = walk
            .run_of_bytes(bytes)
            .filter(|n| inside && dims.len() == 1 && dims[0].1 == *n as isize && dims[0].2 == 0);
        let take_rows = run.and_then(|n| Some((address::take_rows(n, tier)?, n)));
        // each element of a window is next to those of the other positions in the output
        let across = is_trailing && n_positions >= target.tuning.gather.min_positions_across;
        let (strategy, take) = match take_rows {
            _ if n_positions == 1 => (GatherStrategy::One, address::take(bytes, inside, tier)),
            _ if walk.is_single() || across => (GatherStrategy::Across, address::take(bytes, inside, tier)),
            Some((take, bytes)) => (GatherStrategy::Rows(bytes), take),
            None => (GatherStrategy::Windows, address::take(bytes, inside, tier)),
        };
        Ok(Gathering {
            strategy,
            take,
            filling: StridedLoop::new(bytes, window().map(|(n, t, _)| (n, t, 0))),
            addresses: Addresses::new(components.collect(), g.index_dtype, g.mode == OutOfBounds::FillOrDrop, tier),
            apart: g.apart,
            never,
            even: dims.iter().all(|d| dims.len() == 1 && d.1 == b && d.2 == 0),
            dims,
            fill: g.fill,
            bytes,
            positions: n_positions,
            cost: Cost::of(n_positions as f64 * (2.0 + walk.elements as f64 * if is_trailing { 0.5 } else { 0.1 })),
            walk,
        })
    }
    fn indices(&self, bases: Bases) -> IndexArrays {
        match self.apart {
            true => self.addresses.apart(|j| bases.input(1 + j as u32).cast_const()),
            false => self.addresses.together(bases.input(1).cast_const()),
        }
    }
    /// Takes an element of the window at all of some positions, then the next, for the windows' rows `rows`.
    ///
    /// # Safety
    /// As `run_positions`, of windows across positions.
    unsafe fn run_across(&self, bases: Bases, positions: Range<usize>, rows: Range<usize>) {
        let (src, ix, out) = (bases.input(0).cast_const(), self.indices(bases), bases.output(0));
        let mut at = [OUTSIDE; AT_ONCE];
        let mut o = Odometer::at(&self.dims, positions.start);
        for first in positions.clone().step_by(AT_ONCE) {
            let n = AT_ONCE.min(positions.end - first);
            // SAFETY: as in `run_positions`; in the output, a position is an element further than the one before it.
            unsafe {
                if !self.never {
                    self.addresses.of(&ix, first, n, &mut at);
                }
                if !self.even {
                    o.shift::<true>(self.addresses.shift, &mut at[..n]);
                }
                let (at, to) = (at.as_ptr(), out.wrapping_add(first * self.bytes));
                self.walk.offsets(rows.clone(), &mut |a, b| {
                    (self.take)(to.wrapping_offset(a), src.wrapping_offset(b), at, n, self.fill.bits)
                });
            }
        }
    }
    /// Takes some positions, on this thread.
    ///
    /// # Safety
    /// The routine was verified; `bases` point at its operand, its indices and its result, of which these positions are the caller's.
    pub unsafe fn run_positions(&self, bases: Bases, r: Range<usize>) {
        if self.walk.elements == 0 {
            return;
        }
        // SAFETY: by the contract.
        unsafe {
            match self.strategy {
                GatherStrategy::Across => self.run_across(bases, r, 0..self.walk.rows()),
                GatherStrategy::Rows(bytes) => self.run_rows(bases, r, bytes),
                GatherStrategy::One | GatherStrategy::Windows => self.run_windows(bases, r),
            }
        }
    }
    /// # Safety
    /// As `run_positions`, of windows of so many bytes.
    unsafe fn run_rows(&self, bases: Bases, r: Range<usize>, bytes: usize) {
        let (src, ix, out) = (bases.input(0).cast_const(), self.indices(bases), bases.output(0));
        let mut at = [OUTSIDE; AT_ONCE];
        for first in r.clone().step_by(AT_ONCE) {
            let n = AT_ONCE.min(r.end - first);
            // SAFETY: as in `run_windows`.
            unsafe {
                self.addresses.of(&ix, first, n, &mut at);
                (self.take)(out.wrapping_add(first * bytes), src, at.as_ptr(), n, 0);
            }
        }
    }
    /// # Safety
    /// As `run_positions`.
    unsafe fn run_windows(&self, bases: Bases, r: Range<usize>) {
        let (src, ix, out) = (bases.input(0).cast_const(), self.indices(bases), bases.output(0));
        let (f, fill) = (copy(self.bytes), self.fill.bytes());
        let run = self.walk.run_of_bytes(self.bytes);
        let mut at = [OUTSIDE; AT_ONCE];
        let mut o = Odometer::at(&self.dims, r.start);
        for first in r.clone().step_by(AT_ONCE) {
            let n = AT_ONCE.min(r.end - first);
            // SAFETY: `Routine::verify`: windows are no larger than the operand where anything is read, a batching axis of the positions is no
            // longer than the operand's, and the index array has a vector for each position. So windows at addresses lie inside, and those
            // outside are filled; each position has an output window of its own, and is one thread's.
            unsafe {
                if !self.never {
                    self.addresses.of(&ix, first, n, &mut at);
                }
                for a in &at[..n] {
                    let (to, window) = (out.wrapping_offset(o.a), src.wrapping_offset(*a as isize + o.b));
                    match run {
                        _ if *a < 0 => self.filling.run(to, fill.as_ptr(), f),
                        Some(4) => to.cast::<[u8; 4]>().write(window.cast::<[u8; 4]>().read()),
                        Some(8) => to.cast::<[u8; 8]>().write(window.cast::<[u8; 8]>().read()),
                        Some(16) => to.cast::<[u8; 16]>().write(window.cast::<[u8; 16]>().read()),
                        Some(32) => to.cast::<[u8; 32]>().write(window.cast::<[u8; 32]>().read()),
                        Some(64) => to.cast::<[u8; 64]>().write(window.cast::<[u8; 64]>().read()),
                        Some(n) => to.copy_from_nonoverlapping(window, n),
                        None => self.walk.run(to, window, f),
                    }
                    o.step();
                }
            }
        }
    }
    /// Takes the only one.
    ///
    /// # Safety
    /// As `run_positions`, where there is one position.
    unsafe fn run_single(&self, bases: Bases) {
        // PERF: it needs no room for the addresses of many.
        // SAFETY: as in `run_positions`.
        unsafe {
            let at = if self.never { OUTSIDE } else { self.addresses.first(&self.indices(bases)) };
            let (out, f) = (bases.output(0), copy(self.bytes));
            match at {
                0.. => self.walk.run(out, bases.input(0).cast_const().wrapping_offset(at as isize), f),
                _ => self.filling.run(out, self.fill.bytes().as_ptr(), f),
            }
        }
    }
}
impl CompiledRoutine for Gathering {
    /// Takes all windows, spread over threads where that pays.
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let cost = parallel.then_some(&self.cost);
        // SAFETY: a step's routine was verified; ranges are one thread's each.
        unsafe {
            match (self.strategy, self.walk.rows()) {
                (GatherStrategy::One, _) => self.run_single(bases),
                // All positions of a row are read while the row is in the nearest cache.
                (GatherStrategy::Across, rows) if rows > 1 => {
                    threads::for_ranges(rows, cost, bases.cancel, &|r| self.run_across(bases, 0..self.positions, r))
                }
                _ => threads::for_ranges(self.positions, cost, bases.cancel, &|r| self.run_positions(bases, r)),
            }
        }
        Ok(())
    }
    fn text(&self) -> String {
        let strategy = match self.strategy {
            GatherStrategy::One => "one_window".to_string(),
            GatherStrategy::Across => format!("across_positions elements={}", self.walk.elements),
            GatherStrategy::Rows(bytes) => format!("rows bytes={bytes}"),
            GatherStrategy::Windows => format!("windows elements={}", self.walk.elements),
        };
        let indices = if self.apart { " indices=apart" } else { "" };
        format!("gather strategy={strategy}{indices}")
    }
}
