//! The backend: one adapter, opened at first use and reopened after a loss; [`crate::run`] runs plans.
use crate::adapters;
use crate::device::memory::{self, GpuMemory, Slab};
use crate::device::{self, Counts, Gpu, pipeline};
use crate::run::{self, CompiledPlan};
use ferrax_kernel::backend::{Backend, Buffers, Executable, Look, MemoryStats, RunArg, RunCx};
use ferrax_kernel::{Buffer, DType, Plan, Res, Routine, VerifiedPlan};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// One GPU.
pub struct GpuBackend {
    opening: Arc<Opening>,
}

/// An adapter, and the device that it was last opened as.
struct Opening {
    adapter: wgpu::Adapter,
    info: wgpu::AdapterInfo,
    /// The adapter's own, or fewer for a test.
    limits: wgpu::Limits,
    /// Runs operations that the device lacks.
    host: Arc<dyn Backend>,
    /// The process that found the adapter: a fork of it has none of the driver's threads.
    process: u32,
    device: Mutex<Option<Arc<Gpu>>>,
    /// What was uploaded of a few bytes: literals of eager operations. They are never written, as this is an owner.
    scalars: Mutex<HashMap<SmallVec<[u8; SCALAR]>, Arc<Slab>>>,
}

/// Bytes of an upload that is shared, at most; and how many are.
const SCALAR: usize = 8;
const MAX_SCALARS: usize = 256;

/// All GPUs that can run plans, found at the first call and not opened: those of
/// [`adapters()`](adapters::adapters) that `FERRAX_GPU` selects; without it, all that do not
/// compute on the processor's cores. `host` runs operations that they lack.
pub fn devices(host: &Arc<dyn Backend>) -> Vec<Arc<GpuBackend>> {
    static ALL: OnceLock<Vec<Arc<GpuBackend>>> = OnceLock::new();
    let found = || adapters::chosen().into_iter().filter(|a| Gpu::suits(a).is_ok());
    ALL.get_or_init(|| found().map(|a| Arc::new(GpuBackend::closed(a, None, host.clone()))).collect()).clone()
}

impl Opening {
    fn held(&self) -> MutexGuard<'_, Option<Arc<Gpu>>> {
        self.device.lock().unwrap_or_else(|p| p.into_inner())
    }
    /// The device if it is open.
    fn opened(&self) -> Option<Arc<Gpu>> {
        if self.process == std::process::id() { self.held().clone() } else { None }
    }
    /// The device, opened if it is not, or was lost.
    fn device(&self) -> Res<Arc<Gpu>> {
        if self.process != std::process::id() {
            return Err(device::of_another_process(&self.info.name));
        }
        let mut held = self.held();
        if let Some(device) = held.as_ref().filter(|d| !d.is_lost()) {
            return device.check().map(|()| device.clone());
        }
        let device = Gpu::open(&self.adapter, self.limits.clone())?;
        self.scalars().clear();
        *held = Some(device.clone());
        Ok(device)
    }
    fn scalars(&self) -> MutexGuard<'_, HashMap<SmallVec<[u8; SCALAR]>, Arc<Slab>>> {
        self.scalars.lock().unwrap_or_else(|p| p.into_inner())
    }
    fn uploaded(&self, bytes: &[u8]) -> Res<Arc<Slab>> {
        let device = self.device()?;
        if bytes.is_empty() || bytes.len() > SCALAR {
            return memory::upload(&device, bytes);
        }
        let mut known = self.scalars();
        if let Some(slab) = known.get(bytes).filter(|slab| slab.is_of(&device)) {
            return Ok(slab.clone());
        }
        if known.len() >= MAX_SCALARS {
            known.clear();
        }
        let slab = memory::upload(&device, bytes)?;
        known.insert(bytes.into(), slab.clone());
        Ok(slab)
    }
}

