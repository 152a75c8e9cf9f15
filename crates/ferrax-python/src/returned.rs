//! Bad numbers made inside a function of this library, until that function returns.
//!
//! The interpreter's profiling hook watches the function's frame from the bad number to the frame's
//! end and checks the returned values: a bad number among them raises the error there; a masked one
//! raises nothing.
//!
//! INVARIANT: a hook that was installed before receives every event, and is restored when the frame
//! has ended.
use crate::array::value::held;
use crate::config;
use crate::debug;
use crate::tree::{Leaves, TreeDef};
use crate::whose;
use ferrax_ir::value::Values;
use pyo3::prelude::*;

/// Installs the handler of bad numbers.
pub fn install() {
    debug::install(expect);
}
/// Raises `error` once the current function of this library returns a bad value. Raises it at once
/// where the user's own code runs, and where a profiler is installed that is not a function.
fn expect(py: Python, error: PyErr) -> PyResult<()> {
    let Some(frame) = whose::entered(py)? else { return Err(error) };
    let before = py.import("sys")?.call_method0("getprofile")?;
    if let Ok(watch) = before.cast::<ReturnWatch>()
        && watch.get().frame.bind(py).is(&frame)
    {
        return Ok(());
    }
    if !before.is_none() && !before.is_callable() {
        return Err(error);
    }
    let watch = ReturnWatch { frame: frame.unbind(), before: before.unbind(), error: error.into_value(py).into_any() };
    py.import("sys")?.call_method1("setprofile", (Bound::new(py, watch)?,))?;
    Ok(())
}

/// The hook.
#[pyclass(frozen, module = "ferrax._core")]
struct ReturnWatch {
    frame: Py<PyAny>,
    before: Py<PyAny>,
    error: Py<PyAny>,
}
#[pymethods]
impl ReturnWatch {
    fn __call__(slf: &Bound<Self>, frame: &Bound<PyAny>, event: &str, given: &Bound<PyAny>) -> PyResult<()> {
        let py = slf.py();
        // the interpreter holds the one reference to a hook, and drops it when another takes its place
        let kept = slf.clone();
        let watch = kept.get();
        let before = watch.before.bind(py);
        if !before.is_none() {
            before.call1((frame, event, given))?;
        }
        if event != "return" || !frame.is(watch.frame.bind(py)) {
            return Ok(());
        }
        py.import("sys")?.call_method1("setprofile", (before,))?;
        let mut leaves = Leaves::new();
        TreeDef::default().flatten(given, None, &mut leaves)?;
        let values: Values = leaves.iter().filter_map(|x| held(x).cloned()).collect();
        match debug::found(py, "", &values, config::flags()) {
            Ok(()) => Ok(()),
            Err(_) => Err(PyErr::from_value(watch.error.bind(py).clone())),
        }
    }
}
