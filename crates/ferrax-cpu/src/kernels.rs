//! Kernels: loop nests compiled to short programs of block functions, and the code that runs them.
//!
//! INVARIANT: the bits of a kernel's outputs are a function of its inputs' values; tiles, tiers and threads change none.
#![allow(unsafe_code)]
pub mod address;
pub mod block;
pub mod fold;
pub mod lane;
pub mod moves;
pub mod pieces;
pub mod program;
pub mod reduce;
pub mod scalar;
pub mod unroll;

use crate::threads::{self, Cost};
use crate::tuning::Target;
pub use ferrax_host::scratch::{GroupScratch, Scratch};
use ferrax_kernel::{Affine, Kernel, Node, NodeId, Res};
pub use program::Bases;
use program::{Spec, TileProgram};
use smallvec::SmallVec;
use std::ops::Range;

#[allow(clippy::large_enum_variant)] // most kernels reduce nothing, and are run without a step aside
enum Form {
    Map(PieceList),
    Reduce(Box<reduce::Reducing>),
}
/// A kernel that reduces nothing: a program for each of its tiles, with the number of tiles up to its end.
struct PieceList {
    programs: SmallVec<[(TileProgram, usize); 1]>,
    /// Positions of the grid's leading dimensions that no tile cuts: each program goes through as many equal parts, one after the other.
    rows: usize,
}
/// A kernel as tile programs.
pub struct TileKernel {
    form: Form,
    /// Whether short reductions were written out element by element, and whether the outputs are windows of larger arrays.
    unrolled: bool,
    placed: bool,
    cost: Cost,
}
impl TileKernel {
    /// `aliased`: whether an output may share memory with an input (which the kernel then reads
    /// only at the position that it writes).
    pub fn new(k: &Kernel, aliased: bool, target: impl Into<Target>) -> Res<TileKernel> {
        let target = &target.into();
        let without_reductions = unroll::unrolled(k, &target.tuning.kernels);
        let unrolled = without_reductions.is_some();
        let k = without_reductions.as_ref().unwrap_or(k);
        if reduces(k) {
            let r = reduce::Reducing::compile(k, aliased, target)?;
            let nanos = r.nanos();
            return Ok(TileKernel { form: Form::Reduce(Box::new(r)), unrolled, placed: false, cost: Cost::of(nanos) });
        }
        let map = TileKernel::map(k, &pieces::dense(&k.grid), aliased, target)?;
        Ok(TileKernel { unrolled, ..map })
    }
    /// With outputs whose elements lie at these positions of larger arrays; none of kernels with reductions.
    pub fn placed(k: &Kernel, to: &Affine, aliased: bool, target: &Target) -> Res<Option<TileKernel>> {
        let without_reductions = unroll::unrolled(k, &target.tuning.kernels);
        let unrolled = without_reductions.is_some();
        let k = without_reductions.as_ref().unwrap_or(k);
        if reduces(k) {
            return Ok(None);
        }
        let map = TileKernel::map(k, to, aliased, target)?;
        Ok(Some(TileKernel { unrolled, placed: true, ..map }))
    }
    fn map(k: &Kernel, to: &Affine, aliased: bool, target: &Target) -> Res<TileKernel> {
        let (mut programs, mut tiles, mut nanos) = (SmallVec::new(), 0, 0.0);
        let masked = target.tier == crate::Tier::Avx512 && crate::native::is_available() && !aliased;
        let pieces = pieces::pieces(k, to, &target.tuning.kernels, masked);
        let uncut = |p: &pieces::Piece| {
            let shared = |p: &Kernel| p.grid.iter().zip(k.grid.iter()).take_while(|(a, b)| a == b).count();
            p.kernel.as_ref().map_or(k.grid.len(), shared)
        };
        let leading = pieces.iter().map(uncut).min().unwrap_or(0);
        let rows = k.grid[..leading].iter().product();
        for piece in pieces {
            let kernel = piece.kernel.as_ref().unwrap_or(k);
            let loops: SmallVec<[usize; 4]> = (0..kernel.grid.len()).collect();
            let outs: SmallVec<[(NodeId, u32); 2]> = piece.outs.iter().map(|o| (o.0, o.1)).collect();
            let places: SmallVec<[&Affine; 2]> = piece.outs.iter().map(|o| &o.2).collect();
            let (p, _, _) = TileProgram::compile(&Spec {
                kernel,
                loops: &loops,
                outs: &outs,
                places: &places,
                keep: &[],
                given: &[],
                aliased,
                target,
                max_tile: target.tuning.kernels.max_tile,
            })?;
            nanos += p.cost * p.total() as f64;
            tiles += p.n_tiles();
            programs.push((p, tiles));
        }
        Ok(TileKernel {
            form: Form::Map(PieceList { programs, rows }),
            unrolled: false,
            placed: false,
            cost: Cost::of(nanos),
        })
    }
    /// Estimated time of one run.
    pub fn nanos(&self) -> f64 {
        self.cost.estimate
    }
    /// Announces so many runs, which count as work: see `program/code.rs`.
    pub fn expect(&self, runs: usize) {
        match &self.form {
            Form::Map(m) => m.programs.iter().for_each(|(p, _)| p.expect(runs.saturating_mul(p.total()))),
            Form::Reduce(r) => r.expect(runs),
        }
    }
    /// Whether it is a reduction.
    pub fn reduces(&self) -> bool {
        matches!(self.form, Form::Reduce(_))
    }
    /// The strategy on one line, and the programs below it.
    pub fn text(&self) -> String {
        let placed = if self.placed { " into=window" } else { "" };
        let unrolled = if self.unrolled { " unrolled_reduction" } else { "" };
        match &self.form {
            Form::Map(m) => {
                let programs: String = m.programs.iter().map(|p| p.0.text()).collect();
                format!("  strategy=map pieces={}{placed}{unrolled}\n{programs}", m.programs.len())
            }
            Form::Reduce(r) => r.text(),
        }
    }
    /// Whether its grid can be run in so many parts, which lie one after the other.
    pub fn splits(&self, parts: usize) -> bool {
        match &self.form {
            Form::Map(m) => m.rows.is_multiple_of(parts),
            Form::Reduce(r) => r.splits(parts),
        }
    }
    /// Runs some of `of` equal parts of the grid, on this thread.
    ///
    /// # Errors
    /// `OutOfMemory` if working memory cannot be allocated.
    ///
    /// # Safety
    /// As `run`, for the memory that these parts touch; `splits(of)`, and the parts lie below it.
    pub unsafe fn run_rows(&self, bases: Bases, parts: Range<usize>, of: usize) -> Res<()> {
        match &self.form {
            Form::Map(m) => m.programs.iter().try_for_each(|(p, _)| {
                let each = p.total() / of;
                // SAFETY: as `PieceList::tiles`; the positions lie below `total`, and are the caller's.
                Scratch.with(p.frame_bytes(), |memory| unsafe {
                    let mut frame = p.start(memory, bases, p.tile().min(p.total()));
                    p.eval_all(&mut frame, parts.start * each, parts.end * each);
                })
            }),
            // SAFETY: as this function demands.
            Form::Reduce(r) => unsafe { r.run_rows(Scratch, bases, parts, of) },
        }
    }
    /// Runs the kernel, spread over threads where that pays and `parallel` allows it.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no working memory.
    ///
    /// # Safety
    /// `bases` point at buffers of the sizes that the kernel states, aligned to their elements; outputs overlap nothing, but, where
    /// the kernel was compiled as aliased, inputs that it reads only where it writes.
    #[inline]
    pub unsafe fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        match &self.form {
            Form::Map(m) => {
                let tiles = m.programs.last().map_or(0, |p| p.1);
                // SAFETY: `bases` are as this function demands; tiles are disjoint ranges of positions, of tiles that are disjoint, and
                // `try_ranges` gives each to one thread.
                let work = |r: Range<usize>| unsafe { m.tiles(r, bases) };
                match tiles {
                    0 => Ok(()),
                    n if n == 1 || !parallel => work(0..n),
                    n => threads::try_ranges(n, Some(&self.cost), bases.cancel, &work),
                }
            }
            Form::Reduce(r) => r.run(Scratch, bases, parallel.then_some(&self.cost)),
        }
    }
}
fn reduces(k: &Kernel) -> bool {
    k.nodes.iter().any(|n| matches!(n.1, Node::Reduce { .. }))
}
impl PieceList {
    /// # Safety
    /// As `TileKernel::run`; nothing else runs these tiles.
    #[inline]
    unsafe fn tiles(&self, r: Range<usize>, bases: Bases) -> Res<()> {
        let mut first = 0;
        for (p, end) in &self.programs {
            let mine = r.start.max(first) - first..r.end.min(*end).saturating_sub(first);
            first = *end;
            if mine.is_empty() {
                continue;
            }
            Scratch.with(p.frame_bytes(), |m| {
                // SAFETY: `Scratch` gave `frame_bytes` aligned bytes, and `bases` are as promised; a tile is positions below `total`, at most
                // `tile` of them, and is this thread's.
                unsafe {
                    let mut frame = p.start(m, bases, p.tile().min(p.total()));
                    let (last, n) = p.tile_range(mine.end - 1);
                    p.eval_all(&mut frame, p.tile_range(mine.start).0, last + n);
                }
            })?;
        }
        Ok(())
    }
}
