//! Indexing by static integers, slices, `...` and `None`.
//!
//! ```text
//! x[::-1, -1]     slice, rev, squeeze         x[None, 2]     slice, squeeze, broadcast_in_dim
//! ```
//!
//! INVARIANT: emits at most one slice, one rev, one squeeze and one broadcast_in_dim, in that order.
use super::promotion::one;
use ferrax_ir::cx::bind;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::rev::Rev;
use ferrax_ir::ops::slice::Slice;
use ferrax_ir::ops::squeeze::Squeeze;
use ferrax_ir::value::Value;
use ferrax_ir::{Dims, Op};

/// One entry of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item {
    Int(i64),
    Slice { start: Option<i64>, stop: Option<i64>, step: Option<i64> },
    Ellipsis,
    NewAxis,
}
pub enum Indexed {
    /// The index takes everything.
    Same,
    New(Value),
}

/// Start, limit and stride of the elements that a slice of an axis of size `n` names, lowest first, and whether they are reversed.
fn resolve(n: usize, start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Res<(usize, usize, usize, bool)> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Error::value("slice step cannot be zero"));
    }
    let n = n as i64;
    let clip = |i: i64, low: i64, high: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high);
    if step > 0 {
        let start = start.map_or(0, |i| clip(i, 0, n));
        let stop = stop.map_or(n, |i| clip(i, 0, n)).max(start);
        return Ok((start as usize, stop as usize, step as usize, false));
    }
    let start = start.map_or(n - 1, |i| clip(i, -1, n - 1));
    let stop = stop.map_or(-1, |i| clip(i, -1, n - 1));
    if start <= stop {
        return Ok((0, 0, 1, true));
    }
    let stride = step.unsigned_abs().min(n as u64) as i64; // a longer one meets one element, too
    let count = (start - stop + stride - 1) / stride;
    let last = start - (count - 1) * stride;
    Ok((last as usize, start as usize + 1, stride as usize, true))
}

/// `x[items]`; `None` if an integer is out of bounds, which the general path clamps or fills.
pub fn static_index(x: &Value, items: &[Item]) -> Res<Option<Indexed>> {
    let shape = x.shape();
    let used = items.iter().filter(|i| matches!(i, Item::Int(_) | Item::Slice { .. })).count();
    if used > shape.len() {
        return Err(Error::new(
            ErrorKind::Index,
            format!("Too many indices: array is {}-dimensional, but {used} were indexed", shape.len()),
        ));
    }
    if items.iter().filter(|i| **i == Item::Ellipsis).count() > 1 {
        return Err(Error::new(ErrorKind::Index, "an index can only have a single ellipsis ('...')"));
    }
    let (mut start, mut limit, mut stride) = (Dims::default(), Dims::new(shape), Dims::new(&vec![1; shape.len()]));
    start = shape.iter().map(|_| 0).chain(start.iter().copied()).collect();
    let (mut reversed, mut dropped) = (Dims::default(), Dims::default());
    // for each axis of the result: whether it is new
    let mut axes: smallvec::SmallVec<[bool; 6]> = smallvec::SmallVec::new();
    let mut k = 0;
    for item in items {
        match *item {
            Item::Int(i) => {
                let n = shape[k] as i64;
                let i = if i < 0 { i.saturating_add(n) } else { i };
                if !(0..n).contains(&i) {
                    return Ok(None);
                }
                (start[k], limit[k]) = (i as usize, i as usize + 1);
                dropped.push(k);
                k += 1;
            }
            Item::Slice { start: a, stop: b, step: c } => {
                let (lo, hi, s, rev) = resolve(shape[k], a, b, c)?;
                (start[k], limit[k], stride[k]) = (lo, hi, s);
                if rev {
                    reversed.push(k);
                }
                axes.push(false);
                k += 1;
            }
            Item::Ellipsis => {
                let rest = shape.len() - used;
                axes.extend(std::iter::repeat_n(false, rest));
                k += rest;
            }
            Item::NewAxis => axes.push(true),
        }
    }
    axes.extend(std::iter::repeat_n(false, shape.len() - k));

    let mut out = x.clone();
    let mut same = true;
    let mut emit = |out: &mut Value, op: Op| -> Res<()> {
        same = false;
        *out = one(bind(&op, std::slice::from_ref(out))?)?;
        Ok(())
    };
    let whole = start.iter().all(|s| *s == 0) && limit[..] == *shape && stride.iter().all(|s| *s == 1);
    if !whole {
        let strides = stride.iter().any(|s| *s != 1).then(|| stride.clone());
        emit(&mut out, Slice { limit_indices: limit, start_indices: start, strides }.into())?;
    }
    if !reversed.is_empty() {
        emit(&mut out, Rev { dimensions: reversed }.into())?;
    }
    if !dropped.is_empty() {
        emit(&mut out, Squeeze { dimensions: dropped }.into())?;
    }
    if axes.contains(&true) {
        let mut sizes = out.shape().to_vec().into_iter();
        let shape: Dims = axes.iter().map(|new| if *new { 1 } else { sizes.next().unwrap_or(1) }).collect();
        let dims: Dims = axes.iter().enumerate().filter(|(_, new)| !**new).map(|(i, _)| i).collect();
        emit(&mut out, BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }.into())?;
    }
    Ok(Some(if same { Indexed::Same } else { Indexed::New(out) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_name_the_elements_that_python_names() {
        for n in 0..7i64 {
            let bounds: Vec<Option<i64>> = std::iter::once(None).chain((-9..9).map(Some)).collect();
            for a in &bounds {
                for b in &bounds {
                    for step in [-3, -2, -1, 1, 2, 3] {
                        let (lo, hi, s, rev) = resolve(n as usize, *a, *b, Some(step)).unwrap();
                        let mut got: Vec<i64> = (lo..hi).step_by(s).map(|i| i as i64).collect();
                        if rev {
                            got.reverse();
                        }
                        assert_eq!(got, python(n, *a, *b, step), "[{a:?}:{b:?}:{step}] of {n}");
                    }
                }
            }
        }
    }
    /// `list(range(n))[a:b:step]`, by the language reference.
    fn python(n: i64, a: Option<i64>, b: Option<i64>, step: i64) -> Vec<i64> {
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let fix = |i: i64| (if i < 0 { i + n } else { i }).clamp(low, high);
        let (mut i, end) =
            if step > 0 { (a.map_or(0, fix), b.map_or(n, fix)) } else { (a.map_or(n - 1, fix), b.map_or(-1, fix)) };
        let mut out = vec![];
        while (step > 0 && i < end) || (step < 0 && i > end) {
            out.push(i);
            i += step;
        }
        out
    }
}
