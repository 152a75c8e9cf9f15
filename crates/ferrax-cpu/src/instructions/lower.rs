//! Lowering: each call of a tile program, recorded as vector values.
//!
//! INVARIANT: a recorded call gives the bits of its block function (`kernels/scalar.rs`), element by element.
use super::VectorSize;
use super::graph::{self, Leaf, VecValue, bin as op, constant, not, select, un as op1, with};
use super::opcodes::{MemoryElement, Opcode};
use super::record::{EQ, LE, LT, NE, VecReal};
use ferrax_kernel::math::Real;
use ferrax_kernel::{Bin, DType, Scalar, Un, math};

/// The function of a call, where it can be recorded. Dtypes are those of the operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Function {
    Un(Un, DType),
    Bin(Bin, DType),
    /// The quotient of a 32-bit integer by this divisor, or the remainder.
    Divide {
        by: Scalar,
        rest: bool,
    },
    /// Between lanes of this many bytes.
    Select(usize),
    Convert(DType, DType),
    /// The same lanes.
    Copy(DType),
    /// A lane of 32 bits brought back to a value of a narrow dtype.
    Narrow(DType),
    /// Elements of a narrow dtype in memory, as lanes.
    Widen(DType),
    /// The first, or the second, elements of pairs in memory.
    Plane {
        of: DType,
        second: bool,
    },
    /// Two operands as pairs in memory.
    Interleave(DType),
    /// The nan that a reduction gives for any.
    Settle(DType),
    /// Of 32-bit words, by a constant; then exclusive or.
    Rotate,
    RotateXor,
}

/// The element types of vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneWidth {
    /// Only bools.
    Any,
    Narrow,
    Wide,
}
fn width(d: DType) -> LaneWidth {
    match d {
        DType::Bool => LaneWidth::Any,
        DType::I64 | DType::U64 | DType::F64 => LaneWidth::Wide,
        _ => LaneWidth::Narrow,
    }
}

/// How elements of a dtype lie in memory, if vectors can read and write them.
fn element(d: DType) -> Option<MemoryElement> {
    Some(match d {
        DType::Bool => MemoryElement::Bool,
        DType::I8 => MemoryElement::I8,
        DType::U8 => MemoryElement::U8,
        DType::I16 => MemoryElement::I16,
        DType::U16 => MemoryElement::U16,
        DType::BF16 => MemoryElement::Bf16,
        DType::F16 => MemoryElement::F16,
        d if d.size() >= 4 => MemoryElement::Lane,
        _ => return None,
    })
}

/// The dtype as which a function of a narrow one is recorded: that of its lanes, unless the function depends on the width.
fn recorded(d: DType, depends_on_width: bool) -> DType {
    if depends_on_width || d == DType::Bool { d } else { d.lane() }
}

