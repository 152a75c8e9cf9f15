//! `pmap`: a function on every device at once, a slice each.
//!
//! ```
//! use ferrax::{PmapOptions, Tensor, device, pmap_with, psum};
//! let n = device::cpus().len(); // one, if FERRAX_NUM_CPU_DEVICES does not say more
//! let x = Tensor::ones(&[n, 3]);
//! let o = PmapOptions { name: Some("devices"), ..PmapOptions::default() };
//! let y = pmap_with(o, |row: &Tensor| row / psum(row.sum(), "devices"))(&x)?;
//! assert!((y.sum().item() - 1.0).abs() < 1e-6);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! Results stay on the devices that made them, and a `pmap` that takes them runs there. Inside `jit`, `grad` or `vmap` it means the same.
use super::batching::{front, spread};
use super::compiled::{TraceKey, locked};
use super::{Output, flat, traced_at, unflat};
use crate::device::Device;
use crate::mistakes::{self, catch};
use crate::tensor::Tensor;
use crate::tree::{Outline, Tree};
use ferrax_ir::cx::{AxisKind, NamedAxis, bind, current, name_axes};
use ferrax_ir::effects::Name;
use ferrax_ir::ops::pmap::{Places, Pmap};
use ferrax_ir::{Aval, Error, Program, Res, Value};
use ferrax_transform as transform;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Where the slices are, and which devices take them. Axes are given as [`crate::VmapOptions`] has them.
#[derive(Clone, Debug)]
pub struct PmapOptions<'a> {
    /// The axes of the argument's tensors that are cut, a slice for each device; `None`: all devices get the same.
    pub in_axes: &'a [Option<i64>],
    /// The axes on which results are stacked; `None`: that of the first device.
    pub out_axes: &'a [Option<i64>],
    /// The name by which collectives ([`crate::psum`], ..) reach the other devices.
    pub name: Option<&'a str>,
    /// The devices, as many as there are slices; none for the first ones.
    pub devices: &'a [&'static Device],
}
impl Default for PmapOptions<'_> {
    fn default() -> Self {
        PmapOptions { in_axes: &[Some(0)], out_axes: &[Some(0)], name: None, devices: &[] }
    }
}

/// `f` on every slice of every tensor along axis 0, each on a device of its own; results stacked along axis 0.
///
/// ```
/// use ferrax::{Tensor, device, pmap};
/// let x = Tensor::ones(&[device::cpus().len(), 3]);
/// assert_eq!(pmap(|row: &Tensor| row.sum())(&x)?.shape(), [device::cpus().len()]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// `Value` for sizes that differ, or more slices than devices (`FERRAX_NUM_CPU_DEVICES`, or [`crate::device::set_num_cpu_devices`], gives
/// a process several); what `f` returns.
pub fn pmap<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    pmap_with(PmapOptions::default(), f)
}
/// `f` on every slice, each on a device of its own, as the options say.
///
/// # Errors
/// Those of [`pmap`].
pub fn pmap_with<X: Tree, Y: Tree, R: Output<Y>>(
    options: PmapOptions<'_>,
    f: impl Fn(&X) -> R,
) -> impl Fn(&X) -> Res<Y> {
    let traces: SpreadTraces<Y> = Mutex::default();
    move |x| run(&f, x, &options, &traces)
}

struct SpreadTrace<Y> {
    program: Arc<Program>,
    consts: Vec<Value>,
    like: Y,
}
type SpreadTraces<Y> = Mutex<HashMap<TraceKey<(usize, Vec<bool>)>, Arc<SpreadTrace<Y>>>>;

fn run<X: Tree, Y: Tree, R: Output<Y>>(
    f: &impl Fn(&X) -> R,
    x: &X,
    o: &PmapOptions<'_>,
    traces: &SpreadTraces<Y>,
) -> Res<Y> {
    mistakes::init();
    let leaves = flat(x);
    let axes = spread("pmap in_axes", o.in_axes, &Outline::of(x))?;
    let at = |(a, v): (&Option<i64>, &Value)| a.map(|a| front(a, v.rank())).transpose();
    let dims = axes.iter().zip(&leaves).map(at).collect::<Res<Vec<_>>>()?;
    let n = transform::batch_size(&leaves, &dims).map_err(of_pmap)?;
    if !o.devices.is_empty() && o.devices.len() != n {
        return Err(Error::value(format!("pmap was given {} devices for {n} slices", o.devices.len())));
    }
    let cx = current();
    let cut = |(v, d): (&Value, &Option<usize>)| d.map_or(Ok(v.clone()), |d| cx.move_axis(v, d, 0));
    let args: Vec<Value> = leaves.iter().zip(&dims).map(cut).collect::<Res<_>>()?;
    let mapped: Vec<bool> = dims.iter().map(Option::is_some).collect();
    let axis: Name = o.name.unwrap_or("<axis>").into();
    let t = traced(f, x, &args, (n, &mapped), &axis, traces)?;
    let op = Pmap {
        axis_name: axis,
        axis_size: n,
        call_jaxpr: t.program.clone(),
        mapped: std::iter::repeat_n(false, t.consts.len()).chain(mapped).collect(),
        name: "pmap".into(),
        devices: Places(o.devices.iter().map(|d| d.id).collect()),
        donated: None,
    };
    let all: Vec<Value> = t.consts.iter().cloned().chain(args).collect();
    let y = bind(&op.into(), &all)?;
    let axes = spread("pmap out_axes", o.out_axes, &Outline::of(&t.like))?;
    let place = |(v, a): (Value, Option<i64>)| match a {
        Some(a) => match front(a, v.rank())? {
            0 => Ok(v),
            to => cx.move_axis(&v, 0, to),
        },
        None => catch(|| Ok(Tensor(v).narrow(0, 0, 1).squeeze(0).0)),
    };
    Ok(unflat(&t.like, y.into_iter().zip(axes).map(place).collect::<Res<Vec<_>>>()?))
}
fn traced<X: Tree, Y: Tree, R: Output<Y>>(
    f: &impl Fn(&X) -> R,
    x: &X,
    args: &[Value],
    (n, mapped): (usize, &[bool]),
    axis: &Name,
    traces: &SpreadTraces<Y>,
) -> Res<Arc<SpreadTrace<Y>>> {
    let key = TraceKey::new((n, mapped.to_vec()), x, args);
    if let Some(t) = locked(traces).get(&key) {
        return Ok(t.clone());
    }
    let element = |(v, m): (&Value, &bool)| if *m { v.aval().unbatched(0) } else { v.aval() };
    let types: Vec<Aval> = args.iter().zip(mapped).map(element).collect();
    let (program, consts, like) = {
        let _axes = name_axes([NamedAxis { name: axis.clone(), size: n, kind: AxisKind::Devices }]);
        traced_at(f, x, &types)?
    };
    if program.effects().ordered && n > 1 {
        return Err(Error::value(format!("ordered effects are not supported on more than one device; pmap has {n}")));
    }
    let t = Arc::new(SpreadTrace { program: Arc::new(program.open()), consts, like });
    // what closed over a tracer belongs to the caller's trace
    if !t.consts.iter().any(Value::is_tracer) {
        locked(traces).insert(key, t.clone());
    }
    Ok(t)
}
fn of_pmap(e: Error) -> Error {
    match e {
        Error::Raised(k, m) => Error::Raised(k, m.replacen("vmap", "pmap", 1)),
        e => e,
    }
}
