//! `jax_debug_nans` and `jax_debug_infs`: find the operation that made the first bad number.
//!
//! A composition of this library may make bad numbers and mask them: only the results of its public
//! function count ([`crate::returned`]).
//!
//! INVARIANT: nothing is read from a device unless one of the flags is on.
use crate::config::{self, Flags};
use crate::error::IntoPyResult;
use ferrax::array;
use ferrax_ir::Dims;
use ferrax_ir::cx::read;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::error::Res;
use ferrax_ir::op::Op;
use ferrax_ir::ops::loops::{Loop, Trip};
use ferrax_ir::ops::slice::Slice;
use ferrax_ir::ops::squeeze::Squeeze;
use ferrax_ir::program::Program;
use ferrax_ir::value::{Array, Value, Values};
use ferrax_kernel::Scalar;
use pyo3::exceptions::PyFloatingPointError;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// The handling of a bad number: an error now, or later.
type Expect = fn(Python, PyErr) -> PyResult<()>;
static EXPECT: OnceLock<Expect> = OnceLock::new();

/// Installs the handler of bad numbers.
pub fn install(f: Expect) {
    let _ = EXPECT.set(f);
}
fn expect(py: Python, error: PyErr) -> PyResult<()> {
    match EXPECT.get() {
        Some(f) => f(py, error),
        None => Err(error),
    }
}

/// Whether results are to be looked at.
#[inline]
pub fn wanted(flags: Flags) -> bool {
    flags.debug_nans() || flags.debug_infs()
}

/// checks_values(): whether `jax_debug_nans` or `jax_debug_infs` is on.
#[pyfunction]
pub fn checks_values() -> bool {
    wanted(config::flags())
}

