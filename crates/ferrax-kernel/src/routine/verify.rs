//! The conditions on a routine's parameters under which compiled code stays inside its operands,
//! whatever their contents.
use super::{Conv, Dot, Fft, Gather, Routine, Scatter};
use crate::dtype::DType;
use crate::error::{Error, Res};
use crate::kernel::Affine;
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
            Routine::TopK { outer, n, inner, k, .. } => {
                Dims::from([*outer, *n, *inner]).checked(8)?;
                // positions are i32
                k <= n && *n <= 1 << 31
            }
            Routine::Cumulative { outer, n, inner, dtype, .. } => {
                Dims::from([*outer, *n, *inner]).checked(dtype.size())?;
                true
            }
            Routine::Conv(c) => conv(c)?,
            Routine::Linalg(l) => {
                // the largest operand or result has this many elements at most
                let most = l.m.max(l.n).max(l.k);
                Dims::from([l.batch, most, most]).checked(16)?;
                l.sound()
            }
            Routine::Fft(f) => fft(f)?,
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
    let (nb, sizes) = (c.batch.len(), c.batch.concat(&[c.rows.size(), c.columns]));
    c.batch.concat(&c.rows).concat(&[c.columns]).checked(8)?;
    c.terms.checked(8)?;
    Dims::from([c.x]).checked(8)?;
    let lane = matches!(c.dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U32 | DType::U64);
    if !lane || c.y.len() != nb + 2 || c.out.len() != nb + 2 {
        return Ok(false);
    }
    // no position is beyond a number, also where a guard refuses it
    let domain = c.batch.concat(&c.rows).concat(&c.terms);
    let near = |a: &Affine| {
        let (lo, hi) = a.range(&domain).unwrap_or((0, 0));
        a.strides.len() <= domain.len() && lo > i64::MIN / 4 && hi < i64::MAX / 4 && a.offset.abs() < i64::MAX / 4
    };
    let guarded = c.guards.iter().all(|g| near(&g.at) && g.at.strides.iter().all(|s| *s >= 0));
    let reach = |n: &usize, s: &usize| (n.max(&1) - 1).checked_mul(*s);
    let weights = c.batch.concat(&[c.terms.size(), c.columns]);
    let last = weights.iter().zip(c.y.iter()).try_fold(0usize, |at, (n, s)| at.checked_add(reach(n, s)?));
    // the result's axes, from the nearest on, leave no gap
    let mut axes: Vec<(usize, usize)> = c.out.iter().copied().zip(sizes.iter().copied()).filter(|a| a.1 != 1).collect();
    axes.sort_unstable();
    let dense = sizes.contains(&0) || {
        let ends = axes.iter().scan(1, |next, (s, n)| {
            let at = *next;
            *next *= n;
            Some(at == *s)
        });
        ends.into_iter().all(|met| met)
    };
    let beside = c.out[nb] == 1 || c.out[nb + 1] == 1;
    if !near(&c.at) || !guarded || last.is_none_or(|n| n >= isize::MAX as usize / 8) || !dense || !beside {
        return Ok(false);
    }
    c.kernel().verify()?;
    Ok(true)
}

fn fft(f: &Fft) -> Res<bool> {
    // the complex side of a real transform is larger by one number a row, and has two parts
    let wide: Dims = f.lengths.iter().map(|n| n.saturating_add(1)).collect();
    wide.insert(0, f.outer).insert(0, f.inner).checked(16)?;
    Ok(matches!(f.dtype, DType::F32 | DType::F64) && (1..=3).contains(&f.lengths.len()) && !f.lengths.contains(&0))
}
