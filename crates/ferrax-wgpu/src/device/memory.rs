//! Device memory: pooled storage buffers, and their way to and from the host.
//!
//! INVARIANT: a buffer in the pool is used by no command that will be recorded. Its new owner may write it by commands, which run after those that
//! are recorded; by an upload, which runs before them, only once they are submitted: the pool knows the epoch in which each buffer came.
use super::counters::{add, count};
use super::{Epoch, Gpu};
use ferrax_kernel::backend::Look;
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::{Buffer, Error, Res};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Unused buffers, by size class and use.
#[derive(Default)]
pub struct Pool {
    /// In the order in which they came, each with its epoch.
    free: HashMap<(Use, u64), Vec<(u64, wgpu::Buffer)>>,
    bytes: u64,
    /// To be destroyed once what is recorded is submitted.
    doomed: Vec<wgpu::Buffer>,
}

/// The limit of the pool; buffers beyond it are returned to the driver.
const POOLED_BYTES: u64 = 1 << 30;

/// Destroys what nothing recorded uses any more.
pub fn destroy_doomed(device: &Gpu) {
    let doomed = std::mem::take(&mut device.pool.lock().unwrap_or_else(|p| p.into_inner()).doomed);
    doomed.iter().for_each(wgpu::Buffer::destroy);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    Storage,
    /// The host reads it.
    Readback,
}

impl Pool {
    /// The bytes that it keeps.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
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
    device: Arc<Gpu>,
}

impl Slab {
    /// A buffer of at least `bytes`, with anything in it.
    ///
    /// # Errors
    /// `OutOfMemory` where it is more than a kernel can see, or the device has no more.
    pub fn new(device: &Arc<Gpu>, used_as: Use, bytes: usize) -> Res<Arc<Slab>> {
        Slab::since(device, used_as, bytes, u64::MAX)
    }
    /// The same, of memory that came to the pool before this epoch.
    fn since(device: &Arc<Gpu>, used_as: Use, bytes: usize, epoch: u64) -> Res<Arc<Slab>> {
        let size = class(bytes as u64);
        let pooled = || {
            let mut pool = device.pool.lock().unwrap_or_else(|p| p.into_inner());
            let free = pool.free.get_mut(&(used_as, size))?;
            let (_, raw) = free.remove(free.iter().rposition(|(came, _)| *came < epoch)?);
            pool.bytes -= size;
            Some(raw)
        };
        let raw = match pooled() {
            Some(raw) => raw,
            None => match allocate(device, used_as, size.min(device.max_bytes()), bytes) {
                Err(Error::OutOfMemory(_)) if bytes as u64 <= device.max_bytes() => {
                    give_back(device)?;
                    // as little as will do
                    allocate(device, used_as, (bytes as u64).max(256).next_multiple_of(16), bytes)?
                }
                made => made?,
            },
        };
        let counters = &device.memory;
        count(&counters.requests);
        counters.largest.fetch_max(size, Ordering::Relaxed);
        let in_use = counters.in_use.fetch_add(size, Ordering::Relaxed) + size;
        counters.peak.fetch_max(in_use, Ordering::Relaxed);
        Ok(Arc::new(Slab { raw: Some(raw), used_as, size, device: device.clone() }))
    }
    /// Its bytes, some of which may be unused.
    pub fn size(&self) -> u64 {
        self.size
    }
    pub fn is_of(&self, device: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }
    pub fn raw(&self) -> &wgpu::Buffer {
        self.raw.as_ref().expect("it is taken out only when dropped")
    }
}

/// Returns all unused memory to the driver, including slabs that commands under way still read.
fn give_back(device: &Gpu) -> Res<()> {
    device.drain(&mut || Ok(()))?;
    device.bind_groups.clear();
    let free = std::mem::take(&mut *device.pool.lock().unwrap_or_else(|p| p.into_inner()));
    drop(free);
    let _ = device.wgpu.poll(wgpu::PollType::Poll);
    device.check()
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
        let Some(raw) = self.raw.take() else { return };
        let device = &self.device;
        device.memory.in_use.fetch_sub(self.size, Ordering::Relaxed);
        if !device.is_ours() {
            return std::mem::forget(raw); // dropping it would call the driver
        }
        let (epoch, recorded) = (device.epochs.load(Ordering::Acquire), device.recorded.load(Ordering::Acquire));
        if !device.is_lost()
            && raw.size() >= self.size.min(device.max_bytes())
            && let Ok(mut pool) = device.pool.lock()
            && pool.bytes + self.size <= POOLED_BYTES
        {
            pool.bytes += self.size;
            pool.free.entry((self.used_as, self.size)).or_default().push((epoch, raw));
            return;
        }
        match device.pool.lock() {
            Ok(mut pool) if recorded => pool.doomed.push(raw),
            _ => raw.destroy(),
        }
    }
}

