//! Programs over rows: kernels that follow one another and compute rows from the same rows ([`crate::wgsl::rows`]), and products with what is
//! computed of each of their results ([`crate::wgsl::epilogue`]).
//!
//! ```text
//!     m = max x;  e = exp(x - m);  s = sum e;  y = e / s         over rows of x: one program, in which m, e and s have no memory
//!     p = x @ w;  y = max(p + b, 0)                              over rows of terms: one program, in which p has no memory
//! ```
//! INVARIANT: a step that joins reads nothing that a step between it and the program writes, and writes nothing that such a step names; so it may
//! run before those.
use super::between::Between;
use super::moves::{self, Move};
use super::{Compiling, names};
use crate::routines::{self, Product};
use crate::run::host::is_for_host;
use crate::task::Limits;
use crate::wgsl::Lowered;
use crate::wgsl::epilogue::refined;
use crate::wgsl::rows::{Each, MAX_REDUCTIONS, RowKernel};
use crate::wgsl::work::of_element;
use ferrax_kernel::kernel::{Affine, Kernel, Node, NodeId};
use ferrax_kernel::order::BLOCK;
use ferrax_kernel::plan::{Plan, SlotId, Step};
use ferrax_kernel::{DType, Dims, Res, Routine};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Steps of a program, and nodes of its kernel, at most; steps after its first among which more are looked for.
const MAX_STEPS: usize = 24;
const MAX_NODES: usize = 160;
const WINDOW: usize = 48;
/// Elements of a row for which a team of 16 is not too many, and of one whose blocks leave no more results than a block has elements.
const MIN_ELEMENTS: usize = 4;
const MAX_ELEMENTS: usize = BLOCK * BLOCK;

/// A program over rows with its slots.
#[derive(Clone)]
pub struct RowProgram {
    pub rows: RowKernel,
    pub ins: Vec<SlotId>,
    pub outs: Vec<SlotId>,
    /// What its one reduction is, where that has its own way to be taken.
    pub routine: Option<ByRoutine>,
}

/// A reduction that is a routine.
#[derive(Clone)]
pub struct ByRoutine {
    routine: Arc<Routine>,
    /// That alone.
    kernel: Kernel,
    /// Which of the program's inputs its operands are.
    operands: [usize; 2],
}

impl RowProgram {
    /// # Errors
    /// `Unsupported` for what only its steps, one by one, can do.
    pub fn lower(&self, limits: Limits) -> Res<Lowered> {
        match self.product() {
            Some(product) => product.lower(limits),
            None => self.rows.lower(limits),
        }
    }
    pub fn product(&self) -> Option<Product<'_>> {
        let ByRoutine { routine, kernel: alone, operands } = self.routine.as_ref()?;
        Some(Product { routine, alone, kernel: &self.rows.kernel, operands: *operands })
    }
    /// Whether both are products that may be parts of one pass.
    pub fn is_alike(&self, other: &RowProgram, limits: Limits) -> bool {
        let both = self.routine.as_ref().zip(other.routine.as_ref());
        both.is_some_and(|(a, b)| routines::are_parts(&a.routine, &b.routine, limits))
    }
    /// Whether its reductions are those of a kernel.
    pub fn is_small(&self, limits: Limits) -> bool {
        self.routine.as_ref().is_none_or(|r| routines::is_small(&r.routine, limits))
    }
    pub fn name(&self) -> &'static str {
        self.routine.as_ref().map_or("rows", |r| r.routine.name())
    }
}

/// How often each slot of a plan is named, its inputs and outputs included.
pub fn uses(plan: &Plan) -> Vec<usize> {
    let mut uses = vec![0; plan.slots.len()];
    plan.steps.iter().for_each(|s| names(s, &mut |s| uses[s as usize] += 1));
    plan.inputs.iter().chain(&plan.outputs).for_each(|s| uses[*s as usize] += 1);
    uses
}

