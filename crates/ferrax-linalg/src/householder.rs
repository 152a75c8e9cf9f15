//! Reflections of real vectors, and many of them applied to rows at once.
//!
//! A product of reflections `H_1 .. H_k`, each `I - tau v v'`, is `I - V T V'` with an upper triangle `T` (Schreiber and Van Loan 1989, Golub and Van Loan 5.1.7).
//! Vectors are the rows of `V'`, padded with zeros, so that all are rows of [`rows`](super::matrix_vector).
//!
//! INVARIANT: the width of groups depends on sizes only, and each piece is computed by one thread: bits depend on sizes alone.
#![allow(unsafe_code)]
use super::matrix_vector::{RowBlock, RowElement, RowOperations};
use ferrax_host::panel::{self, Matrices};
use ferrax_host::scratch::Scratch;
use ferrax_host::threads::{self, Cost, SharedPtr};
use ferrax_kernel::{Error, Res};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reflections of a group.
pub const BATCH: usize = 64;
/// Rows that they are applied to at a time: with a group's vectors they stay in the outer cache of a core.
pub const ROWS: usize = 64;

/// The threads that do the work.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    pub parallel: bool,
    pub cancel: &'a AtomicBool,
}
impl Workers<'_> {
    /// `work` on `0..n`, `each` at a time with scratch memory of `bytes`, on several threads if that pays for work of so many nanoseconds.
    pub fn pieces(
        &self,
        n: usize,
        each: usize,
        nanos: f64,
        bytes: usize,
        work: &(dyn Fn(Range<usize>, *mut u8) + Sync),
    ) -> Res<()> {
        let cost = Cost::of(nanos);
        threads::try_ranges(n.div_ceil(each), self.parallel.then_some(&cost), self.cancel, &|r| {
            Scratch.with(bytes, |scratch| {
                r.for_each(|k| work(k * each..((k + 1) * each).min(n), scratch));
            })
        })?;
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
    pub fn alone(self) -> Self {
        Workers { parallel: false, ..self }
    }
}

/// The start of the group of an element.
pub fn group_of<T: RowElement>(i: usize) -> usize {
    i / T::GROUP * T::GROUP
}
/// Elements of a row of `n`: whole groups, such that consecutive rows do not conflict in the cache.
pub fn row_of<T: RowElement>(n: usize) -> usize {
    let n = n.next_multiple_of(T::GROUP);
    n + if (n * size_of::<T>()).is_multiple_of(1024) { T::GROUP } else { 0 }
}

/// The reflection that takes `x` to a multiple of the first unit vector: its vector, 1 at first, in the place of `x`. Gives the multiple and tau (0: `x` is one, or
/// nearly, beside a matrix near 1). `below` is the sum of the squares of all but the first (Golub and Van Loan, algorithm 5.1.1).
pub fn reflector<T: RowElement>(x: &mut [T], below: f64) -> (f64, f64) {
    let alpha = x[0].wide();
    let mut rest = below.sqrt();
    if below < T::MIN_NORMAL {
        // whose squares lose precision
        let most = x[1..].iter().fold(0.0f64, |m, x| m.max(x.wide().abs()));
        rest = if most < T::MIN_NORMAL {
            0.0
        } else {
            most * x[1..].iter().map(|x| (x.wide() / most).powi(2)).sum::<f64>().sqrt()
        };
    }
    if rest == 0.0 {
        x.fill(T::narrow(0.0));
        x[0] = T::narrow(1.0);
        return (alpha, 0.0);
    }
    let norm = alpha.hypot(rest);
    let beta = if alpha < 0.0 { norm } else { -norm };
    let by = 1.0 / (alpha - beta);
    x.iter_mut().for_each(|x| *x = T::narrow(x.wide() * by));
    x[0] = T::narrow(1.0);
    (beta, (beta - alpha) / beta)
}

