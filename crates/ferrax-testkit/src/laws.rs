//! Laws that hold for every primitive, on the backend that users run.
//!
//! ```text
//! run          the types are what infer says, the memory has their size
//! text, bytes  parse(print(p)) = p, read(write(p)) = p, for the primitive and for its derivative, transpose and batch
//! reference    cpu = the waist's reference, bit for bit but where an example says that backends round as they like
//! rescued      so is what runs where the backend fails: the plan without fusion, and with memory of its own for each value
//! staged       eager = jit, bit for bit, with neighbours to be fused with and operands stored transposed
//! derivative   jvp = finite differences; jvp of jvp too; narrow floats = double precision
//! adjoint      <J dx, ct> = <dx, J' ct>
//! lanes        batch = a loop over lanes, for all sets of operands, on all axes; as many equations for 2 lanes as for 5
//! nested       a named axis around another batch = the other batch around it = a loop, whether or not operands have its lanes
//! ```
//!
//! A law panics with what it compared. INVARIANT: no law names a primitive.
use crate::api::*;
use crate::examples::{Example, values};
use crate::faulty::{Fails, Faulty};
use ferrax::{array, compiled::Compiled, device};
use ferrax_ir::ErrorKind;
use ferrax_ir::code::{Decoder, Encoder};
use ferrax_ir::ops::concatenate::Concatenate;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::slice::Slice;
use ferrax_kernel::reference::ReferenceBackend;
use std::sync::{Arc, LazyLock};

pub type Law = fn(&Example);
pub const LAWS: &[(&str, Law)] = &[
    ("run", run),
    ("text", text),
    ("reference", reference),
    ("rescued", rescued),
    ("staged", staged),
    ("derivative", derivative),
    ("adjoint", adjoint),
    ("lanes", lanes),
    ("nested", nested),
];

fn ok<T>(e: &Example, what: &str, r: Res<T>) -> T {
    r.unwrap_or_else(|err| panic!("{}\n  {what}: {err:?}", e.text))
}
fn bytes(v: &Value) -> Vec<u8> {
    match v {
        Value::Array(a) => array::bytes(a).expect("elements"),
        v => panic!("no array: {v:?}"),
    }
}
/// The elements as doubles: parts of complex numbers one after the other.
fn flat(v: &Value) -> Vec<f64> {
    if let Value::Lit(l) = v {
        let (re, im) = l.parts();
        return if l.dtype().is_complex() { vec![re, im] } else { vec![re] };
    }
    let d = ferrax_ir::lower::physical(&v.aval()).dtype;
    bytes(v).chunks_exact(d.size()).map(|b| ferrax_kernel::Scalar::from_bytes(d, b).to_f64()).collect()
}
fn tolerance(d: Dtype) -> f64 {
    match d {
        Dtype::F64 | Dtype::C128 => 1e-12,
        Dtype::F32 | Dtype::C64 => 4e-6,
        Dtype::F16 => 4e-3,
        Dtype::BF16 => 3e-2,
        _ => 0.0,
    }
}
#[track_caller]
fn same(e: &Example, what: &str, got: &Value, want: &Value, tol: f64) {
    let (a, b) = (got.aval(), want.aval());
    assert!(a.dtype == b.dtype && a.shape == b.shape, "{}\n  {what}: {a:?} is not {b:?}", e.text);
    if tol == 0.0 {
        assert!(bytes(got) == bytes(want), "{}\n  {what}: {:?} is not {:?}", e.text, flat(got), flat(want));
    } else {
        close(e, what, &flat(got), &flat(want), tol);
    }
}
#[track_caller]
fn close(e: &Example, what: &str, got: &[f64], want: &[f64], tol: f64) {
    let near =
        |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tol * (1.0 + x.abs().max(y.abs()));
    let all = got.len() == want.len() && got.iter().zip(want).all(|(x, y)| near(*x, *y));
    assert!(all, "{}\n  {what}: {got:?} is not {want:?}", e.text);
}
fn program(e: &Example, what: &str, f: F, avals: &[Aval]) -> (Program, Vec<Value>) {
    ok(e, what, catch(|| make_program(f, avals)))
}

