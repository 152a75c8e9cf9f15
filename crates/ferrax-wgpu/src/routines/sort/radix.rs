//! Orders of long rows, by digits of eight bits from the last digit of the last key on: each pass keeps the order of equal digits.
//!
//! ```text
//!     count     how often a tile of a row has each digit
//!     scan      of a digit's counts, over the tiles of a row; where there are few, each workgroup of the next pass does it
//!     scatter   a workgroup orders its tile by the digit, by two splits of four bits, and knows where each digit goes
//! ```
//! No workgroup waits for another: progress of several at once is not promised.
use super::split::{Items, exclusive, inclusive};
use super::{SortKey, SortRows};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::{Error, Res};
use std::fmt::Write;

const DIGITS: usize = 256;
/// Consecutive elements that an invocation takes.
const EACH: usize = 4;
/// Tiles of a row that are few.
const FEW_TILES: usize = 64;

/// The positions of each row's elements, `n` of a row.
///
/// # Errors
/// `Unsupported` where there are more than a shader counts.
pub fn order(task: &mut Lowered, keys: &[SortKey], rows: SortRows, limits: Limits) -> Res<Reg> {
    let tile = EACH * limits.workgroup as usize;
    let tiles = rows.n.div_ceil(tile);
    let (all, counts) = (rows.count * rows.n, rows.count * DIGITS * (tiles + 1));
    if [2 * all, counts].iter().any(|n| *n > 1 << 30) {
        return Err(Error::Unsupported(format!("sort: {all} positions are more than a shader can count")));
    }
    let mut order = None;
    for key in keys.iter().rev() {
        let digits = key.dtype.size();
        let mut stored = None;
        for digit in 0..digits {
            let (counts, last) = (task.add_scratch(4 * counts), digit + 1 == digits);
            let to = task.add_scratch(4 * all * if last { 1 } else { 2 });
            let pass = DigitPass { key, rows, tile, tiles, order, stored, digit, last, limits };
            pass.run(task, counts, to);
            (order, stored) = if last { (Some(to), None) } else { (None, Some(to)) };
        }
    }
    order.ok_or_else(|| Error::Invalid("a sort without keys".into()))
}

/// One digit of a key.
struct DigitPass<'a> {
    key: &'a SortKey,
    rows: SortRows,
    /// Elements of a tile, and tiles of a row.
    tile: usize,
    tiles: usize,
    /// Where the positions so far are, if not in order.
    order: Option<Reg>,
    /// Where the keys in that order are, and after them the positions.
    stored: Option<Reg>,
    digit: usize,
    /// Whether no later pass reads the keys again.
    last: bool,
    limits: Limits,
}

