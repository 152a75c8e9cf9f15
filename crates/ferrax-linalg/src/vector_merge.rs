//! Merges the eigenvectors of two halves of a matrix, stored in rows: grouped by their nonzero parts, and multiplied by a matrix.
//!
//! ```text
//!     S       times   t t t . . .     rows that are nonzero in the top half alone,
//!                     t t t b b b     in both,
//!                     . . . b b b     and in the bottom half
//! ```
//!
//! So zeros are not multiplied (Gu and Eisenstat 1995, section 3.4).
//!
//! INVARIANT: as in [`reflections`](super::householder): bits depend on sizes alone.
#![allow(unsafe_code)]
use super::householder::Workers;
use super::matrix_vector::RowElement;
use ferrax_host::panel::{self, Matrices, Rows};
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;
use std::ops::Range;

/// Rows of a piece of a product.
const ROWS: usize = 128;

/// The range where a vector is not zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    Top,
    All,
    Bottom,
}
impl Reach {
    /// Of a combination of two.
    pub fn and(self, o: Reach) -> Reach {
        if self == o { self } else { Reach::All }
    }
}

/// The poles that remain after deflation: nearly equal poles are rotated, and poles whose entry of
/// z is negligible are dropped; and the ranges of all vectors.
pub struct Deflated {
    pub poles: Vec<usize>,
    pub done: Vec<usize>,
    pub reach: Vec<Reach>,
}

/// Elements that threads write in parts.
#[derive(Clone, Copy)]
pub struct Pieces(SharedPtr);
impl Pieces {
    pub fn new<E>(x: &mut [E]) -> Pieces {
        Pieces(SharedPtr(x.as_mut_ptr().cast()))
    }
    /// # Safety
    /// The range lies inside the array of these pieces, which is alive, and belongs to one thread.
    pub unsafe fn of<'a, E>(&self, r: Range<usize>) -> &'a mut [E] {
        // SAFETY: by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.get().cast::<E>().add(r.start), r.len()) }
    }
}

/// The positions of two sorted parts in ascending order of their values: `order` has the positions, from `start` on, of the first `first` values in
/// their order, then of those from `second` on.
pub fn merge_ascending(values: &[f64], order: &[usize], start: usize, [first, second]: [usize; 2]) -> Vec<usize> {
    let n = order.len();
    let mut rising = Vec::with_capacity(n);
    let (mut i, mut j) = (0, second);
    while i < first || j < n {
        let takes_first = j == n || i < first && values[order[i] - start] <= values[order[j] - start];
        let from = if takes_first { &mut i } else { &mut j };
        rising.push(order[*from] - start);
        *from += 1;
    }
    rising
}

/// Vectors in rows, at distance `lead`, with twice as much working memory: for gathered vectors,
/// and for the matrix they are multiplied by.
#[derive(Clone, Copy)]
pub struct Vectors<T> {
    pub q: *mut T,
    pub gathered: *mut T,
    pub small: *mut T,
    pub lead: usize,
}
// SAFETY: as its pointers: who follows them proves that no two threads write one element.
unsafe impl<T> Sync for Vectors<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Vectors<T> {}

/// Of a merger: its rows, and its columns by halves.
#[derive(Clone)]
pub struct Halves {
    pub rows: Range<usize>,
    pub top: Range<usize>,
    pub bottom: Range<usize>,
}

