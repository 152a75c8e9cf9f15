//! The bytes that the devices of a mesh read from each other in one run of a plan, counted before it runs.
//!
//! Loops of unknown length count as one iteration, switches as the branch that moves most, as operations are counted (see `operations`).
//!
//! An all-reduce of n bytes over p devices: 2n(p-1)/p bytes and 2(p-1) messages a device; of fewer blocks than devices: n(p-1) and p-1.
use super::{Across, Collective, Plan, SlotId, Step, Trip};
use std::sync::Arc;

/// Of one device, the mean over all.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Communication {
    /// Bytes read from the operands of other devices.
    pub bytes: f64,
    /// In so many messages: one from each device for each exchange, where there is anything to read.
    pub messages: f64,
}
impl Communication {
    fn times(self, n: f64) -> Communication {
        Communication { bytes: self.bytes * n, messages: self.messages * n }
    }
    /// Of a collective over `p` devices, each of which hands in `n` bytes, combined in blocks of `block`.
    pub fn of(kind: &Collective, p: usize, n: usize, block: usize) -> Communication {
        let (others, bytes) = (p.saturating_sub(1) as f64, n as f64);
        if n == 0 {
            return Communication::default();
        }
        match kind {
            Collective::AllReduce(_) if n.div_ceil(block.max(1)) >= p => {
                Communication { bytes: 2.0 * bytes * others / p.max(1) as f64, messages: 2.0 * others }
            }
            Collective::AllReduce(_) | Collective::AllGather => {
                Communication { bytes: bytes * others, messages: others }
            }
            Collective::AllToAll | Collective::ReduceScatter(_) => {
                Communication { bytes: bytes * others / p.max(1) as f64, messages: others }
            }
            Collective::Permute(pairs) => {
                let moving = pairs.iter().filter(|(from, to)| from != to).count() as f64 / p.max(1) as f64;
                Communication { bytes: bytes * moving, messages: moving }
            }
            Collective::AxisIndex => Communication::default(),
        }
    }
}

impl std::iter::Sum for Communication {
    fn sum<I: Iterator<Item = Communication>>(each: I) -> Communication {
        let none = Communication::default();
        each.fold(none, |a, b| Communication { bytes: a.bytes + b.bytes, messages: a.messages + b.messages })
    }
}

/// A collective of a plan, as often as it is run.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// What it is, and along which axes.
    pub text: String,
    pub moved: Communication,
}

impl Plan {
    /// Of one run on a mesh of these axes, by a backend that combines blocks of so many elements.
    pub fn exchanges(&self, axes: &[(Arc<str>, usize)], combined_elements: usize) -> Vec<Exchange> {
        Count { plan: self, axes, combined_elements }.steps(&self.steps)
    }
}

struct Count<'a> {
    plan: &'a Plan,
    axes: &'a [(Arc<str>, usize)],
    combined_elements: usize,
}
impl Count<'_> {
    fn steps(&self, s: &[Step]) -> Vec<Exchange> {
        s.iter().flat_map(|s| self.step(s)).collect()
    }
    fn step(&self, s: &Step) -> Vec<Exchange> {
        match s {
            Step::Collective { kind: Collective::AxisIndex, .. } => vec![],
            Step::Collective { kind, across, ins, .. } => {
                let moved = ins.iter().map(|s| self.operand(kind, across, *s));
                vec![Exchange { text: format!("{kind} over {}", across.axes.join(", ")), moved: moved.sum() }]
            }
            Step::Loop(l) => match &l.trip {
                Trip::Static(n) => {
                    let times = |e: Exchange| Exchange { moved: e.moved.times(*n as f64), ..e };
                    self.steps(&l.body).into_iter().map(times).collect()
                }
                Trip::Dyn(_) => self.steps(&l.body),
                Trip::While { cond, .. } => [self.steps(cond), self.steps(&l.body)].concat(),
            },
            Step::Switch { branches, .. } => {
                let bytes = |e: &[Exchange]| e.iter().map(|e| e.moved.bytes).sum::<f64>();
                let longer = |a: Vec<Exchange>, b: Vec<Exchange>| if bytes(&b) > bytes(&a) { b } else { a };
                branches.iter().map(|b| self.steps(b)).fold(vec![], longer)
            }
            _ => vec![],
        }
    }
    fn operand(&self, kind: &Collective, across: &Across, s: SlotId) -> Communication {
        let along = |name: &Arc<str>| self.axes.iter().find(|a| a.0 == *name).map_or(1, |a| a.1);
        let all: usize = across.axes.iter().map(along).product();
        // groups of different sizes: the mean over their members
        let sizes: Vec<usize> =
            across.groups.as_ref().map_or_else(|| vec![all], |g| g.iter().map(<[u32]>::len).collect());
        let slot = &self.plan.slots[s as usize];
        let block = self.combined_elements.saturating_mul(slot.dtype.size());
        let of = |p: &usize| Communication::of(kind, *p, slot.bytes(), block).times(*p as f64);
        let whole: Communication = sizes.iter().map(of).sum();
        whole.times(1.0 / sizes.iter().sum::<usize>().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReduceKind;

    #[test]
    fn collectives_move_what_the_model_says() {
        let of = |kind: Collective, p, n| {
            let c = Communication::of(&kind, p, n, 64);
            (c.bytes, c.messages)
        };
        assert_eq!(of(Collective::AllReduce(ReduceKind::Sum), 4, 4096), (6144.0, 6.0));
        assert_eq!(of(Collective::AllReduce(ReduceKind::Sum), 4, 64), (192.0, 3.0));
        assert_eq!(of(Collective::AllGather, 4, 100), (300.0, 3.0));
        assert_eq!(of(Collective::AllToAll, 4, 100), (75.0, 3.0));
        assert_eq!(of(Collective::ReduceScatter(ReduceKind::Sum), 4, 100), (75.0, 3.0));
        assert_eq!(of(Collective::Permute(vec![(0, 1), (1, 1)]), 4, 100), (25.0, 0.25));
        assert_eq!(of(Collective::AllGather, 1, 100), (0.0, 0.0));
    }
}
