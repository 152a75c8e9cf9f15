//! One function under every composition of transforms, against finite differences, loops, and its own text.
use crate::api::*;
use ferrax_ir::{Fun, Param};
use std::collections::HashMap;
use std::rc::Rc;

pub type S = Rc<dyn Fn(&Value) -> Res<Value>>;

pub fn close(a: &[f64], b: &[f64], tol: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: {a:?} against {b:?}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tol * (1.0 + x.abs().max(y.abs())), "{what}: {a:?} against {b:?}");
    }
}
pub fn eval(f: &S, x: &[f64]) -> f64 {
    nums(&f(&vec1(x)).unwrap())[0]
}
pub fn fd(f: &dyn Fn(&[f64]) -> Vec<f64>, x: &[f64]) -> Vec<Vec<f64>> {
    let h = 1e-5;
    (0..x.len())
        .map(|i| {
            let (mut a, mut b) = (x.to_vec(), x.to_vec());
            a[i] += h;
            b[i] -= h;
            f(&a).iter().zip(f(&b)).map(|(p, m)| (p - m) / (2.0 * h)).collect()
        })
        .collect()
}
pub fn get<T>(what: &str, r: Res<T>) -> T {
    r.unwrap_or_else(|e| panic!("{what}: {e:?}"))
}
pub fn jit1(f: S) -> S {
    let g = jit(move |a: &[Value]| Ok(vec![f(&a[0])?]));
    Rc::new(move |x| Ok(g(std::slice::from_ref(x))?.remove(0)))
}
pub fn grad(f: S) -> S {
    Rc::new(move |x| grad1(&*f, x))
}
pub fn hess(f: S) -> S {
    Rc::new(move |x| hessian(&*f, x))
}
pub fn vm(f: S) -> S {
    Rc::new(move |x| vmap1(&*f, x, 0, 0))
}
pub fn total(f: S) -> S {
    Rc::new(move |x| Ok(sum(&f(x)?)))
}
/// The functions of the host language that a program holds, by name.
pub(crate) fn functions(p: &Program, out: &mut HashMap<String, Fun>) {
    for e in p.eqns() {
        for (_, v, _) in e.op.params() {
            match v {
                Param::Fun(f) => out.insert(f.name().to_string(), f),
                Param::Policy(p) if p.host().is_some() => {
                    out.insert(p.name().into(), Fun::user(p.name(), |_| Ok([].into_iter().collect())))
                }
                _ => None,
            };
        }
        e.op.bodies().into_iter().for_each(|b| functions(b, out));
    }
}
/// parse(print(p)) prints as p does: all of it but which values are weak. And p verifies.
pub fn text_round_trip(what: &str, f: &S, shape: &[usize]) {
    let (p, _) = get(what, catch(|| make_program(&|a| Ok(vec![f(&a[0])?]), &[f64s(shape)])));
    get(what, ferrax_ir::verify::verify(&p));
    let t = p.to_string();
    let mut funs = HashMap::new();
    functions(&p, &mut funs);
    let q = ferrax_ir::text::parse_with(&t, &funs).unwrap_or_else(|e| panic!("{what}: {e:?}\n{t}"));
    assert!(t == q.to_string(), "{what}: text does not read back\n{t}\n{q}");
}

