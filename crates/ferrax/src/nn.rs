//! Neural networks as functions: activations, losses, normalisations, attention, initialisers, layers' arithmetic.
//!
//! ```
//! use ferrax::{Dtype, Tensor, nn, random};
//! let x = Tensor::from([[1.0f32, 2.0, 3.0]]);
//! assert!((nn::softmax(&x, -1).sum().item() - 1.0).abs() < 1e-6);
//! assert_eq!(nn::relu(&(-&x)).sum().item(), 0.0);
//! let w = nn::glorot_uniform(&random::key(0), &[3, 4], Dtype::F32);
//! let logits = nn::linear(&x, &w, &Tensor::zeros(&[4]));
//! let loss = nn::cross_entropy(&logits, &Tensor::from([2])).mean();
//! assert!(loss.item() > 0.0);
//! assert_eq!(nn::one_hot(&Tensor::from([2, 0]), 3).to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
//! let q = random::normal(&random::key(1), &[1, 5, 2, 8], Dtype::F32);
//! assert_eq!(nn::dot_product_attention(&q, &q, &q, None, true).shape(), [1, 5, 2, 8]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: each function composes the same primitives as the Python function of its name.
use crate::mistakes::{ok, raise};
use crate::random;
use crate::tensor::{
    IntoTensor, Padding, Subscript, Tensor, constant, dot_general, dot_general_in, einsum, inexact, where_,
};
use crate::transforms::custom_jvp;
use ferrax_ir::{Dtype, Error};

