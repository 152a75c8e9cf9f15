//! Products of one size as one pass.
use crate::examples::Build;
use crate::rows::at_once;
use crate::run::{Noise, compare, own_gpu};
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Bin, DType, Routine};
use std::sync::Arc;

const SIDE: usize = 32;
const LEN: usize = SIDE * SIDE;

fn product(noise: &mut Noise, d: DType, x: SlotId, y: SlotId, to: SlotId) -> Step {
    let n = SIDE as i64;
    let rhs = if noise.below(4) == 0 { [0, 1, n] } else { [0, n, 1] };
    let dot = Dot { b: 1, m: SIDE, n: SIDE, k: SIDE, lhs: [0, n, 1], rhs, dtype: d, out: d };
    Step::Routine { routine: Arc::new(Routine::Dot(dot)), ins: vec![x, y], outs: vec![to] }
}

#[test]
fn products_of_products_have_the_values_of_the_reference() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(101);
    // integers wrap: whatever the order of the steps, values are exact
    let d = DType::I32;
    for round in 0..40 {
        let mut b = Build::default();
        let mut known: Vec<SlotId> = (0..3).map(|_| b.input(d, LEN)).collect();
        let mut steps = vec![];
        for _ in 0..3 + noise.below(7) {
            let (x, y) = (known[noise.below(known.len())], known[noise.below(known.len())]);
            let to = if noise.below(2) == 0 { b.output(d, LEN) } else { b.temp(d, LEN) };
            let step = match noise.below(3) {
                0 => b.binary(Bin::Sub, x, y, to),
                _ => product(&mut noise, d, x, y, to),
            };
            steps.push(step);
            known.push(to);
        }
        let last = b.output(d, LEN);
        steps.push(b.binary(Bin::Add, known[known.len() - 1], known[3], last));
        b.0.steps = steps;
        let ins: Vec<Vec<u8>> = (0..3).map(|_| noise.values(d, LEN)).collect();
        compare(&gpu, &format!("round {round}: {:?}", b.0.steps), b.0, &ins, 0.0, 0.0);
    }
}

/// The passes of so many products, each of the one before if they are a chain.
fn passes(n: usize, is_chain: bool) -> usize {
    let Some(gpu) = own_gpu(None) else { return 0 };
    let (mut noise, mut b, d) = (Noise(102), Build::default(), DType::F32);
    let mut x = b.input(d, LEN);
    let dot = |b: &Build, x: SlotId, y: SlotId, to: SlotId| {
        let n = SIDE as i64;
        let dot = Dot { b: 1, m: SIDE, n: SIDE, k: SIDE, lhs: [0, n, 1], rhs: [0, n, 1], dtype: d, out: d };
        assert_eq!(b.0.slots[to as usize].len, LEN);
        Step::Routine { routine: Arc::new(Routine::Dot(dot)), ins: vec![x, y], outs: vec![to] }
    };
    for _ in 0..n {
        let (y, to) = (b.input(d, LEN), b.output(d, LEN));
        let step = dot(&b, x, y, to);
        b.0.steps.push(step);
        x = if is_chain { to } else { x };
    }
    let ins: Vec<Vec<u8>> = (0..=n).map(|_| noise.values(d, LEN)).collect();
    at_once(&gpu, &b.0, &ins).1
}

/// `p = x @ y;  t = z - x;  q = t @ y`: p waits for q.
#[test]
fn a_product_waits_for_another() {
    let Some(gpu) = own_gpu(None) else { return };
    let (mut noise, mut b, d) = (Noise(103), Build::default(), DType::I32);
    let [x, y, z] = [(); 3].map(|()| b.input(d, LEN));
    let (t, p, q) = (b.temp(d, LEN), b.output(d, LEN), b.output(d, LEN));
    let n = SIDE as i64;
    let dot = Dot { b: 1, m: SIDE, n: SIDE, k: SIDE, lhs: [0, n, 1], rhs: [0, n, 1], dtype: d, out: d };
    let dot = Arc::new(Routine::Dot(dot));
    let product = |x: SlotId, to: SlotId| Step::Routine { routine: dot.clone(), ins: vec![x, y], outs: vec![to] };
    b.0.steps = vec![product(x, p), b.binary(Bin::Sub, z, x, t), product(t, q)];
    let ins: Vec<Vec<u8>> = (0..3).map(|_| noise.values(d, LEN)).collect();
    compare(&gpu, "p waits", b.0.clone(), &ins, 0.0, 0.0);
    assert_eq!(at_once(&gpu, &b.0, &ins).1, 2);
}

#[test]
fn independent_products_are_one_pass() {
    if own_gpu(None).is_none() {
        return;
    }
    assert_eq!([passes(1, false), passes(2, false), passes(3, false), passes(5, false)], [1, 1, 1, 2]);
    assert_eq!(passes(3, true), 3);
}
