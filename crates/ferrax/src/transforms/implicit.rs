//! Implicit derivatives of iterative solutions; and reductions by any function.
use super::control::same;
use super::{Output, body, custom_jvp, flat, jvp, linearize, unflat, vjp};
use crate::mistakes::{self, catch};
use crate::tensor::{IntoAxes, IntoTensor, Padding, Tensor, emit_many};
use crate::tree::Tree;
use ferrax_ir::cx::bind;
use ferrax_ir::ops::linear_solve::LinearSolve;
use ferrax_ir::ops::reduce_by::{ReduceBy, ReduceWindowBy};
use ferrax_ir::{Aval, Dims, Error, Program, Res, Value};
use ferrax_transform as transform;
use std::sync::Arc;

/// `x` with `matvec(x) = b`, found by `solve(b)`. Its derivatives are solutions too: those of reverse mode by `transpose_solve`, which
/// solves the transposed system (for a symmetric one pass `&solve` again). `matvec` is linear; all three take and give trees like `b`.
///
/// ```
/// use ferrax::{Tensor, custom_linear_solve, grad};
/// let f = |d: &Tensor| {
///     let solve = |b: &Tensor| b / d; // anything that is not to be differentiated: here, of a diagonal
///     Ok::<_, ferrax::Error>(custom_linear_solve(|x: &Tensor| d * x, &Tensor::ones(&[2]), &solve, &solve)?.sum())
/// };
/// assert_eq!(grad(f)(&Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [-1.0, -0.25]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Type` if a closure gives another structure or other types; what the closures return.
pub fn custom_linear_solve<X: Tree + Clone, R: Output<X>, Q: Output<X>, P: Output<X>>(
    matvec: impl Fn(&X) -> R,
    b: &X,
    solve: impl Fn(&X) -> Q,
    transpose_solve: impl Fn(&X) -> P,
) -> Res<X> {
    mistakes::init();
    let apply = |x: &X| matvec(x).output();
    let zeros = catch(|| Ok(b.map(Tensor::zeros_like)))?;
    let transposed = |ct: &X| vjp(apply, &zeros)?.1(ct);
    let traced = [
        body(&apply, b)?,
        body(&transposed, b)?,
        body(&|x: &X| solve(x).output(), b)?,
        body(&|x: &X| transpose_solve(x).output(), b)?,
    ];
    for ((_, _, y), name) in traced.iter().zip(["matvec", "transposed matvec", "solve", "transpose_solve"]) {
        same(&format!("custom_linear_solve {name} output and b"), b, y)?;
    }
    let op = LinearSolve {
        const_lengths: traced.iter().map(|t| t.1.len()).collect(),
        jaxprs: traced.iter().map(|t| Some(t.0.clone())).collect(),
    };
    let args: Vec<Value> = traced.iter().flat_map(|t| t.1.clone()).chain(flat(b)).collect();
    Ok(unflat(b, bind(&op.into(), &args)?))
}

/// What finds a root, shared by the function and its derivatives.
struct Root<F, S, T> {
    f: F,
    solve: S,
    tangent_solve: T,
}
type Found<P, X> = Box<dyn Fn(&(P, X)) -> Res<X>>;
/// A root of `f(params, x) = 0`, found by `solve(params, guess)`, with derivatives in the parameters by the implicit function theorem:
/// `tangent_solve(g, y)` gives x with `g(x) = y` for the linear function g that f is near the root.
///
/// ```
/// use ferrax::{Res, Tensor, custom_root, fori_loop, grad};
/// // the square root, by Newton's iteration, which nothing differentiates
/// let f = |a: &Tensor, x: &Tensor| x * x - a;
/// let solve = |a: &Tensor, x: &Tensor| fori_loop(0, 20, |_: &Tensor, x: &Tensor| 0.5 * (x + a / x), x);
/// let linear = |g: &dyn Fn(&Tensor) -> Res<Tensor>, y: &Tensor| -> Res<_> { Ok(y / g(&y.ones_like())?) };
/// let root = |a: &Tensor| custom_root(f, a, &Tensor::from(1.0f32), solve, linear);
/// assert!((root(&Tensor::from(4.0f32))?.item() - 2.0).abs() < 1e-6);
/// assert!((grad(root)(&Tensor::from(4.0f32))?.item() - 0.25).abs() < 1e-6);
/// assert!((grad(grad(root))(&Tensor::from(4.0f32))?.item() + 0.03125).abs() < 1e-6);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// What the closures return.
pub fn custom_root<P, X, R, Q>(
    f: impl Fn(&P, &X) -> R + Send + Sync + 'static,
    params: &P,
    guess: &X,
    solve: impl Fn(&P, &X) -> Q + Send + Sync + 'static,
    tangent_solve: impl Fn(&dyn Fn(&X) -> Res<X>, &X) -> Res<X> + Send + Sync + 'static,
) -> Res<X>
where
    P: Tree + Clone + Send + Sync + 'static,
    X: Tree + Clone + Send + Sync + 'static,
    R: Output<X>,
    Q: Output<X>,
{
    let solve = move |p: &P, x: &X| solve(p, x).output();
    let f = move |p: &P, x: &X| f(p, x).output();
    rooted(Arc::new(Root { f, solve, tangent_solve }))(&(params.clone(), guess.clone()))
}
fn rooted<P, X, F, S, T>(parts: Arc<Root<F, S, T>>) -> Found<P, X>
where
    P: Tree + Clone + Send + Sync + 'static,
    X: Tree + Clone + Send + Sync + 'static,
    F: Fn(&P, &X) -> Res<X> + Send + Sync + 'static,
    S: Fn(&P, &X) -> Res<X> + Send + Sync + 'static,
    T: Fn(&dyn Fn(&X) -> Res<X>, &X) -> Res<X> + Send + Sync + 'static,
{
    let value = parts.clone();
    let rule = move |x: &(P, X), dx: &(P, X)| -> Res<(X, X)> {
        let (p, root) = (&x.0, rooted(parts.clone())(x)?);
        // f(p, root(p)) = 0, hence droot = -(df/dx)^-1 (df/dp) dp
        let (_, change) = jvp(|p: &P| (parts.f)(p, &root), p, &dx.0)?;
        let (_, linear) = linearize(|x: &X| (parts.f)(p, x), &root)?;
        let step = (parts.tangent_solve)(&linear, &change)?;
        catch(|| Ok((root.clone(), step.map(|t| -t))))
    };
    Box::new(custom_jvp(move |(p, x): &(P, X)| (value.solve)(p, x), rule))
}

