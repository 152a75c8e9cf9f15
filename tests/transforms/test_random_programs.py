"""Random programs: transforms obey their laws on them, and they mean what they mean in JAX where it is installed.

`HYPOTHESIS_PROFILE=long` draws many more and new ones, which is what the nightly job does.
"""

import pathlib
import re

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings, strategies as st
from strategies import ON_JAX, same_bits, x64

pytestmark = [
    pytest.mark.skipif(ON_JAX, reason="programs are drawn on the library under test, and compared with JAX from there"),
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types"),
    pytest.mark.filterwarnings("ignore:Some donated buffers were not usable"),
]
FEW = settings(max_examples=max(settings.default.max_examples // 4, 10))


def arrays(jax, xs):
    return [jax.numpy.asarray(x) for x in xs]


def floats(xs):
    return [i for i, x in enumerate(xs) if x.dtype.kind == "f"]


def loss(jax, f):
    """A scalar of all float results, which depends on all."""
    return lambda *xs: sum(jax.numpy.sum(jax.numpy.sin(y)).astype("float64") for y in f(*xs) if y.dtype.kind == "f") + 0.0 * jax.numpy.sum(xs[0])


def of_floats(jax, program, xs):
    """The program's float results as a function of its float inputs, and those."""
    f, where = program.on(jax), floats(xs)

    def g(*fs):
        full = arrays(jax, xs)
        for i, x in zip(where, fs, strict=True):
            full[i] = x
        return [y for y in f(*full) if y.dtype.kind == "f"]

    return g, [jax.numpy.asarray(xs[i]) for i in where]


def close(got, want, tol=None, forgive_nan=False):
    """Equal in type and shape; floats within a tolerance that is relative to the largest."""
    assert len(got) == len(want)
    for k, (x, y) in enumerate(zip(got, want, strict=True)):
        assert (x.shape, x.dtype, getattr(x, "weak_type", 0)) == (y.shape, y.dtype, getattr(y, "weak_type", 0)), f"result {k}"
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(x, y, err_msg=f"result {k}")
            continue
        if forgive_nan:
            x = np.where(np.isnan(y), y, x)
        tol_ = tol or (2e-4 if x.dtype == np.float32 else 1e-6)
        scale = np.max(np.abs(y[np.isfinite(y)]), initial=1)
        np.testing.assert_allclose(x, y, rtol=tol_, atol=tol_ * scale, err_msg=f"result {k}")


@given(data=st.data())
def test_a_program_is_its_lines_however_it_is_run(jax, data):
    """Line by line, compiled, on one thread, and with its inputs given up."""
    with x64(jax):
        program = data.draw(random_programs.all_programs(jax), label="program")
        f, want = program.on(jax), program.values[len(program.inputs) :]
        results = [jax.jit(f)(*program.inputs)]
        with jax.set_num_threads(1):
            results.append(jax.jit(lambda *xs: f(*xs))(*program.inputs))
        given_up = jax.jit(f, donate_argnums=tuple(range(len(program.inputs))))
        results.append(given_up(*arrays(jax, [x.copy() for x in program.inputs])))
        for result in results:
            for got, line in zip(result, want, strict=True):
                assert got.weak_type == line.weak_type
                same_bits(got, line)


@given(data=st.data())
def test_vmap_is_a_loop(jax, data):
    with x64(jax):
        program = data.draw(random_programs.all_programs(jax), label="program")
        n, in_axes, batch = random_programs.lanes(data.draw, program)
        f = program.on(jax)
        got = jax.vmap(f, in_axes)(*arrays(jax, batch))
        lane = lambda i: [x if a is None else np.take(x, i, a) for x, a in zip(batch, in_axes, strict=True)]
        rows = [f(*arrays(jax, lane(i))) for i in range(n)]
        for k, y in enumerate(got):
            want = np.stack([np.asarray(row[k]) for row in rows])
            np.testing.assert_allclose(y, want, rtol=1e-3, atol=1e-3 * np.max(np.abs(want[np.isfinite(want)]), initial=1))


@FEW
@given(data=st.data())
def test_the_three_modes_of_differentiation_agree(jax, data):
    with x64(jax):
        program = data.draw(random_programs.all_programs(jax), label="program")
        f, primals = of_floats(jax, program, [x.astype(np.float64) if x.dtype.kind == "f" else x for x in program.inputs])
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        tangents = [jax.numpy.asarray(rng.standard_normal(x.shape)) for x in primals]
        out, forward = jax.jvp(f, primals, tangents)
        again, push = jax.linearize(f, *primals)
        close(again, out)
        close(push(*tangents), forward, forgive_nan=True)
        cts = [jax.numpy.asarray(rng.standard_normal(y.shape), y.dtype) for y in out]
        back = jax.jit(lambda xs, cts: jax.vjp(f, *xs)[1](cts))(primals, cts)
        with np.errstate(invalid="ignore"):
            left = sum(float(np.sum(np.asarray(c, float) * np.asarray(t, float))) for c, t in zip(cts, forward, strict=True))
            right = sum(float(np.sum(np.asarray(c) * np.asarray(t))) for c, t in zip(back, tangents, strict=True))
            scale = 1 + sum(float(np.sum(np.abs(np.asarray(c, float) * np.asarray(t, float)))) for c, t in zip(cts, forward, strict=True))
        narrow = any(x.dtype == np.float32 for x in program.values)
        # a narrow dtype rounds tangents and cotangents, each at another place
        if np.isfinite(scale) and not re.search("float[48]_", str(program)):
            np.testing.assert_allclose(left, right, atol=(1e-2 if narrow else 1e-6) * scale)


# A few hundred loops on landing, with each of these tests; `HYPOTHESIS_PROFILE=long` makes them thousands.
LOOPS = settings(max_examples=max(settings.default.max_examples, 100))


def run_alike(got, want):
    for x, y in zip(got, want, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        same_bits(x, y)


@LOOPS
@given(data=st.data())
def test_a_loop_is_its_steps_however_it_is_run(jax, data):
    """Step by step, compiled, with its inputs given up, on one thread, and as a part of what follows."""
    with x64(jax):
        loop = data.draw(random_programs.loops(jax), label="loop")
        f, inputs = loop.on(jax), arrays(jax, loop.inputs)
        want = loop.by_steps(jax)(*inputs)
        run_alike(jax.jit(f)(*inputs), want)
        run_alike(f(*inputs), want)
        with jax.set_num_threads(1):
            run_alike(jax.jit(lambda *xs: f(*xs))(*inputs), want)
        run_alike(jax.jit(lambda *xs: [jax.numpy.flip(y) for y in f(*xs)])(*inputs), [np.flip(y) for y in want])
        given_up = jax.jit(f, donate_argnums=tuple(range(len(inputs))))
        run_alike(given_up(*arrays(jax, [x.copy() for x in loop.inputs])), want)


@LOOPS
@given(data=st.data())
def test_lanes_of_a_loop_are_loops(jax, data):
    with x64(jax):
        loop = data.draw(random_programs.loops(jax), label="loop")
        f, n = loop.on(jax), data.draw(st.integers(1, 3))
        in_axes = [data.draw(st.none() | st.integers(0, x.ndim)) for x in loop.inputs]
        in_axes[0] = in_axes[0] or 0
        batch = [
            x if a is None else np.stack([random_programs.any_value(data.draw, x.shape, x.dtype.name) for _ in range(n)], a)
            for x, a in zip(loop.inputs, in_axes, strict=True)
        ]
        got = jax.jit(jax.vmap(f, in_axes))(*arrays(jax, batch))
        rows = [f(*arrays(jax, [x if a is None else np.take(x, i, a) for x, a in zip(batch, in_axes, strict=True)])) for i in range(n)]
        for k, y in enumerate(got):
            want = np.stack([np.asarray(row[k]) for row in rows])
            assert (y.shape, y.dtype) == (want.shape, want.dtype)
            if y.dtype.kind != "f":
                np.testing.assert_array_equal(y, want)
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5 * np.max(np.abs(want[np.isfinite(want)]), initial=1))


def on_parts(jax, draw, program):
    """Where inputs can be cut among the devices, they are, and the values are those of one device."""
    devices = np.array(jax.devices())
    mesh = jax.sharding.Mesh(devices, ("i",))
    f = program.on(jax)
    want = [np.asarray(y) for y in jax.jit(f)(*arrays(jax, program.inputs))]
    cut = []
    for x in program.inputs:
        axes = [a for a, size in enumerate(x.shape) if size and size % len(devices) == 0]
        axis = draw(st.sampled_from([None, *axes]))
        spec = jax.sharding.PartitionSpec(*("i" if a == axis else None for a in range(x.ndim)))
        cut.append(jax.device_put(x, jax.sharding.NamedSharding(mesh, spec)))
    for y, w in zip(jax.jit(f)(*cut), want, strict=True):
        assert (y.shape, y.dtype) == (w.shape, w.dtype)
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(y, w)
        # sums are added up in another order
        np.testing.assert_allclose(y, w, rtol=1e-4, atol=1e-4 * np.max(np.abs(w[np.isfinite(w)]), initial=1))


@LOOPS
@given(data=st.data())
def loops_on_parts_are_loops(jax, data):
    with x64(jax):
        on_parts(jax, data.draw, data.draw(random_programs.loops(jax), label="loop"))


@given(data=st.data())
def programs_on_parts_are_programs(jax, data):
    with x64(jax):
        on_parts(jax, data.draw, data.draw(random_programs.all_programs(jax), label="program"))


@pytest.mark.parametrize("name", ["loops_on_parts_are_loops", "programs_on_parts_are_programs"])
def test_values_are_those_of_one_device(forked_child, name):
    here = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parent)]
    forked_child(
        f"import sys; sys.path[:0] = {here!r}; import conftest, test_random_programs\ntest_random_programs.{name}(conftest.load('ferrax'))",
        NUM_CPU_DEVICES="4",
        timeout=3000,
    )


