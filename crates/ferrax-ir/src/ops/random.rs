//! PRNG keys and the bits they give: random_seed, random_wrap, random_unwrap, random_bits, random_split, random_fold_in, random_clone.
//! Bits equal JAX's; the ciphers and threefry's two counter layouts are in `ferrax-prng`, what keys of four words (rbg, unsafe_rbg) mean in
//! `random/rbg.rs`.
//!
//! ```text
//! random_bits:    out[k.., i..] = bits of key[k..], element number i        random_split: out[k.., i..] = key number i below key[k..]
//! ```
use super::pointwise::align;
use super::rng::{Expr, build_all, leaf, over};
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::dtype::{Dtype, KeyImpl};
use crate::error::{Error, Res, not_linear, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::{Member, Param, ParamValue};
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::{Bin, DType, Dims, Scalar};
use ferrax_prng::{Bits, Layout, Width, Word};
use smallvec::smallvec;

mod rbg;

impl ParamValue for KeyImpl {
    fn words() -> String {
        "the name of a key implementation".into()
    }
    fn to_param(&self) -> Param {
        Param::Str(self.tag().into())
    }
    fn from_param(p: &Param) -> Option<KeyImpl> {
        match p {
            Param::Str(s) => KeyImpl::ALL.into_iter().find(|k| **s == *k.name() || **s == *k.tag()),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyCast {
    Seed,
    Wrap,
}
impl Member for KeyCast {
    const ALL: &'static [(KeyCast, &'static str)] = &[(KeyCast::Seed, "random_seed"), (KeyCast::Wrap, "random_wrap")];
}
primitive! {
    /// Keys from integers (seed) or from raw words `u32[.., 2]` (wrap).
    pub struct RandomKey = kind: KeyCast {
        r#impl: KeyImpl,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyMap {
    Unwrap,
    Clone,
}
impl Member for KeyMap {
    const ALL: &'static [(KeyMap, &'static str)] =
        &[(KeyMap::Unwrap, "random_unwrap"), (KeyMap::Clone, "random_clone")];
}
primitive! {
    /// The raw words of keys, or the keys themselves.
    pub struct RandomMap = kind: KeyMap {}
}

primitive! {
    pub struct RandomBits = "random_bits" {
        bit_width: usize,
        /// The original counter layout instead of the partitionable one.
        original: bool = nonempty,
        shape: Dims,
    }
}
primitive! {
    pub struct RandomSplit = "random_split" {
        original: bool = nonempty,
        shape: Dims,
    }
}
primitive! {
    pub struct RandomFoldIn = "random_fold_in" {}
}
fn layout(original: bool) -> Layout {
    if original { Layout::Original } else { Layout::Partitionable }
}
fn key_operand<'a>(name: &str, x: &'a [Aval]) -> Res<&'a Aval> {
    match x.first() {
        Some(a) if a.dtype.is_key() => Ok(a),
        Some(a) => Err(Error::type_error(format!("{name} requires an array of keys, got {}", a.long()))),
        None => Err(Error::type_error(format!("{name} takes an array of keys"))),
    }
}
fn implementation(a: &Aval) -> KeyImpl {
    if let Dtype::Key(k) = a.dtype { k } else { KeyImpl::Fry }
}
/// Of keys and data: one shape, or one of them a scalar; of one rank, sizes of 1 repeat.
fn folded_shape(keys: &Dims, data: &Dims) -> Res<Dims> {
    let one_rank = keys.len() == data.len();
    match (keys.len(), data.len()) {
        (0, _) => Ok(data.clone()),
        (_, 0) => Ok(keys.clone()),
        _ if one_rank && keys.iter().zip(data.iter()).all(|(a, b)| a == b || *a == 1 || *b == 1) => {
            Ok(keys.iter().zip(data.iter()).map(|(a, b)| if *a == 1 { *b } else { *a }).collect())
        }
        _ => type_err(format!("random_fold_in got incompatible shapes: keys {keys}, data {data}")),
    }
}
/// One operand, batched at any axis; results have it in front.
fn batch_front(op: &Op, cx: &dyn Cx, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
    let v = cx.to_front(&x[0], d[0])?;
    Ok((cx.bind(op, &[v])?, smallvec![d[0].map(|_| 0)]))
}

