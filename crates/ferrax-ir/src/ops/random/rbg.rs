//! Keys of four words: `rbg`, whose bits `rng_bit_generator` draws and whose keys threefry2x32 makes from each half, and `unsafe_rbg`, whose keys
//! are drawn too.
//!
//! ```text
//! bits     rbg, unsafe_rbg   of the first key alone, for all keys at once: rng_bit_generator[shape=k.. i..]
//! split    rbg               each half as threefry's      unsafe_rbg   every tenth block of one draw of the first key, for all
//! fold_in  rbg               each half as threefry's      unsafe_rbg   key ^ the tenth block of the key that the first datum seeds
//! ```
//! INVARIANT: in the graph a key is a pair of 64-bit words, each two of its four, low one first: in memory, the four in order.
use super::{KeyCast, KeyMap, RandomFoldIn, RandomKey, RandomMap, RandomSplit};
use crate::aval::{Aval, Lit};
use crate::cx::{Cx, Dim, bind};
use crate::dtype::{Dtype, KeyImpl};
use crate::error::{Error, Res};
use crate::lower::{Graph, TensorId};
use crate::operators::emit;
use crate::ops::bitcast::Bitcast;
use crate::ops::broadcast::BroadcastInDim;
use crate::ops::meaning::{self, Meaning, f2};
use crate::ops::pointwise::Pw;
use crate::ops::reshape::Reshape;
use crate::ops::rng::{Algorithm, RngBitGenerator};
use crate::ops::slice::Slice;
use crate::ops::stack::Stack;
use crate::ops::transpose::Transpose;
use crate::value::Value;
use ferrax_kernel::{DType, Dims};
use smallvec::smallvec;

/// How many blocks of the generator a new key of `unsafe_rbg` takes.
const STRIDE: usize = 10;

/// Whether these are keys of four words.
pub fn are(b: &Graph, keys: TensorId) -> bool {
    b.parts(keys).is_some_and(|(first, _)| b.dtype(first) == DType::U64)
}
fn one(b: &mut Graph, x: &[TensorId], f: Meaning) -> Res<TensorId> {
    meaning::lower(b, x, f)?.pop().ok_or_else(|| Error::type_error("a composition has a result"))
}
/// `u32[.., 4]` of keys.
pub fn words(b: &mut Graph, keys: TensorId) -> Res<TensorId> {
    let halves = b.take_out(keys);
    let shape = b.shape(halves);
    let shape = shape.remove(shape.len() - 1).concat(&[4]);
    one(b, &[halves], &|x| Ok(smallvec![reshaped(&emit(Bitcast { new_dtype: Dtype::U32 }, x), &shape)]))
}
/// Keys of `u32[.., 4]`.
pub fn keys(b: &mut Graph, words: TensorId) -> Res<TensorId> {
    let shape = b.shape(words);
    let shape = shape.remove(shape.len() - 1).concat(&[2, 2]);
    let halves =
        one(b, &[words], &|x| Ok(smallvec![emit(Bitcast { new_dtype: Dtype::U64 }, &[reshaped(&x[0], &shape)])]))?;
    Ok(b.unzip(halves))
}

