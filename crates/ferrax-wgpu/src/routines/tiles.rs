//! Tiles of products: 64 by 64 sums for a workgroup of 256, or 128 by 128 where there are many; 4 by 4 or 8 by 8 for each invocation.
//!
//! ```text
//!     an invocation's rows, of 128:   4 i .. 4 i + 4,  64 + 4 i .. 64 + 4 i + 4        i = 0..16; columns in the same way
//! ```
//! Operands are staged in the workgroup's memory, four elements of neighbouring rows (or columns) at a time, term by term. The elements of the next
//! terms are loaded before the sums of these, so that loads and sums overlap.
//!
//! INVARIANT: terms are added in increasing order, whatever the tile.
use crate::task::{Limits, Reg, bound};
use crate::wgsl::epilogue::Epilogue;
use crate::wgsl::{self, Lowered, lane};
use ferrax_kernel::{DType, Error, Res, Scalar};
use std::fmt::Write;

/// Sums of a small tile, in each direction.
pub const TILE: usize = 64;
/// Invocations in each direction.
const SIDE: usize = TILE / 4;
/// Workgroups from which tiles are large.
const MANY: usize = 128;

/// A batch of products, tile by tile, or several of one size: parts, which share no sums.
pub struct Tiles<'a> {
    pub b: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Of the sums.
    pub acc: DType,
    /// Whether neighbouring invocations read neighbouring terms of an operand, in place of rows.
    pub terms_first: [bool; 2],
    pub parts: Vec<Part<'a>>,
}

/// Statements that set `x` to the element of an array, of batch `b`, of a row or column, and of a term.
pub type Element<'a> = Box<dyn Fn(&str, &str, &str) -> String + 'a>;

pub struct Part<'a> {
    /// What is computed of the sums and stored: rows of its results are whole words.
    pub epilogue: &'a Epilogue,
    /// What its kernel reads and writes.
    pub ins: Vec<Reg>,
    pub outs: Vec<Reg>,
    pub operands: [Reg; 2],
    pub elements: [Element<'a>; 2],
}

/// How a tile lies in memory.
#[derive(Clone, Copy)]
struct Layout {
    /// Groups of four rows of an invocation.
    quads: usize,
}
impl Layout {
    fn tile(self) -> usize {
        self.quads * TILE
    }
    /// Terms that are staged at a time.
    fn depth(self) -> usize {
        16 / self.quads
    }
    /// Groups of four from one staged term to the next; one more than a tile has, so that terms lie in different banks.
    fn pitch(self) -> usize {
        self.quads * SIDE + 1
    }
}

