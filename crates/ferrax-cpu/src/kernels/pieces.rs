//! Index-set splitting: a kernel is cut into guard-free tiles, parts of its grid in which every guard, and every comparison of an index with a
//! constant, has one outcome. Each tile is a [`Piece`], which is compiled by itself.
//!
//! ```text
//!     roll(x, 1), 8 elements:   out[i] = i < 1 ? x[i + 7] : x[i - 1]     ->     [0, 1): x[i + 7]        [1, 8): x[i - 1]
//!     stack([a, b], -1):        out[i, j] = j < 1 ? a[i] : b[i]          ->     one piece over i with two outputs, at 2 i and 2 i + 1
//! ```
//!
//! A roll, a pad or a concatenation is then a few copies, and a stencil's interior is a loop without conditions. A short last axis becomes several
//! outputs of one piece, interleaved when they are stored, so that common subexpressions are computed once.
//!
//! INVARIANT: the tiles of a kernel are disjoint and cover its grid. A piece loads elements that the whole kernel loads at the same
//! positions, so that what `Kernel::verify` proved holds for it, and gives the same values there.
use crate::native;
use crate::tuning::KernelTuning;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::{Affine, Bin, DType, Dims, Kernel, Node, NodeId, Scalar, Un};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Part of a kernel that is compiled by itself.
pub struct Piece {
    /// Over the tile; none where the tile is the whole grid.
    pub kernel: Option<Kernel>,
    /// A node, the output of the whole kernel that it is part of, and the positions of its elements
    /// there.
    pub outs: Vec<(NodeId, u32, Affine)>,
}

/// The pieces of a kernel that reduces nothing: itself, if it has no conditions that cuts decide.
/// `to`: the positions of its elements in its outputs. `masked`: whether native code may make rows parts of vectors.
pub fn pieces(k: &Kernel, to: &Affine, t: &KernelTuning, masked: bool) -> Vec<Piece> {
    let rank = k.grid.len();
    let cuts = cuts(k);
    let interleaved = is_interleaved(k, &cuts, t, masked);
    let crossed = if interleaved { None } else { crossed(k, t) };
    let mut tiles =
        Tiles { kernel: k, to, uncut: interleaved.then(|| rank - 1), nodes: 0, tuning: t, masked, found: vec![] };
    let whole_grid: Tile = k.grid.iter().map(|n| (0, *n)).collect();
    if cuts.iter().all(Vec::is_empty) {
        tiles.found.push((whole_grid, interleaved));
    } else if tiles.cut(whole_grid).is_none() {
        return vec![whole(k, to)];
    }
    let mut tiles = tiles.found;
    for axis in crossed.into_iter().flatten() {
        tiles = tiles.iter().flat_map(|(tile, _)| whole_blocks(tile, axis, t.block_side)).collect();
    }
    if tiles.len() > t.max_pieces || k.grid.size() < t.min_piece_elements * tiles.len() {
        return vec![whole(k, to)];
    }
    if tiles.len() == 1 && !interleaved {
        return vec![crossed.map_or_else(|| whole(k, to), |axes| blocked(Part::whole(k, to), axes, t.block_side))];
    }
    let piece = |(mut tile, interleaved): (Tile, bool)| {
        let mut piece = Part::of(k, to);
        if interleaved {
            for i in 0..k.grid[rank - 1] {
                tile[rank - 1] = (i, 1);
                piece.add(&tile);
            }
        } else {
            piece.add(&tile);
        }
        let piece = piece.finish();
        match crossed {
            Some(axes) => blocked(piece, axes, t.block_side),
            None => piece,
        }
    };
    tiles.into_iter().map(piece).collect()
}