fn run(e: &Example) {
    let avals = e.avals();
    let y = ok(e, "run", e.call(&e.values(&avals, 0)));
    let (p, _) = program(e, "stage", &|x| e.call(x), &avals);
    assert_eq!(y.len(), p.out_avals().len(), "{}", e.text);
    for (y, a) in y.iter().zip(&p.out_avals()) {
        assert!(y.aval().same(a), "{}\n  ran to {:?}, not {a:?}", e.text, y.aval());
        let want = ferrax_ir::lower::physical(a);
        assert_eq!(bytes(y).len(), want.shape.size() * want.dtype.size(), "{}", e.text);
    }
}

fn reads_back(e: &Example, what: &str, p: &Program) {
    ok(e, what, ferrax_ir::verify::verify(p));
    let t = p.to_string();
    let mut funs = Default::default();
    crate::matrix::functions(p, &mut funs);
    let q = ferrax_ir::text::parse_with(&t, &funs).unwrap_or_else(|err| panic!("{}\n  {what}: {err:?}\n{t}", e.text));
    // Programs are compared by their text, which does not show weak types.
    assert!(t == q.to_string(), "{}\n  {what}: text does not read back\n{t}\n{q}", e.text);
    bytes_read_back(e, what, p, funs.is_empty());
}
/// Bytes preserve a program without functions of the host's exactly; of another they preserve the
/// meaning.
fn bytes_read_back(e: &Example, what: &str, p: &Program, plain: bool) {
    let p = Arc::new(p.with_consts(p.n_consts()));
    let mut encoder = Encoder::default();
    match encoder.program(&p) {
        Err(err) if !plain => assert!(err.kind() == Some(ErrorKind::NotImplemented), "{}\n  {what}: {err:?}", e.text),
        written => ok(e, what, written),
    }
    if !plain {
        return;
    }
    let bytes = ok(e, what, encoder.bytes());
    let mut decoder = Decoder::new(&bytes, &[]);
    let q = decoder.program().unwrap_or_else(|err| panic!("{}\n  {what}: {err:?}\n{p}", e.text));
    ok(e, what, decoder.end());
    // A literal among parameters comes back in its widest type, and means the same.
    let mut again = Encoder::default();
    ok(e, what, again.program(&q));
    let same = *p == *q || ok(e, what, again.bytes()) == bytes && p.to_string() == q.to_string();
    assert!(same, "{}\n  {what}: bytes do not read back\n{p}\n{q}", e.text);
}
fn text(e: &Example) {
    let avals = e.avals();
    let (p, _) = program(e, "stage", &|x| e.call(x), &avals);
    reads_back(e, "the primitive", &p);
    let lanes: Vec<Aval> = avals.iter().map(|a| a.batched(2, 0)).collect();
    if !avals.is_empty() {
        let axes = vec![Some(0); avals.len()];
        let outs = vec![0; p.out_avals().len()];
        reads_back(e, "its batch", &program(e, "batch", &|x| vmap(&|x| e.call(x), x, &axes, &outs), &lanes).0);
    }
    if !differentiable(e, &avals) {
        return;
    }
    let back = |x: &[Value]| -> Res<Vec<Value>> {
        let (y, lin) = linearize(&|x| e.call(x), x)?;
        let cts: Vec<_> = y.iter().map(|y| y.has_tangent().then(|| y.clone())).collect();
        Ok(lin.transpose(&cts)?.into_iter().flatten().collect())
    };
    reads_back(e, "its reverse", &program(e, "reverse", &back, &avals).0);
}

fn floats(avals: &[Aval]) -> Vec<bool> {
    avals.iter().map(Aval::has_tangent).collect()
}
/// Whether there is anything to differentiate, and a rule.
fn differentiable(e: &Example, avals: &[Aval]) -> bool {
    e.has_rule && floats(avals).contains(&true)
}

