//! Random draws, and compositions of every family, have the bits that Python gives: `golden.txt`, which `golden.py` wrote.
use ferrax::*;

mod numpy;

fn key() -> Tensor {
    random::key(7)
}
struct Inputs {
    k: Tensor,
    x: Tensor,
    y: Tensor,
    v: Tensor,
    s: Tensor,
    i: Tensor,
}
fn inputs() -> Inputs {
    let x = random::normal(&random::key(1), &[4, 6], Dtype::F32);
    let y = random::normal(&random::key(2), &[6, 5], Dtype::F32);
    let v = random::uniform_between(&random::key(3), &[8], Dtype::F32, 0.5, 3.0);
    let q = x.slice(s![.., ..4]);
    let s = q.matmul(q.t()) + 4 * Tensor::eye(4, 4);
    Inputs { k: key(), x, y, v, s, i: Tensor::from([2, 0, 3]) }
}
const F: Dtype = Dtype::F32;
const S8: &[usize] = &[8];

fn made(name: &str) -> Option<Tensor> {
    let Inputs { k, x, y, v, s, i } = &inputs();
    let near = |x: &Tensor| x.slice(s![.., ..5]);
    Some(match name {
        "key" => random::key_data(k),
        "split" => random::key_data(&random::split_into(k, &[3])),
        "fold_in" => random::key_data(&random::fold_in(k, 5)),
        "bits8" => random::bits(k, &[5], Dtype::U8),
        "bits32" => random::bits(k, &[5], Dtype::U32),
        "uniform" => random::uniform(k, &[3, 5], F),
        "uniform_f16" => random::uniform(k, &[9], Dtype::F16),
        "uniform_bf16" => random::uniform(k, &[9], Dtype::BF16),
        "uniform_between" => random::uniform_between(k, S8, F, -2.0, v),
        "randint" => random::randint(k, &[9], -3, 17),
        "randint_i8" => random::randint_in(k, &[9], -100, 300, Dtype::I8),
        "normal" => random::normal(k, &[3, 5], F),
        "normal_f16" => random::normal(k, &[9], Dtype::F16),
        "normal_bf16" => random::normal(k, &[9], Dtype::BF16),
        "normal_c64" => random::normal(k, &[4], Dtype::C64),
        "truncated_normal" => random::truncated_normal(k, -1.0, 2.0, S8, F),
        "exponential" => random::exponential(k, S8, F),
        "gumbel" => random::gumbel(k, S8, F),
        "laplace" => random::laplace(k, S8, F),
        "logistic" => random::logistic(k, S8, F),
        "cauchy" => random::cauchy(k, S8, F),
        "bernoulli" => random::bernoulli(k, 0.3, &[20]),
        "rademacher" => random::rademacher(k, S8, F),
        "pareto" => random::pareto(k, v, S8, F),
        "weibull_min" => random::weibull_min(k, 2.0, 1.5, S8, F),
        "rayleigh" => random::rayleigh(k, v, S8, F),
        "geometric" => random::geometric(k, 0.2, S8),
        "triangular" => random::triangular(k, -1.0, 0.5, 2.0, S8, F),
        "lognormal" => random::lognormal(k, v, S8, F),
        "maxwell" => random::maxwell(k, S8, F),
        "double_sided_maxwell" => random::double_sided_maxwell(k, 1.0, 2.0, S8, F),
        "wald" => random::wald(k, v, S8, F),
        "categorical" => random::categorical(k, x, 1),
        "permutation" => random::permutation(k, &Tensor::arange(20, Dtype::I32), 0),
        "permutation_rows" => random::permutation(k, x, 0),
        "choice" => random::choice(k, v, &[5], true, None, 0),
        "choice_without" => random::choice(k, v, &[5], false, None, 0),
        "choice_weights" => random::choice(k, v, &[5], true, Some(&(v / v.sum())), 0),
        "choice_weights_without" => random::choice(k, v, &[5], false, Some(&(v / v.sum())), 0),
        "multivariate_normal" => random::multivariate_normal(k, &x.slice(s![.., 0]), s, &[3], F),
        "orthogonal" => random::orthogonal(k, 4, 4, &[], F),
        "gamma" => random::gamma(k, v, S8, F),
        "loggamma" => random::loggamma(k, v - 0.45, S8, F),
        "beta" => random::beta(k, v, 2.0, S8, F),
        "dirichlet" => random::dirichlet(k, v, &[3], F),
        "chisquare" => random::chisquare(k, v, S8, F),
        "f" => random::f(k, v, 3.0, S8, F),
        "t" => random::t(k, v, S8, F),
        "generalized_normal" => random::generalized_normal(k, 1.5, S8, F),
        "ball" => random::ball(k, 3, 2, &[4], F),
        "poisson" => random::poisson(k, v * 8, S8),
        "binomial" => random::binomial(k, 40.0, v / 4, S8, F),
        "multinomial" => random::multinomial(k, 50.0, &Tensor::from([0.2f32, 0.5, 0.3]), F),
        "gamma_grad" => grad(|a: &Tensor| random::gamma(&key(), a, S8, F).sum())(v).unwrap(),
        "linspace" => Tensor::linspace(-1.5, 2.0, 11),
        "mean" => x.mean_axes(0),
        "var" => x.var_axes(1),
        "std" => x.std(),
        "sum_f16" => x.astype(Dtype::F16).sum_axes(1),
        "logsumexp" => x.log_sum_exp_axes(1),
        "median" => x.median(1),
        "cumsum" => x.cumsum(1),
        "cumprod" => x.cumprod(0),
        "matmul" => x.matmul(y),
        "einsum" => einsum("ij,jk,lj->lki", &[x, y, x]),
        "batched" => stack(&[x.clone(), x * 2], 0).matmul(y),
        "hypot" => near(x).hypot(y.slice(s![..4])),
        "mod" => near(x).modulo(y.slice(s![..4])),
        "floor_divide" => near(x).floor_div(y.slice(s![..4])),
        "log2" => v.log2(),
        "power" => v.pow(1.7),
        "cholesky" => linalg::cholesky(s),
        "solve" => linalg::solve(s, x),
        "inv" => linalg::inv(s),
        "eigh" => linalg::eigh(s).0,
        "svd" => linalg::svd(x).1,
        "slogdet" => linalg::slogdet(s).1,
        "rfft" => x.rfft(1),
        "ifft" => x.ifft(0),
        "conv" => {
            let w = x.slice(s![..2, ..4]).reshape(&[2, 1, 2, 2]);
            let o = ConvOptions { padding: Padding::Same, ..ConvOptions::default() };
            s.reshape(&[1, 1, 4, 4]).conv(&w, &o)
        }
        "sort" => x.sort(1),
        "argsort" => x.argsort(0),
        "top_k" => x.top_k(2, -1).0,
        "gather" => x.slice(s![i, 1..5]),
        "scatter" => x.at(s![i]).add(v.slice(s![..6])),
        "relu" => nn::relu(x),
        "gelu" => nn::gelu(x),
        "gelu_exact" => nn::gelu_exact(x),
        "silu" => nn::silu(x),
        "softplus" => nn::softplus(x),
        "elu" => nn::elu(x, 1.0),
        "selu" => nn::selu(x),
        "celu" => nn::celu(x, 1.0),
        "mish" => nn::mish(x),
        "log_sigmoid" => nn::log_sigmoid(x),
        "hard_silu" => nn::hard_silu(x),
        "squareplus" => nn::squareplus(x, 4.0),
        "softmax" => nn::softmax(x, 1),
        "log_softmax" => nn::log_softmax(x, 0),
        "standardize" => nn::standardize(x, -1, 1e-5),
        "glorot_uniform" => nn::glorot_uniform(k, &[4, 6], F),
        "he_normal" => nn::he_normal(k, &[3, 3, 4, 6], F),
        "attention" => {
            let q = x.reshape(&[1, 3, 2, 4]);
            nn::dot_product_attention(&q, &q, &q, None, true)
        }
        "softmax_grad" => {
            let x = x.clone();
            let twice = &x * 2;
            grad(move |z: &Tensor| (nn::log_softmax(z, -1) * &x).sum())(&twice).unwrap()
        }
        "hessian" => hessian(|v: &Tensor| (v.sin() * v.cumsum(0)).sum())(v).unwrap(),
        "scan" => {
            let step = |c: &Tensor, x: &Tensor| (c.sin() + x, c * x);
            scan(step, &Tensor::from(0.5f32), v).unwrap().1
        }
        "associative_scan" => associative_scan(|a: &Tensor, b: &Tensor| a * b, x, 1, false).unwrap(),
        _ => return numpy::made(name),
    })
}
fn line(name: &str, x: &Tensor) -> String {
    let bytes = x.to_bytes().unwrap();
    let hash = bytes.iter().fold(0xCBF29CE484222325u64, |h, b| (h ^ *b as u64).wrapping_mul(0x100000001B3));
    let shape = x.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    format!("{name} {} {shape}; {hash:016x}", x.dtype().long())
}

#[test]
fn python_gives_the_same_bits() {
    let mut wrong = vec![];
    for want in include_str!("golden.txt").lines() {
        let name = want.split(' ').next().unwrap();
        match catch(|| Ok(made(name))) {
            Ok(Some(x)) => {
                let got = line(name, &x);
                if !want.starts_with(&got) {
                    wrong.push(format!("{want}\n  here {got}\n  {x}"));
                }
            }
            Ok(None) => wrong.push(format!("{name}: no such case here")),
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
