"""Derivatives of distributions and of what they are made of: forward and reverse mode agree, and both are those of differences in double precision."""

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.special as sp
import ferrax.scipy.stats as stats
import numpy as np
import pytest
from ferrax import random

FAMILIES = {
    "norm": (), "cauchy": (), "laplace": (), "logistic": (), "gumbel_l": (), "gumbel_r": (), "t": (3.0,), "gennorm": (1.5,), "truncnorm": (-1.5, 2.0),
    "uniform": (), "expon": (), "gamma": (2.0,), "chi2": (3.0,), "beta": (2.0, 3.0), "pareto": (2.0,), "vonmises": (2.0,),
}  # fmt: skip
POINTS = np.array([-30.0, -3, -1, -0.5, -1 / 3, 0, 0.25, 1 / 3, 0.5, np.log(2), 0.75, 1, 1.5, 2, 3, 5, 30])
PROBABILITIES = np.array([1e-20, 1e-5, 1e-3, 0.01, 0.25, 0.5, 0.7, 0.75, 0.999, 1 - 1e-9])


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def both_modes(f, x):
    """Slopes of an elementwise function, by both modes, which agree."""
    x = jnp.asarray(x)
    forward = np.asarray(jax.jvp(f, (x,), (jnp.ones_like(x),))[1])
    reverse = np.asarray(jax.vjp(f, x)[1](jnp.ones_like(x))[0])
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-13)
    return reverse


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("of", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
def test_slopes_are_those_of_differences_where_branches_meet(name, of):
    g = getattr(getattr(stats, name), of, None)
    if g is None:
        return
    f = lambda x: g(x, *FAMILIES[name])
    h = 1e-5 * np.maximum(1, abs(POINTS))
    low, value, high = (np.asarray(f(jnp.asarray(x))) for x in (POINTS - h, POINTS, POINTS + h))
    with np.errstate(invalid="ignore"):
        differences = np.stack([high - low, 2 * (value - low), 2 * (high - value)]) / (2 * h)
    # Inside the support, and not where the function itself has a corner or an infinite slope.
    smooth = np.isfinite(differences).all(axis=0) & (abs(differences[1] - differences[2]) < 1e-3 * (1 + abs(differences[0])))
    if of == "pdf":
        smooth &= value > 0
    assert smooth.sum() >= 4
    got = both_modes(f, POINTS[smooth])
    np.testing.assert_allclose(got, differences[0][smooth], rtol=1e-4, atol=1e-3)


QUANTILES = {f"{name}.{of}": (name, of) for name in FAMILIES for of in ("ppf", "isf") if hasattr(getattr(stats, name), of)}


@pytest.mark.parametrize("name", QUANTILES)
def test_slopes_of_quantiles(name):
    family, of = QUANTILES[name]
    f = lambda q: getattr(getattr(stats, family), of)(q, *FAMILIES[family])
    got = both_modes(f, PROBABILITIES)
    inner = PROBABILITIES[:-1]
    h = 1e-4 * np.minimum(inner, 1 - inner)
    want = (np.asarray(f(jnp.asarray(inner + h))) - np.asarray(f(jnp.asarray(inner - h)))) / (2 * h)
    sees = inner > (1e-10 if family in ("pareto", "expon", "uniform") else 0)
    np.testing.assert_allclose(got[:-1][sees], want[sees], rtol=1e-4)
    # The second derivative, by a difference of the first.
    second = both_modes(lambda q: jax.jvp(f, (q,), (jnp.ones_like(q),))[1], inner)
    slope = lambda q: both_modes(f, q)
    np.testing.assert_allclose(second[sees], ((slope(inner + h) - slope(inner - h)) / (2 * h))[sees], rtol=1e-2, atol=1e-3)


ENDS = {
    "norm.ppf": (np.inf, np.inf), "norm.isf": (-np.inf, -np.inf), "cauchy.ppf": (np.inf, np.inf), "cauchy.isf": (-np.inf, -np.inf),
    "logistic.ppf": (np.inf, np.inf), "logistic.isf": (-np.inf, -np.inf), "expon.ppf": (1, np.inf), "gumbel_r.ppf": (np.inf, np.inf),
    "gumbel_l.ppf": (np.inf, np.inf), "uniform.ppf": (1, 1), "pareto.ppf": (0.5, np.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_slopes_of_quantiles_at_the_ends(name):
    family, of = name.split(".")
    f = lambda q: getattr(getattr(stats, family), of)(q, *FAMILIES[family])
    np.testing.assert_array_equal(both_modes(f, [0.0, 1.0]), ENDS[name])
    one = [float(jax.grad(f)(q)) for q in (0.0, 1.0)]
    np.testing.assert_array_equal(one, ENDS[name])


@pytest.mark.parametrize("f", [sp.ndtri, lambda q: sp.erfinv(2 * q - 1), sp.logit])
def test_slopes_of_inverses_at_the_ends(f):
    np.testing.assert_array_equal(both_modes(f, [0.0, 1.0]), [np.inf, np.inf])


# ---------------------------------------------------------------- products with logarithms

LOGS = {"xlogy": (sp.xlogy, 0.0), "xlog1py": (sp.xlog1py, 1.0)}


@pytest.mark.parametrize("name", LOGS)
def test_second_derivatives_of_products_with_logarithms(name):
    f, more = LOGS[name]
    for x in (0.0, 2.0, -1.5):
        for y in (0.5, 3.0):
            want = [[0, 1 / (y + more)], [1 / (y + more), -x / (y + more) ** 2]]
            for hessian in (jax.jacfwd(jax.grad(f, (0, 1)), (0, 1)), jax.jacrev(jax.jacfwd(f, (0, 1)), (0, 1)), jax.jacrev(jax.grad(f, (0, 1)), (0, 1))):
                np.testing.assert_allclose(np.array(hessian(x, y)), want, rtol=1e-12)


@pytest.mark.parametrize("name", LOGS)
def test_products_with_logarithms_at_zero_and_nan(name):
    f, more = LOGS[name]
    assert np.isnan(f(0.0, np.nan)) and np.isnan(f(np.nan, 0.0))
    np.testing.assert_array_equal([f(0.0, y) for y in (-more, -5.0, np.inf)], 0)
    np.testing.assert_array_equal([jax.grad(f, 1)(0.0, y) for y in (-more, -5.0, np.inf)], 0)
    assert np.isnan(jax.grad(f, 1)(0.0, np.nan))


# ---------------------------------------------------------------- draws


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("a", [1e-4, 1e-3, 1e-2, 0.1])
def test_slopes_of_logarithms_of_gamma_draws_of_small_shapes(dtype, a):
    key, a = random.key(5), dtype(a)
    draw = lambda a: random.loggamma(key, a, (200,), dtype)
    logs, slopes = np.asarray(draw(a), np.float64), np.asarray(jax.jacfwd(draw)(a), np.float64)
    np.testing.assert_array_equal(np.asarray(jax.jacrev(draw)(a), np.float64), slopes)
    assert np.isfinite(slopes).all()
    # P(a, x) = x^a / gamma(a + 1) for small x is what stays: the difference of (log P + log gamma(a + 1)) / a.
    small = logs < np.log(np.finfo(dtype).eps)
    assert small.any()
    b, h = float(a), float(a) * 1e-4
    log_gamma = lambda a: np.asarray(sp.gammaln(jnp.asarray(a + 1, jnp.float64)))
    log_p = b * logs - log_gamma(b)
    of = lambda a: (log_p + log_gamma(a)) / a
    want = (of(b + h) - of(b - h)) / (2 * h)
    np.testing.assert_allclose(slopes[small], want[small], rtol=3e-6 if dtype == np.float32 else 1e-7)
    # Elsewhere too it falls with the logarithm, without a step.
    order = np.argsort(logs)
    assert (np.diff(slopes[order]) <= 1e-3 * abs(slopes[order][1:])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["gamma", "beta", "dirichlet", "chisquare"])
def test_slopes_of_draws_of_small_shapes_are_finite(dtype, name):
    for a in (1e-4, 1e-3, 1e-2, 0.1, 1.0):
        parameters = {"gamma": (a,), "beta": (a, 2 * a), "dirichlet": (np.array([a, a, 2 * a]),), "chisquare": (a,)}[name]
        shape = (20,) if name == "dirichlet" else (60,)
        parameters = [jnp.asarray(p, dtype) for p in parameters]
        draw = lambda *p: getattr(random, name)(random.key(1), *p, shape=shape, dtype=dtype)
        forward = jax.jacfwd(draw, tuple(range(len(parameters))))(*parameters)
        reverse = jax.jacrev(draw, tuple(range(len(parameters))))(*parameters)
        for f, r in zip(forward, reverse, strict=True):
            assert np.isfinite(f).all()
            np.testing.assert_allclose(f, r, rtol=1e-4, atol=1e-6 * abs(np.asarray(f)).max() + 1e-30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_draws_of_few_degrees_of_freedom_are_numbers(dtype):
    df = dtype(0.1 if dtype == np.float32 else 0.01)
    for name, parameters in (("t", (df,)), ("f", (df, df))):
        draw = lambda *p: getattr(random, name)(random.key(2), *p, shape=(5000,), dtype=dtype)
        x = np.asarray(draw(*parameters))
        # What is above the greatest number is so in about max^-df of draws of t, and max^(-df / 2) of those of f.
        power = -float(df) / (1 if name == "t" else 2)
        assert not np.isnan(x).any() and np.isinf(x).sum() <= 3 + 5000 * 2 * float(np.finfo(dtype).max) ** power
        slopes = np.asarray(jax.jacfwd(draw)(*parameters))
        assert not np.isnan(slopes[np.isfinite(x)]).any()


@pytest.mark.parametrize("f, end", [(sp.boxcox, 0.0), (sp.boxcox1p, -1.0)])
def test_slopes_of_power_transforms(f, end):
    for lmbda, want in ((0.5, np.inf), (1.0, 1.0), (2.0, 0.0)):
        np.testing.assert_array_equal(both_modes(lambda x: f(x, lmbda), [end]), [want])
    for x in (0.3, 1.0, 1.5, 4.0):
        for lmbda in (-1.5, -0.01, -1e-6, 0.0, 1e-9, 0.005, 0.01, 0.5, 2.0):
            h = 1e-5
            for at in (0, 1):
                g = lambda t: f(t, lmbda) if at == 0 else f(x, t)
                t = (x, lmbda)[at]
                got = both_modes(g, t)
                np.testing.assert_allclose(got, (g(t + h) - g(t - h)) / (2 * h), rtol=1e-6, atol=1e-8)
            second = both_modes(lambda t: jax.jvp(lambda t: f(x, t), (t,), (jnp.ones_like(t),))[1], lmbda)
            h = 1e-3
            np.testing.assert_allclose(second, (f(x, lmbda + h) - 2 * f(x, lmbda) + f(x, lmbda - h)) / h**2, rtol=1e-4, atol=1e-4)


_OUTSIDE = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
# Slopes of the density by the point at the ends of the support, from within.
INF = np.inf
DENSITY_ENDS = {
    ("gamma", (0.5,), 0.0): (INF, -INF), ("gamma", (1.0,), 0.0): (1, -1), ("gamma", (1.5,), 0.0): (0, INF), ("gamma", (2.0,), 0.0): (0, 1),
    ("gamma", (3.0,), 0.0): (0, 0), ("chi2", (1.0,), 0.0): (INF, -INF), ("chi2", (2.0,), 0.0): (0.5, -0.25), ("chi2", (3.0,), 0.0): (0, INF),
    ("chi2", (4.0,), 0.0): (0, 0.25), ("chi2", (6.0,), 0.0): (0, 0), ("beta", (1.0, 1.0), 0.0): (1, 0), ("beta", (1.0, 1.0), 1.0): (1, 0),
    ("beta", (2.0, 3.0), 0.0): (0, 12), ("beta", (2.0, 3.0), 1.0): (0, 0), ("beta", (3.0, 2.0), 1.0): (0, -12), ("beta", (1.0, 3.0), 0.0): (3, -6),
    ("beta", (1.5, 1.5), 0.0): (0, INF), ("beta", (1.5, 1.5), 1.0): (0, -INF), ("beta", (0.5, 0.5), 0.0): (INF, -INF), ("beta", (0.5, 0.5), 1.0): (INF, INF),
    ("expon", (), 0.0): (1, -1), ("pareto", (2.0,), 1.0): (2, -6), ("uniform", (), 0.0): (1, 0), ("uniform", (), 1.0): (1, 0),
}  # fmt: skip


@pytest.mark.parametrize("case", DENSITY_ENDS, ids=str)
def test_slopes_at_the_ends_of_the_support(case):
    """Of the density, its logarithm and the distribution functions: those from within, in both modes, also where a scale moves the end; outside, zero."""
    name, shapes, end = case
    family, (value, slope) = getattr(stats, name), DENSITY_ENDS[case]
    np.testing.assert_allclose(family.pdf(end, *shapes), value, rtol=1e-12)
    np.testing.assert_allclose(both_modes(lambda x: family.pdf(x, *shapes), end), slope, rtol=1e-12)
    np.testing.assert_allclose(both_modes(lambda x: family.pdf(x, *shapes, loc=3.0, scale=2.0), 3 + 2 * end), slope / 4, rtol=1e-12)
    if 0 < value < INF:
        np.testing.assert_allclose(both_modes(lambda x: family.logpdf(x, *shapes), end), slope / value, rtol=1e-12, atol=1e-15)
    elif value == 0:
        assert both_modes(lambda x: family.logpdf(x, *shapes), end) == (INF if slope > 0 or end == 0 else -INF)
    sign = {"cdf": 1, "sf": -1}
    for of in ("cdf", "sf", "logcdf", "logsf"):
        if not hasattr(family, of):
            continue
        f = lambda x, of=of: getattr(family, of)(x, *shapes)
        got, at = both_modes(f, end), float(f(end))
        if of in sign:
            np.testing.assert_allclose(got, sign[of] * value, rtol=1e-12, atol=1e-15)
        elif at == -INF:
            assert got == (INF if of == "logcdf" else -INF)
        else:
            np.testing.assert_allclose(got, (1 if of == "logcdf" else -1) * value, rtol=1e-12, atol=1e-15)
    for beyond in (end - 1e-3, end + 1e-3):
        if float(family.pdf(beyond, *shapes)) == 0:
            assert all(both_modes(lambda x, of=of: getattr(family, of)(x, *shapes), beyond) == 0 for of in _OUTSIDE if hasattr(family, of))


@pytest.mark.parametrize("case", [c for c in DENSITY_ENDS if c[1]], ids=str)
def test_slopes_of_densities_by_their_shapes_at_the_ends(case):
    """Zero where the density stays zero, minus infinity where it goes from infinite to zero, else those of differences."""
    name, shapes, end = case
    family, h = getattr(stats, name), 1e-6
    for k, shape in enumerate(shapes):
        if k != end and np.isinf(family.pdf(end, *shapes)):
            continue  # by the shape of the other end: infinity times a sum of slopes
        f = lambda v, k=k: family.pdf(end, *shapes[:k], v, *shapes[k + 1 :])
        got = both_modes(f, shape)
        low, at, high = (float(f(jnp.asarray(v))) for v in (shape - h, shape, shape + h))
        if np.isfinite([low, at, high]).all():
            np.testing.assert_allclose(got, (high - low) / (2 * h), rtol=1e-5, atol=1e-8)
        else:
            assert abs(got) == INF


WHOLE = {  # densities and probabilities, their points, the sides of a grid of shapes
    "beta": ((0.3,), ((0.5, 1.0, 2.0), (1.0, 2.0, 3.0))), "gamma": ((0.3, 2.5), ((0.5, 1.0, 2.0),)), "chi2": ((0.3, 2.5), ((1.0, 2.0, 4.0),)),
    "t": ((0.3, 2.5), ((1.0, 2.0, 3.0),)), "pareto": ((1.3, 2.5), ((0.5, 1.0, 2.0),)),
}  # fmt: skip


@pytest.mark.parametrize("of", ["logpdf", "pdf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", WHOLE)
def test_second_derivatives_in_whole_shapes(name, of):
    """Those of the incomplete functions by their orders are in test_special.py."""
    f = getattr(getattr(stats, name), of, None)
    if f is None or (name, of) in {("gamma", "logsf"), ("chi2", "logsf"), ("gamma", "logcdf"), ("chi2", "logcdf")}:
        return
    points, sides = WHOLE[name]
    grid = [v.ravel() for v in np.meshgrid(points, *sides)]
    of_density, h = of.endswith("pdf"), 1e-5
    free = tuple(range(0 if of_density else 1, len(grid)))
    slopes = jax.vmap(jax.grad(f, free))
    for outer, inner in ((jax.jacfwd, jax.grad), (jax.jacrev, jax.grad), (jax.jacrev, jax.jacfwd)):
        got = jax.jit(jax.vmap(outer(inner(f, free), free)))(*grid)
        for k, place in enumerate(free):
            high, low = (slopes(*grid[:place], grid[place] + s * h, *grid[place + 1 :]) for s in (1, -1))
            for i in range(len(free)):
                np.testing.assert_allclose(got[i][k], (high[i] - low[i]) / (2 * h), rtol=1e-5, atol=1e-6)
