//! Primitives as Python objects, and primitives that Python defines.
//!
//! INVARIANT: there is one meaning per name; a primitive defined in Python cannot shadow one of the language.
use crate::aval::ShapedArray;
use crate::bind::is_multiple;
use crate::error::{IntoPyResult, from_py};
use crate::param;
use crate::value::{all_required, wrap, wrap_all};
use ferrax_ir::aval::Aval;
use ferrax_ir::cx::{Arg, Axis, Cx, Dim, Fun, Tan};
use ferrax_ir::error::{Error, Res};
use ferrax_ir::op::{Avals, Axes, Op, Tans};
use ferrax_ir::ops::callback::CallbackKind;
use ferrax_ir::ops::foreign::{self, Definition, Opaque};
use ferrax_ir::param::{Param, ParamList, Show};
use ferrax_ir::program::Program;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// What an equation does, by name.
#[pyclass(frozen, weakref, module = "ferrax.core", name = "PrimitiveName")]
pub struct PyPrimitive {
    name: String,
    multiple: bool,
}
impl PyPrimitive {
    pub fn of(op: &Op) -> PyPrimitive {
        PyPrimitive { name: op.name().into(), multiple: is_multiple(op, op.name()) }
    }
}
#[pymethods]
impl PyPrimitive {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
    #[getter]
    fn multiple_results(&self) -> bool {
        self.multiple
    }
    #[getter]
    fn call_primitive(&self) -> bool {
        false
    }
    #[getter]
    fn map_primitive(&self) -> bool {
        false
    }
    #[pyo3(signature = (*operands, **params))]
    fn bind<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyTuple>,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::bind::bind(&pyo3::types::PyString::new(py, &self.name), operands, params)
    }
    /// (functions, parameters) to bind with: the functions are among the parameters here.
    fn get_bind_params<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        Ok((PyList::empty(py), params.copy()?))
    }
    fn __str__(&self) -> &str {
        &self.name
    }
    fn __repr__(&self) -> &str {
        &self.name
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        match o.cast::<PyPrimitive>() {
            Ok(p) => p.get().name == self.name,
            Err(_) => {
                !o.is_instance_of::<pyo3::types::PyString>()
                    && o.getattr("name").and_then(|n| n.extract::<String>()).is_ok_and(|n| n == self.name)
            }
        }
    }
    fn __hash__(&self, py: Python) -> PyResult<isize> {
        pyo3::types::PyString::new(py, &self.name).hash()
    }
}

/// A primitive that Python defines: the functions it was registered with.
pub struct Foreign {
    name: &'static str,
    multiple: bool,
    abstract_eval: Py<PyAny>,
    implementation: Py<PyAny>,
    rules: Py<PyAny>,
}
static TABLE: LazyLock<RwLock<HashMap<String, Arc<Foreign>>>> = LazyLock::new(Default::default);

pub fn find(name: &str) -> Option<Arc<Foreign>> {
    let table = TABLE.read().unwrap_or_else(|e| e.into_inner());
    if table.is_empty() { None } else { table.get(name).cloned() }
}

/// register_primitive(name, multiple_results, abstract_eval, impl, rules): makes `bind(name, ...)` mean a primitive of Python's.
///
/// `abstract_eval(*avals, **params)` gives the outputs' types, `impl(*arrays, **params)` the outputs; `rules(kind)` gives the rule for
/// "jvp", "transpose" or "batching" that is registered now, or None.
#[pyfunction]
pub fn register_primitive(
    name: &str,
    multiple_results: bool,
    abstract_eval: Py<PyAny>,
    r#impl: Py<PyAny>,
    rules: Py<PyAny>,
) -> PyResult<()> {
    if Op::names().contains(&name) {
        return Err(PyValueError::new_err(format!("there is a primitive called {name} already")));
    }
    // a primitive lives as long as the process: programs name it
    let name: &'static str = Box::leak(name.to_string().into_boxed_str());
    let f = Foreign { name, multiple: multiple_results, abstract_eval, implementation: r#impl, rules };
    TABLE.write().unwrap_or_else(|e| e.into_inner()).insert(name.into(), Arc::new(f));
    Ok(())
}

/// Keyword arguments as they were given.
struct Given(Py<PyDict>);
fn given<'a, 'py>(p: &'a Opaque, py: Python<'py>) -> PyResult<&'a Bound<'py, PyDict>> {
    match p.downcast_ref::<Given>() {
        Some(g) => Ok(g.0.bind(py)),
        None => Err(PyValueError::new_err("parameters of another primitive")),
    }
}
/// The parameters of an equation of a Python primitive, as the objects they are.
pub fn given_params<'py>(py: Python<'py>, op: &Op) -> Option<PyResult<Bound<'py, PyDict>>> {
    match op {
        Op::Foreign(f) => Some(given(&f.opaque, py).and_then(|d| d.copy())),
        _ => None,
    }
}
/// Whether an op is a Python primitive with several results.
pub fn foreign_multiple(op: &Op) -> Option<bool> {
    match op {
        Op::Foreign(f) => Some(find(f.definition.name()).is_some_and(|f| f.multiple)),
        _ => None,
    }
}

