"""Mutable references: every program with them equals the same one in plain Python over numpy, whatever transforms it."""

import copy
import importlib
import pickle

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def ref(jax):
    return importlib.import_module(f"{jax.__name__}.ref")


@pytest.fixture
def r(jax, jnp):
    return jax.new_ref(jnp.zeros(3))


def test_reads_and_writes(jax, jnp, ref, r):
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((3,), np.float32, 1, 3, 3) and isinstance(r, jax.Ref)
    assert repr(r) == "Ref([0., 0., 0.], dtype=float32)" and str(r.aval) == "Ref{float32[3]}"
    r[0] = 1.0
    r[1:] = jnp.array([5.0, 6.0])
    before = r[...]
    r[...] += 1
    assert r[...].tolist() == [2.0, 6.0, 7.0] and before.tolist() == [1.0, 5.0, 6.0]
    assert float(r[-1]) == 7.0 and r[1:].tolist() == [6.0, 7.0] and r[jnp.array([0, 2])].tolist() == [2.0, 7.0]
    assert float(ref.swap(r, 0, 9.0)) == 2.0 and float(ref.get(r, 0)) == 9.0
    ref.addupdate(r, 0, 1.0)
    ref.set(r, slice(1, 3), jnp.zeros(2))
    assert ref.get(r).tolist() == [10.0, 0.0, 0.0]


def test_values_read_before_a_write_do_not_change(jax, jnp):
    x = jnp.arange(3.0)
    r = jax.new_ref(x)
    kept = r[...]
    for i in range(3):
        r[i] = -1.0
    assert x.tolist() == kept.tolist() == [0.0, 1.0, 2.0] and r[...].tolist() == [-1.0] * 3
    assert jax.freeze(r).tolist() == [-1.0] * 3


def test_in_jit(jax, jnp, r):
    @jax.jit
    def given(r, x):
        r[...] += x
        return r[0] * 2

    @jax.jit
    def closed(x):
        r[0] += x
        return x

    assert float(given(r, 2.0)) == 4.0 and float(given(r, 1.0)) == 6.0 and r[...].tolist() == [3.0] * 3
    for _ in range(3):
        closed(1.0)
    assert r[...].tolist() == [6.0, 3.0, 3.0]
    other = jax.new_ref(jnp.ones(3))
    assert float(given(other, 1.0)) == 4.0 and r[...].tolist() == [6.0, 3.0, 3.0]

    @jax.jit
    def outer(r, x):
        given(r, x)
        closed_too = jax.jit(lambda: r[1])
        return closed_too() + given(r, x)

    assert float(outer(other, 1.0)) == 3.0 + 8.0 and other[...].tolist() == [4.0] * 3


def test_donation_and_static_arguments(jax, jnp, r):
    import functools

    @functools.partial(jax.jit, static_argnums=(1,), static_argnames=("k",))
    def f(r, n, x, *, k):
        for _ in range(n):
            r[0] += x * k

    f(r, 3, 1.0, k=2)
    f(r, 1, 1.0, k=5)
    assert r[...].tolist() == [11.0, 0.0, 0.0]


def local(jax, jnp, lax):
    def f(x):
        q = jax.new_ref(jnp.zeros(3))
        q[0] = x

        def body(i, _):
            q[i] += x * i

        lax.fori_loop(0, 3, body, None)
        return (q[...] ** 2).sum()

    return f


def test_local_references_under_transforms(jax, jnp, lax):
    f, plain = local(jax, jnp, lax), lambda x: 6.0 * x**2
    assert float(f(2.0)) == float(jax.jit(f)(2.0)) == plain(2.0)
    xs = np.arange(3, dtype=np.float32)
    assert jax.vmap(f)(xs).tolist() == plain(xs).tolist()
    assert float(jax.grad(f)(2.0)) == 24.0 and float(jax.jit(jax.grad(f))(2.0)) == 24.0
    assert jax.vmap(jax.grad(f))(xs).tolist() == (12 * xs).tolist()


