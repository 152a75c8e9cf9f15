//! Transforms of functions over values, and of programs. Each pushes a trace on the current one, runs the function, pops.
//!
//! ```text
//! linearize(f) = Jvp over Record        vjp = linearize, then the recorded program backwards        vmap = Batch
//! ```
//!
//! INVARIANT: no primitive is named here, except in the helpers of `Cx` (zeros, sums, broadcasts).
#![forbid(unsafe_code)]
pub mod backward;
pub mod partition;
pub mod trace;

use ferrax_ir::cx::{AxisKind, Cx, Dim, Line, Tan, current, moved, open_scopes, transforming};
use ferrax_ir::effects::Name;
use ferrax_ir::mask::{cat, merge, pick, spread};
use ferrax_ir::{Aval, Error, ErrorKind, Program, Res, Value, Values};
use std::rc::Rc;
use trace::Trace;
use trace::programs::transposed;

/// Functions of flat argument lists; pytrees are left to the binding.
pub type FlatFn<'a> = &'a dyn Fn(&[Value]) -> Res<Values>;

/// Traces `f` to a program; also returns the values it closed over, the program's leading `n_consts` inputs. Equations with unread outputs
/// stay, as the user wrote them; lowering drops them.
pub fn make_program(f: FlatFn, ins: &[Aval]) -> Res<(Program, Vec<Value>)> {
    let _lines = Line::unset();
    let s = Trace::stage_all();
    let made = {
        let x: Vec<Value> = ins.iter().map(|a| s.new_in(a.clone())).collect();
        let outs = s.run(|| f(&x))?;
        s.close(&outs)?
    };
    ferrax_ir::checks::ended(&s.tag)?;
    Ok(made)
}

/// y = f(x) and its tangents for `dx`; `None` is a zero tangent.
pub fn jvp(f: FlatFn, x: &[Value], dx: &[Tan]) -> Res<(Values, Vec<Tan>)> {
    let _scope = transforming("jvp");
    let s = Trace::support(current(), false, "jvp");
    let j = Trace::jvp(s.clone(), "jvp");
    let ins: Vec<Value> = x.iter().zip(dx).map(|(x, t)| j.dual(x.clone(), t.clone())).collect();
    let outs = j.run(|| f(&ins))?;
    let mut y = Values::new();
    let mut dy = Vec::with_capacity(outs.len());
    for v in &outs {
        v.check_alive()?;
        let (p, t) = j.undual(v);
        y.push(p);
        dy.push(t.map(|t| s.settled(&t)).transpose()?);
    }
    Ok((y, dy))
}

/// A linear map with its residuals: `prog` takes (residuals.., tangents where `nz_in`..).
pub struct Linear {
    pub prog: Program,
    pub residuals: Vec<Value>,
    pub nz_in: Vec<bool>,
    pub nz_out: Vec<bool>,
    pub in_avals: Vec<Aval>,
    pub out_avals: Vec<Aval>,
    /// The scopes that were open around `f`; an equation of `prog` has its own scopes beneath these.
    pub scopes: u32,
}

/// y = f(x), and dy as a linear program of dx. `f` runs once; its primal operations run in the current trace.
pub fn linearize(f: FlatFn, x: &[Value]) -> Res<(Values, Linear)> {
    linearize_in(f, x, &vec![true; x.len()])
}
/// The same, with tangents only where `wrt`.
pub fn linearize_in(f: FlatFn, x: &[Value], wrt: &[bool]) -> Res<(Values, Linear)> {
    let scopes = open_scopes();
    let _scope = transforming("jvp");
    let r = Trace::record(current());
    let j = Trace::jvp(r.clone(), "grad");
    let tangent = |(v, w): (&Value, &bool)| if *w { v.aval().tangent() } else { None };
    let tangents: Vec<Option<Aval>> = x.iter().zip(wrt).map(tangent).collect();
    let nz_in: Vec<bool> = tangents.iter().map(Option::is_some).collect();
    let ins: Vec<Value> = x.iter().zip(tangents).map(|(v, a)| j.dual(v.clone(), a.map(|a| r.new_in(a)))).collect();
    let outs = j.run(|| f(&ins))?;
    let (mut y, mut dy) = (Values::new(), vec![]);
    for v in &outs {
        v.check_alive()?;
        let (p, t) = j.undual(v);
        if r.owns(&p) {
            return Err(Error::not_implemented(
                "an output value depends on a tangent, so it cannot be computed before the tangents are known",
            ));
        }
        y.push(p);
        dy.push(t);
    }
    let nz_out = dy.iter().map(Option::is_some).collect();
    let (prog, residuals) = r.close(&dy.into_iter().flatten().collect::<Vec<_>>())?;
    let (in_avals, out_avals) = (x.iter().map(Value::aval).collect(), y.iter().map(Value::aval).collect());
    Ok((y, Linear { prog, residuals, nz_in, nz_out, in_avals, out_avals, scopes }))
}

