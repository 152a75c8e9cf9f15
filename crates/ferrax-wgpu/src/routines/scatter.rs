//! `Scatter`: each element of the updates is written by an atomic operation or a loop of compare-and-swap.
//!
//! Colliding sums are added in any order (exact for integers; floats may differ in their last bits between
//! runs). Of several updates that set an element the last in the waist's order wins: a first pass finds it.
//! Where many updates are combined in few elements, each workgroup combines its share in memory of its own first.
use super::gather::{SliceWindow, Starts};
use super::operands::{Argument, Reads};
use crate::device::pipeline::Source;
use crate::task::{Limits, Pass, Reg};
use crate::wgsl::{self, Lowered, from_word, lane, per_word, scalar, to_word};
use ferrax_kernel::routine::{Combine, OutOfBounds, Scatter};
use ferrax_kernel::{Bin, DType, ReduceKind, Res};
use std::fmt::Write;

/// Words that a workgroup combines updates in, at most: half of what each adapter has.
const MAX_OWN_WORDS: usize = 2048;
/// Updates for each element, and in all, from which that pays.
const MIN_UPDATES_PER_ELEMENT: usize = 8;
const MIN_UPDATES: usize = 8192;
/// Updates of a workgroup, for each of its invocations.
const UPDATES_PER_INVOCATION: usize = 16;

pub fn lower(s: &Scatter, operands: &[Argument], limits: Limits) -> Res<Lowered> {
    let mut task = Lowered { updates: true, ..Lowered::default() };
    let n = s.updates.size();
    // A window larger than the operand fits nowhere.
    let sizes = s.updates.pick(&s.update_window_dims);
    let window = window_sizes(s);
    if n == 0 || s.operand.size() == 0 || window.iter().zip(s.operand.iter()).any(|(w, n)| w > n) {
        return Ok(task);
    }
    debug_assert_eq!(sizes.len(), s.update_window_dims.len());
    let positions = n / sizes.size().max(1);
    let groups = limits.groups_for(n);
    let mut reads = Reads::default();
    let indices = [reads.operand(&operands[1], s.index_dtype, limits)?];
    let find = |body: &mut String| {
        let _ = writeln!(body, "if (t >= {n}) {{ return; }}");
        // The number of an update, in the order in which they are applied.
        let (order, sizes) = s.order();
        wgsl::unravel(body, "t", &sizes, order.len());
        let mut i = String::from("0");
        for (axis, stride) in s.updates.strides().into_iter().enumerate() {
            let k = order.iter().position(|o| *o == axis).expect("an order of all axes");
            let _ = writeln!(body, "let c{axis} = c{};", order.len() + k);
            let _ = write!(i, " + c{axis} * {stride}");
        }
        let i = if order.is_sorted() { "t" } else { &i };
        let _ = writeln!(body, "let i = {i};");
        let outer: Vec<usize> = (0..s.updates.len()).filter(|k| !s.update_window_dims.contains(k)).collect();
        let starts = Starts {
            indices: &s.indices,
            dtype: s.index_dtype,
            arrays: &indices,
            apart: false,
            positions: &outer,
            map: &s.scatter_dims_to_operand_dims,
            batch: &s.operand_batching_dims,
            index_batch: &s.scatter_indices_batching_dims,
        };
        let left_out = |axis: usize| s.inserted_window_dims.contains(&axis) || s.operand_batching_dims.contains(&axis);
        SliceWindow { operand: &s.operand, sizes: &window, axes: &s.update_window_dims, left_out: &left_out }
            .position(body, &starts);
        if s.mode == OutOfBounds::FillOrDrop {
            body.push_str("if (!inside) { return; }\n");
        }
    };
    let mut body = String::new();
    find(&mut body);
    if s.combine == Combine::Set && !s.unique && positions > 1 {
        let winners = task.add_scratch(4 * s.operand.size());
        let clear = ferrax_kernel::plan::fill(ferrax_kernel::Scalar::u32(0), s.operand.size());
        task.include(wgsl::lower(&clear, limits)?, &[], &[winners]);
        let bid = format!("{body}atomicMax(&out0[at], u32(t) + 1u);\n");
        task.copying = Some(cleared_copy(s, winners, limits));
        let text = wgsl::wrapped(reads.atomics(limits)?, limits.workgroup, &bid);
        task.run(text, reads.regs.clone(), vec![winners], groups);
        body += &format!("if ({} != u32(t) + 1u) {{ return; }}\n", reads.array(winners).word("at"));
    }
    let value = reads.operand(&operands[2], s.dtype, limits)?;
    body += &format!("let value = {};\n", value.at("i"));
    let head = reads.atomics(limits)?;
    if let Some(identity) = identity_of_own(s, n) {
        let (head, main) = in_workgroups(s, (n, limits.workgroup as usize), head, body, identity)?;
        let groups = limits.groups_for(n.div_ceil(UPDATES_PER_INVOCATION));
        task.run(wgsl::wrapped(head, limits.workgroup, &main), reads.regs, vec![Reg::Out(0)], groups);
        return Ok(task);
    }
    body += &put(s.combine, s.dtype, "out0")?;
    task.run(wgsl::wrapped(head, limits.workgroup, &body), reads.regs, vec![Reg::Out(0)], groups);
    Ok(task)
}