impl<T: RowElement> Vectors<T> {
    /// Reads an element without making a slice of it.
    ///
    /// # Safety
    /// It lies inside, and nothing writes it meanwhile.
    pub unsafe fn at(&self, i: usize, j: usize) -> f64 {
        // SAFETY: by the contract.
        unsafe { (*self.q.add(i * self.lead + j)).wide() }
    }
    /// Rows i and k become `c i + s k` and `c k - s i`.
    ///
    /// # Safety
    /// Both rows lie inside, are disjoint, and belong to this caller.
    pub unsafe fn turn(&self, i: usize, k: usize, columns: Range<usize>, c: f64, s: f64) {
        // SAFETY: by the contract.
        let [a, b] = [i, k].map(|i| unsafe {
            std::slice::from_raw_parts_mut(self.q.add(i * self.lead + columns.start), columns.len())
        });
        for (a, b) in a.iter_mut().zip(b) {
            let (x, y) = (a.wide(), b.wide());
            (*a, *b) = (T::narrow(c * x + s * y), T::narrow(c * y - s * x));
        }
    }
    /// The rows `of`, side by side in the gathered ones from the merger's first on.
    ///
    /// # Safety
    /// The merger's rows of both are this caller's.
    pub unsafe fn gather(&self, h: &Halves, of: &[usize], workers: Workers) -> Res<()> {
        let columns = h.top.start..h.bottom.end;
        let this = *self;
        workers.pieces(of.len(), 32, (of.len() * columns.len()) as f64 * 0.3, 0, &|r, _| {
            let this = &this;
            for g in r {
                // SAFETY: a row of this piece.
                unsafe {
                    let from = this.q.add(of[g] * this.lead + columns.start).cast_const();
                    let to = this.gathered.add((h.rows.start + g) * this.lead + columns.start);
                    to.copy_from_nonoverlapping(from, columns.len());
                }
            }
        })
    }
    /// The gathered rows `k..` back in their places from the merger's k-th on.
    ///
    /// # Safety
    /// As of [`Vectors::gather`].
    pub unsafe fn put_back(&self, h: &Halves, k: usize) {
        let first = h.top.start;
        for i in h.rows.start + k..h.rows.end {
            // SAFETY: a row of the merger.
            unsafe {
                let from = self.gathered.add(i * self.lead + first).cast_const();
                self.q.add(i * self.lead + first).copy_from_nonoverlapping(from, h.bottom.end - first);
            }
        }
    }
    /// S times the gathered rows `0..k`, in the merger's place: `reach` is where each of them reaches, sorted; `row(i, to)` writes the i-th row of S.
    ///
    /// # Safety
    /// As of [`Vectors::gather`].
    pub unsafe fn multiply(
        &self,
        h: &Halves,
        reach: &[Reach],
        product: Rows,
        workers: Workers,
        row: &(dyn Fn(usize, &mut [f64]) + Sync),
    ) -> Res<()> {
        let (k, start) = (reach.len(), h.rows.start);
        let tops = reach.iter().filter(|r| **r == Reach::Top).count();
        let bottoms = reach.iter().filter(|r| **r == Reach::Bottom).count();
        let nanos = (k * k * h.rows.len() / 2) as f64 * 0.03;
        let bytes = panel::MEMORY + panel::BLOCKS + k * 8;
        let this = *self;
        workers.pieces(k, ROWS, nanos, bytes, &|r, scratch| {
            let x = &this;
            // SAFETY: rows of this piece: of S, and of the vectors, which were copied; scratch memory of that many bytes.
            unsafe {
                let blocks = scratch.add(panel::MEMORY);
                let one = std::slice::from_raw_parts_mut(blocks.add(panel::BLOCKS).cast::<f64>(), k);
                let s = x.small.add((start + r.start) * x.lead);
                for (i, at) in r.clone().enumerate() {
                    row(at, one);
                    for (j, v) in one.iter().enumerate() {
                        *s.add(i * x.lead + j) = T::narrow(*v);
                    }
                }
                for (columns, of) in [(h.top.clone(), 0..k - bottoms), (h.bottom.clone(), tops..k)] {
                    let [m, n, terms] = [r.len(), columns.len(), of.len()];
                    product(&Matrices {
                        a: s.add(of.start).cast_const().cast(),
                        b: x.gathered.add((start + of.start) * x.lead + columns.start).cast_const().cast(),
                        c: x.q.add((start + r.start) * x.lead + columns.start).cast(),
                        m,
                        n,
                        k: terms,
                        a_strides: [x.lead as isize, 1],
                        b_strides: [x.lead as isize, 1],
                        c_row: x.lead,
                        adds: false,
                        scratch,
                        blocks: if panel::is_large(m, n, terms) { blocks } else { std::ptr::null_mut() },
                    });
                }
            }
        })
    }
}
