//! `Gather`: for each position of the indices, a window of the operand.
use super::Run;
use super::walk::{Odometer, Shared, Walk, copy, indices, strides};
use crate::kernels::Bases;
use crate::threads;
use ferrax_kernel::routine::{Gather, OutOfBounds};
use ferrax_kernel::{Error, Res};
use smallvec::SmallVec;

/// How a component of an index vector moves the window: operand stride in bytes, and the last start that lies inside.
pub struct Component {
    pub stride: isize,
    pub last: i64,
}

/// Index vectors that are read at once.
pub const AT_ONCE: usize = 256;

pub fn compile(g: &Gather) -> Res<Run> {
    let bytes = g.dtype.size();
    let rank = g.operand.len();
    let (from, to) = (strides(&g.operand), strides(&g.out));
    let positions: Vec<usize> = (0..g.out.len()).filter(|k| !g.offset_dims.contains(k)).collect();
    let kept: Vec<usize> =
        (0..rank).filter(|k| !g.collapsed_slice_dims.contains(k) && !g.operand_batching_dims.contains(k)).collect();
    let vector = g.start_index_map.len();
    let n_positions: usize = positions.iter().map(|k| g.out[*k]).product();
    if kept.len() != g.offset_dims.len()
        || g.slice_sizes.len() != rank
        || n_positions * vector != g.indices.size() && vector > 0
    {
        return Err(Error::Invalid(format!("inconsistent gather {g:?}")));
    }
    let window = || kept.iter().zip(g.offset_dims.iter()).map(|(o, t)| (g.slice_sizes[*o], to[*t], from[*o]));
    let walk = Walk::new(bytes, window());
    let filling = Walk::new(bytes, window().map(|(n, t, _)| (n, t, 0)));
    let components: Vec<Component> = g
        .start_index_map
        .iter()
        .map(|axis| Component {
            stride: from[*axis] * bytes as isize,
            last: g.operand[*axis] as i64 - g.slice_sizes[*axis] as i64,
        })
        .collect();
    // Each axis of the positions moves through the output, and where it is a batching one through the operand.
    let along = |k: usize| {
        let batch = g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()).find(|(_, of)| **of == k);
        batch.map_or(0, |(axis, _)| from[*axis])
    };
    let b = bytes as isize;
    let dims: SmallVec<[(usize, isize, isize); 4]> =
        positions.iter().enumerate().map(|(k, t)| (g.out[*t], to[*t] * b, along(k) * b)).collect();
    let (mode, fill, index_dtype) = (g.mode, g.fill.bytes(), g.index_dtype);
    let drop_outside = mode == OutOfBounds::FillOrDrop;
    let nanos = n_positions as f64 * (5.0 + walk.elements as f64 * 0.3);
    let empty = g.out.size() == 0;
    // A window larger than the operand exists only where nothing is read.
    let never = components.iter().any(|c| c.last < 0);
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if empty {
            return Ok(());
        }
        let (src, ix, out) = (Shared(bases.input(0)), Shared(bases.input(1)), Shared(bases.output(0)));
        let f = copy(bytes);
        threads::for_ranges(n_positions, if parallel { nanos } else { 0.0 }, bases.cancel, &|r| {
            // SAFETY: starts are clamped (or the window is filled), so that windows lie inside; each position has its own output window.
            unsafe {
                let mut starts = Default::default();
                let mut o = Odometer::at(&dims, r.start);
                for (k, p) in r.clone().zip((0..AT_ONCE).cycle()) {
                    if p == 0 {
                        let n = AT_ONCE.min(r.end - k);
                        starts = indices(index_dtype, ix.get(), k * vector, n * vector);
                    }
                    let mut at = o.b;
                    let mut inside = !never;
                    for (j, c) in components.iter().enumerate() {
                        let x = starts[p * vector + j];
                        let moved = x.clamp(0, c.last.max(0));
                        inside &= !drop_outside || moved == x;
                        at += moved as isize * c.stride;
                    }
                    let to = out.get().offset(o.a);
                    if !inside {
                        filling.run(to, fill.as_ptr(), f);
                    } else if walk.is_single() {
                        match bytes {
                            4 => *to.cast::<u32>() = *src.get().offset(at).cast::<u32>(),
                            8 => *to.cast::<u64>() = *src.get().offset(at).cast::<u64>(),
                            _ => to.copy_from_nonoverlapping(src.get().offset(at), bytes),
                        }
                    } else {
                        walk.run(to, src.get().offset(at), f);
                    }
                    o.step();
                }
            }
        });
        Ok(())
    }))
}
