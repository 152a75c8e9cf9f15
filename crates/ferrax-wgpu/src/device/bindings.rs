//! Bind groups, cached by their buffers: a program that runs again is given the buffers of the pool that it had before.
//!
//! INVARIANT: a bind group keeps its buffers from being freed by their last handle; so memory that leaves the pool is destroyed (`Slab::drop`).
use super::Gpu;
use super::counters::count;
use super::pipeline::Pipeline;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Mutex;

/// Bind groups from which all are dropped.
const MAX: usize = 4096;

/// How many buffers are read, and all buffers.
type Key = (u32, SmallVec<[wgpu::Buffer; 4]>);

#[derive(Default)]
pub struct BindGroups(Mutex<HashMap<Key, wgpu::BindGroup>>);

impl BindGroups {
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(|p| p.into_inner()).clear();
    }
    /// The bind group of `buffers` for `p`: layouts differ in how many are read, and written.
    pub fn of(&self, device: &Gpu, p: &Pipeline, buffers: SmallVec<[wgpu::Buffer; 4]>) -> wgpu::BindGroup {
        let mut made = self.0.lock().unwrap_or_else(|p| p.into_inner());
        let key = (p.source.reads, buffers);
        if let Some(found) = made.get(&key) {
            return found.clone();
        }
        count(&device.counters.bind_groups);
        let entries: Vec<_> = (key.1.iter().zip(0..))
            .map(|(b, binding)| wgpu::BindGroupEntry { binding, resource: b.as_entire_binding() })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &p.layout, entries: &entries };
        let group = device.wgpu.create_bind_group(&descriptor);
        if made.len() >= MAX {
            made.clear();
        }
        made.insert(key, group.clone());
        group
    }
}
