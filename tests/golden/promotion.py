"""The type that JAX 0.10.2 gives a sum, for every pair of types and Python's scalars. `python tests/golden/promotion.py` on JAX rewrites promotion.txt."""
import pathlib

FILE = pathlib.Path(__file__).with_name("promotion.txt")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
SCALARS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}


def operands(jnp):
    return {name: jnp.ones(2, name) for name in DTYPES} | SCALARS


def table(jax):
    """{"x y": "dtype weak"} with 64-bit types."""
    jnp = jax.numpy
    jax.config.update("jax_enable_x64", True)
    try:
        out = {}
        for a, x in operands(jnp).items():
            for b, y in operands(jnp).items():
                got = jnp.add(x, y)
                out[f"{a} {b}"] = f"{got.dtype}{'*' if got.weak_type else ''}"
        return out
    finally:
        jax.config.update("jax_enable_x64", False)


if __name__ == "__main__":
    import jax

    FILE.write_text("".join(f"{pair} -> {dtype}\n" for pair, dtype in table(jax).items()))
