//! Finds nodes of a kernel that a driver could prove equal, up to their sign. A driver's simplification of `x - x` or `x / x` holds for finite numbers
//! only, so no float operation gets one value as both operands.
use ferrax_kernel::kernel::{Kernel, Node, NodeId};
use ferrax_kernel::{Bin, DType, Un};
use std::collections::HashMap;

/// A number for each node. Nodes of different numbers have values that are not known to be related; more may be said to be alike than
/// are, which costs an instruction.
pub fn of(k: &Kernel) -> Vec<NodeId> {
    let mut seen: HashMap<(DType, Node), NodeId> = HashMap::new();
    let mut alike: Vec<NodeId> = vec![];
    for (id, (d, node)) in k.nodes.iter().enumerate() {
        let mut node = node.clone();
        node.map_operands(|o| alike[o as usize]);
        if let Node::Bin(f, x, y) = &mut node
            && matches!(f, Bin::Add | Bin::Mul | Bin::Max | Bin::Min | Bin::And | Bin::Or | Bin::Xor)
            && *x > *y
        {
            std::mem::swap(x, y);
        }
        let same = match node {
            Node::Un(Un::Neg | Un::Abs, x) => Some(x),
            Node::Bin(Bin::Max | Bin::Min | Bin::And | Bin::Or, x, y) if x == y => Some(x),
            Node::Select { t, f, .. } if t == f => Some(t),
            Node::Convert(x) if k.dtype(x) == *d => Some(x),
            Node::Bitcast(x) => match &k.nodes[x as usize].1 {
                Node::Bitcast(y) if k.dtype(*y) == *d => Some(alike[*y as usize]),
                _ => None,
            },
            _ => None,
        };
        alike.push(same.unwrap_or_else(|| *seen.entry((*d, node)).or_insert(id as NodeId)));
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_kernel::Scalar;
    use ferrax_kernel::kernel::{Access, Affine};

    #[test]
    fn what_is_made_in_the_same_way_is_alike() {
        let load = |stride| {
            Node::Load(Box::new(Access {
                input: 0,
                at: Affine::new(0, [stride]),
                guards: vec![].into(),
                fill: Scalar::zero(DType::F32),
            }))
        };
        let nodes = [
            load(1),
            load(1),
            load(2),
            Node::Un(Un::Neg, 1),
            Node::Bin(Bin::Mul, 0, 2),
            Node::Bin(Bin::Mul, 2, 3),
            Node::Bin(Bin::Sub, 0, 2),
            Node::Bin(Bin::Sub, 2, 0),
            Node::Bin(Bin::Max, 0, 1),
        ];
        let k = Kernel {
            grid: [4].into(),
            inputs: vec![(DType::F32, 8)],
            nodes: nodes.into_iter().map(|n| (DType::F32, n)).collect(),
            outputs: vec![8],
            ..Kernel::default()
        };
        assert_eq!(of(&k), [0, 0, 2, 0, 4, 4, 6, 7, 0]);
    }
}
