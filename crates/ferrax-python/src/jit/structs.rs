//! The results of a traced signature as a pytree of `ShapeDtypeStruct`, with what is known of where they will lie.
//!
//! ```text
//! jit(f, out_shardings=s).eval_shape(x)     // ShapeDtypeStruct(.., sharding=s)
//! ```
//!
//! INVARIANT: nothing runs. A sharding that is not known before the program is compiled is None.
use super::Variant;
use super::stages::sharding;
use crate::aval::{ShapedArray, shape_to_py};
use crate::placement;
use ferrax::device::Device;
use ferrax::parts::Layout;
use pyo3::prelude::*;
use pyo3::types::PyDict;

impl Variant {
    /// The results, each with the sharding that `place` gives for its number.
    pub(super) fn structs<'py>(
        &self,
        py: Python<'py>,
        place: impl Fn(usize) -> PyResult<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = crate::hooks::shape_dtype_struct(py)?;
        let mut leaves = vec![];
        for (i, a) in self.program.out_avals().iter().enumerate() {
            let keywords = PyDict::new(py);
            keywords.set_item("weak_type", a.weak)?;
            keywords.set_item("sharding", place(i)?)?;
            leaves.push(class.call((shape_to_py(py, &a.shape)?, crate::dtype::to_py(py, a.dtype)?), Some(&keywords))?);
        }
        self.out_def.unflatten(py, &mut leaves.into_iter())
    }
    /// Where result `i` will lie: as `out_shardings` say, on the device that the function is for, or as its type says; then on a mesh of devices
    /// if `concrete`.
    pub(super) fn place<'py>(
        &self,
        py: Python<'py>,
        i: usize,
        on: Option<&'static Device>,
        concrete: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(requested) = self.laid.as_ref().and_then(|l| l.out(i)) {
            return placement::sharding(py, requested).map(Some);
        }
        if let Some(device) = on {
            return sharding(py, device).map(Some);
        }
        let aval = &self.program.out_avals()[i];
        if aval.cut.is_none() {
            return Ok(None);
        }
        match if concrete { Layout::of_cut(aval.cut) } else { None } {
            Some(l) => placement::sharding(py, &l).map(Some),
            None => ShapedArray(aval.clone()).sharding(py).map(Some),
        }
    }
}
