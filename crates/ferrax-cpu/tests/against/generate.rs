//! Kernels and data made from a seed.
use ferrax_kernel::kernel::{Access, Guard};
use ferrax_kernel::{Affine, Bin, DType, Dims, Kernel, Node, NodeId, ReduceKind, Scalar, Un};
use smallvec::SmallVec;

pub struct Rng(pub u64);
impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    pub fn pick<T: Copy>(&mut self, x: &[T]) -> T {
        x[self.below(x.len())]
    }
}

/// The seeds of a generated test: `SEEDS=from..to`, or as many as each commit tries. The nightly run draws others.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let Ok(given) = std::env::var("SEEDS") else { return 0..usual };
    let bounds = given.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("SEEDS={given}: not from..to"))
}

/// Elements of which a third are edges.
pub fn random_bytes(rng: &mut Rng, d: DType, n: usize) -> Vec<u8> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-40,
        -1e-310,
        1e30,
        3.0,
        6e-8,
        65504.0,
    ];
    (0..n)
        .flat_map(|_| {
            let s = match rng.below(3) {
                0 if d.is_float() => Scalar::from_f64(d, rng.pick(&edges)),
                1 if d.is_float() => Scalar::from_f64(d, (rng.below(2001) as f64 - 1000.0) / 37.0),
                0 => Scalar::from_i64(
                    d,
                    rng.pick(&[0, 1, -1, i64::MIN, i64::MAX, 127, -128, i32::MIN as i64, i32::MAX as i64, 31, 7]),
                ),
                1 => Scalar::from_i64(d, rng.below(20) as i64 - 4),
                _ if d == DType::Bool => Scalar::bool(rng.below(2) == 1),
                _ => Scalar { dtype: d, bits: rng.next() & (u64::MAX >> (64 - 8 * d.size())) },
            };
            s.bytes().into_iter().take(d.size())
        })
        .collect()
}

pub fn load(input: u32, d: DType, at: Affine) -> (DType, Node) {
    (d, Node::Load(Box::new(Access { input, at, guards: SmallVec::new(), fill: Scalar::zero(d) })))
}
/// Inputs of n elements each, and what `f` makes of their loads; the last node is the output.
pub fn elementwise(ds: &[DType], n: usize, f: impl FnOnce(&[NodeId]) -> Vec<(DType, Node)>) -> Kernel {
    let mut nodes: Vec<_> = ds.iter().enumerate().map(|(k, d)| load(k as u32, *d, Affine::new(0, [1]))).collect();
    nodes.extend(f(&(0..ds.len() as u32).collect::<Vec<_>>()));
    Kernel {
        grid: [n].into(),
        inputs: ds.iter().map(|d| (*d, n)).collect(),
        outputs: vec![nodes.len() as u32 - 1],
        nodes,
        ..Kernel::default()
    }
}
/// The middle axis of [outer, n, inner] reduced.
pub fn reduction(kind: ReduceKind, d: DType, to: DType, [outer, n, inner]: [usize; 3]) -> Kernel {
    let x = load(0, d, Affine::new(0, [(n * inner) as i64, 1, inner as i64]));
    Kernel {
        grid: [outer, inner].into(),
        rdims: [n].into(),
        inputs: vec![(d, outer * n * inner)],
        nodes: vec![x, (to, Node::Reduce { kind, of: 0 })],
        outputs: vec![1],
    }
}

