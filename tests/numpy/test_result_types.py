"""Every function gives results of the same types as JAX, for every type of operand; `golden/result_types.txt` lists them.

Where JAX refuses and we answer, or where it tells a type and then fails, the call stands in one of the lists below.
"""

import pytest
from golden import result_types

# JAX refuses: there is one sensible answer, which we give.
ANSWERED = {
    "nn.silu(a)", "sp.spence(a)", "sp.ndtr(a)", "sp.ndtri(a)", "sp.log_ndtr(a)", "n.dot(a, 2)", "lax.random_gamma_grad(a, b)",
    "lax.dynamic_slice(n.ones((2, 2)), (a[0, 0], 1), (1, 1))",
}  # fmt: skip
# JAX tells a type and refuses to run.
ONLY_TOLD = {
    "n.argmax(a)", "n.argmin(a)", "n.nanargmax(a)", "n.nanargmin(a)", "n.argmax(a, axis=0, keepdims=True)", "a.argmax()", "lax.argmax(a, 0, 'int32')",
    "lax.cumlogsumexp(a)", "lax.random_gamma_grad(a, b)",
}  # fmt: skip
# Both refuse; JAX's class is that of an accident inside of it.
OF_NARROW_DTYPES = {  # JAX gives bits of uint8 for uint4; we refuse
    "jax.random.bits(jax.random.PRNGKey(0), (2,), a.dtype)", "lax.cumlogsumexp(a)",
    "lax.scan(lambda c, x: (c + x.sum(), c), n.zeros((), a.dtype), a)", "n.polymul(a, b)", "n.unwrap(a, period=6)", "lax.random_gamma_grad(a, b)",
}  # fmt: skip
OTHER_CLASS = {"nn.standardize(a)", "sp.bessel_jn(a, v=1)", "sp.hyp2f1(a, 1, 2, 0.5)", "lax.random_gamma_grad(a, b)"}


def is_refusal(result):
    return result.endswith("Error")


def narrow(operands):
    return any(x in result_types.NARROW for x in operands.split())


def excused(call, operands, got, want):
    if narrow(operands):
        # JAX refuses much of what narrow dtypes could do, by accident
        return (is_refusal(want) and not is_refusal(got)) or call in OF_NARROW_DTYPES
    if is_refusal(got) and is_refusal(want):
        return call in OTHER_CLASS
    return call in (ANSWERED if is_refusal(want) else ONLY_TOLD if is_refusal(got) else ())


@pytest.fixture(scope="module")
def table(jax):
    return result_types.table(jax)


@pytest.mark.ours
def test_types_are_those_of_jax(table):
    want = result_types.read()
    assert set(table) == set(want)
    wrong = []
    for call, row in want.items():
        for operands, result in row.items():
            got = table[call][operands]
            if got != result and not excused(call.rsplit(" ", 1)[0], operands, got, result):
                wrong.append(f"{call} of {operands}: {got}, not {result}")
    assert not wrong, f"{len(wrong)} of {sum(map(len, want.values()))}:\n" + "\n".join(wrong[:40])


@pytest.mark.ours
def test_every_excuse_is_needed(table):
    used = {
        call.rsplit(" ", 1)[0]
        for call, row in result_types.read().items()
        for operands, result in row.items()
        if not narrow(operands) and table[call][operands] != result
    }
    assert used == ANSWERED | ONLY_TOLD | OTHER_CLASS


@pytest.mark.ours
def test_integers_of_two_bits_are_as_those_of_four(jax, table, monkeypatch):
    fewer = lambda text: text.replace("int4", "int2")
    calls = [(call, [tuple(map(fewer, kinds)) for kinds in operands if "int4" in " ".join(kinds)]) for call, operands in result_types.calls()]
    monkeypatch.setattr(result_types, "calls", lambda: calls)
    for call, row in result_types.table(jax).items():
        for operands, result in row.items():
            assert result == fewer(table[call][operands.replace("int2", "int4")]), (call, operands)