@pytest.mark.parametrize("wrap", [lambda jax, f: f, lambda jax, f: jax.jit(f)])
def test_in_loops_and_branches(jax, jnp, lax, r, wrap):
    def scanned(x):
        def step(c, i):
            r[i] = c * i
            return c + 1, r[0]

        return lax.scan(step, x, jnp.arange(3))

    carry, ys = wrap(jax, scanned)(1.0)
    assert float(carry) == 4.0 and ys.tolist() == [0.0] * 3 and r[...].tolist() == [0.0, 2.0, 6.0]

    def branches(x):
        def yes():
            r[0] = 100.0

        lax.cond(x > 0, yes, lambda: None)
        lax.switch(1, [lambda: None, lambda: r.addupdate(jnp.ones(3)), lambda: None])

    wrap(jax, branches)(1.0)
    wrap(jax, branches)(-1.0)
    assert r[...].tolist() == [102.0, 4.0, 8.0]

    def looped(n):
        def body(i):
            r[i] = r[i] * 2
            return i + 1

        return lax.while_loop(lambda i: (i < n) & (r[0] > 0), body, 0)

    assert int(wrap(jax, looped)(2)) == 2 and r[...].tolist() == [204.0, 8.0, 8.0]

    def counted(n):
        def body(i, x):
            def inner(j, x):
                r[j] += x
                return x

            return lax.fori_loop(0, 3, inner, x)

        return lax.fori_loop(0, n, body, 1.0)

    wrap(jax, counted)(2)
    assert r[...].tolist() == [206.0, 10.0, 10.0]


def test_vmap_and_grad_of_arguments(jax, jnp, lax, r):
    def f(r, x):
        r[...] += x
        return r[...] * 2

    assert jax.vmap(f)(r, np.arange(3, dtype=np.float32)).tolist() == [0.0, 2.0, 4.0] and r[...].tolist() == [0.0, 1.0, 2.0]

    def g(x, r):
        r[0] = lax.stop_gradient(x)
        return x * r[1]

    assert float(jax.grad(g)(3.0, r)) == 1.0 and r[...].tolist() == [3.0, 1.0, 2.0]
    assert float(jax.grad(lambda x: x * r[0])(5.0)) == 3.0


def test_random_programs(jax, jnp, lax):
    """Sequences of writes, eager and jitted, against numpy."""
    rng = np.random.default_rng(0)
    r, x = jax.new_ref(jnp.zeros((4, 3))), np.zeros((4, 3), np.float32)
    steps = {
        "set": lambda r, i, v: r.__setitem__(i, v),
        "add": lambda r, i, v: r.__setitem__(i, r[i] + v),
        "mul": lambda r, i, v: r.__setitem__(i, r[i] * v),
    }
    indices = [0, -1, slice(1, 3), (slice(None), 1), (2, slice(None, None, -1)), ..., (slice(None, None, 2), 0)]
    for k in range(40):
        step, i = steps[["set", "add", "mul"][rng.integers(3)]], indices[rng.integers(len(indices))]
        v = rng.standard_normal(x[i].shape).astype(np.float32)
        if k % 2:
            jax.jit(lambda v: step(r, i, v))(v)
        else:
            step(r, i, jnp.asarray(v))
        step(x, i, v)
        np.testing.assert_allclose(r[...], x, rtol=1e-5)


def test_refusals(jax, jnp, r):
    with pytest.raises(ValueError, match="Invalid shape for `swap`. Ref shape: .3,.. Expected shape: ... Value shape: .2,."):
        r[0] = jnp.ones(2)
    with pytest.raises(ValueError, match="Invalid dtype for `swap`. Ref dtype: float32. Value dtype: complex64"):
        r[0] = 1j
    with pytest.raises(ValueError, match="Out of bound indexer: idx=7, dim=3"):
        r[7]
    with pytest.raises(ValueError, match="mutable array references cannot be returned"):
        jax.jit(lambda r: r)(r)
    with pytest.raises(ValueError, match="only one reference to a mutable array may be passed as an argument to a function"):
        jax.jit(lambda a, b: a[0])(r, r)
    with pytest.raises(TypeError, match="Error interpreting argument to new_ref as a JAX value. The problematic value is of type <class 'list'>"):
        jax.new_ref([1, 2])
    with pytest.raises(TypeError):
        r + 1