/// The whole matrix for one function R^n -> R.
pub fn matrix(name: &str, forward: bool, f: S, x: &[f64]) {
    let n = x.len();
    let xv = vec1(x);
    let w = |s: &str| format!("{name}: {s}");
    let g_fd: Vec<f64> = fd(&|x| vec![eval(&f, x)], x).into_iter().map(|v| v[0]).collect();
    // first order
    let g = nums(&get(&w("grad"), catch(|| grad1(&*f, &xv))));
    close(&g, &g_fd, 1e-6, &w("grad"));
    let gs = [
        ("grad(jit)", grad(jit1(f.clone()))),
        ("jit(grad)", jit1(grad(f.clone()))),
        ("jit(grad(jit))", jit1(grad(jit1(f.clone())))),
    ];
    for (s, t) in gs {
        close(&nums(&get(&w(s), catch(|| t(&xv)))), &g, 1e-12, &w(s));
    }
    if forward {
        let dx: Vec<f64> = (0..n).map(|i| 0.3 + i as f64).collect();
        let want: f64 = dx.iter().zip(&g).map(|(a, b)| a * b).sum();
        let jf = |f: S| -> S {
            let dx = vec1(&dx);
            Rc::new(move |x| Ok(jvp1(&*f, x, &dx)?.1))
        };
        for (s, t) in [("jvp", jf(f.clone())), ("jvp(jit)", jf(jit1(f.clone()))), ("jit(jvp)", jit1(jf(f.clone())))] {
            close(&nums(&get(&w(s), catch(|| t(&xv)))), &[want], 1e-11, &w(s));
        }
        // reverse over forward: grad of x -> df(x).dx
        let h_fd = fd(&|x| nums(&grad1(&*f, &vec1(x)).unwrap()), x);
        let hv: Vec<f64> = h_fd.iter().map(|row| row.iter().zip(&dx).map(|(a, b)| a * b).sum()).collect();
        let rf = grad(jf(f.clone()));
        close(&nums(&get(&w("grad(jvp)"), catch(|| rf(&xv)))), &hv, 1e-5, &w("grad(jvp)"));
    }
    // second order: forward over reverse, reverse over reverse
    let h_fd: Vec<f64> = fd(&|x| nums(&grad1(&*f, &vec1(x)).unwrap()), x).concat();
    let h = nums(&get(&w("hessian"), catch(|| hessian(&*f, &xv))));
    close(&h, &h_fd, 1e-5, &w("hessian"));
    let rr: S = {
        let g = grad(f.clone());
        Rc::new(move |x| jacrev(&*g, x))
    };
    for (s, t) in [
        ("jacrev(grad)", rr.clone()),
        ("jit(hessian)", jit1(hess(f.clone()))),
        ("hessian(jit)", hess(jit1(f.clone()))),
        (
            "jit(jacrev(grad(jit)))",
            jit1({
                let g = grad(jit1(f.clone()));
                Rc::new(move |x| jacrev(&*g, x))
            }),
        ),
    ] {
        close(&nums(&get(&w(s), catch(|| t(&xv)))), &h, 1e-10, &w(s));
    }
    // batches: three lanes that may branch and iterate differently
    let rows: Vec<Vec<f64>> = [0.0, 0.45, -0.35].iter().map(|d| x.iter().map(|v| v + d).collect()).collect();
    let xs = arr(&[3, n], &rows.concat());
    let each = |f: &S| rows.iter().flat_map(|r| nums(&f(&vec1(r)).unwrap())).collect::<Vec<f64>>();
    let (want, want_g, want_h) = (each(&f), each(&grad(f.clone())), each(&hess(f.clone())));
    for (s, t, want, tol) in [
        ("vmap", vm(f.clone()), &want, 1e-12),
        ("jit(vmap)", jit1(vm(f.clone())), &want, 1e-12),
        ("vmap(jit)", vm(jit1(f.clone())), &want, 1e-12),
        ("vmap(grad)", vm(grad(f.clone())), &want_g, 1e-11),
        ("jit(vmap(grad))", jit1(vm(grad(f.clone()))), &want_g, 1e-11),
        ("vmap(jit(grad))", vm(jit1(grad(f.clone()))), &want_g, 1e-11),
        ("grad(sum(vmap))", grad(total(vm(f.clone()))), &want_g, 1e-11),
        ("jit(grad(sum(vmap(jit))))", jit1(grad(total(vm(jit1(f.clone()))))), &want_g, 1e-11),
        ("jit(vmap(hessian))", jit1(vm(hess(f.clone()))), &want_h, 1e-9),
        ("vmap(hessian)", vm(hess(f.clone())), &want_h, 1e-9),
    ] {
        close(&nums(&get(&w(s), catch(|| t(&xs)))), want, tol, &w(s));
    }
    // nested batches, and other axes
    let xt = transpose(&xs, &[1, 0]);
    close(&nums(&get(&w("vmap axis 1"), catch(|| vmap1(&*f, &xt, 1, 0)))), &want, 1e-12, &w("vmap axis 1"));
    let gt = get(&w("vmap(grad) in 1 out 1"), catch(|| vmap1(&*grad(f.clone()), &xt, 1, 1)));
    close(&nums(&transpose(&gt, &[1, 0])), &want_g, 1e-11, &w("vmap(grad) in 1 out 1"));
    let twice = arr(&[2, 3, n], &[rows.concat(), rows.concat()].concat());
    close(
        &nums(&get(&w("vmap(vmap(grad))"), catch(|| vm(vm(grad(f.clone())))(&twice)))),
        &[want_g.clone(), want_g.clone()].concat(),
        1e-11,
        &w("vmap(vmap(grad))"),
    );
    // text
    for (s, t, shape) in [
        ("", f.clone(), vec![n]),
        ("grad", grad(f.clone()), vec![n]),
        ("hessian", hess(f.clone()), vec![n]),
        ("vmap(grad)", vm(grad(f.clone())), vec![3, n]),
        ("jit(grad(jit))", jit1(grad(jit1(f.clone()))), vec![n]),
    ] {
        text_round_trip(&w(s), &t, &shape);
    }
}