impl Function {
    pub fn un(f: Un, d: DType) -> Function {
        Function::Un(f, recorded(d, matches!(f, Un::Popcnt | Un::Clz)))
    }
    /// The function of a call whose last operand is, or is not, a constant.
    pub fn bin(f: Bin, d: DType, last: Option<Scalar>) -> Function {
        let d = recorded(d, matches!(f, Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic | Bin::NextAfter));
        let last = last.filter(|by| by.dtype.is_int()).map(|by| Scalar::from_i64(d, by.to_i64()));
        let is_whole = matches!(d, DType::I32 | DType::U32 | DType::I64 | DType::U64);
        let is_quotient = matches!(f, Bin::Div | Bin::Rem) && is_whole;
        match last {
            Some(by) if is_quotient && !by.is_zero() => Function::Divide { by, rest: f == Bin::Rem },
            _ => Function::Bin(f, d),
        }
    }
    /// The width of its elements; none where it cannot be recorded.
    pub fn width(self) -> Option<LaneWidth> {
        let (is_there, width) = match self {
            Function::Un(f, d) => (un_is_there(f, d), width(d)),
            Function::Bin(f, d) => (bin_is_there(f, d), width(d)),
            Function::Divide { by, .. } => (true, width(by.dtype)),
            Function::Select(1) => (true, LaneWidth::Any),
            Function::Select(4) => (true, LaneWidth::Narrow),
            Function::Select(_) => (true, LaneWidth::Wide),
            Function::Convert(DType::Bool, to) => (convert_is_there(DType::Bool, to), width(to)),
            Function::Convert(from, to) => (convert_is_there(from, to), width(from)),
            Function::Copy(d) => (element(d).is_some(), width(d)),
            Function::Widen(d) => (element(d).is_some(), LaneWidth::Narrow),
            Function::Plane { of: d, .. } | Function::Interleave(d) => {
                (element(d) == Some(MemoryElement::Lane), width(d))
            }
            Function::Settle(d) => (matches!(d, DType::F32 | DType::F64), width(d)),
            Function::Narrow(_) => (true, LaneWidth::Narrow),
            Function::Rotate | Function::RotateXor => (true, LaneWidth::Narrow),
        };
        is_there.then_some(width)
    }
    /// Whether the operands, in order, and the result are bools.
    pub fn bools(self) -> ([bool; 3], bool) {
        let is_bool = |d: DType| d == DType::Bool;
        match self {
            Function::Un(f, d) => ([is_bool(d); 3], is_bool(d) || f == Un::IsFinite),
            Function::Bin(f, d) => ([is_bool(d); 3], is_bool(d) || f.is_comparison()),
            Function::Divide { .. }
            | Function::Settle(_)
            | Function::Narrow(_)
            | Function::Widen(_)
            | Function::Plane { .. }
            | Function::Interleave(_)
            | Function::Rotate
            | Function::RotateXor => ([false; 3], false),
            Function::Select(bytes) => ([true, bytes == 1, bytes == 1], bytes == 1),
            Function::Convert(from, to) => ([is_bool(from); 3], is_bool(to)),
            Function::Copy(d) => ([is_bool(d); 3], is_bool(d)),
        }
    }
    /// How the operands, in order, and the result lie in memory.
    pub fn elements(self) -> ([MemoryElement; 3], MemoryElement) {
        let of_bool = |is_bool| if is_bool { MemoryElement::Bool } else { MemoryElement::Lane };
        let (of, result) = self.bools();
        match self {
            Function::Widen(d) => ([element(d).unwrap_or(MemoryElement::Lane); 3], MemoryElement::Lane),
            Function::Plane { .. } => ([MemoryElement::Pair; 3], MemoryElement::Lane),
            Function::Interleave(_) => ([MemoryElement::Lane; 3], MemoryElement::Pair),
            Function::Copy(d) => ([of_bool(d == DType::Bool); 3], element(d).unwrap_or(MemoryElement::Lane)),
            _ => (of.map(of_bool), of_bool(result)),
        }
    }
    /// As texts of programs have it.
    pub fn text(self) -> String {
        match self {
            Function::Un(f, d) => format!("{}.{d}", f.name()),
            Function::Bin(f, d) => format!("{}.{d}", f.name()),
            Function::Divide { by, rest } => {
                format!("{}_by_constant.{}", if rest { "rem" } else { "div" }, by.dtype)
            }
            Function::Select(bytes) => format!("select.{bytes}"),
            Function::Convert(from, to) => format!("convert.{from}.{to}"),
            Function::Copy(d) => format!("copy.{d}"),
            Function::Narrow(d) => format!("narrow.{d}"),
            Function::Widen(d) => format!("widen.{d}"),
            Function::Plane { of, second } => format!("{}_of_pairs.{of}", if second { "second" } else { "first" }),
            Function::Interleave(d) => format!("interleave.{d}"),
            Function::Settle(d) => format!("one_nan.{d}"),
            Function::Rotate => "rotate".into(),
            Function::RotateXor => "rotate_xor".into(),
        }
    }
    /// How many operands it reads.
    pub fn operands(self) -> usize {
        match self {
            Function::Un(..)
            | Function::Divide { .. }
            | Function::Convert(..)
            | Function::Copy(_)
            | Function::Narrow(_)
            | Function::Widen(_)
            | Function::Plane { .. }
            | Function::Settle(_) => 1,
            Function::Bin(..) | Function::Interleave(_) | Function::Rotate => 2,
            Function::Select(_) | Function::RotateXor => 3,
        }
    }
    /// Whether it is of more than a few instructions, and compiled as well by a loop of its own.
    pub fn is_long(self) -> bool {
        match self {
            Function::Un(f, d) => d.is_float() && !is_simple(f),
            Function::Bin(f, _) => f == Bin::Atan2,
            _ => false,
        }
    }
    /// Whether it is a function of floats that can be recorded.
    pub fn is_recorded(self) -> bool {
        let numbers =
            matches!(self, Function::Un(_, DType::F32 | DType::F64) | Function::Bin(_, DType::F32 | DType::F64));
        numbers && self.width().is_some()
    }
    /// Its instructions over operands `At(0)`, `At(1)` and `At(2)`, and which value is the result.
    pub fn graph(self, wide: bool, vector: VectorSize) -> (graph::VecGraph, VecValue) {
        graph::begin(wide, vector);
        let result = self.record([0, 1, 2].map(|k| graph::leaf(Leaf::At(k))));
        (graph::end(), result)
    }
    /// Records it.
    pub fn record(self, [a, b, c]: [VecValue; 3]) -> VecValue {
        match self {
            Function::Un(f, DType::F32) => un_float::<false>(f, a),
            Function::Un(f, DType::F64) => un_float::<true>(f, a),
            Function::Un(f, d) => un_int(f, d, a),
            Function::Bin(f, d) => bin(f, d, a, b),
            Function::Divide { by, rest } => {
                let quotient = divide(by, a);
                if !rest {
                    return quotient;
                }
                let product = bin_int(Bin::Mul, by.dtype, quotient, constant(by.bits));
                op(Opcode::IntSub, a, product)
            }
            Function::Select(_) => select(a, b, c),
            Function::Convert(from, to) => convert(from, to, a),
            Function::Copy(_) | Function::Widen(_) => a,
            Function::Plane { second, .. } => graph::plane(a, second),
            Function::Interleave(_) => graph::pair(a, b),
            Function::Narrow(d) => narrow(d, a),
            Function::Settle(d) => {
                let nan = constant(Scalar::from_f64(d, f64::NAN).bits);
                select(op(Opcode::Compare(NE), a, a), nan, a)
            }
            Function::Rotate => rotate(a, b),
            Function::RotateXor => op(Opcode::Xor, rotate(a, c), b),
        }
    }
}

