//! Single facts: concrete values under grad, leaks, captures, costs, errors, long chains.
use ferrax_ir::ops::callback::{Callable, Callback, CallbackKind};
use ferrax_ir::ops::clamp::Clamp;
use ferrax_ir::ops::dot::{Dot, DotDims};
use ferrax_kernel::plan::HostFn;
use ferrax_testkit::api::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

fn num(v: &Value) -> f64 {
    nums(v)[0]
}
fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} against {b}");
}
fn program(f: F, shape: &[usize]) -> Program {
    init();
    let p = make_program(f, &[f64s(shape)]).unwrap().0;
    let live = p.dce(&vec![true; p.n_outs()]).0;
    live.as_ref().with_consts(p.n_consts())
}
fn ops(p: &Program) -> Vec<&'static str> {
    let own = p
        .eqns()
        .iter()
        .flat_map(|e| std::iter::once(e.op.name()).chain(e.op.bodies().into_iter().flat_map(|b| ops(b))));
    own.collect()
}

// ---- concrete values ----

fn leaky_relu(x: &Value) -> Res<Value> {
    Ok(if x.item()?.parts().0 > 0.0 { x * x } else { x * 0.1 })
}
#[test]
fn branch_on_a_value_under_grad() {
    near(num(&grad1(&leaky_relu, &sc(3.0)).unwrap()), 6.0);
    near(num(&grad1(&leaky_relu, &sc(-3.0)).unwrap()), 0.1);
    near(num(&grad1(&|x| grad1(&leaky_relu, x), &sc(3.0)).unwrap()), 2.0);
    // a loop whose length depends on a value, three transforms deep
    let f = |x: &Value| {
        let mut y = x.clone();
        while y.item()?.parts().0 < 10.0 {
            y = &y * &y;
        }
        Ok(y)
    };
    near(num(&grad1(&|x| Ok(jvp1(&f, x, &k(1.0))?.1), &sc(2.0)).unwrap()), 12.0 * 4.0); // x^4
}
#[test]
fn branch_on_a_value_under_jit_and_vmap_is_an_error() {
    let f = jit(|a: &[Value]| Ok(vec![leaky_relu(&a[0])?]));
    assert!(
        matches!(f(&[sc(1.0)]), Err(e) if e.kind() == Some(ErrorKind::Concretization) && e.message().contains("jit"))
    );
    assert!(
        matches!(vmap1(&leaky_relu, &vec1(&[1.0, 2.0]), 0, 0), Err(e) if e.kind() == Some(ErrorKind::Concretization) && e.message().contains("vmap"))
    );
    assert!(
        matches!(vmap1(&|x| grad1(&leaky_relu, x), &vec1(&[1.0, 2.0]), 0, 0), Err(e) if e.kind() == Some(ErrorKind::Concretization))
    );
    // an operand without lanes stays concrete under vmap
    let y =
        vmap(&|a| Ok(vec![&a[0] * leaky_relu(&a[1])?]), &[vec1(&[1.0, 2.0]), sc(3.0)], &[Some(0), None], &[0]).unwrap();
    assert_eq!(nums(&y[0]), [9.0, 18.0]);
}
#[test]
fn custom_rule_sees_concrete_values_under_grad() {
    let f = custom_jvp(
        "f",
        Arc::new(|a| Ok(vec![&a[0] * &a[0]])),
        Arc::new(|a| Ok(vec![&a[0] * &a[0], if a[0].item()?.parts().0 > 1.0 { &a[1] * 7.0 } else { &a[1] * 5.0 }])),
    );
    near(num(&grad1(&|x| Ok(f(std::slice::from_ref(x))?.remove(0)), &sc(2.0)).unwrap()), 7.0);
    near(num(&grad1(&|x| Ok(f(std::slice::from_ref(x))?.remove(0)), &sc(0.5)).unwrap()), 5.0);
}

