//! Counters of what a device was asked for since it was opened: they tell what a program costs, on any adapter and without a clock.
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// The number of requests of each kind to a device since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64),* }

        #[derive(Default)]
        pub struct Counters { $(pub $name: AtomicU64),* }

        impl Counters {
            pub fn now(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }
        impl Counts {
            /// What was asked for after `before`.
            pub fn since(self, before: Counts) -> Counts {
                Counts { $($name: self.$name - before.$name),* }
            }
            /// Each count by its name.
            pub fn named(self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}
counters! {
    /// Passes of a shader over workgroups.
    dispatches
    /// Bytes of the buffers that dispatches were given.
    bound_bytes
    submissions
    /// Waits for a submission: of the host for a result, or for a value that decides what comes next.
    waits
    uploads
    uploaded_bytes
    downloads
    downloaded_bytes
    /// Times that the driver was asked for errors.
    error_scopes
    /// Bind groups made.
    bind_groups
    /// Buffers requested from the driver.
    buffers
    /// Pipelines compiled.
    pipelines
    /// Steps that the host ran.
    host_steps
}

/// Bytes of the device's memory, and requests for it.
#[derive(Default)]
pub struct Memory {
    pub in_use: AtomicU64,
    pub peak: AtomicU64,
    pub largest: AtomicU64,
    pub requests: AtomicU64,
}

/// One more.
pub fn count(c: &AtomicU64) {
    add(c, 1);
}
/// So many more.
pub fn add(c: &AtomicU64, n: u64) {
    c.fetch_add(n, Ordering::Relaxed);
}
