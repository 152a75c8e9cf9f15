//! Buffers: bytes of a Python object through the buffer protocol, and host-readable device memory
//! as a read-only buffer of bytes (`numpy.frombuffer`) or of an array's elements (`memoryview(x)`).
//!
//! INVARIANT: exported memory is read-only and kept alive by its exporter; imported memory is
//! copied before the interpreter runs again.
#![allow(unsafe_code)]
use super::PyArray;
use crate::error::{IntoPyResult, kernel_to_py};
use ferrax::array;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::lower::physical;
use ferrax_ir::value::{Array, Value};
use ferrax_kernel::{Buffer, DType};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// Calls `f` with the bytes of a C-contiguous exporter.
pub fn with_bytes<T>(x: &Bound<PyAny>, f: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    struct Held(ffi::Py_buffer);
    impl Drop for Held {
        fn drop(&mut self) {
            // SAFETY: the buffer was filled in by PyObject_GetBuffer, and is released once.
            unsafe { ffi::PyBuffer_Release(&mut self.0) }
        }
    }
    let mut view = MaybeUninit::<ffi::Py_buffer>::zeroed();
    // SAFETY: `x` is alive and the interpreter is attached; PyBUF_SIMPLE asks for contiguous bytes without format or shape.
    if unsafe { ffi::PyObject_GetBuffer(x.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_SIMPLE) } != 0 {
        return Err(PyErr::fetch(x.py()));
    }
    // SAFETY: PyObject_GetBuffer succeeded, so the view is initialised.
    let held = Held(unsafe { view.assume_init() });
    let n = usize::try_from(held.0.len).unwrap_or(0);
    let bytes: &[u8] = match n {
        0 => &[],
        // SAFETY: the exporter keeps `len` bytes at `buf` valid until the view is released, which `held` does after `f`. Nothing
        // writes to them meanwhile: `f` runs no Python code and the interpreter lock is held.
        n => unsafe { std::slice::from_raw_parts(held.0.buf as *const u8, n) },
    };
    Ok(f(bytes))
}

/// The memory of exported bytes.
pub enum Bytes {
    /// Ready, on a device whose memory the host reads in place.
    Device(Buffer),
    Owned(Vec<u8>),
}
impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Owned(v) => v,
            Bytes::Device(b) => b.try_memory().and_then(Result::ok).and_then(|m| m.host()).unwrap_or(&[]),
        }
    }
}

/// The elements of an array where the host can read them: as many bytes as its type has.
pub fn host_bytes(py: Python, a: &Array) -> PyResult<Bytes> {
    let bytes = match array::whole(a).py(py)? {
        Some(buffer) if in_place(py, &buffer)? => Bytes::Device(buffer),
        _ => Bytes::Owned(py.detach(|| array::bytes(a)).py(py)?),
    };
    let p = physical(a.aval());
    let (has, needs) = (bytes.get().len(), p.shape.size() * p.dtype.size());
    if has != needs {
        let text = format!("internal error: {} lies in {has} bytes, and has {needs}", a.aval().long());
        return Err(PyRuntimeError::new_err(text));
    }
    Ok(bytes)
}
/// Whether the host reads the buffer's memory itself. Waits for it.
fn in_place(py: Python, buffer: &Buffer) -> PyResult<bool> {
    array::wait(buffer).py(py)?;
    match buffer.try_memory() {
        Some(Ok(m)) => Ok(m.host().is_some()),
        Some(Err(e)) => Err(kernel_to_py(py, e)),
        None => Ok(false),
    }
}
/// Over how many devices an array is laid out, those of other processes included.
pub fn device_count(py: Python, a: &Array) -> PyResult<usize> {
    array::shards(a).py(py)?;
    Ok(array::data(a).py(py)?.layout.as_ref().map_or(1, |l| l.devices().len()))
}

/// Read-only bytes for `numpy.frombuffer`.
#[pyclass(frozen, name = "_HostMemory")]
pub struct HostMemory(pub Bytes);
impl HostMemory {
    pub fn address(&self) -> usize {
        self.0.get().as_ptr() as usize
    }
}
#[pymethods]
impl HostMemory {
    unsafe fn __getbuffer__(slf: Bound<Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() || flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("ferrax arrays are immutable: only a read-only view can be had"));
        }
        let (data, len) = {
            let bytes = slf.get().0.get();
            (bytes.as_ptr() as *mut c_void, bytes.len() as isize)
        };
        // SAFETY: `view` is not null, and the protocol passes it to be filled in. The bytes are
        // immutable and live as long as `slf`, to which the view takes a reference.
        unsafe {
            (*view).buf = data;
            (*view).len = len;
            (*view).readonly = 1;
            (*view).itemsize = 1;
            (*view).format =
                if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT { c"B".as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).ndim = 1;
            (*view).shape = if flags & ffi::PyBUF_ND == ffi::PyBUF_ND { &mut (*view).len } else { ptr::null_mut() };
            (*view).strides =
                if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES { &mut (*view).itemsize } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}

