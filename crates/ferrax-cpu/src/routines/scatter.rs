//! `Scatter`: for each position of the indices, a window of the updates taken into the operand; in place where the plan says so.
//!
//! Updates apply in row-major order of the updates array. Going position by position keeps that order for each element of the
//! operand, unless windows that move along an axis of their own precede the positions; those go element by element.
//!
//! Threads divide the operand, not the updates: each goes through all positions in order and takes the windows that begin in its part.
//! So no two write one element, and the order holds, whether or not the caller's promise of unique indices does.
use super::Run;
use super::gather::{AT_ONCE, Component};
use super::walk::{Combining, Odometer, Shared, Walk, copy, indices, strides};
use crate::kernels::Bases;
use crate::threads;
use crate::tier::Tier;
use ferrax_kernel::routine::{Combine, OutOfBounds, Scatter};
use ferrax_kernel::{Bin, Error, Res};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

pub fn compile(s: &Scatter, tier: Tier) -> Res<Run> {
    let bytes = s.dtype.size();
    let rank = s.operand.len();
    let (to, from) = (strides(&s.operand), strides(&s.updates));
    let positions: Vec<usize> = (0..s.updates.len()).filter(|k| !s.update_window_dims.contains(k)).collect();
    let kept: Vec<usize> =
        (0..rank).filter(|k| !s.inserted_window_dims.contains(k) && !s.operand_batching_dims.contains(k)).collect();
    let vector = s.scatter_dims_to_operand_dims.len();
    let n_positions: usize = positions.iter().map(|k| s.updates[*k]).product();
    if kept.len() != s.update_window_dims.len() || n_positions * vector != s.indices.size() && vector > 0 {
        return Err(Error::Invalid(format!("inconsistent scatter {s:?}")));
    }
    let size = |axis: usize| kept.iter().position(|k| *k == axis).map_or(1, |w| s.updates[s.update_window_dims[w]]);
    let window: Vec<(usize, isize, isize)> =
        kept.iter().zip(s.update_window_dims.iter()).map(|(o, u)| (s.updates[*u], to[*o], from[*u])).collect();
    let walk = Walk::new(bytes, window.iter().copied());
    let b = bytes as isize;
    let components: Vec<Component> = s
        .scatter_dims_to_operand_dims
        .iter()
        .map(|axis| Component { stride: to[*axis] * b, last: s.operand[*axis] as i64 - size(*axis) as i64 })
        .collect();
    let along = |k: usize| {
        let batch =
            s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter()).find(|(_, of)| **of == k);
        batch.map_or(0, |(axis, _)| to[*axis])
    };
    let dims: SmallVec<[(usize, isize, isize); 4]> =
        positions.iter().enumerate().map(|(k, u)| (s.updates[*u], along(k) * b, from[*u] * b)).collect();
    let bin = match s.combine {
        Combine::Set => None,
        Combine::Sub => Some(Bin::Sub),
        Combine::Reduce(k) => Some(k.bin().ok_or_else(|| Error::Invalid("a scatter cannot combine positions".into()))?),
    };
    let combining = bin
        .map(|f| {
            Combining::new(f, s.dtype, tier)
                .ok_or_else(|| Error::Invalid(format!("{} is not defined for {}", f.name(), s.dtype)))
        })
        .transpose()?;
    let too_large = (0..rank).any(|axis| size(axis) > s.operand[axis]);
    let total = s.operand.size() * bytes;
    let drop_outside = s.mode == OutOfBounds::FillOrDrop;
    let windows_last = positions.iter().zip(0..).all(|(p, k)| *p == k);
    let moves_in_window = s.scatter_dims_to_operand_dims.iter().any(|axis| size(*axis) > 1);
    // Element by element, in the order of the updates.
    let slow = !windows_last && moves_in_window && !s.unique;
    let nanos = n_positions as f64 * (6.0 + walk.elements as f64 * if combining.is_some() { 1.0 } else { 0.3 });
    let (index_dtype, empty) = (s.index_dtype, s.updates.size() == 0);
    let row_major: Vec<(usize, isize, isize)> = (0..s.updates.len())
        .map(|u| match s.update_window_dims.iter().position(|w| *w == u) {
            Some(w) => (s.updates[u], to[kept[w]] * b, 0),
            None => {
                let k = positions.iter().position(|p| *p == u).unwrap_or(0);
                let step: usize = positions[k + 1..].iter().map(|p| s.updates[*p]).product();
                (s.updates[u], along(k) * b, step as isize)
            }
        })
        .collect();
    let one = Walk::new(bytes, []);
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let (old, out) = (bases.input(0), Shared(bases.output(0)));
        if old != out.get() {
            // SAFETY: both are the operand's size.
            unsafe { out.get().copy_from(old, total) };
        }
        if empty || too_large {
            return Ok(());
        }
        let (ix, new) = (Shared(bases.input(1)), Shared(bases.input(2)));
        let f = copy(bytes);
        // Offset of a window in bytes, none where it is dropped.
        let target = |starts: &[i64]| -> Option<isize> {
            let mut at = 0;
            for (x, c) in starts.iter().zip(&components) {
                let moved = (*x).clamp(0, c.last);
                if drop_outside && moved != *x {
                    return None;
                }
                at += moved as isize * c.stride;
            }
            Some(at)
        };
        // SAFETY: targets are clamped, so windows lie inside.
        let put = |walk: &Walk, to: *mut u8, from: *const u8| unsafe {
            match &combining {
                None if walk.is_single() && bytes == 4 => *to.cast::<u32>() = *from.cast::<u32>(),
                None if walk.is_single() && bytes == 8 => *to.cast::<u64>() = *from.cast::<u64>(),
                None => walk.run(to, from, f),
                Some(c) => walk.combine(to, from, c),
            }
        };
        if slow {
            let mut o = Odometer::at(&row_major, 0);
            for u in 0..n_positions * walk.elements {
                // SAFETY: the index vector of a position.
                let starts = unsafe { indices(index_dtype, ix.get(), o.b as usize * vector, vector) };
                if let Some(at) = target(&starts) {
                    put(&one, out.get().wrapping_offset(at + o.a), new.get().wrapping_add(u * bytes));
                }
                o.step();
            }
            return Ok(());
        }
        // Windows that move by whole windows only are the same or apart: they belong to whoever has their first byte.
        let parts = if parallel && !moves_in_window && nanos > threads::WORTH { threads::num_threads() } else { 1 };
        let first_of = |part: usize| (total as u128 * part as u128 / parts as u128) as isize;
        threads::for_ranges(parts, if parts > 1 { nanos } else { 0.0 }, bases.cancel, &|r| {
            let mine = first_of(r.start)..first_of(r.end);
            let mut o = Odometer::at(&dims, 0);
            for from in (0..n_positions).step_by(AT_ONCE) {
                if bases.cancel.load(Ordering::Relaxed) {
                    return;
                }
                let n = AT_ONCE.min(n_positions - from);
                // SAFETY: index vectors of these positions.
                let starts = unsafe { indices(index_dtype, ix.get(), from * vector, n * vector) };
                for p in 0..n {
                    if let Some(at) = target(&starts[p * vector..(p + 1) * vector]).map(|at| at + o.a)
                        && mine.contains(&at)
                    {
                        put(&walk, out.get().wrapping_offset(at), new.get().wrapping_offset(o.b));
                    }
                    o.step();
                }
            }
        });
        Ok(())
    }))
}
