//! Row programs: several reductions over the same rows, and the maps between them, in one pass; over rows longer than a workgroup's, in a pass for
//! each phase.
//!
//! ```text
//!     softmax:   phase 1:  m = max x           phase 2:  s = sum exp(x - m)           outputs:  exp(x - m) / s
//! ```
//! A team of 16 invocations takes a row of up to 1024 elements; the teams of a workgroup take the blocks of a longer one, or of a part of it. Values of
//! elements are computed again in each phase that needs them, values of rows are kept in the workgroup's memory. Where a row is several workgroups',
//! each leaves the results of its blocks in scratch, and in a later pass each finishes the phases before from those of the whole row.
//!
//! INVARIANT: elements are combined in the order of [`super::reduce`], so bits equal those of the kernels one by one.
use super::super::{Place, bindings, lane, unravel, wrapped};
use super::numbers::Numbers;
use super::reduce::{self, Reduction};
use super::{Lowered, Text, check, work};
use crate::task::{Limits, Reg, Task};
use ferrax_kernel::kernel::{Affine, Kernel, Node, NodeId};
use ferrax_kernel::order::{BLOCK, LANES};
use ferrax_kernel::{Dims, Res};
use std::fmt::Write;

/// What an output has one value for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    Element,
    Row,
}

/// A kernel whose grid is rows and whose reduced dimensions are their elements, where nodes of elements may use reductions.
#[derive(Clone)]
pub struct RowKernel {
    pub kernel: Kernel,
    /// Of each output: elements first.
    pub outputs: Vec<Each>,
}

/// Reductions of one program, whose workgroup memory there is in any case.
pub const MAX_REDUCTIONS: usize = 6;

struct Phases<'a> {
    rows: &'a RowKernel,
    all: Vec<Reduction>,
    /// Of each node: after how many phases it is known.
    level: Vec<usize>,
    /// Values of rows that later phases, or outputs, use.
    kept: Vec<bool>,
    last: usize,
}

impl<'a> Phases<'a> {
    fn of(rows: &'a RowKernel) -> Phases<'a> {
        let k = &rows.kernel;
        let varies = |a: &Affine| (k.grid.len()..k.grid.len() + k.rdims.len()).any(|d| a.stride(d) != 0);
        let (mut element, mut level) = (vec![], vec![]);
        for (_, node) in &k.nodes {
            let operands = node.operands();
            element.push(match node {
                Node::Load(a) => varies(&a.at) || a.guards.iter().any(|g| varies(&g.at)),
                Node::Index(a) => varies(a),
                Node::Reduce { .. } => false,
                _ => operands.iter().any(|o| element[*o as usize]),
            });
            let before = operands.iter().map(|o| level[*o as usize]).max().unwrap_or(0);
            level.push(before + usize::from(matches!(node, Node::Reduce { .. })));
        }
        let mut kept = vec![false; k.nodes.len()];
        let is_kept = |o: NodeId| !element[o as usize] && level[o as usize] > 0;
        for (id, (_, node)) in k.nodes.iter().enumerate() {
            let later = |o: NodeId| element[id] || matches!(node, Node::Reduce { .. }) || level[id] > level[o as usize];
            node.operands().into_iter().filter(|o| is_kept(*o) && later(*o)).for_each(|o| kept[o as usize] = true);
        }
        k.outputs.iter().filter(|o| is_kept(**o)).for_each(|o| kept[*o as usize] = true);
        let last = level.iter().copied().max().unwrap_or(0);
        Phases { rows, all: reduce::of(k), level, kept, last }
    }
    /// The nodes that `roots` are computed from, down to values of rows that are known after so many phases; and those.
    fn needed(&self, roots: impl Iterator<Item = NodeId>, after: usize) -> (Vec<bool>, Vec<NodeId>) {
        let k = &self.rows.kernel;
        let (mut needed, mut known) = (vec![false; k.nodes.len()], vec![]);
        roots.for_each(|r| needed[r as usize] = true);
        for id in (0..k.nodes.len()).rev().filter(|id| !matches!(k.nodes[*id].1, Node::Reduce { .. }) || self.kept[*id])
        {
            if needed[id] && self.kept[id] && self.level[id] <= after {
                needed[id] = false;
                known.push(id as NodeId);
            } else if needed[id] && !matches!(k.nodes[id].1, Node::Reduce { .. }) {
                k.nodes[id].1.operands().iter().for_each(|o| needed[*o as usize] = true);
            }
        }
        known.reverse();
        (needed, known)
    }
    /// Scalar operations for an element in a phase; behind the last one, for outputs.
    fn work(&self, level: usize) -> u64 {
        let nodes = match level {
            _ if level > self.last => self.needed(self.outputs(Each::Element), self.last).0,
            _ => self.needed(self.of_level(level).map(|r| r.of), level - 1).0,
        };
        work::of_nodes(&self.rows.kernel, &nodes)
    }
    fn of_level(&self, level: usize) -> impl Iterator<Item = &Reduction> + Clone {
        self.all.iter().filter(move |r| self.level[r.node as usize] == level)
    }
    fn outputs(&self, each: Each) -> impl Iterator<Item = NodeId> {
        let all = self.rows.kernel.outputs.iter().zip(&self.rows.outputs);
        all.filter(move |(_, e)| **e == each).map(|(o, _)| *o)
    }
}

impl RowKernel {
    /// Scalar operations for an element, in all phases.
    pub fn work(&self) -> u64 {
        let p = Phases::of(self);
        (1..=p.last + 1).map(|level| p.work(level)).sum()
    }
    pub fn reductions(&self) -> usize {
        reduce::of(&self.kernel).len()
    }
    /// Whether a row is one block.
    pub fn is_short(&self) -> bool {
        self.kernel.rdims.size() <= BLOCK
    }
    /// The longest row of a workgroup, which reduces it in two levels.
    pub fn longest(limits: Limits) -> usize {
        limits.workgroup as usize / LANES * BLOCK
    }

