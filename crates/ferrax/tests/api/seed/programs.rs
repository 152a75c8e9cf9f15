//! Whole programs: regression, graph convolutions, classifiers.
use super::*;
use std::cell::Cell;

#[test]
fn linear_regression_loop() {
    let x = random::normal(&random::key(0), &[100, 3], Dtype::F32);
    let y = x.matmul(Tensor::from([1.0f32, -2.0, 0.5]));
    let g = jit(grad(|p: &Tensor| (x.matmul(p) - &y).powi(2).mean()));
    let mut p = Tensor::zeros(&[3]);
    for _ in 0..300 {
        p = &p - 0.1 * g(&p).unwrap();
    }
    near(&p, &[1.0, -2.0, 0.5], 1e-3);
}

/// Zachary's karate club: 34 members, 78 friendships, 2 factions.
const FRIENDS: &str = "0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8 0-10 0-11 0-12 0-13 0-17 0-19 0-21 0-31 1-2 1-3 1-7 1-13 1-17 1-19 1-21 1-30 2-3 2-7 2-8 2-9 2-13 2-27 2-28 2-32 3-7 3-12 3-13 4-6 4-10 5-6 5-10 5-16 6-16 8-30 8-32 8-33 9-33 13-33 14-32 14-33 15-32 15-33 18-32 18-33 19-33 20-32 20-33 22-32 22-33 23-25 23-27 23-29 23-32 23-33 24-25 24-27 24-31 25-31 26-29 26-33 27-33 28-31 28-33 29-32 29-33 30-32 30-33 31-32 31-33 32-33";

/// Weights and bias of a graph convolution: out = adjacency (x w) + b.
#[derive(Clone, Tree)]
struct GraphConvolution {
    w: Tensor,
    b: Tensor,
}
impl GraphConvolution {
    fn new(key: &Tensor, i: usize, o: usize) -> GraphConvolution {
        let own = &random::split(key, 2)[0];
        GraphConvolution { w: nn::glorot_uniform(own, &[i, o], Dtype::F32), b: Tensor::zeros(&[o]) }
    }
    fn apply(&self, x: &Tensor, adjacency: &Tensor) -> Tensor {
        adjacency.matmul(x.matmul(&self.w)) + &self.b
    }
}

