"""Flags and devices: leaks are found, programs are verified, platforms are chosen, pmap's devices are used, live arrays are listed."""

import ast
import functools
import importlib
import inspect
import itertools
import pathlib
import re
import sys
import threading
import warnings

import numpy as np
import pytest
from live_arrays import settled

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


class Keeper:
    def __init__(self):
        self.kept = None


def keep_in_closure(x, holder):
    holder.kept = [lambda: x]
    return r"<function \d+> \(<lambda>\) closed-over variable x\n<function \d+> is referred to by <list \d+>\[0\]\n<list \d+> is referred to by <Keeper \d+>\.kept\n"


def keep_in_containers(x, holder):
    holder.kept = {"a": (1, x)}
    return r"<tuple \d+>\[1\]\n<tuple \d+> is referred to by <dict \d+>\['a'\]\n<dict \d+> is referred to by <Keeper \d+>\.kept\n"


def keep_in_attribute(x, holder):
    holder.kept = x
    return r"<Keeper \d+>\.kept\n"


@pytest.mark.parametrize("transform", ["jit", "vmap"])
@pytest.mark.parametrize("keep", [keep_in_closure, keep_in_containers, keep_in_attribute])
def test_the_error_of_a_leak_names_what_holds_it(jax, checking, keep, transform):
    holder, chain = Keeper(), []

    def f(x):
        chain.append(keep(x, holder))
        return x

    with pytest.raises(Exception, match="^Leaked trace") as e:
        getattr(jax, transform)(f)(np.ones(3))
    name = {"jit": "DynamicJaxprTracer", "vmap": "BatchTracer"}[transform]
    assert re.search(rf"This {name} with object id \d+ was created on line:\n  .*{__file__}.*\n<{name} \d+> is referred to by {chain[0]}", str(e.value)), str(
        e.value
    )
    holder.kept = None


def test_a_leak_is_found_at_each_call(jax, checking, leaks):
    f = jax.jit(leaks)
    for _ in range(2):
        with pytest.raises(Exception, match="Leaked trace"):
            f(1.0)


def test_programs_without_leaks_run(jax, jnp, lax, checking):
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
    """A primitive whose result has another shape each time it is typed."""
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
    n = settled(jax)
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


# ---------------------------------------------------------------- flags

