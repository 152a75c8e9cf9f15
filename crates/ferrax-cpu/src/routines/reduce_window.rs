//! `ReduceWindow`: windows combined in sequence, as kernels that load each element of the window for all outputs at once.
//!
//! Elements outside the operand load as the identity, which changes no bits. A dilated operand is spread out first, with the identity
//! in its holes. Long windows take several kernels, which hand the accumulators on.
use super::Run;
use super::walk::{Walk, copy, strides};
use crate::kernels::{Bases, Compiled, moves};
use crate::memory::Block;
use crate::tier::Tier;
use ferrax_kernel::kernel::{Access, Guard};
use ferrax_kernel::{Affine, DType, Dims, Error, Kernel, Node, ReduceKind, Res, Scalar};
use smallvec::SmallVec;

pub struct Windows<'a> {
    pub operand: &'a Dims,
    pub window: &'a Dims,
    pub strides: &'a Dims,
    pub base_dilation: &'a Dims,
    pub window_dilation: &'a Dims,
    pub padding: &'a [(i64, i64)],
    pub out: &'a Dims,
}

/// Spreads an array out, with `fill` in the holes; also its new shape.
pub struct Spread {
    pub shape: Dims,
    walk: Walk,
    bytes: usize,
    fill: Scalar,
}
impl Spread {
    /// None where no axis is dilated.
    pub fn new(operand: &Dims, dilation: &[usize], fill: Scalar) -> Option<Spread> {
        if dilation.iter().all(|d| *d <= 1) {
            return None;
        }
        let shape: Dims =
            operand.iter().zip(dilation).map(|(n, d)| if *n == 0 { 0 } else { (n - 1) * d + 1 }).collect();
        let (from, to) = (strides(operand), strides(&shape));
        let bytes = fill.dtype.size();
        let walk = Walk::new(bytes, (0..operand.len()).map(|k| (operand[k], to[k] * dilation[k] as isize, from[k])));
        Some(Spread { shape, walk, bytes, fill })
    }
    pub fn run(&self, x: *const u8) -> Res<Block> {
        let b = Block::new(self.shape.size() * self.bytes)?;
        // SAFETY: the block has this many elements, and the walk stays inside it and the operand.
        unsafe {
            moves::fill(b.ptr(), self.bytes, self.fill.bits, self.shape.size());
            self.walk.run(b.ptr(), x, copy(self.bytes));
        }
        Ok(b)
    }
}

/// Elements of a window that one kernel takes.
const AT_ONCE: usize = 32;

pub fn compile(kind: ReduceKind, w: &Windows, d: DType, tier: Tier) -> Res<Run> {
    let undefined = || Error::Invalid(format!("windows of {d} cannot be reduced by {}", kind.name()));
    let (f, identity) = (kind.bin().ok_or_else(undefined)?, kind.identity(d).ok_or_else(undefined)?);
    let lane = if d == DType::Bool { d } else { d.lane() };
    let start = if lane == d {
        identity
    } else {
        kind.identity(lane).filter(|_| !d.is_int()).unwrap_or_else(|| Scalar::from_i64(lane, identity.to_i64()))
    };
    let spread = Spread::new(w.operand, w.base_dilation, identity);
    let operand = spread.as_ref().map_or_else(|| w.operand.clone(), |s| s.shape.clone());
    let s = strides(&operand);
    let rank = operand.len();
    let size = w.window.size();
    let mut kernels = vec![];
    let mut from = 0;
    loop {
        let to = size.min(from + AT_ONCE);
        let (first, last) = (from == 0, to == size);
        let mut k = Kernel { grid: w.out.clone(), inputs: vec![(d, operand.size())], ..Kernel::default() };
        if first {
            k.nodes.push((lane, Node::Const(start)));
        } else {
            k.inputs.push((lane, w.out.size()));
            let at = Affine::new(0, strides(w.out).iter().map(|x| *x as i64));
            k.nodes.push((
                lane,
                Node::Load(Box::new(Access { input: 1, at, guards: SmallVec::new(), fill: Scalar::zero(lane) })),
            ));
        }
        let mut acc = 0;
        for i in from..to {
            let ix = w.window.unravel(i);
            let mut at = Affine::new(0, (0..rank).map(|a| w.strides[a] as i64 * s[a] as i64));
            let mut guards = SmallVec::new();
            for a in 0..rank {
                let shift = (ix[a] * w.window_dilation[a]) as i64 - w.padding[a].0;
                at.offset += shift * s[a] as i64;
                let reach = shift + (w.out[a].max(1) as i64 - 1) * w.strides[a] as i64;
                if shift < 0 || reach >= operand[a] as i64 {
                    let mut along = vec![0; a + 1];
                    along[a] = w.strides[a] as i64;
                    guards.push(Guard { at: Affine::new(shift, along), lo: 0, hi: operand[a] as i64 });
                }
            }
            k.nodes.push((d, Node::Load(Box::new(Access { input: 0, at, guards, fill: identity }))));
            k.nodes.push((lane, Node::Convert(k.nodes.len() as u32 - 1)));
            k.nodes.push((lane, Node::Bin(f, acc, k.nodes.len() as u32 - 1)));
            acc = k.nodes.len() as u32 - 1;
        }
        if last {
            k.nodes.push((d, Node::Convert(acc)));
            acc = k.nodes.len() as u32 - 1;
        }
        k.outputs = vec![acc];
        kernels.push(Compiled::new(&k, true, tier)?);
        if last {
            break;
        }
        from = to;
    }
    let bytes = w.out.size() * lane.size();
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let held = spread.as_ref().map(|s| s.run(bases.input(0))).transpose()?;
        let x = held.as_ref().map_or(bases.input(0), |b| b.ptr());
        let acc = Block::new(if kernels.len() > 1 { bytes } else { 0 })?;
        for (i, k) in kernels.iter().enumerate() {
            let to = if i + 1 == kernels.len() { bases.output(0) } else { acc.ptr() };
            // SAFETY: sizes are those the kernels were made for; accumulators are read where they are written.
            unsafe { k.run(Bases { ptrs: &[x, acc.ptr(), to], ins: &[0, 1], outs: &[2], ..bases }, parallel) };
        }
        Ok(())
    }))
}
