//! The class of jitted functions, made by hand: pyo3 has no vectorcall for `__call__` and no way to hold an instance dict beside it.
//!
//! An instance is a C struct: the vectorcall pointer, a dict, a list of weak references and a shared [`Jit`]. Attributes that are
//! neither in the dict nor on the class are looked up on the companion object, which has the methods (`lower`, `clear_cache`, ...).
//!
//! INVARIANT: `inner` is one count of a valid `Arc` from `new` to `dealloc`; the interpreter is attached whenever a slot runs.
#![allow(unsafe_code)]
use super::Jit;
use crate::error::{guarded, leaving};
use crate::once::Once;
use pyo3::exceptions::PyAttributeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

unsafe extern "C" {
    /// A bound method; pyo3 does not declare it.
    fn PyMethod_New(function: *mut PyObject, object: *mut PyObject) -> *mut PyObject;
}

#[repr(C)]
struct Object {
    base: PyObject,
    vectorcall: ffi::vectorcallfunc,
    dict: *mut PyObject,
    weak: *mut PyObject,
    inner: *const Jit,
}

/// The arguments of one call, borrowed from the caller.
pub struct Args<'a, 'py> {
    py: Python<'py>,
    items: &'a [*mut PyObject],
    n_positional: usize,
    names: Option<Bound<'py, PyTuple>>,
}
impl<'a, 'py> Args<'a, 'py> {
    pub fn py(&self) -> Python<'py> {
        self.py
    }
    pub fn n_positional(&self) -> usize {
        self.n_positional
    }
    pub fn names(&self) -> Option<&Bound<'py, PyTuple>> {
        self.names.as_ref()
    }
    pub fn n_keywords(&self) -> usize {
        self.items.len() - self.n_positional
    }
    /// Argument i: positional ones first, then those by keyword.
    #[inline]
    pub fn get(&self, i: usize) -> Bound<'py, PyAny> {
        // SAFETY: the caller of a vectorcall keeps every argument alive until it returns, and `items` is not used after that.
        unsafe { Bound::from_borrowed_ptr(self.py, self.items[i]) }
    }
}

/// Calls `f` with the arguments in a list.
pub fn with_args<'py, T>(
    py: Python<'py>,
    items: &[Bound<'py, PyAny>],
    n_positional: usize,
    names: &[Bound<'py, PyAny>],
    f: impl FnOnce(&Args<'_, 'py>) -> PyResult<T>,
) -> PyResult<T> {
    let pointers: Vec<*mut PyObject> = items.iter().map(|x| x.as_ptr()).collect();
    let names = if names.is_empty() { None } else { Some(PyTuple::new(py, names)?) };
    // the pointers are those of `items`, which outlive the call
    f(&Args { py, items: &pointers, n_positional, names })
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: Once<Py<PyType>> = Once::new();
    Ok(CLASS.get_or_try_init(py, || make_class(py))?.bind(py))
}
/// The class, for `isinstance` and for the module.
pub fn class_object(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    class(py).cloned()
}

fn make_class(py: Python) -> PyResult<Py<PyType>> {
    let member = |name: &'static std::ffi::CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    };
    let end = ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() };
    // the class keeps pointers to these tables for as long as the process lives
    let members: &'static mut [ffi::PyMemberDef] = Box::leak(Box::new([
        member(c"__vectorcalloffset__", offset_of!(Object, vectorcall)),
        member(c"__dictoffset__", offset_of!(Object, dict)),
        member(c"__weaklistoffset__", offset_of!(Object, weak)),
        end,
    ]));
    let getsets: &'static mut [ffi::PyGetSetDef] = Box::leak(Box::new([
        ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(ffi::PyObject_GenericGetDict),
            set: Some(ffi::PyObject_GenericSetDict),
            doc: ptr::null(),
            closure: ptr::null_mut(),
        },
        ffi::PyGetSetDef {
            name: c"__signature__".as_ptr(),
            get: Some(signature),
            set: None,
            doc: ptr::null(),
            closure: ptr::null_mut(),
        },
        ffi::PyGetSetDef { name: ptr::null(), get: None, set: None, doc: ptr::null(), closure: ptr::null_mut() },
    ]));
    let slot = |slot: c_int, f: *mut c_void| ffi::PyType_Slot { slot, pfunc: f };
    let slots: &'static mut [ffi::PyType_Slot] = Box::leak(Box::new([
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
        slot(ffi::Py_tp_descr_get, descr_get as *mut c_void),
        slot(ffi::Py_tp_getattro, getattro as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getsets.as_mut_ptr().cast()),
        slot(0, ptr::null_mut()),
    ]));
    let mut spec = ffi::PyType_Spec {
        name: c"ferrax._core.PjitFunction".as_ptr(),
        basicsize: size_of::<Object>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_HAVE_GC
            | ffi::Py_TPFLAGS_HAVE_VECTORCALL
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec and all its tables are well formed and outlive the class; the slots have the
    // signatures that their numbers require.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// A new jitted function.
pub fn new(py: Python<'_>, jit: Jit) -> PyResult<Bound<'_, PyAny>> {
    let class = class(py)?;
    // SAFETY: the class was made by `make_class`, so its instances are `Object`s; allocation zeroes them, and the collector does not
    // see one before all its fields are set: `traverse` accepts null pointers, and nothing runs between allocation and assignment.
    unsafe {
        let p = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        if p.is_null() {
            return Err(PyErr::fetch(py));
        }
        let o = p.cast::<Object>();
        (*o).vectorcall = vectorcall;
        (*o).inner = Arc::into_raw(Arc::new(jit));
        Ok(Bound::from_owned_ptr(py, p))
    }
}

/// The inner part of a jitted function; `None` for any other object.
pub fn inner<'a>(x: &'a Bound<PyAny>) -> Option<&'a Jit> {
    let class = class(x.py()).ok()?;
    // SAFETY: an instance of the class is an `Object` whose `Arc` lives as long as the instance, which `x` keeps alive for `'a`.
    if x.get_type().is(class) { unsafe { (*x.as_ptr().cast::<Object>()).inner.as_ref() } } else { None }
}

