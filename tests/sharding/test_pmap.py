"""`pmap`: what its options do, and what it refuses. What runs between its devices is in `lax/test_collectives.py`."""

import textwrap

import pytest


@pytest.fixture(scope="module")
def on_four(forked_child):
    """Runs code where there are four devices, with `raises(type, call)`, which gives the message of what a call must raise."""

    def run(code):
        header = """
            def raises(kind, call):
                try:
                    call()
                except kind as e:
                    return str(e)
                raise SystemExit("nothing was raised")
            """
        return forked_child(textwrap.dedent(header) + textwrap.dedent(code), NUM_CPU_DEVICES="4")

    return run


def test_static_arguments_are_distinguished_by_type(on_four):
    on_four(
        """
        seen = []
        f = jax.pmap(lambda x, k: (seen.append(repr(k)), x * k)[1], static_broadcasted_argnums=1)
        for k in (1, True, 1.0, 1, True, 1.0):
            f(jnp.arange(4.0), k)
        assert seen == ["1", "True", "1.0"], seen
        g = jax.pmap(lambda k, x: x * k, static_broadcasted_argnums=-2, in_axes=(None, 0))
        assert g(3, jnp.arange(4.0)).tolist() == [0.0, 3.0, 6.0, 9.0]
        """
    )


def test_static_arguments_that_do_not_work(on_four):
    on_four(
        """
        x = jnp.arange(4.0)
        f = jax.pmap(lambda x, y: x, static_broadcasted_argnums=1)
        assert raises(ValueError, lambda: f(x, [1])) == (
            "Non-hashable static arguments are not supported, as this can lead to unexpected cache-misses."
            " Static argument (index 1) of type <class 'list'> for function <lambda> is non-hashable.")
        assert raises(ValueError, lambda: f(x, y=3)) == (
            "pmapped function has static_broadcasted_argnums=(1,) but was called with only 1 positional argument."
            " All static broadcasted arguments must be passed positionally.")
        assert "only 0 positional argument." in raises(ValueError, lambda: f(x=x, y=3))
        assert "only 1 positional argument." in raises(ValueError, lambda: jax.pmap(lambda x: x, static_broadcasted_argnums=-2)(x))
        both = lambda: jax.pmap(lambda x, y: x, static_broadcasted_argnums=1, donate_argnums=1)(x, 3)
        assert raises(ValueError, both) == "`static_argnums` [1] and `donate_argnums` [1] cannot intersect."
        """
    )


def test_devices_and_sizes(on_four):
    on_four(
        """
        x = jnp.arange(4.0)
        assert raises(ValueError, lambda: jax.pmap(lambda x: x, devices=[])) == "'devices' argument to pmap must be non-empty, or None."
        assert raises(ValueError, lambda: jax.pmap(lambda x: x, axis_size=3)(x)) == "Specified axis_size 3 doesn't match received axis_size 4."
        assert jax.pmap(lambda x: x, axis_size=4)(x).tolist() == x.tolist()
        """
    )


def test_donated_arguments_are_given_up(on_four):
    """Those whose buffers lie where they are needed are deleted; what had to be copied stays, as in JAX."""
    on_four(
        """
        spread = lambda n=0: jax.pmap(lambda x: x + n)(jnp.arange(4.0))
        f = jax.pmap(lambda x, y: (x + 1, y), donate_argnums=0)
        x, y = spread(), spread(1)
        a, b = f(x, y)
        assert (x.is_deleted(), y.is_deleted()) == (True, False)
        assert a.tolist() == [1.0, 2.0, 3.0, 4.0] and b.tolist() == y.tolist()
        assert "deleted" in raises(RuntimeError, lambda: x + 1) and "deleted" in raises(RuntimeError, lambda: f(x, y))
        whole = jnp.arange(4.0)
        f(whole, y)
        assert not whole.is_deleted() and whole.tolist() == [0.0, 1.0, 2.0, 3.0]
        shared = jnp.float32(1.0)
        jax.pmap(lambda x, y: x + y, in_axes=(0, None), donate_argnums=1)(spread(), shared)
        assert shared.is_deleted()
        # in place, again and again
        step = jax.pmap(lambda s: s * 2 + jax.lax.axis_index("i"), axis_name="i", donate_argnums=-1)
        s = spread()
        for _ in range(20):
            old, s = s, step(s)
            assert old.is_deleted()
        assert s.tolist() == [i * 2**20 + i * (2**20 - 1) for i in range(4)]
        # one array as two arguments is refused, as by `jit`; derivatives give up nothing
        both = jax.pmap(lambda x, y: x + y, donate_argnums=0)
        x = spread()
        assert "f(donate(a), a)" in raises(RuntimeError, lambda: both(x, x)) and not x.is_deleted()
        assert jax.grad(lambda x: f(x, x)[0].sum())(x).tolist() == [1.0] * 4 and not x.is_deleted()
        """
    )


