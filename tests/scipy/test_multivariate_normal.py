"""The multivariate normal distribution, and densities estimated from samples, against their definitions."""

import importlib

import numpy as np
import pytest


@pytest.fixture(scope="module")
def normal(jax):
    return importlib.import_module(f"{jax.__name__}.scipy.stats.multivariate_normal")


def logpdf(x, mean, cov):
    d = np.asarray(x, float) - mean
    return -(d @ np.linalg.solve(cov, d) + len(cov) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1]) / 2


def covariances(n, batch=()):
    a = np.random.default_rng(n).normal(size=(*batch, n, n)).astype("float32")
    return a @ np.swapaxes(a, -1, -2) + np.eye(n, dtype="float32")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_density_of_the_normal_distribution(jax, jnp, normal, n):
    cov = covariances(n)
    x, mean = np.random.default_rng(1).normal(size=(2, 4, n)).astype("float32")
    want = [logpdf(a, b, cov) for a, b in zip(x, mean, strict=True)]
    np.testing.assert_allclose(normal.logpdf(x, mean, cov), want, rtol=1e-4)
    np.testing.assert_allclose(normal.pdf(x, mean, cov), np.exp(want), rtol=1e-3)
    np.testing.assert_allclose(jax.jit(normal.logpdf)(x, mean, cov), want, rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(normal.logpdf, (0, 0, None))(x, mean, cov), want, rtol=1e-4)
    np.testing.assert_allclose(normal.logpdf(x, mean[0], cov), [logpdf(a, mean[0], cov) for a in x], rtol=1e-4)


def test_batches_of_covariances(jax, jnp, normal):
    cov, x = covariances(3, (2,)), np.random.default_rng(2).normal(size=(4, 1, 3)).astype("float32")
    got = normal.logpdf(x, np.zeros(3, "float32"), cov)
    np.testing.assert_allclose(got, [[logpdf(r[0], 0, c) for c in cov] for r in x], rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(normal.logpdf, (None, None, 0), 1)(x[:, 0], np.zeros(3, "float32"), cov), got, rtol=1e-5)


def test_one_dimension_and_multiples_of_the_identity(jax, jnp, normal):
    stats = jax.scipy.stats
    x = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(normal.logpdf(x, 0.5, 4.0), stats.norm.logpdf(x, 0.5, 2.0), rtol=1e-6)
    np.testing.assert_allclose(normal.logpdf(x, jnp.zeros(2), 4.0), stats.norm.logpdf(x, 0, 2.0).sum(), rtol=1e-6)
    assert np.isnan(normal.logpdf(1.0, 0.0, -1.0)) and np.isnan(normal.pdf(x, jnp.zeros(2), jnp.zeros((2, 2))))
    assert normal.logpdf(jnp.ones(2, int), jnp.zeros(2, int), jnp.eye(2, dtype=int)).dtype == "float32"


def test_slopes_of_the_normal_density(jax, jnp, normal):
    cov, x, mean = covariances(3), np.array([0.5, -1, 2], "float32"), np.array([0.1, 0.2, 0.3], "float32")
    inverse, d = np.linalg.inv(cov), x - mean
    by_x, by_cov = jax.grad(normal.logpdf, (0, 2))(x, mean, cov)
    np.testing.assert_allclose(by_x, -inverse @ d, rtol=1e-3)
    np.testing.assert_allclose(by_cov, (np.outer(inverse @ d, inverse @ d) - inverse) / 2, rtol=1e-3, atol=1e-5)


def test_refusals_of_the_normal_distribution(jax, jnp, normal):
    one = jnp.ones(2)
    with pytest.raises(NotImplementedError, match="allow_singular argument of multivariate_normal.logpdf"):
        normal.logpdf(one, one, jnp.eye(2), allow_singular=True)
    for cov in (jnp.eye(3), jnp.ones(2)):
        with pytest.raises(ValueError, match="multivariate_normal.logpdf got incompatible shapes"):
            normal.logpdf(one, one, cov)
    with pytest.raises(ValueError, match="shapes"):
        normal.logpdf(jnp.ones((5, 3)), one, jnp.eye(2))
    with pytest.raises(TypeError):
        normal.logpdf([1.0, 2.0], one, jnp.eye(2))