fn reference(e: &Example) {
    static PLAIN: LazyLock<device::Device> = LazyLock::new(|| device::Device::new(1000, 0, Arc::new(ReferenceBackend)));
    as_on(e, "reference", &PLAIN);
}
fn rescued(e: &Example) {
    static FAULTY: LazyLock<device::Device> =
        LazyLock::new(|| device::Device::new(1003, 0, Arc::new(Faulty(Fails::Compiling { panics: false }))));
    as_on(e, "rescued", &FAULTY);
}
fn as_on(e: &Example, what: &str, device: &'static device::Device) {
    let avals = e.avals();
    let x = e.values(&avals, 1);
    let (p, consts) = program(e, "stage", &|x| e.call(x), &avals);
    assert!(consts.is_empty(), "{}", e.text);
    let c = ok(e, "compile", Compiled::new(Arc::new(p), device));
    let x: Vec<Value> = x
        .iter()
        .map(|v| match v {
            Value::Array(a) => Value::Array(ok(e, "upload", array::put(a, device, true))),
            v => v.clone(),
        })
        .collect();
    let want = ok(e, what, c.run(&x, &[]));
    let got = ok(e, "cpu", e.call(&e.values(&avals, 1)));
    for (got, want) in got.iter().zip(want) {
        same(e, what, got, &Value::Array(want), if e.exact { 0.0 } else { tolerance(got.dtype()) });
    }
}
/// The function with something to fuse on both sides: operands stored transposed and passed through an exact function, results used twice.
fn with_neighbours(e: &Example, x: &[Value]) -> Res<Vec<Value>> {
    let before = |v: &Value| -> Value {
        let turned = if v.rank() >= 2 { transpose(v, &(0..v.rank()).rev().collect::<Vec<_>>()) } else { v.clone() };
        match v.dtype() {
            d if d.is_inexact() => pw(Pw::Neg, &[turned]),
            d if d.is_bool() => pw(Pw::Not, &[turned]),
            _ => turned,
        }
    };
    let x: Vec<Value> = x.iter().map(before).collect();
    let mut out = e.call(&x)?;
    for y in out.clone() {
        if y.dtype().is_inexact() {
            out.push(pw(Pw::Mul, &[y.clone(), y.clone()]));
            out.push(pw(Pw::Neg, &[y]));
        }
    }
    Ok(out)
}
fn staged(e: &Example) {
    let avals = e.avals();
    let x = e.values(&avals, 2);
    // so that the primitive gets values in its range
    let x: Vec<Value> = x
        .iter()
        .map(|v| {
            let v = match v.dtype() {
                d if d.is_inexact() => pw(Pw::Neg, &[v.clone()]),
                d if d.is_bool() => pw(Pw::Not, &[v.clone()]),
                _ => v.clone(),
            };
            if v.rank() >= 2 { transpose(&v, &(0..v.rank()).rev().collect::<Vec<_>>()) } else { v }
        })
        .collect();
    let f: F = &|x| with_neighbours(e, x);
    let want = ok(e, "eager", catch(|| f(&x)));
    let stored: Vec<Aval> = x.iter().map(Value::aval).collect();
    let (p, consts) = program(e, "stage", f, &stored);
    let c = ok(e, "compile", Compiled::new(Arc::new(p), device::default_device()));
    let args = [consts, x].concat();
    let got: Vec<Value> = ok(e, "staged", c.run(&args, &[])).into_iter().map(Value::Array).collect();
    for (got, want) in got.iter().zip(&want) {
        let (g, w) = (got.aval(), want.aval());
        assert!(g.dtype == w.dtype && g.shape == w.shape, "{}", e.text);
        assert!(
            bytes(got) == bytes(want),
            "{}\n  staged: {:?} is not {:?}\n{}",
            e.text,
            flat(got),
            flat(want),
            c.text()
        );
    }
}

