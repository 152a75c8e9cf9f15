//! Checkpoints, and functions with custom derivative rules.
//!
//! INVARIANT: a rule is called with the interpreter attached, when its derivative is needed; `None`
//! among its tangents and cotangents is a symbolic zero.
use crate::array::value::{all_optional, all_required, wrap_all, wrap_optional};
use crate::error::{IntoPyResult, from_py, guarded};
use crate::function::{call, host, host_rule};
use crate::primitive;
use crate::program::PyProgram;
use crate::source::name_of;
use ferrax_ir::aval::Lit;
use ferrax_ir::cx::Tan;
use ferrax_ir::ops::checkpoint::Remat;
use ferrax_ir::ops::custom::{CustomJvp, CustomVjp, NumOuts};
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

/// checkpoint(program, operands, prevent_cse, policy) -> outputs; the program's captured values are its leading operands.
#[pyfunction]
#[pyo3(signature = (program, operands, prevent_cse=true, policy=None))]
pub fn checkpoint<'py>(
    program: &Bound<'py, PyProgram>,
    operands: &Bound<'py, PyAny>,
    prevent_cse: bool,
    policy: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = program.py();
    let policy = policy.filter(|p| !p.is_none()).map(primitive::policy);
    let op = Remat { jaxpr: program.get().open(), prevent_cse, differentiated: false, policy };
    let consts = program.get().consts.iter().cloned();
    let args: Vec<Value> = consts.chain(all_required(operands, "checkpoint")?).collect();
    let out = guarded(|| ferrax_ir::bind(&op.into(), &args).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}

/// Tangents of the inexact among `x`, spread over all of them.
fn spread<'py>(py: Python<'py>, inexact: &[bool], t: &[Tan]) -> PyResult<Bound<'py, PyList>> {
    let mut t = t.iter();
    let one = |on: &bool| wrap_optional(py, if *on { t.next().cloned().flatten() } else { None });
    PyList::new(py, inexact.iter().map(one).collect::<PyResult<Vec<_>>>()?)
}
/// Two sequences, as a rule returns them.
fn pair<'py>(out: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    out.extract::<(Bound<PyAny>, Bound<PyAny>)>()
}

/// custom_jvp_call(name, fun, rule, operands, symbolic_zeros=False); rule(primals, tangents) -> (outputs, output tangents)
#[pyfunction]
#[pyo3(signature = (name, fun, rule, operands, symbolic_zeros=false))]
pub fn custom_jvp_call<'py>(
    name: &str,
    fun: &Bound<'py, PyAny>,
    rule: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    symbolic_zeros: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, name)?;
    let n = x.len();
    let jvp = host_rule(&name_of(rule), rule, move |rule, all| {
        let py = rule.py();
        let (x, t) = all.split_at(n);
        let inexact: Vec<bool> = x.iter().map(|x| x.as_ref().is_some_and(Value::has_tangent)).collect();
        let out =
            rule.call1((PyList::new(py, wrap_all(py, x.iter().flatten().cloned())?)?, spread(py, &inexact, t)?))?;
        let (y, dy) = pair(&out)?;
        let (y, dy) = (all_required(&y, "custom_jvp")?, all_optional(&dy, "custom_jvp")?);
        let dy: Vec<Tan> = y.iter().zip(dy).filter(|(y, _)| y.has_tangent()).map(|(_, t)| t).collect();
        Ok(y.into_iter().map(Some).chain(dy).collect())
    });
    let op = CustomJvp {
        name: name.into(),
        call_jaxpr: host(name, fun, |f, x| call(f, x, "custom_jvp")),
        jvp,
        num_consts: 0,
        symbolic_zeros,
    };
    let out = guarded(|| ferrax_ir::bind(&op.into(), &x).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}

/// custom_vjp_call(name, fun, fwd, bwd, operands, symbolic_zeros=False); fwd(*x) -> (outputs, residuals); bwd(residuals, cts) -> cts of x
#[pyfunction]
#[pyo3(signature = (name, fun, fwd, bwd, operands, symbolic_zeros=false))]
pub fn custom_vjp_call<'py>(
    name: &str,
    fun: &Bound<'py, PyAny>,
    fwd: &Bound<'py, PyAny>,
    bwd: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    symbolic_zeros: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, name)?;
    // How many outputs there are is known when `fwd` has run; which of them and of the operands carry tangents, too.
    let outs = NumOuts::default();
    let in_avals: Vec<ferrax_ir::Aval> = x.iter().map(Value::aval).collect();
    let kinds: Arc<std::sync::Mutex<Vec<bool>>> = Arc::default();
    let (n_outputs_cell, recorded_kinds) = (outs.clone(), kinds.clone());
    let n = x.len();
    let fwd_fn = host(&name_of(fwd), fwd, move |fwd, x| {
        let run = || -> PyResult<Values> {
            let py = fwd.py();
            let (x, perturbed) = x.split_at(n);
            let kwargs = PyDict::new(py);
            if symbolic_zeros {
                let on = |v: &Value| matches!(v, Value::Lit(l) if *l == Lit::from_i64(ferrax_ir::Dtype::BOOL, 1));
                kwargs.set_item("perturbed", perturbed.iter().map(on).collect::<Vec<_>>())?;
            }
            let out = fwd.call(PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?, Some(&kwargs))?;
            let (y, res) = pair(&out)?;
            let mut y = all_required(&y, "custom_vjp")?;
            n_outputs_cell.set(y.len());
            *recorded_kinds.lock().unwrap_or_else(|e| e.into_inner()) = y.iter().map(Value::has_tangent).collect();
            y.extend(all_required(&res, "custom_vjp")?);
            Ok(y)
        };
        run().map_err(from_py)
    });
    let bwd_fn = host_rule(&name_of(bwd), bwd, move |bwd, all| {
        let py = bwd.py();
        let kinds = kinds.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let n_ct = kinds.iter().filter(|k| **k).count();
        let (res, ct) = all.split_at(all.len() - n_ct);
        let res = PyList::new(py, wrap_all(py, res.iter().flatten().cloned())?)?;
        let out = bwd.call1((res, spread(py, &kinds, ct)?))?;
        let cts = all_optional(&out, "custom_vjp")?;
        if cts.len() != in_avals.len() {
            return Err(PyTypeError::new_err(format!(
                "Custom VJP bwd rule must return {} cotangents, one for each argument, but it returned {}",
                in_avals.len(),
                cts.len()
            )));
        }
        Ok(cts.into_iter().zip(&in_avals).filter(|(_, a)| a.has_tangent()).map(|(t, _)| t).collect())
    });
    let op = CustomVjp {
        name: name.into(),
        call_jaxpr: host(name, fun, |f, x| call(f, x, "custom_vjp")),
        fwd: fwd_fn,
        bwd: bwd_fn,
        num_consts: 0,
        num_outs: outs,
        symbolic_zeros,
    };
    let out = guarded(|| ferrax_ir::bind(&op.into(), &x).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}
