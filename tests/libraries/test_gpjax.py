"""GPJax: kernels, and exact posteriors with each."""

import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import assert_agrees, cases, outcomes, stored

K = jax.random.key(0)
rng = np.random.RandomState(0)
X = jnp.sort(jnp.asarray(rng.uniform(-3, 3, (20, 1)), jnp.float32), axis=0)
Y = jnp.sin(X) + 0.1 * jnp.asarray(rng.randn(20, 1), jnp.float32)
DATA = gpx.Dataset(X=X, y=Y)
TEST = jnp.linspace(-3, 3, 7).reshape(-1, 1)


def posterior(kernel=None, mean=None):
    prior = gpx.gps.Prior(mean_function=mean or gpx.mean_functions.Zero(), kernel=kernel or gpx.kernels.RBF())
    return prior * gpx.likelihoods.Gaussian()


def programs(t):
    ks = gpx.kernels
    for name, make in {
        "rbf": lambda: ks.RBF(),
        "matern12": lambda: ks.Matern12(),
        "matern32": lambda: ks.Matern32(lengthscale=0.5),
        "matern52": lambda: ks.Matern52(variance=2.0),
        "periodic": lambda: ks.Periodic(period=1.5),
        "powered": lambda: ks.PoweredExponential(power=0.7),
        "rational": lambda: ks.RationalQuadratic(alpha=0.5),
        "linear": lambda: ks.Linear(),
        "polynomial": lambda: ks.Polynomial(degree=2),
        "white": lambda: ks.White(),
    }.items():
        t("gram " + name, lambda make=make: make().gram(X[:4]).as_matrix())
        t("cross " + name, lambda make=make: make().cross_covariance(X[:3], TEST[:2]))
        t("predict " + name, lambda make=make: (lambda d: (d.mean, d.variance))(posterior(make()).predict(TEST, train_data=DATA)))


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_gpjax(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
