//! `Gather`: for each position of the indices, a window of the operand.
use super::Run;
use super::walk::{Odometer, SharedPtr, Walk, copy, merged, strides};
use crate::kernels::Bases;
use crate::kernels::address::{self, AT_ONCE, Addresses, Component, OUTSIDE};
use crate::threads;
use crate::tier::Tier;
use ferrax_kernel::routine::{Gather, OutOfBounds};
use ferrax_kernel::{Error, Res};

pub fn compile(g: &Gather, tier: Tier) -> Res<Run> {
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
    // A window larger than the operand exists only where nothing is read.
    let never = g.start_index_map.iter().any(|axis| g.operand[*axis] < g.slice_sizes[*axis]);
    let components = g.start_index_map.iter().map(|axis| Component {
        stride: from[*axis] * bytes as isize,
        last: g.operand[*axis].saturating_sub(g.slice_sizes[*axis]) as i64,
    });
    let addresses = Addresses::new(components.collect(), g.index_dtype, g.mode == OutOfBounds::FillOrDrop, tier);
    // Each axis of the positions moves through the output, and where it is a batching one through the operand.
    let along = |k: usize| {
        let batch = g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()).find(|(_, of)| **of == k);
        batch.map_or(0, |(axis, _)| from[*axis])
    };
    let b = bytes as isize;
    let dims = merged(positions.iter().enumerate().map(|(k, t)| (g.out[*t], to[*t] * b, along(k) * b)));
    let even = dims.iter().all(|d| dims.len() == 1 && d.1 == b && d.2 == 0);
    let (fill, fill_bits) = (g.fill.bytes(), g.fill.bits);
    let take = address::take(bytes, tier);
    let run = walk.run_of_bytes(bytes);
    let nanos = n_positions as f64 * (2.0 + walk.elements as f64 * 0.1);
    let empty = g.out.size() == 0;
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if empty {
            return Ok(());
        }
        let (src, ix, out) = (SharedPtr(bases.input(0)), SharedPtr(bases.input(1)), SharedPtr(bases.output(0)));
        let f = copy(bytes);
        threads::for_ranges(n_positions, if parallel { nanos } else { 0.0 }, bases.cancel, &|r| {
            let mut at = [OUTSIDE; AT_ONCE];
            let mut o = Odometer::at(&dims, r.start);
            for first in r.clone().step_by(AT_ONCE) {
                let n = AT_ONCE.min(r.end - first);
                // SAFETY: `Routine::verify`: windows are no larger than the operand where anything is read, a batching axis of the positions is no
                // longer than the operand's, and the index array has a vector for each position. So windows at addresses lie inside, and those
                // outside are filled; each position has an output window of its own, and is one thread's.
                unsafe {
                    if !never {
                        addresses.of(ix.get(), first, n, &mut at);
                    }
                    if walk.is_single() {
                        if !even {
                            o.shift::<true>(&mut at[..n]);
                        }
                        take(out.get().add(first * bytes), src.get(), at.as_ptr(), n, fill_bits);
                        continue;
                    }
                    for a in &at[..n] {
                        let (to, window) = (out.get().offset(o.a), src.get().wrapping_offset(*a as isize + o.b));
                        match run {
                            _ if *a < 0 => filling.run(to, fill.as_ptr(), f),
                            Some(4) => to.cast::<[u8; 4]>().write(window.cast::<[u8; 4]>().read()),
                            Some(8) => to.cast::<[u8; 8]>().write(window.cast::<[u8; 8]>().read()),
                            Some(16) => to.cast::<[u8; 16]>().write(window.cast::<[u8; 16]>().read()),
                            Some(32) => to.cast::<[u8; 32]>().write(window.cast::<[u8; 32]>().read()),
                            Some(64) => to.cast::<[u8; 64]>().write(window.cast::<[u8; 64]>().read()),
                            Some(n) => to.copy_from_nonoverlapping(window, n),
                            None => walk.run(to, window, f),
                        }
                        o.step();
                    }
                }
            }
        });
        Ok(())
    }))
}
