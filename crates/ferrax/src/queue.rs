//! The queue of one device: jobs that were handed over run in order, on one thread of their own.
//!
//! INVARIANT: a job never waits for a job behind it. A host callback may call back into the library from within a job; whoever waits
//! on the queue's own thread therefore runs what is queued meanwhile ([`Queue::help`]).
//! A forked child has no threads: queues are keyed by process, and the child starts its own.
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// More than this many jobs in flight, and handing over waits: results that nobody has asked for hold memory.
const MAX_QUEUED: usize = 64;

/// How to block: the binding installs a way that releases its interpreter's lock meanwhile, which a queued callback may need.
pub type Block = fn(&mut (dyn FnMut() + Send));
static BLOCK: OnceLock<Block> = OnceLock::new();
pub fn install_block(f: Block) {
    BLOCK.get_or_init(|| f);
}
fn block(f: &mut (dyn FnMut() + Send)) {
    match BLOCK.get() {
        Some(b) => b(f),
        None => f(),
    }
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs taken but not finished.
    running: usize,
    /// The process whose thread serves the queue.
    owner: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Default)]
pub struct Queue(Arc<Shared>);

thread_local! { static SERVING: Cell<bool> = const { Cell::new(false) } }

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Whether the calling thread serves a queue: it must not hand over and wait.
    pub fn serving() -> bool {
        SERVING.with(Cell::get)
    }
    /// Runs `job` after all that was handed over before it.
    pub fn push(&self, job: impl FnOnce() + Send + 'static) {
        let pid = std::process::id();
        let mut s = self.lock();
        if s.owner != pid {
            // first use, or a forked child: what the parent had queued is the parent's
            *s = State { owner: pid, ..State::default() };
            let queue = self.clone();
            let _ = std::thread::Builder::new().name("ferrax-device".into()).spawn(move || queue.serve());
        }
        while s.jobs.len() >= MAX_QUEUED && !Queue::serving() {
            drop(s);
            block(&mut || {
                let mut s = self.lock();
                while s.jobs.len() >= MAX_QUEUED {
                    s = self.0.changed.wait(s).unwrap_or_else(|e| e.into_inner());
                }
            });
            s = self.lock();
        }
        s.jobs.push_back(Box::new(job));
        self.0.changed.notify_all();
    }
    fn serve(&self) {
        SERVING.with(|s| s.set(true));
        loop {
            let mut s = self.lock();
            while s.jobs.is_empty() {
                s = self.0.changed.wait(s).unwrap_or_else(|e| e.into_inner());
            }
            drop(s);
            self.help();
        }
    }
    /// Runs one queued job, if there is one.
    pub fn help(&self) -> bool {
        let mut s = self.lock();
        let Some(job) = s.jobs.pop_front() else { return false };
        s.running += 1;
        drop(s);
        job();
        self.lock().running -= 1;
        self.0.changed.notify_all();
        true
    }
    pub fn is_idle(&self) -> bool {
        let s = self.lock();
        s.owner != std::process::id() || (s.jobs.is_empty() && s.running == 0)
    }
    /// Waits until nothing is queued or running; calls `tick` every 50 ms, whose error ends the waiting.
    pub fn drain<E>(&self, mut tick: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        while !self.is_idle() {
            let s = self.lock();
            if !s.jobs.is_empty() || s.running > 0 {
                drop(self.0.changed.wait_timeout(s, Duration::from_millis(50)));
            }
            tick()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_in_order() {
        let (q, seen) = (Queue::default(), Arc::new(Mutex::new(vec![])));
        for i in 0..1000 {
            let seen = seen.clone();
            q.push(move || seen.lock().expect("no poison").push(i));
        }
        q.drain(|| Ok::<(), ()>(())).expect("ticks never fail");
        assert_eq!(*seen.lock().expect("no poison"), (0..1000).collect::<Vec<_>>());
    }
}
