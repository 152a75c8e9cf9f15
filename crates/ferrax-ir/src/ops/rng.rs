//! The ciphers threefry2x32 and philox4x32, which `ferrax-prng` has; rng_bit_generator: random bits and the state moved on by what was drawn;
//! rng_uniform: numbers that cannot be drawn again.
//!
//! ```text
//! rng_bit_generator[algorithm=.. dtype=uint32 shape=(3,)] u32[4] -> u32[4] u32[3]
//! ```
//! The state is two words of a key and a counter of two, low word first. Each block of threefry2x32 goes to two neighbours along the first
//! even axis, or the last one. A block of philox4x32, the default, has the key's words above the counter's, and goes to four neighbours in
//! row-major order. As in JAX, lanes draw from the state of the first alone: one draw with an axis more, after which the others' are as they were.
use super::meaning::{self, converted, f2, stretched, with};
use super::pointwise::{Pw, align, common_shape};
use super::{with_zeros, zero_jvp};
use crate::aval::{Aval, Lit};
use crate::cx::{Arg, Axis, Cx, Dim, Tan, bind};
use crate::dtype::Dtype;
use crate::effects::Effects;
use crate::error::{Error, Res, not_linear, type_err, value_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Effectful, Rules, Tans};
use crate::operators::emit;
use crate::ops::bitcast::Bitcast;
use crate::ops::broadcast::BroadcastInDim;
use crate::ops::concatenate::Concatenate;
use crate::ops::iota::Iota;
use crate::ops::reshape::Reshape;
use crate::ops::slice::Slice;
use crate::ops::stack::{Stack, Unstack};
use crate::param::{Param, ParamValue, Shape};
use crate::primitive;
use crate::program::Program;
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::plan::{HostCall, HostFn};
use ferrax_kernel::{Bin, Dims, Scalar};
use ferrax_prng::Word;
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

primitive! {
    /// Operands k0, k1, x0, x1; results y0, y1.
    pub struct Threefry = "threefry2x32" {}
}

primitive! {
    /// Operands k0, k1, x0, x1, x2, x3; results y0, y1, y2, y3.
    pub struct Philox = "philox4x32" {}
}

/// A 32-bit expression that is added to the graph.
#[derive(Clone)]
pub struct Expr(Rc<WordTerm>);
enum WordTerm {
    Const(u32),
    Tensor(TensorId),
    Bin(Bin, Expr, Expr),
    SelectLt(Expr, Expr, Expr, Expr),
}
impl Expr {
    fn new(k: WordTerm) -> Expr {
        Expr(Rc::new(k))
    }
    fn bin(f: Bin, a: Expr, b: Expr) -> Expr {
        Expr::new(WordTerm::Bin(f, a, b))
    }
}
impl Word for Expr {
    fn constant(value: u32) -> Expr {
        Expr::new(WordTerm::Const(value))
    }
    fn add(self, o: Expr) -> Expr {
        Expr::bin(Bin::Add, self, o)
    }
    fn mul(self, by: u32) -> Expr {
        Expr::bin(Bin::Mul, self, Expr::constant(by))
    }
    fn sub(self, o: Expr) -> Expr {
        Expr::bin(Bin::Sub, self, o)
    }
    fn xor(self, o: Expr) -> Expr {
        Expr::bin(Bin::Xor, self, o)
    }
    fn or(self, o: Expr) -> Expr {
        Expr::bin(Bin::Or, self, o)
    }
    fn and(self, o: Expr) -> Expr {
        Expr::bin(Bin::And, self, o)
    }
    fn shl(self, by: u32) -> Expr {
        Expr::bin(Bin::Shl, self, Expr::constant(by))
    }
    fn shr(self, by: u32) -> Expr {
        Expr::bin(Bin::ShrLogical, self, Expr::constant(by))
    }
    fn shr_by(self, by: Expr) -> Expr {
        Expr::bin(Bin::ShrLogical, self, by)
    }
    fn select_lt(self, bound: Expr, yes: Expr, no: Expr) -> Expr {
        Expr::new(WordTerm::SelectLt(self, bound, yes, no))
    }
}
pub fn leaf(x: TensorId) -> Expr {
    Expr::new(WordTerm::Tensor(x))
}
/// Adds an expression to the graph; a shared subexpression is added once.
fn build(g: &mut Graph, e: &Expr, done: &mut FxHashMap<*const WordTerm, TensorId>) -> TensorId {
    if let Some(n) = done.get(&Rc::as_ptr(&e.0)) {
        return *n;
    }
    let n = match &*e.0 {
        WordTerm::Const(c) => g.constant(Scalar::u32(*c), Dims::default()),
        WordTerm::Tensor(n) => *n,
        WordTerm::Bin(f, a, b) => {
            let (a, b) = (build(g, a, done), build(g, b, done));
            g.bin(*f, a, b)
        }
        WordTerm::SelectLt(a, b, t, f) => {
            let (a, b) = (build(g, a, done), build(g, b, done));
            let p = g.bin(Bin::Lt, a, b);
            let (t, f) = (build(g, t, done), build(g, f, done));
            g.select(p, t, f)
        }
    };
    done.insert(Rc::as_ptr(&e.0), n);
    n
}
/// Expressions at one shape.
pub fn build_all<const N: usize>(g: &mut Graph, e: &[Expr; N], shape: &Dims) -> [TensorId; N] {
    let mut done = FxHashMap::default();
    e.each_ref().map(|e| {
        let n = build(g, e, &mut done);
        if g.rank(n) == 0 { g.broadcast(n, shape.clone(), &[]) } else { n }
    })
}
/// An operand repeated over the result.
pub fn over(b: &mut Graph, v: TensorId, shape: &Dims) -> Expr {
    leaf(if b.rank(v) > 0 { b.broadcast(v, shape.clone(), &(0..shape.len()).collect::<Dims>()) } else { v })
}

