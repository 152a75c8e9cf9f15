//! Every law of the simplifier, on the values where identities usually break: the simplified program gives the bits of the original.
use ferrax::{array, compiled::Compiled, device, eval};
use ferrax_ir::simplify::simplify;
use ferrax_ir::text::parse;
use ferrax_ir::{Aval, Dtype, Program, Value};
use std::sync::Arc;

const ODD: [f32; 8] = [0.0, -0.0, 1.5, -2.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40];

fn run(p: &Program, x: &Value) -> Vec<u8> {
    // equation by equation, so that nothing is simplified on the way
    let y = ferrax_ir::current().inline(p, std::slice::from_ref(x)).unwrap();
    y.iter()
        .flat_map(|v| match v {
            Value::Array(a) => array::bytes(a).unwrap(),
            v => panic!("{v:?}"),
        })
        .collect()
}
fn law(text: &str, left: usize) {
    eval::init();
    let p = parse(text).unwrap();
    let q = simplify(&p);
    assert_eq!(q.eqns().len(), left, "{text}\n{q}");
    let shape = p.in_avals()[0].shape.clone();
    let bytes: Vec<u8> = (0..shape.size()).flat_map(|i| ODD[i % 8].to_le_bytes()).collect();
    let x =
        Value::Array(array::from_bytes(Aval::of(Dtype::F32, shape), &bytes, device::default_device(), false).unwrap());
    let want = run(&p, &x);
    assert_eq!(run(&q, &x), want, "{text}\n{q}");
    let c = Compiled::new(Arc::new(p), device::default_device()).unwrap();
    let got: Vec<u8> = c.run(&[x], &[]).unwrap().iter().flat_map(|a| array::bytes(a).unwrap()).collect();
    assert_eq!(got, want, "{text}\n{}", c.plan());
}

#[test]
fn laws_keep_every_bit() {
    for (body, left) in [
        ("b:f32[8] = mul a 1.0:f32[] c:f32[8] = sin b", 1),
        ("b:f32[8] = mul 1.0:f32[] a c:f32[8] = sin b", 1),
        ("b:f32[8] = div a 1.0:f32[] c:f32[8] = sin b", 1),
        ("b:f32[8] = sub a 0.0:f32[] c:f32[8] = neg b", 1),
        ("b:f32[8] = add a -0.0:f32[] c:f32[8] = neg b", 1),
        ("b:f32[8] = integer_pow[y=1] a c:f32[8] = neg b", 1),
        ("b:f32[8] = neg a d:f32[8] = neg b c:f32[8] = exp d", 1),
        ("b:f32[8] = copy a c:f32[8] = exp b", 1),
        ("b:f32[8] = sin a d:f32[8] = sin a c:f32[8] = add b d", 2),
        (
            "b:f32[2,4] = reshape[dimensions=None new_sizes=(2, 4)] a d:f32[8] = reshape[dimensions=None new_sizes=(8,)] b c:f32[8] = neg d",
            1,
        ),
    ] {
        law(&format!("{{ lambda ; a:f32[8]. let {body} in (c,) }}"), left);
    }
    law(
        "{ lambda ; a:f32[2,4]. let b:f32[4,2] = transpose[permutation=(1, 0)] a c:f32[2,4] = transpose[permutation=(1, 0)] b d:f32[2,4] = neg c in (d,) }",
        1,
    );
}
#[test]
fn what_is_no_law_stays() {
    for body in ["b:f32[8] = add a 0.0:f32[]", "b:f32[8] = mul a 0.0:f32[]", "b:f32[8] = sub a a", "b:f32[8] = div a a"]
    {
        law(&format!("{{ lambda ; a:f32[8]. let {body} in (b,) }}"), 1);
    }
}
#[test]
fn calls_are_inlined_and_dead_code_goes() {
    law(
        "{ lambda ; a:f32[8]. let b:f32[8] = jit[name=f jaxpr={ lambda ; c:f32[8]. let d:f32[8] = sin c e:f32[8] = cos c in (d,) }] a f:f32[8] = sin a in (b, f) }",
        1,
    );
}
