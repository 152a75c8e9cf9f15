//! Scalar loops: interpreted, and native code after enough work.
//!
//! INVARIANT: between chunks of iterations the register file holds the carries, whichever executor ran the chunk, so either may continue.
use super::{CellScalar, File, Reg, ScalarIns, exec, write_int};
use crate::executable::{Cell, RunState};
use crate::native::{self, LoopCode, LoopText};
use ferrax_kernel::{Error, Res, RunCx, Scalar};
use smallvec::SmallVec;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) enum ScalarTrips {
    Static(usize),
    Dyn(CellScalar),
    /// The predicate's register after the condition's code.
    While(Vec<ScalarIns>, Reg),
}
/// A scalar of the window at `index`: base cell, and bytes between elements.
pub(super) struct ScalarWindow {
    pub place: CellScalar,
    pub stride: usize,
}
/// A loop that is scalar throughout.
pub struct ScalarLoop {
    pub(super) file: Vec<u64>,
    pub(super) trips: ScalarTrips,
    pub(super) reverse: bool,
    /// Read once: values that the body does not change, and the carries' initial values.
    pub(super) reads: Vec<CellScalar>,
    pub(super) xs: Vec<ScalarWindow>,
    pub(super) body: Vec<ScalarIns>,
    pub(super) ys: Vec<ScalarWindow>,
    /// (next, slot) registers that are copied at the end of an iteration.
    pub(super) moves: Vec<(Reg, Reg)>,
    /// Carry slots to the places of their results.
    pub(super) outs: Vec<CellScalar>,
    pub(super) count: Option<(Cell, usize)>,
    pub(super) kernels: u64,
    pub(super) lazy: Option<LazyLoop>,
}
/// The source of native code, and the code once it is compiled.
pub struct LazyLoop {
    pub text: LoopText,
    /// The windows of the text: base cell, and bytes between elements.
    pub windows: Vec<(Cell, usize)>,
    code: OnceLock<Option<LoopCode>>,
    /// Operations that were interpreted so far.
    done: AtomicU64,
    is_claimed: AtomicBool,
}
/// Iterations between two looks at whether the run was cancelled, at most, and operations.
const CHUNK: usize = 1024;
const CHUNK_OPERATIONS: usize = 100_000;

impl LazyLoop {
    pub fn new(text: LoopText, windows: Vec<(Cell, usize)>) -> LazyLoop {
        LazyLoop { text, windows, code: OnceLock::new(), done: AtomicU64::new(0), is_claimed: AtomicBool::new(false) }
    }
    pub fn is_native(&self) -> bool {
        self.code.get().is_some_and(Option::is_some)
    }
    /// The code, if it is there; makes it, where so many more operations make it worth that.
    pub fn get(&self, operations: u64, file: &[u64]) -> Option<&LoopCode> {
        if let Some(code) = self.code.get() {
            return code.as_ref();
        }
        let done = self.done.fetch_add(operations, Ordering::Relaxed).saturating_add(operations);
        // As in tile programs, one thread makes it, and no thread waits for it.
        if done >= native::min_nanos() && !self.is_claimed.swap(true, Ordering::Relaxed) {
            let _ = self.code.set(self.text.compile(&|r| file[r as usize]));
        }
        self.code.get()?.as_ref()
    }
    /// Records that so many operations were interpreted, whose number was unknown before.
    fn worked(&self, operations: u64) {
        self.done.fetch_add(operations, Ordering::Relaxed);
    }
}

impl ScalarLoop {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        let mut file: File = SmallVec::from_slice(&self.file);
        // SAFETY: registers of places are numbers that `fresh` gave out, each when it put one more into the file; verify, places: the
        // cells point at such elements.
        let trips = unsafe {
            self.reads.iter().for_each(|p| file[p.reg as usize] = p.read(&state.ptrs));
            match &self.trips {
                ScalarTrips::Static(n) => *n,
                ScalarTrips::Dyn(p) => {
                    Scalar { dtype: p.dtype.lane(), bits: p.read(&state.ptrs) }.to_i64().max(0) as usize
                }
                ScalarTrips::While(..) => usize::MAX,
            }
        };
        let operations = self.body.len().max(1);
        let chunk = (CHUNK_OPERATIONS / operations).clamp(1, CHUNK);
        let mut done = 0;
        while done < trips {
            if cx.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let n = chunk.min(trips - done);
            // Of a loop of unknown length it is counted afterwards.
            let is_known = trips < usize::MAX;
            let expected = if is_known { n * operations } else { 0 };
            let code = self.lazy.as_ref().and_then(|l| Some((l, l.get(expected as u64, &self.file)?)));
            // SAFETY: `compile_loop` takes windows only where the trips are static and no more than the array has elements: `done + n` are.
            let ran = unsafe {
                match code {
                    Some((lazy, code)) => {
                        let windows: SmallVec<[*mut u8; 8]> = lazy
                            .windows
                            .iter()
                            .map(|w| state.ptrs[w.0 as usize].add(self.at(trips, done) * w.1))
                            .collect();
                        code.run(&mut file, &windows, n)
                    }
                    None => self.interpret(&mut file, &state.ptrs, trips, done..done + n),
                }
            };
            done += ran;
            if let (Some(lazy), false) = (&self.lazy, is_known) {
                lazy.worked((ran * operations) as u64);
            }
            if ran < n {
                break;
            }
        }
        // SAFETY: as above; a count is an integer of its slot's bytes.
        unsafe {
            self.outs.iter().for_each(|p| p.write(&state.ptrs, file[p.reg as usize]));
            if let Some((cell, bytes)) = self.count {
                write_int(state.ptrs[cell as usize], bytes, done);
            }
        }
        state.launches += self.kernels * done as u64;
        Ok(())
    }
    /// The element of windows that an iteration takes.
    fn at(&self, trips: usize, done: usize) -> usize {
        if self.reverse { trips - 1 - done } else { done }
    }
    /// Goes through iterations until the condition fails; gives how many there were.
    ///
    /// # Safety
    /// The file is a copy of the loop's, and windows have an element for each iteration.
    unsafe fn interpret(
        &self,
        file: &mut File,
        ptrs: &[*mut u8],
        trips: usize,
        range: std::ops::Range<usize>,
    ) -> usize {
        let r = file.as_mut_ptr();
        let begin = range.start;
        for done in range.clone() {
            // SAFETY: registers are the file's, places the cells'; windows by the contract.
            unsafe {
                if let ScalarTrips::While(code, pred) = &self.trips {
                    exec(code, r);
                    if *r.add(*pred as usize) & 0xff == 0 {
                        return done - begin;
                    }
                }
                let at = self.at(trips, done);
                for x in &self.xs {
                    *r.add(x.place.reg as usize) = x.place.moved(at * x.stride).read(ptrs);
                }
                exec(&self.body, r);
                for y in &self.ys {
                    y.place.moved(at * y.stride).write(ptrs, *r.add(y.place.reg as usize));
                }
                for (from, to) in &self.moves {
                    *r.add(*to as usize) = *r.add(*from as usize);
                }
            }
        }
        range.len()
    }
    pub fn text(&self) -> String {
        let is_native = self.lazy.as_ref().is_some_and(LazyLoop::is_native);
        let native = if is_native { ", native" } else { "" };
        format!("scalar loop of {} operations and {} moves{native}", self.body.len(), self.moves.len())
    }
}
