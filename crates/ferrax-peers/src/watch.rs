//! The state of the other processes over a [`Wire`] of its own, which a thread pumps several times a second.
//!
//! INVARIANT: no lock is held while texts are created or dropped, or an [`Awaited`] is used: they may need the host's lock.
use super::calls::{Bounds, Calls, Cause, Farewell, Text};
use super::transfers::Transfer;
use super::{Sending, Wire};
use crate::status::Status;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The messages that a process waits for.
pub trait Awaited {
    /// The processes that have not sent yet; if there is none, those that have not taken this process's messages yet.
    fn missing(&self) -> Result<Vec<usize>, String>;
    /// The processes whose message belongs to another program.
    fn wrong(&self) -> Result<Vec<usize>, String>;
    fn receives_from(&self, peer: usize) -> Result<bool, String>;
    /// Whether a process that has sent `sent` messages in all has not sent one for this.
    fn has_none(&self, peer: usize, sent: u64) -> Result<bool, String>;
}
impl Awaited for Transfer {
    fn missing(&self) -> Result<Vec<usize>, String> {
        Ok(Transfer::missing(self))
    }
    fn wrong(&self) -> Result<Vec<usize>, String> {
        Ok(Transfer::wrong(self))
    }
    fn receives_from(&self, peer: usize) -> Result<bool, String> {
        Ok(Transfer::receives_from(self, peer))
    }
    fn has_none(&self, peer: usize, sent: u64) -> Result<bool, String> {
        Transfer::has_none(self, peer, sent)
    }
}
/// Why a wait ends without its messages.
pub enum Vain {
    Cause(Cause),
    /// The wire has failed.
    Failed(String),
}
impl From<Cause> for Vain {
    fn from(c: Cause) -> Vain {
        Vain::Cause(c)
    }
}
impl From<String> for Vain {
    fn from(why: String) -> Vain {
        Vain::Failed(why)
    }
}

struct Line {
    /// `None` once closed.
    wire: Option<Box<dyn Wire>>,
    sends: Vec<Box<dyn Sending>>,
}
pub struct Watch {
    size: usize,
    here: usize,
    calls: Mutex<Calls>,
    line: Mutex<Line>,
}
impl Watch {
    pub fn new(wire: Box<dyn Wire>, here: usize, size: usize, bounds: Bounds) -> Arc<Watch> {
        let line = Mutex::new(Line { wire: Some(wire), sends: vec![] });
        Arc::new(Watch { size, here, calls: Mutex::new(Calls::new(here, size, bounds)), line })
    }
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Receives the reports of the others, and answers them. `now`: the time, of a clock that does not go back.
    pub fn pump(&self, now: Duration) -> Result<(), String> {
        {
            let line = self.line();
            self.calls().tick(now);
            if let Some(wire) = &line.wire {
                for p in (0..self.size).filter(|p| *p != self.here) {
                    while let Some(bytes) = wire.take(p, None)? {
                        let status = Status::read(&bytes)
                            .ok_or_else(|| format!("process {p} has sent a status that this one cannot read"))?;
                        self.calls().heard(p, status);
                    }
                }
            }
        }
        self.flush()
    }
    /// Sends the messages that are ready.
    fn flush(&self) -> Result<(), String> {
        let wanted = self.calls().texts_wanted();
        for (p, index, text) in wanted {
            let text = text.map(|t| t()).unwrap_or_default();
            self.calls().text(p, index, &text);
        }
        let mut line = self.line();
        let out = self.calls().outgoing();
        let Line { wire, sends } = &mut *line;
        let Some(wire) = wire else { return Ok(()) };
        for (p, status) in out {
            sends.push(wire.send(p, 0, Arc::new(status.bytes()))?);
        }
        sends.retain_mut(|s| !matches!(s.is_done(), Ok(true)));
        Ok(())
    }
    /// Whether all reports have been sent.
    pub fn is_sent(&self) -> bool {
        let line = self.line();
        line.sends.is_empty() && !self.calls().has_outgoing()
    }
    /// From now on nothing uses the wire.
    pub fn close(&self) {
        self.line().wire = None;
    }

    /// See [`Calls::call`].
    pub fn call(&self, peers: &[usize], digest: u64, text: &Text) -> u64 {
        let mut calls = self.calls();
        let number = calls.call(peers, digest, text);
        let forgotten = calls.forgotten();
        drop(calls);
        drop(forgotten);
        number
    }
    /// See [`Calls::give_up`].
    pub fn give_up(&self, call: u64, why: &str) {
        self.calls().give_up(call, why);
    }
    /// See [`Calls::finish`].
    pub fn finish(&self, call: u64, sent: &[u64]) {
        let mut calls = self.calls();
        calls.finish(call, sent);
        let forgotten = calls.forgotten();
        drop(calls);
        drop(forgotten);
    }
    /// See [`Calls::died`].
    pub fn died(&self, peer: usize) {
        self.calls().died(peer);
    }
    pub fn dead(&self) -> Vec<usize> {
        self.calls().dead()
    }
    pub fn has_ended(&self, peer: usize) -> bool {
        self.calls().has_ended(peer)
    }
    pub fn set_bounds(&self, bounds: Bounds) {
        self.calls().set_bounds(bounds);
    }
    pub fn is_place_wanted(&self) -> bool {
        self.calls().is_place_wanted()
    }
    /// Answers those that have asked where this process's program is.
    pub fn place(&self, place: &str) {
        self.calls().place(place);
    }
    pub fn place_of(&self, peer: usize) -> Option<String> {
        self.calls().place_of(peer)
    }
    pub fn wait(&self, call: u64) -> u64 {
        self.calls().wait(call)
    }
    pub fn over(&self, wait: u64) {
        self.calls().over(wait);
    }
    /// Checks whether a wait in a call is in vain, as far as is known; its questions are sent when the watch is pumped.
    pub fn look(&self, (wait, call): (u64, u64), of: &dyn Awaited) -> Result<(), Vain> {
        let (missing, wrong) = (of.missing()?, of.wrong()?);
        let complete = {
            let mut calls = self.calls();
            wrong.into_iter().for_each(|p| calls.is_other(call, p));
            calls.look(wait, &missing)?
        };
        for (p, sent) in complete {
            let in_vain = match of.receives_from(p)? {
                true => of.has_none(p, sent)?,
                false => self.calls().has_taken_long(wait, p),
            };
            if in_vain && let Some(cause) = self.calls().alone(wait, p) {
                return Err(cause.into());
            }
        }
        Ok(())
    }
    /// Reports that this process makes no more calls.
    pub fn end(&self, sent: &[u64]) {
        self.calls().end(sent);
    }
    /// See [`Calls::farewell`].
    pub fn farewell(&self, timeout: Option<Duration>) -> Farewell {
        self.calls().farewell(timeout)
    }
}
