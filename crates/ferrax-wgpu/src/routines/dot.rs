//! Products: tiles of 64 by 64 by 16, with 4 by 4 sums for each invocation; smaller products are kernels.
//! If there are few tiles and the sums are long, workgroups take parts of the sums, and a kernel adds those.
use super::{in_lanes, load};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered, lane, scalar};
use ferrax_kernel::kernel::{Affine, Kernel, Node};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Bin, DType, Error, ReduceKind, Res, Scalar};

pub const TILE: usize = 64;
const DEPTH: usize = 16;
/// Elements of a row of a staged tile; one more than needed, so that columns lie in different banks.
const PITCH: usize = TILE + 1;
/// Workgroups from which more of them are no faster, and terms of a part of a sum, at least.
pub const WORKGROUPS: usize = 256;
pub const MIN_TERMS: usize = 256;

pub fn lower(d: &Dot, limits: Limits) -> Res<Lowered> {
    for (n, strides) in [([d.b, d.m, d.k], d.lhs), ([d.b, d.k, d.n], d.rhs)] {
        let span: i64 = n
            .iter()
            .zip(strides)
            .map(|(n, s)| (*n as i64 - 1).max(0).saturating_mul(s.abs()))
            .fold(0, i64::saturating_add);
        if span > i32::MAX as i64 {
            return Err(Error::Unsupported(format!(
                "dot: an operand spans {span} elements, more than a shader can count"
            )));
        }
    }
    if d.m < 16 || d.n < 16 || d.k < 8 || d.dtype == DType::Bool || limits.workgroup < 256 {
        return as_kernel(d, limits);
    }
    let mut task = Lowered::default();
    let out = d.out;
    let parts = parts(d);
    if parts > 1 {
        in_parts(&mut task, d, parts, limits)?;
        return Ok(task);
    }
    // The sums as they leave the tile: at the result's lane.
    in_lanes(&mut task, out, d.b * d.m * d.n, limits, |task, to| {
        let (text, groups) = of_matrices(d, if out.size() == 4 { out } else { out.lane() }, limits);
        let work = 4 * (groups.0 as u64 * groups.1 as u64).saturating_mul((TILE * TILE * d.k) as u64);
        task.run_long(text, vec![Reg::In(0), Reg::In(1)], vec![to], groups, work);
        Ok(())
    })?;
    Ok(task)
}

/// In how many parts the sums are taken: a power of two that divides them.
fn parts(d: &Dot) -> usize {
    let tiles = d.m.div_ceil(TILE) * d.n.div_ceil(TILE);
    let mut parts = 1;
    while d.b == 1 && parts * tiles < WORKGROUPS && d.k.is_multiple_of(2 * parts) && d.k / (2 * parts) >= MIN_TERMS {
        parts *= 2;
    }
    parts
}

/// Each part of the sums is a product of a batch; a kernel adds them.
fn in_parts(task: &mut Lowered, d: &Dot, parts: usize, limits: Limits) -> Res<()> {
    let (acc, elements, k) = (accumulator(d.dtype, d.out), d.m * d.n, d.k / parts);
    let part = Dot {
        b: parts,
        k,
        lhs: [d.lhs[2] * k as i64, d.lhs[1], d.lhs[2]],
        rhs: [d.rhs[1] * k as i64, d.rhs[1], d.rhs[2]],
        out: acc,
        ..d.clone()
    };
    let (text, groups) = of_matrices(&part, acc, limits);
    let work = 4 * (groups.0 as u64 * groups.1 as u64).saturating_mul((TILE * TILE * k) as u64);
    let sums = task.add_scratch(acc.size() * parts * elements);
    task.run_long(text, vec![Reg::In(0), Reg::In(1)], vec![sums], groups, work);
    let all = Kernel {
        grid: [elements].into(),
        rdims: [parts].into(),
        inputs: vec![(acc, parts * elements)],
        nodes: vec![
            load(0, Affine::new(0, [1, elements as i64]), vec![], Scalar::zero(acc)),
            (acc, Node::Reduce { kind: ReduceKind::Sum, of: 0 }),
            (d.out, Node::Convert(1)),
        ],
        outputs: vec![2],
    };
    task.include(wgsl::lower(&all, limits)?, &[sums], &[Reg::Out(0)]);
    Ok(())
}

/// The dtype of the accumulator.
fn accumulator(d: DType, out: DType) -> DType {
    match (d, out) {
        (DType::Bool, DType::Bool) => DType::Bool,
        _ if out.is_float() && !d.is_float() => DType::F32,
        _ => d.lane(),
    }
}

/// Grid (b, m, n), reduced over k.
pub fn as_kernel(d: &Dot, limits: Limits) -> Res<Lowered> {
    let [lb, lm, lk] = d.lhs;
    let [rb, rk, rn] = d.rhs;
    let acc = accumulator(d.dtype, d.out);
    let x = load(0, Affine::new(0, [lb, lm, 0, lk]), vec![], Scalar::zero(d.dtype));
    let y = load(1, Affine::new(0, [rb, 0, rn, rk]), vec![], Scalar::zero(d.dtype));
    let (product, sum) = if acc == DType::Bool { (Bin::And, ReduceKind::Or) } else { (Bin::Mul, ReduceKind::Sum) };
    let k = Kernel {
        grid: [d.b, d.m, d.n].into(),
        rdims: [d.k].into(),
        inputs: ferrax_kernel::Routine::Dot(d.clone()).operands(),
        nodes: vec![
            x,
            y,
            (acc, Node::Convert(0)),
            (acc, Node::Convert(1)),
            (acc, Node::Bin(product, 2, 3)),
            (acc, Node::Reduce { kind: sum, of: 4 }),
            (d.out, Node::Convert(5)),
        ],
        outputs: vec![6],
    };
    wgsl::lower(&k, limits)
}

