//! Tracing, programs, compiling.
use super::*;
use std::cell::{Cell, RefCell};

fn simple_graph(x: &Tensor) -> Tensor {
    ((x + 2.0).powi(2) + 3.0).mean()
}
/// The primitives of a program's equations.
fn primitives(p: &Program) -> Vec<String> {
    p.eqns().iter().map(|e| e.op.name().to_string()).collect()
}

#[test]
fn jaxpr_of_polynomial_drops_side_effects() {
    let seen = Cell::new(0);
    let f = |x: &Tensor| {
        seen.set(seen.get() + 1);
        2 * x * x + 3 * x + 3
    };
    let want = "{ lambda ; a:i32[]. let b:i32[] = mul 2:i32[] a c:i32[] = mul b a d:i32[] = mul 3:i32[] a e:i32[] = add c d f:i32[] = add e 3:i32[] in (f,) }";
    assert_eq!(flat(make_jaxpr(f, &Tensor::from(3)).unwrap()), want);
    assert_eq!(seen.get(), 1);
}
#[test]
fn jaxpr_of_simple_graph() {
    let x = zero_to(3);
    let want = "{ lambda ; a:f32[3]. let b:f32[3] = add a 2.0:f32[] c:f32[3] = integer_pow[y=2] b d:f32[3] = add c 3.0:f32[] e:f32[] = reduce_sum[axes=(0,)] d f:f32[] = div e 3.0:f32[] in (f,) }";
    assert_eq!(flat(make_jaxpr(simple_graph, &x).unwrap()).replace(" out_sharding=None", ""), want);
    close(&simple_graph(&x), &[12.666667]);
}
#[test]
fn grad_of_simple_graph() {
    let (x, want) = (zero_to(3), [1.3333334, 2.0, 2.6666667]);
    close(&grad(simple_graph)(&x).unwrap(), &want);
    let (y, g) = value_and_grad(simple_graph)(&x).unwrap();
    close(&y, &[12.666667]);
    close(&g, &want);
    let p = make_jaxpr(grad(simple_graph), &x).unwrap();
    close(&eval_jaxpr(&p, &[&x]).unwrap()[0], &want);
    let names = primitives(&p);
    assert!(names.len() <= 10 && names[0] == "add" && names.contains(&"mul".into()), "{names:?}");
    assert!(names.contains(&"broadcast_in_dim".into()) && !names.contains(&"sin".into()), "{names:?}");
}
#[test]
fn jaxpr_of_norm() {
    let p = make_jaxpr(|x: &Tensor| x.powi(2).sum().sqrt(), &zero_to(3)).unwrap();
    assert_eq!(primitives(&p), ["integer_pow", "reduce_sum", "sqrt"]);
    assert!(p.to_string().contains("integer_pow[y=2]"), "{p}");
    let long = |a: &[Aval]| a.iter().map(Aval::long).collect::<Vec<_>>();
    assert_eq!((long(p.in_avals()), long(&p.out_avals())), (vec!["float32[3]".into()], vec!["float32[]".into()]));
}
#[test]
fn jit_bakes_globals_until_shapes_change() {
    let g = Cell::new(0.0);
    let add = jit(|x: &Tensor| x + g.get());
    assert_eq!(add(&f(4.0)).unwrap().item(), 4.0);
    g.set(10.0);
    assert_eq!(add(&f(5.0)).unwrap().item(), 5.0);
    close(&add(&Tensor::from([4.0f32])).unwrap(), &[14.0]);
}
#[test]
fn python_side_effects_run_at_trace_time_only() {
    let n = Cell::new(0);
    let twice = jit(|x: &Tensor| {
        n.set(n.get() + 1);
        x * 2
    });
    for x in [1.0, 2.0, 3.0] {
        twice(&f(x)).unwrap();
    }
    assert_eq!(n.get(), 1);
    twice(&Tensor::ones(&[3])).unwrap();
    twice(&Tensor::zeros(&[3])).unwrap();
    assert_eq!(n.get(), 2);
}
#[test]
fn jit_static_arguments() {
    let traces = RefCell::new(vec![]);
    let add = jit_static(|n: &i32, x: &Tensor| {
        traces.borrow_mut().push(*n);
        (0..*n).fold(x.clone(), |x, _| x + 1)
    });
    let of = |x: i32, n: i32| add(&n, &Tensor::from(x)).unwrap().item();
    assert_eq!((of(2, 5), of(2, 10), of(3, 5)), (7.0, 12.0, 8.0));
    assert_eq!(*traces.borrow(), [5, 10]);
    let mode = jit_static(|mode: &&'static str, x: &Tensor| if *mode == "double" { x * 2 } else { x.clone() });
    let of_mode = |m: &'static str| mode(&m, &Tensor::from(4)).unwrap().item();
    assert_eq!((of_mode("double"), of_mode("same")), (8.0, 4.0));
}
#[test]
fn lowered_and_compiled_text() {
    let x = Tensor::ones(&[3, 5]);
    let sin = Jitted::new(|x: &Tensor| x.sin().powi(2) + 3 * x);
    let cos = Jitted::new(|x: &Tensor| x.cos().powi(2) + 3 * x);
    let programs = [
        make_jaxpr(|x: &Tensor| x.sin().powi(2) + 3 * x, &x).unwrap(),
        make_jaxpr(|x: &Tensor| x.cos().powi(2) + 3 * x, &x).unwrap(),
    ];
    let (low, plan) = (programs[0].to_string(), sin.plan(&x).unwrap());
    assert!(low != programs[1].to_string() && low.contains("f32[3,5]") && low.contains("sin"), "{low}");
    assert!(plan != cos.plan(&x).unwrap() && plan.contains("sin") && plan.contains("15"), "{plan}");
    close(&sin.call(&x).unwrap(), &[1f32.sin().powi(2) + 3.0; 15]);
    let e = eval_jaxpr(&programs[0], &[&Tensor::ones(&[4, 5])]).unwrap_err(); // a program is of one shape; `jit` traces again
    assert_eq!(e.kind(), Some(ErrorKind::Type), "{e}");
}
#[test]
fn donated_arguments_are_gone() {
    let a = Tensor::ones(&[8]);
    let kept = a.clone();
    close(&jit_donate(|x: &Tensor| x + 1)(a).unwrap(), &[2.0; 8]);
    let e = catch(|| Ok(&kept + 1)).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Runtime) && e.message().contains("deleted"), "{e}");
}
#[test]
fn dispatch_is_asynchronous() {
    let a = random::normal(&random::key(0), &[2000, 2000], Dtype::F32);
    let product = jit(|a: &Tensor| a.matmul(a).matmul(a).matmul(a));
    product(&a).unwrap().ready().unwrap();
    let y = product(&a).unwrap();
    assert!(!y.is_ready()); // the call returned before some 48 GFLOP were done
    y.ready().unwrap();
    assert!(y.is_ready());
}
#[test]
fn jit_on_a_named_backend() {
    let f = |x: &Tensor| {
        let (a, b) = (x + x * x + 3, x * x + x * x.t());
        a * b
    };
    let x = random::normal(&random::key(0), &[64, 64], Dtype::F32);
    let cpu = &device::devices("cpu").unwrap()[0];
    let y = jit(f)(&x.device_put(cpu)).unwrap();
    assert_eq!(y.device(), Some(cpu));
    near(&y, &v(&f(&x)), 1e-4);
    assert!(device::devices("tpu").unwrap_err().message().contains("Unknown backend tpu"));
}
#[test]
fn eval_shape_runs_nothing() {
    // 40 GB, if they were allocated
    let out = eval_shape(|_: &()| Tensor::zeros(&[10_000_000, 1000]).matmul(Tensor::zeros(&[1000, 7])), &());
    assert_eq!(out.unwrap()[0].long(), "float32[10000000,7]");
}