CONTEXTS = {
    "default_matmul_precision": "float32",
    "debug_nans": True,
    "numpy_rank_promotion": "raise",
    "numpy_dtype_promotion": "strict",
    "enable_x64": True,
    "checking_leaks": True,
    "default_device": "cpu",
    "log_compiles": True,
    "enable_checks": True,
    "threefry_partitionable": False,
    "default_prng_impl": "threefry2x32",
    "enable_custom_prng": True,
    "no_tracing": True,
    "softmax_custom_jvp": True,
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_are_decorators(jax, name):
    option = {"checking_leaks": "jax_check_tracer_leaks"}.get(name, "jax_" + name)
    before = getattr(jax.config, option)

    @getattr(jax, name)(CONTEXTS[name])
    def f(depth):
        """Doc."""
        seen = getattr(jax.config, option)
        return [seen, *(f(depth - 1) if depth else [])]

    assert f(2) == [CONTEXTS[name]] * 3 and getattr(jax.config, option) == before
    assert (f.__name__, f.__doc__) == ("f", "Doc.")


def test_disable_jit_and_compile_time_evaluation_are_decorators(jax, jnp):
    seen = []

    @jax.disable_jit()
    def f(x):
        return jax.jit(lambda x: (seen.append(x), x)[1])(x)

    f(1.0)
    assert seen == [1.0]

    @jax.ensure_compile_time_eval()
    def n():
        return int(jnp.ones(3).sum())

    assert jax.jit(lambda x: x * n() * n())(1.0) == 9


def test_a_context_is_its_threads_own_also_as_a_decorator(jax):
    inside, ready, go = [], threading.Event(), threading.Event()

    @jax.enable_x64(True)
    def f():
        ready.set()
        assert go.wait(60)
        inside.append(jax.config.jax_enable_x64)

    t = threading.Thread(target=f)
    t.start()
    assert ready.wait(60)
    assert jax.config.jax_enable_x64 is False
    go.set()
    t.join()
    assert inside == [True] and jax.config.jax_enable_x64 is False


def test_none_within_a_context_means_no_value(jax):
    with jax.default_matmul_precision("float32"):
        with jax.default_matmul_precision(None):
            assert jax.config.jax_default_matmul_precision is None
        assert jax.config.jax_default_matmul_precision == "float32"


@pytest.mark.ours
def test_devices_nest(jax, jnp, child):
    code = """
    d = jax.devices()
    where = lambda: jnp.ones(1).device.id
    seen = []
    with d[1]:
        with d[2]:
            seen.append(where())
            with jax.default_device(d[3]):
                seen.append(where())
            seen.append(where())
        seen.append(where())
        try:
            with d[2]:
                raise KeyError
        except KeyError:
            seen.append(where())
    seen.append(where())
    jax.config.update("jax_default_device", d[3])
    import threading
    t = threading.Thread(target=lambda: seen.append(where()))
    with d[1]:
        t.start(), t.join()
        seen.append(where())
    print(*seen, len(jax.devices()))
    """
    assert child(code, NUM_CPU_DEVICES="4").split() == ["2", "3", "2", "1", "1", "0", "3", "1", "4"]


def test_the_number_of_devices_is_set_before_the_first_array(child):
    code = """
    jax.config.update("jax_num_cpu_devices", 8)
    jnp.ones(3)
    print(len(jax.devices()), jax.config.jax_num_cpu_devices)
    try:
        jax.config.update("jax_num_cpu_devices", 4)
    except RuntimeError as e:
        print(str(e).split(" i.e. ")[0])
    print(len(jax.devices()), jax.config.jax_num_cpu_devices, jax.device_put(1.0, jax.devices()[7]).device.id)
    """
    late = "jax_num_cpu_devices config should be updated before backends are initialized"
    assert child(code).splitlines() == ["8 8", late, "8 8 7"]


@pytest.mark.ours
def test_flags_are_not_assigned_to(jax):
    with pytest.raises(AttributeError, match=r"use config.update\('jax_enable_x64', True\)"):
        jax.config.jax_enable_x64 = True
    with pytest.raises(AttributeError, match="nonsense"):
        jax.config.jax_nonsense = 1
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_nonsense"):
        jax.config.update("jax_nonsense", 1)
    assert not jax.config.jax_enable_x64


def test_traces_depend_on_the_flags_they_read(jax, jnp):
    """A trace made under one value of a flag is not used under another."""
    draw = jax.jit(lambda: jax.random.key_data(jax.random.key(0)))
    before = draw()
    jax.config.update("jax_random_seed_offset", 7)
    try:
        assert not np.array_equal(draw(), before)
    finally:
        jax.config.update("jax_random_seed_offset", 0)
    assert np.array_equal(draw(), before)
    f = jax.jit(lambda x: x @ x)
    x = jnp.ones((2, 2))
    f(x)
    with jax.default_matmul_precision("highest"):
        f(x)
    assert f._cache_size() == 2


MATRIX = (((1,), (0,)), ((), ()))
# Products of a square matrix, with the keyword that they pass on.
PRODUCTS = {
    "dot": lambda jax, x, **k: jax.lax.dot(x, x, **k),
    "dot_general": lambda jax, x, **k: jax.lax.dot_general(x, x, MATRIX, **k),
    "batch_matmul": lambda jax, x, **k: jax.lax.batch_matmul(x[None], x[None], **k),
    "ragged_dot": lambda jax, x, **k: jax.lax.ragged_dot(x, x[None], jax.numpy.array([4]), **k),
    "matmul": lambda jax, x, **k: jax.numpy.matmul(x, x, **k),
    "einsum": lambda jax, x, **k: jax.numpy.einsum("ij,jk,kl->il", x, x, x, **k),
    "vecdot": lambda jax, x, **k: jax.numpy.vecdot(x, x, **k),
    "conv": lambda jax, x, **k: jax.lax.conv(x[None, None], x[None, None], (1, 1), "SAME", **k),
    "conv_general_dilated": lambda jax, x, **k: jax.lax.conv_general_dilated(x[None, None], x[None, None], (1, 1), "SAME", **k),
    "conv_with_general_padding": lambda jax, x, **k: jax.lax.conv_with_general_padding(x[None, None], x[None, None], (1, 1), "SAME", None, None, **k),
    "conv_transpose": lambda jax, x, **k: jax.lax.conv_transpose(x[None], x[None], (1,), "SAME", **k),
    "conv_general_dilated_local": lambda jax, x, **k: jax.lax.conv_general_dilated_local(x[None], jax.numpy.ones((1, 8, 3)), (1,), "VALID", (2,), **k),
    "convolve": lambda jax, x, **k: jax.numpy.convolve(x[0], x[1], **k),
    "convolve2d": lambda jax, x, **k: jax.scipy.signal.convolve2d(x, x, **k),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("precision", [None, "highest", "high", "bfloat16", "F32_F32_F32"])
def test_the_configured_precision_is_that_of_all_products(jax, name, precision):
    product, x = PRODUCTS[name], jax.numpy.ones((4, 4))
    program = lambda **k: str(jax.make_jaxpr(lambda x: product(jax, x, **k))(x)).replace(" ", "")
    with jax.default_matmul_precision(precision):
        if precision == "F32_F32_F32" and "local" in name:
            with pytest.raises(ValueError, match="Unsupported precision"):
                program()
            return
        configured, exact = program(), program(precision="highest")
    assert configured == program(precision=precision)
    assert exact == program(precision="highest")
    assert (configured == exact) == (precision == "highest")


def test_no_tracing(jax):
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    with jax.no_tracing():
        assert f(2.0) == 3
        with pytest.raises(RuntimeError, match="re-tracing function .* for `jit`, but 'no_tracing' is set"):
            f(2)


def test_softmax_has_its_own_derivative_where_it_is_requested(jax):
    text = lambda: str(jax.make_jaxpr(jax.nn.softmax)(np.ones(3, np.float32)))
    assert jax.config.jax_softmax_custom_jvp is False and "custom_jvp_call" not in text()
    with jax.softmax_custom_jvp(True):
        assert "custom_jvp_call" in text()


# What programs set, and what becomes of it: values that are taken in silence, those that warn once, those that are refused.
OTHERS = """
jax_explicit_x64_dtypes jax_embedded_constants_max_bytes jax_use_simplified_jaxpr_constants jax_traceback_filtering jax_use_direct_linearize
jax_remat3 jax_custom_vjp3 jax_hlo_source_file_canonicalization_regex jax_include_full_tracebacks_in_locations
jax_compilation_cache_dir jax_persistent_cache_min_compile_time_secs jax_raise_persistent_cache_errors
jax_array_garbage_collection_guard jax_no_tracing jax_optimization_level jax_memory_fitting_level jax_exec_time_optimization_effort
jax_cpu_collectives_implementation jax_distributed_debug jax_enable_compilation_cache jax_use_shardy_partitioner jax_pgle_profiling_runs
jax_compiler_enable_remat_pass jax_cpu_enable_async_dispatch
"""
OFF_DEFAULT = {
    "jax_compilation_cache_dir": "/tmp/cache", "jax_persistent_cache_min_compile_time_secs": 0.5, "jax_traceback_filtering": "off",
    "jax_embedded_constants_max_bytes": 64, "jax_hlo_source_file_canonicalization_regex": ".*", "jax_optimization_level": "O1",
    "jax_memory_fitting_level": "O1", "jax_exec_time_optimization_effort": 0.5, "jax_cpu_collectives_implementation": "mpi",
    "jax_pgle_profiling_runs": 1, "jax_array_garbage_collection_guard": "log",
    "jax_explicit_x64_dtypes": "error",
}  # fmt: skip
REFUSED = {
    "jax_array_garbage_collection_guard": "fatal", "jax_explicit_x64_dtypes": "allow",
}  # fmt: skip
OBEYED = {"jax_no_tracing", "jax_explicit_x64_dtypes", "jax_traceback_filtering"}


@pytest.mark.ours
@pytest.mark.parametrize("name", OTHERS.split())
def test_flags_of_other_programs(jax, name):
    configuration = importlib.import_module(f"{jax.__name__}._base.flags")
    configuration._warned.discard(name)
    default = jax.config.read(name)
    jax.config.update(name, default)  # as it is: nothing to say
    value = OFF_DEFAULT.get(name, not default)
    try:
        if name in OBEYED:
            jax.config.update(name, value)
        else:
            with pytest.warns(UserWarning, match=f"{name} is accepted and has no effect: "):
                jax.config.update(name, value)
            jax.config.update(name, value)  # once
        assert jax.config.read(name) == value
    finally:
        jax.config.update(name, default)


@pytest.mark.ours
@pytest.mark.parametrize("name", REFUSED)
def test_flags_that_would_change_results_are_refused(jax, name):
    with pytest.raises(NotImplementedError, match=name):
        jax.config.update(name, REFUSED[name])
    assert jax.config.read(name) != REFUSED[name]


def test_explicit_requests_are_honoured_or_raise(jax, jnp):
    for what in (
        lambda: jnp.zeros(2, "float64"),
        lambda: jnp.ones(2).astype("int64"),
        lambda: jnp.sum(jnp.ones(3), dtype="float64"),
        lambda: jax.random.uniform(jax.random.key(0), (2,), "float64"),
        lambda: jnp.asarray(1.0, "float64"),
        lambda: jnp.arange(3, dtype="int64"),
    ):
        with pytest.warns(UserWarning, match="Explicitly requested dtype (float|int)64 .*is not available, and will be truncated to dtype (float|int)32"):
            assert what().dtype.itemsize == 4
        jax.config.update("jax_explicit_x64_dtypes", "error")
        try:
            with pytest.raises(ValueError, match="Explicitly requested dtype (float|int)64 .*is not available. To enable more dtypes"):
                what()
            assert jnp.arange(3).dtype == "int32" and jnp.asarray(np.ones(2)).dtype == "float32" and jnp.zeros(2, float).dtype == "float32"
        finally:
            jax.config.update("jax_explicit_x64_dtypes", "warn")


def test_wrong_values_of_flags(jax):
    for name, value in [("jax_num_cpu_devices", "a"), ("jax_transfer_guard", "foo"), ("jax_numpy_rank_promotion", "maybe"), ("jax_compilation_cache_dir", 3)]:
        with pytest.raises(ValueError):
            jax.config.update(name, value)


@pytest.mark.ours
def test_every_flag_documents_its_values(jax):
    """Each flag is read by somebody, or says that it is not: inert, or with values that are refused."""
    configuration = importlib.import_module(f"{jax.__name__}._base.flags")
    root = pathlib.Path(inspect.getfile(jax)).parent
    # the table, the list for checkers of types, and a module that sets a flag for its user do not read it
    read = "".join(p.read_text() for p in root.rglob("*.py") if p.name not in ("flags.py", "config.py") and "compilation_cache" not in str(p))
    native = pathlib.Path(__file__).parents[2] / "crates" / "ferrax-python" / "src"
    read += "".join(p.read_text() for p in native.rglob("*.rs"))
    for name, flag in configuration.FLAGS.items():
        # one sets those of all ways, others act where they are set
        says = flag.inert or flag.refused or name == "jax_transfer_guard" or hasattr(flag, "apply")
        assert flag.doc and (f'"{name}"' in read or f"config.{name}" in read) != bool(says), name


# The other settings of JAX 0.10.2, but for `check_vma`, which is set by a parameter.
SETTINGS = """eager_constant_folding jax_disallow_mesh_context_manager jax_error_checking_behavior_divide jax_error_checking_behavior_nan
    jax_error_checking_behavior_oob jax2tf_associative_scan_reductions jax2tf_default_native_serialization jax_backend_target jax_bcoo_cusparse_lowering
    jax_captured_constants_report_frames jax_captured_constants_warn_bytes jax_check_proxy_envs jax_compilation_cache_check_contents
    jax_compilation_cache_expect_pgle jax_compilation_cache_include_metadata_in_key jax_compiler_detailed_logging_min_ops
    jax_cpu_get_global_topology_timeout_minutes jax_cpu_get_local_topology_timeout_minutes jax_cross_host_transfer_socket_address
    jax_cross_host_transfer_timeout_seconds jax_cross_host_transfer_transfer_size jax_cross_host_transport_addresses jax_cuda_visible_devices
    jax_debug_leaked_clients_on_clear_backends jax_debug_log_modules jax_disable_most_optimizations jax_disable_vmap_shmap_error jax_dump_ir_modes
    jax_dump_ir_to jax_enable_pgle jax_enable_preemption_service jax_enable_recoverability jax_experimental_unsafe_xla_runtime_errors
    jax_export_calling_convention_version jax_export_ignore_forward_compatibility jax_force_dcn_cross_host_transfers jax_include_debug_info_in_dumps
    jax_log_checkpoint_residuals jax_logging_level jax_mock_gpu_topology jax_mosaic_allow_hlo jax_mutable_array_checks jax_oneapi_visible_devices
    jax_pallas_enable_debug_checks jax_pallas_poison_buffers jax_pallas_use_mosaic_gpu jax_pallas_verbose_errors jax_pgle_aggregation_percentile
    jax_pjrt_client_create_options jax_pprint_use_color jax_ragged_dot_use_gpu_pallas_triton_lowering jax_ragged_dot_use_ragged_dot_instruction
    jax_refs_to_pins jax_remove_custom_partitioning_ptr_from_cache_key jax_rocm_visible_devices jax_scan3 jax_send_traceback_to_runtime
    jax_serialization_version jax_share_binary_between_hosts jax_share_binary_between_hosts_timeout_ms jax_sort_devices_by_process_index
    jax_source_url_schema jax_threefry_gpu_kernel_lowering jax_tracer_error_num_traceback_frames jax_use_emit_pipeline_primitive jax_use_magma
    jax_xla_backend jax_xla_profile_version mock_num_gpu_processes"""


@pytest.mark.ours
@pytest.mark.parametrize("name", SETTINGS.split())
def test_settings_of_other_devices_and_compilers_are_accepted(jax, name, recwarn):
    value = jax.config.read(name)
    jax.config.update(name, value)
    assert getattr(jax.config, name) == value and not recwarn.list


@pytest.mark.ours
def test_logging_level(child):
    code = """
    import logging
    config = jax.config.update
    jnp = jax.numpy
    logger, level = logging.getLogger("ferrax"), lambda: logging.getLogger("ferrax").level
    logger.setLevel("ERROR")
    for value in ("DEBUG", "INFO", None):
        config("jax_logging_level", value)
        print(level(), len(logger.handlers), jax.config.jax_logging_level)
    config("jax_debug_log_modules", "ferrax, other")
    print(level(), logging.getLogger("other").level)
    config("jax_debug_log_modules", "")
    print(level(), logging.getLogger("other").level, len(logger.handlers))
    try:
        config("jax_logging_level", "LOUD")
    except ValueError as e:
        print(e)
    """
    out = child(code).splitlines()
    assert out[:5] == ["10 1 DEBUG", "20 1 INFO", "40 0 None", "10 10", "40 0 0"]
    assert out[5].startswith("new enum value must be None or in ['NOTSET', 'DEBUG'")


@pytest.mark.ours
def test_checkers_of_types_know_every_flag(jax):
    source = pathlib.Path(inspect.getfile(type(jax.config))).read_text()
    config = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Config")
    known = {n.target.id for block in config.body if isinstance(block, ast.If) for n in block.body if isinstance(n, ast.AnnAssign)}
    assert known == {name for name in dir(jax.config) if name.startswith("jax_")}


@pytest.mark.ours
def test_the_default_platform_by_its_older_name(child):
    code = """
    jax.config.update("jax_platform_name", "cpu")
    print(jax.default_backend())
    try:
        jax.config.update("jax_platform_name", "nope")
    except RuntimeError as e:
        print(str(e).split(":")[0])
    """
    assert child(code).splitlines() == ["cpu", "Unable to initialize backend 'nope'"]


# ---------------------------------------------------------------- settings bind the user's code


def mixing_ranks(jax, jnp):
    """What a user may write that mixes ranks or dtypes, on x and y."""
    return {
        "an operator": lambda x, y: x + y,
        "a function": jnp.add,
        "a composition's arguments": lambda x, y: jnp.where(x > 0, x, y),
        "remainder": lambda x, y: x % y,
        "a transformed function": lambda x, y: jax.vmap(jnp.add, in_axes=(None, 0))(x, y[None]),
        "a jitted function": lambda x, y: jax.jit(lambda x, y: x * y)(x, y),
        "a jitted public function": lambda x, y: jax.jit(jnp.multiply)(x, y),
        "a derivative": lambda x, y: jax.grad(lambda x: jnp.sum(x * y))(x),
        "a loop": lambda x, y: jax.lax.fori_loop(0, 2, lambda i, s: s + jnp.sum(x * y), 0.0),
        "a function that a function is given": lambda x, y: jnp.vectorize(lambda a: jnp.sum(a * y), signature="(n)->()")(x),
    }


MIXING = [
    "a composition's arguments",
    "a derivative",
    "a function",
    "a function that a function is given",
    "a jitted function",
    "a jitted public function",
    "a loop",
    "a transformed function",
    "an operator",
    "remainder",
]


@pytest.mark.parametrize("name", MIXING[1:])  # `where` broadcasts whatever the setting, as in JAX
def test_the_users_ranks_are_checked(jax, jnp, name):
    f = mixing_ranks(jax, jnp)[name]
    x, y = jnp.ones(3), jnp.ones((2, 3))
    f(x, y)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        f(x, y)
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        f(x, y)


@pytest.mark.parametrize("name", MIXING)
def test_the_users_dtypes_are_checked(jax, jnp, name):
    f = mixing_ranks(jax, jnp)[name]
    x, y = jnp.ones(3), jnp.arange(3)
    f(x, y)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError, match="strict"):
        f(x, y)


def test_a_trace_for_the_library_is_not_one_for_the_user(jax, jnp):
    """The library's own call of a jitted function is not checked; the user's later one with the same types is."""
    q = jnp.percentile(jnp.arange(5), 30)  # mixes dtypes inside
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.percentile(jnp.arange(5), 30) == q
        for _ in range(2):
            jnp.linspace(0, jnp.float32(1), 3)
            with pytest.raises(jax.dtypes.TypePromotionError):
                jnp.where(jnp.ones(3) > 0, jnp.ones(3), jnp.arange(3))


def masked(jax, jnp):
    """Calls whose body makes a NaN or an infinity that the result has not."""
    special = jax.scipy.special
    return {
        "logsumexp": lambda: special.logsumexp(jnp.array([0.0, -jnp.inf])),
        "comb": lambda: special.comb(5.0, 2.0),
        "poch": lambda: special.poch(5.0, 2.0),
        "xlogy": lambda: special.xlogy(jnp.zeros(2), jnp.zeros(2)),
        "sinc": lambda: jnp.sinc(jnp.zeros(2)),
        "weights": lambda: special.logsumexp(jnp.zeros(2), b=jnp.array([2.0, 0.0])),
        "interpolation": lambda: jax.scipy.interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.arange(3.0))(jnp.array([[1.0]])),
    }


