//! The tensor of the Rust API: values, shapes, dtypes, and what mistakes say.
use ferrax::*;

fn v(t: &Tensor) -> Vec<f32> {
    t.astype(Dtype::F32).to_vec().unwrap()
}
fn ints(t: &Tensor) -> Vec<i32> {
    t.astype(Dtype::I32).to_vec().unwrap()
}
fn message(f: impl FnOnce() -> Tensor) -> String {
    catch(|| Ok(f())).expect_err("a mistake").to_string()
}
fn grid() -> Tensor {
    Tensor::arange(12, Dtype::F32).reshape(&[3, 4])
}

#[test]
fn operators_take_values_references_and_numbers() {
    let (x, y) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 5.0]));
    assert_eq!(v(&(&x + &y)), [4.0, 7.0]);
    assert_eq!(v(&(x.clone() * y.clone())), [3.0, 10.0]);
    assert_eq!(v(&(2.0 * &x - 1)), [1.0, 3.0]);
    assert_eq!(v(&(1 - &x)), [0.0, -1.0]);
    assert_eq!(v(&(&y / x.clone())), [3.0, 2.5]);
    assert_eq!(v(&-&x), [-1.0, -2.0]);
    let mut z = x.clone();
    z += &y;
    z *= 2.0;
    assert_eq!(v(&z), [8.0, 14.0]);
    assert_eq!(v(&((&x + 1.0).sqrt() * 0.0)), [0.0, 0.0], "a result's methods are known before the number's type");
    let b = Tensor::from([true, false]);
    assert_eq!(ints(&(&b | true)), [1, 1]);
    assert_eq!(ints(&!&b), [0, 1]);
    assert_eq!(ints(&(Tensor::from([5, 6]) & 3)), [1, 2]);
    assert_eq!(ints(&(Tensor::from([1, 2]) << 3)), [8, 16]);
    assert_eq!(ints(&(Tensor::from([-7, 7]) % 3)), [-1, 1]);
    assert_eq!(ints(&Tensor::from([-7, 7]).modulo(3)), [2, 1]);
    assert_eq!(ints(&Tensor::from([-7, 7]).floor_div(2)), [-4, 3]);
    assert_eq!([x, y].into_iter().sum::<Tensor>().shape(), [2]);
}

#[test]
fn dtypes_promote_as_numpy_s() {
    let f = Tensor::from([1.0f32]);
    let i = Tensor::from([1i32]);
    assert_eq!((&f * 2.0).dtype(), Dtype::F32);
    assert_eq!((&i * 2).dtype(), Dtype::I32);
    assert_eq!((&i * 2.0).dtype(), Dtype::F32);
    assert_eq!((&i / 2).dtype(), Dtype::F32);
    assert_eq!((Tensor::from([1.0f64]) * 2.0f32).dtype(), Dtype::F64);
    assert_eq!((Tensor::from([1i64]) * 2.0).dtype(), Dtype::F64);
    assert_eq!((&f + Tensor::from([1.0f64])).dtype(), Dtype::F64);
    assert_eq!((Tensor::from([1u8]) + &i).dtype(), Dtype::I32);
    assert_eq!((&f * Complex::new(0.0, 1.0)).dtype(), Dtype::C64);
    assert_eq!(f.astype(Dtype::BF16).sin().dtype(), Dtype::BF16);
    assert_eq!(Tensor::from([true, true]).sum().dtype(), Dtype::I32);
    assert_eq!(Tensor::full(&[2], 3).dtype(), Dtype::I32);
    assert_eq!(Tensor::full(&[2], 3.0).dtype(), Dtype::F32);
    assert_eq!(Tensor::from([1.5f64]).item(), 1.5);
    assert_eq!((Tensor::from([0.1f64]) * 0.1).to_vec::<f64>().unwrap(), [0.1 * 0.1]);
}

