//! Examples of every primitive: an application as text, and where its operands' values lie.
//!
//! ```text
//! reduce_sum[axes=(0,)] f32[2,3]                    one primitive, on these types
//! log f64[3] where 0.1..4                           operands in a range each; `_` is the dtype's own
//! lanes 3: psum[axes=(i,)] f32[2]                   for a named axis `i`: the function is a vmap of the primitive over 3 lanes
//! sort[..] f32[4] where nofd                        no finite differences: the function is not smooth at this scale
//! custom_vjp_call[..] f64[3] where noforward        reverse mode only
//! fft[..] c64[4] where near                         backends differ in how they round
//! nextafter f32[3] f32[3] where norule              no derivative, as in JAX
//! random_bits[..] key<rbg>[] where together         the first lane's key serves all, as in JAX: tests/random/test_rbg.py
//! ```
//!
//! INVARIANT: every primitive has an example here, or a line in [`ELSEWHERE`] that says where its laws are.
use crate::api::{F, Res, Value, vmap_named};
use ferrax_ir::cx::bind;
use ferrax_ir::ops::pointwise::{Domain, Pw};
use ferrax_ir::text::parse_application;
use ferrax_ir::{Aval, Dtype, Op};

mod linalg;
pub mod refused;
mod structured;
mod table;

/// Primitives without an example, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("pure_callback", "holds a function of the host: tests/runtime/test_callback.py"),
    ("io_callback", "holds a function of the host: tests/runtime/test_callback.py"),
    ("debug_callback", "holds a function of the host: tests/runtime/test_callback.py"),
    ("debug_print", "holds a function of the host: tests/runtime/test_callback.py"),
    ("foreign", "holds rules of the host"),
    ("rng_uniform", "no two draws agree: tests/lax/test_special_functions.py"),
    ("custom_lin", "occurs only in linear programs: the examples of custom_vjp_call make it"),
    ("tape_scan", "occurs only in linear programs: the derivative of while makes it"),
    ("tape_len", "occurs only in linear programs: the derivative of while makes it"),
    ("empty_tape", "occurs only in linear programs: the derivative of while makes it"),
];

#[derive(Clone, Debug)]
pub struct Example {
    pub text: String,
    pub op: Op,
    /// One lane's operands.
    avals: Vec<Aval>,
    ranges: Vec<Option<(f64, f64)>>,
    /// The size of the named axis `i`, where the primitive needs one.
    lanes: Option<usize>,
    pub smooth: bool,
    /// Whether every backend rounds as the reference does.
    pub exact: bool,
    pub has_rule: bool,
    pub forward: bool,
    /// Whether elements of a batch are independent: a batch is a loop.
    pub apart: bool,
}