/// max(x, 0), whose derivative at 0 is 0.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::relu(&Tensor::from([-1.0f32, 2.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 2.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn relu(x: &Tensor) -> Tensor {
    ok(custom_jvp(
        |x: &Tensor| x.maximum(0),
        |x: &Tensor, dx: &Tensor| (x.maximum(0), where_(&x.gt(0), dx, dx.zeros_like())),
    )(x))
}
/// min(max(x, 0), 6).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::relu6(&Tensor::from([-1.0f32, 9.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 6.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn relu6(x: &Tensor) -> Tensor {
    x.maximum(0).minimum(6.0)
}
/// 1 / (1 + exp(-x)).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::sigmoid(&Tensor::from([0.0f32, 100.0]));
/// assert_eq!(y.all_close(Tensor::from([0.5f32, 1.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn sigmoid(x: &Tensor) -> Tensor {
    x.logistic()
}
/// log(exp(x) + exp(y)), without overflow.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::logaddexp(&Tensor::from([0.0f32, 1000.0]), 0.0);
/// assert_eq!(y.all_close(Tensor::from([0.6931472f32, 1000.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn logaddexp(x: &Tensor, y: impl IntoTensor) -> Tensor {
    let both = crate::tensor::promote(&[x, &y.into_tensor()]);
    crate::special::log_add([inexact(&both[0]), inexact(&both[1])], |x| x.exp(), |x| x.log1p(), None)
}
/// log(1 + exp(x)), without overflow.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::softplus(&Tensor::from([0.0f32, 100.0]));
/// assert_eq!(y.all_close(Tensor::from([0.6931472f32, 100.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn softplus(x: &Tensor) -> Tensor {
    logaddexp(x, 0)
}
/// x / (|x| + 1).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::soft_sign(&Tensor::from([-1.0f32, 3.0]));
/// assert_eq!(y.all_close(Tensor::from([-0.5f32, 0.75]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn soft_sign(x: &Tensor) -> Tensor {
    x / (x.abs() + 1)
}
/// x * sigmoid(x).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::silu(&Tensor::from([0.0f32, 100.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 100.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn silu(x: &Tensor) -> Tensor {
    x * x.logistic()
}
/// x * tanh(softplus(x)).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::mish(&Tensor::from([0.0f32, 100.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 100.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn mish(x: &Tensor) -> Tensor {
    x * softplus(x).tanh()
}
/// log(sigmoid(x)), without underflow.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::log_sigmoid(&Tensor::from([0.0f32, -100.0]));
/// assert_eq!(y.all_close(Tensor::from([-0.6931472f32, -100.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn log_sigmoid(x: &Tensor) -> Tensor {
    -softplus(&-x)
}
/// log(1 - exp(-x)), without cancellation.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::log1mexp(&Tensor::from([0.6931472f32, 100.0]));
/// assert_eq!(y.all_close(Tensor::from([-0.6931472f32, 0.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn log1mexp(x: &Tensor) -> Tensor {
    let x = &inexact(x);
    where_(&x.lt(constant(x.dtype(), 2.0).log()), (-(-x).expm1()).log(), (-(-x).exp()).log1p())
}
/// x where x > 0, else alpha * (exp(x) - 1).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::elu(&Tensor::from([-100.0f32, 2.0]), 1.0);
/// assert_eq!(y.all_close(Tensor::from([-1.0f32, 2.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn elu(x: &Tensor, alpha: f64) -> Tensor {
    // the exponential is evaluated at 0 where it is not selected, so that its derivative cannot
    // overflow
    let safe = where_(&x.gt(0), 0.0, x);
    where_(&x.gt(0), x, alpha * safe.expm1())
}
/// x where x >= 0, else slope * x.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::leaky_relu(&Tensor::from([-1.0f32, 2.0]), 0.1);
/// assert_eq!(y.all_close(Tensor::from([-0.1f32, 2.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn leaky_relu(x: &Tensor, slope: f64) -> Tensor {
    where_(&x.ge(0), x, slope * x)
}
/// max(x, 0) + alpha * min(0, exp(x / alpha) - 1).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::celu(&Tensor::from([-100.0f32, 2.0]), 2.0);
/// assert_eq!(y.all_close(Tensor::from([-2.0f32, 2.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn celu(x: &Tensor, alpha: f64) -> Tensor {
    x.maximum(0.0) + alpha * (x.minimum(0.0) / alpha).expm1()
}
/// 1.0507 * elu(x, 1.6733): self-normalising (Klambauer et al., 2017).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::selu(&Tensor::from([-100.0f32, 1.0]));
/// assert_eq!(y.all_close(Tensor::from([-1.7580993f32, 1.050701]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn selu(x: &Tensor) -> Tensor {
    1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)
}
/// x times the standard normal distribution function (Hendrycks and Gimpel, 2016), by its approximation with tanh.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::gelu(&Tensor::from([0.0f32, 10.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 10.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn gelu(x: &Tensor) -> Tensor {
    let x = &inexact(x);
    let c = |v: f64| constant(x.dtype(), v);
    let inner = c((2.0 / std::f64::consts::PI).sqrt()) * (x + c(0.044715) * x.powi(3));
    x * (c(0.5) * (c(1.0) + inner.tanh()))
}
/// The same, by the error function.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::gelu_exact(&Tensor::from([0.0f32, 1.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 0.8413447]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn gelu_exact(x: &Tensor) -> Tensor {
    let x = &inexact(x);
    0.5 * x * (-x * constant(x.dtype(), 0.5f64.sqrt())).erfc()
}
/// The first half along an axis, times the sigmoid of the second (Dauphin et al., 2017).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::glu(&Tensor::from([3.0f32, 0.0]), 0);
/// assert_eq!(y.all_close(Tensor::from([1.5f32]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn glu(x: &Tensor, axis: i64) -> Tensor {
    let halves = x.split(2, axis);
    &halves[0] * halves[1].logistic()
}
/// relu6(x + 3) / 6.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::hard_sigmoid(&Tensor::from([-5.0f32, 0.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 0.5]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn hard_sigmoid(x: &Tensor) -> Tensor {
    relu6(&(x + 3.0)) / 6.0
}
/// x * hard_sigmoid(x).
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::hard_silu(&Tensor::from([-5.0f32, 6.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 6.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn hard_silu(x: &Tensor) -> Tensor {
    x * hard_sigmoid(x)
}
/// -1 where x < -1, 1 where x > 1, else x.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::hard_tanh(&Tensor::from([-5.0f32, 0.5]));
/// assert_eq!(y.all_close(Tensor::from([-1.0f32, 0.5]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn hard_tanh(x: &Tensor) -> Tensor {
    where_(&x.gt(1), 1, where_(&x.lt(-1), -1, x))
}
/// (x + sqrt(x^2 + b)) / 2.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::squareplus(&Tensor::from([0.0f32, 3.0]), 4.0);
/// assert_eq!(y.all_close(Tensor::from([1.0f32, 3.3027756]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn squareplus(x: &Tensor, b: f64) -> Tensor {
    let x = inexact(x);
    if x.dtype().is_complex() {
        return (&x + (x.square() + b).sqrt()) / 2;
    }
    let rule = move |x: &Tensor, dx: &Tensor| (squareplus_value(x, b), squareplus_slope(x, b) * dx);
    ok(custom_jvp(move |x: &Tensor| squareplus_value(x, b), rule)(&x))
}
#[track_caller]
fn squareplus_root(x: &Tensor, b: f64) -> Tensor {
    x.hypot(constant(x.dtype(), b).sqrt())
}
/// The sum of x and the root cancels below 0.
#[track_caller]
fn squareplus_value(x: &Tensor, b: f64) -> Tensor {
    let half = x.abs() / 2 + squareplus_root(x, b) / 2;
    where_(&x.lt(0), constant(x.dtype(), b / 4.0) / &half, &half)
}
#[track_caller]
fn squareplus_slope(x: &Tensor, b: f64) -> Tensor {
    let value = move |x: &Tensor| squareplus_value(x, b) / squareplus_root(x, b);
    let rule = move |x: &Tensor, dx: &Tensor| {
        let root = squareplus_root(x, b);
        (value(x), constant(x.dtype(), b) / &root * dx / &root / &root / 2)
    };
    ok(custom_jvp(value, rule)(x))
}

/// 0 below -1, x above 1, (x + 1)^2 / 4 between.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::sparse_plus(&Tensor::from([-2.0f32, 0.0, 2.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 0.25, 2.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn sparse_plus(x: &Tensor) -> Tensor {
    where_(&x.le(-1.0), 0.0, where_(&x.ge(1.0), x, (x + 1.0).powi(2) / 4))
}
/// 0 below -1, 1 above 1, (x + 1) / 2 between.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::sparse_sigmoid(&Tensor::from([-2.0f32, 0.0, 2.0]));
/// assert_eq!(y.all_close(Tensor::from([0.0f32, 0.5, 1.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn sparse_sigmoid(x: &Tensor) -> Tensor {
    0.5 * (x + 1.0).clip(0.0, 2.0)
}
/// log(mean(exp(x))), along an axis.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::logmeanexp(&Tensor::from([1000.0f32, 1000.0]), 0);
/// assert_eq!(y.all_close(Tensor::from(1000.0f32), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn logmeanexp(x: &Tensor, axis: i64) -> Tensor {
    let total = x.log_sum_exp_axes(axis);
    let n = x.shape()[crate::tensor::axis_of(axis, x.rank())];
    &total - constant(total.dtype(), n as f64).log()
}