WEAK_GRADIENTS = {
    "of moved elements": (
        "00000",
        {
            "slice": lambda jax, x: x[1:4].sum(),
            "strided slice": lambda jax, x: x[::2].sum(),
            "take": lambda jax, x: x[jax.numpy.array([0, 2, 2])].sum(),
            "pad": lambda jax, x: jax.numpy.pad(x, (1, 2)).sum(),
            "pad that cuts": lambda jax, x: jax.lax.pad(x, 0.0, ((-1, 2, 0),)).sum(),
            "dynamic_slice": lambda jax, x: jax.lax.dynamic_slice(x, (1,), (3,)).sum(),
            "dynamic_update_slice": lambda jax, x: jax.lax.dynamic_update_slice(x, x[:2], (1,)).sum(),
            "diff": lambda jax, x: jax.numpy.diff(x).sum(),
            "top_k": lambda jax, x: jax.lax.top_k(x, 2)[0].sum(),
        },
    ),
    "of what computes": (
        "01101",
        {
            "real": lambda jax, x: jax.numpy.real(x * 1j).sum(),
            "imag": lambda jax, x: jax.numpy.imag(x * 1j).sum(),
            "reverse": lambda jax, x: (x[::-1] * x).sum(),
            "concatenate": lambda jax, x: jax.numpy.concatenate([x, x]).sum(),
            "cumsum": lambda jax, x: jax.numpy.cumsum(x).sum(),
            "where": lambda jax, x: jax.numpy.where(x > 1, x, 0).sum(),
            "convolve": lambda jax, x: jax.numpy.convolve(x, x).sum(),
            "product": lambda jax, x: (x.reshape(2, 3).T @ x.reshape(2, 3)).sum(),
            "set": lambda jax, x: x.at[1].set(2.0).sum(),
            "split": lambda jax, x: jax.numpy.split(x, 2)[0].sum(),
            "trace": lambda jax, x: jax.numpy.trace(x.reshape(2, 3)),
            "tanh": lambda jax, x: jax.numpy.tanh(x).sum(),
            "prod": lambda jax, x: x.prod(),
        },
    ),
    "of elements": ("10010", {"element": lambda jax, x: x[2] * 1.0, "sort": lambda jax, x: jax.numpy.sort(x)[0]}),
}


@pytest.mark.parametrize("kind", WEAK_GRADIENTS)
def test_weak_types_of_gradients(jax, kind):
    """Zeros around what was cut out are strongly typed, so that gradients are: for the value, the gradient, jitted, forward and batched."""
    expected, functions = WEAK_GRADIENTS[kind]
    x = jax.numpy.broadcast_to(1.5, (6,))
    assert x.weak_type
    for name, f in functions.items():

        def g(x, f=f):
            return f(jax, x)

        results = [g(x), jax.grad(g)(x), jax.jit(jax.grad(g))(x), jax.jvp(g, (x,), (x,))[1], jax.vmap(jax.grad(g))(jax.numpy.broadcast_to(1.5, (2, 6)))]
        assert "".join(str(int(y.weak_type)) for y in results) == expected, name


def test_weak_types_that_operations_keep(jax):
    x, lax = jax.numpy.broadcast_to(1.5, (6,)), jax.lax
    assert lax.top_k(x, 2)[1].weak_type
    assert lax.conv_general_dilated(x[None, None], x[None, None, :2], (1,), "VALID").weak_type
    assert lax.linalg.tridiagonal_solve(x, x, x, x[:, None]).weak_type


@pytest.mark.ours
def test_a_mesh_whose_placement_fails_is_not_in_use(jax, monkeypatch):
    from ferrax._runtime import mesh as _mesh

    mesh = jax.make_mesh((1,), ("x",))
    monkeypatch.setitem(_mesh.shardings, "whole", lambda mesh: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jax.set_mesh(mesh)
    assert _mesh.current() is None
