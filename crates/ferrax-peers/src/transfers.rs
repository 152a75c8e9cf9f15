//! Messages between processes over a [`Wire`].
//!
//! ```text
//! short   one piece: a header (number, digest, length) and the bytes
//! long    the header, then the bytes in pieces, received where they stay
//! ```
//!
//! Pieces between two processes with one tag arrive in the order in which they were sent. A message that arrives before this process asks for it is kept.
//!
//! INVARIANT: memory that the wire reads or writes is kept until it is done, also for transfers that are given up; nothing uses the wire after `close`.
use super::{Receiving, Sending, Wire};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most bytes of a message in one piece: MPI libraries send as many without an answer of the receiver, so that it does not wait for the sender
/// when it takes one.
const SHORT: usize = 3 << 10;
const HEADER: usize = 24;

/// A message that has begun to arrive.
struct Arriving {
    digest: u64,
    data: Data,
}
enum Data {
    Here(Vec<u8>),
    Coming(Box<dyn Receiving>),
}
struct State {
    /// `None` once closed.
    wire: Option<Box<dyn Wire>>,
    tags: u64,
    /// How many messages were sent to each process, and taken from each.
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// Messages that no transfer has asked for yet, by sender and number.
    early: HashMap<(usize, u64), Arriving>,
    /// The memory of transfers that were given up.
    abandoned_sends: Vec<Box<dyn Sending>>,
    abandoned: Vec<Box<dyn Receiving>>,
}
/// A process's messages over one communicator.
pub struct Messages {
    state: Mutex<State>,
    /// The process that created it: a forked child may find the lock held, and must not use the wire.
    owner: u32,
}

