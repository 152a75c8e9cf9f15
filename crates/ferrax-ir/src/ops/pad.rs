//! pad: `out[lo + i (1 + interior)] = x[i]`, the padding value elsewhere; negative `lo` and `hi` cut. numpy: `pad`.
use super::reduce::Monoid;
use super::slice::Slice;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, truth, values1, zero};
use crate::error::{Res, type_err, value_err};
use crate::factors::{Factors, Moved, Run};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::primitive;
use crate::support::{Move, Supports, Within};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::sync::Arc;

primitive! {
    /// Operands: array, padding value (rank 0). One (lo, hi, interior) for each axis.
    pub struct Pad = "pad" {
        padding_config: Box<[(i64, i64, i64)]>,
    }
}
impl Pad {
    fn size(&self, k: usize, n: usize) -> Option<usize> {
        let (lo, hi, int) = self.padding_config[k];
        // the transpose takes them back
        lo.checked_neg()?;
        hi.checked_neg()?;
        let inner = int.checked_mul(n.saturating_sub(1) as i64)?;
        usize::try_from(lo.checked_add(hi)?.checked_add(inner)?.checked_add(n as i64)?).ok()
    }
}
impl Pad {
    /// The first of `n` elements along axis k that is kept in a result of size `out`, and the
    /// number of kept elements. (In 128 bits, which no padding can overflow.)
    fn kept(&self, k: usize, n: usize, out: usize) -> (usize, usize) {
        let (lo, _, int) = self.padding_config[k];
        let above = |x: i128| -(-x).div_euclid(int as i128 + 1);
        let first = above(-(lo as i128)).clamp(0, n as i128);
        let end = above(out as i128 - lo as i128).clamp(first, n as i128);
        (first as usize, (end - first) as usize)
    }
    /// The cotangent of an operand some of whose elements were cut off: reads the kept positions,
    /// and pads with zeros.
    fn transpose_of_cut(&self, cx: &dyn Cx, a: &Aval, ct: &Value) -> Res<Value> {
        let (mut start, mut limit, mut strides) = (Dims::default(), Dims::default(), Dims::default());
        let mut around = vec![];
        for (k, (lo, _, int)) in self.padding_config.iter().enumerate() {
            let (first, n) = self.kept(k, a.shape[k], ct.shape()[k]);
            let step = *int as i128 + 1;
            let at = if n == 0 { 0 } else { *lo as i128 + first as i128 * step };
            start.push(at as usize);
            limit.push(if n == 0 { 0 } else { (at + (n as i128 - 1) * step + 1) as usize });
            strides.push(if n < 2 { 1 } else { step as usize });
            around.push((first as i64, (a.shape[k] - first - n) as i64, 0));
        }
        let read = cx.bind1(
            Slice { limit_indices: limit, start_indices: start, strides: Some(strides) },
            std::slice::from_ref(ct),
        )?;
        cx.bind1(Pad { padding_config: around.into() }, &[read, zero(ct.dtype())])
    }
}
impl Rules for Pad {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a, v] = x else { return type_err(format!("pad takes 2 operands, got {}", x.len())) };
        if a.dtype != v.dtype {
            return type_err(format!(
                "pad operand and padding_value must be same dtype: got {} and {}.",
                a.dtype.long(),
                v.dtype.long()
            ));
        }
        if a.tape > 0 {
            return type_err(format!("pad does not accept {a}"));
        }
        if v.rank() != 0 {
            return value_err(format!("padding_value must be a scalar; got np.shape(padding_value)={}", v.shape));
        }
        let show = || self.padding_config.iter().map(|c| format!("{c:?}")).collect::<Vec<_>>().join(", ");
        if self.padding_config.len() != a.rank() {
            return value_err(format!(
                "length of padding_config must equal the number of axes of operand, got padding_config ({}) for operand shape {}",
                show(),
                a.shape
            ));
        }
        if self.padding_config.iter().any(|c| c.2 < 0) {
            return value_err(format!(
                "interior padding in padding_config must be nonnegative, got padding_config ({},)",
                show()
            ));
        }
        let shape: Option<Dims> = (0..a.rank()).map(|k| self.size(k, a.shape[k])).collect();
        let Some(shape) = shape else {
            let size = |(c, n): (&(i64, i64, i64), &usize)| {
                let inner = c.2 as i128 * n.saturating_sub(1) as i128;
                (c.0 as i128 + c.1 as i128 + inner + *n as i128).to_string()
            };
            let sizes: Vec<String> = self.padding_config.iter().zip(a.shape.iter()).map(size).collect();
            return value_err(format!(
                "Dimension size after padding is not at least 0, got result shape ({}{}), for padding_config ({}{}) and operand shape {}",
                sizes.join(", "),
                if sizes.len() == 1 { "," } else { "" },
                show(),
                if sizes.len() == 1 { "," } else { "" },
                a.shape
            ));
        };
        shape.checked(a.dtype.size())?;
        Ok(smallvec![Aval { weak: a.weak && v.weak, ..a.with_shape(shape) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let op: Op = self.clone().into();
        let y = cx.bind1(op.clone(), x)?;
        if dx[0].is_none() && dx[1].is_none() {
            return Ok((values1(y), smallvec![None]));
        }
        let t = [cx.inst(&dx[0], &x[0].aval())?, dx[1].clone().unwrap_or_else(|| lit(y.dtype(), 0.0))];
        Ok((values1(y), smallvec![Some(cx.bind1(op, &t)?)]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; 2]) };
        let a = x[0].aval();
        let whole = (0..a.rank()).all(|k| self.kept(k, a.shape[k], ct.shape()[k]).1 == a.shape[k]);
        let dx = if whole {
            // undo lo and hi, then the interior
            let config = self.padding_config.iter().map(|c| (-c.0, -c.1, 0)).collect();
            let cut = cx.bind1(Pad { padding_config: config }, &[ct.clone(), zero(ct.dtype())])?;
            let strides: Dims = self.padding_config.iter().map(|c| c.2 as usize + 1).collect();
            let start = (0..a.rank()).map(|_| 0).collect();
            let strided = Slice { limit_indices: Dims::new(cut.shape()), start_indices: start, strides: Some(strides) };
            cx.bind1(strided, &[cut])?
        } else {
            self.transpose_of_cut(cx, &a, ct)?
        };
        let all = |v: &Value| cx.reduce(Monoid::Sum, v, (0..v.rank()).collect());
        let dv = match x[1].is_linear() {
            true => Some(cx.sub(&all(ct)?, &all(&dx)?)?),
            false => None,
        };
        Ok(smallvec![x[0].is_linear().then_some(dx), dv])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let at = d[0].unwrap_or(0);
        let mut config = self.padding_config.to_vec();
        config.insert(at, (0, 0, 0));
        let op: Op = Pad { padding_config: config.into() }.into();
        let operand = cx.batch_at(&x[0], d[0], ax.n, at)?;
        let Some(_) = d[1] else { return Ok((cx.bind(&op, &[operand, x[1].clone()])?, smallvec![Some(at)])) };
        // each batch element has its own padding value: pad with zeros, and select by the operand's
        // positions
        let inner = cx.bind1(op.clone(), &[operand.clone(), lit(operand.dtype(), 0.0)])?;
        let ones = cx.broadcast(&truth(true), &Dims::new(operand.shape()), &[])?;
        let mask = cx.bind1(op, &[ones, truth(false)])?;
        let value = cx.broadcast(&x[1], &Dims::new(inner.shape()), &[at])?;
        Ok((values1(cx.select(&mask, &value, &inner)?), smallvec![Some(at)]))
    }
    /// A tangent is padded with zeros.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let zero = matches!(&x[1], Value::Lit(l) if l.is_zero());
        let (Some(s), true) = (&s[0], zero) else { return Ok(None) };
        let axes: Vec<usize> = (0..x[0].rank()).filter(|k| self.padding_config[*k] != (0, 0, 0)).collect();
        let y = cx.bind1(self.clone(), x)?;
        // A selector takes another case around it.
        let op = self.clone();
        let f: Move = Arc::new(move |cx, w, other| cx.bind1(op.clone(), &[w.clone(), Value::Lit(other)]));
        let s = s.into_zeros(&Dims::new(x[0].shape()), &Dims::new(y.shape()), &axes, &f);
        Ok(Some((values1(y), smallvec![Some(s)])))
    }
    fn sums(&self) -> Sums {
        Sums::Padded
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| self.padding_config[d] == (0, 0, 0));
        let padded = |d: &usize| self.padding_config[*d] != (0, 0, 0);
        if self.padding_config.iter().any(|c| c.2 != 0) {
            return f;
        }
        let rows = |dim: usize| {
            let (n, size, lo) = (x[0].shape[dim], out[0].shape[dim], self.padding_config[dim].0);
            let (first, kept) = self.kept(dim, n, size);
            let start = (first as i64 + lo).max(0) as usize;
            let run = Run { rows: start..start + kept, operand: 0, first: first as i64, step: 1 };
            Moved { result: 0, dim, size, sizes: vec![n], runs: vec![run], fill: Some(1) }
        };
        f.moved = (0..x[0].rank()).filter(padded).map(rows).collect();
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.varying("padding")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let _ = out;
        let part = |f: fn(&(i64, i64, i64)) -> i64| self.padding_config.iter().map(f).collect::<Vec<_>>();
        Ok(smallvec![b.pad(x[0], x[1], &part(|c| c.0), &part(|c| c.1), &part(|c| c.2))])
    }
}