#[test]
fn indices_name_what_numpy_s_name() {
    let x = grid();
    assert_eq!(v(&x.slice(s![1])), [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(v(&x.slice(s![.., -1])), [3.0, 7.0, 11.0]);
    assert_eq!(v(&x.slice(s![..2, 1..3])), [1.0, 2.0, 5.0, 6.0]);
    assert_eq!(v(&x.slice(s![0..=1, 3..])), [3.0, 7.0]);
    assert_eq!(v(&x.slice(s![..; -1, 0])), [8.0, 4.0, 0.0]);
    assert_eq!(v(&x.slice(s![.., ..; 2])), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(x.slice(s![NewAxis, .., NewAxis]).shape(), [1, 3, 1, 4]);
    assert_eq!(v(&x.slice(s![Ellipsis, 1])), [1.0, 5.0, 9.0]);
    let i = Tensor::from([2, -3]);
    assert_eq!(v(&x.slice(s![&i])), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(v(&x.slice(s![.., &i])), [2.0, 1.0, 6.0, 5.0, 10.0, 9.0]);
    assert_eq!(v(&x.slice(s![&i, &i])), [10.0, 1.0]);
    assert_eq!(v(&x.slice(s![&i, 1..3])), [9.0, 10.0, 1.0, 2.0]);
    assert_eq!(v(&x.slice(s![..; -2, &i])), [10.0, 9.0, 2.0, 1.0]);
    let y = Tensor::arange(24, Dtype::F32).reshape(&[2, 3, 4]);
    assert_eq!(y.slice(s![0, .., &i]).shape(), [2, 3], "an integer and a tensor apart: their shape comes first");
    assert_eq!(y.slice(s![.., &i, 0]).shape(), [2, 2]);
    assert_eq!(v(&x.slice(s![&x.gt(9.0)])), [10.0, 11.0]);
    assert_eq!(v(&x.slice(s![&Tensor::from([99])])), [8.0, 9.0, 10.0, 11.0], "beyond the end reads the last");
    assert_eq!(v(&x.take(&Tensor::from([3, 0]), 1)), [3.0, 0.0, 7.0, 4.0, 11.0, 8.0]);
    let at = x.argmax(1).expand_dims(-1);
    assert_eq!(v(&x.take_along_axis(&at, 1)), [3.0, 7.0, 11.0]);
    assert_eq!(v(&x.dynamic_slice(&[1, 2], &[2, 2])), [6.0, 7.0, 10.0, 11.0]);
    assert!(message(|| x.slice(s![3])).contains("index 3 is out of bounds for axis 0 with size 3"));
    assert!(message(|| x.slice(s![0, 0, 0])).contains("Too many indices: array is 2-dimensional, but 3 were indexed"));
    assert!(message(|| x.slice(s![&Tensor::from([0.5f32])])).contains("Indexer must have integer or boolean type"));
}

#[test]
fn updates_change_a_copy() {
    let x = Tensor::zeros(&[3, 4]);
    assert_eq!(v(&x.at(s![1]).set(2.0).sum_axes(1)), [0.0, 8.0, 0.0]);
    assert_eq!(v(&x.at(s![.., 1..3]).add(1.0).sum_axes(0)), [0.0, 3.0, 3.0, 0.0]);
    assert_eq!(v(&x.at(s![..; 2, ..; -3]).set(Tensor::from([1.0f32, 2.0])).slice(s![2])), [2.0, 0.0, 0.0, 1.0]);
    let i = Tensor::from([0, 0, 2]);
    assert_eq!(v(&x.at(s![&i, 1]).add(1.0).slice(s![.., 1])), [2.0, 0.0, 1.0]);
    assert_eq!(v(&x.at(s![&i]).max(5.0).sum_axes(1)), [20.0, 0.0, 20.0]);
    assert_eq!(v(&x.at(s![&Tensor::from([7])]).set(1.0)), vec![0.0; 12], "beyond the end writes nothing");
    assert_eq!(v(&grid().at(s![-1]).apply(|r| r * r).slice(s![2])), [64.0, 81.0, 100.0, 121.0]);
    assert_eq!(v(&grid().at(s![..]).mul(0.0)), vec![0.0; 12]);
    let g =
        grad(|u: &Tensor| (grid().at(s![&Tensor::from([1, 1])]).add(u) * 2.0).sum())(&Tensor::ones(&[2, 4])).unwrap();
    assert_eq!(v(&g), vec![2.0; 8]);
    let rows = vmap(|r: &Tensor| r.at(s![0]).set(9.0))(&x).unwrap();
    assert_eq!(v(&rows.slice(s![.., 0])), [9.0; 3]);
}

#[test]
fn shapes_change() {
    let x = grid();
    assert_eq!(x.reshape(&[2, -1]).shape(), [2, 6]);
    assert_eq!(x.t().shape(), [4, 3]);
    assert_eq!(x.expand_dims(-1).squeeze(-1).shape(), [3, 4]);
    assert_eq!(x.expand_dims(0).squeeze(..).shape(), [3, 4]);
    assert_eq!(x.permute(&[1, 0]).shape(), [4, 3]);
    assert_eq!(v(&x.flip(0).slice(s![0])), [8.0, 9.0, 10.0, 11.0]);
    assert_eq!(v(&Tensor::from([1, 2, 3]).roll(1, 0)), [3.0, 1.0, 2.0]);
    assert_eq!(v(&Tensor::from([1, 2]).tile(&[2])), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(v(&Tensor::from([1, 2]).repeat(2, 0)), [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(v(&Tensor::from([1, 2]).pad(&[(1, 2)], 7)), [7.0, 1.0, 2.0, 7.0, 7.0]);
    assert_eq!(v(&Tensor::ones(&[2, 2]).tril(0)), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(v(&Tensor::ones(&[2, 2]).triu(1)), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(v(&x.diagonal()), [0.0, 5.0, 10.0]);
    assert_eq!(v(&Tensor::from([1.0f32, 2.0]).diag()), [1.0, 0.0, 0.0, 2.0]);
    assert_eq!(x.trace().item(), 15.0);
    assert_eq!(concatenate(&[&x, &x], 0).shape(), [6, 4]);
    assert_eq!(stack(&[&x, &x], -1).shape(), [3, 4, 2]);
    assert_eq!(x.split(2, 1)[1].shape(), [3, 2]);
    assert_eq!(x.unstack(0).len(), 3);
    assert!(message(|| x.reshape(&[5, 5])).contains("cannot reshape array of shape (3, 4) (size 12)"));
    assert!(message(|| x.split(5, 1).remove(0)).contains("equal division"));
}

#[test]
fn reductions_and_order() {
    let x = grid();
    assert_eq!(x.sum().item(), 66.0);
    assert_eq!(v(&x.sum_axes(0)), [12.0, 15.0, 18.0, 21.0]);
    assert_eq!(x.sum_keep([0, 1]).shape(), [1, 1]);
    assert_eq!(v(&x.max_axes(-1)), [3.0, 7.0, 11.0]);
    assert_eq!(x.mean().item(), 5.5);
    assert_eq!(x.astype(Dtype::I32).mean().item(), 5.5);
    assert!((x.var().item() - 143.0 / 12.0).abs() < 1e-5);
    assert!(x.gt(-1.0).all().item() == 1.0 && x.gt(10.0).any().item() == 1.0);
    assert_eq!(ints(&x.argmax(0)), [2; 4]);
    assert_eq!(ints(&Tensor::from([3, 1, 2]).argsort(0)), [1, 2, 0]);
    assert_eq!(ints(&Tensor::from([3, 1, 2]).sort(-1)), [1, 2, 3]);
    assert_eq!(ints(&Tensor::from([3, 1, 2]).top_k(2, 0).1), [0, 2]);
    assert_eq!(ints(&Tensor::from([1.0f32, 3.0, 5.0]).searchsorted(Tensor::from([3.0f32, 4.0]))), [1, 2]);
    assert_eq!(v(&Tensor::from([1, 2, 3]).cumsum(0)), [1.0, 3.0, 6.0]);
    assert_eq!(Tensor::from([1.0f32, 9.0]).median(0).item(), 5.0);
    assert_eq!(Tensor::from([3.0f32, 4.0]).norm().item(), 5.0);
    assert_eq!(grad(|x: &Tensor| x.norm())(&Tensor::zeros(&[2])).unwrap().sum().item(), 0.0);
    assert!(
        message(|| Tensor::zeros(&[0]).max())
            .contains("zero-size array to reduction operation max which has no identity")
    );
    assert!(message(|| x.sum_axes(2)).contains("axis 2 is out of bounds for array of dimension 2"));
}

#[test]
fn products() {
    let x = grid();
    assert_eq!(v(&x.matmul(Tensor::ones(&[4]))), [6.0, 22.0, 38.0]);
    assert_eq!(stack(&[&x, &x], 0).matmul(x.t()).shape(), [2, 3, 3]);
    assert_eq!(Tensor::ones(&[5, 1, 2, 3]).matmul(Tensor::ones(&[4, 3, 6])).shape(), [5, 4, 2, 6]);
    assert_eq!(v(&einsum("ii->i", &[&Tensor::eye(2, 2)])), [1.0, 1.0]);
    assert_eq!(einsum("ij->", &[&x]).item(), 66.0);
    assert_eq!(einsum("ab,bc,cd", &[&x, &x.t(), &x]).shape(), [3, 4]);
    assert_eq!(v(&Tensor::from([1.0f32, 2.0]).outer(Tensor::from([3.0f32]))), [3.0, 6.0]);
    assert!(message(|| x.matmul(&x)).contains("contracting dimensions to have the same shape, got (4,) and (3,)"));
    assert!(message(|| einsum("ij,jk", &[&x])).contains("Number of einsum subscripts, 2"));
}

#[test]
fn complex_numbers_and_transforms() {
    let z = Tensor::from([Complex::new(3.0f32, 4.0)]);
    assert_eq!(v(&z.abs()), [5.0]);
    assert_eq!(z.conj().imag().item(), -4.0);
    let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    assert!((x.fft(0).ifft(0).real() - &x).abs().max().item() < 1e-6);
    assert_eq!(x.rfft(0).shape(), [3]);
    assert!((x.rfft(0).irfft(4, 0) - &x).abs().max().item() < 1e-6);
}

#[test]
fn mistakes_say_where() {
    let (x, y) = (Tensor::zeros(&[2]), Tensor::zeros(&[3]));
    let line = line!() + 1;
    let m = message(|| &x + &y);
    assert!(m.contains(&format!("tensor.rs:{line}:")), "{m}");
    let in_grad = grad(|x: &Tensor| (x + &y).sum())(&x).expect_err("shapes");
    assert_eq!(in_grad.kind(), Some(ErrorKind::Type));
    let panic = std::panic::catch_unwind(|| Tensor::zeros(&[2]) + Tensor::zeros(&[3])).expect_err("a panic");
    let text = panic.downcast_ref::<String>().expect("text");
    assert!(text.starts_with("TypeError: add got incompatible shapes for broadcasting: (2,), (3,)."), "{text}");
}

#[test]
fn every_pointwise_primitive_is_somewhere() {
    use ferrax_ir::ops::pointwise::Pw;
    let known: Vec<Pw> = UNARY.iter().chain(BINARY).chain(OTHERWISE).map(|r| r.1).collect();
    for f in Pw::ALL {
        assert_eq!(known.iter().filter(|k| *k == f).count(), 1, "{}", f.row().name);
    }
    // a function of the table computes what its primitive computes
    let x = Tensor::from([0.3f32, 0.7]);
    for (name, f) in UNARY.iter().filter(|r| !["population_count", "leading_zeros"].contains(&r.0)) {
        let plain = Tensor::bind(f.row().name, &[&x], ParamMap::default()).remove(0);
        assert_eq!(plain.shape(), [2], "{name}");
    }
}

#[test]
fn tensors_are_shown() {
    assert_eq!(Tensor::from([[1.0f32, 2.5], [3.0, 4.0]]).to_string(), "[[1.0, 2.5], [3.0, 4.0]]");
    assert_eq!(format!("{:?}", Tensor::from([1, 2])), "Tensor(i32[2], [1, 2])");
    assert_eq!(Tensor::from(true).to_string(), "True");
}
