//! Routines, over every dtype and odd shapes.
use crate::run::{DTYPES, Noise, compare, gpu, routine_plan};
use ferrax_kernel::kernel::{Affine, Guard};
use ferrax_kernel::routine::{Combine, Conv, CumulativeKind, Dot, Gather, OutOfBounds, Scatter};
use ferrax_kernel::{Backend, DType, Dims, ReduceKind, Routine, Scalar, reference};

fn check(device: &dyn Backend, r: &Routine, ins: &[Vec<u8>], ulp: f64, scale: f64) {
    compare(device, &format!("{r:?}"), routine_plan(r), ins, ulp, scale);
}
/// Integers of an index dtype, some of them outside of `0..n`.
fn indices(noise: &mut Noise, d: DType, len: usize, n: usize) -> Vec<u8> {
    let below = if d.is_signed() { 3 } else { 0 };
    let one = |_| Scalar::from_i64(d, noise.below(n + 2 * below + 2) as i64 - below as i64);
    reference::write(&(0..len).map(one).collect::<Vec<_>>())
}

#[test]
fn products_of_every_stride_and_size() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(11);
    for (b, m, n, k) in [
        (1, 1, 1, 1),
        (2, 3, 5, 7),
        (1, 64, 64, 64),
        (2, 65, 33, 17),
        (1, 16, 130, 70),
        (3, 100, 16, 8),
        (64, 65, 130, 9), // large tiles
        (1, 20, 20, 0),
        (1, 1, 300, 2000),
        (0, 3, 3, 3),
    ] {
        for transposed in 0..4 {
            let (mi, ni, ki) = (m as i64, n as i64, k as i64);
            let lhs = if transposed % 2 == 0 { [mi * ki, ki, 1] } else { [mi * ki, 1, mi] };
            let rhs = if transposed / 2 == 0 { [ni * ki, ni, 1] } else { [ni * ki, 1, ki] };
            let dot = |dtype, out| Routine::Dot(Dot { b, m, n, k, lhs, rhs, dtype, out });
            for (dtype, out) in [
                (DType::F32, DType::F32),
                (DType::BF16, DType::F32),
                (DType::F16, DType::F16),
                (DType::I32, DType::I32),
                (DType::I8, DType::I32),
                (DType::U8, DType::U8),
                (DType::Bool, DType::Bool),
            ] {
                // Quarters up to 8: products and their sums are exact.
                let ins = [noise.values(dtype, b * m * k), noise.values(dtype, b * k * n)];
                check(&*gpu, &dot(dtype, out), &ins, 0.0, 0.0);
            }
        }
    }
}

#[test]
fn strided_and_broadcast_operands_of_products() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(12);
    // One matrix for all of the batch; every second column of a wider one.
    let (b, m, n, k) = (3, 33, 40, 21);
    let r = Routine::Dot(Dot { b, m, n, k, lhs: [0, 21, 1], rhs: [1680, 80, 2], dtype: DType::F32, out: DType::F32 });
    let ins: Vec<_> = r.operands().iter().map(|(d, len)| noise.values(*d, *len)).collect();
    check(&*gpu, &r, &ins, 0.0, 0.0);
}

fn dims(x: &[usize]) -> Dims {
    Dims::new(x)
}

