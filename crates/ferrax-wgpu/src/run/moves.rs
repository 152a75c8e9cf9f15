//! Operands that products read where they come from: of steps that only move elements, or convert them, for products alone.
//!
//! ```text
//!     t = transpose x;  p = t @ y          p reads x, at the positions that t has it from; t has no memory
//! ```
//! INVARIANT: between such a step and a product, nothing updates what it reads in place.
use super::Compiling;
use crate::routines;
use crate::run::host::is_for_host;
use crate::wgsl::epilogue::refined;
use ferrax_kernel::kernel::{Affine, Kernel, Node};
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::{DType, Dims};
use std::collections::HashMap;

/// A result of a kernel, or a copy of it, each element of which is one of another array.
#[derive(Clone)]
pub struct Move {
    /// The numbers in the block of the kernel and of the copies.
    pub steps: Vec<usize>,
    pub source: SlotId,
    input: (DType, usize),
    at: Affine,
    grid: Dims,
}

impl Move {
    /// The results of a step, if all of them are such.
    fn of(number: usize, step: &Step) -> Option<Vec<(SlotId, Move)>> {
        let Step::Kernel { kernel: k, ins, outs } = step else { return None };
        let one = |out: u32| {
            let load = match &k.nodes[out as usize].1 {
                Node::Convert(x) => &k.nodes[*x as usize].1,
                node => node,
            };
            let Node::Load(a) = load else { return None };
            let (lo, hi) = a.at.range(&k.grid)?;
            let (input, fits) = (a.input as usize, lo >= 0 && hi < i32::MAX as i64 - (1 << 24));
            (fits && a.guards.is_empty()).then(|| Move {
                steps: vec![number],
                source: ins[input],
                input: k.inputs[input],
                at: a.at.clone(),
                grid: k.grid.clone(),
            })
        };
        let all = k.outputs.iter().map(|o| one(*o)).collect::<Option<Vec<_>>>()?;
        (!is_for_host(step)).then(|| outs.iter().copied().zip(all).collect())
    }

    /// The kernel of a product whose operand `operand`, its load of that number, is read where this has it from; its dimensions are divided so that all
    /// positions are affine. None where that cannot be.
    fn read_by(&self, k: &Kernel, operand: usize) -> Option<Kernel> {
        let (d, Node::Load(a)) = &k.nodes[operand] else { return None };
        let (domain, rank) = (k.domain(), k.grid.len());
        if a.at.offset != 0 || !a.guards.is_empty() {
            return None;
        }
        let (mut fine, mut fine_rank) = (vec![], 0);
        for (axis, n) in domain.iter().enumerate() {
            fine.extend(self.divided(*n, a.at.stride(axis))?);
            fine_rank = if axis < rank { fine.len() } else { fine_rank };
        }
        let mut nodes = k.nodes.clone();
        for (_, node) in &mut nodes {
            match node {
                Node::Load(a) => a.at = refined(&a.at, &domain, &fine),
                Node::Index(_) => return None,
                _ => (),
            }
        }
        let Node::Load(mut a) = nodes[operand].1.clone() else { return None };
        a.at = self.composed(&a.at, &fine)?;
        a.fill = ferrax_kernel::Scalar::zero(self.input.0);
        nodes[operand] = (self.input.0, Node::Load(a));
        // behind the loads of both operands, what the others had read
        let seen = |o: u32| if o as usize == operand { 2 } else { o + u32::from(o >= 2) };
        nodes[2..].iter_mut().for_each(|(_, n)| n.map_operands(seen));
        nodes.insert(2, (*d, Node::Convert(operand as u32)));
        let mut inputs = k.inputs.clone();
        inputs[operand] = self.input;
        let (grid, rdims) = fine.split_at(fine_rank);
        let outputs = k.outputs.iter().map(|o| o + 1).collect();
        Some(Kernel { grid: Dims::new(grid), rdims: Dims::new(rdims), inputs, nodes, outputs })
    }
    /// An axis of so many elements, divided where its steps go from one axis of the grid to another.
    fn divided(&self, n: usize, stride: i64) -> Option<Vec<usize>> {
        let stride = usize::try_from(stride).ok()?;
        let (mut sizes, mut inner, mut behind) = (vec![], 1, 1);
        for d in self.grid.iter().rev() {
            behind *= d;
            if stride > 0 && stride < behind && behind < stride * n && behind / stride > inner {
                let cut = behind / stride;
                if behind % stride != 0 || !n.is_multiple_of(cut) {
                    return None;
                }
                sizes.push(cut / inner);
                inner = cut;
            }
        }
        sizes.push(n / inner);
        sizes.reverse();
        Some(sizes)
    }
    /// The position in the source of the element at `at` of the result.
    fn composed(&self, at: &Affine, dims: &[usize]) -> Option<Affine> {
        let mut strides = vec![0; dims.len()];
        let behind: Vec<usize> = self.grid.strides().iter().map(|s| *s as usize).collect();
        let mut reach = vec![0; self.grid.len()];
        for (k, n) in dims.iter().enumerate().filter(|(_, n)| **n > 1) {
            let stride = usize::try_from(at.stride(k)).ok()?;
            if stride == 0 {
                continue;
            }
            let axis = (0..self.grid.len()).find(|j| behind[*j] <= stride && stride < behind[*j] * self.grid[*j])?;
            if stride % behind[axis] != 0 {
                return None;
            }
            reach[axis] += (n - 1) * stride / behind[axis];
            strides[k] = self.at.stride(axis) * (stride / behind[axis]) as i64;
        }
        let stays = reach.iter().zip(self.grid.iter()).all(|(reach, n)| reach < n);
        stays.then(|| Affine::new(self.at.offset, strides))
    }
}

