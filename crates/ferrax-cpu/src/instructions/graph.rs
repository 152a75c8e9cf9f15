//! A run of operations as a graph of vector values in SSA form.
//!
//! INVARIANT: values are in order of definition. A bool value is a mask: each element is all ones or all zeros.
use super::VectorSize;
use super::opcodes::{MemoryElement, Opcode, Site};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};

pub type VecValue = u32;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leaf {
    /// These bits in each element.
    Const(u64),
    /// The elements of operand k.
    At(u32),
    /// The elements of operand k, which are narrower than lanes.
    NarrowAt(u32),
    /// The first or the second vector of the pairs of operand k.
    PairAt(u32, bool),
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VecNode {
    Leaf(Leaf),
    /// `m` is read by blends and fused operations only, `a` by operations of two operands.
    Op {
        code: Opcode,
        a: VecValue,
        b: VecValue,
        m: VecValue,
    },
}
impl VecNode {
    /// The operands of an operation: three for a blend and for fused operations.
    pub fn operands(&self) -> SmallVec<[VecValue; 3]> {
        match *self {
            VecNode::Leaf(_) => SmallVec::new(),
            VecNode::Op { code, a, b, m } if code == Opcode::Blend || code.is_fused() => {
                SmallVec::from_slice(&[a, m, b])
            }
            VecNode::Op { code, a, b, .. } if code.is_binary() => SmallVec::from_slice(&[a, b]),
            VecNode::Op { b, .. } => SmallVec::from_slice(&[b]),
        }
    }
}
/// Of four values, the even ones, then the odd ones.
const EVENS_FIRST: u8 = 0b11_01_10_00;
/// The exponent's offset in 32-bit floats, less that in 16-bit ones.
const HALF_BIAS: u64 = 127 - 15;
/// The elements of a result in memory: lanes; their lower bits; or the nearest 16-bit floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredElement {
    Lane,
    Narrow,
    Half,
}
/// A result: its value, its operand, and the operand's elements.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub to: Site,
    pub value: VecValue,
    pub element: StoredElement,
}

#[derive(Default)]
pub struct VecGraph {
    pub wide: bool,
    pub vector: VectorSize,
    pub nodes: Vec<VecNode>,
    pub outputs: Vec<Written>,
    /// Open addressing: values by their nodes' hashes, one more than the value, 0 where empty.
    table: Vec<u32>,
}

/// A short hash: nodes are a few words, and there are thousands at most.
#[derive(Default)]
struct Hashed(u64);
impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 31
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(*b as u64));
    }
    fn write_u8(&mut self, x: u8) {
        self.write_u64(x as u64);
    }
    fn write_u32(&mut self, x: u32) {
        self.write_u64(x as u64);
    }
    fn write_u64(&mut self, x: u64) {
        self.0 = (self.0 ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }
    fn write_isize(&mut self, x: isize) {
        self.write_u64(x as u64);
    }
}
fn hash(n: &VecNode) -> usize {
    let mut h = Hashed::default();
    n.hash(&mut h);
    h.finish() as usize
}

