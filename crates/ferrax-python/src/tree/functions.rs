//! The functions of pytrees that Python calls.
//!
//! INVARIANT: they convert and forward; the traversals are in `flatten` and `build`.
use super::flatten::one_level;
use super::{Leaves, PyTreeDef, TreeDef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

fn callable<'py>(is_leaf: Option<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
    is_leaf.filter(|f| !f.is_none())
}

/// tree_flatten(tree, is_leaf=None) -> (leaves, treedef)
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
pub fn tree_flatten<'py>(
    tree: &Bound<'py, PyAny>,
    is_leaf: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyList>, PyTreeDef)> {
    let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
    def.flatten(tree, callable(is_leaf).as_ref(), &mut leaves)?;
    Ok((PyList::new(tree.py(), leaves)?, PyTreeDef::new(def)))
}
/// tree_leaves(tree, is_leaf=None) -> leaves
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
pub fn tree_leaves<'py>(tree: &Bound<'py, PyAny>, is_leaf: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
    Ok(tree_flatten(tree, is_leaf)?.0)
}
/// tree_structure(tree, is_leaf=None) -> treedef
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
pub fn tree_structure<'py>(tree: &Bound<'py, PyAny>, is_leaf: Option<Bound<'py, PyAny>>) -> PyResult<PyTreeDef> {
    Ok(tree_flatten(tree, is_leaf)?.1)
}
/// tree_flatten_with_path(tree, is_leaf=None) -> ([(path, leaf)], treedef)
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
pub fn tree_flatten_with_path<'py>(
    tree: &Bound<'py, PyAny>,
    is_leaf: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyList>, PyTreeDef)> {
    let (mut def, mut leaves) = (TreeDef::default(), vec![]);
    def.flatten_with_path(tree, callable(is_leaf).as_ref(), &mut vec![], &mut leaves)?;
    Ok((PyList::new(tree.py(), leaves)?, PyTreeDef::new(def)))
}
/// flatten_one_level_with_keys(tree) -> (((key, child), ...), node_data), or None for a leaf.
#[pyfunction]
pub fn flatten_one_level_with_keys<'py>(
    tree: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyTuple>, Bound<'py, PyAny>)>> {
    let py = tree.py();
    Ok(match one_level(tree)? {
        None => None,
        Some(one) => Some((PyTuple::new(py, one.children)?, one.kind.data(py)?)),
    })
}
/// flatten_one_level(tree) -> ([child, ...], node_data), or None for a leaf.
#[pyfunction]
pub fn flatten_one_level<'py>(tree: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyList>, Bound<'py, PyAny>)>> {
    let py = tree.py();
    Ok(match one_level(tree)? {
        None => None,
        Some(one) => Some((PyList::new(py, one.children.into_iter().map(|c| c.1))?, one.kind.data(py)?)),
    })
}
/// tree_unflatten(treedef, leaves) -> tree
#[pyfunction]
pub fn tree_unflatten<'py>(treedef: &Bound<'py, PyAny>, leaves: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match treedef.cast::<PyTreeDef>() {
        Ok(d) => d.get().unflatten(leaves),
        Err(_) => Err(PyTypeError::new_err(format!("tree_unflatten: expected a PyTreeDef, got {}", treedef.repr()?))),
    }
}
/// treedef_tuple(treedefs) -> the structure of a tuple of such trees
#[pyfunction]
pub fn treedef_tuple(py: Python, treedefs: Vec<Py<PyTreeDef>>) -> PyTreeDef {
    PyTreeDef::new(TreeDef::tuple(py, treedefs.iter().map(|d| d.get().def())))
}
/// treedef_is_leaf(treedef): whether the structure is that of a single node: a leaf, None or an empty container.
#[pyfunction]
pub fn treedef_is_leaf(treedef: &Bound<PyTreeDef>) -> bool {
    treedef.get().def().nodes.len() == 1
}
/// tree_map(f, tree, *rest, is_leaf=None): the tree of f of corresponding leaves.
#[pyfunction]
#[pyo3(signature = (f, tree, *rest, is_leaf=None))]
pub fn tree_map<'py>(
    f: &Bound<'py, PyAny>,
    tree: &Bound<'py, PyAny>,
    rest: &Bound<'py, PyTuple>,
    is_leaf: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = f.py();
    let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
    def.flatten(tree, callable(is_leaf).as_ref(), &mut leaves)?;
    let columns = rest.iter().map(|t| def.flatten_up_to(&t)).collect::<PyResult<Vec<_>>>()?;
    let mut out = Vec::with_capacity(leaves.len());
    for (i, x) in leaves.into_iter().enumerate() {
        out.push(
            f.call1(PyTuple::new(py, std::iter::once(&x).chain(columns.iter().map(|c| &c[i])).collect::<Vec<_>>())?)?,
        );
    }
    def.unflatten(py, &mut out.into_iter())
}
