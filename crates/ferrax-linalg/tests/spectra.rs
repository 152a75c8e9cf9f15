//! Eigenvalues and singular values of matrices that are hard in one way or another, by what they mean: residuals and orthogonality in roundings.
use super::blocked::{Matrix, bytes, matrix, numbers, product};
use super::{Rng, run_on};
use ferrax_host::Tier;
use ferrax_kernel::DType;
use ferrax_kernel::linalg::{Decomposition, Linalg};

const SIZES: [usize; 9] = [1, 2, 31, 63, 64, 65, 97, 130, 300];
const FLOATS: [DType; 2] = [DType::F32, DType::F64];

/// A name, and the matrix's elements by row and column.
fn symmetric(rng: &mut Rng, n: usize) -> Vec<(&'static str, Matrix)> {
    let any = numbers(rng, n * n, false);
    let sides = numbers(rng, n, false);
    let of = |f: &dyn Fn(usize, usize) -> f64| -> Matrix { (0..n * n).map(|i| (f(i / n, i % n), 0.0)).collect() };
    let any = |i: usize, j: usize| any[i.min(j) * n + i.max(j)].0;
    let near = |i: usize, j: usize, d: f64, e: f64| if i == j { d } else { (i.abs_diff(j) == 1) as u8 as f64 * e };
    vec![
        ("of no order", of(&any)),
        ("zero", of(&|_, _| 0.0)),
        ("identity", of(&|i, j| (i == j) as u8 as f64)),
        ("of rank one", of(&|i, j| sides[i].0 * sides[j].0)),
        ("identity and rank one", of(&|i, j| sides[i].0 * sides[j].0 + (i == j) as u8 as f64)),
        ("graded", of(&|i, j| any(i, j) * 0.5f64.powi((i + j) as i32))),
        ("graded upwards", of(&|i, j| any(i, j) * 0.5f64.powi((2 * n - 2 - i - j) as i32))),
        ("Wilkinson's", of(&|i, j| near(i, j, (n as f64 / 2.0 - i as f64).abs(), 1.0))),
        (
            "Wilkinson's, glued",
            of(&|i, j| near(i, j, (10.0 - (i % 21) as f64).abs(), if i.max(j) % 21 == 0 { 1e-7 } else { 1.0 })),
        ),
        ("second differences", of(&|i, j| near(i, j, 2.0, -1.0))),
        ("clusters", of(&|i, j| if i == j { (i % 3) as f64 } else { 1e-7 * any(i, j) })),
        ("opposite pairs", of(&|i, j| if i + j + 1 == n { 1.0 + i.min(j) as f64 } else { 0.0 })),
        ("blocks", of(&|i, j| if i / 8 == j / 8 { any(i, j) } else { 0.0 })),
        ("large", of(&|i, j| 1e30 * any(i, j))),
        ("tiny", of(&|i, j| 1e-30 * any(i, j))),
    ]
}
fn decomposed(kind: Decomposition, [m, n]: [usize; 2], dtype: DType, a: &Matrix) -> Vec<Matrix> {
    let l = Linalg { kind, batch: 1, m, n, k: 0, dtype, complex: false };
    let out = run_on(Tier::current(), &l, &[bytes(dtype, false, a)]);
    out.iter().map(|b| matrix(dtype, false, b)).collect()
}
fn rounding(dtype: DType) -> f64 {
    if dtype == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON }
}
/// The largest difference of elements, in roundings of `size`.
fn off(dtype: DType, size: f64, a: &Matrix, b: &Matrix) -> f64 {
    let most =
        a.iter().zip(b).map(|(a, b)| (a.0 - b.0).abs()).fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m });
    most / (rounding(dtype) * size.max(f64::MIN_POSITIVE))
}
/// The norm of a matrix, from its elements' squares: no less than its largest value.
fn size(a: &Matrix) -> f64 {
    let most = a.iter().fold(0.0f64, |m, x| m.max(x.0.abs()));
    most * a.iter().map(|x| (x.0 / most.max(f64::MIN_POSITIVE)).powi(2)).sum::<f64>().sqrt()
}
fn transposed(a: &Matrix, m: usize, n: usize) -> Matrix {
    (0..m * n).map(|i| a[i % m * n + i / m]).collect()
}
fn identity(n: usize) -> Matrix {
    (0..n * n).map(|i| ((i / n == i % n) as u8 as f64, 0.0)).collect()
}
/// As a dtype holds it.
fn held(dtype: DType, a: &Matrix) -> Matrix {
    matrix(dtype, false, &bytes(dtype, false, a))
}

#[test]
fn of_symmetric_matrices() {
    let rng = &mut Rng(11);
    for n in SIZES {
        // of the largest a few are enough
        let each = if n > 200 { 4 } else { 1 };
        let some = symmetric(rng, n).into_iter().step_by(each);
        for ((name, a), dtype) in some.flat_map(|a| FLOATS.map(|d| (a.clone(), d))) {
            let a = held(dtype, &a);
            let [v, w] = &decomposed(Decomposition::Eigh { lower: true }, [n, n], dtype, &a)[..] else {
                unreachable!()
            };
            let what = format!("{name}, {n}, {dtype:?}");
            assert!(w.windows(2).all(|w| w[0].0 <= w[1].0), "{what}: order");
            let scaled: Matrix = (0..n * n).map(|i| (v[i].0 * w[i % n].0, 0.0)).collect();
            let left = off(dtype, size(&a), &product(&a, v, [n, n, n], false), &scaled);
            assert!(left <= 16.0, "{what}: a v is {left} roundings from v w");
            let turned = transposed(v, n, n);
            let skew = off(dtype, 1.0, &product(&turned, v, [n, n, n], false), &identity(n));
            assert!(skew <= if n < 64 { 100.0 } else { 40.0 }, "{what}: v' v is {skew} roundings from 1");
        }
    }
}

#[test]
fn of_general_matrices() {
    let rng = &mut Rng(12);
    for (m, n) in [(1, 1), (2, 2), (64, 64), (65, 65), (97, 97), (130, 100), (100, 130), (300, 300)] {
        let least = m.min(n);
        let some = symmetric(rng, m.max(n)).into_iter().step_by(if n > 200 { 4 } else { 1 });
        for ((name, a), dtype) in some.flat_map(|a| FLOATS.map(|d| (a.clone(), d))) {
            // a part of it, its columns in the other order
            let part: Matrix = (0..m * n).map(|i| a[i / n * m.max(n) + n - 1 - i % n]).collect();
            let a = held(dtype, &part);
            let kind = Decomposition::Svd { full: false, vectors: true };
            let [s, u, v] = &decomposed(kind, [m, n], dtype, &a)[..] else { unreachable!() };
            let what = format!("{name}, {m} x {n}, {dtype:?}");
            assert!(s.windows(2).all(|s| s[0].0 >= s[1].0) && s[least - 1].0 >= 0.0, "{what}: order");
            let scaled: Matrix = (0..m * least).map(|i| (u[i].0 * s[i % least].0, 0.0)).collect();
            let left = off(dtype, size(&a), &product(&scaled, v, [m, least, n], false), &a);
            assert!(left <= 16.0, "{what}: u s v' is {left} roundings from a");
            let u = transposed(u, m, least);
            for (x, of) in [(&u, m), (v, n)] {
                let skew = off(
                    dtype,
                    1.0,
                    &product(x, &transposed(x, least, of), [least, of, least], false),
                    &identity(least),
                );
                assert!(skew <= 60f64.max(n as f64), "{what}: {skew} roundings from 1");
            }
        }
    }
}
