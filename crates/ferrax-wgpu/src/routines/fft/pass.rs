//! One pass of transforms, each held by one workgroup: loaded, combined by radices of at most 7 in the workgroup's memory, and stored.
//!
//! ```text
//!     radix r over blocks of s (Stockham):   y[x / s * s r + x % s + q s] = sum_p w_r^(p q) w_(s r)^(p (x % s)) z[x + p n / r]
//! ```
use super::{MAX_HELD, radices};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::{Error, Res};
use std::f64::consts::PI;
use std::fmt::Write;

/// `w_n^k = exp(2 pi i k / n)` for `0 <= k < n`, from integers that are exact: an angle of at most a quarter of pi, and the octant. `unit` is a
/// quarter of pi by n.
const FUNCTIONS: &str = "fn turn(k: i32, n: i32, unit: f32) -> vec2<f32> {
  let octant = 8 * k / n;
  let over = 8 * k - octant * n;
  let is_odd = (octant & 1) == 1;
  let x = f32(select(over, n - over, is_odd)) * unit;
  let q = x * x;
  let c = 1.0 + q * (-0.5 + q * (0.041666668 + q * (-0.0013888889 + q * (0.000024801588 - q * 0.00000027557319))));
  let s = x + x * q * (-0.16666667 + q * (0.008333334 + q * (-0.0001984127 + q * 0.0000027557319)));
  let quadrant = (octant + 1) >> 1u;
  let z = vec2<f32>(c, select(s, -s, is_odd));
  let turned = select(z, vec2<f32>(-z.y, z.x), (quadrant & 1) == 1);
  return select(turned, -turned, (quadrant & 2) == 2);
}
fn product(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
";

/// How an array has the numbers of an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Complex,
    Real,
    /// The first of so many numbers, of which the others are conjugates.
    Hermitian(usize),
    /// In no array: chirps, in both directions from 0.
    Filter,
}

/// Where numbers come from.
pub struct Load {
    /// An array with `len` numbers along the axis; perhaps one with a factor for each.
    pub reads: Vec<Reg>,
    pub len: usize,
    pub form: Form,
    /// They are so many, multiplied by chirps of this direction; zeros follow.
    pub chirp: Option<(usize, bool)>,
}
impl Load {
    pub fn of(reads: Vec<Reg>, len: usize) -> Load {
        Load { reads, len, form: Form::Complex, chirp: None }
    }
}

/// Where numbers go: an array of `len` along the axis; others are dropped.
pub struct Store {
    pub to: Reg,
    pub len: usize,
    pub is_real: bool,
    pub scale: f64,
    pub chirp: Option<(usize, bool)>,
}
impl Store {
    pub fn of(to: Reg, len: usize) -> Store {
        Store { to, len, is_real: false, scale: 1.0, chirp: None }
    }
}

/// Transforms of `n` numbers for each `[outer, parts, inner]`: number i of part p is number `at . [i, p]` of the axis, and result k is number
/// `to . [k, p]`.
#[derive(Clone, Copy)]
pub struct Transforms {
    pub outer: usize,
    pub parts: usize,
    pub inner: usize,
    pub n: usize,
    pub at: [usize; 2],
    pub to: [usize; 2],
    /// Result k of part p is turned by `p k` of so many.
    pub turn: Option<usize>,
    pub inverse: bool,
}

/// A call of `turn` with the direction of the transform.
fn turn(k: &str, n: usize, inverse: bool) -> String {
    let unit = (PI / 4.0 / n as f64) as f32;
    let turn = format!("turn({k}, {n}, {unit:?}f)");
    if inverse { turn } else { format!("({turn} * vec2<f32>(1.0, -1.0))") }
}
/// `w_2n^(k^2)`.
fn chirp(k: &str, (n, inverse): (usize, bool)) -> String {
    let square = format!("i32(u32({k}) * u32({k}) % {}u)", 2 * n);
    turn(&square, 2 * n, inverse)
}

