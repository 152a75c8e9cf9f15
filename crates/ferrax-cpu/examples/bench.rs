//! Times what the design promises figures for. `cargo run --release -p ferrax-cpu --example bench [name]`.
use ferrax_cpu::CpuBackend;
use ferrax_kernel::backend::{Executable, RunArg};
use ferrax_kernel::kernel::Access;
use ferrax_kernel::plan::{Carry, Loop, Place, SlotId, Step, Trip};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Backend, Bin, Buffer, DType, Kernel, Node, Plan, ReduceKind, Routine, RunCx, Scalar, Un};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const F: DType = DType::F32;

fn load(input: u32, strides: &[i64]) -> (DType, Node) {
    (
        F,
        Node::Load(Box::new(Access {
            input,
            at: Affine::new(0, strides.iter().copied()),
            guards: Default::default(),
            fill: Scalar::zero(F),
        })),
    )
}
/// A plan of one kernel.
fn kernel_plan(k: Kernel) -> Plan {
    let mut p = Plan::default();
    let n = k.grid.size();
    for (i, (d, len)) in k.inputs.iter().enumerate() {
        let s = p.add_slot(*d, *len, 0);
        p.inputs.push(s);
        p.places.push(Place::Input(i as u32));
    }
    for (i, d) in k.output_dtypes().enumerate() {
        let s = p.add_slot(d, n, 0);
        p.outputs.push(s);
        p.places.push(Place::Output(i as u32));
        p.donatable.push(None);
    }
    p.steps = vec![Step::Kernel { kernel: Arc::new(k), ins: p.inputs.clone(), outs: p.outputs.clone() }];
    p
}
fn routine_plan(r: Routine) -> Plan {
    let mut p = Plan::default();
    for (i, (d, len)) in r.operands().iter().enumerate() {
        let s = p.add_slot(*d, *len, 0);
        p.inputs.push(s);
        p.places.push(Place::Input(i as u32));
    }
    for (i, (d, len)) in r.results().iter().enumerate() {
        let s = p.add_slot(*d, *len, 0);
        p.outputs.push(s);
        p.places.push(Place::Output(i as u32));
        p.donatable.push(None);
    }
    p.steps = vec![Step::Routine { routine: Arc::new(r), ins: p.inputs.clone(), outs: p.outputs.clone() }];
    p
}
fn elementwise(n: usize, inputs: usize, f: impl FnOnce(&mut Vec<(DType, Node)>) -> Vec<u32>) -> Kernel {
    let mut nodes: Vec<_> = (0..inputs).map(|i| load(i as u32, &[1])).collect();
    let outputs = f(&mut nodes);
    Kernel { grid: [n].into(), inputs: vec![(F, n); inputs], nodes, outputs, ..Kernel::default() }
}
fn bin(v: &mut Vec<(DType, Node)>, f: Bin, a: u32, b: u32) -> u32 {
    v.push((F, Node::Bin(f, a, b)));
    v.len() as u32 - 1
}
fn constant(v: &mut Vec<(DType, Node)>, x: f32) -> u32 {
    v.push((F, Node::Const(Scalar::f32(x))));
    v.len() as u32 - 1
}

/// Nanoseconds of one call: the least of many batches.
fn time(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    f();
    let once = start.elapsed().as_nanos().max(20) as f64;
    let per_batch = ((2e6 / once) as usize).clamp(1, 100_000);
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_millis() < 300 {
        let t = Instant::now();
        for _ in 0..per_batch {
            f();
        }
        best = best.min(t.elapsed().as_nanos() as f64 / per_batch as f64);
    }
    best
}
struct Bench {
    device: CpuBackend,
    only: Option<String>,
}
impl Bench {
    fn run(&self, name: &str, plan: Plan, note: impl Fn(f64) -> String) {
        if self.only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            return;
        }
        let exe: Arc<dyn Executable> = self.device.compile(plan.verify().unwrap()).unwrap();
        let ins: Vec<Buffer> = exe
            .plan()
            .inputs
            .iter()
            .map(|s| {
                let slot = &exe.plan().slots[*s as usize];
                let bytes: Vec<u8> = (0..slot.len)
                    .flat_map(|i| {
                        Scalar::from_f64(slot.dtype, 0.5 + (i % 97) as f64 / 97.0)
                            .bytes()
                            .into_iter()
                            .take(slot.dtype.size())
                    })
                    .collect();
                self.device.upload(&bytes).unwrap()
            })
            .collect();
        let cancel = AtomicBool::new(false);
        let cx = RunCx { cancel: &cancel, world: None };
        let ns = time(|| {
            let args = ins.iter().map(|b| RunArg { buffer: b.clone(), donated: false }).collect();
            std::hint::black_box(exe.run(&cx, args).unwrap());
        });
        println!("{name:40} {ns:12.0} ns   {}", note(ns));
    }
}

