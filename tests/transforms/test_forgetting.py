"""What a transform keeps of a function goes when the function goes: arrays it closed over, and the function itself."""

import functools
import gc
import importlib
import time
import weakref

import numpy as np
import pytest
from live_arrays import settled

pytestmark = pytest.mark.ours  # JAX keeps what custom rules, callbacks and `odeint` close over

X = np.arange(3.0, dtype=np.float32)
CASES = {}
ALONE = ("pmap", "make_jaxpr", "export", "aot")  # not called within a jit


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def case(f):
    """A case calls transforms on fresh functions that close over `d`, each of which it shows to `see`."""
    CASES[f.__name__] = f
    return f


@case
def scan(jax, see, d):
    return jax.lax.scan(see(lambda c, x: (c + d[0], x)), 0.0, X)


@case
def while_loop(jax, see, d):
    return jax.lax.while_loop(see(lambda c: c < d[0] + 2), see(lambda c: c + d[0]), 0.0)


@case
def fori_loop(jax, see, d):
    return jax.lax.fori_loop(0, 3, see(lambda i, c: c + d[0]), 0.0)


@case
def fori_dyn(jax, see, d):
    return jax.lax.fori_loop(0, jax.numpy.int32(3), see(lambda i, c: c + d[0]), 0.0)


@case
def cond(jax, see, d):
    return jax.lax.cond(jax.numpy.bool_(True), see(lambda x: x + d[0]), see(lambda x: x - d[0]), 1.0)


@case
def switch(jax, see, d):
    return jax.lax.switch(jax.numpy.int32(1), [see(lambda x: x + d[0]), see(lambda x: x - d[0])], 1.0)


@case
def lmap(jax, see, d):
    return jax.lax.map(see(lambda x: x + d[0]), X)


@case
def assoc(jax, see, d):
    return jax.lax.associative_scan(see(lambda a, b: a + b * d[0]), X)


@case
def jit(jax, see, d):
    return jax.jit(see(lambda x: x + d[0]))(1.0)


@case
def grad(jax, see, d):
    return jax.grad(see(lambda x: x * d[0]))(1.0)


@case
def vmap(jax, see, d):
    return jax.vmap(see(lambda x: x * d[0]))(X)


@case
def jvp(jax, see, d):
    return jax.jvp(see(lambda x: x * d[0]), (1.0,), (1.0,))


@case
def vjp(jax, see, d):
    return jax.vjp(see(lambda x: x * d[0]), 1.0)[1](1.0)


@case
def linearize(jax, see, d):
    return jax.linearize(see(lambda x: x * d[0]), 1.0)[1](1.0)


@case
def hessian(jax, see, d):
    return jax.hessian(see(lambda x: x**3 * d[0]))(1.0)


@case
def checkpoint(jax, see, d):
    return jax.grad(jax.checkpoint(see(lambda x: jax.numpy.sin(x * d[0]))))(1.0)


@case
def checkpoint_fwd(jax, see, d):
    return jax.checkpoint(see(lambda x: jax.numpy.sin(x * d[0])))(1.0)


@case
def custom_jvp(jax, see, d):

    f = jax.custom_jvp(see(lambda x: x * d[0]))
    f.defjvp(see(lambda p, t: (f(*p), t[0] * d[0])))
    return f(1.0), jax.grad(f)(1.0), jax.vmap(f)(X)


@case
def custom_jvp_jit(jax, see, d):

    f = jax.custom_jvp(see(lambda x: x * d[0]))
    f.defjvp(see(lambda p, t: (f(*p), t[0] * d[0])))
    return jax.jit(f)(1.0), jax.jit(jax.grad(f))(1.0)


@case
def custom_vjp(jax, see, d):

    f = jax.custom_vjp(see(lambda x: x * d[0]))
    f.defvjp(see(lambda x: (f(x), x)), see(lambda r, g: (g * d[0],)))
    return f(1.0), jax.grad(f)(1.0), jax.vmap(f)(X)


