//! Reductions, in the order of [`ferrax_kernel::order`]: teams of 16 invocations take the 16 lanes of a block of 1024 elements.
//!
//! ```text
//!     n <= 32              one invocation a row, 16 accumulators
//!     n <= 1024            one team a row; then the epilogue
//!     n > 1024             one team a block, which leaves its result in scratch; then the same again over these
//!     n <= 16384 of these  one workgroup a row: a team a block, then one team; then the epilogue
//! ```
//! INVARIANT: logical positions alone determine which elements are combined, as the waist defines.
use super::super::{bindings, constant, entry, from_word, lane, scalar, to_word, unravel, wrapped};
use super::{Lowered, Text, work};
use crate::task::Reg;
use ferrax_kernel::kernel::{Kernel, Node, NodeId};
use ferrax_kernel::order::{BLOCK, LANES};
use ferrax_kernel::{Bin, DType, ReduceKind, Res, Scalar};
use std::fmt::Write;

/// A row this short is done by one invocation.
const SHORT: usize = 32;

pub struct Reduction {
    pub node: NodeId,
    /// Among those of the kernel.
    number: usize,
    kind: ReduceKind,
    pub of: NodeId,
    /// Of the elements, of the accumulator, of the result.
    element: DType,
    acc: DType,
    result: DType,
}

pub fn of(k: &Kernel) -> Vec<Reduction> {
    let mut number = 0;
    let one = |(id, (d, n)): (usize, &(DType, Node))| match n {
        Node::Reduce { kind, of } => {
            let element = k.dtype(*of);
            let acc = if element == DType::Bool { element } else { element.lane() };
            number += 1;
            Some(Reduction { node: id as NodeId, number: number - 1, kind: *kind, of: *of, element, acc, result: *d })
        }
        _ => None,
    };
    k.nodes.iter().enumerate().filter_map(one).collect()
}

/// The elements of a level: those that the kernel computes, or the results of the level before in
/// array `words`, `n` to a row.
enum Elements {
    Nodes,
    Partial { words: String, rows: usize },
}

