//! Decompositions of several matrices at a time, one in each lane.
//!
//! ```text
//! 3 matrices of 2 by 2, in 4 lanes:   a00 a00 a00 a00   a01 a01 a01 a01   ..       the last matrix fills what is left
//! ```
use super::field::transposed;
use super::jacobi::{self, Rotation};
use super::lanes::{ComplexLanes, ElementLanes, LaneMask, Masks, RealLanes};
use super::triangular::Triangle;
use super::{Decomposition, Linalg, SIDE, reflect, triangular};
use crate::dtype::DType;

/// Memory that goes from group to group: after the first one of a run, no more is taken.
pub struct LaneWorkspace<R: RealLanes> {
    real: LaneMemory<R>,
    complex: LaneMemory<ComplexLanes<R>>,
}
impl<R: RealLanes> Default for LaneWorkspace<R> {
    fn default() -> Self {
        LaneWorkspace { real: LaneMemory::new(), complex: LaneMemory::new() }
    }
}
struct LaneMemory<E: ElementLanes> {
    /// Arrays, indexed by their purpose.
    own: [Vec<E>; 6],
    real: Vec<E::Real>,
    turns: Vec<Rotation<E>>,
    order: Vec<i32>,
    /// Of one matrix.
    reals: Vec<f64>,
    pairs: Vec<ComplexLanes<f64>>,
}
impl<E: ElementLanes> LaneMemory<E> {
    fn new() -> Self {
        LaneMemory {
            own: std::array::from_fn(|_| vec![]),
            real: vec![],
            turns: vec![],
            order: vec![],
            reals: vec![],
            pairs: vec![],
        }
    }
}
/// `n` of `x`.
#[inline(always)]
fn filled<T: Copy>(v: &mut Vec<T>, n: usize, x: T) -> &mut [T] {
    v.clear();
    v.resize(n, x);
    v
}

impl Linalg {
    /// Whether the text of this is over lanes.
    pub fn has_lanes(&self) -> bool {
        match self.kind {
            Decomposition::Cholesky | Decomposition::Lu | Decomposition::Geqrf | Decomposition::Solve(_) => true,
            Decomposition::Qr { pivoting, .. } => !pivoting,
            Decomposition::Eigh { .. } => self.n <= SIDE,
            Decomposition::Svd { .. } => self.m.min(self.n) <= SIDE,
            _ => false,
        }
    }
    /// The results of `count` matrices, as [`Linalg::run`] of each; at least one, and no more than
    /// there are lanes. Only for decompositions with [`Linalg::has_lanes`].
    #[inline(always)]
    pub fn run_lanes<R: RealLanes>(
        &self,
        lanes: &mut LaneWorkspace<R>,
        count: usize,
        ins: &[&[u8]],
        outs: &mut [&mut [u8]],
    ) {
        match self.complex {
            true => Group { of: self, count, outs }.run(ins, &mut lanes.complex),
            false => Group { of: self, count, outs }.run(ins, &mut lanes.real),
        }
    }
    /// [`Linalg::run_lanes`] over one lane, as the compiler makes it where nothing is known of the machine.
    #[inline(never)] // one copy, of a hundred kilobytes, for all callers
    pub fn run_lane(&self, lane: &mut LaneWorkspace<f64>, count: usize, ins: &[&[u8]], outs: &mut [&mut [u8]]) {
        self.run_lanes(lane, count, ins, outs)
    }
}

