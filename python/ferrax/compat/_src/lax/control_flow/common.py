"""`jax._src.lax.control_flow.common`: programs of functions of trees.

Invariant: captured values come first.
"""

from ..... import _core
from .....tree_util import tree_flatten

__all__ = ["initial_style_jaxprs"]


def initial_style_jaxprs(fun, in_tree, in_avals):
    """The program of a function of trees, its captured values, and the tree of its results."""
    trees = []

    def flat(*leaves):
        out, tree = tree_flatten(fun(*in_tree.unflatten(leaves)))
        trees[:] = [tree]
        return out

    program, consts = _core.make_program(flat, list(in_avals), user_fun=fun)
    return program.jaxpr, list(consts), trees[0]
