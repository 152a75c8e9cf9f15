//! Values whose last parts end with rows of no meaning, where a dimension is not cut evenly: they get these rows, or lose them, when they are cut in
//! another way, and a fold does not see them.
use super::Emitter;
use crate::partition::uneven::is_even;
use ferrax_ir::cx::int;
use ferrax_ir::factors::Factors;
use ferrax_ir::layout::{CutAxes, Spec};
use ferrax_ir::value::{Value, Values};
use ferrax_ir::{Dtype, Res};

impl Emitter<'_> {
    /// A value of an array of this shape, which is cut as `from` says, cut as `to`.
    pub(super) fn brought(&self, v: &Value, shape: &[usize], from: &Spec, to: &Spec) -> Res<Value> {
        let uneven = |s: &Spec, d: usize| !is_even(shape[d], &s.dims[d], self.grid);
        let other = |d: &usize| from.dims[*d] != to.dims[*d];
        let (lost, new): (Vec<usize>, Vec<usize>) = (
            (0..shape.len()).filter(|d| uneven(from, *d)).filter(other).collect(),
            (0..shape.len()).filter(|d| uneven(to, *d)).filter(other).collect(),
        );
        if lost.is_empty() && new.is_empty() {
            return self.here.reshard(v, from, to);
        }
        // through what is whole along these dimensions, which leaves the others' axes where they are
        let mut between = to.clone();
        lost.iter().chain(&new).for_each(|d| between.dims[*d] = CutAxes::new());
        let mut v = self.here.reshard(v, from, &between)?;
        for d in lost {
            v = self.here.rows(&v, d, &int(Dtype::I32, 0), shape[d])?;
        }
        for d in new {
            let parts = self.grid.parts(&to.dims[d]);
            v = self.here.extended(&v, d, shape[d].div_ceil(parts) * parts)?;
        }
        self.here.reshard(&v, &between, to)
    }
    /// Operands in which what a fold of a factor must not see has the identity.
    pub(super) fn masked(&self, f: &Factors, chosen: &[CutAxes], x: &mut Values) -> Res<()> {
        for (id, cut) in chosen.iter().enumerate() {
            let factor = &f.factors[id];
            let Some(monoid) = factor.fold.filter(|_| !is_even(factor.size, cut, self.grid)) else { continue };
            for (v, dims) in x.iter_mut().zip(&f.ins) {
                for (d, _) in dims.iter().enumerate().filter(|(_, ids)| ids.contains(&(id as u8))) {
                    *v = self.here.with_identity(v, d, factor.size, (monoid, cut))?;
                }
            }
        }
        Ok(())
    }
}
