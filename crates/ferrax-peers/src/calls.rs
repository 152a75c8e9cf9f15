//! The calls that processes of a run make together, and why a wait for another process is in vain.
//!
//! A *call* is a program that several processes run together, or an exchange on the host. Each process counts its calls with every other one, and the n-th
//! call of two processes must be the same for both. A process that waits sends the number of its call, and a digest of all calls up to it, to those
//! that it waits for. They compare them with their own, at once or when they make the call, and both report the first call that differs. A process
//! that has finished a call reports that, and how many messages it has sent: once these have arrived, a wait for another one is in vain.
//!
//! ```text
//! 0 -- waits in call 3, digest 7 --> 1     1 -- the same call | digests, call 2 differs | finished, 12 messages sent --> 0
//! ```
//!
//! INVARIANT: a wait ends by an error only for a known cause: its peer has died or ended, runs something else, has given the call up or finished it,
//! or has not answered for the heartbeat's time; or processes have waited for each other in a circle, without a change, for the time of
//! [`Bounds`]. If one of these holds, the wait ends.
mod waits;

use crate::status::{Status, Waiter, texts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The number of finished calls with one process whose digests are kept, and whose texts are kept.
const KEPT: u64 = 256;
const TEXTS: u64 = 32;
/// Digests in one message.
const DIGESTS: usize = 100;
/// The time between two questions of a waiting process: in its first second, and later.
pub const LOOK: Duration = Duration::from_millis(200);
const ASK: Duration = Duration::from_secs(2);
/// How long an error is delayed until the text of the other process's program has arrived, or its place.
const TELLS: Duration = Duration::from_secs(5);
const TELLS_PLACE: Duration = Duration::from_secs(1);
/// The time in which a peer that only receives must take its message after it has finished the call.
const TAKES: Duration = Duration::from_secs(2);

/// The text of a call's program, made when it is needed.
pub type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// How long a wait may last without an answer, and while processes wait for each other; `None`: for ever.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub silence: Option<Duration>,
    pub circle: Option<Duration>,
}
impl Bounds {
    /// The time between two questions of a wait that has lasted a second.
    fn ask(&self) -> Duration {
        [self.silence, self.circle].iter().flatten().fold(ASK, |least, b| least.min(*b / 4))
    }
}

/// Why a wait is in vain.
#[derive(Clone)]
pub enum Cause {
    /// A call differs from the peer's: whether it is the first such call, its text here, and its text there.
    Different {
        peer: usize,
        index: u64,
        first: bool,
        mine: Option<Text>,
        theirs: Option<String>,
    },
    Died {
        peer: usize,
    },
    /// The peer does not continue the call; why, and where its program is.
    GivenUp {
        peer: usize,
        why: String,
        place: String,
    },
    /// The peer has ended after so many calls.
    Ended {
        peer: usize,
        calls: u64,
        index: u64,
        mine: Option<Text>,
    },
    /// The peer has finished the call without a message that this process waits for.
    Finished {
        peer: usize,
        index: u64,
        mine: Option<Text>,
    },
    Silent {
        peers: Vec<usize>,
    },
    Circle {
        processes: Vec<usize>,
    },
}
/// The state of a process that waits for the others at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// Others have not ended yet.
    Waits,
    /// All have ended.
    Over,
    Died,
    Silent(Vec<usize>),
    /// These have not ended in time.
    Late(Vec<usize>),
}

