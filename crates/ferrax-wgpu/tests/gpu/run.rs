//! Running kernels, routines and plans on both, and comparing.
use ferrax_kernel::backend::{RunArg, World};
use ferrax_kernel::plan::{Place, Plan, Step};
use ferrax_kernel::reference::{self, ReferenceBackend};
use ferrax_kernel::{Backend, DType, Kernel, Res, Routine, RunCx, Scalar};
use ferrax_wgpu::GpuBackend;
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The first device, or none where there is none and none is required.
pub fn gpu() -> Option<Arc<GpuBackend>> {
    static FIRST: OnceLock<Option<Arc<GpuBackend>>> = OnceLock::new();
    let open = || {
        ferrax_wgpu::adapters()
            .iter()
            .find_map(|a| GpuBackend::open(a, None, Arc::new(ReferenceBackend)).ok())
            .map(Arc::new)
    };
    let found = FIRST.get_or_init(open).clone();
    if found.is_none() {
        assert!(std::env::var_os("FERRAX_REQUIRE_GPU").is_none(), "FERRAX_REQUIRE_GPU is set and no adapter was found");
        eprintln!("no GPU adapter: nothing was tested");
    }
    found
}

/// A device of one's own, with counters of its own.
pub fn own_gpu(limits: Option<ferrax_wgpu::Limits>) -> Option<GpuBackend> {
    gpu()?;
    Some(GpuBackend::open(&ferrax_wgpu::adapters()[0], limits, Arc::new(ReferenceBackend)).unwrap())
}

/// Shaders that were translated already.
static TRANSLATED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The WGSL of each pass in `text`, the result of [`ferrax_kernel::backend::Executable::text`].
fn shaders(text: &str) -> impl Iterator<Item = &str> {
    text.split(" workgroups\n").skip(1).map(|s| &s[..s.rfind("\n}\n").map_or(s.len(), |at| at + 3)])
}

pub fn run(device: &dyn Backend, plan: Plan, ins: &[Vec<u8>]) -> Res<Vec<Vec<u8>>> {
    run_in(device, plan, ins, false, None)
}
pub fn run_in(
    device: &dyn Backend,
    plan: Plan,
    ins: &[Vec<u8>],
    cancel: bool,
    world: Option<&dyn World>,
) -> Res<Vec<Vec<u8>>> {
    let executable = device.compile(plan.verify()?)?;
    if device.platform() == "gpu" {
        let text = executable.text();
        let mut done = TRANSLATED.lock().unwrap_or_else(|p| p.into_inner());
        shaders(&text).filter(|s| done.insert(s.to_string())).for_each(crate::translate::everywhere);
    }
    let arg = |b: &Vec<u8>| Ok(RunArg { buffer: device.upload(b)?, donated: false });
    let args = ins.iter().map(arg).collect::<Res<_>>()?;
    let outs = executable.run(&RunCx { cancel: &AtomicBool::new(cancel), world }, args)?;
    outs.iter().map(|b| device.download(b)).collect()
}

/// A plan of one step.
pub fn plan_of(ins: &[(DType, usize)], outs: &[(DType, usize)], step: impl Fn(Vec<u32>, Vec<u32>) -> Step) -> Plan {
    let mut p = Plan::default();
    for (i, (d, n)) in ins.iter().enumerate() {
        let s = p.add_slot(*d, *n, 0);
        p.places.push(Place::Input(i as u32));
        p.inputs.push(s);
    }
    for (i, (d, n)) in outs.iter().enumerate() {
        let s = p.add_slot(*d, *n, 0);
        p.places.push(Place::Output(i as u32));
        p.outputs.push(s);
        p.donatable.push(None);
    }
    p.steps.push(step(p.inputs.clone(), p.outputs.clone()));
    p
}
pub fn kernel_plan(k: &Kernel) -> Plan {
    let outs: Vec<_> = k.output_dtypes().map(|d| (d, k.grid.size())).collect();
    let kernel = Arc::new(k.clone());
    plan_of(&k.inputs, &outs, |ins, outs| Step::Kernel { kernel: kernel.clone(), ins, outs })
}
pub fn routine_plan(r: &Routine) -> Plan {
    let routine = Arc::new(r.clone());
    plan_of(&r.operands(), &r.results(), |ins, outs| Step::Routine { routine: routine.clone(), ins, outs })
}

