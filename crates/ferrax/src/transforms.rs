//! Transforms over Rust closures of trees of tensors.
//!
//! ```
//! use ferrax::{Tensor, grad, hessian, jit, value_and_grad_aux, vjp, vmap};
//! let f = |x: &Tensor| (x * x).sum();
//! let x = Tensor::from([1.0f32, 2.0]);
//! assert_eq!(grad(f)(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
//! assert_eq!(hessian(f)(&x)?.to_vec::<f32>()?, [2.0, 0.0, 0.0, 2.0]);
//! let rows = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
//! let each = jit(vmap(grad(|r: &Tensor| r.sin().sum())));
//! assert_eq!(each(&rows)?.shape(), [2, 2]);
//! let (y, back) = vjp(|x: &Tensor| x.exp(), &x)?;
//! assert_eq!(back(&Tensor::ones(&[2]))?.to_vec::<f32>()?, y.to_vec::<f32>()?);
//! let ((loss, parts), g) = value_and_grad_aux(|x: &Tensor| (x.sum(), x * 2.0))(&x)?;
//! assert_eq!((loss.item(), parts.sum().item(), g.sum().item()), (3.0, 6.0, 2.0));
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A closure receives tensors and may capture others. Every transform accepts closures that any
//! transform returns, in any order, on any thread. A closure returns a tree, or a `Result` of one:
//! `?` works inside. A mistake inside becomes the transform's error.
mod batching;
mod callbacks;
mod collectives;
mod compiled;
mod control;
mod implicit;
mod parallel;
mod rules;

pub use batching::{VmapOptions, vmap, vmap_with};
pub use callbacks::{debug_callback, effects_barrier, io_callback, pure_callback};
pub use collectives::{
    all_gather, all_to_all, axis_index, axis_size, pbroadcast, pmax, pmean, pmin, ppermute, pshuffle, psum,
    psum_scatter, pswapaxes,
};
pub use compiled::{Jitted, jit, jit_donate, jit_static};
pub use control::{ScanOptions, associative_scan, cond, fori_loop, map, scan, scan_with, switch, while_loop};
pub use implicit::{custom_linear_solve, custom_root, reduce, reduce_window};
pub use parallel::{PmapOptions, pmap, pmap_with};
pub use rules::{checkpoint, custom_jvp, custom_vjp};

use crate::mistakes::{self, catch};
use crate::tensor::{Tensor, concatenate};
use crate::tree::{Outline, Tree};
use ferrax_ir::cx::{bind, current, lit};
use ferrax_ir::ops::call::Call;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Dims, Dtype, Error, Res, Value};
use ferrax_transform as transform;
use std::cell::RefCell;
use std::sync::Arc;