#[track_caller]
fn shifted(x: &Tensor, axis: i64) -> Tensor {
    let x = inexact(x);
    &x - x.max_keep(axis).stop_gradient()
}
/// exp(x) / sum(exp(x)), along an axis.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::softmax(&Tensor::from([0.0f32, 0.0]), 0);
/// assert_eq!(y.all_close(Tensor::from([0.5f32, 0.5]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn softmax(x: &Tensor, axis: i64) -> Tensor {
    let e = shifted(x, axis).exp();
    &e / e.sum_keep(axis)
}
/// x - log(sum(exp(x))), along an axis.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::log_softmax(&Tensor::from([0.0f32, 0.0]), 0);
/// assert_eq!(y.all_close(Tensor::from([-0.6931472f32, -0.6931472]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn log_softmax(x: &Tensor, axis: i64) -> Tensor {
    let x = shifted(x, axis);
    &x - x.exp().sum_keep(axis).log()
}
/// 1 at the positions that x names, 0 elsewhere (float32), along a new last axis.
#[track_caller]
pub fn one_hot(x: &Tensor, classes: usize) -> Tensor {
    let column = x.expand_dims(-1);
    let mut shape = vec![1; column.rank()];
    shape[column.rank() - 1] = classes;
    column.eq(Tensor::iota(&shape, column.rank() - 1, x.dtype())).astype(Dtype::F32)
}
/// (x - mean) / sqrt(variance + epsilon), along an axis.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::standardize(&Tensor::from([1.0f32, 3.0]), -1, 0.0);
/// assert_eq!(y.all_close(Tensor::from([-1.0f32, 1.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn standardize(x: &Tensor, axis: i64, epsilon: f64) -> Tensor {
    let x = inexact(x);
    let mean = x.mean_keep(axis);
    // rounding may put a small variance below 0
    let variance = (x.square().mean_keep(axis) - mean.square()).maximum(0);
    (&x - mean) * (variance + epsilon).rsqrt()
}
/// Standardised over the last axis, scaled and shifted.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let x = Tensor::from([[1.0f32, 3.0]]);
/// let y = nn::layer_norm(&x, &Tensor::from([2.0f32, 2.0]), &Tensor::from([0.0f32, 1.0]), 0.0);
/// assert_eq!(y.to_vec::<f32>()?, [-2.0, 3.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn layer_norm(x: &Tensor, scale: &Tensor, shift: &Tensor, epsilon: f64) -> Tensor {
    standardize(x, -1, epsilon) * scale + shift
}
/// x / sqrt(mean(x^2) + epsilon) over the last axis, scaled.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::rms_norm(&Tensor::from([3.0f32, -3.0]), &Tensor::ones(&[2]), 0.0);
/// assert_eq!(y.all_close(Tensor::from([1.0f32, -1.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn rms_norm(x: &Tensor, scale: &Tensor, epsilon: f64) -> Tensor {
    x * (x.square().mean_keep(-1) + epsilon).rsqrt() * scale
}
/// x with each element zeroed with probability `rate`, the others scaled up.
///
/// ```
/// use ferrax::{Tensor, nn, random};
/// let y = nn::dropout(&random::key(0), &Tensor::ones(&[1000]), 0.2);
/// assert!(y.eq(0.0).sum().item() > 100.0 && (y.mean().item() - 1.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn dropout(key: &Tensor, x: &Tensor, rate: f64) -> Tensor {
    let keep = random::bernoulli(key, 1.0 - rate, x.shape());
    where_(&keep, x / (1.0 - rate), 0.0)
}
/// x @ w + b.
#[track_caller]
pub fn linear(x: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
    x.matmul(w) + b
}
/// Largest elements over windows of the two spatial axes of `NHWC`.
///
/// ```
/// use ferrax::{Padding, Tensor, nn};
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).reshape(&[1, 2, 2, 1]);
/// assert_eq!(nn::max_pool(&x, (2, 2), (2, 2), &Padding::Valid).item(), 4.0);
/// ```
#[track_caller]
pub fn max_pool(x: &Tensor, window: (usize, usize), strides: (usize, usize), padding: &Padding) -> Tensor {
    x.max_windows(&[1, window.0, window.1, 1], &[1, strides.0, strides.1, 1], padding)
}
/// Means over windows of the two spatial axes of `NHWC`.
///
/// ```
/// use ferrax::{Padding, Tensor, nn};
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).reshape(&[1, 2, 2, 1]);
/// assert_eq!(nn::avg_pool(&x, (2, 2), (2, 2), &Padding::Valid).item(), 2.5);
/// ```
#[track_caller]
pub fn avg_pool(x: &Tensor, window: (usize, usize), strides: (usize, usize), padding: &Padding) -> Tensor {
    x.mean_windows(&[1, window.0, window.1, 1], &[1, strides.0, strides.1, 1], padding)
}

