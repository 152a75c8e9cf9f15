"""Tracing and compilation as a user meets them: what is recorded, when, and what can be read of it."""

import re
from functools import partial

import numpy as np
import pytest


def squeeze(text):
    return re.sub(r"\s+", " ", str(text)).strip()


def polynomial_mean(jnp):
    def f(x):
        x = x + 2
        x = x**2
        x = x + 3
        return x.mean()

    return f


def test_side_effects_happen_once_and_are_not_recorded(jax):
    seen = []

    def f(x):
        seen.append(x)
        return 2 * x * x + 3 * x + 3

    want = "{ lambda ; a:i32[]. let b:i32[] = mul 2:i32[] a c:i32[] = mul b a d:i32[] = mul 3:i32[] a e:i32[] = add c d f:i32[] = add e 3:i32[] in (f,) }"
    assert squeeze(jax.make_jaxpr(f)(3)) == want
    assert len(seen) == 1


def test_program_text_of_a_mean(jax, jnp):
    x = jnp.arange(3, dtype=jnp.float32)
    want = (
        "{ lambda ; a:f32[3]. let b:f32[3] = add a 2.0:f32[] c:f32[3] = integer_pow[y=2] b d:f32[3] = add c 3.0:f32[] "
        "e:f32[] = reduce_sum[axes=(0,)] d f:f32[] = div e 3.0:f32[] in (f,) }"
    )
    assert squeeze(str(jax.make_jaxpr(polynomial_mean(jnp))(x)).replace(" out_sharding=None", "")) == want


def test_gradient_of_a_mean(jax, jnp, close):
    f, x = polynomial_mean(jnp), jnp.arange(3, dtype=jnp.float32)
    close(jax.grad(f)(x), [4 / 3, 2.0, 8 / 3])
    value, grad = jax.value_and_grad(f)(x)
    close(value, 38 / 3)
    close(grad, [4 / 3, 2.0, 8 / 3])


def test_gradient_program_is_short_and_can_be_evaluated(jax, jnp, close):
    x = jnp.arange(3, dtype=jnp.float32)
    closed = jax.make_jaxpr(jax.grad(polynomial_mean(jnp)))(x)
    names = [str(eqn.primitive) for eqn in closed.jaxpr.eqns]
    assert len(names) <= 10 and names[0] == "add" and {"mul", "broadcast_in_dim"} <= set(names)
    close(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0], [4 / 3, 2.0, 8 / 3])


def test_programs_can_be_read_as_objects(jax, jnp):
    closed = jax.make_jaxpr(lambda x: jnp.sqrt((x**2).sum()))(jnp.arange(3, dtype=jnp.float32))
    eqns = closed.jaxpr.eqns
    assert [str(e.primitive) for e in eqns] == ["integer_pow", "reduce_sum", "sqrt"]
    assert eqns[0].params["y"] == 2 and tuple(eqns[1].params["axes"]) == (0,)
    assert [str(v.aval) for v in closed.jaxpr.invars] == ["float32[3]"]
    assert [str(v.aval) for v in closed.jaxpr.outvars] == ["float32[]"]
    assert eqns[0].outvars[0] is eqns[1].invars[0] or eqns[0].outvars[0] == eqns[1].invars[0]


def test_globals_are_baked_in_until_the_signature_changes(jax, jnp, close):
    state = {"g": 0.0}
    f = jax.jit(lambda x: x + state["g"])
    assert float(f(4.0)) == 4.0
    state["g"] = 10.0
    assert float(f(5.0)) == 5.0
    close(f(jnp.array([4.0])), [14.0])


def test_a_signature_is_traced_once(jax):
    n = []
    f = jax.jit(lambda x: (n.append(1), x * 2)[1])
    for v in (1.0, 2.0, 3.0):
        f(v)
    assert len(n) == 1
    f(np.ones(3, np.float32))
    f(np.zeros(3, np.float32))
    assert len(n) == 2


def test_static_arguments_are_part_of_the_signature(jax):
    traces = []

    @partial(jax.jit, static_argnums=(1,))
    def repeat(x, n):
        traces.append(n)
        for _ in range(n):
            x = x + 1
        return x

    assert [int(repeat(2, 5)), int(repeat(2, 10)), int(repeat(3, 5))] == [7, 12, 8]
    assert traces == [5, 10]
    g = jax.jit(lambda x, *, mode: x * 2 if mode == "double" else x, static_argnames="mode")
    assert int(g(4, mode="double")) == 8 and int(g(4, mode="same")) == 4


def test_stages_have_text_and_the_compiled_one_checks_its_arguments(jax, jnp, close):
    x = np.ones((3, 5), np.float32)
    sine = jax.jit(lambda x: jnp.sin(x) ** 2 + 3 * x).lower(x)
    cosine = jax.jit(lambda x: jnp.cos(x) ** 2 + 3 * x).lower(x)
    for one, other in ((sine, cosine), (sine.compile(), cosine.compile())):
        assert one.as_text() != other.as_text()
        assert all(word in one.as_text() for word in ("3", "5", "sin"))
    close(sine.compile()(x), np.sin(x) ** 2 + 3 * x)
    with pytest.raises(TypeError):
        sine.compile()(np.ones((4, 5), np.float32))


def test_a_donated_argument_is_deleted(jax, jnp, close):
    a = jnp.ones(8)
    close(jax.jit(lambda x: x + 1, donate_argnums=0)(a), np.full(8, 2.0))
    assert a.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        a + 1


def test_a_call_returns_before_the_work_is_done(jax, jnp):
    a = jnp.asarray(np.random.default_rng(0).standard_normal((2500, 2500)).astype(np.float32))
    f = jax.jit(lambda a: a @ a @ a @ a)
    f(a).block_until_ready()
    y = f(a)
    assert not y.is_ready()
    y.block_until_ready()
    assert y.is_ready()


@pytest.mark.filterwarnings("ignore:backend and device argument")
def test_a_backend_can_be_named(jax, close):
    def f(x):
        return (x + x * x + 3) * (x * x + x * x.T)

    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    close(jax.jit(f, backend="cpu")(jax.device_put(x, jax.devices("cpu")[0])), f(x), 1e-4)


def test_jit_decorates_with_options_and_methods(jax):
    @jax.jit(static_argnums=(1,))
    def repeat(x, n):
        for _ in range(n):
            x = x + 1
        return x

    class Model:
        @partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * 2

    assert int(repeat(2, 3)) == 5
    assert int(Model()(4)) == 8
    assert f"{repeat(1.5, 1):.2f}" == "2.50"


def test_eval_shape_runs_nothing(jax):
    big, small = jax.ShapeDtypeStruct((10_000_000, 1000), np.float32), jax.ShapeDtypeStruct((1000, 7), np.float32)
    out = jax.eval_shape(lambda a, b: {"y": a @ b}, big, small)
    assert out["y"].shape == (10_000_000, 7) and out["y"].dtype == np.float32
