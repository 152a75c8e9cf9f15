//! Bayesian regression by Hamiltonian Monte Carlo: many chains at once by `vmap`, each a `scan`, gradients inside, keys for all.
//!
//! ```text
//! cargo run --release -p ferrax --example sample
//! ```
use ferrax::{Dtype, Res, Tensor, fori_loop, grad, jit, random, scan, vmap, where_};

const CHAINS: usize = 64;
const STEPS: usize = 400;

fn main() -> Res<()> {
    // y = 2 x - 1, with noise of deviation 0.5
    let keys = random::split(&random::key(1), 3);
    let x = random::uniform_between(&keys[0], &[100], Dtype::F32, -2.0, 2.0);
    let y = 2.0 * &x - 1.0 + 0.5 * random::normal(&keys[1], &[100], Dtype::F32);

    // weights are normal with deviation 10
    let log_density = |w: &Tensor| {
        let w = w.unstack(0);
        let rest = &y - (&w[0] * &x + &w[1]);
        -(rest.square().sum() / (2.0 * 0.25)) - (w[0].square() + w[1].square()) / 200.0
    };
    let slope = grad(log_density);
    let leap = |w: &Tensor, m: &Tensor| -> Res<(Tensor, Tensor)> {
        let h = 0.03;
        fori_loop(
            0,
            10,
            |_: &Tensor, (w, m): &(Tensor, Tensor)| -> Res<(Tensor, Tensor)> {
                let m = m + 0.5 * h * slope(w)?;
                let w = w + h * &m;
                Ok((w.clone(), m + 0.5 * h * slope(&w)?))
            },
            &(w.clone(), m.clone()),
        )
    };
    let step = |w: &Tensor, key: &Tensor| -> Res<(Tensor, Tensor)> {
        let k = random::split(key, 2);
        let m = random::normal(&k[0], &[2], Dtype::F32);
        let (w2, m2) = leap(w, &m)?;
        let energy = |w: &Tensor, m: &Tensor| log_density(w) - 0.5 * m.square().sum();
        let taken = random::uniform(&k[1], &[], Dtype::F32).log().lt(energy(&w2, &m2) - energy(w, &m));
        let w = where_(&taken, w2, w);
        Ok((w.clone(), w))
    };
    let chain = |key: &Tensor| -> Res<Tensor> {
        let k = random::split(key, 2);
        let start = random::normal(&k[0], &[2], Dtype::F32);
        Ok(scan(step, &start, &random::split_into(&k[1], &[STEPS]))?.1)
    };
    let all = jit(vmap(chain));
    let begin = std::time::Instant::now();
    let drawn = all(&random::split_into(&keys[2], &[CHAINS]))?;
    drawn.ready()?;
    println!("{CHAINS} chains of {STEPS} steps in {:.2} s", begin.elapsed().as_secs_f64());
    let kept = drawn.slice(ferrax::s![.., STEPS / 2..]).reshape(&[-1, 2]);
    let (mean, deviation) = (kept.mean_axes(0).to_vec::<f32>()?, kept.std_axes(0).to_vec::<f32>()?);
    println!("slope {:.3} +- {:.3}, offset {:.3} +- {:.3}", mean[0], deviation[0], mean[1], deviation[1]);
    assert!((mean[0] - 2.0).abs() < 0.2 && (mean[1] + 1.0).abs() < 0.2, "the weights were not found");
    Ok(())
}
