//! Rows of an array that are rows of others ([`Run`]s: slices, reversals, concatenations, padding), where devices have the rows in parts:
//! each device sends each other device the rows that it needs, in as few permutations as there are pieces between two devices.
//!
//! ```text
//! roll by 3 of x cut in parts of 8 rows      a device takes 3 rows of the one before, and 5 of its own
//! ```
//!
//! INVARIANT: in a round a device sends one block and takes one block at most; all blocks of a round have one size.
use super::Here;
use crate::cx::int;
use crate::dtype::Dtype;
use crate::error::Res;
use crate::factors::{Run, Windowed};
use crate::ops::collective::{Names, Permute};
use crate::ops::concatenate::Concatenate;
use crate::ops::dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
use crate::ops::iota::Iota;
use crate::ops::pointwise::Pw;
use crate::ops::rev::Rev;
use crate::ops::slice::Slice;
use crate::value::Value;
use ferrax_kernel::Dims;

/// The source of rows: this device's part of an array of so many parts along the dimension; one part where it is whole everywhere.
pub struct Source {
    pub value: Value,
    pub parts: usize,
}
/// The dimension and the rows of a result, and how it is cut.
pub struct Target<'a> {
    pub dim: usize,
    pub rows: usize,
    pub axes: &'a [u8],
}
/// Rows `at..at + len` of a device's part are those from `start` on, in steps, of a source's part on the device `from`.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    to: usize,
    from: usize,
    source: usize,
    at: usize,
    start: usize,
    len: usize,
    step: i64,
}
/// Pieces that move at once.
struct Round(Vec<Piece>);

/// The pieces that each of `parts` devices takes from others.
fn pieces(runs: &[Run], sources: &[(usize, usize)], rows: usize, parts: usize) -> Vec<Piece> {
    let (size, mut all) = (rows.div_ceil(parts), vec![]);
    for run in runs {
        let (part, cut) = sources[run.operand];
        let mut j = run.rows.start;
        while j < run.rows.end {
            let to = j / size;
            let row = (run.first + (j - run.rows.start) as i64 * run.step) as usize;
            let from = if cut == 1 { to } else { row / part };
            let start = if cut == 1 { row } else { row % part };
            // as long as neither part ends
            let left = if run.step > 0 {
                (part - 1 - start) / run.step as usize
            } else {
                start / run.step.unsigned_abs() as usize
            };
            let len = (left + 1).min((to + 1) * size - j).min(run.rows.end - j);
            all.push(Piece { to, from, source: run.operand, at: j - to * size, start, len, step: run.step });
            j += len;
        }
    }
    all
}
/// The runs with what else the parts have room for, if nothing is to be there: rows that go on where the last run ends, so that all parts are alike.
fn filled(runs: &[Run], sources: &[(usize, usize)], rows: usize, room: usize) -> Vec<Run> {
    let mut runs = runs.to_vec();
    let Some(i) = runs.iter().position(|r| r.rows.end == rows && r.step == 1) else { return runs };
    let operand = runs[i].operand;
    let (all, mut next) = (sources[operand].0 * sources[operand].1, runs[i].first as usize + runs[i].rows.len());
    let mut end = rows + (all - next).min(room - rows);
    next += end - rows;
    runs[i].rows.end = end;
    while end < room {
        let first = next % all;
        let n = (all - first).min(room - end);
        runs.push(Run { rows: end..end + n, operand, first: first as i64, step: 1 });
        (end, next) = (end + n, first + n);
    }
    runs
}
/// Pieces in rounds: the longest first, so that those of a round have like sizes.
fn rounds(mut all: Vec<Piece>) -> Vec<Round> {
    all.sort_by_key(|p| std::cmp::Reverse(p.len));
    let mut rounds: Vec<Round> = vec![];
    for p in all {
        let fits = |r: &&mut Round| {
            let first = &r.0[0];
            let alike = (first.source, first.step, first.from == first.to) == (p.source, p.step, p.from == p.to);
            // a short piece does not move as a long one
            alike
                && (p.len == first.len || (p.step == 1 && p.len * 2 > first.len))
                && r.0.iter().all(|o| o.to != p.to && o.from != p.from)
        };
        match rounds.iter_mut().find(fits) {
            Some(r) => r.0.push(p),
            None => rounds.push(Round(vec![p])),
        }
    }
    rounds
}
impl Round {
    fn len(&self) -> usize {
        self.0[0].len
    }
    /// The rows of the source over which a block extends.
    fn span(&self) -> usize {
        (self.len() - 1) * self.0[0].step.unsigned_abs() as usize + 1
    }
    /// Whether each of `parts` devices takes as much, and has it at one place.
    fn is_even(&self, parts: usize) -> bool {
        let first = &self.0[0];
        self.0.len() == parts && self.0.iter().all(|p| (p.at, p.len) == (first.at, first.len))
    }
}

