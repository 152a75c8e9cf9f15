//! Windows that slide over an array: their geometry, and the combination of the elements of each in a number of steps that grows with the
//! logarithm of its size.
//!
//! ```text
//! window o covers x[o * strides + i * dilation - padding_low], 0 <= i < size, of x with `base - 1` holes between its elements
//! ```
//!
//! INVARIANT: elements outside x, or in a hole, count as the fill value that [`Windows::fold`] is given.
use super::pad::Pad;
use super::reduce::Monoid;
use super::slice::Slice;
use crate::aval::{Aval, Lit};
use crate::cx::{Cx, eval_root};
use crate::dtype::Dtype;
use crate::error::{Res, type_err, value_err};
use crate::factors::{Factors, In, Out, Windowed};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::value::{Value, Values};
use ferrax_kernel::{DType, Dims};

/// The limit of padding and dilated sizes: positions are then far from overflow.
const FAR: i64 = 1 << 40;
/// Windows of up to this many elements are combined element by element, in order; so are those of up to `IN_TURN` along one axis.
const AT_ONCE: usize = 32;
const IN_TURN: usize = 16;

#[derive(Clone, Debug)]
pub struct Windows {
    pub size: Dims,
    pub strides: Dims,
    pub padding: Vec<(i64, i64)>,
    pub base: Dims,
    pub dilation: Dims,
}
/// Combines earlier elements of a window with later ones: arrays of one shape, each a component of
/// the state.
pub type CombineFn<'a> = &'a dyn Fn(&dyn Cx, &[Value], &[Value]) -> Res<Values>;

fn dilated(n: usize, d: usize) -> i64 {
    let long = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    if n == 0 { 0 } else { long(n - 1).saturating_mul(long(d)).saturating_add(1) }
}
fn pairs(p: &[(i64, i64)]) -> String {
    let all: Vec<String> = p.iter().map(|(lo, hi)| format!("({lo}, {hi})")).collect();
    format!("({}{})", all.join(", "), if p.len() == 1 { "," } else { "" })
}

/// The windows that an op's parameters define.
macro_rules! windowed {
    ($Op:ident) => {
        impl $Op {
            fn windows(&self) -> Windows {
                Windows {
                    size: self.window_dimensions.clone(),
                    strides: self.window_strides.clone(),
                    padding: self.padding.to_vec(),
                    base: self.base_dilation.clone(),
                    dilation: self.window_dilation.clone(),
                }
            }
        }
    };
}
pub(super) use windowed;

