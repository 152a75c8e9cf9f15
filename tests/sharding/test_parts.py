"""Arrays in parts over several devices: how they are made, moved, read and taken apart, in processes with as many CPU devices as the tests want."""

import pytest
from parts_prelude import PRELUDE

pytestmark = pytest.mark.ours


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""

    def run(code):
        import textwrap

        return forked_child(PRELUDE.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="8")

    return run


def test_every_sharding_to_every_other(on_devices):
    on_devices(
        """
        x = np.arange(12 * 6 * 2, dtype=np.float32).reshape(12, 6, 2)
        reversed_mesh = Mesh(np.array(devices[5::-1]).reshape(2, 3), ("x", "y"))
        places = [S(*s) for s in SPECS] + [S(*s, mesh=reversed_mesh) for s in SPECS[:5]] + [SingleDeviceSharding(devices[7]), devices[2]]
        for one, other in itertools.product(places, places):
            a = jax.device_put(x, one)
            b = jax.device_put(a, other)
            for y, place in ((a, one), (b, other)):
                assert y.committed and np.array_equal(np.asarray(y), x)
                place = SingleDeviceSharding(place) if isinstance(place, jax.Device) else place
                assert y.sharding == place and y.devices() == place.device_set
                index = place.devices_indices_map(x.shape)
                assert [s.device for s in y.addressable_shards] == list(index)
                seen = []
                for s in y.addressable_shards:
                    assert s.index == index[s.device] and s.data.shape == place.shard_shape(x.shape) and s.data.devices() == {s.device}
                    assert np.array_equal(np.asarray(s.data), x[s.index]) and s.replica_id == seen.count(s.index)
                    seen.append(s.index)
        """
    )


def test_dtypes_and_sizes(on_devices):
    on_devices(
        """
        for dtype in ("bool", "int8", "uint16", "bfloat16", "float16", "float32", "complex64"):
            x = (jnp.arange(48).reshape(6, 8) % 7).astype(dtype)
            for spec in [("x",), ("y", "x"), (), (None, "x")]:
                y = jax.device_put(x, S(*spec))
                assert y.dtype == x.dtype and np.array_equal(np.asarray(y), np.asarray(x)), (dtype, spec)
        keys = jax.random.split(jax.random.key(3), 6)
        placed = jax.device_put(keys, S(("x", "y")))
        assert [s.data.shape for s in placed.addressable_shards] == [(1,)] * 6
        assert np.array_equal(jax.random.key_data(placed), jax.random.key_data(keys))
        empty = jax.device_put(np.zeros((0, 4), np.float32), S("x", None))
        assert empty.shape == (0, 4) and np.asarray(empty).shape == (0, 4)
        scalar = jax.device_put(3.0, S())
        assert float(scalar) == 3.0 and scalar.is_fully_replicated and len(scalar.addressable_shards) == 6 and scalar.weak_type
        """
    )


def test_attributes_of_a_sharded_array(on_devices):
    on_devices(
        """
        given = S("x", "y")
        x = jax.device_put(np.arange(24.0, dtype=np.float32).reshape(4, 6), given)
        assert x.sharding is given and x.device is given and x.committed and not x.is_fully_replicated and x.is_fully_addressable
        assert jax.device_put(x, S()).is_fully_replicated and len(x.global_shards) == 6 and x.is_ready() and x.block_until_ready() is x
        assert x.addressable_data(4).tolist() == [[14.0, 15.0], [20.0, 21.0]] and x.on_device_size_in_bytes() == 96
        assert repr(x.addressable_shards[0]).startswith("Shard(device=CpuDevice(id=0), index=(slice(0, 2, None), slice(0, 2, None)), replica_id=0, data=[[0. 1.]")
        assert x.tolist() == np.asarray(x).tolist() and repr(x).startswith("Array([[ 0.,") and float(x[1, 2]) == 8.0
        refused(BufferError, "an array with a Sharding over 6 devices was provided", x.__dlpack__)
        refused(BufferError, "only defined for buffers with a single shard", lambda: memoryview(x))
        refused(Exception, "UnsafeBufferPointer() is supported only for unsharded arrays", x.unsafe_buffer_pointer)
        assert np.from_dlpack(x.addressable_data(1)).tolist() == x.addressable_data(1).tolist()
        for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
            assert y.tolist() == x.tolist()
        assert copy.copy(x).sharding == given and pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
        assert pickle.loads(pickle.dumps(given)) == given
        part, twin = x.addressable_data(0), copy.copy(x)
        x.delete()
        assert x.is_deleted() and x.sharding is given and not part.is_deleted() and part.tolist() == [[0.0, 1.0], [6.0, 7.0]] and twin.tolist()[0][0] == 0.0
        refused(RuntimeError, "Array has been deleted", lambda: np.asarray(x))
        """
    )


