//! Native code against the tile programs it replaces: bit for bit, in whatever tails.
//!
//! A sum or product of two nans is one of them; which one, the compiler has chosen loop by loop. So where nans may meet, all are the same.
use crate::fenced::{Fenced, Side};
use crate::generate::{self, Rng, elementwise, guarded_kernel, load, push_nodes, random_kernel, seeds};
use ferrax_cpu::kernels::Bases;
use ferrax_cpu::lowering::CompiledKernel;
use ferrax_cpu::{Tier, native};
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Scalar, Un, reference};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Any bits: nans with payloads, quiet and not, of either sign among them.
fn any_bytes(rng: &mut Rng, d: DType, n: usize) -> Vec<u8> {
    let mut bytes = generate::random_bytes(rng, d, n);
    if d.is_float() {
        for e in bytes.chunks_mut(d.size()) {
            // the exponent all ones, the rest as it comes
            let nan = Scalar::from_f64(d, f64::NAN).bits | rng.next() >> (64 - 8 * d.size());
            if rng.below(8) == 0 {
                e.copy_from_slice(&nan.to_le_bytes()[..d.size()]);
            }
        }
    }
    bytes
}
/// The outputs, in memory of their own or in that of the inputs of the same number.
fn run(k: &Kernel, ins: &[Vec<u8>], tier: Tier, shared: &[bool], is_native: bool) -> Vec<Vec<u8>> {
    let aliased = shared.iter().any(|s| *s);
    let c = CompiledKernel::new(k, aliased, tier).unwrap();
    if is_native {
        c.expect(1 << 40);
    }
    run_parts(&c, k, ins, shared, &[])
}
/// The same in these ranges of so many parts, or whole where there are none.
fn run_parts(
    c: &CompiledKernel,
    k: &Kernel,
    ins: &[Vec<u8>],
    shared: &[bool],
    parts: &[(Range<usize>, usize)],
) -> Vec<Vec<u8>> {
    // elements are touched up to the ends of buffers, and none beyond
    let ins: Vec<Fenced> = ins.iter().map(|b| Fenced::copy_of(b, Side::Last)).collect();
    let outs: Vec<Fenced> = k.output_dtypes().map(|d| Fenced::new(d.size() * k.grid.size(), Side::Last)).collect();
    let ptrs: Vec<*mut u8> = ins.iter().chain(&outs).map(|b| b.ptr()).collect();
    let at: Vec<u32> = (0..ins.len() as u32).collect();
    let is_shared = |j: usize| shared.get(j).copied().unwrap_or(false);
    let to: Vec<u32> = (0..outs.len()).map(|j| if is_shared(j) { j } else { ins.len() + j } as u32).collect();
    let bases = Bases { ptrs: &ptrs, ins: &at, outs: &to, cancel: &AtomicBool::new(false) };
    // SAFETY: blocks are as long as the kernel says, and shared ones are read only where they are written; the kernel splits into so many parts.
    unsafe {
        if parts.is_empty() {
            c.run(bases, true).unwrap();
        }
        parts.iter().for_each(|(range, of)| c.run_rows(bases, range.clone(), *of).unwrap());
    }
    (0..outs.len()).map(|j| if is_shared(j) { ins[j].bytes() } else { outs[j].bytes() }).collect()
}
fn tiers() -> impl Iterator<Item = Tier> {
    [Tier::Avx2, Tier::Avx512].into_iter().filter(|t| t.is_available())
}
/// That both ways give the same bits; of nans too where they do not meet.
fn same(k: &Kernel, ins: &[Vec<u8>], shared: &[bool], nans_meet: bool) {
    for tier in tiers() {
        let (want, got) = (run(k, ins, tier, shared, false), run(k, ins, tier, shared, true));
        for (j, (w, g)) in want.iter().zip(&got).enumerate() {
            let d = k.dtype(k.outputs[j]);
            for (i, (w, g)) in w.chunks(d.size()).zip(g.chunks(d.size())).enumerate() {
                let is_nan = |b: &[u8]| d.is_float() && Scalar::from_bytes(d, b).to_f64().is_nan();
                if nans_meet && is_nan(w) && is_nan(g) {
                    continue;
                }
                assert_eq!(g, w, "{} output {j} element {i} of {d}\n{k:?}", tier.name());
            }
        }
    }
}