pub(crate) fn flat<T: Tree>(x: &T) -> Vec<Value> {
    let mut out = vec![];
    x.leaves(&mut |t| out.push(t.0.clone()));
    out
}
pub(crate) fn unflat<T: Tree>(like: &T, leaves: impl IntoIterator<Item = Value>) -> T {
    let mut leaves = leaves.into_iter();
    like.rebuild(&mut |old| leaves.next().map_or_else(|| old.clone(), Tensor))
}
/// The result of a closure: a tree, or a `Result` of one.
///
/// ```
/// use ferrax::{Output, Res, Tensor, grad};
/// fn steepest<R: Output<Tensor>>(f: impl Fn(&Tensor) -> R, x: &Tensor) -> Res<f64> {
///     Ok(grad(f)(x)?.abs().max().item()) // of closures that give tensors, and of those that may fail
/// }
/// let positive = |x: &Tensor| -> Res<Tensor> { if x.size() > 0 { Ok(x.sum()) } else { Err(ferrax::Error::value("nothing there")) } };
/// assert_eq!((steepest(positive, &Tensor::ones(&[2]))?, steepest(|x: &Tensor| x.powi(2).sum(), &Tensor::ones(&[2]))?), (1.0, 2.0));
/// assert!(steepest(positive, &Tensor::ones(&[0])).is_err());
/// # Ok::<(), ferrax::Error>(())
/// ```
pub trait Output<T> {
    /// The tree.
    fn output(self) -> Res<T>;
}
impl<T: Tree> Output<T> for T {
    fn output(self) -> Res<T> {
        Ok(self)
    }
}
impl<T: Tree> Output<T> for Res<T> {
    fn output(self) -> Res<T> {
        self
    }
}
/// Runs a closure on flat values; records the structure of its result.
fn call<X: Tree, Y: Tree, R: Output<Y>>(
    f: &impl Fn(&X) -> R,
    like: &X,
    x: &[Value],
    out: &RefCell<Option<Y>>,
) -> Res<Values> {
    let y = catch(|| f(&unflat(like, x.iter().cloned())).output())?;
    let leaves = flat(&y);
    *out.borrow_mut() = Some(y);
    Ok(leaves.into())
}
fn returned<Y>(out: RefCell<Option<Y>>) -> Res<Y> {
    out.into_inner().ok_or_else(|| Error::value("the function did not return"))
}
/// Checks that the values can be differentiated.
pub(crate) fn inexact<X: Tree>(name: &str, x: &X) -> Res<()> {
    let paths = Outline::of(x);
    for (v, at) in flat(x).iter().zip(paths.paths()) {
        if !v.dtype().is_inexact() {
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            return Err(Error::type_error(format!(
                "{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got {}{at}.",
                v.dtype().long()
            )));
        }
    }
    Ok(())
}
fn scalar(y: &Value) -> Res<()> {
    if !y.shape().is_empty() {
        return Err(Error::type_error(format!(
            "Gradient only defined for scalar-output functions. Output had shape: {}.",
            Dims::new(y.shape())
        )));
    }
    if !y.dtype().is_float() {
        return Err(Error::type_error(format!(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {}.",
            y.dtype().long()
        )));
    }
    Ok(())
}
fn instantiated(t: impl IntoIterator<Item = Option<Value>>, like: &[Value]) -> Res<Vec<Value>> {
    t.into_iter().zip(like).map(|(t, v)| current().inst(&t, &v.aval())).collect()
}