/// How far results may lie from the reference evaluator's: in units of the last place of the dtype.
pub fn tolerance(d: DType, ulp: f64) -> f64 {
    ulp * match d {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => 2f64.powi(-23),
    }
}

/// Runs `plan` on both; every result must agree within `ulp` units of the last place of the larger of its value and `scale`.
pub fn compare(device: &dyn Backend, what: &str, plan: Plan, ins: &[Vec<u8>], ulp: f64, scale: f64) {
    let expected = run(&ReferenceBackend, plan.clone(), ins).unwrap_or_else(|e| panic!("{what}: reference: {e}"));
    let got = run(device, plan.clone(), ins).unwrap_or_else(|e| panic!("{what}: {e}"));
    for ((o, g), e) in plan.outputs.iter().zip(&got).zip(&expected) {
        let d = plan.slots[*o as usize].dtype;
        let (g, e) = (reference::read(d, g), reference::read(d, e));
        assert_eq!(g.len(), e.len(), "{what}");
        let wrong: Vec<_> = (0..g.len()).filter(|i| !agree(g[*i], e[*i], ulp, scale)).collect();
        let shown: Vec<_> = wrong
            .iter()
            .take(8)
            .map(|i| format!("at {i}: {:?} is not {:?} (operands {})", g[*i], e[*i], operands(&plan, ins, *i)))
            .collect();
        assert!(wrong.is_empty(), "{what}: {} of {} differ: {}", wrong.len(), g.len(), shown.join("; "));
    }
}
fn operands(plan: &Plan, ins: &[Vec<u8>], i: usize) -> String {
    let dtypes = plan.inputs.iter().map(|s| plan.slots[*s as usize].dtype);
    let at: Vec<_> = dtypes.zip(ins).filter_map(|(d, b)| reference::read(d, b).get(i).copied()).collect();
    format!("{at:?}")
}
/// Equal, two nans, or floats near each other; where `ulp` is not 0 a subnormal may be zero, as WGSL allows.
fn agree(g: Scalar, e: Scalar, ulp: f64, scale: f64) -> bool {
    let (x, y) = (g.to_f64(), e.to_f64());
    let flushed = ulp > 0.0 && x == 0.0 && y.abs() < f32::MIN_POSITIVE as f64;
    g == e
        || g.dtype.is_float()
            && (x.is_nan() && y.is_nan() || flushed || (x - y).abs() <= tolerance(g.dtype, ulp) * y.abs().max(scale))
}

/// Numbers without pattern, from a counter.
pub struct Noise(pub u64);
impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    pub fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }
    /// Small values of any dtype, exact in all of them: integers from -8 to 8 by quarters for floats.
    pub fn values(&mut self, d: DType, n: usize) -> Vec<u8> {
        let one = |x: u64| match d {
            DType::Bool => Scalar::bool(x % 2 == 1),
            d if d.is_float() => Scalar::from_f64(d, (x % 65) as f64 / 4.0 - 8.0),
            d => Scalar::from_i64(d, (x % 17) as i64 - if d.is_signed() { 8 } else { 0 }),
        };
        reference::write(&(0..n).map(|_| one(self.next())).collect::<Vec<_>>())
    }
    /// Any bits; for floats normal ones, infinities, nans and zeros.
    pub fn bits(&mut self, d: DType, n: usize) -> Vec<u8> {
        let one = |x: u64| match d {
            DType::Bool => Scalar::bool(x % 2 == 1),
            d if d.is_float() => {
                let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0];
                let s = Scalar { dtype: d, bits: x & (u64::MAX >> (64 - 8 * d.size())) };
                let normal =
                    s.to_f64().is_finite() && s.to_f64().abs() >= if d == DType::F16 { 6.2e-5 } else { 1.2e-38 };
                if normal && !x.is_multiple_of(5) {
                    s
                } else {
                    Scalar::from_f64(d, special[x as usize / 7 % special.len()])
                }
            }
            d => Scalar { dtype: d, bits: x & (u64::MAX >> (64 - 8 * d.size())) },
        };
        reference::write(&(0..n).map(|_| one(self.next() << 31 ^ self.next())).collect::<Vec<_>>())
    }
}

/// The dtypes that every device has.
pub const DTYPES: [DType; 10] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::F16,
    DType::BF16,
    DType::F32,
];
