//! The scheduler under a model checker: every order in which its threads can take their steps, up to a bound of preemptions.
//!
//! INVARIANT: a program of the model that can hang fails, as loom finds every thread asleep. `cargo xtask model` runs it and prints how many
//! orders were tried.
#![cfg(feature = "loom")]
use ferrax_runtime::{RunFacts, RunId, Runtime, Stop, Token, Work};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering};

type Body = Box<dyn Fn(&Token) -> Result<(), Stop> + Send + Sync>;
type Told = Arc<(Mutex<Option<Result<(), Stop>>>, Condvar)>;
struct Job {
    body: Body,
    outcome: Told,
}
fn tell(t: &Told, r: Result<(), Stop>) {
    t.0.lock().unwrap().get_or_insert(r);
    t.1.notify_all();
}
impl Work for Job {
    type Error = Stop;
    fn run(&self, token: &Token) -> Result<(), Stop> {
        (self.body)(token)?;
        tell(&self.outcome, Ok(()));
        Ok(())
    }
    fn fail(&self, e: Stop) {
        tell(&self.outcome, Err(e));
    }
    fn again(&self) -> bool {
        false
    }
}
type Rt = &'static Runtime<Job>;
struct Handle {
    id: RunId,
    outcome: Told,
}
impl Handle {
    fn outcome(&self) -> Option<Result<(), Stop>> {
        *self.outcome.0.lock().unwrap()
    }
    fn wait(&self, rt: Rt) -> Result<(), Stop> {
        rt.wait(&[self.id], &mut || Ok(()))?;
        self.outcome().expect("a run that ended has notified its readers")
    }
}
fn job(
    rt: Rt,
    facts: RunFacts,
    body: impl Fn(&Token) -> Result<(), Stop> + Send + Sync + 'static,
) -> (Handle, (RunId, RunFacts, Job)) {
    let (id, outcome) = (rt.next_id(), Told::new((Mutex::new(None), Condvar::new())));
    (Handle { id, outcome: outcome.clone() }, (id, facts, Job { body: Box::new(body), outcome }))
}
fn push(rt: Rt, facts: RunFacts, body: impl Fn(&Token) -> Result<(), Stop> + Send + Sync + 'static) -> Handle {
    let (h, run) = job(rt, facts, body);
    rt.push(vec![run]);
    h
}
fn on(lane: usize) -> RunFacts {
    RunFacts { lane, ..RunFacts::default() }
}
fn after(h: &Handle) -> RunFacts {
    RunFacts { inputs: [h.id].into_iter().collect(), ..RunFacts::default() }
}

/// A flag that can be waited for, as host code waits for something of its own.
#[derive(Clone)]
struct Event(Arc<(Mutex<bool>, Condvar)>);
impl Event {
    fn new() -> Event {
        Event(Arc::new((Mutex::new(false), Condvar::new())))
    }
    fn set(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
    fn wait(&self) {
        let mut g = self.0.0.lock().unwrap();
        while !*g {
            g = self.0.1.wait(g).unwrap();
        }
    }
}

/// Explores every order of a program; prints how many there were.
fn model(name: &str, preemptions: usize, f: impl Fn(Rt) + Send + Sync + 'static) {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let mut b = loom::model::Builder::new();
    b.preemption_bound = Some(preemptions);
    b.max_branches = 20_000;
    b.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let rt: Rt = Box::leak(Box::default());
        f(rt);
        rt.close(&mut || Ok(())).ok();
        assert!(rt.is_idle());
    });
    println!("model {name}: {} orders, {preemptions} preemptions", count.load(Ordering::Relaxed));
}

#[test]
fn what_is_pushed_ends_and_its_readers_see_it() {
    model("push and wait, two threads", 3, |rt| {
        let other = thread::spawn(move || {
            let x = push(rt, on(0), |_| Ok(()));
            assert_eq!(x.wait(rt), Ok(()));
        });
        let x = push(rt, on(0), |_| Ok(()));
        let y = push(rt, after(&x), {
            let outcome = x.outcome.clone();
            move |_| {
                assert!(outcome.0.lock().unwrap().is_some(), "an input is there before its reader runs");
                Ok(())
            }
        });
        assert_eq!(y.wait(rt), Ok(()));
        other.join().unwrap();
    });
}

#[test]
fn host_code_may_wait_for_what_was_pushed_after_it() {
    model("a callback reads a later result", 3, |rt| {
        let (go, slot) = (Event::new(), Arc::new(Mutex::new(None)));
        let (wait, later) = (go.clone(), slot.clone());
        let x = push(rt, on(0), move |_| {
            rt.host(|| {
                wait.wait();
                let id: RunId = later.lock().unwrap().expect("set before the event");
                rt.wait(&[id], &mut || Ok(()))
            })
        });
        let blocked = push(rt, after(&x), |_| Ok(()));
        let z = push(rt, on(0), |_| Ok(()));
        *slot.lock().unwrap() = Some(z.id);
        go.set();
        assert_eq!(blocked.wait(rt), Ok(()));
        assert_eq!(z.wait(rt), Ok(()));
    });
}

