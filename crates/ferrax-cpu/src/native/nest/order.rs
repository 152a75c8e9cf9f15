//! The order of a nest's instructions, and the live interval of each value.
//!
//! INVARIANT: a value that is defined outside a loop and used inside lives to the loop's end.
use crate::nest::{Def, Nest, NestCarry, NestOp, NestTrip, NestValue, RowCall, Stmt};
use ferrax_kernel::{Bin, DType};

/// One step of the code.
#[derive(Clone, Copy, Debug)]
pub enum Inst {
    Let(NestValue),
    Store { array: u32, index: NestValue, offset: i32, value: NestValue, dtype: DType, stride: i32 },
    CallRow(RowCall),
    Begin(usize),
    ExitUnless(NestValue, usize),
    End(usize),
}
#[derive(Debug)]
pub struct LoopInfo {
    pub begin: usize,
    pub end: usize,
    /// The position after which it may end.
    pub exit: Option<usize>,
    pub depth: usize,
    pub outer: Option<usize>,
    pub trip: NestTrip,
    pub carries: Vec<NestCarry>,
    /// The carry that serves as counter, and its final value; otherwise the counter has a register
    /// of its own.
    pub counted_by: Option<(NestValue, i64)>,
    pub counter: u32,
}
/// The live range of a value, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub start: usize,
    pub end: usize,
    pub weight: f32,
}
impl Interval {
    /// Whether a value is live across a call: function arguments are live before the first
    /// instruction.
    pub fn spans(&self, call: usize) -> bool {
        (self.start < call || self.start == 0) && call < self.end
    }
}
pub struct Order {
    pub insts: Vec<Inst>,
    pub loops: Vec<LoopInfo>,
    /// The loop around each instruction.
    pub around: Vec<Option<usize>>,
    /// For each value, then each array's pointer, then each counter.
    pub intervals: Vec<Option<Interval>>,
    /// The innermost loop in which a value is computed.
    pub home: Vec<Option<usize>>,
    /// Comparisons that are emitted at their uses.
    pub fused: Vec<bool>,
    arrays: usize,
}
impl Order {
    pub fn array(&self, k: u32) -> u32 {
        (self.home.len() - self.loops.len() - self.arrays) as u32 + k
    }
    /// Whether there are loops in a loop.
    pub fn has_loops(&self, l: usize) -> bool {
        self.loops.iter().any(|other| other.outer == Some(l))
    }
    pub fn of(nest: &Nest) -> Order {
        let mut o = Order {
            insts: vec![],
            loops: vec![],
            around: vec![],
            intervals: vec![],
            home: vec![None; nest.defs.len()],
            fused: vec![false; nest.defs.len()],
            arrays: nest.arrays as usize,
        };
        o.lay(nest, &nest.body, None);
        let n = nest.defs.len() + nest.arrays as usize;
        o.home.resize(n + o.loops.len(), None);
        for (k, l) in o.loops.iter_mut().enumerate() {
            l.counter = (n + k) as u32;
        }
        o.find_fused(nest);
        o.find_intervals(nest);
        o
    }
    fn lay(&mut self, nest: &Nest, body: &[Stmt], within: Option<usize>) {
        for s in body {
            let inst = match s {
                Stmt::Let(v) => {
                    self.home[*v as usize] = within;
                    Inst::Let(*v)
                }
                Stmt::Store { array, index, offset, value, dtype, stride } => {
                    let (index, offset, value) = (*index, *offset, *value);
                    Inst::Store { array: *array, index, offset, value, dtype: *dtype, stride: *stride }
                }
                Stmt::ExitUnless(p) => {
                    let l = within.expect("an exit leaves a loop");
                    self.loops[l].exit = Some(self.insts.len());
                    Inst::ExitUnless(*p, l)
                }
                Stmt::CallRow(c) => Inst::CallRow(*c),
                Stmt::Loop(l) => {
                    let k = self.loops.len();
                    let depth = within.map_or(0, |w| self.loops[w].depth) + 1;
                    self.loops.push(LoopInfo {
                        begin: self.insts.len(),
                        end: 0,
                        exit: None,
                        depth,
                        outer: within,
                        trip: l.trip,
                        carries: l.carries.clone(),
                        counted_by: counted_by(nest, l.trip, &l.carries),
                        counter: 0,
                    });
                    for c in &l.carries {
                        self.home[c.slot as usize] = Some(k);
                        self.home[c.after as usize] = within;
                    }
                    self.push(Inst::Begin(k), within);
                    self.lay(nest, &l.body, Some(k));
                    self.loops[k].end = self.insts.len();
                    Inst::End(k)
                }
            };
            self.push(inst, within);
        }
    }
    fn push(&mut self, i: Inst, within: Option<usize>) {
        self.insts.push(i);
        self.around.push(within);
    }
    /// Comparisons that every use can repeat, in the block that computes them.
    fn find_fused(&mut self, nest: &Nest) {
        let mut other = vec![false; nest.defs.len()];
        nest.outs.iter().for_each(|v| other[*v as usize] = true);
        let mut wanted = vec![false; nest.defs.len()];
        let is_compared = |v: NestValue| {
            let def = nest.def(v);
            let compares = matches!(def.op, NestOp::Bin(f) if f.is_comparison());
            compares && def.lanes == 1 && nest.dtype(def.args[0]) != DType::Bool
        };
        for (pos, inst) in self.insts.iter().enumerate() {
            match inst {
                Inst::Let(v) => {
                    let def = nest.def(*v);
                    for (k, a) in def.args().iter().enumerate() {
                        let here = def.op == NestOp::Select && k == 0 && self.home[*a as usize] == self.around[pos];
                        let same_kind = |p: NestValue| {
                            let of = nest.def(p).args[0];
                            !nest.def(of).is_float() || nest.dtype(of) == def.dtype
                        };
                        if here && is_compared(*a) && same_kind(*a) {
                            wanted[*a as usize] = true;
                        } else {
                            other[*a as usize] = true;
                        }
                    }
                }
                Inst::Store { index, value, .. } => [*index, *value].iter().for_each(|v| other[*v as usize] = true),
                Inst::ExitUnless(p, l) => {
                    let whole = is_compared(*p) && !nest.def(nest.def(*p).args[0]).is_float();
                    if whole && self.home[*p as usize] == Some(*l) {
                        wanted[*p as usize] = true;
                    } else {
                        other[*p as usize] = true;
                    }
                }
                Inst::Begin(l) => {
                    if let NestTrip::Dyn(n) = self.loops[*l].trip {
                        other[n as usize] = true;
                    }
                    self.loops[*l].carries.iter().for_each(|c| other[c.init as usize] = true);
                }
                Inst::End(l) => self.loops[*l].carries.iter().for_each(|c| other[c.next as usize] = true),
                Inst::CallRow(_) => (),
            }
        }
        for v in 0..nest.defs.len() {
            self.fused[v] = wanted[v] && !other[v];
        }
    }
    /// The operands of a definition, those of a comparison that is made with it among them.
    pub fn operands(&self, nest: &Nest, def: &Def, mut f: impl FnMut(NestValue)) {
        for a in def.args() {
            if self.fused[*a as usize] {
                nest.def(*a).args().iter().for_each(|b| f(*b));
            } else {
                f(*a);
            }
        }
    }
    fn find_intervals(&mut self, nest: &Nest) {
        self.intervals = vec![None; self.home.len()];
        for k in 0..nest.arrays {
            let at = self.array(k);
            self.intervals[at as usize] = Some(Interval { start: 0, end: 0, weight: 0.0 });
        }
        for pos in 0..self.insts.len() {
            match self.insts[pos] {
                Inst::Let(v) if self.fused[v as usize] => (),
                Inst::CallRow(_) => (),
                Inst::Let(v) => {
                    let def = *nest.def(v);
                    let mut uses = vec![];
                    self.operands(nest, &def, |a| uses.push(a));
                    uses.into_iter().for_each(|a| self.wanted(nest, a, pos));
                    if let NestOp::Load(array, _) | NestOp::LoadApart(array, ..) | NestOp::LoadWide(array, ..) = def.op
                    {
                        self.wanted(nest, self.array(array), pos);
                    }
                    let start = if matches!(def.op, NestOp::Input(_)) { 0 } else { pos };
                    self.made(v, start, pos);
                }
                Inst::Store { array, index, value, .. } => {
                    [index, value, self.array(array)].into_iter().for_each(|a| self.wanted(nest, a, pos));
                }
                Inst::ExitUnless(p, _) => {
                    let uses: Vec<NestValue> =
                        if self.fused[p as usize] { nest.def(p).args().to_vec() } else { vec![p] };
                    uses.into_iter().for_each(|a| self.wanted(nest, a, pos));
                }
                Inst::Begin(l) => {
                    if let NestTrip::Dyn(n) = self.loops[l].trip {
                        self.wanted(nest, n, pos);
                    }
                    let carries = self.loops[l].carries.clone();
                    carries.iter().for_each(|c| self.wanted(nest, c.init, pos));
                    carries.iter().for_each(|c| self.made(c.slot, pos, pos));
                    if self.loops[l].trip != NestTrip::Forever && self.loops[l].counted_by.is_none() {
                        let counter = self.loops[l].counter;
                        self.made(counter, pos, pos);
                        let weight = weight(self.loops[l].depth);
                        let end = self.loops[l].end;
                        self.intervals[counter as usize] = Some(Interval { start: pos, end, weight });
                    }
                }
                Inst::End(l) => {
                    let carries = self.loops[l].carries.clone();
                    carries.iter().for_each(|c| self.wanted(nest, c.next, pos));
                    carries.iter().for_each(|c| self.made(c.after, pos, pos));
                }
            }
        }
        let end = self.insts.len();
        nest.outs.iter().for_each(|v| self.wanted(nest, *v, end));
    }
    fn made(&mut self, v: u32, start: usize, pos: usize) {
        let depth = self.around.get(pos).copied().flatten().map_or(0, |l| self.loops[l].depth);
        self.intervals[v as usize] = Some(Interval { start, end: start, weight: weight(depth) });
    }
    fn wanted(&mut self, nest: &Nest, v: u32, pos: usize) {
        if (v as usize) < nest.defs.len() && nest.known(v).is_some() {
            return;
        }
        let Some(mut i) = self.intervals[v as usize] else { unreachable!("value {v} is wanted before it is made") };
        let mut within = self.around.get(pos).copied().flatten();
        if let Some(Inst::End(l)) = self.insts.get(pos) {
            within = Some(*l);
        }
        i.weight += weight(within.map_or(0, |l| self.loops[l].depth));
        i.end = i.end.max(pos);
        while let Some(l) = within {
            let is_own = self.home[v as usize] == Some(l);
            if !is_own && i.start <= self.loops[l].begin {
                i.end = i.end.max(self.loops[l].end);
            }
            within = self.loops[l].outer;
        }
        self.intervals[v as usize] = Some(i);
    }
}
fn weight(depth: usize) -> f32 {
    10f32.powi(depth.min(6) as i32)
}
/// A carry that grows by a constant from a constant counts a loop of known length.
fn counted_by(nest: &Nest, trip: NestTrip, carries: &[NestCarry]) -> Option<(NestValue, i64)> {
    let NestTrip::Static(n) = trip else { return None };
    carries.iter().find_map(|c| {
        let (def, dtype) = (nest.def(c.next), nest.dtype(c.slot));
        let is_sum = def.op == NestOp::Bin(Bin::Add) && def.args[0] == c.slot;
        let by = nest.known(def.args[1]).filter(|by| is_sum && (1..1 << 20).contains(by))?;
        let start = match dtype {
            DType::I32 => nest.known(c.init)? as i32 as i64,
            DType::I64 => nest.known(c.init)? as i64,
            _ => return None,
        };
        let end = start.checked_add(i64::try_from(n).ok()?.checked_mul(by as i64)?)?;
        (n > 0 && i32::try_from(end).is_ok()).then_some((c.slot, end))
    })
}
