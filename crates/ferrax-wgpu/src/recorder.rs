//! Recorded commands: one encoder and one compute pass until they are submitted.
//!
//! INVARIANT: a slab that is returned here is reused at once by later commands (they run in order), but reaches the pool, where
//! other threads can take it, only after the commands that used it were submitted.
use crate::device::Gpu;
use crate::device::counters::{add, count};
use crate::device::memory::{self, Slab, Use};
use crate::device::pipeline::{Pipeline, Source, pipeline};
use crate::task::{Limits, Pass, Reg, Task};
use crate::wgsl;
use ferrax_kernel::Res;
use ferrax_kernel::backend::Look;
use std::sync::Arc;

/// The number of commands after which they are submitted.
const BATCH: usize = 512;

/// Copies of bytes, words where everything is aligned to them: immediates are from, to, count (in bytes or words), groups in x.
#[derive(Clone)]
pub struct Copiers {
    words: Arc<Pipeline>,
    bytes: Arc<Pipeline>,
}

impl Copiers {
    pub fn new(device: &Gpu) -> Res<Copiers> {
        let size = Limits::of(&device.limits).workgroup;
        let text = |body: &str| {
            let head = wgsl::bindings(1, 1);
            let p = wgsl::parameters("p");
            let body =
                format!("{p}let n = (workgroup.y * p.w + workgroup.x + immediates.base) * {size}u + local;\n{body}");
            Source { reads: 1, writes: 1, wgsl: wgsl::wrapped(head, size, (1, 1), &body) }
        };
        let words = "if (n >= p.z) { return; }\nout0[p.y + n] = in0[p.x + n];\n";
        // One word of the target each; its bytes outside of the range stay.
        let bytes = "let word = p.y / 4u + n;
if (word * 4u >= p.y + p.z) { return; }
var new_word = out0[word];
for (var b = 0u; b < 4u; b++) {
  let at = word * 4u + b;
  if (at >= p.y && at < p.y + p.z) {
    let x = byte_of(in0[(p.x + at - p.y) / 4u], i32((p.x + at - p.y) & 3u));
    new_word = (new_word & ~(0xffu << (b * 8u))) | (x << (b * 8u));
  }
}
out0[word] = new_word;
";
        Ok(Copiers { words: pipeline(device, text(words))?, bytes: pipeline(device, text(bytes))? })
    }
}

pub struct Recorder<'a> {
    pub device: &'a Arc<Gpu>,
    copiers: &'a Copiers,
    limits: Limits,
    open: Option<(wgpu::ComputePass<'static>, wgpu::CommandEncoder)>,
    retired: Vec<Arc<Slab>>,
    recorded: usize,
    /// Scalar operations of the recorded commands.
    work: u64,
    budget: u64,
}

