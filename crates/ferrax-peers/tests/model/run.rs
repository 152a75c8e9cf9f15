//! One run of three processes.
use super::random::{Random, hash};
use super::table::{End, Table};
use ferrax_peers::calls::{Bounds, Cause, Farewell, LOOK, Text};
use ferrax_peers::transfers::{Messages, Transfer};
use ferrax_peers::watch::{Vain, Watch};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SIZE: usize = 3;
const SILENCE: Duration = Duration::from_secs(4);
const CIRCLE: Duration = Duration::from_secs(6);
const SHUTDOWN: Duration = Duration::from_secs(30);
/// Bytes are under way for so long at most.
const UNDER_WAY: Duration = Duration::from_millis(300);
/// No wait lasts longer: what others wait for may end one bound after the other.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Default, Debug)]
pub struct Counts {
    pub orders: u64,
    pub calm: u64,
    pub calls: u64,
    pub different: u64,
    pub died: u64,
    pub given_up: u64,
    pub ended: u64,
    pub finished: u64,
    pub silent: u64,
    pub circle: u64,
    pub ended_all: u64,
    pub longest_wait_ms: u128,
}
#[derive(Clone, Copy)]
enum Pattern {
    All,
    Ring,
    /// The first sends the last.
    One,
}
/// A call: of which processes, what, and its exchanges.
#[derive(Clone)]
struct Spec {
    group: Vec<usize>,
    label: u64,
    exchanges: Vec<(Pattern, usize)>,
    /// An exchange that this process does not come to; one at which it is interrupted.
    skips: Option<usize>,
    interrupted: Option<usize>,
    /// Before it, this process computes so long.
    computes: Duration,
}
#[derive(Clone, Copy, PartialEq)]
enum OnError {
    GoesOn,
    Ends,
    EndsAll,
}
struct Running {
    call: u64,
    spec: Spec,
    /// The number of the run, its digest, and the same by other words.
    run: (u64, u64, u64),
    at: usize,
    met: u64,
    doing: Option<Doing>,
}
struct Doing {
    transfer: Arc<Transfer>,
    expected: Vec<[u8; 8]>,
    wait: Option<u64>,
    looks: Duration,
    begun: Duration,
}
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Works,
    Leaves,
    Gone,
    Dead,
}
struct Process {
    here: usize,
    watch: Arc<Watch>,
    messages: Arc<Messages>,
    script: VecDeque<Spec>,
    queue: VecDeque<Running>,
    runs: BTreeMap<Vec<usize>, (u64, u64, u64)>,
    on_error: OnError,
    computes_until: Duration,
    ahead: usize,
    /// By call, its index with each peer.
    places: BTreeMap<u64, BTreeMap<usize, usize>>,
}
/// What is true of a process, whatever others know.
struct Facts {
    state: State,
    host: usize,
    stopped: Option<(Duration, Duration)>,
    made: Vec<Vec<u64>>,
    /// Peer and index.
    given_up: BTreeSet<(usize, usize)>,
    finished: BTreeSet<(usize, usize)>,
    skipped: BTreeSet<(usize, usize)>,
    ended: bool,
    pumped: Duration,
    waits_since: Option<Duration>,
    /// Its last long wait that had what it was for.
    waited: Option<(Duration, Duration)>,
    erred: Option<Duration>,
    dies: Option<Duration>,
    completed: u64,
}
struct World<'a> {
    now: Duration,
    random: Random,
    data: Arc<Mutex<Table>>,
    status: Arc<Mutex<Table>>,
    facts: Vec<Facts>,
    /// Whether nothing is wrong, so that nothing may be reported.
    calm: bool,
    over: bool,
    told: Vec<String>,
    counts: &'a mut Counts,
}
type Checked = Result<(), String>;