@case
def custom_vjp_jit(jax, see, d):

    f = jax.custom_vjp(see(lambda x: x * d[0]))
    f.defvjp(see(lambda x: (f(x), x)), see(lambda r, g: (g * d[0],)))
    return jax.jit(f)(1.0), jax.jit(jax.grad(f))(1.0), jax.jit(jax.vmap(f))(X)


@case
def custom_vmap(jax, see, d):

    f = jax.custom_batching.custom_vmap(see(lambda x: x * d[0]))
    f.def_vmap(see(lambda n, b, x: (x * d[0], True)))
    return f(1.0), jax.vmap(f)(X), jax.jit(jax.vmap(f))(X)


@case
def custom_vjp_scan(jax, see, d):

    f = jax.custom_vjp(see(lambda x: x * d[0]))
    f.defvjp(see(lambda x: (f(x), x)), see(lambda r, g: (g * d[0],)))
    return jax.lax.scan(see(lambda c, x: (f(c), x)), 1.0, X)


@case
def custom_jvp_scan(jax, see, d):

    f = jax.custom_jvp(see(lambda x: x * d[0]))
    f.defjvp(see(lambda p, t: (f(*p), t[0] * d[0])))
    return jax.grad(lambda x: jax.lax.fori_loop(0, 3, see(lambda i, c: f(c)), x))(1.0), jax.lax.fori_loop(0, 3, see(lambda i, c: f(c)), 1.0)


@case
def custom_self_scan(jax, see, d):
    # the rule closes over the loop's own function
    cell = []
    f = jax.custom_jvp(see(lambda x: x * d[0]))
    f.defjvp(see(lambda p, t: (f(*p), t[0] * d[0] + 0 * len(cell))))
    body = see(lambda i, c: f(c))
    cell.append(body)
    return jax.lax.fori_loop(0, 3, body, 1.0)


@case
def custom_rule_refers(jax, see, d):

    def body(i, c):
        return f(c)

    f = jax.custom_jvp(see(lambda x: x * d[0]))
    f.defjvp(see(lambda p, t: (f(*p), t[0] * d[0] + (0 if body else 1))))
    see(body)
    return jax.lax.fori_loop(0, 3, body, 1.0), jax.checkpoint(lambda x: body(0, x))(1.0)


@case
def custom_root(jax, see, d):
    return jax.lax.custom_root(see(lambda x: x - d[0]), jax.numpy.float32(0.0), see(lambda f, x0: x0 + d[0]), see(lambda g, y: y / g(d[0])))


@case
def custom_root_grad(jax, see, d):
    return jax.grad(
        lambda a: jax.lax.custom_root(see(lambda x: x - a * d[0]), jax.numpy.float32(0.0), see(lambda f, x0: x0 + d[0]), see(lambda g, y: y / g(d[0])))
    )(1.0)


@case
def custom_linear_solve(jax, see, d):
    return jax.lax.custom_linear_solve(see(lambda x: x * d[0]), jax.numpy.float32(2.0), see(lambda mv, b: b / d[0]), see(lambda mv, b: b / d[0]))


@case
def custom_linear_solve_grad(jax, see, d):
    return jax.grad(
        lambda a: jax.lax.custom_linear_solve(see(lambda x: x * d[0] * a), jax.numpy.float32(2.0), see(lambda mv, b: b / d[0]), see(lambda mv, b: b / d[0]))
    )(1.0)


@case
def custom_gradient(jax, see, d):

    f = jax.custom_gradient(see(lambda x: (x * d[0], see(lambda g: g * d[0]))))
    return f(1.0), jax.grad(f)(1.0), jax.jit(f)(1.0)


@case
def closure_convert(jax, see, d):

    f, c = jax.closure_convert(see(lambda x: x * d[0]), 1.0)
    return f(1.0, *c)


@case
def linear_transpose(jax, see, d):
    return jax.linear_transpose(see(lambda x: x * d[0]), jax.numpy.float32(1.0))(jax.numpy.float32(1.0))


