//! `jit`: a function traced and compiled once for each structure, shapes and dtypes.
use super::{Output, body, flat, unflat};
use crate::compiled::Compiled;
use crate::eval;
use crate::spmd::device_of;
use crate::tree::{Outline, Tree};
use ferrax_ir::cx::{NamedAxis, bind};
use ferrax_ir::ops::call::Call;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Res, Value};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

/// One signature's trace.
struct Traced<Y> {
    call: Call,
    consts: Vec<Value>,
    like: Y,
    /// Compiled where it first ran eagerly.
    compiled: Mutex<Option<Arc<Compiled>>>,
}
/// What a trace depends on.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct TraceKey<S> {
    fixed: S,
    outline: String,
    avals: Vec<Aval>,
    axes: Vec<NamedAxis>,
    original_layout: bool,
}
impl<S> TraceKey<S> {
    pub fn new<X: Tree>(fixed: S, x: &X, leaves: &[Value]) -> TraceKey<S> {
        TraceKey {
            fixed,
            outline: Outline::of(x).text().into(),
            avals: leaves.iter().map(Value::aval).collect(),
            axes: ferrax_ir::cx::axes(),
            original_layout: crate::layout::is_original(),
        }
    }
}
type Traces<S, Y> = Mutex<HashMap<TraceKey<S>, Arc<Traced<Y>>>>;

pub(super) fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// A compiled function: what [`jit`] calls, for who wants to look at it. `S` is what is known when it is traced.
///
/// ```
/// use ferrax::{Jitted, Tensor};
/// let f = Jitted::new(|x: &Tensor| (x.sin() * 2.0 + 1.0).sum());
/// let x = Tensor::ones(&[8]);
/// assert!(f.call(&x)?.item() > 21.0);
/// println!("{}", f.plan(&x)?); // the program, and what the device does, step by step
/// assert_eq!(f.traces(), 1);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub struct Jitted<F, Y, S = ()> {
    f: F,
    cache: Traces<S, Y>,
}
impl<F, Y> Jitted<F, Y> {
    /// A function to be compiled when it is first called.
    pub fn new<X, R>(f: F) -> Jitted<F, Y>
    where
        X: Tree,
        Y: Tree,
        F: Fn(&X) -> R,
        R: Output<Y>,
    {
        Jitted { f, cache: Traces::default() }
    }
    /// Runs it.
    ///
    /// # Errors
    /// What went wrong in tracing, in compiling or in the run.
    pub fn call<X, R>(&self, x: &X) -> Res<Y>
    where
        X: Tree,
        Y: Tree,
        F: Fn(&X) -> R,
        R: Output<Y>,
    {
        run(&self.cache, (), &self.f, x, false)
    }
    /// The program for arguments like these, and what the device does for it, step by step: for people.
    ///
    /// # Errors
    /// What went wrong in tracing or in compiling.
    pub fn plan<X, R>(&self, x: &X) -> Res<String>
    where
        X: Tree,
        Y: Tree,
        F: Fn(&X) -> R,
        R: Output<Y>,
    {
        let (t, leaves) = signature(&self.cache, (), &self.f, x)?;
        let args: Vec<Value> = t.consts.iter().chain(&leaves).cloned().collect();
        Ok(format!("{}\n{}", t.call.jaxpr, t.compiled(&args)?.text()))
    }
    /// For how many signatures it has been traced.
    pub fn traces(&self) -> usize {
        locked(&self.cache).len()
    }
}

fn signature<S: Eq + Hash, X: Tree, Y: Tree, R: Output<Y>>(
    cache: &Traces<S, Y>,
    fixed: S,
    f: &impl Fn(&X) -> R,
    x: &X,
) -> Res<(Arc<Traced<Y>>, Vec<Value>)> {
    crate::mistakes::init();
    let leaves = flat(x);
    let key = TraceKey::new(fixed, x, &leaves);
    let hit = locked(cache).get(&key).cloned();
    let t = match hit {
        Some(t) => t,
        None => {
            let (p, consts, like) = body(f, x)?;
            let t = Arc::new(Traced { call: Call::new("f", p), consts, like, compiled: Mutex::default() });
            // what closed over a tracer belongs to the caller's trace
            if !t.consts.iter().any(Value::is_tracer) {
                locked(cache).insert(key, t.clone());
            }
            t
        }
    };
    Ok((t, leaves))
}
fn run<S: Eq + Hash, X: Tree, Y: Tree, R: Output<Y>>(
    cache: &Traces<S, Y>,
    fixed: S,
    f: &impl Fn(&X) -> R,
    x: &X,
    donate: bool,
) -> Res<Y> {
    let (t, leaves) = signature(cache, fixed, f, x)?;
    let args: Vec<Value> = t.consts.iter().chain(&leaves).cloned().collect();
    let y = if ferrax_ir::cx::at_root() && !args.iter().any(Value::is_tracer) {
        let donated: Vec<bool> = if donate { (0..args.len()).map(|i| i >= t.consts.len()).collect() } else { vec![] };
        t.compiled(&args)?.run(&args, &donated)?.into_iter().map(Value::Array).collect::<Values>()
    } else {
        bind(&t.call.clone().into(), &args)?
    };
    Ok(unflat(&t.like, y))
}
impl<Y> Traced<Y> {
    fn compiled(&self, args: &[Value]) -> Res<Arc<Compiled>> {
        let device = device_of(args, eval::current_device())?;
        let mut known = locked(&self.compiled);
        match &*known {
            Some(c) if c.device == device => Ok(c.clone()),
            _ => {
                let c = Arc::new(Compiled::new(self.call.jaxpr.clone(), device)?);
                *known = Some(c.clone());
                Ok(c)
            }
        }
    }
}

/// `f`, traced and compiled once for each structure, dtypes and shapes. Inside another transform it is one equation.
///
/// The function that it returns may be shared by threads if `f` may.
pub fn jit<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    let cache: Traces<(), Y> = Traces::default();
    move |x| run(&cache, (), &f, x, false)
}
/// The same with an argument that is known when it is traced: one trace for each value.
///
/// ```
/// use ferrax::{Tensor, jit_static};
/// let power = jit_static(|n: &i32, x: &Tensor| x.powi(*n));
/// assert_eq!(power(&3, &Tensor::from(2.0f32))?.item(), 8.0);
/// assert_eq!(power(&2, &Tensor::from(2.0f32))?.item(), 4.0);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn jit_static<S: Clone + Eq + Hash, X: Tree, Y: Tree, R: Output<Y>>(
    f: impl Fn(&S, &X) -> R,
) -> impl Fn(&S, &X) -> Res<Y> {
    let cache: Traces<S, Y> = Traces::default();
    move |s, x| run(&cache, s.clone(), &|x: &X| f(s, x), x, false)
}
/// The same; the argument is given up, and its memory may become the result's: for steps of training. Reading another
/// reference to a tensor of the argument is an error.
///
/// ```
/// use ferrax::{Tensor, jit_donate};
/// let step = jit_donate(|x: &Tensor| x + 1.0);
/// let x = Tensor::zeros(&[1000]);
/// let y = step(x.clone())?;
/// assert_eq!(y.sum().item(), 1000.0);
/// assert!(x.to_vec::<f32>().is_err()); // its memory may be y's
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn jit_donate<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(X) -> Res<Y> {
    let cache: Traces<(), Y> = Traces::default();
    move |x| run(&cache, (), &f, &x, true)
}
