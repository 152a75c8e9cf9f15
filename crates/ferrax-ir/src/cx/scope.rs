//! The scope of user code on this thread: the current trace, named axes, the source line.
//!
//! INVARIANT: every scope that is entered is left again, on return and on unwinding alike.
//!
//! ```
//! use ferrax_ir::cx::AxisKind;
//! let before = ferrax_ir::cx::axes().len();
//! ferrax_ir::cx::with_axis(Some(&"i".into()), 4, AxisKind::Lanes, || assert_eq!(ferrax_ir::cx::axis_size("i").ok(), Some(4)));
//! assert_eq!(ferrax_ir::cx::axes().len(), before);
//! ```
use super::Cx;
use crate::aval::Lit;
use crate::dtype::Dtype;
use crate::effects::Name;
use crate::error::{Error, Res};
use crate::op::Op;
use crate::value::{Array, Value, Values};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

thread_local! {
    static CURRENT: RefCell<Option<Rc<dyn Cx>>> = const { RefCell::new(None) };
    static LINE: Cell<u32> = const { Cell::new(0) };
}
static ROOT: OnceLock<fn() -> Rc<dyn Cx>> = OnceLock::new();

/// Names the function that makes the evaluating trace. Called once per process; each thread makes
/// its own root from it.
pub fn install_root(f: fn() -> Rc<dyn Cx>) {
    ROOT.get_or_init(|| f);
}
thread_local! { static ROOTED: OnceCell<Rc<dyn Cx>> = const { OnceCell::new() } }
/// The trace that user code on this thread runs under.
pub fn current() -> Rc<dyn Cx> {
    CURRENT.with(|c| c.borrow().clone()).unwrap_or_else(eval_root)
}
/// The root of this thread: the trace that evaluates eagerly.
pub fn eval_root() -> Rc<dyn Cx> {
    ROOTED.with(|r| r.get_or_init(root).clone())
}
fn root() -> Rc<dyn Cx> {
    match ROOT.get() {
        Some(f) => f(),
        None => panic!("no evaluator is installed: call ferrax_ir::cx::install_root first"),
    }
}
/// Whether user code on this thread is not being traced.
pub fn at_root() -> bool {
    CURRENT.with(|c| match &*c.borrow() {
        None => true,
        Some(c) => ROOTED.with(|r| r.get().is_some_and(|r| Rc::ptr_eq(r, c))),
    })
}
/// Runs `f` with `cx` current, and restores on return and on unwinding alike.
pub fn enter<T>(cx: Rc<dyn Cx>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Rc<dyn Cx>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let mine = CURRENT.with(|c| std::mem::replace(&mut *c.borrow_mut(), self.0.take()));
            drop(mine);
        }
    }
    let _restore = Restore(CURRENT.with(|c| c.borrow_mut().replace(cx)));
    f()
}
/// The trace that was current before [`replace_current`].
pub struct Saved(Option<Rc<dyn Cx>>);
/// Makes `cx` current until [`restore_current`]: for blocks of a host language, which are not
/// closures.
pub fn replace_current(cx: Rc<dyn Cx>) -> Saved {
    Saved(CURRENT.with(|c| c.borrow_mut().replace(cx)))
}
pub fn restore_current(s: Saved) {
    let mine = CURRENT.with(|c| std::mem::replace(&mut *c.borrow_mut(), s.0));
    drop(mine);
}
/// The meaning of the positions along a named axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum AxisKind {
    /// The lanes of a `vmap`.
    #[default]
    Lanes,
    /// The devices of a `pmap`: each has a copy of an unmapped value, and a cotangent of its own
    /// for it.
    Devices,
    /// The parts of a `shard_map` that checks types: they say which values vary over the axis.
    Manual,
    /// No positions: a mesh axis that cuts the lanes of an enclosing `vmap`, over which no collective runs.
    CutsLanes,
}
impl AxisKind {
    pub fn is_manual(self) -> bool {
        self == AxisKind::Manual
    }
}
/// A named axis in scope.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedAxis {
    pub name: Name,
    pub size: usize,
    pub kind: AxisKind,
}
thread_local! { static AXES: RefCell<Vec<NamedAxis>> = const { RefCell::new(vec![]) } }
/// Named axes put in scope, until it is dropped.
#[must_use]
pub struct Named(usize);
impl Drop for Named {
    fn drop(&mut self) {
        AXES.with(|a| a.borrow_mut().truncate(self.0));
    }
}
/// Puts named axes in scope, the outermost first. This function alone decides which names user code
/// may use: `vmap` and `pmap` add theirs, and so does code that calls a user's rule after they have
/// returned (a bwd).
pub fn name_axes(new: impl IntoIterator<Item = NamedAxis>) -> Named {
    AXES.with(|a| {
        let mut a = a.borrow_mut();
        let n = a.len();
        a.extend(new);
        Named(n)
    })
}
/// Runs `f` where a named axis of size `n` is in scope.
pub fn with_axis<T>(name: Option<&Name>, n: usize, kind: AxisKind, f: impl FnOnce() -> T) -> T {
    let _named = name_axes(name.map(|name| NamedAxis { name: name.clone(), size: n, kind }));
    f()
}
/// Runs `f`, whose values are lanes that mesh axes of these names cut.
pub fn with_cut_lanes<T>(names: &[Name], f: impl FnOnce() -> T) -> T {
    let _named = name_axes(names.iter().map(|n| NamedAxis { name: n.clone(), size: 0, kind: AxisKind::CutsLanes }));
    f()
}
/// Whether a mesh axis cuts the lanes of an enclosing `vmap`.
pub fn cuts_lanes(name: &Name) -> bool {
    AXES.with(|a| a.borrow().iter().any(|a| a.kind == AxisKind::CutsLanes && a.name == *name))
}
/// The named axes in scope, outermost first: traces depend on them.
pub fn axes() -> Vec<NamedAxis> {
    AXES.with(|a| a.borrow().clone())
}
pub fn no_axes() -> bool {
    AXES.with(|a| a.borrow().is_empty())
}
/// The size of a named axis, or the error that none is in scope.
pub fn axis_size(name: &str) -> Res<usize> {
    axis_named(name).map(|a| a.size).ok_or_else(|| crate::ops::collective::unbound(name))
}
/// The innermost axis of a name.
pub fn axis_named(name: &str) -> Option<NamedAxis> {
    AXES.with(|a| a.borrow().iter().rev().find(|a| *a.name == *name && a.kind != AxisKind::CutsLanes).cloned())
}
/// Whether types say which values vary over the axis of a name.
pub fn is_manual(name: &str) -> bool {
    axis_named(name).is_some_and(|a| a.kind.is_manual() && !(a.size == 1 && crate::settings::without_ones()))
}
/// The entry for user code: checks for leaked tracers, then passes the op to the current trace.
pub fn bind(op: &Op, x: &[Value]) -> Res<Values> {
    for v in x {
        v.check_alive()?;
    }
    current().bind(op, x)
}
/// Access to the user's source lines, which the host language keeps in a table. Lines are indices
/// of it; 0 is unknown.
pub struct Lines {
    /// The line that runs now.
    pub here: fn() -> u32,
    /// `model.py:12:8 (loss)`
    pub text: fn(u32) -> Option<String>,
    /// The names that the user gave to the enclosing scopes, and the transforms around it:
    /// `jvp(encoder)/attention`.
    pub names: fn(u32) -> String,
    /// Absent where lines are in no scopes.
    pub scopes: Option<Scopes>,
}
/// The scopes of lines: stacks of names that the user gave and of transforms, numbers in a table that the host language keeps; 0 is empty.
pub struct Scopes {
    /// The stack that is open now.
    pub open: fn() -> u32,
    /// Opens a transform on it; returns the previously open one, for `leave`.
    pub enter: fn(&'static str) -> u32,
    pub leave: fn(u32),
    /// The line whose scopes are those that are open now, then the transform if any, then its own beneath the given stack.
    pub moved: fn(line: u32, beneath: u32, transform: Option<&'static str>) -> u32,
    /// The line whose scopes are those of the given one beneath a scope of this name.
    pub named: fn(line: u32, name: &'static str) -> u32,
}
static LINES: OnceLock<Lines> = OnceLock::new();
pub fn install_lines(l: Lines) {
    LINES.get_or_init(|| l);
}
/// The line that an equation traced now comes from: that of the equation being transformed, else where user code is.
pub fn line() -> u32 {
    match LINE.with(Cell::get) {
        0 => LINES.get().map_or(0, |l| (l.here)()),
        line => line,
    }
}
/// The text of a line.
pub fn place(line: u32) -> Option<String> {
    if line == 0 { None } else { LINES.get().and_then(|l| (l.text)(line)) }
}
/// The names around a line.
pub fn names(line: u32) -> String {
    LINES.get().map_or(String::new(), |l| (l.names)(line))
}
fn scopes() -> Option<&'static Scopes> {
    LINES.get().and_then(|l| l.scopes.as_ref())
}
/// A transform among the open scopes, until it is dropped.
#[must_use]
pub struct Transforming(Option<u32>);
impl Drop for Transforming {
    fn drop(&mut self) {
        if let (Some(before), Some(s)) = (self.0, scopes()) {
            (s.leave)(before);
        }
    }
}
/// Opens a transform among the scopes. Eager evaluation needs no lines, so it opens none.
pub fn transforming(what: &'static str) -> Transforming {
    Transforming(if current().stages() { scopes().map(|s| (s.enter)(what)) } else { None })
}
/// The scopes that are open now.
pub fn open_scopes() -> u32 {
    scopes().map_or(0, |s| (s.open)())
}
/// The line of an equation that is emitted once more, here: [`Scopes::moved`].
pub fn moved(line: u32, beneath: u32, transform: Option<&'static str>) -> u32 {
    match scopes() {
        Some(s) if line != 0 => (s.moved)(line, beneath, transform),
        _ => line,
    }
}
/// The line of an equation of a part that has a name: [`Scopes::named`].
pub fn named(line: u32, name: &'static str) -> u32 {
    match scopes() {
        Some(s) if line != 0 => (s.named)(line, name),
        _ => line,
    }
}
/// While it lives, equations come from the lines it is set to: a transform keeps those of the program it transforms.
pub struct Line(u32);
impl Line {
    /// The line as it is.
    pub fn kept() -> Line {
        Line(LINE.with(Cell::get))
    }
    /// Whether an equation is being transformed.
    pub fn is_set() -> bool {
        LINE.with(Cell::get) != 0
    }
    /// For a function that is traced separately: its equations have lines of their own, whereas a
    /// rule's equations have the line of the equation that it transforms.
    pub fn unset() -> Line {
        Line(LINE.with(|l| l.replace(0)))
    }
    /// To that of an equation; an unknown line changes nothing.
    #[inline]
    pub fn set(&self, line: u32) {
        LINE.with(|l| l.set(if line == 0 { self.0 } else { line }));
    }
    /// Adds the line where an equation was traced to an error of its transformation.
    pub fn blame(&self, e: Error) -> Error {
        match (e, place(LINE.with(Cell::get))) {
            (Error::Raised(k, m), Some(at)) if !m.contains(TRACED_AT) => {
                Error::Raised(k, format!("{m}\n{TRACED_AT}{at}."))
            }
            (e, _) => e,
        }
    }
}
impl Drop for Line {
    fn drop(&mut self) {
        LINE.with(|l| l.set(self.0));
    }
}
const TRACED_AT: &str = "The operation was traced at ";

/// Decides which captured rank-0 arrays are written as literals. The frontend installs it, because only it can open an array without
/// waiting for it; `None` keeps the array a captured input.
pub type ToLit = fn(&Array) -> Option<Lit>;
static TO_LIT: OnceLock<ToLit> = OnceLock::new();
pub fn install_to_lit(f: ToLit) {
    TO_LIT.get_or_init(|| f);
}
pub fn to_lit(a: &Array) -> Option<Lit> {
    if a.0.aval.rank() > 0 || a.0.aval.tape > 0 || a.0.aval.dtype == Dtype::Float0 {
        return None;
    }
    TO_LIT.get().and_then(|f| f(a))
}