/// Two layers, trained on the two leaders alone.
#[test]
fn graph_convolution_network() {
    let edges = FRIENDS.split(' ').map(|e| e.split_once('-').unwrap());
    let ends: Vec<(i32, i32)> = edges.map(|(i, j)| (i.parse().unwrap(), j.parse().unwrap())).collect();
    assert_eq!(ends.len(), 78);
    let (i, j): (Vec<i32>, Vec<i32>) = ends.into_iter().unzip();
    let (i, j) = (Tensor::from(i), Tensor::from(j));
    let a = Tensor::eye(34, 34).at(s![&i, &j]).set(1.0).at(s![&j, &i]).set(1.0);
    let d = a.sum_axes(1).pow(-0.5);
    let a = &a * d.expand_dims(1) * d.expand_dims(0);
    let faction: Vec<i32> = [vec![0; 9], vec![1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0], vec![1; 12]].concat();
    let faction = Tensor::from(faction);
    let mut key = random::key(0);
    let mut layer = |i, o| {
        let two = random::split(&key, 2);
        key = two[0].clone();
        GraphConvolution::new(&two[1], i, o)
    };
    let mut params = vec![layer(34, 16), layer(16, 2)];
    let (x, targets) = (Tensor::eye(34, 34), nn::one_hot(&faction, 2));
    let leaders = Tensor::from([0, 33]);
    type P = Vec<GraphConvolution>;
    let predict = |p: &P| nn::log_softmax(&p[1].apply(&nn::relu(&p[0].apply(&x, &a)), &a), -1);
    let step = jit(|p: &P| -> Res<(P, Tensor)> {
        let loss = |p: &P| {
            let at = s![&leaders];
            let fit = -(predict(p).slice(&at) * targets.slice(&at)).sum_axes(1).mean();
            let mut squares = Tensor::from(0.0f32);
            p.leaves(&mut |v| squares += v.powi(2).sum());
            fit + 5e-4 * squares
        };
        let (l, g) = value_and_grad(loss)(p)?;
        Ok((optim::sgd(p, &g, 0.5), l))
    });
    let mut losses = vec![];
    for _ in 0..200 {
        let (p, l) = step(&params).unwrap();
        params = p;
        losses.push(l.item());
    }
    let right = predict(&params).argmax(1).eq(&faction).mean().item();
    assert!(losses[199] < 0.2 * losses[0] && right > 0.9, "{} {} {right}", losses[0], losses[199]);
}
#[test]
fn graph_convolution_with_a_sparse_adjacency() {
    let (n, e) = (50, 200);
    let keys = random::split(&random::key(0), 4);
    let (rows, cols) = (random::randint(&keys[0], &[e], 0, n), random::randint(&keys[1], &[e], 0, n));
    let values = random::normal(&keys[2], &[e], Dtype::F32);
    let dense = Tensor::zeros(&[n, n]).at(s![&rows, &cols]).add(&values);
    type Two = (Tensor, Tensor);
    // row by row, the sums of values times rows of b: a segment sum
    let product = jit(|(v, b): &Two| {
        let parts = b.take(&cols, 0) * v.expand_dims(1);
        Tensor::zeros(&[n, b.shape()[1]]).at(s![&rows]).add(parts)
    });
    let b = random::normal(&keys[3], &[n, 4], Dtype::F32);
    let out = dense.matmul(&b);
    near(&product(&(values.clone(), b.clone())).unwrap(), &v(&out), 1e-4);
    let squares = |p: &Two| -> Res<Tensor> { Ok(product(p)?.powi(2).sum()) };
    let (g, h) = grad(squares)(&(values, b.clone())).unwrap();
    near(&h, &v(&(2 * dense.t().matmul(&out))), 1e-3);
    near(&g, &v(&(2 * (out.take(&rows, 0) * b.take(&cols, 0)).sum_axes(1))), 1e-3);
}

