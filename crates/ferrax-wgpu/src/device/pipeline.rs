//! Compute pipelines from WGSL, cached by their source.
//!
//! All buffers are in bind group 0: first those that a pipeline reads, then those that it writes, all as arrays of words. Its parameters are
//! immediates: the number of its first workgroup, how many are in a row, and words of its own.
#![allow(unsafe_code)]
use super::Gpu;
use super::counters::count;
use ferrax_kernel::Res;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// What every interface has.
pub const IMMEDIATE_BYTES: u32 = 128;

pub struct Pipeline {
    pub raw: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    /// How many buffers it reads; the rest are written.
    pub source: Source,
}

/// A shader that obeys the rules of [`crate::wgsl`]; equal sources share a pipeline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Source {
    pub reads: u32,
    pub writes: u32,
    pub wgsl: String,
}

#[derive(Default)]
pub struct Pipelines {
    made: Mutex<HashMap<Source, Weak<Pipeline>>>,
    layouts: Mutex<HashMap<(u32, u32), (wgpu::BindGroupLayout, wgpu::PipelineLayout)>>,
}

/// The pipeline of `source`, made at the first request.
///
/// # Errors
/// `Device` with the driver's words where the source is refused.
pub fn pipeline(device: &Gpu, source: Source) -> Res<Arc<Pipeline>> {
    let mut made = device.pipelines.made.lock().unwrap_or_else(|p| p.into_inner());
    if let Some(p) = made.get(&source).and_then(Weak::upgrade) {
        return Ok(p);
    }
    let p = Arc::new(compile(device, source.clone())?);
    if made.len() >= 1024 {
        made.retain(|_, p| p.strong_count() > 0);
    }
    made.insert(source, Arc::downgrade(&p));
    Ok(p)
}

/// The text of every shader of which there is a pipeline.
pub fn sources(device: &Gpu) -> Vec<String> {
    let made = device.pipelines.made.lock().unwrap_or_else(|p| p.into_inner());
    made.keys().map(|s| s.wgsl.clone()).collect()
}

fn compile(device: &Gpu, source: Source) -> Res<Pipeline> {
    let (layout, pipeline_layout) = layouts(device, source.reads, source.writes)?;
    count(&device.counters.pipelines);
    let raw = device.scoped("a shader", || {
        let text = wgpu::ShaderSource::Wgsl(source.wgsl.as_str().into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source: text };
        let checks = wgpu::ShaderRuntimeChecks::unchecked();
        // SAFETY: sources come from `wgsl` and `routines` alone. Every index they compute is in bounds: loads of kernels were
        // proved by `Kernel::verify`, those of routines are clamped, stores are guarded by the element count; every loop counts to
        // a bound or retries a compare-and-swap that some invocation wins; every integer division guards its divisor.
        let module = unsafe { device.wgpu.create_shader_module_trusted(descriptor, checks) };
        let options =
            wgpu::PipelineCompilationOptions { zero_initialize_workgroup_memory: false, ..Default::default() };
        device.wgpu.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: options,
            cache: None,
        })
    });
    match raw {
        Ok(raw) => Ok(Pipeline { raw, layout, source }),
        Err(ferrax_kernel::Error::Device(e)) => Err(ferrax_kernel::Error::Device(format!("{e}\n{}", source.wgsl))),
        Err(e) => Err(e),
    }
}

fn layouts(device: &Gpu, reads: u32, writes: u32) -> Res<(wgpu::BindGroupLayout, wgpu::PipelineLayout)> {
    let mut layouts = device.pipelines.layouts.lock().unwrap_or_else(|p| p.into_inner());
    if let Some(found) = layouts.get(&(reads, writes)) {
        return Ok(found.clone());
    }
    let entry = |binding: u32| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: binding < reads },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = (0..reads + writes).map(entry).collect();
    let made = device.scoped("a bind group layout", || {
        let group =
            device.wgpu.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let layout = device.wgpu.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group)],
            immediate_size: IMMEDIATE_BYTES,
        });
        (group, layout)
    })?;
    layouts.insert((reads, writes), made.clone());
    Ok(made)
}