impl<'a> Recorder<'a> {
    pub fn new(device: &'a Arc<Gpu>, copiers: &'a Copiers) -> Recorder<'a> {
        let (limits, budget) = (Limits::of(&device.limits), device.pace.budget().max(1));
        Recorder { device, copiers, limits, open: None, retired: vec![], recorded: 0, work: 0, budget }
    }
    /// A slab of at least `bytes`: one that was given back if it fits, else from the pool.
    pub fn slab(&mut self, bytes: usize) -> Res<Arc<Slab>> {
        match self.retired.iter().rposition(|s| s.fits(bytes)) {
            Some(i) => Ok(self.retired.swap_remove(i)),
            None => Slab::new(self.device, Use::Storage, bytes),
        }
    }
    /// Gives up one reference; if it was the last the slab can be used again.
    pub fn retire(&mut self, slab: Arc<Slab>) {
        if Arc::strong_count(&slab) == 1 {
            self.retired.push(slab);
        }
    }

    /// Commands for all workgroups, of about so much `work`: split if it exceeds the limit of a
    /// submission.
    fn dispatch(
        &mut self,
        p: &Pipeline,
        buffers: &[&Slab],
        groups: (u32, u32),
        immediates: [u32; 4],
        work: u64,
    ) -> Res<()> {
        let bound = buffers.iter().map(|b| b.raw().clone()).collect();
        let group = self.device.bind_groups.of(self.device, p, bound);
        for (base, part, work) in parts(groups, work, self.budget) {
            self.put(p, &group, part, base, immediates, work)?;
        }
        let bytes = buffers.iter().map(|b| b.size()).sum();
        add(&self.device.counters.bound_bytes, bytes);
        Ok(())
    }
    /// One command: `groups` workgroups, numbered from `base` on.
    fn put(
        &mut self,
        p: &Pipeline,
        group: &wgpu::BindGroup,
        groups: (u32, u32),
        base: u32,
        [x, y, z, w]: [u32; 4],
        work: u64,
    ) -> Res<()> {
        if self.recorded > 0 && self.work.saturating_add(work) > self.budget {
            self.submit()?;
        }
        count(&self.device.counters.dispatches);
        let (pass, _) = self.open.get_or_insert_with(|| {
            let mut encoder = self.device.wgpu.create_command_encoder(&Default::default());
            (encoder.begin_compute_pass(&Default::default()).forget_lifetime(), encoder)
        });
        pass.set_pipeline(&p.raw);
        pass.set_bind_group(0, group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(&[x, y, z, w, base, 0, 0, 0]));
        pass.dispatch_workgroups(groups.0, groups.1, 1);
        self.recorded += 1;
        self.work = self.work.saturating_add(work);
        if self.recorded >= BATCH { self.submit() } else { Ok(()) }
    }

    /// Ends the recording.
    fn close(&mut self) -> Option<(wgpu::CommandEncoder, u64)> {
        self.recorded = 0;
        let work = std::mem::take(&mut self.work);
        let (pass, encoder) = self.open.take()?;
        drop(pass);
        Some((encoder, work))
    }
    /// Hands everything recorded to the device.
    pub fn submit(&mut self) -> Res<()> {
        if let Some((encoder, work)) = self.close() {
            self.device.submit(encoder, work)?;
        }
        self.retired.clear();
        self.device.check()
    }
    /// The first `bytes` bytes of `slab`, once everything recorded has run.
    pub fn read(&mut self, slab: &Slab, bytes: usize, look: &mut Look) -> Res<Vec<u8>> {
        let recorded = self.close();
        let read = memory::download(self.device, slab, bytes, recorded, look);
        self.retired.clear();
        read
    }

    /// `bytes` bytes of `from` at `from_at` to `to` at `to_at`, two slabs.
    pub fn copy(&mut self, from: &Slab, from_at: usize, to: &Slab, to_at: usize, bytes: usize) -> Res<()> {
        if bytes == 0 {
            return Ok(());
        }
        let unit = if [from_at, to_at, bytes].iter().all(|n| n % 4 == 0) { 4 } else { 1 };
        let threads = if unit == 4 { bytes / 4 } else { (to_at % 4 + bytes).div_ceil(4) };
        let groups = self.limits.groups_for(threads);
        let copiers = self.copiers;
        let p = if unit == 4 { &copiers.words } else { &copiers.bytes };
        let at = [from_at / unit, to_at / unit, bytes / unit].map(|n| n as u32);
        self.dispatch(p, &[from, to], groups, [at[0], at[1], at[2], groups.0], 16 * threads as u64)
    }

    /// The passes of `task` over its inputs and outputs.
    pub fn task(&mut self, task: &Task<Arc<Pipeline>>, ins: &[Arc<Slab>], outs: &[Arc<Slab>]) -> Res<()> {
        let scratch: Vec<Arc<Slab>> = task.scratch.iter().map(|bytes| self.slab(*bytes)).collect::<Res<_>>()?;
        let at = |r: &Reg| -> &Slab {
            match r {
                Reg::In(i) => &ins[*i],
                Reg::Out(i) => &outs[*i],
                Reg::Scratch(i) => &scratch[*i],
            }
        };
        for pass in &task.passes {
            match pass {
                Pass::Run { pipeline, reads, writes, groups, immediates, work } => {
                    let buffers: Vec<&Slab> = reads.iter().chain(writes).map(at).collect();
                    self.dispatch(pipeline, &buffers, *groups, *immediates, *work)?;
                }
                Pass::Copy { from, from_at, to, to_at, bytes } => {
                    self.copy(at(from), *from_at, at(to), *to_at, *bytes)?
                }
            }
        }
        scratch.into_iter().for_each(|s| self.retire(s));
        Ok(())
    }
}

/// `groups` workgroups that do `work` as pieces of at most `budget`, where they can be cut: the first workgroup's number, how many there are,
/// and their share. Whole rows where there are several.
fn parts(groups: (u32, u32), work: u64, budget: u64) -> impl Iterator<Item = (u32, (u32, u32), u64)> {
    let all = if groups.1 > 1 { groups.1 } else { groups.0 };
    let pieces = work.div_ceil(budget.max(1)).clamp(1, all.max(1) as u64);
    let each = (all as u64).div_ceil(pieces).max(1) as u32;
    (0..all.div_ceil(each)).map(move |i| {
        let n = each.min(all - i * each);
        let share = (work as f64 * n as f64 / all as f64) as u64;
        if groups.1 > 1 { (i * each * groups.0, (groups.0, n), share) } else { (i * each, (n, groups.1), share) }
    })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn parts_are_all_workgroups_once() {
        for (groups, work, budget) in [
            ((1, 1), 9, 2),
            ((10, 1), 0, 5),
            ((10, 1), 100, 30),
            ((7, 1), u64::MAX, 1),
            ((65535, 9), 90, 20),
            ((3, 2), 6, 6),
        ] {
            let all: Vec<_> = parts(groups, work, budget).collect();
            let mut next = 0;
            for (base, (x, y), share) in &all {
                assert_eq!(*base, next, "{groups:?}");
                assert!(*x > 0 && *y > 0 && (groups.1 == 1 || *x == groups.0), "{groups:?}");
                assert!(*share <= budget || *x == 1 || *y == 1, "{groups:?}: {share}");
                next += x * y;
            }
            assert_eq!(next, groups.0 * groups.1, "{groups:?}");
            assert!(work > budget || all.len() == 1, "{groups:?}");
        }
    }
}
