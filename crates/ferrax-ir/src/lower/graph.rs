//! `Graph`: one block of a plan under construction, as tensors that are not computed yet.
//!
//! A primitive's `lower` rule expresses it by pointwise functions, views, reductions and routines.
//! [`super::fuse`] decides later, for the whole block, which of them form a kernel. Rules deal with
//! neither fusion nor buffers.
//!
//! INVARIANT: tensors are in order of definition. A pair (a complex number, a PRNG key) is two
//! tensors of one shape. Methods that move elements accept pairs as well as single tensors.
//!
//! ```text
//! softplus'(x) = logistic(x):      let y = g.un(Un::Logistic, x);
//! reverse along axis 0 of [n, m]:  let y = g.view(x, [n, m], &[Affine::new(n - 1, [-1]), Affine::new(0, [0, 1])]);
//! ```
use super::physical;
use crate::aval::Lit;
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::routine::Routine;
use ferrax_kernel::{Affine, Bin, DType, Dims, Plan, ReduceKind, Scalar, Step, Un, kernel, reference};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::sync::Arc;

/// A tensor of the graph.
pub type TensorId = u32;
pub type TensorIds = SmallVec<[TensorId; 1]>;

/// One [`kernel::Guard`] over the indices of a view.
pub use ferrax_kernel::kernel::Guard;

pub(super) struct TensorEntry {
    pub dtype: DType,
    pub shape: Dims,
    pub tape: u8,
    pub def: Def,
    /// Set if the value must be materialized.
    pub slot: Option<SlotId>,
    /// Computed once, by itself, for all its users; it gets a slot if another kernel than its own reads it.
    pub apart: bool,
    /// Longest chain of unwritten tensors beneath: bounds the size of kernels and the depth of recursion over them.
    pub depth: u16,
    /// Whether that chain computes anything, rather than merely moving elements.
    computes: bool,
}

pub(super) enum Def {
    /// An input: the creator of the block writes it.
    Input,
    /// Written by `steps[i]`.
    Step(u32),
    Const(Scalar),
    /// The index along an axis.
    Iota(usize),
    /// A scalar function of tensors of this shape; node ids are tensors.
    Map(kernel::Node),
    /// `of[map(i)]` where the guards hold, else `fill`.
    View(Box<View>),
    /// The same elements in row-major order.
    Reshape(TensorId),
    Reduce {
        kind: ReduceKind,
        of: TensorId,
        axes: Dims,
    },
    Pair(TensorId, TensorId),
}

pub(super) struct View {
    pub of: TensorId,
    /// For each axis of `of`, its index in terms of this tensor's.
    pub map: SmallVec<[Affine; 4]>,
    pub guards: SmallVec<[Guard; 1]>,
    pub fill: Scalar,
}

impl View {
    /// Whether some element of an operand of shape `from` may be read at several positions of `shape`: not where every axis of it is an axis
    /// of the view, and guards hold the others at one index.
    pub fn repeats(&self, from: &[usize], shape: &[usize]) -> bool {
        let mut fixed: SmallVec<[bool; 6]> = shape.iter().map(|n| *n <= 1).collect();
        let alone = |a: &Affine| {
            let mut moving = (0..shape.len()).filter(|k| shape[*k] > 1 && a.stride(*k) != 0);
            moving.next().filter(|_| moving.next().is_none())
        };
        for (a, _) in self.map.iter().zip(from).filter(|(_, n)| **n > 1) {
            match alone(a) {
                Some(k) => fixed[k] = true,
                None => return true,
            }
        }
        for g in &self.guards {
            if let Some(k) = alone(&g.at).filter(|k| g.hi.saturating_sub(g.lo) <= g.at.stride(*k).abs()) {
                fixed[k] = true;
            }
        }
        fixed.contains(&false)
    }
}

/// More parts than this are concatenated by one update after the other.
const PARTS: usize = 8;
/// Longest chain that goes into one kernel.
const MAX_DEPTH: u16 = 128;

