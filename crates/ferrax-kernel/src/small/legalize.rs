//! Legalizing plans: small dtypes become bytes.
use super::nodes::Nodes;
use crate::dtype::{DType, Scalar};
use crate::expr::{Bin, ReduceKind, Un};
use crate::kernel::{Access, Kernel, Node, NodeId};
use crate::plan::{Plan, Step, Trip};
use crate::routine::{Combine, Routine};
use std::sync::Arc;

/// Writes the plan in terms of bytes. Its routines move small elements at most.
pub fn legalize(plan: &mut Plan) {
    if plan.slots.iter().any(|s| s.dtype.is_small()) || holds(&plan.steps) {
        plan.slots.iter_mut().for_each(|s| s.dtype = s.dtype.storage());
        steps(&mut plan.steps);
    }
}
fn is_legal(k: &Kernel) -> bool {
    !k.inputs.iter().any(|i| i.0.is_small()) && !k.nodes.iter().any(|n| n.0.is_small())
}
/// Whether a kernel computes with small elements, even if none is in memory.
fn holds(all: &[Step]) -> bool {
    all.iter().any(|s| match s {
        Step::Kernel { kernel, .. } => !is_legal(kernel),
        Step::Loop(l) => holds(&l.body) || matches!(&l.trip, Trip::While { cond, .. } if holds(cond)),
        Step::Switch { branches, .. } => branches.iter().any(|b| holds(b)),
        _ => false,
    })
}
fn steps(all: &mut [Step]) {
    for s in all {
        match s {
            Step::Kernel { kernel, .. } if !is_legal(kernel) => *kernel = Arc::new(legalized(kernel)),
            Step::Routine { routine, .. } => {
                if let Some(r) = moved(routine) {
                    *routine = Arc::new(r);
                }
            }
            Step::Loop(l) => {
                if let Trip::While { cond, .. } = &mut l.trip {
                    steps(cond);
                }
                steps(&mut l.body);
            }
            Step::Switch { branches, .. } => branches.iter_mut().for_each(|b| steps(b)),
            _ => (),
        }
    }
}
fn byte(s: Scalar) -> Scalar {
    Scalar { dtype: s.dtype.storage(), bits: s.bits }
}

/// A routine that moves small elements, as one that moves bytes; `None` if it has no small elements.
fn moved(r: &Routine) -> Option<Routine> {
    let mut r = r.clone();
    match &mut r {
        Routine::Gather(g) if g.dtype.is_small() => {
            g.dtype = g.dtype.storage();
            g.fill = byte(g.fill);
        }
        Routine::Scatter(s) if s.dtype.is_small() => s.dtype = s.dtype.storage(),
        Routine::DynamicSlice { dtype, .. } | Routine::DynamicUpdateSlice { dtype, .. } if dtype.is_small() => {
            *dtype = dtype.storage()
        }
        Routine::Sort { dtypes, .. } if dtypes.iter().any(|d| d.is_small()) => {
            dtypes.iter_mut().for_each(|d| *d = d.storage())
        }
        _ => return None,
    }
    Some(r)
}

impl Routine {
    /// The same in the lanes of its small dtypes, but for those that it merely moves; `None` if it has none.
    pub fn widened(&self) -> Option<Routine> {
        let lane = |d: &mut DType| {
            let small = d.is_small();
            if small {
                *d = d.lane();
            }
            small
        };
        let mut r = self.clone();
        let changed = match &mut r {
            Routine::Dot(d) => lane(&mut d.dtype) | lane(&mut d.out),
            Routine::Gather(g) => lane(&mut g.index_dtype),
            Routine::Scatter(s) => lane(&mut s.index_dtype) | (s.combine != Combine::Set && lane(&mut s.dtype)),
            Routine::DynamicSlice { index_dtype, .. } | Routine::DynamicUpdateSlice { index_dtype, .. } => {
                lane(index_dtype)
            }
            Routine::Sort { dtypes, num_keys, .. } => {
                dtypes[..*num_keys].iter_mut().fold(false, |any, d| lane(d) | any)
            }
            Routine::TopK { dtype, .. } | Routine::Cumulative { dtype, .. } => lane(dtype),
            Routine::Conv(c) => lane(&mut c.dtype),
            Routine::Linalg(_) | Routine::Fft(_) => false,
        };
        changed.then_some(r)
    }
}

