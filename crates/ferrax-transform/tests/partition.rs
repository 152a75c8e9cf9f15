//! Programs on parts give what they give whole, on the reference evaluator: every line below, and programs of several equations, for
//! meshes of one and of two axes and many ways to cut the operands.
use ferrax_ir::layout::{CutAxes, Grid, Spec};
use ferrax_ir::lower::{physical, verified};
use ferrax_ir::program::{Atom, Builder};
use ferrax_ir::text::{parse, parse_application};
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Dtype, Op, Program, Value};
use ferrax_kernel::backend::{Backend, RunArg, RunCx, TermArithmetic, World};
use ferrax_kernel::collective::{Across, Collective};
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_kernel::{Dims, Error, Executable, Res, Scalar};
use ferrax_transform::partition::{Partitioned, partition};
use ferrax_transform::trace::{Executor, Trace};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};

/// What each member of a group has.
type Meetings = HashMap<(Vec<usize>, usize), Vec<Option<Vec<u8>>>>;
/// Threads that meet.
struct Members {
    grid: Grid,
    meetings: Mutex<(Meetings, Option<Error>)>,
    changed: Condvar,
}
struct Member<'a> {
    all: &'a Members,
    rank: usize,
    met: Mutex<HashMap<Vec<usize>, usize>>,
}
impl Member<'_> {
    fn group(&self, across: &Across) -> Res<(Vec<usize>, usize)> {
        let mut members = vec![self.all.grid.position(self.rank)];
        for name in &across.axes {
            let k = self.all.grid.find(name).ok_or_else(|| Error::Invalid(format!("no axis {name}")))? as usize;
            let n = self.all.grid.axes[k].1;
            let along = |m: &Vec<usize>| {
                (0..n)
                    .map(|i| m.iter().enumerate().map(|(j, p)| if j == k { i } else { *p }).collect())
                    .collect::<Vec<Vec<usize>>>()
            };
            members = members.iter().flat_map(along).collect();
        }
        let number = |m: &Vec<usize>| m.iter().zip(&self.all.grid.axes).fold(0, |r, (p, (_, n))| r * n + p);
        let members: Vec<usize> = members.iter().map(number).collect();
        let at = members.iter().position(|m| *m == self.rank).expect("a member of its group");
        across.among(members, at)
    }
}
impl World for Member<'_> {
    fn rank(&self, across: &Across) -> Res<(usize, usize)> {
        let (members, at) = self.group(across)?;
        Ok((at, members.len()))
    }
    fn meet(
        &self,
        across: &Across,
        kind: &Collective,
        mine: &[u8],
        out: &mut [u8],
        combine: Option<&dyn TermArithmetic>,
    ) -> Res<()> {
        let (members, at) = self.group(across)?;
        let number = {
            let mut met = self.met.lock().unwrap();
            let n = met.entry(members.clone()).or_default();
            *n += 1;
            *n
        };
        let n = members.len();
        let key = (members, number);
        let mut s = self.all.meetings.lock().unwrap();
        s.0.entry(key.clone()).or_insert_with(|| vec![None; n])[at] = Some(mine.to_vec());
        self.all.changed.notify_all();
        loop {
            if let Some(e) = &s.1 {
                return Err(e.clone());
            }
            let here = &s.0[&key];
            if here.iter().all(Option::is_some) {
                let all: Vec<&[u8]> = here.iter().flatten().map(|b| &b[..]).collect();
                return kind.result(&all, at, out, combine);
            }
            s = self.all.changed.wait(s).unwrap();
        }
    }
}

