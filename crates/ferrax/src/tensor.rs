//! `Tensor`: a value of any trace, with numpy's operators.
//!
//! ```
//! use ferrax::Tensor;
//! let x = Tensor::from([1.0, 2.0, 3.0]);
//! let y = (&x * 2.0 + 1.0).sum();
//! assert_eq!(y.item(), 15.0);
//! ```
//!
//! Operators promote and broadcast as numpy's do and cannot return a `Result`: like indexing a slice, they panic on a mistake in the
//! program, with the message a user would read. [`crate::catch`] turns that panic back into the [`Error`]; `jit`, `grad` and the other
//! transforms do so themselves.
use crate::numpy::elementwise::Coercion;
use crate::numpy::elementwise::{broadcast_to, elementwise, elementwise_in};
use crate::numpy::promotion::Promotion;
use crate::{array, device, eval};
use ferrax_ir::cx::{bind, lit, one};
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::convert::Convert;
use ferrax_ir::ops::dot::{Dot, DotDims};
use ferrax_ir::ops::iota::Iota;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::ops::reduce::{Monoid, Reduce};
use ferrax_ir::ops::reshape::Reshape;
use ferrax_ir::ops::select::Select;
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::{Aval, Dims, Dtype, Error, Lit, Op, Res, Value};
use ferrax_kernel::error::room;
use std::panic::panic_any;

/// An array, or a tracer that stands for one inside a transform. Cheap to clone.
#[derive(Clone)]
pub struct Tensor(pub Value);

/// A Rust type that is an element type.
pub trait Element: Copy {
    const DTYPE: Dtype;
    fn to_bytes(self, out: &mut Vec<u8>);
    fn from_bytes(b: &[u8]) -> Self;
}
macro_rules! element {
    ($($T:ty: $D:ident;)*) => { $(impl Element for $T {
        const DTYPE: Dtype = Dtype::$D;
        fn to_bytes(self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.to_le_bytes());
        }
        fn from_bytes(b: &[u8]) -> $T {
            let mut w = [0; size_of::<$T>()];
            w.copy_from_slice(b);
            <$T>::from_le_bytes(w)
        }
    })* }
}
element! { f32: F32; f64: F64; i8: I8; i16: I16; i32: I32; i64: I64; u8: U8; u16: U16; u32: U32; u64: U64; }

pub(crate) fn ok<T>(r: Res<T>) -> T {
    match r {
        Ok(v) => v,
        Err(e) => panic_any(e),
    }
}
fn emit(op: impl Into<Op>, x: &[&Tensor]) -> Tensor {
    eval::init();
    let x: Vec<Value> = x.iter().map(|t| t.0.clone()).collect();
    Tensor(ok(bind(&op.into(), &x).and_then(one)))
}
/// 64-bit types are what Rust says they are.
const PROMOTION: Promotion = Promotion { x64: true, strict: false, rank: crate::numpy::promotion::Rank::Allow };
fn pointwise(f: Pw, x: &[&Tensor]) -> Tensor {
    eval::init();
    let x = x.iter().map(|t| t.0.clone()).collect();
    Tensor(ok(elementwise(f, x, PROMOTION, &mut |_| ())))
}

