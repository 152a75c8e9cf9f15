//! A small API for tests: functions of `f64` values, control flow and derivatives over closures. Operators panic with their error;
//! `catch` turns it back into one.
use ferrax_ir::cx::{Fun, bind, current};
use ferrax_ir::mask::cat;
use ferrax_ir::operators::emit;
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::call::Call;
use ferrax_ir::ops::checkpoint::{Policy, Remat};
use ferrax_ir::ops::collective::{AllReduce, AllReduceKind, AxisIndex, Names};
use ferrax_ir::ops::cond::{Cond, widen};
use ferrax_ir::ops::convert::Convert;
use ferrax_ir::ops::custom::{CustomJvp, CustomVjp, NumOuts};
use ferrax_ir::ops::dot::{Dot, DotDims};
use ferrax_ir::ops::dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
use ferrax_ir::ops::iota::Iota;
use ferrax_ir::ops::loops::{Loop, Trip};
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::ops::reduce::{Monoid, Reduce};
use ferrax_ir::ops::reshape::Reshape;
use ferrax_ir::ops::select::Select;
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::value::Values;
use ferrax_transform::trace::{Executor, Trace};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Once};

pub use ferrax_ir::operators::catch;
pub use ferrax_ir::{Aval, Dims, Dtype, Error, ErrorKind, Lit, Op, Program, Res, Value, parse};
pub use ferrax_transform::Linear;

/// Functions of flat argument lists.
pub type F<'a> = &'a dyn Fn(&[Value]) -> Res<Vec<Value>>;

// ---- evaluation ----

thread_local! {
    /// How often each primitive ran eagerly on this thread, for tests that count work. `None`: not counting.
    static COUNTS: RefCell<Option<HashMap<&'static str, usize>>> = const { RefCell::new(None) };
}
struct Counting;
impl Executor for Counting {
    fn run(&self, op: &Op, x: &[Value]) -> Res<Values> {
        COUNTS.with(|c| {
            if let Some(c) = &mut *c.borrow_mut() {
                *c.entry(op.name()).or_default() += 1;
            }
        });
        ferrax::eval::Eager.run(op, x)
    }
}
pub fn counting<T>(f: impl FnOnce() -> T) -> (T, HashMap<&'static str, usize>) {
    COUNTS.with(|c| *c.borrow_mut() = Some(HashMap::new()));
    let out = f();
    (out, COUNTS.with(|c| c.borrow_mut().take()).unwrap_or_default())
}
/// Evaluation that counts, on enough devices for the examples of pmap. Idempotent; before any array is made.
pub fn init() {
    static DEVICES: Once = Once::new();
    DEVICES.call_once(|| ferrax::device::set_num_cpu_devices(4).expect("no device was used before"));
    ferrax_transform::install(|| Trace::eval(Rc::new(Counting)))
}

// ---- arrays ----

pub fn f64s(shape: &[usize]) -> Aval {
    Aval::new(Dtype::F64, shape)
}
pub fn arr(shape: &[usize], v: &[f64]) -> Value {
    init();
    let bytes: Vec<u8> = v.iter().flat_map(|x| x.to_le_bytes()).collect();
    Value::Array(
        ferrax::array::from_bytes(f64s(shape), &bytes, ferrax::device::default_device(), false).expect("an array"),
    )
}
pub fn sc(x: f64) -> Value {
    arr(&[], &[x])
}
pub fn vec1(v: &[f64]) -> Value {
    arr(&[v.len()], v)
}
/// A literal.
pub fn k(x: f64) -> Value {
    ferrax_ir::cx::lit(Dtype::F64, x)
}
pub fn int(x: i64) -> Value {
    ferrax_ir::cx::int(Dtype::I32, x)
}
/// The elements, as doubles.
pub fn nums(v: &Value) -> Vec<f64> {
    match v {
        Value::Lit(l) => vec![l.parts().0],
        Value::Array(a) => {
            let d = a.aval().dtype.num().expect("real elements");
            let bytes = ferrax::array::bytes(a).expect("elements");
            bytes.chunks_exact(d.size()).map(|b| ferrax_kernel::Scalar::from_bytes(d, b).to_f64()).collect()
        }
        Value::Tracer(_) => panic!("a tracer has no elements: {v:?}"),
    }
}
/// A number for Python-like branching.
pub fn item(v: &Value) -> Res<f64> {
    Ok(v.item()?.parts().0)
}

