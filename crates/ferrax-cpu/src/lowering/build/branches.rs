//! Switches in a nest. Branches that are cheap and store nothing are all computed, and the index selects a result; otherwise only the selected branch runs.
use super::{Builder, Style};
use crate::nest::{LoopKind, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::{Bin, DType};

impl Builder<'_, '_> {
    pub(super) fn choice(&mut self, index: SlotId, branches: &[Vec<Step>], outs: &[SlotId]) -> Option<()> {
        let i = self.get(self.c.cell(index), 0, DType::I32)?;
        let outside = (self.known.clone(), self.set.clone(), self.blocks.len());
        if self.selected(i, branches, outs).is_some() {
            return Some(());
        }
        (self.known, self.set) = (outside.0, outside.1);
        self.blocks.truncate(outside.2);
        self.guarded(i, branches, outs)
    }
    /// Evaluates all branches and selects each result by the index: for branches of few operations
    /// that store nothing.
    fn selected(&mut self, i: NestValue, branches: &[Vec<Step>], outs: &[SlotId]) -> Option<()> {
        let begin = self.nest.defs.len();
        let most = self.c.target.tuning.scalars.max_branch_operations[(self.style == Style::Block) as usize];
        let mut chosen: Vec<Vec<NestValue>> = vec![];
        for (k, branch) in branches.iter().enumerate().rev() {
            let outside = (self.known.clone(), self.set.clone());
            self.blocks.push(vec![]);
            branch.iter().try_for_each(|s| self.step(s))?;
            let values: Vec<Vec<NestValue>> = outs.iter().map(|o| self.elements(*o)).collect::<Option<_>>()?;
            let body = self.blocks.pop()?;
            (self.known, self.set) = outside;
            if self.nest.defs.len() - begin > most || body.iter().any(|s| !matches!(s, Stmt::Let(_))) {
                return None;
            }
            self.blocks.last_mut()?.extend(body);
            if chosen.is_empty() {
                chosen = values;
                continue;
            }
            // the first of those that the index may still say
            let end = self.constant(DType::I32, k as u64 + 1)?;
            let is_here = self.bin(Bin::Lt, DType::Bool, i, end)?;
            for (o, (all, mine)) in outs.iter().zip(chosen.iter_mut().zip(values)) {
                let d = self.c.plan.slots[*o as usize].dtype;
                for (other, here) in all.iter_mut().zip(mine) {
                    *other = self.emit(NestOp::Select, d, &[is_here, here, *other])?;
                }
            }
        }
        outs.iter().zip(chosen).try_for_each(|(o, values)| self.put(*o, &values))
    }
    /// Runs only the selected branch: each branch is a loop of one iteration or none. Arrays stay
    /// in the memory that the branches wrote.
    fn guarded(&mut self, i: NestValue, branches: &[Vec<Step>], outs: &[SlotId]) -> Option<()> {
        let few: Vec<SlotId> = outs.iter().copied().filter(|o| !self.is_array(self.c.cell(*o))).collect();
        let mut values = vec![];
        for o in &few {
            let slot = &self.c.plan.slots[*o as usize];
            if slot.len > self.most || !self.holds(slot.dtype) {
                return None;
            }
            for _ in 0..slot.len {
                values.push(self.constant(slot.dtype, 0)?);
            }
        }
        let last = branches.len() - 1;
        for (k, branch) in branches.iter().enumerate() {
            let here = match k {
                _ if last == 0 => self.constant(DType::Bool, 1)?,
                0 => self.compared(Bin::Lt, i, 1)?,
                _ if k == last => self.compared(Bin::Ge, i, k as u64)?,
                _ => self.compared(Bin::Eq, i, k as u64)?,
            };
            let times = self.emit(NestOp::Convert(DType::Bool), DType::I64, &[here])?;
            values = self.repeat(LoopKind::Sequential, NestTrip::Dyn(times), &values, &mut |b, _, _| {
                let outside = (b.known.clone(), b.set.clone());
                branch.iter().try_for_each(|s| b.step(s))?;
                let chosen: Vec<Vec<NestValue>> = few.iter().map(|o| b.elements(*o)).collect::<Option<_>>()?;
                (b.known, b.set) = outside;
                Some(chosen.concat())
            })?;
        }
        let mut values = values.into_iter();
        for o in &few {
            let n = self.c.plan.slots[*o as usize].len;
            let of: Vec<NestValue> = values.by_ref().take(n).collect();
            self.put(*o, &of)?;
        }
        Some(())
    }
    fn compared(&mut self, f: Bin, i: NestValue, with: u64) -> Option<NestValue> {
        let with = self.constant(DType::I32, with)?;
        self.bin(f, DType::Bool, i, with)
    }
}
