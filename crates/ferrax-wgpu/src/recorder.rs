//! Tasks and copies as commands of the device's recording, cut where they would exceed the time of a submission.
use crate::device::counters::add;
use crate::device::memory::{Slab, Use};
use crate::device::pipeline::{Pipeline, Source, pipeline};
use crate::device::{Dispatch, Gpu};
use crate::task::{Limits, Pass, Reg, Task};
use crate::wgsl;
use ferrax_kernel::Res;
use std::sync::Arc;

/// Copies of bytes, words where everything is aligned to them: immediates are from, to, count (in bytes or words).
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
            let body = format!(
                "{p}let n = (workgroup.y * immediates.width + workgroup.x + immediates.base) * {size}u + local;\n{body}"
            );
            Source { reads: 1, writes: 1, wgsl: wgsl::wrapped(head, size, &body) }
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

/// What a run records with.
pub struct Recorder<'a> {
    pub device: &'a Arc<Gpu>,
    copiers: &'a Copiers,
    limits: Limits,
    budget: u64,
}

impl<'a> Recorder<'a> {
    pub fn new(device: &'a Arc<Gpu>, copiers: &'a Copiers) -> Recorder<'a> {
        Recorder { device, copiers, limits: Limits::of(&device.limits), budget: device.pace.budget().max(1) }
    }
    /// A slab of at least `bytes`.
    pub fn slab(&self, bytes: usize) -> Res<Arc<Slab>> {
        Slab::new(self.device, Use::Storage, bytes)
    }

    /// Commands for all workgroups, of about so much `work`: split if it exceeds the limit of a
    /// submission.
    fn dispatch(
        &self,
        pipeline: &Pipeline,
        buffers: &[&Slab],
        groups: (u32, u32),
        immediates: &[u32],
        work: u64,
    ) -> Res<()> {
        let bound = buffers.iter().map(|b| b.raw().clone()).collect();
        let bound = &self.device.bind_groups.of(self.device, pipeline, bound);
        let width = groups.0;
        for (base, groups, work) in parts(groups, work, self.budget) {
            self.device.dispatch(&Dispatch { pipeline, bound, groups, base, width, immediates, work }, self.budget)?;
        }
        add(&self.device.counters.bound_bytes, buffers.iter().map(|b| b.size()).sum());
        Ok(())
    }

    /// One workgroup over `buffers`, for about `part` of the time of a submission.
    pub fn persistent(&self, p: &Pipeline, buffers: &[Arc<Slab>], words: [u32; 2], part: f64) -> Res<()> {
        self.device.pace.unknown();
        let buffers: Vec<&Slab> = buffers.iter().map(|b| &**b).collect();
        self.dispatch(p, &buffers, (1, 1), &words, (part * self.budget as f64) as u64)
    }

    /// `bytes` bytes of `from` at `from_at` to `to` at `to_at`, two slabs.
    pub fn copy(&self, from: &Slab, from_at: usize, to: &Slab, to_at: usize, bytes: usize) -> Res<()> {
        if bytes == 0 {
            return Ok(());
        }
        let unit = if [from_at, to_at, bytes].iter().all(|n| n % 4 == 0) { 4 } else { 1 };
        let threads = if unit == 4 { bytes / 4 } else { (to_at % 4 + bytes).div_ceil(4) };
        let groups = self.limits.groups_for(threads);
        let copiers = self.copiers;
        let p = if unit == 4 { &copiers.words } else { &copiers.bytes };
        let at = [from_at / unit, to_at / unit, bytes / unit].map(|n| n as u32);
        self.dispatch(p, &[from, to], groups, &[at[0], at[1], at[2], 0], 16 * threads as u64)
    }

    /// The passes of `task` over its inputs and outputs; the one that makes a copy of input 0, if `copies`.
    pub fn task(&self, task: &Task<Arc<Pipeline>>, ins: &[Arc<Slab>], outs: &[Arc<Slab>], copies: bool) -> Res<()> {
        let scratch: Vec<Arc<Slab>> = task.scratch.iter().map(|bytes| self.slab(*bytes)).collect::<Res<_>>()?;
        let at = |r: &Reg| -> &Slab {
            match r {
                Reg::In(i) => &ins[*i],
                Reg::Out(i) => &outs[*i],
                Reg::Scratch(i) => &scratch[*i],
            }
        };
        let copying = task.copying.iter().filter(|_| copies);
        for pass in copying.chain(task.passes.iter().skip(usize::from(copies))) {
            match pass {
                Pass::Run { pipeline, reads, writes, groups, immediates, work } => {
                    let buffers: Vec<&Slab> = reads.iter().chain(writes).map(at).collect();
                    self.dispatch(pipeline, &buffers, *groups, immediates, *work)?;
                }
                Pass::Copy { from, from_at, to, to_at, bytes } => {
                    self.copy(at(from), *from_at, at(to), *to_at, *bytes)?
                }
            }
        }
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
