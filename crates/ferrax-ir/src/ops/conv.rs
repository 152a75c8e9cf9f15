//! conv_general_dilated: a kernel laid over windows of an array; at each place the sum of products, over channels and window. Both may have
//! holes, features and batches may come in groups. numpy (one channel, strides 1): `convolve(x, w[::-1])`.
//!
//! ```text
//! out[n, o, p..] = sum_{c, i..} lhs[n, c, p * strides + i * rhs_dilation - padding_low] * rhs[o, c, i..]
//! ```
//!
//! `dimension_numbers` say which axes are (n, c, space..), (o, c, window..) and (n, o, space..). An element outside of lhs, or in a hole of it,
//! is zero, also where it meets an infinite weight.
use super::reduce::Monoid;
use super::reshape::Reshape;
use super::rev::Rev;
use super::windows::Windows;
use crate::aval::{Aval, Lit};
use crate::cx::{Arg, Axis, Cx, Dim, Tan, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, In, Out, Windowed};
use crate::lower::{Convolution, Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::{Bin, DType, Dims, Scalar};
use smallvec::smallvec;
use std::sync::Arc;

/// The axes of batch, features and space in each operand and in the result; for the kernel: output
/// features, input features, window.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ConvDims {
    pub lhs_spec: Dims,
    pub rhs_spec: Dims,
    pub out_spec: Dims,
}
impl ParamValue for ConvDims {
    fn words() -> String {
        "ConvDimensionNumbers".into()
    }
    fn to_param(&self) -> Param {
        Param::Struct(
            "ConvDimensionNumbers",
            vec![
                ("lhs_spec", Param::ints(&self.lhs_spec)),
                ("rhs_spec", Param::ints(&self.rhs_spec)),
                ("out_spec", Param::ints(&self.out_spec)),
            ],
        )
    }
    fn from_param(p: &Param) -> Option<ConvDims> {
        let fields: Vec<&Param> = match p {
            Param::Struct(_, f) => f.iter().map(|x| &x.1).collect(),
            p => p.items()?.iter().collect(),
        };
        let [l, r, o] = fields[..] else { return None };
        Some(ConvDims {
            lhs_spec: Dims::from_param(l)?,
            rhs_spec: Dims::from_param(r)?,
            out_spec: Dims::from_param(o)?,
        })
    }
}
/// The precision that the user requested. Products have the operands' precision, or single: only a request for double precision has an effect.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Asked(Option<Box<[Arc<str>]>>);
impl Asked {
    /// Whether narrower operands are to be multiplied and summed in double precision.
    pub fn is_double(&self) -> bool {
        matches!(self.0.as_deref(), Some([algorithm]) if &**algorithm == "F64_F64_F64")
    }
}
impl ParamValue for Asked {
    fn words() -> String {
        "a precision, a pair of them, or None".into()
    }
    fn to_param(&self) -> Param {
        let one = |s: &Arc<str>| Param::Enum("Precision", s.clone());
        match self.0.as_deref() {
            None => Param::None,
            Some([algorithm]) => Param::Enum("DotAlgorithmPreset", algorithm.clone()),
            Some(sides) => Param::Tuple(sides.iter().map(one).collect()),
        }
    }
    fn from_param(p: &Param) -> Option<Asked> {
        let word = |p: &Param| if let Param::Enum(_, s) | Param::Str(s) = p { Some(s.clone()) } else { None };
        match p {
            Param::None => Some(Asked(None)),
            Param::Enum(..) | Param::Str(_) => Some(Asked(Some([word(p)?].into()))),
            p => p.items()?.iter().map(word).collect::<Option<_>>().map(|v| Asked(Some(v))),
        }
    }
    fn missing(_: &[Aval]) -> Option<Asked> {
        Some(Asked(None))
    }
}

primitive! {
    pub struct Conv = "conv_general_dilated" {
        batch_group_count: usize,
        dimension_numbers: Box<ConvDims>,
        feature_group_count: usize,
        lhs_dilation: Dims,
        padding: Box<[(i64, i64)]>,
        precision: Asked,
        preferred_element_type: Option<Dtype>,
        rhs_dilation: Dims,
        window_strides: Dims,
    } always_none { out_sharding }
}

