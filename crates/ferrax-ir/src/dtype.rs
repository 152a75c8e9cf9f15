//! `Dtype`: the element types of values: the waist's dtypes, complex numbers, PRNG keys, and `float0`.
//!
//! INVARIANT: complex numbers and keys exist here only. Lowering turns a complex value into a pair of floats, and a key into a
//! trailing axis of raw words.
use ferrax_kernel::DType;
use ferrax_kernel::dtype::DTypeKind;
use std::fmt;

/// How a PRNG key is made and consumed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyImpl {
    /// threefry2x32: two 32-bit words.
    Fry,
    /// Bits by `rng_bit_generator`, keys from keys by threefry2x32: four 32-bit words, the state of the one and two keys of the other.
    Rbg,
    /// Keys from keys by `rng_bit_generator` too.
    UnsafeRbg,
}
impl KeyImpl {
    pub const ALL: [KeyImpl; 3] = [KeyImpl::Fry, KeyImpl::Rbg, KeyImpl::UnsafeRbg];
    pub fn tag(self) -> &'static str {
        match self {
            KeyImpl::Fry => "fry",
            KeyImpl::Rbg => "rbg",
            KeyImpl::UnsafeRbg => "urbg",
        }
    }
    /// JAX's name of the generator.
    pub fn name(self) -> &'static str {
        match self {
            KeyImpl::Fry => "threefry2x32",
            KeyImpl::Rbg => "rbg",
            KeyImpl::UnsafeRbg => "unsafe_rbg",
        }
    }
    /// The shape of one key's raw `u32` words.
    pub fn words(self) -> usize {
        match self {
            KeyImpl::Fry => 2,
            KeyImpl::Rbg | KeyImpl::UnsafeRbg => 4,
        }
    }
    pub fn from_tag(s: &str) -> Option<KeyImpl> {
        KeyImpl::ALL.into_iter().find(|k| k.tag() == s)
    }
    /// `key<fry>`, as dtypes are written.
    fn long(self) -> &'static str {
        match self {
            KeyImpl::Fry => "key<fry>",
            KeyImpl::Rbg => "key<rbg>",
            KeyImpl::UnsafeRbg => "key<urbg>",
        }
    }
    fn from_long(s: &str) -> Option<KeyImpl> {
        KeyImpl::from_tag(s.strip_prefix("key<")?.strip_suffix('>')?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dtype {
    Num(DType),
    C64,
    C128,
    Key(KeyImpl),
    /// The tangent of an integer: no information, one byte an element.
    Float0,
}

impl Dtype {
    pub const BOOL: Dtype = Dtype::Num(DType::Bool);
    pub const I8: Dtype = Dtype::Num(DType::I8);
    pub const I16: Dtype = Dtype::Num(DType::I16);
    pub const I32: Dtype = Dtype::Num(DType::I32);
    pub const I64: Dtype = Dtype::Num(DType::I64);
    pub const U8: Dtype = Dtype::Num(DType::U8);
    pub const U16: Dtype = Dtype::Num(DType::U16);
    pub const U32: Dtype = Dtype::Num(DType::U32);
    pub const U64: Dtype = Dtype::Num(DType::U64);
    pub const F16: Dtype = Dtype::Num(DType::F16);
    pub const BF16: Dtype = Dtype::Num(DType::BF16);
    pub const F32: Dtype = Dtype::Num(DType::F32);
    pub const F64: Dtype = Dtype::Num(DType::F64);
    pub const FRY: Dtype = Dtype::Key(KeyImpl::Fry);
    pub const RBG: Dtype = Dtype::Key(KeyImpl::Rbg);
    pub const URBG: Dtype = Dtype::Key(KeyImpl::UnsafeRbg);

    pub fn is_bool(self) -> bool {
        self == Dtype::BOOL
    }
    /// Signed or unsigned, not bool.
    pub fn is_int(self) -> bool {
        matches!(self, Dtype::Num(d) if d.is_int())
    }
    pub fn is_unsigned(self) -> bool {
        matches!(self, Dtype::Num(d) if d.kind() == DTypeKind::Uint)
    }
    pub fn is_float(self) -> bool {
        matches!(self, Dtype::Num(d) if d.is_float())
    }
    /// A float of less than 32 bits, of which devices must not round the terms of a sum.
    pub fn is_narrow_float(self) -> bool {
        self.is_float() && self.size() < 4
    }
    pub fn is_complex(self) -> bool {
        matches!(self, Dtype::C64 | Dtype::C128)
    }
    /// Float or complex: the dtypes that can be differentiated.
    pub fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }
    pub fn is_key(self) -> bool {
        matches!(self, Dtype::Key(_))
    }
    /// The dtype of the real part.
    pub fn real(self) -> Dtype {
        match self {
            Dtype::C64 => Dtype::F32,
            Dtype::C128 => Dtype::F64,
            d => d,
        }
    }
    /// The complex dtype with this one as its parts.
    pub fn complex(self) -> Dtype {
        match self {
            Dtype::F64 | Dtype::C128 => Dtype::C128,
            _ => Dtype::C64,
        }
    }
    /// The waist's dtype, where there is one.
    pub fn num(self) -> Option<DType> {
        match self {
            Dtype::Num(d) => Some(d),
            Dtype::Float0 => Some(DType::Bool),
            _ => None,
        }
    }
    /// Bytes an element takes once lowered.
    pub fn size(self) -> usize {
        match self {
            Dtype::Num(d) => d.size(),
            Dtype::C64 => 8,
            Dtype::C128 => 16,
            Dtype::Key(k) => 4 * k.words(),
            Dtype::Float0 => 1,
        }
    }
    /// Bits of an element that count.
    pub fn bits(self) -> usize {
        if let Dtype::Num(d) = self { d.bits() as usize } else { 8 * self.size() }
    }
    /// As programs print it: `f32`, `c64`, `key<fry>`.
    pub fn short(self) -> &'static str {
        match self {
            Dtype::Num(d) => d.short(),
            Dtype::C64 => "c64",
            Dtype::C128 => "c128",
            Dtype::Key(k) => k.long(),
            Dtype::Float0 => "float0",
        }
    }
    /// numpy's name, or JAX's where numpy has none.
    pub fn long(self) -> &'static str {
        match self {
            Dtype::Num(d) => d.long(),
            Dtype::C64 => "complex64",
            Dtype::C128 => "complex128",
            d => d.short(),
        }
    }
    pub fn from_short(s: &str) -> Option<Dtype> {
        match s {
            "c64" => Some(Dtype::C64),
            "c128" => Some(Dtype::C128),
            "float0" => Some(Dtype::Float0),
            s => KeyImpl::from_long(s).map(Dtype::Key).or_else(|| DType::from_short(s).map(Dtype::Num)),
        }
    }
    pub fn from_long(s: &str) -> Option<Dtype> {
        match s {
            "complex64" => Some(Dtype::C64),
            "complex128" => Some(Dtype::C128),
            "float0" => Some(Dtype::Float0),
            s => KeyImpl::from_long(s).map(Dtype::Key).or_else(|| DType::from_long(s).map(Dtype::Num)),
        }
    }
}
impl From<DType> for Dtype {
    fn from(d: DType) -> Dtype {
        Dtype::Num(d)
    }
}
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.short())
    }
}
