"""Primitives that mean a function: evaluated, staged, compiled, mapped and differentiated as that function is."""

import importlib
import types

import numpy as np
import pytest

MATRIX = [[1.0, 0, 2], [0, 3, 0]]
NUMBERS = (((1,), (0,)), ((), ()))


class Info(types.SimpleNamespace):
    """What a primitive must know of a sparse array besides its buffers."""

    def __init__(self, *shape, promises=False):
        super().__init__(shape=shape, indices_sorted=promises, unique_indices=promises, rows_sorted=promises, cols_sorted=promises)

    def __hash__(self):
        return hash(self.shape)


@pytest.fixture
def sparse(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.sparse")


def cases(jax, jnp, sparse):
    D, V, B = jnp.array(MATRIX), jnp.arange(3.0) + 1, jnp.arange(6.0).reshape(3, 2)
    M, R, C, S = (kind.fromdense(D) for kind in (sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR))
    split = dict(nse=3, n_batch=0, n_dense=0, index_dtype=np.int32)
    dot = dict(dimension_numbers=NUMBERS, preferred_element_type=None)
    i = Info(2, 3)
    rows = lambda m: (m.data, m.indices, m.indptr)
    coords = (C.data, C.row, C.col)
    d, mv, mb = np.array(MATRIX), np.array(MATRIX) @ np.array(V), np.array(MATRIX) @ np.array(B)
    data, indices = [1.0, 2, 3], [[0, 0], [0, 2], [1, 1]]
    yield "bcoo_fromdense", (D,), split, (data, indices)
    yield "bcoo_todense", (M.data, M.indices), dict(spinfo=i), (d,)
    yield "bcoo_extract", (M.indices, D * 2), dict(assume_unique=True), ([2.0, 4, 6],)
    yield "bcoo_transpose", (M.data, M.indices), dict(permutation=(1, 0), spinfo=i), (data, [[0, 0], [2, 0], [1, 1]])
    yield "bcoo_sort_indices", (M.data, M.indices[::-1]), dict(spinfo=i), ([3.0, 2, 1], indices)
    yield "bcoo_sum_duplicates", (M.data, M.indices[jnp.array([0, 0, 1])]), dict(spinfo=i, nse=2), ([3.0, 3], [[0, 0], [0, 2]])
    yield "bcoo_dot_general", (M.data, M.indices, B), dot | dict(lhs_spinfo=i), (mb,)
    yield "bcoo_dot_general_sampled", (D, B, jnp.array([[1, 1]])), dict(dimension_numbers=NUMBERS), ([9.0],)
    yield "bcsr_fromdense", (D,), split, (data, [0, 2, 1], [0, 2, 3])
    yield "bcsr_todense", rows(R), dict(spinfo=i), (d,)
    yield "bcsr_extract", (R.indices, R.indptr, D), {}, (data,)
    yield "bcsr_dot_general", (*rows(R), B), dot | dict(lhs_spinfo=i), (mb,)
    yield "coo_fromdense", (D,), dict(nse=3, index_dtype=np.int32), (data, [0, 0, 1], [0, 2, 1])
    yield "coo_todense", coords, dict(spinfo=i), (d,)
    yield "coo_matvec", (*coords, V), dict(spinfo=i, transpose=False), (mv,)
    yield "coo_matmat", (*coords, B), dict(spinfo=i, transpose=False), (mb,)
    yield "csr_fromdense", (D,), dict(nse=3, index_dtype=np.int32), (data, [0, 2, 1], [0, 2, 3])
    yield "csr_todense", rows(S), dict(shape=(2, 3)), (d,)
    yield "csr_matvec", (*rows(S), V[:2]), dict(shape=(2, 3), transpose=True), (d.T @ np.array(V[:2]),)
    yield "csr_matmat", (*rows(S), B), dict(shape=(2, 3), transpose=False), (mb,)
    yield "todense", (M.data, M.indices), dict(tree=jax.tree_util.tree_structure(M)), (d,)


def as_list(prim, out):
    return list(out) if prim.multiple_results else [out]


def test_sparse_primitives(jax, jnp, sparse):
    for name, args, params, wanted in cases(jax, jnp, sparse):
        prim = getattr(sparse, f"{name}_p")
        assert prim.name == name and prim.multiple_results == (len(wanted) > 1)
        f = lambda *a, prim=prim, params=params: prim.bind(*a, **params)
        for out in (f(*args), jax.jit(f)(*args)):
            for got, want in zip(as_list(prim, out), wanted, strict=True):
                np.testing.assert_allclose(got, want, err_msg=name)
        assert [e.primitive for e in jax.make_jaxpr(f)(*args).eqns] == [prim]


def floats(f, args):
    """The first result as a function of the floating-point arguments, and these."""
    at = [i for i, x in enumerate(args) if x.dtype == np.float32]

    def of_floats(*xs):
        whole = dict(zip(at, xs, strict=True))
        out = f(*(whole.get(i, x) for i, x in enumerate(args)))
        return out[0] if isinstance(out, (tuple, list)) else out

    return of_floats, [args[i] for i in at]


@pytest.mark.ours
def test_derivatives_and_lanes_of_sparse_primitives(jax, jnp, sparse):
    """All are linear in each floating-point operand."""
    for name, args, params, _ in cases(jax, jnp, sparse):
        prim = getattr(sparse, f"{name}_p")
        f, xs = floats(lambda *a, prim=prim, params=params: prim.bind(*a, **params), args)
        y = f(*xs)
        _, dy = jax.jvp(f, xs, xs)
        np.testing.assert_allclose(dy, len(xs) * y, err_msg=name)
        gradients = jax.grad(lambda *x, f=f: (f(*x) ** 2).sum(), argnums=tuple(range(len(xs))))(*xs)
        for x, g in zip(xs, gradients, strict=True):
            np.testing.assert_allclose((x * g).sum(), 2 * (y * y).sum(), rtol=1e-6, err_msg=name)
        lanes = jax.vmap(lambda x, f=f, xs=xs: f(x, *xs[1:]))(jnp.stack([xs[0], 2 * xs[0]]))
        np.testing.assert_allclose(lanes, jnp.stack([y, 2 * y]), err_msg=name)
        if name.endswith("fromdense"):
            continue  # where its elements are is not linear
        back = jax.linear_transpose(lambda x, f=f, xs=xs: f(x, *xs[1:]), xs[0])(y)[0]
        np.testing.assert_allclose((back * xs[0]).sum(), (y * y).sum(), rtol=1e-6, err_msg=name)


def test_product_of_two_sparse_arrays(jax, jnp, sparse):
    M = sparse.BCOO.fromdense(jnp.array(MATRIX))
    N = sparse.BCOO.fromdense(jnp.array(MATRIX).T)
    infos = dict(lhs_spinfo=Info(2, 3, promises=True), rhs_spinfo=Info(3, 2, promises=True))
    data, indices = sparse.bcoo_spdot_general_p.bind(M.data, M.indices, N.data, N.indices, dimension_numbers=NUMBERS, preferred_element_type=None, **infos)
    np.testing.assert_allclose(sparse.BCOO((data, indices), shape=(2, 2)).todense(), [[5, 0], [0, 9]])


# ---------------------------------------------------------------- lax


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_equal_in_total_order(jax, jnp, dtype):
    nan, inf = np.nan, np.inf
    x, y = jnp.array([nan, 0.0, -0.0, 1, inf, nan, -nan], dtype), jnp.array([nan, -0.0, 0.0, 1, inf, 1, nan], dtype)
    eq_to = jax.lax.eq_to_p.bind
    for f in (eq_to, jax.jit(eq_to), jax.vmap(eq_to)):
        assert f(x, y).tolist() == [True, False, False, True, True, False, False]
    assert eq_to(jnp.arange(3), jnp.array([0, 1, 1])).tolist() == [True, True, False]


@pytest.mark.ours
def test_complex_numbers_have_no_total_order(jax, jnp):
    with pytest.raises(TypeError, match="eq_to does not accept dtype complex64"):
        jax.lax.eq_to_p.bind(jnp.ones(2, "complex64"), jnp.ones(2, "complex64"))


def test_stage(jax, jnp):
    assert [(float(v), v.dtype.name) for v in map(jax.lax.stage, (1, 2.0, np.int8(3)))] == [(1, "int32"), (2, "float32"), (3, "int8")]
    assert jax.lax.stage_p.bind(jnp.float32(2)) == 2 and jax.grad(lambda x: jax.lax.stage(x) * 2)(1.0) == 2
    with pytest.raises(TypeError, match="valid JAX array type|as a JAX value"):
        jax.lax.stage(lambda: 1)


def test_sinks_stay_in_programs(jax, jnp):
    def f(x):
        jax.lax.dce_sink((x * 2, x))
        return x

    assert [e.primitive.name for e in jax.make_jaxpr(f)(1.0).eqns] == ["mul", "dce_sink", "dce_sink"]
    assert jax.lax.dce_sink(1.0) is None
    assert jax.jit(f)(3.0) == 3 and jax.grad(f)(3.0) == 1 and jax.vmap(f)(jnp.arange(2.0)).tolist() == [0, 1]


RAGGED = [[[1, 2, 2], [3, 4, 0]], np.zeros((2, 4), int), [[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]]]


@pytest.mark.ours  # JAX refuses it under vmap
def test_ragged_exchange(jax, jnp):
    """The example of JAX's documentation, and its derivative."""
    send = lambda *args: jax.lax.ragged_all_to_all(*args, axis_name="i")
    operand, output, *rest = map(jnp.array, RAGGED)
    assert jax.vmap(send, axis_name="i")(operand, output, *rest).tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]
    rows = jnp.stack([operand, -operand], -1)
    assert jax.vmap(send, axis_name="i")(rows, jnp.zeros((2, 4, 2), int), *rest)[0].tolist() == [[1, -1], [3, -3], [0, 0], [0, 0]]
    weighted = lambda o, z, *rest: (send(o, z, *rest) * jnp.arange(1.0, 5)).sum()
    of_operand, of_output = jax.vmap(jax.grad(weighted, (0, 1)), axis_name="i")(operand * 1.0, output * 1.0, *rest)
    assert of_operand.tolist() == [[1, 1, 2], [2, 3, 0]] and of_output.tolist() == [[0, 0, 3, 4], [0, 0, 0, 4]]


