//! One adapter and its open device: errors, limits, counters, caches.
//!
//! INVARIANT: every error of the driver becomes a [`ferrax_kernel::Error`]; none causes a panic. Once the device is
//! lost, every operation returns that error.
mod bindings;
pub mod counters;
mod epoch;
pub mod memory;
mod pace;
pub mod pipeline;
mod recording;

pub use counters::Counts;
pub use epoch::Epoch;
pub use recording::Dispatch;

use crate::block_on::block_on;
use bindings::BindGroups;
use counters::{Counters, count};
use ferrax_kernel::backend::{Look, MemoryStats};
use ferrax_kernel::{Error, Res};
use memory::Pool;
use pace::Pace;
use pipeline::Pipelines;
use recording::Recording;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use wgpu::{PollError, PollType, SubmissionIndex};

/// The time limit of one poll of the driver; between polls the waiting thread checks whether to
/// continue.
const SLICE: Duration = Duration::from_millis(20);
/// How long a wait asks again and again before it sleeps: the shortest sleep of a system takes as long as many submissions.
const SPIN: Duration = Duration::from_micros(200);
/// The longest sleep between two questions whether a submission has been done; shorter ones are a part of the time that it has taken so far.
const MAX_SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: u32 = 16;

pub struct Gpu {
    pub wgpu: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
    pub limits: wgpu::Limits,
    pub counters: Counters,
    pub memory: counters::Memory,
    pub pool: Mutex<Pool>,
    pub pipelines: Pipelines,
    pub bind_groups: BindGroups,
    pub pace: Pace,
    recording: Recording,
    /// Whether there are commands that are recorded only.
    recorded: AtomicBool,
    /// How many epochs there have been.
    epochs: AtomicU64,
    /// The last submission.
    last: Mutex<Option<SubmissionIndex>>,
    /// The process that opened it: in a fork of that one the driver's threads are gone, and its locks may be stuck.
    process: u32,
    lost: Arc<OnceLock<String>>,
    /// The first error that came outside of an error scope.
    uncaptured: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// # Errors
    /// `Unsupported` if the adapter lacks features that kernels need.
    pub fn suits(adapter: &wgpu::Adapter) -> Res<()> {
        let bytes = adapter.limits().max_immediate_size;
        if adapter.features().contains(wgpu::Features::IMMEDIATES) && bytes >= pipeline::IMMEDIATE_BYTES {
            return Ok(());
        }
        Err(Error::Unsupported(format!("{}: the adapter has too few immediates", adapter.get_info().name)))
    }
    /// Opens `adapter` with `limits`: its own, or smaller ones for a test.
    ///
    /// # Errors
    /// `Unsupported` if the adapter lacks immediates or compute shaders, `Device` if the driver
    /// refuses.
    pub fn open(adapter: &wgpu::Adapter, mut limits: wgpu::Limits) -> Res<Arc<Gpu>> {
        let info = adapter.get_info();
        Gpu::suits(adapter)?;
        let features = wgpu::Features::IMMEDIATES;
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
        let (counters, memory, pool, pipelines, bind_groups) = Default::default();
        let process = std::process::id();
        let (pace, last) = (Pace::new(info.device_type, pace::fixed()?), Mutex::default());
        Ok(Arc::new(Gpu {
            wgpu,
            queue,
            info,
            limits,
            counters,
            memory,
            pool,
            pipelines,
            bind_groups,
            pace,
            recording: Recording::default(),
            recorded: AtomicBool::new(false),
            epochs: AtomicU64::new(0),
            last,
            process,
            lost,
            uncaptured,
        }))
    }

    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Whether this process opened it, and is no fork of the one that did.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
    /// Whether it was taken away, and will never work again.
    pub fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }
    /// Fails if the device is another process's, if it is lost, or if an error came outside of an error scope. Nothing of the driver, and no
    /// lock, is touched before it.
    pub fn check(&self) -> Res<()> {
        if !self.is_ours() {
            return Err(of_another_process(self.name()));
        }
        if let Some(why) = self.lost.get() {
            return Err(Error::Device(format!(
                "{}: {why}; arrays on it are gone, and the next that is put there opens it anew",
                self.name()
            )));
        }
        match self.uncaptured.lock().unwrap_or_else(|p| p.into_inner()).take() {
            Some(why) => Err(Error::Device(format!("{}: {why}", self.name()))),
            None => Ok(()),
        }
    }

    /// Runs `f` under error scopes and returns the error that they caught.
    pub fn scoped<T>(&self, what: &str, f: impl FnOnce() -> T) -> Res<T> {
        self.check()?;
        count(&self.counters.error_scopes);
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
            Some(e) => self.check().and_then(|()| Err(Error::Device(format!("{}: {what}: {e}", self.name())))),
            None => self.check().map(|()| value),
        }
    }

    /// The latest submission: done when all others are.
    fn last(&self) -> Option<SubmissionIndex> {
        self.last.lock().unwrap_or_else(|p| p.into_inner()).clone()
    }
    /// `Timeout` while a submission is not complete. One thread polls at a time, and none while
    /// another submits: the library compares an index that it read before with a queue that other
    /// threads may have emptied since, and panics.
    fn poll(&self, index: &SubmissionIndex) -> Result<(), PollError> {
        let _one = self.last.lock().unwrap_or_else(|p| p.into_inner());
        let now = PollType::Wait { submission_index: Some(index.clone()), timeout: Some(Duration::ZERO) };
        self.wgpu.poll(now).map(|_| ())
    }
    /// Whether a submission has been done, well or badly.
    fn has_done(&self, index: &SubmissionIndex) -> bool {
        !self.is_ours() || self.is_lost() || !matches!(self.poll(index), Err(PollError::Timeout))
    }
    /// Waits until a submission is complete, and returns its error. Calls `look` meanwhile, whose
    /// error ends the wait.
    pub fn wait_for(&self, index: &SubmissionIndex, look: &mut Look) -> Res<()> {
        count(&self.counters.waits);
        let mut seen = false;
        let (begun, mut looked) = (Instant::now(), Instant::now());
        loop {
            self.check()?;
            match self.poll(index) {
                Ok(()) => break,
                Err(PollError::Timeout) => {
                    seen = true;
                    if looked.elapsed() >= SLICE {
                        look()?;
                        looked = Instant::now();
                    }
                    let waited = begun.elapsed();
                    if waited < SPIN {
                        std::thread::yield_now();
                    } else {
                        std::thread::sleep((waited / SLEEPS).min(MAX_SLEEP));
                    }
                }
                Err(e) => {
                    self.check()?;
                    return Err(Error::Device(format!("{}: {e}", self.name())));
                }
            }
        }
        if self.last().is_some_and(|last| self.has_done(&last)) {
            self.pace.idle(seen);
        }
        self.check()
    }
    /// Waits for all that has been recorded.
    pub fn drain(&self, look: &mut Look) -> Res<()> {
        self.check()?;
        self.flush()?;
        self.last().map_or(Ok(()), |last| self.wait_for(&last, look))
    }

    /// The largest buffer that a kernel can see.
    pub fn max_bytes(&self) -> u64 {
        self.limits.max_buffer_size.min(self.limits.max_storage_buffer_binding_size)
    }

    pub fn memory_stats(&self) -> MemoryStats {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let kept = self.pool.lock().unwrap_or_else(|p| p.into_inner()).bytes();
        let m = &self.memory;
        MemoryStats {
            requests: get(&m.requests),
            in_use: get(&m.in_use),
            peak: get(&m.peak),
            largest: get(&m.largest),
            kept,
        }
    }
}

/// The error for a forked process that uses a device found by its parent.
pub fn of_another_process(name: &str) -> Error {
    Error::Device(format!(
        "{name}: a process that was forked cannot use the GPU of its parent\nhelp: use cpu here, or start the process with multiprocessing's \"spawn\""
    ))
}
