//! Primitives as Python objects, and primitives that Python defines.
//!
//! INVARIANT: there is one object for each primitive, so `is` compares primitives; objects of
//! built-in primitives know only `Op::facts`.
use crate::array::value::{all_required, avals, wrap, wrap_all};
use crate::aval::ShapedArray;
use crate::callback;
use crate::error::{IntoPyResult, from_py};
use crate::hooks;
use crate::once::Once;
use crate::param;
use crate::plain::refers_to_nothing;
use crate::source::name_of;
use ferrax_ir::aval::Aval;
use ferrax_ir::cx::{Arg, Axis, Cx, Dim, Fun, Tan};
use ferrax_ir::error::{Error, Res};
use ferrax_ir::op::{Avals, Axes, Op, Tans};
use ferrax_ir::ops::callback::CallbackKind;
use ferrax_ir::ops::checkpoint::Policy;
use ferrax_ir::ops::foreign::{self, Definition, Opaque};
use ferrax_ir::param::{Param, ParamList, ParamMap, Show};
use ferrax_ir::program::Program;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyMapping, PyTuple, PyType};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, RwLock, Weak};

/// What an equation does. One object for each primitive of the language, and those that Python defines.
///
///     mul_add = Primitive("mul_add")
///     mul_add.def_impl(lambda x, y, z: np.asarray(x) * y + z)
///     mul_add.def_abstract_eval(lambda x, y, z: ShapedArray(x.shape, x.dtype))
///
/// Args:
///   name: what programs call it.
///
/// Attributes:
///   name: may be set, too.
///   multiple_results: set it to True before the first use if the operation returns a sequence of arrays; a derived class may say it of all of its own.
#[pyclass(frozen, subclass, dict, weakref, module = "ferrax.extend.core", name = "Primitive")]
pub struct PyPrimitive {
    name: RwLock<&'static str>,
    /// Of the language: its rules are Rust's, and stay.
    pub builtin: bool,
    multiple: AtomicBool,
    given: Mutex<Given>,
    /// The definition that programs hold, while one does.
    definition: Mutex<Weak<PythonPrimitive>>,
}
/// The functions that Python gave.
#[derive(Default)]
struct Given {
    implementation: Option<Py<PyAny>>,
    abstract_eval: Option<Py<PyAny>>,
}

/// The object for a primitive of the language; nothing for another name.
pub fn named<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyPrimitive>>> {
    static OBJECTS: Once<Py<PyDict>> = Once::new();
    let Some(facts) = Op::facts(name) else { return Ok(None) };
    let objects = OBJECTS.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(p) = objects.get_item(facts.name)? {
        return Ok(Some(p.cast_into()?));
    }
    let p = Bound::new(py, PyPrimitive::made(facts.name, true, facts.multiple))?;
    objects.set_item(facts.name, &p)?;
    Ok(Some(p))
}
/// The object for the primitive of an equation.
pub fn of<'py>(py: Python<'py>, op: &Op) -> PyResult<Bound<'py, PyPrimitive>> {
    if let Op::Foreign(f) = op {
        return Ok(held(&f.opaque)?.primitive.bind(py).clone());
    }
    named(py, op.name())?.ok_or_else(|| PyValueError::new_err(format!("no primitive is called {}", op.name())))
}

/// primitive(name): the object for a primitive of the language; None for another name.
#[pyfunction]
pub fn primitive<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyPrimitive>>> {
    named(py, name)
}
/// A primitive's name, whether its results are a sequence, and its parameters: name, and a
/// description of its values.
type Known = (&'static str, bool, Vec<(&'static str, String)>);

/// primitives(): (name, whether its results are a sequence, parameters as (name, description)) of
/// every primitive of the language.
#[pyfunction]
pub fn primitives() -> Vec<Known> {
    let facts = Op::names().into_iter().filter_map(Op::facts);
    facts.map(|f| (f.name, f.multiple, f.fields().into_iter().map(|p| (p.name, p.takes)).collect())).collect()
}

