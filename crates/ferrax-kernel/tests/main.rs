//! The waist: scalar functions and plans, in one program.
mod math;
mod math_recorded;
mod math_tiers;
mod plans;
mod small;
