//! The inverse sines and cosines of complex numbers, Kahan's: no product cancels, and on a cut the sign of a zero says which side is meant.
//! W. Kahan, Branch Cuts for Complex Elementary Functions, 1987.
//!
//! INVARIANT: at infinity one part is infinite and the other the angle at which the argument lies, as Annex G of the C standard has it.
use super::quotient::{infinity_signed, is_infinite};
use super::{C, back, sqrt};
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, Un};

fn at_infinity(g: &mut Graph, z: C, far: C, near: C) -> C {
    let infinite: TensorId = is_infinite(g, z);
    (g.select(infinite, far.0, near.0), g.select(infinite, far.1, near.1))
}
/// The roots of `a + b z` and `c + d z`, for real a to d.
fn roots(g: &mut Graph, z: C, [a, b, c, d]: [f64; 4]) -> (C, C) {
    let mut root = |a: f64, b: f64| {
        let (a, b) = (g.scalar(z.0, a), g.scalar(z.0, b));
        let (x, y) = (g.bin(Bin::Mul, b, z.0), g.bin(Bin::Mul, b, z.1));
        let w = (g.bin(Bin::Add, a, x), y);
        sqrt(g, w)
    };
    (root(a, b), root(c, d))
}
/// With r, s = sqrt(1 + w), sqrt(1 - w) for w = -i z: asinh(re(r) im(s) - re(s) im(r)) + i atan2(im(z), re(r s)).
pub(super) fn asinh(g: &mut Graph, z: C) -> C {
    let w = back(g, z);
    let (r, s) = roots(g, w, [1.0, 1.0, 1.0, -1.0]);
    let (a, b) = (g.bin(Bin::Mul, r.0, s.1), g.bin(Bin::Mul, s.0, r.1));
    let (c, d) = (g.bin(Bin::Mul, r.0, s.0), g.bin(Bin::Mul, r.1, s.1));
    let (x, y) = (g.bin(Bin::Sub, a, b), g.bin(Bin::Sub, c, d));
    let near = (g.un(Un::Asinh, x), g.bin(Bin::Atan2, z.1, y));
    let right = g.un(Un::Abs, z.0);
    let far = (infinity_signed(g, z.0), g.bin(Bin::Atan2, z.1, right));
    at_infinity(g, z, far, near)
}
/// With r, s = sqrt(1 - z), sqrt(1 + z): 2 atan2(re(r), re(s)) + i asinh(re(s) im(r) - im(s) re(r)).
pub(super) fn acos(g: &mut Graph, z: C) -> C {
    let (r, s) = roots(g, z, [1.0, -1.0, 1.0, 1.0]);
    let (a, b) = (g.bin(Bin::Mul, s.0, r.1), g.bin(Bin::Mul, s.1, r.0));
    let (y, half) = (g.bin(Bin::Sub, a, b), g.bin(Bin::Atan2, r.0, s.0));
    let near = (g.bin(Bin::Add, half, half), g.un(Un::Asinh, y));
    let (up, down) = (g.un(Un::Abs, z.1), g.un(Un::Neg, z.1));
    let far = (g.bin(Bin::Atan2, up, z.0), infinity_signed(g, down));
    at_infinity(g, z, far, near)
}
/// With r, s = sqrt(z - 1), sqrt(z + 1): asinh(re(r) re(s) + im(r) im(s)) + 2i atan2(im(r), re(s)).
pub(super) fn acosh(g: &mut Graph, z: C) -> C {
    let (r, s) = roots(g, z, [-1.0, 1.0, 1.0, 1.0]);
    let (a, b) = (g.bin(Bin::Mul, r.0, s.0), g.bin(Bin::Mul, r.1, s.1));
    let (x, half) = (g.bin(Bin::Add, a, b), g.bin(Bin::Atan2, r.1, s.0));
    let near = (g.un(Un::Asinh, x), g.bin(Bin::Add, half, half));
    let far = (g.scalar(z.0, f64::INFINITY), g.bin(Bin::Atan2, z.1, z.0));
    at_infinity(g, z, far, near)
}