/// An op that is a composition is traced, and runs nothing.
struct Nothing;
impl Executor for Nothing {
    fn run(&self, op: &Op, _: &[Value]) -> ferrax_ir::Res<Values> {
        Err(ferrax_ir::Error::value(format!("{} is run", op.name())))
    }
}
fn compiled(p: &Program) -> Arc<dyn Executable> {
    ReferenceBackend
        .compile(verified(p).unwrap_or_else(|e| panic!("{e:?}\n{p}")))
        .unwrap_or_else(|e| panic!("{e:?}\n{p}"))
}
fn run(exe: &dyn Executable, ins: &[Vec<u8>], world: Option<&dyn World>) -> Res<Vec<Vec<u8>>> {
    let never = AtomicBool::new(false);
    let arg = |b: &Vec<u8>| Ok(RunArg { buffer: ReferenceBackend.upload(b)?, donated: false });
    let out = exe.run(&RunCx { cancel: &never, world }, ins.iter().map(arg).collect::<Res<_>>()?)?;
    out.iter().map(|b| ReferenceBackend.download(b)).collect()
}
/// The elements that a device at `position` has of an array.
fn part(whole: &[u8], a: &Aval, spec: &Spec, grid: &Grid, position: &[usize]) -> Vec<u8> {
    let (start, shape) = (spec.start(grid, &a.shape, position), spec.shard_shape(grid, &a.shape));
    let p = physical(a);
    // keys and complex numbers are several words
    let size = p.dtype.size() * p.shape.size() / a.shape.size().max(1);
    let strides = a.shape.strides();
    let mut out = vec![];
    for i in 0..shape.size() {
        let at = shape.unravel(i);
        let from: isize = (0..a.rank()).map(|d| (at[d] + start[d]) as isize * strides[d]).sum();
        out.extend_from_slice(&whole[from as usize * size..(from as usize + 1) * size]);
    }
    out
}
fn on_members(grid: &Grid, q: &Partitioned, p: &Program, ins: &[Spec], x: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let exe = compiled(&q.program);
    let all = Members { grid: grid.clone(), meetings: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..grid.size())
            .map(|rank| {
                let (all, exe) = (&all, &exe);
                let mine: Vec<Vec<u8>> = x
                    .iter()
                    .zip(p.in_avals())
                    .zip(ins)
                    .map(|((b, a), s)| part(b, a, s, grid, &grid.position(rank)))
                    .collect();
                s.spawn(move || {
                    let me = Member { all, rank, met: Mutex::default() };
                    let out = run(&**exe, &mine, Some(&me));
                    if let Err(e) = &out {
                        all.meetings.lock().unwrap().1.get_or_insert(e.clone());
                        all.changed.notify_all();
                    }
                    out
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("no panic").unwrap_or_else(|e| panic!("{e:?}\n{}", q.program)))
            .collect()
    })
}
/// Distinct values over the dtype's usual range.
fn values(a: &Aval, seed: usize) -> Vec<u8> {
    let p = physical(a);
    let spread = |k: usize| (k as f64 * 0.618_033_988_749_894_9).fract();
    let (lo, hi) = match a.dtype {
        d if d.is_bool() => (0.0, 2.0),
        d if d.is_key() => (0.0, 4e9),
        d if d.is_unsigned() => (0.0, 7.0),
        d if d.is_int() => (0.0, 5.0),
        _ => (-2.0, 2.0),
    };
    let one = |k: usize| {
        let x = lo + (hi - lo) * spread(k + 1 + seed * 13);
        let s =
            if p.dtype.is_float() { Scalar::from_f64(p.dtype, x) } else { Scalar::from_i64(p.dtype, x.floor() as i64) };
        s.bytes()[..p.dtype.size()].to_vec()
    };
    (0..p.shape.size()).flat_map(one).collect()
}
struct Rng(u64);
impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
    /// A way to cut an array, of those that divide it evenly.
    fn spec(&mut self, grid: &Grid, a: &Aval) -> Spec {
        let mut spec = Spec::whole(a.rank());
        let mut axes: Vec<u8> = (0..grid.axes.len() as u8).collect();
        while !axes.is_empty() && a.rank() > 0 && a.tape == 0 {
            let axis = axes.swap_remove(self.below(axes.len()));
            let d = self.below(a.rank() + 1);
            if d < a.rank() {
                let mut cut: CutAxes = spec.dims[d].clone();
                cut.push(axis);
                if a.shape[d] > 0 && a.shape[d].is_multiple_of(grid.parts(&cut)) {
                    spec.dims[d] = cut;
                }
            }
        }
        spec
    }
}
fn meshes() -> Vec<Grid> {
    let one = |n| Grid::new([("x".into(), n)]);
    let two = |m, n| Grid::new([("x".into(), m), ("y".into(), n)]);
    vec![one(2), one(3), one(4), two(2, 2), two(2, 3), two(4, 2)]
}
fn numbers(a: &Aval, b: &[u8]) -> Vec<f64> {
    let d = physical(a).dtype;
    b.chunks_exact(d.size()).map(|b| Scalar::from_bytes(d, b).to_f64()).collect()
}
fn same(a: &Aval, got: &[u8], want: &[u8]) -> bool {
    if got == want {
        return true;
    }
    let tol = match a.dtype {
        Dtype::F64 | Dtype::C128 => 1e-12,
        Dtype::F32 | Dtype::C64 => 1e-5,
        d if d.is_float() => 4e-2,
        _ => return false,
    };
    let near =
        |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tol * (1.0 + x.abs().max(y.abs()));
    numbers(a, got).iter().zip(numbers(a, want)).all(|(x, y)| near(*x, y))
}
/// The program under many ways to cut its operands and results.
fn holds(what: &str, p: &Program, rounds: usize) {
    ferrax_transform::install(|| Trace::eval(Rc::new(Nothing)));
    let x: Vec<Vec<u8>> = p.in_avals().iter().enumerate().map(|(i, a)| values(a, i)).collect();
    let want = run(&*compiled(p), &x, None).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    for (m, grid) in meshes().iter().enumerate() {
        for round in 0..rounds {
            let mut rng = Rng((round * 1000 + m) as u64 * 7919 + what.len() as u64);
            let ins: Vec<Spec> = p.in_avals().iter().map(|a| rng.spec(grid, a)).collect();
            let outs: Vec<Option<Spec>> =
                p.out_avals().iter().map(|a| if rng.below(2) == 0 { None } else { Some(rng.spec(grid, a)) }).collect();
            let q = partition(p, grid, &ins, &outs).unwrap_or_else(|e| panic!("{what}: {e:?}\n{p}"));
            let text = |s: &Spec| s.text(grid);
            let message = || {
                let ins: Vec<String> = ins.iter().map(text).collect();
                format!("{what}\n{p}\n{ins:?} of {:?}\n{}", grid.axes, q.program)
            };
            let got = on_members(grid, &q, p, &ins, &x);
            for (i, a) in p.out_avals().iter().enumerate() {
                if let Some(wanted) = &outs[i] {
                    assert_eq!(q.outs[i], *wanted, "{}", message());
                }
                for (rank, got) in got.iter().enumerate() {
                    let mine = part(&want[i], a, &q.outs[i], grid, &grid.position(rank));
                    assert!(
                        same(a, &got[i], &mine),
                        "{}\nresult {i} on {rank}, cut {}: {:?} is not {:?}",
                        message(),
                        text(&q.outs[i]),
                        numbers(a, &got[i]),
                        numbers(a, &mine)
                    );
                }
            }
        }
    }
}
fn application(line: &str) -> Program {
    let (op, avals) = parse_application(line).unwrap_or_else(|e| panic!("{line}: {e:?}"));
    let outs = op.results(&avals).unwrap_or_else(|e| panic!("{line}: {e:?}"));
    let mut b = Builder::default();
    let args = avals.iter().map(|a| Atom::Var(b.new_in(a.clone()))).collect();
    let first = b.push(&op, args, &outs, 0);
    let outs = (0..outs.len() as u32).map(|k| Atom::Var(first + k)).collect();
    b.close(outs).0
}

