//! Creation from few numbers: grids, spaced points, triangular indices, windows; and assembling
//! blocks.
//!
//! ```
//! use ferrax::{Tensor, meshgrid, vstack, windows};
//! let g = meshgrid(&[Tensor::from([1, 2, 3]), Tensor::from([10, 20])]);
//! assert_eq!((g[0].shape(), g[1].to_vec::<i32>()?), (&[2, 3][..], vec![10, 10, 10, 20, 20, 20]));
//! assert_eq!(Tensor::geomspace(1.0, 8.0, 4).round().to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
//! let (i, j) = Tensor::tril_indices(2, 0, 2);
//! assert_eq!((i.to_vec::<i32>()?, j.to_vec::<i32>()?), (vec![0, 1, 1], vec![0, 0, 1]));
//! assert_eq!(vstack(&[Tensor::from([1, 2]), Tensor::from([3, 4])]).shape(), [2, 2]);
//! assert_eq!(Tensor::from([1, 2, 3]).array_split(2, 0)[0].to_vec::<i32>()?, [1, 2]);
//! assert_eq!(windows::hanning(3).to_vec::<f32>()?, [0.0, 1.0, 0.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
use super::statistics::points;
use super::{Tensor, concatenate, constant, emit, pw, stack};
use crate::mistakes;
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::{Dims, Dtype, Error};
use std::borrow::Borrow;

