//! Programs run eagerly, staged and differentiated, on the reference numbers.
use ferrax::{array, device, eval};
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::dot::{Dot, DotDims};
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::ops::reduce::{Monoid, Reduce};
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::{Aval, Dtype, Op, Res, Value, bind};
use std::sync::Arc;

fn arr(shape: &[usize], x: &[f32]) -> Value {
    eval::init();
    let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
    Value::Array(array::from_bytes(Aval::new(Dtype::F32, shape), &bytes, device::default_device(), false).unwrap())
}
fn nums(v: &Value) -> Vec<f32> {
    let Value::Array(a) = v else { panic!("{v:?} is not an array") };
    array::bytes(a).unwrap().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}
fn one(op: impl Into<Op>, x: &[&Value]) -> Res<Value> {
    let x: Vec<Value> = x.iter().map(|v| (*v).clone()).collect();
    Ok(bind(&op.into(), &x)?.remove(0))
}
fn sum(x: &Value) -> Res<Value> {
    one(Reduce { kind: Monoid::Sum, axes: (0..x.rank()).collect() }, &[x])
}
fn lits(x: f64) -> Value {
    ferrax_ir::cx::lit(Dtype::F32, x)
}

/// sum(sin(x @ y.T) * 2 + 1)
fn f(x: &Value, y: &Value) -> Res<Value> {
    let t = one(Transpose { permutation: [1, 0].into() }, &[y])?;
    let d = DotDims { lc: [1].into(), rc: [0].into(), ..DotDims::default() };
    let z = one(Dot::new(d), &[x, &t])?;
    let s = one(Pw::Sin, &[&z])?;
    let s = one(Pw::Mul, &[&s, &lits(2.0)])?;
    let s = one(Pw::Add, &[&s, &lits(1.0)])?;
    sum(&s)
}
fn close(a: &[f32], b: &[f32]) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs())), "{a:?} {b:?}");
}

#[test]
fn eager_staged_and_differentiated_agree() {
    let (x, y) = (arr(&[2, 3], &[1., 2., 3., 4., 5., 6.]), arr(&[2, 3], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]));
    let want: f32 = [1.4f32, 3.2, 3.2, 7.7].iter().map(|z| 2.0 * z.sin() + 1.0).sum();
    let eager = nums(&f(&x, &y).unwrap());
    close(&eager, &[want]);
    let (p, consts) =
        ferrax_transform::make_program(&|a| Ok([f(&a[0], &a[1])?].into_iter().collect()), &[x.aval(), y.aval()])
            .unwrap();
    assert!(consts.is_empty());
    let c = ferrax::compiled::Compiled::new(Arc::new(p), device::default_device()).unwrap();
    let staged = nums(&Value::Array(c.run(&[x.clone(), y.clone()], &[]).unwrap().remove(0)));
    assert_eq!(eager, staged);
    // two kernels: a transposed operand is read by its strides, and the chain after the product is one reduction
    assert_eq!(c.plan().steps.len(), 2, "{}", c.plan());

    let (_, lin) =
        ferrax_transform::linearize(&|a| Ok([f(&a[0], &a[1])?].into_iter().collect()), &[x.clone(), y.clone()])
            .unwrap();
    let g = lin.transpose(&[Some(lits(1.0))]).unwrap();
    let cos = [1.4f32, 3.2, 3.2, 7.7].map(|z| 2.0 * z.cos());
    let ys = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6f32]];
    let want: Vec<f32> =
        (0..2).flat_map(|i| (0..3).map(move |k| cos[2 * i] * ys[0][k] + cos[2 * i + 1] * ys[1][k])).collect();
    close(&nums(g[0].as_ref().unwrap()), &want);
}

#[test]
fn views_fold_into_kernels() {
    let x = arr(&[3], &[1., 2., 3.]);
    let g = |a: &[Value]| -> Res<ferrax_ir::Values> {
        let b = one(
            BroadcastInDim { broadcast_dimensions: [1].into(), shape: ferrax_ir::Dims::new(&[2, 3]).into() },
            &[&a[0]],
        )?;
        let t = one(Transpose { permutation: [1, 0].into() }, &[&b])?;
        let m = one(Pw::Mul, &[&t, &t])?;
        Ok([one(Pointwise { f: Pw::IntegerPow, y: 3 }, &[&m])?].into_iter().collect())
    };
    let eager = nums(&g(std::slice::from_ref(&x)).unwrap()[0]);
    let (p, _) = ferrax_transform::make_program(&g, &[x.aval()]).unwrap();
    let c = ferrax::compiled::Compiled::new(Arc::new(p), device::default_device()).unwrap();
    assert_eq!(nums(&Value::Array(c.run(&[x], &[]).unwrap().remove(0))), eager);
    assert_eq!(eager, [1., 1., 64., 64., 729., 729.]);
    assert_eq!(c.plan().steps.len(), 1, "{}", c.plan());
}

#[test]
fn keys_and_bits_are_jax_s() {
    use ferrax_ir::ops::random::{KeyCast, KeyMap, RandomBits, RandomKey, RandomMap, RandomSplit};
    eval::init();
    let seed = ferrax_ir::cx::int(Dtype::I32, 0);
    let key = one(RandomKey { kind: KeyCast::Seed, r#impl: ferrax_ir::KeyImpl::Fry }, &[&seed]).unwrap();
    let words = |v: &Value| -> Vec<u32> {
        let Value::Array(a) = v else { panic!("no array") };
        array::bytes(a).unwrap().chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let bits = one(RandomBits { bit_width: 32, original: false, shape: [4].into() }, &[&key]).unwrap();
    assert_eq!(words(&bits), [4070199207, 4202968722, 1427181096, 2012915765]);
    let two = one(RandomSplit { original: false, shape: [2].into() }, &[&key]).unwrap();
    let raw = one(RandomMap { kind: KeyMap::Unwrap }, &[&two]).unwrap();
    assert_eq!(words(&raw), [1797259609, 2579123966, 928981903, 3453687069]);
}