fn reshaped(x: &Value, shape: &[usize]) -> Value {
    emit(Reshape { new_sizes: Dims::new(shape) }, std::slice::from_ref(x))
}
/// The leading axes of words are the keys'.
fn lead(words: &Value) -> Dims {
    Dims::new(&words.shape()[..words.rank() - 1])
}
fn part(x: &Value, axis: usize, from: usize, to: usize, step: usize) -> Value {
    let mut start: Dims = x.shape().iter().map(|_| 0).collect();
    let mut limit = Dims::new(x.shape());
    let mut strides: Dims = x.shape().iter().map(|_| 1).collect();
    (start[axis], limit[axis], strides[axis]) = (from, to, step);
    emit(Slice { start_indices: start, limit_indices: limit, strides: Some(strides) }, std::slice::from_ref(x))
}
fn repeated(x: &Value, shape: &Dims) -> Value {
    if *x.shape() == **shape {
        return x.clone();
    }
    // a scalar's words are along the last axes
    let broadcast_dimensions = (shape.len() - x.rank()..shape.len()).collect();
    emit(BroadcastInDim { broadcast_dimensions, shape: shape.clone().into() }, std::slice::from_ref(x))
}
/// Bits of the first state.
fn drawn(words: &Value, dtype: Dtype, shape: Dims) -> Res<Value> {
    let n = lead(words).size();
    let state = reshaped(&part(&reshaped(words, &[n, 4]), 0, 0, 1, 1), &[4]);
    Ok(RngBitGenerator { algorithm: Algorithm::Default, dtype, shape }.meaning(&[state])?[1].clone())
}
/// The threefry keys of each half, `[.., 2]`.
fn halves(words: &Value) -> Res<Value> {
    let pairs = reshaped(words, &lead(words).concat(&[2, 2]));
    Ok(bind(&RandomKey { kind: KeyCast::Wrap, r#impl: KeyImpl::Fry }.into(), &[pairs])?[0].clone())
}
fn unwrapped(keys: &Value) -> Res<Value> {
    Ok(bind(&RandomMap { kind: KeyMap::Unwrap }.into(), std::slice::from_ref(keys))?[0].clone())
}

pub fn bits(b: &mut Graph, keys: TensorId, out: &Aval) -> Res<TensorId> {
    let words = words(b, keys)?;
    one(b, &[words], &|x| Ok(smallvec![drawn(&x[0], out.dtype, out.shape.clone())?]))
}
pub fn split(b: &mut Graph, of: TensorId, r#impl: KeyImpl, original: bool, shape: &Dims) -> Res<TensorId> {
    let words = words(b, of)?;
    let new = one(b, &[words], &|x| {
        let (lead, n) = (lead(&x[0]), shape.size());
        let rank = lead.len();
        let all = lead.concat(shape).concat(&[4]);
        if r#impl == KeyImpl::UnsafeRbg {
            let blocks = drawn(&x[0], Dtype::U32, lead.concat(&[STRIDE * n, 4]))?;
            return Ok(smallvec![reshaped(&part(&blocks, rank, 0, STRIDE * n, STRIDE), &all)]);
        }
        let split = RandomSplit { original, shape: Dims::new(&[n]) };
        let new = unwrapped(&bind(&split.into(), &[halves(&x[0])?])?[0])?;
        let permutation: Dims = (0..rank).chain([rank + 1, rank, rank + 2]).collect();
        Ok(smallvec![reshaped(&emit(Transpose { permutation }, &[new]), &all)])
    })?;
    keys(b, new)
}
pub fn fold_in(b: &mut Graph, of: TensorId, data: TensorId, r#impl: KeyImpl, shape: &Dims) -> Res<TensorId> {
    let words = words(b, of)?;
    let new = one(b, &[words, data], &|x| {
        let (old, data) = (&x[0], &x[1]);
        let all = shape.concat(&[4]);
        if r#impl == KeyImpl::UnsafeRbg {
            let seeded = Dims::new(data.shape());
            let zero = Value::Lit(Lit::zero(Dtype::U32));
            let zero = repeated(&zero, &seeded);
            let seeds = emit(Stack { axis: seeded.len() }, &[zero.clone(), data.clone(), zero, data.clone()]);
            let blocks = drawn(&seeds, Dtype::U32, seeded.concat(&[STRIDE, 4]))?;
            let last = part(&blocks, seeded.len(), STRIDE - 1, STRIDE, 1);
            let last = reshaped(&last, &seeded.concat(&[4]));
            return Ok(smallvec![f2(Pw::Xor, &repeated(old, &all), &repeated(&last, &all))]);
        }
        let both = shape.concat(&[2]);
        let data = match data.rank() {
            0 => repeated(data, &both),
            _ => {
                let broadcast_dimensions = (0..shape.len()).collect();
                emit(BroadcastInDim { broadcast_dimensions, shape: both.into() }, std::slice::from_ref(data))
            }
        };
        let new = bind(&RandomFoldIn {}.into(), &[halves(&repeated(old, &all))?, data])?;
        Ok(smallvec![reshaped(&unwrapped(&new[0])?, &all)])
    })?;
    keys(b, new)
}
/// Lanes in front, and axes of size 1 up to `rank` of them; an operand of no axis stays one.
pub fn in_front(cx: &dyn Cx, x: &Value, d: Dim, rank: usize) -> Res<Value> {
    let x = cx.to_front(x, d)?;
    if d.is_none() && x.rank() == 0 {
        return Ok(x);
    }
    let (lanes, own) = if d.is_some() { (x.shape()[0], &x.shape()[1..]) } else { (1, x.shape()) };
    let ones: Dims = (own.len()..rank).map(|_| 1).collect();
    let new_sizes = Dims::new(&[lanes]).concat(&ones).concat(own);
    Ok(cx.bind(&Reshape { new_sizes }.into(), &[x])?[0].clone())
}
