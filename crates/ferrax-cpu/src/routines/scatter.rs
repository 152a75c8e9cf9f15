//! `Scatter`: for each position of the indices, a window of the updates taken into the operand; in place where the plan says so.
//!
//! Updates apply in row-major order of the updates array. Going position by position keeps that order for each element of the
//! operand, unless windows that move along an axis of their own precede the positions; those go element by element.
//!
//! Threads divide the operand, not the updates: each goes through all positions in order and takes the windows that begin in its part.
//! So no two write one element, and the order holds, whether or not the caller's promise of unique indices does. Where elements may be taken
//! together in any groups that keep their order (greatest, least, sums of integers) and there are many for each of the operand's, threads divide
//! the updates instead: all but the first take theirs into an array of their own.
use super::Run;
use super::walk::{Combining, Odometer, SharedPtr, Walk, copy, merged, strides};
use crate::kernels::address::{self, AT_ONCE, Addresses, Component, OUTSIDE};
use crate::kernels::{Bases, scalar};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::error::filled;
use ferrax_kernel::routine::{Combine, OutOfBounds, Scatter};
use ferrax_kernel::{Bin, Error, ReduceKind, Res};
use std::ops::Range;
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
    let too_large = (0..rank).any(|axis| size(axis) > s.operand[axis]);
    let components = s
        .scatter_dims_to_operand_dims
        .iter()
        .map(|axis| Component { stride: to[*axis] * b, last: s.operand[*axis].saturating_sub(size(*axis)) as i64 });
    let addresses = Addresses::new(components.collect(), s.index_dtype, s.mode == OutOfBounds::FillOrDrop, tier);
    let along = |k: usize| {
        let batch =
            s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter()).find(|(_, of)| **of == k);
        batch.map_or(0, |(axis, _)| to[*axis])
    };
    let dims = merged(positions.iter().enumerate().map(|(k, u)| (s.updates[*u], along(k) * b, from[*u] * b)));
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
    // Single elements that are taken one after the other have a loop of their own.
    let combined = bin.and_then(|f| scalar::put(f, s.dtype, tier));
    let put_one = match bin {
        _ if !walk.is_single() => None,
        None => Some(address::set(bytes, tier)),
        Some(_) => combined.map(|c| c.one),
    };
    /// So many of each element's pay for arrays of their own.
    const UPDATES_OF_ONE: usize = 4;
    let elements = s.operand.size();
    // Of several groups, all but the first start from what changes nothing.
    let grouping = match s.combine {
        Combine::Reduce(k) if !(s.dtype.is_float() && matches!(k, ReduceKind::Sum | ReduceKind::Prod)) => {
            let identity = k.identity(s.dtype).filter(|_| n_positions >= UPDATES_OF_ONE * elements);
            let combining = bin.and_then(|f| Combining::new(f, s.dtype, tier));
            combining.zip(identity.map(|x| if bytes == 4 { x.bits << 32 | x.bits } else { x.bits }))
        }
        _ => None,
    };
    // So have windows whose elements lie together.
    let put_rows = combined.zip(walk.run_of_bytes(bytes)).map(|(c, n)| (c.rows, n / bytes));
    let batched = dims.iter().any(|d| d.1 != 0);
    // The bytes from one update to the next, where that is all there is to a position.
    let even = match dims[..] {
        [] => Some(0),
        [(_, 0, step)] => Some(step),
        _ => None,
    };
    let total = elements * bytes;
    let windows_last = positions.iter().zip(0..).all(|(p, k)| *p == k);
    let moves_in_window = s.scatter_dims_to_operand_dims.iter().any(|axis| size(*axis) > 1);
    // Element by element, in the order of the updates.
    let slow = !windows_last && moves_in_window && !s.unique;
    /// Each part looks at all positions.
    const PARTS_WORTH: f64 = 30_000.0;
    let each = 4.0 + walk.elements as f64 * if combining.is_some() { 0.3 } else { 0.1 };
    let cost = Cost::of(n_positions as f64 * each);
    let empty = s.updates.size() == 0;
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
        let (old, out) = (bases.input(0), SharedPtr(bases.output(0)));
        if old != out.get() {
            // SAFETY: verify, sizes: operand and result have `total` bytes. (They may be one memory, as result 0 of an update.)
            unsafe { out.get().copy_from(old, total) };
        }
        if empty || too_large {
            return Ok(());
        }
        let (ix, new) = (addresses.together(bases.input(1).cast_const()), SharedPtr(bases.input(2)));
        let f = copy(bytes);
        // SAFETY: a window is no larger than the operand, its start is clamped or it has no address, and batching axes of the positions are no
        // longer than the operand's (`Routine::verify`): it lies inside. The update's window is one of its own.
        let put = |walk: &Walk, to: *mut u8, from: *const u8| unsafe {
            match &combining {
                None => walk.run(to, from, f),
                Some(c) => walk.combine(to, from, c),
            }
        };
        // PERF: one window, as loops over few numbers write it, needs no room for the addresses of many.
        if n_positions == 1 {
            // SAFETY: `Routine::verify`: the index array has a vector for each position.
            let at = unsafe { addresses.first(&ix) };
            if at >= 0 {
                put(&walk, out.get().wrapping_offset(at as isize), new.get());
            }
            return Ok(());
        }
        let mut at = [OUTSIDE; AT_ONCE];
        if slow {
            let mut o = Odometer::at(&row_major, 0);
            for u in 0..n_positions * walk.elements {
                // SAFETY: `Routine::verify`: the index array has a vector for each position, and `o.b` counts positions.
                unsafe { addresses.of(&ix, o.b as usize, 1, &mut at) };
                if at[0] >= 0 {
                    put(&one, out.get().wrapping_offset(at[0] as isize + o.a), new.get().wrapping_add(u * bytes));
                }
                o.step();
            }
            return Ok(());
        }
        if let Some(f) = put_one {
            // SAFETY: index vectors of these positions; addresses are those of elements, and each position has an update.
            let put = |to: *mut u8, range: Range<usize>| unsafe {
                let mut at = [OUTSIDE; AT_ONCE];
                let mut o = Odometer::at(&dims, range.start);
                for (k, from) in range.clone().step_by(AT_ONCE).enumerate() {
                    if k % 256 == 0 && bases.cancel.load(Ordering::Relaxed) {
                        return;
                    }
                    let n = AT_ONCE.min(range.end - from);
                    addresses.of(&ix, from, n, &mut at);
                    if batched {
                        o.shift::<false>(addresses.shift, &mut at[..n]);
                    }
                    f(to, at.as_ptr(), new.get().wrapping_add(from * bytes), b, n);
                }
            };
            let most = n_positions / (UPDATES_OF_ONE / 2 * elements).max(1);
            let parts = if parallel && cost.estimate > PARTS_WORTH { threads::num_threads().min(most) } else { 1 };
            let (Some((combining, identity)), 2..) = (&grouping, parts) else {
                put(out.get(), 0..n_positions);
                return Ok(());
            };
            let room = total.next_multiple_of(64);
            let mut own = filled((parts - 1) * room / 8, *identity)?;
            let own = SharedPtr(own.as_mut_ptr().cast());
            let place = |part: usize| if part == 0 { out.get() } else { own.get().wrapping_add((part - 1) * room) };
            let first_of = |part: usize| (n_positions as u128 * part as u128 / parts as u128) as usize;
            threads::for_ranges(parts, Some(&cost), bases.cancel, &|r| {
                r.for_each(|part| put(place(part), first_of(part)..first_of(part + 1)));
            });
            for part in 1..parts {
                // SAFETY: arrays as long as the operand, of which this one is no longer written.
                unsafe { combining.run(out.get(), place(part), elements, b, b) };
            }
            return Ok(());
        }
        // Windows that move by whole windows only are the same or apart: they belong to whoever has their first byte.
        let parts =
            if parallel && !moves_in_window && cost.estimate > PARTS_WORTH { threads::num_threads() } else { 1 };
        let first_of = |part: usize| (total as u128 * part as u128 / parts as u128) as i64;
        threads::for_ranges(parts, (parts > 1).then_some(&cost), bases.cancel, &|r| {
            let mine = first_of(r.start)..first_of(r.end);
            let (mut at, mut chosen) = ([OUTSIDE; AT_ONCE], [0u16; AT_ONCE]);
            let mut o = Odometer::at(&dims, 0);
            for from in (0..n_positions).step_by(AT_ONCE) {
                if bases.cancel.load(Ordering::Relaxed) {
                    return;
                }
                let n = AT_ONCE.min(n_positions - from);
                // SAFETY: as above: from + n is at most the number of positions.
                unsafe { addresses.of(&ix, from, n, &mut at) };
                if let Some(step) = even {
                    // PERF: which are this part's is anybody's guess, and a branch's: they are counted out first.
                    let mut count = 0;
                    for (p, a) in (0u16..).zip(&at[..n]) {
                        chosen[count] = p;
                        count += usize::from(*a >= mine.start && *a < mine.end);
                    }
                    if let Some((f, run)) = put_rows {
                        let new = new.get().wrapping_offset(from as isize * step);
                        // SAFETY: positions of this chunk whose addresses are those of windows; results overlap no updates.
                        unsafe { f(out.get(), at.as_ptr(), chosen.as_ptr(), count, new, step, run) };
                        continue;
                    }
                    for p in chosen[..count].iter().map(|p| *p as usize) {
                        put(
                            &walk,
                            out.get().wrapping_offset(at[p] as isize),
                            new.get().wrapping_offset((from + p) as isize * step),
                        );
                    }
                    continue;
                }
                for a in &at[..n] {
                    if *a >= 0 && mine.contains(&(*a + o.a as i64)) {
                        put(&walk, out.get().wrapping_offset(*a as isize + o.a), new.get().wrapping_offset(o.b));
                    }
                    o.step();
                }
            }
        });
        Ok(())
    }))
}
