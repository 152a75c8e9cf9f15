//! Floats of at most 8 bits: the value of a code, and the code nearest to a value.
/// The meaning of the uppermost codes of a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topmost {
    /// The greatest exponent is inf and nans.
    Ieee,
    /// All ones is nan; there is no inf.
    AllOnes,
    /// The sign alone is nan; there is no inf, and one zero.
    LoneSign,
    /// Neither inf nor nan: too large a value becomes the greatest, nan becomes -0.
    Finite,
    /// No sign, no zero, no mantissa: all ones is nan, which all values that are not positive or too large become.
    Power,
}

/// A float of 8 bits or fewer: sign, exponent, mantissa. The value is `1.mantissa * 2^(exponent - bias)`, below exponent 1 `0.mantissa * 2^(1 - bias)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Minifloat {
    pub exponent: u32,
    pub mantissa: u32,
    pub bias: i32,
    pub special: Topmost,
}

impl Minifloat {
    /// The sign bit; the lower bits are the magnitude.
    pub fn sign(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }
    /// The code of the greatest finite magnitude.
    pub fn greatest(self) -> u32 {
        match self.special {
            Topmost::Ieee => self.infinite() - 1,
            Topmost::AllOnes | Topmost::Power => self.sign() - 2,
            Topmost::LoneSign | Topmost::Finite => self.sign() - 1,
        }
    }
    /// The code of inf, where there is one.
    pub fn infinite(self) -> u32 {
        self.sign() - (1 << self.mantissa)
    }
    /// The code of the least or greatest value, inf among them.
    pub fn extreme(self, least: bool) -> u32 {
        match self.special {
            Topmost::Ieee => self.infinite() | if least { self.sign() } else { 0 },
            Topmost::Power if least => 0,
            _ => self.greatest() | if least { self.sign() } else { 0 },
        }
    }
    /// The value, which a double represents exactly.
    pub fn decode(self, bits: u8) -> f64 {
        let magnitude = bits as u32 & (self.sign() - 1);
        let sign = if bits as u32 & self.sign() == 0 || self.special == Topmost::Power { 1.0 } else { -1.0 };
        let nan = match self.special {
            Topmost::Ieee => magnitude > self.infinite(),
            Topmost::AllOnes | Topmost::Power => magnitude == self.sign() - 1,
            Topmost::LoneSign => bits as u32 == self.sign(),
            Topmost::Finite => false,
        };
        if nan {
            return f64::NAN;
        }
        if self.special == Topmost::Ieee && magnitude == self.infinite() {
            return sign * f64::INFINITY;
        }
        let (exponent, mantissa) = (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
        let subnormal = exponent == 0 && self.special != Topmost::Power;
        let implied = if subnormal { 0 } else { 1 << self.mantissa };
        let power = exponent.max(subnormal as u32) as i32 - self.bias - self.mantissa as i32;
        sign * (mantissa + implied) as f64 * 2f64.powi(power)
    }
    /// The nearest value, of two equally near the one whose last bit is 0; of powers of two the greater.
    pub fn encode(self, x: f64) -> u8 {
        let nan = match self.special {
            Topmost::Ieee => self.infinite() + (1 << self.mantissa >> 1),
            Topmost::AllOnes | Topmost::Power => self.sign() - 1,
            Topmost::LoneSign | Topmost::Finite => self.sign(),
        };
        if self.special == Topmost::Power {
            if x.is_nan() || x <= 0.0 {
                return nan as u8;
            }
            // 2^(1/2), in between, is not where rounding turns: 1.5 is, and goes up
            let power = (x.to_bits() >> 52) as i64 - 1023 + (x.to_bits() >> 51 & 1) as i64;
            return (power + self.bias as i64).clamp(0, nan as i64) as u8;
        }
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        if x.is_nan() {
            return if self.special == Topmost::Finite || self.special == Topmost::LoneSign {
                nan as u8
            } else {
                (nan | sign) as u8
            };
        }
        let least = 1 - self.bias;
        let power = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least);
        let quanta = (x.abs() * 2f64.powi(self.mantissa as i32 - power)).round_ties_even();
        // rounding up to the next power carries into the exponent
        let code = ((power - least) as f64) * (1 << self.mantissa) as f64 + quanta;
        let magnitude = if code <= self.greatest() as f64 {
            code as u32
        } else {
            match self.special {
                Topmost::Ieee => self.infinite(),
                Topmost::Finite => self.greatest(),
                Topmost::LoneSign => return nan as u8,
                _ => nan,
            }
        };
        if magnitude == 0 && self.special == Topmost::LoneSign { 0 } else { (magnitude | sign) as u8 }
    }
}
