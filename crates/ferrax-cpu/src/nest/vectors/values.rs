//! The values that vectors can hold: by how much a value grows from one iteration to the next, how wide it is, and whether there is an instruction for it.
//!
//! INVARIANT: a wider integer grows as a narrower one does only where that does not wrap.
use super::{LONG_VECTOR, MAX_WIDTH, Vectorizer, functions};
use crate::nest::facts::{integer, lane};
use crate::nest::{ArrayId, Def, Nest, NestOp, NestValue};
use ferrax_kernel::{Bin, DType};

impl Vectorizer<'_> {
    /// Notes how wide the numbers are: all alike.
    pub(super) fn sized(&self, size: &mut Option<usize>, d: DType) -> Option<()> {
        if d == DType::Bool {
            return Some(());
        }
        let n = d.size();
        ((n == 4 || n == 8) && size.is_none_or(|s| s == n)).then(|| *size = Some(n))
    }
    /// How much an index grows from one iteration to the next.
    pub(super) fn stride(&mut self, v: NestValue) -> Option<i64> {
        self.growth(v).map(|s| s.by)
    }
    pub(super) fn growth(&mut self, v: NestValue) -> Option<Stride> {
        if !self.inside.contains(&v) {
            return Some(Stride::exact(0));
        }
        if let Some(known) = self.strides.get(&v) {
            return *known;
        }
        let mut grown: [Option<Stride>; 3] = [None; 3];
        let def = *self.nest.def(v);
        if lane(def.dtype).is_int() {
            def.args().iter().zip(&mut grown).for_each(|(a, g)| *g = self.growth(*a));
        }
        let stride = stride_of(self.nest, v, &mut |x| grown[usize::from(x != def.args[0])]);
        self.strides.insert(v, stride);
        stride
    }
    /// The operand of a number that is stored with half its width.
    pub(super) fn narrowed(&self, v: NestValue) -> Option<NestValue> {
        use DType::*;
        let def = self.nest.def(v);
        let NestOp::Convert(from) = def.op else { return None };
        let is_half = matches!((from, def.dtype), (I64 | U64, I32 | U32) | (F64, F32));
        (is_half && self.inside.contains(&v)).then_some(def.args[0])
    }
    /// The load of a number that has twice its width from there on: the array, the offset, the index and by how much that grows.
    pub(super) fn widened(&mut self, def: &Def) -> Option<(ArrayId, i32, NestValue, i64)> {
        use DType::*;
        let NestOp::Convert(from) = def.op else { return None };
        let NestOp::Load(array, offset) = self.nest.def(def.args[0]).op else { return None };
        let is_double = matches!((from, def.dtype), (I32, I64 | U64 | F64) | (U32, I64 | U64) | (F32, F64));
        // a lane of 32 bits may be an element of 8 or 16
        let is_stored = self.nest.dtype(def.args[0]) == from;
        if !is_double || !is_stored || !self.inside.contains(&def.args[0]) {
            return None;
        }
        let index = self.nest.def(def.args[0]).args[0];
        let stride = self.stride(index)?;
        (matches!(stride, 0 | 1) && is_near(offset as i64, stride)).then_some((array, offset, index, stride))
    }
    /// Whether there is an instruction, or a call, for vectors.
    pub(super) fn is_vector_op(&mut self, def: &Def) -> Option<()> {
        let of = def.args().first().map_or(def.dtype, |a| self.nest.dtype(*a));
        let is_supported = match def.op {
            NestOp::Load(_, offset) => {
                let stride = self.stride(def.args[0])?;
                is_near(offset as i64, stride) && (def.dtype != DType::Bool || matches!(stride, 0 | 1))
            }
            NestOp::Bits(from) => from.size() == def.dtype.size() && from != DType::Bool,
            NestOp::Call(_, _) => def.args().iter().all(|a| self.nest.dtype(*a).size() == def.dtype.size()),
            op => functions::recorded(op, of, def.dtype).is_some(),
        };
        is_supported.then_some(())
    }
}
/// Whether sums of this dtype are kept in vectors.
pub(super) fn folded(d: DType) -> bool {
    matches!(d, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64)
}
/// How much an integer grows from one iteration of a loop to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stride {
    /// Modulo the numbers of its dtype.
    pub(super) by: i64,
    /// Whether it does so without wrapping, so that a wider integer grows by as much.
    pub(super) is_exact: bool,
}
impl Stride {
    pub(super) fn exact(by: i64) -> Stride {
        Stride { by, is_exact: true }
    }
}
/// How much an integer grows from one iteration of a loop to the next, by how much its operands do.
pub(super) fn stride_of(nest: &Nest, v: NestValue, of: &mut dyn FnMut(NestValue) -> Option<Stride>) -> Option<Stride> {
    let def = *nest.def(v);
    let (by, is_exact) = match def.op {
        _ if !lane(def.dtype).is_int() => return None,
        NestOp::Bin(f @ (Bin::Add | Bin::Sub)) => {
            let (a, b) = (of(def.args[0])?, of(def.args[1])?);
            let by = if f == Bin::Add { a.by.checked_add(b.by)? } else { a.by.checked_sub(b.by)? };
            (by, a.is_exact && b.is_exact)
        }
        NestOp::Bin(Bin::Mul) => {
            let by = i64::try_from(integer(def.dtype, nest.known(def.args[1])?)).ok()?;
            let a = of(def.args[0])?;
            (a.by.checked_mul(by)?, a.is_exact)
        }
        NestOp::Convert(from) if lane(from).is_int() && from.size() >= 4 && def.dtype.size() >= 4 => {
            let a = of(def.args[0])?;
            if from.size() < def.dtype.size() && !a.is_exact {
                return None;
            }
            (a.by, a.is_exact)
        }
        _ => return None,
    };
    Some(Stride { by, is_exact: by == 0 || is_exact && def.is_exact })
}
/// Whether the places of all lanes of the vectors of an iteration, of up to 8 bytes an element, are 32-bit displacements.
pub(super) fn is_near(offset: i64, stride: i64) -> bool {
    let reach = stride.unsigned_abs().saturating_mul((MAX_WIDTH * LONG_VECTOR / 4) as u64);
    offset.unsigned_abs().saturating_add(reach) < 1 << 28
}
