//! reduce_sum, prod, max, min, and, or, xor: `out[kept..] = fold of x over axes`. numpy: `sum`, `prod`, ..
//! The order of combination is the waist's.
use super::slice::Slice;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::ops::concatenate::Concatenate;
use crate::ops::pointwise::{Pointwise, Pw};
use crate::param::{Field, Member, Param, ParamList, ParamMap, Params, Show};
use crate::support::{Supports, Within};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::{Dims, Scalar};
use smallvec::smallvec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Monoid {
    Sum,
    Prod,
    Max,
    Min,
    And,
    Or,
    Xor,
}
impl Member for Monoid {
    const ALL: &'static [(Monoid, &'static str)] = &[
        (Monoid::Sum, "reduce_sum"),
        (Monoid::Prod, "reduce_prod"),
        (Monoid::Max, "reduce_max"),
        (Monoid::Min, "reduce_min"),
        (Monoid::And, "reduce_and"),
        (Monoid::Or, "reduce_or"),
        (Monoid::Xor, "reduce_xor"),
    ];
}

impl Monoid {
    /// How terms of sums of this dtype are combined: a sum of booleans is their `or`.
    pub fn of_sum(d: Dtype) -> Monoid {
        if d.is_bool() { Monoid::Or } else { Monoid::Sum }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    pub kind: Monoid,
    pub axes: Dims,
}
impl Params for Reduce {
    fn names() -> Vec<&'static str> {
        Monoid::ALL.iter().map(|m| m.1).collect()
    }
    fn fields(name: &str) -> Vec<Field> {
        let mut v = vec![Field::of::<Dims>("axes", Show::always)];
        if name == Member::name(Monoid::Sum) {
            v.push(Field::none("out_sharding", Show::always));
        }
        v
    }
    fn name(&self) -> &'static str {
        Member::name(self.kind)
    }
    fn params(&self) -> ParamList {
        let mut v = vec![("axes", Param::ints(&self.axes), Show::always)];
        if self.kind == Monoid::Sum {
            v.push(("out_sharding", Param::None, Show::always));
        }
        v
    }
    fn from_params(name: &str, p: &mut ParamMap) -> Res<Reduce> {
        p.remove("out_sharding");
        Ok(Reduce { kind: Member::from_name(name)?, axes: p.take("axes")? })
    }
}

