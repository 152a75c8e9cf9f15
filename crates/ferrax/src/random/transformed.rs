//! Distributions that are short transforms of uniform draws.
use super::{Cells, Finfo, between, pair, randint, random_bits, single, tails, uniform, uniform_between};
use crate::mistakes::{ok, raise};
use crate::numpy::elementwise::broadcast_shapes;
use crate::tensor::{IntoTensor, Tensor, constant, einsum, emit_many, linalg, where_};
use crate::transforms::fori_loop;
use ferrax_ir::ops::sort::Sort;
use ferrax_ir::{Dtype, Error};
use std::f64::consts::PI;

/// Standard normal; of a complex dtype with unit variance in all.
#[track_caller]
pub fn normal(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    if dtype.is_complex() {
        let (k_re, k_im) = pair(key);
        let (re, im) = (normal(&k_re, shape, dtype.real()), normal(&k_im, shape, dtype.real()));
        let i = constant(dtype.real(), 0.0).full_array().complex(constant(dtype.real(), 1.0).full_array());
        return (re.astype(dtype) + i * im.astype(dtype)) / constant(dtype.real(), 2f64.sqrt()).astype(dtype);
    }
    let info = Finfo::of("normal", dtype);
    let u = uniform_between(key, shape, dtype, info.epsneg() - 1.0, 1.0);
    constant(dtype, 2f64.sqrt()) * u.erf_inv()
}
/// Standard normal, cut to (low, high), which broadcast to the shape.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::truncated_normal(&random::key(0), -1.0, 2.0, &[100], Dtype::F32);
/// assert!(x.min().item() > -1.0 && x.max().item() < 2.0);
/// ```
#[track_caller]
pub fn truncated_normal(
    key: &Tensor,
    low: impl IntoTensor,
    high: impl IntoTensor,
    shape: &[usize],
    dtype: Dtype,
) -> Tensor {
    Finfo::of("truncated_normal", dtype);
    let (low, high) = (low.into_tensor().astype(dtype), high.into_tensor().astype(dtype));
    let root2 = constant(dtype, 2f64.sqrt());
    let (a, b) = ((&low / &root2).erf(), (&high / &root2).erf());
    let cells = Cells::new(key, shape, dtype);
    let u = between(&cells.unit, &a, &b);
    let out = tails::refined(root2 * u.erf_inv(), &u, &cells, &low, &high);
    // rounding must not put a draw on a bound
    let low = low.stop_gradient().nextafter(constant(dtype, f64::INFINITY));
    let high = high.stop_gradient().nextafter(constant(dtype, f64::NEG_INFINITY));
    out.clip(low, high)
}
/// Exponential, of rate 1.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::exponential(&random::key(0), &[2000], Dtype::F32);
/// assert!((x.mean().item() - 1.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn exponential(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    -Cells::new(key, shape, dtype).log_left()
}
/// Standard Gumbel.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::gumbel(&random::key(0), &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.5772).abs() < 0.1);
/// ```
#[track_caller]
pub fn gumbel(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let cells = Cells::new(key, shape, dtype);
    -(-cells.log_of(&cells.open_unit())).log()
}
/// Standard Laplace.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::laplace(&random::key(0), &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn laplace(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let info = Finfo::of("laplace", dtype);
    let cells = Cells::new(key, shape, dtype);
    let u = between(&cells.unit, &constant(dtype, info.epsneg() - 1.0), &constant(dtype, 1.0));
    // In the outer cells 1 - |u| is 2 epsilon times the distance from the end in cells.
    let inside = where_(&cells.first, constant(dtype, 1.0) - &cells.rest, where_(&cells.last, &cells.rest, u.abs()));
    let y = (-inside).log1p();
    u.sign() * where_(&(&cells.first | &cells.last), &y + constant(dtype, (2.0 * cells.eps).ln()), &y)
}
/// Standard logistic.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::logistic(&random::key(0), &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.0).abs() < 0.2);
/// ```
#[track_caller]
pub fn logistic(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let cells = Cells::new(key, shape, dtype);
    // The last cell is the first one's image.
    let u = where_(&cells.last, cells.below_1(), cells.above_0(&cells.open_unit()));
    let y = u.log() - (-&u).log1p();
    where_(&cells.last, -&y, &y)
}
/// Standard Cauchy.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::cauchy(&random::key(0), &[2000], Dtype::F32); // which has no mean
/// assert!(x.median(0).item().abs() < 0.1);
/// ```
#[track_caller]
pub fn cauchy(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let cells = Cells::new(key, shape, dtype);
    let u = between(&cells.unit, &constant(dtype, cells.eps), &constant(dtype, 1.0));
    let y = (constant(dtype, PI) * (&u - constant(dtype, 0.5))).tan();
    // In the outer cells tan(pi (u - 1/2)) is 1 / (pi d), d the distance from the end.
    let far = |d: Tensor| constant(dtype, 1.0 / PI) / d;
    where_(&cells.first, -far(cells.above_0(&u)), where_(&cells.last, far(cells.below_1()), y))
}
/// True with probability p (floating point), which broadcasts to the shape.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::bernoulli(&random::key(0), 0.3, &[2000]);
/// assert!((x.dtype(), (x.mean().item() - 0.3).abs() < 0.05) == (Dtype::BOOL, true));
/// ```
#[track_caller]
pub fn bernoulli(key: &Tensor, p: impl IntoTensor, shape: &[usize]) -> Tensor {
    let p = p.into_tensor().strong();
    if !p.dtype().is_float() {
        raise(Error::type_error(format!(
            "bernoulli probability `p` must have a floating dtype, got {}.",
            p.dtype().long()
        )));
    }
    uniform(key, shape, p.dtype()).lt(p)
}
/// -1 or 1, in any dtype.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::rademacher(&random::key(0), &[100], Dtype::F32);
/// assert_eq!(x.abs().sum().item(), 100.0);
/// ```
#[track_caller]
pub fn rademacher(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    constant(dtype, 2.0) * bernoulli(key, 0.5, shape).astype(dtype) - constant(dtype, 1.0)
}
/// Pareto, of shape b and scale 1.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::pareto(&random::key(0), 3.0, &[2000], Dtype::F32);
/// assert!(x.min().item() >= 1.0 && (x.mean().item() - 1.5).abs() < 0.1);
/// ```
#[track_caller]
pub fn pareto(key: &Tensor, b: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    (exponential(key, shape, dtype) / b.into_tensor().astype(dtype)).exp()
}
/// Weibull, of a scale and a concentration (shape).
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::weibull_min(&random::key(0), 2.0, 1.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 2.0).abs() < 0.2);
/// ```
#[track_caller]
pub fn weibull_min(
    key: &Tensor,
    scale: impl IntoTensor,
    concentration: impl IntoTensor,
    shape: &[usize],
    dtype: Dtype,
) -> Tensor {
    let e = exponential(key, shape, dtype);
    let power = 1.0 / concentration.into_tensor().astype(dtype);
    e.pow(power) * scale.into_tensor().astype(dtype)
}
/// Rayleigh, of a scale.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::rayleigh(&random::key(0), 2.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 2.5066).abs() < 0.1);
/// ```
#[track_caller]
pub fn rayleigh(key: &Tensor, scale: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let log = Cells::new(key, shape, dtype).log();
    scale.into_tensor().astype(dtype) * (log * constant(dtype, -2.0)).sqrt()
}
/// The number of trials (int32) up to the first success, each of probability p.
///
/// ```
/// use ferrax::random;
/// let x = random::geometric(&random::key(0), 0.25, &[2000]);
/// assert!(x.min().item() == 1.0 && (x.mean().item() - 4.0).abs() < 0.3);
/// ```
#[track_caller]
pub fn geometric(key: &Tensor, p: impl IntoTensor, shape: &[usize]) -> Tensor {
    let p = crate::tensor::inexact(&p.into_tensor().strong());
    let log = Cells::new(key, shape, p.dtype()).log();
    let trials = (log / (-&p).log1p()).floor() + constant(p.dtype(), 1.0);
    trials.astype(Dtype::I32)
}
/// Triangular on [left, right], with its peak at mode.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::triangular(&random::key(0), 0.0, 1.0, 5.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 2.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn triangular(
    key: &Tensor,
    left: impl IntoTensor,
    mode: impl IntoTensor,
    right: impl IntoTensor,
    shape: &[usize],
    dtype: Dtype,
) -> Tensor {
    let [left, mode, right] =
        [left.into_tensor(), mode.into_tensor(), right.into_tensor()].map(|x| x.astype(dtype).broadcast_to(shape));
    let peak = (&mode - &left) / (&right - &left);
    let u = uniform(key, shape, dtype);
    let rising = &left + (&u * (&right - &left) * (&mode - &left)).sqrt();
    let falling = &right - ((1.0 - &u) * (&right - &left) * (&right - &mode)).sqrt();
    where_(&u.lt(peak), rising, falling)
}
/// exp(sigma z), z standard normal.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::lognormal(&random::key(0), 0.5, &[2000], Dtype::F32);
/// assert!((x.log().std().item() - 0.5).abs() < 0.05);
/// ```
#[track_caller]
pub fn lognormal(key: &Tensor, sigma: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    (normal(key, shape, dtype) * sigma.into_tensor().astype(dtype)).exp()
}
/// Maxwell: the length of a standard normal vector in three dimensions.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::maxwell(&random::key(0), &[2000], Dtype::F32);
/// assert!((x.mean().item() - 1.5958).abs() < 0.1);
/// ```
#[track_caller]
pub fn maxwell(key: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let x = normal(key, &[shape, &[3]].concat(), dtype);
    (&x * &x).sum_axes(-1).sqrt()
}
/// Maxwell with a random sign, scaled and shifted; `shape` comes before the parameters' own.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::double_sided_maxwell(&random::key(0), 1.0, 2.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 1.0).abs() < 0.4);
/// ```
#[track_caller]
pub fn double_sided_maxwell(
    key: &Tensor,
    loc: impl IntoTensor,
    scale: impl IntoTensor,
    shape: &[usize],
    dtype: Dtype,
) -> Tensor {
    let (loc, scale) = (loc.into_tensor(), scale.into_tensor());
    let batch = ok(broadcast_shapes([loc.shape(), scale.shape()].into_iter())).to_vec();
    let shape = [if shape.is_empty() { &batch[..] } else { shape }, &batch].concat();
    let (k_size, k_sign) = pair(key);
    rademacher(&k_sign, &shape, dtype) * maxwell(&k_size, &shape, dtype) * scale + loc
}
/// Inverse Gaussian of the given mean, scale 1.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::wald(&random::key(0), 2.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 2.0).abs() < 0.3);
/// ```
#[track_caller]
pub fn wald(key: &Tensor, mean: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let (k_normal, k_uniform) = pair(key);
    let mean = mean.into_tensor().astype(dtype).broadcast_to(shape);
    let (v, z) = (normal(&k_normal, shape, dtype), uniform(&k_uniform, shape, dtype));
    let y = v.powi(2);
    let (y2, m2) = (y.powi(2), mean.powi(2));
    let root = (4.0 * &mean * &y + &m2 * y2).sqrt();
    let x = &mean + &m2 * &y / 2.0 - &mean / 2.0 * root;
    // Where the difference cancels, the same root without one.
    let half = &mean * &y / 2.0;
    let steep = half.gt(30.0);
    let half = where_(&steep, &half, 1.0);
    let x = where_(&steep, &mean / (1.0 + &half + (&half * (&half + 2.0)).sqrt()), x);
    where_(&z.le(&mean / (&mean + &x)), &x, m2 / &x)
}
/// Indices (int32) along an axis, with probabilities softmax(logits): one for each position of the others.
///
/// ```
/// use ferrax::{Tensor, random};
/// let logits = Tensor::from([[0.0f32, -1e9], [-1e9, 0.0]]);
/// assert_eq!(random::categorical(&random::key(0), &logits, 1).to_vec::<i32>()?, [0, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn categorical(key: &Tensor, logits: &Tensor, axis: i64) -> Tensor {
    (gumbel(key, logits.shape(), logits.dtype()) + logits).argmax(axis)
}
/// A random order of the slices along an axis.
///
/// ```
/// use ferrax::{Dtype, Tensor, random};
/// let x = random::permutation(&random::key(0), &Tensor::arange(9, Dtype::I32), 0);
/// assert_eq!(x.sort(0).to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn permutation(key: &Tensor, x: &Tensor, axis: i64) -> Tensor {
    single("permutation", key);
    let k = crate::tensor::axis_of(axis, x.rank());
    if x.rank() == 1 {
        return shuffle(key, x, axis);
    }
    x.take(&shuffle(key, &Tensor::arange(x.shape()[k], Dtype::I32), 0), axis)
}
/// A random order of the elements along an axis, of each vector on its own.
///
/// ```
/// use ferrax::{Tensor, random};
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// let y = random::shuffle(&random::key(0), &x, 1); // each row in an order of its own
/// assert_eq!(y.sort(1).array_equal(&x).item(), 1.0);
/// ```
#[track_caller]
pub fn shuffle(key: &Tensor, x: &Tensor, axis: i64) -> Tensor {
    let dimension = crate::tensor::axis_of(axis, x.rank());
    let rounds = (3.0 * (x.size().max(1) as f64).ln() / ((u32::MAX) as f64).ln()).ceil() as usize;
    let (mut key, mut x) = (key.clone(), x.clone());
    for _ in 0..rounds {
        let (next, sub) = pair(&key);
        key = next;
        let bits = random_bits(&sub, x.shape(), 32);
        x = emit_many(Sort { dimension, is_stable: true, num_keys: 1 }, &[&bits, &x]).remove(1);
    }
    x
}
/// Draws of slices along an axis: with replacement or without, and with weights (one for each slice) or equal ones.
///
/// ```
/// use ferrax::{Tensor, random};
/// let x = Tensor::from([10, 20, 30]);
/// let all = random::choice(&random::key(0), &x, &[3], false, None, 0); // without replacement
/// assert_eq!(all.sort(0).to_vec::<i32>()?, [10, 20, 30]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// If there is too little to draw from, or the weights do not fit.
#[track_caller]
pub fn choice(key: &Tensor, x: &Tensor, shape: &[usize], replace: bool, weights: Option<&Tensor>, axis: i64) -> Tensor {
    let k = crate::tensor::axis_of(axis, x.rank());
    let (n, draws) = (x.shape()[k], shape.iter().product::<usize>());
    if n == 0 && draws > 0 {
        raise(Error::value("a must be greater than 0 unless no samples are taken"));
    }
    if !replace && draws > n {
        raise(Error::value(format!(
            "Cannot take a larger sample (size {draws}) than population (size {n}) when 'replace=False'"
        )));
    }
    let into = |t: Tensor| {
        let sizes = [&x.shape()[..k], shape, &x.shape()[k + 1..]].concat();
        t.reshape(&sizes.iter().map(|n| *n as i64).collect::<Vec<_>>())
    };
    let index = match weights {
        None if replace => randint(key, shape, 0, n),
        None => return into(permutation(key, x, axis).narrow(k, 0, draws)),
        Some(p) => {
            if p.shape() != [n] {
                raise(Error::value(format!(
                    "p must be None or a 1D vector with the same size as a.shape[axis]. p has shape {} and a.shape[axis] is {n}.",
                    ferrax_ir::Dims::new(p.shape())
                )));
            }
            let p = if p.dtype().is_float() { p.clone() } else { p.astype(Dtype::F32) };
            if replace {
                let total = p.cumsum(0);
                let r = total.slice(crate::s![-1]) * (1.0 - uniform(key, shape, p.dtype()));
                total.searchsorted(r)
            } else {
                let scores = gumbel(key, &[n], p.dtype()) + p.log();
                scores.top_k(draws, 0).1.reshape(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
            }
        }
    };
    x.take(&index, axis)
}
/// Multivariate normal, by the Cholesky factor of the covariance: `shape` (to which the parameters' leading axes broadcast), then n.
///
/// ```
/// use ferrax::{Dtype, Tensor, random};
/// let cov = Tensor::from([[1.0f32, 0.9], [0.9, 1.0]]);
/// let x = random::multivariate_normal(&random::key(0), &Tensor::zeros(&[2]), &cov, &[2000], Dtype::F32);
/// assert!((x.t().cov(1) - cov).abs().max().item() < 0.1);
/// ```
#[track_caller]
pub fn multivariate_normal(key: &Tensor, mean: &Tensor, cov: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let (mean, cov) = (mean.astype(dtype), cov.astype(dtype));
    let n = mean.shape().last().copied().unwrap_or(1);
    let z = normal(key, &[shape, &[n]].concat(), dtype);
    mean + einsum("...ij,...j->...i", &[&linalg::cholesky(&cov), &z])
}
/// Orthogonal (unitary) matrices, uniform in Haar's sense: shape, then n, then m, with orthonormal columns, or rows where m > n.
///
/// ```
/// use ferrax::{Dtype, Tensor, random};
/// let q = random::orthogonal(&random::key(0), 3, 3, &[], Dtype::F32);
/// assert_eq!(q.t().matmul(&q).all_close(Tensor::eye(3, 3), 1e-5, 1e-5).item(), 1.0);
/// ```
#[track_caller]
pub fn orthogonal(key: &Tensor, n: usize, m: usize, shape: &[usize], dtype: Dtype) -> Tensor {
    let z = normal(key, &[shape, &[n.max(m), n.min(m)]].concat(), dtype);
    let start = z.zeros_like();
    // Gram and Schmidt's, each column cleaned twice against rounding
    let k = z.rank() as i64;
    let column = |j: &Tensor, q: &Tensor| {
        let at: Vec<Tensor> = (0..k).map(|a| if a == k - 1 { j.clone() } else { constant(Dtype::I32, 0.0) }).collect();
        let mut sizes = z.shape().to_vec();
        sizes[k as usize - 1] = 1;
        let mut v = z.dynamic_slice(&at, &sizes).squeeze(-1);
        for _ in 0..2 {
            let along = einsum("...ik,...i->...k", &[&q.conj(), &v]);
            v = &v - einsum("...ik,...k->...i", &[q, &along]);
        }
        let size = (&v * v.conj()).real().sum_keep(-1).sqrt().astype(z.dtype());
        q.dynamic_update(&(v / size).expand_dims(-1), &at)
    };
    let q = if z.size() == 0 { z.clone() } else { ok(fori_loop(0, n.min(m), column, &start)) };
    if n >= m { q } else { q.swap_axes(-2, -1).conj() }
}
