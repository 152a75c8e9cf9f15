//! Random numbers from keys: the same key, shape and dtype give the same numbers, on any machine and in Python.
//!
//! ```
//! use ferrax::{Dtype, random};
//! let key = random::key(0);
//! let keys = random::split(&key, 2);
//! let x = random::normal(&keys[0], &[3], Dtype::F32);
//! let y = random::uniform(&keys[1], &[3], Dtype::F32);
//! assert_ne!(x.to_vec::<f32>()?, y.to_vec::<f32>()?);
//! assert_eq!(x.to_vec::<f32>()?, random::normal(&keys[0], &[3], Dtype::F32).to_vec::<f32>()?);
//! let other = random::fold_in(&key, 7); // a key for step 7
//! assert!(random::randint(&other, &[100], 0, 6).max().item() < 6.0);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A key is a rank-0 tensor of keys: it passes through `vmap`, `jit` and loops like others. Use each key once; [`split`] makes more.
//!
//! INVARIANT: each function composes the same primitives as Python's, so that bits agree; `tests/api/golden.txt` holds Python's results.
mod counts;
mod gamma;
mod tails;
mod transformed;

pub use counts::{binomial, multinomial, poisson};
pub use gamma::{ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t};
pub use transformed::{
    bernoulli, categorical, cauchy, choice, double_sided_maxwell, exponential, geometric, gumbel, laplace, logistic,
    lognormal, maxwell, multivariate_normal, normal, orthogonal, pareto, permutation, rademacher, rayleigh, shuffle,
    triangular, truncated_normal, wald, weibull_min,
};

use crate::layout;
use crate::mistakes::{self, raise};
use crate::tensor::{IntoTensor, Tensor, constant, emit, emit_many, exactly, pw, where_};
use ferrax_ir::ops::bitcast::Bitcast;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::random::{KeyCast, KeyMap, RandomBits, RandomFoldIn, RandomKey, RandomMap, RandomSplit};
use ferrax_ir::ops::rng::RngBitGenerator;
use ferrax_ir::{Dims, Dtype, Error, KeyImpl};

#[doc(inline)]
pub use ferrax_ir::ops::rng::Algorithm;

/// Runs `f`; keys that are split there and bits that are drawn there follow the original counter layout of threefry, that of JAX with
/// `jax_threefry_partitionable=False`: for numbers that were published with it.
///
/// ```
/// use ferrax::{Dtype, random};
/// let draw = || random::normal(&random::key(42), &[], Dtype::F32).item();
/// let (now, then) = (draw(), random::with_original_layout(draw));
/// assert!((now + 0.02830462).abs() < 1e-6 && (then + 0.18471177).abs() < 1e-6);
/// ```
pub fn with_original_layout<T>(f: impl FnOnce() -> T) -> T {
    layout::with_original(f)
}

