//! The devices of a pmap: each runs its own plan on its own thread, and collectives synchronize
//! them.
//!
//! INVARIANT: either every member of a group gets the result of all contributions, or every member
//! gets an error: a failing member wakes all others.
use ferrax_kernel::backend::World;
use ferrax_kernel::collective::Across;
use ferrax_kernel::error::copied;
use ferrax_kernel::{Error, Res};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A grid of devices with named axes, row major.
pub struct Mesh {
    pub axes: Vec<(Arc<str>, usize)>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By the group's members and the meeting's number among them.
    meetings: HashMap<(Vec<usize>, u64), Meeting>,
    failed: Option<Error>,
}
#[derive(Default)]
struct Meeting {
    brought: Vec<Option<Arc<Vec<u8>>>>,
    present: usize,
    left: usize,
}

impl Mesh {
    pub fn new(axes: Vec<(Arc<str>, usize)>) -> Arc<Mesh> {
        Arc::new(Mesh { axes, state: Mutex::default(), changed: Condvar::new() })
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
        self.lock().failed.get_or_insert(e);
        self.changed.notify_all();
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

pub struct MeshMember {
    mesh: Arc<Mesh>,
    rank: usize,
    /// How many meetings this device has had, by group: the plan is the same everywhere, so the n-th is the same meeting for all.
    met: Mutex<HashMap<Vec<usize>, u64>>,
}

impl MeshMember {
    /// Tells the others that this device has failed.
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

impl World for MeshMember {
    fn rank(&self, across: &Across) -> Res<(usize, usize)> {
        let (members, at) = self.group(across)?;
        Ok((at, members.len()))
    }
    fn exchange(&self, across: &Across, mine: &[u8]) -> Res<Vec<Arc<Vec<u8>>>> {
        let mine = Arc::new(copied(mine)?);
        let (members, at) = self.group(across)?;
        let number = {
            let mut met = self.met.lock().unwrap_or_else(|e| e.into_inner());
            let n = met.entry(members.clone()).or_default();
            *n += 1;
            *n
        };
        let key = (members, number);
        let size = key.0.len();
        let mut s = self.mesh.lock();
        let m = s
            .meetings
            .entry(key.clone())
            .or_insert_with(|| Meeting { brought: vec![None; size], ..Meeting::default() });
        m.brought[at] = Some(mine);
        m.present += 1;
        self.mesh.changed.notify_all();
        loop {
            if let Some(e) = &s.failed {
                return Err(e.clone());
            }
            if let Some(m) = s.meetings.get_mut(&key)
                && m.present == size
            {
                let all = m.brought.iter().flatten().cloned().collect();
                m.left += 1;
                if m.left == size {
                    s.meetings.remove(&key);
                }
                return Ok(all);
            }
            s = self.mesh.changed.wait(s).unwrap_or_else(|e| e.into_inner());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_kernel::collective::Groups;

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
        let mesh = Mesh::new(vec![("i".into(), 2), ("j".into(), 3)]);
        let met = |across: &Across| {
            on_all(&mesh, |m| {
                let round = |_| m.exchange(across, &[m.rank as u8]).expect("no failure").iter().map(|b| b[0]).collect();
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
                m.exchange(&Across::axes(["i".into()]), &[0]).map(|_| ())
            }
        });
        assert!(r.iter().all(|x| x.is_err()));
    }
}
