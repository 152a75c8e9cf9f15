//! Kernels: every row of the scalar table, loads of every kind, reductions of every size.
use crate::examples::load;
use crate::run::{DTYPES, Noise, compare, gpu, kernel_plan, run};
use ferrax_kernel::kernel::{Access, Affine, Guard, Kernel, Node};
use ferrax_kernel::reference;
use ferrax_kernel::{Bin, DType, Dims, ReduceKind, Scalar, Un};
use proptest::prelude::*;

/// One node over the elements of one or two operands.
fn pointwise(ins: &[DType], len: usize, out: DType, node: Node) -> Kernel {
    let mut nodes: Vec<_> = ins.iter().zip(0..).map(|(d, i)| load(*d, i, &[1])).collect();
    nodes.push((out, node));
    let outputs = vec![nodes.len() as u32 - 1];
    Kernel {
        grid: [len].into(),
        rdims: Dims::default(),
        inputs: ins.iter().map(|d| (*d, len)).collect(),
        nodes,
        outputs,
    }
}

/// Units of the last place that each function may be off on a device, beyond exact (0).
fn ulp_of_un(f: Un) -> f64 {
    match f {
        Un::Neg | Un::Abs | Un::Sign | Un::Not | Un::Popcnt | Un::Clz | Un::IsFinite => 0.0,
        Un::Floor | Un::Ceil | Un::RoundEven | Un::RoundAway | Un::Trunc => 0.0,
        Un::Sqrt => 3.0,
        Un::Lgamma | Un::Digamma => 64.0,
        _ => 8.0,
    }
}
fn ulp_of_bin(f: Bin) -> f64 {
    match f {
        Bin::Div | Bin::Add | Bin::Sub | Bin::Mul => 3.0,
        Bin::Pow | Bin::Atan2 => 16.0,
        _ => 0.0,
    }
}
fn defined_un(f: Un, d: DType) -> bool {
    ferrax_kernel::reference::un(f, Scalar::one(d)).is_ok()
}
fn defined_bin(f: Bin, d: DType) -> bool {
    ferrax_kernel::reference::bin(f, Scalar::one(d), Scalar::one(d)).is_ok()
}

#[test]
fn every_unary_function_of_every_dtype() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(1);
    for f in Un::ALL {
        for d in DTYPES.into_iter().filter(|d| defined_un(*f, *d)) {
            let out = if *f == Un::IsFinite { DType::Bool } else { d };
            let transcendental = ulp_of_un(*f) > 0.0 && *f != Un::Sqrt;
            let x = if transcendental { noise.values(d, 203) } else { noise.bits(d, 203) };
            let k = pointwise(&[d], 203, out, Node::Un(*f, 0));
            compare(&*gpu, &format!("{} of {d}", f.name()), kernel_plan(&k), &[x], ulp_of_un(*f), 0.1);
        }
    }
}

#[test]
fn every_binary_function_of_every_dtype() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(2);
    for f in Bin::ALL {
        for d in DTYPES.into_iter().filter(|d| defined_bin(*f, *d)) {
            let out = if f.is_comparison() { DType::Bool } else { d };
            let k = pointwise(&[d, d], 301, out, Node::Bin(*f, 0, 1));
            let what = format!("{} of {d}", f.name());
            // Values that meet often, and any bits at all.
            let small = [noise.values(d, 301), noise.values(d, 301)];
            compare(&*gpu, &what, kernel_plan(&k), &small, ulp_of_bin(*f), 0.0);
            if !matches!(f, Bin::Pow | Bin::Atan2) {
                let any = [noise.bits(d, 301), noise.bits(d, 301)];
                compare(&*gpu, &what, kernel_plan(&k), &any, ulp_of_bin(*f), 0.0);
            }
        }
    }
}