impl PyPrimitive {
    fn made(name: &'static str, builtin: bool, multiple: bool) -> PyPrimitive {
        PyPrimitive {
            name: RwLock::new(name),
            builtin,
            multiple: AtomicBool::new(multiple),
            given: Mutex::default(),
            definition: Mutex::default(),
        }
    }
    /// Its name in programs.
    pub fn name(&self) -> &'static str {
        *self.name.read().unwrap_or_else(|e| e.into_inner())
    }
    /// Whether its results are a sequence, by the object's attribute, which a derived class may
    /// define.
    pub fn several(me: &Bound<PyPrimitive>) -> PyResult<bool> {
        if me.get_type().is(me.py().get_type::<PyPrimitive>()) {
            return Ok(me.get().multiple());
        }
        me.getattr("multiple_results")?.is_truthy()
    }
    pub fn multiple(&self) -> bool {
        self.multiple.load(Ordering::Relaxed)
    }
    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn implementation(&self, py: Python) -> PyResult<Py<PyAny>> {
        self.given().implementation.as_ref().map(|f| f.clone_ref(py)).ok_or_else(|| {
            PyNotImplementedError::new_err(format!("Evaluation rule for '{}' not implemented", self.name()))
        })
    }
    pub fn type_rule(&self, py: Python) -> PyResult<Py<PyAny>> {
        self.given().abstract_eval.as_ref().map(|f| f.clone_ref(py)).ok_or_else(|| {
            PyNotImplementedError::new_err(format!("Abstract evaluation for '{}' not implemented", self.name()))
        })
    }
    fn kept(&self, what: &str) -> PyResult<()> {
        if self.builtin {
            return Err(PyValueError::new_err(format!(
                "{} is a primitive of the language: its {what} cannot be replaced. Define a Primitive of your own.",
                self.name()
            )));
        }
        Ok(())
    }
    /// Replaces the definition: earlier programs keep the previous one.
    fn changed(&self) {
        *self.definition.lock().unwrap_or_else(|e| e.into_inner()) = Weak::new();
    }
    fn definition(me: &Bound<PyPrimitive>) -> PyResult<Arc<PythonPrimitive>> {
        let multiple = PyPrimitive::several(me)?;
        let mut place = me.get().definition.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(d) = place.upgrade() {
            return Ok(d);
        }
        let made = Arc::new(PythonPrimitive { name: me.get().name(), multiple, primitive: me.clone().unbind() });
        *place = Arc::downgrade(&made);
        Ok(made)
    }
    /// The op of operands of these types, and of these parameters.
    pub fn op(me: &Bound<PyPrimitive>, ins: Vec<Aval>, params: Option<&Bound<PyDict>>) -> PyResult<Op> {
        if me.get().builtin {
            return Op::from_name(me.get().name(), map(params)?).py(me.py());
        }
        PyPrimitive::definition(me)?.op(ins, params, me.py())
    }
}
#[pymethods]
impl PyPrimitive {
    /// A derived class whose `__init__` names the object is made without a name.
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    #[classmethod]
    fn new(cls: &Bound<PyType>, args: &Bound<PyTuple>, kwargs: Option<&Bound<PyDict>>) -> PyResult<PyPrimitive> {
        let given = match args.get_item(0) {
            Ok(name) => Some(name),
            Err(_) => kwargs.map(|k| k.get_item("name")).transpose()?.flatten(),
        };
        let exact = cls.is(cls.py().get_type::<PyPrimitive>());
        match given.map(|name| name.extract::<String>()) {
            Some(Ok(name)) => Ok(PyPrimitive::made(leaked(&name), false, false)),
            None if exact => {
                Err(PyTypeError::new_err("Primitive.__new__() missing 1 required positional argument: 'name'"))
            }
            Some(Err(e)) if exact => Err(e),
            _ => Ok(PyPrimitive::made(leaked(&cls.name()?.to_string()), false, false)),
        }
    }
    /// For derived classes, which name it by `super().__init__(name)`.
    fn __init__(&self, name: &str) -> PyResult<()> {
        self.set_name(name)
    }
    #[classattr]
    #[pyo3(name = "call_primitive")]
    const CALL: bool = false;
    #[classattr]
    #[pyo3(name = "map_primitive")]
    const MAP: bool = false;
    #[getter(name)]
    fn get_name(&self) -> &str {
        self.name()
    }
    #[setter]
    fn set_name(&self, name: &str) -> PyResult<()> {
        self.kept("name")?;
        if self.name() != name {
            *self.name.write().unwrap_or_else(|e| e.into_inner()) = leaked(name);
            self.changed();
        }
        Ok(())
    }
    #[getter]
    fn is_builtin(&self) -> bool {
        self.builtin
    }
    #[getter]
    fn multiple_results(&self) -> bool {
        self.multiple()
    }
    #[setter]
    fn set_multiple_results(&self, on: bool) -> PyResult<()> {
        self.kept("number of results")?;
        self.multiple.store(on, Ordering::Relaxed);
        self.changed();
        Ok(())
    }
    /// Sets how to compute the operation: `impl(*arrays, **params)`. Returns it, so that it may decorate.
    ///
    /// For a primitive of the language it is called where one is evaluated by itself, not where it is compiled with others; its own `impl`, as it was read
    /// before, takes it away again.
    fn def_impl(&self, r#impl: Py<PyAny>, py: Python) -> PyResult<Py<PyAny>> {
        self.given().implementation = Some(r#impl.clone_ref(py));
        if self.builtin {
            let f = r#impl.bind(py);
            let own = f.get_type().name()? == "_Implementation" && f.getattr("__name__")?.eq(self.name())?;
            ferrax::instead::replace(self.name(), (!own).then(|| instead(r#impl.clone_ref(py))));
        }
        Ok(r#impl)
    }
    /// Sets how shapes and dtypes follow: `abstract_eval(*avals, **params) -> aval` (or a sequence of them). Returns it.
    ///
    /// Raises:
    ///   ValueError: for a primitive of the language.
    fn def_abstract_eval(&self, abstract_eval: Py<PyAny>, py: Python) -> PyResult<Py<PyAny>> {
        self.kept("typing rule")?;
        self.given().abstract_eval = Some(abstract_eval.clone_ref(py));
        Ok(abstract_eval)
    }
    #[setter]
    #[pyo3(name = "impl")]
    fn set_implementation(&self, py: Python, f: Py<PyAny>) -> PyResult<()> {
        self.def_impl(f, py).map(|_| ())
    }
    /// (functions, parameters) to bind with: the functions are among the parameters here.
    fn get_bind_params<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let copy = PyDict::new(py);
        copy.update(params.cast::<PyMapping>()?)?;
        Ok((PyList::empty(py), copy))
    }
    /// Another primitive of the same meaning, whose name and rules may be set.
    fn __copy__<'py>(me: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let (py, p) = (me.py(), me.get());
        let copy = PyPrimitive::made(p.name(), false, PyPrimitive::several(me)?);
        *copy.given() = if p.builtin {
            Given {
                implementation: Some(me.getattr("bind")?.unbind()),
                abstract_eval: Some(me.getattr("abstract_eval")?.unbind()),
            }
        } else {
            let g = p.given();
            let shared = |f: &Option<Py<PyAny>>| f.as_ref().map(|f| f.clone_ref(py));
            Given { implementation: shared(&g.implementation), abstract_eval: shared(&g.abstract_eval) }
        };
        Bound::new(py, copy)
    }
    fn __deepcopy__<'py>(me: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        Self::__copy__(me)
    }
    fn __repr__(&self) -> &str {
        self.name()
    }
    /// A primitive of the language is one object, in another process too.
    fn __reduce__<'py>(me: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        if !me.get().builtin {
            return Err(PyTypeError::new_err("a primitive that Python defines cannot be pickled"));
        }
        Ok((crate::hooks::own(me.py(), "primitive")?, (me.get().name(),)))
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        if let Ok(g) = self.given.try_lock() {
            for f in [&g.implementation, &g.abstract_eval].into_iter().flatten() {
                visit.call(f)?;
            }
        }
        Ok(())
    }
    fn __clear__(&self) {
        *self.given() = Given::default();
    }
}

