//! The scheduler: enqueued runs, the threads that execute them, and the threads that wait.
//!
//! Every device is a *lane*. A lane is served by one thread at a time, which takes the oldest run that is ready ([`state`] says when one is).
//! A thread that runs host code ([`Runtime::host`]: a callback into Python, which may wait for anything) steps aside, and another
//! serves meanwhile; so host code does not stop other runs.
//!
//! ```
//! use ferrax_runtime::{RunFacts, Runtime, Stop, Token, Work};
//! struct Hello(std::sync::Mutex<Option<Stop>>);
//! impl Work for Hello {
//!     type Error = Stop;
//!     fn run(&self, _: &Token) -> Result<(), Stop> { Ok(()) }
//!     fn fail(&self, e: Stop) { *self.0.lock().unwrap() = Some(e) }
//!     fn again(&self) -> bool { true }
//! }
//! let runtime: &'static Runtime<Hello> = Box::leak(Box::default());
//! let id = runtime.next_id();
//! runtime.push(vec![(id, RunFacts::default(), Hello(Default::default()))]);
//! runtime.wait(&[id], &mut || Ok(())).unwrap();
//! ```
//!
//! INVARIANTS
//! - One lock guards all state. No work, no host code and no drop of a work runs under it, but [`Work::fail`], which takes no lock that
//!   a caller of this crate holds. It is the last lock of all: its holder takes no other of the library's.
//! - A wait ends when its run has ended, or with the error of its `tick`, which is called every 50 ms. Then it cancels the run that it waited
//!   for and nothing else ([`state::Schedule::cancel`]).
//! - Members of pmaps are pushed together, and run in the order of pushing on each lane: all lanes have one order, so no two pmaps wait for
//!   each other, whichever threads pushed them.
//! - Waiting inside a run for something that cannot end before that run returns [`Stop::Circular`] at once.
#![forbid(unsafe_code)]
#![allow(clippy::missing_const_for_thread_local)] // the model's have no such form
pub mod state;
mod sync;

use state::Schedule;
pub use state::{RunFacts, RunId, Token};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sync::{Clock, Condvar, Mutex, MutexGuard};

/// Why a run will not do its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Its waiter was interrupted, or the process ends.
    Cancelled,
    /// A thread of the parent process was at it when this process was forked, and it cannot be done again.
    Forked,
    /// The system gives no thread, and this needs one of its own.
    NoThread,
    /// It waits for itself.
    Circular,
    /// A defect of the library.
    Panicked,
}

/// The work of a run.
pub trait Work: Send + Sync + 'static {
    type Error: Clone + Send + From<Stop>;
    /// Does the work and hands its results to their readers, on success. Called once, unless [`Work::again`].
    fn run(&self, token: &Token) -> Result<(), Self::Error>;
    /// Gives the readers this error, unless they have been given something. Called under the runtime's lock: it must not block or call back.
    fn fail(&self, e: Self::Error);
    /// As `fail`, in a forked child: threads that met this one elsewhere are no more, and may have left locks of their own taken.
    fn lost(&self, e: Self::Error) {
        self.fail(e);
    }
    /// Whether it can be run though a thread that a fork has lost had begun it.
    fn again(&self) -> bool;
}

/// How many errors of runs with effects are kept for [`Runtime::barrier`].
const MAX_FAILURES: usize = 16;
/// More runs than this in flight on a lane, and [`Runtime::make_room`] waits: unread results hold memory.
const MAX_QUEUED: usize = 64;

struct Inner<W: Work> {
    state: Schedule<W>,
    /// Of runs with effects, for [`Runtime::barrier`].
    failures: Vec<W::Error>,
    /// Of runs whose pusher waits for them, for [`Runtime::awaited`].
    to_tell: Vec<(RunId, W::Error)>,
}

