"""Distributions and statistics of samples: against values of mpmath (golden/statistics.json), by their laws, outside the support, at NaN, under transforms."""

import importlib
import inspect
import json
import math
import pathlib
import warnings

import numpy as np
import pytest

ROWS = json.loads(pathlib.Path(__file__).parents[1].joinpath("golden").joinpath("statistics.json").read_text())
LOG = ("logpdf", "logpmf", "logcdf", "logsf")
FUNCTIONS = (*LOG, *[name[3:] for name in LOG], "ppf", "isf")
# One choice of shape parameters for each distribution, and the support of the standard variable.
SHAPES = {
    "bernoulli": ((0.375,), 0, 1), "beta": ((2.0, 3.5), 0, 1), "betabinom": ((6.0, 1.5, 2.0), 0, 6), "binom": ((6.0, 0.25), 0, 6), "cauchy": ((), -np.inf, np.inf),
    "chi2": ((3.0,), 0, np.inf), "expon": ((), 0, np.inf), "gamma": ((2.5,), 0, np.inf), "gennorm": ((1.5,), -np.inf, np.inf), "geom": ((0.375,), 1, np.inf),
    "gumbel_l": ((), -np.inf, np.inf), "gumbel_r": ((), -np.inf, np.inf), "laplace": ((), -np.inf, np.inf), "logistic": ((), -np.inf, np.inf),
    "nbinom": ((2.5, 0.5), 0, np.inf), "norm": ((), -np.inf, np.inf), "pareto": ((3.0,), 1, np.inf), "poisson": ((2.5,), 0, np.inf), "t": ((4.0,), -np.inf, np.inf),
    "truncnorm": ((-1.5, 2.0), -1.5, 2.0), "uniform": ((), 0, 1), "vonmises": ((1.5,), -np.inf, np.inf), "wrapcauchy": ((0.375,), 0, 2 * np.pi),
}  # fmt: skip
DISCRETE = ("bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson")
CONTINUOUS = [name for name in SHAPES if name not in DISCRETE]
# Parameters outside their domain.
INVALID = {
    "bernoulli": (1.5,), "beta": (-1.0, 1.0), "betabinom": (-1.0, 1.0, 1.0), "binom": (4.0, 1.5), "chi2": (-1.0,), "gamma": (0.0,), "gennorm": (-1.0,), "geom": (0.0,),
    "nbinom": (3.0, 0.0), "pareto": (0.0,), "poisson": (-1.0,), "t": (0.0,), "truncnorm": (1.0, 1.0), "vonmises": (-1.0,), "wrapcauchy": (1.0,),
}  # fmt: skip
inf, nan = np.inf, np.nan


def distribution(jax, name):
    return importlib.import_module(f"{jax.__name__}.scipy.stats.{name}")


def functions(jax, name):
    module = distribution(jax, name)
    return {f: getattr(module, f) for f in FUNCTIONS if hasattr(module, f)}


def points(name):
    """Points inside the support, away from its ends."""
    _, low, high = SHAPES[name]
    if name in DISCRETE:
        return np.arange(low, min(high, 6) + 1.0)
    near = max(low, -3.0)
    return np.linspace(near, min(high, near + 6), 12)[1:-1]


def moved(f):
    return "scale" in inspect.signature(f).parameters


# ---------------------------------------------------------------- values


@pytest.mark.ours
@pytest.mark.parametrize("dtype, eps", [("float32", 2e-5), ("float64", 2e-13)])
def test_values_are_those_of_mpmath(jax, x64, dtype, eps):
    # Logarithms to a relative or absolute error; the functions themselves to that of their logarithm: a density of e^-700 has 700 times the error of -700.
    wrong = []
    for name, shapes, xs, values in ROWS:
        fs = functions(jax, name) if name != "entropy" else {"entropy": distribution(jax, "poisson").entropy}
        for log, want in values.items():
            want = np.array([-inf if v is None else v for v in want])
            for f, expected, size in (
                (log, want, np.maximum(1, abs(want))),
                (log[3:], np.exp(want), np.exp(want) * np.maximum(1, abs(np.maximum(want, -1e4)))),
            ):
                if f not in fs:
                    continue
                got = fs[f](np.array(xs, dtype), *[np.array(s, dtype) for s in shapes])
                assert got.dtype == dtype
                got, room = np.asarray(got, "float64"), np.nan_to_num(size * eps, posinf=0) + float(np.finfo(dtype).tiny)
                # Half the shape parameters of the beta distribution's integral in f32 cost a digit more.
                if not ((got == expected) | (abs(got - np.nan_to_num(expected, neginf=1e300)) <= room * (8 if name == "beta" else 1))).all():
                    wrong.append(f"{name}.{f}{shapes}: {got}, not {expected} at {xs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.ours
def test_tails_keep_their_logarithms(jax, jnp):
    stats = jax.scipy.stats
    np.testing.assert_allclose(stats.gamma.logsf(jnp.float32(1e4), 2.5), -9986.469022316259, rtol=1e-6)
    np.testing.assert_allclose(stats.gamma.logcdf(jnp.float32(2**-100), 2.5), -174.4877687423334, rtol=1e-6)
    np.testing.assert_allclose(stats.beta.logcdf(jnp.float32(2**-40), 5.0, 3.0), -135.5849136742671, rtol=1e-6)
    np.testing.assert_allclose(stats.cauchy.logsf(jnp.float32(-1e10)), -3.183098861837907e-11, rtol=1e-6)
    np.testing.assert_allclose(stats.truncnorm.logsf(jnp.float32(-1e4), -2e4, 0.0), 0, atol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: stats.gamma.logsf(x, 2.5))(300.0), -0.9950166, rtol=1e-6)