impl Windows {
    /// Along axis `d` as along no axis: one element.
    pub fn insert(&self, d: usize) -> Windows {
        let mut padding = self.padding.clone();
        padding.insert(d, (0, 0));
        let one = |v: &Dims| v.insert(d, 1);
        Windows {
            size: one(&self.size),
            strides: one(&self.strides),
            padding,
            base: one(&self.base),
            dilation: one(&self.dilation),
        }
    }
    /// Whether along axis `d` each window is one element, in order.
    pub fn stays(&self, d: usize) -> bool {
        (self.size[d], self.strides[d], self.base[d], self.padding[d]) == (1, 1, 1, (0, 0))
    }
    /// The shape of the results over an array of this shape, or why there is none.
    pub fn over(&self, name: &str, shape: &Dims) -> Res<Dims> {
        let rank = shape.len();
        if self.size.len() != rank {
            return type_err(format!(
                "{name} got the wrong number of window_dimensions for operand: got operand shape {shape} with window_dimensions {}.",
                self.size
            ));
        }
        let lists =
            [("window_strides", &self.strides), ("base_dilation", &self.base), ("window_dilation", &self.dilation)];
        if let Some((what, v)) = lists.iter().find(|l| l.1.len() != rank) {
            return type_err(format!(
                "{name} got inconsistent {what} and window_dimensions: got {what} {v} and window_dimensions {}.",
                self.size
            ));
        }
        if self.padding.len() != rank {
            return value_err(format!(
                "{name} got inconsistent padding and window_dimensions: got padding {} and window_dimensions {}.",
                pairs(&self.padding),
                self.size
            ));
        }
        for (what, v) in [("window_dimensions", &self.size), ("window_strides", &self.strides)] {
            if v.contains(&0) {
                return type_err(format!("{name} {what} must have every element be strictly positive, got {v}."));
            }
        }
        for v in [&self.base, &self.dilation] {
            if v.contains(&0) {
                return type_err(format!("All dilations must be positive, got {v}."));
            }
        }
        let far = |k: usize| {
            let (lo, hi) = self.padding[k];
            lo.unsigned_abs().max(hi.unsigned_abs()) > FAR as u64
                || self.span(k).max(dilated(shape[k], self.base[k])) > FAR
        };
        if (0..rank).any(far) {
            return value_err(format!(
                "{name}: windows or padding reach too far, got padding {}.",
                pairs(&self.padding)
            ));
        }
        let along = |k: usize| {
            let (lo, hi) = self.padding[k];
            let room = dilated(shape[k], self.base[k]) + lo + hi - self.span(k);
            if room < 0 { 0 } else { room as usize / self.strides[k] + 1 }
        };
        let out: Dims = (0..rank).map(along).collect();
        out.checked(8)?;
        Ok(out)
    }
    /// How many places a window covers along an axis, its own holes among them.
    pub fn span(&self, k: usize) -> i64 {
        dilated(self.size[k], self.dilation[k])
    }
    /// How axis `k`, which is this dimension of the operand and of the result, is read by parts.
    pub fn parted(&self, k: usize, (dim, result): (usize, usize), fill: Lit) -> Option<Windowed> {
        let (low, stride, spread) = (self.padding[k].0, self.strides[k], self.base[k]);
        let span = usize::try_from(self.span(k)).ok()?;
        (!self.stays(k)).then_some(Windowed { dim, of: Out(0, result), low, stride, span, spread, fill })
    }
    /// Factors where each operand and the result has the array's shape or that of the results over it: of axes along which a window is one
    /// element, or the windows are tiles.
    pub fn factors(&self, x: &[Aval], out: &[Aval], array: &[usize], results: &[usize]) -> Factors {
        let mut f = Factors::along(x, out, |k| self.stays(k) && array[k] == results[k]);
        for k in (0..array.len()).filter(|k| self.tiles(*k, array[*k], results[*k])) {
            f.ins.iter_mut().chain(&mut f.outs).for_each(|dims| dims[k].clear());
            let all = (0..x.len()).map(|i| In(i, k)).chain((0..out.len()).map(|i| Out(i, k)));
            f.link(results[k], &all.collect::<Vec<_>>());
        }
        f
    }
    /// Whether along axis `k`, of size `n`, the windows are the `out` parts of equal size that there are.
    pub fn tiles(&self, k: usize, n: usize, out: usize) -> bool {
        let alone = (self.base[k], self.padding[k]) == (1, (0, 0)) && self.span(k) <= self.strides[k] as i64;
        alone && !self.stays(k) && out * self.strides[k] == n
    }
    /// Whether each window is combined element by element.
    pub fn few(&self) -> bool {
        self.size.size() <= AT_ONCE
    }
    fn out(&self, shape: &[usize]) -> Res<Dims> {
        self.over("window", &Dims::new(shape))
    }
    /// The padding of the transpose, with which windows over the dilated results cover each
    /// operand's element as often as it was covered.
    pub fn transposed_padding(&self, shape: &[usize], out: &[usize]) -> Vec<(i64, i64)> {
        let along = |k: usize| {
            let before = self.span(k) - self.padding[k].0 - 1;
            let after = dilated(shape[k], self.base[k]) + self.span(k) - 1 - dilated(out[k], self.strides[k]) - before;
            (before, after)
        };
        (0..shape.len()).map(along).collect()
    }
    /// The arrays with fill values around them and in their holes, so that the windows cover them exactly.
    fn padded(&self, cx: &dyn Cx, xs: &[Value], fills: &[Value], out: &Dims) -> Res<Values> {
        let along = |k: usize| {
            let n = dilated(xs[0].shape()[k], self.base[k]);
            let covered = (out[k] as i64 - 1) * self.strides[k] as i64 + self.span(k);
            let lo = self.padding[k].0;
            (lo, covered - lo - n, self.base[k] as i64 - 1)
        };
        let config: Box<[(i64, i64, i64)]> = (0..out.len()).map(along).collect();
        if config.iter().all(|c| *c == (0, 0, 0)) {
            return Ok(xs.into());
        }
        let pad = Pad { padding_config: config };
        xs.iter().zip(fills).map(|(x, v)| cx.bind1(pad.clone(), &[x.clone(), v.clone()])).collect()
    }
    /// The `i`-th element of each window of arrays that these cover exactly.
    fn tap(&self, cx: &dyn Cx, xs: &[Value], out: &Dims, i: usize) -> Res<Values> {
        let start: Dims = self.size.unravel(i).iter().zip(self.dilation.iter()).map(|(i, d)| i * d).collect();
        parts(cx, xs, &start, out, &self.strides)
    }
    /// The elements of each window, one after the other; there is at least one window.
    pub fn taps(&self, cx: &dyn Cx, xs: &[Value], fills: &[Value]) -> Res<Vec<Values>> {
        let out = self.out(xs[0].shape())?;
        let xs = self.padded(cx, xs, fills, &out)?;
        (0..self.size.size()).map(|i| self.tap(cx, &xs, &out, i)).collect()
    }
    /// Whether the windows cover elements alone.
    pub fn inside(&self, shape: &[usize], out: &Dims) -> bool {
        let reach = |k: usize| (out[k] as i64 - 1) * self.strides[k] as i64 + self.span(k) - self.padding[k].0;
        (0..shape.len()).all(|k| self.base[k] == 1 && self.padding[k].0 <= 0 && reach(k) <= shape[k] as i64)
    }
    /// The elements of each window combined. `whole`: the reduction that `f` is the two-element case of, where there is one.
    pub fn fold(&self, cx: &dyn Cx, xs: &[Value], fills: &[Value], whole: Option<Monoid>, f: CombineFn) -> Res<Values> {
        let out = self.out(xs[0].shape())?;
        if out.contains(&0) {
            return xs.iter().map(|x| cx.zeros(&x.aval().with_shape(out.clone()))).collect();
        }
        let xs = self.padded(cx, xs, fills, &out)?;
        if self.few() {
            return in_turn(cx, self.size.size(), &|i| self.tap(cx, &xs, &out, i), f);
        }
        // the innermost axis first: of equals the first in row-major order stays
        (0..out.len()).rev().try_fold(xs, |xs, k| self.along(cx, xs, fills, k, out[k], whole, f))
    }
    /// The same along one axis, which the windows cover exactly.
    fn along(
        &self,
        cx: &dyn Cx,
        xs: Values,
        fills: &[Value],
        k: usize,
        out: usize,
        whole: Option<Monoid>,
        f: CombineFn,
    ) -> Res<Values> {
        let (w, d, s) = (self.size[k], self.dilation[k], self.strides[k]);
        // `n` results from the `start`th place on, at distance `step`
        let cut = |xs: &[Value], start: usize, n: usize, step: usize| -> Res<Values> {
            let mut shape = Dims::new(xs[0].shape());
            let (mut starts, mut strides) = filled(shape.len());
            (shape[k], starts[k], strides[k]) = (n, start, step);
            parts(cx, xs, &starts, &shape, &strides)
        };
        if w <= IN_TURN {
            return in_turn(cx, w, &|i| cut(&xs, i * d, out, s), f);
        }
        if d == 1 && (out == 1 || s >= w) {
            return self.apart(cx, xs, fills, k, out, whole, f);
        }
        // after j doublings, each place holds the combination of 2^j elements from it on; a window
        // combines those whose lengths add up to its size
        let (mut run, mut len, mut done) = (xs, 1, 0);
        let mut acc: Option<Values> = None;
        loop {
            if w & len != 0 {
                let part = cut(&run, done * d, out, s)?;
                acc = Some(match acc {
                    None => part,
                    Some(acc) => f(cx, &acc, &part)?,
                });
                done += len;
            }
            if done == w {
                return Ok(acc.unwrap_or_default());
            }
            let n = run[0].shape()[k] - len * d;
            run = f(cx, &cut(&run, 0, n, 1)?, &cut(&run, len * d, n, 1)?)?;
            len *= 2;
        }
    }
    /// The same where no two windows meet: each on an axis of its own, folded by halves.
    fn apart(
        &self,
        cx: &dyn Cx,
        xs: Values,
        fills: &[Value],
        k: usize,
        out: usize,
        whole: Option<Monoid>,
        f: CombineFn,
    ) -> Res<Values> {
        let (w, s) = (self.size[k], self.strides[k].max(self.size[k]));
        let shape = Dims::new(xs[0].shape());
        let mut config: Box<[(i64, i64, i64)]> = shape.iter().map(|_| (0, 0, 0)).collect();
        config[k].1 = (out * s - shape[k]) as i64;
        let mut split = shape.insert(k + 1, s);
        split[k] = out;
        let alone = |(x, fill): (&Value, &Value)| -> Res<Value> {
            let x = match config[k].1 {
                0 => x.clone(),
                _ => cx.bind1(Pad { padding_config: config.clone() }, &[x.clone(), fill.clone()])?,
            };
            cx.reshape(&x, &split)
        };
        let rows: Values = xs.iter().zip(fills).map(alone).collect::<Res<_>>()?;
        let cut = |xs: &[Value], start: usize, n: usize, step: usize| -> Res<Values> {
            let mut shape = split.clone();
            let (mut starts, mut strides) = filled(shape.len());
            (shape[k + 1], starts[k + 1], strides[k + 1]) = (n, start, step);
            parts(cx, xs, &starts, &shape, &strides)
        };
        let rows = cut(&rows, 0, w, 1)?;
        if let Some(kind) = whole {
            return rows.iter().map(|x| cx.reduce(kind, x, [k + 1].into())).collect();
        }
        let (mut rows, mut n, mut last) = (rows, w, vec![]);
        while n > 1 {
            if n % 2 == 1 {
                last.push(cut(&rows, n - 1, 1, 1)?);
            }
            rows = f(cx, &cut(&rows, 0, n / 2, 2)?, &cut(&rows, 1, n / 2, 2)?)?;
            n /= 2;
        }
        for part in last.iter().rev() {
            rows = f(cx, &rows, part)?;
        }
        let shape = split.remove(k + 1);
        rows.iter().map(|x| cx.reshape(x, &shape)).collect()
    }
}

