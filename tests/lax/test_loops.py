"""Control flow: what loops and branches take, what they give under every transform, and what they say of what does not fit."""

import numpy as np
import pytest


def test_scan_takes_any_unroll(lax, jnp):
    run = lambda n, **k: lax.scan(lambda c, x: (c + x, c * x), 1.0, jnp.arange(float(n)), **k)
    for n in (0, 1, 5):
        want = run(n)
        for unroll in (0, 1, 2, 5, 7, True, False):
            got = run(n, unroll=unroll)
            assert float(got[0]) == float(want[0]) and got[1].tolist() == want[1].tolist()
    with pytest.raises(ValueError, match="`unroll` must be a `bool` or a non-negative `int`."):
        run(3, unroll=-1)
    with pytest.raises(TypeError):
        run(3, unroll=1.5)


@pytest.mark.parametrize("unroll", [None, 1, 2, True])
def test_fori_loop_counts_in_the_default_dtype_between_known_bounds(jax, lax, jnp, unroll):
    for lower, upper in ((0, np.int16(10)), (np.int8(0), 10), (0, 10), (jnp.asarray(0), np.int16(10)), (jnp.int16(0), np.int16(10))):
        seen = []
        assert float(lax.fori_loop(lower, upper, lambda i, c, seen=seen: (seen.append(i.dtype), c + i)[1], np.float32(1), unroll=unroll)) == 46
        assert set(seen) == {np.dtype(np.int32)}
    for bounds in ((np.int8(0), np.int16(3)), (0.0, 3), (False, 3)):
        with pytest.raises(TypeError, match="lower and upper arguments to fori_loop must have equal types, got"):
            lax.fori_loop(*bounds, lambda i, c: c, 0, unroll=unroll)


def test_fori_loop_with_one_traced_bound(jax, lax):
    assert float(jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(np.int16(4))) == 6
    assert float(jax.jit(lambda n: lax.fori_loop(n, 10, lambda i, c: c + i, 0))(np.int8(8))) == 17
    with pytest.raises(TypeError, match="got int8 and int32"):
        jax.jit(lambda n: lax.fori_loop(np.int8(4), n, lambda i, c: c, 0))(np.int32(10))


@pytest.mark.parametrize("init, addend, dtype", [(0, 1.5, "float32"), (3, -0.5, "float32"), (1, 1j, "complex64"), (2.0, 1j, "complex64")])
def test_a_first_carry_of_a_number_that_widens_is_strongly_typed(jax, lax, jnp, init, addend, dtype):
    """So a later product with a narrow dtype widens: of every loop, jitted and mapped too."""
    loops = (
        lambda: lax.scan(lambda c, _: (c + addend, None), init, None, length=2)[0],
        lambda: lax.fori_loop(0, 2, lambda i, c: c + addend, init),
        lambda: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + addend), (0, init))[1],
    )
    for loop in loops:
        for run in (loop, jax.jit(loop), lambda loop=loop: jax.vmap(lambda _: loop())(jnp.arange(2))[1]):
            out = run()
            assert (out.dtype, out.weak_type) == (dtype, False) and out == init + 2 * addend
    kept = lax.scan(lambda c, _: (c + 1, None), 0, None, length=2)[0]
    assert kept.weak_type


@pytest.mark.parametrize("bounds", [lambda n: (0, n), lambda n: (n, 3)])
def test_the_count_of_bounds_that_are_numbers_does_not_widen_a_carry(jax, lax, jnp, bounds):
    """One bound traced, the other a number: the count is weakly typed as the lower bound is."""
    n = 3 if bounds(1) == (0, 1) else 0
    for dtype in ("int8", "uint8", "bfloat16"):
        out = jax.jit(lambda n, dtype=dtype: lax.fori_loop(*bounds(n), lambda i, c: c + i, jnp.asarray(1, dtype)))(n)
        assert out.dtype == dtype and out == 4