    fn shape(&self, from: Vec<Place>, to: Vec<Place>, limits: Limits) -> Res<Shape<'_>> {
        check(&self.kernel)?;
        let (rows, n) = (self.kernel.grid.size(), self.kernel.rdims.size());
        let (blocks, teams) = (n.div_ceil(BLOCK), limits.workgroup as usize / LANES);
        let in_group = if blocks == 1 { teams } else { 1 };
        Ok(Shape { p: Phases::of(self), rows, n, blocks, in_group, parts: blocks.div_ceil(teams), from, to, limits })
    }
    /// Statements of one workgroup for all rows; `head` gets the declarations of its memory.
    ///
    /// # Errors
    /// As [`super::lower`].
    pub fn in_workgroup(&self, from: Vec<Place>, to: Vec<Place>, limits: Limits, head: &mut String) -> Res<String> {
        let shape = self.shape(from, to, limits)?;
        let mut body = format!("for (var group = 0; group < {}; group++) {{\n", shape.groups());
        shape.write(head, &mut body)?;
        Ok(body + "}\n")
    }

    /// The passes, whose inputs and outputs are the program's.
    ///
    /// # Errors
    /// As [`super::lower`].
    pub fn lower(&self, limits: Limits) -> Res<Lowered> {
        let k = &self.kernel;
        let all = |n: usize, name: &str| (0..n).map(|i| Place::of(format!("{name}{i}"))).collect();
        let mut shape = self.shape(all(k.inputs.len(), "in"), all(k.outputs.len(), "out"), limits)?;
        let (elements, last) = ((shape.rows * shape.n) as u64, shape.p.last);
        let mut outs: Vec<Reg> = (0..k.outputs.len()).map(Reg::Out).collect();
        let mut task = Task::default();
        if shape.parts == 1 {
            let work = self.work().saturating_mul(elements);
            shape.pass(&mut task, outs, work, |head, body| shape.write(head, body))?;
            return Ok(task);
        }
        let scratch = task.add_scratch(4 * shape.partials());
        for level in 1..=last {
            let work = shape.p.work(level).saturating_mul(elements);
            shape.pass(&mut task, vec![scratch], work, |head, body| shape.long(head, body, level, "out0"))?;
        }
        let has_elements = shape.p.outputs(Each::Element).next().is_some();
        shape.parts = if has_elements { shape.parts } else { 1 };
        let work = shape.p.work(last + 1).saturating_mul(if has_elements { elements } else { shape.rows as u64 });
        let name = format!("out{}", outs.len());
        outs.push(scratch);
        shape.pass(&mut task, outs, work, |head, body| shape.long(head, body, last + 1, &name))?;
        Ok(task)
    }
}

struct Shape<'a> {
    p: Phases<'a>,
    rows: usize,
    n: usize,
    /// Of a row.
    blocks: usize,
    /// Rows of a workgroup, or workgroups of a row.
    in_group: usize,
    parts: usize,
    from: Vec<Place>,
    to: Vec<Place>,
    limits: Limits,
}

