"""The Python array API standard 2024.12, function by function: `array_api_standard.py` has its tables.

Signatures and special cases are the standard's own; other values are those of `array_api_strict`, where it is installed. 64-bit types are on, for then the
default dtypes are the standard's. Where JAX contradicts the standard, JAX is right, and a row below says so.
"""

import inspect
import itertools
import math
import re

import array_api_standard as standard
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from strategies import x64

EVERY = {**standard.elementwise(standard.ONE), **standard.elementwise(standard.TWO)}
TABLES = {"": standard.MAIN, "linalg.": standard.LINALG, "fft.": standard.FFT}
SIGNATURES = [(space + name, text) for space, table in TABLES.items() for name, text in standard.signatures(table)]
SIGNATURES += [(name, "x, /") for name in standard.elementwise(standard.ONE)] + [(name, "x1, x2, /") for name in standard.elementwise(standard.TWO)]

# JAX's own defaults, which mean the same; except that `expand_dims` requires its axis in JAX.
NONE = {"step", "keepdims", "correction", "norm"}
OTHER_DEFAULTS = {"astype": {"copy"}, "from_dlpack": {"device", "copy"}, "expand_dims": {"axis"}}


def find(jnp, name):
    for part in name.split("."):
        jnp = getattr(jnp, part)
    return jnp


def standard_signature(text):
    scope = {}
    exec(f"def f({text}): ...", scope)
    return inspect.signature(scope["f"])


