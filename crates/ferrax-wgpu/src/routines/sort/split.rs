//! Items that a workgroup has in its memory, and their order by four bits at a time, which keeps that of equal ones.
//!
//! INVARIANT: items are words of which the low half says where they come from, and the high half has the bits that are ordered by.

/// The items of a workgroup: so many of each invocation.
#[derive(Clone, Copy)]
pub struct Items {
    pub size: u32,
    pub each: usize,
}

impl Items {
    pub fn count(self) -> usize {
        self.size as usize * self.each
    }
    /// Whether consecutive items of an invocation are so many that those of neighbours would lie in the same banks.
    fn is_padded(self) -> bool {
        self.each > 4
    }
    /// Words of items, counters and sums.
    fn words(self) -> [usize; 3] {
        let size = self.size as usize;
        let items = if self.is_padded() { padded(self.count(), self.each) } else { self.count() };
        [items, padded(8 * size, 8), size]
    }
    pub fn bytes(self) -> usize {
        4 * self.words().iter().sum::<usize>()
    }
    /// What [`Items::split`] and `items[item(e)]` need.
    pub fn declarations(self) -> String {
        let [items, counters, sums] = self.words();
        let item = if self.is_padded() { format!("e + e / {}", self.each) } else { "e".into() };
        format!(
            "var<workgroup> items: array<u32, {items}>;
var<workgroup> counters: array<u32, {counters}>;
var<workgroup> sums: array<u32, {sums}>;
fn item(e: i32) -> i32 {{ return {item}; }}
fn spread(i: i32) -> i32 {{ return i + i / 8; }}
"
        )
    }
    /// Statements that order the items by so many bits of their high halves. Each invocation counts its own consecutive items: the counters of value `b` are the
    /// low halves of words, those of `b + 8` the high ones. Their sums before each are places.
    pub fn split(self, bits: u32) -> String {
        let Items { size, each } = self;
        let counter = format!("counters[spread((b & 7) * {size} + i32(local))]");
        format!(
            "for (var shift = 16u; shift < {end}u; shift += 4u) {{
for (var c = 0; c < 8; c++) {{ counters[spread(c * {size} + i32(local))] = 0u; }}
var x: array<u32, {each}>;
var at: array<u32, {each}>;
for (var j = 0; j < {each}; j++) {{
  x[j] = items[item(i32(local) * {each} + j)];
  let b = i32((x[j] >> shift) & 15u);
  let half = u32(b >> 3u) * 16u;
  at[j] = ({counter} >> half) & 0xffffu;
  {counter} += 1u << half;
}}
workgroupBarrier();
{exclusive}let low = sums[{last}] & 0xffffu;
for (var j = 0; j < {each}; j++) {{
  let b = i32((x[j] >> shift) & 15u);
  let half = u32(b >> 3u) * 16u;
  items[item(i32(at[j] + (({counter} >> half) & 0xffffu) + select(0u, low, b >= 8)))] = x[j];
}}
workgroupBarrier();
}}
",
            exclusive = exclusive(|i| format!("counters[spread({i})]"), 8 * size as usize, size),
            last = size - 1,
            end = 16 + bits,
        )
    }
}
/// The words of an array that has one more behind each so many.
fn padded(n: usize, each: usize) -> usize {
    n + (n - 1) / each
}

/// Statements that replace `sums` by its running sums.
pub fn inclusive(size: u32) -> String {
    format!(
        "for (var w = 1; w < {size}; w *= 2) {{
  var earlier = 0u;
  if (i32(local) >= w) {{ earlier = sums[i32(local) - w]; }}
  workgroupBarrier();
  sums[local] += earlier;
  workgroupBarrier();
}}
"
    )
}
/// Statements that replace the first `m` elements of an array by the sums of those before each; the last of `sums` is the total.
pub fn exclusive(element: impl Fn(&str) -> String, m: usize, size: u32) -> String {
    let each = m.div_ceil(size as usize);
    let at = element("begin + j");
    format!(
        "{{
let begin = i32(local) * {each};
var sum = 0u;
for (var j = 0; j < {each}; j++) {{ if (begin + j < {m}) {{ sum += {at}; }} }}
sums[local] = sum;
workgroupBarrier();
{inclusive}var before = sums[local] - sum;
for (var j = 0; j < {each}; j++) {{
  if (begin + j < {m}) {{ let x = {at}; {at} = before; before += x; }}
}}
workgroupBarrier();
}}
",
        inclusive = inclusive(size),
    )
}