/// `nan`, `inf` or nothing.
fn bad(py: Python, v: &Value, flags: Flags) -> PyResult<Option<&'static str>> {
    let Value::Array(a) = v else { return Ok(None) };
    let part = match a.aval().dtype.real() {
        Dtype::Num(d) if d.is_float() => d,
        _ => return Ok(None),
    };
    let bytes = py.detach(|| held_bytes(a)).py(py)?;
    let mut found = None;
    for b in bytes.chunks_exact(part.size()) {
        let x = Scalar::from_bytes(part, b).to_f64();
        if flags.debug_nans() && x.is_nan() {
            return Ok(Some("nan"));
        }
        if flags.debug_infs() && x.is_infinite() {
            found = Some("inf");
        }
    }
    Ok(found)
}
/// The elements of an array that this process holds: each of several looks at its own parts.
fn held_bytes(a: &Array) -> Res<Vec<u8>> {
    if !is_elsewhere(a) {
        return array::bytes(a);
    }
    let mut all = vec![];
    for s in array::shards(a)? {
        array::wait(&s.buffer)?;
        all.extend(ferrax::runtime::read(s.device, &s.buffer)?);
    }
    Ok(all)
}
/// Whether other processes hold parts of an array.
fn is_elsewhere(a: &Array) -> bool {
    array::data(a).is_ok_and(|d| d.layout.as_ref().is_some_and(|l| !l.is_addressable()))
}
/// Whether a computation is of several processes: one of them cannot do it again by itself.
fn is_of_several(x: &[Value], out: &[Value]) -> bool {
    x.iter().chain(out).any(|v| matches!(v, Value::Array(a) if is_elsewhere(a)))
}
/// Raises FloatingPointError if a result of `name` has a bad number; within a function of this library, if that function's has one.
pub fn check(py: Python, name: &str, out: &[Value], flags: Flags) -> PyResult<()> {
    if name == "stop_gradient" {
        return Ok(()); // the value itself
    }
    found(py, name, out, flags).or_else(|e| expect(py, e))
}
/// Raises FloatingPointError if a result of `name` has a bad number.
pub fn found(py: Python, name: &str, out: &[Value], flags: Flags) -> PyResult<()> {
    for v in out {
        if let Some(what) = bad(py, v, flags)? {
            return Err(PyFloatingPointError::new_err(format!("invalid value ({what}) encountered in {name}")));
        }
    }
    Ok(())
}
/// As `check` for a whole program: where a result is bad, runs it again equation by equation to name the one that made it.
pub fn check_program(
    py: Python,
    name: &str,
    program: &Program,
    x: &[Value],
    out: &[Value],
    flags: Flags,
) -> PyResult<()> {
    let Err(whole) = found(py, &format!("jit({name})"), out, flags) else { return Ok(()) };
    let error = if is_of_several(x, out) { None } else { again(py, program, x, flags).err() };
    expect(py, error.unwrap_or(whole))
}
/// As `check` for one operation: where a result is bad, its bodies run again equation by equation.
pub fn check_op(py: Python, name: &str, op: &Op, x: &[Value], out: &[Value], flags: Flags) -> PyResult<()> {
    let Err(whole) = found(py, name, out, flags) else { return Ok(()) };
    let error = if ferrax_ir::cx::at_root() && !is_of_several(x, out) { inside(py, op, x, flags).err() } else { None };
    expect(py, error.unwrap_or(whole))
}
/// Runs a program equation by equation, names the one that made a bad number and where it was traced, and gives the results.
fn again(py: Python, program: &Program, x: &[Value], flags: Flags) -> PyResult<Values> {
    let mut env: Vec<Value> = x.to_vec();
    for (e, line) in program.eqns().iter().zip(program.lines()) {
        let args: Vec<Value> = e.args.iter().map(|a| read(&env, a)).collect();
        let made = ferrax_ir::bind(&e.op, &args).py(py)?;
        if let Err(bad) = found(py, e.op.name(), &made, flags) {
            inside(py, &e.op, &args, flags)?;
            return Err(match ferrax_ir::cx::place(*line) {
                Some(at) => also(py, &bad, &format!("The operation was traced at {at}.")),
                None => bad,
            });
        }
        env.extend(made);
    }
    Ok(program.outs().iter().map(|a| read(&env, a)).collect())
}
/// The same error with one more line.
fn also(py: Python, e: &PyErr, sentence: &str) -> PyErr {
    PyFloatingPointError::new_err(format!("{}\n{sentence}", e.value(py)))
}
/// Runs the equations of an operation's body, as `again`.
fn inside(py: Python, op: &Op, args: &[Value], flags: Flags) -> PyResult<()> {
    match op {
        Op::Cond(c) => {
            let last = c.branches.len() as f64 - 1.0;
            let k = number(py, &args[0])?.clamp(0.0, last) as usize;
            again(py, &c.branches[k], &args[1..], flags)?;
        }
        Op::Loop(l) => iterations(py, l, args, flags)?,
        // its body is written for parts
        Op::ShardMap(s) => drop(again(py, &*s.alone().py(py)?, args, flags)?),
        op => {
            if let [body, ..] = op.bodies()[..]
                && body.n_ins() == args.len()
            {
                again(py, body, args, flags)?;
            }
        }
    }
    Ok(())
}
/// Runs a loop one time round after the other, as `again`; a loop over tapes is left as it is.
fn iterations(py: Python, l: &Loop, args: &[Value], flags: Flags) -> PyResult<()> {
    let (head, cond, most) = match &l.trip {
        Trip::While { cond, n_cond, .. } => (*n_cond, Some(cond), usize::MAX),
        Trip::Static(n) => (0, None, *n),
        Trip::Dyn => return Ok(()),
    };
    let (consts, rest) = args[head..].split_at(l.n_consts);
    let (carry, xs) = rest.split_at(l.n_carry);
    let mut carry: Vec<Value> = carry.to_vec();
    let name = if cond.is_some() { "while" } else { "scan" };
    for k in 0..most {
        py.check_signals()?;
        let with_place = |e: PyErr| match e.is_instance_of::<PyFloatingPointError>(py) {
            true => also(py, &e, &format!("It happened in iteration {k} of {name}.")),
            false => e,
        };
        if let Some(cond) = cond {
            let x: Vec<Value> = args[..head].iter().chain(&carry).cloned().collect();
            if number(py, &again(py, cond, &x, flags).map_err(with_place)?[0])? == 0.0 {
                break;
            }
        }
        let at = if l.reverse { most - 1 - k } else { k };
        let each = xs.iter().map(|x| element(x, at).py(py)).collect::<PyResult<Vec<Value>>>()?;
        let x: Vec<Value> = consts.iter().chain(&carry).chain(&each).cloned().collect();
        let y = again(py, &l.body, &x, flags).map_err(with_place)?;
        carry = y[..l.n_carry].to_vec();
    }
    Ok(())
}
/// `x[k]`.
fn element(x: &Value, k: usize) -> Res<Value> {
    let (mut start_indices, mut limit_indices): (Dims, Dims) =
        (x.shape().iter().map(|_| 0).collect(), Dims::new(x.shape()));
    (start_indices[0], limit_indices[0]) = (k, k + 1);
    let row = ferrax_ir::bind(&Slice { start_indices, limit_indices, strides: None }.into(), std::slice::from_ref(x))?;
    let one = ferrax_ir::bind(&Squeeze { dimensions: [0].into_iter().collect() }.into(), &row)?;
    Ok(one[0].clone())
}
/// A number of rank 0.
fn number(py: Python, v: &Value) -> PyResult<f64> {
    match v {
        Value::Array(a) => {
            let bytes = py.detach(|| array::bytes(a)).py(py)?;
            Ok(match a.aval().dtype.real() {
                Dtype::Num(d) => Scalar::from_bytes(d, &bytes).to_f64(),
                _ => 0.0,
            })
        }
        Value::Lit(l) => Ok(l.parts().0),
        Value::Tracer(_) => Ok(0.0),
    }
}