@pytest.mark.ours
def test_entropy_of_poisson(jax, jnp):
    entropy = jax.scipy.stats.poisson.entropy
    np.testing.assert_array_equal(entropy(jnp.array([0.0, -1.0, nan])), [0, nan, nan])
    assert entropy(jnp.ones((2, 1)), jnp.zeros(3)).shape == (2, 3) and entropy(3).dtype == "float32"
    np.testing.assert_allclose(jax.jacfwd(entropy)(3.0), (entropy(3.01) - entropy(2.99)) / 0.02, rtol=1e-3)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_integrate_to_one(jax, x64, name):
    shapes, low, high = SHAPES[name]
    pdf = distribution(jax, name).pdf
    # Tanh-sinh quadrature on intervals, tan of the angle on the line.
    t = np.linspace(-2.9, 2.9, 2001)
    u, weight = np.tanh(np.pi / 2 * np.sinh(t)), np.pi / 2 * np.cosh(t) / np.cosh(np.pi / 2 * np.sinh(t)) ** 2 * (t[1] - t[0])
    if name == "vonmises":
        low, high = -np.pi, np.pi
    if np.isfinite(high):
        x, slope = low + (high - low) * (u + 1) / 2, (high - low) / 2
    elif np.isfinite(low):
        x, slope = low + (1 + u) / (1 - u), 2 / (1 - u) ** 2
    else:
        x, slope = np.tan(np.pi / 2 * u), np.pi / 2 / np.cos(np.pi / 2 * u) ** 2
    inside = abs(u) < 1 - 1e-14
    total = np.sum((np.asarray(pdf(x, *shapes)) * slope * weight)[inside])
    np.testing.assert_allclose(total, 1, rtol=2e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_sum_to_one(jax, name):
    shapes, _, _ = SHAPES[name]
    fs = functions(jax, name)
    np.testing.assert_allclose(np.asarray(fs["pmf"](np.arange(0, 60.0), *shapes)).sum(), 1, rtol=1e-5)
    if "cdf" in fs:
        k = np.arange(0, 9.0)
        np.testing.assert_allclose(fs["cdf"](k, *shapes), np.cumsum(fs["pmf"](k, *shapes)), rtol=1e-5)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_slopes_of_distribution_functions_are_densities(jax, name):
    shapes, _, _ = SHAPES[name]
    fs, x = functions(jax, name), points(name).astype("float32")
    pdf = np.asarray(fs["pdf"](x, *shapes))
    for f, sign in (("cdf", 1), ("sf", -1), ("logcdf", 1), ("logsf", -1)):
        if f in fs:
            slope = jax.vmap(jax.grad(lambda t, f=f: fs[f](t, *shapes)))(x)
            size = 1 if f in ("cdf", "sf") else np.exp(-np.asarray(fs[f](x, *shapes)))
            np.testing.assert_allclose(slope, sign * pdf * size, rtol=2e-4, atol=1e-6, err_msg=f)


@pytest.mark.parametrize("name", list(SHAPES))
def test_functions_agree_among_themselves(jax, name):
    shapes, _, _ = SHAPES[name]
    fs, x = functions(jax, name), points(name).astype("float32")
    value = {f: np.asarray(g(x, *shapes)) for f, g in fs.items() if f not in ("ppf", "isf")}
    for f, v in value.items():
        if f.startswith("log"):
            np.testing.assert_allclose(np.exp(v), value[f[3:]], rtol=1e-5)
    if "sf" in value:
        np.testing.assert_allclose(value["cdf"] + value["sf"], 1, rtol=1e-5)
    if name in CONTINUOUS:
        for f, g in (("ppf", "cdf"), ("isf", "sf")):
            if f in fs:
                np.testing.assert_allclose(fs[f](value[g], *shapes), x, rtol=2e-4, atol=1e-5)
    for f, g in fs.items():
        argument = np.linspace(0.125, 0.875, 7, dtype="float32") if f in ("ppf", "isf") else x
        if moved(g):
            back = 2 * g(argument, *shapes) + 3 if f in ("ppf", "isf") else g(argument, *shapes)
            back = back - np.log(2) if f == "logpdf" else back / 2 if f == "pdf" else back
            np.testing.assert_allclose(g(argument if f in ("ppf", "isf") else 2 * argument + 3, *shapes, loc=3, scale=2), back, rtol=1e-4, atol=1e-5)
        elif "loc" in inspect.signature(g).parameters:
            np.testing.assert_allclose(g(argument + 3, *shapes, loc=3), g(argument, *shapes), rtol=1e-6)


@pytest.mark.ours
@pytest.mark.parametrize("name", list(SHAPES))
def test_programs_and_batches_give_the_same(jax, name):
    shapes, _, _ = SHAPES[name]
    for f, g in functions(jax, name).items():
        x = np.linspace(0.125, 0.875, 7, dtype="float32") if f in ("ppf", "isf") else points(name).astype("float32")
        y = g(x, *shapes)
        np.testing.assert_array_equal(jax.jit(g)(x, *shapes), y)
        np.testing.assert_allclose(jax.vmap(lambda t, g=g: g(t, *shapes))(x), y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(g(x[:, None], *[np.full((1, 3), s, "float32") for s in shapes])[:, -1], y, rtol=1e-6) if shapes else None


# ---------------------------------------------------------------- edges


@pytest.mark.ours
@pytest.mark.parametrize("name", list(SHAPES))
def test_outside_the_support(jax, jnp, name):
    shapes, low, high = SHAPES[name]
    below, above = [low - 1.0, -inf] if low > -inf else [-inf], [high + 1.0, inf] if high < inf else [inf]
    ends = {"pdf": (0, 0), "pmf": (0, 0), "logpdf": (-inf, -inf), "logpmf": (-inf, -inf), "cdf": (0, 1), "sf": (1, 0), "logcdf": (-inf, 0), "logsf": (0, -inf)}
    for f, g in functions(jax, name).items():
        if f not in ends:
            continue
        np.testing.assert_array_equal(g(jnp.array(below), *shapes), ends[f][0], err_msg=f)
        np.testing.assert_array_equal(g(jnp.array(above), *shapes), ends[f][1], err_msg=f)
        at = jnp.array([*below, *above])
        slopes = jax.vmap(jax.grad(g, tuple(range(1 + len(shapes)))), (0, *[None] * len(shapes)))(at, *map(float, shapes)) if name != "beta" else ()
        for slope in slopes:
            np.testing.assert_array_equal(slope, 0, err_msg=f)


@pytest.mark.ours
@pytest.mark.parametrize("name", list(SHAPES))
def test_nan_and_parameters_outside_their_domain(jax, jnp, name):
    shapes, _, _ = SHAPES[name]
    for f, g in functions(jax, name).items():
        assert np.isnan(g(nan, *shapes)), f
        for i in range(len(shapes)):
            assert np.isnan(g(0.5 if f in ("ppf", "isf") else points(name)[0], *shapes[:i], nan, *shapes[i + 1 :])), f
        if name in INVALID:
            assert np.isnan(g(0.5, *INVALID[name])), f
        if moved(g):
            assert np.isnan(g(0.5, *shapes, scale=0.0)) and np.isnan(g(0.5, *shapes, scale=-1.0)) and np.isnan(g(0.5, *shapes, loc=nan)), f


@pytest.mark.ours
@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name not in ("gennorm", "vonmises", "wrapcauchy")])
def test_quantiles_at_the_ends(jax, jnp, name):
    shapes, low, high = SHAPES[name]
    fs = functions(jax, name)
    q = jnp.array([0.0, 1.0, -0.5, 1.5])
    if "ppf" in fs:
        np.testing.assert_array_equal(fs["ppf"](q, *shapes), [low, high, nan, nan])
    if "isf" in fs:
        np.testing.assert_array_equal(fs["isf"](q, *shapes), [high, low, nan, nan])


