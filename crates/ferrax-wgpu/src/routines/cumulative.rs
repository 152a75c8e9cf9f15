//! `Cumulative`: short rows by one invocation each. Long ones in chunks: first each chunk is combined, then the chunks' totals, then each
//! chunk is combined with the total before it. Where the waist defines blocks these are the chunks; where it defines a sequence, a float
//! product of a long row differs from it in its last bits.
//!
//! ```text
//!     a row of 32 blocks           one pass: a workgroup has all of it
//!     of 2048 chunks               two: each workgroup of the second combines the totals before its elements for itself
//!     longer                       totals are rows of their own
//! ```
use super::{converted, in_lanes};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered, from_word, lane, scalar, to_word};
use ferrax_kernel::order::RUN;
use ferrax_kernel::routine::CumulativeKind;
use ferrax_kernel::{Bin, DType, Res};

/// Rows longer than this are cut in chunks.
const SHORT: usize = 256;
/// Consecutive elements that an invocation of a chunk takes.
const EACH: usize = 4;
/// Blocks of a workgroup, in its shared memory, and totals that one combines there.
const BLOCKS: usize = 32;
const TOTALS: usize = 2048;

pub fn lower(
    kind: CumulativeKind,
    [outer, n, inner]: [usize; 3],
    reverse: bool,
    d: DType,
    limits: Limits,
) -> Res<Lowered> {
    let mut task = Lowered::default();
    let acc = d.lane();
    let x = converted(&mut task, Reg::In(0), d, acc, outer * n * inner, limits)?;
    in_lanes(&mut task, d, outer * n * inner, limits, |task, to| {
        let rows = Rows { kind, acc, outer, n, inner, reverse, limits };
        if n <= SHORT { rows.in_sequence(task, x, to) } else { rows.in_chunks(task, x, to) }
    })?;
    Ok(task)
}

/// Element `e` of the memory `t` of a workgroup, where blocks lie an element apart, so that invocations that have one each read different banks.
fn padded(t: &str, e: &str) -> String {
    format!("{t}[({e}) / {RUN} * {} + ({e}) % {RUN}]", RUN + 1)
}

/// Rows of words that hold lanes of `acc`.
struct Rows {
    kind: CumulativeKind,
    acc: DType,
    outer: usize,
    n: usize,
    inner: usize,
    reverse: bool,
    limits: Limits,
}

impl Rows {
    fn combined(&self, a: &str, b: &str) -> Res<String> {
        match self.kind {
            CumulativeKind::Sum => scalar::bin(Bin::Add, self.acc, a, b),
            CumulativeKind::Prod => scalar::bin(Bin::Mul, self.acc, a, b),
            CumulativeKind::Max => scalar::bin(Bin::Max, self.acc, a, b),
            CumulativeKind::Min => scalar::bin(Bin::Min, self.acc, a, b),
            CumulativeKind::LogSumExp => Ok(format!("log_add_exp({a}, {b})")),
        }
    }
    fn rows(&self) -> usize {
        self.outer * self.inner
    }
    /// The position of element `k`, in the order of combination, of row `row`.
    fn at(&self, row: &str, k: &str) -> String {
        let k = if self.reverse { format!("({} - ({k}))", self.n - 1) } else { format!("({k})") };
        format!("({row} / {i} * {} + {row} % {i} + {k} * {i})", self.n * self.inner, i = self.inner)
    }
    fn word(&self, at: &str) -> String {
        from_word(self.acc, &format!("in0[{at}]"))
    }

    fn in_sequence(&self, task: &mut Lowered, x: Reg, to: Reg) -> Res<()> {
        let groups = self.limits.groups_for(self.rows());
        // fewer elements than one level of totals serves
        let run = if self.kind.in_blocks() { RUN } else { self.n.max(1) };
        let body = format!(
            "if (t >= {rows}) {{ return; }}
var sum: {t} = {t}(0);
var before: {t} = {t}(0);
for (var k = 0; k < {n}; k++) {{
  let at = {at};
  let next = {next};
  if (k % {run} == 0) {{
    if (k == {run}) {{ before = sum; }}
    if (k > {run}) {{ before = {totals}; }}
    sum = next;
  }} else {{ sum = {combined}; }}
  var all = sum;
  if (k >= {run}) {{ all = {totals}; }}
  out0[at] = {word};
}}
",
            rows = self.rows(),
            t = lane(self.acc),
            n = self.n,
            at = self.at("t", "k"),
            next = self.word("at"),
            totals = self.combined("before", "sum")?,
            combined = self.combined("sum", "next")?,
            word = to_word(self.acc, "all"),
        );
        let work = 32 * (self.rows() * self.n) as u64;
        task.run_long(wgsl::entry(1, 1, self.limits.workgroup, &body), vec![x], vec![to], groups, work);
        Ok(())
    }

