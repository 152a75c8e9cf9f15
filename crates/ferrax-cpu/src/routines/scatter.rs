//! `Scatter`: for each position of the indices, combines a window of the updates with the operand; in place where the plan says so.
//!
//! Updates apply position by position.
//!
//! Threads divide the operand, not the updates: each goes through all positions in order and applies the windows that start in its part.
//! So no two threads write one element, and the order holds, even if the caller's promise of unique indices is wrong. If elements may be combined
//! in any grouping that keeps their order (maximum, minimum, sums of integers) and there are many updates for each element, threads divide
//! the updates instead: all but the first combine theirs into a separate array.
use super::strided::{Combining, Odometer, StridedLoop, copy, merged, strides};
use super::{CompiledRoutine, Run};
use crate::kernels::address::{self, AT_ONCE, Addresses, Component, IndexArrays, OUTSIDE, PutFn, PutFns, PutRowsFn};
use crate::kernels::{Bases, scalar};
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::{ScatterTuning, Target};
use ferrax_kernel::error::filled;
use ferrax_kernel::routine::{Combine, OutOfBounds, Scatter};
use ferrax_kernel::{Bin, Error, ReduceKind, Res};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How updates are applied.
#[derive(Clone, Copy)]
enum ScatterStrategy {
    /// Nothing to apply: no updates, or windows larger than the operand.
    Nothing,
    /// The only window there is.
    One,
    /// Single elements, by a loop of their own.
    Elements(PutFn),
    /// The same; threads divide the updates, and all but the first combine theirs into an array that begins with this identity.
    SplitElements(PutFn, u64),
    /// Windows of so many elements that lie together, combined by a loop of their own.
    Rows(PutRowsFn, usize),
    /// Window by window.
    Windows,
}

/// A scatter, compiled.
struct Scattering {
    strategy: ScatterStrategy,
    /// Bytes of an element, and of the operand.
    bytes: usize,
    total: usize,
    /// A window: to the operand, from the updates.
    walk: StridedLoop,
    addresses: Addresses,
    /// `None` if updates replace elements.
    combining: Option<Combining>,
    /// Axes of the positions: size, bytes between positions in the operand for batching axes, and
    /// in the updates.
    dims: SmallVec<[(usize, isize, isize); 4]>,
    positions: usize,
    /// Windows move by less than a window, so that two may overlap in part.
    moves_in_window: bool,
    tuning: ScatterTuning,
    cost: Cost,
}

