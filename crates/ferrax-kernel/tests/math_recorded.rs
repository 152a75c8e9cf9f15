//! Every scalar function can be recorded: run once over lanes that only note what is done to them, it leaves a list of
//! statements in single assignment, and running that list gives the bits of the function itself.
//!
//! This is what a shader builder does with them, and it proves that no function looks at a lane's value.

use std::cell::RefCell;

use ferrax_kernel::math::{self, Int, Mask, Real};

/// One statement; operands are the numbers of earlier ones. Values are words, masks 0 or 1.
type Statement = Box<dyn Fn(&[u32]) -> u32>;

thread_local! {
    static STATEMENTS: RefCell<Vec<Statement>> = const { RefCell::new(Vec::new()) };
}

fn record(statement: impl Fn(&[u32]) -> u32 + 'static) -> usize {
    STATEMENTS.with_borrow_mut(|all| {
        all.push(Box::new(statement));
        all.len() - 1
    })
}

#[derive(Clone)]
struct Truth(usize);
#[derive(Clone)]
struct Word(usize);
#[derive(Clone)]
struct Float(usize);

/// How a lane's value is kept in a word.
trait Lane: Copy {
    fn read(word: u32) -> Self;
    fn write(self) -> u32;
}
impl Lane for bool {
    fn read(word: u32) -> bool {
        word != 0
    }
    fn write(self) -> u32 {
        self.into()
    }
}
impl Lane for i32 {
    fn read(word: u32) -> i32 {
        word as i32
    }
    fn write(self) -> u32 {
        self as u32
    }
}
impl Lane for f32 {
    fn read(word: u32) -> f32 {
        f32::from_bits(word)
    }
    fn write(self) -> u32 {
        self.to_bits()
    }
}

fn unary<A: Lane, B: Lane>(a: usize, f: impl Fn(A) -> B + 'static) -> usize {
    record(move |v| f(A::read(v[a])).write())
}
fn binary<A: Lane, B: Lane>(a: usize, b: usize, f: impl Fn(A, A) -> B + 'static) -> usize {
    record(move |v| f(A::read(v[a]), A::read(v[b])).write())
}
fn choose(mask: usize, yes: usize, no: usize) -> usize {
    record(move |v| if v[mask] != 0 { v[yes] } else { v[no] })
}

impl Mask for Truth {
    fn and(self, other: Truth) -> Truth {
        Truth(binary(self.0, other.0, |a: bool, b| a & b))
    }
    fn or(self, other: Truth) -> Truth {
        Truth(binary(self.0, other.0, |a: bool, b| a | b))
    }
    fn xor(self, other: Truth) -> Truth {
        Truth(binary(self.0, other.0, |a: bool, b| a ^ b))
    }
    fn not(self) -> Truth {
        Truth(unary(self.0, |a: bool| !a))
    }
}

impl Int for Word {
    type Mask = Truth;
    fn constant(value: i64) -> Word {
        Word(record(move |_| value as i32 as u32))
    }
    fn add(self, other: Word) -> Word {
        Word(binary(self.0, other.0, i32::wrapping_add))
    }
    fn sub(self, other: Word) -> Word {
        Word(binary(self.0, other.0, i32::wrapping_sub))
    }
    fn and(self, other: Word) -> Word {
        Word(binary(self.0, other.0, |a: i32, b| a & b))
    }
    fn or(self, other: Word) -> Word {
        Word(binary(self.0, other.0, |a: i32, b| a | b))
    }
    fn xor(self, other: Word) -> Word {
        Word(binary(self.0, other.0, |a: i32, b| a ^ b))
    }
    fn mul(self, other: Word) -> Word {
        Word(binary(self.0, other.0, i32::wrapping_mul))
    }
    fn mul_high_unsigned(self, other: Word) -> Word {
        // As a language without wide integers must: by halves.
        Word(binary(self.0, other.0, |a: i32, b: i32| {
            let (a, b) = (a as u32, b as u32);
            let (ah, al, bh, bl) = (a >> 16, a & 0xffff, b >> 16, b & 0xffff);
            let low = al * bl;
            let middle = ah * bl + (low >> 16);
            let other_middle = al * bh + (middle & 0xffff);
            (ah * bh + (middle >> 16) + (other_middle >> 16)) as i32
        }))
    }
    fn shl(self, by: u32) -> Word {
        Word(unary(self.0, move |a: i32| a << by))
    }
    fn shr(self, by: u32) -> Word {
        Word(unary(self.0, move |a: i32| a >> by))
    }
    fn shr_unsigned(self, by: u32) -> Word {
        Word(unary(self.0, move |a: i32| (a as u32 >> by) as i32))
    }
    fn shl_by(self, by: Word) -> Word {
        Word(binary(self.0, by.0, |a: i32, b| a.wrapping_shl(b as u32)))
    }
    fn shr_unsigned_by(self, by: Word) -> Word {
        Word(binary(self.0, by.0, |a: i32, b| (a as u32).wrapping_shr(b as u32) as i32))
    }
    fn eq(self, other: Word) -> Truth {
        Truth(binary(self.0, other.0, |a: i32, b| a == b))
    }
    fn lt(self, other: Word) -> Truth {
        Truth(binary(self.0, other.0, |a: i32, b| a < b))
    }
    fn select(mask: Truth, yes: Word, no: Word) -> Word {
        Word(choose(mask.0, yes.0, no.0))
    }
}