#[test]
fn functions_in_chains_keep_their_bits() {
    let rng = &mut Rng(1);
    for d in [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64, DType::Bool] {
        for f in Un::ALL {
            if reference::un(*f, Scalar::one(d)).is_err() || d == DType::Bool && *f != Un::Not {
                continue;
            }
            let out = if *f == Un::IsFinite { DType::Bool } else { d };
            for n in [3, 300] {
                // twice, so that there is a run of calls
                let k = elementwise(&[d], n, |x| match *f {
                    Un::IsFinite => vec![(out, Node::Un(*f, x[0])), (out, Node::Un(Un::Not, 1))],
                    _ => vec![(d, Node::Un(*f, x[0])), (d, Node::Un(*f, 1))],
                });
                same(&k, &[any_bytes(rng, d, n)], &[], false);
            }
        }
        for f in Bin::ALL {
            let wild = matches!(f, Bin::Div | Bin::Rem | Bin::Sub | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic);
            if reference::bin(*f, Scalar::one(d), Scalar::one(d)).is_err() || d == DType::Bool && wild {
                continue;
            }
            let k = elementwise(&[d, d, d], 300, |x| {
                let chosen = (d, Node::Select { p: 4, t: x[0], f: x[2] });
                match f.is_comparison() {
                    true => vec![(DType::Bool, Node::Bin(*f, x[0], x[1])), (DType::Bool, Node::Un(Un::Not, 3)), chosen],
                    false => vec![(d, Node::Bin(*f, x[0], x[1])), (d, Node::Bin(*f, x[2], 3))],
                }
            });
            let ins: Vec<Vec<u8>> = (0..3).map(|_| any_bytes(rng, d, 300)).collect();
            same(&k, &ins, &[], true);
        }
        for to in [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64, DType::U64, DType::Bool] {
            let k = elementwise(&[d], 300, |x| {
                vec![
                    (to, Node::Convert(x[0])),
                    (DType::Bool, Node::Bin(Bin::Ne, 1, 1)),
                    (to, Node::Select { p: 2, t: 1, f: 1 }),
                ]
            });
            same(&k, &[any_bytes(rng, d, 300)], &[], false);
        }
    }
}

/// Quotients by constants are products, of every number against the reference.
#[test]
fn quotients_by_constants_are_the_references() {
    let rng = &mut Rng(7);
    for d in [DType::I32, DType::U32, DType::I64, DType::U64] {
        let edges = [0, 1, 2, 3, 5, 6, 7, 9, 10, 25, 125, 641, 1 << 16, (1 << 30) + 1];
        let [least, greatest] = if d.size() == 4 { [i32::MIN as i64, i32::MAX as i64] } else { [i64::MIN, i64::MAX] };
        let edges = edges.into_iter().chain([greatest, least, least + 1, 1 << 33, (1 << 41) + 3]).collect::<Vec<i64>>();
        let by: Vec<i64> = edges.iter().flat_map(|x| [*x, x.wrapping_neg()]).collect();
        let drawn = move |rng: &mut Rng| match d.size() {
            4 => rng.next() as i32 as i64 >> rng.below(31),
            _ => rng.next() as i64 >> rng.below(63),
        };
        let random: Vec<i64> = (0..40).map(|_| drawn(rng)).collect();
        for by in by.into_iter().chain(random).collect::<Vec<i64>>() {
            let by = Scalar::from_i64(d, by);
            let k = elementwise(&[d], 300, |x| {
                vec![
                    (d, Node::Const(by)),
                    (d, Node::Bin(Bin::Div, x[0], 1)),
                    (d, Node::Bin(Bin::Rem, x[0], 1)),
                    (d, Node::Bin(Bin::Xor, 2, 3)),
                ]
            });
            let near = |m: i64| (-2..=2).map(move |e| Scalar::from_i64(d, by.to_i64().wrapping_mul(m).wrapping_add(e)));
            let ends = edges.iter().map(|x| Scalar::from_i64(d, *x));
            let mut x: Vec<Scalar> = ends.chain([0, 1, -1, 2, 3, 1000].into_iter().flat_map(near)).collect();
            x.resize_with(300, || Scalar::from_i64(d, drawn(rng)));
            let ins = [reference::write(&x)];
            same(&k, &ins, &[], false);
            let (want, got) = (reference::kernel(&k, &[&ins[0]]).unwrap(), run(&k, &ins, Tier::current(), &[], true));
            assert_eq!(got, want, "by {by:?}");
        }
    }
}

