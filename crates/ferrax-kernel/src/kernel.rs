//! `Kernel`: one loop nest over a DAG of scalar nodes.
//!
//! ```text
//!     for i in grid:                        // in parallel, in any order
//!         (for r in rdims:  ..)             // only for what a Reduce needs
//!         outputs[k][row-major position of i] = value of node outputs[k]
//! ```
//!
//! A node that does not depend on a `Reduce` but is needed by one is evaluated at every (i, r); all others once for each i.
//! Loads are affine in the loop indices, so broadcast, transpose, slice, reverse, and reshapes that keep strides are part of a
//! load, and cost nothing; pad and concatenate are guards.
//!
//! INVARIANT (checked by [`Kernel::verify`]): nodes are in order of definition and well typed; every load that its guards let
//! through lies inside its input, so generated code needs no bounds checks.
//!
//! The mean of squares over rows of an `f32[2,3]` x: grid (2), rdims (3),
//! `n0 = load x[3 i + r]; n1 = mul n0 n0; n2 = reduce sum n1; n3 = const 3.0; n4 = div n2 n3`, output n4.
mod bounds;

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Res};
use crate::expr::{Bin, ReduceKind, Un};
use crate::shape::Dims;
use smallvec::SmallVec;

pub type NodeId = u32;

/// `offset + sum_k strides[k] * index[k]`, over the indices of grid, then rdims. Missing trailing strides are zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    pub offset: i64,
    pub strides: SmallVec<[i64; 4]>,
}

/// Lets a load through where `lo <= at < hi`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    pub at: Affine,
    pub lo: i64,
    pub hi: i64,
}

/// The element `at` (in elements, from the start of the input), or `fill` where a guard fails.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    pub input: u32,
    pub at: Affine,
    pub guards: SmallVec<[Guard; 1]>,
    pub fill: Scalar,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    Const(Scalar),
    /// The value of the affine form, as an integer or float of the node's dtype.
    Index(Affine),
    Load(Box<Access>),
    Un(Un, NodeId),
    Bin(Bin, NodeId, NodeId),
    /// `if p { t } else { f }`; p is bool.
    Select {
        p: NodeId,
        t: NodeId,
        f: NodeId,
    },
    /// To the node's dtype.
    Convert(NodeId),
    /// The same bits at the node's dtype, which has the same size.
    Bitcast(NodeId),
    /// Rounds a float to fewer exponent and mantissa bits (to nearest even, overflow to inf) but keeps the dtype.
    Round {
        of: NodeId,
        exponent: u8,
        mantissa: u8,
    },
    /// Over all of rdims, in the order of [`crate::order`].
    Reduce {
        kind: ReduceKind,
        of: NodeId,
    },
}

