//! Transforms of the Rust API: values, nesting in any order, threads, trees, and what mistakes say.
use ferrax::*;
use std::collections::{BTreeMap, HashMap};

fn v(t: &Tensor) -> Vec<f32> {
    t.astype(Dtype::F32).to_vec().unwrap()
}
fn f(x: &Tensor) -> Tensor {
    (x.sin() * x).sum()
}
const X: [f32; 3] = [0.5, 1.0, 2.0];
fn df(x: f32) -> f32 {
    x.cos() * x + x.sin()
}
fn close(a: &[f32], b: &[f32]) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs())), "{a:?} {b:?}");
}

#[test]
fn derivatives_agree_with_each_other() {
    let x = Tensor::from(X);
    let want = X.map(df);
    close(&v(&grad(f)(&x).unwrap()), &want);
    let (y, g) = value_and_grad(f)(&x).unwrap();
    close(&[y.item() as f32], &[X.iter().map(|x| x.sin() * x).sum()]);
    close(&v(&g), &want);
    let (_, t) = jvp(f, &x, &Tensor::from([0.0f32, 1.0, 0.0])).unwrap();
    close(&v(&t), &want[1..2]);
    let (_, lin) = linearize(|x: &Tensor| x.sin(), &x).unwrap();
    close(&v(&lin(&Tensor::ones(&[3])).unwrap()), &X.map(f32::cos));
    let (_, back) = vjp(|x: &Tensor| x.sin(), &x).unwrap();
    close(&v(&back(&Tensor::ones(&[3])).unwrap()), &X.map(f32::cos));
    let (a, b) = (jacfwd(|x: &Tensor| x.sin() * 2.0)(&x).unwrap(), jacrev(|x: &Tensor| x.sin() * 2.0)(&x).unwrap());
    assert_eq!(a.shape(), [3, 3]);
    close(&v(&a), &v(&b));
    close(&v(&a.diagonal()), &X.map(|x| 2.0 * x.cos()));
    close(&v(&hessian(f)(&x).unwrap().diagonal()), &X.map(|x| 2.0 * x.cos() - x * x.sin()));
}

#[test]
fn transforms_nest_in_any_order() {
    let rows = Tensor::from([X, X]);
    let want: Vec<f32> = X.map(df).repeat(2);
    close(&v(&vmap(grad(f))(&rows).unwrap()), &want);
    close(&v(&jit(vmap(grad(f)))(&rows).unwrap()), &want);
    close(&v(&vmap(jit(grad(jit(f))))(&rows).unwrap()), &want);
    close(&v(&grad(|r: &Tensor| Ok::<_, Error>(vmap(f)(r)?.sum()))(&rows).unwrap()), &want);
    close(&v(&grad(jit(checkpoint(|r: &Tensor| Ok::<_, Error>(vmap(f)(r)?.sum()))))(&rows).unwrap()), &want);
    let third = grad(|x: &Tensor| grad(|x: &Tensor| grad(|x: &Tensor| x.powi(4))(x))(x));
    assert_eq!(third(&Tensor::from(2.0f32)).unwrap().item(), 48.0);
    let inside = jit(|x: &Tensor| hessian(f)(x));
    assert_eq!(inside(&Tensor::from(X)).unwrap().shape(), [3, 3]);
    // scan in vmap in grad in jit
    let g = jit(grad(|r: &Tensor| {
        let each =
            vmap(|x: &Tensor| Ok::<_, Error>(scan(|c: &Tensor, x: &Tensor| (c * x, ()), &Tensor::from(1.0f32), x)?.0));
        Ok::<_, Error>(each(r)?.sum())
    }));
    close(&v(&g(&rows).unwrap()), &[2.0, 1.0, 0.5, 2.0, 1.0, 0.5]);
}

