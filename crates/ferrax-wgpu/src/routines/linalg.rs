//! `Linalg`: Cholesky and LU factors, triangular systems and exchanges of rows, of real matrices that a workgroup's memory holds; one workgroup for
//! each, or for some right-hand sides of it. Of larger ones ([`blocked`]) Cholesky factors and triangular systems. The host has the others.
//!
//! ```text
//!     for k:    pivot, column k behind it by the pivot        barrier        rows and columns behind k less column k times row k        barrier
//! ```
mod blocked;

use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::linalg::{Decomposition, Linalg, Triangle};
use ferrax_kernel::{DType, Error, Res};
use std::fmt::Write;

/// Words of memory that each device's workgroups have.
const WORDS: usize = 4096;
/// Invocations that look for a pivot.
const SEEKERS: usize = 64;

/// Whether shaders have it.
pub fn has(l: &Linalg) -> bool {
    (is_small(l) || in_blocks(l)) && l.dtype == DType::F32 && !l.complex
}
/// Whether the memory of a workgroup holds it.
fn is_small(l: &Linalg) -> bool {
    words(l).is_some_and(|n| n <= WORDS)
}
/// Whether it can be done a block of columns at a time.
fn in_blocks(l: &Linalg) -> bool {
    match l.kind {
        _ if l.m == 0 || l.n == 0 => false,
        Decomposition::Cholesky => blocked::has(l.n, l.batch * l.n * l.n),
        Decomposition::Solve(t) => blocked::has(order(t, l), l.batch * l.m.max(l.n) * order(t, l)),
        _ => false,
    }
}
/// Words that a workgroup needs, for decompositions that one can do.
fn words(l: &Linalg) -> Option<usize> {
    match l.kind {
        _ if l.m == 0 || l.n == 0 => None,
        Decomposition::Cholesky => Some(l.n * l.n + 1),
        Decomposition::Lu => Some(l.m * l.n + l.m + 2 * SEEKERS),
        Decomposition::Permutation => Some(l.m),
        Decomposition::Solve(t) => {
            let n = order(t, l);
            Some(n * n + n)
        }
        _ => None,
    }
}
/// Rows of the matrix of a triangular system.
fn order(t: Triangle, l: &Linalg) -> usize {
    if t.left { l.m } else { l.n }
}

pub fn lower(l: &Linalg, limits: Limits) -> Res<Lowered> {
    if !has(l) || 4 * WORDS > limits.shared {
        return Err(Error::Unsupported(format!("{:?} of {} by {} runs on the host", l.kind, l.m, l.n)));
    }
    match l.kind {
        Decomposition::Cholesky if !is_small(l) => blocked::cholesky(l, limits),
        Decomposition::Solve(t) if !is_small(l) => blocked::solve(t, l, limits),
        Decomposition::Cholesky => Ok(cholesky(l, limits)),
        Decomposition::Lu => Ok(lu(l, limits)),
        Decomposition::Permutation => Ok(permutation(l, limits)),
        Decomposition::Solve(t) => Ok(solve(t, l, limits)),
        _ => Err(Error::Unsupported(format!("{:?} runs on the host", l.kind))),
    }
}

/// A pass of so many workgroups, of which each has so much to do at a time.
fn task(l: &Linalg, head: &str, body: &str, [reads, writes, groups, elements]: [usize; 4], limits: Limits) -> Lowered {
    let mut task = Lowered::default();
    let size = if elements <= 1024 { 64 } else { limits.workgroup };
    let body = format!("if (group >= {groups}) {{ return; }}\n{}", body.replace(SIZE, &size.to_string()));
    let text = wgsl::wrapped(wgsl::bindings(reads, writes) + head, size, &body);
    let (ins, outs) = ((0..reads).map(Reg::In).collect(), (0..writes).map(Reg::Out).collect());
    let work = 16 * l.operations().saturating_mul(l.batch as u64);
    task.run_long(text, ins, outs, crate::task::fold(groups as u64, limits.groups), work);
    task
}
/// In a text, how many invocations a workgroup has.
const SIZE: &str = "SIZE";
/// A statement for all of so many elements `e`, which the invocations share.
fn each(n: &str, statements: &str) -> String {
    format!("for (var e = i32(local); e < {n}; e += SIZE) {{\n{statements}}}\n")
}
/// A statement that divides a number, rounded once.
fn divided(x: &str, by: &str) -> String {
    format!("{x} = divide({x}, {by});\n")
}
const BARRIER: &str = "workgroupBarrier();\n";