    fn in_chunks(&self, task: &mut Lowered, x: Reg, to: Reg) -> Res<()> {
        let blocks = self.kind.in_blocks();
        let chunk = if blocks { RUN } else { EACH * self.limits.workgroup as usize };
        let chunks = self.n.div_ceil(chunk);
        let workgroups = self.rows() * if blocks { chunks.div_ceil(BLOCKS) } else { chunks };
        let groups = crate::task::fold(workgroups as u64, self.limits.groups);
        let work = 64 * (self.rows() * self.n) as u64;
        let shader = if blocks { self.blocks(chunks)? } else { self.chunk(chunks)? };
        if blocks && chunks <= BLOCKS {
            task.run_long(shader, vec![x], vec![to], groups, work);
            return Ok(());
        }
        let totals = task.add_scratch(4 * self.rows() * chunks);
        task.run_long(shader, vec![x], vec![to, totals], groups, work);
        if chunks == 1 {
            return Ok(());
        }
        if chunks <= TOTALS {
            let groups = crate::task::fold((self.rows() * self.parts(chunk)) as u64, self.limits.groups);
            task.run_long(self.behind(chunk, chunks)?, vec![totals], vec![to], groups, work);
            return Ok(());
        }
        let before = task.add_scratch(4 * self.rows() * chunks);
        let of_totals = Rows { outer: self.rows(), n: chunks, inner: 1, reverse: false, ..*self };
        of_totals.in_chunks(task, totals, before)?;
        let len = self.rows() * self.n;
        let groups = self.limits.groups_for(len);
        let body = format!(
            "if (t >= {len}) {{ return; }}
let row = t / {n};
let k = t % {n};
if (k < {chunk}) {{ return; }}
let at = {at};
let earlier = {earlier};
{with_earlier}",
            n = self.n,
            at = self.at("row", "k"),
            earlier = self.word(&format!("row * {chunks} + k / {chunk} - 1")),
            with_earlier = self.with_earlier()?,
        );
        task.run(wgsl::entry(1, 1, self.limits.workgroup, &body), vec![before], vec![to], groups);
        Ok(())
    }
    /// Statements that combine the element of `out0` at `at` with `earlier`.
    fn with_earlier(&self) -> Res<String> {
        let here = from_word(self.acc, "out0[at]");
        let word = to_word(self.acc, &self.combined("earlier", "here")?);
        Ok(format!("let here = {here};\nout0[at] = {word};\n"))
    }

