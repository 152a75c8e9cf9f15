"""scico: operators, functionals, proximal maps, solvers, under x64. It asks for an older Flax than the other libraries do: alone.txt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import Programs

pytest.importorskip("scico")
jax.config.update("jax_enable_x64", True)


def programs(t):
    import scico.numpy as snp
    from scico import functional, linop, loss, metric, operator, optimize, random, solver
    from scico.optimize.admm import ADMM, LinearSubproblemSolver

    x, key = random.randn((6, 6), seed=0)
    v, _ = random.randn((5,), seed=1)
    M = linop.MatrixOperator(jnp.asarray(np.random.RandomState(0).randn(4, 5), jnp.float32))
    ops = {
        "matrix": (M, v),
        "diagonal": (linop.Diagonal(v), v),
        "convolve": (linop.Convolve(snp.ones((2, 2), dtype=jnp.float32) / 4, (6, 6)), x),
        "circular": (linop.CircularConvolve(snp.ones((2, 2), dtype=jnp.float32) / 4, (6, 6)), x),
        "difference": (linop.FiniteDifference((6, 6), circular=True), x),
        "sum": (linop.Sum((6, 6), axis=0), x),
        "dft": (linop.DFT((6, 6)), x.astype(snp.complex64)),
        "stack": (linop.VerticalStack([linop.Identity((6, 6)), 2 * linop.Identity((6, 6))]), x),
        "gradient": (linop.ProjectedGradient((6, 6)), x),
    }
    for name, (op, arg) in ops.items():
        t("linop " + name, lambda op=op, arg=arg: (op(arg), op.T(op(arg)) if name != "dft" else op.H(op(arg)), (op.gram_op)(arg)))
    t("composition", lambda: (M @ linop.Diagonal(v))(v) + (M + 2 * M)(v))
    t("power", lambda: linop.operator_norm(M))
    t("jacobian", lambda: linop.jacobian(operator.Operator((5,), eval_fn=lambda x: x**2), v)(v))
    for name, f in {
        "l1": functional.L1Norm(),
        "l2": functional.L2Norm(),
        "squared": functional.SquaredL2Norm(),
        "l0": functional.L0Norm(),
        "huber": functional.HuberNorm(),
        "nuclear": functional.NuclearNorm(),
        "l21": functional.L21Norm(),
        "nonnegative": functional.NonNegativeIndicator(),
        "ball": functional.L2BallIndicator(0.5),
        "l1-l2": functional.L1MinusL2Norm(),
        "tv": functional.AnisotropicTVNorm(),
    }.items():
        t("prox " + name, lambda f=f: (f(snp.abs(x)), f.prox(x, 0.3)))
    t("block", lambda: snp.sum(snp.blockarray([x, v])))
    t("block arithmetic", lambda: list(2 * snp.blockarray([x, v]) + 1))
    t("loss", lambda: (loss.SquaredL2Loss(y=x)(2 * x), loss.SquaredL2Loss(y=x).prox(2 * x, 0.5), loss.PoissonLoss(y=snp.abs(x))(snp.abs(x) + 1)))
    t("loss grad", lambda: loss.SquaredL2Loss(y=M(v), A=M).grad(2 * v))
    t("metric", lambda: (metric.psnr(x, x + 0.1), metric.snr(x, x + 0.1), metric.mse(x, 0 * x)))
    t("bisect", lambda: solver.bisect(lambda x: x**3, -snp.ones(2), snp.ones(2) * 1.5, xtol=1e-5, ftol=1e-5))
    t("golden", lambda: solver.golden(lambda x: (x - 0.3) ** 2, snp.zeros(2), snp.ones(2), xtol=1e-4))
    t("minimize", lambda: solver.minimize(lambda v: snp.sum((v - 1) ** 2), v, method="L-BFGS-B").x)
    y = x + 0.1

    def admm():
        C = linop.FiniteDifference((6, 6), circular=True)
        s = ADMM(
            f=loss.SquaredL2Loss(y=y),
            g_list=[0.2 * functional.L21Norm()],
            C_list=[C],
            rho_list=[1.0],
            x0=y,
            maxiter=4,
            subproblem_solver=LinearSubproblemSolver(cg_kwargs={"tol": 1e-4}),
        )
        return s.solve()

    t("admm", admm)
    t("pgm", lambda: optimize.PGM(f=loss.SquaredL2Loss(y=M(v), A=M), g=0.1 * functional.L1Norm(), L0=20.0, x0=0 * v, maxiter=5).solve())
    t("accelerated", lambda: optimize.AcceleratedPGM(f=loss.SquaredL2Loss(y=M(v), A=M), g=0.1 * functional.L1Norm(), L0=20.0, x0=0 * v, maxiter=5).solve())
    t(
        "pdhg",
        lambda: optimize.PDHG(
            f=loss.SquaredL2Loss(y=y), g=0.1 * functional.L1Norm(), C=linop.FiniteDifference((6, 6), axes=0), tau=0.2, sigma=0.2, x0=y, maxiter=5
        ).solve(),
    )


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_scico(name):
    PROGRAMS.check(name)