impl Transforms {
    /// # Errors
    /// `Unsupported` for a device whose workgroups have less memory than all have.
    pub fn lower(&self, task: &mut Lowered, load: &Load, store: &Store, limits: Limits) -> Res<()> {
        let total = self.outer * self.parts * self.inner;
        let rows = (MAX_HELD / self.n).clamp(1, total.max(1));
        let (n, size, held) = (self.n, limits.workgroup, rows * self.n);
        if 8 * held > limits.shared {
            return Err(Error::Unsupported(format!("a transform of {n} numbers in {} bytes", limits.shared)));
        }
        let stages = radices(n).ok_or_else(|| Error::Invalid(format!("a pass of {n} numbers")))?;
        let near = |[i, p]: [usize; 2]| self.inner > 1 || self.parts > 1 && p < i;
        let mut body = format!("let row0 = group * {rows};\n");
        self.each(&mut body, rows, size, near(self.at), &|body| self.load(body, load));
        let mut behind = 1;
        for r in stages {
            body.push_str("workgroupBarrier();\n{\n");
            self.stage(&mut body, [r, behind, held], size as usize);
            body.push_str("}\n");
            behind *= r;
        }
        body.push_str("workgroupBarrier();\n");
        self.each(&mut body, rows, size, near(self.to), &|body| self.store(body, store));
        let head =
            wgsl::bindings(load.reads.len(), 1) + FUNCTIONS + &format!("var<workgroup> s: array<vec2<f32>, {held}>;\n");
        let groups = crate::task::fold(total.div_ceil(rows) as u64, limits.groups);
        let work = 128 * (total * n) as u64;
        task.run_long(wgsl::wrapped(head, size, &body), load.reads.clone(), vec![store.to], groups, work);
        Ok(())
    }

    /// Runs `f` for each number `i` of each row `r`, so that neighbouring invocations have neighbouring elements of memory.
    fn each(&self, body: &mut String, rows: usize, size: u32, near: bool, f: &dyn Fn(&mut String)) {
        let Transforms { outer, parts, inner, n, .. } = *self;
        let (i, r) =
            if near { (format!("/ {rows}"), format!("% {rows}")) } else { (format!("% {n}"), format!("/ {n}")) };
        let _ = writeln!(
            body,
            "for (var e = i32(local); e < {}; e += {size}) {{\nlet i = e {i};\nlet r = e {r};\nlet row = row0 + r;\nif (row < {}) {{\nlet o = row / {};\nlet p = row / {inner} % {parts};\nlet j = row % {inner};",
            rows * n,
            outer * parts * inner,
            parts * inner
        );
        f(body);
        body.push_str("}\n}\n");
    }
    /// The number of the axis that `i` of part `p` is.
    fn number([i, p]: [usize; 2]) -> String {
        format!("let l = i * {i} + p * {p};\n")
    }

    fn load(&self, body: &mut String, from: &Load) {
        let (inner, len) = (self.inner, from.len);
        let float = |at: &str| format!("bitcast<f32>(in0[{at}])");
        let pair = |m: &str| {
            let at = format!("2 * ((o * {len} + {m}) * {inner} + j)");
            format!("z = vec2<f32>({}, {});\n", float(&at), float(&format!("{at} + 1")))
        };
        *body += &Transforms::number(self.at);
        let mut number = match from.form {
            Form::Complex => pair("l"),
            Form::Real => format!("z = vec2<f32>({}, 0.0);\n", float(&format!("(o * {len} + l) * {inner} + j"))),
            Form::Hermitian(n) => {
                let turned =
                    format!("if (l >= {len}) {{ z.y = -z.y; }}\nif (m == 0 || 2 * m == {n}) {{ z.y = 0.0; }}\n");
                format!("let m = select(l, {n} - l, l >= {len});\n{}{turned}", pair("m"))
            }
            Form::Filter => String::new(),
        };
        if let Some(of) = from.chirp {
            number += &format!("z = product(z, {});\n", chirp("l", of));
            number = match from.form {
                Form::Filter => {
                    format!("let d = min(l, {len} - l);\nif (d < {}) {{ z = {}; }}\n", of.0, chirp("d", of))
                }
                _ => format!("if (l < {}) {{\n{number}}}\n", of.0),
            };
        }
        if from.reads.len() > 1 {
            number += "z = product(z, vec2<f32>(bitcast<f32>(in1[2 * l]), bitcast<f32>(in1[2 * l + 1])));\n";
        }
        let _ = writeln!(body, "var z = vec2<f32>(0.0, 0.0);\n{number}s[r * {} + i] = z;", self.n);
    }

