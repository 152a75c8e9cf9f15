//! Functions with custom derivative rules, and checkpoints.
use super::{Output, body, call, flat, returned, unflat};
use crate::mistakes::{self, catch};
use crate::tree::Tree;
use ferrax_ir::cx::{Fun, Tan, bind, current};
use ferrax_ir::ops::checkpoint::Remat;
use ferrax_ir::ops::custom::{CustomJvp, CustomVjp, NumOuts};
use ferrax_ir::{Aval, Error, Res, Value};
use std::cell::RefCell;
use std::sync::{Arc, Mutex};

/// `f`, whose reverse mode keeps its argument alone and computes the rest again.
///
/// ```
/// use ferrax::{Tensor, checkpoint, grad};
/// let f = |x: &Tensor| x.sin().sin().sum();
/// let x = Tensor::from([0.5f32, 1.5]);
/// assert_eq!(grad(checkpoint(f))(&x)?.to_vec::<f32>()?, grad(f)(&x)?.to_vec::<f32>()?);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn checkpoint<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    move |x| {
        let (p, consts, y) = body(&f, x)?;
        let args: Vec<Value> = consts.into_iter().chain(flat(x)).collect();
        Ok(unflat(&y, bind(&Remat::new(p).into(), &args)?))
    }
}

/// What a closure returned last, reported by its caller.
struct Returned<T>(Arc<Mutex<Option<T>>>);
impl<T> Clone for Returned<T> {
    fn clone(&self) -> Returned<T> {
        Returned(self.0.clone())
    }
}
impl<T: Tree> Returned<T> {
    fn new() -> Returned<T> {
        Returned(Arc::default())
    }
    fn set(&self, x: T) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = Some(x);
    }
    fn with<U>(&self, f: impl FnOnce(&T) -> U) -> Res<U> {
        match &*self.0.lock().unwrap_or_else(|e| e.into_inner()) {
            Some(x) => Ok(f(x)),
            None => Err(Error::value("a custom derivative rule ran before its function")),
        }
    }
    /// A tree like it, of other tensors.
    fn like(&self, leaves: impl IntoIterator<Item = Value>) -> Res<T> {
        self.with(|x| unflat(x, leaves))
    }
}
fn zeros(a: &Aval) -> Res<Value> {
    current().zeros(a)
}
/// One value for each type: the next given one where the type has a derivative, else zeros.
fn spread<'a>(types: &[Aval], x: &[Tan], given: impl Iterator<Item = &'a Tan>) -> Res<Vec<Value>> {
    let mut given = given;
    let one = |(i, a): (usize, &Aval)| match x.get(i) {
        _ if a.dtype.is_inexact() => current().inst(given.next().unwrap_or(&None), a),
        Some(Some(key)) if a.dtype.is_key() => Ok(key.clone()), // there is no zero of keys
        _ => zeros(a),
    };
    types.iter().enumerate().map(one).collect()
}
/// Of what a rule returned, what belongs to values that have a derivative: of their types, one for each.
fn differentiable(rule: &str, types: &[Aval], x: Vec<Value>) -> Res<Vec<Tan>> {
    if x.len() != types.len() {
        return Err(Error::type_error(format!(
            "{rule} returns a tensor for each of {}, and gave {}",
            types.len(),
            x.len()
        )));
    }
    let own = types.iter().zip(x).filter(|(a, _)| a.dtype.is_inexact());
    own.map(|(a, v)| match *a.shape == *v.shape() && a.dtype == v.dtype() {
        true => Ok(Some(v)),
        false => Err(Error::type_error(format!(
            "{rule} returns changes of the types of what changes: expected {}, got {}",
            a.long(),
            v.aval().long()
        ))),
    })
    .collect()
}

