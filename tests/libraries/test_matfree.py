"""matfree: decompositions, functions and stochastic traces of matrices that are products only."""

import jax
import jax.numpy as jnp
import pytest
from matfree import decomp, eig, funm, lstsq
from outcomes import Programs

K = jax.random.key(0)


def programs(t):
    A = jax.random.normal(K, (8, 8))
    A = A @ A.T + jnp.eye(8)
    mv = lambda v: A @ v
    v = jnp.ones(8)
    t("tridiag", lambda: (lambda d: d.J_small if hasattr(d, "J_small") else jax.tree.leaves(d)[:2])(decomp.tridiag_sym(4)(mv, v)))
    t("hess", lambda: jax.tree.leaves(decomp.hessenberg(4, reortho="full")(mv, v))[:2])
    t("bidiag", lambda: jax.tree.leaves(decomp.bidiag(4)(mv, v))[:2])
    t("funm", lambda: funm.funm_lanczos_sym(funm.dense_funm_sym_eigh(jnp.exp), decomp.tridiag_sym(6))(mv, v) / 1000.0)

    t("lsmr", lambda: lstsq.lsmr()(mv, v)[0])
    t("eigh", lambda: eig.eigh_partial(decomp.tridiag_sym(4, reortho="full"))(mv, v)[0])
    t("svd", lambda: eig.svd_partial(decomp.bidiag(4, reortho="full"))(mv, v)[1])


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_matfree(name):
    PROGRAMS.check(name)
