//! The devices of a mesh during collectives: each runs its own plan on its own thread.
//!
//! ```text
//! a device hands in its operand -- the last of this process sends other processes their parts, and gets theirs -- each reads what is its own
//! ```
//!
//! INVARIANT: either every device of a group gets its result, or every one gets an error: a device that fails wakes all, and so does one whose
//! program ends without the collective that others wait in.
use crate::processes::{self, Exchange, MeetingId, Transport};
use ferrax_kernel::backend::{Part, Parts, World};
use ferrax_kernel::collective::Across;
use ferrax_kernel::error::copied;
use ferrax_kernel::{Error, Res};
use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A grid of devices with named axes, row major.
pub struct Mesh {
    pub axes: Vec<(Arc<str>, usize)>,
    /// Where some of its devices belong to other processes.
    remote: Option<Remote>,
    state: Mutex<State>,
    changed: Condvar,
    moved: Arc<Moved>,
    /// The process that made it: a forked child has none of its devices' threads.
    owner: u32,
}

/// The amount that devices of this process have read from other devices' operands.
#[derive(Default)]
pub struct Moved {
    pub bytes: AtomicU64,
    /// How many parts that were not empty.
    pub messages: AtomicU64,
}

/// What the processes of a mesh must know to meet.
pub struct Remote {
    /// The process of each device.
    pub hosts: Vec<usize>,
    /// Which run on this mesh it is; the runs of all processes are numbered alike.
    pub run: u64,
    /// Of all runs on this mesh so far: [`MeetingId::digest`].
    pub digest: u64,
    /// The call, as the transport numbered it.
    pub call: u64,
    pub transport: Arc<dyn Transport>,
}

#[derive(Default)]
struct State {
    /// By the group's members and the meeting's number among them.
    meetings: HashMap<(Vec<usize>, u64), Meeting>,
    failed: Option<Error>,
    /// The devices of this process whose programs have ended.
    ended: Vec<usize>,
}
/// What a device handed in: which bytes each of the group reads of it, or that all read all.
#[derive(Clone)]
struct Brought {
    bytes: Arc<Vec<u8>>,
    ranges: Option<Vec<Range<usize>>>,
}
impl Brought {
    fn range(&self, at: usize) -> Range<usize> {
        self.ranges.as_ref().map_or(0..self.bytes.len(), |r| r[at].clone())
    }
}
#[derive(Default)]
struct Meeting {
    brought: Vec<Option<Brought>>,
    present: usize,
    left: usize,
}

