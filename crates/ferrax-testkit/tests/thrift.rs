//! What rules leave undone: zeros stay symbolic, results without a batch axis keep none, residuals that are operands are passed on.
use ferrax_ir::ops::callback::{Callable, Callback, CallbackKind};
use ferrax_kernel::plan::HostFn;
use ferrax_testkit::api::*;
use ferrax_testkit::examples::Example;
use std::sync::Arc;

/// Applications of primitives with bodies whose results read some operands only: for each result, which.
const APART: &[(&str, &[&[usize]])] = &[
    (
        "jit[name=f jaxpr={ lambda ; a:f64[3] b:f64[3]. let c:f64[3] = sin a; d:f64[3] = cos b in (c, d) }] f64[3] f64[3]",
        &[&[0], &[1]],
    ),
    (
        "remat2[jaxpr={ lambda ; a:f64[3] b:f64[3]. let c:f64[3] = sin a; d:f64[3] = cos b in (c, d) } prevent_cse=True differentiated=False policy=None] f64[3] f64[3]",
        &[&[0], &[1]],
    ),
    (
        "xla_pmap[axis_name=i axis_size=3 call_jaxpr={ lambda ; a:f64[2] b:f64[2]. let c:f64[2] = sin a; d:f64[2] = cos b in (c, d) } mapped=(True, True) name=f] f64[3,2] f64[3,2]",
        &[&[0], &[1]],
    ),
    (
        "cond[branches=({ lambda ; a:f64[3] b:f64[3]. let c:f64[3] = sin a; d:f64[3] = cos b in (c, d) } { lambda ; a:f64[3] b:f64[3]. let c:f64[3] = mul a a in (c, b) })] i32[] f64[3] f64[3] where 0..2",
        &[&[1], &[2]],
    ),
    (
        "scan[jaxpr={ lambda ; v:f64[] w:f64[] c:f64[] x:f64[]. let d:f64[] = mul c v; e:f64[] = mul x w in (d, e) } num_carry=1 num_consts=2 length=3 reverse=False unroll=1] f64[] f64[] f64[] f64[3]",
        &[&[0, 2], &[1, 3]],
    ),
    (
        "while[body_jaxpr={ lambda ; a:f64[] b:f64[] i:i32[]. let c:f64[] = sin a; d:f64[] = cos b; j:i32[] = add i 1:i32[] in (c, d, j) } body_nconsts=0 cond_jaxpr={ lambda ; a:f64[] b:f64[] i:i32[]. let p:bool[] = lt i 4:i32[] in (p,) } cond_nconsts=0] f64[] f64[] i32[]",
        &[&[0], &[1], &[2]],
    ),
];

/// Types of the results of the last equation with this primitive.
fn results(p: &Program, name: &str) -> Vec<Aval> {
    let (mut at, mut found) = (p.n_ins(), None);
    for e in p.eqns() {
        let outs = at..at + e.n_out as usize;
        at = outs.end;
        if e.op.name() == name {
            found = Some(p.avals()[outs].to_vec());
        }
    }
    found.unwrap_or_else(|| panic!("no {name} in\n{p}"))
}