/// An access of random strides (broadcast, permuted, negative, gaps), with the length its buffer needs.
fn random_access(rng: &mut Rng, domain: &[usize]) -> (Affine, SmallVec<[Guard; 1]>, usize) {
    let mut order: Vec<usize> = (0..domain.len()).collect();
    if rng.below(3) == 0 {
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i + 1));
        }
    }
    let mut strides = vec![0i64; domain.len()];
    let mut step = if rng.below(5) == 0 { 2 } else { 1 };
    for k in order.into_iter().rev() {
        if rng.below(6) > 0 {
            strides[k] = step * if rng.below(6) == 0 { -1 } else { 1 };
            step *= domain[k].max(1) as i64 + if rng.below(8) == 0 { 1 } else { 0 };
        }
    }
    let mut a = Affine::new(0, strides.clone());
    let mut guards = SmallVec::new();
    let (mut lo, mut hi) = a.range(domain).unwrap_or((0, -1));
    if rng.below(4) == 0
        && let Some(k) = (0..domain.len()).find(|k| domain[*k] > 2 && strides[*k] != 0)
    {
        // Only the middle of one axis passes.
        let mut ix = vec![0; domain.len()];
        ix[k] = 1;
        guards.push(Guard { at: Affine::new(0, ix), lo: 1, hi: domain[k] as i64 - 1 });
        let s = strides[k].abs();
        (lo, hi) = (lo + s, hi - s);
    }
    let slack = rng.below(3) as i64;
    a.offset = slack - lo;
    (a, guards, (hi - lo + 1 + slack + rng.below(2) as i64).max(0) as usize)
}

