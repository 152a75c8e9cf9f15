//! The rows in burn, on its backend `flex`: the portable one for processors, which took the place of `ndarray`.
use crate::data::{self, ConvNet, Mlp, Numbers, Rnn, Transformer};
use crate::{Inference, Timed, Training};
use burn::tensor::module::{attention, avg_pool2d, conv2d, layer_norm};
use burn::tensor::ops::{AttentionModuleOptions, AvgPoolOptions, ConvOptions};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

fn device() -> Device {
    Device::flex()
}
fn tensor<const N: usize>(a: &Numbers) -> Tensor<N> {
    Tensor::from_data(TensorData::new(a.data.clone(), a.shape.clone()), &device())
}
fn indices(i: &[u32]) -> Tensor<1, Int> {
    let i: Vec<i32> = i.iter().map(|i| *i as i32).collect();
    let n = [i.len()];
    Tensor::from_data(TensorData::new(i, n), &device())
}
fn read<const N: usize>(t: &Tensor<N>) -> Vec<f32> {
    t.clone().inner().into_data().try_to_vec().expect("float32")
}
/// A parameter: its rank is part of its type.
#[derive(Clone)]
enum Param {
    One(Tensor<1>),
    Two(Tensor<2>),
    Four(Tensor<4>),
}
impl Param {
    fn new(a: &Numbers) -> Param {
        match a.shape.len() {
            1 => Param::One(tensor(a).autodiff().require_grad()),
            2 => Param::Two(tensor(a).autodiff().require_grad()),
            _ => Param::Four(tensor(a).autodiff().require_grad()),
        }
    }
    fn one(&self) -> Tensor<1> {
        match self {
            Param::One(t) => t.clone(),
            _ => unreachable!("a vector"),
        }
    }
    fn two(&self) -> Tensor<2> {
        match self {
            Param::Two(t) => t.clone(),
            _ => unreachable!("a matrix"),
        }
    }
    fn four(&self) -> Tensor<4> {
        match self {
            Param::Four(t) => t.clone(),
            _ => unreachable!("a kernel"),
        }
    }
    fn read(&self) -> Vec<f32> {
        match self {
            Param::One(t) => read(t),
            Param::Two(t) => read(t),
            Param::Four(t) => read(t),
        }
    }
}
fn training(params: Vec<Numbers>, rate: f64, loss: impl Fn(&[Param]) -> Tensor<1> + 'static) -> Box<dyn Timed> {
    type State = (Tensor<1>, Vec<Param>);
    let step = move |(_, p): &State| -> State {
        let l = loss(p);
        let mut grads = l.backward();
        macro_rules! moved {
            ($t:ident) => {{
                let g = $t.grad_remove(&mut grads).expect("a gradient");
                ($t.clone().inner() - g * rate).autodiff().require_grad()
            }};
        }
        let next = p.iter().map(|p| match p {
            Param::One(t) => Param::One(moved!(t)),
            Param::Two(t) => Param::Two(moved!(t)),
            Param::Four(t) => Param::Four(moved!(t)),
        });
        let next = next.collect();
        (l.inner(), next)
    };
    Training::boxed(
        (tensor(&data::full(&[1], 0.0)), params.iter().map(Param::new).collect()),
        step,
        |(l, p): &State| read(l).into_iter().chain(p.iter().flat_map(Param::read)).collect(),
    )
}
fn linear(x: Tensor<2>, w: &Param, b: &Param) -> Tensor<2> {
    x.matmul(w.two()) + b.one().unsqueeze()
}
fn cross_entropy(logits: Tensor<2>, labels: &Tensor<2>) -> Tensor<1> {
    let n = labels.dims()[0] as f64;
    (activation::log_softmax(logits, 1) * labels.clone()).sum().neg() / n
}
pub fn mlp() -> Box<dyn Timed> {
    let (x, y) = data::mlp_inputs();
    let (x, y): (Tensor<2>, Tensor<2>) = (tensor(&x), tensor(&y));
    training(data::mlp(), Mlp::RATE, move |p| {
        let h = p[..4].chunks(2).fold(x.clone(), |h, l| activation::relu(linear(h, &l[0], &l[1])));
        cross_entropy(linear(h, &p[4], &p[5]), &y)
    })
}
pub fn conv() -> Box<dyn Timed> {
    let (x, y) = data::conv_inputs();
    let (x, y): (Tensor<4>, Tensor<2>) = (tensor(&x), tensor(&y));
    training(data::conv(), ConvNet::RATE, move |p| {
        let h = p[..4].chunks(2).fold(x.clone(), |h, l| {
            let same = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let h = activation::relu(conv2d(h, l[0].four(), None, same) + l[1].four());
            avg_pool2d(h, AvgPoolOptions::new([2, 2]))
        });
        cross_entropy(linear(h.reshape([ConvNet::BATCH, ConvNet::FLAT]), &p[4], &p[5]), &y)
    })
}
pub fn transformer() -> Box<dyn Timed> {
    type T = Transformer;
    let (b, t, w, n) = (T::BATCH, T::TIME, T::WIDTH, T::HEADS);
    let (x, y) = data::transformer_inputs();
    let (x, y) = (indices(&x), indices(&y));
    /// `x @ w` for x of three axes.
    fn product(x: Tensor<3>, w: &Param) -> Tensor<3> {
        let [b, t, k] = x.dims();
        let w = w.two();
        let m = w.dims()[1];
        x.reshape([b * t, k]).matmul(w).reshape([b, t, m])
    }
    let norm = |x: Tensor<3>, l: &[Param]| layer_norm(x, l[0].one(), Some(l[1].one()), 1e-5);
    training(data::transformer(), T::RATE, move |p| {
        let mut h = p[0].two().select(0, x.clone()).reshape([b, t, w]) + p[1].two().unsqueeze();
        for l in p[2..2 + 8 * T::LAYERS].chunks(8) {
            let qkv = product(norm(h.clone(), l), &l[2]);
            let part = |k: usize| qkv.clone().narrow(2, k * w, w).reshape([b, t, n, w / n]).swap_dims(1, 2);
            let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
            let a = attention(part(0), part(1), part(2), None, None, causal);
            h = h + product(a.swap_dims(1, 2).reshape([b, t, w]), &l[3]);
            let up = activation::gelu_approximate(product(norm(h.clone(), &l[4..]), &l[6]));
            h = h + product(up, &l[7]);
        }
        let m = p.len();
        let logits = product(norm(h, &p[m - 3..]), &p[m - 1]).reshape([b * t, T::VOCABULARY]);
        let picked = activation::log_softmax(logits, 1).gather(1, y.clone().reshape([b * t, 1]));
        picked.mean().neg()
    })
}
pub fn rnn() -> Box<dyn Timed> {
    let (x, y) = data::rnn_inputs();
    let (x, y): (Tensor<3>, Tensor<2>) = (tensor(&x), tensor(&y));
    training(data::rnn(), Rnn::RATE, move |p| {
        let mut h: Tensor<2> = tensor(&data::full(&[Rnn::BATCH, Rnn::WIDTH], 0.0));
        for k in 0..Rnn::TIME {
            let x = x.clone().narrow(0, k, 1).squeeze_dim::<2>(0);
            h = (x.matmul(p[0].two()) + h.matmul(p[1].two()) + p[2].one().unsqueeze()).tanh();
        }
        (h - y.clone()).square().mean()
    })
}
pub fn softmax() -> Box<dyn Timed> {
    let x: Tensor<2> = tensor(&data::uniform(50, &data::SOFTMAX, 5.0));
    Inference::boxed(move || activation::softmax(x.clone(), 1), read)
}
pub fn chain() -> Box<dyn Timed> {
    let (x, y) = (data::uniform(60, &[data::CHAIN], 2.0), data::uniform(61, &[data::CHAIN], 2.0));
    let (x, y): (Tensor<1>, Tensor<1>) = (tensor(&x), tensor(&y));
    let run = move || {
        let a = (x.clone() * y.clone() + 0.5).tanh();
        let b = (x.clone().square() + y.clone().square()).sqrt() + 1.0;
        let c = a.clone() * x.clone().sin() - y.clone() / b.clone();
        c * b.square().neg().exp() + a
    };
    Inference::boxed(run, read)
}
pub fn small() -> Box<dyn Timed> {
    let x: Tensor<1> = tensor(&data::uniform(70, &[data::SMALL], 1.0));
    Inference::boxed(move || (x.clone() * 2.0 + 1.0).tanh(), read)
}
