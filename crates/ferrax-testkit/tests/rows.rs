//! Every row of the pointwise table at every dtype it takes: forward mode, reverse mode, batching of each operand, and second order
//! must type-check, verify, and read back from their text.
use ferrax_ir::operators::emit;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::verify::verify;
use ferrax_testkit::api::*;

const DTYPES: [Dtype; 10] = [
    Dtype::BOOL,
    Dtype::I8,
    Dtype::I32,
    Dtype::U32,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
    Dtype::C64,
    Dtype::C128,
];

fn staged(what: &str, f: F, ins: &[Aval]) {
    let (p, _) = catch(|| make_program(f, ins)).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    verify(&p).unwrap_or_else(|e| panic!("{what}: {e:?}\n{p}"));
    let text = p.to_string();
    let q = parse(&text).unwrap_or_else(|e| panic!("{what}: {e:?}\n{text}"));
    assert_eq!(q.to_string(), text, "{what}");
}
fn tangents(f: F, x: &[Value], t: &Value) -> Res<Vec<Value>> {
    let ts: Vec<_> = x.iter().map(|x| x.has_tangent().then(|| t.clone())).collect();
    let (y, dy) = jvp(f, x, &ts)?;
    Ok(y.into_iter().chain(dy.into_iter().flatten()).collect())
}
fn cotangents(f: F, x: &[Value]) -> Res<Vec<Value>> {
    let (y, lin) = linearize(f, x)?;
    let ct: Vec<_> = y
        .iter()
        .map(|y| y.has_tangent().then(|| broadcast(&ferrax_ir::cx::lit(y.dtype(), 1.0), y.shape(), &[])))
        .collect();
    let back = lin.transpose(&ct)?;
    for (x, t) in x.iter().zip(&back) {
        if let Some(t) = t {
            assert_eq!((t.dtype(), t.shape()), (x.dtype(), x.shape()), "a cotangent has its operand's type");
        }
    }
    Ok(back.into_iter().flatten().collect())
}

#[test]
fn every_row_at_every_dtype() {
    let mut checked = 0;
    for &f in Pw::ALL {
        let n = f.row().slopes.len();
        let y = if f == Pw::IntegerPow { 3 } else { 0 };
        for d in DTYPES {
            for shapes in [[&[3][..], &[3]], [&[2, 3], &[1, 3]], [&[3], &[]], [&[], &[]]] {
                let ins: Vec<Aval> = shapes[..n].iter().map(|s| Aval::new(d, s)).collect();
                let op = Pointwise { f, y };
                if ferrax_ir::Rules::infer(&op, &ins).is_err() {
                    continue;
                }
                let what = format!("{} {ins:?}", f.row().name);
                let g = |x: &[Value]| Ok(vec![emit(op, x)]);
                staged(&what, &g, &ins);
                for lanes in 0..n {
                    let mut wide = ins.clone();
                    wide[lanes] = ins[lanes].batched(5, ins[lanes].rank());
                    let axes: Vec<_> = (0..n).map(|i| (i == lanes).then(|| ins[i].rank())).collect();
                    staged(&what, &|x| vmap(&g, x, &axes, &[0]), &wide);
                }
                checked += 1;
                if !d.is_inexact() || matches!(f, Pw::NextAfter | Pw::Polygamma) {
                    continue;
                }
                // the tangent has the operands' dtype and the first one's shape
                if ins.iter().all(|a| a.shape == ins[0].shape) {
                    let with_t: Vec<Aval> = ins.iter().cloned().chain([ins[0].clone()]).collect();
                    staged(&what, &|x| tangents(&g, &x[..n], &x[n]), &with_t);
                }
                staged(&what, &|x| cotangents(&g, x), &ins);
                staged(&what, &|x| cotangents(&|x| cotangents(&g, x), x), &ins);
                let wide: Vec<Aval> = ins.iter().map(|a| a.batched(5, 0)).collect();
                staged(&what, &|x| vmap(&|x| cotangents(&g, x), x, &vec![Some(0); n], &[0, 0]), &wide);
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn what_has_no_rule_says_so() {
    let two = |f: Pw| move |x: &[Value]| Ok(vec![emit(f, x)]);
    let ins = [f64s(&[]), f64s(&[])];
    for (f, words) in [(Pw::NextAfter, "nextafter"), (Pw::Polygamma, "polygamma")] {
        let e = catch(|| make_program(&|x| tangents(&two(f), x, &x[0]), &ins)).expect_err("no rule");
        assert_eq!(e.kind(), Some(ErrorKind::NotImplemented));
        assert!(e.message().contains(words), "{e}");
    }
}
