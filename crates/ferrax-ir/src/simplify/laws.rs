//! The identities. Each keeps every bit, for -0, inf and nan too; those that do not (x + 0, x * 0, x - x, x / x) are not here.
//! A literal that is broadcast counts as the literal.
//!
//! ```text
//! x * 1 = x    x - 0 = x    x / 1 = x    x + -0 = x    x ^ 1 = x    -(-x) = x    not (not x) = x    copy x = x
//! x + 0 = x of integers     max(x, x) = min(x, x) = x             select(p, x, x) = x       convert to its own dtype = x
//! transpose of x y = transpose of y times transpose of x, where nothing else reads x y
//! transpose of transpose, reshape of reshape, squeeze of reshape: one of them; a permutation or shape that changes nothing: none
//! ```
use super::Simplifier;
use crate::aval::{Aval, Lit};
use crate::op::Op;
use crate::ops::dot::{Dot, DotDims, free};
use crate::ops::pointwise::{Pointwise, Pw};
use crate::ops::reshape::Reshape;
use crate::ops::transpose::Transpose;
use crate::program::{Atom, Eqn};
use ferrax_kernel::Dims;
use smallvec::SmallVec;

/// The atom that the equation's one output equals, by some law. A law that simplifies to another
/// equation emits it.
pub(super) fn apply(s: &mut Simplifier, op: &Op, x: &[Atom], out: &Aval) -> Option<Atom> {
    let same = |s: &Simplifier, a: &Atom| (s.aval(a) == *out).then_some(*a);
    match op {
        Op::Pointwise(p) => pointwise(s, p, x, out),
        Op::Select(_) if x.len() > 1 && x[1..].iter().all(|a| *a == x[1]) => same(s, &x[1]),
        Op::Convert(_) => same(s, &x[0]),
        Op::Transpose(t) => {
            if t.permutation.iter().copied().eq(0..t.permutation.len()) {
                return same(s, &x[0]);
            }
            let inner = s.maker(&x[0])?;
            if let Op::Dot(d) = &inner.op {
                let (swapped, permutation) = transposed_dot(s, d, &inner.args, &t.permutation)?;
                let args = s.sole_maker(&x[0])?.args.iter().rev().copied().collect();
                let mut shape = out.shape.clone();
                permutation.iter().zip(out.shape.iter()).for_each(|(p, n)| shape[*p] = *n);
                let product = Aval { shape, ..out.clone() };
                let product = s.emit(&swapped.into(), args, std::slice::from_ref(&product)).first().copied()?;
                return again(s, Transpose { permutation }.into(), product, out);
            }
            let Op::Transpose(u) = &inner.op else { return None };
            let (permutation, x) = (u.permutation.pick(&t.permutation), inner.args[0]);
            again(s, Transpose { permutation }.into(), x, out)
        }
        Op::Reshape(_) | Op::Squeeze(_) => {
            if let Some(a) = same(s, &x[0]) {
                return Some(a);
            }
            let inner = s.maker(&x[0])?;
            if !matches!(inner.op, Op::Reshape(_) | Op::Squeeze(_)) {
                return None;
            }
            let x = inner.args[0];
            again(s, Reshape { new_sizes: out.shape.clone() }.into(), x, out)
        }
        _ => None,
    }
}
/// Products of operands from this length both ways use one order of summation, whichever operand is
/// on the left.
const MIN_ORDERED_LENGTH: usize = 32;

/// The product with its operands exchanged, and the permutation that is left, if then elements that lie together do so in the result.
fn transposed_dot(s: &Simplifier, d: &Dot, x: &[Atom], permutation: &[usize]) -> Option<(Dot, Dims)> {
    let DotDims { lc, rc, lb, rb } = &*d.dimension_numbers;
    let (l, r) = (s.aval(&x[0]), s.aval(&x[1]));
    let (lf, rf) = (free(l.rank(), lc, lb), free(r.rank(), rc, rb));
    let (b, m) = (lb.len(), lb.len() + lf.len());
    let sizes: Vec<usize> =
        lb.iter().chain(lf.iter()).map(|a| l.shape[*a]).chain(rf.iter().map(|a| r.shape[*a])).collect();
    let last = permutation.iter().rfind(|a| sizes[**a] > 1)?;
    let is_left = (b..m).contains(last) && sizes[last + 1..m].iter().all(|n| *n == 1);
    let exchanged = permutation.iter().map(|a| match *a {
        a if a >= m => a - lf.len(),
        a if a >= b => a + rf.len(),
        a => a,
    });
    let long = l.shape.pick(&lf).size() >= MIN_ORDERED_LENGTH && r.shape.pick(&rf).size() >= MIN_ORDERED_LENGTH;
    let dims = DotDims { lc: rc.clone(), rc: lc.clone(), lb: rb.clone(), rb: lb.clone() };
    (long && is_left).then(|| (Dot { dimension_numbers: Box::new(dims), ..d.clone() }, exchanged.collect()))
}
fn again(s: &mut Simplifier, op: Op, x: Atom, out: &Aval) -> Option<Atom> {
    s.emit(&op, SmallVec::from_slice(&[x]), std::slice::from_ref(out)).first().copied()
}

fn pointwise(s: &Simplifier, p: &Pointwise, x: &[Atom], out: &Aval) -> Option<Atom> {
    // weak types are not part of the value
    let is = |a: &Atom| {
        let b = s.aval(a);
        (b.same(out)).then_some(*a)
    };
    let literal = |a: &Atom| match (a, s.maker(a)) {
        (Atom::Lit(l), _) => Some(*l),
        (_, Some(Eqn { op: Op::BroadcastInDim(_), args, .. })) => match args[0] {
            Atom::Lit(l) => Some(l),
            Atom::Var(_) => None,
        },
        _ => None,
    };
    let lit = |a: &Atom, v: f64| literal(a).is_some_and(|l| number(&l) == Some(v));
    let negative_zero =
        |a: &Atom| literal(a).is_some_and(|l| number(&l) == Some(0.0) && l.parts().0.is_sign_negative());
    let nothing = |a: &Atom| negative_zero(a) || out.dtype.is_int() && lit(a, 0.0);
    let undo = |f: Pw| match s.maker(&x[0]) {
        Some(e) if matches!(&e.op, Op::Pointwise(q) if q.f == f) => is(&e.args[0]),
        _ => None,
    };
    match p.f {
        Pw::Mul if lit(&x[1], 1.0) => is(&x[0]),
        Pw::Mul if lit(&x[0], 1.0) => is(&x[1]),
        Pw::Div if lit(&x[1], 1.0) => is(&x[0]),
        Pw::Sub if lit(&x[1], 0.0) && !negative_zero(&x[1]) => is(&x[0]),
        Pw::Add if nothing(&x[1]) => is(&x[0]),
        Pw::Add if nothing(&x[0]) => is(&x[1]),
        Pw::Max | Pw::Min if x[0] == x[1] => is(&x[0]),
        Pw::IntegerPow if p.y == 1 => is(&x[0]),
        Pw::Copy => is(&x[0]),
        Pw::Neg => undo(Pw::Neg),
        Pw::Not => undo(Pw::Not),
        _ => None,
    }
}
/// The value of a real literal.
fn number(l: &Lit) -> Option<f64> {
    l.scalar().map(|s| s.to_f64())
}