/// The first index and the size of a tile along each axis.
type Tile = SmallVec<[(usize, usize); 6]>;
/// A grid is cut along one axis, then each part by itself along the next: where a guard fails all along a part, nothing in it is cut for others.
///
/// ```text
///     pad of two axes:    0 0 0 0          one tile above, one below, and between them one on each side of the elements:
///                         0 x x 0          five, where all cuts of both axes make nine
///                         0 0 0 0
/// ```
struct Tiles<'a> {
    kernel: &'a Kernel,
    to: &'a Affine,
    /// The axis that is not cut.
    uncut: Option<usize>,
    /// Nodes of all parts so far.
    nodes: usize,
    tuning: &'a KernelTuning,
    masked: bool,
    /// With whether the positions of the last axis are outputs of their own.
    found: Vec<(Tile, bool)>,
}
impl Tiles<'_> {
    /// `None` if there are too many.
    fn cut(&mut self, tile: Tile) -> Option<()> {
        let mut part = Part::of(self.kernel, self.to);
        part.add(&tile);
        let part = part.finish().kernel?;
        let cuts = cuts(&part);
        let Some(axis) = (0..cuts.len()).find(|k| !cuts[*k].is_empty() && Some(*k) != self.uncut) else {
            self.nodes += part.nodes.len();
            self.found.push((tile, self.uncut.is_some() && is_interleaved(&part, &cuts, self.tuning, self.masked)));
            let t = self.tuning;
            let few = self.found.len() <= t.max_pieces && self.nodes <= t.max_nodes_of_pieces;
            return few.then_some(());
        };
        let first = tile[axis].0;
        let ends = cuts[axis].iter().copied().chain([tile[axis].1]);
        for (from, to) in [0].into_iter().chain(cuts[axis].iter().copied()).zip(ends) {
            let mut tile = tile.clone();
            tile[axis] = (first + from, to - from);
            self.cut(tile)?;
        }
        Some(())
    }
}
/// Splits a tile into whole blocks along an axis and the remainder.
fn whole_blocks(tile: &Tile, axis: usize, side: usize) -> SmallVec<[(Tile, bool); 2]> {
    let (from, n) = tile[axis];
    let blocks = n / side * side;
    let mut out = SmallVec::new();
    for (from, n) in [(from, blocks), (from + blocks, n - blocks)] {
        if n > 0 {
            let mut tile = tile.clone();
            tile[axis] = (from, n);
            out.push((tile, false));
        }
    }
    out
}

/// A kernel without reductions, evaluated at one index: a kernel of one element.
pub fn element(k: &Kernel, index: &[usize]) -> Kernel {
    let to = dense(&k.grid);
    let mut part = Part::of(k, &to);
    part.add(&index.iter().map(|i| (*i, 1)).collect::<Vec<_>>());
    part.finish().kernel.expect("a part has a kernel of its own")
}

fn whole(k: &Kernel, to: &Affine) -> Piece {
    let outs = k.outputs.iter().enumerate().map(|(j, o)| (*o, j as u32, to.clone())).collect();
    Piece { kernel: None, outs }
}
pub fn dense(grid: &Dims) -> Affine {
    Affine::new(0, grid.strides().iter().map(|s| *s as i64))
}

