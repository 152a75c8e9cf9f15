//! Large decompositions beside the waist's text, which is in double precision: where they are unique, the same; else by what they mean.
use super::{Rng, reals, run_on};
use ferrax_host::Tier;
use ferrax_host::threads::set_num_threads;
use ferrax_kernel::linalg::{Decomposition, Linalg, Triangle};
use ferrax_kernel::{DType, Routine, Scalar, reference};

/// Complex numbers as pairs, whatever the dtype: real ones have zeros there.
pub type Matrix = Vec<(f64, f64)>;

pub const KINDS: [(DType, bool); 4] =
    [(DType::F32, false), (DType::F64, false), (DType::F32, true), (DType::F64, true)];

pub fn numbers(rng: &mut Rng, n: usize, complex: bool) -> Matrix {
    let mut part = || rng.below(2001) as f64 / 1000.0 - 1.0;
    (0..n).map(|_| (part(), if complex { part() } else { 0.0 })).collect()
}
pub fn bytes(dtype: DType, complex: bool, x: &[(f64, f64)]) -> Vec<u8> {
    let parts = x.iter().flat_map(|z| [z.0, z.1].into_iter().take(1 + complex as usize));
    reference::write(&parts.map(|x| Scalar::from_f64(dtype, x)).collect::<Vec<_>>())
}
pub fn matrix(dtype: DType, complex: bool, b: &[u8]) -> Matrix {
    let x = reals(dtype, b);
    x.chunks_exact(1 + complex as usize).map(|z| (z[0], if complex { z[1] } else { 0.0 })).collect()
}
/// `a b`, or `a b'`.
pub fn product(a: &[(f64, f64)], b: &[(f64, f64)], [m, k, n]: [usize; 3], adjoint: bool) -> Matrix {
    let mut out = vec![(0.0, 0.0); m * n];
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        for p in 0..k {
            let (x, y) = (a[i * k + p], if adjoint { b[j * k + p] } else { b[p * n + j] });
            let y = (y.0, if adjoint { -y.1 } else { y.1 });
            out[i * n + j].0 += x.0 * y.0 - x.1 * y.1;
            out[i * n + j].1 += x.0 * y.1 + x.1 * y.0;
        }
    }
    out
}
/// `m` by `n`, of an `n` by `m`.
pub fn adjoint(a: &[(f64, f64)], m: usize, n: usize) -> Matrix {
    (0..m * n).map(|i| a[i % n * m + i / n]).map(|z| (z.0, -z.1)).collect()
}
/// Hermitian, with eigenvalues from `least` up.
pub fn hermitian(rng: &mut Rng, n: usize, complex: bool, least: f64) -> Matrix {
    let a = numbers(rng, n * n, complex);
    let mut h = product(&a, &a, [n, n, n], true);
    (0..n).for_each(|i| h[i * n + i] = (h[i * n + i].0 + least, 0.0));
    h
}
pub fn near(dtype: DType, n: usize, size: f64, got: &[(f64, f64)], want: &[(f64, f64)], what: &str) {
    let eps = if dtype == DType::F32 { 1.2e-7 } else { 2.3e-16 };
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let off = (g.0 - w.0).abs().max((g.1 - w.1).abs());
        assert!(off <= 8.0 * eps * n as f64 * size, "{what}: element {i} is {g:?}, not {w:?}");
    }
}
pub fn identity(n: usize) -> Matrix {
    (0..n * n).map(|i| ((i / n == i % n) as u8 as f64, 0.0)).collect()
}
struct Case {
    l: Linalg,
    ins: Vec<Vec<u8>>,
}
impl Case {
    fn new(kind: Decomposition, [m, n]: [usize; 2], (dtype, complex): (DType, bool), ins: &[&[(f64, f64)]]) -> Case {
        let l = Linalg { kind, batch: 1, m, n, k: 0, dtype, complex };
        Case { l, ins: ins.iter().map(|x| bytes(dtype, complex, x)).collect() }
    }
    fn routine(&self) -> Routine {
        Routine::Linalg(Box::new(self.l.clone()))
    }
    fn run(&self) -> Vec<Vec<u8>> {
        run_on(Tier::current(), &self.l, &self.ins)
    }
    fn reference(&self) -> Vec<Vec<u8>> {
        reference::routine(&self.routine(), &self.ins.iter().map(|x| &x[..]).collect::<Vec<_>>()).unwrap()
    }
    fn matrices(&self, x: &[Vec<u8>]) -> Vec<Matrix> {
        x.iter().map(|b| matrix(self.l.dtype, self.l.complex, b)).collect()
    }
    /// Every float of a result beside the text's.
    fn agrees(&self, size: f64, results: usize) {
        let (got, want) = (self.run(), self.reference());
        let (g, w) = (self.matrices(&got[..results]), self.matrices(&want[..results]));
        for (g, w) in g.iter().zip(&w) {
            near(self.l.dtype, self.l.m.max(self.l.n), size, g, w, &format!("{:?}", self.l));
        }
        assert!(got[results..] == want[results..], "{:?}: indices", self.l);
    }
    /// As the text has it, to the bit: it was left to that.
    fn is_left(&self) {
        let (got, want) = (self.run(), self.reference());
        let bits = |x: &[Vec<u8>]| -> Vec<Vec<String>> {
            x.iter().map(|b| reals(self.l.dtype, b).iter().map(|x| format!("{x:?}")).collect()).collect()
        };
        assert!(got == want || bits(&got) == bits(&want), "{:?}", self.l);
    }
}

