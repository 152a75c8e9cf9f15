"""Callbacks run as often as the program says: also where a body only hands its operands through, and under `vmap`."""

import importlib
import threading
import time

import numpy as np
import pytest

# what a filtered traceback adds to the message
NOTE = "\n-{20}\nFor simplicity, JAX has removed its internal frames"


@pytest.fixture
def printed(jax, capfd):
    """What has been printed since the last call."""

    def lines():
        jax.effects_barrier()
        return capfd.readouterr().out.split()

    return lines


def note(jax, label, x):
    jax.debug.print(label + "{}", x)
    return x


def test_a_branch_that_returns_its_operand_still_prints(jax, jnp, lax, printed):
    f = lambda p, x: lax.cond(p, lambda x: note(jax, "q", x), lambda x: x, x)
    f(True, 1.0), f(False, 2.0), jax.jit(f)(True, 3.0)
    assert printed() == ["q1.0", "q3.0"]
    g = lambda i, x: lax.switch(i, [lambda x: note(jax, "a", x), lambda x: note(jax, "b", x), lambda x: x], x)
    g(1, 2.0)
    assert printed() == ["b2.0"]
    lax.cond(True, lambda: jax.debug.print("nothing"), lambda: None)
    assert printed() == ["nothing"]


def test_a_loop_that_returns_its_carry_still_prints(jax, jnp, lax, printed):
    x = jnp.arange(3.0)
    lax.scan(lambda c, x: (c, note(jax, "s", x)), 0.0, x)
    assert printed() == ["s0.0", "s1.0", "s2.0"]
    step = lambda i, c: (note(jax, "i", i), c)[1]
    lax.fori_loop(0, 3, step, x)
    jax.jit(lambda n: lax.fori_loop(0, n, step, x))(2)
    assert printed() == ["i0", "i1", "i2", "i0", "i1"]


def test_prints_show_every_lane_of_a_batched_branch_or_loop(jax, jnp, lax, printed):
    x = jnp.arange(3.0)
    f = lambda p, x: lax.cond(p, lambda x: note(jax, "q", x), lambda x: x, x)
    for vf in (jax.vmap(f), jax.jit(jax.vmap(f))):
        np.testing.assert_array_equal(vf(x > 1, x), x)
        assert printed() == ["q0.0", "q1.0", "q2.0"]
    count = lambda x: lax.while_loop(lambda x: x < 3, lambda x: note(jax, "b", x) + 1, x)
    np.testing.assert_array_equal(jax.vmap(count)(x), [3, 3, 3])
    assert printed() == ["b0.0", "b1.0", "b2.0", "b1.0", "b2.0", "b3.0", "b2.0", "b3.0", "b3.0"]


@pytest.mark.parametrize("ordered", [False, True])
def test_other_callbacks_are_refused_where_lanes_part(jax, jnp, lax, ordered):
    from importlib import import_module

    io_callback = import_module(jax.__name__ + ".experimental").io_callback
    x = jnp.arange(3.0)

    def store(x):
        io_callback(lambda x: None, None, x, ordered=ordered)
        return x

    with pytest.raises(NotImplementedError, match=rf"^IO effect not supported in vmap-of-cond.({NOTE}|$)"):
        jax.vmap(lambda p, x: lax.cond(p, store, lambda x: x, x))(x > 1, x)
    words = "Ordered IO effects not supported in vmap." if ordered else "Unordered IO effects not supported in while_loop with batched predicate"
    with pytest.raises(Exception, match=words):
        jax.vmap(lambda x: lax.while_loop(lambda x: x < 3, lambda x: store(x) + 1, x))(x)


def test_an_ordered_callback_is_not_mapped(jax, jnp):
    from importlib import import_module

    io_callback = import_module(jax.__name__ + ".experimental").io_callback
    with pytest.raises(ValueError, match=rf"^Cannot `vmap` ordered IO callback.({NOTE}|$)"):
        jax.vmap(lambda x: io_callback(lambda x: None, None, x, ordered=True))(jnp.arange(3.0))


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda x: np.ones(3, np.float32), r"Incorrect output shape for return value #0: Expected: \(\), Actual: \(3,\)"),
        (lambda x: np.ones((), np.int32), "Incorrect output dtype for return value #0: Expected: float32, Actual: int32"),
        (lambda x: (x, x), "Mismatched number of outputs from callback. Expected: 1, Actual: 2"),
        (lambda x: None, "Mismatched number of outputs from callback. Expected: 1, Actual: 0"),
    ],
    ids=["shape", "dtype", "too many", "none"],
)
def test_a_callback_that_breaks_its_promise(jax, wrong, words):
    def f(x):
        return jax.pure_callback(wrong, jax.ShapeDtypeStruct((), np.float32), x)

    with pytest.raises(jax.errors.JaxRuntimeError, match=words) as e:
        jax.block_until_ready(jax.jit(f)(1.0))
    if jax.__name__ == "ferrax" and "shape" not in words:
        assert f"{__file__}:{wrong.__code__.co_firstlineno}" in str(e.value)


