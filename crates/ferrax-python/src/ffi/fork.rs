//! Handlers that the C library calls around a fork, without running the interpreter's hooks or its
//! other threads in between.
//!
//! ```text
//! at_fork(take_locks, give_back, repair)
//! ```
#![allow(unsafe_code)]
use std::sync::OnceLock;

type Hook = fn();
static HOOKS: OnceLock<[Hook; 3]> = OnceLock::new();

fn call(which: usize) {
    if let Some(hooks) = HOOKS.get() {
        hooks[which]();
    }
}
extern "C" fn before() {
    call(0);
}
extern "C" fn in_parent() {
    call(1);
}
extern "C" fn in_child() {
    call(2);
}

/// From now on calls `before` ahead of each fork, on the thread that forks, and one of the others after it. The first call counts.
pub fn at_fork(before_fork: Hook, after_in_parent: Hook, after_in_child: Hook) {
    if HOOKS.set([before_fork, after_in_parent, after_in_child]).is_ok() {
        #[cfg(unix)]
        // SAFETY: the functions are `extern "C"`, take nothing and live as long as the process: extension modules are not unloaded. A panic
        // in one aborts. An error (no memory for the entry) leaves forks as they are without hooks.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    }
}
