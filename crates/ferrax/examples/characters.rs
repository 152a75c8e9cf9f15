//! A transformer that writes on, character by character: trained on a nursery rhyme, it knows it by heart.
//!
//! ```text
//! cargo run --release -p ferrax --example characters
//! ```
use ferrax::{Dtype, Res, Tensor, Tree, fori_loop, jit, jit_donate, nn, optim, random, s, value_and_grad};

const TEXT: &str = "This is the house that Jack built. This is the malt that lay in the house that Jack built. This is the rat that ate \
the malt that lay in the house that Jack built. This is the cat that killed the rat that ate the malt that lay in the house that Jack built. ";
const TIME: usize = 32;
const WIDTH: usize = 48;
const HEADS: usize = 4;
const BATCH: usize = 16;

#[derive(Clone, Tree)]
struct Norm {
    scale: Tensor,
    shift: Tensor,
}
impl Norm {
    fn new() -> Norm {
        Norm { scale: Tensor::ones(&[WIDTH]), shift: Tensor::zeros(&[WIDTH]) }
    }
    fn of(&self, x: &Tensor) -> Tensor {
        nn::layer_norm(x, &self.scale, &self.shift, 1e-5)
    }
}
#[derive(Clone, Tree)]
struct Block {
    norms: [Norm; 2],
    qkv: Tensor,
    out: Tensor,
    up: Tensor,
    down: Tensor,
}
#[derive(Clone, Tree)]
struct Transformer {
    embedding: Tensor,
    positions: Tensor,
    blocks: Vec<Block>,
    last: Norm,
}
impl Transformer {
    fn new(key: &Tensor, letters: usize) -> Transformer {
        let keys = random::split(key, 4);
        let normal = |k: &Tensor, shape: &[usize], size: f64| random::normal(k, shape, Dtype::F32) * size;
        let block = |k: &Tensor| {
            let k = random::split(k, 4);
            let own = 0.5 / (WIDTH as f64).sqrt();
            Block {
                norms: [Norm::new(), Norm::new()],
                qkv: normal(&k[0], &[WIDTH, 3 * WIDTH], own),
                out: normal(&k[1], &[WIDTH, WIDTH], own),
                up: normal(&k[2], &[WIDTH, 4 * WIDTH], own),
                down: normal(&k[3], &[4 * WIDTH, WIDTH], own / 2.0),
            }
        };
        Transformer {
            embedding: normal(&keys[0], &[letters, WIDTH], 0.1),
            positions: normal(&keys[1], &[TIME, WIDTH], 0.1),
            blocks: keys[2..].iter().map(block).collect(),
            last: Norm::new(),
        }
    }
    /// What comes next, for each place: `[.., TIME]` of letters to `[.., TIME, letters]`.
    fn logits(&self, text: &Tensor) -> Tensor {
        let mut h = self.embedding.take(text, 0) + &self.positions;
        let n = text.shape()[0];
        for b in &self.blocks {
            let heads = |x: &Tensor| x.reshape(&[n, TIME, HEADS, WIDTH / HEADS]);
            let qkv: Vec<Tensor> = b.norms[0].of(&h).matmul(&b.qkv).split(3, -1).iter().map(heads).collect();
            let seen = nn::dot_product_attention(&qkv[0], &qkv[1], &qkv[2], None, true);
            h += seen.reshape(&[n, TIME, WIDTH]).matmul(&b.out);
            h = &h + nn::gelu(&b.norms[1].of(&h).matmul(&b.up)).matmul(&b.down);
        }
        self.last.of(&h).matmul(self.embedding.t())
    }
}

fn main() -> Res<()> {
    let mut letters: Vec<char> = TEXT.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    let number = |c: char| letters.iter().position(|l| *l == c).expect("a letter of the text") as i32;
    let text = Tensor::from(TEXT.chars().map(number).collect::<Vec<i32>>());
    let keys = random::split(&random::key(0), 2);
    let mut net = Transformer::new(&keys[0], letters.len());
    let adam = optim::Adam::new(3e-3);
    let mut state = adam.init(&net);
    let (own, starts) = (text.clone(), text.size() - TIME);
    type Args = (Transformer, optim::Moments<Transformer>, Tensor);
    let step = jit_donate(move |(net, state, key): &Args| -> Res<_> {
        let from = random::randint(key, &[BATCH, 1], 0, starts);
        let at = from + Tensor::arange(TIME + 1, Dtype::I32);
        let pieces = own.take(&at, 0);
        let (x, y) = (pieces.slice(s![.., ..-1]), pieces.slice(s![.., 1..]));
        let (loss, g) = value_and_grad(|n: &Transformer| nn::cross_entropy(&n.logits(&x), &y).mean())(net)?;
        let g = optim::clip_by_global_norm(&g, 1.0);
        let (net, state) = adam.step(net, &g, state);
        Ok((net, state, loss))
    });
    let start = std::time::Instant::now();
    let mut last = f64::INFINITY;
    for i in 0..500 {
        let loss;
        (net, state, loss) = step((net, state, random::fold_in(&keys[1], i)))?;
        if i % 100 == 99 {
            last = loss.item();
            println!("step {:3}  loss {last:.4}  {:.1} s", i + 1, start.elapsed().as_secs_f64());
        }
    }
    // writing on: a loop inside one compiled program, the window moving by a letter each time
    const MORE: usize = 60;
    let write = jit(|(net, window): &(Transformer, Tensor)| -> Res<Tensor> {
        let letter = |i: &Tensor, (w, out): &(Tensor, Tensor)| {
            let next = net.logits(&w.expand_dims(0)).slice(s![0, -1]).argmax(0);
            let w = w.roll(-1, 0).at(s![-1]).set(&next);
            (w, out.at(s![i]).set(next))
        };
        Ok(fori_loop(0, MORE, letter, &(window.clone(), Tensor::zeros_in(&[MORE], Dtype::I32)))?.1)
    });
    let begin = text.slice(s![..TIME]);
    let made = write(&(net, begin.clone()))?;
    let shown = |t: &Tensor| -> Res<String> { Ok(t.to_vec::<i32>()?.iter().map(|i| letters[*i as usize]).collect()) };
    println!("{}|{}", shown(&begin)?, shown(&made)?);
    let same = made.eq(text.slice(s![TIME..TIME + MORE])).mean().item();
    assert!(last < 0.5 && same > 0.3, "it did not learn: {last} {same}");
    Ok(())
}
