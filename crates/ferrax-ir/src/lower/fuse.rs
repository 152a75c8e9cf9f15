//! Fusion: which tensors are materialized, which of them share a kernel, and the kernels' nodes.
//!
//! A tensor is materialized if memory is required, or if recomputing it in its users would cost
//! more than reading it. A tensor that only its own kernel reads stays in registers after all.
//! Materialized tensors over one grid share a kernel where the order of steps allows: an Adam step
//! is one pass with three outputs, and a mean is the epilogue of its sum. All other tensors are
//! fused into their users by composing index maps.
//!
//! INVARIANT: fusion changes no bits: each node rounds to its own dtype, and the order of a
//! reduction does not depend on its kernel.
use super::graph::{Def, Graph, TensorId, View, unit};
use ferrax_kernel::kernel::{self, Access, Guard, NodeId};
use ferrax_kernel::plan::SlotId;
use ferrax_kernel::{Affine, Bin, DType, Dims, Kernel, Scalar, Step, Un};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// More inputs than this and a kernel takes no further member (GPUs bind 8 buffers or more, CPUs have 16 registers for pointers).
const MAX_INPUTS: usize = 24;
const MAX_OUTPUTS: usize = 8;
/// Members of one kernel, most of which only others of it read.
const MAX_MEMBERS: usize = 512;
/// How many of the latest kernels over one grid may be tried for a tensor: without a bound,
/// scheduling would be quadratic.
const MAX_ASKED: usize = 16;
/// An expression above this cost with several uses is materialized instead of recomputed for each.
const CHEAP: u32 = 4;
/// Readers of a concatenation from which a reduction of its windows has it written.
const MIN_WINDOWS: u32 = 3;

pub(super) fn steps(g: &mut Graph) -> Vec<Step> {
    let info = decide(g);
    let (mut order, mut pos) = schedule(g, &info, false);
    let mut read = elsewhere(&order);
    if kernels(&order).any(|k| outputs(g, k, &read).count() > MAX_OUTPUTS) {
        (order, pos) = schedule(g, &info, true);
        read = elsewhere(&order);
    }
    let copies = order.iter().filter_map(|x| if let Item::Alias(_, to) = x { Some(*to) } else { None });
    let kept: Vec<TensorId> = kernels(&order).flat_map(|k| outputs(g, k, &read)).chain(copies).collect();
    for t in kept {
        g.force(t);
    }
    let pieces = std::mem::take(&mut g.steps);
    let mut pieces: Vec<Option<Step>> = pieces.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(order.len());
    for (i, item) in order.iter().enumerate() {
        match item {
            Item::Step(s) => out.push(pieces[*s as usize].take().expect("a step is scheduled once")),
            Item::Alias(from, to) => out.push(Step::Copy { from: slot(g, *from), to: slot(g, *to) }),
            Item::Kernel(k) => out.push(emit(g, &k.members, i, &pos)),
        }
    }
    out
}

/// Facts about each tensor once the materialized ones are chosen.
#[derive(Clone, Default)]
struct Info {
    needed: bool,
    /// The cost of the expression down to materialized tensors: scalar operations weighted by their
    /// time.
    cost: u32,
    /// The reduced dimensions of an unwritten `Reduce` in the expression: it must end up as that kernel's epilogue.
    rdims: Option<Dims>,
    /// Whether it can be read by row-major position alone.
    linear: bool,
    /// The written tensors that the expression reads.
    reads: Reads,
}
type Reads = SmallVec<[TensorId; 4]>;

impl Info {
    /// For a materialized tensor.
    fn written(t: TensorId) -> Info {
        Info { needed: true, linear: true, reads: smallvec![t], ..Info::default() }
    }
}

