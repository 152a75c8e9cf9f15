"""`jax._src.deprecations`: warnings of deprecated names.

Invariant: a deprecation warns until it is accelerated.
"""

import warnings

__all__ = ["accelerate", "is_accelerated", "register", "warn"]


def warn(deprecation_id, message, stacklevel):
    """Warns of something old."""
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


_deprecated = {}


def register(deprecation_id):
    """Names something old."""
    _deprecated.setdefault(deprecation_id, False)


def accelerate(deprecation_id):
    """Says that something old is an error from now on."""
    _deprecated[deprecation_id] = True


def is_accelerated(deprecation_id):
    """Whether something old is an error."""
    return _deprecated.get(deprecation_id, False)
