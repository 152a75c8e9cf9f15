//! Control flow that depends on values: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`, `associative_scan`.
//!
//! ```
//! use ferrax::{Tensor, associative_scan, cond, fori_loop, scan, switch, while_loop};
//! let x = Tensor::from(3.0f32);
//! let y: Tensor = cond(&x.gt(2.0), |x: &Tensor| x * 2.0, |x: &Tensor| -x, &x)?;
//! assert_eq!(y.item(), 6.0);
//! let z: Tensor = switch(&Tensor::from(1), &[&|x: &Tensor| x + 1.0, &|x: &Tensor| x * x], &x)?;
//! assert_eq!(z.item(), 9.0);
//! // the largest power of two below 1000
//! let p = while_loop(|p: &Tensor| p.lt(500.0), |p: &Tensor| p * 2.0, &Tensor::from(1.0f32))?;
//! assert_eq!(p.item(), 512.0);
//! let f = fori_loop(1, 6, |i: &Tensor, f: &Tensor| f * i, &Tensor::from(1.0f32))?;
//! assert_eq!(f.item(), 120.0);
//! let xs = Tensor::from([1.0f32, 2.0, 3.0]);
//! let (total, sums) = scan(|c: &Tensor, x: &Tensor| (c + x, c + x), &Tensor::from(0.0f32), &xs)?;
//! assert_eq!((total.item(), sums.to_vec::<f32>()?), (6.0, vec![1.0, 3.0, 6.0]));
//! let products = associative_scan(|a: &Tensor, b: &Tensor| a * b, &xs, 0, false)?;
//! assert_eq!(products.to_vec::<f32>()?, [1.0, 2.0, 6.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: each is one equation; values that a closure captures become its leading operands.
//! Carries keep structure, shape and dtype; weak dtypes are made strong on entry and exit.
use super::{Output, body, call, flat, returned, unflat};
use crate::mistakes::{self, catch};
use crate::tensor::{IntoTensor, Tensor, concatenate, emit};
use crate::tree::{Outline, Tree};
use ferrax_ir::cx::bind;
use ferrax_ir::ops::cond::{Cond, widen};
use ferrax_ir::ops::loops::{Loop, Trip};
use ferrax_ir::ops::pad::Pad;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::{Aval, Dtype, Error, Lit, Program, Res, Value};
use ferrax_transform as transform;
use std::cell::RefCell;
use std::sync::Arc;

fn strong<T: Tree>(x: &T) -> Res<T> {
    mistakes::init();
    catch(|| Ok(x.map(Tensor::strong)))
}
fn avals<T: Tree>(x: &T) -> Vec<Aval> {
    flat(x).iter().map(Value::aval).collect()
}
/// Structures and types that must be one.
pub(super) fn same<T: Tree>(what: &str, a: &T, b: &T) -> Res<()> {
    let (la, lb) = (Outline::of(a), Outline::of(b));
    if la.text() != lb.text() {
        return Err(Error::type_error(format!(
            "{what} must have the same structure, got {} and {}",
            la.text(),
            lb.text()
        )));
    }
    for ((x, y), at) in avals(a).iter().zip(&avals(b)).zip(la.paths()) {
        if x.shape != y.shape || x.dtype != y.dtype {
            return Err(Error::type_error(format!(
                "{what} must have equal types (e.g. shapes and dtypes of arrays), but {} has type {} and {}",
                if at.is_empty() { "it" } else { at.as_str() },
                x.long(),
                y.long()
            )));
        }
    }
    Ok(())
}

