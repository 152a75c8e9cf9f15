"""What reverse mode keeps of a checkpointed function, counted by primitive in the program of its gradient."""

import collections
import importlib

import numpy as np
import pytest

# forward: 3 sin, 2 dot; backward: 3 cos, and 4 dot for the cotangents. What the backward pass computes again comes on top.
POLICIES = {
    "none": (lambda cp: None, dict(sin=5, cos=3, dot_general=8)),
    "everything": (lambda cp: cp.everything_saveable, dict(sin=3, cos=3, dot_general=6)),
    "nothing": (lambda cp: cp.nothing_saveable, dict(sin=5, cos=3, dot_general=8)),
    "dots": (lambda cp: cp.dots_saveable, dict(sin=5, cos=3, dot_general=6)),
    "dots_unbatched": (lambda cp: cp.dots_with_no_batch_dims_saveable, dict(sin=5, cos=3, dot_general=6)),
    "a": (lambda cp: cp.save_only_these_names("a"), dict(sin=4, cos=3, dot_general=8)),
    "a_and_b": (lambda cp: cp.save_only_these_names("a", "b"), dict(sin=3, cos=3, dot_general=8)),
    "any_name_but_a": (lambda cp: cp.save_any_names_but_these("a"), dict(sin=4, cos=3, dot_general=8)),
    "anything_but_a": (lambda cp: cp.save_anything_except_these_names("a"), dict(sin=3, cos=3, dot_general=6)),
    "dots_or_b": (lambda cp: cp.save_from_both_policies(cp.dots_saveable, cp.save_only_these_names("b")), dict(sin=4, cos=3, dot_general=6)),
    "a_callable": (lambda cp: lambda prim, *avals, **params: prim.name == "sin", dict(sin=3, cos=3, dot_general=8)),
    "by_type": (lambda cp: lambda prim, *avals, **params: avals[0].shape == (4, 4), dict(sin=5, cos=3, dot_general=8)),
    "offload": (
        lambda cp: cp.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], offload_src="device", offload_dst="pinned_host"
        ),
        dict(sin=3, cos=3, dot_general=8),
    ),
    "offload_dots": (lambda cp: cp.offload_dot_with_no_batch_dims("device", "pinned_host"), dict(sin=5, cos=3, dot_general=6)),
}


def counted(jaxpr, into=None):
    """How often each primitive occurs in a program, its bodies included."""
    into = collections.Counter() if into is None else into
    for e in jaxpr.eqns:
        into[e.primitive.name] += 1
        for p in e.params.values():
            for q in p if isinstance(p, (tuple, list)) else [p]:
                if hasattr(q, "eqns"):
                    counted(getattr(q, "jaxpr", q), into)
    return into


@pytest.fixture(scope="module")
def name(jax):
    return importlib.import_module(jax.__name__ + ".ad_checkpoint").checkpoint_name


@pytest.fixture(scope="module")
def layers(jnp, name):
    def layers(w, x):
        y = name(jnp.sin(x @ w), "a")
        z = name(jnp.sin(y @ w), "b")
        return jnp.sum(jnp.sin(z))

    return layers


