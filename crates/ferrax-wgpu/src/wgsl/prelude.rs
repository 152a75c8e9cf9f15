//! The functions that generated WGSL can call; a shader includes those that it uses, and those that these use.
use super::real;
use ferrax_kernel::math;
use std::sync::OnceLock;

/// Exact work on bits: conversions, nan-proof comparison, integer arithmetic as the waist has it.
const WRITTEN: &[(&str, &str)] = &[
    // A constant float; through a function, because WGSL forbids constant expressions that are nan or infinite.
    ("float", "fn float(bits: u32) -> f32 { return bitcast<f32>(bits); }"),
    // The same number, opaque to the driver: no contraction, no reassociation across it. Every
    // entry point sets `zero` to a value that is zero at run time only.
    ("opaque", "fn opaque(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zero); }"),
    // The same for what is opaque already: of two exclusive ors with one value nothing would be left,
    // and NVIDIA's compiler then contracts. (Sums instead make LLVM's analysis of loops very slow.)
    ("again", "fn again(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ (zero << 1u)); }"),
    ("byte_of", "fn byte_of(w: u32, i: i32) -> u32 { return (w >> ((u32(i) & 3u) * 8u)) & 0xffu; }"),
    ("half_of", "fn half_of(w: u32, i: i32) -> u32 { return (w >> ((u32(i) & 1u) * 16u)) & 0xffffu; }"),
    (
        "f16_to_f32",
        "fn f16_to_f32(h: u32) -> f32 {
  let sign = (h & 0x8000u) << 16u;
  let e = (h >> 10u) & 31u;
  let m = h & 1023u;
  if (e == 31u) { return bitcast<f32>(sign | 0x7f800000u | (m << 13u)); }
  if (e != 0u) { return bitcast<f32>(sign | ((e + 112u) << 23u) | (m << 13u)); }
  return bitcast<f32>(bitcast<u32>(f32(m) * 5.9604644775390625e-8) | sign);
}",
    ),
    (
        // To nearest even; 65520 and beyond is infinite, below 2^-14 it is subnormal.
        "f32_to_f16",
        "fn f32_to_f16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u; }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; }
  if (a >= 0x38800000u) { return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u); }
  if (a < 0x33000000u) { return sign; }
  let shift = 126u - (a >> 23u);
  let m = (a & 0x7fffffu) | 0x800000u;
  let kept = m >> shift;
  let rest = m & ((1u << shift) - 1u);
  let tie = 1u << (shift - 1u);
  return sign | (kept + select(0u, 1u, rest > tie || (rest == tie && (kept & 1u) == 1u)));
}",
    ),
    (
        "f32_to_bf16",
        "fn f32_to_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}",
    ),
    ("is_nan", "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"),
    ("is_finite", "fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }"),
    ("is_zero", "fn is_zero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0u; }"),
    // Integers in the order of the floats they come from; -0 comes just before 0.
    ("rank", "fn rank(x: f32) -> i32 { let b = bitcast<i32>(x); return b ^ ((b >> 31u) & 0x7fffffff); }"),
    // The same with one rank for both zeros.
    ("rank_of_value", "fn rank_of_value(x: f32) -> i32 { return select(rank(x), 0, is_zero(x)); }"),
    (
        "eq_f32",
        "fn eq_f32(x: f32, y: f32) -> bool { return !is_nan(x) && !is_nan(y) && rank_of_value(x) == rank_of_value(y); }",
    ),
    (
        "lt_f32",
        "fn lt_f32(x: f32, y: f32) -> bool { return !is_nan(x) && !is_nan(y) && rank_of_value(x) < rank_of_value(y); }",
    ),
    (
        "le_f32",
        "fn le_f32(x: f32, y: f32) -> bool { return !is_nan(x) && !is_nan(y) && rank_of_value(x) <= rank_of_value(y); }",
    ),
    (
        "max_f32",
        "fn max_f32(x: f32, y: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return float(0x7fc00000u); }
  return bitcast<f32>(select(bitcast<u32>(y), bitcast<u32>(x), rank(x) > rank(y)));
}",
    ),
    (
        "min_f32",
        "fn min_f32(x: f32, y: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return float(0x7fc00000u); }
  return bitcast<f32>(select(bitcast<u32>(y), bitcast<u32>(x), rank(x) < rank(y)));
}",
    ),
    (
        "sign_f32",
        "fn sign_f32(x: f32) -> f32 {
  if (is_nan(x) || is_zero(x)) { return x; }
  return bitcast<f32>(0x3f800000u | (bitcast<u32>(x) & 0x80000000u));
}",
    ),
    // The hardware's rounding to an integer, with the sign that it may lose; a float of 2^23 or
    // more is an integer already.
    (
        "integral",
        "fn integral(x: f32, rounded: f32) -> f32 {
  if ((bitcast<u32>(x) & 0x7fffffffu) >= 0x4b000000u) { return x; }
  return bitcast<f32>((bitcast<u32>(rounded) & 0x7fffffffu) | (bitcast<u32>(x) & 0x80000000u));
}",
    ),
    (
        "round_away",
        "fn round_away(x: f32) -> f32 {
  let a = abs(x);
  let down = floor(a);
  return integral(x, down + select(0.0, 1.0, a - down >= 0.5));
}",
    ),
    (
        // Mantissa of 24 bits and biased exponent of a positive finite number but zero.
        "normalized",
        "fn normalized(a: u32) -> vec2<i32> {
  if (a >= 0x800000u) { return vec2<i32>(i32((a & 0x7fffffu) | 0x800000u), i32(a >> 23u)); }
  let up = countLeadingZeros(a) - 8u;
  return vec2<i32>(i32(a << up), 1 - i32(up));
}",
    ),
    (
        // Bits of a number with this biased exponent, whose 24 bits, and one more, are `q` in [2^24, 2^25); `more`: whether bits
        // follow that are not zero.
        "rounded_bits",
        "fn rounded_bits(q: u32, exponent: i32, more: bool) -> u32 {
  if (exponent >= 1) {
    let up = q & 1u & (u32(more) | (q >> 1u));
    return min((u32(exponent) << 23u) + (q >> 1u) + up - 0x800000u, 0x7f800000u);
  }
  let shift = u32(min(2 - exponent, 31));
  let kept = q >> shift;
  let rest = q & ((1u << shift) - 1u);
  let tie = 1u << (shift - 1u);
  return kept + select(0u, 1u, rest > tie || (rest == tie && (more || (kept & 1u) == 1u)));
}",
    ),
    (
        // The quotient rounded once: drivers may be wrong in the last places, and take `x / y` for `x * (1 / y)`. Theirs is the first
        // guess of the mantissas' quotient; the remainder, modulo 2^32, corrects it.
        "divide",
        "fn divide(x: f32, y: f32) -> f32 {
  let sign = (bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a > 0x7f800000u || b > 0x7f800000u || (a == b && (a == 0u || a == 0x7f800000u))) { return float(0x7fc00000u); }
  if (a == 0x7f800000u || b == 0u) { return bitcast<f32>(sign | 0x7f800000u); }
  if (a == 0u || b == 0x7f800000u) { return bitcast<f32>(sign); }
  let n = normalized(a);
  let d = normalized(b);
  let less = select(0u, 1u, n.x < d.x);
  var q = u32(f32(n.x) / f32(d.x) * f32(0x1000000u << less));
  var r = i32((u32(n.x) << (24u + less)) - q * u32(d.x));
  let k = i32(floor(f32(r) / f32(d.x)));
  q += u32(k);
  r -= k * d.x;
  if (r < 0) { r += d.x; q -= 1u; }
  if (r >= d.x) { r -= d.x; q += 1u; }
  return bitcast<f32>(sign | rounded_bits(q, n.y - d.y + 127 - i32(less), r != 0));
}",
    ),
    (
        // The root rounded once, in the same way.
        "root",
        "fn root(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u || bits == 0x7f800000u) { return x; }
  if (bits > 0x7f800000u) { return float(0x7fc00000u); }
  let n = normalized(bits);
  let odd = u32(n.y & 1);
  var s = u32(sqrt(f32(n.x)) * select(8192.0, 5792.6187514801984, odd == 1u));
  var r = i32((u32(n.x) << (26u - odd)) - s * s);
  let k = i32(floor(f32(r) / f32(2u * s)));
  r -= i32(2u * s) * k + k * k;
  s += u32(k);
  if (r < 0) { s -= 1u; r += i32(2u * s + 1u); }
  if (r > i32(2u * s)) { r -= i32(2u * s + 1u); s += 1u; }
  return bitcast<f32>(rounded_bits(s, (n.y + 126 + i32(odd)) / 2, r != 0));
}",
    ),
    (
        // Exact: the remainder of the mantissas, one bit of the quotient at a time.
        "fmod",
        "fn fmod(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return float(0x7fc00000u); }
  if (a == 0u || a < b) { return x; }
  var ea = i32(a >> 23u);
  var ma = a & 0x7fffffu;
  if (ea == 0) { ea = 1; } else { ma |= 0x800000u; }
  var eb = i32(b >> 23u);
  var mb = b & 0x7fffffu;
  if (eb == 0) { eb = 1; } else { mb |= 0x800000u; }
  while (ma < 0x800000u) { ma <<= 1u; ea -= 1; }
  while (mb < 0x800000u) { mb <<= 1u; eb -= 1; }
  loop {
    if (ma >= mb) { ma -= mb; }
    if (ea <= eb) { break; }
    ma <<= 1u;
    ea -= 1;
  }
  if (ma == 0u) { return bitcast<f32>(sign); }
  while (ma < 0x800000u) { ma <<= 1u; ea -= 1; }
  if (ea < 1) { return bitcast<f32>(sign | (ma >> u32(1 - ea))); }
  return bitcast<f32>(sign | (u32(ea) << 23u) | (ma & 0x7fffffu));
}",
    ),
    (
        // One more or less in the bits, at a width of `sign`'s position + 1.
        "next_after",
        "fn next_after(a: u32, b: u32, sign: u32, x: f32, y: f32) -> u32 {
  if (eq_f32(x, y)) { return b; }
  if (is_zero(x)) { return 1u | select(0u, sign, lt_f32(y, x)); }
  return select(a - 1u, a + 1u, lt_f32(x, y) == ((a & sign) == 0u));
}",
    ),
    (
        "div_i32",
        "fn div_i32(x: i32, y: i32) -> i32 { if (y == 0) { return -1; } if (y == -1) { return 0 - x; } return x / y; }",
    ),
    (
        "rem_i32",
        "fn rem_i32(x: i32, y: i32) -> i32 { if (y == 0) { return x; } if (y == -1) { return 0; } return x % y; }",
    ),
    ("div_u32", "fn div_u32(x: u32, y: u32) -> u32 { if (y == 0u) { return 0xffffffffu; } return x / y; }"),
    ("rem_u32", "fn rem_u32(x: u32, y: u32) -> u32 { if (y == 0u) { return x; } return x % y; }"),
    ("shl", "fn shl(x: u32, n: u32, width: u32) -> u32 { return select(0u, x << (n & 31u), n < width); }"),
    (
        "shr_logical",
        "fn shr_logical(x: u32, n: u32, width: u32) -> u32 { return select(0u, x >> (n & 31u), n < width); }",
    ),
    ("shr_arithmetic", "fn shr_arithmetic(x: i32, n: u32, width: u32) -> i32 { return x >> min(n, width - 1u); }"),
    (
        // The high word of a 64-bit product, from 16-bit halves.
        "mul_high",
        "fn mul_high(x: u32, y: u32) -> u32 {
  let low = (x & 0xffffu) * (y & 0xffffu);
  let a = (x >> 16u) * (y & 0xffffu) + (low >> 16u);
  let b = (x & 0xffffu) * (y >> 16u) + (a & 0xffffu);
  return (x >> 16u) * (y >> 16u) + (a >> 16u) + (b >> 16u);
}",
    ),
    (
        "f32_to_i32",
        "fn f32_to_i32(x: f32) -> i32 {
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let negative = bitcast<u32>(x) != a;
  if (a > 0x7f800000u) { return 0; }
  if (a >= 0x4f000000u) { return select(2147483647, bitcast<i32>(0x80000000u), negative); }
  return i32(x);
}",
    ),
    (
        "f32_to_u32",
        "fn f32_to_u32(x: f32) -> u32 {
  let a = bitcast<u32>(x) & 0x7fffffffu;
  if (a > 0x7f800000u || bitcast<u32>(x) != a) { return 0u; }
  if (a >= 0x4f800000u) { return 0xffffffffu; }
  return u32(x);
}",
    ),
    (
        // Rounds a float, given its bits, to `exponent` and `mantissa` bits of a format with `e`
        // and `m`; a subnormal result becomes zero.
        "round_to",
        "fn round_to(w: u32, e: u32, m: u32, exponent: u32, mantissa: u32) -> u32 {
  let sign = w & (1u << (e + m));
  var bits = w ^ sign;
  let infinity = ((1u << e) - 1u) << m;
  if (bits > infinity) { return w; }
  if (mantissa < m) {
    let dropped = m - mantissa;
    bits = ((bits + (1u << (dropped - 1u)) - 1u + ((bits >> dropped) & 1u)) >> dropped) << dropped;
  }
  if (exponent < e) {
    let bias = (1 << (max(exponent, 1u) - 1u)) - 1;
    let power = i32(bits >> m) - ((1 << (e - 1u)) - 1);
    if (power > bias) { bits = infinity; } else if (power < 1 - bias) { bits = 0u; }
  }
  return bits | sign;
}",
    ),
    (
        // log(exp a + exp b).
        "log_add_exp",
        "fn log_add_exp(a: f32, b: f32) -> f32 {
  let difference = a - b;
  let equal_infinities = !is_finite(a) && bitcast<u32>(a) == bitcast<u32>(b);
  if (equal_infinities || is_nan(a) || is_nan(b) || is_nan(difference)) { return a + b; }
  return max_f32(a, b) + m_log1p(m_exp(-abs(difference)));
}",
    ),
];