pub(super) fn weight(n: &kernel::Node) -> u32 {
    match n {
        kernel::Node::Un(Un::Neg | Un::Abs | Un::Not | Un::Floor | Un::Ceil | Un::Trunc | Un::IsFinite, _) => 1,
        kernel::Node::Un(Un::Sqrt | Un::Sign | Un::RoundEven | Un::RoundAway, _) => 3,
        kernel::Node::Un(..) => 12,
        kernel::Node::Bin(Bin::Div | Bin::Rem, ..) => 3,
        kernel::Node::Bin(Bin::Pow | Bin::Atan2, ..) => 20,
        _ => 1,
    }
}

fn slot(g: &Graph, t: TensorId) -> SlotId {
    g.tensors[t as usize].slot.expect("what another kernel reads has a slot")
}
fn kernels(order: &[Item]) -> impl Iterator<Item = &Group> {
    order.iter().filter_map(|x| if let Item::Kernel(k) = x { Some(k) } else { None })
}
/// The tensors that are read from memory: by other kernels than their own, or by copies.
fn elsewhere(order: &[Item]) -> FxHashSet<TensorId> {
    let copied = order.iter().filter_map(|x| if let Item::Alias(from, _) = x { Some(*from) } else { None });
    kernels(order).flat_map(|k| k.leaves.iter().copied()).chain(copied).collect()
}
/// The members of a kernel that need memory: outputs of the block, and those that are read from
/// memory.
fn outputs<'a>(g: &'a Graph, k: &'a Group, read: &'a FxHashSet<TensorId>) -> impl Iterator<Item = TensorId> + 'a {
    k.members.iter().copied().filter(|t| g.tensors[*t as usize].slot.is_some() || read.contains(t))
}

fn decide(g: &mut Graph) -> Vec<Info> {
    let n = g.tensors.len();
    let mut info = vec![Info::default(); n];
    let mut uses = vec![0u32; n];
    for t in (0..n).rev() {
        info[t].needed |= g.tensors[t].slot.is_some();
        if info[t].needed {
            for o in operands(&g.tensors[t].def) {
                info[o as usize].needed = true;
                uses[o as usize] += 1;
            }
        }
    }
    for t in 0..n {
        if !info[t].needed || matches!(g.tensors[t].def, Def::Input | Def::Step(_)) {
            info[t] = Info { needed: info[t].needed, ..Info::written(t as TensorId) };
            continue;
        }
        let write = |g: &mut Graph, info: &mut [Info], o: TensorId| {
            g.tensors[o as usize].apart = true;
            info[o as usize] = Info::written(o);
        };
        let mut mine = Info { needed: true, ..Info::default() };
        match &g.tensors[t].def {
            Def::Const(_) => mine.linear = true,
            Def::Map(node) => {
                let ops = node.operands();
                mine.cost = weight(node);
                mine.linear = true;
                if reads(&info, &ops).len() > MAX_INPUTS {
                    for o in ops.iter().filter(|o| info[**o as usize].reads.len() > 1).copied().collect::<Vec<_>>() {
                        write(g, &mut info, o);
                    }
                }
                for o in ops.iter().copied() {
                    let of = &info[o as usize];
                    if let Some(r) = &of.rdims {
                        // one kernel reduces over one set of dimensions
                        if mine.rdims.as_ref().is_some_and(|m| m != r) {
                            write(g, &mut info, o);
                        } else {
                            mine.rdims = Some(r.clone());
                        }
                    }
                    mine.cost = mine.cost.saturating_add(info[o as usize].cost);
                    mine.linear &= info[o as usize].linear;
                }
                mine.reads = reads(&info, &ops);
            }
            Def::View(v) => {
                let of = v.of;
                let copies = g.copies(v, &g.tensors[t].shape);
                let plain = v.map.is_empty();
                // An expression computed again for every copy of its element is better read. A reduction may get axes of one element, and lose them.
                let moves = info[of as usize].rdims.is_some() && !keeps_positions(g, v, &g.tensors[t].shape);
                if moves || (copies && info[of as usize].cost > 0) {
                    write(g, &mut info, of);
                }
                (mine.cost, mine.reads) = (info[of as usize].cost, info[of as usize].reads.clone());
                mine.rdims = info[of as usize].rdims.clone();
                mine.linear = plain;
            }
            Def::Reshape(of) => {
                let of = *of;
                if info[of as usize].rdims.is_some() || !info[of as usize].linear {
                    write(g, &mut info, of);
                }
                (mine.cost, mine.reads) = (info[of as usize].cost, info[of as usize].reads.clone());
                mine.linear = true;
            }
            Def::Reduce { of, axes, .. } => {
                let (of, axes) = (*of, axes.clone());
                if info[of as usize].rdims.is_some() {
                    write(g, &mut info, of);
                }
                for joined in joined_beneath(g, of, &uses) {
                    write(g, &mut info, joined);
                }
                (mine.cost, mine.reads) = (8, info[of as usize].reads.clone());
                mine.rdims = Some(g.tensors[of as usize].shape.pick(&axes));
            }
            Def::Pair(..) | Def::Input | Def::Step(_) | Def::Iota(_) => (),
        }
        let shared = uses[t] > 1 && (mine.cost > CHEAP || mine.rdims.is_some());
        info[t] = mine;
        if shared && !matches!(g.tensors[t].def, Def::Pair(..)) {
            g.tensors[t].apart = true;
        }
        if g.written(t as TensorId) {
            // its own kernel may contain the reduction; its readers do not
            info[t] = Info::written(t as TensorId);
        }
    }
    // A later tensor may have had an earlier one written: expressions above it were costed before. Only rdims matter, and those are
    // settled at the time of use, because operands come first.
    info
}

