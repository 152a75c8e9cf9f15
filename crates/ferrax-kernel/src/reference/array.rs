//! Arrays of the reference evaluator: a `Vec` of scalars, and its bytes.
use crate::error::{Error, Res};
use crate::{DType, Scalar};

/// The elements of a dense buffer.
pub fn read(d: DType, bytes: &[u8]) -> Vec<Scalar> {
    bytes.chunks_exact(d.size()).map(|b| Scalar::from_bytes(d, b)).collect()
}

/// The dense buffer of these elements.
pub fn write(x: &[Scalar]) -> Vec<u8> {
    x.iter().flat_map(|s| s.bytes().into_iter().take(s.dtype.size())).collect()
}

/// All operands read, after their sizes are checked.
pub fn operands(what: &str, expected: &[(DType, usize)], ins: &[&[u8]]) -> Res<Vec<Vec<Scalar>>> {
    if expected.len() != ins.len() {
        return Err(Error::Invalid(format!("{what} takes {} operands, not {}", expected.len(), ins.len())));
    }
    for (i, ((d, len), bytes)) in expected.iter().zip(ins).enumerate() {
        if d.size() * len != bytes.len() {
            return Err(Error::Invalid(format!(
                "{what}: operand {i} is {len} elements of {d}, not {} bytes",
                bytes.len()
            )));
        }
    }
    Ok(expected.iter().zip(ins).map(|((d, _), b)| read(*d, b)).collect())
}

/// The row-major position of `index` in an array of shape `dims`.
pub fn position(dims: &[usize], index: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |at, (n, i)| at * n + i)
}

/// The value as an index; a value out of the range of `i64` counts as far out of bounds.
pub fn as_index(x: Scalar) -> i64 {
    if x.dtype == DType::U64 { i64::try_from(x.bits).unwrap_or(i64::MAX) } else { x.to_i64() }
}

/// `start` moved so that `size` elements from it lie inside `0..n`.
pub fn clamp_start(start: i64, size: usize, n: usize) -> usize {
    start.clamp(0, (n - size) as i64) as usize
}
