//! `TopK`: sorts elements with their positions by the complement of their keys, then takes the first k of each row.
use super::{load, sort};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::kernel::{Affine, Kernel, Node};
use ferrax_kernel::{Bin, DType, Dims, Res, Scalar, Un};

pub fn lower([outer, n, inner]: [usize; 3], k: usize, d: DType, limits: Limits) -> Res<Lowered> {
    let len = outer * n * inner;
    let mut task = Lowered::default();
    let key = match d.size() {
        _ if !d.is_float() => d,
        2 => DType::I16,
        _ => DType::I32,
    };
    let (keys, positions) = (task.add_scratch(len * key.size()), task.add_scratch(4 * len));
    let all = Affine::new(0, [1]);
    let mut nodes = vec![load(0, all, vec![], Scalar::zero(d))];
    if d.is_float() {
        // negative numbers have their magnitude bits flipped
        let bits = 8 * d.size();
        nodes.extend([
            (key, Node::Bitcast(0)),
            (key, Node::Const(Scalar::from_i64(key, bits as i64 - 1))),
            (key, Node::Bin(Bin::ShrArithmetic, 1, 2)),
            (key, Node::Const(Scalar::from_i64(key, (1 << (bits - 1)) - 1))),
            (key, Node::Bin(Bin::And, 3, 4)),
            (key, Node::Bin(Bin::Xor, 1, 5)),
        ]);
    }
    let last = nodes.len() as u32;
    nodes.push((key, Node::Un(Un::Not, last - 1)));
    let by = Kernel { grid: [len].into(), inputs: vec![(d, len)], nodes, outputs: vec![last], ..Kernel::default() };
    task.include(wgsl::lower(&by, limits)?, &[Reg::In(0)], &[keys]);
    let at = Kernel {
        grid: [outer, n, inner].into(),
        nodes: vec![(DType::I32, Node::Index(Affine::new(0, [0, 1, 0])))],
        outputs: vec![0],
        ..Kernel::default()
    };
    task.include(wgsl::lower(&at, limits)?, &[], &[positions]);
    let sorted = [key, d, DType::I32].map(|d| task.add_scratch(len * d.size()));
    let by_key = sort::lower([outer, n, inner], &[key, d, DType::I32], 1, limits)?;
    task.include(by_key, &[keys, Reg::In(0), positions], &sorted);
    for (i, d) in [d, DType::I32].into_iter().enumerate() {
        let first = Kernel {
            grid: [outer, k, inner].into(),
            rdims: Dims::default(),
            inputs: vec![(d, len)],
            nodes: vec![load(0, Affine::new(0, [(n * inner) as i64, inner as i64, 1]), vec![], Scalar::zero(d))],
            outputs: vec![0],
        };
        task.include(wgsl::lower(&first, limits)?, &[sorted[1 + i]], &[Reg::Out(i)]);
    }
    Ok(task)
}