impl VecGraph {
    pub fn new(wide: bool, vector: VectorSize) -> VecGraph {
        VecGraph { wide, vector, nodes: vec![], outputs: vec![], table: vec![0; 256] }
    }
    pub fn push(&mut self, n: VecNode) -> VecValue {
        if self.nodes.len() * 2 >= self.table.len() {
            let size = self.table.len() * 2;
            self.table.clear();
            self.table.resize(size, 0);
            for v in 0..self.nodes.len() {
                let at = self.find(&self.nodes[v]);
                self.table[at] = v as u32 + 1;
            }
        }
        let at = self.find(&n);
        if self.table[at] == 0 {
            self.nodes.push(n);
            self.table[at] = self.nodes.len() as u32;
        }
        self.table[at] - 1
    }
    /// The table position of the node's value, or the position where it would be inserted.
    fn find(&self, n: &VecNode) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash(n) & mask;
        while self.table[at] != 0 && self.nodes[self.table[at] as usize - 1] != *n {
            at = (at + 1) & mask;
        }
        at
    }
    /// The values of which these are made, themselves among them.
    pub fn needed(&self, values: &[VecValue]) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        values.iter().for_each(|v| needed[*v as usize] = true);
        for v in (0..needed.len()).rev().filter(|v| !matches!(self.nodes[*v], VecNode::Leaf(_))) {
            if needed[v] {
                self.nodes[v].operands().into_iter().for_each(|x| needed[x as usize] = true);
            }
        }
        needed
    }
    pub fn constant(&mut self, bits: u64) -> VecValue {
        self.push(VecNode::Leaf(Leaf::Const(if self.wide { bits } else { bits as u32 as u64 })))
    }
    pub fn known(&self, v: VecValue) -> Option<u64> {
        match self.nodes[v as usize] {
            VecNode::Leaf(Leaf::Const(c)) => Some(c),
            _ => None,
        }
    }
    fn ones(&self) -> u64 {
        if self.wide { u64::MAX } else { u32::MAX as u64 }
    }
    pub fn un(&mut self, code: Opcode, b: VecValue) -> VecValue {
        if let Some(c) = self.known(b) {
            let c32 = c as u32;
            let folded = match (code, self.wide) {
                (Opcode::Shl(n), true) => Some(c << n),
                (Opcode::Shr(n), true) => Some(c >> n),
                (Opcode::Shl(n), false) => Some((c32 << n) as u64),
                (Opcode::Shr(n), false) => Some((c32 >> n) as u64),
                (Opcode::Sar(n), false) => Some((c32 as i32 >> n) as u32 as u64),
                _ => None,
            };
            if let Some(c) = folded {
                return self.constant(c);
            }
        }
        self.push(VecNode::Op { code, a: b, b, m: b })
    }
    pub fn bin(&mut self, code: Opcode, a: VecValue, b: VecValue) -> VecValue {
        let (ones, x, y) = (self.ones(), self.known(a), self.known(b));
        match (code, x, y) {
            (Opcode::And, Some(x), Some(y)) => return self.constant(x & y),
            (Opcode::Or, Some(x), Some(y)) => return self.constant(x | y),
            (Opcode::Xor, Some(x), Some(y)) => return self.constant(x ^ y),
            (Opcode::IntAdd, Some(x), Some(y)) => return self.constant(x.wrapping_add(y)),
            (Opcode::IntSub, Some(x), Some(y)) => return self.constant(x.wrapping_sub(y)),
            (Opcode::And | Opcode::Or, Some(0), _) | (Opcode::And, _, Some(0)) => {
                let zero = code == Opcode::And;
                return if zero { self.constant(0) } else { b };
            }
            (Opcode::Or | Opcode::Xor | Opcode::IntAdd | Opcode::IntSub, _, Some(0)) => return a,
            (Opcode::Xor | Opcode::IntAdd, Some(0), _) => return b,
            (Opcode::And, Some(x), _) if x == ones => return b,
            (Opcode::And, _, Some(y)) if y == ones => return a,
            _ => (),
        }
        // A constant is the last operand, which can be in memory. Sums and products commute unless
        // both operands are nan.
        let number =
            x.is_some_and(|c| if self.wide { !f64::from_bits(c).is_nan() } else { !f32::from_bits(c as u32).is_nan() });
        let swaps = match code {
            Opcode::Add | Opcode::Mul => number && y.is_none(),
            _ => code.commutes() && (x.is_some() || y.is_none() && a > b),
        };
        let (a, b) = if swaps { (b, a) } else { (a, b) };
        self.push(VecNode::Op { code, a, b, m: a })
    }
    /// `m ? yes : no`; m is a mask.
    pub fn select(&mut self, m: VecValue, yes: VecValue, no: VecValue) -> VecValue {
        match (self.known(m), self.known(yes), self.known(no)) {
            (Some(0), ..) => no,
            (Some(_), ..) => yes,
            _ if yes == no => yes,
            (_, _, Some(0)) => self.bin(Opcode::And, m, yes),
            (_, Some(0), _) => self.push(VecNode::Op { code: Opcode::AndNot, a: m, b: no, m }),
            _ => self.push(VecNode::Op { code: Opcode::Blend, a: no, b: yes, m }),
        }
    }
    /// `a * m` and b, rounded once.
    pub fn fused(&mut self, code: Opcode, a: VecValue, m: VecValue, b: VecValue) -> VecValue {
        self.push(VecNode::Op { code, a, b, m })
    }
    pub fn not(&mut self, a: VecValue) -> VecValue {
        let ones = self.ones();
        let ones = self.constant(ones);
        self.bin(Opcode::Xor, a, ones)
    }
    /// `a > b` as signed integers.
    pub fn greater(&mut self, a: VecValue, b: VecValue) -> VecValue {
        self.push(VecNode::Op { code: Opcode::IntGt, a, b, m: a })
    }
    /// `a >> n` with the sign.
    pub fn sar(&mut self, a: VecValue, n: u8) -> VecValue {
        if !self.wide {
            return self.un(Opcode::Sar(n), a);
        }
        let (shifted, sign) = (self.un(Opcode::Shr(n), a), self.constant(1 << (63 - n)));
        let flipped = self.bin(Opcode::Xor, shifted, sign);
        self.bin(Opcode::IntSub, flipped, sign)
    }
    pub fn operand(&mut self, k: u32, element: MemoryElement) -> VecValue {
        match element {
            MemoryElement::Lane => return self.push(VecNode::Leaf(Leaf::At(k))),
            MemoryElement::Pair => return self.push(VecNode::Leaf(Leaf::PairAt(k, false))),
            _ => (),
        }
        let narrow = self.push(VecNode::Leaf(Leaf::NarrowAt(k)));
        match element {
            MemoryElement::Bool => {
                let zero = self.constant(0);
                self.greater(narrow, zero)
            }
            MemoryElement::Bf16 => self.un(Opcode::Shl(16), narrow),
            MemoryElement::F16 => self.of_half(narrow),
            _ => narrow,
        }
    }
    /// The number of each sign-extended half; of a nan the same payload, as no instruction gives it.
    fn of_half(&mut self, half: VecValue) -> VecValue {
        let [digits, least, bias, special, sign, quantum] =
            [0x0fff_e000, 1 << 23, HALF_BIAS << 23, 0x0f7f_ffff, 1 << 31, (HALF_BIAS + 1) << 23]
                .map(|c| self.constant(c));
        let moved = self.un(Opcode::Shl(13), half);
        let x = self.bin(Opcode::And, moved, digits);
        let number = self.bin(Opcode::IntAdd, x, bias);
        let is_special = self.greater(x, special);
        let more = self.bin(Opcode::And, is_special, bias);
        let number = self.bin(Opcode::IntAdd, number, more);
        // below the least normal number, digits count units in the last place of 2^-14
        let is_small = self.greater(least, x);
        let counted = self.bin(Opcode::IntAdd, x, quantum);
        let small = self.bin(Opcode::Sub, counted, quantum);
        let number = self.select(is_small, small, number);
        let sign = self.bin(Opcode::And, half, sign);
        self.bin(Opcode::Or, number, sign)
    }
    /// Values that were rounded to halves and widened again.
    fn rounded_half(&self, v: VecValue) -> Option<VecValue> {
        let VecNode::Op { code: Opcode::FromHalf, b: half, .. } = self.nodes[v as usize] else { return None };
        let VecNode::Op { code: Opcode::ToHalf, b, .. } = self.nodes[half as usize] else { return None };
        Some(b)
    }
    /// The half of each number that is one.
    fn to_half(&mut self, v: VecValue) -> VecValue {
        let [digits, least, bias, special, quantum] =
            [0x7fff_ffff, (HALF_BIAS + 1) << 23, HALF_BIAS << 10, 0x477f_ffff, 0x3f00_0000].map(|c| self.constant(c));
        let x = self.bin(Opcode::And, v, digits);
        let shifted = self.un(Opcode::Shr(13), x);
        let number = self.bin(Opcode::IntSub, shifted, bias);
        let is_special = self.greater(x, special);
        let more = self.bin(Opcode::And, is_special, bias);
        let number = self.bin(Opcode::IntSub, number, more);
        let is_small = self.greater(least, x);
        let counted = self.bin(Opcode::Add, x, quantum);
        let small = self.bin(Opcode::IntSub, counted, quantum);
        let number = self.select(is_small, small, number);
        let sign = self.bin(Opcode::Xor, v, x);
        let sign = self.un(Opcode::Shr(16), sign);
        self.bin(Opcode::Or, number, sign)
    }
    /// The first elements of an operand's pairs, or the second ones.
    pub fn plane(&mut self, pairs: VecValue, second: bool) -> VecValue {
        let VecNode::Leaf(Leaf::PairAt(k, _)) = self.nodes[pairs as usize] else { unreachable!("pairs are operands") };
        let rest = self.push(VecNode::Leaf(Leaf::PairAt(k, true)));
        let unpack = match (self.wide, second) {
            (false, false) => Opcode::Shuffle(0b10_00_10_00),
            (false, true) => Opcode::Shuffle(0b11_01_11_01),
            (true, false) => Opcode::UnpackLow,
            (true, true) => Opcode::UnpackHigh,
        };
        // of each 128 bits of both vectors half: in turn, of which the first vector's go first
        let mixed = self.push(VecNode::Op { code: unpack, a: pairs, b: rest, m: pairs });
        let quads = self.un(Opcode::Quads(EVENS_FIRST), mixed);
        match self.vector {
            VectorSize::Ymm => quads,
            VectorSize::Zmm => {
                self.push(VecNode::Op { code: Opcode::TurnQuarters(EVENS_FIRST), a: quads, b: quads, m: quads })
            }
        }
    }
    /// Two values to be written in turn.
    pub fn pair(&mut self, a: VecValue, b: VecValue) -> VecValue {
        self.push(VecNode::Op { code: Opcode::Pair, a, b, m: a })
    }
    fn write_pairs(&mut self, k: u32, pairs: VecValue) {
        let VecNode::Op { code: Opcode::Pair, a, b, .. } = self.nodes[pairs as usize] else {
            unreachable!("pairs are made by `pair`")
        };
        let of = |g: &mut VecGraph, code, a, b| g.push(VecNode::Op { code, a, b, m: a });
        // 128 bits of the result are in turn in these two
        let [low, high] = [Opcode::UnpackLow, Opcode::UnpackHigh].map(|code| of(self, code, a, b));
        for second in [false, true] {
            let value = match self.vector {
                VectorSize::Ymm => of(self, Opcode::Halves(if second { 0x31 } else { 0x20 }), low, high),
                VectorSize::Zmm => {
                    let from = if second { 0b11_10_11_10 } else { 0b01_00_01_00 };
                    let quarters = of(self, Opcode::TurnQuarters(from), low, high);
                    of(self, Opcode::TurnQuarters(EVENS_FIRST), quarters, quarters)
                }
            };
            self.outputs.push(Written { to: Site::PairAt(k, second), value, element: StoredElement::Lane });
        }
    }
    /// Writes a value; a mask to an operand as bytes of 0 and 1.
    pub fn output(&mut self, to: Site, value: VecValue, element: MemoryElement) {
        if let (MemoryElement::Pair, Site::At(k)) = (element, to) {
            return self.write_pairs(k, value);
        }
        let rounded = self.rounded_half(value).filter(|_| element == MemoryElement::F16);
        let value = match rounded {
            Some(of) => of,
            None if element == MemoryElement::Lane => value,
            None => self.narrowed(value, element),
        };
        let value = match self.nodes[value as usize] {
            VecNode::Leaf(Leaf::Const(_)) | VecNode::Op { .. } => value,
            // a copied operand is read before any result is written, as computed values are
            VecNode::Leaf(_) => self.bin(Opcode::Or, value, value),
        };
        let element = match element {
            MemoryElement::Lane => StoredElement::Lane,
            MemoryElement::F16 if rounded.is_some() => StoredElement::Half,
            _ => StoredElement::Narrow,
        };
        self.outputs.push(Written { to, value, element });
    }
    /// Lanes as a narrow element has them, packed where vectors are short.
    fn narrowed(&mut self, v: VecValue, element: MemoryElement) -> VecValue {
        let is_long = self.vector == VectorSize::Zmm; // narrowed as they are stored
        let bytes = element.bytes(4);
        let lanes = match element {
            MemoryElement::Bool => self.un(Opcode::Shr(if self.wide { 63 } else { 31 }), v),
            MemoryElement::Bf16 => self.un(Opcode::Shr(16), v),
            MemoryElement::F16 => self.to_half(v),
            _ if is_long => v,
            _ => {
                // packing saturates
                let low = self.constant((1 << (8 * bytes)) - 1);
                self.bin(Opcode::And, v, low)
            }
        };
        if is_long {
            return lanes;
        }
        let high = self.un(Opcode::High, lanes);
        let pair = |g: &mut VecGraph, code, a, b| g.push(VecNode::Op { code, a, b, m: a });
        let words = if self.wide {
            let low = pair(self, Opcode::Evens, lanes, high);
            pair(self, Opcode::Pack16, low, low)
        } else {
            pair(self, Opcode::Pack16, lanes, high)
        };
        if bytes == 2 { words } else { pair(self, Opcode::Pack8, words, words) }
    }
}

