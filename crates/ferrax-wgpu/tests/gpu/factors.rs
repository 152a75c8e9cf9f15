//! Factors and triangular systems of small matrices, against the reference.
use crate::examples::f32s;
use crate::rows::at_once;
use crate::run::{Noise, compare, gpu, own_gpu, routine_plan};
use ferrax_kernel::linalg::{Decomposition, Linalg, Triangle};
use ferrax_kernel::{DType, Routine};

fn linalg(kind: Decomposition, batch: usize, m: usize, n: usize) -> Routine {
    Routine::Linalg(Box::new(Linalg { kind, batch, m, n, k: 0, dtype: DType::F32, complex: false }))
}
/// Numbers of -1 to 1 with all bits, of which no two are equal.
fn numbers(noise: &mut Noise, n: usize) -> Vec<f32> {
    (0..n).map(|_| (noise.next() % (1 << 24)) as f32 / (1 << 23) as f32 - 1.0).collect()
}
/// Positive definite matrices.
fn positive(noise: &mut Noise, batch: usize, n: usize) -> Vec<f32> {
    let mut all = vec![];
    for _ in 0..batch {
        let b = numbers(noise, n * n);
        for (i, j) in (0..n * n).map(|e| (e / n, e % n)) {
            let x: f32 = (0..n).map(|k| b[i * n + k] * b[j * n + k]).sum();
            all.push(x + if i == j { 1.0 } else { 0.0 });
        }
    }
    all
}

const SIZES: [usize; 9] = [1, 2, 3, 7, 16, 31, 32, 40, 55];

#[test]
fn positive_matrices_have_a_root() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(61);
    for n in SIZES.into_iter().chain([63, 64, 100, 131]) {
        for batch in [1, 3] {
            let a = f32s(&positive(&mut noise, batch, n));
            compare(
                &*gpu,
                &format!("{n}"),
                routine_plan(&linalg(Decomposition::Cholesky, batch, n, n)),
                &[a],
                100.0,
                4.0,
            );
        }
    }
}

#[test]
fn a_matrix_that_is_not_positive_has_none() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(62);
    for (bad, at) in [(-1.0, 4), (0.0, 0), (f32::NAN, 8), (f32::INFINITY, 4)] {
        for n in [3, 70] {
            // the second of three
            let mut a = positive(&mut noise, 3, n);
            a[n * n + at / 3 * n + at % 3] = bad;
            let r = linalg(Decomposition::Cholesky, 3, n, n);
            compare(&*gpu, &format!("{bad} at {at} of {n}"), routine_plan(&r), &[f32s(&a)], 64.0, 4.0);
        }
    }
}

#[test]
fn matrices_are_factored_with_exchanges() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(63);
    for (m, n) in SIZES.map(|n| (n, n)).into_iter().chain([(5, 3), (3, 5), (100, 7), (7, 100), (1, 9), (9, 1)]) {
        let batch = 1 + noise.below(3);
        let a = f32s(&numbers(&mut noise, batch * m * n));
        compare(
            &*gpu,
            &format!("{m} by {n}"),
            routine_plan(&linalg(Decomposition::Lu, batch, m, n)),
            &[a],
            1000.0,
            4.0,
        );
    }
}

#[test]
fn columns_without_a_pivot_are_passed_over() {
    let Some(gpu) = gpu() else { return };
    let zeros = [0.0, 2.0, 1.0, -0.0, 4.0, 1.0, 0.0, 1.0, 5.0];
    let equal = [1.0, 2.0, 1.0, -1.0, 4.0, 1.0, 1.0, 1.0, 5.0];
    let nans = [f32::NAN, 2.0, 1.0, 7.0, 4.0, 1.0, 1.0, 1.0, 5.0];
    let later = [1.0, 2.0, 1.0, f32::NAN, 4.0, 1.0, 3.0, 1.0, 5.0];
    for a in [zeros, equal, nans, later] {
        compare(&*gpu, &format!("{a:?}"), routine_plan(&linalg(Decomposition::Lu, 1, 3, 3)), &[f32s(&a)], 8.0, 1.0);
    }
}

#[test]
fn exchanges_are_a_permutation() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(64);
    for (m, n) in [(1, 1), (5, 3), (7, 7), (300, 300)] {
        let pivots = (0..3 * n).map(|_| noise.below(m + 2) as i32 - 1).flat_map(i32::to_le_bytes).collect();
        compare(
            &*gpu,
            &format!("{n} of {m}"),
            routine_plan(&linalg(Decomposition::Permutation, 3, m, n)),
            &[pivots],
            0.0,
            0.0,
        );
    }
}

#[test]
fn triangular_systems_of_every_kind() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(65);
    for n in SIZES.into_iter().chain([64, 101]) {
        for kind in 0..16 {
            let bit = |k: usize| kind >> k & 1 == 1;
            let t = Triangle { left: bit(0), lower: bit(1), transpose: bit(2), conjugate: false, unit: bit(3) };
            let (batch, k) = (1 + noise.below(3), [1, 2, 30, 200][noise.below(4)]);
            let (m, k) = if t.left { (n, k) } else { (k, n) };
            let mut a: Vec<f32> = numbers(&mut noise, batch * n * n).iter().map(|x| x / n as f32).collect();
            (0..batch * n).for_each(|i| a[i / n * n * n + i % n * (n + 1)] += 2.0);
            let ins = [f32s(&a), f32s(&numbers(&mut noise, batch * m * k))];
            let r = linalg(Decomposition::Solve(t), batch, m, k);
            compare(&*gpu, &format!("{r:?}"), routine_plan(&r), &ins, 64.0, 1.0);
        }
    }
}

#[test]
fn larger_factors_have_two_passes_a_block() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(66);
    // and one behind the last of several; blocks share pipelines
    let counts = [63, 64, 160].map(|n| {
        let plan = routine_plan(&linalg(Decomposition::Cholesky, 1, n, n));
        let a = f32s(&positive(&mut noise, 1, n));
        let before = gpu.counts().pipelines;
        (at_once(&gpu, &plan, &[a]).1, gpu.counts().pipelines - before)
    });
    assert_eq!(counts.map(|c| c.0), [1, 4, 10]);
    assert_eq!(counts.map(|c| c.1 - counts[0].1), [0, 2, 2], "{counts:?}");
    let lu = routine_plan(&linalg(Decomposition::Lu, 1, 64, 64));
    assert_eq!(at_once(&gpu, &lu, &[f32s(&numbers(&mut noise, 64 * 64))]).1, 0);
}