#[test]
fn custom_rule_closes_over_lanes() {
    let f = |w: &Value, x: &Value| {
        let (a, b) = (w.clone(), w.clone());
        custom_jvp(
            "f",
            Arc::new(move |x| Ok(vec![&x[0] * &a])),
            Arc::new(move |x| Ok(vec![&x[0] * &b, &x[1] * &b * 10.0])),
        )(std::slice::from_ref(x))
        .map(|mut y| y.remove(0))
    };
    let (w, x) = (vec1(&[1.0, 2.0]), vec1(&[3.0, 4.0]));
    let y = vmap(&|a| Ok(vec![f(&a[0], &a[1])?]), &[w.clone(), x.clone()], &[Some(0), Some(0)], &[0]).unwrap();
    assert_eq!(nums(&y[0]), [3.0, 8.0]);
    let g = grad1(
        &|x| Ok(sum(&vmap(&|a| Ok(vec![f(&a[0], &a[1])?]), &[w.clone(), x.clone()], &[Some(0), Some(0)], &[0])?[0])),
        &x,
    )
    .unwrap();
    assert_eq!(nums(&g), [10.0, 20.0]);
    let f = |w: &Value, x: &Value| {
        let (a, b, c) = (w.clone(), w.clone(), w.clone());
        custom_vjp(
            "f",
            1,
            Arc::new(move |x| Ok(vec![&x[0] * &a])),
            Arc::new(move |x| Ok(vec![&x[0] * &b])),
            Arc::new(move |x| Ok(vec![&x[0] * &c * 10.0])),
        )(std::slice::from_ref(x))
        .map(|mut y| y.remove(0))
    };
    let g = grad1(
        &|x| Ok(sum(&vmap(&|a| Ok(vec![f(&a[0], &a[1])?]), &[w.clone(), x.clone()], &[Some(0), Some(0)], &[0])?[0])),
        &x,
    )
    .unwrap();
    assert_eq!(nums(&g), [10.0, 20.0]);
}

// ---- nesting ----

#[test]
fn perturbations_are_not_confused() {
    let f = |x: &Value| Ok(x * &grad1(&|y| Ok(x + y), x)?);
    near(num(&grad1(&f, &sc(5.0)).unwrap()), 1.0);
    let f = |x: &Value| Ok(x * &jvp1(&|y| Ok(x + y), &k(1.0), &k(1.0))?.1);
    near(num(&jvp1(&f, &sc(5.0), &k(1.0)).unwrap().1), 1.0);
    // x * d/dy (x*y*y) at y = x  =  2 x^3
    near(num(&grad1(&|x| Ok(x * &grad1(&|y| Ok(x * y * y), x)?), &sc(2.0)).unwrap()), 2.0 * 3.0 * 4.0);
}
#[test]
fn jvp_of_vjp_and_back() {
    let x = sc(0.7);
    let (g, gg) = jvp1(&|x| grad1(&|x| Ok(sin(x)), x), &x, &k(1.0)).unwrap();
    near(num(&g), 0.7f64.cos());
    near(num(&gg), -(0.7f64.sin()));
    let third = |x: &Value| grad1(&|x| Ok(jvp1(&|x| grad1(&|x| Ok(exp(&(x * 2.0))), x), x, &k(1.0))?.1), x);
    near(num(&third(&x).unwrap()), 8.0 * 1.4f64.exp());
    // ten derivatives deep
    fn nth(n: usize, x: &Value) -> Res<Value> {
        if n == 0 { Ok(sin(x)) } else { grad1(&|x| nth(n - 1, x), x) }
    }
    near(num(&nth(6, &x).unwrap()), -(0.7f64.sin()));
}
#[test]
fn linear_transpose_of_a_closure() {
    let w = vec1(&[1.0, 2.0, 3.0]);
    let ct = linear_transpose(&|a| Ok(vec![sum(&(sin(&w) * &a[0]))]), &[f64s(&[3])], &[Some(k(2.0))]).unwrap();
    assert_eq!(nums(ct[0].as_ref().unwrap()), [1.0f64, 2.0, 3.0].map(|x| 2.0 * x.sin()));
    let bad = linear_transpose(&|a| Ok(vec![sin(&a[0])]), &[f64s(&[])], &[Some(k(2.0))]);
    assert!(matches!(bad, Err(e) if e.kind() == Some(ErrorKind::NotImplemented)));
}

