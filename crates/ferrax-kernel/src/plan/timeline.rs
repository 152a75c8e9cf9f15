//! The steps of a plan as one flat list in execution order.
//!
//! The arena's packing, donation, and [`super::verify`] read the lifetimes of slots from this list.
//! A moment's position in the list is its time. Bodies and branches lie between the begin and the
//! end of their step:
//!
//! ```text
//!     x = kernel a            1  Step
//!     while p(c) {            2  Enter      reads what the loop starts from, takes the carries' places
//!         p = kernel c        3    Step
//!                             4    Test     reads p
//!         d = kernel c, x     5    Step
//!     }                       6  Leave      ends an iteration: what it reads of outside lives up to here
//! ```
//!
//! INVARIANT: time 0 is when the inputs are given; no moment has it.
use super::{Loop, SlotId, Step, Trip};

#[derive(Clone, Copy)]
pub enum Moment<'a> {
    /// A step without blocks.
    Step(&'a Step),
    Enter(&'a Loop),
    /// The predicate of a `while` is computed, and is read.
    Test(&'a Loop, SlotId),
    /// The end of an iteration and of the loop, which was entered at this time.
    Leave(&'a Loop, u32),
    /// A switch begins: its index, its results.
    Choose(SlotId, &'a [SlotId]),
    /// One of its branches ends.
    Branch(&'a [SlotId]),
    /// All have ended.
    Join(&'a [SlotId]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    Read,
    Write,
}

/// The moments of a plan; the one at index i has time i + 1.
pub struct Timeline<'a> {
    moments: Vec<Moment<'a>>,
}

impl<'a> Timeline<'a> {
    pub fn of(steps: &'a [Step]) -> Timeline<'a> {
        let mut t = Timeline { moments: Vec::with_capacity(steps.len()) };
        t.lay(steps);
        t
    }
    fn lay(&mut self, steps: &'a [Step]) {
        for s in steps {
            match s {
                Step::Loop(l) => {
                    self.moments.push(Moment::Enter(l));
                    let entered = self.moments.len() as u32;
                    if let Trip::While { cond, pred } = &l.trip {
                        self.lay(cond);
                        self.moments.push(Moment::Test(l, *pred));
                    }
                    self.lay(&l.body);
                    self.moments.push(Moment::Leave(l, entered));
                }
                Step::Switch { index, branches, outs } => {
                    self.moments.push(Moment::Choose(*index, outs));
                    for b in branches {
                        self.lay(b);
                        self.moments.push(Moment::Branch(outs));
                    }
                    self.moments.push(Moment::Join(outs));
                }
                _ => self.moments.push(Moment::Step(s)),
            }
        }
    }
    /// Moments with their times.
    pub fn moments(&self) -> impl Iterator<Item = (u32, Moment<'a>)> {
        (1..).zip(self.moments.iter().copied())
    }
    /// Moments after time `from`, up to and with time `to`.
    pub fn between(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, Moment<'a>)> {
        let (from, to) = (from as usize, (to as usize).min(self.moments.len()));
        (from as u32 + 1..).zip(self.moments[from.min(to)..to].iter().copied())
    }
    /// After everything.
    pub fn end(&self) -> u32 {
        self.moments.len() as u32 + 1
    }
    /// When each of `n` slots is alive. `inputs` are written before all else, `outputs` are read after it.
    pub fn lives(&self, n: usize, inputs: &[SlotId], outputs: &[SlotId]) -> Lives {
        let mut lives = Lives { first: vec![u32::MAX; n], last: vec![0; n], read: vec![0; n] };
        inputs.iter().for_each(|s| lives.touch(*s, Touch::Write, 0));
        for (t, m) in self.moments() {
            if let Moment::Leave(_, entered) = m {
                // the next iteration reads slots from outside again
                for inside in &self.moments[entered as usize..t as usize - 1] {
                    inside.touches(|s, _| {
                        if lives.first[s as usize] < entered {
                            lives.touch(s, Touch::Read, t);
                        }
                    });
                }
            }
            m.touches(|s, how| lives.touch(s, how, t));
        }
        outputs.iter().for_each(|s| lives.touch(*s, Touch::Read, self.end()));
        lives
    }
}

impl Moment<'_> {
    /// The slots that are read and written now, in this order.
    pub fn touches(&self, mut f: impl FnMut(SlotId, Touch)) {
        use Touch::{Read, Write};
        match self {
            Moment::Step(s) => match s {
                Step::Kernel { ins, outs, .. }
                | Step::Routine { ins, outs, .. }
                | Step::Callback { ins, outs, .. }
                | Step::Collective { ins, outs, .. } => {
                    ins.iter().for_each(|s| f(*s, Read));
                    outs.iter().for_each(|s| f(*s, Write));
                }
                Step::Copy { from: x, to: y } | Step::TapeLen { tape: x, out: y } => {
                    f(*x, Read);
                    f(*y, Write);
                }
                Step::EmptyTape { out } => f(*out, Write),
                Step::Loop(_) | Step::Switch { .. } => unreachable!("laid out"),
            },
            Moment::Enter(l) => {
                if let Trip::Dyn(n) = l.trip {
                    f(n, Read);
                }
                l.carries.iter().for_each(|c| f(c.init, Read));
                for c in &l.carries {
                    f(c.slot, Write);
                    f(c.next, Write);
                }
                l.ys.iter().for_each(|y| f(y.all, Write));
            }
            Moment::Test(_, pred) => f(*pred, Read),
            Moment::Leave(l, _) => {
                l.carries.iter().for_each(|c| f(c.next, Read));
                l.xs.iter().for_each(|x| f(x.all, Read));
                for c in &l.carries {
                    f(c.slot, Write);
                    f(c.out, Write);
                }
                l.ys.iter().for_each(|y| f(y.all, Write));
                l.count.iter().for_each(|s| f(*s, Write));
            }
            Moment::Choose(index, outs) => {
                f(*index, Read);
                outs.iter().for_each(|s| f(*s, Write));
            }
            Moment::Branch(_) => (),
            Moment::Join(outs) => outs.iter().for_each(|s| f(*s, Write)),
        }
    }
}

/// When each slot is first touched, last touched, and last read.
#[derive(Clone, Debug)]
pub struct Lives {
    pub first: Vec<u32>,
    pub last: Vec<u32>,
    pub read: Vec<u32>,
}
impl Lives {
    fn touch(&mut self, s: SlotId, how: Touch, t: u32) {
        let s = s as usize;
        self.first[s] = self.first[s].min(t);
        self.last[s] = self.last[s].max(t);
        if how == Touch::Read {
            self.read[s] = self.read[s].max(t);
        }
    }
    /// `b` lives where `a` does from now on.
    pub fn join(&mut self, a: SlotId, b: SlotId) {
        let (a, b) = (a as usize, b as usize);
        self.first[a] = self.first[a].min(self.first[b]);
        self.last[a] = self.last[a].max(self.last[b]);
        self.read[a] = self.read[a].max(self.read[b]);
    }
}