/// Statements that factor the matrix of order `n` in memory `a`; a pivot that is not positive and finite sets `failed`.
fn factor(n: usize) -> String {
    let column = each(&format!("{n} - 1 - k"), &divided(&format!("a[(k + 1 + e) * {n} + k]"), "pivot"));
    let behind = each(
        "w * w",
        &format!(
            "let i = k + 1 + e / w;\nlet j = k + 1 + e % w;\nif (j <= i) {{ a[i * {n} + j] -= a[i * {n} + k] * a[j * {n} + k]; }}\n"
        ),
    );
    format!(
        "if (local == 0u) {{ failed = 0u; }}
{BARRIER}for (var k = 0; k < {n}; k++) {{
let d = a[k * {n} + k];
let pivot = root(d);
{BARRIER}if (local == 0u) {{
let word = bitcast<u32>(d);
if (word == 0u || word >= 0x7f800000u) {{ failed = 1u; }}
a[k * {n} + k] = pivot;
}}
{column}{BARRIER}let w = {n} - 1 - k;
{behind}{BARRIER}}}
"
    )
}
/// One workgroup a matrix, in memory `a`; a pivot that is not positive and finite makes all nan.
fn cholesky(l: &Linalg, limits: Limits) -> Lowered {
    let n = l.n;
    let all = (n * n).to_string();
    let head = format!("var<workgroup> a: array<f32, {all}>;\nvar<workgroup> failed: u32;\n");
    let load = each(&all, &format!("a[e] = bitcast<f32>(in0[group * {all} + e]);\n"));
    let store = each(
        &all,
        &format!(
            "var word = select(bitcast<u32>(a[e]), 0x7fc00000u, failed != 0u);\nif (e % {n} > e / {n}) {{ word = 0u; }}\nout0[group * {all} + e] = word;\n"
        ),
    );
    let body = format!("{load}{}{store}", factor(n));
    task(l, &head, &body, [1, 1, l.batch, n * n], limits)
}

/// One workgroup a matrix. The pivot is the greatest of its column, the first of equals; of nans, only one that is there already.
fn lu(l: &Linalg, limits: Limits) -> Lowered {
    let (m, n, least) = (l.m, l.n, l.m.min(l.n));
    let all = (m * n).to_string();
    let head = format!(
        "var<workgroup> a: array<f32, {all}>;\nvar<workgroup> order: array<i32, {m}>;\nvar<workgroup> sizes: array<u32, {SEEKERS}>;\nvar<workgroup> rows: array<i32, {SEEKERS}>;\n"
    );
    let load = each(&all, &format!("a[e] = bitcast<f32>(in0[group * {all} + e]);\n"))
        + &each(&m.to_string(), "order[e] = e;\n");
    let exchange = each(
        &n.to_string(),
        &format!("let x = a[k * {n} + e];\na[k * {n} + e] = a[p * {n} + e];\na[p * {n} + e] = x;\n"),
    );
    let column = each(&format!("{m} - 1 - k"), &divided(&format!("a[(k + 1 + e) * {n} + k]"), "pivot"));
    let behind = each(
        &format!("({m} - 1 - k) * w"),
        &format!(
            "let i = k + 1 + e / w;\nlet j = k + 1 + e % w;\na[i * {n} + j] -= a[i * {n} + k] * a[k * {n} + j];\n"
        ),
    );
    let body = format!(
        "{load}{BARRIER}for (var k = 0; k < {least}; k++) {{
{}if (local == 0u) {{
let x = order[k];
order[k] = order[p];
order[p] = x;
out1[group * {least} + k] = u32(p);
}}
if (p != k) {{
{exchange}}}
{BARRIER}let pivot = a[k * {n} + k];
let is_none = (bitcast<u32>(pivot) << 1u) == 0u;
let w = {n} - 1 - k;
if (!is_none) {{
{column}}}
{BARRIER}if (!is_none && w > 0) {{
{behind}}}
{BARRIER}}}
{}{}",
        pivot(m, n),
        each(&all, &format!("out0[group * {all} + e] = bitcast<u32>(a[e]);\n")),
        each(&m.to_string(), &format!("out2[group * {m} + e] = u32(order[e]);\n")),
    );
    task(l, &head, &body, [1, 3, l.batch, m * n], limits)
}
/// Statements for `p`, the row of the pivot of column `k`.
fn pivot(m: usize, n: usize) -> String {
    let mut text = format!(
        "if (local < {SEEKERS}u) {{
var most = 0u;
var best = {m};
for (var i = k + i32(local); i < {m}; i += {SEEKERS}) {{
var size = bitcast<u32>(a[i * {n} + k]) & 0x7fffffffu;
if (size > 0x7f800000u) {{ size = select(0u, 0xffffffffu, i == k); }}
if (size > most || best == {m}) {{
most = size;
best = i;
}}
}}
sizes[local] = most;
rows[local] = best;
}}
{BARRIER}"
    );
    let mut width = SEEKERS / 2;
    while width > 0 {
        let _ = write!(
            text,
            "if (local < {width}u) {{
let other = local + {width}u;
if (sizes[other] > sizes[local] || (sizes[other] == sizes[local] && rows[other] < rows[local])) {{
sizes[local] = sizes[other];
rows[local] = rows[other];
}}
}}
{BARRIER}"
        );
        width /= 2;
    }
    text + "let p = rows[0];\n"
}

