//! DLPack capsules of dtypes that numpy has no code for: numpy lends and reads their bytes as
//! unsigned integers, and this module changes only the code.
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

/// Floats by DLPack 1.1's codes. Those of 4 bits are left out: libraries differ on whether two share a byte.
const CODES: &[(&str, u8, u8)] = &[
    ("bfloat16", 4, 16),
    ("float8_e3m4", 7, 8),
    ("float8_e4m3", 8, 8),
    ("float8_e4m3b11fnuz", 9, 8),
    ("float8_e4m3fn", 10, 8),
    ("float8_e4m3fnuz", 11, 8),
    ("float8_e5m2", 12, 8),
    ("float8_e5m2fnuz", 13, 8),
    ("float8_e8m0fnu", 14, 8),
];
const UNSIGNED: u8 = 1;
const NAME: &CStr = c"dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";

#[repr(C)]
struct LentTensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
}
#[repr(C)]
struct LentVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: LentTensor,
}

/// The unsigned integer that has as many bits as a dtype of [`CODES`].
pub fn bits_of(name: &str) -> Option<&'static str> {
    let (_, _, bits) = CODES.iter().find(|c| c.0 == name)?;
    Some(if *bits == 16 { "uint16" } else { "uint8" })
}
/// Marks a capsule of unsigned integers as the bits of a dtype of [`CODES`].
pub fn name_elements(capsule: &Bound<PyAny>, name: &str) -> PyResult<()> {
    let code = CODES.iter().find(|c| c.0 == name).map_or(UNSIGNED, |c| c.1);
    with_tensor(capsule, |t| t.code = code)
}
/// The dtype of a capsule's elements, if numpy has no code for it: they are unsigned integers from now on. `None` for all others.
#[pyfunction]
pub fn dlpack_as_bits(capsule: &Bound<PyAny>) -> PyResult<Option<&'static str>> {
    with_tensor(capsule, |t| {
        let (name, ..) = CODES.iter().find(|c| (c.1, c.2, 1) == (t.code, t.bits, t.lanes))?;
        t.code = UNSIGNED;
        Some(*name)
    })
}
fn with_tensor<T>(capsule: &Bound<PyAny>, f: impl FnOnce(&mut LentTensor) -> T) -> PyResult<T> {
    use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid};
    let c = capsule.as_ptr();
    // SAFETY: the interpreter is attached, `c` is an object, and the capsule has the name by which
    // the pointer is requested. A capsule of that name that is not consumed (it would be called
    // "used_..") owns a valid DLPack tensor, and the owner of the capsule owns the tensor: nothing
    // else reads its header, and the reference ends with `f`.
    let tensor = unsafe {
        if PyCapsule_IsValid(c, VERSIONED_NAME.as_ptr()) == 1 {
            &mut (*PyCapsule_GetPointer(c, VERSIONED_NAME.as_ptr()).cast::<LentVersioned>()).tensor
        } else if PyCapsule_IsValid(c, NAME.as_ptr()) == 1 {
            &mut *PyCapsule_GetPointer(c, NAME.as_ptr()).cast::<LentTensor>()
        } else {
            return Err(PyTypeError::new_err("not a capsule of a DLPack tensor that nobody has taken"));
        }
    };
    Ok(f(tensor))
}
