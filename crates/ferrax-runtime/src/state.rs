//! The state machine: the runs, what each waits for, and the effect of each event on them. No threads, no locks, no work.
//!
//! ```text
//!             push                 take                finish
//!   (nothing) ----> waiting/ready -----> running ----------------> (nothing)
//!                        |                  |  cancel                  ^
//!                        | cancel           +--------> running, ended -+
//!                        v                             for its readers
//!                    (nothing)
//! ```
//!
//! An edge leads from a run to one that must come before it: `Data`, because it reads that one's results, or `Order`, because both have effects on
//! one device, or are members of pmaps. Edges lead to runs that were pushed earlier, so there are no cycles; a run is ready when all its
//! edges are gone.
//!
//! INVARIANT: a run is in `DeviceQueue::ready` exactly while it stands here, is not running and has no edge left.
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names a run for the life of the process.
pub type RunId = u64;
/// Set when a run is to stop. Never reset: every run has its own.
pub type Token = Arc<AtomicBool>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    Data,
    Order,
}

/// The scheduling properties of a run.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The device that runs it.
    pub lane: usize,
    /// The runs that make its inputs; those that have ended are passed over.
    pub inputs: SmallVec<[RunId; 4]>,
    /// Whether the world can notify that it ran: kept in order on a device, flushed at exit, never run twice.
    pub effects: bool,
    /// The pmap it is a member of. Members wait for each other while they run.
    pub gang: Option<u64>,
    /// The thread that pushes it waits for it ([`crate::Runtime::awaited`]), and hears of its error there and nowhere else.
    pub awaited: bool,
}

struct Run<W> {
    facts: RunFacts,
    work: Arc<W>,
    token: Token,
    running: bool,
    /// The number of threads that wait for it.
    waiters: usize,
    /// The runs that it still waits for.
    before: SmallVec<[(RunId, Edge); 4]>,
    /// Who waits for it.
    after: SmallVec<[(RunId, Edge); 4]>,
}

/// One device's part.
#[derive(Default)]
pub struct DeviceQueue {
    /// In the order of pushing.
    ready: BTreeSet<RunId>,
    last_effect: Option<RunId>,
    last_member: Option<RunId>,
    /// Pushed and not ended.
    pub unfinished: usize,
    /// Threads that serve this lane and are not inside a host function; the idle ones among them.
    pub serving: usize,
    pub idle: usize,
    /// A required thread could not be started: the waiting thread does the work.
    pub threadless: bool,
}

pub struct Schedule<W> {
    runs: BTreeMap<RunId, Run<W>>,
    pub lanes: Vec<DeviceQueue>,
    /// No more threads: the process ends.
    pub closed: bool,
}

impl<W> Default for Schedule<W> {
    fn default() -> Schedule<W> {
        Schedule { runs: BTreeMap::new(), lanes: vec![], closed: false }
    }
}

