//! Random programs with nested control flow and transforms inside, through the whole matrix. `SEEDS=from..to` chooses.
use ferrax_testkit::api::*;
use ferrax_testkit::matrix;
use ferrax_testkit::rng::{Rng, seeds};
use std::rc::Rc;
use std::sync::Arc;

type B = Arc<Recipe>;
#[derive(Debug)]
enum Recipe {
    Id,
    Sin(B),
    Affine(B, f64, f64),
    MulX(B),
    Sum(B),
    Scan { body: B, n: usize, reverse: bool, xs: bool, out: usize, then: B },
    Cond { at: f64, t: B, f: B, then: B },
    While { below: f64, most: i64, body: B, then: B },
    CountWhile { n: i64, body: B, then: B },
    Jit(B, B),
    Grad(B, B),
    Jvp(B, B),
    Vmap(B, usize, B),
    CustomJvp(B, B),
    Slice(B),
    Checkpoint(B, B),
    CustomVjp(B, B),
}
use Recipe::*;

fn random(r: &mut Rng, depth: usize, inner: usize) -> B {
    if depth == 0 {
        return Arc::new(if r.below(3) == 0 { MulX(Arc::new(Id)) } else { Id });
    }
    let d = depth - 1;
    let n = match r.below(18) {
        0 => Sin(random(r, d, inner)),
        1 => Affine(random(r, d, inner), r.unit() * 1.5, r.unit()),
        2 => MulX(random(r, d, inner)),
        3 => Sum(random(r, d, inner)),
        4 | 5 => Scan {
            body: random(r, d, inner),
            n: r.below(4),
            reverse: r.below(2) == 0,
            xs: r.below(2) == 0,
            out: r.below(3),
            then: random(r, d, inner),
        },
        6 | 7 => Cond { at: r.unit() * 2.0, t: random(r, d, inner), f: random(r, d, inner), then: random(r, d, inner) },
        8 | 9 => While {
            below: 1.0 + r.unit() * 4.0,
            most: 1 + r.below(4) as i64,
            body: random(r, d, inner),
            then: random(r, d, inner),
        },
        10 => CountWhile { n: r.below(4) as i64, body: random(r, d, inner), then: random(r, d, inner) },
        11 => Jit(random(r, d, inner), random(r, d, inner)),
        12 if inner > 0 => Grad(random(r, d, inner - 1), random(r, d, inner)),
        13 if inner > 0 => Jvp(random(r, d, inner - 1), random(r, d, inner)),
        14 => Vmap(random(r, d, inner), r.below(2), random(r, d, inner)),
        15 => CustomJvp(random(r, d, 0), random(r, d, inner)),
        16 => Checkpoint(random(r, d, inner), random(r, d, inner)),
        17 if inner > 0 => CustomVjp(random(r, d, 0), random(r, d, inner)),
        _ => Slice(random(r, d, inner)),
    };
    Arc::new(n)
}
fn size(x: &Value) -> usize {
    x.shape()[0]
}
/// y is the running value, x an outer one that bodies close over; both f64[n].
fn ev(node: &B, y: &Value, x: &Value) -> Res<Value> {
    Ok(match &**node {
        Id => y.clone(),
        Sin(a) => sin(&ev(a, y, x)?),
        Affine(a, m, c) => ev(a, y, x)? * *m + *c,
        MulX(a) => ev(a, y, x)? * tanh(x),
        Sum(a) => {
            let v = ev(a, y, x)?;
            tanh(&(&v * &sum(&v)))
        }
        Slice(a) => {
            let v = ev(a, y, x)?;
            let i = convert(&(sum(&v) * 0.7), Dtype::I32);
            tanh(&dynamic_update(&v, &(dynamic_slice(&v, &[i], &[1]) * 1.1), &[int(0)]))
        }
        Scan { body, n, reverse, xs, out, then } => {
            let xs = if *xs { vec![broadcast(&sin(x), &[*n, size(x)], &[1])] } else { vec![] };
            let f = |a: &[Value]| {
                let v = tanh(&ev(body, &a[0], x)?);
                let v = a.get(2).map_or(v.clone(), |e| &v * e + 0.1);
                Ok(vec![v.clone(), &a[1] + &sum(&v), &v * &a[0]])
            };
            let r = scan(&f, &[y.clone(), k(0.0)], &xs, *n, *reverse)?;
            let v = match out {
                0 => r[0].clone(),
                1 => tanh(&(y * &r[1])),
                _ => sum_axis(&r[2], 0),
            };
            ev(then, &v, x)?
        }
        Cond { at, t, f, then } => {
            let p = lt(&sum(y), &k(*at));
            ev(
                then,
                &cond(
                    &p,
                    &|a| Ok(vec![ev(t, &a[0], x)?]),
                    &|a| Ok(vec![ev(f, &a[0], &a[0])?]),
                    std::slice::from_ref(y),
                )?[0],
                x,
            )?
        }
        While { below, most, body, then } => {
            let go = |a: &[Value]| Ok(vec![and(&lt(&sum(&(&a[0] * &a[0])), &k(*below)), &lt(&a[1], &int(*most)))]);
            let r = while_loop(
                &go,
                &|a| Ok(vec![tanh(&ev(body, &a[0], x)?) * 1.3 + 0.2, &a[1] + int(1)]),
                &[y.clone(), int(0)],
            )?;
            ev(then, &r[0], x)?
        }
        CountWhile { n, body, then } => {
            let r = while_loop(
                &|a| Ok(vec![lt(&a[1], &int(*n))]),
                &|a| Ok(vec![tanh(&ev(body, &a[0], x)?), &a[1] + int(1)]),
                &[y.clone(), int(0)],
            )?;
            ev(then, &r[0], x)?
        }
        CustomVjp(f, then) => {
            let (f, g, h) = (f.clone(), f.clone(), f.clone());
            let k = custom_vjp(
                "k",
                1,
                Arc::new(move |a| Ok(vec![ev(&f, &a[0], &a[1])?])),
                Arc::new(move |a| Ok(vec![ev(&g, &a[0], &a[1])?, a[0].clone(), a[1].clone()])),
                Arc::new(move |a| {
                    let (_, lin) = linearize(&|b| Ok(vec![ev(&h, &b[0], &b[1])?]), &a[..2])?;
                    let cts = lin.transpose(&[Some(a[2].clone())])?;
                    Ok(cts.into_iter().map(|t| t.unwrap_or(&a[2] * 0.0)).collect())
                }),
            );
            ev(then, &k(&[y.clone(), x.clone()])?[0], x)?
        }
        Checkpoint(f, then) => {
            let body: F = &|a| Ok(vec![ev(f, &a[0], x)?]);
            let policies = policies();
            let r = match policies.get(format!("{f:?}").len() % (policies.len() + 1)) {
                Some(policy) => checkpoint_keeping(policy, body, std::slice::from_ref(y))?,
                None => checkpoint(body, std::slice::from_ref(y))?,
            };
            ev(then, &r[0], x)?
        }
        Jit(f, then) => {
            let (f, x2) = (f.clone(), x.clone());
            let g = jit(move |a: &[Value]| Ok(vec![ev(&f, &a[0], &x2)?, a[0].clone()]));
            let r = g(std::slice::from_ref(y))?;
            ev(then, &(&r[0] + &r[1]), x)?
        }
        Grad(f, then) => {
            let g = grad1(&|z| Ok(sum(&(ev(f, z, x)? * y))), y)?;
            ev(then, &tanh(&g), x)?
        }
        Jvp(f, then) => {
            let g = jvp1(&|z| ev(f, z, x), y, x)?.1;
            ev(then, &tanh(&g), x)?
        }
        Vmap(f, axis, then) => {
            let rows = broadcast(y, if *axis == 0 { [2, size(y)] } else { [size(y), 2] }.as_slice(), &[1 - axis]);
            let r = vmap(
                &|a| Ok(vec![ev(f, &(&a[0] * &a[1]), x)?]),
                &[rows, vec1(&[0.8, -0.5])],
                &[Some(*axis), Some(0)],
                &[*axis],
            )?;
            ev(then, &sum_axis(&r[0], *axis), x)?
        }
        CustomJvp(f, then) => {
            let (f, g) = (f.clone(), f.clone());
            let h = custom_jvp(
                "h",
                Arc::new(move |a| Ok(vec![ev(&f, &a[0], &a[1])?])),
                Arc::new(move |a| {
                    let (y, dy) =
                        jvp(&|b| Ok(vec![ev(&g, &b[0], &b[1])?]), &a[..2], &[Some(a[2].clone()), Some(a[3].clone())])?;
                    let dy = dy[0].clone().unwrap_or(&a[2] * 0.0);
                    Ok(vec![y[0].clone(), dy])
                }),
            );
            ev(then, &h(&[y.clone(), x.clone()])?[0], x)?
        }
    })
}