#[test]
fn gathers_in_every_mode() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(13);
    type Shape<'a> = (
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
        &'a [usize],
    );
    // operand, indices, sizes, offset, collapsed, map, batch, index batch, out
    let shapes: [Shape; 6] = [
        (&[5, 4], &[7, 1], &[1, 4], &[1], &[0], &[0], &[], &[], &[7, 4]),
        (&[5, 4], &[5, 1], &[2, 3], &[0, 2], &[], &[0], &[], &[], &[2, 5, 3]),
        (&[5, 4], &[5, 2], &[2, 3], &[1, 2], &[], &[0, 1], &[], &[], &[5, 2, 3]),
        (&[5, 4], &[2, 2, 2], &[1, 1], &[], &[0, 1], &[1, 0], &[], &[], &[2, 2]),
        (&[3, 4, 2], &[3, 5, 1], &[1, 1, 2], &[2], &[1], &[1], &[0], &[0], &[3, 5, 2]),
        (&[9], &[0, 1], &[2], &[1], &[], &[0], &[], &[], &[0, 2]),
    ];
    // Every dtype in every mode and shape; the index dtypes take turns.
    let mut index_dtypes = [DType::I32, DType::U32, DType::I8, DType::U8, DType::U16].into_iter().cycle();
    for dtype in DTYPES {
        for mode in [OutOfBounds::Clip, OutOfBounds::FillOrDrop, OutOfBounds::Promise] {
            for (operand, index, sizes, offset, collapsed, map, batch, index_batch, out) in shapes {
                let index_dtype = index_dtypes.next().expect("it never ends");
                let g = Gather {
                    operand: dims(operand),
                    indices: dims(index),
                    slice_sizes: dims(sizes),
                    offset_dims: dims(offset),
                    collapsed_slice_dims: dims(collapsed),
                    start_index_map: dims(map),
                    operand_batching_dims: dims(batch),
                    start_indices_batching_dims: dims(index_batch),
                    mode,
                    fill: Scalar::one(dtype),
                    dtype,
                    index_dtype,
                    out: dims(out),
                    apart: false,
                };
                let ins = [noise.bits(dtype, g.operand.size()), indices(&mut noise, index_dtype, g.indices.size(), 5)];
                check(&*gpu, &Routine::Gather(g.clone()), &ins, 0.0, 0.0);
                let [from, ix] = ins;
                let vector = map.len();
                let component =
                    |j: usize| ix.chunks(index_dtype.size()).skip(j).step_by(vector).flatten().copied().collect();
                let apart: Vec<Vec<u8>> = std::iter::once(from).chain((0..vector).map(component)).collect();
                check(&*gpu, &Routine::Gather(Gather { apart: true, ..g }), &apart, 0.0, 0.0);
            }
        }
    }
}

fn scatter(kind: usize, dtype: DType, combine: Combine, mode: OutOfBounds) -> Scatter {
    type Shape<'a> =
        (&'a [usize], &'a [usize], &'a [usize], &'a [usize], &'a [usize], &'a [usize], &'a [usize], &'a [usize]);
    // operand, indices, updates, window, inserted, map, batch, index batch
    let shapes: [Shape; 4] = [
        (&[5], &[40, 1], &[40], &[], &[0], &[0], &[], &[]),
        (&[5, 4], &[5, 1], &[5, 2, 3], &[1, 2], &[], &[0], &[], &[]),
        (&[5, 4], &[5, 2], &[2, 5], &[0], &[1], &[1, 0], &[], &[]),
        (&[3, 4, 2], &[3, 2, 1], &[3, 2, 2], &[2], &[1], &[1], &[0], &[0]),
    ];
    let (operand, indices, updates, window, inserted, map, batch, index_batch) = shapes[kind];
    Scatter {
        operand: dims(operand),
        indices: dims(indices),
        updates: dims(updates),
        update_window_dims: dims(window),
        inserted_window_dims: dims(inserted),
        scatter_dims_to_operand_dims: dims(map),
        operand_batching_dims: dims(batch),
        scatter_indices_batching_dims: dims(index_batch),
        combine,
        mode,
        unique: false,
        dtype,
        index_dtype: DType::I32,
    }
}

#[test]
fn scatters_of_every_kind() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(14);
    let mut turn = 0;
    for dtype in DTYPES {
        let mut hows = vec![Combine::Set];
        if dtype != DType::Bool {
            hows.extend([
                Combine::Sub,
                Combine::Reduce(ReduceKind::Sum),
                Combine::Reduce(ReduceKind::Min),
                Combine::Reduce(ReduceKind::Max),
            ]);
        }
        if !dtype.is_float() {
            hows.extend([Combine::Reduce(ReduceKind::Or), Combine::Reduce(ReduceKind::Xor)]);
        }
        for how in hows {
            for kind in 0..4 {
                // The modes take turns.
                turn += 1;
                let mode = if turn % 2 == 0 { OutOfBounds::Clip } else { OutOfBounds::FillOrDrop };
                let s = scatter(kind, dtype, how, mode);
                let i = indices(&mut noise, DType::I32, s.indices.size(), 5);
                let ins = [noise.values(dtype, s.operand.size()), i, noise.values(dtype, s.updates.size())];
                // Sums of quarters are exact, also in 16 bits: their order does not show.
                check(&*gpu, &Routine::Scatter(s), &ins, 0.0, 0.0);
            }
        }
    }
}

