//! Cholesky factors and triangular systems of matrices larger than a workgroup's memory: a block of columns at a time, by two passes.
//!
//! ```text
//!     panel:     the block on the diagonal in a workgroup's memory; rows of the factor (or of the solution) behind it, a few for each workgroup
//!     product:   what is left, less the panel times itself (or the block's columns times the solution's rows)
//! ```
//! A product is over all rows: those that are done take no part in what follows. So every block has the same two pipelines, with its number as a word.
//!
//! INVARIANT: panels are `BLOCK` wide, with zeros beside what they have, so that products change nothing else that is read.
use super::super::{Product, dot, load};
use super::{BARRIER, SIZE, WORDS, divided, each, factor, order};
use crate::task::{Limits, Reg, fold};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::kernel::{Affine, Node};
use ferrax_kernel::linalg::{Linalg, Triangle};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Bin, DType, Res, Routine, Scalar};

/// Columns of a panel.
const BLOCK: usize = 32;
/// Rows of a panel, or columns of right-hand sides, that a workgroup holds beside the block on the diagonal and a word.
const HELD: usize = (WORDS - BLOCK * BLOCK - 1) / BLOCK;
/// Rows of a matrix, and elements of all, at most: there are two copies of them.
const MAX_ORDER: usize = 4096;
const MAX_ELEMENTS: usize = 1 << 25;

pub fn has(order: usize, elements: usize) -> bool {
    order <= MAX_ORDER && elements <= MAX_ELEMENTS
}