/// `yes(x)` where the condition (a rank-0 tensor) holds, else `no(x)`. Inside `vmap` both run, and results are chosen lane by lane.
///
/// # Errors
/// `Type` if the two return different structures or types; what the closures return.
pub fn cond<X: Tree, Y: Tree, R: Output<Y>, Q: Output<Y>>(
    condition: &Tensor,
    yes: impl Fn(&X) -> R,
    no: impl Fn(&X) -> Q,
    x: &X,
) -> Res<Y> {
    let index = catch(|| Ok(condition.astype(Dtype::BOOL).astype(Dtype::I32)))?;
    let (yes, no) = (|x: &X| yes(x).output(), |x: &X| no(x).output());
    branches(&index, &[&no, &yes], x, "true_fun and false_fun output")
}
/// `branches[index](x)`; an index that is out of range counts as the nearest.
///
/// # Errors
/// As [`cond`]; `Value` for no branches.
pub fn switch<X: Tree, Y: Tree, R: Output<Y>>(index: &Tensor, of: &[&dyn Fn(&X) -> R], x: &X) -> Res<Y> {
    if of.is_empty() {
        return Err(Error::value("Empty branch sequence"));
    }
    let index = catch(|| Ok(index.astype(Dtype::I32).clip(0, of.len() - 1)))?;
    let made: Vec<_> = of.iter().map(|f| move |x: &X| f(x).output()).collect();
    let all: Vec<&dyn Fn(&X) -> Res<Y>> = made.iter().map(|f| f as &dyn Fn(&X) -> Res<Y>).collect();
    branches(&index, &all, x, "branch 0 and another branch's output")
}
fn branches<X: Tree, Y: Tree>(index: &Tensor, of: &[&dyn Fn(&X) -> Res<Y>], x: &X, what: &str) -> Res<Y> {
    let mut parts = vec![];
    let mut likes: Vec<Y> = vec![];
    for f in of {
        let (p, consts, y) = body(&|x: &X| strong(&f(x)?), x)?;
        if let Some(first) = likes.first() {
            same(what, first, &y)?;
        }
        likes.push(y);
        parts.push((p, consts));
    }
    let own = flat(x);
    let consts: Vec<Vec<Aval>> = parts.iter().map(|p| p.1.iter().map(Value::aval).collect()).collect();
    let wide = parts.iter().enumerate().map(|(k, (p, _))| widen(p, k, &consts, own.len())).collect();
    let captured = parts.iter().flat_map(|p| p.1.clone());
    let args: Vec<Value> = std::iter::once(index.0.clone()).chain(captured).chain(own).collect();
    Ok(unflat(&likes[0], bind(&Cond { branches: wide }.into(), &args)?))
}

/// `x = step(x)` while `go(x)` holds. Forward derivatives go through it, and reverse ones too.
///
/// # Errors
/// `Type` if the step changes structure or types, or the condition is no rank-0 boolean.
pub fn while_loop<C: Tree, Q: Output<Tensor>, R: Output<C>>(
    go: impl Fn(&C) -> Q,
    step: impl Fn(&C) -> R,
    init: &C,
) -> Res<C> {
    let init = strong(init)?;
    let (cond, cond_consts, p) = body(&|c: &C| go(c).output(), &init)?;
    if p.rank() > 0 || !p.dtype().is_bool() {
        return Err(Error::type_error(format!(
            "while_loop cond_fun must return a boolean scalar, but got {}",
            p.aval().long()
        )));
    }
    let (body, consts, y) = body(&|c: &C| strong(&step(c).output()?), &init)?;
    same("while_loop body function carry input and carry output", &init, &y)?;
    let own = flat(&init);
    let trip = Trip::While { cond, n_cond: cond_consts.len(), counted: false };
    let op = Loop::new(trip, consts.len(), own.len(), body);
    let args: Vec<Value> = cond_consts.into_iter().chain(consts).chain(own).collect();
    Ok(unflat(&y, bind(&op.into(), &args)?))
}
/// `x = step(i, x)` for i from `low` to before `high` (int32). Where both are Rust integers it is a [`scan`], else a [`while_loop`].
///
/// # Errors
/// `Type` if the step changes structure or types.
pub fn fori_loop<C: Tree, R: Output<C>>(
    low: impl IntoTensor,
    high: impl IntoTensor,
    step: impl Fn(&Tensor, &C) -> R,
    init: &C,
) -> Res<C> {
    mistakes::init();
    let (low, high) = (low.into_tensor(), high.into_tensor());
    let init = strong(init)?;
    let known = |t: &Tensor| match &t.0 {
        Value::Lit(l) => l.scalar().map(|s| s.to_i64()),
        _ => None,
    };
    let first = catch(|| Ok(low.astype(Dtype::I32)))?;
    let next = |i: &Tensor, c: &C| -> Res<(Tensor, C)> { Ok((i + 1, strong(&step(i, c).output()?)?)) };
    if let (Some(a), Some(b)) = (known(&low), known(&high)) {
        let o = ScanOptions { length: Some((b - a).max(0) as usize), ..ScanOptions::default() };
        let each = |(i, c): &(Tensor, C), _: &()| -> Res<((Tensor, C), ())> { Ok((next(i, c)?, ())) };
        let ((_, c), ()) = scan_with(o, each, &(first, init), &())?;
        return Ok(c);
    }
    let last = catch(|| Ok(high.astype(Dtype::I32)))?;
    let go = |(i, _): &(Tensor, C)| i.lt(&last);
    Ok(while_loop(go, |(i, c): &(Tensor, C)| next(i, c), &(first, init))?.1)
}

