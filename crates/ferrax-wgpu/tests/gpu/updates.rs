//! Updates of one array in turn, which are one pass where their windows have no element in common.
use crate::examples::Build;
use crate::run::{DTYPES, Noise, compare, own_gpu, run};
use ferrax_kernel::plan::{Plan, Step};
use ferrax_kernel::{DType, Dims, Routine, Scalar};
use std::sync::Arc;

/// `n` updates of an array `[3, 64]` of `d`, of windows `[2, 4]`: next to each other, or anywhere; one start may be data, and a step may read in between.
fn generated(noise: &mut Noise, d: DType, n: usize, anywhere: bool) -> (Plan, Vec<Vec<u8>>) {
    let mut b = Build::default();
    let (operand, window) = (Dims::new(&[3, 64]), Dims::new(&[2, 4]));
    let integer = DType::I32;
    let mut x = b.input(d, operand.size());
    let data = b.input(integer, 1);
    let mut ins = vec![noise.values(d, operand.size()), 1i32.to_le_bytes().to_vec()];
    let row = b.temp(integer, 1);
    let mut steps = vec![b.constant(Scalar::i32(1), row)];
    let (is_data, is_read) = (noise.below(2 * n), noise.below(2 * n));
    let seen = b.output(d, operand.size());
    let mut read = x;
    for i in 0..n {
        let at = b.temp(integer, 1);
        let column = if anywhere { noise.below(70) as i32 - 4 } else { 4 * i as i32 };
        steps.push(b.constant(Scalar::i32(column), at));
        let y = b.input(d, window.size());
        ins.push(noise.values(d, window.size()));
        let out = if i + 1 == n { b.output(d, operand.size()) } else { b.temp(d, operand.size()) };
        let first = if anywhere && i == is_data { data } else { row };
        let routine = Routine::DynamicUpdateSlice {
            operand: operand.clone(),
            update: window.clone(),
            dtype: d,
            index_dtype: integer,
        };
        steps.push(Step::Routine { routine: Arc::new(routine), ins: vec![x, y, first, at], outs: vec![out] });
        if i == is_read {
            read = out;
        }
        x = out;
    }
    steps.push(Step::Copy { from: read, to: seen });
    b.0.steps = steps;
    (b.0, ins)
}

#[test]
fn updates_in_turn_have_the_values_of_the_reference() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(81);
    for d in DTYPES {
        for n in [1, 2, 5, 16] {
            for anywhere in [false, true] {
                let (plan, ins) = generated(&mut noise, d, n, anywhere);
                compare(&gpu, &format!("{n} updates of {d}, anywhere: {anywhere}"), plan, &ins, 0.0, 0.0);
            }
        }
    }
}

#[test]
fn many_arrays_are_joined_in_few_dispatches() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut b = Build::default();
    let (d, integer, n, each) = (DType::F32, DType::I32, 40, 7);
    let mut x = b.temp(d, n * each);
    let mut steps = vec![b.constant(Scalar::f32(0.0), x)];
    let mut ins = vec![];
    for i in 0..n {
        let (at, y) = (b.temp(integer, 1), b.input(d, each));
        steps.push(b.constant(Scalar::i32((i * each) as i32), at));
        ins.push(Noise(i as u64).values(d, each));
        let out = if i + 1 == n { b.output(d, n * each) } else { b.temp(d, n * each) };
        let routine = Routine::DynamicUpdateSlice {
            operand: Dims::new(&[n * each]),
            update: Dims::new(&[each]),
            dtype: d,
            index_dtype: integer,
        };
        steps.push(Step::Routine { routine: Arc::new(routine), ins: vec![x, y, at], outs: vec![out] });
        x = out;
    }
    b.0.steps = steps;
    let before = gpu.counts().dispatches;
    assert_eq!(run(&gpu, b.0, &ins).unwrap(), [ins.concat()]);
    // the array, its copy, and two updates where thirty buffers may be bound
    assert_eq!(gpu.counts().dispatches - before, 4);
}