KNOWN = {
    "numbers": lambda jnp, d: (0, 3),
    "an array": lambda jnp, d: (0, jnp.int32(3)),
    "a weak array": lambda jnp, d: (jnp.array(0), 3),
    "of numpy": lambda jnp, d: (np.int32(0), np.int32(3)),
    "arrays of numpy": lambda jnp, d: (np.array(0), np.array(3)),
    "narrow": lambda jnp, d: (np.dtype(d).type(0), np.dtype(d).type(3)),
    "narrow arrays": lambda jnp, d: (jnp.asarray(0, d), jnp.asarray(3, d)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_count_of_known_bounds_is_weakly_typed(jax, lax, jnp, name):
    for dtype in ("int8", "int16", "uint8", "uint32"):
        lower, upper = KNOWN[name](jnp, dtype)
        for options in ({}, {"unroll": 2}, {"unroll": True}):
            counts = []
            body = lambda i, c, counts=counts: counts.append(jax.typeof(i)) or c + i
            run = lambda carry, lower=lower, upper=upper, options=options, body=body: lax.fori_loop(lower, upper, body, carry, **options)
            assert run(1) == 4 and run(1).weak_type
            for narrow in ("int8", "uint8", "bfloat16"):
                out = run(jnp.asarray(1, narrow))
                assert (out.dtype, out) == (narrow, 4)
            assert {(t.dtype.name, t.weak_type) for t in counts} == {("int32", True)}


def test_a_carried_value_passed_through_a_batched_while_loop(jax, lax, jnp):
    def run(n, x, w):
        return lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] @ v[2], v[2]), (0, x, w))

    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 3)), jnp.float32)
    one = [run(3, v, v) for v in x]
    for in_axes, n in (((None, 0, 0), 3), ((0, 0, 0), jnp.array([3, 3]))):
        count, power, kept = jax.vmap(run, in_axes)(n, x, x)
        assert count.tolist() == [3, 3] and kept.tolist() == x.tolist()
        np.testing.assert_allclose(power, [p for _, p, _ in one], rtol=1e-5)
    # where the test reads what the body hands through, it stays in the carry
    grow = lambda x, limit: lax.while_loop(lambda v: v[0] < v[1], lambda v: (v[0] * 2, v[1]), (x, limit))
    assert jax.vmap(grow)(jnp.array([1.0, 3.0]), jnp.array([4.0, 20.0]))[0].tolist() == [4, 24]
    assert jax.jit(grow)(1.0, 10.0)[0] == 16


class TestWithoutJit:
    """Under `disable_jit` loops are Python's own."""

    def test_given_arrays_are_not_written_to(self, jax, lax):
        def add_in_place(v):
            x, y = v
            x += 1
            return x, y + x

        v = np.array(1.0)
        with jax.disable_jit():
            assert float(lax.while_loop(lambda c: c[0] < 10, add_in_place, (v, v))[1]) == 55
            assert float(lax.fori_loop(0, 9, lambda i, c: add_in_place(c), (v, v))[1]) == 55
            assert float(lax.scan(lambda c, _: (add_in_place(c), None), (v, v), None, length=9)[0][1]) == 55
        assert v == 1

    def test_loops_over_tracers(self, jax, lax, jnp):
        x = jnp.array([3.0, 4.0])
        programs = {
            "while": lambda y: lax.while_loop(lambda x: x < 10.0, lambda x: x + 1.0, y),
            "while in a carry": lambda y: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * y, c[1] + 1), (y, 0))[0],
            "fori": lambda y: lax.fori_loop(0, 3, lambda i, x: x + y, y),
            "fori to a traced bound": lambda y: lax.fori_loop(0, y.astype(int), lambda i, x: x + y, y),
            "nested": lambda y: lax.fori_loop(0, 2, lambda i, x: lax.while_loop(lambda z: z < 20.0 * y, lambda z: z * 2.0, x), y),
            "scan": lambda y: lax.scan(lambda c, x: (c + x, c), y, x)[0],
            "cond": lambda y: lax.cond(y > 3, lambda z: z + 1, lambda z: z - 1, y),
            "switch": lambda y: lax.switch(y.astype(int) - 3, [lambda z: z + 1, lambda z: z * 2], y),
        }
        for name, f in programs.items():
            want = [float(f(v)) for v in x]
            with jax.disable_jit():
                assert jax.vmap(f)(x).tolist() == want, name
                assert [float(f(v)) for v in x] == want, name
        with jax.disable_jit():
            assert float(jax.grad(programs["while in a carry"])(3.0)) == 4 * 3**3