impl Linear {
    /// Tangents of the outputs for those of the inputs (entries without a tangent type are not read).
    pub fn apply(&self, dx: &[Value]) -> Res<Vec<Tan>> {
        let s = Trace::support(current(), true, "grad");
        let dx: Vec<Value> = pick(dx, &self.nz_in).into_iter().map(|t| s.tangent(t)).collect();
        let cx: &dyn Cx = &*s;
        let dy = cx.inline_here(&self.prog, &cat(&[&self.residuals, &dx]), self.scopes)?;
        Ok(spread(&self.nz_out, dy.iter().map(|t| s.settled(t)).collect::<Res<Values>>()?))
    }
    /// Cotangents of the inputs for those of the outputs.
    pub fn transpose(&self, ct: &[Tan]) -> Res<Vec<Tan>> {
        self.transpose_to(ct, &vec![true; self.nz_in.len()])
    }
    /// The same for some of the inputs: nothing is computed for the others, which get none.
    pub fn transpose_to(&self, ct: &[Tan], wanted: &[bool]) -> Res<Vec<Tan>> {
        let mut known: Vec<Option<Value>> = self.residuals.iter().cloned().map(Some).collect();
        known.resize(self.prog.n_ins(), None);
        let cts = ct.iter().zip(&self.nz_out).filter(|(_, nz)| **nz).map(|(ct, _)| ct.clone()).collect();
        let (n, wanted) = (self.residuals.len(), pick(wanted, &self.nz_in));
        let place = |line| moved(line, self.scopes, Some("transpose"));
        let out = transposed(&*current(), &self.prog, &known, cts, |i| i < n || wanted[i - n], place)?.split_off(n);
        Ok(merge(&self.nz_in, out, vec![None; self.nz_in.len()]))
    }
}

/// A function that is linear in its arguments (it may close over anything), as a linear map.
pub fn linear(f: FlatFn, ins: &[Aval]) -> Res<Linear> {
    let r = Trace::record(current());
    let x: Vec<Value> = ins.iter().map(|a| r.new_in(a.clone())).collect();
    let outs = r.run(|| f(&x))?;
    let out_avals = outs.iter().map(Value::aval).collect();
    let (prog, residuals) = r.close(&outs)?;
    Ok(Linear {
        prog,
        residuals,
        nz_in: vec![true; ins.len()],
        nz_out: vec![true; outs.len()],
        in_avals: ins.to_vec(),
        out_avals,
        scopes: 0, // its transpose keeps all names, as JAX's does
    })
}
/// The transpose of such a function.
pub fn linear_transpose(f: FlatFn, ins: &[Aval], ct: &[Tan]) -> Res<Vec<Tan>> {
    linear(f, ins)?.transpose(ct)
}