@pytest.mark.ours
def test_the_ends_of_bernoulli(jax, jnp):
    bernoulli = jax.scipy.stats.bernoulli
    np.testing.assert_array_equal(bernoulli.ppf(jnp.array([-0.1, 0, 0.5, 0.625, 0.75, 1, 2]), 0.375), [nan, 0, 0, 0, 1, 1, nan])
    np.testing.assert_array_equal(bernoulli.cdf(jnp.array([-1, 0, 0.5, 1, 2]), 0.375), [0, 0.625, 0.625, 1, 1])
    # Certain events have probability 1, not 0 * -inf.
    np.testing.assert_array_equal(bernoulli.pmf(jnp.array([0, 1, 0, 1]), jnp.array([0.0, 0.0, 1.0, 1.0])), [1, 0, 0, 1])


@pytest.mark.ours
def test_probability_is_zero_at_numbers_that_are_not_integers(jax, jnp):
    for name in DISCRETE:
        shapes, _, _ = SHAPES[name]
        assert distribution(jax, name).pmf(1.5, *shapes) == 0


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", list(SHAPES))
def test_dtypes(jax, jnp, name):
    shapes, _, _ = SHAPES[name]
    for f, g in functions(jax, name).items():
        assert g(jnp.ones(2, "int8"), *map(int, shapes)).dtype == "float32", f
        with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got <class 'list'> at position 0."):
            g([0.5, 1.0], *shapes)


@pytest.mark.ours
@pytest.mark.parametrize("name", list(SHAPES))
def test_half_precision(jax, jnp, name):
    shapes, _, _ = SHAPES[name]
    for f, g in functions(jax, name).items():
        for dtype in ("float16", "bfloat16"):
            assert g(jnp.ones(2, dtype), *shapes).dtype == dtype, f