/// `f` and its derivative in every tensor of its argument. `f` returns a rank-0 float and auxiliary
/// values.
pub fn value_and_grad_aux<X: Tree, A: Tree, R: Output<(Tensor, A)>>(
    f: impl Fn(&X) -> R,
) -> impl Fn(&X) -> Res<((Tensor, A), X)> {
    move |x| {
        mistakes::init();
        inexact("grad", x)?;
        let out = RefCell::new(None);
        let leaves = flat(x);
        let (y, lin) = transform::linearize(&|a| call(&f, x, a, &out), &leaves)?;
        scalar(&y[0])?;
        let mut cts = vec![None; y.len()];
        cts[0] = Some(lit(y[0].dtype(), 1.0));
        let grads = instantiated(lin.transpose(&cts)?, &leaves)?;
        Ok((unflat(&returned(out)?, y), unflat(x, grads)))
    }
}
/// `f` and its derivative in every tensor of its argument. `f` returns a rank-0 float.
///
/// ```
/// use ferrax::{Tensor, value_and_grad};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let (y, g) = value_and_grad(|x: &Tensor| (x * x).sum())(&x)?;
/// assert_eq!((y.item(), g.to_vec::<f32>()?), (5.0, vec![2.0, 4.0]));
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn value_and_grad<X: Tree, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<(Tensor, X)> {
    let g = value_and_grad_aux(move |x: &X| f(x).output().map(|y| (y, ())));
    move |x| {
        let ((y, ()), g) = g(x)?;
        Ok((y, g))
    }
}
/// The derivative of `f` in every tensor of its argument.
pub fn grad<X: Tree, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<X> {
    let g = value_and_grad(f);
    move |x| Ok(g(x)?.1)
}
/// `f(x)` and its directional derivative along `dx`.
///
/// ```
/// use ferrax::{Tensor, jvp};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let (y, dy) = jvp(|x: &Tensor| x * x, &x, &Tensor::from([1.0f32, 0.0]))?;
/// assert_eq!((y.to_vec::<f32>()?, dy.to_vec::<f32>()?), (vec![1.0, 4.0], vec![2.0, 0.0]));
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn jvp<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, x: &X, dx: &X) -> Res<(Y, Y)> {
    mistakes::init();
    inexact("jvp", x)?;
    let out = RefCell::new(None);
    let (leaves, tangents) = (flat(x), flat(dx));
    fits("jvp", &leaves, &tangents)?;
    let tangents: Vec<Option<Value>> = tangents.into_iter().map(Some).collect();
    let (y, dy) = transform::jvp(&|a| call(&f, x, a, &out), &leaves, &tangents)?;
    let like = returned(out)?;
    let dy = instantiated(dy, &y)?;
    Ok((unflat(&like, y), unflat(&like, dy)))
}
/// Checks that tangents and cotangents have the types of their primal values.
fn fits(name: &str, x: &[Value], dx: &[Value]) -> Res<()> {
    fits_types(name, &x.iter().map(Value::aval).collect::<Vec<_>>(), dx)
}
fn fits_types(name: &str, x: &[Aval], dx: &[Value]) -> Res<()> {
    if x.len() != dx.len() {
        return Err(Error::type_error(format!("{name}: {} tensors and {} of the other tree", x.len(), dx.len())));
    }
    for (x, t) in x.iter().zip(dx) {
        if *x.shape != *t.shape() || x.dtype != t.dtype() {
            return Err(Error::type_error(format!("{name}: expected {} and got {}", x.long(), t.aval().long())));
        }
    }
    Ok(())
}
/// `f(x)`, and the function that maps a cotangent of the result to one of `x`, to be called any
/// number of times.
pub fn vjp<X: Tree + Clone, Y: Tree + Clone, R: Output<Y>, F: Fn(&X) -> R>(
    f: F,
    x: &X,
) -> Res<(Y, impl Fn(&Y) -> Res<X> + use<X, Y, R, F>)> {
    mistakes::init();
    inexact("vjp", x)?;
    let out = RefCell::new(None);
    let leaves = flat(x);
    let (y, lin) = transform::linearize(&|a| call(&f, x, a, &out), &leaves)?;
    let y = unflat(&returned(out)?, y);
    let (like, made) = (x.clone(), flat(&y));
    let back = move |ct: &Y| {
        let cts = flat(ct);
        fits("vjp", &made, &cts)?;
        let grads = lin.transpose(&cts.into_iter().map(Some).collect::<Vec<_>>())?;
        Ok(unflat(&like, instantiated(grads, &leaves)?))
    };
    Ok((y, back))
}
/// `f(x)`, and its derivative there as a linear function of changes of `x`, to be called any number of times.
///
/// ```
/// use ferrax::{Tensor, linearize};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let (_, along) = linearize(|x: &Tensor| x * x, &x)?;
/// assert_eq!(along(&Tensor::ones(&[2]))?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn linearize<X: Tree, Y: Tree + Clone, R: Output<Y>, F: Fn(&X) -> R>(
    f: F,
    x: &X,
) -> Res<(Y, impl Fn(&X) -> Res<Y> + use<X, Y, R, F>)> {
    mistakes::init();
    inexact("linearize", x)?;
    let out = RefCell::new(None);
    let leaves = flat(x);
    let (y, lin) = transform::linearize(&|a| call(&f, x, a, &out), &leaves)?;
    let y = unflat(&returned(out)?, y);
    let (like, made) = (y.clone(), flat(&y));
    let along = move |dx: &X| {
        let dx = flat(dx);
        fits("linearize", &leaves, &dx)?;
        Ok(unflat(&like, instantiated(lin.apply(&dx)?, &made)?))
    };
    Ok((y, along))
}
/// The transpose of a function that is linear in `x`, of which types alone count: a function of changes of the result that gives those of `x`.
/// Cheaper than [`vjp`], for nothing is evaluated.
///
/// ```
/// use ferrax::{Tensor, linear_transpose};
/// let w = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let back = linear_transpose(|x: &Tensor| w.matmul(x), &Tensor::zeros(&[2]))?;
/// assert_eq!(back(&Tensor::from([1.0f32, 0.0]))?.to_vec::<f32>()?, [1.0, 2.0]);
/// assert!(linear_transpose(|x: &Tensor| x * x, &w).and_then(|back| back(&w)).is_err());
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Type` if tensors are neither all floats nor all integers, or, when it is called, if the function is not linear, or changes do not fit.
pub fn linear_transpose<X: Tree + Clone, Y: Tree, R: Output<Y>, F: Fn(&X) -> R>(
    f: F,
    x: &X,
) -> Res<impl Fn(&Y) -> Res<X> + use<X, Y, R, F>> {
    mistakes::init();
    let types: Vec<Aval> = flat(x).iter().map(Value::aval).collect();
    let linear = transform::linear(&|a| call(&f, x, a, &RefCell::new(None)), &types)?;
    let all = || types.iter().chain(&linear.out_avals);
    if !(all().all(|a| a.dtype.is_inexact()) || all().all(|a| a.dtype.is_int())) {
        return Err(Error::type_error(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer functions",
        ));
    }
    let like = x.clone();
    Ok(move |ct: &Y| {
        let cts = flat(ct);
        fits_types("linear_transpose", &linear.out_avals, &cts)?;
        let back = linear.transpose(&cts.into_iter().map(Some).collect::<Vec<_>>())?;
        let back: Res<Vec<Value>> = back.iter().zip(&types).map(|(t, a)| current().inst(t, a)).collect();
        Ok(unflat(&like, back?))
    })
}

/// The unit vectors of a tensor's space, each in its shape, along a leading axis.
fn basis(shape: &[usize], dtype: Dtype) -> Tensor {
    let n: usize = shape.iter().product();
    let rows = Tensor::eye(n, n).astype(dtype);
    rows.reshape(&std::iter::once(n as i64).chain(shape.iter().map(|n| *n as i64)).collect::<Vec<_>>())
}
/// The derivative of a function of one tensor, row by row of the result: shape `out.. + in..`. Right where results are few.
///
/// ```
/// use ferrax::{Tensor, jacrev};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let j = jacrev(|x: &Tensor| x * x)(&x)?;
/// assert_eq!(j.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn jacrev<X: Tree + Clone, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<X> {
    move |x| {
        let (y, back) = vjp(|x: &X| f(x).output(), x)?;
        let rows = catch(|| Ok(basis(y.shape(), y.dtype())))?;
        let j: X = vmap(|ct: &Tensor| back(ct))(&rows)?;
        catch(|| {
            Ok(j.map(|g| {
                let shape = y.shape().iter().chain(&g.shape()[1..]).map(|n| *n as i64).collect::<Vec<_>>();
                g.reshape(&shape)
            }))
        })
    }
}
/// The derivative of a function of one tensor, column by column: shape `out.. + in..`. Right where inputs are few.
///
/// ```
/// use ferrax::{Tensor, jacfwd};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let j = jacfwd(|x: &Tensor| x * x)(&x)?;
/// assert_eq!(j.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn jacfwd<X: Tree + Clone, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<X> {
    move |x| {
        mistakes::init();
        let leaves = flat(x);
        // all unit vectors of all leaves at once
        let sizes: Vec<usize> = leaves.iter().map(|v| v.shape().iter().product()).collect();
        let total: usize = sizes.iter().sum();
        let rows: Vec<Value> = catch(|| {
            let mut before = 0;
            let one = |(v, n): (&Value, &usize)| {
                let eye = basis(v.shape(), v.dtype());
                let zeros = |m: usize| {
                    let shape: Vec<usize> = std::iter::once(m).chain(v.shape().iter().copied()).collect();
                    Tensor::zeros_in(&shape, v.dtype())
                };
                let all = concatenate(&[zeros(before), eye, zeros(total - before - n)], 0);
                before += n;
                all.0
            };
            Ok(leaves.iter().zip(&sizes).map(one).collect())
        })?;
        let rows = unflat(x, rows);
        let columns: Tensor = vmap(|dx: &X| -> Res<Tensor> { Ok(jvp(|x: &X| f(x).output(), x, dx)?.1) })(&rows)?;
        let mut before = 0;
        let mut parts = vec![];
        for (v, n) in leaves.iter().zip(&sizes) {
            let part = catch(|| {
                let c = columns.narrow(0, before, before + n).move_axis(0, -1);
                let shape = columns.shape()[1..].iter().chain(v.shape()).map(|n| *n as i64).collect::<Vec<_>>();
                Ok(c.reshape(&shape))
            })?;
            parts.push(part.0);
            before += n;
        }
        Ok(unflat(x, parts))
    }
}
/// The second derivative of a function of one tensor to a number: shape `in.. + in..`.
pub fn hessian<R: Output<Tensor>>(f: impl Fn(&Tensor) -> R) -> impl Fn(&Tensor) -> Res<Tensor> {
    jacfwd(jacrev(f))
}

