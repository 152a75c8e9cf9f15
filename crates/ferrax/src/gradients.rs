//! Checks derivatives against finite differences.
use crate::mistakes::catch;
use crate::random;
use crate::tensor::Tensor;
use crate::transforms::{Output, flat, inexact, jvp, unflat, vjp};
use crate::tree::Tree;
use ferrax_ir::{Dtype, Error, Res, Value};
use std::cell::Cell;

/// Compares the derivatives of `f` at `x`, forward and reverse, up to `order`, with differences of
/// values along random directions. `tolerance` is absolute and relative; differences of float32 are
/// accurate to about 1e-2, those of float64 to 1e-6.
///
/// ```
/// use ferrax::{Tensor, check_grads, custom_vjp};
/// let x = Tensor::from([1.0f32, 2.0]);
/// check_grads(|x: &Tensor| x.powi(3).sum(), &x, 2, 1e-2)?;
/// let wrong = custom_vjp(|x: &Tensor| x * x, |x: &Tensor| (x * x, ()), |_: &(), ct: &Tensor| ct.clone());
/// let e = check_grads(wrong, &x, 1, 1e-2).unwrap_err();
/// assert!(e.message().contains("differences give"), "{e}");
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Value` with the derivative and the differences, if they disagree; `Type` for inputs that are
/// not real floats; errors of `f`. A function whose rule has one mode only ([`crate::custom_vjp`])
/// is checked in that mode.
pub fn check_grads<X: Tree, Y: Tree, R: Output<Y>>(
    f: impl Fn(&X) -> R,
    x: &X,
    order: usize,
    tolerance: f64,
) -> Res<()> {
    inexact("check_grads", x)?;
    let start: Vec<Tensor> = flat(x).into_iter().map(Tensor).collect();
    if let Some(t) = start.iter().find(|t| t.dtype().is_complex()) {
        return Err(Error::type_error(format!("check_grads takes real tensors, got {}", t.aval().long())));
    }
    let flattened = |v: &Flat| -> Res<Flat> {
        let y: Y = f(&unflat(x, v.iter().map(|t| t.0.clone()))).output()?;
        Ok(flat(&y).into_iter().filter(Value::has_tangent).map(Tensor).collect())
    };
    let draws = Draws(Cell::new(0));
    check(&flattened, &start, order, order, tolerance, &draws)
}

type Flat = Vec<Tensor>;
/// Directions, another one each time.
struct Draws(Cell<i32>);
impl Draws {
    fn like(&self, of: &Flat) -> Flat {
        let one = |t: &Tensor| {
            self.0.set(self.0.get() + 1);
            random::normal(&random::key(self.0.get()), t.shape(), t.dtype())
        };
        of.iter().map(one).collect()
    }
}
fn dot(a: &Flat, b: &Flat) -> f64 {
    let one = |(a, b): (&Tensor, &Tensor)| (a.astype(Dtype::F64) * b.astype(Dtype::F64)).sum().item();
    a.iter().zip(b).map(one).sum()
}
/// f along a direction, by differences in double precision.
fn slope(f: &dyn Fn(&Flat) -> Res<Flat>, x: &Flat, dx: &Flat) -> Res<Flat> {
    // errors of rounding and of curvature are then of one size
    let wide = x.iter().all(|t| t.dtype() == Dtype::F64);
    let h = if wide { 1e-5 } else { 1e-3 };
    let moved = |by: f64| -> Res<Flat> {
        let at = catch(|| Ok(x.iter().zip(dx).map(|(x, d)| x + d * by).collect()))?;
        f(&at)
    };
    let (up, down) = (moved(h)?, moved(-h)?);
    catch(|| {
        let one = |(a, b): (&Tensor, &Tensor)| (a.astype(Dtype::F64) - b.astype(Dtype::F64)) / (2.0 * h);
        Ok(up.iter().zip(&down).map(one).collect())
    })
}
fn check(
    f: &dyn Fn(&Flat) -> Res<Flat>,
    x: &Flat,
    order: usize,
    highest: usize,
    tolerance: f64,
    draws: &Draws,
) -> Res<()> {
    if order == 0 {
        return Ok(());
    }
    let dx = catch(|| Ok(draws.like(x)))?;
    let known = slope(f, x, &dx)?;
    let near = |mode: &str, a: f64, b: f64| match (a - b).abs() <= tolerance * (1.0 + b.abs()) {
        true => Ok(()),
        false => Err(Error::value(format!(
            "check_grads: the {mode} derivative of order {} along a direction is {a}, and differences give {b}",
            highest - order + 1
        ))),
    };
    let (y, back) = vjp(|x: &Flat| f(x), x)?;
    let ct = catch(|| Ok(draws.like(&y)))?;
    let grads = back(&ct)?;
    let (a, b) = catch(|| Ok((dot(&grads, &dx), dot(&ct, &known))))?;
    near("reverse", a, b)?;
    let deeper = |x: &Flat| vjp(|x: &Flat| f(x), x)?.1(&ct);
    check(&deeper, x, order - 1, highest, tolerance, draws)?;
    let forward = match jvp(|x: &Flat| f(x), x, &dx) {
        Err(e) if e.message().contains("custom_vjp") => return Ok(()), // reverse mode is all it has
        r => r?.1,
    };
    for (a, b) in forward.iter().zip(&known) {
        let (a, b) = catch(|| Ok((a.astype(Dtype::F64).flatten(), b.flatten())))?;
        let (a, b) = (a.to_vec::<f64>()?, b.to_vec::<f64>()?);
        a.iter().zip(&b).try_for_each(|(a, b)| near("forward", *a, *b))?;
    }
    let deeper = |x: &Flat| Ok(jvp(|x: &Flat| f(x), x, &dx)?.1);
    check(&deeper, x, order - 1, highest, tolerance, draws)
}
