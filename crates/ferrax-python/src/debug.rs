//! `jax_debug_nans` and `jax_debug_infs`: the operation that made the first bad number is named.
//!
//! INVARIANT: nothing is read from a device unless one of the flags is on.
use crate::config::{self, Flags};
use crate::error::IntoPyResult;
use ferrax::array;
use ferrax_ir::cx::read;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::op::Op;
use ferrax_ir::program::Program;
use ferrax_ir::value::Value;
use ferrax_kernel::Scalar;
use pyo3::exceptions::PyFloatingPointError;
use pyo3::prelude::*;

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
    let bytes = py.detach(|| array::bytes(a)).py(py)?;
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
/// Raises FloatingPointError if a result of `name` has a bad number.
pub fn check(py: Python, name: &str, out: &[Value], flags: Flags) -> PyResult<()> {
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
    let Err(whole) = check(py, &format!("jit({name})"), out, flags) else { return Ok(()) };
    again(py, program, x, flags)?;
    Err(whole)
}
/// As `check` for what ran on several devices: where a result is bad, runs it again on one, equation by equation.
pub fn check_spread(py: Python, name: &str, op: &Op, x: &[Value], out: &[Value], flags: Flags) -> PyResult<()> {
    let Err(whole) = check(py, &format!("pmap({name})"), out, flags) else { return Ok(()) };
    let staged = match op.body() {
        Some(b) => b.stage(&*ferrax_ir::current(), x).py(py)?,
        None => None,
    };
    if let Some((call, x)) = &staged
        && let Some(program) = call.inlined()
    {
        again(py, program, x, flags)?;
    }
    Err(whole)
}
/// Runs a program equation by equation, and names the one that made a bad number and where it was traced.
fn again(py: Python, program: &Program, x: &[Value], flags: Flags) -> PyResult<()> {
    let mut env: Vec<Value> = x.to_vec();
    for (e, line) in program.eqns().iter().zip(program.lines()) {
        let args: Vec<Value> = e.args.iter().map(|a| read(&env, a)).collect();
        let made = ferrax_ir::bind(&e.op, &args).py(py)?;
        if let Err(bad) = check(py, e.op.name(), &made, flags) {
            if let Some(body) = e.op.inlined() {
                again(py, body, &args, flags)?;
            }
            return Err(match ferrax_ir::cx::place(*line) {
                Some(at) => {
                    PyFloatingPointError::new_err(format!("{}\nThe operation was traced at {at}.", bad.value(py)))
                }
                None => bad,
            });
        }
        env.extend(made);
    }
    Ok(())
}
