//! `+ - * / % & | ^ << >> ! -` and their assigning forms, between tensors, references and numbers.
//!
//! `/` of integers gives floats, as numpy's. `%` is Rust's remainder, with the sign of the left side; [`Tensor::modulo`] is numpy's.
use super::{IntoTensor, Tensor, pointwise, pointwise_in};
use crate::numpy::elementwise::Coercion;
use ferrax_ir::ops::pointwise::Pw;
use num_complex::Complex;

#[track_caller]
fn quotient(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise_in(Pw::Div, Coercion::Inexact, &[a, b])
}
// One impl for everything on the right: the result's type is known before a number's is. On the left one float type and one integer
// type, for the same reason: `(2.0 * &x).sin()`.
macro_rules! operator {
    ($($Tr:ident $f:ident $As:ident $g:ident $call:ident;)*) => { $(
        impl<T: IntoTensor> std::ops::$Tr<T> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, o: T) -> Tensor {
                $call(self, &o.into_tensor())
            }
        }
        impl<T: IntoTensor> std::ops::$Tr<T> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, o: T) -> Tensor {
                $call(&self, &o.into_tensor())
            }
        }
        operator!(@ $Tr $f $call f64 i32 bool Complex<f32>);
        impl<T: IntoTensor> std::ops::$As<T> for Tensor {
            #[track_caller]
            fn $g(&mut self, o: T) {
                *self = $call(self, &o.into_tensor());
            }
        }
    )* };
    (@ $Tr:ident $f:ident $call:ident $($S:ty)*) => { $(
        impl std::ops::$Tr<&Tensor> for $S {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, o: &Tensor) -> Tensor {
                $call(&self.into_tensor(), o)
            }
        }
        impl std::ops::$Tr<Tensor> for $S {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, o: Tensor) -> Tensor {
                $call(&self.into_tensor(), &o)
            }
        }
    )* };
}
#[track_caller]
fn add(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Add, &[a, b])
}
#[track_caller]
fn sub(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Sub, &[a, b])
}
#[track_caller]
fn mul(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Mul, &[a, b])
}
#[track_caller]
fn rem(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Rem, &[a, b])
}
#[track_caller]
fn and(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::And, &[a, b])
}
#[track_caller]
fn or(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Or, &[a, b])
}
#[track_caller]
fn xor(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::Xor, &[a, b])
}
#[track_caller]
fn shl(a: &Tensor, b: &Tensor) -> Tensor {
    pointwise(Pw::ShiftLeft, &[a, b])
}
#[track_caller]
fn shr(a: &Tensor, b: &Tensor) -> Tensor {
    let f = if a.dtype().is_unsigned() { Pw::ShiftRightLogical } else { Pw::ShiftRightArithmetic };
    pointwise(f, &[a, b])
}
operator! {
    Add add AddAssign add_assign add;
    Sub sub SubAssign sub_assign sub;
    Mul mul MulAssign mul_assign mul;
    Div div DivAssign div_assign quotient;
    Rem rem RemAssign rem_assign rem;
    BitAnd bitand BitAndAssign bitand_assign and;
    BitOr bitor BitOrAssign bitor_assign or;
    BitXor bitxor BitXorAssign bitxor_assign xor;
    Shl shl ShlAssign shl_assign shl;
    Shr shr ShrAssign shr_assign shr;
}
macro_rules! unary {
    ($($Tr:ident $f:ident $F:ident;)*) => { $(
        impl std::ops::$Tr for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self) -> Tensor {
                pointwise(Pw::$F, &[self])
            }
        }
        impl std::ops::$Tr for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self) -> Tensor {
                pointwise(Pw::$F, &[&self])
            }
        }
    )* }
}
unary! { Neg neg Neg; Not not Not; }
impl std::iter::Sum for Tensor {
    #[track_caller]
    fn sum<I: Iterator<Item = Tensor>>(all: I) -> Tensor {
        all.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::from(0.0f32))
    }
}
