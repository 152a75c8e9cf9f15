//! The memory plan: the location of every slot.
//!
//! Slots whose lifetimes do not overlap share bytes of one arena. A reshape, an in-place update and
//! the carry of a loop share one location. Time is the position of a step in execution order, with
//! loop bodies at the position of their loop.
//!
//! INVARIANT: two slots share bytes only if neither is read after the other is written. A slot that
//! is made outside of a loop and read inside lives to the end of the loop, because the next
//! iteration reads it again. What one branch of a switch writes, another branch may still read.
mod switches;

use ferrax_kernel::plan::timeline::{Lives, Moment, Timeline, Touch};
use ferrax_kernel::plan::{Loop, Place, SlotId};
use ferrax_kernel::{Plan, Step};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use switches::Switches;

const ALIGN: usize = 64;
/// The size from which saving memory is worth more than a kernel's cost of working in place.
const LARGE: usize = 1 << 20;
/// Results of fewer bytes keep a place of their own in loops and branches: they are held in registers, where a copy costs nothing.
const MIN_BYTES_SHARED: usize = 256;

/// Unless `shared`, results take the place of no operand.
pub(super) fn assign(plan: &mut Plan, shared: bool) {
    let n = plan.slots.len();
    let steps = std::mem::take(&mut plan.steps);
    let line = Timeline::of(&steps);
    let mut life = line.lives(n, &plan.inputs, &plan.outputs);
    let mut sets = Sets { parent: (0..n as SlotId).collect(), fixed: vec![None; n] };
    for (i, s) in plan.inputs.iter().enumerate() {
        sets.fixed[*s as usize] = Some(Place::Input(i as u32));
    }
    let mut pinned = pins(plan, &line);
    if shared {
        share(&line, &mut life, &mut sets, &mut pinned);
    }
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
    plan.donatable = donations(plan, &line, &life, &sets);
    plan.steps = steps;
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
    fn join(&mut self, life: &mut Lives, root: SlotId, s: SlotId) {
        let (a, b) = (self.root(root), self.root(s));
        if a == b {
            return;
        }
        self.parent[b as usize] = a;
        life.join(a, b);
    }
}

/// Lets results take over the places of operands that die, in running order.
fn share(line: &Timeline, life: &mut Lives, sets: &mut Sets, pinned: &mut Pinned) {
    let mut switches = Switches::of(line);
    let mut loops: Vec<&Loop> = vec![];
    for (t, m) in line.moments() {
        switches.reach(t);
        let dies = |life: &Lives, sets: &Sets, pinned: &Pinned, s: SlotId| {
            let r = sets.root(s);
            pinned.is_free(s)
                && pinned.is_free(r)
                && !matches!(sets.fixed[r as usize], Some(Place::Input(_)))
                && !switches.is_read_later(line, life, sets, r, t)
        };
        match m {
            Moment::Join(outs) => switches.join(line, life, sets, pinned, outs, t),
            Moment::Step(Step::Routine { routine, ins, outs })
                if routine.updates_operand() && ins[1..].iter().all(|s| sets.root(*s) != sets.root(ins[0])) =>
            {
                let (from, to) = (ins[0], outs[0]);
                // The next value of a carry may overwrite the carry itself, and nothing else.
                let free = match pinned.by[to as usize] {
                    Pin::None => true,
                    Pin::Next(slot) => sets.root(from) == sets.root(slot),
                    Pin::Fixed | Pin::Chosen(_) => false,
                };
                if free && dies(life, sets, pinned, from) {
                    sets.join(life, from, to);
                }
            }
            // A large result may overwrite an operand that dies here and is read element by
            // element. A result of any size may overwrite the carry of the loop, which is then
            // updated in place, unless the carry is an output: its memory is left to a donated
            // input.
            Moment::Step(Step::Kernel { kernel, ins, outs }) => {
                for (o, to) in outs.iter().enumerate() {
                    let bytes = |s: SlotId| pinned.bytes[s as usize];
                    let free = sets.root(*to) == *to
                        && pinned.by[*to as usize] == Pin::None
                        && life.last[*to as usize] < line.end();
                    if !free {
                        continue;
                    }
                    let is_carried = |s: SlotId| {
                        loops.last().is_some_and(|l| l.carries.iter().any(|c| sets.root(c.slot) == sets.root(s)))
                    };
                    let over = |k: &usize| {
                        let alone = |s: &SlotId| sets.root(*s) == sets.root(ins[*k]);
                        (bytes(*to) >= LARGE || bytes(*to) >= MIN_BYTES_SHARED && is_carried(ins[*k]))
                            && kernel.in_place(*k, o)
                            && bytes(ins[*k]) == bytes(*to)
                            && ins.iter().chain(outs).filter(|s| alone(s)).count() == 1
                            && dies(life, sets, pinned, ins[*k])
                    };
                    if let Some(k) = (0..ins.len()).find(over) {
                        sets.join(life, ins[k], *to);
                    }
                }
            }
            // Shared until either is updated: an update in place depends on the reads of both.
            Moment::Step(Step::Copy { from, to }) if pinned.is_free(*from) => {
                let free = match pinned.by[*to as usize] {
                    Pin::None => true,
                    // the carry was updated in place, so its next value is in its location already
                    Pin::Next(slot) => sets.root(*from) == sets.root(slot),
                    Pin::Fixed | Pin::Chosen(_) => false,
                };
                if free {
                    sets.join(life, *from, *to);
                }
            }
            Moment::Enter(l) => {
                loops.push(l);
                for c in &l.carries {
                    let only = l.carries.iter().filter(|d| sets.root(d.init) == sets.root(c.init)).count() == 1;
                    if only && dies(life, sets, pinned, c.init) && pinned.is_free(c.slot) {
                        sets.join(life, c.init, c.slot);
                    }
                }
            }
            Moment::Leave(l, _) => {
                loops.pop();
                for c in &l.carries {
                    let in_place = c.next == c.slot || sets.root(c.next) == sets.root(c.slot);
                    if in_place && pinned.by[c.out as usize] == Pin::None && pinned.is_free(c.slot) {
                        sets.join(life, c.slot, c.out);
                    }
                }
            }
            _ => (),
        }
    }
}