#[test]
fn a_run_that_waits_for_itself_is_told_so() {
    model("a callback reads what needs it", 3, |rt| {
        let (go, slot) = (Event::new(), Arc::new(Mutex::new(None)));
        let (wait, later) = (go.clone(), slot.clone());
        let x = push(rt, on(0), move |_| {
            rt.host(|| {
                wait.wait();
                let id: RunId = later.lock().unwrap().expect("set before the event");
                let r = rt.wait(&[id], &mut || Ok(()));
                assert_eq!(r, Err(Stop::Circular));
                Ok(())
            })
        });
        let y = push(rt, after(&x), |_| Ok(()));
        *slot.lock().unwrap() = Some(y.id);
        go.set();
        assert_eq!(y.wait(rt), Ok(()));
    });
}

#[test]
fn an_interrupt_cancels_what_is_waited_for_and_no_bystander() {
    model("interrupt", 2, |rt| {
        // runs until it is stopped
        let (x, run) = job(rt, on(0), |_| Ok(()));
        let outcome = x.outcome.clone();
        let body = move |_: &Token| {
            let mut g = outcome.0.lock().unwrap();
            while g.is_none() {
                g = outcome.1.wait(g).unwrap();
            }
            Err(Stop::Cancelled)
        };
        rt.push(vec![(run.0, run.1, Job { body: Box::new(body), outcome: x.outcome.clone() })]);
        let y = push(rt, after(&x), |_| Ok(()));
        let bystander = push(rt, on(1), |_| Ok(()));
        assert_eq!(rt.wait(&[y.id], &mut || Err(Stop::NoThread)), Err(Stop::NoThread));
        assert_eq!(y.outcome(), Some(Err(Stop::Cancelled)));
        // runs needed only by it are cancelled too, and the lane is free again
        assert_eq!(x.outcome(), Some(Err(Stop::Cancelled)));
        assert_eq!(bystander.wait(rt), Ok(()));
        assert_eq!(push(rt, on(0), |_| Ok(())).wait(rt), Ok(()));
    });
}

/// The two members of a pmap meet: each announces itself, and waits for the other or for a cancel.
fn gang(rt: Rt, id: u64) -> [Handle; 2] {
    let here = [Event::new(), Event::new()];
    let member = |lane: usize| {
        let (mine, other) = (here[lane].clone(), here[1 - lane].clone());
        job(rt, RunFacts { lane, gang: Some(id), ..RunFacts::default() }, move |_| {
            mine.set();
            other.wait();
            Ok(())
        })
    };
    let ((a, ra), (b, rb)) = (member(0), member(1));
    rt.push(vec![ra, rb]);
    [a, b]
}

#[test]
fn pmaps_of_several_threads_do_not_wait_for_each_other() {
    model("two pmaps from two threads", 1, |rt| {
        let other = thread::spawn(move || gang(rt, 1).iter().for_each(|m| assert_eq!(m.wait(rt), Ok(()))));
        gang(rt, 2).iter().for_each(|m| assert_eq!(m.wait(rt), Ok(())));
        other.join().unwrap();
    });
}

#[test]
fn effects_happen_before_the_end_and_in_order() {
    model("effects at the end", 2, |rt| {
        let log = Arc::new(Mutex::new(vec![]));
        let effect = |n: u32| {
            let log = log.clone();
            push(rt, RunFacts { effects: true, ..RunFacts::default() }, move |_| {
                rt.host(|| log.lock().unwrap().push(n));
                if n == 2 { Err(Stop::Panicked) } else { Ok(()) }
            })
        };
        effect(1);
        effect(2);
        assert_eq!(rt.close(&mut || Ok(())), Err(Stop::Panicked), "an unread error is reported at the end");
        assert_eq!(*log.lock().unwrap(), [1, 2]);
        // after the end the caller does the work
        assert_eq!(push(rt, on(0), |_| Ok(())).wait(rt), Ok(()));
    });
}

#[test]
fn whoever_is_told_of_an_error_is_the_one_who_waits_for_the_run() {
    model("awaited beside a barrier", 2, |rt| {
        let other = thread::spawn(move || rt.barrier(&mut || Ok(())));
        let facts = RunFacts { effects: true, awaited: true, ..RunFacts::default() };
        let h = push(rt, facts, |_| Err(Stop::NoThread));
        assert_eq!(rt.awaited(h.id, &mut || Ok(())), Err(Stop::NoThread));
        assert_eq!(other.join().unwrap(), Ok(()), "another's barrier does not take it");
        assert_eq!(rt.barrier(&mut || Ok(())), Ok(()), "it is reported once");
    });
}
