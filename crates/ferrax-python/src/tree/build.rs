//! Unflattening, structures composed of structures, and how structures print.
//!
//! INVARIANT: unflattening takes as many leaves as the structure has, in flattening order.
use super::{NodeKind, TreeDef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

impl TreeDef {
    pub fn unflatten<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.build(&mut 0, py, leaves)
    }
    pub(super) fn build<'py>(
        &self,
        at: &mut usize,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let node = &self.nodes[*at];
        *at += 1;
        match &node.kind {
            NodeKind::Leaf => {
                return leaves.next().ok_or_else(|| PyValueError::new_err("Too few leaves for PyTreeDef"));
            }
            NodeKind::Dict(keys) => {
                let d = PyDict::new(py);
                for k in keys {
                    d.set_item(k, self.build(at, py, leaves)?)?;
                }
                return Ok(d.into_any());
            }
            _ => {}
        }
        let mut children = Vec::with_capacity(node.arity as usize);
        for _ in 0..node.arity {
            children.push(self.build(at, py, leaves)?);
        }
        node.kind.put_together(py, children)
    }

    /// `f_node(children, node_data)` over inner nodes and `f_leaf` over leaves, bottom up.
    pub(super) fn walk<'py>(
        &self,
        at: &mut usize,
        f_node: &Bound<'py, PyAny>,
        f_leaf: Option<&Bound<'py, PyAny>>,
        leaves: &mut dyn Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (node, py) = (&self.nodes[*at], f_node.py());
        *at += 1;
        if let NodeKind::Leaf = node.kind {
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
    pub(super) fn compose(&self, py: Python, inner: &TreeDef) -> TreeDef {
        let mut out = TreeDef::default();
        self.compose_at(&mut 0, py, inner, &mut out);
        out
    }
    pub(super) fn compose_at(&self, at: &mut usize, py: Python, inner: &TreeDef, out: &mut TreeDef) {
        let node = &self.nodes[*at];
        *at += 1;
        if let NodeKind::Leaf = node.kind {
            return out.append(inner, py);
        }
        let here = out.nodes.len();
        out.nodes.push(node.clone_ref(py));
        (0..node.arity).for_each(|_| self.compose_at(at, py, inner, out));
        out.close(here, node.arity as usize, node.n_leaves as usize * inner.n_leaves());
    }

    pub(super) fn show(&self, at: &mut usize, py: Python, out: &mut String) -> PyResult<()> {
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
            NodeKind::Leaf => out.push('*'),
            NodeKind::None => out.push_str("None"),
            NodeKind::Tuple => {
                out.push('(');
                list(at, out)?;
                out.push_str(if n == 1 { ",)" } else { ")" });
            }
            NodeKind::List => {
                out.push('[');
                list(at, out)?;
                out.push(']');
            }
            NodeKind::Dict(keys) => {
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
            NodeKind::NamedTuple(class) => {
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
}