impl Tiles<'_> {
    fn layout(&self) -> Layout {
        let large = self.parts.len() * self.b * self.m.div_ceil(2 * TILE) * self.n.div_ceil(2 * TILE);
        let fills = self.m > TILE && self.n > TILE;
        Layout { quads: if fills && large >= MANY { 2 } else { 1 } }
    }
    /// Adds the pass.
    ///
    /// # Errors
    /// Those of the epilogues; `Unsupported` for more arrays than the device binds.
    pub fn run(&self, task: &mut Lowered, limits: Limits) -> Res<()> {
        let layout = self.layout();
        let tiles = self.parts.len() * self.b * self.m.div_ceil(layout.tile()) * self.n.div_ceil(layout.tile());
        let groups = crate::task::fold(tiles as u64, limits.groups);
        let sums = layout.tile() * layout.tile() * self.k;
        let elements = (self.b * self.m * self.n) as u64;
        let work = 4 * (groups.0 as u64 * groups.1 as u64).saturating_mul(sums as u64)
            + self.parts.iter().map(|p| elements.saturating_mul(p.epilogue.work())).sum::<u64>();
        let (mut reads, mut outs, mut words, mut stores) = (vec![], vec![], vec![], vec![]);
        for p in &self.parts {
            words.push(p.operands.map(|r| format!("in{}", bound(&mut reads, r))));
            stores.push(p.epilogue.store(p.epilogue.reads(&mut reads, &p.ins), outs.len(), limits)?);
            outs.extend(&p.outs);
        }
        if reads.len() + outs.len() > limits.buffers {
            return Err(Error::Unsupported(format!("a product with {} arrays", reads.len() + outs.len())));
        }
        let store = self.store(layout, &by_part(stores));
        let text = self.text(layout, tiles, wgsl::bindings(reads.len(), outs.len()), &words, &store);
        task.run_long(text, reads, outs, groups, work);
        Ok(())
    }

    /// Statements that load four elements of one term of operand `number`, which the parts have in `words`, into `name`.
    fn load(&self, l: Layout, name: &str, [first, limit]: [&str; 2], words: &[[String; 2]], number: usize) -> String {
        let across = l.tile() / 4;
        let of_part = |(p, words): (&Part, &[String; 2])| (p.elements[number])(&words[number], "row", "k");
        let set = by_part(self.parts.iter().zip(words).map(of_part).collect());
        let (quad, term) = if self.terms_first[number] {
            (format!("i32(local) / {}", l.depth()), format!("i32(local) % {}", l.depth()))
        } else {
            (format!("i32(local) % {across}"), format!("i32(local) / {across}"))
        };
        let t = lane(self.acc);
        let mut text = format!("{{\nlet quad = {quad};\nlet term = {term};\nlet k = next + term;\n");
        for c in 0..4 {
            let _ = writeln!(
                text,
                "{{\nlet row = {first} + quad * 4 + {c};\nvar x = {t}(0);\nif (row < {limit} && k < {}) {{ {} }}\n{name}[{c}] = x;\n}}",
                self.k, set
            );
        }
        let _ = writeln!(text, "{name}_at = term * {} + quad;\n}}", l.pitch());
        text
    }
    /// Statements that take the sums of an invocation, four at a time, as `sums`, those of elements `at` to `end`.
    fn store(&self, l: Layout, finish: &str) -> String {
        let (vectors, m, n) = (4 * l.quads * l.quads, self.m, self.n);
        let mut text = format!("for (var v = 0; v < {vectors}; v++) {{\nvar sums = s0_0;\nswitch (v) {{\n");
        for v in 1..vectors {
            let _ = writeln!(text, "case {v}: {{ sums = s{}_{}; }}", v / l.quads, v % l.quads);
        }
        let _ = writeln!(
            text,
            "default: {{}}
}}
let m = m0 + v / {} * {TILE} + v / {} % 4 + my_m * 4;
let n = n0 + v % {} * {TILE} + my_n * 4;
if (m < {m}) {{
let at = (b * {m} + m) * {n} + n;
let end = (b * {m} + m + 1) * {n};
{finish}}}
}}",
            4 * l.quads,
            l.quads,
            l.quads,
        );
        text
    }
    fn text(&self, l: Layout, tiles: usize, bindings: String, words: &[[String; 2]], store: &str) -> String {
        let (t, tile, depth, pitch) = (lane(self.acc), l.tile(), l.depth(), l.pitch());
        let (mt, nt) = (self.m.div_ceil(tile), self.n.div_ceil(tile));
        let lhs = self.load(l, "xv", ["m0", &self.m.to_string()], words, 0);
        let rhs = self.load(l, "yv", ["n0", &self.n.to_string()], words, 1);
        let zero = wgsl::constant(Scalar::zero(self.acc));
        let (mut sums, mut reads, mut products) = (String::new(), String::new(), String::new());
        for q in 0..l.quads {
            let _ = writeln!(reads, "let x{q} = xs[kk * {pitch} + {} + my_m];", q * SIDE);
            let _ = writeln!(reads, "let y{q} = ys[kk * {pitch} + {} + my_n];", q * SIDE);
        }
        for (u, v) in (0..4 * l.quads).flat_map(|u| (0..l.quads).map(move |v| (u, v))) {
            let _ = writeln!(sums, "var s{u}_{v} = vec4<{t}>({zero});");
            let _ = writeln!(products, "s{u}_{v} += x{}[{}] * y{v};", u / 4, u % 4);
        }
        let part = match self.parts.len() {
            1 => "let mine = group;".to_string(),
            parts => format!("let part = group / {0};\nlet mine = group % {0};", tiles / parts),
        };
        let body = format!(
            "if (group >= {tiles}) {{ return; }}
{part}
let b = mine / {per_batch};
let m0 = (mine % {per_batch}) / {nt} * {tile};
let n0 = mine % {nt} * {tile};
let my_m = i32(local) / {SIDE};
let my_n = i32(local) % {SIDE};
var xv: vec4<{t}>;
var yv: vec4<{t}>;
var xv_at = 0;
var yv_at = 0;
{sums}for (var k0 = -{depth}; k0 < {k}; k0 += {depth}) {{
let next = k0 + {depth};
{lhs}{rhs}if (k0 >= 0) {{
for (var kk = 0; kk < {depth}; kk++) {{
{reads}{products}}}
}}
workgroupBarrier();
xs[xv_at] = xv;
ys[yv_at] = yv;
workgroupBarrier();
}}
{store}",
            per_batch = mt * nt,
            k = self.k,
        );
        let size = depth * pitch;
        let shared =
            format!("var<workgroup> xs: array<vec4<{t}>, {size}>;\nvar<workgroup> ys: array<vec4<{t}>, {size}>;\n");
        wgsl::wrapped(bindings + &shared, 256, &body)
    }
}

