//! DLPack: tensors that other libraries read in place, and their tensors read in place here.
//!
//! ```
//! use ferrax::dlpack::{self, Managed};
//! use ferrax::{Tensor, views};
//! let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
//! let p = dlpack::export(&x)?.into_raw(); // a `DLManagedTensorVersioned *` for a C interface; its owner calls its deleter, once
//! // SAFETY: the pointer is of a tensor that has no other owner, and whose elements do not change
//! let lent = unsafe { Managed::from_raw(p) }.expect("no null");
//! let y = dlpack::import(lent)?; // given back when the last tensor of this memory goes
//! assert_eq!(views::view::<f32>(&y)?.slice().as_ptr(), views::view::<f32>(&x)?.slice().as_ptr());
//! assert_eq!((&y * 2.0).sum().item(), 20.0);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: no element is copied or written: exports are marked read-only, and results never
//! reuse imported memory, even if it is donated.
use crate::array;
use crate::device;
use crate::tensor::Tensor;
use ferrax_cpu::dlpack::ElementCode;
#[doc(inline)]
pub use ferrax_cpu::dlpack::Managed;
use ferrax_ir::{Aval, Dtype, Error, ErrorKind, Res, Value};

/// Dtypes by DLPack's numbers.
const CODES: &[(Dtype, ElementCode)] = &[
    (Dtype::BOOL, ElementCode::new(6, 8)),
    (Dtype::I8, ElementCode::new(0, 8)),
    (Dtype::I16, ElementCode::new(0, 16)),
    (Dtype::I32, ElementCode::new(0, 32)),
    (Dtype::I64, ElementCode::new(0, 64)),
    (Dtype::U8, ElementCode::new(1, 8)),
    (Dtype::U16, ElementCode::new(1, 16)),
    (Dtype::U32, ElementCode::new(1, 32)),
    (Dtype::U64, ElementCode::new(1, 64)),
    (Dtype::F16, ElementCode::new(2, 16)),
    (Dtype::BF16, ElementCode::new(4, 16)),
    (Dtype::F32, ElementCode::new(2, 32)),
    (Dtype::F64, ElementCode::new(2, 64)),
    (Dtype::C64, ElementCode::new(5, 64)),
    (Dtype::C128, ElementCode::new(5, 128)),
];
/// A tensor's elements for another library, read-only. Waits for them.
///
/// # Errors
/// `Type` for keys and dtypes of fewer than 8 bits; `Runtime` on a device that the host cannot
/// read; `TracerArray` under a transform; the error of a failed computation.
pub fn export(x: &Tensor) -> Res<Managed> {
    let a = match &x.0 {
        Value::Array(a) => a.clone(),
        Value::Lit(l) => array::from_lit(l, device::default_device())?,
        Value::Tracer(_) => return Err(x.0.abstract_error(ErrorKind::TracerArray)),
    };
    let Some((_, code)) = CODES.iter().find(|c| c.0 == x.dtype()) else {
        return Err(Error::type_error(format!("DLPack has no {}", x.aval().long())));
    };
    let buffer = array::single(&a)?.buffer;
    array::wait(&buffer)?;
    Ok(Managed::lend(buffer, *code, x.shape())?)
}
/// Another library's tensor in host memory, in place. The memory is released after the last tensor
/// of it, and the last run that reads it.
///
/// # Errors
/// `Type` for elements of an unsupported dtype; `Runtime`, with the reason, if they cannot be read
/// in place: on another device, not contiguous, or not aligned.
pub fn import(x: Managed) -> Res<Tensor> {
    crate::mistakes::init();
    let (code, shape) = x.kind()?;
    let Some((dtype, _)) = CODES.iter().find(|c| c.1 == code) else {
        let m = format!(
            "elements of DLPack's code {} with {} bits and {} lanes are not a dtype",
            code.code, code.bits, code.lanes
        );
        return Err(Error::type_error(m));
    };
    let buffer = x.into_buffer()?;
    if dtype.is_bool() && buffer.memory()?.host().is_some_and(|b| b.iter().any(|b| *b > 1)) {
        return Err(Error::type_error("booleans are bytes of 0 and 1, and others are among these"));
    }
    let aval = Aval::new(*dtype, &shape);
    Ok(Tensor(Value::Array(array::array(aval, &device::cpus()[0], buffer, false))))
}