pub fn random_kernel(rng: &mut Rng) -> Kernel {
    let size = |rng: &mut Rng| match rng.below(12) {
        0 => 1,
        1 => rng.below(2),
        2 => 100 + rng.below(1500),
        _ => 1 + rng.below(9),
    };
    let grid: Dims = (0..rng.below(4)).map(|_| size(rng)).collect();
    let reduces = rng.below(2) == 0;
    let rdims: Dims = if reduces { (0..1 + rng.below(2)).map(|_| size(rng)).collect() } else { Dims::default() };
    let (grid, rdims) = if grid.size().saturating_mul(rdims.size()) > 30_000 {
        (Dims::new(&[7]), if reduces { Dims::new(&[40]) } else { rdims })
    } else {
        (grid, rdims)
    };
    let domain = grid.concat(&rdims);
    let dtypes = [
        DType::F32,
        DType::F32,
        DType::F64,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U8,
        DType::I16,
        DType::F16,
        DType::BF16,
        DType::Bool,
    ];
    let mut k = Kernel { grid: grid.clone(), rdims, ..Kernel::default() };
    let inner_loads = 1 + rng.below(3);
    for _ in 0..inner_loads {
        push_load(rng, &mut k, &domain, &dtypes);
    }
    push_nodes(rng, &mut k, 0, 6);
    if reduces {
        let count = 1 + rng.below(2);
        let inner = k.nodes.len();
        for _ in 0..count {
            let of = rng.below(inner) as u32;
            let d = k.dtype(of);
            // Not sums of products that overflow by different roads: every kind is exact, or in the waist's order.
            let kinds: &[ReduceKind] = match d {
                DType::Bool => &[ReduceKind::Or, ReduceKind::And],
                d if d.is_float() => {
                    &[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod, ReduceKind::ArgMax]
                }
                _ => &[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Xor, ReduceKind::ArgMin],
            };
            let kind = rng.pick(kinds);
            k.nodes.push((if kind.bin().is_none() { DType::I32 } else { d }, Node::Reduce { kind, of }));
        }
        push_load(rng, &mut k, &grid, &dtypes);
        push_nodes(rng, &mut k, inner, 4);
        let first = inner;
        k.outputs = (0..1 + rng.below(2)).map(|_| (first + rng.below(k.nodes.len() - first)) as u32).collect();
    } else {
        k.outputs = (0..1 + rng.below(3)).map(|_| rng.below(k.nodes.len()) as u32).collect();
    }
    k
}
/// What rolls, pads, concatenations, stacks and stencils are made of: shifted loads with guards at the ends of axes, chosen between by
/// comparing indices with constants.
pub fn guarded_kernel(rng: &mut Rng) -> Kernel {
    let mut grid: Dims = (0..1 + rng.below(3)).map(|_| rng.pick(&[1, 2, 3, 5, 17, 50, 130])).collect();
    let last = grid.len() - 1;
    if rng.below(3) == 0 {
        grid[last] = rng.pick(&[2, 2, 3, 4]);
    }
    if grid.size() > 20_000 {
        grid[0] = 3;
    }
    let dtypes = [DType::F32, DType::F32, DType::I32, DType::F64, DType::U8, DType::F16, DType::Bool];
    let d = rng.pick(&dtypes);
    let mut k = Kernel { grid: grid.clone(), ..Kernel::default() };
    for _ in 0..1 + rng.below(3) {
        // An operand of this shape, perhaps with its axes in another order or reversed, moved by `shift`.
        let shape: Vec<usize> =
            grid.iter().map(|n| if rng.below(4) == 0 { rng.pick(&[1, 2, 9]) } else { *n }).collect();
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if rng.below(4) == 0 {
            order.swap(0, last);
        }
        let (mut at, mut step, mut guards) = (Affine::new(0, vec![0; shape.len()]), 1i64, SmallVec::new());
        for axis in order.into_iter().rev() {
            let (n, size) = (grid[axis] as i64, shape[axis] as i64);
            let sign = if rng.below(6) == 0 { -1 } else { 1 };
            let shift = rng.pick(&[0, 0, 1, -1, 2, -3, n / 2]) + if sign < 0 { n - 1 } else { 0 };
            // index sign * i + shift of the operand's axis
            let mut form = Affine::constant(shift);
            form.strides.resize(shape.len(), 0);
            form.strides[axis] = sign;
            let (lo, hi) = form.range(&grid).unwrap_or((0, 0));
            if lo < 0 || hi >= size || rng.below(6) == 0 {
                guards.push(Guard { at: form, lo: 0, hi: size });
            }
            at.offset += shift * step;
            at.strides[axis] = sign * step;
            step *= size;
        }
        let fill = Scalar::from_f64(d, rng.below(3) as f64);
        k.inputs.push((d, step as usize));
        k.nodes.push((d, Node::Load(Box::new(Access { input: k.inputs.len() as u32 - 1, at, guards, fill }))));
    }
    for _ in 0..rng.below(4) {
        let axis = rng.below(grid.len());
        let wide = rng.pick(&[DType::I32, DType::I64]);
        let strides = (0..grid.len()).map(|k| if k == axis { 1 } else { 0 });
        let i = k.nodes.len() as u32;
        k.nodes.push((wide, Node::Index(Affine::new(rng.below(3) as i64 - 1, strides))));
        k.nodes.push((wide, Node::Const(Scalar::from_i64(wide, rng.below(grid[axis] + 2) as i64))));
        let f = rng.pick(&[Bin::Lt, Bin::Le, Bin::Gt, Bin::Ge, Bin::Eq, Bin::Ne]);
        let (x, y) = if rng.below(4) == 0 { (i + 1, i) } else { (i, i + 1) };
        k.nodes.push((DType::Bool, Node::Bin(f, x, y)));
    }
    push_nodes(rng, &mut k, 0, 12);
    let bools: Vec<u32> = (0..k.nodes.len() as u32).filter(|n| k.dtype(*n) == DType::Bool).collect();
    for _ in 0..rng.below(3).min(bools.len()) {
        let same: Vec<u32> = (0..k.nodes.len() as u32).filter(|n| k.dtype(*n) == d).collect();
        let node = Node::Select { p: rng.pick(&bools), t: rng.pick(&same), f: rng.pick(&same) };
        k.nodes.push((d, node));
    }
    let late = k.nodes.len().saturating_sub(4);
    k.outputs = (0..1 + rng.below(2)).map(|_| (late + rng.below(k.nodes.len() - late)) as u32).collect();
    k
}
fn push_load(rng: &mut Rng, k: &mut Kernel, domain: &[usize], dtypes: &[DType]) {
    let (at, guards, len) = random_access(rng, domain);
    let d = rng.pick(dtypes);
    let fill = Scalar::from_f64(d, rng.below(4) as f64 - 1.0);
    k.inputs.push((d, len));
    k.nodes.push((d, Node::Load(Box::new(Access { input: k.inputs.len() as u32 - 1, at, guards, fill }))));
}
/// Nodes over those from `from` on.
pub fn push_nodes(rng: &mut Rng, k: &mut Kernel, from: usize, most: usize) {
    for _ in 0..rng.below(most) {
        let x = (from + rng.below(k.nodes.len() - from)) as u32;
        let d = k.dtype(x);
        let same: Vec<u32> = (from..k.nodes.len()).map(|n| n as u32).filter(|n| k.dtype(*n) == d).collect();
        let y = rng.pick(&same);
        let bools: Vec<u32> = (from..k.nodes.len()).map(|n| n as u32).filter(|n| k.dtype(*n) == DType::Bool).collect();
        let node = match rng.below(8) {
            0 => (d, Node::Const(Scalar::from_f64(d, rng.below(5) as f64))),
            1 if d != DType::Bool => {
                let strides: Vec<i64> = k.domain().iter().map(|_| rng.below(7) as i64 - 3).collect();
                let grid = k.grid.len();
                let keep = if from > 0 { grid } else { strides.len() };
                (d, Node::Index(Affine::new(rng.below(9) as i64 - 4, strides[..keep].iter().copied())))
            }
            2 if !bools.is_empty() => (d, Node::Select { p: rng.pick(&bools), t: x, f: y }),
            3 => {
                use DType::*;
                let to = rng.pick(&[F32, F32, I32, I32, F16, U8, F64, Bool, I8, I16, U16, U32, BF16]);
                (to, Node::Convert(x))
            }
            4 => (DType::Bool, Node::Bin(rng.pick(&[Bin::Lt, Bin::Eq, Bin::Ge]), x, y)),
            5 if d != DType::Bool => (d, Node::Un(rng.pick(&[Un::Neg, Un::Abs, Un::Sign]), x)),
            _ if d == DType::Bool => (d, Node::Bin(rng.pick(&[Bin::And, Bin::Or, Bin::Xor]), x, y)),
            _ => (d, Node::Bin(rng.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::Max, Bin::Min, Bin::Div]), x, y)),
        };
        k.nodes.push(node);
    }
}

