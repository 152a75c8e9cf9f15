//! Every misuse is an error that says why: never a panic of another kind, a wrong result or a hang.
#![allow(clippy::reversed_empty_ranges)] // they are misuses to test
use ferrax::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

fn sized(shape: &[usize]) -> Tensor {
    Tensor::ones(shape)
}
/// Whether it gave a value; an error must have a message. Anything else is reported by name.
fn probe(wrong: &mut Vec<String>, name: &str, f: &dyn Fn() -> Res<()>) {
    match catch_unwind(AssertUnwindSafe(|| catch(f))) {
        Ok(Ok(())) => (),
        Ok(Err(e)) if e.message().len() > 10 => (),
        Ok(Err(e)) => wrong.push(format!("{name} says too little: {e}")),
        Err(p) => {
            let m = p.downcast_ref::<String>().cloned().or_else(|| p.downcast_ref::<&str>().map(|m| m.to_string()));
            wrong.push(format!("{name} panics: {}", m.unwrap_or_default()));
        }
    }
}
macro_rules! probes {
    ($wrong:ident; $($e:expr;)*) => { $(
        probe(&mut $wrong, stringify!($e), &|| {
            let _made = $e;
            Ok(())
        });
    )* }
}

#[test]
fn operations_on_what_does_not_fit() {
    let mut wrong = vec![];
    let (none, rows, cube) = (&sized(&[0]), &sized(&[0, 3]), &sized(&[2, 3, 4]));
    let (x, m, scalar) = (&Tensor::from([3.0f32, 1.0, 2.0]), &sized(&[2, 3]), &Tensor::from(1.0f32));
    let (i, key) = (&Tensor::from([0, 7]), &random::key(0));
    let o = &ConvOptions::default();
    for x in [none, rows, cube, x, m, scalar, i, key] {
        probes! { wrong;
            x.median(0); x.quantile(0.5, 0); x.nanquantile(2.0, 0); x.sort(0); x.argsort(0); x.top_k(9, 0); x.top_k(0, -1);
            x.partition(5, 0); x.argpartition(5, 0); x.partition(usize::MAX, 0); x.cumsum(0); x.cumlogsumexp(0); x.max(); x.argmax(0); x.mean();
            x.var_ddof(.., 9.0); x.diff(5, 0); x.gradient(0.1, 0); x.trapezoid(0.1, 0); x.interp(x, x); x.interp(none, none);
            x.convolve(none, Mode::Full); x.correlate(x, Mode::Same); poly::val(x, 2.0); poly::der(x); poly::int(x, 1.0);
            poly::div(x, none); poly::mul(x, x); poly::add(x, none); poly::from_roots(x); poly::roots(x); poly::vander(x, 0); poly::fit(x, x, 2); poly::fit(x, x, 40);
            x.cov(1); x.corrcoef(); x.average(none, 0); x.histogram(0, None); x.histogram(3, Some((1.0, 1.0)));
            x.histogramdd(&[1], None); x.histogram2d(none, [1, 1], None); x.bincount(3); x.digitize(none); x.searchsorted(x); x.searchsorted_right(none);
            x.unique(); x.unique_all(); x.unique_sized(4); x.nonzero(); x.nonzero_sized(3); x.is_in(none); x.union1d(none); x.extract(x);
            x.lexsorted(); x.unravel_index(&[]); x.unravel_index(&[0]); x.choose::<Tensor>(&[]); x.choose(&[x, none]); x.delete(i, 0);
            x.insert(99, 1.0, 0); x.trim_zeros(); x.ediff1d(); x.unwrap(0, 0.0); x.spacing(); x.packbits(0); x.unpackbits(0);
            x.reshape(&[-1, -1]); x.reshape(&[-1, 0]); x.reshape(&[i64::MAX, i64::MAX]); x.reshape(&[usize::MAX, 2]); x.permute(&[0, 0]); x.permute(&[5]);
            x.swap_axes(0, 9); x.move_axis(-9, 0); x.expand_dims(9); x.squeeze(0); x.flip([0, 0]); x.roll(i64::MIN, 0); x.tile(&[]); x.tile(&[usize::MAX]);
            x.repeat(0, 0); x.repeat(usize::MAX, 0); x.pad(&[], 0); x.pad(&[(1, 1); 7], 0); x.pad(&[(-9, 0)], 0); x.pad(&[(i64::MAX, 1)], 0);
            x.tril(i64::MAX); x.triu(i64::MIN); x.diagonal(); x.diag(); x.trace(); x.t(); x.flatten(); x.rot90(1, (0, 0)); x.rot90(i64::MIN, (0, 1));
            x.split(0, 0); x.split(7, 0); x.split_sizes(&[1, 99], 0); x.array_split(0, 0); x.vsplit(2); x.hsplit(0); x.dsplit(2); x.unstack(0); x.unstack(4);
            x.slice(s![99]); x.slice(s![.., .., .., .., ..]); x.slice(s![Ellipsis, Ellipsis]); x.slice(s![i]); x.slice(s![x]); x.slice(s![..; 0]); x.slice(s![5..2]); x.slice(s![..; i64::MIN]);
            x.slice(s![i64::MIN..i64::MAX]); x.slice(s![i64::MAX]); x.slice(s![i64::MIN]); x.at(s![99]).set(1.0); x.at(s![i]).set(none); x.at(s![i, i, i]).add(1.0); x.at(s![..; -1]).set(cube);
            x.take(x, 0); x.take(i, 9); x.take_along_axis(i, 0); x.take_along_axis(scalar, 0); x.take_along_axis(cube, 1);
            x.dynamic_slice(&[0], &[1, 1]); x.dynamic_slice(&[0, 0], &[9, 9]); x.dynamic_update(cube, &[0]); x.dynamic_slice_in_dim(0, 99, 0);
            x.dynamic_index_in_dim(0, 9); x.dynamic_update_slice_in_dim(cube, 0, 0); x.dynamic_update_index_in_dim(cube, 0, 0);
            x.matmul(none); x.matmul(cube); x.dot(none); x.outer(none); dot_general(x, m, (&[9], &[0]), (&[], &[])); dot_general(x, m, (&[0], &[]), (&[], &[]));
            einsum("ij,jk", &[x, m]); einsum("i->", &[x]); einsum::<Tensor>("", &[]); einsum("->->", &[x]); einsum("...i,i...", &[x, x]); einsum("ii", &[x]); einsum("i,j", &[x]); einsum("é", &[x]); einsum("i->jj", &[x]);
            ragged_dot(x, x, i); ragged_dot(m, cube, i); scaled_dot(x, x, None, None, Dtype::F32); scaled_dot(m, m, Some(none), None, Dtype::F32);
            x.conv(m, o); x.conv_transpose(x, o); x.conv_patches(&[2], o); x.conv_patches(&[], o); x.conv_local(x, &[1], o);
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { strides: vec![0, 1], padding: Padding::Same, ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { strides: vec![1], padding: Padding::Same, ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { kernel_dilation: vec![0, 0], ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { input_dilation: vec![0, usize::MAX], ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { feature_groups: 0, ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { batch_groups: 3, ..o.clone() });
            sized(&[1, 1, 4, 4]).conv(&sized(&[1, 1, 2, 2]), &ConvOptions { layout: ("NCHW", "OI", ""), ..o.clone() });
            sized(&[1, 1, 4, 4]).conv_transpose(&sized(&[1, 1, 2, 2]), &ConvOptions { strides: vec![0, 0], padding: Padding::Same, ..o.clone() });
            x.max_windows(&[0], &[1], &Padding::Same); x.sum_windows(&[2], &[0], &Padding::Same); x.mean_windows(&[2, 2], &[], &Padding::Valid); x.min_windows(&[99], &[], &Padding::Valid); x.sum_windows(&[usize::MAX], &[], &Padding::Same);
            nn::max_pool(x, (2, 2), (0, 1), &Padding::Same); nn::dot_product_attention(x, m, cube, None, true); nn::cross_entropy(x, i); nn::one_hot(x, 0); nn::glu(x, 0);
            nn::logmeanexp(x, 0); nn::standardize(x, 5, 0.0); nn::scaled_matmul(x, x, x, x); nn::scaled_matmul(cube, cube, cube, cube); nn::delta_orthogonal(key, &[3], Dtype::F32, 1.0);
            nn::glorot_uniform(key, &[], Dtype::F32); nn::he_normal(key, &[0, 3], Dtype::F32); nn::dropout(key, x, 2.0); nn::linear(x, m, none); nn::scaled_dot_general(x, m, (&[0], &[5]), (&[], &[]));
        }
        probes! { wrong;
            x.fft(0); x.ifft(3); x.rfft(0); x.irfft(0, 0); x.irfft(usize::MAX, 0); x.fftn(..); x.fftn([0, 0]); x.irfftn(4, [0usize; 0]); x.hfft(0, 0); x.ihfft(0); x.fftshift(7);
            linalg::cholesky(x); linalg::lu(x); linalg::qr(x); linalg::svd(x); linalg::eigh(x); linalg::eig(x); linalg::solve(x, x); linalg::solve(m, x); linalg::solve_triangular(x, x, true, false);
            linalg::solve_triangular(m, none, true, false); linalg::inv(x); linalg::det(x); linalg::slogdet(x); linalg::matrix_power(x, i32::MIN); linalg::matrix_power(&sized(&[1, 1]), i32::MIN); linalg::lstsq(x, x, None); linalg::lstsq(m, none, None);
            linalg::pinv(x); linalg::matrix_rank(x); linalg::matrix_norm(x); linalg::multi_dot(&[]); linalg::multi_dot(&[x]); linalg::multi_dot(&[m, m]); linalg::kron(x, none); linalg::tensordot(x, m, 2); linalg::tensordot(x, m, 1);
            linalg::cross(x, none); linalg::vdot(x, none); linalg::matvec(x, m); linalg::vecmat(x, none); linalg::tensorinv(x, 9); linalg::tensorinv(cube, 1); linalg::tensorsolve(x, cube); linalg::singular_values(x); linalg::eigvals(none);
            concatenate(&[x, cube], 0); concatenate::<Tensor>(&[], 0); stack(&[x, none], 9); where_(x, m, none); broadcast_arrays(&[x, none]); meshgrid::<Tensor>(&[]); meshgrid(&[cube]); block(&[]); block(&[&[]]); block(&[&[x, m]]);
            vstack::<Tensor>(&[]); hstack(&[x, scalar]); dstack(&[x, cube]); column_stack(&[x, cube]); lexsort::<Tensor>(&[], 0); ravel_multi_index(&[x], &[]);
            x.pow(-1); x.pow(none); x.pow(cube); x.powi(i32::MIN); x.modulo(0); x.floor_div(0); x % 0; x / none; x & 1; x << 40; !x; -x; x.bitcast(Dtype::F64); x.bitcast(Dtype::I8); x.complex(x); x.astype(Dtype::C64);
            x.igamma(none); x.zeta(x); x.betainc(x, none); x.mul_hi(x); x.reduce_precision(0, 99); x.segment_sum(i, 3); x.segment_max(x, 0); x.segment_prod(none, 2); x.broadcast_to(&[5, 5, 5, 5]); x.broadcast_to(&[]); x.clip(none, 1);
            special::gcd(x, 0); special::frexp(x); special::ldexp(x, none); special::sinc(x); special::kaiser(0, 1.0); special::i0(x);
            random::normal(x, &[3], Dtype::F32); random::normal(key, &[3], Dtype::I32); random::uniform(key, &[usize::MAX, 2], Dtype::F32); random::bits(key, &[1], Dtype::F32); random::split(key, 0); random::split(key, usize::MAX); random::fold_in(key, x);
            random::randint(key, &[2], x, m); random::choice(key, x, &[99], false, None, 0); random::choice(key, x, &[2], true, Some(none), 0); random::categorical(key, x, 9); random::permutation(key, x, 9); random::bernoulli(key, x, &[7]);
            random::multivariate_normal(key, x, m, &[], Dtype::F32); random::orthogonal(key, 0, 3, &[], Dtype::F32); random::dirichlet(key, x, &[], Dtype::F32); random::multinomial(key, 3, x, Dtype::F32); random::ball(key, 0, 2, &[2], Dtype::F32);
            random::gamma(key, x, &[9], Dtype::F32); random::poisson(key, -1.0, &[3]); random::binomial(key, -4, 2.0, &[3], Dtype::F32); random::truncated_normal(key, 2.0, -2.0, &[3], Dtype::F32); random::geometric(key, 0.0, &[3]);
            random::rng_bit_generator(x, &[3], Dtype::U32, random::Algorithm::Default); random::wrap_key_data(x); random::key_data(x);
            Tensor::linspace(0.0, 1.0, 0); Tensor::geomspace(0.0, 1.0, 3); Tensor::logspace(0.0, 1.0, 1); Tensor::eye(0, 3); Tensor::arange(usize::MAX, Dtype::I32); Tensor::iota(&[2], 3, Dtype::I32); Tensor::zeros(&[1 << 40, 1 << 40]); Tensor::zeros(&[usize::MAX, 0]);
            Tensor::new(&[1.0f32], &[2])?; Tensor::new(&[1.0f32], &[usize::MAX, usize::MAX])?; Tensor::from_bytes(&[1, 2], Dtype::F32, &[])?; Tensor::tri(0, 0, i64::MAX); Tensor::tril_indices(3, i64::MIN, 3); Tensor::indices(&[]); Tensor::indices(&[0, 2]);
            Tensor::bind("no", &[x], ParamMap::default()); Tensor::bind("sin", &[], ParamMap::default()); Tensor::bind("add", &[x, cube], ParamMap::default()); windows::hanning(0); windows::blackman(1); fftfreq(0, 1.0); rfftfreq(0, 0.0); x.to_vec::<i64>()?; x.item();
            dlpack::export(x).and_then(dlpack::import)?;
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}
trait Lexsorted {
    fn lexsorted(&self) -> Tensor;
}
impl Lexsorted for Tensor {
    fn lexsorted(&self) -> Tensor {
        lexsort(&[self, &Tensor::zeros(&[2, 2])], 0)
    }
}

#[test]
fn transforms_of_what_does_not_fit() {
    let mut wrong = vec![];
    let (x, m) = (&Tensor::from([1.0f32, 2.0, 3.0]), &sized(&[2, 3]));
    let i = &Tensor::from([1, 2, 3]);
    let sum = |x: &Tensor| x.sum();
    let id = |x: &Tensor| x.clone();
    probes! { wrong;
        grad(id)(x)?; grad(sum)(i)?; grad(|x: &Tensor| x.sum().astype(Dtype::I32))(x)?; value_and_grad(sum)(i)?; grad(|x: &Vec<Tensor>| x[0].sum())(&vec![x.clone()])?;
        jvp(sum, x, m)?; jvp(sum, i, i)?; vjp(sum, x)?.1(x)?; linearize(sum, x)?.1(m)?; hessian(id)(x)?; jacrev(sum)(i)?; jacfwd(sum)(i)?; linear_transpose(sum, x)?(x)?; linear_transpose(|x: &Tensor| x.sin(), x)?(x)?;
        vmap(id)(&Tensor::from(1.0f32))?; vmap(|t: &(Tensor, Tensor)| &t.0 + &t.1)(&(x.clone(), m.clone()))?; vmap(sum)(&Tensor::zeros(&[0, 3]))?; vmap(|_: &()| Tensor::from(1))(&())?;
        vmap_with(VmapOptions { in_axes: &[Some(7)], ..VmapOptions::default() }, sum)(x)?; vmap_with(VmapOptions { in_axes: &[None], ..VmapOptions::default() }, sum)(x)?; vmap_with(VmapOptions { in_axes: &[Some(0), Some(0)], ..VmapOptions::default() }, sum)(x)?;
        scan(|c: &Tensor, x: &Tensor| (c + x, ()), &Tensor::from(0), x)?; scan(|c: &Tensor, _: &Tensor| (stack(&[c, c], 0), ()), &Tensor::from(0.0f32), x)?; scan(|c: &Tensor, t: &(Tensor, Tensor)| (c + t.0.sum(), ()), &Tensor::from(0.0f32), &(x.clone(), m.clone()))?;
        scan_with(ScanOptions { length: Some(9), ..ScanOptions::default() }, |c: &Tensor, x: &Tensor| (c + x, ()), &Tensor::from(0.0f32), x)?; scan_with(ScanOptions { length: None, ..ScanOptions::default() }, |c: &Tensor, _: &()| (c.clone(), ()), &Tensor::from(0.0f32), &())?;
        while_loop(|x: &Tensor| x.clone(), id, x)?; while_loop(|x: &Tensor| x.sum(), id, x)?; while_loop(|_: &Tensor| Tensor::from(false), |x: &Tensor| x.sum(), x)?; fori_loop(0, 3, |_: &Tensor, x: &Tensor| x.sum(), x)?; fori_loop(5, -3, |_: &Tensor, x: &Tensor| x.clone(), x)?;
        cond(x, id, id, x)?; cond(&Tensor::from(true), id, sum, x)?; cond(&Tensor::from(1.5f32), id, id, x)?; associative_scan(|a: &Tensor, b: &Tensor| a + b, x, 4, false)?; associative_scan(|a: &Tensor, _: &Tensor| a.sum(), x, 0, false)?;
        jit(|x: &Tensor| if x.sum().item() > 0.0 { x.clone() } else { -x })(x)?; jit(|x: &Tensor| x.to_vec::<f32>().map(Tensor::from))(x)?; jit(|x: &Tensor| x.slice(s![&x.gt(1.0)]))(x)?; jit(|x: &Tensor| x.nonzero().remove(0))(x)?; jit(|x: &Tensor| dlpack::export(x).and_then(dlpack::import))(x)?;
        psum(x, "nobody"); axis_index("nobody"); pmap(sum)(&Tensor::zeros(&[99, 3]))?; eval_jaxpr(&make_jaxpr(sum, x)?, &[])?; eval_jaxpr(&make_jaxpr(sum, x)?, &[m])?; check_grads(|x: &Tensor| x.stop_gradient() * x, x, 1, 1e-2)?;
        custom_vjp(id, |x: &Tensor| (x.clone(), ()), |_: &(), _: &Tensor| Tensor::zeros(&[7]))(x)?;
        grad(|x: &Tensor| custom_vjp(id, |x: &Tensor| (x.clone(), ()), |_: &(), _: &Tensor| Tensor::zeros(&[7]))(x).map(|y| y.sum()))(x)?;
        grad(|x: &Tensor| custom_vjp(id, |x: &Tensor| (x.clone(), ()), |_: &(), _: &Tensor| Tensor::from([1, 2, 3]))(x).map(|y| y.sum()))(x)?;
        grad(|x: &Vec<Tensor>| custom_vjp(|x: &Vec<Tensor>| x[0].clone(), |x: &Vec<Tensor>| (x[0].clone(), ()), |_: &(), _: &Tensor| Vec::<Tensor>::new())(x).map(|y| y.sum()))(&vec![x.clone()])?;
        jvp(|x: &Tensor| custom_jvp(id, |x: &Tensor, _: &Tensor| (x.clone(), x.sum()))(x), x, x)?; jvp(|x: &Tensor| custom_jvp(id, |x: &Tensor, dx: &Tensor| (x.sum(), dx.clone()))(x), x, x)?;
        x.zip(m, |a, b| a + b); vec![x.clone()].zip(&vec![], |a, _| a.clone()); Tree::zip_all(&[] as &[Tensor], |t| t[0].clone()); Tree::zip_all(&[Some(x.clone()), None], |t| t[0].clone());
        optim::sgd(&vec![x.clone()], &vec![], 0.1); optim::Adam::new(0.1).step(x, m, &optim::Adam::new(0.1).init(x)); reduce(x, 0.0, |a: &Tensor, _: &Tensor| a.clone() + m, 0)?; reduce_window(x, 0.0, |a: &Tensor, b: &Tensor| a + b, &[2, 2], &[], &Padding::Valid)?;
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rules_that_return_what_does_not_belong() {
    type Two = (Tensor, Tensor);
    let x = (Tensor::from([1, 2]), Tensor::from([1.0f32, 2.0]));
    let value = |x: &Two| &x.0 * &x.1;
    let grads = |bwd: fn(&(), &Tensor) -> Two| {
        let f = custom_vjp(value, move |x: &Two| (value(x), ()), bwd);
        let rest = x.0.clone();
        grad(move |x: &Tensor| f(&(rest.clone(), x.clone())).map(|y| y.sum()))(&x.1)
    };
    // what is given for integers is not asked, be it of any type
    for g in [grads(|_, g| (g.clone(), g * 3.0)), grads(|_, g| (g.astype(Dtype::I32), g * 3.0))] {
        assert_eq!(g.unwrap().to_vec::<f32>().unwrap(), [3.0, 3.0]);
    }
    for (g, got) in [
        (grads(|_, g| (g.clone(), g.sum())), "float32[]"),
        (grads(|_, g| (g.clone(), g.astype(Dtype::F64))), "float64[2]"),
    ] {
        let e = g.unwrap_err();
        assert!(e.message().contains(&format!("expected float32[2], got {got}")), "{e}");
    }
    let empty =
        custom_vjp(|x: &Vec<Tensor>| x[0].clone(), |x: &Vec<Tensor>| (x[0].clone(), ()), |_: &(), _: &Tensor| vec![]);
    let e = grad(|x: &Vec<Tensor>| empty(x).map(|y| y.sum()))(&vec![x.1.clone()]).unwrap_err();
    assert!(e.message().contains("for each of 1, and gave 0"), "{e}");
    let tangent = custom_jvp(|x: &Tensor| x.clone(), |x: &Tensor, dx: &Tensor| (x.clone(), dx.sum()));
    let e = jvp(&tangent, &x.1, &x.1).unwrap_err();
    assert!(e.message().contains("expected float32[2], got float32[]"), "{e}");
    // rules without outputs are called, too
    let asked = custom_vjp(
        |x: &Tensor| (x.clone(), x * 2.0),
        |x: &Tensor| ((x.clone(), x * 2.0), ()),
        |_: &(), g: &Two| &g.0 + 1.0,
    );
    let g = grad(|x: &Tensor| asked(x).map(|y| y.1.sum()))(&x.1).unwrap();
    assert_eq!(g.to_vec::<f32>().unwrap(), [1.0, 1.0]);
}
#[test]
fn tracers_that_escape_are_reported_wherever_they_are_used() {
    let kept: Arc<Mutex<Vec<Tensor>>> = Arc::default();
    let keep = |x: &Tensor| {
        kept.lock().unwrap().push(x * 2.0);
        x.sum()
    };
    let x = Tensor::from([1.0f32, 2.0]);
    jit(keep)(&x).unwrap();
    grad(keep)(&x).unwrap();
    vmap(keep)(&Tensor::ones(&[2, 2])).unwrap();
    let all = std::mem::take(&mut *kept.lock().unwrap());
    assert!(all.len() >= 3);
    for t in all {
        let used = |t: Tensor| catch(move || (&t + 1.0).to_vec::<f32>());
        assert!(used(t.clone()).is_err(), "{t:?}");
        let elsewhere = std::thread::spawn(move || used(t).is_err()).join();
        assert!(elsewhere.unwrap());
    }
    // what it touched is whole
    assert_eq!(jit(|x: &Tensor| x.sum())(&x).unwrap().item(), 3.0);
}
#[test]
fn threads_share_compiled_functions_and_each_hears_of_its_own_mistakes() {
    let f = Arc::new(jit(|x: &Tensor| {
        if x.shape()[0] == 3 {
            let _ = x + Tensor::zeros(&[2]);
        }
        x.sin().sum()
    }));
    let workers: Vec<_> = (0..8)
        .map(|k| {
            let f = f.clone();
            std::thread::spawn(move || {
                for n in 0..40usize {
                    let n = (n + k) % 6;
                    let y = f(&Tensor::ones(&[n]));
                    match n {
                        3 => assert!(y.unwrap_err().message().contains("misuse.rs"), "the error names the place"),
                        n => assert!((y.unwrap().item() - n as f64 * 1f64.sin()).abs() < 1e-5),
                    }
                    let g = grad(|x: &Tensor| f(x).map(|y| y * 2.0))(&Tensor::ones(&[n]));
                    assert_eq!(g.is_err(), n == 3);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|w| w.join().unwrap());
}
#[test]
fn a_panic_of_the_users_own_passes_through_and_leaves_nothing_behind() {
    let x = Tensor::from([1.0f32, 2.0]);
    for f in [0, 1, 2] {
        let died = catch_unwind(AssertUnwindSafe(|| {
            let boom = |_: &Tensor| -> Tensor { panic!("of my own") };
            match f {
                0 => jit(boom)(&x),
                1 => grad(boom)(&x),
                _ => vmap(boom)(&x),
            }
        }));
        let p = died.unwrap_err();
        assert_eq!(p.downcast_ref::<&str>(), Some(&"of my own"));
        // traces, scopes and locks are as they were
        let y = jit(vmap(grad(|x: &Tensor| x * x)))(&x).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0]);
    }
    // a closure may catch, and go on
    let f = |x: &Tensor| {
        let tried = catch(|| Ok(x + Tensor::zeros(&[7])));
        tried.unwrap_or_else(|_| x * 3.0).sum()
    };
    assert_eq!(jit(grad(f))(&x).unwrap().to_vec::<f32>().unwrap(), [3.0, 3.0]);
    // and give up by `?`, through several transforms
    let g = |x: &Tensor| -> Res<Tensor> { Err(Error::value(format!("no {}", x.rank()))) };
    let e = jit(vmap(move |x: &Tensor| grad(g)(x)))(&x).unwrap_err();
    assert_eq!((e.kind(), e.message()), (Some(ErrorKind::Value), "no 0"));
}
#[test]
fn a_tensor_that_was_given_up_says_so() {
    let x = Tensor::ones(&[1000]);
    let y = jit_donate(|x: &Tensor| x * 2.0)(x.clone()).unwrap();
    assert_eq!(y.sum().item(), 2000.0);
    for e in
        [x.to_vec::<f32>().unwrap_err(), catch(|| Ok(&x + 1)).unwrap_err(), jit(|x: &Tensor| x + 1)(&x).unwrap_err()]
    {
        assert!(e.message().contains("deleted"), "{e}");
    }
    // lent memory is not written to
    let x = Tensor::ones(&[1000]);
    let lent = dlpack::export(&x).unwrap();
    jit_donate(|x: &Tensor| x * 2.0)(x).unwrap();
    let again = dlpack::import(lent).unwrap();
    let y = jit_donate(|x: &Tensor| x * 3.0)(again.clone()).unwrap();
    assert_eq!(y.sum().item(), 3000.0);
    drop(again);
}
