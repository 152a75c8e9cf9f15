"""Random programs: transforms obey their laws on them, and they mean what they mean in JAX where it is installed.

`HYPOTHESIS_PROFILE=long` draws many more and new ones, which is what the nightly job does.
"""

import re

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings, strategies as st
from strategies import ON_JAX, same_bits, x64

pytestmark = [
    pytest.mark.skipif(ON_JAX, reason="programs are drawn on the library under test, and compared with JAX from there"),
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types"),
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
def test_jit_is_eager(jax, data):
    with x64(jax):
        program = data.draw(random_programs.programs(jax), label="program")
        f = program.on(jax)
        for got, want in zip(jax.jit(f)(*program.inputs), program.values[len(program.inputs) :], strict=True):
            assert got.weak_type == want.weak_type
            same_bits(got, want)


@given(data=st.data())
def test_vmap_is_a_loop(jax, data):
    with x64(jax):
        program = data.draw(random_programs.programs(jax), label="program")
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
        program = data.draw(random_programs.programs(jax), label="program")
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


def outcome(f):
    """What comes of a call: results, or the class and first line of the exception."""
    try:
        return list(f()), None
    except Exception as e:
        return None, f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"


@FEW
@given(data=st.data())
def test_a_program_means_what_it_means_in_jax(jax, oracle, data):
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
