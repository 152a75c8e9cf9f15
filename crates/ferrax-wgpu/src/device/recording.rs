//! What all runs of a device record, one encoder, until it is submitted: eager operations are submitted together.
//!
//! Commands are submitted when there are many or they do much work, and before the host waits, reads or asks whether a result is there. A run of few
//! commands may leave them recorded. So at most [`DEFERRED`] commands, of a fraction of a submission's time, wait for the next run.
//!
//! INVARIANT: every command of an epoch is submitted at once, and its outcome is that of all arrays that it makes.
use super::counters::{add, count};
use super::memory::Slab;
use super::pipeline::{IMMEDIATE_BYTES, Pipeline};
use super::{Epoch, Gpu, memory};
use ferrax_kernel::Res;
use ferrax_kernel::backend::Look;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use wgpu::SubmissionIndex;

/// The number of commands after which they are submitted, within a run; and at its end.
const BATCH: usize = 512;
const DEFERRED: usize = 32;
/// The part of a submission's work that is submitted at the end of a run.
const DEFERRED_PART: u64 = 500;

#[derive(Default)]
struct Open {
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    commands: usize,
    /// Scalar operations of the commands.
    work: u64,
    epoch: Arc<Epoch>,
    /// The one before.
    last: Option<Arc<Epoch>>,
}

#[derive(Default)]
pub struct Recording(Mutex<Open>);

/// One command: `groups` workgroups, numbered from `base` on.
pub struct Dispatch<'a> {
    pub pipeline: &'a Pipeline,
    pub bound: &'a wgpu::BindGroup,
    pub groups: (u32, u32),
    pub base: u32,
    /// Workgroups in a row of all.
    pub width: u32,
    pub immediates: &'a [u32],
    pub work: u64,
}

impl Gpu {
    fn now(&self) -> MutexGuard<'_, Open> {
        self.recording.0.lock().unwrap_or_else(|p| p.into_inner())
    }
    fn encoder<'a>(&self, open: &'a mut Open) -> &'a mut wgpu::CommandEncoder {
        self.recorded.store(true, Ordering::Release);
        open.encoder.get_or_insert_with(|| self.wgpu.create_command_encoder(&Default::default()))
    }
    /// Records a command; submits if they exceed `budget`, or are many.
    pub fn dispatch(&self, d: &Dispatch, budget: u64) -> Res<()> {
        let mut open = self.now();
        if open.commands > 0 && open.work.saturating_add(d.work) > budget {
            self.submit(&mut open, || ())?;
        }
        count(&self.counters.dispatches);
        if open.pass.is_none() {
            let pass = self.encoder(&mut open).begin_compute_pass(&Default::default()).forget_lifetime();
            open.pass = Some(pass);
        }
        let Open { pass: Some(pass), .. } = &mut *open else { return Ok(()) };
        pass.set_pipeline(&d.pipeline.raw);
        pass.set_bind_group(0, d.bound, &[]);
        let mut words = [0; IMMEDIATE_BYTES as usize / 4];
        (words[0], words[1]) = (d.base, d.width);
        words[2..2 + d.immediates.len()].copy_from_slice(d.immediates);
        pass.set_immediates(0, bytemuck::cast_slice(&words[..2 + d.immediates.len()]));
        pass.dispatch_workgroups(d.groups.0, d.groups.1, 1);
        open.commands += 1;
        open.work = open.work.saturating_add(d.work);
        if open.commands >= BATCH { self.submit(&mut open, || ()) } else { Ok(()) }
    }
    /// Records that a slab is cleared; the commands that do it.
    pub fn clear(&self, slab: &Slab) -> Arc<Epoch> {
        let mut open = self.now();
        drop(open.pass.take());
        self.encoder(&mut open).clear_buffer(slab.raw(), 0, None);
        open.commands += 1;
        open.work = open.work.saturating_add(slab.size());
        open.epoch.clone()
    }
    /// Submits what is recorded, and after it a copy of the first `bytes` bytes to a buffer that `map` maps.
    pub fn copy_out<T>(
        &self,
        from: &Slab,
        to: &Slab,
        bytes: u64,
        map: impl FnOnce() -> T,
    ) -> Res<(SubmissionIndex, T)> {
        let mut open = self.now();
        drop(open.pass.take());
        self.encoder(&mut open).copy_buffer_to_buffer(from.raw(), 0, to.raw(), 0, bytes);
        open.work = open.work.saturating_add(bytes);
        let epoch = open.epoch.clone();
        let mapped = self.submit(&mut open, map)?;
        Ok((self.submission(&epoch)?, mapped))
    }

    /// Hands everything recorded to the device, then calls `f`, whose errors are found with those of the submission.
    fn submit<T>(&self, open: &mut Open, f: impl FnOnce() -> T) -> Res<T> {
        drop(open.pass.take());
        let encoder = open.encoder.take();
        let (epoch, work) = (std::mem::take(&mut open.epoch), std::mem::take(&mut open.work));
        open.commands = 0;
        count(&self.counters.submissions);
        self.pace.given(work);
        let made = {
            let mut last = self.last.lock().unwrap_or_else(|p| p.into_inner());
            let submit = || (self.queue.submit(encoder.map(wgpu::CommandEncoder::finish)), f());
            let made = self.scoped("a submission", submit);
            *last = made.as_ref().ok().map(|(index, _)| index.clone()).or(last.take());
            made
        };
        let index = made.as_ref().map(|(index, _)| index.clone()).map_err(Clone::clone);
        epoch.set(index);
        open.last = Some(epoch);
        self.recorded.store(false, Ordering::Release);
        add(&self.epochs, 1);
        memory::destroy_doomed(self);
        made.map(|(_, value)| value)
    }
    /// Hands everything recorded to the device.
    pub fn flush(&self) -> Res<()> {
        let mut open = self.now();
        if open.encoder.is_some() { self.submit(&mut open, || ()) } else { Ok(()) }
    }
    /// The end of a run: the commands that made its results, some of which may only be recorded.
    pub fn end_of_run(&self) -> Res<Option<Arc<Epoch>>> {
        self.check()?;
        let mut open = self.now();
        if open.encoder.is_some() && (open.commands >= DEFERRED || open.work >= self.pace.budget() / DEFERRED_PART) {
            self.submit(&mut open, || ())?;
        }
        Ok(if open.encoder.is_some() { Some(open.epoch.clone()) } else { open.last.clone() })
    }

    /// The submission of an epoch, made if it is not.
    fn submission(&self, epoch: &Epoch) -> Res<SubmissionIndex> {
        if epoch.outcome().is_none() {
            // an error is the epoch's, too
            drop(self.flush());
        }
        let nothing = || ferrax_kernel::Error::Device(format!("{}: nothing was submitted", self.name()));
        epoch.outcome().unwrap_or_else(|| Err(nothing()))
    }
    /// Whether the commands of an epoch are done, well or badly.
    pub fn is_done(&self, epoch: &Epoch) -> bool {
        !self.is_ours() || self.is_lost() || self.submission(epoch).map_or(true, |index| self.has_done(&index))
    }
    /// Waits until the commands of an epoch are done, and returns their error.
    pub fn wait(&self, epoch: &Epoch, look: &mut Look) -> Res<()> {
        self.check()?;
        let index = self.submission(epoch)?;
        self.wait_for(&index, look)
    }
}
