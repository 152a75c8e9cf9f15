//! Random numbers for generated tests: the same on every machine, from a seed that a failure prints.
//!
//! ```
//! let mut r = ferrax_testkit::rng::Rng(7);
//! assert!(r.below(10) < 10 && (-3..=3).contains(&r.within(-3, 3)));
//! ```

/// Marsaglia's xorshift with a nonzero state of 64 bits.
pub struct Rng(pub u64);
impl Rng {
    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
    pub fn within(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1) as usize) as i64
    }
    /// A multiple of 1/1000 below 1.
    pub fn unit(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }
    /// An element, if there is one.
    pub fn of<'a, T>(&mut self, x: &'a mut [T]) -> Option<&'a mut T> {
        let k = self.below(x.len());
        x.get_mut(k)
    }
}

/// The seeds of a generated test: `SEEDS=from..to`, or as many as each commit tries. The nightly run draws others.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let Ok(given) = std::env::var("SEEDS") else { return 0..usual };
    let bounds = given.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("SEEDS={given}: not from..to"))
}
