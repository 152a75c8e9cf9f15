//! Sorts along a dimension that is cut. Each device sorts its part. Samples of all parts tell nearly, and the elements around them exactly, how many
//! elements of each part belong to each part of the result. Devices exchange those, and sort what they have got.
//!
//! ```text
//! [5 1 9 | 2 8 3]    sorted [1 5 9 | 2 3 8]; exchanged [1 2 3 | 5 9 8], since of the least three the first has one; sorted [1 2 3 | 5 8 9]
//! ```
//!
//! INVARIANT: of equal elements those of a device before come first: the result is that of one device. All devices compute the same numbers of
//! elements, and so go through as many rounds of the exchange.
use super::Here;
use crate::cx::{Cx, int};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::ops::collective::AllToAll;
use crate::ops::concatenate::Concatenate;
use crate::ops::cumulative::Cumulative;
use crate::ops::gather::take_along;
use crate::ops::iota::Iota;
use crate::ops::loops::{Loop, Trip};
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::ops::slice::Slice;
use crate::ops::sort::Sort;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::CumulativeKind;
use smallvec::smallvec;

/// Lines of elements, of each of which a device has one of `parts` parts of `part` elements: operands `[lines, part]`, the keys first.
struct SortedLines<'a, 'b> {
    here: &'a Here<'b>,
    axes: &'a [u8],
    lines: usize,
    part: usize,
    parts: usize,
    num_keys: usize,
}
/// The distance between samples with which least is sent to find the parts' ends; `None` where that is more than half of all.
fn distance(part: usize, parts: usize) -> Option<usize> {
    let all = part.checked_mul(parts).filter(|n| i32::try_from(*n).is_ok())?;
    // n / t samples, and as many elements around each of the ends in each part
    let windows = (parts * (parts - 1)).checked_mul(parts + 2)?;
    let t = ((all as f64 / windows as f64).sqrt() as usize).clamp(1, part);
    (all / t + windows.saturating_mul(t) <= all / 2).then_some(t)
}

