//! Products by the `gemm` crate, called in one layout.
#![allow(unsafe_code)]
use crate::threads::{self, Cost};
use crate::tuning::DotTuning;
use ferrax_host::panel::Matrices;
use gemm_common::Parallelism;
use std::sync::atomic::AtomicBool;

/// `count` products, of elements of `size` bytes: f32 or f64.
///
/// # Safety
/// The strides stay inside the operands; results are dense and overlap neither these nor each
/// other.
pub unsafe fn products(
    count: usize,
    size: usize,
    cost: Option<&Cost>,
    cancel: &AtomicBool,
    matrices: &(dyn Fn(usize) -> Matrices + Sync),
) {
    let strips =
        if cost.is_some_and(|c| c.estimate > DotTuning::DEFAULT.min_strip_nanos) && count < threads::num_threads() {
            threads::num_threads()
        } else {
            1
        };
    threads::for_ranges(count * strips, cost, cancel, &|r| {
        for k in r {
            let x = strip(matrices(k / strips), k % strips, strips, size);
            // SAFETY: the caller's promise.
            unsafe { if size == 4 { blocked::<f32>(&x) } else { blocked::<f64>(&x) } }
        }
    });
}

/// Part `k` of `of` of a product: some of its rows or of its columns, whichever are more. The order
/// of an element's terms does not depend on the part.
fn strip(x: Matrices, k: usize, of: usize, size: usize) -> Matrices {
    /// Rows and columns that the library does together.
    const BATCH: usize = 48;
    let along = x.m.max(x.n);
    let at = |k: usize| (along.div_ceil(BATCH) * k / of * BATCH).min(along);
    let (from, part) = (at(k), at(k + 1) - at(k));
    let moved = |strides: isize| from as isize * strides * size as isize;
    if x.m > x.n {
        let (a, c) = (x.a.wrapping_offset(moved(x.a_strides[0])), x.c.wrapping_offset(moved(x.c_row as isize)));
        return Matrices { a, c, m: part, ..x };
    }
    let (b, c) = (x.b.wrapping_offset(moved(x.b_strides[1])), x.c.wrapping_offset(moved(1)));
    Matrices { b, c, n: part, ..x }
}

/// Element types that the library multiplies.
trait Blocked: From<u8> {
    /// # Safety
    /// As [`blocked`] promises. `c` is column major: strides are those of columns, then rows.
    unsafe fn gemm(size: [usize; 3], c: (*mut Self, [isize; 2]), a: Strided<Self>, b: Strided<Self>);
}
type Strided<T> = (*const T, [isize; 2]);
macro_rules! blocked {
    ($T:ty, $gemm:path) => {
        impl Blocked for $T {
            unsafe fn gemm(
                [m, n, k]: [usize; 3],
                (c, c_strides): (*mut $T, [isize; 2]),
                (a, a_strides): Strided<$T>,
                (b, b_strides): Strided<$T>,
            ) {
                use $gemm as library;
                let ([c_column, c_row], [a_column, a_row], [b_column, b_row]) = (c_strides, a_strides, b_strides);
                // SAFETY: the caller's promise.
                unsafe {
                    library::get_gemm_fn()(
                        m,
                        n,
                        k,
                        c,
                        c_column,
                        c_row,
                        false,
                        a,
                        a_column,
                        a_row,
                        b,
                        b_column,
                        b_row,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        Parallelism::None,
                    );
                }
            }
        }
    };
}
blocked!(f32, gemm_f32::gemm::f32);
blocked!(f64, gemm_f64::gemm::f64);

/// The product by the library's GEMM, whose kernels need contiguous columns of the result: our rows are columns of its transpose.
///
/// # Safety
/// The strides stay inside the operands, which hold `T`, and `c` holds m rows of n and does not
/// overlap them.
unsafe fn blocked<T: Blocked>(x: &Matrices) {
    let Matrices { a, b, c, m, n, k, a_strides: [a_row, a_column], b_strides: [b_row, b_column], c_row, .. } = *x;
    let (a, b, c): (*const T, *const T, *mut T) = (a.cast(), b.cast(), c.cast());
    let transposed = c_row > 1;
    let (size, c_strides) =
        if transposed { ([n, m, k], [c_row as isize, 1]) } else { ([m, n, k], [1, c_row as isize]) };
    let (mut left, mut right) = match transposed {
        true => ((b, [b_row, b_column]), (a, [a_row, a_column])),
        false => ((a, [a_column, a_row]), (b, [b_column, b_row])),
    };
    // terms in memory order
    if left.1[0] < 0 && k > 0 {
        let last = k as isize - 1;
        left = (left.0.wrapping_offset(last * left.1[0]), [-left.1[0], left.1[1]]);
        right = (right.0.wrapping_offset(last * right.1[1]), [right.1[0], -right.1[1]]);
    }
    // SAFETY: as promised.
    unsafe { T::gemm(size, (c, c_strides), left, right) };
}