def test_a_callback_that_raises_names_its_line(jax):
    def f(x):
        raise ValueError("boo")

    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: boo") as e:
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(f, jax.ShapeDtypeStruct((), np.float32), x))(1.0))
    assert f'"{__file__}", line {f.__code__.co_firstlineno + 1}, in f' in str(e.value)


def test_callbacks_get_arrays(jax, jnp, lax):
    from importlib import import_module

    io_callback = import_module(jax.__name__ + ".experimental").io_callback
    seen = []
    see = lambda *xs: seen.extend((isinstance(x, jax.Array), x.shape, x.dtype.name, x.weak_type) for x in xs)
    jax.debug.callback(see, jnp.ones(2), 3, np.ones((1, 2), "float16"))
    jax.effects_barrier()  # nothing else orders them
    jax.jit(lambda x: io_callback(lambda x: see(x.at[0].set(5)), None, x))(jnp.arange(3))
    jax.effects_barrier()
    jax.pure_callback(lambda x: (see(x), np.float32(1))[1], jax.ShapeDtypeStruct((), np.float32), jnp.ones((), bool)).block_until_ready()
    jax.effects_barrier()
    assert seen == [
        (True, (2,), "float32", False),
        (True, (), "int32", True),
        (True, (1, 2), "float16", False),
        (True, (3,), "int32", False),
        (True, (), "bool", False),
    ]


def test_prints_of_pytrees_say_array(jax, jnp, capfd):
    jax.debug.print("{} {x}", {"a": jnp.ones(2)}, x=[jnp.float32(1), "t"])
    jax.effects_barrier()
    assert capfd.readouterr().out == "{'a': Array([1., 1.], dtype=float32)} [Array(1., dtype=float32), 't']\n"


def test_a_callback_may_return_another_tree_of_the_same_leaves(jax, jnp):
    scalar = jax.ShapeDtypeStruct((), np.float32)
    y = jax.pure_callback(lambda x: {"y": [x]}, {"y": [scalar]}, [jnp.float32(1)])
    assert y["y"][0] == 1
    assert jax.pure_callback(lambda x: [x], {"y": scalar}, jnp.float32(2))["y"] == 2
    with pytest.raises(Exception, match="Mismatched number of outputs"):
        jax.block_until_ready(jax.pure_callback(lambda x: [x, x], {"y": scalar}, jnp.float32(2)))


def test_a_callback_cannot_promise_64_bits_without_the_flag(jax, jnp):
    with pytest.raises(ValueError, match="result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled"):
        jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), np.float64), 1.0)


def test_arguments_that_a_format_does_not_name_are_shown(jax, jnp):
    for args, text in [(("a", jnp.arange(2)), "[Array([0, 1], dtype=int32)]"), (("{}", 1, 2), "[2]"), (("{1}", "x", "y"), "['x']")]:
        for call in (jax.debug.print, lambda *a: jax.jit(lambda: jax.debug.print(*a))(), jax.debug.log):
            if args[0] == "{1}" and call is not jax.debug.print:
                continue
            with pytest.raises(ValueError, match="Unused positional arguments to `jax.debug.(print|log)`: ") as e:
                call(*args)
            assert str(e.value).endswith(text)


def test_prints_and_callbacks_in_two_calls(jax, jnp, capfd):
    jax.debug.callback(ordered=True)(lambda x: print("called", x), 3)
    jax.debug.print(ordered=True)("{a}", a=1)
    jax.effects_barrier()
    assert capfd.readouterr().out == "called 3\n1\n"
    with pytest.raises(ValueError, match="Unused keyword arguments"):
        jax.debug.print(ordered=True)("{a}", a=1, partitioned=True)
    with pytest.raises(TypeError, match=r"debug_print received unexpected arguments in the two-call form: args=\(\) kwargs={'a': 42}"):
        jax.debug.print(ordered=True, a=42)("{a}")
    with pytest.raises(TypeError, match=r"debug_callback received unexpected arguments in the two-call form: args=\(42,\)"):
        jax.debug.callback(None, 42, ordered=True)(print)
    with pytest.raises(TypeError, match="first argument to jax.debug.callback must be callable, but got an object of type <class 'int'>"):
        jax.debug.callback(3, 3)
    with pytest.raises(TypeError, match="expected str, got int"):
        jax.debug.print(1)


