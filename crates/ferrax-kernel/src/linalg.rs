//! Matrix decompositions: the parameters of the routine and the reference implementations, one
//! matrix at a time.
//!
//! The reference evaluator runs this code, and so do backends for small matrices, so their bits
//! agree there.
//!
//! ```text
//! Svd { full: false, vectors: true } of m = 3, n = 2:      a[3,2] -> s[2] u[3,2] vt[2,2]
//! ```
//! INVARIANT: no matrix causes a panic or an endless loop. A result that does not exist or does not
//! converge is nan. After the first matrix of a run, [`Workspace`] holds all the memory that the
//! next one needs.
mod batch;
mod field;
mod jacobi;
pub mod lanes;
mod reflect;
mod schur;
mod svd;
mod symmetric;
mod triangular;

use crate::dtype::DType;
pub use batch::LaneWorkspace;
use field::{C128, RealOrComplex, transposed, unit_scale};
use lanes::ElementLanes;
pub use triangular::Triangle;

/// The kind of decomposition; operands and results are those of [`Linalg::operands`] and
/// [`Linalg::results`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decomposition {
    /// The lower factor; all nan for a matrix that is not positive definite.
    Cholesky,
    /// `r' r + w w'`, factored again.
    CholeskyUpdate,
    /// The solution of a triangular system.
    Solve(Triangle),
    /// Diagonals (below, middle, above) and right-hand sides of `k` columns.
    TridiagonalSolve,
    /// Both factors in one array, which rows were exchanged, and where each row came from.
    Lu,
    /// Exchanges of rows as where each row comes from: `n` of them, of `m` rows.
    Permutation,
    /// q, r and, with pivoting, which column came where.
    Qr { full: bool, pivoting: bool },
    /// r and, below its diagonal, the reflections whose product q is, packed; and their coefficients.
    Geqrf,
    /// The first `n` columns of a product of `k` reflections.
    HouseholderProduct,
    /// That product, or its adjoint, times a matrix of `m` by `n` from the left or right, by `k` reflections.
    Multiply { left: bool, adjoint: bool },
    /// The triangular array and its reflections, packed.
    Hessenberg,
    /// That, both diagonals, and the coefficients of the reflections.
    Tridiagonal { lower: bool },
    /// Eigenvectors and ascending eigenvalues of a Hermitian matrix, by one of its triangles.
    Eigh { lower: bool },
    /// Eigenvalues, left eigenvectors, right eigenvectors; complex.
    Eig { left: bool, right: bool },
    /// Singular values, and both sets of vectors.
    Svd { full: bool, vectors: bool },
    /// The (nearly) triangular form, and the vectors.
    Schur { vectors: bool },
}

/// One decomposition of `batch` matrices of `m` rows and `n` columns, elements in row-major order. `k` is a third size where there is one.
/// Complex elements are two of `dtype`, side by side.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Linalg {
    pub kind: Decomposition,
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// f32 or f64.
    pub dtype: DType,
    pub complex: bool,
}

/// Eigenvalues and singular values of matrices up to this size come from rotations of pairs, which suit lanes, and are most accurate.
const SIDE: usize = 16;

/// The element type of an operand or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entries {
    /// Of the matrix's own kind.
    Own,
    Real,
    Complex,
    Index,
}
use Entries::{Complex, Index, Own, Real};

