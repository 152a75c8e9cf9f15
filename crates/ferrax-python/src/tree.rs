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
pub mod keys;
pub mod registry;
mod treedef;

pub use treedef::PyTreeDef;

use crate::ffi::recursion;
use pyo3::exceptions::{PyTypeError, PyValueError};
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

    // ---- taking apart ----

    pub fn flatten<'py>(
        &mut self,
        x: &Bound<'py, PyAny>,
        is_leaf: Option<&Bound<'py, PyAny>>,
        leaves: &mut Leaves<'py>,
    ) -> PyResult<()> {
        if let Some(f) = is_leaf
            && f.call1((x,))?.is_truthy()?
        {
            self.push(Kind::Leaf);
            leaves.push(x.clone());
            return Ok(());
        }
        let py = x.py();
        let s = shape(x)?;
        if let Shape::Leaf = s {
            self.push(Kind::Leaf);
            leaves.push(x.clone());
            return Ok(());
        }
        let _level = recursion::enter(py, c" while flattening a pytree")?;
        let before = leaves.len();
        let at = self.push(Kind::Tuple);
        let arity = match s {
            Shape::Leaf => unreachable!("returned above"),
            Shape::None => {
                self.nodes[at].kind = Kind::None;
                0
            }
            Shape::Tuple(t) => {
                t.iter_borrowed().try_for_each(|c| self.flatten(&c, is_leaf, leaves))?;
                t.len()
            }
            Shape::NamedTuple(t) => {
                self.nodes[at].kind = Kind::NamedTuple(t.get_type().unbind());
                t.iter_borrowed().try_for_each(|c| self.flatten(&c, is_leaf, leaves))?;
                t.len()
            }
            Shape::List(l) => {
                self.nodes[at].kind = Kind::List;
                let items: Vec<_> = l.iter().collect();
                items.iter().try_for_each(|c| self.flatten(c, is_leaf, leaves))?;
                items.len()
            }
            Shape::Dict(d) => {
                let keys = sorted_keys(d)?;
                let n = keys.len();
                for k in &keys {
                    self.flatten(&d.get_item(k)?.ok_or_else(|| changed(x))?, is_leaf, leaves)?;
                }
                self.nodes[at].kind = Kind::Dict(keys.into_iter().map(Bound::unbind).collect());
                n
            }
            Shape::Collection(d, c) => {
                let (kind, keys) = collection_kind(d, c)?;
                self.nodes[at].kind = kind;
                for k in &keys {
                    self.flatten(&d.get_item(k)?.ok_or_else(|| changed(x))?, is_leaf, leaves)?;
                }
                keys.len()
            }
            Shape::Custom(r) => {
                let (children, aux) = r.take_apart(x)?;
                self.nodes[at].kind = Kind::Custom(r, aux.unbind());
                children.iter().try_for_each(|c| self.flatten(c, is_leaf, leaves))?;
                children.len()
            }
        };
        self.close(at, arity, leaves.len() - before);
        Ok(())
    }

    /// As `flatten`; each leaf comes with its path.
    fn flatten_with_path<'py>(
        &mut self,
        x: &Bound<'py, PyAny>,
        is_leaf: Option<&Bound<'py, PyAny>>,
        path: &mut Vec<Bound<'py, PyAny>>,
        leaves: &mut Vec<(Bound<'py, PyTuple>, Bound<'py, PyAny>)>,
    ) -> PyResult<()> {
        let py = x.py();
        let stop = match is_leaf {
            Some(f) => f.call1((x,))?.is_truthy()?,
            None => false,
        };
        let Some(one) = (if stop { None } else { one_level(x)? }) else {
            self.push(Kind::Leaf);
            leaves.push((PyTuple::new(py, path.iter())?, x.clone()));
            return Ok(());
        };
        let _level = recursion::enter(py, c" while flattening a pytree")?;
        let (before, arity) = (leaves.len(), one.children.len());
        let at = self.push(one.kind);
        for (key, child) in one.children {
            path.push(key);
            let r = self.flatten_with_path(&child, is_leaf, path, leaves);
            path.pop();
            r?;
        }
        self.close(at, arity, leaves.len() - before);
        Ok(())
    }

    /// The leaves of `x` if it has exactly this structure. The way in of a jitted call: nothing is allocated but room for leaves.
    /// `false` says "not this structure", and `leaves` then holds rubbish.
    pub fn match_leaves<'py>(&self, x: &Bound<'py, PyAny>, leaves: &mut Leaves<'py>) -> PyResult<bool> {
        let mut at = 0;
        self.match_at(&mut at, x, leaves)
    }
    fn match_at<'py>(
        &self,
        at: &mut usize,
        x: &Bound<'py, PyAny>,
        leaves: &mut Leaves<'py>,
    ) -> PyResult<bool> {
        let node = &self.nodes[*at];
        let n = node.arity as usize;
        *at += 1;
        let py = x.py();
        match &node.kind {
            Kind::Leaf => {
                // PERF: benches/dispatch, the 40-leaf row: nearly every leaf is an array
                let leaf = crate::array::is_array_exact(x) || matches!(shape(x)?, Shape::Leaf);
                if leaf {
                    leaves.push(x.clone());
                }
                Ok(leaf)
            }
            Kind::None => Ok(x.is_none()),
            Kind::Tuple => match x.cast_exact::<PyTuple>() {
                Ok(t) if t.len() == n => self.match_all(at, t.iter_borrowed().map(|c| c.to_owned()), leaves),
                _ => Ok(false),
            },
            Kind::List => match x.cast_exact::<PyList>() {
                Ok(l) if l.len() == n => self.match_all(at, l.iter(), leaves),
                _ => Ok(false),
            },
            Kind::Dict(keys) => match x.cast_exact::<PyDict>() {
                Ok(d) if d.len() == n => {
                    for k in keys {
                        match d.get_item(k)? {
                            Some(c) => {
                                if !self.match_at(at, &c, leaves)? {
                                    return Ok(false);
                                }
                            }
                            None => return Ok(false),
                        }
                    }
                    Ok(true)
                }
                _ => Ok(false),
            },
            Kind::NamedTuple(class) => match x.cast::<PyTuple>() {
                Ok(t) if x.get_type().is(class.bind(py)) && t.len() == n => self.match_all(at, t.iter(), leaves),
                _ => Ok(false),
            },
            Kind::OrderedDict(_) | Kind::DefaultDict(_) | Kind::Custom(..) => {
                let _level = recursion::enter(py, c" while flattening a pytree")?;
                let mut sub = TreeDef::default();
                sub.flatten(x, None, leaves)?;
                let mine = &self.nodes[*at - 1..*at - 1 + node.n_nodes as usize];
                *at += node.n_nodes as usize - 1;
                nodes_equal(py, mine, &sub.nodes)
            }
        }
    }
    fn match_all<'py>(
        &self,
        at: &mut usize,
        mut children: impl Iterator<Item = Bound<'py, PyAny>>,
        leaves: &mut Leaves<'py>,
    ) -> PyResult<bool> {
        children.try_fold(true, |ok, c| Ok(ok && self.match_at(at, &c, leaves)?))
    }

    /// The subtrees of `x` at the leaves of this structure, which must be a prefix of it.
    pub fn flatten_up_to<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut out = Vec::with_capacity(self.n_leaves());
        self.up_to(&mut 0, x, &mut out)?;
        Ok(out)
    }
    fn up_to<'py>(&self, at: &mut usize, x: &Bound<'py, PyAny>, out: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
        let node = &self.nodes[*at];
        let (n, py) = (node.arity as usize, x.py());
        *at += 1;
        if let Kind::Leaf = node.kind {
            out.push(x.clone());
            return Ok(());
        }
        let _level = recursion::enter(py, c" while flattening a pytree")?;
        let expected = |what: &str| -> PyResult<PyErr> {
            Ok(PyValueError::new_err(format!("Expected {what}, got {}.", x.repr()?)))
        };
        let arity = |what: &str, word: &str, m: usize| -> PyResult<()> {
            if m == n {
                Ok(())
            } else {
                Err(PyValueError::new_err(format!("{what} arity mismatch: {m} != {n}; {word}: {}.", x.repr()?)))
            }
        };
        let children: Vec<Bound<'py, PyAny>> = match (&node.kind, shape(x)?) {
            (Kind::Leaf, _) => unreachable!("returned above"),
            (Kind::None, Shape::None) => vec![],
            (Kind::None, _) => {
                return Err(PyValueError::new_err(format!(
                    "Expected None, got {}.\n\nIn previous releases of JAX, flatten-up-to used to consider None to be a tree-prefix of non-None values. \
                     To obtain the previous behavior, you can usually write:\n  \
                     jax.tree.map(lambda x, y: None if x is None else f(x, y), a, b, is_leaf=lambda x: x is None)",
                    x.repr()?
                )));
            }
            (Kind::Tuple, Shape::Tuple(t)) => {
                arity("Tuple", "tuple", t.len())?;
                t.iter().collect()
            }
            (Kind::Tuple, _) => return Err(expected("tuple")?),
            (Kind::List, Shape::List(l)) => {
                arity("List", "list", l.len())?;
                l.iter().collect()
            }
            (Kind::List, _) => return Err(expected("list")?),
            (Kind::Dict(keys), Shape::Dict(d)) => {
                let found = keys.iter().map(|k| d.get_item(k)).collect::<PyResult<Option<Vec<_>>>>()?;
                match found {
                    Some(c) if d.len() == n => c,
                    _ => {
                        let want = PyList::new(py, keys)?;
                        let have = PyList::new(py, sorted_keys(d)?)?;
                        return Err(PyValueError::new_err(format!(
                            "Dict key mismatch; expected keys: {}; present keys: {}.",
                            want.repr()?,
                            have.repr()?
                        )));
                    }
                }
            }
            (Kind::Dict(_), _) => return Err(expected("dict")?),
            (Kind::NamedTuple(class), Shape::NamedTuple(t)) => {
                arity("Named tuple", "tuple", t.len())?;
                if !t.get_type().is(class.bind(py)) {
                    return Err(PyValueError::new_err(format!(
                        "Named tuple type mismatch: expected type: {}, tuple: {}.",
                        class.bind(py).repr()?,
                        x.repr()?
                    )));
                }
                t.iter().collect()
            }
            (Kind::NamedTuple(_), _) => return Err(expected("named tuple")?),
            (kind, s) => {
                let dataclass = matches!(kind, Kind::Custom(r, _) if matches!(**r, Registration::Dataclass { .. }));
                let what = if dataclass { "ustom dataclass" } else { "ustom" };
                let (class, aux) = kind.class_and_aux(py)?;
                if !x.get_type().is(&class) {
                    return Err(PyValueError::new_err(format!(
                        "C{what} node type mismatch: expected type: {}, value: {}.",
                        class.repr()?,
                        x.repr()?
                    )));
                }
                let (children, have) = match s {
                    Shape::Collection(d, c) => {
                        let (kind, keys) = collection_kind(d, c)?;
                        let values = keys
                            .iter()
                            .map(|k| d.get_item(k)?.ok_or_else(|| changed(x)))
                            .collect::<PyResult<Vec<_>>>()?;
                        (values, kind.class_and_aux(py)?.1)
                    }
                    Shape::Custom(r) => r.take_apart(x)?,
                    _ => return Err(expected(&class.name()?.to_string())?),
                };
                if !aux.eq(&have)? {
                    return Err(PyValueError::new_err(format!(
                        "Mismatch c{what} node data: {} != {}; value: {}.",
                        aux.str()?,
                        have.str()?,
                        x.repr()?
                    )));
                }
                arity("Custom type", "value", children.len())?;
                children
            }
        };
        children.iter().try_for_each(|c| self.up_to(at, c, out))
    }

    // ---- putting together ----

    pub fn unflatten<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.build(&mut 0, py, leaves)
    }
    fn build<'py>(
        &self,
        at: &mut usize,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let node = &self.nodes[*at];
        *at += 1;
        match &node.kind {
            Kind::Leaf => return leaves.next().ok_or_else(|| PyValueError::new_err("Too few leaves for PyTreeDef")),
            Kind::Dict(keys) => {
                let d = PyDict::new(py);
                for k in keys {
                    d.set_item(k, self.build(at, py, leaves)?)?;
                }
                return Ok(d.into_any());
            }
            _ => {}
        }
        let children = (0..node.arity).map(|_| self.build(at, py, leaves)).collect::<PyResult<Vec<_>>>()?;
        node.kind.put_together(py, children)
    }

    /// `f_node(children, node_data)` over inner nodes and `f_leaf` over leaves, bottom up.
    fn walk<'py>(
        &self,
        at: &mut usize,
        f_node: &Bound<'py, PyAny>,
        f_leaf: Option<&Bound<'py, PyAny>>,
        leaves: &mut dyn Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (node, py) = (&self.nodes[*at], f_node.py());
        *at += 1;
        if let Kind::Leaf = node.kind {
            let leaf = leaves.next().unwrap_or_else(|| Err(PyValueError::new_err("Too few leaves for PyTreeDef")))?;
            return match f_leaf {
                Some(f) => f.call1((leaf,)),
                None => Ok(leaf),
            };
        }
        let children = (0..node.arity).map(|_| self.walk(at, f_node, f_leaf, leaves)).collect::<PyResult<Vec<_>>>()?;
        f_node.call1((PyTuple::new(py, children)?, node.kind.data(py)?))
    }

    /// `inner` in the place of every leaf.
    fn compose(&self, py: Python, inner: &TreeDef) -> TreeDef {
        let mut out = TreeDef::default();
        self.compose_at(&mut 0, py, inner, &mut out);
        out
    }
    fn compose_at(&self, at: &mut usize, py: Python, inner: &TreeDef, out: &mut TreeDef) {
        let node = &self.nodes[*at];
        *at += 1;
        if let Kind::Leaf = node.kind {
            return out.append(inner, py);
        }
        let here = out.nodes.len();
        out.nodes.push(node.clone_ref(py));
        (0..node.arity).for_each(|_| self.compose_at(at, py, inner, out));
        out.close(here, node.arity as usize, node.n_leaves as usize * inner.n_leaves());
    }

    fn show(&self, at: &mut usize, py: Python, out: &mut String) -> PyResult<()> {
        let node = &self.nodes[*at];
        let n = node.arity as usize;
        *at += 1;
        let list = |at: &mut usize, out: &mut String| -> PyResult<()> {
            for i in 0..n {
                if i > 0 {
                    out.push_str(", ");
                }
                self.show(at, py, out)?;
            }
            Ok(())
        };
        match &node.kind {
            Kind::Leaf => out.push('*'),
            Kind::None => out.push_str("None"),
            Kind::Tuple => {
                out.push('(');
                list(at, out)?;
                out.push_str(if n == 1 { ",)" } else { ")" });
            }
            Kind::List => {
                out.push('[');
                list(at, out)?;
                out.push(']');
            }
            Kind::Dict(keys) => {
                out.push('{');
                for (i, k) in keys.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(k.bind(py).repr()?.to_str()?);
                    out.push_str(": ");
                    self.show(at, py, out)?;
                }
                out.push('}');
            }
            Kind::NamedTuple(class) => {
                out.push_str(&format!("CustomNode(namedtuple[{}], [", class.bind(py).name()?));
                list(at, out)?;
                out.push_str("])");
            }
            kind => {
                let (class, aux) = kind.class_and_aux(py)?;
                out.push_str(&format!("CustomNode({}[{}], [", class.name()?, aux.str()?));
                list(at, out)?;
                out.push_str("])");
            }
        }
        Ok(())
    }
    pub fn text(&self, py: Python) -> PyResult<String> {
        let mut s = String::from("PyTreeDef(");
        self.show(&mut 0, py, &mut s)?;
        s.push(')');
        Ok(s)
    }

    // ---- comparing ----

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