impl Tensor {
    /// An array of `shape` with these elements, row major.
    ///
    /// # Errors
    /// `Value` if their number is not the shape's.
    pub fn new<T: Element>(elements: &[T], shape: &[usize]) -> Res<Tensor> {
        eval::init();
        let mut bytes = room(size_of_val(elements))?;
        elements.iter().for_each(|x| x.to_bytes(&mut bytes));
        let aval = Aval::new(T::DTYPE, shape);
        Ok(Tensor(Value::Array(array::from_bytes(aval, &bytes, device::default_device(), false)?)))
    }
    /// The elements, row major. Waits for a pending result.
    ///
    /// # Errors
    /// `Type` if T is not the dtype; `TracerArray` if a transform follows the value, derivatives too, which it would lose; what went wrong, if its computation failed.
    pub fn to_vec<T: Element>(&self) -> Res<Vec<T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::type_error(format!(
                "elements of {} cannot be read as {}",
                self.0.aval().long(),
                T::DTYPE.long()
            )));
        }
        let bytes = match &self.0 {
            Value::Array(a) => array::bytes(a)?,
            Value::Lit(l) => array::bytes(&array::from_lit(l, device::default_device())?)?,
            Value::Tracer(_) => return Err(self.0.abstract_error(ferrax_ir::ErrorKind::TracerArray)),
        };
        let mut out = room(bytes.len() / size_of::<T>())?;
        out.extend(bytes.chunks_exact(size_of::<T>()).map(T::from_bytes));
        Ok(out)
    }
    /// The one element, as a double. Works under `grad`, where values are known; not under `jit` and `vmap`.
    pub fn item(&self) -> f64 {
        ok(self.0.item()).parts().0
    }
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }
    pub fn dtype(&self) -> Dtype {
        self.0.dtype()
    }
    pub fn full(shape: &[usize], x: f32) -> Tensor {
        eval::init();
        Tensor(Value::Lit(Lit::from_f64(Dtype::F32, x as f64))).broadcast_to(shape)
    }
    pub fn zeros(shape: &[usize]) -> Tensor {
        Tensor::full(shape, 0.0)
    }
    pub fn ones(shape: &[usize]) -> Tensor {
        Tensor::full(shape, 1.0)
    }
    /// 0, 1, .. n - 1.
    pub fn arange(n: usize, dtype: Dtype) -> Tensor {
        emit(Iota { dimension: 0, dtype, shape: Dims::new(&[n]).into() }, &[])
    }
    /// `n` points from `a` to `b`, both included.
    pub fn linspace(a: f32, b: f32, n: usize) -> Tensor {
        let step = if n > 1 { (b - a) as f64 / (n - 1) as f64 } else { 0.0 };
        Tensor::arange(n, Dtype::F32) * step + a as f64
    }

    pub fn sum(&self) -> Tensor {
        self.reduce(Monoid::Sum, &(0..self.shape().len()).collect::<Vec<_>>())
    }
    pub fn sum_axes(&self, axes: &[usize]) -> Tensor {
        self.reduce(Monoid::Sum, axes)
    }
    pub fn max(&self) -> Tensor {
        self.reduce(Monoid::Max, &(0..self.shape().len()).collect::<Vec<_>>())
    }
    pub fn mean(&self) -> Tensor {
        let n = self.shape().iter().product::<usize>() as f64;
        self.sum() / n
    }
    fn reduce(&self, kind: Monoid, axes: &[usize]) -> Tensor {
        if axes.is_empty() {
            return self.clone();
        }
        emit(Reduce { kind, axes: Dims::new(axes) }, &[self])
    }
    pub fn reshape(&self, shape: &[usize]) -> Tensor {
        emit(Reshape { new_sizes: Dims::new(shape) }, &[self])
    }
    /// Axes reversed.
    pub fn t(&self) -> Tensor {
        emit(Transpose { permutation: (0..self.shape().len()).rev().collect() }, &[self])
    }
    pub fn broadcast_to(&self, shape: &[usize]) -> Tensor {
        Tensor(ok(broadcast_to(&self.0, &Dims::new(shape))))
    }
    /// A new axis of size 1 at `axis`.
    pub fn expand_dims(&self, axis: usize) -> Tensor {
        let shape = Dims::new(self.shape()).insert(axis, 1);
        let dims: Dims = (0..shape.len()).filter(|k| *k != axis).collect();
        emit(BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }, &[self])
    }
    /// The matrix product of the last axis with the other's first but one (its only one, for a vector).
    pub fn matmul(&self, o: &Tensor) -> Tensor {
        let (l, r) = (self.shape().len(), o.shape().len());
        if l == 0 || r == 0 || r > 2 {
            panic_any(Error::value(format!(
                "matmul of shapes {:?} and {:?}: use batched products through vmap",
                self.shape(),
                o.shape()
            )));
        }
        let dims = DotDims { lc: [l - 1].into(), rc: [0].into(), ..DotDims::default() };
        emit(Dot::new(dims), &[self, o])
    }
    pub fn astype(&self, dtype: Dtype) -> Tensor {
        emit(Convert { new_dtype: dtype, weak_type: false }, &[self])
    }
    pub fn powi(&self, n: i32) -> Tensor {
        emit(Pointwise { f: Pw::IntegerPow, y: n }, &[self])
    }
    pub fn maximum(&self, o: &Tensor) -> Tensor {
        pointwise(Pw::Max, &[self, o])
    }
    pub fn minimum(&self, o: &Tensor) -> Tensor {
        pointwise(Pw::Min, &[self, o])
    }
    pub fn lt(&self, o: &Tensor) -> Tensor {
        pointwise(Pw::Lt, &[self, o])
    }
    pub fn gt(&self, o: &Tensor) -> Tensor {
        pointwise(Pw::Gt, &[self, o])
    }
    /// `if self { yes } else { no }`, elementwise; all of one shape.
    pub fn select(&self, yes: &Tensor, no: &Tensor) -> Tensor {
        emit(Select {}, &[self, no, yes])
    }
}

