//! A `Value` is a literal, an `Array` or a `Tracer`.
//!
//! INVARIANT: this crate never looks inside an `Array`. It knows the aval and holds the rest as an opaque payload, which only the
//! executor that made it opens. So IR and transforms depend on no backend, and a captured array is shared, never copied.
//! INVARIANT: `Value` is `Send + Sync`. A tracer holds its trace's tag, never the trace.
use crate::aval::{Aval, Lit};
use crate::cut::TypedCut;
use crate::dtype::Dtype;
use crate::effects::Name;
use crate::error::{Error, ErrorKind, Res};
use crate::layout::CutAxes;
use crate::support::Support;
use crate::vary::Vary;
use ferrax_kernel::Scalar;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Operands and results: one or two in nearly every primitive.
pub type Values = SmallVec<[Value; 2]>;

/// The data that an executor attaches to an array.
pub trait Payload: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// The element of an array that has one; waits for a pending result. Serves `if x > 0`, nothing else.
    fn item(&self, aval: &Aval) -> Res<Lit>;
}

pub struct Handle<P: ?Sized> {
    pub aval: Aval,
    pub data: P,
}

#[derive(Clone)]
pub struct Array(pub Arc<Handle<dyn Payload>>);

impl Array {
    pub fn new<P: Payload + 'static>(aval: Aval, data: P) -> Array {
        Array(Arc::new(Handle { aval, data }))
    }
    pub fn aval(&self) -> &Aval {
        &self.0.aval
    }
    pub fn data<P: 'static>(&self) -> Option<&P> {
        self.0.data.as_any().downcast_ref()
    }
}

/// One per trace; shared by all its tracers. `alive` ends when the trace closes.
pub struct Tag {
    pub alive: AtomicBool,
    /// Which transform: `jit`, `grad`, `vmap`, ..
    pub what: &'static str,
    /// The function that is transformed, where the host language named it: `loss at model.py:12`.
    pub of: OnceLock<Arc<str>>,
    /// The mesh axes that cut the lanes of a `vmap`, where the user named any.
    pub spmd: OnceLock<Vec<Name>>,
    /// The mesh axes that types say cut the lanes of a `vmap`.
    pub lanes: OnceLock<CutAxes>,
    /// The tracers made, while leaks are looked for.
    made: Option<Mutex<Vec<Weak<TracerData>>>>,
}

impl Tag {
    pub fn new(what: &'static str) -> Arc<Tag> {
        let made = crate::checks::leaks().then(Mutex::default);
        Arc::new(Tag {
            alive: AtomicBool::new(true),
            what,
            of: OnceLock::new(),
            spmd: OnceLock::new(),
            lanes: OnceLock::new(),
            made,
        })
    }
    /// Tracers that are still held, if the trace keeps track of them.
    pub fn left(&self) -> Vec<Value> {
        let Some(made) = &self.made else { return vec![] };
        let made = made.lock().unwrap_or_else(|e| e.into_inner());
        made.iter().filter_map(Weak::upgrade).map(|t| Value::Tracer(Tracer(t))).collect()
    }
    /// JAX's names of the trace class and the tracer class.
    fn classes(&self) -> (&'static str, &'static str) {
        match self.what {
            "vmap" => ("BatchTrace", "BatchTracer"),
            "grad" => ("LinearizeTrace", "LinearizeTracer"),
            "jvp" => ("JVPTrace", "JVPTracer"),
            _ => ("DynamicJaxprTrace", "DynamicJaxprTracer"),
        }
    }
    /// The error for tracers that outlived their trace.
    pub fn leak(&self, left: &[Value]) -> Error {
        let of = self.of.get().map_or(String::new(), |of| {
            format!("\nThe error occurred while tracing the function {}.", of.replacen(" traced for ", " for ", 1))
        });
        let mut m = format!("Leaked trace {}. Leaked tracer(s):\n", self.classes().0);
        for v in left {
            let class = self.classes().1;
            let made = v.made_at().map_or(String::new(), |at| format!("\nThe value was computed at {at}."));
            m += &format!("\n{class} of type {}{of}{made}\n", v.aval().long());
            if let Some((id, lines)) = crate::checks::holders(v) {
                let here = || crate::cx::place(crate::cx::line());
                let at = v.made_at().or_else(|| self.of.get().map(|of| of.to_string())).or_else(here);
                let at = at.unwrap_or_default();
                m += &format!("\nThis {class} with object id {id} was created on line:\n  {at}\n");
                m += &lines.replace("<tracer>", &format!("<{class} {id}>"));
            }
        }
        m += "\nhelp: return the value from the transformed function instead of storing it outside";
        Error::new(ErrorKind::Leak, m)
    }
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }
}