def test_debug_nans_looks_at_every_device(on_four):
    on_four(
        """
        f = jax.pmap(lambda x: jnp.log(x) * 2, donate_argnums=0)
        x = jnp.array([1.0, 2.0, -1.0, 3.0])
        assert np.isnan(f(x)[2])
        with jax.debug_nans(True):
            assert f(jnp.abs(x)).shape == (4,)
            message = raises(FloatingPointError, lambda: f(x))
            assert "invalid value (nan) encountered in log" in message and "traced at" in message, message
            collective = jax.pmap(lambda x: jax.lax.psum(x, "i") / (x - x), axis_name="i")
            assert "encountered in div" in raises(FloatingPointError, lambda: collective(0 * x))
        """
    )


def test_ordered_effects_are_refused_on_several_devices(on_four):
    on_four(
        """
        f = jax.pmap(lambda x: (jax.debug.print("seen {}", x, ordered=True), x)[1])
        assert "ordered effects" in raises(ValueError, lambda: f(jnp.arange(4.0)))
        assert f(jnp.arange(1.0)).tolist() == [0.0]
        jax.pmap(lambda x: (jax.debug.print("any order", ordered=False), x)[1])(jnp.arange(4.0))
        jax.effects_barrier()
        """
    )


def test_pmap_is_a_jitted_shard_map(on_four):
    """It runs on the devices inside of `jit` too, is traced once, and results lie along its axis, wherever the arguments were."""
    on_four(
        """
        Mesh, NamedSharding, P = jax.sharding.Mesh, jax.sharding.NamedSharding, jax.P
        D, x, traces = np.array(jax.devices()), jnp.arange(8.0).reshape(4, 2), []
        f = jax.pmap(lambda v: (traces.append(0), jax.lax.psum(v, "i"))[1], axis_name="i")
        four = Mesh(D, ("i",))
        for y in (f(x), f(x + 1), jax.jit(f)(x), f.lower(x).compile()(x)):
            assert y.sharding == NamedSharding(four, P("i")) and len({s.device for s in y.addressable_shards}) == 4
        assert len(traces) == 1, traces
        assert "shard_map" in str(jax.make_jaxpr(f)(x)) and "check_vma=False" in str(jax.make_jaxpr(f)(x))
        g = jax.pmap(lambda v, w: v + w, in_axes=(-1, None), out_axes=-1)
        for place in (D[2], NamedSharding(Mesh(D[::-1], ("k",)), P(None, "k")), NamedSharding(Mesh(D[:2], ("k",)), P("k"))):
            y = g(jax.device_put(x.T, place), jax.device_put(jnp.ones(2), D[1]))
            assert y.tolist() == (x.T + 1).tolist() and y.sharding.spec == P(None, "_internal_pmap_axis_name"), y.sharding
            assert list(y.sharding.mesh.devices.flat) == list(D)
        # one device: there
        for run in (lambda f: f, jax.jit):
            y = run(jax.pmap(lambda v: v * 2, devices=[D[3]]))(x[:1])
            assert y.devices() == {D[3]} and y.sharding.spec == P("_internal_pmap_axis_name")
            y = run(jax.shard_map(lambda v: v * 2, mesh=Mesh(D[3:], ("i",)), in_specs=P("i"), out_specs=P("i")))(x)
            assert y.devices() == {D[3]} and y.sharding == NamedSharding(Mesh(D[3:], ("i",)), P("i"))
        # the first device's result, on all
        y = jax.pmap(lambda v: v + jax.lax.axis_index("i"), axis_name="i", out_axes=None)(x)
        assert y.tolist() == x[0].tolist() and y.sharding.is_fully_replicated and len(y.devices()) == 4
        # trees of axes; keywords
        out = jax.pmap(lambda t, *, k: {"s": t["a"] + k, "m": t["b"].sum()}, in_axes=({"a": 1, "b": 0},), out_axes={"s": 1, "m": 0})(
            {"a": x.T, "b": x}, k=jnp.ones(4))
        assert out["s"].shape == (2, 4) and out["m"].tolist() == [1.0, 5.0, 9.0, 13.0]
        """
    )


def test_lower(on_four):
    on_four(
        """
        f = jax.pmap(lambda x, k: jax.lax.psum(x, "i") * k, axis_name="i", static_broadcasted_argnums=1)
        lowered = f.lower(jax.ShapeDtypeStruct((4,), jnp.float32), 2)
        assert type(lowered).__name__ == "Lowered" and lowered.out_info.shape == (4,)
        assert lowered.compile()(jnp.arange(4.0)).tolist() == [12.0] * 4
        jitted = jax.jit(jax.pmap(lambda x: x + 1))
        assert jitted.lower(jnp.arange(4.0)).compile()(jnp.arange(4.0)).tolist() == [1.0, 2.0, 3.0, 4.0]
        """
    )


