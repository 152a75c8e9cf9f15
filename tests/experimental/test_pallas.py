"""Kernels of Pallas: what each call sees and writes, against JAX's interpreter where JAX is installed."""

import importlib

import numpy as np
import pytest

F32 = np.float32


@pytest.fixture(scope="module")
def pl(jax):
    return importlib.import_module(jax.__name__ + ".experimental.pallas")


@pytest.fixture(scope="module")
def pltpu(jax, pl):
    return importlib.import_module(pl.__name__ + ".tpu")


def x(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def run(jax, pl, kernel, out, *args, **options):
    """The results of a kernel: by JAX in its interpreter."""
    call = pl.pallas_call(
        kernel, out_shape=jax.tree.map(lambda s: jax.ShapeDtypeStruct(*s), out, is_leaf=lambda s: isinstance(s, tuple)), interpret=True, **options
    )
    return jax.tree.map(np.asarray, call(*args))


def test_whole_arrays(jax, pl):
    def kernel(a, b, o):
        o[...] = a[...] * 2 + b[...]

    got = run(jax, pl, kernel, ((3, 4), F32), x(3, 4), x(3, 4, seed=1))
    np.testing.assert_allclose(got, x(3, 4) * 2 + x(3, 4, seed=1), rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8])
def test_blocks_of_rows(jax, pl, rows):
    def kernel(a, o):
        o[...] = a[...] + pl.program_id(0) * 10 + pl.num_programs(0)

    n = pl.cdiv(7, rows)
    spec = pl.BlockSpec((rows, 5), lambda i: (i, 0))
    got = run(jax, pl, kernel, ((7, 5), F32), x(7, 5), grid=(n,), in_specs=[spec], out_specs=spec)
    np.testing.assert_allclose(got, x(7, 5) + (np.arange(7) // rows * 10 + n)[:, None], rtol=1e-6)


@pytest.mark.parametrize("shape", [(8, 12, 4), (5, 7, 3)])
def test_matmul_in_blocks(jax, pl, shape):
    m, k, n = shape

    def kernel(a, b, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jax.numpy.zeros_like(o)

        o[...] += a[...] @ b[...]

    got = run(
        jax, pl, kernel, ((m, n), F32), np.pad(x(m, k), ((0, 0), (0, -k % 4))), np.pad(x(k, n), ((0, -k % 4), (0, 0))),
        grid=(pl.cdiv(m, 4), pl.cdiv(n, 2), pl.cdiv(k, 4)),
        in_specs=[pl.BlockSpec((4, 4), lambda i, j, k: (i, k)), pl.BlockSpec((4, 2), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((4, 2), lambda i, j, k: (i, j)),
    )  # fmt: skip
    np.testing.assert_allclose(got, x(m, k) @ x(k, n), rtol=1e-4, atol=1e-5)


def test_squeezed_and_element_dimensions(jax, pl):
    def kernel(a, w, o):
        assert a.shape == (4,)
        assert w.shape == (3, 2)
        o[...] = a[...].sum() + w[...].sum()[None]

    got = run(
        jax, pl, kernel, ((3,), F32), x(3, 4), x(6, 2), grid=(3,),
        in_specs=[pl.BlockSpec((None, 4), lambda i: (i, 0)), pl.BlockSpec((pl.Element(3), 2), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1,), lambda i: i),
    )  # fmt: skip
    want = [x(3, 4)[i].sum() + x(6, 2)[i : i + 3].sum() for i in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_element_dimensions_with_padding(jax, pl):
    def kernel(a, o):
        o[...] = jax.numpy.nansum(a[...], keepdims=True)

    got = run(
        jax, pl, kernel, ((6,), F32), x(6), grid=(6,),
        in_specs=[pl.BlockSpec((pl.Element(3, (1, 1)),), lambda i: (i,))],
        out_specs=pl.BlockSpec((1,), lambda i: (i,)),
    )  # fmt: skip
    padded = np.pad(x(6), 1)
    np.testing.assert_allclose(got, [padded[i : i + 3].sum() for i in range(6)], rtol=1e-5, atol=1e-6)


def test_scratch_keeps_its_contents(jax, pl, pltpu):
    def kernel(a, o, acc):
        @pl.when(pl.program_id(0) == 0)
        def _():
            acc[...] = jax.numpy.zeros_like(acc)

        acc[...] += a[...]
        o[...] = acc[...]

    spec = pl.BlockSpec((2,), lambda i: (i,))
    got = run(jax, pl, kernel, ((8,), F32), x(8), grid=(4,), in_specs=[spec], out_specs=spec, scratch_shapes=[pltpu.VMEM((2,), F32)])
    np.testing.assert_allclose(got, x(8).reshape(4, 2).cumsum(0).reshape(8), rtol=1e-5)


def test_named_scratch_and_trees(jax, pl, pltpu):
    def kernel(d, out, *, buffer):
        buffer[...] = d["a"][...] + d["b"][...]
        out["sum"][...] = buffer[...]
        out["n"][...] = jax.numpy.full((2,), 7, np.int32)

    got = run(jax, pl, kernel, {"sum": ((2,), F32), "n": ((2,), np.int32)}, {"a": x(2), "b": x(2, seed=1)}, scratch_shapes={"buffer": pltpu.VMEM((2,), F32)})
    np.testing.assert_allclose(got["sum"], x(2) + x(2, seed=1), rtol=1e-6)
    assert got["n"].tolist() == [7, 7]


def test_aliases(jax, pl):
    def kernel(a, o):
        o[...] += 1 * pl.program_id(0).astype(F32)

    spec = pl.BlockSpec((1,), lambda i: (i % 2,))
    got = run(jax, pl, kernel, ((4,), F32), x(4), grid=(4,), in_specs=[spec], out_specs=spec, input_output_aliases={0: 0})
    np.testing.assert_allclose(got, x(4) + [0 + 2, 1 + 3, 0, 0], rtol=1e-6)


def test_elements_that_a_kernel_does_not_write(jax, pl):
    def kernel(a, *outs):
        pass

    dtypes = (F32, np.int32, np.bool_, np.uint8, np.float16)
    got = run(jax, pl, kernel, [((2,), d) for d in dtypes], x(2))
    assert np.isnan(got[0]).all()
    assert np.isnan(got[4]).all()
    assert [g.tolist() for g in got[1:4]] == [[-(2**31)] * 2, [False] * 2, [0, 0]]


def test_a_kernel_that_writes_to_an_input(jax, pl):
    def kernel(a, o):
        o[...] = a[...]
        a[...] = a[...] + 1

    whole = pl.BlockSpec((3,), lambda i: (0,))
    got = run(jax, pl, kernel, ((3,), F32), x(3), grid=(4,), in_specs=[whole], out_specs=whole)
    np.testing.assert_allclose(got, x(3) + 3, rtol=1e-6)


INDICES = {
    "all": lambda pl, r, i: r[...],
    "slices": lambda pl, r, i: r[1:3, :],
    "a number": lambda pl, r, i: r[2],
    "a traced number": lambda pl, r, i: r[i],
    "traced block": lambda pl, r, i: r[pl.ds(i, 2), :],
    "traced blocks": lambda pl, r, i: r[pl.ds(i, 2), pl.ds(i + 1, 3)],
    "block and number": lambda pl, r, i: r[pl.ds(i, 2), 1],
    "number and block": lambda pl, r, i: r[i, pl.ds(i, 2)],
    "block with a stride": lambda pl, r, i: r[pl.ds(0, 2, 2), :],
    "static block": lambda pl, r, i: r[pl.ds(1, 2), :],
    "ellipsis and block": lambda pl, r, i: r[..., pl.ds(i, 2)],
    "array": lambda pl, r, i: r[i + np.int32(0) * r[0, 0].astype(np.int32), :],
    "beyond the end": lambda pl, r, i: r[pl.ds(i + 3, 3), :],
    "a part": lambda pl, r, i: r.at[pl.ds(i, 2)][...],
    "a part of a part": lambda pl, r, i: r.at[pl.ds(i, 3)].at[1:3][:, 2],
}


@pytest.mark.parametrize("name", INDICES)
def test_reading_and_writing_at_an_index(jax, pl, name):
    def kernel(a, o, p):
        i = pl.program_id(0)
        got = INDICES[name](pl, a, i)
        o[...] = jax.numpy.zeros_like(o).at[0, 0].set((got * (1 + jax.numpy.arange(got.size, dtype=F32)).reshape(got.shape)).sum())
        p[...] = jax.numpy.zeros_like(p)

    whole = pl.BlockSpec((5, 6), lambda i: (0, 0))
    one = pl.BlockSpec((1, 1), lambda i: (i, 0))
    got, _ = run(jax, pl, kernel, [((2, 1), F32)] * 2, x(5, 6), grid=(2,), in_specs=[whole], out_specs=[one, one])
    a = x(5, 6)
    i = lambda k: {
        "all": a, "slices": a[1:3], "a number": a[2], "a traced number": a[k], "traced block": a[k : k + 2], "traced blocks": a[k : k + 2, k + 1 : k + 4],
        "block and number": a[k : k + 2, 1], "number and block": a[k, k : k + 2], "block with a stride": a[0:3:2], "static block": a[1:3],
        "ellipsis and block": a[:, k : k + 2], "array": a[k], "beyond the end": a[2:5], "a part": a[k : k + 2], "a part of a part": a[k : k + 3][1:3, 2],
    }[name]  # fmt: skip
    want = [(v * (1 + np.arange(v.size)).reshape(v.shape)).sum() for v in map(i, range(2))]
    np.testing.assert_allclose(got[:, 0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["traced block", "traced blocks", "block and number", "number and block", "a traced number", "ellipsis and block"])
def test_writing_at_an_index(jax, pl, name):
    places = {
        "traced block": lambda i: (pl.ds(i, 2), slice(None)),
        "traced blocks": lambda i: (pl.ds(i, 2), pl.ds(i + 1, 3)),
        "block and number": lambda i: (pl.ds(i, 2), 1),
        "number and block": lambda i: (i, pl.ds(i, 2)),
        "a traced number": lambda i: i,
        "ellipsis and block": lambda i: (..., pl.ds(i, 2)),
    }

    def kernel(a, o):
        o[...] = a[...]
        at = places[name](pl.program_id(0) + 1)
        o[at] = o[at] * 0 + 5

    whole = pl.BlockSpec((5, 6), lambda i: (0, 0))
    got = run(jax, pl, kernel, ((5, 6), F32), x(5, 6), grid=(1,), in_specs=[whole], out_specs=whole)
    want = x(5, 6)
    want[{"traced block": np.s_[1:3], "traced blocks": np.s_[1:3, 2:5], "block and number": np.s_[1:3, 1], "number and block": np.s_[1, 1:3],
          "a traced number": np.s_[1], "ellipsis and block": np.s_[..., 1:3]}[name]] = 5  # fmt: skip
    np.testing.assert_allclose(got, want)


def test_loops_and_scoped_references(jax, pl, pltpu):
    def kernel(a, o):
        def scoped(acc):
            acc[...] = jax.numpy.zeros_like(acc)

            @pl.loop(0, 4)
            def _(i):
                acc[...] += a[i] * (1 + i)

            o[...] = acc[...]

        pl.run_scoped(scoped, pltpu.VMEM((3,), F32))

    got = run(jax, pl, kernel, ((3,), F32), x(4, 3))
    np.testing.assert_allclose(got, (x(4, 3) * np.arange(1, 5)[:, None]).sum(0), rtol=1e-5)


def test_prefetched_scalars(jax, pl, pltpu):
    def kernel(order, a, o):
        o[...] = a[...] + order[pl.program_id(0)]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((1, 4), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((1, 4), lambda i, order: (i, 0)),
    )
    order = np.array([2, 0, 1], np.int32)
    got = run(jax, pl, kernel, ((3, 4), F32), order, x(3, 4), grid_spec=spec)
    np.testing.assert_allclose(got, x(3, 4)[order] + order[:, None], rtol=1e-6)


def test_copies(jax, pl, pltpu):
    def kernel(a, o, sem):
        copy = pltpu.make_async_copy(a.at[pl.ds(1, 2)], o.at[pl.ds(0, 2)], sem)
        copy.start()
        copy.wait()
        pltpu.sync_copy(a.at[pl.ds(0, 1)], o.at[pl.ds(2, 1)])

    any_space = pl.BlockSpec(memory_space=pl.ANY)
    got = run(jax, pl, kernel, ((3, 4), F32), x(3, 4), in_specs=[any_space], out_specs=any_space, scratch_shapes=[pltpu.SemaphoreType.DMA])
    np.testing.assert_allclose(got, x(3, 4)[[1, 2, 0]])


def test_copies_that_add(jax, pl, pltpu):
    def kernel(a, o, sem):
        o[...] = jax.numpy.ones_like(o)
        copy = pltpu.make_async_copy(a.at[pl.ds(1, 2)], o.at[pl.ds(0, 2)], sem)
        copy.start(add=True)
        copy.wait()
        pltpu.sync_copy(a.at[pl.ds(0, 1)], o.at[pl.ds(2, 1)], add=True)

    any_space = pl.BlockSpec(memory_space=pl.ANY)
    got = run(jax, pl, kernel, ((3, 4), F32), x(3, 4), in_specs=[any_space], out_specs=any_space, scratch_shapes=[pltpu.SemaphoreType.DMA])
    np.testing.assert_allclose(got, 1 + x(3, 4)[[1, 2, 0]])


@pytest.mark.parametrize("axis, stride_axis", [(0, 1), (1, 0), (2, 0), (1, 2)])
@pytest.mark.parametrize("shift, stride", [(0, 1), (2, 3), (7, 0), (1, 40)])
def test_rolls_with_a_stride(jax, pl, pltpu, axis, stride_axis, shift, stride):
    a = x(3, 4, 5)
    rows = [np.roll(r, shift + i * stride, axis) for i, r in enumerate(np.split(a, a.shape[stride_axis], stride_axis))]
    roll = lambda a: pltpu.roll(a, shift, axis, stride=stride, stride_axis=stride_axis)
    np.testing.assert_array_equal(jax.jit(roll)(a), np.concatenate(rows, stride_axis))


def test_rolls_that_are_refused(jax, pltpu):
    a = jax.numpy.asarray(x(3, 4))
    for args, options, words in (
        ((-1, 0), {}, "shift must be non-negative."),
        ((1, 2), {}, "axis is out of range."),
        ((1, 0), {"stride": 1}, "stride and stride_axis must be both specified or not."),
        ((1, 0), {"stride": -1, "stride_axis": 1}, "stride must be non-negative."),
        ((1, 0), {"stride": 1, "stride_axis": 2}, "stride_axis is out of range"),
        ((1, 0), {"stride": 1, "stride_axis": 0}, "expected axis and stride_axis are different."),
    ):
        with pytest.raises(ValueError, match=words):
            pltpu.roll(a, *args, **options)


def _rows(jax, pl):
    def kernel(a, o):
        o[...] = jax.numpy.sin(a[...]) * (1 + pl.program_id(0))

    spec = pl.BlockSpec((2, 3), lambda i: (i, 0))
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4, 3), F32), grid=(2,), in_specs=[spec], out_specs=spec, interpret=True)


def test_transforms(jax, pl):
    f = _rows(jax, pl)
    plain = lambda a: jax.numpy.sin(a) * jax.numpy.array([1, 1, 2, 2], F32)[:, None]
    a = x(5, 4, 3)
    np.testing.assert_allclose(jax.vmap(f)(a), plain(a), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(f)(a[0]), plain(a[0]), rtol=1e-5)


@pytest.mark.ours
def test_derivatives(jax, pl):
    f = _rows(jax, pl)
    plain = lambda a: jax.numpy.sin(a) * jax.numpy.array([1, 1, 2, 2], F32)[:, None]
    a = x(5, 4, 3)
    for got, want in zip(jax.jvp(f, (a[0],), (a[1],)), jax.jvp(plain, (a[0],), (a[1],)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda a: (f(a) ** 2).sum())(a[0]), jax.grad(lambda a: (plain(a) ** 2).sum())(a[0]), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda a: f(a).sum()))(a), jax.vmap(jax.grad(lambda a: plain(a).sum()))(a), rtol=1e-5)


def test_flash_attention(jax, pl, pltpu):
    jnp = jax.numpy
    n, d, block = 16, 8, 4

    def kernel(q, k, v, o, m, s, acc):
        @pl.when(pl.program_id(1) == 0)
        def _():
            m[...] = jnp.full_like(m, -jnp.inf)
            s[...] = jnp.zeros_like(s)
            acc[...] = jnp.zeros_like(acc)

        scores = q[...] @ k[...].T
        top = jnp.maximum(m[...], scores.max(1, keepdims=True))
        p, scale = jnp.exp(scores - top), jnp.exp(m[...] - top)
        s[...] = s[...] * scale + p.sum(1, keepdims=True)
        acc[...] = acc[...] * scale + p @ v[...]
        m[...] = top

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o[...] = acc[...] / s[...]

    rows, columns = pl.BlockSpec((block, d), lambda i, j: (i, 0)), pl.BlockSpec((block, d), lambda i, j: (j, 0))
    scratch = [pltpu.VMEM((block, 1), F32), pltpu.VMEM((block, 1), F32), pltpu.VMEM((block, d), F32)]
    got = run(
        jax, pl, kernel, ((n, d), F32), x(n, d), x(n, d, seed=1), x(n, d, seed=2), grid=(n // block, n // block), in_specs=[rows, columns, columns],
        out_specs=rows, scratch_shapes=scratch,
    )  # fmt: skip
    want = jax.nn.softmax(x(n, d) @ x(n, d, seed=1).T) @ x(n, d, seed=2)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def _copy(a, o):
    o[...] = a[...]


WRONG = {
    "rank": (_copy, dict(in_specs=lambda pl: [pl.BlockSpec((2, 2), lambda i: i)]), "must have the same number of dimensions as the array shape"),
    "tree": (_copy, dict(in_specs=lambda pl: [pl.BlockSpec((2,), lambda i: i)] * 2), "Pytree for `in_specs` and `inputs` do not match"),
    "index map": (_copy, dict(in_specs=lambda pl: [pl.BlockSpec((2,), lambda i: (i, i))]), "must return 1 values to match block_shape"),
    "value": (_copy, dict(in_specs=lambda pl: [pl.BlockSpec((3,), lambda i: i)]), "Invalid shape for `swap`"),
    "result": (lambda a, o: a[...], {}, "should return None. It returns a PyTree"),
    "aliases": (_copy, dict(in_specs=lambda pl: [pl.BlockSpec((2,), lambda i: i)], input_output_aliases=lambda pl: {3: 0}), "outside the range"),
    "grid": (_copy, dict(grid=lambda pl: (2.5,)), "Grid must be a tuple of integers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_unsupported_arguments(jax, pl, name):
    kernel, options, says = WRONG[name]
    options = {"grid": (2,), "out_specs": pl.BlockSpec((2,), lambda i: (i,)), **{k: v(pl) for k, v in options.items()}}
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        run(jax, pl, kernel, ((4,), F32), x(4), **options)


def test_sizes(jax, pl):
    assert [pl.cdiv(7, 2), pl.next_power_of_2(5), pl.align_to(7, 4), pl.strides_from_shape((2, 3, 4))] == [4, 8, 8, (12, 4, 1)]
    assert int(pl.cdiv(jax.numpy.int32(7), 2)) == 4
    assert repr(pl.ds(1, 2)) == "Slice(start=1, size=2, stride=1)"


@pytest.mark.ours
def test_loads_and_stores_under_a_mask(jax, pl):
    plgpu, jnp = importlib.import_module(f"{pl.__name__}.triton"), jax.numpy

    def kernel(a, o, count):
        i = pl.program_id(0) * 4 + jnp.arange(4)
        value = plgpu.load(a.at[pl.ds(0, 4)], mask=i < 6, other=0.0)
        plgpu.store(o.at[pl.ds(0, 4)], value * 2, mask=i < 6)
        old = plgpu.atomic_add(count, (0,), 1)
        plgpu.atomic_max(count, (1,), old * 3)

    spec = pl.BlockSpec((4,), lambda i: (i,))
    whole = pl.BlockSpec((2,), lambda i: (0,))
    options = dict(grid=(2,), in_specs=[spec, whole], out_specs=[spec, whole], input_output_aliases={1: 1})
    got, n = run(jax, pl, lambda a, _, o, count: kernel(a, o, count), [((8,), F32), ((2,), np.int32)], x(8), np.zeros(2, np.int32), **options)
    np.testing.assert_allclose(got[:6], 2 * x(8)[:6])
    assert np.isnan(got[6:]).all()
    assert n.tolist() == [2, 3]


@pytest.mark.ours
def test_hardware_instructions_raise_with_a_reason(jax, pl, pltpu):
    assert isinstance(pltpu.emit_pipeline, type)
    with pytest.raises(NotImplementedError, match=r"emit_pipeline: it is a TPU instruction"):
        pltpu.emit_pipeline(lambda: None, grid=(1,))
    with pytest.raises(ValueError, match="no kernel runs here"):
        pl.program_id(0)