#[test]
fn integer_edges_are_the_waists() {
    let Some(gpu) = gpu() else { return };
    for d in [DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32] {
        let bits = 8 * d.size() as u32;
        let edges: Vec<Scalar> =
            [0, 1, -1, 2, 7, 8, 15, 16, 31, 32, 33, 100, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1]
                .iter()
                .map(|x| Scalar::from_i64(d, *x))
                .collect();
        let (x, y): (Vec<_>, Vec<_>) = edges.iter().flat_map(|x| edges.iter().map(|y| (*x, *y))).unzip();
        let ins = [ferrax_kernel::reference::write(&x), ferrax_kernel::reference::write(&y)];
        for f in Bin::ALL.iter().filter(|f| defined_bin(**f, d)) {
            let out = if f.is_comparison() { DType::Bool } else { d };
            let k = pointwise(&[d, d], x.len(), out, Node::Bin(*f, 0, 1));
            compare(&*gpu, &format!("{} of {d}", f.name()), kernel_plan(&k), &ins, 0.0, 0.0);
        }
    }
}

#[test]
fn every_conversion() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(3);
    for from in DTYPES {
        let mut x = noise.bits(from, 150);
        x.extend(noise.values(from, 150));
        for to in DTYPES {
            let k = pointwise(&[from], 300, to, Node::Convert(0));
            // An integer may be rounded to a float either way.
            compare(&*gpu, &format!("{from} to {to}"), kernel_plan(&k), std::slice::from_ref(&x), 0.0, 0.0);
            if from.size() == to.size() && to != DType::Bool {
                let k = pointwise(&[from], 300, to, Node::Bitcast(0));
                compare(&*gpu, &format!("{from} as {to}"), kernel_plan(&k), std::slice::from_ref(&x), 0.0, 0.0);
            }
        }
        for (exponent, mantissa) in [(5, 10), (8, 7), (4, 3), (8, 0), (1, 3), (8, 23), (5, 2)] {
            if from.is_float() {
                let k = pointwise(&[from], 300, from, Node::Round { of: 0, exponent, mantissa });
                compare(
                    &*gpu,
                    &format!("{from} in {exponent} and {mantissa} bits"),
                    kernel_plan(&k),
                    std::slice::from_ref(&x),
                    0.0,
                    0.0,
                );
            }
        }
    }
}

#[test]
fn selections_keep_nans_and_zeros() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(4);
    for d in DTYPES {
        let nodes = vec![
            load(DType::Bool, 0, &[1]),
            load(d, 1, &[1]),
            load(d, 2, &[1]),
            (d, Node::Select { p: 0, t: 1, f: 2 }),
        ];
        let inputs = vec![(DType::Bool, 77), (d, 77), (d, 77)];
        let k = Kernel { grid: [77].into(), rdims: Dims::default(), inputs, nodes, outputs: vec![3, 1, 0] };
        let ins = [noise.bits(DType::Bool, 77), noise.bits(d, 77), noise.bits(d, 77)];
        compare(&*gpu, &format!("select of {d}"), kernel_plan(&k), &ins, 0.0, 0.0);
    }
}

#[test]
fn loads_pad_and_concatenate() {
    let Some(gpu) = gpu() else { return };
    for d in DTYPES {
        // f[2, 3] padded to [5, 7], reversed along the last axis.
        let row = |offset: i64, s: i64| Affine::new(offset, [s, 0]);
        let column = Affine::new(4, [0, -1]);
        let at = Affine::new(-3 + 4, [3, -1]);
        let guards = vec![Guard { at: row(-1, 1), lo: 0, hi: 2 }, Guard { at: column, lo: 0, hi: 3 }];
        let fill = Scalar::one(d);
        let nodes = vec![(d, Node::Load(Box::new(Access { input: 0, at, guards: guards.into(), fill })))];
        let k = Kernel { grid: [5, 7].into(), rdims: Dims::default(), inputs: vec![(d, 6)], nodes, outputs: vec![0] };
        compare(&*gpu, &format!("pad of {d}"), kernel_plan(&k), &[Noise(5).values(d, 6)], 0.0, 0.0);
    }
}

#[test]
fn indices_of_every_dtype() {
    let Some(gpu) = gpu() else { return };
    for d in DTYPES.into_iter().filter(|d| *d != DType::Bool) {
        let nodes = vec![(d, Node::Index(Affine::new(-3, [7, 1])))];
        let k = Kernel { grid: [9, 7].into(), rdims: Dims::default(), inputs: vec![], nodes, outputs: vec![0] };
        compare(&*gpu, &format!("iota of {d}"), kernel_plan(&k), &[], 0.0, 0.0);
    }
}

