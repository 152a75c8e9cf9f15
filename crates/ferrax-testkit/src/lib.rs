//! What tests of several crates share: a small API over values in double precision, the matrix of transforms that every function
//! of the laws and of the generated programs goes through, examples of every primitive, the laws that each of them obeys, and the corpus of
//! what each must answer.
#![forbid(unsafe_code)]
pub mod api;
pub mod corpus;
pub mod examples;
pub mod laws;
pub mod matrix;
pub mod null;
pub mod rng;