#[test]
fn what_is_linear_in_all_it_is_given_can_be_transposed() {
    init();
    // integer_pow is linear where the exponent is 1
    let power = |n| linear_transpose(&|a| Ok(vec![powi(&a[0], n)]), &[f64s(&[])], &[Some(k(2.0))]);
    assert_eq!(nums(power(1).unwrap()[0].as_ref().unwrap()), [2.0]);
    assert!(matches!(power(2), Err(e) if e.kind() == Some(ErrorKind::NotImplemented)));
}
#[test]
fn a_result_that_reads_nothing_linear_takes_no_cotangent_anywhere() {
    init();
    let body = "{ lambda ; a:f64[] w:f64[]. let b:f64[] = mul a w; c:f64[] = sin w in (b, c) }";
    let calls = [
        format!("jit[name=f jaxpr={body}]"),
        format!("remat2[jaxpr={body} prevent_cse=True differentiated=False policy=None]"),
        format!("cond[branches=({body} {body})] 0:i32[]"),
    ];
    for call in calls {
        let p = parse(&format!("{{ lambda ; a:f64[] w:f64[]. let b:f64[] c:f64[] = {call} a w in (b, c) }}")).unwrap();
        let cx = ferrax_ir::cx::current();
        // linear in a; w is known
        let (back, nz) = cx.recur().transpose(&Arc::new(p), &[true, false], &[true, true], &[false]).unwrap();
        let ct = cx.inline(&back, &[sc(3.0), sc(2.0), sc(5.0)]).unwrap();
        assert_eq!((nz, nums(&ct[0])), (vec![true], vec![6.0]), "{call}");
    }
}
#[test]
fn bounds_that_cross_follow_the_upper_one() {
    // min(max(x, lo), hi) with lo > hi; the derivatives are JAX's
    let clamp = |a: &[Value]| Ok(ferrax_ir::bind(&Clamp {}.into(), a)?.into_vec());
    for (x, by_hi) in [(1.0, 0.0), (2.5, 1.0), (4.0, 1.0)] {
        let slope = |i: usize| {
            let dx: Vec<_> = (0..3).map(|k| (k == i).then(|| sc(1.0))).collect();
            num(jvp(&clamp, &[sc(3.0), sc(x), sc(2.0)], &dx).unwrap().1[0].as_ref().unwrap())
        };
        assert_eq!([slope(0), slope(1), slope(2)], [0.0, 0.0, by_hi], "x = {x}");
    }
}
#[test]
fn a_product_is_weak_where_its_operands_are_and_nothing_else_is_asked() {
    let dot = |preferred| Dot {
        preferred_element_type: preferred,
        ..Dot::new(DotDims { lc: [0].into(), rc: [0].into(), ..DotDims::default() })
    };
    let weak = |d: Dot, w: [bool; 2]| {
        let a = w.map(|weak| Aval { weak, ..f64s(&[2]) });
        ferrax_ir::op::Rules::infer(&d, &a).unwrap()[0].weak
    };
    assert!(weak(dot(None), [true, true]) && weak(dot(Some(Dtype::F64)), [true, true]));
    assert!(!weak(dot(None), [true, false]) && !weak(dot(None), [false, true]));
    assert!(!weak(dot(Some(Dtype::F32)), [true, true]));
}
struct Double;
impl HostFn for Double {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Result<(), ferrax_kernel::Error> {
        for (x, y) in ins[0].chunks(8).zip(outs[0].chunks_mut(8)) {
            y.copy_from_slice(&(2.0 * f64::from_le_bytes(x.try_into().unwrap())).to_le_bytes());
        }
        Ok(())
    }
}
#[test]
fn a_callback_that_takes_all_lanes_gives_them_in_front() {
    let f = Callback {
        kind: CallbackKind::Pure,
        callback: Callable { name: "double".into(), host: None, make: Arc::new(|_, _| Arc::new(Double)) },
        ins: vec![f64s(&[2])],
        ordered: false,
        result_avals: vec![f64s(&[2])],
        vmap_method: Some("expand_dims".into()),
    };
    let call = |a: &[Value]| Ok(ferrax_ir::bind(&f.clone().into(), a)?.into_vec());
    let x = arr(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = vmap(&call, &[x], &[Some(1)], &[0]).unwrap().remove(0);
    assert_eq!((y.shape(), nums(&y)), (&[3, 2][..], vec![2.0, 8.0, 4.0, 10.0, 6.0, 12.0]));
}

#[test]
fn an_ordered_io_callback_has_no_lanes() {
    let call = |kind, ordered| {
        let f = Callback {
            kind,
            callback: Callable { name: "double".into(), host: None, make: Arc::new(|_, _| Arc::new(Double)) },
            ins: vec![f64s(&[])],
            ordered,
            result_avals: vec![f64s(&[])],
            vmap_method: None,
        };
        let one = |a: &[Value]| Ok(ferrax_ir::bind(&f.clone().into(), a)?.into_vec());
        vmap(&one, &[vec1(&[1.0, 2.0])], &[Some(0)], &[0])
    };
    let refused = call(CallbackKind::Io, true);
    assert!(refused.is_err_and(|e| e.message().contains("Cannot `vmap` ordered IO callback.")));
    for (kind, ordered) in [(CallbackKind::Io, false), (CallbackKind::Debug, true)] {
        assert_eq!(nums(&call(kind, ordered).unwrap()[0]), [2.0, 4.0]);
    }
}

// ---- leaks ----

#[test]
fn leaked_tracers_are_found() {
    let stash: RefCell<Option<Value>> = RefCell::default();
    let keep = |x: &Value| -> Res<Value> {
        *stash.borrow_mut() = Some(x * 2.0);
        Ok(x * 1.0)
    };
    let leaked = |r: Res<Vec<Value>>, who: &str| match r {
        Err(e) if e.kind() == Some(ErrorKind::UnexpectedTracer) => assert!(e.message().contains(who), "{e}"),
        r => panic!("{who}: {r:?}"),
    };
    let use_it = || catch(|| Ok(vec![stash.borrow().as_ref().unwrap() + 1.0]));
    make_program(&|a| Ok(vec![keep(&a[0])?]), &[f64s(&[])]).unwrap();
    leaked(use_it(), "jit");
    jvp1(&keep, &sc(1.0), &sc(1.0)).unwrap();
    leaked(use_it(), "jvp");
    grad1(&keep, &sc(1.0)).unwrap();
    leaked(use_it(), "grad");
    vmap1(&keep, &vec1(&[1.0]), 0, 0).unwrap();
    leaked(use_it(), "vmap");
    // after an error
    assert!(
        catch(|| grad1(
            &|x| {
                keep(x)?;
                Err(Error::value("user"))
            },
            &sc(1.0)
        ))
        .is_err()
    );
    leaked(use_it(), "grad");
    // used inside another trace, returned without being used, and closed over by a body
    make_program(&|a| Ok(vec![keep(&a[0])?]), &[f64s(&[])]).unwrap();
    leaked(
        catch(|| vmap(&|a| Ok(vec![&a[0] + stash.borrow().as_ref().unwrap()]), &[vec1(&[1.0])], &[Some(0)], &[0])),
        "jit",
    );
    leaked(catch(|| make_program(&|_| Ok(vec![stash.borrow().clone().unwrap()]), &[f64s(&[])]).map(|_| vec![])), "jit");
    leaked(catch(|| scan(&|a| Ok(vec![&a[0] + stash.borrow().as_ref().unwrap()]), &[sc(1.0)], &[], 2, false)), "jit");
}
#[test]
fn a_panic_inside_restores_the_trace() {
    let r = std::panic::catch_unwind(|| make_program(&|_| panic!("user"), &[f64s(&[])]));
    assert!(r.is_err());
    near(num(&(sc(1.0) + 1.0)), 2.0); // eager again
    // an operator's error is returned
    assert!(matches!(catch(|| Ok(vec1(&[1.0, 2.0]) + vec1(&[1.0, 2.0, 3.0]))), Err(e) if e.kind().is_some()));
}

// ---- captures ----

#[test]
fn captures_are_inputs_and_literals_are_text() {
    let w = vec1(&[1.0, 2.0]);
    let (p, consts) = make_program(&|a| Ok(vec![&a[0] * &w + &w * 3.0]), &[f64s(&[2])]).unwrap();
    assert_eq!((p.n_consts(), consts.len()), (1, 1));
    assert_eq!(consts[0].id(), w.id());
    assert!(p.to_string().starts_with("{ lambda a:f64[2]; b:f64[2]. let") && p.to_string().contains("3.0:f64[]"));
    // no operands: staged all the same
    assert_eq!(ops(&program(&|a| Ok(vec![&a[0] + iota(Dtype::F64, &[3], 0)]), &[3])), ["iota", "add"]);
    // operations on captured arrays are staged, not run
    let ((), runs) = counting(|| drop(make_program(&|a| Ok(vec![&a[0] + sin(&w)]), &[f64s(&[2])]).unwrap()));
    assert!(runs.is_empty());
}
#[test]
fn jit_traces_once_and_never_keeps_tracers() {
    let n = Rc::new(Cell::new(0));
    let m = n.clone();
    let f = jit(move |a: &[Value]| {
        m.set(m.get() + 1);
        Ok(vec![sin(&a[0])])
    });
    for _ in 0..3 {
        f(&[sc(1.0)]).unwrap();
        grad1(&|x| Ok(f(std::slice::from_ref(x))?.remove(0)), &sc(1.0)).unwrap();
    }
    assert_eq!(n.get(), 1);
    f(&[vec1(&[1.0])]).unwrap();
    assert_eq!(n.get(), 2);
    // closes over the tracer of each grad call in turn
    let cell: Rc<RefCell<Value>> = Rc::new(RefCell::new(sc(0.0)));
    let c = cell.clone();
    let g = jit(move |a: &[Value]| Ok(vec![&a[0] * &*c.borrow()]));
    for x in [2.0, 3.0] {
        let d = grad1(
            &|x| {
                *cell.borrow_mut() = x.clone();
                Ok(g(std::slice::from_ref(x))?.remove(0))
            },
            &sc(x),
        )
        .unwrap();
        near(num(&d), 2.0 * x);
    }
}
#[test]
fn a_program_remembers_its_transforms() {
    let p = Arc::new(program(&|x| Ok(vec![sin(&x[0])]), &[2]));
    let root = ferrax_ir::cx::eval_root();
    let jvp = |nz: bool| root.recur().jvp(&p, &[nz], &[false], &[1], &[1]).unwrap().0;
    assert!(Arc::ptr_eq(&jvp(true), &jvp(true)));
    assert_ne!(jvp(true), jvp(false));
    let split = |unk: bool| root.recur().split(&p, &[unk], &[false], &[true]).unwrap();
    assert!(Arc::ptr_eq(&split(true), &split(true)) && !Arc::ptr_eq(&split(true), &split(false)));
}

// ---- costs ----

/// The plan's work as a whole and in slow routines: by these a run executes inline or is enqueued.
fn work(text: &str) -> (u64, u64) {
    let plan = ferrax_ir::lower::lower(&ferrax_ir::text::parse(text).unwrap()).unwrap();
    (plan.work(), plan.slow_work())
}
#[test]
fn work_is_that_of_the_elements_that_a_run_touches() {
    // updates of one element in an array that stays where it is
    let (all, _) = work(
        "{ lambda ; a:f32[4096]. let _:i32[] b:f32[4096] = scan[
            jaxpr={ lambda ; i:i32[] c:f32[4096]. let
                j:i32[] = add i 1:i32[]
                t:f32[1] = dynamic_slice[slice_sizes=(1,)] c i
                u:f32[1] = mul t 0.5:f32[]
                d:f32[4096] = dynamic_update_slice c u j
            in (j, d) }
            length=1000 num_carry=2 num_consts=0 reverse=False unroll=1
        ] 0:i32[] a in (b,) }",
    );
    assert!(all < 50_000, "{all} operations for 1,000 updates of an element");
    // arrays that change places are copied, or written, in each step
    let (all, _) = work(
        "{ lambda ; a:f32[4096] b:f32[4096]. let c:f32[4096] d:f32[4096] = scan[
            jaxpr={ lambda ; e:f32[4096] f:f32[4096]. let in (f, e) }
            length=1000 num_carry=2 num_consts=0 reverse=False unroll=1
        ] a b in (c, d) }",
    );
    assert!(all > 1_000 * 4_096, "{all} operations for 1,000 steps over 4,096 elements");
    // what takes a nanosecond an element runs inline, decompositions and sorts of as many do not
    let slow = |equation: &str| work(&format!("{{ lambda ; a:f32[256,256]. let {equation} in (b,) }}")).1;
    for equation in [
        "b:f32[256,256] = cumsum[axis=0 reverse=False] a",
        "b:f32[256,256] = cummax[axis=1 reverse=True] a",
        "b:f32[256,9] c:i32[256,9] = top_k[axis=1 k=9] a",
        "b:f32[256,256] = dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32] a a",
    ] {
        assert_eq!(slow(equation), 0, "{equation}");
    }
    for equation in ["b:f32[256,256] = sort[dimension=1 is_stable=True num_keys=1] a", "b:f32[256,256] = cholesky a"] {
        assert!(slow(equation) > 200_000, "{equation}");
    }
}
#[test]
fn linearize_runs_the_function_once() {
    let f = |a: &[Value]| Ok(vec![exp(&sin(&a[0]))]);
    let ((_, lin), runs) = counting(|| linearize(&f, &[sc(0.3)]).unwrap());
    assert_eq!(runs, HashMap::from([("sin", 1), ("cos", 1), ("exp", 1)])); // values and slopes, nothing linear
    let (_, runs) = counting(|| {
        (lin.apply(&[sc(1.0)]).unwrap(), lin.apply(&[sc(2.0)]).unwrap(), lin.transpose(&[Some(k(1.0))]).unwrap())
    });
    assert_eq!(runs, HashMap::from([("mul", 6)]));
    // through a loop: one forward scan, one backward scan
    let f = |x: &Value| Ok(scan(&|a| Ok(vec![sin(&a[0])]), std::slice::from_ref(x), &[], 5, false)?.remove(0));
    let (_, runs) = counting(|| grad1(&f, &sc(0.3)).unwrap());
    assert_eq!(runs, HashMap::from([("scan", 2)]));
    let p = program(&|a| Ok(vec![grad1(&f, &a[0])?]), &[]);
    assert_eq!(ops(&p), ["scan", "sin", "cos", "scan", "mul"], "{p}");
}
#[test]
fn zeros_are_not_made() {
    let zeros = |p: &Program| p.to_string().matches(" 0.0:f64[]").count();
    let many = |a: &[Value]| -> Res<Vec<Value>> {
        let (x, k) = (&a[0], vec1(&[1.0, 2.0, 3.0]));
        let unused = cos(&k) * sin(&k);
        let y = reshape(&transpose(&(broadcast(x, &[2, 3], &[1]) * broadcast(&unused, &[2, 3], &[1])), &[1, 0]), &[6]);
        Ok(vec![sum(&(y / broadcast(&exp(&sum(&k)), &[6], &[]))), sum(&k)])
    };
    let p = program(
        &|a| {
            let (y, lin) = linearize(&many, a)?;
            Ok(vec![y[0].clone(), lin.transpose(&[Some(k(1.0)), None])?.remove(0).unwrap()])
        },
        &[3],
    );
    assert_eq!(zeros(&p), 0, "{p}");
    // a zero cotangent or tangent emits nothing at all
    let (y, lin) = linearize(&|a| Ok(vec![sin(&a[0]), cos(&a[1])]), &[sc(1.0), sc(2.0)]).unwrap();
    assert_eq!(y.len(), 2);
    let (cts, runs) = counting(|| lin.transpose(&[Some(k(1.0)), None]).unwrap());
    assert!(cts[0].is_some() && cts[1].is_none() && runs == HashMap::from([("mul", 1)]));
    let ((_, t), runs) = counting(|| {
        jvp(&|a| Ok(vec![&a[0] * &a[1], cos(&a[1])]), &[sc(1.0), sc(2.0)], &[Some(sc(1.0)), None]).unwrap()
    });
    assert!(t[0].is_some() && t[1].is_none() && runs == HashMap::from([("mul", 2), ("cos", 1)]));
    // carries whose cotangent never comes stay out of the transposed loop
    let p = program(
        &|a| {
            Ok(vec![grad1(
                &|x| Ok(scan(&|c| Ok(vec![sin(&c[0]), &c[1] * 2.0]), &[x.clone(), x.clone()], &[], 3, false)?.remove(0)),
                &a[0],
            )?])
        },
        &[],
    );
    assert!(!p.to_string().contains("2.0:f64[]"), "{p}");
}
#[test]
fn unused_residuals_are_dropped() {
    // the primal output of a jitted call is not computed when only the gradient is requested
    let f = Rc::new(jit(|a: &[Value]| Ok(vec![sum(&tanh(&(exp(&sin(&a[0])) + log(&a[0])))), sum(&sqrt(&a[0]))])));
    let p = program(
        &move |a| {
            let f = f.clone();
            Ok(vec![grad1(&|x| Ok(f(std::slice::from_ref(x))?.remove(0)), &a[0])?])
        },
        &[4],
    );
    assert!(!ops(&p).contains(&"sqrt") && ops(&p).iter().filter(|o| **o == "reduce_sum").count() == 0, "{p}");
    // a residual that depends on loop constants alone leaves the loop; a constant is not stacked
    let p = program(
        &|a| {
            Ok(vec![grad1(
                &|x| {
                    let w = sin(x);
                    Ok(sum(&scan(&|c| Ok(vec![&c[0] * cos(&w)]), &[vec1(&[1.0, 1.0])], &[], 100, false)?[0]))
                },
                &a[0],
            )?])
        },
        &[2],
    );
    let stacked = p.to_string().matches("f64[100,2]").count();
    assert_eq!(stacked, 1, "only the carry is stacked\n{p}");
}
#[test]
fn vmap_of_while_runs_as_long_as_the_slowest_lane() {
    let f = |x: &Value| {
        Ok(while_loop(
            &|a| Ok(vec![lt(&a[0], &k(100.0))]),
            &|a| Ok(vec![&a[0] * 2.0, &a[1] + int(1)]),
            &[x.clone(), int(0)],
        )?
        .remove(1))
    };
    let (y, runs) = counting(|| vmap1(&f, &vec1(&[1.0, 30.0, 200.0]), 0, 0).unwrap());
    assert_eq!(nums(&y), [7.0, 2.0, 0.0]);
    assert_eq!(runs["while"], 1);
}
#[test]
fn reverse_through_while_costs_its_trips() {
    let f = |x: &Value| {
        Ok(while_loop(
            &|a| Ok(vec![gt(&a[0], &k(1e-6))]),
            &|a| Ok(vec![sin(&(&a[0] * 0.5)), &a[1] + &a[0] * x]),
            &[x.clone(), k(0.0)],
        )?
        .remove(1))
    };
    let (_, runs) = counting(|| grad1(&f, &sc(1.0)).unwrap());
    assert_eq!(runs, HashMap::from([("while", 1), ("tape_scan", 1), ("add_any", 1)]));
}

