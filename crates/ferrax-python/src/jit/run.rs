//! Running a traced signature: at once on a device, or bound as one equation while something is
//! traced; with donation.
//!
//! INVARIANT: an array is deleted only if it is donated: marked by the user, used by the program,
//! and of a type and size that one of the results can reuse.
use super::cache::{self, lock};
use super::typed::Typed;
use super::{Jit, Variant};
use crate::array::ArrayImpl;
use crate::array::value::{held, to_ndarray, wrap};
use crate::config::{self, Flags};
use crate::debug;
use crate::error::IntoPyResult;
use crate::modules::imported;
use crate::once::Once;
use crate::trace::Pins;
use crate::tree::Leaves;
use ferrax::compiled::{Arrays, Compiled};
use ferrax::device::Device;
use ferrax::eval;
use ferrax::key_reuse::KeyCall;
use ferrax::spmd::{Where, in_use, place_of};
use ferrax_ir::aval::Aval;
use ferrax_ir::ops::call::Call;
use ferrax_ir::program::{Atom, Program};
use ferrax_ir::value::{Value, Values};
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

impl Variant {
    #[inline]
    pub(super) fn fits<T: Typed>(&self, values: &[T]) -> bool {
        self.ins.len() == values.len() && self.ins.iter().zip(values).all(|(a, v)| v.is(a))
    }
    /// The outputs for these leaves: run here and now, or bound as one equation where something is traced.
    pub fn run<'py>(&self, py: Python<'py>, jit: &Jit, values: &[&Value]) -> PyResult<Leaves<'py>> {
        let with_consts: SmallVec<[&Value; 8]>;
        let all = if self.consts.is_empty() {
            values
        } else {
            with_consts = self.consts.iter().chain(values.iter().copied()).collect();
            &with_consts
        };
        let forced = jit.options.device.or(self.pinned);
        if let Some(options) = &jit.options.compiler_options
            && ferrax_ir::current().stages()
        {
            nested_options(options.bind(py), &jit.name)?;
        }
        if !ferrax_ir::cx::at_root() || all.iter().any(|v| v.is_tracer()) {
            return self.bind_on(py, jit, all, forced)?.into_iter().map(|v| wrap(py, v)).collect();
        }
        if let Some(laid) = &self.laid
            && let Some(place) = self.mesh_for(py, all, laid)?
        {
            return self.run_parts(py, jit, all, &place);
        }
        if let Some(device) = forced {
            return self.run_on(py, jit, all, device);
        }
        let (place, are_apart) = self.place_of_run(py, all)?;
        let device = match place {
            Some(Where::One(d)) => d,
            Some(Where::Mesh(place)) => return self.run_parts(py, jit, all, &place),
            None if let Some(place) = in_use() => return self.run_parts(py, jit, all, &place),
            None => eval::current_device(),
        };
        if are_apart {
            return self.run_on(py, jit, all, device);
        }
        let out = self.checked_run(py, jit, &*self.compiled(py, jit, device)?, all)?;
        self.objects(py, out)
    }
    /// Where the program runs, and whether arrays that the function captures are to be brought there: as constants of a program, they follow
    /// the arguments if they do not lie together.
    pub(super) fn place_of_run(&self, py: Python, all: &[&Value]) -> PyResult<(Option<Where>, bool)> {
        let together = place_of(all);
        let are_apart = together.is_err() && !self.consts.is_empty();
        let place = if are_apart { place_of(&all[self.consts.len()..]) } else { together };
        Ok((place.py(py)?, are_apart))
    }
    /// The results as Python objects: those of dtype float0 are numpy's.
    pub(super) fn objects<'py>(&self, py: Python<'py>, out: Arrays) -> PyResult<Leaves<'py>> {
        let mut objects = Leaves::with_capacity(out.len());
        for a in out {
            objects.push(ArrayImpl::object(py, Value::Array(a))?);
        }
        for i in &self.float0 {
            if let Some(v) = held(&objects[*i]).cloned() {
                objects[*i] = to_ndarray(py, &v)?;
            }
        }
        Ok(objects)
    }
    /// Runs on arrays that are on the device, donates, and checks the results if the configuration
    /// says so.
    pub(super) fn checked_run(&self, py: Python, jit: &Jit, c: &Compiled, all: &[&Value]) -> PyResult<Arrays> {
        let flags = config::flags();
        if !self.donated.is_empty() {
            self.given_once(py, all)?;
        }
        if flags.key_reuse() {
            let call = KeyCall::of_program(&self.program, all).py(py)?;
            let out = self.run_and_look(py, jit, c, all, flags)?;
            call.end(&out.iter().cloned().map(Value::Array).collect::<Values>());
            return Ok(out);
        }
        self.run_and_look(py, jit, c, all, flags)
    }
    fn run_and_look(&self, py: Python, jit: &Jit, c: &Compiled, all: &[&Value], flags: Flags) -> PyResult<Arrays> {
        if !debug::wanted(flags) {
            return c.run(all, &self.donated).py(py);
        }
        // A result that is bad is traced back to the equation that made it, from the arguments: none is given up.
        let out = c.run(all, &[]).py(py)?;
        let x: Values = all.iter().map(|v| (*v).clone()).collect();
        let y: Values = out.iter().cloned().map(Value::Array).collect();
        debug::check_program(py, &jit.name, &self.program, &x, &y, flags)?;
        Ok(out)
    }
    fn delete_donated(&self, py: Python, all: &[&Value]) -> PyResult<()> {
        for (v, _) in all.iter().zip(&self.donated).filter(|d| *d.1) {
            if let Value::Array(a) = v {
                ferrax::array::data(a).py(py)?.delete();
            }
        }
        Ok(())
    }
    /// An error if an array that is donated is also another argument that the function uses.
    pub(super) fn given_once(&self, py: Python, all: &[&Value]) -> PyResult<()> {
        for i in (0..all.len()).filter(|i| self.donated[*i] && all[*i].id().is_some()) {
            let same = |j: &usize| *j != i && all[*j].id() == all[i].id() && uses(&self.program, *j);
            if let Some(j) = (0..all.len()).find(same) {
                let shown = j.saturating_sub(self.consts.len());
                let (text, toy) = match (i < j, self.donated[j]) {
                    (true, true) => ("donate the same buffer twice in", "f(donate(a), donate(a))"),
                    (true, false) => {
                        ("use a buffer that was previously donated in the same call to", "f(donate(a), a)")
                    }
                    (false, _) => ("donate a buffer which is also used by the same call to", "f(a, donate(a))"),
                };
                return Err(crate::error::named(
                    py,
                    "JaxRuntimeError",
                    &format!(
                        "INVALID_ARGUMENT: Attempt to {text} Execute() (flattened argument {shown}, replica 0, partition 0, \
                         first use: {}). Toy example for this bug: `{toy}`.",
                        i.saturating_sub(self.consts.len())
                    ),
                ));
            }
        }
        Ok(())
    }
    /// As `run` on the device that the user named: the arguments are brought there, and the results stay there.
    pub(super) fn run_on<'py>(
        &self,
        py: Python<'py>,
        jit: &Jit,
        all: &[&Value],
        device: &'static Device,
    ) -> PyResult<Leaves<'py>> {
        let mut moved = Values::with_capacity(all.len());
        for v in all {
            moved.push(match v {
                // one that is there stays its buffer's only owner, so that it can be given up
                Value::Array(a) if !ferrax::array::lies_on(a, device) => {
                    Value::Array(py.detach(|| ferrax::array::put(a, device, true)).py(py)?)
                }
                v => (*v).clone(),
            });
        }
        let there: SmallVec<[&Value; 8]> = moved.iter().collect();
        if !self.donated.is_empty() {
            self.given_once(py, all)?;
        }
        let out = self.checked_run(py, jit, &*self.compiled(py, jit, device)?, &there)?;
        if !debug::wanted(config::flags()) {
            self.delete_donated(py, all)?;
        }
        let out = out.iter().map(|a| ferrax::array::put(a, device, true)).collect::<ferrax_ir::Res<Arrays>>().py(py)?;
        self.objects(py, out)
    }
    /// As `bind`, where the user named a device. While a jitted function is traced all of that runs there; a transformation that runs as
    /// it goes moves the arguments and the results.
    fn bind_on(&self, py: Python, jit: &Jit, all: &[&Value], forced: Option<&'static Device>) -> PyResult<Values> {
        if let Some(laid) = &self.laid {
            let n = self.consts.len();
            let values: Values = all.iter().map(|v| (*v).clone()).collect();
            let there = laid.constrained_ins(&values[n..]).py(py)?;
            let there: SmallVec<[&Value; 8]> = values[..n].iter().chain(&there).collect();
            return self.bind(jit, &there).and_then(|out| laid.constrained_outs(&out)).py(py);
        }
        let Some(device) = forced else { return self.bind(jit, all).py(py) };
        if Pins::pin(device).py(py)? {
            return self.bind(jit, all).py(py);
        }
        let put = |v: &Value| crate::transfer::put_traced(v, device, None);
        let there = all.iter().map(|v| put(v)).collect::<ferrax_ir::Res<Values>>().py(py)?;
        let there: SmallVec<[&Value; 8]> = there.iter().collect();
        let out = self.bind(jit, &there).py(py)?;
        out.iter().map(put).collect::<ferrax_ir::Res<Values>>().py(py)
    }
    /// The call as one equation of the trace that is open, or its body's equations where it is to be inlined.
    fn bind(&self, jit: &Jit, all: &[&Value]) -> ferrax_ir::Res<Values> {
        let all: Values = all.iter().map(|v| (*v).clone()).collect();
        if jit.options.inline {
            return ferrax_ir::current().inline_here(&self.program, &all, 0);
        }
        let op = self.call.get_or_init(|| {
            let open = match self.program.n_consts() {
                0 => self.program.clone(),
                _ => Arc::new(self.program.with_consts(0)),
            };
            Call { inline: false, keep_unused: jit.options.keep_unused, ..Call::new(&jit.name, open) }.into()
        });
        ferrax_ir::bind(op, &all)
    }
    pub fn compiled(&self, py: Python, jit: &Jit, device: &'static Device) -> PyResult<Arc<Compiled>> {
        if let Some(c) = lock(&self.compiled).iter().find(|c| c.device.id == device.id) {
            return Ok(c.clone());
        }
        if let Some(options) = &jit.options.compiler_options {
            check_compiler_options(options.bind(py))?;
        }
        let (started, loud) = (std::time::Instant::now(), config::flags().log_compiles());
        let log = listener(py, loud)?;
        if let Some(log) = &log {
            let types = self.program.in_avals().iter().map(|a| format!("ShapedArray({})", a.long()));
            log.say(format!(
                "Compiling jit({}) with global shapes and types [{}].",
                jit.name,
                types.collect::<Vec<_>>().join(", ")
            ))?;
        }
        let c = Arc::new(Compiled::new(self.program.clone(), device).py(py)?);
        lock(&self.compiled).push(c.clone());
        if let Some(log) = &log {
            let seconds = started.elapsed().as_secs_f64();
            log.say(format!("Finished compilation of jit({}) in {seconds:.6} sec", jit.name))?;
        }
        Ok(c)
    }
    /// For the garbage collector: the Python objects of a program that has no other owner.
    pub(super) fn visit(&self, each: &mut dyn FnMut(&Py<PyAny>)) {
        let Ok(compiled) = self.compiled.try_lock() else { return };
        if compiled.iter().all(|c| Arc::strong_count(c) == 1) {
            let called = self.call.get().is_some() && self.program.n_consts() == 0;
            // an executable keeps its program too, which the reference implementation runs after a fault
            cache::visit_program(&self.program, 1 + 2 * compiled.len() + called as usize, each);
        }
    }
    pub fn in_avals(&self) -> &[Aval] {
        &self.ins
    }
}