def test_loops_and_branches_with_collectives(on_four):
    """Iterations meet one by one, on devices as on lanes; the values are those of JAX 0.10.2."""
    on_four(
        """
        lax, x, w = jax.lax, jnp.arange(4.0), jnp.arange(16.0).reshape(4, 4)
        ring = [(i, (i + 1) % 4) for i in range(4)]
        cases = {
            "scan": (lambda x: lax.scan(lambda c, _: (c + lax.psum(x, "i"), lax.ppermute(c, "i", ring)), x, None, length=3), x,
                     ([18.0, 19.0, 20.0, 21.0], [[3.0, 9.0, 15.0], [0.0, 6.0, 12.0], [1.0, 7.0, 13.0], [2.0, 8.0, 14.0]])),
            "while": (lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (lax.pmean(c[0] * 2, "i"), c[1] + 1), (x, 0)), x, ([12.0] * 4, [3] * 4)),
            "a while whose end depends on all": (lambda x: lax.while_loop(lambda c: lax.pmax(c, "i") < 20, lambda c: c * 2 + lax.axis_index("i"), x), x,
                                                 [0.0, 7.0, 14.0, 21.0]),
            "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: lax.all_to_all(c, "i", 0, 0) + i, x), w, (np.arange(16.0).reshape(4, 4).T + 3).tolist()),
            "cond": (lambda x: lax.cond(lax.psum(x, "i") > 3, lambda v: lax.psum(v, "i"), lambda v: v, x), x, [6.0] * 4),
        }
        for name, (f, x, want) in cases.items():
            for run in (jax.pmap, jax.vmap, lambda f, **k: jax.jit(jax.pmap(f, **k))):
                got = jax.tree.map(lambda v: v.tolist(), run(f, axis_name="i")(x))
                assert got == want, (name, got)
        """
    )


def test_pmaps_within_each_other(on_four):
    on_four(
        """
        lax, x = jax.lax, jnp.arange(8.0).reshape(2, 2, 2)
        over = {
            "pmap of pmap": lambda f: jax.pmap(jax.pmap(f, axis_name="j"), axis_name="i"),
            "vmap of pmap": lambda f: jax.vmap(jax.pmap(f, axis_name="j"), axis_name="i"),
            "pmap of vmap": lambda f: jax.pmap(jax.vmap(f, axis_name="j"), axis_name="i"),
            "vmap of vmap": lambda f: jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i"),
            "jit of all": lambda f: jax.jit(jax.pmap(jax.jit(jax.vmap(f, axis_name="j")), axis_name="i")),
        }
        want = {
            "i": np.broadcast_to(np.asarray(x).sum(0), (2, 2, 2)),
            "j": np.broadcast_to(np.asarray(x).sum(1, keepdims=True), (2, 2, 2)),
            ("i", "j"): np.broadcast_to(np.asarray(x).sum((0, 1)), (2, 2, 2)),
        }
        for way, run in over.items():
            for names, sums in want.items():
                np.testing.assert_array_equal(run(lambda v: lax.psum(v, names))(x), sums, err_msg=way)
            np.testing.assert_array_equal(run(lambda v: lax.all_to_all(v, "i", 0, 0))(x), np.asarray(x).transpose(2, 1, 0), err_msg=way)
            np.testing.assert_array_equal(run(lambda v: lax.all_to_all(v, "j", 0, 0))(x), np.asarray(x).transpose(0, 2, 1), err_msg=way)
            flat = np.asarray(x).reshape(4, 2)
            np.testing.assert_array_equal(run(lambda v: lax.all_gather(v, ("i", "j")))(x), np.broadcast_to(flat, (2, 2, 4, 2)), err_msg=way)
            grads = jax.grad(lambda x: (run(lambda v: lax.psum(v * v, ("i", "j")))(x) * jnp.arange(8.0).reshape(2, 2, 2)).sum())(x)
            np.testing.assert_array_equal(grads, 2 * np.asarray(x) * np.arange(8.0).reshape(4, 2).sum(0), err_msg=way)
        """
    )


def test_in_axes_that_are_no_prefix_of_the_arguments(jax, jnp):
    """The message says where, what a prefix is of, and that keywords are mapped."""
    x = jnp.ones((1,))
    f = lambda axes: jax.pmap(lambda *args, **keywords: 0.0, in_axes=axes)
    cases = [
        (((0, 0, 0), 0), ((x, x), x), {}, "[0][0]"), ((0, ({"a": 0},)), (x, ({"a": x, "b": x},)), {}, "[0][1][0]"), (({"a": 0}, 0), ({"b": x}, x), {}, "[0][0]"),
        ((0, 0), (x,), {}, "[0]"), ((0,), (x, x), {}, "[0]"), ((0, 0), (), dict(y=x), "[0]"), (((0, 0), 0), (x, x), {}, "[0][0]"),
    ]  # fmt: skip
    for axes, args, keywords, place in cases:
        with pytest.raises(ValueError, match="pytree structure error") as e:
            f(axes)(*args, **keywords)
        text = str(e.value)
        assert f"pmap in_axes{place}\n" in text and "must be a tree prefix of that tuple. But it was not a prefix." in text
        assert ("each argument passed by keyword is mapped over its leading axis" in text) == bool(keywords)
