//! Waits for other processes: their questions, the causes for which one is in vain, and the end of a process, which waits for the end of the others.
//!
//! INVARIANT: a wait that lasts repeats its question to each process that it waits for, so that a process that does not answer is noticed.
use super::{ASK, Calls, Cause, Farewell, LOOK, TAKES, TELLS, TELLS_PLACE, Text, Wait};
use crate::status::Status;
use std::collections::BTreeMap;
use std::time::Duration;

impl Calls {
    /// A wait in a call; `over` ends it.
    pub fn wait(&mut self, call: u64) -> u64 {
        self.waits_made += 1;
        let (begun, missing) = (self.clock, vec![]);
        let wait = Wait { call, begun, asks: begun, round: 0, missing, circles: BTreeMap::new() };
        self.waits.insert(self.waits_made, wait);
        self.waits_made
    }
    pub fn over(&mut self, wait: u64) {
        self.waits.remove(&wait);
    }
    /// Checks whether a wait for the processes `missing` is in vain, and asks them. Returns those that have sent all their messages for the call, with the
    /// number of messages: if these have arrived and none was for the wait, its cause is [`Calls::alone`].
    pub fn look(&mut self, wait: u64, missing: &[usize]) -> Result<Vec<(usize, u64)>, Cause> {
        let Some(w) = self.waits.get_mut(&wait) else { return Ok(vec![]) };
        w.missing = missing.to_vec();
        let call = w.call;
        self.is_different(call)?;
        let mut complete = vec![];
        for p in missing {
            complete.extend(self.is_in_vain(call, *p)?.map(|sent| (*p, sent)));
        }
        self.lasts_too_long(wait, missing)?;
        self.ask(wait);
        Ok(complete)
    }
    fn text_of(&self, peer: usize, index: u64) -> Option<Text> {
        self.peers.get(&peer)?.made.get(&index)?.text.clone()
    }
    /// An error if the call, or one before it, differs on any of its peers, and the peer's program is known.
    fn is_different(&self, call: u64) -> Result<(), Cause> {
        for (p, index) in self.peers_of(call) {
            let Some(peer) = self.peers.get(&p) else { continue };
            let Some(d) = peer.differs.filter(|d| d.index <= index) else { continue };
            let theirs = peer.texts.get(&d.index);
            let known = peer.compared && theirs.is_some_and(|t| t.1);
            if known || self.clock > d.since + TELLS {
                let theirs = theirs.filter(|t| t.1 && !t.0.is_empty()).map(|t| t.0.clone());
                let (index, first, mine) = (d.index, peer.compared, self.text_of(p, d.index));
                return Err(Cause::Different { peer: p, index, first, mine, theirs });
            }
        }
        Ok(())
    }
    /// An error if a peer will not come to a call any more; else the number of messages that it has sent, if it sends nothing more.
    fn is_in_vain(&self, call: u64, p: usize) -> Result<Option<u64>, Cause> {
        let Some(peer) = self.peers.get(&p) else { return Ok(None) };
        if peer.died {
            return Err(Cause::Died { peer: p });
        }
        let Some(index) = self.index(call, p) else { return Ok(None) };
        if let Some((why, at)) = peer.given_up.get(&index) {
            let place = peer.place.as_ref().filter(|(_, said)| said >= at);
            if place.is_none() && self.clock <= *at + TELLS_PLACE {
                return Ok(None);
            }
            let place = place.map(|p| p.0.clone()).unwrap_or_default();
            return Err(Cause::GivenUp { peer: p, why: why.clone(), place });
        }
        if let Some((calls, _)) = peer.ended
            && calls <= index
        {
            return Err(Cause::Ended { peer: p, calls, index, mine: self.text_of(p, index) });
        }
        let sent = peer.finished.get(&index).map(|f| f.0).or(peer.ended.map(|e| e.1));
        Ok(sent.filter(|_| peer.same == Some(index)))
    }
    /// The error of a wait for a peer that has finished the call without it.
    pub fn alone(&self, wait: u64, peer: usize) -> Option<Cause> {
        let index = self.index(self.waits.get(&wait)?.call, peer)?;
        Some(Cause::Finished { peer, index, mine: self.text_of(peer, index) })
    }
    /// Whether a peer that only receives has had time to take its message since it finished the call.
    pub fn has_taken_long(&self, wait: u64, peer: usize) -> bool {
        let index = self.waits.get(&wait).and_then(|w| self.index(w.call, peer));
        let since = index.and_then(|i| self.peers.get(&peer)?.finished.get(&i)).map(|f| f.1);
        since.is_some_and(|at| self.clock > at + TAKES)
    }
    fn silent(&self, peers: &[usize]) -> Vec<usize> {
        let Some(bound) = self.bounds.silence else { return vec![] };
        let due = |p: &&usize| self.peers.get(p).and_then(|x| x.due).is_some_and(|due| self.clock > due + bound);
        peers.iter().filter(due).copied().collect()
    }
    fn lasts_too_long(&mut self, wait: u64, missing: &[usize]) -> Result<(), Cause> {
        let peers = self.silent(missing);
        if !peers.is_empty() {
            return Err(Cause::Silent { peers });
        }
        let (clock, bounds) = (self.clock, self.bounds);
        let Some(w) = self.waits.get_mut(&wait) else { return Ok(()) };
        let fresh = 4 * bounds.ask() + LOOK;
        w.circles
            .retain(|path, (_, last)| clock <= *last + fresh && path.get(1).is_some_and(|p| missing.contains(&p.0)));
        let lasting = w.circles.iter().find(|(_, (since, last))| bounds.circle.is_some_and(|b| *last > *since + b));
        match lasting {
            Some((path, _)) => Err(Cause::Circle { processes: path.iter().map(|p| p.0).collect() }),
            None => Ok(()),
        }
    }
    /// Asks the processes that a wait is for whether they make the same call, and for a sign of life.
    fn ask(&mut self, wait: u64) {
        let (clock, ask) = (self.clock, self.bounds.ask());
        let Some(w) = self.waits.get_mut(&wait) else { return };
        if clock < w.asks {
            return;
        }
        w.asks = clock + if clock < w.begun + 5 * LOOK { LOOK.min(ask) } else { ask };
        w.round += 1;
        let (call, round) = (w.call, w.round);
        for p in w.missing.clone() {
            let status = match self.index(call, p) {
                Some(index) => match self.peers.get(&p).and_then(|x| x.made.get(&index)) {
                    Some(mine) => Status::Waits { index, digest: mine.digest, wait, round },
                    None => Status::Ping,
                },
                None => Status::Ping,
            };
            self.expect(p, status);
        }
    }
    /// Sends a peer the questions that it has to answer.
    fn expect(&mut self, p: usize, status: Status) {
        if let Some(peer) = self.peers.get_mut(&p) {
            peer.due.get_or_insert(self.clock);
        }
        self.tell(p, status);
    }

