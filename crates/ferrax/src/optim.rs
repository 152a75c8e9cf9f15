//! Optimisers as functions over trees: a state, and a step that computes new parameters from old
//! ones and gradients.
//!
//! ```
//! use ferrax::{Tensor, grad, optim};
//! let loss = |w: &Vec<Tensor>| ((&w[0] - 3.0).square() + (&w[1] + 1.0).square()).sum();
//! let mut w = vec![Tensor::from(0.0f32), Tensor::from(0.0f32)];
//! let adam = optim::Adam::new(0.1);
//! let mut state = adam.init(&w);
//! for _ in 0..300 {
//!     let g = optim::clip_by_global_norm(&grad(loss)(&w)?, 10.0);
//!     (w, state) = adam.step(&w, &g, &state);
//! }
//! assert!((w[0].item() - 3.0).abs() < 1e-2 && (w[1].item() + 1.0).abs() < 1e-2);
//! let rate = optim::cosine(0.1, 100); // schedules are functions of the step
//! assert!(rate(&Tensor::from(0)).item() > rate(&Tensor::from(50)).item());
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A state is a tree: it passes through `jit` and loops and is saved like parameters.
use crate::tensor::{IntoTensor, Tensor, where_};
use crate::tree::{Outline, Tree};
use ferrax_ir::Dtype;
use std::f64::consts::PI;

/// `params - rate * grads`: gradient descent.
///
/// ```
/// use ferrax::{Tensor, optim};
/// let w = optim::sgd(&Tensor::from(1.0f32), &Tensor::from(2.0f32), 0.25);
/// assert_eq!(w.item(), 0.5);
/// ```
#[track_caller]
pub fn sgd<P: Tree>(params: &P, grads: &P, rate: impl IntoTensor) -> P {
    let rate = rate.into_tensor();
    params.zip(grads, |p, g| p - &rate * g)
}
/// Gradient descent with momentum: `velocity = decay * velocity + grads`, `params - rate * velocity`. Returns both.
///
/// ```
/// use ferrax::{Tensor, optim};
/// let (w, g, v) = (Tensor::from(1.0f32), Tensor::from(2.0f32), Tensor::from(1.0f32));
/// let (w, v) = optim::momentum(&w, &g, &v, 0.1, 0.5);
/// assert_eq!((v.item(), w.item()), (2.5, 0.75));
/// ```
#[track_caller]
pub fn momentum<P: Tree>(params: &P, grads: &P, velocity: &P, rate: impl IntoTensor, decay: f64) -> (P, P) {
    let rate = rate.into_tensor();
    let velocity = velocity.zip(grads, |v, g| v * decay + g);
    (params.zip(&velocity, |p, v| p - &rate * v), velocity)
}
/// Zeros like the parameters: where velocities start.
#[track_caller]
pub fn zeros_like<P: Tree>(params: &P) -> P {
    params.map(Tensor::zeros_like)
}
/// The square root of the sum of all squares.
///
/// ```
/// use ferrax::{Tensor, optim};
/// assert_eq!(optim::global_norm(&(Tensor::from(3.0f32), Tensor::from(4.0f32))).item(), 5.0);
/// ```
#[track_caller]
pub fn global_norm<P: Tree>(tree: &P) -> Tensor {
    let mut total: Option<Tensor> = None;
    tree.leaves(&mut |t| {
        let s = (t * t.conj()).real().sum();
        total = Some(total.take().map_or_else(|| s.clone(), |all| all + &s));
    });
    total.unwrap_or_else(|| Tensor::from(0.0f32)).sqrt()
}
/// Scaled down so that the global norm is at most `most`.
#[track_caller]
pub fn clip_by_global_norm<P: Tree>(grads: &P, most: f64) -> P {
    let norm = global_norm(grads);
    let small = norm.le(most);
    let safe = where_(&small, 1.0, &norm);
    grads.map(|g| where_(&small, g, g / safe.astype(g.dtype()) * most))
}
/// Every element limited to [-most, most].
#[track_caller]
pub fn clip<P: Tree>(grads: &P, most: f64) -> P {
    grads.map(|g| g.clip(-most, most))
}

/// The steps done, and the running means of gradients and of their squares.
///
/// ```
/// use ferrax::{Tensor, Tree, optim};
/// let state: optim::Moments<Vec<Tensor>> = optim::Adam::new(0.1).init(&vec![Tensor::ones(&[2])]);
/// assert_eq!(state.paths(), [".count", ".first[0]", ".second[0]"]); // a tree: it goes through `jit`, and into files
/// ```
#[derive(Clone, Debug)]
pub struct Moments<P> {
    /// How many steps were done (int32).
    pub count: Tensor,
    /// The mean of gradients.
    pub first: P,
    /// The mean of squares.
    pub second: P,
}
impl<P: Tree> Tree for Moments<P> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        f(&self.count);
        self.first.leaves(f);
        self.second.leaves(f);
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Moments<P> {
        Moments { count: f(&self.count), first: self.first.rebuild(f), second: self.second.rebuild(f) }
    }
    fn outline(&self, out: &mut Outline) {
        out.enter(".count", |out| out.leaf());
        out.enter(".first", |out| self.first.outline(out));
        out.enter(".second", |out| self.second.outline(out));
    }
}

