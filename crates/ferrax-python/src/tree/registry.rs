//! The Python types that are inner nodes: built-in containers and types registered by users.
//!
//! INVARIANT: an entry is never changed or removed, so a `PyTreeDef` may hold it forever.
use crate::once::Once;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// The functions that flatten and unflatten nodes of a registered type.
pub enum Registration {
    Functions { class: Py<PyType>, to_iterable: Py<PyAny>, from_iterable: Py<PyAny>, with_keys: Option<Py<PyAny>> },
    Dataclass { class: Py<PyType>, data: Vec<Py<PyAny>>, meta: Vec<Py<PyAny>> },
}

impl Registration {
    pub fn class(&self) -> &Py<PyType> {
        match self {
            Registration::Functions { class, .. } | Registration::Dataclass { class, .. } => class,
        }
    }
    /// The children and the auxiliary data of one node.
    pub fn take_apart<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<(Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>)> {
        let py = x.py();
        match self {
            Registration::Functions { to_iterable, .. } => {
                let out = to_iterable.bind(py).call1((x,))?;
                let pair = pair(&out)?;
                let children = pair.get_item(0)?;
                let iter = children.try_iter().map_err(|_| children_are_not_iterable(&out))?;
                Ok((iter.collect::<PyResult<_>>()?, pair.get_item(1)?))
            }
            Registration::Dataclass { data, meta, .. } => {
                let read = |names: &[Py<PyAny>]| {
                    names.iter().map(|n| x.getattr(n.bind(py).cast()?)).collect::<PyResult<Vec<_>>>()
                };
                Ok((read(data)?, PyTuple::new(py, read(meta)?)?.into_any()))
            }
        }
    }
    /// As `take_apart`, with the key of each child.
    pub fn take_apart_with_keys<'py>(
        &self,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<(Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>, Bound<'py, PyAny>)> {
        let py = x.py();
        if let Registration::Functions { with_keys: Some(f), .. } = self {
            let out = f.bind(py).call1((x,))?;
            let pair = pair(&out)?;
            let children = pair.get_item(0)?;
            let iter = children.try_iter().map_err(|_| children_are_not_iterable(&out))?;
            let keyed = iter.map(|kc| {
                let kc = kc?;
                let kc = kc.cast::<PyTuple>()?;
                Ok((kc.get_item(0)?, kc.get_item(1)?))
            });
            return Ok((keyed.collect::<PyResult<_>>()?, pair.get_item(1)?));
        }
        let (children, aux) = self.take_apart(x)?;
        let keys: Vec<Bound<'py, PyAny>> = match self {
            Registration::Dataclass { data, .. } => data
                .iter()
                .map(|n| Ok(Bound::new(py, super::keys::GetAttrKey { name: n.clone_ref(py) })?.into_any()))
                .collect::<PyResult<_>>()?,
            Registration::Functions { .. } => (0..children.len())
                .map(|i| {
                    Ok(Bound::new(
                        py,
                        super::keys::FlattenedIndexKey { key: i.into_pyobject(py)?.into_any().unbind() },
                    )?
                    .into_any())
                })
                .collect::<PyResult<_>>()?,
        };
        Ok((keys.into_iter().zip(children).collect(), aux))
    }
    pub fn put_together<'py>(
        &self,
        py: Python<'py>,
        aux: &Py<PyAny>,
        children: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Registration::Functions { from_iterable, .. } => {
                from_iterable.bind(py).call1((aux, PyTuple::new(py, children)?))
            }
            Registration::Dataclass { class, data, meta } => {
                let fields = PyDict::new(py);
                for (name, value) in meta.iter().zip(aux.bind(py).cast::<PyTuple>()?) {
                    fields.set_item(name, value)?;
                }
                for (name, value) in data.iter().zip(children) {
                    fields.set_item(name, value)?;
                }
                class.bind(py).call((), Some(&fields))
            }
        }
    }
}