@pytest.mark.parametrize("name, text", SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_signature(jnp, name, text):
    """Every call that the standard allows is taken, and what it leaves out has the standard's value."""
    ours, theirs = inspect.signature(find(jnp, name)), standard_signature(text)
    positional = [p for p in theirs.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in theirs.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    only = [p for p in positional if p.kind is p.POSITIONAL_ONLY]
    required = [p.name for p in named if p.default is p.empty or (name, p.name) == ("expand_dims", "axis")]
    for k in range(len([p for p in positional if p.default is p.empty]), len(positional) + 1):
        ours.bind(*positional[:k], **{p: 0 for p in required if p not in [q.name for q in positional[:k]]})
    everything = {p.name: 0 for p in named}
    bound = ours.bind(*only, **everything)
    swallowed = bound.arguments.get("kwargs", {})
    assert not set(everything) & set(swallowed), f"swallows {swallowed}"
    defaults = {p.name: p.default for p in theirs.parameters.values() if p.default is not p.empty and p.name not in OTHER_DEFAULTS.get(name, ())}
    given = {p.name: defaults[p.name] if p.default is None and p.name in NONE else p.default for p in ours.parameters.values() if p.name in defaults}
    assert given == {n: defaults[n] for n in given} and {n for n in defaults if n in everything} <= set(given)


def test_constants_attributes_and_operators(jnp):
    for name in standard.CONSTANTS:
        want = None if name == "newaxis" else getattr(math, name)
        assert getattr(jnp, name) is want or getattr(jnp, name) == want or (name == "nan" and math.isnan(jnp.nan)), name
    x = jnp.ones((2, 3))
    for name in [f"__{n}__" for n in standard.OPERATORS.split()] + list(standard.ATTRIBUTES):
        assert hasattr(x, name), name
    assert x.T.shape == x.mT.shape == (3, 2) and jnp.ones((2, 3, 4)).mT.shape == (2, 4, 3)
    assert (x.ndim, x.shape, x.size, x.dtype) == (2, (2, 3), 6, jnp.float32)
    assert x.to_device(x.device).tolist() == x.tolist()
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is jnp
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.12")


# ---------------------------------------------------------------- special cases

# Where JAX, and we with it, give something else.
AS_PYTHON = "nan, as Python and NumPy have it: inf // 1.0"
ZERO = "a zero of the other sign"
JAX_SAYS = {
    "floor_divide(+inf, pos) = inf": AS_PYTHON,
    "floor_divide(+inf, neg) = -inf": AS_PYTHON,
    "floor_divide(-inf, pos) = -inf": AS_PYTHON,
    "floor_divide(-inf, neg) = inf": AS_PYTHON,
    "floor_divide(-0, >0) = -0": ZERO,
    "remainder(±0, <0) = -0": ZERO,
}


def evaluate(text, x1, x2):
    text = re.sub(r"(?<![\w.])-0(?![\w.])", "-0.0", text)
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(eval(text, {**vars(np), "x1": x1, "x2": x2})), np.shape(x1))


def check(got, text, x1, x2, tol, case):
    """`got` is what the expression says: values nearly, nan as nan, zeros with their sign, and any sign after ±."""
    got = np.asarray(got)
    if text.startswith("±"):
        got, text = np.abs(got), text[1:]
    want = evaluate(text, x1, x2)
    ok = np.isclose(got, want, rtol=tol, atol=0, equal_nan=True)
    if (want.dtype.kind == "f" and "+0" in text) or "-0" in text or text == "x1":
        ok &= np.isnan(want) | (np.signbit(got) == np.signbit(want))
    assert ok.all(), f"{case}: of {x1[~ok][:4]}, {x2[~ok][:4]} gives {got[~ok][:4]}, not {want[~ok][:4]}"


def operands(words, dtype):
    combinations = list(itertools.product(*(standard.WORDS[w] for w in words)))
    with np.errstate(all="ignore"):
        columns = [np.array(c).astype(dtype) for c in zip(*combinations, strict=True)]
    return columns if len(columns) == 2 else [columns[0], columns[0]]


REAL = [pytest.param(*c, id=c[0]) for c in standard.cases(standard.REAL)]
COMPLEX = [pytest.param(*c, id=c[0]) for c in standard.cases(standard.COMPLEX)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case, name, words, results", REAL)
def test_special_case(jax, jnp, x64, dtype, case, name, words, results):
    x1, x2 = operands(words, dtype)
    f = getattr(jnp, name)
    args = (x1, x2)[: len(words)]
    tol = 1e-6 if dtype == "float32" else 1e-15
    outcomes = [(f(*map(jnp.asarray, args)), case), (jax.jit(f)(*args), f"jit {case}")]
    for got, what in outcomes:
        if case in JAX_SAYS:
            with pytest.raises(AssertionError):
                check(got, results[0], x1, x2, tol, what)
        else:
            check(got, results[0], x1, x2, tol, what)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case, name, words, results", COMPLEX)
def test_special_case_of_complex_numbers(jnp, x64, dtype, case, name, words, results):
    x1, x2 = operands(words, "float32" if dtype == "complex64" else "float64")
    z = np.empty(x1.shape, dtype)
    z.real, z.imag = x1, x2
    out = np.asarray(getattr(jnp, name)(jnp.asarray(z)))
    tol = 1e-6 if dtype == "complex64" else 1e-14
    for part, text in zip((out.real, out.imag), results, strict=False):
        check(part if len(results) == 2 else out, text, x1, x2, tol, case)


# ---------------------------------------------------------------- values


@pytest.fixture(scope="session")
def strict():
    """The standard's reference implementation, which takes nothing that the standard does not ask for."""
    xp = pytest.importorskip("array_api_strict")
    xp.set_array_api_strict_flags(api_version="2024.12")
    return xp


KINDS = {
    "bool": ("bool",),
    "integral": standard.DTYPES[1:9],
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
TAKES = {
    "numeric": ("integral", "real floating", "complex floating"),
    "all": tuple(KINDS),
    "tests": ("integral", "real floating", "complex floating"),
    "real": ("integral", "real floating"),
    "powers": ("integral", "real floating"),
    "floating": ("real floating", "complex floating"),
    "complex": ("complex floating",),
    "integral or bool": ("bool", "integral"),
    "integral": ("integral",),
    "bool": ("bool",),
    "real floating": ("real floating",),
}
OWN_DOMAIN = {"acosh": (1, 50), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "log": (0, 50), "log1p": (-0.9, 50), "reciprocal": (0.1, 50)}


def numbers(draw, name, dtype, shape, second=False):
    """An array of numbers for which the standard defines the function's result."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return draw(hnp.arrays(dtype, shape))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(info.min, -50), 50
        if second and name in ("floor_divide", "remainder"):
            low = 1
        if second and name in ("bitwise_left_shift", "bitwise_right_shift", "pow"):
            low, high = 0, 3 if name == "pow" else info.bits - 2
        return draw(hnp.arrays(dtype, shape, elements=st.integers(low, high)))
    low, high = OWN_DOMAIN.get(name, (0.1, 50) if second and name == "divide" else (-50, 50))
    if name == "pow" and not second:
        low = 0.1
    real = lambda: draw(hnp.arrays("float64", shape, elements=st.floats(low, high, allow_subnormal=False).map(lambda v: round(v, 3))))
    return real().astype(dtype) if dtype.kind == "f" else (real() + 1j * real()).astype(dtype)


def same_values(got, want, what, tol=None):
    got = [np.asarray(v) for v in (got if isinstance(got, (tuple, list)) else [got])]
    want = [np.asarray(v) for v in (want if isinstance(want, (tuple, list)) else [want])]
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"{what}: {g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        tol_ = tol or (1e-10 if w.dtype in ("float64", "complex128") else 2e-4)
        scale = np.max(np.abs(w[np.isfinite(w)]), initial=1) if w.dtype.kind in "fc" else 0
        for part in (np.real, np.imag) if w.dtype.kind == "c" else (np.asarray,):
            np.testing.assert_allclose(part(g), part(w), rtol=tol_, atol=tol_ * scale, err_msg=what)


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_elementwise_values_and_dtypes(jax, jnp, strict, name, data):
    of = [d for kind in TAKES[EVERY[name]] for d in KINDS[kind]]
    if name in ("sign", "pow"):
        of += KINDS["complex floating"] if name == "sign" else []
    one = name in standard.elementwise(standard.ONE)
    dtype = data.draw(st.sampled_from(of))
    others = [d for d in of if "uint64" not in (d, dtype) or np.dtype(d).kind == np.dtype(dtype).kind]
    others = [d for d in others if (np.dtype(d).kind in "iu") == (np.dtype(dtype).kind in "iu") and (np.dtype(d).kind == "b") == (np.dtype(dtype).kind == "b")]
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    x1 = numbers(data.draw, name, dtype, shapes.input_shapes[0])
    args = [x1] if one else [x1, numbers(data.draw, name, data.draw(st.sampled_from(others)), shapes.input_shapes[1], second=True)]
    with x64(jax), np.errstate(all="ignore"):
        want = getattr(strict, name)(*[strict.asarray(a) for a in args])
        if name == "pow" and x1.dtype.kind in "iu" and args[1].ndim == 0:
            want = strict.astype(want, strict.asarray(x1).dtype)  # as in JAX, a known exponent does not take part in promotion
        same_values(getattr(jnp, name)(*map(jnp.asarray, args)), want, f"{name} of {[a.dtype for a in args]}")


CALLS = [pytest.param(call, kinds, id=call) for kinds, text in standard.FORMS.items() for call in text.split("\n")[1:-1]]


@pytest.mark.parametrize("call, kinds", CALLS)
@given(data=st.data())
def test_values_and_dtypes(jax, jnp, strict, call, kinds, data):
    dtype = data.draw(st.sampled_from([d for kind in kinds for d in KINDS[kind]]))
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=4))
    x = numbers(data.draw, call, dtype, shape)
    if x.dtype.kind == "c":
        x = x.round(1)
    code = compile(call, call, "eval")
    with x64(jax), np.errstate(all="ignore"):
        want = eval(code, {"xp": strict, "x": strict.asarray(x)})
        got = eval(code, {"xp": jnp, "x": jnp.asarray(x)})
        same_values(got, want, f"{call} of {x.dtype}", 1e-2 if "matrix_power" in call or "det(" in call else None)
        if hasattr(want, "_fields"):
            assert got._fields == want._fields


@pytest.mark.parametrize("call", standard.MAKERS.split("\n")[1:-1])
def test_makers(jnp, strict, x64, call):
    same_values(eval(call, {"xp": jnp}), eval(call, {"xp": strict}), call)


def test_types(jnp, strict, x64):
    """Promotion, casting and kinds, for all pairs of dtypes that the standard speaks of."""
    for a, b in itertools.product(standard.DTYPES, repeat=2):
        ours, theirs = (jnp.dtype(a), jnp.dtype(b)), (getattr(strict, a), getattr(strict, b))
        try:
            want = strict.result_type(*theirs)
        except TypeError:
            continue  # kinds are mixed, which the standard leaves open
        assert str(jnp.result_type(*ours)) == str(want).rpartition(".")[2], (a, b)
        assert jnp.can_cast(*ours) == strict.can_cast(*theirs), (a, b)
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", ("integral", "complex floating"))
    for a, kind in itertools.product(standard.DTYPES, kinds):
        assert jnp.isdtype(jnp.dtype(a), kind) == strict.isdtype(getattr(strict, a), kind), (a, kind)
    for a, b in itertools.product(standard.DTYPES, repeat=2):
        assert jnp.isdtype(jnp.dtype(a), jnp.dtype(b)) == (a == b)


def test_where_jax_is_not_the_standard(jnp, x64):
    """The rows of docs/differences-from-jax.md about the standard: JAX's answers."""
    assert jnp.cumulative_prod(jnp.ones(2, "int8")).dtype == "int8"
    assert jnp.searchsorted(jnp.ones(2), 1.0).dtype == "int32"
    with pytest.raises(TypeError):
        jnp.ones(3).__setitem__(0, 1)


def test_limits_of_types(jnp, strict, x64):
    for name in standard.DTYPES[1:9]:
        for of in (jnp.dtype(name), jnp.ones(2, name)):
            got, want = jnp.iinfo(of), strict.iinfo(getattr(strict, name))
            assert (got.bits, got.min, got.max, str(got.dtype)) == (want.bits, want.min, want.max, name)
    for name in standard.DTYPES[9:]:
        for of in (jnp.dtype(name), jnp.ones(2, name)):
            got, want = jnp.finfo(of), strict.finfo(getattr(strict, name))
            fields = ("bits", "eps", "max", "min", "smallest_normal")
            assert [float(getattr(got, f)) for f in fields] == [float(getattr(want, f)) for f in fields], name
            assert str(got.dtype) == str(want.dtype).rpartition(".")[2]


def test_decompositions(jnp, x64):
    """Named results that multiply back."""
    a = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0]])
    for x in (jnp.asarray(a), jnp.asarray(a + 1j)):
        s = x @ jnp.conj(x).T
        q = jnp.linalg.qr(x, mode="complete")
        u = jnp.linalg.svd(x, full_matrices=False)
        e = jnp.linalg.eigh(s)
        d = jnp.linalg.slogdet(s)
        for got, want in ((q.Q @ q.R, x), ((u.U * u.S) @ u.Vh, x), ((e.eigenvectors * e.eigenvalues) @ jnp.conj(e.eigenvectors).T, s)):
            np.testing.assert_allclose(got, want, atol=1e-12)
        np.testing.assert_allclose(d.sign * jnp.exp(d.logabsdet), jnp.linalg.det(s), rtol=1e-12)
        assert (q.Q.shape, q.R.shape, u.U.shape, u.S.shape, u.Vh.shape) == ((2, 2), (2, 3), (2, 2), (2,), (2, 3))
        assert jnp.linalg.svd(x).Vh.shape == (3, 3) and u.S.dtype == e.eigenvalues.dtype == jnp.float64