fn parts(g: &Graph, x: TensorId) -> Res<(TensorId, TensorId)> {
    g.parts(x).ok_or_else(|| Error::type_error("an array of keys is expected"))
}
/// Keys repeated along trailing axes, and the number of each element along those, as (high, low) words.
fn numbered(g: &mut Graph, key: TensorId, shape: &Dims) -> Res<([Expr; 2], [Expr; 2], Dims)> {
    let (k0, k1) = parts(g, key)?;
    let lead = g.shape(k0);
    let all = lead.concat(shape);
    let dims: Dims = (0..lead.len()).collect();
    let key = [k0, k1].map(|k| leaf(g.broadcast(k, all.clone(), &dims)));
    let n = shape.size();
    let tail: Dims = (lead.len()..all.len()).collect();
    let place = |g: &mut Graph, i: TensorId| {
        let i = g.reshape(i, shape.clone());
        leaf(g.broadcast(i, all.clone(), &tail))
    };
    let index = if n as u64 <= 1 << 32 {
        let i = g.iota(DType::U32, Dims::new(&[n]), 0);
        [Expr::constant(0), place(g, i)]
    } else {
        let i = g.iota(DType::U64, Dims::new(&[n]), 0);
        let by = g.constant(Scalar::from_i64(DType::U64, 32), Dims::default());
        let hi = g.bin(Bin::ShrLogical, i, by);
        let (hi, lo) = (g.convert(hi, DType::U32), g.convert(i, DType::U32));
        [place(g, hi), place(g, lo)]
    };
    Ok((key, index, all))
}

impl Rules for RandomKey {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err("random keys are made of one operand") };
        let key = Dtype::Key(self.r#impl);
        match self.kind {
            KeyCast::Seed if a.dtype.is_int() => Ok(smallvec![Aval::of(key, a.shape.clone())]),
            KeyCast::Seed => type_err(format!("PRNG key seed must be an integer; got {}", a.long())),
            KeyCast::Wrap if a.dtype == Dtype::U32 && a.shape.last() == Some(&self.r#impl.words()) => {
                Ok(smallvec![Aval::of(key, a.shape.remove(a.rank() - 1))])
            }
            KeyCast::Wrap => type_err(format!(
                "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32 and a trailing axis of {}; got {}",
                self.r#impl.words(),
                a.long()
            )),
        }
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear(self.kind.name())
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch_front(&self.clone().into(), cx, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().min(out[0].rank()))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let x = x[0];
        let wide = self.r#impl != KeyImpl::Fry;
        if self.kind == KeyCast::Wrap {
            return Ok(smallvec![if wide { rbg::keys(b, x)? } else { b.unzip(x) }]);
        }
        let hi = if b.dtype(x).size() == 8 {
            let by = b.scalar(x, 32.0);
            let hi = b.bin(Bin::ShrLogical, x, by);
            b.convert(hi, DType::U32)
        } else {
            b.constant(Scalar::u32(0), out[0].shape.clone())
        };
        let lo = b.convert(x, DType::U32);
        if wide {
            // both halves are the seed's two words
            let (hi, lo) = (b.convert(hi, DType::U64), b.convert(lo, DType::U64));
            let by = b.scalar(lo, 32.0);
            let lo = b.bin(Bin::Shl, lo, by);
            let half = b.bin(Bin::Or, hi, lo);
            return Ok(smallvec![b.pair(half, half)]);
        }
        Ok(smallvec![b.pair(hi, lo)])
    }
}

impl Rules for RandomMap {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = key_operand(self.kind.name(), x)?;
        Ok(smallvec![match self.kind {
            KeyMap::Unwrap => Aval::of(Dtype::U32, a.shape.insert(a.rank(), implementation(a).words())),
            KeyMap::Clone => a.clone(),
        }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear(self.kind.name())
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch_front(&self.clone().into(), cx, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().min(out[0].rank()))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![match self.kind {
            KeyMap::Unwrap if rbg::are(b, x[0]) => rbg::words(b, x[0])?,
            KeyMap::Unwrap => b.take_out(x[0]),
            KeyMap::Clone => x[0],
        }])
    }
}

