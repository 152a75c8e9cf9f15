//! Programs as Python objects: the views that printers, interpreters and libraries walk.
//!
//! ```text
//! ClosedJaxpr (Program) ── jaxpr ── eqns ── primitive, params, invars, outvars
//!                      └─ consts
//! ```
//!
//! INVARIANT: views are made on demand and hold the program; a variable is its number in its program, and one object while someone holds it.
use crate::array::value::{self, all_required, wrap_all};
use crate::aval::ShapedArray;
use crate::error::{IntoPyResult, guarded};
use crate::primitive::{self, PyPrimitive};
use crate::program::PyProgram;
use ferrax_ir::aval::{Aval, Lit};
use ferrax_ir::program::{Atom, Eqn, In, Program};
use ferrax_ir::value::Value;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyMappingProxy, PySet, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

fn types<'py>(py: Python<'py>, avals: &[Aval]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, avals.iter().map(|a| Bound::new(py, ShapedArray(a.clone()))).collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl PyProgram {
    #[new]
    fn new(jaxpr: &Bound<Jaxpr>, consts: &Bound<PyAny>) -> PyResult<PyProgram> {
        let consts = all_required(consts, "ClosedJaxpr")?.into_vec();
        let p = &jaxpr.get().0;
        if consts.len() != p.n_consts() {
            return Err(PyValueError::new_err(format!(
                "a program of {} captured values was given {}",
                p.n_consts(),
                consts.len()
            )));
        }
        Ok(PyProgram { program: p.clone(), consts })
    }
    #[getter]
    fn jaxpr(&self) -> Jaxpr {
        Jaxpr(self.program.clone())
    }
    #[getter]
    fn consts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, wrap_all(py, self.consts.iter().cloned())?)
    }
    #[getter]
    fn literals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.consts(py)
    }
    #[getter]
    fn eqns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.jaxpr().eqns(py)
    }
    #[getter]
    fn invars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.jaxpr().invars(py)
    }
    #[getter]
    fn outvars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.jaxpr().outvars(py)
    }
    #[getter]
    fn constvars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.jaxpr().constvars(py)
    }
    #[getter]
    fn in_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.jaxpr().in_avals(py)
    }
    #[getter]
    fn out_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        types(py, &self.program.out_avals())
    }
    #[getter]
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        effects(py, self.program.effects())
    }
    #[pyo3(signature = (*, jaxpr=None, consts=None))]
    fn replace(&self, jaxpr: Option<&Bound<Jaxpr>>, consts: Option<&Bound<PyAny>>) -> PyResult<PyProgram> {
        let program = jaxpr.map_or(self.program.clone(), |j| j.get().0.clone());
        let consts = match consts {
            Some(c) => all_required(c, "ClosedJaxpr")?.into_vec(),
            None => self.consts.clone(),
        };
        Ok(PyProgram { program, consts })
    }
    /// The program's text, with optional notes beside each equation: the user's line, the names of
    /// the scopes around it.
    #[pyo3(signature = (*, source_info=false, name_stack=false, print_shapes=true, custom_pp_eqn_rules=true, print_effects=false, use_color=false))]
    #[allow(clippy::fn_params_excessive_bools)] // as the Python signature
    fn pretty_print(
        &self,
        source_info: bool,
        name_stack: bool,
        print_shapes: bool,
        custom_pp_eqn_rules: bool,
        print_effects: bool,
        use_color: bool,
    ) -> PyResult<String> {
        self.jaxpr().pretty_print(source_info, name_stack, print_shapes, custom_pp_eqn_rules, print_effects, use_color)
    }
    fn __str__(&self) -> String {
        self.program.to_string()
    }
    fn __repr__(&self) -> String {
        self.program.to_string()
    }
    /// Programs are equal if they do the same; captured values are compared by identity.
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        o.cast::<PyProgram>().is_ok_and(|o| {
            let o = o.get();
            self.program == o.program
                && self.consts.len() == o.consts.len()
                && self.consts.iter().zip(&o.consts).all(|(a, b)| a.id() == b.id())
        })
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.program.hash(&mut h);
        h.finish()
    }
}
fn effects<'py>(py: Python<'py>, fx: &ferrax_ir::effects::Effects) -> PyResult<Bound<'py, PySet>> {
    let mut names: Vec<String> = fx.axes.iter().map(|a| format!("NamedAxis({a})")).collect();
    if fx.io {
        names.push(if fx.ordered { "OrderedIO".into() } else { "IO".into() });
    }
    PySet::new(py, names)
}

