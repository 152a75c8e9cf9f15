//! Devices: a backend and a queue of the scheduler ([`crate::runtime`]) each.
//!
//! ```
//! use ferrax::Tensor;
//! use ferrax::device::{self, Device, Platform};
//! let here: &'static Device = device::default_device(); // the device of arrays without a placement
//! assert_eq!(Tensor::ones(&[2]).sum().device(), Some(here));
//! assert_eq!((here.platform(), device::numbered(here.id)), ("cpu", Some(here)));
//! assert_eq!(here.memory_kind(), (device::HOST_MEMORY, 0)); // as DLPack numbers it
//! assert!(device::has_cpus() && device::set_num_cpu_devices(1000).is_err()); // they are there already
//! assert!(here.is_local() && device::all_cpus().len() >= device::cpus().len()); // those of other processes of the run are named too
//! assert_eq!(device::wanted_cpus(), device::cpus().len());
//! device::set_default_device(Some(&device::cpus()[0])); // or another; `None` for the first
//! assert_eq!(device::cpus(), device::offered(Platform::Cpu));
//! for (name, facts) in device::inventory() {
//!     println!("{name}: {facts:?}"); // tiers of instructions, and adapters where the feature `gpu` is on
//! }
//! for gpu in device::gpus() {
//!     println!("{gpu} {:?}", Tensor::ones(&[2]).device_put(gpu));
//! }
//! ```
//!
//! The list is created at first use: `cpu:0`, more with `FERRAX_NUM_CPU_DEVICES` or `XLA_FLAGS` (or
//! [`set_num_cpu_devices`] before first use), then every available GPU.
use crate::processes;
use ferrax_cpu::CpuBackend;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_kernel::Backend;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// DLPack's number for the host's memory.
pub const HOST_MEMORY: u32 = 1;

/// Lives as long as the process: everything refers to one by `&'static Device`.
pub struct Device {
    /// Unique among all devices; its lane.
    pub id: usize,
    /// Among those of its platform, in all processes of the run.
    pub index: usize,
    /// The process that it belongs to. Those of other processes can be named, and hold parts of arrays; this one reaches none of them.
    pub process: usize,
    /// The backend that compiles and runs programs for it.
    pub backend: Arc<dyn Backend>,
    /// The run that was handed to it last, 0 where there was none; of GPUs.
    pub(crate) handed: AtomicU64,
}
impl Device {
    /// One of this process. Nothing was handed to it yet.
    pub fn new(id: usize, index: usize, backend: Arc<dyn Backend>) -> Device {
        Device { id, index, process: processes::here(), backend, handed: AtomicU64::new(0) }
    }
    /// Whether it belongs to this process.
    pub fn is_local(&self) -> bool {
        self.process == processes::here()
    }
    /// `cpu` or `gpu`.
    pub fn platform(&self) -> &'static str {
        self.backend.platform()
    }
    /// Its memory by DLPack's numbers: the kind, and which of that kind.
    pub fn memory_kind(&self) -> (u32, u32) {
        match self.backend.memory_kind() {
            HOST_MEMORY => (HOST_MEMORY, 0),
            kind => (kind, self.index as u32),
        }
    }
}
impl PartialEq for Device {
    fn eq(&self, o: &Device) -> bool {
        self.id == o.id
    }
}
impl Eq for Device {}
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.platform(), self.index)
    }
}
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}

static NUM_CPU: AtomicUsize = AtomicUsize::new(0);
static CPUS: OnceLock<Vec<Device>> = OnceLock::new();
static GPUS: OnceLock<Vec<Device>> = OnceLock::new();
/// Held while devices are made: a child that was forked in between would wait for them for ever.
static MAKING: Mutex<()> = Mutex::new(());