impl Linalg {
    /// Kind and count of the elements of each operand of one matrix.
    pub fn operands(&self) -> Vec<(Entries, usize)> {
        let (m, n, k) = (self.m, self.n, self.k);
        match self.kind {
            Decomposition::CholeskyUpdate => vec![(Own, n * n), (Own, n)],
            Decomposition::Solve(t) => {
                let a = if t.left { m } else { n };
                vec![(Own, a * a), (Own, m * n)]
            }
            Decomposition::TridiagonalSolve => vec![(Own, n), (Own, n), (Own, n), (Own, n * k)],
            Decomposition::Permutation => vec![(Index, n)],
            Decomposition::HouseholderProduct => vec![(Own, m * n), (Own, k)],
            Decomposition::Multiply { left, .. } => {
                let q = if left { m } else { n };
                vec![(Own, q * k), (Own, k), (Own, m * n)]
            }
            _ => vec![(Own, m * n)],
        }
    }
    /// Those of each result.
    pub fn results(&self) -> Vec<(Entries, usize)> {
        let (m, n, k) = (self.m, self.n, self.k);
        let least = m.min(n);
        let when = |p: bool, v: Vec<(Entries, usize)>| if p { v } else { vec![] };
        match self.kind {
            Decomposition::Cholesky | Decomposition::CholeskyUpdate => vec![(Own, n * n)],
            Decomposition::Solve(_) | Decomposition::HouseholderProduct | Decomposition::Multiply { .. } => {
                vec![(Own, m * n)]
            }
            Decomposition::TridiagonalSolve => vec![(Own, n * k)],
            Decomposition::Lu => vec![(Own, m * n), (Index, least), (Index, m)],
            Decomposition::Permutation => vec![(Index, m)],
            Decomposition::Qr { full, pivoting } => {
                let inner = if full { m } else { least };
                [vec![(Own, m * inner), (Own, inner * n)], when(pivoting, vec![(Index, n)])].concat()
            }
            Decomposition::Geqrf => vec![(Own, m * n), (Own, least)],
            Decomposition::Hessenberg => vec![(Own, n * n), (Own, n.saturating_sub(1))],
            Decomposition::Tridiagonal { .. } => {
                let e = n.saturating_sub(1);
                vec![(Own, n * n), (Real, n), (Real, e), (Own, e)]
            }
            Decomposition::Eigh { .. } => vec![(Own, n * n), (Real, n)],
            Decomposition::Eig { left, right } => {
                let v = vec![(Complex, n * n)];
                [vec![(Complex, n)], when(left, v.clone()), when(right, v)].concat()
            }
            Decomposition::Svd { full, vectors } => {
                let (u, v) = if full { (m, n) } else { (least, least) };
                [vec![(Real, least)], when(vectors, vec![(Own, m * u), (Own, v * n)])].concat()
            }
            Decomposition::Schur { vectors } => [vec![(Own, n * n)], when(vectors, vec![(Own, n * n)])].concat(),
        }
    }
    /// How such elements lie in memory: their dtype, and how many of it each takes.
    pub fn layout(&self, e: Entries) -> (DType, usize) {
        match e {
            Own => (self.dtype, 1 + self.complex as usize),
            Real => (self.dtype, 1),
            Complex => (self.dtype, 2),
            Index => (DType::I32, 1),
        }
    }
    /// Floating-point operations on one matrix, roughly.
    pub fn operations(&self) -> u64 {
        let (m, n, k) = (self.m as u64, self.n as u64, self.k as u64);
        let cube = m.saturating_mul(n).saturating_mul(m.min(n));
        let each = match self.kind {
            Decomposition::Cholesky => cube / 3,
            Decomposition::CholeskyUpdate => 4 * n * n,
            Decomposition::Permutation => n + m,
            Decomposition::TridiagonalSolve => 8 * n * (k + 1),
            Decomposition::Solve(t) => m.saturating_mul(n).saturating_mul(if t.left { m } else { n }),
            Decomposition::Lu => cube,
            Decomposition::Qr { .. } => 4 * cube,
            Decomposition::Geqrf => 2 * cube,
            Decomposition::HouseholderProduct | Decomposition::Multiply { .. } => {
                2 * m.saturating_mul(n).saturating_mul(k)
            }
            Decomposition::Hessenberg | Decomposition::Tridiagonal { .. } => 4 * cube,
            Decomposition::Eigh { .. } => 9 * cube,
            Decomposition::Svd { .. } => 20 * cube,
            Decomposition::Schur { .. } | Decomposition::Eig { .. } => 25 * cube,
        };
        each.saturating_mul(1 + 3 * self.complex as u64).max(1)
    }
    /// Whether parameters fit each other.
    pub fn sound(&self) -> bool {
        let square = self.m == self.n;
        let float = matches!(self.dtype, DType::F32 | DType::F64);
        float
            && match self.kind {
                Decomposition::Lu
                | Decomposition::Qr { .. }
                | Decomposition::Geqrf
                | Decomposition::Svd { .. }
                | Decomposition::Solve(_) => true,
                Decomposition::Permutation => self.n <= self.m,
                Decomposition::HouseholderProduct => self.n <= self.m && self.k <= self.n,
                Decomposition::Multiply { left, .. } => self.k <= if left { self.m } else { self.n },
                Decomposition::CholeskyUpdate => square && !self.complex,
                _ => square,
            }
    }
    /// Computes the results of one matrix: operands and results as [`Linalg::layout`] says, in the
    /// host's byte order.
    pub fn run(&self, work: &mut Workspace, ins: &[&[u8]], outs: &mut [&mut [u8]]) {
        if self.kind == Decomposition::Permutation {
            let pivots = ins[0].chunks_exact(4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]) as i64);
            let order = indices(&mut work.order, self.m);
            triangular::permutation(pivots, order);
            return store_index(order, outs[0]);
        }
        if self.has_lanes() {
            return self.run_lane(&mut work.lanes, 1, ins, outs);
        }
        let Workspace { own, complex, real, pairs, order, lanes } = work;
        let done = match self.complex {
            true => Task { of: self, own: complex, real, pairs, order, outs: &mut *outs }.run(ins),
            false => Task { of: self, own, real, pairs, order, outs: &mut *outs }.run(ins),
        };
        if !done {
            // rotations of pairs converge whatever the matrix is
            self.run_lane(lanes, 1, ins, outs);
        }
    }
}