/// Concatenated and padded values that an expression reads and that have several windows: the kernel of a reduction is not split at guards, so it
/// would decide them at each element.
fn joined_beneath(g: &Graph, t: TensorId, uses: &[u32]) -> Vec<TensorId> {
    let (mut found, mut seen, mut todo) = (vec![], FxHashSet::default(), vec![t]);
    while let Some(x) = todo.pop() {
        if g.written(x) || !seen.insert(x) {
            continue;
        }
        let is_guarded = matches!(&g.tensors[x as usize].def, Def::View(v) if !v.guards.is_empty());
        if uses[x as usize] >= MIN_WINDOWS && (is_guarded || g.joined.contains_key(&x)) {
            found.push(x);
        } else {
            todo.extend(operands(&g.tensors[x as usize].def));
        }
    }
    found
}

/// All that the operands read.
fn reads(info: &[Info], of: &[TensorId]) -> Reads {
    let mut all = Reads::new();
    for r in of.iter().flat_map(|o| &info[*o as usize].reads) {
        if !all.contains(r) {
            all.push(*r);
        }
    }
    all
}

fn operands(d: &Def) -> SmallVec<[TensorId; 3]> {
    match d {
        Def::Input | Def::Step(_) | Def::Const(_) | Def::Iota(_) => smallvec![],
        Def::Map(n) => n.operands(),
        Def::View(v) => smallvec![v.of],
        Def::Reshape(of) | Def::Reduce { of, .. } => smallvec![*of],
        Def::Pair(a, b) => smallvec![*a, *b],
    }
}

/// Tests count the tensors and kernels that are looked at.
#[inline]
fn count() {
    #[cfg(test)]
    tests::LOOKS.with(|n| n.set(n.get() + 1));
}

/// The grid of a kernel for tensors of this shape: its axes of more than one element.
fn grid(shape: &Dims) -> Dims {
    shape.iter().copied().filter(|n| *n != 1).collect()
}

enum Item {
    Step(u32),
    /// The same bytes under another shape.
    Alias(TensorId, TensorId),
    Kernel(Group),
}
struct Group {
    grid: Dims,
    rdims: Option<Dims>,
    members: Vec<TensorId>,
    leaves: Vec<TensorId>,
    /// Whether it is the same in each iteration of a loop: other members would keep it from being moved before the loop.
    is_fixed: bool,
}

