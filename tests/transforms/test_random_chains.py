"""Random chains: selections with moves of elements, cumulative functions, updates and loops between them, one after the other.

Short programs do not show what grows with the number of steps: masks of derivatives that nest, fused views, updates in place. Each step of a chain keeps
shape and dtype, so chains are of any length: up to eight steps here, up to thirty under `HYPOTHESIS_PROFILE=long`, which the nightly job uses.
"""

import pathlib
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_programs import SIZES, Lines, any_value
from strategies import ON_JAX, same_bits, x64

pytestmark = [
    pytest.mark.skipif(ON_JAX, reason="chains are drawn on the library under test"),
    pytest.mark.filterwarnings("ignore:Some donated buffers were not usable"),
]
LONG = settings.default.max_examples > 500
STEPS = 30 if LONG else 8
SOME = settings(max_examples=400 if LONG else 12)  # by night again and again, with other seeds
DTYPES = ["float64", "float64", "float64", "float32", "int32", "int8", "uint8", "int64", "uint32", "int16"]

# {y} is the value before, {z} one of the last few, {a} an axis, {k} and {c} small numbers, {update} a method of `.at`, {flag} a bool.
SELECTIONS = """
n.where({y} > {c}, n.roll({y}, {k}, {a}), {y} * 2)
n.where({y} > {c}, n.roll({y}, {k}, {a}), n.roll({z}, -{k}, {a}))
n.where({y} > {c}, n.roll({y}, 1, {a}), 0) + n.where({z} < {c}, n.roll({y}, 2, {a}), 0)
n.where({y} > {c}, {y}, 1) * n.roll(n.where({z} < {c}, {z}, 1), 1, {a})
n.where({z} != {c}, n.flip({y}, {a}), {z})
n.where({y} == {y}, {y}, 0)
n.maximum({y}, n.roll({z}, {k}, {a}))
n.minimum({y}, n.flip({z}, {a}))
n.maximum({y}, n.max({z}, {a}, keepdims=True, initial=0) - 1)
n.clip({y}, {c}, {c} + 2)
lax.clamp({y}.dtype.type(0), n.flip({y}, {a}), {y}.dtype.type({c} + 1))
lax.select_n((n.arange({y}.size, dtype='int32').reshape({y}.shape) + {k}) % 3, {y}, n.roll({z}, 1, {a}), {y} - {z})
n.piecewise({y}, [{y} < {c}, {z} > {c}], [lambda v: v * 2, lambda v: v - 1, 1])
n.sort({y}, {a})
n.take_along_axis({y}, n.argsort({z}, {a}), {a})
n.sum({y}, {a}, keepdims=True, where={z} > {c}).astype({y}.dtype) - {y}
""".strip().splitlines()
MOVES = """
n.roll({y}, {k} - 2, {a})
n.flip({y}, {a}) - {z}
{y}.reshape(-1)[::-1].reshape({y}.shape)
n.reshape(n.swapaxes({y}, 0, -1), {y}.shape)
n.concatenate([{y}[{k} :], {z}])[: {y}.shape[0]]
n.concatenate([{y}[::2], {z}[1::2]])
lax.slice_in_dim(n.repeat({y}, 2, {a}), 0, {y}.shape[{a}], axis={a})
n.pad({y}, {k}, mode='constant')[*[slice(0, s) for s in {y}.shape]]
n.pad({y}[1:], [(0, 1)] + [(0, 0)] * ({y}.ndim - 1), mode='constant')[: {y}.shape[0]]
{y}[(n.arange({y}.shape[0]) * 3 + {k}) % {y}.shape[0]]
n.take({y}, n.arange({y}.shape[{a}]) - {k}, axis={a}, mode='clip')
n.take({y}, n.arange({y}.shape[{a}]) + {k}, axis={a}, mode='wrap')
lax.dynamic_slice_in_dim(n.concatenate([{y}, {z}], {a}), n.int32({k} - 1), {y}.shape[{a}], {a})
lax.dynamic_update_slice_in_dim({y}, {z}[: {y}.shape[0] // 2], n.int32({k} - 1), 0)
{y}.at[::2].{update}({z}[::2])
{y}.at[{k} :].set({z}[{k} :] * 2)
{y}.at[{k}].{update}({z}[0])
{y}.at[..., -1].{update}({z}[..., 0])
{y}.at[n.array([0, 0, {k}])].{update}({c})
{y}.at[n.arange({y}.shape[0])[::-1]].{update}({z})
{y}.at[n.array([{k}, 0, {k}])].add({z}[:1])
n.stack([{y}, {z}])[n.arange({y}.shape[0]) % 2, n.arange({y}.shape[0])]
n.tril({y}[..., None] * n.ones({y}.shape[-1], {y}.dtype)).sum(-1).astype({y}.dtype)
jax.vmap(lambda v: n.flip(v, -1))({y}[None])[0]
jax.vmap(lambda v, i: v.at[i].{update}(v[-1]))(n.stack([{y}, {z}]), n.array([0, {k}]))[1]
""".strip().splitlines()
CUMULATIVE = """
n.cumsum({y}, {a}, dtype={y}.dtype)
lax.cumsum({y}, {a}, reverse={flag})
lax.cummax({y}, {a}, reverse={flag})
lax.cummin({y}, {a}, reverse={flag})
lax.associative_scan(n.add, {y}, axis={a}, reverse={flag})
lax.associative_scan(n.maximum, {y}, axis={a})
lax.associative_scan(n.minimum, {y}, axis={a}, reverse={flag})
lax.reduce_window({y}, {y}.dtype.type(0), lax.add, (2,) * {y}.ndim, (1,) * {y}.ndim, 'SAME')
n.pad(n.diff({y}, axis={a}), [(0, int(i == {a} and {y}.shape[i] > 0)) for i in range({y}.ndim)], mode='constant')
{y} - n.sum({z}, {a}, keepdims=True).astype({y}.dtype)
""".strip().splitlines()
OF_FLOATS = """
n.sin({y}) + {z}
{y} / (1 + {y} * {z} * {y} * {z})
n.cumprod({y} * 0.5, {a})
lax.cumlogsumexp({y}, {a}, reverse={flag})
nn.softmax({y}, {a})
nn.relu({y} - n.roll({z}, 1, {a}))
nn.logsumexp({y}, {a}, keepdims=True) - {y}
n.mean({y}, {a}, keepdims=True) * {z}
n.var({y}, {a}, keepdims=True) + {y}
n.where({y} > {c}, n.log({y}), {z})
n.where(n.roll({z} > 0, 1, {a}), n.roll(n.sqrt({z}), 1, {a}), {y})
n.where(n.flip({z} > 0, {a}), n.flip({y} / {z}, {a}), {y})
n.linalg.norm({y}, axis={a}, keepdims=True) * {z}
n.fft.fft({y}, axis={a}).real.astype({y}.dtype)
jax.checkpoint(lambda v: n.where(v > {c}, n.sin(v), n.roll(v, 1, {a})))({y})
jax.jit(lambda v, w: n.maximum(v * v, n.flip(w, {a})))({y}, {z})
""".strip().splitlines()
OF_INTEGERS = """
{y} // 3
{y} % 5 - {z}
({y} ^ 3) + {z}
({y} << 1) | ({z} >> 1)
~{y}
{y}.astype('int64').astype('int8').astype({y}.dtype) * {z}
({y}.astype('uint8') - n.uint8(3)).astype({y}.dtype)
n.abs({y}) + n.argsort({z}, {a}).astype({y}.dtype)
{y}.astype('float32').astype({y}.dtype)
lax.population_count({y}) * {z}
""".strip().splitlines()
# What stays in a loop: {y} and {z} are both its carry.
LOOPS = """
lax.fori_loop(0, {k}, lambda i, c: {body}, {y})
lax.fori_loop(0, {k}, lambda i, c: n.where(i == 1, {body}, c), {y})
lax.scan(lambda c, i: ({body}, c.sum()), {y}, n.arange({k} + 1), reverse={flag})[0]
lax.scan(lambda c, i: ({body}, c), {y}, None, length={k} + 1, reverse={flag})[1][-1]
lax.scan(lambda c, e: (n.maximum(c, e), c + e), {y}[0] * 0, {y}, reverse={flag})[1]
lax.scan(lambda c, e: (c + e, n.where(c > e, c, e)), {y}[0] * 0, {y})[1]
lax.cond(n.sum({y}) > {c}, lambda c: {body}, lambda c: n.flip(c, {a}), {y})
jax.vmap(lambda c: {body})(n.stack([{y}, {z}]))[0]
lax.map(lambda c: {body}, n.stack([{y}, {z}]))[1]
""".strip().splitlines()
FAMILIES = (SELECTIONS, SELECTIONS, MOVES, MOVES, CUMULATIVE, LOOPS, None)