def test_made_of_parts(on_devices):
    on_devices(
        """
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        for spec in [s for s in SPECS if len(s) < 3]:
            if spec and spec[0] not in (None, "x"): continue  # 4 rows
            s, indices = S(*spec), []
            y = jax.make_array_from_callback(x.shape, s, lambda index: (indices.append(index), x[index])[1])
            assert y.sharding is s and np.array_equal(y, x) and len(indices) == (1 if s.is_fully_replicated else 6)
            parts = [jax.device_put(x[i], d) for d, i in s.devices_indices_map(x.shape).items()]
            z = jax.make_array_from_single_device_arrays(x.shape, s, parts[::-1])
            assert z.sharding is s and np.array_equal(z, x) and z.committed
            assert np.array_equal(jax.make_array_from_process_local_data(s, x), x)
        s = S("x", "y")
        refused(ValueError, "Expected 6 per-device arrays (this is how many devices are addressable by the sharding), but got 1",
                lambda: jax.make_array_from_single_device_arrays((4, 6), s, [jnp.ones((2, 2))]))
        refused(ValueError, "the input arrays must be from distinct devices, but got device IDs [0, 0, 0, 0, 0, 0]",
                lambda: jax.make_array_from_single_device_arrays((4, 6), s, [jnp.ones((2, 2))] * 6))
        refused(ValueError, "Sharding contains devices {0} that are not present in per-device arrays. Per-device arrays contain devices {7}",
                lambda: jax.make_array_from_single_device_arrays((4, 6), s, [jax.device_put(jnp.ones((2, 2)), d) for d in [*devices[1:6], devices[7]]]))
        refused(ValueError, "Expected shard shape (2, 2) doesn't match the single device array shape (3, 4). Shape of Array is float32[4,6] with sharding",
                lambda: jax.make_array_from_callback((4, 6), s, lambda i: jnp.ones((3, 4))))
        refused(ValueError, "If `dtype` is provided to `jax.make_array_from_callback`, it must match",
                lambda: jax.make_array_from_callback((4, 6), s, lambda i: x[i], dtype="int32"))
        refused(ValueError, "global_shape should be None or equal to", lambda: jax.make_array_from_process_local_data(s, x, (8, 6)))
        refused(TypeError, "must be a list or tuple", lambda: jax.make_array_from_single_device_arrays((4, 6), s, iter([])))
        refused(TypeError, "sharding should be an instance of `jax.sharding`", lambda: jax.make_array_from_callback((4, 6), "x", lambda i: x[i]))
        """
    )


def test_mismatched_arguments(on_devices):
    on_devices(
        """
        refused(IndivisibleError, "implies that array axis 0 is partitioned 2 times, but the dimension size is 7 (full shape: (7,), per-dimension tiling factors: [2]",
                lambda: jax.device_put(np.arange(7.0), S("x")))
        refused(ValueError, "One of device_put args is incompatible with its sharding annotation NamedSharding(", lambda: jax.device_put(np.arange(7.0), S("x", "y")))
        refused(ValueError, "only valid for values of rank at least 1, but was applied to a value of rank 0. For scalars the PartitionSpec should be P()",
                lambda: jax.device_put(1.0, S("x")))
        refused(ValueError, "Resource axis: z of P('z',) is not found in mesh: ('x', 'y').", lambda: S("z"))
        refused(DuplicateSpecError, "has duplicate entries for `x`", lambda: S("x", "x"))
        refused(IndivisibleError, "is partitioned 3 times", lambda: jax.device_put(jnp.ones((4, 4)), S(None, "y")))
        refused(TypeError, "is not a valid JAX type", lambda: jax.device_put("a", S()))
        """
    )


def test_computations_have_the_values_of_the_whole(on_devices):
    on_devices(
        """
        x = np.arange(36, dtype=np.float32).reshape(6, 6)
        for spec in [s for s in SPECS if len(s) < 3]:
            y = jax.device_put(x, S(*spec))
            for f in (lambda y: y + 1, lambda y: y.T, lambda y: y.sum(0), lambda y: y @ y, lambda y: y[1], lambda y: y[::2, 1:], jnp.cumsum, lambda y: jnp.sort(y, 0)):
                assert np.array_equal(f(y), f(jnp.asarray(x))) and np.array_equal(jax.jit(f)(y), f(jnp.asarray(x)))
            assert np.array_equal(jax.grad(lambda y: (y * y).sum())(y), 2 * x)
        with jax.set_mesh(mesh):
            assert jax.device_put(x, P("x")).sharding == S("x") and jax.device_put(x, P(None, "y")).sharding == S(None, "y")
        """
    )


def test_pmap_gives_parts(on_devices):
    on_devices(
        """
        y = jax.pmap(lambda x: x * 2)(np.arange(8.0, dtype=np.float32))
        assert repr(y.sharding) == (
            "NamedSharding(mesh=Mesh('_internal_pmap_axis_name': 8, axis_types=(Auto,)), spec=P('_internal_pmap_axis_name',), memory_kind=device)")
        assert [s.data.shape for s in y.addressable_shards] == [(1,)] * 8 and y.tolist() == list(range(0, 16, 2))
        assert jax.pmap(lambda x: x + 1)(jax.device_put(y, devices[3])).tolist() == [i + 1 for i in range(0, 16, 2)]
        replicated = jax.pmap(lambda x: x + 1)(jax.device_put(np.arange(6.0, dtype=np.float32), S()))
        assert replicated.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        """
    )


def test_a_constraint_that_does_not_divide_a_dimension_leaves_it_whole(on_devices):
    """The program runs on the mesh all the same, as in JAX; other dimensions are cut."""
    on_devices(
        """
        mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        lay = lambda *spec: lambda v: jax.lax.with_sharding_constraint(v, jax.sharding.NamedSharding(mesh, jax.P(*spec)))
        x = np.arange(80.0, dtype=np.float32).reshape(10, 8)
        for spec, found in ((("x",), ()), ((None, "x"), (None, "x")), (("x", None), ())):
            for run in (jax.jit(lay(*spec)), jax.jit(lambda v: jnp.sin(lay(*spec)(v) * 0) + v), jax.jit(lambda v: jax.vmap(lay(*spec))(v[None])[0])):
                y = run(x)
                assert y.sharding.spec == jax.P(*found) and len(y.devices()) == 8, (spec, y.sharding)
                assert y.tolist() == x.tolist()
        """
    )
