//! Derivatives.
use super::*;
use std::collections::BTreeMap;

#[test]
fn grad_arguments() {
    let poly = |(x, y): &(Tensor, Tensor)| 2 * x * x + 3 * y + 3;
    close(&grad(|x: &Tensor| poly(&(x.clone(), f(5.0))))(&f(10.0)).unwrap(), &[40.0]);
    let (gx, gy) = grad(poly)(&(f(10.0), f(5.0))).unwrap();
    assert_eq!((gx.item(), gy.item()), (40.0, 3.0));
    let e = grad(poly)(&(Tensor::from(10), Tensor::from(5))).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Type) && e.message().contains("real") && e.message().contains("int32"), "{e}");
    let e = grad(|x: &Tensor| x * 2)(&Tensor::ones(&[3])).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Type) && e.message().contains("scalar"), "{e}");
    let with_mean = |x: &Tensor| (x.powi(2).sum(), BTreeMap::from([("mean", x.mean())]));
    let ((_, aux), g) = value_and_grad_aux(with_mean)(&x3()).unwrap();
    close(&g, &[2.0, 4.0, 6.0]);
    close(&aux["mean"], &[2.0]);
}
#[test]
fn grad_of_a_pytree_of_parameters() {
    type P = BTreeMap<&'static str, Tensor>;
    let p: P = [
        ("w1", Tensor::ones(&[10, 5])),
        ("b1", Tensor::zeros(&[5])),
        ("w2", Tensor::ones(&[5, 1])),
        ("b2", Tensor::zeros(&[1])),
    ]
    .into();
    let x = Tensor::ones(&[32, 10]);
    let loss = |p: &P| {
        let hidden = nn::relu(&nn::linear(&x, &p["w1"], &p["b1"]));
        nn::linear(&hidden, &p["w2"], &p["b2"]).powi(2).mean()
    };
    let g = grad(loss)(&p).unwrap();
    assert_eq!(g.keys().copied().collect::<Vec<_>>(), ["b1", "b2", "w1", "w2"]);
    assert!(p.iter().all(|(k, x)| g[k].shape() == x.shape()));
    close(&g["b2"], &[100.0]);
    close(&g["w1"], &[100.0; 50]);
}
#[test]
fn higher_order_and_jacobians() {
    close(&hessian(|x: &Tensor| x.powi(3).sum())(&x3()).unwrap(), &[6.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0, 18.0]);
    let three = |x: &Tensor| {
        let x = x.unstack(0);
        stack(&[x[0].powi(2), x[1].powi(3), &x[0] * &x[1]], 0)
    };
    let (at, want) = (Tensor::from([2.0f32, 3.0]), [4.0, 0.0, 0.0, 27.0, 3.0, 2.0]);
    close(&jacfwd(three)(&at).unwrap(), &want);
    close(&jacrev(three)(&at).unwrap(), &want);
    let sin = |x: &Tensor| x.sin();
    close(&grad(grad(grad(grad(sin))))(&f(0.7)).unwrap(), &[0.7f32.sin()]);
    let (_, t) = jvp(sin, &f(0.5), &f(2.0)).unwrap();
    close(&t, &[2.0 * 0.5f32.cos()]);
    let (_, pull) = vjp(|(a, b): &(Tensor, Tensor)| a * b.sin(), &(f(2.0), f(0.5))).unwrap();
    close(&pull(&f(1.0)).unwrap().1, &[2.0 * 0.5f32.cos()]);
    let (_, lin) = linearize(sin, &f(0.5)).unwrap();
    close(&lin(&f(3.0)).unwrap(), &[3.0 * 0.5f32.cos()]);
}
#[test]
fn custom_rules() {
    let e2 = custom_vjp(|x: &Tensor| x.exp(), |x: &Tensor| (x.exp(), x.exp()), |r: &Tensor, g: &Tensor| g * 2 * r);
    close(&grad(&e2)(&f(1.0)).unwrap(), &[2.0 * std::f32::consts::E]);
    type Clipped = (Tensor, Tensor, Tensor);
    let clip = custom_vjp(
        |(x, _, _): &Clipped| x.clone(),
        |(x, lo, hi): &Clipped| (x.clone(), (lo.clone(), hi.clone())),
        |(lo, hi): &(Tensor, Tensor), g: &Tensor| (g.clip(lo, hi), lo.zeros_like(), hi.zeros_like()),
    );
    let ten = grad(|x: &Tensor| -> Res<Tensor> { Ok(10 * clip(&(x.clone(), f(-1.0), f(1.0)))?) });
    close(&ten(&f(3.0)).unwrap(), &[1.0]);
    let log1pexp = custom_jvp(
        |x: &Tensor| (1.0 + x.exp()).log(),
        |x: &Tensor, dx: &Tensor| ((1.0 + x.exp()).log(), (1 - 1 / (1 + x.exp())) * dx),
    );
    close(&grad(&log1pexp)(&f(100.0)).unwrap(), &[1.0]);
    close(&vmap(jit(grad(&log1pexp)))(&zero_to(3)).unwrap(), &[0.5, 0.7310586, 0.880797]);
    close(&grad(|x: &Tensor| (x * x.stop_gradient()).sum())(&Tensor::from([3.0f32])).unwrap(), &[3.0]);
    let again = grad(checkpoint(|x: &Tensor| x.sin().sin()));
    close(&again(&f(1.0)).unwrap(), &[1f32.sin().cos() * 1f32.cos()]);
}
#[test]
fn numerical_gradient_check() {
    check_grads(|x: &Tensor| x.powi(3).sum(), &x3(), 2, 2e-2).unwrap();
    let wrong = custom_vjp(|x: &Tensor| x.powi(2), |x: &Tensor| (x.powi(2), ()), |_: &(), g: &Tensor| g.clone());
    let e = check_grads(wrong, &f(3.0), 1, 2e-2).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Value) && e.message().contains("reverse"), "{e}");
}
#[test]
fn all_transforms_compose() {
    let loss = |x: &Tensor| x.tanh().powi(2).sum();
    let x = zero_to(6).reshape(&[2, 3]);
    let want: Vec<f32> = (0..6).map(|x| (x as f32).tanh()).map(|t| 2.0 * t * (1.0 - t * t)).collect();
    close(&vmap(grad(loss))(&x).unwrap(), &want);
    close(&jit(vmap(grad(loss)))(&x).unwrap(), &want);
    close(&vmap(jit(grad(loss)))(&x).unwrap(), &want);
    close(&vmap(grad(jit(loss)))(&x).unwrap(), &want);
    assert_eq!(jit(vmap(hessian(jit(loss))))(&x).unwrap().shape(), [2, 3, 3]);
}
#[test]
fn argmax_gradient_is_zero_and_softmax_works() {
    let x = Tensor::from([1.0f32, 3.0, 2.0]);
    close(&grad(|x: &Tensor| x.slice(s![x.argmax(0)]))(&x).unwrap(), &[0.0, 1.0, 0.0]);
    let g = grad(|x: &Tensor| (x * nn::softmax(x, -1)).sum())(&x).unwrap();
    assert!(g.abs().min().item() > 0.0);
}
