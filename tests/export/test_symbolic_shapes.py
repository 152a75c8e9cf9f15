"""`eval_shape` of symbolic sizes: what Keras asks of a layer whose batch is not known."""

import pytest

CASES = {
    "lambda x: jnp.sin(x)": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "lambda x: jnp.mean(x)": "ShapeDtypeStruct(shape=(), dtype=float32)",
    "lambda x: x @ jnp.ones((8, 3))": "ShapeDtypeStruct(shape=(b, 3), dtype=float32)",
    "lambda x: x.reshape(-1)": "ShapeDtypeStruct(shape=(8*b,), dtype=float32)",
    "lambda x: jnp.concatenate([x, x])": "ShapeDtypeStruct(shape=(2*b, 8), dtype=float32)",
    "lambda x: jnp.zeros(x.shape) + x": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "lambda x: x.reshape(x.shape[0], -1)": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "lambda x: x.T": "ShapeDtypeStruct(shape=(8, b), dtype=float32)",
    "jax.jit(lambda x: x * 2)": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "jax.vmap(lambda r: r.sum())": "ShapeDtypeStruct(shape=(b,), dtype=float32)",
    "lambda x: jax.lax.scan(lambda c, _: (c + 1, None), x, None, 3)[0]": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "lambda x: {'a': x[:, :2]}": "{'a': ShapeDtypeStruct(shape=(b, 2), dtype=float32)}",
    "jax.grad(lambda x: (x ** 2).sum())": "ShapeDtypeStruct(shape=(b, 8), dtype=float32)",
    "lambda x: jnp.argmax(x, 1)": "ShapeDtypeStruct(shape=(b,), dtype=int32)",
    "lambda x: jnp.arange(x.shape[0])": "ShapeDtypeStruct(shape=(b,), dtype=int32)",
}


@pytest.mark.parametrize("text", CASES)
def test_symbolic_sizes(jax, text):
    from importlib import import_module

    export = import_module(f"{jax.__name__}.export")
    (b,) = export.symbolic_shape("(b)", constraints=["b>=2"])
    function = eval(text, {"jax": jax, "jnp": jax.numpy})
    assert str(jax.eval_shape(function, jax.ShapeDtypeStruct((b, 8), "float32"))) == CASES[text]


def test_other_arguments_and_names(jax):
    from importlib import import_module

    export = import_module(f"{jax.__name__}.export")
    a, b = export.symbolic_shape("a, b")
    x, y = jax.ShapeDtypeStruct((a, 3), "float32"), jax.ShapeDtypeStruct((3, b), "float32")
    assert str(jax.eval_shape(lambda x, y, s: (x @ y * s, {"n": y.sum(0)}), x, y, s=2.0)) == (
        "(ShapeDtypeStruct(shape=(a, b), dtype=float32), {'n': ShapeDtypeStruct(shape=(b,), dtype=float32)})"
    )
