//! Programs that a user of this programming model writes on the first day, with the values that JAX 0.10.2 gives.
use ferrax::*;
use std::cell::RefCell;

fn v(t: &Tensor) -> Vec<f32> {
    t.astype(Dtype::F32).to_vec().unwrap()
}
fn close(t: &Tensor, want: &[f32]) {
    let got = v(t);
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{got:?} {want:?}");
}
fn x3() -> Tensor {
    Tensor::from([1.0f32, 2.0, 3.0])
}
fn simple_graph(x: &Tensor) -> Tensor {
    ((x + 2.0).powi(2) + 3.0).mean()
}

#[test]
fn programs_print_as_jax_s() {
    let seen = RefCell::new(0);
    let f = |x: &Tensor| {
        *seen.borrow_mut() += 1;
        2 * x * x + 3 * x + 3
    };
    let text = make_jaxpr(f, &Tensor::from(3)).unwrap().to_string();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let want = "{ lambda ; a:i32[]. let b:i32[] = mul 2:i32[] a c:i32[] = mul b a d:i32[] = mul 3:i32[] a e:i32[] = add c d f:i32[] = add e 3:i32[] in (f,) }";
    assert_eq!((flat.as_str(), *seen.borrow()), (want, 1));
}
#[test]
fn gradients_of_simple_functions() {
    let x = Tensor::arange(3, Dtype::F32);
    close(&simple_graph(&x), &[12.666667]);
    let (y, g) = value_and_grad(simple_graph)(&x).unwrap();
    close(&y, &[12.666667]);
    close(&g, &[1.3333334, 2.0, 2.6666667]);
    let f = |(x, y): &(Tensor, Tensor)| 2.0 * x * x + 3.0 * y + 3.0;
    let (gx, gy) = grad(f)(&(Tensor::from(10.0f32), Tensor::from(5.0f32))).unwrap();
    assert_eq!((gx.item(), gy.item()), (40.0, 3.0));
    let e = grad(|x: &Tensor| x * 2)(&Tensor::from(10)).unwrap_err();
    assert!(e.message().contains("real") && e.message().contains("int32"), "{e}");
    let ((_, mean), g) = value_and_grad_aux(|x: &Tensor| (x.square().sum(), x.mean()))(&x3()).unwrap();
    close(&g, &[2.0, 4.0, 6.0]);
    close(&mean, &[2.0]);
    close(&grad(|x: &Tensor| (x * x.stop_gradient()).sum())(&Tensor::from([3.0f32])).unwrap(), &[3.0]);
    close(&grad(|x: &Tensor| x.take(&x.argmax(0), 0))(&Tensor::from([1.0f32, 3.0, 2.0])).unwrap(), &[0.0, 1.0, 0.0]);
}
#[test]
fn higher_orders_and_jacobians() {
    close(&hessian(|x: &Tensor| x.powi(3).sum())(&x3()).unwrap(), &[6.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0, 18.0]);
    let f = |x: &Tensor| {
        let x = x.unstack(0);
        stack(&[x[0].powi(2), x[1].powi(3), &x[0] * &x[1]], 0)
    };
    let at = Tensor::from([2.0f32, 3.0]);
    for j in [jacfwd(f)(&at).unwrap(), jacrev(f)(&at).unwrap()] {
        close(&j, &[4.0, 0.0, 0.0, 27.0, 3.0, 2.0]);
    }
    let sin = |x: &Tensor| x.sin();
    let d4 = grad(grad(grad(grad(sin))));
    close(&d4(&Tensor::from(0.7f32)).unwrap(), &[0.7f32.sin()]);
    let (_, t) = jvp(sin, &Tensor::from(0.5f32), &Tensor::from(2.0f32)).unwrap();
    close(&t, &[2.0 * 0.5f32.cos()]);
}
#[test]
fn values_decide_under_grad_and_not_under_jit() {
    let f = |x: &Tensor| if x.item() > 0.0 { x.powi(2) } else { x.powi(3) };
    close(&grad(f)(&Tensor::from(2.0f32)).unwrap(), &[4.0]);
    close(&grad(f)(&Tensor::from(-2.0f32)).unwrap(), &[12.0]);
    for e in [jit(f)(&Tensor::from(1.0f32)).unwrap_err(), vmap(f)(&x3()).unwrap_err()] {
        assert_eq!(e.kind(), Some(ErrorKind::Concretization), "{e}");
    }
    let kept: RefCell<Vec<Tensor>> = RefCell::default();
    let keep = jit(|x: &Tensor| {
        kept.borrow_mut().push(x.clone());
        x.clone()
    });
    keep(&Tensor::from(1.0f32)).unwrap();
    let e = catch(|| Ok(&kept.borrow()[0] + 1.0)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::UnexpectedTracer), "{e}");
    let m = Tensor::from([true, false, true]);
    let e = jit(|(x, m): &(Tensor, Tensor)| x.slice(s![m]))(&(x3(), m)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::NonConcreteBooleanIndex), "{e}");
}
#[test]
fn loops_and_recurrences() {
    let xs = Tensor::from([1, 2, 3, 4, 5]);
    let (c, ys) = scan(|c: &Tensor, x: &Tensor| (c + x, c + x), &Tensor::from(0), &xs).unwrap();
    assert_eq!((c.item(), v(&ys)), (15.0, vec![1.0, 3.0, 6.0, 10.0, 15.0]));
    let w = (Tensor::full(&[5, 5], 0.1), Tensor::full(&[5, 3], 0.2));
    let rnn = |(wh, wx): &(Tensor, Tensor), xs: &Tensor| {
        let step = |h: &Tensor, x: &Tensor| {
            let h = (wh.matmul(h) + wx.matmul(x)).tanh();
            (h.clone(), h)
        };
        Ok::<_, Error>(scan(step, &Tensor::zeros(&[5]), xs)?.1)
    };
    let out = rnn(&w, &Tensor::ones(&[10, 3])).unwrap();
    assert_eq!(out.shape(), [10, 5]);
    assert!((out.slice(s![-1]) - 0.751142).abs().max().item() < 1e-4);
    let g = grad(|w: &(Tensor, Tensor)| Ok::<_, Error>(rnn(w, &Tensor::ones(&[10, 3]))?.sum()))(&w).unwrap();
    assert_eq!((g.0.shape(), g.1.shape()), (&[5, 5][..], &[5, 3][..]));
    let cube = |x: &Tensor| fori_loop(0, 3, |_: &Tensor, v: &Tensor| v * x, &Tensor::from(1.0f32));
    close(&grad(cube)(&Tensor::from(2.0f32)).unwrap(), &[12.0]);
    let counts = vmap(|n: &Tensor| {
        let start = (Tensor::from(0), Tensor::from(0));
        let s = while_loop(|(i, _): &(Tensor, Tensor)| i.lt(n), |(i, s): &(Tensor, Tensor)| (i + 1, s + i), &start)?;
        Ok::<_, Error>(s.1)
    });
    assert_eq!(v(&counts(&Tensor::arange(5, Dtype::I32)).unwrap()), [0.0, 0.0, 1.0, 3.0, 6.0]);
}
#[test]
fn batches_and_named_axes() {
    let outer = |(x, y): &(Tensor, Tensor)| {
        let inner = VmapOptions { in_axes: &[None, Some(0)], ..VmapOptions::default() };
        vmap_with(inner, |(x, y): &(Tensor, Tensor)| x * y)(&(x.clone(), y.clone()))
    };
    let o = VmapOptions { in_axes: &[Some(0), None], ..VmapOptions::default() };
    let all = vmap_with(o, outer)(&(Tensor::from([1, 2, 3]), Tensor::from([10, 20]))).unwrap();
    assert_eq!(v(&all), [10.0, 20.0, 20.0, 40.0, 30.0, 60.0]);
    let o = |name| VmapOptions { name: Some(name), ..VmapOptions::default() };
    close(&vmap_with(o("i"), |x: &Tensor| x / psum(x, "i"))(&Tensor::from([1.0f32, 3.0])).unwrap(), &[0.25, 0.75]);
    let x = Tensor::arange(6, Dtype::F32).reshape(&[2, 3]);
    let both = vmap_with(o("i"), |r: &Tensor| vmap_with(o("j"), |x: &Tensor| psum(psum(x, "i"), "j"))(r));
    close(&both(&x).unwrap(), &[15.0; 6]);
    let o = VmapOptions { in_axes: &[None, Some(0)], ..VmapOptions::default() };
    let each = vmap_with(o, |(w, x): &(Tensor, Tensor)| grad(|w: &Tensor| (w * x).sum().powi(2))(w));
    close(&each(&(Tensor::ones(&[3]), x)).unwrap(), &[0.0, 6.0, 12.0, 72.0, 96.0, 120.0]);
}
#[test]
fn networks_learn() {
    let keys = random::split(&random::key(3), 4);
    let x = random::normal(&keys[0], &[128, 2], Dtype::F32);
    let labels = x.prod_axes(1).gt(0.0).astype(Dtype::I32);
    let mut p = vec![
        (nn::glorot_uniform(&keys[1], &[2, 16], Dtype::F32), Tensor::zeros(&[16])),
        (nn::glorot_uniform(&keys[2], &[16, 2], Dtype::F32), Tensor::zeros(&[2])),
    ];
    type Params = Vec<(Tensor, Tensor)>;
    let logits = |p: &Params, x: &Tensor| {
        let h = nn::linear(x, &p[0].0, &p[0].1).tanh();
        nn::linear(&h, &p[1].0, &p[1].1)
    };
    let adam = optim::Adam::new(0.05);
    let mut state = adam.init(&p);
    let (images, wanted) = (x.clone(), labels.clone());
    let step = jit(move |(p, s): &(Params, optim::Moments<Params>)| -> Res<_> {
        let loss = |p: &Params| nn::cross_entropy(&logits(p, &images), &wanted).mean();
        let (loss, g) = value_and_grad(loss)(p)?;
        let (p, s) = adam.step(p, &g, s);
        Ok((loss, p, s))
    });
    let mut loss = Tensor::from(f32::INFINITY);
    for _ in 0..150 {
        (loss, p, state) = step(&(p, state)).unwrap();
    }
    assert!(loss.item() < 0.1, "{loss}");
    let hits = logits(&p, &x).argmax(-1).eq(&labels).mean().item();
    assert!(hits > 0.97, "{hits}");
    assert_eq!(state.count.item(), 150.0);
}
#[test]
fn optimisers_step_as_written() {
    let (p, g) = (Tensor::from([1.0f32, -2.0]), Tensor::from([0.5f32, -4.0]));
    assert_eq!(v(&optim::sgd(&p, &g, 0.1)), [0.95, -1.6]);
    let (w, m) = optim::momentum(&p, &g, &g, 0.1, 0.5);
    close(&w, &[0.925, -1.4]);
    close(&m, &[0.75, -6.0]);
    let adam = optim::Adam::new(0.1);
    let (w, s) = adam.step(&p, &g, &adam.init(&p));
    close(&w, &[0.9, -1.9]);
    close(&s.first, &[0.05, -0.4]);
    let (w, _) = optim::Adam::with_decay(0.1, 0.5).step(&p, &g, &adam.init(&p));
    close(&w, &[0.85, -1.8]);
    let (w, m) = optim::lion(&p, &g, &optim::zeros_like(&p), 0.1, 0.9, 0.99, 0.0);
    close(&w, &[0.9, -1.9]);
    close(&m, &[0.005, -0.04]);
    close(&optim::global_norm(&(Tensor::from([3.0f32]), Tensor::from([4.0f32]))), &[5.0]);
    close(&optim::clip_by_global_norm(&Tensor::from([3.0f32, 4.0]), 1.0), &[0.6, 0.8]);
    close(&optim::warmup_cosine(1.0, 10, 110)(&Tensor::from([5, 10, 60, 110])), &[0.5, 1.0, 0.5, 0.0]);
}
