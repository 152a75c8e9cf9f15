//! Commands on their way to the device: one encoder and one compute pass until they are submitted.
//!
//! INVARIANT: a slab that is given back here is reused at once by later commands (they run in order), but reaches the pool, where
//! other threads take it, only after the commands that used it were submitted.
use crate::device::memory::{self, Slab, Use};
use crate::device::pipeline::{Pipeline, Source, pipeline};
use crate::device::{Gpu, count};
use crate::task::{Limits, Pass, Reg, Task};
use crate::wgsl;
use ferrax_kernel::Res;
use std::sync::Arc;

/// Commands after which the device is given what there is.
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
            let head = wgsl::bindings(1, 1) + "var<immediate> p: vec4<u32>;\n";
            let body = format!("let n = (workgroup.y * p.w + workgroup.x) * {size}u + local;\n{body}");
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
}

impl<'a> Recorder<'a> {
    pub fn new(device: &'a Arc<Gpu>, copiers: &'a Copiers) -> Recorder<'a> {
        Recorder { device, copiers, limits: Limits::of(&device.limits), open: None, retired: vec![], recorded: 0 }
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

    fn dispatch(&mut self, p: &Pipeline, buffers: &[&Slab], groups: (u32, u32), immediates: [u32; 4]) -> Res<()> {
        count(&self.device.counters.dispatches);
        let device = &self.device.wgpu;
        let (pass, _) = self.open.get_or_insert_with(|| {
            let mut encoder = device.create_command_encoder(&Default::default());
            (encoder.begin_compute_pass(&Default::default()).forget_lifetime(), encoder)
        });
        let bound = buffers.iter().zip(0..);
        let entries: Vec<_> =
            bound.map(|(b, binding)| wgpu::BindGroupEntry { binding, resource: b.raw().as_entire_binding() }).collect();
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &p.layout, entries: &entries });
        pass.set_pipeline(&p.raw);
        pass.set_bind_group(0, &group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(&immediates));
        pass.dispatch_workgroups(groups.0, groups.1, 1);
        self.recorded += 1;
        if self.recorded >= BATCH { self.submit() } else { Ok(()) }
    }

    /// What is recorded, closed.
    fn close(&mut self) -> Option<wgpu::CommandEncoder> {
        self.recorded = 0;
        let (pass, encoder) = self.open.take()?;
        drop(pass);
        Some(encoder)
    }
    /// Hands everything recorded to the device.
    pub fn submit(&mut self) -> Res<()> {
        if let Some(encoder) = self.close() {
            memory::submit(self.device, encoder)?;
        }
        self.retired.clear();
        self.device.check()
    }
    /// The first `bytes` bytes of `slab`, once everything recorded has run.
    pub fn read(&mut self, slab: &Slab, bytes: usize) -> Res<Vec<u8>> {
        let recorded = self.close();
        let read = memory::download(self.device, slab, bytes, recorded);
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
        self.dispatch(p, &[from, to], groups, [at[0], at[1], at[2], groups.0])
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
                Pass::Run { pipeline, reads, writes, groups, immediates } => {
                    let buffers: Vec<&Slab> = reads.iter().chain(writes).map(at).collect();
                    self.dispatch(pipeline, &buffers, *groups, *immediates)?;
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
