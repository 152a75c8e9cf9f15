//! Calls over meshes: shardings that `jit` was given, constraints in the program, arguments in parts.
//!
//! INVARIANT: a signature without shardings whose arguments lie on one device never comes here.
use super::cache::lock;
use super::{Flat, Jit, Variant};
use crate::aval::ShapedArray;
use crate::config;
use crate::debug;
use crate::error::IntoPyResult;
use crate::placement;
use crate::source;
use crate::tree::{Leaves, TreeDef};
use ferrax::array;
use ferrax::parts::Layout;
use ferrax::spmd::{self, Spmd, Where};
use ferrax_ir::aval::Aval;
use ferrax_ir::program::Program;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::Arc;

/// Which arrays a program gathers whole on every device, and where, if the setting asks for it.
fn warn_of_gathers(py: Python, made: &Spmd) -> PyResult<()> {
    if made.gathered.is_empty() || !config::config_get(py, "jax_warn_of_gathers")?.is_truthy()? {
        return Ok(());
    }
    let mut texts: Vec<String> = vec![];
    for g in &made.gathered {
        let at = source::text(g.line).map(|at| format!(", at {at}")).unwrap_or_default();
        let text = format!("A program gathers {} whole on every device{at}.", g.aval.long());
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let say = |text| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text).unwrap_or_default(), 1);
    texts.into_iter().try_for_each(say)
}

/// How many layouts of arguments a signature keeps programs for.
const MAX_KEPT: usize = 32;

/// The layouts of arguments and results in a signature.
#[derive(Default)]
pub struct Laid {
    /// Of the leaves; empty where none was said.
    ins: Vec<Option<Arc<Layout>>>,
    outs: Vec<Option<Arc<Layout>>>,
    /// That of the program's own constraints.
    within: Option<Arc<Layout>>,
}
impl Laid {
    pub(super) fn mesh(&self) -> Option<&Arc<Layout>> {
        self.within.as_ref().or_else(|| self.ins.iter().chain(&self.outs).flatten().next())
    }
    /// The requested layout of a result.
    pub(super) fn out(&self, i: usize) -> Option<&Arc<Layout>> {
        self.outs.get(i).and_then(|l| l.as_ref())
    }
    /// The arguments under constraints, where the call is an equation of a trace.
    pub(super) fn constrained_ins(&self, x: &[Value]) -> ferrax_ir::Res<Values> {
        constrained(x, &self.ins)
    }
    pub(super) fn constrained_outs(&self, x: &[Value]) -> ferrax_ir::Res<Values> {
        constrained(x, &self.outs)
    }
}

fn constrained(values: &[Value], wanted: &[Option<Arc<Layout>>]) -> ferrax_ir::Res<Values> {
    let one = |(i, v): (usize, &Value)| match wanted.get(i).and_then(|w| w.as_ref()) {
        Some(l) => Ok(ferrax_ir::bind(&l.to_constraint().into(), std::slice::from_ref(v))?.remove(0)),
        None => Ok(v.clone()),
    };
    values.iter().enumerate().map(one).collect()
}

pub(super) type Layouts = Vec<Option<Arc<Layout>>>;
fn layouts(found: Bound<PyAny>, avals: &[Aval]) -> PyResult<Layouts> {
    if found.is_none() {
        return Ok(vec![]);
    }
    let each = found.try_iter()?.zip(avals).map(|(s, a)| {
        let s = s?;
        if s.is_none() { Ok(None) } else { placement::layout_of_any(&s, a.rank()).map(Some) }
    });
    each.collect()
}
fn typed<'py>(py: Python<'py>, avals: &[Aval]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    avals.iter().map(|a| Ok(Bound::new(py, ShapedArray(a.clone()))?.into_any())).collect()
}

impl Jit {
    /// The requested layouts of the arguments, before the function is traced.
    pub(super) fn wanted_ins(&self, py: Python, flat: &Flat, ins: &[Aval]) -> PyResult<Layouts> {
        let Some(given) = &self.options.shardings else { return Ok(vec![]) };
        let (args, kwargs) = flat.structure.arguments(py, &mut typed(py, ins)?.into_iter().map(Ok))?;
        let numbers = self.options.static_argnums.clone();
        layouts(crate::hooks::input_places(py)?.call1((given.0.bind(py), numbers, args, kwargs))?, ins)
    }
    /// The requested layouts of the results, once their structure is known; and those that the
    /// program's constraints name.
    pub(super) fn laid(&self, py: Python, ins: Layouts, p: &Program, out: &TreeDef) -> PyResult<Option<Box<Laid>>> {
        let outs = match &self.options.shardings {
            None => vec![],
            Some(given) => {
                let avals = p.out_avals();
                let out = out.unflatten(py, &mut typed(py, &avals)?.into_iter())?;
                layouts(crate::hooks::output_places(py)?.call1((given.1.bind(py), out))?, &avals)?
            }
        };
        let laid = Laid { ins, outs, within: spmd::mesh_of_program(p) };
        Ok(laid.mesh().is_some().then(|| Box::new(laid)))
    }
}

fn ids(l: &Layout) -> String {
    let ids: Vec<String> = l.devices().iter().map(|d| d.index.to_string()).collect();
    format!("device ids [{}] on platform {}", ids.join(", "), l.devices()[0].platform().to_uppercase())
}

