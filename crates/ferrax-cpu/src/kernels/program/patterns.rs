//! Patterns of 32-bit words that one instruction computes: rotates, and rounds of add, rotate and exclusive or.
//!
//! ```text
//!     (x << n) | (x >> (32 - n))        ->   rotate x by n          (and its exclusive or with another word, if that is its only reader)
//!     x = x + y;  y = rotate(y, n) ^ x  ->   one round; up to four consecutive rounds are one instruction
//! ```
//!
//! INVARIANT: values that a pattern skips have no other reader.
use super::Spec;
use ferrax_kernel::{Bin, DType, Node, NodeId};
use smallvec::SmallVec;

/// `of` rotated left `by` bits, then exclusive or `with`.
pub struct Rotation {
    pub of: NodeId,
    pub by: u32,
    pub with: Option<NodeId>,
    /// Whether nothing else reads the shifts it is made of.
    alone: bool,
}
/// Rounds over two words.
pub struct Rounds {
    pub from: (NodeId, NodeId),
    /// The words after the last round.
    pub ends: (NodeId, NodeId),
    pub by: SmallVec<[u8; 4]>,
    /// The first sum.
    first: NodeId,
}
const MAX_ROUNDS: usize = 4;

pub struct WordPatterns<'a> {
    nodes: &'a [(DType, Node)],
    turns: Vec<Option<Rotation>>,
    /// The rounds that end with a node, the second of their words.
    rounds: Vec<Option<Box<Rounds>>>,
    /// For each sum, the end of the rounds that it may end with.
    pairs: Vec<Option<NodeId>>,
    /// For each first sum, the last node of its rounds, once they are known to be used.
    starts: Vec<Option<NodeId>>,
}

impl<'a> WordPatterns<'a> {
    pub fn find(spec: &Spec<'a>) -> WordPatterns<'a> {
        let nodes = &spec.kernel.nodes;
        let mut users = vec![0usize; nodes.len()];
        let outside = spec.outs.iter().map(|o| o.0).chain(spec.keep.iter().copied()).chain(spec.given.iter().copied());
        for o in nodes.iter().flat_map(|n| n.1.operands()).chain(outside) {
            users[o as usize] += 1;
        }
        let mut turns: Vec<Option<Rotation>> = Vec::with_capacity(nodes.len());
        for (dtype, node) in nodes {
            turns.push(if *dtype == DType::U32 { turn(nodes, node, &turns, &users) } else { None });
        }
        let mut rounds: Vec<Option<Box<Rounds>>> = nodes.iter().map(|_| None).collect();
        let mut pairs = vec![None; nodes.len()];
        for n in 0..nodes.len() {
            let Some((x, y, sum, by)) = turns[n].as_ref().and_then(|t| round(nodes, t)) else { continue };
            // Only this round uses the words of the round before: the first twice, the second in
            // the sum and in both shifts.
            let before = rounds[y as usize].as_ref().filter(|r| {
                r.ends == (x, y) && r.by.len() < MAX_ROUNDS && users[x as usize] == 2 && users[y as usize] == 3
            });
            let ends = (sum, n as NodeId);
            let mut r = match before {
                Some(r) => Rounds { from: r.from, ends, by: r.by.clone(), first: r.first },
                None => Rounds { from: (x, y), ends, by: SmallVec::new(), first: sum },
            };
            r.by.push(by as u8);
            rounds[n] = Some(Box::new(r));
            pairs[sum as usize] = Some(n as NodeId);
        }
        WordPatterns { nodes, turns, rounds, pairs, starts: vec![None; nodes.len()] }
    }
    /// The operands of a node that is used; called for later nodes first.
    pub fn operands(&mut self, n: usize) -> SmallVec<[NodeId; 3]> {
        if let Some(r) = &self.rounds[n] {
            self.starts[r.first as usize] = Some(n as NodeId);
            return SmallVec::from_slice(&[r.from.0, r.from.1]);
        }
        let rounds = self.pairs[n].and_then(|end| self.rounds[end as usize].as_ref());
        if rounds.is_some_and(|r| self.starts[r.first as usize] == Some(r.ends.1)) {
            return SmallVec::new();
        }
        match &self.turns[n] {
            Some(t) => [Some(t.of), t.with].into_iter().flatten().collect(),
            None => self.nodes[n].1.operands().into_iter().collect(),
        }
    }
    pub fn turn(&self, n: usize) -> Option<&Rotation> {
        self.turns[n].as_ref()
    }
    /// The used rounds that start with this sum.
    pub fn rounds_from(&self, n: usize) -> Option<&Rounds> {
        self.starts[n].and_then(|end| self.rounds[end as usize].as_deref())
    }
}

fn turn(nodes: &[(DType, Node)], node: &Node, turns: &[Option<Rotation>], users: &[usize]) -> Option<Rotation> {
    let shift = |n: NodeId, f: Bin| match nodes[n as usize].1 {
        Node::Bin(g, x, by) if g == f => match &nodes[by as usize].1 {
            Node::Const(s) => Some((x, s.bits)),
            _ => None,
        },
        _ => None,
    };
    let rotation = |a: NodeId, b: NodeId| {
        let ((x, left), (y, right)) = (shift(a, Bin::Shl)?, shift(b, Bin::ShrLogical)?);
        let whole = x == y && (1..32).contains(&left) && left + right == 32;
        let alone = users[a as usize] == 1 && users[b as usize] == 1;
        whole.then_some(Rotation { of: x, by: left as u32, with: None, alone })
    };
    match *node {
        Node::Bin(Bin::Or, a, b) => rotation(a, b).or_else(|| rotation(b, a)),
        Node::Bin(Bin::Xor, a, b) => [(a, b), (b, a)].into_iter().find_map(|(r, with)| match &turns[r as usize] {
            Some(Rotation { of, by, with: None, alone }) if users[r as usize] == 1 => {
                Some(Rotation { of: *of, by: *by, with: Some(with), alone: *alone })
            }
            _ => None,
        }),
        _ => None,
    }
}

/// Words before, their sum, and the bits to rotate by, if a turn ends a round.
fn round(nodes: &[(DType, Node)], t: &Rotation) -> Option<(NodeId, NodeId, NodeId, u32)> {
    let sum = t.with.filter(|_| t.alone)?;
    let Node::Bin(Bin::Add, a, b) = nodes[sum as usize].1 else { return None };
    let x = if a == t.of { b } else { a };
    (a != b && (a == t.of || b == t.of)).then_some((x, t.of, sum, t.by))
}