/// For each grid dimension, where some condition's outcome changes, in increasing order.
fn cuts(k: &Kernel) -> Vec<Vec<usize>> {
    let mut cuts: Vec<Vec<usize>> = vec![vec![]; k.grid.len()];
    // The form is below `value` on one side of the cut only.
    let mut cut = |a: &Affine, value: i64| {
        let mut varying = (0..k.grid.len()).filter(|d| k.grid[*d] > 1 && a.stride(*d) != 0);
        let (Some(d), None) = (varying.next(), varying.next()) else { return };
        let (s, rest) = (a.stride(d) as i128, value as i128 - a.offset as i128);
        let first = if s > 0 { -(-rest).div_euclid(s) } else { (-rest).div_euclid(-s) + 1 };
        if first > 0 && first < k.grid[d] as i128 {
            cuts[d].push(first as usize);
        }
    };
    for (_, n) in &k.nodes {
        match n {
            Node::Load(l) => l.guards.iter().for_each(|g| {
                cut(&g.at, g.lo);
                cut(&g.at, g.hi);
            }),
            Node::Bin(f, x, y) if f.is_comparison() => {
                let (of, with) = (&k.nodes[*x as usize], &k.nodes[*y as usize]);
                let (a, c, is_left) = match (index(of), constant(with), constant(of), index(with)) {
                    (Some(a), Some(c), ..) => (a, c, true),
                    (.., Some(c), Some(a)) => (a, c, false),
                    _ => continue,
                };
                let (at_it, behind_it) = match f {
                    Bin::Lt | Bin::Ge => (is_left, !is_left),
                    Bin::Le | Bin::Gt => (!is_left, is_left),
                    _ => (true, true),
                };
                if at_it {
                    cut(a, c);
                }
                if behind_it {
                    cut(a, c.saturating_add(1));
                }
            }
            _ => (),
        }
    }
    for c in &mut cuts {
        c.sort_unstable();
        c.dedup();
    }
    cuts
}
fn index(n: &(DType, Node)) -> Option<&Affine> {
    if let (DType::I32 | DType::I64, Node::Index(a)) = n { Some(a) } else { None }
}
fn constant(n: &(DType, Node)) -> Option<i64> {
    if let (DType::I32 | DType::I64, Node::Const(s)) = n { Some(s.to_i64()) } else { None }
}

/// Whether the last axis is short, and something is chosen or strided along it.
fn is_interleaved(k: &Kernel, cuts: &[Vec<usize>], t: &KernelTuning, masked: bool) -> bool {
    let rank = k.grid.len();
    let Some(n) = k.grid.last().copied().filter(|n| (2..=t.max_interleaved).contains(n)) else { return false };
    // nothing is chosen along it, and a vector holds it
    if masked && n >= t.min_masked_row && cuts[rank - 1].is_empty() && is_for_masks(k) {
        return false;
    }
    let before = (0..rank - 1).rev().find(|d| k.grid[*d] > 1);
    // A load whose stride between rows continues that within a row needs no split.
    let even = |l: &Access| before.is_none_or(|d| l.at.stride(d) == l.at.stride(rank - 1) * n as i64);
    !cuts[rank - 1].is_empty() || k.nodes.iter().any(|(_, x)| matches!(x, Node::Load(l) if !even(l)))
}

/// Whether native code most likely makes each row a part of a vector.
fn is_for_masks(k: &Kernel) -> bool {
    let is_lane = |(d, n): &(DType, Node)| match n {
        Node::Load(_) => matches!(d.size(), 4 | 8),
        Node::Round { .. } | Node::Index(_) => false,
        _ => true,
    };
    k.inputs.len() + k.outputs.len() <= native::MAX_OPERANDS / 2 && k.nodes.iter().all(is_lane)
}

/// The last axis and another one, if some load's elements lie together along the other.
fn crossed(k: &Kernel, t: &KernelTuning) -> Option<[usize; 2]> {
    let last = (0..k.grid.len()).rev().find(|d| k.grid[*d] > 1)?;
    let long = |d: &usize| k.grid[*d] >= t.block_side;
    let across = |l: &Access| {
        let near = |d: &usize| l.at.stride(*d).abs() == 1;
        (l.at.stride(last).abs() >= t.min_crossed_stride).then(|| (0..last).filter(long).find(near)).flatten()
    };
    let other = k.nodes.iter().find_map(|(_, n)| if let Node::Load(l) = n { across(l) } else { None })?;
    long(&last).then_some([other, last])
}

