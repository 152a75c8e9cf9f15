//! Three processes in random orders: what they exchange and report is the library's own code, and a table carries the bytes.
//!
//! Each has a list of calls. Some lists differ: a call more, fewer or another one, a collective left out, calls in another order; some processes end early,
//! are interrupted, die, or are stopped for a time. Steps of processes and arrivals of messages follow each other at random.
//!
//! INVARIANT: every wait ends within the bounds; an error names a cause that holds; of calls that differ, the first is named by all; a message goes to
//! the call that it was sent for; where nothing is wrong there is no error. `SEEDS=0..1000000 cargo xtask model` runs as many orders.
mod model {
    pub mod random;
    pub mod run;
    pub mod table;
}
use ferrax_peers::calls::{Bounds, Cause, Text};
use ferrax_peers::status::{Status, texts};
use ferrax_peers::watch::{Awaited, Vain, Watch};
use model::random::Random;
use model::run::{Counts, run};
use model::table::{End, Table};
use std::sync::Arc;
use std::time::Duration;

fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("SEEDS").unwrap_or_else(|_| "0..2000".into());
    let (from, to) = text.split_once("..").expect("SEEDS=0..1000");
    from.parse().expect("a number")..to.parse().expect("a number")
}
#[test]
fn every_wait_ends_with_what_it_waits_for_or_with_its_cause() {
    let mut counts = Counts::default();
    for seed in seeds() {
        if let Err((why, told)) = run(seed, &mut counts) {
            panic!("SEEDS={seed}..{}: {why}\n{}", seed + 1, told.join("\n"));
        }
    }
    println!("model of processes: {counts:?}");
}

fn status(r: &mut Random) -> Status {
    let text = |r: &mut Random| (0..r.below(9)).map(|_| ['a', '\n', 'é', '∂'][r.below(4)]).collect::<String>();
    let pairs = |r: &mut Random| (0..r.below(4)).map(|_| (r.next(), r.next())).collect::<Vec<_>>();
    let path = |r: &mut Random| (0..r.below(4)).map(|_| (r.below(1 << 40), r.next())).collect::<Vec<_>>();
    match r.below(13) {
        0 => Status::Waits { index: r.next(), digest: r.next(), wait: r.next(), round: r.next() },
        1 => Status::Same(r.next()),
        2 => Status::Finished { index: r.next(), sent: r.next() },
        3 => Status::Probe { path: path(r), round: r.next() },
        4 => Status::Circle(path(r)),
        5 => Status::Ping,
        6 => Status::Pong,
        7 => Status::Place(text(r)),
        8 => Status::Ended { calls: r.next(), sent: r.next() },
        9 => Status::GivenUp { index: r.next(), why: text(r) },
        10 => Status::Digests(pairs(r)),
        11 => Status::Differs(r.next()),
        _ => Status::Text { index: r.next(), part: text(r), last: r.once_in(2) },
    }
}
#[test]
fn statuses_are_read_as_they_were_written_and_parts_of_them_are_not() {
    let mut r = Random(7);
    for _ in 0..5000 {
        let said = status(&mut r);
        let bytes = said.bytes();
        assert_eq!(Status::read(&bytes), Some(said.clone()));
        let part = &bytes[..r.below(bytes.len())];
        assert_ne!(Status::read(part), Some(said));
    }
}
#[test]
fn texts_of_any_length_arrive_whole_in_short_messages() {
    for n in [0, 1, 2047, 2048, 2049, 10_000] {
        for c in ["a", "é", "∂"] {
            let text = c.repeat(n);
            let all = texts(3, &text);
            let part = |s: &Status| match s {
                Status::Text { index: 3, part, .. } => part.clone(),
                _ => panic!("another status"),
            };
            let last = |s: &Status| matches!(s, Status::Text { last: true, .. });
            assert_eq!(all.iter().map(part).collect::<String>(), text);
            assert!(all.iter().all(|s| s.bytes().len() < 3 << 10));
            assert_eq!(all.iter().position(last), Some(all.len() - 1));
        }
    }
}

/// What a process waits for that never comes.
struct Never(usize);
impl Awaited for Never {
    fn missing(&self) -> Result<Vec<usize>, String> {
        Ok(vec![self.0])
    }
    fn wrong(&self) -> Result<Vec<usize>, String> {
        Ok(vec![])
    }
    fn receives_from(&self, _: usize) -> Result<bool, String> {
        Ok(true)
    }
    fn has_none(&self, _: usize, _: u64) -> Result<bool, String> {
        Ok(true)
    }
}
/// Calls are made long before they are carried out: what was made and is not finished is remembered, however many calls there are.
#[test]
fn calls_made_far_ahead_are_compared() {
    const DIFFERS: u64 = 700;
    let table = Table::new(2, 1, Duration::ZERO);
    let bounds = Bounds { silence: None, circle: None };
    let both: Vec<Arc<Watch>> =
        (0..2).map(|here| Watch::new(Box::new(End { table: table.clone(), here }), here, 2, bounds)).collect();
    for (here, watch) in both.iter().enumerate() {
        for k in 0..1000 {
            let digest = if k == DIFFERS { 5000 + here as u64 } else { k };
            let text: Text = Arc::new(move || format!("{here} calls {digest}"));
            let call = watch.call(&[1 - here], digest, &text);
            if here == 1 && k < DIFFERS {
                watch.finish(call, &[0, 0]);
            }
        }
    }
    // one waits in its first call, the other where they differ
    let waits: Vec<(u64, u64)> = [1, DIFFERS + 1].iter().zip(&both).map(|(call, w)| (w.wait(*call), *call)).collect();
    let mut found = [None, None];
    for step in 0..100 {
        let now = Duration::from_millis(100 * step);
        table.lock().expect("no panic").pass(now);
        for here in 0..2 {
            both[here].pump(now).expect("a table");
            if let Err(Vain::Cause(cause)) = both[here].look(waits[here], &Never(1 - here)) {
                found[here].get_or_insert(cause);
            }
        }
    }
    // the first has finished nothing, and the other one all before
    assert!(matches!(&found[0], Some(Cause::Finished { peer: 1, index: 0, mine: Some(_) })));
    let Some(Cause::Different { peer: 0, index: DIFFERS, first: true, mine: Some(mine), theirs: Some(theirs) }) =
        &found[1]
    else {
        panic!("another cause")
    };
    assert_eq!((&*mine(), &**theirs), ("1 calls 5001", "0 calls 5000"));
}
