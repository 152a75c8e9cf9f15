//! Unrolls short reductions into pointwise kernels, without accumulators and passes.
//!
//! ```text
//!     sum of x over 3:   y[i] = ((0 + x[i, 0]) + (0 + x[i, 2])) + (0 + x[i, 1])
//! ```
//!
//! INVARIANT: elements are combined in the order of [`order`], and nan results are normalized as in reductions; so the bits are those of the original kernel.
use super::lane::Lane;
use super::scalar;
use crate::tier::Tier;
use crate::tuning::KernelTuning;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, NodeId, ReduceKind, Scalar, order};
use rustc_hash::FxHashMap;

/// The result of lanes that took an element each: at least one, and no more than there are.
pub fn fold_lanes<T: Copy>(mut lanes: Vec<T>, mut combine: impl FnMut(T, T) -> Option<T>) -> Option<T> {
    let mut w = order::LANES / 2;
    while w > 0 {
        // A lane that took no element is the identity still, which changes no bits.
        for j in 0..w.min(lanes.len().saturating_sub(w)) {
            lanes[j] = combine(lanes[j], lanes[j + w])?;
        }
        lanes.truncate(w);
        w /= 2;
    }
    lanes.first().copied()
}

/// A kernel whose reductions are of no more elements than the written order has lanes, without them.
pub fn unrolled(k: &Kernel, t: &KernelTuning) -> Option<Kernel> {
    let n = k.rdims.size();
    if k.rdims.is_empty() || !(1..=order::LANES).contains(&n) || k.grid.size() < t.min_unrolled_results {
        return None;
    }
    let reduced =
        k.needed(k.nodes.iter().filter_map(|x| if let Node::Reduce { of, .. } = x.1 { Some(of) } else { None }));
    let once = k.needed(k.outputs.iter().copied());
    let count = |wanted: &[bool]| wanted.iter().filter(|w| **w).count();
    if !reduced.contains(&true) || n * (count(&reduced) + 1) + count(&once) > t.max_unrolled_nodes {
        return None;
    }
    let mut u = Unrolling { of: k, nodes: vec![], memo: FxHashMap::default() };
    let each: Vec<Vec<NodeId>> =
        (0..n).map(|i| u.nodes_at(&k.rdims.unravel(i), &reduced, &[])).collect::<Option<_>>()?;
    let last = u.nodes_at(&[], &once, &each)?;
    let outputs = k.outputs.iter().map(|o| last[*o as usize]).collect();
    Some(Kernel { grid: k.grid.clone(), inputs: k.inputs.clone(), nodes: u.nodes, outputs, ..Kernel::default() })
}

struct Unrolling<'a> {
    of: &'a Kernel,
    nodes: Vec<(DType, Node)>,
    memo: FxHashMap<(DType, Node), NodeId>,
}
impl Unrolling<'_> {
    fn push(&mut self, d: DType, n: Node) -> NodeId {
        *self.memo.entry((d, n)).or_insert_with_key(|key| {
            self.nodes.push(key.clone());
            self.nodes.len() as NodeId - 1
        })
    }
    /// The requested nodes at one index of the reduced dimensions; `each` collects the operands of
    /// reductions.
    fn nodes_at(&mut self, index: &[usize], wanted: &[bool], each: &[Vec<NodeId>]) -> Option<Vec<NodeId>> {
        let rank = self.of.grid.len();
        let fixed = |a: &Affine| {
            let offset = index.iter().enumerate().map(|(r, i)| a.stride(rank + r) * *i as i64).sum::<i64>();
            Affine::new(a.offset + offset, (0..rank).map(|d| a.stride(d)))
        };
        let mut new = vec![NodeId::MAX; wanted.len()];
        for (id, (d, node)) in self.of.nodes.iter().enumerate().filter(|(id, _)| wanted[*id]) {
            new[id] = match node {
                Node::Reduce { kind, of } => {
                    let of = each.iter().map(|at| at[*of as usize]).collect();
                    self.reduce(*kind, *d, of)?
                }
                Node::Index(a) => self.push(*d, Node::Index(fixed(a))),
                Node::Load(a) => {
                    let mut a = a.clone();
                    a.at = fixed(&a.at);
                    a.guards.iter_mut().for_each(|g| g.at = fixed(&g.at));
                    self.push(*d, Node::Load(a))
                }
                other => {
                    let mut other = other.clone();
                    other.map_operands(|x| new[x as usize]);
                    self.push(*d, other)
                }
            };
        }
        Some(new)
    }
    fn reduce(&mut self, kind: ReduceKind, d: DType, of: Vec<NodeId>) -> Option<NodeId> {
        let f = kind.bin()?;
        // The operand's dtype differs from that of the accumulator.
        if !Lane::of(d).is_storage_of(d) || scalar::canonical(d, Tier::Portable).is_some() {
            return None;
        }
        scalar::bin(f, d, Tier::Portable)?;
        let identity = self.push(d, Node::Const(kind.identity(d)?));
        let lanes = of.into_iter().map(|x| self.push(d, Node::Bin(f, identity, x))).collect();
        let x = fold_lanes(lanes, |a, b| Some(self.push(d, Node::Bin(f, a, b))))?;
        if !d.is_float() {
            return Some(x);
        }
        let (is_nan, nan) = (
            self.push(DType::Bool, Node::Bin(Bin::Ne, x, x)),
            self.push(d, Node::Const(Scalar::from_f64(d, f64::NAN))),
        );
        Some(self.push(d, Node::Select { p: is_nan, t: nan, f: x }))
    }
}
