//! The devices of a mesh during collectives: each runs its own plan on its own thread.
//!
//! ```text
//! within a process     small operands are copied; large ones are read in place, and each device combines a share of the result for all
//! between processes    each process sends once what its devices have together: their sums, or the parts that a device of the other process reads
//! ```
//!
//! INVARIANT: either every device that a collective needs comes to it, or the devices that wait get an error: a device that fails wakes all others, and so does
//! one whose program ends without the collective that others wait in. Bits do not depend on which process a device belongs to.
mod between;
mod meeting;

use crate::processes;
pub use between::Remote;
use ferrax_kernel::backend::{TermArithmetic, World};
use ferrax_kernel::collective::{Across, Collective, Term, combine_terms, no_combine, share};
use ferrax_kernel::error::copied;
use ferrax_kernel::plan::Communication;
use ferrax_kernel::{Error, Res};
use meeting::{MeetingKey, Meetings, Seat, Writes};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Operands of up to so many bytes are copied, because waiting until others have read them would take longer.
const MAX_COPIED: usize = 1 << 14;

/// A grid of devices with named axes, row major.
pub struct Mesh {
    pub axes: Vec<(Arc<str>, usize)>,
    /// Set if some of its devices belong to other processes.
    remote: Option<Remote>,
    meetings: Meetings,
    /// Whether peers were notified that this process has given up the call.
    notified: AtomicBool,
    moved: Arc<Moved>,
    /// The process that created the mesh. A forked child does not have the threads of its devices.
    owner: u32,
}

/// How much data the devices of this process have received from others.
#[derive(Default)]
pub struct Moved {
    pub bytes: AtomicU64,
    /// The number of parts that were not empty.
    pub messages: AtomicU64,
    /// The number of bytes that this process has sent to others.
    pub sent_bytes: AtomicU64,
    pub sent_messages: AtomicU64,
}

impl Mesh {
    pub fn new(axes: Vec<(Arc<str>, usize)>) -> Arc<Mesh> {
        Mesh::over(axes, None)
    }
    /// A mesh some of whose devices may belong to other processes.
    pub fn over(axes: Vec<(Arc<str>, usize)>, remote: Option<Remote>) -> Arc<Mesh> {
        Mesh::counted(axes, remote, Arc::default())
    }
    /// As [`Mesh::over`]; the data that devices receive from each other are counted in `moved`.
    pub fn counted(axes: Vec<(Arc<str>, usize)>, remote: Option<Remote>, moved: Arc<Moved>) -> Arc<Mesh> {
        let owner = std::process::id();
        Arc::new(Mesh { axes, remote, meetings: Meetings::default(), notified: AtomicBool::new(false), moved, owner })
    }
    pub fn size(&self) -> usize {
        self.axes.iter().map(|a| a.1).product()
    }
    /// The mesh as device `rank` sees it.
    pub fn member(self: &Arc<Mesh>, rank: usize) -> MeshMember {
        MeshMember { mesh: self.clone(), rank, met: Mutex::default() }
    }
    /// Ends every meeting, now and later, with this error.
    pub fn fail(&self, e: Error) {
        self.meetings.fail(&e);
        if let Some(r) = &self.remote
            && !self.notified.swap(true, Ordering::Relaxed)
        {
            processes::give_up(r.call, &e);
        }
    }
}
/// The last device of this process has ended: peers that wait in the call are notified that nothing more will come.
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

pub struct MeshMember {
    mesh: Arc<Mesh>,
    rank: usize,
    /// The number of meetings of this device so far, by group. All devices run the same plan, so the n-th meeting is the same one for all.
    met: Mutex<HashMap<Arc<[usize]>, u64>>,
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
                return Err(Error::Invalid(format!("no device axis is named {name}")));
            };
            let (n, s) = (self.mesh.axes[k].1, strides[k]);
            let mine = self.rank / s % n;
            members = members.iter().flat_map(|m| (0..n).map(move |i| m + i * s - mine * s)).collect();
        }
        let at = members
            .iter()
            .position(|m| *m == self.rank)
            .ok_or_else(|| Error::Invalid("a device is not in its own group".into()))?;
        across.among(members, at)
    }
}

/// The device's program has ended: those that wait for it are woken.
impl Drop for MeshMember {
    fn drop(&mut self) {
        if std::process::id() == self.mesh.owner {
            self.mesh.meetings.end(self.rank);
        }
    }
}
impl World for MeshMember {
    fn rank(&self, across: &Across) -> Res<(usize, usize)> {
        let (members, at) = self.group(across)?;
        Ok((at, members.len()))
    }
    fn meet(
        &self,
        across: &Across,
        kind: &Collective,
        mine: &[u8],
        out: &mut [u8],
        combine: Option<&dyn TermArithmetic>,
    ) -> Res<()> {
        let (members, at) = self.group(across)?;
        kind.check(members.len(), mine.len(), out.len())?;
        let members: Arc<[usize]> = members.into();
        let number = {
            let mut met = self.met.lock().unwrap_or_else(|e| e.into_inner());
            let n = met.entry(members.clone()).or_default();
            *n += 1;
            *n
        };
        let local = |at: &usize| self.mesh.remote.as_ref().is_none_or(|r| r.hosts[members[*at]] == r.here);
        let locals: Vec<usize> = (0..members.len()).filter(local).collect();
        let key: MeetingKey = (members, number, 0);
        let seat = Seat { key: &key, at, locals: &locals };
        let m = Meeting { mesh: &self.mesh, seat, kind, combine };
        match &self.mesh.remote {
            Some(remote) if locals.len() < key.0.len() => m.between(remote, mine, out)?,
            _ => m.within(mine, out)?,
        }
        m.count(mine.len());
        Ok(())
    }
}

