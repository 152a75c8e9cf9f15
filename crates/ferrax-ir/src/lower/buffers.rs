//! The memory plan: where every slot lives.
//!
//! Slots that are never alive at once share bytes of one arena; a reshape, an update in place and the carry of a loop share a place
//! outright. Time is the position of a step in the order in which the plan runs, loop bodies laid out where their loop stands.
//!
//! INVARIANT: two slots share bytes only if one is never read after the other is written. A slot made outside a loop and read inside
//! lives to the loop's end, since the next iteration reads it again.
use ferrax_kernel::plan::{Place, SlotId, Trip};
use ferrax_kernel::{Kernel, Node, Plan, Step};
use std::collections::BTreeMap;

const ALIGN: usize = 64;

pub(super) fn assign(plan: &mut Plan) {
    let n = plan.slots.len();
    let mut life = Life { first: vec![u32::MAX; n], last: vec![0; n], read: vec![0; n], now: 1 };
    for s in &plan.inputs {
        life.write(*s, 0);
    }
    life.walk(&plan.steps);
    let end = life.now + 1;
    for s in &plan.outputs {
        life.read(*s, end);
    }
    let mut sets = Sets { parent: (0..n as SlotId).collect(), fixed: vec![None; n] };
    for (i, s) in plan.inputs.iter().enumerate() {
        sets.fixed[*s as usize] = Some(Place::Input(i as u32));
    }
    let pinned = pins(plan);
    share(&plan.steps, &mut 1, &mut life, &mut sets, &pinned);
    for (i, s) in plan.outputs.iter().enumerate() {
        let root = sets.root(*s) as usize;
        if sets.fixed[root].is_none() {
            sets.fixed[root] = Some(Place::Output(i as u32));
        }
    }
    plan.places = (0..n as SlotId)
        .map(|s| {
            let root = sets.root(s);
            match &sets.fixed[root as usize] {
                _ if plan.slots[s as usize].tape > 0 => Place::Tape,
                _ if pinned.window[s as usize] => Place::Window,
                Some(p) if root == s => p.clone(),
                None if root == s => Place::Arena(0),
                _ => Place::Same(root),
            }
        })
        .collect();
    pack(plan, &life);
    plan.donatable = donations(plan, &life, &mut sets);
}

/// When each slot is first written, last touched, and last read in the block that made it.
struct Life {
    first: Vec<u32>,
    last: Vec<u32>,
    read: Vec<u32>,
    now: u32,
}
impl Life {
    fn write(&mut self, s: SlotId, t: u32) {
        let s = s as usize;
        self.first[s] = self.first[s].min(t);
        self.last[s] = self.last[s].max(t);
    }
    fn read(&mut self, s: SlotId, t: u32) {
        self.write(s, t);
        self.read[s as usize] = self.read[s as usize].max(t);
    }
    fn walk(&mut self, steps: &[Step]) {
        for step in steps {
            self.now += 1;
            let start = self.now;
            match step {
                Step::Kernel { ins, outs, .. }
                | Step::Routine { ins, outs, .. }
                | Step::Callback { ins, outs, .. }
                | Step::Collective { ins, outs, .. } => {
                    ins.iter().for_each(|s| self.read(*s, start));
                    outs.iter().for_each(|s| self.write(*s, start));
                }
                Step::Copy { from, to } => {
                    self.read(*from, start);
                    self.write(*to, start);
                }
                Step::TapeLen { tape, out } => {
                    self.read(*tape, start);
                    self.write(*out, start);
                }
                Step::EmptyTape { out } => self.write(*out, start),
                Step::Switch { index, branches, outs } => {
                    self.read(*index, start);
                    branches.iter().for_each(|b| self.walk(b));
                    self.now += 1;
                    outs.iter().for_each(|s| {
                        self.write(*s, start);
                        self.write(*s, self.now);
                    });
                }
                Step::Loop(l) => {
                    if let Trip::Dyn(n) = l.trip {
                        self.read(n, start);
                    }
                    for c in &l.carries {
                        self.read(c.init, start);
                        self.write(c.slot, start);
                        self.write(c.next, start);
                    }
                    l.ys.iter().for_each(|y| self.write(y.all, start));
                    if let Trip::While { cond, pred } = &l.trip {
                        self.walk(cond);
                        self.read(*pred, self.now);
                    }
                    self.walk(&l.body);
                    self.now += 1;
                    let end = self.now;
                    // read again by the next iteration
                    for s in 0..self.first.len() {
                        if self.first[s] < start && self.last[s] > start {
                            self.last[s] = end;
                            self.read[s] = end;
                        }
                    }
                    for c in &l.carries {
                        self.write(c.slot, end);
                        self.read(c.next, end);
                        self.write(c.out, end);
                    }
                    l.xs.iter().for_each(|x| self.read(x.all, end));
                    l.ys.iter().for_each(|y| self.write(y.all, end));
                    l.count.iter().for_each(|s| self.write(*s, end));
                }
            }
        }
    }
}

