//! Several tensors into one, one into several, and the choice between two.
use super::{IntoTensor, Tensor, axis_of, emit, emit_many, promote};
use crate::mistakes::{self, ok};
use crate::numpy::elementwise::{broadcast_shapes, broadcast_to};
use ferrax_ir::ops::concatenate::{Concatenate, Split};
use ferrax_ir::ops::select::Select;
use ferrax_ir::ops::stack::{Stack, Unstack};
use ferrax_ir::{Dims, Dtype, Error};
use std::borrow::Borrow;

#[track_caller]
fn promoted<T: Borrow<Tensor>>(x: &[T], what: &str) -> Vec<Tensor> {
    if x.is_empty() {
        mistakes::raise(Error::value(format!("Need at least one array to {what}.")));
    }
    promote(&x.iter().map(Borrow::<Tensor>::borrow).collect::<Vec<_>>())
}
/// One after the other along an axis; dtypes promote.
///
/// ```
/// use ferrax::{Tensor, concatenate};
/// assert_eq!(concatenate(&[Tensor::from([1, 2]), Tensor::from([3])], 0).to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// If there is none, or shapes differ elsewhere.
#[track_caller]
pub fn concatenate<T: Borrow<Tensor>>(x: &[T], axis: i64) -> Tensor {
    let x = promoted(x, "concatenate");
    let dimension = axis_of(axis, x[0].rank());
    emit(Concatenate { dimension }, &x.iter().collect::<Vec<_>>())
}
/// Side by side along a new axis; dtypes promote.
///
/// ```
/// use ferrax::{Tensor, stack};
/// assert_eq!(stack(&[Tensor::from([1, 2]), Tensor::from([3, 4])], 1).to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// If there is none, or shapes differ.
#[track_caller]
pub fn stack<T: Borrow<Tensor>>(x: &[T], axis: i64) -> Tensor {
    let x = promoted(x, "stack");
    let axis = axis_of(axis, x[0].rank() + 1);
    emit(Stack { axis }, &x.iter().collect::<Vec<_>>())
}
/// All repeated to their common shape.
///
/// ```
/// use ferrax::{Tensor, broadcast_arrays};
/// let all = broadcast_arrays(&[Tensor::ones(&[3, 1]), Tensor::ones(&[4])]);
/// assert_eq!(all[1].shape(), [3, 4]);
/// ```
#[track_caller]
pub fn broadcast_arrays<T: Borrow<Tensor>>(x: &[T]) -> Vec<Tensor> {
    let shape = ok(broadcast_shapes(x.iter().map(|t| Borrow::<Tensor>::borrow(t).shape())));
    x.iter().map(|t| Borrow::<Tensor>::borrow(t).broadcast_to(&shape)).collect()
}
/// `yes` where the condition holds, else `no`; the three broadcast, and `yes` and `no` promote.
///
/// Both are computed: a nan of the unused one reaches derivatives.
///
/// ```
/// use ferrax::{Tensor, where_};
/// let x = Tensor::from([-1.0f32, 4.0]);
/// let root = where_(&x.gt(0.0), where_(&x.gt(0.0), &x, 1.0).sqrt(), 0.0); // safe under `grad`, too
/// assert_eq!(root.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn where_(condition: &Tensor, yes: impl IntoTensor, no: impl IntoTensor) -> Tensor {
    let (yes, no) = (yes.into_tensor(), no.into_tensor());
    let c = condition.astype(Dtype::BOOL);
    let x = promote(&[&yes, &no]);
    let shape = ok(broadcast_shapes([c.shape(), x[0].shape(), x[1].shape()].into_iter()));
    let [yes, no] = [&x[0], &x[1]].map(|t| Tensor(ok(broadcast_to(&t.0, &shape))));
    let c = if c.rank() == 0 { c } else { Tensor(ok(broadcast_to(&c.0, &shape))) };
    emit(Select {}, &[&c, &no, &yes])
}
impl Tensor {
    /// Equal parts along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3, 4]).split(2, 0)[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `n` does not divide the size.
    #[track_caller]
    pub fn split(&self, n: usize, axis: i64) -> Vec<Tensor> {
        let k = axis_of(axis, self.rank());
        if n == 0 || !self.shape()[k].is_multiple_of(n) {
            mistakes::raise(Error::value("array split does not result in an equal division"));
        }
        self.split_sizes(&vec![self.shape()[k] / n; n], axis)
    }
    /// Parts of these sizes along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3, 4]).split_sizes(&[1, 3], 0)[1].to_vec::<i32>()?, [2, 3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn split_sizes(&self, sizes: &[usize], axis: i64) -> Vec<Tensor> {
        let axis = axis_of(axis, self.rank());
        emit_many(Split { axis, sizes: Dims::new(sizes) }, &[self])
    }
    /// The slices along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let columns = Tensor::from([[1, 2], [3, 4]]).unstack(1);
    /// assert_eq!(columns[0].to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn unstack(&self, axis: i64) -> Vec<Tensor> {
        emit_many(Unstack { axis: axis_of(axis, self.rank()) }, &[self])
    }
}