const NAME: &str = "conv_general_dilated";
fn swapped(d: &Dims) -> Dims {
    let mut d = d.clone();
    d.swap(0, 1);
    d
}
/// Axis `axis` as two, the first of size `n`.
fn split(cx: &dyn Cx, x: &Value, axis: usize, n: usize) -> Res<Value> {
    let mut shape = Dims::new(x.shape()).insert(axis, n);
    shape[axis + 1] /= n;
    cx.reshape(x, &shape)
}
/// Axis `from` brought before axis `to` and made one with it.
fn join(cx: &dyn Cx, x: &Value, from: usize, to: usize) -> Res<Value> {
    let to = to - (to > from) as usize;
    let x = cx.move_axis(x, from, to)?;
    let mut shape = Dims::new(x.shape());
    shape[to] *= shape[to + 1];
    let new_sizes = shape.remove(to + 1);
    cx.bind1(Reshape { new_sizes }, &[x])
}
fn list(v: &[(i64, i64)]) -> String {
    let all: Vec<String> = v.iter().map(|p| format!("{p:?}")).collect();
    format!("({}{})", all.join(", "), if v.len() == 1 { "," } else { "" })
}

/// A convolution with more phases than this is not split.
const PHASES: usize = 32;

impl Conv {
    /// The windows over the axes of space.
    fn windows(&self, rhs: &[usize]) -> Windows {
        Windows {
            size: Dims::new(rhs).pick(&self.dimension_numbers.rhs_spec[2..]),
            strides: self.window_strides.clone(),
            padding: self.padding.to_vec(),
            base: self.lhs_dilation.clone(),
            dilation: self.rhs_dilation.clone(),
        }
    }
    fn check_groups(&self, batch: usize, features: usize, taken: usize, given: usize) -> Res<()> {
        let (f, b) = (self.feature_group_count, self.batch_group_count);
        for (n, what) in [(f, "feature"), (b, "batch")] {
            if n == 0 {
                return value_err(format!("{NAME} {what}_group_count must be a positive integer, got 0."));
            }
        }
        if !features.is_multiple_of(f) {
            return value_err(format!(
                "{NAME} feature_group_count must divide lhs feature dimension size, but {f} does not divide {features}."
            ));
        }
        if features / f != taken {
            return value_err(format!(
                "{NAME} lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension size, but {features} // {f} != {taken}."
            ));
        }
        if !given.is_multiple_of(f) {
            return value_err(format!(
                "{NAME} rhs output feature dimension size must be a multiple of feature_group_count, but {given} is not a multiple of {f}."
            ));
        }
        if !batch.is_multiple_of(b) {
            return value_err(format!(
                "{NAME} batch_group_count must divide lhs batch dimension size, but {b} does not divide {batch}."
            ));
        }
        if !given.is_multiple_of(b) {
            return value_err(format!(
                "{NAME} rhs output feature dimension size must be a multiple of batch_group_count, but {given} is not a multiple of {b}."
            ));
        }
        if b > 1 && f > 1 {
            return value_err(format!(
                "At most one of batch_group_count and feature_group_count may be > 1, got batch_group_count={b} and feature_group_count={f}"
            ));
        }
        Ok(())
    }
    fn result_dtype(&self, d: Dtype) -> Res<Dtype> {
        let Some(p) = self.preferred_element_type else { return Ok(d) };
        // booleans are counted in the requested dtype
        if !(d.is_int() && p.is_float()) {
            let kept = |kind: fn(Dtype) -> bool| !kind(d) || kind(p);
            if !(kept(Dtype::is_int) && kept(Dtype::is_float) && kept(Dtype::is_complex)) {
                return type_err(
                    "Input type is incompatible with `preferred_element_type`. The compatible combinations of (input_type, preferred_element_type) are (integral, integral), (integral, floating), (floating, floating), (complex, complex.",
                );
            }
            if d.is_int() && !d.is_unsigned() && p.is_unsigned() {
                return type_err("`preferred_element_type` must have the same signedness as the original type.");
            }
        }
        if p.size() < d.size() {
            return type_err("`preferred_element_type` must not be narrower than the original type.");
        }
        Ok(p)
    }
    fn without_holes(&self, low: Vec<i64>) -> Convolution<'_> {
        let n = &*self.dimension_numbers;
        Convolution {
            lhs: &n.lhs_spec,
            rhs: &n.rhs_spec,
            out: &n.out_spec,
            low,
            strides: self.window_strides.clone(),
            dilation: self.rhs_dilation.clone(),
            feature_groups: self.feature_group_count,
            batch_groups: self.batch_group_count,
        }
    }
    /// Whether the array has holes, and each result meets its elements by every so-many-th of the kernel's.
    fn has_phases(&self) -> bool {
        let apt = |k: usize| {
            let d = self.lhs_dilation[k];
            d == 1 || self.window_strides[k] == 1 && (1..d).all(|t| !(t * self.rhs_dilation[k]).is_multiple_of(d))
        };
        // each is a step of its own
        let phases = self.lhs_dilation.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).filter(|n| *n <= PHASES);
        phases.is_some_and(|n| n > 1) && (0..self.lhs_dilation.len()).all(apt)
    }
    /// The convolution from the `k`-th axis of space on, over the array without its holes. Results
    /// at the same offset from holes form one convolution with the elements of the kernel that meet
    /// no hole.
    ///
    /// ```text
    /// holes of 1, kernel w[0..3], nothing in front:   y[0::2] = x . w[0::2]      y[1::2] = x[1..] . w[1::2]
    /// ```
    fn by_phases(&self, b: &mut Graph, l: TensorId, r: TensorId, low: Vec<i64>, out: Dims, k: usize) -> TensorId {
        let n = &*self.dimension_numbers;
        let Some(d) = self.lhs_dilation.get(k).copied() else {
            // The products of holes are zeros, and the sum of the others is not -0 there. (A GPU's
            // compiler may leave out the addition of a zero.)
            let y = b.convolution(&self.without_holes(low), l, r, &out);
            let zero = b.scalar(y, 0.0);
            let is_zero = b.bin(Bin::Eq, y, zero);
            return b.select(is_zero, zero, y);
        };
        if d == 1 {
            return self.by_phases(b, l, r, low, out, k + 1);
        }
        let (at, window) = (n.out_spec[2 + k], b.shape(r));
        let taps = n.rhs_spec[2 + k];
        let mut part = out.clone();
        part[at] = out[at].div_ceil(d);
        let split = |shape: &Dims| shape.insert(at + 1, 1);
        let mut parts: TensorIds = TensorIds::new();
        for c in 0..d {
            let meets = |t: usize| c as i64 - low[k] + (t * self.rhs_dilation[k]) as i64;
            let first = (0..d.min(window[taps])).find(|t| meets(*t).rem_euclid(d as i64) == 0);
            let y = match first.filter(|_| c < out[at]) {
                None => {
                    let dtype = b.dtype(l);
                    b.constant(Scalar::zero(dtype), part.clone())
                }
                Some(t) => {
                    let (mut start, mut stride, mut shape) =
                        (vec![0; window.len()], vec![1; window.len()], window.clone());
                    (start[taps], stride[taps], shape[taps]) = (t, d, (window[taps] - t).div_ceil(d));
                    let r = b.slice(r, &start, &stride, shape);
                    let mut low = low.clone();
                    low[k] = -meets(t).div_euclid(d as i64);
                    self.by_phases(b, l, r, low, part.clone(), k + 1)
                }
            };
            parts.push(b.reshape(y, split(&part)));
        }
        let interleaved = b.concatenate(&parts, at + 1);
        let mut whole = part.clone();
        whole[at] *= d;
        let interleaved = b.reshape(interleaved, whole);
        let rank = out.len();
        b.slice(interleaved, &vec![0; rank], &vec![1; rank], out)
    }
    /// Cotangent of the array: a convolution of the cotangent, dilated by the strides, with the
    /// reversed kernel.
    fn to_array(&self, cx: &dyn Cx, ct: &Value, a: &Aval, w: &Value) -> Res<Value> {
        let n = &*self.dimension_numbers;
        let (f, b) = (self.feature_group_count, self.batch_group_count);
        let groups = f.max(b);
        let space = a.shape.pick(&n.lhs_spec[2..]);
        let out = Dims::new(ct.shape()).pick(&n.out_spec[2..]);
        let padding = self.windows(w.shape()).transposed_padding(&space, &out);
        let mut w = cx.convert(w, ct.dtype())?;
        if groups > 1 {
            let apart = split(cx, &w, n.rhs_spec[0], groups)?;
            let into = n.rhs_spec[1] + (n.rhs_spec[1] > n.rhs_spec[0]) as usize;
            w = join(cx, &apart, n.rhs_spec[0], into)?;
        }
        let dimensions = Dims::new(&n.rhs_spec[2..]);
        let w = if dimensions.is_empty() { w } else { cx.bind1(Rev { dimensions }, &[w])? };
        let op = Conv {
            batch_group_count: 1,
            feature_group_count: groups,
            dimension_numbers: Box::new(ConvDims {
                lhs_spec: n.out_spec.clone(),
                rhs_spec: swapped(&n.rhs_spec),
                out_spec: n.lhs_spec.clone(),
            }),
            lhs_dilation: self.window_strides.clone(),
            window_strides: self.lhs_dilation.clone(),
            padding: padding.into(),
            ..self.clone()
        };
        let mut dx = cx.bind1(op, &[ct.clone(), w])?;
        if b > 1 {
            let apart = split(cx, &dx, n.lhs_spec[1], b)?;
            let into = n.lhs_spec[0] + (n.lhs_spec[0] > n.lhs_spec[1]) as usize;
            dx = join(cx, &apart, n.lhs_spec[1], into)?;
        }
        cx.convert(&dx, a.dtype)
    }
    /// Cotangent of the kernel: the cotangent laid over the array, batches for channels.
    fn to_kernel(&self, cx: &dyn Cx, ct: &Value, x: &Value, a: &Aval) -> Res<Value> {
        let n = &*self.dimension_numbers;
        let w = self.windows(&a.shape);
        let out = Dims::new(ct.shape()).pick(&n.out_spec[2..]);
        let space = Dims::new(x.shape()).pick(&n.lhs_spec[2..]);
        let far = |n: usize, d: usize| if n == 0 { 0 } else { (n as i64 - 1) * d as i64 + 1 };
        let around = |k: usize| {
            let lo = w.padding[k].0;
            (lo, w.span(k) - 1 + far(out[k], w.strides[k]) - far(space[k], w.base[k]) - lo)
        };
        let op = Conv {
            batch_group_count: self.feature_group_count,
            feature_group_count: self.batch_group_count,
            dimension_numbers: Box::new(ConvDims {
                lhs_spec: swapped(&n.lhs_spec),
                rhs_spec: swapped(&n.out_spec),
                out_spec: swapped(&n.rhs_spec),
            }),
            window_strides: self.rhs_dilation.clone(),
            rhs_dilation: self.window_strides.clone(),
            padding: (0..space.len()).map(around).collect(),
            ..self.clone()
        };
        let dw = cx.bind1(op, &[cx.convert(x, ct.dtype())?, ct.clone()])?;
        cx.convert(&dw, a.dtype)
    }
}