/// Slots that share a place, as a forest; a root may be fixed to an input or output.
struct Sets {
    parent: Vec<SlotId>,
    fixed: Vec<Option<Place>>,
}
impl Sets {
    fn root(&self, mut s: SlotId) -> SlotId {
        while self.parent[s as usize] != s {
            s = self.parent[s as usize];
        }
        s
    }
    fn join(&mut self, life: &mut Life, root: SlotId, s: SlotId) {
        let (a, b) = (self.root(root) as usize, self.root(s) as usize);
        if a == b {
            return;
        }
        self.parent[b] = a as SlotId;
        life.first[a] = life.first[a].min(life.first[b]);
        life.last[a] = life.last[a].max(life.last[b]);
        life.read[a] = life.read[a].max(life.read[b]);
    }
}

/// Lets results take over the places of operands that die, in running order.
fn share(steps: &[Step], now: &mut u32, life: &mut Life, sets: &mut Sets, pinned: &Pinned) {
    for step in steps {
        *now += 1;
        let t = *now;
        match step {
            Step::Routine { routine, ins, outs } if routine.updates_operand() && !ins[1..].contains(&ins[0]) => {
                let (from, to) = (ins[0], outs[0]);
                // What a carry becomes may be written over the carry itself, and over nothing else.
                let free = match pinned.by[to as usize] {
                    Pin::None => true,
                    Pin::Next(slot) => sets.root(from) == sets.root(slot),
                    Pin::Fixed => false,
                };
                if free && dies(life, sets, pinned, from, t) {
                    sets.join(life, from, to);
                }
            }
            // Shared until either is updated: an update in place asks for the reads of both.
            Step::Copy { from, to } if pinned.by[*from as usize] != Pin::Fixed => {
                let free = match pinned.by[*to as usize] {
                    Pin::None => true,
                    // what a carry becomes stands in the carry's place already: it was updated there
                    Pin::Next(slot) => sets.root(*from) == sets.root(slot),
                    Pin::Fixed => false,
                };
                if free {
                    sets.join(life, *from, *to);
                }
            }
            Step::Switch { branches, .. } => {
                branches.iter().for_each(|b| share(b, now, life, sets, pinned));
                *now += 1;
            }
            Step::Loop(l) => {
                for c in &l.carries {
                    let only = l.carries.iter().filter(|d| sets.root(d.init) == sets.root(c.init)).count() == 1;
                    if only && dies(life, sets, pinned, c.init, t) && pinned.by[c.slot as usize] != Pin::Fixed {
                        sets.join(life, c.init, c.slot);
                    }
                }
                if let Trip::While { cond, .. } = &l.trip {
                    share(cond, now, life, sets, pinned);
                }
                share(&l.body, now, life, sets, pinned);
                *now += 1;
                for c in &l.carries {
                    let in_place = c.next == c.slot || sets.root(c.next) == sets.root(c.slot);
                    if in_place && pinned.by[c.out as usize] == Pin::None && pinned.by[c.slot as usize] != Pin::Fixed {
                        sets.join(life, c.slot, c.out);
                    }
                }
            }
            _ => (),
        }
    }
}
/// Whether nothing reads `s` after time t, and it is not somebody else's memory.
fn dies(life: &Life, sets: &Sets, pinned: &Pinned, s: SlotId, t: u32) -> bool {
    let r = sets.root(s) as usize;
    pinned.by[s as usize] != Pin::Fixed
        && pinned.by[r] != Pin::Fixed
        && !matches!(sets.fixed[r], Some(Place::Input(_)))
        && life.read[r] <= t
}

