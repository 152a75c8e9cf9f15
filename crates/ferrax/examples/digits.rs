//! Reads digits with a convolutional network: drawn from a font of 5 by 7 dots, shifted, faded and under noise.
//!
//! ```text
//! cargo run --release -p ferrax --example digits
//! ```
use ferrax::{
    ConvOptions, Dtype, Padding, Res, Tensor, Tree, concatenate, jit, jit_donate, nn, optim, random, s, value_and_grad,
};

/// Rows of dots, the first in the highest of five bits.
const FONT: [[u8; 7]; 10] = [
    [14, 17, 19, 21, 25, 17, 14],
    [4, 12, 4, 4, 4, 4, 14],
    [14, 17, 1, 6, 8, 16, 31],
    [31, 2, 4, 2, 1, 17, 14],
    [2, 6, 10, 18, 31, 2, 2],
    [31, 16, 30, 1, 1, 17, 14],
    [6, 8, 16, 30, 17, 17, 14],
    [31, 1, 2, 4, 8, 8, 8],
    [14, 17, 17, 14, 17, 17, 14],
    [14, 17, 17, 15, 1, 2, 12],
];
const SIDE: usize = 12;
const CLASSES: usize = 10;

/// `n` pictures, `[n, 12, 12, 1]`, and their digits.
fn draw(key: &Tensor, n: usize) -> (Tensor, Tensor) {
    let keys = random::split(key, 5);
    let rows: Vec<u8> = FONT.concat();
    let dots = Tensor::from(rows).reshape(&[70, 1]) & Tensor::from([16u8, 8, 4, 2, 1]);
    let font = dots.gt(0).astype(Dtype::F32).reshape(&[CLASSES, 7, 5]);
    let labels = random::randint(&keys[0], &[n], 0, CLASSES);
    let (down, right) = (random::randint(&keys[1], &[n, 1], 0, 6), random::randint(&keys[2], &[n, 1], 0, 8));
    let place = |shift: &Tensor| Tensor::arange(SIDE, Dtype::I32).expand_dims(0) - shift;
    // each picture reads its glyph inside its area, and zeros outside
    let (i, j) = (place(&down).expand_dims(2), place(&right).expand_dims(1));
    let inside = i.ge(0) & i.lt(7) & j.ge(0) & j.lt(5);
    let glyphs = font.slice(s![labels.reshape(&[n, 1, 1]), i.clip(0, 6), j.clip(0, 4)]);
    let ink = random::uniform_between(&keys[3], &[n, 1, 1], Dtype::F32, 0.5, 1.0);
    let noise = 0.15 * random::normal(&keys[4], &[n, SIDE, SIDE], Dtype::F32);
    (((glyphs * inside.astype(Dtype::F32)) * ink + noise).expand_dims(3), labels)
}

#[derive(Clone, Tree)]
struct Layer {
    w: Tensor,
    b: Tensor,
}
#[derive(Clone, Tree)]
struct Net {
    convolutions: [Layer; 2],
    last: Layer,
}
impl Net {
    fn new(key: &Tensor) -> Net {
        let keys = random::split(key, 3);
        let layer = |k: usize, shape: &[usize]| Layer {
            w: nn::he_normal(&keys[k], shape, Dtype::F32),
            b: Tensor::zeros(&shape[shape.len() - 1..]),
        };
        Net { convolutions: [layer(0, &[3, 3, 1, 16]), layer(1, &[3, 3, 16, 32])], last: layer(2, &[9 * 32, CLASSES]) }
    }
    fn logits(&self, x: &Tensor) -> Tensor {
        let same = ConvOptions { padding: Padding::Same, ..ConvOptions::features_last() };
        let read = |x: Tensor, l: &Layer| {
            let h = nn::relu(&(x.conv(&l.w, &same) + &l.b));
            nn::max_pool(&h, (2, 2), (2, 2), &Padding::Valid)
        };
        let h = self.convolutions.iter().fold(x.clone(), read);
        nn::linear(&h.reshape(&[x.shape()[0] as i64, -1]), &self.last.w, &self.last.b)
    }
}

fn main() -> Res<()> {
    let keys = random::split(&random::key(0), 3);
    let mut net = Net::new(&keys[0]);
    let adam = optim::Adam::new(4e-3);
    let mut state = adam.init(&net);
    // pictures are drawn inside the step: no two are the same
    let step = jit_donate(move |(net, state, key): &(Net, optim::Moments<Net>, Tensor)| -> Res<_> {
        let (x, y) = draw(key, 64);
        let (loss, g) = value_and_grad(|n: &Net| nn::cross_entropy(&n.logits(&x), &y).mean())(net)?;
        let (net, state) = adam.step(net, &g, state);
        Ok((net, state, loss))
    });
    let start = std::time::Instant::now();
    for i in 0..1200 {
        let loss;
        (net, state, loss) = step((net, state, random::fold_in(&keys[1], i)))?;
        if i % 200 == 199 {
            println!("step {:4}  loss {:.4}  {:.1} s", i + 1, loss.item(), start.elapsed().as_secs_f64());
        }
    }
    let guess = jit(|(net, x): &(Net, Tensor)| net.logits(x).argmax(1));
    let (x, y) = draw(&keys[2], 1000);
    let seen = guess(&(net, x.clone()))?;
    let right = seen.eq(&y).mean().item();
    let four: Vec<Tensor> = (0..4).map(|i| x.slice(s![i, .., .., 0])).collect();
    for row in concatenate(&four, 1).to_vec::<f32>()?.chunks(4 * SIDE) {
        println!(
            "{}",
            row.iter().map(|v| [' ', '.', ':', '#'][(v * 4.0).clamp(0.0, 3.0) as usize]).collect::<String>()
        );
    }
    println!("{:?}", &seen.to_vec::<i32>()?[..4]);
    println!("{:.1} of 100 digits that it had not seen are right", 100.0 * right);
    assert!(right > 0.9, "it did not learn");
    Ok(())
}
