//! The Threefry-2x32 block cipher of 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11), and keys.
//!
//! Invariant: a key is two words; a block is a bijection of two words for each key.
//!
//! ```
//! use ferrax_prng::threefry2x32;
//! // The known-answer test that the paper's authors publish.
//! assert_eq!(threefry2x32([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
//! ```

use crate::Word;

/// Rotation distances of the eight-round cycle, in two groups of four.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// The parity word of the key schedule.
const PARITY: u32 = 0x1bd1_1bda;

/// The block of `counter` under `key`.
#[inline(always)]
pub fn threefry2x32<W: Word>(key: [W; 2], counter: [W; 2]) -> [W; 2] {
    let [k0, k1] = key;
    let k2 = k0.clone().xor(k1.clone()).xor(W::constant(PARITY));
    let schedule = [k0, k1, k2];
    let [x, y] = counter;
    let mut x = x.add(schedule[0].clone());
    let mut y = y.add(schedule[1].clone());
    // Five groups of four rounds; after group g (from 1) the key words g and g+1 and the number g are injected.
    for group in 1..=5_usize {
        for by in ROTATIONS[(group - 1) % 2] {
            x = x.add(y.clone());
            y = y.rotate_left(by).xor(x.clone());
        }
        x = x.add(schedule[group % 3].clone());
        y = y.add(schedule[(group + 1) % 3].clone()).add(W::constant(group as u32));
    }
    [x, y]
}

/// The key of an integer seed.
///
/// With `wide` (a 64-bit seed, as under x64) the key is the seed's two halves, high first. Without, the seed is first
/// wrapped to 32 bits, and the first word is 0. A seed narrower than 32 bits is sign- or zero-extended by the caller
/// as its type says, and is never wide.
#[inline]
pub fn key_from_seed(seed: i64, wide: bool) -> [u32; 2] {
    [if wide { (seed >> 32) as u32 } else { 0 }, seed as u32]
}

/// The key that `data` selects below `key`; the same under both layouts.
#[inline(always)]
pub fn fold_in<W: Word>(key: [W; 2], data: W) -> [W; 2] {
    threefry2x32(key, [W::constant(0), data])
}
