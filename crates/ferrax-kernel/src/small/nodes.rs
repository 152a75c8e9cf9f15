//! Small elements as nodes over bytes: their values, and the nearest elements to values.
use crate::dtype::{DType, Scalar, minifloat};
use crate::expr::{Bin, Un};
use crate::kernel::{Node, NodeId};
use crate::minifloat::{Minifloat, Topmost};

/// Nodes under construction.
#[derive(Default)]
pub struct Nodes(pub Vec<(DType, Node)>);

impl Nodes {
    pub fn push(&mut self, d: DType, n: Node) -> NodeId {
        self.0.push((d, n));
        self.0.len() as NodeId - 1
    }
    fn dtype(&self, n: NodeId) -> DType {
        self.0[n as usize].0
    }
    pub fn constant(&mut self, s: Scalar) -> NodeId {
        self.push(s.dtype, Node::Const(s))
    }
    pub fn word(&mut self, x: u32) -> NodeId {
        self.constant(Scalar::u32(x))
    }
    pub fn un(&mut self, f: Un, x: NodeId) -> NodeId {
        let d = if f == Un::IsFinite { DType::Bool } else { self.dtype(x) };
        self.push(d, Node::Un(f, x))
    }
    pub fn bin(&mut self, f: Bin, x: NodeId, y: NodeId) -> NodeId {
        let d = if f.is_comparison() { DType::Bool } else { self.dtype(x) };
        self.push(d, Node::Bin(f, x, y))
    }
    /// With a word.
    pub fn with(&mut self, f: Bin, x: NodeId, y: u32) -> NodeId {
        let y = self.word(y);
        self.bin(f, x, y)
    }
    pub fn select(&mut self, p: NodeId, t: NodeId, f: NodeId) -> NodeId {
        let d = self.dtype(t);
        self.push(d, Node::Select { p, t, f })
    }
    pub fn convert(&mut self, x: NodeId, to: DType) -> NodeId {
        if self.dtype(x) == to { x } else { self.push(to, Node::Convert(x)) }
    }
    pub fn bitcast(&mut self, x: NodeId, to: DType) -> NodeId {
        if self.dtype(x) == to { x } else { self.push(to, Node::Bitcast(x)) }
    }

    /// The value, in the dtype's lane, of the element in a byte.
    pub fn decode(&mut self, d: DType, byte: NodeId) -> NodeId {
        let word = self.convert(byte, DType::U32);
        match d {
            _ if d.is_float() => self.decode_float(minifloat(d), word),
            _ if d.is_signed() => {
                let (x, unused) = (self.bitcast(word, DType::I32), 32 - d.bits() as i32);
                let unused = self.constant(Scalar::i32(unused));
                let top = self.bin(Bin::Shl, x, unused);
                self.bin(Bin::ShrArithmetic, top, unused)
            }
            _ => self.with(Bin::And, word, (1 << d.bits()) - 1),
        }
    }
    fn decode_float(&mut self, m: Minifloat, word: NodeId) -> NodeId {
        let nan = self.word(f32::NAN.to_bits());
        if m.special == Topmost::Power {
            // of f32's exponent; below the least one it has a subnormal
            let normal = self.with(Bin::Shl, word, 23);
            let (is_least, is_nan) = (self.with(Bin::Eq, word, 0), self.with(Bin::Eq, word, 255));
            let least = self.word(1 << 22);
            let x = self.select(is_least, least, normal);
            let x = self.select(is_nan, nan, x);
            return self.bitcast(x, DType::F32);
        }
        let magnitude = self.with(Bin::And, word, m.sign() - 1);
        let quanta = self.convert(magnitude, DType::F32);
        let quantum = self.constant(Scalar::f32(2f32.powi(1 - m.bias - m.mantissa as i32)));
        let subnormal = self.bin(Bin::Mul, quanta, quantum);
        let subnormal = self.bitcast(subnormal, DType::U32);
        let placed = self.with(Bin::Shl, magnitude, 23 - m.mantissa);
        let normal = self.with(Bin::Add, placed, ((127 - m.bias) as u32) << 23);
        let is_small = self.with(Bin::Lt, magnitude, 1 << m.mantissa);
        let mut x = self.select(is_small, subnormal, normal);
        if m.special == Topmost::Ieee {
            let is_special = self.with(Bin::Ge, magnitude, m.infinite());
            // inf, or a nan that has its payload and is not a signalling one
            let inf = self.word(f32::INFINITY.to_bits());
            let is_nan = self.with(Bin::Gt, magnitude, m.infinite());
            let special = self.select(is_nan, nan, inf);
            x = self.select(is_special, special, x);
        }
        if m.special == Topmost::AllOnes {
            let is_nan = self.with(Bin::Eq, magnitude, m.sign() - 1);
            x = self.select(is_nan, nan, x);
        }
        let sign = self.with(Bin::And, word, m.sign());
        let sign = self.with(Bin::Shl, sign, 31 - m.sign().trailing_zeros());
        x = self.bin(Bin::Or, x, sign);
        if m.special == Topmost::LoneSign {
            let code = self.with(Bin::And, word, 2 * m.sign() - 1);
            let is_nan = self.with(Bin::Eq, code, m.sign());
            x = self.select(is_nan, nan, x);
        }
        self.bitcast(x, DType::F32)
    }

