//! Convolutions: products of windows and weights, by [`super::tiles`]; those of few
//! rows, columns or terms are kernels.
//!
//! A row is a position of the result, a term an element of its window; neither is copied: what is
//! staged of a tile is read where it lies. Sums go to scratch memory, and a kernel brings them to
//! the result's order where that is another. If there are few tiles, they are parts of sums.
use super::Product;
use super::dot::{MIN_TERMS, WORKGROUPS};
use super::tiles::{Element, Part, TILE, Tiles};
use crate::task::{Limits, Reg};
use crate::wgsl::epilogue::{Epilogue, Partial};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::Res;
use ferrax_kernel::kernel::Affine;
use ferrax_kernel::routine::Conv;
use std::fmt::Write;

pub fn lower(c: &Conv, product: &Product, limits: Limits) -> Res<Lowered> {
    if is_small(c, limits) {
        return wgsl::lower(product.kernel, limits);
    }
    let (b, m, n, k) = sizes(c);
    let tiles = b * m.div_ceil(TILE) * n.div_ceil(TILE);
    let mut splits = 1;
    while splits * tiles < WORKGROUPS && k / (2 * splits) >= MIN_TERMS {
        splits *= 2;
    }
    let terms = k.div_ceil(splits);
    let (mut task, epilogue) = (Lowered::default(), Epilogue::of(product.kernel)?);
    let run = |task: &mut Lowered, epilogue: &Epilogue, outs: Vec<Reg>| {
        let elements: [Element; 2] = [
            Box::new(|words, row, term| window(c, terms, words, [row, term])),
            Box::new(|words, column, term| weight(c, terms, words, [column, term])),
        ];
        let operands = product.operands.map(Reg::In);
        let parts = vec![Part { epilogue, ins: product.ins(), outs, operands, elements }];
        let terms_first = [is_unit(c, c.terms.len()) && !is_unit(c, 0), c.y[c.batch.len()] == 1];
        Tiles { b: splits * b, m, n, k: terms, acc: c.dtype, terms_first, parts }.run(task, limits)
    };
    let (axes, order) = c.grid();
    if splits == 1 && order.is_sorted() && n.is_multiple_of(epilogue.per_word()) {
        run(&mut task, &epilogue, product.outs())?;
        return Ok(task);
    }
    let sums = task.add_scratch(4 * splits * axes.size());
    run(&mut task, &Epilogue::none(c.dtype, splits * axes.size())?, vec![sums])?;
    // of axes (part, batch, row, column), in the order of the result
    let dense = axes.strides();
    let at = Affine::new(0, order.iter().map(|k| dense[*k] as i64).chain([axes.size() as i64]).collect::<Vec<_>>());
    product.of_sums(&mut task, sums, &Partial { parts: splits, at, dims: axes.pick(&order) }, limits)?;
    Ok(task)
}

/// Of the batch, of rows, of columns, and terms.
fn sizes(c: &Conv) -> (usize, usize, usize, usize) {
    (c.batch.size(), c.rows.size(), c.columns, c.terms.size())
}
/// Whether it is a kernel.
pub fn is_small(c: &Conv, limits: Limits) -> bool {
    let (b, m, n, k) = sizes(c);
    let is_countable = c.x <= i32::MAX as usize && b * m * n <= i32::MAX as usize;
    m < 16 || n < 8 || k < 8 || c.dtype.size() != 4 || limits.workgroup < 256 || !is_countable
}
/// Whether neighbours along the last of the rows, or of so many axes of terms behind them, are neighbours in memory.
fn is_unit(c: &Conv, terms: usize) -> bool {
    c.at.stride(c.batch.len() + c.rows.len() + terms - 1).abs() == 1
}

/// Statements that define the term `p` of a part of the sums, and the coordinates of the batch.
fn place(c: &Conv, terms: usize, term: &str) -> String {
    let mut text = format!("let p = b / {} * {terms} + {term};\n", c.batch.size());
    wgsl::unravel(&mut text, &format!("b % {}", c.batch.size()), &c.batch, 0);
    text
}
/// Statements that set `x` to the element of x for a row and a term, where guards let it through.
fn window(c: &Conv, terms: usize, words: &str, [row, term]: [&str; 2]) -> String {
    let (nb, nr) = (c.batch.len(), c.rows.len());
    let mut text = place(c, terms, term);
    wgsl::unravel(&mut text, row, &c.rows, nb);
    wgsl::unravel(&mut text, "p", &c.terms, nb + nr);
    let guards: Vec<String> = c.guards.iter().map(wgsl::guard).collect();
    let passes = [format!("p < {}", c.terms.size())].into_iter().chain(guards).collect::<Vec<_>>().join(" && ");
    let _ = writeln!(text, "if ({passes}) {{ x = {}; }}", wgsl::load(c.dtype, words, 0, &wgsl::affine(&c.at)));
    text
}
/// The same for the element of y for a column and a term.
fn weight(c: &Conv, terms: usize, words: &str, [column, term]: [&str; 2]) -> String {
    let nb = c.batch.len();
    let mut text = place(c, terms, term);
    let batch: String = (0..nb).map(|k| format!("c{k} * {} + ", c.y[k])).collect();
    let at = format!("{batch}p * {} + {column} * {}", c.y[nb], c.y[nb + 1]);
    let _ = writeln!(text, "if (p < {}) {{ x = {}; }}", c.terms.size(), wgsl::load(c.dtype, words, 0, &at));
    text
}
