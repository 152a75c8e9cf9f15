//! Tensors: updates, indices, promotion, printing, devices.
use super::*;

fn whole(t: &Tensor) -> Vec<i32> {
    t.to_vec().unwrap()
}

#[test]
fn arrays_are_immutable_with_functional_updates() {
    let x = Tensor::arange(10, Dtype::I32);
    assert_eq!((x.at(s![0]).set(10).slice(s![0]).item(), x.slice(s![0]).item()), (10.0, 0.0));
    let y = Tensor::from([1, 2, 3]);
    assert_eq!(whole(&y.at(s![0]).add(5)), [6, 2, 3]);
    assert_eq!(whole(&y.at(s![0]).mul(2)), [2, 2, 3]);
    assert_eq!(whole(&y.at(s![0]).max(5)), [5, 2, 3]);
    assert_eq!(whole(&y.at(s![1]).min(0)), [1, 0, 3]);
    assert_eq!(whole(&y.at(s![Tensor::from([0, 2])]).set(10)), [10, 2, 10]);
    let z = Tensor::zeros(&[3, 4]).at(s![1, ..]).set(1.0).at(s![..; 2, 3..]).add(7);
    assert_eq!(v(&z), [0.0, 0.0, 0.0, 7.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 7.0]);
}
#[test]
fn out_of_bounds_indexing() {
    let x = Tensor::arange(10, Dtype::I32);
    let at = |i: i32| s![Tensor::from(i)];
    assert_eq!(x.slice(at(11)).item(), 9.0);
    assert_eq!(whole(&Tensor::from([1, 2, 3]).at(at(10)).set(99)), [1, 2, 3]);
    assert_eq!((x.slice(at(-1)).item(), x.slice(s![-1]).item()), (9.0, 9.0));
    assert_eq!(x.at(at(11)).get_or(-1.0).item(), -1.0);
    assert!(catch(|| Ok(x.slice(s![11]))).is_err(), "a number of Rust's that is out of bounds is a mistake");
}
#[test]
fn default_precision_and_promotion() {
    assert_eq!((Tensor::ones(&[1]).dtype(), Tensor::full(&[1], 3).dtype()), (Dtype::F32, Dtype::I32));
    let ones = |d| Tensor::ones(&[2]).astype(d);
    assert_eq!((ones(Dtype::BF16) + 1.0).dtype(), Dtype::BF16);
    assert_eq!((ones(Dtype::I8) + 1).dtype(), Dtype::I8);
    assert_eq!((ones(Dtype::I32) + 1.5).dtype(), Dtype::F32);
    assert_eq!((ones(Dtype::U8) + ones(Dtype::I8)).dtype(), Dtype::I16);
    assert_eq!((ones(Dtype::F16) + ones(Dtype::BF16)).dtype(), Dtype::F32);
    let wide = jit(|x: &Tensor| x + 1e-12)(&Tensor::from(1.0f64)).unwrap();
    assert_eq!(wide.dtype(), Dtype::F64);
    assert!((wide.item() - 1.0 - 1e-12).abs() < 1e-15);
}
#[test]
fn assorted_numpy() {
    assert_eq!(Tensor::zeros(&[0]).append(3).shape(), [1]);
    close(&Tensor::from([3.0f32, 4.0]).norm(), &[5.0]);
    let chosen = jit(|(x, m): &(Tensor, Tensor)| where_(m, x, 0));
    close(&chosen(&(zero_to(3), Tensor::from([true, false, true]))).unwrap(), &[0.0, 0.0, 2.0]);
    close(&einsum("ij,kj->ik", &[Tensor::ones(&[2, 3]), Tensor::ones(&[4, 3])]), &[3.0; 8]);
    let x = zero_to(12).reshape(&[3, 4]);
    assert_eq!(x.slice(s![1.., ..; 2]).shape(), [2, 2]);
    assert_eq!(x.slice(s![Ellipsis, NewAxis]).shape(), [3, 4, 1]);
    assert_eq!(x.slice(s![Tensor::from([0, 2])]).shape(), [2, 4]);
    assert_eq!(x.slice(s![x.gt(5)]).shape(), [6]);
    close(&x.slice(s![..; -1, -1]), &[11.0, 7.0, 3.0]);
}
#[test]
fn printing_an_array() {
    assert_eq!(format!("{:?}", Tensor::from([1.0f32, 2.0])), "Tensor(f32[2], [1.0, 2.0])");
    assert_eq!(Tensor::arange(6, Dtype::I32).to_string(), "[0, 1, 2, 3, 4, 5]");
    assert_eq!(format!("{:?}", f(4.0)), "Tensor(f32[], 4.0)");
}
#[test]
fn devices_and_transfer() {
    let all = device::devices("cpu").unwrap();
    assert!(!all.is_empty() && ["cpu", "gpu"].contains(&device::default_device().platform()));
    let host: Vec<i32> = whole(&Tensor::arange(6, Dtype::I32));
    let d = Tensor::from(host.as_slice()).device_put(&all[0]);
    assert_eq!(d.device(), Some(&all[0]));
    assert_eq!(whole(&(Tensor::from(host) + &d)), [0, 2, 4, 6, 8, 10]);
    d.ready().unwrap();
    assert!(d.is_ready());
}
