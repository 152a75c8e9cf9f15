//! Small decompositions, several in lanes: the bits of one by itself, whatever stands beside it and whatever the tier; and what they mean.
use super::blocked::{KINDS, Matrix, adjoint, bytes, hermitian, identity, matrix, near, numbers, product};
use super::{Rng, run_on};
use ferrax_host::Tier;
use ferrax_host::threads::set_num_threads;
use ferrax_kernel::linalg::{Decomposition, Linalg, Triangle};
use ferrax_kernel::{DType, Routine, reference};

/// Every kind that has lanes, and its operands' sizes.
fn kinds(m: usize, n: usize) -> Vec<(Decomposition, [usize; 2])> {
    let flags = |k: u32| [1, 2, 4, 8, 16].map(|b| k & b != 0);
    let triangles = (0..32).map(flags).map(|[left, lower, transpose, conjugate, unit]| {
        (Decomposition::Solve(Triangle { left, lower, transpose, conjugate, unit }), [m, n])
    });
    let mut out: Vec<_> = triangles.collect();
    for full in [false, true] {
        out.push((Decomposition::Qr { full, pivoting: false }, [m, n]));
        out.push((Decomposition::Svd { full, vectors: true }, [m, n]));
    }
    out.push((Decomposition::Geqrf, [m, n]));
    out.push((Decomposition::Svd { full: false, vectors: false }, [m, n]));
    out.push((Decomposition::Lu, [m, n]));
    out.extend([true, false].map(|lower| (Decomposition::Eigh { lower }, [n, n])));
    out.push((Decomposition::Cholesky, [n, n]));
    out
}
/// Matrices of all kinds: of full rank, of lower rank, zero, huge, tiny, with values that coincide, and with NaN.
fn sorts(rng: &mut Rng, [m, n]: [usize; 2], complex: bool, batch: usize) -> Vec<Matrix> {
    let sort = |k: usize| -> Matrix {
        let mut a = numbers(rng, m * n, complex);
        match k % 9 {
            1 => a.iter_mut().for_each(|x| *x = (0.0, 0.0)),
            2 => (0..m * n).filter(|i| i % n == n / 2).for_each(|i| a[i] = a[i - n / 2]),
            3 => a.iter_mut().for_each(|x| *x = (x.0 * 1e30, x.1 * 1e30)),
            4 => a.iter_mut().for_each(|x| *x = (x.0 * 1e-36, x.1 * 1e-36)),
            5 => (0..m * n).for_each(|i| a[i] = ((i / n == i % n) as u8 as f64, 0.0)),
            6 if m * n > 0 => a[m * n / 2] = (f64::NAN, 0.0),
            7 if m * n > 0 => a[m * n - 1] = (f64::NEG_INFINITY, 0.0),
            _ => (),
        }
        a
    };
    (0..batch).map(sort).collect()
}
fn definite(rng: &mut Rng, n: usize, complex: bool, k: usize) -> Matrix {
    match k % 5 {
        4 => hermitian(rng, n, complex, -(n as f64)),
        _ => hermitian(rng, n, complex, 1.0),
    }
}
fn operands(rng: &mut Rng, d: Decomposition, [m, n]: [usize; 2], complex: bool, batch: usize) -> Vec<Vec<Matrix>> {
    match d {
        Decomposition::Solve(t) => {
            let side = if t.left { m } else { n };
            vec![sorts(rng, [side, side], complex, batch), sorts(rng, [m, n], complex, batch)]
        }
        Decomposition::Cholesky => vec![(0..batch).map(|k| definite(rng, n, complex, k)).collect()],
        _ => vec![sorts(rng, [m, n], complex, batch)],
    }
}
/// Nans as one nan.
fn bits(dtype: DType, b: &[u8]) -> Vec<u64> {
    let nan = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    super::reals(dtype, b).into_iter().map(nan).collect()
}

