//! Faults made on purpose: wherever a backend fails, the reference implementation gives the program's results, from inputs that are still there.
use ferrax::{array, compiled::Compiled, device::Device};
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_testkit::api::*;
use ferrax_testkit::faulty::{Fails, Faulty};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const ALL: [Fails; 4] = [
    Fails::Compiling { panics: true },
    Fails::Compiling { panics: false },
    Fails::Running { panics: true },
    Fails::Running { panics: false },
];
/// A running sum beside its parts, an update in place, a branch, and a sum.
const PROGRAMS: [&str; 4] = [
    "{ lambda ; c:f64[4] x:f64[6,4]. let d:f64[4] e:f64[6,4] = scan[jaxpr={ lambda ; c:f64[4] x:f64[4]. let d:f64[4] = add c x in (d, c) } num_carry=1 num_consts=0 length=6 reverse=False unroll=1] c x in (d, e) }",
    "{ lambda ; x:f64[9]. let y:f64[9] = sin x; i:f64[1] = slice[limit_indices=(3,) start_indices=(2,) strides=None] y; z:f64[9] = dynamic_update_slice y i 7:i32[]; s:f64[] = reduce_sum[axes=(0,)] z in (z, s) }",
    "{ lambda ; i:i32[] x:f64[5]. let y:f64[5] = cond[branches=({ lambda ; x:f64[5]. let y:f64[5] = sin x in (y,) } { lambda ; x:f64[5]. let y:f64[5] = rev[dimensions=(0,)] x in (y,) })] i x in (y,) }",
    "{ lambda ; x:f64[0]. let s:f64[] = reduce_sum[axes=(0,)] x in (s,) }",
];
fn device(fails: Fails) -> &'static Device {
    Box::leak(Box::new(Device::new(1001, 0, Arc::new(Faulty(fails)))))
}
fn values(p: &Program, at: &'static Device) -> Vec<Value> {
    let value = |a: &Aval| {
        let n = a.shape.size();
        let v = if a.dtype.is_inexact() {
            arr(&a.shape, &(0..n).map(|k| 0.3 * k as f64 - 1.0).collect::<Vec<_>>())
        } else {
            int(1)
        };
        match v {
            Value::Array(x) => Value::Array(array::put(&x, at, true).unwrap()),
            v => v,
        }
    };
    p.in_avals().iter().map(value).collect()
}
fn bytes(c: &Compiled, x: &[Value]) -> Vec<Vec<u8>> {
    c.run(x, &[]).unwrap().iter().map(|a| array::bytes(a).unwrap()).collect()
}

#[test]
fn a_fault_leaves_the_results_of_the_reference() {
    init();
    let plain: &'static Device = Box::leak(Box::new(Device::new(1002, 0, Arc::new(ReferenceBackend))));
    for text in PROGRAMS {
        let p = Arc::new(parse(text).unwrap());
        let want = bytes(&Compiled::new(p.clone(), plain).unwrap(), &values(&p, plain));
        for fails in ALL {
            let faulty = device(fails);
            let c = Compiled::new(p.clone(), faulty).unwrap();
            let x = values(&p, faulty);
            assert_eq!(bytes(&c, &x), want, "{fails:?}: {text}");
            assert_eq!(bytes(&c, &x), want, "{fails:?}, again: {text}");
        }
    }
}
/// What was given up may be overwritten by half of a run: there the fault is an error.
#[test]
fn inputs_that_were_given_up_are_not_read_again() {
    init();
    let p = Arc::new(parse(PROGRAMS[1]).unwrap());
    for fails in ALL {
        let faulty = device(fails);
        let c = Compiled::new(p.clone(), faulty).unwrap();
        let run = || c.run(&values(&p, faulty), &[true]).map(|out| array::bytes(&out[0]).map(drop));
        let ended = matches!(catch_unwind(AssertUnwindSafe(run)), Ok(Ok(Ok(()))));
        // compiled by the reference implementation, it meets no fault when it runs
        assert_eq!(ended, matches!(fails, Fails::Compiling { .. }), "{fails:?}");
    }
}
