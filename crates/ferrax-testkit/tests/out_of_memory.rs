//! Every routine and every kind of kernel, loop and collective, with the first large allocation failing, then the second, and so on until
//! nothing fails any more: each time there is an error that names the bytes, what was taken is given back, and the next run is right.
//!
//! "Large" is what grows with data: [`LARGE`] bytes and more. What a run takes beside that (lists of operands, odometers) is a matter of rank.
use ferrax_cpu::{CpuBackend, set_num_threads};
use ferrax_ir::lower::lower;
use ferrax_kernel::backend::{Backend, RunArg};
use ferrax_kernel::{Error, Res, RunCx, VerifiedPlan};
use ferrax_testkit::api::{self, Aval, Dtype, Value, k};
use ferrax_testkit::examples::{Example, values};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

const LARGE: usize = 4096;
/// How many large allocations succeed before one fails; negative: none fails any more.
static BEFORE: AtomicIsize = AtomicIsize::new(-1);
/// Bytes of large allocations that were not given back.
static HELD: AtomicIsize = AtomicIsize::new(0);

struct Failing;
// SAFETY: the system's allocator, or no memory at all.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        if l.size() >= LARGE {
            if BEFORE.load(Relaxed) >= 0 && BEFORE.fetch_sub(1, Relaxed) == 0 {
                return std::ptr::null_mut();
            }
            HELD.fetch_add(l.size() as isize, Relaxed);
        }
        // SAFETY: by the contract.
        unsafe { System.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        if l.size() >= LARGE {
            HELD.fetch_sub(l.size() as isize, Relaxed);
        }
        // SAFETY: by the contract.
        unsafe { System.dealloc(p, l) }
    }
}
#[global_allocator]
static ALLOCATOR: Failing = Failing;
/// There is one allocator: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `f` again and again with one more allocation succeeding each time, until all do; gives how often that was.
fn until_all_succeed<T>(f: impl Fn() -> Result<T, String>, right: impl Fn(&T) -> bool, what: &str) -> usize {
    for n in 0.. {
        BEFORE.store(n, Relaxed);
        let got = f();
        let failed = BEFORE.swap(-1, Relaxed) < 0;
        match got {
            Ok(x) => assert!(right(&x), "{what}: wrong after allocation {n} failed"),
            Err(e) => {
                assert!(failed, "{what}: {e}, though no allocation failed");
                assert!(e.contains("out of memory") && e.contains(|c: char| c.is_ascii_digit()), "{what}, {n}: {e}");
            }
        }
        // the next run finds nothing amiss
        assert!(f().is_ok_and(|x| right(&x)), "{what}: wrong in the run after allocation {n} failed");
        if !failed {
            return n as usize;
        }
    }
    unreachable!()
}

/// A program whose operands are large.
struct Case {
    name: String,
    plan: VerifiedPlan,
    ins: Vec<Vec<u8>>,
}
impl Case {
    fn of(name: &str, f: api::F, avals: &[Aval], ins: Vec<Value>) -> Case {
        let (p, consts) = api::make_program(f, avals).unwrap_or_else(|e| panic!("{name}: {e}"));
        let bytes = |v: &Value| match v {
            Value::Array(a) => ferrax::array::bytes(a).expect("elements"),
            v => panic!("{name}: {v:?}"),
        };
        let ins = consts.iter().chain(&ins).map(bytes).collect();
        let plan = lower(&p).and_then(|p| Ok(p.verify()?)).unwrap_or_else(|e| panic!("{name}: {e}"));
        Case { name: name.into(), plan, ins }
    }
    fn example(text: &str) -> Case {
        let e = Example::parse(text);
        Case::of(text, &|x| e.call(x), &e.avals(), e.values(&e.avals(), 1))
    }
    /// From the operands' bytes to the results', on a thread whose pools are empty.
    fn run(&self, armed: impl FnOnce() + Send) -> Res<Vec<Vec<u8>>> {
        let on_a_thread = || {
            let cpu = CpuBackend::new();
            let exe = cpu.compile(self.plan.clone())?;
            armed();
            let args =
                self.ins.iter().map(|b| Ok(RunArg { buffer: cpu.upload(b)?, donated: false })).collect::<Res<_>>()?;
            let out = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args)?;
            out.iter().map(|b| cpu.download(b)).collect()
        };
        std::thread::scope(|s| s.spawn(on_a_thread).join().expect("no panic"))
    }
}