@pytest.mark.ours
@pytest.mark.parametrize(
    "at, value, message",
    [(2, np.zeros((2, 2)), "input_offsets must be integer type"), (3, np.zeros((2, 1, 2), int), "send_sizes must be rank 1"),
     (4, np.zeros((2, 3), int), "the same length, a multiple of the axis size 2"), (0, np.zeros((2, 3)), "must agree but for their first axis")],
)  # fmt: skip
def test_ragged_exchanges_that_do_not_fit(jax, jnp, at, value, message):
    args = [jnp.asarray(value if i == at else a) for i, a in enumerate(RAGGED)]
    with pytest.raises(ValueError, match=message):
        jax.vmap(lambda *args: jax.lax.ragged_all_to_all(*args, axis_name="i"), axis_name="i")(*args)


# ---------------------------------------------------------------- others


def test_gamma_draws(jax, jnp):
    prim, key, a = jax.random.random_gamma_p, jax.random.key(0), jnp.array([1.0, 2.0])
    for log_space, f in ((False, jax.random.gamma), (True, jax.random.loggamma)):
        np.testing.assert_array_equal(prim.bind(key, a, log_space=log_space), f(key, a))
    draw = lambda k, a: prim.bind(k, a, log_space=False)
    np.testing.assert_allclose(jax.jvp(lambda a: draw(key, a), (a,), (jnp.ones(2),))[1], [0.9094878, 1.0179105], rtol=1e-5)
    keys, shapes = jax.random.split(key, 2), jnp.ones((2, 3))
    np.testing.assert_allclose(draw(keys, shapes), jax.vmap(draw)(keys, shapes), rtol=1e-6)


