//! Errors below the waist.
use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub type Res<T> = Result<T, Error>;

/// An error of a backend or a plan. `Clone`, because one failure may poison many buffers.
#[derive(Clone)]
pub enum Error {
    /// A shape whose byte count overflows.
    TooLarge(String),
    /// The device could not give the memory.
    OutOfMemory(String),
    /// The device lacks something the plan needs (a dtype, a limit).
    Unsupported(String),
    /// The device failed or vanished.
    Device(String),
    /// A buffer that was donated or deleted.
    Deleted(String),
    /// A cancelled run.
    Cancelled,
    /// A host callback failed; the payload is its own error.
    Host(Arc<dyn Any + Send + Sync>),
    /// A plan that breaks its own rules: a bug of the layer above.
    Invalid(String),
}
impl From<ferrax_runtime::Stop> for Error {
    fn from(s: ferrax_runtime::Stop) -> Error {
        use ferrax_runtime::Stop;
        Error::Device(match s {
            Stop::Cancelled => return Error::Cancelled,
            Stop::Forked => {
                "the parent process was computing this when it was forked, and the child cannot do it again".into()
            }
            Stop::NoThread => {
                "the system provides no thread for this device of a pmap: raise the limit of processes".into()
            }
            Stop::Circular => {
                "a callback waits for a result that needs the very run the callback is part of: it would wait forever"
                    .into()
            }
            Stop::Panicked => {
                crate::fault::report("a kernel panicked");
                "a kernel panicked: this is a bug in ferrax".into()
            }
        })
    }
}
/// A vector with room for `n` elements. Memory whose size depends on data is allocated here, since
/// a failing allocation elsewhere ends the process.
///
/// # Errors
/// `OutOfMemory`, with the number of bytes.
pub fn room<T>(n: usize) -> Res<Vec<T>> {
    let mut v = Vec::new();
    let bytes = n.saturating_mul(size_of::<T>());
    match v.try_reserve_exact(n) {
        Ok(()) => Ok(v),
        Err(_) => Err(Error::OutOfMemory(format!("out of memory while allocating {bytes} bytes"))),
    }
}
/// `n` times `x`.
///
/// # Errors
/// As [`room`].
pub fn filled<T: Clone>(n: usize, x: T) -> Res<Vec<T>> {
    let mut v = room(n)?;
    v.resize(n, x);
    Ok(v)
}
/// A copy of `x`.
///
/// # Errors
/// As [`room`].
pub fn copied<T: Copy>(x: &[T]) -> Res<Vec<T>> {
    let mut v = room(x.len())?;
    v.extend_from_slice(x);
    Ok(v)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::TooLarge(s)
            | Error::OutOfMemory(s)
            | Error::Unsupported(s)
            | Error::Device(s)
            | Error::Deleted(s) => f.write_str(s),
            Error::Cancelled => f.write_str("the run was cancelled"),
            Error::Host(_) => f.write_str("a host callback failed"),
            Error::Invalid(s) => write!(f, "invalid plan: {s}"),
        }
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_holds_is_an_error() {
        let e = room::<u64>(usize::MAX / 32).unwrap_err();
        assert!(matches!(&e, Error::OutOfMemory(s) if s.contains(&(usize::MAX / 32 * 8).to_string())), "{e}");
        assert!(room::<u64>(usize::MAX).is_err());
        assert_eq!(copied(&[1, 2, 3]).unwrap(), [1, 2, 3]);
        assert_eq!(filled(2, 7).unwrap(), [7, 7]);
    }
}
