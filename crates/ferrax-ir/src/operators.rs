//! `+ - * /` and unary `-` on values, through the current trace. An operator cannot return a `Result`: it panics with the [`Error`] as
//! payload, which [`catch`] turns back into one. A plain `f64` beside a value takes the value's dtype.
use crate::cx::{bind, lit, one};
use crate::error::{Error, Res};
use crate::op::Op;
use crate::ops::pointwise::Pw;
use crate::value::Value;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

/// Binds an op with one output in the current trace; panics with the `Error`.
pub fn emit(op: impl Into<Op>, x: &[Value]) -> Value {
    match bind(&op.into(), x).and_then(one) {
        Ok(v) => v,
        Err(e) => panic_any(e),
    }
}
/// Runs `f`; a panic of an operator with an error becomes that error.
pub fn catch<T>(f: impl FnOnce() -> Res<T>) -> Res<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(r) => r,
        Err(p) => match p.downcast::<Error>() {
            Ok(e) => Err(*e),
            Err(p) => resume_unwind(p),
        },
    }
}
macro_rules! operator {
    ($($Tr:ident $f:ident;)*) => { $(
        impl std::ops::$Tr<&Value> for &Value {
            type Output = Value;
            fn $f(self, o: &Value) -> Value {
                emit(Pw::$Tr, &[self.clone(), o.clone()])
            }
        }
        impl std::ops::$Tr<Value> for Value {
            type Output = Value;
            fn $f(self, o: Value) -> Value {
                emit(Pw::$Tr, &[self, o])
            }
        }
        impl std::ops::$Tr<&Value> for Value {
            type Output = Value;
            fn $f(self, o: &Value) -> Value {
                emit(Pw::$Tr, &[self, o.clone()])
            }
        }
        impl std::ops::$Tr<Value> for &Value {
            type Output = Value;
            fn $f(self, o: Value) -> Value {
                emit(Pw::$Tr, &[self.clone(), o])
            }
        }
        impl std::ops::$Tr<f64> for &Value {
            type Output = Value;
            fn $f(self, o: f64) -> Value {
                emit(Pw::$Tr, &[self.clone(), lit(self.dtype(), o)])
            }
        }
        impl std::ops::$Tr<f64> for Value {
            type Output = Value;
            fn $f(self, o: f64) -> Value {
                emit(Pw::$Tr, &[self.clone(), lit(self.dtype(), o)])
            }
        }
        impl std::ops::$Tr<&Value> for f64 {
            type Output = Value;
            fn $f(self, o: &Value) -> Value {
                emit(Pw::$Tr, &[lit(o.dtype(), self), o.clone()])
            }
        }
        impl std::ops::$Tr<Value> for f64 {
            type Output = Value;
            fn $f(self, o: Value) -> Value {
                emit(Pw::$Tr, &[lit(o.dtype(), self), o])
            }
        }
    )* };
}
operator! { Add add; Sub sub; Mul mul; Div div; Rem rem; }
impl std::ops::Neg for &Value {
    type Output = Value;
    fn neg(self) -> Value {
        emit(Pw::Neg, std::slice::from_ref(self))
    }
}
impl std::ops::Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        emit(Pw::Neg, &[self])
    }
}
