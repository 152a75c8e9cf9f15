//! Collectives over the named axis of a `vmap` or `pmap`.
//!
//! ```
//! use ferrax::{Tensor, VmapOptions, all_gather, axis_index, pmean, ppermute, vmap_with};
//! let x = Tensor::from([1.0f32, 2.0, 6.0]);
//! let o = VmapOptions { name: Some("i"), ..VmapOptions::default() };
//! let centred = vmap_with(o.clone(), |x: &Tensor| x - pmean(x, "i"))(&x)?;
//! assert_eq!(centred.to_vec::<f32>()?, [-2.0, -1.0, 3.0]);
//! let turned = vmap_with(o.clone(), |x: &Tensor| ppermute(x, "i", &[(0, 1), (1, 2), (2, 0)]))(&x)?;
//! assert_eq!(turned.to_vec::<f32>()?, [6.0, 1.0, 2.0]);
//! let all = vmap_with(o, |x: &Tensor| all_gather(x, "i") * axis_index("i"))(&x)?;
//! assert_eq!(all.shape(), [3, 3]);
//! # Ok::<(), ferrax::Error>(())
//! ```
use crate::mistakes::{self, ok};
use crate::tensor::{IntoTensor, Tensor, axis_of, emit};
use ferrax_ir::Error;
use ferrax_ir::ops::collective::{
    AllGather, AllReduce, AllReduceKind, AllToAll, AxisIndex, GatherKind, Names, Permute, ReduceScatter, ScatterSumKind,
};

fn names(axis: &str) -> Names {
    Names([axis.into()].into_iter().collect())
}
#[track_caller]
fn all_reduce(kind: AllReduceKind, x: impl IntoTensor, axis: &str) -> Tensor {
    axis_size(axis);
    emit(AllReduce { kind, axes: names(axis), axis_index_groups: None }, &[&x.into_tensor()])
}
/// The sum over a named axis.
#[track_caller]
pub fn psum(x: impl IntoTensor, axis: &str) -> Tensor {
    all_reduce(AllReduceKind::Sum, x, axis)
}
/// The maximum over a named axis.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, pmax, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| pmax(x, "i"));
/// assert_eq!(f(&Tensor::from([1, 5]))?.to_vec::<i32>()?, [5, 5]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn pmax(x: impl IntoTensor, axis: &str) -> Tensor {
    all_reduce(AllReduceKind::Max, x, axis)
}
/// The minimum over a named axis.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, pmin, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| pmin(x, "i"));
/// assert_eq!(f(&Tensor::from([1, 5]))?.to_vec::<i32>()?, [1, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn pmin(x: impl IntoTensor, axis: &str) -> Tensor {
    all_reduce(AllReduceKind::Min, x, axis)
}
/// The mean over a named axis.
#[track_caller]
pub fn pmean(x: impl IntoTensor, axis: &str) -> Tensor {
    psum(x, axis) / axis_size(axis)
}
/// How many slices a named axis has.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, axis_size, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| x * axis_size("i") as i32);
/// assert_eq!(f(&Tensor::from([1, 5]))?.to_vec::<i32>()?, [2, 10]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// If no axis of that name is in scope.
#[track_caller]
pub fn axis_size(axis: &str) -> usize {
    ok(ferrax_ir::cx::axis_size(axis))
}
/// Which slice this is (int32).
#[track_caller]
pub fn axis_index(axis: &str) -> Tensor {
    mistakes::init();
    axis_size(axis);
    emit(AxisIndex { axis_name: axis.into() }, &[])
}
/// All slices, along a new leading axis.
#[track_caller]
pub fn all_gather(x: impl IntoTensor, axis: &str) -> Tensor {
    let op = AllGather {
        all_gather_dimension: 0,
        axis_index_groups: None,
        axis_name: names(axis),
        axis_size: axis_size(axis),
        tiled: false,
        kind: GatherKind::Vary,
    };
    emit(op, &[&x.into_tensor()])
}
/// Slice a's value goes to slice b, for each pair (a, b); who gets none has zeros.
#[track_caller]
pub fn ppermute(x: impl IntoTensor, axis: &str, pairs: &[(usize, usize)]) -> Tensor {
    axis_size(axis);
    emit(Permute { axis_name: names(axis), perm: pairs.to_vec() }, &[&x.into_tensor()])
}
/// The sum over a named axis, of which each slice gets its part along an axis of `x` that is as
/// long as there are slices.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, all_to_all, psum_scatter, vmap_with};
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let o = VmapOptions { name: Some("i"), ..VmapOptions::default() };
/// let sums = vmap_with(o.clone(), |x: &Tensor| psum_scatter(x, "i", 0))(&x)?;
/// assert_eq!(sums.to_vec::<f32>()?, [4.0, 6.0]);
/// let turned = vmap_with(o, |x: &Tensor| all_to_all(x, "i", 0, 0))(&x)?;
/// assert_eq!(turned.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn psum_scatter(x: impl IntoTensor, axis: &str, dimension: i64) -> Tensor {
    let (x, axis_size) = (x.into_tensor(), axis_size(axis));
    let op = ReduceScatter {
        kind: ScatterSumKind::Vary,
        axis_index_groups: None,
        axis_name: names(axis),
        axis_size,
        scatter_dimension: axis_of(dimension, x.rank()),
        tiled: false,
    };
    emit(op, &[&x])
}
/// Slice i's j-th part along `split` goes to slice j, where it is the i-th along `concat`.
#[track_caller]
pub fn all_to_all(x: impl IntoTensor, axis: &str, split: i64, concat: i64) -> Tensor {
    let (x, axis_size) = (x.into_tensor(), axis_size(axis));
    let op = AllToAll {
        axis_index_groups: None,
        axis_name: axis.into(),
        axis_size,
        concat_axis: axis_of(concat, x.rank()),
        split_axis: axis_of(split, x.rank()),
        tiled: false,
    };
    emit(op, &[&x])
}
/// A named axis changes places with an axis of `x`.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, pswapaxes, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| pswapaxes(x, "i", 0));
/// assert_eq!(f(&Tensor::from([[1, 2], [3, 4]]))?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn pswapaxes(x: impl IntoTensor, axis: &str, with: i64) -> Tensor {
    all_to_all(x, axis, with, with)
}
/// Slice i gets the value of slice `order[i]`.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, pshuffle, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| pshuffle(x, "i", &[1, 0]));
/// assert_eq!(f(&Tensor::from([1, 5]))?.to_vec::<i32>()?, [5, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// Unless the order is one of all slices.
#[track_caller]
pub fn pshuffle(x: impl IntoTensor, axis: &str, order: &[usize]) -> Tensor {
    let mut all = order.to_vec();
    all.sort_unstable();
    if !all.into_iter().eq(0..axis_size(axis)) {
        mistakes::raise(Error::value(format!("`perm` does not represent a permutation: {order:?}")));
    }
    ppermute(x, axis, &order.iter().enumerate().map(|(i, from)| (*from, i)).collect::<Vec<_>>())
}
/// The value of one slice, everywhere.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, pbroadcast, vmap_with};
/// let f = vmap_with(VmapOptions { name: Some("i"), ..VmapOptions::default() }, |x: &Tensor| pbroadcast(x, "i", 1));
/// assert_eq!(f(&Tensor::from([1, 5]))?.to_vec::<i32>()?, [5, 5]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn pbroadcast(x: impl IntoTensor, axis: &str, source: usize) -> Tensor {
    let all = all_gather(x, axis);
    all.narrow(0, source, source + 1).squeeze(0)
}