/// Adam (Kingma and Ba, 2015), and with `decay` AdamW (Loshchilov and Hutter, 2019).
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// The learning rate.
    pub rate: f64,
    /// How much of the mean of gradients stays.
    pub b1: f64,
    /// How much of the mean of squares stays.
    pub b2: f64,
    /// Added to the root.
    pub eps: f64,
    /// Weight decay: `rate * decay * params` is taken away in each step.
    pub decay: f64,
}
impl Adam {
    /// The usual: 0.9, 0.999, 1e-8, no decay.
    pub fn new(rate: f64) -> Adam {
        Adam { rate, b1: 0.9, b2: 0.999, eps: 1e-8, decay: 0.0 }
    }
    /// AdamW.
    ///
    /// ```
    /// use ferrax::{Tensor, optim};
    /// let (adam, w) = (optim::Adam::with_decay(0.1, 0.5), Tensor::from(1.0f32));
    /// let (w, _) = adam.step(&w, &Tensor::from(0.0f32), &adam.init(&w));
    /// assert!((w.item() - 0.95).abs() < 1e-6);
    /// ```
    pub fn with_decay(rate: f64, decay: f64) -> Adam {
        Adam { decay, ..Adam::new(rate) }
    }
    /// The state before the first step.
    #[track_caller]
    pub fn init<P: Tree>(&self, params: &P) -> Moments<P> {
        Moments { count: Tensor::from(0i32), first: zeros_like(params), second: zeros_like(params) }
    }
    /// New parameters and state.
    #[track_caller]
    pub fn step<P: Tree>(&self, params: &P, grads: &P, state: &Moments<P>) -> (P, Moments<P>) {
        self.step_at(params, grads, state, self.rate)
    }
    /// The same step at another learning rate, from a schedule.
    ///
    /// ```
    /// use ferrax::{Tensor, optim};
    /// let (adam, w) = (optim::Adam::new(0.1), Tensor::from(1.0f32));
    /// let rate = optim::cosine(0.1, 100);
    /// let (next, _) = adam.step_at(&w, &Tensor::from(3.0f32), &adam.init(&w), rate(&Tensor::from(0)));
    /// assert!((next.item() - 0.9).abs() < 1e-5);
    /// ```
    #[track_caller]
    pub fn step_at<P: Tree>(
        &self,
        params: &P,
        grads: &P,
        state: &Moments<P>,
        rate: impl IntoTensor,
    ) -> (P, Moments<P>) {
        let rate = rate.into_tensor();
        let count = &state.count + 1;
        let first = state.first.zip(grads, |m, g| m * self.b1 + g * (1.0 - self.b1));
        let second = state.second.zip(grads, |v, g| v * self.b2 + g * g * (1.0 - self.b2));
        // the bias of averages that start at zero
        let power = |b: f64| 1.0 - Tensor::from(b as f32).pow(count.astype(Dtype::F32));
        let (c1, c2) = (power(self.b1), power(self.b2));
        let change = first.zip(&second, |m, v| {
            let (c1, c2) = (c1.astype(m.dtype()), c2.astype(m.dtype()));
            (m / c1) / ((v / c2).sqrt() + self.eps)
        });
        let change = if self.decay == 0.0 { change } else { change.zip(params, |c, p| c + p * self.decay) };
        (sgd(params, &change, &rate), Moments { count, first, second })
    }
}
/// Lion (Chen et al., 2023): the sign of a mean of gradients. Returns parameters and the mean, which starts as zeros.
///
/// ```
/// use ferrax::{Tensor, optim};
/// let (w, mean) = optim::lion(&Tensor::from(1.0f32), &Tensor::from(7.0f32), &Tensor::from(0.0f32), 0.1, 0.9, 0.99, 0.0);
/// assert!((w.item() - 0.9).abs() < 1e-6 && (mean.item() - 0.07).abs() < 1e-6);
/// ```
#[track_caller]
pub fn lion<P: Tree>(params: &P, grads: &P, mean: &P, rate: f64, b1: f64, b2: f64, decay: f64) -> (P, P) {
    let change = mean.zip(grads, |m, g| (m * b1 + g * (1.0 - b1)).sign());
    let change = change.zip(params, |c, p| c + p * decay);
    let mean = mean.zip(grads, |m, g| m * b2 + g * (1.0 - b2));
    (sgd(params, &change, rate), mean)
}

/// From `rate` down to 0 along a cosine, in `steps` steps.
pub fn cosine(rate: f64, steps: usize) -> impl Fn(&Tensor) -> Tensor {
    move |step| {
        let part = (step.astype(Dtype::F32) / steps as f64).clip(0.0, 1.0);
        ((part * PI).cos() + 1.0) * (0.5 * rate)
    }
}
/// From 0 up to `rate` in `warmup` steps, then down to 0 along a cosine until `steps`.
///
/// ```
/// use ferrax::{Tensor, optim};
/// let rate = optim::warmup_cosine(0.4, 4, 100);
/// assert!((rate(&Tensor::from(1)).item() - 0.1).abs() < 1e-6 && rate(&Tensor::from(100)).item() < 1e-6);
/// ```
pub fn warmup_cosine(rate: f64, warmup: usize, steps: usize) -> impl Fn(&Tensor) -> Tensor {
    let down = cosine(rate, steps.saturating_sub(warmup).max(1));
    move |step| {
        let up = step.astype(Dtype::F32) * (rate / warmup.max(1) as f64);
        where_(&step.lt(warmup), up, down(&(step - warmup as i64).maximum(0)))
    }
}
/// `rate` times `factor` for every `every` steps done.
///
/// ```
/// use ferrax::{Tensor, optim};
/// let rate = optim::exponential_decay(0.4, 10, 0.5);
/// assert!((rate(&Tensor::from(20)).item() - 0.1).abs() < 1e-6);
/// ```
pub fn exponential_decay(rate: f64, every: usize, factor: f64) -> impl Fn(&Tensor) -> Tensor {
    move |step| Tensor::from(factor as f32).pow(step.astype(Dtype::F32) / every as f64) * rate
}