/// Memory that goes from matrix to matrix.
#[derive(Default)]
pub struct Workspace {
    own: Vec<Vec<f64>>,
    complex: Vec<Vec<C128>>,
    real: Vec<Vec<f64>>,
    pairs: Vec<Vec<C128>>,
    order: Vec<usize>,
    lanes: LaneWorkspace<f64>,
}
fn indices(v: &mut Vec<usize>, n: usize) -> &mut [usize] {
    v.clear();
    v.resize(n, 0);
    v
}
/// `n` zeros.
fn take<T: RealOrComplex>(from: &mut Vec<Vec<T>>, n: usize) -> Vec<T> {
    let mut v = from.pop().unwrap_or_default();
    v.clear();
    v.resize(n, T::ZERO);
    v
}

fn store_index(x: &[usize], to: &mut [u8]) {
    to.chunks_exact_mut(4).zip(x).for_each(|(b, x)| b.copy_from_slice(&(*x as i32).to_ne_bytes()));
}

/// The decomposition of one matrix.
struct Task<'a, 'b, T> {
    of: &'a Linalg,
    own: &'a mut Vec<Vec<T>>,
    real: &'a mut Vec<Vec<f64>>,
    pairs: &'a mut Vec<Vec<C128>>,
    order: &'a mut Vec<usize>,
    outs: &'a mut [&'b mut [u8]],
}
impl<T: RealOrComplex> Task<'_, '_, T> {
    fn load(&mut self, bytes: &[u8]) -> Vec<T> {
        let mut v = self.own.pop().unwrap_or_default();
        v.clear();
        let step = 1 + T::COMPLEX as usize;
        match self.of.dtype {
            DType::F32 => {
                let one = |b: &[u8]| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]) as f64;
                v.extend(
                    bytes.chunks_exact(4 * step).map(|b| T::new(one(b), if step == 2 { one(&b[4..]) } else { 0.0 })),
                );
            }
            _ => {
                let one = |b: &[u8]| f64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
                v.extend(
                    bytes.chunks_exact(8 * step).map(|b| T::new(one(b), if step == 2 { one(&b[8..]) } else { 0.0 })),
                );
            }
        }
        v
    }
    fn store<U: RealOrComplex>(&mut self, k: usize, x: impl Iterator<Item = U>) {
        let step = 1 + U::COMPLEX as usize;
        match self.of.dtype {
            DType::F32 => self.outs[k].chunks_exact_mut(4 * step).zip(x).for_each(|(b, x)| {
                b[..4].copy_from_slice(&(x.re() as f32).to_ne_bytes());
                if step == 2 {
                    b[4..].copy_from_slice(&(x.im() as f32).to_ne_bytes());
                }
            }),
            _ => self.outs[k].chunks_exact_mut(8 * step).zip(x).for_each(|(b, x)| {
                b[..8].copy_from_slice(&x.re().to_ne_bytes());
                if step == 2 {
                    b[8..].copy_from_slice(&x.im().to_ne_bytes());
                }
            }),
        }
    }
    fn put(&mut self, k: usize, x: &[T]) {
        self.store(k, x.iter().copied());
    }
    fn put_real(&mut self, k: usize, x: &[f64]) {
        self.store(k, x.iter().copied());
    }
    /// All floats are nan.
    fn fail(&mut self) {
        for (k, (e, _)) in self.of.results().into_iter().enumerate() {
            match e {
                Index => (),
                Own => self.store(k, std::iter::repeat(T::new(f64::NAN, f64::NAN))),
                Real => self.store(k, std::iter::repeat(f64::NAN)),
                Complex => self.store(k, std::iter::repeat(C128 { re: f64::NAN, im: f64::NAN })),
            }
        }
    }
    fn give(&mut self, v: impl IntoIterator<Item = Vec<T>>) {
        self.own.extend(v);
    }
    fn zeros(&mut self, n: usize) -> Vec<T> {
        take(self.own, n)
    }
    fn reals(&mut self, n: usize) -> Vec<f64> {
        take(self.real, n)
    }

    /// Runs the decomposition; returns false for a singular value decomposition, which is computed
    /// elsewhere.
    fn run(mut self, ins: &[&[u8]]) -> bool {
        let mut done = true;
        let (m, n, k) = (self.of.m, self.of.n, self.of.k);
        let mut a = self.load(ins[0]);
        let finite = a.iter().all(|x| x.finite());
        match self.of.kind {
            Decomposition::CholeskyUpdate => {
                let (mut r, mut w) = (self.reals(0), self.reals(0));
                r.extend(a.iter().map(|x| x.re()));
                let x = self.load(ins[1]);
                w.extend(x.iter().map(|x| x.re()));
                triangular::cholesky_update(&mut r, &mut w, n);
                self.put_real(0, &r);
                self.give([x]);
                self.real.extend([r, w]);
            }
            Decomposition::TridiagonalSolve => {
                let (mut d, mut upper, mut b) = (self.load(ins[1]), self.load(ins[2]), self.load(ins[3]));
                let mut second = self.zeros(n);
                triangular::tridiagonal_solve(&mut a, &mut d, &mut upper, &mut second, &mut b, k);
                self.put(0, &b);
                self.give([d, upper, b, second]);
            }
            // `Linalg::run` has done it: without a matrix, or in lanes
            Decomposition::Permutation
            | Decomposition::Cholesky
            | Decomposition::Lu
            | Decomposition::Geqrf
            | Decomposition::Solve(_) => (),
            Decomposition::Qr { full, .. } => self.pivoted_qr(&mut a, m, n, full),
            Decomposition::HouseholderProduct => {
                let taus = self.load(ins[1]);
                let (mut q, mut w, mut v) = (self.zeros(m * n), self.zeros(n), self.zeros(0));
                reflect::product(&a, [m, n], 0, &taus, n, &mut q, &mut w, &mut v);
                self.put(0, &q);
                self.give([taus, q, w, v]);
            }
            Decomposition::Multiply { left, adjoint } => {
                let (taus, mut c) = (self.load(ins[1]), self.load(ins[2]));
                let (mut w, mut v) = (self.zeros(n), self.zeros(0));
                reflect::multiply(&a, k, &taus, &mut c, [m, n], left, adjoint, &mut w, &mut v);
                self.put(0, &c);
                self.give([taus, c, w, v]);
            }
            Decomposition::Hessenberg => {
                let (mut taus, mut w, mut v) = (self.zeros(n.saturating_sub(1)), self.zeros(n), self.zeros(0));
                reflect::hessenberg(&mut a, n, &mut taus, &mut w, &mut v);
                self.put(0, &a);
                self.put(1, &taus);
                self.give([taus, w, v]);
            }
            Decomposition::Tridiagonal { lower } => self.tridiagonal(&mut a, n, lower),
            _ if !finite => self.fail(),
            Decomposition::Eigh { lower } => self.eigh(&mut a, n, lower),
            Decomposition::Eig { left, right } => self.eig(&mut a, n, left, right),
            Decomposition::Svd { full, vectors } => done = self.svd(&mut a, m, n, full, vectors),
            Decomposition::Schur { vectors } => {
                let mut z = self.zeros(if vectors { n * n } else { 0 });
                if self.schur(&mut a, &mut z, n) {
                    self.put(0, &a);
                    if vectors {
                        self.put(1, &z);
                    }
                } else {
                    self.fail();
                }
                self.give([z]);
            }
        }
        self.give([a]);
        done
    }
    fn pivoted_qr(&mut self, a: &mut [T], m: usize, n: usize, full: bool) {
        let least = m.min(n);
        let (mut taus, mut w, mut v) = (self.zeros(least), self.zeros(m.max(n)), self.zeros(0));
        let order = indices(self.order, n);
        reflect::pivoted_qr(a, m, n, &mut taus, order, &mut w, &mut v);
        store_index(order, self.outs[2]);
        let inner = if full { m } else { least };
        let mut q = self.zeros(m * inner);
        reflect::product(a, [m, n], 0, &taus, inner, &mut q, &mut w, &mut v);
        self.put(0, &q);
        let above = |i: usize| if i % n >= i / n { a[i] } else { T::ZERO };
        self.store(1, (0..inner * n).map(above));
        self.give([taus, w, v, q]);
    }
    /// Reverses rows and columns, which exchanges the upper and the lower triangle.
    fn reversed(a: &mut [T]) {
        a.reverse();
    }
    fn tridiagonal(&mut self, a: &mut [T], n: usize, lower: bool) {
        let count = n.saturating_sub(1);
        let (mut d, mut e) = (self.reals(n), self.reals(count));
        let (mut taus, mut w, mut v) = (self.zeros(count), self.zeros(n), self.zeros(0));
        if !lower {
            Self::reversed(a);
        }
        reflect::tridiagonal(a, n, &mut d, &mut e, &mut taus, &mut w, &mut v);
        if !lower {
            Self::reversed(a);
            d.reverse();
            e.reverse();
            taus.reverse();
        }
        self.put(0, a);
        self.put_real(1, &d);
        self.put_real(2, &e);
        self.put(3, &taus);
        self.give([taus, w, v]);
        self.real.extend([d, e]);
    }
    fn eigh(&mut self, a: &mut [T], n: usize, lower: bool) {
        let count = n.saturating_sub(1);
        let (mut d, mut e) = (self.reals(n), self.reals(count));
        let (mut taus, mut w, mut v) = (self.zeros(count), self.zeros(n), self.zeros(0));
        if !lower {
            // the other triangle, conjugated
            for i in 0..n {
                for j in 0..i {
                    a[i * n + j] = a[j * n + i].conj();
                }
            }
        }
        let scale = unit_scale(a);
        a.iter_mut().for_each(|x| *x = x.scale(scale));
        reflect::tridiagonal(a, n, &mut d, &mut e, &mut taus, &mut w, &mut v);
        let (mut q, mut z) = (self.zeros(n * n), self.zeros(n * n));
        reflect::product(a, [n, n], 1, &taus, n, &mut q, &mut w, &mut v);
        transposed(&q, n, n, false, &mut z);
        if symmetric::tridiagonal_eigen(&mut d, &mut e, &mut z, n) {
            transposed(&z, n, n, false, &mut q);
            self.put(0, &q);
            self.store(1, d.iter().map(|x| x / scale));
        } else {
            self.fail();
        }
        self.give([taus, w, v, q, z]);
        self.real.extend([d, e]);
    }
    /// `a` becomes its Schur form, `z` (if not empty) the vectors.
    fn schur(&mut self, a: &mut [T], z: &mut [T], n: usize) -> bool {
        let scale = unit_scale(a);
        a.iter_mut().for_each(|x| *x = x.scale(scale));
        let (mut taus, mut w, mut v) = (self.zeros(n.saturating_sub(1)), self.zeros(n), self.zeros(0));
        reflect::hessenberg(a, n, &mut taus, &mut w, &mut v);
        if !z.is_empty() {
            reflect::product(a, [n, n], 1, &taus, n, z, &mut w, &mut v);
        }
        for i in 0..n {
            a[i * n..i * n + i.saturating_sub(1)].fill(T::ZERO);
        }
        self.give([taus, w, v]);
        let done = self.iterate(a, z, n);
        a.iter_mut().for_each(|x| *x = x.scale(1.0 / scale));
        done
    }
    fn iterate(&mut self, a: &mut [T], z: &mut [T], n: usize) -> bool {
        // one of the two is a copy into the type that the algorithm is for
        if T::COMPLEX {
            let (mut h, mut y) = (take(self.pairs, 0), take(self.pairs, 0));
            h.extend(a.iter().map(|x| x.complex()));
            y.extend(z.iter().map(|x| x.complex()));
            let done = schur::complex(&mut h, &mut y, n);
            a.iter_mut().zip(&h).for_each(|(a, h)| *a = T::new(h.re, h.im));
            z.iter_mut().zip(&y).for_each(|(z, y)| *z = T::new(y.re, y.im));
            self.pairs.extend([h, y]);
            return done;
        }
        let (mut h, mut y) = (self.reals(0), self.reals(0));
        h.extend(a.iter().map(|x| x.re()));
        y.extend(z.iter().map(|x| x.re()));
        let done = schur::real(&mut h, &mut y, n);
        a.iter_mut().zip(&h).for_each(|(a, h)| *a = T::real(*h));
        z.iter_mut().zip(&y).for_each(|(z, y)| *z = T::real(*y));
        self.real.extend([h, y]);
        done
    }
    fn eig(&mut self, a: &mut [T], n: usize, left: bool, right: bool) {
        let mut scales = self.reals(n);
        // negligible elements are found by numbers near 1
        let scale = unit_scale(a);
        a.iter_mut().for_each(|x| *x = x.scale(scale));
        schur::balance(a, n, &mut scales);
        let mut z = self.zeros(if left || right { n * n } else { 0 });
        let mut w = take(self.pairs, n);
        if self.schur(a, &mut z, n) {
            schur::diagonal(a, n, &mut w);
            self.store(0, w.iter().map(|w| w.scale(1.0 / scale)));
            let mut x = take(self.pairs, n * n);
            let mut v = take(self.pairs, n * n);
            let mut out = 0;
            for (is_left, wanted) in [(true, left), (false, right)] {
                if !wanted {
                    continue;
                }
                out += 1;
                schur::vectors(a, n, &w, is_left, &mut x);
                for (k, x) in x.chunks_exact(n.max(1)).enumerate() {
                    for i in 0..n {
                        let y = x.iter().zip(&z[i * n..]).fold(C128::ZERO, |s, (x, z)| s + z.complex() * *x);
                        v[i * n + k] = y.scale(if is_left { 1.0 / scales[i] } else { scales[i] });
                    }
                    normalize(&mut v, n, k, !T::COMPLEX && w[k].im == 0.0);
                }
                self.store(out, v.iter().copied());
            }
            self.pairs.extend([x, v]);
        } else {
            self.fail();
        }
        self.give([z]);
        self.pairs.push(w);
        self.real.push(scales);
    }
    /// The decomposition of a matrix whose columns are the rows of `b`. Rows of left vectors (as
    /// many as the matrix is long if all are requested) are left on top of the free memory; right
    /// ones are in `v`. Returns whether it converged.
    fn bidiagonal_svd(&mut self, b: &[T], [short, long]: [usize; 2], count: usize, s: &mut [f64], v: &mut [T]) -> bool {
        let scale = unit_scale(b);
        let mut a = self.zeros(short * long);
        transposed(b, short, long, false, &mut a);
        a.iter_mut().for_each(|x| *x = x.scale(scale));
        let mut e = self.reals(short);
        let (mut left, mut right, mut p) = (self.zeros(short), self.zeros(short - 1), self.zeros(short * short));
        let (mut w, mut column) = (self.zeros(long), self.zeros(0));
        reflect::bidiagonal(&mut a, [long, short], s, &mut e, [&mut left, &mut right], &mut p, &mut w, &mut column);
        let (mut q, mut u) = (self.zeros(long * count), self.zeros(long * count));
        let width = if count > 0 { short } else { 0 };
        if count > 0 {
            reflect::product(&a, [long, short], 0, &left, count, &mut q, &mut w, &mut column);
            transposed(&q, long, count, false, &mut u);
            let mut z = self.zeros(short * short);
            reflect::product(&p, [short, short], 1, &right, short, &mut z, &mut w, &mut column);
            transposed(&z, short, short, false, v);
            self.give([z]);
        }
        let done = svd::bidiagonal(s, &mut e, &mut u, if count > 0 { long } else { 0 }, v, width);
        s.iter_mut().for_each(|x| *x /= scale);
        self.give([a, left, right, p, w, column, q]);
        self.real.push(e);
        self.give([u]);
        done
    }
    fn svd(&mut self, a: &mut [T], m: usize, n: usize, full: bool, vectors: bool) -> bool {
        // the rows of b are the columns of the side with fewer of them
        let (long, short) = (m.max(n), m.min(n));
        let wide = n > m;
        let rows = if full && vectors { long } else { short };
        let mut b = self.zeros(short * long);
        if wide {
            // the columns of a'
            a.iter().zip(&mut b).for_each(|(a, b)| *b = a.conj());
        } else {
            transposed(a, m, n, false, &mut b);
        }
        let mut v = self.zeros(if vectors { short * short } else { 0 });
        let mut s = self.reals(short);
        let done = self.bidiagonal_svd(&b, [short, long], if vectors { rows } else { 0 }, &mut s, &mut v);
        if done {
            self.put_real(0, &s);
            if vectors {
                // its left vectors are on top
                let u = self.own.pop().unwrap_or_default();
                let mut t = self.zeros((rows * long).max(short * short));
                // u has left vectors as rows, v right ones; of a' the other way round
                if wide {
                    transposed(&v, short, short, false, &mut t[..short * short]);
                    self.put(1, &t[..short * short]);
                    self.store(2, u.iter().map(|x| x.conj()));
                } else {
                    transposed(&u, rows, long, false, &mut t[..rows * long]);
                    self.put(1, &t[..rows * long]);
                    self.store(2, v.iter().map(|x| x.conj()));
                }
                self.give([u, t]);
            }
        }
        self.give([b, v]);
        self.real.push(s);
        done
    }
}

/// Gives column k of `v` length 1; its largest component becomes real, as LAPACK leaves it, unless all are.
fn normalize(v: &mut [C128], n: usize, k: usize, real: bool) {
    let length = field::norm((0..n).map(|i| v[i * n + k]));
    let most = (1..n).fold(0, |b, i| if v[i * n + k].square() > v[b * n + k].square() { i } else { b });
    let largest = v[most * n + k];
    let turn = if real { C128::ONE } else { largest.conj().scale(1.0 / largest.abs()) };
    (0..n).for_each(|i| v[i * n + k] = (v[i * n + k] * turn).scale(1.0 / length));
    if !real {
        v[most * n + k].im = 0.0;
    }
}
