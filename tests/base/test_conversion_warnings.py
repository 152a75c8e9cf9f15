"""What is said of conversions: 64 bits that are asked for and not given, imaginary parts that are dropped.

Every public function with a parameter for a dtype is called with dtypes of 64 bits, and with Python's, as the conformance tables call it.
"""

import functools
import importlib
import inspect
import warnings

import conformance
import numpy as np
import pytest

PARAMETERS = ("dtype", "preferred_element_type", "new_dtype", "index_dtype")
ASKED = {"float64": "float64", "int64": "int64", "complex128": "complex128", "float": float, "int": int}
TOLD = {
    "64": "Explicitly requested dtype",
    "complex": "Casting complex values to real discards the imaginary part",
    "cast": "Casting from complex to real dtypes will soon",
}


# JAX says nothing either; initializers are asked again when they are called.
QUIET = ("jax.numpy.fromstring", "jax.nn.initializers.")


def dtypes_of(seen):
    return {kind for kind, text in TOLD.items() for w in seen if str(w.message).startswith(text)}


def cases(tables=conformance.TABLES):
    """(function, parameter, requested dtype, case): the first case of each function that gives the parameter no value."""
    for table in tables:
        for line, name in conformance.functions(table):
            if line.reason:
                continue
            function = f"{line.module}.{name}"
            try:
                parameters = inspect.signature(conformance.function_of(importlib.import_module("ferrax"), function)).parameters
            except (TypeError, ValueError):
                continue
            for parameter in [p for p in PARAMETERS if p in parameters]:
                free = [c for c in conformance.cases_of(line, name) if not c.wide and f"{parameter}=" not in c.expression][:2]
                for case in free:
                    for wanted in ASKED:
                        yield f"{function} {parameter}={wanted} {case.expression}", function, parameter, wanted, case


def warned(lib, function, parameter, wanted, case):
    """The kinds of warnings of a call, or None where it is refused."""
    lib.config.update("jax_enable_x64", False)
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            names = conformance.environment(lib, case)
            names["f"] = functools.partial(names["f"], **{parameter: ASKED[wanted]})
            operands = [lib.numpy.asarray(x) if hasattr(x, "dtype") and not case.as_numpy else x for x in case.operands]
            del seen[:]
            eval(case.expression, {**names, **{f"a{k}": x for k, x in enumerate(operands)}})
        except Exception:
            return None
        return dtypes_of(seen)


@pytest.mark.ours
@pytest.mark.parametrize("table", conformance.TABLES)
def test_requested_dtypes(jax, table):
    """A dtype of 64 bits warns of the narrower one wherever it is taken; Python's classes, which ask for no size, do not."""
    wrong = []
    for call, function, parameter, wanted, case in cases([table]):
        got = warned(jax, function, parameter, wanted, case)
        if got is not None and not function.startswith(QUIET) and ("64" in got) != (wanted not in ("float", "int")):
            wrong.append(f"{call}: {sorted(got)}")
    assert not wrong, "\n".join(wrong)


