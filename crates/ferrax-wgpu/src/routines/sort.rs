//! `Sort`: a bitonic network over positions, ordered by their keys and then by themselves (which makes it stable); then all operands
//! are gathered.
//!
//! Rows are padded to a power of two with positions beyond their end, which come last. Steps that stay within 512 positions run in
//! one pass, in memory shared by a workgroup.
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered, lane, load};
use ferrax_kernel::{DType, Res};
use std::fmt::Write;

pub fn lower([outer, n, inner]: [usize; 3], dtypes: &[DType], num_keys: usize, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered::default();
    let rows = outer * inner;
    let padded = n.next_power_of_two();
    let total = rows * padded;
    if total > 1 << 30 {
        return Err(ferrax_kernel::Error::Unsupported(format!(
            "sort: {total} positions are more than a shader can count"
        )));
    }
    let chunk = 2 * limits.workgroup as usize;
    let order = task.add_scratch(4 * total);
    let keys: Vec<Reg> = (0..num_keys).map(Reg::In).collect();
    let local_groups = crate::task::fold(total.div_ceil(chunk) as u64, limits.groups);
    let local = within_chunks(dtypes, [n, inner, padded, total, num_keys], limits);
    let pair_groups = limits.groups_for(total / 2);
    let far = one_step(dtypes, [n, inner, padded, total, num_keys], limits);
    // A step compares each pair, and computes the positions of its elements.
    let step = total as u64 / 2 * (16 + 24 * num_keys as u64);
    let steps = near(chunk).min(near(padded));
    // Immediates: stages from k to k, and whether positions are to be made first.
    let near_end = padded.min(chunk) as u32;
    task.run_with(
        local.clone(),
        keys.clone(),
        vec![order],
        local_groups,
        vec![2, near_end, 1, 0],
        steps * (steps + 1) / 2 * step,
    );
    let mut k = 2 * chunk;
    while k <= padded {
        let mut j = k / 2;
        while j >= chunk {
            task.run_with(far.clone(), keys.clone(), vec![order], pair_groups, vec![k as u32, j as u32, 0, 0], step);
            j /= 2;
        }
        task.run_with(
            local.clone(),
            keys.clone(),
            vec![order],
            local_groups,
            vec![k as u32, k as u32, 0, 0],
            steps * step,
        );
        k *= 2;
    }
    for (o, d) in dtypes.iter().enumerate() {
        let (text, groups) = wgsl::each(2, *d, rows * n, limits, |body| {
            let _ = writeln!(
                body,
                "let outer = i / {};\nlet k = (i / {inner}) % {n};\nlet inner = i % {inner};",
                n * inner
            );
            let _ = writeln!(body, "let from_k = bitcast<i32>(in1[(outer * {inner} + inner) * {padded} + k]);");
            load(*d, "in0", 0, &format!("(outer * {n} + from_k) * {inner} + inner"))
        });
        task.run(text, vec![Reg::In(o), order], vec![Reg::Out(o)], groups);
    }
    Ok(task)
}

/// How often a power of two can be halved.
fn near(n: usize) -> u64 {
    n.max(2).ilog2() as u64
}

/// `before(row, a, b)`: whether position `a` of a row comes before `b`.
fn before(dtypes: &[DType], n: usize, inner: usize, num_keys: usize) -> String {
    let mut text =
        format!("fn before(row: i32, a: i32, b: i32) -> bool {{\nif (a >= {n} || b >= {n}) {{ return a < b; }}\n");
    let _ = writeln!(text, "let first = (row / {inner}) * {} + row % {inner};", n * inner);
    for (k, d) in dtypes[..num_keys].iter().enumerate() {
        let key = |p: &str| {
            let x = load(*d, &format!("in{k}"), 0, &format!("first + {p} * {inner}"));
            match lane(*d) {
                // All nans alike, after all else.
                "f32" => format!("select(rank_of_value({x}), 0x7fffffff, is_nan({x}))"),
                "bool" => format!("select(0, 1, {x})"),
                _ => x,
            }
        };
        let _ = writeln!(
            text,
            "let x{k} = {};\nlet y{k} = {};\nif (x{k} < y{k}) {{ return true; }}\nif (y{k} < x{k}) {{ return false; }}",
            key("a"),
            key("b")
        );
    }
    text + "return a < b;\n}\n"
}

/// Statements that order the pair at positions `p` and `p + j` of `words`, in stage `k` of the network.
fn exchange(words: &str, padded: usize, position: &str) -> String {
    format!(
        "let in_row = ({position}) % {padded};
let row = ({position}) / {padded};
let a = bitcast<i32>({words}[p]);
let b = bitcast<i32>({words}[p + j]);
let up = (in_row & k) == 0;
if (select(before(row, a, b), before(row, b, a), up)) {{ {words}[p] = bitcast<u32>(b); {words}[p + j] = bitcast<u32>(a); }}
"
    )
}

/// One step over all pairs at distance `j`.
fn one_step(dtypes: &[DType], [n, inner, padded, total, num_keys]: [usize; 5], limits: Limits) -> String {
    let head = wgsl::bindings(num_keys, 1) + &before(dtypes, n, inner, num_keys);
    let body = format!(
        "if (t >= {}) {{ return; }}\n{}let k = i32(stage.x);\nlet j = i32(stage.y);\nlet p = t / j * 2 * j + t % j;\n{}",
        total / 2,
        wgsl::parameters("stage"),
        exchange("out0", padded, "p")
    );
    wgsl::wrapped(head, limits.workgroup, &body)
}

/// All steps of some stages that stay within a chunk of twice the workgroup.
fn within_chunks(dtypes: &[DType], [n, inner, padded, total, num_keys]: [usize; 5], limits: Limits) -> String {
    let (size, chunk) = (limits.workgroup, 2 * limits.workgroup);
    let head = wgsl::bindings(num_keys, 1) + &before(dtypes, n, inner, num_keys);
    let head = head + &format!("var<workgroup> s: array<u32, {chunk}>;\n");
    let body = format!(
        "{stage}let base = group * {chunk};
for (var e = i32(local); e < {chunk}; e += {size}) {{
  var x = u32(base + e) % {padded}u;
  if (stage.z == 0u && base + e < {total}) {{ x = out0[base + e]; }}
  s[e] = x;
}}
workgroupBarrier();
for (var k = i32(stage.x); k <= i32(stage.y); k *= 2) {{
  for (var j = min(k / 2, {size}); j > 0; j /= 2) {{
    let t = i32(local);
    let p = t / j * 2 * j + t % j;
    if (base + p + j < {total}) {{
{exchange}    }}
    workgroupBarrier();
  }}
}}
for (var e = i32(local); e < {chunk}; e += {size}) {{
  if (base + e < {total}) {{ out0[base + e] = s[e]; }}
}}
",
        stage = wgsl::parameters("stage"),
        exchange = exchange("s", padded, "base + p"),
    );
    wgsl::wrapped(head, size, &body)
}