/// A piece that goes through its grid in blocks over two axes, if these are of whole blocks.
fn blocked(mut p: Piece, axes: [usize; 2], side: usize) -> Piece {
    let Some(k) = &mut p.kernel else { return p };
    if axes.iter().any(|a| k.grid[*a] % side > 0) {
        return p;
    }
    let split = |a: &mut Affine| {
        let rank = k.grid.len();
        let inner = axes.map(|d| a.stride(d));
        a.strides.resize(rank, 0);
        axes.iter().for_each(|d| a.strides[*d] *= side as i64);
        a.strides.extend(inner);
    };
    for (_, n) in &mut k.nodes {
        match n {
            Node::Index(a) => split(a),
            Node::Load(l) => {
                split(&mut l.at);
                l.guards.iter_mut().for_each(|g| split(&mut g.at));
            }
            _ => (),
        }
    }
    p.outs.iter_mut().for_each(|o| split(&mut o.2));
    axes.iter().for_each(|d| k.grid[*d] /= side);
    k.grid = k.grid.concat(&[side, side]);
    p
}

/// The nodes of one piece, with everything folded that is constant in its tiles.
struct Part<'a> {
    of: &'a Kernel,
    to: &'a Affine,
    nodes: Vec<(DType, Node)>,
    memo: FxHashMap<(DType, Node), NodeId>,
    extents: Dims,
    outs: Vec<(NodeId, u32, Affine)>,
}

