//! The tile programs against the reference evaluator: every function at every dtype, and generated kernels.
use crate::generate::{self, Rng, elementwise, guarded_kernel, load, random_bytes, random_kernel};
use ferrax_cpu::kernels::Bases;
use ferrax_cpu::lowering::CompiledKernel;
use ferrax_cpu::memory::Block;
use ferrax_cpu::{Tier, set_num_threads};
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Scalar, Un, reference};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

fn run(k: &Kernel, ins: &[Vec<u8>], tier: Tier) -> Option<Vec<Vec<u8>>> {
    let c = CompiledKernel::new(k, false, tier).ok()?;
    let ins: Vec<Block> = ins.iter().map(|b| Block::copy_of(b).unwrap()).collect();
    let outs: Vec<Block> = k.output_dtypes().map(|d| Block::new(d.size() * k.grid.size()).unwrap()).collect();
    let ptrs: Vec<*mut u8> = ins.iter().chain(&outs).map(|b| b.ptr()).collect();
    let at: Vec<u32> = (0..ptrs.len() as u32).collect();
    let (i, o) = at.split_at(ins.len());
    // SAFETY: blocks are as long as the kernel says.
    unsafe { c.run(Bases { ptrs: &ptrs, ins: i, outs: o, cancel: &AtomicBool::new(false) }, true) }.unwrap();
    Some(outs.iter().map(|b| unsafe { std::slice::from_raw_parts(b.ptr(), b.size()) }.to_vec()).collect())
}
/// Scalars, with every nan the same.
fn scalars(d: DType, b: &[u8]) -> Vec<Scalar> {
    let nan = Scalar::from_f64(d, f64::NAN);
    reference::read(d, b).into_iter().map(|s| if d.is_float() && s.to_f64().is_nan() { nan } else { s }).collect()
}
/// How far apart two floats may be: the steps between them.
fn steps_apart(a: Scalar, b: Scalar) -> u64 {
    let ordered = |s: Scalar| {
        let sign = 1u64 << (8 * s.dtype.size() - 1);
        if s.bits & sign != 0 { -((s.bits & !sign) as i64) } else { s.bits as i64 }
    };
    ordered(a).abs_diff(ordered(b))
}
fn compare(k: &Kernel, ins: &[Vec<u8>], tolerance: u64) {
    let views: Vec<&[u8]> = ins.iter().map(|b| &b[..]).collect();
    let want = reference::kernel(k, &views).unwrap();
    for tier in Tier::ALL.into_iter().filter(|t| t.is_available()) {
        let got = run(k, ins, tier).unwrap_or_else(|| panic!("does not compile: {k:?}"));
        for ((g, w), d) in got.iter().zip(&want).zip(k.output_dtypes()) {
            let (g, w) = (scalars(d, g), scalars(d, w));
            for (i, (x, y)) in g.iter().zip(&w).enumerate() {
                let close = x == y
                    || tolerance > 0 && x.to_f64().is_nan() == y.to_f64().is_nan() && steps_apart(*x, *y) <= tolerance;
                assert!(close, "{} element {i}: {x:?} is not {y:?}\n{k:?}", tier.name());
            }
        }
    }
}

/// What a function may differ by from the (exact, then rounded) reference, in steps of f32 or f64.
fn tolerance(f: Un, d: DType) -> u64 {
    use Un::*;
    match f {
        Neg | Abs | Sign | Not | Popcnt | Clz | Floor | Ceil | RoundEven | RoundAway | Trunc | IsFinite | Sqrt => 0,
        Erf | Erfc | ErfInv | Lgamma | Digamma => 1 << if d == DType::F64 { 20 } else { 8 },
        _ if d == DType::F64 => 8,
        _ => 4,
    }
}

