//! Loops whose blocks the host records again for each iteration.
use super::{Op, Run, Value};
use crate::device::memory;
use ferrax_kernel::plan::{Loop, Trip, Window};
use ferrax_kernel::{Error, Res};

impl Run<'_> {
    pub fn run_loop(&mut self, l: &Loop, cond: &[Op], body: &[Op]) -> Res<()> {
        for c in &l.carries {
            let v = self.get(c.init)?.clone();
            self.set(c.slot, v);
        }
        let trip = match l.trip {
            Trip::Static(n) => Some(n),
            Trip::Dyn(n) => Some(self.integer(n)?.max(0) as usize),
            Trip::While { .. } => None,
        };
        // The destination of elements of ys: an array, or a list.
        let mut ys = l.ys.iter().map(|w| self.sink(w)).collect::<Res<Vec<_>>>()?;
        let mut i = 0;
        loop {
            self.cancelled()?;
            let goes_on = match (&l.trip, trip) {
                (Trip::While { pred, .. }, _) => {
                    self.ops(cond)?;
                    self.bytes(*pred)?.first().is_some_and(|b| *b != 0)
                }
                (_, n) => Some(i) < n,
            };
            if !goes_on {
                break;
            }
            let k = trip.filter(|_| l.reverse).map_or(i, |n| n - 1 - i);
            for w in &l.xs {
                let x = self.element(w, k)?;
                self.set(w.each, x);
            }
            self.ops(body)?;
            for (w, y) in l.ys.iter().zip(&mut ys) {
                let each = self.get(w.each)?.clone();
                match (y, each) {
                    (Value::Tape(t), each) => {
                        let n = t.len();
                        let full = |_| Error::OutOfMemory(format!("out of memory in a tape of {n} elements"));
                        t.try_reserve(1).map_err(full)?;
                        t.push(each);
                    }
                    (Value::Array(all), Value::Array(each)) => {
                        let bytes = self.slot(w.each).bytes();
                        self.recorder.copy(&each, 0, &*all, k * bytes, bytes)?;
                    }
                    _ => return Err(Error::Invalid(format!("slot {} cannot hold its elements", w.all))),
                }
            }
            // All are taken before any is put: carries may be exchanged.
            let next = l.carries.iter().map(|c| self.take(c.next)).collect::<Res<Vec<_>>>()?;
            l.carries.iter().zip(next).for_each(|(c, v)| self.set(c.slot, v));
            i += 1;
        }
        for c in &l.carries {
            let v = self.take(c.slot)?;
            self.set(c.out, v);
        }
        for (w, mut y) in l.ys.iter().zip(ys) {
            if let (Value::Tape(t), true) = (&mut y, l.reverse) {
                t.reverse();
            }
            self.set(w.all, y);
        }
        l.count.map_or(Ok(()), |c| self.set_integer(c, i))
    }
    fn sink(&mut self, w: &Window) -> Res<Value> {
        Ok(if self.slot(w.all).tape > 0 { Value::Tape(vec![]) } else { Value::Array(self.fresh(w.all)?) })
    }
    /// Element `k` of the window's array.
    fn element(&mut self, w: &Window, k: usize) -> Res<Value> {
        let bytes = self.slot(w.each).bytes();
        let missing =
            |len: usize| Error::Invalid(format!("a loop reads element {k} of slot {}, which ends at {len}", w.all));
        match self.get(w.all)? {
            Value::Zeros if self.slot(w.each).tape > 0 => Ok(Value::Zeros),
            Value::Zeros => memory::zeros(self.recorder.device, bytes).map(|(zeros, _)| Value::Array(zeros)),
            Value::Tape(t) => t.get(k).cloned().ok_or_else(|| missing(t.len())),
            Value::Array(all) => {
                let (all, len) = (all.clone(), self.slot(w.all).bytes());
                if (k + 1) * bytes > len {
                    return Err(missing(len / bytes.max(1)));
                }
                let each = self.recorder.slab(bytes)?;
                self.recorder.copy(&all, k * bytes, &each, 0, bytes)?;
                Ok(Value::Array(each))
            }
        }
    }
}