/// The materialized tensors that a materialized tensor reads, and whether at the very index that it
/// writes.
fn leaves(g: &Graph, t: TensorId, seen: &mut FxHashSet<(TensorId, bool)>) -> (Vec<(TensorId, bool)>, Option<Dims>) {
    let (mut out, mut rdims) = (vec![], None);
    seen.clear();
    let mut todo: Vec<(TensorId, bool, bool)> = vec![(t, true, true)];
    while let Some((x, same, root)) = todo.pop() {
        count();
        if !seen.insert((x, same)) {
            continue;
        }
        if g.written(x) && !root {
            out.push((x, same));
            continue;
        }
        let same_below = same
            && match &g.tensors[x as usize].def {
                Def::Map(_) => true,
                Def::View(v) => keeps_positions(g, v, &g.tensors[x as usize].shape),
                _ => false,
            };
        if let Def::Reduce { of, axes, .. } = &g.tensors[x as usize].def {
            rdims = Some(g.tensors[*of as usize].shape.pick(axes));
        }
        for o in operands(&g.tensors[x as usize].def) {
            todo.push((o, same_below, false));
        }
    }
    (out, rdims)
}

/// Whether a view of this shape has all elements of its operand, in row-major order.
fn keeps_positions(g: &Graph, v: &View, shape: &Dims) -> bool {
    let from = &g.tensors[v.of as usize].shape;
    let (at, dense) = (linear(&v.map, from), shape.strides());
    v.guards.is_empty()
        && shape.size() == from.size()
        && !from.contains(&0)
        && at.offset == 0
        && (0..shape.len()).all(|k| shape[k] == 1 || at.stride(k) == dense[k] as i64)
}
/// The written tensor whose bytes are this one's, if it only reshapes.
fn alias(g: &Graph, t: TensorId) -> Option<TensorId> {
    let x = &g.tensors[t as usize];
    let of = match &x.def {
        Def::Reshape(of) => *of,
        Def::View(v) if keeps_positions(g, v, &x.shape) => v.of,
        _ => return None,
    };
    g.written(of).then_some(of)
}

/// Steps in order. Every written tensor goes to the latest kernel over its grid that its operands allow. If `all` members are written
/// to memory, few fit.
fn schedule(g: &Graph, info: &[Info], all: bool) -> (Vec<Item>, Vec<usize>) {
    let mut order: Vec<Item> = vec![];
    let mut over: FxHashMap<Dims, Vec<usize>> = FxHashMap::default();
    let mut pos = vec![usize::MAX; g.tensors.len()];
    let (mut steps_done, mut seen) = (0, FxHashSet::default());
    for t in 0..g.tensors.len() as TensorId {
        let d = &g.tensors[t as usize];
        match d.def {
            Def::Input => continue,
            Def::Step(i) => {
                // steps have effects: they keep their order, at the definition of their first
                // result
                while steps_done <= i {
                    order.push(Item::Step(steps_done));
                    steps_done += 1;
                }
                pos[t as usize] = i as usize; // fixed below
                let at = order.iter().rposition(|x| matches!(x, Item::Step(s) if *s == i)).expect("just pushed");
                pos[t as usize] = at;
                continue;
            }
            _ if !info[t as usize].needed || !g.written(t) => continue,
            _ => (),
        }
        if let Some(from) = alias(g, t) {
            pos[t as usize] = order.len();
            order.push(Item::Alias(from, t));
            continue;
        }
        let (reads, rdims) = leaves(g, t, &mut seen);
        let (grid, mut earliest, is_fixed) = (grid(&d.shape), 0, g.fixed.contains(&t));
        for (x, same) in &reads {
            let p = pos[*x as usize];
            if p != usize::MAX {
                let joins = *same && matches!(&order[p], Item::Kernel(k) if k.grid == grid && k.is_fixed == is_fixed);
                earliest = earliest.max(if joins { p } else { p + 1 });
            }
        }
        let fits = |k: &Group| {
            let new = reads.iter().filter(|(x, _)| !k.leaves.contains(x) && !k.members.contains(x)).count();
            k.is_fixed == is_fixed
                && (k.rdims == rdims || k.rdims.is_none() || rdims.is_none())
                && k.leaves.len() + new <= MAX_INPUTS
                && k.members.len() < MAX_MEMBERS
                && k.members.iter().filter(|m| all || g.tensors[**m as usize].slot.is_some()).count() < MAX_OUTPUTS
                && (k.rdims == rdims || k.grid.size() > 0)
        };
        let alike = over.entry(grid.clone()).or_default();
        let home = alike.iter().rev().take(MAX_ASKED).take_while(|p| **p >= earliest).copied().find(|p| {
            count();
            matches!(&order[*p], Item::Kernel(k) if fits(k))
        });
        let at = home.unwrap_or_else(|| {
            order.push(Item::Kernel(Group { grid, rdims: None, members: vec![], leaves: vec![], is_fixed }));
            alike.push(order.len() - 1);
            order.len() - 1
        });
        pos[t as usize] = at;
        let Item::Kernel(k) = &mut order[at] else { unreachable!("found as a kernel") };
        k.rdims = k.rdims.take().or(rdims);
        for (x, _) in reads {
            if !k.members.contains(&x) && !k.leaves.contains(&x) {
                k.leaves.push(x);
            }
        }
        k.members.push(t);
    }
    while steps_done < g.steps.len() as u32 {
        order.push(Item::Step(steps_done));
        steps_done += 1;
    }
    (order, pos)
}

