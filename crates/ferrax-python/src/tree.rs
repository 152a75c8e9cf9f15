//! Pytrees: flattening nested containers into leaves and a structure, and unflattening.
//!
//! A `TreeDef` is its nodes in preorder. Each node knows the numbers of nodes and leaves of its
//! subtree, so traversal needs no pointers and comparison is a loop.
//!
//! INVARIANT: the keys of a dict are sorted; `unflatten(flatten(x)) == x`; a structure never holds leaves.
//!
//! ```text
//! {"b": [1, (2, None)], "a": 3}   leaves 3 1 2   nodes {a b} * [] * () * None
//! ```
mod build;
mod flatten;
pub mod functions;
pub mod keys;
pub mod registry;
mod treedef;

pub use treedef::PyTreeDef;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use registry::{Collection, Registration};
use smallvec::SmallVec;
use std::sync::Arc;

/// Room for the leaves of most trees without an allocation.
pub type Leaves<'py> = SmallVec<[Bound<'py, PyAny>; 8]>;

pub enum NodeKind {
    Leaf,
    None,
    Tuple,
    List,
    /// Sorted keys.
    Dict(Box<[Py<PyAny>]>),
    NamedTuple(Py<PyType>),
    /// Keys in their order.
    OrderedDict(Py<PyTuple>),
    /// (factory, keys)
    DefaultDict(Py<PyTuple>),
    /// A registered class, and the node's auxiliary data.
    Custom(Arc<Registration>, Py<PyAny>),
}

pub struct TreeNode {
    pub kind: NodeKind,
    pub arity: u32,
    pub n_nodes: u32,
    pub n_leaves: u32,
}

#[derive(Default)]
pub struct TreeDef {
    pub nodes: Vec<TreeNode>,
}

/// The kind of a Python object as a node, before it is flattened.
enum ObjectShape<'a, 'py> {
    Leaf,
    None,
    Tuple(&'a Bound<'py, PyTuple>),
    List(&'a Bound<'py, PyList>),
    Dict(&'a Bound<'py, PyDict>),
    NamedTuple(&'a Bound<'py, PyTuple>),
    Collection(&'a Bound<'py, PyDict>, Collection),
    Custom(Arc<Registration>),
}

fn shape<'a, 'py>(x: &'a Bound<'py, PyAny>) -> PyResult<ObjectShape<'a, 'py>> {
    if let Ok(x) = x.cast_exact::<PyTuple>() {
        return Ok(ObjectShape::Tuple(x));
    }
    if let Ok(x) = x.cast_exact::<PyDict>() {
        return Ok(ObjectShape::Dict(x));
    }
    if let Ok(x) = x.cast_exact::<PyList>() {
        return Ok(ObjectShape::List(x));
    }
    if x.is_none() {
        return Ok(ObjectShape::None);
    }
    if crate::array::is_array_exact(x) {
        return Ok(ObjectShape::Leaf);
    }
    let class = x.get_type();
    if let Some(r) = registry::find(&class) {
        return Ok(ObjectShape::Custom(r));
    }
    if let Ok(t) = x.cast::<PyTuple>()
        && class.hasattr(crate::once::intern!(x.py(), "_fields"))?
    {
        return Ok(ObjectShape::NamedTuple(t));
    }
    if let Ok(d) = x.cast::<PyDict>() {
        for c in [Collection::OrderedDict, Collection::DefaultDict] {
            if class.is(registry::collections(x.py(), c)?) {
                return Ok(ObjectShape::Collection(d, c));
            }
        }
    }
    Ok(ObjectShape::Leaf)
}

/// The keys of a dict in sorted order.
fn sorted_keys<'py>(d: &Bound<'py, PyDict>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut keys: Vec<Bound<'py, PyAny>> = Vec::with_capacity(d.len());
    let mut strings = true;
    for (k, _) in d.iter() {
        strings &= k.is_exact_instance_of::<PyString>();
        keys.push(k);
    }
    if strings && keys.iter().all(|k| k.cast::<PyString>().is_ok_and(|s| s.to_str().is_ok())) {
        // UTF-8 sorts by code points, as Python's strings do.
        let less = |a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>| match (a.cast::<PyString>(), b.cast::<PyString>()) {
            (Ok(a), Ok(b)) => a.to_str().unwrap_or("").cmp(b.to_str().unwrap_or("")),
            _ => std::cmp::Ordering::Equal,
        };
        if !keys.is_sorted_by(|a, b| less(a, b).is_le()) {
            keys.sort_by(less);
        }
        return Ok(keys);
    }
    let list = PyList::new(d.py(), keys)?;
    list.sort().map_err(|e| {
        let err = PyValueError::new_err("Comparator raised exception while sorting pytree dictionary keys.");
        err.set_cause(d.py(), Some(e));
        err
    })?;
    Ok(list.iter().collect())
}