#[test]
fn checkpoint_keeps_its_operands_only() {
    let f = |x: &Value| -> Res<Value> {
        Ok(checkpoint(&|a| Ok(vec![sin(&exp(&a[0]))]), std::slice::from_ref(x))?.remove(0))
    };
    let ((_, lin), runs) = counting(|| linearize(&|a| Ok(vec![f(&a[0])?]), &[sc(0.3)]).unwrap());
    assert_eq!((lin.residuals.len(), runs), (1, HashMap::from([("exp", 1), ("sin", 1)])));
    let (_, runs) = counting(|| lin.transpose(&[Some(k(1.0))]).unwrap());
    assert_eq!(runs, HashMap::from([("remat2", 1)]));
    // recomputed, without the unused output
    let p = program(&|a| Ok(vec![grad1(&f, &a[0])?]), &[]);
    let back = p.eqns().iter().rfind(|e| e.op.name() == "remat2").unwrap();
    assert_eq!(ops(back.op.bodies()[0]), ["exp", "cos", "mul", "mul"], "{p}");
}

#[test]
fn a_policy_decides_what_is_kept() {
    for (policy, kept, again) in [
        ("everything_saveable", 2, vec!["mul", "mul"]),
        ("nothing_saveable", 1, vec!["sin", "cos", "cos", "mul", "mul"]),
        ("sines", 2, vec!["cos", "cos", "mul", "mul"]),
    ] {
        let policy = policies().into_iter().find(|p| p.name() == policy).unwrap();
        let f = |x: &Value| -> Res<Value> {
            let f: F = &|a| Ok(vec![sin(&sin(&a[0]))]);
            Ok(checkpoint_keeping(&policy, f, std::slice::from_ref(x))?.remove(0))
        };
        let (_, lin) = linearize(&|a| Ok(vec![f(&a[0])?]), &[sc(0.3)]).unwrap();
        let p = program(&|a| Ok(vec![grad1(&f, &a[0])?]), &[]);
        let back = p.eqns().iter().rfind(|e| e.op.name() == "remat2").unwrap();
        assert_eq!((lin.residuals.len(), ops(back.op.bodies()[0])), (kept, again), "{policy:?}: {p}");
    }
}

