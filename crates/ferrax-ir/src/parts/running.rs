//! Running combinations along a dimension that is cut: each device combines its part, and then with that what the devices before it have in all.
//!
//! ```text
//! cumsum of [1 2 | 3 4 | 5 6]      own [1 3 | 3 7 | 5 11], before [0 | 3 | 10], result [1 3 | 6 10 | 15 21]
//! ```
//!
//! INVARIANT: the order of combination depends on the number of parts alone.
use super::Here;
use crate::cx::int;
use crate::dtype::Dtype;
use crate::error::Res;
use crate::op::Op;
use crate::ops::pointwise::Pw;
use crate::value::Value;
use ferrax_kernel::Dims;

/// The running combination, of each element with all before it, or in reverse with all after.
pub struct Along<'a> {
    pub op: &'a Op,
    pub dim: usize,
    pub reverse: bool,
}

impl Here<'_> {
    /// This device's part of the result, of the running combination `own` of its part.
    pub fn after_others(
        &self,
        r: &Along,
        own: &Value,
        axes: &[u8],
        combine: &dyn Fn(&Value, &Value) -> Res<Value>,
    ) -> Res<Value> {
        let (cx, d, parts) = (self.cx, r.dim, self.grid.parts(axes) as i64);
        let (last, first, step) = if r.reverse { (0, parts - 1, 1) } else { (own.shape()[d] as i64 - 1, 0, -1) };
        let all = self.gather(&self.rows(own, d, &int(Dtype::I32, last), 1)?, d, axes, true)?;
        let (running, me) = (cx.bind1(r.op.clone(), &[all])?, self.number(axes)?);
        // the device that begins takes none
        let before = cx.add(&me, &int(Dtype::I32, step))?;
        let before = cx.pw2(Pw::Max, &int(Dtype::I32, 0), &cx.pw2(Pw::Min, &before, &int(Dtype::I32, parts - 1))?)?;
        let theirs = cx.stretch(&self.rows(&running, d, &before, 1)?, &Dims::new(own.shape()))?;
        let begins = cx.pw2(Pw::Eq, &me, &int(Dtype::I32, first))?;
        cx.select(&begins, &combine(&theirs, own)?, own)
    }
}