impl Real for Float {
    type Mask = Truth;
    type Int = Word;
    const WIDE: bool = false;
    fn constant(narrow: f32, _: f64) -> Float {
        Float(record(move |_| narrow.to_bits()))
    }
    fn from_bits(bits: Word) -> Float {
        Float(bits.0)
    }
    fn to_bits(self) -> Word {
        Word(self.0)
    }
    fn add(self, other: Float) -> Float {
        Float(binary(self.0, other.0, |a: f32, b| a + b))
    }
    fn sub(self, other: Float) -> Float {
        Float(binary(self.0, other.0, |a: f32, b| a - b))
    }
    fn mul(self, other: Float) -> Float {
        Float(binary(self.0, other.0, |a: f32, b| a * b))
    }
    fn div(self, other: Float) -> Float {
        Float(binary(self.0, other.0, |a: f32, b| a / b))
    }
    fn mul_add(self, by: Float, to: Float) -> Float {
        Float(record(move |v| f32::mul_add(f32::read(v[self.0]), f32::read(v[by.0]), f32::read(v[to.0])).write()))
    }
    fn sqrt(self) -> Float {
        Float(unary(self.0, f32::sqrt))
    }
    fn neg(self) -> Float {
        Float(unary(self.0, |a: f32| -a))
    }
    fn abs(self) -> Float {
        Float(unary(self.0, f32::abs))
    }
    fn lt(self, other: Float) -> Truth {
        Truth(binary(self.0, other.0, |a: f32, b| a < b))
    }
    fn le(self, other: Float) -> Truth {
        Truth(binary(self.0, other.0, |a: f32, b| a <= b))
    }
    fn eq(self, other: Float) -> Truth {
        Truth(binary(self.0, other.0, |a: f32, b| a == b))
    }
    fn select(mask: Truth, yes: Float, no: Float) -> Float {
        Float(choose(mask.0, yes.0, no.0))
    }
    fn round_small(self) -> (Float, Word) {
        let whole = Float(unary(self.0, f32::round_ties_even));
        let int = Word(unary(whole.0, |a: f32| a as i32));
        (whole, int)
    }
    fn round_product(self, by: Float) -> (Float, Word) {
        let whole = Float(binary(self.0, by.0, |a: f32, b| a.round_product(b).0));
        let int = Word(unary(whole.0, |a: f32| a as i32));
        (whole, int)
    }
    fn from_small(int: Word) -> Float {
        Float(unary(int.0, |a: i32| a as f32))
    }
    fn two_over_pi_word(index: Word) -> Word {
        Word(unary(index.0, <f32 as Real>::two_over_pi_word))
    }
}

/// The statements of a function of as many arguments as given, and the one that is its result.
fn statements<const N: usize>(f: impl Fn([Float; N]) -> Float) -> (Vec<Statement>, usize) {
    STATEMENTS.with_borrow_mut(Vec::clear);
    // The arguments come first; their values are given when the list is run.
    let args = std::array::from_fn(|_| Float(record(|_| unreachable!("an argument is not computed"))));
    let result = f(args).0;
    (STATEMENTS.take(), result)
}

fn run<const N: usize>((statements, result): &(Vec<Statement>, usize), args: [f32; N]) -> f32 {
    let mut values: Vec<u32> = args.iter().map(|a| a.to_bits()).collect();
    for statement in &statements[N..] {
        values.push(statement(&values));
    }
    f32::from_bits(values[*result])
}

#[test]
fn recorded_functions_give_the_same_bits() {
    let arguments: Vec<f32> =
        (0..=u32::MAX).step_by(4_000_037).map(f32::from_bits).chain((-40..=40).map(|i| i as f32 * 0.25)).collect();
    macro_rules! same {
        ($($name:ident)*; pairs: $($pair:ident)*) => {
            $(
                let list = statements(|[x]| math::$name(x));
                for &x in &arguments {
                    let (out, expected) = (run(&list, [x]), math::$name(x));
                    assert_eq!(out.to_bits(), expected.to_bits(), "{}({x:e}): {out:e}, not {expected:e}", stringify!($name));
                }
            )*
            $(
                let list = statements(|[x, y]| math::$pair(x, y));
                for (i, &x) in arguments.iter().enumerate() {
                    let y = arguments[(i * 677 + 13) % arguments.len()];
                    let (out, expected) = (run(&list, [x, y]), math::$pair(x, y));
                    assert_eq!(out.to_bits(), expected.to_bits(), "{}({x:e}, {y:e}): {out:e}, not {expected:e}", stringify!($pair));
                }
            )*
        };
    }
    same!(
        exp exp2 expm1 logistic sinh cosh tanh log log1p asinh acosh atanh sin cos tan asin acos atan erf erfc erf_inv
        cbrt sqrt rsqrt lgamma digamma round_even round_away trunc floor ceil;
        pairs: atan2 pow next_after
    );
}