/// Takes the lock under which devices are made, to be held over a fork.
pub fn freeze() -> impl std::any::Any {
    MAKING.lock().unwrap_or_else(|e| e.into_inner())
}
fn made(all: &'static OnceLock<Vec<Device>>, make: impl FnOnce() -> Vec<Device>) -> &'static [Device] {
    if let Some(all) = all.get() {
        return all;
    }
    let _making = freeze();
    all.get_or_init(make)
}

/// Sets the number of CPU devices, 0 for that of the environment. An error once the devices exist.
pub fn set_num_cpu_devices(n: usize) -> Res<()> {
    if CPUS.get().is_some_and(|d| n > 0 && d.len() != n) {
        return Err(Error::new(
            ErrorKind::Runtime,
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX operation is executed. \
             You should initialize this config immediately after `import jax`.",
        ));
    }
    NUM_CPU.store(n, Ordering::Relaxed);
    Ok(())
}

/// The number of threads for a large operation on the CPU: from [`set_num_threads`], else
/// `FERRAX_NUM_THREADS`, else one for each core.
pub fn num_threads() -> usize {
    ferrax_cpu::num_threads()
}
/// Sets how many threads later operations are spread over; 0 for the default. No result depends on it.
///
/// ```
/// use ferrax::device;
/// device::set_num_threads(1); // of several processes, say, that share the cores
/// assert_eq!(device::num_threads(), 1);
/// device::set_num_threads(0);
/// ```
pub fn set_num_threads(n: usize) {
    ferrax_cpu::set_num_threads(n);
}
/// How many CPU devices this process is to have.
pub fn wanted_cpus() -> usize {
    match NUM_CPU.load(Ordering::Relaxed) {
        0 => num_cpus_of_environment(|name| std::env::var(name).ok()).max(1),
        n => n,
    }
}
/// The CPU devices of all processes, those of the first process first.
pub fn all_cpus() -> &'static [Device] {
    made(&CPUS, || {
        let each = processes::cpus_of_each().unwrap_or_else(|| vec![wanted_cpus()]);
        let owners = each.iter().enumerate().flat_map(|(process, n)| std::iter::repeat_n(process, *n));
        let device = |(i, process)| Device { process, ..Device::new(i, i, Arc::new(CpuBackend::new())) };
        owners.enumerate().map(device).collect()
    })
}
/// The CPU devices of this process.
pub fn cpus() -> &'static [Device] {
    let all = all_cpus();
    let first = all.iter().position(Device::is_local).unwrap_or(0);
    let n = all[first..].iter().take_while(|d| d.is_local()).count();
    &all[first..first + n]
}

/// `FERRAX_NUM_CPU_DEVICES`, else the number in `XLA_FLAGS`, which programs written for JAX set,
/// else one.
fn num_cpus_of_environment(var: impl Fn(&str) -> Option<String>) -> usize {
    let of_xla = || {
        let flags = var("XLA_FLAGS")?;
        flags
            .split_whitespace()
            .rev()
            .find_map(|f| f.strip_prefix("--xla_force_host_platform_device_count=")?.parse().ok())
    };
    var("FERRAX_NUM_CPU_DEVICES").and_then(|s| s.parse().ok()).or_else(of_xla).unwrap_or(1)
}

/// Whether CPU devices have been made.
pub fn has_cpus() -> bool {
    CPUS.get().is_some()
}

/// All GPUs, found at first use.
pub fn gpus() -> &'static [Device] {
    let first = all_cpus().len();
    made(&GPUS, || reachable(first))
}
/// The hardware of this machine, for reports: the instruction tiers, and each adapter with its
/// driver and limits, opened or not.
pub fn inventory() -> Vec<(String, Vec<(&'static str, String)>)> {
    let tier = |t: ferrax_cpu::Tier| {
        let used = if t == ferrax_cpu::Tier::current() { ", in use" } else { "" };
        (t.name(), format!("{}{used}", if t.is_available() { "here" } else { "not on this machine" }))
    };
    let mut all = vec![("tiers".to_string(), ferrax_cpu::Tier::ALL.map(tier).to_vec())];
    all.extend(adapters());
    all
}
#[cfg(feature = "gpu")]
fn adapters() -> Vec<(String, Vec<(&'static str, String)>)> {
    let said = ferrax_wgpu::adapters().into_iter().map(|a| {
        let (info, limits) = (a.get_info(), a.limits());
        let facts = vec![
            ("interface", info.backend.to_string()),
            ("kind", format!("{:?}", info.device_type)),
            ("driver", format!("{} {}", info.driver, info.driver_info).trim().to_string()),
            ("largest buffer", format!("{} bytes", limits.max_buffer_size)),
            ("largest binding", format!("{} bytes", limits.max_storage_buffer_binding_size)),
            ("bindings of a kernel", limits.max_storage_buffers_per_shader_stage.to_string()),
            ("invocations of a workgroup", limits.max_compute_invocations_per_workgroup.to_string()),
            ("memory of a workgroup", format!("{} bytes", limits.max_compute_workgroup_storage_size)),
        ];
        (info.name, facts)
    });
    said.collect()
}
#[cfg(not(feature = "gpu"))]
fn adapters() -> Vec<(String, Vec<(&'static str, String)>)> {
    vec![]
}
/// A device for each GPU, numbered from `first`.
#[cfg(feature = "gpu")]
fn reachable(first: usize) -> Vec<Device> {
    let device = |(i, backend): (usize, Arc<ferrax_wgpu::GpuBackend>)| Device::new(first + i, i, backend);
    let host: Arc<dyn Backend> = Arc::new(CpuBackend::new());
    ferrax_wgpu::devices(&host).into_iter().enumerate().map(device).collect()
}
#[cfg(not(feature = "gpu"))]
fn reachable(_: usize) -> Vec<Device> {
    vec![]
}

/// The GPUs, once they were requested.
pub fn found_gpus() -> &'static [Device] {
    GPUS.get().map_or(&[], |g| g)
}

/// Kinds of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    /// Cores of this machine.
    Cpu,
    /// Devices that Vulkan, Metal or Direct3D offer.
    Gpu,
}
impl Platform {
    /// As [`Device::platform`] returns it.
    pub fn name(self) -> &'static str {
        match self {
            Platform::Cpu => "cpu",
            Platform::Gpu => "gpu",
        }
    }
    /// All of them; looking for GPUs at first use.
    pub fn devices(self) -> &'static [Device] {
        match self {
            Platform::Cpu => cpus(),
            Platform::Gpu => gpus(),
        }
    }
}
impl Device {
    /// This device and the others of its platform, in all processes.
    pub fn platform_devices(&self) -> &'static [Device] {
        if self.platform() == Platform::Cpu.name() { all_cpus() } else { gpus() }
    }
}