pub enum TracerNode {
    /// Stage, Record: a variable of the program under construction, and the user's line that made it.
    Var(u32, u32),
    /// Jvp. INVARIANT: the tangent is never a symbolic zero; a value with a zero tangent is its primal.
    Dual { primal: Value, tangent: Value },
    /// Batch. `val` has the batch axis at `dim`; for a tape, `dim` counts within the element.
    Batched { val: Value, dim: usize },
    /// Support. A tangent: `val` where the support is, zero elsewhere.
    Within { val: Value, support: Support },
}

pub struct TracerData {
    pub tag: Arc<Tag>,
    pub aval: Aval,
    pub node: TracerNode,
}

#[derive(Clone)]
pub struct Tracer(pub Arc<TracerData>);

#[derive(Clone)]
pub enum Value {
    /// A rank-0 constant written in the program text.
    Lit(Lit),
    Array(Array),
    Tracer(Tracer),
}

impl Value {
    pub fn tracer(tag: &Arc<Tag>, aval: Aval, node: TracerNode) -> Value {
        let t = Arc::new(TracerData { tag: tag.clone(), aval, node });
        if let Some(made) = &tag.made {
            made.lock().unwrap_or_else(|e| e.into_inner()).push(Arc::downgrade(&t));
        }
        Value::Tracer(Tracer(t))
    }
    /// The user's line that made a tracer, where it is known.
    fn made_at(&self) -> Option<String> {
        match self {
            Value::Tracer(t) => match t.0.node {
                TracerNode::Var(_, line) => crate::cx::place(line),
                _ => None,
            },
            _ => None,
        }
    }
    pub fn aval(&self) -> Aval {
        match self {
            Value::Lit(l) => l.aval(),
            Value::Array(a) => a.0.aval.clone(),
            Value::Tracer(t) => t.0.aval.clone(),
        }
    }
    /// Over which manual axes it varies.
    pub fn vary(&self) -> Vary {
        match self {
            Value::Tracer(t) => t.0.aval.vary,
            _ => Vary::NONE,
        }
    }
    /// The cut of its type, if it has one.
    pub fn cut(&self) -> TypedCut {
        match self {
            Value::Lit(_) => TypedCut::NONE,
            Value::Array(a) => a.0.aval.cut,
            Value::Tracer(t) => t.0.aval.cut,
        }
    }
    /// The shape; a literal's is `[]`.
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Lit(_) => &[],
            Value::Array(a) => &a.0.aval.shape,
            Value::Tracer(t) => &t.0.aval.shape,
        }
    }
    pub fn rank(&self) -> usize {
        self.shape().len()
    }
    pub fn dtype(&self) -> Dtype {
        match self {
            Value::Lit(l) => l.dtype(),
            Value::Array(a) => a.0.aval.dtype,
            Value::Tracer(t) => t.0.aval.dtype,
        }
    }
    pub fn weak(&self) -> bool {
        match self {
            Value::Lit(l) => l.weak,
            Value::Array(a) => a.0.aval.weak,
            Value::Tracer(t) => t.0.aval.weak,
        }
    }
    pub fn tape(&self) -> u8 {
        match self {
            Value::Lit(_) => 0,
            Value::Array(a) => a.0.aval.tape,
            Value::Tracer(t) => t.0.aval.tape,
        }
    }
    pub fn has_tangent(&self) -> bool {
        self.dtype().is_inexact()
    }
    /// Identity, for captured inputs and forwarded residuals. Literals have none.
    pub fn id(&self) -> Option<usize> {
        match self {
            Value::Lit(_) => None,
            Value::Array(a) => Some(Arc::as_ptr(&a.0) as *const u8 as usize),
            Value::Tracer(t) => Some(Arc::as_ptr(&t.0) as usize),
        }
    }
    /// The same array, or the same variable of one program.
    pub fn is_same(&self, o: &Value) -> bool {
        match (self, o) {
            (Value::Tracer(a), Value::Tracer(b)) => {
                let variable = match (&a.0.node, &b.0.node) {
                    (TracerNode::Var(i, _), TracerNode::Var(j, _)) => i == j && Arc::ptr_eq(&a.0.tag, &b.0.tag),
                    _ => false,
                };
                variable || Arc::ptr_eq(&a.0, &b.0)
            }
            (Value::Array(_), Value::Array(_)) => self.id() == o.id(),
            _ => false,
        }
    }
    pub fn is_tracer(&self) -> bool {
        matches!(self, Value::Tracer(_))
    }
    /// The number, where there is one: `if x > 0` works under jvp and grad, not under jit and vmap.
    pub fn item(&self) -> Res<Lit> {
        match self {
            Value::Lit(l) => Ok(*l),
            Value::Array(a) => a.0.data.item(&a.0.aval),
            Value::Tracer(_) => match self.concrete() {
                Some(v) => v.item(),
                None => Err(self.abstract_error(ErrorKind::Concretization)),
            },
        }
    }
    /// The literal or array behind any number of Jvp traces; `None` if the value is abstract.
    pub fn concrete(&self) -> Option<&Value> {
        let mut v = self;
        while let Value::Tracer(t) = v {
            match &t.0.node {
                TracerNode::Dual { primal, .. } => v = primal,
                TracerNode::Within { val, support } if support.is_everywhere() => v = val,
                _ => return None,
            }
        }
        Some(v)
    }
    /// Why a number cannot be had, in JAX's words for `kind`.
    pub fn abstract_error(&self, kind: ErrorKind) -> Error {
        let a = self.aval().long();
        let what = match self {
            Value::Tracer(t) => t.0.tag.what,
            _ => "eval",
        };
        let first = match kind {
            ErrorKind::TracerBool => {
                format!("Attempted boolean conversion of traced array with shape {a}.")
            }
            ErrorKind::TracerArray => {
                format!("The numpy.ndarray conversion method __array__() was called on traced array with shape {a}.")
            }
            ErrorKind::TracerInteger => format!("The __index__() method was called on traced array with shape {a}."),
            _ => format!(
                "Abstract tracer value encountered where concrete value is expected: traced array with shape {a}"
            ),
        };
        let why = match self.concrete() {
            None => "it has a type but no number until the call runs",
            Some(_) => "as a number it would lose its derivative",
        };
        Error::new(kind, format!("{first}\nThe value is traced by {what}: {why}."))
    }
    pub fn check_alive(&self) -> Res<()> {
        match self {
            Value::Tracer(t) if !t.0.tag.is_alive() => Err(self.leaked()),
            _ => Ok(()),
        }
    }
    pub fn leaked(&self) -> Error {
        let Value::Tracer(t) = self else { return Error::new(ErrorKind::UnexpectedTracer, "a value of another trace") };
        let what = t.0.tag.what;
        let of =
            t.0.tag
                .of
                .get()
                .map_or(String::new(), |of| format!("\nThe function being traced when the value leaked was {of}."));
        let made = self
            .made_at()
            .map_or(String::new(), |at| format!("\nThe leaked intermediate value was created on line {at}."));
        Error::new(
            ErrorKind::UnexpectedTracer,
            format!(
                "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference to an intermediate value with type {} wrapped in a {} to escape the scope of the transformation.\nJAX transformations require that functions explicitly return their outputs, and disallow saving intermediate values to global state.\nIts tracer belongs to {what}.{of}{made}\nTo catch the leak earlier, use the `checking_leaks` context manager: it finds where the value was stored.",
                t.0.aval.long(),
                t.0.tag.classes().1
            ),
        )
    }
}

impl From<Lit> for Value {
    fn from(l: Lit) -> Value {
        Value::Lit(l)
    }
}
impl From<Scalar> for Value {
    fn from(s: Scalar) -> Value {
        Value::Lit(Lit::new(s, false))
    }
}
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Lit(l) => write!(f, "{l:?}"),
            Value::Array(a) => write!(f, "Array({})", a.0.aval),
            Value::Tracer(t) => write!(f, "Tracer({}, {})", t.0.aval, t.0.tag.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn values_are_small_and_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<Value>();
        assert!(size_of::<Value>() <= 24, "{}", size_of::<Value>());
        assert_eq!(size_of::<Option<Value>>(), size_of::<Value>());
    }
}