#[test]
fn lanes_have_the_bits_of_one_matrix() {
    let rng = &mut Rng(8);
    let sizes = [(0, 0), (0, 2), (1, 1), (2, 2), (3, 2), (2, 5), (5, 5), (8, 8), (7, 11), (16, 16), (20, 3)];
    for ((m, n), (dtype, complex)) in sizes.into_iter().flat_map(|s| KINDS.map(|k| (s, k))) {
        for (kind, [m, n]) in kinds(m, n) {
            let batch = [1, 2, 3, 8, 11, 26][rng.below(6)];
            let l = Linalg { kind, batch, m, n, k: 0, dtype, complex };
            let ins: Vec<Vec<u8>> = operands(rng, kind, [m, n], complex, batch)
                .iter()
                .map(|x| x.iter().flat_map(|x| bytes(dtype, complex, x)).collect())
                .collect();
            let routine = Routine::Linalg(Box::new(l.clone()));
            let want = reference::routine(&routine, &ins.iter().map(|x| &x[..]).collect::<Vec<_>>()).unwrap();
            for tier in Tier::ALL.into_iter().filter(|t| t.is_available()) {
                let got = run_on(tier, &l, &ins);
                for (k, ((g, w), (e, _))) in got.iter().zip(&want).zip(l.results()).enumerate() {
                    let d = l.layout(e).0;
                    assert!(bits(d, g) == bits(d, w), "{tier:?}: result {k} of {l:?}");
                }
            }
        }
    }
}

#[test]
fn threads_and_places_in_a_batch_change_no_bits() {
    let rng = &mut Rng(9);
    let (n, batch) = (6, 1500);
    for (kind, _) in kinds(n, n) {
        let l = Linalg { kind, batch, m: n, n, k: 0, dtype: DType::F32, complex: false };
        let ins: Vec<Vec<u8>> = operands(rng, kind, [n, n], false, batch)
            .iter()
            .map(|x| x.iter().flat_map(|x| bytes(DType::F32, false, x)).collect())
            .collect();
        let run = |threads: usize, l: &Linalg, ins: &[Vec<u8>]| {
            set_num_threads(threads);
            let out = run_on(Tier::current(), l, ins);
            set_num_threads(0);
            out
        };
        let (one, two) = (run(1, &l, &ins), run(2, &l, &ins));
        assert!(one == two, "{kind:?}");
        // the last five by themselves
        let few = Linalg { batch: 5, ..l };
        let each = |x: &Vec<u8>| x[x.len() / batch * (batch - 5)..].to_vec();
        let alone = run(1, &few, &ins.iter().map(each).collect::<Vec<_>>());
        assert!(alone == one.iter().map(each).collect::<Vec<_>>(), "{kind:?}");
    }
}