fn pair<'a, 'py>(out: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyTuple>> {
    match out.cast::<PyTuple>() {
        Ok(t) if t.len() == 2 => Ok(t),
        _ => Err(PyValueError::new_err(format!(
            "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple, got {}",
            out.repr()?
        ))),
    }
}
fn children_are_not_iterable(out: &Bound<PyAny>) -> PyErr {
    let out = out.repr().map(|s| s.to_string()).unwrap_or_default();
    PyValueError::new_err(format!(
        "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple where 'children' is iterable, got {out}"
    ))
}

static CLASSES: LazyLock<RwLock<HashMap<usize, Arc<Registration>>>> = LazyLock::new(Default::default);

pub fn find(class: &Bound<PyType>) -> Option<Arc<Registration>> {
    CLASSES.read().unwrap_or_else(|e| e.into_inner()).get(&(class.as_ptr() as usize)).cloned()
}

fn add(py: Python, r: Registration) -> PyResult<()> {
    let class = r.class().bind(py).clone();
    if is_builtin_node(&class)? || find(&class).is_some() {
        let what = if matches!(r, Registration::Dataclass { .. }) { "custom dataclass" } else { "custom" };
        return Err(PyValueError::new_err(format!(
            "Duplicate {what} PyTreeDef type registration for {}.",
            class.repr()?
        )));
    }
    CLASSES.write().unwrap_or_else(|e| e.into_inner()).insert(class.as_ptr() as usize, Arc::new(r));
    Ok(())
}

/// The two classes of `collections` that are nodes.
pub fn collections(py: Python<'_>, name: Collection) -> PyResult<&Bound<'_, PyType>> {
    static ORDERED: Once<Py<PyType>> = Once::new();
    static DEFAULT: Once<Py<PyType>> = Once::new();
    match name {
        Collection::OrderedDict => ORDERED.import(py, "collections", "OrderedDict"),
        Collection::DefaultDict => DEFAULT.import(py, "collections", "defaultdict"),
    }
}
#[derive(Clone, Copy)]
pub enum Collection {
    OrderedDict,
    DefaultDict,
}

fn is_builtin_node(class: &Bound<PyType>) -> PyResult<bool> {
    let py = class.py();
    let builtin = [
        py.get_type::<PyTuple>(),
        py.get_type::<pyo3::types::PyList>(),
        py.get_type::<PyDict>(),
        py.None().bind(py).get_type(),
    ];
    Ok(builtin.iter().any(|b| b.is(class))
        || class.is(collections(py, Collection::OrderedDict)?)
        || class.is(collections(py, Collection::DefaultDict)?))
}

/// Whether values of `class` are inner nodes.
pub fn is_node(class: &Bound<PyType>) -> PyResult<bool> {
    Ok(is_builtin_node(class)?
        || find(class).is_some()
        || (class.is_subclass_of::<PyTuple>()? && class.hasattr("_fields")?))
}

/// register_pytree_node(cls, flatten, unflatten, flatten_with_keys=None): makes instances of `cls` inner nodes.
#[pyfunction]
#[pyo3(signature = (cls, flatten, unflatten, flatten_with_keys=None))]
pub fn register_pytree_node(
    py: Python,
    cls: &Bound<PyAny>,
    flatten: Py<PyAny>,
    unflatten: Py<PyAny>,
    flatten_with_keys: Option<Py<PyAny>>,
) -> PyResult<()> {
    let Ok(class) = cls.cast::<PyType>() else {
        return Err(PyTypeError::new_err(format!(
            "Expected a class to register as a pytree node, got {}",
            cls.repr()?
        )));
    };
    for f in [&flatten, &unflatten] {
        if !f.bind(py).is_callable() {
            return Err(PyTypeError::new_err(format!(
                "register_node(): incompatible function arguments: expected a callable, got {}",
                f.bind(py).repr()?
            )));
        }
    }
    add(
        py,
        Registration::Functions {
            class: class.clone().unbind(),
            to_iterable: flatten,
            from_iterable: unflatten,
            with_keys: flatten_with_keys,
        },
    )
}

/// register_dataclass(cls, data_fields, meta_fields): children are the attributes `data_fields`; `cls(**fields)` puts a node together.
#[pyfunction]
pub fn register_dataclass(
    py: Python,
    cls: &Bound<PyType>,
    data_fields: Vec<Py<PyAny>>,
    meta_fields: Vec<Py<PyAny>>,
) -> PyResult<()> {
    add(py, Registration::Dataclass { class: cls.clone().unbind(), data: data_fields, meta: meta_fields })
}

/// is_tree_node(cls): whether instances of `cls` are inner nodes of pytrees.
#[pyfunction]
pub fn is_tree_node(cls: &Bound<PyType>) -> PyResult<bool> {
    is_node(cls)
}