#[test]
fn dynamic_slices_are_clamped() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(15);
    for dtype in DTYPES {
        for index_dtype in [DType::I32, DType::U8, DType::I16] {
            for _ in 0..4 {
                let starts: Vec<Vec<u8>> = (0..3).map(|_| indices(&mut noise, index_dtype, 1, 6)).collect();
                let (operand, window) = (dims(&[4, 5, 3]), dims(&[2, 3, 3]));
                let x = noise.bits(dtype, 60);
                let ins: Vec<Vec<u8>> = [x.clone()].into_iter().chain(starts.clone()).collect();
                check(
                    &*gpu,
                    &Routine::DynamicSlice { operand: operand.clone(), sizes: window.clone(), dtype, index_dtype },
                    &ins,
                    0.0,
                    0.0,
                );
                let ins: Vec<Vec<u8>> = [x, noise.bits(dtype, 18)].into_iter().chain(starts).collect();
                check(
                    &*gpu,
                    &Routine::DynamicUpdateSlice { operand, update: window, dtype, index_dtype },
                    &ins,
                    0.0,
                    0.0,
                );
            }
        }
    }
}

#[test]
fn sorts_are_stable_and_put_nans_last() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(16);
    for key in DTYPES {
        for (outer, n, inner) in [
            (3, 7, 2),
            (2, 513, 1),
            if key == DType::F32 { (1, 3000, 1) } else { (40, 30, 1) },
            if key == DType::I32 { (1, 512, 1) } else { (1, 1, 1) },
            // as many elements as one of a workgroup's invocations takes, and more
            [(2, 1023, 1), (1, 1024, 2), (3, 1025, 1), (2, 2048, 3)][noise.below(4)],
            [(2, 4095, 1), (1, 4096, 2), (2, 4097, 1)][noise.below(3)],
            // tiles of 1024, and more of them than a workgroup adds
            if key.size() == 1 || key == DType::F32 { (2, 65_537, 1) } else { (1, 5000, 3) },
        ] {
            let dtypes = vec![key, DType::I32, DType::U8];
            let r = Routine::Sort { outer, n, inner, dtypes: dtypes.clone(), num_keys: 1 };
            let len = outer * n * inner;
            let counter: Vec<u8> = (0..len as i32).flat_map(|i| i.to_le_bytes()).collect();
            check(&*gpu, &r, &[noise.values(key, len), counter.clone(), noise.bits(DType::U8, len)], 0.0, 0.0);
            check(&*gpu, &r, &[noise.bits(key, len), counter, noise.bits(DType::U8, len)], 0.0, 0.0);
        }
    }
    for (n, num_keys) in [(60, 2), (1500, 1), (1500, 2), (1500, 3), (4500, 2)] {
        let dtypes = vec![DType::Bool, DType::F32, DType::BF16];
        let ins: Vec<_> = dtypes.iter().map(|d| noise.values(*d, 6 * n)).collect();
        check(&*gpu, &Routine::Sort { outer: 2, n, inner: 3, dtypes, num_keys }, &ins, 0.0, 0.0);
    }
}

#[test]
fn the_greatest_come_first() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(17);
    for dtype in DTYPES {
        let long = if dtype == DType::I32 { 300_000 } else { 16_384 };
        for (outer, n, inner, k) in [
            (3, 7, 2, 3),
            (2, 513, 1, 513),
            (1, 1, 1, 1),
            (40, 8, 1, 2),
            (2, 512, 1, 512),
            (3, 1025, 2, 128),
            (2, 1300, 1, 129),
            (1, long, 1, 10),
        ] {
            let r = Routine::TopK { outer, n, inner, k, dtype };
            check(&*gpu, &r, &[noise.bits(dtype, outer * n * inner)], 0.0, 0.0);
            check(&*gpu, &r, &[noise.values(dtype, outer * n * inner)], 0.0, 0.0);
        }
    }
}

