//! The memory of a run of a nest: 64-bit words, whose parts both executors lay out alike.
//!
//! ```text
//!     flag of the run | pointers of arrays | numbers that are read | numbers that are left | spilled values | operands of calls | working memory
//! ```
//!
//! The registers of the interpreter follow these words.
use super::Nest;
use smallvec::SmallVec;

/// The offset of each part of a frame, in words.
#[derive(Clone, Copy)]
pub struct FrameLayout {
    pub arrays: usize,
    pub inputs: usize,
    pub outs: usize,
    pub spills: usize,
    pub calls: usize,
    /// Words from operand to operand of a call, and its working memory behind.
    pub scratch: usize,
    pub end: usize,
}
/// Words of an operand of a call: a vector's, whatever the tier of the function.
pub const OPERAND_WORDS: usize = 8;

impl FrameLayout {
    /// With so many spilled values, and the operands of calls, where there are any.
    pub fn new(nest: &Nest, spills: usize, has_calls: bool) -> FrameLayout {
        let inputs = 1 + nest.arrays as usize;
        let outs = inputs + nest.inputs.len();
        let spilled = outs + nest.outs.len();
        let calls = spilled + spills;
        // the result and two operands of a call
        let scratch = calls + if has_calls { 3 * OPERAND_WORDS } else { 0 };
        let end = scratch + nest.scratch.map_or(0, |s| s.1 / 8);
        FrameLayout { arrays: 1, inputs, outs, spills: spilled, calls, scratch, end }
    }
}

/// The words that a run works on.
pub struct NestFrame {
    words: SmallVec<[u64; 192]>,
    layout: FrameLayout,
}
impl NestFrame {
    pub fn new(words: SmallVec<[u64; 192]>, layout: FrameLayout) -> NestFrame {
        NestFrame { words, layout }
    }
    pub fn give(&mut self, input: usize, bits: u64) {
        self.words[self.layout.inputs + input] = bits;
    }
    pub fn point(&mut self, array: usize, to: *mut u8) {
        self.words[self.layout.arrays + array] = to as u64;
    }
    pub fn left(&self, out: usize) -> u64 {
        self.words[self.layout.outs + out]
    }
    pub fn words(&mut self) -> &mut [u64] {
        &mut self.words
    }
}