/// A scatter's axes: which of the updates count positions, which of the operand are in a window.
struct ScatterAxes<'a> {
    s: &'a Scatter,
    positions: Vec<usize>,
    kept: Vec<usize>,
    /// Strides of operand and updates, in elements.
    to: SmallVec<[isize; 6]>,
    from: SmallVec<[isize; 6]>,
}
impl ScatterAxes<'_> {
    fn of(s: &Scatter) -> Res<ScatterAxes<'_>> {
        let rank = s.operand.len();
        let positions: Vec<usize> = (0..s.updates.len()).filter(|k| !s.update_window_dims.contains(k)).collect();
        let kept: Vec<usize> =
            (0..rank).filter(|k| !s.inserted_window_dims.contains(k) && !s.operand_batching_dims.contains(k)).collect();
        let (to, from) = (strides(&s.operand).into_iter().collect(), strides(&s.updates).into_iter().collect());
        let axes = ScatterAxes { s, positions, kept, to, from };
        let vector = s.scatter_dims_to_operand_dims.len();
        if axes.kept.len() != s.update_window_dims.len() || axes.positions() * vector != s.indices.size() && vector > 0
        {
            return Err(Error::Invalid(format!("inconsistent scatter {s:?}")));
        }
        Ok(axes)
    }
    fn positions(&self) -> usize {
        self.positions.iter().map(|k| self.s.updates[*k]).product()
    }
    /// The window's size along an axis of the operand.
    fn size(&self, axis: usize) -> usize {
        let s = self.s;
        self.kept.iter().position(|k| *k == axis).map_or(1, |w| s.updates[s.update_window_dims[w]])
    }
    /// Elements by which axis k of the positions moves through the operand.
    fn along(&self, k: usize) -> isize {
        let s = self.s;
        let mut batch = s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter());
        batch.find(|(_, of)| **of == k).map_or(0, |(axis, _)| self.to[*axis])
    }
    fn walk(&self) -> StridedLoop {
        let window = self.kept.iter().zip(self.s.update_window_dims.iter());
        StridedLoop::new(self.s.dtype.size(), window.map(|(o, u)| (self.s.updates[*u], self.to[*o], self.from[*u])))
    }
    fn addresses(&self, target: &Target) -> Addresses {
        let (s, b) = (self.s, self.s.dtype.size() as isize);
        let component = |axis: &usize| Component {
            stride: self.to[*axis] * b,
            last: s.operand[*axis].saturating_sub(self.size(*axis)) as i64,
        };
        let components = s.scatter_dims_to_operand_dims.iter().map(component).collect();
        Addresses::new(components, s.index_dtype, s.mode == OutOfBounds::FillOrDrop, target.tier)
    }
    fn moves_in_window(&self) -> bool {
        self.s.scatter_dims_to_operand_dims.iter().any(|axis| self.size(*axis) > 1)
    }
    /// The strategy for updates that `bin` combines, by the loops `combined` where there are some.
    fn pick(
        &self,
        bin: Option<Bin>,
        combined: Option<PutFns>,
        walk: &StridedLoop,
        dims: &[(usize, isize, isize)],
        target: &Target,
    ) -> ScatterStrategy {
        let (s, bytes, n) = (self.s, self.s.dtype.size(), self.positions());
        if s.updates.size() == 0 || (0..s.operand.len()).any(|axis| self.size(axis) > s.operand[axis]) {
            return ScatterStrategy::Nothing;
        }
        // PERF: one window, as loops over few numbers write it, needs no room for the addresses of many.
        if n == 1 {
            return ScatterStrategy::One;
        }
        if walk.is_single() {
            let put = match bin {
                None => Some(address::set(bytes, target.tier)),
                Some(_) => combined.map(|c| c.one),
            };
            return match (put, self.identity(target)) {
                (Some(f), Some(identity)) => ScatterStrategy::SplitElements(f, identity),
                (Some(f), None) => ScatterStrategy::Elements(f),
                (None, _) => ScatterStrategy::Windows,
            };
        }
        // all there is to a position is the bytes from one update to the next
        let even = matches!(dims, [] | [(_, 0, _)]);
        match combined.and_then(|c| c.rows).zip(walk.run_of_bytes(bytes)) {
            Some((rows, n)) if even => ScatterStrategy::Rows(rows, n / bytes),
            _ => ScatterStrategy::Windows,
        }
    }
    /// The identity of the combination, in each element of a word, if updates may be combined in any grouping and are many.
    fn identity(&self, target: &Target) -> Option<u64> {
        let s = self.s;
        let Combine::Reduce(k) = s.combine else { return None };
        let ordered = s.dtype.is_float() && matches!(k, ReduceKind::Sum | ReduceKind::Prod);
        let many = self.positions() >= target.tuning.scatter.min_updates_per_element * s.operand.size();
        let identity = k.identity(s.dtype).filter(|_| !ordered && many)?;
        Some(match s.dtype.size() {
            1 => identity.bits * 0x0101_0101_0101_0101,
            2 => identity.bits * 0x0001_0001_0001_0001,
            4 => identity.bits << 32 | identity.bits,
            _ => identity.bits,
        })
    }
}

pub fn compile(s: &Scatter, target: &Target) -> Res<Run> {
    let axes = ScatterAxes::of(s)?;
    let (bytes, b) = (s.dtype.size(), s.dtype.size() as isize);
    let bin = match s.combine {
        Combine::Set => None,
        Combine::Sub => Some(Bin::Sub),
        Combine::Reduce(k) => Some(k.bin().ok_or_else(|| Error::Invalid("a scatter cannot combine positions".into()))?),
    };
    let undefined = |f: Bin| Error::Invalid(format!("{} is not defined for {}", f.name(), s.dtype));
    let combine = |f: Bin| Combining::new(f, s.dtype, target.tier).ok_or_else(|| undefined(f));
    let walk = axes.walk();
    let of_positions = axes.positions.iter().enumerate();
    let dims = merged(of_positions.map(|(k, u)| (s.updates[*u], axes.along(k) * b, axes.from[*u] * b)));
    let combined = bin.and_then(|f| scalar::put(f, s.dtype, target.tier));
    let each = 4.0 + walk.elements as f64 * if combined.is_some() { 0.3 } else { 0.1 };
    Ok(Box::new(Scattering {
        strategy: axes.pick(bin, combined, &walk, &dims, target),
        bytes,
        total: s.operand.size() * bytes,
        addresses: axes.addresses(target),
        combining: bin.map(combine).transpose()?,
        positions: axes.positions(),
        moves_in_window: axes.moves_in_window(),
        tuning: target.tuning.scatter,
        cost: Cost::of(axes.positions() as f64 * each),
        walk,
        dims,
    }))
}

