"""Objects with `__jax_array__` are operands of public functions and operators, like the arrays that they return; transforms do not accept them as arguments."""

import conformance
import numpy as np
import pytest

pytestmark = pytest.mark.ours  # JAX's jitted functions refuse them

STEP = 11
# Functions that read their operand as text, bytes or a sequence, or ask what it is; functions with rules
# of their own, which are transforms' (JAX refuses there too); and forms of the tables that use its attributes or operators.
OTHERWISE = set(
    """jax.numpy.array_repr jax.numpy.array_str jax.numpy.printoptions jax.numpy.iterable jax.numpy.save jax.numpy.savez jax.numpy.from_dlpack
    jax.numpy.vstack jax.numpy.hstack jax.numpy.dstack jax.numpy.choose jax.numpy.lexsort jax.numpy.einsum_path jax.numpy.piecewise
    jax.nn.relu jax.nn.relu6 jax.nn.log1mexp jax.scipy.special.xlogy jax.scipy.special.xlog1py
    jax.lax.linalg.cholesky_update jax.scipy.linalg.rsf2csf
    jax.scipy.sparse.linalg.cg jax.scipy.sparse.linalg.bicgstab jax.scipy.sparse.linalg.gmres""".split()
)


class Holder:
    def __init__(self, lib, value):
        self.lib, self.value, self.calls = lib, value, 0

    def __jax_array__(self):
        self.calls += 1
        return self.lib.numpy.asarray(self.value)


def outcome(lib, case, held):
    """What a case gives where operand number `held` is an object that gives it."""
    lib.config.update("jax_enable_x64", case.wide)
    env = conformance.environment(lib, case)
    xs = [(Holder(lib, x) if k == held else lib.numpy.asarray(x)) if hasattr(x, "dtype") else x for k, x in enumerate(case.operands)]
    with np.errstate(all="ignore"):
        try:
            out = eval(compile(case.expression, case.function, "eval"), {**env, **{f"a{k}": x for k, x in enumerate(xs)}})
            return list(conformance.leaves(lib, out))
        except Exception as e:
            return conformance.Wrong(f"{type(e).__name__}: {e}")


@pytest.mark.parametrize("table", ["numpy", "linalg", "fft", "scipy", "stats", "nn"])
@pytest.mark.filterwarnings("ignore")
def test_functions_take_objects_with_jax_array(jax, table):
    """Every function of a conformance table, each operand in turn."""
    before, failed = jax.config.jax_enable_x64, []
    try:
        for line, name in conformance.functions(table):
            if line.reason or f"{line.module}.{name}" in OTHERWISE:
                continue
            for case in conformance.cases_of(line, name)[::STEP]:
                plain = outcome(jax, case, None)
                if isinstance(plain, conformance.Wrong):
                    continue
                for k, x in enumerate(case.operands):
                    if not hasattr(x, "dtype"):
                        continue
                    got = outcome(jax, case, k)
                    if isinstance(got, conformance.Wrong):
                        failed.append(f"{case} [{k}] raises {got}")
                    elif what := conformance.difference(case, got, plain):
                        failed.append(f"{case} [{k}] {what}")
    finally:
        jax.config.update("jax_enable_x64", before)
    assert not failed, f"{len(failed)}:\n" + "\n".join(failed)


OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: x**y,
    "@": lambda x, y: x @ y,
    "<": lambda x, y: x < y,
    "==": lambda x, y: x == y,
    "divmod": divmod,
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_take_objects_with_jax_array(jax, jnp, symbol):
    x, y = jnp.array([1.0, 2.0, 3.0]), np.float32([2.0, 3.0, 1.0])
    f = OPERATORS[symbol]
    jax.tree.map(np.testing.assert_array_equal, f(x, Holder(jax, y)), f(x, jnp.asarray(y)))
    if symbol not in ("<", "=="):
        jax.tree.map(np.testing.assert_array_equal, f(Holder(jax, y), x), f(jnp.asarray(y), x))


def test_updates_and_indices_take_objects_with_jax_array(jax, jnp):
    x, i, v = jnp.arange(6.0), np.array([1, 4]), np.float32([7.0, 8.0])
    for name in ("set", "add", "multiply", "divide", "power", "min", "max"):
        got = getattr(x.at[jnp.asarray(i)], name)(Holder(jax, v))
        np.testing.assert_array_equal(got, getattr(x.at[jnp.asarray(i)], name)(jnp.asarray(v)))
    for f in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2.0), lambda x: jnp.astype(x, jnp.int32), jnp.result_type, jnp.shape):
        assert str(f(Holder(jax, v))) == str(f(jnp.asarray(v)))
    for f in (
        lambda h: jax.random.normal(jax.random.key(0), (2,)) * h,
        lambda h: jax.random.gamma(jax.random.key(0), h),
        lambda h: jax.random.permutation(jax.random.key(0), h),
    ):
        np.testing.assert_array_equal(f(Holder(jax, v)), f(jnp.asarray(v)))


def test_transforms_refuse_objects_with_jax_array(jax, jnp):
    """Whether one is converted once, or at each use, would change what is traced; a pytree is flattened first."""
    h = Holder(jax, np.float32([1.0, 2.0]))
    for f in (
        jax.jit(lambda x: jnp.sin(x)),
        jax.vmap(lambda x: jnp.sin(x)),
        jax.grad(lambda x: jnp.sum(x)),
        lambda x: jax.lax.scan(lambda c, y: (c, y), 0.0, x),
    ):
        with pytest.raises((TypeError, ValueError)):
            f(h)
    out = jax.jit(lambda x: jnp.sin(h) + x)(1.0)
    np.testing.assert_array_equal(out, jnp.sin(h.value) + 1.0)
    assert h.calls == 1
