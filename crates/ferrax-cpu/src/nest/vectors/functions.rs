//! What operations on numbers are on vectors: the instructions that kernels have for them, functions among them.
//!
//! ```text
//!     v: f32x8 = call exp a    ->    v0: f32x8 = vmax -104, a; v1: f32x8 = vmin 89, v0; v2: f32x8 = vmuladd v1, 1.442695, 12582912; ..
//! ```
//! INVARIANT: the instructions of an operation give its bits, element by element (`instructions/lower.rs`).
use super::{LONG_VECTOR, Vectorizer};
use crate::instructions::{Function, Leaf, VecNode, VectorSize};
use crate::nest::{Def, Nest, NestOp, NestValue};
use ferrax_kernel::DType;

/// Whether a value is what a function gives that is called.
pub(super) fn is_called(nest: &Nest, v: NestValue) -> bool {
    matches!(nest.def(v).op, NestOp::Call(f, _) if f.recorded().is_none())
}
/// An operation on numbers of this dtype that vectors have instructions for.
pub(super) fn recorded(op: NestOp, of: DType, to: DType) -> Option<Function> {
    let f = match op {
        NestOp::Un(f) => Function::Un(f, of),
        NestOp::Bin(f) => Function::Bin(f, of),
        NestOp::Select => Function::Select(to.size()),
        NestOp::Convert(from) => Function::Convert(from, to),
        NestOp::Settle => Function::Settle(to),
        NestOp::Call(f, _) => f.recorded()?,
        _ => return None,
    };
    f.width().map(|_| f)
}

impl Vectorizer<'_> {
    /// What a definition is of vectors.
    pub(super) fn applied(&mut self, def: &Def, args: &[NestValue]) -> NestValue {
        let of = def.args().first().map_or(def.dtype, |a| self.nest.dtype(*a));
        self.computed(def.op, of, def.dtype, args)
    }
    /// An operation on vectors whose numbers have the dtype `of`.
    pub(super) fn computed(&mut self, op: NestOp, of: DType, to: DType, args: &[NestValue]) -> NestValue {
        let Some(f) = recorded(op, of, to) else { return self.push(op, to, args, self.lanes) };
        let is_long = self.lanes * if self.wide { 8 } else { 4 } == LONG_VECTOR;
        let (graph, result) = f.graph(self.wide, if is_long { VectorSize::Zmm } else { VectorSize::Ymm });
        let needed = graph.needed(&[result]);
        let mut values: Vec<NestValue> = vec![];
        for (k, (node, is_needed)) in graph.nodes.iter().zip(needed).enumerate() {
            let dtype = if k == result as usize { to } else { of };
            let value = match node {
                _ if !is_needed => 0,
                VecNode::Leaf(Leaf::At(k)) => args[*k as usize],
                VecNode::Leaf(Leaf::Const(bits)) => {
                    let v = self.nest.add(NestOp::Const(*bits), dtype, &[]);
                    self.in_lanes(v)
                }
                VecNode::Leaf(leaf) => unreachable!("{leaf:?} is no operand of a function"),
                VecNode::Op { code, .. } => {
                    let of: Vec<NestValue> = node.operands().iter().map(|v| values[*v as usize]).collect();
                    self.push(NestOp::Vector(*code), dtype, &of, self.lanes)
                }
            };
            values.push(value);
        }
        match values[result as usize] {
            // the same bits as numbers of another dtype
            v if self.nest.dtype(v) != to => self.push(NestOp::Bits(of), to, &[v], self.lanes),
            v => v,
        }
    }
}