fn scripts(r: &mut Random) -> (Vec<Vec<Spec>>, bool) {
    let spec = |r: &mut Random| {
        let group = match r.below(4) {
            0 => vec![0, 1],
            1 => [vec![0, 2], vec![1, 2]][r.below(2)].clone(),
            _ => vec![0, 1, 2],
        };
        let pattern = |r: &mut Random| [Pattern::All, Pattern::Ring, Pattern::One][r.below(3)];
        let n = r.below(4);
        let exchanges = (0..n).map(|_| (pattern(r), if r.once_in(4) { 5000 } else { 16 })).collect();
        Spec { group, label: r.next() % 5, exchanges, skips: None, interrupted: None, computes: Duration::ZERO }
    };
    let n = 1 + r.below(5);
    let base: Vec<Spec> = (0..n).map(|_| spec(r)).collect();
    let mut all = vec![base; SIZE];
    let mut calm = true;
    for _ in 0..[0, 0, 1, 1, 2, 3][r.below(6)] {
        calm = false;
        let script = &mut all[r.below(SIZE)];
        let k = r.below(script.len().max(1));
        match r.below(7) {
            0 => script.insert(k, spec(r)),
            _ if script.is_empty() => (),
            1 => drop(script.remove(k)),
            2 => script[k].label += 100,
            3 => script.truncate(k),
            4 => script[k].skips = Some(r.below(3)),
            5 => script[k].interrupted = Some(r.below(3)),
            _ => {
                let j = r.below(script.len());
                script.swap(k, j);
            }
        }
    }
    for (here, script) in all.iter_mut().enumerate() {
        script.retain(|s| s.group.contains(&here));
        for s in script {
            if r.once_in(4) {
                s.computes = Duration::from_millis(r.below(2000) as u64);
            }
        }
    }
    (all, calm)
}

pub fn run(seed: u64, counts: &mut Counts) -> Result<(), (String, Vec<String>)> {
    let mut r = Random(seed);
    let (scripts, mut calm) = scripts(&mut r);
    let (data, status) = (Table::new(SIZE, r.next(), UNDER_WAY), Table::new(SIZE, r.next(), UNDER_WAY));
    let tags = [1, 2, 1 << 20][r.below(3)];
    let mut facts = vec![];
    for _ in 0..SIZE {
        let at = Duration::from_millis(r.below(4000) as u64);
        let (stop, die) = (r.once_in(6), r.once_in(12));
        let long = r.once_in(3);
        let length = match (long, r.once_in(3)) {
            (false, _) => r.below(2000),
            (_, false) => 6000 + r.below(6000),
            _ => 1_000_000,
        };
        calm &= !(die || stop && long);
        facts.push(Facts {
            state: State::Works,
            host: r.below(2),
            stopped: stop.then_some((at, at + Duration::from_millis(length as u64))),
            made: vec![vec![]; SIZE],
            given_up: BTreeSet::new(),
            finished: BTreeSet::new(),
            skipped: BTreeSet::new(),
            ended: false,
            pumped: Duration::ZERO,
            waits_since: None,
            waited: None,
            erred: None,
            dies: die.then_some(at),
            completed: 0,
        });
    }
    let wire = |table: &Arc<Mutex<Table>>, here| Box::new(End { table: table.clone(), here });
    let bounds = Bounds { silence: Some(SILENCE), circle: Some(CIRCLE) };
    let mut processes: Vec<Process> = scripts
        .into_iter()
        .enumerate()
        .map(|(here, script)| Process {
            here,
            watch: Watch::new(wire(&status, here), here, SIZE, bounds),
            messages: Messages::new(wire(&data, here), tags, SIZE),
            script: script.into(),
            queue: VecDeque::new(),
            runs: BTreeMap::new(),
            on_error: [OnError::GoesOn, OnError::GoesOn, OnError::Ends, OnError::EndsAll][r.below(4)],
            computes_until: Duration::ZERO,
            ahead: 1 + r.below(3),
            places: BTreeMap::new(),
        })
        .collect();
    let mut w = World { now: Duration::ZERO, random: r, data, status, facts, calm, over: false, told: vec![], counts };
    let calls: usize = processes.iter().map(|p| p.script.len()).sum();
    let done = w.play(&mut processes).and_then(|()| {
        let completed: u64 = w.facts.iter().map(|f| f.completed).sum();
        w.counts.orders += 1;
        w.counts.calm += u64::from(calm);
        w.counts.calls += completed;
        if calm && completed != calls as u64 { Err(format!("{completed} of {calls} calls")) } else { Ok(()) }
    });
    // the tables hold what the processes' ends refer to
    processes.iter().for_each(|p| p.messages.close());
    done.map_err(|why| (why, w.told))
}