/// A program without its captured values.
#[pyclass(frozen, weakref, module = "ferrax.core", name = "Jaxpr")]
pub struct Jaxpr(pub Arc<Program>);

/// The variables that Python holds: one object for each, so that `is` compares variables.
static HELD_VARS: Mutex<BTreeMap<(usize, u32), Py<PyWeakrefReference>>> = Mutex::new(BTreeMap::new());
fn held_vars() -> MutexGuard<'static, BTreeMap<(usize, u32), Py<PyWeakrefReference>>> {
    HELD_VARS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Jaxpr {
    fn var<'py>(&self, py: Python<'py>, index: u32) -> PyResult<Bound<'py, Var>> {
        let key = (Arc::as_ptr(&self.0) as usize, index);
        // no object is made or dropped while the table is locked: that may run other code
        let known = held_vars().get(&key).map(|w| w.clone_ref(py));
        if let Some(v) = known.map(|w| w.bind(py).upgrade_as::<Var>()).transpose()?.flatten() {
            return Ok(v);
        }
        let v = Bound::new(py, Var { program: self.0.clone(), index })?;
        let weak = PyWeakrefReference::new(&v)?.unbind();
        let old = held_vars().insert(key, weak);
        drop(old);
        Ok(v)
    }
    fn vars<'py>(&self, py: Python<'py>, range: std::ops::Range<usize>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, range.map(|i| self.var(py, i as u32)).collect::<PyResult<Vec<_>>>()?)
    }
    fn atom<'py>(&self, py: Python<'py>, a: &Atom) -> PyResult<Bound<'py, PyAny>> {
        Ok(match a {
            Atom::Var(v) => self.var(py, *v)?.into_any(),
            Atom::Lit(l) => Bound::new(py, Literal(*l))?.into_any(),
        })
    }
}