thread_local! { static SWALLOWED: Cell<Option<(usize, PyErr)>> = const { Cell::new(None) } }
/// The error of the last request for a view of this object. numpy requests a view first, discards
/// its error (an interrupt, too), and then requests the array.
pub fn swallowed(x: &Bound<PyAny>) -> Option<PyErr> {
    SWALLOWED.take().filter(|s| s.0 == x.as_ptr() as usize).map(|s| s.1)
}

/// The memory that a view of an array refers to until it is released.
struct Viewed {
    bytes: Bytes,
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}
/// The letter of the buffer protocol for a dtype.
fn letter(d: Dtype) -> Option<&'static CStr> {
    Some(match d {
        Dtype::Num(DType::Bool) => c"?",
        Dtype::Num(DType::I8) => c"b",
        Dtype::Num(DType::U8) => c"B",
        Dtype::Num(DType::I16) => c"h",
        Dtype::Num(DType::U16) => c"H",
        Dtype::Num(DType::I32) => c"i",
        Dtype::Num(DType::U32) => c"I",
        Dtype::Num(DType::I64) => c"q",
        Dtype::Num(DType::U64) => c"Q",
        Dtype::Num(DType::F16) => c"e",
        Dtype::Num(DType::F32) => c"f",
        Dtype::Num(DType::F64) => c"d",
        Dtype::C64 => c"Zf",
        Dtype::C128 => c"Zd",
        _ => return None,
    })
}

#[pymethods]
impl PyArray {
    unsafe fn __getbuffer__(slf: Bound<Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Value::Array(a) = &slf.get().value else {
            return Err(PyTypeError::new_err("a tracer has no memory: a bytes-like object is required"));
        };
        if view.is_null() || flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("ferrax arrays are immutable: only a read-only view can be had"));
        }
        let d = a.aval().dtype;
        let Some(format) = letter(d) else {
            return Err(PyBufferError::new_err(format!(
                "arrays of dtype {} are not supported by the Python buffer protocol",
                d.long()
            )));
        };
        if device_count(slf.py(), a)? > 1 {
            return Err(PyBufferError::new_err(
                "INVALID_ARGUMENT: Python buffer protocol is only defined for buffers with a single shard.",
            ));
        }
        let kept = |e: &PyErr| SWALLOWED.set(Some((slf.as_ptr() as usize, e.clone_ref(slf.py()))));
        let bytes = host_bytes(slf.py(), a).inspect_err(kept)?;
        let shape: Vec<ffi::Py_ssize_t> = a.aval().shape.iter().map(|n| *n as ffi::Py_ssize_t).collect();
        let mut strides = vec![d.size() as ffi::Py_ssize_t; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(shape[i]);
        }
        let made = Box::into_raw(Box::new(Viewed { bytes, shape, strides }));
        // SAFETY: `made` was leaked from a box just now, and only `__releasebuffer__` frees it, once, when the view is released:
        // until then its vectors do not move. `view` is not null, and the protocol hands it over for filling in. The bytes are
        // immutable and kept by `made`; the view takes a reference to `slf`.
        unsafe {
            let e = &mut *made;
            (*view).buf = e.bytes.get().as_ptr() as *mut c_void;
            (*view).len = e.bytes.get().len() as ffi::Py_ssize_t;
            (*view).readonly = 1;
            (*view).itemsize = d.size() as ffi::Py_ssize_t;
            (*view).format = if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
                format.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            };
            (*view).ndim = e.shape.len() as c_int;
            (*view).shape = if flags & ffi::PyBUF_ND == ffi::PyBUF_ND { e.shape.as_mut_ptr() } else { ptr::null_mut() };
            (*view).strides =
                if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES { e.strides.as_mut_ptr() } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = made.cast();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` set `internal`, and the protocol releases each view once.
        unsafe { drop(Box::from_raw((*view).internal.cast::<Viewed>())) }
    }
}