/// The decompositions of some matrices.
struct Group<'a, 'b> {
    of: &'a Linalg,
    count: usize,
    outs: &'a mut [&'b mut [u8]],
}
impl Group<'_, '_> {
    #[inline(always)]
    fn load<E: ElementLanes>(&self, bytes: &[u8], to: &mut Vec<E>) {
        let parts = 1 + E::COMPLEX as usize;
        to.clear();
        match self.of.dtype {
            DType::F32 => self.read(bytes.as_chunks::<4>().0, parts, to, |b| f32::from_ne_bytes(b) as f64),
            _ => self.read(bytes.as_chunks::<8>().0, parts, to, f64::from_ne_bytes),
        }
    }
    #[inline(always)]
    fn read<E: ElementLanes, B: Copy>(&self, x: &[B], parts: usize, to: &mut Vec<E>, f: impl Fn(B) -> f64) {
        let each = x.len() / self.count;
        let last = x.len() - each;
        let lane = |i: usize| E::Real::from_fn(|k| f(x[(k * each).min(last) + i]));
        match E::COMPLEX {
            true => to.extend((0..each / parts).map(|i| E::new(lane(2 * i), lane(2 * i + 1)))),
            false => to.extend((0..each).map(|i| E::real(lane(i)))),
        }
    }
    /// Result k.
    #[inline(always)]
    fn put<E: ElementLanes>(&mut self, k: usize, x: &[E]) {
        let (count, bytes) = (self.count, &mut *self.outs[k]);
        match self.of.dtype {
            DType::F32 => Self::write(x, count, bytes.as_chunks_mut::<4>().0, |x| (x as f32).to_ne_bytes()),
            _ => Self::write(x, count, bytes.as_chunks_mut::<8>().0, f64::to_ne_bytes),
        }
    }
    #[inline(always)]
    fn write<E: ElementLanes, B>(x: &[E], count: usize, to: &mut [B], f: impl Fn(f64) -> B) {
        let (parts, each) = (1 + E::COMPLEX as usize, x.len());
        for (i, x) in x.iter().enumerate() {
            x.re().each(count, |k, x| to[(k * each + i) * parts] = f(x));
            if E::COMPLEX {
                x.im().each(count, |k, x| to[(k * each + i) * parts + 1] = f(x));
            }
        }
    }
    #[inline(always)]
    fn run<E: ElementLanes>(&mut self, ins: &[&[u8]], memory: &mut LaneMemory<E>) {
        self.load(ins[0], &mut memory.own[0]);
        match self.of.kind {
            Decomposition::Cholesky => self.cholesky(memory),
            Decomposition::Lu => self.lu(memory),
            Decomposition::Solve(t) => {
                self.load(ins[1], &mut memory.own[1]);
                self.solve(t, memory);
            }
            Decomposition::Qr { full, .. } => self.qr(full, memory),
            Decomposition::Geqrf => self.geqrf(memory),
            Decomposition::Eigh { lower } => self.eigh(lower, memory),
            Decomposition::Svd { full, vectors } => self.svd(full, vectors, memory),
            _ => (),
        }
    }
    #[inline(always)]
    fn cholesky<E: ElementLanes>(&mut self, memory: &mut LaneMemory<E>) {
        let n = self.of.n;
        let [a, w, ..] = &mut memory.own;
        let done = triangular::cholesky(a, filled(w, n, E::all(0.0)), n);
        if done.not().any() {
            for (i, x) in a.iter_mut().enumerate() {
                *x = if i % n > i / n { *x } else { E::choose(done, *x, nan()) };
            }
        }
        self.put(0, a);
    }
    #[inline(always)]
    fn lu<E: ElementLanes>(&mut self, memory: &mut LaneMemory<E>) {
        let (m, n, count) = (self.of.m, self.of.n, self.count);
        let least = m.min(n);
        let LaneMemory { own: [a, ..], real, order, .. } = memory;
        let pivots = filled(real, least, E::Real::splat(0.0));
        triangular::lu(a, pivots, m, n);
        order.clear();
        order.extend((0..count).flat_map(|_| 0..m as i32));
        let to = self.outs[1].as_chunks_mut::<4>().0;
        for (i, p) in pivots.iter().enumerate() {
            p.each(count, |k, p| {
                to[k * least + i] = (p as i32).to_ne_bytes();
                order.swap(k * m + i, k * m + p as usize);
            });
        }
        self.outs[2].as_chunks_mut::<4>().0.iter_mut().zip(order).for_each(|(to, p)| *to = p.to_ne_bytes());
        self.put(0, a);
    }
    #[inline(always)]
    fn solve<E: ElementLanes>(&mut self, t: Triangle, memory: &mut LaneMemory<E>) {
        let (m, n) = (self.of.m, self.of.n);
        let [a, b, ..] = &mut memory.own;
        triangular::solve(t, a, b, m, n);
        self.put(0, b);
    }
    #[inline(always)]
    fn qr<E: ElementLanes>(&mut self, full: bool, memory: &mut LaneMemory<E>) {
        let (m, n, zero) = (self.of.m, self.of.n, E::all(0.0));
        let least = m.min(n);
        let inner = if full { m } else { least };
        let [a, taus, w, v, q, _] = &mut memory.own;
        let (taus, w, q) = (filled(taus, least, zero), filled(w, m.max(n), zero), filled(q, m * inner, zero));
        reflect::qr(a, m, n, taus, w, v);
        reflect::product(a, [m, n], 0, taus, inner, q, w, v);
        self.put(0, q);
        for i in 0..inner {
            a[i * n..i * n + i.min(n)].fill(zero);
        }
        self.put(1, &a[..inner * n]);
    }
    #[inline(always)]
    fn geqrf<E: ElementLanes>(&mut self, memory: &mut LaneMemory<E>) {
        let (m, n, zero) = (self.of.m, self.of.n, E::all(0.0));
        let [a, taus, w, v, ..] = &mut memory.own;
        let (taus, w) = (filled(taus, m.min(n), zero), filled(w, m.max(n), zero));
        reflect::qr(a, m, n, taus, w, v);
        self.put(0, a);
        self.put(1, taus);
    }
    /// Zeros take the place of a matrix that is not finite; which ones are.
    #[inline(always)]
    fn finite<E: ElementLanes>(a: &mut [E]) -> Masks<E> {
        let zero = E::Real::splat(0.0);
        let mut finite = zero.equals(zero);
        for x in &*a {
            finite = finite.and(x.finite());
        }
        keep(a, finite, E::all(0.0));
        finite
    }
    /// The tolerance under which a product of vectors counts as zero: the rounding of the elements,
    /// or of sums.
    #[inline(always)]
    fn tolerance(&self) -> f64 {
        if self.of.dtype == DType::F32 { 2f64.powi(-40) } else { f64::EPSILON }
    }
    #[inline(always)]
    fn eigh<E: ElementLanes>(&mut self, lower: bool, memory: &mut LaneMemory<E>) {
        let (n, zero) = (self.of.n, E::all(0.0));
        let LaneMemory { own: [a, v, t, ..], real, turns, .. } = memory;
        let finite = Self::finite(a);
        // keeps the elements above the diagonal, and clears the others
        for i in 0..n {
            for j in 0..i {
                if lower {
                    a[j * n + i] = a[i * n + j].conj();
                }
                a[i * n + j] = zero;
            }
        }
        let (v, t) = (filled(v, n * n, zero), filled(t, n * n, zero));
        let d = filled(real, n, zero.re());
        jacobi::eigen(a, v, d, filled(turns, n.div_ceil(2), Rotation::none()), n, self.tolerance());
        transposed(v, n, n, false, t);
        keep(t, finite, nan());
        keep(d, finite, nan());
        self.put(0, t);
        self.put(1, d);
    }
    #[inline(always)]
    fn svd<E: ElementLanes>(&mut self, full: bool, vectors: bool, memory: &mut LaneMemory<E>) {
        let (m, n, zero) = (self.of.m, self.of.n, E::all(0.0));
        // the rows of b are the columns of the side with fewer of them
        let (long, short, wide) = (m.max(n), m.min(n), n > m);
        let rows = if full && vectors { long } else { short };
        let width = if vectors { short } else { 0 };
        let LaneMemory { own: [a, b, v, t, ..], real, turns, reals, pairs, .. } = memory;
        let finite = Self::finite(a);
        let (b, v, s) = (filled(b, rows * long, zero), filled(v, short * width, zero), filled(real, short, zero.re()));
        match wide {
            // the columns of a'
            true => conjugated(a, &mut b[..short * long]),
            false => transposed(a, m, n, false, b),
        }
        for i in 0..width {
            v[i * short + i] = E::all(1.0);
        }
        let turns = filled(turns, short.div_ceil(2), Rotation::none());
        jacobi::orthogonalize(&mut b[..short * long], [short, long], v, width, s, turns, self.tolerance());
        let mut nothing = finite.not();
        for s in &*s {
            nothing = nothing.or(s.equals(zero.re()));
        }
        if vectors && (rows > short || nothing.any()) {
            match E::COMPLEX {
                true => completed(b, s, long, self.count, pairs),
                false => completed(b, s, long, self.count, reals),
            }
        }
        keep(s, finite, nan());
        self.put(0, s);
        if !vectors {
            return;
        }
        keep(b, finite, nan());
        keep(v, finite, nan());
        let t = filled(t, (rows * long).max(short * short), zero);
        // b has left vectors as rows, v right ones; of a' the other way round
        if wide {
            let t = &mut t[..short * short];
            transposed(v, short, short, false, t);
            self.put(1, t);
            conjugate(b);
            self.put(2, b);
        } else {
            let t = &mut t[..rows * long];
            transposed(b, rows, long, false, t);
            self.put(1, t);
            conjugate(v);
            self.put(2, v);
        }
    }
}
#[inline(always)]
fn nan<E: ElementLanes>() -> E {
    E::new(E::Real::splat(f64::NAN), E::Real::splat(f64::NAN))
}
/// `other` where it does not hold.
#[inline(always)]
fn keep<E: ElementLanes>(a: &mut [E], holds: Masks<E>, other: E) {
    if holds.not().any() {
        for x in a {
            *x = E::choose(holds, *x, other);
        }
    }
}
#[inline(always)]
fn conjugated<E: ElementLanes>(a: &[E], to: &mut [E]) {
    for (a, to) in a.iter().zip(to) {
        *to = a.conj();
    }
}
#[inline(always)]
fn conjugate<E: ElementLanes>(a: &mut [E]) {
    for x in a {
        *x = x.conj();
    }
}
/// In each lane, the rows of `b` whose singular value is zero or that have none become unit vectors orthogonal to the others.
#[inline(always)]
fn completed<E: ElementLanes, O: ElementLanes<Real = f64>>(
    b: &mut [E],
    s: &[E::Real],
    long: usize,
    count: usize,
    own: &mut Vec<O>,
) {
    for lane in 0..count {
        let of = |x: E::Real| {
            let mut y = 0.0;
            x.each(count, |k, x| y = if k == lane { x } else { y });
            y
        };
        let rank = s.iter().filter(|s| of(**s) > 0.0).count();
        if rank * long == b.len() {
            continue;
        }
        own.clear();
        own.extend(b.iter().map(|x| O::new(of(x.re()), of(x.im()))));
        jacobi::complete(own, rank, long);
        for (b, x) in b.iter_mut().zip(&*own) {
            let put = |b: E::Real, x: f64| {
                let mut lanes = [0.0; 64];
                b.each(E::Real::LANES, |k, b| lanes[k] = if k == lane { x } else { b });
                E::Real::from_fn(|k| lanes[k])
            };
            *b = E::new(put(b.re(), x.re()), put(b.im(), x.im()));
        }
    }
}