/// The 14 operations of an Adam step: new parameter and moments of a gradient.
fn adam(n: usize) -> Kernel {
    elementwise(n, 4, |v| {
        let (p, g, m, s) = (0, 1, 2, 3);
        let (b1, b2) = (constant(v, 0.9), constant(v, 0.999));
        let (c1, c2) = (constant(v, 0.1), constant(v, 0.001));
        let (k1, k2, eps, lr) =
            (constant(v, 1.0 / 0.19), constant(v, 1.0 / 0.002), constant(v, 1e-8), constant(v, 1e-3));
        let x = bin(v, Bin::Mul, b1, m);
        let y = bin(v, Bin::Mul, c1, g);
        let m2 = bin(v, Bin::Add, x, y);
        let gg = bin(v, Bin::Mul, g, g);
        let x = bin(v, Bin::Mul, b2, s);
        let y = bin(v, Bin::Mul, c2, gg);
        let s2 = bin(v, Bin::Add, x, y);
        let mh = bin(v, Bin::Mul, m2, k1);
        let sh = bin(v, Bin::Mul, s2, k2);
        v.push((F, Node::Un(Un::Sqrt, sh)));
        let root = v.len() as u32 - 1;
        let d = bin(v, Bin::Add, root, eps);
        let q = bin(v, Bin::Div, mh, d);
        let u = bin(v, Bin::Mul, lr, q);
        let p2 = bin(v, Bin::Sub, p, u);
        vec![p2, m2, s2]
    })
}
fn reduction(outer: usize, n: usize, inner: usize) -> Kernel {
    Kernel {
        grid: [outer, inner].into(),
        rdims: [n].into(),
        inputs: vec![(F, outer * n * inner)],
        nodes: vec![
            load(0, &[(n * inner) as i64, 1, inner as i64]),
            (F, Node::Reduce { kind: ReduceKind::Sum, of: 0 }),
        ],
        outputs: vec![1],
    }
}
/// `for i in 0..trips { x = x * 0.999 + 0.1 }` on a scalar, `kernels` of them.
fn scalar_loop(trips: usize, kernels: usize) -> Plan {
    let mut p = Plan::default();
    let slot = |p: &mut Plan, place: Place| {
        p.places.push(place);
        p.add_slot(F, 1, 0)
    };
    let init = slot(&mut p, Place::Input(0));
    let out = slot(&mut p, Place::Output(0));
    let carry = slot(&mut p, Place::Arena(0));
    let next = slot(&mut p, Place::Arena(64));
    let mut body = vec![];
    let mut at: SlotId = carry;
    for k in 0..kernels {
        let to = if k + 1 == kernels { next } else { slot(&mut p, Place::Arena(128 + 64 * k)) };
        let kernel = elementwise(1, 1, |v| {
            let a = constant(v, 0.999);
            let b = constant(v, 0.1);
            let x = bin(v, Bin::Mul, 0, a);
            vec![bin(v, Bin::Add, x, b)]
        });
        let kernel = Kernel {
            grid: ferrax_kernel::Dims::default(),
            nodes: kernel
                .nodes
                .into_iter()
                .map(|(d, n)| if let Node::Load(_) = n { load(0, &[]) } else { (d, n) })
                .collect(),
            ..kernel
        };
        body.push(Step::Kernel { kernel: Arc::new(kernel), ins: vec![at], outs: vec![to] });
        at = to;
    }
    p.inputs = vec![init];
    p.outputs = vec![out];
    p.donatable = vec![None];
    p.arena = 128 + 64 * kernels;
    p.steps = vec![Step::Loop(Box::new(Loop {
        trip: Trip::Static(trips),
        reverse: false,
        carries: vec![Carry { init, slot: carry, next, out }],
        xs: vec![],
        ys: vec![],
        count: None,
        body,
    }))];
    p
}