# ---------------------------------------------------------------- kernel density estimates

SAMPLE = np.array([[1.0, 2, 4, 7, 3], [0, 1, -1, 2, 5]], "float32")
WEIGHTS = np.array([1.0, 2, 3, 4, 5], "float32")


def estimate(points, sample, covariance, weights):
    return np.array(
        [sum(w * np.exp(logpdf(p, c, np.asarray(covariance, float))) for w, c in zip(weights, sample.T, strict=True)) for p in np.asarray(points).T]
    )


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("method, factor", [(None, "scott"), ("silverman", "silverman"), (0.5, 0.5), (lambda k: 2.0 * k.d / k.neff, "callable")])
def test_estimates(jax, jnp, weights, method, factor):
    kde = jax.scipy.stats.gaussian_kde(jnp.array(SAMPLE), method, weights=None if weights is None else jnp.array(weights))
    w = np.full(5, 0.2) if weights is None else weights / weights.sum()
    neff = 1 / (w**2).sum()
    factor = {"scott": neff ** (-1 / 6), "silverman": neff ** (-1 / 6), "callable": 4 / neff}.get(factor, factor)
    np.testing.assert_allclose(kde.covariance, np.cov(SAMPLE, aweights=w) * factor**2, rtol=1e-5)
    np.testing.assert_allclose(kde.inv_cov, np.linalg.inv(np.cov(SAMPLE, aweights=w) * factor**2), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([kde.neff, kde.n, kde.d], [neff, 5, 2], rtol=1e-6)
    points = np.array([[1.0, 2, 3, 30], [0, 0, 1, 1]], "float32")
    want = estimate(points, SAMPLE, kde.covariance, w)
    np.testing.assert_allclose(kde(jnp.array(points)), want, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(kde.pdf(points[:, 0]), want[:1], rtol=1e-4)
    np.testing.assert_allclose(kde.logpdf(points[:, :3]), np.log(want[:3]), rtol=1e-4)
    np.testing.assert_allclose(jax.jit(lambda k, p: k.evaluate(p))(kde, points), want, rtol=1e-4, atol=1e-12)


def test_integrals_of_estimates(jax, jnp):
    gaussian_kde = jax.scipy.stats.gaussian_kde
    kde, other = gaussian_kde(jnp.array(SAMPLE[0])), gaussian_kde(jnp.array(SAMPLE[1]), weights=jnp.array(WEIGHTS))
    x = np.linspace(-30, 40, 20001, dtype="float32")
    step = x[1] - x[0]
    np.testing.assert_allclose(np.sum(kde(x)) * step, 1, rtol=1e-4)
    inside = (x > 1) & (x < 3)
    np.testing.assert_allclose(kde.integrate_box_1d(1.0, 3.0), np.sum(np.asarray(kde(x))[inside]) * step, rtol=1e-2)
    np.testing.assert_allclose(kde.integrate_box_1d(-jnp.inf, jnp.inf), 1, rtol=1e-5)
    np.testing.assert_allclose(kde.integrate_gaussian(1.0, 2.0), np.sum(kde(x) * np.asarray(jax.scipy.stats.norm.pdf(x, 1, np.sqrt(2)))) * step, rtol=1e-4)
    np.testing.assert_allclose(kde.integrate_kde(other), np.sum(kde(x) * other(x)) * step, rtol=1e-4)
    np.testing.assert_allclose(other.integrate_kde(kde), kde.integrate_kde(other), rtol=1e-5)


def test_draws_from_estimates_are_those_of_jax(jax, jnp):
    gaussian_kde = jax.scipy.stats.gaussian_kde
    kde = gaussian_kde(jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(kde.resample(jax.random.key(0), (3,)), [[-0.9606608, 1.3658744, 3.164999]], rtol=1e-4)
    np.testing.assert_allclose(kde.resample(jax.random.key(0)), [-0.9606608], rtol=1e-4)
    weighted = gaussian_kde(jnp.array(SAMPLE), weights=jnp.array(WEIGHTS))
    want = [[3.5636725, 1.6345803, 4.1161995, 0.72979164], [-0.7086428, 3.1948524, 1.1608983, 2.158608]]
    np.testing.assert_allclose(weighted.resample(jax.random.key(1), (4,)), want, rtol=1e-4)


@pytest.mark.ours
def test_estimates_far_from_the_origin_and_draws_of_any_shape(jax, jnp):
    # JAX loses the kernels' width beside a large location, and draws along one axis alone.
    near, far = jax.scipy.stats.gaussian_kde(jnp.array(SAMPLE)), jax.scipy.stats.gaussian_kde(jnp.array(SAMPLE) + 2.0**14)
    points = np.array([[1.0, 2.0], [0.0, 3.0]], "float32")
    np.testing.assert_allclose(far(points + 2.0**14), near(points), rtol=1e-3)
    assert near.resample(jax.random.key(0), (2, 3)).shape == (2, 2, 3)


def test_estimates_are_frozen_pytrees(jax, jnp):
    kde = jax.scipy.stats.gaussian_kde(jnp.array(SAMPLE))
    assert [x.shape for x in jax.tree.leaves(kde)] == [(), (2, 5), (5,), (2, 2), (2, 2)]
    with pytest.raises(AttributeError):
        kde.neff = 3
    slope = jax.grad(lambda data: jax.scipy.stats.gaussian_kde(data).logpdf(jnp.array([1.0, 2.0]))[0])(jnp.array(SAMPLE))
    assert slope.shape == (2, 5) and np.isfinite(slope).all()


def test_refusals_of_estimates(jax, jnp):
    gaussian_kde = jax.scipy.stats.gaussian_kde
    data = jnp.array(SAMPLE)
    for error, match, call in (
        (TypeError, "requires ndarray or scalar arguments", lambda: gaussian_kde([1.0, 2.0])),
        (ValueError, "`dataset` input should have multiple elements.", lambda: gaussian_kde(jnp.array([1.0]))),
        (NotImplementedError, "gaussian_kde does not support complex data", lambda: gaussian_kde(data * 1j)),
        (ValueError, "`weights` input should be of length n", lambda: gaussian_kde(data, weights=jnp.ones(2))),
        (ValueError, "`weights` input should be one-dimensional.", lambda: gaussian_kde(data, weights=jnp.ones((5, 1)))),
        (ValueError, "`bw_method` should be 'scott', 'silverman', a scalar, or a callable.", lambda: gaussian_kde(data, "foo")),
        (ValueError, "`bw_method` should be", lambda: gaussian_kde(data, jnp.ones(2))),
        (ValueError, "points have dimension 3, dataset has dimension 2", lambda: gaussian_kde(data)(jnp.ones((3, 2)))),
        (ValueError, r"integrate_box_1d\(\) only handles 1D pdfs", lambda: gaussian_kde(data).integrate_box_1d(0.0, 1.0)),
        (ValueError, "KDEs are not the same dimensionality", lambda: gaussian_kde(data).integrate_kde(gaussian_kde(data[0]))),
        (ValueError, "mean does not have dimension 2", lambda: gaussian_kde(data).integrate_gaussian(jnp.ones(3), jnp.eye(3))),
        (ValueError, "covariance does not have dimension 2", lambda: gaussian_kde(data).integrate_gaussian(jnp.ones(2), jnp.eye(3))),
        (NotImplementedError, "only 1D box integrations are supported", lambda: gaussian_kde(data).integrate_box(0.0, 1.0)),
        (NotImplementedError, "dynamically changing the bandwidth method is not supported", lambda: gaussian_kde(data).set_bandwidth()),
    ):
        with pytest.raises(error, match=match):
            call()