/// A pass that makes output 0 a copy of input 0, and winners none.
fn cleared_copy(s: &Scatter, winners: Reg, limits: Limits) -> Pass<Source> {
    let elements = s.operand.size();
    let words = (elements * s.dtype.size()).div_ceil(4);
    let p = wgsl::parameters("p");
    let body = format!("{p}if (u32(t) < p.x) {{ out0[t] = in0[t]; }}\nif (u32(t) < p.y) {{ out1[t] = 0u; }}\n");
    let pipeline = Source { reads: 1, writes: 2, wgsl: wgsl::entry(1, 2, limits.workgroup, &body) };
    let (reads, writes) = (vec![Reg::In(0)], vec![Reg::Out(0), winners]);
    let (groups, immediates) = (limits.groups_for(elements), vec![words as u32, elements as u32, 0, 0]);
    Pass::Run { pipeline, reads, writes, groups, immediates, work: 24 * elements as u64 }
}

/// What elements of a workgroup's memory begin as, if it combines updates there first.
fn identity_of_own(s: &Scatter, updates: usize) -> Option<u32> {
    let Combine::Reduce(kind) = s.combine else { return None };
    let elements = s.operand.size();
    let is_many = updates >= MIN_UPDATES.max(MIN_UPDATES_PER_ELEMENT * elements);
    if per_word(s.dtype) != 1 || s.dtype.size() != 4 || elements > MAX_OWN_WORDS || !is_many {
        return None;
    }
    // zero would turn an element of -0 without updates into 0
    let is_sum = s.dtype == DType::F32 && kind == ReduceKind::Sum;
    if is_sum { Some(0x8000_0000) } else { kind.identity(s.dtype).map(|x| x.bits as u32) }
}

/// The head and the main function of a shader in which each workgroup combines its updates in `own`, then `own` with the operand.
fn in_workgroups(
    s: &Scatter,
    (n, workgroup): (usize, usize),
    head: String,
    update: String,
    identity: u32,
) -> Res<(String, String)> {
    let words = s.operand.size();
    let head = format!(
        "{head}var<workgroup> own: array<atomic<u32>, {words}>;
fn update(t: i32) {{
{update}{}}}
",
        put(s.combine, s.dtype, "own")?
    );
    let share = UPDATES_PER_INVOCATION * workgroup;
    let value = from_word(s.dtype, "atomicLoad(&own[at])");
    let main = format!(
        "for (var k = i32(local); k < {words}; k += {workgroup}) {{ atomicStore(&own[k], {identity}u); }}
workgroupBarrier();
let end = min((group + 1) * {share}, {n});
for (var u = group * {share} + i32(local); u < end; u += {workgroup}) {{ update(u); }}
workgroupBarrier();
for (var at = i32(local); at < {words}; at += {workgroup}) {{
let value = {value};
{}}}
",
        put(s.combine, s.dtype, "out0")?
    );
    Ok((head, main))
}

/// The window's size along every axis of the operand.
fn window_sizes(s: &Scatter) -> ferrax_kernel::Dims {
    let mut sizes = s.update_window_dims.iter().map(|k| s.updates[*k]);
    let left_out = |axis: &usize| s.inserted_window_dims.contains(axis) || s.operand_batching_dims.contains(axis);
    (0..s.operand.len()).map(|axis| if left_out(&axis) { 1 } else { sizes.next().unwrap_or(1) }).collect()
}

/// Statements that bring the lane `value` to element `at` of `out`, an array of atomic words.
pub fn put(how: Combine, d: DType, out: &str) -> Res<String> {
    let word = to_word(d, "value");
    let whole = per_word(d) == 1;
    match how {
        Combine::Set if whole => return Ok(format!("atomicStore(&{out}[at], {word});\n")),
        Combine::Reduce(ReduceKind::Sum) if whole && d.is_int() => {
            return Ok(format!("atomicAdd(&{out}[at], {word});\n"));
        }
        Combine::Sub if whole && d.is_int() => return Ok(format!("atomicSub(&{out}[at], {word});\n")),
        _ => (),
    }
    let combined = match how {
        Combine::Set => "value".to_string(),
        Combine::Sub => scalar::bin(Bin::Sub, d, "current", "value")?,
        Combine::Reduce(kind) => scalar::combine(kind, d, "current", "value")?,
    };
    let (in_word, bits) = (per_word(d), 8 * d.size());
    let mask = u32::MAX >> (32 - bits);
    let current = from_word(d, &format!("((old >> shift) & {mask}u)"));
    Ok(format!(
        "let word = at / {in_word};
let shift = u32(at % {in_word}) * {bits}u % 32u;
var old = atomicLoad(&{out}[word]);
loop {{
  let current = {current};
  let combined: {t} = {combined};
  let new_word = (old & ~({mask}u << shift)) | ({new} << shift);
  if (new_word == old) {{ break; }}
  let tried = atomicCompareExchangeWeak(&{out}[word], old, new_word);
  if (tried.exchanged) {{ break; }}
  old = tried.old_value;
}}
",
        t = lane(d),
        new = to_word(d, "combined"),
    ))
}