#[test]
fn cumulative_combinations() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(17);
    for dtype in DTYPES.into_iter().filter(|d| *d != DType::Bool) {
        for (outer, n, inner) in [(1, 1, 1), (2, 9, 3), (1, 1000, 1), (5, 0, 2)] {
            for reverse in [false, true] {
                for kind in [CumulativeKind::Sum, CumulativeKind::Max, CumulativeKind::Min] {
                    let r = Routine::Cumulative { kind, outer, n, inner, reverse, dtype };
                    check(&*gpu, &r, &[noise.values(dtype, outer * n * inner)], 0.0, 0.0);
                }
            }
        }
    }
    // rows of one workgroup, of several, and of so many that totals are rows of their own
    for (outer, n, inner, reverse) in [
        (2, 1025, 3, false),
        (1, 2048, 1, true),
        (2, 2049, 1, false),
        (1, 3000, 2, true),
        (3, 20_000, 1, true),
        (1, 131_073, 1, false),
        (1, 300_000, 1, false),
    ] {
        let r = Routine::Cumulative { kind: CumulativeKind::Sum, outer, n, inner, reverse, dtype: DType::F32 };
        check(&*gpu, &r, &[noise.values(DType::F32, outer * n * inner)], 0.0, 0.0);
    }
    // in the order of the waist: sums of sevenths depend on it
    for (outer, n) in [(3, 300), (1, 2048), (2, 5000), (1, 140_000)] {
        let x: Vec<f32> = (0..outer * n).map(|_| noise.below(1000) as f32 / 7.0).collect();
        let (kind, dtype) = (CumulativeKind::Sum, DType::F32);
        let r = Routine::Cumulative { kind, outer, n, inner: 1, reverse: false, dtype };
        check(&*gpu, &r, &[crate::examples::f32s(&x)], 0.0, 0.0);
    }
    for kind in [CumulativeKind::LogSumExp, CumulativeKind::Max] {
        let r = Routine::Cumulative { kind, outer: 1, n: 2500, inner: 1, reverse: false, dtype: DType::F32 };
        check(&*gpu, &r, &[noise.values(DType::F32, 2500)], 64.0, 1.0);
    }
    for kind in [CumulativeKind::LogSumExp, CumulativeKind::Prod] {
        let r = Routine::Cumulative { kind, outer: 2, n: 12, inner: 2, reverse: false, dtype: DType::F32 };
        check(&*gpu, &r, &[noise.values(DType::F32, 48)], 16.0, 1.0);
    }
    let x = [f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, f32::INFINITY, 2.0, f32::NAN, 1.0];
    let r = Routine::Cumulative {
        kind: CumulativeKind::LogSumExp,
        outer: 1,
        n: 7,
        inner: 1,
        reverse: false,
        dtype: DType::F32,
    };
    check(&*gpu, &r, &[crate::examples::f32s(&x)], 8.0, 0.0);
}

/// Images of two channels, with places as rows or as columns of the result.
#[test]
fn convolutions() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(19);
    for dtype in [DType::F32, DType::I32, DType::U32] {
        for (last, low, step) in [(true, 0, 1), (true, 2, 1), (false, 1, 2), (false, -1, 1)] {
            // x[n, h, c] or x[n, c, h], y[w, c, o], h = p step + w - low
            let (images, space, channels, window, columns, places) = (2, 7, 2, 3, 3, 3);
            let (h, c) = if last { (channels, 1) } else { (1, space) };
            let image = space * channels;
            let guard = Affine::new(-low, [0, step, 1, 0]);
            let conv = Conv {
                batch: if last { dims(&[]) } else { dims(&[images]) },
                rows: if last { dims(&[images, places]) } else { dims(&[places]) },
                terms: dims(&[window, channels]),
                columns,
                x: images * image,
                at: Affine::new(-low * h as i64, [image as i64, step * h as i64, h as i64, c as i64]),
                guards: vec![Guard { at: guard, lo: 0, hi: space as i64 }],
                y: if last { dims(&[columns, 1]) } else { dims(&[0, columns, 1]) },
                out: if last { dims(&[columns, 1]) } else { dims(&[columns * places, 1, places]) },
                dtype,
            };
            let ins = [noise.values(dtype, conv.x), noise.values(dtype, window * channels * columns)];
            check(&*gpu, &Routine::Conv(Box::new(conv)), &ins, 0.0, 0.0);
        }
    }
}