/// A dense array of a batch of matrices, or one of those transposed.
#[derive(Clone, Copy)]
struct Matrices {
    reg: Reg,
    rows: usize,
    columns: usize,
    transposed: bool,
}
impl Matrices {
    fn new(reg: Reg, rows: usize, columns: usize) -> Matrices {
        Matrices { reg, rows, columns, transposed: false }
    }
    fn t(self) -> Matrices {
        Matrices { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }
    fn size(&self) -> usize {
        self.rows * self.columns
    }
    /// Of matrices, rows and columns.
    fn strides(&self) -> [i64; 3] {
        let (m, n) = (self.rows as i64, self.columns as i64);
        if self.transposed { [m * n, 1, m] } else { [m * n, n, 1] }
    }
    /// Where the element of a row and a column is, of matrix `matrix`.
    fn at(&self, row: &str, column: &str) -> String {
        let [b, r, c] = self.strides();
        format!("matrix * {b} + ({row}) * {r} + ({column}) * {c}")
    }
}

/// Adds `to = from - x y`, of a batch of matrices.
fn less_product(task: &mut Lowered, batch: usize, [x, y, from]: [Matrices; 3], to: Reg, limits: Limits) -> Res<()> {
    let f32 = DType::F32;
    let d = Dot {
        b: batch,
        m: x.rows,
        n: y.columns,
        k: x.columns,
        lhs: x.strides(),
        rhs: y.strides(),
        dtype: f32,
        out: f32,
    };
    let alone = dot::as_kernel(&d);
    let mut kernel = alone.clone();
    let (result, old) = (kernel.outputs[0], kernel.nodes.len() as u32);
    kernel.inputs.push((f32, batch * from.size()));
    kernel.nodes.push(load(2, Affine::new(0, from.strides()), vec![], Scalar::zero(f32)));
    kernel.nodes.push((f32, Node::Bin(Bin::Sub, old, result)));
    kernel.outputs = vec![old + 1];
    let routine = Routine::Dot(d);
    let product = Product { routine: &routine, alone: &alone, kernel: &kernel, operands: [0, 1] };
    task.include(product.lower(limits)?, &[x.reg, y.reg, from.reg], &[to]);
    Ok(())
}

/// Adds a pass of so many workgroups for each matrix, for block number `number`.
fn panel(
    task: &mut Lowered,
    l: &Linalg,
    [head, body]: [&str; 2],
    [reads, writes]: [&[Reg]; 2],
    [number, tiles, rows]: [usize; 3],
    limits: Limits,
) {
    let groups = l.batch * tiles;
    let body = format!(
        "if (group >= {groups}) {{ return; }}\nlet matrix = group / {tiles};\nlet tile = group % {tiles};\nlet start = i32({}) * {BLOCK};\n{}",
        wgsl::word(0),
        body.replace(SIZE, &limits.workgroup.to_string())
    );
    let text = wgsl::wrapped(wgsl::bindings(reads.len(), writes.len()) + head, limits.workgroup, &body);
    let work = 16 * (l.batch * rows * BLOCK * BLOCK) as u64;
    task.run_with(text, reads.to_vec(), writes.to_vec(), fold(groups as u64, limits.groups), vec![number as u32], work);
}

/// What a panel has of a matrix on the diagonal; beyond the matrix, ones on the diagonal.
fn diagonal(a: &Matrices, words: &str) -> String {
    let n = a.rows;
    each(
        &(BLOCK * BLOCK).to_string(),
        &format!(
            "let r = start + e / {BLOCK};\nlet c = start + e % {BLOCK};\na[e] = select(0.0, 1.0, r == c);\nif (r < {n} && c < {n}) {{ a[e] = bitcast<f32>({words}[{}]); }}\n",
            a.at("r", "c")
        ),
    )
}

/// Panels of `l`, and what is left behind them; then zeros above the diagonal, and nan in matrices that have no factor.
pub fn cholesky(l: &Linalg, limits: Limits) -> Res<Lowered> {
    let (n, blocks) = (l.n, l.n.div_ceil(BLOCK));
    let tiles = n.div_ceil(HELD);
    let mut task = Lowered::default();
    let left = [(); 2].map(|()| task.add_scratch(4 * l.batch * n * n));
    let rows = task.add_scratch(4 * l.batch * n * BLOCK);
    let failures = task.add_scratch(4 * l.batch * blocks);
    let (whole, of_panel) = (Matrices::new(Reg::Out(0), n, n), Matrices::new(rows, n, BLOCK));
    let head = format!(
        "var<workgroup> a: array<f32, {}>;\nvar<workgroup> b: array<f32, {}>;\nvar<workgroup> failed: u32;\n",
        BLOCK * BLOCK,
        HELD * BLOCK
    );
    // row r of the held ones is row tile * HELD + r of the matrix
    let held = |statements: &str| {
        each(
            &(HELD * BLOCK).to_string(),
            &format!("let r = tile * {HELD} + e / {BLOCK};\nlet c = start + e % {BLOCK};\n{statements}"),
        )
    };
    let mut from = Reg::In(0);
    for k in 0..blocks {
        let old = Matrices::new(from, n, n);
        let at = old.at("r", "c");
        let is_behind = format!("r >= start + {BLOCK} && r < {n} && c < {n}");
        let block = format!(
            "if (tile == 0) {{\n{}}}\n",
            each(
                &(BLOCK * BLOCK).to_string(),
                &format!(
                    "let r = start + e / {BLOCK};\nlet c = start + e % {BLOCK};\nif (r < {n} && c <= r) {{ out0[{}] = bitcast<u32>(a[e]); }}\n",
                    whole.at("r", "c")
                ),
            )
        );
        let body = format!(
            "{diagonal}{rows}{factor}for (var k = 0; k < {BLOCK}; k++) {{
{column}{BARRIER}{behind}{BARRIER}}}
{store}{block}if (local == 0u && tile == 0) {{ out2[matrix * {blocks} + start / {BLOCK}] = failed; }}
",
            diagonal = diagonal(&old, "in0"),
            rows = held(&format!("b[e] = 0.0;\nif ({is_behind}) {{ b[e] = bitcast<f32>(in0[{at}]); }}\n")),
            factor = factor(BLOCK),
            column = each(&HELD.to_string(), &divided(&format!("b[e * {BLOCK} + k]"), &format!("a[k * {BLOCK} + k]"))),
            behind = each(
                &format!("{HELD} * ({BLOCK} - 1 - k)"),
                &format!(
                    "let r = e / ({BLOCK} - 1 - k);\nlet j = k + 1 + e % ({BLOCK} - 1 - k);\nb[r * {BLOCK} + j] -= b[r * {BLOCK} + k] * a[j * {BLOCK} + k];\n"
                ),
            ),
            store = held(&format!(
                "if (r < {n}) {{\nout1[{}] = bitcast<u32>(b[e]);\nif ({is_behind}) {{ out0[{}] = bitcast<u32>(b[e]); }}\n}}\n",
                of_panel.at("r", &format!("e % {BLOCK}")),
                whole.at("r", "c"),
            )),
        );
        panel(&mut task, l, [&head, &body], [&[from], &[whole.reg, rows, failures]], [k, tiles, n], limits);
        if k + 1 < blocks {
            less_product(&mut task, l.batch, [of_panel, of_panel.t(), old], left[k % 2], limits)?;
            from = left[k % 2];
        }
    }
    let all = l.batch * n * n;
    let body = format!(
        "if (t >= {all}) {{ return; }}
let matrix = t / {};
var failed = 0u;
for (var k = 0; k < {blocks}; k++) {{ failed |= in0[matrix * {blocks} + k]; }}
if (t % {n} > t / {n} % {n}) {{ out0[t] = 0u; }} else if (failed != 0u) {{ out0[t] = 0x7fc00000u; }}
",
        n * n
    );
    let text = wgsl::entry(1, 1, limits.workgroup, &body);
    task.run(text, vec![failures], vec![Reg::Out(0)], limits.groups_for(all));
    Ok(task)
}