/// The functions recorded from [`ferrax_kernel::math`], by the name that shaders call them by.
fn recorded() -> &'static [(&'static str, String)] {
    static ALL: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    macro_rules! unary {
        ($($name:literal $f:ident)*) => { vec![$(($name, real::function($name, |[x]| math::$f(x)))),*] };
    }
    ALL.get_or_init(|| {
        let mut all = unary! {
            "m_rsqrt" rsqrt "m_cbrt" cbrt "m_exp" exp "m_exp2" exp2 "m_expm1" expm1 "m_log" log "m_log1p" log1p
            "m_sin" sin "m_cos" cos "m_tan" tan "m_asin" asin "m_acos" acos "m_atan" atan
            "m_sinh" sinh "m_cosh" cosh "m_tanh" tanh "m_asinh" asinh "m_acosh" acosh "m_atanh" atanh "m_logistic" logistic
            "m_erf" erf "m_erfc" erfc "m_erf_inv" erf_inv "m_lgamma" lgamma "m_digamma" digamma
        };
        all.push(("m_pow", real::function("m_pow", |[x, y]| math::pow(x, y))));
        all.push(("m_atan2", real::function("m_atan2", |[x, y]| math::atan2(x, y))));
        all.push(("two_over_pi_word", real::two_over_pi_word()));
        all
    })
}