def write(r, value):
    r[0] = value


def test_values_of_transforms_stay_inside(jax, jnp, r):
    with pytest.raises(Exception, match="performing a set/swap operation with vmapped value on an unbatched array reference of type Ref{float32\\[3\\]}"):
        jax.vmap(lambda x: write(r, x))(jnp.ones(3))
    with pytest.raises(Exception, match="performing a set/swap operation with a differentiated value on a non-differentiated array reference"):
        jax.grad(lambda x: (write(r, x), x**2)[1])(3.0)
    assert r[...].tolist() == [0.0] * 3
    jax.grad(lambda x: (write(r, jax.lax.stop_gradient(x)), x**2)[1])(3.0)
    assert r[...].tolist() == [3.0, 0.0, 0.0]


def test_the_end_of_a_reference(jax, jnp, r):
    jax.freeze(r)
    with pytest.raises(ValueError, match="was freed"):
        r[...]
    made = []
    jax.jit(lambda: made.append(jax.new_ref(1.0)))()
    with pytest.raises((ValueError, jax.errors.UnexpectedTracerError)):
        jax.jit(lambda: made[0][...])()
    with pytest.raises(BaseException, match="mutable reference"):
        made[0][...]


def test_writes_are_in_place(jax, jnp):
    r = jax.new_ref(jnp.zeros(1 << 16))
    r[0] = 1.0
    place = r._value.unsafe_buffer_pointer()
    for i in range(4):
        r[i] = 2.0
    jax.jit(lambda: write(r, 3.0))()
    assert r._value.unsafe_buffer_pointer() == place and r[:4].tolist() == [3.0, 2.0, 2.0, 2.0]


def test_in_checkpoints_and_programs_that_are_looked_at(jax, jnp, r):
    r[0] = 3.0

    def f(x):
        r[1] += x
        return x * r[0]

    assert float(jax.checkpoint(f)(2.0)) == 6.0 and float(r[1]) == 2.0
    assert float(jax.jit(jax.checkpoint(f))(2.0)) == 6.0 and float(r[1]) == 4.0
    assert float(jax.grad(jax.checkpoint(lambda x: x * x * r[0]))(2.0)) == 12.0
    assert len(jax.make_jaxpr(f)(1.0).eqns) > 0 and jax.eval_shape(f, 1.0).shape == () and float(r[1]) == 4.0


def test_strided_windows(jax, jnp, r):
    r[jax.ds(1, 2)] = jnp.ones(2)
    assert r[jax.ds(2)].tolist() == [0.0, 1.0] and r[...].tolist() == [0.0, 1.0, 1.0]
    x = jnp.arange(10)
    assert x[jax.ds(1, 3, 2)].tolist() == jax.jit(lambda i: x[jax.ds(i, 3, 2)])(1).tolist() == [1, 3, 5] and x[jax.ds(4, 0)].shape == (0,)


def test_copies(jax, r):
    r[0] = 3.0
    other = copy.deepcopy(r)
    other[1] = 1.0
    assert r[...].tolist() == [3.0, 0.0, 0.0] and other[...].tolist() == [3.0, 1.0, 0.0]
    assert pickle.loads(pickle.dumps(r))[...].tolist() == [3.0, 0.0, 0.0]
    r[r[...] > 2] = jax.numpy.zeros(1)
    assert r[...].tolist() == [0.0] * 3


DERIVATIVES_OF_PARTS = [
    (lambda jax: lambda x, y: x * y, (2.0, 3.0)),
    (lambda jax: lambda x, y: jax.numpy.sin(x * y) + x, (2.0, 3.0)),
    (lambda jax: lambda x, y, z: jax.numpy.sin(x) * jax.numpy.cos(y) * z, (2.0, 3.0, 4.0)),
]


