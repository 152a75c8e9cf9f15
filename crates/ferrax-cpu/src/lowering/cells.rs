//! The cells of a plan: slots that share memory share a cell.
use crate::tuning::Target;
use ferrax_kernel::plan::timeline::{Moment, Timeline};
use ferrax_kernel::plan::{Place, SlotId, Step};
use ferrax_kernel::{Plan, Scalar};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

pub type Cell = u32;

/// Where a cell points before any step changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    Input(u32),
    Output(u32),
    Arena(usize),
    /// Set by a loop.
    Window,
    /// Index of a tape.
    Tape(u32),
}

/// What is known of the memory of a plan while its steps are compiled.
pub struct PlanCells<'a> {
    pub plan: &'a Plan,
    pub cells: Vec<Cell>,
    pub locations: Vec<Location>,
    pub target: Target,
    cell_bytes: OnceCell<Vec<usize>>,
    /// Slots of one element that a kernel always sets to the same constant; computed at first use.
    constants: OnceCell<FxHashMap<SlotId, Option<Scalar>>>,
}

impl<'a> PlanCells<'a> {
    pub fn new(plan: &'a Plan, cells: Vec<Cell>, locations: Vec<Location>, target: Target) -> PlanCells<'a> {
        PlanCells { plan, cells, locations, target, cell_bytes: OnceCell::new(), constants: OnceCell::new() }
    }
    /// For a plan whose slots are its inputs and its outputs, each of them a cell.
    pub fn of_inputs_and_outputs(plan: &'a Plan, target: Target) -> PlanCells<'a> {
        let location = |p: &Place| match *p {
            Place::Input(i) => Location::Input(i),
            Place::Output(o) => Location::Output(o),
            _ => unreachable!("it is an input or an output"),
        };
        let cells = (0..plan.slots.len() as Cell).collect();
        PlanCells::new(plan, cells, plan.places.iter().map(location).collect(), target)
    }
    pub fn cell(&self, s: SlotId) -> Cell {
        self.cells[s as usize]
    }
    pub fn cells(&self, s: &[SlotId]) -> Box<[Cell]> {
        s.iter().map(|s| self.cell(*s)).collect()
    }
    pub fn bytes(&self, s: SlotId) -> usize {
        self.plan.slots[s as usize].bytes()
    }
    /// Whether the two cells may be one memory.
    pub fn meet(&self, a: Cell, b: Cell) -> bool {
        match (self.locations[a as usize], self.locations[b as usize]) {
            _ if a == b => true,
            (Location::Arena(x), Location::Arena(y)) => x == y,
            (Location::Output(o), Location::Input(i)) | (Location::Input(i), Location::Output(o)) => {
                self.plan.donatable.get(o as usize).copied().flatten() == Some(i)
            }
            _ => false,
        }
    }
    /// Whether bytes of the two cells, of so many each, may be the same memory.
    pub fn overlap(&self, (a, bytes_of_a): (Cell, usize), (b, bytes_of_b): (Cell, usize)) -> bool {
        match (self.locations[a as usize], self.locations[b as usize]) {
            (Location::Arena(x), Location::Arena(y)) => x < y + bytes_of_b && y < x + bytes_of_a,
            _ => self.meet(a, b),
        }
    }
    /// The bytes of the longest slot of a cell.
    pub fn cell_bytes(&self, cell: Cell) -> usize {
        self.cell_bytes.get_or_init(|| {
            let mut bytes = vec![0; self.locations.len()];
            for (slot, cell) in self.plan.slots.iter().zip(&self.cells) {
                let most: &mut usize = &mut bytes[*cell as usize];
                *most = slot.bytes().max(*most);
            }
            bytes
        })[cell as usize]
    }
    /// The constant that a slot of one element always is.
    pub fn constant(&self, s: SlotId) -> Option<Scalar> {
        let find = || {
            let mut found = FxHashMap::default();
            for (_, moment) in Timeline::of(&self.plan.steps).moments() {
                match moment {
                    Moment::Step(Step::Kernel { kernel, outs, .. }) => {
                        for (o, node) in outs.iter().zip(&kernel.outputs) {
                            if self.plan.slots[*o as usize].len == 1 {
                                found.entry(*o).or_insert(kernel.known(*node));
                            }
                        }
                    }
                    // Each branch sets them.
                    Moment::Choose(_, outs) => found.extend(outs.iter().map(|o| (*o, None))),
                    _ => (),
                }
            }
            found
        };
        self.constants.get_or_init(find).get(&s).copied().flatten()
    }
}