#[test]
fn control_flow_follows_values() {
    let x = Tensor::from(3.0f32);
    let up = |x: &Tensor| cond(&x.gt(2.0), |x: &Tensor| x * x, |x: &Tensor| -x, x);
    assert_eq!(up(&x).unwrap().item(), 9.0);
    assert_eq!(grad(up)(&x).unwrap().item(), 6.0);
    assert_eq!(v(&vmap(up)(&Tensor::from([1.0f32, 3.0])).unwrap()), [-1.0, 9.0]);
    let of: [&dyn Fn(&Tensor) -> Tensor; 3] = [&|x| x + 1.0, &|x| x * 10.0, &|x| -x];
    for (i, want) in [(-5, 4.0), (1, 30.0), (9, -3.0)] {
        assert_eq!(switch(&Tensor::from(i), &of, &x).unwrap().item(), want);
    }
    let doubled = while_loop(|p: &Tensor| p.lt(100.0), |p: &Tensor| p * 2.0, &x).unwrap();
    assert_eq!(doubled.item(), 192.0);
    let steps = Tensor::from(4);
    assert_eq!(fori_loop(0, &steps, |_: &Tensor, c: &Tensor| c + 1.0, &x).unwrap().item(), 7.0);
    assert_eq!(fori_loop(0, 4, |i: &Tensor, c: &Tensor| c + i, &x).unwrap().item(), 9.0);
    let through = grad(|x: &Tensor| while_loop(|p: &Tensor| p.lt(100.0), |p: &Tensor| p * p, x));
    assert_eq!(through(&x).unwrap().item(), 8.0 * 3f64.powi(7));
    let o = ScanOptions { reverse: true, ..ScanOptions::default() };
    let (c, ys) =
        scan_with(o, |c: &Tensor, x: &Tensor| (c * 2.0 + x, c.clone()), &Tensor::from(0.0f32), &Tensor::from(X))
            .unwrap();
    assert_eq!((c.item(), v(&ys)), (10.5, vec![5.0, 2.0, 0.0]));
    let all = map(|x: &Tensor| x * x, &Tensor::from(X)).unwrap();
    assert_eq!(v(&all), [0.25, 1.0, 4.0]);
    let e = scan(|c: &Tensor, _: &()| (c.astype(Dtype::I32), ()), &x, &()).unwrap_err();
    assert!(e.message().contains("`length` not provided"), "{e}");
    let e = scan(|c: &Tensor, x: &Tensor| (stack(&[c, x], 0), ()), &x, &Tensor::from(X)).unwrap_err();
    assert!(e.message().contains("scan body function carry input and carry output must have equal types"), "{e}");
    let e = cond(&x.gt(0.0), |x: &Tensor| x.clone(), |x: &Tensor| stack(&[x, x], 0), &x).unwrap_err();
    assert!(e.message().contains("true_fun and false_fun output"), "{e}");
}

#[test]
fn programs_are_traced_once_for_each_signature() {
    let count = std::cell::Cell::new(0);
    let g = jit(|x: &Tensor| {
        count.set(count.get() + 1);
        x * 2.0
    });
    for _ in 0..3 {
        g(&Tensor::ones(&[2])).unwrap();
    }
    assert_eq!(count.get(), 1);
    g(&Tensor::ones(&[3])).unwrap();
    assert_eq!(count.get(), 2);
    let opt = jit(|x: &(Tensor, Option<Tensor>)| x.1.as_ref().map_or_else(|| x.0.clone(), |b| &x.0 + b));
    let one = Tensor::ones(&[1]);
    assert_eq!(opt(&(one.clone(), None)).unwrap().item(), 1.0);
    assert_eq!(opt(&(one.clone(), Some(one.clone()))).unwrap().item(), 2.0);
    let x = Tensor::from([1.0f32, 2.0]);
    let gone = x.clone();
    assert_eq!(v(&jit_donate(|x: &Tensor| x + 1.0)(x).unwrap()), [2.0, 3.0]);
    assert!(gone.to_vec::<f32>().unwrap_err().message().contains("Array has been deleted"));
    let text = make_jaxpr(|x: &Tensor| x.sin() * 2.0, &one).unwrap().to_string();
    assert!(text.contains("sin a") && text.contains("mul b 2.0:f32[]"), "{text}");
    let shapes = eval_shape(|x: &Tensor| (x.reshape(&[1, 1]), x.gt(0.0)), &one).unwrap();
    assert_eq!(shapes.iter().map(|a| a.to_string()).collect::<Vec<_>>(), ["f32[1,1]", "bool[1]"]);
}