def test_a_pullback_adds_its_gradients_to_references(jax, jnp):
    f = lambda x, y: x * y
    _, pull = jax.vjp(f, 2.0, 3.0)
    a, b = jax.new_ref(jnp.float32(10.0)), jax.new_ref(jnp.float32(100.0))
    out = pull.with_refs(a, b)(1.0)
    assert repr(out) == "(GradRef(), GradRef())" and (float(a[...]), float(b[...])) == (13, 102)
    out = pull.with_refs(a, 0)(2.0)
    assert repr(out[0]) == "GradRef()" and float(out[1]) == 4 and float(a[...]) == 19
    assert tuple(map(float, pull(1.0))) == (3, 2)

    _, pull = jax.vjp(lambda d, n: d["a"] * d["b"] * n, {"a": 2.0, "b": 3.0}, 2)
    refs = {"a": jax.new_ref(jnp.float32(0.0)), "b": jax.new_ref(jnp.float32(0.0))}
    count = jax.new_ref(jnp.int32(5))
    assert repr(pull.with_refs(refs, count)(1.0)) == "({'a': GradRef(), 'b': GradRef()}, GradRef())"
    assert (float(refs["a"][...]), float(refs["b"][...]), int(count[...])) == (6, 4, 5)

    def twice(x, y):
        _, pull = jax.vjp(f, x, y)
        r = jax.new_ref(jnp.zeros_like(x))
        pull.with_refs(r, 0)(1.0)
        pull.with_refs(r, 0)(2.0)
        return r[...]

    assert float(jax.jit(twice)(2.0, 3.0)) == float(twice(2.0, 3.0)) == 9
    _, pull = jax.vjp(f, 2.0, 3.0)
    want = jax.ad.DontWant()
    out = pull.with_refs(a, want)(1.0)
    assert out == (jax.ad.GradRef(), jax.ad.DidntWant()) and float(a[...]) == 22
    out = pull.with_refs(want, jax.ad.GradValue())(1.0)
    assert out[0] == jax.ad.DidntWant() and float(out[1]) == 2 and jax.tree.leaves(out) == [out[1]]
    assert jax.jit(pull.with_refs(want, want))(1.0) == (jax.ad.DidntWant(),) * 2

    _, pull = jax.vjp(lambda d, n: d["a"] * d["b"] * n, {"a": 2.0, "b": 3.0}, 2)
    for wrong in ((), (a,), (a, a), (None, a, a)):
        with pytest.raises(ValueError, match="with_refs takes a reference or a placeholder for each leaf"):
            pull.with_refs(*wrong)


def test_a_reference_is_given_once(jax, jnp):
    """Two arguments, or an argument and the closure, that are one reference are refused by name, under jit and vmap; two references of one value are not."""
    ref, other = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.ones(3))
    f = lambda x_ref, y_ref: x_ref[...] + y_ref[...]
    with pytest.raises(ValueError, match="appeared at both x_ref and y_ref"):
        jax.jit(f)(ref, ref)
    with pytest.raises(ValueError, match="only one reference to a mutable array may be passed as an argument"):
        jax.vmap(f)(ref, ref)
    with pytest.raises(ValueError, match="both closed over and passed as the argument y_ref"):
        jax.jit(lambda y_ref: ref[...] + y_ref[...])(ref)
    for transform in (jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))):
        assert transform(f)(ref, other).tolist() == [1.0] * 3


def test_aliases_are_refused_wherever_references_are_passed_on(jax, jnp, lax):
    """A reference that is given to a function and that it closes over, in loops and branches as under jit; one in reach that is another is not refused."""
    ref, other = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.ones(()))
    both = lambda y_ref, *_: ref[...] + y_ref[...]
    step = lambda y_ref, _: (ref[...] + y_ref[...], None)
    calls = [
        lambda r: jax.jit(both)(r), lambda r: jax.checkpoint(both)(r), lambda r: lax.cond(True, both, both, r), lambda r: lax.switch(1, [both, both], r),
        lambda r: lax.cond(True, lambda y_ref: y_ref[...], both, r), lambda r: jax.jit(lambda: lax.cond(True, both, both, r))(),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="both closed over and passed as the argument y_ref"):
            call(ref)
        call(other)
    with pytest.raises(ValueError, match="for scan .*both closed over and passed as the argument y_ref"):
        lax.scan(step, ref, None, length=1)
    with pytest.raises(ValueError, match="for while_body .*both closed over and passed as the argument y_ref"):
        lax.while_loop(lambda _: True, both, ref)