/// How the requested element of a tensor follows from the kernel's indices.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Index {
    /// An affine form for each axis.
    Axes(SmallVec<[Affine; 4]>),
    /// An affine form of the row-major position.
    Position(Affine),
}

struct Emitter<'g> {
    g: &'g Graph,
    at: usize,
    pos: &'g [usize],
    k: Kernel,
    memo: FxHashMap<(TensorId, Index, SmallVec<[Guard; 1]>), NodeId>,
    inputs: FxHashMap<u32, u32>,
}

fn emit(g: &Graph, members: &[TensorId], at: usize, pos: &[usize]) -> Step {
    let mut e = Emitter {
        g,
        at,
        pos,
        k: Kernel { grid: grid(&g.tensors[members[0] as usize].shape), ..Kernel::default() },
        memo: FxHashMap::default(),
        inputs: FxHashMap::default(),
    };
    for t in members {
        let mut axes = 0;
        // Along an axis of one element there is but one index, however it is come by.
        let own = |n: &usize| {
            if *n == 1 {
                return Affine::constant(0);
            }
            axes += 1;
            unit(axes - 1)
        };
        let identity = Index::Axes(g.tensors[*t as usize].shape.iter().map(own).collect());
        let id = e.definition(*t, &identity, &SmallVec::new());
        e.memo.insert((*t, identity, SmallVec::new()), id);
        if g.tensors[*t as usize].slot.is_some() {
            e.k.outputs.push(id);
        }
    }
    let mut ins: Vec<(u32, u32)> = e.inputs.into_iter().collect();
    ins.sort_unstable_by_key(|x| x.1);
    let outs = members.iter().filter_map(|t| g.tensors[*t as usize].slot).collect();
    Step::Kernel { kernel: Arc::new(e.k), ins: ins.into_iter().map(|x| x.0).collect(), outs }
}