/// Directions for the operands of a mask; None for the others.
fn directions(avals: &[Aval], mask: &[bool], seed: usize) -> Vec<Option<Value>> {
    let one = |(i, (a, m)): (usize, (&Aval, &bool))| m.then(|| values(&a.strong(), Some((-1.0, 1.0)), seed + i));
    avals.iter().zip(mask).enumerate().map(one).collect()
}
/// All differentiable operands at once, then each by itself.
fn masks(avals: &[Aval]) -> Vec<Vec<bool>> {
    let all = floats(avals);
    let mut out = vec![all.clone()];
    if all.iter().filter(|m| **m).count() > 1 {
        let alone = |i: usize| (0..all.len()).map(|j| i == j).collect();
        out.extend((0..all.len()).filter(|i| all[*i]).map(alone));
    }
    out
}
type Along<'a> = &'a dyn Fn(&[Value]) -> Res<Vec<Value>>;
/// The derivative of `f` at `x` along `dx`, as the differentiable outputs' tangents.
fn tangents(f: Along, x: &[Value], dx: &[Option<Value>]) -> Res<Vec<Value>> {
    let (y, dy) = catch(|| jvp(f, x, dx))?;
    let full =
        |(y, t): (&Value, Option<Value>)| y.has_tangent().then(|| ferrax_ir::current().inst(&t, &y.aval().strong()));
    y.iter().zip(dy).filter_map(full).collect()
}
/// Central differences of the differentiable outputs.
fn differences(e: &Example, f: Along, x: &[Value], dx: &[Option<Value>], h: f64) -> Vec<Vec<f64>> {
    let moved = |h: f64| -> Vec<Vec<f64>> {
        let step = |(v, t): (&Value, &Option<Value>)| match t {
            Some(t) => pw(Pw::Add, &[v.clone(), pw(Pw::Mul, &[t.clone(), ferrax_ir::cx::lit(t.dtype(), h)])]),
            None => v.clone(),
        };
        let x: Vec<Value> = x.iter().zip(dx).map(step).collect();
        ok(e, "differences", catch(|| f(&x))).iter().filter(|y| y.has_tangent()).map(flat).collect()
    };
    let (up, down) = (moved(h), moved(-h));
    up.iter().zip(&down).map(|(p, m)| p.iter().zip(m).map(|(p, m)| (p - m) / (2.0 * h)).collect()).collect()
}

/// Central differences as values, where all outputs are differentiable and in double precision.
fn moved(e: &Example, f: Along, x: &[Value], dx: &[Option<Value>]) -> Vec<Value> {
    let shapes = ok(e, "run", f(x));
    let by = differences(e, f, x, dx, 1e-6);
    shapes.iter().zip(by).map(|(y, d)| arr(y.shape(), &d)).collect()
}

fn derivative(e: &Example) {
    let avals = e.avals();
    if !floats(&avals).contains(&true) {
        return;
    }
    if !e.has_rule {
        let x = e.values(&avals, 3);
        assert!(
            tangents(&|x| e.call(x), &x, &directions(&avals, &floats(&avals), 50)).is_err(),
            "{} has a rule",
            e.text
        );
        return;
    }
    if !e.forward {
        assert!(
            tangents(&|x| e.call(x), &e.values(&avals, 3), &directions(&avals, &floats(&avals), 50)).is_err(),
            "{}",
            e.text
        );
        return;
    }
    let wide = e.widened();
    for mask in masks(&avals) {
        let (x, dx) = (e.values(&avals, 3), directions(&avals, &mask, 50));
        let dy = ok(e, "jvp", tangents(&|x| e.call(x), &x, &dx));
        let Some(w) = &wide else { continue };
        let wa = w.avals();
        // the same numbers, in double precision
        let widen = |v: &Value, a: &Aval| if v.dtype() == a.dtype { v.clone() } else { convert(v, a.dtype) };
        let wx: Vec<Value> = x.iter().zip(&wa).map(|(v, a)| widen(v, a)).collect();
        let wdx: Vec<Option<Value>> =
            dx.iter().zip(&wa).map(|(v, a)| v.as_ref().map(|v| widen(v, &a.strong()))).collect();
        let f: Along = &|x| w.call(x);
        let wdy = ok(e, "jvp", tangents(f, &wx, &wdx));
        for (t, wt) in dy.iter().zip(&wdy) {
            close(e, "derivative in double precision", &flat(t), &flat(wt), 40.0 * tolerance(t.dtype()));
        }
        let double = |v: &Value| matches!(v.dtype(), Dtype::F64 | Dtype::C128);
        if !e.smooth || !wdy.iter().all(double) {
            continue;
        }
        for (t, fd) in wdy.iter().zip(differences(e, f, &wx, &wdx, 1e-6)) {
            close(e, "finite differences", &flat(t), &fd, 2e-8);
        }
        // the derivative is a function too
        let v = directions(&wa, &floats(&wa), 90);
        let g: Along = &|x| tangents(f, x, &wdx);
        for (t, fd) in ok(e, "jvp of jvp", tangents(g, &wx, &v)).iter().zip(differences(e, g, &wx, &v, 1e-6)) {
            close(e, "finite differences of the derivative", &flat(t), &fd, 1e-6);
        }
    }
}