// ---- errors ----

#[test]
fn what_cannot_be_differentiated_says_so() {
    let f = custom_vjp(
        "f",
        1,
        Arc::new(|a| Ok(vec![sin(&a[0])])),
        Arc::new(|a| Ok(vec![sin(&a[0]), a[0].clone()])),
        Arc::new(|a| Ok(vec![&a[1] * cos(&a[0])])),
    );
    let f = |x: &Value| Ok(f(std::slice::from_ref(x))?.remove(0));
    assert!(
        matches!(jvp1(&f, &sc(1.0), &sc(1.0)), Err(e) if matches!(e.kind(), Some(ErrorKind::Type | ErrorKind::UnexpectedTracer)))
    );
    near(num(&grad1(&|x| grad1(&f, x), &sc(1.0)).unwrap()), -(1f64.sin()));
    // a custom rule that closes over a differentiated value: an error, not a wrong number. Eager, staged, in a body
    let bad = |x: &Value| {
        let c = x * 1.0;
        let d = c.clone();
        custom_jvp("bad", Arc::new(move |a| Ok(vec![&a[0] * &c])), Arc::new(move |a| Ok(vec![&a[0] * &d, &a[1] * &d])))(
            std::slice::from_ref(x),
        )
        .map(|mut y| y.remove(0))
    };
    assert!(matches!(catch(|| grad1(&bad, &sc(1.0))), Err(e) if e.kind() == Some(ErrorKind::UnexpectedTracer)));
    assert!(
        matches!(catch(|| grad1(&|x| Ok(jit(move |a: &[Value]| Ok(vec![bad(&a[0])?]))(std::slice::from_ref(x))?.remove(0)), &sc(1.0))), Err(e) if matches!(e.kind(), Some(ErrorKind::Type | ErrorKind::UnexpectedTracer)))
    );
    // a while whose end depends on a tangent cannot be linearised
    let by_tangent = custom_jvp(
        "g",
        Arc::new(|a| Ok(vec![a[0].clone()])),
        Arc::new(|a| {
            Ok(vec![
                a[0].clone(),
                while_loop(&|b| Ok(vec![lt(&b[0], &k(9.0))]), &|b| Ok(vec![&b[0] * 2.0]), &[a[1].clone()])?.remove(0),
            ])
        }),
    );
    let g = |x: &Value| Ok(by_tangent(std::slice::from_ref(x))?.remove(0));
    near(num(&jvp1(&g, &sc(1.0), &sc(1.0)).unwrap().1), 16.0);
    assert!(matches!(catch(|| grad1(&g, &sc(1.0))), Err(e) if e.kind() == Some(ErrorKind::NotImplemented)));
    assert!(
        matches!(vmap(&|a| Ok(a.to_vec()), &[vec1(&[1.0]), vec1(&[1.0, 2.0])], &[Some(0), Some(0)], &[0]), Err(e) if e.kind().is_some())
    );
}
#[test]
fn dead_branches() {
    // grad inside vmap is clean; vmap inside grad differentiates the select that cond became, whose mask keeps the dead lane out
    // (JAX gives nan there)
    let f = |x: &Value| {
        Ok(cond(&gt(x, &k(0.0)), &|a| Ok(vec![sqrt(&a[0])]), &|a| Ok(vec![a[0].clone()]), std::slice::from_ref(x))?
            .remove(0))
    };
    let xs = vec1(&[0.0, 4.0]);
    assert_eq!(nums(&vmap1(&|x| grad1(&f, x), &xs, 0, 0).unwrap()), [1.0, 0.25]);
    let g = nums(&grad1(&|xs| Ok(sum(&vmap1(&f, xs, 0, 0)?)), &xs).unwrap());
    assert_eq!(g, [1.0, 0.25]);
    let w = |x: &Value| Ok(select(&lt(x, &k(1.0)), x, &sqrt(x)));
    near(num(&grad1(&w, &sc(0.0)).unwrap()), 1.0); // JAX: nan
    near(num(&grad1(&|x| grad1(&w, x), &sc(0.0)).unwrap()), 0.0);
    assert_eq!(num(&grad1(&|x| Ok(sqrt(x)), &sc(0.0)).unwrap()), f64::INFINITY); // not masked: as it is
    assert!(num(&grad1(&|x| Ok(sqrt(&(x * 0.0))), &sc(1.0)).unwrap()).is_nan()); // inf * 0 by an honest slope
}