impl Reduction {
    fn positions(&self) -> bool {
        self.kind.bin().is_none()
    }
    fn identity(&self) -> String {
        constant(self.kind.identity(self.element).unwrap_or(Scalar::zero(self.element)))
    }
    /// The node's value where there are no elements.
    pub fn of_nothing(&self) -> String {
        if self.positions() { constant(Scalar::zero(self.result)) } else { self.finished(&self.identity(), "0") }
    }
    /// The accumulator as the node's value: of all nans the one that [`ferrax_kernel::order`] states.
    pub fn finished(&self, value: &str, position: &str) -> String {
        if self.positions() {
            return scalar::convert(DType::I32, self.result, position);
        }
        let one_nan = if self.acc.is_float() {
            format!("select({value}, float(0x7fc00000u), is_nan({value}))")
        } else {
            value.to_string()
        };
        scalar::convert(self.acc, self.result, &one_nan)
    }
    /// Sets the accumulator to what it is without elements.
    pub fn reset(&self) -> String {
        let id = self.node;
        format!("a{id} = {};\n", self.identity())
            + &if self.positions() { format!("p{id} = -1;\n") } else { String::new() }
    }
    /// Places in the memory that the workgroup shares.
    pub fn value(&self, at: &str) -> String {
        format!("s{}{}[{at}]", self.number, lane(self.acc))
    }
    pub fn position(&self, at: &str) -> String {
        format!("z{}[{at}]", self.number)
    }
    /// Copies the accumulator there.
    fn share(&self) -> String {
        let id = self.node;
        format!("{} = a{id};\n", self.value("slot"))
            + &if self.positions() { format!("{} = p{id};\n", self.position("slot")) } else { String::new() }
    }
    /// Words of what a block of elements leaves.
    pub fn regions(&self) -> usize {
        if self.positions() { 2 } else { 1 }
    }
    /// Leaves the accumulator in the word `at`, and its position in the word `position`.
    pub fn leave(&self, at: &str, position: &str) -> String {
        let id = self.node;
        format!("{at} = {};\n", to_word(self.acc, &format!("a{id}")))
            + &if self.positions() { format!("{position} = bitcast<u32>(p{id});\n") } else { String::new() }
    }
    /// Defines what was left there, as `x{id}` and `y{id}`.
    fn left(&self, at: &str, position: &str) -> String {
        let id = self.node;
        format!("let x{id} = {};\n", from_word(self.acc, at))
            + &if self.positions() { format!("let y{id} = bitcast<i32>({position});\n") } else { String::new() }
    }
    /// Takes what was left there into the accumulator.
    pub fn take_left(&self, at: &str, position: &str) -> Res<String> {
        let id = self.node;
        let take = self.take(&format!("a{id}"), &format!("p{id}"), &format!("x{id}"), &format!("y{id}"))?;
        Ok(self.left(at, position) + &take)
    }
    /// Takes element `x`, number `at`, into the accumulator `a` (and its position `p`).
    pub fn take(&self, a: &str, p: &str, x: &str, at: &str) -> Res<String> {
        if !self.positions() {
            return Ok(format!("{a} = {};\n", scalar::combine(self.kind, self.acc, a, x)?));
        }
        let better = if self.kind == ReduceKind::ArgMax { Bin::Gt } else { Bin::Lt };
        let (better, same) = (scalar::bin(better, self.acc, x, a)?, scalar::bin(Bin::Eq, self.acc, x, a)?);
        let (nan, same) = if self.acc.is_float() {
            (format!("(is_nan({x}) && !is_nan({a}))"), format!("({same} || (is_nan({x}) && is_nan({a})))"))
        } else {
            ("false".into(), same)
        };
        Ok(format!(
            "if ({at} >= 0 && ({p} < 0 || {nan} || {better} || ({same} && {at} < {p}))) {{ {a} = {x}; {p} = {at}; }}\n"
        ))
    }
}

pub fn passes(text: &Text, task: &mut Lowered, all: &[Reduction], reads: Vec<Reg>, outs: Vec<Reg>) -> Res<()> {
    let rows = text.k.grid.size();
    let mut n = text.k.rdims.size();
    let mut elements = Elements::Nodes;
    let mut reads_now = reads.clone();
    let folds = |elements: &Elements, n: usize| matches!(elements, Elements::Partial { .. }) && text.folds(rows, n);
    while n > BLOCK && !folds(&elements, n) {
        let blocks = n.div_ceil(BLOCK);
        let regions: usize = all.iter().map(Reduction::regions).sum();
        let partial = task.add_scratch(4 * regions * rows * blocks);
        let level = Level { text, all, elements: &elements, rows, n, blocks };
        let (wgsl, groups) = level.team(reads_now.len(), 1, &|body| level.leave(body))?;
        task.run_long(wgsl, reads_now, vec![partial], groups, level.work());
        reads_now = reads.iter().copied().chain([partial]).collect();
        elements = Elements::Partial { words: format!("in{}", reads.len()), rows };
        n = blocks;
    }
    let level = Level { text, all, elements: &elements, rows, n, blocks: 1 };
    let (wgsl, groups) = if n <= SHORT {
        level.alone(reads_now.len(), outs.len())?
    } else {
        level.team(reads_now.len(), outs.len(), &|body| level.finish(body))?
    };
    task.run_long(wgsl, reads_now, outs, groups, level.work() + work::of_element(text.k) * rows as u64);
    Ok(())
}

impl Text<'_> {
    /// Whether one workgroup reduces each row of `n`, and writes whole words.
    fn folds(&self, rows: usize, n: usize) -> bool {
        n.div_ceil(BLOCK) <= self.limits.workgroup as usize / LANES && (rows == 1 || self.consecutive() == 1)
    }
}