#[derive(Default)]
pub struct Graph {
    pub(super) tensors: Vec<TensorEntry>,
    /// Everything but kernels, in order.
    pub(super) steps: Vec<Step>,
    pub(super) plan: Plan,
    /// Concatenations: the axis, and the parts.
    pub(super) joined: HashMap<TensorId, (usize, TensorIds)>,
    /// The tensors that depend only on operands that are the same in each iteration of a loop.
    pub(super) fixed: FxHashSet<TensorId>,
    /// Every computed or moved value is materialized.
    pub(super) unfused: bool,
    /// Results take the place of no operand.
    pub(super) unshared: bool,
}

/// `1 / x` where products with it have the bits of quotients by x: where both are powers of two, and normal numbers.
fn exact_reciprocal(x: Scalar) -> Option<Scalar> {
    let least = match x.dtype {
        DType::F32 => f64::from(f32::MIN_POSITIVE),
        DType::F64 => f64::MIN_POSITIVE,
        _ => return None,
    };
    let divisor = x.to_f64();
    let (is_power_of_two, reciprocal) = (divisor.to_bits() << 12 == 0, 1.0 / divisor);
    let is_exact = is_power_of_two && divisor.abs() >= least && reciprocal.abs() >= least;
    is_exact.then(|| Scalar::from_f64(x.dtype, reciprocal))
}

impl Graph {
    /// A graph whose kernels have one operation each.
    pub(super) fn unfused() -> Graph {
        Graph { unfused: true, ..Graph::default() }
    }
    fn push(&mut self, dtype: DType, shape: Dims, def: Def) -> TensorId {
        let beneath = |t: TensorId| if self.written(t) { 0 } else { self.tensors[t as usize].depth };
        let computes = |t: TensorId| !self.written(t) && self.tensors[t as usize].computes;
        let (depth, computes) = match &def {
            Def::Map(n) => (n.operands().iter().map(|o| beneath(*o)).max().unwrap_or(0) + 1, true),
            // A copy of a computed value will be materialized: `fuse` decides so.
            Def::View(v) if computes(v.of) && self.copies(v, &shape) => (1, false),
            Def::View(v) => (beneath(v.of) + 1, computes(v.of)),
            Def::Reshape(of) => (beneath(*of) + 1, computes(*of)),
            Def::Reduce { of, .. } => (beneath(*of) + 1, true),
            _ => (0, false),
        };
        self.tensors.push(TensorEntry { dtype, shape, tape: 0, def, slot: None, apart: false, depth, computes });
        let t = self.tensors.len() as TensorId - 1;
        if depth >= if self.unfused { 1 } else { MAX_DEPTH } {
            self.tensors[t as usize].apart = true;
        }
        t
    }
    /// Whether a view of this shape repeats elements of its operand, so that their cost would be
    /// paid several times.
    pub(super) fn copies(&self, v: &View, shape: &Dims) -> bool {
        let from = &self.tensors[v.of as usize].shape;
        shape.size() > from.size() && v.repeats(from, shape)
    }
    pub fn shape(&self, x: TensorId) -> Dims {
        self.tensors[x as usize].shape.clone()
    }
    pub fn rank(&self, x: TensorId) -> usize {
        self.tensors[x as usize].shape.len()
    }
    pub fn dtype(&self, x: TensorId) -> DType {
        self.tensors[x as usize].dtype
    }
    pub fn tape(&self, x: TensorId) -> u8 {
        self.tensors[x as usize].tape
    }

    // ---- pairs ----

    pub fn pair(&mut self, a: TensorId, b: TensorId) -> TensorId {
        let (dtype, shape) = (self.dtype(a), self.shape(a));
        self.push(dtype, shape, Def::Pair(a, b))
    }
    /// The two tensors of a complex number or key.
    pub fn parts(&self, x: TensorId) -> Option<(TensorId, TensorId)> {
        if let Def::Pair(a, b) = self.tensors[x as usize].def { Some((a, b)) } else { None }
    }
    fn each(&mut self, x: TensorId, mut f: impl FnMut(&mut Graph, TensorId) -> TensorId) -> TensorId {
        match self.parts(x) {
            Some((a, b)) => {
                let (a, b) = (f(self, a), f(self, b));
                self.pair(a, b)
            }
            None => f(self, x),
        }
    }

