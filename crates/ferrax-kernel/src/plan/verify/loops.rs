//! Loops: what their carries, windows and stacks must keep while they run.
//!
//! INVARIANT: between `enter` and `leave` of a loop its frame is the last, and the cells of its carries are marked with its number.
use super::{Check, Frame, WindowUse, bad};
use crate::dtype::DType;
use crate::error::Res;
use crate::plan::{Loop, Place, SlotId, Trip};

impl Check<'_> {
    pub(super) fn enter(&mut self, l: &Loop) -> Res<()> {
        if let Trip::Dyn(n) = l.trip {
            self.number(n, DType::is_int, "a trip count")?;
            self.read(n)?;
        }
        for c in &l.carries {
            self.read(c.init)?;
            for s in [c.slot, c.next, c.out] {
                self.exists(s)?;
                let (a, b) = (&self.plan.slots[c.init as usize], &self.plan.slots[s as usize]);
                if a.tape != b.tape || self.bytes[c.init as usize] != self.bytes[s as usize] {
                    return bad(format!("{c:?}: slots of unlike sizes"));
                }
            }
        }
        self.loops_seen += 1;
        let frame = Frame { id: self.loops_seen, outside: self.defined.len(), reads: vec![] };
        let id = frame.id;
        self.loops.push(frame);
        for (k, c) in l.carries.iter().enumerate() {
            let (slot, next) = (self.cell(c.slot), self.cell(c.next));
            if self.mark[slot].0 == id || self.mark[next].0 == id {
                return bad(format!("{c:?}: its place is another carry's"));
            }
            if c.next != c.slot {
                self.write(c.next)?;
                self.stamp[c.next as usize] = 0;
            }
            self.write(c.slot)?;
            self.rewritten[c.slot as usize] = c.next == c.slot;
            for cell in [slot, next] {
                self.mark[cell] = (id, k as u32);
                self.kept[cell] += 1;
            }
        }
        for y in &l.ys {
            self.exists(y.all)?;
            let cell = self.cell(y.all);
            if self.mark[cell].0 == id {
                return bad(format!("{y:?}: its place is a carry's"));
            }
            self.mark[cell] = (id, u32::MAX);
            self.write(y.all)?;
            self.stamp[y.all as usize] = 0;
            self.stacked[cell] = true;
        }
        for c in &l.carries {
            if self.cell(c.init) != self.cell(c.slot) && !self.is_live(c.init) {
                return bad(format!("{c:?}: the initial value is overwritten as the loop begins"));
            }
        }
        if matches!(l.trip, Trip::While { .. }) { Ok(()) } else { self.show(l) }
    }
    /// An iteration's windows.
    pub(super) fn show(&mut self, l: &Loop) -> Res<()> {
        let trips = if let Trip::Static(n) = l.trip { Some(n) } else { None };
        for (w, x) in l.xs.iter().map(|w| (w, true)).chain(l.ys.iter().map(|w| (w, false))) {
            self.exists(w.all)?;
            self.exists(w.each)?;
            let each = w.each as usize;
            let (a, e) = (&self.plan.slots[w.all as usize], &self.plan.slots[each]);
            let (all_bytes, bytes) = (self.bytes[w.all as usize], self.bytes[each]);
            let needed = trips.and_then(|n| n.checked_mul(bytes));
            let fits = match a.tape {
                0 if x => e.tape == 0 && needed.is_some_and(|n| n <= all_bytes),
                0 => e.tape == 0 && needed == Some(all_bytes),
                depth => e.tape + 1 == depth && bytes == all_bytes,
            };
            let place = if e.tape > 0 { Place::Tape } else { Place::Window };
            if !fits || self.plan.places[each] != place || self.stamp[each] != 0 || self.window[each].is_some() {
                return bad(format!("{w:?} of a loop over {:?} iterations: no element of its array", trips));
            }
            if x {
                self.read(w.all)?;
                self.window[each] = Some(WindowUse::Of(w.all));
                self.write_over(each);
                self.define(w.each);
            } else {
                self.window[each] = Some(WindowUse::Into);
            }
        }
        Ok(())
    }
    pub(super) fn leave(&mut self, l: &Loop) -> Res<()> {
        for c in &l.carries {
            if !self.is_live(c.next) {
                return bad(format!("{c:?}: the body does not write what the carry becomes"));
            }
        }
        if let Some(y) = l.ys.iter().find(|y| !self.is_live(y.each)) {
            return bad(format!("{y:?}: the body does not write it"));
        }
        l.xs.iter().try_for_each(|x| self.read(x.all))?;
        let Some(frame) = self.loops.pop() else { return bad("a loop ends that never began".into()) };
        for s in &frame.reads {
            if !self.is_live(*s) {
                return bad(format!("slot {s} is overwritten in a loop whose next iteration reads it"));
            }
            // for the loops around
            self.read(*s)?;
        }
        self.close(frame.outside);
        l.xs.iter().chain(&l.ys).for_each(|w| self.window[w.each as usize] = None);
        l.carries.iter().for_each(|c| self.rewritten[c.slot as usize] = false);
        // Loops inside may have marked these cells.
        for (k, c) in l.carries.iter().enumerate() {
            for s in [c.slot, c.next] {
                let cell = self.cell(s);
                self.mark[cell] = (frame.id, k as u32);
            }
        }
        for (k, c) in l.carries.iter().enumerate() {
            let (by, owner) = self.mark[self.cell(c.out)];
            if by == frame.id && owner != k as u32 {
                return bad(format!("{c:?}: its result takes another carry's place"));
            }
            self.write(c.out)?;
        }
        if let Some(n) = l.count {
            self.integer(n, "a count")?;
            if self.mark[self.cell(n)].0 == frame.id {
                return bad(format!("slot {n} counts where a carry lies"));
            }
            self.write(n)?;
        }
        for c in &l.carries {
            for s in [c.slot, c.next] {
                let cell = self.cell(s);
                self.kept[cell] -= 1;
            }
        }
        for y in &l.ys {
            let cell = self.cell(y.all);
            self.stacked[cell] = false;
            self.define(y.all);
        }
        let outs: Vec<SlotId> = l.carries.iter().map(|c| c.out).chain(l.ys.iter().map(|y| y.all)).collect();
        self.apart(&outs)
    }
}