impl Rules for RandomBits {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = key_operand("random_bits", x)?;
        let dtype = match self.bit_width {
            8 => Dtype::U8,
            16 => Dtype::U16,
            32 => Dtype::U32,
            64 => Dtype::U64,
            w => return type_err(format!("requires 8-, 16-, 32- or 64-bit field width, got {w}")),
        };
        Ok(smallvec![Aval::of(dtype, a.shape.concat(&self.shape))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("random_bits")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch_front(&self.clone().into(), cx, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        if rbg::are(b, x[0]) {
            return Ok(smallvec![rbg::bits(b, x[0], &out[0])?]);
        }
        let width = Width::from_bits(self.bit_width as u32).ok_or_else(|| Error::type_error("no such bit width"))?;
        let draw = Bits::new(layout(self.original), width, self.shape.size() as u64)
            .map_err(|e| Error::value(e.to_string()))?;
        let (key, index, all) = numbered(b, x[0], &self.shape)?;
        let [hi, lo] = build_all(b, &draw.element(key, index), &all);
        let to = physical(&out[0]).dtype;
        let lo = b.convert(lo, to);
        if width != Width::W64 {
            return Ok(smallvec![lo]);
        }
        let hi = b.convert(hi, to);
        let by = b.scalar(hi, 32.0);
        let hi = b.bin(Bin::Shl, hi, by);
        Ok(smallvec![b.bin(Bin::Or, hi, lo)])
    }
}

impl Rules for RandomSplit {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = key_operand("random_split", x)?;
        Ok(smallvec![a.with_shape(a.shape.concat(&self.shape))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("random_split")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch_front(&self.clone().into(), cx, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        if rbg::are(b, x[0]) {
            return Ok(smallvec![rbg::split(b, x[0], implementation(&out[0]), self.original, &self.shape)?]);
        }
        let count =
            u32::try_from(self.shape.size()).map_err(|_| Error::value("more keys than 2**32 - 1 in one split"))?;
        let (key, [_, i], all) = numbered(b, x[0], &self.shape)?;
        let pair = ferrax_prng::split(layout(self.original), key, i, count);
        let [p, q] = build_all(b, &pair, &all);
        Ok(smallvec![b.pair(p, q)])
    }
}

impl Rules for RandomFoldIn {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = key_operand("random_fold_in", x)?;
        let [_, m] = x else { return type_err("random_fold_in takes keys and integers") };
        if m.dtype != Dtype::U32 {
            return type_err(format!("random_fold_in takes u32 data, got {}", m.long()));
        }
        Ok(smallvec![a.with_shape(folded_shape(&a.shape, &m.shape)?)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("random_fold_in")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if x[0].dtype() == Dtype::Key(KeyImpl::UnsafeRbg) {
            // One draw serves all lanes of the data, so the lanes must be known.
            let rank = |i: usize| x[i].rank() - d[i].is_some() as usize;
            let rank = rank(0).max(rank(1));
            let x = [rbg::in_front(cx, &x[0], d[0], rank)?, rbg::in_front(cx, &x[1], d[1], rank)?];
            return Ok((cx.bind(&RandomFoldIn {}.into(), &x)?, smallvec![Some(0)]));
        }
        let (x, at) = align(cx, x, d)?;
        Ok((cx.bind(&RandomFoldIn {}.into(), &x)?, smallvec![Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().min(out[0].rank()))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let shape = &out[0].shape;
        if rbg::are(b, x[0]) {
            return Ok(smallvec![rbg::fold_in(b, x[0], x[1], implementation(&out[0]), shape)?]);
        }
        let (k0, k1) = parts(b, x[0])?;
        let pair = ferrax_prng::fold_in([over(b, k0, shape), over(b, k1, shape)], over(b, x[1], shape));
        let [p, q] = build_all(b, &pair, shape);
        Ok(smallvec![b.pair(p, q)])
    }
}