#[test]
fn every_unary_function_is_the_reference() {
    let mut rng = Rng(1);
    for d in DType::ALL {
        for f in Un::ALL {
            if reference::un(*f, Scalar::one(*d)).is_err() || *d == DType::Bool && *f != Un::Not {
                continue;
            }
            let out = if *f == Un::IsFinite { DType::Bool } else { *d };
            let k = elementwise(&[*d], 300, |x| vec![(out, Node::Un(*f, x[0]))]);
            assert!(run(&k, &[random_bytes(&mut rng, *d, 300)], Tier::Portable).is_some(), "{f:?} {d}");
            compare(&k, &[random_bytes(&mut rng, *d, 300)], tolerance(*f, *d));
        }
    }
}
#[test]
fn every_binary_function_is_the_reference() {
    let mut rng = Rng(2);
    for d in DType::ALL {
        for f in Bin::ALL {
            if reference::bin(*f, Scalar::one(*d), Scalar::one(*d)).is_err()
                || (*d == DType::Bool
                    && matches!(f, Bin::Div | Bin::Rem | Bin::Sub | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic))
            {
                continue;
            }
            let out = if f.is_comparison() { DType::Bool } else { *d };
            let k = elementwise(&[*d, *d], 300, |x| vec![(out, Node::Bin(*f, x[0], x[1]))]);
            let t = if matches!(f, Bin::Pow | Bin::Atan2) { 8 } else { 0 };
            compare(&k, &[random_bytes(&mut rng, *d, 300), random_bytes(&mut rng, *d, 300)], t);
        }
    }
}
#[test]
fn every_conversion_is_the_reference() {
    let mut rng = Rng(3);
    for d in DType::ALL {
        for e in DType::ALL {
            let k = elementwise(&[*d], 300, |x| vec![(*e, Node::Convert(x[0]))]);
            compare(&k, &[random_bytes(&mut rng, *d, 300)], 0);
            if d.size() == e.size() && *e != DType::Bool {
                let k = elementwise(&[*d], 300, |x| vec![(*e, Node::Bitcast(x[0]))]);
                compare(&k, &[random_bytes(&mut rng, *d, 300)], 0);
            }
        }
        if d.is_float() {
            for (exponent, mantissa) in [(5, 10), (8, 7), (4, 3), (8, 23), (2, 1)] {
                let k = elementwise(&[*d], 300, |x| vec![(*d, Node::Round { of: x[0], exponent, mantissa })]);
                compare(&k, &[random_bytes(&mut rng, *d, 300)], 0);
            }
        }
    }
}
#[test]
fn floats_at_the_ends_of_integers_are_converted_as_the_reference_does() {
    let powers = (0..70).map(|k| (k as f64).exp2());
    let near = powers.flat_map(|p| {
        let [lower, upper] = [(p as f32).next_down(), (p as f32).next_up()].map(f64::from);
        [p, p.next_down(), p.next_up(), lower, upper, p - 1.0, p + 0.5]
    });
    let ends = [0.0, 0.5, 1e30, f64::MAX, f64::INFINITY, f64::NAN];
    let x: Vec<f64> = near.chain(ends).flat_map(|x| [x, -x]).collect();
    for d in DType::ALL.iter().filter(|d| d.is_float()) {
        let bytes: Vec<u8> =
            x.iter().flat_map(|x| Scalar::from_f64(*d, *x).bits.to_le_bytes()[..d.size()].to_vec()).collect();
        for e in DType::ALL.iter().filter(|e| !e.is_float()) {
            let k = elementwise(&[*d], x.len(), |x| vec![(*e, Node::Convert(x[0]))]);
            compare(&k, std::slice::from_ref(&bytes), 0);
        }
    }
}
#[test]
fn every_reduction_is_the_reference() {
    let mut rng = Rng(4);
    for d in DType::ALL {
        for kind in ReduceKind::ALL {
            let to = if kind.bin().is_none() { DType::I32 } else { *d };
            for (outer, n, inner) in [
                (1, 0, 1),
                (3, 1, 1),
                (2, 5, 1),
                (40, 17, 1),
                (3, 1024, 1),
                (2, 1500, 1),
                (1, 5000, 1),
                (2, 3, 40),
                (1, 100, 300),
                (2, 2100, 3),
                (1, 40, 1000),
            ] {
                let k = generate::reduction(*kind, *d, to, [outer, n, inner]);
                if d.is_float() && matches!(kind, ReduceKind::And | ReduceKind::Or | ReduceKind::Xor) {
                    continue;
                }
                let views = [random_bytes(&mut rng, *d, outer * n * inner)];
                if reference::kernel(&k, &[&views[0]]).is_err() {
                    continue;
                }
                compare(&k, &views, 0);
            }
        }
    }
}
#[test]
fn a_reduction_of_many_blocks_has_the_same_bits_on_any_number_of_threads() {
    let mut rng = Rng(5);
    for (d, shape) in [
        (DType::F32, [1, 1_100_000, 1]),
        (DType::F32, [2, 70_000, 5]),
        (DType::F64, [1, 30_000, 20]),
        (DType::F32, [300, 1000, 1]),
        (DType::F32, [1, 1000, 300]),
    ] {
        for kind in [ReduceKind::Sum, ReduceKind::Max, ReduceKind::ArgMin] {
            let to = if kind.bin().is_none() { DType::I64 } else { d };
            let k = generate::reduction(kind, d, to, shape);
            let x = [random_bytes(&mut rng, d, shape.iter().product())];
            set_num_threads(1);
            let one = run(&k, &x, Tier::current()).unwrap();
            set_num_threads(4);
            assert_eq!(one, run(&k, &x, Tier::current()).unwrap());
            assert_eq!(scalars(to, &one[0]), scalars(to, &reference::kernel(&k, &[&x[0]]).unwrap()[0]));
        }
    }
}

