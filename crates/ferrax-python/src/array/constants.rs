//! NumPy arrays that a traced function uses several times: one constant of its program each.
//!
//! ```text
//! c = np.ones(3)
//! make_jaxpr(lambda x: x * c + c)(x)      # { lambda a:f32[3]; b:f32[3]. let c = mul b a; d = add c a in (d,) }
//! ```
//!
//! INVARIANT: a constant is taken again only if the array still has its elements: what was written to it in between makes another one.
use ferrax::array;
use ferrax_ir::value::{Array, Handle, Payload, Tag, Value};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// The constants of one program under construction, by the address of the NumPy array. Neither is kept alive.
#[derive(Default)]
struct Captured {
    program: Weak<Tag>,
    arrays: FxHashMap<usize, (Py<PyWeakrefReference>, Weak<Handle<dyn Payload>>)>,
}
thread_local! {
    static CAPTURED: RefCell<Captured> = RefCell::default();
}

/// `v`, which was read from the NumPy array `x`, or the equal constant that the program under construction has of `x`.
pub fn captured(x: &Bound<PyAny>, v: Value) -> Value {
    let current = ferrax_ir::current();
    match (current.staging(), &v) {
        (Some(program), Value::Array(a)) => again(x, a, program).map_or(v, Value::Array),
        _ => v,
    }
}
fn again(x: &Bound<PyAny>, new: &Array, program: &Arc<Tag>) -> Option<Array> {
    let address = x.as_ptr() as usize;
    CAPTURED.with_borrow_mut(|c| {
        if !c.program.upgrade().is_some_and(|p| Arc::ptr_eq(&p, program)) {
            *c = Captured { program: Arc::downgrade(program), arrays: FxHashMap::default() };
        }
        let known = c.arrays.get(&address).and_then(|(of, a)| {
            let same = of.bind(x.py()).upgrade().is_some_and(|of| of.is(x));
            let a = Array(a.upgrade().filter(|_| same)?);
            (a.aval() == new.aval() && array::bytes(&a).ok()? == array::bytes(new).ok()?).then_some(a)
        });
        if known.is_none()
            && let Ok(of) = PyWeakrefReference::new(x)
        {
            c.arrays.insert(address, (of.unbind(), Arc::downgrade(&new.0)));
        }
        known
    })
}
