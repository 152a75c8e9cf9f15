//! Everything a GPU runs, against the reference evaluator.
//!
//! These tests want an adapter (without hardware, lavapipe: `apt-get install mesa-vulkan-drivers`). Where there is none they say so and do nothing;
//! with `FERRAX_REQUIRE_GPU` set they fail.
#[path = "gpu/computed.rs"]
mod computed;
#[path = "gpu/control.rs"]
mod control;
mod corpus;
#[path = "../../ferrax-kernel/tests/plans/examples.rs"]
#[allow(dead_code)]
mod examples;
#[path = "gpu/factors.rs"]
mod factors;
#[path = "gpu/ffts.rs"]
mod ffts;
#[path = "gpu/kernels.rs"]
mod kernels;
#[path = "gpu/products.rs"]
mod products;
#[path = "gpu/routines.rs"]
mod routines;
#[path = "gpu/rows.rs"]
mod rows;
#[path = "gpu/run.rs"]
mod run;
#[path = "gpu/sorts.rs"]
mod sorts;
#[path = "gpu/together.rs"]
mod together;
#[path = "gpu/translate.rs"]
mod translate;
#[path = "gpu/traps.rs"]
mod traps;
#[path = "gpu/updates.rs"]
mod updates;
