//! Thresholds of kernels, overridden one by one: on each side of a threshold the compiled text names another strategy.
use ferrax_cpu::lowering::CompiledKernel;
use ferrax_cpu::tuning::{KernelTuning, RowGroupTuning};
use ferrax_cpu::{CpuBackend, Target, Tier, Tuning};
use ferrax_kernel::backend::Backend;
use ferrax_kernel::plan::{Place, Step};
use ferrax_kernel::{Access, Affine, Bin, DType, Dims, Kernel, Node, Plan, ReduceKind, Scalar, Un};

const D: KernelTuning = KernelTuning::DEFAULT;

fn text_on(tier: Tier, k: &Kernel, kernels: KernelTuning) -> String {
    k.verify().unwrap();
    let tuning = Tuning { kernels, ..Tuning::DEFAULT };
    CompiledKernel::new(k, false, Target { tier, tuning }).unwrap().text()
}
fn text(k: &Kernel, kernels: KernelTuning) -> String {
    text_on(Tier::Portable, k, kernels)
}
fn load(d: DType, input: u32, strides: &[i64]) -> (DType, Node) {
    let at = Affine::new(0, strides.iter().copied());
    (d, Node::Load(Box::new(Access { input, at, guards: vec![].into(), fill: Scalar::zero(d) })))
}
/// The index along the last axis of a grid, or a number in its place from the middle on.
fn compared(grid: [usize; 2]) -> Kernel {
    let middle = Scalar::from_f64(DType::I32, (grid[1] / 2) as f64);
    let mut k = Kernel { grid: grid.into(), ..Kernel::default() };
    k.nodes.push((DType::I32, Node::Index(Affine::new(0, [0, 1]))));
    k.nodes.push((DType::I32, Node::Const(middle)));
    k.nodes.push((DType::Bool, Node::Bin(Bin::Lt, 0, 1)));
    k.nodes.push((DType::I32, Node::Select { p: 2, t: 0, f: 1 }));
    k.outputs = vec![3];
    k
}
/// The sum of a matrix over the second axis, or over the first.
fn sum(d: DType, [m, n]: [usize; 2], over_rows: bool) -> Kernel {
    let (grid, rdims) = if over_rows { (n, m) } else { (m, n) };
    let strides = if over_rows { [1, n as i64] } else { [n as i64, 1] };
    let mut k = Kernel { grid: [grid].into(), rdims: [rdims].into(), ..Kernel::default() };
    k.inputs = vec![(d, m * n)];
    k.nodes = vec![load(d, 0, &strides), (d, Node::Reduce { kind: ReduceKind::Sum, of: 0 })];
    k.outputs = vec![1];
    k
}
/// The sum of an array over the last axes, read at these strides.
fn sum_at(grid: &[usize], rdims: &[usize], strides: &[i64]) -> Kernel {
    let sizes = grid.iter().chain(rdims);
    let last: usize = sizes.zip(strides).map(|(n, s)| (n - 1) * *s as usize).sum();
    let mut k = Kernel { grid: Dims::new(grid), rdims: Dims::new(rdims), ..Kernel::default() };
    k.inputs = vec![(DType::F32, last + 1)];
    k.nodes = vec![load(DType::F32, 0, strides), (DType::F32, Node::Reduce { kind: ReduceKind::Sum, of: 0 })];
    k.outputs = vec![1];
    k
}
/// A matrix plus a column.
fn plus_column(d: DType, grid: [usize; 2]) -> Kernel {
    let inputs = vec![(d, grid[0] * grid[1]), (d, grid[0])];
    let mut k = Kernel { grid: grid.into(), inputs, ..Kernel::default() };
    k.nodes = vec![load(d, 0, &[grid[1] as i64, 1]), load(d, 1, &[1, 0]), (d, Node::Bin(Bin::Add, 0, 1))];
    k.outputs = vec![2];
    k
}
fn transposed([m, n]: [usize; 2]) -> Kernel {
    let mut k = Kernel { grid: [n, m].into(), inputs: vec![(DType::F32, m * n)], ..Kernel::default() };
    k.nodes = vec![load(DType::F32, 0, &[1, n as i64]), (DType::F32, Node::Bin(Bin::Add, 0, 0))];
    k.outputs = vec![1];
    k
}