impl DigitPass<'_> {
    fn all(&self) -> usize {
        self.rows.count * self.rows.n
    }
    fn is_scanned(&self) -> bool {
        self.tiles > FEW_TILES
    }
    fn groups(&self, each_row: usize) -> (u32, u32) {
        crate::task::fold((self.rows.count * each_row) as u64, self.limits.groups)
    }
    fn run(&self, task: &mut Lowered, counts: Reg, to: Reg) {
        let sources: Vec<Reg> = match self.stored {
            Some(stored) => vec![stored],
            None => [self.key.of].into_iter().chain(self.order).collect(),
        };
        let size = self.limits.workgroup;
        let all = self.all() as u64;
        let head = wgsl::bindings(sources.len(), 1) + &self.source();
        let text = wgsl::wrapped(head + &self.shared_of_count(), size, &self.count());
        task.run_long(text, sources.clone(), vec![counts], self.groups(self.tiles), 32 * all);
        if self.is_scanned() {
            let head = wgsl::bindings(0, 1) + &format!("var<workgroup> sums: array<u32, {size}>;\n");
            let work = 16 * (self.rows.count * DIGITS * self.tiles) as u64;
            let text = wgsl::wrapped(head, size, &self.scan());
            task.run_long(text, vec![], vec![counts], self.groups(DIGITS), work);
        }
        let head = wgsl::bindings(sources.len() + 1, 1) + &self.source() + &self.shared_of_scatter();
        let text = wgsl::wrapped(head, size, &self.scatter(&format!("in{}", sources.len())));
        let reads = sources.into_iter().chain([counts]).collect();
        task.run_long(text, reads, vec![to], self.groups(self.tiles), 160 * all);
    }

    /// `position(row, e)` and `key(row, e)` of element `e` of a row in the order so far.
    fn source(&self) -> String {
        let SortRows { n, inner, .. } = self.rows;
        if self.stored.is_some() {
            return format!(
                "fn position(row: i32, e: i32) -> u32 {{ return in0[{} + row * {n} + e]; }}\nfn key(row: i32, e: i32) -> u32 {{ return in0[row * {n} + e]; }}\n",
                self.all()
            );
        }
        let position = if self.order.is_some() { format!("in1[row * {n} + e]") } else { "u32(e)".into() };
        format!(
            "{of_element}fn position(row: i32, e: i32) -> u32 {{ return {position}; }}\nfn key(row: i32, e: i32) -> u32 {{\n{first}return key_at(first + i32(position(row, e)) * {inner});\n}}\n",
            of_element = self.key.function("key_at", "in0"),
            first = self.rows.first(),
        )
    }
    fn digit_of(&self, key: &str) -> String {
        format!("(({key} >> {}u) & {}u)", 8 * self.digit, DIGITS - 1)
    }
    /// Statements that define the row and the tile.
    fn place(&self) -> String {
        format!(
            "if (group >= {}) {{ return; }}\nlet row = group / {tiles};\nlet tile = group % {tiles};\nlet first_e = tile * {};\nlet m = min({}, {} - first_e);\n",
            self.rows.count * self.tiles,
            self.tile,
            self.tile,
            self.rows.n,
            tiles = self.tiles,
        )
    }

    fn shared_of_count(&self) -> String {
        format!("var<workgroup> bins: array<atomic<u32>, {DIGITS}>;\n")
    }
    fn count(&self) -> String {
        format!(
            "{place}for (var d = i32(local); d < {DIGITS}; d += {size}) {{ atomicStore(&bins[d], 0u); }}
workgroupBarrier();
for (var e = i32(local); e < m; e += {size}) {{ atomicAdd(&bins[{digit}], 1u); }}
workgroupBarrier();
for (var d = i32(local); d < {DIGITS}; d += {size}) {{ out0[(row * {DIGITS} + d) * {tiles} + tile] = atomicLoad(&bins[d]); }}
",
            place = self.place(),
            size = self.limits.workgroup,
            digit = self.digit_of("key(row, first_e + e)"),
            tiles = self.tiles,
        )
    }

    /// Each workgroup a digit of a row: counts become those of earlier tiles; after all counts, each digit's total.
    fn scan(&self) -> String {
        let digits = self.rows.count * DIGITS;
        format!(
            "if (group >= {digits}) {{ return; }}
let at = group * {tiles};
var before = 0u;
for (var first = 0; first < {tiles}; first += {size}) {{
  let tile = first + i32(local);
  var x = 0u;
  if (tile < {tiles}) {{ x = out0[at + tile]; }}
  sums[local] = x;
  workgroupBarrier();
{inclusive}  if (tile < {tiles}) {{ out0[at + tile] = before + sums[local] - x; }}
  before += sums[{last}];
  workgroupBarrier();
}}
if (local == 0u) {{ out0[{totals} + group] = before; }}
",
            tiles = self.tiles,
            size = self.limits.workgroup,
            last = self.limits.workgroup - 1,
            inclusive = inclusive(self.limits.workgroup),
            totals = digits * self.tiles,
        )
    }

    fn items(&self) -> Items {
        Items { size: self.limits.workgroup, each: EACH }
    }
    fn shared_of_scatter(&self) -> String {
        self.items().declarations() + &format!("var<workgroup> starts: array<u32, {DIGITS}>;\n")
    }
    fn scatter(&self, counts: &str) -> String {
        let size = self.limits.workgroup;
        let mut text = self.place();
        // an item: its number in the tile, and its digit; those beyond the row's end stay last
        let _ = writeln!(
            text,
            "for (var e = i32(local); e < {tile}; e += {size}) {{
  var digit = {most}u;
  if (e < m) {{ digit = {digit}; }}
  items[item(e)] = u32(e) | (digit << 16u);
}}
workgroupBarrier();",
            tile = self.tile,
            most = DIGITS - 1,
            digit = self.digit_of("key(row, first_e + e)"),
        );
        text += &self.items().split(8);
        let (tiles, totals) = (self.tiles, self.rows.count * DIGITS * self.tiles);
        let here = if self.is_scanned() {
            format!(
                "let mine = {counts}[(row * {DIGITS} + d) * {tiles} + tile];\nlet total = {counts}[{totals} + row * {DIGITS} + d];\n"
            )
        } else {
            format!(
                "var mine = 0u;
var total = 0u;
for (var t = 0; t < {tiles}; t++) {{
  let x = {counts}[(row * {DIGITS} + d) * {tiles} + t];
  total += x;
  if (t < tile) {{ mine += x; }}
}}
"
            )
        };
        let _ = writeln!(
            text,
            "for (var d = i32(local); d < {DIGITS}; d += {size}) {{\n{here}starts[d] = total;\ncounters[d] = mine;\n}}\nworkgroupBarrier();"
        );
        text += &exclusive(|i| format!("starts[{i}]"), DIGITS, size);
        let n = self.rows.n;
        let keep = if self.last { String::new() } else { "out0[to] = key(row, from_e);\n".into() };
        let positions = if self.last { 0 } else { self.all() };
        let _ = writeln!(
            text,
            "for (var e = i32(local); e < m; e += {size}) {{
  let d = items[item(e)] >> 16u;
  if (e == 0 || (items[item(max(e, 1) - 1)] >> 16u) != d) {{ starts[d] += counters[d] - u32(e); }}
}}
workgroupBarrier();
for (var e = i32(local); e < m; e += {size}) {{
  let x = items[item(e)];
  let from_e = first_e + i32(x & 0xffffu);
  let to = row * {n} + i32(starts[x >> 16u] + u32(e));
  {keep}out0[{positions} + to] = position(row, from_e);
}}"
        );
        text
    }
}
