//! `DynamicSlice` and `DynamicUpdateSlice`: windows whose starts are data.
use super::index;
use crate::task::{Limits, Pass, Reg};
use crate::wgsl::{self, Lowered, per_word};
use ferrax_kernel::routine::Combine;
use ferrax_kernel::{DType, Dims};
use std::fmt::Write;

/// Windows of one pass.
const MAX_WINDOWS: usize = 30;

/// Binds the starts after `reads`, in one buffer of words if there are too many; gives the expression of each.
fn starts(
    task: &mut Lowered,
    reads: &mut Vec<Reg>,
    first: usize,
    rank: usize,
    d: DType,
    limits: Limits,
) -> Vec<String> {
    if reads.len() + rank < limits.buffers {
        let bound = reads.len();
        reads.extend((first..first + rank).map(Reg::In));
        return (0..rank).map(|k| index(d, &format!("in{}", bound + k), "0")).collect();
    }
    let words = task.add_scratch(4 * rank);
    for k in 0..rank {
        task.passes.push(Pass::Copy { from: Reg::In(first + k), from_at: 0, to: words, to_at: 4 * k, bytes: d.size() });
    }
    let bound = reads.len();
    reads.push(words);
    (0..rank).map(|k| index(d, &format!("in{bound}"), &format!("{}", k * per_word(d)))).collect()
}

/// Statements for `at`, the position in the operand of the window's element at coordinates `c0, ..`.
fn position(body: &mut String, operand: &Dims, window: &Dims, starts: &[String]) {
    body.push_str("at = 0;\n");
    for (k, start) in starts.iter().enumerate() {
        let _ = writeln!(body, "at = at * {} + clamp({start}, 0, {}) + c{k};", operand[k], operand[k] - window[k]);
    }
}

pub fn slice(operand: &Dims, sizes: &Dims, d: DType, index_dtype: DType, limits: Limits) -> Lowered {
    let mut task = Lowered::default();
    let mut reads = vec![Reg::In(0)];
    let starts = starts(&mut task, &mut reads, 1, operand.len(), index_dtype, limits);
    let (text, groups) = wgsl::each(reads.len(), d, sizes.size(), limits, |body| {
        body.push_str("var at = 0;\n");
        wgsl::unravel(body, "i", sizes, 0);
        position(body, operand, sizes, &starts);
        wgsl::load(d, "in0", 0, "at")
    });
    task.run(text, reads, vec![Reg::Out(0)], groups);
    task
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
pub fn updates(operand: &Dims, windows: &[Placed], d: DType, limits: Limits) -> Lowered {
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
            let reads = (0..windows.len()).map(|k| Reg::In(1 + chunk * room + k)).collect();
            put_all(&mut task, reads, &body, end, limits);
        }
    }
    task
}
/// A pass of `n` invocations with atomic words of the output: windows begin and end within words, where neighbours write too.
fn put_all(task: &mut Lowered, reads: Vec<Reg>, body: &str, n: usize, limits: Limits) {
    let head = wgsl::bindings(reads.len(), 0);
    let head =
        head + &format!("@group(0) @binding({}) var<storage, read_write> out0: array<atomic<u32>>;\n", reads.len());
    task.run(wgsl::wrapped(head, limits.workgroup, body), reads, vec![Reg::Out(0)], limits.groups_for(n));
}

pub fn update(operand: &Dims, window: &Dims, d: DType, index_dtype: DType, limits: Limits) -> Lowered {
    let mut task = Lowered { updates: true, ..Lowered::default() };
    let n = window.size();
    if n == 0 {
        return task;
    }
    let mut reads = vec![Reg::In(1)];
    let starts = starts(&mut task, &mut reads, 2, operand.len(), index_dtype, limits);
    let mut body = format!("if (t >= {n}) {{ return; }}\nlet i = t;\nvar at = 0;\n");
    wgsl::unravel(&mut body, "i", window, 0);
    position(&mut body, operand, window, &starts);
    let _ = writeln!(body, "let value = {};", wgsl::load(d, "in0", 0, "t"));
    body += &super::scatter::put(Combine::Set, d, "out0").expect("every dtype can be set");
    put_all(&mut task, reads, &body, n, limits);
    task
}