# ---------------------------------------------------------------- solvers given by the user


def forward(jnp, a, b):
    """Solves a lower triangular system."""
    x = [None] * b.shape[0]
    for i in range(b.shape[0]):
        x[i] = (b[i] - sum(a[i, k] * x[k] for k in range(i))) / a[i, i]
    return jnp.stack(x)


def backward(jnp, a, b):
    """Solves an upper triangular system."""
    x = [None] * b.shape[0]
    for i in reversed(range(b.shape[0])):
        x[i] = (b[i] - sum(a[i, k] * x[k] for k in range(i + 1, b.shape[0]))) / a[i, i]
    return jnp.stack(x)


@pytest.fixture(scope="module")
def solve(jax, jnp, lax):
    """Solves with the lower triangle of a matrix, by substitution that knows the matrix from outside."""

    def solve(a, b):
        low = jnp.tril(a)
        return lax.custom_linear_solve(lambda x: low @ x, b, lambda mv, b: forward(jnp, low, b), lambda vm, b: backward(jnp, low.T, b))

    return solve


@pytest.fixture(scope="module")
def system():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((3, 3)) + 3 * np.eye(3)).astype(np.float32), rng.standard_normal(3).astype(np.float32)


def test_custom_linear_solve_gives_the_solution(jax, solve, system):
    a, b = system
    want = np.linalg.solve(np.tril(a), b)
    for f in (solve, jax.jit(solve)):
        np.testing.assert_allclose(f(a, b), want, rtol=1e-5)


def test_custom_linear_solve_is_differentiated_as_a_solve(jax, jnp, solve, system):
    a, b = system
    plain = lambda a, b: forward(jnp, jnp.tril(a), b)
    da, db = np.sin(a), np.cos(b)
    np.testing.assert_allclose(jax.jvp(solve, (a, b), (da, db))[1], jax.jvp(plain, (a, b), (da, db))[1], rtol=1e-4, atol=1e-5)
    for f in (
        jax.grad,
        lambda f, n: jax.jit(jax.grad(f, n)),
        lambda f, n: jax.grad(jax.jit(f), n),
        lambda f, n: jax.jacrev(f, n),
        lambda f, n: jax.jacfwd(f, n),
    ):
        for n in (0, 1):
            loss = lambda g: lambda a, b: (g(a, b) ** 2).sum()
            np.testing.assert_allclose(f(loss(solve), n)(a, b), jax.grad(loss(plain), n)(a, b), rtol=1e-3, atol=1e-4)
    hessian = lambda g: jax.hessian(lambda b: (g(a, b) ** 3).sum())(b)
    np.testing.assert_allclose(hessian(solve), hessian(plain), rtol=1e-3, atol=1e-4)
    twice = lambda g: jax.grad(lambda a: (jax.grad(lambda a: (g(a, b) ** 2).sum())(a) ** 2).sum())(a)
    np.testing.assert_allclose(twice(solve), twice(plain), rtol=1e-3, atol=1e-3)


