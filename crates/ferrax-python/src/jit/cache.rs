//! The trace cache of a jitted function: by the structure of its arguments, then by the types of
//! their leaves.
//!
//! Functions jitted twice with the same options share a cache ([`of`]). Traces without Python
//! objects live as long as the function itself: `jit(f)(1); jit(f)(2)` traces once.
//!
//! INVARIANT: no lock is held while Python runs. A cached value does not keep the function alive.
use super::structure::{ArgSlot, Structure};
use super::{Options, Variant};
use crate::plain::is_plain;
use crate::tree::{NodeKind, TreeDef};
use ferrax_ir::Op;
use ferrax_ir::cx::Fun;
use ferrax_ir::program::Program;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyWeakrefMethods, PyWeakrefReference};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// More structures than this: those used longest ago go.
const MAX_STRUCTURES: usize = 256;
/// The number of structures that are compared before a hash is computed.
pub(super) const RECENT: usize = 4;

pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

#[derive(Default)]
pub(super) struct TraceCache {
    all: FxHashMap<u64, SmallVec<[Arc<Structure>; 1]>>,
    /// The most recently used first.
    recent: SmallVec<[Arc<Structure>; RECENT]>,
    len: usize,
    clock: u64,
}
impl TraceCache {
    pub(super) fn recent(&self, at: usize) -> Option<Arc<Structure>> {
        self.recent.get(at).cloned()
    }
    pub(super) fn len(&self) -> usize {
        self.len
    }
    pub(super) fn with_hash(&self, hash: u64) -> SmallVec<[Arc<Structure>; 1]> {
        self.all.get(&hash).cloned().unwrap_or_default()
    }
    pub(super) fn structures(&self) -> Vec<Arc<Structure>> {
        self.all.values().flatten().cloned().collect()
    }
    /// Notes that a structure was used.
    pub(super) fn used(&mut self, s: &Arc<Structure>) {
        self.clock += 1;
        s.used.store(self.clock, Ordering::Relaxed);
        match self.recent.iter().position(|t| Arc::ptr_eq(t, s)) {
            Some(i) => self.recent[..=i].rotate_right(1),
            None => {
                self.recent.truncate(RECENT - 1);
                self.recent.insert(0, s.clone());
            }
        }
    }
    /// Adds a structure; returns the evicted ones.
    pub(super) fn insert(&mut self, s: &Arc<Structure>) -> Vec<Arc<Structure>> {
        self.all.entry(s.hash).or_default().push(s.clone());
        self.len += 1;
        self.used(s);
        if self.len <= MAX_STRUCTURES {
            return vec![];
        }
        let age = |s: &Arc<Structure>| s.used.load(Ordering::Relaxed);
        let mut ages: Vec<u64> = self.all.values().flatten().map(age).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        let mut gone = vec![];
        self.all.retain(|_, same| {
            let (keep, old): (SmallVec<_>, SmallVec<[_; 1]>) =
                std::mem::take(same).into_iter().partition(|s| age(s) > limit);
            gone.extend(old);
            *same = keep;
            !same.is_empty()
        });
        self.len -= gone.len();
        gone
    }
    /// The Python objects that this cache alone refers to, each as often as it does.
    pub(super) fn visit(&self, each: &mut dyn FnMut(&Py<PyAny>)) {
        for s in self.all.values().flatten() {
            let mine = 1 + self.recent.iter().any(|t| Arc::ptr_eq(t, s)) as usize;
            if Arc::strong_count(s) != mine {
                continue;
            }
            for slot in &s.slots {
                if let ArgSlot::Static(x) = slot {
                    each(x);
                }
            }
            let Ok(variants) = s.variants.try_lock() else { continue };
            for v in variants.map.values().flatten() {
                let mine = 1 + variants.last.as_ref().is_some_and(|l| Arc::ptr_eq(l, v)) as usize;
                if Arc::strong_count(v) == mine {
                    v.visit(each);
                }
            }
        }
    }
    /// Whether no trace holds a Python object that could lead back to a function.
    fn is_plain(&self) -> bool {
        self.all.values().flatten().all(|s| {
            s.slots.iter().all(|slot| match slot {
                ArgSlot::Static(x) => Python::try_attach(|py| is_plain(x.bind(py))).unwrap_or(false),
                ArgSlot::Dynamic { def, .. } => plain_def(def),
            }) && lock(&s.variants).map.values().flatten().all(|v| plain_def(&v.out_def) && plain_program(&v.program))
        })
    }
}
/// The Python objects that rules and functions in a program refer to, where nothing else shares them: `owners` references to the
/// program are the caller's.
pub(super) fn visit_program(p: &Arc<Program>, owners: usize, each: &mut dyn FnMut(&Py<PyAny>)) {
    if Arc::strong_count(p) != owners {
        return;
    }
    for op in p.eqns().iter().map(|e| &e.op).filter(|op| op.is_sole()) {
        for f in op.functions() {
            match f {
                Fun::Prog(p) => visit_program(p, 1, each),
                f => {
                    if let Some(x) = f.holds_alone().and_then(|h| h.downcast_ref::<Py<PyAny>>()) {
                        each(x);
                    }
                }
            }
        }
        if !matches!(op, Op::CustomJvp(_) | Op::CustomVjp(_) | Op::CustomLin(_)) {
            op.bodies().iter().for_each(|b| visit_program(b, 1, each));
        }
    }
}
fn plain_def(def: &TreeDef) -> bool {
    def.nodes.iter().all(|n| match &n.kind {
        NodeKind::Leaf | NodeKind::None | NodeKind::Tuple | NodeKind::List => true,
        NodeKind::Dict(keys) => Python::try_attach(|py| keys.iter().all(|k| is_plain(k.bind(py)))).unwrap_or(false),
        _ => false,
    })
}
fn plain_program(p: &Program) -> bool {
    p.eqns().iter().all(|e| match &e.op {
        Op::Foreign(_) | Op::CustomJvp(_) | Op::CustomVjp(_) | Op::CustomLin(_) | Op::Callback(_) | Op::Remat(_) => {
            false
        }
        op => op.bodies().iter().all(|b| plain_program(b)),
    })
}