/// The dtype of counts and sums of elements of this one: float32 for floats of fewer bits.
pub(super) fn counting(d: Dtype) -> Dtype {
    if d.is_float() && d.size() < 4 { Dtype::F32 } else { d }
}
impl Reduce {
    fn kept(&self, rank: usize) -> Dims {
        (0..rank).filter(|k| !self.axes.contains(k)).collect()
    }
    /// The operand's shape with size 1 along the reduced axes.
    fn keepdims(&self, shape: &[usize]) -> Dims {
        (0..shape.len()).map(|k| if self.axes.contains(&k) { 1 } else { shape[k] }).collect()
    }
    /// The tangent of max or min: the mean of the tangents at the elements that attain it.
    fn extremum(&self, cx: &dyn Cx, x: &Value, y: &Value, t: &Value) -> Res<Value> {
        let yk = cx.reshape(y, &self.keepdims(x.shape()))?;
        let attains = cx.pw2(Pw::Eq, x, &yk)?;
        // the count and the sum of narrow floats may leave their range where the mean does not
        let wide = counting(x.dtype());
        let at = cx.convert(&attains, wide)?;
        let count = cx.reduce(Monoid::Sum, &at, self.axes.clone())?;
        // a selection, so that infinite tangents of the other elements do not matter
        let there = cx.convert(&cx.select(&attains, &lit(t.dtype(), 0.0), t)?, wide)?;
        let sum = cx.reduce(Monoid::Sum, &there, self.axes.clone())?;
        cx.convert(&cx.div(&sum, &count)?, t.dtype())
    }
    /// The tangent of a product, by halves, so that zeros among the factors do no harm: (a b)' = a' b + a b'.
    fn product(&self, cx: &dyn Cx, x: &Value, t: &Value) -> Res<Value> {
        let kept = self.kept(x.rank());
        let perm: Dims = self.axes.iter().chain(kept.iter()).copied().collect();
        let shape = Dims::new(x.shape());
        let mut m: usize = self.axes.iter().map(|a| shape[*a]).product();
        let rest = shape.pick(&kept);
        let flat = |v: &Value| cx.reshape(&cx.transpose(v, perm.clone())?, &rest.insert(0, m));
        let (mut x, mut t) = (flat(x)?, flat(t)?);
        if m == 0 {
            return cx.zeros(&Aval::of(x.dtype(), rest));
        }
        while m > 1 {
            let h = m / 2;
            let part = |v: &Value, from: usize, to: usize| {
                let zeros: Dims = rest.iter().map(|_| 0).collect();
                cx.bind1(
                    Slice { limit_indices: rest.insert(0, to), start_indices: zeros.insert(0, from), strides: None },
                    std::slice::from_ref(v),
                )
            };
            let (a, b, da, db) = (part(&x, 0, h)?, part(&x, h, 2 * h)?, part(&t, 0, h)?, part(&t, h, 2 * h)?);
            let dy = cx.pw2(Pw::AddAny, &cx.mul(&da, &b)?, &cx.mul(&a, &db)?)?;
            let y = cx.mul(&a, &b)?;
            let odd = m % 2 == 1;
            let join = |v: Value, old: &Value| match odd {
                true => cx.bind1(Concatenate { dimension: 0 }, &[v, part(old, m - 1, m)?]),
                false => Ok(v),
            };
            (x, t) = (join(y, &x)?, join(dy, &t)?);
            m = h + odd as usize;
        }
        cx.reshape(&t, &rest)
    }
}
impl Rules for Reduce {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let ([a], name) = (x, self.name()) else {
            return type_err(format!("{} takes 1 operand, got {}", self.name(), x.len()));
        };
        let (ok, accepted) = match self.kind {
            Monoid::Sum | Monoid::Prod => {
                (a.dtype.is_int() || a.dtype.is_inexact(), " Accepted dtypes are subtypes of number.")
            }
            Monoid::Max | Monoid::Min => (!a.dtype.is_key(), ""),
            _ if a.dtype.is_inexact() => {
                return type_err(format!(
                    "logical reduction requires operand dtype bool or int, got {}.",
                    a.dtype.long()
                ));
            }
            _ => (a.dtype.is_int() || a.dtype.is_bool(), ""),
        };
        if !ok || a.tape > 0 {
            return type_err(format!("{name} does not accept dtype {}.{accepted}", a.dtype.long()));
        }
        if self.axes.iter().any(|k| *k >= a.rank()) {
            return value_err(format!("reduction axes {} contains out-of-bounds indices for {}.", self.axes, a.long()));
        }
        if (1..self.axes.len()).any(|i| self.axes[..i].contains(&self.axes[i])) {
            return value_err(format!("duplicate value in 'axes' of reduction: {}", self.axes));
        }
        Ok(smallvec![a.with_shape(a.shape.pick(&self.kept(a.rank())))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let op: Op = self.clone().into();
        let y = cx.bind1(op.clone(), x)?;
        let Some(t) = &dx[0] else { return Ok((values1(y), smallvec![None])) };
        let dy = match self.kind {
            Monoid::Sum => cx.bind1(op, std::slice::from_ref(t))?,
            Monoid::Prod => self.product(cx, &x[0], t)?,
            // of no elements, a constant
            Monoid::Max | Monoid::Min if self.axes.iter().any(|k| x[0].shape()[*k] == 0) => {
                return Ok((values1(y), smallvec![None]));
            }
            Monoid::Max | Monoid::Min => self.extremum(cx, &x[0], &y, t)?,
            Monoid::And | Monoid::Or | Monoid::Xor => return Ok((values1(y), smallvec![None])),
        };
        Ok((values1(y), smallvec![Some(dy)]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if self.kind != Monoid::Sum {
            return not_linear(self.name());
        }
        let a = x[0].aval();
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.broadcast(ct, &a.shape, &self.kept(a.rank()))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let axes: Dims = self.axes.iter().map(|&a| a + (a >= d) as usize).collect();
        let out = d - axes.iter().filter(|a| **a < d).count();
        Ok((cx.bind(&Reduce { kind: self.kind, axes }.into(), x)?, smallvec![Some(out)]))
    }
    /// Supports along the axes of a sum are applied before it; the others become those of the
    /// result.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let (Monoid::Sum, Some(s)) = (self.kind, &s[0]) else { return Ok(None) };
        let (stays, applied) = s.split_by(&self.axes);
        let y = cx.bind1(self.clone(), &[applied.apply(cx, &x[0])?])?;
        let stays = stays.moved(&|k| k - self.axes.iter().filter(|a| **a < k).count());
        let any = applied.any_along(&self.axes, &Dims::new(x[0].shape()));
        Ok(Some((values1(y), smallvec![Some(stays.and(&any))])))
    }
    fn sums(&self) -> Sums {
        if self.kind == Monoid::Sum { Sums::Moved } else { Sums::Refused }
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let (mut f, a) = (Factors::whole(x, out), &x[0]);
        for (d, k) in self.kept(a.rank()).iter().enumerate() {
            f.link(a.shape[*k], &[In(0, *k), Out(0, d)]);
        }
        // complex numbers have no order that devices share
        if !a.dtype.is_complex() || self.kind == Monoid::Sum {
            self.axes.iter().for_each(|k| f.fold(a.shape[*k], self.kind, &[In(0, *k)]));
        }
        f
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let kind = match self.kind {
            Monoid::Sum => ferrax_kernel::ReduceKind::Sum,
            Monoid::Prod => ferrax_kernel::ReduceKind::Prod,
            Monoid::Max => ferrax_kernel::ReduceKind::Max,
            Monoid::Min => ferrax_kernel::ReduceKind::Min,
            Monoid::And => ferrax_kernel::ReduceKind::And,
            Monoid::Or => ferrax_kernel::ReduceKind::Or,
            Monoid::Xor => ferrax_kernel::ReduceKind::Xor,
        };
        match (b.parts(x[0]), self.kind) {
            (None, _) => Ok(smallvec![b.reduce(kind, x[0], &self.axes)]),
            (Some((re, im)), Monoid::Sum) => {
                let (re, im) = (b.reduce(kind, re, &self.axes), b.reduce(kind, im, &self.axes));
                Ok(smallvec![b.pair(re, im)])
            }
            (Some(_), Monoid::Prod) => self.halves(b, x[0], &out[0], Pw::Mul),
            (Some(_), Monoid::Max) => self.halves(b, x[0], &out[0], Pw::Max),
            (Some(_), Monoid::Min) => self.halves(b, x[0], &out[0], Pw::Min),
            (Some(_), _) => type_err(format!("{} does not accept complex numbers", self.name())),
        }
    }
}
impl Reduce {
    /// For pairs, whose parts cannot be reduced separately: combines one half with the other, until
    /// one element is left.
    fn halves(&self, b: &mut Graph, x: TensorId, out: &Aval, f: Pw) -> Res<TensorIds> {
        let kept = self.kept(b.rank(x));
        let shape = b.shape(x).pick(&kept);
        let mut n: usize = self.axes.iter().map(|k| b.shape(x)[*k]).product();
        let perm: Vec<usize> = kept.iter().chain(self.axes.iter()).copied().collect();
        let x = b.transpose(x, &perm);
        let last = shape.len();
        let mut x = b.reshape(x, shape.insert(last, n));
        let part = |b: &mut Graph, x: TensorId, from: usize, n: usize| {
            let mut start = vec![0; last];
            start.push(from);
            b.slice(x, &start, &vec![1; last + 1], shape.insert(last, n))
        };
        while n > 1 {
            let (h, odd) = (n / 2, n % 2);
            let (p, q) = (part(b, x, 0, h), part(b, x, h, h));
            let y = Pointwise { f, y: 0 }.lower(b, &[p, q], &[out.with_shape(shape.insert(last, h))])?[0];
            x = match odd {
                0 => y,
                _ => {
                    let rest = part(b, x, n - 1, 1);
                    b.concatenate(&[y, rest], last)
                }
            };
            n = h + odd;
        }
        if n == 0 {
            let (re, _) = b.parts(x).unwrap_or((x, x));
            let d = b.dtype(re);
            let start = match f {
                Pw::Mul => Scalar::one(d),
                Pw::Max => Scalar::from_f64(d, f64::NEG_INFINITY),
                _ => Scalar::from_f64(d, f64::INFINITY),
            };
            let (re, im) = (b.constant(start, shape.clone()), b.constant(Scalar::zero(d), shape));
            return Ok(smallvec![b.pair(re, im)]);
        }
        Ok(smallvec![b.reshape(x, shape)])
    }
}
/// The value that changes nothing when folded in.
pub fn identity(kind: Monoid, d: Dtype) -> Value {
    let extreme = |i: i64| match d.num() {
        // the least there is, where there is no inf
        Some(n) if n.is_float() => Value::Lit(if i < 0 { n.lowest() } else { n.highest() }.into()),
        Some(n) if d.is_unsigned() => {
            crate::cx::int(d, if i > 0 { -1i64 } else { 0 } & (u64::MAX >> (64 - n.bits())) as i64)
        }
        Some(n) if n.is_int() => {
            crate::cx::int(d, if i > 0 { (u64::MAX >> (65 - n.bits())) as i64 } else { -1i64 << (n.bits() - 1) })
        }
        _ => crate::cx::int(d, (i > 0) as i64),
    };
    match kind {
        Monoid::Sum | Monoid::Xor | Monoid::Or => lit(d, 0.0),
        Monoid::Prod => lit(d, 1.0),
        Monoid::Max => extreme(-1),
        Monoid::Min => extreme(1),
        Monoid::And => crate::cx::int(d, -1),
    }
}
