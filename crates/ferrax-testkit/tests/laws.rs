//! Every function of a list, under every composition of transforms: see `support/matrix.rs`.
use ferrax_testkit::api::*;
use ferrax_testkit::matrix;
use matrix::{S, close, jit1, matrix};
use std::rc::Rc;
use std::sync::Arc;

fn s(f: impl Fn(&Value) -> Res<Value> + 'static) -> S {
    Rc::new(f)
}
fn at(x: &Value, i: i64) -> Value {
    reshape(&dynamic_slice(x, &[int(i)], &[1]), &[])
}
const X: [f64; 3] = [0.7, 1.3, 0.4];

#[test]
fn pointwise_rows() {
    let f = s(|x| {
        let y = (sin(x) * cos(x) + exp(&(x * 0.3)) / (1.0 + x * x)) - log(&(x + 2.0)) * tanh(x)
            + sqrt(&(x + 1.0)) * powi(x, 3)
            + powi(x, -2)
            - -x;
        Ok(sum(&y))
    });
    matrix("pointwise", true, f, &X);
}
#[test]
fn scalars_meet_arrays() {
    matrix("scalar * array", true, s(|x| Ok(sum(&(at(x, 1) * sin(x) + at(x, 0) / x)))), &X);
    matrix("scalar - array", true, s(|x| Ok(sum(&((at(x, 1) - x) * (x - at(x, 2)))))), &X);
    matrix("scalar only", true, s(|x| Ok(sin(&(at(x, 1) * at(x, 2))))), &X);
    matrix("literal", true, s(|x| Ok(sum(&(2.0 / (x + 1.0) - 3.0 * x)))), &X);
}
#[test]
fn stop() {
    let f = s(|x| Ok(sum(&(stop_gradient(&sin(x)) * x))));
    let g = nums(&grad1(&*f, &vec1(&X)).unwrap());
    close(&g, &X.map(f64::sin), 1e-12, "stop_gradient");
}
#[test]
fn shapes() {
    matrix(
        "shapes",
        true,
        s(|x| {
            let m = broadcast(x, &[2, 3, 2], &[1]) * iota(Dtype::F64, &[2, 3, 2], 2);
            let t = transpose(&m, &[2, 0, 1]);
            let r = reshape(&t, &[4, 3]);
            let k = reshape(&broadcast(&reshape(x, &[1, 3]), &[4, 3], &[0, 1]), &[4, 3]);
            Ok(sum(&sin(&sum_axis(&(r * k), 1))))
        }),
        &X,
    );
}
#[test]
fn dots() {
    matrix(
        "matmul",
        true,
        s(|x| {
            let w = arr(&[3, 2], &[0.1, 0.2, -0.3, 0.4, 0.5, -0.6]);
            let h = tanh(&matmul(&reshape(x, &[1, 3]), &w));
            Ok(sum(&matmul(&h, &(transpose(&w, &[1, 0]) * x_row(x)))))
        }),
        &X,
    );
    matrix(
        "dot_general with batch axes",
        true,
        s(|x| {
            let a = broadcast(x, &[2, 3, 2], &[1]) * iota(Dtype::F64, &[2, 3, 2], 0);
            let b = broadcast(&sin(x), &[3, 4, 2], &[0]);
            // a[i,k,b] b[k,j,b] -> [b,i,j]
            Ok(sum(&powi(&dot_general(&a, &b, &[1], &[0], &[2], &[2]), 2)))
        }),
        &X,
    );
}
#[test]
fn dot_contracting_two_axes_out_of_order() {
    matrix(
        "dot of two axes",
        true,
        s(|x| {
            let a = broadcast(x, &[2, 3, 4], &[1]) * iota(Dtype::F64, &[2, 3, 4], 2) + iota(Dtype::F64, &[2, 3, 4], 0);
            let b = broadcast(&sin(x), &[3, 2, 5], &[0]) + iota(Dtype::F64, &[3, 2, 5], 2);
            Ok(sum(&tanh(&(dot_general(&a, &b, &[0, 1], &[1, 0], &[], &[]) * 0.01))))
        }),
        &X,
    );
}
fn x_row(x: &Value) -> Value {
    broadcast(x, &[2, 3], &[1])
}
#[test]
fn slices() {
    matrix(
        "slice, update",
        true,
        s(|x| {
            let i = convert(&(at(x, 1) * 1.2), Dtype::I32); // a traced start: batched under vmap
            let y = dynamic_update(&sin(x), &(dynamic_slice(x, &[i.clone()], &[2]) * 3.0), &[int(0)]);
            Ok(sum(&(y * x)) + reshape(&dynamic_slice(&exp(x), &[i], &[1]), &[]))
        }),
        &X,
    );
    matrix(
        "update at a traced place",
        true,
        s(|x| {
            Ok(sum(&powi(
                &dynamic_update(x, &sin(&dynamic_slice(x, &[int(2)], &[1])), &[convert(&(at(x, 1) * 1.2), Dtype::I32)]),
                3,
            )))
        }),
        &X,
    );
}
#[test]
fn selects() {
    matrix("select", true, s(|x| Ok(sum(&select(&lt(x, &k(1.0)), &(x * x), &sin(x))))), &X);
    matrix("select with a literal", true, s(|x| Ok(sum(&select(&lt(x, &k(1.0)), &k(0.5), &sin(x))))), &X);
    matrix("select by a scalar", true, s(|x| Ok(sum(&select(&lt(&at(x, 0), &k(1.0)), &(x * x), &sin(x))))), &X);
}
#[test]
fn calls() {
    let inner = Rc::new(jit(|a: &[Value]| Ok(vec![sin(&a[0]) * &a[1], exp(&a[0])])));
    let i2 = inner.clone();
    matrix(
        "jit in f",
        true,
        s(move |x| {
            let y = i2(&[x.clone(), x * 2.0])?;
            Ok(sum(&(&y[0] * &y[1])))
        }),
        &X,
    );
    // a jitted closure over a tracer
    matrix(
        "jit over a closure",
        true,
        s(|x| {
            let z = x * 2.0;
            let f = jit(move |a: &[Value]| Ok(vec![&a[0] * sin(&z)]));
            Ok(sum(&f(&[exp(x)])?[0]))
        }),
        &X,
    );
    // an output that is an input, an output twice, an output that is constant
    matrix(
        "jit forwards",
        true,
        s(|x| {
            let f = jit(|a: &[Value]| Ok(vec![a[0].clone(), a[0].clone(), k(2.0), a[1].clone()]));
            let y = f(&[sin(x), x.clone()])?;
            Ok(sum(&(&y[0] * &y[1] * &y[2] * &y[3])))
        }),
        &X,
    );
}
fn rnn(x: &Value) -> Res<Value> {
    let w = sin(x); // a const of the loop that is differentiated
    let y = scan(
        &|a| {
            let h = tanh(&(&a[0] * &w + &a[1]));
            Ok(vec![h.clone(), &h * &a[0]])
        },
        &[x * 0.5],
        &[arr(&[4, 3], &[0.1; 12]) * broadcast(x, &[4, 3], &[1])],
        4,
        false,
    )?;
    Ok(sum(&y[0]) + sum(&powi(&y[1], 2)))
}
#[test]
fn scans() {
    matrix("scan", true, s(rnn), &X);
    matrix(
        "scan reverse",
        true,
        s(|x| {
            let y = scan(&|a| Ok(vec![&a[0] * &a[1] + 0.1, sin(&a[0])]), &[k(1.0)], &[x.clone()], 3, true)?;
            Ok(&y[0] + &sum(&(&y[1] * x)))
        }),
        &X,
    );
    // a carry whose tangent is zero at first and not later; a counter; a carry that is never differentiated
    matrix(
        "scan, late tangents",
        true,
        s(|x| {
            let zero = vec1(&X);
            let f = |a: &[Value]| {
                Ok(vec![&a[0] + &a[1], &a[1] * 1.0 + x * convert(&a[2], Dtype::F64), &a[2] + int(1), cos(&a[3])])
            };
            let y = scan(&f, &[zero.clone(), zero.clone(), int(0), zero], &[], 4, false)?;
            Ok(sum(&(&y[0] * &y[1] * &y[3])))
        }),
        &X,
    );
    matrix(
        "scan of no steps",
        true,
        s(|x| {
            let y = scan(&|a| Ok(vec![sin(&a[0]), a[0].clone()]), &[x.clone()], &[], 0, false)?;
            Ok(sum(&(&y[0] * &y[0])) + sum(&y[1]))
        }),
        &X,
    );
    matrix(
        "fori over slices",
        true,
        s(|x| {
            let f = |a: &[Value]| {
                Ok(vec![&a[0] + int(1), &a[1] * 0.5 + sin(&reshape(&dynamic_slice(x, &[a[0].clone()], &[1]), &[]))])
            };
            Ok(scan(&f, &[int(0), k(0.0)], &[], 3, false)?.remove(1))
        }),
        &X,
    );
}
fn newton(x: &Value) -> Res<Value> {
    // sqrt by iteration, until close: lanes stop at different times
    let f = |a: &[Value]| {
        let y = 0.5 * (&a[0] + x / &a[0]);
        Ok(vec![y.clone(), sum(&powi(&(&y * &y - x), 2)), &a[2] + int(1)])
    };
    let y = while_loop(&|a| Ok(vec![gt(&a[1], &k(1e-25))]), &f, &[x * 0.9 + 1.0, k(1.0), int(0)])?;
    Ok(sum(&(&y[0] * x)))
}
#[test]
fn whiles() {
    matrix("while", true, s(newton), &X);
    let close_to = nums(&grad1(&newton, &vec1(&X)).unwrap());
    close(&close_to, &X.map(|x| 1.5 * x.sqrt()), 1e-9, "d x^1.5 by Newton");
    matrix(
        "while that does not start",
        true,
        s(|x| Ok(sum(&while_loop(&|a| Ok(vec![gt(&sum(&a[0]), &k(100.0))]), &|a| Ok(vec![sin(&a[0])]), &[x * x])?[0]))),
        &X,
    );
    matrix(
        "while, doubling",
        true,
        s(|x| {
            Ok(sum(&while_loop(
                &|a| Ok(vec![lt(&sum(&a[0]), &k(20.0))]),
                &|a| Ok(vec![&a[0] * 1.5 + sin(x)]),
                &[x * x],
            )?[0]))
        }),
        &X,
    );
}
fn branch(x: &Value) -> Res<Value> {
    let p = lt(&sum(x), &k(2.6));
    let z = exp(x);
    cond(
        &p,
        &|a| Ok(vec![sum(&(sin(&a[0]) * &z)), k(1.0)]),
        &|a| Ok(vec![sum(&powi(&a[0], 3)), sum(&a[1])]),
        &[x.clone(), x * 3.0],
    )
    .map(|y| &y[0] * &y[1])
}
#[test]
fn conds() {
    matrix("cond", true, s(branch), &X);
    matrix(
        "switch",
        true,
        s(|x| {
            Ok(switch(
                &convert(&(at(x, 1) * 1.1), Dtype::I32),
                &[&|a| Ok(vec![sum(&sin(&a[0]))]), &|a| Ok(vec![sum(&(&a[0] * &a[0]))]), &|_| Ok(vec![k(7.0)])],
                &[x.clone()],
            )?
            .remove(0))
        }),
        &X,
    );
}
#[test]
fn nests() {
    matrix(
        "cond in scan",
        true,
        s(|x| {
            let f = |a: &[Value]| {
                let y = cond(
                    &lt(&sum(&a[0]), &k(3.0)),
                    &|b| Ok(vec![&b[0] * 1.3 + sin(x)]),
                    &|b| Ok(vec![cos(&b[0])]),
                    &[a[0].clone()],
                )?;
                Ok(vec![y[0].clone(), sum(&y[0])])
            };
            let y = scan(&f, &[x.clone()], &[], 5, false)?;
            Ok(sum(&y[0]) * sum(&y[1]))
        }),
        &X,
    );
    matrix(
        "scan in cond",
        true,
        s(|x| {
            Ok(cond(&lt(&at(x, 0), &k(0.9)), &|a| Ok(vec![rnn(&a[0])?]), &|a| Ok(vec![sum(&a[0])]), &[x.clone()])?
                .remove(0))
        }),
        &X,
    );
    matrix(
        "scan in scan",
        true,
        s(|x| {
            let f = |a: &[Value]| {
                let y = scan(&|b| Ok(vec![sin(&(&b[0] * x)), &b[0] * &a[1]]), &[a[0].clone()], &[], 2, false)?;
                Ok(vec![y[0].clone(), sum(&y[1])])
            };
            let y = scan(&f, &[x.clone()], &[x * x], 3, false)?;
            Ok(sum(&y[0]) + sum(&(&y[1] * x)))
        }),
        &X,
    );
    matrix(
        "while in scan",
        true,
        s(|x| {
            let f = |a: &[Value]| {
                Ok(vec![
                    while_loop(
                        &|b| Ok(vec![lt(&sum(&b[0]), &k(9.0))]),
                        &|b| Ok(vec![&b[0] * 1.4 + sin(&(x * &a[0]))]),
                        &[a[0].clone()],
                    )?[0]
                        .clone()
                        * 0.3,
                ])
            };
            Ok(sum(&scan(&f, &[x.clone()], &[], 3, false)?[0]))
        }),
        &X,
    );
    matrix(
        "scan in while",
        true,
        s(|x| {
            let step = |a: &[Value]| {
                Ok(vec![scan(&|b| Ok(vec![&b[0] * 1.1 + sin(x) * 0.3]), &[a[0].clone()], &[], 2, false)?.remove(0)])
            };
            Ok(sum(&while_loop(&|a| Ok(vec![lt(&sum(&a[0]), &k(9.0))]), &step, &[x.clone()])?[0]))
        }),
        &X,
    );
    matrix(
        "while in while",
        true,
        s(|x| {
            let inner = |a: &[Value]| {
                Ok(vec![
                    while_loop(
                        &|b| Ok(vec![lt(&sum(&b[0]), &k(6.0))]),
                        &|b| Ok(vec![&b[0] * 1.4 + sin(x)]),
                        &[&a[0] * 0.4],
                    )?
                    .remove(0),
                    &a[1] + 1.0 + 0.1 * sum(&sin(x)),
                ])
            };
            let y = while_loop(&|a| Ok(vec![lt(&a[1], &k(3.0))]), &inner, &[x.clone(), k(0.0)])?;
            Ok(sum(&y[0]) * &y[1])
        }),
        &X,
    );
    matrix(
        "while in cond",
        true,
        s(|x| {
            Ok(cond(
                &lt(&at(x, 0), &k(0.9)),
                &|a| Ok(vec![newton(&a[0])?]),
                &|a| Ok(vec![sum(&sin(&a[0]))]),
                &[x.clone()],
            )?
            .remove(0))
        }),
        &X,
    );
    matrix(
        "cond in while in jit",
        true,
        jit1(s(|x| {
            let f = |a: &[Value]| {
                cond(
                    &lt(&sum(&a[0]), &k(4.0)),
                    &|b| Ok(vec![&b[0] * 1.3 + sin(x)]),
                    &|b| Ok(vec![&b[0] + exp(x) * 0.5]),
                    &[a[0].clone()],
                )
            };
            Ok(sum(&while_loop(&|a| Ok(vec![lt(&sum(&a[0]), &k(9.0))]), &f, &[x.clone()])?[0]))
        })),
        &X,
    );
}
fn my_sin() -> impl Fn(&[Value]) -> Res<Vec<Value>> {
    custom_jvp("my_sin", Arc::new(|a| Ok(vec![sin(&a[0])])), Arc::new(|a| Ok(vec![sin(&a[0]), cos(&a[0]) * &a[1]])))
}
fn my_mul() -> impl Fn(&[Value]) -> Res<Vec<Value>> {
    custom_vjp(
        "my_mul",
        1,
        Arc::new(|a| Ok(vec![&a[0] * &a[1]])),
        Arc::new(|a| Ok(vec![&a[0] * &a[1], a[0].clone(), a[1].clone()])),
        Arc::new(|a| Ok(vec![&a[2] * &a[1], &a[2] * &a[0]])),
    )
}
#[test]
fn customs() {
    matrix("custom_jvp", true, s(|x| Ok(sum(&(&my_sin()(&[x * 2.0])?[0] * x)))), &X);
    matrix("custom_vjp", false, s(|x| Ok(sum(&my_mul()(&[sin(x), x.clone()])?[0]))), &X);
    matrix(
        "custom_vjp, one operand without lanes",
        false,
        s(|x| Ok(sum(&vmap(&|a| my_mul()(a), &[x * iota(Dtype::F64, &[3], 0), at(x, 0)], &[Some(0), None], &[0])?[0]))),
        &X,
    );
    matrix(
        "custom in scan in jit",
        true,
        jit1(s(|x| Ok(sum(&scan(&|a| my_sin()(&[&a[0] * x]), &[x.clone()], &[], 3, false)?[0])))),
        &X,
    );
    matrix(
        "custom_vjp in scan",
        false,
        s(|x| Ok(sum(&scan(&|a| my_mul()(&[a[0].clone(), sin(x)]), &[x.clone()], &[], 3, false)?[0]))),
        &X,
    );
    // a rule may loop over primals and tangents together
    let pow5 = || {
        custom_jvp(
            "pow5",
            Arc::new(|a| Ok(vec![powi(&a[0], 5)])),
            Arc::new(|a| {
                let y = scan(
                    &|b| Ok(vec![&b[0] * &b[2], &b[1] * &b[2] + &b[0] * &b[3], b[2].clone(), b[3].clone()]),
                    &[a[0].clone(), a[1].clone(), a[0].clone(), a[1].clone()],
                    &[],
                    4,
                    false,
                )?;
                Ok(y[..2].to_vec())
            }),
        )
    };
    matrix("custom_jvp with a loop in its rule", true, s(move |x| Ok(sum(&pow5()(&[x.clone()])?[0]))), &X);
}
#[test]
fn transforms_inside() {
    matrix("grad in f", true, s(|x| Ok(sum(&(grad1(&|y| Ok(sum(&(sin(y) * x))), x)? * x)))), &X);
    matrix("perturbations", true, s(|x| Ok(sum(&(x * grad1(&|y| Ok(sum(&(x + y))), x)?)))), &X);
    matrix("jvp in f", true, s(|x| Ok(sum(&jvp1(&|y| Ok(powi(y, 3) * x), x, &sin(x))?.1))), &X);
    matrix("vmap in f", true, s(|x| Ok(sum(&vmap1(&|y| Ok(y * x), x, 0, 1)?))), &X);
    matrix(
        "vmap(grad(scan)) in f",
        true,
        s(|x| {
            Ok(sum(&vmap1(
                &|y| grad1(&|z| Ok(scan(&|a| Ok(vec![sin(&(&a[0] * y))]), &[z.clone()], &[], 3, false)?.remove(0)), y),
                x,
                0,
                0,
            )?))
        }),
        &X,
    );
    matrix(
        "grad(while) in scan",
        true,
        s(|x| {
            let step = |a: &[Value]| {
                Ok(vec![
                    grad1(
                        &|z| {
                            Ok(sum(&while_loop(
                                &|b| Ok(vec![lt(&sum(&b[0]), &k(9.0))]),
                                &|b| Ok(vec![&b[0] * &b[0] * 0.5 + x]),
                                &[z + 1.0],
                            )?[0]))
                        },
                        &a[0],
                    )? * 0.1,
                ])
            };
            Ok(sum(&scan(&step, &[x.clone()], &[], 2, false)?[0]))
        }),
        &X,
    );
    matrix("hessian in f", true, s(|x| Ok(sum(&powi(&hessian(&|y| Ok(sum(&(sin(y) * x * y))), x)?, 2)))), &X);
}
#[test]
fn checkpoints() {
    matrix(
        "checkpoint",
        true,
        s(|x| Ok(sum(&checkpoint(&|a| Ok(vec![sin(&sin(&a[0])) * x, exp(&a[0])]), &[x * 1.5])?[0]))),
        &X,
    );
    matrix(
        "checkpoint in scan",
        true,
        s(|x| {
            Ok(sum(
                &scan(&|a| checkpoint(&|b| Ok(vec![sin(&sin(&b[0])) * x]), &a[..1]), &[x.clone()], &[], 3, false)?[0]
            ))
        }),
        &X,
    );
    matrix(
        "checkpoint of scan, while, cond",
        true,
        s(|x| Ok(checkpoint(&|a| Ok(vec![rnn(&a[0])? + newton(&a[0])? * branch(x)?]), &[x.clone()])?.remove(0))),
        &X,
    );
}
#[test]
fn checkpoints_that_keep_some() {
    for policy in policies() {
        let keep = Arc::new(move |f: F, x: &Value| -> Res<Value> {
            Ok(checkpoint_keeping(&policy, f, std::slice::from_ref(x))?.remove(0))
        });
        let (whole, step) = (keep.clone(), keep);
        matrix(
            "checkpoint of scan, while, cond with a policy",
            true,
            s(move |x| whole(&|a| Ok(vec![rnn(&a[0])? + newton(&sin(&a[0]))? * branch(&sin(x))?]), x)),
            &X,
        );
        matrix(
            "checkpoints in a scan with a policy",
            true,
            s(move |x| {
                let body: F = &|a| Ok(vec![step(&|b| Ok(vec![sin(&(sin(&b[0]) * sin(x)))]), &a[0])?]);
                Ok(sum(&scan(body, &[x.clone()], &[], 3, false)?[0]))
            }),
            &X,
        );
    }
}
#[test]
fn named_axes() {
    let norm = |x: &Value| -> Res<Value> {
        Ok(vmap_named(
            Some("i"),
            &|a| Ok(vec![&a[0] / &psum(&(&a[0] * &a[0]), "i") * convert(&(axis_index("i") + int(1)), Dtype::F64)]),
            std::slice::from_ref(x),
            &[Some(0)],
            &[0],
        )?
        .remove(0))
    };
    let out = nums(&norm(&vec1(&[1.0, 2.0])).unwrap());
    close(&out, &[0.2, 0.8], 1e-12, "norm");
    matrix("psum in vmap", true, s(move |x| Ok(sum(&sin(&norm(x)?)))), &X);
    let deep = |x: &Value| {
        let inner = |y: &Value| {
            jit(|a: &[Value]| {
                scan(
                    &|c| Ok(vec![sin(&c[0]) + psum(&c[0], "i") * 0.1 + convert(&axis_index("i"), Dtype::F64)]),
                    &[a[0].clone()],
                    &[],
                    3,
                    false,
                )
            })(std::slice::from_ref(y))
        };
        Ok(sum(&vmap_named(Some("i"), &|a| inner(&a[0]), std::slice::from_ref(x), &[Some(0)], &[0])?[0]))
    };
    matrix("psum in scan in jit in vmap", true, s(deep), &X);
    // only the named vmap answers, from outside another one, and without operands that have lanes
    let two = |x: &Value| {
        vmap_named(
            Some("i"),
            &|a| {
                Ok(vec![
                    vmap_named(
                        Some("j"),
                        &|b| Ok(vec![&b[0] * psum(&a[1], "i") + psum(&k(1.0), "j")]),
                        &a[..1],
                        &[Some(0)],
                        &[0],
                    )?
                    .remove(0),
                ])
            },
            &[x.clone(), vec1(&[1.0, 2.0])],
            &[Some(0), Some(0)],
            &[0],
        )
    };
    close(&nums(&two(&arr(&[2, 2], &[1.0, 2.0, 3.0, 4.0])).unwrap()[0]), &[5.0, 8.0, 11.0, 14.0], 1e-12, "two axes");
}