const LINES: &[&str] = &[
    "sin f32[12,4]",
    "add f32[12,4] f32[12,4]",
    "mul f32[2,12] f32[]",
    "add f32[12,1] f32[1,6]",
    "lt i32[12] i32[12]",
    "select_n bool[12,4] f32[12,4] f32[12,4]",
    "select_n bool[] f32[12,4] f32[12,4]",
    "clamp f32[] f32[12,4] f32[12,4]",
    "convert_element_type[new_dtype=int32 weak_type=False] f32[12,2]",
    "bitcast_convert_type[new_dtype=uint8] f32[12]",
    "bitcast_convert_type[new_dtype=uint32] u8[12,4]",
    "reduce_precision[exponent_bits=5 mantissa_bits=10] f32[12]",
    "optimization_barrier f32[12] i32[4,4]",
    "transpose[permutation=(2, 0, 1)] f32[12,4,6]",
    "broadcast_in_dim[broadcast_dimensions=(1,) shape=(4, 12)] f32[12]",
    "broadcast_in_dim[broadcast_dimensions=(1, 0) shape=(12, 4)] f32[1,12]",
    "broadcast_in_dim[broadcast_dimensions=() shape=(4, 12)] f32[]",
    "reduce_sum[axes=(0,)] f32[12,4]",
    "reduce_sum[axes=(0, 1)] f64[12,4]",
    "reduce_sum[axes=(1,)] i32[12,4]",
    "reduce_sum[axes=(1,)] c64[12,4]",
    "reduce_max[axes=(0,)] f32[12,4]",
    "reduce_min[axes=(0, 2)] i32[12,4,6]",
    "reduce_prod[axes=(0,)] f64[12,4]",
    "reduce_and[axes=(0,)] bool[12,4]",
    "reduce_or[axes=(0,)] u8[12,4]",
    "reduce_xor[axes=(0,)] i32[12,4]",
    "argmax[axes=(0,) index_dtype=int32] f32[12,4]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] f32[12,4] f32[4,6]",
    "dot_general[dimension_numbers=(([0], [1]), ([], [])) preferred_element_type=None] f64[12,4] f64[4,12]",
    "dot_general[dimension_numbers=(([2], [1]), ([0], [0])) preferred_element_type=None] f32[4,6,12] f32[4,12,2]",
    "dot_general[dimension_numbers=(([1, 2], [0, 1]), ([], [])) preferred_element_type=None] i32[4,6,12] i32[6,12,2]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] c64[12,4] c64[4,6]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] bool[12,4] bool[4,6]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] i8[12,4] i8[4,6]",
    "reshape[new_sizes=(12, 4)] f32[48]",
    "reshape[new_sizes=(4, 12)] f32[12,4]",
    "reshape[new_sizes=(48,)] f32[4,12]",
    "reshape[new_sizes=(2, 2, 1, 12)] f32[4,12]",
    "reshape[new_sizes=(6, 8)] f32[4,12]",
    "squeeze[dimensions=(1,)] f32[12,1,4]",
    "concatenate[dimension=0] f32[12,4] f32[2,4]",
    "split[axis=0 sizes=(4, 8)] f32[12,4]",
    "rev[dimensions=(0,)] f32[12,4]",
    "slice[limit_indices=(9, 4) start_indices=(1, 0) strides=(2, 1)] f32[12,4]",
    "pad[padding_config=((1, 2, 1), (0, 0, 0))] f32[12,4] f32[]",
    "iota[dimension=0 dtype=int32 shape=(12, 4)]",
    "dynamic_slice[slice_sizes=(3, 4)] f32[12,4] i32[] i32[]",
    "dynamic_update_slice f32[12,4] f32[3,4] i32[] i32[]",
    "cumsum[axis=0 reverse=False] f32[12,4]",
    "cumsum[axis=1 reverse=True] i32[4,12]",
    "cumprod[axis=0 reverse=True] f64[12,4]",
    "cummax[axis=0 reverse=False] f32[12,4]",
    "cummin[axis=1 reverse=True] c64[4,12]",
    "cumlogsumexp[axis=0 reverse=False] f32[12,4]",
    "cumlogsumexp[axis=1 reverse=True] c64[4,12]",
    "cumlogsumexp[axis=0 reverse=True] bf16[12]",
    "sort[dimension=0 is_stable=True num_keys=1] f32[12,4] i32[12,4]",
    "sort[dimension=1 is_stable=True num_keys=2] i32[5,12] f32[5,12]",
    "sort[dimension=0 is_stable=True num_keys=1] c64[12]",
    "sort[dimension=0 is_stable=True num_keys=1] f32[1200]",
    "sort[dimension=1 is_stable=True num_keys=1] i32[3,1200] bf16[3,1200]",
    "sort[dimension=0 is_stable=False num_keys=2] bool[1200] i8[1200] f32[1200]",
    "sort[dimension=0 is_stable=True num_keys=1] c64[1200,1]",
    "top_k[axis=1 k=3] f32[4,12]",
    "top_k[axis=0 k=2] i32[24]",
    "top_k[axis=0 k=7] f64[24,2]",
    "approx_top_k[aggregate_to_topk=True is_max_k=False k=2 recall_target=0.95 reduction_dimension=0 reduction_input_size_override=-1] f32[24,3]",
    "argmin[axes=(1,) index_dtype=int8] bf16[3,24]",
    "argmax[axes=(0,) index_dtype=uint32] bool[24]",
    "fft[fft_lengths=(12,) fft_type=0] c64[12,12]",
    "stack[axis=1] f32[12,4] f32[12,4]",
    "unstack[axis=1] f32[12,2]",
    "tile[reps=(2, 1)] f32[4,12]",
    "fft[fft_lengths=(12,) fft_type=0] c64[4,12]",
    "cholesky f64[4,2,2]",
    "eigh[algorithm=None lower=True sort_eigenvalues=True subset_by_index=None] f64[4,3,3]",
    "triangular_solve[conjugate_a=False left_side=True lower=True transpose_a=False unit_diagonal=True] f64[4,3,3] f64[4,3,2]",
    "random_bits[bit_width=32 shape=(4, 6)] key<fry>[12]",
    "random_bits[bit_width=32 shape=(12, 4)] key<fry>[]",
    "random_split[shape=(4,)] key<fry>[]",
    "random_fold_in key<fry>[12] u32[12]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((1, 1),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] f32[4,6,12] f32[12,6,3]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((2, 1),) precision=None preferred_element_type=None rhs_dilation=(2,) window_strides=(1,)] f32[4,6,12] f32[4,6,2]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((0, 1),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(2,)] f32[2,4,12] f32[4,4,3]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((0, 0),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] f32[4,6,12] f32[12,6,1]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(2,) out_sharding=None padding=((1, 2),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] f32[4,6,12] f32[12,6,3]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(3,) out_sharding=None padding=((2, 1),) precision=None preferred_element_type=None rhs_dilation=(2,) window_strides=(2,)] f32[1,3,12] f32[1,3,2]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((1, 1),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] f32[2,3,12] f32[5,3,12]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((0, 1),) precision=None preferred_element_type=None rhs_dilation=(2,) window_strides=(1,)] f32[2,3,24] f32[5,3,12]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((1, 1),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] bool[2,3,12] bool[5,3,12]",
    "gather[dimension_numbers=GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), operand_batching_dims=(), start_indices_batching_dims=()) fill_value=None indices_are_sorted=False mode=GatherScatterMode.CLIP slice_sizes=(1, 4) unique_indices=False] f32[12,4] i32[6,1]",
    "gather[dimension_numbers=GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(1,), start_index_map=(1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,)) fill_value=None indices_are_sorted=False mode=GatherScatterMode.CLIP slice_sizes=(1, 1) unique_indices=False] f32[4,12] i32[4,6,1]",
    "scatter-add[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f32[12,4] i32[6,1] f32[6,4]",
    "scatter-add[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] i32[4,12] i32[12,1] i32[12,12]",
    "scatter-max[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,), operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f32[4,12] i32[4,6,1] f32[4,6]",
    "scatter[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f32[12,4] i32[6,1] f32[6,4]",
    "reduce_window_sum[base_dilation=(1, 1) padding=((0, 0), (1, 1)) window_dilation=(1, 1) window_dimensions=(1, 3) window_strides=(1, 1)] f32[4,12]",
    "reduce_window_sum[base_dilation=(1, 1) padding=((1, 2), (0, 1)) window_dilation=(1, 1) window_dimensions=(4, 2) window_strides=(1, 1)] f32[12,4]",
    "reduce_window_max[base_dilation=(1, 1) padding=((0, 0), (2, 2)) window_dilation=(1, 2) window_dimensions=(2, 3) window_strides=(2, 1)] f32[12,4]",
    "reduce_window_min[base_dilation=(1, 2) padding=((3, -3), (0, 1)) window_dilation=(1, 1) window_dimensions=(1, 2) window_strides=(1, 1)] i32[12,4]",
    "reduce_window_sum[base_dilation=(3, 1) padding=((2, 2), (0, 0)) window_dilation=(1, 1) window_dimensions=(3, 1) window_strides=(1, 1)] f32[12,4]",
    "reduce_window_sum[base_dilation=(2, 1) padding=((1, 2), (0, 0)) window_dilation=(2, 1) window_dimensions=(2, 2) window_strides=(3, 2)] i32[12,4]",
    "reduce_window_max[base_dilation=(2,) padding=((3, -1),) window_dilation=(1,) window_dimensions=(3,) window_strides=(2,)] f32[12]",
    "select_and_gather_add[base_dilation=(1, 1) padding=((0, 0), (0, 0)) select_prim=ge window_dilation=(1, 1) window_dimensions=(2, 1) window_strides=(2, 1)] f32[24,4] f32[24,4]",
    "select_and_gather_add[base_dilation=(1, 1) padding=((1, 1), (0, 0)) select_prim=le window_dilation=(1, 1) window_dimensions=(3, 2) window_strides=(1, 2)] f32[12,4] f32[12,4]",
    "select_and_scatter_add[padding=((0, 0), (0, 0)) select_prim=ge window_dimensions=(2, 2) window_strides=(3, 2)] f32[4,6] f32[12,12]",
    "select_and_scatter_add[padding=((1, 1), (0, 0)) select_prim=ge window_dimensions=(3, 1) window_strides=(1, 1)] f32[12,4] f32[12,4]",
    "reduce[dimensions=(1,) jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = max a b in (c,) }] f32[12,4] f32[]",
    "rng_bit_generator[algorithm=RandomAlgorithm.RNG_THREE_FRY dtype=uint32 shape=(12, 4)] u32[4]",
    "igamma f32[12] f32[12]",
    "sharding_constraint[mesh=((x, 2),) spec=((x,), ()) unconstrained_dims=()] f32[12,4]",
];