def filled(draw, template, y, z, x):
    """The template with its words."""
    own = OF_FLOATS if x.dtype.kind == "f" else OF_INTEGERS
    words = {
        "y": lambda: y,
        "z": lambda: z,
        "a": lambda: draw(st.integers(0, x.ndim - 1)),
        "k": lambda: draw(st.integers(0, 3)),
        "c": lambda: draw(st.integers(0, 2)),
        "flag": lambda: draw(st.booleans()),
        "update": lambda: draw(st.sampled_from(["set", "add", "multiply", "min", "max"])),
        "body": lambda: filled(draw, draw(st.sampled_from([*SELECTIONS, *MOVES, *CUMULATIVE, *own])), "c", "c", x),
    }
    drawn = {word: str(words[word]()) for word in dict.fromkeys(re.findall(r"\{(\w+)\}", template))}
    return re.sub(r"\{(\w+)\}", lambda match: drawn[match[1]], template)


def bounded(text, x):
    """Floats stay near 1, whatever a step does to them; its dtype is that of the value before."""
    return f"(lambda v: v / (1 + n.abs(v)))({text})" if x.dtype.kind == "f" else f"({text}).astype('{x.dtype}')"


@st.composite
def chains(draw, jax, dtypes=DTYPES, sizes=SIZES[:17]):
    """A chain over one input. 64-bit types are on."""
    size, few = draw(st.sampled_from(sizes)), draw(st.integers(1, 4))
    shape = draw(st.sampled_from([(size,), (size,), (few, size), (size, few), (few, 2, 3)]))
    x = any_value(draw, shape, draw(st.sampled_from(dtypes)))
    program = Lines(jax, [x])
    for _ in range(draw(st.integers(1, STEPS))):
        own = OF_FLOATS if x.dtype.kind == "f" else OF_INTEGERS
        last = len(program.values) - 1
        earlier = draw(st.integers(max(last - 3, 0), last))
        line = bounded(filled(draw, draw(st.sampled_from(draw(st.sampled_from(FAMILIES)) or own)), f"x{last}", f"x{earlier}", x), x)
        if program.append(line) and (program.values[-1].shape, program.values[-1].dtype) != (x.shape, x.dtype):
            program.lines.pop(), program.values.pop()
    return program


