"""What users of other libraries ask for, and no other file of tests shows."""

import numpy as np
import pytest

pytestmark = pytest.mark.ours


class Model:
    def forward(self, x):
        self.cache = x * 2
        return x


def test_a_leaked_value_is_told_by_function_line_and_transform(jax):
    model = Model()
    jax.jit(model.forward)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as e:
        model.cache + 1
    line = Model.forward.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in str(e.value) and "(Model.forward)" in str(e.value) and "belongs to jit" in str(e.value)


def test_a_wrong_leaf_is_named_by_its_path(jax):
    with pytest.raises(TypeError, match=r"at path p\['params'\]\['w'\]\[2\]"):
        jax.jit(lambda p: p)({"params": {"w": [1.0, 2.0, object()]}})


def halves(jax):
    """A loop that ends only for positive numbers, behind a branch."""

    def f(x):
        return jax.lax.cond(x > 0, lambda x: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x), lambda x: x, x)

    return f


def newton(jax):
    def root(a):
        return jax.lax.while_loop(lambda x: abs(x * x - a) > 1e-5, lambda x: (x + a / x) / 2, a)

    return root


@pytest.mark.parametrize("xs", [[1.0, -1.0, 0.0], [-1.0, -2.0], [1.0, 3.0]])
def test_a_loop_in_a_branch_runs_for_the_lanes_that_chose_it(jax, jnp, xs):
    f = halves(jax)
    want = [float(f(x)) for x in xs]
    slopes = [v / x if x else 1.0 for v, x in zip(want, xs, strict=True)]
    xs = jnp.asarray(xs)
    for g in (jax.vmap(f), jax.jit(jax.vmap(f))):
        assert g(xs).tolist() == want
    assert jax.vmap(jax.grad(f))(xs).tolist() == jax.grad(lambda x: jax.vmap(f)(x).sum())(xs).tolist() == slopes
    twice = jax.vmap(lambda a: jax.vmap(lambda b: f(a * b))(xs))(xs)
    assert twice.tolist() == [[float(f(a * b)) for b in xs] for a in xs]


def test_a_loop_in_a_branch_of_several(jax, jnp):
    up = lambda x: jax.lax.while_loop(lambda v: v < 8, lambda v: v * 2, x)
    down = lambda x: jax.lax.while_loop(lambda v: v > -8, lambda v: v * 2, x)
    f = lambda i, x, k: jax.lax.switch(i, [up, lambda x: x * k, down], x)
    index, x = jnp.array([0, 1, 2, -5, 9]), jnp.array([1.0, 5.0, -1.0, 3.0, -3.0])
    assert jax.vmap(f, (0, 0, None))(index, x, 2.0).tolist() == [8.0, 10.0, -8.0, 12.0, -12.0]
    lanes = jax.vmap(lambda i, x: jax.lax.cond(i > 0, lambda x: jax.lax.psum(x, "n") + up(x), lambda x: x, x), axis_name="n")
    assert lanes(jnp.array([1, 1]), jnp.array([4.0, 8.0])).tolist() == [20.0, 20.0]


def test_reverse_mode_through_while_loops(jax, jnp):
    root = newton(jax)
    np.testing.assert_allclose([jax.grad(root)(2.0), jax.hessian(root)(2.0)], [0.5 / 2**0.5, -0.25 / 2**1.5], rtol=2e-3)
    assert float(jax.grad(root)(1.0)) == 1.0  # no turn at all
    inside = lambda x: jax.lax.scan(lambda c, _: (root(c + 1.0), None), x, None, length=3)[0]
    difference = (inside(1.001) - inside(0.999)) / 0.002
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(inside)))(jnp.ones(2)), [difference] * 2, rtol=1e-2)


def test_a_signature_for_each_length_holds_no_memory(child):
    out = child("""
        import resource
        f = jax.jit(lambda x: (x * 2 + 1).sum())
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for n in range(1, 1500): f(np.ones(n, np.float32))
        before = peak()
        for n in range(1500, 4500): f(np.ones(n, np.float32))
        print(peak() - before)
        """)
    assert int(out) < 64 * 1024  # KiB


def test_what_a_closure_holds_is_not_copied(child):
    out = child("""
        import resource
        x = jnp.ones(1 << 26).block_until_ready()                       # 256 MiB
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = peak()
        print(float(jax.jit(lambda i: x[i])(3)), peak() - before)
        """)
    value, grown = out.split()
    assert value == "1.0" and int(grown) < 32 * 1024


def test_tokens(jax, jnp, lax):
    pairs = [(0, 1), (1, 2)]
    move = lambda x: lax.precv(lax.psend(x, "i", pairs), x, "i", pairs)
    assert jax.vmap(move, axis_name="i")(jnp.arange(1.0, 4.0)).tolist() == [0.0, 1.0, 2.0]
    carried = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (lax.after_all(c[0], lax.create_token(x)), c[1] + 1), (lax.create_token(), x))[1])
    assert float(carried(1.0)) == 4.0
    with pytest.raises(ValueError, match="it must come from a psend along the same"):
        jax.vmap(lambda x: lax.precv(lax.psend(x, "i", pairs), x, "i", [(0, 1)]), axis_name="i")(jnp.arange(3.0))
    with pytest.raises(ValueError, match="was to be received"):
        jax.vmap(lambda x: lax.precv(lax.psend(x, "i", pairs), (x, x), "i", pairs), axis_name="i")(jnp.arange(3.0))
    with pytest.raises(TypeError, match="after_all takes tokens"):
        lax.after_all(1.0)