#[test]
fn a_zero_cotangent_gives_zeros() {
    for (text, reads) in APART {
        let e = Example::parse(text);
        let (y, lin) = linearize(&|x| e.call(x), &e.values(&e.avals(), 0)).unwrap();
        for (j, read) in reads.iter().enumerate().filter(|(j, _)| y[*j].has_tangent()) {
            let ct: Vec<_> = (0..y.len()).map(|k| (k == j).then(|| y[k].clone())).collect();
            let got = lin.transpose(&ct).unwrap();
            for (i, ct) in got.iter().enumerate() {
                assert_eq!(ct.is_some(), read.contains(&i), "{text}\n  the cotangent of operand {i} from result {j}");
            }
        }
    }
}
#[test]
fn a_zero_tangent_gives_zeros() {
    for (text, reads) in APART {
        let e = Example::parse(text);
        let x = e.values(&e.avals(), 0);
        for i in (0..x.len()).filter(|i| x[*i].has_tangent()) {
            let dx: Vec<_> = (0..x.len()).map(|k| (k == i).then(|| x[k].clone())).collect();
            let (_, dy) = jvp(&|x| e.call(x), &x, &dx).unwrap();
            for (j, (dy, read)) in dy.iter().zip(*reads).enumerate() {
                assert_eq!(dy.is_some(), read.contains(&i), "{text}\n  the tangent of result {j} from operand {i}");
            }
        }
    }
}
#[test]
fn what_reads_no_lanes_has_none() {
    for (text, reads) in APART {
        let e = Example::parse(text);
        let plain = e.op.rules().infer(&e.avals()).unwrap();
        for i in 0..e.avals().len() {
            let name = e.op.name();
            if name == "cond" && i == 0 {
                continue; // every branch runs on every lane
            }
            let ins: Vec<Aval> =
                e.avals().iter().enumerate().map(|(k, a)| if k == i { a.batched(5, 0) } else { a.clone() }).collect();
            let axes: Vec<_> = (0..ins.len()).map(|k| (k == i).then_some(0)).collect();
            let outs = vec![0; plain.len()];
            let (p, _) = make_program(&|x| vmap(&|x| e.call(x), x, &axes, &outs), &ins).unwrap();
            // the counter of a loop ends it: then every lane runs until the last has ended
            let ends = name == "while" && i == 2;
            let name = if name == "xla_pmap" { "jit" } else { name }; // on one device
            for (j, (got, want)) in results(&p, name).iter().skip(2 * ends as usize).zip(&plain).enumerate() {
                let lanes = got.shape.size() != want.shape.size();
                assert_eq!(lanes, ends || reads[j].contains(&i), "{text}\n  result {j}, lanes of operand {i}\n{p}");
            }
        }
    }
}
/// The first equation, the known part of a linearised body, returns the primal results and no
/// operand.
#[test]
fn residuals_that_are_operands_are_not_copied() {
    let bodies = [
        "xla_pmap[axis_name=i axis_size=3 call_jaxpr={ lambda ; a:f64[2] b:f64[2]. let c:f64[2] = mul a b in (c,) } mapped=(True, True) name=f] f64[3,2] f64[3,2]",
        "cond[branches=({ lambda ; a:f64[3] b:f64[3]. let c:f64[3] = mul a b in (c,) } { lambda ; a:f64[3] b:f64[3]. let c:f64[3] = mul b b in (c,) })] i32[] f64[3] f64[3] where 0..2",
        "scan[jaxpr={ lambda ; w:f64[] x:f64[2]. let y:f64[2] = mul x w in (y,) } num_carry=0 num_consts=1 length=3 reverse=False unroll=1] f64[] f64[3,2]",
    ];
    for text in bodies {
        let e = Example::parse(text);
        keeps_no_operand(&|x| e.call(x), &e.avals());
    }
    // nor those of a loop that has an effect on the host
    let tell = Callback {
        kind: CallbackKind::Debug,
        callback: Callable { name: "tell".into(), host: None, make: Arc::new(|_, _| Arc::new(Deaf)) },
        ins: vec![f64s(&[2])],
        ordered: false,
        result_avals: vec![],
        vmap_method: None,
    };
    let telling = |x: &[Value]| {
        let step = |a: &[Value]| {
            ferrax_ir::bind(&tell.clone().into(), &a[..1])?;
            Ok(vec![&a[0] * &x[0]])
        };
        scan(&step, &[], &x[1..], 3, false)
    };
    keeps_no_operand(&telling, &[f64s(&[]), f64s(&[3, 2])]);
}
struct Deaf;
impl HostFn for Deaf {
    fn call(&self, _: &[&[u8]], _: &mut [&mut [u8]]) -> Result<(), ferrax_kernel::Error> {
        Ok(())
    }
}
fn keeps_no_operand(f: F, ins: &[Aval]) {
    let both = |x: &[Value]| {
        let (y, lin) = linearize(f, x)?;
        let cts = lin.transpose(&[Some(y[0].clone())])?;
        Ok(y.into_iter().chain(cts.into_iter().flatten()).collect())
    };
    let p = make_program(&both, ins).unwrap().0;
    assert_eq!(p.eqns()[0].n_out, 1, "{p}");
}