@case
def pmap(jax, see, d):
    return jax.pmap(see(lambda x: x * d[0]))(X[:1])


@case
def shard_map(jax, see, d):

    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(see(lambda x: x * d[0]), mesh=mesh, in_specs=jax.sharding.PartitionSpec("i"), out_specs=jax.sharding.PartitionSpec("i"))(X)


@case
def checkify_(jax, see, d):

    def f(x):
        module(jax, "experimental.checkify").check(x > d[0] - 2, "bad")
        return x * d[0]

    return module(jax, "experimental.checkify").checkify(see(f))(1.0)


@case
def checkify_jit(jax, see, d):

    def f(x):
        module(jax, "experimental.checkify").check(x > d[0] - 2, "bad")
        return x * d[0]

    return jax.jit(module(jax, "experimental.checkify").checkify(see(f)))(1.0)


@case
def checkify_scan(jax, see, d):

    def f(c, x):
        module(jax, "experimental.checkify").check(x > d[0] - 2, "bad")
        return c * d[0], x

    return module(jax, "experimental.checkify").checkify(lambda x: jax.lax.scan(see(f), x, X))(1.0)


@case
def eval_shape(jax, see, d):
    return jax.eval_shape(see(lambda x: x * d[0]), 1.0)


@case
def make_jaxpr(jax, see, d):
    return jax.make_jaxpr(see(lambda x: x * d[0]))(1.0)


@case
def pure_callback(jax, see, d):
    return jax.pure_callback(see(lambda x: np.float32(np.asarray(x) * np.asarray(d[0]))), jax.ShapeDtypeStruct((), jax.numpy.float32), 1.0)


@case
def pure_callback_scan(jax, see, d):

    cb = see(lambda x: np.float32(np.asarray(x) * np.asarray(d[0])))
    return jax.lax.scan(see(lambda c, x: (jax.pure_callback(cb, jax.ShapeDtypeStruct((), jax.numpy.float32), c), x)), 1.0, X)


@case
def io_callback(jax, see, d):
    return module(jax, "experimental").io_callback(
        see(lambda x: np.float32(np.asarray(x) * np.asarray(d[0]))), jax.ShapeDtypeStruct((), jax.numpy.float32), 1.0
    )


@case
def debug_callback(jax, see, d):
    jax.debug.callback(see(lambda x: [d][:0]), 1.0)
    jax.effects_barrier()


@case
def odeint_(jax, see, d):
    return module(jax, "experimental.ode").odeint(see(lambda y, t: -y * d[0]), jax.numpy.float32(1.0), jax.numpy.array([0.0, 1.0]))


@case
def odeint_grad(jax, see, d):
    return jax.grad(lambda y: module(jax, "experimental.ode").odeint(see(lambda y, t: -y * d[0]), y, jax.numpy.array([0.0, 1.0]))[-1])(1.0)


@case
def vectorize(jax, see, d):
    return jax.numpy.vectorize(see(lambda x: x * d[0]))(X)


@case
def piecewise(jax, see, d):
    return jax.numpy.piecewise(jax.numpy.asarray(X), [X < 1, X >= 1], [see(lambda x: x * d[0]), see(lambda x: x - d[0])])


@case
def apply_along_axis(jax, see, d):
    return jax.numpy.apply_along_axis(see(lambda x: x * d[0]), 0, jax.numpy.asarray(X))


@case
def reduce_window(jax, see, d):
    return jax.lax.reduce_window(jax.numpy.asarray(X), np.float32(0), see(lambda a, b: jax.lax.add(a, b)), (2,), (1,), "VALID")


@case
def cg(jax, see, d):
    return jax.scipy.sparse.linalg.cg(see(lambda x: x * d[0]), jax.numpy.asarray(X))[0]


@case
def minimize(jax, see, d):

    return module(jax, "scipy.optimize").minimize(see(lambda x: jax.numpy.sum((x - d[0]) ** 2)), jax.numpy.asarray(X), method="BFGS").x


