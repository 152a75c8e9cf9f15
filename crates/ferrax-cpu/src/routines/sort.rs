//! `Sort`: stable, by one key or lexicographically by several.
//!
//! Every key is mapped to an unsigned integer that compares as the key does (nans last and equal, -0 equal to 0). One operand of up to
//! 32 bits, or one key and a payload, sorts words of (key, payload) by radix or by merging; the rest sorts positions.
use super::Run;
use super::walk::SharedPtr;
use crate::kernels::Bases;
use crate::threads::{self, Cost};
use ferrax_kernel::error::{filled, room};
use ferrax_kernel::{DType, Error, Res};
use rayon::prelude::*;

/// A key as an unsigned integer of the same order.
#[inline(always)]
fn ordered(d: DType, bits: u64) -> u64 {
    let signed = |width: u32| bits ^ (1 << (width - 1));
    let float = |width: u32, inf: u64| {
        let sign = 1u64 << (width - 1);
        let magnitude = bits & (sign - 1);
        if magnitude > inf {
            (sign | (sign - 1)) & (u64::MAX >> (64 - width))
        } else if magnitude == 0 {
            sign
        } else if bits & sign != 0 {
            sign - magnitude
        } else {
            sign + magnitude
        }
    };
    match d {
        DType::I8 => signed(8),
        DType::I16 => signed(16),
        DType::I32 => signed(32),
        DType::I64 => signed(64),
        DType::F16 => float(16, 0x7c00),
        DType::BF16 => float(16, 0x7f80),
        DType::F32 => float(32, 0x7f80_0000),
        DType::F64 => float(64, 0x7ff0_0000_0000_0000),
        _ => bits,
    }
}
#[inline(always)]
unsafe fn read(p: *const u8, bytes: usize, i: usize) -> u64 {
    // SAFETY: the caller's element i exists.
    unsafe {
        match bytes {
            1 => *p.add(i) as u64,
            2 => *p.cast::<u16>().add(i) as u64,
            4 => *p.cast::<u32>().add(i) as u64,
            _ => *p.cast::<u64>().add(i),
        }
    }
}
#[inline(always)]
unsafe fn write(p: *mut u8, bytes: usize, i: usize, x: u64) {
    // SAFETY: the caller's element i exists.
    unsafe {
        match bytes {
            1 => *p.add(i) = x as u8,
            2 => *p.cast::<u16>().add(i) = x as u16,
            4 => *p.cast::<u32>().add(i) = x as u32,
            _ => *p.cast::<u64>().add(i) = x,
        }
    }
}

/// Stable by the high half: three passes of 11 bits, those skipped in which all agree.
fn radix(v: &mut Vec<u64>, spare: &mut Vec<u64>) -> Res<()> {
    if spare.capacity() < v.len() {
        *spare = room(v.len())?;
    }
    spare.resize(v.len(), 0);
    let mut counts = filled(3, [0u32; 2048])?;
    for x in v.iter() {
        let k = x >> 32;
        counts[0][(k & 2047) as usize] += 1;
        counts[1][(k >> 11 & 2047) as usize] += 1;
        counts[2][(k >> 22) as usize] += 1;
    }
    for (pass, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|c| *c as usize == v.len()) {
            continue;
        }
        let mut sum = 0;
        for c in counts.iter_mut() {
            (*c, sum) = (sum, sum + *c);
        }
        for x in v.iter() {
            let digit = (x >> (32 + 11 * pass) & 2047) as usize;
            spare[counts[digit] as usize] = *x;
            counts[digit] += 1;
        }
        std::mem::swap(v, spare);
    }
    Ok(())
}
/// Rows from this length on are sorted by several threads: by words that all differ, for such a sort asks for no memory.
const LONG: usize = 1 << 17;
/// Sorts words by their high half: stably, or, where `distinct` by their low halves, as wholes.
fn sort_words(v: &mut Vec<u64>, spare: &mut Vec<u64>, distinct: bool) -> Res<()> {
    if v.len() < 512 {
        v.sort_by_key(|x| x >> 32);
        return Ok(());
    }
    match if distinct { threads::pool() } else { None } {
        Some(p) => p.install(|| v.par_sort_unstable()),
        None => radix(v, spare)?,
    }
    Ok(())
}