def test_custom_linear_solve_is_batched_and_transposed(jax, jnp, solve, system):
    a, b = system
    bs, as_ = np.stack([b, 2 * b, -b]), np.stack([a, a + np.eye(3, dtype=np.float32), 2 * a])
    loop = lambda a, b: [np.asarray(solve(x, y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(jax.vmap(solve, (None, 0))(a, bs), loop([a] * 3, bs), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(solve, (0, None))(as_, b), loop(as_, [b] * 3), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(solve)(as_, bs), loop(as_, bs), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(solve, (0, 1), 1))(as_, bs.T).T, loop(as_, bs), rtol=1e-5)
    grads = jax.vmap(jax.grad(lambda a, b: solve(a, b).sum()))(as_, bs)
    np.testing.assert_allclose(grads, [jax.grad(lambda a, b: solve(a, b).sum())(x, y) for x, y in zip(as_, bs, strict=True)], rtol=1e-4, atol=1e-5)
    (ct,) = jax.linear_transpose(lambda b: solve(a, b), b)(b)
    np.testing.assert_allclose(ct, np.linalg.solve(np.tril(a).T, b), rtol=1e-4)
    (again,) = jax.linear_transpose(lambda c: jax.linear_transpose(lambda b: solve(a, b), b)(c)[0], b)(b)
    np.testing.assert_allclose(again, np.linalg.solve(np.tril(a), b), rtol=1e-4)


def test_custom_linear_solve_of_trees_symmetric_and_with_more_results(jax, jnp, lax):
    def solve(scale, b):
        matvec = lambda x: {"u": scale * x["u"], "v": x["v"] * 4.0}
        by = lambda mv, b: ({"u": b["u"] / scale, "v": b["v"] / 4.0}, {"steps": jnp.int32(7), "norm": jnp.sum(b["u"])})
        return lax.custom_linear_solve(matvec, b, by, symmetric=True, has_aux=True)

    b = {"u": jnp.arange(3.0), "v": jnp.float32(8.0)}
    for f in (solve, jax.jit(solve)):
        x, aux = f(2.0, b)
        assert x["u"].tolist() == [0, 0.5, 1] and x["v"] == 2 and aux["steps"] == 7 and aux["norm"] == 3
    g = jax.grad(lambda s, b: solve(s, b)[0]["u"].sum() + solve(s, b)[0]["v"] + solve(s, b)[1]["norm"], (0, 1))(2.0, b)
    assert float(g[0]) == -0.75 and g[1]["u"].tolist() == [0.5] * 3 and g[1]["v"] == 0.25  # what comes behind x has no derivative
    assert jax.vmap(lambda s: solve(s, b)[0]["u"])(jnp.array([1.0, 2.0])).tolist() == [[0, 1, 2], [0, 0.5, 1]]


def test_custom_linear_solve_names_the_missing_argument(jax, jnp, lax):
    b = jnp.ones(2)
    halve = lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda mv, b: b / 2)
    assert float(jax.jvp(halve, (b,), (b,))[1].sum()) == 1
    with pytest.raises(TypeError, match="transpose_solve required for backwards mode automatic differentiation of custom_linear_solve"):
        jax.grad(lambda b: halve(b).sum())(b)
    solve = lax.custom_linear_solve
    with pytest.raises(TypeError, match=r"matvec\(\) output pytree structure must match b, got PyTreeDef\(\(\*,\)\) and PyTreeDef\(\*\)."):
        solve(lambda x: (x,), b, lambda mv, b: b)
    with pytest.raises(ValueError, match=r"matvec\(\) output shapes must match b, got \[\(2,\), \(2,\)\] and \[\(2,\)\]"):
        solve(lambda x: (x, x), b, lambda mv, b: b)
    with pytest.raises(TypeError, match=r"solve\(\) output pytree structure must match b"):
        solve(lambda x: x, b, lambda mv, b: (b,))
    with pytest.raises(ValueError, match=r"solve\(\) output shapes must match b, got \[\(1,\)\] and \[\(2,\)\]"):
        solve(lambda x: x, b, lambda mv, b: b[:1])
    with pytest.raises(ValueError, match=r"transpose_solve\(\) output shapes must match b"):
        solve(lambda x: x, b, lambda mv, b: b, lambda mv, b: b[:1])
    with pytest.raises(ValueError):
        solve(lambda x: x, b, lambda mv, b: b, has_aux=True)


def test_custom_root_is_differentiated_by_the_implicit_function_theorem(jax, jnp, lax):
    def newton(f, x):
        return lax.fori_loop(0, 12, lambda i, x: x - f(x) / jax.grad(f)(x), x)

    def scalar_solve(g, y):
        return y / g(jnp.ones_like(y))

    def cube_root(a):
        return lax.custom_root(lambda x: x**3 - a, 1.5, newton, scalar_solve)

    for f in (cube_root, jax.jit(cube_root)):
        np.testing.assert_allclose(f(8.0), 2, rtol=1e-6)
        np.testing.assert_allclose(jax.grad(f)(8.0), 1 / 12, rtol=1e-5)
        np.testing.assert_allclose(jax.jvp(f, (8.0,), (2.0,))[1], 1 / 6, rtol=1e-5)
        np.testing.assert_allclose(jax.grad(jax.grad(f))(8.0), -2 / 9 * 8 ** (-5 / 3), rtol=1e-4)
        np.testing.assert_allclose(jax.vmap(f)(jnp.array([1.0, 8.0, 27.0])), [1, 2, 3], rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.array([1.0, 8.0])), [1 / 3, 1 / 12], rtol=1e-5)