#[test]
fn cholesky() {
    let rng = &mut Rng(1);
    for (n, kind) in [65, 129, 300].into_iter().flat_map(|n| KINDS.map(|k| (n, k))) {
        let mut h = hermitian(rng, n, kind.1, 5.0);
        // what is above the diagonal is not read
        (0..n * n).filter(|i| i % n > i / n).for_each(|i| h[i] = (7.0, 7.0));
        Case::new(Decomposition::Cholesky, [n, n], kind, &[&h]).agrees(10.0, 1);
        h[n + 1] = (f64::NAN, 0.0);
        Case::new(Decomposition::Cholesky, [n, n], kind, &[&h]).is_left();
        h[n + 1] = (50.0, 0.0);
        h[(n - 1) * (n + 1)] = (-1.0, 0.0);
        let case = Case::new(Decomposition::Cholesky, [n, n], kind, &[&h]);
        case.is_left();
        assert!(case.matrices(&case.run())[0].iter().enumerate().all(|(i, x)| x.0.is_nan() == (i % n <= i / n)));
    }
}

#[test]
fn lu() {
    let rng = &mut Rng(2);
    for (m, n) in [(40, 40), (65, 64), (150, 33), (70, 300), (260, 260)] {
        for kind in KINDS {
            let mut a = numbers(rng, m * n, kind.1);
            let case = Case::new(Decomposition::Lu, [m, n], kind, &[&a]);
            if kind.0 == DType::F64 {
                // in single precision, one of two pivots that are nearly as large may win here and the other there
                case.agrees(30.0, 1);
            }
            let (got, least) = (case.run(), m.min(n));
            let (f, order) = (matrix(kind.0, kind.1, &got[0]), reals(DType::I32, &got[2]));
            let at = |i: usize, j: usize| f[i * n + j];
            let lower: Matrix = (0..m * least)
                .map(|t| (t / least, t % least))
                .map(|(i, j)| if i > j { at(i, j) } else { ((i == j) as u8 as f64, 0.0) })
                .collect();
            // pivots are those whose parts are largest in sum
            assert!(lower.iter().all(|x| x.0.hypot(x.1) <= 1.4143));
            let upper: Matrix = (0..least * n).map(|t| if t % n >= t / n { f[t] } else { (0.0, 0.0) }).collect();
            let rows: Matrix = (0..m * n).map(|t| a[order[t / n] as usize * n + t % n]).collect();
            near(kind.0, m.max(n), 10.0, &product(&lower, &upper, [m, least, n], false), &rows, "l u");
            let mut turns: Vec<f64> = (0..m).map(|i| i as f64).collect();
            reals(DType::I32, &got[1]).iter().enumerate().for_each(|(i, p)| turns.swap(i, *p as usize));
            assert!(turns == order);
            // a column of zeros, and one without a number
            (0..m).for_each(|i| a[i * n + 20] = (0.0, 0.0));
            Case::new(Decomposition::Lu, [m, n], kind, &[&a]).is_left();
            a[5] = (f64::NAN, 0.0);
            Case::new(Decomposition::Lu, [m, n], kind, &[&a]).is_left();
        }
    }
}

#[test]
fn qr() {
    let rng = &mut Rng(3);
    for (m, n) in [(40, 40), (65, 64), (150, 33), (70, 300), (260, 260), (400, 170)] {
        for (kind, full) in KINDS.iter().flat_map(|k| [(*k, false), (*k, true)]) {
            let mut a = numbers(rng, m * n, kind.1);
            let d = Decomposition::Qr { full, pivoting: false };
            Case::new(d, [m, n], kind, &[&a]).agrees(10.0, 2);
            let small: Matrix = a.iter().map(|z| (z.0 * 1e-30, z.1 * 1e-30)).collect();
            let got = Case::new(d, [m, n], kind, &[&small]);
            let inner = if full { m } else { m.min(n) };
            let y = got.matrices(&got.run());
            near(kind.0, m.max(n), 1e-29, &product(&y[0], &y[1], [m, inner, n], false), &small, "small");
            (0..m).for_each(|i| a[i * n + 20] = (0.0, 0.0));
            let case = Case::new(d, [m, n], kind, &[&a]);
            let y = case.matrices(&case.run());
            near(kind.0, m.max(n), 5.0, &product(&y[0], &y[1], [m, inner, n], false), &a, "a column of zeros");
        }
    }
}