struct Call {
    /// The digest of this call and of all calls before it with the peer, so that a difference shows in each later call as well.
    digest: u64,
    text: Option<Text>,
}
#[derive(Default)]
struct Peer {
    /// The number of calls made with the peer; `made`: those that are remembered, by index.
    calls: u64,
    digest: u64,
    made: BTreeMap<u64, Call>,
    /// The calls that this process has not finished, and the first call whose text is kept.
    open: BTreeSet<u64>,
    first_text: u64,
    /// The index and the digest of the call that the peer waits in.
    asked: Option<(u64, u64)>,
    /// The time since which an answer is due.
    due: Option<Duration>,
    /// Where the peer's program is, and when it reported that.
    place: Option<(String, Duration)>,
    ended: Option<(u64, u64)>,
    /// Why the peer has given up a call, and when it reported that, by index.
    given_up: BTreeMap<u64, (String, Duration)>,
    /// How many messages the peer had sent when it finished a call, and when it reported that.
    finished: BTreeMap<u64, (u64, Duration)>,
    /// The calls that this process has finished, and how many messages it had sent by then.
    done: BTreeMap<u64, u64>,
    /// The last call that the peer has confirmed to be the same.
    same: Option<u64>,
    died: bool,
    differs: Option<Differs>,
    /// The first digest that differs among those that have arrived; `compared`: whether all have arrived.
    lowest: Option<u64>,
    compared: bool,
    /// The texts of the peer's programs, and whether each is complete.
    texts: BTreeMap<u64, (String, bool)>,
    /// The call up to which the peer has this process's digests.
    informed: Option<u64>,
}
impl Peer {
    /// Forgets old finished calls; returns their texts.
    fn forget(&mut self) -> Vec<Text> {
        let mut texts = vec![];
        let open = self.open.first().copied().unwrap_or(self.calls);
        while self.differs.is_none() && self.first_text < open.min(self.calls.saturating_sub(TEXTS)) {
            texts.extend(self.made.get_mut(&self.first_text).and_then(|call| call.text.take()));
            self.first_text += 1;
        }
        while let Some(entry) = self.made.first_entry()
            && *entry.key() < open.min(self.calls.saturating_sub(KEPT))
        {
            texts.extend(entry.remove().text);
        }
        texts
    }
}
/// The first call that is known to differ, and since when one is.
#[derive(Clone, Copy)]
struct Differs {
    index: u64,
    since: Duration,
}
struct Wait {
    call: u64,
    begun: Duration,
    asks: Duration,
    round: u64,
    missing: Vec<usize>,
    /// The circles of processes that wait for each other: the times of the first and the last report.
    circles: BTreeMap<Vec<Waiter>, (Duration, Duration)>,
}

/// What a process knows about the calls of all processes.
pub struct Calls {
    here: usize,
    bounds: Bounds,
    peers: BTreeMap<usize, Peer>,
    /// The indices of each call with its peers, until it is finished.
    places: BTreeMap<u64, BTreeMap<usize, u64>>,
    numbers: u64,
    waits: BTreeMap<u64, Wait>,
    waits_made: u64,
    /// The rounds of other processes' waits that were forwarded.
    forwarded: BTreeMap<Waiter, u64>,
    /// How long this process has been awake: while it was stopped, no answer was due.
    clock: Duration,
    heard_at: Option<Duration>,
    farewell: Option<(Duration, Duration)>,
    out: Vec<(usize, Status)>,
    texts_wanted: Vec<(usize, u64, Option<Text>)>,
    places_wanted: BTreeSet<usize>,
    /// Texts that are not needed any more: dropping them may run code of the host.
    forgotten: Vec<Text>,
}

