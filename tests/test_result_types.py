"""Every function gives results of JAX's types, for every type of operand; `golden/result_types.txt` has them.

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