@pytest.mark.parametrize("name", ["comb", "interpolation", "logsumexp", "poch", "sinc", "weights", "xlogy"])
def test_values_that_a_function_masks_are_not_reported(jax, jnp, name):
    with jax.debug_nans(True):
        masked(jax, jnp)[name]()


def test_a_wrong_result_is_reported_when_the_function_returns(jax, jnp):
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="nan.*log"):
            jnp.log(-jnp.ones(2))
        with pytest.raises(FloatingPointError, match="nan.*div"):
            jnp.mean(jnp.ones(0))
        with pytest.raises(FloatingPointError, match="nan"):
            jax.lax.fori_loop(0, 2, lambda i, x: jnp.log(x - 1), 1.0)
    assert sys.getprofile() is None


def test_a_profiler_sees_all_events_while_a_result_is_awaited(jax, jnp):
    seen = []
    hook = lambda frame, event, arg: seen.append(event)
    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        with jax.debug_nans(True), pytest.raises(FloatingPointError):
            jnp.mean(jnp.ones(0))
        assert sys.getprofile() in (hook, None)
    finally:
        sys.setprofile(before)
    assert "return" in seen and "c_call" in seen


@pytest.mark.parametrize("name", ["beta", "gamma", "dirichlet", "bessel_jn", "custom_root", "odeint", "closure", "linear"])
def test_rules_keep_no_arguments(jax, jnp, name, checking):
    """Rules stay in programs, which outlive the trace that made them."""
    lax, random = jax.lax, jax.random
    root = lambda a: lax.custom_root(lambda x: x - a, a, lambda f, x: x - f(x), lambda g, y: y / g(1.0))
    odeint = importlib.import_module(f"{jax.__name__}.experimental.ode").odeint

    def closure(a):
        f, consts = jax.closure_convert(lambda x: x * a, 1.0)
        return f(2.0, *consts)

    run = {
        "beta": lambda a: random.beta(random.key(0), a, 1.5),
        "gamma": lambda a: random.gamma(random.key(0), a),
        "dirichlet": lambda a: random.dirichlet(random.key(0), jnp.stack([a, a])),
        "bessel_jn": lambda a: jax.scipy.special.bessel_jn(jnp.stack([a]), v=2),
        "custom_root": root,
        "odeint": lambda a: odeint(lambda y, t: -y * a, a, jnp.arange(3.0)),
        "closure": closure,
        "linear": lambda a: jax.custom_derivatives.linear_call(lambda k, x: x / k * a, lambda k, ct: ct / k * a, a, a),
    }[name]
    jax.jit(run)(2.0)
    jax.jit(lambda a: lax.cond(a > 0, lambda: run(a), lambda: run(a)))(2.0)