fn main() {
    let b = Bench { device: CpuBackend::new(), only: std::env::args().nth(1) };
    println!("{}", b.device.description());
    let gbs = |bytes: usize| move |ns: f64| format!("{:.1} GB/s", bytes as f64 / ns);
    let add = |n| kernel_plan(elementwise(n, 2, |v| vec![bin(v, Bin::Add, 0, 1)]));
    b.run("add n=1", add(1), gbs(12));
    b.run("add n=10", add(10), gbs(120));
    b.run("add n=1000", add(1000), gbs(12_000));
    b.run("add n=1e5", add(100_000), gbs(1_200_000));
    b.run("add n=1e6", add(1_000_000), gbs(12_000_000));
    b.run("add n=1e7", add(10_000_000), gbs(120_000_000));
    for (f, name) in [(Un::Exp, "exp"), (Un::Sin, "sin"), (Un::Tanh, "tanh"), (Un::Log, "log")] {
        let un = |n| {
            kernel_plan(elementwise(n, 1, |v| {
                v.push((F, Node::Un(f, 0)));
                vec![1]
            }))
        };
        b.run(&format!("{name} n=10"), un(10), |_| String::new());
        b.run(&format!("{name} n=1e5"), un(100_000), |ns| format!("{:.3} ns an element", ns / 1e5));
    }
    for n in [16, 1000, 16_000, 262_000, 1_000_000] {
        b.run(&format!("adam n={n}"), kernel_plan(adam(n)), |ns| format!("{:.3} ns an element", ns / n as f64));
    }
    for (o, n, i) in [
        (1, 10, 1),
        (1, 1000, 1),
        (1, 1_000_000, 1),
        (1000, 1000, 1),
        (1, 1000, 1000),
        (100_000, 10, 1),
        (300_000, 3, 1),
        (100, 100, 100),
    ] {
        b.run(&format!("sum [{o},{n},{i}] axis 1"), kernel_plan(reduction(o, n, i)), gbs(4 * o * n * i));
    }
    b.run(
        "softmax max [1000,1000]",
        kernel_plan(Kernel {
            nodes: vec![load(0, &[1000, 1]), (F, Node::Reduce { kind: ReduceKind::Max, of: 0 })],
            rdims: [1000].into(),
            grid: [1000].into(),
            inputs: vec![(F, 1_000_000)],
            outputs: vec![1],
        }),
        gbs(4_000_000),
    );
    b.run(
        "transpose [1000,1000]",
        kernel_plan(Kernel {
            grid: [1000, 1000].into(),
            inputs: vec![(F, 1_000_000)],
            nodes: vec![load(0, &[1, 1000])],
            outputs: vec![0],
            ..Kernel::default()
        }),
        gbs(8_000_000),
    );
    b.run(
        "add row [1000,1000]+[1000]",
        kernel_plan(Kernel {
            grid: [1000, 1000].into(),
            inputs: vec![(F, 1_000_000), (F, 1000)],
            nodes: vec![load(0, &[1000, 1]), load(1, &[0, 1]), (F, Node::Bin(Bin::Add, 0, 1))],
            outputs: vec![2],
            ..Kernel::default()
        }),
        gbs(8_000_000),
    );
    b.run(
        "add column [1000,1000]+[1000,1]",
        kernel_plan(Kernel {
            grid: [1000, 1000].into(),
            inputs: vec![(F, 1_000_000), (F, 1000)],
            nodes: vec![load(0, &[1000, 1]), load(1, &[1, 0]), (F, Node::Bin(Bin::Add, 0, 1))],
            outputs: vec![2],
            ..Kernel::default()
        }),
        gbs(8_000_000),
    );
    for n in [4usize, 16, 32, 64, 128, 512, 1024] {
        let k = n as i64;
        let d = Dot { b: 1, m: n, n, k: n, lhs: [0, k, 1], rhs: [0, k, 1], dtype: F, out: F };
        b.run(&format!("matmul {n}"), routine_plan(Routine::Dot(d.clone())), |ns| {
            format!("{:.1} GFLOP/s", 2.0 * (n * n * n) as f64 / ns)
        });
        b.run(&format!("matmul {n} transposed rhs"), routine_plan(Routine::Dot(Dot { rhs: [0, 1, k], ..d })), |ns| {
            format!("{:.1} GFLOP/s", 2.0 * (n * n * n) as f64 / ns)
        });
    }
    b.run(
        "matvec 1000",
        routine_plan(Routine::Dot(Dot {
            b: 1,
            m: 1000,
            n: 1,
            k: 1000,
            lhs: [0, 1000, 1],
            rhs: [0, 1, 1],
            dtype: F,
            out: F,
        })),
        gbs(4_000_000),
    );
    b.run(
        "sort 1e6",
        routine_plan(Routine::Sort { outer: 1, n: 1_000_000, inner: 1, dtypes: vec![F], num_keys: 1 }),
        |ns| format!("{:.1} ns an element", ns / 1e6),
    );
    b.run(
        "cumsum 1e6",
        routine_plan(Routine::Cumulative {
            kind: ferrax_kernel::routine::CumulativeKind::Sum,
            outer: 1,
            n: 1_000_000,
            inner: 1,
            reverse: false,
            dtype: F,
        }),
        |ns| format!("{:.1} ns an element", ns / 1e6),
    );
    b.run("scalar loop 1000 x 1 kernel", scalar_loop(1000, 1), |ns| format!("{:.1} ns an iteration", ns / 1e3));
    b.run("scalar loop 1000 x 4 kernels", scalar_loop(1000, 4), |ns| format!("{:.1} ns an iteration", ns / 1e3));
}
