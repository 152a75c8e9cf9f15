//! Errors about tracers, in JAX's words: which function was being traced, and which argument the value depends on.
//!
//! INVARIANT: looking up the origin of a value never fails; if it is unknown the message is
//! shorter.
use crate::error::named;
use ferrax_ir::cx::Cx;
use ferrax_ir::error::ErrorKind;
use ferrax_ir::value::{Tag, TracerNode, Value};
use pyo3::prelude::*;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// A function that is being traced on this thread.
pub struct Traced {
    function: Py<PyAny>,
    /// `jit`, `scan`, ..
    pub what: &'static str,
    /// The path of each leaf argument, `params['w'][0]`, computed when an error needs it.
    paths: OnceCell<Vec<String>>,
    lazy: Box<dyn Fn() -> Vec<String>>,
    tag: RefCell<Option<Weak<Tag>>>,
    /// The trace, while it runs.
    cx: RefCell<Option<Rc<dyn Cx>>>,
}
thread_local! { static OPEN: RefCell<Vec<Rc<Traced>>> = const { RefCell::new(vec![]) } }

/// Held while a function is traced.
pub struct Open;
impl Drop for Open {
    /// Errors about tracers that outlive their trace name its origin, when the function may be
    /// gone.
    fn drop(&mut self) {
        let done = OPEN.with(|o| o.borrow_mut().pop());
        let Some(done) = done else { return };
        drop(done.cx.take());
        let leaked = done.tag.borrow().as_ref().and_then(Weak::upgrade);
        if let Some(tag) = leaked {
            done.name(&tag);
        }
    }
}
impl Traced {
    /// `loss at model.py:12`
    fn described(&self) -> String {
        Python::attach(|py| crate::source::describe(self.function.bind(py)))
    }
    fn name(&self, tag: &Tag) {
        let _ = tag.of.set(format!("{} traced for {}", self.described(), self.what).into());
    }
}
pub fn open(function: &Bound<PyAny>, what: &'static str, lazy: impl Fn() -> Vec<String> + 'static) -> Open {
    let traced = Traced {
        function: function.clone().unbind(),
        what,
        paths: OnceCell::new(),
        lazy: Box::new(lazy),
        tag: RefCell::default(),
        cx: RefCell::default(),
    };
    OPEN.with(|o| o.borrow_mut().push(Rc::new(traced)));
    Open
}
/// Records the trace of the innermost open function: that of its arguments.
pub fn tagged(args: &[Value]) {
    if let Some(Value::Tracer(t)) = args.first() {
        OPEN.with(|o| {
            if let Some(open) = o.borrow().last() {
                *open.tag.borrow_mut() = Some(Arc::downgrade(&t.0.tag));
                *open.cx.borrow_mut() = Some(ferrax_ir::current());
                if ferrax_ir::checks::leaks() {
                    open.name(&t.0.tag);
                }
            }
        });
    }
}

/// The staged value beneath a value, through batches and duals, and the tag of its trace.
fn staging(v: &Value) -> Option<(&Arc<Tag>, &Value)> {
    match v {
        Value::Tracer(t) => match &t.0.node {
            TracerNode::Var(..) => Some((&t.0.tag, v)),
            TracerNode::Dual { primal, .. } => staging(primal),
            TracerNode::Batched { val, .. } | TracerNode::Within { val, .. } => staging(val),
        },
        _ => None,
    }
}

/// "\nThe error occurred while tracing the function f at x.py:3 for jit. ..", or nothing.
pub fn origin(_py: Python, v: &Value) -> String {
    let found = OPEN.with(|o| {
        let o = o.borrow();
        let (tag, staged) = staging(v)?;
        let open = o
            .iter()
            .rev()
            .find(|t| t.tag.borrow().as_ref().is_some_and(|w| w.ptr_eq(&Arc::downgrade(tag))))
            .or(o.last())?;
        let cx = open.cx.borrow().clone();
        Some((open.clone(), cx.map_or(vec![], |cx| cx.origins(staged)), staged.clone()))
    });
    let Some((open, inputs, staged)) = found else { return String::new() };
    let all = open.paths.get_or_init(&open.lazy);
    let paths: Vec<String> = inputs.iter().filter_map(|i| all.get(*i).cloned()).collect();
    let on = match &*paths {
        [] => String::new(),
        [one] => format!(
            " This concrete value was not available in Python because it depends on the value of the argument {one}."
        ),
        _ => format!(
            " This concrete value was not available in Python because it depends on the values of the arguments {}.",
            join(&paths)
        ),
    };
    let made = match &staged {
        Value::Tracer(t) => match t.0.node {
            TracerNode::Var(_, line) => ferrax_ir::cx::place(line),
            _ => None,
        },
        _ => None,
    };
    let made = made.map_or(String::new(), |at| format!("\nThe value was computed at {at}."));
    format!("\nThe error occurred while tracing the function {} for {}.{on}{made}", open.described(), open.what)
}
fn join(paths: &[String]) -> String {
    match paths {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => paths.concat(),
    }
}

/// The error of class `kind` for a value that has no number.
pub fn concretization(py: Python, v: &Value, kind: ErrorKind, note: &str) -> PyErr {
    if let Err(e) = v.check_alive() {
        return crate::error::to_py(py, e);
    }
    let long = v.aval().long();
    let first = match kind {
        ErrorKind::TracerBool => {
            format!("Attempted boolean conversion of traced array with shape {long}.")
        }
        ErrorKind::TracerArray => {
            format!("The numpy.ndarray conversion method __array__() was called on traced array with shape {long}")
        }
        ErrorKind::TracerInteger => format!("The __index__() method was called on traced array with shape {long}"),
        _ => format!(
            "Abstract tracer value encountered where concrete value is expected: traced array with shape {long}"
        ),
    };
    let note = if note.is_empty() { String::new() } else { format!("\n{note}") };
    let by = match v {
        Value::Tracer(t) => format!("\nThe value is followed by {}.", t.0.tag.what),
        _ => String::new(),
    };
    let remedy = match kind {
        _ if v.concrete().is_some() => {
            "\nhelp: its derivative would be lost; keep the value an array, or take ferrax.lax.stop_gradient of it"
        }
        ErrorKind::TracerBool => {
            "\nhelp: use ferrax.lax.cond or ferrax.numpy.where, or mark the argument static (static_argnums)"
        }
        ErrorKind::TracerArray => "\nhelp: use the function of the same name in ferrax.numpy, or ferrax.pure_callback",
        ErrorKind::TracerInteger => "\nhelp: index an array instead, or mark the argument static (static_argnums)",
        _ => "\nhelp: mark the argument static (static_argnums), or keep the value an array",
    };
    named(py, kind.class(), &format!("{first}{note}{}{by}{remedy}", origin(py, v)))
}
