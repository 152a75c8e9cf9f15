//! WGSL from the waist: lanes, their positions in buffers, the scalar table, kernels.
//!
//! Buffers are arrays of words in the host's packing, so uploads and downloads copy bytes, and 8- and 16-bit elements need no
//! feature of the adapter. A lane is `f32` for floats, `i32` or `u32` for integers, `bool` for booleans; after each function it is
//! converted back to its dtype.
//!
//! INVARIANT: WGSL guarantees nothing about nan, infinities and signed zeros, so everything that depends on them is computed on bits. Float
//! constants are made from their bits at run time. Every float operation is rounded separately, and none gets one value as both
//! operands (see `opaque`), so that neither fusion nor the driver's algebra changes bits. An invocation that writes elements narrower than a word writes whole words: it
//! computes as many consecutive elements as a word of the narrowest output has.
mod kernel;
pub mod prelude;
mod real;
pub mod scalar;

pub use kernel::{Lowered, epilogue, function, in_workgroup, lower, rows, with_outputs, work};

use crate::task::Limits;
use ferrax_kernel::kernel::Guard;
use ferrax_kernel::{Affine, DType, Scalar};
use std::fmt::Write;

/// The WGSL type of a lane.
pub fn lane(d: DType) -> &'static str {
    match d {
        DType::Bool => "bool",
        _ if d.is_float() => "f32",
        _ if d.is_signed() => "i32",
        _ => "u32",
    }
}

/// Elements in a word.
pub fn per_word(d: DType) -> usize {
    4 / d.size().min(4)
}

/// The lane of an element whose bits are the low ones of the word `w`.
pub fn from_word(d: DType, w: &str) -> String {
    match d {
        DType::Bool => format!("({w} != 0u)"),
        DType::I8 => format!("(bitcast<i32>({w} << 24u) >> 24u)"),
        DType::I16 => format!("(bitcast<i32>({w} << 16u) >> 16u)"),
        DType::I32 => format!("bitcast<i32>({w})"),
        DType::F16 => format!("f16_to_f32({w})"),
        DType::BF16 => format!("bitcast<f32>({w} << 16u)"),
        DType::F32 => format!("bitcast<f32>({w})"),
        _ => w.to_string(),
    }
}

/// The bits of a lane in the low end of a word; the rest of the word is zero.
pub fn to_word(d: DType, v: &str) -> String {
    match d {
        DType::Bool => format!("select(0u, 1u, {v})"),
        DType::I8 => format!("(bitcast<u32>({v}) & 0xffu)"),
        DType::I16 => format!("(bitcast<u32>({v}) & 0xffffu)"),
        DType::F16 => format!("f32_to_f16({v})"),
        DType::BF16 => format!("f32_to_bf16({v})"),
        DType::I32 | DType::F32 => format!("bitcast<u32>({v})"),
        _ => v.to_string(),
    }
}

/// A lane brought back into its dtype: narrow integers wrap, narrow floats round.
pub fn narrowed(d: DType, v: &str) -> String {
    match d {
        DType::I8 => format!("((({v}) << 24u) >> 24u)"),
        DType::I16 => format!("((({v}) << 16u) >> 16u)"),
        DType::U8 => format!("(({v}) & 0xffu)"),
        DType::U16 => format!("(({v}) & 0xffffu)"),
        DType::F16 => format!("f16_to_f32(f32_to_f16({v}))"),
        DType::BF16 => format!("bitcast<f32>(f32_to_bf16({v}) << 16u)"),
        _ => v.to_string(),
    }
}

/// The lane of element `at` (an `i32` expression) of a buffer that starts `base` words into the array `words`.
pub fn load(d: DType, words: &str, base: usize, at: &str) -> String {
    let base = if base == 0 { String::new() } else { format!("{base} + ") };
    let w = match per_word(d) {
        1 => format!("{words}[{base}({at})]"),
        2 => format!("half_of({words}[{base}(({at}) >> 1u)], {at})"),
        _ => format!("byte_of({words}[{base}(({at}) >> 2u)], {at})"),
    };
    from_word(d, &w)
}

/// Where elements are: in the array `words` from word `base` on, where those before number `first` are another's.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub words: String,
    pub base: usize,
    /// An expression; empty for 0.
    pub first: String,
}
impl Place {
    /// A whole array.
    pub fn of(words: String) -> Place {
        Place { words, ..Place::default() }
    }
    /// The number in `words` of element `at`.
    pub fn at(&self, at: &str) -> String {
        if self.first.is_empty() { at.to_string() } else { format!("{} + ({at})", self.first) }
    }
    /// The lane of element `at`.
    pub fn load(&self, d: DType, at: &str) -> String {
        load(d, &self.words, self.base, &self.at(at))
    }
    /// Word `at`, of elements that begin with a word.
    pub fn word(&self, at: &str) -> String {
        let base = if self.base == 0 { String::new() } else { format!("{} + ", self.base) };
        format!("{}[{base}{at}]", self.words)
    }
}

