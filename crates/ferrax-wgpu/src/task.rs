//! The compiled form of one step: passes over the step's buffers and over its own scratch.
use crate::device::Gpu;
use crate::device::pipeline::{Pipeline, Source, pipeline};
use ferrax_kernel::Res;
use std::sync::Arc;

/// A buffer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    In(usize),
    Out(usize),
    Scratch(usize),
}

#[derive(Clone, Debug)]
pub enum Pass<P> {
    Run {
        pipeline: P,
        reads: Vec<Reg>,
        writes: Vec<Reg>,
        groups: (u32, u32),
        /// Its own words, at most [`crate::wgsl::WORDS`].
        immediates: Vec<u32>,
        /// Scalar operations in all workgroups, roughly; a word of memory counts as eight.
        work: u64,
    },
    /// Byte positions and counts; any alignment.
    Copy { from: Reg, from_at: usize, to: Reg, to_at: usize, bytes: usize },
}

impl<P> Pass<P> {
    /// What it reads, and what it writes, perhaps a part of each.
    fn regs(&self) -> (Vec<Reg>, Vec<Reg>) {
        match self {
            Pass::Run { reads, writes, .. } => (reads.clone(), writes.clone()),
            Pass::Copy { from, to, .. } => (vec![*from], vec![*to]),
        }
    }
    /// The same pass of other buffers.
    fn placed(self, place: &dyn Fn(Reg) -> Reg) -> Pass<P> {
        let all = |r: Vec<Reg>| r.into_iter().map(place).collect();
        match self {
            Pass::Run { pipeline, reads, writes, groups, immediates, work } => {
                Pass::Run { pipeline, reads: all(reads), writes: all(writes), groups, immediates, work }
            }
            Pass::Copy { from, from_at, to, to_at, bytes } => {
                Pass::Copy { from: place(from), from_at, to: place(to), to_at, bytes }
            }
        }
    }
}

/// INVARIANT: the passes write every byte of every output, given that output 0 starts as input 0 where `updates` is set.
#[derive(Clone, Debug)]
pub struct Task<P> {
    /// Bytes of each scratch buffer.
    pub scratch: Vec<usize>,
    pub passes: Vec<Pass<P>>,
    /// Output 0 starts as input 0, in its memory where nothing else needs that.
    pub updates: bool,
    /// The first pass where something else does need it: one that makes the copy too.
    pub copying: Option<Pass<P>>,
}

impl<P> Default for Task<P> {
    fn default() -> Task<P> {
        Task { scratch: vec![], passes: vec![], updates: false, copying: None }
    }
}