impl Foreign {
    /// The op of these operands and parameters.
    fn op(self: &Arc<Self>, x: &[Value], params: Option<&Bound<PyDict>>, py: Python) -> PyResult<Op> {
        let params = params.map_or_else(|| Ok(PyDict::new(py)), |d| d.copy())?;
        let opaque: Opaque = Arc::new(Given(params.unbind()));
        let (me, p) = (self.clone(), opaque.clone());
        let implementation =
            Fun::user(self.name, move |x| Python::attach(|py| me.evaluate(py, &p, x).map_err(from_py)));
        let ins = x.iter().map(Value::aval).collect();
        Ok(foreign::Foreign { definition: self.clone(), opaque, ins, implementation }.into())
    }
    pub fn bind<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        xs: Values,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let op = self.op(&xs, params, py)?;
        let out = ferrax_ir::bind(&op, &xs).py(py)?;
        if self.multiple {
            return Ok(PyList::new(py, wrap_all(py, out)?)?.into_any());
        }
        wrap(py, ferrax_ir::cx::one(out).py(py)?)
    }
    fn call<'py>(&self, f: &Py<PyAny>, p: &Opaque, args: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        f.bind(py).call(args, Some(given(p, py)?))
    }
    /// A rule's results, one or several, as a list.
    fn listed<'py>(&self, out: Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.multiple { out.try_iter()?.collect() } else { Ok(vec![out]) }
    }
    fn evaluate(&self, py: Python, p: &Opaque, x: &[Value]) -> PyResult<Values> {
        if self.implementation.bind(py).is_none() {
            return Err(PyNotImplementedError::new_err(format!("Evaluation rule for '{}' not implemented", self.name)));
        }
        let out = self.call(&self.implementation, p, PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?)?;
        all_required(PyList::new(py, self.listed(out)?)?.as_any(), self.name)
    }
    fn rule<'py>(&self, py: Python<'py>, kind: &str, missing: &str) -> PyResult<Bound<'py, PyAny>> {
        let f = self.rules.bind(py).call1((kind,))?;
        if f.is_none() {
            return Err(PyNotImplementedError::new_err(format!("{missing} for '{}' not implemented", self.name)));
        }
        Ok(f)
    }
    fn apply_jvp(&self, py: Python, p: &Opaque, x: &[Value], dx: &[Tan]) -> PyResult<(Values, Tans)> {
        let rule = self.rule(py, "jvp", "Differentiation rule")?;
        let zero = zero_class(py)?;
        let tangents = x.iter().zip(dx).map(|(v, t)| match t {
            Some(t) => wrap(py, t.clone()),
            None => zero.call1((ShapedArray(v.aval().tangent().unwrap_or_else(|| v.aval())),)),
        });
        let args = (
            PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?,
            PyTuple::new(py, tangents.collect::<PyResult<Vec<_>>>()?)?,
        );
        let (y, dy) = rule.call(args, Some(given(p, py)?))?.extract::<(Bound<PyAny>, Bound<PyAny>)>()?;
        let y = all_required(PyList::new(py, self.listed(y)?)?.as_any(), self.name)?;
        Ok((y, self.listed(dy)?.iter().map(|t| tangent(t, &zero, self.name)).collect::<PyResult<_>>()?))
    }
    fn apply_transpose(&self, py: Python, p: &Opaque, x: &[Arg], ct: &[Tan]) -> PyResult<Tans> {
        let rule = self.rule(py, "transpose", "Transpose rule (for reverse-mode differentiation)")?;
        let ad = py.import("ferrax.interpreters.ad")?;
        let (zero, undefined) = (zero_class(py)?, ad.getattr("UndefinedPrimal")?);
        let cts = ct.iter().map(|t| match t {
            Some(t) => wrap(py, t.clone()),
            None => zero.call1((py.None(),)),
        });
        let cts = cts.collect::<PyResult<Vec<_>>>()?;
        let first = if self.multiple {
            PyList::new(py, cts)?.into_any()
        } else {
            cts.into_iter().next().unwrap_or_else(|| py.None().into_bound(py))
        };
        let mut args = vec![first];
        for a in x {
            args.push(match a {
                Arg::Known(v) => wrap(py, (*v).clone())?,
                Arg::Linear(a) => undefined.call1((ShapedArray(a.clone()),))?,
            });
        }
        let out = rule.call(PyTuple::new(py, args)?, Some(given(p, py)?))?;
        let out: Vec<Bound<PyAny>> = out.try_iter()?.collect::<PyResult<_>>()?;
        if out.len() != x.len() {
            return Err(PyTypeError::new_err(format!(
                "the transpose rule of {} returned {} cotangents for {} operands",
                self.name,
                out.len(),
                x.len()
            )));
        }
        out.iter().zip(x).map(|(t, a)| if a.is_linear() { tangent(t, &zero, self.name) } else { Ok(None) }).collect()
    }
    fn apply_batch(&self, py: Python, p: &Opaque, x: &[Value], d: &[Dim]) -> PyResult<(Values, Axes)> {
        let rule = self.rule(py, "batching", "Batching rule")?;
        let args = (PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?, PyTuple::new(py, d)?);
        let (y, dims) = rule.call(args, Some(given(p, py)?))?.extract::<(Bound<PyAny>, Bound<PyAny>)>()?;
        let y = all_required(PyList::new(py, self.listed(y)?)?.as_any(), self.name)?;
        let dims = if self.multiple && dims.try_iter().is_ok() {
            dims.extract::<Vec<Option<usize>>>()?
        } else {
            vec![dims.extract()?; y.len()]
        };
        Ok((y, dims.into_iter().collect()))
    }
}
/// The class of symbolic zeros that rules are written with.
fn zero_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("ferrax.interpreters.ad")?.getattr("Zero")
}
fn tangent(t: &Bound<PyAny>, zero: &Bound<PyAny>, of: &str) -> PyResult<Tan> {
    if t.is_none() || t.is_instance(zero)? {
        return Ok(None);
    }
    crate::value::required(t, crate::config::flags(), of, 0).map(Some)
}

