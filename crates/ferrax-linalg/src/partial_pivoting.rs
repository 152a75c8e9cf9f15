//! Gaussian elimination with partial pivoting for columns of a real matrix.
//!
//! ```text
//! 16 contiguous columns at a time:   for each:  subtract the earlier ones;  exchange its largest element with the first one that is left
//!                                    then subtract the 16 from the columns after them, by a product
//! ```
//!
//! Golub and Van Loan 3.4.1 and 3.2.11. Of elements of equal size the first is the pivot.
//!
//! INVARIANT: each element has sums of products of 16 columns subtracted, one after the other, in their order: bits depend on sizes alone.
#![allow(unsafe_code)]
use super::householder::group_of;
use super::matrix_vector::{RowBlock, RowElement, RowOperations};
use ferrax_host::panel::{self, Matrices};

/// Columns of a panel, and of the groups within it that are factored one by one.
pub const PANEL: usize = 64;
const STRIP: usize = 16;

/// Columns of the rows `from..m` of a matrix.
#[derive(Clone, Copy)]
pub struct Columns<T> {
    /// `width <= PANEL` rows of memory, at distance `lead`, each with a column's `m` elements,
    /// padded with zeros to a whole group.
    pub a: *mut T,
    pub lead: usize,
    pub width: usize,
    pub from: usize,
    pub m: usize,
    /// [`memory`] bytes.
    pub scratch: *mut u8,
}
/// Bytes of `Columns::scratch`, of elements of `size` bytes.
pub fn memory(size: usize) -> usize {
    panel::MEMORY + (STRIP * PANEL + STRIP) * size
}

/// Factors the columns in place: `L` below the diagonal, whose own diagonal is one, and `U`. Writes
/// the exchanged row of the `from`-th column and those after it to `pivots`. Stops if a pivot is
/// not `usable`.
///
/// # Safety
/// All arrays have the stated sizes and belong to this caller.
pub unsafe fn eliminate<T: RowElement>(
    x: &Columns<T>,
    pivots: &mut [u32],
    usable: impl Fn(T) -> bool,
    ops: &RowOperations<T>,
) -> Option<()> {
    let Columns { a, lead, width, from, m, scratch } = *x;
    // SAFETY: by the contract: elements of the columns, and of the scratch memory.
    unsafe {
        let minus = scratch.add(panel::MEMORY).cast::<T>();
        let by = minus.add(STRIP * PANEL);
        for s in (0..width).step_by(STRIP) {
            let w = STRIP.min(width - s);
            let upper = Upper { l: a.add(s * lead), lead, row: from + s };
            for i in 0..w {
                let (column, row) = (a.add((s + i) * lead), from + s + i);
                upper.solve(column, i);
                for p in 0..i {
                    *by.add(p) = T::narrow(-(*column.add(from + s + p)).wide());
                }
                // earlier elements of its group are done
                let group = group_of::<T>(row);
                let mut kept = [T::default(); 16];
                kept[..row - group].copy_from_slice(std::slice::from_raw_parts(column.add(group), row - group));
                let n = m.next_multiple_of(T::GROUP) - group;
                (ops.combine)(
                    RowBlock { a: upper.l.add(group).cast_const(), lead, count: i, n },
                    by,
                    column.add(group),
                );
                column.add(group).copy_from_nonoverlapping(kept.as_ptr(), row - group);
                let rest = std::slice::from_raw_parts_mut(column.add(row), m - row);
                let at = largest(rest);
                let pivot = rest[at];
                if !usable(pivot) {
                    return None;
                }
                pivots[s + i] = (row + at) as u32;
                if at > 0 {
                    for c in 0..width {
                        let column = a.add(c * lead + row);
                        column.swap(column.add(at));
                    }
                }
                let inverse = 1.0 / pivot.wide();
                let rest = std::slice::from_raw_parts_mut(column.add(row + 1), m - row - 1);
                rest.iter_mut().for_each(|x| *x = T::narrow(x.wide() * inverse));
            }
            let (next, first) = (s + w, from + s + w);
            for c in next..width {
                upper.solve(a.add(c * lead), w);
                for p in 0..w {
                    *minus.add((c - next) * STRIP + p) = T::narrow(-(*a.add(c * lead + from + s + p)).wide());
                }
            }
            if next < width && first < m {
                (ops.product)(&Matrices {
                    a: minus.cast_const().cast(),
                    b: upper.l.add(first).cast_const().cast(),
                    c: a.add(next * lead + first).cast(),
                    m: width - next,
                    n: m - first,
                    k: w,
                    a_strides: [STRIP as isize, 1],
                    b_strides: [lead as isize, 1],
                    c_row: lead,
                    adds: true,
                    scratch,
                    blocks: std::ptr::null_mut(),
                });
            }
        }
    }
    Some(())
}

/// Columns of `L` from its `row`-th row on.
struct Upper<T> {
    l: *mut T,
    lead: usize,
    row: usize,
}
impl<T: RowElement> Upper<T> {
    /// Subtracts the contributions of earlier columns from the first `n` elements of a column, from
    /// that row on.
    ///
    /// # Safety
    /// So many columns of `L` are done.
    unsafe fn solve(&self, column: *mut T, n: usize) {
        let mut u = [0.0f64; STRIP];
        for i in 0..n {
            // SAFETY: elements of both.
            unsafe {
                let mut x = (*column.add(self.row + i)).wide();
                for (p, u) in u[..i].iter().enumerate() {
                    x -= (*self.l.add(p * self.lead + self.row + i)).wide() * u;
                }
                *column.add(self.row + i) = T::narrow(x);
                u[i] = (*column.add(self.row + i)).wide();
            }
        }
    }
}
/// The position of the first element of largest magnitude.
fn largest<T: RowElement>(x: &[T]) -> usize {
    const LANES: usize = 16;
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut most = [T::default(); LANES];
    for c in chunks {
        for (most, x) in most.iter_mut().zip(c) {
            let size = x.size();
            *most = if size > *most { size } else { *most };
        }
    }
    let most =
        most.into_iter().chain(rest.iter().map(|x| x.size())).fold(T::default(), |m, x| if x > m { x } else { m });
    let in_chunk = |c: &[T; LANES]| c.iter().fold(false, |any, x| any | (x.size() == most));
    let start = chunks.iter().position(in_chunk).unwrap_or(chunks.len()) * LANES;
    start + x[start..].iter().position(|x| x.size() == most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_is_found() {
        for n in [1, 2, 15, 16, 17, 31, 32, 33, 100] {
            for at in 0..n {
                let mut x: Vec<f32> = (0..n).map(|i| (i % 7) as f32 / 8.0).collect();
                x[at] = -2.0;
                x[n - 1] = if at < n - 1 { 2.0 } else { x[n - 1] };
                assert_eq!(largest(&x), at);
            }
        }
        assert_eq!(largest(&[0.0f64; 20]), 0);
    }
}
