//! `Sort` and `TopK`: the positions of each row's elements in the order of their keys, then all operands are gathered.
//!
//! ```text
//!     n <= 512, and the tiles of a small k     a network over positions in memory shared by a workgroup (`sort/network.rs`)
//!     n <= 4096, or what such memory holds     by digits of the keys, from the last, in a workgroup (`sort/whole.rs`)
//!     else                                     by digits of the keys, each in a pass of its own (`sort/radix.rs`)
//! ```
//! INVARIANT: keys are compared as unsigned numbers, then positions, so every order is stable.
mod network;
mod radix;
mod split;
mod whole;

use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered, load};
use ferrax_kernel::{DType, Res};
use std::fmt::Write;

pub fn lower([outer, n, inner]: [usize; 3], dtypes: &[DType], num_keys: usize, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered::default();
    let rows = SortRows { count: outer * inner, n, inner };
    let keys: Vec<SortKey> = (0..num_keys).map(|k| SortKey::new(Reg::In(k), dtypes[k], By::Value)).collect();
    let order = if n <= network::chunk(limits) {
        network::order(&mut task, &keys, rows, None, n, limits).0
    } else {
        by_digits(&mut task, &keys, rows, limits)?
    };
    for (o, d) in dtypes.iter().enumerate() {
        gathered(&mut task, [Reg::In(o), order, Reg::Out(o)], *d, rows, [n, n], limits);
    }
    Ok(task)
}

fn by_digits(task: &mut Lowered, keys: &[SortKey], rows: SortRows, limits: Limits) -> Res<Reg> {
    match whole::items(rows.n, limits).filter(|_| keys.len() < limits.buffers) {
        Some(items) => Ok(whole::order(task, keys, rows, items, limits)),
        None => radix::order(task, keys, rows, limits),
    }
}

/// `TopK`: from each tile of a row its first `k`, until there is one tile.
pub fn top_k([outer, n, inner]: [usize; 3], k: usize, d: DType, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered::default();
    let rows = SortRows { count: outer * inner, n, inner };
    let keys = [SortKey::new(Reg::In(0), d, By::Descending)];
    let chunk = network::chunk(limits);
    let (order, stride) = if n <= chunk || 4 * k <= chunk {
        let (mut order, mut left) = network::order(&mut task, &keys, rows, None, k, limits);
        while left > k {
            (order, left) = network::order(&mut task, &keys, rows, Some((order, left)), k, limits);
        }
        (order, left)
    } else {
        (by_digits(&mut task, &keys, rows, limits)?, n)
    };
    gathered(&mut task, [Reg::In(0), order, Reg::Out(0)], d, rows, [k, stride], limits);
    let (text, groups) = wgsl::each(wgsl::bindings(1, 1), DType::I32, rows.count * k, limits, |body| {
        body.push_str(&rows.row(k));
        format!("bitcast<i32>(in0[row * {stride} + (i / {inner}) % {k}])")
    });
    task.run(text, vec![order], vec![Reg::Out(1)], groups);
    Ok(task)
}

/// Rows of `n` elements, `inner` apart.
#[derive(Clone, Copy)]
struct SortRows {
    count: usize,
    n: usize,
    inner: usize,
}
impl SortRows {
    /// A statement that defines `row`, the row of element `i` of an array that has `k` elements of each.
    fn row(&self, k: usize) -> String {
        format!("let row = i / {} * {1} + i % {1};\n", k * self.inner, self.inner)
    }
    /// A statement that defines `first`, the position of the first element of row `row`.
    fn first(&self) -> String {
        format!("let first = (row / {0}) * {1} + row % {0};\n", self.inner, self.n * self.inner)
    }
}

/// The elements of an operand at the first `k` positions of each row's order, of which there are `stride`.
fn gathered(task: &mut Lowered, regs: [Reg; 3], d: DType, rows: SortRows, [k, stride]: [usize; 2], limits: Limits) {
    let [x, order, out] = regs;
    let inner = rows.inner;
    let (text, groups) = wgsl::each(wgsl::bindings(2, 1), d, rows.count * k, limits, |body| {
        body.push_str(&rows.row(k));
        body.push_str(&rows.first());
        let _ = writeln!(body, "let from_k = bitcast<i32>(in1[row * {stride} + (i / {inner}) % {k}]);");
        load(d, "in0", 0, &format!("first + from_k * {inner}"))
    });
    task.run(text, vec![x, order], vec![out], groups);
}

/// Which of two keys comes first.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// The smaller value; zeros are equal, and nans, which come last.
    Value,
    /// The greater in the total order.
    Descending,
}

/// An operand that elements are ordered by.
struct SortKey {
    of: Reg,
    dtype: DType,
    by: By,
}
impl SortKey {
    fn new(of: Reg, dtype: DType, by: By) -> SortKey {
        SortKey { of, dtype, by }
    }
    /// A function of the position in array `words` to a number, of as many bits as the dtype has, in the order of the keys.
    fn function(&self, name: &str, words: &str) -> String {
        let bits = 8 * self.dtype.size() as u32;
        let (sign, mask) = (1u32 << (bits - 1), u32::MAX >> (32 - bits));
        let raw = match bits {
            8 => format!("byte_of({words}[at / 4], at)"),
            16 => format!("half_of({words}[at / 2], at)"),
            _ => format!("{words}[at]"),
        };
        let mut text = format!("fn {name}(at: i32) -> u32 {{\nlet raw = {raw};\n");
        let mut key = "raw".to_string();
        if self.dtype.is_float() {
            if self.by == By::Value {
                let infinity = match self.dtype {
                    DType::F16 => 0x7c00u32,
                    DType::BF16 => 0x7f80,
                    _ => 0x7f80_0000,
                };
                let _ = writeln!(text, "let size = raw & {}u;", sign - 1);
                let _ = writeln!(text, "if (size > {infinity}u) {{ return {mask}u; }}");
                let _ = writeln!(text, "if (size == 0u) {{ return {sign}u; }}");
            }
            key = format!("(raw ^ select({sign}u, {mask}u, (raw & {sign}u) != 0u))");
        } else if self.dtype.is_signed() {
            key = format!("(raw ^ {sign}u)");
        }
        if self.by == By::Descending {
            key = format!("({key} ^ {mask}u)");
        }
        text + &format!("return {key};\n}}\n")
    }
}
