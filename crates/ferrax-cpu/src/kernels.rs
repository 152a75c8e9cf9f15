//! Kernels: loop nests compiled to short programs of block functions, and the code that runs them.
//!
//! INVARIANT: the bits of a kernel's outputs are a function of its inputs' values; tiles, tiers and threads change none.
#![allow(unsafe_code)]
pub mod block;
pub mod fold;
pub mod lane;
pub mod moves;
pub mod program;
pub mod reduce;
pub mod scalar;

use crate::threads;
use crate::tier::Tier;
use ferrax_kernel::{Kernel, Node, NodeId, Res};
pub use program::Bases;
use program::{Program, Spec};
use std::cell::Cell;

/// Working memory of the calling thread.
#[derive(Clone, Copy)]
pub struct Scratch;
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; 64]);
thread_local! {
    static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}
impl Scratch {
    /// Runs `f` with at least `bytes` bytes, 64-byte aligned.
    #[inline]
    pub fn with<T>(self, bytes: usize, f: impl FnOnce(*mut u8) -> T) -> T {
        let mut m = MEMORY.take();
        let lines = bytes.div_ceil(64);
        if m.len() < lines {
            m.resize(lines, Line([0; 64]));
        }
        let out = f(m.as_mut_ptr().cast());
        MEMORY.set(m);
        out
    }
}

enum Form {
    Map(Program),
    Reduce(Box<reduce::Reducing>),
}
/// A kernel, compiled.
pub struct Compiled {
    form: Form,
    nanos: f64,
}
impl Compiled {
    /// `aliased`: whether an output may be the memory of an input (which the kernel then reads only where it writes).
    pub fn new(k: &Kernel, aliased: bool, tier: Tier) -> Res<Compiled> {
        if k.nodes.iter().any(|n| matches!(n.1, Node::Reduce { .. })) {
            let r = reduce::Reducing::compile(k, aliased, tier)?;
            let nanos = r.nanos();
            return Ok(Compiled { form: Form::Reduce(Box::new(r)), nanos });
        }
        let loops: Vec<usize> = (0..k.grid.len()).collect();
        let outs: Vec<(NodeId, u32)> = k.outputs.iter().enumerate().map(|(j, o)| (*o, j as u32)).collect();
        let (p, _, _) = Program::compile(&Spec {
            kernel: k,
            loops: &loops,
            outs: &outs,
            keep: &[],
            given: &[],
            aliased,
            tier,
            max_tile: 1024,
        })?;
        let nanos = p.cost * p.total() as f64;
        Ok(Compiled { form: Form::Map(p), nanos })
    }
    /// Estimated time of one run.
    pub fn nanos(&self) -> f64 {
        self.nanos
    }
    pub fn text(&self) -> String {
        match &self.form {
            Form::Map(p) => p.text(),
            Form::Reduce(r) => r.text(),
        }
    }
    /// Runs the kernel, spread over threads where that pays and `parallel` allows it.
    ///
    /// # Safety
    /// `bases` point at buffers of the sizes that the kernel states, aligned to their elements; outputs overlap nothing, but, where
    /// the kernel was compiled as aliased, inputs that it reads only where it writes.
    #[inline]
    pub unsafe fn run(&self, bases: Bases, parallel: bool) {
        match &self.form {
            Form::Map(p) => {
                let tiles = p.n_tiles();
                if tiles == 0 {
                    return;
                }
                let work = |r: std::ops::Range<usize>| {
                    Scratch.with(p.frame_bytes(), |m| {
                        // SAFETY: tiles are disjoint ranges of positions.
                        unsafe {
                            let mut frame = p.start(m, bases, p.tile().min(p.total()));
                            for t in r {
                                let (pos, n) = p.tile_range(t);
                                p.eval(&mut frame, pos, n);
                            }
                        }
                    })
                };
                if tiles == 1 || !parallel {
                    return work(0..tiles);
                }
                threads::for_ranges(tiles, self.nanos, bases.cancel, &work);
            }
            Form::Reduce(r) => r.run(Scratch, bases, parallel),
        }
    }
}