def test_where_a_returned_reference_is_from(jax, jnp):
    """The line that made it, or the argument that it was, and its place in the result."""
    made = lambda x: {"hi": jax.new_ref(x)}
    with pytest.raises(
        ValueError, match=r"type Ref{int32\[3\]} at output tree path result\['hi'\].*\n\n.*was created on line .*references/test_refs.py:\d+ \(<lambda>\)"
    ):
        jax.jit(made)(jnp.arange(3))
    with pytest.raises(ValueError, match=r"traced for jit returned a mutable array reference.*\n\n.*was created on line .*references/test_refs.py"):
        jax.jit(jax.new_ref)(jnp.arange(3))
    with pytest.raises(ValueError, match=r"result\[1\].*\n\n.*was passed in as the argument x_ref"):
        jax.jit(lambda x_ref: (0, x_ref))(jax.new_ref(1.0))


def test_references_in_parts_ahead_of_time(forked_child):
    """`lower` and `compile` know the layout of a reference's value, of a reference or its description."""
    forked_child(
        """
        mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
        P, n = jax.sharding.PartitionSpec, 8
        @jax.jit
        def f(r, by):
            r[...] += by
            r[0] += 1
            return r[1]
        for spec in (P("x"), P(("x", "y")), P()):
            placed = jax.sharding.NamedSharding(mesh, spec)
            r = jax.new_ref(jax.device_put(jnp.arange(8.0), placed))
            described = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=placed, is_ref=True)
            for k, argument in enumerate((r, described)):
                compiled = f.lower(argument, 2.0).compile()
                assert compiled(r, 2.0) == 3.0 + 2 * k, spec
            assert r[...].tolist() == [6.0, *range(5, 12)]
        """,
        NUM_CPU_DEVICES="4",
    )


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("read", [lambda r, x: r[...] + x, lambda r, x: r[1:] * r[0] + x, lambda r, x: x * r.shape[0]])
def test_stages_of_functions_that_only_read(jax, jnp, read, described):
    """A stage is made for the reference, not for the type of its value, whatever the function does with it; what is compiled takes the reference."""
    r = jax.new_ref(jnp.array([2.0, 3.0]))
    argument = jax.ShapeDtypeStruct((2,), jnp.float32, is_ref=True) if described else r
    compiled = jax.jit(read).lower(argument, 1.0).compile()
    by_trace = jax.jit(read).trace(argument, x=1.0).lower().compile()
    for value in ([2.0, 3.0], [5.0, 4.0]):
        r[...] = jnp.array(value)
        expected = read(jnp.array(value), 1.0)
        assert jnp.array_equal(compiled(r, 1.0), expected) and jnp.array_equal(by_trace(r, x=1.0), expected)
        assert jax.eval_shape(read, argument, 1.0).shape == jnp.shape(expected)