impl Mesh {
    pub fn new(axes: Vec<(Arc<str>, usize)>) -> Arc<Mesh> {
        Mesh::over(axes, None)
    }
    /// A mesh some of whose devices may belong to other processes.
    pub fn over(axes: Vec<(Arc<str>, usize)>, remote: Option<Remote>) -> Arc<Mesh> {
        Mesh::counted(axes, remote, Arc::default())
    }
    /// As [`Mesh::over`]; what devices read of each other is added to `moved`.
    pub fn counted(axes: Vec<(Arc<str>, usize)>, remote: Option<Remote>, moved: Arc<Moved>) -> Arc<Mesh> {
        let owner = std::process::id();
        Arc::new(Mesh { axes, remote, state: Mutex::default(), changed: Condvar::new(), moved, owner })
    }
    pub fn size(&self) -> usize {
        self.axes.iter().map(|a| a.1).product()
    }
    /// The bytes that the devices of this process have read from other devices' operands.
    pub fn moved(&self) -> u64 {
        self.moved.bytes.load(Ordering::Relaxed)
    }
    /// The mesh as device `rank` sees it.
    pub fn member(self: &Arc<Mesh>, rank: usize) -> MeshMember {
        MeshMember { mesh: self.clone(), rank, met: Mutex::default() }
    }
    /// Ends every meeting, now and later, with this error.
    pub fn fail(&self, e: Error) {
        let mut state = self.lock();
        if state.failed.is_none() {
            if let Some(r) = &self.remote {
                processes::give_up(r.call, &e);
            }
            state.failed = Some(e);
        }
        drop(state);
        self.changed.notify_all();
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Whether a device belongs to this process.
    fn is_local(&self, rank: usize) -> bool {
        self.remote.as_ref().is_none_or(|r| r.hosts[rank] == processes::here())
    }
}
/// The last of this process's devices has ended: peers that wait in the call hear that nothing more comes.
impl Drop for Mesh {
    fn drop(&mut self) {
        if let Some(r) = &self.remote
            && std::process::id() == self.owner
        {
            processes::finish(r.call);
        }
    }
}
/// The error of a device whose partner has ended without the collective.
fn alone(device: usize) -> Error {
    Error::Device(format!(
        "the program of device {device} of the mesh has ended without a collective that another device waits in: every device must come to the same \
         collectives in the same order, so none may stand under a condition, or in a loop whose number of iterations differs by device"
    ))
}

impl Remote {
    /// What the devices of other processes handed in, for those of this one, which have `brought` theirs; by place in the group.
    fn exchange(&self, members: &[usize], number: u64, brought: &[Option<Brought>]) -> Res<Vec<(usize, Brought)>> {
        let here = processes::here();
        let places_of = |process: usize| -> Vec<usize> {
            (0..members.len()).filter(|at| self.hosts[members[*at]] == process).collect()
        };
        let mut peers: Vec<usize> = members.iter().map(|m| self.hosts[*m]).filter(|p| *p != here).collect();
        peers.sort_unstable();
        peers.dedup();
        let messages = peers.iter().map(|p| packed(brought, &places_of(*p))).collect::<Res<Vec<_>>>()?;
        let to: Vec<(usize, &[u8])> = peers.iter().zip(&messages).map(|(p, m)| (*p, &m[..])).collect();
        let mut h = FxHasher::default();
        (self.run, members, number).hash(&mut h);
        let id = MeetingId { number: h.finish(), digest: self.digest, call: self.call };
        let received = arrived(&mut *self.transport.begin(id, &to)?)?;
        let own = places_of(here);
        let mut all = vec![];
        for (process, message) in peers.iter().zip(received) {
            all.extend(unpacked(message, &places_of(*process), &own, members.len())?);
        }
        Ok(all)
    }
}
/// Waits for messages, and looks in between whether the run was stopped.
fn arrived(exchange: &mut dyn Exchange) -> Res<Vec<Vec<u8>>> {
    let (begun, token) = (Instant::now(), ferrax_runtime::current());
    let (mut told, mut pause) = (10, Duration::ZERO);
    loop {
        if let Some(messages) = exchange.poll()? {
            return Ok(messages);
        }
        if token.as_ref().is_some_and(|t| t.load(Ordering::Relaxed)) {
            exchange.cancel();
            return Err(Error::Cancelled);
        }
        let waited = begun.elapsed().as_secs();
        if waited >= told {
            exchange.complain(waited)?;
            told *= 2;
        }
        std::thread::sleep(pause);
        pause = (pause + Duration::from_micros(2)).min(Duration::from_millis(1));
    }
}
/// What the devices of this process have for those at `to`: one after the other, each with its length before it; what all read once.
fn packed(brought: &[Option<Brought>], to: &[usize]) -> Res<Vec<u8>> {
    let mut message = vec![];
    for b in brought.iter().flatten() {
        let ranges = match &b.ranges {
            None => smallvec![0..b.bytes.len()],
            Some(r) => to.iter().map(|at| r[*at].clone()).collect::<SmallVec<[Range<usize>; 4]>>(),
        };
        message.push(b.ranges.is_none() as u8);
        for r in ranges {
            message.extend((r.len() as u64).to_le_bytes());
            message.extend_from_slice(&b.bytes[r]);
        }
    }
    Ok(message)
}
/// The reverse of [`packed`]: what the devices at `from` have for those at `to`, of a group of `size`.
fn unpacked(message: Vec<u8>, from: &[usize], to: &[usize], size: usize) -> Res<Vec<(usize, Brought)>> {
    let short = || Error::Device("a message of another process is too short".into());
    let (bytes, mut at) = (Arc::new(message), 0);
    let mut all = vec![];
    for place in from {
        let whole = *bytes.get(at).ok_or_else(short)? == 1;
        at += 1;
        let mut ranges = vec![0..0; size];
        let mut one = || {
            let n = bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or_else(short)?
                as usize;
            let range = at + 8..(at + 8).saturating_add(n);
            at = range.end;
            if range.end > bytes.len() { Err(short()) } else { Ok(range) }
        };
        if whole {
            ranges.fill(one()?);
        } else {
            for t in to {
                ranges[*t] = one()?;
            }
        }
        all.push((*place, Brought { bytes: bytes.clone(), ranges: Some(ranges) }));
    }
    Ok(all)
}

pub struct MeshMember {
    mesh: Arc<Mesh>,
    rank: usize,
    /// How many meetings this device has had, by group: the plan is the same everywhere, so the n-th is the same meeting for all.
    met: Mutex<HashMap<Vec<usize>, u64>>,
}

impl MeshMember {
    /// Notifies the others that this device has failed.
    pub fn fail(&self, e: Error) {
        self.mesh.fail(e)
    }
    /// The devices that this one meets, in order, and its place among them.
    fn group(&self, across: &Across) -> Res<(Vec<usize>, usize)> {
        let mut stride = 1;
        let mut strides = vec![0; self.mesh.axes.len()];
        for (k, (_, n)) in self.mesh.axes.iter().enumerate().rev() {
            strides[k] = stride;
            stride *= n;
        }
        let mut members = vec![self.rank];
        for name in &across.axes {
            let Some(k) = self.mesh.axes.iter().position(|a| a.0 == *name) else {
                return Err(Error::Invalid(format!("no device axis is called {name}")));
            };
            let (n, s) = (self.mesh.axes[k].1, strides[k]);
            let mine = self.rank / s % n;
            members = members.iter().flat_map(|m| (0..n).map(move |i| m + i * s - mine * s)).collect();
        }
        let at = members
            .iter()
            .position(|m| *m == self.rank)
            .ok_or_else(|| Error::Invalid("a device outside its own group".into()))?;
        across.among(members, at)
    }
}

/// The device's program has ended: those that wait for it are woken.
impl Drop for MeshMember {
    fn drop(&mut self) {
        if std::process::id() == self.mesh.owner {
            self.mesh.lock().ended.push(self.rank);
            self.mesh.changed.notify_all();
        }
    }
}
impl World for MeshMember {
    fn rank(&self, across: &Across) -> Res<(usize, usize)> {
        let (members, at) = self.group(across)?;
        Ok((at, members.len()))
    }
    fn exchange(&self, across: &Across, mine: &[u8], parts: Parts) -> Res<Vec<Part>> {
        let brought = Brought {
            bytes: Arc::new(copied(mine)?),
            ranges: if let Parts::Each(r) = parts { Some(r.to_vec()) } else { None },
        };
        let (members, at) = self.group(across)?;
        let number = {
            let mut met = self.met.lock().unwrap_or_else(|e| e.into_inner());
            let n = met.entry(members.clone()).or_default();
            *n += 1;
            *n
        };
        let (size, locals) = (members.len(), members.iter().filter(|m| self.mesh.is_local(**m)).count());
        let key = (members, number);
        self.met_with(key, (at, brought), (size, locals))
    }
}
impl MeshMember {
    /// Takes part in a meeting with what this device `brought`, at its place `at`, and gets what all have for it.
    fn met_with(
        &self,
        key: (Vec<usize>, u64),
        (at, brought): (usize, Brought),
        (size, locals): (usize, usize),
    ) -> Res<Vec<Part>> {
        let mut s = self.mesh.lock();
        let m = s
            .meetings
            .entry(key.clone())
            .or_insert_with(|| Meeting { brought: vec![None; size], ..Meeting::default() });
        m.brought[at] = Some(brought);
        m.present += 1;
        if let (Some(remote), true) = (&self.mesh.remote, m.present == locals && locals < size) {
            // the last of this process speaks for it
            let own = m.brought.clone();
            drop(s);
            let found = remote.exchange(&key.0, key.1, &own).inspect_err(|e| self.mesh.fail(e.clone()))?;
            s = self.mesh.lock();
            if let Some(m) = s.meetings.get_mut(&key) {
                m.present += found.len();
                found.into_iter().for_each(|(place, b)| m.brought[place] = Some(b));
            }
        }
        self.mesh.changed.notify_all();
        loop {
            if let Some(e) = &s.failed {
                return Err(e.clone());
            }
            if let Some(m) = s.meetings.get_mut(&key)
                && m.present == size
            {
                let all: Vec<Brought> = m.brought.iter().flatten().cloned().collect();
                m.left += 1;
                if m.left == locals {
                    s.meetings.remove(&key);
                }
                drop(s);
                return self.mesh.read(&all, at);
            }
            let brought = |k: usize| s.meetings.get(&key).is_some_and(|m| m.brought[k].is_some());
            let missing = key.0.iter().enumerate().find(|(k, d)| s.ended.contains(d) && !brought(*k));
            if let Some((_, device)) = missing {
                return Err(alone(*device));
            }
            s = self.mesh.changed.wait(s).unwrap_or_else(|e| e.into_inner());
        }
    }
}
impl Mesh {
    /// What a group handed in for its member at `at`.
    fn read(&self, all: &[Brought], at: usize) -> Res<Vec<Part>> {
        let of_others = || all.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, b)| b.range(at).len() as u64);
        self.moved.bytes.fetch_add(of_others().sum(), Ordering::Relaxed);
        self.moved.messages.fetch_add(of_others().filter(|n| *n > 0).count() as u64, Ordering::Relaxed);
        let outside = || Error::Invalid("a device has bytes for another that it did not hand in".into());
        all.iter().map(|b| Part::new(b.bytes.clone(), b.range(at)).ok_or_else(outside)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_kernel::ReduceKind;
    use ferrax_kernel::collective::{Collective, Groups};

    fn on_all<T: Send>(mesh: &Arc<Mesh>, f: impl Fn(MeshMember) -> T + Sync) -> Vec<T> {
        std::thread::scope(|s| {
            let threads: Vec<_> = (0..mesh.size())
                .map(|i| {
                    s.spawn({
                        let (m, f) = (mesh.member(i), &f);
                        move || f(m)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn every_device_gets_what_all_brought() {
        // a program of its own for each, which ends with its members
        let met = |across: &Across| {
            let mesh = Mesh::new(vec![("i".into(), 2), ("j".into(), 3)]);
            on_all(&mesh, |m| {
                let round = |_| {
                    m.exchange(across, &[m.rank as u8], Parts::Whole)
                        .expect("no failure")
                        .iter()
                        .map(|b| b[0])
                        .collect()
                };
                (0..3).map(round).next_back().expect("three rounds")
            })
        };
        let along = |axes: &[&str]| -> Vec<Vec<u8>> {
            met(&Across::axes(axes.iter().map(|a| Arc::from(*a)).collect::<Vec<_>>()))
        };
        assert_eq!(along(&["j"])[4], [3, 4, 5]);
        assert_eq!(along(&["i"])[4], [1, 4]);
        assert_eq!(along(&["i", "j"])[0], [0, 1, 2, 3, 4, 5]);
        assert_eq!(along(&["j", "i"])[0], [0, 3, 1, 4, 2, 5]);
        let groups = Some(Groups::new([vec![2, 0], vec![1]]));
        let grouped: Vec<Vec<u8>> = met(&Across { groups, ..Across::axes(["j".into()]) });
        assert_eq!(grouped, [vec![2, 0], vec![1], vec![2, 0], vec![5, 3], vec![4], vec![5, 3]]);
    }
    #[test]
    fn a_failure_wakes_everybody() {
        let mesh = Mesh::new(vec![("i".into(), 3)]);
        let r = on_all(&mesh, |m| {
            if m.rank == 1 {
                m.mesh.fail(Error::Cancelled);
                Err(Error::Cancelled)
            } else {
                m.exchange(&Across::axes(["i".into()]), &[0], Parts::Whole).map(|_| ())
            }
        });
        assert!(r.iter().all(|x| x.is_err()));
    }
    #[test]
    fn a_device_that_does_not_come_is_missed() {
        let mesh = Mesh::new(vec![("i".into(), 3)]);
        let r = on_all(&mesh, |m| {
            let meet = |n: usize| {
                (0..n).try_for_each(|_| m.exchange(&Across::axes(["i".into()]), &[0], Parts::Whole).map(drop))
            };
            let n = if m.rank == 1 { 2 } else { 3 };
            meet(n)
        });
        assert_eq!(r.iter().map(|x| x.is_ok()).collect::<Vec<_>>(), [false, true, false]);
        assert!(format!("{:?}", r[0]).contains("device 1"));
    }
    /// An all-reduce of n bytes over p devices reads 2n(p-1)/p of the others' on each; the other collectives read what they bring.
    #[test]
    fn bytes_are_those_of_the_model() {
        let n = 4096;
        let bytes = |p: usize, kind: &Collective, out: usize| {
            let mesh = Mesh::new(vec![("i".into(), p)]);
            on_all(&mesh, |m| {
                let (mine, mut to) = (vec![1u8; n], vec![0; out]);
                let sum = &mut |all: &[&[u8]], to: &mut [u8]| {
                    (0..to.len()).for_each(|k| to[k] = all.iter().map(|x| x[k]).sum());
                    Ok(())
                };
                kind.run(&m, &Across::axes(["i".into()]), &mine, &mut to, 64, sum).expect("no failure");
                if let Collective::AllReduce(_) = kind {
                    assert!(to.iter().all(|x| *x == p as u8));
                }
            });
            mesh.moved() as usize
        };
        for p in [1, 2, 4, 8] {
            let each = n * (p - 1);
            assert_eq!(bytes(p, &Collective::AllReduce(ReduceKind::Sum), n), 2 * each);
            assert_eq!(bytes(p, &Collective::AllGather, n * p), each * p);
            assert_eq!(bytes(p, &Collective::AllToAll, n), each);
            let shift = (0..p as u32).map(|i| (i, (i + 1) % p as u32)).collect();
            assert_eq!(bytes(p, &Collective::Permute(shift), n), if p == 1 { 0 } else { n * p });
        }
    }
    /// Two processes of two devices each, whose messages a channel carries: the same as four devices of one.
    #[test]
    fn messages_hold_what_each_process_reads() {
        let part = |i: usize, k: usize| vec![(10 * i + k) as u8; i + 1];
        let one = |i: usize| {
            let ranges = (0..4).map(|k| k * (i + 1)..(k + 1) * (i + 1)).collect();
            Some(Brought { bytes: Arc::new((0..4).flat_map(|k| part(i, k)).collect()), ranges: Some(ranges) })
        };
        let theirs = [None, one(1), None, one(3)];
        let message = packed(&theirs, &[0, 2]).expect("memory");
        for (place, b) in unpacked(message, &[1, 3], &[0, 2], 4).expect("a whole message") {
            for k in [0, 2] {
                assert_eq!(b.bytes[b.range(k)], part(place, k));
            }
        }
        assert!(unpacked(vec![1, 9, 0, 0, 0, 0, 0, 0, 0], &[1], &[0], 2).is_err());
        assert!(unpacked(vec![], &[1], &[0], 2).is_err());
    }
}