pub fn compile(outer: usize, n: usize, inner: usize, dtypes: &[DType], num_keys: usize) -> Res<Run> {
    if n >= u32::MAX as usize || num_keys > dtypes.len() {
        return Err(Error::Unsupported(format!("sorting {n} elements by {num_keys} keys")));
    }
    let dtypes = dtypes.to_vec();
    let rows = outer * inner;
    let cost = Cost::of((rows * n) as f64 * (20.0 + 10.0 * dtypes.len() as f64));
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let ins: Vec<SharedPtr> = (0..dtypes.len()).map(|k| SharedPtr(bases.input(k as u32))).collect();
        let outs: Vec<SharedPtr> = (0..dtypes.len()).map(|k| SharedPtr(bases.output(k as u32))).collect();
        let within = parallel && rows < threads::num_threads() && cost.estimate > 1e6;
        let body = |r: std::ops::Range<usize>| -> Res<()> {
            let (mut words, mut spare) = (room::<u64>(n)?, vec![]);
            for row in r {
                let base = row / inner * n * inner + row % inner;
                let at = |i: usize| base + i * inner;
                let d = dtypes[0];
                // SAFETY: element at(i), i < n, of every operand and result; each row is one thread's, and no result lies where an
                // operand does.
                unsafe {
                    words.clear();
                    if num_keys == 1 && d.size() <= 4 {
                        let distinct = within && n > LONG;
                        let alone = dtypes.len() == 1 && !distinct;
                        for i in 0..n {
                            let bits = read(ins[0].get(), d.size(), at(i));
                            words.push(ordered(d, bits) << 32 | if alone { bits } else { i as u64 });
                        }
                        sort_words(&mut words, &mut spare, distinct)?;
                        if alone {
                            for (i, w) in words.iter().enumerate() {
                                write(outs[0].get(), d.size(), at(i), w & 0xffff_ffff);
                            }
                            continue;
                        }
                    } else if num_keys == 1 {
                        let mut keyed: Vec<(u64, u32)> = room(n)?;
                        keyed.extend((0..n).map(|i| (ordered(d, read(ins[0].get(), d.size(), at(i))), i as u32)));
                        if within && let Some(p) = threads::pool() {
                            p.install(|| keyed.par_sort_unstable());
                        } else {
                            keyed.sort_unstable();
                        }
                        words.extend(keyed.into_iter().map(|k| k.1 as u64));
                    } else {
                        let mut keys: Vec<u64> = room(n.saturating_mul(num_keys))?;
                        for i in 0..n {
                            keys.extend(
                                (0..num_keys).map(|k| ordered(dtypes[k], read(ins[k].get(), dtypes[k].size(), at(i)))),
                            );
                        }
                        let key = |i: u64| &keys[i as usize * num_keys..(i as usize + 1) * num_keys];
                        words.extend(0..n as u64);
                        words.sort_unstable_by(|a, b| key(*a).cmp(key(*b)).then(a.cmp(b)));
                    }
                    for (k, d) in dtypes.iter().enumerate() {
                        for (i, w) in words.iter().enumerate() {
                            let x = read(ins[k].get(), d.size(), at((w & 0xffff_ffff) as usize));
                            write(outs[k].get(), d.size(), at(i), x);
                        }
                    }
                }
            }
            Ok(())
        };
        if within {
            return body(0..rows);
        }
        threads::try_ranges(rows, parallel.then_some(&cost), bases.cancel, &body)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_kernel::Scalar;

    #[test]
    fn keys_compare_as_values_do() {
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let values = [f64::NEG_INFINITY, -3.0, -1e-7, 0.0, 1e-7, 2.0, f64::INFINITY, f64::NAN]
                .map(|x| ordered(d, Scalar::from_f64(d, x).bits));
            assert!(values.windows(2).all(|w| w[0] < w[1]), "{d}");
            assert_eq!(ordered(d, Scalar::from_f64(d, -0.0).bits), values[3]);
            assert_eq!(ordered(d, Scalar::from_f64(d, -f64::NAN).bits), values[7]);
        }
        for d in [DType::I8, DType::I64] {
            assert!(ordered(d, Scalar::from_i64(d, -1).bits) < ordered(d, Scalar::from_i64(d, 0).bits));
        }
    }
    #[test]
    fn radix_is_a_stable_sort() {
        let mut x = 7u64;
        let mut v: Vec<u64> = (0..5000)
            .map(|i| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (x >> 40) << 32 | i
            })
            .collect();
        let mut want = v.clone();
        want.sort_by_key(|x| x >> 32);
        radix(&mut v, &mut vec![]).unwrap();
        assert_eq!(v, want);
    }
}
