//! Operations on vectors and functions of floats, expressed by the instructions that kernels have for them.
//!
//! ```text
//!     v: f32x8 = call exp a    ->    v0: f32x8 = vmax -104, a; v1: f32x8 = vmin 89, v0; v2: f32x8 = vmuladd v1, 1.442695, 12582912; ..
//! ```
//! INVARIANT: the instructions of an operation give its bits, element by element (`instructions/lower.rs`).
use super::{LONG_VECTOR, Vectorizer};
use crate::instructions::{Function, Leaf, VecNode, VectorSize};
use crate::nest::{Def, Nest, NestOp, NestValue, Stmt};
use ferrax_kernel::DType;

/// Whether a value is the result of a called function.
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
    /// A definition on vectors.
    pub(super) fn applied(&mut self, def: &Def, args: &[NestValue]) -> NestValue {
        let of = def.args().first().map_or(def.dtype, |a| self.nest.dtype(*a));
        self.computed(def.op, of, def.dtype, args)
    }
    /// An operation on vectors whose numbers have the dtype `of`.
    pub(super) fn computed(&mut self, op: NestOp, of: DType, to: DType, args: &[NestValue]) -> NestValue {
        match recorded(op, of, to) {
            Some(f) => instructions(self.nest, f, [of, to], (self.lanes, self.wide), args, &mut self.body),
            None => self.push(op, to, args, self.lanes),
        }
    }
}

/// The operations on single floats, as instructions.
pub fn inline_functions(mut nest: Nest) -> Nest {
    let body = std::mem::take(&mut nest.body);
    nest.body = inlined(&mut nest, body);
    nest
}
fn inlined(nest: &mut Nest, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in body {
        match &mut s {
            Stmt::Let(v) if let Some(f) = of_floats(nest, nest.def(*v)) => {
                let def = *nest.def(*v);
                let shape = (1, def.dtype.size() == 8);
                let new = instructions(nest, f, [def.dtype; 2], shape, def.args(), &mut out);
                // later statements refer to it by its own number
                nest.defs[*v as usize] = *nest.def(new);
                out.pop();
            }
            Stmt::Loop(l) => l.body = inlined(nest, std::mem::take(&mut l.body)),
            _ => (),
        }
        out.push(s);
    }
    out
}
/// An operation on single floats whose result is one; choices are made by truth values in general registers.
fn of_floats(nest: &Nest, def: &Def) -> Option<Function> {
    let is_float = matches!(def.dtype, DType::F32 | DType::F64);
    let alike = is_float && def.args().iter().all(|a| nest.dtype(*a) == def.dtype);
    if def.lanes > 1 || !alike { None } else { recorded(def.op, def.dtype, def.dtype) }
}

/// The instructions of a function of numbers of `of`, over so many lanes, 8 bytes wide or 4; its result is of `to`.
fn instructions(
    nest: &mut Nest,
    f: Function,
    [of, to]: [DType; 2],
    (lanes, wide): (usize, bool),
    args: &[NestValue],
    body: &mut Vec<Stmt>,
) -> NestValue {
    let is_long = lanes * if wide { 8 } else { 4 } == LONG_VECTOR;
    let (graph, result) = f.graph(wide, if is_long { VectorSize::Zmm } else { VectorSize::Ymm });
    let needed = graph.needed(&[result]);
    let mut made = |nest: &mut Nest, op: NestOp, dtype: DType, args: &[NestValue]| {
        let v = nest.add(op, dtype, args);
        let def = &mut nest.defs[v as usize];
        (def.lanes, def.wide) = (lanes as u8, lanes > 1 && wide);
        if !matches!(op, NestOp::Const(_)) {
            body.push(Stmt::Let(v));
        }
        v
    };
    let mut values: Vec<NestValue> = vec![];
    for (k, (node, is_needed)) in graph.nodes.iter().zip(needed).enumerate() {
        let dtype = if k == result as usize { to } else { of };
        values.push(match node {
            _ if !is_needed => 0,
            VecNode::Leaf(Leaf::At(k)) => args[*k as usize],
            VecNode::Leaf(Leaf::Const(bits)) => made(nest, NestOp::Const(*bits), dtype, &[]),
            VecNode::Leaf(leaf) => unreachable!("{leaf:?} is not an operand of a function"),
            VecNode::Op { code, .. } => {
                let of: Vec<NestValue> = node.operands().iter().map(|v| values[*v as usize]).collect();
                made(nest, NestOp::Vector(*code), dtype, &of)
            }
        });
    }
    match values[result as usize] {
        // the same bits as numbers of another dtype
        v if nest.dtype(v) != to => made(nest, NestOp::Bits(of), to, &[v]),
        v => v,
    }
}
