//! Kernels over the same rows, run chunk by chunk: what one makes, the next reads while it lies in the cache.
//!
//! ```text
//!     softmax:   m = max x;  e = exp(x - m);  s = sum e;  y = e / s
//!
//!     link by link:    m, all rows;  e, all rows;  s, all rows;  y, all rows         x and e are read from memory twice
//!     chunk by chunk:  m, e, s, y of rows 0..5;  m, e, s, y of rows 5..10; ..        x is read once, and e is never there
//! ```
//!
//! What only links of the chain read lies in working memory of the thread, as long as one chunk.
//!
//! INVARIANT: a link makes its rows of what the same rows of earlier links are, and memory that one link writes, others touch at the same rows only.
//! So the order of the rows does not matter, and the bits are those of the links one after the other.
#![allow(unsafe_code)]
use super::{Cell, Compiler, Home, Ready, RunState};
use crate::kernels::{Bases, CompiledKernel, Scratch};
use crate::threads;
use ferrax_kernel::backend::RunCx;
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::{Kernel, Node, Res};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// What a chunk should touch at most: half of a small second-level cache.
const CHUNK: usize = 192 << 10;
/// Less than this is in the cache anyway.
pub const WORTH: usize = 512 << 10;
const MOST_LINKS: usize = 24;

struct Link {
    kernel: CompiledKernel,
    ins: Box<[Cell]>,
    outs: Box<[Cell]>,
}
impl Link {
    fn alone(self, c: &mut Compiler) -> Ready {
        c.large.add(self.kernel.nanos());
        Ready::Kernel { kernel: self.kernel, ins: self.ins, outs: self.outs }
    }
}
/// A cell that lives in working memory: where, and how many bytes a row of it has.
struct Inner {
    cell: Cell,
    at: usize,
    row_bytes: usize,
}
pub struct Chain {
    links: Vec<Link>,
    rows: usize,
    /// Rows of a chunk.
    step: usize,
    inner: Vec<Inner>,
    inner_bytes: usize,
    nanos: f64,
}

/// A kernel that may become a link.
struct Prospect<'a> {
    of: &'a Kernel,
    link: Link,
    in_slots: &'a [SlotId],
    out_slots: &'a [SlotId],
}
/// Kernels that follow one another, as long as they make a chain.
#[derive(Default)]
pub struct ChainBuilder<'a> {
    prospects: Vec<Prospect<'a>>,
    rows: usize,
}

