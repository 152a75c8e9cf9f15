//! The reference implementation of the waist: slow and simple. Every backend is tested against it.
//!
//! It evaluates kernels node by node and element by element, over [`Scalar`]s, and plans slot by
//! slot. Every slot has memory of its own, whatever the memory plan says, so a backend that differs
//! may also reveal an error in the memory plan.
//!
//! INVARIANT: each function is simple enough to be checked by reading it; speed does not matter.
//!
//! ```
//! use ferrax_kernel::{Bin, DType, Scalar, reference};
//! let (seven, zero) = (Scalar::i32(7), Scalar::i32(0));
//! assert_eq!(reference::bin(Bin::Div, seven, zero).unwrap(), Scalar::i32(-1));
//! assert_eq!(reference::bin(Bin::Rem, seven, zero).unwrap(), seven);
//! ```
mod array;
mod backend;
mod conv;
mod cumulative;
mod dot;
mod dynamic_slice;
mod fft;
mod gather;
mod kernel;
mod linalg;
mod plan;
mod scalar;
mod scatter;
mod sort;
mod world;

pub use array::{read, write};
pub use backend::ReferenceBackend;
pub use kernel::{function, kernel};
pub use plan::SlotValue;
pub use scalar::{bin, bitcast, convert, round, un};
pub use world::together;

use crate::Scalar;
use crate::error::{Error, Res};
use crate::routine::Routine;

/// The results of `r` on operands of the dtypes and sizes that [`Routine::operands`] states.
///
/// # Errors
/// `Invalid` if an operand has another number of bytes, or the routine uses a function that its
/// dtype does not have.
pub fn routine(r: &Routine, ins: &[&[u8]]) -> Res<Vec<Vec<u8>>> {
    let want = r.operands();
    // strides let a product read the first of a longer buffer's elements: the real parts of complex numbers
    let clip = |(b, (d, n)): (&&'_ [u8], &(crate::DType, usize))| match r {
        Routine::Dot(_) => b.len().min(d.size() * n),
        _ => b.len(),
    };
    let ins: Vec<&[u8]> = ins.iter().zip(&want).map(|x| &x.0[..clip((x.0, x.1))]).collect();
    let x = array::operands(r.name(), &want, &ins)?;
    if let Routine::Linalg(l) = r {
        return Ok(linalg::linalg(l, &ins));
    }
    let out = match r {
        Routine::Dot(d) => vec![dot::dot(d, &x[0], &x[1])?],
        Routine::Gather(g) => vec![gather::gather(g, &x[0], &x[1..])],
        Routine::Scatter(s) => vec![scatter::scatter(s, &x[0], &x[1], &x[2])?],
        Routine::DynamicSlice { operand, sizes, .. } => vec![dynamic_slice::slice(operand, sizes, &x[0], &x[1..])],
        Routine::DynamicUpdateSlice { operand, update, .. } => {
            vec![dynamic_slice::update(operand, update, &x[0], &x[1], &x[2..])]
        }
        Routine::Sort { outer, n, inner, num_keys, .. } => sort::sort([*outer, *n, *inner], *num_keys, &x),
        Routine::TopK { outer, n, inner, k, .. } => sort::top_k([*outer, *n, *inner], *k, &x[0]),
        Routine::Cumulative { kind, outer, n, inner, reverse, .. } => {
            vec![cumulative::cumulative(*kind, [*outer, *n, *inner], *reverse, &x[0])?]
        }
        Routine::Conv(c) => vec![conv::conv(c, &x[0], &x[1])?],
        Routine::Linalg(_) => unreachable!("it works on bytes"),
        Routine::Fft(f) => vec![fft::fft(f, &x[0])],
    };
    Ok(out.iter().map(|o| write(o)).collect())
}

fn undefined(what: &str, x: Scalar) -> Error {
    Error::Invalid(format!("{what} is not defined for {}", x.dtype))
}
