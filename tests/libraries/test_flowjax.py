"""flowjax: distributions, bijections, flows, their training by likelihood."""

import equinox as eqx
import flowjax.bijections as bij
import flowjax.distributions as dist
import flowjax.flows as flows
import jax
import jax.numpy as jnp
import jax.random as jr
import paramax
import pytest
from flowjax.train import fit_to_data
from outcomes import Programs

K = jr.key(0)


def programs(t):
    x = jr.normal(K, (3,))
    for name, make in {
        "normal": lambda: dist.Normal(jnp.zeros(3), 2.0),
        "student": lambda: dist.StudentT(3.0, jnp.ones(3)),
        "laplace": lambda: dist.Laplace(jnp.ones(3)),
        "cauchy": lambda: dist.Cauchy(jnp.zeros(3)),
        "gumbel": lambda: dist.Gumbel(jnp.zeros(3)),
        "logistic": lambda: dist.Logistic(jnp.zeros(3)),
        "multivariate": lambda: dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3) * 2 + 0.3),
        "shifted": lambda: dist.Normal(x),
        "transformed": lambda: dist.Transformed(dist.StandardNormal((3,)), bij.Affine(jnp.ones(3), 2 * jnp.ones(3))),
    }.items():
        t(name, lambda make=make: (make().log_prob(x), make().sample(K, (2,)), make().sample_and_log_prob(K)))
    t(
        "gamma",
        lambda: (
            dist.Gamma(jnp.array([2.0]), jnp.array([1.5])).log_prob(jnp.array([0.7])),
            dist.Beta(2.0, 3.0).log_prob(0.3),
            dist.Exponential(2.0).log_prob(0.3),
            dist.Uniform(0.0, 2.0).log_prob(0.3),
        ),
    )
    for name, make in {
        "affine": lambda: bij.Affine(jnp.ones(3), 2 * jnp.ones(3)),
        "triangular": lambda: bij.TriangularAffine(jnp.ones(3), jnp.tril(jnp.ones((3, 3))) + jnp.eye(3)),
        "tanh": lambda: bij.Tanh((3,)),
        "leaky tanh": lambda: bij.LeakyTanh(1.0, (3,)),
        "softplus": lambda: bij.SoftPlus((3,)),
        "exp": lambda: bij.Exp((3,)),
        "spline": lambda: bij.Vmap(bij.RationalQuadraticSpline(knots=4, interval=2.0), axis_size=3),
        "permute": lambda: bij.Permute(jnp.array([2, 0, 1])),
        "flip": lambda: bij.Flip((3,)),
        "chain": lambda: bij.Chain([bij.Affine(jnp.ones(3)), bij.Tanh((3,)), bij.Flip((3,))]),
        "invert": lambda: bij.Invert(bij.Exp((3,))),
        "planar": lambda: bij.Planar(K, dim=3, negative_slope=0.1),
        "coupling": lambda: bij.Coupling(K, transformer=bij.Affine(), untransformed_dim=1, dim=3, nn_width=5, nn_depth=1),
        "autoregressive": lambda: bij.MaskedAutoregressive(K, transformer=bij.Affine(), dim=3, nn_width=5, nn_depth=1),
        "block": lambda: bij.BlockAutoregressiveNetwork(K, dim=3, depth=1, block_dim=2),
        "scan": lambda: bij.Scan(eqx.filter_vmap(bij.Affine)(jnp.ones((2, 3)))),
        "householder": lambda: bij.Householder(jnp.arange(1.0, 4.0)),
    }.items():

        def program(make=make, name=name):
            b = paramax.unwrap(make())
            z = jnp.abs(x) * 0.3 if name == "invert" else x
            y, ld = b.transform_and_log_det(z)
            return y, ld, () if name == "block" else b.inverse(y)

        t(name, program)
    t(
        "block inverse",
        lambda: paramax.unwrap(bij.BlockAutoregressiveNetwork(K, dim=3, depth=1, block_dim=2)).inverse(x),
        raises=NotImplementedError,
        why="the inverse has no closed form",
    )
    data = jr.normal(K, (64, 2)) * jnp.array([1.0, 0.2]) + 1
    for name, make in {
        "coupling_flow": lambda: flows.coupling_flow(
            K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=2, nn_width=8, transformer=bij.RationalQuadraticSpline(knots=4, interval=3.0)
        ),
        "maf": lambda: flows.masked_autoregressive_flow(K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=2, nn_width=8),
        "bnaf": lambda: flows.block_neural_autoregressive_flow(K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=1, nn_block_dim=3),
        "triangular_spline_flow": lambda: flows.triangular_spline_flow(K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=1, knots=4),
    }.items():
        t(name, lambda make=make: make().log_prob(data[:4]))
        t(name + " grad", lambda make=make: jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(lambda f: paramax.unwrap(f).log_prob(data[:4]).sum()))(make()))[:3])
    t("sample", lambda: flows.masked_autoregressive_flow(K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=1, nn_width=4).sample(K, (3,)))
    t(
        "conditional",
        lambda: flows.masked_autoregressive_flow(K, base_dist=dist.Normal(jnp.zeros(2)), cond_dim=1, flow_layers=1, nn_width=4).log_prob(
            data[:3], condition=jnp.ones((3, 1))
        ),
    )

    def fitted():
        flow = flows.masked_autoregressive_flow(K, base_dist=dist.Normal(jnp.zeros(2)), flow_layers=1, nn_width=8)
        flow, losses = fit_to_data(K, flow, data=data, max_epochs=3, batch_size=16, learning_rate=1e-2, show_progress=False)
        return losses["train"], losses["val"], flow.log_prob(data[:2])

    t("fit", fitted)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_flowjax(name):
    PROGRAMS.check(name)
