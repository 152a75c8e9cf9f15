//! Bodies that attract each other: several systems at once, each on a thread of Rust's, all by one compiled function; kernels of a
//! large system share the cores themselves.
//!
//! ```text
//! cargo run --release -p ferrax --example nbody -- [BODIES] [THREADS]
//! ```
use ferrax::{Dtype, Res, ScanOptions, Tensor, grad, jit, linalg, random, s, scan_with, value_and_grad};

/// Kinetic and potential energy; masses are 1 / n, and forces are soft at distances below 0.05.
fn potential(x: &Tensor) -> Tensor {
    let n = x.shape()[0];
    let apart = x.expand_dims(1) - x.expand_dims(0);
    let near = (apart.square().sum_axes(-1) + 0.05f64.powi(2)).rsqrt();
    // each pair is there twice, and each body with itself
    (near.sum() - n as f64 / 0.05) * (-0.5 / (n * n) as f64)
}
fn energy(x: &Tensor, v: &Tensor) -> Tensor {
    v.square().sum() * (0.5 / x.shape()[0] as f64) + potential(x)
}
/// `steps` of leapfrog; the energy after each, and where all are.
fn run(x: &Tensor, v: &Tensor, steps: usize) -> Res<((Tensor, Tensor), Tensor)> {
    let (h, n) = (0.002, x.shape()[0] as f64);
    // forces are minus the potential's derivative, so they need no code
    let pull = |x: &Tensor| -> Res<Tensor> { Ok(grad(potential)(x)? * -n) };
    let step = |(x, v): &(Tensor, Tensor), _: &()| -> Res<_> {
        let v = v + pull(x)? * (h / 2.0);
        let x = x + &v * h;
        let v = &v + pull(&x)? * (h / 2.0);
        let e = energy(&x, &v);
        Ok(((x, v), e))
    };
    let o = ScanOptions { length: Some(steps), ..ScanOptions::default() };
    scan_with(o, step, &(x.clone(), v.clone()), &())
}

fn main() -> Res<()> {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (n, threads) = (args.first().copied().unwrap_or(256), args.get(1).copied().unwrap_or(4));
    let simulate = jit(|(x, v): &(Tensor, Tensor)| run(x, v, 200));
    let start = std::time::Instant::now();
    let worst = std::thread::scope(|scope| {
        let one = |k: usize| {
            let simulate = &simulate;
            scope.spawn(move || -> Res<f64> {
                let keys = random::split(&random::key(k as i32), 2);
                let x = random::normal(&keys[0], &[n, 3], Dtype::F32);
                // turning about an axis
                let v = linalg::cross(&x, &Tensor::from([0.0f32, 0.0, 0.7]).broadcast_to(&[n, 3]));
                let before = energy(&x, &v).item();
                let (_, energies) = simulate(&(x, v))?;
                let after = energies.slice(s![-1]).item();
                println!("system {k}: energy {before:.5} -> {after:.5}");
                Ok(((after - before) / before).abs())
            })
        };
        let all: Vec<_> = (0..threads).map(one).collect();
        all.into_iter().map(|t| t.join().expect("a thread")).try_fold(0f64, |m, e| Ok::<_, ferrax::Error>(m.max(e?)))
    })?;
    let took = start.elapsed().as_secs_f64();
    let pairs = (threads * 400 * n * n) as f64;
    println!(
        "{threads} systems of {n} bodies, 200 steps: {took:.2} s, {:.1} million pairs a second",
        pairs / took / 1e6
    );
    assert!(worst < 1e-2, "energy is not kept: {worst}");
    // how the energy at the end depends on where the bodies began: through all steps
    let x = random::normal(&random::key(9), &[16, 3], Dtype::F32);
    let last = |x: &Tensor| -> Res<Tensor> { Ok(run(x, &x.zeros_like(), 20)?.1.slice(s![-1])) };
    let (e, g) = value_and_grad(last)(&x)?;
    println!("energy {:.4}, and its derivative in {:?} numbers", e.item(), g.shape());
    Ok(())
}
