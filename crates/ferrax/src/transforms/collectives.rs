//! What the slices of a `vmap` that has a name tell each other.
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
use crate::tensor::{IntoTensor, Tensor, emit};
use ferrax_ir::ops::collective::{AllGather, AllReduce, AllReduceKind, AxisIndex, Names, Permute};

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
#[track_caller]
pub fn pmax(x: impl IntoTensor, axis: &str) -> Tensor {
    all_reduce(AllReduceKind::Max, x, axis)
}
/// The minimum over a named axis.
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
    };
    emit(op, &[&x.into_tensor()])
}
/// Slice a's value goes to slice b, for each pair (a, b); who gets none has zeros.
#[track_caller]
pub fn ppermute(x: impl IntoTensor, axis: &str, pairs: &[(usize, usize)]) -> Tensor {
    axis_size(axis);
    emit(Permute { axis_name: names(axis), perm: pairs.to_vec() }, &[&x.into_tensor()])
}