#[pymethods]
impl Jaxpr {
    /// `Jaxpr(constvars, invars, outvars, eqns)`: a program of equations in an order in which each variable is defined before it is read.
    ///
    /// Raises:
    ///   ValueError: a variable is read that nothing defines, or an equation does not have the types it says.
    #[new]
    #[pyo3(signature = (constvars, invars, outvars, eqns, effects=None, debug_info=None, is_high=false))]
    fn new(
        py: Python,
        constvars: Vec<Bound<Var>>,
        invars: Vec<Bound<Var>>,
        outvars: Vec<Bound<PyAny>>,
        eqns: Vec<Bound<JaxprEqn>>,
        effects: Option<&Bound<PyAny>>,
        debug_info: Option<&Bound<PyAny>>,
        is_high: bool,
    ) -> PyResult<Jaxpr> {
        let _ = (effects, debug_info, is_high);
        Ok(Jaxpr(Arc::new(rebuilt(py, &constvars, &invars, &outvars, &eqns)?)))
    }
    #[getter]
    fn constvars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.vars(py, 0..self.0.n_consts())
    }
    #[getter]
    fn invars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.vars(py, self.0.n_consts()..self.0.n_ins())
    }
    #[getter]
    fn outvars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.outs().iter().map(|a| self.atom(py, a)).collect::<PyResult<Vec<_>>>()?)
    }
    #[getter]
    fn in_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        types(py, &self.0.in_avals()[self.0.n_consts()..])
    }
    #[getter]
    fn out_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        types(py, &self.0.out_avals())
    }
    #[getter]
    pub fn eqns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut first = self.0.first_var() as u32;
        let mut out = Vec::with_capacity(self.0.eqns().len());
        for (i, e) in self.0.eqns().iter().enumerate() {
            out.push(Bound::new(
                py,
                JaxprEqn { jaxpr: Jaxpr(self.0.clone()), index: i, first, changed: None, own: None },
            )?);
            first += e.n_out;
        }
        PyList::new(py, out)
    }
    #[getter]
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        effects(py, self.0.effects())
    }
    #[getter]
    fn debug_info(&self) -> Option<()> {
        None
    }
    /// The program with other inputs, equations or outputs: variables and equations of this one or of others, in an order in which each
    /// variable is defined before it is read. Its effects are those of its equations.
    ///
    /// Raises:
    ///   ValueError: a variable is read that nothing defines, or an equation does not have the types it says.
    #[pyo3(signature = (*, constvars=None, invars=None, outvars=None, eqns=None, effects=None, debug_info=None))]
    fn replace(
        &self,
        py: Python,
        constvars: Option<Vec<Bound<Var>>>,
        invars: Option<Vec<Bound<Var>>>,
        outvars: Option<Vec<Bound<PyAny>>>,
        eqns: Option<Vec<Bound<JaxprEqn>>>,
        effects: Option<&Bound<PyAny>>,
        debug_info: Option<&Bound<PyAny>>,
    ) -> PyResult<Jaxpr> {
        let _ = (effects, debug_info);
        let p = &self.0;
        let own = |range: std::ops::Range<usize>| range.map(|i| self.var(py, i as u32)).collect();
        let constvars = constvars.map_or_else(|| own(0..p.n_consts()), Ok)?;
        let invars = invars.map_or_else(|| own(p.n_consts()..p.n_ins()), Ok)?;
        let eqns = match eqns {
            Some(e) => e,
            None => self.eqns(py)?.iter().map(|e| Ok(e.cast_into::<JaxprEqn>()?)).collect::<PyResult<_>>()?,
        };
        let outvars = match outvars {
            Some(v) => v,
            None => self.outvars(py)?.iter().collect(),
        };
        Ok(Jaxpr(Arc::new(rebuilt(py, &constvars, &invars, &outvars, &eqns)?)))
    }
    /// The program of some outputs, and of the inputs that they need or that are kept, bodies of equations included: (program, which inputs).
    fn _dce(&self, py: Python, used: Vec<bool>, keep: Vec<bool>) -> PyResult<(Jaxpr, Vec<bool>)> {
        let p = &self.0;
        if used.len() != p.n_outs() || keep.len() != p.n_ins() - p.n_consts() {
            return Err(PyValueError::new_err("a truth for each output and for each input"));
        }
        let needed = p.dce(&used).1;
        let n = p.n_consts();
        let kept: Vec<bool> = keep.iter().zip(&needed[n..]).map(|(k, u)| *k || *u).collect();
        let ins: Vec<In> = (0..n).chain((0..kept.len()).filter(|i| kept[*i]).map(|i| n + i)).map(In::Old).collect();
        let outs: Vec<usize> = (0..used.len()).filter(|i| used[*i]).collect();
        let q = p.rewire(&ins, Some(&outs));
        let cut =
            Program::new(n, q.n_ins(), q.avals().to_vec(), q.eqns().to_vec(), q.outs().to_vec(), q.lines().to_vec());
        Ok((Jaxpr(Arc::new(cut.py(py)?)), kept))
    }
    /// The program's text, with optional notes beside each equation: the user's line, the names of
    /// the scopes around it.
    #[pyo3(signature = (*, source_info=false, name_stack=false, print_shapes=true, custom_pp_eqn_rules=true, print_effects=false, use_color=false))]
    #[allow(clippy::fn_params_excessive_bools)] // as the Python signature
    pub fn pretty_print(
        &self,
        source_info: bool,
        name_stack: bool,
        print_shapes: bool,
        custom_pp_eqn_rules: bool,
        print_effects: bool,
        use_color: bool,
    ) -> PyResult<String> {
        if !print_shapes || !custom_pp_eqn_rules || print_effects || use_color {
            return Err(pyo3::exceptions::PyNotImplementedError::new_err(
                "programs print in one form: print_shapes=False, custom_pp_eqn_rules=False, print_effects=True and use_color=True are not there",
            ));
        }
        Ok(ferrax_ir::text::print_with(&self.0, source_info, name_stack))
    }
    fn __str__(&self) -> String {
        self.0.to_string()
    }
    fn __repr__(&self) -> String {
        self.0.to_string()
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        o.cast::<Jaxpr>().is_ok_and(|o| self.0 == o.get().0)
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.0.hash(&mut h);
        h.finish()
    }
}

