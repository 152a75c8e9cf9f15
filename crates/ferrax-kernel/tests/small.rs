//! Kernels over small dtypes, and what they become in terms of bytes: the same values for every element there is.
use ferrax_kernel::kernel::{Access, Affine};
use ferrax_kernel::{Bin, DType, Dims, Kernel, Node, ReduceKind, Scalar, Un, reference, small};
use smallvec::smallvec;

fn every() -> impl Iterator<Item = DType> {
    DType::ALL.iter().chain(DType::SMALL).copied()
}
fn elements(d: DType) -> Vec<Scalar> {
    (0..1u64 << d.bits()).map(|bits| Scalar { dtype: d, bits }).collect()
}
fn load(input: u32, d: DType, stride: i64) -> (DType, Node) {
    let at = Affine::new(0, [stride]);
    (d, Node::Load(Box::new(Access { input, at, guards: smallvec![], fill: Scalar::zero(d) })))
}
fn over(n: usize, inputs: &[(DType, usize)], nodes: Vec<(DType, Node)>) -> Kernel {
    let outputs = vec![nodes.len() as u32 - 1];
    Kernel { grid: Dims::new(&[n]), inputs: inputs.to_vec(), nodes, outputs, ..Kernel::default() }
}
/// Nans are equal, and so are their replacements in a format without nans.
fn same(a: Scalar, b: Scalar) -> bool {
    a == b || a.dtype.is_float() && a.to_f64().is_nan() && b.to_f64().is_nan()
}
/// Runs the kernel as it is and in terms of bytes, where it is defined.
fn check(k: &Kernel, ins: &[&[Scalar]], what: &str) {
    k.verify().unwrap();
    let bytes = |x: &[Scalar]| x.iter().flat_map(|s| s.bytes()[..s.dtype.size()].to_vec()).collect::<Vec<u8>>();
    let ins: Vec<Vec<u8>> = ins.iter().map(|x| bytes(x)).collect();
    let ins: Vec<&[u8]> = ins.iter().map(|x| &x[..]).collect();
    let Ok(want) = reference::kernel(k, &ins) else { return };
    let legalized = small::legalized(k);
    legalized.verify().unwrap();
    assert!(!legalized.nodes.iter().any(|n| n.0.is_small()));
    let got = reference::kernel(&legalized, &ins).unwrap();
    let d = k.dtype(k.outputs[0]);
    assert_eq!(want[0].len(), got[0].len(), "{what}");
    for (i, (w, g)) in want[0].chunks(d.size()).zip(got[0].chunks(d.size())).enumerate() {
        let (w, g) = (Scalar::from_bytes(d, w), Scalar::from_bytes(d, g));
        assert!(same(w, g), "{what}: element {i}: {w:?}, in bytes {g:?} ({:#x}, {:#x})", w.bits, g.bits);
    }
}