/// Chains over a few dtypes, broadcast operands among them.
fn chain(rng: &mut Rng, n: usize) -> Kernel {
    let mut k = Kernel { grid: [n].into(), ..Kernel::default() };
    use DType::*;
    let dtypes = [F32, F32, F32, F64, I32, U32, Bool, I8, U8, I16, U16, BF16, F16];
    let d = rng.pick(&dtypes);
    for _ in 0..1 + rng.below(4) {
        let d = if rng.below(3) > 0 { d } else { rng.pick(&dtypes) };
        let stride = if rng.below(4) == 0 { 0 } else { 1 };
        k.nodes.push(load(k.inputs.len() as u32, d, Affine::new(0, [stride])));
        k.inputs.push((d, n.max(1)));
    }
    push_nodes(rng, &mut k, 0, 30);
    for _ in 0..rng.below(3) {
        let x = rng.below(k.nodes.len()) as u32;
        let d = k.dtype(x);
        if d == DType::F32 || d == DType::F64 {
            let f = rng.pick(&[Un::Exp, Un::Log, Un::Tanh, Un::Erf, Un::Sqrt, Un::Logistic, Un::Floor, Un::RoundAway]);
            k.nodes.push((d, Node::Un(f, x)));
        }
    }
    let late = k.nodes.len().saturating_sub(6);
    k.outputs = (0..1 + rng.below(3)).map(|_| (late + rng.below(k.nodes.len() - late)) as u32).collect();
    k
}
/// A quarter of the seeds, so that the quarters may run side by side.
fn chains(quarter: u64) {
    let all = seeds(500);
    let at = |k: u64| all.start + (all.end - all.start) * k / 4;
    for seed in at(quarter)..at(quarter + 1) {
        let rng = &mut Rng(seed);
        let n = match seed % 80 {
            n @ 0..66 => n as usize,
            66..78 => 66 + rng.below(900),
            _ => 5000 + rng.below(9000),
        };
        let k = chain(rng, n);
        k.verify().unwrap();
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
        let shared: Vec<bool> = (0..k.outputs.len())
            .map(|j| {
                let fits = k.inputs.get(j).is_some_and(|i| *i == (k.dtype(k.outputs[j]), n));
                fits && n > 0 && k.in_place(j, j) && rng.below(2) == 0
            })
            .collect();
        same(&k, &ins, &shared, true);
    }
}
#[test]
fn generated_chains_keep_their_bits_a() {
    chains(0);
}
#[test]
fn generated_chains_keep_their_bits_b() {
    chains(1);
}
#[test]
fn generated_chains_keep_their_bits_c() {
    chains(2);
}
#[test]
fn generated_chains_keep_their_bits_d() {
    chains(3);
}
#[test]
fn generated_kernels_of_any_form_keep_their_bits() {
    for seed in seeds(500) {
        let rng = &mut Rng(seed);
        let k = if seed % 2 == 0 { random_kernel(rng) } else { guarded_kernel(rng) };
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
        same(&k, &ins, &[], true);
    }
}

/// So many values at once that registers run out.
#[test]
fn values_that_fit_in_no_register_wait_in_the_frame() {
    let rng = &mut Rng(9);
    for (d, wide) in [(DType::F32, 30), (DType::F64, 60), (DType::I32, 90)] {
        let k = elementwise(&[d, d], 77, |x| {
            let mut nodes = vec![];
            for j in 0..wide {
                let c = Scalar::from_f64(d, j as f64 + 0.5);
                nodes.extend([(d, Node::Const(c)), (d, Node::Bin(Bin::Mul, x[j % 2], 2 + 2 * j as u32))]);
            }
            let mut sum = 3;
            for j in (1..wide).rev() {
                nodes.push((d, Node::Bin(Bin::Sub, sum, 3 + 2 * j as u32)));
                sum = 1 + nodes.len() as u32;
            }
            nodes
        });
        same(&k, &[any_bytes(rng, d, 77), any_bytes(rng, d, 77)], &[], true);
    }
}