/// The program that `f` traces to; `{}` shows it in JAX's notation.
pub fn make_jaxpr<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, x: &X) -> Res<ferrax_ir::Program> {
    Ok(traced(&f, x)?.0)
}
/// The results of a program for these tensors, one for each of its inputs: the captured ones first,
/// then the tensors of the argument.
///
/// ```
/// use ferrax::{Tensor, eval_jaxpr, grad, make_jaxpr};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let p = make_jaxpr(grad(|x: &Tensor| x.powi(3).sum()), &x)?;
/// assert_eq!(eval_jaxpr(&p, &[&x])?[0].to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Type` for operands of another number or type.
pub fn eval_jaxpr(program: &ferrax_ir::Program, x: &[&Tensor]) -> Res<Vec<Tensor>> {
    mistakes::init();
    let args: Vec<Value> = x.iter().map(|t| t.0.clone()).collect();
    let call = Call::new("jaxpr", Arc::new(program.with_consts(0)));
    Ok(bind(&call.into(), &args)?.into_iter().map(Tensor).collect())
}
/// Shapes and dtypes of the results of `f`, without computing them.
///
/// ```
/// use ferrax::{Tensor, eval_shape};
/// let types = eval_shape(|x: &Tensor| x.matmul(x.t()), &Tensor::zeros(&[3, 5]))?; // nothing is computed
/// assert_eq!(types[0].to_string(), "f32[3,3]");
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn eval_shape<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, x: &X) -> Res<Vec<Aval>> {
    Ok(traced(&f, x)?.0.out_avals().to_vec())
}
/// A closure as a program, its captured values (the program's leading inputs), and the structure of
/// its result.
fn traced<X: Tree, Y: Tree, R: Output<Y>>(f: &impl Fn(&X) -> R, x: &X) -> Res<(ferrax_ir::Program, Vec<Value>, Y)> {
    traced_at(f, x, &flat(x).iter().map(Value::aval).collect::<Vec<_>>())
}
/// The same, of tensors of other types than those of `like`.
fn traced_at<X: Tree, Y: Tree, R: Output<Y>>(
    f: &impl Fn(&X) -> R,
    like: &X,
    types: &[Aval],
) -> Res<(ferrax_ir::Program, Vec<Value>, Y)> {
    mistakes::init();
    let out = RefCell::new(None);
    let (p, consts) = transform::make_program(&|a| call(f, like, a, &out), types)?;
    Ok((p, consts, returned(out)?))
}
/// The same as the body of an equation: captured values are ordinary inputs, first.
fn body<X: Tree, Y: Tree, R: Output<Y>>(f: &impl Fn(&X) -> R, x: &X) -> Res<(Arc<ferrax_ir::Program>, Vec<Value>, Y)> {
    let (p, consts, y) = traced(f, x)?;
    Ok((Arc::new(p.open()), consts, y))
}