def slopes_are_differences(jax, draw, program):
    """Along a line, in double precision; where differences of several steps disagree there is an edge, and no slope."""
    g, primals = of_floats(jax, program, program.inputs)
    if not primals:
        return
    f = lambda xs: sum((jax.numpy.sum(jax.numpy.sin(y)).astype("float64") for y in g(*xs) if y.dtype == np.float64), start=jax.numpy.zeros(()))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    along = [jax.numpy.asarray(rng.standard_normal(x.shape)) for x in primals]
    run = jax.jit(f)
    at = lambda h: float(run([x + h * d for x, d in zip(primals, along, strict=True)]))
    here = at(0.0)
    if not np.isfinite(here):
        return
    differences = [(at(h) - here) / h for h in (1e-6, -1e-6, 1e-5, -1e-5)]
    slopes = jax.jit(jax.grad(f))(primals)
    reverse = sum(float(jax.numpy.vdot(s, d)) for s, d in zip(slopes, along, strict=True))
    forward = float(jax.jvp(f, (primals,), (along,))[1])
    size = 1 + sum(float(jax.numpy.sum(jax.numpy.abs(s * d))) for s, d in zip(slopes, along, strict=True))
    if not np.isfinite(size) or size > 1e4 or re.search("float(32|[48]_)", str(program)):
        return
    if "relu(" not in str(program):  # a mask within a custom rule ends there, so a pole after it shows in forward mode
        np.testing.assert_allclose(reverse, forward, atol=1e-8 * size)
    # steps of two sizes on both sides: at an edge, and where values are so large that a step is lost in rounding, they do not agree
    if np.ptp(differences) < 1e-3 * size:
        np.testing.assert_allclose(reverse, np.mean(differences), atol=1e-3 * size)