/// Pages are never writable and executable at once.
#[cfg(target_os = "linux")]
#[test]
fn no_page_is_both_writable_and_executable() {
    let k = elementwise(&[DType::F32], 100, |x| {
        vec![
            (DType::F32, Node::Bin(Bin::Mul, x[0], x[0])),
            (DType::F32, Node::Bin(Bin::Add, 1, x[0])),
            (DType::F32, Node::Un(Un::Exp, 2)),
        ]
    });
    let kept: Vec<CompiledKernel> = tiers().map(|t| CompiledKernel::new(&k, false, t).unwrap()).collect();
    kept.iter().for_each(|c| c.expect(1 << 40));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let rights = |line: &str| line.split_whitespace().nth(1).unwrap_or("").to_string();
    assert!(!maps.lines().any(|l| rights(l).contains('w') && rights(l).contains('x')), "{maps}");
    let nameless = |l: &str| l.split_whitespace().count() == 5 && rights(l).starts_with("r-x");
    assert!(kept.is_empty() || !native::is_available() || maps.lines().any(nameless), "{maps}");
}

/// Rows cut out of longer ones, with an element of each row, one of each column, and others that are strided.
fn cut_rows(d: DType, rows: usize, n: usize) -> Kernel {
    let (wide, w) = (n + 3, n as i64 + 3);
    let x = |at: i64| load(0, d, Affine::new(at, [w, 1]));
    let nodes = vec![
        x(0),
        x(3),
        load(1, d, Affine::new(0, [1, 0])),
        load(2, d, Affine::new(0, [0, 1])),
        load(3, d, Affine::new(1, [0, 5])),
        (d, Node::Bin(Bin::Sub, 1, 0)),
        (d, Node::Bin(Bin::Mul, 5, 2)),
        (DType::Bool, Node::Bin(Bin::Gt, 6, 3)),
        (d, Node::Select { p: 7, t: 6, f: 4 }),
        (d, Node::Bin(Bin::Max, 8, 0)),
    ];
    let k = Kernel {
        grid: [rows, n].into(),
        inputs: vec![(d, rows * wide), (d, rows), (d, n), (d, 5 * n)],
        nodes,
        outputs: vec![9, 8, 7],
        ..Kernel::default()
    };
    k.verify().unwrap();
    k
}
/// By code that goes through the rows: of a few vectors each, or of a part of one.
#[test]
fn short_rows_keep_their_bits() {
    let rng = &mut Rng(23);
    for d in [DType::F32, DType::F64, DType::I32, DType::I64] {
        let of_parts = (3..8).map(|n| (37, n));
        let of_vectors = [(40, 8), (33, 9), (50, 15), (20, 16), (30, 17), (29, 25), (31, 31), (12, 33)];
        for (rows, n) in of_parts.chain(of_vectors) {
            let k = cut_rows(d, rows, n);
            let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
            same(&k, &ins, &[], true);
            for tier in tiers().filter(|t| n >= 8 || *t == Tier::Avx512) {
                let c = CompiledKernel::new(&k, false, tier).unwrap();
                c.expect(1 << 40);
                assert!(c.text().contains("by rows") && c.text().contains("code whole"), "{n} of {d}\n{}", c.text());
            }
        }
    }
}
/// Functions of generated kernels over such rows: in vectors of which a mask lets a part through.
#[test]
fn rows_that_are_parts_of_vectors_keep_their_bits() {
    for seed in seeds(500) {
        let rng = &mut Rng(seed);
        let d = rng.pick(&[DType::F32, DType::F64, DType::I32, DType::I64]);
        let (rows, n) = (2 + rng.below(30), 2 + rng.below(15));
        let w = n as i64 + 1 + rng.below(3) as i64;
        let mut k = Kernel {
            grid: [rows, n].into(),
            inputs: vec![(d, rows * w as usize), (d, rows), (d, n), (d, rows * n * 3)],
            nodes: vec![
                load(0, d, Affine::new(0, [w, 1])),
                load(0, d, Affine::new(w - n as i64, [w, 1])),
                load(1, d, Affine::new(0, [1, 0])),
                load(2, d, Affine::new(0, [0, 1])),
                load(3, d, Affine::new(2, [3 * n as i64, 3])),
                load(3, d, Affine::new(3 * n as i64 - 3, [3 * n as i64, -3])),
            ],
            ..Kernel::default()
        };
        push_nodes(rng, &mut k, 0, 12);
        k.outputs = (0..1 + rng.below(3)).map(|_| rng.below(k.nodes.len()) as u32).collect();
        if k.verify().is_err() {
            continue;
        }
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
        same(&k, &ins, &[], true);
    }
}