thread_local! {
    static GRAPH: RefCell<VecGraph> = RefCell::new(VecGraph::default());
}
/// The graph that is being recorded on this thread.
pub fn with<T>(f: impl FnOnce(&mut VecGraph) -> T) -> T {
    GRAPH.with(|g| f(&mut g.borrow_mut()))
}
pub fn begin(wide: bool, vector: VectorSize) {
    with(|g| *g = VecGraph::new(wide, vector));
}
pub fn end() -> VecGraph {
    with(std::mem::take)
}

pub fn leaf(l: Leaf) -> VecValue {
    with(|g| g.push(VecNode::Leaf(l)))
}

macro_rules! recorded {
    ($($name:ident($($x:ident: $T:ty),*);)*) => {$(
        /// The graph's of this thread.
        #[inline(never)] // the text of a function names hundreds of operations
        pub fn $name($($x: $T),*) -> VecValue {
            with(|g| g.$name($($x),*))
        }
    )*};
}
recorded! {
    constant(bits: u64);
    un(code: Opcode, b: VecValue);
    bin(code: Opcode, a: VecValue, b: VecValue);
    select(m: VecValue, yes: VecValue, no: VecValue);
    fused(code: Opcode, a: VecValue, m: VecValue, b: VecValue);
    not(a: VecValue);
    greater(a: VecValue, b: VecValue);
    sar(a: VecValue, n: u8);
    plane(pairs: VecValue, second: bool);
    pair(a: VecValue, b: VecValue);
}