/// Sum of products, of complex numbers without conjugation; its real part.
fn inner(x: &Value, y: &Value) -> f64 {
    let (a, b) = (flat(x), flat(y));
    assert_eq!(a.len(), b.len());
    match x.dtype().is_complex() {
        true => a.chunks(2).zip(b.chunks(2)).map(|(a, b)| a[0] * b[0] - a[1] * b[1]).sum(),
        false => a.iter().zip(&b).map(|(a, b)| a * b).sum(),
    }
}
fn adjoint(e: &Example) {
    let avals = e.avals();
    if !differentiable(e, &avals) {
        return;
    }
    let x = e.values(&avals, 4);
    for mask in masks(&avals) {
        let wrt = |f: F, x: &[Value]| -> Res<(Vec<Value>, Linear)> {
            let (y, lin) = ferrax_transform::linearize_in(&|x| Ok(f(x)?.into()), x, &mask)?;
            Ok((y.into_vec(), lin))
        };
        let (y, lin) = ok(e, "linearize", catch(|| wrt(&|x| e.call(x), &x)));
        let dx = directions(&avals, &mask, 60);
        let given: Vec<Value> = dx.iter().zip(&x).map(|(t, x)| t.clone().unwrap_or_else(|| x.clone())).collect();
        let dy = match e.forward {
            true => ok(e, "linear program", catch(|| lin.apply(&given))),
            false => moved(e, &|x| e.call(x), &x, &dx).into_iter().map(Some).collect(),
        };
        let outs: Vec<Aval> = y.iter().map(Value::aval).collect();
        let all: Vec<bool> = floats(&outs);
        // cotangents for all outputs, then for each by itself: the others are zero
        let mut cases = vec![all.clone()];
        if all.iter().filter(|m| **m).count() > 1 {
            cases.extend((0..all.len()).filter(|i| all[*i]).map(|i| (0..all.len()).map(|j| i == j).collect()));
        }
        for on in cases {
            let ct = directions(&outs, &on, 70);
            let back = ok(e, "transpose", catch(|| lin.transpose(&ct)));
            let sum = |a: &[Option<Value>], b: &[Option<Value>]| -> f64 {
                a.iter().zip(b).filter_map(|(a, b)| Some(inner(a.as_ref()?, b.as_ref()?))).sum()
            };
            for (b, x) in back.iter().zip(&x) {
                let fits = b.as_ref().is_none_or(|b| b.dtype() == x.dtype() && b.shape() == x.shape());
                assert!(fits, "{}\n  a cotangent of type {:?} for {:?}", e.text, b.as_ref().map(Value::aval), x.aval());
            }
            let (l, r) = (sum(&dy, &ct), sum(&dx, &back));
            let narrowest = avals.iter().chain(&outs).map(|a| tolerance(a.dtype)).fold(0.0, f64::max);
            // rounding is not linear, and differences are not exact
            let tol = if !e.forward {
                1e-8
            } else if e.smooth {
                40.0 * narrowest
            } else {
                0.02
            };
            close(e, "<J dx, ct> = <dx, J' ct>", &[l], &[r], tol);
        }
    }
}

