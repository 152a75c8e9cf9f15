//! Operation counts of a plan: operations on numbers, not those on indices.
//!
//! Loads, guards, copies and constants count as nothing. A matrix product is a multiplication and
//! an addition for each term. Loops of unknown length count as one iteration, switches as their
//! longest branch.
//!
//! `y = tanh(x @ w + b)` for x `f32[2,3]` and w `f32[3,4]`: 2 * 2 * 3 * 4 + 2 * 4 operations, and 2 * 4 transcendental ones.
use super::{Plan, Step, Trip};
use crate::expr::{Bin, Un};
use crate::kernel::{Guard, Kernel, Node, NodeId};
use crate::routine::{Combine, Conv, Routine};
use crate::shape::Dims;

/// How many operations of each sort; the transcendental functions, roots among them, are not counted with the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    pub arithmetic: u64,
    pub transcendental: u64,
}

impl Operations {
    fn arithmetic(n: u64) -> Operations {
        Operations { arithmetic: n, transcendental: 0 }
    }
    #[must_use]
    pub fn and(self, more: Operations) -> Operations {
        Operations {
            arithmetic: self.arithmetic.saturating_add(more.arithmetic),
            transcendental: self.transcendental.saturating_add(more.transcendental),
        }
    }
    fn times(self, n: u64) -> Operations {
        Operations {
            arithmetic: self.arithmetic.saturating_mul(n),
            transcendental: self.transcendental.saturating_mul(n),
        }
    }
    fn longer(self, other: Operations) -> Operations {
        let size = |o: Operations| o.arithmetic.saturating_add(o.transcendental);
        if size(other) > size(self) { other } else { self }
    }
}

impl Plan {
    /// The operations of one run.
    pub fn operations(&self) -> Operations {
        steps(&self.steps)
    }
}

fn steps(s: &[Step]) -> Operations {
    s.iter().map(step).fold(Operations::default(), Operations::and)
}

fn step(s: &Step) -> Operations {
    match s {
        Step::Kernel { kernel, .. } => kernel_operations(kernel),
        Step::Routine { routine, .. } => Operations::arithmetic(routine_operations(routine)),
        Step::Loop(l) => match &l.trip {
            Trip::Static(n) => steps(&l.body).times(*n as u64),
            Trip::Dyn(_) => steps(&l.body),
            Trip::While { cond, .. } => steps(cond).and(steps(&l.body)),
        },
        Step::Switch { branches, .. } => {
            branches.iter().map(|b| steps(b)).fold(Operations::default(), Operations::longer)
        }
        Step::Copy { .. }
        | Step::Callback { .. }
        | Step::Collective { .. }
        | Step::TapeLen { .. }
        | Step::EmptyTape { .. } => Operations::default(),
    }
}

fn kernel_operations(k: &Kernel) -> Operations {
    let (rows, all) = (k.grid.size() as u64, k.domain().size() as u64);
    let reduced: Vec<NodeId> =
        k.nodes.iter().filter_map(|(_, n)| if let Node::Reduce { of, .. } = n { Some(*of) } else { None }).collect();
    let terms = k.needed(reduced.into_iter());
    let mut sum = Operations::default();
    for (id, (_, node)) in k.nodes.iter().enumerate() {
        let places = if terms[id] { all } else { rows };
        sum = sum.and(match node {
            Node::Const(_) | Node::Index(_) | Node::Load(_) => Operations::default(),
            Node::Reduce { .. } => Operations::arithmetic(all.saturating_sub(rows)),
            Node::Un(f, _) if is_transcendental(*f) => Operations { arithmetic: 0, transcendental: places },
            Node::Bin(Bin::Pow | Bin::Atan2, ..) => Operations { arithmetic: 0, transcendental: places },
            Node::Un(..) | Node::Bin(..) | Node::Select { .. } => Operations::arithmetic(places),
            Node::Convert(_) | Node::Bitcast(_) | Node::Round { .. } => Operations::arithmetic(places),
        });
    }
    sum
}

fn is_transcendental(f: Un) -> bool {
    match f {
        Un::Neg | Un::Abs | Un::Sign | Un::Not | Un::Popcnt | Un::Clz | Un::IsFinite => false,
        Un::Floor | Un::Ceil | Un::RoundEven | Un::RoundAway | Un::Trunc => false,
        Un::Sqrt | Un::Rsqrt | Un::Cbrt | Un::Exp | Un::Exp2 | Un::Expm1 | Un::Log | Un::Log1p => true,
        Un::Sin | Un::Cos | Un::Tan | Un::Asin | Un::Acos | Un::Atan => true,
        Un::Sinh | Un::Cosh | Un::Tanh | Un::Asinh | Un::Acosh | Un::Atanh => true,
        Un::Logistic | Un::Erf | Un::Erfc | Un::ErfInv | Un::Lgamma | Un::Digamma => true,
    }
}

fn routine_operations(r: &Routine) -> u64 {
    match r {
        Routine::Dot(_) => r.work().saturating_mul(2),
        Routine::Conv(c) => conv_operations(c),
        Routine::Gather(_) | Routine::DynamicSlice { .. } | Routine::DynamicUpdateSlice { .. } => 0,
        Routine::Scatter(s) if s.combine == Combine::Set => 0,
        Routine::Scatter(s) => s.updates.size() as u64,
        Routine::Sort { .. } | Routine::TopK { .. } | Routine::Cumulative { .. } => r.work(),
        Routine::Linalg(_) | Routine::Fft(_) => r.work(),
    }
}

/// The products of elements in bounds, each with its addition. Guards involve few axes each: those
/// without a common axis are counted separately.
fn conv_operations(c: &Conv) -> u64 {
    /// More places than this are not examined: then all count as inside.
    const MAX_POINTS: usize = 1 << 16;
    let domain = c.batch.concat(&c.rows).concat(&c.terms);
    let mut groups: Vec<(Vec<usize>, Vec<&Guard>)> = vec![];
    for g in &c.guards {
        let mut axes: Vec<usize> = (0..domain.len()).filter(|k| g.at.stride(*k) != 0).collect();
        let mut guards = vec![g];
        let (meet, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(a, _)| a.iter().any(|k| axes.contains(k)));
        groups = apart;
        for (more, others) in meet {
            axes.extend(more);
            guards.extend(others);
        }
        axes.sort_unstable();
        axes.dedup();
        groups.push((axes, guards));
    }
    let mut free: Vec<usize> = domain.to_vec();
    let mut count = 2 * c.columns as u64;
    for (axes, guards) in groups {
        let sizes: Dims = axes.iter().map(|k| domain[*k]).collect();
        if sizes.size() > MAX_POINTS {
            continue;
        }
        let places = (0..sizes.size()).map(|i| sizes.unravel(i));
        let inside = places.filter(|at| guards.iter().all(|g| passes(g, &axes, at))).count();
        count = count.saturating_mul(inside as u64);
        axes.iter().for_each(|k| free[*k] = 1);
    }
    free.iter().fold(count, |n, size| n.saturating_mul(*size as u64))
}

fn passes(g: &Guard, axes: &[usize], at: &[usize]) -> bool {
    let here = g.at.offset + axes.iter().zip(at).map(|(k, i)| g.at.stride(*k) * *i as i64).sum::<i64>();
    (g.lo..g.hi).contains(&here)
}