impl GpuBackend {
    /// A device on `adapter`, to be opened at first use; `limits` below the adapter's own are for tests.
    pub fn closed(adapter: wgpu::Adapter, limits: Option<wgpu::Limits>, host: Arc<dyn Backend>) -> GpuBackend {
        let limits = limits.unwrap_or_else(|| adapter.limits());
        let (info, process) = (adapter.get_info(), std::process::id());
        GpuBackend {
            opening: Arc::new(Opening {
                adapter,
                info,
                limits,
                host,
                process,
                device: Mutex::default(),
                scalars: Mutex::default(),
            }),
        }
    }
    /// The same, opened at once.
    ///
    /// # Errors
    /// `Unsupported` if the adapter lacks features that kernels need, `Device` if the driver
    /// refuses.
    pub fn open(adapter: &wgpu::Adapter, limits: Option<wgpu::Limits>, host: Arc<dyn Backend>) -> Res<GpuBackend> {
        let backend = GpuBackend::closed(adapter.clone(), limits, host);
        backend.opening.device().map(|_| backend)
    }
    /// Whether it has been used.
    pub fn is_open(&self) -> bool {
        self.opening.opened().is_some()
    }
    /// The requests to the device since it was opened.
    pub fn counts(&self) -> Counts {
        self.opening.opened().map_or_else(Counts::default, |d| d.counters.now())
    }
    /// The WGSL of the shaders it was given lately.
    pub fn shaders(&self) -> Vec<String> {
        self.opening.opened().map_or_else(Vec::new, |d| pipeline::sources(&d))
    }
    /// Takes the device away, as a driver that fails does.
    pub fn lose(&self) {
        if let Some(device) = self.opening.opened() {
            device.wgpu.destroy();
            let _ = device.wgpu.poll(wgpu::PollType::Wait {
                submission_index: None,
                timeout: Some(std::time::Duration::from_secs(10)),
            });
        }
    }
}

impl Backend for GpuBackend {
    fn platform(&self) -> &'static str {
        "gpu"
    }
    fn description(&self) -> String {
        format!("{} ({})", self.opening.info.name, self.opening.info.backend)
    }
    /// Arrays of any dtype are kept; the host computes with those of 64 bits.
    fn supports(&self, _: DType) -> bool {
        true
    }
    fn runs(&self, r: &Routine) -> bool {
        run::has_routine(r)
    }
    fn asks_host(&self, plan: &Plan) -> bool {
        plan.branches() || plan.any_step(&run::is_for_host)
    }
    fn memory(&self) -> Option<usize> {
        None
    }
    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(self.opening.opened().map_or_else(MemoryStats::default, |d| d.memory_stats()))
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts().named()
    }
    fn memory_kind(&self) -> u32 {
        match self.opening.info.backend {
            wgpu::Backend::Vulkan => 7,
            wgpu::Backend::Metal => 8,
            _ => 12, // one that DLPack has no name for
        }
    }
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>> {
        let compiled = CompiledPlan::new(&self.opening.device()?, &self.opening.host, plan.clone())?;
        Ok(Arc::new(Program { opening: self.opening.clone(), plan, compiled: Mutex::new(Arc::new(compiled)) }))
    }
    fn upload(&self, bytes: &[u8]) -> Res<Buffer> {
        let slab = self.opening.uploaded(bytes)?;
        Ok(Buffer::ready(GpuMemory { slab, bytes: bytes.len(), made: None }))
    }
    fn zeros(&self, bytes: usize) -> Res<Buffer> {
        let device = self.opening.device()?;
        let (slab, made) = memory::zeros(&device, bytes)?;
        Ok(Buffer::ready(GpuMemory { slab, bytes, made: Some(made) }))
    }
    fn read(&self, b: &Buffer, look: &mut Look) -> Res<Vec<u8>> {
        let device = self.opening.device()?;
        memory::download(&device, &*memory::slab_of(&device, b)?, b.bytes(), look)
    }
    fn drain(&self, look: &mut Look) -> Res<()> {
        self.opening.opened().map_or(Ok(()), |d| d.drain(look))
    }
}

/// A plan, compiled for the device as it was last opened.
struct Program {
    opening: Arc<Opening>,
    plan: VerifiedPlan,
    compiled: Mutex<Arc<CompiledPlan>>,
}

impl Program {
    fn held(&self) -> MutexGuard<'_, Arc<CompiledPlan>> {
        self.compiled.lock().unwrap_or_else(|p| p.into_inner())
    }
    fn current(&self) -> Res<Arc<CompiledPlan>> {
        let device = self.opening.device()?;
        let mut held = self.held();
        if !held.is_for(&device) {
            *held = Arc::new(CompiledPlan::new(&device, &self.opening.host, self.plan.clone())?);
        }
        Ok(held.clone())
    }
}

impl Executable for Program {
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> Res<Buffers> {
        self.current()?.run(cx, args)
    }
    fn plan(&self) -> &Plan {
        &self.plan
    }
    fn text(&self) -> String {
        self.held().text()
    }
}