    // ---- pointwise ----

    /// A literal of a program: rank 0.
    pub fn literal(&mut self, l: &Lit) -> TensorId {
        match l.scalar() {
            Some(s) => self.constant(s, Dims::default()),
            None => {
                let (re, im) = l.parts();
                let d = physical(&l.aval()).dtype;
                let part = |g: &mut Graph, x: f64| g.constant(Scalar::from_f64(d, x), Dims::default());
                let (re, im) = (part(self, re), part(self, im));
                self.pair(re, im)
            }
        }
    }
    pub fn constant(&mut self, s: Scalar, shape: Dims) -> TensorId {
        self.push(s.dtype, shape, Def::Const(s))
    }
    pub fn iota(&mut self, dtype: DType, shape: Dims, axis: usize) -> TensorId {
        self.push(dtype, shape, Def::Iota(axis))
    }
    /// Operands have one shape, or rank 0 where they then repeat.
    fn map(&mut self, dtype: DType, n: kernel::Node) -> TensorId {
        let ops = n.operands();
        let lead = ops.iter().copied().find(|o| self.rank(*o) > 0).unwrap_or(ops[0]);
        let shape = self.shape(lead);
        let mut n = n;
        if let Some(s) = self.folded(dtype, &n) {
            return self.constant(s, shape);
        }
        n.map_operands(|o| self.spread(o, &shape));
        self.push(dtype, shape, Def::Map(n))
    }
    /// The value of a function of constants. (Computations on small elements are legalized later.)
    fn folded(&self, dtype: DType, n: &kernel::Node) -> Option<Scalar> {
        let all = n.operands().iter().all(|o| self.constant_of(*o).is_some_and(|s| !s.dtype.is_small()));
        let value = |o: TensorId| self.constant_of(o).unwrap_or(Scalar::zero(dtype));
        if all && !dtype.is_small() { reference::function(dtype, n, &value).ok() } else { None }
    }
    fn spread(&mut self, x: TensorId, shape: &Dims) -> TensorId {
        if self.tensors[x as usize].shape == *shape {
            return x;
        }
        debug_assert_eq!(self.rank(x), 0, "pointwise operands of shapes {} and {shape}", self.shape(x));
        self.view(x, shape.clone(), &[])
    }
    pub fn un(&mut self, f: Un, x: TensorId) -> TensorId {
        let dtype = if f == Un::IsFinite { DType::Bool } else { self.dtype(x) };
        self.map(dtype, kernel::Node::Un(f, x))
    }
    pub fn bin(&mut self, f: Bin, x: TensorId, y: TensorId) -> TensorId {
        // PERF: a product takes an eighth of the time of a quotient
        if let (Bin::Div, Some(factor)) = (f, self.constant_of(y).and_then(exact_reciprocal)) {
            let factor = self.constant(factor, self.shape(y));
            return self.bin(Bin::Mul, x, factor);
        }
        let dtype = if f.is_comparison() { DType::Bool } else { self.dtype(x) };
        self.map(dtype, kernel::Node::Bin(f, x, y))
    }
    /// `p ? t : f`; `t` and `f` may be pairs.
    pub fn select(&mut self, p: TensorId, t: TensorId, f: TensorId) -> TensorId {
        if let (Some((t0, t1)), Some((f0, f1))) = (self.parts(t), self.parts(f)) {
            let (a, b) = (self.select(p, t0, f0), self.select(p, t1, f1));
            return self.pair(a, b);
        }
        let dtype = self.dtype(t);
        self.map(dtype, kernel::Node::Select { p, t, f })
    }
    pub fn convert(&mut self, x: TensorId, dtype: DType) -> TensorId {
        let one = |g: &mut Graph, x| g.map(dtype, kernel::Node::Convert(x));
        if self.dtype(x) == dtype { x } else { self.each(x, one) }
    }
    /// Between dtypes of one size.
    pub fn bitcast(&mut self, x: TensorId, dtype: DType) -> TensorId {
        if self.dtype(x) == dtype { x } else { self.map(dtype, kernel::Node::Bitcast(x)) }
    }
    pub fn round(&mut self, of: TensorId, exponent: u8, mantissa: u8) -> TensorId {
        let dtype = self.dtype(of);
        self.map(dtype, kernel::Node::Round { of, exponent, mantissa })
    }
    /// A rank-0 constant of `like`'s dtype.
    pub fn scalar(&mut self, like: TensorId, x: f64) -> TensorId {
        let s = Scalar::from_f64(self.dtype(like), x);
        self.constant(s, Dims::default())
    }

