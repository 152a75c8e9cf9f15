//! A network of processes as a table, with MPI's rules: what one process sends to another with one tag arrives in order, a receive that was begun takes
//! the next bytes with its tag, and long bytes leave when they are received.
use super::random::Random;
use ferrax_peers::{Receiving, Sending, Wire};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes that leave without being received.
const EAGER: usize = 4 << 10;

struct Letter {
    tag: i32,
    bytes: Arc<Vec<u8>>,
    left: Arc<AtomicBool>,
    /// At the latest.
    arrives: Duration,
}
type Slot = Arc<Mutex<Option<Vec<u8>>>>;
#[derive(Default)]
struct Channel {
    flying: VecDeque<Letter>,
    arrived: VecDeque<Letter>,
    posted: VecDeque<(i32, Slot)>,
}
impl Channel {
    fn arrive(&mut self) {
        let Some(letter) = self.flying.pop_front() else { return };
        match self.posted.iter().position(|(tag, _)| *tag == letter.tag) {
            Some(k) => {
                letter.left.store(true, Ordering::Relaxed);
                let slot = self.posted.remove(k).expect("a position").1;
                *slot.lock().expect("no panic") = Some(letter.bytes.to_vec());
            }
            None => self.arrived.push_back(letter),
        }
    }
    fn take(&mut self, tag: Option<i32>) -> Option<Letter> {
        let k = self.arrived.iter().position(|l| tag.is_none_or(|t| t == l.tag))?;
        let letter = self.arrived.remove(k)?;
        letter.left.store(true, Ordering::Relaxed);
        Some(letter)
    }
}
pub struct Table {
    size: usize,
    channels: Vec<Channel>,
    now: Duration,
    random: Random,
    longest: Duration,
}
impl Table {
    /// A network on which bytes are under way for `longest` at most.
    pub fn new(size: usize, seed: u64, longest: Duration) -> Arc<Mutex<Table>> {
        let channels = (0..size * size).map(|_| Channel::default()).collect();
        Arc::new(Mutex::new(Table { size, channels, now: Duration::ZERO, random: Random(seed), longest }))
    }
    /// Lets time pass: what is late arrives, and some of the rest.
    pub fn pass(&mut self, now: Duration) {
        self.now = now;
        for k in 0..self.channels.len() {
            while self.channels[k].flying.front().is_some_and(|l| l.arrives <= now) {
                self.channels[k].arrive();
            }
        }
        for _ in 0..self.random.below(4) {
            let k = self.random.below(self.channels.len());
            self.channels[k].arrive();
        }
    }
    /// A process dies: the end of what it has sent may be lost.
    pub fn lose(&mut self, from: usize) {
        for to in 0..self.size {
            let flying = &mut self.channels[from * self.size + to].flying;
            let kept = self.random.below(flying.len() + 1);
            flying.truncate(kept);
        }
    }
}
/// What a process has of it.
pub struct End {
    pub table: Arc<Mutex<Table>>,
    pub here: usize,
}
impl End {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic")
    }
}
struct Sent(Arc<AtomicBool>);
impl Sending for Sent {
    fn is_done(&mut self) -> Result<bool, String> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}
struct Received(Slot, usize);
impl Receiving for Received {
    fn taken(&mut self) -> Result<Option<Vec<u8>>, String> {
        let found = self.0.lock().expect("no panic").take();
        assert!(found.as_ref().is_none_or(|b| b.len() == self.1), "bytes of another message");
        Ok(found)
    }
}
impl Wire for End {
    fn send(&self, to: usize, tag: i32, bytes: Arc<Vec<u8>>) -> Result<Box<dyn Sending>, String> {
        let mut t = self.table();
        let left = Arc::new(AtomicBool::new(bytes.len() <= EAGER));
        let wait = t.longest.mul_f64(t.random.below(1000) as f64 / 1000.0);
        let (arrives, k) = (t.now + wait, self.here * t.size + to);
        // nothing arrives before what was sent before
        t.channels[k].flying.push_back(Letter { tag, bytes, left: left.clone(), arrives });
        Ok(Box::new(Sent(left)))
    }
    fn take(&self, from: usize, tag: Option<i32>) -> Result<Option<Vec<u8>>, String> {
        let mut t = self.table();
        let k = from * t.size + self.here;
        Ok(t.channels[k].take(tag).map(|l| l.bytes.to_vec()))
    }
    fn receive(&self, from: usize, tag: i32, bytes: usize) -> Result<Box<dyn Receiving>, String> {
        let mut t = self.table();
        let k = from * t.size + self.here;
        let found = t.channels[k].take(Some(tag)).map(|l| l.bytes.to_vec());
        let slot = Arc::new(Mutex::new(found));
        if slot.lock().expect("no panic").is_none() {
            t.channels[k].posted.push_back((tag, slot.clone()));
        }
        Ok(Box::new(Received(slot, bytes)))
    }
}