@pytest.mark.ours
def test_numbers_stay_weak_and_complex_ones_are_refused(jax, jnp):
    stats = jax.scipy.stats
    assert stats.norm.pdf(1).weak_type and stats.expon.logsf(0.5, 0.0, 2.0).weak_type and not stats.norm.pdf(jnp.float32(1)).weak_type
    with pytest.raises(TypeError, match="norm.logpdf does not support complex-valued inputs."):
        stats.norm.logpdf(1j)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.pdf(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'df'"):
        stats.gamma.pdf(1.0, 2.0, df=3)
    assert "the shape, positive" in stats.gamma.pdf.__doc__


def test_multinomial(jax, jnp):
    multinomial = jax.scipy.stats.multinomial
    p = jnp.array([0.25, 0.25, 0.5])
    total = sum(float(multinomial.pmf(jnp.array([i, j, 3 - i - j]), 3, p)) for i in range(4) for j in range(4 - i))
    np.testing.assert_allclose(total, 1, rtol=1e-5)
    np.testing.assert_allclose(multinomial.pmf(jnp.array([1, 0, 2]), 3, p), 3 * 0.25 * 0.25, rtol=1e-5)
    assert multinomial.logpmf(jnp.array([1, 1, 2]), 3, p) == -inf and multinomial.logpmf(jnp.array([-1, 2, 2]), 3, p) == -inf
    np.testing.assert_allclose(multinomial.pmf(jnp.array([3, 0]), 3, jnp.array([1.0, 0.0])), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="x and n must be of integer type; got x.dtype=float32, n.dtype=float32"):
        multinomial.logpmf(jnp.array([1.0, 2.0, 0.0]), jnp.array(3), p)


@pytest.mark.ours
def test_multinomial_takes_batches(jax, jnp):
    multinomial = jax.scipy.stats.multinomial
    x, p = jnp.array([[1, 2], [3, 0]]), jnp.array([0.25, 0.75])
    np.testing.assert_allclose(multinomial.pmf(x, 3, p), [27 / 64, 1 / 64], rtol=1e-5)
    np.testing.assert_allclose(multinomial.pmf(x, jnp.array([3, 4]), p), [27 / 64, 0], rtol=1e-5)


def test_dirichlet(jax, jnp):
    dirichlet, alpha = jax.scipy.stats.dirichlet, jnp.array([1.0, 2.0, 3.0])
    x = jnp.array([0.25, 0.25, 0.5])
    np.testing.assert_allclose(dirichlet.pdf(x, alpha), 60 * 0.25 * 0.25, rtol=1e-5)
    np.testing.assert_allclose(dirichlet.pdf(x[:2], alpha), 60 * 0.25 * 0.25, rtol=1e-5)
    np.testing.assert_allclose(dirichlet.logpdf(jnp.stack([x, x[::-1]], 1), alpha), np.log([60 / 16 / 1, 60 * 0.25 * 0.25**2]), rtol=1e-5)
    np.testing.assert_array_equal(dirichlet.logpdf(jnp.array([[0.5, -0.5], [0.5, 1.0], [0.5, 0.5]]), alpha), -inf)
    with pytest.raises(ValueError, match=r"`alpha` must be one-dimensional; got alpha.shape=\(\)"):
        dirichlet.logpdf(x, 2.0)
    with pytest.raises(ValueError, match=r"got x.shape=\(4,\), alpha.shape=\(3,\)"):
        dirichlet.logpdf(jnp.ones(4) / 4, alpha)


@pytest.mark.ours
def test_dirichlet_without_answers(jax, jnp):
    dirichlet = jax.scipy.stats.dirichlet
    assert np.isnan(dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.array([-1.0, 1.0]))) and np.isnan(dirichlet.pdf(jnp.array([nan, 0.5]), jnp.array([1.0, 1.0])))
    np.testing.assert_array_equal(jax.grad(lambda x: dirichlet.pdf(x, jnp.array([2.0, 0.5])))(jnp.array([0.5, 0.75])), 0)
    with pytest.raises(ValueError, match="`x` must have either"):
        dirichlet.logpdf(0.5, jnp.array([1.0, 2.0]))


# ---------------------------------------------------------------- samples


def brute_mode(x):
    values, counts = np.unique(x, return_counts=True)
    return values[counts.argmax()], counts.max()


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_mode(jax, jnp, dtype, axis):
    x = np.random.default_rng(3).integers(0, 4, (7, 5)).astype(dtype)
    mode, count = jax.scipy.stats.mode(jnp.array(x), axis=axis)
    want = brute_mode(x.ravel()) if axis is None else list(zip(*[brute_mode(r) for r in np.moveaxis(x, axis, -1)], strict=True))
    np.testing.assert_array_equal(mode, want[0])
    np.testing.assert_array_equal(count, want[1])
    assert mode.dtype == dtype and count.dtype == "int32"
    kept = jax.scipy.stats.mode(jnp.array(x), axis=axis, keepdims=True)
    np.testing.assert_array_equal(np.ravel(kept.mode), np.ravel(mode))
    assert kept.mode.shape == x.sum(axis=axis, keepdims=True).shape


def test_mode_at_edges(jax, jnp):
    mode = jax.scipy.stats.mode
    assert np.isnan(mode(jnp.array([])).mode) and mode(jnp.array([])).count == 0
    assert mode(jnp.ones((2, 0))).mode.shape == (0,) and mode(jnp.array(3)) == (3, 1)
    found = mode(jnp.array([1.0, 2.0, nan, nan]))
    assert np.isnan(found.mode) and found.count == 2
    with pytest.raises(NotImplementedError, match="Logic for `nan_policy` of omit is not implemented"):
        mode(jnp.ones(2), nan_policy="omit")
    with pytest.raises(ValueError, match="Illegal nan_policy value 'foo'; expected one of {'propagate', 'omit', 'raise'}"):
        mode(jnp.ones(2), nan_policy="foo")
    with pytest.raises(TypeError, match="mode requires ndarray or scalar arguments, got <class 'list'> at position 0."):
        mode([1, 2])