fn is_simple(f: Un) -> bool {
    use Un::*;
    matches!(f, Neg | Abs | Sign | Not | Floor | Ceil | RoundEven | RoundAway | Trunc | IsFinite | Sqrt | Rsqrt)
}
fn un_is_there(f: Un, d: DType) -> bool {
    use Un::*;
    match d {
        // Sines choose between two reductions by the values of a block. The other functions need
        // more live values than there are registers, and spills cost more than the loop gains.
        DType::F32 | DType::F64 => !matches!(f, Not | Popcnt | Clz | Sin | Cos | Tan | Lgamma | Digamma),
        DType::I32 | DType::U32 => matches!(f, Neg | Abs | Sign | Not | Popcnt | Clz),
        DType::I64 | DType::U64 => matches!(f, Un::Neg | Un::Abs | Un::Sign | Un::Not),
        DType::Bool => f == Un::Not,
        _ => matches!(f, Popcnt | Clz),
    }
}
fn bin_is_there(f: Bin, d: DType) -> bool {
    use Bin::*;
    match d {
        DType::F32 | DType::F64 => {
            !matches!(f, Rem | Pow | NextAfter | And | Or | Xor | Shl | ShrLogical | ShrArithmetic)
        }
        DType::I32 | DType::U32 => !matches!(f, Div | Rem | Pow | Atan2 | NextAfter),
        DType::I64 | DType::U64 => !matches!(f, Div | Rem | Pow | Atan2 | NextAfter),
        DType::Bool => !matches!(f, Sub | Div | Rem | Pow | Atan2 | NextAfter | Shl | ShrLogical | ShrArithmetic),
        _ => matches!(f, Shl | ShrLogical | ShrArithmetic),
    }
}
fn convert_is_there(from: DType, to: DType) -> bool {
    use DType::*;
    let is_narrow = |d: DType| matches!(d, I8 | U8 | I16 | U16);
    let is_32 = |d: DType| is_narrow(d) || matches!(d, I32 | U32);
    match (from, to) {
        (Bool, F32 | F64 | I64 | U64 | BF16 | F16) | (F32 | F64 | I64 | U64 | BF16 | F16, Bool) => true,
        (Bool, to) => is_32(to),
        (from, Bool) => is_32(from),
        (I64, U64) | (U64, I64) | (F32, I32) => true,
        (F32 | BF16 | F16, to) if is_narrow(to) => true,
        (BF16 | F16, I32) => true,
        (F32 | F16, BF16) | (F32 | BF16, F16) | (BF16 | F16, F32) => true,
        (from, F16) => is_narrow(from),
        (U32, to) => is_32(to),
        (from, F32 | BF16) => is_32(from),
        (from, to) => is_32(from) && is_32(to),
    }
}

