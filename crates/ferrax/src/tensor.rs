//! `Tensor`: a value of any trace, with numpy's operations.
//!
//! ```
//! use ferrax::{Dtype, Tensor, s};
//! let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
//! assert_eq!((&x * 2.0 + 1.0).sum().item(), 48.0);
//! assert_eq!(x.slice(s![.., 1..]).to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
//! assert_eq!(x.mean_axes(0).to_vec::<f32>()?, [2.5, 3.5, 4.5]);
//! assert_eq!(x.matmul(&x.t()).shape(), [2, 2]);
//! assert_eq!(x.at(s![0]).set(0.0).sum().item(), 15.0);
//! assert_eq!((x.astype(Dtype::I32) % 2).to_vec::<i32>()?, [1, 0, 1, 0, 1, 0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! Operations promote and broadcast as numpy's do. A Rust number beside a tensor is weak: it takes the tensor's dtype. The default dtypes
//! are float32 and int32; 64-bit types are used where they are named.
//!
//! INVARIANT: a file here is a family of operations; each composes the primitives as the function of that name in Python does, so that
//! bits agree.
mod blocks;
mod calculus;
mod choosing;
mod conv;
mod dynamic;
pub mod element;
mod fourier;
mod functions;
mod grids;
mod indexing;
mod joining;
pub mod linalg;
mod operators;
mod pointwise;
mod products;
mod reductions;
mod segments;
mod sets;
mod shaping;
mod sorting;
mod statistics;

pub use blocks::{ragged_dot, ragged_dot_general, scaled_dot};
pub use calculus::{Mode, poly};
pub use choosing::{lexsort, ravel_multi_index};
pub use conv::{ConvOptions, Padding};
pub use element::{Element, IntoTensor};
pub use fourier::{fftfreq, rfftfreq};
pub use grids::{block, column_stack, dstack, hstack, meshgrid, meshgrid_ij, vstack, windows};
pub use indexing::{Ellipsis, NewAxis, Spot, Subscript};
pub use joining::{broadcast_arrays, concatenate, stack, where_};
#[doc(hidden)]
pub use pointwise::{BINARY, OTHERWISE, UNARY};
pub use products::{dot_general, dot_general_in, einsum};
pub use reductions::IntoAxes;

use crate::device::Device;
use crate::mistakes::{self, ok};
use crate::numpy::elementwise::{Coercion, broadcast_to, coercion, elementwise_in};
use crate::numpy::promotion::{Promotion, Rank, canonical, convert, result_type};
use crate::{array, device};
use ferrax_ir::cx::{bind, one};
use ferrax_ir::ops::convert::Convert;
use ferrax_ir::ops::device_put::DevicePut;
use ferrax_ir::ops::iota::Iota;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Dims, Dtype, Error, Lit, Op, ParamMap, Res, Value};
use ferrax_kernel::error::room;

/// An array, or a tracer inside a transform. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Tensor(pub Value);

/// 64-bit types are supported as in Rust.
const PROMOTION: Promotion = Promotion { x64: true, strict: false, rank: Rank::Allow };

