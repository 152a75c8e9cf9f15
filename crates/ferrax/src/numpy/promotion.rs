//! Type promotion: JAX's lattice, with the weak types of Python scalars.
//!
//! ```text
//! b1 -> i* -> u1 -> u2 -> u4 -> u8 -> f* -> bf16, f16 -> f32 -> f64        f* -> c*    f32, c* -> c64    f64, c64 -> c128
//!       i* -> i1 -> i2 -> i4 -> i8 -> f*      u1 -> i2, u2 -> i4, u4 -> i8
//! ```
//!
//! The small floats are each above `f*`, the small integers each above `i*`; no other type is above
//! them.
//!
//! The result is the least upper bound; `i* f* c*` are the weak types.
//! INVARIANT: the answer does not depend on the order of the operands.
use ferrax_ir::aval::Lit;
use ferrax_ir::cx::bind;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::ops::convert::Convert;
use ferrax_ir::value::{Value, Values};
use ferrax_kernel::DType;
use std::sync::OnceLock;

/// Which ranks may be mixed implicitly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rank {
    #[default]
    Allow,
    Warn,
    Raise,
}

/// The configuration that promotion depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Promotion {
    /// 64-bit types exist; otherwise they are their 32-bit counterparts.
    pub x64: bool,
    /// Only weak types are promoted.
    pub strict: bool,
    pub rank: Rank,
}

/// The dtype that replaces `d` if 64-bit types are off.
pub fn canonical(d: Dtype, x64: bool) -> Dtype {
    match d {
        _ if x64 => d,
        Dtype::I64 => Dtype::I32,
        Dtype::U64 => Dtype::U32,
        Dtype::F64 => Dtype::F32,
        Dtype::C128 => Dtype::C64,
        d => d,
    }
}

/// All dtypes of numbers: those of the waist, and complex ones.
pub const NUMBERS: [Dtype; DType::ALL.len() + DType::SMALL.len() + 2] = {
    let (wide, all) = (DType::ALL.len(), DType::ALL.len() + DType::SMALL.len());
    let mut out = [Dtype::C64; DType::ALL.len() + DType::SMALL.len() + 2];
    let mut k = 0;
    while k < all {
        out[k] = Dtype::Num(if k < wide { DType::ALL[k] } else { DType::SMALL[k - wide] });
        k += 1;
    }
    out[all + 1] = Dtype::C128;
    out
};
const N: usize = NUMBERS.len() + 3;
const WEAK_INT: usize = NUMBERS.len();
const WEAK_FLOAT: usize = WEAK_INT + 1;
const WEAK_COMPLEX: usize = WEAK_INT + 2;

fn is_small(d: Dtype) -> bool {
    matches!(d, Dtype::Num(d) if d.is_small())
}
/// The reason why a small dtype is not promoted to another, and what to do about it.
fn small_advice(d: Dtype) -> Option<String> {
    let (what, like) = match d.bits() {
        8 if is_small(d) => ("8-bit floats", "float32"),
        4 if d.is_float() => ("4-bit floats", "float32"),
        _ if is_small(d) => ("1-bit, 2-bit and 4-bit integers", "int32"),
        _ => return None,
    };
    Some(format!(
        "To avoid unintended promotion, {what} do not support implicit promotion. If you'd like your inputs to be promoted to another type, you can do so \
         explicitly using e.g. x.astype('{like}')"
    ))
}

fn node(d: Dtype, weak: bool) -> Res<usize> {
    Ok(match d {
        d if weak && d.is_int() => WEAK_INT,
        d if weak && d.is_float() => WEAK_FLOAT,
        d if weak && d.is_complex() => WEAK_COMPLEX,
        d => match NUMBERS.iter().position(|n| *n == d) {
            Some(i) => i,
            None => {
                return Err(Error::value(format!("dtype={} is not a valid dtype for JAX type promotion.", d.long())));
            }
        },
    })
}