/// Lengths around whole vectors; a few that are shared among threads.
pub fn length(rng: &mut Rng) -> usize {
    match rng.below(24) {
        0 if rng.below(20) == 0 => 5000 + rng.below(40_000),
        0 => 200 + rng.below(900),
        1 => 0,
        k if k < 10 => 1 + rng.below(9),
        _ => rng.pick(&[15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 96, 100, 127, 128, 129]),
    }
}
/// An access whose rows lie after one another in the order of `axes` (the innermost last), apart from each other or not, the same for all of some
/// axes; if not `is_plain`, now and then by steps or backwards, or with an end cut off.
fn access_of_rows(
    rng: &mut Rng,
    domain: &[usize],
    axes: &[usize],
    is_plain: bool,
) -> (Affine, SmallVec<[Guard; 1]>, usize) {
    let mut strides = vec![0i64; domain.len()];
    let mut step = if is_plain { 1 } else { rng.pick(&[1, 1, 1, 1, 2, 3]) };
    let repeated = rng.below(4) == 0;
    for axis in axes.iter().rev() {
        if rng.below(if repeated { 2 } else { 12 }) > 0 {
            strides[*axis] = if !is_plain && rng.below(12) == 0 { -step } else { step };
            step *= domain[*axis].max(1) as i64;
            step += rng.pick(&[0, 0, 0, 0, 1, 5, 16]);
        }
    }
    let mut at = Affine::new(0, strides.clone());
    let mut guards = SmallVec::new();
    let (mut lo, mut hi) = at.range(domain).unwrap_or((0, -1));
    if let Some(axis) = (!is_plain && rng.below(4) == 0).then(|| rng.pick(axes))
        && domain[axis] > 2
        && strides[axis] != 0
    {
        let cut = 1 + rng.below(domain[axis] / 2) as i64;
        let (mut of, s) = (vec![0; domain.len()], strides[axis]);
        of[axis] = 1;
        if rng.below(2) == 0 {
            guards.push(Guard { at: Affine::new(0, of), lo: cut, hi: domain[axis] as i64 });
            (lo, hi) = (lo + (cut * s).max(0), hi + (cut * s).min(0));
        } else {
            guards.push(Guard { at: Affine::new(0, of), lo: 0, hi: domain[axis] as i64 - cut });
            (lo, hi) = (lo - (cut * s).min(0), hi - (cut * s).max(0));
        }
    }
    let slack = rng.pick(&[0, 0, 0, 1, 3]);
    at.offset = slack - lo;
    (at, guards, (hi - lo + 1 + slack).max(0) as usize)
}
/// Rows and columns as lines, folds and code over rows take them: pointwise, reduced along rows, or along columns.
pub fn kernel_of_rows(rng: &mut Rng) -> Kernel {
    let mut k = Kernel::default();
    let rank = rng.below(3);
    let outer: Dims = (0..rank).map(|_| rng.pick(&[1, 2, 3, 5, 9])).collect();
    let mut row = length(rng);
    let (mut axes, reduced): (Vec<usize>, usize) = match rng.below(3) {
        0 => {
            k.grid = outer.concat(&[row]);
            ((0..k.grid.len()).collect(), 0)
        }
        1 => {
            row = if rng.below(10) == 0 { row } else { row.min(600) };
            (k.grid, k.rdims) = (outer, [row].into());
            ((0..=k.grid.len()).collect(), 1)
        }
        _ => {
            // the grid's last dimensions are columns, which lie within what is reduced
            let high = [1 + rng.below(3), rng.pick(&[1, 2, 7, 15, 16, 17, 20, 33, 40, 70])];
            let (grid, n) = (outer.len(), 1 + rng.below(2));
            let columns = if row < 16 && rng.below(3) > 0 { row + 16 } else { row.min(300) };
            (k.grid, k.rdims) = (outer.concat(&[columns]), Dims::new(&high[2 - n..]));
            ((0..grid).chain(grid + 1..grid + 1 + n).chain([grid]).collect(), n)
        }
    };
    if k.domain().iter().product::<usize>() > 6_000 {
        for n in k.grid.iter_mut().take(rank) {
            *n = (*n).min(2);
        }
    }
    if axes.len() > 1 && rng.below(10) == 0 {
        let (x, y) = (rng.below(axes.len()), rng.below(axes.len()));
        axes.swap(x, y);
    }
    let domain = k.domain();
    let any = rng.pick(DType::ALL);
    let main = rng.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::I32, any]);
    // of one dtype that is code, and of nothing but what is code
    let is_plain = rng.below(2) == 0;
    let push = |rng: &mut Rng, k: &mut Kernel, domain: &[usize], axes: &[usize]| {
        let d = if !is_plain && rng.below(3) == 0 { rng.pick(DType::ALL) } else { main };
        let (at, guards, len) = access_of_rows(rng, domain, axes, is_plain);
        let fill = Scalar::from_f64(d, rng.below(4) as f64 - 1.0);
        k.inputs.push((d, len));
        k.nodes.push((d, Node::Load(Box::new(Access { input: k.inputs.len() as u32 - 1, at, guards, fill }))));
    };
    for _ in 0..1 + rng.below(4) {
        push(rng, &mut k, &domain, &axes);
    }
    if is_plain {
        push_arithmetic(rng, &mut k);
    } else {
        push_nodes(rng, &mut k, 0, 9);
        push_functions(rng, &mut k, 0);
    }
    let inner = k.nodes.len();
    if reduced == 0 {
        let late = inner.saturating_sub(6);
        k.outputs = (0..1 + rng.below(3)).map(|_| (late + rng.below(inner - late)) as u32).collect();
        return k;
    }
    for _ in 0..1 + rng.below(3) {
        let of = (inner - 1 - rng.below(inner.min(4))) as u32;
        let d = k.dtype(of);
        let kinds: &[ReduceKind] = match d {
            DType::Bool => &[ReduceKind::Or, ReduceKind::And, ReduceKind::Max],
            d if d.is_float() => &[
                ReduceKind::Sum,
                ReduceKind::Sum,
                ReduceKind::Max,
                ReduceKind::Min,
                ReduceKind::Prod,
                ReduceKind::ArgMax,
                ReduceKind::ArgMin,
            ],
            _ => &[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Prod, ReduceKind::Xor, ReduceKind::ArgMin],
        };
        let kind = match rng.pick(kinds) {
            k if is_plain && k.bin().is_none() => ReduceKind::Sum,
            k => k,
        };
        let to = if kind.bin().is_none() { rng.pick(&[DType::I32, DType::I64]) } else { d };
        k.nodes.push((to, Node::Reduce { kind, of }));
    }
    if rng.below(2) == 0 && !k.grid.is_empty() {
        let grid: Vec<usize> = k.grid.to_vec();
        push(rng, &mut k, &grid, &(0..grid.len()).collect::<Vec<_>>());
        push_nodes(rng, &mut k, inner, 4);
    }
    k.outputs = (0..1 + rng.below(3)).map(|_| (inner + rng.below(k.nodes.len() - inner)) as u32).collect();
    k
}
/// Arithmetic, comparisons and choices among nodes of the first one's dtype.
fn push_arithmetic(rng: &mut Rng, k: &mut Kernel) {
    let d = k.dtype(0);
    for _ in 0..1 + rng.below(8) {
        let numbers: Vec<u32> = (0..k.nodes.len() as u32).filter(|n| k.dtype(*n) == d).collect();
        let (x, y) = (rng.pick(&numbers), rng.pick(&numbers));
        match rng.below(8) {
            0 if d != DType::Bool => {
                let f = rng.pick(&[Bin::Lt, Bin::Le, Bin::Gt, Bin::Ge, Bin::Eq, Bin::Ne]);
                k.nodes.push((DType::Bool, Node::Bin(f, x, y)));
                let p = k.nodes.len() as u32 - 1;
                k.nodes.push((d, Node::Select { p, t: rng.pick(&numbers), f: rng.pick(&numbers) }));
            }
            1 => k.nodes.push((d, Node::Const(Scalar::from_f64(d, rng.below(7) as f64)))),
            _ if d == DType::Bool => k.nodes.push((d, Node::Bin(rng.pick(&[Bin::And, Bin::Or, Bin::Xor]), x, y))),
            _ => k.nodes.push((d, Node::Bin(rng.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::Max, Bin::Min]), x, y))),
        }
    }
}
/// Now and then a function of one of the nodes from `from` on.
fn push_functions(rng: &mut Rng, k: &mut Kernel, from: usize) {
    use Un::*;
    for _ in 0..rng.below(3) {
        let x = (from + rng.below(k.nodes.len() - from)) as u32;
        let d = k.dtype(x);
        if d.is_float() {
            let f = rng
                .pick(&[Sqrt, Floor, Ceil, RoundEven, RoundAway, Trunc, Neg, Abs, Exp, Log, Tanh, Erf, Logistic, Sin]);
            k.nodes.push((d, Node::Un(f, x)));
        }
    }
}
/// Complex numbers: two adjacent parts are read separately and interleaved at the end.
pub fn kernel_of_pairs(rng: &mut Rng) -> Kernel {
    let n = length(rng);
    let outer = rng.pick(&[1, 1, 2, 5]);
    let d = rng.pick(&[DType::F32, DType::F32, DType::F64]);
    let mut k = Kernel { grid: [outer, n, 2].into(), ..Kernel::default() };
    for _ in 0..1 + rng.below(2) {
        let (row, same) = (2 * n as i64, rng.below(3) == 0);
        let len = if same { 2 * n } else { 2 * n * outer };
        k.inputs.push((d, len));
        for part in 0..2 {
            let at = Affine::new(part, [if same { 0 } else { row }, 2, 0]);
            k.nodes.push(load(k.inputs.len() as u32 - 1, d, at));
        }
    }
    let numbers = k.nodes.len() as u32;
    for _ in 0..1 + rng.below(8) {
        let (x, y) = (rng.below(k.nodes.len()) as u32, rng.below(k.nodes.len()) as u32);
        k.nodes.push((d, Node::Bin(rng.pick(&[Bin::Mul, Bin::Mul, Bin::Add, Bin::Sub]), x, y)));
    }
    let wide = rng.pick(&[DType::I32, DType::I64]);
    let count = k.nodes.len() as u32;
    let (re, im) = (rng.pick(&[numbers, count - 1]), rng.pick(&[0, count.saturating_sub(2)]));
    k.nodes.push((wide, Node::Index(Affine::new(0, [0, 0, 1]))));
    k.nodes.push((wide, Node::Const(Scalar::from_i64(wide, 0))));
    k.nodes.push((DType::Bool, Node::Bin(Bin::Eq, count, count + 1)));
    k.nodes.push((d, Node::Select { p: count + 2, t: re, f: im }));
    k.outputs = vec![count + 3];
    k
}