def test_arrays_of_hosts(jax, jnp):
    multihost = importlib.import_module(f"{jax.__name__}.experimental.multihost_utils")
    mesh = jax.make_mesh((1,), ("i",))
    x = jnp.arange(6.0).reshape(3, 2)
    for prim in (multihost.host_local_array_to_global_array_p, multihost.global_array_to_host_local_array_p):
        f = lambda x, prim=prim: prim.bind(x, global_mesh=mesh, pspec=jax.P("i"))
        np.testing.assert_array_equal(f(x), x)
        assert [e.primitive.name for e in jax.make_jaxpr(f)(x).eqns] == [prim.name]
    assert multihost.safe_zip([1, 2], "ab") == [(1, "a"), (2, "b")]
    with pytest.raises(ValueError):
        multihost.safe_zip([1], [1, 2])


@pytest.mark.ours
def test_lanes_of_arrays_of_hosts(jax, jnp):
    multihost = importlib.import_module(f"{jax.__name__}.experimental.multihost_utils")
    batching = importlib.import_module(f"{jax.__name__}.interpreters.batching")
    mesh, x = jax.make_mesh((1,), ("i",)), jnp.arange(6.0).reshape(3, 2)
    f = lambda x: multihost.host_local_array_to_global_array_p.bind(x, global_mesh=mesh, pspec=None)
    np.testing.assert_array_equal(jax.vmap(f)(x), x)
    assert jax.grad(lambda x: (f(x) ** 2).sum())(x).tolist() == (2 * x).tolist()
    out, d = multihost.ltg_batcher(False, batching.AxisData(None, 2), (x,), (1,), mesh, jax.P("i"))
    np.testing.assert_array_equal(out, x)
    assert d == 1
    aval = jax.typeof(x)
    assert multihost.ltg_abstract_eval(aval, global_mesh=mesh, pspec=jax.P("i")) is aval


