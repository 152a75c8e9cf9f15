//! The state machine under random events: nothing is lost, nothing runs early, order holds, and a cancel takes no bystander.
#![cfg(not(feature = "loom"))]
use ferrax_runtime::state::Schedule;
use ferrax_runtime::{RunFacts, RunId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Rng(u64);
impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}
/// The test's own record of a run.
struct Known {
    facts: RunFacts,
    token: Option<ferrax_runtime::Token>,
    ended: bool,
    notified: bool,
}

fn drive(seed: u64, events: usize) {
    let mut r = Rng(seed);
    let mut s: Schedule<RunId> = Schedule::default();
    let mut runs: BTreeMap<RunId, Known> = BTreeMap::new();
    let mut running: Vec<RunId> = vec![];
    let notified = RefCell::new(BTreeSet::new());
    let mut next = 1;
    for _ in 0..events {
        match r.below(8) {
            0..=2 => {
                let gang = (r.below(4) == 0).then_some(next);
                for lane in 0..if gang.is_some() { 2 } else { 1 } {
                    let lane = if gang.is_some() { lane } else { r.below(2) };
                    let inputs = (0..r.below(3))
                        .map(|_| 1 + r.below(next as usize) as RunId)
                        .filter(|i| *i < gang.unwrap_or(next))
                        .collect();
                    let facts = RunFacts { lane, inputs, effects: r.below(4) == 0, gang, awaited: false };
                    s.push(next, facts.clone(), Arc::new(next));
                    runs.insert(next, Known { facts, token: None, ended: false, notified: false });
                    next += 1;
                }
            }
            3 | 4 => {
                if let Some((id, work, token)) = s.take(r.below(2)) {
                    assert_eq!(*work, id);
                    let k = &runs[&id];
                    for i in &k.facts.inputs {
                        assert!(
                            runs[i].ended || runs[i].notified,
                            "{id} began before its input {i} had ended (seed {seed})"
                        );
                    }
                    let before = runs.range(..id).filter(|b| !b.1.ended && b.1.facts.lane == k.facts.lane);
                    for (b, o) in before {
                        let effects = o.facts.effects && k.facts.effects;
                        let members = o.facts.gang.is_some() && k.facts.gang.is_some();
                        assert!(!effects && !members, "{id} began before {b} of its order had ended (seed {seed})");
                    }
                    runs.get_mut(&id).unwrap().token = Some(token);
                    running.push(id);
                }
            }
            5 | 6 if !running.is_empty() => {
                let id = running.swap_remove(r.below(running.len()));
                assert!(s.finish(id).is_some());
                runs.get_mut(&id).unwrap().ended = true;
            }
            7 if next > 1 => {
                let id = 1 + r.below(next as usize - 1) as RunId;
                let waited = (r.below(2) == 0).then(|| 1 + r.below(next as usize - 1) as RunId);
                waited.into_iter().for_each(|w| s.wait_begins(w));
                let gone = s.cancel(&[id], |w| {
                    notified.borrow_mut().insert(*w);
                });
                for t in notified.take() {
                    assert_ne!(Some(t), waited, "what somebody waits for was cancelled (seed {seed})");
                    let reads = |o: &Known| o.facts.inputs.contains(&t) && !o.ended && !o.notified;
                    runs.get_mut(&t).unwrap().notified = true;
                    let gang = |k: RunId| runs[&k].facts.gang;
                    if t != id && (gang(t).is_none() || gang(t) != gang(id)) {
                        let later: Vec<_> = runs.iter().filter(|o| reads(o.1)).map(|o| *o.0).collect();
                        let all: BTreeSet<_> = gone.iter().map(|g| **g).collect();
                        assert!(
                            later.iter().all(|l| all.contains(l) || runs[l].notified || !s.pending(*l)),
                            "a bystander lost its input (seed {seed})"
                        );
                    }
                }
                for g in gone {
                    runs.get_mut(&g).unwrap().ended = true;
                }
                waited.into_iter().for_each(|w| s.wait_ends(w));
                for (id, k) in runs.iter().filter(|k| k.1.notified && !k.1.ended) {
                    assert!(running.contains(id) && k.token.as_ref().is_some_and(|t| t.load(Ordering::Relaxed)));
                }
            }
            _ => (),
        }
    }
    // Served to the end, everything ends.
    loop {
        running.drain(..).for_each(|id| {
            s.finish(id);
        });
        let taken: Vec<RunId> = (0..2).filter_map(|lane| s.take(lane).map(|t| t.0)).collect();
        if taken.is_empty() {
            break;
        }
        running.extend(taken);
    }
    assert_eq!(s.unfinished(), 0, "runs were left (seed {seed})");
}

#[test]
fn random_events() {
    for seed in 0..3000 {
        drive(seed, 120);
    }
}

#[test]
fn a_fork_keeps_what_can_be_done_again() {
    let mut s: Schedule<RunId> = Schedule::default();
    let push = |s: &mut Schedule<RunId>, id: RunId, inputs: &[RunId], effects: bool| {
        s.push(id, RunFacts { inputs: inputs.into(), effects, ..RunFacts::default() }, Arc::new(id))
    };
    push(&mut s, 1, &[], false); // will be running, and can begin again
    push(&mut s, 2, &[1], false); // waits
    push(&mut s, 3, &[], true); // an effect: the parent's
    push(&mut s, 4, &[3], false); // reads its result
    push(&mut s, 5, &[], false); // running, cannot begin again
    for want in [1, 3, 5] {
        assert_eq!(s.take(0).map(|t| t.0), Some(want));
    }
    let lost = RefCell::new(vec![]);
    let gone = s.forked(None, |w| *w != 5, |w| lost.borrow_mut().push(*w));
    assert_eq!((lost.into_inner(), gone.len()), (vec![3, 5], 2));
    let order: Vec<_> = std::iter::from_fn(|| {
        let id = s.take(0)?.0;
        s.finish(id);
        Some(id)
    })
    .collect();
    assert_eq!(order, [1, 2, 4]);
}