// ---- functions ----

macro_rules! unary {
    ($($f:ident $F:ident)*) => { $(pub fn $f(x: &Value) -> Value { emit(Pw::$F, std::slice::from_ref(x)) })* }
}
unary! { sin Sin cos Cos exp Exp log Log tanh Tanh sqrt Sqrt stop_gradient StopGradient }

pub fn pw(f: Pw, x: &[Value]) -> Value {
    emit(f, x)
}
pub fn powi(x: &Value, n: i32) -> Value {
    emit(Pointwise { f: Pw::IntegerPow, y: n }, std::slice::from_ref(x))
}
pub fn lt(x: &Value, y: &Value) -> Value {
    emit(Pw::Lt, &[x.clone(), y.clone()])
}
pub fn gt(x: &Value, y: &Value) -> Value {
    emit(Pw::Gt, &[x.clone(), y.clone()])
}
pub fn and(x: &Value, y: &Value) -> Value {
    emit(Pw::And, &[x.clone(), y.clone()])
}
pub fn select(p: &Value, on_true: &Value, on_false: &Value) -> Value {
    emit(Select {}, &[p.clone(), on_false.clone(), on_true.clone()])
}
pub fn convert(x: &Value, to: Dtype) -> Value {
    emit(Convert { new_dtype: to, weak_type: false }, std::slice::from_ref(x))
}
pub fn sum(x: &Value) -> Value {
    emit(Reduce { kind: Monoid::Sum, axes: (0..x.rank()).collect() }, std::slice::from_ref(x))
}
pub fn reduce(kind: Monoid, x: &Value, axes: &[usize]) -> Value {
    emit(Reduce { kind, axes: axes.into() }, std::slice::from_ref(x))
}
pub fn sum_axis(x: &Value, axis: usize) -> Value {
    reduce(Monoid::Sum, x, &[axis])
}
pub fn broadcast(x: &Value, shape: &[usize], dims: &[usize]) -> Value {
    emit(BroadcastInDim { broadcast_dimensions: dims.into(), shape: Dims::new(shape).into() }, std::slice::from_ref(x))
}
pub fn reshape(x: &Value, shape: &[usize]) -> Value {
    emit(Reshape { new_sizes: shape.into() }, std::slice::from_ref(x))
}
pub fn transpose(x: &Value, perm: &[usize]) -> Value {
    emit(Transpose { permutation: perm.into() }, std::slice::from_ref(x))
}
pub fn iota(dtype: Dtype, shape: &[usize], dim: usize) -> Value {
    init();
    emit(Iota { dtype, shape: Dims::new(shape).into(), dimension: dim }, &[])
}
pub fn matmul(x: &Value, y: &Value) -> Value {
    dot_general(x, y, &[x.rank() - 1], &[0], &[], &[])
}
pub fn dot_general(x: &Value, y: &Value, lc: &[usize], rc: &[usize], lb: &[usize], rb: &[usize]) -> Value {
    emit(Dot::new(DotDims { lc: lc.into(), rc: rc.into(), lb: lb.into(), rb: rb.into() }), &[x.clone(), y.clone()])
}
pub fn dynamic_slice(x: &Value, start: &[Value], sizes: &[usize]) -> Value {
    emit(DynamicSlice { slice_sizes: sizes.into() }, &[std::slice::from_ref(x), start].concat())
}
pub fn dynamic_update(x: &Value, u: &Value, start: &[Value]) -> Value {
    emit(DynamicUpdateSlice {}, &[&[x.clone(), u.clone()], start].concat())
}

