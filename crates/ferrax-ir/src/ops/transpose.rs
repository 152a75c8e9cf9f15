//! transpose: output axis k is operand axis `permutation[k]`. numpy: `transpose`.
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Transpose = "transpose" {
        permutation: Dims,
    }
}
/// Whether `p` holds each of `0..n` once.
pub fn is_permutation(p: &[usize], n: usize) -> bool {
    p.len() == n && (0..n).all(|k| p.contains(&k))
}
impl Rules for Transpose {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("transpose takes 1 operand, got {}", x.len())) };
        if !is_permutation(&self.permutation, a.rank()) || a.tape > 0 {
            return type_err(format!(
                "transpose permutation isn't a permutation of operand dimensions, got permutation {} for operand shape {}.",
                self.permutation, a.shape
            ));
        }
        Ok(smallvec![a.with_shape(a.shape.pick(&self.permutation))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let mut inverse = self.permutation.clone();
        self.permutation.iter().enumerate().for_each(|(k, p)| inverse[*p] = k);
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.transpose(ct, inverse)).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let perm: Dims = std::iter::once(d).chain(self.permutation.iter().map(|&p| p + (p >= d) as usize)).collect();
        Ok((smallvec![cx.transpose(&x[0], perm)?], smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let Some(s) = &s[0] else { return Ok(None) };
        let s = s.moved(&|k| self.permutation.iter().position(|p| *p == k).unwrap_or(k));
        Ok(Some((smallvec![cx.bind1(self.clone(), x)?], smallvec![Some(s)])))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        self.permutation.iter().enumerate().for_each(|(d, k)| f.link(x[0].shape[*k], &[In(0, *k), Out(0, d)]));
        f
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let _ = out;
        Ok(smallvec![b.transpose(x[0], &self.permutation)])
    }
}
