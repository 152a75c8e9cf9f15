//! The Rust API: one binary, because each one links the whole library.
#[path = "../evaluation.rs"]
mod evaluation;
#[path = "../export.rs"]
mod export;
mod golden;
mod misuse;
mod programs;
mod seed;
#[path = "../simplify.rs"]
mod simplify;
mod tensor;
mod transforms;
mod trees;
mod weights;