# Calls of a complex c and a real f that drop imaginary parts, and what is said of it.
DROPPED = {
    "complex": """
        lax.convert_element_type(c, 'float32') | lax.convert_element_type(c.astype('complex64'), jnp.int32)
        jnp.asarray(c, dtype='float32') | jnp.array(c, dtype='float32') | jnp.asarray(np.array([1 + 2j]), dtype='float32') | jnp.float32(c) | jnp.int32(c)
        jnp.sum(c, dtype='float32') | jnp.prod(c, dtype='float32') | jnp.mean(c, dtype='float32') | jnp.cumsum(c, dtype='float32') | jnp.cumprod(c, dtype='int32')
        jnp.nanprod(c, dtype='float32') | jnp.nancumsum(c, dtype='float32') | jnp.nancumprod(c, dtype='float32') | jnp.trace(c[:, None] * c, dtype='float32')
        jnp.concatenate([c, c], dtype='float32') | jnp.stack([c, c], dtype='float32') | jnp.hstack([c, c], dtype='float32') | jnp.vstack([c, f], dtype='float32')
        jnp.dstack([c, f], dtype='float32') | jnp.full(2, c, 'float32') | jnp.insert(f, 0, 1 + 2j) | jnp.pad(f, 1, constant_values=1 + 2j)
        jnp.add.reduce(c, dtype='float32') | jnp.add.accumulate(c, dtype='float32') | jnp.multiply.reduce(c, dtype='float32') | f.at[:].set(c) | f.at[0].set(1 + 2j)
        jax.jit(lambda c: lax.convert_element_type(c, 'float32'))(c) | jax.vmap(lambda c: lax.convert_element_type(c, 'float32'))(c)
    """,
    "cast": """
        c.astype('float32') | jnp.astype(c, 'int32') | jnp.linspace(0j, 1 + 2j, 3, dtype='float32') | jnp.logspace(0j, 1 + 2j, 3, dtype='float32')
        jnp.geomspace(1 + 0j, 1 + 2j, 3, dtype='float32') | jnp.cov(c, dtype='float32') | jax.jit(lambda c: c.astype('float32'))(c)
    """,
    "": """
        c.astype(bool) | jnp.real(c) | jnp.abs(c) | c.view('float32') | jnp.zeros_like(c, dtype='float32') | jnp.ones_like(c, dtype='int32') | jnp.var(c) | jnp.std(c)
        jnp.linalg.norm(c) | jnp.linalg.eigvalsh(c[:, None] * c.conj()) | jnp.fft.irfft(c) | jnp.angle(c) | jnp.isclose(c, c) | jnp.sum(c) | jnp.sort(c) | jnp.where(f > 0, f, c)
        jax.grad(lambda x: (x * (1 + 2j)).real)(1.0) | jax.grad(lambda x: jnp.abs(x * c).sum())(1.0) | jax.jvp(jnp.abs, (c,), (c,)) | jnp.linalg.svd(c[:, None] * c)
        jax.grad(lambda x: jnp.fft.fft(x).real.sum())(f) | jnp.convolve(c, f) | jnp.dot(c, f) | jnp.histogram(f) | jnp.roots(f) | f.at[0].add(1) | jnp.polyfit(f, f, 0)
    """,
}
CALLS = [(kind, call.strip()) for kind, lines in DROPPED.items() for line in lines.strip().splitlines() for call in line.split(" | ")]


@pytest.mark.parametrize(("kind", "call"), CALLS, ids=[call for _, call in CALLS])
def test_imaginary_parts_that_are_dropped(jax, jnp, lax, kind, call):
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "c": jnp.array([1 + 2j, 3 - 1j]), "f": jnp.ones(2)}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        eval(call, names)
    assert dtypes_of(seen) == ({kind} if kind else set())


def test_a_complex_number_is_no_float(jax, jnp, lax):
    for call in (lambda: float(jnp.array(1 + 2j)), lambda: lax.convert_element_type(1 + 2j, "float32"), lambda: lax.full((2,), 1 + 2j, "float32")):
        with pytest.raises(TypeError, match="must be a string or a real number, not 'complex'"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()


# NumPy values of 64 bits are converted to the requested dtype directly, not by way of the 32 bits that arrays have by default.
WIDE = [
    (np.uint64(2**63), "float32", 2.0**63),
    (np.array([2**64 - 1], "uint64"), "float32", 2.0**64),
    (np.array([-(2**40)]), "float32", -(2.0**40)),
    (np.int64(2**40), "bfloat16", 2.0**40),
    (np.array([2147483520.0 + 63]), "int32", 2147483583),
    (np.array([1.0, 2.0], np.longdouble), "float32", [1, 2]),
    (np.array([1 + 1e-3j], np.clongdouble), "complex64", [1 + 1e-3j]),
    (np.array([1, 2.5], object), "float32", [1, 2.5]),
]


@pytest.mark.parametrize(("x", "dtype", "want"), WIDE, ids=[f"{getattr(x, 'dtype', type(x))} {d}" for x, d, _ in WIDE])
def test_wide_numbers_of_numpy(jnp, x, dtype, want):
    for got in (jnp.asarray(x, dtype=dtype), jnp.array(x, dtype=dtype)):
        np.testing.assert_allclose(np.asarray(got).astype(complex), want, rtol=1e-6)