/// `f` over a batch of `n` elements: operand i has the batch axis `in_dims[i]`, or is the same for
/// all. `place` gives the batch axis of each output, and knows where the output has it; `None` for
/// a batched output is an error.
pub fn vmap(
    f: FlatFn,
    x: &[Value],
    in_dims: &[Dim],
    n: usize,
    name: Option<Name>,
    place: &dyn Fn(usize, &Aval, Dim) -> Res<Dim>,
) -> Res<Values> {
    map_axis(f, x, in_dims, (n, name, AxisKind::Lanes), &[], place)
}
/// The same where the lanes may be the parts of a `shard_map`.
pub fn map_axis(
    f: FlatFn,
    x: &[Value],
    in_dims: &[Dim],
    (n, name, kind): (usize, Option<Name>, AxisKind),
    spmd: &[Name],
    place: &dyn Fn(usize, &Aval, Dim) -> Res<Dim>,
) -> Res<Values> {
    let _scope = transforming("vmap");
    if let Some(name) = name.as_ref().filter(|_| kind.is_manual()) {
        ferrax_ir::vary::entered(name);
    }
    ferrax_ir::typing::mapped_alike(x.iter().map(Value::cut).zip(in_dims.iter().copied()))?;
    let parent = current();
    let t = Trace::batch(parent.clone(), n, name.clone(), kind);
    if !spmd.is_empty() {
        let _ = t.tag.spmd.set(spmd.to_vec());
    }
    let mapped = x.iter().zip(in_dims).find_map(|(v, d)| Some((v.cut().get()?, v.cut().of_dim((*d)?))));
    let mapped = mapped.filter(|m| !m.1.is_empty());
    if let Some((_, axes)) = &mapped {
        let _ = t.tag.lanes.set(axes.clone());
    }
    let outs = {
        let ins: Vec<Value> = x.iter().zip(in_dims).map(|(v, d)| t.lanes(v.clone(), *d)).collect();
        let run = || ferrax_ir::cx::with_axis(name.as_ref(), n, kind, || t.run(|| f(&ins)));
        let typed = mapped.as_ref().map_or(vec![], |(p, axes)| p.mesh.grid.names(axes).to_vec());
        ferrax_ir::cx::with_cut_lanes(if spmd.is_empty() { &typed } else { spmd }, run)?
    };
    let out = |(i, v): (usize, &Value)| {
        v.check_alive()?;
        let (val, d) = t.unlanes(v);
        match (place(i, &v.aval(), d)?, d) {
            (Some(to), None) if let Some((parted, axes)) = &mapped => {
                // a value without a batch axis is repeated on the devices of the others
                let of_one = if val.cut().is_none() {
                    ferrax_ir::cut::TypedCut::new(&parted.mesh, &ferrax_ir::layout::Spec::whole(val.rank()))
                } else {
                    val.cut()
                };
                parent.cut_as(parent.batch_at(&val, None, n, to)?, of_one.insert_cut(to, axes.clone()))
            }
            (Some(to), d) => parent.batch_at(&val, d, n, to),
            (None, None) => Ok(val),
            (None, Some(_)) => Err(Error::value("vmap has mapped output but out_axes is None")),
        }
    };
    let placed = outs.iter().enumerate().map(out).collect::<Res<Values>>()?;
    drop(outs);
    ferrax_ir::checks::ended(&t.tag)?;
    Ok(placed)
}
/// The batch size that operands agree on.
pub fn batch_size(x: &[Value], in_dims: &[Dim]) -> Res<usize> {
    let mut n = None;
    for (v, d) in x.iter().zip(in_dims) {
        let Some(d) = d else { continue };
        let a = v.aval();
        let Some(m) = a.shape.get(*d) else {
            return Err(Error::value(format!(
                "vmap was requested to map its argument along axis {d}, which implies that its rank should be at least {}, but is only {} (its shape is {})",
                d + 1,
                a.rank(),
                a.shape
            )));
        };
        match n {
            Some(n) if n != *m => {
                return Err(Error::value(format!(
                    "vmap got inconsistent sizes for array axes to be mapped: {n} and {m}"
                )));
            }
            _ => n = Some(*m),
        }
    }
    n.ok_or_else(|| {
        Error::new(
            ErrorKind::Value,
            "vmap must have at least one non-None value in in_axes or axis_size must be specified",
        )
    })
}

/// Installs the evaluator for eager values, once per process.
pub fn install(make: fn() -> Rc<dyn Cx>) {
    ferrax_ir::cx::install_root(make)
}