    fn store(&self, body: &mut String, store: &Store) {
        let (inner, len) = (self.inner, store.len);
        *body += &Transforms::number(self.to);
        let _ = writeln!(body, "if (l < {len}) {{\nvar z = s[r * {} + i];", self.n);
        if let Some(n) = self.turn {
            let _ = writeln!(body, "z = product(z, {});", turn("(p * i)", n, self.inverse));
        }
        if let Some(of) = store.chirp {
            let _ = writeln!(body, "z = product(z, {});", chirp("l", of));
        }
        if store.scale != 1.0 {
            let _ = writeln!(body, "z = z * {:?}f;", store.scale as f32);
        }
        let _ = writeln!(body, "let at = (o * {len} + l) * {inner} + j;");
        *body += if store.is_real {
            "out0[at] = bitcast<u32>(z.x);\n}\n"
        } else {
            "out0[2 * at] = bitcast<u32>(z.x);\nout0[2 * at + 1] = bitcast<u32>(z.y);\n}\n"
        };
    }

    /// Radix `r` over blocks of `behind`, of `held` numbers.
    fn stage(&self, body: &mut String, [r, behind, held]: [usize; 3], size: usize) {
        let (n, each) = (self.n, self.n / r);
        let all = held / r;
        let rounds = all.div_ceil(size);
        for u in 0..rounds {
            let _ = writeln!(body, "let b{u} = i32(local) + {};", u * size);
            for q in 0..r {
                let _ = writeln!(body, "var v{u}_{q} = vec2<f32>(0.0, 0.0);");
            }
            let _ = writeln!(body, "if (b{u} < {all}) {{\nlet x = b{u} % {each};\nlet at = b{u} / {each} * {n} + x;");
            for q in 0..r {
                let _ = writeln!(body, "v{u}_{q} = s[at + {}];", q * each);
                if q > 0 && behind > 1 {
                    let by = turn(&format!("(x % {behind} * {q})"), behind * r, self.inverse);
                    let _ = writeln!(body, "v{u}_{q} = product(v{u}_{q}, {by});");
                }
            }
            body.push_str("}\n");
        }
        body.push_str("workgroupBarrier();\n");
        for u in 0..rounds {
            let _ = writeln!(
                body,
                "if (b{u} < {all}) {{\nlet x = b{u} % {each};\nlet at = b{u} / {each} * {n} + x / {behind} * {} + x % {behind};",
                behind * r
            );
            for q in 0..r {
                let terms: Vec<String> = (0..r).map(|p| self.term(&format!("v{u}_{p}"), p * q % r, r)).collect();
                let _ = writeln!(body, "s[at + {}] = {};", q * behind, terms.join(" + "));
            }
            body.push_str("}\n");
        }
    }
    /// `w_r^t v`.
    fn term(&self, v: &str, t: usize, r: usize) -> String {
        let angle = 2.0 * PI * t as f64 / r as f64 * if self.inverse { 1.0 } else { -1.0 };
        let [c, s] = [angle.cos(), angle.sin()].map(|x| x as f32);
        match (4 * t / r, 4 * t % r) {
            (0, 0) => v.to_string(),
            (2, 0) => format!("(-{v})"),
            (quarter, 0) if (quarter == 1) == self.inverse => format!("vec2<f32>(-{v}.y, {v}.x)"),
            (_, 0) => format!("vec2<f32>({v}.y, -{v}.x)"),
            _ => format!("product({v}, vec2<f32>({c:?}f, {s:?}f))"),
        }
    }
}
