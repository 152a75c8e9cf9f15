//! `Fft`: direct sums in double precision, one axis after the other.
use crate::math;
use crate::routine::{Fft, FftKind};
use crate::{Dims, Scalar};
use std::f64::consts::PI;

type Complex = (f64, f64);

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}
/// Along the middle axis of `[outer, n, inner]`.
fn along(x: &[Complex], [outer, n, inner]: [usize; 3], inverse: bool) -> Vec<Complex> {
    let sign = if inverse { 2.0 } else { -2.0 };
    let turn = |k: usize| sign * PI * k as f64 / n as f64;
    let roots: Vec<Complex> = (0..n).map(|k| (math::cos(turn(k)), math::sin(turn(k)))).collect();
    let mut out = vec![(0.0, 0.0); x.len()];
    for (o, k, i) in (0..outer).flat_map(|o| (0..n).flat_map(move |k| (0..inner).map(move |i| (o, k, i)))) {
        let at = |j: usize| (o * n + j) * inner + i;
        let terms = (0..n).map(|j| times(x[at(j)], roots[(j as u128 * k as u128 % n as u128) as usize]));
        out[at(k)] = terms.fold((0.0, 0.0), |s, t| (s.0 + t.0, s.1 + t.1));
    }
    out
}

pub fn fft(f: &Fft, x: &[Scalar]) -> Vec<Scalar> {
    let pairs = || x.chunks_exact(2).map(|z| (z[0].to_f64(), z[1].to_f64())).collect::<Vec<Complex>>();
    let (n, half) = (f.lengths[f.lengths.len() - 1], f.last());
    let (rank, inner) = (f.lengths.len(), f.inner);
    let shape = f.lengths.insert(0, f.outer).concat(&[inner]);
    let whole = |x: Vec<Complex>, shape: &Dims, axes: std::ops::Range<usize>| {
        axes.fold(x, |x, k| {
            along(&x, [shape[..k].iter().product(), shape[k], shape[k + 1..].iter().product()], f.is_inverse())
        })
    };
    let y = match f.kind {
        FftKind::Forward | FftKind::Inverse => whole(pairs(), &shape, 1..rank + 1),
        FftKind::RealForward => {
            let x = x.iter().map(|x| (x.to_f64(), 0.0)).collect();
            let y = whole(x, &shape, 1..rank + 1);
            y.chunks_exact((n * inner).max(1)).flat_map(|rows| rows[..half * inner].to_vec()).collect()
        }
        FftKind::RealInverse => {
            let mut narrow = shape.clone();
            narrow[rank] = half;
            let rows = whole(pairs(), &narrow, 1..rank);
            // the numbers that were left out are conjugates
            let full = rows.chunks_exact((half * inner).max(1)).flat_map(|rows| {
                (0..n * inner).map(|at| match (at / inner, at % inner) {
                    (k, i) if k == 0 || 2 * k == n => (rows[k * inner + i].0, 0.0),
                    (k, _) if k < half => rows[at],
                    (k, i) => (rows[(n - k) * inner + i].0, -rows[(n - k) * inner + i].1),
                })
            });
            whole(full.collect(), &shape, rank..rank + 1)
        }
    };
    let scale = if f.is_inverse() { f.lengths.iter().product::<usize>() as f64 } else { 1.0 };
    let part = |x: f64| Scalar::from_f64(f.dtype, x / scale);
    match f.kind {
        FftKind::RealInverse => y.iter().map(|z| part(z.0)).collect(),
        _ => y.iter().flat_map(|z| [part(z.0), part(z.1)]).collect(),
    }
}