/// -log softmax(logits) at each label: logits (.., classes), labels (..) of integers.
#[track_caller]
pub fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    if logits.rank() != labels.rank() + 1 {
        raise(Error::value(format!(
            "cross_entropy takes logits (.., classes) and labels (..), got {} and {}",
            logits.aval().long(),
            labels.aval().long()
        )));
    }
    let log = log_softmax(logits, -1);
    -log.take_along_axis(&labels.expand_dims(-1), -1).squeeze(-1)
}
/// -log of the probability of labels in [0, 1], given logits.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::sigmoid_cross_entropy(&Tensor::from([0.0f32, 100.0]), &Tensor::from([1.0f32, 1.0]));
/// assert_eq!(y.all_close(Tensor::from([0.6931472f32, 0.0]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn sigmoid_cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    -(labels * log_sigmoid(logits)) - (1.0 - labels) * log_sigmoid(&-logits)
}
/// Squared differences.
///
/// ```
/// use ferrax::{Tensor, nn};
/// assert_eq!(nn::squared_error(&Tensor::from([1.0f32, 5.0]), &Tensor::from([3.0f32, 5.0])).to_vec::<f32>()?, [4.0, 0.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn squared_error(x: &Tensor, target: &Tensor) -> Tensor {
    (x - target).square()
}
/// Squared (halved) up to delta, linear beyond.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let y = nn::huber(&Tensor::from([1.0f32, 10.0]), &Tensor::from(0.0f32), 2.0);
/// assert_eq!(y.to_vec::<f32>()?, [0.5, 18.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn huber(x: &Tensor, target: &Tensor, delta: f64) -> Tensor {
    let d = (x - target).abs();
    let q = d.minimum(delta);
    0.5 * q.square() + delta * (d - &q)
}

