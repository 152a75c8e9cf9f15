//! A bitonic network over positions of segments that fit a workgroup: rows, or tiles of longer rows.
//!
//! Segments are padded to a power of two with positions beyond the row's end, which come last; a workgroup has as many as fit.
use super::{SortKey, SortRows};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use std::fmt::Write;

/// Positions that a workgroup orders.
pub fn chunk(limits: Limits) -> usize {
    2 * limits.workgroup as usize
}

/// The first `take` positions of each tile of each row's `from`, `(array, how many)` of a row, or else of all its positions, in order: the array, and
/// how many a row has of them.
pub fn order(
    task: &mut Lowered,
    keys: &[SortKey],
    rows: SortRows,
    from: Option<(Reg, usize)>,
    take: usize,
    limits: Limits,
) -> (Reg, usize) {
    let chunk = chunk(limits);
    let n = from.map_or(rows.n, |(_, n)| n);
    let (padded, tiles) = (n.next_power_of_two().clamp(2, chunk), n.div_ceil(chunk).max(1));
    let take = take.min(padded);
    let segments = rows.count * tiles;
    let out = task.add_scratch(4 * segments * take);
    let mut reads: Vec<Reg> = keys.iter().map(|k| k.of).collect();
    let list = format!("in{}", reads.len());
    reads.extend(from.map(|(list, _)| list));
    let mut head = wgsl::bindings(reads.len(), 1) + &before(keys, rows);
    let _ = writeln!(head, "var<workgroup> s: array<u32, {chunk}>;");
    let listed = if from.is_some() { format!("{list}[row * {n} + k]") } else { "u32(k)".into() };
    let (size, per_chunk) = (limits.workgroup, chunk / padded);
    let body = format!(
        "let base = group * {chunk};
for (var e = i32(local); e < {chunk}; e += {size}) {{
  let segment = group * {per_chunk} + e / {padded};
  let row = segment / {tiles};
  let k = segment % {tiles} * {padded} + e % {padded};
  var x = {past}u;
  if (segment < {segments} && k < {n}) {{ x = {listed}; }}
  s[e] = x;
}}
workgroupBarrier();
for (var k = 2; k <= {padded}; k *= 2) {{
  for (var j = k / 2; j > 0; j /= 2) {{
    let p = i32(local) / j * 2 * j + i32(local) % j;
    let segment = group * {per_chunk} + p / {padded};
    if (segment < {segments}) {{
      let a = bitcast<i32>(s[p]);
      let b = bitcast<i32>(s[p + j]);
      let row = segment / {tiles};
      let up = ((p % {padded}) & k) == 0;
      if (select(before(row, a, b), before(row, b, a), up)) {{ s[p] = bitcast<u32>(b); s[p + j] = bitcast<u32>(a); }}
    }}
    workgroupBarrier();
  }}
}}
for (var e = i32(local); e < {of_chunk}; e += {size}) {{
  let segment = group * {per_chunk} + e / {take};
  if (segment < {segments}) {{ out0[segment * {take} + e % {take}] = s[e / {take} * {padded} + e % {take}]; }}
}}
",
        past = rows.n,
        of_chunk = per_chunk * take,
    );
    // a step compares each pair, by the keys at computed positions
    let steps = padded.ilog2() as u64 * (padded.ilog2() as u64 + 1) / 2;
    let work = steps * (segments * padded) as u64 / 2 * (16 + 24 * keys.len() as u64);
    let groups = crate::task::fold(segments.div_ceil(per_chunk) as u64, limits.groups);
    task.run_long(wgsl::wrapped(head, size, &body), reads, vec![out], groups, work);
    (out, tiles * take)
}

/// `before(row, a, b)`: whether position `a` of a row comes before `b`.
fn before(keys: &[SortKey], rows: SortRows) -> String {
    let mut text: String =
        keys.iter().enumerate().map(|(k, key)| key.function(&format!("key{k}"), &format!("in{k}"))).collect();
    let n = rows.n;
    let _ =
        writeln!(text, "fn before(row: i32, a: i32, b: i32) -> bool {{\nif (a >= {n} || b >= {n}) {{ return a < b; }}");
    text += &rows.first();
    for k in 0..keys.len() {
        let inner = rows.inner;
        let _ = writeln!(
            text,
            "let x{k} = key{k}(first + a * {inner});\nlet y{k} = key{k}(first + b * {inner});\nif (x{k} != y{k}) {{ return x{k} < y{k}; }}"
        );
    }
    text + "return a < b;\n}\n"
}
