//! The routines, each as a task: one file for each family, as in the waist.
//!
//! Those that can be expressed as loop nests (small products and convolutions) become kernels. The others have their own WGSL,
//! which computes positions in `i32`, clamped, and moves elements in the host's packing.
mod conv;
mod cumulative;
mod dot;
mod dynamic_slice;
mod fft;
mod gather;
mod linalg;
mod operands;
mod scatter;
mod sort;
mod tiles;

pub use dynamic_slice::{Placed, updates};
pub use operands::Argument;

use crate::task::{Limits, Reg};
use crate::wgsl::epilogue::Partial;
use crate::wgsl::{self, Lowered};
use ferrax_kernel::kernel::{Access, Affine, Guard, Kernel, Node};
use ferrax_kernel::{DType, Dims, Error, Res, Routine, Scalar};

/// The task of `r`, whose operands and results are the task's.
///
/// # Errors
/// `Unsupported` for dtypes wider than 32 bits and for more than 2^31 elements.
pub fn lower(r: &Routine, limits: Limits) -> Res<Lowered> {
    let arrays: Vec<Argument> = (0..r.operands().len()).map(|k| Argument::Array(Reg::In(k))).collect();
    lower_of(r, &arrays, limits)
}
/// The same of such operands; those that [`computes`] refuses are the task's inputs.
///
/// # Errors
/// As [`lower`]; `Unsupported` for more arrays than the device binds.
pub fn lower_of(r: &Routine, operands: &[Argument], limits: Limits) -> Res<Lowered> {
    check(r)?;
    if r.results().iter().all(|(_, len)| *len == 0) {
        return Ok(Lowered::default());
    }
    match r {
        Routine::Dot(_) | Routine::Conv(_) => {
            let kernel = as_kernel(r).ok_or_else(|| Error::Invalid(format!("{} is no kernel", r.name())))?;
            Product { routine: r, alone: &kernel, kernel: &kernel, operands: [0, 1] }.lower(limits)
        }
        Routine::Gather(g) => gather::lower(g, operands, limits),
        Routine::Scatter(s) => scatter::lower(s, operands, limits),
        Routine::DynamicSlice { operand, sizes, dtype, index_dtype } => {
            dynamic_slice::slice([operand, sizes], [*dtype, *index_dtype], operands, limits)
        }
        Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype } => {
            dynamic_slice::update([operand, update], [*dtype, *index_dtype], operands, limits)
        }
        Routine::Sort { outer, n, inner, dtypes, num_keys } => {
            sort::lower([*outer, *n, *inner], dtypes, *num_keys, limits)
        }
        Routine::TopK { outer, n, inner, k, dtype } => sort::top_k([*outer, *n, *inner], *k, *dtype, limits),
        Routine::Cumulative { kind, outer, n, inner, reverse, dtype } => {
            cumulative::lower(*kind, [*outer, *n, *inner], *reverse, *dtype, limits)
        }
        Routine::Fft(f) => fft::lower(f, limits),
        Routine::Linalg(l) => linalg::lower(l, limits),
    }
}
/// Whether there are shaders for a routine, at dtypes that these have.
pub fn has(r: &Routine) -> bool {
    match r {
        Routine::Fft(f) => fft::has(f),
        Routine::Linalg(l) => linalg::has(l),
        _ => true,
    }
}
/// Whether a routine's shaders may compute its operand `k` by `work` operations for each element where they read it. An update is read once;
/// a start is for each element of its window.
pub fn computes(r: &Routine, k: usize, work: u64) -> bool {
    const CHEAP: u64 = 64;
    match r {
        Routine::Gather(_) | Routine::DynamicSlice { .. } => k > 0 && work <= CHEAP,
        Routine::Scatter(_) => k == 2 || k == 1 && work <= CHEAP,
        Routine::DynamicUpdateSlice { .. } => k == 1 || k > 1 && work <= CHEAP,
        _ => false,
    }
}
fn check(r: &Routine) -> Res<()> {
    for (d, len) in r.operands().into_iter().chain(r.results()) {
        if d.size() > 4 {
            return Err(Error::Unsupported(format!(
                "{}: {} has no place on this device, which computes in 32 bits",
                r.name(),
                d.long()
            )));
        }
        if len > i32::MAX as usize - (1 << 24) {
            return Err(Error::Unsupported(format!("{}: {len} elements are more than a shader can count", r.name())));
        }
    }
    Ok(())
}

/// A routine whose every result is one sum, as the kernel of that reduction.
pub fn as_kernel(r: &Routine) -> Option<Kernel> {
    match r {
        Routine::Dot(d) => Some(dot::as_kernel(d)),
        Routine::Conv(c) => Some(c.kernel()),
        _ => None,
    }
}
/// The same with its two operands exchanged, where that is the transpose of the result; and where the element of each position of its grid is in
/// the result.
pub fn transposed(r: &Routine) -> Option<(Routine, (Affine, Dims))> {
    match r {
        Routine::Dot(d) => {
            let at = Affine::new(0, [(d.m * d.n) as i64, 1, d.n as i64]);
            Some((Routine::Dot(dot::transposed(d)), (at, [d.b, d.n, d.m].into())))
        }
        _ => None,
    }
}
/// Whether the two loads of that kernel, its first nodes, may be of any affine forms.
pub fn reads_forms(r: &Routine) -> bool {
    matches!(r, Routine::Dot(_))
}
/// Whether that kernel is what runs.
pub fn is_small(r: &Routine, limits: Limits) -> bool {
    match r {
        Routine::Dot(d) => dot::is_small(d, limits),
        Routine::Conv(c) => conv::is_small(c, limits),
        _ => false,
    }
}