/// A key from a seed.
pub fn key(seed: i32) -> Tensor {
    mistakes::init();
    emit(RandomKey { kind: KeyCast::Seed, r#impl: KeyImpl::Fry }, &[&constant(Dtype::I32, seed as f64)])
}
/// Keys from their words, `u32[.., 2]`.
///
/// ```
/// use ferrax::random;
/// let words = random::key_data(&random::key(7));
/// assert_eq!(words.to_vec::<u32>()?, [0, 7]);
/// assert_eq!(random::wrap_key_data(&words).shape(), random::key(7).shape());
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn wrap_key_data(words: &Tensor) -> Tensor {
    emit(RandomKey { kind: KeyCast::Wrap, r#impl: KeyImpl::Fry }, &[words])
}
/// The words of keys, `u32[.., 2]`.
///
/// ```
/// use ferrax::random;
/// assert_eq!(random::key_data(&random::key(7)).to_vec::<u32>()?, [0, 7]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn key_data(keys: &Tensor) -> Tensor {
    emit(RandomMap { kind: KeyMap::Unwrap }, &[keys])
}
/// New independent keys, each a tensor.
///
/// # Panics
/// If there is not one key.
#[track_caller]
pub fn split(key: &Tensor, n: usize) -> Vec<Tensor> {
    split_into(key, &[n]).unstack(0)
}
/// New independent keys in one tensor of keys.
///
/// ```
/// use ferrax::{Dtype, Tensor, random, vmap};
/// let keys = random::split_into(&random::key(0), &[5]);
/// let x = vmap(|k: &Tensor| random::normal(k, &[3], Dtype::F32))(&keys)?;
/// assert_eq!(x.shape(), [5, 3]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// If there is not one key.
#[track_caller]
pub fn split_into(key: &Tensor, shape: &[usize]) -> Tensor {
    emit(RandomSplit { original: layout::is_original(), shape: shape.into() }, &[single("split", key)])
}
/// A new key from a key and a number.
///
/// # Panics
/// If there is not one key, or the number is not a scalar.
#[track_caller]
pub fn fold_in(key: &Tensor, data: impl IntoTensor) -> Tensor {
    emit(RandomFoldIn {}, &[single("fold_in", key), &data.into_tensor().astype(Dtype::U32)])
}
/// `(next state, bits)`: bits of `shape` in an unsigned dtype by a counter cipher, and the advanced
/// state. A state is `u32[4]`: a key's words and a counter's. Under `vmap` the whole batch draws
/// from the first element's state.
///
/// ```
/// use ferrax::random::{Algorithm, rng_bit_generator};
/// use ferrax::{Dtype, Tensor};
/// let (next, bits) = rng_bit_generator(&Tensor::from([0u32; 4]), &[3], Dtype::U32, Algorithm::Philox);
/// assert_eq!((next.to_vec::<u32>()?, bits.shape()), (vec![0, 0, 1, 0], &[3][..]));
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// For another state (`u64[2]` is one, too), or a dtype that is not unsigned.
#[track_caller]
pub fn rng_bit_generator(state: &Tensor, shape: &[usize], dtype: Dtype, algorithm: Algorithm) -> (Tensor, Tensor) {
    if !dtype.is_unsigned() {
        raise(Error::type_error(format!("rng_bit_generator: unsupported dtype {}", dtype.long())));
    }
    if !matches!((state.dtype(), state.shape()), (Dtype::U32, [4]) | (Dtype::U64, [2])) {
        raise(Error::type_error(format!(
            "rng_bit_generator: the key must be uint32[4] or uint64[2], got {}",
            state.aval().long()
        )));
    }
    let [next, bits] = exactly(emit_many(RngBitGenerator { algorithm, dtype, shape: shape.into() }, &[state]));
    (next, bits)
}
#[track_caller]
fn single<'a>(name: &str, key: &'a Tensor) -> &'a Tensor {
    if !key.dtype().is_key() {
        raise(Error::type_error(format!("{name} requires a key, got {}", key.aval().long())));
    }
    if key.rank() > 0 {
        raise(Error::value(format!(
            "{name} accepts a single key, but was given a key array of shape {} != (). Use jax.vmap for batching.",
            Dims::new(key.shape())
        )));
    }
    key
}
#[track_caller]
fn pair(key: &Tensor) -> (Tensor, Tensor) {
    let mut two = split(key, 2);
    let b = two.remove(1);
    (two.remove(0), b)
}
/// Random bits in an unsigned dtype.
///
/// # Panics
/// If it is not one.
#[track_caller]
pub fn bits(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    if !dtype.is_unsigned() {
        raise(Error::value(format!("dtype argument to `bits` must be an unsigned int dtype, got {}", dtype.long())));
    }
    random_bits(key, shape, 8 * dtype.size())
}
#[track_caller]
fn random_bits(key: &Tensor, shape: &[usize], bit_width: usize) -> Tensor {
    emit(RandomBits { bit_width, original: layout::is_original(), shape: shape.into() }, &[single("bits", key)])
}

/// Properties of a float dtype.
struct Finfo {
    bits: usize,
    nmant: usize,
    eps: f64,
    tiny: f64,
}
impl Finfo {
    #[track_caller]
    fn of(name: &str, d: Dtype) -> Finfo {
        let (bits, nmant, least) = match d {
            Dtype::F16 => (16, 10, -14),
            Dtype::BF16 => (16, 7, -126),
            Dtype::F32 => (32, 23, -126),
            Dtype::F64 => (64, 52, -1022),
            d => raise(Error::value(format!("dtype argument to `{name}` must be a float dtype, got {}", d.long()))),
        };
        Finfo { bits, nmant, eps: 2f64.powi(-(nmant as i32)), tiny: 2f64.powi(least) }
    }
    /// The distance from 1 to the number before.
    fn epsneg(&self) -> f64 {
        self.eps / 2.0
    }
    fn words(&self) -> Dtype {
        match self.bits {
            16 => Dtype::U16,
            32 => Dtype::U32,
            _ => Dtype::U64,
        }
    }
}

/// Uniform in [0, 1).
///
/// # Panics
/// If the dtype is not floating point.
#[track_caller]
pub fn uniform(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    uniform_between(key, shape, dtype, 0.0, 1.0)
}
/// Uniform in [low, high), which broadcast to the shape.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::uniform_between(&random::key(0), &[100], Dtype::F32, -3.0, 5.0);
/// assert!(x.min().item() >= -3.0 && x.max().item() < 5.0);
/// ```
///
/// # Panics
/// If the dtype is not floating point.
#[track_caller]
pub fn uniform_between(
    key: &Tensor,
    shape: &[usize],
    dtype: Dtype,
    low: impl IntoTensor,
    high: impl IntoTensor,
) -> Tensor {
    let (low, high) = (low.into_tensor().astype(dtype), high.into_tensor().astype(dtype));
    let (drawn, excess) = random_words(key, shape, dtype);
    let unit = on_grid(&drawn, excess, dtype);
    let span = &high - &low;
    // Where the distance overflows, half the numbers are drawn from half the interval, and doubled.
    let overflows = !span.is_finite() & low.is_finite() & high.is_finite();
    let (half, twice) = (
        where_(&overflows, constant(dtype, 0.5), constant(dtype, 1.0)),
        where_(&overflows, constant(dtype, 2.0), constant(dtype, 1.0)),
    );
    let start = &low * &half;
    let x = (unit * (&high * &half - &start) + &start) * twice;
    low.maximum(x)
}
/// Random words of a float's size, and how many of their bits its mantissa leaves out, the lowest.
#[track_caller]
fn random_words(key: &Tensor, shape: &[usize], dtype: Dtype) -> (Tensor, usize) {
    let info = Finfo::of("uniform", dtype);
    let n_bits = if info.nmant < 8 { 8 } else { info.bits };
    (random_bits(key, shape, n_bits).astype(info.words()), n_bits - info.nmant)
}
/// Numbers of [0, 1), multiples of the dtype's epsilon: a mantissa under the exponent of 1.0 gives [1, 2).
#[track_caller]
fn on_grid(drawn: &Tensor, excess: usize, dtype: Dtype) -> Tensor {
    let words = drawn.dtype();
    let one = emit(Bitcast { new_dtype: words }, &[&constant(dtype, 1.0).full_array()]);
    let mantissa = pw(Pw::ShiftRightLogical, &[drawn, &constant(words, excess as f64)]);
    emit(Bitcast { new_dtype: dtype }, &[&(mantissa | one)]) - constant(dtype, 1.0)
}
/// The number of [low, high) that a draw from [0, 1) gives; its last step keeps rounding above `low`.
#[track_caller]
fn between(unit: &Tensor, low: &Tensor, high: &Tensor) -> Tensor {
    low.maximum(unit * (high - low) + low)
}
/// Uniform draws: `unit` in [0, 1) on the grid of multiples of `eps`, `rest` in (0, 1) from their further bits, `first` and `last` where they are in
/// those cells. A function that is infinite or steep at 0 or 1 takes the finer number `unit + eps rest` there, since one point is all of the cell.
struct Cells {
    unit: Tensor,
    rest: Tensor,
    first: Tensor,
    last: Tensor,
    eps: f64,
    dtype: Dtype,
}
impl Cells {
    #[track_caller]
    fn new(key: &Tensor, shape: &[usize], dtype: Dtype) -> Cells {
        let info = Finfo::of("uniform", dtype);
        let (drawn, excess) = random_words(key, shape, dtype);
        let unit = on_grid(&drawn, excess, dtype);
        // No more bits than are exact together with the half that keeps `rest` off 0 and 1.
        let n = excess.min(info.nmant);
        let low = drawn & constant(unit_words(dtype), ((1u64 << excess) - 1) as f64);
        let low = pw(Pw::ShiftRightLogical, &[&low, &constant(unit_words(dtype), (excess - n) as f64)]).astype(dtype);
        let rest = (low + constant(dtype, 0.5)) * constant(dtype, 2f64.powi(-(n as i32)));
        let (first, last) = (unit.eq(constant(dtype, 0.0)), unit.eq(constant(dtype, 1.0 - info.eps)));
        Cells { unit, rest, first, last, eps: info.eps, dtype }
    }
    /// u, or in the first cell the finer number.
    #[track_caller]
    fn above_0(&self, u: &Tensor) -> Tensor {
        where_(&self.first, &self.rest * constant(self.dtype, self.eps), u)
    }
    /// 1 less the finer number, for draws in the last cell.
    #[track_caller]
    fn below_1(&self) -> Tensor {
        constant(self.dtype, self.eps) * (constant(self.dtype, 1.0) - &self.rest)
    }
    /// log(u), of the draws or of what they were moved to.
    #[track_caller]
    fn log_of(&self, u: &Tensor) -> Tensor {
        let d = self.below_1();
        let near_1 = -(&d + constant(self.dtype, 0.5) * (&d * &d));
        where_(&self.last, near_1, self.above_0(u).log())
    }
    #[track_caller]
    fn log(&self) -> Tensor {
        self.log_of(&self.unit)
    }
    /// log(1 - u).
    #[track_caller]
    fn log_left(&self) -> Tensor {
        // In the last cell 1 - u = epsilon (1 - rest).
        let y = (-where_(&self.last, &self.rest, self.above_0(&self.unit))).log1p();
        where_(&self.last, &y + constant(self.dtype, self.eps.ln()), &y)
    }
    /// 1 - u.
    #[track_caller]
    fn left(&self) -> Tensor {
        where_(&self.last, self.below_1(), constant(self.dtype, 1.0) - &self.unit)
    }
    /// Uniform in [tiny, 1).
    #[track_caller]
    fn open_unit(&self) -> Tensor {
        between(&self.unit, &constant(self.dtype, Finfo::of("uniform", self.dtype).tiny), &constant(self.dtype, 1.0))
    }
}
fn unit_words(dtype: Dtype) -> Dtype {
    Finfo::of("uniform", dtype).words()
}
impl Tensor {
    /// A literal as an array: reading bits requires one.
    fn full_array(&self) -> Tensor {
        self.broadcast_to(&[1]).reshape::<i64>(&[])
    }
}

/// Uniform integers (int32) in [low, high), which broadcast to the shape; `low` where there is none.
///
/// # Panics
/// If there is not one key.
#[track_caller]
pub fn randint(key: &Tensor, shape: &[usize], low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
    randint_in(key, shape, low, high, Dtype::I32)
}
/// The same in another integer dtype.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::randint_in(&random::key(0), &[100], -5, 5, Dtype::I8);
/// assert!((x.dtype(), x.min().item() >= -5.0) == (Dtype::I8, true));
/// ```
///
/// # Panics
/// If the dtype is not an integer type.
#[track_caller]
pub fn randint_in(key: &Tensor, shape: &[usize], low: impl IntoTensor, high: impl IntoTensor, dtype: Dtype) -> Tensor {
    let (low, high) = (low.into_tensor(), high.into_tensor());
    if !dtype.is_int() {
        raise(Error::type_error(format!("randint only accepts integer dtypes, got {}", dtype.long())));
    }
    let (least, most) = limits(dtype);
    if dtype.size() < 4 {
        let (low, high) = (low.clip(least as f64, most as f64), high.clip(least as f64, most as f64 + 1.0));
        let (low, high) = (low.astype(Dtype::I32), high.astype(Dtype::I32));
        return randint_in(key, shape, low, high, Dtype::I32).astype(dtype);
    }
    let wide = |x: Tensor| if x.dtype().is_int() { x } else { x.astype(Dtype::I32) };
    let (low, high) = (wide(low), wide(high));
    let (own_least, own_most) = limits(high.dtype());
    let limited = |x: &Tensor| {
        let (a, b) = (integer(x.dtype(), least.max(own_least)), integer(x.dtype(), most.min(own_most)));
        b.minimum(a.maximum(x)).astype(dtype)
    };
    let beyond = high.gt(integer(high.dtype(), most.min(own_most)));
    let (low, high) = (limited(&low), limited(&high));
    let n_bits = 8 * dtype.size();
    let words = if n_bits == 32 { Dtype::U32 } else { Dtype::U64 };
    let (k_high, k_low) = pair(key);
    let (upper, lower) = (random_bits(&k_high, shape, n_bits), random_bits(&k_low, shape, n_bits));
    let one = constant(words, 1.0);
    let span = (&high - &low).astype(words);
    let span = where_(&high.le(&low), &one, span);
    // high = 2**bits is not representable: the clipped span is one too small
    let span = where_(&(beyond & high.gt(&low)), &span + &one, &span);
    // (upper * 2**n_bits + lower) % span, without overflow
    let scale = integer(words, 1i64 << (n_bits / 2)) % &span;
    let scale = (&scale * &scale) % &span;
    let offset = ((upper % &span) * scale + lower % &span) % &span;
    low.broadcast_to(shape) + offset.astype(dtype)
}
fn limits(d: Dtype) -> (i64, i64) {
    match d {
        Dtype::I8 => (i8::MIN as i64, i8::MAX as i64),
        Dtype::I16 => (i16::MIN as i64, i16::MAX as i64),
        Dtype::U8 => (0, u8::MAX as i64),
        Dtype::U16 => (0, u16::MAX as i64),
        Dtype::U32 => (0, u32::MAX as i64),
        Dtype::I32 => (i32::MIN as i64, i32::MAX as i64),
        Dtype::U64 => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    }
}
fn integer(d: Dtype, x: i64) -> Tensor {
    Tensor(ferrax_ir::Lit::from_i64(d, x).into())
}