#[test]
fn random_programs() {
    let depth = std::env::var("DEPTH").map_or(3, |d| d.parse().unwrap());
    for seed in seeds(40) {
        let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..5).for_each(|_| {
            r.below(2);
        });
        let node = random(&mut r, depth, 1);
        if std::env::var("SHOW").is_ok() {
            eprintln!("seed {seed}: {node:?}");
        }
        let forward = !format!("{node:?}").contains("CustomVjp");
        let f: matrix::S = Rc::new(move |x| Ok(sum(&(ev(&node, x, x)? * sin(x)))));
        matrix::matrix(&format!("seed {seed}"), forward, f, &[0.31, -0.72]);
    }
}

/// jit(T f) runs the same operations in the same order as T f. T(jit f) may add cotangents in another order.
#[test]
fn bit_for_bit() {
    use matrix::{get, grad, hess, jit1, vm};
    let bits = |f: &matrix::S, x: &Value| get("bits", catch(|| f(x))).clone();
    let same = |a: &Value, b: &Value| nums(a).iter().zip(nums(b)).all(|(a, b)| a.to_bits() == b.to_bits());
    let (mut inner, mut n) = (0, 0);
    for seed in 1..200u64 {
        let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..5).for_each(|_| {
            r.below(2);
        });
        let node = random(&mut r, 3, 1);
        let f: matrix::S = Rc::new(move |x| Ok(sum(&(ev(&node, x, x)? * sin(x)))));
        let (x, xs) = (vec1(&[0.31, -0.72]), arr(&[3, 2], &[0.31, -0.72, 0.1, 0.2, 0.3, -0.4]));
        for (t, x) in [
            (f.clone(), &x),
            (grad(f.clone()), &x),
            (hess(f.clone()), &x),
            (vm(grad(f.clone())), &xs),
            (grad(matrix::total(vm(f.clone()))), &xs),
        ] {
            assert!(same(&bits(&t, x), &bits(&jit1(t), x)), "seed {seed}");
        }
        n += 1;
        inner += !same(&bits(&grad(f.clone()), &x), &bits(&grad(jit1(f)), &x)) as usize;
    }
    eprintln!("grad(f) and grad(jit f) differ in a bit for {inner} of {n} random programs");
}
