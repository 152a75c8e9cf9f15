//! xla_pmap: the body on each of `axis_size` devices, operand axis 0 spread over them where `mapped`; results are stacked. numpy: a
//! loop over axis 0.
//!
//! ```text
//! out[i] = call_jaxpr(x[i] where mapped, x elsewhere), on device i; collectives over `axis_name` see all i
//! ```
//!
//! Run eagerly, it uses the devices. Inside a program that is staged (`jit` of `pmap`) it is a batched call on the program's own device.
use super::call::{Call, lanes, residuals};
use super::reduce::Monoid;
use crate::aval::{Aval, same_avals};
use crate::cx::{Arg, Axis, AxisKind, Cx, Dim, Tan, with_axis};
use crate::effects::{Effects, Name};
use crate::error::{Error, Res, value_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, count, merge, nonzero, not, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::program::{Program, mismatch};
use crate::value::{Tag, Value, Values};
use std::sync::Arc;

primitive! {
    pub struct Pmap = "xla_pmap" {
        axis_name: Name,
        axis_size: usize,
        call_jaxpr: Arc<Program>,
        mapped: Vec<bool>,
        name: Arc<str>,
        devices: Places = hidden,
        /// The operands that are donated. Derivatives and batches donate none.
        donated: Option<Vec<bool>> = hidden,
    }
}

/// The devices to run on, by the executor's numbers; none for any.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Places(pub Vec<usize>);
impl ParamValue for Places {
    fn words() -> String {
        "a tuple of devices".into()
    }
    fn to_param(&self) -> Param {
        self.0.to_param()
    }
    fn from_param(p: &Param) -> Option<Places> {
        Vec::from_param(p).map(Places)
    }
    fn missing(_: &[Aval]) -> Option<Places> {
        Some(Places::default())
    }
}

/// The data with which an executor runs the body on several devices.
pub struct Spread<'a> {
    pub axis: &'a Name,
    pub n: usize,
    pub body: &'a Arc<Program>,
    pub mapped: &'a [bool],
    pub donated: &'a [bool],
    pub places: &'a [usize],
}