/// The memory of a [`Buffer`] of this backend.
pub struct GpuMemory {
    pub slab: Arc<Slab>,
    pub bytes: usize,
    /// The commands that make it; none where it was uploaded.
    pub made: Option<Arc<Epoch>>,
}

impl Memory for GpuMemory {
    fn len(&self) -> usize {
        self.bytes
    }
    fn host(&self) -> Option<&[u8]> {
        None
    }
    fn is_done(&self) -> bool {
        self.made.as_ref().is_none_or(|made| self.slab.device.is_done(made))
    }
    fn wait(&self, look: &mut Look) -> Res<()> {
        self.slab.device.check()?;
        self.made.as_ref().map_or(Ok(()), |made| self.slab.device.wait(made, look))
    }
}

/// The slab behind a buffer of `device`.
pub fn slab_of(device: &Arc<Gpu>, b: &Buffer) -> Res<Arc<Slab>> {
    let m = b.memory()?.downcast_ref::<GpuMemory>();
    if let Some(m) = m
        && m.slab.device.is_lost()
    {
        m.slab.device.check()?;
    }
    let m = m.filter(|m| Arc::ptr_eq(&m.slab.device, device));
    let other = || Error::Invalid(format!("{}: the buffer is another device's", device.name()));
    let m = m.ok_or_else(other)?;
    m.made.as_ref().map_or(Ok(()), |made| made.check())?;
    Ok(m.slab.clone())
}

/// A new slab with these bytes.
pub fn upload(device: &Arc<Gpu>, bytes: &[u8]) -> Res<Arc<Slab>> {
    let slab = Slab::since(device, Use::Storage, bytes.len(), device.epochs.load(Ordering::Acquire))?;
    count(&device.counters.uploads);
    add(&device.counters.uploaded_bytes, bytes.len() as u64);
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

/// A new slab of zeros, and the commands that make them.
pub fn zeros(device: &Arc<Gpu>, bytes: usize) -> Res<(Arc<Slab>, Arc<Epoch>)> {
    device.check()?;
    let slab = Slab::new(device, Use::Storage, bytes)?;
    let made = device.clear(&slab);
    Ok((slab, made))
}

/// The first `bytes` bytes of a slab, once everything recorded has run; an error of `look` ends the wait.
pub fn download(device: &Arc<Gpu>, slab: &Slab, bytes: usize, look: &mut Look) -> Res<Vec<u8>> {
    device.check()?;
    if bytes == 0 {
        return Ok(vec![]);
    }
    let whole = bytes.next_multiple_of(4) as u64;
    let host = Slab::new(device, Use::Readback, bytes)?;
    count(&device.counters.downloads);
    add(&device.counters.downloaded_bytes, bytes as u64);
    let (index, mapped) = device.copy_out(slab, &host, whole, || {
        let (done, mapped) = std::sync::mpsc::channel();
        host.raw().slice(..whole).map_async(wgpu::MapMode::Read, move |r| drop(done.send(r)));
        mapped
    })?;
    if let Err(e) = device.wait_for(&index, look) {
        if device.is_ours() {
            host.raw().unmap(); // it will not be mapped any more, and may be used again
        }
        return Err(e);
    }
    let failed = |e: &dyn std::fmt::Display| Error::Device(format!("{}: reading back: {e}", device.name()));
    mapped.recv().map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
    let view = host.raw().slice(..whole).get_mapped_range().map_err(|e| failed(&e))?;
    let out = ferrax_kernel::error::copied(&view[..bytes])?;
    drop(view);
    host.raw().unmap();
    Ok(out)
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
