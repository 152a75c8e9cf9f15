//! Indexing: `x.slice(s![..])` reads, `x.at(s![..])` gives a new tensor with some elements changed.
//!
//! ```
//! use ferrax::{Ellipsis, NewAxis, Tensor, s};
//! let x = Tensor::arange(12, ferrax::Dtype::F32).reshape(&[3, 4]);
//! assert_eq!(x.slice(s![1]).to_vec::<f32>()?, [4.0, 5.0, 6.0, 7.0]);
//! assert_eq!(x.slice(s![.., -1]).to_vec::<f32>()?, [3.0, 7.0, 11.0]);
//! assert_eq!(x.slice(s![..; -1, 1..3]).shape(), [3, 2]); // `a..b; step`
//! assert_eq!(x.slice(s![NewAxis, Ellipsis, 0]).shape(), [1, 3]);
//! let rows = Tensor::from([2, 0]);
//! assert_eq!(x.slice(s![&rows, 1]).to_vec::<f32>()?, [9.0, 1.0]); // tensors of integers, numpy's way
//! assert_eq!(x.slice(s![&x.gt(9.0)]).to_vec::<f32>()?, [10.0, 11.0]); // or of booleans, where they are known
//! let y = x.at(s![.., 1]).set(0.0).at(s![&rows]).add(1.0);
//! assert_eq!(y.slice(s![0]).to_vec::<f32>()?, [1.0, 1.0, 3.0, 4.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A Rust integer out of bounds is a mistake. An index tensor's element out of bounds reads the
//! nearest element and writes nothing.
//!
//! INVARIANT: static indices become slices; one gather or scatter does the rest.
use super::{IntoTensor, Tensor, axis_of, concatenate, emit, where_};
use crate::mistakes::{self, ok};
use crate::numpy::elementwise::broadcast_shapes;
use crate::numpy::indexing::{Indexed, Item, static_index};
use ferrax_ir::ops::gather::{Gather, GatherDims};
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::scatter::{Scatter, ScatterDims, ScatterKind};
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::{Dims, Dtype, Error, ErrorKind, Lit, Value};
use ferrax_kernel::routine::OutOfBounds;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One entry of an index; [`crate::s!`] makes them from numbers, ranges, tensors, [`NewAxis`] and [`Ellipsis`].
///
/// ```
/// use ferrax::{Subscript, Tensor, s};
/// let rows = Tensor::from([2, 0]);
/// let index: [Subscript; 2] = s![&rows, ..]; // by `From`; or built where the rank is not known
/// assert_eq!(Tensor::ones(&[3, 4]).slice(&index).shape(), [2, 4]);
/// assert_eq!(Tensor::ones(&[3, 4]).slice(vec![Subscript::Int(1); 2]).rank(), 0);
/// ```
#[derive(Clone, Debug)]
pub enum Subscript {
    /// One position; negative ones count from the end. The axis goes.
    Int(i64),
    /// Every `step`-th position from `start` to before `stop`, as Python's slices.
    Range {
        /// The first.
        start: Option<i64>,
        /// After the last.
        stop: Option<i64>,
        /// The step; backwards if negative.
        step: Option<i64>,
    },
    /// The axes that no other entry takes, whole.
    Ellipsis,
    /// A new axis of size 1.
    NewAxis,
    /// Positions (integers), or which positions (booleans).
    Tensor(Tensor),
}
/// In an index: a new axis of size 1.
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;
/// In an index: the axes that no other entry takes.
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

