//! What all libraries get: the same numbers in the same sizes.

/// A training row's sizes: a perceptron.
pub struct Mlp;
impl Mlp {
    pub const BATCH: usize = 128;
    pub const SIZES: [usize; 4] = [784, 256, 256, 10];
    pub const RATE: f64 = 0.1;
}
/// Two convolutions of 3 by 3, each with an average pooling by 2, and a dense layer; `NCHW`. (The gradient that candle 0.11 gives of a
/// maximum pooling is a quarter of what it should be.)
pub struct ConvNet;
impl ConvNet {
    pub const BATCH: usize = 32;
    pub const SIDE: usize = 28;
    pub const CHANNELS: [usize; 3] = [1, 16, 32];
    pub const FLAT: usize = 32 * 7 * 7;
    pub const RATE: f64 = 0.1;
}
/// A character model: blocks of causal attention and a perceptron, normalised before.
pub struct Transformer;
impl Transformer {
    pub const BATCH: usize = 8;
    pub const TIME: usize = 64;
    pub const WIDTH: usize = 128;
    pub const HEADS: usize = 4;
    pub const LAYERS: usize = 2;
    pub const VOCABULARY: usize = 64;
    pub const RATE: f64 = 0.05;
}
/// `h = tanh(x wx + h wh + b)` over time.
pub struct Rnn;
impl Rnn {
    pub const BATCH: usize = 32;
    pub const TIME: usize = 64;
    pub const INPUT: usize = 32;
    pub const WIDTH: usize = 128;
    pub const RATE: f64 = 0.1;
}
pub const SOFTMAX: [usize; 2] = [4096, 1024];
pub const CHAIN: usize = 1 << 20;
pub const SMALL: usize = 64;

/// An array that all frameworks read.
#[derive(Clone)]
pub struct Numbers {
    pub shape: Vec<usize>,
    pub data: Vec<f32>,
}

/// Numbers in [-scale, scale), from a counter.
pub fn uniform(seed: u64, shape: &[usize], scale: f32) -> Numbers {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32
    };
    let data = (0..shape.iter().product()).map(|_| (next() * 2.0 - 1.0) * scale).collect();
    Numbers { shape: shape.to_vec(), data }
}
/// Weights of inputs and outputs, as Glorot and Bengio (2010) have them.
pub fn weights(seed: u64, shape: &[usize], fan: usize) -> Numbers {
    uniform(seed, shape, (6.0 / fan as f32).sqrt())
}
pub fn full(shape: &[usize], x: f32) -> Numbers {
    Numbers { shape: shape.to_vec(), data: vec![x; shape.iter().product()] }
}
/// Whole numbers below `n`.
pub fn whole(seed: u64, count: usize, n: usize) -> Vec<u32> {
    uniform(seed, &[count], 0.5).data.iter().map(|x| (((x + 0.5) * n as f32) as u32).min(n as u32 - 1)).collect()
}
/// One row for each label, 1 at the label.
pub fn one_hot(labels: &[u32], n: usize) -> Numbers {
    let mut a = full(&[labels.len(), n], 0.0);
    labels.iter().enumerate().for_each(|(i, l)| a.data[i * n + *l as usize] = 1.0);
    a
}

/// Parameters of each row, in the order in which all libraries hold them.
pub fn mlp() -> Vec<Numbers> {
    let layer = |(i, n): (usize, &[usize])| [weights(i as u64, n, n[0] + n[1]), full(&[n[1]], 0.0)];
    Mlp::SIZES.windows(2).enumerate().flat_map(layer).collect()
}
pub fn conv() -> Vec<Numbers> {
    let c = ConvNet::CHANNELS;
    let kernel = |i: usize| weights(i as u64, &[c[i + 1], c[i], 3, 3], 9 * (c[i] + c[i + 1]));
    vec![
        kernel(0),
        full(&[1, c[1], 1, 1], 0.01),
        kernel(1),
        full(&[1, c[2], 1, 1], 0.01),
        weights(7, &[ConvNet::FLAT, 10], ConvNet::FLAT + 10),
        full(&[10], 0.0),
    ]
}
/// Embedding, positions; for each block scale, shift, qkv, out, scale, shift, up, down; scale, shift, head.
pub fn transformer() -> Vec<Numbers> {
    type T = Transformer;
    let w = T::WIDTH;
    let mut all = vec![uniform(100, &[T::VOCABULARY, w], 0.1), uniform(101, &[T::TIME, w], 0.1)];
    for k in 0..T::LAYERS as u64 {
        all.extend([
            full(&[w], 1.0),
            full(&[w], 0.0),
            weights(110 + k, &[w, 3 * w], 4 * w),
            weights(120 + k, &[w, w], 2 * w),
            full(&[w], 1.0),
            full(&[w], 0.0),
            weights(130 + k, &[w, 4 * w], 5 * w),
            weights(140 + k, &[4 * w, w], 5 * w),
        ]);
    }
    all.extend([full(&[w], 1.0), full(&[w], 0.0), weights(150, &[w, T::VOCABULARY], w + T::VOCABULARY)]);
    all
}
pub fn rnn() -> Vec<Numbers> {
    let (i, w) = (Rnn::INPUT, Rnn::WIDTH);
    vec![weights(200, &[i, w], i + w), weights(201, &[w, w], 2 * w), full(&[w], 0.0)]
}
/// Inputs by time, and what the last state is to be.
pub fn rnn_inputs() -> (Numbers, Numbers) {
    (uniform(210, &[Rnn::TIME, Rnn::BATCH, Rnn::INPUT], 1.0), uniform(211, &[Rnn::BATCH, Rnn::WIDTH], 0.5))
}
pub fn mlp_inputs() -> (Numbers, Numbers) {
    (uniform(20, &[Mlp::BATCH, Mlp::SIZES[0]], 1.0), one_hot(&whole(21, Mlp::BATCH, 10), 10))
}
pub fn conv_inputs() -> (Numbers, Numbers) {
    let x = uniform(30, &[ConvNet::BATCH, 1, ConvNet::SIDE, ConvNet::SIDE], 1.0);
    (x, one_hot(&whole(31, ConvNet::BATCH, 10), 10))
}
/// Characters, and those that follow them.
pub fn transformer_inputs() -> (Vec<u32>, Vec<u32>) {
    type T = Transformer;
    let n = T::BATCH * T::TIME;
    (whole(40, n, T::VOCABULARY), whole(41, n, T::VOCABULARY))
}
