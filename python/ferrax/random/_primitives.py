"""The primitive of gamma draws, for those who bind it: `random_gamma_p.bind(keys, a, log_space=False)` for keys of shape k.. and a of shape k.. i..

Invariant: its draws are those of `gamma` and `loggamma` with each key.
"""

from .._batching import vmap
from ..interpreters._composed import composed
from ._gamma import _gamma

__all__ = ["random_gamma_p"]


def _random_gamma(keys, a, *, log_space):
    draw = lambda key, a: _gamma(key, a, shape=a.shape, dtype=a.dtype, log_space=log_space)
    for _ in range(keys.ndim):
        draw = vmap(draw)
    return draw(keys, a)


random_gamma_p = composed("random_gamma", _random_gamma)
