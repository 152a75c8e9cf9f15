//! Collectives of devices in several processes: each process sends once what its devices have together.
//!
//! ```text
//! all-reduce      each process sends every other process its share of the sum of its own devices, combines its own share, and sends the result to all
//! reduce-scatter  for the chunk of each device of another process, the sum over the devices of this process
//! permute         the operand itself, between the two devices alone
//! ```
//!
//! INVARIANT: all processes of a group send and expect the same messages: both follow from the process of each device, the sizes, and the order of combination.
use super::meeting::{Posts, Seat};
use super::{Meeting, leaves};
use crate::processes::{Exchange, MeetingId, Message, Transport};
use ferrax_kernel::collective::tree::{nodes, width};
use ferrax_kernel::collective::{Collective, Term, combine_terms, share, unequal};
use ferrax_kernel::error::{copied, filled};
use ferrax_kernel::{Error, Res};
use rustc_hash::FxHasher;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a process must know about the others of a mesh to meet them.
pub struct Remote {
    /// This process.
    pub here: usize,
    /// The process of each device.
    pub hosts: Vec<usize>,
    /// The number of the run on this mesh; all processes number their runs alike.
    pub run: u64,
    /// Of all runs on this mesh so far: [`MeetingId::digest`].
    pub digest: u64,
    /// The call, as the transport numbered it.
    pub call: u64,
    pub transport: Arc<dyn Transport>,
}

/// How often a thread polls before it sleeps, least and most: it notices a message that arrives soon, and leaves the core to a thread that needs
/// one to send it.
const SPINS_FOR: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(200)];
thread_local! {
    static SPINS: Cell<Duration> = const { Cell::new(SPINS_FOR[1]) };
}
/// How often to poll in the next wait, after one that could poll `spins` times: more often if that was enough, half as often if not.
fn next_spins(spins: Duration, waited: Duration) -> Duration {
    let next = if waited <= spins { spins * 3 / 2 } else { spins / 2 };
    next.clamp(SPINS_FOR[0], SPINS_FOR[1])
}
/// Waits for messages, and looks in between whether the run was stopped.
fn arrived(exchange: &mut dyn Exchange) -> Res<Posts> {
    let (begun, token) = (Instant::now(), ferrax_runtime::current());
    let spins = SPINS.get();
    let (mut told, mut pause) = (10, Duration::ZERO);
    loop {
        if let Some(messages) = exchange.poll()? {
            SPINS.set(next_spins(spins, begun.elapsed()));
            return Ok(messages.into_iter().map(Arc::new).collect());
        }
        if token.as_ref().is_some_and(|t| t.load(Ordering::Relaxed)) {
            exchange.cancel();
            return Err(Error::Cancelled);
        }
        let waited = begun.elapsed();
        if waited < spins {
            std::hint::spin_loop();
            continue;
        }
        if waited.as_secs() >= told {
            exchange.complain(waited.as_secs())?;
            told *= 2;
        }
        std::thread::sleep(pause);
        pause = (pause + Duration::from_micros(2)).min(Duration::from_millis(1));
    }
}
/// The next bytes of a message.
fn taken<'a>(message: &mut &'a [u8], n: usize) -> Res<&'a [u8]> {
    let (head, rest) = message.split_at_checked(n).ok_or_else(unequal)?;
    *message = rest;
    Ok(head)
}

