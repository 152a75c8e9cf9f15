//! Constant folding of elements and window positions: programs write the starts of windows as arrays of literals.
//!
//! ```text
//!     zeros(8).at[2:5].set(u)     a pad of u, which is part of the kernels that read it
//!     x.at[2:5].add(u)            an update of x by x[2:5] + u
//! ```
//!
//! INVARIANT: a folded value is the one that the plan would compute.
use super::graph::{Def, Graph, TensorId, TensorIds};
use ferrax_kernel::{DType, Dims, Routine, Scalar, reference};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

/// Tensors of more elements are not looked into.
const MAX_KNOWN: usize = 16;
/// The run of contiguous elements below which a window of a constant is written into it as an
/// update: a pad would write short rows around it.
const MIN_PADDED_RUN: usize = 4;

impl Graph {
    /// The integers of a small tensor, in row-major order, if constants determine all of them.
    /// Integers beyond 2^53 are approximate.
    pub fn known(&self, x: TensorId) -> Option<SmallVec<[i64; 4]>> {
        let shape = self.shape(x);
        if shape.size() > MAX_KNOWN || !self.dtype(x).is_int() {
            return None;
        }
        (0..shape.size()).map(|i| Some(self.element(x, &shape.unravel(i))?.to_f64() as i64)).collect()
    }
    /// The value of all elements of a constant.
    pub fn constant_of(&self, x: TensorId) -> Option<Scalar> {
        if let Def::Const(s) = self.tensors[x as usize].def { Some(s) } else { None }
    }
    /// `x` with a window of the same rank written to it from these starts on, which is in bounds.
    pub fn updated(&mut self, x: TensorId, window: TensorId, starts: &[i64]) -> TensorId {
        match (self.parts(x), self.parts(window)) {
            (Some((a, b)), Some((u, v))) => {
                let (a, b) = (self.updated_part(a, u, starts), self.updated_part(b, v, starts));
                self.pair(a, b)
            }
            _ => self.updated_part(x, window, starts),
        }
    }
    fn updated_part(&mut self, x: TensorId, window: TensorId, starts: &[i64]) -> TensorId {
        let (operand, update) = (self.shape(x), self.shape(window));
        if operand == update {
            return window;
        }
        // elements that are written side by side: those of the last axis that is covered in part, and of all behind it
        let last = (0..operand.len()).rev().find(|k| update[*k] < operand[*k]).unwrap_or(0);
        let run: usize = update[last..].iter().product();
        if let Some(fill) = self.constant_of(x).filter(|_| run >= MIN_PADDED_RUN) {
            let fill = self.constant(fill, Dims::default());
            let behind: Vec<i64> =
                (0..operand.len()).map(|k| operand[k] as i64 - starts[k] - update[k] as i64).collect();
            return self.pad(window, fill, starts, &behind, &vec![0; operand.len()]);
        }
        self.with_window(x, window, starts)
    }
    /// A copy of `x` with a window written into it, as a routine.
    pub fn with_window(&mut self, x: TensorId, window: TensorId, starts: &[i64]) -> TensorId {
        let (operand, update, dtype) = (self.shape(x), self.shape(window), self.dtype(x));
        // not every device has 64 bits
        let index_dtype = if i32::try_from(operand.size()).is_ok() { DType::I32 } else { DType::I64 };
        let mut ins: TensorIds = smallvec![x, window];
        for start in starts {
            ins.push(self.constant(Scalar::from_i64(index_dtype, *start), Dims::default()));
        }
        let routine = Routine::DynamicUpdateSlice { operand: operand.clone(), update, dtype, index_dtype };
        self.routine(routine, &ins, &[operand])[0]
    }
    /// The value of an element, where constants decide it.
    fn element(&self, x: TensorId, index: &[usize]) -> Option<Scalar> {
        let t = &self.tensors[x as usize];
        match &t.def {
            Def::Const(s) => Some(*s),
            Def::Iota(axis) => Some(Scalar::from_i64(t.dtype, index[*axis] as i64)),
            Def::View(v) => {
                let at = |a: &ferrax_kernel::Affine| a.at(index.iter().copied());
                if v.guards.iter().any(|g| !(g.lo..g.hi).contains(&at(&g.at))) {
                    return Some(v.fill);
                }
                let inner: SmallVec<[usize; 4]> =
                    v.map.iter().map(|a| usize::try_from(at(a)).ok()).collect::<Option<_>>()?;
                self.element(v.of, &inner)
            }
            Def::Reshape(of) => {
                let position: usize = index.iter().zip(t.shape.strides()).map(|(i, s)| i * s as usize).sum();
                self.element(*of, &self.shape(*of).unravel(position))
            }
            Def::Map(n) => {
                let operands = n.operands();
                let mut values = HashMap::new();
                for o in &operands {
                    let s = self.element(*o, index).filter(|s| !s.dtype.is_small())?;
                    values.insert(*o, s);
                }
                reference::function(t.dtype, n, &|o| values[&o]).ok()
            }
            Def::Input | Def::Step(_) | Def::Reduce { .. } | Def::Pair(..) => None,
        }
    }
}