def test_the_librarys_functions_get_arrays_without_jit(jax, jnp):
    x = jnp.arange(6.0).reshape(2, 3)
    calls = [
        lambda: jnp.median(x),
        lambda: jnp.nanquantile(x, 0.3, axis=1),
        lambda: jnp.percentile(x, 30),
        lambda: jax.scipy.stats.mode(jnp.ones(1)).mode,
        lambda: jnp.pad(x, 1, mode="median"),
    ]
    for call in calls:
        want = call()
        with jax.disable_jit():
            np.testing.assert_allclose(call(), want)
            assert jax.jit(lambda n: type(n))(2) is int  # the user's functions get what they were given


DTYPED = {
    "stack": lambda jax, x, d: jax.numpy.stack([x, x], dtype=d),
    "concatenate": lambda jax, x, d: jax.numpy.concatenate([x, x], dtype=d),
    "one_hot": lambda jax, x, d: jax.nn.one_hot(jax.numpy.arange(2), 3, dtype=d),
    "einsum": lambda jax, x, d: jax.numpy.einsum("ij,jk", x, x, preferred_element_type=d),
    "lax.dot": lambda jax, x, d: jax.lax.dot(x, x, preferred_element_type=d),
    "convolve": lambda jax, x, d: jax.numpy.convolve(x[0], x[0], preferred_element_type=d),
    "result_type": lambda jax, x, d: jax.numpy.result_type(x, d),
    "asarray": lambda jax, x, d: jax.numpy.asarray(x, d),
    "zeros": lambda jax, x, d: jax.numpy.zeros(2, d),
    "initializer": lambda jax, x, d: jax.nn.initializers.glorot_normal(dtype=d)(jax.random.key(0), (2, 2)),
    "random": lambda jax, x, d: jax.random.uniform(jax.random.key(0), dtype=d),
    "astype": lambda jax, x, d: x.astype(d),
}


