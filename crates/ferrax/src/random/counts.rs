//! Numbers of successes: Poisson, binomial, multinomial.
use super::{Finfo, pair, split_into, uniform};
use crate::mistakes::{ok, raise};
use crate::numpy::elementwise::broadcast_shapes;
use crate::tensor::{IntoTensor, Tensor, constant, inexact, where_};
use crate::transforms::{associative_scan, scan, while_loop};
use ferrax_ir::{Dtype, Error};
use std::f64::consts::PI;

/// Poisson (int32), of rates that broadcast to the shape.
///
/// ```
/// use ferrax::random;
/// let x = random::poisson(&random::key(0), 4.0, &[2000]);
/// assert!((x.mean().item() - 4.0).abs() < 0.2);
/// ```
#[track_caller]
pub fn poisson(key: &Tensor, rate: impl IntoTensor, shape: &[usize]) -> Tensor {
    // small rates by counting, large ones by rejection; each lane runs both, at a harmless rate where the other one's result is taken
    let rate = rate.into_tensor().astype(Dtype::F32).broadcast_to(shape);
    let small = rate.is_nan() | rate.lt(10.0);
    let counted = knuth(key, &where_(&small, &rate, 0.0), shape);
    let rejected = poisson_rejection(key, &where_(&small, 1e5, &rate), shape);
    let zero = Tensor::zeros_in(shape, Dtype::I32);
    where_(&rate.eq(0.0), zero, where_(&small, counted, rejected))
}
/// Knuth (TAOCP 3.4.1): how many uniforms until their product falls below exp(-rate).
#[track_caller]
fn knuth(key: &Tensor, rate: &Tensor, shape: &[usize]) -> Tensor {
    type State = (Tensor, Tensor, Tensor, Tensor);
    let least = -rate;
    let step = |(i, k, key, log): &State| {
        let (key, sub) = pair(key);
        let k = where_(&log.gt(&least), k + 1, k);
        (i + 1, k, key, log + uniform(&sub, shape, rate.dtype()).log())
    };
    let go = |(i, _, _, log): &State| log.gt(&least).any() & i.lt(i32::MAX);
    let start = (
        constant(Dtype::I32, 0.0),
        Tensor::zeros_in(shape, Dtype::I32),
        key.clone(),
        Tensor::zeros_in(shape, rate.dtype()),
    );
    ok(while_loop(go, step, &start)).1 - 1
}
/// From here on the terms of k log(rate) - rate - log(k!) are so large that their rounding decides which draws are accepted.
const LARGE_RATE: f64 = 1e4;
/// The same for large rates, about k = rate (Loader 2000).
#[track_caller]
fn log_density(k: &Tensor, rate: &Tensor) -> Tensor {
    let k = k.maximum(10.0);
    powers(&k, rate) - 0.5 * (2.0 * PI * &k).log() - 1.0 / (12.0 * &k)
}
/// k log(mean / k) - mean + k, without cancellation.
#[track_caller]
fn powers(k: &Tensor, mean: &Tensor) -> Tensor {
    let t = (mean - k) / k;
    let close = t.abs().lt(0.1);
    // log(1 + t) = 2 (s + s^3 / 3 + ..), whose first term is t - s t
    let near = where_(&close, &t, 0.0);
    let s = &near / (&near + 2.0);
    let square = &s * &s;
    let series = 1.0 / 3.0 + &square * (0.2 + &square * (1.0 / 7.0 + &square / 9.0));
    k * where_(&close, 2.0 * &s * &square * series - &t * &s, where_(&close, 0.0, &t).log1p() - &t)
}
/// Hoermann (1993), transformed rejection with squeeze (PTRS).
#[track_caller]
fn poisson_rejection(key: &Tensor, rate: &Tensor, shape: &[usize]) -> Tensor {
    type State = (Tensor, Tensor, Tensor, Tensor);
    let d = rate.dtype();
    let log_rate = rate.log();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * &b;
    let inverse = 1.1239 + 1.1328 / (&b - 3.4);
    let v_r = 0.9277 - 3.6224 / (&b - 2.0);
    let step = |(i, kept, accepted, key): &State| {
        let keys = split_into(key, &[3]).unstack(0);
        let u = uniform(&keys[1], shape, d) - 0.5;
        let v = uniform(&keys[2], shape, d);
        let us = 0.5 - u.abs();
        let k = ((2.0 * &a / &us + &b) * &u + rate + 0.43).floor();
        let s = (&v * &inverse / (&a / (&us * &us) + &b)).log();
        let density = -rate + &k * &log_rate - (&k + 1.0).lgamma();
        let density = where_(&rate.lt(LARGE_RATE), density, log_density(&k, rate));
        let surely = us.ge(0.07) & v.le(&v_r);
        let never = k.lt(0.0) | (us.lt(0.013) & v.gt(&us));
        let accept = surely | (!never & s.le(density));
        (i + 1, where_(&accept, &k, kept), accepted | accept, keys[0].clone())
    };
    let go = |(i, _, accepted, _): &State| (!accepted).any() & i.lt(i32::MAX);
    let start = (
        constant(Dtype::I32, 0.0),
        constant(d, -1.0).broadcast_to(shape),
        Tensor::zeros_in(shape, Dtype::BOOL),
        key.clone(),
    );
    ok(while_loop(go, step, &start)).1.astype(Dtype::I32)
}

