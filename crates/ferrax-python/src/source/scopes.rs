//! Stacks of scopes: the names of `named_scope`s and the transforms between them, as numbers; 0 is the empty one. Transforms are written
//! around the next name: `vmap`, `jvp`, `outer`, `f` is `vmap(jvp(outer))/f`.
//!
//! INVARIANT: a number means the same stack for the life of the process.
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

type Text = Cow<'static, str>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Scope {
    outer: u32,
    name: Text,
    is_transform: bool,
}
#[derive(Default)]
struct ScopeTable {
    /// Number i + 1.
    all: Vec<Scope>,
    ids: FxHashMap<Scope, u32>,
    /// Scopes that were moved (which, beneath which, to which, in which transform), and the
    /// results.
    moves: FxHashMap<(u32, u32, u32, Option<&'static str>), u32>,
}
static TABLE: Mutex<Option<ScopeTable>> = Mutex::new(None);
fn with<T>(f: impl FnOnce(&mut ScopeTable) -> T) -> T {
    let mut table: MutexGuard<Option<ScopeTable>> = TABLE.lock().unwrap_or_else(|e| e.into_inner());
    f(table.get_or_insert_default())
}
thread_local! { static OPEN: Cell<u32> = const { Cell::new(0) } }

impl ScopeTable {
    fn push(&mut self, outer: u32, name: Text, is_transform: bool) -> u32 {
        let scope = Scope { outer, name, is_transform };
        if let Some(id) = self.ids.get(&scope) {
            return *id;
        }
        self.all.push(scope.clone());
        let id = self.all.len() as u32;
        self.ids.insert(scope, id);
        id
    }
    /// The stacks that a stack grew through, the outermost first, and itself.
    fn through(&self, mut id: u32) -> Vec<u32> {
        let mut all = vec![];
        while id != 0 {
            all.push(id);
            id = self.all[id as usize - 1].outer;
        }
        all.reverse();
        all
    }
    fn moved(&mut self, id: u32, beneath: u32, transform: Option<&'static str>, to: u32) -> u32 {
        let through = self.through(id);
        let first = through.iter().position(|s| *s == beneath).map_or(0, |i| i + 1);
        let to = transform.map_or(to, |t| self.push(to, t.into(), true));
        through[first..].iter().fold(to, |to, s| {
            let Scope { name, is_transform, .. } = self.all[*s as usize - 1].clone();
            self.push(to, name, is_transform)
        })
    }
    fn beneath(&mut self, id: u32, name: &'static str) -> u32 {
        let through = self.through(id);
        let first = self.push(0, name.into(), false);
        through.iter().fold(first, |to, s| {
            let Scope { name, is_transform, .. } = self.all[*s as usize - 1].clone();
            self.push(to, name, is_transform)
        })
    }
    fn text(&self, id: u32) -> String {
        let (mut parts, mut pending) = (vec![], vec![]);
        let wrap = |pending: &mut Vec<&str>, name: &str| {
            pending.drain(..).rev().fold(name.to_string(), |s, t| format!("{t}({s})"))
        };
        for s in self.through(id) {
            let scope = &self.all[s as usize - 1];
            match scope.is_transform {
                true => pending.push(&*scope.name),
                false => parts.push(wrap(&mut pending, &scope.name)),
            }
        }
        if !pending.is_empty() {
            parts.push(wrap(&mut pending, ""));
        }
        parts.join("/")
    }
}

/// The stack that is open on this thread.
pub fn open() -> u32 {
    OPEN.get()
}
/// scope_enter(name): opens a scope on this thread; returns those that were open, for `scope_leave`.
#[pyfunction]
pub fn scope_enter(name: &str) -> u32 {
    let outer = OPEN.get();
    OPEN.set(with(|t| t.push(outer, name.to_string().into(), false)));
    outer
}
#[pyfunction]
pub fn scope_leave(outer: u32) {
    OPEN.set(outer);
}
pub fn enter_transform(what: &'static str) -> u32 {
    let outer = OPEN.get();
    OPEN.set(with(|t| t.push(outer, what.into(), true)));
    outer
}
/// The open scopes, then the transform if any, then those of `id` beneath `beneath` (all, if it is
/// not beneath that).
pub fn moved(id: u32, beneath: u32, transform: Option<&'static str>) -> u32 {
    let to = OPEN.get();
    if to == beneath && transform.is_none() {
        return id;
    }
    with(|t| {
        let key = (id, beneath, to, transform);
        match t.moves.get(&key) {
            Some(id) => *id,
            None => {
                let new = t.moved(id, beneath, transform, to);
                t.moves.insert(key, new);
                new
            }
        }
    })
}
/// The scopes of `id` beneath one of this name.
pub fn beneath(id: u32, name: &'static str) -> u32 {
    with(|t| t.beneath(id, name))
}
/// The names, joined by slashes.
pub fn text(id: u32) -> String {
    with(|t| t.text(id))
}

/// While it lives no scope is open: a function's trace is kept, so its names do not depend on who called it first.
pub struct OutsideScopes(u32);
impl OutsideScopes {
    pub fn begin() -> OutsideScopes {
        OutsideScopes(OPEN.replace(0))
    }
}
impl Drop for OutsideScopes {
    fn drop(&mut self) {
        OPEN.set(self.0);
    }
}