impl TreeDef {
    pub fn n_leaves(&self) -> usize {
        self.nodes.first().map_or(0, |n| n.n_leaves as usize)
    }
    fn push(&mut self, kind: NodeKind) -> usize {
        let leaf = matches!(kind, NodeKind::Leaf);
        self.nodes.push(TreeNode { kind, arity: 0, n_nodes: 1, n_leaves: leaf as u32 });
        self.nodes.len() - 1
    }
    /// Ends the node at `at`, whose children have been pushed.
    fn close(&mut self, at: usize, arity: usize, n_leaves: usize) {
        let n_nodes = (self.nodes.len() - at) as u32;
        let node = &mut self.nodes[at];
        (node.arity, node.n_nodes, node.n_leaves) = (arity as u32, n_nodes, n_leaves as u32);
    }
    fn append(&mut self, other: &TreeDef, py: Python) {
        self.nodes.extend(other.nodes.iter().map(|n| n.clone_ref(py)));
    }
    /// The subtree at `at`.
    fn subtree(&self, at: usize, py: Python) -> TreeDef {
        TreeDef {
            nodes: self.nodes[at..at + self.nodes[at].n_nodes as usize].iter().map(|n| n.clone_ref(py)).collect(),
        }
    }
    /// Positions of the children of the node at `at`.
    fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let mut next = at + 1;
        (0..self.nodes[at].arity).map(move |_| {
            let child = next;
            next += self.nodes[child].n_nodes as usize;
            child
        })
    }
    pub fn leaf() -> TreeDef {
        let mut t = TreeDef::default();
        t.push(NodeKind::Leaf);
        t
    }
    /// A tuple of trees.
    pub fn tuple<'a>(py: Python, parts: impl IntoIterator<Item = &'a TreeDef>) -> TreeDef {
        let mut t = TreeDef::default();
        let at = t.push(NodeKind::Tuple);
        let (mut arity, mut leaves) = (0, 0);
        for p in parts {
            t.append(p, py);
            arity += 1;
            leaves += p.n_leaves();
        }
        t.close(at, arity, leaves);
        t
    }

    pub fn equal(&self, py: Python, o: &TreeDef) -> PyResult<bool> {
        nodes_equal(py, &self.nodes, &o.nodes)
    }
    pub fn hash(&self, py: Python) -> PyResult<u64> {
        let mut h = 0u64;
        let mut mix = |x: u64| h = (h.rotate_left(5) ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for n in &self.nodes {
            mix(n.kind.number() << 32 | n.arity as u64);
            match &n.kind {
                NodeKind::Leaf | NodeKind::None | NodeKind::Tuple | NodeKind::List => {}
                NodeKind::Dict(keys) => {
                    for k in keys {
                        mix(k.bind(py).hash()? as u64);
                    }
                }
                NodeKind::NamedTuple(class) => mix(class.as_ptr() as u64),
                NodeKind::OrderedDict(t) | NodeKind::DefaultDict(t) => mix(t.bind(py).hash()? as u64),
                // data that cannot be hashed (a list) is only compared
                NodeKind::Custom(r, aux) => mix(r.class().as_ptr() as u64 ^ aux.bind(py).hash().unwrap_or(0) as u64),
            }
        }
        Ok(h)
    }
}

fn changed(x: &Bound<PyAny>) -> PyErr {
    PyValueError::new_err(format!("a dict changed while it was flattened: {}", x.get_type()))
}

fn collection_kind<'py>(d: &Bound<'py, PyDict>, c: Collection) -> PyResult<(NodeKind, Vec<Bound<'py, PyAny>>)> {
    let py = d.py();
    Ok(match c {
        Collection::OrderedDict => {
            // an OrderedDict has an order of its own (move_to_end), which plain dict iteration does not see
            let keys: Vec<Bound<'py, PyAny>> = d.as_any().try_iter()?.collect::<PyResult<_>>()?;
            (NodeKind::OrderedDict(PyTuple::new(py, &keys)?.unbind()), keys)
        }
        Collection::DefaultDict => {
            let keys = sorted_keys(d)?;
            let factory = d.as_any().getattr("default_factory")?;
            (NodeKind::DefaultDict(PyTuple::new(py, [factory, PyTuple::new(py, &keys)?.into_any()])?.unbind()), keys)
        }
    })
}