const TEXTS: &[&str] = &[
    // kernels: a map, with guards; rows, columns, everything, positions
    "tanh f32[30000]",
    "pad[padding_config=((3, 5, 1),)] f32[20000] f32[]",
    "reduce_sum[axes=(1,)] f32[300,100]",
    "reduce_max[axes=(0,)] f64[200,300]",
    "reduce_sum[axes=(0,)] f32[200000]",
    "argmax[axes=(0,) index_dtype=int32] f32[200000]",
    "reduce_prod[axes=(0,)] bf16[60,900]",
    // routines
    "cumsum[axis=0 reverse=False] f32[20000]",
    "cummax[axis=0 reverse=True] f32[100,300]",
    "cumlogsumexp[axis=1 reverse=False] f64[100,90]",
    "sort[dimension=0 is_stable=True num_keys=1] f32[20000]",
    "sort[dimension=0 is_stable=True num_keys=1] f32[20000] i32[20000]",
    "sort[dimension=1 is_stable=True num_keys=1] f64[3,5000]",
    "sort[dimension=0 is_stable=True num_keys=2] i32[9000] f32[9000] i32[9000]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32] f32[90,70] f32[70,80]",
    "dot_general[dimension_numbers=(([2], [1]), ([0], [0])) preferred_element_type=float32] bf16[2,70,60] bf16[2,60,90]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=int32] i8[90,70] i8[70,80]",
    "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float64] f64[300,90] f64[90]",
    "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) out_sharding=None padding=((2, 2),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)] f32[2,20,200] f32[30,20,5]",
    "gather[dimension_numbers=GatherDimensionNumbers(offset_dims=(1,) collapsed_slice_dims=(0,) start_index_map=(0,) operand_batching_dims=() start_indices_batching_dims=()) fill_value=None indices_are_sorted=False mode=GatherScatterMode.CLIP slice_sizes=(1, 40) unique_indices=False] f32[50,40] i32[500,1]",
    "scatter-add[dimension_numbers=ScatterDimensionNumbers(update_window_dims=() inserted_window_dims=(0,) scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f32[5000] i32[6000,1] f32[6000]",
    "scatter[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(0,) inserted_window_dims=() scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f32[5000] i32[600,1] f32[7,600]",
    "dynamic_slice[slice_sizes=(100, 90)] f32[200,100] i32[] i32[]",
    "dynamic_update_slice f32[200,100] f32[100,90] i32[] i32[]",
    // loops and branches
    "scan[jaxpr={ lambda ; c:f32[3000] x:f32[3000]. let d:f32[3000] = add c x; e:f32[3000] = sin d in (d, e) } num_carry=1 num_consts=0 length=9 reverse=True unroll=1] f32[3000] f32[9,3000]",
    "while[body_jaxpr={ lambda ; a:f32[3000] i:i32[]. let b:f32[3000] = sin a; j:i32[] = sub i 1:i32[] in (b, j) } body_nconsts=0 cond_jaxpr={ lambda ; a:f32[3000] i:i32[]. let p:bool[] = gt i 0:i32[] in (p,) } cond_nconsts=0] f32[3000] i32[] where _, 4..5",
    "cond[branches=({ lambda ; a:f32[3000]. let b:f32[3000] = sin a in (b,) } { lambda ; a:f32[3000]. let b:f32[3000] = sort[dimension=0 is_stable=True num_keys=1] a in (b,) })] i32[] f32[3000] where 1..2",
    // compositions with arrays between their steps
    "top_k[axis=1 k=50] f32[20,400]",
    "threefry2x32 u32[5000] u32[5000] u32[5000] u32[5000]",
];

