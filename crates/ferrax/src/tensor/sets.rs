//! Sets as ascending vectors: unique elements and membership.
//!
//! ```
//! use ferrax::Tensor;
//! let x = Tensor::from([3, 1, 3, 2]);
//! assert_eq!(x.unique().to_vec::<i32>()?, [1, 2, 3]);
//! let (values, counts) = x.unique_sized(5); // under jit: the requested number, the least repeated
//! assert_eq!((values.to_vec::<i32>()?, counts.to_vec::<i32>()?), (vec![1, 2, 3, 1, 1], vec![1, 1, 2, 0, 0]));
//! assert_eq!(x.is_in(&Tensor::from([1, 2])).to_vec::<bool>()?, [false, true, false, true]);
//! assert_eq!(x.setdiff1d(&Tensor::from([3])).to_vec::<i32>()?, [1, 2]);
//! assert_eq!(x.gt(1).nonzero_sized(3)[0].to_vec::<i32>()?, [0, 2, 3]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: without a given size the elements must be known; under `jit` and `vmap` that is an
//! error.
use super::{IntoTensor, Tensor, concatenate, constant, exactly, promote, where_};
use ferrax_ir::Dtype;

impl Tensor {
    /// All elements ascending, and where each begins a run of equal ones; nan equals nan.
    #[track_caller]
    fn runs(&self) -> (Tensor, Tensor) {
        let x = self.flatten().sort(0);
        let n = x.size();
        if n < 2 {
            return (x, Tensor::full(&[n], true));
        }
        let (a, b) = (x.narrow(0, 1, n), x.narrow(0, 0, n - 1));
        let differ = a.ne(&b) & !(a.is_nan() & b.is_nan());
        let mask = concatenate(&[Tensor::full(&[1], true), differ], 0);
        (x, mask)
    }
    /// The elements, each once, ascending.
    ///
    /// # Panics
    /// If they are not known: see [`Tensor::unique_sized`].
    #[track_caller]
    pub fn unique(&self) -> Tensor {
        let (x, mask) = self.runs();
        x.slice(crate::s![&mask])
    }
    /// The first `size` of the ascending elements, each once, and how often each occurs; the least one, no times, in the place of those
    /// that are not there.
    #[track_caller]
    pub fn unique_sized(&self, size: usize) -> (Tensor, Tensor) {
        let (x, mask) = self.runs();
        let n = x.size();
        let first = mask.nonzero_sized(size).remove(0);
        let there = Tensor::arange(size, Dtype::I32).lt(mask.astype(Dtype::I32).sum());
        let starts = where_(&there, &first, n).astype(Dtype::I32);
        let after = mask.nonzero_sized(size + 1).remove(0).narrow(0, 1, size + 1);
        let more = Tensor::arange(size, Dtype::I32).lt(mask.astype(Dtype::I32).sum() - 1);
        let ends = where_(&more, after, n).astype(Dtype::I32);
        (x.take(&first, 0), ends - starts)
    }
    /// `(values, indices, inverse, counts)`: the elements, each once, ascending; the first position
    /// of each; for each element, in the tensor's shape, its index in `values`; how often each
    /// occurs. nan differs from nan here.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let (values, first, inverse, counts) = Tensor::from([[2, 1], [2, 5]]).unique_all();
    /// assert_eq!((values.to_vec::<i32>()?, first.to_vec::<i32>()?), (vec![1, 2, 5], vec![1, 0, 3]));
    /// assert_eq!((inverse.to_vec::<i32>()?, counts.to_vec::<i32>()?), (vec![1, 0, 1, 2], vec![1, 2, 1]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn unique_all(&self) -> (Tensor, Tensor, Tensor, Tensor) {
        let flat = self.flatten();
        let (sorted, order) = flat.sort_with(&Tensor::arange(flat.size(), Dtype::I32), 0);
        let n = flat.size();
        let mask = match n {
            0 | 1 => Tensor::full(&[n], true),
            n => concatenate(&[Tensor::full(&[1], true), sorted.narrow(0, 1, n).ne(sorted.narrow(0, 0, n - 1))], 0),
        };
        let starts = mask.nonzero().remove(0);
        let ranks = mask.astype(Dtype::I32).cumsum(0) - 1;
        let inverse = Tensor::zeros_in(&[n], Dtype::I32).at(crate::s![&order]).set(ranks).reshape(self.shape());
        let ends = starts.append(Tensor::full(&[1], n).astype(Dtype::I32));
        let k = starts.size();
        let counts = ends.narrow(0, 1, k + 1) - ends.narrow(0, 0, k);
        (sorted.slice(crate::s![&starts]), order.slice(crate::s![&starts]), inverse, counts)
    }
    /// `(values, inverse)` of [`Tensor::unique_all`].
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let (values, at) = Tensor::from([3, 1, 3]).unique_inverse();
    /// assert_eq!(values.take(&at, 0).to_vec::<i32>()?, [3, 1, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn unique_inverse(&self) -> (Tensor, Tensor) {
        let (values, _, inverse, _) = self.unique_all();
        (values, inverse)
    }
    /// `(values, counts)` of [`Tensor::unique_all`]; [`Tensor::unique_sized`] works where elements are not known.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 1, 3]).unique_counts().1.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn unique_counts(&self) -> (Tensor, Tensor) {
        let (values, _, _, counts) = self.unique_all();
        (values, counts)
    }
    /// The positions of the first `size` elements that are nonzero, a vector (int32) for each axis; position 0 for those that are not there.
    #[track_caller]
    pub fn nonzero_sized(&self, size: usize) -> Vec<Tensor> {
        let mask = self.ne(constant(self.dtype(), 0.0)).flatten();
        let n = self.size();
        // the position of the k-th is how many running counts are at most k
        let at = match n {
            0 => Tensor::zeros_in(&[size], Dtype::I32),
            _ => {
                let counts = mask.astype(Dtype::I32).cumsum(0);
                Tensor::zeros_in(&[size], Dtype::I32).at(crate::s![&counts]).add(1).cumsum(0)
            }
        };
        let there = Tensor::arange(size, Dtype::I32).lt(mask.astype(Dtype::I32).sum());
        let at = where_(&there, at, 0).astype(Dtype::I32);
        let mut stride = n;
        let along = |k: &usize| {
            stride /= (*k).max(1);
            at.floor_div(stride.max(1)).modulo((*k).max(1))
        };
        self.shape().iter().map(along).collect()
    }
    /// Elementwise: whether it is among `those`.
    #[track_caller]
    pub fn is_in(&self, those: &Tensor) -> Tensor {
        self.expand_dims(-1).eq(those.flatten()).any_axes(-1)
    }
    /// The elements of both, each once, ascending.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).union1d(&Tensor::from([2, 3])).to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn union1d(&self, o: &Tensor) -> Tensor {
        concatenate(&[self.flatten(), o.flatten()], 0).unique()
    }
    /// The elements that the other has too, each once, ascending.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).intersect1d(&Tensor::from([2, 3])).to_vec::<i32>()?, [3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn intersect1d(&self, o: &Tensor) -> Tensor {
        let [x, o] = exactly(promote(&[self, o]));
        let x = x.unique();
        x.slice(crate::s![&x.is_in(&o)])
    }
    /// The elements that do not occur in the other, each once, ascending.
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn setdiff1d(&self, o: &Tensor) -> Tensor {
        let x = self.unique();
        x.slice(crate::s![&(!x.is_in(o))])
    }
    /// The elements that occur in exactly one of the two, each once, ascending.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).setxor1d(&Tensor::from([2, 3])).to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If they are not known.
    #[track_caller]
    pub fn setxor1d(&self, o: &Tensor) -> Tensor {
        self.setdiff1d(o).union1d(&o.setdiff1d(self))
    }
    /// The positions where it is nonzero, a vector (int32) for each axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let at = Tensor::from([[0, 7], [1, 0]]).nonzero();
    /// assert_eq!((at[0].to_vec::<i32>()?, at[1].to_vec::<i32>()?), (vec![0, 1], vec![1, 0]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the elements are not known: see [`Tensor::nonzero_sized`].
    #[track_caller]
    pub fn nonzero(&self) -> Vec<Tensor> {
        super::indexing::positions(&self.ne(constant(self.dtype(), 0.0)))
    }
    /// The elements where a condition of the same shape holds, in one vector.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 5, 9]);
    /// assert_eq!(x.extract(&x.gt(3)).to_vec::<i32>()?, [5, 9]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the condition is not known.
    #[track_caller]
    pub fn extract(&self, condition: &Tensor) -> Tensor {
        self.slice(crate::s![&condition.astype(Dtype::BOOL)])
    }
    /// Two laid end to end, flattened.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 2]]).append(3).to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn append(&self, o: impl IntoTensor) -> Tensor {
        concatenate(&[self.flatten(), o.into_tensor().strong().flatten()], 0)
    }
}