/// One workgroup a matrix.
fn permutation(l: &Linalg, limits: Limits) -> Lowered {
    let (m, n) = (l.m, l.n);
    let all = m.to_string();
    let body = format!(
        "{}{BARRIER}if (local == 0u) {{
for (var i = 0; i < {n}; i++) {{
let p = bitcast<i32>(in0[group * {n} + i]);
if (p >= 0 && p < {m}) {{
let x = order[i];
order[i] = order[p];
order[p] = x;
}}
}}
}}
{BARRIER}{}",
        each(&all, "order[e] = e;\n"),
        each(&all, &format!("out0[group * {m} + e] = u32(order[e]);\n")),
    );
    task(l, &format!("var<workgroup> order: array<i32, {m}>;\n"), &body, [1, 1, l.batch, m], limits)
}

/// One workgroup for some columns of the right-hand sides of a matrix: a system from the right is one of both transposed.
fn solve(t: Triangle, l: &Linalg, limits: Limits) -> Lowered {
    let n = order(t, l);
    let columns = if t.left { l.n } else { l.m };
    let tile = ((WORDS - n * n) / n).min(columns);
    let tiles = columns.div_ceil(tile);
    let lower = (t.lower != t.transpose) == t.left;
    let a = |i: &str, j: &str| {
        if t.transpose == t.left { format!("a[{j} * {n} + {i}]") } else { format!("a[{i} * {n} + {j}]") }
    };
    let (held, square) = ((n * tile).to_string(), (n * n).to_string());
    let (place, at) = if t.left {
        (format!("let r = e / {tile};\nlet c = e % {tile};\n"), format!("r * {columns} + first + c"))
    } else {
        (format!("let r = e % {n};\nlet c = e / {n};\n"), format!("(first + c) * {n} + r"))
    };
    let moved = |statement: &str| {
        let at = format!("let at = matrix * {} + {at};\n", n * columns);
        each(&held, &format!("{place}if (first + c < {columns}) {{\n{at}{statement}}}\n"))
    };
    let by_pivot = match t.unit {
        true => String::new(),
        false => each(&tile.to_string(), &divided(&format!("b[i * {tile} + e]"), &a("i", "i"))) + BARRIER,
    };
    let rest = each(
        &format!("({n} - 1 - step) * {tile}"),
        &format!(
            "let r = e / {tile}{};\nlet c = e % {tile};\nb[r * {tile} + c] -= {} * b[i * {tile} + c];\n",
            if lower { " + i + 1" } else { "" },
            a("r", "i")
        ),
    );
    let body = format!(
        "let matrix = group / {tiles};
let first = group % {tiles} * {tile};
{}{}{BARRIER}for (var step = 0; step < {n}; step++) {{
let i = {};
{by_pivot}{rest}{BARRIER}}}
{}",
        each(&square, &format!("a[e] = bitcast<f32>(in0[matrix * {square} + e]);\n")),
        moved(&format!("b[r * {tile} + c] = bitcast<f32>(in1[at]);\n")),
        if lower { "step".to_string() } else { format!("{} - step", n - 1) },
        moved(&format!("out0[at] = bitcast<u32>(b[r * {tile} + c]);\n")),
    );
    let head = format!("var<workgroup> a: array<f32, {square}>;\nvar<workgroup> b: array<f32, {held}>;\n");
    task(l, &head, &body, [2, 1, l.batch * tiles, n * tile], limits)
}
