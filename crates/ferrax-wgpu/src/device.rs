//! One adapter and its open device: errors, limits, counters, caches.
//!
//! INVARIANT: whatever the driver says is wrong ends as a [`ferrax_kernel::Error`]; nothing here panics over it. Once the device is
//! lost, everything answers with that error.
pub mod memory;
pub mod pipeline;

use crate::block_on::block_on;
use ferrax_kernel::{DType, Error, Res};
use memory::Pool;
use pipeline::Pipelines;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// How often the device was asked for what, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub dispatches: u64,
    pub submissions: u64,
    pub buffers: u64,
    pub pipelines: u64,
}

#[derive(Default)]
pub struct Counters {
    pub dispatches: AtomicU64,
    pub submissions: AtomicU64,
    pub buffers: AtomicU64,
    pub pipelines: AtomicU64,
}

pub struct Gpu {
    pub wgpu: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
    pub limits: wgpu::Limits,
    pub counters: Counters,
    pub pool: Mutex<Pool>,
    pub pipelines: Pipelines,
    /// The process that opened it: in a fork of that one the driver's threads are gone, and its locks may be stuck.
    process: u32,
    lost: Arc<OnceLock<String>>,
    /// The first error that came outside of an error scope.
    uncaptured: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens `adapter` with its own limits, or with `limits` where a test asks for less.
    ///
    /// # Errors
    /// `Unsupported` where the adapter lacks immediates or compute shaders, `Device` where the driver refuses.
    pub fn open(adapter: &wgpu::Adapter, limits: Option<wgpu::Limits>) -> Res<Arc<Gpu>> {
        let info = adapter.get_info();
        let features = wgpu::Features::IMMEDIATES;
        if !adapter.features().contains(features) {
            return Err(Error::Unsupported(format!("{}: the adapter has no immediates", info.name)));
        }
        let mut limits = limits.unwrap_or_else(|| adapter.limits());
        limits.max_immediate_size = pipeline::IMMEDIATE_BYTES;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("ferrax"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let failed = |e: wgpu::RequestDeviceError| Error::Device(format!("{}: {e}", info.name));
        let (wgpu, queue) = block_on(adapter.request_device(&descriptor)).map_err(failed)?;
        let lost = Arc::new(OnceLock::new());
        let on_lost = lost.clone();
        wgpu.set_device_lost_callback(move |reason, message| {
            let _ = on_lost.set(format!("the device is lost ({reason:?}): {message}"));
        });
        let uncaptured = Arc::new(Mutex::new(None));
        let on_error = uncaptured.clone();
        wgpu.on_uncaptured_error(Arc::new(move |e: wgpu::Error| {
            let mut first = on_error.lock().unwrap_or_else(|p| p.into_inner());
            first.get_or_insert_with(|| e.to_string());
        }));
        let (counters, pool, pipelines) = Default::default();
        let process = std::process::id();
        Ok(Arc::new(Gpu { wgpu, queue, info, limits, counters, pool, pipelines, process, lost, uncaptured }))
    }

    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Whether this process opened it, and is no fork of the one that did.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
    /// Fails if the device is another process's, if it is lost, or if an error came outside of an error scope. Nothing of the driver, and no
    /// lock, is touched before it.
    pub fn check(&self) -> Res<()> {
        if !self.is_ours() {
            return Err(Error::Device(format!(
                "{}: a process that was forked cannot use the GPU of its parent\nhelp: use cpu here, or start the process with multiprocessing's \"spawn\"",
                self.name()
            )));
        }
        if let Some(why) = self.lost.get() {
            return Err(Error::Device(format!("{}: {why}", self.name())));
        }
        match self.uncaptured.lock().unwrap_or_else(|p| p.into_inner()).take() {
            Some(why) => Err(Error::Device(format!("{}: {why}", self.name()))),
            None => Ok(()),
        }
    }

    /// Runs `f` under error scopes and turns what they caught into an error.
    pub fn scoped<T>(&self, what: &str, f: impl FnOnce() -> T) -> Res<T> {
        self.check()?;
        let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal];
        let mut scopes: Vec<_> = filters.into_iter().map(|f| self.wgpu.push_error_scope(f)).collect();
        let value = f();
        let mut caught = None;
        while let Some(scope) = scopes.pop() {
            caught = block_on(scope.pop()).or(caught);
        }
        match caught {
            Some(wgpu::Error::OutOfMemory { .. }) => {
                Err(Error::OutOfMemory(format!("{}: out of memory: {what}", self.name())))
            }
            Some(e) => Err(Error::Device(format!("{}: {what}: {e}", self.name()))),
            None => self.check().map(|()| value),
        }
    }

    /// Waits for all submitted work.
    pub fn wait(&self) -> Res<()> {
        let polled = self.wgpu.poll(wgpu::PollType::wait_indefinitely());
        self.check()?;
        polled.map(|_| ()).map_err(|e| Error::Device(format!("{}: {e}", self.name())))
    }

    /// The largest buffer that a kernel can see.
    pub fn max_bytes(&self) -> u64 {
        self.limits.max_buffer_size.min(self.limits.max_storage_buffer_binding_size)
    }

    pub fn supports(d: DType) -> bool {
        d.size() <= 4
    }
    pub fn require(&self, d: DType) -> Res<()> {
        if Gpu::supports(d) {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "{}: {} has no place on this device, which computes in 32 bits",
            self.name(),
            d.long()
        )))
    }

    pub fn counts(&self) -> Counts {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let c = &self.counters;
        Counts {
            dispatches: get(&c.dispatches),
            submissions: get(&c.submissions),
            buffers: get(&c.buffers),
            pipelines: get(&c.pipelines),
        }
    }
}

/// One more.
pub fn count(c: &AtomicU64) {
    c.fetch_add(1, Ordering::Relaxed);
}