/// Reductions of rows of `x`, of what is left of them after an element of each row, and of that times another row: side by side.
fn reductions(d: DType, kind: ReduceKind, [outer, n]: [usize; 2]) -> Kernel {
    let (rows, whole) = (n as i64, n * outer);
    let nodes = vec![
        load(0, d, Affine::new(0, [rows, 1])),
        load(1, d, Affine::new(0, [1])),
        (d, Node::Bin(Bin::Sub, 0, 1)),
        load(2, d, Affine::new(3, [rows + 5, 1])),
        (d, Node::Bin(Bin::Mul, 2, 3)),
        (d, Node::Reduce { kind, of: 0 }),
        (d, Node::Reduce { kind, of: 2 }),
        (d, Node::Reduce { kind, of: 4 }),
    ];
    Kernel {
        grid: [outer].into(),
        rdims: [n].into(),
        inputs: vec![(d, whole), (d, outer), (d, (n + 5) * outer)],
        nodes,
        outputs: vec![5, 6, 7],
    }
}
#[test]
fn reductions_as_nests_keep_their_bits() {
    let rng = &mut Rng(11);
    for d in [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64] {
        for kind in [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min, ReduceKind::Xor] {
            if d.is_float() && kind == ReduceKind::Xor {
                continue;
            }
            for shape in [[1, 20], [40, 17], [3, 64], [5, 100], [9, 1024], [2, 1500], [1, 5000], [3, 4096], [1, 70_001]]
            {
                let k = reductions(d, kind, shape);
                k.verify().unwrap();
                let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
                same(&k, &ins, &[], true);
                let mut one = k.clone();
                one.outputs = vec![5];
                one.nodes.truncate(6);
                same(&one, &ins, &[], true);
                for tier in tiers() {
                    let c = CompiledKernel::new(&k, false, tier).unwrap();
                    c.expect(1 << 40);
                    let is_nest = c.text().contains("strategy=reduce nest of") || tier == Tier::Portable;
                    assert!(is_nest, "{kind:?} of {d}, {shape:?}\n{}", c.text());
                }
            }
        }
    }
}

/// Any ranges of parts, in any order, whether the nest was made for these parts or to run by itself.
#[test]
fn parts_of_reductions_keep_their_bits() {
    let rng = &mut Rng(23);
    for shape in [[12, 20], [40, 100], [96, 1500], [7, 5000], [24, 9000], [6, 20_011], [36, 8193]] {
        for (d, kind) in [(DType::F32, ReduceKind::Sum), (DType::F64, ReduceKind::Max), (DType::U32, ReduceKind::Sum)] {
            let k = reductions(d, kind, shape);
            k.verify().unwrap();
            let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| generate::random_bytes(rng, *d, *n)).collect();
            for tier in tiers() {
                let want = run(&k, &ins, tier, &[], false);
                for parts in [1, 2, 3, shape[0]].into_iter().filter(|p| shape[0].is_multiple_of(*p)) {
                    for alone in [false, true] {
                        let c = CompiledKernel::new(&k, false, tier).unwrap();
                        if !alone {
                            c.in_parts(parts);
                        }
                        c.expect(1 << 40);
                        let (mut ranges, mut first) = (vec![], 0);
                        while first < parts {
                            let end = first + 1 + rng.below(parts - first);
                            ranges.push((first..end, parts));
                            first = end;
                        }
                        ranges.reverse();
                        let got = run_parts(&c, &k, &ins, &[], &ranges);
                        assert_eq!(got, want, "{kind:?} of {d}, {shape:?} in {ranges:?}\n{}", c.text());
                    }
                }
            }
        }
    }
}