pub fn nodes_equal(py: Python, a: &[TreeNode], b: &[TreeNode]) -> PyResult<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (x, y) in a.iter().zip(b) {
        if x.arity != y.arity || !x.kind.equal(py, &y.kind)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl TreeNode {
    fn clone_ref(&self, py: Python) -> TreeNode {
        TreeNode { kind: self.kind.clone_ref(py), ..*self }
    }
}

impl NodeKind {
    fn number(&self) -> u64 {
        match self {
            NodeKind::Leaf => 0,
            NodeKind::None => 1,
            NodeKind::Tuple => 2,
            NodeKind::List => 3,
            NodeKind::Dict(_) => 4,
            NodeKind::NamedTuple(_) => 5,
            NodeKind::OrderedDict(_) => 6,
            NodeKind::DefaultDict(_) => 7,
            NodeKind::Custom(..) => 8,
        }
    }
    fn clone_ref(&self, py: Python) -> NodeKind {
        match self {
            NodeKind::Leaf => NodeKind::Leaf,
            NodeKind::None => NodeKind::None,
            NodeKind::Tuple => NodeKind::Tuple,
            NodeKind::List => NodeKind::List,
            NodeKind::Dict(k) => NodeKind::Dict(k.iter().map(|k| k.clone_ref(py)).collect()),
            NodeKind::NamedTuple(c) => NodeKind::NamedTuple(c.clone_ref(py)),
            NodeKind::OrderedDict(t) => NodeKind::OrderedDict(t.clone_ref(py)),
            NodeKind::DefaultDict(t) => NodeKind::DefaultDict(t.clone_ref(py)),
            NodeKind::Custom(r, a) => NodeKind::Custom(r.clone(), a.clone_ref(py)),
        }
    }
    fn equal(&self, py: Python, o: &NodeKind) -> PyResult<bool> {
        let same = |a: &Py<PyAny>, b: &Py<PyAny>| -> PyResult<bool> { Ok(a.is(b) || a.bind(py).eq(b.bind(py))?) };
        Ok(match (self, o) {
            (NodeKind::Dict(a), NodeKind::Dict(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !same(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (NodeKind::NamedTuple(a), NodeKind::NamedTuple(b)) => a.is(b),
            (NodeKind::OrderedDict(a), NodeKind::OrderedDict(b))
            | (NodeKind::DefaultDict(a), NodeKind::DefaultDict(b)) => a.bind(py).eq(b.bind(py))?,
            (NodeKind::Custom(r, a), NodeKind::Custom(s, b)) => Arc::ptr_eq(r, s) && same(a, b)?,
            (a, b) => a.number() == b.number(),
        })
    }
    /// The class and the data of a node that is not one of the plain containers.
    fn class_and_aux<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyAny>)> {
        Ok(match self {
            NodeKind::OrderedDict(k) => {
                (registry::collections(py, Collection::OrderedDict)?.clone(), k.bind(py).clone().into_any())
            }
            NodeKind::DefaultDict(k) => {
                (registry::collections(py, Collection::DefaultDict)?.clone(), k.bind(py).clone().into_any())
            }
            NodeKind::Custom(r, a) => (r.class().bind(py).clone(), a.bind(py).clone()),
            NodeKind::NamedTuple(c) => (c.bind(py).clone(), py.None().into_bound(py)),
            NodeKind::Tuple => (py.get_type::<PyTuple>(), py.None().into_bound(py)),
            NodeKind::List => (py.get_type::<PyList>(), py.None().into_bound(py)),
            NodeKind::Dict(k) => (py.get_type::<PyDict>(), PyList::new(py, k)?.into_any()),
            NodeKind::None | NodeKind::Leaf => (py.None().bind(py).get_type(), py.None().into_bound(py)),
        })
    }
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.class_and_aux(py)?.1)
    }
    fn put_together<'py>(&self, py: Python<'py>, children: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let fill =
            |d: &Bound<'py, PyAny>, keys: &Bound<'py, PyAny>, children: Vec<Bound<'py, PyAny>>| -> PyResult<()> {
                for (k, c) in keys.try_iter()?.zip(children) {
                    d.set_item(k?, c)?;
                }
                Ok(())
            };
        Ok(match self {
            NodeKind::Leaf => unreachable!("leaves are handed in"),
            NodeKind::None => py.None().into_bound(py),
            NodeKind::Tuple => PyTuple::new(py, children)?.into_any(),
            NodeKind::List => PyList::new(py, children)?.into_any(),
            NodeKind::Dict(keys) => {
                let d = PyDict::new(py);
                for (k, c) in keys.iter().zip(children) {
                    d.set_item(k, c)?;
                }
                d.into_any()
            }
            NodeKind::NamedTuple(class) => class.bind(py).call1(PyTuple::new(py, children)?)?,
            NodeKind::OrderedDict(keys) => {
                let d = registry::collections(py, Collection::OrderedDict)?.call0()?;
                fill(&d, keys.bind(py), children)?;
                d
            }
            NodeKind::DefaultDict(data) => {
                let data = data.bind(py);
                let d = registry::collections(py, Collection::DefaultDict)?.call1((data.get_item(0)?,))?;
                fill(&d, &data.get_item(1)?, children)?;
                d
            }
            NodeKind::Custom(r, aux) => r.put_together(py, aux, children)?,
        })
    }
}