// ---- control flow: bodies become programs, their captures become leading operands ----

fn avals(x: &[Value]) -> Vec<Aval> {
    x.iter().map(Value::aval).collect()
}
fn outs(r: Res<Values>) -> Res<Vec<Value>> {
    r.map(Values::into_vec)
}
pub fn make_program(f: F, ins: &[Aval]) -> Res<(Program, Vec<Value>)> {
    init();
    ferrax_transform::make_program(&|x| Ok(f(x)?.into()), ins)
}
fn body(f: F, ins: &[Aval]) -> Res<(Arc<Program>, Vec<Value>)> {
    let (p, consts) = make_program(f, ins)?;
    Ok((Arc::new(p.open()), consts))
}
fn check_alive(x: &[Value]) -> Res<()> {
    x.iter().try_for_each(Value::check_alive)
}

/// f: (carry.., x..) -> (carry.., y..). Returns the final carry and the stacked ys.
pub fn scan(f: F, init: &[Value], xs: &[Value], n: usize, reverse: bool) -> Res<Vec<Value>> {
    check_alive(init)?;
    let ins = [avals(init), xs.iter().map(|x| x.aval().unbatched(0)).collect()].concat();
    let (body, consts) = body(f, &ins)?;
    let l = Loop { reverse, ..Loop::new(Trip::Static(n), consts.len(), init.len(), body) };
    outs(bind(&l.into(), &[&consts, init, xs].concat()))
}
pub fn while_loop(cond: F, f: F, init: &[Value]) -> Res<Vec<Value>> {
    let (cond, cc) = body(cond, &avals(init))?;
    let (body, bc) = body(f, &avals(init))?;
    let trip = Trip::While { cond, n_cond: cc.len(), counted: false };
    outs(bind(&Loop::new(trip, bc.len(), init.len(), body).into(), &[&cc, &bc, init].concat()))
}
pub fn switch(index: &Value, branches: &[F], x: &[Value]) -> Res<Vec<Value>> {
    let parts: Vec<_> = branches.iter().map(|f| body(*f, &avals(x))).collect::<Res<_>>()?;
    let consts: Vec<Vec<Aval>> = parts.iter().map(|p| avals(&p.1)).collect();
    let wide = parts.iter().enumerate().map(|(k, (p, _))| widen(p, k, &consts, x.len()));
    let captured: Vec<Value> = parts.iter().flat_map(|p| p.1.clone()).collect();
    outs(bind(&Cond { branches: wide.collect() }.into(), &[std::slice::from_ref(index), &captured, x].concat()))
}
pub fn cond(p: &Value, on_true: F, on_false: F, x: &[Value]) -> Res<Vec<Value>> {
    switch(&convert(p, Dtype::I32), &[on_false, on_true], x)
}

/// Traces once per signature. A trace that closed over tracers belongs to its caller's trace and is not kept.
pub fn jit<G: Fn(&[Value]) -> Res<Vec<Value>> + 'static>(f: G) -> impl Fn(&[Value]) -> Res<Vec<Value>> {
    type Cache = HashMap<Vec<Aval>, (Arc<Program>, Vec<Value>)>;
    let cache: RefCell<Cache> = RefCell::default();
    move |x| {
        let key = avals(x);
        let hit = cache.borrow().get(&key).cloned();
        let (body, consts) = match hit {
            Some(hit) => hit,
            None => {
                let traced = body(&f, &key)?;
                if !traced.1.iter().any(Value::is_tracer) {
                    cache.borrow_mut().insert(key, traced.clone());
                }
                traced
            }
        };
        outs(bind(&Call::new("f", body).into(), &[&consts, x].concat()))
    }
}

