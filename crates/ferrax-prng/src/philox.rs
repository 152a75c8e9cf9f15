//! The Philox-4x32 block cipher of 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11).
//!
//! Invariant: a key is two words, a counter four, low ones first; a block is a bijection of four words for each key.
//!
//! ```
//! use ferrax_prng::philox4x32;
//! // Known-answer tests that the paper's authors publish.
//! assert_eq!(philox4x32([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
//! assert_eq!(philox4x32([!0; 2], [!0; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
//! ```

use crate::Word;

/// The factors of the counter's even words.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// The increments of the key's words from round to round: the golden ratio, and the root of 3 less
/// 1.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: u32 = 10;

/// The block of `counter` under `key`.
#[inline(always)]
pub fn philox4x32<W: Word>(key: [W; 2], counter: [W; 4]) -> [W; 4] {
    let mut block = counter;
    for round in 0..ROUNDS {
        let [k0, k1] = [0, 1].map(|i: usize| key[i].clone().add(W::constant(WEYL[i].wrapping_mul(round))));
        let [a, b, c, d] = block;
        let (low0, high0) = (a.clone().mul(MULTIPLIERS[0]), a.mul_high(MULTIPLIERS[0]));
        let (low1, high1) = (c.clone().mul(MULTIPLIERS[1]), c.mul_high(MULTIPLIERS[1]));
        block = [high1.xor(b).xor(k0), low1, high0.xor(d).xor(k1), low0];
    }
    block
}
