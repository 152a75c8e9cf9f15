//! The communication between the processes of a run: messages of their programs ([`transfers`]), and reports about their calls ([`calls`]).
//!
//! Both send bytes over a [`Wire`]: MPI in a run, and a table in `tests/model.rs`, which runs three processes in random orders.
//!
//! INVARIANT: nothing here blocks, reads a clock or starts a thread: the caller polls, and passes the time.
#![forbid(unsafe_code)]
pub mod calls;
pub mod status;
pub mod transfers;
pub mod watch;

use std::sync::Arc;

/// A transport of bytes between processes. Its functions return at once; one thread at a time calls them.
///
/// Messages of one process to another with one tag arrive in the order in which they were sent.
pub trait Wire: Send {
    /// Begins to send the bytes, in pieces where they are many.
    fn send(&self, to: usize, tag: i32, data: Arc<Vec<u8>>) -> Result<Box<dyn Sending>, String>;
    /// The first message with the tag (`None`: with any) from a process, if one has begun to arrive.
    fn take(&self, from: usize, tag: Option<i32>) -> Result<Option<Vec<u8>>, String>;
    /// Begins to receive the pieces of so many bytes.
    fn receive(&self, from: usize, tag: i32, bytes: usize) -> Result<Box<dyn Receiving>, String>;
}
/// Bytes on their way to another process.
pub trait Sending: Send {
    fn is_done(&mut self) -> Result<bool, String>;
}
/// Bytes on their way from another process.
pub trait Receiving: Send {
    /// The bytes, once, when all are here.
    fn taken(&mut self) -> Result<Option<Vec<u8>>, String>;
}