impl Example {
    pub fn parse(text: &str) -> Example {
        let bad = |what: &str| -> ! { panic!("{text}: {what}") };
        let (lanes, rest) = match text.strip_prefix("lanes ").and_then(|t| t.split_once(": ")) {
            Some((n, rest)) => (n.parse().ok(), rest),
            None => (None, text),
        };
        let (app, notes) = rest.split_once(" where ").unwrap_or((rest, ""));
        let (op, avals) = parse_application(app).unwrap_or_else(|e| bad(e.message()));
        let mut e = Example {
            text: text.into(),
            op,
            avals,
            ranges: vec![],
            lanes,
            smooth: true,
            exact: true,
            has_rule: true,
            forward: true,
            apart: true,
        };
        for note in notes.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            match (note, note.split_once("..")) {
                ("nofd", _) => e.smooth = false,
                ("near", _) => e.exact = false,
                ("norule", _) => e.has_rule = false,
                ("noforward", _) => e.forward = false,
                ("together", _) => e.apart = false,
                ("_", _) => e.ranges.push(None),
                (_, Some((lo, hi))) => match (lo.parse(), hi.parse()) {
                    (Ok(lo), Ok(hi)) => e.ranges.push(Some((lo, hi))),
                    _ => bad("a range is two numbers"),
                },
                _ => bad("an unknown note"),
            }
        }
        e
    }
    /// The function's operands: those of all lanes.
    pub fn avals(&self) -> Vec<Aval> {
        self.avals.iter().map(|a| self.lanes.map_or(a.clone(), |n| a.batched(n, 0))).collect()
    }
    /// The same with every float in double precision.
    pub fn widened(&self) -> Option<Example> {
        let wide = |a: &Aval| match a.dtype {
            Dtype::C64 => a.with_dtype(Dtype::C128),
            d if d.is_float() => a.with_dtype(Dtype::F64),
            _ => a.clone(),
        };
        let e = Example { avals: self.avals.iter().map(wide).collect(), ..self.clone() };
        e.op.rules().infer(&e.avals).is_ok().then_some(e)
    }
    pub fn call(&self, x: &[Value]) -> Res<Vec<Value>> {
        let f: F = &|x| Ok(bind(&self.op, x)?.into_vec());
        match self.lanes {
            None => f(x),
            Some(_) if x.is_empty() => f(x),
            Some(_) => {
                let n_out = self.op.rules().infer(&self.avals)?.len();
                vmap_named(Some("i"), f, x, &vec![Some(0); x.len()], &vec![0; n_out])
            }
        }
    }
    /// The size of the named axis, where the primitive needs one.
    pub fn lanes(&self) -> Option<usize> {
        self.lanes
    }
    /// The primitive on one lane of the named axis, for a caller that makes the axis.
    pub fn one_lane(&self) -> Example {
        Example { lanes: None, ..self.clone() }
    }
    /// Values for the operands: spread over their ranges, distinct, and different for each seed.
    pub fn values(&self, avals: &[Aval], seed: usize) -> Vec<Value> {
        let one = |(i, a): (usize, &Aval)| values(a, self.ranges.get(i).copied().flatten(), seed * 7 + i);
        avals.iter().enumerate().map(one).collect()
    }
}

/// The fractional part of k times the golden ratio: any run of these is evenly distributed in 0..1,
/// and no two are equal.
fn spread(k: usize) -> f64 {
    (k as f64 * 0.618_033_988_749_894_9).fract()
}
/// Values of a type over a range.
pub fn values(a: &Aval, range: Option<(f64, f64)>, seed: usize) -> Value {
    crate::api::init();
    let p = ferrax_ir::lower::physical(a);
    let (lo, hi) = range.unwrap_or(match a.dtype {
        d if d.is_bool() => (0.0, 2.0),
        d if d.is_key() => (0.0, 4e9),
        d if d.is_unsigned() => (0.0, 7.0),
        d if d.is_int() => (-4.0, 5.0),
        _ => (-2.0, 2.0),
    });
    let n = p.shape.size();
    let bytes: Vec<u8> = (0..n)
        .flat_map(|k| {
            let x = lo + (hi - lo) * spread(k + 1 + seed * 13);
            let s = match p.dtype.is_float() {
                true => ferrax_kernel::Scalar::from_f64(p.dtype, x),
                false => ferrax_kernel::Scalar::from_i64(p.dtype, x.floor() as i64),
            };
            s.bytes()[..p.dtype.size()].to_vec()
        })
        .collect();
    let device = ferrax::device::default_device();
    Value::Array(ferrax::array::from_bytes(a.clone(), &bytes, device, false).expect("an array"))
}

/// Every example: rows of the pointwise table on shapes and dtypes of their domain, and the written ones.
pub fn all() -> Vec<Example> {
    let mut out: Vec<Example> = Pw::ALL.iter().flat_map(|f| pointwise(*f)).map(|t| Example::parse(&t)).collect();
    out.extend(table::LINES.iter().chain(structured::LINES).chain(linalg::LINES).map(|t| Example::parse(t)));
    out
}

