//! Register allocation for a graph, in one pass over its operations in order, since a body has no branches.
//!
//! Where all registers are taken, the value with the furthest next use is spilled: constants and operands are read again, other values are stored to
//! the frame first.
//!
//! INVARIANT: when an instruction runs, each register it reads holds the value that the graph says, in every vector of positions.
use super::asm::{Emitted, GATHERING, LAST};
use crate::instructions::VectorSize;
use crate::instructions::graph::{Leaf, StoredElement, VecGraph, VecNode, VecValue, Written};
use crate::instructions::opcodes::{Opcode, Site, VecInst};
use smallvec::SmallVec;

pub struct RegisterAllocation {
    pub body: Vec<VecInst>,
    /// Vectors of the frame, those of still operands among them.
    pub frame: u32,
    pub pool: Vec<u64>,
    /// Registers that nothing else took, and the constants they hold throughout.
    pub constants: Vec<(u8, u32)>,
}
const NONE: u32 = u32::MAX;
/// The cost of writing a value to the frame, weighed against its next use, in instructions.
const SPILL: u32 = 32;

#[derive(Clone, Copy)]
enum Act {
    Op(VecValue),
    Store(Written),
}

struct Allocator<'a> {
    g: &'a VecGraph,
    /// For each operand, its vector of the frame if it does not move.
    still: &'a [Option<u32>],
    holders: SmallVec<[Option<VecValue>; 32]>,
    register: Vec<Option<u8>>,
    slot: Vec<Option<u32>>,
    /// Constants' places in the pool.
    pooled: Vec<Option<u32>>,
    /// The next item that reads a value.
    next: Vec<u32>,
    /// Registers that were ever taken: the lowest are first.
    taken: u8,
    out: RegisterAllocation,
}

/// The values that an item reads.
fn reads(g: &VecGraph, i: Act) -> SmallVec<[VecValue; 3]> {
    match i {
        Act::Store(o) => SmallVec::from_slice(&[o.value]),
        Act::Op(v) => g.nodes[v as usize].operands(),
    }
}

impl RegisterAllocation {
    /// A function with these instructions and registers: no operands, one vector of positions at a
    /// time. Callers set the rest.
    pub fn emitted(&self, wide: bool, vector: VectorSize) -> Emitted<'_> {
        Emitted {
            frame: self.frame,
            pool: &self.pool,
            constants: &self.constants,
            ..Emitted::new(wide, vector, &self.body)
        }
    }
}

/// `late`: whether no operand may be read after an output was written. `strided`: whether operands
/// or outputs are strided, which takes registers.
pub fn allocate(g: &VecGraph, still: &[Option<u32>], late: bool, strided: bool) -> RegisterAllocation {
    let end = if strided { LAST } else { g.vector.registers() };
    let n = g.nodes.len();
    let outputs: Vec<VecValue> = g.outputs.iter().map(|o| o.value).collect();
    let needed = g.needed(&outputs);
    let mut items: Vec<Act> = vec![];
    let is_leaf = |v: VecValue| matches!(g.nodes[v as usize], VecNode::Leaf(_));
    for v in (0..n as VecValue).filter(|v| needed[*v as usize] && !is_leaf(*v)) {
        items.push(Act::Op(v));
        if !late {
            items.extend(g.outputs.iter().filter(|o| o.value == v).map(|o| Act::Store(*o)));
        }
    }
    items.extend(g.outputs.iter().filter(|o| late || is_leaf(o.value)).map(|o| Act::Store(*o)));
    // The next reader after each item, for each of its operands.
    let mut next = vec![NONE; n];
    let mut after: Vec<[u32; 3]> = vec![[NONE; 3]; items.len()];
    for (i, item) in items.iter().enumerate().rev() {
        let ops = reads(g, *item);
        ops.iter().zip(&mut after[i]).for_each(|(o, a)| *a = next[*o as usize]);
        ops.iter().for_each(|o| next[*o as usize] = i as u32);
    }
    let frame = still.iter().flatten().count() as u32;
    let mut a = Allocator {
        g,
        still,
        holders: SmallVec::from_elem(None, end as usize),
        register: vec![None; n],
        slot: vec![None; n],
        pooled: vec![None; n],
        next,
        taken: 0,
        out: RegisterAllocation { body: Vec::with_capacity(2 * items.len()), frame, pool: vec![], constants: vec![] },
    };
    for (item, after) in items.iter().zip(&after) {
        a.item(*item, after);
    }
    let free = if strided { a.taken.max(GATHERING) } else { a.taken };
    keep_constants(&mut a.out, free, end);
    a.out
}