/// A Python function in the place of an implementation.
fn instead(f: Py<PyAny>) -> ferrax::instead::Instead {
    Arc::new(move |op, x| {
        let called = |py: Python| {
            let out = f.bind(py).call(PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?, Some(&params(py, op)?))?;
            let out = if op.multiple() { out.try_iter()?.collect::<PyResult<_>>()? } else { vec![out] };
            all_required(PyList::new(py, out)?.as_any(), op.name())
        };
        Python::attach(|py| called(py).map_err(from_py))
    })
}

/// A primitive that Python defines, as programs hold it.
pub struct PythonPrimitive {
    name: &'static str,
    multiple: bool,
    primitive: Py<PyPrimitive>,
}
/// The parameters of an op: the primitive, and keyword arguments as given.
struct BoundPrimitive {
    primitive: Py<PyPrimitive>,
    params: Py<PyDict>,
}
fn held(p: &Opaque) -> PyResult<&BoundPrimitive> {
    p.downcast_ref::<BoundPrimitive>().ok_or_else(|| PyValueError::new_err("parameters of another primitive"))
}
/// The objects that the parameters of an equation of a Python primitive are.
pub fn bound_objects<'py>(py: Python<'py>, p: &Opaque) -> Vec<Bound<'py, PyAny>> {
    held(p).map_or(vec![], |b| vec![b.primitive.bind(py).clone().into_any(), b.params.bind(py).clone().into_any()])
}
fn given<'a, 'py>(p: &'a Opaque, py: Python<'py>) -> PyResult<&'a Bound<'py, PyDict>> {
    Ok(held(p)?.params.bind(py))
}
/// The parameters of an equation of a Python primitive, as the objects they are.
pub fn given_params<'py>(py: Python<'py>, op: &Op) -> Option<PyResult<Bound<'py, PyDict>>> {
    match op {
        Op::Foreign(f) => Some(given(&f.opaque, py).and_then(|d| d.copy())),
        _ => None,
    }
}
/// All parameters of an op, as a dict.
pub fn params<'py>(py: Python<'py>, op: &Op) -> PyResult<Bound<'py, PyDict>> {
    if let Some(d) = given_params(py, op) {
        return d;
    }
    let d = PyDict::new(py);
    for (k, v, _) in op.params() {
        d.set_item(k, param::to_py(py, &v)?)?;
    }
    Ok(d)
}
/// `policy(primitive, *avals, **params)` as the policy of a checkpoint. Any true value keeps the
/// results.
pub fn policy(f: &Bound<PyAny>) -> Policy {
    let host: Arc<Py<PyAny>> = Arc::new(f.clone().unbind());
    let predicate = host.clone();
    let keeps = move |op: &Op, ins: &[Aval]| {
        Python::attach(|py| {
            let prim = of(py, op)?.into_any();
            let mut args = vec![prim];
            for a in ins {
                args.push(Bound::new(py, ShapedArray(a.clone()))?.into_any());
            }
            let params = params(py, op)?;
            predicate.bind(py).call(PyTuple::new(py, args)?, Some(&params))?.is_truthy()
        })
        .map_err(from_py)
    };
    let name = f.getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| name_of(f));
    Policy::new(&name, f.as_ptr() as usize, host, Arc::new(keeps))
}
/// Keyword arguments of `bind`: a callable `policy` becomes the policy of a checkpoint.
pub fn map(params: Option<&Bound<PyDict>>) -> PyResult<ParamMap> {
    let mut map = param::map(params)?;
    if let (Some(Param::Fun(_)), Some(p)) = (map.get("policy"), params)
        && let Some(f) = p.get_item("policy")?
    {
        map.remove("policy");
        map.insert("policy".into(), Param::Policy(policy(&f)));
    }
    Ok(map)
}
/// Binds a primitive that is defined in Python. Where nothing is traced its implementation gets the operands, and gives the results, as
/// they are.
pub fn apply<'py>(
    me: &Bound<'py, PyPrimitive>,
    operands: &Bound<'py, PyTuple>,
    params: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, p) = (me.py(), me.get());
    let traced = |x: Bound<PyAny>| crate::array::value::held(&x).is_some_and(Value::is_tracer);
    if ferrax_ir::cx::at_root() && !operands.iter().any(traced) {
        return p.implementation(py)?.bind(py).call(operands, params);
    }
    let xs = all_required(operands, p.name())?;
    let op = PyPrimitive::op(me, xs.iter().map(Value::aval).collect(), params)?;
    let out = ferrax_ir::bind(&op, &xs).py(py)?;
    if PyPrimitive::several(me)? {
        return Ok(PyList::new(py, wrap_all(py, out)?)?.into_any());
    }
    wrap(py, ferrax_ir::cx::one(out).py(py)?)
}