/// How a scan goes.
///
/// ```
/// use ferrax::{ScanOptions, Tensor, scan_with};
/// let o = ScanOptions { length: Some(3), reverse: true, ..ScanOptions::default() };
/// let (total, all) = scan_with(o, |c: &Tensor, x: &Tensor| (c + x, c * 1), &Tensor::from(0), &Tensor::from([1, 2, 3]))?;
/// assert_eq!((total.item(), all.to_vec::<i32>()?), (6.0, vec![5, 3, 0]));
/// # Ok::<(), ferrax::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// The number of steps, if nothing is scanned over.
    pub length: Option<usize>,
    /// From the end; what is stacked stays in place.
    pub reverse: bool,
    /// Steps per iteration of the compiled loop; 0 counts as 1.
    pub unroll: u32,
}
/// `(carry, y) = step(carry, x)` over the leading axis of `xs`; the last carry, and all y stacked.
///
/// # Errors
/// `Type` if the carry changes structure or types, `Value` if leading axes differ.
pub fn scan<C: Tree, X: Tree, Y: Tree, R: Output<(C, Y)>>(step: impl Fn(&C, &X) -> R, init: &C, xs: &X) -> Res<(C, Y)> {
    scan_with(ScanOptions::default(), step, init, xs)
}
/// [`scan`] with options: a length (and `&()` for `xs`), from the end, unrolled.
///
/// # Errors
/// Those of `scan`.
pub fn scan_with<C: Tree, X: Tree, Y: Tree, R: Output<(C, Y)>>(
    o: ScanOptions,
    step: impl Fn(&C, &X) -> R,
    init: &C,
    xs: &X,
) -> Res<(C, Y)> {
    let init = strong(init)?;
    let rows = flat(xs);
    let length = lengths(&rows, o.length)?;
    let own = flat(&init);
    let n_carry = own.len();
    let ins: Vec<Aval> = own.iter().map(Value::aval).chain(rows.iter().map(|x| x.aval().unbatched(0))).collect();
    let out: RefCell<Option<(C, Y)>> = RefCell::new(None);
    let like = (init.map(Clone::clone), xs.map(Clone::clone));
    let each = |(c, x): &(C, X)| -> Res<(C, Y)> { strong(&step(c, x).output()?) };
    let (p, consts): (Program, Vec<Value>) = transform::make_program(&|a| call(&each, &like, a, &out), &ins)?;
    let y = returned(out)?;
    same("scan body function carry input and carry output", &init, &y.0)?;
    let unroll = o.unroll.max(1);
    let trip = Trip::Static(length);
    let op = Loop { reverse: o.reverse, unroll, ..Loop::new(trip, consts.len(), n_carry, Arc::new(p.open())) };
    let args: Vec<Value> = consts.into_iter().chain(own).chain(rows).collect();
    if y.paths().is_empty() {
        return Ok(y);
    }
    Ok(unflat(&y, bind(&op.into(), &args)?))
}
fn lengths(rows: &[Value], length: Option<usize>) -> Res<usize> {
    let mut n = length;
    for x in rows {
        let Some(m) = x.shape().first() else {
            return Err(Error::value("scan got value with no leading axis to scan over."));
        };
        match n {
            Some(n) if n != *m => {
                return Err(Error::value(format!("scan got values with different leading axis sizes: {n}, {m}.")));
            }
            _ => n = Some(*m),
        }
    }
    n.ok_or_else(|| Error::value("scan got no values to scan over and `length` not provided."))
}
/// `f` of every slice along the leading axis, one after the other; see [`crate::vmap`] for all at once.
///
/// # Errors
/// Those of [`scan`].
pub fn map<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R, xs: &X) -> Res<Y> {
    Ok(scan(|_: &(), x: &X| -> Res<((), Y)> { Ok(((), f(x).output()?)) }, &(), xs)?.1)
}

