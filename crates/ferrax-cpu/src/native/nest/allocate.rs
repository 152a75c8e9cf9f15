//! Registers for the values of a nest: linear scan over live intervals; where too many overlap, the value with the least use is spilled to the frame.
//!
//! INVARIANT: two values share a register only if their intervals do not overlap, or if one becomes the other (a carry and its next value).
use super::order::{Inst, Interval, Order};
use crate::instructions::VectorSize;
use crate::nest::{Nest, NestOp};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Reg(u8),
    /// A word of the spilled values.
    Spill(u32),
    /// The word of the frame in which the caller passed it.
    Given,
    Nowhere,
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    Whole,
    Float,
    Vector,
}
pub struct NestAllocation {
    /// For each value, array pointer and counter.
    pub places: Vec<Place>,
    pub spills: usize,
    /// Values in registers across a call: (interval, register, kind of value, word that saves it).
    pub kept: Vec<(Interval, u8, Held, u32)>,
}

/// rsi, rdi, r8 to r11, then the registers that a function must restore: rbp, r12 to r15.
const WHOLE: [u8; 11] = [6, 7, 8, 9, 10, 11, 5, 12, 13, 14, 15];
/// The registers of single floats. Those of vectors are others too, where there are more than sixteen; in between lie scratch registers of
/// instructions.
const FLOATS: u8 = 13;

struct Classes {
    of: Vec<u32>,
    intervals: Vec<Option<Interval>>,
}
impl Classes {
    fn root(&self, mut v: u32) -> u32 {
        while self.of[v as usize] != v {
            v = self.of[v as usize];
        }
        v
    }
    fn interval(&self, v: u32) -> Option<Interval> {
        self.intervals[self.root(v) as usize]
    }
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        self.of[b as usize] = a;
        self.intervals[a as usize] = match (self.intervals[a as usize], self.intervals[b as usize]) {
            (Some(x), Some(y)) => {
                Some(Interval { start: x.start.min(y.start), end: x.end.max(y.end), weight: x.weight + y.weight })
            }
            (x, y) => x.or(y),
        };
    }
}