fn closed() -> String {
    "this process has ended its communication with the other processes of the run".into()
}
impl State {
    fn wire(&self) -> Result<&dyn Wire, String> {
        self.wire.as_deref().ok_or_else(closed)
    }
    fn tag(&self, number: u64) -> i32 {
        (number % self.tags) as i32
    }
    fn send(
        &mut self,
        to: usize,
        number: u64,
        digest: u64,
        data: &Arc<Vec<u8>>,
        sends: &mut Sends,
    ) -> Result<(), String> {
        let (tag, wire) = (self.tag(number), self.wire()?);
        let mut head = Vec::with_capacity(HEADER + if data.len() <= SHORT { data.len() } else { 0 });
        for word in [number, digest, data.len() as u64] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        if data.len() <= SHORT {
            head.extend_from_slice(data);
            sends.push((to, wire.send(to, tag, Arc::new(head))?));
        } else {
            sends.push((to, wire.send(to, tag, Arc::new(head))?));
            sends.push((to, wire.send(to, tag, data.clone())?));
        }
        self.sent[to] += 1;
        Ok(())
    }
    /// Takes a message that has begun to arrive, for any transfer. Whether there was one.
    fn take(&mut self, from: usize, tag: Option<i32>) -> Result<bool, String> {
        let Some(mut piece) = self.wire()?.take(from, tag)? else { return Ok(false) };
        let word = |k: usize| piece.get(8 * k..8 * k + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let (Some(number), Some(digest), Some(length)) = (word(0), word(1), word(2)) else {
            return Err(format!("process {from} has sent a message without a header"));
        };
        let data = if length as usize <= SHORT {
            piece.drain(..HEADER);
            Data::Here(piece)
        } else {
            Data::Coming(self.wire()?.receive(from, self.tag(number), length as usize)?)
        };
        self.early.insert((from, number), Arriving { digest, data });
        self.taken[from] += 1;
        Ok(true)
    }
    /// Keeps memory in which bytes may still arrive.
    fn abandon(&mut self, data: Data) {
        if let Data::Coming(receiving) = data {
            self.abandoned.push(receiving);
        }
    }
    /// Forgets the abandoned transfers that have completed.
    fn clear(&mut self) {
        if self.wire.is_some() {
            self.abandoned_sends.retain_mut(|s| !matches!(s.is_done(), Ok(true)));
            self.abandoned.retain_mut(|r| !matches!(r.taken(), Ok(Some(_))));
        }
    }
}
impl Messages {
    /// The messages of one of `size` processes, over a wire with so many tags.
    pub fn new(wire: Box<dyn Wire>, tags: u64, size: usize) -> Arc<Messages> {
        let (sent, taken) = (vec![0; size], vec![0; size]);
        let (abandoned_sends, abandoned) = (vec![], vec![]);
        let wire = Some(wire);
        let state = State { wire, tags: tags.max(1), sent, taken, early: HashMap::new(), abandoned_sends, abandoned };
        Arc::new(Messages { state: Mutex::new(state), owner: std::process::id() })
    }
    /// How many messages this process has sent to each.
    pub fn sent(&self) -> Vec<u64> {
        self.lock().sent.clone()
    }
    /// How many messages this process has taken from each.
    pub fn taken(&self) -> Vec<u64> {
        self.lock().taken.clone()
    }
    /// From now on nothing uses the wire.
    pub fn close(&self) {
        self.lock().wire = None;
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Begins to send messages, and to receive one from each of `from`.
    pub fn begin(
        self: &Arc<Messages>,
        (number, digest): (u64, u64),
        to: &[(usize, Arc<Vec<u8>>)],
        from: &[usize],
    ) -> Result<Arc<Transfer>, String> {
        let mut s = self.lock();
        s.clear();
        let found = from.iter().map(|_| None).collect();
        let mut moving = Moving { sends: vec![], found, wrong: vec![] };
        let begun = to.iter().try_for_each(|(p, data)| s.send(*p, number, digest, data, &mut moving.sends));
        drop(s);
        let t = Transfer { all: self.clone(), number, digest, from: from.to_vec(), moving: Mutex::new(moving) };
        begun.map(|()| Arc::new(t)) // where it has failed, its drop keeps what was begun
    }
}

type Sends = Vec<(usize, Box<dyn Sending>)>;
/// Messages to and from other processes, on their way.
pub struct Transfer {
    all: Arc<Messages>,
    number: u64,
    digest: u64,
    from: Vec<usize>,
    moving: Mutex<Moving>,
}
struct Moving {
    sends: Sends,
    found: Vec<Option<Data>>,
    /// Processes whose message belongs to another program.
    wrong: Vec<usize>,
}
impl Moving {
    /// Looks for the message of the k-th sender. Whether all of it has arrived.
    fn look(&mut self, s: &mut State, t: &Transfer, k: usize) -> Result<bool, String> {
        let key = (t.from[k], t.number);
        if self.found[k].is_none() && !self.wrong.contains(&key.0) {
            if !s.early.contains_key(&key) {
                s.take(key.0, Some(s.tag(t.number)))?;
            }
            let Some(a) = s.early.remove(&key) else { return Ok(false) };
            if a.digest == t.digest {
                self.found[k] = Some(a.data);
            } else {
                self.wrong.push(key.0);
                s.abandon(a.data);
            }
        }
        if let Some(Data::Coming(receiving)) = &mut self.found[k] {
            s.wire()?;
            match receiving.taken()? {
                Some(bytes) => self.found[k] = Some(Data::Here(bytes)),
                None => return Ok(false),
            }
        }
        Ok(self.found[k].is_some())
    }
}
impl Transfer {
    fn lock(&self) -> MutexGuard<'_, Moving> {
        self.moving.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The messages, once, when all have arrived and this process's own have left.
    pub fn poll(&self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let (mut m, mut s) = (self.lock(), self.all.lock());
        let mut all = true;
        for k in 0..self.from.len() {
            all &= m.look(&mut s, self, k)?;
        }
        s.wire()?;
        let mut k = 0;
        while k < m.sends.len() {
            if m.sends[k].1.is_done()? {
                m.sends.swap_remove(k);
            } else {
                k += 1;
            }
        }
        if !all || !m.sends.is_empty() {
            return Ok(None);
        }
        let here = |d: &mut Option<Data>| match d.take() {
            Some(Data::Here(bytes)) => bytes,
            _ => vec![],
        };
        Ok(Some(m.found.iter_mut().map(here).collect()))
    }
    /// The processes whose message belongs to another program.
    pub fn wrong(&self) -> Vec<usize> {
        self.lock().wrong.clone()
    }
    /// The processes that have not sent yet; if there is none, those that have not taken this process's messages yet.
    pub fn missing(&self) -> Vec<usize> {
        let m = self.lock();
        let is_here = |d: &Option<Data>| matches!(d, Some(Data::Here(_)));
        let mut missing: Vec<usize> =
            self.from.iter().zip(&m.found).filter(|(_, d)| !is_here(d)).map(|(p, _)| *p).collect();
        if missing.is_empty() {
            missing.extend(m.sends.iter().map(|s| s.0));
            missing.sort_unstable();
            missing.dedup();
        }
        missing
    }
    /// Whether a message is expected from a process.
    pub fn receives_from(&self, peer: usize) -> bool {
        self.from.contains(&peer)
    }
    /// Whether a process that has sent `sent` messages in all has not sent one for this: all of them have arrived.
    pub fn has_none(&self, peer: usize, sent: u64) -> Result<bool, String> {
        let (mut m, mut s) = (self.lock(), self.all.lock());
        while s.take(peer, None)? {}
        let Some(k) = self.from.iter().position(|p| *p == peer) else { return Ok(false) };
        m.look(&mut s, self, k)?;
        Ok(s.taken[peer] >= sent && m.found[k].is_none() && !m.wrong.contains(&peer))
    }
    /// Gives the transfer up: messages under way complete by themselves.
    pub fn abandon(&self) {
        let (mut m, mut s) = (self.lock(), self.all.lock());
        let sends = std::mem::take(&mut m.sends);
        s.abandoned_sends.extend(sends.into_iter().map(|(_, send)| send));
        m.found.iter_mut().filter_map(Option::take).for_each(|data| s.abandon(data));
    }
}
impl Drop for Transfer {
    fn drop(&mut self) {
        if std::process::id() == self.all.owner {
            self.abandon();
        }
    }
}