impl Emitter<'_> {
    fn node(&mut self, d: DType, n: kernel::Node) -> NodeId {
        self.k.nodes.push((d, n));
        self.k.nodes.len() as NodeId - 1
    }
    /// The value of `t` at `index`. Where a guard fails any value will do, but nothing outside a buffer may be read.
    fn value(&mut self, t: TensorId, index: &Index, guards: &SmallVec<[Guard; 1]>) -> NodeId {
        let key = (t, index.clone(), guards.clone());
        if let Some(n) = self.memo.get(&key) {
            return *n;
        }
        let n = if self.g.written(t) {
            self.load(t, index, guards, Scalar::zero(self.g.dtype(t)))
        } else {
            self.definition(t, index, guards)
        };
        self.memo.insert(key, n);
        n
    }
    fn load(&mut self, t: TensorId, index: &Index, guards: &SmallVec<[Guard; 1]>, fill: Scalar) -> NodeId {
        let x = &self.g.tensors[t as usize];
        debug_assert!(
            self.pos[t as usize] == usize::MAX || self.pos[t as usize] < self.at,
            "a kernel reads what a later one writes"
        );
        let slot = slot(self.g, t);
        let next = self.k.inputs.len() as u32;
        let input = *self.inputs.entry(slot).or_insert(next);
        if input == next {
            self.k.inputs.push((x.dtype, x.shape.size()));
        }
        let at = match index {
            Index::Position(p) => p.clone(),
            Index::Axes(a) => linear(a, &x.shape),
        };
        self.node(x.dtype, kernel::Node::Load(Box::new(Access { input, at, guards: guards.clone(), fill })))
    }
    fn definition(&mut self, t: TensorId, index: &Index, guards: &SmallVec<[Guard; 1]>) -> NodeId {
        let g = self.g;
        let x = &g.tensors[t as usize];
        match &x.def {
            Def::Const(s) => self.node(x.dtype, kernel::Node::Const(*s)),
            Def::Iota(axis) => {
                let Index::Axes(a) = index else { unreachable!("iota is not linear") };
                self.node(x.dtype, kernel::Node::Index(a[*axis].clone()))
            }
            Def::Map(n) => {
                let mut n = n.clone();
                n.map_operands(|o| self.value(o, index, guards));
                self.node(x.dtype, n)
            }
            Def::View(v) => self.view(v, index, guards),
            Def::Reshape(of) => {
                let p = match index {
                    Index::Position(p) => p.clone(),
                    Index::Axes(a) => linear(a, &x.shape),
                };
                self.value(*of, &Index::Position(p), guards)
            }
            Def::Reduce { kind, of, axes } => {
                let shape = &g.tensors[*of as usize].shape;
                let Index::Axes(outer) = index else { unreachable!("a reduction is not linear") };
                self.k.rdims = shape.pick(axes);
                let (mut kept, mut reduced) = (0, self.k.grid.len());
                let inner = (0..shape.len()).map(|k| {
                    if axes.contains(&k) {
                        reduced += 1;
                        unit(reduced - 1)
                    } else {
                        kept += 1;
                        outer[kept - 1].clone()
                    }
                });
                let inner = Index::Axes(inner.collect());
                let of = self.value(*of, &inner, guards);
                self.node(x.dtype, kernel::Node::Reduce { kind: *kind, of })
            }
            Def::Input | Def::Step(_) | Def::Pair(..) => unreachable!("always written, or never used as one tensor"),
        }
    }
    fn view(&mut self, v: &View, index: &Index, guards: &SmallVec<[Guard; 1]>) -> NodeId {
        let Index::Axes(outer) = index else {
            // linear views are of rank-0 tensors
            return self.value(v.of, &Index::Axes(smallvec![]), guards);
        };
        let inner = Index::Axes(v.map.iter().map(|a| compose(a, outer)).collect());
        if v.guards.is_empty() {
            return self.value(v.of, &inner, guards);
        }
        // an index that the kernel's grid keeps in bounds needs no guard
        let domain = self.k.domain();
        let range = |q: &Guard| q.at.range(&domain);
        let open = |q: &Guard| range(q).is_none_or(|(lo, hi)| lo < q.lo || hi >= q.hi);
        let mine: SmallVec<[Guard; 2]> =
            v.guards.iter().map(|q| Guard { at: compose(&q.at, outer), lo: q.lo, hi: q.hi }).filter(open).collect();
        if mine.is_empty() {
            return self.value(v.of, &inner, guards);
        }
        let mut all = guards.clone();
        all.extend(mine.iter().cloned());
        if self.g.written(v.of) && guards.is_empty() {
            return self.load(v.of, &inner, &all, v.fill);
        }
        let d = self.g.dtype(v.of);
        let x = self.value(v.of, &inner, &all);
        let fill = self.node(d, kernel::Node::Const(v.fill));
        let mut out = x;
        for q in mine {
            // 32 bits where they hold all there is to compare: not every device has 64.
            let fits = |x: i64| i32::try_from(x).is_ok();
            let reach = range(&q);
            let narrow = reach.is_none_or(|(lo, hi)| fits(lo) && fits(hi)) && fits(q.lo) && fits(q.hi);
            let position = if narrow { DType::I32 } else { DType::I64 };
            let sides = [
                (Bin::Ge, q.lo, reach.is_none_or(|(lo, _)| lo < q.lo)),
                (Bin::Lt, q.hi, reach.is_none_or(|(_, hi)| hi >= q.hi)),
            ];
            let i = self.node(position, kernel::Node::Index(q.at));
            for (f, bound, _) in sides.into_iter().filter(|side| side.2) {
                let b = self.node(position, kernel::Node::Const(Scalar::from_i64(position, bound)));
                let p = self.node(DType::Bool, kernel::Node::Bin(f, i, b));
                out = self.node(d, kernel::Node::Select { p, t: out, f: fill });
            }
        }
        out
    }
}