/// A program from variables and equations of others.
fn rebuilt(
    py: Python,
    constvars: &[Bound<Var>],
    invars: &[Bound<Var>],
    outvars: &[Bound<PyAny>],
    eqns: &[Bound<JaxprEqn>],
) -> PyResult<Program> {
    let key = |p: &Arc<Program>, v: u32| (Arc::as_ptr(p) as usize, v);
    let (mut numbers, mut avals) = (HashMap::new(), Vec::new());
    for v in constvars.iter().chain(invars) {
        let v = v.get();
        numbers.insert(key(&v.program, v.index), avals.len() as u32);
        avals.push(v.aval().0);
    }
    let n_ins = avals.len();
    let undefined = || PyValueError::new_err("a program reads a variable that it does not define before");
    let (mut made, mut lines) = (Vec::with_capacity(eqns.len()), Vec::with_capacity(eqns.len()));
    for e in eqns {
        let e = e.get();
        let (p, eqn) = (&e.jaxpr.0, e.eqn());
        let read = |a: Bound<PyAny>| match (a.cast::<Var>(), a.cast::<Literal>()) {
            (Ok(v), _) => {
                let v = v.get();
                numbers.get(&key(&v.program, v.index)).map(|n| Atom::Var(*n)).ok_or_else(undefined)
            }
            (_, Ok(l)) => Ok(Atom::Lit(l.get().0)),
            _ => Err(undefined()),
        };
        let args = e.operands(py)?.into_iter().map(read).collect::<PyResult<_>>()?;
        let op = match &e.changed {
            Some(params) => {
                let ins = eqn.args.iter().map(|a| p.atom_aval(a)).collect();
                PyPrimitive::op(&primitive::of(py, &eqn.op)?, ins, Some(params.bind(py)))?
            }
            None => eqn.op.clone(),
        };
        for v in e.results(py)? {
            let v = v.get();
            numbers.insert(key(&v.program, v.index), avals.len() as u32);
            avals.push(v.aval().0);
        }
        made.push(Eqn { op, args, n_out: eqn.n_out });
        lines.push(p.lines()[e.index]);
    }
    let out = |a: &Bound<PyAny>| match (a.cast::<Var>(), a.cast::<Literal>()) {
        (Ok(v), _) => {
            let v = v.get();
            numbers.get(&key(&v.program, v.index)).map(|n| Atom::Var(*n)).ok_or_else(undefined)
        }
        (_, Ok(l)) => Ok(Atom::Lit(l.get().0)),
        _ => Err(PyTypeError::new_err(format!("an output is a Var or a Literal, got {}", value::type_text(a)))),
    };
    let outs = outvars.iter().map(out).collect::<PyResult<_>>()?;
    let p = Program::new(constvars.len(), n_ins, avals, made, outs, lines).py(py)?;
    ferrax_ir::verify::verify(&p).py(py)?;
    Ok(p)
}

fn dictionary<'py>(params: &Bound<'py, PyMapping>) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(params.py());
    d.update(params)?;
    Ok(d)
}

/// A variable of a program; `Var(aval)` makes one of no program yet, which equals no other.
#[pyclass(frozen, weakref, subclass, module = "ferrax.core", name = "Var")]
pub struct Var {
    program: Arc<Program>,
    index: u32,
}
impl Drop for Var {
    fn drop(&mut self) {
        let gone = held_vars().remove(&(Arc::as_ptr(&self.program) as usize, self.index));
        drop(gone);
    }
}
#[pymethods]
impl Var {
    #[new]
    fn new(py: Python, aval: &Bound<ShapedArray>) -> PyResult<Var> {
        let p = Program::new(0, 1, vec![aval.get().0.clone()], vec![], vec![], vec![]).py(py)?;
        Ok(Var { program: Arc::new(p), index: 0 })
    }
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.program.avals()[self.index as usize].clone())
    }
    #[getter]
    fn count(&self) -> u32 {
        self.index
    }
    fn __repr__(&self) -> String {
        format!("Var(id={}):{}", self.index, self.aval().0.long())
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        o.cast::<Var>().is_ok_and(|o| self.index == o.get().index && Arc::ptr_eq(&self.program, &o.get().program))
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        (Arc::as_ptr(&self.program) as usize, self.index).hash(&mut h);
        h.finish()
    }
}

/// A constant written in a program.
#[pyclass(frozen, weakref, module = "ferrax.core", name = "Literal")]
pub struct Literal(Lit);
#[pymethods]
impl Literal {
    /// `Literal(val, aval)`: a number of that type.
    ///
    /// Raises:
    ///   TypeError: the value is traced, or no number.
    #[new]
    #[pyo3(signature = (val, aval=None))]
    fn new(py: Python, val: &Bound<PyAny>, aval: Option<&Bound<ShapedArray>>) -> PyResult<Literal> {
        let mut x = value::required(val, crate::config::flags(), "Literal", 0)?;
        if let Some(a) = aval {
            x = fitted(py, x, &a.get().0, 0)?;
        }
        match x {
            Value::Lit(l) => Ok(Literal(l)),
            _ => Err(PyTypeError::new_err(format!("Literal: expected a number, got {}", value::type_text(val)))),
        }
    }
    #[getter]
    fn val<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let x = crate::array::number_of(py, &self.0)?;
        if self.0.weak { Ok(x) } else { crate::dtype::to_py(py, self.0.dtype())?.getattr("type")?.call1((x,)) }
    }
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.0.aval())
    }
    fn __repr__(&self) -> String {
        format!("Literal({})", self.0)
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        o.cast::<Literal>().is_ok_and(|o| self.0 == o.get().0)
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.0.hash(&mut h);
        h.finish()
    }
}