/// `f`, whose residuals in reverse mode are its arguments: the rest is computed again.
pub fn checkpoint(f: F, x: &[Value]) -> Res<Vec<Value>> {
    let (body, consts) = body(f, &avals(x))?;
    outs(bind(&Remat::new(body).into(), &[&consts, x].concat()))
}
/// The same; values that the policy selects are kept as well.
pub fn checkpoint_keeping(policy: &Policy, f: F, x: &[Value]) -> Res<Vec<Value>> {
    let (body, consts) = body(f, &avals(x))?;
    let op = Remat { policy: Some(policy.clone()), ..Remat::new(body) };
    outs(bind(&op.into(), &[&consts, x].concat()))
}
/// Policies that keep everything, nothing, and the results of one primitive.
pub fn policies() -> Vec<Policy> {
    let sines = Policy::new("sines", 1, Arc::new(()), Arc::new(|op, _| Ok(op.name() == "sin")));
    ["everything_saveable", "nothing_saveable"].into_iter().filter_map(Policy::named).chain([sines]).collect()
}

pub fn psum(x: &Value, axis: &str) -> Value {
    emit(
        AllReduce {
            kind: AllReduceKind::Sum,
            axes: Names([axis.into()].into_iter().collect()),
            axis_index_groups: None,
        },
        std::slice::from_ref(x),
    )
}
pub fn axis_index(axis: &str) -> Value {
    emit(AxisIndex { axis_name: axis.into() }, &[])
}

pub type G = Arc<dyn Fn(&[Value]) -> Res<Vec<Value>> + Send + Sync>;
fn fun(name: &str, f: G) -> Fun {
    Fun::user(name, move |x| Ok(f(x)?.into()))
}
pub fn custom_jvp(name: &'static str, f: G, rule: G) -> impl Fn(&[Value]) -> Res<Vec<Value>> {
    let op = CustomJvp {
        name: name.into(),
        call_jaxpr: fun(name, f),
        jvp: fun("rule", rule),
        num_consts: 0,
        symbolic_zeros: false,
    };
    move |x| outs(bind(&op.clone().into(), x))
}
pub fn custom_vjp(name: &'static str, n_out: usize, f: G, fwd: G, bwd: G) -> impl Fn(&[Value]) -> Res<Vec<Value>> {
    let op = CustomVjp {
        name: name.into(),
        call_jaxpr: fun(name, f),
        fwd: fun("fwd", fwd),
        bwd: fun("bwd", bwd),
        num_consts: 0,
        num_outs: NumOuts::new(n_out),
        symbolic_zeros: false,
    };
    move |x| outs(bind(&op.clone().into(), x))
}

// ---- transforms ----

