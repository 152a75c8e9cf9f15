//! The numbers in a kernel's text. Sizes, offsets, strides and constants of maps over one dimension are words of immediates, so that all sizes share
//! a pipeline; other kernels have them as literals, which drivers need for what they divide by.
//!
//! INVARIANT: which numbers are words depends on the kernel's form alone: strides of 0 and 1 and offsets of 0 are literals.
use super::super::{WORDS, affine, clamp_i32, constant, guard, lane, word};
use ferrax_kernel::Scalar;
use ferrax_kernel::kernel::{Affine, Guard, Kernel, Node};
use std::cell::RefCell;

/// The words so far; none where all are literals.
#[derive(Default)]
pub struct Numbers(Option<RefCell<Vec<u32>>>);

impl Numbers {
    pub fn of(k: &Kernel) -> Numbers {
        let is_map = k.grid.len() <= 1 && !k.nodes.iter().any(|(_, n)| matches!(n, Node::Reduce { .. }));
        Numbers(is_map.then(|| RefCell::new(vec![k.grid.size() as u32])))
    }
    pub fn words(&self) -> Vec<u32> {
        self.0.as_ref().map_or(vec![], |words| words.borrow().clone())
    }
    /// The first number, how many elements there are, as `i32`.
    pub fn size(&self, size: usize) -> String {
        if self.0.is_some() { format!("bitcast<i32>({})", word(0)) } else { size.to_string() }
    }
    /// The next word, where there is one.
    fn next(&self, bits: u32) -> Option<String> {
        let mut words = self.0.as_ref()?.borrow_mut();
        (words.len() < WORDS).then(|| {
            words.push(bits);
            word(words.len() - 1)
        })
    }
    fn number(&self, n: i64) -> String {
        self.next(n as i32 as u32).map_or_else(|| format!("({n})"), |word| format!("bitcast<i32>({word})"))
    }
    pub fn affine(&self, a: &Affine) -> String {
        if self.0.is_none() {
            return affine(a);
        }
        let offset = if a.offset == 0 { "0".into() } else { self.number(a.offset) };
        match a.stride(0) {
            0 => offset,
            1 => format!("{offset} + c0"),
            n => format!("{offset} + c0 * {}", self.number(n)),
        }
    }
    pub fn guard(&self, g: &Guard) -> String {
        if self.0.is_none() {
            return guard(g);
        }
        let [lo, hi] = [g.lo, g.hi].map(|x| self.number(clamp_i32(x)));
        let at = self.affine(&g.at);
        format!("({at}) >= {lo} && ({at}) < {hi}")
    }
    /// A constant lane, opaque to the driver for floats.
    pub fn constant(&self, s: Scalar) -> String {
        let is_float = lane(s.dtype) == "f32";
        let bits = is_float.then(|| self.next((s.to_f64() as f32).to_bits())).flatten();
        bits.map_or_else(|| constant(s), |word| format!("bitcast<f32>({word})"))
    }
}
