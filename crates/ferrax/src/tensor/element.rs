//! Rust numbers as elements and operands; construction and display of tensors.
use super::Tensor;
use crate::mistakes::{self, ok};
use ferrax_ir::{Dtype, Lit, Value};
use half::{bf16, f16};
use num_complex::Complex;

/// A Rust type that is an element type.
///
/// ```
/// use ferrax::{Element, Res, Tensor};
/// fn last<T: Element>(x: &Tensor) -> Res<Option<T>> {
///     Ok(x.to_vec::<T>()?.last().copied())
/// }
/// assert_eq!(last::<i32>(&Tensor::from([1, 2]))?, Some(2));
/// # Ok::<(), ferrax::Error>(())
/// ```
pub trait Element: Copy {
    /// The dtype of its arrays.
    const DTYPE: Dtype;
    /// Appends the bytes of one, little endian.
    fn to_bytes(self, out: &mut Vec<u8>);
    /// From as many bytes as the dtype has.
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
element! {
    f32: F32; f64: F64; f16: F16; bf16: BF16; i8: I8; i16: I16; i32: I32; i64: I64; u8: U8; u16: U16; u32: U32; u64: U64;
}
impl Element for bool {
    const DTYPE: Dtype = Dtype::BOOL;
    fn to_bytes(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }
    fn from_bytes(b: &[u8]) -> bool {
        b[0] != 0
    }
}
macro_rules! complex {
    ($($T:ty: $D:ident;)*) => { $(impl Element for Complex<$T> {
        const DTYPE: Dtype = Dtype::$D;
        fn to_bytes(self, out: &mut Vec<u8>) {
            self.re.to_bytes(out);
            self.im.to_bytes(out);
        }
        fn from_bytes(b: &[u8]) -> Complex<$T> {
            let (re, im) = b.split_at(size_of::<$T>());
            Complex::new(<$T>::from_bytes(re), <$T>::from_bytes(im))
        }
    })* }
}
complex! { f32: C64; f64: C128; }

/// The other operand of an operation: a tensor, or a number, which is weak: it takes the tensor's
/// dtype.
///
/// ```
/// use ferrax::{Dtype, IntoTensor, Tensor};
/// fn twice(x: impl IntoTensor) -> Tensor {
///     x.into_tensor() * 2
/// }
/// assert_eq!((twice(Tensor::from([1i8])).dtype(), twice(3).item()), (Dtype::I8, 6.0));
/// ```
pub trait IntoTensor {
    /// The operand.
    fn into_tensor(self) -> Tensor;
}
impl IntoTensor for Tensor {
    fn into_tensor(self) -> Tensor {
        self
    }
}
impl IntoTensor for &Tensor {
    fn into_tensor(self) -> Tensor {
        self.clone()
    }
}
fn weak(mut l: Lit) -> Tensor {
    l.weak = true;
    Tensor(Value::Lit(l))
}
macro_rules! number {
    ($($T:ty: $x:ident $make:expr;)*) => { $(impl IntoTensor for $T {
        fn into_tensor(self) -> Tensor {
            let $x = self;
            weak($make)
        }
    })* }
}
number! {
    f64: x Lit::from_f64(Dtype::F64, x);
    f32: x Lit::from_f64(Dtype::F64, x as f64);
    i64: x Lit::from_i64(Dtype::I64, x);
    i32: x Lit::from_i64(Dtype::I64, x as i64);
    usize: x Lit::from_i64(Dtype::I64, x as i64);
    Complex<f32>: x Lit::c64(x.re, x.im, true);
}
impl IntoTensor for bool {
    fn into_tensor(self) -> Tensor {
        Tensor(Value::Lit(Lit::from(self)))
    }
}

macro_rules! from {
    ($($T:ty)*) => { $(impl From<$T> for Tensor {
        #[track_caller]
        fn from(x: $T) -> Tensor {
            ok(Tensor::new(&[x], &[]))
        }
    })* }
}
from! { f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool Complex<f32> Complex<f64> }
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(x: [T; N]) -> Tensor {
        ok(Tensor::new(&x, &[N]))
    }
}
impl<T: Element, const N: usize, const M: usize> From<[[T; N]; M]> for Tensor {
    #[track_caller]
    fn from(x: [[T; N]; M]) -> Tensor {
        ok(Tensor::new(x.as_flattened(), &[M, N]))
    }
}
impl<T: Element, const N: usize, const M: usize, const L: usize> From<[[[T; N]; M]; L]> for Tensor {
    #[track_caller]
    fn from(x: [[[T; N]; M]; L]) -> Tensor {
        ok(Tensor::new(x.as_flattened().as_flattened(), &[L, M, N]))
    }
}
impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(x: Vec<T>) -> Tensor {
        ok(Tensor::new(&x, &[x.len()]))
    }
}
impl<T: Element> From<&[T]> for Tensor {
    #[track_caller]
    fn from(x: &[T]) -> Tensor {
        ok(Tensor::new(x, &[x.len()]))
    }
}

/// The elements as they are shown, or `None` for a tracer.
fn shown(t: &Tensor) -> Option<Vec<String>> {
    mistakes::init();
    let bytes = t.to_bytes().ok()?;
    let one = |b: &[u8]| match t.dtype() {
        Dtype::F32 => format!("{:?}", f32::from_bytes(b)),
        Dtype::F64 => format!("{:?}", f64::from_bytes(b)),
        Dtype::F16 => format!("{:?}", f16::from_bytes(b).to_f32()),
        Dtype::BF16 => format!("{:?}", bf16::from_bytes(b).to_f32()),
        Dtype::C64 => Complex::<f32>::from_bytes(b).to_string(),
        Dtype::C128 => Complex::<f64>::from_bytes(b).to_string(),
        Dtype::Num(d) => ferrax_kernel::Scalar::from_bytes(d, b).to_string(),
        _ => b.iter().map(|x| format!("{x:02x}")).collect(),
    };
    Some(bytes.chunks(t.dtype().size()).map(one).collect())
}
const SHOWN: usize = 1000;
fn nested(shape: &[usize], items: &[String], out: &mut String) {
    let Some((n, rest)) = shape.split_first() else {
        return *out += items.first().map_or("", |s| s);
    };
    let each = rest.iter().product::<usize>();
    *out += "[";
    for i in 0..*n {
        if i > 0 {
            *out += ", ";
        }
        nested(rest, &items[i * each..(i + 1) * each], out);
    }
    *out += "]";
}
impl std::fmt::Display for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        if self.size() > SHOWN {
            return write!(f, "{} elements", self.size());
        }
        match shown(self) {
            None => write!(f, "{:?}", self.0),
            Some(items) => {
                let mut out = String::new();
                nested(self.shape(), &items, &mut out);
                f.write_str(&out)
            }
        }
    }
}
impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0.is_tracer() {
            true => write!(f, "{:?}", self.0),
            false => write!(f, "Tensor({}, {self})", self.0.aval()),
        }
    }
}
