//! The quotient of complex numbers at zero and at infinity, by Annex G of the C standard:
//!
//! ```text
//! z / 0        = (copysign(inf, Re 0) Re z, copysign(inf, Re 0) Im z)
//! z / w        = inf (Re z' conj w, Im z' conj w)    z infinite, w finite, both parts nan by the formula
//! z / w        = 0   (Re z conj w', Im z conj w')    w infinite, z finite, likewise
//! ```
//! where z' is z with its infinite parts made 1 and the others 0, each with its sign.
//!
//! INVARIANT: where the formula gives one part that is no nan, that is the quotient.
use super::{C, both, div, is_zero, level, mul, signed};
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, Un};

/// a / b.
pub(super) fn complex_quotient(g: &mut Graph, a: C, b: C) -> C {
    let (ar, br) = level(g, a.0, b.0);
    let (ai, bi) = level(g, a.1, b.1);
    let (a, b) = ((ar, ai), (br, bi));
    let q = div(g, a, b);
    let (num_re, num_im) = (is_number(g, q.0), is_number(g, q.1));
    let told = g.bin(Bin::Or, num_re, num_im);
    let at_zero = by_zero(g, a, b.0);
    let (a_inf, b_inf) = (is_infinite(g, a), is_infinite(g, b));
    let (inf, zero) = (g.scalar(br, f64::INFINITY), g.scalar(br, 0.0));
    let size = g.select(b_inf, zero, inf);
    let (ba, bb) = (boxed(g, a, a_inf), boxed(g, b, b_inf));
    let conj = (bb.0, g.un(Un::Neg, bb.1));
    let p = mul(g, ba, conj);
    let p = both(g, Bin::Mul, p, (size, size));
    let none = is_zero(g, b);
    let p = (g.select(none, at_zero.0, p.0), g.select(none, at_zero.1, p.1));
    // What else has two nans keeps them: nan and finite, finite numbers whose scaled quotient is none, infinity over infinity.
    let one = g.bin(Bin::Eq, a_inf, b_inf);
    let lost = g.un(Un::Not, none);
    let keeps = g.bin(Bin::And, one, lost);
    let keeps = g.bin(Bin::Or, keeps, told);
    (g.select(keeps, q.0, p.0), g.select(keeps, q.1, p.1))
}

fn by_zero(g: &mut Graph, a: C, zero: TensorId) -> C {
    let inf = infinity_signed(g, zero);
    both(g, Bin::Mul, a, (inf, inf))
}

/// Infinity with the sign of x.
pub(super) fn infinity_signed(g: &mut Graph, x: TensorId) -> TensorId {
    let (up, down) = (g.scalar(x, f64::INFINITY), g.scalar(x, f64::NEG_INFINITY));
    let below = signed(g, x);
    g.select(below, down, up)
}

fn is_number(g: &mut Graph, x: TensorId) -> TensorId {
    g.bin(Bin::Eq, x, x)
}

pub(super) fn is_infinite(g: &mut Graph, a: C) -> TensorId {
    let (p, q) = (part_is_infinite(g, a.0), part_is_infinite(g, a.1));
    g.bin(Bin::Or, p, q)
}

fn part_is_infinite(g: &mut Graph, x: TensorId) -> TensorId {
    let (m, inf) = (g.un(Un::Abs, x), g.scalar(x, f64::INFINITY));
    g.bin(Bin::Eq, m, inf)
}

/// Where the number is infinite: its infinite parts made 1 and the others 0, each with its sign.
fn boxed(g: &mut Graph, a: C, infinite: TensorId) -> C {
    let mut side = |x: TensorId| {
        let far = part_is_infinite(g, x);
        let (one, zero) = (g.scalar(x, 1.0), g.scalar(x, 0.0));
        let size = g.select(far, one, zero);
        let (below, minus) = (signed(g, x), g.un(Un::Neg, size));
        let unit = g.select(below, minus, size);
        g.select(infinite, unit, x)
    };
    (side(a.0), side(a.1))
}
