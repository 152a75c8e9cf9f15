//! The counters that threefry uses: the partitionable layout, or the original one on request.
//!
//! INVARIANT: traced programs depend on it, so it is part of the keys of trace caches.
use std::cell::Cell;

thread_local! {
    static ORIGINAL: Cell<bool> = const { Cell::new(false) };
}
pub fn with_original<T>(f: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ORIGINAL.set(self.0);
        }
    }
    let _before = Before(ORIGINAL.replace(true));
    f()
}
pub fn is_original() -> bool {
    ORIGINAL.get()
}
