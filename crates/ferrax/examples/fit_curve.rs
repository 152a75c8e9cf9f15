//! Fits a small network to a curve with `grad` and `jit` over Rust closures: no Python anywhere.
//!
//! ```text
//! cargo run --release -p ferrax --example fit_curve
//! ```
use ferrax::{Dtype, Res, Tensor, Tree, jit, nn, optim, random, value_and_grad};

/// A layer: out = x w + b.
#[derive(Clone, Tree)]
struct Dense {
    w: Tensor,
    b: Tensor,
}
fn predict(layers: &[Dense], x: &Tensor) -> Tensor {
    let (last, hidden) = layers.split_last().expect("a network has layers");
    let h = hidden.iter().fold(x.clone(), |h, l| nn::linear(&h, &l.w, &l.b).tanh());
    nn::linear(&h, &last.w, &last.b)
}

fn main() -> Res<()> {
    let x = Tensor::linspace(-3.0, 3.0, 256).reshape(&[256, 1]);
    let y = (&x * 2.0).sin() + (&x * &x) * 0.1;
    let sizes = [1, 32, 32, 1];
    let keys = random::split(&random::key(0), 3);
    let mut layers: Vec<Dense> = keys
        .iter()
        .zip(sizes.windows(2))
        .map(|(k, n)| Dense { w: nn::glorot_uniform(k, n, Dtype::F32), b: Tensor::zeros(&n[1..]) })
        .collect();
    let mut velocity = optim::zeros_like(&layers);

    // one step of gradient descent with momentum: traced once, then compiled code
    let step = jit(|(layers, velocity, x, y): &(Vec<Dense>, Vec<Dense>, Tensor, Tensor)| -> Res<_> {
        let loss = |l: &Vec<Dense>| (predict(l, x) - y).square().mean();
        let (loss, grads) = value_and_grad(loss)(layers)?;
        let (layers, velocity) = optim::momentum(layers, &grads, velocity, 0.02, 0.9);
        Ok((loss, layers, velocity))
    });
    let start = std::time::Instant::now();
    let mut loss = Tensor::from(0.0f32);
    for i in 0..2000 {
        (loss, layers, velocity) = step(&(layers, velocity, x.clone(), y.clone()))?;
        if i % 400 == 0 {
            println!("step {i:4}  loss {:.5}", loss.item());
        }
    }
    println!("step 2000  loss {:.5}  ({:.0} us a step)", loss.item(), start.elapsed().as_secs_f64() / 2000.0 * 1e6);

    let (got, want) = (predict(&layers, &x).to_vec::<f32>()?, y.to_vec::<f32>()?);
    for i in (0..256).step_by(16) {
        let column = |v: f32| ((v + 1.5) * 16.0).clamp(0.0, 63.0) as usize;
        let mut line = vec![b' '; 64];
        line[column(want[i])] = b'o';
        line[column(got[i])] = b'*';
        println!("{}", String::from_utf8_lossy(&line));
    }
    assert!(loss.item() < 0.01, "the fit did not converge");
    Ok(())
}