@pytest.fixture(scope="module")
def operands(jnp):
    draw = np.random.default_rng(0).standard_normal
    return jnp.asarray(draw((4, 4)) * 0.3, "float32"), jnp.asarray(draw((3, 4)), "float32")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_decides_on_recomputation(jax, layers, operands, policy):
    make, want = POLICIES[policy]
    f = jax.checkpoint(layers, policy=make(jax.checkpoint_policies))
    got = counted(jax.make_jaxpr(jax.grad(f, argnums=(0, 1)))(*operands).jaxpr)
    assert {k: got[k] for k in want} == want
    for transform in (lambda g: g, jax.jit):
        for a, b in zip(transform(jax.grad(f, argnums=(0, 1)))(*operands), jax.grad(layers, argnums=(0, 1))(*operands), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


COUNTS = {"nothing_saveable": (8, 3), "dots_saveable": (6, 3), "everything_saveable": (6, 2)}


@pytest.mark.parametrize("policy", COUNTS)
def test_in_the_body_of_a_loop_under_jit_and_vmap(jax, jnp, operands, policy):
    keep, (dots, sins) = getattr(jax.checkpoint_policies, policy), COUNTS[policy]
    w, x = operands

    def looped(w, x):
        layer = jax.checkpoint(lambda w, c: jnp.sin(jnp.sin(c @ w) @ w), policy=keep)
        return jax.lax.scan(lambda c, _: (layer(w, c), None), x, None, length=4)[0].sum()

    for f in (looped, jax.jit(looped)):
        got = counted(jax.make_jaxpr(jax.grad(f))(w, x).jaxpr)
        assert (got["dot_general"], got["sin"]) == (dots, sins)
    batch = jnp.stack([x, 2 * x])
    got = counted(jax.make_jaxpr(jax.vmap(jax.grad(looped), (None, 0)))(w, batch).jaxpr)
    assert (got["dot_general"], got["sin"]) == (dots, sins)
    got = counted(jax.make_jaxpr(jax.grad(lambda w: jax.vmap(looped, (None, 0))(w, batch).sum()))(w).jaxpr)
    assert (got["dot_general"], got["sin"]) == (dots, sins)


@pytest.mark.parametrize("policy, dots, sins", [("nothing_saveable", 8, 4), ("dots_saveable", 6, 4), ("everything_saveable", 6, 2)])
def test_a_loop_inside(jax, jnp, operands, policy, dots, sins):
    def body(w, x):
        return jax.lax.scan(lambda c, _: (jnp.sin(jnp.sin(c @ w) @ w), None), x, None, length=4)[0]

    f = jax.checkpoint(body, policy=getattr(jax.checkpoint_policies, policy))
    got = counted(jax.make_jaxpr(jax.grad(lambda w, x: f(w, x).sum()))(*operands).jaxpr)
    assert (got["dot_general"], got["sin"]) == (dots, sins)
    np.testing.assert_allclose(jax.grad(lambda w, x: f(w, x).sum())(*operands), jax.grad(lambda w, x: body(w, x).sum())(*operands), rtol=1e-5)


@pytest.mark.parametrize("policy", ["nothing_saveable", "dots_saveable", "everything_saveable"])
def test_branches_inside(jax, jnp, operands, policy):
    def body(w, x):
        y = jnp.sin(x @ w)
        return jax.lax.cond(y[0, 0] > 0, lambda y: jnp.sin(jnp.sin(y @ w) @ w), lambda y: jnp.cos(y @ w), y)

    f = jax.checkpoint(body, policy=getattr(jax.checkpoint_policies, policy))
    for sign in (1, -1):
        w, x = operands[0], sign * operands[1]
        for g in (jax.grad, lambda f, **k: jax.jit(jax.grad(f, **k))):
            for a, b in zip(g(lambda *xs: f(*xs).sum(), argnums=(0, 1))(w, x), jax.grad(lambda *xs: body(*xs).sum(), argnums=(0, 1))(w, x), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.ours
@pytest.mark.parametrize("policy", ["nothing_saveable", "dots_saveable", "everything_saveable"])
def test_an_unbounded_loop_inside(jax, jnp, operands, policy):
    def body(w, x):
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(jnp.sin(s[1] @ w) @ w)), (0, x))[1]

    f = jax.checkpoint(body, policy=getattr(jax.checkpoint_policies, policy))
    for second in (lambda f: f, lambda f: jax.jit(f), lambda f: lambda w, x: jax.vmap(f, (None, 0))(w, x[None])[0]):
        np.testing.assert_allclose(second(jax.grad(lambda *a: f(*a).sum()))(*operands), jax.grad(lambda *a: body(*a).sum())(*operands), rtol=1e-5, atol=1e-6)


