"""traceax: stochastic estimators of traces."""

import jax
import jax.numpy as jnp
import lineax as lx
import pytest
import traceax
from outcomes import Programs

K = jax.random.key(0)
KO = jax.random.PRNGKey(0)


def programs(t):
    A = jax.random.normal(K, (8, 8))
    A = A @ A.T + jnp.eye(8)
    op = lx.MatrixLinearOperator(A, lx.positive_semidefinite_tag)
    for n in "HutchinsonEstimator HutchPlusPlusEstimator XTraceEstimator XNysTraceEstimator".split():
        t(n, lambda n=n: getattr(traceax, n)().estimate(KO, op, 6)[0])
    t("grad", lambda: jax.grad(lambda s: traceax.HutchinsonEstimator().estimate(KO, lx.MatrixLinearOperator(A * s), 4)[0])(1.0))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_traceax(name):
    PROGRAMS.check(name)
