//! The two counter layouts: which block, and which part of it, element `i` of a draw is.
//!
//! ```text
//! partitionable   element i  <- block (i >> 32, i & 0xffffffff); does not depend on the draw's length
//! original        word    i  <- words 0..n are cut in half: block (j, j + ceil(n/2)) gives words j and j + ceil(n/2);
//!                               if n is odd the last counter is a 0 of padding, and its word is dropped
//! ```
//!
//! Invariant: an element is a function of the key, its row-major index and the draw's length alone.
//!
//! ```
//! use ferrax_prng::{Bits, Layout, Width};
//! let draw = Bits::new(Layout::Original, Width::W16, 2).unwrap();
//! assert_eq!(draw.element([0, 42], [0, 1]), [0, 0x6d3e]);
//! ```

use crate::{Word, threefry2x32};

/// Which of JAX's two counter layouts (`jax_threefry_partitionable`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    #[default]
    Partitionable,
    Original,
}

/// The width of one drawn element in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    W8,
    W16,
    W32,
    W64,
}

impl Width {
    pub const fn bits(self) -> u32 {
        match self {
            Width::W8 => 8,
            Width::W16 => 16,
            Width::W32 => 32,
            Width::W64 => 64,
        }
    }

    pub const fn from_bits(bits: u32) -> Option<Width> {
        match bits {
            8 => Some(Width::W8),
            16 => Some(Width::W16),
            32 => Some(Width::W32),
            64 => Some(Width::W64),
            _ => None,
        }
    }
}

/// A draw under [`Layout::Original`] needs more words than its 32-bit counter has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    pub words: u64,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} random words in one draw exceed the 2**32 - 1 of the original threefry layout; use the partitionable layout or several keys",
            self.words
        )
    }
}

impl std::error::Error for TooLarge {}

/// A draw of `len` elements of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits {
    layout: Layout,
    width: Width,
    /// Words of the whole draw; read under the original layout only.
    words: u32,
}

impl Bits {
    /// # Errors
    /// [`TooLarge`] if the original layout has not counters enough.
    pub fn new(layout: Layout, width: Width, len: u64) -> Result<Bits, TooLarge> {
        let words = match layout {
            Layout::Partitionable => 0,
            Layout::Original => {
                let words = match width {
                    Width::W64 => len.saturating_mul(2),
                    narrow => len.div_ceil(u64::from(32 / narrow.bits())),
                };
                u32::try_from(words).map_err(|_| TooLarge { words })?
            }
        };
        Ok(Bits { layout, width, words })
    }

    /// Element `index` (its row-major number, high word first) as (high, low) words; high is 0 for
    /// widths up to 32, and an 8- or 16-bit element is in the low bits.
    #[inline(always)]
    pub fn element<W: Word>(&self, key: [W; 2], index: [W; 2]) -> [W; 2] {
        let zero = W::constant(0);
        match (self.layout, self.width) {
            (Layout::Partitionable, Width::W64) => threefry2x32(key, index),
            (Layout::Partitionable, width) => {
                let [x, y] = threefry2x32(key, index);
                [zero, low(x.xor(y), width)]
            }
            // The draw is all high words, then all low words.
            (Layout::Original, Width::W64) => {
                let [_, i] = index;
                threefry2x32(key, [i.clone(), i.add(W::constant(self.words / 2))])
            }
            (Layout::Original, Width::W32) => {
                let [_, i] = index;
                [zero, word(key, i, self.words)]
            }
            // Little end first within a word.
            (Layout::Original, width) => {
                let [_, i] = index;
                let per_word_log2 = if width == Width::W8 { 2 } else { 1 };
                let part = i.clone().and(W::constant((1 << per_word_log2) - 1));
                let by = part.shl(5 - per_word_log2);
                [zero, low(word(key, i.shr(per_word_log2), self.words).shr_by(by), width)]
            }
        }
    }
}

/// Key `index` of the `count` keys that `key` splits into.
///
/// Under the original layout `count` must stay below 2^31.
#[inline(always)]
pub fn split<W: Word>(layout: Layout, key: [W; 2], index: W, count: u32) -> [W; 2] {
    match layout {
        Layout::Partitionable => threefry2x32(key, [W::constant(0), index]),
        Layout::Original => {
            debug_assert!(count < 1 << 31);
            let first = index.shl(1);
            let second = first.clone().or(W::constant(1));
            [word(key.clone(), first, 2 * count), word(key, second, 2 * count)]
        }
    }
}

/// Word `i` of `n` under the original layout.
#[inline(always)]
fn word<W: Word>(key: [W; 2], i: W, n: u32) -> W {
    let half = n.div_ceil(2);
    let half_word = W::constant(half);
    // j is the number of the block that gives word i.
    let j = i.clone().select_lt(half_word.clone(), i.clone(), i.clone().sub(half_word.clone()));
    let mate = j.clone().add(half_word.clone());
    let mate = if n.is_multiple_of(2) { mate } else { mate.clone().select_lt(W::constant(n), mate, W::constant(0)) };
    let [x, y] = threefry2x32(key, [j, mate]);
    i.select_lt(half_word, x, y)
}

#[inline(always)]
fn low<W: Word>(word: W, width: Width) -> W {
    match width {
        Width::W8 => word.and(W::constant(0xff)),
        Width::W16 => word.and(W::constant(0xffff)),
        Width::W32 | Width::W64 => word,
    }
}