def test_second_derivatives(jax, jnp):
    body = lambda x: jnp.sin(jnp.sin(x) * x)
    for policy in ("nothing_saveable", "everything_saveable"):
        f = jax.checkpoint(body, policy=getattr(jax.checkpoint_policies, policy))
        for d in (lambda f: jax.grad(jax.grad(f)), lambda f: jax.grad(jax.grad(jax.grad(f))), lambda f: jax.jacfwd(jax.grad(f))):
            assert float(d(f)(0.5)) == pytest.approx(float(d(body)(0.5)), rel=1e-4)


@pytest.mark.ours
def test_a_policy_trades_memory_for_work(jax, jnp):
    """Bytes of the plan's arena: eight layers of three sines, of which a checkpoint keeps the first input alone."""

    def size(wrap):
        layer = wrap(lambda w, x: jnp.sin(jnp.sin(jnp.sin(x @ w))))

        def net(w, x):
            for i in range(8):
                x = layer(w[i], x)
            return jnp.sum(x)

        compiled = jax.jit(jax.grad(net)).lower(jnp.ones((8, 16, 16)), jnp.ones((1024, 16))).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    cp = jax.checkpoint_policies
    plain, everything = size(lambda f: f), size(lambda f: jax.checkpoint(f, policy=cp.everything_saveable))
    dots, nothing = size(lambda f: jax.checkpoint(f, policy=cp.dots_saveable)), size(jax.checkpoint)
    assert nothing < 0.5 * plain and nothing < dots < plain and everything > 0.9 * plain


def test_an_error_raised_by_a_policy_is_unchanged(jax, jnp):
    def policy(prim, *avals, **params):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jax.grad(jax.checkpoint(jnp.sin, policy=policy))(1.0)


def test_the_same_names_may_not_be_saved_and_offloaded(jax):
    with pytest.raises(ValueError, match="should be exclusive"):
        jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="device", offload_dst="pinned_host"
        )


def test_residuals_are_printed_with_their_origin(jax, jnp, name, capsys):
    saved = importlib.import_module(jax.__name__ + ".ad_checkpoint").print_saved_residuals
    constant = np.arange(3, dtype="float32")

    def f(p, x):
        y = name(jnp.sin(p["w"] @ x) * constant, "mine")
        return jnp.sum(jax.jit(jnp.tanh)(y) * y)

    def lines(f):
        saved(f, {"w": jnp.ones((3, 3)), "b": 1.0}, jnp.ones(3))
        return capsys.readouterr().out.splitlines()

    at = f"{__file__}:{f.__code__.co_firstlineno + 1}:"
    operands = ["f32[3] from a constant", "f32[3,3] from the argument p['w']", "f32[3] from the argument x"]
    plain = lines(f)
    assert plain[:3] == operands and plain[3].startswith(f"f32[3] output of cos from {at}") and any("jitted function 'tanh'" in p for p in plain)
    assert lines(jax.checkpoint(f)) == operands
    *rest, named = lines(jax.checkpoint(f, policy=jax.checkpoint_policies.save_only_these_names("mine")))
    assert rest == operands and named.startswith(f"f32[3] named 'mine' from {at}")


def test_keywords_and_static_arguments(jax, jnp):
    f = lambda x, k: jnp.sin(x) * k if not isinstance(k, str) else jnp.cos(x)
    s, c = np.sin(3.0), np.cos(3.0)
    policies = jax.checkpoint_policies
    for policy in (None, policies.everything_saveable, policies.dots_saveable):
        g = jax.checkpoint(f, policy=policy)
        np.testing.assert_allclose([g(3.0, k=2.0), g(k=2.0, x=3.0), jax.jit(g)(3.0, k=2.0)], 2 * s, rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x, g=g: g(x, k=x))(3.0), s + 3 * c, rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(lambda x, g=g: g(x, k=x))(jnp.array([3.0])), [3 * s], rtol=1e-6)
        for options in (dict(static_argnums=1), dict(static_argnums=(-1,))):
            np.testing.assert_allclose(jax.grad(jax.checkpoint(f, policy=policy, **options))(3.0, "cosine"), -s, rtol=1e-6)
    with pytest.raises(
        ValueError,
        match=r"can only take integer values greater than or equal to `-len\(args\)` and less than `len\(args\)`, but got \(5,\), while `len\(args\)` = 2",
    ):
        jax.checkpoint(f, static_argnums=(5,))(3.0, "a")
    with pytest.raises(TypeError, match="Argument 'a' of type <class 'str'> is not a valid JAX type"):
        jax.checkpoint(f)(3.0, "a")