/// The same r, and reflections whose product is the same q.
#[test]
fn packed_reflections() {
    let rng = &mut Rng(8);
    for ((m, n), kind) in
        [(40, 30), (65, 65), (150, 70), (70, 300), (260, 260)].into_iter().flat_map(|s| KINDS.map(|k| (s, k)))
    {
        for scale in [1.0, 1e-30] {
            let mut a: Matrix = numbers(rng, m * n, kind.1).iter().map(|z| (z.0 * scale, z.1 * scale)).collect();
            let case = Case::new(Decomposition::Geqrf, [m, n], kind, &[&a]);
            let (got, want) = (case.matrices(&case.run()), case.matrices(&case.reference()));
            let upper = |x: &Matrix| -> Matrix { (0..m * n).filter(|i| i % n >= i / n).map(|i| x[i]).collect() };
            let lower = |x: &Matrix| -> Matrix { (0..m * n).filter(|i| i % n < i / n).map(|i| x[i]).collect() };
            near(kind.0, m.max(n), 40.0 * scale, &upper(&got[0]), &upper(&want[0]), "r");
            near(kind.0, m.max(n), 40.0, &lower(&got[0]), &lower(&want[0]), "reflections");
            near(kind.0, m.max(n), 40.0, &got[1], &want[1], "taus");
            // of a column that depends on others the reflection is any one
            (0..m).for_each(|i| a[i * n + 20] = (0.0, 0.0));
            let case = Case::new(Decomposition::Geqrf, [m, n], kind, &[&a]);
            let r = case.matrices(&case.run()).swap_remove(0);
            let r: Matrix = (0..m * n).map(|i| if i % n >= i / n { r[i] } else { (0.0, 0.0) }).collect();
            let square = |x: &Matrix| product(&adjoint(x, n, m), x, [n, m, n], false);
            near(kind.0, m.max(n), m as f64 * scale * scale, &square(&r), &square(&a), "a column of zeros");
            a[3] = (f64::NAN, 0.0);
            Case::new(Decomposition::Geqrf, [m, n], kind, &[&a]).is_left();
        }
    }
}

#[test]
fn triangular_systems() {
    let rng = &mut Rng(4);
    let flags = (0..32u32).map(|i| [1, 2, 4, 8, 16].map(|b| i & b != 0));
    for ([left, lower, transpose, conjugate, unit], kind) in flags.flat_map(|f| KINDS.map(|k| (f, k))) {
        let t = Triangle { left, lower, transpose, conjugate, unit };
        let (n, sides) = (40 + rng.below(100), 1 + rng.below(150));
        let mut a = numbers(rng, n * n, kind.1);
        for i in 0..n * n {
            let (row, column) = (i / n, i % n);
            let read = if lower { row > column } else { row < column };
            a[i] = match (read, row == column) {
                (true, _) => (a[i].0 / n as f64, a[i].1 / n as f64),
                (_, true) if !unit => (2.0 + a[i].0, a[i].1),
                // what is not read
                _ => (f64::NAN, f64::NAN),
            };
        }
        let (m, k) = if left { (n, sides) } else { (sides, n) };
        let b = numbers(rng, m * k, kind.1);
        Case::new(Decomposition::Solve(t), [m, k], kind, &[&a, &b]).agrees(2.0, 1);
        if !unit {
            a[20 * n + 20] = (0.0, 0.0);
            Case::new(Decomposition::Solve(t), [m, k], kind, &[&a, &b]).is_left();
        }
    }
}

