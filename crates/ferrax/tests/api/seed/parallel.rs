//! Callbacks, and several devices.
use super::*;
use std::sync::{Arc, Mutex};

#[test]
fn debug_print_runs_every_call() {
    let said = Arc::new(Mutex::new(vec![]));
    let (log, traces) = (said.clone(), std::cell::Cell::new(0));
    let square = jit(|x: &Tensor| -> Res<Tensor> {
        let log = log.clone();
        debug_callback(move |x: &Tensor| log.lock().unwrap().push(format!("x = {x}, {:?}", x.shape())), x)?;
        traces.set(traces.get() + 1);
        Ok(x.powi(2))
    });
    for x in [1.0, 2.0] {
        square(&f(x)).unwrap().ready().unwrap();
    }
    effects_barrier().unwrap();
    assert_eq!(traces.get(), 1);
    assert_eq!(*said.lock().unwrap(), ["x = 1.0, []", "x = 2.0, []"]);
    let log = said.clone();
    said.lock().unwrap().clear();
    let add = move |x: &Tensor| {
        log.lock().unwrap().push(format!("{x}"));
        x + 1
    };
    let ordered = jit(move |x: &Tensor| fori_loop(0, 3, |_: &Tensor, x: &Tensor| io_callback(add.clone(), x, x), x));
    assert_eq!(ordered(&Tensor::from(5)).unwrap().item(), 8.0);
    assert_eq!(*said.lock().unwrap(), ["5", "6", "7"]);
}
#[test]
fn callbacks() {
    let sine = |x: &Tensor| -> Res<Tensor> {
        Ok(Tensor::from(x.to_vec::<f32>()?.into_iter().map(f32::sin).collect::<Vec<_>>()))
    };
    let y = jit(move |x: &Tensor| pure_callback(sine, x, x))(&zero_to(3)).unwrap();
    close(&y, &[0f32.sin(), 1f32.sin(), 2f32.sin()]);
    let rows = vmap(move |x: &Tensor| pure_callback(sine, x, x))(&zero_to(6).reshape(&[2, 3])).unwrap();
    close(&rows, &[0, 1, 2, 3, 4, 5].map(|x| (x as f32).sin()));
    // an error in one reaches the reader of its result
    let message = |y: Res<Tensor>| y.and_then(|y| y.to_vec::<f32>()).unwrap_err().to_string();
    let fails = |_: &Tensor| -> Res<Tensor> { Err(Error::value("nothing there")) };
    assert!(message(jit(move |x: &Tensor| pure_callback(fails, x, x))(&f(1.0))).contains("nothing there"));
    let other = |_: &Tensor| Tensor::ones(&[7]);
    assert!(message(jit(move |x: &Tensor| pure_callback(other, x, x))(&f(1.0))).contains("float32[7]"));
    let panics = |x: &Tensor| if x.item() > 0.0 { panic!("too large") } else { x.clone() };
    assert!(message(jit(move |x: &Tensor| pure_callback(panics, x, x))(&f(1.0))).contains("too large"));
}

/// The number of devices is settled at first use, so the program runs in a process of its own.
#[test]
fn pmap_over_four_devices() {
    let name = "seed::parallel::pmap_over_four_devices";
    if std::env::var_os("FERRAX_NUM_CPU_DEVICES").is_none_or(|n| n != "4") {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let out = child.args(["--exact", name]).env("FERRAX_NUM_CPU_DEVICES", "4").output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    assert_eq!(device::cpus().len(), 4);
    let x = zero_to(4);
    let o = PmapOptions { name: Some("d"), ..PmapOptions::default() };
    assert_eq!(v(&pmap(|x: &Tensor| x.powi(2))(&x).unwrap()), [0.0, 1.0, 4.0, 9.0]);
    let others = pmap_with(o.clone(), |x: &Tensor| psum(x, "d") - x);
    assert_eq!(v(&others(&x).unwrap()), [6.0, 5.0, 4.0, 3.0]);
    let turned = pmap_with(o.clone(), |x: &Tensor| ppermute(x, "d", &[(0, 1), (1, 2), (2, 3), (3, 0)]));
    assert_eq!(v(&turned(&x).unwrap()), [3.0, 0.0, 1.0, 2.0]);
    let shared = PmapOptions { in_axes: &[None, Some(0)], ..PmapOptions::default() };
    type Two = (Tensor, Tensor);
    let g = pmap_with(shared, |(p, x): &Two| grad(|p: &Tensor| (p * x).powi(2))(p));
    assert_eq!(v(&g(&(f(2.0), x.clone())).unwrap()), [0.0, 4.0, 16.0, 36.0]);
    // staged it means the same, and derivatives of what all share are sums
    assert_eq!(v(&jit(&others)(&x).unwrap()), [6.0, 5.0, 4.0, 3.0]);
    let squares = pmap_with(PmapOptions { in_axes: &[None, Some(0)], ..o.clone() }, |(p, x): &Two| p * x);
    let total = |p: &Tensor| -> Res<Tensor> { Ok(squares(&(p.clone(), x.clone()))?.sum()) };
    assert_eq!(grad(total)(&f(1.0)).unwrap().item(), 6.0);
    let step = |(p, x, y): &(Tensor, Tensor, Tensor)| -> Res<Tensor> {
        let g = grad(|p: &Tensor| (x.matmul(p) - y).powi(2).mean())(p)?;
        Ok(p - 0.1 * pmean(g, "d"))
    };
    let step = pmap_with(PmapOptions { in_axes: &[None, Some(0), Some(0)], out_axes: &[None], ..o }, step);
    let rows = random::normal(&random::key(0), &[4, 8, 3], Dtype::F32);
    let targets = rows.matmul(Tensor::from([1.0f32, -2.0, 0.5]));
    let mut p = Tensor::zeros(&[3]);
    for _ in 0..200 {
        p = step(&(p, rows.clone(), targets.clone())).unwrap();
    }
    near(&p, &[1.0, -2.0, 0.5], 1e-3);
    let e = pmap(|x: &Tensor| x.clone())(&zero_to(5)).and_then(|y| y.to_vec::<f32>()).unwrap_err();
    assert!(e.kind() == Some(ErrorKind::Value) && e.message().contains("only 4 are available"), "{e}");
    let e = pmap(|(x, _): &Two| x.clone())(&(zero_to(4), zero_to(3))).unwrap_err();
    assert!(e.message().starts_with("pmap got inconsistent sizes"), "{e}");
}