fn rotate(a: VecValue, by: VecValue) -> VecValue {
    if let Some(n @ 1..32) = with(|g| g.known(by)) {
        return op(Opcode::Or, op1(Opcode::Shl(n as u8), a), op1(Opcode::Shr(32 - n as u8), a));
    }
    // by 0, the other shift is by the width, and gives 0
    let back = op(Opcode::IntSub, constant(32), by);
    op(Opcode::Or, op(Opcode::ShlBy, a, by), op(Opcode::ShrBy, a, back))
}

fn un_float<const WIDE: bool>(f: Un, a: VecValue) -> VecValue {
    let x = || VecReal::<WIDE>(a);
    let number = |n: f32| VecReal::<WIDE>::exact(n).0;
    let y = match f {
        Un::Neg => x().neg(),
        Un::Abs => x().abs(),
        Un::Sign => {
            let zero = constant(0);
            let one = select(op(Opcode::Compare(LT), zero, a), number(1.0), number(-1.0));
            // itself where it is zero or nan: where it is neither less nor greater
            let other = op(Opcode::Or, op(Opcode::Compare(EQ), a, zero), op(Opcode::Compare(NE), a, a));
            return select(other, a, one);
        }
        Un::Floor => return op1(Opcode::Round(1), a),
        Un::Ceil => return op1(Opcode::Round(2), a),
        Un::RoundEven => return op1(Opcode::Round(0), a),
        Un::Trunc => return op1(Opcode::Round(3), a),
        Un::RoundAway => {
            // away from zero by the greatest number below a half, then towards zero
            let half = VecReal::<WIDE>::constant(0.5_f32.next_down(), 0.5_f64.next_down());
            let sign = x().sign_bit();
            return op1(Opcode::Round(3), x().add(half.with_sign(sign)).0);
        }
        Un::IsFinite => return op(Opcode::Compare(LT), x().abs().0, number(f32::INFINITY)),
        Un::Sqrt => return op1(Opcode::Sqrt, a),
        Un::Rsqrt => return op(Opcode::Div, number(1.0), op1(Opcode::Sqrt, a)),
        Un::Cbrt => math::cbrt(x()),
        Un::Exp => math::exp(x()),
        Un::Exp2 => math::exp2(x()),
        Un::Expm1 => math::expm1(x()),
        Un::Log => math::log(x()),
        Un::Log1p => math::log1p(x()),
        Un::Asin => math::asin(x()),
        Un::Acos => math::acos(x()),
        Un::Atan => math::atan(x()),
        Un::Sinh => math::sinh(x()),
        Un::Cosh => math::cosh(x()),
        Un::Tanh => math::tanh(x()),
        Un::Asinh => math::asinh(x()),
        Un::Acosh => math::acosh(x()),
        Un::Atanh => math::atanh(x()),
        Un::Logistic => math::logistic(x()),
        Un::Erf => math::erf(x()),
        Un::Erfc => math::erfc(x()),
        Un::ErfInv => math::erf_inv(x()),
        _ => unreachable!("not recorded"),
    };
    y.0
}

