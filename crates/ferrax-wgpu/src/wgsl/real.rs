//! The recording lane: a [`Real`] whose operations append WGSL statements, so that a function of [`ferrax_kernel::math`] becomes a
//! function of the shader.
//!
//! INVARIANT: a value is the number of the `let` that defines it; statements are appended to the thread's open function, one at a time.
use ferrax_kernel::math::{Int, Mask, Real, TWO_OVER_PI_32};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

thread_local! {
    /// The body of the function being recorded, and the numbers of its values.
    static BODY: RefCell<(String, HashMap<String, u32>)> = RefCell::default();
}

#[derive(Clone, Copy)]
pub struct FloatExpr(u32);
#[derive(Clone, Copy)]
pub struct IntegerExpr(u32);
#[derive(Clone, Copy)]
pub struct TruthExpr(u32);

fn push(expression: std::fmt::Arguments) -> u32 {
    BODY.with_borrow_mut(|(body, values)| {
        let (expression, n) = (expression.to_string(), values.len() as u32);
        *values.entry(expression).or_insert_with_key(|expression| {
            let _ = writeln!(body, "  let v{n} = {expression};");
            n
        })
    })
}
/// `x op y`, where the driver does not see one value on both sides.
fn apart(op: &str, x: u32, y: u32) -> String {
    if x == y { format!("v{x} {op} again(v{y})") } else { format!("v{x} {op} v{y}") }
}

/// `fn name(x, y, ..) -> f32`, recorded from `f`.
pub fn function<const N: usize>(name: &str, f: impl Fn([FloatExpr; N]) -> FloatExpr) -> String {
    BODY.with_borrow_mut(|b| *b = Default::default());
    let parameters = ["x", "y"];
    let result = f(std::array::from_fn(|i| FloatExpr(push(format_args!("{}", parameters[i])))));
    let body = BODY.with_borrow_mut(|b| std::mem::take(&mut b.0));
    let list: Vec<String> = parameters[..N].iter().map(|p| format!("{p}: f32")).collect();
    format!("fn {name}({}) -> f32 {{\n{body}  return v{};\n}}\n", list.join(", "), result.0)
}

/// The function of the same name that [`Real::two_over_pi_word`] calls.
pub fn two_over_pi_word() -> String {
    let words: Vec<String> = TWO_OVER_PI_32.iter().map(|w| format!("{w}u")).collect();
    format!(
        "fn two_over_pi_word(i: i32) -> i32 {{\n  var words = array<u32, {n}>({});\n  return bitcast<i32>(words[clamp(i + 2, 0, {})]);\n}}\n",
        words.join(", "),
        words.len() - 1,
        n = words.len()
    )
}

/// Operations on floats whose results the driver may not see through: it would contract products and sums, and take
/// `(a + b) - b` for `a`.
macro_rules! arithmetic {
    ($($name:ident $op:literal)*) => {
        $(#[inline(never)] // as in native code: texts name hundreds of operations
        fn $name(self, other: Self) -> FloatExpr { FloatExpr(push(format_args!("opaque({})", apart($op, self.0, other.0)))) })*
    };
}
macro_rules! binary {
    ($($name:ident $op:literal $Out:ident)*) => {
        $(#[inline(never)]
        fn $name(self, other: Self) -> $Out { $Out(push(format_args!("v{} {} v{}", self.0, $op, other.0))) })*
    };
}

impl Mask for TruthExpr {
    binary! { and "&" TruthExpr or "|" TruthExpr xor "!=" TruthExpr }
    fn not(self) -> TruthExpr {
        TruthExpr(push(format_args!("!v{}", self.0)))
    }
}

