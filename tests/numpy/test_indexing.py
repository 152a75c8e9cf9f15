"""Reading and updating by any index that numpy takes; eager and under jit."""

import contextlib

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import arrays, indexed, same


@given(case=indexed())
def test_reading(jax, jnp, case):
    x, index = case
    want = x[index]
    same(jnp.asarray(x)[index], want)
    same(jax.jit(lambda x: x[index])(x), want)


@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max"])
@given(data=st.data())
def test_updating(jax, jnp, name, data):
    x, index = data.draw(indexed(np.int32, advanced=data.draw(st.booleans())))
    places = np.arange(x.size).reshape(x.shape)[index]
    assume(np.asarray(places).size == len(np.unique(places)))  # which of two writes to one place wins is another test
    value = data.draw(st.integers(-5, 5))
    want = x.copy()
    numpy_update = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}.get(name)
    with np.errstate(all="ignore"):
        want[index] = value if name == "set" else numpy_update(x[index], np.int32(value))
    update = lambda x: getattr(x.at[index], name)(value)
    same(update(jnp.asarray(x)), want)
    same(jax.jit(update)(x), want)


@given(data=st.data())
def test_adding_twice_at_one_place(jnp, data):
    x = data.draw(arrays(np.int32, (5,)))
    at = data.draw(arrays(np.int32, (7,), elements=st.integers(-5, 4)))
    u = data.draw(arrays(np.int32, (7,)))
    want = x.copy()
    np.add.at(want, at, u)
    same(jnp.asarray(x).at[at].add(u), want)


@given(data=st.data())
def test_masks(jax, jnp, data):
    x = data.draw(arrays(np.float32, (3, 4)))
    mask = data.draw(arrays(bool, data.draw(st.sampled_from([(3, 4), (3,)]))))
    same(jnp.asarray(x)[mask], x[mask])
    want = x.copy()
    want[mask] = 7
    same(jnp.asarray(x).at[mask].set(7), want)


@given(case=indexed(np.int32))
def test_traced_indices_read_the_same(jax, jnp, case):
    x, index = case
    parts = index if isinstance(index, tuple) else (index,)
    traced = [p for p in parts if isinstance(p, (int, np.integer, np.ndarray))]

    def read(x, *traced):
        left = iter(traced)
        return x[tuple(next(left) if isinstance(p, (int, np.integer, np.ndarray)) else p for p in parts)]

    same(jax.jit(read)(x, *traced), x[index])


@pytest.mark.parametrize("mode, want", [("fill", [-1, 3, -1]), ("clip", [3, 3, 1]), ("drop", [-1, 3, -1])])
def test_out_of_bounds_modes(jnp, mode, want):
    x = jnp.array([1, 2, 3])
    at = jnp.array([5, 2, -4])
    same(x.at[at].get(mode=mode, fill_value=-1), np.array(want, np.int32))


def test_updates_out_of_bounds_are_dropped_or_clipped(jnp):
    x = jnp.zeros(3, jnp.int32)
    assert x.at[jnp.array([5, 1])].add(1).tolist() == [0, 1, 0]
    assert x.at[jnp.array([5, 1])].add(1, mode="clip").tolist() == [0, 1, 1]


@given(start=st.lists(st.integers(-3, 6), min_size=2, max_size=2), data=st.data())
def test_dynamic_slices_clamp_their_start(jax, lax, start, data):
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    size = (data.draw(st.integers(0, 4)), data.draw(st.integers(0, 5)))
    # A negative start counts from the end, then all are clamped.
    at = [min(max(s + d if s < 0 else s, 0), d - n) for s, n, d in zip(start, size, x.shape, strict=True)]
    place = tuple(slice(a, a + n) for a, n in zip(at, size, strict=True))
    for run in (lambda f: f, jax.jit):
        same(run(lambda x, i, j: lax.dynamic_slice(x, (i, j), size))(x, *start), x[place])
        want = x.copy()
        want[place] = -1
        same(run(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)))(x, np.full(size, -1, np.int32), *start), want)


@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4)])
@pytest.mark.parametrize("mode", [None, "clip", "wrap"])
def test_put_out_of_bounds(jnp, mode, shape):
    """Without a mode negative positions count from the end, as in NumPy, and what is beyond either end goes to that end."""
    n = 24
    at = {None: lambda i: min(max(i, -n), n - 1) % n, "clip": lambda i: min(max(i, 0), n - 1), "wrap": lambda i: i % n}[mode]
    for places in ([30], [-1], [-2, 0, 5], [-30], [n], [-n], [-n - 1], [30, -1], [n - 1, -3, 50, -50]):
        values = [k + 100 for k in range(len(places))]
        want = np.zeros(n, np.int32)
        for i, v in zip(places, values, strict=True):
            want[at(i)] = v
        got = jnp.put(jnp.zeros(shape, np.int32), jnp.array(places), jnp.array(values), mode=mode, inplace=False)
        same(got, want.reshape(shape))