def test_prints_reach_a_replaced_standard_output_in_order(jax, jnp, lax, capsys):
    body = lambda i, x: (jax.debug.print("step {}", i, ordered=True), x + i)[1]
    jax.jit(lambda x: lax.fori_loop(0, 3, body, x))(0)
    jax.effects_barrier()
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


def test_errors_of_callbacks_are_logged_too(jax, jnp, caplog):
    def bad(*args):
        raise ValueError("no good")

    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback
    like = jax.ShapeDtypeStruct((), np.float32)
    for name, f in (
        ("pure_callback", lambda x: jax.pure_callback(bad, like, x)),
        ("io_callback", lambda x: io_callback(bad, like, x)),
        ("debug.callback", lambda x: jax.debug.callback(bad, x)),
    ):
        caplog.clear()
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.block_until_ready(jax.jit(f)(1.0))
            jax.effects_barrier()
        (record,) = [r for r in caplog.records if r.getMessage() == f"jax.{name} failed"]
        assert record.levelname == "ERROR" and record.exc_info[0] is ValueError and "in bad" in caplog.text


def test_prints_and_callbacks_differ_in_programs(jax):
    both = jax.make_jaxpr(lambda x: (jax.debug.print("{}", x), jax.debug.callback(lambda x: None, x))[:0])(1.0)
    assert [e.primitive.name for e in both.eqns] == ["debug_print", "debug_callback"]


# ---------------------------------------------------------------- when callbacks are called


def through(jax, callback):
    """Programs of one scalar that call `callback` with it, by name."""
    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback
    like = jax.ShapeDtypeStruct((), np.float32)
    with_result = lambda x: (callback(x), np.float32(0))[1]
    calls = {
        "debug": lambda x: (jax.debug.callback(callback, x), x)[1],
        "ordered debug": lambda x: (jax.debug.callback(callback, x, ordered=True), x)[1],
        "io": lambda x: io_callback(with_result, like, x),
        "ordered io": lambda x: io_callback(with_result, like, x, ordered=True),
        "pure": lambda x: jax.pure_callback(with_result, like, x, vmap_method="sequential"),
    }
    return calls | {
        "loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, x: calls["debug"](x), x),
        "branch": lambda x: jax.lax.cond(x > 0, calls["debug"], lambda x: x, x),
        "large": lambda x: (calls["debug"](x) + jax.numpy.ones((300, 300)) @ jax.numpy.ones((300, 300)))[0, 0],
    }