impl<'a> Part<'a> {
    fn of(of: &'a Kernel, to: &'a Affine) -> Part<'a> {
        Part { of, to, nodes: vec![], memo: FxHashMap::default(), extents: Dims::default(), outs: vec![] }
    }
    /// The whole kernel as a piece of its own.
    fn whole(k: &Kernel, to: &Affine) -> Piece {
        let mut part = Part::of(k, to);
        part.add(&k.grid.iter().map(|n| (0, *n)).collect::<Vec<_>>());
        part.finish()
    }
    /// Adds the outputs over the tile of these first indices and sizes.
    fn add(&mut self, at: &[(usize, usize)]) {
        self.extents = at.iter().map(|(_, n)| *n).collect();
        let mut new: Vec<NodeId> = Vec::with_capacity(self.of.nodes.len());
        for (d, n) in &self.of.nodes {
            let id = self.node(*d, n, at, &new);
            new.push(id);
        }
        let place = moved(self.to, at);
        self.outs.extend((0..).zip(&self.of.outputs).map(|(j, o)| (new[*o as usize], j, place.clone())));
    }
    /// The piece, reduced to the nodes that its outputs need.
    fn finish(mut self) -> Piece {
        let mut needed = vec![false; self.nodes.len()];
        self.outs.iter().for_each(|o| needed[o.0 as usize] = true);
        for n in (0..self.nodes.len()).rev() {
            if needed[n] {
                self.nodes[n].1.operands().iter().for_each(|o| needed[*o as usize] = true);
            }
        }
        let mut new = vec![NodeId::MAX; self.nodes.len()];
        let mut kept = vec![];
        for (n, (d, mut node)) in self.nodes.into_iter().enumerate().filter(|(n, _)| needed[*n]) {
            node.map_operands(|o| new[o as usize]);
            new[n] = kept.len() as NodeId;
            kept.push((d, node));
        }
        self.outs.iter_mut().for_each(|o| o.0 = new[o.0 as usize]);
        let (inputs, outputs) = (self.of.inputs.clone(), self.outs.iter().map(|o| o.0).collect());
        let kernel = Kernel { grid: self.extents, inputs, nodes: kept, outputs, ..Kernel::default() };
        Piece { kernel: Some(kernel), outs: self.outs }
    }
    fn push(&mut self, d: DType, n: Node) -> NodeId {
        *self.memo.entry((d, n)).or_insert_with_key(|key| {
            self.nodes.push(key.clone());
            self.nodes.len() as NodeId - 1
        })
    }
    fn bool(&mut self, x: bool) -> NodeId {
        self.push(DType::Bool, Node::Const(Scalar::bool(x)))
    }
    fn known(&self, n: NodeId) -> Option<bool> {
        if let (DType::Bool, Node::Const(s)) = &self.nodes[n as usize] { Some(!s.is_zero()) } else { None }
    }
    fn node(&mut self, d: DType, n: &Node, at: &[(usize, usize)], new: &[NodeId]) -> NodeId {
        let to = |x: &NodeId| new[*x as usize];
        match n {
            Node::Index(a) => self.push(d, Node::Index(moved(a, at))),
            Node::Load(l) => self.load(d, l, at),
            Node::Bin(f, x, y) if f.is_comparison() => match self.compared(*f, to(x), to(y)) {
                Some(known) => self.bool(known),
                None => self.push(d, Node::Bin(*f, to(x), to(y))),
            },
            Node::Bin(f @ (Bin::And | Bin::Or), x, y) if d == DType::Bool => {
                let (x, y) = (to(x), to(y));
                match (self.known(x), self.known(y)) {
                    (Some(one), _) if one == (*f == Bin::And) => y,
                    (_, Some(one)) if one == (*f == Bin::And) => x,
                    (Some(zero), _) | (_, Some(zero)) => self.bool(zero),
                    _ => self.push(d, Node::Bin(*f, x, y)),
                }
            }
            Node::Un(Un::Not, x) if self.known(to(x)).is_some() => {
                let x = self.known(to(x)) == Some(true);
                self.bool(!x)
            }
            Node::Select { p, t, f } => match self.known(to(p)) {
                Some(p) => to(if p { t } else { f }),
                None if to(t) == to(f) => to(t),
                None => self.push(d, Node::Select { p: to(p), t: to(t), f: to(f) }),
            },
            other => {
                let mut n = other.clone();
                n.map_operands(|x| new[x as usize]);
                self.push(d, n)
            }
        }
    }
    fn load(&mut self, d: DType, l: &Access, at: &[(usize, usize)]) -> NodeId {
        let mut guards = SmallVec::new();
        for g in &l.guards {
            let form = moved(&g.at, at);
            match form.range(&self.extents) {
                Some((lo, hi)) if lo >= g.lo && hi < g.hi => (),
                Some((lo, hi)) if hi < g.lo || lo >= g.hi => return self.push(d, Node::Const(l.fill)),
                _ => guards.push(ferrax_kernel::kernel::Guard { at: form, lo: g.lo, hi: g.hi }),
            }
        }
        self.push(d, Node::Load(Box::new(Access { input: l.input, at: moved(&l.at, at), guards, fill: l.fill })))
    }
    /// The outcome of an index's comparison if it is the same everywhere in the tile.
    fn compared(&self, f: Bin, x: NodeId, y: NodeId) -> Option<bool> {
        let range = |n: NodeId| {
            let n = &self.nodes[n as usize];
            match (index(n), constant(n)) {
                (Some(a), _) => {
                    let (lo, hi) = a.range(&self.extents)?;
                    // Values that the dtype cannot hold wrap.
                    (n.0 == DType::I64 || (i32::try_from(lo).is_ok() && i32::try_from(hi).is_ok())).then_some((lo, hi))
                }
                (_, c) => c.map(|c| (c, c)),
            }
        };
        let ((a, b), (c, d)) = (range(x)?, range(y)?);
        let less = |strict: bool| {
            if b < c || !strict && b == c {
                Some(true)
            } else if a > d || strict && a == d {
                Some(false)
            } else {
                None
            }
        };
        let equal = if a == b && c == d && a == c {
            Some(true)
        } else if b < c || d < a {
            Some(false)
        } else {
            None
        };
        match f {
            Bin::Lt => less(true),
            Bin::Le => less(false),
            Bin::Gt => less(false).map(|x| !x),
            Bin::Ge => less(true).map(|x| !x),
            Bin::Eq => equal,
            Bin::Ne => equal.map(|x| !x),
            _ => None,
        }
    }
}

/// The form in the indices of a tile. Dimensions that do not move get stride 0, so that equal forms
/// compare equal.
fn moved(a: &Affine, at: &[(usize, usize)]) -> Affine {
    let mut out = Affine::constant(a.offset);
    for (k, (from, n)) in at.iter().enumerate() {
        out.offset += a.stride(k) * *from as i64;
        out.strides.push(if *n > 1 { a.stride(k) } else { 0 });
    }
    out
}