    // ---- the end

    /// Reports that this process makes no more calls; `sent`: the number of its messages to each process.
    pub fn end(&mut self, sent: &[u64]) {
        self.farewell = Some((self.clock, self.clock));
        let all: Vec<(usize, u64)> = self.peers.iter().map(|(p, x)| (*p, x.calls)).collect();
        for (p, calls) in all {
            self.tell(p, Status::Ended { calls, sent: sent.get(p).copied().unwrap_or_default() });
        }
    }
    /// Whether all processes have ended; they have `timeout` after the end of this one.
    pub fn farewell(&mut self, timeout: Option<Duration>) -> Farewell {
        let late: Vec<usize> = self.peers.iter().filter(|(_, x)| x.ended.is_none()).map(|(p, _)| *p).collect();
        if late.is_empty() {
            return Farewell::Over;
        }
        if late.iter().any(|p| self.peers[p].died) {
            return Farewell::Died;
        }
        let silent = self.silent(&late);
        if !silent.is_empty() {
            return Farewell::Silent(silent);
        }
        let Some((begun, asks)) = &mut self.farewell else { return Farewell::Waits };
        if timeout.is_some_and(|t| self.clock > *begun + t) {
            return Farewell::Late(late);
        }
        if self.clock >= *asks {
            *asks = self.clock + timeout.map_or(ASK, |t| t / 4).min(self.bounds.ask());
            late.into_iter().for_each(|p| self.expect(p, Status::Ping));
        }
        Farewell::Waits
    }
}
