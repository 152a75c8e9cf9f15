//! Devices as threads that meet: the collectives' reference, against which tests hold backends.
use crate::backend::{Part, Parts, World};
use crate::collective::Across;
use crate::error::Res;
use std::sync::{Barrier, Mutex, PoisonError};

struct Meeting {
    barrier: Barrier,
    /// The data of each device for each other.
    brought: Mutex<Vec<Vec<Part>>>,
}
struct Member<'a> {
    rank: usize,
    meeting: &'a Meeting,
}
impl World for Member<'_> {
    fn rank(&self, _: &Across) -> Res<(usize, usize)> {
        let all = self.meeting.brought.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((self.rank, all.len()))
    }
    fn exchange(&self, _: &Across, mine: &[u8], parts: Parts) -> Res<Vec<Part>> {
        let brought = || self.meeting.brought.lock().unwrap_or_else(PoisonError::into_inner);
        let n = brought().len();
        let each = (0..n).map(|k| mine[parts.of(k, mine.len())].to_vec().into()).collect();
        brought()[self.rank] = each;
        self.meeting.barrier.wait();
        let all = brought().iter().map(|each| each[self.rank].clone()).collect();
        self.meeting.barrier.wait();
        Ok(all)
    }
}

/// The results of `f` on each of `n` devices, all of which take part in each collective, whatever
/// its axes.
pub fn together<T: Send>(n: usize, f: impl Fn(usize, &dyn World) -> T + Sync) -> Vec<T> {
    let meeting = Meeting { barrier: Barrier::new(n), brought: Mutex::new(vec![vec![]; n]) };
    std::thread::scope(|s| {
        let start = |rank| {
            let (meeting, f) = (&meeting, &f);
            s.spawn(move || f(rank, &Member { rank, meeting }))
        };
        let threads: Vec<_> = (0..n).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}
