//! The library under its laws, in one program: each test program links all of it. Those that want a process of their own stand beside it:
//! `forks` and `out_of_memory` for their allocators, `lines` because it installs what a process has once.
mod corpus;
#[path = "../../ferrax-kernel/tests/plans/examples.rs"]
#[allow(dead_code)] // other tests' too
mod examples;
mod facts;
mod faults;
mod filetests;
mod fuzz;
mod huge_parameters;
mod laws;
mod moves;
mod mutants;
mod primitives;
mod rows;
mod thrift;