@case
def export(jax, see, d):
    return module(jax, "export").export(jax.jit(see(lambda x: x * d[0])))(jax.ShapeDtypeStruct((), jax.numpy.float32)).call(1.0)


@case
def aot(jax, see, d):
    return jax.jit(see(lambda x: x * d[0])).lower(1.0).compile()(1.0)


@case
def named_call(jax, see, d):
    return jax.named_call(see(lambda x: x * d[0]))(1.0)


@case
def static_arg(jax, see, d):
    return jax.jit(lambda x, f: f(x), static_argnums=1)(1.0, see(lambda x: x * d[0]))


@case
def jvp_of_jit(jax, see, d):
    return (
        jax.jvp(jax.jit(see(lambda x: x * d[0])), (1.0,), (1.0,)),
        jax.grad(jax.jit(see(lambda x: x * d[0])))(1.0),
        jax.vmap(jax.jit(see(lambda x: x * d[0])))(X),
    )


@case
def partial(jax, see, d):

    return jax.jit(functools.partial(see(lambda a, x: x * d[0] + a), 1.0))(1.0)


@case
def method(jax, see, d):

    class C:
        def __init__(s):
            s.d = d

        def f(s, x):
            return x * s.d[0]

        def body(s, c, x):
            return c + s.d[0], x

    c = C()
    see(c)
    return jax.jit(c.f)(1.0), jax.lax.scan(c.body, 0.0, X), jax.checkpoint(c.f)(1.0)


def left(jax, case):
    """How many arrays and functions are left of some calls of a case, once it has been called before."""
    seen = []
    see = lambda f: (seen.append(weakref.ref(f)), f)[1]

    def once():
        d = see(jax.numpy.ones(7) + 0.0)
        case(jax, see, d)

    once()
    jax.effects_barrier()
    time.sleep(0.02)  # as below; objects freed later than this are not due to the calls that are counted
    seen.clear()
    before = len(jax.live_arrays())
    for _ in range(2):
        once()
    assert seen
    jax.effects_barrier()
    for _ in range(20):  # the thread that ran the last program lets go of it a moment after it is done
        counts = max(len(jax.live_arrays()) - before, 0), sum(f() is not None for f in seen)
        if counts == (0, 0):
            break
        time.sleep(0.05)
    return counts


@pytest.mark.parametrize("name", CASES)
def test_fresh_functions_leave_nothing_behind(jax, name):
    assert left(jax, CASES[name]) == (0, 0)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ALONE])
def test_fresh_functions_in_a_fresh_jit_leave_nothing_behind(jax, name):
    def within(jax, see, d):
        jax.jit(lambda: (CASES[name](jax, see, d), 0.0)[1])()

    assert left(jax, within) == (0, 0)


def test_loops_free_their_captures_without_a_collection(jax, jnp, lax):
    before = settled(jax)
    gc.disable()
    try:
        for _ in range(20):
            d = jnp.ones(8)
            lax.scan(lambda c, x, d=d: (c + d[0], x), 0.0, X)
            lax.fori_loop(0, 3, lambda i, c, d=d: c + d[0], 0.0)
            lax.while_loop(lambda c, d=d: c < d[0] + 2, lambda c, d=d: c + d[0], 0.0)
            lax.cond(d[0] > 0, lambda x, d=d: x + d[0], lambda x, d=d: x - d[0], 1.0)
        del d
        assert len(jax.live_arrays()) == before
    finally:
        gc.enable()


def test_a_function_that_stays_is_traced_once(jax, lax, jnp):
    calls = 0
    f = jax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(*p), t[0] * 2))

    def body(c, x):
        return f(c) + x, None

    def counted(c, x):
        nonlocal calls
        calls += 1
        return c + jax.nn.relu(x), None

    for _ in range(3):
        assert float(lax.scan(body, 1.0, X)[0]) == float(2 * (2 * (2 * 1.0 + 0) + 1) + 2)
        lax.scan(counted, 1.0, X)
    assert calls == 1