#[test]
fn functions_of_one() {
    for d in DType::SMALL {
        let x = elements(*d);
        for f in Un::ALL {
            let out = if *f == Un::IsFinite { DType::Bool } else { *d };
            if *f == Un::IsFinite && !d.is_float() {
                continue;
            }
            let k = over(x.len(), &[(*d, x.len())], vec![load(0, *d, 1), (out, Node::Un(*f, 0))]);
            check(&k, &[&x], &format!("{} of {d}", f.name()));
        }
    }
}
#[test]
fn functions_of_two() {
    for d in DType::SMALL {
        let all = elements(*d);
        let (x, y): (Vec<Scalar>, Vec<Scalar>) = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))).unzip();
        for f in Bin::ALL {
            let out = if f.is_comparison() { DType::Bool } else { *d };
            // the reference looks for the neighbour among all
            let every = if *f == Bin::NextAfter { 1 + all.len() / 8 } else { 1 };
            let [x, y] = [&x, &y].map(|v| v.iter().step_by(every).copied().collect::<Vec<_>>());
            let nodes = vec![load(0, *d, 1), load(1, *d, 1), (out, Node::Bin(*f, 0, 1))];
            let k = over(x.len(), &[(*d, x.len()), (*d, x.len())], nodes);
            check(&k, &[&x, &y], &format!("{} of {d}", f.name()));
        }
    }
}
/// Elements of a dtype that say something about conversions: all of a small one, and of the others values around those of `of`.
fn samples(d: DType, of: DType) -> Vec<Scalar> {
    if d.is_small() {
        return elements(d);
    }
    let values: Vec<f64> = elements(of).iter().map(|s| s.to_f64()).filter(|x| x.is_finite()).collect();
    let mut all =
        vec![0.0, -0.0, 1e300, -1e300, 1e-300, 70000.0, 0.7, -0.7, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for (i, x) in values.iter().enumerate() {
        let between = (x + values[(i + 1) % values.len()]) / 2.0;
        all.extend([*x, between, between * (1.0 + 1e-12), between * (1.0 - 1e-12), x * 1.01]);
    }
    all.into_iter().map(|x| Scalar::from_f64(d, x)).collect()
}
#[test]
fn conversions_and_bits() {
    for from in every() {
        for to in every().filter(|to| from.is_small() || to.is_small()) {
            let x = samples(from, to);
            let k = over(x.len(), &[(from, x.len())], vec![load(0, from, 1), (to, Node::Convert(0))]);
            check(&k, &[&x], &format!("{from} to {to}"));
            if from.size() == to.size() && from.bits() == to.bits() && from != DType::Bool && to != DType::Bool {
                let k = over(x.len(), &[(from, x.len())], vec![load(0, from, 1), (to, Node::Bitcast(0))]);
                check(&k, &[&x], &format!("{from} as {to}"));
            }
        }
    }
}
#[test]
fn constants_choices_positions_and_roundings() {
    for d in DType::SMALL {
        let x = elements(*d);
        for c in &x {
            let nodes = vec![
                load(0, *d, 1),
                (*d, Node::Const(*c)),
                (DType::Bool, Node::Bin(Bin::Lt, 0, 1)),
                (*d, Node::Select { p: 2, t: 0, f: 1 }),
            ];
            check(&over(x.len(), &[(*d, x.len())], nodes), &[&x], &format!("the lesser of {d} and {c:?}"));
        }
        check(&over(300, &[], vec![(*d, Node::Index(Affine::new(-3, [1])))]), &[], &format!("positions as {d}"));
        if d.is_float() {
            for (exponent, mantissa) in [(8, 23), (5, 2), (4, 3), (3, 1), (2, 0)] {
                let nodes = vec![load(0, *d, 1), (*d, Node::Round { of: 0, exponent, mantissa })];
                check(&over(x.len(), &[(*d, x.len())], nodes), &[&x], &format!("{d} to {exponent}, {mantissa} bits"));
            }
        }
    }
}
#[test]
fn reductions() {
    for d in DType::SMALL {
        let x: Vec<Scalar> = elements(*d).into_iter().filter(|s| !s.to_f64().is_nan()).collect();
        for kind in ReduceKind::ALL {
            for n in [0, 3, x.len()] {
                let out = if kind.bin().is_none() { DType::I32 } else { *d };
                // a format without zero has nothing that the sum of the reference could start from
                let no_zero = *d == DType::F8E8M0FNU && *kind == ReduceKind::Sum;
                let of_bits = matches!(kind, ReduceKind::And | ReduceKind::Or | ReduceKind::Xor);
                if n == 0 && kind.bin().is_none() || of_bits && d.is_float() || no_zero {
                    continue;
                }
                let nodes = vec![load(0, *d, 0), (out, Node::Reduce { kind: *kind, of: 0 })];
                let mut k = over(1, &[(*d, n)], nodes);
                k.rdims = Dims::new(&[n]);
                let Node::Load(a) = &mut k.nodes[0].1 else { unreachable!() };
                a.at = Affine::new(0, [0, 1]);
                check(&k, &[&x[..n]], &format!("{} of {n} {d}", kind.name()));
            }
        }
    }
}

fn floats() -> impl Iterator<Item = DType> {
    DType::SMALL.iter().copied().filter(|d| d.is_float())
}

#[test]
fn values_are_their_own_nearest() {
    for d in floats() {
        for bits in 0..1u64 << d.bits() {
            let x = Scalar { dtype: d, bits }.to_f64();
            let back = Scalar::from_f64(d, x);
            assert!(back.bits == bits || x.is_nan() && back.to_f64().is_nan(), "{d}: {bits:#x} is {x}, {back:?}");
        }
    }
}
#[test]
fn what_lies_between_goes_to_the_nearer() {
    for d in floats() {
        let mut values: Vec<(f64, u64)> = (0..1u64 << d.bits())
            .map(|bits| (Scalar { dtype: d, bits }.to_f64(), bits))
            .filter(|v| v.0.is_finite() && (v.0 != 0.0 || v.1 == 0))
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        for w in values.windows(2) {
            let ((lo, a), (hi, b)) = (w[0], w[1]);
            let middle = (lo + hi) / 2.0;
            let near = |x: f64| Scalar::from_f64(d, x).to_f64();
            let (below, above) = (middle - (hi - lo) * 1e-9, middle + (hi - lo) * 1e-9);
            assert_eq!((near(below), near(above)), (lo, hi), "{d}: between {lo} and {hi}");
            let even = if d == DType::F8E8M0FNU || b & 1 == 0 { hi } else { lo };
            assert!(near(middle) == even, "{d}: {middle} lies between {a:#x} and {b:#x}, got {}", near(middle));
        }
    }
}
#[test]
fn limits() {
    let finite = |d| elements(d).iter().map(|s| s.to_f64()).filter(|x| x.is_finite()).collect::<Vec<_>>();
    let greatest = |d| finite(d).into_iter().fold(0.0, f64::max);
    let all = [15.5, 240.0, 30.0, 448.0, 240.0, 57344.0, 57344.0, 2f64.powi(127)];
    assert_eq!(floats().skip(1).map(greatest).collect::<Vec<_>>(), all);
    assert_eq!(greatest(DType::F4E2M1FN), 6.0);
    let of = |d, x: f64| Scalar::from_f64(d, x).to_f64();
    assert_eq!(of(DType::F4E2M1FN, f64::NEG_INFINITY), -6.0);
    assert_eq!(of(DType::F8E5M2, 61440.0), f64::INFINITY);
    assert_eq!(of(DType::F8E4M3FN, 464.0), 448.0);
    assert!(of(DType::F8E4M3FN, 465.0).is_nan() && of(DType::F8E4M3FN, f64::INFINITY).is_nan());
    assert_eq!(Scalar::from_f64(DType::F8E4M3FNUZ, -1e-9).bits, 0);
    assert!(of(DType::F8E8M0FNU, 0.0).is_nan() && of(DType::F8E8M0FNU, -1.0).is_nan());
    assert_eq!(of(DType::F8E8M0FNU, 1e-300), 2f64.powi(-127));
    assert_eq!(Scalar::from_f64(DType::I4, 1e9).to_i64(), 7);
    assert_eq!(Scalar::from_f64(DType::U2, -1.0).to_i64(), 0);
    assert_eq!(Scalar::from_i64(DType::I4, 9).to_i64(), -7);
    assert_eq!(Scalar::from_bytes(DType::I2, &[0xfe]).to_i64(), -2);
}