/// The log of this library at one level.
pub(super) struct Listener<'py>(Bound<'py, PyAny>, u32);
impl Listener<'_> {
    pub fn say(&self, text: String) -> PyResult<()> {
        self.0.call_method1("log", (self.1, text)).map(drop)
    }
}
/// The listener of compilations: logging if `loud`, otherwise listeners of the library's events, if
/// there are any.
pub(super) fn listener(py: Python, loud: bool) -> PyResult<Option<Listener>> {
    static LOGGER: Once<Py<PyAny>> = Once::new();
    if !loud && LOGGER.get().is_none() && imported(py, crate::once::intern!(py, "logging")).is_none() {
        return Ok(None); // there can be no listener
    }
    let named = || Ok::<_, PyErr>(py.import("logging")?.call_method1("getLogger", (crate::hooks::PACKAGE,))?.unbind());
    let logger = LOGGER.get_or_try_init(py, named)?.bind(py);
    let level = if loud { 30 } else { 10 };
    let heard = logger.call_method1(crate::once::intern!(py, "isEnabledFor"), (level,))?.is_truthy()?;
    Ok(heard.then(|| Listener(logger.clone(), level)))
}
/// Refuses unknown compiler options.
pub(super) fn check_compiler_options(options: &Bound<PyAny>) -> PyResult<()> {
    crate::hooks::check_compiler_options(options.py())?.call1((options,)).map(drop)
}