// ---- single rules ----

fn names(p: &Program) -> Vec<&'static str> {
    p.eqns().iter().map(|e| e.op.name()).collect()
}
/// The equations of an application with lanes on some operands.
fn lanes_of(text: &str, axes: &[Option<usize>]) -> Vec<&'static str> {
    let e = Example::parse(text);
    let ins: Vec<Aval> = e.avals().iter().zip(axes).map(|(a, d)| d.map_or(a.clone(), |d| a.batched(5, d))).collect();
    names(&make_program(&|x| vmap(&|x| e.call(x), x, axes, &[0]), &ins).unwrap().0)
}
#[test]
fn scalars_without_lanes_stay_scalars() {
    assert_eq!(lanes_of("clamp f64[] f64[3] f64[]", &[None, Some(0), None]), ["clamp"]);
    assert_eq!(lanes_of("random_fold_in key<fry>[] u32[]", &[None, Some(0)]), ["random_fold_in"]);
    assert_eq!(lanes_of("random_fold_in key<fry>[] u32[]", &[Some(0), None]), ["random_fold_in"]);
    assert_eq!(lanes_of("random_fold_in key<fry>[] u32[]", &[Some(0), Some(0)]), ["random_fold_in"]);
}
#[test]
fn a_while_that_all_lanes_leave_together_selects_nothing() {
    let text = "while[body_jaxpr={ lambda ; a:f64[] i:i32[]. let c:f64[] = sin a; j:i32[] = add i 1:i32[] in (c, j) } body_nconsts=0 cond_jaxpr={ lambda ; a:f64[] i:i32[]. let p:bool[] = lt i 4:i32[] in (p,) } cond_nconsts=0] f64[] i32[]";
    let e = Example::parse(text);
    let ins = [f64s(&[5]), Aval::new(Dtype::I32, &[])];
    let (p, _) = make_program(&|x| vmap(&|x| e.call(x), x, &[Some(0), None], &[0, 0]), &ins).unwrap();
    assert!(!p.to_string().contains("select_n"), "{p}");
}
#[test]
fn slopes_of_running_products_have_a_level_for_each_doubling() {
    let steps = |n: usize| {
        let e = Example::parse(&format!("cumprod[axis=0 reverse=False] f64[{n}]"));
        let f =
            |x: &[Value]| Ok(jvp(&|x| e.call(x), &x[..1], &[Some(x[1].clone())])?.1.into_iter().flatten().collect());
        names(&make_program(&f, &[f64s(&[n]), f64s(&[n])]).unwrap().0).len()
    };
    let more = [16, 32, 64].map(|n| steps(2 * n) - steps(n));
    assert!(more[0] > 0 && more.iter().all(|m| *m == more[0]), "{more:?} more steps for twice the elements");
}
#[test]
fn a_cotangent_that_nobody_asked_for_is_not_summed() {
    // f(w, x) = w x; w has no batch axis and no tangent, so the rule's cotangent for it is dropped
    let f = custom_vjp(
        "f",
        1,
        Arc::new(|a| Ok(vec![&a[0] * &a[1]])),
        Arc::new(|a| Ok(vec![&a[0] * &a[1], a[0].clone(), a[1].clone()])),
        Arc::new(|a| Ok(vec![&a[2] * &a[1], &a[2] * &a[0]])),
    );
    let (_, lin) = linearize(&|x| f(&[sc(3.0), x[0].clone()]), &[vec1(&[1.0, 2.0])]).unwrap();
    let lanes = |t: &[Value]| {
        let tangent = |t: &[Value]| Ok(lin.apply(&t[..1])?.into_iter().flatten().collect());
        vmap(&tangent, t, &[Some(0)], &[0])
    };
    let ct = arr(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (g, runs) = counting(|| linear_transpose(&lanes, &[f64s(&[3, 2])], &[Some(ct)]).unwrap());
    assert_eq!(nums(g[0].as_ref().unwrap()), [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
    assert!(!runs.contains_key("reduce_sum"), "{runs:?}");
}
