//! Fits the parameters of an ordinary differential equation through its solver: an adaptive `while_loop`, differentiated.
//!
//! ```text
//! cargo run --release -p ferrax --example ode
//! ```
use ferrax::{Res, Tensor, jacfwd, jit, stack, where_, while_loop};

/// Lotka and Volterra: hares x and lynxes y, `dx = a x - b x y`, `dy = c x y - d y`.
fn change(z: &Tensor, p: &Tensor) -> Tensor {
    let (z, p) = (z.unstack(0), p.unstack(0));
    let met = &z[0] * &z[1];
    stack(&[&p[0] * &z[0] - &p[1] * &met, &p[2] * &met - &p[3] * &z[1]], 0)
}
/// The state at time `end`, by Heun's method with Euler's as its measure of the error.
fn solve(p: &Tensor, end: f64) -> Res<Tensor> {
    type State = (Tensor, Tensor, Tensor);
    let start = (Tensor::from(0.0f32), Tensor::from([10.0f32, 5.0]), Tensor::from(0.01f32));
    let step = |(t, z, h): &State| {
        let h = h.minimum(end - t);
        let k1 = change(z, p);
        let k2 = change(&(z + &h * &k1), p);
        let next = z + &h * 0.5 * (&k1 + &k2);
        let error = ((&k2 - &k1) * &h * 0.5).abs().max() + 1e-9;
        let good = error.le(1e-3);
        let scale = (0.9 * (1e-3 / error).sqrt()).clip(0.2, 3.0);
        (where_(&good, t + &h, t), where_(&good, next, z), (h * scale).stop_gradient())
    };
    Ok(while_loop(|s: &State| s.0.lt(end - 1e-6), step, &start)?.1)
}

fn main() -> Res<()> {
    let truth = Tensor::from([1.1f32, 0.4, 0.1, 0.4]);
    let times = [1.0, 2.0, 4.0, 6.0];
    let path = move |p: &Tensor| -> Res<Tensor> {
        let states = times.iter().map(|t| solve(p, *t)).collect::<Res<Vec<_>>>()?;
        Ok(ferrax::concatenate(&states, 0))
    };
    let seen = path(&truth)?;
    let mut p = Tensor::from([1.0f32, 0.35, 0.12, 0.45]);
    // Gauss and Newton with damping: the derivative of the whole path in four parameters, forwards through the loop
    let step = jit(move |p: &Tensor| -> Res<(Tensor, Tensor)> {
        let j = jacfwd(path)(p)?;
        let rest = path(p)? - &seen;
        let normal = j.t().matmul(&j) + Tensor::eye(4, 4) * 1e-3;
        let change = ferrax::linalg::solve(&normal, &j.t().matmul(&rest));
        Ok((rest.square().mean(), p - change))
    });
    let mut loss = Tensor::from(0.0f32);
    for i in 0..12 {
        (loss, p) = step(&p)?;
        println!("step {i:2}  loss {:.6}  parameters {p}", loss.item());
    }
    assert!(loss.item() < 1e-2 && (&p - &truth).abs().max().item() < 0.02, "the parameters were not found: {p}");
    Ok(())
}
