//! The extension's allocator in forked children. Threads of the parent begin, allocate and end while it forks; the child's threads must not
//! wait for a lock of one that it does not have. The threads are the C library's: those of the standard library take a lock of their own
//! when they begin, in programs with Rust's `main`.
#![cfg(unix)]
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FORKS: usize = 500;

extern "C" fn allocate(_: *mut libc::c_void) -> *mut libc::c_void {
    let blocks: Vec<Vec<u8>> = (0..100).map(|i| vec![1; 64 + i * 700]).collect();
    std::hint::black_box(&blocks);
    null_mut()
}
fn allocate_on_a_thread() {
    // SAFETY: the function takes nothing, and the thread is waited for.
    unsafe {
        let mut thread = std::mem::zeroed();
        assert_eq!(libc::pthread_create(&mut thread, null(), allocate, null_mut()), 0);
        assert_eq!(libc::pthread_join(thread, null_mut()), 0);
    }
}

#[test]
fn a_childs_threads_allocate_whatever_its_parents_were_doing() {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    allocate_on_a_thread();
                }
            });
        }
        let failed = (0..FORKS).find(|_| {
            let mut status = -1;
            // SAFETY: the child allocates, makes a thread, and leaves without running anything of the parent's; the alarm ends one that hangs.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(30);
                    allocate(null_mut());
                    allocate_on_a_thread();
                    libc::_exit(0);
                }
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
            }
            status != 0
        });
        ended.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "the first child that hung");
    });
}
