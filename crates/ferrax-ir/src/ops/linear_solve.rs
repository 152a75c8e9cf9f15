//! custom_linear_solve: the x of `matvec(x) = b`, as the user's `solve` finds it; differentiated and transposed as the linear map that it is.
//!
//! ```text
//! x, aux.. = solve(b)        dx = solve(db - dA x)        ct of b = transpose_solve(ct of x)
//! ```
//!
//! Operands: what matvec, vecmat, solve and transpose_solve capture, as many as `const_lengths` says, then the leaves of b. Each program
//! takes its captures and then leaves like b's; both solves may return more behind x, which has no derivative.
use super::call::fronts;
use crate::aval::{Aval, same_avals};
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::effects::Effects;
use crate::error::{Res, type_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, nonzero, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::primitive;
use crate::program::{Program, mismatch};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::sync::Arc;

primitive! {
    pub struct LinearSolve = "custom_linear_solve" {
        const_lengths: Dims,
        /// matvec, vecmat, solve, transpose_solve. The second and fourth both exist, or the map has no transpose.
        jaxprs: Vec<Option<Arc<Program>>>,
    }
}
const MATVEC: usize = 0;
const SOLVE: usize = 2;

impl LinearSolve {
    fn n_consts(&self) -> usize {
        self.const_lengths.iter().sum()
    }
    /// The captures of program k among values that correspond to the operands.
    fn consts<'a, T>(&self, k: usize, x: &'a [T]) -> &'a [T] {
        let at = self.const_lengths[..k].iter().sum();
        &x[at..][..self.const_lengths[k]]
    }
    fn program(&self, k: usize) -> Res<&Arc<Program>> {
        match self.jaxprs.get(k) {
            Some(Some(p)) if self.const_lengths.len() == self.jaxprs.len() => Ok(p),
            _ => type_err("custom_linear_solve needs the programs of matvec and solve"),
        }
    }
    /// The solve of the transposed system.
    fn transposed(&self) -> Option<LinearSolve> {
        let [a, at, s, st] = &self.jaxprs[..] else { return None };
        if at.is_none() || st.is_none() {
            return None;
        }
        let n = &self.const_lengths;
        Some(LinearSolve {
            const_lengths: [n[1], n[0], n[3], n[2]].into_iter().collect(),
            jaxprs: vec![at.clone(), a.clone(), st.clone(), s.clone()],
        })
    }
    /// x and the values after it, of which only x has a derivative: that of the right-hand side
    /// `b`.
    fn solved(&self, cx: &dyn Cx, consts: &[Value], b: &[Value]) -> Res<Vec<Value>> {
        let mut x = cx.bind(&self.clone().into(), &cat(&[consts, b]))?.into_vec();
        x.truncate(b.len());
        Ok(x)
    }
}
impl Rules for LinearSolve {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (matvec, solve) = (self.program(MATVEC)?, self.program(SOLVE)?);
        if x.len() < self.n_consts() {
            return type_err("custom_linear_solve has fewer operands than its programs capture");
        }
        let b = &x[self.n_consts()..];
        for (k, p) in self.jaxprs.iter().enumerate() {
            let Some(p) = p else { continue };
            let ins = cat(&[self.consts(k, x), b]);
            if !same_avals(&ins, p.in_avals()) {
                return Err(mismatch("custom_linear_solve", &ins, p.in_avals()));
            }
        }
        if !same_avals(b, &matvec.out_avals()) || solve.n_outs() < b.len() {
            return Err(mismatch("custom_linear_solve", b, &matvec.out_avals()));
        }
        Ok(solve.out_avals().into())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        let (consts, b) = x.split_at(self.n_consts());
        let (da, db) = (self.consts(MATVEC, dx), &dx[consts.len()..]);
        let n = b.len();
        // dA x: the derivative of matvec at the solution, along its captures
        let moved: Vec<Tan> = if da.iter().any(Option::is_some) {
            let nz = cat(&[&nonzero(da), &vec![false; n]]);
            let (p, out_nz) = cx.recur().jvp(self.program(MATVEC)?, &nz, &vec![false; n], &[nz.len()], &[n])?;
            let (p, kept) = p.dce(&(0..p.n_outs()).map(|i| i >= n).collect::<Vec<_>>());
            let tangents: Vec<Value> = da.iter().flatten().cloned().collect();
            let args = cat(&[self.consts(MATVEC, x), &y[..n], &tangents]);
            spread(&out_nz, cx.inline(&p, &pick(&args, &kept))?)
        } else {
            vec![None; n]
        };
        let mut rhs = vec![];
        for ((db, moved), b) in db.iter().zip(moved).zip(b) {
            rhs.push(match (db, moved) {
                (Some(db), Some(m)) => Some(cx.sub(db, &m)?),
                (None, Some(m)) => Some(cx.neg(&m)?),
                (db, None) => db.clone().filter(|_| b.has_tangent()),
            });
        }
        let mut dy: Tans = smallvec![None; y.len()];
        if rhs.iter().any(Option::is_some) {
            let rhs = rhs.iter().zip(b).map(|(t, b)| cx.inst(t, &b.aval())).collect::<Res<Vec<_>>>()?;
            for (dy, t) in dy.iter_mut().zip(self.solved(cx, consts, &rhs)?) {
                *dy = Some(t);
            }
        }
        Ok((y, dy))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(back) = self.transposed() else {
            return type_err(
                "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve",
            );
        };
        let (consts, b) = x.split_at(self.n_consts());
        let known: Vec<Value> = consts.iter().map(|a| a.value().cloned()).collect::<Res<_>>()?;
        let swapped =
            cat(&[self.consts(1, &known), self.consts(0, &known), self.consts(3, &known), self.consts(2, &known)]);
        let cts = b.iter().zip(ct).map(|(b, ct)| cx.inst(ct, &b.aval())).collect::<Res<Vec<_>>>()?;
        let out = back.solved(cx, &swapped, &cts)?;
        let linear = b.iter().zip(out).map(|(b, ct)| b.is_linear().then_some(ct));
        Ok(std::iter::repeat_n(None, consts.len()).chain(linear).collect())
    }
    /// Every leaf of b and of the solution gets a batch axis; which of them need one is not
    /// examined.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let n = self.n_consts();
        let mut jaxprs = vec![];
        for (k, p) in self.jaxprs.iter().enumerate() {
            let lanes: Vec<bool> = self.consts(k, d).iter().map(Option::is_some).collect();
            let lanes = cat(&[&lanes, &vec![true; x.len() - n]]);
            let batched = |p: &Arc<Program>| cx.recur().batch(p, ax, &lanes, &vec![true; p.n_outs()]);
            jaxprs.push(p.as_ref().map(batched).transpose()?.map(|p| p.0));
        }
        let mut args = fronts(cx, &x[..n], &d[..n])?;
        for (b, d) in x[n..].iter().zip(&d[n..]) {
            args.push(cx.batch_at(b, *d, ax.n, 0)?);
        }
        let y = cx.bind_body(&LinearSolve { jaxprs, ..self.clone() }.into(), &args)?;
        let axes = smallvec![Some(0); y.len()];
        Ok((y, axes))
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        let all: Vec<usize> = (0..x.len()).collect();
        Ok(Some((self.program(SOLVE)?.clone(), cat(&[self.consts(SOLVE, &all), &all[self.n_consts()..]]))))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        b.inline(self.program(SOLVE)?, &cat(&[self.consts(SOLVE, x), &x[self.n_consts()..]]))
    }
}
impl BodyRules for LinearSolve {
    /// The map is indivisible: it is recorded whole.
    fn split(&self, _: &dyn Cx, rec: &dyn Cx, x: &[Value], _: &[bool]) -> Res<Values> {
        rec.record(&self.clone().into(), x)
    }
    fn dce(&self, _: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        None
    }
    fn vary_alike(&self) -> bool {
        true
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        if self.jaxprs.iter().flatten().all(|p| p.held().is_empty()) {
            return None;
        }
        let mut open = LinearSolve { const_lengths: Dims::default(), jaxprs: vec![] };
        let mut args = Values::new();
        for (k, p) in self.jaxprs.iter().enumerate() {
            let (p, held) = p.as_ref().map(|p| p.release()).unzip();
            let held = held.unwrap_or_default();
            open.const_lengths.push(held.len() + self.const_lengths[k]);
            open.jaxprs.push(p);
            args.extend(held);
            args.extend(self.consts(k, x).iter().cloned());
        }
        args.extend(x[self.n_consts()..].iter().cloned());
        Some((open.into(), args))
    }
    fn effects(&self) -> Effects {
        let mut all = Effects::default();
        self.jaxprs.iter().flatten().for_each(|p| all.join(p.effects()));
        all
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        self.jaxprs.iter().flatten().collect()
    }
}
