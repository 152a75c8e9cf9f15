//! The gamma distribution, by rejection, and distributions derived from it.
//!
//! INVARIANT: draws are differentiable in the shape parameter (implicit reparameterisation): `d sample / d a = -(dP/da) / p`, where P is the
//! distribution function: Figurnov, Mohamed and Mnih (2018).
use super::{Cells, Finfo, exponential, normal, pair, rademacher, split_into, uniform};
use crate::mistakes::ok;
use crate::tensor::{IntoTensor, Tensor, constant, emit, pw, where_};
use crate::transforms::{custom_jvp, vmap, while_loop};
use ferrax_ir::Dtype;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::special::{Special, SpecialKind};

/// Marsaglia and Tsang (2000), for one draw. Shapes below 1 are drawn at a + 1 and scaled by u^(1 / a).
fn draw_one(key: &Tensor, a: &Tensor, log_space: bool) -> ferrax_ir::Res<Tensor> {
    let d = a.dtype();
    let c = |x: f64| constant(d, x);
    let one = c(1.0);
    let large = a.ge(&one);
    let shifted = where_(&large, a, a + &one);
    let third = c(1.0 / 3.0);
    let size = shifted - &third;
    let width = third / size.sqrt();

    let rejected = |(_, x2, v, u): &(Tensor, Tensor, Tensor, Tensor)| {
        let squeeze = u.ge(c(1.0) - c(0.0331) * (x2 * x2));
        squeeze & u.log().ge(x2 * c(0.5) + &size * ((c(1.0) - v) + v.log()))
    };
    let propose = |(key, ..): &(Tensor, Tensor, Tensor, Tensor)| -> ferrax_ir::Res<_> {
        let keys = split_into(key, &[3]).unstack(0);
        let positive = |(key, ..): &(Tensor, Tensor, Tensor)| {
            let (key, sub) = pair(key);
            let x = normal(&sub, &[], d);
            let v = c(1.0) + &x * &width;
            (key, x, v)
        };
        let start = (keys[1].clone(), c(0.0), c(-1.0));
        let (_, x, v) = while_loop(|s: &(Tensor, Tensor, Tensor)| s.2.le(c(0.0)), positive, &start)?;
        Ok((keys[0].clone(), &x * &x, &v * &v * &v, uniform(&keys[2], &[], d)))
    };
    let (key, sub) = pair(key);
    let (_, _, v, _) = while_loop(rejected, propose, &(key, c(0.0), c(1.0), c(2.0)))?;
    let cells = Cells::new(&sub, &[], d);
    Ok(if log_space {
        let boost = where_(&large, c(0.0), cells.log_left() * (c(1.0) / a));
        size.log() + v.log() + boost
    } else {
        let boost = where_(&large, c(1.0), cells.left().pow(c(1.0) / a));
        size * v * boost
    })
}
#[track_caller]
fn draws(key: &Tensor, a: &Tensor, shape: &[usize], dtype: Dtype, log_space: bool) -> Tensor {
    let info = Finfo::of("gamma", dtype);
    let tiny = info.tiny;
    let a = a.astype(dtype).broadcast_to(shape);
    let n = a.size();
    let keys = split_into(key, &[n.max(1)]).narrow(0, 0, n);
    // keys are integers to derivatives: only `a` has one
    let each = move |(keys, a): &(Tensor, Tensor)| {
        vmap(move |(k, a): &(Tensor, Tensor)| draw_one(k, a, log_space))(&(keys.clone(), a.clone()))
    };
    let rule = move |x: &(Tensor, Tensor), dx: &(Tensor, Tensor)| {
        let out = each(x)?;
        let sample = if log_space { out.exp() } else { out.clone() };
        let least = sample.maximum(constant(sample.dtype(), tiny));
        let mut slope = emit(Special { kind: SpecialKind::RandomGammaGrad }, &[&x.1, &least]);
        if log_space {
            slope /= sample;
        }
        let change = slope * &dx.1;
        Ok::<_, ferrax_ir::Error>((out, change))
    };
    let sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let f = custom_jvp(each, rule);
    ok(f(&(keys, a.flatten()))).reshape(&sizes)
}