#[derive(Clone, Tree)]
struct Dense {
    kernel: Tensor,
    bias: Tensor,
}
/// What a loop of training passes on.
#[derive(Clone, Tree)]
struct TrainState {
    params: [Dense; 2],
    step: Tensor,
    #[tree(fixed)]
    rate: f64,
}
/// Points near the corners of a square, and whether one coordinate alone is one.
struct Xor {
    data: Vec<f32>,
    label: Vec<i32>,
}
impl Xor {
    fn new(size: usize, seed: i32) -> Xor {
        let keys = random::split(&random::key(seed), 2);
        let corners = random::randint(&keys[0], &[size, 2], 0, 2).astype(Dtype::F32);
        let label = corners.sum_axes(1).eq(1.0).astype(Dtype::I32);
        let data = corners + 0.1 * random::normal(&keys[1], &[size, 2], Dtype::F32);
        Xor { data: data.to_vec().unwrap(), label: label.to_vec().unwrap() }
    }
    /// Batches of `n` in an order, the last one shorter if it must be.
    fn batches(&self, n: usize, order: &[i32]) -> Vec<(Tensor, Tensor)> {
        let batch = |some: &[i32]| {
            let x: Vec<f32> = some.iter().flat_map(|i| &self.data[2 * *i as usize..][..2]).copied().collect();
            let y: Vec<i32> = some.iter().map(|i| self.label[*i as usize]).collect();
            (Tensor::new(&x, &[some.len(), 2]).unwrap(), Tensor::from(y))
        };
        order.chunks(n).map(batch).collect()
    }
}
/// The tutorial's training program: data, batches, a state, `value_and_grad` with what is kept of the way, a short last batch.
#[test]
fn xor_classifier_with_a_train_state_and_a_data_loader() {
    let apply = |p: &[Dense; 2], x: &Tensor| {
        let h = nn::linear(x, &p[0].kernel, &p[0].bias).tanh();
        nn::linear(&h, &p[1].kernel, &p[1].bias)
    };
    let loss_and_accuracy = |p: &[Dense; 2], (x, y): &(Tensor, Tensor)| {
        let logits = apply(p, x).squeeze(-1);
        let loss = nn::sigmoid_cross_entropy(&logits, &y.astype(Dtype::F32)).mean();
        (loss, logits.gt(0).eq(y.astype(Dtype::BOOL)).mean())
    };
    let traces = Cell::new(0);
    type Batch = (Tensor, Tensor);
    let step = jit(|(s, b): &(TrainState, Batch)| -> Res<_> {
        traces.set(traces.get() + 1);
        let ((loss, accuracy), g) = value_and_grad_aux(|p: &[Dense; 2]| loss_and_accuracy(p, b))(&s.params)?;
        let params = optim::sgd(&s.params, &g, s.rate);
        Ok((TrainState { params, step: &s.step + 1, rate: s.rate }, loss, accuracy))
    });
    let accuracy = jit(|(s, b): &(TrainState, Batch)| loss_and_accuracy(&s.params, b).1);
    let keys = random::split(&random::key(42), 2);
    let dense = |k: &Tensor, i: usize, o: usize| Dense {
        kernel: random::normal(k, &[i, o], Dtype::F32),
        bias: Tensor::zeros(&[o]),
    };
    let params = [dense(&keys[0], 2, 8), dense(&keys[1], 8, 1)];
    let mut state = TrainState { params, step: Tensor::from(0), rate: 0.3 };
    let data = Xor::new(2560, 42);
    for epoch in 0..20 {
        let order = random::permutation(&random::key(epoch), &Tensor::arange(2560, Dtype::I32), 0);
        for b in data.batches(128, &order.to_vec::<i32>().unwrap()) {
            (state, ..) = step(&(state, b)).unwrap();
        }
    }
    assert_eq!((traces.get(), state.step.item()), (1, 400.0));
    let test = Xor::new(500, 123).batches(128, &(0..500).collect::<Vec<_>>());
    let sizes: Vec<usize> = test.iter().map(|b| b.1.size()).collect();
    assert_eq!(sizes, [128, 128, 128, 116]);
    let right: f64 =
        test.into_iter().map(|b| accuracy(&(state.clone(), b.clone())).unwrap().item() * b.1.size() as f64).sum();
    assert_eq!(format!("{:4.2}%", 100.0 * right / 500.0), "100.00%");
}
/// What `stax.serial(Dense(32), Relu, Dense(2), LogSoftmax)` and `optimizers.adam` do, with functions.
#[test]
fn stax_style_layers() {
    let keys = random::split(&random::key(0), 3);
    let dense = |k: &Tensor, i: usize, o: usize| Dense {
        kernel: nn::glorot_normal(k, &[i, o], Dtype::F32),
        bias: Tensor::zeros(&[o]),
    };
    let mut params = vec![dense(&keys[0], 2, 32), dense(&keys[1], 32, 2)];
    let apply = |p: &Vec<Dense>, x: &Tensor| {
        let h = nn::relu(&nn::linear(x, &p[0].kernel, &p[0].bias));
        nn::log_softmax(&nn::linear(&h, &p[1].kernel, &p[1].bias), -1)
    };
    let x = random::normal(&keys[2], &[256, 2], Dtype::F32);
    let y = x.prod_axes(1).gt(0).astype(Dtype::I32);
    let targets = nn::one_hot(&y, 2);
    let adam = optim::Adam::new(1e-2);
    let mut state = adam.init(&params);
    let step = jit(|(p, s): &(Vec<Dense>, optim::Moments<Vec<Dense>>)| -> Res<_> {
        let g = grad(|p: &Vec<Dense>| -(apply(p, &x) * &targets).sum_axes(1).mean())(p)?;
        Ok(adam.step(p, &g, s))
    });
    for _ in 0..200 {
        (params, state) = step(&(params, state)).unwrap();
    }
    let right = apply(&params, &x).argmax(1).eq(&y).mean().item();
    assert!(right > 0.95, "{right}");
}
