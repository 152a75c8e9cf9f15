//! `ReduceWindow` and `Conv` as kernels: the window is what is reduced over, padding is a guard, and holes of a dilated operand are
//! filled in beforehand.
use super::load;
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::kernel::{Affine, Guard, Kernel, Node, NodeId};
use ferrax_kernel::routine::Conv;
use ferrax_kernel::{Bin, DType, Dims, Error, ReduceKind, Res, Routine, Scalar};

pub fn reduce_window(r: &Routine, limits: Limits) -> Res<Lowered> {
    let Routine::ReduceWindow { kind, operand, window, strides, base_dilation, window_dilation, padding, dtype, out } =
        r
    else {
        return Err(Error::Invalid(format!("{} is no window reduction", r.name())));
    };
    let Some(identity) = kind.identity(*dtype) else {
        return Err(Error::Invalid(format!("reduce_window by {}", kind.name())));
    };
    let mut task = Lowered::default();
    let (x, size) = dilated(&mut task, operand, base_dilation, identity, limits)?;
    let along: Vec<Along> = (0..operand.len())
        .map(|k| Along { out: k, within: k, stride: strides[k], dilation: window_dilation[k], low: padding[k].0 })
        .collect();
    let (at, guards) = positions(&size, &size.strides(), &along, out.len(), 0);
    let k = Kernel {
        grid: out.clone(),
        rdims: window.clone(),
        inputs: vec![(*dtype, size.size())],
        nodes: vec![load(0, at, guards, identity), (*dtype, Node::Reduce { kind: *kind, of: 0 })],
        outputs: vec![1],
    };
    task.include(wgsl::lower(&k, limits)?, &[x], &[Reg::Out(0)]);
    Ok(task)
}

pub fn conv(c: &Conv, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered::default();
    let ones: Dims = [1, 1].into();
    let dilation = ones.concat(&c.lhs_dilation);
    let (x, size) = dilated(&mut task, &c.lhs, &dilation, Scalar::zero(c.dtype), limits)?;
    let groups = c.feature_groups.max(c.batch_groups);
    // Grid (n, group, channel within the group, spatial..), reduced over (input channel, window..).
    let per_group = c.out[1] / groups;
    let grid: Dims = [c.out[0], groups, per_group].into_iter().chain(c.out[2..].iter().copied()).collect();
    let rdims: Dims = c.rhs[1..].iter().copied().collect();
    let spatial = c.lhs.len() - 2;
    let along = |k: usize| Along {
        out: 3 + k,
        within: 1 + k,
        stride: c.strides[k],
        dilation: c.rhs_dilation[k],
        low: c.padding[k].0,
    };
    let along: Vec<Along> = (0..spatial).map(along).collect();
    let x_strides = size.strides();
    let (mut at_x, guards) = positions(&Dims::new(&size[2..]), &x_strides[2..], &along, grid.len(), 1);
    at_x.strides[0] = x_strides[0] as i64;
    at_x.strides[1] = if c.batch_groups > 1 {
        (c.lhs[0] / groups) as i64 * x_strides[0] as i64
    } else {
        c.rhs[1] as i64 * x_strides[1] as i64
    };
    at_x.strides[grid.len()] = x_strides[1] as i64;
    if groups == 1 {
        at_x.strides[1] = 0;
    }
    let y_strides = c.rhs.strides();
    let mut at_y = Affine::new(0, vec![0; grid.len() + rdims.len()]);
    at_y.strides[1] = (per_group as isize * y_strides[0]) as i64;
    at_y.strides[2] = y_strides[0] as i64;
    for k in 0..rdims.len() {
        at_y.strides[grid.len() + k] = y_strides[1 + k] as i64;
    }
    let acc = if c.out_dtype.is_float() { DType::F32 } else { c.dtype.lane() };
    let mut nodes = vec![
        load(0, at_x, guards.clone(), Scalar::zero(c.dtype)),
        // what meets no element of the operand takes no part, though it be infinite
        load(1, at_y, guards.clone(), Scalar::zero(c.dtype)),
        (c.dtype, Node::Const(Scalar::zero(c.dtype))),
    ];
    let mut push = |d: DType, n: Node| {
        nodes.push((d, n));
        nodes.len() as NodeId - 1
    };
    let mut weight = 1;
    for (k, d) in c.lhs_dilation.iter().enumerate().filter(|(_, d)| **d > 1) {
        let at = push(DType::I32, Node::Index(guards[k].at.clone()));
        let by = push(DType::I32, Node::Const(Scalar::i32(*d as i32)));
        let rest = push(DType::I32, Node::Bin(Bin::Rem, at, by));
        let zero = push(DType::I32, Node::Const(Scalar::i32(0)));
        let met = push(DType::Bool, Node::Bin(Bin::Eq, rest, zero));
        weight = push(c.dtype, Node::Select { p: met, t: weight, f: 2 });
    }
    let (l, r) = (push(acc, Node::Convert(0)), push(acc, Node::Convert(weight)));
    let product = push(acc, Node::Bin(Bin::Mul, l, r));
    let sum = push(acc, Node::Reduce { kind: ReduceKind::Sum, of: product });
    let y = push(c.out_dtype, Node::Convert(sum));
    let k =
        Kernel { inputs: vec![(c.dtype, size.size()), (c.dtype, c.rhs.size())], nodes, outputs: vec![y], grid, rdims };
    task.include(wgsl::lower(&k, limits)?, &[x, Reg::In(1)], &[Reg::Out(0)]);
    Ok(task)
}