/// From the first place, one by one, along every axis.
fn filled(rank: usize) -> (Dims, Dims) {
    ((0..rank).map(|_| 0).collect(), (0..rank).map(|_| 1).collect())
}
/// `x[start + stride * i]` of each.
fn parts(cx: &dyn Cx, xs: &[Value], start: &Dims, shape: &Dims, strides: &Dims) -> Res<Values> {
    if **shape == *xs[0].shape() {
        return Ok(xs.into());
    }
    let limit_indices = (0..shape.len()).map(|k| start[k] + (shape[k] - 1) * strides[k] + 1).collect();
    let strides = (strides.iter().any(|s| *s != 1)).then(|| strides.clone());
    let cut = Slice { limit_indices, start_indices: start.clone(), strides };
    xs.iter().map(|x| cx.bind1(cut.clone(), std::slice::from_ref(x))).collect()
}
fn in_turn(cx: &dyn Cx, n: usize, tap: &dyn Fn(usize) -> Res<Values>, f: CombineFn) -> Res<Values> {
    let mut acc = tap(0)?;
    for i in 1..n {
        acc = f(cx, &acc, &tap(i)?)?;
    }
    Ok(acc)
}

/// Lowers an op to the composition `f` of others.
pub fn lower_as(b: &mut Graph, x: &[TensorId], f: &dyn Fn(&dyn Cx, &[Value]) -> Res<Values>) -> Res<TensorIds> {
    let aval = |x: &TensorId| {
        let (node, pair) = b.parts(*x).map_or((*x, false), |p| (p.0, true));
        let dtype = match (b.dtype(node), pair) {
            (DType::F64, true) => Dtype::C128,
            (_, true) => Dtype::C64,
            (d, false) => Dtype::Num(d),
        };
        Aval::of(dtype, b.shape(node))
    };
    let avals: Vec<Aval> = x.iter().map(aval).collect();
    let (p, _) = eval_root().recur().stage(&avals, f)?;
    b.inline(&crate::simplify::simplify(&p), x)
}