impl<W> Schedule<W> {
    pub fn lane(&mut self, i: usize) -> &mut DeviceQueue {
        if i >= self.lanes.len() {
            self.lanes.resize_with(i + 1, DeviceQueue::default);
        }
        &mut self.lanes[i]
    }
    /// Whether readers of its results must still wait.
    pub fn pending(&self, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|r| !r.token.load(Ordering::Relaxed))
    }
    pub fn unfinished(&self) -> usize {
        self.runs.len()
    }
    pub fn is_ready(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|l| !l.ready.is_empty())
    }
    /// Runs with effects that have not ended.
    pub fn effects(&self) -> Vec<RunId> {
        self.runs.iter().filter(|r| r.1.facts.effects).map(|r| *r.0).collect()
    }
    pub fn has_effects(&self, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|r| r.facts.effects)
    }
    pub fn is_awaited(&self, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|r| r.facts.awaited)
    }
    pub fn is_member(&self, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|r| r.facts.gang.is_some())
    }

    pub fn push(&mut self, id: RunId, facts: RunFacts, work: Arc<W>) {
        let mut before: SmallVec<[(RunId, Edge); 4]> = SmallVec::new();
        for i in &facts.inputs {
            if self.pending(*i) {
                before.push((*i, Edge::Data));
            }
        }
        let lane = self.lane(facts.lane);
        let ends = [
            facts.effects.then(|| lane.last_effect.replace(id)).flatten(),
            facts.gang.and_then(|_| lane.last_member.replace(id)),
        ];
        lane.unfinished += 1;
        before.extend(ends.into_iter().flatten().map(|e| (e, Edge::Order)));
        for (b, edge) in &before {
            if let Some(r) = self.runs.get_mut(b) {
                r.after.push((id, *edge));
            }
        }
        if before.is_empty() {
            self.lane(facts.lane).ready.insert(id);
        }
        let run =
            Run { facts, work, token: Token::default(), running: false, waiters: 0, before, after: SmallVec::new() };
        self.runs.insert(id, run);
    }
    /// The next run of a lane, marked as running.
    pub fn take(&mut self, lane: usize) -> Option<(RunId, Arc<W>, Token)> {
        let id = self.lanes.get_mut(lane)?.ready.pop_first()?;
        let r = self.runs.get_mut(&id)?;
        r.running = true;
        Some((id, r.work.clone(), r.token.clone()))
    }
    /// A run has ended, or never will begin. Returns its work, to be dropped without a lock.
    pub fn finish(&mut self, id: RunId) -> Option<Arc<W>> {
        let r = self.runs.remove(&id)?;
        let lane = self.lane(r.facts.lane);
        lane.unfinished -= 1;
        lane.ready.remove(&id);
        let (effect, member) = (lane.last_effect == Some(id), lane.last_member == Some(id));
        for (b, _) in &r.before {
            if let Some(b) = self.runs.get_mut(b) {
                b.after.retain(|a| a.0 != id);
            }
        }
        // One that never ran leaves its place in the order to those after it.
        let order: SmallVec<[RunId; 4]> = r.before.iter().filter(|b| b.1 == Edge::Order).map(|b| b.0).collect();
        let last = |which: fn(&RunFacts) -> bool| order.iter().copied().filter(|b| which(&self.runs[b].facts)).max();
        let (before_effect, before_member) = (last(|f| f.effects), last(|f| f.gang.is_some()));
        let lane = self.lane(r.facts.lane);
        if effect {
            lane.last_effect = before_effect;
        }
        if member {
            lane.last_member = before_member;
        }
        for (a, _) in r.after.iter().filter(|a| a.1 == Edge::Order) {
            for b in &order {
                if let Some(run) = self.runs.get_mut(a) {
                    run.before.push((*b, Edge::Order));
                }
                if let Some(run) = self.runs.get_mut(b) {
                    run.after.push((*a, Edge::Order));
                }
            }
        }
        self.release(id, &r.after, |_| true);
        Some(r.work)
    }
    /// Takes edges to `id` away from those after it.
    fn release(&mut self, id: RunId, after: &[(RunId, Edge)], which: impl Fn(Edge) -> bool) {
        for (a, edge) in after.iter().filter(|a| which(a.1)) {
            let Some(r) = self.runs.get_mut(a) else { continue };
            r.before.retain(|b| *b != (id, *edge));
            if r.before.is_empty() && !r.running {
                let lane = r.facts.lane;
                self.lane(lane).ready.insert(*a);
            }
        }
    }
    pub fn wait_begins(&mut self, id: RunId) {
        if let Some(r) = self.runs.get_mut(&id) {
            r.waiters += 1;
        }
    }
    pub fn wait_ends(&mut self, id: RunId) {
        if let Some(r) = self.runs.get_mut(&id) {
            r.waiters = r.waiters.saturating_sub(1);
        }
    }

    /// Cancels runs, and the runs needed only by them: none that another thread awaits, nor one
    /// that another run reads. `notify` gives the readers of a cancelled run their error, before any
    /// run that reads it can begin. Returns the runs that will never begin, to be dropped without a
    /// lock.
    #[must_use]
    pub fn cancel(&mut self, ids: &[RunId], notify: impl Fn(&W)) -> Vec<Arc<W>> {
        let mut todo: Vec<RunId> = ids.to_vec();
        let mut gone: BTreeSet<RunId> = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if !self.pending(id) {
                continue;
            }
            // a pmap stops on all its devices
            let members = self.gang(id);
            let wanted = |r: &Run<W>| r.waiters > 0;
            let read = |r: &Run<W>| r.after.iter().any(|a| a.1 == Edge::Data && !gone.contains(&a.0));
            let asked = members.iter().any(|m| ids.contains(m));
            if members.iter().any(|m| wanted(&self.runs[m]) || (!asked && read(&self.runs[m]))) {
                continue;
            }
            for m in members {
                gone.insert(m);
                let Some(r) = self.runs.get_mut(&m) else { continue };
                r.token.store(true, Ordering::Relaxed);
                notify(&r.work);
                todo.extend(r.before.iter().filter(|b| b.1 == Edge::Data).map(|b| b.0));
                if r.running {
                    // its readers need not wait for its end; runs that follow it in order must
                    let after = r.after.clone();
                    r.after.retain(|a| a.1 == Edge::Order);
                    self.release(m, &after, |e| e == Edge::Data);
                }
            }
        }
        // Only now: until here the edges show which run reads which.
        gone.retain(|id| self.runs.get(id).is_some_and(|r| !r.running));
        gone.into_iter().filter_map(|id| self.finish(id)).collect()
    }
    /// A run and the other members of its pmap.
    fn gang(&self, id: RunId) -> Vec<RunId> {
        let Some(Run { facts: RunFacts { gang: Some(g), .. }, .. }) = self.runs.get(&id) else { return vec![id] };
        self.runs.iter().filter(|m| m.1.facts.gang == Some(*g)).map(|m| *m.0).collect()
    }
    /// Whether `id` cannot end before `on` does.
    pub fn depends(&self, id: RunId, on: RunId) -> bool {
        let (mut todo, mut seen) = (vec![id], BTreeSet::new());
        let goal = self.gang(on);
        while let Some(id) = todo.pop() {
            if goal.contains(&id) {
                return true;
            }
            for m in self.gang(id) {
                if seen.insert(m)
                    && let Some(r) = self.runs.get(&m)
                {
                    todo.extend(r.before.iter().map(|b| b.0));
                }
            }
        }
        false
    }

    /// The state in a forked child: no thread but the calling one is left, which may be inside the
    /// run `current`. Runs that can be repeated unnoticed stay, and those that had begun begin
    /// again; the readers of the others are notified.
    #[must_use]
    pub fn forked(&mut self, current: Option<RunId>, again: impl Fn(&W) -> bool, notify: impl Fn(&W)) -> Vec<Arc<W>> {
        let mut gone = vec![];
        for lane in &mut self.lanes {
            (lane.serving, lane.idle, lane.threadless) = (0, 0, false);
        }
        for id in self.runs.keys().copied().collect::<Vec<_>>() {
            let Some(r) = self.runs.get_mut(&id).filter(|_| Some(id) != current) else { continue };
            r.waiters = 0;
            let cancelled = r.token.load(Ordering::Relaxed);
            if cancelled || r.facts.effects || r.facts.gang.is_some() || (r.running && !again(&r.work)) {
                if !cancelled {
                    notify(&r.work);
                }
                gone.extend(self.finish(id));
            } else if r.running {
                r.running = false;
                let lane = r.facts.lane;
                self.lane(lane).ready.insert(id);
            }
        }
        gone
    }
    /// The process ends: cancels all runs without effects that are not awaited.
    #[must_use]
    pub fn close(&mut self, notify: impl Fn(&W)) -> Vec<Arc<W>> {
        self.closed = true;
        let pure: Vec<RunId> = self.runs.iter().filter(|r| !r.1.facts.effects).map(|r| *r.0).collect();
        self.cancel(&pure, notify)
    }
}