#[test]
fn idle_lanes() {
    // a lane that has stopped runs the body on; its result is dropped; under grad(vmap) its zero cotangent meets an infinite slope
    let f = |x: &Value| {
        Ok(while_loop(&|a| Ok(vec![gt(&a[0], &k(0.0))]), &|a| Ok(vec![sqrt(&a[0]) - 1.0]), std::slice::from_ref(x))?
            .remove(0))
    };
    let xs = vec1(&[0.0, 0.25]);
    assert_eq!(nums(&vmap1(&f, &xs, 0, 0).unwrap()), [0.0, -0.5]);
    assert_eq!(nums(&vmap1(&|x| grad1(&f, x), &xs, 0, 0).unwrap()), [1.0, 1.0]);
    assert_eq!(nums(&jvp1(&|x| vmap1(&f, x, 0, 0), &xs, &vec1(&[1.0, 1.0])).unwrap().1), [1.0, 1.0]);
    let g = nums(&grad1(&|xs| Ok(sum(&vmap1(&f, xs, 0, 0)?)), &xs).unwrap());
    assert_eq!(g, [1.0, 1.0]);
}

// ---- size ----

#[test]
fn ten_thousand_equations_on_a_small_stack() {
    let run = || {
        let chain = |x: &Value| {
            let mut y = x.clone();
            for _ in 0..5000 {
                y = sin(&y) * 1.0001;
            }
            Ok(y)
        };
        let p = program(&|a| Ok(vec![chain(&a[0])?]), &[]);
        assert_eq!(p.eqns().len(), 10_000);
        let text = p.to_string();
        assert!(parse(&text).unwrap().to_string() == text); // texts do not say which literals are weak
        let g = num(&grad1(&chain, &sc(0.5)).unwrap());
        near(num(&jvp1(&chain, &sc(0.5), &k(1.0)).unwrap().1), g);
        let j = jit(move |a: &[Value]| Ok(vec![chain(&a[0])?]));
        near(num(&grad1(&|x| Ok(j(std::slice::from_ref(x))?.remove(0)), &sc(0.5)).unwrap()), g);
        vmap1(&|x| grad1(&chain, x), &vec1(&[0.5, 0.6]), 0, 0).unwrap();
        hessian(&|x| Ok(sum(&chain(x)?)), &vec1(&[0.5])).unwrap();
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_hundred_thousand_equations_do_not_recurse() {
    let run = || {
        let chain = |x: &Value| Ok((0..100_000).fold(x.clone(), |y, _| sin(&y)));
        let p = make_program(&|a| Ok(vec![grad1(&chain, &a[0])?]), &[f64s(&[])]).unwrap().0;
        assert_eq!(p.eqns().len(), 300_000);
        drop(p.dce(&[true]));
        ferrax_ir::verify::verify(&p).unwrap();
        let text = p.to_string();
        assert!(parse(&text).unwrap().to_string() == text);
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn bad_text_is_an_error() {
    for t in [
        "",
        "{",
        "{ lambda ; a:f64[2]. let b:f64[3] = sin a in (b,) }",
        "{ lambda ; a:f64[]. let in (b,) }",
        "{ lambda ; a:f64[]. let b:f64[] = nope a in (b,) }",
        "{ lambda ; a:f64[]. let b:f64[] = add a in (b,) }",
    ] {
        assert!(parse(t).is_err(), "{t}");
    }
    let p = parse("{ lambda ; a:f64[] b:i64[]. let c:f64[] = mul a 2.0:f64[]  d:bool[] = lt b -3:i64[] e:f64[]=select_n d nan:f64[] c in (e, a, 1:i64[]) }").unwrap();
    assert!(parse(&p.to_string()).unwrap() == p);
}