impl Int for IntegerExpr {
    type Mask = TruthExpr;
    fn constant(value: i64) -> IntegerExpr {
        IntegerExpr(push(format_args!("bitcast<i32>({}u)", value as u32)))
    }
    binary! { add "+" IntegerExpr sub "-" IntegerExpr mul "*" IntegerExpr and "&" IntegerExpr or "|" IntegerExpr xor "^" IntegerExpr eq "==" TruthExpr lt "<" TruthExpr }
    fn mul_high_unsigned(self, other: IntegerExpr) -> IntegerExpr {
        IntegerExpr(push(format_args!("bitcast<i32>(mul_high(bitcast<u32>(v{}), bitcast<u32>(v{})))", self.0, other.0)))
    }
    fn shl(self, by: u32) -> IntegerExpr {
        IntegerExpr(push(format_args!("v{} << {by}u", self.0)))
    }
    fn shr(self, by: u32) -> IntegerExpr {
        IntegerExpr(push(format_args!("v{} >> {by}u", self.0)))
    }
    fn shr_unsigned(self, by: u32) -> IntegerExpr {
        IntegerExpr(push(format_args!("bitcast<i32>(bitcast<u32>(v{}) >> {by}u)", self.0)))
    }
    fn shl_by(self, by: IntegerExpr) -> IntegerExpr {
        IntegerExpr(push(format_args!("v{} << bitcast<u32>(v{})", self.0, by.0)))
    }
    fn shr_unsigned_by(self, by: IntegerExpr) -> IntegerExpr {
        IntegerExpr(push(format_args!("bitcast<i32>(bitcast<u32>(v{}) >> bitcast<u32>(v{}))", self.0, by.0)))
    }
    fn select(mask: TruthExpr, yes: IntegerExpr, no: IntegerExpr) -> IntegerExpr {
        IntegerExpr(push(format_args!("select(v{}, v{}, v{})", no.0, yes.0, mask.0)))
    }
}

impl Real for FloatExpr {
    type Mask = TruthExpr;
    type Int = IntegerExpr;
    const WIDE: bool = false;

    fn constant(narrow: f32, _: f64) -> FloatExpr {
        // Values that algebra without nan and infinities would fold are opaque to the driver.
        let hidden = if narrow == 0.0 || !narrow.is_finite() { " ^ zero" } else { "" };
        FloatExpr(push(format_args!("float({}u{hidden})", narrow.to_bits())))
    }
    fn from_bits(bits: IntegerExpr) -> FloatExpr {
        FloatExpr(push(format_args!("bitcast<f32>(v{})", bits.0)))
    }
    fn to_bits(self) -> IntegerExpr {
        IntegerExpr(push(format_args!("bitcast<i32>(v{})", self.0)))
    }
    // PERF: the driver's quotients and roots; `divide` and `root` in each place would make functions several times as long.
    arithmetic! { add "+" sub "-" mul "*" div "/" }
    binary! { lt "<" TruthExpr le "<=" TruthExpr eq "==" TruthExpr }
    // WGSL's `fma` may round twice: exact products do not use it.
    const FUSED: bool = false;
    fn mul_add(self, by: FloatExpr, to: FloatExpr) -> FloatExpr {
        self.mul(by).add(to)
    }
    fn sqrt(self) -> FloatExpr {
        FloatExpr(push(format_args!("opaque(sqrt(v{}))", self.0)))
    }
    fn neg(self) -> FloatExpr {
        FloatExpr(push(format_args!("bitcast<f32>(bitcast<u32>(v{}) ^ 0x80000000u)", self.0)))
    }
    fn abs(self) -> FloatExpr {
        FloatExpr(push(format_args!("bitcast<f32>(bitcast<u32>(v{}) & 0x7fffffffu)", self.0)))
    }
    fn select(mask: TruthExpr, yes: FloatExpr, no: FloatExpr) -> FloatExpr {
        FloatExpr(push(format_args!("select(v{}, v{}, v{})", no.0, yes.0, mask.0)))
    }
    fn round_small(self) -> (FloatExpr, IntegerExpr) {
        let rounded = push(format_args!("round(v{})", self.0));
        (FloatExpr(rounded), IntegerExpr(push(format_args!("i32(v{rounded})"))))
    }
    fn round_product(self, by: FloatExpr) -> (FloatExpr, IntegerExpr) {
        self.mul(by).round_small()
    }
    fn from_small(int: IntegerExpr) -> FloatExpr {
        FloatExpr(push(format_args!("f32(v{})", int.0)))
    }
    fn two_over_pi_word(index: IntegerExpr) -> IntegerExpr {
        IntegerExpr(push(format_args!("two_over_pi_word(v{})", index.0)))
    }
}
