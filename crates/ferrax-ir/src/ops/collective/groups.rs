//! Groups of the members of a named axis: which members exchange values.
use crate::cx::{Axis, Cx, Dim, values1};
use crate::error::{Res, value_err};
use crate::op::{Axes, Rules};
use crate::ops::concatenate::Concatenate;
use crate::ops::slice::Slice;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::collective::Groups;
use smallvec::smallvec;

/// Groups partition an axis; collectives that move slices need them of one size.
pub(super) fn check_groups(what: &str, names: usize, groups: &Option<Groups>, size: Option<usize>) -> Res<()> {
    let Some(g) = groups else { return Ok(()) };
    if names != 1 {
        return value_err("axis_index_groups only supported for collectives over a single axis");
    }
    if g.total() == 0 || !g.cover(g.total()) {
        return uncovered();
    }
    match size {
        Some(n) if g.even() != Some(n) => {
            let sizes: Vec<usize> = g.iter().map(<[u32]>::len).collect();
            value_err(format!("{what} needs axis_index_groups of one size, {n}, but they have sizes {sizes:?}"))
        }
        _ => Ok(()),
    }
}
fn uncovered<T>() -> Res<T> {
    value_err("axis_index_groups must cover all indices exactly once")
}
/// The lanes of these numbers, in this order; zeros for `None`. Neighbours at equal distances are one slice.
pub(super) fn pick_lanes(cx: &dyn Cx, x: &Value, d: usize, lanes: &[Option<usize>]) -> Res<Value> {
    let mut shape = Dims::new(x.shape());
    let n = shape[d];
    if lanes.len() == n && lanes.iter().enumerate().all(|(i, l)| *l == Some(i)) {
        return Ok(x.clone());
    }
    let mut parts = Values::new();
    let mut rest = lanes;
    while let Some(first) = rest.first() {
        let step = match (first, rest.get(1)) {
            (Some(a), Some(Some(b))) if b > a => b - a,
            _ => 1,
        };
        let next = |k: usize| first.map(|a| a + k * step);
        let len = rest.iter().enumerate().take_while(|(k, l)| **l == next(*k)).count();
        rest = &rest[len..];
        parts.push(match first {
            Some(a) => {
                let mut start_indices: Dims = shape.iter().map(|_| 0).collect();
                let mut limit_indices = Dims::new(x.shape());
                let mut strides: Dims = shape.iter().map(|_| 1).collect();
                (start_indices[d], limit_indices[d], strides[d]) = (*a, a + (len - 1) * step + 1, step);
                let strides = (step > 1).then_some(strides);
                cx.bind1(Slice { limit_indices, start_indices, strides }, std::slice::from_ref(x))?
            }
            None => {
                shape[d] = len;
                cx.zeros(&x.aval().with_shape(shape.clone()))?
            }
        });
    }
    if parts.len() == 1 { Ok(parts.remove(0)) } else { cx.bind1(Concatenate { dimension: d }, &parts) }
}
/// Applies `op` to each group of batch elements along its axis: `within` sees a group as an axis of
/// its own.
pub(super) fn by_groups(
    cx: &dyn Cx,
    ax: Axis,
    op: &dyn Rules,
    groups: &Option<Groups>,
    (x, d): (&Value, Dim),
    within: impl Fn(usize, &Value, Dim) -> Res<(Value, Dim)>,
) -> Res<(Values, Axes)> {
    // no equation is left that would be checked
    op.infer(&[d.map_or_else(|| x.aval(), |d| x.aval().unbatched(d))])?;
    let Some(groups) = groups else {
        let (y, d) = within(ax.n, x, d)?;
        return Ok((values1(y), smallvec![d]));
    };
    if !groups.cover(ax.n) {
        return uncovered();
    }
    let one = |members: &[u32]| {
        let lanes: Vec<_> = members.iter().map(|m| Some(*m as usize)).collect();
        let mine = d.map_or_else(|| Ok(x.clone()), |d| pick_lanes(cx, x, d, &lanes))?;
        let (y, at) = within(members.len(), &mine, d)?;
        cx.batch_at(&y, at, members.len(), 0)
    };
    let parts = groups.iter().map(one).collect::<Res<Values>>()?;
    let y = if parts.len() == 1 { parts[0].clone() } else { cx.bind1(Concatenate { dimension: 0 }, &parts)? };
    let places: Vec<_> = groups.places().into_iter().map(Some).collect();
    Ok((values1(pick_lanes(cx, &y, 0, &places)?), smallvec![Some(0)]))
}
