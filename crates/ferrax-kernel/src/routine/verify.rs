//! What the parameters of a routine must keep, so that code made of them stays inside its operands whatever these hold.
use super::{Conv, Dot, Gather, Routine, Scatter};
use crate::dtype::DType;
use crate::error::{Error, Res};
use crate::shape::Dims;

impl Routine {
    /// # Errors
    /// `Invalid` where parameters contradict each other; `TooLarge` for sizes no machine has.
    pub fn verify(&self) -> Res<()> {
        let sound = match self {
            Routine::Dot(d) => dot(d)?,
            Routine::Gather(g) => gather(g)?,
            Routine::Scatter(s) => scatter(s)?,
            Routine::DynamicSlice { operand: x, sizes: w, dtype, index_dtype }
            | Routine::DynamicUpdateSlice { operand: x, update: w, dtype, index_dtype } => {
                x.checked(dtype.size())?;
                index(*index_dtype) && x.len() == w.len() && x.iter().zip(w.iter()).all(|(n, w)| w <= n)
            }
            Routine::Sort { outer, n, inner, dtypes, num_keys } => {
                Dims::from([*outer, *n, *inner]).checked(8)?;
                !dtypes.is_empty() && *num_keys <= dtypes.len()
            }
            Routine::Cumulative { outer, n, inner, dtype, .. } => {
                Dims::from([*outer, *n, *inner]).checked(dtype.size())?;
                true
            }
            Routine::ReduceWindow {
                operand,
                window,
                strides,
                base_dilation,
                window_dilation,
                padding,
                dtype,
                out,
                ..
            } => {
                operand.checked(dtype.size())?;
                window.checked(1)?;
                out.checked(8)?;
                let w = Windows { x: operand, window, strides, dilations: [base_dilation, window_dilation], padding };
                w.fit(out)
            }
            Routine::Conv(c) => conv(c)?,
        };
        if sound { Ok(()) } else { Err(Error::Invalid(format!("the parameters of {self:?} contradict each other"))) }
    }
}

fn index(d: DType) -> bool {
    !d.is_float()
}
/// Different axes of an array of this rank.
fn axes(of: &[usize], rank: usize) -> bool {
    of.iter().enumerate().all(|(k, a)| *a < rank && !of[..k].contains(a))
}

fn dot(d: &Dot) -> Res<bool> {
    Dims::from([d.b, d.m, d.n]).checked(8)?;
    Dims::from([d.b, d.m, d.k]).checked(8)?;
    Dims::from([d.b, d.k, d.n]).checked(8)?;
    // the greatest position of each operand
    let inside = |n: [usize; 3], s: [i64; 3]| {
        let reach = |n: usize, s: i64| (n.max(1) - 1).checked_mul(usize::try_from(s).ok()?);
        n.iter().zip(s).try_fold(1usize, |at, (n, s)| at.checked_add(reach(*n, s)?))
    };
    let fits = |n: Option<usize>| n.is_some_and(|n| n <= isize::MAX as usize / 8);
    Ok(fits(inside([d.b, d.m, d.k], d.lhs)) && fits(inside([d.b, d.k, d.n], d.rhs)))
}

fn gather(g: &Gather) -> Res<bool> {
    g.operand.checked(g.dtype.size())?;
    g.indices.checked(g.index_dtype.size())?;
    g.out.checked(g.dtype.size())?;
    let (rank, Some((vector, positions))) = (g.operand.len(), g.indices.split_last()) else { return Ok(false) };
    let left_out = g.collapsed_slice_dims.concat(&g.operand_batching_dims);
    let listed = axes(&g.offset_dims, g.out.len())
        && axes(&left_out, rank)
        && axes(&g.start_index_map.concat(&g.operand_batching_dims), rank)
        && axes(&g.start_indices_batching_dims, positions.len())
        && g.start_indices_batching_dims.len() == g.operand_batching_dims.len()
        && g.start_index_map.len() == *vector
        && g.slice_sizes.len() == rank;
    if !listed || !index(g.index_dtype) || g.fill.dtype != g.dtype {
        return Ok(false);
    }
    let sizes = g.slice_sizes.without(&left_out) == g.out.pick(&g.offset_dims)
        && g.out.without(&g.offset_dims)[..] == *positions;
    let batches = g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter());
    let inside = left_out.iter().all(|a| g.slice_sizes[*a] == 1)
        && g.slice_sizes.iter().zip(g.operand.iter()).all(|(w, n)| w <= n)
        && batches.into_iter().all(|(a, p)| positions[*p] <= g.operand[*a]);
    Ok(sizes && (inside || g.out.size() == 0))
}