/// A constant lane; for floats one that is opaque to the driver, so that it folds neither `x * 0`
/// nor `x / 0`.
pub fn constant(s: Scalar) -> String {
    match lane(s.dtype) {
        "bool" => (s.bits != 0).to_string(),
        "f32" => format!("float({}u ^ zero)", (s.to_f64() as f32).to_bits()),
        "i32" => format!("bitcast<i32>({}u)", s.to_i64() as u32),
        _ => format!("{}u", s.bits),
    }
}

/// The value of an affine form over the coordinates `c0, c1, ..`, as an `i32` expression.
pub fn affine(a: &Affine) -> String {
    let mut text = if a.offset == 0 { String::new() } else { format!("({})", a.offset) };
    for (k, s) in a.strides.iter().enumerate().filter(|(_, s)| **s != 0) {
        let plus = if text.is_empty() { "" } else { " + " };
        let _ = if *s == 1 { write!(text, "{plus}c{k}") } else { write!(text, "{plus}c{k} * ({s})") };
    }
    if text.is_empty() { "0".into() } else { text }
}

/// Whether a guard lets through.
pub fn guard(g: &Guard) -> String {
    let at = affine(&g.at);
    format!("({at}) >= {} && ({at}) < {}", clamp_i32(g.lo), clamp_i32(g.hi))
}
/// Bounds beyond all positions stay beyond them.
fn clamp_i32(x: i64) -> i64 {
    x.clamp(-(i32::MAX as i64), i32::MAX as i64)
}

/// Statements that define coordinates `c{first}, ..` of the row-major position `i` in `dims`.
pub fn unravel(body: &mut String, i: &str, dims: &[usize], first: usize) {
    let mut rest = i.to_string();
    for k in (0..dims.len()).rev() {
        let c = first + k;
        if k == 0 {
            let _ = writeln!(body, "let c{c} = {rest};");
        } else {
            let _ = writeln!(body, "let c{c} = ({rest}) % {};", dims[k]);
            let _ = writeln!(body, "let q{c} = ({rest}) / {};", dims[k]);
            rest = format!("q{c}");
        }
    }
}

/// Declarations of `in0, ..` and `out0, ..`.
pub fn bindings(reads: usize, writes: usize) -> String {
    let mut text = String::new();
    for k in 0..reads {
        let _ = writeln!(text, "@group(0) @binding({k}) var<storage, read> in{k}: array<u32>;");
    }
    for k in 0..writes {
        let _ = writeln!(text, "@group(0) @binding({}) var<storage, read_write> out{k}: array<u32>;", reads + k);
    }
    text
}

/// Words of immediates that a pass has for itself, beside those of every pass: the number of its first workgroup, and how many are in a row.
pub const WORDS: usize = 26;
/// The struct of immediates (Direct3D supports no other form), with the words that `text` names.
fn immediates(text: &str) -> String {
    let words = (0..WORDS).rev().find(|k| text.contains(&word(*k))).map_or(0, |last| last + 1);
    let fields: String = (0..words).map(|k| format!(", p{k:02}: u32")).collect();
    format!("struct Immediates {{ base: u32, width: u32{fields} }}\nvar<immediate> immediates: Immediates;\n")
}
/// A word of the pass.
pub fn word(k: usize) -> String {
    format!("immediates.p{k:02}")
}
/// A statement that names the first four words.
pub fn parameters(name: &str) -> String {
    format!("let {name} = vec4<u32>({}, {}, {}, {});\n", word(0), word(1), word(2), word(3))
}

/// A shader over plain bindings; `t` is the number of the invocation.
pub fn entry(reads: usize, writes: usize, size: u32, body: &str) -> String {
    wrapped(bindings(reads, writes), size, body)
}

/// A shader with one output of `len` elements of `d` after declarations `head`: `element` writes statements that find element `i` and gives its lane.
pub fn each(
    head: String,
    d: DType,
    len: usize,
    limits: Limits,
    element: impl Fn(&mut String) -> String,
) -> (String, (u32, u32)) {
    let in_word = per_word(d);
    let threads = len.div_ceil(in_word);
    let groups = limits.groups_for(threads);
    let mut body = format!(
        "if (t >= {threads}) {{ return; }}\nvar w: u32 = 0u;\nfor (var j = 0; j < {in_word}; j++) {{\nlet i = t * {in_word} + j;\n"
    );
    let _ = writeln!(body, "if (i >= {len}) {{ break; }}");
    let value = element(&mut body);
    let _ = writeln!(body, "w |= {} << (u32(j) * {}u);\n}}\nout0[t] = w;", to_word(d, &value), 32 / in_word % 32);
    (wrapped(head, limits.workgroup, &body), groups)
}

/// Like [`entry`], after `declarations` of one's own.
pub fn wrapped(mut text: String, size: u32, body: &str) -> String {
    let immediates = immediates(&format!("{text}{body}"));
    let _ = write!(
        text,
        "{immediates}var<private> zero: u32;\n@compute @workgroup_size({size}) fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {{\n\
         zero = workgroup.z;\nlet group = i32(workgroup.y * immediates.width + workgroup.x + immediates.base);\nlet t = group * {size} + i32(local);\n{body}}}\n"
    );
    let functions = prelude::needed(&text);
    functions + &text
}