pub struct Runtime<W: Work> {
    inner: Mutex<Inner<W>>,
    /// A run became ready, or the runtime closes: wakes serving threads.
    work: Condvar,
    /// A run ended: wakes waiting threads.
    done: Condvar,
    ids: AtomicU64,
}

/// The lock of a runtime, held over a fork.
pub struct Frozen<W: Work>(MutexGuard<'static, Inner<W>>);

type Guard<'a, W> = MutexGuard<'a, Inner<W>>;
/// Looks up from a wait; its error ends it.
pub type Tick<'a, W> = &'a mut dyn FnMut() -> Result<(), <W as Work>::Error>;

/// Why a wait ended early.
enum Woken<W: Work> {
    Interrupted(W::Error),
    /// The run that the waiting thread is inside of was cancelled.
    Cancelled,
}

struct Current {
    id: RunId,
    token: Token,
}
sync::thread_local! {
    /// The run that this thread is inside of.
    static CURRENT: Cell<Option<Current>> = Cell::new(None);
    /// The lane that this thread serves, while it is not in host code.
    static SERVING: Cell<Option<usize>> = Cell::new(None);
}

/// The token of the run that the calling thread is inside of.
pub fn current() -> Option<Token> {
    CURRENT.with(|c| {
        let now = c.take();
        let token = now.as_ref().map(|n| n.token.clone());
        c.set(now);
        token
    })
}
fn current_id() -> Option<RunId> {
    CURRENT.with(|c| {
        let now = c.take();
        let id = now.as_ref().map(|n| n.id);
        c.set(now);
        id
    })
}

impl<W: Work> Default for Runtime<W> {
    fn default() -> Runtime<W> {
        let inner = Inner { state: Schedule::default(), failures: vec![], to_tell: vec![] };
        Runtime { inner: Mutex::new(inner), work: Condvar::new(), done: Condvar::new(), ids: AtomicU64::new(1) }
    }
}

impl<W: Work> Runtime<W> {
    fn lock(&self) -> Guard<'_, W> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// A name for a run that will be pushed.
    pub fn next_id(&self) -> RunId {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands runs over, all at once: the members of a pmap, or a single run. Where no thread is to be had the calling one does the work.
    pub fn push(&'static self, runs: Vec<(RunId, RunFacts, W)>) {
        let mut g = self.lock();
        let lanes: Vec<usize> = runs.iter().map(|r| r.1.lane).collect();
        for (id, facts, work) in runs {
            g.state.push(id, facts, Arc::new(work));
        }
        for lane in lanes {
            self.see_to(&mut g, lane);
        }
        drop(self.work_without_threads(g));
    }
    fn see_to_all(&'static self, g: &mut Guard<'_, W>) {
        (0..g.state.lanes.len()).for_each(|lane| self.see_to(g, lane));
    }
    /// Ensures that a thread serves a lane with a ready run.
    fn see_to(&'static self, g: &mut Guard<'_, W>, lane: usize) {
        if !g.state.is_ready(lane) {
            return;
        }
        let closed = g.state.closed;
        let l = g.state.lane(lane);
        if l.idle > 0 {
            self.work.notify_all();
        } else if l.serving == 0 {
            l.threadless = closed || !sync::spawn(format!("ferrax-device-{lane}"), move || self.serve(lane));
            l.serving += !l.threadless as usize;
        }
    }
    /// Executes ready runs of lanes without a thread, on the calling thread.
    fn work_without_threads<'a>(&'static self, mut g: Guard<'a, W>) -> Guard<'a, W> {
        for lane in 0..g.state.lanes.len() {
            while g.state.lanes[lane].threadless {
                let Some((id, work, token)) = g.state.take(lane) else { break };
                if g.state.is_member(id) {
                    work.fail(Stop::NoThread.into());
                    let gone = g.state.finish(id);
                    drop(g);
                    drop((work, gone));
                    g = self.lock();
                } else {
                    drop(g);
                    g = self.carry_out(id, work, token);
                }
                self.done.notify_all();
            }
        }
        g
    }
    /// The loop of a serving thread, until the end or until there is one thread too many.
    fn serve(&'static self, lane: usize) {
        SERVING.with(|s| s.set(Some(lane)));
        let mut g = self.lock();
        loop {
            if g.state.lane(lane).serving > 1 {
                break;
            }
            if let Some((id, work, token)) = g.state.take(lane) {
                drop(g);
                g = self.carry_out(id, work, token);
            } else if g.state.closed {
                break;
            } else {
                g.state.lane(lane).idle += 1;
                g = self.work.wait(g).unwrap_or_else(|e| e.into_inner());
                g.state.lane(lane).idle -= 1;
            }
        }
        g.state.lane(lane).serving -= 1;
        self.done.notify_all();
    }
    fn carry_out(&'static self, id: RunId, work: Arc<W>, token: Token) -> Guard<'static, W> {
        let outer = CURRENT.with(|c| c.replace(Some(Current { id, token: token.clone() })));
        let run = || if token.load(Ordering::Relaxed) { Err(Stop::Cancelled.into()) } else { work.run(&token) };
        let result = sync::caught(run).unwrap_or_else(|| Err(Stop::Panicked.into()));
        CURRENT.with(|c| c.set(outer));
        let failure = result.err();
        if let Some(e) = &failure {
            work.fail(e.clone());
        }
        let mut g = self.lock();
        let (awaited, effects) = (g.state.is_awaited(id), g.state.has_effects(id));
        let gone = g.state.finish(id);
        let mut dropped = failure;
        if token.load(Ordering::Relaxed) {
            // it is not needed
        } else if awaited {
            g.to_tell.extend(dropped.take().map(|e| (id, e)));
        } else if effects && g.failures.len() < MAX_FAILURES {
            g.failures.extend(dropped.take());
        }
        self.see_to_all(&mut g);
        self.done.notify_all();
        drop(g);
        drop((work, gone, dropped)); // memory goes back without the lock
        self.lock()
    }

    /// Runs host code: where the calling thread serves a lane, another serves it meanwhile.
    pub fn host<T>(&'static self, f: impl FnOnce() -> T) -> T {
        struct Back<W: Work>(&'static Runtime<W>, usize);
        impl<W: Work> Drop for Back<W> {
            fn drop(&mut self) {
                self.0.lock().state.lane(self.1).serving += 1;
                SERVING.with(|s| s.set(Some(self.1)));
            }
        }
        let Some(lane) = SERVING.with(|s| s.take()) else { return f() };
        let mut g = self.lock();
        g.state.lane(lane).serving -= 1;
        self.see_to(&mut g, lane);
        drop(g);
        let _back = Back(self, lane);
        f()
    }

    /// Waits until these runs have ended; runs that have ended, or never existed, are skipped.
    /// `tick` is called every 50 ms: its error ends the wait and cancels the awaited run.
    pub fn wait(&'static self, ids: &[RunId], tick: Tick<W>) -> Result<(), W::Error> {
        let mut g = self.lock();
        if !ids.iter().any(|i| g.state.pending(*i)) {
            return Ok(());
        }
        if let Some(me) = current_id()
            && ids.iter().any(|i| g.state.pending(*i) && g.state.depends(*i, me))
        {
            return Err(Stop::Circular.into());
        }
        ids.iter().for_each(|id| g.state.wait_begins(*id));
        let (mut g, end) = self.waited(g, ids, tick);
        ids.iter().for_each(|id| g.state.wait_ends(*id));
        if let Err(Woken::Interrupted(_)) = end {
            let gone = g.state.cancel(ids, |w| w.fail(Stop::Cancelled.into()));
            self.see_to_all(&mut g);
            self.done.notify_all();
            drop(g);
            drop(gone);
        }
        end.map_err(|e| match e {
            Woken::Interrupted(e) => e,
            Woken::Cancelled => Stop::Cancelled.into(),
        })
    }
    fn waited<'a>(
        &'static self,
        mut g: Guard<'a, W>,
        ids: &[RunId],
        tick: Tick<W>,
    ) -> (Guard<'a, W>, Result<(), Woken<W>>) {
        let mine = current();
        let mut clock = Clock::start();
        loop {
            self.see_to_all(&mut g);
            g = self.work_without_threads(g);
            if !ids.iter().any(|i| g.state.pending(*i)) {
                return (g, Ok(()));
            }
            if mine.as_ref().is_some_and(|t| t.load(Ordering::Relaxed)) {
                return (g, Err(Woken::Cancelled));
            }
            if !clock.due() {
                g = clock.wait(&self.done, g);
                continue;
            }
            drop(g);
            let awaited = tick();
            g = self.lock();
            if let Err(e) = awaited {
                return (g, Err(Woken::Interrupted(e)));
            }
        }
    }
    /// Waits until a run that the caller pushed with [`RunFacts::awaited`] has ended; its error is returned here, and no barrier repeats it.
    pub fn awaited(&'static self, id: RunId, tick: Tick<W>) -> Result<(), W::Error> {
        let waited = self.wait(&[id], tick);
        let mut g = self.lock();
        let failed = g.to_tell.iter().position(|f| f.0 == id).map(|i| g.to_tell.swap_remove(i).1);
        drop(g);
        waited.and(failed.map_or(Ok(()), Err))
    }
    /// Waits until a lane has room for another run. A thread inside a run never waits, since the
    /// awaited run may wait for it.
    pub fn make_room(&'static self, lane: usize, tick: Tick<W>) -> Result<(), W::Error> {
        let mut g = self.lock();
        let mut clock = Clock::start();
        while g.state.lane(lane).unfinished >= MAX_QUEUED && current_id().is_none() && !g.state.lane(lane).threadless {
            self.see_to(&mut g, lane);
            if !clock.due() {
                g = clock.wait(&self.done, g);
                continue;
            }
            drop(g);
            tick()?;
            g = self.lock();
        }
        Ok(())
    }
    /// Waits until the effects of all runs enqueued so far have happened. An error if one of them failed since the last time.
    pub fn barrier(&'static self, tick: Tick<W>) -> Result<(), W::Error> {
        let ids = self.lock().state.effects();
        self.wait(&ids, tick)?;
        match std::mem::take(&mut self.lock().failures).into_iter().next() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
    /// Whether an enqueued run has not ended.
    pub fn is_idle(&self) -> bool {
        self.lock().state.unfinished() == 0
    }

    /// The end: effects happen, other runs are cancelled, the threads end. A run that is pushed
    /// later is executed by the thread that pushes it.
    pub fn close(&'static self, tick: Tick<W>) -> Result<(), W::Error> {
        let flushed = self.barrier(tick);
        let mut g = self.lock();
        let gone = g.state.close(|w| w.fail(Stop::Cancelled.into()));
        self.work.notify_all();
        self.done.notify_all();
        drop(g);
        drop(gone);
        let mut g = self.lock();
        let mut clock = Clock::start();
        while g.state.lanes.iter().any(|l| l.serving > 0) {
            if !clock.due() {
                g = clock.wait(&self.done, g);
                continue;
            }
            drop(g);
            tick()?;
            g = self.lock();
        }
        flushed
    }

    /// Takes the lock, to be held over a fork.
    pub fn freeze(&'static self) -> Frozen<W> {
        Frozen(self.lock())
    }
}

impl<W: Work> Frozen<W> {
    /// In the child: the runs that the parent's threads were executing start again if possible, and
    /// fail otherwise. The caller drops the failed ones where host code may run.
    pub fn in_child(mut self) -> Vec<Arc<W>> {
        let again = |w: &W| w.again();
        let gone = self.0.state.forked(current_id(), again, |w| w.lost(Stop::Forked.into()));
        drop(self);
        SERVING.with(|s| s.set(None));
        gone
    }
}