/// `kind` over the last axis of [rows, n], or over the first of [n, rows].
fn reduction(kind: ReduceKind, d: DType, rows: usize, n: usize, last: bool) -> Kernel {
    let strides = if last { [n as i64, 1] } else { [1, rows as i64] };
    let out = if kind.bin().is_none() { DType::I32 } else { d };
    Kernel {
        grid: [rows].into(),
        rdims: [n].into(),
        inputs: vec![(d, rows * n)],
        nodes: vec![load(d, 0, &strides), (out, Node::Reduce { kind, of: 0 })],
        outputs: vec![1],
    }
}
fn reducible(kind: ReduceKind, d: DType) -> bool {
    kind.bin().map_or(d != DType::Bool, |f| defined_bin(f, d))
        && !(d == DType::Bool && matches!(kind, ReduceKind::Sum | ReduceKind::Prod))
}

#[test]
fn reductions_follow_the_waists_order() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(6);
    for kind in ReduceKind::ALL {
        for d in DTYPES.into_iter().filter(|d| reducible(*kind, *d)) {
            for (rows, n, last) in [
                (5, 0, true),
                (3, 1, true),
                (7, 16, false),
                (6, 33, true),
                (37, 200, false),
                (1, 1024, true),
                (2, 2500, true),
            ] {
                let k = reduction(*kind, d, rows, n, last);
                let what = format!("{} of {d} over {n} in {rows} rows", kind.name());
                compare(&*gpu, &what, kernel_plan(&k), &[noise.values(d, rows * n)], 0.0, 0.0);
            }
        }
    }
}

#[test]
fn long_reductions_take_several_passes() {
    let Some(gpu) = gpu() else { return };
    let n = 1024 * 1024 + 4097;
    for (kind, d, rows) in [
        (ReduceKind::Sum, DType::F32, 1),
        (ReduceKind::ArgMax, DType::F32, 2),
        (ReduceKind::Max, DType::I8, 1),
        (ReduceKind::Min, DType::I8, 3),
    ] {
        let bytes = rows * n * d.size();
        let x = Noise(7).bits(DType::U32, bytes / 4 + 1)[..bytes].to_vec();
        compare(&*gpu, kind.name(), kernel_plan(&reduction(kind, d, rows, n, true)), &[x], 0.0, 0.0);
    }
}

/// One for the blocks, one for their results.
#[test]
fn a_long_reduction_takes_two_passes() {
    let Some(gpu) = crate::run::own_gpu(None) else { return };
    for n in [20_000, 1 << 20, (1 << 21) + 5] {
        let plan = kernel_plan(&reduction(ReduceKind::Sum, DType::F32, 1, n, true));
        assert_eq!(crate::rows::at_once(&gpu, &plan, &[Noise(9).values(DType::F32, n)]).1, 2, "{n}");
    }
}

#[test]
fn reductions_see_nans_wherever_they_stand() {
    let Some(gpu) = gpu() else { return };
    for kind in [ReduceKind::Max, ReduceKind::Min, ReduceKind::ArgMax, ReduceKind::ArgMin, ReduceKind::Sum] {
        for n in [5, 100, 3000] {
            let mut x: Vec<f32> = (0..4 * n).map(|i| (i as f32 * 0.7).sin()).collect();
            (x[3], x[n + n - 1], x[2 * n + n / 2], x[2 * n + n / 2 + 1]) = (f32::NAN, f32::NAN, f32::NAN, f32::NAN);
            let k = reduction(kind, DType::F32, 4, n, true);
            compare(&*gpu, kind.name(), kernel_plan(&k), &[crate::examples::f32s(&x)], 0.0, 0.0);
        }
    }
}