/// A = L L', A = Q R, A v = v w, A = u s v'; and factors that are orthogonal.
#[test]
fn small_decompositions_mean_what_they_say() {
    let rng = &mut Rng(10);
    for (n, kind) in [1, 2, 3, 7, 8, 13, 16, 17, 24, 32, 33, 64].into_iter().flat_map(|n| KINDS.map(|k| (n, k))) {
        for graded in [false, true] {
            let (dtype, complex) = kind;
            let mut h = hermitian(rng, n, complex, if graded { 0.0 } else { 0.5 });
            let mut a = numbers(rng, n * n, complex);
            // of a condition that the dtype cannot hold
            let by = |i: usize| if graded { 10f64.powi(-(8 * i as i32) / n as i32) } else { 1.0 };
            (0..n * n).for_each(|i| h[i] = (h[i].0 * by(i / n) * by(i % n), h[i].1 * by(i / n) * by(i % n)));
            (0..n * n).for_each(|i| a[i] = (a[i].0 * by(i % n), a[i].1 * by(i % n)));
            // what the dtype holds of it
            let (h, a) = (
                matrix(dtype, complex, &bytes(dtype, complex, &h)),
                matrix(dtype, complex, &bytes(dtype, complex, &a)),
            );
            let run = |d: Decomposition, x: &Matrix| -> Vec<Vec<u8>> {
                let l = Linalg { kind: d, batch: 1, m: n, n, k: 0, dtype, complex };
                run_on(Tier::current(), &l, &[bytes(dtype, complex, x)])
            };
            let own = |b: &[u8]| matrix(dtype, complex, b);
            let real = |b: &[u8]| matrix(dtype, false, b);
            let square = |x: &Matrix, y: &Matrix, adjoint: bool| product(x, y, [n, n, n], adjoint);
            let columns = |v: &Matrix, w: &Matrix| -> Matrix {
                (0..n * n).map(|i| (v[i].0 * w[i % n].0, v[i].1 * w[i % n].0)).collect()
            };
            if !graded {
                let l = own(&run(Decomposition::Cholesky, &h)[0]);
                near(dtype, n, 2.0 * n as f64, &square(&l, &l, true), &h, "l l'");
            }
            let qr = run(Decomposition::Qr { full: false, pivoting: false }, &a);
            let (q, r) = (own(&qr[0]), own(&qr[1]));
            near(dtype, n, 4.0, &square(&q, &r, false), &a, "q r");
            near(dtype, n, 1.0, &square(&q, &q, true), &identity(n), "q q'");
            let eigh = run(Decomposition::Eigh { lower: true }, &h);
            let (v, w) = (own(&eigh[0]), real(&eigh[1]));
            near(dtype, n, 2.0 * n as f64, &square(&h, &v, false), &columns(&v, &w), "a v = v w");
            near(dtype, n, 1.0, &square(&adjoint(&v, n, n), &v, false), &identity(n), "v' v");
            assert!(w.windows(2).all(|w| w[0].0 <= w[1].0));
            let svd = run(Decomposition::Svd { full: true, vectors: true }, &a);
            let (s, u, vt) = (real(&svd[0]), own(&svd[1]), own(&svd[2]));
            near(dtype, n, 4.0, &square(&columns(&u, &s), &vt, false), &a, "u s v'");
            near(dtype, n, 1.0, &square(&u, &u, true), &identity(n), "u u'");
            near(dtype, n, 1.0, &square(&vt, &vt, true), &identity(n), "v v'");
            assert!(s.windows(2).all(|s| s[0].0 >= s[1].0) && s[n - 1].0 >= 0.0);
        }
    }
}

/// Those of a matrix whose rank one rotation finds, to the last bits: what two-sided rotations of a pair must give exactly.
#[test]
fn values_that_are_known() {
    let run = |d: Decomposition, [m, n]: [usize; 2], x: &[f64]| -> Vec<Vec<f64>> {
        let l = Linalg { kind: d, batch: 1, m, n, k: 0, dtype: DType::F64, complex: false };
        let x: Matrix = x.iter().map(|x| (*x, 0.0)).collect();
        let ins = [bytes(DType::F64, false, &x)];
        let out = run_on(Tier::current(), &l, &ins);
        out.iter().map(|b| super::reals(DType::F64, b)).collect()
    };
    let eigh = Decomposition::Eigh { lower: true };
    // equal values, values that coincide but for a coupling, and one that couples nothing
    assert_eq!(run(eigh, [3, 3], &[2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0])[1], [2.0; 3]);
    assert_eq!(run(eigh, [2, 2], &[0.0, 9.0, 1.0, 0.0])[1], [-1.0, 1.0]);
    let w = &run(eigh, [2, 2], &[1.0, 0.0, 1e-170, 1.0])[1];
    assert_eq!(w[..], [1.0, 1.0]);
    // the smallest singular value of columns of very different lengths, to all its digits
    let svd = Decomposition::Svd { full: false, vectors: false };
    let s = &run(svd, [3, 2], &[1.0, 1e-20, 1.0, -1e-20, 0.0, 1e-20])[0];
    assert!((s[0] / 2f64.sqrt() - 1.0).abs() < 1e-15 && (s[1] / (3f64.sqrt() * 1e-20) - 1.0).abs() < 1e-15, "{s:?}");
    assert_eq!(run(svd, [2, 2], &[0.0; 4])[0], [0.0, 0.0]);
}