impl Subscript {
    /// A range with a step.
    pub fn step(self, by: i64) -> Subscript {
        match self {
            Subscript::Range { start, stop, .. } => Subscript::Range { start, stop, step: Some(by) },
            s => s,
        }
    }
}
impl From<NewAxis> for Subscript {
    fn from(_: NewAxis) -> Subscript {
        Subscript::NewAxis
    }
}
impl From<Ellipsis> for Subscript {
    fn from(_: Ellipsis) -> Subscript {
        Subscript::Ellipsis
    }
}
impl From<&Tensor> for Subscript {
    fn from(t: &Tensor) -> Subscript {
        Subscript::Tensor(t.clone())
    }
}
impl From<Tensor> for Subscript {
    fn from(t: Tensor) -> Subscript {
        Subscript::Tensor(t)
    }
}
impl From<RangeFull> for Subscript {
    fn from(_: RangeFull) -> Subscript {
        Subscript::Range { start: None, stop: None, step: None }
    }
}
macro_rules! subscript {
    ($($T:ty)*) => { $(
        impl From<$T> for Subscript {
            fn from(i: $T) -> Subscript {
                Subscript::Int(i as i64)
            }
        }
        impl From<Range<$T>> for Subscript {
            fn from(r: Range<$T>) -> Subscript {
                Subscript::Range { start: Some(r.start as i64), stop: Some(r.end as i64), step: None }
            }
        }
        impl From<RangeFrom<$T>> for Subscript {
            fn from(r: RangeFrom<$T>) -> Subscript {
                Subscript::Range { start: Some(r.start as i64), stop: None, step: None }
            }
        }
        impl From<RangeTo<$T>> for Subscript {
            fn from(r: RangeTo<$T>) -> Subscript {
                Subscript::Range { start: None, stop: Some(r.end as i64), step: None }
            }
        }
        impl From<RangeInclusive<$T>> for Subscript {
            fn from(r: RangeInclusive<$T>) -> Subscript {
                let (a, b) = (*r.start() as i64, *r.end() as i64);
                Subscript::Range { start: Some(a), stop: after(b), step: None }
            }
        }
        impl From<RangeToInclusive<$T>> for Subscript {
            fn from(r: RangeToInclusive<$T>) -> Subscript {
                Subscript::Range { start: None, stop: after(r.end as i64), step: None }
            }
        }
    )* }
}
subscript! { i32 i64 usize }
/// After the last one of an inclusive range: after -1 comes the end.
fn after(last: i64) -> Option<i64> {
    if last == -1 { None } else { Some(last + 1) }
}

/// An index: `s![1, .., 2..5, ..; 2, NewAxis, Ellipsis, &positions]`, a range with a step after a semicolon.
#[macro_export]
macro_rules! s {
    ($($e:expr $(; $step:expr)?),* $(,)?) => {
        [$($crate::Subscript::from($e)$(.step($step as i64))?),*]
    };
}

/// The elements that an index names, to be changed in a copy: `x.at(s![..])`.
///
/// ```
/// use ferrax::{Spot, Tensor, s};
/// let spot: Spot = Tensor::from([1, 2, 3]).at(s![1..]);
/// assert_eq!((spot.get().sum().item(), spot.set(0).sum().item()), (5.0, 1.0));
/// ```
#[derive(Clone, Debug)]
pub struct Spot {
    x: Tensor,
    at: Vec<Subscript>,
}

/// A group of axes of an index, in the result's order.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Label {
    /// Axis j of the index tensors' common shape.
    Shared(usize),
    /// The positions of a range along an axis of x.
    Along(usize),
    New,
}
/// An index made explicit.
struct Region {
    /// The result's axes, and their sizes.
    labels: Vec<Label>,
    sizes: Vec<usize>,
    /// Axes of x that index vectors address, and the component of each, of shape `batch`.
    axes: Vec<usize>,
    parts: Vec<Tensor>,
    /// Of the axes of x that are read by windows: their sizes; 1 for points.
    window: Vec<usize>,
    points: Vec<usize>,
    /// The labels of index vectors' axes, then those of windows: the order in which gather and scatter have them.
    order: Vec<Label>,
    batch: usize,
    /// Index vectors are known to be inside.
    inside: bool,
}

