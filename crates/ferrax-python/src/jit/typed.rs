//! Keys of the trace cache: the types of a call's values, or explicit types in their place.
//!
//! INVARIANT: a value and its type have the same hash, so a call finds the trace that `lower` made.
use ferrax_ir::Dtype;
use ferrax_ir::aval::Aval;
use ferrax_ir::value::Value;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The type of a value, or a type.
pub trait Typed {
    fn is(&self, a: &Aval) -> bool;
    fn hash_type(&self, h: &mut FxHasher);
    fn to_aval(&self) -> Aval;
}
impl Typed for &Value {
    #[inline]
    fn is(&self, a: &Aval) -> bool {
        a.dtype == self.dtype()
            && a.weak == self.weak()
            && *a.shape == *self.shape()
            && a.tape == self.tape()
            && a.vary == self.vary()
            && a.cut == self.cut()
    }
    fn hash_type(&self, h: &mut FxHasher) {
        hash_parts(self.dtype(), self.weak(), self.tape(), self.shape(), h);
        self.vary().hash(h);
        self.cut().hash(h);
    }
    fn to_aval(&self) -> Aval {
        self.aval()
    }
}
impl Typed for Aval {
    fn is(&self, a: &Aval) -> bool {
        self == a
    }
    fn hash_type(&self, h: &mut FxHasher) {
        hash_parts(self.dtype, self.weak, self.tape, &self.shape, h);
        self.vary.hash(h);
        self.cut.hash(h);
    }
    fn to_aval(&self) -> Aval {
        self.clone()
    }
}
fn hash_parts(dtype: Dtype, weak: bool, tape: u8, shape: &[usize], h: &mut FxHasher) {
    h.write_u64(weak as u64 | (tape as u64) << 1 | (shape.len() as u64) << 9);
    dtype.hash(h);
    shape.iter().for_each(|n| h.write_usize(*n));
}