impl World<'_> {
    fn tell(&mut self, text: String) {
        self.told.push(format!("{:7.3} {text}", self.now.as_secs_f64()));
    }
    fn play(&mut self, processes: &mut [Process]) -> Checked {
        while !self.over && self.facts.iter().any(|f| !matches!(f.state, State::Gone | State::Dead)) {
            self.now += Duration::from_millis(self.random.below(60) as u64);
            for table in [&self.data, &self.status] {
                table.lock().expect("no panic").pass(self.now);
            }
            let k = self.random.below(SIZE);
            let f = &mut self.facts[k];
            let is_stopped = f.stopped.is_some_and(|(from, to)| (from..to).contains(&self.now));
            if f.dies.is_some_and(|at| at <= self.now) && f.state != State::Dead {
                f.state = State::Dead;
                self.tell(format!("{k} dies"));
                for table in [&self.data, &self.status] {
                    table.lock().expect("no panic").lose(k);
                }
            } else if !is_stopped && !matches!(f.state, State::Dead | State::Gone) {
                processes[k].step(self)?;
            }
            if self.now > Duration::from_secs(400) {
                return Err(format!("no end: {:?}", self.facts.iter().map(|f| f.state).collect::<Vec<_>>()));
            }
            if self.facts.iter().all(|f| {
                f.state != State::Works && f.state != State::Leaves
                    || f.stopped.is_some_and(|s| s.1 > Duration::from_secs(900) && s.0 < self.now)
            }) {
                return Ok(());
            }
        }
        Ok(())
    }
    fn end_all(&mut self, here: usize, why: &str) {
        self.tell(format!("{here} ends all: {why}"));
        self.counts.ended_all += 1;
        self.over = true;
    }
    /// Whether a process has not answered for the time of the bound.
    fn is_silent(&self, peer: usize) -> bool {
        let (f, least) = (&self.facts[peer], SILENCE - Duration::from_millis(1500));
        let stopped = f.stopped.is_some_and(|(from, to)| {
            from < self.now && to.min(self.now) - from > least && self.now < to + Duration::from_millis(1500)
        });
        f.state == State::Dead || stopped || self.now - f.pumped > least
    }
    /// An error where a cause does not hold.
    fn check(&mut self, p: &Process, running: &Running, cause: &Cause) -> Checked {
        let here = p.here;
        let index = |peer: &usize| p.places[&running.call].get(peer).copied().unwrap_or(usize::MAX);
        let of = |peer: &usize| &self.facts[*peer];
        let (name, holds, counted) = match cause {
            Cause::Different { peer, index, first, mine, theirs } => {
                let (a, b) = (&self.facts[here].made[*peer], &of(peer).made[here]);
                let lowest = a.iter().zip(b).position(|(x, y)| x != y);
                let right = match first {
                    true => lowest == Some(*index as usize),
                    false => lowest.is_some_and(|l| l <= *index as usize) && self.is_silent(*peer),
                };
                let text = |of: usize, d: &[u64]| format!("{of} runs {}", d.get(*index as usize).unwrap_or(&0));
                let texts = mine.as_ref().is_some_and(|t| t() == text(here, a))
                    && theirs.as_ref().is_none_or(|t| *t == text(*peer, b));
                (format!("call {index} with {peer} differs ({first})"), right && texts, &mut self.counts.different)
            }
            Cause::Died { peer } => (format!("{peer} died"), of(peer).state == State::Dead, &mut self.counts.died),
            Cause::GivenUp { peer, why, .. } => (
                format!("{peer} has given up: {why}"),
                of(peer).given_up.contains(&(here, index(peer))),
                &mut self.counts.given_up,
            ),
            Cause::Ended { peer, calls, .. } => (
                format!("{peer} has ended after {calls}"),
                of(peer).ended && of(peer).made[here].len() as u64 == *calls && index(peer) as u64 >= *calls,
                &mut self.counts.ended,
            ),
            Cause::Finished { peer, .. } => {
                let known = |set: &BTreeSet<(usize, usize)>, q: &usize| set.contains(&(here, index(q)));
                let skipped = |q: &usize| *q != here && known(&of(q).skipped, q);
                let holds = known(&of(peer).finished, peer)
                    && !known(&of(peer).given_up, peer)
                    && (running.spec.skips.is_some() || running.spec.group.iter().any(skipped));
                (format!("{peer} has finished"), holds, &mut self.counts.finished)
            }
            Cause::Silent { peers } => {
                (format!("{peers:?} are silent"), peers.iter().all(|q| self.is_silent(*q)), &mut self.counts.silent)
            }
            Cause::Circle { processes } => {
                let waits = |q: &usize| {
                    let f = of(q);
                    let recent = |t: Duration, s| self.now - t < Duration::from_millis(s);
                    let long = f.waits_since.is_some_and(|t| !recent(t, 3000));
                    let just = f.waited.is_some_and(|(from, to)| recent(to, 3000) && from < to);
                    long || just
                        || f.erred.is_some_and(|t| recent(t, 3000))
                        || f.state == State::Dead
                        || self.is_silent(*q)
                };
                (format!("circle {processes:?}"), processes.iter().all(waits), &mut self.counts.circle)
            }
        };
        *counted += 1;
        self.tell(format!("{here}: {name}"));
        if holds && !self.calm { Ok(()) } else { Err(format!("{here} reports what does not hold: {name}")) }
    }
}