impl Here<'_> {
    /// This device's part of a result of these rows, and `fill` (a number) where no run has any.
    pub fn moved(&self, sources: &[Source], runs: &[Run], fill: Option<&Value>, to: &Target) -> Res<Value> {
        let parts = self.grid.parts(to.axes);
        let sizes: Vec<(usize, usize)> = sources.iter().map(|s| (s.value.shape()[to.dim], s.parts)).collect();
        let size = to.rows.div_ceil(parts);
        let room = if fill.is_none() { size * parts } else { to.rows };
        let mut rounds = rounds(pieces(&filled(runs, &sizes, to.rows, room), &sizes, to.rows, parts));
        rounds.sort_by_key(|r| r.0[0].at);
        let mut ends = rounds.iter().scan(0, |end, r| {
            let meets = r.0[0].at == *end;
            *end += r.len();
            Some(meets)
        });
        let tiles = ends.all(|meets| meets) && rounds.iter().map(Round::len).sum::<usize>() == size;
        if tiles && !rounds.is_empty() && rounds.iter().all(|r| r.is_even(parts)) {
            let blocks = rounds.iter().map(|r| self.block(r, sources, to)).collect::<Res<Vec<Value>>>()?;
            return match &blocks[..] {
                [one] => Ok(one.clone()),
                many => self.cx.bind1(Concatenate { dimension: to.dim }, many),
            };
        }
        // with room on both sides for blocks that are longer than what is taken of them
        let room = rounds.iter().filter(|r| r.0.iter().any(|p| p.len != r.len())).map(Round::len).max().unwrap_or(0);
        let mut shape = Dims::new(sources[0].value.shape());
        shape[to.dim] = size + 2 * room;
        let aval = sources[0].value.aval().with_shape(shape.clone());
        let mut all = match fill {
            Some(v) => self.cx.stretch(v, &shape)?,
            None => self.cx.zeros(&aval)?,
        };
        for r in &rounds {
            let last = sizes[r.0[0].source].0 - r.span();
            all = self.with_block(all, (r, last), self.block(r, sources, to)?, room, to)?;
        }
        self.rows(&all, to.dim, &int(Dtype::I32, room as i64), size)
    }
    /// The rows that the windows of this device's part of `positions` read, of an operand that is cut too.
    pub fn with_halo(&self, x: &Value, w: &Windowed, positions: usize, axes: &[u8]) -> Res<Value> {
        let parts = self.grid.parts(axes);
        let (own, all) = (positions / parts, (x.shape()[w.dim] * parts) as i64);
        let each = w.rows(own);
        let run = |i: usize| {
            let first = w.first(i * own);
            let (from, to) = ((-first).clamp(0, each as i64), (all - first).clamp(0, each as i64));
            let rows = i * each + from as usize..i * each + to.max(from) as usize;
            Run { rows, operand: 0, first: first + from, step: 1 }
        };
        let runs: Vec<Run> = (0..parts).map(run).collect();
        let to = Target { dim: w.dim, rows: each * parts, axes };
        self.moved(&[Source { value: x.clone(), parts }], &runs, Some(&Value::Lit(w.fill)), &to)
    }
    /// The block that a device takes in a round.
    fn block(&self, r: &Round, sources: &[Source], to: &Target) -> Res<Value> {
        let (first, parts) = (&r.0[0], self.grid.parts(to.axes));
        let x = &sources[first.source].value;
        let (span, part) = (r.span(), x.shape()[to.dim]);
        let mut starts = vec![None; parts];
        for p in &r.0 {
            let low = if p.step > 0 { p.start } else { p.start - (p.len - 1) * p.step.unsigned_abs() as usize };
            starts[p.from] = Some(low.min(part - span) as i64);
        }
        let mut y = self.rows(x, to.dim, &self.by_number(&starts, to.axes)?, span)?;
        if first.step.unsigned_abs() > 1 {
            let strides =
                (0..x.rank()).map(|d| if d == to.dim { first.step.unsigned_abs() as usize } else { 1 }).collect();
            let (start_indices, limit_indices) = ((0..x.rank()).map(|_| 0).collect::<Dims>(), Dims::new(y.shape()));
            y = self.cx.bind1(Slice { start_indices, limit_indices, strides: Some(strides) }, &[y])?;
        }
        if first.step < 0 && r.len() > 1 {
            y = self.cx.bind1(Rev { dimensions: Dims::new(&[to.dim]) }, &[y])?;
        }
        if r.0.iter().all(|p| p.from == p.to) {
            return Ok(y);
        }
        let mut perm: Vec<(usize, usize)> = r.0.iter().map(|p| (p.from, p.to)).collect();
        perm.sort_unstable();
        self.cx.bind1(Permute { axis_name: Names(self.grid.names(to.axes)), perm }, &[y])
    }
    /// The rows with a round's block among them, as far as this device takes of it.
    fn with_block(&self, all: Value, (r, last): (&Round, usize), block: Value, room: usize, to: &Target) -> Res<Value> {
        let (cx, parts) = (self.cx, self.grid.parts(to.axes));
        let (mut at, mut skip, mut len) = (vec![None; parts], vec![None; parts], vec![Some(0); parts]);
        for p in &r.0 {
            // the block's rows before those that are taken
            let before = if p.len == r.len() { 0 } else { p.start.saturating_sub(last) };
            at[p.to] = Some((room + p.at - before) as i64);
            (skip[p.to], len[p.to]) = (Some(before as i64), Some(p.len as i64));
        }
        let at = self.by_number(&at, to.axes)?;
        let whole = len.iter().all(|n| *n == Some(r.len() as i64));
        let taken = if whole {
            block
        } else {
            let shape = Dims::new(block.shape());
            let old = self.rows(&all, to.dim, &at, r.len())?;
            let k = cx.bind1(Iota { dimension: to.dim, dtype: Dtype::I32, shape: shape.clone().into() }, &[])?;
            let from = self.by_number(&skip, to.axes)?;
            let end = cx.add(&from, &self.by_number(&len, to.axes)?)?;
            let after = cx.pw2(Pw::Ge, &k, &cx.stretch(&from, &shape)?)?;
            let is = cx.pw2(Pw::And, &after, &cx.pw2(Pw::Lt, &k, &cx.stretch(&end, &shape)?)?)?;
            cx.select(&is, &old, &block)?
        };
        let mut args = vec![all, taken];
        let zero = int(Dtype::I32, 0);
        args.extend((0..args[0].rank()).map(|d| if d == to.dim { at.clone() } else { zero.clone() }));
        cx.bind1(DynamicUpdateSlice {}, &args)
    }
    /// `n` rows from `start` on.
    pub fn rows(&self, x: &Value, d: usize, start: &Value, n: usize) -> Res<Value> {
        if x.shape()[d] == n {
            return Ok(x.clone());
        }
        let mut sizes = Dims::new(x.shape());
        sizes[d] = n;
        let mut args = vec![x.clone()];
        args.extend((0..x.rank()).map(|k| if k == d { start.clone() } else { int(Dtype::I32, 0) }));
        self.cx.bind1(DynamicSlice { slice_sizes: sizes }, &args)
    }
    /// The number in the table for this device; any, where there is none.
    fn by_number(&self, table: &[Option<i64>], axes: &[u8]) -> Res<Value> {
        let i32_ = |n: i64| int(Dtype::I32, n);
        let mut known = table.iter().enumerate().filter_map(|(i, n)| n.map(|n| (i as i64, n)));
        let Some((i, a)) = known.next() else { return Ok(i32_(0)) };
        let slope = known.next().map_or(0, |(j, b)| if (b - a) % (j - i) == 0 { (b - a) / (j - i) } else { 0 });
        let line = |k: usize| a + (k as i64 - i) * slope;
        if table.iter().enumerate().all(|(k, n)| n.is_none_or(|n| n == line(k))) {
            if slope == 0 {
                return Ok(i32_(a));
            }
            let of_number = self.cx.mul(&self.number(axes)?, &i32_(slope))?;
            return self.cx.add(&of_number, &i32_(line(0)));
        }
        let (me, mut last, mut v) = (self.number(axes)?, a, i32_(a));
        for (k, n) in table.iter().enumerate().filter_map(|(k, n)| n.map(|n| (k, n))) {
            if n != last {
                let before = self.cx.pw2(Pw::Lt, &me, &i32_(k as i64))?;
                v = self.cx.select(&before, &i32_(n), &v)?;
                last = n;
            }
        }
        Ok(v)
    }
}
