//! Pytrees: nested containers taken apart into leaves and a structure, and put together again.
//!
//! A `TreeDef` is its nodes in preorder; each node knows how many nodes and leaves its subtree has, so that walking needs no
//! pointers and comparing is a loop.
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

pub enum Kind {
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

pub struct Node {
    pub kind: Kind,
    pub arity: u32,
    pub n_nodes: u32,
    pub n_leaves: u32,
}

#[derive(Default)]
pub struct TreeDef {
    pub nodes: Vec<Node>,
}

/// What a Python object is to a tree, before it is taken apart.
enum Shape<'a, 'py> {
    Leaf,
    None,
    Tuple(&'a Bound<'py, PyTuple>),
    List(&'a Bound<'py, PyList>),
    Dict(&'a Bound<'py, PyDict>),
    NamedTuple(&'a Bound<'py, PyTuple>),
    Collection(&'a Bound<'py, PyDict>, Collection),
    Custom(Arc<Registration>),
}

fn shape<'a, 'py>(x: &'a Bound<'py, PyAny>) -> PyResult<Shape<'a, 'py>> {
    if let Ok(x) = x.cast_exact::<PyTuple>() {
        return Ok(Shape::Tuple(x));
    }
    if let Ok(x) = x.cast_exact::<PyDict>() {
        return Ok(Shape::Dict(x));
    }
    if let Ok(x) = x.cast_exact::<PyList>() {
        return Ok(Shape::List(x));
    }
    if x.is_none() {
        return Ok(Shape::None);
    }
    if crate::array::is_array_exact(x) {
        return Ok(Shape::Leaf);
    }
    let class = x.get_type();
    if let Some(r) = registry::find(&class) {
        return Ok(Shape::Custom(r));
    }
    if let Ok(t) = x.cast::<PyTuple>()
        && class.hasattr(pyo3::intern!(x.py(), "_fields"))?
    {
        return Ok(Shape::NamedTuple(t));
    }
    if let Ok(d) = x.cast::<PyDict>() {
        for c in [Collection::OrderedDict, Collection::DefaultDict] {
            if class.is(registry::collections(x.py(), c)?) {
                return Ok(Shape::Collection(d, c));
            }
        }
    }
    Ok(Shape::Leaf)
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
    fn push(&mut self, kind: Kind) -> usize {
        let leaf = matches!(kind, Kind::Leaf);
        self.nodes.push(Node { kind, arity: 0, n_nodes: 1, n_leaves: leaf as u32 });
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
        t.push(Kind::Leaf);
        t
    }
    /// A tuple of trees.
    pub fn tuple<'a>(py: Python, parts: impl IntoIterator<Item = &'a TreeDef>) -> TreeDef {
        let mut t = TreeDef::default();
        let at = t.push(Kind::Tuple);
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
                Kind::Leaf | Kind::None | Kind::Tuple | Kind::List => {}
                Kind::Dict(keys) => {
                    for k in keys {
                        mix(k.bind(py).hash()? as u64);
                    }
                }
                Kind::NamedTuple(class) => mix(class.as_ptr() as u64),
                Kind::OrderedDict(t) | Kind::DefaultDict(t) => mix(t.bind(py).hash()? as u64),
                // data that cannot be hashed (a list) is only compared
                Kind::Custom(r, aux) => mix(r.class().as_ptr() as u64 ^ aux.bind(py).hash().unwrap_or(0) as u64),
            }
        }
        Ok(h)
    }
}

fn changed(x: &Bound<PyAny>) -> PyErr {
    PyValueError::new_err(format!("a dict changed while it was flattened: {}", x.get_type()))
}

fn collection_kind<'py>(d: &Bound<'py, PyDict>, c: Collection) -> PyResult<(Kind, Vec<Bound<'py, PyAny>>)> {
    let py = d.py();
    Ok(match c {
        Collection::OrderedDict => {
            // an OrderedDict has an order of its own (move_to_end), which plain dict iteration does not see
            let keys: Vec<Bound<'py, PyAny>> = d.as_any().try_iter()?.collect::<PyResult<_>>()?;
            (Kind::OrderedDict(PyTuple::new(py, &keys)?.unbind()), keys)
        }
        Collection::DefaultDict => {
            let keys = sorted_keys(d)?;
            let factory = d.as_any().getattr("default_factory")?;
            (Kind::DefaultDict(PyTuple::new(py, [factory, PyTuple::new(py, &keys)?.into_any()])?.unbind()), keys)
        }
    })
}

