//! `Buffer`: memory on a device, reference counted; ready, pending or poisoned.
//!
//! INVARIANT: a ready buffer never changes, unless its only owner donates it. A pending buffer
//! names the run that will settle it. This module does not wait: the scheduler (`ferrax-runtime`)
//! does.
use crate::error::{Error, Res};
use once_cell::race::OnceBox;
use std::any::Any;
use std::sync::Arc;

/// The function that a wait calls from time to time. Its error ends the wait.
pub type Look<'a> = dyn FnMut() -> Res<()> + 'a;

/// Memory of one backend.
pub trait Memory: Any + Send + Sync {
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes, where the host can read them in place.
    fn host(&self) -> Option<&[u8]>;
    /// Whether the device has completed the work that produces the memory; does not wait.
    fn is_done(&self) -> bool {
        true
    }
    /// Waits for that work, and returns its error. Calls `look` at least every 50 ms.
    fn wait(&self, _look: &mut Look) -> Res<()> {
        Ok(())
    }
}

impl dyn Memory {
    /// The memory as the type of one backend, if it has that type.
    pub fn downcast_ref<M: Memory>(&self) -> Option<&M> {
        (self as &dyn Any).downcast_ref()
    }
}

/// How often a thread yields to one that is about to drop a promise, and how often it sleeps after that: the other may have been preempted.
const YIELDS: usize = 1000;
const SLEEPS: usize = 1000;

#[derive(Clone)]
pub struct Buffer(State);

#[derive(Clone)]
enum State {
    /// Ready from the start, as most are: count and memory are one allocation.
    Ready(Arc<dyn Memory>),
    /// Pending at first: its [`Promise`] is kept once.
    Later(Arc<Later>),
}
struct Later {
    bytes: usize,
    made: Arc<Made>,
    by: u64,
}
type Made = OnceBox<Res<Arc<dyn Memory>>>;

/// The handle by which a run settles a pending buffer; it does not count as an owner.
pub struct Promise(Arc<Made>);
impl Promise {
    /// Makes the buffer ready: from now on it shares the memory of `with`, which is ready or poisoned.
    pub fn fill(&self, with: Buffer) {
        match with.0 {
            State::Ready(m) => self.settle(Ok(m)),
            State::Later(l) => match l.made.get() {
                Some(r) => self.settle(r.clone()),
                None => self.settle(Err(Error::Invalid("a buffer was filled with one that is pending".into()))),
            },
        }
    }
    /// Every reader of the buffer gets this error.
    pub fn poison(&self, e: Error) {
        self.settle(Err(e));
    }
    /// Only the first call counts.
    fn settle(&self, r: Res<Arc<dyn Memory>>) {
        let _ = self.0.set(Box::new(r));
    }
}

impl Buffer {
    pub fn ready(m: impl Memory) -> Buffer {
        Buffer(State::Ready(Arc::new(m)))
    }
    /// Memory that is counted already.
    pub fn shared(m: Arc<dyn Memory>) -> Buffer {
        Buffer(State::Ready(m))
    }
    /// A buffer that the run named `by` will settle: by the promise.
    pub fn pending(bytes: usize, by: u64) -> (Buffer, Promise) {
        let made = Arc::new(OnceBox::new());
        (Buffer(State::Later(Arc::new(Later { bytes, made: made.clone(), by }))), Promise(made))
    }
    /// The run that a pending buffer waits for.
    pub fn awaited(&self) -> Option<u64> {
        match &self.0 {
            State::Later(l) if l.made.get().is_none() => Some(l.by),
            _ => None,
        }
    }
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            State::Ready(_) => true,
            State::Later(l) => l.made.get().is_some(),
        }
    }
    /// Whether it is ready, and its device has done the work that makes it.
    pub fn is_done(&self) -> bool {
        self.try_memory().is_some_and(|m| m.map_or(true, |m| m.is_done()))
    }
    pub fn bytes(&self) -> usize {
        match &self.0 {
            State::Ready(m) => m.len(),
            State::Later(l) => l.bytes,
        }
    }
    /// The memory if it is ready; an error if it is poisoned; `None` while pending.
    pub fn try_memory(&self) -> Option<Res<&dyn Memory>> {
        match &self.0 {
            State::Ready(m) => Some(Ok(&**m)),
            State::Later(l) => l.made.get().map(|r| r.as_ref().map(|m| &**m).map_err(Error::clone)),
        }
    }
    /// The memory to be taken over, if it is ready and this is its only holder.
    pub fn memory_mut(&mut self) -> Option<&mut dyn Memory> {
        if let State::Later(l) = &mut self.0 {
            let made = &Arc::get_mut(l)?.made;
            let settled = made.get()?.as_ref().ok()?.clone();
            // The run that has just settled it drops its promise next. (In a child of a fork no thread may be left that does.)
            let mut turns = 0;
            while Arc::strong_count(made) > 1 && turns < YIELDS + SLEEPS {
                match turns < YIELDS {
                    true => std::thread::yield_now(),
                    false => std::thread::sleep(std::time::Duration::from_micros(100)),
                }
                turns += 1;
            }
            self.0 = State::Ready(settled);
        }
        match &mut self.0 {
            State::Ready(m) => Arc::get_mut(m),
            State::Later(_) => None,
        }
    }
    /// The memory of a buffer that is known to be settled: an error if it is poisoned, or pending against the promise.
    pub fn memory(&self) -> Res<&dyn Memory> {
        self.try_memory().unwrap_or_else(|| Err(Error::Invalid("a buffer was read before it was made".into())))
    }
    pub fn same(&self, o: &Buffer) -> bool {
        match (&self.0, &o.0) {
            (State::Ready(a), State::Ready(b)) => std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)),
            (State::Later(a), State::Later(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Buffer({} bytes, {})", self.bytes(), if self.is_ready() { "ready" } else { "pending" })
    }
}