pub fn allocate(nest: &Nest, order: &Order, vector: VectorSize) -> NestAllocation {
    let n = order.home.len();
    let mut classes = Classes { of: (0..n as u32).collect(), intervals: order.intervals.clone() };
    // A carry lives to the end of its loop, where it gets its next value.
    for l in &order.loops {
        for c in &l.carries {
            let i = classes.intervals[c.slot as usize].as_mut().expect("a carry is made");
            i.end = i.end.max(l.end);
        }
    }
    join_carries(nest, order, &mut classes);
    let held = |v: u32| match nest.defs.get(v as usize) {
        Some(def) if def.lanes > 1 => Held::Vector,
        Some(def) if def.is_float() => Held::Float,
        _ => Held::Whole,
    };
    let is_float = |v: u32| held(v) != Held::Whole;
    let words = |v: u32| if held(v) == Held::Vector { vector.bytes() as u32 / 8 } else { 1 };
    let long = 16..vector.registers();
    let mut roots: Vec<u32> = (0..n as u32).filter(|v| classes.of[*v as usize] == *v).collect();
    roots.retain(|v| classes.intervals[*v as usize].is_some());
    roots.sort_by_key(|v| classes.intervals[*v as usize].map(|i| i.start));
    let mut places = vec![Place::Nowhere; n];
    let mut active: Vec<(u32, Interval, u8)> = vec![];
    let mut spills = 0u32;
    let mut spilled = |v: u32| match given(nest, order, v) {
        true => Place::Given,
        false => {
            spills += words(v);
            Place::Spill(spills - words(v))
        }
    };
    for v in roots {
        let i = classes.intervals[v as usize].expect("it is wanted");
        active.retain(|(_, other, _)| other.end > i.start || other.start == i.start && other.end == i.start);
        let float = is_float(v);
        let taken = |r: u8| active.iter().any(|(o, _, x)| *x == r && is_float(*o) == float);
        // long registers first: single floats have no others
        let free = match held(v) {
            Held::Whole => WHOLE.into_iter().find(|r| !taken(*r)),
            Held::Float => (0..FLOATS).find(|r| !taken(*r)),
            Held::Vector => long.clone().chain(0..FLOATS).find(|r| !taken(*r)),
        };
        if let Some(r) = free {
            places[v as usize] = Place::Reg(r);
            active.push((v, i, r));
            continue;
        }
        let density = |i: &Interval| i.weight / (i.end - i.start + 1) as f32;
        let least = active
            .iter()
            .enumerate()
            .filter(|(_, (o, _, r))| is_float(*o) == float && (held(v) != Held::Float || *r < FLOATS))
            .min_by(|a, b| density(&a.1.1).total_cmp(&density(&b.1.1)))
            .map(|(k, a)| (k, density(&a.1)));
        match least {
            Some((k, d)) if d < density(&i) => {
                let (other, _, r) = active.swap_remove(k);
                places[other as usize] = spilled(other);
                places[v as usize] = Place::Reg(r);
                active.push((v, i, r));
            }
            _ => places[v as usize] = spilled(v),
        }
    }
    let mut kept = vec![];
    let calls: Vec<usize> = calls(nest, order);
    for v in 0..n as u32 {
        if let (Place::Reg(r), Some(i)) = (places[v as usize], classes.intervals[v as usize])
            && (is_float(v) || r != 5 && r < 12)
            && calls.iter().any(|c| i.spans(*c))
            && classes.of[v as usize] == v
        {
            kept.push((i, r, held(v), spills));
            spills += words(v);
        }
    }
    for v in 0..n as u32 {
        places[v as usize] = places[classes.root(v) as usize];
    }
    NestAllocation { places, spills: spills as usize, kept }
}
/// Whether a class is just an array's pointer or a number that is read: it is in the frame already.
fn given(nest: &Nest, order: &Order, v: u32) -> bool {
    let v = v as usize;
    if v < nest.defs.len() {
        return matches!(nest.defs[v].op, NestOp::Input(_));
    }
    v < order.home.len() - order.loops.len()
}
fn calls(nest: &Nest, order: &Order) -> Vec<usize> {
    let is_call = |i: &Inst| match i {
        Inst::Let(v) => matches!(nest.def(*v).op, NestOp::Call(..)),
        i => matches!(i, Inst::CallRow(_)),
    };
    (0..order.insts.len()).filter(|k| is_call(&order.insts[*k])).collect()
}
fn join_carries(nest: &Nest, order: &Order, classes: &mut Classes) {
    for (k, l) in order.loops.iter().enumerate().rev() {
        for c in &l.carries {
            classes.join(c.slot, c.after);
        }
        for (n, c) in l.carries.iter().enumerate() {
            if nest.known(c.next).is_some() || order.home[c.next as usize] != Some(k) {
                continue;
            }
            // The last use of the carry's own value.
            let mut last = order.intervals[c.slot as usize].map_or(0, |i| i.end);
            let others =
                l.carries.iter().enumerate().any(|(m, d)| m != n && (d.next == c.slot || d.next == c.next && m < n));
            if others || c.next == c.slot || l.carries.iter().any(|d| d.slot == c.next) {
                continue;
            }
            last = last.max(l.exit.map_or(0, |e| e + 1));
            let Some(next) = classes.interval(c.next) else { continue };
            if next.start >= last && next.start > l.begin && next.end <= l.end {
                classes.join(c.slot, c.next);
            }
        }
    }
    for l in &order.loops {
        for c in &l.carries {
            let plain = nest.known(c.init).is_none() && !matches!(nest.def(c.init).op, NestOp::Input(_));
            let Some((init, slot)) = classes.interval(c.init).zip(classes.interval(c.slot)) else { continue };
            if plain && init.end == l.begin && slot.start == l.begin && classes.root(c.init) != classes.root(c.slot) {
                classes.join(c.slot, c.init);
            }
        }
    }
}
