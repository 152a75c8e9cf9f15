//! Flattening: into leaves and structure, by a known structure, or one level at a time.
//!
//! INVARIANT: every traversal visits leaves in one order, with dict keys sorted.
use super::registry::Registration;
use super::{Leaves, NodeKind, ObjectShape, TreeDef, changed, collection_kind, keys, nodes_equal, shape, sorted_keys};
use crate::ffi::recursion;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

impl TreeDef {
    pub fn flatten<'py>(
        &mut self,
        x: &Bound<'py, PyAny>,
        is_leaf: Option<&Bound<'py, PyAny>>,
        leaves: &mut Leaves<'py>,
    ) -> PyResult<()> {
        if let Some(f) = is_leaf
            && f.call1((x,))?.is_truthy()?
        {
            self.push(NodeKind::Leaf);
            leaves.push(x.clone());
            return Ok(());
        }
        let py = x.py();
        let s = shape(x)?;
        if let ObjectShape::Leaf = s {
            self.push(NodeKind::Leaf);
            leaves.push(x.clone());
            return Ok(());
        }
        let _level = recursion::enter(py, c" while flattening a pytree")?;
        let before = leaves.len();
        let at = self.push(NodeKind::Tuple);
        let arity = match s {
            ObjectShape::Leaf => unreachable!("returned above"),
            ObjectShape::None => {
                self.nodes[at].kind = NodeKind::None;
                0
            }
            ObjectShape::Tuple(t) => {
                t.iter_borrowed().try_for_each(|c| self.flatten(&c, is_leaf, leaves))?;
                t.len()
            }
            ObjectShape::NamedTuple(t) => {
                self.nodes[at].kind = NodeKind::NamedTuple(t.get_type().unbind());
                t.iter_borrowed().try_for_each(|c| self.flatten(&c, is_leaf, leaves))?;
                t.len()
            }
            ObjectShape::List(l) => {
                self.nodes[at].kind = NodeKind::List;
                let items: Vec<_> = l.iter().collect();
                items.iter().try_for_each(|c| self.flatten(c, is_leaf, leaves))?;
                items.len()
            }
            ObjectShape::Dict(d) => {
                let keys = sorted_keys(d)?;
                let n = keys.len();
                for k in &keys {
                    self.flatten(&d.get_item(k)?.ok_or_else(|| changed(x))?, is_leaf, leaves)?;
                }
                self.nodes[at].kind = NodeKind::Dict(keys.into_iter().map(Bound::unbind).collect());
                n
            }
            ObjectShape::Collection(d, c) => {
                let (kind, keys) = collection_kind(d, c)?;
                self.nodes[at].kind = kind;
                for k in &keys {
                    self.flatten(&d.get_item(k)?.ok_or_else(|| changed(x))?, is_leaf, leaves)?;
                }
                keys.len()
            }
            ObjectShape::Custom(r) => {
                let (children, aux) = r.take_apart(x)?;
                self.nodes[at].kind = NodeKind::Custom(r, aux.unbind());
                children.iter().try_for_each(|c| self.flatten(c, is_leaf, leaves))?;
                children.len()
            }
        };
        self.close(at, arity, leaves.len() - before);
        Ok(())
    }

    /// As `flatten`; each leaf comes with its path.
    pub(super) fn flatten_with_path<'py>(
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
            self.push(NodeKind::Leaf);
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

    /// The leaves of `x` if it has exactly this structure. The entry of a jitted call: it allocates
    /// nothing but room for leaves. Returns `false` for another structure; `leaves` is then
    /// incomplete.
    pub fn match_leaves<'py>(&self, x: &Bound<'py, PyAny>, leaves: &mut Leaves<'py>) -> PyResult<bool> {
        let mut at = 0;
        self.match_at(&mut at, x, leaves)
    }
    pub(super) fn match_at<'py>(
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
            NodeKind::Leaf => {
                // PERF: benches/dispatch, the 40-leaf row: nearly every leaf is an array
                let leaf = crate::array::is_array_exact(x) || matches!(shape(x)?, ObjectShape::Leaf);
                if leaf {
                    leaves.push(x.clone());
                }
                Ok(leaf)
            }
            NodeKind::None => Ok(x.is_none()),
            NodeKind::Tuple => match x.cast_exact::<PyTuple>() {
                Ok(t) if t.len() == n => self.match_all(at, t.iter_borrowed().map(|c| c.to_owned()), leaves),
                _ => Ok(false),
            },
            NodeKind::List => match x.cast_exact::<PyList>() {
                Ok(l) if l.len() == n => self.match_all(at, l.iter(), leaves),
                _ => Ok(false),
            },
            NodeKind::Dict(keys) => match x.cast_exact::<PyDict>() {
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
            NodeKind::NamedTuple(class) => match x.cast::<PyTuple>() {
                Ok(t) if x.get_type().is(class.bind(py)) && t.len() == n => self.match_all(at, t.iter(), leaves),
                _ => Ok(false),
            },
            NodeKind::OrderedDict(_) | NodeKind::DefaultDict(_) | NodeKind::Custom(..) => {
                let _level = recursion::enter(py, c" while flattening a pytree")?;
                let mut sub = TreeDef::default();
                sub.flatten(x, None, leaves)?;
                let mine = &self.nodes[*at - 1..*at - 1 + node.n_nodes as usize];
                *at += node.n_nodes as usize - 1;
                nodes_equal(py, mine, &sub.nodes)
            }
        }
    }
    pub(super) fn match_all<'py>(
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
    pub(super) fn up_to<'py>(
        &self,
        at: &mut usize,
        x: &Bound<'py, PyAny>,
        out: &mut Vec<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let node = &self.nodes[*at];
        let (n, py) = (node.arity as usize, x.py());
        *at += 1;
        if let NodeKind::Leaf = node.kind {
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
            (NodeKind::Leaf, _) => unreachable!("returned above"),
            (NodeKind::None, ObjectShape::None) => vec![],
            (NodeKind::None, _) => {
                return Err(PyValueError::new_err(format!(
                    "Expected None, got {}.\n\nIn previous releases of JAX, flatten-up-to used to consider None to be a tree-prefix of non-None values. \
                     To obtain the previous behavior, you can usually write:\n  \
                     jax.tree.map(lambda x, y: None if x is None else f(x, y), a, b, is_leaf=lambda x: x is None)",
                    x.repr()?
                )));
            }
            (NodeKind::Tuple, ObjectShape::Tuple(t)) => {
                arity("Tuple", "tuple", t.len())?;
                t.iter().collect()
            }
            (NodeKind::Tuple, _) => return Err(expected("tuple")?),
            (NodeKind::List, ObjectShape::List(l)) => {
                arity("List", "list", l.len())?;
                l.iter().collect()
            }
            (NodeKind::List, _) => return Err(expected("list")?),
            (NodeKind::Dict(keys), ObjectShape::Dict(d)) => {
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
            (NodeKind::Dict(_), _) => return Err(expected("dict")?),
            (NodeKind::NamedTuple(class), ObjectShape::NamedTuple(t)) => {
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
            (NodeKind::NamedTuple(_), _) => return Err(expected("named tuple")?),
            (kind, s) => {
                let dataclass = matches!(kind, NodeKind::Custom(r, _) if matches!(**r, Registration::Dataclass { .. }));
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
                    ObjectShape::Collection(d, c) => {
                        let (kind, keys) = collection_kind(d, c)?;
                        let values = keys
                            .iter()
                            .map(|k| d.get_item(k)?.ok_or_else(|| changed(x)))
                            .collect::<PyResult<Vec<_>>>()?;
                        (values, kind.class_and_aux(py)?.1)
                    }
                    ObjectShape::Custom(r) => r.take_apart(x)?,
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
}

/// One flattened node, its children with their keys.
pub(super) struct OneLevel<'py> {
    pub(super) kind: NodeKind,
    pub(super) children: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}
pub(super) fn one_level<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<OneLevel<'py>>> {
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
        ObjectShape::Leaf => return Ok(None),
        ObjectShape::None => OneLevel { kind: NodeKind::None, children: vec![] },
        ObjectShape::Tuple(t) => OneLevel { kind: NodeKind::Tuple, children: numbered(t.iter().collect())? },
        ObjectShape::List(l) => OneLevel { kind: NodeKind::List, children: numbered(l.iter().collect())? },
        ObjectShape::NamedTuple(t) => {
            let fields = t.get_type().getattr("_fields")?;
            let names: Vec<Bound<'py, PyAny>> = fields.try_iter()?.collect::<PyResult<_>>()?;
            let keys = names
                .into_iter()
                .map(|n| Ok(Bound::new(py, keys::GetAttrKey { name: n.unbind() })?.into_any()))
                .collect::<PyResult<Vec<_>>>()?;
            OneLevel {
                kind: NodeKind::NamedTuple(t.get_type().unbind()),
                children: keys.into_iter().zip(t.iter()).collect(),
            }
        }
        ObjectShape::Dict(d) => {
            let keys = sorted_keys(d)?;
            let kind = NodeKind::Dict(keys.iter().map(|k| k.clone().unbind()).collect());
            OneLevel { kind, children: keyed(d, keys)? }
        }
        ObjectShape::Collection(d, c) => {
            let (kind, keys) = collection_kind(d, c)?;
            OneLevel { kind, children: keyed(d, keys)? }
        }
        ObjectShape::Custom(r) => {
            let (children, aux) = r.take_apart_with_keys(x)?;
            OneLevel { kind: NodeKind::Custom(r, aux.unbind()), children }
        }
    }))
}
