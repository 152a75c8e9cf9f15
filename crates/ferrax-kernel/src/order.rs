//! The order of a reduction, defined once. Every backend that promises the CPU's bits follows it.
//!
//! The reduced elements are numbered `0..n` by their row-major position within the reduced dimensions: a logical index, so the
//! order, and with it the bits, depend on nothing else (not on layout, threads, vector width or what the reduction is fused with).
//!
//! ```text
//!     reduce(e[0..n]):
//!         cut e into blocks of BLOCK consecutive elements
//!         in each block, lane j of LANES starts from the identity and takes e[j], e[j + LANES], e[j + 2 LANES], .. in turn
//!         then lanes are folded: for w in 8, 4, 2, 1: lane j takes lane j + w, for j < w
//!         one block: its lane 0 is the result; else reduce(the results of the blocks)
//! ```
//!
//! Accumulators have the lane dtype (f32 for 16-bit floats) and round to the element's dtype once, at the end.
//! A float result that is nan is the positive quiet nan without a payload, whichever nans were met: machines differ in which of two
//! operands' nans a sum or an extreme keeps, and compilers exchange operands.
//!
//! Combining with an accumulator that is still the identity changes no bits (none is ever -0 under Sum), so an implementation may
//! skip lanes that took no element.
//!
//! Running combinations have their own order. A running sum in sequence would carry the roundings of all elements before:
//!
//! ```text
//!     running(e[0..n]):
//!         cut e into blocks of RUN consecutive elements
//!         in each block, combine in turn: r[i] takes all elements of its block up to e[i]
//!         one block: r is the result
//!         else p = running(the last r of each block); block b > 0 has the results combine(p[b - 1], r[i])
//! ```
pub const LANES: usize = 16;
pub const BLOCK: usize = 1024;
/// The elements of a block of a running combination.
pub const RUN: usize = 64;
/// Levels of totals above the elements, at most: `RUN` to this power exceeds every count of blocks.
pub const RUN_LEVELS: usize = usize::BITS.div_ceil(RUN.ilog2()) as usize;

/// The definition above, literally.
pub fn reduce<T: Copy>(n: usize, at: &dyn Fn(usize) -> T, identity: T, combine: &dyn Fn(T, T) -> T) -> T {
    let block = |b: usize| {
        let mut lanes = [identity; LANES];
        for i in b * BLOCK..n.min((b + 1) * BLOCK) {
            let j = i % LANES;
            lanes[j] = combine(lanes[j], at(i));
        }
        let mut w = LANES / 2;
        while w > 0 {
            for j in 0..w {
                lanes[j] = combine(lanes[j], lanes[j + w]);
            }
            w /= 2;
        }
        lanes[0]
    };
    match n.div_ceil(BLOCK) {
        0 => identity,
        1 => block(0),
        m => {
            let parts: Vec<T> = (0..m).map(block).collect();
            reduce(m, &|i| parts[i], identity, combine)
        }
    }
}

/// The definition of running combinations, literally.
pub fn running<T: Copy, E>(e: &[T], combine: &dyn Fn(T, T) -> Result<T, E>) -> Result<Vec<T>, E> {
    let mut out = e.to_vec();
    for block in out.chunks_mut(RUN) {
        for i in 1..block.len() {
            block[i] = combine(block[i - 1], block[i])?;
        }
    }
    if e.len() > RUN {
        let totals: Vec<T> = out.chunks(RUN).map(|block| block[block.len() - 1]).collect();
        let before = running(&totals, combine)?;
        for (block, p) in out.chunks_mut(RUN).skip(1).zip(before) {
            for r in block {
                *r = combine(p, *r)?;
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_combinations_take_all_elements_before() {
        for n in [0, 1, 63, 64, 65, 128, 4096, 4097, 10_000] {
            let e: Vec<u64> = (0..n).map(|i| i * i + 1).collect();
            let sums = running(&e, &|a, b| Ok::<_, ()>(a + b)).unwrap_or_default();
            let mut sum = 0;
            let each = e.iter().map(|x| {
                sum += x;
                sum
            });
            assert_eq!(sums, each.collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_element_is_taken_once() {
        for n in [0, 1, 2, 15, 16, 17, 1023, 1024, 1025, 5000] {
            assert_eq!(reduce(n, &|i| i as u64 + 1, 0, &|a, b| a + b), (n * (n + 1) / 2) as u64);
        }
    }
}