impl Pmap {
    fn with(&self, call_jaxpr: Arc<Program>, mapped: Vec<bool>) -> Op {
        Pmap { call_jaxpr, mapped, donated: None, ..self.clone() }.into()
    }
    pub fn spread(&self) -> Spread<'_> {
        Spread {
            axis: &self.axis_name,
            n: self.axis_size,
            body: &self.call_jaxpr,
            mapped: &self.mapped,
            donated: self.donated.as_deref().unwrap_or_default(),
            places: &self.devices.0,
        }
    }
    /// Works on the body where its axis is in scope: the user's rules in it may name it.
    fn inside<T>(&self, f: impl FnOnce() -> T) -> T {
        with_axis(Some(&self.axis_name), self.axis_size, AxisKind::Devices, f)
    }
    fn element(&self, a: &Aval, mapped: bool) -> Aval {
        if mapped { a.unbatched(0) } else { a.clone() }
    }
}
impl Rules for Pmap {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let n = self.axis_size;
        if let Some((a, _)) = x.iter().zip(&self.mapped).find(|(a, m)| **m && a.shape.first() != Some(&n)) {
            return value_err(format!(
                "pmap got an operand {} whose leading axis is not of the mapped size {n}",
                a.long()
            ));
        }
        let ins: Vec<Aval> = x.iter().zip(&self.mapped).map(|(a, m)| self.element(a, *m)).collect();
        if !same_avals(&ins, self.call_jaxpr.in_avals()) {
            return Err(mismatch("pmap", &ins, self.call_jaxpr.in_avals()));
        }
        Ok(self.call_jaxpr.out_avals().iter().map(|a| a.batched(n, 0)).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let (nz, m) = (nonzero(dx), self.call_jaxpr.n_outs());
        let (body, out) = self.inside(|| cx.recur().jvp(&self.call_jaxpr, &nz, &vec![false; m], &[x.len()], &[m]))?;
        let args: Values = x.iter().cloned().chain(dx.iter().flatten().cloned()).collect();
        let mapped = cat(&[&self.mapped, &pick(&self.mapped, &nz)]);
        let mut y = cx.bind_body(&self.with(body, mapped), &args)?.into_vec();
        let dy = spread(&out, y.split_off(m));
        Ok((y.into(), dy.into()))
    }
    /// The cotangent of an operand that all devices share is the sum of theirs.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let lin: Vec<bool> = x.iter().map(Arg::is_linear).collect();
        let (body, nz) =
            self.inside(|| cx.recur().transpose(&self.call_jaxpr, &lin, &nonzero(ct), &vec![false; count(&lin)]))?;
        let cts: Vec<Value> = ct.iter().flatten().cloned().collect();
        let args: Values = x.iter().filter_map(|a| a.known().cloned()).chain(cts.iter().cloned()).collect();
        let mapped = cat(&[&pick(&self.mapped, &not(&lin)), &vec![true; cts.len()]]);
        let out = cx.bind_body(&self.with(body, mapped), &args)?;
        let shared = pick(&pick(&self.mapped, &lin), &nz);
        let sum = |(v, m): (Value, bool)| if m { Ok(v) } else { cx.reduce(Monoid::Sum, &v, [0].into()) };
        let out: Vec<Value> = out.into_iter().zip(shared).map(sum).collect::<Res<_>>()?;
        Ok(merge(&lin, spread(&nz, out), vec![None; x.len()]).into())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (body, out) =
            self.inside(|| cx.recur().batch(&self.call_jaxpr, ax, &lanes(d), &vec![false; self.call_jaxpr.n_outs()]))?;
        // the lanes stand behind the devices' axis
        let place = |((v, d), m): ((&Value, &Dim), &bool)| match d {
            Some(d) => cx.move_axis(v, *d, *m as usize),
            None => Ok(v.clone()),
        };
        let args: Values = x.iter().zip(d).zip(&self.mapped).map(place).collect::<Res<_>>()?;
        let y = cx.bind_body(&self.with(body, self.mapped.clone()), &args)?;
        Ok((y, out.iter().map(|b| b.then_some(1)).collect()))
    }
    fn lower(&self, _: &mut Graph, _: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Err(Error::value("a pmap of several devices cannot run inside one device's program"))
    }
}
impl BodyRules for Pmap {
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        let n_out = self.call_jaxpr.n_outs();
        let sp = self.inside(|| cx.recur().split(&self.call_jaxpr, unk, &vec![false; n_out], &vec![true; x.len()]))?;
        let known_in = not(unk);
        let idle = sp.known.n_outs() == 0 && !sp.known.effects().io;
        let mut known = if idle {
            vec![]
        } else {
            cx.bind_body(&self.with(sp.known.clone(), pick(&self.mapped, &known_in)), &pick(x, &known_in))?.into_vec()
        };
        let new = known.split_off(count(&not(&sp.out_unk)));
        let res_mapped = sp.res.iter().map(|r| if let crate::cx::Residual::In(i) = r { self.mapped[*i] } else { true });
        let mapped: Vec<bool> = res_mapped.chain(pick(&self.mapped, unk)).collect();
        let args = cat(&[&residuals(&sp, x, new), &pick(x, unk)]);
        Ok(merge(&sp.out_unk, rec.record_body(&self.with(sp.unknown.clone(), mapped), &args)?, known).into())
    }
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        let (body, kept) = self.call_jaxpr.dce(used);
        Some((self.with(body, pick(&self.mapped, &kept)), kept, used.to_vec()))
    }
    /// On one device: a call with the devices as lanes.
    fn stage(&self, cx: &dyn Cx, x: &[Value]) -> Res<Option<(Op, Values)>> {
        let tag = Tag::new("pmap");
        let ax = Axis { n: self.axis_size, name: Some(&self.axis_name), tag: &tag, kind: AxisKind::Devices };
        let all = vec![true; self.call_jaxpr.n_outs()];
        let (body, _) = cx.recur().batch(&self.call_jaxpr, ax, &self.mapped, &all)?;
        Ok(Some((Call::new(&self.name, body).into(), x.into())))
    }
    fn vary_alike(&self) -> bool {
        true
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        if self.call_jaxpr.held().is_empty() {
            return None;
        }
        let (body, held) = self.call_jaxpr.release();
        let mapped = cat(&[&vec![false; held.len()], &self.mapped]);
        Some((self.with(body, mapped), held.into_iter().chain(x.iter().cloned()).collect()))
    }
    fn effects(&self) -> Effects {
        let mut e = self.call_jaxpr.effects().clone();
        e.axes.retain(|a| *a != self.axis_name);
        e
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        vec![&self.call_jaxpr]
    }
}
