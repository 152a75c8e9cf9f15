//! A forked child does not have its parent's threads; it starts its own. Alone in this file, since a fork needs a process without other threads.
#![cfg(unix)]
use ferrax_host::threads::{Cost, for_ranges, set_num_threads};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}
fn sum() -> usize {
    let total = AtomicUsize::new(0);
    for_ranges(1000, Some(&Cost::of(1e9)), &AtomicBool::new(false), &|r| {
        total.fetch_add(r.sum::<usize>(), Ordering::Relaxed);
    });
    total.into_inner()
}

#[test]
fn a_forked_child_runs_in_parallel() {
    set_num_threads(3);
    assert_eq!(sum(), 499_500);
    // SAFETY: the child only computes and leaves.
    unsafe {
        match fork() {
            0 => _exit((sum() != 499_500) as i32),
            pid => {
                let mut status = -1;
                assert_eq!(waitpid(pid, &mut status, 0), pid);
                assert_eq!(status, 0);
            }
        }
    }
    assert_eq!(sum(), 499_500);
}
