//! The rows in candle.
use crate::data::{self, ConvNet, Mlp, Numbers, Rnn, Transformer};
use crate::{Inference, Timed, Training};
use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::{loss, ops};

const CPU: Device = Device::Cpu;

fn tensor(a: &Numbers) -> Tensor {
    Tensor::from_slice(&a.data, a.shape.as_slice(), &CPU).expect("an array")
}
fn indices(i: &[u32]) -> Tensor {
    Tensor::from_slice(i, i.len(), &CPU).expect("an array")
}
fn read(t: &Tensor) -> Vec<f32> {
    t.flatten_all().and_then(|t| t.to_vec1()).expect("float32")
}
fn training(params: Vec<Numbers>, rate: f64, loss: impl Fn(&[Tensor]) -> Result<Tensor> + 'static) -> Box<dyn Timed> {
    let vars: Vec<Var> = params.iter().map(|a| Var::from_tensor(&tensor(a)).expect("a variable")).collect();
    let step = move |(_, vars): &(Tensor, Vec<Var>)| -> Result<(Tensor, Vec<Var>)> {
        let p: Vec<Tensor> = vars.iter().map(|v| v.as_tensor().clone()).collect();
        let l = loss(&p)?;
        let grads = l.backward()?;
        for v in vars {
            if let Some(g) = grads.get(v.as_tensor()) {
                v.set(&v.as_tensor().sub(&(g * rate)?)?)?;
            }
        }
        Ok((l, vars.clone()))
    };
    Training::boxed(
        (tensor(&data::full(&[], 0.0)), vars),
        move |state| step(state).expect("a step"),
        |(l, vars)| std::iter::once(l).chain(vars.iter().map(Var::as_tensor)).flat_map(read).collect(),
    )
}
fn linear(x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
    x.matmul(w)?.broadcast_add(b)
}
fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    let n = labels.dim(0)? as f64;
    (ops::log_softmax(logits, D::Minus1)? * labels)?.sum_all()?.neg()? / n
}
pub fn mlp() -> Box<dyn Timed> {
    let (x, y) = data::mlp_inputs();
    let (x, y) = (tensor(&x), tensor(&y));
    training(data::mlp(), Mlp::RATE, move |p| {
        let mut h = x.clone();
        for l in p[..4].chunks(2) {
            h = linear(&h, &l[0], &l[1])?.relu()?;
        }
        cross_entropy(&linear(&h, &p[4], &p[5])?, &y)
    })
}
pub fn conv() -> Box<dyn Timed> {
    let (x, y) = data::conv_inputs();
    let (x, y) = (tensor(&x), tensor(&y));
    training(data::conv(), ConvNet::RATE, move |p| {
        let mut h = x.clone();
        for l in p[..4].chunks(2) {
            h = h.conv2d(&l[0], 1, 1, 1, 1)?.broadcast_add(&l[1])?.relu()?.avg_pool2d(2)?;
        }
        cross_entropy(&linear(&h.reshape((ConvNet::BATCH, ConvNet::FLAT))?, &p[4], &p[5])?, &y)
    })
}
/// `x @ w` for x of three axes.
fn product(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let (b, t, k) = x.dims3()?;
    x.reshape((b * t, k))?.matmul(w)?.reshape((b, t, w.dim(1)?))
}
pub fn transformer() -> Box<dyn Timed> {
    type T = Transformer;
    let (b, t, w, n) = (T::BATCH, T::TIME, T::WIDTH, T::HEADS);
    let (x, y) = data::transformer_inputs();
    let (x, y) = (indices(&x), indices(&y));
    let unseen: Vec<f32> = (0..t * t).map(|i| if i % t > i / t { f32::NEG_INFINITY } else { 0.0 }).collect();
    let mask = tensor(&Numbers { shape: vec![1, 1, t, t], data: unseen });
    training(data::transformer(), T::RATE, move |p| {
        let mut h = p[0].index_select(&x, 0)?.reshape((b, t, w))?.broadcast_add(&p[1])?;
        for l in p[2..2 + 8 * T::LAYERS].chunks(8) {
            let qkv = product(&ops::layer_norm_slow(&h, &l[0], &l[1], 1e-5)?, &l[2])?;
            let part = |k: usize| -> Result<Tensor> {
                qkv.narrow(2, k * w, w)?.reshape((b, t, n, w / n))?.transpose(1, 2)?.contiguous()
            };
            let scores = (part(0)?.matmul(&part(1)?.transpose(2, 3)?)? / ((w / n) as f64).sqrt())?;
            let a = ops::softmax(&scores.broadcast_add(&mask)?, D::Minus1)?.matmul(&part(2)?)?;
            h = (&h + product(&a.transpose(1, 2)?.reshape((b, t, w))?, &l[3])?)?;
            let up = product(&ops::layer_norm_slow(&h, &l[4], &l[5], 1e-5)?, &l[6])?.gelu()?;
            h = (&h + product(&up, &l[7])?)?;
        }
        let n = p.len();
        let logits = product(&ops::layer_norm_slow(&h, &p[n - 3], &p[n - 2], 1e-5)?, &p[n - 1])?;
        loss::cross_entropy(&logits.reshape((b * t, T::VOCABULARY))?, &y)
    })
}
pub fn rnn() -> Box<dyn Timed> {
    let (x, y) = data::rnn_inputs();
    let (x, y) = (tensor(&x), tensor(&y));
    training(data::rnn(), Rnn::RATE, move |p| {
        let mut h = tensor(&data::full(&[Rnn::BATCH, Rnn::WIDTH], 0.0));
        for k in 0..Rnn::TIME {
            h = (x.get(k)?.matmul(&p[0])? + h.matmul(&p[1])?)?.broadcast_add(&p[2])?.tanh()?;
        }
        (h - &y)?.sqr()?.mean_all()
    })
}
pub fn softmax() -> Box<dyn Timed> {
    let x = tensor(&data::uniform(50, &data::SOFTMAX, 5.0));
    Inference::boxed(move || ops::softmax_last_dim(&x).expect("a result"), read)
}
pub fn chain() -> Box<dyn Timed> {
    let (x, y) = (data::uniform(60, &[data::CHAIN], 2.0), data::uniform(61, &[data::CHAIN], 2.0));
    let (x, y) = (tensor(&x), tensor(&y));
    let run = move || -> Result<Tensor> {
        let a = ((&x * &y)? + 0.5)?.tanh()?;
        let b = ((x.sqr()? + y.sqr()?)?.sqrt()? + 1.0)?;
        let c = ((&a * x.sin()?)? - (&y / &b)?)?;
        (c * b.sqr()?.neg()?.exp()?)? + a
    };
    Inference::boxed(move || run().expect("a result"), read)
}
pub fn small() -> Box<dyn Timed> {
    let x = tensor(&data::uniform(70, &[data::SMALL], 1.0));
    Inference::boxed(move || x.affine(2.0, 1.0).and_then(|x| x.tanh()).expect("a result"), read)
}
