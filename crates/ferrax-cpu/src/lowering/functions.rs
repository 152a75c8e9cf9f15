//! Scalar functions in a nest: instructions where they exist, else calls of block functions.
//!
//! INVARIANT: an operation gives the bits of its block function (`kernels/scalar.rs`).
use super::build::Builder;
use crate::instructions::Function;
use crate::kernels::block::BlockFn;
use crate::kernels::lane::Lane;
use crate::kernels::scalar;
use crate::nest::text::FunctionNames;
use crate::nest::{Callee, NestOp, NestValue, lane};
use crate::tier::Tier;
use ferrax_kernel::{Bin, DType, Scalar, Un};

/// A call is for one element; the bits of the tiers are the same.
pub const TIER: Tier = Tier::Portable;
/// The tier of a function that is called for one element: long ones take fused multiply-adds, for which the portable tier calls the C library.
pub fn tier_of(is_long: bool) -> Tier {
    if is_long { Tier::current() } else { TIER }
}

/// The function that is called where no instruction gives its bits.
fn callee_of(f: Bin, d: DType) -> Option<Callee> {
    let function = scalar::bin(f, d, tier_of(matches!(f, Bin::Pow | Bin::Atan2)))?;
    Some(Callee::new(function, Some(Function::Bin(f, d))))
}
fn callee_of_one(f: Un, d: DType) -> Option<Callee> {
    let what = Function::Un(f, d);
    Some(Callee::new(scalar::un(f, d, tier_of(what.is_long()))?, Some(what)))
}

/// The names of functions that nests call, in the text of a nest.
pub const NAMES: FunctionNames = FunctionNames {
    name: name_of,
    #[cfg(test)]
    function: named,
    #[cfg(test)]
    instruction: crate::native::decoded::named,
};

/// `sin.f32`, `pow.f64`, `convert.f32.i8`, `round.f32`, `bitcast.i8.u8.0`: the function that nests call for it.
fn named(name: &str) -> Option<Callee> {
    let parts: Vec<&str> = name.split('.').collect();
    let d = |k: usize| DType::from_short(parts.get(k)?);
    let f = match parts[0] {
        "convert" => scalar::convert(d(1)?, d(2)?, TIER),
        "round" => scalar::round(d(1)?, TIER),
        "bitcast" => *scalar::bitcast(d(1)?, d(2)?, TIER).get(parts.get(3)?.parse::<usize>().ok()?)?.as_ref()?,
        f => match (Un::from_name(f), Bin::from_name(f)) {
            (Some(f), _) => return callee_of_one(f, d(1)?),
            (_, Some(f)) => return callee_of(f, d(1)?),
            _ => return None,
        },
    };
    Some(Callee::new(f, None))
}
fn name_of(callee: Callee) -> String {
    // the lane of several dtypes has one function: the widest names it
    let of = |f: &str| DType::ALL.iter().rev().map(|d| format!("{f}.{}", d.short())).collect::<Vec<_>>();
    let scalars = Un::ALL.iter().map(|f| f.name()).chain(Bin::ALL.iter().map(|f| f.name())).flat_map(of);
    let pairs = of("convert").into_iter().chain(of("bitcast")).flat_map(|name| of(&name));
    let pairs = pairs.flat_map(|name| {
        let parts = if name.starts_with("bitcast") { 0..3 } else { 0..0 };
        parts.map(|k| format!("{name}.{k}")).chain([name.clone()]).collect::<Vec<_>>()
    });
    let mut all = scalars.chain(of("round")).chain(pairs);
    all.find(|name| named(name) == Some(callee)).unwrap_or_else(|| "unnamed".to_string())
}