#[track_caller]
pub(crate) fn emit(op: impl Into<Op>, x: &[&Tensor]) -> Tensor {
    mistakes::init();
    mistakes::here();
    let x: Values = x.iter().map(|t| t.0.clone()).collect();
    Tensor(ok(bind(&op.into(), &x).and_then(one)))
}
#[track_caller]
pub(crate) fn emit_many(op: impl Into<Op>, x: &[&Tensor]) -> Vec<Tensor> {
    mistakes::init();
    mistakes::here();
    let x: Values = x.iter().map(|t| t.0.clone()).collect();
    ok(bind(&op.into(), &x)).into_iter().map(Tensor).collect()
}
/// The primitive of a pointwise function, of operands that are promoted already.
#[track_caller]
pub(crate) fn pw(f: Pw, x: &[&Tensor]) -> Tensor {
    emit(f, x)
}
/// A pointwise function under its numpy spelling.
#[track_caller]
pub(crate) fn pointwise(f: Pw, x: &[&Tensor]) -> Tensor {
    pointwise_in(f, coercion(f), x)
}
#[track_caller]
pub(crate) fn pointwise_in(f: Pw, how: Coercion, x: &[&Tensor]) -> Tensor {
    mistakes::init();
    mistakes::here();
    let x: Values = x.iter().map(|t| t.0.clone()).collect();
    // masks stay bools
    let has = |holds: fn(&Value) -> bool| x.iter().any(holds);
    let is_masked = f == Pw::Mul && has(|v| v.dtype() == Dtype::BOOL) && has(|v| v.dtype().is_inexact() && !v.weak());
    let x = if is_masked { x } else { ok(promoted(x)) };
    Tensor(ok(elementwise_in(f, how, x, PROMOTION, &mut |_| ())))
}
/// Operands in their common dtype. A dtype that would be 64 bits wide only because of Rust's
/// numbers stays at 32.
fn promoted(x: Values) -> Res<Values> {
    let (d, w) = (x[0].dtype(), x[0].weak());
    let wide = |d: Dtype| canonical(d, false) != d;
    if x.iter().all(|v| v.dtype() == d && v.weak() == w) && !(w && wide(d)) {
        return Ok(x);
    }
    let kinds: Vec<(Dtype, bool)> = x.iter().map(|v| (v.dtype(), v.weak())).collect();
    let (mut d, weak) = result_type(&kinds, PROMOTION)?;
    if weak && wide(d) && !kinds.iter().any(|k| !k.1 && wide(k.0)) {
        d = canonical(d, false);
    }
    x.iter().map(|v| convert(v, d, weak)).collect()
}
/// Tensors in their common dtype.
#[track_caller]
pub(crate) fn promote(x: &[&Tensor]) -> Vec<Tensor> {
    mistakes::init();
    ok(promoted(x.iter().map(|t| t.0.clone()).collect())).into_iter().map(Tensor).collect()
}
/// `x`, made float or complex where it is neither.
#[track_caller]
pub(crate) fn inexact(x: &Tensor) -> Tensor {
    let d = crate::numpy::promotion::to_inexact(x.dtype(), PROMOTION);
    Tensor(ok(convert(&x.0, d, x.0.weak())))
}
/// As many as a primitive has results.
pub(crate) fn exactly<const N: usize>(v: Vec<Tensor>) -> [Tensor; N] {
    v.try_into().unwrap_or_else(|v: Vec<Tensor>| unreachable!("{} results", v.len()))
}
/// A constant of a dtype.
pub(crate) fn constant(d: Dtype, x: f64) -> Tensor {
    mistakes::init();
    let l = if d.is_int() || d.is_bool() { Lit::from_i64(d, x as i64) } else { Lit::from_f64(d, x) };
    Tensor(Value::Lit(l))
}
/// An axis counted from the front; negative ones count from the end.
#[track_caller]
pub(crate) fn axis_of(axis: i64, rank: usize) -> usize {
    let k = if axis < 0 { axis + rank as i64 } else { axis };
    if k < 0 || k >= rank as i64 {
        mistakes::raise(Error::value(format!("axis {axis} is out of bounds for array of dimension {rank}")));
    }
    k as usize
}