impl Rules for Conv {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [l, r] = x else { return type_err(format!("{NAME} takes 2 operands, got {}", x.len())) };
        let n = &*self.dimension_numbers;
        if l.rank() != r.rank() {
            return type_err(format!(
                "convolution requires lhs and rhs ndim to be equal, got {} and {}.",
                l.rank(),
                r.rank()
            ));
        }
        if l.dtype != r.dtype {
            return type_err(format!(
                "lax.{NAME} requires arguments to have the same dtypes, got {}, {}.",
                l.dtype.long(),
                r.dtype.long()
            ));
        }
        if l.dtype.is_key() || l.tape + r.tape > 0 {
            return type_err(format!("{NAME} does not accept {} and {}", l.long(), r.long()));
        }
        for s in [&n.lhs_spec, &n.rhs_spec, &n.out_spec] {
            if l.rank() < 2 || s.len() != l.rank() || (0..s.len()).any(|k| !s.contains(&k)) {
                return type_err(format!(
                    "convolution dimension_numbers must each name every axis once, got {s} for operands of rank {}.",
                    l.rank()
                ));
            }
        }
        let (ls, rs) = (l.shape.pick(&n.lhs_spec), r.shape.pick(&n.rhs_spec));
        self.check_groups(ls[0], ls[1], rs[1], rs[0])?;
        let rank = ls.len() - 2;
        if self.window_strides.len() != rank {
            return value_err(format!(
                "{NAME} window and window_strides must have the same number of dimensions, but got {rank} and {}",
                self.window_strides.len()
            ));
        }
        if self.padding.len() != rank {
            return type_err(format!(
                "Wrong number of explicit pads for convolution: expected {rank}, got {}.",
                self.padding.len()
            ));
        }
        for (what, v) in [("lhs_dilation", &self.lhs_dilation), ("rhs_dilation", &self.rhs_dilation)] {
            if v.len() != rank {
                return value_err(format!("{NAME} {what} must have one entry for each of {rank} axes, got {v}."));
            }
            if v.contains(&0) {
                return type_err(format!("All dilations must be positive, got {v}."));
            }
        }
        if self.window_strides.contains(&0) {
            return value_err(format!(
                "{NAME} window_strides must have every element be strictly positive, got {}.",
                self.window_strides
            ));
        }
        let space = Dims::new(&ls[2..]);
        let w = self.windows(&r.shape);
        let short = |k: usize| {
            let n = if space[k] == 0 { 0 } else { (space[k] as i128 - 1) * w.base[k] as i128 + 1 };
            n + (w.padding[k].0 as i128) + (w.padding[k].1 as i128) < 0
        };
        if (0..rank).any(short) {
            return value_err(format!(
                "Negative padding is larger than the size of the corresponding dimension: got padding={} for lhs_shape[2:]={space}",
                list(&self.padding)
            ));
        }
        let places = w.over(NAME, &space)?;
        let mut shape = l.shape.clone();
        (shape[n.out_spec[0]], shape[n.out_spec[1]]) = (ls[0] / self.batch_group_count, rs[0]);
        (0..rank).for_each(|k| shape[n.out_spec[2 + k]] = places[k]);
        let dtype = self.result_dtype(l.dtype)?;
        shape.checked(dtype.size())?;
        Ok(smallvec![Aval { weak: l.weak && r.weak && dtype == l.dtype, ..Aval::of(dtype, shape) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let one = |l: &Value, r: &Value| cx.bind1(self.clone(), &[l.clone(), r.clone()]);
        let y = one(&x[0], &x[1])?;
        let l = dx[0].as_ref().map(|t| one(t, &x[1])).transpose()?;
        let r = dx[1].as_ref().map(|t| one(&x[0], t)).transpose()?;
        Ok((values1(y), smallvec![cx.add_tan(l, r)?]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None, None]) };
        let none = ct.shape().contains(&0);
        Ok(match (&x[0], &x[1]) {
            (Arg::Linear(a), Arg::Known(_)) if none => smallvec![Some(cx.zeros(a)?), None],
            (Arg::Known(_), Arg::Linear(a)) if none => smallvec![None, Some(cx.zeros(a)?)],
            (Arg::Linear(a), Arg::Known(w)) => smallvec![Some(self.to_array(cx, ct, a, w)?), None],
            (Arg::Known(v), Arg::Linear(a)) => smallvec![None, Some(self.to_kernel(cx, ct, v, a)?)],
            _ => return not_linear(NAME),
        })
    }
    /// Lanes of the array are batches, those of the kernel output features, those of both groups.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let n = &*self.dimension_numbers;
        let (f, b) = (self.feature_group_count, self.batch_group_count);
        let lane = |(v, d): (&Value, &Dim)| d.map_or(v.aval(), |d| v.aval().unbatched(d));
        if ax.n == 0 {
            let avals: Vec<Aval> = x.iter().zip(d).map(lane).collect();
            let out = &self.infer(&avals)?[0];
            return Ok((values1(cx.zeros(&out.batched(0, 0))?), smallvec![Some(0)]));
        }
        // with the lanes in front of everything, and of the axis named
        let front = |v: &Value, d: usize| cx.move_axis(v, d, 0);
        let (y, at) = match (d[0], d[1]) {
            (Some(l), Some(r)) => {
                let (l, r) = (front(&x[0], l)?, front(&x[1], r)?);
                let r = join(cx, &r, 0, 1 + n.rhs_spec[0])?;
                let (l, op) = match b {
                    1 => {
                        let op = Conv { feature_group_count: f * ax.n, ..self.clone() };
                        (join(cx, &l, 0, 1 + n.lhs_spec[1])?, op)
                    }
                    _ => {
                        let op = Conv { batch_group_count: b * ax.n, ..self.clone() };
                        (join(cx, &l, 0, 1 + n.lhs_spec[0])?, op)
                    }
                };
                (split(cx, &cx.bind1(op, &[l, r])?, n.out_spec[1], ax.n)?, n.out_spec[1])
            }
            (Some(l), None) => {
                let l = front(&x[0], l)?;
                let l = match b {
                    1 => join(cx, &l, 0, 1 + n.lhs_spec[0])?,
                    _ => {
                        // (groups, lanes, batches of a group)
                        let at = n.lhs_spec[0];
                        let l = split(cx, &l, 1 + at, b)?;
                        let l = join(cx, &l, 0, 2 + at)?;
                        let mut shape = Dims::new(l.shape());
                        shape[at] *= shape[at + 1];
                        cx.reshape(&l, &shape.remove(at + 1))?
                    }
                };
                let y = cx.bind1(self.clone(), &[l, x[1].clone()])?;
                (split(cx, &y, n.out_spec[0], ax.n)?, n.out_spec[0])
            }
            (None, Some(r)) => {
                let (r, at) = (front(&x[1], r)?, n.rhs_spec[0]);
                let groups = f.max(b);
                // (groups, lanes, features of a group)
                let r = split(cx, &r, 1 + at, groups)?;
                let r = join(cx, &r, 0, 2 + at)?;
                let mut shape = Dims::new(r.shape());
                shape[at] *= shape[at + 1];
                let r = cx.reshape(&r, &shape.remove(at + 1))?;
                let y = cx.bind1(self.clone(), &[x[0].clone(), r])?;
                let at = n.out_spec[1];
                let y = split(cx, &split(cx, &y, at, groups)?, at + 1, ax.n)?;
                let y = cx.move_axis(&y, at + 1, at)?;
                let mut shape = Dims::new(y.shape());
                shape[at + 1] *= shape[at + 2];
                (cx.reshape(&y, &shape.remove(at + 2))?, at)
            }
            (None, None) => return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])),
        };
        Ok((values1(y), smallvec![Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, d) = (Factors::whole(x, out), &*self.dimension_numbers);
        let (l, r) = (&x[0].shape, &x[1].shape);
        if self.batch_group_count == 1 {
            f.link(l[d.lhs_spec[0]], &[In(0, d.lhs_spec[0]), Out(0, d.out_spec[0])]);
        }
        if self.batch_group_count == 1 && self.feature_group_count == 1 {
            f.link(r[d.rhs_spec[0]], &[In(1, d.rhs_spec[0]), Out(0, d.out_spec[1])]);
            f.fold(l[d.lhs_spec[1]], Monoid::of_sum(out[0].dtype), &[In(0, d.lhs_spec[1]), In(1, d.rhs_spec[1])]);
        }
        let (w, fill) = (self.windows(r), Lit::zero(x[0].dtype));
        for k in 0..self.padding.len() {
            let dims = (d.lhs_spec[2 + k], d.out_spec[2 + k]);
            if w.stays(k) {
                f.link(l[dims.0], &[In(0, dims.0), Out(0, dims.1)]);
            } else if let Some(w) = w.parted(k, dims, fill) {
                f.keep(&[In(0, dims.0), Out(0, dims.1)]);
                // by positions of the result, and by those of a kernel that is cut itself
                let (stride, span) = (self.rhs_dilation[k], out[0].shape[dims.1].saturating_sub(1) * w.stride + 1);
                let by_kernel = Windowed { of: In(1, d.rhs_spec[2 + k]), stride, span, ..w.clone() };
                f.windows.extend([w, by_kernel]);
            }
        }
        f
    }
    fn around(&self, padding: &[(usize, (i64, i64))]) -> Option<Op> {
        let mut op = self.clone();
        let space = &self.dimension_numbers.lhs_spec[2..];
        for (d, around) in padding {
            space.iter().zip(&mut op.padding).filter(|(s, _)| *s == d).for_each(|(_, p)| *p = *around);
        }
        Some(op.into())
    }
    fn wider(&self, results: Dtype) -> Option<Op> {
        Some(Conv { preferred_element_type: Some(results), ..self.clone() }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let d = &*self.dimension_numbers;
        if !t.specs[1].is_whole() || !t.specs[0].dims[d.lhs_spec[1]].is_empty() {
            t.refuse(|| {
                "Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`".to_string()
            })?;
            return t.by_factors(&self.factors(t.x, t.out));
        }
        t.varying("conv_general_dilated")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let n = &*self.dimension_numbers;
        let result = physical(&out[0]).dtype;
        // sums are taken at least in 32 bits
        let acc = match (b.parts(x[0]).map_or(x[0], |p| p.0), result) {
            (v, r) if b.dtype(v) == DType::F64 || r == DType::F64 => DType::F64,
            (v, r) if b.dtype(v).is_float() || r.is_float() => DType::F32,
            (_, DType::Bool) => DType::I32,
            (_, r) => r.lane(),
        };
        let one = |b: &mut Graph, l: TensorId, r: TensorId| {
            let (mut l, r) = (b.convert(l, acc), b.convert(r, acc));
            let mut padding = self.padding.to_vec();
            let shape = b.shape(l);
            let window = b.shape(r).pick(&n.rhs_spec[2..]);
            // one channel along one axis: padded, the array is its own patches
            let plain = window.len() == 1 && shape[n.lhs_spec[1]] == 1;
            if !plain && self.has_phases() && !shape.contains(&0) && !window.contains(&0) {
                let low = padding.iter().map(|p| p.0).collect();
                return self.by_phases(b, l, r, low, out[0].shape.clone(), 0);
            }
            if plain || self.lhs_dilation.iter().any(|d| *d > 1) {
                let (mut lo, mut hi, mut holes) = (vec![0; shape.len()], vec![0; shape.len()], vec![0; shape.len()]);
                for (k, p) in padding.iter_mut().enumerate() {
                    let a = n.lhs_spec[2 + k];
                    ((lo[a], hi[a]), holes[a]) = (std::mem::take(p), self.lhs_dilation[k] as i64 - 1);
                }
                let zero = b.constant(Scalar::zero(acc), Dims::default());
                l = b.pad(l, zero, &lo, &hi, &holes);
            }
            b.convolution(&self.without_holes(padding.iter().map(|p| p.0).collect()), l, r, &out[0].shape)
        };
        let y = match (b.parts(x[0]), b.parts(x[1])) {
            (Some((lr, li)), Some((rr, ri))) => {
                let (p, q, s, t) = (one(b, lr, rr), one(b, li, ri), one(b, lr, ri), one(b, li, rr));
                let (re, im) = (b.bin(Bin::Sub, p, q), b.bin(Bin::Add, s, t));
                b.pair(re, im)
            }
            _ => one(b, x[0], x[1]),
        };
        let y = match b.parts(y) {
            Some(_) => y,
            // of booleans, counted as complex numbers
            None if out[0].dtype.is_complex() => {
                let y = b.convert(y, result);
                let im = b.constant(Scalar::zero(result), out[0].shape.clone());
                b.pair(y, im)
            }
            None if result == DType::Bool => {
                let zero = b.scalar(y, 0.0);
                b.bin(Bin::Ne, y, zero)
            }
            None => b.convert(y, result),
        };
        Ok(smallvec![y])
    }
}