/// Slots that may not simply take another's place.
#[derive(Clone, Copy, PartialEq)]
enum Pin {
    None,
    /// A window, a tape, or the result of a switch (which every branch writes).
    Fixed,
    /// What the carry in this slot becomes: trades places with it.
    Next(SlotId),
}
struct Pinned {
    by: Vec<Pin>,
    window: Vec<bool>,
}
fn pins(plan: &Plan) -> Pinned {
    fn walk(steps: &[Step], p: &mut Pinned) {
        for s in steps {
            match s {
                Step::Loop(l) => {
                    for w in l.xs.iter().chain(&l.ys) {
                        p.by[w.each as usize] = Pin::Fixed;
                        p.window[w.each as usize] = true;
                    }
                    for c in l.carries.iter().filter(|c| c.next != c.slot) {
                        p.by[c.next as usize] = Pin::Next(c.slot);
                    }
                    if let Trip::While { cond, .. } = &l.trip {
                        walk(cond, p);
                    }
                    walk(&l.body, p);
                }
                Step::Switch { branches, outs, .. } => {
                    outs.iter().for_each(|s| p.by[*s as usize] = Pin::Fixed);
                    branches.iter().for_each(|b| walk(b, p));
                }
                _ => (),
            }
        }
    }
    let n = plan.slots.len();
    let mut p = Pinned { by: vec![Pin::None; n], window: vec![false; n] };
    walk(&plan.steps, &mut p);
    for (i, s) in plan.slots.iter().enumerate() {
        if s.tape > 0 {
            p.by[i] = Pin::Fixed;
        }
    }
    p
}

/// Offsets for everything left to the arena: best fit among the holes that are free at the time.
fn pack(plan: &mut Plan, life: &Life) {
    let mut order: Vec<usize> = (0..plan.slots.len()).filter(|s| matches!(plan.places[*s], Place::Arena(_))).collect();
    order.sort_unstable_by_key(|s| (life.first[*s], *s));
    let mut busy: BTreeMap<(u32, usize), usize> = BTreeMap::new(); // (end, offset) -> size
    let mut free: BTreeMap<usize, usize> = BTreeMap::new(); // offset -> size
    for s in order {
        let size = plan.slots[s].bytes().next_multiple_of(ALIGN);
        if size == 0 {
            continue;
        }
        while let Some((&(end, offset), &len)) = busy.first_key_value() {
            if end >= life.first[s] {
                break;
            }
            busy.pop_first();
            release(&mut free, offset, len);
        }
        let hole = free.iter().filter(|h| *h.1 >= size).min_by_key(|h| *h.1).map(|(o, l)| (*o, *l));
        let offset = match hole {
            Some((o, l)) => {
                free.remove(&o);
                if l > size {
                    free.insert(o + size, l - size);
                }
                o
            }
            None => {
                plan.arena += size;
                plan.arena - size
            }
        };
        busy.insert((life.last[s], offset), size);
        plan.places[s] = Place::Arena(offset);
    }
}
fn release(free: &mut BTreeMap<usize, usize>, mut offset: usize, mut len: usize) {
    if let Some((&o, &l)) = free.range(..offset).next_back()
        && o + l == offset
    {
        free.remove(&o);
        (offset, len) = (o, len + l);
    }
    if let Some(l) = free.remove(&(offset + len)) {
        len += l;
    }
    free.insert(offset, len);
}