/// softmax(q k' / sqrt(H)) v over heads: query (B, T, N, H), key and value (B, S, K, H), where K divides N. `mask` broadcasts to
/// (B, N, T, S), true where a query may see a key; `causal` lets position t see those up to t.
#[track_caller]
pub fn dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
) -> Tensor {
    let (&[b, t, n, h], &[_, s, k, _]) = (query.shape(), key.shape()) else {
        raise(Error::value(format!(
            "attention takes queries (B, T, N, H) and keys (B, S, K, H), got {} and {}",
            query.aval().long(),
            key.aval().long()
        )))
    };
    if key.shape() != value.shape() || [b, s, k, h] != key.shape() || k == 0 || !n.is_multiple_of(k) {
        raise(Error::value(format!(
            "keys and values of shape (B, S, K, H), where K divides N, go with queries (B, T, N, H); got {} and {} for {}",
            key.aval().long(),
            value.aval().long(),
            query.aval().long()
        )));
    }
    let grouped = query.reshape(&[b, t, k, n / k, h]);
    let scores = einsum("btkgh,bskh->bkgts", &[&grouped, key]).reshape(&[b, n, t, s]);
    let mut scores = &scores * constant(scores.dtype(), 1.0 / (h as f64).sqrt());
    let order = || Tensor::arange(t, Dtype::I32).expand_dims(-1).ge(Tensor::arange(s, Dtype::I32));
    let seen = match (mask, causal) {
        (Some(m), true) => Some(m & order()),
        (Some(m), false) => Some(m.clone()),
        (None, true) => Some(order()),
        (None, false) => None,
    };
    if let Some(seen) = seen {
        let shape = [b, n, t, s];
        scores = where_(&seen.broadcast_to(&shape), &scores, constant(Dtype::F32, -0.7 * f32::MAX as f64));
    }
    let weights = softmax(&scores.astype(Dtype::F32), -1).astype(key.dtype());
    let out = einsum("bkgts,bskh->btkgh", &[&weights.reshape(&[b, k, n / k, t, s]), value]);
    out.reshape(query.shape())
}