/// One equation.
///
/// `JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)` makes one, of variables of programs or of `Var(aval)`; its effects
/// and its line are its primitive's alone.
#[pyclass(frozen, weakref, subclass, module = "ferrax.core", name = "JaxprEqn")]
pub struct JaxprEqn {
    jaxpr: Jaxpr,
    index: usize,
    /// The first output's variable.
    first: u32,
    /// Parameters given to `replace`.
    changed: Option<Py<PyDict>>,
    /// The operands and results that it was made with, if it is not part of a program.
    own: Option<(Vec<Py<PyAny>>, Vec<Py<Var>>)>,
}
impl JaxprEqn {
    fn eqn(&self) -> &Eqn {
        &self.jaxpr.0.eqns()[self.index]
    }
    /// The variables that it reads and defines, as `rebuilt` maps them.
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match &self.own {
            Some((ins, _)) => Ok(ins.iter().map(|v| v.bind(py).clone()).collect()),
            None => self.eqn().args.iter().map(|a| self.jaxpr.atom(py, a)).collect(),
        }
    }
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Var>>> {
        match &self.own {
            Some((_, outs)) => Ok(outs.iter().map(|v| v.bind(py).clone()).collect()),
            None => (self.first..self.first + self.eqn().n_out).map(|i| self.jaxpr.var(py, i)).collect(),
        }
    }
    /// An equation in a program of its own.
    fn made(
        invars: &[Bound<PyAny>],
        outvars: Vec<Bound<Var>>,
        primitive: &Bound<PyPrimitive>,
        params: &Bound<PyDict>,
    ) -> PyResult<JaxprEqn> {
        let py = primitive.py();
        let (mut avals, mut args, mut ins) = (Vec::new(), Vec::new(), Vec::new());
        for v in invars {
            match (v.cast::<Var>(), v.cast::<Literal>()) {
                (Ok(v), _) => {
                    args.push(Atom::Var(avals.len() as u32));
                    avals.push(v.get().aval().0);
                    ins.push(v.get().aval().0);
                }
                (_, Ok(l)) => {
                    args.push(Atom::Lit(l.get().0));
                    ins.push(l.get().0.aval());
                }
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "an operand is a Var or a Literal, got {}",
                        value::type_text(v)
                    )));
                }
            }
        }
        let (first, n_out) = (avals.len(), outvars.len());
        avals.extend(outvars.iter().map(|v| v.get().aval().0));
        let op = PyPrimitive::op(primitive, ins, Some(params))?;
        let eqn = Eqn { op, args: args.into_iter().collect(), n_out: n_out as u32 };
        let p = Program::new(0, first, avals, vec![eqn], vec![], vec![0]).py(py)?;
        let own =
            (invars.iter().map(|v| v.clone().unbind()).collect(), outvars.into_iter().map(Bound::unbind).collect());
        Ok(JaxprEqn { jaxpr: Jaxpr(Arc::new(p)), index: 0, first: first as u32, changed: None, own: Some(own) })
    }
}
#[pymethods]
impl JaxprEqn {
    #[new]
    #[pyo3(signature = (invars, outvars, primitive, params, effects=None, source_info=None, ctx=None))]
    fn new(
        invars: Vec<Bound<PyAny>>,
        outvars: Vec<Bound<Var>>,
        primitive: &Bound<PyPrimitive>,
        params: &Bound<PyMapping>,
        effects: Option<&Bound<PyAny>>,
        source_info: Option<&Bound<PyAny>>,
        ctx: Option<&Bound<PyAny>>,
    ) -> PyResult<JaxprEqn> {
        let _ = (effects, source_info, ctx);
        JaxprEqn::made(&invars, outvars, primitive, &dictionary(params)?)
    }
    #[getter]
    fn primitive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyPrimitive>> {
        primitive::of(py, &self.eqn().op)
    }
    #[getter]
    /// Read only: a program does not change. `replace` makes an equation with others.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMappingProxy>> {
        let d = match &self.changed {
            Some(d) => d.bind(py).clone(),
            None => primitive::params(py, &self.eqn().op)?,
        };
        Ok(PyMappingProxy::new(py, d.as_mapping()))
    }
    #[getter]
    fn invars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.operands(py)?)
    }
    #[getter]
    fn outvars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.results(py)?)
    }
    #[getter]
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        effects(py, &self.eqn().op.effects())
    }
    #[getter]
    fn source_info(&self, py: Python) -> Option<crate::source::SourceInfo> {
        crate::source::info(py, self.jaxpr.0.lines()[self.index])
    }
    #[getter]
    fn ctx(&self) -> Option<()> {
        None
    }
    /// The equation with other operands, results, primitive or parameters; its effects and its line stay what they are.
    #[pyo3(signature = (*, invars=None, outvars=None, primitive=None, params=None, effects=None, source_info=None, ctx=None))]
    fn replace(
        &self,
        py: Python,
        invars: Option<Vec<Bound<PyAny>>>,
        outvars: Option<Vec<Bound<Var>>>,
        primitive: Option<Bound<PyPrimitive>>,
        params: Option<&Bound<PyMapping>>,
        effects: Option<&Bound<PyAny>>,
        source_info: Option<&Bound<PyAny>>,
        ctx: Option<&Bound<PyAny>>,
    ) -> PyResult<JaxprEqn> {
        let _ = (effects, source_info, ctx);
        let given = params.map(dictionary).transpose()?;
        if invars.is_none() && outvars.is_none() && primitive.is_none() {
            let changed = given.or_else(|| self.changed.as_ref().map(|d| d.bind(py).clone())).map(Bound::unbind);
            let own = self.own.as_ref().map(|(ins, outs)| {
                (ins.iter().map(|v| v.clone_ref(py)).collect(), outs.iter().map(|v| v.clone_ref(py)).collect())
            });
            let (jaxpr, index, first) = (Jaxpr(self.jaxpr.0.clone()), self.index, self.first);
            return Ok(JaxprEqn { jaxpr, index, first, changed, own });
        }
        let invars = invars.map_or_else(|| self.operands(py), Ok)?;
        let outvars = outvars.map_or_else(|| self.results(py), Ok)?;
        let primitive = primitive.map_or_else(|| self.primitive(py), Ok)?;
        let params = given.map_or_else(|| dictionary(self.params(py)?.as_any().cast::<PyMapping>()?), Ok)?;
        JaxprEqn::made(&invars, outvars, &primitive, &params)
    }
    fn __repr__(&self, py: Python) -> PyResult<String> {
        let outs = self.outvars(py)?;
        Ok(format!("{} = {} {}", outs.repr()?, self.eqn().op.name(), self.invars(py)?.repr()?))
    }
}

