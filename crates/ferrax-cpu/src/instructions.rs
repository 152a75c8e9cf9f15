//! The instructions of vectors that code is made of, and functions of numbers recorded as them.
//!
//! Nothing is encoded here: kernels and loops take the operations of a function from here, `native` allocates their registers and encodes them.
pub mod graph;
pub mod lower;
pub mod opcodes;
pub mod record;

pub use graph::{Leaf, VecNode};
pub use lower::{Function, LaneWidth};
pub use opcodes::Opcode;

/// How long the registers are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum VectorSize {
    /// 256 bits, sixteen of them.
    #[default]
    Ymm,
    /// 512 bits, thirty-two registers; and mask registers, which here only pass the outcome of a
    /// comparison to a blend.
    Zmm,
}
impl VectorSize {
    pub const fn bytes(self) -> usize {
        match self {
            VectorSize::Ymm => 32,
            VectorSize::Zmm => 64,
        }
    }
    pub fn registers(self) -> u8 {
        match self {
            VectorSize::Ymm => 16,
            VectorSize::Zmm => 32,
        }
    }
    pub fn lanes(self, wide: bool) -> usize {
        self.bytes() / if wide { 8 } else { 4 }
    }
}