#[track_caller]
fn spread(x: &Tensor, shape: &[usize], axis: usize) -> Tensor {
    emit(BroadcastInDim { broadcast_dimensions: [axis].into(), shape: Dims::new(shape).into() }, &[x])
}
/// The coordinates of the grid that vectors span: element `[j, i, ..]` of the first is x_i, as numpy's `"xy"` has it.
///
/// # Panics
/// Unless all are vectors.
#[track_caller]
pub fn meshgrid<T: Borrow<Tensor>>(x: &[T]) -> Vec<Tensor> {
    grid(x, true)
}
/// The same, where element `[i, j, ..]` of the first is x_i.
///
/// ```
/// use ferrax::{Tensor, meshgrid_ij};
/// let grid = meshgrid_ij(&[Tensor::from([1, 2]), Tensor::from([3, 4, 5])]);
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// Unless all are vectors.
#[track_caller]
pub fn meshgrid_ij<T: Borrow<Tensor>>(x: &[T]) -> Vec<Tensor> {
    grid(x, false)
}
#[track_caller]
fn grid<T: Borrow<Tensor>>(x: &[T], swapped: bool) -> Vec<Tensor> {
    let mut x: Vec<&Tensor> = x.iter().map(Borrow::borrow).collect();
    if let Some(t) = x.iter().find(|t| t.rank() != 1) {
        mistakes::raise(Error::value(format!("Arguments to meshgrid must be 1D, got {}", t.aval().long())));
    }
    let swap = swapped && x.len() > 1;
    if swap {
        x.swap(0, 1);
    }
    let shape: Vec<usize> = x.iter().map(|t| t.size()).collect();
    let mut out: Vec<Tensor> = x.iter().enumerate().map(|(k, t)| spread(t, &shape, k)).collect();
    if swap {
        out.swap(0, 1);
    }
    out
}
#[track_caller]
fn joined<T: Borrow<Tensor>>(x: &[T], f: impl Fn(&Tensor) -> Tensor, axis: i64) -> Tensor {
    concatenate(&x.iter().map(|t| f(t.borrow())).collect::<Vec<_>>(), axis)
}
/// One above the other: vectors as rows, else along the first axis.
#[track_caller]
pub fn vstack<T: Borrow<Tensor>>(x: &[T]) -> Tensor {
    joined(x, Tensor::atleast_2d, 0)
}
/// Side by side: along the second axis, vectors along their only one.
///
/// ```
/// use ferrax::{Tensor, hstack};
/// assert_eq!(hstack(&[Tensor::from([1, 2]), Tensor::from([3])]).to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn hstack<T: Borrow<Tensor>>(x: &[T]) -> Tensor {
    let vectors = x.first().is_some_and(|t| Borrow::<Tensor>::borrow(t).rank() < 2);
    joined(x, Tensor::atleast_1d, if vectors { 0 } else { 1 })
}
/// One behind the other: along the third axis.
///
/// ```
/// use ferrax::{Tensor, dstack};
/// assert_eq!(dstack(&[Tensor::from([1, 2]), Tensor::from([3, 4])]).shape(), [1, 2, 2]);
/// ```
#[track_caller]
pub fn dstack<T: Borrow<Tensor>>(x: &[T]) -> Tensor {
    joined(x, Tensor::atleast_3d, 2)
}
/// Vectors as columns, and matrices, side by side.
///
/// ```
/// use ferrax::{Tensor, column_stack};
/// let m = column_stack(&[Tensor::from([1, 2]), Tensor::from([3, 4])]);
/// assert_eq!(m.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn column_stack<T: Borrow<Tensor>>(x: &[T]) -> Tensor {
    joined(x, |t| if t.rank() < 2 { t.atleast_2d().t() } else { t.clone() }, 1)
}
/// Matrices put together: rows of blocks, one above the other.
///
/// ```
/// use ferrax::{Tensor, block};
/// let (one, zero) = (Tensor::ones(&[2, 2]), Tensor::zeros(&[2, 2]));
/// assert_eq!(block(&[&[&one, &zero], &[&zero, &one]]).trace().item(), 4.0);
/// ```
#[track_caller]
pub fn block(rows: &[&[&Tensor]]) -> Tensor {
    concatenate(&rows.iter().map(|r| concatenate(r, -1)).collect::<Vec<_>>(), -2)
}
impl Tensor {
    /// With at least one axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from(3).atleast_1d().shape(), [1]);
    /// ```
    #[track_caller]
    pub fn atleast_1d(&self) -> Tensor {
        if self.rank() == 0 { self.reshape(&[1]) } else { self.clone() }
    }
    /// With at least two axes: a vector as one row.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 4]).atleast_2d().shape(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn atleast_2d(&self) -> Tensor {
        let x = self.atleast_1d();
        if x.rank() == 1 { x.expand_dims(0) } else { x }
    }
    /// With at least three axes: a vector of n as `(1, n, 1)`, a matrix of `(m, n)` as `(m, n, 1)`.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 4]).atleast_3d().shape(), [1, 2, 1]);
    /// ```
    #[track_caller]
    pub fn atleast_3d(&self) -> Tensor {
        let x = self.atleast_2d();
        if x.rank() == 2 { x.expand_dims(-1) } else { x }
    }
    /// Parts along an axis that are as equal as may be: the first ones are longer.
    #[track_caller]
    pub fn array_split(&self, n: usize, axis: i64) -> Vec<Tensor> {
        let size = self.shape()[super::axis_of(axis, self.rank())];
        let n = n.max(1);
        let sizes: Vec<usize> = (0..n).map(|k| size / n + usize::from(k < size % n)).collect();
        self.split_sizes(&sizes, axis)
    }
    /// Equal parts along the first axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[4, 2]).vsplit(2)[1].shape(), [2, 2]);
    /// ```
    #[track_caller]
    pub fn vsplit(&self, n: usize) -> Vec<Tensor> {
        self.split(n, 0)
    }
    /// Equal parts along the second axis, of a vector along its only one.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[4, 2]).hsplit(2)[1].shape(), [4, 1]);
    /// ```
    #[track_caller]
    pub fn hsplit(&self, n: usize) -> Vec<Tensor> {
        self.split(n, if self.rank() == 1 { 0 } else { 1 })
    }
    /// Equal parts along the third axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[1, 2, 6]).dsplit(3)[0].shape(), [1, 2, 2]);
    /// ```
    #[track_caller]
    pub fn dsplit(&self, n: usize) -> Vec<Tensor> {
        self.split(n, 2)
    }
    /// Rotated by a right angle `k` times, from the first of two axes to the second.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).rot90(1, (0, 1)).to_vec::<i32>()?, [2, 4, 1, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn rot90(&self, k: i64, axes: (i64, i64)) -> Tensor {
        let (i, j) = axes;
        match k.rem_euclid(4) {
            0 => self.clone(),
            1 => self.flip(j).swap_axes(i, j),
            2 => self.flip(i).flip(j),
            _ => self.swap_axes(i, j).flip(j),
        }
    }
    /// The position of every element of a grid of this shape (int32): `[rank, shape..]`.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::indices(&[2, 2]).to_vec::<i32>()?, [0, 0, 1, 1, 0, 1, 0, 1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn indices(shape: &[usize]) -> Tensor {
        let along = |k: usize| spread(&Tensor::arange(shape[k], Dtype::I32), shape, k);
        stack(&(0..shape.len()).map(along).collect::<Vec<_>>(), 0)
    }
    /// Ones at and below the k-th diagonal of an n by m matrix, float32.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::tri(2, 3, 0).to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn tri(n: usize, m: usize, k: i64) -> Tensor {
        Tensor::ones(&[n, m]).tril(k)
    }
    /// Rows and columns (int32) of the elements at and below the k-th diagonal of an n by m matrix.
    pub fn tril_indices(n: usize, k: i64, m: usize) -> (Tensor, Tensor) {
        places(n, m, |i, j| j <= i.saturating_add(k))
    }
    /// Rows and columns (int32) of the elements at and above the k-th diagonal of an n by m matrix.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let (i, j) = Tensor::triu_indices(2, 0, 2);
    /// assert_eq!((i.to_vec::<i32>()?, j.to_vec::<i32>()?), (vec![0, 0, 1], vec![0, 1, 1]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    pub fn triu_indices(n: usize, k: i64, m: usize) -> (Tensor, Tensor) {
        places(n, m, |i, j| j >= i.saturating_add(k))
    }
    /// `n` powers of ten, whose exponents go from `a` to `b`, float32.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::logspace(0.0, 2.0, 3).all_close(Tensor::from([1.0f32, 10.0, 100.0]), 1e-5, 0.0).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn logspace(a: f64, b: f64, n: usize) -> Tensor {
        powers(&float(a), &float(b), n)
    }
    /// `n` numbers from `a` to `b`, each the one before times a constant, float32.
    #[track_caller]
    pub fn geomspace(a: f64, b: f64, n: usize) -> Tensor {
        let (a, b) = (float(a), float(b));
        let sign = a.sign();
        &sign * powers(&(a / &sign).log10(), &(b / &sign).log10(), n)
    }
}
fn float(x: f64) -> Tensor {
    constant(Dtype::F32, x)
}
#[track_caller]
fn powers(a: &Tensor, b: &Tensor, n: usize) -> Tensor {
    pw(Pw::Pow, &[&float(10.0).broadcast_to(&[n]), &points(a, b, n)])
}
fn places(n: usize, m: usize, inside: impl Fn(i64, i64) -> bool) -> (Tensor, Tensor) {
    let all = (0..n as i64).flat_map(|i| (0..m as i64).map(move |j| (i, j)));
    let (i, j): (Vec<i32>, Vec<i32>) = all.filter(|p| inside(p.0, p.1)).map(|p| (p.0 as i32, p.1 as i32)).unzip();
    (i.into(), j.into())
}