def test_custom_root_of_vectors_by_a_linear_solve_within(jax, jnp, lax):
    def root(w, b):
        f = lambda x: jnp.tanh(x) + w * x - b
        newton = lambda f, x: lax.fori_loop(0, 20, lambda i, x: x - f(x) / jnp.diag(jax.jacobian(f)(x)), x)
        diagonal = lambda mv: mv(jnp.ones_like(b))
        tangent = lambda mv, y: lax.custom_linear_solve(mv, y, lambda mv, y: y / diagonal(mv), symmetric=True)
        return lax.custom_root(f, jnp.zeros_like(b), newton, tangent)

    w, b = 2.0, jnp.array([0.5, -1.0, 2.0])
    x = np.asarray(root(w, b))
    np.testing.assert_allclose(np.tanh(x) + w * x, b, rtol=1e-5)
    slope = 1 / (1 - np.tanh(x) ** 2 + w)
    gw, gb = jax.grad(lambda w, b: root(w, b).sum(), (0, 1))(w, b)
    np.testing.assert_allclose(gb, slope, rtol=1e-4)
    np.testing.assert_allclose(gw, -(slope * x).sum(), rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda b: root(w, b).sum()))(jnp.stack([b, b])), [slope, slope], rtol=1e-4)


def test_custom_root_whose_solvers_close_over_perturbed_values(jax, jnp, lax):
    # no solver uses the function that it is given
    by_solve = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / g(1.0))
    by_both = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / (2 * jnp.sqrt(a)))
    for f in (by_solve, by_both):
        assert jax.grad(f)(4.0) == jax.jit(jax.grad(f))(4.0) == jax.jvp(f, (4.0,), (1.0,))[1] == 0.25
        assert jax.grad(lambda b: jax.jit(f)(b * b))(2.0) == 1
        np.testing.assert_allclose(jax.grad(jax.grad(f))(4.0), -1 / 32, rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.array([4.0, 9.0])), [1 / 4, 1 / 6], rtol=1e-6)


def test_custom_root_with_more_results(jax, jnp, lax):
    f = lambda a: lax.custom_root(
        lambda x: x * x - a, 1.0, lambda f, x: (jnp.sqrt(f(0.0) * -1), {"steps": jnp.int32(3)}), lambda g, y: y / g(1.0), has_aux=True
    )
    (root, aux), slope = f(4.0), jax.grad(lambda a: f(a)[0])(4.0)
    assert root == 2 and aux["steps"] == 3 and slope == 0.25