#[test]
fn eigenvalues_and_vectors() {
    let rng = &mut Rng(5);
    for (n, kind) in [40, 150].into_iter().flat_map(|n| KINDS.map(|k| (n, k))) {
        for (lower, scale) in [(true, 1.0), (false, 1.0), (true, 1e-25), (false, 1e25)] {
            let h: Matrix = hermitian(rng, n, kind.1, -10.0).iter().map(|z| (z.0 * scale, z.1 * scale)).collect();
            let mut a = h.clone();
            // the other triangle is not read
            (0..n * n).filter(|i| (i % n > i / n) == lower && i % n != i / n).for_each(|i| a[i] = (3.0, 1.0));
            let case = Case::new(Decomposition::Eigh { lower }, [n, n], kind, &[&a]);
            let (got, want) = (case.run(), case.reference());
            let v = matrix(kind.0, kind.1, &got[0]);
            let w = matrix(kind.0, false, &got[1]);
            let size = 2.0 * n as f64 * scale;
            near(kind.0, n, size, &w, &matrix(kind.0, false, &want[1]), "eigenvalues");
            assert!(w.windows(2).all(|w| w[0].0 <= w[1].0));
            let scaled: Matrix = (0..n * n).map(|i| (v[i].0 * w[i % n].0, v[i].1 * w[i % n].0)).collect();
            near(kind.0, n, size, &product(&scaled, &v, [n, n, n], true), &h, "v w v'");
            near(kind.0, n, 1.0, &product(&v, &v, [n, n, n], true), &identity(n), "v v'");
            a[3 * n + 3] = (f64::INFINITY, 0.0);
            Case::new(Decomposition::Eigh { lower }, [n, n], kind, &[&a]).is_left();
        }
    }
}

#[test]
fn singular_values_and_vectors() {
    let rng = &mut Rng(6);
    for (m, n) in [(40, 40), (150, 140), (140, 150), (200, 50), (50, 200)] {
        for (kind, full) in KINDS.iter().flat_map(|k| [(*k, false), (*k, true)]) {
            let mut a = numbers(rng, m * n, kind.1);
            // of less than full rank
            (0..m).for_each(|i| a[i * n + 1] = a[i * n]);
            let (least, most) = (m.min(n), m.max(n));
            let case = Case::new(Decomposition::Svd { full, vectors: true }, [m, n], kind, &[&a]);
            let (got, want) = (case.run(), case.reference());
            let s = matrix(kind.0, false, &got[0]);
            near(kind.0, most, 20.0, &s, &matrix(kind.0, false, &want[0]), "singular values");
            assert!(s.windows(2).all(|s| s[0].0 >= s[1].0) && s[least - 1].0 >= 0.0);
            let (u, v) = (matrix(kind.0, kind.1, &got[1]), matrix(kind.0, kind.1, &got[2]));
            let (wide, high) = if full { (m, n) } else { (least, least) };
            let scaled: Matrix = (0..m * least)
                .map(|i| (u[i / least * wide + i % least], s[i % least].0))
                .map(|(z, s)| (z.0 * s, z.1 * s))
                .collect();
            near(kind.0, most, 20.0, &product(&scaled, &v[..least * n], [m, least, n], false), &a, "u s v'");
            let gram = |x: &Matrix, rows: usize, n: usize| product(x, x, [rows, n, rows], true);
            near(kind.0, most, 1.0, &gram(&adjoint(&u, wide, m), wide, m), &identity(wide), "u' u");
            near(kind.0, most, 1.0, &gram(&v, high, n), &identity(high), "v' v");
            let values = Case::new(Decomposition::Svd { full: false, vectors: false }, [m, n], kind, &[&a]);
            near(kind.0, most, 20.0, &matrix(kind.0, false, &values.run()[0]), &s, "values alone");
        }
    }
}

/// One matrix or several, one thread or three, whatever the tier.
#[test]
fn bits_do_not_depend_on_threads_nor_on_the_batch() {
    let rng = &mut Rng(7);
    let (m, n) = (330, 300);
    for kind in [(DType::F32, false), (DType::F64, true)] {
        let triangle = Triangle { left: false, lower: true, transpose: false, conjugate: true, unit: false };
        let kinds = [
            Decomposition::Cholesky,
            Decomposition::Lu,
            Decomposition::Qr { full: false, pivoting: false },
            Decomposition::Geqrf,
            Decomposition::Solve(triangle),
            Decomposition::Eigh { lower: true },
            Decomposition::Svd { full: false, vectors: true },
        ];
        for d in kinds {
            let square = matches!(d, Decomposition::Cholesky | Decomposition::Eigh { .. });
            let m = if square { n } else { m };
            let h = hermitian(rng, n, kind.1, 5.0);
            let a = numbers(rng, m * n, kind.1);
            let ins: Vec<&[(f64, f64)]> = match d {
                Decomposition::Solve(_) => vec![&h, &a],
                _ if square => vec![&h],
                _ => vec![&a],
            };
            let one = Case::new(d, [m, n], kind, &ins);
            let two = Case {
                l: Linalg { batch: 2, ..one.l.clone() },
                ins: one.ins.iter().map(|x| [&x[..], x].concat()).collect(),
            };
            set_num_threads(1);
            let alone = run_on(Tier::Portable, &one.l, &one.ins);
            set_num_threads(3);
            let (together, both) = (one.run(), two.run());
            set_num_threads(0);
            assert!(alone == together, "{d:?}");
            for (a, b) in alone.iter().zip(&both) {
                assert!([&a[..], a].concat() == *b, "{d:?} of two");
            }
        }
    }
}