/// Of all nans the positive quiet one without a payload, as on cores.
#[test]
fn a_reduction_gives_one_nan() {
    let Some(gpu) = gpu() else { return };
    for d in [DType::F32, DType::F16, DType::BF16] {
        let nan = Scalar::from_f64(d, f64::NAN);
        let sign = 1u64 << (8 * d.size() - 1);
        for kind in [ReduceKind::Max, ReduceKind::Min, ReduceKind::Sum, ReduceKind::Prod] {
            for n in [5, 100, 3000] {
                let odd = |i: usize| Scalar { dtype: d, bits: nan.bits | [sign, 1, sign | 5][i % 3] };
                let x: Vec<Scalar> = (0..4 * n)
                    .map(|i| if i % 11 == 3 { odd(i) } else { Scalar::from_f64(d, (i % 3) as f64) })
                    .collect();
                let plan = kernel_plan(&reduction(kind, d, 4, n, true));
                let got = run(&*gpu, plan.clone(), &[reference::write(&x)]).unwrap();
                let out = plan.slots[plan.outputs[0] as usize].dtype;
                let first: Vec<u64> = reference::read(out, &got[0]).iter().take(1).map(|s| s.bits).collect();
                assert_eq!(first, [Scalar::from_f64(out, f64::NAN).bits], "{} of {n} {d}", kind.name());
            }
        }
    }
}

/// Softmax over the last axis: two reductions in two kernels' worth of nodes cannot be one kernel; the mean and the greatest can.
#[test]
fn epilogues_and_several_outputs() {
    let Some(gpu) = gpu() else { return };
    for n in [3, 40, 2000] {
        let f = DType::F32;
        let nodes = vec![
            load(f, 0, &[n as i64, 1]),
            (f, Node::Bin(Bin::Mul, 0, 0)),
            (f, Node::Reduce { kind: ReduceKind::Sum, of: 1 }),
            (f, Node::Const(Scalar::f32(n as f32))),
            (f, Node::Bin(Bin::Div, 2, 3)),
            (DType::BF16, Node::Convert(4)),
            (f, Node::Reduce { kind: ReduceKind::Max, of: 0 }),
            (DType::I32, Node::Reduce { kind: ReduceKind::ArgMin, of: 0 }),
            (f, Node::Index(Affine::new(0, [1]))),
            (f, Node::Bin(Bin::Add, 6, 8)),
        ];
        let k = Kernel {
            grid: [21].into(),
            rdims: [n].into(),
            inputs: vec![(f, 21 * n)],
            nodes,
            outputs: vec![5, 9, 7, 4],
        };
        compare(&*gpu, "moments", kernel_plan(&k), &[Noise(8).values(f, 21 * n)], 1.0, 0.0);
    }
}

#[test]
fn threefry_gives_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    // Recorded by the same lines that compute it.
    #[derive(Clone)]
    struct Recorded(u32);
    thread_local!(static NODES: std::cell::RefCell<Vec<(DType, Node)>> = const { std::cell::RefCell::new(vec![]) });
    fn push(d: DType, n: Node) -> u32 {
        NODES.with_borrow_mut(|all| {
            all.push((d, n));
            all.len() as u32 - 1
        })
    }
    fn bin(f: Bin, x: Recorded, y: Recorded) -> Recorded {
        Recorded(push(DType::U32, Node::Bin(f, x.0, y.0)))
    }
    impl ferrax_prng::Word for Recorded {
        fn constant(value: u32) -> Self {
            Recorded(push(DType::U32, Node::Const(Scalar::u32(value))))
        }
        fn add(self, o: Self) -> Self {
            bin(Bin::Add, self, o)
        }
        fn mul(self, by: u32) -> Self {
            bin(Bin::Mul, self, Self::constant(by))
        }
        fn sub(self, o: Self) -> Self {
            bin(Bin::Sub, self, o)
        }
        fn xor(self, o: Self) -> Self {
            bin(Bin::Xor, self, o)
        }
        fn or(self, o: Self) -> Self {
            bin(Bin::Or, self, o)
        }
        fn and(self, o: Self) -> Self {
            bin(Bin::And, self, o)
        }
        fn shl(self, by: u32) -> Self {
            bin(Bin::Shl, self, Self::constant(by))
        }
        fn shr(self, by: u32) -> Self {
            bin(Bin::ShrLogical, self, Self::constant(by))
        }
        fn shr_by(self, by: Self) -> Self {
            bin(Bin::ShrLogical, self, by)
        }
        fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self {
            let p = push(DType::Bool, Node::Bin(Bin::Lt, self.0, bound.0));
            Recorded(push(DType::U32, Node::Select { p, t: yes.0, f: no.0 }))
        }
    }
    let n = 1000;
    for layout in [ferrax_prng::Layout::Partitionable, ferrax_prng::Layout::Original] {
        let bits = ferrax_prng::Bits::new(layout, ferrax_prng::Width::W32, n as u64).unwrap();
        NODES.take();
        let key = [0, 1].map(|i| {
            let at = Affine::constant(i);
            Recorded(push(
                DType::U32,
                Node::Load(Box::new(Access { input: 0, at, guards: vec![].into(), fill: Scalar::u32(0) })),
            ))
        });
        let zero = <Recorded as ferrax_prng::Word>::constant(0);
        let index = Recorded(push(DType::U32, Node::Index(Affine::new(0, [1]))));
        let [_, word] = bits.element(key, [zero, index]);
        let nodes = NODES.take();
        let k = Kernel {
            grid: [n].into(),
            rdims: Dims::default(),
            inputs: vec![(DType::U32, 2)],
            nodes,
            outputs: vec![word.0],
        };
        let out = run(&*gpu, kernel_plan(&k), &[[42u32.to_le_bytes(), 7u32.to_le_bytes()].concat()]).unwrap();
        let expected: Vec<u8> = (0..n as u32).flat_map(|i| bits.element([42u32, 7], [0, i])[1].to_le_bytes()).collect();
        assert_eq!(out[0], expected, "{layout:?}");
    }
}