@LOOPS
@given(data=st.data())
def test_slopes_of_loops_are_differences(jax, data):
    with x64(jax):
        loop = data.draw(random_programs.loops(jax, dtypes=("float64", "float64", "int32", "uint8")), label="loop")
        if loop.kind != "while_loop":
            slopes_are_differences(jax, data.draw, loop)


@given(data=st.data())
def test_slopes_of_programs_are_differences(jax, data):
    with x64(jax):
        slopes_are_differences(jax, data.draw, data.draw(random_programs.all_programs(jax, floats=["float64"]), label="program"))


def outcome(f):
    """What comes of a call: results, or the class and first line of the exception."""
    try:
        return list(f()), None
    except Exception as e:
        return None, f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"


@FEW
@given(data=st.data())
def test_a_program_agrees_with_jax(jax, oracle, data):
    with x64(jax), x64(oracle):
        program = data.draw(random_programs.programs(jax), label="program")
        _, in_axes, batch = random_programs.lanes(data.draw, program)
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        tangents = [rng.standard_normal(x.shape).astype(x.dtype) for x in program.inputs if x.dtype.kind == "f"]
        where = tuple(floats(program.inputs))

        def derivative(lib):
            g, primals = of_floats(lib, program, program.inputs)
            return lib.jvp(g, primals, arrays(lib, tangents))[1]

        calls = {
            "value": lambda lib: program.on(lib)(*arrays(lib, program.inputs)),
            "vmap": lambda lib: lib.vmap(program.on(lib), in_axes)(*arrays(lib, batch)),
            "jvp": derivative,
            "grad": lambda lib: lib.grad(loss(lib, program.on(lib)), where)(*arrays(lib, program.inputs)),
            "vmap of grad": lambda lib: lib.jit(lib.vmap(lib.grad(loss(lib, program.on(lib)), where), in_axes))(*arrays(lib, batch)),
        }
        for name, call in calls.items():
            (got, refused), (want, refusal) = outcome(lambda: call(jax)), outcome(lambda: call(oracle))
            if refusal is not None and refusal.startswith("ValueError: Reverse-mode differentiation does not work for lax.while_loop"):
                continue  # here it does
            assert refused == refusal, name
            if got is not None:
                close(got, want, 1e-3 if name in ("grad", "vmap of grad") else None, forgive_nan=name not in ("value", "vmap"))