@pytest.mark.parametrize(
    "method, want", [("average", [4, 1, 2.5, 2.5]), ("min", [4, 1, 2, 2]), ("max", [4, 1, 3, 3]), ("dense", [3, 1, 2, 2]), ("ordinal", [4, 1, 2, 3])]
)
def test_ranks(jax, jnp, method, want):
    rankdata = jax.scipy.stats.rankdata
    ranks = rankdata(jnp.array([3, 1, 2, 2]), method)
    np.testing.assert_array_equal(ranks, want)
    assert ranks.dtype == "float32"
    table = jnp.array([[3, 1, 2, 2], [0, 0, 0, 0]])
    flat = {"average": 2.5, "min": 1, "max": 4, "dense": 1, "ordinal": [1, 2, 3, 4]}[method]
    for f in (rankdata, jax.jit(rankdata, static_argnums=1, static_argnames="axis")):
        np.testing.assert_array_equal(f(table, method, axis=1), np.stack([want, np.broadcast_to(flat, 4)]))
    np.testing.assert_array_equal(jax.vmap(lambda r: rankdata(r, method))(table), rankdata(table, method, axis=-1))


def test_ranks_at_edges(jax, jnp):
    rankdata = jax.scipy.stats.rankdata
    assert np.isnan(rankdata(jnp.array([3, 1, nan]))).all() and rankdata(jnp.array([])).shape == (0,) and rankdata(3) == 1
    np.testing.assert_array_equal(rankdata(jnp.array([[3, 1], [nan, 2]]), axis=1), [[2, 1], [nan, nan]])
    with pytest.raises(ValueError, match="unknown method 'foo'"):
        rankdata(jnp.ones(2), "foo")
    with pytest.raises(NotImplementedError, match="In order to best JIT compile `rankdata`, we cannot know"):
        rankdata(jnp.ones(2), nan_policy="raise")