/// The source of an instruction that may be in memory.
fn place(i: &mut VecInst) -> Option<&mut Site> {
    match i {
        VecInst::Op { b, .. } | VecInst::Fused { b, .. } | VecInst::Load { from: b, .. } => Some(b),
        _ => None,
    }
}

/// Gives the registers from `first` on to the constants that are read most often.
fn keep_constants(out: &mut RegisterAllocation, first: u8, end: u8) {
    let mut reads = vec![0; out.pool.len()];
    for i in &mut out.body {
        if let Some(Site::Pool(c)) = place(i) {
            reads[*c as usize] += 1;
        }
    }
    let mut order: Vec<u32> = (0..reads.len() as u32).collect();
    order.sort_by_key(|c| std::cmp::Reverse(reads[*c as usize]));
    out.constants = (first..end).zip(order).collect();
    let mut register = vec![None; reads.len()];
    out.constants.iter().for_each(|(r, c)| register[*c as usize] = Some(*r));
    for site in out.body.iter_mut().filter_map(place) {
        if let Site::Pool(c) = *site {
            *site = register[c as usize].map_or(*site, Site::Reg);
        }
    }
}

impl Allocator<'_> {
    fn item(&mut self, item: Act, after: &[u32; 3]) {
        let ops = reads(self.g, item);
        let done = |a: &mut Self| {
            for (o, n) in ops.iter().zip(after) {
                a.next[*o as usize] = *n;
                if let (NONE, Some(r)) = (*n, a.register[*o as usize]) {
                    a.holders[r as usize] = None;
                    a.register[*o as usize] = None;
                }
            }
        };
        match item {
            Act::Store(o) => {
                let from = self.load(o.value, &ops);
                self.out.body.push(match o.to {
                    to if o.element == StoredElement::Narrow => VecInst::StoreNarrow { from, to },
                    to if o.element == StoredElement::Half => VecInst::StoreHalf { from, to },
                    to => VecInst::Store { from, to },
                });
                done(self);
            }
            Act::Op(v) => {
                let (code, a, b, m) = match self.g.nodes[v as usize] {
                    VecNode::Op { code, a, b, m } => (code, a, b, m),
                    VecNode::Leaf(_) => unreachable!("leaves are not items"),
                };
                let folded = match self.memory(b) {
                    Some(place)
                        if code.takes_memory()
                            && (a != b || !code.is_binary())
                            && (m != b || code != Opcode::Blend && !code.is_fused()) =>
                    {
                        let last = ops.iter().zip(after).all(|(o, n)| *o != b || *n == NONE);
                        (last || matches!(place, Site::Pool(_))).then_some(place)
                    }
                    _ => None,
                };
                let a = if code.is_binary() { self.load(a, &ops) } else { 0 };
                let takes_three = code == Opcode::Blend || code.is_fused();
                let m = if takes_three { self.load(m, &ops) } else { 0 };
                let b = match folded {
                    Some(place) => place,
                    None => Site::Reg(self.load(b, &ops)),
                };
                done(self);
                if code.is_fused() {
                    return self.fused(v, code, [a, m], b, &ops);
                }
                let d = self.free(&[]);
                self.hold(v, d);
                self.out.body.push(VecInst::Op { code, d, a, b, m });
            }
        }
    }
    /// The result takes the register of an operand: of one without later uses, if there is any.
    fn fused(&mut self, v: VecValue, code: Opcode, [a, m]: [u8; 2], b: Site, ops: &[VecValue]) {
        let over = |s: &Self, r: u8| s.holders[r as usize].is_none();
        let (grows, d, a, b) = match b {
            _ if over(self, m) => (false, m, a, b),
            _ if over(self, a) => (false, a, m, b),
            Site::Reg(sum) if over(self, sum) => (true, sum, a, Site::Reg(m)),
            _ => {
                let d = self.free(ops);
                self.out.body.push(VecInst::Load { d, from: Site::Reg(m) });
                (false, d, a, b)
            }
        };
        self.hold(v, d);
        self.out.body.push(VecInst::Fused { code, grows, d, a, b });
    }
    fn hold(&mut self, v: VecValue, r: u8) {
        self.taken = self.taken.max(r + 1);
        self.holders[r as usize] = Some(v);
        self.register[v as usize] = Some(r);
    }
    /// The memory from which a value without a register can be read as a whole vector.
    fn memory(&mut self, v: VecValue) -> Option<Site> {
        if self.register[v as usize].is_some() {
            return None;
        }
        match self.g.nodes[v as usize] {
            VecNode::Leaf(Leaf::Const(c)) => {
                let at = match self.pooled[v as usize] {
                    Some(at) => at,
                    None => {
                        self.out.pool.push(c);
                        self.out.pool.len() as u32 - 1
                    }
                };
                self.pooled[v as usize] = Some(at);
                Some(Site::Pool(at))
            }
            VecNode::Leaf(Leaf::At(k)) => Some(self.still[k as usize].map_or(Site::At(k), Site::Stack)),
            VecNode::Leaf(Leaf::NarrowAt(k)) => self.still[k as usize].map(Site::Stack),
            VecNode::Leaf(Leaf::PairAt(k, second)) => Some(Site::PairAt(k, second)),
            VecNode::Op { .. } => self.slot[v as usize].map(Site::Stack),
        }
    }
    /// The register of a value, loaded if necessary, without evicting one of `keep`.
    fn load(&mut self, v: VecValue, keep: &[VecValue]) -> u8 {
        if let Some(r) = self.register[v as usize] {
            return r;
        }
        let d = self.free(keep);
        let inst = match (self.memory(v), self.g.nodes[v as usize]) {
            (Some(from), _) => VecInst::Load { d, from },
            (None, VecNode::Leaf(Leaf::NarrowAt(k))) => VecInst::LoadNarrow { d, from: Site::At(k) },
            (None, _) => unreachable!("a value is in a register or in memory"),
        };
        self.out.body.push(inst);
        self.hold(v, d);
        d
    }
    /// A register that holds nothing, made so if need be.
    fn free(&mut self, keep: &[VecValue]) -> u8 {
        if let Some(r) = self.holders.iter().position(Option::is_none) {
            return r as u8;
        }
        let cost = |v: VecValue| {
            let stored = self.slot[v as usize].is_some() || matches!(self.g.nodes[v as usize], VecNode::Leaf(_));
            self.next[v as usize].saturating_add(if stored { SPILL } else { 0 })
        };
        let (r, _) = (0..self.g.vector.registers())
            .filter_map(|r| self.holders[r as usize].map(|v| (r, v)))
            .filter(|(_, v)| !keep.contains(v))
            .max_by_key(|(_, v)| cost(*v))
            .expect("an instruction reads three values at most");
        self.give_way(r);
        r
    }
    /// Lets a register go, and the value that it holds to the frame, if it is to be had nowhere else.
    fn give_way(&mut self, r: u8) {
        let Some(v) = self.holders[r as usize] else { return };
        let is_leaf = matches!(self.g.nodes[v as usize], VecNode::Leaf(_));
        if !is_leaf && self.slot[v as usize].is_none() {
            self.slot[v as usize] = Some(self.out.frame);
            self.out.body.push(VecInst::Store { from: r, to: Site::Stack(self.out.frame) });
            self.out.frame += 1;
        }
        self.register[v as usize] = None;
    }
}
