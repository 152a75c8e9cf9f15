//! Eigenvalues of a real symmetric tridiagonal matrix; the rotations are applied to the rows of
//! another matrix.
//!
//! Implicit QL with Wilkinson's shift: Bowdler, Martin, Reinsch and Wilkinson, Numerische Mathematik 11 (1968), `tql2`.
use super::field::{RealOrComplex, rows};

/// More sweeps than any observed eigenvalue needed.
const SWEEPS: usize = 90;

/// The eigenvalues ascending in `d`; `e` is the subdiagonal, and lost. The rows of `z` (as many as `d` has elements, each of `width`)
/// are combined as eigenvectors are: where they were the adjoint of `q` with `a = q t q'`, row k becomes the adjoint of eigenvector k.
/// Whether it converged.
pub fn tridiagonal_eigen<T: RealOrComplex>(d: &mut [f64], e: &mut [f64], z: &mut [T], width: usize) -> bool {
    let n = d.len();
    for l in 0..n {
        let mut sweeps = 0;
        loop {
            let small = |m: &usize| e[*m].abs() <= f64::EPSILON * 0.5 * (d[*m].abs() + d[*m + 1].abs());
            let m = (l..n - 1).find(small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            sweeps += 1;
            if sweeps > SWEEPS {
                return false;
            }
            sweep(d, e, l, m, z, width);
        }
    }
    // by exchanges, of which there are few
    for i in 0..n {
        let least = (i + 1..n).fold(i, |k, j| if d[j] < d[k] { j } else { k });
        if least != i {
            d.swap(i, least);
            if width > 0 {
                let (x, y) = rows(z, width, i, least);
                x.swap_with_slice(y);
            }
        }
    }
    d.iter().all(|x| x.is_finite())
}
fn sweep<T: RealOrComplex>(d: &mut [f64], e: &mut [f64], l: usize, m: usize, z: &mut [T], width: usize) {
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let r = g.hypot(1.0);
    let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r = f.hypot(g);
        if i + 1 < m {
            e[i + 1] = r;
        }
        if r == 0.0 {
            d[i + 1] -= p;
            if m < e.len() {
                e[m] = 0.0;
            }
            return;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        if width > 0 {
            let (x, y) = rows(z, width, i, i + 1);
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = (x.scale(c) - y.scale(s), x.scale(s) + y.scale(c));
            }
        }
    }
    d[l] -= p;
    e[l] = g;
    if m < e.len() {
        e[m] = 0.0;
    }
}
