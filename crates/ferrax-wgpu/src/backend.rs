//! The backend: devices by enumeration, plans by [`crate::run`].
use crate::device::memory::{self, GpuMemory};
use crate::device::{Counts, Gpu};
use crate::run;
use ferrax_kernel::backend::{Backend, Executable};
use ferrax_kernel::{Buffer, DType, Res, Routine, VerifiedPlan};
use std::sync::{Arc, OnceLock};

/// One GPU.
pub struct GpuBackend {
    device: Arc<Gpu>,
}

/// All GPUs that can run plans, found at the first call: discrete ones first, software ones last.
pub fn devices() -> Vec<Arc<GpuBackend>> {
    static ALL: OnceLock<Vec<Arc<GpuBackend>>> = OnceLock::new();
    ALL.get_or_init(|| adapters().iter().filter_map(|a| GpuBackend::open(a, None).ok()).map(Arc::new).collect()).clone()
}

/// The adapters of this machine, in the order of [`devices`], each once.
pub fn adapters() -> Vec<wgpu::Adapter> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let mut all = crate::block_on::block_on(instance.enumerate_adapters(backends));
    let order = |a: &wgpu::Adapter| match a.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    all.sort_by_key(order);
    all
}

impl GpuBackend {
    /// A device on `adapter`; `limits` below the adapter's own are for tests.
    ///
    /// # Errors
    /// `Unsupported` where the adapter lacks what kernels need, `Device` where the driver refuses.
    pub fn open(adapter: &wgpu::Adapter, limits: Option<wgpu::Limits>) -> Res<GpuBackend> {
        Ok(GpuBackend { device: Gpu::open(adapter, limits)? })
    }
    /// What was asked of the device since it was opened.
    pub fn counts(&self) -> Counts {
        self.device.counts()
    }
    /// Takes the device away, as a driver that fails does.
    pub fn lose(&self) {
        self.device.wgpu.destroy();
        let _ = self.device.wgpu.poll(wgpu::PollType::Poll);
    }
    /// The device, if it may be used.
    fn usable(&self) -> Res<&Arc<Gpu>> {
        self.device.check().map(|()| &self.device)
    }
    fn buffer(&self, slab: Arc<memory::Slab>, bytes: usize) -> Buffer {
        Buffer::ready(GpuMemory { slab, bytes })
    }
}

impl Backend for GpuBackend {
    fn platform(&self) -> &'static str {
        "gpu"
    }
    fn description(&self) -> String {
        format!("{} ({})", self.device.info.name, self.device.info.backend)
    }
    fn supports(&self, d: DType) -> bool {
        Gpu::supports(d)
    }
    fn runs(&self, r: &Routine) -> bool {
        !matches!(r, Routine::Fft(_) | Routine::Linalg(_))
    }
    fn memory(&self) -> Option<usize> {
        None
    }
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>> {
        Ok(Arc::new(run::CompiledPlan::new(self.usable()?, plan)?))
    }
    fn upload(&self, bytes: &[u8]) -> Res<Buffer> {
        Ok(self.buffer(memory::upload(self.usable()?, bytes)?, bytes.len()))
    }
    fn zeros(&self, bytes: usize) -> Res<Buffer> {
        Ok(self.buffer(memory::zeros(self.usable()?, bytes)?, bytes))
    }
    fn download(&self, b: &Buffer) -> Res<Vec<u8>> {
        let device = self.usable()?;
        memory::download(device, &*memory::slab_of(device, b)?, b.bytes(), None)
    }
}
