//! `Cumulative`: one invocation a row, in sequence, as the waist has it.
use super::{converted, in_lanes};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered, from_word, lane, scalar, to_word};
use ferrax_kernel::routine::CumulativeKind;
use ferrax_kernel::{Bin, DType, Res};

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
    let combined = match kind {
        CumulativeKind::Sum => scalar::bin(Bin::Add, acc, "sum", "next")?,
        CumulativeKind::Prod => scalar::bin(Bin::Mul, acc, "sum", "next")?,
        CumulativeKind::Max => scalar::bin(Bin::Max, acc, "sum", "next")?,
        CumulativeKind::Min => scalar::bin(Bin::Min, acc, "sum", "next")?,
        CumulativeKind::LogSumExp => "log_add_exp(sum, next)".into(),
    };
    let rows = outer * inner;
    let groups = limits.groups_for(rows);
    let body = format!(
        "if (t >= {rows}) {{ return; }}
let first = (t / {inner}) * {} + t % {inner};
var sum: {t} = {t}(0);
for (var k = 0; k < {n}; k++) {{
  let at = first + {step} * {inner};
  let next = {next};
  if (k == 0) {{ sum = next; }} else {{ sum = {combined}; }}
  out0[at] = {word};
}}
",
        n * inner,
        t = lane(acc),
        step = if reverse { format!("({} - k)", n - 1) } else { "k".into() },
        next = from_word(acc, "in0[at]"),
        word = to_word(acc, "sum"),
    );
    in_lanes(&mut task, d, outer * n * inner, limits, |task, to| {
        task.run(wgsl::entry(1, 1, limits.workgroup, groups, &body), vec![x], vec![to], groups);
        Ok(())
    })?;
    Ok(task)
}