/// One collective, seen from one device.
struct Meeting<'a> {
    mesh: &'a Mesh,
    seat: Seat<'a>,
    kind: &'a Collective,
    combine: Option<&'a dyn TermArithmetic>,
}
impl Meeting<'_> {
    fn size(&self) -> usize {
        self.seat.key.0.len()
    }
    fn combiner(&self) -> Res<&dyn TermArithmetic> {
        self.combine.ok_or_else(no_combine)
    }
    /// Bytes of a block, where the collective combines numbers.
    fn block(&self) -> usize {
        self.combine.map_or(usize::MAX, |c| c.block().saturating_mul(c.element()))
    }
    /// Counts the data that this device has received from others, by the cost model.
    fn count(&self, n: usize) {
        let Meeting { seat, kind, .. } = self;
        let got = match kind {
            Collective::Permute(_) => match kind.source(seat.at) {
                Some(from) if from != seat.at && n > 0 => Communication { bytes: n as f64, messages: 1.0 },
                _ => Communication::default(),
            },
            kind => Communication::of(kind, self.size(), n, self.block()),
        };
        self.mesh.moved.bytes.fetch_add(got.bytes.round() as u64, Ordering::Relaxed);
        self.mesh.moved.messages.fetch_add(got.messages.round() as u64, Ordering::Relaxed);
    }
    /// If all devices belong to this process.
    fn within(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let Meeting { seat, kind, .. } = self;
        if mine.len() <= MAX_COPIED && !matches!(kind, Collective::Permute(_)) {
            let (all, _) = self.mesh.meetings.talk(*seat, copied(mine)?, |_| Ok(vec![]))?;
            return kind.result(&all.iter().map(|b| &b[..]).collect::<Vec<_>>(), seat.at, out, self.combine);
        }
        match kind {
            Collective::AllReduce(_) => self.all_reduce(mine, out),
            Collective::Permute(_) => self.permute(mine, out),
            _ => self.read_all(mine, &mut |all| kind.result(all, seat.at, out, self.combine)),
        }
    }
    /// Reads the operands of all devices of this process.
    fn read_all(&self, mine: &[u8], read: &mut dyn FnMut(&[&[u8]]) -> Res<()>) -> Res<()> {
        let all = (self.seat.locals, self.seat.locals);
        self.mesh.meetings.lend(self.seat, mine, Writes::Nothing, all, &mut |all, _| read(all))
    }
    /// Each device combines its share of the blocks, and writes it to the results of all.
    fn all_reduce(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let Meeting { mesh, seat, .. } = self;
        let (c, size, n, block) = (self.combiner()?, self.size(), mine.len(), self.block());
        let own = share(seat.at, size, n, block);
        let mut using = |all: &[&[u8]], shares: &mut [&mut [u8]]| {
            for at in own.clone().step_by(block.max(1)) {
                let range = at..(at + block).min(own.end);
                let terms: Vec<Term> = leaves(all, seat.locals, &range);
                let (here, rest) = shares.split_first_mut().ok_or_else(no_combine)?;
                let to = &mut here[at - own.start..range.end - own.start];
                combine_terms(c, size, 0..size, &terms, to)?;
                rest.iter_mut().for_each(|r| r[at - own.start..range.end - own.start].copy_from_slice(to));
            }
            Ok(())
        };
        mesh.meetings.lend(*seat, mine, Writes::Shares(out, block), (seat.locals, seat.locals), &mut using)
    }
    /// Devices wait only for those that they read from or that read from them; [`between`] sends the data that another process needs.
    fn permute(&self, mine: &[u8], out: &mut [u8]) -> Res<()> {
        let Meeting { mesh, seat, kind, .. } = self;
        let local = |k: &usize| seat.locals.contains(k);
        let source: Vec<usize> = kind.source(seat.at).into_iter().filter(local).collect();
        let readers: Vec<usize> = kind.destinations(seat.at).filter(local).collect();
        if kind.source(seat.at).is_none() {
            out.fill(0);
        }
        mesh.meetings.lend(*seat, mine, Writes::Nothing, (&source, &readers), &mut |all, _| {
            match all {
                [from] if from.len() == out.len() => out.copy_from_slice(from),
                [] => (),
                _ => return Err(ferrax_kernel::collective::unequal()),
            }
            Ok(())
        })
    }
}
/// The operands of single places, in a range.
fn leaves<'a>(all: &[&'a [u8]], places: &[usize], range: &Range<usize>) -> Vec<Term<'a>> {
    let term = |(k, bytes): (&usize, &&'a [u8])| Term { span: *k..*k + 1, bytes: &bytes[range.clone()] };
    places.iter().zip(all).map(term).collect()
}

#[cfg(test)]
mod tests;
