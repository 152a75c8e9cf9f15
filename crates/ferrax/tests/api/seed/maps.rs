//! vmap.
use super::*;

fn axes<'a>(in_axes: &'a [Option<i64>]) -> VmapOptions<'a> {
    VmapOptions { in_axes, ..VmapOptions::default() }
}
fn named(name: &str) -> VmapOptions<'_> {
    VmapOptions { name: Some(name), ..VmapOptions::default() }
}
type Two = (Tensor, Tensor);

#[test]
fn vmap_size_mismatch_message() {
    let e = vmap(|(a, b): &Two| a * b)(&(Tensor::ones(&[2, 3]), Tensor::ones(&[4, 3]))).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::Value));
    assert!(e.message().contains("vmap got inconsistent sizes for array axes to be mapped"), "{e}");
    assert!(e.message().contains('2') && e.message().contains('4'), "{e}");
}
#[test]
fn vmap_axes() {
    let dot = |(x, w): &Two| w.matmul(x);
    let x = random::normal(&random::key(55), &[4, 5, 3], Dtype::F32);
    let w = random::normal(&random::key(42), &[100, 5], Dtype::F32);
    let both = (x.clone(), w.clone());
    let out = vmap_with(axes(&[Some(0), None]), dot)(&both).unwrap();
    assert_eq!(out.shape(), [4, 100, 3]);
    let each: Vec<Tensor> = x.unstack(0).iter().map(|x| w.matmul(x)).collect();
    near(&out, &v(&stack(&each, 0)), 1e-4);
    let last = VmapOptions { out_axes: &[Some(2)], ..axes(&[Some(0), None]) };
    assert_eq!(vmap_with(last, dot)(&both).unwrap().shape(), [100, 3, 4]);
    let outer = vmap_with(axes(&[Some(0), None]), |p: &Two| vmap_with(axes(&[None, Some(0)]), |(x, y): &Two| x * y)(p));
    let all = outer(&(Tensor::from([1, 2, 3]), Tensor::from([10, 20]))).unwrap();
    assert_eq!(v(&all), [10.0, 20.0, 20.0, 40.0, 30.0, 60.0]);
    let squares = vmap(|x: &Tensor| x.powi(2).sum())(&Tensor::from([[1, 2], [3, 4], [5, 6]])).unwrap();
    assert_eq!(squares.to_vec::<i32>().unwrap(), [5, 25, 61]);
    let each = vmap_with(axes(&[None, Some(0)]), |(w, x): &Two| grad(|w: &Tensor| (w * x).sum().powi(2))(w));
    let rows = zero_to(6).reshape(&[2, 3]);
    close(&each(&(Tensor::ones(&[3]), rows)).unwrap(), &[0.0, 6.0, 12.0, 72.0, 96.0, 120.0]);
    #[derive(Clone, Tree)]
    struct Named {
        a: Tensor,
        b: Tensor,
    }
    let d = Named { a: Tensor::ones(&[4]), b: f(1.0) };
    assert_eq!(vmap_with(axes(&[Some(0), None]), |d: &Named| &d.a + &d.b)(&d).unwrap().shape(), [4]);
}
#[test]
fn vmap_collectives_and_control_flow() {
    let share = vmap_with(named("i"), |x: &Tensor| x / psum(x, "i"));
    close(&share(&Tensor::from([1.0f32, 3.0])).unwrap(), &[0.25, 0.75]);
    let branch = vmap(|x: &Tensor| cond(&x.gt(0), |x: &Tensor| x * 2, |x: &Tensor| -x, x));
    close(&branch(&Tensor::from([-1.0f32, 2.0])).unwrap(), &[1.0, 4.0]);
    let sums = vmap(|n: &Tensor| -> Res<Tensor> {
        let start = (Tensor::from(0), Tensor::from(0));
        Ok(while_loop(|(i, _): &Two| i.lt(n), |(i, s): &Two| (i + 1, s + i), &start)?.1)
    });
    assert_eq!(v(&sums(&Tensor::arange(5, Dtype::I32)).unwrap()), [0.0, 0.0, 1.0, 3.0, 6.0]);
}
#[test]
fn named_axes_nest() {
    let x = zero_to(6).reshape(&[2, 3]);
    let both = vmap_with(named("i"), |r: &Tensor| vmap_with(named("j"), |x: &Tensor| psum(psum(x, "i"), "j"))(r));
    close(&both(&x).unwrap(), &[15.0; 6]);
    let centred = vmap_with(named("i"), |r: &Tensor| vmap_with(named("j"), |x: &Tensor| x - pmean(x, "j"))(r));
    close(&centred(&x).unwrap(), &[-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
    let places = vmap_with(named("i"), |x: &Tensor| axis_index("i") + x);
    assert_eq!(places(&Tensor::zeros_in(&[3], Dtype::I32)).unwrap().to_vec::<i32>().unwrap(), [0, 1, 2]);
}
