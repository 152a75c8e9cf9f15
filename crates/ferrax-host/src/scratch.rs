//! Working memory that a thread keeps between runs.
//!
//! INVARIANT: memory belongs to one request until it returns; its content is arbitrary.
use ferrax_kernel::Res;
use ferrax_kernel::error::filled;
use std::cell::Cell;
use std::thread::LocalKey;

/// Working memory of the calling thread: of a kernel, and of a row-fused group around its kernels.
#[derive(Clone, Copy)]
pub struct Scratch;
#[derive(Clone, Copy)]
pub struct GroupScratch;
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; 64]);
type KeptLines = Cell<Vec<Line>>;
thread_local! {
    static MEMORY: KeptLines = const { Cell::new(Vec::new()) };
    static GROUP_MEMORY: KeptLines = const { Cell::new(Vec::new()) };
}
impl Scratch {
    /// Runs `f` with at least `bytes` bytes, 64-byte aligned.
    ///
    /// # Errors
    /// `OutOfMemory`, naming the bytes.
    #[inline]
    pub fn with<T>(self, bytes: usize, f: impl FnOnce(*mut u8) -> T) -> Res<T> {
        with_memory(&MEMORY, bytes, f)
    }
}
impl GroupScratch {
    /// As [`Scratch::with`].
    ///
    /// # Errors
    /// As there.
    pub fn with<T>(self, bytes: usize, f: impl FnOnce(*mut u8) -> T) -> Res<T> {
        with_memory(&GROUP_MEMORY, bytes, f)
    }
}
/// A nested request gets separate memory, which is not kept.
#[inline]
fn with_memory<T>(memory: &'static LocalKey<KeptLines>, bytes: usize, f: impl FnOnce(*mut u8) -> T) -> Res<T> {
    let mut m = memory.take();
    let lines = bytes.div_ceil(64);
    if m.len() < lines {
        m = larger(m, lines)?;
    }
    let out = f(m.as_mut_ptr().cast());
    memory.set(m);
    Ok(out)
}

/// The previous content is not kept.
#[cold]
fn larger(old: Vec<Line>, lines: usize) -> Res<Vec<Line>> {
    drop(old);
    filled(lines, Line([0; 64]))
}