/// Refuses compiler options of a function that is part of another program.
fn nested_options(options: &Bound<PyAny>, name: &str) -> PyResult<()> {
    if options.is_none() || options.len()? == 0 {
        return Ok(());
    }
    let at = ferrax_ir::cx::place(crate::source::here()).unwrap_or_default();
    Err(pyo3::exceptions::PyValueError::new_err(format!(
        "`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options={} specified on a nested jit with name: {name} and source \
         info: {at}",
        options.repr()?
    )))
}

/// Whether an input's value is looked at.
fn uses(p: &Program, i: usize) -> bool {
    let is = |a: &Atom| matches!(a, Atom::Var(v) if *v as usize == i);
    p.outs().iter().any(is) || p.eqns().iter().any(|e| e.args.iter().any(is))
}
/// Which inputs are donated: those given up that are used and fit a result. The user is warned of others. Over `several` devices parts fit parts, which is
/// seen when it is known how arguments lie.
pub(super) fn usable(py: Python, p: &Program, given_up: &[bool], several: bool) -> PyResult<Vec<bool>> {
    if !given_up.contains(&true) {
        return Ok(vec![]);
    }
    let mut outs = p.out_avals();
    let (mut donated, mut wasted) = (vec![false; p.n_ins()], vec![]);
    for (k, _) in given_up.iter().enumerate().filter(|g| *g.1) {
        let i = p.n_consts() + k;
        let a = &p.in_avals()[i];
        if !uses(p, i) {
            continue;
        }
        if several {
            donated[i] = true;
            continue;
        }
        match outs.iter().position(|o| o.dtype == a.dtype && o.shape == a.shape) {
            Some(o) => {
                outs.swap_remove(o);
                donated[i] = true;
            }
            None => wasted.push(a.long()),
        }
    }
    if !wasted.is_empty() {
        let text = format!("Some donated buffers were not usable: {}.", wasted.join(", "));
        let text = std::ffi::CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 2)?;
    }
    Ok(if donated.contains(&true) { donated } else { vec![] })
}
