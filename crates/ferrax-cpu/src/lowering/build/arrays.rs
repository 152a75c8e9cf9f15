//! Which cells of a loop are arrays in memory: those that are indexed, and those with too many elements for registers.
use super::{Builder, Style};
use ferrax_kernel::plan::{Loop, SlotId, Step, Trip};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Kernel, Node, Routine};

impl Builder<'_, '_> {
    /// Finds the cells of a loop that are arrays. None if it cannot be a nest.
    pub fn find_arrays(&mut self, l: &Loop) -> Option<()> {
        self.find_arrays_of_loop(l)?;
        while self.style == Style::Rows && self.find_indexed(l) {}
        Some(())
    }
    fn find_arrays_of_loop(&mut self, l: &Loop) -> Option<()> {
        let many = |b: &Self, s: SlotId| b.c.plan.slots[s as usize].len > b.most;
        for k in &l.carries {
            for s in [k.init, k.slot, k.next, k.out] {
                if self.c.plan.slots[s as usize].tape > 0 {
                    return None;
                }
                if many(self, s) {
                    self.is_array.insert(self.c.cell(s));
                }
            }
        }
        for w in l.xs.iter().chain(&l.ys) {
            if self.c.plan.slots[w.all as usize].tape > 0 {
                return None;
            }
            self.is_array.insert(self.c.cell(w.all));
            if many(self, w.each) {
                self.is_array.insert(self.c.cell(w.each));
            }
        }
        if let Trip::While { cond, .. } = &l.trip {
            self.find_arrays_of(cond)?;
        }
        self.find_arrays_of(&l.body)
    }
    fn find_arrays_of(&mut self, steps: &[Step]) -> Option<()> {
        for s in steps {
            let (ins, outs) = match s {
                Step::Loop(l) => {
                    self.find_arrays_of_loop(l)?;
                    continue;
                }
                Step::Switch { branches, .. } => {
                    branches.iter().try_for_each(|b| self.find_arrays_of(b))?;
                    continue;
                }
                Step::Copy { from, to } => (vec![*from], vec![*to]),
                Step::Kernel { ins, outs, .. } => (ins.clone(), outs.clone()),
                Step::Routine { routine, ins, outs } => {
                    match **routine {
                        Routine::DynamicSlice { .. } | Routine::Gather(_) => {
                            self.is_array.insert(self.c.cell(ins[0]));
                        }
                        Routine::DynamicUpdateSlice { .. } | Routine::Scatter(_) => {
                            self.is_array.insert(self.c.cell(ins[0]));
                            self.is_array.insert(self.c.cell(outs[0]));
                        }
                        Routine::Dot(_) => (),
                        _ => return None,
                    }
                    (ins.clone(), outs.clone())
                }
                _ => return None,
            };
            for s in ins.iter().chain(&outs) {
                if self.c.plan.slots[*s as usize].len > self.most {
                    self.is_array.insert(self.c.cell(*s));
                }
            }
        }
        Some(())
    }
    /// Adds cells of few elements that a kernel reads at the counters of its loops, those of products in loops, and the other cells of carries that
    /// have one among them. Whether any was added.
    fn find_indexed(&mut self, l: &Loop) -> bool {
        let before = self.is_array.len();
        for k in &l.carries {
            let cells = [k.init, k.slot, k.next, k.out].map(|s| self.c.cell(s));
            if cells.iter().any(|cell| self.is_array(*cell)) {
                self.is_array.extend(cells);
            }
        }
        if let Trip::While { cond, .. } = &l.trip {
            self.find_indexed_of(cond);
        }
        self.find_indexed_of(&l.body);
        self.is_array.len() > before
    }
    fn find_indexed_of(&mut self, steps: &[Step]) {
        for s in steps {
            match s {
                Step::Loop(l) => {
                    self.find_indexed(l);
                }
                Step::Switch { branches, .. } => branches.iter().for_each(|b| self.find_indexed_of(b)),
                Step::Kernel { kernel, ins, .. } if !self.is_small(kernel) => {
                    let domain = kernel.domain();
                    for (_, node) in &kernel.nodes {
                        if let Node::Load(a) = node
                            && (0..domain.len()).any(|d| domain[d] > 1 && a.at.stride(d) != 0)
                        {
                            self.is_array.insert(self.c.cell(ins[a.input as usize]));
                        }
                    }
                }
                Step::Routine { routine, ins, outs } if matches!(&**routine, Routine::Dot(d) if !self.is_written_out(d)) =>
                {
                    self.is_array.extend(ins.iter().chain(outs).map(|s| self.c.cell(*s)));
                }
                _ => (),
            }
        }
    }
    /// Whether a product's terms are written out one by one, not in loops.
    pub fn is_written_out(&self, d: &Dot) -> bool {
        self.style != Style::Rows || d.m * d.n * d.k <= self.c.target.tuning.dot.max_loop_work
    }
    /// Whether a kernel's elements are computed one by one, without loops.
    pub fn is_small(&self, k: &Kernel) -> bool {
        let n = k.grid.size();
        n > 0 && n <= self.most && k.rdims.size() <= self.most
    }
}