/// The accumulators of an invocation.
pub fn accumulators<'a>(all: impl Iterator<Item = &'a Reduction>) -> String {
    all.fold(String::new(), |mut text, r| {
        let _ = writeln!(text, "var a{}: {} = {};", r.node, lane(r.acc), r.identity());
        if r.positions() {
            let _ = writeln!(text, "var p{}: i32 = -1;", r.node);
        }
        text
    })
}
/// The memory in which the teams of a workgroup of so many invocations combine.
pub fn shared<'a>(all: impl Iterator<Item = &'a Reduction>, size: u32) -> String {
    all.fold(String::new(), |mut text, r| {
        let (number, lane) = (r.number, lane(r.acc));
        let _ = writeln!(text, "var<workgroup> s{number}{lane}: array<{lane}, {size}>;");
        if r.positions() {
            let _ = writeln!(text, "var<workgroup> z{number}: array<i32, {size}>;");
        }
        text
    })
}
/// Statements that combine the accumulators of each team, in those of its first invocation and at its `slot`.
pub fn tree<'a>(all: impl Iterator<Item = &'a Reduction> + Clone) -> Res<String> {
    let mut text: String = all.clone().map(Reduction::share).collect();
    text += "workgroupBarrier();\n";
    for w in [8, 4, 2, 1] {
        let _ = writeln!(text, "if (j < {w}) {{");
        for r in all.clone() {
            let id = r.node;
            let (a, p) = (format!("a{id}"), format!("p{id}"));
            let other = format!("slot + {w}");
            text += &r.take(&a, &p, &r.value(&other), &r.position(&other))?;
            text += &r.share();
        }
        text += "}\nworkgroupBarrier();\n";
    }
    Ok(text)
}
/// Statements that combine what [`tree`] has left of so many blocks of one row, in the same way and at slot 0.
pub fn tree_of_blocks<'a>(all: impl Iterator<Item = &'a Reduction> + Clone, blocks: usize) -> Res<String> {
    let mut text: String = all.clone().map(Reduction::reset).collect();
    let _ = writeln!(text, "if (mine == 0 && j < {blocks}) {{");
    for r in all.clone() {
        let (id, at) = (r.node, format!("j * {LANES}"));
        text += &r.take(&format!("a{id}"), &format!("p{id}"), &r.value(&at), &r.position(&at))?;
    }
    text += "}\nworkgroupBarrier();\n";
    Ok(text + &tree(all)?)
}
/// Statements that run `take` for each element `r` that invocation `j` of a team has of the block at `first`, of rows of `n`. Drivers unroll loops of
/// known length, so that several loads are under way at once: rounds that all invocations have are such a loop.
pub fn each_of_block(n: usize, take: &str) -> String {
    let rounds = |n: usize| {
        let (rounds, rest) = (n / LANES, n % LANES);
        let mut text = String::new();
        if rounds > 0 {
            let _ = writeln!(text, "for (var q = 0; q < {rounds}; q++) {{\nlet r = first + q * {LANES} + j;\n{take}}}");
        }
        if rest > 0 {
            let _ = writeln!(text, "if (j < {rest}) {{\nlet r = first + {} + j;\n{take}}}", n - rest);
        }
        text
    };
    match n % BLOCK {
        _ if n <= BLOCK => rounds(n),
        0 => rounds(BLOCK),
        rest => format!("if (first + {BLOCK} <= {n}) {{\n{}}} else {{\n{}}}\n", rounds(BLOCK), rounds(rest)),
    }
}

struct Level<'a> {
    text: &'a Text<'a>,
    all: &'a [Reduction],
    elements: &'a Elements,
    rows: usize,
    n: usize,
    blocks: usize,
}