/// Reductions of `[outer, two of rows, columns]` over the rows, which lie `apart` elements further than they are long: of the elements, of what is
/// left of them after an element of each row, and of that times one of each column.
#[test]
fn reductions_of_columns_keep_their_bits() {
    let rng = &mut Rng(17);
    for (outer, [a, b], columns, apart) in [
        (1, [1, 20], 16, 0),
        (2, [3, 7], 33, 0),
        (1, [40, 1], 200, 3),
        (3, [4, 16], 64, 0),
        (2, [5, 9], 48, 16),
        (1, [1, 37], 257, 0),
        (2, [2, 8], 800, 0),
        (1, [1, 3], 4099, 1),
        (1, [1100, 1], 40, 0),
        (2, [1, 2500], 24, 8),
        (1, [1, 25], 17, 0),
        (1, [130, 130], 19, 0),
    ] {
        for d in [DType::F32, DType::F64, DType::I32] {
            for kind in [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod] {
                let row = (columns + apart) as i64;
                let [of_a, of_outer] = [b as i64 * row, (a * b) as i64 * row];
                let nodes = vec![
                    load(0, d, Affine::new(0, [of_outer, 1, of_a, row])),
                    load(1, d, Affine::new(0, [0, 0, b as i64, 1])),
                    (d, Node::Bin(Bin::Sub, 0, 1)),
                    load(2, d, Affine::new(0, [0, 1, 0, 0])),
                    (d, Node::Bin(Bin::Mul, 2, 3)),
                    (d, Node::Reduce { kind, of: 0 }),
                    (d, Node::Reduce { kind, of: 4 }),
                ];
                let k = Kernel {
                    grid: [outer, columns].into(),
                    rdims: [a, b].into(),
                    inputs: vec![(d, outer * a * b * (columns + apart)), (d, a * b), (d, columns)],
                    nodes,
                    outputs: vec![5, 6],
                };
                k.verify().unwrap();
                let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
                same(&k, &ins, &[], true);
                let one = Kernel { outputs: vec![5], nodes: k.nodes[..6].to_vec(), ..k.clone() };
                same(&one, &ins, &[], true);
                for tier in tiers() {
                    let c = CompiledKernel::new(&k, false, tier).unwrap();
                    c.expect(1 << 40);
                    // few rows are unrolled; others are a nest if they lie as one axis
                    let is_nest = c.text().contains("strategy=reduce nest of") || tier == Tier::Portable;
                    let is_one = a == 1 || b == 1 || apart == 0;
                    assert!(is_nest || a * b < 17 || !is_one, "{kind:?} of {d}\n{}", c.text());
                }
            }
        }
    }
}

/// Bools are bytes of 0 and 1, whatever they are in registers.
#[test]
fn reductions_of_comparisons_are_bools() {
    let rng = &mut Rng(13);
    for d in [DType::F32, DType::F64, DType::I32] {
        for kind in
            [ReduceKind::Max, ReduceKind::Min, ReduceKind::Or, ReduceKind::And, ReduceKind::Xor, ReduceKind::Sum]
        {
            for [outer, n] in [[3, 64], [7, 1023], [70, 48], [2, 5000]] {
                let nodes = vec![
                    load(0, d, Affine::new(0, [n as i64, 1])),
                    load(1, d, Affine::new(0, [1])),
                    (DType::Bool, Node::Bin(Bin::Lt, 0, 1)),
                    (DType::Bool, Node::Reduce { kind, of: 2 }),
                ];
                let inputs = vec![(d, n * outer), (d, outer)];
                let k = Kernel { grid: [outer].into(), rdims: [n].into(), inputs, nodes, outputs: vec![3] };
                if k.verify().is_ok() {
                    let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
                    same(&k, &ins, &[], false);
                }
            }
        }
    }
}
/// Rows one after the other, whole vectors long or not, with an element of each row and rows that are not contiguous.
#[test]
fn rows_in_code_keep_their_bits() {
    let rng = &mut Rng(12);
    for d in [DType::F32, DType::F64, DType::I32] {
        for (a, b, n) in [(1, 7, 64), (1, 50, 48), (3, 5, 100), (4, 2, 65), (2, 3, 1000)] {
            let (rows, w) = (a * b, n as i64);
            let nodes = vec![
                load(0, d, Affine::new(0, [b as i64 * w, w, 1])),
                load(1, d, Affine::new(0, [b as i64, 1])),
                (d, Node::Bin(Bin::Sub, 0, 1)),
                load(2, d, Affine::new(3, [0, w + 5, 1])),
                (d, Node::Bin(Bin::Mul, 2, 3)),
                (DType::Bool, Node::Bin(Bin::Lt, 4, 1)),
                (d, Node::Select { p: 5, t: 4, f: 0 }),
            ];
            let k = Kernel {
                grid: [a, b, n].into(),
                inputs: vec![(d, rows * n), (d, rows), (d, (n + 5) * b)],
                nodes,
                outputs: vec![6, 5, 2],
                ..Kernel::default()
            };
            k.verify().unwrap();
            let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| any_bytes(rng, *d, *n)).collect();
            same(&k, &ins, &[], true);
            // one call alone, where it has an element of each row
            let one = Kernel { nodes: k.nodes[..3].to_vec(), outputs: vec![2], ..k };
            same(&one, &ins, &[], true);
            same(&one, &ins, &[true], true);
        }
    }
}