/// Slots that may not simply take another's place.
#[derive(Clone, Copy, PartialEq)]
enum Pin {
    None,
    /// A window or a tape.
    Fixed,
    /// The next value of the carry in this slot, which is exchanged with it.
    Next(SlotId),
    /// The result of a switch, which every branch writes; and the carry that becomes it.
    Chosen(Option<SlotId>),
}
struct Pinned {
    bytes: Vec<usize>,
    by: Vec<Pin>,
    window: Vec<bool>,
}
impl Pinned {
    /// Whether another slot may take the place of this one.
    fn is_free(&self, s: SlotId) -> bool {
        !matches!(self.by[s as usize], Pin::Fixed | Pin::Chosen(_))
    }
}
fn pins(plan: &Plan, line: &Timeline) -> Pinned {
    let n = plan.slots.len();
    let bytes = plan.slots.iter().map(|s| s.bytes()).collect();
    let mut p = Pinned { bytes, by: vec![Pin::None; n], window: vec![false; n] };
    for (_, m) in line.moments() {
        match m {
            Moment::Enter(l) => {
                for w in l.xs.iter().chain(&l.ys) {
                    p.by[w.each as usize] = Pin::Fixed;
                    p.window[w.each as usize] = true;
                }
                for c in l.carries.iter().filter(|c| c.next != c.slot) {
                    p.by[c.next as usize] = Pin::Next(c.slot);
                }
            }
            Moment::Choose(_, outs) => {
                for s in outs {
                    let pin = &mut p.by[*s as usize];
                    *pin = Pin::Chosen(if let Pin::Next(slot) = *pin { Some(slot) } else { None });
                }
            }
            _ => (),
        }
    }
    for (i, s) in plan.slots.iter().enumerate() {
        if s.tape > 0 {
            p.by[i] = Pin::Fixed;
        }
    }
    p
}

/// Offsets for everything left to the arena: best fit among the holes that are free at the time.
fn pack(plan: &mut Plan, life: &Lives) {
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
fn donations(plan: &Plan, line: &Timeline, life: &Lives, sets: &Sets) -> Vec<Option<u32>> {
    let mut taken = vec![false; plan.inputs.len()];
    let mut out = vec![None; plan.outputs.len()];
    let writers = first_writers(line, sets);
    for (i, o) in plan.outputs.iter().enumerate() {
        let root = sets.root(*o);
        if plan.places[root as usize] != Place::Output(i as u32) {
            continue;
        }
        let Some(&(t, m)) = writers.get(&root) else { continue };
        // The input, if nothing else takes or reads it later, and that the step reads under one name only.
        let candidate = |input: SlotId, ins: &[SlotId]| {
            let Place::Input(j) = plan.places[input as usize] else { return None };
            let bytes = plan.slots[input as usize].bytes() == plan.slots[root as usize].bytes();
            let over = life.read[sets.root(input) as usize] <= t && life.first[root as usize] >= t;
            let alone = ins.iter().filter(|s| sets.root(**s) == sets.root(input)).count() == 1;
            (bytes && over && alone && !taken[j as usize]).then_some(j)
        };
        out[i] = match m {
            Moment::Step(Step::Routine { routine, ins, .. }) if routine.updates_operand() => candidate(ins[0], ins),
            Moment::Step(Step::Kernel { kernel, ins, outs }) => {
                let at = outs.iter().position(|s| sets.root(*s) == root);
                let over = |k: &usize| at.is_some_and(|o| kernel.in_place(*k, o));
                (0..ins.len()).filter(over).find_map(|k| candidate(ins[k], ins))
            }
            _ => None,
        };
        if let Some(j) = out[i] {
            taken[j as usize] = true;
        }
    }
    out
}
/// For each set, the first moment that writes it.
fn first_writers<'a>(line: &Timeline<'a>, sets: &Sets) -> FxHashMap<SlotId, (u32, Moment<'a>)> {
    let mut first = FxHashMap::default();
    for (t, m) in line.moments() {
        m.touches(|s, how| {
            if how == Touch::Write {
                first.entry(sets.root(s)).or_insert((t, m));
            }
        });
    }
    first
}
