//! Native code for nests: scalar instructions, registers of two kinds, loops within loops.
//!
//! A function takes a frame of 64-bit words (rdi) and returns 1, or 0 if the run was cancelled:
//!
//! ```text
//!     frame:  flag of the run | pointers of arrays | numbers that are read | numbers that are left | spilled values | operands of calls
//! ```
//!
//! INVARIANT: the code accesses its frame, its constants, and elements of arrays at the indices of the nest, which are in bounds.
mod allocate;
mod emit;
mod encode;
mod order;

use super::pages::Pages;
use crate::nest::Nest;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// A nest as code.
pub struct NestCode {
    code: Pages,
    layout: FrameLayout,
    /// The array that is working memory of the frame.
    scratch: Option<usize>,
}
/// The offset of each part of a frame, in words.
#[derive(Clone, Copy)]
struct FrameLayout {
    arrays: usize,
    inputs: usize,
    outs: usize,
    spills: usize,
    calls: usize,
    /// Words from operand to operand of a call, and its working memory behind.
    scratch: usize,
    end: usize,
}
/// Words of an operand of a call: a vector's, whatever the tier of the function.
const OPERAND_WORDS: usize = 8;

impl FrameLayout {
    fn new(nest: &Nest, spills: usize) -> FrameLayout {
        let inputs = 1 + nest.arrays as usize;
        let outs = inputs + nest.inputs.len();
        let spilled = outs + nest.outs.len();
        let calls = spilled + spills;
        // the result and two operands of a call
        let scratch = calls + 3 * OPERAND_WORDS;
        let end = scratch + nest.scratch.map_or(0, |s| s.1 / 8);
        FrameLayout { arrays: 1, inputs, outs, spills: spilled, calls, scratch, end }
    }
}

/// The words that a run works on.
pub struct NestFrame {
    words: SmallVec<[u64; 96]>,
    layout: FrameLayout,
}
impl NestFrame {
    pub fn give(&mut self, input: usize, bits: u64) {
        self.words[self.layout.inputs + input] = bits;
    }
    pub fn point(&mut self, array: usize, to: *mut u8) {
        self.words[self.layout.arrays + array] = to as u64;
    }
    pub fn left(&self, out: usize) -> u64 {
        self.words[self.layout.outs + out]
    }
}

/// Words of a frame: more are no nest of few numbers.
const MAX_WORDS: usize = 4096;

impl NestCode {
    /// Whether this machine can run the generated code.
    pub fn is_available() -> bool {
        #[cfg(target_arch = "x86_64")]
        return super::is_available() && is_x86_feature_detected!("bmi2");
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }
    pub fn new(nest: &Nest) -> Option<NestCode> {
        let order = order::Order::of(nest);
        let allocation = allocate::allocate(nest, &order);
        let layout = FrameLayout::new(nest, allocation.spills);
        if layout.end > MAX_WORDS {
            return None;
        }
        let code = emit::emit(nest, &order, &allocation, layout);
        Some(NestCode { code: Pages::new(&code)?, layout, scratch: nest.scratch.map(|s| s.0 as usize) })
    }
    pub fn frame(&self) -> NestFrame {
        NestFrame { words: SmallVec::from_elem(0, self.layout.end), layout: self.layout }
    }
    /// Goes through the nest; false where `cancel` was set.
    ///
    /// # Safety
    /// The frame is this code's, its arrays are those of the nest.
    pub unsafe fn run(&self, frame: &mut NestFrame, cancel: &AtomicBool) -> bool {
        frame.words[0] = cancel.as_ptr() as u64;
        if let Some(array) = self.scratch {
            let memory = frame.words[self.layout.scratch..].as_mut_ptr();
            frame.words[self.layout.arrays + array] = memory as u64;
        }
        // SAFETY: `emit` made it for this frame; by the contract.
        unsafe { super::enter(&self.code, frame.words.as_mut_ptr().cast(), 0) != 0 }
    }
}