/// Inputs and outputs of a unit; axes before the last two count for both.
fn fans(shape: &[usize]) -> (f64, f64) {
    let n = shape.len();
    let field = shape[..n.saturating_sub(2)].iter().product::<usize>() as f64;
    match shape {
        [.., i, o] => (*i as f64 * field, *o as f64 * field),
        _ => (1.0, 1.0),
    }
}
#[track_caller]
fn scaled_uniform(key: &Tensor, shape: &[usize], dtype: Dtype, variance: f64) -> Tensor {
    random::uniform_between(key, shape, dtype, -1.0, 1.0) * (3.0 * constant(dtype, variance)).sqrt()
}
#[track_caller]
fn scaled_normal(key: &Tensor, shape: &[usize], dtype: Dtype, variance: f64) -> Tensor {
    // the standard deviation of a normal cut to (-2, 2)
    let stddev = constant(dtype, variance).sqrt() / constant(dtype, 0.87962566103423978);
    random::truncated_normal(key, -2.0, 2.0, shape, dtype) * stddev
}
macro_rules! initialisers {
    ($($f:ident $draw:ident $fan:expr, $doc:literal;)*) => { $(
        #[doc = concat!(
            $doc, "\n\n```\nuse ferrax::{Dtype, nn, random};\nlet w = nn::", stringify!($f),
            "(&random::key(0), &[300, 200], Dtype::F32);\nlet mean = w.mean().item(); // none, and a spread of about 1 / sqrt(fan)\n",
            "assert!(mean.abs() < 1e-3 && (0.04..0.1).contains(&w.std().item()));\n```"
        )]
        #[track_caller]
        pub fn $f(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
            let fan: fn(f64, f64) -> f64 = $fan;
            let (i, o) = fans(shape);
            $draw(key, shape, dtype, 1.0 / fan(i, o))
        }
    )* }
}
initialisers! {
    glorot_uniform scaled_uniform |i, o| (i + o) / 2.0, "Weights of Glorot and Bengio (2010), uniform. The last two axes are inputs and outputs.";
    glorot_normal scaled_normal |i, o| (i + o) / 2.0, "Weights of Glorot and Bengio (2010), normal.";
    lecun_uniform scaled_uniform |i, _| i, "Weights of LeCun et al. (1998), uniform.";
    lecun_normal scaled_normal |i, _| i, "Weights of LeCun et al. (1998), normal.";
    he_uniform scaled_uniform |i, _| i / 2.0, "Weights of He et al. (2015), uniform.";
    he_normal scaled_normal |i, _| i / 2.0, "Weights of He et al. (2015), normal.";
}
/// Zeros but for the middle of the window, which is an orthogonal matrix times `scale` (Xiao et al., 2018). The shape is that of a kernel, window
/// first, of three to five axes.
///
/// ```
/// use ferrax::{Dtype, Tensor, nn, random, s};
/// let w = nn::delta_orthogonal(&random::key(0), &[3, 2, 4], Dtype::F32, 1.0);
/// let middle = w.slice(s![1]);
/// let unit = middle.matmul(middle.t());
/// assert_eq!(unit.all_close(Tensor::eye(2, 2), 1e-5, 1e-5).item(), 1.0);
/// assert_eq!(w.slice(s![0]).abs().sum().item(), 0.0);
/// ```
///
/// # Panics
/// For another number of axes, or more inputs than outputs.
#[track_caller]
pub fn delta_orthogonal(key: &Tensor, shape: &[usize], dtype: Dtype, scale: f64) -> Tensor {
    let (window, [i, o]) = match shape {
        [window @ .., i, o] if (1..=3).contains(&window.len()) => (window, [*i, *o]),
        _ => raise(Error::value("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")),
    };
    if o < i {
        raise(Error::value("`fan_in` must be less or equal than `fan_out`. "));
    }
    let matrix = random::orthogonal(key, i, o, &[], dtype) * constant(dtype, scale);
    let centre: Vec<Subscript> = window.iter().map(|n| Subscript::Int((*n as i64 - 1) / 2)).collect();
    Tensor::zeros_in(shape, dtype).at(centre).set(matrix)
}
/// A batch of products of matrices whose terms come in blocks, each with a scale (MXFP8 and its like): a `[B, M, K]`, b `[B, N, K]`, their scales
/// `[B, M, K / block]` and `[B, N, K / block]`; float32 `[B, M, N]`.
///
/// ```
/// use ferrax::{Tensor, nn};
/// let (x, scales) = (Tensor::ones(&[1, 1, 4]), Tensor::from([[[0.5f32, 2.0]]]));
/// assert_eq!(nn::scaled_matmul(&x, &x, &scales, &Tensor::ones(&[1, 1, 2])).item(), 5.0);
/// ```
///
/// # Panics
/// Where these do not fit.
#[track_caller]
pub fn scaled_matmul(a: &Tensor, b: &Tensor, a_scales: &Tensor, b_scales: &Tensor) -> Tensor {
    if [a, b, a_scales, b_scales].iter().any(|x| x.rank() != 3) {
        raise(Error::value("scaled_matmul requires all inputs to be 3-dimensional arrays"));
    }
    let (k, blocks) = (a.shape()[2], a_scales.shape()[2]);
    if blocks == 0 || !k.is_multiple_of(blocks) {
        raise(Error::value(format!("the contract dimension {k} is not a multiple of that of the scales, {blocks}")));
    }
    let wide = |x: &Tensor, s: &Tensor| x.astype(Dtype::F32) * s.astype(Dtype::F32).repeat(k / blocks, -1);
    dot_general(&wide(a, a_scales), &wide(b, b_scales), (&[2], &[2]), (&[0], &[0]))
}
/// [`dot_general`] given in float32: the name under which JAX takes quantised operands, too, on GPUs that have units for them. See
/// [`scaled_matmul`] for operands and scales.
///
/// ```
/// use ferrax::{Dtype, Tensor, nn};
/// let x = Tensor::ones(&[1, 2, 32]).astype(Dtype::BF16);
/// let y = nn::scaled_dot_general(&x, &x, (&[2], &[2]), (&[0], &[0]));
/// assert_eq!((y.shape(), y.dtype()), (&[1, 2, 2][..], Dtype::F32));
/// ```
///
/// # Panics
/// Where shapes do not fit.
#[track_caller]
pub fn scaled_dot_general(
    x: &Tensor,
    y: &Tensor,
    contract: (&[usize], &[usize]),
    batch: (&[usize], &[usize]),
) -> Tensor {
    dot_general_in(x, y, contract, batch, Dtype::F32)
}