@pytest.mark.parametrize(
    "start, index, name, value, want",
    [
        ([2, 2], 0, "multiply", 1.5, [3, 2]),
        ([2, 2], [0, 0], "add", 1.5, [5, 2]),
        ([7, 2], 0, "subtract", np.float32(0.5), [6, 2]),
        (np.uint8([100, 2]), 0, "min", np.int32(300), [100, 2]),
        (np.uint8([250, 2]), 0, "add", 300, [38, 2]),
        ([True, False], [0, 0], "subtract", 1, [True, False]),
        ([True, False], 1, "add", 3, [True, True]),
    ],
)
def test_updates_compute_where_both_operands_fit_and_keep_the_dtype(jnp, start, index, name, value, want):
    x = jnp.asarray(start)
    # The uint8 takes a Python number as it is; the other values do not fit the array.
    lossy = (
        contextlib.nullcontext()
        if value == 300 and name == "add"
        else pytest.warns(FutureWarning, match="scatter inputs have incompatible types: cannot safely")
    )
    with lossy:
        got = getattr(x.at[jnp.asarray(index)], name)(value)
    assert got.dtype == x.dtype
    assert got.tolist() == want


def test_empty_parts_of_weak_arrays_are_weak(jnp):
    x = jnp.broadcast_to(1.0, (4,))
    assert x[jnp.zeros(4, bool)].weak_type and x[jnp.zeros(0, int)].weak_type and x.at[0].set(2).weak_type


@pytest.mark.ours
@pytest.mark.parametrize("index", [3, 2**40, -4, -(2**40), (slice(None, None, 2), 9), (2**40, 0), (0, -(2**40))])
def test_an_integer_out_of_bounds_is_clamped_or_filled_whatever_its_size(jax, jnp, index):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    parts = index if isinstance(index, tuple) else (index,)
    want = x[tuple(np.clip(i, -n, n - 1) if isinstance(i, int) else i for i, n in zip(parts, x.shape, strict=False))]
    for f in (lambda x: x[index], lambda x: x.at[index].get(mode="clip")):
        same(f(jnp.asarray(x)), want)
        same(jax.jit(f)(x), want)
    assert np.isnan(jnp.asarray(x).at[index].get(mode="fill")).all()


def test_subtracting_booleans_is_refused(jnp, lax):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(TypeError, match="sub does not accept dtype bool at position 0"):
        lax.scatter_sub(jnp.array([True, False]), jnp.array([[0]]), jnp.array([True]), numbers)


@pytest.mark.ours
@pytest.mark.parametrize("name", ["x.at", "ref.at", "r_", "c_", "mgrid", "ogrid", "index"])
def test_index_helpers_are_not_iterable(jax, jnp, name):
    held = {"x.at": jnp.arange(3).at, "ref.at": jax.new_ref(jnp.arange(3)).at, "index": jax.ops.index}
    thing = held[name] if name in held else getattr(jnp, name)
    with pytest.raises(TypeError, match="not iterable"):
        iter(thing)
    with pytest.raises(TypeError):
        _ = 1 in thing


@pytest.mark.parametrize("index", [[0, None], [0, slice(None)], [0, ...], [np.arange(2), 0]], ids=str)
@pytest.mark.parametrize("use", [lambda x, i: x[i], lambda x, i: x.at[i].get(), lambda x, i: x.at[i].set(0)], ids=["read", "get", "set"])
def test_a_list_of_parts_of_an_index_is_to_be_a_tuple(jnp, use, index):
    with pytest.raises(TypeError, match=r"Using a non-tuple sequence .* use `arr\[tuple\(seq\)\]` instead"):
        use(jnp.arange(6).reshape(3, 2), index)
    use(jnp.arange(6).reshape(3, 2), tuple(index))


@pytest.mark.parametrize("mode", [None, "fill", "clip", "promise_in_bounds", "drop"])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_negative_indices_count_from_the_end_in_every_mode(jax, jnp, mode, dtype):
    x, i = jnp.array([10, 20, 30]), jnp.array([-1, -2], dtype)
    y, j = jnp.arange(12).reshape(3, 4), jnp.array([[-1], [-2], [0]], dtype)
    # what is promised to be in bounds is taken as it is, unless `wrap_negative_indices` is set
    wrapped = {"wrap_negative_indices": True} if mode == "promise_in_bounds" else {}
    take = lambda x, i, axis: jnp.take_along_axis(x, i, axis, mode=mode, **wrapped)
    for f in (take, jax.jit(take, static_argnums=2)):
        assert f(x, i, 0).tolist() == f(x, i, None).tolist() == [30, 20]
        assert f(y, j, 1).tolist() == [[3], [6], [8]] and f(y[:, :3], j.T, 0).tolist() == [[8, 5, 2]]
    assert jax.vmap(lambda i: take(x, i[None], 0))(i).tolist() == [[30], [20]]
    assert x.at[i].get(mode=mode).tolist() == [30, 20] and x.at[i].set(5, mode=mode).tolist() == [10, 5, 5]
    assert x.at[i].add(5, mode=mode).tolist() == [10, 25, 35]
    if mode in ("clip", "promise_in_bounds"):
        assert jnp.take_along_axis(x, i, 0, mode=mode, wrap_negative_indices=False).tolist() == [10, 10]


@pytest.mark.parametrize("fill", [[1], np.ones(2), np.ones((1, 1))], ids=str)
def test_fill_values_are_scalars(jnp, fill):
    with pytest.raises(ValueError, match="fill_value argument to indexed get\\(\\) must be a scalar"):
        jnp.arange(3).at[7].get(mode="fill", fill_value=fill)