#[test]
fn functions_are_shared_by_threads() {
    let step = jit(|x: &Tensor| x * 2.0 + 1.0);
    let gradient = jit(grad(f));
    std::thread::scope(|scope| {
        for k in 0..4 {
            let (step, gradient) = (&step, &gradient);
            scope.spawn(move || {
                let x = Tensor::full(&[64], k as f32);
                assert_eq!(step(&x).unwrap().sum().item(), 64.0 * (2.0 * k as f64 + 1.0));
                close(&v(&gradient(&x).unwrap()), &[df(k as f32); 64]);
                let rows = vmap(|x: &Tensor| x + axis_index("i").sum());
                let o = VmapOptions { name: Some("i"), ..VmapOptions::default() };
                assert!(rows(&x).is_err(), "no axis of that name here");
                assert_eq!(vmap_with(o, |x: &Tensor| x + axis_index("i"))(&x).unwrap().shape(), [64]);
            });
        }
    });
}

#[test]
fn rules_of_one_s_own() {
    let twice = custom_jvp(|x: &Tensor| x * 2.0, |x: &Tensor, dx: &Tensor| (x * 2.0, dx * 7.0));
    let x = Tensor::from(X);
    assert_eq!(v(&twice(&x).unwrap()), [1.0, 2.0, 4.0]);
    let total = |x: &Tensor| Ok::<_, Error>(twice(x)?.sum());
    assert_eq!(v(&grad(total)(&x).unwrap()), [7.0; 3]);
    assert_eq!(v(&jit(grad(total))(&x).unwrap()), [7.0; 3]);
    assert_eq!(v(&grad(jit(total))(&x).unwrap()), [7.0; 3]);
    assert_eq!(v(&vmap(grad(total))(&Tensor::from([X, X])).unwrap()), [7.0; 6]);
    let back = custom_vjp(
        |(x, n): &(Tensor, Tensor)| x * n,
        |(x, n): &(Tensor, Tensor)| (x * n, (x.clone(), n.clone())),
        |(x, n): &(Tensor, Tensor), ct: &Tensor| (ct * n * 100.0, ct * x),
    );
    let h = |p: &(Tensor, Tensor)| Ok::<_, Error>(back(p)?.sum());
    let (a, b) = grad(h)(&(x.clone(), &x + 1.0)).unwrap();
    assert_eq!((v(&a), v(&b)), (vec![150.0, 200.0, 300.0], X.to_vec()));
    let (a, _) = jit(grad(jit(h)))(&(x.clone(), &x + 1.0)).unwrap();
    assert_eq!(v(&a), [150.0, 200.0, 300.0]);
}

#[derive(Clone, Debug, Tree)]
struct Linear<T> {
    w: T,
    b: Option<Tensor>,
    #[tree(fixed)]
    scale: f64,
}
#[derive(Clone, Debug, Tree)]
enum Model {
    Empty,
    One(Linear<Tensor>),
    Many { layers: Vec<Linear<Tensor>>, by_name: BTreeMap<String, Tensor> },
}
/// Names that generated code has, too, and one that is a word of the language.
#[derive(Clone, Tree)]
struct Named {
    out: Tensor,
    f: Tensor,
    r#type: Tensor,
    #[tree(fixed)]
    self_: u8,
}
#[derive(Clone, Tree)]
struct Pair<const N: usize>(Tensor, [Tensor; N]);

fn linear(scale: f64) -> Linear<Tensor> {
    Linear { w: Tensor::ones(&[2]), b: Some(Tensor::zeros(&[2])), scale }
}