impl Level<'_> {
    /// Whether a workgroup reduces the blocks of a row, and then their results.
    fn folds(&self) -> bool {
        self.blocks == 1 && self.n > BLOCK
    }
    fn work(&self) -> u64 {
        let each = match self.elements {
            Elements::Nodes => work::of_element(self.text.k),
            Elements::Partial { .. } => 12 * self.all.len() as u64,
        };
        each.saturating_mul(self.rows as u64).saturating_mul(self.n as u64)
    }
    /// Text that defines, for row `i` and element `r`, the values `x{id}` and their positions `y{id}`.
    fn element(&self, body: &mut String) -> Res<()> {
        match self.elements {
            Elements::Nodes => {
                let k = self.text.k;
                unravel(body, "r", &k.rdims, k.grid.len());
                self.text.nodes(body, &k.needed(self.all.iter().map(|r| r.of)))?;
                for r in self.all {
                    let _ = writeln!(body, "let x{} = n{};\nlet y{} = r;", r.node, r.of, r.node);
                }
            }
            Elements::Partial { words, rows } => {
                let mut region = 0;
                for r in self.all {
                    let at = |region: usize| format!("{words}[{} + i * {} + r]", region * rows * self.n, self.n);
                    *body += &r.left(&at(region), &at(region + 1));
                    region += r.regions();
                }
            }
        }
        Ok(())
    }

    /// One team for each block of each row; then `sink` handles the results, which are in shared memory
    /// at `team * 16`.
    fn team(&self, reads: usize, writes: usize, sink: &dyn Fn(&mut String) -> Res<()>) -> Res<(String, (u32, u32))> {
        let size = self.text.limits.workgroup;
        let teams = size as usize / LANES;
        let n_teams = self.rows * self.blocks;
        let n_groups = if self.folds() { self.rows } else { n_teams.div_ceil(teams) };
        let groups = crate::task::fold(n_groups as u64, self.text.limits.groups);
        let mut body = String::new();
        // Neighbouring invocations read neighbouring elements: of a row, or where rows lie closer, of its neighbours.
        let (in_team, in_row) = if self.rows_lie_closer() {
            (format!("% {teams}"), format!("/ {teams}"))
        } else {
            (format!("/ {LANES}"), format!("% {LANES}"))
        };
        let _ = writeln!(
            body,
            "let mine = i32(local) {in_team};\nlet j = i32(local) {in_row};\nlet team = group * {teams} + mine;\nlet slot = mine * {LANES} + j;"
        );
        body += &accumulators(self.all.iter());
        if self.folds() {
            let (rows, blocks) = (self.rows, self.n.div_ceil(BLOCK));
            let _ = writeln!(
                body,
                "if (group < {rows} && mine < {blocks}) {{\nlet i = group;\nlet first = mine * {BLOCK};"
            );
        } else {
            let blocks = self.blocks;
            let _ = writeln!(
                body,
                "if (team < {n_teams}) {{\nlet i = team / {blocks};\nlet first = (team % {blocks}) * {BLOCK};"
            );
        }
        if matches!(self.elements, Elements::Nodes) {
            unravel(&mut body, "i", &self.text.k.grid, 0);
        }
        let mut take = String::new();
        self.element(&mut take)?;
        for r in self.all {
            let id = r.node;
            take += &r.take(&format!("a{id}"), &format!("p{id}"), &format!("x{id}"), &format!("y{id}"))?;
        }
        body += &each_of_block(self.n, &take);
        body += "}\n";
        body += &tree(self.all.iter())?;
        if self.folds() {
            body += &tree_of_blocks(self.all.iter(), self.n.div_ceil(BLOCK))?;
        }
        sink(&mut body)?;
        let declarations = shared(self.all.iter(), size);
        Ok((wrapped(bindings(reads, writes) + &declarations, size, &body), groups))
    }

    fn rows_lie_closer(&self) -> bool {
        let k = self.text.k;
        let (Some(row), Some(element)) = (k.grid.len().checked_sub(1), k.rdims.len().checked_sub(1)) else {
            return false;
        };
        let load = k.nodes.iter().find_map(|(_, n)| if let Node::Load(a) = n { Some(&a.at) } else { None });
        matches!(self.elements, Elements::Nodes)
            && load.is_some_and(|a| a.stride(row).abs() == 1 && a.stride(k.grid.len() + element).abs() > 1)
    }

    /// Leaves the team's results in `out0`, one region of words after the other.
    fn leave(&self, body: &mut String) -> Res<()> {
        let _ = writeln!(body, "if (j == 0 && team < {}) {{", self.rows * self.blocks);
        let mut region = 0;
        for r in self.all {
            let at = |region: usize| format!("out0[{} + team]", region * self.rows * self.blocks);
            *body += &r.leave(&at(region), &at(region + 1));
            region += r.regions();
        }
        body.push_str("}\n");
        Ok(())
    }

    /// The epilogue of the group's rows, by its first invocations.
    fn finish(&self, body: &mut String) -> Res<()> {
        let (text, n) = (self.text, self.text.consecutive());
        let in_group = if self.folds() { 1 } else { text.limits.workgroup as usize / LANES };
        let each = in_group.div_ceil(n);
        let _ = writeln!(
            body,
            "let e = group * {each} + i32(local);\nif (i32(local) < {each} && e * {n} < {}) {{",
            self.rows
        );
        let value = |r: &Reduction| {
            let at = format!("(i - group * {in_group}) * {LANES}");
            (r.node, r.finished(&r.value(&at), &r.position(&at)))
        };
        let reduced: Vec<_> = self.all.iter().map(value).collect();
        text.each_output(body, "e", n, |text, body| text.epilogue(body, &reduced))?;
        body.push_str("}\n");
        Ok(())
    }

    /// Whole rows by one invocation each.
    fn alone(&self, reads: usize, writes: usize) -> Res<(String, (u32, u32))> {
        let text = self.text;
        let threads = self.rows.div_ceil(text.consecutive());
        let groups = text.limits.groups_for(threads);
        let mut body = format!("if (t >= {threads}) {{ return; }}\n");
        text.each_output(&mut body, "t", text.consecutive(), |text, body| {
            for r in self.all {
                let _ = writeln!(body, "var a{}: array<{}, {LANES}>;", r.node, lane(r.acc));
                let _ = writeln!(body, "for (var j = 0; j < {LANES}; j++) {{ a{}[j] = {}; }}", r.node, r.identity());
                if r.positions() {
                    let _ = writeln!(
                        body,
                        "var p{0}: array<i32, {LANES}>;\nfor (var j = 0; j < {LANES}; j++) {{ p{0}[j] = -1; }}",
                        r.node
                    );
                }
            }
            let _ = writeln!(body, "for (var r = 0; r < {}; r++) {{\nlet j = r % {LANES};", self.n);
            self.element(body)?;
            for r in self.all {
                let id = r.node;
                *body += &r.take(&format!("a{id}[j]"), &format!("p{id}[j]"), &format!("x{id}"), &format!("y{id}"))?;
            }
            body.push_str("}\nfor (var w = 8; w > 0; w /= 2) {\nfor (var j = 0; j < w; j++) {\n");
            for r in self.all {
                let id = r.node;
                *body += &r.take(
                    &format!("a{id}[j]"),
                    &format!("p{id}[j]"),
                    &format!("a{id}[j + w]"),
                    &format!("p{id}[j + w]"),
                )?;
            }
            body.push_str("}\n}\n");
            let value = |r: &Reduction| (r.node, r.finished(&format!("a{}[0]", r.node), &format!("p{}[0]", r.node)));
            let reduced: Vec<_> = self.all.iter().map(value).collect();
            text.epilogue(body, &reduced)
        })?;
        Ok((entry(reads, writes, text.limits.workgroup, &body), groups))
    }
}