    /// Elements of a workgroup that combines the totals before them, and such workgroups of a row.
    fn span(chunk: usize) -> usize {
        chunk.max(BLOCKS * RUN)
    }
    fn parts(&self, chunk: usize) -> usize {
        self.n.div_ceil(Rows::span(chunk))
    }
    /// Text for one workgroup for some elements of a row, which combines in `out0` each with the total of all chunks before its own.
    fn behind(&self, chunk: usize, chunks: usize) -> Res<String> {
        let (size, span, parts) = (self.limits.workgroup, Rows::span(chunk), self.parts(chunk));
        let body = format!(
            "if (group >= {n_groups}) {{ return; }}
let row = group / {parts};
let first = group % {parts} * {span};
let needed = min({chunks}, first / {chunk} + {of_span});
for (var e = i32(local); e < needed; e += {size}) {{ {total} = {word}; }}
workgroupBarrier();
{running}for (var e = i32(local); e < {span}; e += {size}) {{
  let k = first + e;
  if (k < {n} && k >= {chunk}) {{
    let at = {at};
    let earlier = {earlier};
    {with_earlier}
  }}
}}
",
            n_groups = self.rows() * parts,
            of_span = span / chunk,
            total = padded("u", "e"),
            word = self.word(&format!("row * {chunks} + e")),
            running = self.running("u", "needed", chunks)?,
            n = self.n,
            at = self.at("row", "k"),
            earlier = padded("u", &format!("(k / {chunk} - 1)")),
            with_earlier = self.with_earlier()?,
        );
        Ok(wgsl::wrapped(wgsl::bindings(1, 1) + &self.shared("u", chunks), size, &body))
    }
    /// Statements of a workgroup that combine in turn in each block of the first `n` values in the memory `t`.
    fn in_blocks(&self, t: &str, n: &str) -> Res<String> {
        let size = self.limits.workgroup;
        let (first, here) = (padded(t, "b"), padded(t, "b + i"));
        Ok(format!(
            "for (var b = i32(local) * {RUN}; b < {n}; b += {}) {{
  var sum = {first};
  for (var i = 1; i < {RUN}; i++) {{
    if (b + i >= {n}) {{ break; }}
    let next = {here};
    sum = {with_next};
    {here} = sum;
  }}
}}
workgroupBarrier();
",
            size as usize * RUN,
            with_next = self.combined("sum", "next")?,
        ))
    }
    /// Statements of a workgroup that combine the first `n` of at most `most` values in the memory `t`, in the order of [`ferrax_kernel::order`].
    fn running(&self, t: &str, n: &str, most: usize) -> Res<String> {
        let in_blocks = self.in_blocks(t, n)?;
        if most <= RUN {
            return Ok(in_blocks);
        }
        let (size, totals, of_totals) = (self.limits.workgroup, format!("{t}{t}"), format!("(({n} - 1) / {RUN})"));
        Ok(format!(
            "{in_blocks}for (var e = i32(local); e < {of_totals}; e += {size}) {{ {total} = {last}; }}
workgroupBarrier();
{running}for (var e = i32(local) + {RUN}; e < {n}; e += {size}) {{
  let earlier = {earlier};
  let here = {here};
  {here} = {combined};
}}
workgroupBarrier();
",
            total = padded(&totals, "e"),
            last = padded(t, &format!("(e * {RUN} + {})", RUN - 1)),
            running = self.running(&totals, &of_totals, most.div_ceil(RUN))?,
            earlier = padded(&totals, &format!("(e / {RUN} - 1)")),
            here = padded(t, "e"),
            combined = self.combined("earlier", "here")?,
        ))
    }
    /// The memory for so many values, and for what [`Rows::running`] has of their blocks.
    fn shared(&self, t: &str, most: usize) -> String {
        let all = format!("var<workgroup> {t}: array<{}, {}>;\n", lane(self.acc), most.div_ceil(RUN) * (RUN + 1));
        if most <= RUN { all } else { all + &self.shared(&format!("{t}{t}"), most.div_ceil(RUN)) }
    }

    /// Text for one workgroup a few blocks: `out0` gets the running combination of each block, and `out1` their last ones. Where a row is no more,
    /// `out0` gets that of the row.
    fn blocks(&self, chunks: usize) -> Res<String> {
        let (size, len, parts) = (self.limits.workgroup, BLOCKS * RUN, chunks.div_ceil(BLOCKS));
        let (combine, memory, writes) = if parts == 1 {
            (self.running("s", "count", len)?, self.shared("s", len), 1)
        } else {
            let totals = format!(
                "for (var b = i32(local) * {RUN}; b < count; b += {}) {{ out1[row * {chunks} + (first + b) / {RUN}] = {}; }}\n",
                size as usize * RUN,
                to_word(self.acc, &padded("s", &format!("(min(b + {RUN}, count) - 1)")))
            );
            (self.in_blocks("s", "count")? + &totals, self.shared("s", len), 2)
        };
        let body = format!(
            "if (group >= {n_groups}) {{ return; }}
let row = group / {parts};
let first = group % {parts} * {len};
let count = min({n} - first, {len});
for (var e = i32(local); e < count; e += {size}) {{ {at_e} = {next}; }}
workgroupBarrier();
{combine}for (var e = i32(local); e < count; e += {size}) {{ out0[{at}] = {word}; }}
",
            n_groups = self.rows() * parts,
            n = self.n,
            at_e = padded("s", "e"),
            next = self.word(&self.at("row", "first + e")),
            at = self.at("row", "first + e"),
            word = to_word(self.acc, &padded("s", "e")),
        );
        Ok(wgsl::wrapped(wgsl::bindings(1, writes) + &memory, size, &body))
    }

    /// Text for one workgroup a chunk: `out0` gets the chunk's running combination, `out1` its last.
    fn chunk(&self, chunks: usize) -> Res<String> {
        let size = self.limits.workgroup;
        let t = lane(self.acc);
        // An invocation does not skip elements past the row's end: they would only affect later
        // ones.
        let body = format!(
            "if (group >= {n_groups}) {{ return; }}
let row = group / {chunks};
let first = group % {chunks} * {chunk} + i32(local) * {EACH};
var sums: array<{t}, {EACH}>;
var sum: {t} = {t}(0);
for (var e = 0; e < {EACH}; e++) {{
  if (first + e < {n}) {{
    let next = {next};
    if (e == 0) {{ sum = next; }} else {{ sum = {with_next}; }}
    sums[e] = sum;
  }}
}}
s[local] = sum;
workgroupBarrier();
for (var w = 1u; w < {size}u; w *= 2u) {{
  var here = s[local];
  if (local >= w) {{
    let earlier = s[local - w];
    here = {with_earlier};
  }}
  workgroupBarrier();
  s[local] = here;
  workgroupBarrier();
}}
for (var e = 0; e < {EACH}; e++) {{
  if (first + e < {n}) {{
    var here = sums[e];
    if (local > 0u) {{
      let earlier = s[local - 1u];
      here = {with_earlier};
    }}
    out0[{at}] = {word};
    if (first + e == {n} - 1 || (local == {size}u - 1u && e == {EACH} - 1)) {{ out1[group] = {word}; }}
  }}
}}
",
            n_groups = self.rows() * chunks,
            chunk = EACH * size as usize,
            n = self.n,
            next = self.word(&self.at("row", "first + e")),
            with_next = self.combined("sum", "next")?,
            with_earlier = self.combined("earlier", "here")?,
            at = self.at("row", "first + e"),
            word = to_word(self.acc, "here"),
        );
        let shared = format!("var<workgroup> s: array<{t}, {size}>;\n");
        Ok(wgsl::wrapped(wgsl::bindings(1, 2) + &shared, size, &body))
    }
}