struct Member<'a> {
    kernel: Cow<'a, Kernel>,
    ins: Cow<'a, [SlotId]>,
    outs: &'a [SlotId],
    routine: Option<&'a Arc<Routine>>,
    /// Where its results are, over its grid; in the order of the grid where nothing is said.
    at: Option<Affine>,
    /// The steps of the block that it reads through.
    moves: Vec<usize>,
}
impl<'a> Member<'a> {
    fn of(step: &'a Step) -> Option<Member<'a>> {
        match step {
            Step::Kernel { kernel, ins, outs } if !is_for_host(step) && kernel.domain().size() > 0 => {
                let (kernel, ins) = (Cow::Borrowed(&**kernel), Cow::Borrowed(&ins[..]));
                Some(Member { kernel, ins, outs, routine: None, at: None, moves: vec![] })
            }
            _ => None,
        }
    }
    /// The same of a step that others join, which may be a routine.
    fn first(step: &'a Step, moves: &HashMap<SlotId, Move>) -> Option<Member<'a>> {
        let Step::Routine { routine, outs, .. } = step else { return Member::of(step) };
        let it = moves::product(step, moves)?;
        let (kernel, ins) = (Cow::Owned(it.kernel), Cow::Owned(it.ins));
        let mut through: Vec<usize> = it.through.iter().flat_map(|s| moves[s].steps.clone()).collect();
        through.sort_unstable();
        through.dedup();
        Some(Member { kernel, ins, outs, routine: Some(routine), at: None, moves: through })
    }
    /// For so many rows and elements of each: what its outputs are for, and how many elements an index of its domain is.
    fn role(&self, shape: [usize; 2]) -> Option<(Each, usize)> {
        let (k, [rows, n]) = (&self.kernel, shape);
        match (k.grid.size(), k.rdims.len()) {
            (g, 1..) if g == rows && k.rdims.size() == n => Some((Each::Row, 1)),
            (g, 0) if g == rows => Some((Each::Row, n)),
            (g, 0) if g == rows * n => Some((Each::Element, 1)),
            _ => None,
        }
    }
    /// Whether it may be one of a program: it reads what the others read or make; of a routine, a value for each that they make.
    fn joins(&self, others: &[Member], shape: [usize; 2]) -> bool {
        let Some((each, _)) = self.role(shape) else { return false };
        let made = |s: &SlotId| others.iter().any(|o| o.outs.contains(s));
        match others[0].routine {
            Some(_) => each == Each::Row && self.kernel.rdims.is_empty() && self.ins.iter().any(made),
            None => self.ins.iter().any(|s| made(s) || others.iter().any(|o| o.ins.contains(s))),
        }
    }
}

impl Compiling<'_> {
    /// A step that is a product, as a program.
    pub fn alone(&self, step: &Step) -> Option<RowProgram> {
        let start = Member::first(step, &HashMap::new())?;
        let shape = [start.kernel.grid.size(), start.kernel.rdims.size()];
        self.merged(&[start], shape)
    }

    /// The program that begins with step `first`, and its steps. A product of which the next step reads the transpose is computed in that order.
    pub fn program(
        &self,
        steps: &[Step],
        first: usize,
        taken: &[bool],
        moves: &HashMap<SlotId, Move>,
    ) -> Option<(RowProgram, Vec<usize>)> {
        let start = Member::first(&steps[first], moves)?;
        let alone = 1 + start.moves.len();
        let found = self.grown(start, steps, first, taken);
        if found.as_ref().is_some_and(|(_, members)| members.len() > alone) {
            return found;
        }
        let transposed = transposed(&steps[first]).and_then(|(step, at)| {
            let start = Member::first(&step, moves)?;
            let at = refined(&at.0, &at.1, &start.kernel.grid);
            self.grown(Member { at: Some(at), ..start }, steps, first, taken)
        });
        transposed.or(found)
    }
    /// The program that begins with this member, which is step `first`, and its steps.
    fn grown(&self, start: Member, steps: &[Step], first: usize, taken: &[bool]) -> Option<(RowProgram, Vec<usize>)> {
        let limits = Limits::of(&self.device.limits);
        let window = first..steps.len().min(first + WINDOW);
        let shape = match start.routine {
            Some(_) => [start.kernel.grid.size(), start.kernel.rdims.size()],
            None => window.clone().filter(|i| !taken[*i]).find_map(|i| shape_of(&Member::of(&steps[i])?))?,
        };
        start.role(shape)?;
        let (mut members, mut all) = ([&start.moves[..], &[first]].concat(), vec![start]);
        let mut found = if members.len() > 1 { self.merged(&all, shape) } else { None };
        let mut between = Between::default();
        for i in window.skip(1).filter(|i| !taken[*i]) {
            let member = Member::of(&steps[i])
                .filter(|m| all.len() < MAX_STEPS && m.joins(&all, shape) && between.allows(&m.ins, m.outs));
            if let Some(member) = member {
                all.push(member);
                if let Some(program) = self.merged(&all, shape).filter(|p| fits(p, limits)) {
                    members.push(i);
                    found = Some(program);
                    continue;
                }
                all.pop();
            }
            between.add(&steps[i]);
        }
        let is_worth = |p: &RowProgram| p.routine.is_some() || p.rows.reductions() > 0 && pays(p, &all, shape);
        found.filter(is_worth).map(|p| (p, members))
    }

    /// All members as one program; none where one reads other positions of what an earlier one writes.
    fn merged(&self, all: &[Member], shape: [usize; 2]) -> Option<RowProgram> {
        let fine = Fine::of(all, shape)?;
        let mut merge = Merge { fine, numbers: HashMap::new(), kernel: Kernel::default(), ins: vec![], made: vec![] };
        for m in all {
            merge.add(m, shape)?;
        }
        let Merge { fine, mut kernel, ins, made, .. } = merge;
        let reads = |s: SlotId| all.iter().flat_map(|m| m.ins.iter()).filter(|i| **i == s).count();
        let is_seen = |s: SlotId| self.uses[s as usize] != 1 + reads(s);
        if all.iter().any(|m| m.at.is_some() && m.outs.iter().any(|s| is_seen(*s))) {
            return None; // results are stored in the order of the grid
        }
        let seen = |each: Each| made.iter().filter(move |m| m.each == each && is_seen(m.slot));
        let (mut outs, mut outputs) = (vec![], vec![]);
        for each in [Each::Element, Each::Row] {
            for m in seen(each) {
                outs.push(m.slot);
                outputs.push(each);
                kernel.outputs.push(m.node);
            }
        }
        let at = fine.dims.len() - fine.elements;
        (kernel.grid, kernel.rdims) = (Dims::new(&fine.dims[..at]), Dims::new(&fine.dims[at..]));
        let live = crate::wgsl::with_outputs(&kernel, &kernel.outputs);
        let operand = |k: usize| ins.iter().position(|s| *s == all[0].ins[k]);
        let routine = match all[0].routine {
            Some(r) => {
                let (routine, kernel) = (r.clone(), all[0].kernel.clone().into_owned());
                Some(ByRoutine { routine, kernel, operands: [operand(0)?, operand(1)?] })
            }
            None => None,
        };
        Some(RowProgram { rows: RowKernel { kernel: live, outputs }, ins, outs, routine })
    }
}

/// A step that is a product, with its result transposed; and over which grid where the result is.
fn transposed(step: &Step) -> Option<(Step, (Affine, Dims))> {
    let Step::Routine { routine, ins, outs } = step else { return None };
    let (routine, at) = routines::transposed(routine)?;
    Some((Step::Routine { routine: Arc::new(routine), ins: vec![ins[1], ins[0]], outs: outs.clone() }, at))
}

/// The rows that a kernel reduces, if a program can, and their elements follow one another.
fn shape_of(m: &Member) -> Option<[usize; 2]> {
    let (k, n) = (&*m.kernel, m.kernel.rdims.size());
    let is_row = !k.rdims.is_empty() && (MIN_ELEMENTS..=MAX_ELEMENTS).contains(&n) && !lies_across(k);
    is_row.then_some([k.grid.size(), n])
}
/// Whether neighbouring rows are closer to each other than neighbouring elements.
fn lies_across(k: &Kernel) -> bool {
    let last = |dims: &[usize], from: usize| dims.iter().rposition(|d| *d > 1).map(|d| from + d);
    let (Some(row), Some(element)) = (last(&k.grid, 0), last(&k.rdims, k.grid.len())) else { return false };
    let across = |a: &Affine| a.stride(row).abs() == 1 && a.stride(element).abs() > 1;
    k.nodes.iter().any(|(_, n)| matches!(n, Node::Load(a) if across(&a.at)))
}

/// Whether the device can bind its arrays and keep its values, and its outputs end with a word where a workgroup does.
fn fits(p: &RowProgram, limits: Limits) -> bool {
    let k = &p.rows.kernel;
    let narrow = |each: Each| {
        let all = k.outputs.iter().zip(&p.rows.outputs).filter(move |(_, e)| **e == each);
        all.map(|(o, _)| crate::wgsl::per_word(k.dtype(*o))).max().unwrap_or(1)
    };
    let is_long = p.routine.is_none() && k.rdims.size() > BLOCK;
    let scratch = usize::from(is_long && k.rdims.size() > RowKernel::longest(limits));
    p.ins.len() + p.outs.len() + scratch <= limits.buffers
        && k.nodes.len() <= MAX_NODES
        && p.rows.reductions() <= MAX_REDUCTIONS
        && !p.outs.is_empty()
        && (!is_long || narrow(Each::Row) == 1 && k.rdims.size().is_multiple_of(narrow(Each::Element)))
}
/// Whether its phases do at most twice the work of its steps, whose results go through memory.
fn pays(p: &RowProgram, all: &[Member], [rows, n]: [usize; 2]) -> bool {
    let step = |m: &Member| of_element(&m.kernel) as f64 * m.kernel.domain().size() as f64 / (rows * n) as f64;
    p.rows.work() as f64 <= 2.0 * all.iter().map(step).sum::<f64>()
}

/// Dimensions that those of all members are products of: of rows, then of elements.
struct Fine {
    dims: Vec<usize>,
    /// How many of them are of elements.
    elements: usize,
}
impl Fine {
    fn of(all: &[Member], shape: [usize; 2]) -> Option<Fine> {
        let [rows, n] = shape;
        let mut products = vec![n, rows * n];
        for m in all {
            let (_, mut product) = m.role(shape)?;
            for d in m.kernel.domain().iter().rev() {
                product *= d;
                products.push(product);
            }
        }
        products.sort_unstable();
        products.dedup();
        products.retain(|p| *p > 1);
        let (mut dims, mut elements, mut product) = (vec![], 0, 1);
        for p in &products {
            if p % product != 0 {
                return None;
            }
            dims.push(p / product);
            elements += usize::from(product < n);
            product = *p;
        }
        dims.reverse();
        Some(Fine { elements, dims })
    }
    /// The form of a member's domain, whose last index is so many elements, over these dimensions.
    fn form(&self, a: &Affine, domain: &[usize], each: usize) -> Affine {
        let mut a = a.clone();
        a.strides.resize(domain.len(), 0);
        a.strides.push(0);
        refined(&a, &[domain, &[each]].concat(), &self.dims)
    }
}

/// What a member has written.
struct Made {
    slot: SlotId,
    node: NodeId,
    each: Each,
    /// Where it is, over the program's dimensions.
    at: Affine,
}

struct Merge {
    fine: Fine,
    /// Nodes by what they are.
    numbers: HashMap<(DType, Node), NodeId>,
    kernel: Kernel,
    ins: Vec<SlotId>,
    /// Latest last.
    made: Vec<Made>,
}
impl Merge {
    fn add(&mut self, m: &Member, shape: [usize; 2]) -> Option<()> {
        let (each, behind) = m.role(shape)?;
        let domain = m.kernel.domain();
        let mut at: Vec<NodeId> = vec![];
        for (d, node) in &m.kernel.nodes {
            let mut node = node.clone();
            node.map_operands(|o| at[o as usize]);
            let id = match node {
                Node::Load(mut a) => {
                    a.at = self.fine.form(&a.at, &domain, behind);
                    a.guards.iter_mut().for_each(|g| g.at = self.fine.form(&g.at, &domain, behind));
                    let slot = m.ins[a.input as usize];
                    match self.made.iter().rev().find(|m| m.slot == slot) {
                        Some(m) => {
                            let is_own = a.guards.is_empty() && a.at == m.at;
                            Some(m.node).filter(|id| is_own && self.kernel.dtype(*id) == *d)?
                        }
                        None => {
                            a.input = self.input(slot, m.kernel.inputs[a.input as usize]);
                            self.node(*d, Node::Load(a))
                        }
                    }
                }
                Node::Index(a) => {
                    let a = self.fine.form(&a, &domain, behind);
                    self.node(*d, Node::Index(a))
                }
                node => self.node(*d, node),
            };
            at.push(id);
        }
        let own = m.at.clone().unwrap_or_else(|| Affine::new(0, m.kernel.grid.strides().iter().map(|s| *s as i64)));
        let own = self.fine.form(&own, &domain, behind);
        for (slot, o) in m.outs.iter().zip(&m.kernel.outputs) {
            if self.made.iter().any(|m| m.slot == *slot) || self.ins.contains(slot) {
                return None; // a slot that is written again
            }
            self.made.push(Made { slot: *slot, node: at[*o as usize], each, at: own.clone() });
        }
        Some(())
    }
    fn input(&mut self, slot: SlotId, of: (DType, usize)) -> u32 {
        let known = self.ins.iter().position(|s| *s == slot);
        let at = known.unwrap_or_else(|| {
            self.ins.push(slot);
            self.kernel.inputs.push(of);
            self.ins.len() - 1
        });
        // operands of routines may be a part of an array
        self.kernel.inputs[at].1 = self.kernel.inputs[at].1.max(of.1);
        at as u32
    }
    fn node(&mut self, d: DType, node: Node) -> NodeId {
        let nodes = &mut self.kernel.nodes;
        *self.numbers.entry((d, node.clone())).or_insert_with(|| {
            nodes.push((d, node));
            nodes.len() as NodeId - 1
        })
    }
}