impl Definition for Foreign {
    fn name(&self) -> &'static str {
        self.name
    }
    fn params(&self, p: &Opaque) -> ParamList {
        Python::attach(|py| {
            let Ok(d) = given(p, py) else { return vec![] };
            let one = |(k, v): (Bound<PyAny>, Bound<PyAny>)| {
                let key: &'static str = leaked(&k.str().map(|s| s.to_string()).unwrap_or_default());
                let shown = param::from_py(key, &v)
                    .unwrap_or_else(|_| Param::Str(v.repr().map(|r| r.to_string()).unwrap_or_default().into()));
                (key, shown, Show::always)
            };
            ferrax_ir::param::order(d.iter().map(one).collect())
        })
    }
    fn same(&self, a: &Opaque, b: &Opaque) -> bool {
        Arc::ptr_eq(a, b) || Python::attach(|py| given(a, py).and_then(|a| a.eq(given(b, py)?)).unwrap_or(false))
    }
    fn hash(&self, p: &Opaque) -> u64 {
        // parameters need not be hashable: their number and names will do
        Python::attach(|py| given(p, py).map_or(0, |d| d.len() as u64))
    }
    fn infer(&self, p: &Opaque, x: &[Aval]) -> Res<Avals> {
        Python::attach(|py| {
            let run = || -> PyResult<Avals> {
                if self.abstract_eval.bind(py).is_none() {
                    return Err(PyNotImplementedError::new_err(format!(
                        "Abstract evaluation for '{}' not implemented",
                        self.name
                    )));
                }
                let types = x.iter().map(|a| Bound::new(py, ShapedArray(a.clone()))).collect::<PyResult<Vec<_>>>()?;
                let out = self.call(&self.abstract_eval, p, PyTuple::new(py, types)?)?;
                Ok(crate::bind::avals(PyList::new(py, self.listed(out)?)?.as_any())?.into())
            };
            run().map_err(from_py)
        })
    }
    fn jvp(&self, p: &Opaque, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        ferrax_ir::enter(cx.handle(), || Python::attach(|py| self.apply_jvp(py, p, x, dx).map_err(from_py)))
    }
    fn transpose(&self, p: &Opaque, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        ferrax_ir::enter(cx.handle(), || Python::attach(|py| self.apply_transpose(py, p, x, ct).map_err(from_py)))
    }
    fn batch(&self, p: &Opaque, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        ferrax_ir::enter(cx.handle(), || Python::attach(|py| self.apply_batch(py, p, x, d).map_err(from_py)))
    }
    /// An implementation that wants concrete arrays (numpy's functions) is called when the program runs.
    fn program(&self, p: &Opaque, ins: &[Aval]) -> Res<Arc<Program>> {
        Python::attach(|py| {
            let traced = ferrax_transform::make_program(&|x| self.evaluate(py, p, x).map_err(from_py), ins);
            let (program, consts) = match traced {
                Ok(t) => t,
                Err(Error::Host(e)) => match e.downcast::<PyErr>() {
                    Ok(e) if e.get_type(py).name().is_ok_and(|n| n.to_string().starts_with("Tracer")) => {
                        return self.called(py, p, ins);
                    }
                    Ok(e) => return Err(from_py(*e)),
                    Err(e) => return Err(Error::Host(e)),
                },
                Err(e) => return Err(e),
            };
            match &consts[..] {
                [] => Ok(Arc::new(program)),
                _ => Err(Error::not_implemented(format!(
                    "the implementation of {} closes over arrays; pass them as operands",
                    self.name
                ))),
            }
        })
    }
}
impl Foreign {
    /// A program of one call back into Python.
    fn called(&self, py: Python, p: &Opaque, ins: &[Aval]) -> Res<Arc<Program>> {
        let outs = Definition::infer(self, p, ins)?;
        let (f, params, multiple) =
            (self.implementation.clone_ref(py), given(p, py).map_err(from_py)?.clone().unbind(), self.multiple);
        let run = move |args: &Bound<PyTuple>| -> PyResult<Py<PyAny>> {
            let py = args.py();
            let out = f.bind(py).call(args, Some(params.bind(py)))?;
            Ok(if multiple { out.unbind() } else { PyTuple::new(py, [out])?.into_any().unbind() })
        };
        let f = pyo3::types::PyCFunction::new_closure(py, None, None, move |args, _| run(args)).map_err(from_py)?;
        let op =
            crate::callback::op(f.as_any(), CallbackKind::Pure, ins.to_vec(), outs.to_vec(), false, Some("sequential"));
        let (program, _) = ferrax_transform::make_program(&|x| ferrax_ir::bind(&op, x), ins)?;
        Ok(Arc::new(program))
    }
}
/// Names of parameters live for ever; there are few.
fn leaked(s: &str) -> &'static str {
    static NAMES: LazyLock<RwLock<HashMap<String, &'static str>>> = LazyLock::new(Default::default);
    if let Some(n) = NAMES.read().unwrap_or_else(|e| e.into_inner()).get(s) {
        return n;
    }
    NAMES
        .write()
        .unwrap_or_else(|e| e.into_inner())
        .entry(s.into())
        .or_insert_with(|| Box::leak(s.to_string().into_boxed_str()))
}
