//! The programs of the two guides (`docs/jax-for-rust.md`, `docs/rust-for-jax.md`), one after the other.
//!
//! ```text
//! cargo run --release -p ferrax --example tour
//! ```
use ferrax::{
    Dtype, ErrorKind, Res, Tensor, Tree, VmapOptions, catch, cond, custom_vjp, eval_shape, grad, jit, jit_static,
    make_jaxpr, nn, optim, random, s, scan, value_and_grad_aux, vmap, vmap_with,
};
use std::collections::BTreeMap;

fn arrays() -> Res<()> {
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let y = (&x * 2.0 + 1.0).sin(); // a reference is used again; a value is given up
    assert_eq!((y.shape(), y.dtype()), (&[2, 3][..], Dtype::F32));
    assert_eq!(x.mean_axes(0).to_vec::<f32>()?, [2.5, 3.5, 4.5]);
    assert_eq!(x.slice(s![.., 1..]).shape(), [2, 2]);
    let z = x.at(s![0, ..]).set(0.0); // a new tensor; x is unchanged
    assert_eq!((z.sum().item(), x.sum().item()), (15.0, 21.0));
    Ok(())
}

fn transforms() -> Res<()> {
    let f = |x: &Tensor| (x.sin() * x).sum();
    let slope = grad(f); // a closure again: Tensor -> Res<Tensor>
    let each = jit(vmap(slope)); // of every row, compiled when it is first called
    let rows = Tensor::from([[0.0f32, 1.0], [2.0, 3.0]]);
    assert_eq!(each(&rows)?.shape(), [2, 2]);
    println!("{}", make_jaxpr(grad(f), &Tensor::ones(&[2]))?); // what was traced
    Ok(())
}

#[derive(Clone, Tree)]
struct Layer {
    w: Tensor,
    b: Tensor,
    #[tree(fixed)]
    name: &'static str,
}
fn trees() -> Res<()> {
    let layer = |name| Layer { w: Tensor::ones(&[3, 3]), b: Tensor::zeros(&[3]), name };
    let net = vec![layer("first"), layer("second")];
    let loss = |net: &Vec<Layer>| {
        let x = net.iter().fold(Tensor::ones(&[1, 3]), |x, l| nn::linear(&x, &l.w, &l.b).tanh());
        x.square().sum()
    };
    let g: Vec<Layer> = grad(loss)(&net)?; // as the network is, names and all
    let net = net.zip(&g, |p, g| p - g * 0.1);
    assert_eq!(net.paths(), ["[0].w", "[0].b", "[1].w", "[1].b"]);
    assert_eq!((net[0].name, net[1].name), ("first", "second"));
    Ok(())
}

fn errors() -> Res<()> {
    let (x, y) = (Tensor::zeros(&[2]), Tensor::zeros(&[3]));
    // a mistake of the program panics with the caller's line, as an index out of bounds does; `catch` makes an error of it
    let e = catch(|| Ok(&x + &y)).unwrap_err();
    assert!(e.message().contains("incompatible shapes"));
    // inside a transform it becomes the transform's error, as does an error returned by `?`
    let e = jit(|x: &Tensor| x + &y)(&x).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::Type));
    // values are not known while a function is traced: `cond` chooses, `if` cannot
    let e = jit(|x: &Tensor| if x.item() > 0.0 { x.clone() } else { -x })(&Tensor::from(1.0f32)).unwrap_err();
    assert_eq!(e.kind(), Some(ErrorKind::Concretization));
    let size = jit(|x: &Tensor| cond(&x.gt(0.0), |x: &Tensor| x.clone(), |x: &Tensor| -x, x));
    assert_eq!(size(&Tensor::from(-2.0f32))?.item(), 2.0);
    Ok(())
}

fn loops() -> Res<()> {
    let step = |c: &Tensor, x: &Tensor| {
        let c = c * 0.9 + x;
        (c.clone(), c)
    };
    let (last, all) = scan(step, &Tensor::from(0.0f32), &Tensor::ones(&[5]))?;
    assert_eq!(all.slice(s![-1]).item(), last.item());
    Ok(())
}

fn options() -> Res<()> {
    // jit(f, static_argnums=0)
    let power = jit_static(|n: &i32, x: &Tensor| x.powi(*n));
    assert_eq!(power(&3, &Tensor::from(2.0f32))?.item(), 8.0);
    // vmap(f, in_axes=(None, 1))
    let o = VmapOptions { in_axes: &[None, Some(1)], ..VmapOptions::default() };
    let columns = vmap_with(o, |(a, x): &(Tensor, Tensor)| (a * x).sum());
    assert_eq!(columns(&(Tensor::ones(&[2]), Tensor::ones(&[2, 3])))?.shape(), [3]);
    // value_and_grad(f, has_aux=True)
    let with_size = |x: &Tensor| (x.square().sum(), BTreeMap::from([("size", x.abs().max())]));
    let ((_, aux), g) = value_and_grad_aux(with_size)(&Tensor::from([3.0f32, -4.0]))?;
    assert_eq!((aux["size"].item(), g.sum().item()), (4.0, -2.0));
    // eval_shape over shapes alone
    let out = eval_shape(|_: &()| Tensor::zeros(&[1 << 20, 1 << 20]).sum_axes(0), &())?;
    assert_eq!(out[0].long(), "float32[1048576]");
    // @custom_vjp
    let clipped =
        custom_vjp(|x: &Tensor| x.clone(), |x: &Tensor| (x.clone(), ()), |_: &(), g: &Tensor| g.clip(-1.0, 1.0));
    let g = grad(|x: &Tensor| -> Res<Tensor> { Ok((clipped(x)? * 5.0).sum()) });
    assert_eq!(g(&Tensor::ones(&[2]))?.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

fn training() -> Res<()> {
    let keys = random::split(&random::key(0), 2);
    let x = random::normal(&keys[0], &[64, 3], Dtype::F32);
    let y = x.matmul(Tensor::from([1.0f32, -2.0, 0.5]));
    let adam = optim::Adam::new(0.1);
    let mut w = random::normal(&keys[1], &[3], Dtype::F32);
    let mut state = adam.init(&w);
    let step = jit(|(w, state): &(Tensor, optim::Moments<Tensor>)| -> Res<_> {
        let g = grad(|w: &Tensor| (x.matmul(w) - &y).square().mean())(w)?;
        Ok(adam.step(w, &g, state))
    });
    for _ in 0..300 {
        (w, state) = step(&(w, state))?;
    }
    assert!((&w - Tensor::from([1.0f32, -2.0, 0.5])).abs().max().item() < 1e-2);
    Ok(())
}

fn main() -> Res<()> {
    for part in [arrays, transforms, trees, errors, loops, options, training] {
        part()?;
    }
    println!("all as the guides say");
    Ok(())
}
