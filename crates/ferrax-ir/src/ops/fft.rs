//! fft: the discrete Fourier transform along the last axes, of `fft_lengths`: numpy's `fftn`, `ifftn`, `rfftn` and `irfftn`.
//!
//! ```text
//! FFT    y[k] = sum_j x[j] exp(-2 pi i jk / n)         c[.., n]       -> c[.., n]
//! IFFT   y[k] = sum_j x[j] exp(+2 pi i jk / n) / n     c[.., n]       -> c[.., n]
//! RFFT   the first n / 2 + 1 of a real operand's       f[.., n]       -> c[.., n/2+1]
//! IRFFT  its inverse                                   c[.., n/2+1]   -> f[.., n]
//! ```
//!
//! Linear, and but for the real ones symmetric. Where a real transform leaves out numbers (the conjugates of those it gives), its transpose
//! counts these twice.
use super::linear_jvp;
use crate::aval::{Aval, Lit};
use crate::cx::{Arg, Axis, Cx, Dim, Tan, lit, values1};
use crate::dtype::Dtype;
use crate::error::{Res, type_err, value_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::ops::iota::Iota;
use crate::ops::pointwise::Pw;
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::support::{Supports, Within};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::{FftKind, Routine};
use smallvec::smallvec;

/// JAX's `FftType`, which programs print as a number.
const KINDS: [(FftKind, &str); 4] = [
    (FftKind::Forward, "FFT"),
    (FftKind::Inverse, "IFFT"),
    (FftKind::RealForward, "RFFT"),
    (FftKind::RealInverse, "IRFFT"),
];
fn name(kind: FftKind) -> &'static str {
    KINDS[kind as usize].1
}
impl ParamValue for FftKind {
    fn words() -> String {
        "an FftType".into()
    }
    fn to_param(&self) -> Param {
        Param::Int(*self as i64)
    }
    fn from_param(p: &Param) -> Option<FftKind> {
        let at = match p {
            Param::Int(i) => usize::try_from(*i).ok()?,
            Param::Enum(_, s) | Param::Str(s) => KINDS.iter().position(|k| *k.1 == **s)?,
            _ => return None,
        };
        Some(KINDS.get(at)?.0)
    }
}

primitive! {
    pub struct Fft = "fft" {
        fft_lengths: Dims,
        fft_type: FftKind,
    }
}

impl Fft {
    fn with(&self, fft_type: FftKind) -> Fft {
        Fft { fft_type, ..self.clone() }
    }
    /// How often each number of the complex side counts on the real one, times `factor`, in `like`'s shape: those at 0 and n / 2 once,
    /// the others twice, since their conjugates are left out.
    fn counts(&self, cx: &dyn Cx, like: &Value, once: f64, twice: f64) -> Res<Value> {
        let shape = Dims::new(like.shape());
        let n = self.fft_lengths[self.fft_lengths.len() - 1];
        let dimension = shape.len() - 1;
        let k = cx.bind1(Iota { dimension, dtype: Dtype::I32, shape: shape.clone().into() }, &[])?;
        let mut alone = cx.pw2(Pw::Eq, &k, &lit(Dtype::I32, 0.0))?;
        if n.is_multiple_of(2) {
            alone = cx.pw2(Pw::Or, &alone, &cx.pw2(Pw::Eq, &k, &lit(Dtype::I32, (n / 2) as f64))?)?;
        }
        // Parts of complex literals are exact in single precision only, and these are not: they are made real.
        let real = like.dtype().real();
        let full = |x: f64| {
            let aval = Aval { weak: true, ..Aval::of(real, shape.clone()) };
            cx.full(Lit::from_f64(real, x), &aval)
        };
        let counts = cx.select(&alone, &full(twice)?, &full(once)?)?;
        if !like.dtype().is_complex() {
            return Ok(counts);
        }
        cx.pw2(Pw::Complex, &counts, &full(0.0)?)
    }
}