impl Scattering {
    /// Applies one window.
    ///
    /// # Safety
    /// It lies inside the operand, and its update inside the updates; nothing else accesses it.
    unsafe fn put(&self, to: *mut u8, from: *const u8) {
        // SAFETY: by the contract.
        unsafe {
            match &self.combining {
                None => self.walk.run(to, from, copy(self.bytes)),
                Some(c) => self.walk.combine(to, from, c),
            }
        }
    }
    /// # Safety
    /// The routine was verified; there is one position.
    unsafe fn run_one(&self, ix: &IndexArrays, out: *mut u8, new: *const u8) {
        // SAFETY: `Routine::verify`: a window is no larger than the operand, its start is clamped
        // or it is dropped, and batching axes of the positions are no longer than the operand's: it
        // lies inside. The update's window lies inside the updates. The index array has a vector.
        unsafe {
            let at = self.addresses.first(ix);
            if at >= 0 {
                self.put(out.wrapping_offset(at as isize), new);
            }
        }
    }
    /// Applies the single elements of some positions.
    ///
    /// # Safety
    /// The routine was verified; `to` is as long as the operand, and this thread's.
    unsafe fn put_elements(&self, f: PutFn, bases: Bases, ix: &IndexArrays, to: *mut u8, range: Range<usize>) {
        let (b, new) = (self.bytes as isize, bases.input(2).cast_const());
        let batched = self.dims.iter().any(|d| d.1 != 0);
        let mut at = [OUTSIDE; AT_ONCE];
        let mut o = Odometer::at(&self.dims, range.start);
        for (k, from) in range.clone().step_by(AT_ONCE).enumerate() {
            if k % 256 == 0 && bases.cancel.load(Ordering::Relaxed) {
                return;
            }
            let n = AT_ONCE.min(range.end - from);
            // SAFETY: index vectors of these positions; addresses are those of elements, and each position has an update.
            unsafe {
                self.addresses.of(ix, from, n, &mut at);
                if batched {
                    o.shift::<false>(self.addresses.shift, &mut at[..n]);
                }
                f(to, at.as_ptr(), new.wrapping_add(from * self.bytes), b, n);
            }
        }
    }
    /// Threads divide the updates of single elements; each but the first has an array of its own.
    ///
    /// # Safety
    /// The routine was verified.
    unsafe fn run_split(&self, f: PutFn, identity: u64, bases: Bases, ix: &IndexArrays, parallel: bool) -> Res<()> {
        let (out, b, elements) = (SharedPtr(bases.output(0)), self.bytes as isize, self.total / self.bytes);
        let most = self.positions / (self.tuning.min_updates_per_element / 2 * elements).max(1);
        let parts = if parallel && self.is_worth_threads() { threads::num_threads().min(most) } else { 1 };
        let (Some(combining), 2..) = (&self.combining, parts) else {
            // SAFETY: by the contract; this is the only thread.
            unsafe { self.put_elements(f, bases, ix, out.get(), 0..self.positions) };
            return Ok(());
        };
        let room = self.total.next_multiple_of(64);
        let mut own = filled((parts - 1) * room / 8, identity)?;
        let own = SharedPtr(own.as_mut_ptr().cast());
        let place = |part: usize| if part == 0 { out.get() } else { own.get().wrapping_add((part - 1) * room) };
        let first_of = |part: usize| (self.positions as u128 * part as u128 / parts as u128) as usize;
        threads::for_ranges(parts, Some(&self.cost), bases.cancel, &|r| {
            r.for_each(|part| {
                // SAFETY: by the contract; each part has an array of its own.
                unsafe { self.put_elements(f, bases, ix, place(part), first_of(part)..first_of(part + 1)) }
            });
        });
        for part in 1..parts {
            // SAFETY: arrays as long as the operand, of which this one is no longer written.
            unsafe { combining.run(out.get(), place(part), elements, b, b) };
        }
        Ok(())
    }
    fn is_worth_threads(&self) -> bool {
        self.cost.estimate > self.tuning.min_shared_nanos
    }
    /// Applies windows; threads divide the operand.
    ///
    /// # Safety
    /// The routine was verified.
    unsafe fn run_windows(&self, bases: Bases, ix: &IndexArrays, parallel: bool) {
        let shared = parallel && !self.moves_in_window && self.is_worth_threads();
        // Windows that move by whole windows only are equal or disjoint: they belong to the thread
        // that has their first byte.
        let parts = if shared { threads::num_threads() } else { 1 };
        let first_of = |part: usize| (self.total as u128 * part as u128 / parts as u128) as i64;
        threads::for_ranges(parts, (parts > 1).then_some(&self.cost), bases.cancel, &|r| {
            // SAFETY: by the contract; windows that begin in this part are this thread's.
            unsafe { self.windows_of(first_of(r.start)..first_of(r.end), bases, ix) }
        });
    }
    /// Applies the windows that begin in a part of the operand.
    ///
    /// # Safety
    /// The routine was verified; nothing else touches these windows.
    unsafe fn windows_of(&self, mine: Range<i64>, bases: Bases, ix: &IndexArrays) {
        let (out, new) = (bases.output(0), bases.input(2).cast_const());
        // The bytes from one update to the next, where that is all there is to a position.
        let even = match self.dims[..] {
            [] => Some(0),
            [(_, 0, step)] => Some(step),
            _ => None,
        };
        let (mut at, mut chosen) = ([OUTSIDE; AT_ONCE], [0u16; AT_ONCE]);
        let mut o = Odometer::at(&self.dims, 0);
        for from in (0..self.positions).step_by(AT_ONCE) {
            if bases.cancel.load(Ordering::Relaxed) {
                return;
            }
            let n = AT_ONCE.min(self.positions - from);
            // SAFETY: as in `run_one`: from + n is at most the number of positions.
            unsafe { self.addresses.of(ix, from, n, &mut at) };
            let Some(step) = even else {
                for a in &at[..n] {
                    if *a >= 0 && mine.contains(&(*a + o.a as i64)) {
                        // SAFETY: as in `run_one`.
                        unsafe { self.put(out.wrapping_offset(*a as isize + o.a), new.wrapping_offset(o.b)) };
                    }
                    o.step();
                }
                continue;
            };
            // PERF: membership in this part is unpredictable, and a branch would mispredict: members are counted first.
            let mut count = 0;
            for (p, a) in (0u16..).zip(&at[..n]) {
                chosen[count] = p;
                count += usize::from(*a >= mine.start && *a < mine.end);
            }
            let new = new.wrapping_offset(from as isize * step);
            // SAFETY: positions of this chunk whose addresses are those of windows; results overlap no updates.
            unsafe {
                if let ScatterStrategy::Rows(f, run) = self.strategy {
                    f(out, at.as_ptr(), chosen.as_ptr(), count, new, step, run);
                    continue;
                }
                for p in chosen[..count].iter().map(|p| *p as usize) {
                    self.put(out.wrapping_offset(at[p] as isize), new.wrapping_offset(p as isize * step));
                }
            }
        }
    }
}
impl CompiledRoutine for Scattering {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let (old, out, new) = (bases.input(0), bases.output(0), bases.input(2).cast_const());
        if old != out {
            // SAFETY: verify, sizes: operand and result have `total` bytes. (They may be one memory, as result 0 of an update.)
            unsafe { out.copy_from(old, self.total) };
        }
        if matches!(self.strategy, ScatterStrategy::Nothing) {
            return Ok(());
        }
        let ix = self.addresses.together(bases.input(1).cast_const());
        // SAFETY: a step's routine was verified.
        unsafe {
            match self.strategy {
                ScatterStrategy::Nothing => (),
                ScatterStrategy::One => self.run_one(&ix, out, new),
                ScatterStrategy::Elements(f) => self.put_elements(f, bases, &ix, out, 0..self.positions),
                ScatterStrategy::SplitElements(f, identity) => self.run_split(f, identity, bases, &ix, parallel)?,
                ScatterStrategy::Rows(..) | ScatterStrategy::Windows => self.run_windows(bases, &ix, parallel),
            }
        }
        Ok(())
    }
    fn text(&self) -> String {
        let strategy = match self.strategy {
            ScatterStrategy::Nothing => "nothing".to_string(),
            ScatterStrategy::One => "one_window".into(),
            ScatterStrategy::Elements(_) => "elements".into(),
            ScatterStrategy::SplitElements(..) => "elements updates=divided_by_threads".into(),
            ScatterStrategy::Rows(_, n) => format!("rows elements={n}"),
            ScatterStrategy::Windows => format!("windows elements={}", self.walk.elements),
        };
        let shared = match self.strategy {
            ScatterStrategy::Rows(..) | ScatterStrategy::Windows
                if !self.moves_in_window && self.is_worth_threads() =>
            {
                " operand=divided_by_threads"
            }
            _ => "",
        };
        format!("scatter strategy={strategy}{shared}")
    }
}