/// For each output, an input whose memory it may take over: nothing reads the input after the step that first writes the output, and
/// that step reads it element by element, or updates it.
fn donations(plan: &Plan, life: &Life, sets: &mut Sets) -> Vec<Option<u32>> {
    let mut taken = vec![false; plan.inputs.len()];
    let mut out = vec![None; plan.outputs.len()];
    let times = times(&plan.steps);
    for (i, o) in plan.outputs.iter().enumerate() {
        let root = sets.root(*o);
        if plan.places[root as usize] != Place::Output(i as u32) {
            continue;
        }
        let Some((step, t)) = plan.steps.iter().zip(&times).find(|(s, _)| writes(s, root, sets)) else { continue };
        // The input, if it is one that nobody else takes or reads later, and that the step reads under one name only.
        let candidate = |input: SlotId, ins: &[SlotId]| {
            let Place::Input(j) = plan.places[input as usize] else { return None };
            let bytes = plan.slots[input as usize].bytes() == plan.slots[root as usize].bytes();
            let over = life.read[sets.root(input) as usize] <= *t && life.first[root as usize] >= *t;
            let alone = ins.iter().filter(|s| sets.root(**s) == sets.root(input)).count() == 1;
            (bytes && over && alone && !taken[j as usize]).then_some(j)
        };
        out[i] = match step {
            Step::Routine { routine, ins, .. } if routine.updates_operand() => candidate(ins[0], ins),
            Step::Kernel { kernel, ins, .. } => ins
                .iter()
                .enumerate()
                .filter(|(k, _)| identity(kernel, *k as u32))
                .find_map(|(_, s)| candidate(*s, ins)),
            _ => None,
        };
        if let Some(j) = out[i] {
            taken[j as usize] = true;
        }
    }
    out
}
/// The time of each top-level step, as [`Life::walk`] counts.
fn times(steps: &[Step]) -> Vec<u32> {
    let mut life = Life { first: vec![], last: vec![], read: vec![], now: 1 };
    fn skip(steps: &[Step], life: &mut Life) {
        for s in steps {
            life.now += 1;
            match s {
                Step::Switch { branches, .. } => {
                    branches.iter().for_each(|b| skip(b, life));
                    life.now += 1;
                }
                Step::Loop(l) => {
                    if let Trip::While { cond, .. } = &l.trip {
                        skip(cond, life);
                    }
                    skip(&l.body, life);
                    life.now += 1;
                }
                _ => (),
            }
        }
    }
    let mut out = vec![];
    for s in steps {
        out.push(life.now + 1);
        skip(std::slice::from_ref(s), &mut life);
    }
    out
}
fn writes(s: &Step, root: SlotId, sets: &Sets) -> bool {
    let any = |outs: &[SlotId]| outs.iter().any(|o| sets.root(*o) == root);
    match s {
        Step::Kernel { outs, .. }
        | Step::Routine { outs, .. }
        | Step::Callback { outs, .. }
        | Step::Collective { outs, .. }
        | Step::Switch { outs, .. } => any(outs),
        Step::Copy { to, .. } => any(&[*to]),
        Step::Loop(l) => l.carries.iter().any(|c| any(&[c.slot, c.next, c.out])) || l.ys.iter().any(|y| any(&[y.all])),
        Step::TapeLen { out, .. } | Step::EmptyTape { out } => any(&[*out]),
    }
}
/// Whether every load of input k is of the very element being written, and nothing is reduced.
fn identity(k: &Kernel, input: u32) -> bool {
    let dense = k.grid.strides();
    k.rdims.is_empty()
        && k.nodes.iter().all(|(_, n)| match n {
            Node::Load(a) if a.input == input => {
                a.at.offset == 0
                    && a.guards.is_empty()
                    && (0..k.grid.len()).all(|d| k.grid[d] == 1 || a.at.stride(d) == dense[d] as i64)
            }
            _ => true,
        })
}