/// A hash of a hash and a number, the same in all processes.
fn mix(h: u64, n: u64) -> u64 {
    (h.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
/// Keeps the last entries.
fn prune<T>(map: &mut BTreeMap<u64, T>, keep: u64) {
    while map.len() as u64 > keep {
        map.pop_first();
    }
}

impl Calls {
    pub fn new(here: usize, size: usize, bounds: Bounds) -> Calls {
        let peers = (0..size).filter(|p| *p != here).map(|p| (p, Peer::default())).collect();
        Calls {
            here,
            bounds,
            peers,
            places: BTreeMap::new(),
            numbers: 0,
            waits: BTreeMap::new(),
            waits_made: 0,
            forwarded: BTreeMap::new(),
            clock: Duration::ZERO,
            heard_at: None,
            farewell: None,
            out: vec![],
            texts_wanted: vec![],
            places_wanted: BTreeSet::new(),
            forgotten: vec![],
        }
    }
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }
    /// Sets the time, of a clock that does not go back. A step of more than a second counts as one second: this process was stopped.
    pub fn tick(&mut self, now: Duration) {
        let since = self.heard_at.replace(now).map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.clock += since.min(Duration::from_secs(1));
    }
    fn tell(&mut self, peer: usize, status: Status) {
        if self.peers.get(&peer).is_some_and(|p| !p.died) {
            self.out.push((peer, status));
        }
    }
    /// The messages to send and their receivers, in this order.
    pub fn outgoing(&mut self) -> Vec<(usize, Status)> {
        std::mem::take(&mut self.out)
    }
    pub fn has_outgoing(&self) -> bool {
        !self.out.is_empty() || !self.texts_wanted.is_empty()
    }
    /// The texts of calls that others have asked for, to be passed to [`Calls::text`].
    pub fn texts_wanted(&mut self) -> Vec<(usize, u64, Option<Text>)> {
        std::mem::take(&mut self.texts_wanted)
    }
    /// Answers one of `texts_wanted`; empty if the text was forgotten.
    pub fn text(&mut self, peer: usize, index: u64, text: &str) {
        texts(index, text).into_iter().for_each(|t| self.tell(peer, t));
    }
    /// Whether another process has asked where this one is, to be passed to [`Calls::place`].
    pub fn is_place_wanted(&self) -> bool {
        !self.places_wanted.is_empty()
    }
    pub fn place(&mut self, place: &str) {
        for p in std::mem::take(&mut self.places_wanted) {
            self.tell(p, Status::Place(place.into()));
        }
    }
    /// Texts for the caller to drop while it holds no lock.
    pub fn forgotten(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.forgotten)
    }

    // ---- calls

    /// The number of a call that this process makes with `peers`.
    pub fn call(&mut self, peers: &[usize], digest: u64, text: &Text) -> u64 {
        self.numbers += 1;
        let digest = self.of_group(peers, digest);
        let mut places = BTreeMap::new();
        for p in peers {
            let Some(peer) = self.peers.get_mut(p) else { continue };
            let index = peer.calls;
            peer.calls += 1;
            peer.digest = mix(peer.digest, digest);
            peer.made.insert(index, Call { digest: peer.digest, text: Some(text.clone()) });
            peer.open.insert(index);
            self.forgotten.extend(peer.forget());
            places.insert(*p, index);
            self.compare(*p);
        }
        self.places.insert(self.numbers, places);
        self.numbers
    }
    /// The digest with the processes of the call: a call of other processes is a different one, as its messages have other numbers.
    fn of_group(&self, peers: &[usize], digest: u64) -> u64 {
        let mut group = peers.to_vec();
        group.push(self.here);
        group.sort_unstable();
        group.dedup();
        group.into_iter().fold(digest, |h, p| mix(h, p as u64 + 1))
    }
    fn index(&self, call: u64, peer: usize) -> Option<u64> {
        self.places.get(&call)?.get(&peer).copied()
    }
    fn peers_of(&self, call: u64) -> Vec<(usize, u64)> {
        self.places.get(&call).map_or_else(Vec::new, |all| all.iter().map(|(p, index)| (*p, *index)).collect())
    }
    /// Reports that this process does not continue a call.
    pub fn give_up(&mut self, call: u64, why: &str) {
        for (p, index) in self.peers_of(call) {
            self.tell(p, Status::GivenUp { index, why: why.into() });
            self.places_wanted.insert(p);
        }
    }
    /// Reports that this process sends nothing more for a call, whether it has completed it or not. `sent`: the number of its messages to each
    /// process so far. Called once, as the last function of a call.
    pub fn finish(&mut self, call: u64, sent: &[u64]) {
        for (p, index) in self.peers_of(call) {
            let Some(peer) = self.peers.get_mut(&p) else { continue };
            let sent = sent.get(p).copied().unwrap_or_default();
            peer.done.insert(index, sent);
            prune(&mut peer.done, KEPT);
            peer.open.remove(&index);
            self.forgotten.extend(peer.forget());
            if peer.asked.is_some_and(|a| a.0 == index) {
                self.tell(p, Status::Finished { index, sent });
            }
        }
        self.places.remove(&call);
    }
    /// Notes that a message of a peer belongs to another program than that of the call.
    pub fn is_other(&mut self, call: u64, peer: usize) {
        let index = self.index(call, peer).unwrap_or_default();
        self.differ(peer, index);
    }
    /// Notes that a peer has died.
    pub fn died(&mut self, peer: usize) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.died = true;
        }
    }
    /// The peers that have died.
    pub fn dead(&self) -> Vec<usize> {
        self.peers.iter().filter(|(_, x)| x.died).map(|(p, _)| *p).collect()
    }
    /// Whether a peer has reported that it ends.
    pub fn has_ended(&self, peer: usize) -> bool {
        self.peers.get(&peer).is_some_and(|x| x.ended.is_some())
    }
    /// Where the program of a peer was when it last reported that.
    pub fn place_of(&self, peer: usize) -> Option<String> {
        self.peers.get(&peer)?.place.as_ref().map(|p| p.0.clone())
    }

    /// Compares the call that a peer waits in with this process's call of that index, if it has made one.
    fn compare(&mut self, p: usize) {
        if let Some(peer) = self.peers.get(&p)
            && let Some((index, digest)) = peer.asked
            && peer.made.get(&index).is_some_and(|mine| mine.digest != digest)
        {
            self.differ(p, index);
        }
    }
    /// Notes that a call differs from the peer's, and sends the peer the digests of all calls up to it: the first that differs counts.
    fn differ(&mut self, p: usize, index: u64) {
        let (Some(peer), since) = (self.peers.get_mut(&p), self.clock) else { return };
        let differs = match peer.differs {
            Some(d) if d.index <= index => d,
            d => Differs { index, since: d.map_or(since, |d| d.since) },
        };
        peer.differs = Some(differs);
        let index = differs.index;
        if peer.informed.is_some_and(|i| i <= index) {
            return;
        }
        peer.informed = Some(index);
        let digests: Vec<(u64, u64)> = peer.made.range(..=index).map(|(i, call)| (*i, call.digest)).collect();
        let text = peer.made.get(&index).and_then(|call| call.text.clone());
        digests.chunks(DIGESTS).for_each(|part| self.tell(p, Status::Digests(part.to_vec())));
        self.tell(p, Status::Differs(index));
        self.texts_wanted.push((p, index, text));
    }

    // ---- reports of other processes

    pub fn heard(&mut self, from: usize, status: Status) {
        let clock = self.clock;
        let Some(peer) = self.peers.get_mut(&from) else { return };
        peer.due = None;
        match status {
            Status::Waits { index, digest, wait, round } => self.is_awaited(from, (index, digest), (wait, round)),
            Status::Same(index) => peer.same = Some(index),
            Status::Finished { index, sent } => {
                peer.finished.entry(index).or_insert((sent, clock));
                prune(&mut peer.finished, KEPT);
            }
            Status::Probe { path, round } => self.forward(&path, round),
            Status::Circle(path) => {
                let wait = path.first().and_then(|(_, wait)| self.waits.get_mut(wait));
                if let Some(w) = wait {
                    w.circles.entry(path).or_insert((clock, clock)).1 = clock;
                }
            }
            Status::Ping => {
                self.places_wanted.insert(from);
                self.tell(from, Status::Pong);
            }
            Status::Pong => (),
            Status::Place(place) => peer.place = Some((place, clock)),
            Status::Ended { calls, sent } => peer.ended = Some((calls, sent)),
            Status::GivenUp { index, why } => {
                peer.given_up.entry(index).or_insert((why, clock));
                prune(&mut peer.given_up, KEPT);
            }
            Status::Digests(all) => {
                let other = |(i, digest): &&(u64, u64)| peer.made.get(i).is_some_and(|mine| mine.digest != *digest);
                let found = all.iter().filter(other).map(|(i, _)| *i).min();
                peer.lowest = peer.lowest.into_iter().chain(found).min();
            }
            Status::Differs(index) => {
                peer.compared = true;
                let lowest = peer.lowest.map_or(index, |l| l.min(index));
                self.differ(from, lowest);
            }
            Status::Text { index, part, last } => {
                let (text, whole) = peer.texts.entry(index).or_default();
                text.push_str(&part);
                *whole |= last;
            }
        }
    }
    fn is_awaited(&mut self, from: usize, (index, digest): (u64, u64), (wait, round): (u64, u64)) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        peer.asked = Some((index, digest));
        let same = index < peer.calls && peer.made.get(&index).is_none_or(|mine| mine.digest == digest);
        // for a call that is forgotten, the number of messages sent up to a later one will do
        let is_done = index < peer.calls && !peer.open.contains(&index);
        let done = peer.done.range(index..).next().map(|(_, sent)| *sent).filter(|_| is_done);
        self.tell(from, if same { Status::Same(index) } else { Status::Pong });
        if let Some(sent) = done {
            self.tell(from, Status::Finished { index, sent });
        }
        self.compare(from);
        self.places_wanted.insert(from);
        self.forward(&[(from, wait)], round);
    }
    /// Asks those that this process waits for whether they wait for the first of the path: each process does so once for each round of a wait.
    fn forward(&mut self, path: &[Waiter], round: u64) {
        let Some(first) = path.first().copied() else { return };
        if self.forwarded.get(&first).is_some_and(|r| *r >= round) {
            return;
        }
        let older = |w: &Waiter| w.0 == first.0 && w.1 + 64 < first.1;
        self.forwarded.retain(|w, _| !older(w));
        self.forwarded.insert(first, round);
        let mut out = vec![];
        for (id, wait) in &self.waits {
            for p in &wait.missing {
                let path: Vec<Waiter> = path.iter().copied().chain([(self.here, *id)]).collect();
                if *p == first.0 {
                    out.push((first.0, Status::Circle(path)));
                } else if path.iter().all(|(q, _)| q != p) {
                    out.push((*p, Status::Probe { path, round }));
                }
            }
        }
        out.into_iter().for_each(|(p, status)| self.tell(p, status));
    }
}
