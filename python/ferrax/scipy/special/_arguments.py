"""Arguments of special functions: promoted to floats, and broadcast if necessary.

Invariant: real and complex arrays and numbers of any dtype are accepted; lists raise TypeError.
"""

from ...numpy._support.arguments import as_floats, broadcast_together, pointwise, promote_inexact


def _of_floats(name, primitive, x):
    """A primitive of floats alone, of any real number."""
    try:
        return pointwise(name, primitive, x)
    except OverflowError:
        return pointwise(name, primitive, *as_floats([x]))


def _floats(name, *xs):
    """The arguments as arrays of one float or complex dtype, of one shape."""
    xs = promote_inexact(name, *xs)
    return xs[0] if len(xs) == 1 else broadcast_together(*xs)


def _reals(name, *xs):
    """The arguments as arrays of one float dtype. Raises ValueError for complex ones."""
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return xs[0] if len(xs) == 1 else xs