fn part(v: &Value, axis: usize, at: usize) -> Value {
    let shape = Dims::new(v.shape());
    let (mut start, mut limit): (Dims, Dims) = (shape.iter().map(|_| 0).collect(), shape.clone());
    start[axis] = at;
    limit[axis] = at + 1;
    let op = Slice { start_indices: start, limit_indices: limit, strides: None };
    reshape(&ferrax_ir::operators::emit(op, std::slice::from_ref(v)), &shape.remove(axis))
}
fn stack(parts: &[Value], axis: usize) -> Value {
    let grown: Vec<Value> = parts.iter().map(|v| reshape(v, &Dims::new(v.shape()).insert(axis, 1))).collect();
    ferrax_ir::operators::emit(Concatenate { dimension: axis }, &grown)
}
/// Which operands have lanes, for up to three all choices; for more, all and each alone.
fn choices(n: usize) -> Vec<Vec<bool>> {
    match n {
        0 => vec![],
        1..=3 => (1..1 << n).map(|m: usize| (0..n).map(|i| m >> i & 1 == 1).collect()).collect(),
        _ => std::iter::once(vec![true; n]).chain((0..n).map(|i| (0..n).map(|j| i == j).collect())).collect(),
    }
}
fn lanes(e: &Example) {
    if !e.apart {
        return;
    }
    let avals = e.avals();
    let n_out = program(e, "stage", &|x| e.call(x), &avals).1.len();
    assert_eq!(n_out, 0, "{}", e.text);
    let (p, _) = program(e, "stage", &|x| e.call(x), &avals);
    let outs = p.out_avals().to_vec();
    for mask in choices(avals.len()) {
        let ranks = avals.iter().zip(&mask).filter(|(_, m)| **m).map(|(a, _)| a.rank());
        let deepest = ranks.max().unwrap_or(0);
        for axis in 0..=deepest {
            let axes: Vec<Option<usize>> =
                avals.iter().zip(&mask).map(|(a, m)| m.then_some(axis.min(a.rank()))).collect();
            let out_axes: Vec<usize> = outs.iter().map(|a| (axis + 1) % (a.rank() + 1)).collect();
            for n in if axis == 0 { vec![3, 1, 0] } else { vec![3] } {
                one_batch(e, &avals, &axes, &out_axes, n);
            }
        }
        // each operand's lanes on an axis of its own
        let turned = (0..).zip(avals.iter().zip(&mask)).map(|(i, (a, m))| m.then_some((i + 1) % (a.rank() + 1)));
        one_batch(e, &avals, &turned.collect::<Vec<_>>(), &vec![0; outs.len()], 3);
        // every axis an output can have its lanes on
        let axes: Vec<Option<usize>> = mask.iter().map(|m| m.then_some(0)).collect();
        for to in 0..=outs.iter().map(Aval::rank).max().unwrap_or(0) {
            let out_axes: Vec<usize> = outs.iter().map(|a| to.min(a.rank())).collect();
            one_batch(e, &avals, &axes, &out_axes, 2);
        }
        let count = |n: usize| {
            let ins: Vec<Aval> =
                avals.iter().zip(&axes).map(|(a, d)| d.map_or(a.clone(), |d| a.batched(n, d))).collect();
            let to = vec![0; outs.len()];
            program(e, "batch", &|x| vmap(&|x| e.call(x), x, &axes, &to), &ins).0.eqns().len()
        };
        assert_eq!(count(2), count(5), "{}\n  equations for 2 lanes and for 5", e.text);
    }
}
fn one_batch(e: &Example, avals: &[Aval], axes: &[Option<usize>], out_axes: &[usize], n: usize) {
    let ins: Vec<Aval> = avals.iter().zip(axes).map(|(a, d)| d.map_or(a.clone(), |d| a.batched(n, d))).collect();
    let x = e.values(&ins, 5);
    let what = format!("{n} lanes at {axes:?} to {out_axes:?}");
    let got = ok(e, &what, catch(|| vmap(&|x| e.call(x), &x, axes, out_axes)));
    let lane = |k: usize| {
        let x: Vec<Value> = x.iter().zip(axes).map(|(v, d)| d.map_or(v.clone(), |d| part(v, d, k))).collect();
        ok(e, "one lane", catch(|| e.call(&x)))
    };
    let each: Vec<Vec<Value>> = (0..n).map(lane).collect();
    for (i, got) in got.iter().enumerate() {
        if n == 0 {
            assert_eq!(got.shape()[out_axes[i]], 0, "{}\n  {what}", e.text);
            continue;
        }
        let parts: Vec<Value> = each.iter().map(|y| y[i].clone()).collect();
        let want = stack(&parts, out_axes[i]);
        let d = got.dtype();
        same(e, &what, got, &want, if d.is_inexact() { 2.0 * tolerance(d) } else { 0.0 });
    }
}