/// Replaces a vector of `n` elements, zero before its `from`-th, by the vector of its reflection; returns the first element of the reflected vector and tau.
/// `some` holds a number.
///
/// # Safety
/// `x` has whole groups, and belongs to this caller.
pub unsafe fn reflect<T: RowElement>(
    x: *mut T,
    from: usize,
    n: usize,
    some: *mut T,
    ops: &RowOperations<T>,
) -> (f64, f64) {
    let (first, whole) = (group_of::<T>(from), n.next_multiple_of(T::GROUP));
    // SAFETY: by the contract.
    unsafe {
        let head = std::mem::take(&mut *x.add(from));
        let own = RowBlock { a: x.add(first).cast_const(), lead: 0, count: 1, n: whole - first };
        (ops.dots)(own, x.add(first), some);
        *x.add(from) = head;
        reflector(std::slice::from_raw_parts_mut(x.add(from), n - from), (*some).wide())
    }
}
/// `m` rows of `c`, at distance `lead`, times a block of `k` reflections: `c -= ((c v) t) v'`.
///
/// Each matrix is a pointer and its two strides. `v` has `n` rows and `k` columns; `adjoint` is `v'`, which may be stored separately; `negated` is `-t`.
#[derive(Clone, Copy)]
pub struct BlockReflector<T> {
    pub k: usize,
    pub n: usize,
    pub v: (*const T, [isize; 2]),
    pub adjoint: (*const T, [isize; 2]),
    pub negated: (*const T, [isize; 2]),
}
impl<T> BlockReflector<T> {
    /// # Safety
    /// The matrices have the stated sizes; `c`, `w` and `by` (two of `m` rows at distance `row`) and `scratch` belong to this caller.
    pub unsafe fn apply(
        &self,
        (c, lead, m): (*mut T, usize, usize),
        ([w, by], row): ([*mut T; 2], usize),
        product: panel::Rows,
        scratch: *mut u8,
    ) {
        let operands =
            |a: *const T, a_row: usize, (b, b_strides): (*const T, [isize; 2]), to: *mut T, c_row| Matrices {
                a: a.cast(),
                b: b.cast(),
                c: to.cast(),
                m,
                n: self.k,
                k: self.k,
                a_strides: [a_row as isize, 1],
                b_strides,
                c_row,
                adds: false,
                scratch,
                blocks: std::ptr::null_mut(),
            };
        // SAFETY: by the contract.
        unsafe {
            // w = c v;  by = -w t;  c += by v'
            product(&Matrices { k: self.n, ..operands(c, lead, self.v, w, row) });
            product(&operands(w, row, self.negated, by, row));
            product(&Matrices { n: self.n, adds: true, ..operands(by, row, self.adjoint, c, lead) });
        }
    }
}

/// Reflections in their order: vectors in `count` rows of `n` elements, at distance `lead`, the
/// k-th zero before `k + from`.
#[derive(Clone, Copy)]
pub struct Sequence<T> {
    pub vectors: *const T,
    pub lead: usize,
    pub count: usize,
    pub n: usize,
    /// The start of the first vector.
    pub from: usize,
    pub taus: *const f64,
    /// For [`Sequence::prepare`]: `count` rows' worth of `n`, each a multiple of `BATCH` reflections, and their triangles.
    pub transposed: *mut T,
    pub triangles: *mut T,
}
// SAFETY: each use of its pointers proves that nothing writes to the memory meanwhile.
unsafe impl<T> Sync for Sequence<T> {}

