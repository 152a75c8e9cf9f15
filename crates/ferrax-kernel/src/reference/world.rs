//! Devices as threads that meet: the collectives' reference, against which tests hold backends.
use crate::backend::World;
use crate::collective::{Across, Collective, TermArithmetic};
use crate::error::Res;
use std::sync::{Barrier, Mutex, PoisonError};

struct Meeting {
    barrier: Barrier,
    operands: Mutex<Vec<Vec<u8>>>,
}
struct Member<'a> {
    rank: usize,
    meeting: &'a Meeting,
}
impl World for Member<'_> {
    fn rank(&self, _: &Across) -> Res<(usize, usize)> {
        let all = self.meeting.operands.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((self.rank, all.len()))
    }
    fn meet(
        &self,
        _: &Across,
        kind: &Collective,
        mine: &[u8],
        out: &mut [u8],
        combine: Option<&dyn TermArithmetic>,
    ) -> Res<()> {
        let operands = || self.meeting.operands.lock().unwrap_or_else(PoisonError::into_inner);
        operands()[self.rank] = mine.to_vec();
        self.meeting.barrier.wait();
        let all = operands().clone();
        self.meeting.barrier.wait();
        kind.result(&all.iter().map(|b| &b[..]).collect::<Vec<_>>(), self.rank, out, combine)
    }
}

/// The results of `f` on each of `n` devices, all of which take part in each collective, whatever
/// its axes.
pub fn together<T: Send>(n: usize, f: impl Fn(usize, &dyn World) -> T + Sync) -> Vec<T> {
    let meeting = Meeting { barrier: Barrier::new(n), operands: Mutex::new(vec![vec![]; n]) };
    std::thread::scope(|s| {
        let start = |rank| {
            let (meeting, f) = (&meeting, &f);
            s.spawn(move || f(rank, &Member { rank, meeting }))
        };
        let threads: Vec<_> = (0..n).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}