fn pointwise(f: Pw) -> Vec<String> {
    let row = f.row();
    let params: &[&str] = match f {
        Pw::Round => &["[rounding_method=0]", "[rounding_method=1]"],
        Pw::IntegerPow => &["[y=3]", "[y=2]", "[y=1]", "[y=0]", "[y=-1]", "[y=-3]"],
        _ => &[""],
    };
    let ranges = match f {
        Pw::Log | Pw::Sqrt | Pw::Rsqrt | Pw::Cbrt | Pw::Digamma | Pw::Lgamma => "0.3..4",
        Pw::Log1p => "-0.7..3",
        Pw::Asin | Pw::Acos | Pw::Atanh | Pw::ErfInv => "-0.9..0.9",
        Pw::Acosh => "1.2..4",
        Pw::Tan => "-1.2..1.2",
        Pw::Pow => "0.2..3, -2..2",
        Pw::Polygamma => "1..4, 0.5..4",
        Pw::Div => "_, 0.5..3",
        Pw::Rem => "-5..5, 1.1..3",
        Pw::ShiftLeft | Pw::ShiftRightLogical | Pw::ShiftRightArithmetic => "0..100, 0..6",
        _ => "",
    };
    let ranges = match f {
        // whole exponents below zero have no integer result
        Pw::IntegerPow => "0.4..2",
        _ => ranges,
    };
    let mut notes: Vec<&str> = if ranges.is_empty() { vec![] } else { vec![ranges] };
    match f {
        Pw::NextAfter => notes.push("norule"),
        // the order has no derivative, and is whole
        Pw::Polygamma => notes.push("norule"),
        Pw::StopGradient => notes.push("nofd"),
        _ => (),
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" where {}", notes.join(", ")) };
    let dtypes: &[&str] = match row.domain {
        Domain::Float => &["f64", "f32", "f16", "bf16"],
        Domain::Inexact => &["f64", "f32", "bf16", "c64", "c128"],
        Domain::Complex => &["c64", "c128"],
        Domain::Number => &["f64", "f32", "c64", "i32", "u8"],
        Domain::Signed => &["f64", "f16", "c64", "i64", "i8"],
        Domain::Real => &["f64", "f32", "i32", "u64"],
        Domain::Wide => &["f64", "f32"],
        Domain::WideInexact => &["f64", "c64", "f32"],
        Domain::Integer => &["i32", "i8", "u16", "u64"],
        Domain::Bits => &["bool", "i32", "u8", "i64"],
        Domain::Ordered => &["f64", "f32", "bf16", "bool", "i16", "u32"],
        Domain::Any => &["f64", "f32", "f16", "bool", "i32", "u8"],
    };
    let shapes: &[&[&str]] = match row.slopes.len() {
        1 => &[&["[3]"], &["[2,3]"], &["[]"], &["[0]"], &["[2,1,3]"], &["[1]"]],
        _ => &[
            &["[3]", "[3]"],
            &["[2,3]", "[]"],
            &["[]", "[]"],
            &["[]", "[2,0]"],
            &["[2,1,3]", "[2,2,1]"],
            &["[1]", "[1]"],
        ],
    };
    let mut out = vec![];
    for (k, d) in dtypes.iter().enumerate() {
        if matches!(f, Pw::ErfInv | Pw::Polygamma | Pw::BesselI0e | Pw::BesselI1e | Pw::BesselGap) && k > 1 {
            continue;
        }
        for (j, p) in params.iter().enumerate() {
            if p.contains("=-") && !(d.starts_with('f') || d.starts_with('c')) {
                continue;
            }
            // the first dtype and the first parameter see every shape, the others one each
            for (_, s) in
                shapes.iter().enumerate().filter(|(i, _)| k == 0 && j == 0 || (k + j) % shapes.len() == *i || *i == 1)
            {
                let operands: Vec<String> = s.iter().map(|s| format!("{d}{s}")).collect();
                // a complex number's sign turns with it, but its derivative is zero, as in JAX
                let flat = f == Pw::Sign && d.starts_with('c');
                out.push(format!(
                    "{}{p} {}{}",
                    row.name,
                    operands.join(" "),
                    if flat { " where nofd" } else { &notes }
                ));
            }
        }
    }
    if f == Pw::Pow {
        out.push("pow f64[3] i32[3] where 0.2..3, -3..4".into());
        out.push("pow f32[2,3] i8[] where 0.2..3, -3..4".into());
    }
    out
}