impl Rules for Fft {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("fft takes 1 operand, got {}", x.len())) };
        let (kind, lengths) = (self.fft_type, &self.fft_lengths);
        let axes = lengths.len();
        if axes > 3 {
            return value_err(format!("fft: rank must be between 1 and 3, but got {axes}."));
        }
        let real = kind == FftKind::RealForward;
        if real && !matches!(a.dtype, Dtype::F32 | Dtype::F64) {
            return value_err(format!("RFFT input must be float32 or float64, got {}", a.dtype.long()));
        }
        if !real && !a.dtype.is_complex() {
            return type_err(format!("{} input must be complex64 or complex128, got {}", name(kind), a.dtype.long()));
        }
        if a.rank() < axes {
            return value_err(format!(
                "FFT input shape {} must have at least as many input dimensions as fft_lengths {lengths}.",
                a.shape
            ));
        }
        let Some(n) = lengths.last().copied() else {
            return if real || kind == FftKind::RealInverse {
                value_err(format!("{} needs an axis: fft_lengths is ()", name(kind)))
            } else {
                Ok(smallvec![Aval::of(a.dtype, a.shape.clone())])
            };
        };
        let minor = &a.shape[a.rank() - axes..];
        let last = a.rank() - 1;
        let mut shape = a.shape.clone();
        let dtype = match kind {
            FftKind::Forward | FftKind::Inverse => a.dtype,
            FftKind::RealForward => a.dtype.complex(),
            FftKind::RealInverse => a.dtype.real(),
        };
        if kind == FftKind::RealInverse {
            if minor[..axes - 1] != lengths[..axes - 1] {
                return value_err(format!(
                    "IRFFT input shape {} minor dimensions must be equal to all except the last fft_length, got {lengths}",
                    a.shape
                ));
            }
            if minor[axes - 1] != n / 2 + 1 {
                return value_err(format!(
                    "IRFFT requires innermost dimension to be compatible with fft_length[-1]/2+1. Got: {} but fft_length is {n}.",
                    minor[axes - 1]
                ));
            }
            shape[last] = n;
        } else if *minor != lengths[..] {
            return value_err(format!(
                "{} input shape {} minor dimensions must be equal to fft_lengths {lengths}",
                if real { "RFFT" } else { "FFT" },
                a.shape
            ));
        }
        if real {
            if n == 0 {
                return value_err("RFFT of length 0 is not defined: its result has an element that is the sum of none");
            }
            shape[last] = n / 2 + 1;
        }
        Ok(smallvec![Aval::of(dtype, shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None]) };
        let size = self.fft_lengths.size() as f64;
        let conj = |x: &Value| cx.pw(Pw::Conj, std::slice::from_ref(x));
        let bind = |op: Fft, x: Value| cx.bind1(op, &[x]);
        Ok(smallvec![Some(match self.fft_type {
            FftKind::Forward | FftKind::Inverse => bind(self.clone(), ct.clone())?,
            FftKind::RealForward => {
                let counts = self.counts(cx, ct, size, size / 2.0)?;
                bind(self.with(FftKind::RealInverse), cx.mul(&conj(ct)?, &counts)?)?
            }
            FftKind::RealInverse => {
                let y = bind(self.with(FftKind::RealForward), ct.clone())?;
                let counts = self.counts(cx, &y, 1.0 / size, 2.0 / size)?;
                conj(&cx.mul(&y, &counts)?)?
            }
        })])
    }
    /// Lanes stay where they are unless the transform runs there.
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(at) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let before = x[0].rank() - self.fft_lengths.len();
        let (v, at) = if at < before { (x[0].clone(), at) } else { (cx.move_axis(&x[0], at, 0)?, 0) };
        Ok((cx.bind(&self.clone().into(), &[v])?, smallvec![Some(at)]))
    }
    /// A line of zeros stays one.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let Some(s) = &s[0] else { return Ok(None) };
        let shape = Dims::new(x[0].shape());
        let axes: Dims = (shape.len() - self.fft_lengths.len()..shape.len()).collect();
        let (stays, applied) = s.split_by(&axes);
        let y = cx.bind1(self.clone(), &[applied.apply(cx, &x[0])?])?;
        Ok(Some((values1(y), smallvec![Some(stays.and(&applied.any_along(&axes, &shape)))])))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::along(x, out, |d| d + self.fft_lengths.len() < x[0].rank())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let y = physical(&out[0]);
        if self.fft_lengths.is_empty() {
            return Ok(smallvec![x[0]]);
        }
        let axes = self.fft_lengths.len();
        let rank = out[0].rank();
        // An operand that was transposed for this is read in its original layout, if the
        // transformed axes are adjacent and in order there, between the axes before and those after
        // them.
        let (mut of, mut lies) = b.untransposed(x[0]);
        let mut first = lies.iter().position(|a| *a == rank - axes).unwrap_or(rank - axes);
        if (0..axes).any(|k| lies.get(first + k) != Some(&(rank - axes + k))) {
            (of, lies, first) = (x[0], (0..rank).collect(), rank - axes);
        }
        let sizes = |r: std::ops::Range<usize>| lies[r].iter().map(|a| out[0].shape[*a]).product();
        let r = ferrax_kernel::routine::Fft {
            kind: self.fft_type,
            outer: sizes(0..first),
            lengths: self.fft_lengths.clone(),
            inner: sizes(first + axes..rank),
            dtype: y.dtype,
        };
        let x = b.take_out(of);
        let mut shape = out[0].shape.pick(&lies);
        if y.paired {
            shape = shape.insert(rank, 2);
        }
        let z = b.routine(Routine::Fft(r), &[x], &[shape])[0];
        let z = if y.paired { b.unzip(z) } else { z };
        let back: Vec<usize> = (0..rank).map(|a| lies.iter().position(|l| *l == a).unwrap_or(a)).collect();
        Ok(smallvec![if back.iter().copied().eq(0..rank) { z } else { b.transpose(z, &back) }])
    }
}

#[cfg(test)]
mod tests {
    use crate::{lower, text};

    /// Complex numbers in the layout of the routine are copied neither in nor out.
    #[test]
    fn pairs_are_taken_where_they_lie() {
        let steps = |program: &str| {
            let p = text::parse(program).unwrap_or_else(|e| panic!("{}", e.message()));
            lower::lower(&p).unwrap_or_else(|e| panic!("{}", e.message())).steps.len()
        };
        assert_eq!(steps("{ lambda ; a:c64[3,4]. let b:c64[3,4] = fft[fft_lengths=(4,) fft_type=0] a in (b,) }"), 1);
        let there_and_back = "{ lambda ; a:f32[6]. let b:c64[4] = fft[fft_lengths=(6,) fft_type=2] a; \
            c:f32[6] = fft[fft_lengths=(6,) fft_type=3] b in (c,) }";
        assert_eq!(steps(there_and_back), 2);
        let inner_axis = "{ lambda ; a:c64[3,4,5]. let b:c64[3,5,4] = transpose[permutation=(0, 2, 1)] a; \
            c:c64[3,5,4] = fft[fft_lengths=(4,) fft_type=0] b; d:c64[3,4,5] = transpose[permutation=(0, 2, 1)] c in (d,) }";
        assert_eq!(steps(inner_axis), 1);
        let real = "{ lambda ; a:f32[6,5]. let b:f32[5,6] = transpose[permutation=(1, 0)] a; \
            c:c64[5,4] = fft[fft_lengths=(6,) fft_type=2] b; d:c64[4,5] = transpose[permutation=(1, 0)] c in (d,) }";
        assert_eq!(steps(real), 1);
    }
}
