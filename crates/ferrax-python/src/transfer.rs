//! Transfers of arrays between devices.
//!
//! INVARIANT: an array that a user put on a device is committed to it; one that was moved along
//! with its operands is not.
use crate::array::value::{self, held};
use crate::array::{ArrayImpl, PyArray};
use crate::config;
use crate::device::{PyDevice, from_py_object};
use crate::dtype;
use crate::error::IntoPyResult;
use crate::guard;
use crate::placement;
use ferrax::array;
use ferrax::device::Device;
use ferrax_ir::aval::Aval;
use ferrax_ir::cut::Lenient;
use ferrax_ir::error::Res;
use ferrax_ir::layout::Grid;
use ferrax_ir::ops::collective::Names;
use ferrax_ir::ops::device_put::DevicePut;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::ops::reshard::Reshard;
use ferrax_ir::ops::sharding_constraint::ShardingConstraint;
use ferrax_ir::value::Value;
use ferrax_kernel::Buffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// device_put(x, device, src): an array of x's elements on the device; `device` None leaves an
/// array where it is. The cotangent is moved to `src`, or by default to the device of x.
#[pyfunction]
#[pyo3(signature = (x, device=None, src=None))]
pub fn device_put<'py>(
    x: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    src: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let flags = config::flags();
    let to = match device {
        Some(d) if placement::is_over_mesh(d)? => return lay_out(x, d),
        Some(d) => from_py_object(d)?,
        None => None,
    };
    to.map_or(Ok(()), array::check_local).py(py)?;
    let of_host = held(x).is_none();
    if of_host && x.is_instance(dtype::ndarray(py)?)? {
        let v = value::from_ndarray_on(x, flags.x64(), to)?;
        guard::put_from_host(py, &v, to, flags)?;
        return value::wrap(py, v);
    }
    let Some(v) = value::operand(x, flags.unguarded())? else {
        return Err(value::no_array(x)?);
    };
    if of_host {
        guard::put_from_host(py, &v, to, flags)?;
    } else if let (Value::Array(a), Some(to)) = (&v, to)
        && flags.guards_devices()
    {
        guard::put_from_device(py, a.aval(), array::data(a).py(py)?.device, to, flags)?;
    }
    match (v, to) {
        (Value::Lit(l), to) => {
            let d = to.unwrap_or_else(ferrax::eval::current_device);
            let a = array::from_lit(&l, d).py(py)?;
            value::wrap(py, Value::Array(array::put(&a, d, to.is_some()).py(py)?))
        }
        (Value::Array(a), Some(d)) => value::wrap(py, Value::Array(py.detach(|| array::put(&a, d, true)).py(py)?)),
        (v, Some(d)) => value::wrap(py, put_traced(&v, d, src.map_or(Ok(None), from_py_object)?).py(py)?),
        (v, None) => value::wrap(py, v),
    }
}
/// The equation that puts a value on a device. Its cotangent goes back to where the value is, if that is known.
pub fn put_traced(v: &Value, to: &Device, src: Option<&Device>) -> Res<Value> {
    let src = match v.concrete() {
        _ if src.is_some() => Places(src.iter().map(|d| d.id).collect()),
        Some(Value::Array(a)) => Places(vec![array::data(a)?.device.id]),
        _ => Places::default(),
    };
    let op = DevicePut { devices: Places(vec![to.id]), srcs: src };
    Ok(ferrax_ir::bind(&op.into(), std::slice::from_ref(v))?.remove(0))
}
/// An array of `x`, any object that converts to one, with a sharding over a mesh of devices. A
/// tracer is unchanged.
fn lay_out<'py>(x: &Bound<'py, PyAny>, sharding: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, flags) = (x.py(), config::flags());
    let v = if held(x).is_none() && x.is_instance(dtype::ndarray(py)?)? {
        value::from_ndarray(x, flags.x64())?
    } else {
        match value::operand(x, flags.unguarded())? {
            Some(v) => v,
            None => return Err(value::no_array(x)?),
        }
    };
    let a = match &v {
        Value::Array(a) => a.clone(),
        Value::Lit(l) => array::from_lit(l, ferrax::eval::current_device()).py(py)?,
        Value::Tracer(_) => return reshard(x, sharding),
    };
    let Some(to) = placement::layout(sharding, a.aval().rank())? else { return value::wrap(py, v) };
    let made = py.detach(|| ferrax::spmd::lay_out(&a, &to)).py(py)?;
    ArrayImpl::object(py, Value::Array(made))
}
/// array_of_parts(shape, sharding, parts, weak_type): the array whose part on the i-th device of
/// the sharding is `parts[i]`, an array on that device.
#[pyfunction]
pub fn array_of_parts<'py>(
    py: Python<'py>,
    shape: Vec<usize>,
    sharding: &Bound<'py, PyAny>,
    parts: Vec<Bound<'py, PyArray>>,
    weak_type: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let arrays = parts.iter().map(|x| match &x.get().value {
        Value::Array(a) => Ok(a.clone()),
        _ => Err(PyTypeError::new_err("the parts of an array are concrete arrays")),
    });
    let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
    let first = arrays.first().ok_or_else(|| PyValueError::new_err("an array has at least one part"))?;
    let aval = Aval { weak: weak_type, ..Aval::new(first.aval().dtype, &shape) };
    let Some(l) = placement::layout(sharding, shape.len())? else {
        return value::wrap(py, Value::Array(array::again(first).py(py)?));
    };
    let part = l.part_shape(&shape).py(py)?;
    let mut buffers: Vec<Buffer> = vec![];
    for (a, d) in arrays.iter().zip(l.devices()) {
        if a.aval().shape[..] != part[..] || a.aval().dtype != aval.dtype {
            return Err(PyValueError::new_err(format!(
                "a part of type {} where {:?} is wanted",
                a.aval().long(),
                &part[..]
            )));
        }
        buffers.push(array::single(&array::put(a, d, true).py(py)?).py(py)?.buffer);
    }
    ArrayImpl::object(py, Value::Array(array::in_parts(aval, l, buffers).py(py)?))
}
/// use_mesh(sharding): from now on values without a placement go to the mesh of the sharding; None:
/// to the default device.
#[pyfunction]
pub fn use_mesh(sharding: Option<&Bound<PyAny>>) -> PyResult<()> {
    let place = sharding.map_or(Ok(None), |s| placement::layout(s, 0))?;
    ferrax::spmd::set_in_use(place);
    Ok(())
}
/// reshard(x, sharding): x, with a type that is cut by the sharding.
#[pyfunction]
pub fn reshard<'py>(x: &Bound<'py, PyAny>, sharding: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let Some(v) = value::operand(x, config::flags())? else { return Err(value::no_array(x)?) };
    let op = Reshard { dst_sharding: placement::cut(sharding, v.rank())? };
    if op.dst_sharding == v.cut() {
        return value::wrap(py, v);
    }
    value::wrap(py, ferrax_ir::bind(&op.into(), &[v]).py(py)?.remove(0))
}
/// resolved(f, args, kwargs): f(*args, **kwargs), in which nothing is refused because types leave it open how a result is cut.
#[pyfunction]
pub fn resolved<'py>(
    f: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let _resolved = Lenient::enter();
    f.call(args, Some(kwargs))
}
/// constrain(x, axes, spec, unconstrained, devices): x, which a partitioned program cuts along the
/// axes of these names; on these devices if any are given.
#[pyfunction]
pub fn constrain<'py>(
    x: &Bound<'py, PyAny>,
    axes: Vec<(String, usize)>,
    spec: Vec<Vec<String>>,
    unconstrained: Vec<usize>,
    devices: Vec<Bound<'py, PyDevice>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let Some(v) = value::operand(x, config::flags())? else { return Err(value::no_array(x)?) };
    let names = |n: Vec<String>| Names(n.into_iter().map(Into::into).collect());
    let mut spec: Vec<Names> = spec.into_iter().map(names).collect();
    spec.resize_with(v.rank(), || names(vec![]));
    let op = ShardingConstraint {
        mesh: Grid::new(axes.into_iter().map(|(name, n)| (name.into(), n))),
        spec,
        unconstrained_dims: unconstrained.into_iter().collect(),
        devices: Places(devices.iter().map(|d| d.get().0.id).collect()),
    };
    value::wrap(py, ferrax_ir::bind(&op.into(), &[v]).py(py)?.remove(0))
}
