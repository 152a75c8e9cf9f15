//! Changes of shape and order.
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
    /// The elements, row major, in another shape. One size may be -1: it is computed from the
    /// others.
    ///
    /// # Panics
    /// If the sizes do not fit.
    #[track_caller]
    pub fn reshape<S: Copy + TryInto<i64>>(&self, shape: &[S]) -> Tensor {
        let sizes: Vec<i64> = shape.iter().map(|n| (*n).try_into().unwrap_or(i64::MAX)).collect();
        let known = sizes.iter().filter(|n| **n != -1).try_fold(1i64, |all, n| all.checked_mul(*n)).unwrap_or(i64::MAX);
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
        if shape.iter().try_fold(1usize, |all, n| all.checked_mul(*n)) != Some(self.size()) {
            wrong()
        }
        if shape == self.shape() {
            return self.clone();
        }
        emit(Reshape { new_sizes: Dims::new(&shape) }, &[self])
    }
    /// One axis of all elements.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2, 3]).flatten().shape(), [6]);
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2, 3, 4]).permute(&[2, 0, 1]).shape(), [4, 2, 3]);
    /// ```
    #[track_caller]
    pub fn permute(&self, order: &[i64]) -> Tensor {
        let permutation: Dims = order.iter().map(|k| axis_of(*k, self.rank())).collect();
        emit(Transpose { permutation }, &[self])
    }
    /// Two axes change places.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2, 3, 4]).swap_axes(0, -1).shape(), [4, 3, 2]);
    /// ```
    #[track_caller]
    pub fn swap_axes(&self, a: i64, b: i64) -> Tensor {
        let (a, b) = (axis_of(a, self.rank()), axis_of(b, self.rank()));
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        emit(Transpose { permutation: order.into_iter().collect() }, &[self])
    }
    /// Axis `from` goes to `to`, the others keep their order.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2, 3, 4]).move_axis(0, -1).shape(), [3, 4, 2]);
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2]).expand_dims(-1).shape(), [2, 1]);
    /// ```
    #[track_caller]
    pub fn expand_dims(&self, axis: i64) -> Tensor {
        let axis = axis_of(axis, self.rank() + 1);
        let shape = Dims::new(self.shape()).insert(axis, 1);
        let dims: Dims = (0..shape.len()).filter(|k| *k != axis).collect();
        emit(BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }, &[self])
    }
    /// Without these axes, which have size 1; `..` for all axes of size 1.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::ones(&[1, 2, 1]);
    /// assert_eq!((x.squeeze(0).shape(), x.squeeze(..).shape()), (&[2, 1][..], &[2][..]));
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).flip(0).to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, axes: impl IntoAxes) -> Tensor {
        emit(Rev { dimensions: axes.axes(self.rank()) }, &[self])
    }
    /// Rotated along an axis: element i goes to i + shift.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).roll(1, 0).to_vec::<i32>()?, [3, 1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).tile(&[2]).to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, reps: &[usize]) -> Tensor {
        let rank = self.rank().max(reps.len());
        let at = rank - self.rank();
        let shape: Vec<usize> = std::iter::repeat_n(1, at).chain(self.shape().iter().copied()).collect();
        let reps: Dims = std::iter::repeat_n(1, rank - reps.len()).chain(reps.iter().copied()).collect();
        emit(Tile { reps }, &[&self.reshape(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())])
    }
    /// Every element `n` times along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).repeat(2, 0).to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).pad(&[(1, 2)], 7).to_vec::<i32>()?, [7, 1, 2, 7, 7]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, widths: &[(i64, i64)], value: impl IntoTensor) -> Tensor {
        let config = widths.iter().map(|(low, high)| (*low, *high, 0)).collect();
        emit(Pad { padding_config: config }, &[self, &value.into_tensor().astype(self.dtype())])
    }
    /// Zeros above the k-th diagonal.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).tril(0).to_vec::<i32>()?, [1, 0, 3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn tril(&self, k: i64) -> Tensor {
        super::where_(&self.triangle(k), self, self.zeros_like())
    }
    /// Zeros below the k-th diagonal.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).triu(1).to_vec::<i32>()?, [0, 2, 0, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn triu(&self, k: i64) -> Tensor {
        super::where_(&self.triangle(k.saturating_sub(1)), self.zeros_like(), self)
    }
    /// Where the column is at most the row plus k.
    #[track_caller]
    fn triangle(&self, k: i64) -> Tensor {
        let [.., n, m] = self.shape() else {
            mistakes::raise(Error::value("Argument to jax.numpy.tril must be at least 2D"))
        };
        let (i, j) = (Tensor::iota(&[*n, *m], 0, Dtype::I32), Tensor::iota(&[*n, *m], 1, Dtype::I32));
        let k = k.clamp(-(*n as i64), *m as i64); // beyond the corners it is all the same
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
    /// A square matrix with this vector on its diagonal; of a matrix, its diagonal.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let m = Tensor::from([1, 2]).diag();
    /// assert_eq!((m.to_vec::<i32>()?, m.diag().to_vec::<i32>()?), (vec![1, 0, 0, 2], vec![1, 2]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// For another number of axes.
    #[track_caller]
    pub fn diag(&self) -> Tensor {
        match self.rank() {
            1 => (),
            2 => return self.diagonal(),
            _ => mistakes::raise(Error::value(format!("Input must be 1- or 2-d, got {}", self.aval().long()))),
        }
        let n = self.size();
        let (i, j) = (Tensor::iota(&[n, n], 0, Dtype::I32), Tensor::iota(&[n, n], 1, Dtype::I32));
        super::where_(&i.eq(&j), self.expand_dims(0), constant(self.dtype(), 0.0))
    }
    /// The sum of the diagonal of the last two axes.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).trace().item(), 5.0);
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        self.diagonal().sum_axes(-1)
    }
}