/// Weights of samples before a Fourier transform, float32.
pub mod windows {
    use super::*;
    use std::f64::consts::PI;

    fn over(n: usize, f: impl Fn(&Tensor) -> Tensor) -> Tensor {
        if n < 2 { Tensor::ones(&[n]) } else { f(&Tensor::arange(n, Dtype::F32)) }
    }
    fn cosine(i: &Tensor, k: f64) -> Tensor {
        (float(2.0 * k * PI) * i / float(i.size() as f64 - 1.0)).cos()
    }
    /// A triangle.
    ///
    /// ```
    /// use ferrax::windows;
    /// assert_eq!(windows::bartlett(3).to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    pub fn bartlett(n: usize) -> Tensor {
        over(n, |i| float(1.0) - (float(2.0) * i + float(1.0) - float(n as f64)).abs() / float(n as f64 - 1.0))
    }
    /// `0.42 - 0.5 cos + 0.08 cos 2`.
    ///
    /// ```
    /// use ferrax::windows;
    /// assert!((windows::blackman(3).max().item() - 1.0).abs() < 1e-6);
    /// ```
    pub fn blackman(n: usize) -> Tensor {
        over(n, |i| float(0.42) - float(0.5) * cosine(i, 1.0) + float(0.08) * cosine(i, 2.0))
    }
    /// `0.54 - 0.46 cos`.
    ///
    /// ```
    /// use ferrax::windows;
    /// assert!((windows::hamming(3).min().item() - 0.08).abs() < 1e-6);
    /// ```
    pub fn hamming(n: usize) -> Tensor {
        over(n, |i| float(0.54) - float(0.46) * cosine(i, 1.0))
    }
    /// `0.5 - 0.5 cos`.
    pub fn hanning(n: usize) -> Tensor {
        over(n, |i| float(0.5) * (float(1.0) - cosine(i, 1.0)))
    }
}
