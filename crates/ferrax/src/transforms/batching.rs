//! `vmap`: a function on every slice at once.
use super::{Output, call, flat, returned, unflat};
use crate::mistakes;
use crate::tree::{Outline, Tree};
use ferrax_ir::{Aval, Error, Res, Value};
use ferrax_transform as transform;
use std::cell::RefCell;

/// The batch axes. Axes are given once for all tensors, once for each of the outermost parts (of a
/// tuple, say), or tensor by tensor; `None` means no batch axis: the same for all. Negative axes
/// count from the end.
#[derive(Clone, Debug)]
pub struct VmapOptions<'a> {
    /// The axes of the argument's tensors.
    pub in_axes: &'a [Option<i64>],
    /// The axes on which results are stacked.
    pub out_axes: &'a [Option<i64>],
    /// The name by which collectives ([`crate::psum`], ..) reach the axis.
    pub name: Option<&'a str>,
    /// The number of slices, if no argument determines it.
    pub size: Option<usize>,
}
impl Default for VmapOptions<'_> {
    fn default() -> Self {
        VmapOptions { in_axes: &[Some(0)], out_axes: &[Some(0)], name: None, size: None }
    }
}

/// One entry for each tensor.
pub(super) fn spread(what: &str, axes: &[Option<i64>], like: &Outline) -> Res<Vec<Option<i64>>> {
    let (n, parts) = (like.paths().len(), like.parts());
    match axes {
        [one] => Ok(vec![*one; n]),
        all if all.len() == parts.len() => {
            Ok(all.iter().zip(parts).flat_map(|(a, n)| std::iter::repeat_n(*a, *n)).collect())
        }
        all if all.len() == n => Ok(all.to_vec()),
        all => Err(Error::value(format!(
            "{what} must be one axis, one for each of {} parts, or one for each of {n} tensors; got {}",
            parts.len(),
            all.len()
        ))),
    }
}
pub(super) fn front(axis: i64, rank: usize) -> Res<usize> {
    let k = if axis < 0 { axis + rank as i64 } else { axis };
    match 0 <= k && k < rank as i64 {
        true => Ok(k as usize),
        false => Err(Error::value(format!("axis {axis} is out of bounds for array of dimension {rank}"))),
    }
}

/// `f` on every slice of every tensor along axis 0, results stacked along axis 0.
pub fn vmap<X: Tree, Y: Tree, R: Output<Y>>(f: impl Fn(&X) -> R) -> impl Fn(&X) -> Res<Y> {
    move |x| vmap_of(&f, x, &VmapOptions::default())
}
/// `f` on every slice, as the options say.
///
/// ```
/// use ferrax::{Tensor, VmapOptions, psum, vmap_with};
/// let (m, v) = (Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::from([10.0f32, 20.0]));
/// let o = VmapOptions { in_axes: &[Some(1), None], name: Some("i"), ..VmapOptions::default() };
/// let f = vmap_with(o, |(m, v): &(Tensor, Tensor)| (m * v).sum() / psum(m.sum(), "i"));
/// assert_eq!(f(&(m, v))?.to_vec::<f32>()?, [7.0, 10.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn vmap_with<X: Tree, Y: Tree, R: Output<Y>>(
    options: VmapOptions<'_>,
    f: impl Fn(&X) -> R,
) -> impl Fn(&X) -> Res<Y> {
    move |x| vmap_of(&f, x, &options)
}
fn vmap_of<X: Tree, Y: Tree, R: Output<Y>>(f: &impl Fn(&X) -> R, x: &X, o: &VmapOptions<'_>) -> Res<Y> {
    mistakes::init();
    let out = RefCell::new(None);
    let leaves = flat(x);
    let axes = spread("vmap in_axes", o.in_axes, &Outline::of(x))?;
    let at = |(a, v): (&Option<i64>, &Value)| a.map(|a| front(a, v.rank())).transpose();
    let dims = axes.iter().zip(&leaves).map(at).collect::<Res<Vec<_>>>()?;
    let n = match o.size {
        Some(n) if dims.iter().all(Option::is_none) => n,
        _ => transform::batch_size(&leaves, &dims)?,
    };
    let outs: RefCell<Option<Vec<Option<i64>>>> = RefCell::new(None);
    let place = |i: usize, a: &Aval, d: Option<usize>| -> Res<Option<usize>> {
        if outs.borrow().is_none() {
            let outline = out.borrow().as_ref().map(Outline::of).unwrap_or_default();
            *outs.borrow_mut() = Some(spread("vmap out_axes", o.out_axes, &outline)?);
        }
        let axis = outs.borrow().as_ref().and_then(|axes| axes[i]);
        match axis {
            Some(k) => Ok(Some(front(k, a.rank() + 1)?)),
            None if d.is_some() => Err(Error::value("vmap has mapped output but out_axes is None")),
            None => Ok(None),
        }
    };
    let y = transform::vmap(&|a| call(f, x, a, &out), &leaves, &dims, n, o.name.map(Into::into), &place)?;
    Ok(unflat(&returned(out)?, y))
}
