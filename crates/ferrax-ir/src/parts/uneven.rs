//! The last rows of parts that are not equal, which have no meaning: a device adds them where it has fewer rows, or puts there what a fold does not see.
use super::Here;
use crate::cx::int;
use crate::dtype::Dtype;
use crate::error::Res;
use crate::ops::iota::Iota;
use crate::ops::pad::Pad;
use crate::ops::pointwise::Pw;
use crate::ops::reduce::{Monoid, identity};
use crate::value::Value;
use ferrax_kernel::Dims;

impl Here<'_> {
    /// `n` rows, the last ones zeros.
    pub fn extended(&self, v: &Value, d: usize, n: usize) -> Res<Value> {
        let more = (n - v.shape()[d]) as i64;
        let padding_config = (0..v.rank()).map(|k| (0, if k == d { more } else { 0 }, 0)).collect();
        let zero = self.cx.zeros(&v.aval().with_shape(Dims::default()))?;
        self.cx.bind1(Pad { padding_config }, &[v.clone(), zero])
    }
    /// This device's part of an array with the identity in rows from the `n`th of all on.
    pub fn with_identity(&self, v: &Value, d: usize, n: usize, (monoid, cut): (Monoid, &[u8])) -> Res<Value> {
        let (cx, shape) = (self.cx, Dims::new(v.shape()));
        let first = cx.mul(&self.number(cut)?, &int(Dtype::I32, shape[d] as i64))?;
        let k = cx.bind1(Iota { dimension: d, dtype: Dtype::I32, shape: shape.clone().into() }, &[])?;
        let left = cx.stretch(&cx.sub(&int(Dtype::I32, n as i64), &first)?, &shape)?;
        let none = match monoid {
            Monoid::Sum | Monoid::Or => cx.zeros(&v.aval())?,
            _ => cx.stretch(&identity(monoid, v.dtype()), &shape)?,
        };
        cx.select(&cx.pw2(Pw::Lt, &k, &left)?, &none, v)
    }
}
