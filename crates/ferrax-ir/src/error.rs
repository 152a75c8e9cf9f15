//! Errors of tracing and typing. A kind is one of JAX's (or Python's) exception classes, and the message's first line
//! is in JAX's words; the binding raises the class of that name and adds the user's line.
use std::any::Any;
use std::fmt;

pub type Res<T> = Result<T, Error>;

macro_rules! kinds {
    ($($Kind:ident $class:literal;)*) => {
        /// The class to raise.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ErrorKind { $($Kind),* }
        impl ErrorKind {
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$Kind),*];
            /// The exception's class, as `ferrax.errors` or Python's builtins name it.
            pub fn class(self) -> &'static str { match self { $(ErrorKind::$Kind => $class),* } }
        }
    }
}
kinds! {
    Type "TypeError";
    Value "ValueError";
    Index "IndexError";
    Name "NameError";
    Key "KeyError";
    Overflow "OverflowError";
    Runtime "RuntimeError";
    Memory "MemoryError";
    NotImplemented "NotImplementedError";
    Concretization "ConcretizationTypeError";
    TracerBool "TracerBoolConversionError";
    TracerArray "TracerArrayConversionError";
    TracerInteger "TracerIntegerConversionError";
    NonConcreteBooleanIndex "NonConcreteBooleanIndexError";
    UnexpectedTracer "UnexpectedTracerError";
    TypePromotion "TypePromotionError";
    JaxprType "JaxprTypeError";
    KeyReuse "KeyReuseError";
    ShardingType "ShardingTypeError";
    Leak "Exception";
}

pub enum Error {
    Raised(ErrorKind, String),
    /// Another language's exception, passed through unchanged.
    Host(Box<dyn Any + Send>),
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::Raised(kind, message.into())
    }
    /// That `name` was called with a float0, `at` (" at position 1", or nothing where it takes one operand).
    pub fn float0(name: &str, at: &str) -> Error {
        let array = if at.is_empty() { " array" } else { at };
        Error::type_error(format!(
            "Called {name} with a float0{array}. float0s do not support any operations by design, because they are not compatible with \
             non-trivial vector spaces. No implicit dtype conversion is done. You can use np.zeros_like(arr, dtype=np.float) to cast a float0 \
             array to a regular zeros array. \nIf you didn't expect to get a float0 you might have accidentally taken a gradient with respect to \
             an integer argument."
        ))
    }
    pub fn type_error(m: impl Into<String>) -> Error {
        Error::new(ErrorKind::Type, m)
    }
    pub fn value(m: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, m)
    }
    pub fn not_implemented(m: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotImplemented, m)
    }
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Error::Raised(k, _) => Some(*k),
            Error::Host(_) => None,
        }
    }
    pub fn message(&self) -> &str {
        match self {
            Error::Raised(_, m) => m,
            Error::Host(_) => "an exception of the host language",
        }
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.message())
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.kind().map_or("Host", ErrorKind::class), self.message())
    }
}
impl std::error::Error for Error {}
impl From<ferrax_kernel::Error> for Error {
    fn from(e: ferrax_kernel::Error) -> Error {
        match e {
            ferrax_kernel::Error::TooLarge(m) => Error::new(ErrorKind::Value, m),
            ferrax_kernel::Error::OutOfMemory(m) => Error::new(ErrorKind::Memory, m),
            ferrax_kernel::Error::Host(e) => Error::Host(Box::new(e)),
            e => {
                if let ferrax_kernel::Error::Invalid(_) = e {
                    ferrax_kernel::fault::report(&e.to_string());
                }
                Error::new(ErrorKind::Runtime, e.to_string())
            }
        }
    }
}

pub fn type_err<T>(m: impl Into<String>) -> Res<T> {
    Err(Error::type_error(m))
}
pub fn value_err<T>(m: impl Into<String>) -> Res<T> {
    Err(Error::value(m))
}
/// The transpose rule of something that is not linear in the operands that are.
pub fn not_linear<T>(name: &str) -> Res<T> {
    Err(Error::not_implemented(format!(
        "Transpose rule (for reverse-mode differentiation) for '{name}' not implemented"
    )))
}
/// The jvp rule of something that has no derivative.
pub fn no_jvp<T>(name: &str) -> Res<T> {
    Err(Error::not_implemented(format!("Differentiation rule for '{name}' not implemented")))
}

/// An error for operands of several dtypes, given by their long names. If numpy has the function
/// under a name, the error names it, because it converts them.
pub fn mixed_dtypes<T>(name: &str, dtypes: &[&str]) -> Res<T> {
    let numpy = match name {
        "add" | "concatenate" | "nextafter" => name,
        "sub" => "subtract",
        "mul" => "multiply",
        "div" => "divide",
        "max" => "maximum",
        "min" => "minimum",
        "eq" => "equal",
        "ne" => "not_equal",
        "atan2" => "arctan2",
        "shift_left" => "left_shift",
        "shift_right_logical" | "shift_right_arithmetic" => "right_shift",
        "select" => "where",
        _ => "",
    };
    let tip = match numpy {
        "" => String::new(),
        f => format!(" (Tip: jnp.{f} is a similar function that does automatic type promotion on inputs)."),
    };
    type_err(format!("lax.{name} requires arguments to have the same dtypes, got {}.{tip}", dtypes.join(", ")))
}