/// Boolean tensors as positions; every axis with an entry of its own.
#[track_caller]
fn explicit(x: &Tensor, at: &[Subscript]) -> Vec<Subscript> {
    let mut out = vec![];
    for s in at {
        match s {
            Subscript::Tensor(t) if t.dtype().is_bool() => out.extend(positions(t).into_iter().map(Subscript::Tensor)),
            Subscript::Tensor(t) if !t.dtype().is_int() => mistakes::raise(Error::type_error(format!(
                "Indexer must have integer or boolean type, got indexer with type {} at position {}",
                t.dtype().long(),
                out.len()
            ))),
            s => out.push(s.clone()),
        }
    }
    let used = out.iter().filter(|s| !matches!(s, Subscript::Ellipsis | Subscript::NewAxis)).count();
    if used > x.rank() {
        mistakes::raise(Error::new(
            ErrorKind::Index,
            format!("Too many indices: array is {}-dimensional, but {used} were indexed", x.rank()),
        ));
    }
    let rest = std::iter::repeat_n(Subscript::from(..), x.rank() - used);
    match out.iter().position(|s| matches!(s, Subscript::Ellipsis)) {
        Some(k) => drop(out.splice(k..=k, rest)),
        None => out.extend(rest),
    }
    if out.iter().any(|s| matches!(s, Subscript::Ellipsis)) {
        mistakes::raise(Error::new(ErrorKind::Index, "an index can only have a single ellipsis ('...')"));
    }
    out
}
/// The positions where a boolean tensor holds, a vector for each axis.
#[track_caller]
pub(super) fn positions(t: &Tensor) -> Vec<Tensor> {
    let Some(v) = t.0.concrete() else { mistakes::raise(t.0.abstract_error(ErrorKind::NonConcreteBooleanIndex)) };
    let hold = ok(Tensor(v.clone()).to_vec::<bool>());
    let shape = Dims::new(t.shape());
    let found: Vec<Dims> = hold.iter().enumerate().filter(|h| *h.1).map(|(i, _)| shape.unravel(i)).collect();
    (0..t.rank()).map(|k| Tensor::from(found.iter().map(|p| p[k] as i32).collect::<Vec<_>>())).collect()
}
/// The positions of a Python slice of n elements.
#[track_caller]
fn range(n: usize, start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> (i64, usize, i64) {
    let step = step.unwrap_or(1);
    if step == 0 {
        mistakes::raise(Error::value("slice step cannot be zero"));
    }
    let n = n as i64;
    let step = step.clamp(-n.max(1), n.max(1)); // a longer one meets one element, too
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |i: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (a, b) = (start.map_or(first, clip), stop.map_or(last, clip));
    let count = if step > 0 { (b - a + step - 1) / step } else { (a - b - step - 1) / -step };
    (a, count.max(0) as usize, step)
}

impl Region {
    #[track_caller]
    fn new(x: &Tensor, at: &[Subscript]) -> Region {
        let at = explicit(x, at);
        let mut r = Region {
            labels: vec![],
            sizes: vec![],
            axes: vec![],
            parts: vec![],
            window: x.shape().to_vec(),
            points: vec![],
            order: vec![],
            batch: 0,
            inside: true,
        };
        let tensors = at.iter().filter_map(|s| if let Subscript::Tensor(t) = s { Some(t.shape()) } else { None });
        let shared = ok(broadcast_shapes(tensors));
        // index tensors and integers next to them form one group: their broadcast shape takes its
        // position, or the first one if they are not adjacent
        let any = at.iter().any(|s| matches!(s, Subscript::Tensor(_)));
        let advanced = |s: &Subscript| matches!(s, Subscript::Tensor(_)) || (any && matches!(s, Subscript::Int(_)));
        let mut runs = 0;
        let mut last = false;
        for s in &at {
            runs += (advanced(s) && !last) as usize;
            last = advanced(s);
        }
        let mut put = false;
        let put_shared = |r: &mut Region| {
            r.labels.extend((0..shared.len()).map(Label::Shared));
            r.sizes.extend(shared.iter());
        };
        if runs > 1 {
            put_shared(&mut r);
            put = true;
        }
        // (axis, component, the axis of the batch it varies along)
        let mut parts: Vec<(usize, Tensor, Option<usize>)> = vec![];
        let mut strided = vec![];
        let mut k = 0;
        for s in &at {
            if advanced(s) && !put {
                put_shared(&mut r);
                put = true;
            }
            let n = x.shape().get(k).copied().unwrap_or(0);
            match s {
                Subscript::NewAxis => {
                    r.labels.push(Label::New);
                    r.sizes.push(1);
                    continue;
                }
                Subscript::Int(i) => {
                    let at = if *i < 0 { i + n as i64 } else { *i };
                    if !(0..n as i64).contains(&at) {
                        mistakes::raise(Error::new(
                            ErrorKind::Index,
                            format!("index {i} is out of bounds for axis {k} with size {n}"),
                        ));
                    }
                    r.points.push(k);
                    parts.push((k, super::constant(Dtype::I32, at as f64), None));
                }
                Subscript::Tensor(t) => {
                    let t = if t.dtype() == Dtype::I64 || t.dtype() == Dtype::U64 {
                        t.clone()
                    } else {
                        t.astype(Dtype::I32)
                    };
                    let t = if t.dtype().is_unsigned() { t } else { where_(&t.lt(0), &t + n as i64, &t) };
                    r.points.push(k);
                    r.inside = false;
                    parts.push((k, t.astype(Dtype::I32), None));
                }
                Subscript::Range { start, stop, step } => {
                    let (a, count, step) = range(n, *start, *stop, *step);
                    r.labels.push(Label::Along(k));
                    r.sizes.push(count);
                    if step != 1 && count != 1 {
                        r.points.push(k);
                        let at: Vec<i32> = (0..count as i64).map(|i| (a + i * step) as i32).collect();
                        parts.push((k, Tensor::from(at), Some(strided.len())));
                        strided.push((k, count));
                    } else {
                        r.window[k] = count;
                        if count != n {
                            parts.push((k, super::constant(Dtype::I32, a as f64), None));
                        }
                    }
                }
                Subscript::Ellipsis => unreachable!("made explicit"),
            }
            k += 1;
        }
        let batch: Vec<usize> = shared.iter().copied().chain(strided.iter().map(|s| s.1)).collect();
        r.batch = batch.len();
        for (k, t, along) in parts {
            let t = match along {
                // a range varies along its own axis of the batch
                Some(j) => {
                    let mut shape = vec![1; batch.len()];
                    shape[shared.len() + j] = batch[shared.len() + j];
                    t.reshape(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
                }
                None => {
                    let shape: Vec<i64> =
                        t.shape().iter().map(|n| *n as i64).chain(strided.iter().map(|_| 1)).collect();
                    if t.rank() == 0 { t } else { t.reshape(&shape) }
                }
            };
            r.axes.push(k);
            r.parts.push(t.broadcast_to(&batch));
        }
        for k in &r.points {
            r.window[*k] = 1;
        }
        r.order.extend((0..shared.len()).map(Label::Shared));
        r.order.extend(strided.iter().map(|s| Label::Along(s.0)));
        r.order.extend((0..x.rank()).filter(|k| !r.points.contains(k)).map(Label::Along));
        r
    }
    /// Index vectors on the last axis.
    #[track_caller]
    fn indices(&self) -> Tensor {
        let columns: Vec<Tensor> = self.parts.iter().map(|p| p.expand_dims(-1)).collect();
        concatenate(&columns, -1)
    }
    fn offsets(&self) -> Dims {
        (self.batch..self.order.len()).collect()
    }
    /// From the order of gather to the result's.
    #[track_caller]
    fn shown(&self, y: Tensor) -> Tensor {
        let kept: Vec<Label> = self.labels.iter().copied().filter(|l| *l != Label::New).collect();
        let y = permuted(y, kept.iter().map(|l| position(&self.order, l)));
        y.reshape(&self.sizes.iter().map(|n| *n as i64).collect::<Vec<_>>())
    }
    /// A value for the named elements, in the order of scatter.
    #[track_caller]
    fn hidden(&self, v: &Tensor) -> Tensor {
        let v = v.broadcast_to(&self.sizes);
        let kept: Vec<i64> =
            self.labels.iter().zip(&self.sizes).filter(|l| *l.0 != Label::New).map(|l| *l.1 as i64).collect();
        let labels: Vec<Label> = self.labels.iter().copied().filter(|l| *l != Label::New).collect();
        permuted(v.reshape(&kept), self.order.iter().map(|l| position(&labels, l)))
    }
}
fn position(of: &[Label], l: &Label) -> usize {
    of.iter().position(|o| o == l).unwrap_or(0)
}
#[track_caller]
fn permuted(x: Tensor, order: impl Iterator<Item = usize>) -> Tensor {
    let permutation: Dims = order.collect();
    if permutation.iter().copied().eq(0..x.rank()) {
        return x;
    }
    emit(Transpose { permutation }, &[&x])
}

impl Tensor {
    /// The elements that an index names, numpy's way: `x.slice(s![1, .., &rows])`.
    ///
    /// # Panics
    /// For too many entries, an integer out of bounds, an index tensor of a dtype other than integers and booleans.
    #[track_caller]
    pub fn slice(&self, at: impl AsRef<[Subscript]>) -> Tensor {
        mistakes::init();
        mistakes::here();
        let at = at.as_ref();
        let item = |s: &Subscript| match s {
            Subscript::Int(i) => Some(Item::Int(*i)),
            Subscript::Range { start, stop, step } => Some(Item::Slice { start: *start, stop: *stop, step: *step }),
            Subscript::Ellipsis => Some(Item::Ellipsis),
            Subscript::NewAxis => Some(Item::NewAxis),
            Subscript::Tensor(_) => None,
        };
        if let Some(items) = at.iter().map(item).collect::<Option<Vec<_>>>() {
            match ok(static_index(&self.0, &items)) {
                Some(Indexed::Same) => return self.clone(),
                Some(Indexed::New(v)) => return Tensor(v),
                None => (),
            }
        }
        self.gathered(at, OutOfBounds::Promise, None)
    }
    #[track_caller]
    fn gathered(&self, at: &[Subscript], mode: OutOfBounds, fill_value: Option<Lit>) -> Tensor {
        let r = Region::new(self, at);
        if r.sizes.contains(&0) {
            return Tensor::zeros_in(&r.sizes, self.dtype()); // also of an axis that has no element to read
        }
        let dims = GatherDims {
            offset_dims: r.offsets(),
            collapsed_slice_dims: sorted(&r.points),
            start_index_map: r.axes.iter().copied().collect(),
            operand_batching_dims: Dims::default(),
            start_indices_batching_dims: Dims::default(),
        };
        let op = Gather {
            dimension_numbers: Box::new(dims),
            fill_value,
            indices_are_sorted: false,
            mode,
            slice_sizes: Dims::new(&r.window),
            unique_indices: false,
        };
        r.shown(emit(op, &[self, &r.indices()]))
    }
    /// The elements that an index names, to be changed in a copy: `x.at(s![0]).add(1.0)`.
    pub fn at(&self, at: impl AsRef<[Subscript]>) -> Spot {
        Spot { x: self.clone(), at: at.as_ref().to_vec() }
    }
    /// Slices at positions along an axis; positions outside read the nearest.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.take(&Tensor::from([1, 0, 9]), 1).to_vec::<i32>()?, [2, 1, 2, 4, 3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, positions: &Tensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let mut at: Vec<Subscript> = (0..k).map(|_| Subscript::from(..)).collect();
        at.push(positions.into());
        self.slice(at)
    }
    /// Elements at positions along an axis, position by position: `positions` has this one's rank, and broadcasts elsewhere.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([[5, 1], [2, 7]]);
    /// assert_eq!(x.take_along_axis(&x.argsort(1), 1).to_vec::<i32>()?, [1, 5, 2, 7]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_axis(&self, positions: &Tensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        if positions.rank() != self.rank() {
            mistakes::raise(Error::value(format!(
                "indices and arr must have the same number of dimensions; {} vs. {}",
                positions.rank(),
                self.rank()
            )));
        }
        let shape: Vec<usize> =
            (0..self.rank()).map(|j| if j == k { positions.shape()[j] } else { self.shape()[j] }).collect();
        let at: Vec<Subscript> = (0..self.rank())
            .map(|j| {
                if j == k {
                    positions.into()
                } else {
                    let mut own = vec![1; self.rank()];
                    own[j] = shape[j];
                    Tensor::iota(&own, j, Dtype::I32).into()
                }
            })
            .collect();
        self.slice(at)
    }
}
fn sorted(v: &[usize]) -> Dims {
    let mut v = v.to_vec();
    v.sort_unstable();
    v.into_iter().collect()
}

