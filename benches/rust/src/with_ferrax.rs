//! The rows in Ferrax: closures under `jit`.
use crate::data::{self, ConvNet, Mlp, Numbers, Rnn, Transformer};
use crate::{Inference, Timed, Training};
use ferrax::{ConvOptions, Dtype, Output, Padding, Res, Tensor, Tree, jit, nn, optim, scan, value_and_grad};

fn tensor(a: &Numbers) -> Tensor {
    Tensor::new(&a.data, &a.shape).expect("an array")
}
fn tensors(a: &[Numbers]) -> Vec<Tensor> {
    a.iter().map(tensor).collect()
}
fn indices(i: &[u32]) -> Tensor {
    Tensor::from(i.iter().map(|i| *i as i32).collect::<Vec<_>>())
}
fn read(t: &Tensor) -> Vec<f32> {
    t.to_vec().expect("float32")
}
type Params = Vec<Tensor>;

/// A step of gradient descent on what `loss` gives, compiled.
fn training<B: Tree + Clone + 'static, R: Output<Tensor> + 'static>(
    params: Vec<Numbers>,
    batch: B,
    rate: f64,
    loss: impl Fn(&Params, &B) -> R + Copy + 'static,
) -> Box<dyn Timed> {
    let step = jit(move |(p, b): &(Params, B)| -> Res<_> {
        let (l, g) = value_and_grad(|p: &Params| loss(p, b))(p)?;
        Ok((l, optim::sgd(p, &g, rate)))
    });
    Training::boxed(
        (Tensor::from(0.0f32), tensors(&params)),
        move |(_, p)| {
            let (l, p) = step(&(p.clone(), batch.clone())).expect("a step");
            l.ready().and(p[0].ready()).expect("a result");
            (l, p)
        },
        |(l, p)| std::iter::once(l).chain(p).flat_map(read).collect(),
    )
}
fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    -(nn::log_softmax(logits, -1) * labels).sum() / labels.shape()[0]
}
pub fn mlp() -> Box<dyn Timed> {
    let (x, y) = data::mlp_inputs();
    training(data::mlp(), (tensor(&x), tensor(&y)), Mlp::RATE, |p: &Params, (x, y): &(Tensor, Tensor)| {
        let hidden = p[..4].chunks(2).fold(x.clone(), |h, l| nn::relu(&nn::linear(&h, &l[0], &l[1])));
        cross_entropy(&nn::linear(&hidden, &p[4], &p[5]), y)
    })
}
pub fn conv() -> Box<dyn Timed> {
    let (x, y) = data::conv_inputs();
    training(data::conv(), (tensor(&x), tensor(&y)), ConvNet::RATE, |p: &Params, (x, y): &(Tensor, Tensor)| {
        let same = ConvOptions { padding: Padding::Same, ..ConvOptions::default() };
        let hidden = p[..4].chunks(2).fold(x.clone(), |h, l| {
            let h = nn::relu(&(h.conv(&l[0], &same) + &l[1]));
            h.mean_windows(&[1, 1, 2, 2], &[1, 1, 2, 2], &Padding::Valid)
        });
        cross_entropy(&nn::linear(&hidden.reshape(&[ConvNet::BATCH, ConvNet::FLAT]), &p[4], &p[5]), y)
    })
}
pub fn transformer() -> Box<dyn Timed> {
    let (x, y) = data::transformer_inputs();
    let batch = (indices(&x), indices(&y));
    training(data::transformer(), batch, Transformer::RATE, |p: &Params, (x, y): &(Tensor, Tensor)| {
        type T = Transformer;
        let (b, t, w) = (T::BATCH, T::TIME, T::WIDTH);
        let mut h = p[0].take(x, 0).reshape(&[b, t, w]) + &p[1];
        for l in p[2..2 + 8 * T::LAYERS].chunks(8) {
            let qkv = nn::layer_norm(&h, &l[0], &l[1], 1e-5).matmul(&l[2]);
            let qkv: Vec<Tensor> =
                qkv.split(3, -1).iter().map(|x| x.reshape(&[b, t, T::HEADS, w / T::HEADS])).collect();
            let a = nn::dot_product_attention(&qkv[0], &qkv[1], &qkv[2], None, true);
            h = h + a.reshape(&[b, t, w]).matmul(&l[3]);
            h = &h + nn::gelu(&nn::layer_norm(&h, &l[4], &l[5], 1e-5).matmul(&l[6])).matmul(&l[7]);
        }
        let n = p.len();
        let logits = nn::layer_norm(&h, &p[n - 3], &p[n - 2], 1e-5).matmul(&p[n - 1]);
        nn::cross_entropy(&logits.reshape(&[b * t, T::VOCABULARY]), y).mean()
    })
}
pub fn rnn() -> Box<dyn Timed> {
    let (x, y) = data::rnn_inputs();
    training(data::rnn(), (tensor(&x), tensor(&y)), Rnn::RATE, |p: &Params, (x, y): &(Tensor, Tensor)| -> Res<_> {
        let step = |h: &Tensor, x: &Tensor| ((x.matmul(&p[0]) + h.matmul(&p[1]) + &p[2]).tanh(), ());
        let (h, ()) = scan(step, &Tensor::zeros(&[Rnn::BATCH, Rnn::WIDTH]), x)?;
        Ok((h - y).square().mean())
    })
}
fn inference<X: Tree + 'static>(x: X, f: impl Fn(&X) -> Tensor + 'static) -> Box<dyn Timed> {
    let f = jit(f);
    let run = move || {
        let y: Tensor = f(&x).expect("a result");
        y.ready().expect("a result");
        y
    };
    Inference::boxed(run, read)
}
pub fn softmax() -> Box<dyn Timed> {
    inference(tensor(&data::uniform(50, &data::SOFTMAX, 5.0)), |x| nn::softmax(x, -1))
}
pub fn chain() -> Box<dyn Timed> {
    let (x, y) = (data::uniform(60, &[data::CHAIN], 2.0), data::uniform(61, &[data::CHAIN], 2.0));
    inference((tensor(&x), tensor(&y)), |(x, y)| {
        let a = (x * y + 0.5).tanh();
        let b = (x * x + y * y).sqrt() + 1.0;
        (&a * x.sin() - y / &b) * (-b.square()).exp() + a
    })
}
pub fn small() -> Box<dyn Timed> {
    inference(tensor(&data::uniform(70, &[data::SMALL], 1.0)).astype(Dtype::F32), |x| (x * 2.0 + 1.0).tanh())
}