/// A function of two numbers as a program.
fn folding<R: Output<Tensor>>(x: &Tensor, f: impl Fn(&Tensor, &Tensor) -> R) -> Res<Arc<Program>> {
    mistakes::init();
    let number = Aval::new(x.dtype(), &[]);
    let run = |a: &[Value]| {
        let y = catch(|| f(&Tensor(a[0].clone()), &Tensor(a[1].clone())).output())?;
        Ok(std::iter::once(y.0).collect())
    };
    let (p, consts) = transform::make_program(&run, &[number.clone(), number])?;
    match consts.is_empty() {
        true => Ok(Arc::new(p)),
        false => Err(Error::value("the function of a reduction cannot close over tensors")),
    }
}
/// All elements along axes, combined by an associative, commutative `f` of two numbers, whose identity is `init`.
///
/// ```
/// use ferrax::{Tensor, reduce};
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let y = reduce(&x, 0.0, |a: &Tensor, b: &Tensor| a + b + a * b, 1)?;
/// assert_eq!(y.to_vec::<f32>()?, [5.0, 19.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Value` if f closes over tensors, `Type` if it gives another type; what it returns.
pub fn reduce<R: Output<Tensor>>(
    x: &Tensor,
    init: impl IntoTensor,
    f: impl Fn(&Tensor, &Tensor) -> R,
    axes: impl IntoAxes,
) -> Res<Tensor> {
    let jaxpr = folding(x, f)?;
    let init = init.into_tensor();
    catch(|| {
        let op = ReduceBy { dimensions: axes.axes(x.rank()), jaxpr };
        Ok(emit_many(op, &[x, &init.astype(x.dtype())]).remove(0))
    })
}
/// The elements of every window, combined by an associative `f` of two numbers, whose identity is `init`. `window` and `strides` (empty:
/// ones) have an entry for each axis.
///
/// ```
/// use ferrax::{Padding, Tensor, reduce_window};
/// let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
/// let y = reduce_window(&x, 1.0, |a: &Tensor, b: &Tensor| a * b, &[2], &[], &Padding::Valid)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 6.0, 12.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// Those of [`reduce`].
pub fn reduce_window<R: Output<Tensor>>(
    x: &Tensor,
    init: impl IntoTensor,
    f: impl Fn(&Tensor, &Tensor) -> R,
    window: &[usize],
    strides: &[usize],
    padding: &Padding,
) -> Res<Tensor> {
    let jaxpr = folding(x, f)?;
    let init = init.into_tensor();
    let ones = Dims::new(&vec![1; x.rank()]);
    let strides = if strides.is_empty() { ones.clone() } else { Dims::new(strides) };
    if window.len() != x.rank() || strides.len() != x.rank() {
        return Err(Error::type_error(format!("a window of {} axes over an array of rank {}", window.len(), x.rank())));
    }
    catch(|| {
        let op = ReduceWindowBy {
            padding: padding.widths(x.shape(), window, &strides),
            base_dilation: ones.clone(),
            consts: Dims::default(),
            jaxpr,
            window_dilation: ones,
            window_dimensions: Dims::new(window),
            window_strides: strides,
        };
        Ok(emit_many(op, &[x, &init.astype(x.dtype())]).remove(0))
    })
}
