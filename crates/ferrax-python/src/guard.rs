//! Transfers that `jax_transfer_guard` refuses or reports: what the host passes to an operation or a compiled program that
//! runs now, and arrays that `device_put` moves.
//!
//! ```text
//! with transfer_guard("disallow"):
//!     x + np.ones(3)                  # refused
//!     x + jax.device_put(np.ones(3))  # the user asked for the transfer
//!     jax.jit(lambda x: x + 1)(x)     # constants of a program are transferred with it
//! ```
//!
//! INVARIANT: only what the user's code passes is looked at, never what this library computes with.
use crate::aval::ShapedArray;
use crate::config::Flags;
use crate::device::PyDevice;
use crate::{hooks, whose};
use ferrax::device::Device;
use ferrax_ir::aval::Aval;
use ferrax_ir::value::Value;
use pyo3::prelude::*;

/// `v` was read from `x`, an object of the host, as an operand.
#[inline]
pub fn operand(x: &Bound<PyAny>, v: &Value, flags: Flags) -> PyResult<()> {
    if flags.guards_host() { handed_over(x, v) } else { Ok(()) }
}
#[cold]
fn handed_over(x: &Bound<PyAny>, v: &Value) -> PyResult<()> {
    if ferrax_ir::current().staging().is_some() {
        return Ok(());
    }
    let s = whose::standing();
    if !s.operators && !s.arguments {
        return Ok(());
    }
    // A number in the body of a function of ours is not the user's, unless it was given to the function. Bodies hold no arrays.
    let given = (!s.operators && !matches!(v, Value::Array(_))).then_some(x);
    transfer(x.py(), "host-to-device", false, &v.aval(), ferrax::eval::current_device(), given)
}

/// `device_put` copies a value from the host.
pub fn put_from_host(py: Python, v: &Value, to: Option<&'static Device>, flags: Flags) -> PyResult<()> {
    if !flags.guards_host() || v.is_tracer() {
        return Ok(());
    }
    transfer(py, "host-to-device", true, &v.aval(), to.unwrap_or_else(ferrax::eval::current_device), None)
}
/// `device_put` moves an array to another device.
pub fn put_from_device(
    py: Python,
    aval: &Aval,
    from: &'static Device,
    to: &'static Device,
    flags: Flags,
) -> PyResult<()> {
    if !flags.guards_devices() || from == to {
        return Ok(());
    }
    transfer(py, "device-to-device", true, aval, to, None)
}

fn transfer(
    py: Python,
    way: &str,
    explicit: bool,
    aval: &Aval,
    to: &'static Device,
    given: Option<&Bound<PyAny>>,
) -> PyResult<()> {
    let aval = ShapedArray(aval.clone());
    hooks::transfer(py)?.call1((way, explicit, aval, PyDevice(to), given)).map(|_| ())
}