macro_rules! unary {
    ($($f:ident $F:ident $doc:literal;)*) => {
        impl Tensor { $(#[doc = $doc] pub fn $f(&self) -> Tensor { pointwise(Pw::$F, &[self]) })* }
    }
}
unary! {
    sin Sin "Elementwise sine.";
    cos Cos "Elementwise cosine.";
    tan Tan "Elementwise tangent.";
    tanh Tanh "Elementwise hyperbolic tangent.";
    exp Exp "Elementwise exponential.";
    log Log "Elementwise natural logarithm.";
    sqrt Sqrt "Elementwise square root.";
    abs Abs "Elementwise absolute value.";
    logistic Logistic "Elementwise `1 / (1 + exp(-x))`.";
    erf Erf "Elementwise error function.";
}

fn quotient(x: &Tensor, y: &Tensor) -> Tensor {
    eval::init();
    let x = [x.0.clone(), y.0.clone()].into_iter().collect();
    Tensor(ok(elementwise_in(Pw::Div, Coercion::Inexact, x, PROMOTION, &mut |_| ())))
}
fn number(like: &Tensor, x: f64) -> Tensor {
    let d = if like.dtype().is_inexact() { like.dtype() } else { Dtype::F32 };
    let Value::Lit(l) = lit(d, x) else { unreachable!("lit makes a literal") };
    let mut l = l;
    l.weak = true;
    Tensor(Value::Lit(l))
}
macro_rules! operator {
    ($($Tr:ident $f:ident $call:expr;)*) => { $(
        operator!(@ $Tr $f $call, &Tensor, &Tensor, |a: &Tensor, b: &Tensor| (a.clone(), b.clone()));
        operator!(@ $Tr $f $call, Tensor, Tensor, |a, b| (a, b));
        operator!(@ $Tr $f $call, Tensor, &Tensor, |a, b: &Tensor| (a, b.clone()));
        operator!(@ $Tr $f $call, &Tensor, Tensor, |a: &Tensor, b| (a.clone(), b));
        operator!(@ $Tr $f $call, &Tensor, f64, |a: &Tensor, b| (a.clone(), number(a, b)));
        operator!(@ $Tr $f $call, Tensor, f64, |a: Tensor, b| { let b = number(&a, b); (a, b) });
        operator!(@ $Tr $f $call, f64, &Tensor, |a, b: &Tensor| (number(b, a), b.clone()));
        operator!(@ $Tr $f $call, f64, Tensor, |a, b: Tensor| (number(&b, a), b));
    )* };
    (@ $Tr:ident $f:ident $call:expr, $A:ty, $B:ty, $pair:expr) => {
        impl std::ops::$Tr<$B> for $A {
            type Output = Tensor;
            fn $f(self, o: $B) -> Tensor {
                let pair: fn($A, $B) -> (Tensor, Tensor) = $pair;
                let (a, b) = pair(self, o);
                let call: fn(&Tensor, &Tensor) -> Tensor = $call;
                call(&a, &b)
            }
        }
    };
}
operator! {
    Add add |a, b| pointwise(Pw::Add, &[a, b]);
    Sub sub |a, b| pointwise(Pw::Sub, &[a, b]);
    Mul mul |a, b| pointwise(Pw::Mul, &[a, b]);
    Div div quotient;
}
impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        pointwise(Pw::Neg, &[self])
    }
}
impl std::ops::Neg for Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        -&self
    }
}
impl From<f32> for Tensor {
    fn from(x: f32) -> Tensor {
        ok(Tensor::new(&[x], &[]))
    }
}
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(x: [T; N]) -> Tensor {
        ok(Tensor::new(&x, &[N]))
    }
}
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(x: Vec<T>) -> Tensor {
        ok(Tensor::new(&x, &[x.len()]))
    }
}
impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.to_vec::<f32>() {
            Ok(v) => write!(f, "Tensor({}, {v:?})", self.0.aval()),
            Err(_) => write!(f, "{:?}", self.0),
        }
    }
}