pub fn jvp(f: F, x: &[Value], dx: &[Option<Value>]) -> Res<(Vec<Value>, Vec<Option<Value>>)> {
    let (y, dy) = ferrax_transform::jvp(&|x| Ok(f(x)?.into()), x, dx)?;
    Ok((y.into_vec(), dy))
}
pub fn linearize(f: F, x: &[Value]) -> Res<(Vec<Value>, Linear)> {
    let (y, lin) = ferrax_transform::linearize(&|x| Ok(f(x)?.into()), x)?;
    Ok((y.into_vec(), lin))
}
pub fn linear_transpose(f: F, ins: &[Aval], ct: &[Option<Value>]) -> Res<Vec<Option<Value>>> {
    ferrax_transform::linear_transpose(&|x| Ok(f(x)?.into()), ins, ct)
}
pub fn vmap(f: F, x: &[Value], in_axes: &[Option<usize>], out_axes: &[usize]) -> Res<Vec<Value>> {
    vmap_named(None, f, x, in_axes, out_axes)
}
pub fn vmap_named(
    name: Option<&str>,
    f: F,
    x: &[Value],
    in_axes: &[Option<usize>],
    out_axes: &[usize],
) -> Res<Vec<Value>> {
    let n = ferrax_transform::batch_size(x, in_axes)?;
    outs(ferrax_transform::vmap(&|x| Ok(f(x)?.into()), x, in_axes, n, name.map(Into::into), &|i, _, _| {
        Ok(Some(out_axes.get(i).copied().unwrap_or(0)))
    }))
}
fn materialise(t: Option<Value>, a: &Aval) -> Res<Value> {
    current().inst(&t, a)
}
pub fn value_and_grads(f: F, x: &[Value]) -> Res<(Value, Vec<Value>)> {
    let (y, lin) = linearize(f, x)?;
    if y.len() != 1 || y[0].rank() != 0 {
        return Err(Error::type_error(format!(
            "Gradient only defined for scalar-output functions. Output had shape: {:?}.",
            y[0].shape()
        )));
    }
    let g = lin.transpose(&[Some(k(1.0))])?;
    Ok((y[0].clone(), g.into_iter().zip(x).map(|(t, x)| materialise(t, &x.aval())).collect::<Res<_>>()?))
}
/// d f / d x, of a function of one argument.
pub fn grad1(f: &dyn Fn(&Value) -> Res<Value>, x: &Value) -> Res<Value> {
    Ok(value_and_grads(&|a| Ok(vec![f(&a[0])?]), std::slice::from_ref(x))?.1.remove(0))
}
pub fn jvp1(f: &dyn Fn(&Value) -> Res<Value>, x: &Value, dx: &Value) -> Res<(Value, Value)> {
    let (mut y, mut dy) = jvp(&|a| Ok(vec![f(&a[0])?]), std::slice::from_ref(x), &[Some(dx.clone())])?;
    let y = y.remove(0);
    Ok((y.clone(), materialise(dy.remove(0), &y.aval())?))
}
pub fn vmap1(f: &dyn Fn(&Value) -> Res<Value>, x: &Value, in_axis: usize, out_axis: usize) -> Res<Value> {
    Ok(vmap(&|a| Ok(vec![f(&a[0])?]), std::slice::from_ref(x), &[Some(in_axis)], &[out_axis])?.remove(0))
}
/// The rows of the unit matrix, each in the shape of an argument.
fn basis(a: &Aval) -> Value {
    let n = a.shape.size();
    let (i, j) = (iota(Dtype::I32, &[n, n], 0), iota(Dtype::I32, &[n, n], 1));
    let eye = convert(&emit(Pw::Eq, &[i, j]), Dtype::F64);
    reshape(&eye, &a.shape.insert(0, n))
}
fn unflatten(j: &Value, at: usize, a: &Aval) -> Value {
    let s = j.shape().to_vec();
    reshape(j, &cat(&[&s[..at], &a.shape, &s[at + 1..]]))
}
/// out axes, then in axes.
pub fn jacfwd(f: &dyn Fn(&Value) -> Res<Value>, x: &Value) -> Res<Value> {
    let rank_out = std::cell::Cell::new(0);
    let columns = |t: &[Value]| {
        let dy = jvp1(f, x, &t[0])?.1;
        rank_out.set(dy.rank());
        Ok(vec![dy])
    };
    let j = vmap(&columns, &[basis(&x.aval())], &[Some(0)], &[0])?;
    let r = rank_out.get();
    let perm: Vec<usize> = (1..=r).chain([0]).collect();
    Ok(unflatten(&transpose(&j[0], &perm), r, &x.aval()))
}
pub fn jacrev(f: &dyn Fn(&Value) -> Res<Value>, x: &Value) -> Res<Value> {
    let (y, lin) = linearize(&|a| Ok(vec![f(&a[0])?]), std::slice::from_ref(x))?;
    let back = |ct: &Value| materialise(lin.transpose(&[Some(ct.clone())])?.remove(0), &x.aval());
    let a = y[0].aval();
    Ok(unflatten(&vmap1(&back, &basis(&a), 0, 0)?, 0, &a))
}
pub fn hessian(f: &dyn Fn(&Value) -> Res<Value>, x: &Value) -> Res<Value> {
    jacfwd(&|x| jacrev(f, x), x)
}
