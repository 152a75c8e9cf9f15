//! Integers behind numbers: the total order of floats, and the upper half of a product.
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, DType, Scalar};

/// An integer that compares as the total order of floats does: -nan < -inf < .. < -0 < 0 < .. < inf < nan. Integers are theirs.
pub(in crate::ops) fn order_key(g: &mut Graph, x: TensorId) -> TensorId {
    let d = g.dtype(x);
    if !d.is_float() {
        return x;
    }
    let x = if d.is_small() { g.convert(x, DType::F32) } else { x };
    let d = g.dtype(x);
    let (int, top) = match d.size() {
        2 => (DType::I16, i16::MAX as i64),
        4 => (DType::I32, i32::MAX as i64),
        _ => (DType::I64, i64::MAX),
    };
    let bits = g.bitcast(x, int);
    let width = g.scalar(bits, (8 * d.size() - 1) as f64);
    let sign = g.bin(Bin::ShrArithmetic, bits, width);
    // negative numbers have their magnitude bits flipped
    let magnitude = g.constant(Scalar::from_i64(int, top), Default::default());
    let flip = g.bin(Bin::And, sign, magnitude);
    g.bin(Bin::Xor, bits, flip)
}

/// The upper half of the product, of twice the width; by the schoolbook rule on halves from 32 bits on, for a GPU has no wider integers.
pub(super) fn mulhi(g: &mut Graph, x: TensorId, y: TensorId) -> TensorId {
    let d = g.dtype(x);
    let (bits, signed) = (d.bits() as usize, d.is_signed());
    if bits < 32 {
        let wide = if signed { DType::I32 } else { DType::U32 };
        let (a, b) = (g.convert(x, wide), g.convert(y, wide));
        let p = g.bin(Bin::Mul, a, b);
        let by = g.scalar(p, bits as f64);
        let p = g.bin(Bin::ShrLogical, p, by);
        return g.convert(p, d);
    }
    let word = if bits == 32 { DType::U32 } else { DType::U64 };
    let (a, b) = (g.convert(x, word), g.convert(y, word));
    let (half, mask) = (g.scalar(a, (bits / 2) as f64), g.scalar(a, ((1u64 << (bits / 2)) - 1) as f64));
    let low = |g: &mut Graph, v| g.bin(Bin::And, v, mask);
    let high = |g: &mut Graph, v| g.bin(Bin::ShrLogical, v, half);
    let ((a0, a1), (b0, b1)) = ((low(g, a), high(g, a)), (low(g, b), high(g, b)));
    let (p00, p01, p10, p11) =
        (g.bin(Bin::Mul, a0, b0), g.bin(Bin::Mul, a0, b1), g.bin(Bin::Mul, a1, b0), g.bin(Bin::Mul, a1, b1));
    let carried = high(g, p00);
    let middle = g.bin(Bin::Add, p10, carried);
    let rest = low(g, middle);
    let other = g.bin(Bin::Add, p01, rest);
    let (m, o) = (high(g, middle), high(g, other));
    let sum = g.bin(Bin::Add, m, o);
    let mut out = g.bin(Bin::Add, p11, sum);
    if signed {
        // a negative factor was taken 2^bits too large
        for (v, w) in [(x, b), (y, a)] {
            let by = g.scalar(v, (bits - 1) as f64);
            let sign = g.bin(Bin::ShrArithmetic, v, by);
            let sign = g.convert(sign, word);
            let off = g.bin(Bin::And, sign, w);
            out = g.bin(Bin::Sub, out, off);
        }
    }
    g.convert(out, d)
}