// The settings of `set_platforms`: bits for the excluded platforms, and for the GPU as the first
// one. Above them the number of the device that `set_default_device` named, from 1.
static ORDER: AtomicUsize = AtomicUsize::new(0);
const NO_CPU: usize = 1;
const NO_GPU: usize = 2;
const GPU_FIRST: usize = 4;
const PLATFORMS: usize = 7;
const NAMED_SHIFT: u32 = 3;

/// Selects platforms, the default's first; an empty list selects all of them, the CPU first.
/// Devices of other platforms remain for arrays on them. Does not look for GPUs: if there is none,
/// the CPU is first.
pub fn set_platforms(order: &[Platform]) {
    let without = |p, bit| if order.is_empty() || order.contains(&p) { 0 } else { bit };
    let first = if order.first() == Some(&Platform::Gpu) { GPU_FIRST } else { 0 };
    let bits = without(Platform::Cpu, NO_CPU) | without(Platform::Gpu, NO_GPU) | first;
    let _ = ORDER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |o| Some(o & !PLATFORMS | bits));
}
/// The process's device for arrays without a placement; `None` for the first device of the first platform.
pub fn set_default_device(d: Option<&'static Device>) {
    let bits = d.map_or(0, |d| (d.id + 1) << NAMED_SHIFT);
    let _ = ORDER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |o| Some(o & PLATFORMS | bits));
}
/// The devices of a platform, none if it is left out.
pub fn offered(p: Platform) -> &'static [Device] {
    let bit = if p == Platform::Cpu { NO_CPU } else { NO_GPU };
    if ORDER.load(Ordering::Relaxed) & bit != 0 { &[] } else { p.devices() }
}

/// The devices of a platform (`cpu`, `gpu`), or an error that lists the platforms.
pub fn devices(platform: &str) -> Res<&'static [Device]> {
    let found = match platform {
        "cpu" => offered(Platform::Cpu),
        "gpu" => offered(Platform::Gpu),
        _ => &[],
    };
    match found {
        [] => Err(Error::new(
            ErrorKind::Runtime,
            format!(
                "Unknown backend {platform}\nknown here: cpu{}",
                if gpus().is_empty() { " (no GPU adapter was found)" } else { ", gpu" }
            ),
        )),
        d => Ok(d),
    }
}

/// The device whose `id` this is.
pub fn numbered(id: usize) -> Option<&'static Device> {
    all_cpus().get(id).or_else(|| gpus().iter().find(|d| d.id == id))
}
/// The first device of the first platform.
pub fn first_device() -> &'static Device {
    let gpu_first = ORDER.load(Ordering::Relaxed) & GPU_FIRST != 0;
    gpus_if(gpu_first).first().unwrap_or(&cpus()[0])
}
fn gpus_if(wanted: bool) -> &'static [Device] {
    if wanted { gpus() } else { &[] }
}
/// The device of arrays without a placement.
pub fn default_device() -> &'static Device {
    match ORDER.load(Ordering::Relaxed) {
        o if o >> NAMED_SHIFT == 0 => first_device(),
        o => numbered((o >> NAMED_SHIFT) - 1).unwrap_or_else(first_device),
    }
}
