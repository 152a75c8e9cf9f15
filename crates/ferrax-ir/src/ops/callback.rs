//! pure_callback, io_callback, debug_callback: the host's functions called from within a program, with the operands' bytes.
//!
//! A pure callback may be dropped, repeated or moved; the other two run as often as the program says, ordered ones in program order.
//! None has a derivative. Under `vmap` one is called for each lane in turn, or once for all if its `vmap_method` allows that.
use super::loops::lane_by_lane;
use super::with_zeros;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, AxisKind, Cx, Dim, Tan};
use crate::effects::Effects;
use crate::error::{Error, Res, not_linear};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Effectful, Rules, Tans};
use crate::param::{Member, Param, ParamValue};
use crate::primitive;
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::plan::{HostCall, HostFn};
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallbackKind {
    Pure,
    Io,
    Debug,
    Print,
}
impl Member for CallbackKind {
    const ALL: &'static [(CallbackKind, &'static str)] = &[
        (CallbackKind::Pure, "pure_callback"),
        (CallbackKind::Io, "io_callback"),
        (CallbackKind::Debug, "debug_callback"),
        (CallbackKind::Print, "debug_print"),
    ];
}

/// A function of the host over bytes. Equal if it is the same one.
#[derive(Clone)]
pub struct Callable {
    pub name: Arc<str>,
    /// The host's own data about the function.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
    /// Returns the function to call for the avals of operands and results: a batched call has other
    /// shapes than the original one.
    pub make: Arc<dyn Fn(&[Aval], &[Aval]) -> Arc<dyn HostFn> + Send + Sync>,
}
impl PartialEq for Callable {
    fn eq(&self, o: &Callable) -> bool {
        Arc::ptr_eq(&self.make, &o.make)
    }
}
impl Eq for Callable {}
impl Hash for Callable {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (Arc::as_ptr(&self.make) as *const u8 as usize).hash(h)
    }
}
impl std::fmt::Debug for Callable {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}
impl ParamValue for Callable {
    fn words() -> String {
        "a function of the host".into()
    }
    fn to_param(&self) -> Param {
        Param::Host(self.clone())
    }
    /// Text cannot name a function of the host.
    fn from_param(p: &Param) -> Option<Callable> {
        match p {
            Param::Host(f) => Some(f.clone()),
            _ => None,
        }
    }
}

primitive! {
    pub struct Callback = kind: CallbackKind {
        callback: Callable,
        ins: Vec<Aval> = hidden,
        ordered: bool = nonempty,
        result_avals: Vec<Aval>,
        vmap_method: Option<Arc<str>>,
    } always_none { sharding = hidden }
}
impl Effectful for Callback {
    fn effects(&self) -> Effects {
        match self.kind {
            CallbackKind::Pure => Effects::default(),
            kind => Effects::io(kind == CallbackKind::Io, self.ordered),
        }
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x)
    }
}

impl Rules for Callback {
    fn infer(&self, _: &[Aval]) -> Res<Avals> {
        Ok(self.result_avals.clone().into())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let silent = self.result_avals.is_empty() || dx.iter().all(Option::is_none);
        if !silent {
            return Err(Error::value(match self.kind {
                CallbackKind::Pure => {
                    "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients."
                }
                _ => {
                    "IO callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients."
                }
            }));
        }
        Ok(with_zeros(cx.bind(&self.clone().into(), x)?))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        match self.kind {
            CallbackKind::Pure => Err(Error::value(
                "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking gradients.",
            )),
            CallbackKind::Io => Err(Error::value("IO callbacks do not support transpose.")),
            _ => not_linear(self.kind.name()),
        }
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if self.kind == CallbackKind::Io && self.ordered && ax.kind == AxisKind::Lanes {
            return Err(Error::value("Cannot `vmap` ordered IO callback."));
        }
        let whole = match self.vmap_method.as_deref() {
            // each part calls it
            _ if ax.kind.is_manual() => None,
            Some("expand_dims" | "legacy_vectorized") => Some(1),
            Some("broadcast_all") => Some(ax.n),
            Some("sequential" | "sequential_unrolled") => None,
            None if self.kind != CallbackKind::Pure => None,
            other => {
                return Err(Error::not_implemented(format!(
                    "vmap is only supported for the {} primitive when vmap_method is one of 'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'. Got vmap_method={}.",
                    self.kind.name(),
                    other.unwrap_or("None")
                )));
            }
        };
        let Some(n) = whole else { return lane_by_lane(&self.clone().into(), cx, ax.n, x, d) };
        let as_it_is = self.vmap_method.as_deref() == Some("legacy_vectorized");
        let lanes = |(v, d): (&Value, &Dim)| match d {
            Some(d) => cx.move_axis(v, *d, 0),
            None if as_it_is => Ok(v.clone()),
            None => cx.expand(v, n, 0),
        };
        let x: Values = x.iter().zip(d).map(lanes).collect::<Res<_>>()?;
        let op = Callback {
            ins: x.iter().map(Value::aval).collect(),
            result_avals: self.result_avals.iter().map(|a| a.batched(ax.n, 0)).collect(),
            ..self.clone()
        };
        let y = cx.bind(&op.into(), &x)?;
        let dims = y.iter().map(|_| Some(0)).collect();
        Ok((y, dims))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::once(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let f = (self.callback.make)(&self.ins, out);
        Ok(b.callback(HostCall { name: self.callback.name.clone(), f }, x, out))
    }
}
