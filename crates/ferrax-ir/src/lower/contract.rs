//! Contractions: axes are sorted into the four groups of [`Dot`]. Transposes and broadcasts of
//! operands in memory become strides.
//!
//! ```text
//! x f32[4,3] transposed, times y f32[4,5]: b = 1, m = 3, n = 5, k = 4, lhs strides (0, 1, 3), rhs strides (0, 5, 1)
//! ```
use super::graph::{Def, Graph, TensorId, View};
use ferrax_kernel::routine::{Dot, Routine};
use ferrax_kernel::{Affine, Bin, DType, Dims, Scalar};
use smallvec::SmallVec;

type Strides = SmallVec<[i64; 4]>;

/// The batch, free and contracted axes of an operand, each in the order of the contraction.
pub struct DotAxes<'a> {
    pub batch: &'a [usize],
    pub free: &'a [usize],
    pub contract: &'a [usize],
}

impl Graph {
    /// `out[b.., l.., r..] = sum_c x[b, l, c] y[b, r, c]`, in `dtype`, a pair where `paired`; operands may be pairs. A real result of
    /// complex numbers is their product's real part.
    pub fn dot(
        &mut self,
        x: TensorId,
        y: TensorId,
        l: &DotAxes,
        r: &DotAxes,
        dtype: DType,
        paired: bool,
        out: &Dims,
    ) -> TensorId {
        match (self.parts(x), self.parts(y)) {
            (None, None) => {
                let re = self.real_dot(x, y, l, r, dtype, out);
                if !paired {
                    return re;
                }
                let zero = self.constant(Scalar::zero(dtype), out.clone());
                self.pair(re, zero)
            }
            (xp, yp) if !paired => {
                let (xr, yr) = (xp.map_or(x, |p| p.0), yp.map_or(y, |p| p.0));
                let parts = xp.iter().chain(&yp).map(|p| self.dtype(p.0));
                let wide = parts.max_by_key(|d| d.size()).expect("one of them is a pair");
                let mut re = self.real_dot(xr, yr, l, r, wide, out);
                if let (Some(xp), Some(yp)) = (xp, yp) {
                    let ii = self.real_dot(xp.1, yp.1, l, r, wide, out);
                    re = self.bin(Bin::Sub, re, ii);
                }
                self.convert(re, dtype)
            }
            (xp, yp) => {
                let part = |g: &mut Graph, a: Option<TensorId>, b: Option<TensorId>| {
                    Some(g.real_dot(a?, b?, l, r, dtype, out))
                };
                let ((xr, xi), (yr, yi)) =
                    (xp.map_or((x, None), |p| (p.0, Some(p.1))), yp.map_or((y, None), |p| (p.0, Some(p.1))));
                let rr = self.real_dot(xr, yr, l, r, dtype, out);
                let (ii, ri, ir) = (part(self, xi, yi), part(self, Some(xr), yi), part(self, xi, Some(yr)));
                let re = ii.map_or(rr, |ii| self.bin(Bin::Sub, rr, ii));
                let im = match (ri, ir) {
                    (Some(a), Some(b)) => self.bin(Bin::Add, a, b),
                    (a, b) => a.or(b).unwrap_or(rr),
                };
                self.pair(re, im)
            }
        }
    }
    fn real_dot(
        &mut self,
        x: TensorId,
        y: TensorId,
        l: &DotAxes,
        r: &DotAxes,
        out_dtype: DType,
        out: &Dims,
    ) -> TensorId {
        // No terms: zeros. Axes may be longer then than products of them can be counted.
        if [self.shape(x).size(), self.shape(y).size(), out.size()].contains(&0) {
            return self.constant(Scalar::zero(out_dtype), out.clone());
        }
        // small elements are multiplied in their lane's dtype, which represents them exactly
        let lane = |d: DType| if d.is_small() { d.lane() } else { d };
        let (x, y) = (self.convert(x, lane(self.dtype(x))), self.convert(y, lane(self.dtype(y))));
        let (wanted, out_dtype) = (out_dtype, lane(out_dtype));
        // operands meet in one dtype: the wider one's
        let dtype = if self.dtype(x) == self.dtype(y) { self.dtype(x) } else { out_dtype };
        let (x, y) = (self.convert(x, dtype), self.convert(y, dtype));
        let size = |g: &Graph, v: TensorId, axes: &[usize]| g.shape(v).pick(axes).size();
        let (b, m, n, k) =
            (size(self, x, l.batch), size(self, x, l.free), size(self, y, r.free), size(self, x, l.contract));
        let (x, lhs) = self.grouped(x, [l.batch, l.free, l.contract]);
        let (y, rhs) = self.grouped(y, [r.batch, r.contract, r.free]);
        let d = Dot { b, m, n, k, lhs, rhs, dtype, out: out_dtype };
        let flat = Dims::new(&[b, m, n]);
        let z = self.routine(Routine::Dot(d), &[x, y], &[flat])[0];
        let z = self.convert(z, wanted);
        self.reshape(z, out.clone())
    }
    /// A tensor in memory, and its strides along three groups of axes; copied if a group is not one run.
    fn grouped(&mut self, x: TensorId, groups: [&[usize]; 3]) -> (TensorId, [i64; 3]) {
        let (base, strides) = self.strided(x);
        let shape = self.shape(x);
        if let [Some(a), Some(b), Some(c)] = groups.map(|g| run(&shape, &strides, g)) {
            return (base, [a, b, c]);
        }
        let perm: Vec<usize> = groups.concat();
        let t = self.transpose(x, &perm);
        let s = groups.map(|g| shape.pick(g).size() as i64);
        (t, [s[1] * s[2], s[2], 1])
    }
    /// The tensor in memory that x is a plain view of (itself, if of none), and x's strides in it.
    fn strided(&self, x: TensorId) -> (TensorId, Strides) {
        let dense = |v: TensorId| self.shape(v).strides().iter().map(|s| *s as i64).collect::<Strides>();
        let t = &self.tensors[x as usize];
        if let (None, Def::View(v)) = (t.slot, &t.def)
            && let Some((base, s)) = self.through(v, t.shape.len())
        {
            return (base, s);
        }
        (x, dense(x))
    }
    fn through(&self, v: &View, rank: usize) -> Option<(TensorId, Strides)> {
        if !v.guards.is_empty() || self.tape(v.of) > 0 {
            return None;
        }
        let (base, inner) = self.strided(v.of);
        // An expression is not read through: it would be written whole for a part.
        if !matches!(self.tensors[base as usize].def, Def::Input | Def::Step(_))
            && self.tensors[base as usize].slot.is_none()
            && self.shape(base).size() > self.shape(v.of).size()
        {
            return None;
        }
        let mut at = Affine::default();
        for (a, s) in v.map.iter().zip(&inner) {
            at.offset += a.offset * s;
            at.strides.resize(rank.max(at.strides.len()), 0);
            for k in 0..rank {
                at.strides[k] += a.stride(k) * s;
            }
        }
        at.strides.resize(rank, 0);
        (at.offset == 0 && at.strides.iter().all(|s| *s >= 0)).then_some((base, at.strides))
    }
}

/// The stride of a group of axes taken as one, if it has one.
fn run(shape: &[usize], strides: &[i64], axes: &[usize]) -> Option<i64> {
    let mut next: Option<i64> = None; // the required stride of the axis before
    let mut least = None;
    for &a in axes.iter().rev().filter(|a| shape[**a] != 1) {
        match next {
            None => least = Some(strides[a]),
            Some(n) if n != strides[a] => return None,
            _ => (),
        }
        next = Some(strides[a] * shape[a] as i64);
    }
    Some(least.unwrap_or(0))
}
