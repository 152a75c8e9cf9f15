//! `PyTreeDef`: a structure as a Python object.
//!
//! INVARIANT: immutable; equal structures hash alike.
use super::{NodeKind, TreeDef};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use std::sync::Arc;

/// The structure of a pytree: the pytree without its leaves.
#[pyclass(frozen, module = "ferrax.tree_util", name = "PyTreeDef")]
pub struct PyTreeDef(Arc<TreeDef>);

impl PyTreeDef {
    pub fn new(d: TreeDef) -> PyTreeDef {
        PyTreeDef(Arc::new(d))
    }
    pub fn shared(d: Arc<TreeDef>) -> PyTreeDef {
        PyTreeDef(d)
    }
    pub fn def(&self) -> &TreeDef {
        &self.0
    }
}

#[pymethods]
impl PyTreeDef {
    #[getter]
    fn num_leaves(&self) -> usize {
        self.0.n_leaves()
    }
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.nodes.len()
    }
    /// The tree with these leaves. ValueError where there are too few or too many.
    pub fn unflatten<'py>(&self, leaves: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = leaves.py();
        let leaves: Vec<Bound<'py, PyAny>> = match leaves.cast_exact::<PyList>() {
            Ok(l) => l.iter().collect(),
            Err(_) => {
                let it = leaves.try_iter().map_err(|_| {
                    PyTypeError::new_err(format!(
                        "unflatten(): expected an iterable of leaves, got {}",
                        leaves.get_type()
                    ))
                })?;
                it.collect::<PyResult<_>>()?
            }
        };
        let n = self.0.n_leaves();
        if leaves.len() < n {
            return Err(PyValueError::new_err(format!(
                "Too few leaves for PyTreeDef; expected {n}, got {}",
                leaves.len()
            )));
        }
        if leaves.len() > n {
            return Err(PyValueError::new_err(format!("Too many leaves for PyTreeDef; expected {n}.")));
        }
        self.0.unflatten(py, &mut leaves.into_iter())
    }
    /// The subtrees of a tree at the leaves of this structure, which must be a prefix of the tree's.
    fn flatten_up_to<'py>(&self, tree: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.flatten_up_to(tree)
    }
    /// The structure with `inner` in the place of each leaf.
    fn compose(&self, py: Python, inner: &PyTreeDef) -> PyTreeDef {
        PyTreeDef::new(self.0.compose(py, &inner.0))
    }
    fn children(&self, py: Python) -> Vec<PyTreeDef> {
        self.0.children(0).map(|c| PyTreeDef::new(self.0.subtree(c, py))).collect()
    }
    /// (class, metadata) of the root; None for a leaf.
    fn node_data<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyType>, Bound<'py, PyAny>)>> {
        match &self.0.nodes[0].kind {
            NodeKind::Leaf => Ok(None),
            k => Ok(Some(k.class_and_aux(py)?)),
        }
    }
    /// `f_node(children, metadata)` over inner nodes and `f_leaf(leaf)` over leaves, bottom up.
    fn walk<'py>(
        &self,
        f_node: &Bound<'py, PyAny>,
        f_leaf: Option<Bound<'py, PyAny>>,
        leaves: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut it = leaves.try_iter()?;
        let out = self.0.walk(&mut 0, f_node, f_leaf.as_ref(), &mut it)?;
        match it.next() {
            Some(_) => Err(PyValueError::new_err("Too many leaves for PyTreeDef")),
            None => Ok(out),
        }
    }
    /// A tree of plain iterables with this structure, made into this structure.
    fn from_iterable_tree<'py>(&self, tree: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        fn gather<'py>(
            d: &TreeDef,
            at: &mut usize,
            x: &Bound<'py, PyAny>,
            out: &mut Vec<Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let node = &d.nodes[*at];
            *at += 1;
            if let NodeKind::Leaf = node.kind {
                out.push(x.clone());
                return Ok(());
            }
            let children: Vec<Bound<'py, PyAny>> =
                if let NodeKind::None = node.kind { vec![] } else { x.try_iter()?.collect::<PyResult<_>>()? };
            if children.len() != node.arity as usize {
                return Err(PyValueError::new_err("Arity mismatch between trees"));
            }
            children.iter().try_for_each(|c| gather(d, at, c, out))
        }
        let mut leaves = vec![];
        gather(&self.0, &mut 0, tree, &mut leaves)?;
        self.0.unflatten(tree.py(), &mut leaves.into_iter())
    }
    /// A structure from its root's (class, metadata), or None, and its children.
    #[staticmethod]
    fn from_node_data_and_children(
        py: Python,
        node_data: Option<(Bound<PyType>, Py<PyAny>)>,
        children: Vec<Py<PyTreeDef>>,
    ) -> PyResult<PyTreeDef> {
        let Some((class, data)) = node_data else { return Ok(PyTreeDef::new(TreeDef::leaf())) };
        let parts = TreeDef::tuple(py, children.iter().map(|c| c.get().def()));
        let TreeDef { mut nodes } = parts;
        nodes[0].kind = NodeKind::of_class(py, &class, data)?;
        Ok(PyTreeDef::new(TreeDef { nodes }))
    }
    fn __repr__(&self, py: Python) -> PyResult<String> {
        self.0.text(py)
    }
    fn __hash__(&self, py: Python) -> PyResult<u64> {
        self.0.hash(py)
    }
    fn __richcmp__(&self, py: Python, other: &Bound<PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let Ok(o) = other.cast::<PyTreeDef>() else { return Ok(py.NotImplemented()) };
        let equal = || -> PyResult<bool> { Ok(Arc::ptr_eq(&self.0, &o.get().0) || self.0.equal(py, &o.get().0)?) };
        let answer = match op {
            CompareOp::Eq => equal()?,
            CompareOp::Ne => !equal()?,
            _ => return Ok(py.NotImplemented()),
        };
        Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, me) = (slf.py(), slf.get());
        let make = py.get_type::<PyTreeDef>().getattr("from_node_data_and_children")?;
        Ok((make, (me.node_data(py)?, me.children(py)).into_pyobject(py)?))
    }
}

impl NodeKind {
    fn of_class(py: Python, class: &Bound<PyType>, data: Py<PyAny>) -> PyResult<NodeKind> {
        use super::registry::{self, Collection};
        Ok(if class.is(py.get_type::<PyTuple>()) {
            NodeKind::Tuple
        } else if class.is(py.get_type::<PyList>()) {
            NodeKind::List
        } else if class.is(py.get_type::<pyo3::types::PyDict>()) {
            NodeKind::Dict(data.extract::<Vec<Py<PyAny>>>(py)?.into())
        } else if class.is(py.None().bind(py).get_type()) {
            NodeKind::None
        } else if class.is(registry::collections(py, Collection::OrderedDict)?) {
            NodeKind::OrderedDict(data.extract(py)?)
        } else if class.is(registry::collections(py, Collection::DefaultDict)?) {
            NodeKind::DefaultDict(data.extract(py)?)
        } else if let Some(r) = registry::find(class) {
            NodeKind::Custom(r, data)
        } else if class.is_subclass_of::<PyTuple>()? {
            NodeKind::NamedTuple(class.clone().unbind())
        } else {
            return Err(PyValueError::new_err(format!("{} is not a pytree node", class.repr()?)));
        })
    }
}