def two(program, jax):
    """The last value and one in the middle, as a function of the input."""
    run, count = program.on(jax), len(program.lines)
    return lambda x: [run(x)[-1], run(x)[count // 2]] if count else [x, x]


def weighted(jax, f):
    """A number that depends on each element of f's results."""
    n = jax.numpy
    weights = lambda y: n.cos(n.arange(y.size, dtype=y.dtype)).reshape(y.shape)
    return lambda x: sum(n.sum(y * weights(y)) for y in f(x))


@SOME
@given(data=st.data())
def test_a_chain_is_its_steps_however_it_is_run(jax, data):
    """Step by step, compiled, on one thread, with its input given up, and as a part of what follows."""
    with x64(jax):
        chain = data.draw(chains(jax), label="chain")
        f, x = two(chain, jax), chain.inputs[0]
        with jax.disable_jit():
            want = f(jax.numpy.asarray(x))
        results = [jax.jit(f)(x), jax.jit(f, donate_argnums=0)(jax.numpy.array(x))]
        with jax.set_num_threads(1):
            results.append(jax.jit(lambda x: f(x))(x))
        results.append([y[..., ::-1] for y in jax.jit(lambda x: [y[..., ::-1] for y in f(x)])(x)])
        for result in results:
            for got, step in zip(result, want, strict=True):
                assert (got.dtype, got.weak_type) == (step.dtype, step.weak_type)
                same_bits(got, step)


def near(got, want, dtype, room=1.0):
    got, want = np.asarray(got, float), np.asarray(want, float)
    finite = np.isfinite(got) & np.isfinite(want)
    scale = np.max(np.abs(want[finite]), initial=1.0)
    tol = room * (1e-3 if dtype == np.float32 else 1e-8)
    np.testing.assert_allclose(got[finite], want[finite], rtol=tol, atol=tol * scale)


@SOME
@given(data=st.data())
def test_lanes_of_a_chain_are_chains(jax, data):
    with x64(jax):
        chain = data.draw(chains(jax), label="chain")
        f, x = two(chain, jax), chain.inputs[0]
        axis, lanes = data.draw(st.integers(0, x.ndim)), [x, x[::-1].copy(), x]
        got = jax.jit(jax.vmap(f, axis, axis))(np.stack(lanes, axis))
        for i, lane in enumerate(lanes):
            for y, want in zip(got, f(jax.numpy.asarray(lane)), strict=True):
                y = np.take(np.asarray(y), i, axis)
                if x.dtype.kind != "f":
                    np.testing.assert_array_equal(y, want)
                near(y, want, x.dtype)


@SOME
@given(data=st.data())
def test_slopes_of_a_chain_agree_and_are_differences(jax, data):
    """Forward beside reverse, eager, compiled, in lanes, in a loop and with recomputation; beside differences where steps of several sizes agree."""
    with x64(jax):
        chain = data.draw(chains(jax, dtypes=["float64"], sizes=SIZES[1:13]), label="chain")
        f, x = weighted(jax, two(chain, jax)), jax.numpy.asarray(chain.inputs[0])
        along = jax.numpy.cos(jax.numpy.arange(x.size) * 1.7).reshape(x.shape)
        slopes = jax.jit(jax.grad(f))(x)
        assert slopes.shape == x.shape
        assert np.isfinite(slopes).all()
        forward = jax.jit(lambda x, t: jax.jvp(f, (x,), (t,))[1])(x, along)
        size = 1 + float(jax.numpy.sum(jax.numpy.abs(slopes * along)))
        reverse = float(jax.numpy.vdot(slopes, along))
        assert abs(float(forward) - reverse) <= 1e-8 * size
        assert abs(float(jax.linearize(f, x)[1](along)) - reverse) <= 1e-8 * size
        for other in (
            jax.jit(jax.grad(jax.checkpoint(f)))(x),
            jax.jit(jax.vmap(jax.grad(f)))(x[None])[0],
            jax.lax.map(jax.grad(f), x[None])[0],
            jax.vjp(f, x)[1](1.0)[0],
        ):
            near(other, slopes, x.dtype)
        at = jax.jit(lambda h: f(x + h * along))
        here, steps = at(0.0), (1e-6, -1e-6, 1e-5, -1e-5)
        differences = [float(at(h) - here) / h for h in steps]
        if size < 1e4 and np.ptp(differences) < 1e-4 * size:
            assert abs(np.mean(differences) - reverse) <= 1e-3 * size


@settings(SOME, max_examples=SOME.max_examples // 2)
@given(data=st.data())
def test_second_slopes_of_a_chain_agree(jax, data):
    with x64(jax):
        chain = data.draw(chains(jax, dtypes=["float64"], sizes=[1, 2, 3, 5, 8]), label="chain")
        f, x = weighted(jax, two(chain, jax)), jax.numpy.asarray(chain.inputs[0])
        t = jax.numpy.sin(jax.numpy.arange(1.0, x.size + 1)).reshape(x.shape)
        slope = lambda x: jax.jvp(f, (x,), (t,))[1]
        outer = jax.jit(lambda x: jax.jvp(jax.grad(f), (x,), (t,))[1])(x)
        inner = jax.jit(jax.grad(slope))(x)
        near(outer, inner, x.dtype, room=1e2)


@settings(SOME, max_examples=SOME.max_examples // 2)
@given(data=st.data())
def test_derivatives_grow_with_the_length_of_a_chain(jax, data):
    """The same steps again add about as much to a gradient's program as the time before."""
    with x64(jax):
        chain = data.draw(chains(jax, dtypes=["float64"], sizes=[8, 16]), label="chain")
        step, x = two(chain, jax), chain.inputs[0]

        def lines(times):
            def f(x):
                for _ in range(times):
                    x = step(x)[0]
                return weighted(jax, lambda x: [x])(x)

            return str(jax.make_jaxpr(jax.grad(f))(x)).count("\n")

        few, more, many = (lines(times) for times in (2, 4, 6))
        assert many - more < 2 * (more - few) + 100, (few, more, many)


@SOME
@given(data=st.data())
def chains_on_parts_are_chains(jax, data):
    """Cut over four devices, a chain and its gradient have the values of one device."""
    with x64(jax):
        chain = data.draw(chains(jax, sizes=[4, 8, 16, 12, 24]), label="chain")
        f, x = two(chain, jax), chain.inputs[0]
        run = lambda x: (f(x), jax.grad(weighted(jax, f))(x) if x.dtype == np.float64 else 0)
        want = jax.tree.map(np.asarray, jax.jit(run)(x))
        axis = data.draw(st.sampled_from([None, *(a for a, size in enumerate(x.shape) if size % 4 == 0)]))
        spec = jax.sharding.PartitionSpec(*("i" if a == axis else None for a in range(x.ndim)))
        cut = jax.device_put(x, jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("i",)), spec))
        for got, y in zip(jax.tree.leaves(jax.jit(run)(cut)), jax.tree.leaves(want), strict=True):
            assert (got.shape, got.dtype) == (y.shape, y.dtype)
            if y.dtype.kind == "f":
                near(got, y, y.dtype)
            else:
                np.testing.assert_array_equal(got, y)


def test_values_are_those_of_one_device(forked_child):
    here = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parent)]
    forked_child(
        f"import sys; sys.path[:0] = {here!r}; import conftest, test_random_chains\ntest_random_chains.chains_on_parts_are_chains(conftest.load('ferrax'))",
        NUM_CPU_DEVICES="4",
        timeout=3000,
    )
