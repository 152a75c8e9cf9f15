//! What the backend computes, in one program: each test program links all of it. Those that want a process of their own stand beside it.
mod against;
#[path = "../../ferrax-kernel/tests/plans/examples.rs"]
mod examples;
#[cfg(unix)]
#[path = "against/fenced.rs"]
mod fenced;
#[path = "against/generate.rs"]
mod generate;
mod generated;
mod loops;
mod nans;
#[cfg(unix)]
mod native;
mod plans;
mod routines;
mod tuning;