/// A batch of products, tile by tile.
pub struct Tiles<'a> {
    pub b: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Of the sums, and of what is stored of them.
    pub acc: DType,
    pub out: DType,
    /// Statements that set `x` to the element of batch `b`, of a row or column, and of a term.
    pub lhs: &'a dyn Fn(&str, &str) -> String,
    pub rhs: &'a dyn Fn(&str, &str) -> String,
    /// Whether neighbouring invocations read neighbouring terms of an operand, in place of rows.
    pub terms_first: [bool; 2],
}
/// The product of matrices with strides.
fn of_matrices(d: &Dot, out: DType, limits: Limits) -> (String, (u32, u32)) {
    let acc = accumulator(d.dtype, d.out);
    let of = |words: &str, [of_b, of_row, of_term]: [i64; 3], row: &str, term: &str| {
        let x = wgsl::load(d.dtype, words, 0, &format!("b * ({of_b}) + {row} * ({of_row}) + {term} * ({of_term})"));
        format!("x = {};", scalar::convert(d.dtype, acc, &x))
    };
    let tiles = Tiles {
        b: d.b,
        m: d.m,
        n: d.n,
        k: d.k,
        acc,
        out,
        lhs: &|row, term| of("in0", d.lhs, row, term),
        rhs: &|row, term| of("in1", [d.rhs[0], d.rhs[2], d.rhs[1]], row, term),
        terms_first: [d.lhs[2] == 1, d.rhs[1] == 1],
    };
    tiles.text(limits)
}
impl Tiles<'_> {
    /// Text for one workgroup of 256 a tile.
    pub fn text(&self, limits: Limits) -> (String, (u32, u32)) {
        tiles(self, limits)
    }
}
fn tiles(d: &Tiles, limits: Limits) -> (String, (u32, u32)) {
    let (acc, out) = (d.acc, d.out);
    let t = lane(acc);
    let (mt, nt) = (d.m.div_ceil(TILE), d.n.div_ceil(TILE));
    let n_tiles = d.b * mt * nt;
    let groups = crate::task::fold(n_tiles as u64, limits.groups);
    let stage = |name: &str, rows: &str, limit: usize, set: &dyn Fn(&str, &str) -> String, terms_first: bool| {
        let (row, k) = if terms_first {
            (format!("e / {DEPTH}"), format!("e % {DEPTH}"))
        } else {
            (format!("e % {TILE}"), format!("e / {TILE}"))
        };
        format!(
            "for (var q = 0; q < {per}; q++) {{
  let e = q * 256 + i32(local);
  let row = {row};
  let kk = {k};
  var x = {t}(0);
  if ({rows} + row < {limit} && k0 + kk < {depth}) {{ {set} }}
  {name}[kk * {PITCH} + row] = x;
}}
",
            per = TILE * DEPTH / 256,
            depth = d.k,
            set = set(&format!("({rows} + row)"), "(k0 + kk)"),
        )
    };
    let lhs = stage("xs", "m0", d.m, d.lhs, d.terms_first[0]);
    let rhs = stage("ys", "n0", d.n, d.rhs, d.terms_first[1]);
    let store = wgsl::to_word(out, &scalar::convert(acc, out, "sums[u * 4 + v]"));
    let body = format!(
        "if (group >= {n_tiles}) {{ return; }}
let b = group / {per_batch};
let m0 = (group % {per_batch}) / {nt} * {TILE};
let n0 = group % {nt} * {TILE};
let my_m = i32(local) / 16 * 4;
let my_n = i32(local) % 16 * 4;
var sums: array<{t}, 16>;
for (var u = 0; u < 16; u++) {{ sums[u] = {zero}; }}
for (var k0 = 0; k0 < {depth}; k0 += {DEPTH}) {{
{lhs}{rhs}workgroupBarrier();
for (var kk = 0; kk < {DEPTH}; kk++) {{
  let at_m = kk * {PITCH} + my_m;
  let at_n = kk * {PITCH} + my_n;
  let x = vec4<{t}>(xs[at_m], xs[at_m + 1], xs[at_m + 2], xs[at_m + 3]);
  let y = vec4<{t}>(ys[at_n], ys[at_n + 1], ys[at_n + 2], ys[at_n + 3]);
{products}}}
workgroupBarrier();
}}
for (var u = 0; u < 4; u++) {{
for (var v = 0; v < 4; v++) {{
  let m = m0 + my_m + u;
  let n = n0 + my_n + v;
  if (m < {m} && n < {n}) {{ out0[(b * {m} + m) * {n} + n] = {store}; }}
}}
}}
",
        per_batch = mt * nt,
        zero = wgsl::constant(Scalar::zero(acc)),
        depth = d.k,
        m = d.m,
        n = d.n,
        products = (0..16).map(|i| format!("  sums[{i}] += x[{}] * y[{}];\n", i / 4, i % 4)).collect::<String>(),
    );
    let size = DEPTH * PITCH;
    let shared = format!("var<workgroup> xs: array<{t}, {size}>;\nvar<workgroup> ys: array<{t}, {size}>;\n");
    (wgsl::wrapped(wgsl::bindings(2, 1) + &shared, 256, &body), groups)
}