def test_a_reference_in_reach_beside_one_that_is_given(jax, jnp):
    """Jitted functions, nested too, write both; also when they are called again."""
    closed, given = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.zeros(()))

    @jax.jit
    def inner(ref, x):
        closed[...] += x
        ref[...] += 10 * x

    outer = jax.jit(lambda ref, x: inner(ref, x))
    for n in (1, 2):
        for f in (inner, outer):
            f(given, 1.0)
        assert (float(closed[...]), float(given[...])) == (2.0 * n, 20.0 * n)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_operands_of_branches_may_be_references(jax, jnp, jitted, index):
    def run(i, ref, x):
        out = jax.lax.cond(i == 0, lambda r, x: r["r"][0] + x, lambda r, x: r["r"][1] - x, {"r": ref}, x)

        def write(k):
            def branch(ref, x):
                ref[k] = x

            return branch

        jax.lax.switch(i, [write(0), write(1)], ref, x)
        return out

    ref = jax.new_ref(jnp.array([1.0, 2.0]))
    out = (jax.jit(run) if jitted else run)(jnp.int32(index), ref, 5.0)
    assert float(out) == (6.0, -3.0)[index]
    assert ref[...].tolist() == [[5.0, 2.0], [1.0, 5.0]][index]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_scan_over_references(jax, jnp, reverse, jitted):
    """A step has a reference to its slice; beside arrays, and with another reference in reach."""
    total = jax.new_ref(jnp.zeros(()))

    def run(ref, ys):
        def step(c, x):
            r, y = x
            old = r[...]
            r[...] = old + y * c
            total[...] += old
            return c + 1.0, old

        return jax.lax.scan(step, 1.0, (ref, ys), reverse=reverse)

    ref = jax.new_ref(jnp.arange(3.0))
    carry, olds = (jax.jit(run) if jitted else run)(ref, jnp.full(3, 10.0))
    assert float(carry) == 4.0 and olds.tolist() == [0.0, 1.0, 2.0] and float(total[...]) == 3.0
    assert ref[...].tolist() == ([30.0, 21.0, 12.0] if reverse else [10.0, 21.0, 32.0])


WRITES = {
    "none": lambda jnp, r: None,
    "set": lambda jnp, r: r.__setitem__(..., jnp.float32(3)),
    "set of a part": lambda jnp, r: r.__setitem__((), jnp.float32(3)),
    "number": lambda jnp, r: r.__setitem__(..., 2),
    "add": lambda jnp, r: r.__setitem__(..., r[...] + jnp.float32(1)),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("weak", [True, False])
def test_the_type_stays_weak_or_strong(jax, jnp, weak, name, staged):
    ref = jax.new_ref(1.0 if weak else jnp.float32(1))

    def read(r):
        WRITES[name](jnp, r)
        return r[...] + jnp.ones(2, "float16")

    want = np.float16 if weak else np.float32
    assert (jax.jit(read) if staged else read)(ref).dtype == want
    assert (ref[...] + jnp.ones(2, "float16")).dtype == want and jax.typeof(ref).weak_type == weak
    assert jax.jit(lambda x: read(jax.new_ref(x)))(1.0 if weak else jnp.float32(1)).dtype == want


def test_a_pullback_computes_requested_cotangents_only(jax):
    want = jax.ad.DontWant()
    for f, args in DERIVATIVES_OF_PARTS:
        _, pull = jax.vjp(f(jax), *args)
        whole = pull(1.0)
        for i in range(len(args)):
            marks = [want] * len(args)
            marks[i] = jax.ad.GradValue()
            one = jax.jit(pull.with_refs(*marks))
            assert float(one(1.0)[i]) == float(whole[i]) == float(pull.with_refs(*marks)(1.0)[i])
            # what is not wanted is not computed, and no zeros are made for it
            assert len(one.trace(1.0).jaxpr.eqns) < len(jax.jit(pull).trace(1.0).jaxpr.eqns)
        assert not jax.jit(pull.with_refs(*[want] * len(args))).trace(1.0).jaxpr.eqns


def test_a_pullback_of_a_function_that_reads_a_reference_argument(jax, jnp):
    """The derivative in what it contains has no place to go: the call raises, as long as there is such a derivative."""
    read = lambda ref, x: ref[...] * x
    for value in (2.0, np.float32(2), np.ones(3, np.float32)):
        out, pull = jax.vjp(read, jax.new_ref(value), 3.0)
        np.testing.assert_array_equal(out, 3 * np.asarray(value))
        with pytest.raises(ValueError, match=r"Expected cotangent type Ref{float32\[3?\]} but got float32"):
            pull(jnp.ones_like(out))
    assert jax.vjp(read, jax.new_ref(2), 3.0)[1](jnp.float32(1))[1] == 2
    assert jax.vjp(lambda ref, x: 2 * x, jax.new_ref(2.0), 3.0)[1](1.0)[1] == 2
    ref = jax.new_ref(2.0)
    assert jax.vjp(lambda x: read(ref, x), 3.0)[1](1.0) == (2,)
