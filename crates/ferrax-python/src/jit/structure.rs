//! The structure of a call's arguments: the part of a signature other than the types of its leaves.
//!
//! INVARIANT: `arguments` is the inverse of `matches`: the same leaves give the same arguments.
use super::Variant;
use super::vectorcall::Args;
use crate::array::value::type_text;
use crate::tree::{Leaves, TreeDef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// More variants of one structure than this: those used longest ago go.
const MAX_VARIANTS: usize = 1024;

/// How the arguments are put together: all of a signature but the types of the leaves.
pub(super) struct Structure {
    pub(super) n_positional: usize,
    /// Sorted.
    pub(super) names: Vec<Py<PyString>>,
    /// One for each argument, positional ones first, keywords in the order of `names`.
    pub(super) slots: Vec<ArgSlot>,
    /// Of all the above: equal structures have equal ones.
    pub(super) hash: u64,
    pub(super) used: AtomicU64,
    pub(super) variants: Mutex<Variants>,
}
/// The traces of one structure, by the types of its leaves.
#[derive(Default)]
pub(super) struct Variants {
    pub(super) map: FxHashMap<u64, Vec<Arc<Variant>>>,
    /// The one used last: nearly always the next one too, and found without hashing.
    pub(super) last: Option<Arc<Variant>>,
    pub(super) len: usize,
    pub(super) clock: u64,
}
impl Variants {
    /// Adds a trace; returns the evicted ones.
    pub(super) fn insert(&mut self, key: u64, v: Arc<Variant>) -> Vec<Arc<Variant>> {
        v.used.store(self.clock, Ordering::Relaxed);
        self.map.entry(key).or_default().push(v);
        self.len += 1;
        if self.len <= MAX_VARIANTS {
            return vec![];
        }
        let age = |v: &Arc<Variant>| v.used.load(Ordering::Relaxed);
        let mut ages: Vec<u64> = self.map.values().flatten().map(age).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        let mut gone = vec![];
        self.map.retain(|_, all| {
            let (keep, old): (Vec<_>, Vec<_>) = std::mem::take(all).into_iter().partition(|v| age(v) > limit);
            gone.extend(old);
            *all = keep;
            !all.is_empty()
        });
        self.len -= gone.len();
        gone
    }
}
pub(super) enum ArgSlot {
    Dynamic { def: TreeDef, donated: bool },
    Static(Py<PyAny>),
}
/// The hash of a static argument, which must be hashable. An error of its `__hash__` is passed on.
pub(super) fn hashable(x: &Bound<PyAny>) -> PyResult<isize> {
    match x.hash() {
        Ok(h) => Ok(h),
        Err(e) if !e.is_instance_of::<PyTypeError>(x.py()) => Err(e),
        Err(e) => {
            let py = x.py();
            Err(PyValueError::new_err(format!(
                "Non-hashable static arguments are not supported. An error occurred while trying to hash an object of type {}, {}. The error was:\n{}: {}\n",
                type_text(x),
                x.repr().map(|r| r.to_string()).unwrap_or_default(),
                e.get_type(py).name().map(|n| n.to_string()).unwrap_or_default(),
                e.value(py)
            )))
        }
    }
}

impl Structure {
    pub(super) fn new(
        py: Python,
        n_positional: usize,
        names: Vec<Py<PyString>>,
        slots: Vec<ArgSlot>,
    ) -> PyResult<Structure> {
        let mut h = FxHasher::default();
        n_positional.hash(&mut h);
        for name in &names {
            name.bind(py).hash()?.hash(&mut h);
        }
        for slot in &slots {
            match slot {
                ArgSlot::Dynamic { def, .. } => def.hash(py)?.hash(&mut h),
                ArgSlot::Static(x) => {
                    let x = x.bind(py);
                    (x.get_type().as_ptr() as usize, hashable(x)?).hash(&mut h);
                }
            }
        }
        let (used, variants) = Default::default();
        Ok(Structure { n_positional, names, slots, hash: h.finish(), used, variants })
    }
    /// Whether the arguments of a call have this structure; if so, their leaves.
    pub(super) fn matches<'py>(
        &self,
        py: Python<'py>,
        args: &Args<'_, 'py>,
        leaves: &mut Leaves<'py>,
    ) -> PyResult<bool> {
        if args.n_positional() != self.n_positional || args.n_keywords() != self.names.len() {
            return Ok(false);
        }
        for (i, slot) in self.slots.iter().enumerate() {
            let x = if i < self.n_positional {
                args.get(i)
            } else {
                let Some(names) = args.names() else { return Ok(false) };
                let want = self.names[i - self.n_positional].bind(py);
                let found = names.iter_borrowed().position(|n| n.is(want) || n.as_any().eq(want).unwrap_or(false));
                match found {
                    Some(k) => args.get(self.n_positional + k),
                    None => return Ok(false),
                }
            };
            let same = match slot {
                ArgSlot::Dynamic { def, .. } => def.match_leaves(&x, leaves)?,
                ArgSlot::Static(v) => same_static(v.bind(py), &x)?,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
    pub(super) fn equal(&self, py: Python, o: &Structure) -> PyResult<bool> {
        if self.n_positional != o.n_positional || self.names.len() != o.names.len() || self.slots.len() != o.slots.len()
        {
            return Ok(false);
        }
        for (a, b) in self.names.iter().zip(&o.names) {
            if !a.bind(py).as_any().eq(b.bind(py))? {
                return Ok(false);
            }
        }
        for (a, b) in self.slots.iter().zip(&o.slots) {
            let same = match (a, b) {
                (ArgSlot::Dynamic { def: a, .. }, ArgSlot::Dynamic { def: b, .. }) => a.equal(py, b)?,
                (ArgSlot::Static(a), ArgSlot::Static(b)) => same_static(a.bind(py), b.bind(py))?,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
    /// The arguments as `structure_changes` compares them: positional ones and keywords, each a pair of whether it is static and its
    /// value, or a tree of its structure.
    pub(super) fn shown<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Shown<'py>>, Bound<'py, PyDict>)> {
        let mut items: Vec<Shown> = vec![];
        for s in &self.slots {
            items.push(match s {
                ArgSlot::Dynamic { def, .. } => {
                    let mut leaves = (0..def.n_leaves())
                        .map(|_| 0.into_pyobject(py).map(Bound::into_any))
                        .collect::<Result<Vec<_>, _>>()?
                        .into_iter();
                    (false, def.unflatten(py, &mut leaves)?)
                }
                ArgSlot::Static(x) => (true, x.bind(py).clone()),
            });
        }
        let keywords = PyDict::new(py);
        for (name, x) in self.names.iter().zip(items.drain(self.n_positional..)) {
            keywords.set_item(name, x)?;
        }
        Ok((items, keywords))
    }
    /// The arguments put together again from leaves and static values.
    pub(super) fn arguments<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let all: Vec<Bound<'py, PyAny>> = leaves.collect::<PyResult<_>>()?;
        let mut leaves = all.into_iter();
        let mut items = Vec::with_capacity(self.slots.len());
        for s in &self.slots {
            items.push(match s {
                ArgSlot::Dynamic { def, .. } => def.unflatten(py, &mut leaves)?,
                ArgSlot::Static(v) => v.bind(py).clone(),
            });
        }
        let keywords = PyDict::new(py);
        for (name, x) in self.names.iter().zip(items.drain(self.n_positional..)) {
            keywords.set_item(name, x)?;
        }
        Ok((PyTuple::new(py, items)?, keywords))
    }
}
/// An argument: whether it is static, and its value or a tree of its structure.
type Shown<'py> = (bool, Bound<'py, PyAny>);

/// Static arguments are the same if they are of one class and equal.
fn same_static(a: &Bound<PyAny>, b: &Bound<PyAny>) -> PyResult<bool> {
    if a.is(b) {
        return Ok(true);
    }
    if !a.get_type().is(b.get_type()) {
        return Ok(false);
    }
    hashable(b)?;
    a.eq(b).map_err(|e| {
        let py = a.py();
        PyValueError::new_err(format!(
            "static arguments should be comparable using __eq__.The following error was raised when comparing two objects of types {} and {}. The error was:\n{}: {}",
            type_text(a),
            type_text(b),
            e.get_type(py).name().map(|n| n.to_string()).unwrap_or_default(),
            e.value(py)
        ))
    })
}

/// The path of each leaf, by the function's own parameter names.
pub(super) fn paths(
    py: Python,
    function: &Py<PyAny>,
    structure: &Structure,
    leaves: &[Bound<PyAny>],
) -> PyResult<Vec<String>> {
    let mut it = leaves.iter().cloned();
    let mut items: Vec<Bound<PyAny>> = vec![];
    for s in &structure.slots {
        items.push(match s {
            ArgSlot::Dynamic { def, .. } => def.unflatten(py, &mut it)?,
            // a static argument has no leaves
            ArgSlot::Static(_) => PyTuple::empty(py).into_any(),
        });
    }
    let keywords = PyDict::new(py);
    for (name, x) in structure.names.iter().zip(items.drain(structure.n_positional..)) {
        keywords.set_item(name, x)?;
    }
    crate::hooks::argument_names(py)?.call1((function, PyTuple::new(py, items)?, keywords))?.extract()
}
