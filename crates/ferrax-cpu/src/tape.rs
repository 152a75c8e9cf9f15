//! Tapes: sequences whose length is known only at run time, written and read by loops.
//!
//! INVARIANT: a finished tape never changes, so copies share it. A tape that is being written has one owner, and doubles when full.
#![allow(unsafe_code)]
use crate::memory::Block;
use ferrax_kernel::{Error, Res};
use std::sync::Arc;

/// A sequence of run-time length. Reading past its end gives zeros.
#[derive(Clone, Default)]
pub struct Tape(pub(crate) Option<Arc<Items>>);
pub(crate) enum Items {
    Flat { data: Block, each: usize, len: usize },
    Nested(Vec<Tape>),
}
impl Tape {
    /// Whether it is a tape of this depth, of elements of this many bytes.
    pub fn is_of(&self, depth: u8, bytes: usize) -> bool {
        match self.0.as_deref() {
            None => true,
            Some(Items::Flat { each, .. }) => depth == 1 && *each == bytes,
            Some(Items::Nested(v)) => depth > 1 && v.iter().all(|t| t.is_of(depth - 1, bytes)),
        }
    }
    pub fn length(&self) -> usize {
        match self.0.as_deref() {
            None => 0,
            Some(Items::Flat { len, .. }) => *len,
            Some(Items::Nested(v)) => v.len(),
        }
    }
}

/// A tape between two plans: an eager loop left it for another.
impl ferrax_kernel::buffer::Memory for Tape {
    fn len(&self) -> usize {
        0
    }
    fn host(&self) -> Option<&[u8]> {
        None
    }
}

/// A tape while it is being written.
pub(crate) enum Writing {
    Flat { data: Block, each: usize, len: usize },
    Nested(Vec<Tape>),
}
impl Writing {
    pub fn new(bytes: usize, depth: u8, expected: usize) -> Res<Writing> {
        if depth > 1 {
            return Ok(Writing::Nested(ferrax_kernel::error::room(expected.min(1 << 16))?));
        }
        let capacity = bytes
            .checked_mul(expected.max(8))
            .ok_or_else(|| Error::TooLarge(format!("a tape of {expected} elements of {bytes} bytes")))?;
        Ok(Writing::Flat { data: Block::new(capacity)?, each: bytes, len: 0 })
    }
    /// The place of the next element.
    pub fn push(&mut self) -> Res<*mut u8> {
        match self {
            Writing::Flat { data, each, len } => {
                let at = *each * *len;
                if at + *each > data.size() {
                    let bigger = Block::new(
                        data.size()
                            .checked_mul(2)
                            .ok_or_else(|| Error::TooLarge("a tape is larger than any memory".into()))?,
                    )?;
                    // SAFETY: `at` bytes are written in the old block; the new one is larger and
                    // does not overlap it.
                    unsafe { bigger.ptr().copy_from_nonoverlapping(data.ptr(), at) };
                    *data = bigger;
                }
                *len += 1;
                Ok(data.ptr().wrapping_add(at))
            }
            Writing::Nested(v) => match v.try_reserve(1) {
                Ok(()) => Ok(std::ptr::null_mut()),
                Err(_) => Err(Error::OutOfMemory(format!("out of memory in a tape of {} tapes", v.len()))),
            },
        }
    }
    pub fn done(self, reverse: bool) -> Tape {
        Tape(Some(Arc::new(match self {
            Writing::Flat { data, each, len } => {
                if reverse && each > 0 {
                    // SAFETY: len elements of `each` bytes are written; the slice is the block's only user.
                    let all = unsafe { std::slice::from_raw_parts_mut(data.ptr(), len * each) };
                    for i in 0..len / 2 {
                        let (a, b) = all.split_at_mut((len - 1 - i) * each);
                        a[i * each..(i + 1) * each].swap_with_slice(&mut b[..each]);
                    }
                }
                Items::Flat { data, each, len }
            }
            Writing::Nested(mut v) => {
                if reverse {
                    v.reverse();
                }
                Items::Nested(v)
            }
        })))
    }
}
