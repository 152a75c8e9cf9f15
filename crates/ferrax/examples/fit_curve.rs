//! Fits a small network to a curve with `grad` and `jit` over Rust closures: no Python anywhere.
//!
//! ```text
//! cargo run --release -p ferrax --example fit_curve
//! ```
use ferrax::{Res, Tensor, Tree, jit, value_and_grad};

/// A layer: out = x w + b.
struct Layer {
    w: Tensor,
    b: Tensor,
}
impl Tree for Layer {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.w.leaves(f);
        self.b.leaves(f);
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Layer {
        Layer { w: self.w.rebuild(f), b: self.b.rebuild(f) }
    }
}

/// Uniform numbers in -scale .. scale, from a linear congruence: enough to break symmetry, the same on every run.
fn spread(n: usize, scale: f32, seed: u32) -> Vec<f32> {
    let mut s = seed;
    (0..n)
        .map(|_| {
            s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            ((s >> 8) as f32 / (1 << 24) as f32 * 2.0 - 1.0) * scale
        })
        .collect()
}
fn layer(n_in: usize, n_out: usize, seed: u32) -> Res<Layer> {
    let scale = (6.0 / (n_in + n_out) as f32).sqrt();
    Ok(Layer { w: Tensor::new(&spread(n_in * n_out, scale, seed), &[n_in, n_out])?, b: Tensor::zeros(&[n_out]) })
}
fn predict(layers: &[Layer], x: &Tensor) -> Tensor {
    let (last, hidden) = layers.split_last().expect("a network has layers");
    let h = hidden.iter().fold(x.clone(), |h, l| (h.matmul(&l.w) + &l.b).tanh());
    h.matmul(&last.w) + &last.b
}

fn main() -> Res<()> {
    let x = Tensor::linspace(-3.0, 3.0, 256).reshape(&[256, 1]);
    let y = (&x * 2.0).sin() + (&x * &x) * 0.1;
    let mut layers = vec![layer(1, 32, 1)?, layer(32, 32, 2)?, layer(32, 1, 3)?];
    let mut velocity = layers.rebuild(&mut |t| t * 0.0);

    // one step of gradient descent with momentum: traced once, then compiled code
    let step = jit(|(layers, velocity, x, y): &(Vec<Layer>, Vec<Layer>, Tensor, Tensor)| -> Res<_> {
        let loss = |l: &Vec<Layer>| (predict(l, x) - y).powi(2).mean();
        let (loss, grads) = value_and_grad(loss)(layers)?;
        let velocity = velocity.zip(&grads, |v, g| v * 0.9 + g);
        let layers = layers.zip(&velocity, |w, v| w - v * 0.02);
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