    // ---- moving elements ----

    /// `out[i] = x[map(i)]`; for each axis of x an affine form of the indices of `shape`, which
    /// must stay in bounds.
    pub fn view(&mut self, x: TensorId, shape: Dims, map: &[Affine]) -> TensorId {
        self.guarded(x, shape, map, &[], None)
    }
    /// The same where the guards hold, `fill` (zero if none) elsewhere.
    pub fn guarded(
        &mut self,
        x: TensorId,
        shape: Dims,
        map: &[Affine],
        guards: &[Guard],
        fill: Option<Scalar>,
    ) -> TensorId {
        if let Some(pairs) = self.in_pairs_by_rows(x, map, &shape) {
            let rank = shape.len();
            let map: SmallVec<[Affine; 4]> = map.iter().cloned().chain([unit(rank)]).collect();
            let y = self.guarded(pairs, shape.insert(rank, 2), &map, guards, fill);
            return self.unzip(y);
        }
        self.each(x, |g, x| {
            let t = &g.tensors[x as usize];
            let dtype = t.dtype;
            let fill = fill.unwrap_or(Scalar::zero(dtype));
            if let Def::Const(s) = t.def
                && (guards.is_empty() || s == fill)
            {
                return g.constant(s, shape.clone());
            }
            let v = View { of: x, map: map.iter().cloned().collect(), guards: guards.iter().cloned().collect(), fill };
            g.push(dtype, shape.clone(), Def::View(Box::new(v)))
        })
    }
    /// Axis k of x becomes axis `dims[k]`, size-1 axes stretch.
    pub fn broadcast(&mut self, x: TensorId, shape: Dims, dims: &[usize]) -> TensorId {
        let from = self.shape(x);
        if from == shape && dims.iter().copied().eq(0..shape.len()) {
            return x;
        }
        let map: SmallVec<[Affine; 4]> =
            dims.iter().enumerate().map(|(k, d)| if from[k] == 1 { Affine::constant(0) } else { unit(*d) }).collect();
        self.view(x, shape, &map)
    }
    /// The operand that x transposes, and the axis of x for each axis of that operand; x itself if
    /// it is not a transpose.
    pub fn untransposed(&mut self, x: TensorId) -> (TensorId, Vec<usize>) {
        let one = |x: TensorId| match &self.tensors[x as usize].def {
            Def::View(v) if !self.written(x) && v.guards.is_empty() && v.map.len() == self.rank(x) => {
                let axis = |m: &Affine| (0..v.map.len()).find(|k| *m == unit(*k));
                let axes: Vec<usize> = v.map.iter().map(axis).collect::<Option<_>>()?;
                let distinct = (0..axes.len()).all(|k| axes.contains(&k));
                (distinct && self.shape(x).pick(&axes) == self.shape(v.of)).then_some((v.of, axes))
            }
            _ => None,
        };
        let found = match self.parts(x) {
            Some((a, b)) => match (one(a), one(b)) {
                (Some((a, axes)), Some((b, same))) if axes == same => Some((a, Some(b), axes)),
                _ => None,
            },
            None => one(x).map(|(of, axes)| (of, None, axes)),
        };
        match found {
            Some((a, Some(b), axes)) => (self.pair(a, b), axes),
            Some((of, None, axes)) => (of, axes),
            None => (x, (0..self.rank(x)).collect()),
        }
    }
    /// Axis k of the result is axis `perm[k]` of x.
    pub fn transpose(&mut self, x: TensorId, perm: &[usize]) -> TensorId {
        let (of, axes) = self.untransposed(x);
        if axes == perm {
            return of;
        }
        let from = self.shape(x);
        let mut map: SmallVec<[Affine; 4]> = smallvec![Affine::default(); perm.len()];
        for (k, p) in perm.iter().enumerate() {
            map[*p] = unit(k);
        }
        self.view(x, from.pick(perm), &map)
    }
    /// `x[start + stride * i]` on every axis.
    pub fn slice(&mut self, x: TensorId, start: &[usize], stride: &[usize], shape: Dims) -> TensorId {
        let map: SmallVec<[Affine; 4]> =
            // a lone element has no next one, however far it would be
            (0..shape.len())
                .map(|k| scaled(k, start[k] as i64, if shape[k] > 1 { stride[k] as i64 } else { 1 }))
                .collect();
        self.view(x, shape, &map)
    }
    pub fn reverse(&mut self, x: TensorId, axes: &[usize]) -> TensorId {
        let shape = self.shape(x);
        let map: SmallVec<[Affine; 4]> = (0..shape.len())
            .map(|k| if axes.contains(&k) { scaled(k, shape[k] as i64 - 1, -1) } else { unit(k) })
            .collect();
        self.view(x, shape, &map)
    }
    /// The same elements in row-major order. Splitting axes and axes of size 1 cost nothing anywhere; merging costs nothing over memory.
    pub fn reshape(&mut self, x: TensorId, shape: Dims) -> TensorId {
        let from = self.shape(x);
        if from == shape {
            return x;
        }
        if let Some(pairs) = self.in_pairs(x) {
            let y = self.reshape(pairs, shape.insert(shape.len(), 2));
            return self.unzip(y);
        }
        if let Some(map) = split_map(&from, &shape) {
            return self.view(x, shape, &map);
        }
        self.each(x, |g, x| {
            let dtype = g.dtype(x);
            if let Some(s) = g.constant_of(x) {
                return g.constant(s, shape.clone());
            }
            g.push(dtype, shape.clone(), Def::Reshape(x))
        })
    }
    /// `lo`, `hi` elements of `value` (rank 0) around each axis, `interior` between neighbours; negative `lo`, `hi` cut off.
    pub fn pad(&mut self, x: TensorId, value: TensorId, lo: &[i64], hi: &[i64], interior: &[i64]) -> TensorId {
        let from = self.shape(x);
        let rank = from.len();
        // Positions are computed in 128 bits, which no padding can overflow.
        let step = |k: usize| interior[k] as i128 + 1;
        let n = |k: usize| from[k] as i128;
        let size = |k: usize| n(k) + (n(k) - 1).max(0) * (step(k) - 1) + lo[k] as i128 + hi[k] as i128;
        let shape: Dims = (0..rank).map(|k| size(k).max(0) as usize).collect();
        // The elements of x that are not cut off, after which nothing is larger than the result.
        let above = |x: i128, k: usize| -(-x).div_euclid(step(k));
        let first: Dims = (0..rank).map(|k| above(-(lo[k] as i128), k).clamp(0, n(k)) as usize).collect();
        let end = |k: usize| above(shape[k] as i128 - lo[k] as i128, k).clamp(first[k] as i128, n(k)) as usize;
        let kept: Dims = (0..rank).map(|k| end(k) - first[k]).collect();
        if kept.contains(&0) {
            return self.broadcast(value, shape, &[]);
        }
        let lo: SmallVec<[i64; 4]> = (0..rank).map(|k| (lo[k] as i128 + first[k] as i128 * step(k)) as i64).collect();
        let interior: SmallVec<[i64; 4]> = (0..rank).map(|k| if kept[k] > 1 { interior[k] } else { 0 }).collect();
        let x = if kept == from { x } else { self.slice(x, &first, &vec![1; rank], kept.clone()) };
        let from = kept;
        let mut spread = from.clone();
        // Interior padding first: element i of x to i * (1 + interior), by splitting [n * s] into [n, s] and reading where the second index is 0.
        let mut x = x;
        let mut mask: Option<TensorId> = None;
        let fill = match self.parts(value) {
            Some((a, b)) => self.constant_of(a).filter(|s| self.constant_of(b) == Some(*s)),
            None => self.constant_of(value),
        };
        if interior.iter().any(|i| *i > 0) {
            let (mut split, mut map, mut guards) =
                (Dims::default(), SmallVec::<[Affine; 4]>::new(), SmallVec::<[Guard; 1]>::new());
            for k in 0..from.len() {
                map.push(unit(split.len()));
                split.push(from[k]);
                if interior[k] > 0 {
                    guards.push(Guard { at: unit(split.len()), lo: 0, hi: 1 });
                    split.push(1 + interior[k] as usize);
                    spread[k] = from[k] * (1 + interior[k] as usize);
                }
            }
            if fill.is_none() {
                let inside = self.constant(Scalar::bool(true), from.clone());
                let m = self.guarded(inside, split.clone(), &map, &guards, Some(Scalar::bool(false)));
                mask = Some(self.reshape(m, spread.clone()));
            }
            let y = self.guarded(x, split, &map, &guards, fill);
            x = self.reshape(y, spread.clone());
        }
        let map: SmallVec<[Affine; 4]> = (0..from.len()).map(|k| scaled(k, -lo[k], 1)).collect();
        let guards: SmallVec<[Guard; 1]> = (0..from.len())
            .filter(|k| lo[*k] > 0 || shape[*k] as i64 - lo[*k] > spread[*k] as i64)
            .map(|k| Guard { at: scaled(k, -lo[k], 1), lo: 0, hi: spread[k] as i64 })
            .collect();
        let y = self.guarded(x, shape.clone(), &map, &guards, fill);
        if fill.is_some() || (guards.is_empty() && mask.is_none()) {
            return y;
        }
        let inside = mask.unwrap_or_else(|| self.constant(Scalar::bool(true), spread));
        let inside = self.guarded(inside, shape.clone(), &map, &guards, Some(Scalar::bool(false)));
        let value = self.broadcast(value, shape, &[]);
        self.select(inside, y, value)
    }
    /// One after the other along `axis`.
    pub fn concatenate(&mut self, xs: &[TensorId], axis: usize) -> TensorId {
        if let Some(pairs) = xs.iter().map(|x| self.in_pairs(*x)).collect::<Option<Vec<_>>>() {
            let y = self.concatenate(&pairs, axis);
            return self.unzip(y);
        }
        if let Some(parts) = xs.iter().map(|x| self.parts(*x)).collect::<Option<Vec<_>>>() {
            let (a, b): (Vec<TensorId>, Vec<TensorId>) = parts.into_iter().unzip();
            let (a, b) = (self.concatenate(&a, axis), self.concatenate(&b, axis));
            return self.pair(a, b);
        }
        let xs: SmallVec<[TensorId; 4]> = xs
            .iter()
            .copied()
            .filter(|x| self.shape(*x)[axis] > 0)
            .chain(xs.first().copied().filter(|_| xs.iter().all(|x| self.shape(*x)[axis] == 0)))
            .collect();
        let sizes: SmallVec<[usize; 4]> = xs.iter().map(|x| self.shape(*x)[axis]).collect();
        let mut shape = self.shape(xs[0]);
        shape[axis] = sizes.iter().sum();
        if xs.len() > PARTS {
            return self.concatenate_by_updates(&xs, axis, shape);
        }
        let mut end = shape[axis];
        let mut out = None;
        for (x, n) in xs.iter().zip(&sizes).rev() {
            let start = end - n;
            let map: SmallVec<[Affine; 4]> =
                (0..shape.len()).map(|k| if k == axis { scaled(k, -(start as i64), 1) } else { unit(k) }).collect();
            let guard = Guard { at: scaled(axis, -(start as i64), 1), lo: 0, hi: *n as i64 };
            let part = if *n == shape[axis] {
                *x
            } else {
                self.guarded(*x, shape.clone(), &map, std::slice::from_ref(&guard), None)
            };
            out = Some(match out {
                None => part,
                Some(rest) => {
                    // an index before `end` is in this part or an earlier one
                    let before = self.constant(Scalar::bool(true), shape.clone());
                    let g = Guard { at: unit(axis), lo: 0, hi: end as i64 };
                    let identity: SmallVec<[Affine; 4]> = (0..shape.len()).map(unit).collect();
                    let p = self.guarded(before, shape.clone(), &identity, &[g], Some(Scalar::bool(false)));
                    self.select(p, part, rest)
                }
            });
            end = start;
        }
        let out = out.expect("concatenate has operands");
        if xs.len() > 1 {
            self.joined.insert(out, (axis, TensorIds::from_slice(&xs)));
        }
        out
    }
    /// The parts that were concatenated along the last axis, each of size 1 there, without that axis.
    pub fn columns(&mut self, x: TensorId) -> Option<TensorIds> {
        let (axis, parts) = self.joined.get(&x)?.clone();
        let last = self.rank(x) - 1;
        if axis != last || parts.iter().any(|p| self.shape(*p)[last] != 1) {
            return None;
        }
        let shape: Dims = self.shape(x)[..last].into();
        Some(parts.iter().map(|p| self.reshape(*p, shape.clone())).collect())
    }
    /// A routine for each part: an expression of many parts would select among all of them at each element.
    fn concatenate_by_updates(&mut self, xs: &[TensorId], axis: usize, shape: Dims) -> TensorId {
        let mut out = self.constant(Scalar::zero(self.dtype(xs[0])), shape.clone());
        let mut starts = vec![0; shape.len()];
        for x in xs {
            out = self.with_window(out, *x, &starts);
            starts[axis] += self.shape(*x)[axis] as i64;
        }
        out
    }