impl Here<'_> {
    /// This device's parts of the sorted operands; `None` where they are so small that they are better sorted whole.
    pub fn sorted(&self, op: &Sort, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        let (cx, d, last) = (self.cx, op.dimension, x[0].rank() - 1);
        let (part, parts) = (x[0].shape()[d], self.grid.parts(axes));
        let lines = x[0].shape().iter().product::<usize>() / part.max(1);
        let Some(t) = distance(part, parts).filter(|_| lines > 0 && x.iter().all(|v| !v.dtype().is_key())) else {
            return Ok(None);
        };
        let l = SortedLines { here: self, axes, lines, part, parts, num_keys: op.num_keys };
        let moved = Dims::new(x[0].shape()).remove(d).insert(last, part);
        let line = |v: &Value| cx.reshape(&cx.move_axis(v, d, last)?, &Dims::new(&[lines, part]));
        let x: Values = x.iter().map(line).collect::<Res<_>>()?;
        let own = l.sort(&x)?;
        let ends = l.ends(&own, t)?;
        let y = l.sort(&l.exchanged(&own, &ends)?)?;
        let back = |v: &Value| cx.move_axis(&cx.reshape(v, &moved)?, last, d);
        y.iter().map(back).collect::<Res<Values>>().map(Some)
    }
}
impl SortedLines<'_, '_> {
    fn cx(&self) -> &dyn Cx {
        self.here.cx
    }
    fn sort(&self, x: &[Value]) -> Res<Values> {
        self.cx().bind(&Sort { dimension: 1, is_stable: true, num_keys: self.num_keys }.into(), x)
    }
    /// Of elements of all devices in turn, `[rows, parts * n]`, the devices that they are of, in their order.
    fn devices(&self, keys: Values, n: usize) -> Res<Value> {
        let shape = Dims::new(keys[0].shape());
        let mut x = keys;
        x.push(self.cx().div(&count(self.cx(), &shape, 1)?, &int(Dtype::I32, n as i64))?);
        let mut y = self.sort(&x)?;
        Ok(y.remove(self.num_keys))
    }
    /// Of devices `[lines, ends, n]`, how many of the first `limit[lines, ends]` are each: `[lines, ends, parts]`.
    fn among_first(&self, devices: &Value, limit: &Value) -> Res<Value> {
        let (cx, s) = (self.cx(), devices.shape());
        let shape = Dims::new(&[s[0], s[1], self.parts, s[2]]);
        let is = cx.pw2(Pw::Eq, &cx.broadcast(devices, &shape, &[0, 1, 3])?, &count(cx, &shape, 2)?)?;
        let first = cx.pw2(Pw::Lt, &count(cx, &shape, 3)?, &cx.broadcast(limit, &shape, &[0, 1])?)?;
        let both = cx.convert(&cx.pw2(Pw::And, &is, &first)?, Dtype::I32)?;
        cx.reduce(Monoid::Sum, &both, Dims::new(&[3]))
    }
    /// How many elements of each part come before each part of the result: `[lines, parts + 1, parts]`.
    fn ends(&self, own: &[Value], t: usize) -> Res<Value> {
        let (cx, parts, part) = (self.cx(), self.parts, self.part);
        let (lines, inner, samples) = (self.lines, parts - 1, part / t);
        let keys = &own[..self.num_keys];
        // every t-th: the last of t elements
        let sample = |v: &Value| {
            let op = Slice {
                start_indices: Dims::new(&[0, t - 1]),
                limit_indices: Dims::new(&[lines, samples * t]),
                strides: Some(Dims::new(&[1, t])),
            };
            self.here.gather(&cx.bind1(op, std::slice::from_ref(v))?, 1, self.axes, true)
        };
        let devices = self.devices(keys.iter().map(sample).collect::<Res<_>>()?, samples)?;
        // of an end after r elements, the blocks before sample r / t - parts are before it, and it is in the parts + 2 next ones
        let shape = Dims::new(&[lines, inner]);
        let wanted = self.plus(&cx.mul(&count(cx, &shape, 1)?, &int(Dtype::I32, part as i64))?, part as i64)?;
        let certain = self.plus(&cx.div(&wanted, &int(Dtype::I32, t as i64))?, -(parts as i64))?;
        let devices = cx.broadcast(&devices, &Dims::new(&[lines, inner, parts * samples]), &[0, 2])?;
        let blocks = self.among_first(&devices, &cx.pw2(Pw::Max, &certain, &cx.zeros(&certain.aval())?)?)?;
        let width = ((parts + 2) * t).min(part);
        let start = self.at_most(&cx.mul(&blocks, &int(Dtype::I32, t as i64))?, part - width)?;
        let places = Dims::new(&[lines, inner, width]);
        let mine = cx.stretch(&self.here.rows(&start, 2, &self.here.number(self.axes)?, 1)?, &places)?;
        let places = cx.reshape(&cx.add(&mine, &count(cx, &places, 2)?)?, &Dims::new(&[lines, inner * width]))?;
        let window = |v: &Value| {
            let near = cx.reshape(&take_along(cx, v, &places, 1)?, &Dims::new(&[lines * inner, width]))?;
            self.here.gather(&near, 1, self.axes, true)
        };
        let devices = self.devices(keys.iter().map(window).collect::<Res<_>>()?, width)?;
        let devices = cx.reshape(&devices, &Dims::new(&[lines, inner, parts * width]))?;
        let left = cx.sub(&wanted, &cx.reduce(Monoid::Sum, &start, Dims::new(&[2]))?)?;
        let ends = cx.add(&start, &self.among_first(&devices, &left)?)?;
        let edge = |n: usize| cx.broadcast(&int(Dtype::I32, n as i64), &Dims::new(&[lines, 1, parts]), &[]);
        cx.bind1(Concatenate { dimension: 1 }, &[edge(0)?, ends, edge(part)?])
    }
    /// The elements of all parts that belong to this device's part of the result, those of one device after those of another.
    fn exchanged(&self, own: &[Value], ends: &Value) -> Res<Values> {
        let (cx, parts, part, me) = (self.cx(), self.parts, self.part, self.here.number(self.axes)?);
        let (lines, line) = (self.lines, Dims::new(&[self.lines, part]));
        let of_part = |k: &Value| cx.reshape(&self.here.rows(ends, 1, k, 1)?, &Dims::new(&[lines, parts]));
        let begin = of_part(&me)?;
        let taken = cx.sub(&of_part(&self.plus(&me, 1)?)?, &begin)?;
        let kind = CumulativeKind::Sum;
        let until = cx.bind1(Cumulative { kind, axis: 1, reverse: false }, std::slice::from_ref(&taken))?;
        // of each place of the result, the device, and which of its elements
        let all = Dims::new(&[lines, part, parts]);
        let after = cx.pw2(Pw::Le, &cx.broadcast(&until, &all, &[0, 2])?, &count(cx, &all, 1)?)?;
        let device = cx.reduce(Monoid::Sum, &cx.convert(&after, Dtype::I32)?, Dims::new(&[2]))?;
        let device = self.at_most(&device, parts - 1)?;
        let first = take_along(cx, &cx.sub(&until, &taken)?, &device, 1)?;
        let number = cx.sub(&count(cx, &line, 1)?, &first)?;
        let is_own = cx.pw2(Pw::Eq, &device, &cx.stretch(&me, &line)?)?;
        let at = cx.add(&number, &cx.stretch(&self.here.rows(&begin, 1, &me, 1)?, &line)?)?;
        let at = cx.select(&is_own, &cx.zeros(&at.aval())?, &at)?;
        let kept = own.iter().map(|v| take_along(cx, v, &at, 1)).collect::<Res<Values>>()?;
        // a little more than each sends to each where elements lie at random
        let chunk = (part / parts + part / parts / 4 + 8).min(part);
        let whole = Dims::new(&[lines, parts, parts]);
        let part_of = |first: usize| {
            let (start_indices, limit_indices) = (Dims::new(&[0, first, 0]), Dims::new(&[lines, first + parts, parts]));
            cx.bind1(Slice { start_indices, limit_indices, strides: None }, std::slice::from_ref(ends))
        };
        let sent = part_of(0)?;
        let stays = cx.pw2(Pw::Eq, &count(cx, &whole, 1)?, &count(cx, &whole, 2)?)?;
        let all = cx.select(&stays, &cx.sub(&part_of(1)?, &sent)?, &cx.zeros(&sent.aval())?)?;
        let most = cx.reduce(Monoid::Max, &all, Dims::new(&[0, 1, 2]))?;
        let first = self.here.rows(&sent, 2, &me, 1)?;
        let round = |cx: &dyn Cx, r: &Value, own: &Value, kept: &Value| -> Res<Value> {
            let done = cx.mul(r, &int(Dtype::I32, chunk as i64))?;
            let shape = Dims::new(&[lines, parts, chunk]);
            let places = cx.add(&cx.stretch(&first, &shape)?, &cx.add(&count(cx, &shape, 2)?, &done)?)?;
            let places = cx.pw2(Pw::Min, &places, &cx.stretch(&int(Dtype::I32, part as i64 - 1), &shape)?)?;
            let flat = Dims::new(&[lines, parts * chunk]);
            let got = self.sent(cx, &take_along(cx, own, &cx.reshape(&places, &flat)?, 1)?)?;
            let k = cx.sub(&number, &done)?;
            let inside = cx.pw2(Pw::And, &within(cx, &k, chunk)?, &cx.pw(Pw::Not, std::slice::from_ref(&is_own))?)?;
            let from = cx.add(&cx.mul(&device, &int(Dtype::I32, chunk as i64))?, &k)?;
            let from = cx.select(&inside, &cx.zeros(&from.aval())?, &from)?;
            cx.select(&inside, kept, &take_along(cx, &got, &from, 1)?)
        };
        self.rounds(own, kept, (&most, chunk), &round)
    }
    /// As many rounds as it takes to send `most` elements in chunks.
    fn rounds(
        &self,
        own: &[Value],
        kept: Values,
        (most, chunk): (&Value, usize),
        round: &dyn Fn(&dyn Cx, &Value, &Value, &Value) -> Res<Value>,
    ) -> Res<Values> {
        let cx = self.cx();
        let state: Vec<Value> = std::iter::once(int(Dtype::I32, 0)).chain(kept).collect();
        let types: Vec<_> = state.iter().map(Value::aval).collect();
        let (body, held) = cx.recur().stage(&types, &|cx, s| {
            let mut next: Values = smallvec![cx.add(&s[0], &int(Dtype::I32, 1))?];
            for (own, kept) in own.iter().zip(&s[1..]) {
                next.push(round(cx, &s[0], own, kept)?);
            }
            Ok(next)
        })?;
        let (cond, read) = cx.recur().stage(&types, &|cx, s| {
            let done = cx.mul(&s[0], &int(Dtype::I32, chunk as i64))?;
            Ok(smallvec![cx.pw2(Pw::Lt, &done, most)?])
        })?;
        let op = Loop::new(Trip::While { cond, n_cond: read.len(), counted: false }, held.len(), types.len(), body);
        let y = cx.bind(&op.into(), &[&read[..], &held, &state].concat())?;
        Ok(y.into_iter().skip(1).collect())
    }
    /// A chunk for each device, one after another, to the chunk of each.
    fn sent(&self, cx: &dyn Cx, v: &Value) -> Res<Value> {
        let sizes = self.axes.iter().map(|a| self.here.grid.axis_size(*a));
        let shape: Dims = std::iter::once(self.lines).chain(sizes).chain([v.shape()[1] / self.parts]).collect();
        let mut y = cx.reshape(v, &shape)?;
        for (k, a) in self.axes.iter().enumerate() {
            let op = AllToAll {
                axis_index_groups: None,
                axis_name: self.here.grid.name(*a).clone(),
                axis_size: self.here.grid.axis_size(*a),
                concat_axis: k + 1,
                split_axis: k + 1,
                tiled: true,
            };
            y = cx.bind1(op, &[y])?;
        }
        cx.reshape(&y, &Dims::new(v.shape()))
    }
    fn plus(&self, v: &Value, n: i64) -> Res<Value> {
        self.cx().add(v, &int(Dtype::I32, n))
    }
    fn at_most(&self, v: &Value, n: usize) -> Res<Value> {
        self.cx().pw2(Pw::Min, v, &self.cx().stretch(&int(Dtype::I32, n as i64), &Dims::new(v.shape()))?)
    }
}
/// The position along an axis.
fn count(cx: &dyn Cx, shape: &Dims, dimension: usize) -> Res<Value> {
    cx.bind1(Iota { dimension, dtype: Dtype::I32, shape: shape.clone().into() }, &[])
}
/// Whether numbers are at least 0 and less than `n`.
fn within(cx: &dyn Cx, k: &Value, n: usize) -> Res<Value> {
    let number = |n: usize| cx.stretch(&int(Dtype::I32, n as i64), &Dims::new(k.shape()));
    cx.pw2(Pw::And, &cx.pw2(Pw::Ge, k, &number(0)?)?, &cx.pw2(Pw::Lt, k, &number(n)?)?)
}
