//! From programs to plans: `lower` rules build a [`Graph`], fusion groups it into kernels, and the
//! memory plan assigns memory to every value.
//!
//! ```text
//! Program --(lower rules)--> Graph --(fuse)--> steps --(buffers)--> Plan
//! ```
//!
//! INVARIANT: this module names no primitive; each primitive defines its own `lower`.
mod buffers;
mod contract;
mod control;
mod convolution;
mod fuse;
mod graph;
mod invariant;
mod known;

pub use contract::DotAxes;
pub use control::{LoopOf, TripOf};
pub use convolution::Convolution;
pub use graph::{Graph, Guard, TensorId, TensorIds, scaled, unit};

use crate::aval::Aval;
use crate::dtype::{Dtype, KeyImpl};
use crate::error::Res;
use crate::program::{Atom, Eqn, Program};
use ferrax_kernel::plan::{Operations, VerifiedPlan};
use ferrax_kernel::{DType, Dims, Error, Plan, Scalar};

/// The representation of a value in memory: keys and complex numbers have a trailing axis of 2.
pub struct Physical {
    pub dtype: DType,
    pub shape: Dims,
    pub paired: bool,
}

pub fn physical(a: &Aval) -> Physical {
    let (dtype, paired) = match a.dtype {
        Dtype::Num(d) => (d, false),
        Dtype::Float0 => (DType::Bool, false),
        Dtype::C64 => (DType::F32, true),
        Dtype::C128 => (DType::F64, true),
        // two words of threefry; or four, as two of 64 bits, low halves first
        Dtype::Key(KeyImpl::Fry) => (DType::U32, true),
        Dtype::Key(KeyImpl::Rbg | KeyImpl::UnsafeRbg) => (DType::U64, true),
    };
    let shape = if paired { a.shape.insert(a.shape.len(), 2) } else { a.shape.clone() };
    Physical { dtype, shape, paired }
}

/// The plan of a program. Its inputs are the program's (captured ones first), its outputs likewise, in physical form.
pub fn lower(p: &Program) -> Res<Plan> {
    plan(p, &crate::simplify::simplify(p), Graph::default())
}
/// The plan, verified. If the verifier cannot prove that it stays in bounds, the plan is made again
/// with every value materialized, so that each kernel has the index maps of one operation only, and in memory of its own.
/// With `FERRAX_STRICT_PLANS` it is an error instead, so that tests find such plans.
pub fn verified(p: &Program) -> Res<VerifiedPlan> {
    match lower(p)?.verify() {
        Err(Error::Invalid(_)) if !ferrax_kernel::fault::is_strict() => Ok(plain(p)?.verify()?),
        made => Ok(made?),
    }
}
/// The plan with every value in memory: each kernel has one operation.
pub fn unfused(p: &Program) -> Res<Plan> {
    plan(p, &crate::simplify::simplify(p), Graph::unfused())
}
/// The plan of the equations as written, with every value in memory of its own: nothing is merged, fused or updated in place.
pub fn plain(p: &Program) -> Res<Plan> {
    plan(p, &crate::simplify::inline_calls(p), Graph { unshared: true, ..Graph::unfused() })
}
/// The operations of a program as written: those of each equation by itself, without merging equal
/// ones.
pub fn operations(p: &Program) -> Res<Operations> {
    let p = crate::simplify::inline_calls(p);
    let (mut sum, mut first) = (Operations::default(), p.in_avals().len());
    for e in p.eqns() {
        let outs = &p.avals()[first..first + e.n_out as usize];
        first += outs.len();
        let alone = alone(&p, e, outs)?;
        sum = sum.and(plan(&alone, &alone, Graph::default())?.operations());
    }
    Ok(sum)
}
/// The program of one equation.
fn alone(p: &Program, e: &Eqn, outs: &[Aval]) -> Res<Program> {
    let mut avals = vec![];
    let mut operand = |a: &Atom| match a {
        Atom::Var(v) => {
            avals.push(p.avals()[*v as usize].clone());
            Atom::Var(avals.len() as u32 - 1)
        }
        Atom::Lit(_) => *a,
    };
    let args = e.args.iter().map(&mut operand).collect();
    let n_ins = avals.len();
    avals.extend_from_slice(outs);
    let results = (n_ins..avals.len()).map(|k| Atom::Var(k as u32)).collect();
    Program::new(0, n_ins, avals, vec![Eqn { op: e.op.clone(), args, n_out: e.n_out }], results, vec![])
}
fn plan(p: &Program, simple: &Program, mut g: Graph) -> Res<Plan> {
    let ins: Vec<TensorId> = p
        .in_avals()
        .iter()
        .map(|a| {
            let ph = physical(a);
            ph.shape.checked(ph.dtype.size())?;
            let slot = g.plan.add_slot(ph.dtype, ph.shape.size(), a.tape);
            g.plan.inputs.push(slot);
            Ok(g.bring_in(a, slot))
        })
        .collect::<Res<_>>()?;
    let outs = g.inline(simple, &ins)?;
    for y in outs {
        let y = g.take_out(y);
        let slot = g.force(y);
        g.plan.outputs.push(slot);
    }
    let steps = fuse::steps(&mut g);
    let shared = !g.unshared;
    let mut plan = g.plan;
    plan.steps = steps;
    ferrax_kernel::small::legalize(&mut plan);
    buffers::assign(&mut plan, shared);
    Ok(plan)
}

impl Graph {
    /// Lowers a program's equations into this graph.
    pub fn inline(&mut self, p: &Program, ins: &[TensorId]) -> Res<TensorIds> {
        debug_assert!(p.held().is_empty(), "held values become operands before lowering");
        let mut env: Vec<TensorId> = Vec::with_capacity(p.avals().len());
        env.extend_from_slice(ins);
        for e in p.eqns() {
            let x: TensorIds = e.args.iter().map(|a| self.atom(&env, a)).collect();
            let first = env.len();
            let outs = &p.avals()[first..first + e.n_out as usize];
            let mut nothing = !outs.is_empty();
            for a in outs {
                let ph = physical(a);
                nothing &= ph.shape.checked(ph.dtype.size())? == 0 && a.tape == 0;
            }
            // Without elements there is nothing to compute, whatever the other sizes: no rule has
            // to handle it.
            if nothing && !e.op.has_io() {
                env.extend(outs.iter().map(|a| self.empty(a)));
                continue;
            }
            env.extend(e.op.rules().lower(self, &x, outs)?);
            debug_assert_eq!(
                env.len(),
                first + e.n_out as usize,
                "{} lowered to the wrong number of values",
                e.op.name()
            );
        }
        Ok(p.outs().iter().map(|a| self.atom(&env, a)).collect())
    }
    /// A value without elements.
    fn empty(&mut self, a: &Aval) -> TensorId {
        let ph = physical(a);
        let none = self.constant(Scalar::from_f64(ph.dtype, 0.0), a.shape.clone());
        if ph.paired { self.pair(none, none) } else { none }
    }
    fn atom(&mut self, env: &[TensorId], a: &Atom) -> TensorId {
        match a {
            Atom::Var(v) => env[*v as usize],
            Atom::Lit(l) => self.literal(l),
        }
    }
}