/// Runs a kernel whose output k shares the memory of input k, where `shared[k]`.
fn run_in_place(k: &Kernel, ins: &[Vec<u8>], shared: &[bool]) -> Vec<Vec<u8>> {
    let c = CompiledKernel::new(k, true, Tier::current()).unwrap();
    let ins: Vec<Block> = ins.iter().map(|b| Block::copy_of(b).unwrap()).collect();
    let outs: Vec<Block> = k.output_dtypes().map(|d| Block::new(d.size() * k.grid.size()).unwrap()).collect();
    let ptrs: Vec<*mut u8> = ins.iter().chain(&outs).map(|b| b.ptr()).collect();
    let at: Vec<u32> = (0..ins.len() as u32).collect();
    let to: Vec<u32> = (0..outs.len()).map(|j| if shared[j] { j } else { ins.len() + j } as u32).collect();
    // SAFETY: blocks are as long as the kernel says, and shared ones are read only where they are written.
    unsafe { c.run(Bases { ptrs: &ptrs, ins: &at, outs: &to, cancel: &AtomicBool::new(false) }, true) }.unwrap();
    let bytes = |j: usize| {
        let (d, p) = (k.dtype(k.outputs[j]), ptrs[to[j] as usize]);
        // SAFETY: each output has this many bytes.
        unsafe { std::slice::from_raw_parts(p, d.size() * k.grid.size()) }.to_vec()
    };
    (0..outs.len()).map(bytes).collect()
}

#[test]
fn an_input_that_is_an_output_is_read_before_its_place_is_written() {
    let d = [DType::I32, DType::I32];
    let sum = (DType::I32, Node::Bin(Bin::Add, 0, 1));
    let converted = |x| (DType::I32, Node::Convert(x));
    for moved in [vec![], vec![converted(0)], vec![converted(0), converted(3)]] {
        let mut k = elementwise(&d, 100, |_| vec![]);
        k.nodes.push(sum.clone());
        k.nodes.extend(moved.iter().cloned());
        k.outputs = vec![2, if moved.is_empty() { 0 } else { 2 + moved.len() as u32 }];
        let mut rng = Rng(7);
        let ins: Vec<Vec<u8>> = d.iter().map(|d| random_bytes(&mut rng, *d, 100)).collect();
        assert_eq!(run_in_place(&k, &ins, &[true, true]), run(&k, &ins, Tier::current()).unwrap());
    }
}

/// A comparison of an index changes at one place, and an equation at two: no box is thinner than that.
#[test]
fn boxes_end_where_comparisons_change() {
    for f in [Bin::Lt, Bin::Le, Bin::Gt, Bin::Ge, Bin::Eq, Bin::Ne] {
        for (x, y) in [(0, 1), (1, 0)] {
            let node = |n: Node| (DType::I32, n);
            let mut k = Kernel { grid: [8, 512].into(), ..Kernel::default() };
            k.nodes.push(node(Node::Index(Affine::new(0, [0, 1]))));
            k.nodes.push(node(Node::Const(Scalar::from_f64(DType::I32, 256.0))));
            k.nodes.push((DType::Bool, Node::Bin(f, x, y)));
            k.nodes.push(node(Node::Select { p: 2, t: 0, f: 1 }));
            k.outputs = vec![3];
            k.verify().unwrap();
            compare(&k, &[], 0);
            let boxes = CompiledKernel::new(&k, false, Tier::current()).unwrap().text().matches("loops").count();
            assert_eq!(boxes, if matches!(f, Bin::Eq | Bin::Ne) { 3 } else { 2 }, "{f:?} {x} {y}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn generated_kernels_are_the_reference(seed: u64) {
        let mut rng = Rng(seed | 1);
        let k = random_kernel(&mut rng);
        k.verify().unwrap();
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| random_bytes(&mut rng, *d, *n)).collect();
        compare(&k, &ins, 0);
    }
    #[test]
    fn kernels_that_are_cut_into_boxes_are_the_reference(seed: u64) {
        let mut rng = Rng(seed);
        let k = guarded_kernel(&mut rng);
        k.verify().unwrap();
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| random_bytes(&mut rng, *d, *n)).collect();
        compare(&k, &ins, 0);
    }
    #[test]
    fn outputs_may_stand_in_their_operands_places(seed: u64) {
        let mut rng = Rng(seed);
        let n = rng.pick(&[1, 7, 100, 3000]);
        let dtypes: Vec<DType> = (0..3).map(|_| rng.pick(&[DType::F32, DType::F32, DType::I32, DType::U8, DType::F16, DType::Bool])).collect();
        let mut k = elementwise(&dtypes, n, |_| vec![]);
        generate::push_nodes(&mut rng, &mut k, 0, 8);
        k.outputs = (0..3).map(|_| rng.below(k.nodes.len()) as u32).collect();
        let shared: Vec<bool> = (0..3).map(|j| k.dtype(k.outputs[j]) == dtypes[j] && rng.below(4) > 0).collect();
        let ins: Vec<Vec<u8>> = dtypes.iter().map(|d| random_bytes(&mut rng, *d, n)).collect();
        let apart = run(&k, &ins, Tier::current()).unwrap();
        for ((x, y), d) in run_in_place(&k, &ins, &shared).iter().zip(&apart).zip(k.output_dtypes()) {
            prop_assert_eq!(scalars(d, x), scalars(d, y));
        }
    }
}