/// The statements of each part, of which one is the invocation's.
fn by_part(all: Vec<String>) -> String {
    if all.iter().all(|text| *text == all[0]) {
        return all.into_iter().next().unwrap_or_default();
    }
    let last = all.len() - 1;
    let mut text = "switch (part) {\n".to_string();
    for (k, statements) in all.iter().enumerate() {
        let case = if k == last { "default".to_string() } else { format!("case {k}") };
        let _ = writeln!(text, "{case}: {{\n{statements}\n}}");
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many times 32 banks of a word are used, for the vectors of four words at which 32 invocations read or write: eight of them at a time, each
    /// vector once.
    fn wavefronts(at: impl Fn(usize) -> usize) -> usize {
        let all: Vec<usize> = (0..32).map(at).collect();
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let of_bank = |bank: usize| distinct.iter().filter(|at| **at % 8 == bank).count();
        (0..8).map(of_bank).max().unwrap_or(0)
    }

    #[test]
    fn no_vectors_conflict_and_each_serves_many_sums() {
        for quads in [1, 2] {
            let l = Layout { quads };
            for first in (0..256).step_by(32) {
                let mut reads = 0;
                for q in 0..quads {
                    let (rows, columns) = (|i| q * SIDE + (first + i) / SIDE, |i| q * SIDE + (first + i) % SIDE);
                    assert_eq!((wavefronts(rows), wavefronts(columns)), (1, 2), "no more than the distinct words take");
                    reads += wavefronts(rows) + wavefronts(columns);
                }
                assert!(16 * quads * quads >= 4 * reads, "{quads}: {reads} wavefronts for {} sums", 16 * quads * quads);
                let (depth, across) = (l.depth(), l.tile() / 4);
                let by_terms = |i: usize| (first + i) % depth * l.pitch() + (first + i) / depth;
                let by_rows = |i: usize| (first + i) / across * l.pitch() + (first + i) % across;
                assert_eq!((wavefronts(by_terms), wavefronts(by_rows)), (4, 4), "128 words are four wavefronts");
            }
            // two operations for each product; each staged word is four bytes
            let flops = 2 * l.tile() * l.tile() * l.depth();
            assert!(flops >= 16 * quads * (2 * 4 * l.tile() * l.depth()));
            assert!(2 * 16 * l.depth() * l.pitch() <= 16384, "the least workgroup memory of WebGPU");
        }
    }
}
