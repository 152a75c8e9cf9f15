//! The loops of a program: merges dimensions, and finds the elements that are read and written along the last one.
//!
//! INVARIANT: every affine form visits the same elements in the same order over merged dimensions as over the original ones.
use super::Spec;
use crate::instructions::{Function, VectorSize};
use crate::kernels::lane::Lane;
use crate::kernels::moves;
use crate::tier::Tier;
use crate::tuning::KernelTuning;
use ferrax_kernel::{Affine, DType, Kernel, Node};
use smallvec::SmallVec;

/// Whether an index is always one of the numbers that lie in memory.
pub(super) fn is_counted(k: &Kernel, d: DType, a: &Affine) -> bool {
    let below = |(lo, hi)| lo >= 0 && hi < moves::COUNTED;
    d != DType::Bool && a.range(&k.domain()).is_some_and(below)
}
/// Whether a row's elements neither lie side by side nor are one element.
pub(super) fn is_strided(stride: i64) -> bool {
    !matches!(stride, 0 | 1)
}
/// Whether there are several rows that each fit one vector of the longest kind, and are not half of
/// one (two such rows need no mask).
pub(super) fn is_part_of_vector(spec: &Spec, needed: &[bool], dims: &[usize], innermost: &[usize]) -> bool {
    let last = innermost[innermost.len() - 1];
    let nodes = || spec.kernel.nodes.iter().zip(needed).filter(|n| *n.1).map(|n| n.0);
    let element = nodes().map(|(d, _)| Lane::of(*d).size()).max().unwrap_or(1).max(4);
    let strided = || {
        nodes().any(|(_, n)| matches!(n, Node::Load(l) if is_strided(l.at.stride(last))))
            || spec.places.iter().any(|p| is_strided(p.stride(last)))
    };
    let bytes = dims[dims.len() - 1] * element;
    spec.target.tier == Tier::Avx512
        && dims.len() > 1
        && !spec.aliased
        && bytes <= VectorSize::Zmm.bytes()
        && (bytes != VectorSize::Ymm.bytes() || strided())
}
/// Whether elements are narrower than their lanes.
fn is_narrow(d: DType) -> bool {
    !Lane::of(d).is_storage_of(d)
}
/// Whether all elements read and written along the last of some loop dimensions are contiguous,
/// loop-invariant, or one row shared by all; or strided, if `strided` allows it.
pub(super) fn is_for_code(spec: &Spec, needed: &[bool], dims: &[usize], innermost: &[usize], strided: bool) -> bool {
    let last = innermost[innermost.len() - 1];
    let is_even = |a: &Affine| !is_strided(a.stride(last));
    let is_shared = |a: &Affine| {
        let strides: SmallVec<[i64; 4]> = innermost.iter().map(|k| a.stride(*k)).collect();
        !spec.aliased && is_shared_row(dims, &strides, &spec.target.tuning.kernels)
    };
    let is_simple = |(d, node): &(DType, Node)| match node {
        Node::Index(a) => is_even(a) && is_counted(spec.kernel, *d, a),
        Node::Load(l) if !l.guards.is_empty() => false,
        Node::Load(l) if is_narrow(*d) => Function::Widen(*d).width().is_some() && l.at.stride(last) == 1,
        Node::Load(l) => {
            let is_lane = Lane::of(*d).is_storage_of(*d) && d.size() >= 4;
            is_lane && (strided || is_even(&l.at) || is_shared(&l.at))
        }
        _ => true,
    };
    let mut nodes = spec.kernel.nodes.iter().zip(needed);
    let mut results = spec.outs.iter().zip(spec.places);
    nodes.all(|(n, needed)| !needed || is_simple(n))
        && results.all(|(o, p)| is_even(p) || strided && !is_narrow(spec.kernel.dtype(o.0)))
}

/// Whether these strides name the same elements in all rows, not contiguous, and a copy pays.
pub(super) fn is_shared_row(dims: &[usize], strides: &[i64], t: &KernelTuning) -> bool {
    let (row, outer) = (dims[dims.len() - 1], &strides[..strides.len() - 1]);
    row <= t.max_shared_row.min(t.min_tile)
        && dims[..dims.len() - 1].iter().product::<usize>() >= t.min_rows_sharing
        && outer.iter().all(|s| *s == 0)
        && !matches!(strides[strides.len() - 1], 0 | 1)
}

/// The loop dimensions, without those of size 1, and with neighbours merged where every affine form of a needed node allows it.
pub(super) fn merged_dims(spec: &Spec, needed: &[bool]) -> (SmallVec<[usize; 4]>, SmallVec<[usize; 4]>) {
    let domain = spec.kernel.domain();
    let mut forms: Vec<&Affine> = vec![];
    for (n, (_, node)) in spec.kernel.nodes.iter().enumerate() {
        match node {
            _ if !needed[n] || spec.given.contains(&(n as u32)) => (),
            Node::Index(a) => forms.push(a),
            Node::Load(l) => {
                forms.push(&l.at);
                forms.extend(l.guards.iter().map(|g| &g.at));
            }
            _ => (),
        }
    }
    forms.extend(spec.places);
    let mut out: SmallVec<[usize; 4]> = SmallVec::new(); // innermost first
    let mut innermost: SmallVec<[usize; 4]> = SmallVec::new();
    let mut inner: Option<usize> = None; // the domain dimension that the last merged one ends with, outermost
    let mut inner_size = 1;
    for k in spec.loops.iter().rev().copied() {
        let n = domain[k];
        if n == 1 {
            continue;
        }
        if let Some(i) = inner
            && forms.iter().all(|f| f.stride(k) == f.stride(i) * inner_size as i64)
        {
            *out.last_mut().expect("inner is set with the first") *= n;
        } else {
            out.push(n);
            innermost.push(k);
        }
        inner = Some(k);
        inner_size = n;
    }
    out.reverse();
    innermost.reverse();
    (out, innermost)
}
