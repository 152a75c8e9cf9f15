//! `Conv`: windows laid out as columns, then a matrix product.
//!
//! ```text
//!     columns[ci, window.., spatial..] = lhs[n, ci, spatial * strides + window * dilation - padding]    (0 outside)
//!     out[n, co, spatial..] = rhs[co, ci window..] @ columns[ci window.., spatial..]
//! ```
//!
//! What lies outside of the operand, or between its elements, takes no part in a sum. As a column's zero it would: times a weight
//! that is not finite it is nan. Such weights, which no model is trained with, are left to the reference evaluator.
use super::Run;
use super::reduce_window::Spread;
use super::walk::strides;
use crate::kernels::{Bases, Compiled};
use crate::memory::Block;
use crate::tier::Tier;
use ferrax_kernel::kernel::{Access, Guard};
use ferrax_kernel::routine::{Conv, Dot};
use ferrax_kernel::{Affine, Dims, Error, Kernel, Node, Res, Routine, Scalar, reference};
use smallvec::SmallVec;

pub fn compile(c: &Conv, tier: Tier) -> Res<Run> {
    let rank = c.lhs.len().saturating_sub(2);
    let (groups, batches) = (c.feature_groups.max(1), c.batch_groups.max(1));
    if c.lhs.len() < 2
        || c.rhs.len() != c.lhs.len()
        || c.out.len() != c.lhs.len()
        || c.padding.len() != rank
        || !c.out[1].is_multiple_of(groups * batches)
    {
        return Err(Error::Invalid(format!("inconsistent convolution {c:?}")));
    }
    let zero = Scalar::zero(c.dtype);
    let mut dilation = vec![1, 1];
    dilation.extend_from_slice(&c.lhs_dilation);
    let spread = Spread::new(&c.lhs, &dilation, zero);
    let lhs = spread.as_ref().map_or_else(|| c.lhs.clone(), |s| s.shape.clone());
    let s = strides(&lhs);
    let channels = c.rhs[1];
    let spatial: usize = c.out[2..].iter().product();
    let taps: usize = c.rhs[1..].iter().product();
    // One image: every group's channels, all taps, all output positions.
    let grid: Dims =
        [groups, channels].into_iter().chain(c.rhs[2..].iter().copied()).chain(c.out[2..].iter().copied()).collect();
    let mut at = Affine::new(0, [(channels as isize * s[1]) as i64, s[1] as i64]);
    at.strides.extend((0..rank).map(|a| c.rhs_dilation[a] as i64 * s[2 + a] as i64));
    at.strides.extend((0..rank).map(|a| c.strides[a] as i64 * s[2 + a] as i64));
    let mut guards = SmallVec::new();
    for a in 0..rank {
        let low = c.padding[a].0;
        at.offset -= low * s[2 + a] as i64;
        let reach =
            ((c.rhs[2 + a].max(1) - 1) * c.rhs_dilation[a] + (c.out[2 + a].max(1) - 1) * c.strides[a]) as i64 - low;
        if low > 0 || reach >= lhs[2 + a] as i64 {
            let mut along = vec![0; 2 + 2 * rank];
            along[2 + a] = c.rhs_dilation[a] as i64;
            along[2 + rank + a] = c.strides[a] as i64;
            guards.push(Guard { at: Affine::new(-low, along), lo: 0, hi: lhs[2 + a] as i64 });
        }
    }
    let image = lhs[1..].iter().product::<usize>();
    let has_guards = !guards.is_empty();
    let load = Node::Load(Box::new(Access { input: 0, at, guards, fill: zero }));
    let columns = Kernel {
        grid,
        inputs: vec![(c.dtype, image)],
        nodes: vec![(c.dtype, load)],
        outputs: vec![0],
        ..Kernel::default()
    };
    let columns = Compiled::new(&columns, false, tier)?;
    let per_group = c.out[1] / (groups * batches);
    // Groups are the batch of the product; batch groups take turns.
    let k = taps as i64;
    let dot = Dot {
        b: groups,
        m: per_group,
        n: spatial,
        k: taps,
        lhs: [per_group as i64 * k, k, 1],
        rhs: [k * spatial as i64, spatial as i64, 1],
        dtype: c.dtype,
        out: c.out_dtype,
    };
    let product = super::dot::compile(&dot, tier)?;
    let (size, out_size) = (c.dtype.size(), c.out_dtype.size());
    let (images, out_channels) = (c.out[0], c.out[1]);
    let whole = Routine::Conv(Box::new(c.clone()));
    let zeros_stand_in = has_guards || spread.is_some();
    let column_bytes = groups * taps * spatial * size;
    let operands = whole.operands();
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if zeros_stand_in {
            let bytes = |i: u32| {
                let (d, n) = operands[i as usize];
                // SAFETY: the plan gives each operand as many elements as the routine states.
                unsafe { std::slice::from_raw_parts(bases.input(i), d.size() * n) }
            };
            let d = operands[1].0;
            if d.is_float() && bytes(1).chunks_exact(d.size()).any(|b| !Scalar::from_bytes(d, b).to_f64().is_finite()) {
                let y = reference::routine(&whole, &[bytes(0), bytes(1)])?;
                // SAFETY: the result is as long as the routine states, and shares no memory with the operands.
                unsafe { std::ptr::copy_nonoverlapping(y[0].as_ptr(), bases.output(0), y[0].len()) };
                return Ok(());
            }
        }
        let held = spread.as_ref().map(|s| s.run(bases.input(0))).transpose()?;
        let x = held.as_ref().map_or(bases.input(0), |b| b.ptr());
        let cols = Block::new(column_bytes)?;
        for j in 0..batches {
            for n in 0..images {
                let from = x.wrapping_add((j * images + n) * image * size);
                let weights = bases.input(1).wrapping_add(j * groups * per_group * taps * size);
                let to = bases.output(0).wrapping_add((n * out_channels + j * groups * per_group) * spatial * out_size);
                // SAFETY: one image in, the columns it was compiled for out.
                unsafe { columns.run(Bases { ptrs: &[from, cols.ptr()], ins: &[0], outs: &[1], ..bases }, parallel) };
                product(Bases { ptrs: &[weights, cols.ptr(), to], ins: &[0, 1], outs: &[2], ..bases }, parallel)?;
            }
        }
        Ok(())
    }))
}