// ---- all caches ----

/// The caches of all jitted functions that are alive, for `clear_caches`.
static CACHES: Mutex<Vec<Weak<Mutex<TraceCache>>>> = Mutex::new(vec![]);
fn all_caches() -> Vec<Arc<Mutex<TraceCache>>> {
    lock(&CACHES).iter().filter_map(Weak::upgrade).collect()
}
/// Forgets all traces.
pub fn clear_all() {
    all_caches().iter().for_each(clear);
}
/// The traces of all jitted functions.
pub(super) fn all_variants() -> Vec<Arc<Variant>> {
    let structures = all_caches().iter().flat_map(|c| lock(c).structures()).collect::<Vec<_>>();
    structures.iter().flat_map(|s| lock(&s.variants).map.values().flatten().cloned().collect::<Vec<_>>()).collect()
}
pub(super) fn clear(cache: &Arc<Mutex<TraceCache>>) {
    let old = std::mem::take(&mut *lock(cache));
    drop(old);
}

/// The traces of one function under one set of options.
struct SharedTraces {
    /// With a callback that takes the function's entries out of the table.
    function: Py<PyWeakrefReference>,
    key: Key,
    cache: Weak<Mutex<TraceCache>>,
    /// While no jitted function has them: kept here if they are plain.
    kept: Option<Arc<Mutex<TraceCache>>>,
}
type Key = (Vec<isize>, Vec<String>, Vec<isize>, Vec<String>, bool, bool, Option<usize>);
fn key(o: &Options) -> Option<Key> {
    let device = o.device.map(|d| d.id);
    (o.compiler_options.is_none() && o.shardings.is_none()).then(|| {
        let (n, m) = (o.static_argnums.clone(), o.static_argnames.clone());
        (n, m, o.donate_argnums.clone(), o.donate_argnames.clone(), o.keep_unused, o.inline, device)
    })
}
type TraceTable = FxHashMap<usize, Vec<SharedTraces>>;
static SHARED: Mutex<Option<TraceTable>> = Mutex::new(None);

/// Takes a function's entries out of the table when the function goes.
#[pyclass(frozen)]
struct Forget(usize);
#[pymethods]
impl Forget {
    fn __call__(&self, gone: &Bound<PyAny>) {
        let old: Vec<SharedTraces> = {
            let mut table = lock(&SHARED);
            let Some(all) = table.as_mut().and_then(|t| t.get_mut(&self.0)) else { return };
            let (old, keep) = std::mem::take(all).into_iter().partition(|s| s.function.is(gone));
            *all = keep;
            old
        };
        drop(old);
    }
}

/// The traces of `function` under these options: those it has, or none yet.
pub(super) fn of(function: &Bound<PyAny>, options: &Options) -> Arc<Mutex<TraceCache>> {
    let at = function.as_ptr() as usize;
    let key = key(options);
    if let Some(key) = &key {
        let mut table = lock(&SHARED);
        let all = table.get_or_insert_default().entry(at).or_default();
        let same = |s: &&mut SharedTraces| {
            s.key == *key && s.function.bind(function.py()).upgrade().is_some_and(|f| f.is(function))
        };
        if let Some(s) = all.iter_mut().find(same)
            && let Some(cache) = s.kept.take().or_else(|| s.cache.upgrade())
        {
            return cache;
        }
    }
    let cache: Arc<Mutex<TraceCache>> = Arc::default();
    let mut all = lock(&CACHES);
    if all.len() == all.capacity() {
        all.retain(|c| c.strong_count() > 0);
    }
    all.push(Arc::downgrade(&cache));
    drop(all);
    let watched = || PyWeakrefReference::new_with(function, Bound::new(function.py(), Forget(at))?);
    // without weak references its traces are its jitted function's own
    if let Some(key) = key
        && let Ok(function) = watched()
    {
        let made = SharedTraces { function: function.unbind(), key, cache: Arc::downgrade(&cache), kept: None };
        let old = {
            let mut table = lock(&SHARED);
            let all = table.get_or_insert_default().entry(at).or_default();
            let old: Vec<SharedTraces> =
                all.extract_if(.., |s| s.key == made.key && s.cache.strong_count() == 0).collect();
            all.push(made);
            old
        };
        drop(old);
    }
    cache
}
/// A jitted function goes; its traces stay if they have no other owner and they are plain.
pub(super) fn leave(function: &Py<PyAny>, options: &Options, cache: &Arc<Mutex<TraceCache>>) {
    if Arc::strong_count(cache) > 1 || lock(cache).len() == 0 {
        return;
    }
    let Some(key) = key(options) else { return };
    if !lock(cache).is_plain() {
        return;
    }
    let mut table = lock(&SHARED);
    let found = table.as_mut().and_then(|t| t.get_mut(&(function.as_ptr() as usize)));
    if let Some(s) =
        found.and_then(|all| all.iter_mut().find(|s| s.key == key && s.cache.as_ptr() == Arc::as_ptr(cache)))
    {
        s.kept = Some(cache.clone());
    }
}