/// The named axis and another batch, in both orders; the operands have lanes of both, or of either.
fn nested(e: &Example) {
    let Some(n) = e.lanes() else { return };
    let one = e.one_lane();
    let avals = one.avals();
    let outs = ok(e, "infer", e.op.rules().infer(&avals));
    for mask in choices(avals.len()) {
        let deepest = avals.iter().map(Aval::rank).max().unwrap_or(0);
        for (axis, named) in (0..=deepest).flat_map(|axis| [(axis, true), (axis, false)]) {
            let what = format!("2 other lanes at {axis} of {mask:?}, named lanes: {named}");
            let front = named as usize;
            let axes = |by: usize| -> Vec<Option<usize>> {
                avals.iter().zip(&mask).map(|(a, m)| m.then_some(axis.min(a.rank()) + by)).collect()
            };
            let to: Vec<usize> = outs.iter().map(|a| (axis + 1) % (a.rank() + 1)).collect();
            let deep: Vec<usize> = to.iter().map(|d| d + 1).collect();
            let other = |a: &Aval, d: &Option<usize>| d.map_or(a.clone(), |d| a.batched(2, d));
            let ins: Vec<Aval> = avals.iter().zip(&axes(0)).map(|(a, d)| other(a, d)).collect();
            let ins: Vec<Aval> = ins.iter().map(|a| if named { a.batched(n, 0) } else { a.clone() }).collect();
            let x = e.values(&ins, 6);
            // an operand more, so that the named axis has a size
            let over = |f: F, x: &[Value], out: &[usize]| {
                let x = [x, &[iota(Dtype::I32, &[n], 0)]].concat();
                let mut at = vec![named.then_some(0); x.len() - 1];
                at.push(Some(0));
                vmap_named(Some("i"), &|x| f(&x[..x.len() - 1]), &x, &at, out)
            };
            let at_front = vec![0; outs.len()];
            let inside = || over(&|x| vmap(&|x| one.call(x), x, &axes(0), &to), &x, &at_front);
            let outside = || vmap(&|x| over(&|x| one.call(x), x, &at_front), &x, &axes(front), &deep);
            let lane = |k: usize| {
                let x: Vec<Value> =
                    x.iter().zip(axes(front)).map(|(v, d)| d.map_or(v.clone(), |d| part(v, d, k))).collect();
                let all = |(v, a): (&Value, &Aval)| match named {
                    true => v.clone(),
                    false => broadcast(v, &a.shape.insert(0, n), &(1..=a.rank()).collect::<Vec<_>>()),
                };
                ok(e, "one lane", catch(|| e.call(&x.iter().zip(&avals).map(all).collect::<Vec<_>>())))
            };
            let each = [lane(0), lane(1)];
            for (what, got) in [("inside", ok(e, &what, catch(inside))), ("outside", ok(e, &what, catch(outside)))]
                .map(|(order, got)| (format!("{what}, {order} the named axis"), got))
            {
                for (i, got) in got.iter().enumerate() {
                    let want = stack(&[each[0][i].clone(), each[1][i].clone()], deep[i]);
                    let d = got.dtype();
                    same(e, &what, got, &want, if d.is_inexact() { 2.0 * tolerance(d) } else { 0.0 });
                }
            }
        }
    }
}