/// Rounds of add, rotate and exclusive or, whole or with parts that are read elsewhere, as a generator of random words has them.
#[test]
fn rounds_of_words_mean_what_their_nodes_say() {
    for seed in 0..200 {
        let rng = &mut Rng(seed);
        let n = rng.pick(&[1, 15, 300, 5000]);
        let mut k = Kernel { grid: [n].into(), inputs: vec![(DType::U32, n), (DType::U32, n)], ..Kernel::default() };
        let load = |input| {
            Node::Load(Box::new(ferrax_kernel::kernel::Access {
                input,
                at: ferrax_kernel::Affine::new(0, [1]),
                guards: Default::default(),
                fill: Scalar::zero(DType::U32),
            }))
        };
        let push = |k: &mut Kernel, node: Node| {
            k.nodes.push((DType::U32, node));
            k.nodes.len() as u32 - 1
        };
        let (mut x, mut y) = (push(&mut k, load(0)), push(&mut k, load(1)));
        for _ in 0..1 + rng.below(12) {
            let by = 1 + rng.below(31) as u64;
            let word = |bits| Node::Const(Scalar { dtype: DType::U32, bits });
            let (left, right) = (push(&mut k, word(by)), push(&mut k, word(32 - by)));
            let sum = push(&mut k, Node::Bin(Bin::Add, x, y));
            let (l, r) =
                (push(&mut k, Node::Bin(Bin::Shl, y, left)), push(&mut k, Node::Bin(Bin::ShrLogical, y, right)));
            let turned = push(&mut k, Node::Bin(Bin::Or, l, r));
            let end = push(&mut k, Node::Bin(Bin::Xor, turned, sum));
            // Sometimes a part is read, or the words change between two rounds.
            let parts = [x, y, sum, l, r, turned, end];
            if rng.below(4) == 0 && k.outputs.len() < 6 {
                k.outputs.push(rng.pick(&parts));
            }
            (x, y) = (sum, end);
            match rng.below(6) {
                0 => x = push(&mut k, Node::Bin(Bin::Add, x, rng.pick(&parts))),
                1 => y = push(&mut k, Node::Bin(Bin::Mul, y, rng.pick(&parts))),
                _ => (),
            }
        }
        k.outputs.push(rng.pick(&[x, y]));
        if rng.below(2) == 0 {
            k.outputs.push(y);
        }
        let ins = [random_bytes(rng, DType::U32, n), random_bytes(rng, DType::U32, n)];
        compare(&k, &ins, 0);
    }
}

/// Where the first of the greatest is, and of the least: among few different numbers, zeros of both signs and nans.
#[test]
fn positions_of_extremes_are_the_reference() {
    let mut rng = Rng(29);
    for d in [DType::F32, DType::F64, DType::I32, DType::I64, DType::U32, DType::F16] {
        for kind in [ReduceKind::ArgMax, ReduceKind::ArgMin] {
            for (rows, n) in [(5, 1), (70, 2), (9, 15), (300, 16), (20, 17), (7, 40), (3, 500), (2, 1025), (1, 5000)] {
                for out in [DType::I32, DType::I64] {
                    let k = Kernel {
                        grid: [rows].into(),
                        rdims: [n].into(),
                        inputs: vec![(d, rows * n)],
                        nodes: vec![load(0, d, Affine::new(0, [n as i64, 1])), (out, Node::Reduce { kind, of: 0 })],
                        outputs: vec![1],
                    };
                    let values = [0.0, -0.0, 1.0, 2.0, 3.0, f64::NAN];
                    let most = if rng.below(2) == 0 { 6 } else { 5 };
                    let x: Vec<Scalar> = (0..rows * n).map(|_| Scalar::from_f64(d, values[rng.below(most)])).collect();
                    compare(&k, &[reference::write(&x)], 0);
                }
            }
        }
    }
}