/// eval_program(program, consts, *args): the program's outputs, equation by equation in the current trace.
#[pyfunction]
#[pyo3(signature = (program, consts, *args))]
pub fn eval_program<'py>(
    program: &Bound<'py, PyAny>,
    consts: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyList>> {
    let py = program.py();
    let p = match (program.cast::<PyProgram>(), program.cast::<Jaxpr>()) {
        (Ok(p), _) => p.get().program.clone(),
        (_, Ok(j)) => j.get().0.clone(),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "eval_program: expected a program, got {}",
                value::type_text(program)
            )));
        }
    };
    let mut xs = all_required(consts, "eval_program")?;
    xs.extend(all_required(args.as_any(), "eval_program")?);
    for (i, (x, a)) in xs.iter_mut().zip(p.in_avals()).enumerate() {
        *x = fitted(py, x.clone(), a, i)?;
    }
    let out = guarded(|| ferrax_ir::current().inline_here(&p, &xs, 0).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}
/// A literal in the type that the program's input has; other values must have it.
fn fitted(py: Python, x: Value, a: &Aval, i: usize) -> PyResult<Value> {
    let have = x.aval();
    if have.same(a) {
        return Ok(x);
    }
    if matches!(x, Value::Lit(_)) && a.rank() == 0 {
        return ferrax::numpy::promotion::convert(&x, a.dtype, a.weak).py(py);
    }
    Err(PyTypeError::new_err(format!(
        "argument {i} of the program has type {} but {} was given",
        a.long(),
        have.long()
    )))
}
