//! Reductions over axes, and cumulative ones along an axis.
//!
//! Each reduction has three forms: `sum()` of everything, `sum_axes(axes)`, and `sum_keep(axes)`, which keeps the axes with size 1.
mod nans;

use super::{Tensor, axis_of, constant, emit, pw, where_};
use crate::mistakes;
use ferrax_ir::ops::argreduce::{ArgKind, ArgReduce};
use ferrax_ir::ops::cumulative::Cumulative;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::reduce::{Monoid, Reduce};
use ferrax_ir::{Dims, Dtype, Error};
use ferrax_kernel::routine::CumulativeKind;
use nans::{nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar};

/// Axes as an operation takes them: one, several, or `..` for all. Negative ones count from the end.
///
/// ```
/// use ferrax::{IntoAxes, Tensor};
/// fn spread(x: &Tensor, axes: impl IntoAxes + Copy) -> Tensor {
///     x.max_axes(axes) - x.min_axes(axes)
/// }
/// let x = Tensor::from([[1, 2], [3, 9]]);
/// assert_eq!((spread(&x, -1).to_vec::<i32>()?, spread(&x, [0, 1]).item(), spread(&x, ..).item()), (vec![1, 6], 8.0, 8.0));
/// # Ok::<(), ferrax::Error>(())
/// ```
pub trait IntoAxes {
    /// Which of `rank` axes, counted from the front.
    #[track_caller]
    fn axes(&self, rank: usize) -> Dims;
    /// Whether it means all axes, however many there are.
    fn all(&self) -> bool {
        false
    }
}
macro_rules! axis {
    ($($T:ty)*) => { $(
        impl IntoAxes for $T {
            #[track_caller]
            fn axes(&self, rank: usize) -> Dims {
                [axis_of(*self as i64, rank)].into()
            }
        }
        impl<const N: usize> IntoAxes for [$T; N] {
            #[track_caller]
            fn axes(&self, rank: usize) -> Dims {
                distinct(self.iter().map(|k| *k as i64), rank)
            }
        }
        impl IntoAxes for &[$T] {
            #[track_caller]
            fn axes(&self, rank: usize) -> Dims {
                distinct(self.iter().map(|k| *k as i64), rank)
            }
        }
    )* }
}
axis! { i32 i64 usize }
impl IntoAxes for std::ops::RangeFull {
    fn axes(&self, rank: usize) -> Dims {
        (0..rank).collect()
    }
    fn all(&self) -> bool {
        true
    }
}
#[track_caller]
fn distinct(axes: impl Iterator<Item = i64>, rank: usize) -> Dims {
    let mut out = Dims::default();
    for a in axes {
        let k = axis_of(a, rank);
        if out.contains(&k) {
            mistakes::raise(Error::value(format!("duplicate value in 'axis': {a}")));
        }
        out.push(k);
    }
    out
}

