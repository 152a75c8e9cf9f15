//! `Plan`: the program of a backend. Slots hold values, steps compute them in order, and a memory
//! plan gives the slots' locations.
//!
//! INVARIANT: within one run of a block every slot is written by one step, before any step reads
//! it. Slots of loop bodies and branches are in the same table as all others, so one arena serves
//! the whole plan and loops allocate nothing.
pub use crate::collective::{Across, Collective, Groups};
use crate::dtype::{DType, Scalar};
use crate::error::Res;
use crate::kernel::Kernel;
use crate::routine::Routine;
use std::fmt;
use std::sync::Arc;

mod communication;
mod operations;
pub mod timeline;
mod verify;

pub use communication::{Communication, Exchange};
pub use operations::Operations;
pub use verify::VerifiedPlan;

pub type SlotId = u32;

/// A value of the plan: `len` elements of `dtype`, dense; or, where `tape > 0`, a sequence of run-time length of such values (for
/// 2, of such sequences).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    pub dtype: DType,
    pub len: usize,
    pub tape: u8,
}
impl Slot {
    pub fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }
}

/// The memory of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The memory of plan input i. Read only, unless `Plan::donatable` lets an output take it over.
    Input(u32),
    /// The buffer handed out as output i.
    Output(u32),
    /// Bytes from the start of the arena; a multiple of 64.
    Arena(usize),
    /// The memory of another slot, which has the same byte count: a reshape, or an update in place.
    Same(SlotId),
    /// One element of a stacked slot or tape, at the current iteration: loops set it.
    Window,
    /// A run-time sequence.
    Tape,
}