impl PythonPrimitive {
    /// The op of operands of these types, and of these parameters.
    fn op(self: &Arc<Self>, ins: Vec<Aval>, params: Option<&Bound<PyDict>>, py: Python) -> PyResult<Op> {
        let params = params.map_or_else(|| Ok(PyDict::new(py)), |d| d.copy())?.unbind();
        let opaque: Opaque = Arc::new(BoundPrimitive { primitive: self.primitive.clone_ref(py), params });
        let (me, p) = (self.clone(), opaque.clone());
        let implementation =
            Fun::user(self.name, move |x| Python::attach(|py| me.evaluate(py, &p, x).map_err(from_py)));
        Ok(foreign::Foreign { definition: self.clone(), opaque, ins, implementation }.into())
    }
    fn call<'py>(&self, f: &Py<PyAny>, p: &Opaque, args: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        f.bind(py).call(args, Some(given(p, py)?))
    }
    /// A rule's results, one or several, as a list.
    fn listed<'py>(&self, out: Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.multiple { out.try_iter()?.collect() } else { Ok(vec![out]) }
    }
    /// The results of a Python function on values.
    fn run(&self, f: &Py<PyAny>, py: Python, p: &Opaque, x: &[Value]) -> PyResult<Values> {
        let out = self.call(f, p, PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?)?;
        all_required(PyList::new(py, self.listed(out)?)?.as_any(), self.name)
    }
    fn evaluate(&self, py: Python, p: &Opaque, x: &[Value]) -> PyResult<Values> {
        self.run(&self.primitive.get().implementation(py)?, py, p, x)
    }
    /// The function that was registered as the lowering, if one was.
    fn lowering(&self, py: Python) -> PyResult<Option<Py<PyAny>>> {
        let Some(lowerings) = crate::hooks::lowerings(py) else { return Ok(None) };
        Ok(lowerings.get_item(self.primitive.bind(py))?.map(Bound::unbind))
    }
    /// The implementation that programs run.
    fn lowered(&self, py: Python) -> PyResult<Py<PyAny>> {
        self.primitive.get().implementation(py).map_err(|_| {
            PyNotImplementedError::new_err(format!(
                "Lowering rule for primitive '{}' not found for platform cpu",
                self.name
            ))
        })
    }
    fn rule<'py>(&self, table: &Bound<'py, PyDict>, missing: &str) -> PyResult<Bound<'py, PyAny>> {
        let rule = table.get_item(self.primitive.bind(table.py()))?;
        rule.ok_or_else(|| PyNotImplementedError::new_err(format!("{missing} for '{}' not implemented", self.name)))
    }
    fn apply_jvp(&self, py: Python, p: &Opaque, x: &[Value], dx: &[Tan]) -> PyResult<(Values, Tans)> {
        let rule = self.rule(hooks::jvp_rules(py)?, "Differentiation rule")?;
        let zero = hooks::symbolic_zero(py)?;
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
        Ok((y, self.listed(dy)?.iter().map(|t| tangent(t, zero, self.name)).collect::<PyResult<_>>()?))
    }
    fn apply_transpose(&self, py: Python, p: &Opaque, x: &[Arg], ct: &[Tan]) -> PyResult<Tans> {
        let rule = self.rule(hooks::transpose_rules(py)?, "Transpose rule (for reverse-mode differentiation)")?;
        let (zero, undefined) = (hooks::symbolic_zero(py)?, hooks::undefined_primal(py)?);
        let outs = if ct.iter().all(Option::is_some) {
            vec![]
        } else {
            let ins: Vec<Aval> = x.iter().map(Arg::aval).collect();
            Definition::infer(self, p, &ins).py(py)?.into_iter().collect()
        };
        let cts = ct.iter().enumerate().map(|(i, t)| match (t, outs.get(i)) {
            (Some(t), _) => wrap(py, t.clone()),
            (None, Some(a)) => zero.call1((ShapedArray(a.tangent().unwrap_or_else(|| a.clone())),)),
            (None, None) => zero.call1((py.None(),)),
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
        out.iter().zip(x).map(|(t, a)| if a.is_linear() { tangent(t, zero, self.name) } else { Ok(None) }).collect()
    }
    fn apply_batch(&self, py: Python, p: &Opaque, ax: Axis, x: &[Value], d: &[Dim]) -> PyResult<(Values, Axes)> {
        let with_axis = hooks::axis_batching_rules(py)?.get_item(self.primitive.bind(py))?;
        let (x, d) = (PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?, PyTuple::new(py, d)?);
        let out = match with_axis {
            None => self.rule(hooks::batching_rules(py)?, "Batching rule")?.call((x, d), Some(given(p, py)?))?,
            Some(rule) => {
                let axis = hooks::axis_data(py)?.call1((ax.name.map(|n| n.to_string()), ax.n))?;
                rule.call((axis, x, d), Some(given(p, py)?))?
            }
        };
        let (y, dims) = out.extract::<(Bound<PyAny>, Bound<PyAny>)>()?;
        let y = all_required(PyList::new(py, self.listed(y)?)?.as_any(), self.name)?;
        let dims = if self.multiple && dims.try_iter().is_ok() {
            dims.extract::<Vec<Option<usize>>>()?
        } else {
            vec![dims.extract()?; y.len()]
        };
        Ok((y, dims.into_iter().collect()))
    }
}
fn tangent(t: &Bound<PyAny>, zero: &Bound<PyAny>, of: &str) -> PyResult<Tan> {
    if t.is_none() || t.is_instance(zero)? {
        return Ok(None);
    }
    crate::array::value::required(t, crate::config::flags(), of, 0).map(Some)
}

impl Definition for PythonPrimitive {
    fn name(&self) -> &'static str {
        self.name
    }
    fn multiple(&self) -> bool {
        self.multiple
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
    fn plain(&self, p: &Opaque) -> bool {
        Python::attach(|py| given(p, py).is_ok_and(|d| d.iter().all(|(_, v)| refers_to_nothing(&v))))
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
                let rule = self.primitive.get().type_rule(py)?;
                let types = x.iter().map(|a| Bound::new(py, ShapedArray(a.clone()))).collect::<PyResult<Vec<_>>>()?;
                let out = self.call(&rule, p, PyTuple::new(py, types)?)?;
                let several = out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>();
                if several != self.multiple {
                    return Err(PyValueError::new_err(format!(
                        "{0}.abstract_eval() method should return a tuple or a list iff {0}.multiple_results.",
                        self.name
                    )));
                }
                Ok(avals(PyList::new(py, self.listed(out)?)?.as_any())?.into())
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
    fn batch(&self, p: &Opaque, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        ferrax_ir::enter(cx.handle(), || Python::attach(|py| self.apply_batch(py, p, ax, x, d).map_err(from_py)))
    }
    /// The lowering that was registered, else the implementation; one that wants concrete arrays (numpy's functions) is called when the
    /// program runs.
    fn program(&self, p: &Opaque, ins: &[Aval]) -> Res<Arc<Program>> {
        Python::attach(|py| {
            let lowering = self.lowering(py).map_err(from_py)?;
            let run = |x: &[Value]| match &lowering {
                Some(f) => self.run(f, py, p, x),
                None => self.run(&self.lowered(py)?, py, p, x),
            };
            let traced = ferrax_transform::make_program(&|x| run(x).map_err(from_py), ins);
            let (program, consts) = match traced {
                Ok(t) => t,
                Err(Error::Host(e)) => match e.downcast::<PyErr>() {
                    Ok(e)
                        if lowering.is_none()
                            && e.get_type(py).name().is_ok_and(|n| {
                                let n = n.to_string();
                                n.starts_with("Tracer") || n == "ConcretizationTypeError"
                            }) =>
                    {
                        return self.called(py, p, ins, self.lowered(py).map_err(from_py)?);
                    }
                    Ok(e) => return Err(from_py(*e)),
                    Err(e) => return Err(Error::Host(e)),
                },
                Err(e) => return Err(e),
            };
            // A program has no inputs for captures of the implementation: it is called directly
            // then.
            match &consts[..] {
                [] => Ok(Arc::new(program)),
                consts if consts.iter().any(Value::is_tracer) => Err(Error::not_implemented(format!(
                    "the implementation of {} closes over traced arrays; pass them as operands",
                    self.name
                ))),
                _ => match lowering {
                    Some(f) => self.called(py, p, ins, f),
                    None => self.called(py, p, ins, self.lowered(py).map_err(from_py)?),
                },
            }
        })
    }
}
impl PythonPrimitive {
    /// A program of one call back into Python.
    fn called(&self, py: Python, p: &Opaque, ins: &[Aval], f: Py<PyAny>) -> Res<Arc<Program>> {
        let outs = Definition::infer(self, p, ins)?;
        let (params, multiple) = (given(p, py).map_err(from_py)?.clone().unbind(), self.multiple);
        let run = move |args: &Bound<PyTuple>| -> PyResult<Py<PyAny>> {
            let py = args.py();
            let out = f.bind(py).call(args, Some(params.bind(py)))?;
            Ok(if multiple { out.unbind() } else { PyTuple::new(py, [out])?.into_any().unbind() })
        };
        let f = PyCFunction::new_closure(py, None, None, move |args, _| run(args)).map_err(from_py)?;
        let op = callback::op(f.as_any(), CallbackKind::Pure, ins.to_vec(), outs.to_vec(), false, Some("sequential"));
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