/// For each node, the nodes that are at least as large, as a set of bits.
fn above(strict: bool) -> &'static [u32; N] {
    static STANDARD: OnceLock<[u32; N]> = OnceLock::new();
    static STRICT: OnceLock<[u32; N]> = OnceLock::new();
    let cell = if strict { &STRICT } else { &STANDARD };
    cell.get_or_init(|| {
        let at = |d: Dtype| NUMBERS.iter().position(|n| *n == d).unwrap_or(0);
        use Dtype as D;
        let mut edges: Vec<(usize, usize)> = vec![];
        if strict {
            for d in NUMBERS {
                if d.is_int() {
                    edges.push((WEAK_INT, at(d)));
                } else if d.is_float() {
                    edges.push((WEAK_FLOAT, at(d)));
                } else if d.is_complex() {
                    edges.push((WEAK_COMPLEX, at(d)));
                }
            }
            edges.extend([(WEAK_INT, WEAK_FLOAT), (WEAK_FLOAT, WEAK_COMPLEX)]);
        } else {
            for (a, b) in [
                (D::U8, D::I16),
                (D::U8, D::U16),
                (D::U16, D::I32),
                (D::U16, D::U32),
                (D::U32, D::I64),
                (D::U32, D::U64),
                (D::I8, D::I16),
                (D::I16, D::I32),
                (D::I32, D::I64),
                (D::BF16, D::F32),
                (D::F16, D::F32),
                (D::F32, D::F64),
                (D::F32, D::C64),
                (D::F64, D::C128),
                (D::C64, D::C128),
            ] {
                edges.push((at(a), at(b)));
            }
            edges.extend([
                (at(D::BOOL), WEAK_INT),
                (WEAK_INT, at(D::U8)),
                (WEAK_INT, at(D::I8)),
                (at(D::U64), WEAK_FLOAT),
                (at(D::I64), WEAK_FLOAT),
            ]);
            edges.extend([
                (WEAK_FLOAT, at(D::BF16)),
                (WEAK_FLOAT, at(D::F16)),
                (WEAK_FLOAT, WEAK_COMPLEX),
                (WEAK_COMPLEX, at(D::C64)),
            ]);
            let small = NUMBERS.iter().filter(|d| is_small(**d));
            edges.extend(small.map(|d| (if d.is_int() { WEAK_INT } else { WEAK_FLOAT }, at(*d))));
        }
        let mut up = [0u32; N];
        (0..N).for_each(|i| up[i] = 1 << i);
        // reachability: N rounds suffice
        for _ in 0..N {
            for (a, b) in &edges {
                up[*a] |= up[*b];
            }
        }
        up
    })
}

/// The least upper bound of nodes, where there is exactly one.
fn join(nodes: &[usize], strict: bool) -> Option<usize> {
    let up = above(strict);
    let common = nodes.iter().fold(u32::MAX, |s, n| s & up[*n]) & ((1 << N) - 1);
    (0..N).find(|i| common >> i & 1 == 1 && common & !up[*i] == 0)
}

/// The default dtype of a weak node.
fn default_of(node: usize, x64: bool) -> Dtype {
    canonical([Dtype::I64, Dtype::F64, Dtype::C128][node - WEAK_INT], x64)
}

/// The dtype in which to combine operands of these dtypes and weaknesses, and whether it is weak.
pub fn result_type(xs: &[(Dtype, bool)], p: Promotion) -> Res<(Dtype, bool)> {
    let Some((first, rest)) = xs.split_first() else {
        return Err(Error::value("at least one array or dtype is required"));
    };
    let same = rest.iter().all(|x| x.0 == first.0);
    let all_weak = xs.iter().all(|x| x.1);
    if same && (rest.is_empty() || all_weak || !xs.iter().any(|x| x.1)) {
        return Ok((canonical(first.0, p.x64), first.1 && all_weak));
    }
    if same {
        return Ok((canonical(first.0, p.x64), false));
    }
    let fail = || {
        let how = if p.strict { "strict" } else { "standard" };
        let names = xs
            .iter()
            .map(|(d, weak)| if *weak { weak_name(*d) } else { format!("'{}'", d.long()) })
            .collect::<Vec<_>>();
        let small = xs.iter().filter(|x| !x.1 && is_small(x.0)).max_by_key(|x| (x.0.bits(), x.0.is_float()));
        if let (false, Some(advice)) = (p.strict, small.and_then(|x| small_advice(x.0))) {
            let text = format!(
                "Input dtypes ({}) have no available implicit dtype promotion path. {advice}",
                names.join(", ")
            );
            return Error::new(ErrorKind::TypePromotion, text);
        }
        Error::new(
            ErrorKind::TypePromotion,
            format!(
                "Input dtypes ({}) have no available implicit dtype promotion path when jax_numpy_dtype_promotion={how}. \
                 Try explicitly casting inputs to the desired output type, or set jax_numpy_dtype_promotion=standard.",
                names.join(", ")
            ),
        )
    };
    // If all are weak, the bound is taken among their strong counterparts, and is weak.
    let demote = all_weak && !p.strict;
    let nodes = xs.iter().map(|(d, weak)| node(*d, *weak && !demote)).collect::<Res<Vec<_>>>()?;
    let up = join(&nodes, p.strict).ok_or_else(fail)?;
    let (dtype, weak) =
        if up >= WEAK_INT { (default_of(up, p.x64), true) } else { (canonical(NUMBERS[up], p.x64), demote) };
    Ok((dtype, weak && dtype != Dtype::BOOL))
}
fn weak_name(d: Dtype) -> String {
    let class = if d.is_int() {
        "int"
    } else if d.is_float() {
        "float"
    } else {
        "complex"
    };
    format!("\"<class '{class}'>\"")
}