#[test]
fn primitives_on_parts() {
    let only = std::env::var("FERRAX_ONLY").unwrap_or_default();
    let chosen: Vec<&&str> = LINES.iter().filter(|l| l.contains(&only)).collect();
    let failed: Vec<String> = chosen
        .iter()
        .filter_map(|l| {
            let one = || holds(l, &application(l), 6);
            let text = |e: Box<dyn std::any::Any + Send>| e.downcast::<String>().map_or(String::from("?"), |s| *s);
            std::panic::catch_unwind(one).err().map(text)
        })
        .collect();
    assert!(failed.is_empty(), "{} of {}\n{}", failed.len(), chosen.len(), failed.join("\n\n"));
}

/// A random program over arrays of a few sizes, which most meshes divide: each equation takes what there is, and what no equation takes is returned.
fn random_program(seed: u64) -> Program {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let mut b = Builder::default();
    let sizes = [2, 4, 6, 12];
    let mut there: Vec<(u32, Aval)> = vec![];
    for _ in 0..2 + rng.below(2) {
        let shape: Vec<usize> = (0..1 + rng.below(3)).map(|_| sizes[rng.below(4)]).collect();
        let a = Aval::new(if rng.below(3) == 0 { Dtype::I32 } else { Dtype::F64 }, &shape);
        there.push((b.new_in(a.clone()), a));
    }
    let mut read = vec![0; 64];
    let (mut made, mut tries) = (0, 0);
    while made < 4 + (seed % 8) as usize && tries < 200 {
        tries += 1;
        let (v, a) = there[rng.below(there.len())].clone();
        let Some((line, args)) = equation(&mut rng, v, &a, &there) else { continue };
        let types: Vec<String> =
            args.iter().map(|v| there.iter().find(|t| t.0 == *v).expect("it is there").1.to_string()).collect();
        let Ok((op, avals)) = parse_application(&format!("{line} {}", types.join(" "))) else {
            panic!("{line} {types:?}")
        };
        let Ok(outs) = op.results(&avals) else { continue };
        if outs.iter().any(|a| a.shape.size() > 2000 || a.rank() > 4) {
            continue;
        }
        args.iter().for_each(|v| read[*v as usize] += 1);
        let first = b.push(&op, args.iter().map(|v| Atom::Var(*v)).collect(), &outs, 0);
        there.extend(outs.iter().enumerate().map(|(k, a)| (first + k as u32, a.clone())));
        read.resize(read.len() + outs.len(), 0);
        made += 1;
    }
    let outs: Vec<Atom> =
        there.iter().filter(|(v, _)| read[*v as usize] == 0 || rng.below(4) == 0).map(|(v, _)| Atom::Var(*v)).collect();
    b.close(outs).0
}
/// One equation that takes `v`: its text without types, and its operands.
fn equation(rng: &mut Rng, v: u32, a: &Aval, there: &[(u32, Aval)]) -> Option<(String, Vec<u32>)> {
    let rank = a.rank();
    let list = |v: &[usize]| {
        let items: Vec<String> = v.iter().map(|i| i.to_string()).collect();
        format!("({}{})", items.join(", "), if v.len() == 1 { "," } else { "" })
    };
    let alike: Vec<u32> = there.iter().filter(|t| t.1.same(a)).map(|t| t.0).collect();
    let other = alike[rng.below(alike.len())];
    let float = a.dtype.is_float();
    if rank == 0 {
        return Some(("broadcast_in_dim[broadcast_dimensions=() shape=(4, 6)]".into(), vec![v]));
    }
    let d = rng.below(rank);
    let n = a.shape[d];
    let mut sizes = a.shape.to_vec();
    Some(match rng.below(23) {
        0 => ("neg".into(), vec![v]),
        1 => ("add".into(), vec![v, other]),
        2 => ("mul".into(), vec![v, other]),
        3 => ("max".into(), vec![v, other]),
        4 => {
            let kind = ["reduce_sum", "reduce_max", "reduce_min", "reduce_sum"][rng.below(4)];
            (format!("{kind}[axes={}]", list(&[d])), vec![v])
        }
        5 => {
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.swap(d, 0);
            (format!("transpose[permutation={}]", list(&perm)), vec![v])
        }
        6 if rank > 1 => {
            let e = rng.below(rank - 1);
            sizes[e] *= sizes[e + 1];
            sizes.remove(e + 1);
            (format!("reshape[new_sizes={}]", list(&sizes)), vec![v])
        }
        7 if n.is_multiple_of(2) && n > 2 => {
            sizes[d] = if rng.below(2) == 0 { 2 } else { n / 2 };
            sizes.insert(d + 1, n / sizes[d]);
            (format!("reshape[new_sizes={}]", list(&sizes)), vec![v])
        }
        8 | 9 => {
            let fits: Vec<(u32, usize, usize)> = there
                .iter()
                .filter(|t| t.1.dtype == a.dtype)
                .flat_map(|t| {
                    (0..t.1.rank()).filter(|e| t.1.shape[*e] == n).map(|e| (t.0, e, t.1.rank())).collect::<Vec<_>>()
                })
                .collect();
            let (w, e, _) = fits[rng.below(fits.len())];
            (
                format!("dot_general[dimension_numbers=(([{d}], [{e}]), ([], [])) preferred_element_type=None]"),
                vec![v, w],
            )
        }
        10 => (format!("concatenate[dimension={d}]"), vec![v, other]),
        11 => {
            let mut start = vec![0; rank];
            start[d] = 1;
            (format!("slice[limit_indices={} start_indices={} strides=None]", list(&sizes), list(&start)), vec![v])
        }
        12 => {
            let kind = ["cumsum", "cummax", "cumlogsumexp"][rng.below(if float { 3 } else { 2 })];
            (format!("{kind}[axis={d} reverse=False]"), vec![v])
        }
        13 if rng.below(2) == 0 => (format!("sort[dimension={d} is_stable=True num_keys=1]"), vec![v, other]),
        13 => (format!("sort[dimension={d} is_stable=True num_keys=1]"), vec![v]),
        14 => (format!("rev[dimensions={}]", list(&[d])), vec![v]),
        15 => {
            sizes.insert(d, 4);
            let at: Vec<usize> = (0..rank + 1).filter(|k| *k != d).collect();
            (format!("broadcast_in_dim[broadcast_dimensions={} shape={}]", list(&at), list(&sizes)), vec![v])
        }
        16 if rng.below(2) == 0 && n > 1 => (format!("top_k[axis={d} k=2]"), vec![v]),
        16 => (format!("argmax[axes={} index_dtype=int32]", list(&[d])), vec![v]),
        17 if float => ("convert_element_type[new_dtype=int32 weak_type=False]".into(), vec![v]),
        18 => {
            let pads: Vec<String> =
                (0..rank).map(|k| if k == d { "(1, 1, 0)".into() } else { "(0, 0, 0)".into() }).collect();
            let zero = there.iter().find(|t| t.1.rank() == 0 && t.1.dtype == a.dtype)?.0;
            (format!("pad[padding_config=({}{})]", pads.join(", "), if rank == 1 { "," } else { "" }), vec![v, zero])
        }
        20 if n.is_multiple_of(2) => (format!("split[axis={d} sizes={}]", list(&[n / 2, n / 2])), vec![v]),
        21 if n.is_multiple_of(2) => {
            let (start, mut strides) = (vec![0; rank], vec![1; rank]);
            strides[d] = 2;
            let (limits, start, strides) = (list(&sizes), list(&start), list(&strides));
            (format!("slice[limit_indices={limits} start_indices={start} strides={strides}]"), vec![v])
        }
        22 => {
            let (ones, mut size) = (vec![1; rank], vec![1; rank]);
            size[d] = 3;
            let pads: Vec<&str> = (0..rank).map(|k| if k == d { "(1, 1)" } else { "(0, 0)" }).collect();
            let padding = format!("({}{})", pads.join(", "), if rank == 1 { "," } else { "" });
            let kind = ["sum", "max"][rng.below(2)];
            let (ones, size) = (list(&ones), list(&size));
            (
                format!(
                    "reduce_window_{kind}[base_dilation={ones} padding={padding} window_dilation={ones} window_dimensions={size} window_strides={ones}]"
                ),
                vec![v],
            )
        }
        19 if rank == 1 => {
            let body = format!(
                "{{ lambda ; c:{t}[{n}] x:{t}[{n}]. let d:{t}[{n}] = add c x; e:{t}[] = reduce_max[axes=(0,)] d in (d, e) }}",
                t = a.dtype
            );
            let xs = there.iter().find(|t| t.1.rank() == 2 && t.1.shape[1] == n && t.1.dtype == a.dtype)?;
            (
                format!("scan[jaxpr={body} num_carry=1 num_consts=0 length={} reverse=False unroll=1]", xs.1.shape[0]),
                vec![v, xs.0],
            )
        }
        _ => return None,
    })
}
/// `SEEDS=0..10000` draws others.
#[test]
fn random_programs_on_parts() {
    let seeds = std::env::var("SEEDS").unwrap_or("0..150".into());
    let (from, to) = seeds.split_once("..").expect("SEEDS=from..to");
    for seed in from.parse::<u64>().expect("a number")..to.parse::<u64>().expect("a number") {
        holds(&format!("seed {seed}"), &random_program(seed), 2);
    }
}

