//! The units of a plan, which become one task each: steps, updates of one array, programs over rows and products with what is computed of them
//! ([`super::rows`]), routines with operands that they compute ([`super::computed`]), and products of one size ([`super::together`]).
use super::Compiling;
use super::rows::RowProgram;
use super::updates::Updates;
use crate::routines::Argument;
use ferrax_kernel::Routine;
use ferrax_kernel::plan::{SlotId, Step};
use std::collections::HashMap;

/// A part of a block of steps.
pub enum Unit<'a> {
    Step(&'a Step),
    Rows(Box<RowProgram>, Vec<&'a Step>),
    Updates(Box<Updates>, Vec<&'a Step>),
    Computed(Computed<'a>, Vec<&'a Step>),
    Together(Together<'a>, Vec<&'a Step>),
}
impl<'a> Unit<'a> {
    pub fn steps(&self) -> &[&'a Step] {
        match self {
            Unit::Step(s) => std::slice::from_ref(s),
            Unit::Rows(_, steps) | Unit::Updates(_, steps) | Unit::Computed(_, steps) | Unit::Together(_, steps) => {
                steps
            }
        }
    }
}

/// A routine, some operands of which it computes.
pub struct Computed<'a> {
    pub routine: &'a Routine,
    pub ins: Vec<SlotId>,
    pub outs: &'a [SlotId],
    /// Of `ins`.
    pub arguments: Vec<Argument>,
}

/// Units that are products of one size, and each as a program.
pub struct Together<'a> {
    pub units: Vec<Unit<'a>>,
    pub programs: Vec<RowProgram>,
}

impl Compiling<'_> {
    /// The units of a block.
    pub fn units<'a>(&self, steps: &'a [Step]) -> Vec<Unit<'a>> {
        let mut updates = self.updates(steps);
        let mut taken = vec![false; steps.len()];
        let moves = self.moves(steps);
        moves.values().flat_map(|m| &m.steps).for_each(|i| taken[*i] = true);
        let mut read = HashMap::new();
        for (chain, members) in updates.values() {
            members.iter().for_each(|i| taken[*i] = true);
            chain.starts().iter().for_each(|s| *read.entry(*s).or_insert(0) += 1);
        }
        steps.iter().zip(&mut taken).for_each(|(s, taken)| *taken |= self.is_unread(s, &read));
        let mut units = vec![];
        for first in 0..steps.len() {
            if let Some((chain, members)) = updates.remove(&first) {
                units.push(Unit::Updates(Box::new(chain), members.iter().map(|i| &steps[*i]).collect()));
                continue;
            }
            if taken[first] {
                continue;
            }
            match self.program(steps, first, &taken, &moves) {
                Some((program, members)) => {
                    members.iter().for_each(|i| taken[*i] = true);
                    units.push(Unit::Rows(Box::new(program), members.iter().map(|i| &steps[*i]).collect()));
                }
                None => units.push(Unit::Step(&steps[first])),
            }
        }
        self.together(self.computing(units))
    }
}