/// The inner part, to be kept beyond the object.
pub fn shared(x: &Bound<PyAny>) -> Option<Arc<Jit>> {
    let jit: *const Jit = inner(x)?;
    // SAFETY: the pointer came from `Arc::into_raw` in `new`, and the object holds one count while `x` is alive.
    unsafe {
        Arc::increment_strong_count(jit);
        Some(Arc::from_raw(jit))
    }
}

unsafe extern "C" fn vectorcall(
    slf: *mut PyObject,
    args: *const *mut PyObject,
    nargsf: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls this with the interpreter attached, `slf` an `Object`, and the vectorcall protocol's arguments: n
    // positional ones, then one for each name in `names`, all alive until the call returns.
    unsafe {
        let py = Python::assume_attached();
        let n = ffi::PyVectorcall_NARGS(nargsf) as usize;
        let names = Bound::from_borrowed_ptr_or_opt(py, names).map(|t| t.cast_into_unchecked::<PyTuple>());
        let total = n + names.as_ref().map_or(0, |t| t.len());
        let items: &[*mut PyObject] = if total == 0 { &[] } else { std::slice::from_raw_parts(args, total) };
        let jit = &*(*slf.cast::<Object>()).inner;
        let slf = Bound::from_borrowed_ptr(py, slf);
        let called = guarded(|| jit.call(&slf, &Args { py, items, n_positional: n, names }));
        finish(py, called.map_err(|e| leaving(py, e)))
    }
}
/// A result in CPython's calling convention.
fn finish(py: Python, r: PyResult<Bound<PyAny>>) -> *mut PyObject {
    match r {
        Ok(x) => x.into_ptr(),
        Err(e) => {
            e.restore(py);
            ptr::null_mut()
        }
    }
}

/// Runs `f` so that references to Python objects that it drops are released at once: pyo3 defers those that are dropped in a slot of
/// a hand-made class, and a function that a deleted `jit` object was of would live until the next call into the extension. While the interpreter
/// ends they are left to it.
fn attached(f: impl FnOnce()) {
    let mut f = Some(f);
    let done = Python::try_attach(|_| f.take().map(|f| f()));
    if done.is_none()
        && let Some(f) = f
    {
        f();
    }
}