/// A random chain of exact functions over loads with random strides.
fn chain() -> impl Strategy<Value = (Kernel, u64)> {
    let dims = prop::collection::vec(1usize..6, 0..4);
    let ops = prop::collection::vec((0usize..9, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..12);
    let strides = prop::collection::vec(0i64..4, 4);
    (dims, ops, strides, prop::sample::select(DTYPES.to_vec()), any::<u64>()).prop_map(
        |(grid, ops, strides, d, seed)| {
            let reach: i64 = grid.iter().zip(&strides).map(|(n, s)| (*n as i64 - 1) * s).sum();
            let len = reach as usize + 1;
            let mut nodes =
                vec![load(d, 0, &strides[..grid.len()]), load(d, 1, &[]), (d, Node::Const(Scalar::from_i64(d, 3)))];
            let functions = [Bin::Add, Bin::Sub, Bin::Mul, Bin::Max, Bin::Min, Bin::And, Bin::Or, Bin::Xor, Bin::Lt];
            for (f, x, y) in ops {
                let of_d: Vec<u32> = (0..nodes.len() as u32).filter(|n| nodes[*n as usize].0 == d).collect();
                let (x, y) = (of_d[x.index(of_d.len())], of_d[y.index(of_d.len())]);
                let f = functions[f];
                if !defined_bin(f, d) {
                    continue;
                }
                if f.is_comparison() {
                    nodes.push((DType::Bool, Node::Bin(f, x, y)));
                    let p = nodes.len() as u32 - 1;
                    nodes.push((d, Node::Select { p, t: y, f: x }));
                } else {
                    nodes.push((d, Node::Bin(f, x, y)));
                }
            }
            let outputs = vec![nodes.len() as u32 - 1, nodes.len() as u32 / 2];
            (
                Kernel {
                    grid: Dims::new(&grid),
                    rdims: Dims::default(),
                    inputs: vec![(d, len), (d, 1)],
                    nodes,
                    outputs,
                },
                seed,
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn chains_agree(case in chain()) {
        let Some(gpu) = gpu() else { return Ok(()) };
        let (k, seed) = case;
        let mut noise = Noise(seed);
        let ins: Vec<Vec<u8>> = k.inputs.iter().map(|(d, n)| noise.values(*d, *n)).collect();
        compare(&*gpu, &format!("{k:?}"), kernel_plan(&k), &ins, 0.0, 0.0);
    }
}

#[test]
fn wide_dtypes_are_computed_by_the_host() {
    let Some(gpu) = gpu() else { return };
    for d in [DType::F64, DType::I64, DType::U64] {
        let k = pointwise(&[d, d], 4, d, Node::Bin(Bin::Add, 0, 1));
        compare(&*gpu, "wide dtypes", kernel_plan(&k), &[Noise(31).values(d, 4), Noise(32).values(d, 4)], 0.0, 0.0);
    }
}
