//! Loop-invariant code motion: values that are the same in each iteration of a loop are computed once, before it.
//!
//! ```text
//!     loop { s = logsumexp(s[:, None] + log(a)) }    ->    b = log(a); loop { s = logsumexp(s[:, None] + b) }
//! ```
//! Fusion would compute an invariant function of a constant operand within the kernel that reads it, in each iteration. So such values are
//! materialized, as far as they are expensive, and the steps that make them are moved.
//!
//! INVARIANT: materializing a value changes no bits, and a step that is moved has no effects.
use super::fuse::weight;
use super::graph::{Def, Graph, TensorId};
use ferrax_kernel::Step;
use ferrax_kernel::plan::SlotId;
use rustc_hash::FxHashSet;

/// The weight of an expression from which reading its value costs less than computing it again.
const MIN_WEIGHT: u32 = 12;
/// Elements of a value that is kept for the whole loop.
const MAX_ELEMENTS: usize = 1 << 20;

impl Graph {
    /// Materializes what a block reads of expensive values that depend on nothing but `constants`.
    pub(super) fn materialize_invariant(&mut self, constants: &[TensorId]) {
        let n = self.tensors.len();
        // whether it is the same in each iteration; whether it reads an operand; the weight of its expression
        let mut fixed = vec![false; n];
        let mut reads = vec![false; n];
        let mut weights = vec![0u32; n];
        let mut operands = constants.to_vec();
        while let Some(t) = operands.pop() {
            (fixed[t as usize], reads[t as usize]) = (true, true);
            operands.extend(self.operands_of(t));
        }
        for t in 0..n {
            if fixed[t] {
                continue;
            }
            let own = match &self.tensors[t].def {
                Def::Input | Def::Step(_) => continue,
                Def::Map(node) => weight(node),
                Def::Reduce { .. } => MIN_WEIGHT,
                _ => 0,
            };
            let operands = self.operands_of(t as TensorId);
            fixed[t] = operands.iter().all(|o| fixed[*o as usize]);
            reads[t] = operands.iter().any(|o| reads[*o as usize]);
            weights[t] = operands.iter().fold(own, |sum, o| sum.saturating_add(weights[*o as usize]));
        }
        let mut found = vec![];
        for t in 0..n {
            if !fixed[t] {
                found.extend(self.operands_of(t as TensorId).into_iter().filter(|o| fixed[*o as usize]));
            }
        }
        for mut t in found {
            while let Def::View(_) | Def::Reshape(_) = self.tensors[t as usize].def {
                t = self.operands_of(t)[0];
            }
            let at = t as usize;
            let is_computed = matches!(self.tensors[at].def, Def::Map(_) | Def::Reduce { .. });
            let is_little = self.tensors[at].shape.size() <= MAX_ELEMENTS;
            if is_computed && is_little && reads[at] && weights[at] >= MIN_WEIGHT {
                self.force(t);
            }
        }
        self.fixed = (0..n as TensorId).filter(|t| fixed[*t as usize] && reads[*t as usize]).collect();
    }
    fn operands_of(&self, t: TensorId) -> Vec<TensorId> {
        match &self.tensors[t as usize].def {
            Def::Map(node) => node.operands().iter().copied().collect(),
            Def::View(v) => vec![v.of],
            Def::Reshape(of) | Def::Reduce { of, .. } => vec![*of],
            Def::Pair(a, b) => vec![*a, *b],
            _ => vec![],
        }
    }
    /// Hoists loop-invariant steps, which read `consts` alone and do not write results of an iteration, and returns the others. Fills stay, since
    /// the steps that update them would have to copy them.
    pub(super) fn invariant(&mut self, steps: Vec<Step>, consts: &[SlotId], made: &[SlotId]) -> Vec<Step> {
        let mut known: FxHashSet<SlotId> = consts.iter().copied().collect();
        let mut left = vec![];
        for s in steps {
            let same = match &s {
                Step::Kernel { kernel, ins, outs } if !kernel.outputs.iter().all(|o| kernel.known(*o).is_some()) => {
                    Some((ins, outs))
                }
                Step::Routine { ins, outs, .. } => Some((ins, outs)),
                _ => None,
            };
            match same {
                Some((ins, outs))
                    if ins.iter().all(|i| known.contains(i)) && !outs.iter().any(|o| made.contains(o)) =>
                {
                    known.extend(outs);
                    self.steps.push(s);
                }
                _ => left.push(s),
            }
        }
        left
    }
}
