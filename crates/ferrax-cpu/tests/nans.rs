//! Which nan a reduction gives: the one of `ferrax_kernel::order`, bit for bit, whatever is reduced, over whichever axis, tiled and
//! threaded however.
use ferrax_cpu::{CpuBackend, Tier, set_num_threads};
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::plan::{Place, Step};
use ferrax_kernel::reference::{self, ReferenceBackend};
use ferrax_kernel::{Affine, Backend, Bin, DType, Kernel, Node, Plan, ReduceKind, RunCx, Scalar};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows or columns of `[m, n]`, doubled first where `fused`, reduced by several kinds at once.
fn plan(d: DType, [m, n]: [usize; 2], kinds: &[ReduceKind], columns: bool, fused: bool) -> Plan {
    let (grid, rdims, strides) = if columns { (n, m, [1, n as i64]) } else { (m, n, [n as i64, 1]) };
    let at = Affine::new(0, strides);
    let load = Access { input: 0, at, guards: Default::default(), fill: Scalar::zero(d) };
    let mut nodes = vec![(d, Node::Load(Box::new(load)))];
    if fused {
        nodes.push((d, Node::Bin(Bin::Add, 0, 0)));
    }
    let of = nodes.len() as u32 - 1;
    nodes.extend(kinds.iter().map(|kind| (d, Node::Reduce { kind: *kind, of })));
    let outputs = (of + 1..nodes.len() as u32).collect();
    let kernel = Kernel { grid: [grid].into(), rdims: [rdims].into(), inputs: vec![(d, m * n)], nodes, outputs };
    let mut p = Plan::default();
    p.inputs = vec![p.add_slot(d, m * n, 0)];
    p.places = vec![Place::Input(0)];
    for k in 0..kinds.len() {
        let s = p.add_slot(d, grid, 0);
        p.outputs.push(s);
        p.places.push(Place::Output(k as u32));
        p.donatable.push(None);
    }
    p.steps = vec![Step::Kernel { kernel: Arc::new(kernel), ins: p.inputs.clone(), outs: p.outputs.clone() }];
    p
}
fn run(device: &dyn Backend, p: &Plan, x: &[u8]) -> Vec<Vec<u8>> {
    let exe = device.compile(p.clone().verify().unwrap()).unwrap();
    let args = [RunArg { buffer: device.upload(x).unwrap(), donated: false }];
    let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args.into_iter().collect()).unwrap();
    outs.iter().map(|b| device.download(b).unwrap()).collect()
}

#[test]
fn a_reduction_gives_one_nan() {
    use ReduceKind::{Max, Min, Prod, Sum};
    let tiers: Vec<CpuBackend> = Tier::ALL.into_iter().filter_map(CpuBackend::with_tier).collect();
    for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let sign = 1u64 << (8 * d.size() - 1);
        let nan = Scalar::from_f64(d, f64::NAN);
        // a positive nan, a negative one, and one with a payload, among numbers
        let nans = [nan.bits, nan.bits | sign, nan.bits | 1, nan.bits | sign | 5].map(|bits| Scalar { dtype: d, bits });
        for shape in [[1, 1], [3, 5], [2, 16], [1, 600], [3, 1500], [40, 33], [700, 3], [600, 600]] {
            let x: Vec<Scalar> = (0..shape[0] * shape[1])
                .map(|i| if i % 7 < 2 { nans[(i / 7 + i) % 4] } else { Scalar::from_f64(d, (i % 3) as f64) })
                .collect();
            let bytes = reference::write(&x);
            for (columns, fused) in [(false, false), (true, false), (false, true)] {
                let p = plan(d, shape, &[Max, Min, Sum, Prod], columns, fused);
                let want = run(&ReferenceBackend, &p, &bytes);
                for cpu in &tiers {
                    for threads in [1, 4] {
                        set_num_threads(threads);
                        assert_eq!(run(cpu, &p, &bytes), want, "{d} {shape:?} columns: {columns}, fused: {fused}");
                    }
                }
                set_num_threads(0);
                let odd =
                    |b: &[u8]| reference::read(d, b).into_iter().any(|s| s.to_f64().is_nan() && s.bits != nan.bits);
                assert!(!want.iter().any(|b| odd(b)));
            }
        }
    }
}