fn scatter(s: &Scatter) -> Res<bool> {
    s.operand.checked(s.dtype.size())?;
    s.indices.checked(s.index_dtype.size())?;
    s.updates.checked(s.dtype.size())?;
    let (rank, Some((vector, positions))) = (s.operand.len(), s.indices.split_last()) else { return Ok(false) };
    let left_out = s.inserted_window_dims.concat(&s.operand_batching_dims);
    let listed = axes(&s.update_window_dims, s.updates.len())
        && axes(&left_out, rank)
        && axes(&s.scatter_dims_to_operand_dims.concat(&s.operand_batching_dims), rank)
        && axes(&s.scatter_indices_batching_dims, positions.len())
        && s.scatter_indices_batching_dims.len() == s.operand_batching_dims.len()
        && s.scatter_dims_to_operand_dims.len() == *vector
        && rank - left_out.len() == s.update_window_dims.len();
    if !listed || !index(s.index_dtype) {
        return Ok(false);
    }
    // A window larger than the operand is dropped, wherever it would go.
    let mut batches = s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter());
    let inside = s.updates.size() == 0 || batches.all(|(a, p)| positions[*p] <= s.operand[*a]);
    Ok(inside && s.updates.without(&s.update_window_dims)[..] == *positions)
}

fn conv(c: &Conv) -> Res<bool> {
    c.lhs.checked(8)?;
    c.rhs.checked(8)?;
    c.out.checked(8)?;
    let rank = c.lhs.len();
    if rank < 2 || c.rhs.len() != rank || c.out.len() != rank || c.feature_groups == 0 || c.batch_groups == 0 {
        return Ok(false);
    }
    let Some(groups) = c.feature_groups.checked_mul(c.batch_groups) else { return Ok(false) };
    let channels = Some(c.lhs[1]) == c.rhs[1].checked_mul(c.feature_groups)
        && c.out[1] == c.rhs[0]
        && c.out[1].is_multiple_of(groups)
        && Some(c.lhs[0]) == c.out[0].checked_mul(c.batch_groups);
    let [x, window, out] = [&c.lhs, &c.rhs, &c.out].map(|d| Dims::new(&d[2..]));
    let dilations = [&c.lhs_dilation, &c.rhs_dilation];
    let w = Windows { x: &x, window: &window, strides: &c.strides, dilations, padding: &c.padding };
    Ok(channels && w.fit(&out))
}

/// Windows over an array, along all of its axes.
struct Windows<'a> {
    x: &'a Dims,
    window: &'a Dims,
    strides: &'a Dims,
    /// Of the array, and of the window.
    dilations: [&'a Dims; 2],
    padding: &'a [(i64, i64)],
}
impl Windows<'_> {
    /// Whether `out` has as many of them as there are, and every position a window reaches is a number.
    fn fit(&self, out: &Dims) -> bool {
        let rank = self.x.len();
        let [base, dilation] = self.dilations;
        let ranks = [self.window, self.strides, base, dilation, out].iter().all(|d| d.len() == rank);
        ranks && self.padding.len() == rank && (0..rank).all(|k| self.along(k, out[k]).unwrap_or(false))
    }
    fn along(&self, k: usize, out: usize) -> Option<bool> {
        let number = |n: usize| i64::try_from(n).ok();
        let spread = |n: i64, step: i64| if n == 0 { Some(0) } else { (n - 1).checked_mul(step)?.checked_add(1) };
        let [base, dilation] = [self.dilations[0][k], self.dilations[1][k]];
        if base == 0 || dilation == 0 || self.strides[k] == 0 {
            return Some(false);
        }
        let (low, high) = self.padding[k];
        let x = spread(number(self.x[k])?, number(base)?)?.checked_add(low)?.checked_add(high)?;
        let window = spread(number(self.window[k])?, number(dilation)?)?;
        low.checked_neg()?;
        let n = if x < window { 0 } else { (x - window) / number(self.strides[k])? + 1 };
        Some(number(out)? == n)
    }
}
