//! `ferrax._core`: the face that Python sees. Thin: it converts, flattens, looks up and forwards; it holds no mathematics.
//!
//! INVARIANT: no panic and no abort crosses this boundary; `unsafe` lives in [`ffi`] alone.
#![deny(unsafe_code)]
mod array;
mod ffi;
mod tree;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
#[pyo3(name = "_core")]
fn core(m: &Bound<PyModule>) -> PyResult<()> {
    use tree::{keys::*, registry::*, *};
    m.add_class::<PyTreeDef>()?;
    m.add_class::<DictKey>()?;
    m.add_class::<SequenceKey>()?;
    m.add_class::<GetAttrKey>()?;
    m.add_class::<FlattenedIndexKey>()?;
    m.add_function(wrap_pyfunction!(tree_flatten, m)?)?;
    m.add_function(wrap_pyfunction!(tree_unflatten, m)?)?;
    m.add_function(wrap_pyfunction!(tree_leaves, m)?)?;
    m.add_function(wrap_pyfunction!(tree_structure, m)?)?;
    m.add_function(wrap_pyfunction!(tree_flatten_with_path, m)?)?;
    m.add_function(wrap_pyfunction!(flatten_one_level, m)?)?;
    m.add_function(wrap_pyfunction!(flatten_one_level_with_keys, m)?)?;
    m.add_function(wrap_pyfunction!(treedef_tuple, m)?)?;
    m.add_function(wrap_pyfunction!(register_pytree_node, m)?)?;
    m.add_function(wrap_pyfunction!(register_dataclass, m)?)?;
    m.add_function(wrap_pyfunction!(is_tree_node, m)?)?;
    Ok(())
}