def test_formats_and_withdrawn_attributes(jax, jnp):
    x = jnp.zeros((2, 3))
    assert x.format.layout.major_to_minor == (0, 1) and x.format.sharding == x.sharding
    for name in ("device_buffer", "device_buffers"):
        with pytest.raises(AttributeError, match=f"arr.{name} has been deprecated"):
            getattr(x, name)


# ---------------------------------------------------------------- profiles

PROFILE = """planes { name: "a" id: 3 lines { name: "l" timestamp_ns: 5
  events { metadata_id: 1 offset_ps: 2500 duration_ps: 4999
    stats {metadata_id: 1 str_value: "q"} stats {metadata_id: 1 double_value: 2.5} stats {metadata_id: 1 uint64_value: 7} stats {metadata_id: 1 int64_value: -3}
    stats {metadata_id: 1 bytes_value: "xy"} stats {metadata_id: 1 ref_value: 1} stats {metadata_id: 9 int64_value: 1} stats {metadata_id: 1} }
  events { metadata_id: 4 offset_ps: 1 } }
  event_metadata { key: 1 value { id: 1 name: "ev" } } stat_metadata { key: 1 value { id: 1 name: "st" } } stats { metadata_id: 1 int64_value: 4 } }"""


def test_profiles_are_read(jax, tmp_path):
    data_of = importlib.import_module(f"{jax.__name__}.profiler").ProfileData
    raw = data_of.text_proto_to_serialized_xspace(PROFILE)
    (tmp_path / "a.xplane.pb").write_bytes(raw)
    for data in (data_of.from_text_proto(PROFILE), data_of.from_serialized_xspace(raw), data_of.from_file(str(tmp_path / "a.xplane.pb"))):
        (plane,) = data.planes
        assert plane.name == "a" and list(plane.stats) == [("st", 4)] and data.find_plane_with_name("a").name == "a" and data.find_plane_with_name("b") is None
        (line,) = plane.lines
        events = list(line.events)
        assert line.name == "l" and [(e.name, e.start_ns, e.duration_ns, e.end_ns) for e in events] == [("ev", 7, 4, 11), ("", 5, 0, 5)]
        known = [("st", v) for v in ("q", 2.5, 7, -3, "xy", "st")]
        assert list(events[0].stats) == [*known, (None, None), (None, None)] and list(events[1].stats) == []
    text = """planes { name: 'a"b\\n' id: 300 lines { timestamp_ns: -5 } stats { metadata_id: 1 double_value: 2.5 } } # c\n errors: "x" """
    expected = b'\n%\x08\xac\x02\x12\x04a"b\n\x1a\x0b\x18\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x012\x0b\x08\x01\x11\x00\x00\x00\x00\x00\x00\x04@\x12\x01x'
    assert data_of.text_proto_to_serialized_xspace(text)[2:] == expected[2:]


def test_files_that_are_not_profiles_are_refused(jax):
    data_of = importlib.import_module(f"{jax.__name__}.profiler").ProfileData
    with pytest.raises(RuntimeError, match="Failed to parse XSpace"):
        data_of.from_serialized_xspace(b"\xff\xff\xff")
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND"):
        data_of.from_file("/there/is/no/such/file")


@pytest.mark.ours
def test_cut_profiles_are_refused(jax):
    data_of = importlib.import_module(f"{jax.__name__}.profiler").ProfileData
    raw = data_of.text_proto_to_serialized_xspace(PROFILE)
    for n in range(1, len(raw)):
        with pytest.raises(RuntimeError, match="Failed to parse XSpace"):
            data_of.from_serialized_xspace(raw[:n])
    for text in ("planes { nope: 1 }", "planes {", "planes: 3", "planes { name: 3 }", "planes { id: 'x' }", "?"):
        with pytest.raises(ValueError):
            data_of.text_proto_to_serialized_xspace(text)