WAYS = ["debug", "ordered debug", "io", "ordered io", "pure", "loop", "branch", "large"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("jit", [True, False], ids=["jit", "eager"])
def test_callbacks_have_been_called_when_a_call_returns(jax, jnp, way, jit):
    seen = []
    f = through(jax, lambda x: (time.sleep(0.02), seen.append(float(x))))[way]
    f = jax.jit(f) if jit else f
    f(jnp.float32(1))
    assert len(seen) == (3 if way == "loop" else 1)
    f(jnp.float32(2))
    assert seen[-1] == 2 and len(seen) == (6 if way == "loop" else 2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("jit", [True, False], ids=["jit", "eager"])
def test_the_call_raises_the_error_of_a_callback(jax, jnp, way, jit):
    class Mine(ValueError):
        pass

    def bad(x):
        raise Mine("boo")

    f = through(jax, bad)[way]
    f = jax.jit(f) if jit else f
    # called from no program, a debug callback is a function like others
    kind = Mine if not jit and way in ("debug", "ordered debug", "large") else jax.errors.JaxRuntimeError
    for _ in range(2):
        with pytest.raises(kind, match="boo"):
            f(jnp.float32(1))
    jax.effects_barrier()  # reported already


@pytest.mark.parametrize("name, x", [("grad", 1.0), ("vmap", [1.0, 2.0])])
def test_debug_callbacks_under_transformations_raise_their_own(jax, jnp, name, x):
    def bad(x):
        raise KeyError("boo")

    def f(x):
        jax.debug.callback(bad, x)
        return x

    with pytest.raises(KeyError, match="boo"):
        getattr(jax, name)(f)(jnp.array(x))


def test_a_debug_callback_outside_of_programs_waits_for_its_operands(jax, jnp):
    seen = []
    large = jax.jit(lambda a: (a @ a @ a).sum())(jnp.ones((512, 512)))
    jax.debug.callback(lambda x: seen.append(float(x)), large)
    assert seen == [512.0**4]


def test_another_thread_s_barrier_does_not_take_the_error_of_a_call(jax, jnp):
    called, go = threading.Event(), threading.Event()

    def bad(x):
        called.set()
        go.wait(10)
        raise ValueError("boo")

    raised = []

    def call():
        try:
            jax.jit(lambda x: jax.debug.callback(bad, x))(1.0)
        except jax.errors.JaxRuntimeError as e:
            raised.append(str(e))

    thread = threading.Thread(target=call)
    thread.start()
    called.wait(10)
    go.set()
    jax.effects_barrier()
    thread.join()
    assert len(raised) == 1 and "boo" in raised[0]
    jax.effects_barrier()


@pytest.mark.parametrize("n_maps", [1, 2])
@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all", "legacy_vectorized"])
def test_arguments_of_a_callback_under_vmap(jax, jnp, method, n_maps):
    """The shapes of a mapped argument, mapped along another axis than the first, and of one that is not."""
    seen = []

    def callback(x, y):
        seen.append((np.shape(x), np.shape(y)))
        return np.asarray(x)

    f = lambda x, y: jax.pure_callback(callback, jax.ShapeDtypeStruct(x.shape, x.dtype), x, y, vmap_method=method)
    x = jnp.arange(6.0).reshape(2, 3) if n_maps == 1 else jnp.arange(12.0).reshape(2, 3, 2)
    for _ in range(n_maps):
        f = jax.vmap(f, in_axes=(1, None), out_axes=1)
    np.testing.assert_array_equal(jax.jit(f)(x, 4.0), x)
    expected = {
        "sequential": {1: ((2,), ()), 2: ((2,), ())},
        "expand_dims": {1: ((3, 2), (1,)), 2: ((3, 2, 2), (1, 1))},
        "broadcast_all": {1: ((3, 2), (3,)), 2: ((3, 2, 2), (3, 2))},
        "legacy_vectorized": {1: ((3, 2), ()), 2: ((3, 2, 2), ())},
    }[method][n_maps]
    assert set(seen) == {expected}


def test_a_callback_outside_of_a_program_sees_its_very_arguments(jax, jnp):
    seen = []
    see = lambda *arrays, **rest: seen.append([(x.dtype.name, x.weak_type) for x in arrays])
    jax.debug.callback(see, 1.0, jnp.ones(2), 2, True, 1.3 * jnp.arange(3), word="not an array")
    jax.debug.callback(see, jnp.sin(1.0), ordered=True)
    jax.jit(lambda x: jax.debug.callback(see, x))(1.0)
    jax.effects_barrier()
    jax.jvp(lambda x: (jax.debug.callback(see, x), x)[1], (1.0,), (1.0,))
    jax.vmap(lambda x: jax.debug.callback(see, x))(1.5 * jnp.arange(2))
    floats = [("float32", True), ("float32", False)]
    assert seen[0] == [*floats, ("int32", True), ("bool", False), ("float32", True)]
    assert seen[1:] == [[("float32", weak)] for weak in (True, False, True, True, True)]


@pytest.mark.parametrize("jit", [True, False])
def test_ordered_callbacks_keep_their_order_in_each_part_of_a_shard_map(jax, jnp, jit):
    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback

    calls = []

    def body(part, x):
        io_callback(lambda part, x: calls.append((int(part[0]), x.tolist())), None, part, x, ordered=True)

        def step(i, c):
            io_callback(lambda part, i: calls.append((int(part[0]), int(i))), None, part, i, ordered=True)
            return c + 1.0

        return jax.lax.fori_loop(0, 3, step, x)

    n = min(2, jax.device_count())
    mesh = jax.make_mesh((n,), ("x",), devices=jax.devices()[:n], axis_types=(jax.sharding.AxisType.Auto,))
    P = jax.sharding.PartitionSpec
    f = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    y = (jax.jit(f) if jit else f)(jnp.arange(n), jnp.arange(2.0 * n))
    jax.effects_barrier()
    np.testing.assert_array_equal(y, np.arange(2.0 * n) + 3)
    for k in range(n):
        assert [what for part, what in calls if part == k] == [[2.0 * k, 2.0 * k + 1], 0, 1, 2]


def test_callbacks_take_the_sharding_of_one_device(jax, jnp):
    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback

    calls, one = [], jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    double = lambda x: jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct(x.shape, x.dtype), x, sharding=one)
    np.testing.assert_array_equal(jax.jit(double)(jnp.arange(3.0)), [0, 2, 4])
    jax.jit(lambda x: io_callback(lambda x: calls.append(x.tolist()), None, x, sharding=one))(jnp.arange(2.0))
    jax.effects_barrier()
    assert calls == [[0.0, 1.0]]