/// All prefixes combined by an associative `f`, in logarithmic depth: element i is `f(.. f(x0, x1) .., xi)`. `f` acts elementwise along the axis.
///
/// # Errors
/// `Value` if sizes along the axis differ.
pub fn associative_scan<T: Tree, R: Output<T>>(
    f: impl Fn(&T, &T) -> R,
    elements: &T,
    axis: i64,
    reverse: bool,
) -> Res<T> {
    mistakes::init();
    let mut xs = crate::tree::flat(elements);
    if xs.is_empty() {
        return Ok(elements.map(Clone::clone));
    }
    let k = catch(|| Ok(crate::tensor::axis_of(axis, xs[0].rank())))?;
    if xs.iter().any(|x| x.shape().get(k) != xs[0].shape().get(k)) {
        let shapes: Vec<&[usize]> = xs.iter().map(Tensor::shape).collect();
        return Err(Error::value(format!(
            "Array inputs to associative_scan must have the same first dimension. (saw: {shapes:?})"
        )));
    }
    let turn = |xs: Vec<Tensor>| catch(|| Ok(xs.iter().map(|x| x.flip(k)).collect::<Vec<_>>()));
    if reverse {
        xs = turn(xs)?;
    }
    let tree = |x: &[Tensor]| unflat(elements, x.iter().map(|t| t.0.clone()));
    let combine = |a: &[Tensor], b: &[Tensor]| -> Res<Vec<Tensor>> {
        let y = crate::tree::flat(&catch(|| f(&tree(a), &tree(b)).output())?);
        match y.len() == a.len() && y.iter().zip(a).all(|(y, a)| y.shape() == a.shape()) {
            true => Ok(y),
            false => Err(Error::type_error(format!(
                "the function of associative_scan returns elements like those it is given: {}, not {}",
                shapes(a),
                shapes(&y)
            ))),
        }
    };
    let mut out = prefixes(xs, k, &combine)?;
    if reverse {
        out = turn(out)?;
    }
    Ok(tree(&out))
}
fn shapes(x: &[Tensor]) -> String {
    x.iter().map(|x| x.aval().long()).collect::<Vec<_>>().join(", ")
}
type Associative<'a> = &'a dyn Fn(&[Tensor], &[Tensor]) -> Res<Vec<Tensor>>;
fn prefixes(xs: Vec<Tensor>, k: usize, combine: Associative) -> Res<Vec<Tensor>> {
    let n = xs[0].shape()[k];
    if n < 2 {
        return Ok(xs);
    }
    let every = |xs: &[Tensor], a: usize, b: usize| -> Res<Vec<Tensor>> {
        catch(|| Ok(xs.iter().map(|x| second(x, k, a, b)).collect()))
    };
    // combine neighbours, solve for the odd positions, and fill in the even ones from those
    let pairs = combine(&every(&xs, 0, n - 1)?, &every(&xs, 1, n)?)?;
    let odd = prefixes(pairs, k, combine)?;
    let m = odd[0].shape()[k];
    let even = if n.is_multiple_of(2) {
        let before = catch(|| Ok(odd.iter().map(|x| x.narrow(k, 0, m - 1)).collect::<Vec<_>>()))?;
        combine(&before, &every(&xs, 2, n)?)?
    } else {
        combine(&odd, &every(&xs, 2, n)?)?
    };
    let join = |(i, x): (usize, &Tensor)| {
        let even = concatenate(&[&x.narrow(k, 0, 1), &even[i]], k as i64);
        interleave(&even, &odd[i], k)
    };
    catch(|| Ok(xs.iter().enumerate().map(join).collect()))
}
/// Every second element from a to before b.
fn second(x: &Tensor, axis: usize, a: usize, b: usize) -> Tensor {
    let mut at: Vec<crate::Subscript> = (0..axis).map(|_| (..).into()).collect();
    at.push(crate::Subscript::from(a..b).step(2));
    x.slice(at)
}
/// a0, b0, a1, b1, ..
fn interleave(a: &Tensor, b: &Tensor, axis: usize) -> Tensor {
    let even = a.shape()[axis] == b.shape()[axis];
    let spread = |x: &Tensor, low: i64, high: i64| {
        let config = (0..x.rank()).map(|k| if k == axis { (low, high, 1) } else { (0, 0, 0) }).collect();
        let zero = Tensor(Value::Lit(Lit::zero(x.dtype())));
        emit(Pad { padding_config: config }, &[x, &zero])
    };
    let f = if a.dtype().is_bool() { Pw::Or } else { Pw::Add };
    emit(f, &[&spread(a, 0, even as i64), &spread(b, 1, !even as i64)])
}