impl Node {
    /// The nodes it reads.
    pub fn operands(&self) -> SmallVec<[NodeId; 3]> {
        match self {
            Node::Const(_) | Node::Index(_) | Node::Load(_) => SmallVec::new(),
            Node::Un(_, x) | Node::Convert(x) | Node::Bitcast(x) => SmallVec::from_slice(&[*x]),
            Node::Round { of, .. } | Node::Reduce { of, .. } => SmallVec::from_slice(&[*of]),
            Node::Bin(_, x, y) => SmallVec::from_slice(&[*x, *y]),
            Node::Select { p, t, f } => SmallVec::from_slice(&[*p, *t, *f]),
        }
    }
    pub fn map_operands(&mut self, mut m: impl FnMut(NodeId) -> NodeId) {
        match self {
            Node::Const(_) | Node::Index(_) | Node::Load(_) => (),
            Node::Un(_, x) | Node::Convert(x) | Node::Bitcast(x) => *x = m(*x),
            Node::Round { of, .. } | Node::Reduce { of, .. } => *of = m(*of),
            Node::Bin(_, x, y) => (*x, *y) = (m(*x), m(*y)),
            Node::Select { p, t, f } => (*p, *t, *f) = (m(*p), m(*t), m(*f)),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kernel {
    pub grid: Dims,
    /// Empty rank where nothing is reduced. A dimension of size 0 means that every reduction is empty.
    pub rdims: Dims,
    /// Dtype and element count of each input buffer.
    pub inputs: Vec<(DType, usize)>,
    pub nodes: Vec<(DType, Node)>,
    /// Each output is a dense row-major array of shape `grid`.
    pub outputs: Vec<NodeId>,
}

impl Affine {
    pub fn constant(offset: i64) -> Affine {
        Affine { offset, strides: SmallVec::new() }
    }
    pub fn new(offset: i64, strides: impl IntoIterator<Item = i64>) -> Affine {
        Affine { offset, strides: strides.into_iter().collect() }
    }
    pub fn stride(&self, k: usize) -> i64 {
        self.strides.get(k).copied().unwrap_or(0)
    }
    pub fn at(&self, index: impl IntoIterator<Item = usize>) -> i64 {
        self.offset + index.into_iter().enumerate().map(|(k, i)| self.stride(k) * i as i64).sum::<i64>()
    }
    /// Least and greatest value over all indices below `dims`; none where there are no indices. Saturates.
    pub fn range(&self, dims: &[usize]) -> Option<(i64, i64)> {
        let (mut lo, mut hi) = (self.offset, self.offset);
        for (k, n) in dims.iter().enumerate() {
            let reach = self.stride(k).saturating_mul((*n as i64).checked_sub(1).filter(|m| *m >= 0)?);
            if reach < 0 { lo = lo.saturating_add(reach) } else { hi = hi.saturating_add(reach) }
        }
        Some((lo, hi))
    }
}

impl Kernel {
    /// `out[i] = f(in0[i], in1[i])` over n elements, or without `f` the one operand's element, as `out`.
    pub fn elementwise(ins: &[DType], out: DType, f: Option<Bin>, n: usize) -> Kernel {
        let load = |input: usize| {
            let (at, fill) = (Affine::new(0, [1]), Scalar::zero(ins[input]));
            (ins[input], Node::Load(Box::new(Access { input: input as u32, at, guards: SmallVec::new(), fill })))
        };
        let mut nodes: Vec<_> = (0..ins.len()).map(load).collect();
        nodes.push((out, f.map_or(Node::Convert(0), |f| Node::Bin(f, 0, 1))));
        let outputs = vec![nodes.len() as u32 - 1];
        Kernel { grid: [n].into(), inputs: ins.iter().map(|d| (*d, n)).collect(), nodes, outputs, ..Kernel::default() }
    }
    /// The nodes that `roots` are computed from, themselves among them, up to and with the nearest reductions.
    pub fn needed(&self, roots: impl Iterator<Item = NodeId>) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        roots.for_each(|r| needed[r as usize] = true);
        for id in (0..self.nodes.len()).rev() {
            let node = &self.nodes[id].1;
            if needed[id] && !matches!(node, Node::Reduce { .. }) {
                node.operands().iter().for_each(|o| needed[*o as usize] = true);
            }
        }
        needed
    }
    /// grid ++ rdims: the domain of affine forms.
    pub fn domain(&self) -> Dims {
        self.grid.concat(&self.rdims)
    }
    /// The value of a node that is a constant.
    pub fn known(&self, n: NodeId) -> Option<Scalar> {
        if let Node::Const(s) = self.nodes[n as usize].1 { Some(s) } else { None }
    }
    pub fn dtype(&self, n: NodeId) -> DType {
        self.nodes[n as usize].0
    }
    pub fn output_dtypes(&self) -> impl Iterator<Item = DType> {
        self.outputs.iter().map(|o| self.dtype(*o))
    }
    /// Whether output `output` may lie in the memory of input `input`: every load of it is of the very element being written, and
    /// nothing is reduced.
    pub fn in_place(&self, input: usize, output: usize) -> bool {
        let dense = self.grid.strides();
        let same = |a: &Access| {
            let stays = |d: usize| self.grid[d] == 1 || a.at.stride(d) == dense[d] as i64;
            a.at.offset == 0 && a.guards.is_empty() && (0..self.grid.len()).all(stays)
        };
        self.inputs[input].0.size() == self.dtype(self.outputs[output]).size()
            && self.rdims.is_empty()
            && self.nodes.iter().all(|(_, n)| !matches!(n, Node::Load(a) if a.input as usize == input && !same(a)))
    }
    /// Checks the invariants; a kernel that passes is safe to run without further checks.
    pub fn verify(&self) -> Res<()> {
        let bad = |what: String| Err(Error::Invalid(what));
        let domain = self.domain();
        self.grid.checked(8)?;
        self.rdims.checked(8)?;
        let mut after: Vec<bool> = vec![];
        for (id, (d, n)) in self.nodes.iter().enumerate() {
            let ops = n.operands();
            if ops.iter().any(|o| *o as usize >= id) {
                return bad(format!("node {id} reads a later node"));
            }
            let t = |o: NodeId| self.dtype(o);
            let ok = match n {
                Node::Const(s) => s.dtype == *d,
                Node::Index(_) => *d != DType::Bool,
                Node::Load(a) => {
                    let Some((ty, len)) = self.inputs.get(a.input as usize) else {
                        return bad(format!("node {id} loads input {}", a.input));
                    };
                    if !bounds::inside(a, *len, &domain) {
                        return bad(format!(
                            "node {id} may read outside input {}: {a:?} over {domain} of {len}",
                            a.input
                        ));
                    }
                    ty == d && a.fill.dtype == *d
                }
                Node::Un(Un::IsFinite, x) => *d == DType::Bool && t(*x).is_float(),
                Node::Un(_, x) => t(*x) == *d,
                Node::Bin(f, x, y) => t(*x) == t(*y) && *d == if f.is_comparison() { DType::Bool } else { t(*x) },
                Node::Select { p, t: x, f: y } => t(*p) == DType::Bool && t(*x) == *d && t(*y) == *d,
                Node::Convert(_) => true,
                Node::Bitcast(x) => t(*x).size() == d.size(),
                Node::Round { of, .. } => t(*of) == *d && d.is_float(),
                Node::Reduce { kind, of } => {
                    if after[*of as usize] {
                        return bad(format!("node {id} reduces a reduction"));
                    }
                    if kind.bin().is_none() { d.is_int() } else { t(*of) == *d }
                }
            };
            if !ok {
                return bad(format!("node {id} is ill typed: {n:?} as {d}"));
            }
            after.push(matches!(n, Node::Reduce { .. }) || ops.iter().any(|o| after[*o as usize]));
        }
        match self.outputs.iter().find(|o| **o as usize >= self.nodes.len()) {
            Some(o) => bad(format!("output {o} is not a node")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn load(at: Affine, guards: SmallVec<[Guard; 1]>) -> (DType, Node) {
        (DType::F32, Node::Load(Box::new(Access { input: 0, at, guards, fill: Scalar::zero(DType::F32) })))
    }
    fn kernel(grid: usize, len: usize, node: (DType, Node)) -> Kernel {
        Kernel {
            grid: Dims::new(&[grid]),
            inputs: vec![(DType::F32, len)],
            nodes: vec![node],
            outputs: vec![0],
            ..Kernel::default()
        }
    }

    #[test]
    fn loads_outside_their_input_are_refused() {
        assert!(kernel(4, 4, load(Affine::new(0, [1]), smallvec![])).verify().is_ok());
        assert!(kernel(5, 4, load(Affine::new(0, [1]), smallvec![])).verify().is_err());
        assert!(kernel(4, 4, load(Affine::new(3, [-1]), smallvec![])).verify().is_ok());
        assert!(kernel(4, 4, load(Affine::new(2, [-1]), smallvec![])).verify().is_err());
        assert!(kernel(0, 0, load(Affine::new(7, [1]), smallvec![])).verify().is_ok());
    }
    #[test]
    fn guards_bring_loads_inside() {
        // pad f32[4] by 2 before and 3 after: out[i] = x[i - 2] where 0 <= i - 2 < 4
        let at = Affine::new(-2, [1]);
        let g = Guard { at: at.clone(), lo: 0, hi: 4 };
        assert!(kernel(9, 4, load(at.clone(), smallvec![g.clone()])).verify().is_ok());
        assert!(kernel(9, 3, load(at, smallvec![g])).verify().is_err());
        // the same over [3, 3]
        let at = Affine::new(-2, [3, 1]);
        let g = Guard { at: at.clone(), lo: 0, hi: 4 };
        let split = |len| Kernel { grid: [3, 3].into(), ..kernel(9, len, load(at.clone(), smallvec![g.clone()])) };
        assert!(split(4).verify().is_ok() && split(3).verify().is_err());
    }
}
