"""Special functions, elementwise, and the reductions logsumexp and softmax.

Invariant: every function takes arrays and numbers of any real dtype (of a complex one where its
documentation says so), promotes to floating point, and broadcasts. Lists and other types raise
TypeError, complex operands TypeError or ValueError.
"""

from ._bessel import bessel_jn, sph_harm_y
from ._entropies import boxcox, boxcox1p, entr, expit, kl_div, logit, rel_entr, xlog1py, xlogy
from ._error_functions import dawsn, erfcx, log_ndtr, owens_t, wofz
from ._gamma import bernoulli, beta, betainc, betaln, comb, digamma, factorial, gamma, gammainc, gammaincc, gammaln, gammasgn, loggamma, multigammaln, poch, polygamma, zeta
from ._hypergeometric import hyp1f1, hyp2f1
from ._integrals import exp1, expi, expn, fresnel, sici, spence
from ._legendre import lpmn, lpmn_values
from ._log_sums import log_softmax, logsumexp, softmax
from ._modified_bessel import i0, i0e, i1, i1e
from ._normal import erf, erfc, erfinv, ndtr, ndtri

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]