impl Shape<'_> {
    fn groups(&self) -> usize {
        self.rows.div_ceil(self.in_group) * self.parts
    }
    fn k(&self) -> &Kernel {
        &self.p.rows.kernel
    }
    /// The text of nodes of a kernel with this grid and these outputs.
    fn text<R>(&self, grid: Dims, outputs: Vec<NodeId>, from: usize, f: impl FnOnce(&Text) -> R) -> R {
        let to = self.to.get(from..from + outputs.len()).unwrap_or_default().to_vec();
        let k = Kernel { grid, outputs, ..self.k().clone() };
        f(&Text { k: &k, places: self.from.clone(), to, limits: self.limits, numbers: Numbers::default() })
    }
    /// Where the value of a row is kept.
    fn kept(&self, id: NodeId, at: &str) -> String {
        format!("f{id}{}[{at}]", lane(self.k().nodes[id as usize].0))
    }
    /// `let`s of values of rows, which are kept at `at`.
    fn known(&self, body: &mut String, known: &[NodeId], at: &str) {
        for id in known {
            let _ = writeln!(body, "let n{id} = {};", self.kept(*id, at));
        }
    }

    /// Adds the pass with these statements, which reads the program's inputs.
    fn pass(
        &self,
        task: &mut Lowered,
        writes: Vec<Reg>,
        work: u64,
        write: impl FnOnce(&mut String, &mut String) -> Res<()>,
    ) -> Res<()> {
        let ins: Vec<Reg> = (0..self.k().inputs.len()).map(Reg::In).collect();
        let (mut head, mut body) = (bindings(ins.len(), writes.len()), String::new());
        write(&mut head, &mut body)?;
        let groups = crate::task::fold(self.groups() as u64, self.limits.groups);
        task.run_long(wrapped(head, self.limits.workgroup, &body), ins, writes, groups, work);
        Ok(())
    }
    /// A workgroup that has rows.
    fn write(&self, head: &mut String, body: &mut String) -> Res<()> {
        self.declare(head, body);
        for level in 1..=self.p.last {
            self.accumulate(body, level)?;
            *body += &reduce::tree(self.p.of_level(level))?;
            if self.blocks > 1 {
                *body += &reduce::tree_of_blocks(self.p.of_level(level), self.blocks)?;
            }
            self.keep(body, level)?;
        }
        self.elements(body)?;
        self.of_rows(body)
    }
    /// A workgroup that has a part of a row: it finishes the phases before `level` from what `scratch` has of their blocks, then leaves there what it
    /// has of `level`, or behind the last phase writes outputs.
    fn long(&self, head: &mut String, body: &mut String, level: usize, scratch: &str) -> Res<()> {
        self.declare(head, body);
        let (mut region, each) = (0, self.rows * self.blocks);
        let mut place = |r: &Reduction| {
            let first = region;
            region += r.regions();
            format!("{scratch}[{} + row * {} + ", first * each, self.blocks)
        };
        for earlier in 1..level {
            let all: Vec<(&Reduction, String)> = self.p.of_level(earlier).map(|r| (r, place(r))).collect();
            let mut take = String::new();
            for (r, at) in &all {
                take += &r.take_left(&format!("{at}r]"), &format!("{at}{each} + r]"))?;
            }
            *body += &reduce::accumulators(self.p.of_level(earlier));
            body.push_str("if (mine == 0 && is_mine) {\nlet first = 0;\n");
            *body += &reduce::each_of_block(self.blocks, &take);
            body.push_str("}\n");
            *body += &reduce::tree(self.p.of_level(earlier))?;
            self.keep(body, earlier)?;
        }
        if level > self.p.last {
            self.elements(body)?;
            return self.of_rows(body);
        }
        self.accumulate(body, level)?;
        *body += &reduce::tree(self.p.of_level(level))?;
        let _ = writeln!(body, "let block = first / {BLOCK};\nif (j == 0 && is_mine) {{");
        for r in self.p.of_level(level) {
            let at = place(r);
            *body += &r.leave(&format!("{at}block]"), &format!("{at}{each} + block]"));
        }
        body.push_str("}\n");
        Ok(())
    }
    /// Words that the blocks of all rows leave.
    fn partials(&self) -> usize {
        self.p.all.iter().map(Reduction::regions).sum::<usize>() * self.rows * self.blocks
    }

    /// The memory of a workgroup, and which rows and elements each of its invocations has.
    fn declare(&self, head: &mut String, body: &mut String) {
        let size = self.limits.workgroup;
        *head += &reduce::shared(self.p.all.iter(), size);
        for (id, _) in self.p.kept.iter().enumerate().filter(|(_, kept)| **kept) {
            let d = self.k().nodes[id].0;
            let rows = self.limits.workgroup as usize / LANES;
            let _ = writeln!(head, "var<workgroup> f{id}{0}: array<{0}, {rows}>;", lane(d));
        }
        let (of_team, first, is_mine) = match self.blocks {
            1 => ("mine", "0".to_string(), String::new()),
            _ => ("0", format!("part * {} + mine * {BLOCK}", self.of_part()), format!(" && first < {}", self.n)),
        };
        let _ = writeln!(
            body,
            "let mine = i32(local) / {LANES};\nlet j = i32(local) % {LANES};\nlet slot = i32(local);\nlet part = group % {parts};\nlet row0 = group / {parts} * {};\nlet at = {of_team};\nlet row = row0 + at;\nlet first = {first};\nlet is_mine = row < {}{is_mine};",
            self.in_group,
            self.rows,
            parts = self.parts
        );
    }
    /// Elements of a workgroup.
    fn of_part(&self) -> usize {
        match self.blocks {
            1 => self.in_group * self.n,
            _ if self.parts == 1 => self.n,
            _ => self.limits.workgroup as usize / LANES * BLOCK,
        }
    }

    /// The accumulators of the reductions of a phase.
    fn accumulate(&self, body: &mut String, level: usize) -> Res<()> {
        let all = || self.p.of_level(level);
        let (needed, known) = self.p.needed(all().map(|r| r.of), level - 1);
        *body += &reduce::accumulators(all());
        body.push_str("if (is_mine) {\n");
        unravel(body, "row", &self.k().grid, 0);
        self.known(body, &known, "at");
        let mut take = String::new();
        unravel(&mut take, "r", &self.k().rdims, self.k().grid.len());
        self.text(self.k().grid.clone(), vec![], 0, |text| text.nodes(&mut take, &needed))?;
        for r in all() {
            let id = r.node;
            take += &r.take(&format!("a{id}"), &format!("p{id}"), &format!("n{}", r.of), "r")?;
        }
        *body += &reduce::each_of_block(self.n, &take);
        body.push_str("}\n");
        Ok(())
    }
    /// The values of rows that are known after a phase, whose results the first invocation of each row has.
    fn keep(&self, body: &mut String, level: usize) -> Res<()> {
        let kept = || (0..self.k().nodes.len() as NodeId).filter(|id| self.keeps(*id, level));
        let (needed, known) = self.p.needed(kept(), level - 1);
        let leader = if self.blocks == 1 { "j == 0 && is_mine" } else { "local == 0u && is_mine" };
        let _ = writeln!(body, "if ({leader}) {{");
        unravel(body, "row", &self.k().grid, 0);
        for r in self.p.of_level(level) {
            let id = r.node;
            let _ = writeln!(body, "let n{id} = {};", r.finished(&format!("a{id}"), &format!("p{id}")));
        }
        self.known(body, &known, "at");
        self.text(self.k().grid.clone(), vec![], 0, |text| text.nodes(body, &needed))?;
        for id in kept() {
            let _ = writeln!(body, "{} = n{id};", self.kept(id, "at"));
        }
        body.push_str("}\nworkgroupBarrier();\n");
        Ok(())
    }
    fn keeps(&self, id: NodeId, level: usize) -> bool {
        self.p.kept[id as usize] && self.p.level[id as usize] == level
    }

    /// The outputs of elements, by all invocations in the order of memory.
    fn elements(&self, body: &mut String) -> Res<()> {
        let outputs: Vec<NodeId> = self.p.outputs(Each::Element).collect();
        if outputs.is_empty() {
            return Ok(());
        }
        let (needed, known) = self.p.needed(outputs.iter().copied(), self.p.last);
        let (size, n, of_part) = (self.limits.workgroup, self.n, self.of_part());
        self.text(self.k().domain(), outputs, 0, |text| {
            let each = text.consecutive();
            let _ = writeln!(
                body,
                "let begin = (row0 * {n} + part * {of_part}) / {each};\nlet end = min(row0 + {}, {}) * {n};\nfor (var e = i32(local); e < {}; e += {size}) {{\nlet unit = begin + e;\nif (unit * {each} >= end) {{ break; }}",
                self.in_group,
                self.rows,
                of_part / each
            );
            text.each_output(body, "unit", each, |text, body| {
                self.known(body, &known, &format!("i / {n} - row0"));
                text.nodes(body, &needed)
            })?;
            body.push_str("}\n");
            Ok(())
        })
    }
    /// The outputs of rows, by the first invocations.
    fn of_rows(&self, body: &mut String) -> Res<()> {
        let outputs: Vec<NodeId> = self.p.outputs(Each::Row).collect();
        if outputs.is_empty() {
            return Ok(());
        }
        let from = self.k().outputs.len() - outputs.len();
        let (needed, known) = self.p.needed(outputs.iter().copied(), self.p.last);
        self.text(self.k().grid.clone(), outputs, from, |text| {
            let each = text.consecutive();
            let units = self.in_group / each;
            let _ = writeln!(
                body,
                "let u = row0 / {each} + i32(local);\nif (part == 0 && i32(local) < {units} && u * {each} < {}) {{",
                self.rows
            );
            text.each_output(body, "u", each, |text, body| {
                self.known(body, &known, "i - row0");
                text.nodes(body, &needed)
            })?;
            body.push_str("}\n");
            Ok(())
        })
    }
}
