//! Networks and optimisers by the functions of `nn` and `optim`: no seed program, but what the programs are written with.
use super::*;

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