impl<'a> ChainBuilder<'a> {
    /// Takes a compiled kernel; what it does not go together with comes out first.
    pub fn kernel(
        &mut self,
        c: &mut Compiler,
        (of, kernel): (&'a Kernel, CompiledKernel),
        (in_slots, out_slots): (&'a [SlotId], &'a [SlotId]),
        out: &mut Vec<Ready>,
    ) {
        let link = Link { kernel, ins: c.cells(in_slots), outs: c.cells(out_slots) };
        if !c.leaves_cache {
            return out.push(link.alone(c));
        }
        self.prospects.push(Prospect { of, link, in_slots, out_slots });
        if let Some(rows) = self.common_rows(c) {
            self.rows = rows;
        } else if let Some(last) = self.prospects.pop() {
            self.finish(c, out);
            self.prospects.push(last);
            self.rows = self.common_rows(c).unwrap_or(0);
        }
    }
    /// Whether a step can do without what is there being done: it will be a link, or touches nothing that the links do.
    pub fn lets_past(&self, c: &Compiler, s: &Step) -> bool {
        let Step::Kernel { kernel, ins, outs } = s else { return self.prospects.is_empty() };
        if self.prospects.is_empty() || kernel.domain().size() > 1 {
            return true;
        }
        // Inner cells of what does not become a chain stay in the arena.
        let pays = self.pays(c);
        let meets = |s: &SlotId, cell: Cell, bytes: usize| {
            let apart =
                || pays && is_inner(c, &self.prospects, cell) || !overlap(c, (c.cell(*s), c.bytes(*s)), (cell, bytes));
            c.cell(*s) == cell || !apart()
        };
        let touched = touched(c, &self.prospects);
        let is_written = |cell: Cell| self.prospects.iter().any(|l| l.link.outs.contains(&cell));
        touched.iter().all(|(cell, bytes)| {
            outs.iter().all(|s| !meets(s, *cell, *bytes))
                && (!is_written(*cell) || ins.iter().all(|s| !meets(s, *cell, *bytes)))
        })
    }
    /// Whether what is there will be a chain, whatever comes: all of it leaves the cache, and so would something that several links touch before the
    /// second does. Small arrays are there still.
    fn pays(&self, c: &Compiler) -> bool {
        let all = &self.prospects;
        let touched = touched(c, all);
        let links =
            |cell: Cell| all.iter().filter(|l| l.link.ins.contains(&cell) || l.link.outs.contains(&cell)).count();
        self.rows > 1
            && touched.iter().any(|(cell, bytes)| *bytes > CHUNK && links(*cell) > 1)
            && touched.iter().map(|t| t.1).sum::<usize>() >= WORTH
    }
    /// What is there becomes steps.
    pub fn finish(&mut self, c: &mut Compiler, out: &mut Vec<Ready>) {
        let pays = self.pays(c);
        let prospects = std::mem::take(&mut self.prospects);
        let rows = std::mem::take(&mut self.rows);
        if pays {
            let chain = chain(c, prospects, rows);
            c.large.add(chain.nanos);
            return out.push(Ready::Chain(Box::new(chain)));
        }
        out.extend(prospects.into_iter().map(|l| l.link.alone(c)));
    }
    /// The most rows into which all prospects can be cut.
    fn common_rows(&self, c: &Compiler) -> Option<usize> {
        let first = self.prospects.first()?;
        if self.prospects.len() > MOST_LINKS {
            return None;
        }
        let mut counts: SmallVec<[usize; 4]> = SmallVec::new();
        first.of.grid.iter().fold(1, |n, d| {
            counts.push(n * d);
            n * d
        });
        counts.reverse();
        counts.dedup();
        counts.into_iter().find(|rows| *rows > 1 && self.holds(c, *rows))
    }
    /// The invariant, for so many rows.
    fn holds(&self, c: &Compiler, rows: usize) -> bool {
        let all = &self.prospects;
        let touched = touched(c, all);
        let bytes = |cell: Cell| touched.iter().find(|t| t.0 == cell).map_or(0, |t| t.1);
        let cuts = |l: &Prospect| leading(l.of, rows).is_some() && l.link.kernel.splits(rows);
        if !all.iter().all(cuts) || touched.iter().map(|t| t.1).sum::<usize>() / rows > CHUNK {
            return false;
        }
        let inner: SmallVec<[Cell; 8]> = touched.iter().map(|t| t.0).filter(|x| is_inner(c, all, *x)).collect();
        let meet = |a: Cell, b: Cell| {
            a == b || !inner.contains(&a) && !inner.contains(&b) && overlap(c, (a, bytes(a)), (b, bytes(b)))
        };
        let alike = |a: Cell, b: Cell| a == b || bytes(a) == bytes(b) && c.meet(a, b);
        let written: SmallVec<[Cell; 8]> = all.iter().flat_map(|l| l.link.outs.iter().copied()).collect();
        let reads_rows = |l: &Prospect, input: usize, cell: Cell| {
            written.iter().all(|w| !meet(cell, *w) || alike(cell, *w) && reads_by_rows(l.of, input, rows))
        };
        all.iter().all(|l| l.link.ins.iter().enumerate().all(|(k, cell)| reads_rows(l, k, *cell)))
            && written.iter().all(|a| written.iter().all(|b| !meet(*a, *b) || alike(*a, *b)))
    }
}

/// The cells that links touch, with their bytes.
fn touched(c: &Compiler, all: &[Prospect]) -> SmallVec<[(Cell, usize); 8]> {
    let mut cells: SmallVec<[(Cell, usize); 8]> = SmallVec::new();
    for l in all {
        for s in l.in_slots.iter().chain(l.out_slots) {
            let (cell, bytes) = (c.cell(*s), c.bytes(*s));
            if !cells.iter().any(|x| x.0 == cell) {
                cells.push((cell, bytes));
            }
        }
    }
    cells
}
/// Whether the links write this cell before they read it, and nobody else reads it.
fn is_inner(c: &Compiler, all: &[Prospect], cell: Cell) -> bool {
    let touches = |cells: &[Cell]| cells.iter().filter(|x| **x == cell).count();
    let first = all.iter().find(|l| touches(&l.link.ins) + touches(&l.link.outs) > 0);
    let reads: usize = all.iter().map(|l| touches(&l.link.ins)).sum();
    matches!(c.homes[cell as usize], Home::Arena(_))
        && first.is_some_and(|l| touches(&l.link.ins) == 0)
        && reads == c.reads(cell)
}
/// Whether bytes of the two cells may be the same memory.
fn overlap(c: &Compiler, (a, a_bytes): (Cell, usize), (b, b_bytes): (Cell, usize)) -> bool {
    match (c.homes[a as usize], c.homes[b as usize]) {
        (Home::Arena(x), Home::Arena(y)) => x < y + b_bytes && y < x + a_bytes,
        // A window lies in what it runs along, wherever that is.
        (Home::Window | Home::Tape(_), _) | (_, Home::Window | Home::Tape(_)) => true,
        _ => c.meet(a, b),
    }
}
/// How many leading dimensions of the grid make up so many rows.
fn leading(k: &Kernel, rows: usize) -> Option<usize> {
    let mut n = 1;
    k.grid.iter().position(|d| {
        n *= d;
        n == rows
    })
}
/// Whether the kernel reads of this input, for each of so many rows of its grid, the same row of it.
fn reads_by_rows(k: &Kernel, input: usize, rows: usize) -> bool {
    let Some(last) = leading(k, rows) else { return false };
    let len = k.inputs[input].1;
    let width = (len / rows) as i64;
    let mut rest = k.domain();
    rest[..=last].fill(1);
    let whole = |a: &ferrax_kernel::Affine| {
        let mut step = width;
        let dense = (0..=last).rev().all(|d| {
            let right = k.grid[d] == 1 || a.stride(d) == step;
            step *= k.grid[d] as i64;
            right
        });
        dense && a.range(&rest).is_some_and(|(lo, hi)| lo >= 0 && hi < width)
    };
    len.is_multiple_of(rows)
        && k.nodes.iter().all(|(_, n)| !matches!(n, Node::Load(a) if a.input as usize == input && !whole(&a.at)))
}
fn chain(c: &Compiler, prospects: Vec<Prospect>, rows: usize) -> Chain {
    let bytes: usize = touched(c, &prospects).iter().map(|t| t.1).sum();
    let step = (CHUNK / (bytes / rows).max(1)).clamp(1, rows.div_ceil(4 * threads::num_threads()).max(1));
    let (mut inner, mut inner_bytes) = (vec![], 0);
    for (cell, bytes) in touched(c, &prospects) {
        if is_inner(c, &prospects, cell) {
            let row_bytes = bytes / rows;
            inner.push(Inner { cell, at: inner_bytes, row_bytes });
            inner_bytes += (row_bytes * step).next_multiple_of(64);
        }
    }
    let nanos = prospects.iter().map(|l| l.link.kernel.nanos()).sum();
    Chain { links: prospects.into_iter().map(|l| l.link).collect(), rows, step, inner, inner_bytes, nanos }
}

impl Chain {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        state.launches += self.links.len() as u64;
        self.links.iter().for_each(|l| l.kernel.expect(1));
        let bases = Bases { ptrs: &state.ptrs, ins: &[], outs: &[], cancel: cx.cancel };
        threads::try_ranges(self.rows.div_ceil(self.step), self.nanos, cx.cancel, &|chunks| {
            let bases = &bases;
            Scratch.with(self.inner_bytes, |memory| {
                let mut ptrs: SmallVec<[*mut u8; 16]> = SmallVec::from_slice(bases.ptrs);
                for k in chunks {
                    if bases.cancel.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    let (from, to) = (k * self.step, self.rows.min((k + 1) * self.step));
                    for i in &self.inner {
                        // Where row 0 would be, if all were there.
                        ptrs[i.cell as usize] = memory.wrapping_add(i.at).wrapping_sub(from * i.row_bytes);
                    }
                    for l in &self.links {
                        let bases = Bases { ptrs: &ptrs, ins: &l.ins, outs: &l.outs, ..*bases };
                        // SAFETY: cells that are not inner are as `run_steps` gives them to a kernel, by verify; rows are this thread's, and what
                        // other threads write meanwhile are other rows, which this link does not touch (`ChainBuilder::holds`). An inner
                        // cell's rows from..to lie in `memory`, which has `inner_bytes`; a link touches no others (`reads_by_rows`), and earlier
                        // links have written them (`is_inner`).
                        unsafe { l.kernel.run_rows(bases, from..to, self.rows) }?;
                    }
                }
                Ok(())
            })?
        })
    }
    pub fn links(&self) -> impl Iterator<Item = (&CompiledKernel, &[Cell], &[Cell])> {
        self.links.iter().map(|l| (&l.kernel, &*l.ins, &*l.outs))
    }
    pub fn text(&self) -> String {
        format!(
            "chain of {} over {} rows, {} at a time, {} bytes within",
            self.links.len(),
            self.rows,
            self.step,
            self.inner_bytes
        )
    }
}