def test_custom_root_names_the_mismatch(jax, jnp, lax):
    identity = lambda x: x
    keep, root = lambda f, x: x, lax.custom_root
    with pytest.raises(TypeError, match=r"f\(\) output pytree structure must match initial_guess"):
        root(lambda x: (x, x), 1.0, keep, keep)
    with pytest.raises(TypeError, match=r"solve\(\) output pytree structure must match initial_guess"):
        root(identity, 1.0, lambda f, x: (x,), keep)
    with pytest.raises(ValueError, match=r"solve\(\) produced a pytree with structure PyTreeDef\(\*\), but a pytree tuple with auxiliary output was expected"):
        root(identity, 1.0, keep, keep, has_aux=True)
    with pytest.raises(TypeError, match=r"tangent_solve\(\) output pytree structure must match x"):
        jax.grad(lambda a: root(lambda x: x - a, 1.0, keep, lambda g, y: (y,)))(1.0)
    with pytest.raises(TypeError, match="Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes"):
        jax.grad(lambda a: root(lambda x: x - a, 1.0, keep, lambda g, y: jnp.ones(3)))(1.0)


# ---------------------------------------------------------------- programs


def test_branches_share_their_captures(jax, lax, jnp):
    def f(p, a, b):
        return lax.cond(p, lambda x: x * a + b, lambda x: x - a, b)

    assert str(jax.make_jaxpr(f)(True, 1.0, 2.0)).split("] ")[-1].split("\n")[0] == "d b c c"
    k = jnp.arange(3.0)
    program = jax.make_jaxpr(lambda x: (lax.cond(x > 0, lambda: k, lambda: k * 2), k))(1.0)
    (const,) = program.consts
    assert const.tolist() == [0, 1, 2]
    assert float(f(True, 2.0, 3.0)) == 9 and float(jax.grad(f, 1)(True, 2.0, 3.0)) == 3 and float(jax.grad(f, 2)(False, 2.0, 3.0)) == 1


def test_scan_returns_a_list_where_its_step_does(lax):
    assert type(lax.scan(lambda c, x: [c, x], 1.0, None, length=2)) is list and type(lax.scan(lambda c, x: (c, x), 1.0, None, length=2)) is tuple


# ---------------------------------------------------------------- words


class Node:
    def __init__(self, *children, meta=None):
        self.children, self.meta = children, meta


@pytest.fixture(scope="module", autouse=True)
def _registered(jax):
    jax.tree_util.register_pytree_node(Node, lambda n: (n.children, n.meta), lambda meta, children: Node(*children, meta=meta))