impl Spot {
    #[track_caller]
    fn scatter(&self, kind: ScatterKind, plain: Option<Pw>, v: impl IntoTensor) -> Tensor {
        mistakes::init();
        let x = &self.x;
        let v = v.into_tensor().astype(x.dtype());
        let r = Region::new(x, &self.at);
        if r.sizes.contains(&0) {
            return x.clone();
        }
        if r.axes.is_empty() {
            let v = r.hidden(&v);
            return match plain {
                Some(f) => super::pw(f, &[x, &v]),
                None => v,
            };
        }
        let dims = ScatterDims {
            update_window_dims: r.offsets(),
            inserted_window_dims: sorted(&r.points),
            scatter_dims_to_operand_dims: r.axes.iter().copied().collect(),
            operand_batching_dims: Dims::default(),
            scatter_indices_batching_dims: Dims::default(),
        };
        let op = Scatter {
            kind,
            dimension_numbers: Box::new(dims),
            indices_are_sorted: false,
            mode: OutOfBounds::FillOrDrop,
            unique_indices: r.inside,
        };
        emit(op, &[x, &r.indices(), &r.hidden(&v)])
    }
    /// The elements themselves.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 2, 3]).at(s![1..]).get().to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn get(&self) -> Tensor {
        self.x.slice(&self.at)
    }
    /// The elements, `fill` where an index tensor points outside.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.at(s![Tensor::from([2, 11])]).get_or(-1.0).to_vec::<i32>()?, [3, -1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn get_or(&self, fill: f64) -> Tensor {
        mistakes::init();
        mistakes::here();
        let fill = super::constant(self.x.dtype(), fill);
        match (self.at.iter().any(|s| matches!(s, Subscript::Tensor(_))), fill.0) {
            (true, Value::Lit(fill)) => self.x.gathered(&self.at, OutOfBounds::FillOrDrop, Some(fill)),
            _ => self.get(),
        }
    }
    /// A copy where they are `v`, which broadcasts and takes the tensor's dtype; of several at one place the last stays.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 2, 3]).at(s![1..]).set(0).to_vec::<i32>()?, [1, 0, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn set(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Set, None, v)
    }
    /// A copy where `v` is added to them; once for each time a place is named.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let x = Tensor::zeros(&[2]).at(s![Tensor::from([0, 0, 1])]).add(1.0);
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn add(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Add, Some(Pw::Add), v)
    }
    /// A copy where `v` is subtracted from them.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 2]).at(s![0]).sub(5).to_vec::<i32>()?, [-4, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn sub(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Sub, Some(Pw::Sub), v)
    }
    /// A copy where they are multiplied by `v`.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 2]).at(s![1]).mul(5).to_vec::<i32>()?, [1, 10]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn mul(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Mul, Some(Pw::Mul), v)
    }
    /// A copy where they are at most `v`.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 9]).at(s![..]).min(5).to_vec::<i32>()?, [1, 5]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn min(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Min, Some(Pw::Min), v)
    }
    /// A copy where they are at least `v`.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// assert_eq!(Tensor::from([1, 9]).at(s![..]).max(5).to_vec::<i32>()?, [5, 9]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn max(&self, v: impl IntoTensor) -> Tensor {
        self.scatter(ScatterKind::Max, Some(Pw::Max), v)
    }
    /// A copy with `f` applied to these elements.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let x = Tensor::from([4.0f32, 9.0]).at(s![1]).apply(|x| x.sqrt());
    /// assert_eq!(x.to_vec::<f32>()?, [4.0, 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn apply(&self, f: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        self.set(f(&self.get()))
    }
}