fn un_int(f: Un, d: DType, a: VecValue) -> VecValue {
    let (zero, one) = (constant(0), constant(1));
    match (f, d) {
        (Un::Not, _) => not(a),
        (Un::Neg, _) => op(Opcode::IntSub, zero, a),
        (Un::Abs, DType::I32) => op1(Opcode::IntAbs, a),
        (Un::Abs, DType::I64) => select(graph::greater(zero, a), op(Opcode::IntSub, zero, a), a),
        (Un::Abs, _) => a,
        (Un::Sign, DType::I32) => op(Opcode::MinSigned, op(Opcode::MaxSigned, a, constant(u64::MAX)), one),
        (Un::Sign, DType::I64) => {
            op(Opcode::Or, graph::greater(zero, a), op(Opcode::And, graph::greater(a, zero), one))
        }
        (Un::Sign, DType::U64) => op(Opcode::AndNot, op(Opcode::IntEq, a, zero), one),
        (Un::Sign, _) => op(Opcode::MinUnsigned, a, one),
        (Un::Popcnt, _) => count(d, unsigned(d, a)),
        (Un::Clz, _) => leading_zeros(d, unsigned(d, a)),
        _ => unreachable!("not recorded"),
    }
}

/// The bits of an integer of up to 32 bits, without copies of its sign.
fn unsigned(d: DType, a: VecValue) -> VecValue {
    op(Opcode::And, a, constant((1 << d.bits()) - 1))
}
/// How many bits are set: of groups of 2, 4 and 8 bits, then in all.
fn count(d: DType, a: VecValue) -> VecValue {
    let shr = |x: VecValue, n: u8| op1(Opcode::Shr(n), x);
    let part = |x: VecValue, mask: u64| op(Opcode::And, x, constant(mask));
    let twos = op(Opcode::IntSub, a, part(shr(a, 1), 0x5555_5555));
    let fours = op(Opcode::IntAdd, part(twos, 0x3333_3333), part(shr(twos, 2), 0x3333_3333));
    let mut all = part(op(Opcode::IntAdd, fours, shr(fours, 4)), 0x0f0f_0f0f);
    for n in [8, 16].into_iter().filter(|n| *n < d.bits()) {
        all = op(Opcode::IntAdd, all, shr(all, n as u8));
    }
    part(all, 0x3f)
}
/// By the exponent of the number as a float, of which less than the greatest bit and the one below counts.
fn leading_zeros(d: DType, a: VecValue) -> VecValue {
    let bits = d.bits() as u64;
    let top = if bits < 32 { a } else { op(Opcode::AndNot, op1(Opcode::Shr(1), a), a) };
    let exponent = op1(Opcode::Shr(23), op1(Opcode::FromI32, top));
    let zeros = op(Opcode::MinSigned, op(Opcode::IntSub, constant(bits + 126), exponent), constant(bits));
    // a number with the top bit set is negative, and so is its float
    if bits < 32 { zeros } else { op(Opcode::MaxSigned, zeros, constant(0)) }
}

fn bin(f: Bin, d: DType, a: VecValue, b: VecValue) -> VecValue {
    match d {
        DType::F32 => bin_float::<false>(f, a, b),
        DType::F64 => bin_float::<true>(f, a, b),
        DType::Bool => bin_bool(f, a, b),
        _ => bin_int(f, d, a, b),
    }
}

