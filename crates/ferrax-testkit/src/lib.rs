//! Code shared by the tests of several crates: a small API over values in double precision, the matrix of transforms that every function
//! of the laws and of the generated programs is tested under, examples of every primitive, the laws for each of them, and the corpus of
//! expected results.
#![forbid(unsafe_code)]
pub mod api;
pub mod corpus;
pub mod examples;
pub mod faulty;
pub mod laws;
pub mod matrix;
pub mod null;
pub mod rng;