@pytest.mark.parametrize("kwargs", [{}, {"axis": 1}, {"axis": None}, {"ddof": 0}, {"keepdims": True, "axis": -1}])
def test_standard_error_of_the_mean(jax, jnp, kwargs):
    x = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
    axis, ddof, keepdims = kwargs.get("axis", 0), kwargs.get("ddof", 1), kwargs.get("keepdims", False)
    want = x.std(axis=axis, ddof=ddof, keepdims=keepdims) / np.sqrt(x.size if axis is None else x.shape[axis])
    np.testing.assert_allclose(jax.scipy.stats.sem(jnp.array(x), **kwargs), want, rtol=1e-5)
    x[1, 2] = nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.nanstd(x, axis=axis, ddof=ddof, keepdims=keepdims) / np.sqrt((~np.isnan(x)).sum(axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(jax.scipy.stats.sem(jnp.array(x), nan_policy="omit", **kwargs), want, rtol=1e-5)


def test_standard_error_refuses(jax, jnp):
    sem = jax.scipy.stats.sem
    assert np.isnan(sem(jnp.array([1.0, nan]))) and sem(jnp.ones(3, "float16")).dtype == "float16" and sem(jnp.ones(3, int)).dtype == "float32"
    with pytest.raises(ValueError, match="raise is not supported"):
        sem(jnp.ones(2), nan_policy="raise")
    with pytest.raises(TypeError, match="sem requires ndarray or scalar arguments, got <class 'list'> at position 0."):
        sem([1.0])


@pytest.mark.parametrize("x, mean, cov", [((2,), (3,), (2, 2)), ((3,), (2,), (2, 2)), ((2,), (2,), (3, 3)), ((4, 2), (3, 2), (2, 2))])
def test_the_normal_distribution_refuses_shapes_that_do_not_fit(jax, jnp, x, mean, cov):
    with pytest.raises(ValueError, match="multivariate_normal.logpdf got incompatible shapes|ncompatible shapes for broadcasting"):
        jax.scipy.stats.multivariate_normal.logpdf(jnp.ones(x), jnp.zeros(mean), jnp.ones(cov))


def test_a_truncated_normal_at_probabilities_near_one(jax):
    """Where a probability is nearly 1 its logarithm is that of what is left: the small number itself, not 0. From scipy."""
    t = importlib.import_module(jax.__name__ + ".scipy.stats").truncnorm
    np.testing.assert_allclose(t.logcdf(10.0, -1e-10, 35.5), -1.523970604710495e-23, rtol=1e-4)
    np.testing.assert_allclose(t.logsf(-10.0, -35.5, 1e-10), -1.523970604710495e-23, rtol=1e-4)
    x = np.linspace(-1.9, 1.9, 20, dtype=np.float32)
    np.testing.assert_allclose(np.exp(t.logcdf(x, -2.0, 2.0)) + np.exp(t.logsf(x, -2.0, 2.0)), 1, rtol=1e-6)
    slope = jax.vmap(jax.grad(t.logcdf), (0, None, None))(x, -2.0, 2.0)
    np.testing.assert_allclose(slope, np.exp(t.logpdf(x, -2.0, 2.0) - t.logcdf(x, -2.0, 2.0)), rtol=1e-4)


@pytest.mark.ours
@pytest.mark.parametrize("name", SHAPES)
def test_half_precision_is_single_rounded_once(jax, name):
    x = np.array([-40, -3, -0.5, 0, 0.1, 0.5, 0.9, 1, 2, 3, 5, 12, 60, 300])
    for dtype in (np.float16, jax.numpy.bfloat16):
        half = [np.asarray(v, dtype) for v in (x, *SHAPES[name][0])]
        for f in functions(jax, name).values():
            got = f(*half)
            assert got.dtype == dtype
            with np.errstate(over="ignore"):
                want = np.asarray(f(*[v.astype(np.float32) for v in half])).astype(dtype)
            np.testing.assert_array_equal(np.asarray(got, float), want.astype(float))


# ---------------------------------------------------------------- derivatives outside of the domain


def slopes(jax, f, moving, arguments):
    """The derivatives by the arguments that move, in reverse and in forward mode, alone and under vmap."""
    at = tuple(range(len(moving)))
    lanes = [np.full(2, a, np.float32) for a in arguments]
    yield "grad", jax.grad(f, at)(*arguments)
    yield "jacfwd", jax.jacfwd(f, at)(*arguments)
    yield "vmap", jax.vmap(jax.grad(f, at))(*lanes)
    yield "sum", jax.grad(lambda *xs: jax.numpy.sum(f(*xs)), at)(*lanes)


def undefined(jax, name):
    """Calls whose value is nan: at a point that is nan, of invalid shapes, at a scale of zero."""
    _, low, _ = SHAPES[name]
    shapes = SHAPES[name][0]
    for f_name, f in functions(jax, name).items():
        x = 0.5 if f_name in ("ppf", "isf") else float(max(low, 0)) + 1.0
        yield f_name, f, (nan, *shapes)
        if name in INVALID:
            yield f_name, f, (x, *INVALID[name])
        if moved(f) and name not in DISCRETE:
            yield f_name, f, (x, *shapes, 0.0, 0.0)
            yield f_name, f, (x, *shapes, 0.0, -1.0)


@pytest.mark.ours
@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_nan_where_values_are(jax, name):
    # A selected constant has the derivative 0, which an optimizer takes for a minimum.
    wrong = []
    for f_name, f, arguments in undefined(jax, name):
        assert np.isnan(f(*arguments))
        if name in DISCRETE and f_name != "ppf":  # a step function of its point, which has no slope there
            g, arguments = (lambda f, k: lambda *shapes: f(k, *shapes))(f, arguments[0]), arguments[1:]
        else:
            g = f
        if not arguments:
            continue
        # Nothing has the derivatives of the incomplete beta function by its shapes.
        for way, got in slopes(jax, g, arguments if name != "beta" or "pdf" in f_name else arguments[:1], arguments):
            if not all(np.isnan(x).all() for x in got):
                wrong.append(f"{f_name}{arguments} {way}: {got}")
    assert not wrong, "\n".join(wrong)


# ---- large parameters, where logarithms of powers and of gamma functions cancel


def _log_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


# The formulas, in double precision: (module, function, value of numbers, points and parameters of a size n)
CANCELLING = {
    "gamma": ("logpdf", lambda x, a: (a - 1) * math.log(x) - x - math.lgamma(a), lambda n, z: (n + z * n**0.5, n)),
    "chi2": ("logpdf", lambda x, a: (a / 2 - 1) * math.log(x / 2) - x / 2 - math.lgamma(a / 2) - math.log(2), lambda n, z: (n + z * (2 * n) ** 0.5, n)),
    "poisson": ("logpmf", lambda k, m: k * math.log(m) - m - math.lgamma(k + 1), lambda n, z: (round(n + z * n**0.5), n)),
    "binom": (
        "logpmf",
        lambda k, n, p: _log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p),
        lambda n, z: (round(0.25 * n + z * n**0.5 / 3), n, 0.25),
    ),
    "nbinom": (
        "logpmf",
        lambda k, n, p: math.lgamma(n + k) - math.lgamma(k + 1) - math.lgamma(n) + n * math.log(p) + k * math.log1p(-p),
        lambda n, z: (round(3 * n + 3 * z * n**0.5), n, 0.25),
    ),
    "beta": (
        "logpdf",
        lambda x, a, b: (a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - _log_beta(a, b),
        lambda n, z: (0.3 + 0.25 * z * n**-0.5, 0.3 * n, 0.7 * n),
    ),
    "betabinom": (
        "logpmf",
        lambda k, n, a, b: _log_choose(n, k) + _log_beta(k + a, n - k + b) - _log_beta(a, b),
        lambda n, z: (round(n / 4 + z * n**0.5), n, round(n / 8), round(3 * n / 8)),
    ),
    "t": (
        "logpdf",
        lambda x, n: math.lgamma((n + 1) / 2) - math.lgamma(n / 2) - 0.5 * math.log(n * math.pi) - (n + 1) / 2 * math.log1p(x * x / n),
        lambda n, z: (z, n),
    ),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", CANCELLING)
def test_densities_of_large_parameters(jax, jnp, x64, name):
    """JAX loses a digit for each by which a parameter grows, so that none is left of float32 at 1e7."""
    function, exact, arguments = CANCELLING[name]
    f = getattr(distribution(jax, name), function)
    for n in (8.0, 12.0, 160.0, 1e4, 1e6, 1.2e7):
        for z in (-2.5, -1.0, 0.0, 0.5, 3.0):
            args = [np.float32(v) for v in arguments(n, z)]
            if (name != "t" and args[0] <= 0) or (name in ("binom", "betabinom") and args[0] >= args[1]):
                continue
            want = exact(*[float(v) for v in args])
            # the reference itself is a difference of numbers as large as n log(n)
            np.testing.assert_allclose(f(*args), want, rtol=2e-6, atol=2e-6 + 1e-15 * n * math.log(n) * 30)
            np.testing.assert_allclose(jax.jit(f)(*args), f(*args), rtol=1e-6, atol=1e-6)
            if name not in ("betabinom", "t") and n < 1e6:
                slopes = jax.grad(f, tuple(range(1, len(args))))(*[np.float64(v) for v in args])
                for i, slope in enumerate(slopes, 1):
                    if name in ("binom", "nbinom") and i == 1:
                        continue  # numbers of trials
                    h = 1e-5 * float(args[i])
                    up, down = ([float(v) + (j == i) * s for j, v in enumerate(args)] for s in (h, -h))
                    np.testing.assert_allclose(slope, (exact(*up) - exact(*down)) / (2 * h), rtol=1e-4, atol=1e-5)


@pytest.mark.ours
@pytest.mark.parametrize("n", [12, 900, 10**5, 10**7])
def test_multivariate_densities_of_large_parameters(jax, jnp, x64, n):
    p = np.float32([0.25, 0.125, 0.625])
    multinomial, dirichlet = (importlib.import_module(f"{jax.__name__}.scipy.stats.{name}") for name in ("multinomial", "dirichlet"))
    for counts in ([n // 4, n // 8, n - n // 4 - n // 8], [n, 0, 0], [0, 5, n - 5], [n // 3, n // 3, n - 2 * (n // 3)]):
        k = np.int32(counts)
        want = math.lgamma(n + 1) - sum(math.lgamma(int(v) + 1) for v in k) + sum(int(v) * math.log(float(q)) for v, q in zip(k, p, strict=True))
        np.testing.assert_allclose(multinomial.logpmf(k, n, p), want, rtol=2e-6, atol=2e-6 + n * 1e-13)
        np.testing.assert_allclose(jax.grad(lambda p, k=k: multinomial.logpmf(k, n, p))(p), k / p, rtol=1e-6)
    x = np.float32([0.25, 0.125, 0.625])
    for alpha in (np.float32([0.25, 0.125, 0.625]) * n, np.float32([0.25 * n, 0.5, 0.75 * n]), np.float32([1, 1, n])):
        a = [float(v) for v in alpha]
        want = math.lgamma(sum(a)) + sum((v - 1) * math.log(float(q)) - math.lgamma(v) for v, q in zip(a, x, strict=True))
        np.testing.assert_allclose(dirichlet.logpdf(x, alpha), want, rtol=2e-6, atol=2e-6 + n * 1e-13)
        slope = jax.grad(dirichlet.logpdf, 1)(x.astype(float), alpha.astype(float))
        digamma = jax.scipy.special.digamma
        np.testing.assert_allclose(slope, np.log(x.astype(float)) - digamma(alpha.astype(float)) + digamma(sum(a)), rtol=1e-6, atol=1e-9)


@pytest.mark.ours
def test_tails_of_large_parameters(jax, jnp, x64):
    """Logarithms of probabilities that underflow, from the same weights."""
    gamma, beta = distribution(jax, "gamma"), distribution(jax, "beta")
    for f, args in (
        (gamma.logsf, (1.06e6, 1e6)), (gamma.logcdf, (0.94e6, 1e6)), (beta.logcdf, (0.2, 3e4, 7e4)), (beta.logsf, (0.4, 3e4, 7e4)),
    ):  # fmt: skip
        np.testing.assert_allclose(f(*map(np.float32, args)), f(*map(np.float64, map(np.float32, args))), rtol=1e-5)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beta_distribution_at_tiny_arguments(jax, jnp, x64, dtype):
    """There cdf(x) is x^a / (a B(a, b)) and sf(x) the rest, though 1 - x is 1."""
    beta = distribution(jax, "beta")
    room = 5e-6 if dtype == "float32" else 1e-12
    for a, b in ((0.01, 0.02), (0.05, 3.0), (2.0, 3.0)):
        for x in (1e-30, 1e-20, 1e-12):
            a32, b32, x32 = (np.dtype(dtype).type(v) for v in (a, b, x))
            log = math.lgamma(a32 + b32) - math.lgamma(a32) - math.lgamma(b32) - math.log(a32) + float(a32) * math.log(x32)
            cdf = math.exp(log)
            for f, want in ((beta.cdf, cdf), (beta.sf, 1 - cdf), (beta.logcdf, log), (beta.logsf, math.log1p(-cdf))):
                for way in (f, jax.jit(f), lambda x, a, b, f=f: jax.vmap(f, (0, None, None))(x[None], a, b)[0]):
                    if abs(want) > 1e-36:
                        np.testing.assert_allclose(way(jnp.asarray(x32), a32, b32), want, rtol=room * (1 + abs(log)))
            if cdf > 1e-30:
                np.testing.assert_allclose(jax.grad(beta.sf)(x32, a32, b32), -a32 * cdf / x32, rtol=room * 40)


@pytest.mark.ours
def test_rising_and_falling_factorials_of_large_numbers(jax):
    poch = jax.scipy.special.poch
    for z in (12.5, 1e3, 1e6):
        z = np.float32(z)
        np.testing.assert_allclose(poch(z, np.float32(-2)), 1 / ((float(z) - 1) * (float(z) - 2)), rtol=3e-6)
        np.testing.assert_allclose(poch(z, np.float32(0.5)) * poch(z + np.float32(0.5), np.float32(-0.5)), 1, rtol=3e-6)


@pytest.mark.ours
def test_divergences_of_near_numbers(jax, jnp, x64):
    kl_div = jax.scipy.special.kl_div
    for p in (1e-3, 1.0, 1e7):
        for t in (-0.4, -1e-2, -1e-4, 0.0, 1e-5, 1e-3, 0.2, 3.0):
            p32, q32 = np.float32(p), np.float32(p * (1 + t))
            u = (float(q32) - float(p32)) / float(p32)
            want = float(p32) * (u - math.log1p(u)) if abs(u) > 1e-3 else float(p32) * u * u * (0.5 - u / 3 + u * u / 4)
            np.testing.assert_allclose(kl_div(p32, q32), want, rtol=2e-6, atol=1e-30)
    np.testing.assert_array_equal(kl_div(jnp.array([0.0, 0.0, 1.0, -1.0]), jnp.array([0.0, 2.0, 0.0, 1.0])), [0, 2, inf, inf])
    np.testing.assert_allclose(jax.grad(kl_div, (0, 1))(3.0, 3.3), (math.log(3 / 3.3), 1 - 3 / 3.3), rtol=1e-10)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_truncated_normal_of_small_pieces(jax, jnp, x64, dtype):
    """The mass of a piece is the density times its length, whatever is cut off around: no difference of two probabilities."""
    t = jax.scipy.stats.truncnorm
    rtol = 1e-12 if dtype == "float64" else 8e-6
    for a, b in ((5.0, 8.0), (-1.0, 1.0), (-8.0, -5.0), (0.0, 1e-6), (-30.0, -20.0)):
        for step in (2.0**-9, 2.0**-12):
            step = step * min(b - a, 1)
            low, high = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
            x, y = low + jnp.asarray(step, dtype), high - jnp.asarray(step, dtype)
            exact = lambda f, *v: float(f(*(np.float64(w) for w in v)))
            for f, at in ((t.cdf, x), (t.sf, y)):
                # by Simpson's rule over the density in double precision
                ends = np.linspace(float(low), float(x), 65) if f is t.cdf else np.linspace(float(y), float(high), 65)
                p = np.array([exact(t.pdf, e, low, high) for e in ends])
                want = (p[0] + p[-1] + 4 * p[1:-1:2].sum() + 2 * p[2:-1:2].sum()) * (ends[-1] - ends[0]) / 64 / 3
                np.testing.assert_allclose(f(at, low, high), want, rtol=rtol * (10 if abs(a) > 10 else 1), atol=1e-37)
                slope = jax.grad(f)(at, low, high)
                np.testing.assert_allclose(abs(slope), exact(t.pdf, at, low, high), rtol=10 * rtol, atol=1e-37)
    for x, a, b in ((-20.5, -30.0, -20.0), (7.5, 5.0, 8.0)):
        x, a, b = (jnp.asarray(v, dtype) for v in (x, a, b))
        np.testing.assert_allclose(t.cdf(x, a, b) + t.sf(x, a, b), 1, rtol=4 * float(jnp.finfo(dtype).eps))


@pytest.mark.ours
def test_densities_where_a_parameter_is_near_its_bound(jax, jnp, x64):
    stats = jax.scipy.stats
    for c in (0.9999, 1 - 2.0**-20, 2.0**-30):
        single, double = np.float32(c), np.float64(np.float32(c))
        for x in (1e-3, 1.0, 3.0, 6.0):
            want = stats.wrapcauchy.logpdf(np.float64(np.float32(x)), double)
            np.testing.assert_allclose(stats.wrapcauchy.logpdf(np.float32(x), single), want, rtol=1e-6)
    # one binomial coefficient is 1 at both ends, whatever n is
    for n, p in ((1000.0, 1e-4), (1e6, 1e-7), (5.0, 0.5)):
        p32 = np.float32(p)
        np.testing.assert_allclose(stats.binom.logpmf(np.float32(0), np.float32(n), p32), n * np.log1p(-float(p32)), rtol=3e-7)
        np.testing.assert_allclose(stats.binom.logpmf(np.float32(n), np.float32(n), p32), n * np.log(float(p32)), rtol=3e-7)
        np.testing.assert_allclose(jax.grad(lambda n, p=p: stats.binom.logpmf(0.0, n, p))(n), np.log1p(-p), rtol=1e-9)
