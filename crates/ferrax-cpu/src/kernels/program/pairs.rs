//! Two operations in one pass, where the second is the only reader of the first.
//!
//! ```text
//!     y = x * a;  z = y + b     ->     z = x * a + b     (each rounds by itself, as before)
//! ```
//!
//! INVARIANT: the first operation has no other reader; the results are those of the two operations, one after the other.
use super::Spec;
use ferrax_kernel::{Bin, DType, Node, NodeId};

/// How a node takes another in.
#[derive(Clone, Copy)]
pub struct Pair {
    /// The first operation.
    pub of: NodeId,
    /// Whether it is the left operand of the second.
    pub left: bool,
}
/// For each node the pair it ends, and whether some pair takes it in.
pub struct Pairs {
    pub ends: Vec<Option<Pair>>,
    pub taken: Vec<bool>,
}
fn simple(n: &(DType, Node)) -> Option<(NodeId, NodeId)> {
    match n {
        (DType::F32 | DType::F64, Node::Bin(Bin::Add | Bin::Sub | Bin::Mul, x, y)) => Some((*x, *y)),
        _ => None,
    }
}
impl Pairs {
    pub fn find(spec: &Spec, needed: &[bool]) -> Pairs {
        let nodes = &spec.kernel.nodes;
        let mut users = vec![0u32; nodes.len()];
        for (n, _) in nodes.iter().zip(needed).filter(|n| *n.1) {
            n.1.operands().iter().for_each(|o| users[*o as usize] += 1);
        }
        let outside = spec.outs.iter().map(|o| o.0).chain(spec.keep.iter().copied()).chain(spec.given.iter().copied());
        outside.for_each(|o| users[o as usize] += 2);
        let mut p = Pairs { ends: vec![None; nodes.len()], taken: vec![false; nodes.len()] };
        for n in 0..nodes.len() {
            let Some((x, y)) = simple(&nodes[n]).filter(|_| needed[n]) else { continue };
            let free = |o: NodeId| {
                let o = o as usize;
                simple(&nodes[o]).is_some() && users[o] == 1 && !p.taken[o] && p.ends[o].is_none()
            };
            let of = if free(x) {
                Pair { of: x, left: true }
            } else if free(y) {
                Pair { of: y, left: false }
            } else {
                continue;
            };
            p.ends[n] = Some(of);
            p.taken[of.of as usize] = true;
        }
        p
    }
}
