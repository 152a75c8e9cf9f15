//! A program of whole arrays to the program that each device of a mesh runs on its parts, with collectives as equations.
//!
//! ```text
//! { a:f32[8,4] b:f32[4,6]. c = dot_general a b }        a cut in rows by x, b in columns by y, of a mesh x:2 y:3
//! { a:f32[4,4] b:f32[4,2]. c:f32[4,2] = dot_general a b }                 nothing moves, the result is cut by both
//! { a:f32[4,4] b:f32[2,6]. d = all_gather[x] b; c:f32[4,6] = .. }         b cut in rows by x: it is gathered
//! ```
//!
//! Two steps: every variable is given a spec, forwards and backwards through the factors of its equations ([`flow`]); then the equations are
//! emitted on parts ([`emit`]), operands brought to where they must be ([`Here::reshard`](ferrax_ir::parts::Here::reshard)) when they are read, and no earlier.
//! Sums over devices whose results are added to each other are taken once, of the total ([`late`]).
//!
//! INVARIANT: no primitive is named: partitioning uses their `factors`, `local`, `expanded` and `ties`. A primitive without factors is
//! given whole operands. All devices run the same equations, so they meet in the same order.
mod annotations;
mod emit;
mod flow;
mod late;
mod uneven;

pub use annotations::annotations;

use crate::trace::Trace;
use ferrax_ir::cut::Lenient;
use ferrax_ir::cx::{Cx, Fun, Line, read};
use ferrax_ir::error::value_err;
use ferrax_ir::layout::{Grid, Spec};
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Op, Program, Res, Value};
use smallvec::smallvec;
use std::cell::RefCell;
use std::sync::Arc;

/// What each device runs, and how its results are cut.
pub struct Partitioned {
    pub program: Arc<Program>,
    pub outs: Vec<Spec>,
    pub gathered: Vec<Gathered>,
}
/// An array in parts that every device gets whole because an equation reads it so, and the line of that. Not what the program asks for by a
/// constraint, an output or a body for parts.
#[derive(Clone, PartialEq, Debug)]
pub struct Gathered {
    pub aval: Aval,
    pub line: u32,
}

/// The program of one device of `grid`, for inputs (captured ones first) cut as `ins` say, and outputs as `outs` do where they do.
pub fn partition(p: &Program, grid: &Grid, ins: &[Spec], outs: &[Option<Spec>]) -> Res<Partitioned> {
    if ins.len() != p.n_ins() || outs.len() != p.n_outs() {
        return value_err(format!(
            "a program of {} inputs and {} outputs was given {} and {} specs",
            p.n_ins(),
            p.n_outs(),
            ins.len(),
            outs.len()
        ));
    }
    for (spec, a) in ins.iter().zip(p.in_avals()) {
        spec.check(grid, &a.shape)?;
    }
    for (spec, a) in outs.iter().zip(p.out_avals()) {
        spec.as_ref().map_or(Ok(()), |s| s.check(grid, &a.shape))?;
    }
    let _typed = Lenient::enter();
    let n_consts = p.n_consts();
    let flat = expanded(p)?;
    let mut flow = flow::Flow::new(flat, grid)?;
    flow.fix_inputs(ins);
    flow.ask_outputs(outs, grid);
    flow.settle(grid);
    let gathered = RefCell::default();
    let (program, outs) = emit::emit(&flow, grid, ins, outs, &gathered)?;
    Ok(Partitioned { program: Arc::new(program.with_consts(n_consts)), outs, gathered: gathered.into_inner() })
}

/// The same program with calls, and other ops that are equivalent to a program, replaced by its equations.
fn expanded(p: &Program) -> Res<Arc<Program>> {
    let s = Trace::stage();
    let ins: Vec<Value> = p.in_avals().iter().map(|a| s.new_in(a.clone())).collect();
    let outs = inline(&*s, p, &ins)?;
    Ok(Arc::new(s.close(&outs)?.0.open()))
}
fn inline(cx: &dyn Cx, p: &Program, x: &[Value]) -> Res<Values> {
    let mut env: Vec<Value> = p.held().iter().chain(x).cloned().collect();
    let at = Line::kept();
    for (e, line) in p.eqns().iter().zip(p.lines()) {
        at.set(*line);
        let args: Values = e.args.iter().map(|a| read(&env, a)).collect();
        env.extend(replaced(cx, &e.op, &args).map_err(|e| at.blame(e))?);
    }
    Ok(p.outs().iter().map(|a| read(&env, a)).collect())
}
fn replaced(cx: &dyn Cx, op: &Op, x: &[Value]) -> Res<Values> {
    if let Some((op, x)) = op.body().map(|b| b.stage(cx, x)).transpose()?.flatten() {
        return replaced(cx, &op, &x);
    }
    let avals: Vec<Aval> = x.iter().map(Value::aval).collect();
    if let Some((p, which)) = op.rules().expanded(&avals)? {
        return inline(cx, &p, &which.iter().map(|i| x[*i].clone()).collect::<Vec<_>>());
    }
    if let Some(Fun::Prog(p)) = op.means() {
        return inline(cx, p, x);
    }
    let made = x.first().and_then(|v| cx.made_by(v));
    if let Some((op, x)) = made.and_then(|(made, of)| op.rules().joined(&made, &of)) {
        return cx.bind(&op, &x);
    }
    if let Some(y) = op.rules().placed(cx, x, &|v| numbers(cx, v))? {
        return Ok(smallvec![y]);
    }
    cx.bind(op, x)
}
/// The numbers of indices that the program itself says.
fn numbers(cx: &dyn Cx, v: &Value) -> Option<Vec<i64>> {
    if let Value::Lit(l) = v {
        return l.scalar().filter(|_| l.dtype().is_int()).map(|s| vec![s.to_i64()]);
    }
    let n = v.shape().iter().product::<usize>();
    let (op, x) = cx.made_by(v).filter(|_| (1..=MAX_NUMBERS).contains(&n))?;
    op.rules().numbers(&|i| numbers(cx, x.get(i)?), n)
}
/// Of how many dimensions an index is followed to what the program says.
const MAX_NUMBERS: usize = 8;
