//! `DynamicSlice` and `DynamicUpdateSlice`: windows whose starts are data.
use super::index;
use super::operands::{Argument, Lanes, Reads};
use crate::task::{Limits, Pass, Reg};
use crate::wgsl::{self, Lowered, per_word};
use ferrax_kernel::routine::Combine;
use ferrax_kernel::{DType, Dims, Res};
use std::fmt::Write;

/// Windows of one pass.
const MAX_WINDOWS: usize = 30;

/// The expression of each start, read from one buffer of words if there are too many arrays.
fn starts(task: &mut Lowered, reads: &mut Reads, all: &[Argument], d: DType, limits: Limits) -> Res<Vec<String>> {
    let arrays: Vec<Reg> =
        all.iter().filter_map(|o| if let Argument::Array(r) = o { Some(*r) } else { None }).collect();
    if arrays.len() < all.len() || reads.regs.len() + arrays.len() < limits.buffers {
        return all.iter().map(|o| Ok(index(d, &reads.operand(o, d, limits)?.at("0")))).collect();
    }
    let words = task.add_scratch(4 * arrays.len());
    for (k, from) in arrays.iter().enumerate() {
        task.passes.push(Pass::Copy { from: *from, from_at: 0, to: words, to_at: 4 * k, bytes: d.size() });
    }
    let lanes = Lanes::Array(d, reads.array(words));
    Ok((0..arrays.len()).map(|k| index(d, &lanes.at(&format!("{}", k * per_word(d))))).collect())
}

/// Statements for `at`, the position in the operand of the window's element at coordinates `c0, ..`.
fn position(body: &mut String, operand: &Dims, window: &Dims, starts: &[String]) {
    body.push_str("at = 0;\n");
    for (k, start) in starts.iter().enumerate() {
        let _ = writeln!(body, "at = at * {} + clamp({start}, 0, {}) + c{k};", operand[k], operand[k] - window[k]);
    }
}

pub fn slice(
    [operand, sizes]: [&Dims; 2],
    [d, index_dtype]: [DType; 2],
    operands: &[Argument],
    limits: Limits,
) -> Res<Lowered> {
    let (mut task, mut reads) = (Lowered::default(), Reads::default());
    let x = reads.operand(&operands[0], d, limits)?;
    let starts = starts(&mut task, &mut reads, &operands[1..], index_dtype, limits)?;
    let (text, groups) = wgsl::each(reads.head(1, limits)?, d, sizes.size(), limits, |body| {
        body.push_str("var at = 0;\n");
        wgsl::unravel(body, "i", sizes, 0);
        position(body, operand, sizes, &starts);
        x.at("at")
    });
    task.run(text, reads.regs, vec![Reg::Out(0)], groups);
    Ok(task)
}

/// A window of an array.
pub struct Placed {
    pub window: Dims,
    pub starts: Vec<usize>,
}
impl Placed {
    /// Whether two have no element in common.
    pub fn is_apart(&self, other: &Placed) -> bool {
        let apart = |k: usize| {
            let (a, b) = (self.starts[k], other.starts[k]);
            a + self.window[k] <= b || b + other.window[k] <= a
        };
        (0..self.starts.len()).any(apart)
    }
}

/// Windows of one array that have no element in common, at known starts: operand 0 is the array, the others are the windows' elements.
pub fn updates(operand: &Dims, windows: &[Placed], d: DType, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered { updates: true, ..Lowered::default() };
    let room = limits.buffers.saturating_sub(1).clamp(1, MAX_WINDOWS);
    for (chunk, windows) in windows.chunks(room).enumerate() {
        let mut body = format!("var at = 0;\nvar value: {};\n", wgsl::lane(d));
        let mut end = 0;
        for (k, w) in windows.iter().enumerate() {
            let (first, starts) = (end, w.starts.iter().map(usize::to_string).collect::<Vec<_>>());
            end += w.window.size();
            let _ = writeln!(body, "if (t >= {first} && t < {end}) {{\nlet i = t - {first};");
            wgsl::unravel(&mut body, "i", &w.window, 0);
            position(&mut body, operand, &w.window, &starts);
            let _ = writeln!(body, "value = {};\n}}", wgsl::load(d, &format!("in{k}"), 0, "i"));
        }
        let body = format!(
            "if (t >= {end}) {{ return; }}\n{body}{}",
            super::scatter::put(Combine::Set, d, "out0").expect("every dtype can be set")
        );
        if end > 0 {
            let mut reads = Reads::default();
            (0..windows.len()).for_each(|k| drop(reads.array(Reg::In(1 + chunk * room + k))));
            put_all(&mut task, reads, &body, end, limits)?;
        }
    }
    Ok(task)
}
/// A pass of `n` invocations with atomic words of the output: windows begin and end within words, where neighbours write too.
fn put_all(task: &mut Lowered, reads: Reads, body: &str, n: usize, limits: Limits) -> Res<()> {
    let text = wgsl::wrapped(reads.atomics(limits)?, limits.workgroup, body);
    task.run(text, reads.regs, vec![Reg::Out(0)], limits.groups_for(n));
    Ok(())
}

pub fn update(
    [operand, window]: [&Dims; 2],
    [d, index_dtype]: [DType; 2],
    operands: &[Argument],
    limits: Limits,
) -> Res<Lowered> {
    let mut task = Lowered { updates: true, ..Lowered::default() };
    let n = window.size();
    if n == 0 {
        return Ok(task);
    }
    let mut reads = Reads::default();
    let value = reads.operand(&operands[1], d, limits)?;
    let starts = starts(&mut task, &mut reads, &operands[2..], index_dtype, limits)?;
    let mut body = format!("if (t >= {n}) {{ return; }}\nlet i = t;\nvar at = 0;\n");
    wgsl::unravel(&mut body, "i", window, 0);
    position(&mut body, operand, window, &starts);
    let _ = writeln!(body, "let value = {};", value.at("t"));
    body += &super::scatter::put(Combine::Set, d, "out0").expect("every dtype can be set");
    put_all(&mut task, reads, &body, n, limits)?;
    Ok(task)
}
