"""jax-cosmo, NetKet and jaxlie: libraries of the sciences."""

import os

os.environ.setdefault("NETKET_EXPERIMENTAL_SHARDING", "0")

import jax
import jax.numpy as jnp
import jax_cosmo as jc
import jaxlie
import netket as nk
import pytest
from outcomes import Programs

K = jax.random.key(0)


def cosmology(t):
    cosmo = jc.Planck15()
    a = jnp.array([0.3, 0.6, 1.0])
    t("hubble", lambda: jc.background.Esqr(cosmo, a))
    t("distance", lambda: jc.background.radial_comoving_distance(jc.Planck15(), a))
    t("angular", lambda: jc.background.angular_diameter_distance(jc.Planck15(), a))
    t("growth", lambda: (jc.background.growth_factor(jc.Planck15(), a), jc.background.growth_rate(jc.Planck15(), a)))
    k = jnp.logspace(-2, 0, 4)
    t("linear power", lambda: jc.power.linear_matter_power(jc.Planck15(), k))
    t("halofit", lambda: jc.power.nonlinear_matter_power(jc.Planck15(), k))
    t("power grad", lambda: jax.jit(jax.grad(lambda o: jc.power.linear_matter_power(jc.Planck15(Omega_c=o), k).sum()))(0.26))
    t("sigma8 grad", lambda: jax.jit(jax.jacfwd(lambda s: jc.background.radial_comoving_distance(jc.Planck15(Omega_c=s), a)))(0.26))

    def lensing(omega):
        nz = jc.redshift.smail_nz(1.0, 2.0, 1.0)
        return jc.angular_cl.angular_cl(jc.Planck15(Omega_c=omega), jnp.array([10.0, 100.0]), [jc.probes.WeakLensing([nz])])

    t("lensing", lambda: jax.jit(lensing)(0.26) * 1e9)


def lie(t):
    w = jnp.array([0.1, 0.2, 0.3])
    t("exp", lambda: jaxlie.SO3.exp(w).as_matrix())
    t("log", lambda: jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3).log())
    t("se3", lambda: (jaxlie.SE3.exp(jnp.arange(6.0) / 10) @ jaxlie.SE3.from_translation(w)).as_matrix())
    t("adjoint", lambda: jaxlie.SE3.exp(jnp.arange(6.0) / 10).adjoint())
    t("so2", lambda: jaxlie.SO2.from_radians(0.3).apply(jnp.ones(2)))
    t("manifold grad", lambda: jaxlie.manifold.grad(lambda T: jnp.sum(T.log() ** 2))(jaxlie.SO3.exp(w)))
    t("sample", lambda: jaxlie.SO3.sample_uniform(K).wxyz)
    t("at zero", lambda: jax.jacrev(lambda w: jaxlie.SO3.exp(w).log())(jnp.zeros(3)))
    t("lie vmap", lambda: jax.vmap(lambda w: jaxlie.SO3.exp(w).inverse().log())(jnp.eye(3)))


def quantum(t):
    graph = nk.graph.Chain(4)
    hilbert = nk.hilbert.Spin(0.5, N=4)
    H = nk.operator.Ising(hilbert, graph, h=1.0)
    t("dense", lambda: H.to_dense())
    t("lanczos", lambda: nk.exact.lanczos_ed(H))
    t("states", lambda: hilbert.all_states()[:4])
    t("random state", lambda: hilbert.random_state(K, 3))
    for name, make in {
        "rbm": lambda: nk.models.RBM(alpha=1),
        "jastrow": lambda: nk.models.Jastrow(),
        "gcnn": lambda: nk.models.GCNN(symmetries=graph, layers=1, features=2),
        "arnn": lambda: nk.models.ARNNDense(hilbert=hilbert, layers=1, features=4),
    }.items():
        t("model " + name, lambda make=make: make().apply(make().init(K, hilbert.all_states()[:3]), hilbert.all_states()[:3]))

    def full():
        state = nk.vqs.FullSumState(hilbert, nk.models.RBM(alpha=1), seed=0)
        return state.expect(H).mean, jax.tree.leaves(state.expect_and_grad(H)[1])

    t("full sum", full)

    def vmc():
        state = nk.vqs.MCState(nk.sampler.MetropolisLocal(hilbert, n_chains=4), nk.models.RBM(alpha=1), n_samples=32, seed=0, sampler_seed=0)
        driver = nk.driver.VMC(H, nk.optimizer.Sgd(0.05), variational_state=state, preconditioner=nk.optimizer.SR(diag_shift=0.1))
        driver.run(3, show_progress=False, out=nk.logging.RuntimeLog())
        return state.samples, state.expect(H).mean

    t("vmc", vmc)
    t("exact sampler", lambda: nk.vqs.MCState(nk.sampler.ExactSampler(hilbert), nk.models.RBM(alpha=1), n_samples=16, seed=0, sampler_seed=0).samples)


def programs(t):
    cosmology(t)
    lie(t)
    quantum(t)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_sciences(name):
    PROGRAMS.check(name)
