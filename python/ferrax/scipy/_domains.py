"""The values of functions where their arguments are outside of the domain.

Invariant: where a value is NaN because of the arguments, derivatives by each of them are NaN: a
selected constant's would be 0, which an optimizer takes for a minimum.

    nan_outside(mu >= 0, entropy, mu)
"""

import functools

import numpy as np

from .. import numpy as jnp


def nan_outside(known, y, *arguments):
    """`y` where its arguments are in their domain, else NaN, derivatives included.

    Args:
        known: array of bool, where the arguments are in the domain.
        y: the values there, with finite derivatives elsewhere.
        *arguments: arrays that broadcast with y, on which it depends.

    Returns:
        Array of the common shape.
    """
    unknown = jnp.where(known, 0, functools.reduce(jnp.add, arguments))
    return jnp.where(known, y, unknown * jnp.where(known, 0, np.nan))