@pytest.mark.ours  # JAX takes the names and does not heed them
def test_static_arguments_by_name(jax, jnp):
    f = jax.checkpoint(lambda x, k="sine", n=1: jnp.sin(x) * n if k == "sine" else jnp.cos(x) * n, static_argnames=("k", "n"))
    s, c = np.sin(3.0), np.cos(3.0)
    np.testing.assert_allclose([f(3.0), f(3.0, "sine", 2), f(3.0, k="cosine"), f(3.0, "cosine", n=3), f(3.0, n=4)], [s, 2 * s, c, 3 * c, 4 * s], rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f)(3.0, k="cosine"), -s, rtol=1e-6)


def test_prevent_cse_for_each_argument(jax):
    f = lambda x, p: x * p["a"]
    for wanted in (True, False, (False, True), (True, {"a": False}), (False, False)):
        g = jax.checkpoint(f, prevent_cse=wanted)
        assert float(g(2.0, {"a": 3.0})) == 6 and float(jax.grad(g)(2.0, {"a": 3.0})) == 3
    with pytest.raises(ValueError, match="tuple of length 3, but the full pytree has a subtree of the same type but of length 2"):
        jax.checkpoint(f, prevent_cse=(False, True, True))(2.0, {"a": 3.0})


@pytest.mark.parametrize("ordered", [False, True])
def test_callbacks_with_effects_are_not_run_again(jax, ordered):
    """A print may be; a callback that does something may not, and where it stands makes no difference."""
    experimental = importlib.import_module(jax.__name__ + ".experimental")
    calls = []
    out = jax.ShapeDtypeStruct((), np.float32)
    call = lambda y: experimental.io_callback(lambda y: (calls.append(1), np.float32(y))[1], out, y, ordered=ordered)
    functions = (
        lambda x, y: (call(y), x)[1],
        lambda x, y: jax.lax.cond(y > 0, lambda x: (call(y), x)[1], lambda x: x, x),
        lambda x, y: jax.lax.fori_loop(0, 2, lambda i, x: (call(y), x)[1], x),
    )
    for f in map(jax.checkpoint, functions):
        assert float(f(2.0, 3.0)) == 2
        for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `checkpoint`/`remat`"):
                g(2.0, 3.0)
    printing = jax.checkpoint(lambda x, y: (jax.debug.callback(lambda v: None, y), x * y)[1])
    assert float(jax.grad(printing)(2.0, 3.0)) == 3


def test_a_policy_keeps_a_callback_from_being_run_again_in_lanes_too(jax, jnp):
    """Under `vmap` a callback is a loop over the lanes, whose derivative has tangents for which it has no use."""
    calls = []

    def f(x):
        jax.debug.callback(lambda v: calls.append(float(v)), x)
        return jnp.sin(x) ** 2

    x = jnp.arange(2.0)
    for policy, times in ((jax.checkpoint_policies.everything_saveable, 1), (None, 2)):
        g = jax.checkpoint(f, policy=policy)
        for h in (jax.grad(lambda x: jax.vmap(g)(x).sum()), jax.jit(jax.grad(lambda x: jax.vmap(g)(x).sum()))):
            calls.clear()
            np.testing.assert_allclose(h(x), np.sin(2 * np.arange(2.0)), rtol=1e-6)
            jax.effects_barrier()
            assert sorted(calls) == sorted([0.0, 1.0] * times)