impl Rules for Threefry {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        if x.len() != 4 || x.iter().any(|a| a.dtype != Dtype::U32) {
            return type_err(format!("Arguments to threefry2x32_p must have uint32 type, got {x:?}"));
        }
        let shape = common_shape("threefry2x32", x)?;
        Ok(smallvec![Aval::of(Dtype::U32, shape.clone()), Aval::of(Dtype::U32, shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&Threefry {}.into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("threefry2x32")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (x, at) = align(cx, x, d)?;
        Ok((cx.bind(&Threefry {}.into(), &x)?, smallvec![Some(at), Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let both = &out[0].shape;
        let mut at = |k: usize| over(b, x[k], both);
        let (key, counter) = ([at(0), at(1)], [at(2), at(3)]);
        let pair = ferrax_prng::threefry2x32(key, counter);
        Ok(TensorIds::from_slice(&build_all(b, &pair, both)))
    }
}

impl Rules for Philox {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        if x.len() != 6 || x.iter().any(|a| a.dtype != Dtype::U32) {
            return type_err(format!("Arguments to philox4x32 must be six of uint32 type, got {x:?}"));
        }
        let shape = common_shape("philox4x32", x)?;
        Ok((0..4).map(|_| Aval::of(Dtype::U32, shape.clone())).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&Philox {}.into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("philox4x32")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (x, at) = align(cx, x, d)?;
        Ok((cx.bind(&Philox {}.into(), &x)?, smallvec![Some(at), Some(at), Some(at), Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let all = &out[0].shape;
        let mut at = |k: usize| over(b, x[k], all);
        let (key, counter) = ([at(0), at(1)], [at(2), at(3), at(4), at(5)]);
        let block = ferrax_prng::philox4x32(key, counter);
        Ok(TensorIds::from_slice(&build_all(b, &block, all)))
    }
}

/// The generators that have names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    Default,
    ThreeFry,
    Philox,
}
impl Algorithm {
    const ALL: [(Algorithm, &'static str); 3] = [
        (Algorithm::Default, "RNG_DEFAULT"),
        (Algorithm::ThreeFry, "RNG_THREE_FRY"),
        (Algorithm::Philox, "RNG_PHILOX"),
    ];
}
impl ParamValue for Algorithm {
    fn words() -> String {
        "RandomAlgorithm.RNG_DEFAULT, RNG_THREE_FRY or RNG_PHILOX".into()
    }
    fn to_param(&self) -> Param {
        let name = Algorithm::ALL.iter().find(|a| a.0 == *self).map_or("", |a| a.1);
        Param::Enum("RandomAlgorithm", name.into())
    }
    fn from_param(p: &Param) -> Option<Algorithm> {
        match p {
            Param::Enum(_, s) | Param::Str(s) => Algorithm::ALL.iter().find(|a| *a.1 == **s).map(|a| a.0),
            _ => None,
        }
    }
}

primitive! {
    pub struct RngBitGenerator = "rng_bit_generator" {
        algorithm: Algorithm,
        dtype: Dtype,
        shape: Dims,
    } always_none { out_sharding = hidden }
}

fn reshaped(x: &Value, shape: &[usize]) -> Value {
    emit(Reshape { new_sizes: Dims::new(shape) }, std::slice::from_ref(x))
}
fn to(x: &Value, dtype: Dtype) -> Value {
    converted(x, dtype, false)
}
/// The counter, low words first, and n added to it.
fn moved_on(counter: &[Value], n: &Value) -> Vec<Value> {
    let mut carry = n.clone();
    let mut word = |w: &Value| {
        let sum = w + &carry;
        carry = to(&f2(Pw::Lt, &sum, &carry), Dtype::U32);
        sum
    };
    counter.iter().map(&mut word).collect()
}
fn on(line: &Dims, words: &[Value]) -> Vec<Value> {
    words.iter().map(|w| stretched(w, line)).collect()
}
fn wide_word(low: &Value, high: &Value) -> Value {
    let high = with(Pw::ShiftLeft, &to(high, Dtype::U64), 32.0);
    f2(Pw::Or, &to(low, Dtype::U64), &high)
}
fn numbers(n: usize) -> Value {
    emit(Iota { dimension: 0, dtype: Dtype::U32, shape: Shape(Dims::new(&[n])) }, &[])
}
impl RngBitGenerator {
    /// The next state and the bits.
    pub fn meaning(&self, x: &[Value]) -> Res<Values> {
        let state = &x[0];
        let wide_state = state.dtype() == Dtype::U64;
        // u64[2] as u32[2,2], low words first
        let words = if wide_state {
            reshaped(&emit(Bitcast { new_dtype: Dtype::U32 }, std::slice::from_ref(state)), &[4])
        } else {
            state.clone()
        };
        let words = bind(&Unstack { axis: 0 }.into(), &[words])?;
        let (seed, counter) = words.split_at(2);
        let n = self.shape.size();
        if n == 0 {
            let zero = Value::Lit(Lit::zero(self.dtype));
            let none = BroadcastInDim { broadcast_dimensions: Dims::default(), shape: self.shape.clone().into() };
            return Ok(smallvec![state.clone(), emit(none, &[zero])]);
        }
        let (bits, blocks) = match self.algorithm {
            Algorithm::ThreeFry => self.by_threefry(seed, counter)?,
            Algorithm::Default | Algorithm::Philox => self.by_philox(seed, counter)?,
        };
        let blocks = Value::Lit(Lit::from(Scalar::u32(blocks as u32)));
        let next = moved_on(counter, &blocks);
        let mut state = emit(Stack { axis: 0 }, &[seed, &next].concat());
        if wide_state {
            state = emit(Bitcast { new_dtype: Dtype::U64 }, &[reshaped(&state, &[2, 2])]);
        }
        Ok(smallvec![state, reshaped(&bits, &self.shape)])
    }
    /// The bits, and how many blocks they took.
    fn by_philox(&self, seed: &[Value], counter: &[Value]) -> Res<(Value, usize)> {
        let wide = self.dtype == Dtype::U64;
        let n = self.shape.size();
        let in_block = if wide { 2 } else { 4 };
        let blocks = n.div_ceil(in_block);
        let line = Dims::new(&[blocks]);
        let at = moved_on(&on(&line, &[counter, seed].concat()), &numbers(blocks));
        let drawn = bind(&Philox {}.into(), &[&on(&line, seed)[..], &at].concat())?;
        let drawn: Values = match wide {
            true => drawn.chunks_exact(2).map(|w| wide_word(&w[0], &w[1])).collect(),
            false => drawn.iter().map(|w| to(w, self.dtype)).collect(),
        };
        let all = reshaped(&emit(Stack { axis: 1 }, &drawn), &[blocks * in_block]);
        let cut = Slice { limit_indices: Dims::new(&[n]), start_indices: Dims::new(&[0]), strides: None };
        Ok((if n == blocks * in_block { all } else { emit(cut, &[all]) }, blocks))
    }
    fn by_threefry(&self, seed: &[Value], counter: &[Value]) -> Res<(Value, usize)> {
        let wide = self.dtype == Dtype::U64;
        let n = self.shape.size();
        // the two words of a block are neighbours along the first even axis, or along the last one and one element more
        let mut whole = if self.shape.is_empty() { Dims::new(&[1]) } else { self.shape.clone() };
        let kept = whole.clone();
        let axis = whole.iter().position(|size| size % 2 == 0).unwrap_or_else(|| {
            let last = whole.len() - 1;
            whole[last] += 1;
            last
        });
        let blocks = if wide { n } else { whole.size() / 2 };
        let line = Dims::new(&[blocks]);
        let at = moved_on(&on(&line, counter), &numbers(blocks));
        let drawn = bind(&Threefry {}.into(), &[&on(&line, seed)[..], &at].concat())?;
        let bits = if wide {
            wide_word(&drawn[0], &drawn[1])
        } else {
            let inner = whole[axis + 1..].iter().product();
            let parts: Values = drawn.iter().map(|v| reshaped(v, &[blocks / inner, 1, inner])).collect();
            let bits = reshaped(&emit(Concatenate { dimension: 1 }, &parts), &whole);
            let start_indices = kept.iter().map(|_| 0).collect();
            let cut = Slice { limit_indices: kept.clone(), start_indices, strides: None };
            to(&if kept == whole { bits } else { emit(cut, &[bits]) }, self.dtype)
        };
        Ok((bits, blocks))
    }
    /// Of the states of all lanes, in front: the first one's draw for all.
    fn of_lanes(&self, states: &Value) -> Res<Values> {
        let lanes = states.shape()[0];
        let own = Dims::new(&states.shape()[1..]);
        let all = RngBitGenerator { shape: Dims::new(&[lanes]).concat(&self.shape), ..self.clone() };
        if lanes == 0 {
            let none = BroadcastInDim { broadcast_dimensions: Dims::default(), shape: all.shape.into() };
            return Ok(smallvec![states.clone(), emit(none, &[Value::Lit(Lit::zero(self.dtype))])]);
        }
        let rows = |from: usize, to: usize| {
            let (start_indices, limit_indices) = (Dims::new(&[from, 0]), Dims::new(&[to, own[0]]));
            emit(Slice { start_indices, limit_indices, strides: None }, std::slice::from_ref(states))
        };
        let drawn = bind(&all.into(), &[reshaped(&rows(0, 1), &own)])?;
        let first = reshaped(&drawn[0], &[1, own[0]]);
        let after = emit(Concatenate { dimension: 0 }, &[first, rows(1, lanes)]);
        Ok(smallvec![after, drawn[1].clone()])
    }
}
impl Rules for RngBitGenerator {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [key] = x else { return type_err(format!("rng_bit_generator takes 1 operand, got {}", x.len())) };
        if !self.dtype.is_unsigned() {
            return type_err(format!("rng_bit_generator: unsupported dtype {}", self.dtype.long()));
        }
        if !matches!((key.dtype, &key.shape[..]), (Dtype::U32, [4]) | (Dtype::U64, [2])) || key.tape > 0 {
            return type_err(format!("rng_bit_generator: the key must be uint32[4] or uint64[2], got {}", key.long()));
        }
        self.shape.checked(self.dtype.size())?;
        if self.shape.size() > u32::MAX as usize {
            return value_err("rng_bit_generator draws at most 2**32 - 1 numbers at once");
        }
        Ok(smallvec![key.clone(), Aval::of(self.dtype, self.shape.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        Ok(with_zeros(cx.bind(&self.clone().into(), x)?))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("rng_bit_generator")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let states = cx.to_front(&x[0], d[0])?;
        let p = meaning::program(&[states.aval()], &|x| self.of_lanes(&x[0]))?;
        Ok((cx.inline(&p, &[states])?, smallvec![Some(0), Some(0)]))
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(Some((meaning::program(x, &|x| self.meaning(x))?, (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        meaning::lower(b, x, &|x| self.meaning(x))
    }
}

primitive! {
    /// From [a, b), others at every call: the host draws them.
    pub struct RngUniform = "rng_uniform" {
        shape: Dims,
    }
}
/// Two draws of one program are two draws.
impl Effectful for RngUniform {
    fn effects(&self) -> Effects {
        Effects::io(false, false)
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x)
    }
}
struct Uniform {
    of: Aval,
}
impl HostFn for Uniform {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> ferrax_kernel::error::Res<()> {
        let Some(d) = self.of.dtype.num() else { return Ok(()) };
        let seed = RandomState::new().hash_one(0u8);
        let key = [seed as u32, (seed >> 32) as u32];
        let (a, b) = (Scalar::from_bytes(d, ins[0]), Scalar::from_bytes(d, ins[1]));
        for (i, place) in outs[0].chunks_exact_mut(d.size()).enumerate() {
            let [low, high] = ferrax_prng::threefry2x32(key, [i as u32, (i as u64 >> 32) as u32]);
            let bits = low as u64 | (high as u64) << 32;
            let drawn = if d.is_float() {
                let (a, b) = (a.to_f64(), b.to_f64());
                let x = Scalar::from_f64(d, a + (b - a) * ((bits >> 11) as f64 / (1u64 << 53) as f64));
                // rounding may reach the end that is not of the range
                if x.to_f64() < b || a >= b { x } else { Scalar::from_f64(d, a) }
            } else {
                // the width of the range, and the offset of a draw in it
                let span = b.bits.wrapping_sub(a.bits) & (u64::MAX >> (64 - d.bits()));
                let step = if span == 0 { 0 } else { ((bits as u128 * span as u128) >> 64) as u64 };
                Scalar { dtype: d, bits: a.bits.wrapping_add(step) }
            };
            place.copy_from_slice(&drawn.bytes()[..d.size()]);
        }
        Ok(())
    }
}
impl Rules for RngUniform {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a, b] = x else { return type_err(format!("rng_uniform takes 2 operands, got {}", x.len())) };
        if a.dtype != b.dtype {
            return value_err(format!(
                "Arguments to rng_uniform must have identical dtypes, got {} and {}.",
                a.dtype.long(),
                b.dtype.long()
            ));
        }
        if a.rank() + b.rank() > 0 {
            return value_err(format!(
                "Arguments to rng_uniform must be scalars; got shapes {} and {}.",
                a.shape, b.shape
            ));
        }
        if !(a.dtype.is_int() || a.dtype.is_float()) || a.tape + b.tape > 0 {
            return type_err(format!("rng_uniform does not accept dtype {}", a.dtype.long()));
        }
        self.shape.checked(a.dtype.size())?;
        Ok(smallvec![Aval::of(a.dtype, self.shape.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        Ok(with_zeros(cx.bind(&self.clone().into(), x)?))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("rng_uniform")
    }
    fn batch(&self, _: &dyn Cx, _: Axis, _: &[Value], _: &[Dim]) -> Res<(Values, Axes)> {
        Err(Error::not_implemented("Batching rule for 'rng_uniform' not implemented"))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let f = Arc::new(Uniform { of: out[0].clone() });
        Ok(b.callback(HostCall { name: "rng_uniform".into(), f }, x, out))
    }
}
