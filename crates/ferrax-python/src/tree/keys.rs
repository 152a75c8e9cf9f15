//! The steps of a key path: how a leaf is reached from the root of its tree.
//!
//! INVARIANT: keys compare, hash and print by class and content.
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

macro_rules! key {
    ($Key:ident, $field:ident, $doc:literal, $show:literal, repr: $as_repr:literal) => {
        #[doc = $doc]
        #[pyclass(frozen, module = "ferrax.tree_util")]
        pub struct $Key {
            #[pyo3(get)]
            pub $field: Py<PyAny>,
        }
        #[pymethods]
        impl $Key {
            #[new]
            fn new($field: Py<PyAny>) -> $Key {
                $Key { $field }
            }
            #[classattr]
            fn __match_args__() -> (&'static str,) {
                (stringify!($field),)
            }
            fn __repr__(&self, py: Python) -> PyResult<String> {
                Ok(format!(concat!(stringify!($Key), "(", stringify!($field), "={})"), self.$field.bind(py).repr()?))
            }
            fn __str__(&self, py: Python) -> PyResult<String> {
                let x = self.$field.bind(py);
                Ok(format!($show, if $as_repr { x.repr()? } else { x.str()? }))
            }
            fn __hash__(&self, py: Python) -> PyResult<isize> {
                (stringify!($Key), &self.$field).into_pyobject(py)?.hash()
            }
            fn __richcmp__(&self, py: Python, other: &Bound<PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
                let Ok(o) = other.cast::<$Key>() else { return Ok(py.NotImplemented()) };
                let equal = self.$field.bind(py).eq(o.get().$field.bind(py))?;
                Ok(match op {
                    CompareOp::Eq => equal.into_pyobject(py)?.to_owned().into_any().unbind(),
                    CompareOp::Ne => (!equal).into_pyobject(py)?.to_owned().into_any().unbind(),
                    _ => py.NotImplemented(),
                })
            }
            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
                let py = slf.py();
                Ok((slf.get_type().into_any(), PyTuple::new(py, [&slf.get().$field])?))
            }
        }
    };
}
key!(DictKey, key, "A step by the key of a dict.", "[{}]", repr: true);
key!(SequenceKey, idx, "A step by position in a list or tuple.", "[{}]", repr: true);
key!(GetAttrKey, name, "A step by attribute.", ".{}", repr: false);
key!(FlattenedIndexKey, key, "A step by position among the children of a registered node.", "[<flat index {}>]", repr: true);