@pytest.mark.parametrize("name", sorted(DTYPED))
def test_truncation_of_64_bits_warns(jax, jnp, name):
    run = functools.partial(DTYPED[name], jax, jnp.ones((2, 2)))
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64"):
        run("float64")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("float32")
        run(float)
        with jax.enable_x64(True):
            run("float64")


def test_arrays_that_nobody_placed_follow_the_default_device(child):
    child(
        """
jax.config.update("jax_num_cpu_devices", 2)
a, b = jax.devices("cpu")
x = jnp.array([1.0, 2.0, 3.0])
placed = jax.device_put(x, a)
programs = {
    "literal": jax.jit(lambda: jnp.array([1.0, 2.0, 3.0])),
    "made by numpy": jax.jit(lambda: jnp.asarray(np.ones(3))),
    "arange": jax.jit(lambda: jnp.arange(3.0)),
    "captured": jax.jit(lambda: x * 2),
    "argument": lambda: jax.jit(lambda x: x * 2)(x),
    "literal in a jitted function": lambda: inner(2.0),
    "eager": lambda: x * 2,
    "eager, both": lambda: x + jnp.ones(3),
    "indexing": lambda: x[0],
    "reshape": lambda: x.reshape(3, 1),
    "at": lambda: x.at[0].set(1.0),
    "copy": lambda: x.copy(),
    "grad": jax.jit(lambda: jax.grad(lambda y: (y * jnp.array([1.0, 2.0])).sum())(1.0)),
    "scan": lambda: jax.lax.scan(lambda c, _: (c + jnp.array([1.0]), None), jnp.zeros(1), None, length=3)[0],
    "vmap": lambda: jax.vmap(lambda i: jnp.array([1.0, 2.0])[i])(jnp.arange(2)),
    "binomial": lambda: jax.random.binomial(jax.random.key(0), 10, 0.5, (3,)),
    "multinomial": lambda: jax.random.multinomial(jax.random.key(0), 10, jnp.array([0.5, 0.5])),
}
inner = jax.jit(lambda x: x + jnp.array([1.0, 2.0, 3.0]))
for name, f in programs.items():
    for d in (a, b, a):
        with jax.default_device(d):
            assert f().devices() == {d}, (name, d)
with jax.default_device(b):
    assert (placed * 2).devices() == (placed + jnp.ones(3)).devices() == jax.jit(lambda x: x)(placed).devices() == {a}
    y = x * 2
assert y.devices() == {b} and (y + 1).devices() == (x + y).devices() == {a}
np.testing.assert_array_equal(np.asarray(x + y), [3, 6, 9])
""",
        timeout=100,
    )


@pytest.mark.ours
def test_results_of_bwd_rules_as_they_are(jax, jnp):
    """`jax_disable_bwd_checks`: of any shape, jitted too; by default they are compared."""

    def derivative(y, bwd):
        f = jax.custom_vjp(lambda x, y: x)
        f.defvjp(lambda x, y: (x, None), lambda _, g: (g, bwd(g)))
        return lambda: jax.grad(lambda y: f(jnp.ones(3), y).sum())(y)

    longer = derivative(jnp.ones(4), lambda g: 2 * g)
    for make in (lambda f: f, jax.jit):
        with pytest.raises(ValueError, match="so the shapes do not match"):
            make(longer)()
        jax.config.update("jax_disable_bwd_checks", True)
        try:
            assert make(longer)().tolist() == [2.0] * 3
            assert make(derivative(jnp.ones(3, "bfloat16"), lambda g: 2 * g))().tolist() == [2.0] * 3
            assert make(derivative(jnp.ones(3), lambda g: None))().tolist() == [0.0] * 3
        finally:
            jax.config.update("jax_disable_bwd_checks", False)
