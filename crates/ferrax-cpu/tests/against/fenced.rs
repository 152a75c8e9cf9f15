//! Memory between protected pages: an access beyond it ends the process with a message.
use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page, or several where they may be of any size.
const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };
/// The content of a buffer's pages around it.
const UNTOUCHED: u8 = 0xa5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The buffer begins where the page before it ends.
    First,
    /// The buffer ends where the page after it begins.
    Last,
}
impl Side {
    pub const BOTH: [Side; 2] = [Side::First, Side::Last];
}

struct Pages {
    first: *mut u8,
    count: usize,
}
thread_local! {
    static FREE: RefCell<Vec<Pages>> = const { RefCell::new(vec![]) };
}
impl Pages {
    fn new(count: usize) -> Pages {
        let free = FREE.with_borrow_mut(|f| {
            let at = f.iter().position(|p| p.count == count)?;
            Some(f.swap_remove(at))
        });
        free.unwrap_or_else(|| Pages::map(count))
    }
    fn map(count: usize) -> Pages {
        let (nothing, both) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new memory wherever the system likes, of which the pages within become readable and writable.
        unsafe {
            let map = libc::mmap(null_mut(), (count + 2) * PAGE, nothing, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            let first = map.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(first.cast(), count * PAGE, both), 0);
            Pages { first, count }
        }
    }
}

/// Bytes with a fence on one side, and on the other what must not change.
pub struct Fenced {
    pages: Pages,
    at: usize,
    len: usize,
}
impl Fenced {
    /// As many bytes that are no element's of any result.
    pub fn new(len: usize, side: Side) -> Fenced {
        watch();
        let pages = Pages::new(len.div_ceil(PAGE).max(1));
        let whole = pages.count * PAGE;
        // SAFETY: these pages are writable, and this test's alone.
        unsafe { pages.first.write_bytes(UNTOUCHED, whole) };
        Fenced { pages, at: if side == Side::First { 0 } else { whole - len }, len }
    }
    pub fn copy_of(bytes: &[u8], side: Side) -> Fenced {
        let f = Fenced::new(bytes.len(), side);
        // SAFETY: as long as `bytes`, and apart from it.
        unsafe { f.ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        f
    }
    pub fn ptr(&self) -> *mut u8 {
        self.pages.first.wrapping_add(self.at)
    }
    /// What is there, once nothing writes any more; nothing was written beside it.
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: these pages are readable.
        let all = unsafe { std::slice::from_raw_parts(self.pages.first, self.pages.count * PAGE) };
        let (before, rest) = all.split_at(self.at);
        let (bytes, after) = rest.split_at(self.len);
        let beside = before.iter().chain(after).position(|b| *b != UNTOUCHED);
        assert_eq!(beside, None, "written beside a buffer of {} bytes", self.len);
        bytes.to_vec()
    }
}
impl Drop for Fenced {
    fn drop(&mut self) {
        const KEPT: usize = 64;
        let pages = Pages { ..self.pages };
        let kept = FREE.try_with(|f| f.try_borrow_mut().is_ok_and(|f| f.len() < KEPT)).unwrap_or(false);
        if kept {
            FREE.with_borrow_mut(|f| f.push(pages));
        } else {
            // SAFETY: mapped as one, and given back once.
            unsafe { libc::munmap(pages.first.sub(PAGE).cast(), (pages.count + 2) * PAGE) };
        }
    }
}

/// The access under test, which a fault reports.
pub static SEED: AtomicU64 = AtomicU64::new(0);

fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: a handler that touches nothing but its own stack, for faults that end the process anyway.
    ONCE.call_once(|| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fault as *const () as usize;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, null_mut());
        libc::sigaction(libc::SIGBUS, &action, null_mut());
    });
}
/// Then the instruction is tried again, and the process ends.
extern "C" fn fault(_: c_int) {
    let mut text = *b"beyond a buffer, of seed 00000000000000000000\n";
    let (mut seed, mut at) = (SEED.load(Ordering::Relaxed), text.len() - 2);
    while seed > 0 {
        text[at] = b'0' + (seed % 10) as u8;
        (seed, at) = (seed / 10, at - 1);
    }
    // SAFETY: as long as it says.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}