pub fn nodes_equal(py: Python, a: &[Node], b: &[Node]) -> PyResult<bool> {
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

impl Node {
    fn clone_ref(&self, py: Python) -> Node {
        Node { kind: self.kind.clone_ref(py), ..*self }
    }
}

impl Kind {
    fn number(&self) -> u64 {
        match self {
            Kind::Leaf => 0,
            Kind::None => 1,
            Kind::Tuple => 2,
            Kind::List => 3,
            Kind::Dict(_) => 4,
            Kind::NamedTuple(_) => 5,
            Kind::OrderedDict(_) => 6,
            Kind::DefaultDict(_) => 7,
            Kind::Custom(..) => 8,
        }
    }
    fn clone_ref(&self, py: Python) -> Kind {
        match self {
            Kind::Leaf => Kind::Leaf,
            Kind::None => Kind::None,
            Kind::Tuple => Kind::Tuple,
            Kind::List => Kind::List,
            Kind::Dict(k) => Kind::Dict(k.iter().map(|k| k.clone_ref(py)).collect()),
            Kind::NamedTuple(c) => Kind::NamedTuple(c.clone_ref(py)),
            Kind::OrderedDict(t) => Kind::OrderedDict(t.clone_ref(py)),
            Kind::DefaultDict(t) => Kind::DefaultDict(t.clone_ref(py)),
            Kind::Custom(r, a) => Kind::Custom(r.clone(), a.clone_ref(py)),
        }
    }
    fn equal(&self, py: Python, o: &Kind) -> PyResult<bool> {
        let same = |a: &Py<PyAny>, b: &Py<PyAny>| -> PyResult<bool> { Ok(a.is(b) || a.bind(py).eq(b.bind(py))?) };
        Ok(match (self, o) {
            (Kind::Dict(a), Kind::Dict(b)) => {
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
            (Kind::NamedTuple(a), Kind::NamedTuple(b)) => a.is(b),
            (Kind::OrderedDict(a), Kind::OrderedDict(b)) | (Kind::DefaultDict(a), Kind::DefaultDict(b)) => {
                a.bind(py).eq(b.bind(py))?
            }
            (Kind::Custom(r, a), Kind::Custom(s, b)) => Arc::ptr_eq(r, s) && same(a, b)?,
            (a, b) => a.number() == b.number(),
        })
    }
    /// The class and the data of a node that is not one of the plain containers.
    fn class_and_aux<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyAny>)> {
        Ok(match self {
            Kind::OrderedDict(k) => {
                (registry::collections(py, Collection::OrderedDict)?.clone(), k.bind(py).clone().into_any())
            }
            Kind::DefaultDict(k) => {
                (registry::collections(py, Collection::DefaultDict)?.clone(), k.bind(py).clone().into_any())
            }
            Kind::Custom(r, a) => (r.class().bind(py).clone(), a.bind(py).clone()),
            Kind::NamedTuple(c) => (c.bind(py).clone(), py.None().into_bound(py)),
            Kind::Tuple => (py.get_type::<PyTuple>(), py.None().into_bound(py)),
            Kind::List => (py.get_type::<PyList>(), py.None().into_bound(py)),
            Kind::Dict(k) => (py.get_type::<PyDict>(), PyList::new(py, k)?.into_any()),
            Kind::None | Kind::Leaf => (py.None().bind(py).get_type(), py.None().into_bound(py)),
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
            Kind::Leaf => unreachable!("leaves are handed in"),
            Kind::None => py.None().into_bound(py),
            Kind::Tuple => PyTuple::new(py, children)?.into_any(),
            Kind::List => PyList::new(py, children)?.into_any(),
            Kind::Dict(keys) => {
                let d = PyDict::new(py);
                for (k, c) in keys.iter().zip(children) {
                    d.set_item(k, c)?;
                }
                d.into_any()
            }
            Kind::NamedTuple(class) => class.bind(py).call1(PyTuple::new(py, children)?)?,
            Kind::OrderedDict(keys) => {
                let d = registry::collections(py, Collection::OrderedDict)?.call0()?;
                fill(&d, keys.bind(py), children)?;
                d
            }
            Kind::DefaultDict(data) => {
                let data = data.bind(py);
                let d = registry::collections(py, Collection::DefaultDict)?.call1((data.get_item(0)?,))?;
                fill(&d, &data.get_item(1)?, children)?;
                d
            }
            Kind::Custom(r, aux) => r.put_together(py, aux, children)?,
        })
    }
}