impl Variant {
    /// The mesh that the call is for, `None` where it is for one device.
    pub(super) fn mesh_for(&self, py: Python, all: &[&Value], laid: &Laid) -> PyResult<Option<Arc<Layout>>> {
        let Some(requested) = laid.mesh() else {
            return Ok(match self.place_of_run(py, all)?.0 {
                Some(Where::Mesh(l)) => Some(l),
                _ => None,
            });
        };
        // captured arrays are brought to the devices that are named
        let found = spmd::place_of(&all[self.consts.len()..]).py(py)?;
        let every = laid.ins.iter().map(|l| (l, "input")).chain(laid.outs.iter().map(|l| (l, "output")));
        for (l, what) in every.filter_map(|(l, what)| Some((l.as_ref()?, what))) {
            if l.devices() != requested.devices() {
                return Err(PyValueError::new_err(format!(
                    "Received incompatible devices for jitted computation. Got explicit {what} sharding with {} and sharding_constraint or explicit sharding with {}",
                    ids(l),
                    ids(requested)
                )));
            }
        }
        let there = match &found {
            None => None,
            Some(Where::One(d)) if requested.devices() == [*d] => None,
            Some(Where::Mesh(l)) if l.devices() == requested.devices() => None,
            Some(Where::One(d)) => {
                Some(format!("device ids [{}] on platform {}", d.index, d.platform().to_uppercase()))
            }
            Some(Where::Mesh(l)) => Some(ids(l)),
        };
        // only constraints name devices: their mesh may be another view of the current one, or of
        // that of the arguments
        let alone = laid.ins.iter().chain(&laid.outs).flatten().next().is_none();
        let view = |l: &Arc<Layout>| alone && l.devices() == requested.devices() && l.mesh.grid == requested.mesh.grid;
        let of_arguments = if let Some(Where::Mesh(l)) = &found { Some(l.clone()) } else { None };
        let place = spmd::in_use().filter(view).or(of_arguments.filter(view)).unwrap_or_else(|| requested.clone());
        match there {
            None => Ok(Some(place)),
            Some(there) => Err(PyValueError::new_err(format!(
                "Received incompatible devices for jitted computation. Got an argument with {there} and explicit sharding with {}",
                ids(requested)
            ))),
        }
    }
    /// Checks that a committed argument has the specified sharding.
    pub(super) fn check_given(&self, py: Python, all: &[&Value], laid: &Laid) -> PyResult<()> {
        for (v, wanted) in all[self.consts.len()..].iter().zip(&laid.ins) {
            let (Value::Array(a), Some(wanted)) = (v, wanted) else { continue };
            let d = array::data(a).py(py)?;
            let fits = match &d.layout {
                _ if !d.committed => true,
                Some(l) => l.lies_as(wanted, v.shape()),
                None => wanted.devices() == [d.device],
            };
            if !fits {
                return Err(PyValueError::new_err(format!(
                    "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: {},\narg sharding: {} for arg type: {}",
                    placement::sharding(py, wanted)?.repr()?,
                    placement::sharding_of(py, a)?.repr()?,
                    a.aval().long()
                )));
            }
        }
        Ok(())
    }
    /// The program for values that lie as these do.
    pub(super) fn spmd(&self, py: Python, place: &Arc<Layout>, all: &[&Value]) -> PyResult<Arc<Spmd>> {
        if let Some(known) = lock(&self.spmd).iter().find(|s| s.fits(place, all)) {
            return Ok(known.clone());
        }
        let made = self.partitioned(py, place, spmd::layouts_of(all))?;
        let dropped = {
            let mut kept = lock(&self.spmd);
            let full = kept.len() >= MAX_KEPT;
            kept.push(made.clone());
            full.then(|| kept.remove(0))
        };
        drop(dropped);
        Ok(made)
    }
    /// The program for captured values and leaves that lie as `given`.
    pub(super) fn partitioned(&self, py: Python, place: &Arc<Layout>, given: Layouts) -> PyResult<Arc<Spmd>> {
        let (ins, outs): (Layouts, &[_]) = match &self.laid {
            Some(l) => (self.consts.iter().map(|_| None).chain(l.ins.iter().cloned()).collect(), &l.outs),
            None => (vec![], &[]),
        };
        let made = py.detach(|| Spmd::new(&self.program, place, given, &ins, outs)).py(py)?;
        warn_of_gathers(py, &made)?;
        Ok(Arc::new(made))
    }
    /// The call on a mesh.
    pub(super) fn run_parts<'py>(
        &self,
        py: Python<'py>,
        jit: &Jit,
        all: &[&Value],
        place: &Arc<Layout>,
    ) -> PyResult<Leaves<'py>> {
        if let Some(laid) = &self.laid {
            self.check_given(py, all, laid)?;
        }
        let spmd = self.spmd(py, place, all)?;
        self.run_spmd(py, jit, all, &spmd)
    }
    pub(super) fn run_spmd<'py>(
        &self,
        py: Python<'py>,
        jit: &Jit,
        all: &[&Value],
        spmd: &Spmd,
    ) -> PyResult<Leaves<'py>> {
        if !self.donated.is_empty() {
            self.given_once(py, all)?;
        }
        let flags = config::flags();
        if !debug::wanted(flags) {
            let out = spmd.run(all, &self.donated).py(py)?;
            return self.objects(py, out);
        }
        let out = spmd.run(all, &[]).py(py)?;
        let x: Values = all.iter().map(|v| (*v).clone()).collect();
        let y: Values = out.iter().cloned().map(Value::Array).collect();
        debug::check_program(py, &jit.name, &self.program, &x, &y, flags)?;
        self.objects(py, out)
    }
}