impl Tensor {
    /// An array of `shape` with these elements, row major.
    ///
    /// # Errors
    /// `Value` if their number is not the shape's; `Memory` if there is not enough.
    pub fn new<T: Element>(elements: &[T], shape: &[usize]) -> Res<Tensor> {
        mistakes::init();
        let mut bytes = room(size_of_val(elements))?;
        elements.iter().for_each(|x| x.to_bytes(&mut bytes));
        Tensor::from_bytes(&bytes, T::DTYPE, shape)
    }
    /// An array from its bytes: row major, little endian.
    ///
    /// # Errors
    /// `Value` if their number is not the shape's.
    pub fn from_bytes(bytes: &[u8], dtype: Dtype, shape: &[usize]) -> Res<Tensor> {
        mistakes::init();
        let aval = Aval::new(dtype, shape);
        Ok(Tensor(Value::Array(array::from_bytes(aval, bytes, crate::eval::current_device(), false)?)))
    }
    /// The bytes of the elements: row major, little endian. Waits for a pending result.
    ///
    /// # Errors
    /// `TracerArray` if a transform follows the value; the error of a failed computation.
    pub fn to_bytes(&self) -> Res<Vec<u8>> {
        match &self.0 {
            Value::Array(a) => array::bytes(a),
            Value::Lit(l) => array::bytes(&array::from_lit(l, device::default_device())?),
            Value::Tracer(_) => Err(self.0.abstract_error(ferrax_ir::ErrorKind::TracerArray)),
        }
    }
    /// The elements, row major. Waits for a pending result.
    ///
    /// # Errors
    /// `Type` if T is not the dtype; `TracerArray` if a transform follows the value, derivatives
    /// too, which it would lose; the error of a failed computation.
    pub fn to_vec<T: Element>(&self) -> Res<Vec<T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::type_error(format!(
                "elements of {} cannot be read as {}",
                self.0.aval().long(),
                T::DTYPE.long()
            )));
        }
        let bytes = self.to_bytes()?;
        let mut out = room(bytes.len() / T::DTYPE.size())?;
        out.extend(bytes.chunks_exact(T::DTYPE.size()).map(T::from_bytes));
        Ok(out)
    }
    /// The one element, as a double. Works under `grad`, where values are known; not under `jit` and `vmap`.
    ///
    /// # Panics
    /// If there is not one element, or its value is not known.
    #[track_caller]
    pub fn item(&self) -> f64 {
        ok(self.0.item()).parts().0
    }
    /// Sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }
    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }
    /// The number of elements.
    pub fn size(&self) -> usize {
        self.shape().iter().product()
    }
    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.0.dtype()
    }
    /// Shape, dtype, and whether the dtype yields to others.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::zeros(&[2, 3]).aval().to_string(), "f32[2,3]");
    /// ```
    pub fn aval(&self) -> Aval {
        self.0.aval()
    }
    /// Waits until the elements are computed.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::ones(&[1000]).exp();
    /// y.ready()?; // it is there, or its error
    /// assert!(y.is_ready());
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a failed computation.
    pub fn ready(&self) -> Res<()> {
        match &self.0 {
            Value::Array(a) => array::shards(a)?.iter().try_for_each(|s| array::finished(&s.buffer)),
            _ => Ok(()),
        }
    }

    /// Whether the elements are there: [`Tensor::ready`] would not wait.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Value::Array(a) => array::data(a).is_ok_and(|d| d.is_ready()),
            _ => true,
        }
    }
    /// The device that holds it: the first of several; `None` for a tracer.
    pub fn device(&self) -> Option<&'static Device> {
        match &self.0 {
            Value::Array(a) => array::data(a).ok().map(|d| d.device),
            Value::Lit(_) => Some(crate::eval::current_device()),
            Value::Tracer(_) => None,
        }
    }
    /// The same elements on a device, where results computed from them stay. Within a compiled
    /// function it changes nothing.
    ///
    /// ```
    /// use ferrax::{Tensor, device};
    /// let cpu = &device::devices("cpu")?[0];
    /// assert_eq!((Tensor::ones(&[2]).device_put(cpu) * 2.0).device(), Some(cpu));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn device_put(&self, device: &'static Device) -> Tensor {
        let srcs = self.device().filter(|d| *d != device).map(|d| d.id).into_iter().collect();
        emit(DevicePut { devices: Places(vec![device.id]), srcs: Places(srcs) }, &[self])
    }

    /// `x` in every element; the dtype is that of `x` (of a number, float32 or int32).
    #[track_caller]
    pub fn full(shape: &[usize], x: impl IntoTensor) -> Tensor {
        x.into_tensor().strong().broadcast_to(shape)
    }
    /// Zeros, float32.
    #[track_caller]
    pub fn zeros(shape: &[usize]) -> Tensor {
        Tensor::zeros_in(shape, Dtype::F32)
    }
    /// Zeros of a dtype.
    ///
    /// ```
    /// use ferrax::{Dtype, Tensor};
    /// assert_eq!(Tensor::zeros_in(&[2], Dtype::I8).to_vec::<i8>()?, [0, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_in(shape: &[usize], dtype: Dtype) -> Tensor {
        constant(dtype, 0.0).broadcast_to(shape)
    }
    /// Ones, float32.
    #[track_caller]
    pub fn ones(shape: &[usize]) -> Tensor {
        constant(Dtype::F32, 1.0).broadcast_to(shape)
    }
    /// Zeros of this one's shape and dtype.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        constant(self.dtype(), 0.0).broadcast_to(self.shape())
    }
    /// Ones of this one's shape and dtype.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        constant(self.dtype(), 1.0).broadcast_to(self.shape())
    }
    /// `x` in every element, of this one's shape and dtype.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).full_like(7).to_vec::<i32>()?, [7, 7]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, x: impl IntoTensor) -> Tensor {
        x.into_tensor().astype(self.dtype()).broadcast_to(self.shape())
    }
    /// 0, 1, .. n - 1.
    #[track_caller]
    pub fn arange(n: usize, dtype: Dtype) -> Tensor {
        Tensor::iota(&[n], 0, dtype)
    }
    /// Each element's position along an axis.
    ///
    /// ```
    /// use ferrax::{Dtype, Tensor};
    /// assert_eq!(Tensor::iota(&[2, 2], 1, Dtype::I32).to_vec::<i32>()?, [0, 1, 0, 1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn iota(shape: &[usize], axis: usize, dtype: Dtype) -> Tensor {
        emit(Iota { dimension: axis, dtype, shape: Dims::new(shape).into() }, &[])
    }
    /// `n` points from `a` to `b`, both included, float32.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 5).to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(a: f64, b: f64, n: usize) -> Tensor {
        let f = |x: f64| constant(Dtype::F32, x);
        match n {
            0 => Tensor::zeros(&[0]),
            1 => Tensor::full(&[1], a).astype(Dtype::F32),
            n => {
                // a weighted mean of the ends, and the last end exactly: the same values as
                // Python's
                let t = pw(Pw::Div, &[&Tensor::arange(n - 1, Dtype::F32), &f((n - 1) as f64)]);
                let low = pw(Pw::Mul, &[&f(a), &pw(Pw::Sub, &[&f(1.0), &t])]);
                let most = pw(Pw::Add, &[&low, &pw(Pw::Mul, &[&f(b), &t])]);
                concatenate(&[most, Tensor::full(&[1], b).astype(Dtype::F32)], 0)
            }
        }
    }
    /// Ones on the diagonal of an n by m matrix, float32.
    #[track_caller]
    pub fn eye(n: usize, m: usize) -> Tensor {
        let (i, j) = (Tensor::iota(&[n, m], 0, Dtype::I32), Tensor::iota(&[n, m], 1, Dtype::I32));
        pw(Pw::Eq, &[&i, &j]).astype(Dtype::F32)
    }
    /// The elements in another dtype.
    #[track_caller]
    pub fn astype(&self, dtype: Dtype) -> Tensor {
        if self.dtype() == dtype && !self.0.weak() {
            return self.clone();
        }
        if dtype.is_bool() && !self.dtype().is_bool() {
            return pw(Pw::Ne, &[self, &constant(self.dtype(), 0.0)]);
        }
        if let Value::Lit(_) = self.0 {
            return Tensor(ok(convert(&self.0, dtype, false)));
        }
        if self.dtype().is_complex() && !dtype.is_complex() {
            return self.real().astype(dtype);
        }
        emit(Convert { new_dtype: dtype, weak_type: false }, &[self])
    }
    /// The same with a strong dtype: 32 bits wide if a Rust number alone determined it.
    #[track_caller]
    pub(crate) fn strong(&self) -> Tensor {
        if !self.0.weak() {
            return self.clone();
        }
        self.astype(canonical(self.dtype(), false))
    }
    /// Repeated to a shape, by numpy's rule.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).broadcast_to(&[2, 2]).to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, shape: &[usize]) -> Tensor {
        mistakes::init();
        mistakes::here();
        Tensor(ok(broadcast_to(&self.0, &Dims::new(shape))))
    }
    /// Any primitive by its name, with its parameters as `make_jaxpr` prints them: everything that has no method of its own.
    ///
    /// ```
    /// use ferrax::{Param, ParamMap, Tensor};
    /// let mut p = ParamMap::default();
    /// p.insert("dimensions".into(), Param::ints(&[0]));
    /// let y = Tensor::bind("rev", &[&Tensor::from([1, 2, 3])], p);
    /// assert_eq!(y[0].to_vec::<i32>().unwrap(), [3, 2, 1]);
    /// ```
    ///
    /// # Panics
    /// If no primitive has the name or takes the parameters or operands.
    #[track_caller]
    pub fn bind(name: &str, operands: &[&Tensor], params: ParamMap) -> Vec<Tensor> {
        emit_many(ok(Op::from_name(name, params)), operands)
    }
}