impl Builder<'_, '_> {
    fn call(&mut self, f: BlockFn, d: DType, args: &[NestValue]) -> Option<NestValue> {
        self.called(Callee::new(f, None), d, args)
    }
    fn called(&mut self, f: Callee, d: DType, args: &[NestValue]) -> Option<NestValue> {
        self.emit(NestOp::Call(f, args.len() as u8), d, args)
    }
    /// A lane as a value of its dtype.
    pub fn wrapped(&mut self, v: NestValue, d: DType) -> Option<NestValue> {
        if d.size() < 4 && d != DType::Bool { self.emit(NestOp::Wrap, d, &[v]) } else { Some(v) }
    }
    /// A function of two numbers of dtype `d`, in its lane.
    pub fn apply(&mut self, f: Bin, d: DType, a: NestValue, b: NestValue) -> Option<NestValue> {
        use Bin::*;
        let result = if f.is_comparison() { DType::Bool } else { Lane::of(d).dtype() };
        let narrow = d.is_int() && d.size() < 4;
        let has_instruction = match lane(d) {
            DType::F32 | DType::F64 => matches!(f, Add | Sub | Mul | Div | Max | Min) || f.is_comparison(),
            DType::Bool => matches!(f, Add | Mul | Max | Min | And | Or | Xor) || f.is_comparison(),
            _ => match f {
                Shl | ShrLogical | ShrArithmetic | Div | Rem => !narrow,
                _ => matches!(f, Add | Sub | Mul | Max | Min | And | Or | Xor) || f.is_comparison(),
            },
        };
        if has_instruction {
            if matches!(f, Shl | ShrLogical | ShrArithmetic) || matches!(f, Div | Rem) && d.is_int() {
                self.nest.callees.insert((f, result), callee_of(f, d)?);
            }
            return self.emit(NestOp::Bin(f), result, &[a, b]);
        }
        self.called(callee_of(f, d)?, result, &[a, b])
    }
    pub fn unary(&mut self, f: Un, d: DType, to: DType, x: NestValue) -> Option<NestValue> {
        let lane = Lane::of(d).dtype();
        let bits = if lane.size() == 8 { u64::MAX } else { u32::MAX as u64 };
        let is_float = d.is_float();
        let has_instruction = {
            use Un::*;
            is_float && matches!(f, Neg | Abs | Floor | Ceil | RoundEven | Trunc | Sqrt | Rsqrt | IsFinite)
        };
        let v = match f {
            _ if has_instruction => self.emit(NestOp::Un(f), to, &[x])?,
            Un::Not if d == DType::Bool => self.emit(NestOp::Un(f), to, &[x])?,
            Un::Neg if d.is_int() => {
                let zero = self.constant(lane, 0)?;
                self.bin(Bin::Sub, lane, zero, x)?
            }
            Un::Abs if d.is_int() && d.is_signed() => {
                let zero = self.constant(lane, 0)?;
                let minus = self.bin(Bin::Sub, lane, zero, x)?;
                self.bin(Bin::Max, lane, x, minus)?
            }
            Un::Abs if d.is_int() => x,
            Un::Sign if d.is_int() => {
                let one = self.constant(lane, 1)?;
                let least = self.bin(Bin::Min, lane, x, one)?;
                if !d.is_signed() {
                    return Some(least);
                }
                let minus = self.constant(lane, bits)?;
                self.bin(Bin::Max, lane, least, minus)?
            }
            Un::Not if d.is_int() => {
                let ones = self.constant(lane, bits)?;
                self.bin(Bin::Xor, lane, x, ones)?
            }
            _ => self.called(callee_of_one(f, d)?, if to == DType::Bool { to } else { lane }, &[x])?,
        };
        if to == DType::Bool || scalar::is_exact(f, to) { Some(v) } else { self.wrapped(v, to) }
    }
    pub fn converted(&mut self, from: DType, to: DType, x: NestValue) -> Option<NestValue> {
        if from == to {
            return Some(x);
        }
        let is_whole = |d: DType| d.is_int() || d == DType::Bool;
        let has_instruction = match (from, to) {
            (a, b) if is_whole(a) && is_whole(b) => true,
            (DType::U64, _) => false,
            (a, b) if is_whole(a) && b.is_float() => true,
            (a, b) if a.is_float() && b.is_float() => true,
            (a, DType::Bool) => a.is_float(),
            _ => false,
        };
        if has_instruction {
            return self.emit(NestOp::Convert(from), to, &[x]);
        }
        self.call(scalar::convert(from, to, TIER), to, &[x])
    }
    pub fn bits(&mut self, from: DType, to: DType, x: NestValue) -> Option<NestValue> {
        if from.size() >= 4 {
            return self.emit(NestOp::Bits(from), to, &[x]);
        }
        let mut v = x;
        for f in scalar::bitcast(from, to, TIER).into_iter().flatten() {
            v = self.call(f, to, &[v])?;
        }
        Some(v)
    }
    pub fn rounded(&mut self, d: DType, x: NestValue, words: Scalar) -> Option<NestValue> {
        let words = self.constant(words.dtype, words.bits)?;
        self.call(scalar::round(d, TIER), d, &[x, words])
    }
}