fn bin_float<const WIDE: bool>(f: Bin, a: VecValue, b: VecValue) -> VecValue {
    let (x, y) = (VecReal::<WIDE>(a), VecReal::<WIDE>(b));
    let compare = |p: u8, a: VecValue, b: VecValue| op(Opcode::Compare(p), a, b);
    match f {
        Bin::Add => op(Opcode::Add, a, b),
        Bin::Sub => op(Opcode::Sub, a, b),
        Bin::Mul => op(Opcode::Mul, a, b),
        Bin::Div => op(Opcode::Div, a, b),
        // nan if either is; of equals, zeros among them, the bits of both
        Bin::Max | Bin::Min => {
            // the machine's gives the second where they are equal, or one is nan
            let y = if f == Bin::Max {
                op(Opcode::And, op(Opcode::Max, a, b), op(Opcode::Or, compare(NE, a, b), a))
            } else {
                op(Opcode::Or, op(Opcode::Min, a, b), op(Opcode::And, compare(EQ, a, b), a))
            };
            select(compare(NE, a, a), a, y)
        }
        Bin::Atan2 => math::atan2(x, y).0,
        Bin::Eq => compare(EQ, a, b),
        Bin::Ne => compare(NE, a, b),
        Bin::Lt => compare(LT, a, b),
        Bin::Le => compare(LE, a, b),
        Bin::Gt => compare(LT, b, a),
        Bin::Ge => compare(LE, b, a),
        _ => unreachable!("not recorded"),
    }
}

fn bin_bool(f: Bin, a: VecValue, b: VecValue) -> VecValue {
    match f {
        Bin::Add | Bin::Or | Bin::Max => op(Opcode::Or, a, b),
        Bin::Mul | Bin::And | Bin::Min => op(Opcode::And, a, b),
        Bin::Xor | Bin::Ne => op(Opcode::Xor, a, b),
        Bin::Eq => not(op(Opcode::Xor, a, b)),
        Bin::Lt => op(Opcode::And, not(a), b),
        Bin::Gt => op(Opcode::And, a, not(b)),
        Bin::Le => op(Opcode::Or, not(a), b),
        Bin::Ge => op(Opcode::Or, a, not(b)),
        _ => unreachable!("not recorded"),
    }
}

fn bin_int(f: Bin, d: DType, a: VecValue, b: VecValue) -> VecValue {
    let (signed, wide) = (d.is_signed(), d.size() == 8);
    let greater = |a: VecValue, b: VecValue| {
        // unsigned numbers with the top bit flipped compare like signed ones
        let top = constant(1 << if wide { 63 } else { 31 });
        let turn = |x: VecValue| if signed { x } else { op(Opcode::Xor, x, top) };
        let (a, b) = (turn(a), turn(b));
        graph::greater(a, b)
    };
    match f {
        Bin::Add => op(Opcode::IntAdd, a, b),
        Bin::Sub => op(Opcode::IntSub, a, b),
        Bin::Mul if wide => product_of_wide(a, b),
        Bin::Mul => op(Opcode::IntMul, a, b),
        Bin::Max if wide => select(greater(a, b), a, b),
        Bin::Min if wide => select(greater(b, a), a, b),
        Bin::Max => op(if signed { Opcode::MaxSigned } else { Opcode::MaxUnsigned }, a, b),
        Bin::Min => op(if signed { Opcode::MinSigned } else { Opcode::MinUnsigned }, a, b),
        Bin::And => op(Opcode::And, a, b),
        Bin::Or => op(Opcode::Or, a, b),
        Bin::Xor => op(Opcode::Xor, a, b),
        // by the width or more: the machine's shifts give the required result
        Bin::Shl => op(Opcode::ShlBy, a, b),
        Bin::ShrLogical if wide => op(Opcode::ShrBy, a, b),
        Bin::ShrLogical => op(Opcode::ShrBy, unsigned(d, a), b),
        Bin::ShrArithmetic if wide => {
            // a logical shift of a number that is not negative, complemented if it was negative
            let negative = graph::greater(constant(0), a);
            op(Opcode::Xor, op(Opcode::ShrBy, op(Opcode::Xor, a, negative), b), negative)
        }
        Bin::ShrArithmetic if d == DType::U8 => op(Opcode::SarBy, narrow(DType::I8, a), b),
        Bin::ShrArithmetic if d == DType::U16 => op(Opcode::SarBy, narrow(DType::I16, a), b),
        Bin::ShrArithmetic => op(Opcode::SarBy, a, b),
        Bin::Eq => op(Opcode::IntEq, a, b),
        Bin::Ne => not(op(Opcode::IntEq, a, b)),
        Bin::Gt => greater(a, b),
        Bin::Lt => greater(b, a),
        Bin::Ge => not(greater(b, a)),
        Bin::Le => not(greater(a, b)),
        _ => unreachable!("not recorded"),
    }
}