/// One node taken apart, its children with their keys.
struct OneLevel<'py> {
    kind: Kind,
    children: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}
fn one_level<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<OneLevel<'py>>> {
    let py = x.py();
    let dict_key = |k: Bound<'py, PyAny>| Ok::<_, PyErr>(Bound::new(py, keys::DictKey { key: k.unbind() })?.into_any());
    let idx_key = |i: usize| {
        Ok::<_, PyErr>(Bound::new(py, keys::SequenceKey { idx: i.into_pyobject(py)?.into_any().unbind() })?.into_any())
    };
    let numbered = |items: Vec<Bound<'py, PyAny>>| {
        items.into_iter().enumerate().map(|(i, c)| Ok((idx_key(i)?, c))).collect::<PyResult<Vec<_>>>()
    };
    let keyed = |d: &Bound<'py, PyDict>, keys: Vec<Bound<'py, PyAny>>| {
        keys.into_iter()
            .map(|k| {
                let v = d.get_item(&k)?.ok_or_else(|| changed(d))?;
                Ok((dict_key(k)?, v))
            })
            .collect::<PyResult<Vec<_>>>()
    };
    Ok(Some(match shape(x)? {
        Shape::Leaf => return Ok(None),
        Shape::None => OneLevel { kind: Kind::None, children: vec![] },
        Shape::Tuple(t) => OneLevel { kind: Kind::Tuple, children: numbered(t.iter().collect())? },
        Shape::List(l) => OneLevel { kind: Kind::List, children: numbered(l.iter().collect())? },
        Shape::NamedTuple(t) => {
            let fields = t.get_type().getattr("_fields")?;
            let names: Vec<Bound<'py, PyAny>> = fields.try_iter()?.collect::<PyResult<_>>()?;
            let keys = names
                .into_iter()
                .map(|n| Ok(Bound::new(py, keys::GetAttrKey { name: n.unbind() })?.into_any()))
                .collect::<PyResult<Vec<_>>>()?;
            OneLevel {
                kind: Kind::NamedTuple(t.get_type().unbind()),
                children: keys.into_iter().zip(t.iter()).collect(),
            }
        }
        Shape::Dict(d) => {
            let keys = sorted_keys(d)?;
            let kind = Kind::Dict(keys.iter().map(|k| k.clone().unbind()).collect());
            OneLevel { kind, children: keyed(d, keys)? }
        }
        Shape::Collection(d, c) => {
            let (kind, keys) = collection_kind(d, c)?;
            OneLevel { kind, children: keyed(d, keys)? }
        }
        Shape::Custom(r) => {
            let (children, aux) = r.take_apart_with_keys(x)?;
            OneLevel { kind: Kind::Custom(r, aux.unbind()), children }
        }
    }))
}

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
pub fn tree_map<'py>(f: &Bound<'py, PyAny>, tree: &Bound<'py, PyAny>, rest: &Bound<'py, PyTuple>, is_leaf: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let py = f.py();
    let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
    def.flatten(tree, callable(is_leaf).as_ref(), &mut leaves)?;
    let columns = rest.iter().map(|t| def.flatten_up_to(&t)).collect::<PyResult<Vec<_>>>()?;
    let mut out = Vec::with_capacity(leaves.len());
    for (i, x) in leaves.into_iter().enumerate() {
        out.push(f.call1(PyTuple::new(py, std::iter::once(&x).chain(columns.iter().map(|c| &c[i])).collect::<Vec<_>>())?)?);
    }
    def.unflatten(py, &mut out.into_iter())
}