def test_exchange(jax, jnp):
    x = jnp.arange(6.0).reshape(2, 3)
    assert jnp.from_dlpack(x).tolist() == x.tolist() == np.from_dlpack(x).tolist()
    assert jnp.from_dlpack(x, device=x.device, copy=True).tolist() == x.tolist()
    kind, number = x.__dlpack_device__()
    assert (int(kind), number) == (1, 0)
    assert x.__dlpack__(max_version=(1, 0), dl_device=x.__dlpack_device__(), copy=False) is not None
    assert jnp.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float32", "complex64"])
def test_exchange_reports_where_it_copies(jax, jnp, kind):
    x = np.zeros(33, kind)[1:]  # not aligned to 64 bytes: JAX copies it too
    ours = jnp.from_dlpack(x)
    x[:] = 1
    assert not np.asarray(ours).any()
    with pytest.raises(ValueError, match="copy=False"):
        jnp.from_dlpack(x, copy=False)
    assert jnp.from_dlpack(ours, copy=False).unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()
    with pytest.raises(TypeError):
        jax.jit(jnp.from_dlpack)(ours)


PYTHON_OPERATORS = "+ - * / // % ** @ & | ^ << >> == != < <= > >=".split()


@pytest.mark.parametrize("operator", PYTHON_OPERATORS)
def test_python_operators(jnp, strict, x64, operator):
    """Of arrays, of an array and a Python number on either side, and in place."""
    of = (
        ("int16", "uint8")
        if operator in "& | ^ << >>".split()
        else ("float32", "float64")
        if operator in ("/", "@")
        else ("int16", "uint8", "float32", "float64")
    )
    for dtype in of:
        x = np.array([[1, 2], [3, 4]], dtype)
        forms = [f"x {operator} x", "x"] if operator == "@" else [f"x {operator} x", f"x {operator} 2", f"2 {operator} x"]
        for form in forms:
            same_values(eval(form, {"x": jnp.asarray(x)}), eval(form, {"x": strict.asarray(x)}), f"{form} of {dtype}")
        if operator + "=" not in ("===", "!==", "<=", "<==", ">=", ">=="):
            scope = {"x": jnp.asarray(x)}
            exec(f"y = x\ny {operator}= x", scope)
            same_values(scope["y"], eval(f"x {operator} x", {"x": strict.asarray(x)}), f"{operator}= of {dtype}")
            assert scope["x"].tolist() == x.tolist()
