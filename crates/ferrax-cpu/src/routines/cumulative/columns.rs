//! Columns side by side by block functions, one row of them after the other.
use super::{Cumulative, SharedPtr};
use crate::kernels::block::BlockFn;
use crate::kernels::moves::LoadFn;
use crate::memory::Block;
use crate::routines::strided::copy;
use ferrax_kernel::Res;
use ferrax_kernel::order::RUN;
use std::ops::Range;

/// Block functions of a combination, whose accumulator has the lane's dtype.
pub(super) struct ColumnFunctions {
    pub load: LoadFn,
    pub combine: BlockFn,
    pub canonical: Option<BlockFn>,
    pub store: BlockFn,
    /// In the order of [`ferrax_kernel::order::running`], not in sequence.
    pub in_blocks: bool,
}
/// Columns that go side by side.
const COLUMNS: usize = 256;
/// Bytes of a row of lanes of so many columns.
const ROW: usize = COLUMNS * 8;
/// Rows of lanes of a level of totals.
const LEVEL_ROWS: usize = 4;

/// A level of totals of blocks, as rows of lanes: those of its block so far and one to write the next to; of all blocks before; and
/// of all.
struct ColumnLevel {
    count: usize,
    has_before: bool,
    rows: [*mut u8; LEVEL_ROWS],
}
/// Takes the totals of the next block; the row that combines all blocks up to it.
///
/// # Safety
/// Rows of `w` lanes, apart from each other.
unsafe fn push(levels: &mut [ColumnLevel], combine: BlockFn, totals: *const u8, w: usize) -> *const u8 {
    let Some((level, above)) = levels.split_first_mut() else { return totals };
    let [mut acc, spare, before, all] = level.rows;
    // SAFETY: by the contract.
    unsafe {
        if level.count == RUN {
            let up = push(above, combine, acc, w);
            std::ptr::copy_nonoverlapping(up, before, ROW);
            (level.has_before, level.count) = (true, 0);
        }
        if level.count == 0 {
            std::ptr::copy_nonoverlapping(totals, acc, ROW);
        } else {
            combine(spare, acc, totals, totals, w);
            (level.rows[0], level.rows[1]) = (spare, acc);
            acc = spare;
        }
        level.count += 1;
        if level.has_before {
            combine(all, before, acc, acc, w);
            return all;
        }
    }
    acc
}

impl Cumulative {
    /// The chunks of columns; with one column in a row, rows side by side are loaded as columns.
    pub(super) fn chunks(&self) -> usize {
        if self.inner == 1 { self.outer.div_ceil(COLUMNS) } else { self.inner.div_ceil(COLUMNS) }
    }
    /// Levels of totals of blocks.
    fn levels(&self, f: &ColumnFunctions) -> usize {
        let (mut blocks, mut levels) = (if f.in_blocks { self.n.div_ceil(RUN) } else { 1 }, 0);
        while blocks > 1 {
            (blocks, levels) = (blocks.div_ceil(RUN), levels + 1);
        }
        levels
    }
    pub(super) fn by_columns(&self, f: &ColumnFunctions, [x, out]: [SharedPtr; 2], units: Range<usize>) -> Res<()> {
        let (n, size, chunks) = (self.n, self.size, self.chunks());
        let (columns, columns_apart, row_step) =
            if self.inner == 1 { (self.outer, n, 1) } else { (self.inner, 1, self.inner) };
        let n_levels = self.levels(f);
        let memory = Block::new((5 + LEVEL_ROWS * n_levels) * ROW)?;
        let p = memory.ptr();
        let [mut acc, next, mut sum, rounded, whole] = [0, 1, 2, 3, 4].map(|k| p.wrapping_add(k * ROW));
        for unit in units {
            let (group, c) = (unit / chunks, unit % chunks * COLUMNS);
            let w = COLUMNS.min(columns - c);
            let level = |k: usize| ColumnLevel {
                count: 0,
                has_before: false,
                rows: std::array::from_fn(|r| p.wrapping_add((5 + LEVEL_ROWS * k + r) * ROW)),
            };
            let mut levels: Vec<ColumnLevel> = (0..n_levels).map(level).collect();
            let mut before: *const u8 = std::ptr::null();
            for k in 0..n {
                let row = if self.reverse { n - 1 - k } else { k };
                let at = (group * n * self.inner + row * row_step + c * columns_apart) * size;
                let begins = k == 0 || f.in_blocks && k.is_multiple_of(RUN);
                // SAFETY: verify, sizes: operand and result have outer * n * inner elements; row
                // `k` of column `c + w - 1` is one of them, and w is at most COLUMNS, for which
                // each row of the memory has room, 8 bytes each. Columns of a unit belong to one
                // thread.
                unsafe {
                    if begins && k > 0 {
                        before = push(&mut levels, f.combine, acc, w);
                    }
                    let to = if begins { acc } else { next };
                    (f.load)(to, x.get().wrapping_add(at), 1, 0, w, columns_apart as isize);
                    if !begins {
                        (f.combine)(sum, acc, next, next, w);
                        std::mem::swap(&mut acc, &mut sum);
                    }
                    let mut value = acc;
                    if !before.is_null() {
                        (f.combine)(whole, before, acc, acc, w);
                        value = whole;
                    }
                    if let Some(g) = f.canonical {
                        g(rounded, value, value, value, w);
                        value = rounded;
                    }
                    let to = out.get().wrapping_add(at);
                    if columns_apart == 1 {
                        (f.store)(to, value, value, value, w);
                    } else {
                        (f.store)(next, value, value, value, w);
                        (copy(size).run)(to, next, w, (columns_apart * size) as isize, size as isize);
                    }
                }
            }
        }
        Ok(())
    }
}