impl<T: RowElement> Sequence<T> {
    /// The number of elements of `transposed` and of `triangles`.
    pub fn memory(count: usize, n: usize) -> [usize; 2] {
        let groups = count.div_ceil(BATCH);
        [groups * BATCH * n.next_multiple_of(T::GROUP), groups * BATCH * BATCH]
    }
    fn groups(&self) -> usize {
        self.count.div_ceil(BATCH)
    }
    /// The reflections of a group, and its first column.
    fn group(&self, g: usize) -> (Range<usize>, usize) {
        let r = g * BATCH..((g + 1) * BATCH).min(self.count);
        let first = group_of::<T>(r.start + self.from);
        (r, first)
    }
    fn columns(&self) -> usize {
        self.n.next_multiple_of(T::GROUP)
    }
    /// Computes the vectors as columns, and each group's triangle, negated and transposed.
    ///
    /// # Safety
    /// All arrays have the stated sizes; `transposed` and `triangles` belong to this caller.
    pub unsafe fn prepare(&self, ops: &RowOperations<T>, workers: Workers) -> Res<()> {
        let (this, ops) = (*self, *ops);
        let nanos = (self.count * BATCH * self.n) as f64 * 0.05;
        workers.pieces(self.groups(), 1, nanos, BATCH * BATCH * 8, &|g, scratch| {
            // SAFETY: each group is one thread's.
            unsafe { this.prepare_group(&ops, g.start, scratch.cast()) }
        })
    }
    unsafe fn prepare_group(&self, ops: &RowOperations<T>, g: usize, gram: *mut T) {
        let (r, first) = self.group(g);
        let (count, n) = (r.len(), self.columns());
        // SAFETY: by the contract of `prepare`.
        unsafe {
            let v = self.vectors.add(r.start * self.lead);
            let transposed = self.transposed.add(g * n * BATCH);
            const SIDE: usize = 16;
            for j0 in (first..n).step_by(SIDE) {
                for i in 0..count {
                    for j in j0..(j0 + SIDE).min(n) {
                        *transposed.add(j * BATCH + i) = *v.add(i * self.lead + j);
                    }
                }
            }
            // v_i . v_j, of which T is made column by column: T[..i, i] = -tau_i T[..i, ..i] (V' v_i)
            let t = self.triangles.add(g * BATCH * BATCH);
            for i in 0..count {
                let b = RowBlock { a: v.add(first), lead: self.lead, count: i, n: n - first };
                (ops.dots)(b, v.add(i * self.lead + first), gram.add(i * BATCH));
            }
            let mut full = [0.0f64; BATCH * BATCH];
            for i in 0..count {
                let tau = *self.taus.add(r.start + i);
                // row i of the transpose: sum over k of (V' v_i)[k] T[.., k]
                for k in 0..i {
                    let by = -tau * (*gram.add(i * BATCH + k)).wide();
                    let (before, row) = full.split_at_mut(i * BATCH);
                    for j in 0..=k {
                        row[j] += by * before[k * BATCH + j];
                    }
                }
                full[i * BATCH + i] = tau;
            }
            // full[i][j] = T[j][i]; the product needs w T', hence rows of T' in their order,
            // negated
            for i in 0..BATCH {
                for j in 0..BATCH {
                    *t.add(i * BATCH + j) = T::narrow(-full[i * BATCH + j]);
                }
            }
        }
    }
    /// The columns and the triangle of one group.
    ///
    /// # Safety
    /// As of [`Sequence::prepare`].
    pub unsafe fn prepare_one(&self, g: usize, ops: &RowOperations<T>) -> Res<()> {
        // SAFETY: by the contract, and as much scratch memory.
        Scratch.with(BATCH * BATCH * 8, |scratch| unsafe { self.prepare_group(ops, g, scratch.cast()) })
    }
    /// Multiplies rows of `c`, at distance `lead`, by `(H_1 .. H_count)'` in place. Rows of an
    /// identity (`of_identity`) are unchanged before the group that contains them.
    ///
    /// # Safety
    /// The reflections are prepared; `c` has `rows` rows of whole groups over `n`, which belong to
    /// this caller.
    pub unsafe fn apply_to_rows(
        &self,
        ops: &RowOperations<T>,
        c: *mut T,
        lead: usize,
        rows: usize,
        of_identity: bool,
        workers: Workers,
    ) -> Res<()> {
        let (this, c, product) = (*self, SharedPtr(c.cast()), ops.product);
        let nanos = 2.0 * rows as f64 * self.count as f64 * self.n as f64 * 0.03;
        workers.pieces(rows, ROWS, nanos, Self::own_memory(), &|r, scratch| {
            let x = &this;
            let groups = if of_identity { r.end.div_ceil(BATCH).min(x.groups()) } else { x.groups() };
            for g in (0..groups).rev() {
                // SAFETY: rows of this piece and its scratch memory; nothing writes the operands
                // meanwhile.
                unsafe {
                    x.turn_rows(g, true, c.get().cast::<T>().add(r.start * lead), lead, r.len(), product, scratch)
                };
            }
        })
    }
    /// `c H_i .. H_j` of one group, as above.
    ///
    /// # Safety
    /// As of [`Sequence::apply_to_rows`], of this group.
    pub unsafe fn apply_group(
        &self,
        g: usize,
        ops: &RowOperations<T>,
        c: *mut T,
        lead: usize,
        rows: usize,
        workers: Workers,
    ) -> Res<()> {
        let (this, c, product) = (*self, SharedPtr(c.cast()), ops.product);
        let nanos = 2.0 * rows as f64 * BATCH as f64 * (self.n - g * BATCH) as f64 * 0.03;
        workers.pieces(rows, ROWS, nanos, Self::own_memory(), &|r, scratch| {
            let x = &this;
            // SAFETY: rows of this piece and its scratch memory; nothing writes the operands
            // meanwhile.
            unsafe { x.turn_rows(g, false, c.get().cast::<T>().add(r.start * lead), lead, r.len(), product, scratch) };
        })
    }
    /// Bytes of scratch memory for [`Sequence::turn_rows`].
    fn own_memory() -> usize {
        panel::MEMORY + 2 * ROWS * BATCH * size_of::<T>()
    }
    /// Up to [`ROWS`] rows times a group's reflections, or (`transposed`) times these from the last to the first.
    ///
    /// # Safety
    /// As of [`Sequence::apply_to_rows`].
    unsafe fn turn_rows(
        &self,
        g: usize,
        transposed: bool,
        c: *mut T,
        lead: usize,
        m: usize,
        product: panel::Rows,
        scratch: *mut u8,
    ) {
        let (of, first) = self.group(g);
        let (k, n) = (of.len(), self.columns());
        // SAFETY: by the contract.
        unsafe {
            let w = scratch.add(panel::MEMORY).cast::<T>();
            let by = w.add(ROWS * BATCH);
            let v = self.vectors.add(of.start * self.lead + first);
            let v_columns = self.transposed.add((g * n + first) * BATCH).cast_const();
            let triangle = self.triangles.add(g * BATCH * BATCH).cast_const();
            let c = c.add(first);
            let row = |n: usize| [n as isize, 1];
            let block = BlockReflector {
                k,
                n: n - first,
                v: (v_columns, row(BATCH)),
                adjoint: (v, row(self.lead)),
                negated: (triangle, if transposed { row(BATCH) } else { [1, BATCH as isize] }),
            };
            block.apply((c, lead, m), ([w, by], BATCH), product, scratch);
        }
    }
}