/// How one axis of an operand is walked: `out * stride + within * dilation - low`, by the numbers of a grid and a window index.
struct Along {
    out: usize,
    within: usize,
    stride: usize,
    dilation: usize,
    low: i64,
}

/// The position in the operand, and the guards that keep it inside; `skip` reduced indices and all others of the grid do not move it.
fn positions(size: &Dims, strides: &[isize], along: &[Along], n_grid: usize, skip: usize) -> (Affine, Vec<Guard>) {
    let rank = n_grid + skip + along.len();
    let mut at = Affine::new(0, vec![0; rank]);
    let mut guards = vec![];
    for (axis, a) in along.iter().enumerate() {
        let mut p = Affine::new(-a.low, vec![0; rank]);
        p.strides[a.out] = a.stride as i64;
        p.strides[n_grid + a.within] = a.dilation as i64;
        at.offset += p.offset * strides[axis] as i64;
        for k in 0..rank {
            at.strides[k] += p.strides[k] * strides[axis] as i64;
        }
        guards.push(Guard { at: p, lo: 0, hi: size[axis] as i64 });
    }
    (at, guards)
}

/// The operand with `dilation - 1` fills after each element, along each axis, and its shape.
fn dilated(task: &mut Lowered, operand: &Dims, dilation: &Dims, fill: Scalar, limits: Limits) -> Res<(Reg, Dims)> {
    if dilation.iter().all(|d| *d == 1) {
        return Ok((Reg::In(0), operand.clone()));
    }
    let size: Dims = operand.iter().zip(dilation.iter()).map(|(n, d)| n * d).collect();
    let bytes = size.checked(fill.dtype.size())?;
    // Axis n * d as two axes, n and d; the element stands at 0 of d.
    let grid: Dims = operand.iter().zip(dilation.iter()).flat_map(|(n, d)| [*n, *d]).collect();
    let strides = operand.strides().into_iter().flat_map(|s| [s as i64, 0]);
    let hole = |k: usize| Guard { at: Affine::new(0, (0..grid.len()).map(|j| (j == 2 * k + 1) as i64)), lo: 0, hi: 1 };
    let k = Kernel {
        rdims: Dims::default(),
        inputs: vec![(fill.dtype, operand.size())],
        nodes: vec![load(0, Affine::new(0, strides), (0..operand.len()).map(hole).collect(), fill)],
        outputs: vec![0],
        grid,
    };
    let out = task.add_scratch(bytes);
    task.include(wgsl::lower(&k, limits)?, &[Reg::In(0)], &[out]);
    Ok((out, size))
}