/// A collective between processes.
struct Between<'a> {
    m: &'a Meeting<'a>,
    remote: &'a Remote,
    /// The other processes of the group, in order.
    peers: Vec<usize>,
}
impl Meeting<'_> {
    pub(super) fn between(&self, remote: &Remote, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let mut peers: Vec<usize> = self.seat.key.0.iter().map(|d| remote.hosts[*d]).collect();
        peers.sort_unstable();
        peers.dedup();
        peers.retain(|p| *p != remote.here);
        let b = Between { m: self, remote, peers };
        match self.kind {
            Collective::AllReduce(_) => b.all_reduce(mine, out),
            Collective::ReduceScatter(_) => b.reduce_scatter(mine, out),
            Collective::Permute(_) => b.permute(mine, out),
            _ => b.moved(mine, out),
        }
    }
}
impl Between<'_> {
    fn seat(&self) -> Seat<'_> {
        self.m.seat
    }
    /// The process of the device at a place of the group.
    fn host(&self, place: usize) -> usize {
        self.remote.hosts[self.seat().key.0[place]]
    }
    /// The places of a process's devices in the group.
    fn places(&self, process: usize) -> Vec<usize> {
        (0..self.m.size()).filter(|at| self.host(*at) == process).collect()
    }
    /// The nodes of the tree that a process has.
    fn nodes(&self, process: usize) -> Vec<Range<usize>> {
        nodes(self.m.size(), &|at| self.host(at) == process)
    }
    /// All processes of the group, in order; each has a share of the blocks.
    fn shares(&self, n: usize) -> Vec<(usize, Range<usize>)> {
        let mut all = self.peers.clone();
        all.push(self.remote.here);
        all.sort_unstable();
        let of = all.len();
        all.into_iter().enumerate().map(|(k, p)| (p, share(k, of, n, self.m.block()))).collect()
    }
    /// Begins to send messages, and to receive those from `from`; `step` distinguishes the exchanges of one collective.
    fn begin(&self, step: (usize, usize), to: &[Message], from: &[usize]) -> Res<Box<dyn Exchange>> {
        let (members, number, _) = self.seat().key;
        let mut h = FxHasher::default();
        (self.remote.run, members, number, step).hash(&mut h);
        let id = MeetingId { number: h.finish(), digest: self.remote.digest, call: self.remote.call };
        let moved = &self.m.mesh.moved;
        moved.sent_bytes.fetch_add(to.iter().map(|m| m.1.len() as u64).sum(), Ordering::Relaxed);
        moved.sent_messages.fetch_add(to.len() as u64, Ordering::Relaxed);
        self.remote.transport.begin(id, to, from)
    }
    /// Sends each peer its message, and returns the messages of the peers.
    fn exchange(&self, step: usize, messages: Vec<Vec<u8>>) -> Res<Posts> {
        let to: Vec<Message> = self.peers.iter().zip(messages).map(|(p, m)| (*p, Arc::new(m))).collect();
        arrived(&mut *self.begin((step, 0), &to, &self.peers)?)
    }
    /// As `exchange`, with one message for all.
    fn tell(&self, step: usize, message: Vec<u8>) -> Res<Posts> {
        let message = Arc::new(message);
        let to: Vec<Message> = self.peers.iter().map(|p| (*p, message.clone())).collect();
        arrived(&mut *self.begin((step, 0), &to, &self.peers)?)
    }

    fn all_reduce(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let (c, size, n) = (self.m.combiner()?, self.m.size(), mine.len());
        let (block, element) = (self.m.block(), c.element());
        let locals = self.seat().locals;
        let own_nodes = self.nodes(self.remote.here);
        // the bytes of a node in a range of elements
        let scaled = |span: &Range<usize>, r: &Range<usize>| {
            let w = width(c, size, span);
            r.start / element * w..r.end / element * w
        };
        // each device combines its share of the operands of this process's devices
        let k = self.seat().number();
        let piece = |k: usize| share(k, locals.len(), n, block);
        let post = match locals {
            [_] => copied(mine)?,
            _ => {
                let mut post = vec![];
                self.m.read_all(mine, &mut |all| {
                    for span in &own_nodes {
                        let mut sum = filled(scaled(span, &piece(k)).len(), 0)?;
                        combine_terms(c, size, span.clone(), &leaves(all, locals, &piece(k)), &mut sum)?;
                        post.append(&mut sum);
                    }
                    Ok(())
                })?;
                post
            }
        };
        let speak = |posts: &Posts| {
            let mut own: Vec<Vec<u8>> = vec![vec![]; own_nodes.len()];
            for (k, post) in posts.iter().enumerate() {
                let mut rest = &post[..];
                for (span, whole) in own_nodes.iter().zip(&mut own) {
                    whole.extend_from_slice(taken(&mut rest, scaled(span, &piece(k)).len())?);
                }
            }
            self.combined(&own, n, &scaled).map(|result| vec![Arc::new(result)])
        };
        let (_, said) = self.m.mesh.meetings.talk(self.seat(), post, speak)?;
        match &said[..] {
            [result] if result.len() == n => out.copy_from_slice(result),
            _ => return Err(unequal()),
        }
        Ok(())
    }
    /// The result of an all-reduce of n bytes, from the nodes that this process has and those of the others.
    fn combined(
        &self,
        own: &[Vec<u8>],
        n: usize,
        scaled: &dyn Fn(&Range<usize>, &Range<usize>) -> Range<usize>,
    ) -> Res<Vec<u8>> {
        let (c, size) = (self.m.combiner()?, self.m.size());
        let own_nodes = self.nodes(self.remote.here);
        let at_once = n.div_ceil(self.m.block().max(1)) <= self.peers.len();
        let shares = self.shares(n);
        let range_of = |p: usize| match at_once {
            true => 0..n,
            false => shares.iter().find(|s| s.0 == p).map_or(0..0, |s| s.1.clone()),
        };
        let message = |p: &usize| {
            let r = range_of(*p);
            own_nodes.iter().zip(own).flat_map(|(s, b)| &b[scaled(s, &r)]).copied().collect::<Vec<u8>>()
        };
        let found = self.exchange(0, self.peers.iter().map(message).collect())?;
        let mine = range_of(self.remote.here);
        let theirs = self.terms(&found, |_, span| scaled(span, &mine).len())?;
        let mut terms: Vec<Term> =
            own_nodes.iter().zip(own).map(|(s, b)| Term { span: s.clone(), bytes: &b[scaled(s, &mine)] }).collect();
        terms.extend(theirs.into_iter().flatten());
        let mut result = filled(n, 0)?;
        combine_terms(c, size, 0..size, &terms, &mut result[mine.clone()])?;
        if at_once {
            return Ok(result);
        }
        let found = self.tell(1, copied(&result[mine])?)?;
        for (p, message) in self.peers.iter().zip(&found) {
            let r = range_of(*p);
            if message.len() != r.len() {
                return Err(unequal());
            }
            result[r].copy_from_slice(message);
        }
        Ok(result)
    }
    /// The terms in messages of the peers, each as long as `len` says.
    fn terms<'a>(
        &self,
        found: &'a [Arc<Vec<u8>>],
        len: impl Fn(usize, &Range<usize>) -> usize,
    ) -> Res<Vec<Vec<Term<'a>>>> {
        let of = |(p, message): (&usize, &'a Arc<Vec<u8>>)| {
            let mut rest = &message[..];
            let term = |s: &Range<usize>| Ok(Term { span: s.clone(), bytes: taken(&mut rest, len(*p, s))? });
            let terms = self.nodes(*p).iter().map(term).collect::<Res<Vec<Term>>>()?;
            if rest.is_empty() { Ok(terms) } else { Err(unequal()) }
        };
        self.peers.iter().zip(found).map(of).collect()
    }

    fn reduce_scatter(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let (c, size, part) = (self.m.combiner()?, self.m.size(), out.len());
        let Seat { at, locals, .. } = self.seat();
        let own_nodes = self.nodes(self.remote.here);
        let len = |span: &Range<usize>| part / c.element() * width(c, size, span);
        let total: usize = own_nodes.iter().map(len).sum();
        let k = self.seat().number();
        // the devices of this process share the work for the devices of other processes
        let remote: Vec<usize> = (0..size).filter(|p| !locals.contains(p)).collect();
        let whose = |j: usize| j % locals.len();
        let (mut post, mut own) = (vec![], vec![]);
        self.m.read_all(mine, &mut |all| {
            let combined = |place: usize, to: &mut Vec<u8>| {
                let chunk = place * part..(place + 1) * part;
                own_nodes.iter().try_for_each(|span| {
                    let mut sum = filled(len(span), 0)?;
                    combine_terms(c, size, span.clone(), &leaves(all, locals, &chunk), &mut sum)?;
                    to.append(&mut sum);
                    Ok(())
                })
            };
            let mut others = remote.iter().enumerate().filter(|(j, _)| whose(*j) == k);
            others.try_for_each(|(_, place)| combined(*place, &mut post))?;
            combined(at, &mut own)
        })?;
        let speak = |posts: &Posts| {
            let piece = |place: &usize| {
                let j = remote.iter().position(|p| p == place).unwrap_or_default();
                let before = j / locals.len() * total;
                posts[whose(j)].get(before..before + total).ok_or_else(unequal)
            };
            let message = |p: &usize| {
                let pieces = self.places(*p).iter().map(piece).collect::<Res<Vec<&[u8]>>>()?;
                Ok(pieces.concat())
            };
            self.exchange(0, self.peers.iter().map(message).collect::<Res<_>>()?)
        };
        let (_, said) = self.m.mesh.meetings.talk(self.seat(), post, speak)?;
        let mut terms = vec![];
        for (p, message) in self.peers.iter().zip(said.iter()) {
            let theirs = self.nodes(*p);
            let each: usize = theirs.iter().map(len).sum();
            let mut rest = message.get(k * each..(k + 1) * each).ok_or_else(unequal)?;
            for span in theirs {
                terms.push(Term { bytes: taken(&mut rest, len(&span))?, span });
            }
        }
        let mut rest = &own[..];
        for span in &own_nodes {
            terms.push(Term { span: span.clone(), bytes: taken(&mut rest, len(span))? });
        }
        combine_terms(c, size, 0..size, &terms, out)
    }

    /// Collectives that only move data: each byte is sent once to each process with a device that reads it.
    fn moved(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let Seat { at, locals, .. } = self.seat();
        let n = mine.len();
        let part = n / self.m.size().max(1);
        let whole = matches!(self.m.kind, Collective::AllGather);
        let speak = |posts: &Posts| {
            if whole {
                return self.tell(0, posts.iter().flat_map(|b| b.iter().copied()).collect::<Vec<u8>>());
            }
            let message = |p: &usize| {
                let to = self.places(*p);
                let pieces = posts.iter().flat_map(|b| to.iter().map(move |t| &b[t * part..(t + 1) * part]));
                pieces.flatten().copied().collect::<Vec<u8>>()
            };
            self.exchange(0, self.peers.iter().map(message).collect())
        };
        let (posts, said) = self.m.mesh.meetings.talk(self.seat(), copied(mine)?, speak)?;
        let width = if whole { n } else { part };
        let mut put = |place: usize, from: &[u8]| out[place * width..(place + 1) * width].copy_from_slice(from);
        for (place, post) in locals.iter().zip(&posts) {
            let own = if whole { 0..n } else { at * part..(at + 1) * part };
            put(*place, post.get(own).ok_or_else(unequal)?);
        }
        let (k, readers) = match whole {
            true => (0, 1),
            false => (self.seat().number(), locals.len()),
        };
        for (p, message) in self.peers.iter().zip(said.iter()) {
            let places = self.places(*p);
            if message.len() != places.len() * readers * width {
                return Err(unequal());
            }
            for (j, place) in places.into_iter().enumerate() {
                let from = (j * readers + k) * width;
                put(place, &message[from..from + width]);
            }
        }
        Ok(())
    }

    /// Devices wait only for those that they read from or that read from them.
    fn permute(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let Seat { at, locals, .. } = self.seat();
        let kind = self.m.kind;
        let mut under_way = vec![];
        for to in kind.destinations(at).filter(|to| !locals.contains(to)) {
            under_way.push((self.begin((at, to), &[(self.host(to), Arc::new(copied(mine)?))], &[])?, false));
        }
        if let Some(from) = kind.source(at).filter(|from| !locals.contains(from)) {
            under_way.push((self.begin((from, at), &[], &[self.host(from)])?, true));
        }
        let here = self.m.permute(mine, out);
        if here.is_err() {
            under_way.iter_mut().for_each(|e| e.0.cancel());
        }
        here?;
        for (mut exchange, receives) in under_way {
            match (&arrived(&mut *exchange)?[..], receives) {
                ([message], true) if message.len() == out.len() => out.copy_from_slice(message),
                (_, true) => return Err(unequal()),
                _ => (),
            }
        }
        Ok(())
    }
}
