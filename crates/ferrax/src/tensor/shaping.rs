//! The same elements in another shape or order.
use super::{IntoAxes, IntoTensor, Tensor, axis_of, constant, emit};
use crate::mistakes;
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::pad::Pad;
use ferrax_ir::ops::reshape::Reshape;
use ferrax_ir::ops::rev::Rev;
use ferrax_ir::ops::squeeze::Squeeze;
use ferrax_ir::ops::tile::Tile;
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::{Dims, Dtype, Error};

impl Tensor {
    /// The elements, row major, in another shape. One size may be -1: what is left.
    ///
    /// # Panics
    /// If the sizes do not fit.
    #[track_caller]
    pub fn reshape<S: Copy + TryInto<i64>>(&self, shape: &[S]) -> Tensor {
        let sizes: Vec<i64> = shape.iter().map(|n| (*n).try_into().unwrap_or(i64::MAX)).collect();
        let known: i64 = sizes.iter().filter(|n| **n != -1).product();
        let wrong = || -> ! {
            mistakes::raise(Error::type_error(format!(
                "cannot reshape array of shape {} (size {}) into shape {sizes:?} (size {known})",
                Dims::new(self.shape()),
                self.size()
            )))
        };
        let n = self.size() as i64;
        let guessed = sizes.iter().filter(|n| **n == -1).count();
        if sizes.iter().any(|n| *n < -1) || guessed > 1 || (guessed == 1 && (known == 0 || n % known != 0)) {
            wrong()
        }
        let shape: Vec<usize> = sizes.iter().map(|s| if *s == -1 { n / known } else { *s } as usize).collect();
        if shape.iter().product::<usize>() != self.size() {
            wrong()
        }
        if shape == self.shape() {
            return self.clone();
        }
        emit(Reshape { new_sizes: Dims::new(&shape) }, &[self])
    }
    /// One axis of all elements.
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.reshape(&[-1])
    }
    /// IntoAxes reversed.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        if self.rank() < 2 {
            return self.clone();
        }
        emit(Transpose { permutation: (0..self.rank()).rev().collect() }, &[self])
    }
    /// Axes in another order: axis i of the result is axis `order[i]`.
    #[track_caller]
    pub fn permute(&self, order: &[i64]) -> Tensor {
        let permutation: Dims = order.iter().map(|k| axis_of(*k, self.rank())).collect();
        emit(Transpose { permutation }, &[self])
    }
    /// Two axes change places.
    #[track_caller]
    pub fn swap_axes(&self, a: i64, b: i64) -> Tensor {
        let (a, b) = (axis_of(a, self.rank()), axis_of(b, self.rank()));
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        emit(Transpose { permutation: order.into_iter().collect() }, &[self])
    }
    /// Axis `from` goes to `to`, the others keep their order.
    #[track_caller]
    pub fn move_axis(&self, from: i64, to: i64) -> Tensor {
        let (from, to) = (axis_of(from, self.rank()), axis_of(to, self.rank()));
        if from == to {
            return self.clone();
        }
        let mut order: Vec<usize> = (0..self.rank()).filter(|k| *k != from).collect();
        order.insert(to, from);
        emit(Transpose { permutation: order.into_iter().collect() }, &[self])
    }
    /// A new axis of size 1 at `axis`.
    #[track_caller]
    pub fn expand_dims(&self, axis: i64) -> Tensor {
        let axis = axis_of(axis, self.rank() + 1);
        let shape = Dims::new(self.shape()).insert(axis, 1);
        let dims: Dims = (0..shape.len()).filter(|k| *k != axis).collect();
        emit(BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }, &[self])
    }
    /// Without these axes, which have size 1; `..` for all that have.
    #[track_caller]
    pub fn squeeze(&self, axes: impl IntoAxes) -> Tensor {
        let all = axes.all();
        let mut axes = axes.axes(self.rank()).to_vec();
        if all {
            axes.retain(|k| self.shape()[*k] == 1);
        }
        if axes.is_empty() {
            return self.clone();
        }
        axes.sort_unstable();
        emit(Squeeze { dimensions: axes.into_iter().collect() }, &[self])
    }
    /// Reversed along these axes.
    #[track_caller]
    pub fn flip(&self, axes: impl IntoAxes) -> Tensor {
        emit(Rev { dimensions: axes.axes(self.rank()) }, &[self])
    }
    /// Rotated along an axis: element i goes to i + shift.
    #[track_caller]
    pub fn roll(&self, shift: i64, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let n = self.shape()[k];
        if n == 0 {
            return self.clone();
        }
        let at = (n as i64 - shift.rem_euclid(n as i64)) as usize % n;
        if at == 0 {
            return self.clone();
        }
        super::concatenate(&[self.narrow(k, at, n), self.narrow(k, 0, at)], k as i64)
    }
    /// Elements from `start` to before `end` of an axis.
    #[track_caller]
    pub(crate) fn narrow(&self, axis: usize, start: usize, end: usize) -> Tensor {
        let (mut low, mut high) = (Dims::new(&vec![0; self.rank()]), Dims::new(self.shape()));
        (low[axis], high[axis]) = (start, end);
        emit(ferrax_ir::ops::slice::Slice { limit_indices: high, start_indices: low, strides: None }, &[self])
    }
    /// Repeated as a whole, `reps[k]` times along axis k.
    #[track_caller]
    pub fn tile(&self, reps: &[usize]) -> Tensor {
        let rank = self.rank().max(reps.len());
        let at = rank - self.rank();
        let shape: Vec<usize> = std::iter::repeat_n(1, at).chain(self.shape().iter().copied()).collect();
        let reps: Dims = std::iter::repeat_n(1, rank - reps.len()).chain(reps.iter().copied()).collect();
        emit(Tile { reps }, &[&self.reshape(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())])
    }
    /// Every element `n` times along an axis.
    #[track_caller]
    pub fn repeat(&self, n: usize, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let mut shape = self.shape().to_vec();
        shape.insert(k + 1, n);
        let wide = self.expand_dims(k as i64 + 1).broadcast_to(&shape);
        shape.remove(k + 1);
        shape[k] *= n;
        wide.reshape(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
    }
    /// `(before, after)` copies of `value` around each axis; negative numbers take elements away.
    #[track_caller]
    pub fn pad(&self, widths: &[(i64, i64)], value: impl IntoTensor) -> Tensor {
        let config = widths.iter().map(|(low, high)| (*low, *high, 0)).collect();
        emit(Pad { padding_config: config }, &[self, &value.into_tensor().astype(self.dtype())])
    }
    /// Zeros above the k-th diagonal.
    #[track_caller]
    pub fn tril(&self, k: i64) -> Tensor {
        super::where_(&self.triangle(k), self, self.zeros_like())
    }
    /// Zeros below the k-th diagonal.
    #[track_caller]
    pub fn triu(&self, k: i64) -> Tensor {
        super::where_(&self.triangle(k - 1), self.zeros_like(), self)
    }
    /// Where the column is at most the row plus k.
    #[track_caller]
    fn triangle(&self, k: i64) -> Tensor {
        let [.., n, m] = self.shape() else {
            mistakes::raise(Error::value("Argument to jax.numpy.tril must be at least 2D"))
        };
        let (i, j) = (Tensor::iota(&[*n, *m], 0, Dtype::I32), Tensor::iota(&[*n, *m], 1, Dtype::I32));
        (i + constant(Dtype::I32, k as f64)).ge(j)
    }
    /// The diagonal of the last two axes.
    #[track_caller]
    pub fn diagonal(&self) -> Tensor {
        let [.., n, m] = self.shape() else {
            mistakes::raise(Error::value("diagonal requires an array of at least two dimensions."))
        };
        let k = (*n).min(*m);
        let at = Tensor::arange(k, Dtype::I32);
        self.slice(&[super::Subscript::Ellipsis, (&at).into(), (&at).into()])
    }
    /// A square matrix with this vector on its diagonal.
    #[track_caller]
    pub fn diag(&self) -> Tensor {
        let n = self.size();
        let (i, j) = (Tensor::iota(&[n, n], 0, Dtype::I32), Tensor::iota(&[n, n], 1, Dtype::I32));
        super::where_(&i.eq(&j), self.expand_dims(0), constant(self.dtype(), 0.0))
    }
    /// The sum of the diagonal of the last two axes.
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        self.diagonal().sum_axes(-1)
    }
}
