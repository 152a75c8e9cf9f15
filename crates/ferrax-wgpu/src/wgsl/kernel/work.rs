//! Estimates the scalar operations for an element of a kernel, to predict the time of a pass.
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::{Bin, Un};

/// A word of memory counts as eight.
pub fn of_element(k: &Kernel) -> u64 {
    of_nodes(k, &vec![true; k.nodes.len()])
}
/// The same for some of the nodes.
pub fn of_nodes(k: &Kernel, wanted: &[bool]) -> u64 {
    let rank = k.domain().len() as u64;
    let node = |n: &Node| match n {
        Node::Const(_) => 0,
        Node::Index(_) => rank,
        Node::Load(a) => 8 + 2 * rank + a.guards.len() as u64 * (4 + rank),
        Node::Un(f, _) => unary(*f),
        Node::Bin(Bin::Pow, ..) => 350,
        Node::Bin(Bin::Atan2, ..) => 100,
        Node::Bin(Bin::Rem | Bin::NextAfter, ..) => 40,
        Node::Bin(..) => 4,
        Node::Round { .. } => 16,
        Node::Convert(_) | Node::Bitcast(_) | Node::Select { .. } | Node::Reduce { .. } => 4,
    };
    4 * rank + k.nodes.iter().zip(wanted).filter(|(_, w)| **w).map(|((_, n), _)| node(n)).sum::<u64>()
}

fn unary(f: Un) -> u64 {
    match f {
        Un::Neg | Un::Abs | Un::Sign | Un::Not | Un::Popcnt | Un::Clz | Un::IsFinite => 2,
        Un::Floor | Un::Ceil | Un::RoundEven | Un::RoundAway | Un::Trunc | Un::Sqrt => 6,
        Un::Sin | Un::Cos | Un::Tan | Un::Lgamma | Un::Digamma => 300,
        _ => 100,
    }
}
