"""Flags and devices: leaks are found, programs are verified, platforms are chosen, pmap's devices are used, live arrays are listed."""

import itertools

import numpy as np
import pytest

KEPT = []


@pytest.fixture
def leaks():
    """A function that keeps a value; a new one for each test, for what was traced is not traced again."""

    def leaks(x):
        KEPT.append(x * 2)
        return x

    yield leaks
    KEPT.clear()


@pytest.fixture
def checking(jax):
    with jax.checking_leaks():
        yield


# ---------------------------------------------------------------- leaks

LEAKING = {
    "jit": lambda jax, f: jax.jit(f)(1.0),
    "make_jaxpr": lambda jax, f: jax.make_jaxpr(f)(1.0),
    "eval_shape": lambda jax, f: jax.eval_shape(f, 1.0),
    "grad of jit": lambda jax, f: jax.grad(jax.jit(f))(1.0),
    "cond": lambda jax, f: jax.lax.cond(True, f, lambda x: x, 1.0),
    "scan": lambda jax, f: jax.lax.scan(lambda c, x: (f(c), x), 1.0, np.ones(3)),
    "while_loop": lambda jax, f: jax.lax.while_loop(lambda x: x < 3, lambda x: f(x) + 1, 1.0),
    "fori_loop": lambda jax, f: jax.lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
}


@pytest.mark.parametrize("name", LEAKING)
def test_leaks_are_found(jax, checking, leaks, name):
    with pytest.raises(Exception, match=r"^Leaked trace DynamicJaxprTrace\. Leaked tracer\(s\):\n") as e:
        LEAKING[name](jax, leaks)
    assert type(e.value) is Exception and f"{__file__}" in str(e.value)


def test_leaks_of_vmap_are_found(jax, checking, leaks):
    with pytest.raises(Exception, match=r"^Leaked trace BatchTrace\. Leaked tracer\(s\):\n"):
        jax.vmap(leaks)(np.ones(3))


def test_a_leak_is_found_at_each_call(jax, checking, leaks):
    f = jax.jit(leaks)
    for _ in range(2):
        with pytest.raises(Exception, match="Leaked trace"):
            f(1.0)


def test_what_does_not_leak_runs(jax, jnp, lax, checking):
    def cyclic(x):
        ring = [x * 2]
        ring.append(ring)
        return x

    def caught(x):
        try:
            raise ValueError(x)
        except ValueError as e:
            return e.args[0]

    x = np.ones(3, np.float32)
    assert jax.jit(cyclic)(1.0) == 1 and jax.jit(caught)(1.0) == 1
    assert np.array_equal(jax.jit(jax.vmap(jax.grad(lambda x: x * 3)))(x), 3 * x)
    assert jax.jit(lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x))(x)[0] == 3
    assert jax.grad(jax.nn.relu)(1.0) == 1
    assert jax.jit(lambda d: {"b": d["a"] + 1})({"a": 1.0})["b"] == 2
    assert jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, y: y * jnp.sin(x), x))(1.0) != 0
    assert jax.jvp(jax.jit(jax.checkpoint(jnp.sin)), (0.0,), (1.0,))[1] == 1
    assert np.array_equal(jax.vmap(lambda a, b: {"x": a + b}, in_axes=(0, None))(x, 1.0)["x"], x + 1)


def test_without_the_flag_nothing_is_checked(jax, leaks):
    assert jax.jit(leaks)(1.0) == 1


# ---------------------------------------------------------------- programs


def liar(jax):
    """A primitive whose result has another shape each time it is asked."""
    from importlib import import_module

    library = jax.__name__
    p = import_module(f"{library}.extend.core").Primitive("liar")
    shapes = itertools.count(2)
    p.def_abstract_eval(lambda x: import_module(f"{library}.core").ShapedArray((next(shapes),), x.dtype))
    return p


def test_programs_are_verified(jax):
    p = liar(jax)
    jax.make_jaxpr(lambda x: p.bind(x) * 2)(1.0)
    p = liar(jax)
    with jax.enable_checks(True):
        for trace in (jax.make_jaxpr, jax.jit):
            with pytest.raises(
                jax.errors.JaxprTypeError, match=r"^Value for variable 'b' inconsistently typed as f32\[\d\] for let-binder of type f32\[\d\]\n"
            ):
                trace(lambda x: p.bind(x) * 2)(1.0)


def test_good_programs_pass_the_checks(jax, jnp, lax):
    def f(x):
        y, _ = lax.scan(lambda c, a: (c * jnp.sin(a), c), 1.0, x)
        return lax.cond(y > 0, lambda y: y, lambda y: lax.while_loop(lambda y: y < 0, lambda y: y + 1, y), y)

    x = np.linspace(0.1, 1, 4, dtype=np.float32)
    want = jax.jit(jax.vmap(jax.grad(lambda x: lax.scan(lambda c, a: (c * jnp.sin(a), c), 1.0, x)[0])))(np.stack([x, x]))
    with jax.enable_checks(True):
        got = jax.jit(jax.vmap(jax.grad(lambda x: lax.scan(lambda c, a: (c * jnp.sin(a), c), 1.0, x)[0])))(np.stack([x, x]))
        jax.jit(f)(x), jax.vmap(f)(np.stack([x, -x])), jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x)
    assert np.array_equal(got, want)