    /// Over `axes`, which leave the shape.
    pub fn reduce(&mut self, kind: ReduceKind, x: TensorId, axes: &[usize]) -> TensorId {
        let shape = self.shape(x);
        // Of one element each.
        if kind.bin().is_some() && axes.iter().all(|a| shape[*a] == 1) {
            return self.reshape(x, shape.without(axes));
        }
        let dtype = self.dtype(x);
        self.reduce_as(kind, dtype, x, axes)
    }
    /// argmax, argmin: the position among `axes`, in `dtype`.
    pub fn reduce_as(&mut self, kind: ReduceKind, dtype: DType, x: TensorId, axes: &[usize]) -> TensorId {
        let shape = self.shape(x).without(axes);
        let mut axes = Dims::new(axes);
        axes.sort_unstable();
        self.push(dtype, shape, Def::Reduce { kind, of: x, axes })
    }

    // ---- steps ----

    /// Whether the tensor is a node of its own: it is not fused into its users' expressions.
    pub(super) fn written(&self, x: TensorId) -> bool {
        let t = &self.tensors[x as usize];
        t.slot.is_some() || t.apart
    }
    /// Materializes the value and returns its slot.
    pub fn force(&mut self, x: TensorId) -> SlotId {
        debug_assert!(self.parts(x).is_none(), "a pair has no slot");
        let t = &mut self.tensors[x as usize];
        match t.slot {
            Some(s) => s,
            None => *t.slot.insert(self.plan.add_slot(t.dtype, t.shape.size(), t.tape)),
        }
    }
    /// A block input in `slot`.
    pub fn input(&mut self, shape: Dims, slot: SlotId) -> TensorId {
        let s = self.plan.slots[slot as usize].clone();
        let x = self.push(s.dtype, shape, Def::Input);
        self.tensors[x as usize].slot = Some(slot);
        self.tensors[x as usize].tape = s.tape;
        x
    }
    /// Whether the value has no memory yet, neither its own nor that of another value.
    pub(super) fn fresh(&self, x: TensorId) -> bool {
        let t = &self.tensors[x as usize];
        t.slot.is_none() && !matches!(t.def, Def::Input | Def::Step(_) | Def::Pair(..))
    }
    pub(super) fn force_fresh(&mut self, x: TensorId, slot: SlotId) {
        debug_assert!(self.fresh(x));
        self.tensors[x as usize].slot = Some(slot);
    }
    /// Adds a step; `make` gets the slots of its operands and results.
    pub fn step(
        &mut self,
        ins: &[TensorId],
        outs: &[(DType, Dims, u8)],
        make: impl FnOnce(Vec<SlotId>, Vec<SlotId>) -> Step,
    ) -> TensorIds {
        let in_slots: Vec<SlotId> = ins.iter().map(|x| self.force(*x)).collect();
        let out_slots: Vec<SlotId> = outs.iter().map(|(d, s, tape)| self.plan.add_slot(*d, s.size(), *tape)).collect();
        let step = make(in_slots, out_slots.clone());
        self.step_into(outs, &out_slots, step)
    }
    /// Adds a step with materialized operands and the given result slots.
    pub(super) fn step_into(&mut self, outs: &[(DType, Dims, u8)], slots: &[SlotId], step: Step) -> TensorIds {
        let i = self.steps.len() as u32;
        self.steps.push(step);
        let define = |((dtype, shape, tape), slot): (&(DType, Dims, u8), &SlotId)| {
            let x = self.push(*dtype, shape.clone(), Def::Step(i));
            self.tensors[x as usize].tape = *tape;
            self.tensors[x as usize].slot = Some(*slot);
            x
        };
        outs.iter().zip(slots).map(define).collect()
    }
    pub fn routine(&mut self, r: Routine, ins: &[TensorId], shapes: &[Dims]) -> TensorIds {
        if let Some(wide) = r.widened() {
            // a routine that computes with small elements uses their lane's dtype
            let lanes = wide.operands();
            let ins: TensorIds = ins.iter().zip(&lanes).map(|(x, (d, _))| self.convert(*x, *d)).collect();
            let outs = self.routine(wide, &ins, shapes);
            return outs.iter().zip(r.results()).map(|(y, (d, _))| self.convert(*y, d)).collect();
        }
        let outs: SmallVec<[(DType, Dims, u8); 2]> =
            r.results().iter().zip(shapes).map(|((d, _), s)| (*d, s.clone(), 0)).collect();
        self.step(ins, &outs, |ins, outs| Step::Routine { routine: Arc::new(r), ins, outs })
    }
}