impl Process {
    fn step(&mut self, w: &mut World) -> Checked {
        self.watch.pump(w.now)?;
        w.facts[self.here].pumped = w.now;
        for p in 0..SIZE {
            let same = w.facts[p].host == w.facts[self.here].host;
            if p != self.here && same && w.facts[p].state == State::Dead && !self.watch.has_ended(p) {
                self.watch.died(p);
            }
        }
        if self.watch.is_place_wanted() && w.random.once_in(2) {
            self.watch.place(&format!("at {}", self.here));
        }
        if w.facts[self.here].state == State::Leaves {
            return self.leave(w);
        }
        if w.now < self.computes_until {
            return Ok(());
        }
        for _ in 0..1 + w.random.below(4) {
            let can_make = self.queue.len() < self.ahead && w.facts[self.here].state == State::Works;
            if can_make && !self.script.is_empty() && w.random.once_in(2) {
                self.make(w);
            } else if !self.queue.is_empty() {
                self.advance(w)?;
            }
        }
        if self.queue.is_empty() && self.script.is_empty() {
            w.tell(format!("{} leaves", self.here));
            self.watch.end(&self.messages.sent());
            w.facts[self.here].state = State::Leaves;
            w.facts[self.here].ended = true;
        }
        Ok(())
    }
    fn leave(&mut self, w: &mut World) -> Checked {
        match self.watch.farewell(Some(SHUTDOWN)) {
            Farewell::Waits => return Ok(()),
            Farewell::Over => {
                w.tell(format!("{} is gone", self.here));
                w.facts[self.here].state = State::Gone;
                return Ok(());
            }
            Farewell::Died if w.facts.iter().any(|f| f.state == State::Dead) => w.end_all(self.here, "died"),
            Farewell::Silent(all) if all.iter().all(|p| w.is_silent(*p)) => w.end_all(self.here, "silent"),
            Farewell::Late(all) if all.iter().all(|p| !w.facts[*p].ended) => w.end_all(self.here, "late"),
            other => return Err(format!("{} leaves by {other:?}, which does not hold", self.here)),
        }
        if w.calm { Err("the end of all where nothing is wrong".into()) } else { Ok(()) }
    }
    /// Makes a call, and puts it behind those that were made before.
    fn make(&mut self, w: &mut World) {
        let spec = self.script.pop_front().expect("a call");
        self.computes_until = w.now + spec.computes;
        let exchanges: Vec<u64> = spec.exchanges.iter().map(|(p, n)| *p as u64 * 10_000 + *n as u64).collect();
        let words: Vec<u64> = [spec.label].into_iter().chain(exchanges).collect();
        let (digest, peers) =
            (hash(&words), spec.group.iter().copied().filter(|p| *p != self.here).collect::<Vec<_>>());
        let text: Text = {
            let (here, group) = (self.here, spec.group.clone());
            Arc::new(move || format!("{here} runs {}", group.iter().fold(digest, |h, p| hash(&[h, *p as u64]))))
        };
        let call = self.watch.call(&peers, digest, &text);
        let (n, so_far, truth) = self.runs.entry(spec.group.clone()).or_default();
        *n += 1;
        *so_far = hash(&[*so_far, digest]);
        *truth = hash(&[*truth, 17, digest]);
        let run = (*n, *so_far, *truth);
        let made = &mut w.facts[self.here].made;
        let places = peers.iter().map(|p| (*p, made[*p].len())).collect();
        self.places.insert(call, places);
        let of_group = spec.group.iter().fold(digest, |h, p| hash(&[h, *p as u64]));
        peers.iter().for_each(|p| made[*p].push(of_group));
        if spec.skips.is_some() {
            w.facts[self.here].skipped.extend(self.indices(call));
        }
        w.tell(format!("{} makes call {call} with {peers:?}: {:?}", self.here, self.places[&call]));
        self.queue.push_back(Running { call, spec, run, at: 0, met: 0, doing: None });
    }
    fn indices(&self, call: u64) -> Vec<(usize, usize)> {
        self.places[&call].iter().map(|(p, i)| (*p, *i)).collect()
    }
    fn begin(&mut self, w: &mut World, running: &mut Running) -> Checked {
        let (pattern, bytes) = running.spec.exchanges[running.at];
        let group = &running.spec.group;
        let at = group.iter().position(|p| *p == self.here).expect("a member");
        let n = group.len();
        let others: Vec<usize> = group.iter().copied().filter(|p| *p != self.here).collect();
        let (to, from) = match pattern {
            Pattern::All => (others.clone(), others),
            Pattern::Ring => (vec![group[(at + 1) % n]], vec![group[(at + n - 1) % n]]),
            Pattern::One if at == 0 => (vec![group[n - 1]], vec![]),
            Pattern::One if at == n - 1 => (vec![], vec![group[0]]),
            Pattern::One => (vec![], vec![]),
        };
        let (run, digest, truth) = running.run;
        let members = group.iter().fold(0, |h, p| h * 8 + *p as u64 + 1);
        let number = hash(&[run, members, running.met]);
        let payload = |a: usize, b: usize| hash(&[truth, members, running.met, a as u64, b as u64]).to_le_bytes();
        let message = |p: &usize| {
            let mut data = payload(self.here, *p).to_vec();
            data.resize(bytes, 0);
            (*p, Arc::new(data))
        };
        let messages: Vec<_> = to.iter().map(message).collect();
        w.tell(format!("{} begins {number:x} of {bytes} to {to:?} from {from:?}", self.here));
        let transfer = self.messages.begin((number, digest), &messages, &from)?;
        let expected = from.iter().map(|p| payload(*p, self.here)).collect();
        running.met += 1;
        w.facts[self.here].waits_since = Some(w.now);
        running.doing = Some(Doing { transfer, expected, wait: None, looks: w.now + LOOK, begun: w.now });
        Ok(())
    }
    /// Goes on with the oldest call.
    fn advance(&mut self, w: &mut World) -> Checked {
        let Some(mut running) = self.queue.pop_front() else { return Ok(()) };
        if running.at == running.spec.exchanges.len() {
            w.facts[self.here].completed += 1;
            self.finish(w, &running);
            return Ok(());
        }
        if running.spec.skips == Some(running.at) {
            running.at += 1;
            self.queue.push_front(running);
            return Ok(());
        }
        if running.doing.is_none() {
            self.begin(w, &mut running)?;
        }
        match self.wait(w, &mut running)? {
            None => self.queue.push_front(running),
            Some(why) => self.fail(w, running, &why),
        }
        Ok(())
    }
    /// Looks for the messages of an exchange. Why it is in vain, if it is.
    fn wait(&mut self, w: &mut World, running: &mut Running) -> Result<Option<String>, String> {
        let Some(doing) = &mut running.doing else { return Ok(None) };
        if let Some(found) = doing.transfer.poll()? {
            for (message, expected) in found.iter().zip(&doing.expected) {
                if message[..8] != expected[..] {
                    return Err(format!("{} has taken a message of another call", self.here));
                }
            }
            doing.wait.into_iter().for_each(|id| self.watch.over(id));
            w.facts[self.here].waits_since = None;
            if w.now - doing.begun > Duration::from_secs(3) {
                w.facts[self.here].waited = Some((doing.begun, w.now));
            }
            running.doing = None;
            running.at += 1;
            return Ok(None);
        }
        let waited = (w.now - doing.begun).as_millis();
        w.counts.longest_wait_ms = w.counts.longest_wait_ms.max(waited);
        if running.spec.interrupted == Some(running.at) && w.random.once_in(8) {
            return Ok(Some("interrupted".into()));
        }
        if w.now < doing.looks && doing.transfer.wrong().is_empty() {
            return Ok(None);
        }
        doing.looks = w.now + LOOK;
        let id = *doing.wait.get_or_insert_with(|| self.watch.wait(running.call));
        let (transfer, begun) = (doing.transfer.clone(), doing.begun);
        match self.watch.look((id, running.call), &*transfer) {
            Ok(()) if w.now - begun > LONGEST + self.slept(w) => {
                Err(format!("{} waits for {:?} without end", self.here, transfer.missing()))
            }
            Ok(()) => Ok(None),
            Err(Vain::Failed(why)) => Err(why),
            Err(Vain::Cause(cause)) => {
                w.check(self, running, &cause)?;
                Ok(Some(w.told.last().cloned().unwrap_or_default()))
            }
        }
    }
    fn slept(&self, w: &World) -> Duration {
        w.facts[self.here].stopped.map_or(Duration::ZERO, |(from, to)| to.min(w.now).saturating_sub(from))
    }
    fn finish(&mut self, w: &mut World, running: &Running) {
        self.watch.finish(running.call, &self.messages.sent());
        let all = self.indices(running.call);
        w.facts[self.here].finished.extend(all);
    }
    fn fail(&mut self, w: &mut World, mut running: Running, why: &str) {
        let facts = &mut w.facts[self.here];
        (facts.waits_since, facts.erred) = (None, Some(w.now));
        facts.given_up.extend(self.places[&running.call].iter().map(|(p, i)| (*p, *i)));
        if let Some(doing) = running.doing.take() {
            doing.transfer.abandon();
            doing.wait.into_iter().for_each(|id| self.watch.over(id));
        }
        self.watch.give_up(running.call, why);
        self.finish(w, &running);
        match self.on_error {
            OnError::GoesOn => (),
            OnError::Ends => self.script.clear(),
            OnError::EndsAll => w.end_all(self.here, why),
        }
    }
}