/// The dtype that functions such as `sin` compute in: that of floats itself, for integers of 64 bits float64, for narrower ones and bool float32.
pub fn to_inexact(d: Dtype, p: Promotion) -> Dtype {
    if d.is_inexact() {
        d
    } else if matches!(d, Dtype::I64 | Dtype::U64) {
        canonical(Dtype::F64, p.x64)
    } else {
        Dtype::F32
    }
}

/// `l` in another dtype: no equation.
pub fn convert_lit(l: Lit, dtype: Dtype, weak: bool) -> Option<Lit> {
    let mut out = match (l.scalar(), dtype) {
        _ if l.dtype() == dtype => l,
        (_, Dtype::C128 | Dtype::Key(_) | Dtype::Float0) => return None,
        (None, d) if d.is_complex() => l,
        (None, _) => return None,
        (Some(s), d) if l.dtype().is_float() || (l.dtype() == Dtype::U64 && d.is_inexact()) => {
            Lit::from_f64(d, s.to_f64())
        }
        (Some(s), d) => Lit::from_i64(d, s.to_i64()),
    };
    out.weak = weak;
    Some(out)
}

/// `x` with this dtype and weakness; itself if it has them.
pub fn convert(x: &Value, dtype: Dtype, weak: bool) -> Res<Value> {
    if x.dtype() == dtype && x.weak() == weak {
        return Ok(x.clone());
    }
    if let Value::Lit(l) = x
        && let Some(l) = convert_lit(*l, dtype, weak)
    {
        return Ok(Value::Lit(l));
    }
    one(bind(&Convert { new_dtype: dtype, weak_type: weak }.into(), std::slice::from_ref(x))?)
}
/// The one result of a primitive that has one.
pub fn one(v: Values) -> Res<Value> {
    ferrax_ir::cx::one(v)
}

fn kinds(xs: &[Value]) -> Vec<(Dtype, bool)> {
    xs.iter().map(|x| (x.dtype(), x.weak())).collect()
}
/// The operands in their common dtype.
pub fn promote(xs: &[Value], p: Promotion) -> Res<Values> {
    let (d, weak) = result_type(&kinds(xs), p)?;
    xs.iter().map(|x| convert(x, d, weak)).collect()
}
/// The operands in their common float or complex dtype.
pub fn promote_inexact(xs: &[Value], p: Promotion) -> Res<Values> {
    let (d, weak) = result_type(&kinds(xs), p)?;
    let d = to_inexact(d, p);
    xs.iter().map(|x| convert(x, d, weak)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    const P: Promotion = Promotion { x64: true, strict: false, rank: Rank::Allow };

    #[test]
    fn the_bound_is_commutative_and_idempotent() {
        let all: Vec<(Dtype, bool)> = NUMBERS
            .iter()
            .filter(|d| !is_small(**d)) // promoted by nothing
            .map(|d| (*d, false))
            .chain([(Dtype::I64, true), (Dtype::F64, true), (Dtype::C128, true)])
            .collect();
        for a in &all {
            assert_eq!(result_type(&[*a, *a], P).unwrap(), *a);
            for b in &all {
                assert_eq!(result_type(&[*a, *b], P).unwrap(), result_type(&[*b, *a], P).unwrap());
            }
        }
    }
    #[test]
    fn rows_that_jax_prints() {
        let t = |a: Dtype, b: Dtype| result_type(&[(a, false), (b, false)], P).unwrap().0;
        assert_eq!(t(Dtype::U8, Dtype::I8), Dtype::I16);
        assert_eq!(t(Dtype::U64, Dtype::I8), Dtype::F64);
        assert_eq!(t(Dtype::BF16, Dtype::F16), Dtype::F32);
        assert_eq!(t(Dtype::I64, Dtype::F16), Dtype::F16);
        assert_eq!(t(Dtype::F64, Dtype::C64), Dtype::C128);
        assert_eq!(result_type(&[(Dtype::BF16, false), (Dtype::F64, true)], P).unwrap(), (Dtype::BF16, false));
        assert_eq!(result_type(&[(Dtype::I32, false), (Dtype::F64, true)], P).unwrap(), (Dtype::F64, true));
        assert_eq!(
            result_type(&[(Dtype::U32, false), (Dtype::I32, false)], Promotion::default()).unwrap(),
            (Dtype::I32, false)
        );
    }
}