/// The index along axis k.
pub fn unit(k: usize) -> Affine {
    scaled(k, 0, 1)
}
/// `offset + stride * index k`.
pub fn scaled(k: usize, offset: i64, stride: i64) -> Affine {
    let mut strides = SmallVec::from_elem(0, k);
    strides.push(stride);
    Affine { offset, strides }
}

/// The index map of a reshape, where it has one: every axis of `from` (but those of size 1) is one axis of `to`, or a run of them.
fn split_map(from: &[usize], to: &[usize]) -> Option<SmallVec<[Affine; 4]>> {
    if from.contains(&0) {
        return Some(from.iter().map(|_| Affine::constant(0)).collect());
    }
    let mut k = 0;
    let mut map = SmallVec::new();
    for n in from {
        if *n == 1 {
            map.push(Affine::constant(0));
            continue;
        }
        let (start, mut size) = (k, 1);
        while size < *n {
            size *= *to.get(k)?;
            k += 1;
        }
        if size != *n {
            return None;
        }
        let mut strides: SmallVec<[i64; 4]> = SmallVec::from_elem(0, k);
        let mut s = 1;
        for j in (start..k).rev() {
            strides[j] = s;
            s *= to[j] as i64;
        }
        map.push(Affine { offset: 0, strides });
    }
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_that_split_are_maps() {
        assert!(split_map(&[6], &[2, 3]).is_some());
        assert!(split_map(&[2, 3], &[6]).is_none());
        assert!(split_map(&[2, 1, 3], &[2, 3, 1]).is_some());
        assert!(split_map(&[4, 3], &[2, 2, 3]).is_some());
        assert!(split_map(&[4, 3], &[6, 2]).is_none());
        assert!(split_map(&[], &[1, 1]).is_some());
    }
}