unsafe extern "C" fn dealloc(slf: *mut PyObject) {
    // SAFETY: the last reference is gone; the object is untracked before its fields are dropped,
    // each once. Instances own a reference to their heap class, which is released here.
    unsafe {
        ffi::PyObject_GC_UnTrack(slf.cast());
        let o = slf.cast::<Object>();
        if !(*o).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(slf);
        }
        ffi::Py_CLEAR(&mut (*o).dict);
        if !(*o).inner.is_null() {
            let jit = Arc::from_raw((*o).inner);
            (*o).inner = ptr::null();
            attached(|| drop(jit));
        }
        let class = ffi::Py_TYPE(slf);
        ffi::PyObject_GC_Del(slf.cast());
        ffi::Py_DECREF(class.cast());
    }
}
unsafe extern "C" fn traverse(slf: *mut PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: called by the collector on a live object; only pointers that the object owns are visited.
    unsafe {
        let o = slf.cast::<Object>();
        let each = |p: *mut PyObject| if p.is_null() { 0 } else { visit(p, arg) };
        for p in [(*o).dict, ffi::Py_TYPE(slf).cast()] {
            let r = each(p);
            if r != 0 {
                return r;
            }
        }
        let Some(jit) = (*o).inner.as_ref() else { return 0 };
        // another holder (an object with its methods, a stage) refers to the same things, of which there is one reference each
        let arc = std::mem::ManuallyDrop::new(Arc::from_raw((*o).inner));
        if Arc::strong_count(&arc) > 1 {
            return 0;
        }
        let mut result = each(jit.function().as_ptr());
        jit.visit(&mut |x| {
            if result == 0 {
                result = each(x.as_ptr());
            }
        });
        result
    }
}
unsafe extern "C" fn clear(slf: *mut PyObject) -> c_int {
    // SAFETY: as `traverse`; the function itself stays until `dealloc`, since a call may still be running: clearing the dict breaks
    // every cycle that goes through it, forgetting the traces those through static arguments, and the function's own `clear` those
    // through the function.
    unsafe {
        let o = slf.cast::<Object>();
        ffi::Py_CLEAR(&mut (*o).dict);
        if let Some(jit) = (*o).inner.as_ref() {
            attached(|| jit.clear());
        }
    }
    0
}
unsafe extern "C" fn descr_get(slf: *mut PyObject, obj: *mut PyObject, _class: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython passes live objects; `obj` is null or None for access through the class.
    unsafe {
        if obj.is_null() || obj == ffi::Py_None() {
            ffi::Py_INCREF(slf);
            return slf;
        }
        PyMethod_New(slf, obj)
    }
}
unsafe extern "C" fn getattro(slf: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython passes a live object and a string, with the interpreter attached.
    unsafe {
        let found = ffi::PyObject_GenericGetAttr(slf, name);
        if !found.is_null() || ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
            return found;
        }
        let py = Python::assume_attached();
        let first = PyErr::fetch(py);
        let (slf, name) = (Bound::from_borrowed_ptr(py, slf), Bound::from_borrowed_ptr(py, name));
        let companion = guarded(|| super::attribute(&slf, &name));
        finish(py, companion.map_err(|e| if e.is_instance_of::<PyAttributeError>(py) { first } else { e }))
    }
}
/// The signature of the function: `inspect` reads it from the class when it does not follow
/// `__wrapped__`.
unsafe extern "C" fn signature(slf: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: CPython passes a live object, with the interpreter attached.
    unsafe {
        let py = Python::assume_attached();
        let slf = Bound::from_borrowed_ptr(py, slf);
        let found = || py.import("inspect")?.call_method1("signature", (slf.getattr("__wrapped__")?,));
        finish(py, guarded(found))
    }
}
unsafe extern "C" fn repr(slf: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython passes a live object, with the interpreter attached.
    unsafe {
        let py = Python::assume_attached();
        let jit = &*(*slf.cast::<Object>()).inner;
        finish(py, guarded(|| Ok(jit.text(py)?.into_pyobject(py)?.into_any())))
    }
}
