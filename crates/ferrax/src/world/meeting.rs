//! Devices of one process in a collective: each hands in bytes for all ([`Meetings::talk`]), or lends its memory for as long as others use it
//! ([`Meetings::lend`]).
//!
//! ```text
//! lend:  a device shows its operand -- it uses those that it needs, once they are there -- it waits until no other uses its own
//! ```
//!
//! INVARIANT: memory is used only between `begin` and `done` of its user, and its owner stays in `lend` until every device that may begin has begun
//! and is done, or no device can begin any more: after a failure none begins.
#![allow(unsafe_code)]
use ferrax_kernel::collective::{share, unequal};
use ferrax_kernel::{Error, Res};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The members of a group, the number of its meeting, and the step of the meeting.
pub type MeetingKey = (Arc<[usize]>, u64, u8);
/// A device's place in its group, and the places of all devices of this process in it, in order.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    pub key: &'a MeetingKey,
    pub at: usize,
    pub locals: &'a [usize],
}
impl Seat<'_> {
    /// The index of the device among those of this process.
    pub fn number(&self) -> usize {
        self.locals.iter().position(|l| *l == self.at).unwrap_or_default()
    }
}
/// The bytes that devices hand in, in the order of their places.
pub type Posts = Vec<Arc<Vec<u8>>>;

#[derive(Default)]
pub struct Meetings {
    state: Mutex<State>,
    changed: Condvar,
}
#[derive(Default)]
struct State {
    talks: HashMap<MeetingKey, Talk>,
    loans: HashMap<MeetingKey, Loan>,
    failed: Option<Error>,
    /// The devices of this process whose programs have ended.
    ended: Vec<usize>,
}
#[derive(Default)]
struct Talk {
    posts: HashMap<usize, Arc<Vec<u8>>>,
    /// The result that the last device computed from them, or received from other processes.
    said: Option<Arc<Posts>>,
    left: usize,
}
#[derive(Default)]
struct Loan {
    shown: HashMap<usize, Shown>,
    began: Vec<usize>,
    done: Vec<usize>,
    left: usize,
}
/// The memory of an operand, and of a result that other devices write to as well.
#[derive(Clone, Copy)]
struct Shown {
    operand: (*const u8, usize),
    result: (*mut u8, usize),
}
// SAFETY: pointers to memory whose owner waits in `lend`, which proves each use.
unsafe impl Send for Shown {}

/// The parts of results that a device writes.
pub enum Writes<'a> {
    /// It writes no result through the meeting.
    Nothing,
    /// It writes its share, in blocks of so many bytes, of the result of each device of this process; this is its own result.
    Shares(&'a mut [u8], usize),
}
/// Uses the operands that a device reads, and its shares of the results.
pub type Use<'a> = dyn FnMut(&[&[u8]], &mut [&mut [u8]]) -> Res<()> + 'a;

