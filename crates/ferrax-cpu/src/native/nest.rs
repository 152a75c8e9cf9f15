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
mod order;

use super::pages::Pages;
use crate::nest::{FrameLayout, Nest, NestFrame, OPERAND_WORDS};
use ferrax_kernel::DType;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// A nest as code.
pub struct NestCode {
    code: Pages,
    layout: FrameLayout,
    /// The array that is working memory of the frame.
    scratch: Option<usize>,
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
    /// `None` if the nest has halves, for which there are no scalar instructions, too many values, or elements too far from their index.
    pub fn new(nest: &Nest) -> Option<NestCode> {
        if nest.defs.iter().any(|d| matches!(d.dtype, DType::F16 | DType::BF16)) {
            return None;
        }
        let order = order::Order::of(nest);
        let allocation = allocate::allocate(nest, &order, emit::size(nest));
        let layout = FrameLayout::new(nest, allocation.spills, true);
        if layout.end > MAX_WORDS {
            return None;
        }
        let code = emit::emit(nest, &order, &allocation, layout)?;
        Some(NestCode { code: Pages::new(&code)?, layout, scratch: nest.scratch.map(|s| s.0 as usize) })
    }
    pub fn frame(&self) -> NestFrame {
        NestFrame::new(SmallVec::from_elem(0, self.layout.end), self.layout)
    }
    /// Goes through the nest; false where `cancel` was set.
    ///
    /// # Safety
    /// The frame is this code's, its arrays are those of the nest.
    pub unsafe fn run(&self, frame: &mut NestFrame, cancel: &AtomicBool) -> bool {
        let words = frame.words();
        words[0] = cancel.as_ptr() as u64;
        if let Some(array) = self.scratch {
            let memory = words[self.layout.scratch..].as_mut_ptr();
            words[self.layout.arrays + array] = memory as u64;
        }
        // SAFETY: `emit` made it for this frame; by the contract.
        unsafe { super::enter(&self.code, words.as_mut_ptr().cast(), 0) != 0 }
    }
}
