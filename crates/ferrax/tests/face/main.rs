//! The Rust face: one binary, for each one links all of the library.
mod golden;
mod misuse;
mod programs;
mod seed;
mod tensor;
mod transforms;
mod trees;
mod weights;