/// `f` with a derivative of its own: `rule(x, dx)` gives `(f(x), its change)`, linear in dx. Reverse mode transposes it.
///
/// ```
/// use ferrax::{Tensor, custom_jvp, grad};
/// // log(1 + exp(x)), whose derivative does not overflow
/// let f = custom_jvp(
///     |x: &Tensor| x.exp().log1p(),
///     |x: &Tensor, dx: &Tensor| (x.exp().log1p(), dx * (1.0 - 1.0 / (1.0 + x.exp()))),
/// );
/// assert_eq!(grad(f)(&Tensor::from(100.0f32))?.item(), 1.0);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn custom_jvp<X, Y, R, Q>(
    f: impl Fn(&X) -> R + Send + Sync + 'static,
    rule: impl Fn(&X, &X) -> Q + Send + Sync + 'static,
) -> impl Fn(&X) -> Res<Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    R: Output<Y>,
    Q: Output<(Y, Y)>,
{
    let (f, rule) = (Arc::new(f), Arc::new(rule));
    move |x| {
        mistakes::init();
        let leaves = flat(x);
        let types: Vec<Aval> = leaves.iter().map(Value::aval).collect();
        let like = Arc::new(x.map(Clone::clone));
        let outputs = Returned::new();
        let value = value_of(f.clone(), like.clone(), outputs.clone());
        let (rule, seen) = (rule.clone(), outputs.clone());
        let jvp = Fun::user_tans("jvp", move |all| {
            let n = types.len();
            let x = all[..n].iter().flatten().cloned();
            let x = unflat(&*like, x);
            let dx = unflat(&*like, spread(&types, &all[..n], all[n..].iter())?);
            let (y, dy) = catch(|| rule(&x, &dx).output())?;
            let (values, tangents) = (flat(&y), flat(&dy));
            seen.set(y);
            let types: Vec<Aval> = values.iter().map(Value::aval).collect();
            let tangents = differentiable("the rule of custom_jvp", &types, tangents)?;
            Ok(values.into_iter().map(Some).chain(tangents).collect())
        });
        let op = CustomJvp { name: "custom_jvp".into(), call_jaxpr: value, jvp, num_consts: 0, symbolic_zeros: false };
        outputs.like(bind(&op.into(), &leaves)?)
    }
}
/// A closure as a function of flat values, which records its result.
fn value_of<X, Y, R>(f: Arc<impl Fn(&X) -> R + Send + Sync + 'static>, like: Arc<X>, outputs: Returned<Y>) -> Fun
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    R: Output<Y>,
{
    Fun::user("f", move |v| {
        let out = RefCell::new(None);
        let y = call(&|x: &X| f(x), &*like, v, &out)?;
        outputs.set(returned(out)?);
        Ok(y)
    })
}

/// `f` with a reverse derivative of its own: `fwd(x)` gives `(f(x), kept)`, and `bwd(kept, change of the result)` the change of x.
///
/// ```
/// use ferrax::{Tensor, custom_vjp, grad};
/// // gradients limited to one
/// let gentle = custom_vjp(
///     |x: &Tensor| x.clone(),
///     |x: &Tensor| (x.clone(), ()),
///     |_: &(), ct: &Tensor| ct.clip(-1.0, 1.0),
/// );
/// let g = grad(|x: &Tensor| Ok::<_, ferrax::Error>((gentle(x)? * 5.0).sum()));
/// assert_eq!(g(&Tensor::ones(&[2]))?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn custom_vjp<X, Y, Z, R, Q, P>(
    f: impl Fn(&X) -> R + Send + Sync + 'static,
    fwd: impl Fn(&X) -> Q + Send + Sync + 'static,
    bwd: impl Fn(&Z, &Y) -> P + Send + Sync + 'static,
) -> impl Fn(&X) -> Res<Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
    Z: Tree + Send + Sync + 'static,
    R: Output<Y>,
    Q: Output<(Y, Z)>,
    P: Output<X>,
{
    let (f, fwd, bwd) = (Arc::new(f), Arc::new(fwd), Arc::new(bwd));
    move |x| {
        mistakes::init();
        let leaves = flat(x);
        let like = Arc::new(x.map(Clone::clone));
        let (outputs, kept): (Returned<Y>, Returned<Z>) = (Returned::new(), Returned::new());
        let outs = NumOuts::new(0);
        let value = {
            let (inner, outs) = (value_of(f.clone(), like.clone(), outputs.clone()), outs.clone());
            Fun::user("f", move |v| {
                let y = inner.call(&*current(), v)?;
                outs.set(y.len());
                Ok(y)
            })
        };
        let forward = {
            let (fwd, outs, outputs, kept) = (fwd.clone(), outs.clone(), outputs.clone(), kept.clone());
            Fun::user("fwd", move |v| {
                let (y, z) = catch(|| fwd(&unflat(&*like, v.iter().cloned())).output())?;
                let (ys, zs) = (flat(&y), flat(&z));
                outs.set(ys.len());
                outputs.set(y);
                kept.set(z);
                Ok(ys.into_iter().chain(zs).collect())
            })
        };
        let backward = {
            let (bwd, outputs, kept) = (bwd.clone(), outputs.clone(), kept.clone());
            let of: Vec<Aval> = leaves.iter().map(Value::aval).collect();
            Fun::user_tans("bwd", move |all| {
                let n = kept.with(|z| crate::tree::flat(z).len())?;
                let z = kept.like(all[..n].iter().flatten().cloned())?;
                let types: Vec<Aval> = outputs.with(|y| flat(y).iter().map(Value::aval).collect())?;
                let ct = outputs.like(spread(&types, &[], all[n..].iter())?)?;
                differentiable("the bwd of custom_vjp", &of, flat(&catch(|| bwd(&z, &ct).output())?))
            })
        };
        let op = CustomVjp {
            name: "custom_vjp".into(),
            call_jaxpr: value,
            fwd: forward,
            bwd: backward,
            num_consts: 0,
            num_outs: outs,
            symbolic_zeros: false,
        };
        outputs.like(bind(&op.into(), &leaves)?)
    }
}