    /// The byte of the element nearest to a value of the dtype's lane; integers wrap.
    pub fn encode(&mut self, d: DType, x: NodeId) -> NodeId {
        let word = self.bitcast(x, DType::U32);
        let code = if d.is_float() {
            self.encode_float(minifloat(d), word)
        } else {
            self.with(Bin::And, word, (1 << d.bits()) - 1)
        };
        self.convert(code, DType::U8)
    }
    /// Of the bits of an f32.
    fn encode_float(&mut self, m: Minifloat, x: NodeId) -> NodeId {
        let a = self.with(Bin::And, x, 0x7fff_ffff);
        let is_nan = self.with(Bin::Gt, a, f32::INFINITY.to_bits());
        if m.special == Topmost::Power {
            // in subnormals half of the least exponent's value is one bit lower
            let half = self.word(1 << 22);
            let quarter = self.word(1 << 21);
            let is_least = self.with(Bin::Lt, a, 1 << 23);
            let half = self.select(is_least, quarter, half);
            let up = self.bin(Bin::Add, a, half);
            let code = self.with(Bin::ShrLogical, up, 23);
            let nan = self.word(255);
            let code = self.bin(Bin::Min, code, nan);
            // zero, and every value with a sign
            let before = self.with(Bin::Sub, x, 1);
            let positive = self.with(Bin::Lt, before, 0x7fff_ffff);
            let code = self.select(positive, code, nan);
            return self.select(is_nan, nan, code);
        }
        // rounded where the mantissa ends, ties to even
        let drop = 23 - m.mantissa;
        let odd = self.with(Bin::ShrLogical, a, drop);
        let odd = self.with(Bin::And, odd, 1);
        let up = self.with(Bin::Add, a, (1 << (drop - 1)) - 1);
        let up = self.bin(Bin::Add, up, odd);
        let normal = self.with(Bin::ShrLogical, up, drop);
        let normal = self.with(Bin::Sub, normal, ((127 - m.bias) as u32) << m.mantissa);
        // below that, an f32 whose last place is the quantum rounds as a sum does
        let power = 2f32.powi(1 - m.bias - m.mantissa as i32 + 23);
        let by = self.constant(Scalar::f32(power));
        let value = self.bitcast(a, DType::F32);
        let sum = self.bin(Bin::Add, value, by);
        let sum = self.bitcast(sum, DType::U32);
        let subnormal = self.with(Bin::Sub, sum, power.to_bits());
        let is_small = self.with(Bin::Lt, a, ((128 - m.bias) as u32) << 23);
        let code = self.select(is_small, subnormal, normal);
        let sign = self.with(Bin::ShrLogical, x, 31 - m.sign().trailing_zeros());
        let sign = self.with(Bin::And, sign, m.sign());
        let over = self.with(Bin::Gt, code, m.greatest());
        match m.special {
            Topmost::Ieee => {
                let (inf, nan) = (self.word(m.infinite()), self.word(m.infinite() + (1 << m.mantissa >> 1)));
                let code = self.select(over, inf, code);
                let code = self.select(is_nan, nan, code);
                self.bin(Bin::Or, code, sign)
            }
            Topmost::AllOnes | Topmost::Power => {
                let nan = self.word(m.sign() - 1);
                let code = self.select(over, nan, code);
                self.bin(Bin::Or, code, sign)
            }
            Topmost::LoneSign => {
                let (zero, nan) = (self.word(0), self.word(m.sign()));
                let is_zero = self.bin(Bin::Eq, code, zero);
                let signed = self.bin(Bin::Or, code, sign);
                let code = self.select(is_zero, zero, signed);
                self.select(over, nan, code)
            }
            Topmost::Finite => {
                let (greatest, zero) = (self.word(m.greatest()), self.word(m.sign()));
                let code = self.select(over, greatest, code);
                let code = self.bin(Bin::Or, code, sign);
                self.select(is_nan, zero, code)
            }
        }
    }
    /// The byte of the element next to that in `byte`, of value `a`, towards the value `b`.
    pub fn next_after(&mut self, d: DType, byte: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let m = minifloat(d);
        let word = self.convert(byte, DType::U32);
        let (none, one, sign) = (self.word(0), self.word(1), self.word(m.sign()));
        let zero = self.constant(Scalar::f32(0.0));
        let is_zero = self.bin(Bin::Eq, a, zero);
        // away from zero the code is one more
        let (rising, positive) = (self.bin(Bin::Lt, a, b), self.bin(Bin::Gt, a, zero));
        let away = self.bin(Bin::Eq, rising, positive);
        let signless = m.special == Topmost::Power;
        let magnitude = if signless { word } else { self.with(Bin::And, word, m.sign() - 1) };
        let (more, less) = (self.bin(Bin::Add, magnitude, one), self.bin(Bin::Sub, magnitude, one));
        let code = self.select(away, more, less);
        let code = self.select(is_zero, one, code);
        // a step beyond the last value is treated as rounding treats it
        let over = self.with(Bin::Gt, code, m.greatest());
        let beyond = Scalar::from_f64(d, f64::INFINITY).bits as u32;
        let least = if signless { none } else { self.word(beyond) };
        let most = self.word(beyond);
        let fell = self.select(away, most, least);
        let mut code = self.select(over, fell, code);
        if !signless {
            let side = self.select(is_zero, b, a);
            let negative = self.bin(Bin::Lt, side, zero);
            let sign = self.select(negative, sign, none);
            let signed = self.bin(Bin::Or, code, sign);
            let lone = self.bin(Bin::Eq, code, none);
            code = if m.special == Topmost::LoneSign { self.select(lone, none, signed) } else { signed };
        }
        let moved = self.convert(code, DType::U8);
        let to = self.encode(d, b);
        let same = self.bin(Bin::Eq, a, b);
        let moved = self.select(same, to, moved);
        let (a_is, b_is) = (self.bin(Bin::Eq, a, a), self.bin(Bin::Eq, b, b));
        let ordered = self.bin(Bin::And, a_is, b_is);
        let nan = self.constant(Scalar { dtype: DType::U8, bits: Scalar::from_f64(d, f64::NAN).bits });
        self.select(ordered, moved, nan)
    }
}