# ---------------------------------------------------------------- platforms and devices


@pytest.mark.parametrize("ask", [
    lambda jax, name: jax.devices(name),
    lambda jax, name: jax.local_devices(backend=name),
    lambda jax, name: jax.device_count(name),
    lambda jax, name: jax.pmap(lambda x: x, backend=name)(np.ones(1)),
    lambda jax, name: jax.live_arrays(name),
])  # fmt: skip
def test_unknown_backends(jax, ask):
    with pytest.raises(RuntimeError) as e:
        ask(jax, "nope")
    assert str(e.value).startswith("Unknown backend nope. Available backends are ['cpu'")


def test_platforms_are_chosen(child):
    code = """
    try:
        jax.config.update("jax_platforms", "nope,cpu")
        jnp.ones(2)
    except RuntimeError as e:
        print(str(e).split(". (")[0])
    jax.config.update("jax_platforms", "cpu")
    print(jnp.ones(2).devices() == set(jax.devices()) == set(jax.devices("cpu")), jax.default_backend(), jax.config.jax_platforms)
    try:
        jax.devices("cuda")
    except RuntimeError as e:
        print(e)
    """
    first, second, third = child(code).strip().splitlines()
    assert first.startswith("Unable to initialize backend 'nope': Backend 'nope' is not in the list of known backends: ['cpu', ")
    assert second == "True cpu cpu"
    assert third == "Unknown backend cuda. Available backends are ['cpu']"


def test_platforms_from_the_environment(child):
    assert child("print(jax.devices()[0].platform, jax.config.jax_platforms)", PLATFORMS="cpu").split() == ["cpu", "cpu"]


def test_a_default_device_by_name(jax, jnp):
    with jax.default_device("cpu"):
        assert jnp.ones(2).devices() == {jax.devices("cpu")[0]} and jax.config.jax_default_device == "cpu"
    with pytest.raises(ValueError, match="jax.default_device must be passed either a Device object"):
        jax.config.update("jax_default_device", "nope")


def test_pmap_uses_the_devices_it_is_given(child):
    code = """
    from jax import lax
    D = jax.devices()
    x = jnp.arange(2.0)
    places = lambda y: [(s.device.id, float(s.data[0])) for s in y.addressable_shards]
    assert places(jax.pmap(lambda x: x + 1, devices=[D[2], D[0]])(x)) == [(2, 1.0), (0, 2.0)]
    assert places(jax.pmap(lambda x: x, devices=D[:2])(jax.pmap(lambda x: x, devices=D[2:])(x))) == [(0, 0.0), (1, 1.0)]
    assert jax.pmap(lambda x: x + 1, devices=[D[3]])(x[:1]).devices() == {D[3]}
    assert jax.pmap(lambda x: x, devices=[D[1]])(jax.device_put(x[:1], D[2])).devices() == {D[1]}
    assert jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=[D[3], D[1]])(x).devices() == {D[3], D[1]}
    assert jax.grad(lambda x: jax.pmap(lambda x: x * x, devices=[D[2], D[0]])(x).sum())(x).devices() == {D[2], D[0]}
    try:
        jax.pmap(lambda x: x, devices=[])(x)
    except ValueError as e:
        assert str(e) == "'devices' argument to pmap must be non-empty, or None."
    try:
        jax.pmap(lambda x: x, devices=[D[3], D[3]])(x)
    except ValueError:
        print("done")
    """
    code = code.replace("from jax import lax", "lax = jax.lax")
    assert child(code, NUM_CPU_DEVICES="4").strip() == "done"


# ---------------------------------------------------------------- live arrays


class Holder:
    def __init__(self, x):
        self.x = x


def test_live_arrays(jax, jnp):
    a = jnp.ones(3)
    held = {"list": [a + 1], "tuple": (a + 2, (a + 3,)), "object": Holder(a + 4)}
    closure = (lambda b: lambda: b)(a + 5)
    live = lambda x: any(y is x for y in jax.live_arrays())
    assert type(jax.live_arrays()) is list
    assert all(map(live, [a, held["list"][0], held["tuple"][0], held["tuple"][1][0], held["object"].x, closure()]))
    gone = id(held["list"][0])
    n = len(jax.live_arrays())
    held["list"].clear()
    assert len(jax.live_arrays()) == n - 1 and gone
    held["object"].x.delete()
    assert len(jax.live_arrays()) == n - 2
    assert len(jax.live_arrays("cpu")) == len([x for x in jax.live_arrays() if next(iter(x.devices())).platform == "cpu"])
    jax.jit(lambda x: (x, [jax.live_arrays()].clear())[0])(a)


def test_live_arrays_are_no_tracers(jax, jnp):
    found = []

    @jax.jit
    def f(x):
        found.extend(isinstance(y, jax.core.Tracer) for y in jax.live_arrays())
        return x

    f(jnp.ones(2))
    assert found and not any(found)
