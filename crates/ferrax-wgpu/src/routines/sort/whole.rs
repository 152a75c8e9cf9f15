//! Orders of rows that a workgroup has in its memory, by digits of four bits from the last digit of the last key on, in one pass.
use super::split::Items;
use super::{SortKey, SortRows};
use crate::task::{Limits, Reg};
use crate::wgsl;
use crate::wgsl::Lowered;
use std::fmt::Write;

/// Most items of an invocation, whose places it has in registers.
const MAX_EACH: usize = 16;

/// The items of a row, if a workgroup has memory for them.
pub fn items(n: usize, limits: Limits) -> Option<Items> {
    let each = n.div_ceil(limits.workgroup as usize);
    let items = Items { size: limits.workgroup, each };
    (each <= MAX_EACH && items.bytes() <= limits.shared).then_some(items)
}

/// The positions of each row's elements in order, `n` of a row.
pub fn order(task: &mut Lowered, keys: &[SortKey], rows: SortRows, items: Items, limits: Limits) -> Reg {
    let SortRows { count, n, inner } = rows;
    let out = task.add_scratch(4 * count * n);
    let mut head = wgsl::bindings(keys.len(), 1) + &items.declarations();
    let (size, all) = (items.size, items.count());
    let mut body = format!("if (group >= {count}) {{ return; }}\nlet row = group;\n{}", rows.first());
    // those behind the row's end come last, and stay there
    let _ = writeln!(body, "for (var e = i32(local); e < {all}; e += {size}) {{ items[item(e)] = u32(e); }}");
    for (k, key) in keys.iter().enumerate().rev() {
        head += &key.function(&format!("key{k}"), &format!("in{k}"));
        let bits = 8 * key.dtype.size() as u32;
        for from in (0..bits).step_by(16) {
            let _ = writeln!(
                body,
                "for (var e = i32(local); e < {all}; e += {size}) {{
  let position = items[item(e)] & 0xffffu;
  var digits = 0xffffu;
  if (e < {n}) {{ digits = (key{k}(first + i32(position) * {inner}) >> {from}u) & 0xffffu; }}
  items[item(e)] = position | (digits << 16u);
}}
workgroupBarrier();"
            );
            body += &items.split(bits.min(16));
        }
    }
    let _ = writeln!(
        body,
        "for (var e = i32(local); e < {n}; e += {size}) {{ out0[row * {n} + e] = items[item(e)] & 0xffffu; }}"
    );
    let digits: u64 = keys.iter().map(|k| k.dtype.size() as u64).sum();
    let groups = crate::task::fold(count as u64, limits.groups);
    let reads = keys.iter().map(|k| k.of).collect();
    task.run_long(wgsl::wrapped(head, size, &body), reads, vec![out], groups, 160 * digits * (count * all) as u64);
    out
}
