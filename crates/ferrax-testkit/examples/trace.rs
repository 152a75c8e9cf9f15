//! Nanoseconds and allocations per primitive, by what handles it, with an executor that computes nothing. Least of 31 runs.
use ferrax_ir::ops::pointwise::Pw;
use ferrax_testkit::api::*;
use ferrax_testkit::null;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

struct Counting;
static ALLOCS: AtomicUsize = AtomicUsize::new(0);
// SAFETY: passes every call on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        ALLOCS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(p, l) }
    }
}
#[global_allocator]
static COUNTING: Counting = Counting;

fn row(name: &str, per: usize, mut f: impl FnMut()) {
    f();
    let a = ALLOCS.load(Ordering::Relaxed);
    f();
    let allocs = (ALLOCS.load(Ordering::Relaxed) - a) as f64 / per as f64;
    let mut t: Vec<f64> = (0..31)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_nanos() as f64 / per as f64
        })
        .collect();
    t.sort_by(f64::total_cmp);
    println!("{name:<64} {:>7.0} ns {allocs:>6.1} allocations", t[0]);
}
const N: usize = 1000;
fn chain_mul(x: &Value) -> Value {
    (0..N).fold(x.clone(), |y, _| &y * x)
}
fn chain_sin(x: &Value) -> Value {
    (0..N).fold(x.clone(), |y, _| sin(&y))
}
fn four(x: &Value) -> Res<Value> {
    Ok(&sin(&(x * 2.0)) * &exp(x))
}

fn main() {
    println!(
        "Value {} Aval {} Op {} Eqn {} bytes",
        size_of::<Value>(),
        size_of::<Aval>(),
        size_of::<Op>(),
        size_of::<ferrax_ir::program::Eqn>()
    );
    ferrax_transform::install(|| ferrax_transform::trace::Trace::eval(Rc::new(null::Null)));
    let (x, v) = (null::array(f64s(&[])), null::array(f64s(&[10])));
    let args = [x.clone(), x.clone()];
    row("eager mul f64[] through bind", N, || drop(black_box(chain_mul(&x))));
    row("eager mul f64[10] through bind", N, || drop(black_box(chain_mul(&v))));
    row("eager sin f64[] through bind", N, || drop(black_box(chain_sin(&x))));
    row("stage mul (trace, close, drop)", N, || {
        drop(black_box(make_program(&|a| Ok(vec![chain_mul(&a[0])]), &[f64s(&[])])))
    });
    row("stage sin (trace, close, drop)", N, || {
        drop(black_box(make_program(&|a| Ok(vec![chain_sin(&a[0])]), &[f64s(&[])])))
    });
    row("eager jvp of sin (sin, cos, mul)", N, || drop(black_box(jvp1(&|x| Ok(chain_sin(x)), &x, &x))));
    row("eager jvp of mul by a dual (mul, 2 mul, add)", N, || drop(black_box(jvp1(&|x| Ok(chain_mul(x)), &x, &x))));
    row("eager linearize of sin (sin, cos; records mul)", N, || {
        drop(black_box(linearize(&|a| Ok(vec![chain_sin(&a[0])]), std::slice::from_ref(&x))))
    });
    if let Ok((_, lin)) = linearize(&|a| Ok(vec![chain_sin(&a[0])]), std::slice::from_ref(&x)) {
        row("eager transpose of the recorded mul", N, || drop(black_box(lin.transpose(&[Some(k(1.0))]))));
    }
    row("eager grad of sin, whole, per primitive", N, || drop(black_box(grad1(&|x| Ok(chain_sin(x)), &x))));
    row("eager grad of mul by a dual, whole, per primitive", N, || drop(black_box(grad1(&|x| Ok(chain_mul(x)), &x))));
    row("eager vmap of sin over 10 lanes, per primitive", N, || {
        drop(black_box(vmap1(&|x| Ok(chain_sin(x)), &v, 0, 0)))
    });
    row("staged grad of sin, whole, per primitive", N, || {
        drop(black_box(make_program(&|a| Ok(vec![grad1(&|x| Ok(chain_sin(x)), &a[0])?]), &[f64s(&[])])))
    });
    let mut fresh = 0.0;
    row("  the same, of a jitted function (stage, jvp, split, transpose)", N, || {
        fresh += 1.0; // a literal of its own, so nothing is remembered
        let c = fresh;
        let f = jit(move |a: &[Value]| Ok(vec![chain_sin(&(&a[0] * c))]));
        drop(black_box(make_program(
            &|a| Ok(vec![grad1(&|x| Ok(f(std::slice::from_ref(x))?.remove(0)), &a[0])?]),
            &[f64s(&[])],
        )))
    });
    row("eager grad of a four-op scalar function", N, || (0..N).for_each(|_| drop(black_box(grad1(&four, &x)))));
    let j = jit(|a: &[Value]| Ok(vec![&a[0] + &a[1]]));
    row("cached jit(x + y), whole call", N, || (0..N).for_each(|_| drop(black_box(j(&args)))));
    row("first call of jit(x + 1): trace", 100, || {
        (0..100).for_each(|_| drop(black_box(jit(|a: &[Value]| Ok(vec![&a[0] + 1.0]))(&args[..1]))))
    });
    let rnn = |x: &Value| Ok(sum(&scan(&|a| Ok(vec![tanh(&(&a[0] * x))]), &[x.clone()], &[], 10, false)?[0]));
    row("eager grad(scan of 10 steps), body traced anew", 20, || {
        (0..20).for_each(|_| drop(black_box(grad1(&rnn, &x))))
    });
    let op: Op = Pw::Mul.into();
    row("clone and drop of an op", N, || (0..N).for_each(|_| drop(black_box(op.clone()))));
    for n in [1_000usize, 10_000, 100_000] {
        let long = |x: &Value| Ok((0..n).fold(x.clone(), |y, _| sin(&y)));
        let t = Instant::now();
        match make_program(&|a| Ok(vec![grad1(&long, &a[0])?]), &[f64s(&[])]) {
            Ok((p, _)) => println!("staged grad of {n} sines: {:?}, {} equations", t.elapsed(), p.eqns().len()),
            Err(e) => println!("{e}"),
        }
    }
}