/// The legalized form of a node: for a small one the byte, and the value once a reader needed it.
#[derive(Clone, Copy)]
struct Became {
    node: NodeId,
    value: Option<NodeId>,
}
struct Speller<'k> {
    k: &'k Kernel,
    nodes: Nodes,
    became: Vec<Became>,
}

/// A kernel in terms of bytes.
pub fn legalized(k: &Kernel) -> Kernel {
    let mut s = Speller { k, nodes: Nodes::default(), became: Vec::with_capacity(k.nodes.len()) };
    for (d, n) in &k.nodes {
        let became = s.node(*d, n);
        s.became.push(became);
    }
    Kernel {
        grid: k.grid.clone(),
        rdims: k.rdims.clone(),
        inputs: k.inputs.iter().map(|(d, n)| (d.storage(), *n)).collect(),
        outputs: k.outputs.iter().map(|o| s.became[*o as usize].node).collect(),
        nodes: s.nodes.0,
    }
}

impl Speller<'_> {
    /// A node's value in its lane, if it is small.
    fn value(&mut self, n: NodeId) -> NodeId {
        let (d, was) = (self.k.dtype(n), self.became[n as usize]);
        if !d.is_small() {
            return was.node;
        }
        let value = was.value.unwrap_or_else(|| self.nodes.decode(d, was.node));
        self.became[n as usize].value = Some(value);
        value
    }
    fn word(&mut self, n: NodeId) -> NodeId {
        let node = self.became[n as usize].node;
        self.nodes.convert(node, DType::U32)
    }
    /// A small element, of a value in its lane that need not be one of the dtype's.
    fn rounded(&mut self, d: DType, value: NodeId) -> Became {
        Became { node: self.nodes.encode(d, value), value: None }
    }
    fn node(&mut self, d: DType, n: &Node) -> Became {
        let plain = |node| Became { node, value: None };
        let lane = if d.is_small() { d.lane() } else { d };
        match n {
            Node::Const(s) if d.is_small() => {
                let node = self.nodes.constant(byte(*s));
                let value = self.nodes.constant(crate::reference::convert(*s, lane));
                Became { node, value: Some(value) }
            }
            Node::Load(a) if d.is_small() => {
                let a = Access { fill: byte(a.fill), ..(**a).clone() };
                plain(self.nodes.push(DType::U8, Node::Load(Box::new(a))))
            }
            Node::Index(_) if d.is_small() => {
                let i = self.nodes.push(lane, n.clone());
                self.rounded(d, i)
            }
            Node::Select { p, t, f } if d.is_small() => {
                let [p, t, f] = [p, t, f].map(|o| self.became[*o as usize].node);
                plain(self.nodes.select(p, t, f))
            }
            Node::Bitcast(x) if d.is_small() || self.k.dtype(*x).is_small() => {
                let of = self.became[*x as usize].node;
                let byte = self.nodes.bitcast(of, DType::U8);
                plain(self.nodes.bitcast(byte, d.storage()))
            }
            Node::Convert(x) if d.is_small() => {
                let value = self.near(*x, d);
                self.rounded(d, value)
            }
            Node::Un(f, x) if d.is_small() && matches!(f, Un::Popcnt | Un::Clz) => {
                let word = self.word(*x);
                let word = self.nodes.un(*f, word);
                let unused = if *f == Un::Clz { 32 - d.bits() } else { 0 };
                let count = self.nodes.with(Bin::Sub, word, unused);
                let count = self.nodes.bitcast(count, lane);
                self.rounded(d, count)
            }
            Node::Bin(Bin::NextAfter, x, y) if d.is_small() => {
                let (a, b) = (self.value(*x), self.value(*y));
                let byte = self.became[*x as usize].node;
                plain(self.nodes.next_after(d, byte, a, b))
            }
            // at the dtype's own width
            Node::Bin(Bin::ShrLogical, x, y) if d.is_small() => {
                let (word, by) = (self.word(*x), self.value(*y));
                let by = self.nodes.bitcast(by, DType::U32);
                let word = self.nodes.bin(Bin::ShrLogical, word, by);
                let value = self.nodes.bitcast(word, lane);
                self.rounded(d, value)
            }
            Node::Bin(Bin::ShrArithmetic, x, y) if d.is_small() => {
                let (of, by) = (self.became[*x as usize].node, self.value(*y));
                let signed = if d.bits() == 2 { DType::I2 } else { DType::I4 };
                let (x, by) = (self.nodes.decode(signed, of), self.nodes.bitcast(by, DType::I32));
                let x = self.nodes.bin(Bin::ShrArithmetic, x, by);
                let value = self.nodes.bitcast(x, lane);
                self.rounded(d, value)
            }
            // an accumulator starts from its lane's identity, which may exceed the range of the
            // dtype
            Node::Reduce { kind: kind @ (ReduceKind::Max | ReduceKind::Min), of } if d.is_small() => {
                let of = self.value(*of);
                let r = self.nodes.push(lane, Node::Reduce { kind: *kind, of });
                let is_max = *kind == ReduceKind::Max;
                let start = kind.identity(d).expect("a maximum has one");
                let bound = self.nodes.constant(crate::reference::convert(start, lane));
                let r = self.nodes.bin(if is_max { Bin::Max } else { Bin::Min }, r, bound);
                self.rounded(d, r)
            }
            n => {
                let of: Vec<NodeId> = n.operands().iter().map(|o| self.value(*o)).collect();
                let (mut made, mut at) = (n.clone(), of.iter());
                made.map_operands(|_| *at.next().expect("as many as there are"));
                let made = self.nodes.push(lane, made);
                if d.is_small() { self.rounded(d, made) } else { plain(made) }
            }
        }
    }
    /// A node's value in the lane of a small dtype that it is converted to.
    fn near(&mut self, n: NodeId, to: DType) -> NodeId {
        let (from, x) = (self.k.dtype(n), self.value(n));
        let from = if from.is_small() { from.lane() } else { from };
        if to.is_float() {
            return if from == DType::F64 { self.to_odd(x) } else { self.nodes.convert(x, DType::F32) };
        }
        if !from.is_float() {
            return self.nodes.convert(x, to.lane());
        }
        // floats saturate, and nan is 0
        let x = self.nodes.convert(x, DType::I32);
        let [least, most] = [to.least(), to.greatest()].map(|b| self.nodes.constant(Scalar::i32(b as i32)));
        let x = self.nodes.bin(Bin::Max, x, least);
        let x = self.nodes.bin(Bin::Min, x, most);
        self.nodes.convert(x, to.lane())
    }
    /// To f32 rounding to odd, so that rounding that once more rounds once in all.
    fn to_odd(&mut self, x: NodeId) -> NodeId {
        let n = &mut self.nodes;
        let y = n.convert(x, DType::F32);
        let back = n.convert(y, DType::F64);
        let bits = n.bitcast(y, DType::U32);
        let (far, near) = (n.un(Un::Abs, back), n.un(Un::Abs, x));
        let beyond = n.bin(Bin::Gt, far, near);
        let less = n.with(Bin::Sub, bits, 1);
        let odd = n.select(beyond, less, bits);
        let odd = n.with(Bin::Or, odd, 1);
        let differs = n.bin(Bin::Ne, back, x);
        let ordered = n.bin(Bin::Eq, x, x);
        let differs = n.bin(Bin::And, differs, ordered);
        let bits = n.select(differs, odd, bits);
        n.bitcast(bits, DType::F32)
    }
}
