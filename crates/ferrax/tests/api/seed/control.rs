//! Control flow, and what a transform owns.
use super::*;
use std::cell::RefCell;

#[test]
fn cond_switch_while_fori() {
    let branch = jit(|x: &Tensor| cond(&x.gt(0), |x: &Tensor| x.powi(2), |x: &Tensor| x.powi(3), x));
    assert_eq!((branch(&f(3.0)).unwrap().item(), branch(&f(-2.0)).unwrap().item()), (9.0, -8.0));
    let closed = jit(|x: &Tensor| cond(&x.gt(0), |_: &()| x.powi(2), |_: &()| x.powi(3), &()));
    assert_eq!(closed(&f(-2.0)).unwrap().item(), -8.0);
    let ten = jit(|x: &Tensor| while_loop(|v: &Tensor| v.lt(10), |v: &Tensor| v + 1, x));
    assert_eq!(ten(&Tensor::from(3)).unwrap().item(), 10.0);
    let sum = jit(|(x, n): &(Tensor, Tensor)| fori_loop(0, n, |i: &Tensor, v: &Tensor| v + i, x));
    assert_eq!(sum(&(Tensor::from(0), Tensor::from(5))).unwrap().item(), 10.0);
    let of: [&dyn Fn(&Tensor) -> Tensor; 3] = [&|x| x.clone(), &|x| x + 1, &|x| x * 10];
    let each = [0, 1, 2].map(|i| switch(&Tensor::from(i), &of, &Tensor::from(7)).unwrap().item());
    assert_eq!(each, [7.0, 8.0, 70.0]);
    let g = grad(|x: &Tensor| cond(&x.gt(0), |x: &Tensor| x.sin(), |x: &Tensor| x.cos(), x));
    close(&g(&f(2.0)).unwrap(), &[2f32.cos()]);
    let cube = |x: &Tensor| fori_loop(0, 3, |_: &Tensor, v: &Tensor| v * x, &f(1.0));
    close(&grad(cube)(&f(2.0)).unwrap(), &[12.0]);
}
#[test]
fn scan_cumsum_and_rnn() {
    let xs = Tensor::from([1, 2, 3, 4, 5]);
    let (c, ys) = scan(|c: &Tensor, x: &Tensor| (c + x, c + x), &Tensor::from(0), &xs).unwrap();
    assert_eq!((c.item(), v(&ys)), (15.0, vec![1.0, 3.0, 6.0, 10.0, 15.0]));
    type W = (Tensor, Tensor);
    let w = (Tensor::full(&[5, 5], 0.1), Tensor::full(&[5, 3], 0.2));
    let rnn = |(wh, wx): &W, xs: &Tensor| -> Res<Tensor> {
        let step = |h: &Tensor, x: &Tensor| {
            let h = (wh.matmul(h) + wx.matmul(x)).tanh();
            (h.clone(), h)
        };
        Ok(scan(step, &Tensor::zeros(&[5]), xs)?.1)
    };
    let out = rnn(&w, &Tensor::ones(&[10, 3])).unwrap();
    assert_eq!(out.shape(), [10, 5]);
    near(&out.slice(s![-1]), &[0.751142; 5], 1e-4);
    let g = grad(|w: &W| -> Res<_> { Ok(rnn(w, &Tensor::ones(&[10, 3]))?.sum()) })(&w).unwrap();
    assert_eq!((g.0.shape(), g.1.shape()), (&[5, 5][..], &[5, 3][..]));
    check_grads(|w: &W| -> Res<_> { Ok(rnn(w, &Tensor::ones(&[4, 3]))?.sum()) }, &w, 2, 2e-2).unwrap();
}
#[test]
fn branching_on_a_traced_value_is_a_clear_error() {
    let branch = |x: &Tensor| if x.item() > 0.0 { x.powi(2) } else { x.powi(3) };
    let e = jit(branch)(&f(1.0)).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Concretization) && e.message().contains("jit"), "{e}");
    close(&grad(branch)(&f(2.0)).unwrap(), &[4.0]); // known values: Rust's own branching works under grad
    close(&grad(branch)(&f(-2.0)).unwrap(), &[12.0]);
    let masked = jit(|(x, m): &(Tensor, Tensor)| x.slice(s![m]));
    let e = masked(&(Tensor::ones(&[3]), Tensor::from([true, false, true]))).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::NonConcreteBooleanIndex), "{e}");
    let e = jit(|x: &Tensor| -> Res<Tensor> { Ok(Tensor::from(x.to_vec::<f32>()?[0].sin())) })(&f(1.0)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::TracerArray), "{e}");
    let e = jit(|i: &Tensor| Tensor::from([1, 2, 3][i.item() as usize]))(&Tensor::from(1)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::Concretization), "{e}");
}
#[test]
fn only_what_a_transform_owns_is_abstract() {
    let g = |x: &Tensor| if x.slice(s![0]).item() > 0.0 { x.powi(3).sum() } else { x.powi(2).sum() };
    let at = |a: f32| Tensor::from([a, 2.0]);
    close(&hessian(g)(&at(1.0)).unwrap(), &[6.0, 0.0, 0.0, 12.0]);
    close(&hessian(g)(&at(-1.0)).unwrap(), &[2.0, 0.0, 0.0, 2.0]);
    close(&jacfwd(g)(&at(1.0)).unwrap(), &[3.0, 12.0]);
    let o = VmapOptions { in_axes: &[Some(0), None], ..VmapOptions::default() };
    let by_sign = vmap_with(o, |(x, n): &(Tensor, Tensor)| if n.item() > 0.0 { x.clone() } else { -x });
    close(&by_sign(&(zero_to(3), Tensor::from(1))).unwrap(), &[0.0, 1.0, 2.0]);
    let e = vmap(|x: &Tensor| if x.item() > 0.0 { x.clone() } else { -x })(&zero_to(3)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::Concretization), "{e}");
}
#[test]
fn leaked_tracer_is_a_clear_error() {
    let kept: RefCell<Vec<Tensor>> = RefCell::default();
    let keep = jit(|x: &Tensor| {
        kept.borrow_mut().push(x.clone());
        x.clone()
    });
    keep(&f(1.0)).unwrap();
    let e = catch(|| Ok(&kept.borrow()[0] + 1)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::UnexpectedTracer), "{e}");
}
