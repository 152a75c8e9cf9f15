//! `DynamicSlice` and `DynamicUpdateSlice`: windows whose starts are data. An update costs what it writes, where it is in place.
use super::Run;
use super::walk::{Walk, copy, index_at, strides};
use crate::kernels::Bases;
use ferrax_kernel::{DType, Dims, Res};

/// Byte offset of the window, moved inside.
fn offset(
    bases: &Bases,
    first: u32,
    index: DType,
    operand: &Dims,
    window: &Dims,
    strides: &[isize],
    bytes: usize,
) -> isize {
    let mut at = 0;
    for k in 0..operand.len() {
        // SAFETY: `Routine::operands` lists an integer of this dtype for each axis, and verify, sizes, found the slots so.
        let x = unsafe { index_at(index, bases.input(first + k as u32)) };
        at += x.clamp(0, (operand[k] - window[k].min(operand[k])) as i64) as isize * strides[k];
    }
    at * bytes as isize
}

pub fn slice(operand: &Dims, sizes: &Dims, dtype: DType, index: DType) -> Res<Run> {
    check(operand, sizes)?;
    let (bytes, from, to) = (dtype.size(), strides(operand), strides(sizes));
    let walk = Walk::new(bytes, (0..operand.len()).map(|k| (sizes[k], to[k], from[k])));
    let (operand, sizes) = (operand.clone(), sizes.clone());
    Ok(Box::new(move |bases: Bases, _| {
        let at = offset(&bases, 1, index, &operand, &sizes, &from, bytes);
        // SAFETY: `check`: no axis of the window is longer than the operand's, so that the clamped start leaves it inside; the result has the
        // window's size (verify, sizes).
        unsafe { walk.run(bases.output(0), bases.input(0).wrapping_offset(at), copy(bytes)) };
        Ok(())
    }))
}
pub fn update(operand: &Dims, sizes: &Dims, dtype: DType, index: DType) -> Res<Run> {
    check(operand, sizes)?;
    let (bytes, to, from) = (dtype.size(), strides(operand), strides(sizes));
    let walk = Walk::new(bytes, (0..operand.len()).map(|k| (sizes[k], to[k], from[k])));
    let total = operand.size() * bytes;
    let (operand, sizes) = (operand.clone(), sizes.clone());
    Ok(Box::new(move |bases: Bases, _| {
        let (old, out) = (bases.input(0), bases.output(0));
        let at = offset(&bases, 2, index, &operand, &sizes, &to, bytes);
        // SAFETY: verify, sizes: operand and result are of one size, `total`, the update is the window; `check` and the clamp leave it inside.
        unsafe {
            if old != out {
                out.copy_from(old, total);
            }
            walk.run(out.wrapping_offset(at), bases.input(1), copy(bytes));
        }
        Ok(())
    }))
}
fn check(operand: &Dims, window: &Dims) -> Res<()> {
    if operand.len() != window.len() || operand.iter().zip(window.iter()).any(|(n, w)| w > n) {
        return Err(ferrax_kernel::Error::Invalid(format!(
            "a window of shape {window} of an array of shape {operand}"
        )));
    }
    Ok(())
}