/// The gradient of a loop whose length is known only at run time, and of one within it: tapes, and
/// tapes of tapes.
fn tapes(nested: bool) -> Case {
    let wide = Aval::new(Dtype::F64, &[700]);
    let counted = |step: api::F, x: &Value, n: f64| -> api::Res<Value> {
        let more = |c: &[Value]| Ok(vec![api::lt(&c[1], &k(n))]);
        let next = |c: &[Value]| Ok(vec![step(&c[..1])?.remove(0), &c[1] + &k(1.0)]);
        Ok(api::while_loop(&more, &next, &[x.clone(), k(0.0)])?.remove(0))
    };
    let sine = |x: &[Value]| Ok(vec![api::sin(&x[0])]);
    let inner = |x: &[Value]| Ok(vec![counted(&sine, &x[0], 3.0)?]);
    let step: api::F = if nested { &inner } else { &sine };
    let f = |x: &[Value]| Ok(vec![api::sum(&counted(step, &x[0], 11.0)?)]);
    let gradient = |x: &[Value]| Ok(api::value_and_grads(&f, x)?.1);
    Case::of(if nested { "tapes of tapes" } else { "a tape" }, &gradient, &[wide.clone()], vec![values(&wide, None, 1)])
}

fn cases() -> Vec<Case> {
    TEXTS.iter().map(|t| Case::example(t)).chain([tapes(false), tapes(true)]).collect()
}

#[test]
fn each_allocation_may_fail() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for threads in [1, 3] {
        set_num_threads(threads);
        for c in cases() {
            let want = c.run(|| ()).unwrap_or_else(|e| panic!("{}: {e}", c.name));
            let attempt = || {
                let before = (BEFORE.swap(-1, Relaxed), HELD.load(Relaxed));
                let got = c.run(|| BEFORE.store(before.0, Relaxed)).map_err(|e| match e {
                    Error::OutOfMemory(m) => m,
                    e => panic!("{}: another error: {e}", c.name),
                });
                let results: isize = got.iter().flatten().map(Vec::len).filter(|n| *n >= LARGE).sum::<usize>() as isize;
                let kept = HELD.load(Relaxed) - before.1 - results;
                // the pool's threads keep their working memory; the one that ran alone is gone with all it had
                assert!(threads > 1 || kept == 0, "{}: {kept} bytes were not given back", c.name);
                got
            };
            let n = until_all_succeed(attempt, |got| *got == want, &c.name);
            let large = |x: &[Vec<u8>]| x.iter().filter(|b| b.len() >= LARGE).count();
            let least = large(&c.ins) + 2 * large(&want);
            assert!(n >= least, "{}: {n} large allocations, fewer than operands and results: {least}", c.name);
        }
    }
    set_num_threads(0);
}

/// Members of a mesh that communicate: if one has no memory for its operand, all get the error.
#[test]
fn whoever_meets_is_told() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    api::init();
    for body in [
        "let b:f64[2000] = psum[axes=(i,)] a",
        "let b:f64[3,2000] = all_gather[all_gather_dimension=0 axis_name=(i,) axis_size=3 tiled=False] a",
        "let b:f64[2000] = ppermute[axis_name=(i,) perm=((0, 1) (1, 2) (2, 0))] a",
    ] {
        let text = format!(
            "xla_pmap[axis_name=i axis_size=3 call_jaxpr={{ lambda ; a:f64[2000]. {body} in (b,) }} mapped=(True,) name=f] f64[3,2000]"
        );
        let e = Example::parse(&text);
        let x = e.values(&e.avals(), 1);
        let run = || {
            let y = e.call(&x).map_err(|e| e.to_string())?;
            let Value::Array(a) = &y[0] else { return Err("no array".into()) };
            ferrax::array::bytes(a).map_err(|e| e.to_string())
        };
        let want = run().unwrap();
        until_all_succeed(run, |got| *got == want, &text);
    }
}

/// The layers between the API and a device.
#[test]
fn arrays_go_in_and_out() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    api::init();
    let x: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let through = || {
        let t = ferrax::Tensor::new(&x, &[50, 100]).map_err(|e| e.to_string())?;
        t.to_vec::<f32>().map_err(|e| e.to_string())
    };
    assert!(until_all_succeed(through, |y| *y == x, "a tensor") >= 3);
}