impl Task<Source> {
    pub fn add_scratch(&mut self, bytes: usize) -> Reg {
        self.scratch.push(bytes);
        Reg::Scratch(self.scratch.len() - 1)
    }
    /// A pass whose invocations do a few dozen operations each.
    pub fn run(&mut self, wgsl: String, reads: Vec<Reg>, writes: Vec<Reg>, groups: (u32, u32)) {
        self.run_with(wgsl, reads, writes, groups, vec![], 64 * 256 * groups.0 as u64 * groups.1 as u64)
    }
    /// A pass that does `work`.
    pub fn run_long(&mut self, wgsl: String, reads: Vec<Reg>, writes: Vec<Reg>, groups: (u32, u32), work: u64) {
        self.run_with(wgsl, reads, writes, groups, vec![], work)
    }
    pub fn run_with(
        &mut self,
        wgsl: String,
        reads: Vec<Reg>,
        writes: Vec<Reg>,
        groups: (u32, u32),
        immediates: Vec<u32>,
        work: u64,
    ) {
        let pipeline = Source { reads: reads.len() as u32, writes: writes.len() as u32, wgsl };
        self.passes.push(Pass::Run { pipeline, reads, writes, groups, immediates, work });
    }
    /// The passes of `inner` as part of this task, its inputs and outputs being `ins` and `outs`.
    pub fn include(&mut self, inner: Task<Source>, ins: &[Reg], outs: &[Reg]) {
        let first = self.scratch.len();
        self.scratch.extend(inner.scratch);
        let place = |r: Reg| match r {
            Reg::In(i) => ins[i],
            Reg::Out(i) => outs[i],
            Reg::Scratch(i) => Reg::Scratch(first + i),
        };
        self.passes.extend(inner.passes.into_iter().map(|p| p.placed(&place)));
    }
    /// The task without passes for those outputs alone that nothing reads, and the outputs that it still has.
    pub fn only(mut self, is_read: &[bool]) -> (Task<Source>, Vec<usize>) {
        let mut needed: Vec<Reg> = (0..is_read.len()).filter(|o| is_read[*o]).map(Reg::Out).collect();
        for at in (0..self.passes.len()).rev() {
            let (reads, writes) = self.passes[at].regs();
            if writes.iter().any(|w| needed.contains(w)) {
                needed.extend([reads, writes].concat());
            } else {
                self.passes.remove(at);
            }
        }
        let stay: Vec<usize> = (0..is_read.len()).filter(|o| needed.contains(&Reg::Out(*o))).collect();
        let place = |r: Reg| match r {
            Reg::Out(o) => Reg::Out(stay.partition_point(|s| *s < o)),
            r => r,
        };
        self.passes = self.passes.into_iter().map(|p| p.placed(&place)).collect();
        (self, stay)
    }
    pub fn compile(self, device: &Gpu) -> Res<Task<Arc<Pipeline>>> {
        let compile = |p: Pass<Source>| {
            Ok(match p {
                Pass::Run { pipeline: source, reads, writes, groups, immediates, work } => {
                    Pass::Run { pipeline: pipeline(device, source)?, reads, writes, groups, immediates, work }
                }
                Pass::Copy { from, from_at, to, to_at, bytes } => Pass::Copy { from, from_at, to, to_at, bytes },
            })
        };
        let passes = self.passes.into_iter().map(compile).collect::<Res<_>>()?;
        let copying = self.copying.map(compile).transpose()?;
        Ok(Task { scratch: self.scratch, passes, updates: self.updates, copying })
    }
}

/// The number of a buffer in what a pass reads, to which it is added if it is not there.
pub fn bound(reads: &mut Vec<Reg>, r: Reg) -> usize {
    reads.iter().position(|k| *k == r).unwrap_or_else(|| {
        reads.push(r);
        reads.len() - 1
    })
}

/// The device limits that the generated text depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Buffers that one pipeline may see.
    pub buffers: usize,
    /// Invocations in a workgroup: a multiple of 64.
    pub workgroup: u32,
    /// Workgroups in a dimension.
    pub groups: u32,
    /// Bytes of memory that a workgroup shares.
    pub shared: usize,
}

impl Limits {
    pub fn of(l: &wgpu::Limits) -> Limits {
        let invocations = l.max_compute_invocations_per_workgroup.min(l.max_compute_workgroup_size_x).min(256);
        Limits {
            buffers: l.max_storage_buffers_per_shader_stage.min(l.max_bindings_per_bind_group) as usize,
            workgroup: invocations / 64 * 64,
            groups: l.max_compute_workgroups_per_dimension,
            shared: l.max_compute_workgroup_storage_size as usize,
        }
    }
    /// Workgroups for `threads` invocations.
    pub fn groups_for(&self, threads: usize) -> (u32, u32) {
        fold((threads as u64).div_ceil(self.workgroup as u64), self.groups)
    }
}

/// How many workgroups in x and y make at least `groups`, where a dimension holds `limit`.
pub fn fold(groups: u64, limit: u32) -> (u32, u32) {
    let y = groups.div_ceil(limit as u64).max(1);
    (groups.div_ceil(y).max(1) as u32, y as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_covers_all_groups_with_little_waste() {
        for groups in [0, 1, 65535, 65536, 65535 * 3 + 1, 1 << 24, (1 << 24) + 1] {
            let (x, y) = fold(groups, 65535);
            assert!(x <= 65535 && y <= 65535, "{groups}: {x} by {y}");
            assert!(
                x as u64 * y as u64 >= groups && (x as u64 * y as u64) < groups + y as u64 + 1,
                "{groups}: {x} by {y}"
            );
        }
    }
}