/// The dtype in which elements are added and multiplied: at least 32 bits of integers.
fn widened(d: Dtype) -> Dtype {
    match d {
        Dtype::BOOL | Dtype::I8 | Dtype::I16 => Dtype::I32,
        Dtype::U8 | Dtype::U16 => Dtype::U32,
        Dtype::F16 | Dtype::BF16 => Dtype::F32,
        d => d,
    }
}
#[track_caller]
fn reduce(kind: Monoid, x: &Tensor, axes: &Dims) -> Tensor {
    if axes.is_empty() {
        return x.clone();
    }
    emit(Reduce { kind, axes: axes.iter().copied().collect() }, &[x])
}
#[track_caller]
pub(super) fn sum(x: &Tensor, axes: &Dims) -> Tensor {
    accumulate(Monoid::Sum, x, axes)
}
#[track_caller]
pub(super) fn prod(x: &Tensor, axes: &Dims) -> Tensor {
    accumulate(Monoid::Prod, x, axes)
}
#[track_caller]
fn accumulate(kind: Monoid, x: &Tensor, axes: &Dims) -> Tensor {
    let (d, wide) = (x.dtype(), widened(x.dtype()));
    let total = reduce(kind, &x.strong_as(wide), axes);
    if d.is_float() { total.strong_as(d) } else { total }
}
#[track_caller]
fn extreme(kind: Monoid, name: &str, x: &Tensor, axes: &Dims) -> Tensor {
    if axes.iter().any(|k| x.shape()[*k] == 0) {
        mistakes::raise(Error::value(format!("zero-size array to reduction operation {name} which has no identity")));
    }
    reduce(kind, x, axes)
}
#[track_caller]
pub(super) fn max(x: &Tensor, axes: &Dims) -> Tensor {
    extreme(Monoid::Max, "max", x, axes)
}
#[track_caller]
pub(super) fn min(x: &Tensor, axes: &Dims) -> Tensor {
    extreme(Monoid::Min, "min", x, axes)
}
#[track_caller]
pub(super) fn all(x: &Tensor, axes: &Dims) -> Tensor {
    reduce(Monoid::And, &x.astype(Dtype::BOOL), axes)
}
#[track_caller]
fn any(x: &Tensor, axes: &Dims) -> Tensor {
    reduce(Monoid::Or, &x.astype(Dtype::BOOL), axes)
}
#[track_caller]
fn ptp(x: &Tensor, axes: &Dims) -> Tensor {
    pw(Pw::Sub, &[&max(x, axes), &min(x, axes)])
}
#[track_caller]
fn reduce_xor(x: &Tensor, axes: &Dims) -> Tensor {
    reduce(Monoid::Xor, x, axes)
}
/// The largest finite number of a float dtype.
pub(super) fn most_of(d: Dtype) -> f64 {
    match d {
        Dtype::F16 => half::f16::MAX.to_f64(),
        Dtype::BF16 => half::bf16::MAX.to_f64(),
        Dtype::F64 => f64::MAX,
        _ => f32::MAX as f64,
    }
}
fn count(x: &Tensor, axes: &Dims) -> f64 {
    axes.iter().map(|k| x.shape()[*k]).product::<usize>() as f64
}
#[track_caller]
fn mean(x: &Tensor, axes: &Dims) -> Tensor {
    let result = super::inexact(x).dtype();
    let computed = widened(result);
    let x = if x.dtype().is_bool() { x.astype(Dtype::I32) } else { x.clone() };
    let total = reduce(Monoid::Sum, &x.strong_as(computed), axes);
    pw(Pw::Div, &[&total, &constant(computed, count(&x, axes))]).strong_as(result)
}
#[track_caller]
fn var(x: &Tensor, axes: &Dims) -> Tensor {
    variance(x, axes, 0.0)
}
#[track_caller]
fn variance(x: &Tensor, axes: &Dims, ddof: f64) -> Tensor {
    let result = super::inexact(x).dtype();
    let computed = widened(result);
    let x = x.strong_as(computed);
    let centered = pw(Pw::Sub, &[&x, &keep(&mean(&x, axes), x.shape(), axes)]);
    let squares = match computed.is_complex() {
        true => (&centered * centered.conj()).real(),
        false => pw(Pw::Square, &[&centered]),
    };
    let real = squares.dtype();
    let n = constant(real, count(&x, axes) - ddof);
    let out = pw(Pw::Div, &[&reduce(Monoid::Sum, &squares, axes), &n]);
    where_(&n.gt(0.0), &out, f64::NAN).strong_as(result.real())
}
#[track_caller]
fn std(x: &Tensor, axes: &Dims) -> Tensor {
    root(&var(x, axes))
}
/// The square root of a sum of squares, whose derivative at 0 is 0.
#[track_caller]
pub(super) fn root(s: &Tensor) -> Tensor {
    let nothing = s.eq(0.0);
    where_(&nothing, s, where_(&nothing, s.ones_like(), s).sqrt())
}
#[track_caller]
fn norm(x: &Tensor, axes: &Dims) -> Tensor {
    let x = super::inexact(x);
    root(&sum(&(x.real() * x.real() + x.imag() * x.imag()).strong_as(x.dtype().real()), axes))
}
#[track_caller]
fn log_sum_exp(x: &Tensor, axes: &Dims) -> Tensor {
    let x = super::inexact(x);
    let top = keep(&max(&x.real(), axes), x.shape(), axes);
    let top = where_(&top.is_finite(), &top, 0.0).stop_gradient();
    let total = keep(&sum(&(&x - &top).exp(), axes), x.shape(), axes);
    let empty = total.eq(0.0);
    let out = where_(&empty, f64::NEG_INFINITY, where_(&empty, 1.0, &total).log() + top);
    if axes.is_empty() {
        return out;
    }
    emit(ferrax_ir::ops::squeeze::Squeeze { dimensions: sorted(axes) }, &[&out])
}
fn sorted(axes: &Dims) -> Dims {
    let mut v = axes.to_vec();
    v.sort_unstable();
    v.into_iter().collect()
}
/// A reduced tensor with the axes put back, of size 1.
#[track_caller]
pub(super) fn keep(x: &Tensor, shape: &[usize], axes: &Dims) -> Tensor {
    let kept: Vec<usize> = shape.iter().enumerate().map(|(k, n)| if axes.contains(&k) { 1 } else { *n }).collect();
    let dims: Dims = (0..shape.len()).filter(|k| !axes.contains(k)).collect();
    let shape = Dims::new(&kept);
    emit(ferrax_ir::ops::broadcast::BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }, &[x])
}
macro_rules! reductions {
    ($($f:ident $axes:ident $keep:ident $doc:literal $x:tt => $all:literal $first:tt;)*) => {
        impl Tensor { $(
            #[doc = concat!(
                $doc, ", over all axes.\n\n```\nlet y = ferrax::Tensor::from(", stringify!($x), ").", stringify!($f),
                "();\nassert!((y.item() - ", stringify!($all), ").abs() < 1e-6);\n```"
            )]
            #[track_caller]
            pub fn $f(&self) -> Tensor {
                $f(self, &(..).axes(self.rank()))
            }
            #[doc = concat!(
                $doc, ", over these axes.\n\n```\nuse ferrax::Tensor;\nlet y = Tensor::from(", stringify!($x), ").", stringify!($axes),
                "(0);\nassert_eq!(y.all_close(Tensor::from(", stringify!($first), "), 1e-6, 1e-6).item(), 1.0);\n```"
            )]
            #[track_caller]
            pub fn $axes(&self, axes: impl IntoAxes) -> Tensor {
                $f(self, &axes.axes(self.rank()))
            }
            #[doc = concat!(
                $doc, ", over these axes, which stay with size 1.\n\n```\nlet x = ferrax::Tensor::from(", stringify!($x),
                ");\nassert_eq!(x.", stringify!($keep), "(0).shape(), [1, 2]);\nassert_eq!(x.", stringify!($keep),
                "([0, -1]).shape(), [1, 1]);\n```"
            )]
            #[track_caller]
            pub fn $keep(&self, axes: impl IntoAxes) -> Tensor {
                let axes = axes.axes(self.rank());
                keep(&$f(self, &axes), self.shape(), &axes)
            }
        )* }
    }
}
reductions! {
    sum sum_axes sum_keep "Sum; of small integers and booleans in 32 bits"
        [[1.0f32, 2.0], [3.0, 4.0]] => 10.0 [4.0f32, 6.0];
    prod prod_axes prod_keep "Product; of small integers and booleans in 32 bits"
        [[1.0f32, 2.0], [3.0, 4.0]] => 24.0 [3.0f32, 8.0];
    max max_axes max_keep "Largest element, nan if any is"
        [[1.0f32, 2.0], [3.0, 4.0]] => 4.0 [3.0f32, 4.0];
    min min_axes min_keep "Least element, nan if any is"
        [[1.0f32, 2.0], [3.0, 4.0]] => 1.0 [1.0f32, 2.0];
    all all_axes all_keep "Whether every element is nonzero"
        [[1, 0], [1, 1]] => 0.0 [true, false];
    any any_axes any_keep "Whether some element is nonzero"
        [[0, 0], [1, 0]] => 1.0 [true, false];
    mean mean_axes mean_keep "Arithmetic mean; integers become floats"
        [[1.0f32, 2.0], [3.0, 4.0]] => 2.5 [2.0f32, 3.0];
    var var_axes var_keep "Mean squared distance from the mean"
        [[1.0f32, 2.0], [3.0, 4.0]] => 1.25 [1.0f32, 1.0];
    std std_axes std_keep "Square root of the variance"
        [[1.0f32, 2.0], [3.0, 4.0]] => 1.118034 [1.0f32, 1.0];
    norm norm_axes norm_keep "Square root of the sum of squares"
        [[3.0f32, 0.0], [4.0, 0.0]] => 5.0 [5.0f32, 0.0];
    log_sum_exp log_sum_exp_axes log_sum_exp_keep "`log(sum(exp(x)))`, without overflow"
        [[0.0f32, 0.0], [0.0, 0.0]] => 1.3862944 [0.6931472f32, 0.6931472];
    ptp ptp_axes ptp_keep "Largest element less the least"
        [[1.0f32, 2.0], [3.0, 4.0]] => 3.0 [2.0f32, 2.0];
    reduce_xor reduce_xor_axes reduce_xor_keep "Bitwise exclusive or of booleans or integers"
        [[1, 2], [3, 4]] => 4.0 [2, 6];
    nansum nansum_axes nansum_keep "Sum, nan counting as 0"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 8.0 [4.0f32, 4.0];
    nanprod nanprod_axes nanprod_keep "Product, nan counting as 1"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 12.0 [3.0f32, 4.0];
    nanmax nanmax_axes nanmax_keep "Largest element that is not nan; nan if all are"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 4.0 [3.0f32, 4.0];
    nanmin nanmin_axes nanmin_keep "Least element that is not nan; nan if all are"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 1.0 [1.0f32, 4.0];
    nanmean nanmean_axes nanmean_keep "Mean of the elements that are not nan"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 2.6666667 [2.0f32, 4.0];
    nanvar nanvar_axes nanvar_keep "Variance of the elements that are not nan"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 1.5555556 [1.0f32, 0.0];
    nanstd nanstd_axes nanstd_keep "Square root of the variance of the elements that are not nan"
        [[1.0f32, f32::NAN], [3.0, 4.0]] => 1.2472192 [1.0f32, 0.0];
}
macro_rules! running {
    ($($f:ident $K:ident $doc:literal $x:tt => $y:tt;)*) => {
        impl Tensor { $(
            #[doc = concat!(
                $doc, "\n\n```\nuse ferrax::Tensor;\nlet y = Tensor::from(", stringify!($x), ").", stringify!($f), "(0);\n",
                "assert_eq!(y.all_close(Tensor::from(", stringify!($y), "), 1e-6, 1e-6).item(), 1.0);\n```"
            )]
            #[track_caller]
            pub fn $f(&self, axis: i64) -> Tensor {
                let axis = axis_of(axis, self.rank());
                let x = if matches!(CumulativeKind::$K, CumulativeKind::Sum | CumulativeKind::Prod) && self.dtype().is_bool() {
                    self.astype(Dtype::I32)
                } else {
                    self.clone()
                };
                emit(Cumulative { kind: CumulativeKind::$K, axis, reverse: false }, &[&x])
            }
        )* }
    }
}
running! {
    cumsum Sum "Running sum along an axis." [1.0f32, 3.0, 2.0] => [1.0f32, 4.0, 6.0];
    cumprod Prod "Running product along an axis." [1.0f32, 3.0, 2.0] => [1.0f32, 3.0, 6.0];
    cummax Max "Running maximum along an axis." [1.0f32, 3.0, 2.0] => [1.0f32, 3.0, 3.0];
    cummin Min "Running minimum along an axis." [3.0f32, 1.0, 2.0] => [3.0f32, 1.0, 1.0];
    cumlogsumexp LogSumExp "Running `log(sum(exp(x)))` along an axis." [0.0f32, 0.0] => [0.0f32, 0.6931472];
}
impl Tensor {
    /// The variance over n - ddof.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 3.0]).var_ddof(0, 1.0).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn var_ddof(&self, axes: impl IntoAxes, ddof: f64) -> Tensor {
        variance(self, &axes.axes(self.rank()), ddof)
    }
    /// The standard deviation over n - ddof.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 3.0, 5.0]).std_ddof(0, 1.0).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn std_ddof(&self, axes: impl IntoAxes, ddof: f64) -> Tensor {
        root(&self.var_ddof(axes, ddof))
    }
    /// The position (int32) of the first largest element along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 5, 5]).argmax(0).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn argmax(&self, axis: i64) -> Tensor {
        self.argreduce(ArgKind::Max, axis)
    }
    /// The position (int32) of the first least element along an axis.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[3, 1], [2, 9]]).argmin(1).to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn argmin(&self, axis: i64) -> Tensor {
        self.argreduce(ArgKind::Min, axis)
    }
    #[track_caller]
    fn argreduce(&self, kind: ArgKind, axis: i64) -> Tensor {
        emit(ArgReduce { kind, axes: [axis_of(axis, self.rank())].into(), index_dtype: Dtype::I32 }, &[self])
    }
    /// How many elements are nonzero, int32.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([0, 7, 1]).count_nonzero().item(), 2.0);
    /// ```
    #[track_caller]
    pub fn count_nonzero(&self) -> Tensor {
        self.ne(0).sum()
    }
    /// `astype` that leaves a value of that dtype as it is, weak or not.
    #[track_caller]
    pub(super) fn strong_as(&self, d: Dtype) -> Tensor {
        if self.dtype() == d { self.clone() } else { self.astype(d) }
    }
}
