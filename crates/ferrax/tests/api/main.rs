//! The Rust API: one binary, because each one links the whole library.
mod golden;
mod misuse;
mod programs;
mod seed;
mod tensor;
mod transforms;
mod trees;
mod weights;