/// The lower 64 bits of a product of 64 bits each, from products of their halves.
///
/// ```text
///     low a * low b  +  (high a * low b + low a * high b) << 32
/// ```
fn product_of_wide(a: VecValue, b: VecValue) -> VecValue {
    let high = |x: VecValue| match with(|g| g.known(x)) {
        Some(c) => constant(c >> 32),
        None => op1(Opcode::Shr(32), x),
    };
    let product = |x: VecValue, y: VecValue| match [x, y].map(|x| with(|g| g.known(x))) {
        [Some(0), _] | [_, Some(0)] => constant(0),
        _ => op(Opcode::MulEvensUnsigned, x, y),
    };
    let crossed = op(Opcode::IntAdd, product(high(a), b), product(a, high(b)));
    op(Opcode::IntAdd, product(a, b), op1(Opcode::Shl(32), crossed))
}

/// The upper half of the product of words.
fn high_product(signed: bool, a: VecValue, by: u32) -> VecValue {
    let by = constant(by as u64);
    let times = |a: VecValue| op(if signed { Opcode::MulEvens } else { Opcode::MulEvensUnsigned }, a, by);
    let (even, odd) = (times(a), times(op1(Opcode::OddsDown, a)));
    op(Opcode::Odds, op1(Opcode::OddsDown, even), odd)
}
/// The same of 64 bits, from products of their halves.
fn high_product_of_wide(signed: bool, a: VecValue, by: u64) -> VecValue {
    let [low, high] = [by & 0xffff_ffff, by >> 32].map(constant);
    let times = |x: VecValue, y: VecValue| op(Opcode::MulEvensUnsigned, x, y);
    let add = |x: VecValue, y: VecValue| op(Opcode::IntAdd, x, y);
    let shr = |x: VecValue| op1(Opcode::Shr(32), x);
    let upper = shr(a);
    let first = add(times(upper, low), shr(times(a, low)));
    let second = add(times(a, high), op(Opcode::And, first, constant(0xffff_ffff)));
    let product = add(times(upper, high), add(shr(first), shr(second)));
    if !signed {
        return product;
    }
    // a factor below zero is its bits less 2^64
    let less = op(Opcode::IntSub, product, op(Opcode::And, graph::sar(a, 63), constant(by)));
    if by >> 63 == 1 { op(Opcode::IntSub, less, a) } else { less }
}
/// Towards zero, as a product with the reciprocal: Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
fn divide(by: Scalar, a: VecValue) -> VecValue {
    let bits = by.dtype.bits();
    let shr = |x: VecValue, n: u32| if n == 0 { x } else { op1(Opcode::Shr(n as u8), x) };
    let sign = |x: VecValue| op1(Opcode::Shr(bits as u8 - 1), x);
    let high = |signed: bool, by: u128| match bits {
        32 => high_product(signed, a, by as u32),
        _ => high_product_of_wide(signed, a, by as u64),
    };
    let is_signed = by.dtype.is_signed();
    let divisor = u128::from(if is_signed { by.to_i64().unsigned_abs() } else { by.bits });
    let l = 128 - (divisor - 1).leading_zeros(); // 2^l is not less than it
    if !is_signed {
        if divisor.is_power_of_two() {
            return shr(a, l);
        }
        // the reciprocal has a bit more than a word; its top bit contributes a itself
        let reciprocal = (1 << bits) * ((1 << l) - divisor) / divisor + 1;
        let high = high(false, reciprocal);
        let half = shr(op(Opcode::IntSub, a, high), 1);
        return shr(op(Opcode::IntAdd, half, high), l - 1);
    }
    let positive = if divisor == 1 {
        a
    } else if divisor.is_power_of_two() {
        // numbers below zero go up to the next multiple
        let below = shr(graph::sar(a, bits as u8 - 1), bits - l);
        graph::sar(op(Opcode::IntAdd, a, below), l as u8)
    } else {
        // as a signed word it is less by 2^bits, which adding a compensates
        let reciprocal = (1 << (bits - 1 + l)) / divisor + 1;
        let quotient = graph::sar(op(Opcode::IntAdd, a, high(true, reciprocal)), l as u8 - 1);
        op(Opcode::IntAdd, quotient, sign(a))
    };
    if by.to_i64() < 0 { op(Opcode::IntSub, constant(0), positive) } else { positive }
}