BRANCHES = {
    "number of children": (
        lambda x: Node(x, x),
        lambda x: Node(x),
        "Node'> with 2 children but false_fun output is a <class",
        "with 1 child, so the numbers of children do not match, with the symmetric difference of key sets: {1}.",
    ),
    "keys": (lambda x: {"a": x, "b": x}, lambda x: {"a": x}, "true_fun output is a <class 'dict'> with 2 children but", "key sets: {'b'}."),
    "metadata": (
        lambda x: Node(x, meta=1),
        lambda x: Node(x, meta=2),
        "with pytree metadata 1 but false_fun output is a",
        "with pytree metadata 2, so the pytree node metadata does not match.",
    ),
    "lengths": (lambda x: (x, x), lambda x: (x,), "tuple of length 2 but false_fun output is a tuple of length 1, so the lengths do not match.", ""),
    "dtype and shape": (
        lambda x: np.ones(3, np.float32),
        lambda x: np.ones(2, np.int32),
        "The output of true_fun has type float32[3] but the corresponding output of false_fun has type int32[2], so the dtypes do not match, and the shapes do not match.",
        "",
    ),
    "two outputs": (
        lambda x: (1, x),
        lambda x: (x, 2),
        "  * the output of true_fun at path [0] has type int32[] but the corresponding output of false_fun has type float32[], so the dtypes do not match;\n  * the output of true_fun at path [1]",
        "so the dtypes do not match.",
    ),
    "no array": (
        lambda x: ("a", x),
        lambda x: (x, x),
        "traced for cond returned a value of type <class 'str'> at output component [0], which is not a valid JAX type",
        "",
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_differ(lax, name):
    true, false, *words = BRANCHES[name]
    with pytest.raises(TypeError) as e:
        lax.cond(True, true, false, 1.0)
    assert all(w in str(e.value) for w in words)


PREDICATES = {
    "nothing": (None, "cond predicate is None"),
    "text": ("a", "Pred must be a scalar, got a of type <class 'str'>"),
    "list": ([1], "Pred must be a scalar, got [1] of type <class 'list'>"),
    "array": (np.ones(2), "Pred must be a scalar, got [1. 1.] of shape (2,)."),
    "complex": (1j, "Pred type must be either boolean or number, got complex64."),
    "object": (object, "Pred type must be either boolean or number, got <class 'object'>."),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_invalid_predicates(lax, name):
    pred, words = PREDICATES[name]
    with pytest.raises(TypeError) as e:
        lax.cond(pred, lambda x: x, lambda x: x, 1.0)
    assert str(e.value).startswith(words)


@pytest.mark.parametrize(
    "index, words",
    [
        (None, "Index type must be an integer, got None as float32"),
        ("a", "Index type must be an integer, got a."),
        (1.5, "Index type must be an integer, got 1.5 as float32"),
        (np.ones(2, int), "Branch index must be scalar, got [1 1] of shape (2,)."),
    ],
)
def test_invalid_indices(lax, index, words):
    with pytest.raises(TypeError) as e:
        lax.switch(index, [lambda x: x, lambda x: x], 1.0)
    assert str(e.value).startswith(words)


def test_steps_that_return_no_pair_and_carries_that_change(jax, lax, jnp):
    def message_of(step, init):
        with pytest.raises(TypeError) as e:
            lax.scan(step, init, None, length=2)
        return str(e.value)

    assert message_of(lambda c, x: c, 1.0) == "scan body output must be a pair, got ~float32[]."
    assert message_of(lambda c, x: None, 1.0) == "scan body output must be a pair, got None."
    assert "The input carry c is a <class 'dict'> with 2 children but" in message_of(lambda c, x: ({"a": c["a"]}, x), {"a": 1.0, "b": 2.0})
    assert (
        "has type float32[3,2] but the corresponding output carry component has type int32[2,3], so the dtypes do not match, and the shapes do not match."
        in message_of(lambda c, x: (jnp.ones((2, 3), int), x), jnp.ones((3, 2)))
    )
    assert "returned a value of type <class 'str'> at output component [1], which is not a valid JAX type" in message_of(lambda c, x: (c, "a"), 1.0)


@pytest.mark.parametrize("length", [4.0, np.float32(4), np.float64(4), np.array(4), np.int8(4), np.array(4.0)])
def test_a_length_may_be_a_whole_float(jax, jnp, lax, length):
    step = lambda c, x: (c + 1, c)
    for xs in (None, jnp.arange(4.0)):
        assert lax.scan(step, 0.0, xs, length=length)[1].shape == (4,)
    assert lax.fori_loop(0, 8, lambda i, c: c + i, 0, unroll=float(length)) == 28
    assert jnp.hanning(length).shape == jnp.kaiser(length, 1.0).shape == (4,) and jnp.fft.rfftfreq(length).shape == (3,)
    assert jax.make_mesh((length / 4,), ("x",)).shape["x"] == 1
    if jax.__name__ == "ferrax":  # JAX takes 4
        for wrong in (4.5, float("nan"), "4"):
            with pytest.raises(TypeError, match="length"):
                lax.scan(step, 0.0, None, length=wrong)


def test_lengths_and_unrolls_that_are_traced(jax, lax):
    scan = lambda **k: lax.scan(lambda c, x: (c, x), 1.0, None, **k)
    with pytest.raises(
        jax.errors.ConcretizationTypeError,
        match="(?s)traced array with shape int32.*The `length` argument to `scan` expects a concrete `int` value. For scan-like",
    ):
        jax.jit(lambda n: scan(length=n))(2)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="The `unroll` argument to `scan` expects a concrete `int` or `bool` value."):
        jax.jit(lambda n: scan(length=2, unroll=n))(2)


def test_branches_share_the_places_of_their_residuals(jax, jnp, lax):
    branches = [jnp.sin, jnp.cos, lambda x: x * jnp.exp(x), lambda x: x[::-1] * x]
    f = lambda i, x: lax.switch(i, branches, x).sum()
    x = np.arange(1.0, 4.0, dtype=np.float32)
    (cond,) = [e for e in jax.make_jaxpr(lambda i, x: jax.vjp(lambda x: lax.switch(i, branches, x), x)[0])(1, x).eqns if e.primitive.name == "cond"]
    assert len(cond.outvars) <= 3, "the result and at most two residuals: no branch keeps more of its own"
    slopes = [np.cos(x), -np.sin(x), (1 + x) * np.exp(x), 2 * x[::-1]]
    for i, slope in enumerate(slopes):
        for g in (jax.grad(f, 1), jax.jit(jax.grad(f, 1))):
            np.testing.assert_allclose(g(i, x), slope, rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(jax.grad(f, 1), (0, None))(np.array([i, 0]), x)[0], slope, rtol=1e-6)
    # residuals of several types, and one operand that several branches keep
    mixed = [lambda x, y: x * y, lambda x, y: x.sum() * y, lambda x, y: jnp.sin(x) * y.astype("float16").astype("float32") * y]
    h = lambda i, x, y: lax.switch(i, mixed, x, y).sum()
    for i, m in enumerate(mixed):
        for got, want in zip(jax.grad(h, (1, 2))(i, x, x + 1), jax.grad(lambda x, y, m=m: m(x, y).sum(), (0, 1))(x, x + 1), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_allclose(jax.hessian(h, 1)(i, x, x + 1), jax.hessian(lambda x, m=m: m(x, x * 0 + jnp.arange(2.0, 5.0)).sum())(x), rtol=1e-5)


def halves(jax):
    """A loop that ends only for positive numbers, behind a branch."""

    def f(x):
        return jax.lax.cond(x > 0, lambda x: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x), lambda x: x, x)

    return f


def newton(jax):
    def root(a):
        return jax.lax.while_loop(lambda x: abs(x * x - a) > 1e-5, lambda x: (x + a / x) / 2, a)

    return root


@pytest.mark.ours
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


@pytest.mark.ours
def test_a_loop_in_a_branch_of_several(jax, jnp):
    up = lambda x: jax.lax.while_loop(lambda v: v < 8, lambda v: v * 2, x)
    down = lambda x: jax.lax.while_loop(lambda v: v > -8, lambda v: v * 2, x)
    f = lambda i, x, k: jax.lax.switch(i, [up, lambda x: x * k, down], x)
    index, x = jnp.array([0, 1, 2, -5, 9]), jnp.array([1.0, 5.0, -1.0, 3.0, -3.0])
    assert jax.vmap(f, (0, 0, None))(index, x, 2.0).tolist() == [8.0, 10.0, -8.0, 12.0, -12.0]
    lanes = jax.vmap(lambda i, x: jax.lax.cond(i > 0, lambda x: jax.lax.psum(x, "n") + up(x), lambda x: x, x), axis_name="n")
    assert lanes(jnp.array([1, 1]), jnp.array([4.0, 8.0])).tolist() == [20.0, 20.0]


@pytest.mark.ours
def test_reverse_mode_through_while_loops(jax, jnp):
    root = newton(jax)
    np.testing.assert_allclose([jax.grad(root)(2.0), jax.hessian(root)(2.0)], [0.5 / 2**0.5, -0.25 / 2**1.5], rtol=2e-3)
    assert float(jax.grad(root)(1.0)) == 1.0  # no turn at all
    inside = lambda x: jax.lax.scan(lambda c, _: (root(c + 1.0), None), x, None, length=3)[0]
    difference = (inside(1.001) - inside(0.999)) / 0.002
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(inside)))(jnp.ones(2)), [difference] * 2, rtol=1e-2)


@pytest.mark.ours
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