/// Rows of the solution, a block at a time, and what is left of the right-hand sides. A system from the right is one of both transposed.
pub fn solve(t: Triangle, l: &Linalg, limits: Limits) -> Res<Lowered> {
    let n = order(t, l);
    let (blocks, columns) = (n.div_ceil(BLOCK), if t.left { l.n } else { l.m });
    let (held, tiles) = (HELD.min(columns), columns.div_ceil(HELD.min(columns)));
    let is_lower = (t.lower != t.transpose) == t.left;
    let mut task = Lowered::default();
    let left = [(); 2].map(|()| task.add_scratch(4 * l.batch * n * columns));
    let (beside, solved) = (task.add_scratch(4 * l.batch * n * BLOCK), task.add_scratch(4 * l.batch * BLOCK * columns));
    let turned = |reg: Reg| if t.left { Matrices::new(reg, n, columns) } else { Matrices::new(reg, columns, n).t() };
    let (a, x) = (Matrices::new(Reg::In(0), n, n), turned(Reg::Out(0)));
    let a = if t.transpose == t.left { a.t() } else { a };
    let (of_columns, of_rows) = (Matrices::new(beside, n, BLOCK), Matrices::new(solved, BLOCK, columns));
    let head =
        format!("var<workgroup> a: array<f32, {}>;\nvar<workgroup> b: array<f32, {}>;\n", BLOCK * BLOCK, held * BLOCK);
    // neighbouring invocations have neighbouring elements
    let moved = |m: &Matrices, statements: &str| {
        let place = if m.transposed {
            format!("let r = e % {BLOCK};\nlet c = e / {BLOCK};\n")
        } else {
            format!("let r = e / {held};\nlet c = e % {held};\n")
        };
        let column = format!("let column = tile * {held} + c;\nlet at = r * {held} + c;\n");
        each(&(held * BLOCK).to_string(), &format!("{place}{column}if (column < {columns}) {{\n{statements}}}\n"))
    };
    let by_pivot = match t.unit {
        true => String::new(),
        false => {
            each(&held.to_string(), &divided(&format!("b[i * {held} + e]"), &format!("a[i * {BLOCK} + i]"))) + BARRIER
        }
    };
    let rest = each(
        &format!("({BLOCK} - 1 - step) * {held}"),
        &format!(
            "let r = e / {held}{};\nlet c = e % {held};\nb[r * {held} + c] -= a[r * {BLOCK} + i] * b[i * {held} + c];\n",
            if is_lower { " + i + 1" } else { "" },
        ),
    );
    let mut from = turned(Reg::In(1));
    for number in 0..blocks {
        let block = if is_lower { number } else { blocks - 1 - number };
        // the block's columns, of which the workgroups of a matrix have some rows each
        let aside = format!(
            "for (var e = tile * SIZE + i32(local); e < {}; e += {}) {{\nlet r = e / {BLOCK};\nlet c = start + e % {BLOCK};\nvar word = 0u;\nif (c < {n}) {{ word = in0[{}]; }}\nout1[{}] = word;\n}}\n",
            n * BLOCK,
            format_args!("SIZE * {tiles}"),
            a.at("r", "c"),
            of_columns.at("r", &format!("e % {BLOCK}")),
        );
        let body = format!(
            "{diagonal}{load}{aside}{BARRIER}for (var step = 0; step < {BLOCK}; step++) {{
let i = {};
{by_pivot}{rest}{BARRIER}}}
{keep}{store}",
            if is_lower { "step".to_string() } else { format!("{} - step", BLOCK - 1) },
            diagonal = diagonal(&a, "in0"),
            load = moved(
                &from,
                &format!(
                    "b[at] = 0.0;\nif (start + r < {n}) {{ b[at] = bitcast<f32>(in1[{}]); }}\n",
                    from.at("start + r", "column")
                )
            ),
            keep = moved(&of_rows, &format!("out2[{}] = bitcast<u32>(b[at]);\n", of_rows.at("r", "column"))),
            store = moved(
                &x,
                &format!("if (start + r < {n}) {{ out0[{}] = bitcast<u32>(b[at]); }}\n", x.at("start + r", "column"))
            ),
        );
        let regs: [&[Reg]; 2] = [&[a.reg, from.reg], &[x.reg, beside, solved]];
        panel(&mut task, l, [&head, &body], regs, [block, tiles, columns.max(n)], limits);
        if number + 1 < blocks {
            let to = left[number % 2];
            less_product(&mut task, l.batch, [of_columns, of_rows, from], to, limits)?;
            from = Matrices::new(to, n, columns);
        }
    }
    Ok(task)
}