/// The kernel of a product and its operands, some of which it reads through `through`.
pub struct Moved {
    pub kernel: Kernel,
    pub ins: Vec<SlotId>,
    pub through: Vec<SlotId>,
}

/// The kernel of a step that is a product, which reads through those of `moves` that it can.
pub fn product(step: &Step, moves: &HashMap<SlotId, Move>) -> Option<Moved> {
    let Step::Routine { routine, ins, .. } = step else { return None };
    if is_for_host(step) {
        return None;
    }
    let kernel = routines::as_kernel(routine).filter(|k| k.domain().size() > 0)?;
    let mut it = Moved { kernel, ins: ins.clone(), through: vec![] };
    for (operand, slot) in ins.iter().enumerate().filter(|_| routines::reads_forms(routine)) {
        if let Some(by) = moves.get(slot)
            && let Some(kernel) = by.read_by(&it.kernel, operand)
        {
            it.kernel = kernel;
            it.ins[operand] = by.source;
            it.through.push(*slot);
        }
    }
    Some(it)
}

impl Compiling<'_> {
    /// Results of kernels that are read through wherever they are read, as all that their kernels make.
    pub fn moves(&self, steps: &[Step]) -> HashMap<SlotId, Move> {
        let mut moves = candidates(steps);
        loop {
            let reads = reads(steps, &moves);
            let is_whole = |s: &SlotId| self.uses[*s as usize] == 1 + reads.get(s).unwrap_or(&0);
            let stay: Vec<usize> = moves.iter().filter(|(s, _)| !is_whole(s)).map(|(_, m)| m.steps[0]).collect();
            if stay.is_empty() {
                return moves;
            }
            moves.retain(|_, m| !stay.contains(&m.steps[0]));
        }
    }
}
fn candidates(steps: &[Step]) -> HashMap<SlotId, Move> {
    let mut moves: HashMap<SlotId, Move> = HashMap::new();
    for (i, step) in steps.iter().enumerate() {
        moves.extend(Move::of(i, step).into_iter().flatten());
        if let Step::Copy { from, to } = step
            && let Some(mut copy) = moves.get(from).cloned()
        {
            copy.steps.push(i);
            moves.insert(*to, copy);
        }
    }
    moves
}
/// How often each of `moves` is copied, or read through.
fn reads(steps: &[Step], moves: &HashMap<SlotId, Move>) -> HashMap<SlotId, usize> {
    let mut reads = HashMap::new();
    for (i, step) in steps.iter().enumerate() {
        let through = match step {
            Step::Copy { from, to } if moves.contains_key(to) => vec![*from],
            _ => product(step, moves).map_or(vec![], |p| p.through),
        };
        for s in through {
            let is_as_it_was = |by: &Move| !steps[by.steps[0] + 1..i].iter().any(|step| updates(step, by.source));
            *reads.entry(s).or_insert(0) += usize::from(moves.get(&s).is_some_and(is_as_it_was));
        }
    }
    reads
}
/// Whether a step may write where slot `s` is, or set it.
pub fn updates(step: &Step, s: SlotId) -> bool {
    match step {
        Step::Routine { routine, ins, outs } => routine.updates_operand() && ins[0] == s || outs.contains(&s),
        Step::Kernel { outs, .. } => outs.contains(&s),
        other => {
            let mut named = false;
            super::names(other, &mut |n| named |= n == s);
            named
        }
    }
}