const PROGRAMS: &[&str] = &[
    // a layer, its loss and a gradient step
    "{ lambda ; x:f32[12,4] w:f32[4,6] b:f32[6]. let h:f32[12,6] = dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] x w; c:f32[12,6] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(12, 6)] b; d:f32[12,6] = add h c; e:f32[12,6] = tanh d; f:f32[] = reduce_sum[axes=(0, 1)] e; g:f32[4,6] = dot_general[dimension_numbers=(([0], [0]), ([], [])) preferred_element_type=None] x e; i:f32[4,6] = mul g 0.5:f32[]; j:f32[4,6] = sub w i in (f, j, e) }",
    // softmax over rows
    "{ lambda ; x:f32[12,8]. let m:f32[12] = reduce_max[axes=(1,)] x; n:f32[12,1] = reshape[new_sizes=(12, 1)] m; s:f32[12,8] = sub x n; e:f32[12,8] = exp s; t:f32[12] = reduce_sum[axes=(1,)] e; u:f32[12,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(12, 1)] t; y:f32[12,8] = div e u in (y,) }",
    // the gradient of sums over windows
    "{ lambda ; x:f32[12,4]. let y:f32[35,4] = pad[padding_config=((2, -1, 2), (0, 0, 0))] x 0.0:f32[]; z:f32[33,4] = reduce_window_sum[base_dilation=(1, 1) padding=((0, 0), (0, 0)) window_dilation=(1, 1) window_dimensions=(3, 1) window_strides=(1, 1)] y; u:f32[36,4] = pad[padding_config=((2, 0, 2), (0, 0, 0))] x 0.0:f32[]; v:f32[12,4] = reduce_window_sum[base_dilation=(1, 1) padding=((0, 0), (0, 0)) window_dilation=(1, 1) window_dimensions=(3, 1) window_strides=(3, 1)] u in (z, v) }",
    // iota meets what is cut
    "{ lambda ; x:i32[12,4]. let i:i32[12,4] = iota[dimension=0 dtype=int32 shape=(12, 4) sharding=None]; y:i32[12,4] = mul x i; z:i32[12] = reduce_sum[axes=(1,)] y in (y, z, i) }",
    // calls, checkpoints and custom rules
    "{ lambda ; a:f64[12] b:f64[12]. let c:f64[12] = jit[name=f jaxpr={ lambda ; a:f64[12] b:f64[12]. let c:f64[12] = mul a b; d:f64[] = reduce_sum[axes=(0,)] c; e:f64[12] = add c d in (e,) }] a b; d:f64[12] = remat2[jaxpr={ lambda ; a:f64[12]. let c:f64[12] = sin a; d:f64[12] = cumsum[axis=0 reverse=False] c in (d,) } prevent_cse=True differentiated=False policy=None] c; e:f64[12] = custom_jvp_call[name=f call_jaxpr={ lambda ; a:f64[12]. let b:f64[12] = sin a in (b,) } jvp={ lambda ; a:f64[12] t:f64[12]. let b:f64[12] = sin a; c:f64[12] = cos a; d:f64[12] = mul c t in (b, d) } symbolic_zeros=False] d in (c, d, e) }",
    // loops and branches
    "{ lambda ; w:f64[4] c:f64[12,4] x:f64[6,12]. let d:f64[12,4] e:f64[6,12] = scan[jaxpr={ lambda ; w:f64[4] c:f64[12,4] x:f64[12]. let s:f64[] = reduce_sum[axes=(0,)] x; u:f64[12,4] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(12, 4)] w; d:f64[12,4] = mul c u; e:f64[12,4] = add d s; f:f64[12,4] = sin e; g:f64[12] = reduce_sum[axes=(1,)] f; h:f64[12] = mul g x in (f, h) } num_carry=1 num_consts=1 length=6 reverse=False unroll=1] w c x in (d, e) }",
    "{ lambda ; z:f64[12] w:f64[12]. let a:f64[12] = broadcast_in_dim[broadcast_dimensions=() shape=(12,)] 0.0:f64[]; b:f64[12] i:i32[] = while[body_jaxpr={ lambda ; w:f64[12] a:f64[12] i:i32[]. let b:f64[12] = add a w; c:f64[12] = rev[dimensions=(0,)] b; j:i32[] = add i 1:i32[] in (c, j) } body_nconsts=1 cond_jaxpr={ lambda ; a:f64[12] i:i32[]. let s:f64[] = reduce_max[axes=(0,)] a; p:bool[] = lt s 9.0:f64[]; q:bool[] = lt i 7:i32[]; r:bool[] = and p q in (r,) } cond_nconsts=0] w a 0:i32[] in (b, i) }",
    "{ lambda ; i:i32[] a:f64[12,4] b:f64[4,12]. let c:f64[12,4] d:f64[] = cond[branches=({ lambda ; a:f64[12,4] b:f64[4,12]. let c:f64[] = reduce_sum[axes=(0, 1)] a in (a, c) } { lambda ; a:f64[12,4] b:f64[4,12]. let c:f64[12,4] = transpose[permutation=(1, 0)] b in (c, 1.0:f64[]) })] i a b in (c, d) }",
    // carries that change places
    "{ lambda ; a:f64[12] b:f64[12]. let c:f64[12] d:f64[12] = scan[jaxpr={ lambda ; a:f64[12] b:f64[12]. let c:f64[12] = add a b in (b, c) } num_carry=2 num_consts=0 length=5 reverse=False unroll=1] a b in (c, d) }",
];
#[test]
fn programs_on_parts() {
    for text in PROGRAMS {
        holds(text, &parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}")), 8);
    }
}
#[test]
fn constraints_and_wishes_are_obeyed() {
    let grid = Grid::new([("x".into(), 2), ("y".into(), 2)]);
    let p = parse("{ lambda ; a:f32[4,4]. let b:f32[4,4] = sharding_constraint[mesh=((x, 2) (y, 2)) spec=((), (y,)) unconstrained_dims=(0,)] a; c:f32[4,4] = sin b in (c,) }").unwrap();
    let rows = Spec::new([CutAxes::from_slice(&[0]), CutAxes::new()]);
    let q = partition(&p, &grid, &[rows], &[None]).unwrap();
    assert_eq!(q.outs[0].text(&grid), "PartitionSpec('x', 'y')");
    assert_eq!(q.program.in_avals()[0].shape, Dims::new(&[2, 4]));
    // each line: operands, their cuts, what the result is cut as
    let spec_of = |line: &str, cuts: &[&[&[u8]]]| {
        let p = application(line);
        let spec = |c: &&[&[u8]]| Spec::new(c.iter().map(|c| CutAxes::from_slice(c)));
        let q = partition(&p, &grid, &cuts.iter().map(spec).collect::<Vec<_>>(), &[None]).unwrap();
        q.outs[0].text(&grid)
    };
    let add = "add f32[4,4] f32[4,4]";
    assert_eq!(spec_of(add, &[&[&[0], &[]], &[&[1], &[]]]), "PartitionSpec(None, None)");
    assert_eq!(spec_of(add, &[&[&[], &[1]], &[&[1], &[]]]), "PartitionSpec(None, 'y')");
    assert_eq!(spec_of(add, &[&[&[0, 1], &[]], &[&[0], &[1]]]), "PartitionSpec(('x', 'y'), None)");
    assert_eq!(spec_of(add, &[&[&[0], &[]], &[&[], &[1]]]), "PartitionSpec('x', 'y')");
    let dot = "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=None] f32[4,4] f32[4,4]";
    assert_eq!(spec_of(dot, &[&[&[0], &[1]], &[&[], &[1]]]), "PartitionSpec('x', 'y')");
    assert_eq!(spec_of("cumsum[axis=0 reverse=False] f32[4,4]", &[&[&[0], &[1]]]), "PartitionSpec('x', 'y')");
    assert_eq!(
        spec_of("pad[padding_config=((1, 0, 0), (1, 1, 0))] f32[4,4] f32[]", &[&[&[0], &[1]], &[]]),
        "PartitionSpec(None, 'y')"
    );
    let elsewhere = Grid::new([("z".into(), 2)]);
    assert!(partition(&p, &elsewhere, &[Spec::whole(2)], &[None]).is_err());
}
#[test]
fn bodies_for_parts_stand_in_the_program_of_a_device() {
    let grid = Grid::new([("x".into(), 2), ("y".into(), 2)]);
    let p = parse("{ lambda ; a:f32[4,4]. let b:f32[4,4] = shard_map[check_vma=False in_specs=(((x,), ()),) jaxpr={ lambda ; a:f32[2,4]. let b:f32[2,4] = sin a in (b,) } manual_axes=(x,) mesh=((x, 2) (y, 2)) out_specs=(((x,), ()),)] a in (b,) }").unwrap();
    let both = Spec::new([CutAxes::from_slice(&[0]), CutAxes::from_slice(&[1])]);
    let q = partition(&p, &grid, &[both], &[None]).unwrap();
    // along y, which the body does not name, it is partitioned as any program
    assert_eq!(q.outs[0].text(&grid), "PartitionSpec('x', 'y')");
    assert_eq!(q.program.in_avals()[0].shape, Dims::new(&[2, 2]));
    assert_eq!(q.program.eqns().iter().map(|e| e.op.name()).collect::<Vec<_>>(), ["sin"]);
    let elsewhere = Grid::new([("x".into(), 4)]);
    assert!(partition(&p, &elsewhere, &[Spec::whole(2)], &[None]).is_err());
}
