//! Device memory: pooled storage buffers, and their way to and from the host.
//!
//! INVARIANT: a buffer enters the pool only when all commands that use it have been submitted, so whoever takes it out may write it
//! in any later submission. (A run therefore holds every buffer it used until it has submitted.)
use super::{Gpu, count};
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::{Buffer, Error, Res};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Buffers that nobody uses, by size class and use.
#[derive(Default)]
pub struct Pool {
    free: HashMap<(Use, u64), Vec<wgpu::Buffer>>,
    bytes: u64,
}

/// What the pool keeps at most; beyond it buffers go back to the driver.
const POOLED_BYTES: u64 = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    Storage,
    /// The host reads it.
    Readback,
}

impl Use {
    fn usages(self) -> wgpu::BufferUsages {
        match self {
            Use::Storage => wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            Use::Readback => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        }
    }
}

/// One buffer of the device; goes back to the pool when dropped.
pub struct Slab {
    /// Present until dropped.
    raw: Option<wgpu::Buffer>,
    used_as: Use,
    size: u64,
    device: Weak<Gpu>,
}

impl Slab {
    /// A buffer of at least `bytes`, with anything in it.
    ///
    /// # Errors
    /// `OutOfMemory` where it is more than a kernel can see, or the device has no more.
    pub fn new(device: &Arc<Gpu>, used_as: Use, bytes: usize) -> Res<Arc<Slab>> {
        let size = class(bytes as u64);
        let pooled = || {
            let mut pool = device.pool.lock().unwrap_or_else(|p| p.into_inner());
            let raw = pool.free.get_mut(&(used_as, size))?.pop()?;
            pool.bytes -= size;
            Some(raw)
        };
        let raw = match pooled() {
            Some(raw) => raw,
            None => allocate(device, used_as, size.min(device.max_bytes()), bytes)?,
        };
        Ok(Arc::new(Slab { raw: Some(raw), used_as, size, device: Arc::downgrade(device) }))
    }
    /// Whether it is what a request for `bytes` would get.
    pub fn fits(&self, bytes: usize) -> bool {
        self.size == class(bytes as u64)
    }
    pub fn raw(&self) -> &wgpu::Buffer {
        self.raw.as_ref().expect("it is taken out only when dropped")
    }
}

fn allocate(device: &Gpu, used_as: Use, size: u64, bytes: usize) -> Res<wgpu::Buffer> {
    let limit = device.max_bytes();
    if bytes as u64 > limit {
        return Err(Error::OutOfMemory(format!(
            "{}: {bytes} bytes are more than the {limit} one buffer can have",
            device.name()
        )));
    }
    let descriptor = wgpu::BufferDescriptor { label: None, size, usage: used_as.usages(), mapped_at_creation: false };
    count(&device.counters.buffers);
    device.scoped(&format!("a buffer of {size} bytes"), || device.wgpu.create_buffer(&descriptor))
}

/// Sizes in steps of a quarter of a power of two, so that a freed buffer fits many requests.
fn class(bytes: u64) -> u64 {
    let bytes = bytes.max(256);
    let step = (bytes.next_power_of_two() / 8).max(16);
    bytes.next_multiple_of(step)
}

impl Drop for Slab {
    fn drop(&mut self) {
        let (Some(raw), Some(device)) = (self.raw.take(), self.device.upgrade()) else { return };
        if !device.is_ours() {
            return std::mem::forget(raw); // to drop it would ask the driver
        }
        if let Ok(mut pool) = device.pool.lock()
            && pool.bytes + self.size <= POOLED_BYTES
        {
            pool.bytes += self.size;
            pool.free.entry((self.used_as, self.size)).or_default().push(raw);
        }
    }
}

/// What a [`Buffer`] of this backend holds.
pub struct GpuMemory {
    pub slab: Arc<Slab>,
    pub bytes: usize,
}

impl Memory for GpuMemory {
    fn len(&self) -> usize {
        self.bytes
    }
    fn host(&self) -> Option<&[u8]> {
        None
    }
}

/// The slab behind a buffer of `device`.
pub fn slab_of(device: &Arc<Gpu>, b: &Buffer) -> Res<Arc<Slab>> {
    let m = b.memory()?.downcast_ref::<GpuMemory>();
    let m = m.filter(|m| m.slab.device.ptr_eq(&Arc::downgrade(device)));
    let other = || Error::Invalid(format!("{}: the buffer is another device's", device.name()));
    m.map(|m| m.slab.clone()).ok_or_else(other)
}

/// A new slab with these bytes.
pub fn upload(device: &Arc<Gpu>, bytes: &[u8]) -> Res<Arc<Slab>> {
    let slab = Slab::new(device, Use::Storage, bytes.len())?;
    // Transfers come in words.
    let whole = bytes.len() / 4 * 4;
    let mut last = [0; 4];
    last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
    device.scoped("an upload", || {
        if whole > 0 {
            device.queue.write_buffer(slab.raw(), 0, &bytes[..whole]);
        }
        if whole < bytes.len() {
            device.queue.write_buffer(slab.raw(), whole as u64, &last);
        }
    })?;
    Ok(slab)
}

/// A new slab of zeros.
pub fn zeros(device: &Arc<Gpu>, bytes: usize) -> Res<Arc<Slab>> {
    let slab = Slab::new(device, Use::Storage, bytes)?;
    device.scoped("zeros", || {
        let mut encoder = device.wgpu.create_command_encoder(&Default::default());
        encoder.clear_buffer(slab.raw(), 0, None);
        count(&device.counters.submissions);
        device.queue.submit([encoder.finish()]);
    })?;
    Ok(slab)
}

/// The first `bytes` bytes of a slab, after the commands of `before`; waits for all that was submitted.
pub fn download(device: &Arc<Gpu>, slab: &Slab, bytes: usize, before: Option<wgpu::CommandEncoder>) -> Res<Vec<u8>> {
    if bytes == 0 {
        if let Some(encoder) = before {
            submit(device, encoder)?;
        }
        return Ok(vec![]);
    }
    let whole = bytes.next_multiple_of(4) as u64;
    let host = Slab::new(device, Use::Readback, bytes)?;
    let mapped = device.scoped("a download", || {
        let mut encoder = before.unwrap_or_else(|| device.wgpu.create_command_encoder(&Default::default()));
        encoder.copy_buffer_to_buffer(slab.raw(), 0, host.raw(), 0, whole);
        count(&device.counters.submissions);
        device.queue.submit([encoder.finish()]);
        let (done, mapped) = std::sync::mpsc::channel();
        host.raw().slice(..whole).map_async(wgpu::MapMode::Read, move |r| drop(done.send(r)));
        mapped
    })?;
    device.wait()?;
    let failed = |e: &dyn std::fmt::Display| Error::Device(format!("{}: reading back: {e}", device.name()));
    mapped.recv().map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
    let view = host.raw().slice(..whole).get_mapped_range().map_err(|e| failed(&e))?;
    let out = ferrax_kernel::error::copied(&view[..bytes])?;
    drop(view);
    host.raw().unmap();
    Ok(out)
}

/// Hands the commands to the device.
pub fn submit(device: &Gpu, encoder: wgpu::CommandEncoder) -> Res<()> {
    count(&device.counters.submissions);
    device.scoped("a submission", || device.queue.submit([encoder.finish()])).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_hold_their_request_and_waste_little() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, 3 << 20, (1 << 30) + 7]) {
            let c = class(bytes);
            assert!(c >= bytes && c.is_multiple_of(16) && c <= 256.max(bytes + bytes / 4 + 16), "{bytes}: {c}");
        }
    }
}
