//! Host memory: 64-byte aligned blocks, pooled by size class, and memory borrowed from another owner.
//!
//! A fresh 64 MB block costs milliseconds in page faults, a reused one does not. Small blocks go through a cache of the thread, large ones through
//! one shared list; both are bounded. Up to a cache line of bytes ([`Small`]) is stored beside the reference count, without a block.
//!
//! INVARIANT: a block has one holder at a time, and its layout is a function of its capacity alone.
#![allow(unsafe_code)]
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::{Buffer, Error, Res};
use once_cell::race::OnceBox;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

pub const ALIGN: usize = 64;
/// Blocks from here on are aligned to huge pages and shared between threads.
const LARGE: usize = 1 << 20;
const HUGE_PAGE: usize = 2 << 20;
const CLASSES: usize = 128;
/// Limits for each small size class of a thread: bytes, and blocks.
const THREAD_KEEPS: usize = 1 << 20;
const THREAD_BLOCKS: usize = 64;
/// The limit for large blocks that all threads keep together.
const SHARED_KEEPS: usize = 1 << 30;

/// Blocks that this thread has taken from pool or system so far.
pub fn blocks_taken() -> u64 {
    TAKEN.get()
}

/// The class of a request and the capacity of its block: eight classes for each doubling, so that at most an eighth is wasted.
fn class(bytes: usize) -> Option<(usize, usize)> {
    let units = bytes.max(1).checked_add(ALIGN - 1)? / ALIGN;
    if units <= 8 {
        return Some((units - 1, units * ALIGN));
    }
    let shift = (units - 1).ilog2() as usize - 3;
    let step = (units - 1) >> shift; // 8..16
    Some((8 * shift + step, ((step + 1) << shift).checked_mul(ALIGN)?))
}

fn layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(capacity, if capacity >= LARGE { HUGE_PAGE } else { ALIGN }).ok()
}

/// A block of memory and the requested size.
pub struct Block {
    ptr: NonNull<u8>,
    len: usize,
    capacity: usize,
}
// SAFETY: a block is plain memory with one owner; shared references only read.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

struct Free {
    small: [Vec<Block>; CLASSES],
}
thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    static FREE: RefCell<Free> = const { RefCell::new(Free { small: [const { Vec::new() }; CLASSES] }) };
}
struct SharedPool {
    blocks: Vec<Block>,
    bytes: usize,
}
static SHARED: Mutex<SharedPool> = Mutex::new(SharedPool { blocks: Vec::new(), bytes: 0 });

/// Takes the lock of the shared list, to be held over a fork.
pub fn freeze() -> impl std::any::Any {
    SHARED.lock().unwrap_or_else(|e| e.into_inner())
}

impl Drop for Free {
    fn drop(&mut self) {
        for b in self.small.iter_mut().flat_map(std::mem::take) {
            b.release();
        }
    }
}

/// The machine's memory in bytes, if known. A system that promises more ends the process once it is used.
pub fn installed() -> Option<usize> {
    static TOTAL: OnceBox<Option<usize>> = OnceBox::new();
    let find = || {
        let info = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = info.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    };
    *TOTAL.get_or_init(|| Box::new(find()))
}

