//! Random numbers (SplitMix64).

pub struct Random(pub u64);
impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Less than n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    /// True once in n.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
/// 64 bits of some numbers.
pub fn hash(words: &[u64]) -> u64 {
    words.iter().fold(1, |h, w| Random(h ^ w.rotate_left(17)).next())
}