/// `a` with the indices it is written in replaced by `index`.
fn compose(a: &Affine, index: &[Affine]) -> Affine {
    let mut out = Affine::constant(a.offset);
    for (k, ix) in index.iter().enumerate() {
        add_scaled(&mut out, ix, a.stride(k));
    }
    out
}
/// The row-major position of an index.
fn linear(index: &[Affine], shape: &Dims) -> Affine {
    let mut out = Affine::default();
    for (ix, s) in index.iter().zip(shape.strides()) {
        add_scaled(&mut out, ix, s as i64);
    }
    out
}
fn add_scaled(out: &mut Affine, x: &Affine, s: i64) {
    if s == 0 {
        return;
    }
    out.offset += s * x.offset;
    if out.strides.len() < x.strides.len() {
        out.strides.resize(x.strides.len(), 0);
    }
    for (o, t) in out.strides.iter_mut().zip(&x.strides) {
        *o += s * t;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! { pub static LOOKS: Cell<usize> = const { Cell::new(0) } }

    /// How many candidates fusion examines for the updates of `n` parameters; the i-th is of shape
    /// `shape(i)`.
    fn looks(n: usize, shape: impl Fn(usize) -> usize) -> usize {
        let mut g = Graph::default();
        for i in 0..n {
            let dims = Dims::new(&[shape(i)]);
            let mut input = || {
                let slot = g.plan.add_slot(DType::F32, dims.size(), 0);
                g.input(dims.clone(), slot)
            };
            let (p, m, grad) = (input(), input(), input());
            let (a, b) = (g.scalar(p, 0.9), g.scalar(p, 0.1));
            let (kept, new) = (g.bin(Bin::Mul, m, a), g.bin(Bin::Mul, grad, b));
            let m = g.bin(Bin::Add, kept, new);
            let scale = g.un(Un::Sqrt, m);
            let step = g.bin(Bin::Div, m, scale);
            let p = g.bin(Bin::Sub, p, step);
            g.force(m);
            g.force(p);
        }
        LOOKS.with(|n| n.set(0));
        steps(&mut g);
        LOOKS.with(Cell::get)
    }
    #[test]
    fn fusion_is_linear_in_tensors() {
        for shape in [|i: usize| i + 1, |_: usize| 3, |i: usize| i % 7 + 1] {
            let (once, twice) = (looks(500, shape), looks(1000, shape));
            assert!(4 * twice <= 9 * once, "{once}, then {twice}");
        }
    }
}