/// Brings a lane back to a value of a narrow dtype.
fn narrow(d: DType, a: VecValue) -> VecValue {
    let bits = d.bits() as u8;
    match d {
        DType::U8 | DType::U16 => op(Opcode::And, a, constant((1 << bits) - 1)),
        DType::I8 | DType::I16 => graph::sar(op1(Opcode::Shl(32 - bits), a), 32 - bits),
        DType::F16 => op1(Opcode::FromHalf, op1(Opcode::ToHalf, a)),
        _ => {
            // to the nearest, of two the even one; a nan stays one
            let odd = op(Opcode::And, op1(Opcode::Shr(16), a), constant(1));
            let sum = op(Opcode::IntAdd, a, op(Opcode::IntAdd, odd, constant(0x7fff)));
            let quiet = op(Opcode::Or, a, constant(0x40_0000));
            let rounded = select(op(Opcode::Compare(NE), a, a), quiet, sum);
            op(Opcode::And, rounded, constant(0xffff_0000))
        }
    }
}
fn convert(from: DType, to: DType, a: VecValue) -> VecValue {
    let is_narrow = |d: DType| d.is_int() && d.size() < 4;
    let of_floats = matches!(from, DType::F32 | DType::BF16 | DType::F16);
    match to {
        DType::F16 if of_floats && from != to => return narrow(to, a),
        DType::BF16 | DType::F16 if from == to => return a,
        DType::BF16 => return narrow(to, convert(from, DType::F32, a)),
        DType::F16 if from.size() == 1 => return convert(from, DType::F32, a),
        DType::F16 => return narrow(to, convert(from, DType::F32, a)),
        _ => (),
    }
    if is_narrow(to) && of_floats {
        // what does not fit gives the nearest that does; nan gives 0
        let [least, greatest] = [to.least(), to.greatest()].map(|x| constant((x as f32).to_bits() as u64));
        let near = op(Opcode::Max, op(Opcode::Min, a, greatest), least);
        return op(Opcode::And, op(Opcode::Compare(EQ), a, a), op1(Opcode::ToI32, near));
    }
    if is_narrow(to) && from != DType::Bool {
        return if from == to { a } else { narrow(to, a) };
    }
    let (from, to) = (recorded(from, false), recorded(to, false));
    let one = match to {
        DType::F32 => 1f32.to_bits() as u64,
        DType::F64 => 1f64.to_bits(),
        _ => 1,
    };
    match (from, to) {
        (DType::Bool, _) => op(Opcode::And, a, constant(one)),
        (DType::F32 | DType::F64, DType::Bool) => op(Opcode::Compare(NE), a, constant(0)),
        (_, DType::Bool) => not(op(Opcode::IntEq, a, constant(0))),
        (DType::I32, DType::F32) => op1(Opcode::FromI32, a),
        // of 16 bits at most
        (DType::U32, DType::F32) => op1(Opcode::FromI32, a),
        (DType::F32, DType::I32) => {
            // a number that is too large gives the least integer and must give the greatest; nan
            // gives 0
            let large = op(Opcode::Compare(LE), constant(2147483648f32.to_bits() as u64), a);
            let y = select(large, constant(i32::MAX as u64), op1(Opcode::ToI32, a));
            op(Opcode::And, op(Opcode::Compare(EQ), a, a), y)
        }
        _ => a,
    }
}
