//! What tests of several crates share: a small face over values in double precision, and the matrix of transforms that every function
//! of the laws and of the generated programs goes through.
pub mod face;
pub mod matrix;
pub mod null;