#[derive(Clone, Debug)]
pub enum Step {
    Kernel {
        kernel: Arc<Kernel>,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    Routine {
        routine: Arc<Routine>,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    /// `to = from`: equal byte counts. Nothing to do where they share a place.
    Copy {
        from: SlotId,
        to: SlotId,
    },
    Loop(Box<Loop>),
    /// Runs `branches[clamp(index)]`; `index` is a rank-0 i32. Branches write the slots in `outs` themselves.
    Switch {
        index: SlotId,
        branches: Vec<Vec<Step>>,
        outs: Vec<SlotId>,
    },
    /// Calls the host with the operands' bytes. `ordered` and effectful ones keep their order; all run on the thread that runs the plan.
    Callback {
        call: HostCall,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    /// Across the devices of a named axis (see [`crate::backend::World`]).
    Collective {
        kind: Collective,
        across: Across,
        ins: Vec<SlotId>,
        outs: Vec<SlotId>,
    },
    /// The number of elements of a tape, as i32 or i64 by the slot.
    TapeLen {
        tape: SlotId,
        out: SlotId,
    },
    /// A tape that reads as zeros however far.
    EmptyTape {
        out: SlotId,
    },
}

/// `carry = init; for i in trip { [cond]; body }`.
///
/// INVARIANT: a carry's `next` is a slot of its own, or its `slot` itself where the body passes it on or updates it in place; so at
/// the end of an iteration `slot` and `next` are exchanged.
#[derive(Clone, Debug)]
pub struct Loop {
    pub trip: Trip,
    /// Windows run from the last element to the first.
    pub reverse: bool,
    pub carries: Vec<Carry>,
    pub xs: Vec<Window>,
    pub ys: Vec<Window>,
    /// Written at the end: how many iterations ran (i32 or i64 by the slot).
    pub count: Option<SlotId>,
    pub body: Vec<Step>,
}
#[derive(Clone, Debug)]
pub enum Trip {
    Static(usize),
    /// A rank-0 integer slot, read once.
    Dyn(SlotId),
    /// `cond` fills the rank-0 bool `pred` from the carries before each iteration.
    While {
        cond: Vec<Step>,
        pred: SlotId,
    },
}
#[derive(Clone, Debug)]
pub struct Carry {
    /// Read before the loop.
    pub init: SlotId,
    /// The slot that cond and body read.
    pub slot: SlotId,
    /// The slot that the body writes.
    pub next: SlotId,
    /// Written after the loop.
    pub out: SlotId,
}
/// `each` (Place::Window) is element i of `all`: read by the body for xs, written by it for ys. `all` is a stacked array or a tape.
#[derive(Clone, Debug)]
pub struct Window {
    pub all: SlotId,
    pub each: SlotId,
}

/// Host functions get operands and result places as bytes in slot order.
pub trait HostFn: Send + Sync {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()>;
}
#[derive(Clone)]
pub struct HostCall {
    pub name: Arc<str>,
    pub f: Arc<dyn HostFn>,
}
impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "host {}", self.name)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub slots: Vec<Slot>,
    /// Parallel to `slots`.
    pub places: Vec<Place>,
    pub inputs: Vec<SlotId>,
    pub outputs: Vec<SlotId>,
    /// Output i may take over the memory of input `donatable[i]`, when the caller donates that input.
    pub donatable: Vec<Option<u32>>,
    pub arena: usize,
    pub steps: Vec<Step>,
}

/// The sum over steps and the blocks within them, of the longest branch of each, and so much for an iteration.
fn sum(steps: &[Step], iteration: u64, of: &dyn Fn(&Step) -> u64) -> u64 {
    let one = |s: &Step| match s {
        Step::Loop(l) => {
            let test = if let Trip::While { cond, .. } = &l.trip { sum(cond, iteration, of) } else { 0 };
            let trips = if let Trip::Static(n) = l.trip { n as u64 } else { 1 };
            sum(&l.body, iteration, of).saturating_add(test).saturating_add(iteration).saturating_mul(trips)
        }
        Step::Switch { branches, .. } => branches.iter().map(|b| sum(b, iteration, of)).max().unwrap_or(0),
        s => of(s),
    };
    steps.iter().map(one).fold(0, u64::saturating_add)
}

impl Plan {
    /// How long one run is, roughly, in operations on elements, moves among them; unknown trip counts count as 1. A step without
    /// operations, such as an iteration, takes time too.
    pub fn work(&self) -> u64 {
        sum(&self.steps, 1, &|s| match s {
            Step::Kernel { kernel, .. } => (kernel.domain().size() as u64).saturating_mul(kernel.nodes.len() as u64),
            Step::Routine { routine, .. } => routine.work(),
            Step::Copy { from, to, .. } if self.root(*from) != self.root(*to) => self.slots[*from as usize].len as u64,
            _ => 1,
        })
    }
    /// The part of it in routines whose operations take much longer than a nanosecond.
    pub fn slow_work(&self) -> u64 {
        sum(&self.steps, 0, &|s| match s {
            Step::Routine { routine, .. } if routine.is_slow() => routine.work(),
            _ => 0,
        })
    }
    /// Whether a host function or another device can be waited for: such plans never run on the caller's thread while it holds locks.
    pub fn waits(&self) -> bool {
        self.calls() || self.meets()
    }
    /// Whether it meets other devices.
    pub fn meets(&self) -> bool {
        self.any_step(&|s| matches!(s, Step::Collective { .. }))
    }
    /// Whether it calls host functions.
    pub fn calls(&self) -> bool {
        self.any_step(&|s| matches!(s, Step::Callback { .. }))
    }
    /// Whether an array decides if a block of the step runs.
    pub fn branches(&self) -> bool {
        self.any_step(&|s| match s {
            Step::Switch { .. } => true,
            Step::Loop(l) => !matches!(l.trip, Trip::Static(_)),
            _ => false,
        })
    }
    /// Whether one of its steps, those of blocks included, is such.
    pub fn any_step(&self, is: &dyn Fn(&Step) -> bool) -> bool {
        fn any(s: &[Step], is: &dyn Fn(&Step) -> bool) -> bool {
            s.iter().any(|s| match s {
                s if is(s) => true,
                Step::Loop(l) => any(&l.body, is) || matches!(&l.trip, Trip::While { cond, .. } if any(cond, is)),
                Step::Switch { branches, .. } => branches.iter().any(|b| any(b, is)),
                _ => false,
            })
        }
        any(&self.steps, is)
    }
    /// Whether the number of steps executed is not known before it runs.
    pub fn unbounded(&self) -> bool {
        fn any(s: &[Step]) -> bool {
            s.iter().any(|s| match s {
                Step::Loop(l) => !matches!(l.trip, Trip::Static(_)) || any(&l.body),
                Step::Switch { branches, .. } => branches.iter().any(|b| any(b)),
                _ => false,
            })
        }
        any(&self.steps)
    }
    /// The slot that owns the memory of `s`.
    pub fn root(&self, mut s: SlotId) -> SlotId {
        while let Place::Same(of) = self.places[s as usize] {
            s = of;
        }
        s
    }
    /// Whether writing `b` overwrites `a`: they share a place, or `b` is the output that takes over
    /// the input `a`, if that is donated.
    pub fn one_place(&self, a: SlotId, b: SlotId) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        let heir = match (&self.places[a as usize], &self.places[b as usize]) {
            (Place::Input(i), Place::Output(o)) => self.donatable[*o as usize] == Some(*i),
            _ => false,
        };
        heir || a == b
    }
    pub fn add_slot(&mut self, dtype: DType, len: usize, tape: u8) -> SlotId {
        self.slots.push(Slot { dtype, len, tape });
        self.slots.len() as SlotId - 1
    }
}

/// A kernel that fills its one output with a constant.
pub fn fill(x: Scalar, len: usize) -> Kernel {
    Kernel {
        grid: [len].into(),
        nodes: vec![(x.dtype, crate::kernel::Node::Const(x))],
        outputs: vec![0],
        ..Kernel::default()
    }
}
