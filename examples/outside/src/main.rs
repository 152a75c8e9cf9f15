//! A crate of its own that uses the library as others do: `cargo xtask outside` builds it from nothing and weighs it.
use ferrax::{Dtype, Res, ScanOptions, Tensor, Tree, grad, jit, nn, random, scan_with, vmap};

#[derive(Clone, Tree)]
struct Layer {
    w: Tensor,
    b: Tensor,
}

/// One example through the layers.
fn predict(layers: &[Layer], x: &Tensor) -> Tensor {
    let (last, hidden) = layers.split_last().expect("a network has layers");
    let h = hidden.iter().fold(x.clone(), |h, l| nn::linear(&h, &l.w, &l.b).tanh());
    nn::linear(&h, &last.w, &last.b).squeeze(0)
}

fn main() -> Res<()> {
    let keys = random::split(&random::key(0), 3);
    let sizes = [2, 32, 1];
    let draw =
        |(k, n): (&Tensor, &[usize])| Layer { w: nn::glorot_uniform(k, n, Dtype::F32), b: Tensor::zeros(&n[1..]) };
    let layers: Vec<Layer> = keys.iter().zip(sizes.windows(2)).map(draw).collect();
    let x = random::normal(&keys[2], &[256, 2], Dtype::F32);
    let y = x.prod_axes(1);

    let loss = |layers: &Vec<Layer>| -> Res<Tensor> {
        let all = vmap(|x: &Tensor| predict(layers, x))(&x)?;
        Ok(nn::squared_error(&all, &y).mean())
    };
    let train = jit(|layers: &Vec<Layer>| -> Res<_> {
        let step = |l: &Vec<Layer>, _: &()| -> Res<_> { Ok((l.zip(&grad(loss)(l)?, |p, g| p - g * 0.1), loss(l)?)) };
        scan_with(ScanOptions { length: Some(2000), ..ScanOptions::default() }, step, layers, &())
    });
    let (layers, losses) = train(&layers)?;
    let (first, last) = (losses.take(&Tensor::from(0), 0).item(), loss(&layers)?.item());
    println!("loss {first:.4} -> {last:.4}");
    assert!(last < 0.1 * first, "it did not learn");
    Ok(())
}
