//! Calls from a running program back into Rust: computations without a primitive, and output during
//! a run.
//!
//! ```
//! use ferrax::{Tensor, debug_callback, effects_barrier, jit, pure_callback};
//! use std::sync::{Arc, Mutex};
//! let seen = Arc::new(Mutex::new(vec![]));
//! let log = seen.clone();
//! let f = jit(move |x: &Tensor| {
//!     let log = log.clone();
//!     debug_callback(move |x: &Tensor| log.lock().unwrap().push(x.to_vec::<f32>().unwrap()), x)?;
//!     // anything at all: here, a sum in another order
//!     let sum = |x: &Tensor| Tensor::from(x.to_vec::<f32>().unwrap().iter().rev().sum::<f32>());
//!     pure_callback(sum, &Tensor::from(0.0f32), x)
//! });
//! assert_eq!(f(&Tensor::from([1.0f32, 2.0]))?.item(), 3.0);
//! effects_barrier()?;
//! assert_eq!(*seen.lock().unwrap(), [[1.0, 2.0]]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! Callbacks have no derivative, unless [`crate::custom_vjp`] gives one. Under `vmap` one is called slice by slice.
//!
//! INVARIANT: a callback gets copies of its tensors on the host and may compute with them; results
//! are copied before they are released.
use super::{Output, flat, unflat};
use crate::mistakes::{self, catch};
use crate::tensor::{IntoTensor, Tensor};
use crate::tree::{Outline, Tree};
use crate::{array, device, runtime};
use ferrax_ir::cx::bind;
use ferrax_ir::ops::callback::{Callable, Callback, CallbackKind};
use ferrax_ir::{Aval, Error, Res, Value};
use ferrax_kernel::plan::HostFn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The result of `f(x)`, of the structure, shapes and dtypes of `like`. `f` may be called any
/// number of times, or not at all if nothing reads its result.
///
/// # Errors
/// When the result is read: an error that `f` returned, a panic in it, a result of other types than
/// promised.
pub fn pure_callback<X, Y, R>(f: impl Fn(&X) -> R + Send + Sync + 'static, like: &Y, x: &X) -> Res<Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    R: Output<Y>,
{
    called(CallbackKind::Pure, f, like, x)
}
/// The same for a function with side effects: it is called as often as the program says, in the
/// program's order.
///
/// ```
/// use ferrax::{Tensor, fori_loop, io_callback, jit};
/// use std::sync::atomic::{AtomicI32, Ordering};
/// static NEXT: AtomicI32 = AtomicI32::new(10);
/// let draw = |_: &()| Tensor::from(NEXT.fetch_add(1, Ordering::Relaxed));
/// let f = jit(move |x: &Tensor| fori_loop(0, 3, move |_: &Tensor, x: &Tensor| io_callback(draw, &Tensor::from(0), &()).map(|y| x * 100 + y), x));
/// assert_eq!(f(&Tensor::from(0))?.item(), 101112.0);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// Those of [`pure_callback`]; under `vmap`, whose slices have no order.
pub fn io_callback<X, Y, R>(f: impl Fn(&X) -> R + Send + Sync + 'static, like: &Y, x: &X) -> Res<Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    R: Output<Y>,
{
    called(CallbackKind::Io, f, like, x)
}
/// Calls `f` with the values that `x` has when the program runs, each time: to print them, say. [`effects_barrier`] waits for it.
///
/// # Errors
/// Errors of the surrounding transform.
pub fn debug_callback<X: Tree + Send + Sync + 'static>(f: impl Fn(&X) + Send + Sync + 'static, x: &X) -> Res<()> {
    called(CallbackKind::Debug, f, &(), x)
}
/// Waits until the callbacks of all programs that were called have run.
///
/// # Errors
/// That of one that failed.
pub fn effects_barrier() -> Res<()> {
    mistakes::init();
    runtime::barrier()
}

/// A closure as a function over bytes; its trees' tensors are placeholders.
struct RustFn<F, X, Y> {
    f: Arc<F>,
    x: Arc<X>,
    like: Arc<Y>,
    ins: Vec<Aval>,
    outs: Vec<Aval>,
}
fn placeholders<T: Tree>(x: &T) -> Arc<T> {
    Arc::new(x.map(|_| 0.0f32.into_tensor()))
}
fn called<X, Y, R>(kind: CallbackKind, f: impl Fn(&X) -> R + Send + Sync + 'static, like: &Y, x: &X) -> Res<Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    R: Output<Y>,
{
    mistakes::init();
    let strong = |t: &Value| Aval { weak: false, ..t.aval() };
    let result_avals: Vec<Aval> = flat(like).iter().map(strong).collect();
    let operands = flat(x);
    let (f, at, of) = (Arc::new(f), placeholders(x), placeholders(like));
    let make = move |ins: &[Aval], outs: &[Aval]| {
        let call = RustFn { f: f.clone(), x: at.clone(), like: of.clone(), ins: ins.to_vec(), outs: outs.to_vec() };
        Arc::new(call) as Arc<dyn HostFn>
    };
    let op = Callback {
        kind,
        callback: Callable { name: "callback".into(), host: None, make: Arc::new(make) },
        ins: operands.iter().map(Value::aval).collect(),
        ordered: kind == CallbackKind::Io,
        result_avals,
        vmap_method: Some("sequential".into()),
    };
    Ok(unflat(like, bind(&op.into(), &operands)?))
}
impl<F, X, Y, R> RustFn<F, X, Y>
where
    F: Fn(&X) -> R,
    X: Tree,
    Y: Tree,
    R: Output<Y>,
{
    fn run(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()> {
        let host = &device::cpus()[0];
        let one = |(a, b): (&Aval, &&[u8])| {
            Ok(Value::Array(array::from_bytes(Aval { weak: false, ..a.clone() }, b, host, false)?))
        };
        let x: Vec<Value> = self.ins.iter().zip(ins).map(one).collect::<Res<_>>()?;
        // its operations are evaluated at once, whatever trace was current on this thread
        let y = ferrax_ir::cx::enter(ferrax_ir::cx::eval_root(), || catch(|| (self.f)(&unflat(&*self.x, x)).output()))?;
        let (want, got) = (Outline::of(&*self.like), Outline::of(&y));
        if want.text() != got.text() {
            return Err(Error::type_error(format!(
                "a callback returned the structure {} where {} was promised",
                got.text(),
                want.text()
            )));
        }
        for ((v, a), to) in flat(&y).into_iter().zip(&self.outs).zip(outs) {
            let made = v.aval();
            if made.shape != a.shape || made.dtype != a.dtype {
                return Err(Error::type_error(format!(
                    "a callback returned {} where {} was promised",
                    made.long(),
                    a.long()
                )));
            }
            to.copy_from_slice(&Tensor(v).to_bytes()?);
        }
        Ok(())
    }
}
impl<F, X, Y, R> HostFn for RustFn<F, X, Y>
where
    F: Fn(&X) -> R + Send + Sync,
    X: Tree + Send + Sync,
    Y: Tree + Send + Sync,
    R: Output<Y>,
{
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> ferrax_kernel::Res<()> {
        let run = || catch_unwind(AssertUnwindSafe(|| self.run(ins, outs)));
        match runtime::host(run) {
            None => Err(ferrax_kernel::Error::Cancelled),
            Some(Ok(r)) => r.map_err(|e| ferrax_kernel::Error::Device(format!("a callback failed: {}", e.message()))),
            Some(Err(p)) => {
                let said = p.downcast_ref::<String>().map(String::as_str).or_else(|| p.downcast_ref::<&str>().copied());
                Err(ferrax_kernel::Error::Device(format!("a callback panicked: {}", said.unwrap_or("no message"))))
            }
        }
    }
}