impl Block {
    /// Memory with arbitrary content.
    pub fn new(len: usize) -> Res<Block> {
        TAKEN.set(TAKEN.get() + 1);
        let too_large = || Error::TooLarge(format!("an array of {len} bytes is larger than any memory"));
        let (class, capacity) = class(len).ok_or_else(too_large)?;
        let layout = layout(capacity).ok_or_else(too_large)?;
        let pooled = if capacity < LARGE {
            FREE.try_with(|f| f.try_borrow_mut().ok()?.small[class].pop()).ok().flatten()
        } else {
            let mut s = SHARED.lock().unwrap_or_else(|e| e.into_inner());
            // the smallest block that is large enough, if it is not much larger
            let fits = |b: &Block| b.capacity >= capacity && b.capacity <= capacity + capacity / 4;
            let enough = s.blocks.iter().enumerate().filter(|(_, b)| fits(b));
            let at = enough.min_by_key(|(k, b)| (b.capacity, usize::MAX - k)).map(|(k, _)| k);
            at.map(|k| {
                let b = s.blocks.swap_remove(k);
                s.bytes -= b.capacity;
                b
            })
        };
        if let Some(mut b) = pooled {
            b.len = len;
            return Ok(b);
        }
        let out_of_memory = || Error::OutOfMemory(format!("out of memory while allocating {len} bytes"));
        if capacity >= LARGE && installed().is_some_and(|most| capacity > most) {
            return Err(out_of_memory());
        }
        // SAFETY: the layout has a nonzero size, as a class holds at least one unit.
        let p = unsafe { alloc(layout) };
        let ptr = NonNull::new(p).ok_or_else(out_of_memory)?;
        if capacity >= LARGE {
            advise_huge(ptr, capacity);
        }
        Ok(Block { ptr, len, capacity })
    }
    pub fn zeroed(len: usize) -> Res<Block> {
        let b = Block::new(len)?;
        // SAFETY: the block has at least `len` bytes and has no other owner.
        unsafe { b.ptr.as_ptr().write_bytes(0, len) };
        Ok(b)
    }
    pub fn copy_of(bytes: &[u8]) -> Res<Block> {
        let b = Block::new(bytes.len())?;
        // SAFETY: as long as `bytes`, and freshly allocated, so that they do not overlap.
        unsafe { b.ptr.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(b)
    }
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
    pub fn size(&self) -> usize {
        self.len
    }
    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes are allocated. Blocks become visible as memory of a buffer only after a step has written them.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
    /// Gives the memory back to the system.
    fn release(self) {
        if let Some(l) = layout(self.capacity) {
            // SAFETY: allocated with this very layout, which follows from the capacity; the block is consumed without running Drop.
            unsafe { dealloc(self.ptr.as_ptr(), l) };
        }
        std::mem::forget(self);
    }
    fn take(&self) -> Block {
        Block { ptr: self.ptr, len: self.len, capacity: self.capacity }
    }
}
impl Drop for Block {
    fn drop(&mut self) {
        // The block itself moves into the pool; the value dropped here is an empty shell.
        let b = std::mem::ManuallyDrop::new(self.take());
        let b = std::mem::ManuallyDrop::into_inner(b);
        if b.capacity < LARGE {
            let Some((k, _)) = class(b.capacity) else { return b.release() };
            let mut b = Some(b);
            let _ = FREE.try_with(|f| {
                if let Ok(mut f) = f.try_borrow_mut() {
                    let list = &mut f.small[k];
                    let capacity = b.as_ref().map_or(1, |b| b.capacity);
                    if list.len() < THREAD_BLOCKS.min((THREAD_KEEPS / capacity).max(2)) {
                        list.extend(b.take());
                    }
                }
            });
            if let Some(b) = b {
                b.release();
            }
        } else {
            let mut s = SHARED.lock().unwrap_or_else(|e| e.into_inner());
            if s.bytes + b.capacity <= SHARED_KEEPS {
                s.bytes += b.capacity;
                s.blocks.push(b);
            } else {
                drop(s);
                b.release();
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn advise_huge(p: NonNull<u8>, len: usize) {
    unsafe extern "C" {
        fn madvise(addr: *mut std::ffi::c_void, len: usize, advice: i32) -> i32;
    }
    const MADV_HUGEPAGE: i32 = 14;
    // SAFETY: the range was just allocated; the advice changes no content, and a refusal does no harm.
    unsafe { madvise(p.as_ptr().cast(), len & !4095, MADV_HUGEPAGE) };
}
#[cfg(not(target_os = "linux"))]
fn advise_huge(_: NonNull<u8>, _: usize) {}

impl Memory for Block {
    fn len(&self) -> usize {
        self.len
    }
    fn host(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }
}

/// Memory of a few bytes, in one allocation with its count.
pub struct Small {
    bytes: UnsafeCell<[u64; Small::MAX_KEPT / 8]>,
    len: usize,
}
// SAFETY: plain memory; it is written through `ptr` only until it becomes memory of a buffer, and only read after that.
unsafe impl Send for Small {}
// SAFETY: as above.
unsafe impl Sync for Small {}
impl Small {
    pub const MAX_KEPT: usize = 64;
    /// Zeros; `len` is at most [`Small::MAX_KEPT`].
    pub fn new(len: usize) -> Arc<Small> {
        debug_assert!(len <= Small::MAX_KEPT);
        Arc::new(Small { bytes: UnsafeCell::default(), len: len.min(Small::MAX_KEPT) })
    }
    pub fn ptr(&self) -> *mut u8 {
        self.bytes.get().cast()
    }
}
impl Memory for Small {
    fn len(&self) -> usize {
        self.len
    }
    fn host(&self) -> Option<&[u8]> {
        // SAFETY: `len` bytes are valid, and nothing writes to memory of a buffer.
        Some(unsafe { std::slice::from_raw_parts(self.ptr(), self.len) })
    }
}

/// Memory on its way into a buffer.
pub enum Fresh {
    Block(Block),
    Small(Arc<Small>),
    /// The memory of a sole owner.
    Taken(Buffer, *mut u8),
}
impl Fresh {
    #[inline]
    pub fn new(len: usize) -> Res<Fresh> {
        Ok(if len <= Small::MAX_KEPT { Fresh::Small(Small::new(len)) } else { Fresh::Block(Block::new(len)?) })
    }
    pub fn ptr(&self) -> *mut u8 {
        match self {
            Fresh::Block(b) => b.ptr(),
            Fresh::Small(s) => s.ptr(),
            Fresh::Taken(_, ptr) => *ptr,
        }
    }
    pub fn buffer(self) -> Buffer {
        match self {
            Fresh::Block(b) => Buffer::ready(b),
            Fresh::Small(s) => Buffer::shared(s),
            Fresh::Taken(b, _) => b,
        }
    }
    /// The memory of a buffer, to be overwritten, if it belongs to this device and has no other owner.
    pub fn taken(b: &mut Buffer) -> Option<Fresh> {
        let m = b.memory_mut()?;
        let ptr = match m.downcast_ref::<Block>() {
            Some(block) => block.ptr(),
            None => m.downcast_ref::<Small>()?.ptr(),
        };
        Some(Fresh::Taken(b.clone(), ptr))
    }
    pub fn copy_of(bytes: &[u8]) -> Res<Fresh> {
        let f = Fresh::new(bytes.len())?;
        // SAFETY: as long as `bytes`, and freshly allocated, so that they do not overlap.
        unsafe { f.ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_asked_for_and_waste_little() {
        for n in (0..5000).chain((1..40).map(|k| 1usize << k)).chain((10..40).map(|k| (1usize << k) + 1)) {
            let (k, c) = class(n).unwrap();
            assert!(c >= n && (c <= 512 || c <= n + n / 8 + ALIGN), "{n} {c}");
            assert_eq!(class(c).unwrap(), (k, c));
        }
        assert!(class(LARGE).unwrap().0 < CLASSES);
        assert!(Block::new(usize::MAX).is_err());
        assert!(Block::new(usize::MAX / 2 - 1000).is_err());
    }
    #[test]
    fn blocks_are_aligned_and_reused() {
        let a = Block::new(1000).unwrap();
        let p = a.ptr();
        assert_eq!(p as usize % ALIGN, 0);
        drop(a);
        assert_eq!(Block::new(990).unwrap().ptr(), p);
        let big = Block::zeroed(3 << 20).unwrap();
        assert_eq!(big.ptr() as usize % HUGE_PAGE, 0);
    }
    #[test]
    fn a_large_block_serves_what_is_a_little_smaller_too() {
        let p = |b: &Block| b.ptr() as usize;
        // sizes that no other test requests
        let (a, b) = (Block::new(700 << 20).unwrap(), Block::new(900 << 20).unwrap());
        let (at, bt) = (p(&a), p(&b));
        drop((a, b));
        let small = Block::new(640 << 20).unwrap();
        assert!([at, bt].contains(&p(&small)), "the pool keeps less than both, and one of them serves");
        assert_eq!(small.size(), 640 << 20);
        assert!(![at, bt].contains(&p(&Block::new(100 << 20).unwrap())));
    }
}
