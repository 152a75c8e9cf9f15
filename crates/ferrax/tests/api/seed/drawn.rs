//! Random numbers, and trees.
use super::*;
use std::collections::BTreeMap;

fn normal(key: &Tensor) -> Tensor {
    random::normal(key, &[], Dtype::F32)
}

#[test]
fn keys_are_explicit() {
    let key = random::key(42);
    let words = random::key_data(&key);
    assert_eq!((words.to_vec::<u32>().unwrap(), words.dtype()), (vec![0, 42], Dtype::U32));
    assert_eq!(v(&normal(&key)), v(&normal(&key)));
    close(&normal(&key), &[-0.02830462]);
    let two = random::split_into(&key, &[2]);
    let words = random::key_data(&two).to_vec::<u32>().unwrap();
    assert_ne!(words[..2], words[2..]);
    let keys = random::split_into(&key, &[10]);
    let a = vmap(|k: &Tensor| random::normal(k, &[3], Dtype::F32))(&keys).unwrap();
    let fifth = random::normal(&random::split(&key, 10)[4], &[3], Dtype::F32);
    assert_eq!(v(&a.slice(s![4])), v(&fifth));
    let uniform = |k: &Tensor| random::uniform(k, &[4], Dtype::F32);
    assert_eq!(v(&jit(uniform)(&key).unwrap()), v(&uniform(&key)));
}
#[test]
fn random_values_printed_in_the_documents() {
    let draw = jit(|k: &Tensor| random::uniform(k, &[], Dtype::F32));
    let first = draw(&random::key(0)).unwrap().item();
    random::with_original_layout(|| {
        let key = random::key(42);
        close(&normal(&key), &[-0.18471177]);
        let keys = random::split(&key, 3);
        close(&normal(&keys[1]), &[0.107961535]);
        close(&normal(&keys[2]), &[-1.2226542]);
        assert_eq!(draw(&random::key(0)).unwrap().item() as f32, 0.41845703); // traced again: the layout is part of the program
        assert_eq!(draw(&random::split(&random::key(0), 2)[1]).unwrap().item() as f32, 0.10536897);
    });
    assert_eq!(draw(&random::key(0)).unwrap().item(), first);
}

#[derive(Clone, Tree)]
struct Point {
    x: Tensor,
    y: BTreeMap<&'static str, Tensor>,
}
#[derive(Clone, Tree)]
struct Tagged {
    a: Tensor,
    #[tree(fixed)]
    b: &'static str,
}

#[test]
fn pytrees() {
    let point = Point { x: Tensor::from(3), y: [("z", Tensor::from(4))].into() };
    let t = (point, vec![Tensor::from(1), Tensor::from(2)], None::<Tensor>);
    let mut leaves = vec![];
    t.leaves(&mut |x| leaves.push(x.item()));
    assert_eq!(leaves, [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(t.paths(), [".0.x", ".0.y[\"z\"]", ".1[0]", ".1[1]"]);
    let mut next = leaves.iter().map(|x| Tensor::from(*x as f32 + 1.0));
    let other = t.rebuild(&mut |_| next.next().unwrap());
    assert_eq!((other.0.y["z"].item(), other.1[1].item()), (5.0, 3.0));
    assert_eq!(t.map(|x| x * 2).0.x.item(), 6.0);
    assert_eq!(leaves.iter().sum::<f64>(), 10.0);
    let q = jit(|q: &Tagged| Tagged { a: &q.a + 1, b: q.b })(&Tagged { a: f(1.0), b: "tag" }).unwrap();
    assert_eq!((q.a.item(), q.b), (2.0, "tag"));
    let (x, y) = (vec![f(1.0)], vec![f(1.0), f(2.0)]);
    let e = catch(|| Ok(x.zip(&y, |a, _| a.clone()))).expect_err("an error");
    assert_eq!(e.kind(), Some(ErrorKind::Value), "{e}");
    assert_eq!(Outline::of(&BTreeMap::from([("a", f(1.0))])).text(), "[\"a\"](*)");
}