impl Meetings {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn wait<'a>(&self, s: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(s).unwrap_or_else(|e| e.into_inner())
    }
    /// Ends every meeting, now and later.
    pub fn fail(&self, e: &Error) {
        self.lock().failed.get_or_insert_with(|| e.clone());
        self.changed.notify_all();
    }
    /// The program of a device has ended.
    pub fn end(&self, device: usize) {
        self.lock().ended.push(device);
        self.changed.notify_all();
    }
    /// Hands in bytes. The last device of this process calls `speak` with the bytes of all, and all get its result.
    pub fn talk(
        &self,
        seat: Seat,
        bytes: Vec<u8>,
        speak: impl FnOnce(&Posts) -> Res<Posts>,
    ) -> Res<(Posts, Arc<Posts>)> {
        let Seat { key, at, locals } = seat;
        let mut s = self.lock();
        let talk = s.talks.entry(key.clone()).or_default();
        talk.posts.insert(at, Arc::new(bytes));
        let posts = |talk: &Talk| locals.iter().map(|l| talk.posts.get(l).cloned()).collect::<Option<Posts>>();
        if let Some(all) = posts(talk) {
            drop(s);
            let said = speak(&all).inspect_err(|e| self.fail(e))?;
            s = self.lock();
            s.talks.entry(key.clone()).or_default().said = Some(Arc::new(said));
            self.changed.notify_all();
        }
        loop {
            if let Some(e) = &s.failed {
                return Err(e.clone());
            }
            if let Some(talk) = s.talks.get_mut(key)
                && let (Some(said), Some(all)) = (talk.said.clone(), posts(talk))
            {
                talk.left += 1;
                if talk.left == locals.len() {
                    s.talks.remove(key);
                }
                return Ok((all, said));
            }
            let has = |s: &State, place: usize| s.talks.get(key).is_some_and(|t| t.posts.contains_key(&place));
            if let Some(place) = locals.iter().find(|p| !has(&s, **p) && s.ended.contains(&key.0[**p])) {
                return Err(super::alone(key.0[*place]));
            }
            s = self.wait(s);
        }
    }
    /// Lends an operand to the devices at `readers`, while this one uses the operands of those at `reads`, and its shares of results.
    pub fn lend(
        &self,
        seat: Seat,
        mine: &[u8],
        writes: Writes,
        (reads, readers): (&[usize], &[usize]),
        using: &mut Use,
    ) -> Res<()> {
        let Seat { key, at, locals } = seat;
        let (result, block) = match writes {
            Writes::Nothing => ((std::ptr::null_mut(), 0), None),
            Writes::Shares(out, block) => ((out.as_mut_ptr(), out.len()), Some(block)),
        };
        let mut s = self.lock();
        s.loans
            .entry(key.clone())
            .or_default()
            .shown
            .insert(at, Shown { operand: (mine.as_ptr(), mine.len()), result });
        self.changed.notify_all();
        let began = loop {
            if let Some(e) = &s.failed {
                break Err(e.clone());
            }
            let State { loans, ended, .. } = &mut *s;
            let loan = loans.entry(key.clone()).or_default();
            let writers: &[usize] = if block.is_some() { locals } else { &[] };
            let shown = |all: &[usize]| {
                all.iter().map(|p| loan.shown.get(p).copied()).collect::<Option<SmallVec<[Shown; 8]>>>()
            };
            if let (Some(read), Some(written)) = (shown(reads), shown(writers)) {
                loan.began.push(at);
                break Ok((read, written));
            }
            let missing = |p: &&usize| !loan.shown.contains_key(*p);
            if let Some(place) = reads.iter().chain(writers).filter(missing).find(|p| ended.contains(&key.0[**p])) {
                break Err(super::alone(key.0[*place]));
            }
            s = self.wait(s);
        };
        drop(s);
        let made = match began {
            Err(e) => Ok(Err(e)),
            Ok((read, written)) => {
                let used = Used { all: self, key, at };
                let uses = || use_memory((&read, &written), seat, block, using);
                let made = catch_unwind(AssertUnwindSafe(uses));
                match &made {
                    Ok(Ok(())) => (),
                    Ok(Err(e)) => self.fail(e),
                    Err(_) => self.fail(&Error::Invalid("a device has panicked in a collective".into())),
                }
                drop(used);
                made
            }
        };
        match made {
            Ok(made) => self.leave(seat, readers, block.is_some(), made),
            Err(panic) => {
                drop(self.leave(seat, readers, block.is_some(), Err(Error::Cancelled)));
                resume_unwind(panic)
            }
        }
    }
    /// Waits until no device uses what this device lent.
    fn leave(&self, seat: Seat, readers: &[usize], shared: bool, made: Res<()>) -> Res<()> {
        let Seat { key, at, locals } = seat;
        let mut s = self.lock();
        loop {
            let over = s.failed.is_some() || made.is_err();
            let State { loans, ended, failed, .. } = &mut *s;
            let loan = loans.entry(key.clone()).or_default();
            if over {
                loan.shown.remove(&at); // no device begins to use it any more
            }
            let users = if shared { locals } else { readers };
            let busy = |u: &usize| !loan.done.contains(u) && (!over || loan.began.contains(u));
            let gone = |u: &usize| !loan.began.contains(u) && ended.contains(&key.0[*u]);
            if !users.iter().any(|u| *u != at && busy(u) && !gone(u)) {
                loan.left += 1;
                if loan.left == locals.len() {
                    loans.remove(key);
                }
                return match (&*failed, made) {
                    (Some(e), Ok(())) if shared => Err(e.clone()),
                    (_, made) => made,
                };
            }
            s = self.wait(s);
        }
    }
}
/// Notes, also if it panics, that a device uses no others' memory any more.
struct Used<'a> {
    all: &'a Meetings,
    key: &'a MeetingKey,
    at: usize,
}
impl Drop for Used<'_> {
    fn drop(&mut self) {
        if let Some(loan) = self.all.lock().loans.get_mut(self.key) {
            loan.done.push(self.at);
        }
        self.all.changed.notify_all();
    }
}
/// Calls `using` with the memory that was shown. The device is in `began` and not in `done`.
fn use_memory((read, written): (&[Shown], &[Shown]), seat: Seat, block: Option<usize>, using: &mut Use) -> Res<()> {
    let n = written.first().map_or(0, |w| w.result.1);
    if written.iter().any(|w| w.result.1 != n) || read.iter().any(|r| r.operand.1 != read[0].operand.1) {
        return Err(unequal());
    }
    // SAFETY: each owner waits in `lend` until this device is done, and so has borrowed the operand that long; no device writes operands.
    let operands: SmallVec<[&[u8]; 8]> =
        read.iter().map(|r| unsafe { std::slice::from_raw_parts(r.operand.0, r.operand.1) }).collect();
    let own = block.map_or(0..0, |block| share(seat.number(), seat.locals.len(), n, block));
    // SAFETY: as above, for results that their owners have borrowed mutably and do not touch but in this way; shares of devices are disjoint, as all
    // results have one length, and the devices of a meeting one list of places and one size of blocks.
    let mut shares: SmallVec<[&mut [u8]; 8]> = written
        .iter()
        .map(|w| unsafe { std::slice::from_raw_parts_mut(w.result.0.add(own.start), own.len()) })
        .collect();
    using(&operands, &mut shares)
}
