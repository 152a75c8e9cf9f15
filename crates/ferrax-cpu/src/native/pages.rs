//! Pages of code: first writable, then executable, never both at once.
//!
//! INVARIANT: pages are mapped readable and writable, filled, and made readable and executable before they run. They are not written again, and
//! live as long as their owner. Where the system refuses either step there is no code.
#![allow(unsafe_code)]
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The kernel limits the mappings of a process (65,530 on Linux), and allocators need some of them.
const MAX_PAGES: usize = 8192;
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Code, and constants behind it.
pub struct Pages {
    at: NonNull<u8>,
    bytes: usize,
}
// SAFETY: the pages are read and run only, by their owner.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// The bytes as code, if the system lets it be.
    pub fn new(code: &[u8]) -> Option<Pages> {
        if code.is_empty() || MAPPED.load(Ordering::Relaxed) >= MAX_PAGES {
            return None;
        }
        let at = fill(code)?;
        MAPPED.fetch_add(1, Ordering::Relaxed);
        Some(Pages { at, bytes: code.len() })
    }
    /// The first byte.
    pub fn start(&self) -> *const u8 {
        self.at.as_ptr()
    }
}
impl Drop for Pages {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the mapping that `new` made; no thread runs it any more, since it is owned.
        unsafe { unmap(self.at, self.bytes) };
    }
}

#[cfg(unix)]
fn fill(code: &[u8]) -> Option<NonNull<u8>> {
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping of as many bytes, which nothing else refers to. It is filled while it is writable, and given back if it
    // cannot be made executable.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), code.len(), writable, private, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(at.cast::<u8>())?;
        start.as_ptr().copy_from_nonoverlapping(code.as_ptr(), code.len());
        if libc::mprotect(at, code.len(), libc::PROT_READ | libc::PROT_EXEC) == 0 {
            return Some(start);
        }
        unmap(start, code.len());
        None
    }
}
/// # Safety
/// The mapping is one of `fill`'s, and nothing uses it.
#[cfg(unix)]
unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: as this function demands.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}
#[cfg(not(unix))]
fn fill(_: &[u8]) -> Option<NonNull<u8>> {
    None
}
/// # Safety
/// `None`: there are no mappings.
#[cfg(not(unix))]
unsafe fn unmap(_: NonNull<u8>, _: usize) {}