/// A routine that is a kernel of one reduction, with what is computed of each of its results.
pub struct Product<'a> {
    pub routine: &'a Routine,
    /// Its kernel, in which its operands are loaded from where they are.
    pub alone: &'a Kernel,
    /// Its reduction, and the nodes behind that.
    pub kernel: &'a Kernel,
    /// Which of the kernel's inputs the routine's operands are.
    pub operands: [usize; 2],
}
impl Product<'_> {
    /// # Errors
    /// As [`lower`]; `Unsupported` for more arrays than the device binds.
    pub fn lower(&self, limits: Limits) -> Res<Lowered> {
        check(self.routine)?;
        match self.routine {
            Routine::Dot(d) => dot::lower(d, self, limits),
            Routine::Conv(c) => conv::lower(c, self, limits),
            r => Err(Error::Invalid(format!("{} is no product", r.name()))),
        }
    }
    fn ins(&self) -> Vec<Reg> {
        (0..self.kernel.inputs.len()).map(Reg::In).collect()
    }
    fn outs(&self) -> Vec<Reg> {
        (0..self.kernel.outputs.len()).map(Reg::Out).collect()
    }
    /// Adds the passes from sums in memory to the results.
    fn of_sums(&self, task: &mut Lowered, sums: Reg, partial: &Partial, limits: Limits) -> Res<()> {
        let ins = [self.ins(), vec![sums]].concat();
        task.include(wgsl::lower(&partial.kernel(self.kernel)?, limits)?, &ins, &self.outs());
        Ok(())
    }
}

/// Whether two routines may be parts of one pass.
pub fn are_parts(a: &Routine, b: &Routine, limits: Limits) -> bool {
    match (a, b) {
        (Routine::Dot(a), Routine::Dot(b)) => dot::is_part(a, limits) && dot::is_alike(a, b),
        _ => false,
    }
}
/// One pass of such products with their inputs, whose outputs follow each other in the task's.
///
/// # Errors
/// As [`Product::lower`]; `Unsupported` for those that only passes of their own can do.
pub fn together(all: Vec<(Product, Vec<Reg>)>, limits: Limits) -> Res<Lowered> {
    let dots = all.into_iter().map(|(p, ins)| match p.routine {
        Routine::Dot(d) => check(p.routine).map(|()| (d, p, ins)),
        r => Err(Error::Invalid(format!("{} is no part", r.name()))),
    });
    dot::together(dots.collect::<Res<Vec<_>>>()?, limits)
}

/// A load of input `input` at `at` where the guards pass, else `fill`.
fn load(input: u32, at: Affine, guards: Vec<Guard>, fill: Scalar) -> (DType, Node) {
    (fill.dtype, Node::Load(Box::new(Access { input, at, guards: guards.into(), fill })))
}

/// `len` elements of `x` at another dtype, as a new register.
fn converted(task: &mut Lowered, x: Reg, from: DType, to: DType, len: usize, limits: Limits) -> Res<Reg> {
    if from == to {
        return Ok(x);
    }
    let out = task.add_scratch(len * to.size());
    convert_into(task, x, from, out, to, len, limits)?;
    Ok(out)
}
fn convert_into(task: &mut Lowered, x: Reg, from: DType, out: Reg, to: DType, len: usize, limits: Limits) -> Res<()> {
    let k = Kernel {
        grid: [len].into(),
        rdims: Dims::default(),
        inputs: vec![(from, len)],
        nodes: vec![load(0, Affine::new(0, [1]), vec![], Scalar::zero(from)), (to, Node::Convert(0))],
        outputs: vec![1],
    };
    task.include(wgsl::lower(&k, limits)?, &[x], &[out]);
    Ok(())
}

/// Runs `f` on the routine's lanes: the result goes through scratch memory of the lane dtype if
/// elements are smaller than a word.
fn in_lanes(
    task: &mut Lowered,
    d: DType,
    len: usize,
    limits: Limits,
    f: impl FnOnce(&mut Lowered, Reg) -> Res<()>,
) -> Res<()> {
    if d.size() == 4 {
        return f(task, Reg::Out(0));
    }
    let wide = task.add_scratch(4 * len);
    f(task, wide)?;
    convert_into(task, wide, d.lane(), Reg::Out(0), d, len, limits)
}

/// The element of an index operand as `i32`; a value out of its range counts as far out of bounds.
fn index(d: DType, x: &str) -> String {
    match wgsl::lane(d) {
        "i32" => x.to_string(),
        "u32" => format!("i32(min({x}, 0x7fffffffu))"),
        _ => format!("i32({x})"),
    }
}