/// Gamma, of shape a (which broadcasts to `shape`) and scale 1.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::gamma(&random::key(0), 3.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 3.0).abs() < 0.2);
/// ```
#[track_caller]
pub fn gamma(key: &Tensor, a: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    draws(key, &a.into_tensor(), shape, dtype, false)
}
/// The logarithm of a gamma draw, accurate for small a.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::loggamma(&random::key(0), 1e-3, &[100], Dtype::F32); // whose exponentials are 0
/// assert!(x.is_finite().all().item() == 1.0);
/// ```
#[track_caller]
pub fn loggamma(key: &Tensor, a: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    draws(key, &a.into_tensor(), shape, dtype, true)
}
/// Beta.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::beta(&random::key(0), 2.0, 6.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.25).abs() < 0.02);
/// ```
#[track_caller]
pub fn beta(key: &Tensor, a: impl IntoTensor, b: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let (k_a, k_b) = pair(key);
    let (log_a, log_b) = (loggamma(&k_a, a, shape, dtype), loggamma(&k_b, b, shape, dtype));
    let top = log_a.maximum(&log_b);
    let (x, y) = ((log_a - &top).exp(), (log_b - &top).exp());
    &x / (&x + y)
}
/// Dirichlet: positive vectors that sum to 1; `shape` (to which alpha's leading axes broadcast), then alpha's last axis.
///
/// ```
/// use ferrax::{Dtype, Tensor, random};
/// let x = random::dirichlet(&random::key(0), &Tensor::from([1.0f32, 2.0]), &[5], Dtype::F32);
/// assert_eq!(x.sum_axes(-1).all_close(Tensor::ones(&[5]), 1e-5, 1e-5).item(), 1.0);
/// ```
#[track_caller]
pub fn dirichlet(key: &Tensor, alpha: &Tensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let n = alpha.shape().last().copied().unwrap_or(1);
    let logs = loggamma(key, alpha, &[shape, &[n]].concat(), dtype);
    let e = (&logs - logs.max_keep(-1).stop_gradient()).exp();
    &e / e.sum_keep(-1)
}
/// Chi-square, of df degrees of freedom.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::chisquare(&random::key(0), 5.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 5.0).abs() < 0.3);
/// ```
#[track_caller]
pub fn chisquare(key: &Tensor, df: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let half = df.into_tensor().astype(dtype) / constant(dtype, 2.0);
    loggamma(key, half, shape, dtype).exp() * constant(dtype, 2.0)
}
/// F, of degrees of freedom above and below.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::f(&random::key(0), 4.0, 6.0, &[5], Dtype::F32);
/// assert!(x.min().item() > 0.0);
/// ```
#[track_caller]
pub fn f(key: &Tensor, above: impl IntoTensor, below: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let (above, below) = (above.into_tensor().astype(dtype), below.into_tensor().astype(dtype));
    let (k_den, k_num) = pair(key);
    let (num, den) = (chisquare(&k_num, &above, shape, dtype), chisquare(&k_den, &below, shape, dtype));
    (num / above) / (den / below)
}
/// Student's t, of df degrees of freedom.
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::t(&random::key(0), 9.0, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn t(key: &Tensor, df: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let half = df.into_tensor().astype(dtype) / constant(dtype, 2.0);
    let (k_normal, k_gamma) = pair(key);
    normal(&k_normal, shape, dtype) * (&half / gamma(&k_gamma, &half, shape, dtype)).sqrt()
}
/// Of density proportional to exp(-|x|^p).
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::generalized_normal(&random::key(0), 1.5, &[2000], Dtype::F32);
/// assert!((x.mean().item() - 0.0).abs() < 0.1);
/// ```
#[track_caller]
pub fn generalized_normal(key: &Tensor, p: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let power = 1.0 / p.into_tensor().strong().astype(dtype);
    let (k_size, k_sign) = pair(key);
    let size = gamma(&k_size, &power, shape, dtype);
    rademacher(&k_sign, shape, dtype) * size.pow(power)
}
/// Uniform in the unit ball of the p-norm in d dimensions: shape, then d. Barthe, Guedon, Mendelson and Naor (2005).
///
/// ```
/// use ferrax::{Dtype, random};
/// let x = random::ball(&random::key(0), 3, 2, &[10], Dtype::F32);
/// assert!(x.shape() == [10, 3] && x.norm_axes(-1).max().item() <= 1.0);
/// ```
#[track_caller]
pub fn ball(key: &Tensor, d: usize, p: impl IntoTensor, shape: &[usize], dtype: Dtype) -> Tensor {
    let p = p.into_tensor();
    let (k_direction, k_radius) = pair(key);
    let g = generalized_normal(&k_direction, &p, &[shape, &[d]].concat(), dtype);
    let e = exponential(&k_radius, shape, dtype);
    let power = |x: &Tensor| match p.dtype().is_int() {
        // the primitive takes an integer exponent as it is
        true => pw(Pw::Pow, &[x, &p.strong()]),
        false => x.pow(&p),
    };
    let norm = (power(&g.abs()).sum_axes(-1) + e).pow(1.0 / p.strong().astype(dtype));
    g / norm.expand_dims(-1)
}