/// How many of n trials of probability p succeed, in a float dtype; nan where n is negative or p no probability.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::binomial(&random::key(0), 10, 0.3, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 3.0).abs() < 0.2);
/// ```
#[track_caller]
pub fn binomial(key: &Tensor, n: impl IntoTensor, p: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    Finfo::of("binomial", dtype);
    let both = crate::tensor::promote(&[&n.into_tensor(), &p.into_tensor()]);
    let [n, p] = [&both[0], &both[1]].map(|x| inexact(&x.strong()).broadcast_to(shape));
    // successes and failures change places so that q <= 1/2; each of the two methods runs at a harmless point in the other one's lanes
    let flipped = !p.lt(0.5);
    let q = where_(&flipped, 1.0 - &p, &p);
    let valid = n.ge(0.0) & q.ge(0.0);
    let endless = n.is_inf();
    let safe = where_(&q.ge(0.0), &q, 0.01);
    let few = !n.ge(0.0) | (&n * &safe).le(10.0);
    let trials = n.floor();
    let counted = inversion(key, &where_(&few, &trials, 0.0), &safe);
    let many = !&few & !&endless;
    let rejected = rejection(key, &where_(&many, &trials, 10000.0), &where_(&many, &safe, 0.5));
    let count = where_(&few, counted, rejected).astype(dtype);
    let count = where_(&flipped, trials.astype(dtype) - &count, &count);
    // of infinitely many trials infinitely many succeed, unless none can
    let all = where_(&p.gt(0.0), constant(dtype, f64::INFINITY), constant(dtype, 0.0));
    let count = where_(&endless, all, count);
    where_(&valid, count, f64::NAN)
}
/// Devroye (1986, X.4.3): geometric waiting times until n trials are used up.
#[track_caller]
fn inversion(key: &Tensor, n: &Tensor, q: &Tensor) -> Tensor {
    type State = (Tensor, Tensor, Tensor);
    let log1_q = (-q).log1p();
    let step = |(trials, successes, key): &State| {
        let (sub, key) = pair(key);
        let successes = where_(&trials.le(n), successes + 1.0, successes);
        (trials + (uniform(&sub, n.shape(), n.dtype()).log() / &log1_q).ceil(), successes, key)
    };
    let start = (n.zeros_like(), n.zeros_like(), key.clone());
    ok(while_loop(|s: &State| s.0.le(n).any(), step, &start)).1 - 1.0
}
/// log(k!) less Stirling's approximation to it, for k = 0 .. 9; the value at 9 serves for larger k,
/// as in JAX.
const STIRLING_TAIL: [f64; 10] = [
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.0207906721037650,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
];
#[track_caller]
fn stirling_tail(k: &Tensor) -> Tensor {
    let table = Tensor::from(STIRLING_TAIL).astype(k.dtype());
    table.take(&k.clip(0.0, 9.0).astype(Dtype::I32), 0)
}
/// Above it the rounding of the logarithms times the numbers of trials would decide in single precision which draws are accepted.
const MANY_TRIALS: f64 = 1e5;
/// The logarithm of the probability of k, up to what does not depend on it, for k and n - k of 10 and more.
#[track_caller]
fn log_probability(k: &Tensor, n: &Tensor, q: &Tensor) -> Tensor {
    let rest = n - k;
    let spread = 0.5 * (k * (&rest / n)).log();
    powers(k, &(n * q)) + powers(&rest, &(n * (1.0 - q))) - spread - 1.0 / (12.0 * k) - 1.0 / (12.0 * &rest)
}
/// Hoermann (1993), transformed rejection with squeeze (BTRS), for n q > 10.
#[track_caller]
fn rejection(key: &Tensor, n: &Tensor, q: &Tensor) -> Tensor {
    type State = (Tensor, Tensor, Tensor);
    let spread = (n * q * (1.0 - q)).sqrt();
    let b = 1.15 + 2.53 * &spread;
    let a = -0.0873 + 0.0248 * &b + 0.01 * q;
    let c = n * q + 0.5;
    let v_r = 0.92 - 4.2 / &b;
    let r = q / (1.0 - q);
    let alpha = (2.83 + 5.1 / &b) * &spread;
    let m = ((n + 1.0) * q).floor();
    let step = |(kept, accepted, key): &State| {
        let keys = split_into(key, &[3]).unstack(0);
        let u = uniform(&keys[1], n.shape(), n.dtype()) - 0.5;
        let v = uniform(&keys[2], n.shape(), n.dtype());
        let us = 0.5 - u.abs();
        let k = ((2.0 * &a / &us + &b) * &u + &c).floor();
        let log_v = (&v * &alpha / (&a / (&us * &us) + &b)).log();
        let rest = n - &m + 1.0;
        let bound = (&m + 0.5) * ((&m + 1.0) / (&r * &rest)).log()
            + (n + 1.0) * (&rest / (n - &k + 1.0)).log()
            + (&k + 0.5) * (&r * (n - &k + 1.0) / (&k + 1.0)).log()
            + stirling_tail(&m)
            + stirling_tail(&(n - &m))
            - stirling_tail(&k)
            - stirling_tail(&(n - &k));
        let bound = if n.dtype() == Dtype::F64 {
            bound
        } else {
            let inner = n.gt(MANY_TRIALS) & k.ge(10.0) & (n - &k).ge(10.0);
            let about = log_probability(&where_(&inner, &k, &m), n, q) - log_probability(&m, n, q);
            where_(&inner, about, bound)
        };
        let accept = (us.ge(0.07) & v.le(&v_r)) | (k.ge(0.0) & k.le(n) & log_v.le(bound));
        // the last draw that is accepted stays, so that a lane's draw depends on how long its neighbours take; such are JAX's numbers
        (where_(&accept, &k, kept), accepted | accept, keys[0].clone())
    };
    let start = (n.full_like(-1.0), Tensor::zeros_in(n.shape(), Dtype::BOOL), key.clone());
    ok(while_loop(|s: &State| !s.1.all(), step, &start)).0
}
/// Counts among k outcomes in n trials: p has shape (.., k) and sums to 1; n broadcasts to its leading axes.
///
/// ```
/// use ferrax::{Dtype, Tensor, random};
/// let x = random::multinomial(&random::key(0), 100, &Tensor::from([0.5f32, 0.3, 0.2]), Dtype::F32);
/// assert_eq!((x.shape(), x.sum().item()), (&[3][..], 100.0));
/// ```
///
/// # Panics
/// For one probability alone, and shapes that do not fit.
#[track_caller]
pub fn multinomial(key: &Tensor, n: impl IntoTensor, p: &Tensor, dtype: Dtype) -> Tensor {
    let both = crate::tensor::promote(&[&n.into_tensor(), p]);
    let [n, p] = [&both[0], &both[1]].map(|x| inexact(&x.strong()));
    let Some(k) = p.rank().checked_sub(1) else {
        raise(Error::value("multinomial takes a vector of probabilities, or several"))
    };
    let batch = ok(broadcast_shapes([n.shape(), &p.shape()[..k]].into_iter())).to_vec();
    let shape = [&batch[..], &p.shape()[k..]].concat();
    // each outcome is binomial given those before it, with its share of the probability that is left
    let left = ok(associative_scan(|a: &Tensor, b: &Tensor| a + b, &p, -1, true));
    let share = (&p / where_(&left.eq(0.0), 1.0, &left)).broadcast_to(&shape).move_axis(-1, 0);
    let keys = split_into(key, &share.shape()[..1]);
    let step = |left: &Tensor, (q, key): &(Tensor, Tensor)| {
        let count = binomial(key, left, q, left.shape(), left.dtype());
        (left - &count, count)
    };
    let (_, counts) = ok(scan(step, &n.broadcast_to(&batch), &(share, keys)));
    counts.move_axis(0, -1).astype(dtype)
}