#[test]
fn pieces() {
    let pieces = |t: KernelTuning| text(&compared([8, 512]), t).contains("pieces=2");
    let max = |max_pieces| pieces(KernelTuning { max_pieces, ..D });
    assert_eq!([max(1), max(2)], [false, true]);
    // two tiles, of which each has one node left
    let max = |max_nodes_of_pieces| pieces(KernelTuning { max_nodes_of_pieces, ..D });
    assert_eq!([max(1), max(2)], [false, true]);
    let min = |min_piece_elements| pieces(KernelTuning { min_piece_elements, ..D });
    assert_eq!([min(2049), min(2048)], [false, true]);
    let max = |max_interleaved| text(&compared([100, 2]), KernelTuning { max_interleaved, ..D }).contains("pieces=1");
    assert_eq!([max(1), max(2)], [false, true]);
}
#[test]
fn blocks_of_transposes() {
    let k = transposed([128, 128]);
    let side = |block_side| text(&k, KernelTuning { block_side, ..D });
    let whole = side(129);
    assert_ne!(side(64), whole);
    let wide = transposed([128, 64]);
    assert_ne!(text(&wide, KernelTuning { block_side: 64, ..D }), text(&wide, KernelTuning { block_side: 129, ..D }));
    let stride = |min_crossed_stride| text(&k, KernelTuning { min_crossed_stride, ..D });
    assert_eq!([stride(128) != whole, stride(129) != whole], [true, false]);
    // an axis of one index is not the last one
    let mut k = k.clone();
    k.grid = [128, 128, 1].into();
    k.nodes[0] = load(DType::F32, 0, &[1, 128, 1]);
    assert_ne!(text(&k, D), text(&k, KernelTuning { block_side: 129, ..D }));
}
#[test]
fn interleaved_columns_behind_an_axis_of_one_index() {
    let text_at = |strides: &[i64]| {
        let mut k = Kernel { grid: [100, 1, 3].into(), inputs: vec![(DType::F32, 600)], ..Kernel::default() };
        k.nodes = vec![load(DType::F32, 0, strides), (DType::F32, Node::Bin(Bin::Add, 0, 0))];
        k.outputs = vec![1];
        text(&k, D)
    };
    assert_eq!(text_at(&[3, 7, 1]), text_at(&[3, 3, 1]));
    assert_ne!(text_at(&[6, 7, 1]), text_at(&[3, 7, 1]));
}
#[test]
fn short_reductions() {
    let unrolled = |t: KernelTuning| text(&sum(DType::F32, [100, 4], false), t).contains("unrolled_reduction");
    let min = |min_unrolled_results| unrolled(KernelTuning { min_unrolled_results, ..D });
    assert_eq!([min(101), min(100)], [false, true]);
    let max = |max_unrolled_nodes| unrolled(KernelTuning { max_unrolled_nodes, min_unrolled_results: 1, ..D });
    // twice for each of four elements, and once for the sum
    assert_eq!([max(8), max(9)], [false, true]);
}
#[test]
fn columns() {
    let width =
        |max_reduced_columns| text(&sum(DType::F32, [100, 64], true), KernelTuning { max_reduced_columns, ..D });
    assert!(width(32).contains("width=32") && width(64).contains("width=64"));
    // axes of one index, whatever their strides, are no axes; nor do windows that overlap lie side by side
    let in_columns = |k: &Kernel| text(k, D).contains("order=columns");
    assert!(in_columns(&sum_at(&[64], &[100], &[1, 64])));
    assert!(in_columns(&sum_at(&[64], &[100, 1], &[1, 64, 1])));
    assert!(in_columns(&sum_at(&[64, 1], &[100], &[1, 0, 64])));
    assert!(!in_columns(&sum_at(&[100], &[40], &[1, 1])));
}
#[test]
fn rows() {
    // 32-bit elements of simple kernels wait for native code, others for the interpreter
    let native = |min_native_row| text(&plus_column(DType::F32, [100, 40]), KernelTuning { min_native_row, ..D });
    assert_eq!([41, 40].map(|n| native(n).contains("by rows")), [false, true]);
    let interpreted = |min_row| text(&plus_column(DType::I8, [100, 40]), KernelTuning { min_row, ..D });
    assert_eq!([41, 40].map(|n| interpreted(n).contains("by rows")), [false, true]);
}
#[test]
fn tiles() {
    let k = plus_column(DType::BF16, [100, 400]);
    let tile = |t: KernelTuning| text(&k, t);
    assert_ne!(tile(KernelTuning { max_tile: 128, ..D }), tile(D));
    assert_ne!(tile(KernelTuning { max_tile_bytes: 1 << 10, ..D }), tile(D));
    // a load behind a function comes before it, unless there are too many loads; two of 16 bits count as one
    let mut late = k.clone();
    late.nodes = vec![k.nodes[0].clone(), (DType::BF16, Node::Un(Un::Neg, 0)), k.nodes[1].clone()];
    late.nodes.push((DType::BF16, Node::Bin(Bin::Add, 1, 2)));
    late.outputs = vec![3];
    let loads = |max_early_loads| text(&late, KernelTuning { max_early_loads, ..D });
    assert!(loads(0) != loads(1) && loads(1) == loads(2));
}
/// The text of a plan of kernels of 1024 rows that read one array, with so many members of a row-fused group at most.
fn grouped(kernels: &[Kernel], max_members: usize) -> String {
    let row_groups = RowGroupTuning { max_members, ..RowGroupTuning::DEFAULT };
    let target = Target { tier: Tier::Portable, tuning: Tuning { row_groups, ..Tuning::DEFAULT } };
    let mut p = Plan::default();
    let a = p.add_slot(DType::F32, 1 << 20, 0);
    p.inputs.push(a);
    p.places.push(Place::Input(0));
    for (j, k) in kernels.iter().enumerate() {
        let out = p.add_slot(DType::F32, k.grid.size(), 0);
        p.outputs.push(out);
        p.places.push(Place::Output(j as u32));
        p.steps.push(Step::Kernel { kernel: k.clone().into(), ins: vec![a], outs: vec![out] });
    }
    p.donatable = vec![None; kernels.len()];
    CpuBackend::with_target(target).unwrap().compile(p.verify().unwrap()).unwrap().text()
}
#[test]
fn members_of_row_groups() {
    let mut double = sum(DType::F32, [1024, 1024], false);
    double.grid = [1024, 1024].into();
    double.rdims = [].into();
    double.nodes[1] = (DType::F32, Node::Bin(Bin::Add, 0, 0));
    let three = vec![double.clone(); 3];
    let group = |n: usize| grouped(&three, n).contains("row-fused group of 3");
    assert_eq!([group(2), group(3)], [false, true]);
    // the first one could be cut into more rows than the second
    let two = [double, sum(DType::F32, [1024, 1024], false)];
    assert!(grouped(&two, 3).contains("row-fused group of 2 over 1024 rows"));
}
#[test]
fn splits_of_results() {
    let t = KernelTuning { min_split_blocks: 4, min_split_nanos: 100.0, ..D };
    assert!(t.splits_results(3, 4, 101.0, 2));
    let others = [(4, 4, 101.0, 2), (3, 3, 101.0, 2), (3, 4, 100.0, 2), (1, 4, 101.0, 1)];
    assert!(
        others.iter().all(|(results, blocks, nanos, threads)| !t.splits_results(*results, *blocks, *nanos, *threads))
    );
}
