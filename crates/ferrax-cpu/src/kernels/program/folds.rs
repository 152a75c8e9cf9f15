//! Reductions of a program's values by native code that keeps them in registers.
//!
//! INVARIANT: only for programs whose loads are contiguous along a row or constant in it, so that a pointer for each load is enough.
use super::{Frame, Ins, Op, TileProgram};
use crate::instructions::{Function, LaneWidth};
use crate::native::{FoldMemory, FoldSteps, Operand, RegisterFold, Replaced};

/// A value to reduce: the combining function, and the initial value of each lane.
pub type FoldedValue = (Op, Function, u64);

impl TileProgram {
    /// Declares that these values are all that the program computes, and that they are reduced.
    pub fn set_folds(&mut self, folds: Vec<FoldedValue>) {
        self.cost += 0.1 * folds.len() as f64;
        self.code.also(0.1 * folds.len() as f64);
        self.folds = folds;
    }
    /// Code for them, once there was enough work. The positions it is run for lie in one row of `row_of_folds`.
    #[inline]
    pub fn folding(&self) -> Option<&RegisterFold> {
        self.code.folding()
    }
    /// Positions that follow one another by a stride in all operands.
    pub fn row_of_folds(&self) -> usize {
        if self.loads.is_empty() { self.total } else { self.dims[self.dims.len() - 1] }
    }
    pub(super) fn compile_folds(&self) -> Option<RegisterFold> {
        if self.folds.is_empty() {
            return None;
        }
        let (mut calls, mut width) = (vec![], LaneWidth::Any);
        let mut takes = |w: LaneWidth| {
            let fits = width == LaneWidth::Any || w == LaneWidth::Any || w == width;
            width = if width == LaneWidth::Any { w } else { width };
            fits.then_some(())
        };
        for i in &self.body {
            match *i {
                Ins::Call { d, a, b, c, what: Some(function), .. } => {
                    takes(function.width()?)?;
                    calls.push(Replaced { function, d, ops: [a, b, c] });
                }
                Ins::Load { load, .. } => {
                    let l = &self.loads[load as usize];
                    let walks = matches!(l.strides.last(), Some(0 | 1));
                    (walks && l.guards.is_empty() && l.is_storage && l.size >= 4).then_some(())?;
                }
                _ => return None,
            }
        }
        for (_, f, _) in &self.folds {
            // bools are bytes, and masks in registers
            takes(f.width().filter(|w| *w != LaneWidth::Any)?)?;
        }
        let bytes = match width {
            LaneWidth::Any => return None,
            LaneWidth::Narrow => 4,
            LaneWidth::Wide => 8,
        };
        if self.loads.iter().any(|l| l.size != bytes) {
            return None;
        }
        let known = |o: Op| {
            for i in &self.body {
                if let Ins::Load { load, d } = *i
                    && d == o
                {
                    let (at, l) = (self.pointer_of_fold(load), &self.loads[load as usize]);
                    return match l.strides.last() {
                        Some(0) => Operand::One { at, bytes: l.size },
                        _ => Operand::Elsewhere(at),
                    };
                }
            }
            self.known(o)
        };
        RegisterFold::compile(&calls, width, &known, &self.folds, self.vector())
    }
    /// The table's entry for an operand of a fold, after registers and buffers used in place.
    fn pointer_of_fold(&self, load: u32) -> Op {
        (self.n_regs + self.directs.len() + load as usize) as Op
    }
    /// Folds the `n` positions from each of these on: one to each chain of the code, or fewer.
    ///
    /// # Safety
    /// The frame is one of this program's; the positions lie below `total`, each run of them in one row of `row_of_folds`.
    pub unsafe fn fold(&self, code: &RegisterFold, frame: &Frame, memory: &mut FoldMemory, from: &[usize], n: usize) {
        let last = self.dims.len() - 1;
        for chain in 0..code.chains() {
            let pos = from[chain.min(from.len() - 1)];
            let (row, j) = if last == 0 { (0, pos) } else { (pos / self.dims[last], pos % self.dims[last]) };
            code.point(memory, chain, |place| {
                let k = place as usize;
                let Some(k) = k.checked_sub(self.n_regs) else { return frame.p[k] };
                let Some(d) = self.directs.get(k) else {
                    let l = &self.loads[k - self.directs.len()];
                    let (mut rest, mut at) = (row, l.offset + j as i64 * l.strides[last]);
                    for k in (1..last).rev() {
                        at += (rest % self.dims[k]) as i64 * l.strides[k];
                        rest /= self.dims[k];
                    }
                    let at = if last == 0 { at } else { at + rest as i64 * l.strides[0] };
                    return frame.bases.of(l.buf).wrapping_offset(at as isize * l.size as isize);
                };
                frame.base[k].wrapping_add(pos * d.step * d.size)
            });
        }
        // SAFETY: by the contract.
        unsafe { self.fold_here(code, memory, n) }
    }
    /// How far all pointers move from some positions to those so many behind them, where that is the same everywhere: at most one loop is around
    /// the rows.
    pub fn fold_steps(&self, code: &RegisterFold, positions: usize) -> Option<FoldSteps> {
        let (last, row) = (self.dims.len() - 1, self.row_of_folds());
        let is_even = last == 0 || last == 1 && positions.is_multiple_of(row);
        if !is_even && !self.loads.is_empty() {
            return None;
        }
        Some(code.steps(|place| {
            let Some(k) = (place as usize).checked_sub(self.n_regs) else { return 0 };
            match self.directs.get(k) {
                Some(d) => (positions * d.step * d.size) as isize,
                None => {
                    let l = &self.loads[k - self.directs.len()];
                    let steps = if last == 0 { positions as i64 } else { (positions / row) as i64 };
                    (steps * l.strides[0]) as isize * l.size as isize
                }
            }
        }))
    }
    /// Folds `n` positions from the current position of the chains.
    ///
    /// # Safety
    /// As for `fold`, which has set their pointers, possibly advanced by `fold_steps` since.
    pub unsafe fn fold_here(&self, code: &RegisterFold, memory: &mut FoldMemory, n: usize) {
        // SAFETY: an operand used in place advances by an element a position, and so do loads, or they stay, as `compile_folds` saw; all of it
        // inside, by `Kernel::verify`. Registers hold a vector at least.
        unsafe { code.run(memory, n) }
    }
}
