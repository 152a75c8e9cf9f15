//! `Buffer`: memory on a device, reference counted; ready, pending or poisoned.
//!
//! INVARIANT: a buffer that is ready never changes, unless its only holder hands it over (donation). Waiting never holds a lock that
//! the filler needs.
use crate::error::{Error, Res};
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

/// Memory of one backend.
pub trait Memory: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes, where the host can read them in place.
    fn host(&self) -> Option<&[u8]>;
}

#[derive(Clone)]
pub struct Buffer(Arc<Inner>);

struct Inner {
    bytes: usize,
    state: State,
}
enum State {
    /// Born ready, as most are.
    Ready(Box<dyn Memory>),
    /// Born pending: filled once.
    Later(OnceLock<Res<Box<dyn Memory>>>, Mutex<()>, Condvar),
}

impl Buffer {
    pub fn ready(m: impl Memory) -> Buffer {
        Buffer::from_box(Box::new(m))
    }
    pub fn from_box(m: Box<dyn Memory>) -> Buffer {
        Buffer(Arc::new(Inner { bytes: m.len(), state: State::Ready(m) }))
    }
    /// A buffer that someone will [`Buffer::fill`].
    pub fn pending(bytes: usize) -> Buffer {
        Buffer(Arc::new(Inner { bytes, state: State::Later(OnceLock::new(), Mutex::default(), Condvar::new()) }))
    }
    /// Makes a pending buffer ready, or poisons it. Only the first call counts.
    pub fn fill(&self, m: Res<Box<dyn Memory>>) {
        if let State::Later(state, lock, cv) = &self.0.state {
            let _ = state.set(m);
            drop(lock.lock().unwrap_or_else(|e| e.into_inner()));
            cv.notify_all();
        }
    }
    /// Makes a pending buffer ready with what another one holds: the memory itself where nobody else holds it, else a view of it.
    pub fn fill_from(&self, b: Buffer) {
        match b.into_memory() {
            Ok(m) => self.fill(Ok(m)),
            Err(b) => self.fill(match b.try_memory() {
                Some(Err(e)) => Err(e),
                _ => Ok(Box::new(Shared(b))),
            }),
        }
    }
    pub fn is_ready(&self) -> bool {
        match &self.0.state {
            State::Ready(_) => true,
            State::Later(state, ..) => state.get().is_some(),
        }
    }
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }
    /// The memory if it is ready; an error if it is poisoned; `None` while pending.
    pub fn try_memory(&self) -> Option<Res<&dyn Memory>> {
        match &self.0.state {
            State::Ready(m) => Some(Ok(&**m)),
            State::Later(state, ..) => state.get().map(|r| r.as_ref().map(|m| &**m).map_err(Error::clone)),
        }
    }
    /// Waits until ready. `tick` is called every 50 ms; its error ends the waiting.
    pub fn wait<E: From<Error>>(&self, mut tick: impl FnMut() -> Result<(), E>) -> Result<&dyn Memory, E> {
        loop {
            if let Some(m) = self.try_memory() {
                return Ok(m?);
            }
            let State::Later(_, lock, cv) = &self.0.state else {
                unreachable!("a buffer that is not ready was born pending")
            };
            let guard = lock.lock().unwrap_or_else(|e| e.into_inner());
            if self.is_ready() {
                continue;
            }
            let _ = cv.wait_timeout(guard, Duration::from_millis(50));
            tick()?;
        }
    }
    /// Waits without looking up.
    pub fn memory(&self) -> Res<&dyn Memory> {
        self.wait(|| Ok(()))
    }
    /// The memory itself, if this is its only holder and it is ready; else the buffer back.
    pub fn into_memory(self) -> Result<Box<dyn Memory>, Buffer> {
        if !matches!(self.try_memory(), Some(Ok(_))) {
            return Err(self);
        }
        match Arc::try_unwrap(self.0) {
            Ok(inner) => match inner.state {
                State::Ready(m) => Ok(m),
                State::Later(state, ..) => match state.into_inner() {
                    Some(Ok(m)) => Ok(m),
                    _ => unreachable!("it was ready"),
                },
            },
            Err(a) => Err(Buffer(a)),
        }
    }
    pub fn same(&self, o: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &o.0)
    }
}
/// Memory that another buffer owns.
struct Shared(Buffer);
impl Memory for Shared {
    fn as_any(&self) -> &dyn Any {
        match self.0.try_memory() {
            Some(Ok(m)) => m.as_any(),
            _ => self,
        }
    }
    fn len(&self) -> usize {
        self.0.bytes()
    }
    fn host(&self) -> Option<&[u8]> {
        self.0.try_memory()?.ok()?.host()
    }
}
impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Buffer({} bytes, {})", self.0.bytes, if self.is_ready() { "ready" } else { "pending" })
    }
}
