"""GPJax: kernels, means, likelihoods, exact and variational processes, training."""

import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from outcomes import Programs

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
        "sum": lambda: ks.RBF() + ks.Linear(),
        "product": lambda: ks.RBF() * ks.Periodic(),
        "arccosine": lambda: ks.ArcCosine(),
    }.items():
        t("gram " + name, lambda make=make: make().gram(X[:4]).as_matrix())
        t("cross " + name, lambda make=make: make().cross_covariance(X[:3], TEST[:2]))
        t("predict " + name, lambda make=make: (lambda d: (d.mean, d.variance))(posterior(make()).predict(TEST, train_data=DATA)))
    t("rff", lambda: ks.RFF(base_kernel=ks.RBF(n_dims=1), num_basis_fns=8, key=K).gram(X[:4]).as_matrix())
    t("constant mean", lambda: gpx.mean_functions.Constant(2.0)(X[:3]))
    for name in ("conjugate_mll", "conjugate_loocv"):
        f = getattr(gpx.objectives, name)
        t(name, lambda f=f: f(posterior(), DATA))
        t(name + " grad", lambda f=f: jax.grad(lambda v: f(posterior(gpx.kernels.RBF(lengthscale=v)), DATA))(0.8))
    t(
        "prior",
        lambda: (lambda d: (d.mean, d.covariance_matrix if hasattr(d, "covariance_matrix") else d.covariance()))(
            gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=ks.RBF()).predict(TEST)
        ),
    )
    t("samples", lambda: posterior().predict(TEST, train_data=DATA).sample(key=K, sample_shape=(2,)).shape)
    t("jit predict", lambda: jax.jit(lambda x: posterior().predict(x, train_data=DATA).mean)(TEST))
    t("log prob", lambda: posterior().predict(TEST, train_data=DATA).log_prob(jnp.sin(TEST[:, 0])))

    def trained():
        opt, history = gpx.fit(
            model=posterior(gpx.kernels.Matern52()),
            objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d),
            train_data=DATA,
            optim=optax.adam(0.05),
            num_iters=15,
            key=K,
            verbose=False,
        )
        return history, opt.prior.kernel.lengthscale.unwrap()

    t("fit", trained)
    t("fit scipy", lambda: gpx.fit_scipy(model=posterior(), objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d), train_data=DATA, verbose=False)[1][-1])

    def svgp():
        prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
        q = gpx.variational_families.VariationalGaussian(model=prior * gpx.likelihoods.Bernoulli(), inducing_inputs=jnp.linspace(-2, 2, 5)[:, None])
        data = gpx.Dataset(X=X, y=(Y > 0).astype(jnp.float32))
        q, history = gpx.fit(
            model=q,
            objective=lambda q, d: -gpx.objectives.elbo(q, d),
            train_data=data,
            optim=optax.adam(0.05),
            num_iters=10,
            key=K,
            batch_size=8,
            verbose=False,
        )
        return history, q(TEST).mean

    t("svgp", svgp)
    t(
        "collapsed",
        lambda: gpx.objectives.collapsed_elbo(
            gpx.variational_families.CollapsedVariationalGaussian(model=posterior(), inducing_inputs=jnp.linspace(-2, 2, 5)[:, None]), DATA
        ),
    )

    def laplace():
        prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
        p = (prior * gpx.likelihoods.Poisson()).init_latent(DATA.n, K)
        return gpx.objectives.log_posterior_density(p, gpx.Dataset(X=X, y=jnp.round(jnp.exp(Y))))

    # The Gram matrix is singular but for 1e-6, beyond what float32 resolves.
    t("poisson", laplace, within=1e-3)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_gpjax(name):
    PROGRAMS.check(name)