/// The source of all functions that `text` calls, directly or through others.
pub fn needed(text: &str) -> String {
    let all = || WRITTEN.iter().copied().chain(recorded().iter().map(|(name, source)| (*name, source.as_str())));
    let calls = |text: &str, name: &str| text.match_indices(name).any(|(i, _)| is_call(text, i, name));
    let mut taken: Vec<&str> = vec![];
    let mut sources = String::new();
    let mut latest = text.to_string();
    while !latest.is_empty() {
        let found: Vec<_> = all().filter(|(name, _)| !taken.contains(name) && calls(&latest, name)).collect();
        latest = found.iter().map(|(_, source)| format!("{source}\n")).collect();
        taken.extend(found.iter().map(|(name, _)| *name));
        sources += &latest;
    }
    sources
}

/// Whether the name at `i` is called there, and is not the end of a longer name.
fn is_call(text: &str, i: usize, name: &str) -> bool {
    let before = text[..i].chars().next_back();
    text[i + name.len()..].starts_with('(') && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_bring_what_they_call() {
        let text = needed("max_f32(a, b)");
        assert!(["fn max_f32(", "fn is_nan(", "fn rank(", "fn float("].iter().all(|f| text.contains(f)), "{text}");
        assert!(!text.contains("fn fmod("));
        assert_eq!(needed("amax_f32(a, b) + rank_of(c)"), "");
    }
}