#[test]
fn derived_trees_have_paths_and_structures() {
    let by_name = [("z".to_string(), Tensor::ones(&[1])), ("a".to_string(), Tensor::ones(&[1]))].into();
    let many = Model::Many { layers: vec![linear(1.0), linear(2.0)], by_name };
    let want = [".layers[0].w", ".layers[0].b", ".layers[1].w", ".layers[1].b", ".by_name[\"a\"]", ".by_name[\"z\"]"];
    assert_eq!(many.paths(), want);
    assert!(Model::Empty.paths().is_empty());
    let one = || Tensor::ones(&[1]);
    let named = Named { out: one(), f: one(), r#type: one(), self_: 3 }.map(|t| t * 2);
    assert_eq!((named.paths().join(" "), named.self_), (".out .f .type".into(), 3));
    assert_eq!((named.out + named.f + named.r#type).item(), 6.0);
    assert_eq!(Model::One(linear(1.0)).paths(), [".0.w", ".0.b"]);
    assert_eq!(Pair(Tensor::ones(&[1]), [Tensor::ones(&[1]), Tensor::ones(&[1])]).paths(), [".0", ".1[0]", ".1[1]"]);
    let h: HashMap<i32, Tensor> = [(3, Tensor::ones(&[1])), (1, Tensor::ones(&[1]))].into();
    assert_eq!(h.paths(), ["[1]", "[3]"]);
    // what is fixed is part of what a trace depends on
    let g = jit(|l: &Linear<Tensor>| &l.w * l.scale);
    assert_eq!(v(&g(&linear(2.0)).unwrap()), [2.0, 2.0]);
    assert_eq!(v(&g(&linear(5.0)).unwrap()), [5.0, 5.0]);
    let d = grad(|l: &Linear<Tensor>| (&l.w * l.scale).sum())(&linear(3.0)).unwrap();
    assert_eq!((v(&d.w), v(&d.b.unwrap())), (vec![3.0, 3.0], vec![0.0, 0.0]));
    let mut bad = linear(1.0);
    bad.b = Some(Tensor::from([1, 2]));
    let e = grad(|l: &Linear<Tensor>| l.w.sum())(&bad).unwrap_err();
    assert!(e.message().ends_with("but got int32 at .b."), "{e}");
    let e = grad(|l: &Linear<Tensor>| l.w.clone())(&linear(1.0)).unwrap_err();
    assert!(e.message().contains("Gradient only defined for scalar-output functions. Output had shape: (2,)."), "{e}");
}

#[test]
fn axes_of_vmap() {
    let m = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let o = VmapOptions { in_axes: &[Some(-1)], out_axes: &[Some(1)], ..VmapOptions::default() };
    assert_eq!(v(&vmap_with(o, |c: &Tensor| c * 2.0)(&m).unwrap()), v(&(&m * 2.0)));
    let o = VmapOptions { in_axes: &[None, Some(0)], ..VmapOptions::default() };
    let rows = vmap_with(o, |(m, r): &((Tensor, Tensor), Tensor)| (&m.0 + &m.1 + r).sum());
    let s = Tensor::from(1.0f32);
    assert_eq!(v(&rows(&((s.clone(), s), m.clone())).unwrap()), [12.0, 21.0]);
    let o = VmapOptions { in_axes: &[None], size: Some(3), ..VmapOptions::default() };
    assert_eq!(vmap_with(o, |x: &Tensor| x.clone())(&Tensor::from(1.0f32)).unwrap().shape(), [3]);
    let e = vmap(|x: &(Tensor, Tensor)| x.0.clone())(&(m.clone(), Tensor::ones(&[3]))).unwrap_err();
    assert!(e.message().contains("vmap got inconsistent sizes for array axes to be mapped"), "{e}");
    let o = VmapOptions { out_axes: &[None], ..VmapOptions::default() };
    assert!(vmap_with(o, |x: &Tensor| x.clone())(&m).unwrap_err().message().contains("out_axes is None"));
}
