//! Switches in the memory plan: only one branch runs, so a slot that one branch reads may be overwritten by another, and a result may take the
//! location of an operand that the branches pass on or update.
//!
//! ```text
//!     cond(p, |a| a, |a| a.at[i].set(0), a)      the result has the location of `a`; the first branch does nothing
//! ```
use super::{MIN_BYTES_SHARED, Pin, Pinned, Sets};
use ferrax_kernel::Step;
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::plan::timeline::{Lives, Moment, Timeline, Touch};
use rustc_hash::FxHashMap;

/// Moments that are looked through for a read: a value whose last one is further away counts as read.
const MAX_MOMENTS: u32 = 512;

/// When a switch begins, when each of its branches ends, and when all have ended.
#[derive(Clone, Default)]
struct Span {
    begin: u32,
    branches: Vec<u32>,
    end: u32,
}
impl Span {
    /// The times before and at the end of the branch that runs at time t.
    fn branch(&self, t: u32) -> Option<(u32, u32)> {
        let k = self.branches.iter().position(|end| *end >= t)?;
        Some((if k == 0 { self.begin } else { self.branches[k - 1] }, self.branches[k]))
    }
}

/// The switches of a plan, and those that are open at the time that was reached.
pub(super) struct Switches {
    spans: FxHashMap<u32, Span>,
    open: Vec<Span>,
}

impl Switches {
    pub(super) fn of(line: &Timeline) -> Switches {
        let mut spans = FxHashMap::default();
        let mut open: Vec<Span> = vec![];
        for (t, m) in line.moments() {
            match m {
                Moment::Choose(..) => open.push(Span { begin: t, ..Span::default() }),
                Moment::Branch(_) => open.last_mut().into_iter().for_each(|s| s.branches.push(t)),
                Moment::Join(_) => {
                    if let Some(span) = open.pop() {
                        spans.insert(span.begin, Span { end: t, ..span });
                    }
                }
                _ => (),
            }
        }
        Switches { spans, open: vec![] }
    }
    /// Goes on to time t.
    pub(super) fn reach(&mut self, t: u32) {
        while self.open.last().is_some_and(|s| s.end < t) {
            self.open.pop();
        }
        if let Some(span) = self.spans.remove(&t) {
            self.open.push(span);
        }
    }
    /// Whether something reads this set after time t, in a run that comes by t: other branches of an open switch do not count.
    pub(super) fn is_read_later(&self, line: &Timeline, life: &Lives, sets: &Sets, root: SlotId, t: u32) -> bool {
        let last = life.read[root as usize];
        if last <= t {
            return false;
        }
        let Some(outermost) = self.open.first() else { return true };
        if last > outermost.end || last - t > MAX_MOMENTS {
            return true;
        }
        let excluded = |u: u32| {
            let mut others = self.open.iter().filter_map(|s| Some((s.branch(t)?.1, s.end)));
            others.any(|(mine, end)| mine < u && u <= end)
        };
        line.between(t, last).any(|(u, m)| {
            if excluded(u) {
                return false;
            }
            // the end of an iteration reads slots from before the loop
            let again = matches!(m, Moment::Leave(_, entered) if life.first[root as usize] < entered && entered < t);
            again || reads(&m, sets, root)
        })
    }
    /// Lets results of the switch that ends now take the locations of operands that die with it, or
    /// of values that branches compute for them.
    pub(super) fn join(
        &self,
        line: &Timeline,
        life: &mut Lives,
        sets: &mut Sets,
        pinned: &mut Pinned,
        outs: &[SlotId],
        t: u32,
    ) {
        let Some(span) = self.open.last().filter(|s| s.end == t) else { return };
        // for each result and branch: the time of its first write, and the slot that is copied to
        // it
        let mut writes: Vec<Vec<(u32, Option<SlotId>)>> = vec![vec![]; outs.len()];
        let mut begin = span.begin;
        for end in &span.branches {
            for (k, o) in outs.iter().enumerate() {
                let first = line.between(begin, *end).find_map(|(u, m)| match m {
                    Moment::Step(Step::Copy { from, to }) if to == o => Some((u, Some(*from))),
                    m => touched(&m, *o).then_some((u, None)),
                });
                writes[k].push(first.unwrap_or((begin + 1, None)));
            }
            begin = *end;
        }
        for (k, o) in outs.iter().enumerate() {
            let Pin::Chosen(next) = pinned.by[*o as usize] else { continue };
            if sets.root(*o) != *o || pinned.bytes[*o as usize] < MIN_BYTES_SHARED {
                continue;
            }
            let operand = writes[k].iter().filter_map(|w| Some(sets.root(w.1?))).find(|root| {
                let fits = next.is_none_or(|slot| sets.root(slot) == *root);
                fits && self.may_take(line, life, sets, pinned, span, &writes[k], *root)
                    && outs.iter().all(|other| sets.root(*other) != *root)
            });
            if let Some(root) = operand {
                sets.join(life, root, *o);
                pinned.by[*o as usize] = Pin::None;
            }
        }
    }
    /// Whether a result may take the location of this set, which a branch copies to it.
    #[allow(clippy::too_many_arguments)]
    fn may_take(
        &self,
        line: &Timeline,
        life: &Lives,
        sets: &Sets,
        pinned: &Pinned,
        span: &Span,
        writes: &[(u32, Option<SlotId>)],
        root: SlotId,
    ) -> bool {
        let (r, end) = (root as usize, span.end);
        let is_operand = life.first[r] < span.begin && pinned.is_free(root) && sets.fixed[r].is_none();
        if !is_operand || self.is_read_later(line, life, sets, root, end) {
            return false;
        }
        // a branch that writes something else there must have read it before
        let mut ends = span.branches.iter();
        writes.iter().all(|(at, from)| {
            let Some(branch_end) = ends.next() else { return false };
            let stays = from.is_some_and(|s| sets.root(s) == root);
            stays || !line.between(*at - 1, *branch_end).any(|(_, m)| reads(&m, sets, root))
        })
    }
}
fn reads(m: &Moment, sets: &Sets, root: SlotId) -> bool {
    let mut found = false;
    m.touches(|s, how| found |= how == Touch::Read && sets.root(s) == root);
    found
}
fn touched(m: &Moment, slot: SlotId) -> bool {
    let mut found = false;
    m.touches(|s, _| found |= s == slot);
    found
}
