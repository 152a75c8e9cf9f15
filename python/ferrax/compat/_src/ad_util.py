"""`jax._src.ad_util`: primitives of derivatives.

Invariant: each is the extension's.
"""

from ... import _core

__all__ = ["stop_gradient_p"]


stop_gradient_p = _core.primitive("stop_gradient")
