//! `jit`, `grad`, `value_and_grad`, `vjp`, `jvp`, `vmap` over Rust closures of trees of tensors.
//!
//! ```
//! use ferrax::{Tensor, grad, jit, vmap};
//! let f = |x: &Tensor| (x * x).sum();
//! assert_eq!(grad(f)(&Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [2.0, 4.0]);
//! let rows = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let g = jit(vmap(|r: &Tensor| r.sin().sum()));
//! assert_eq!(g(&rows)?.shape(), [2]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A closure sees tensors and may close over others; every transform takes closures that any transform returns.
use crate::compiled::{Compiled, device_of};
use crate::eval;
use crate::tensor::Tensor;
use crate::tree::Tree;
use ferrax_ir::cx::{bind, current, lit};
use ferrax_ir::ops::call::Call;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Error, Res, Value};
use ferrax_transform as transform;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub use ferrax_ir::operators::catch;

fn flat<T: Tree>(x: &T) -> Vec<Value> {
    let mut out = vec![];
    x.leaves(&mut |t| out.push(t.0.clone()));
    out
}
fn unflat<T: Tree>(like: &T, leaves: impl IntoIterator<Item = Value>) -> T {
    let mut leaves = leaves.into_iter();
    like.rebuild(&mut |old| leaves.next().map_or_else(|| old.clone(), Tensor))
}
/// What a closure may return: a tree, or a `Result` of one.
pub trait Output<T> {
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
/// Runs a closure on flat values; remembers the shape of what it returned.
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

/// `f` and its derivative in every tensor of its argument. `f` returns a rank-0 float.
pub fn value_and_grad<X: Tree, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<(Tensor, X)> {
    move |x| {
        eval::init();
        let out = RefCell::new(None);
        let leaves = flat(x);
        let (y, lin) = transform::linearize(&|a| call(&f, x, a, &out), &leaves)?;
        if !y[0].shape().is_empty() {
            return Err(Error::type_error(format!(
                "Gradient only defined for scalar-output functions. Output had shape: {}.",
                ferrax_ir::Dims::new(y[0].shape())
            )));
        }
        let cts = lin.transpose(&[Some(lit(y[0].dtype(), 1.0))])?;
        let grads =
            cts.into_iter().zip(&leaves).map(|(t, v)| current().inst(&t, &v.aval())).collect::<Res<Vec<_>>>()?;
        Ok((Tensor(y[0].clone()), unflat(x, grads)))
    }
}
/// The derivative of `f` in every tensor of its argument.
pub fn grad<X: Tree, R: Output<Tensor>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<X> {
    let g = value_and_grad(f);
    move |x| Ok(g(x)?.1)
}
/// `f(x)` and its directional derivative along `dx`.
pub fn jvp<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, x: &X, dx: &X) -> Res<(Y, Y)> {
    eval::init();
    let out = RefCell::new(None);
    let (leaves, tangents) = (flat(x), flat(dx).into_iter().map(Some).collect::<Vec<_>>());
    let (y, dy) = transform::jvp(&|a| call(&f, x, a, &out), &leaves, &tangents)?;
    let like = returned(out)?;
    let dy = dy.into_iter().zip(&y).map(|(t, v)| current().inst(&t, &v.aval())).collect::<Res<Vec<_>>>()?;
    Ok((unflat(&like, y), unflat(&like, dy)))
}
/// `f` on every slice of every tensor along axis 0, results stacked along axis 0.
pub fn vmap<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    move |x| {
        eval::init();
        let out = RefCell::new(None);
        let leaves = flat(x);
        let dims = vec![Some(0); leaves.len()];
        let n = transform::batch_size(&leaves, &dims)?;
        let y = transform::vmap(&|a| call(&f, x, a, &out), &leaves, &dims, n, None, &|_, _, _| Ok(Some(0)))?;
        Ok(unflat(&returned(out)?, y))
    }
}

/// One signature's trace.
struct Traced<Y> {
    call: Call,
    consts: Vec<Value>,
    like: Y,
    /// Compiled where it first ran eagerly.
    compiled: RefCell<Option<Arc<Compiled>>>,
}

/// `f`, traced and compiled once for each set of dtypes and shapes. Inside another transform it is one equation.
pub fn jit<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    let cache: RefCell<HashMap<Vec<Aval>, Arc<Traced<Y>>>> = RefCell::default();
    move |x| {
        eval::init();
        let leaves = flat(x);
        let key: Vec<Aval> = leaves.iter().map(Value::aval).collect();
        let hit = cache.borrow().get(&key).cloned();
        let t = match hit {
            Some(t) => t,
            None => {
                let out = RefCell::new(None);
                let (p, consts) = transform::make_program(&|a| call(&f, x, a, &out), &key)?;
                let t = Traced {
                    call: Call::new("f", Arc::new(p.open())),
                    consts,
                    like: returned(out)?,
                    compiled: RefCell::default(),
                };
                let t = Arc::new(t);
                // what closed over a tracer belongs to the caller's trace
                if !t.consts.iter().any(Value::is_tracer) {
                    cache.borrow_mut().insert(key, t.clone());
                }
                t
            }
        };
        let args: Vec<Value> = t.consts.iter().chain(&leaves).cloned().collect();
        let y = if ferrax_ir::cx::at_root() && !args.iter().any(Value::is_tracer) {
            t.run(&args)?
        } else {
            bind(&t.call.clone().into(), &args)?
        };
        Ok(unflat(&t.like, y))
    }
}
impl<Y> Traced<Y> {
    fn run(&self, args: &[Value]) -> Res<Values> {
        let device = device_of(args, eval::current_device())?;
        let ready = self.compiled.borrow().clone().filter(|c| c.device == device);
        let c = match ready {
            Some(c) => c,
            None => {
                let c = Arc::new(Compiled::new(self.call.jaxpr.clone(), device)?);
                *self.compiled.borrow_mut() = Some(c.clone());
                c
            }
        };
        Ok(c.run(args, &[])?.into_iter().map(Value::Array).collect())
    }
}

/// The program that `f` traces to, in JAX's notation.
pub fn make_jaxpr<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, x: &X) -> Res<ferrax_ir::Program> {
    eval::init();
    let out: RefCell<Option<Y>> = RefCell::new(None);
    let key: Vec<Aval> = flat(x).iter().map(Value::aval).collect();
    Ok(transform::make_program(&|a| call(&f, x, a, &out), &key)?.0)
}
