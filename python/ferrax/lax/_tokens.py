"""Tokens: `create_token`, `after_all`, and messages that use them: `psend`, `precv`.

    token = psend(x, "i", [(0, 1)])
    y = precv(token, x, "i", [(0, 1)])

Invariant: a token is a pytree whose leaves are the values sent with it. It orders nothing: effects
happen in the order of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from ..tree_util import register_pytree_node, tree_leaves, tree_map, tree_structure
from ._collectives import ppermute

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..typing import ArrayLike

__all__ = ["Token", "after_all", "create_token", "precv", "psend"]


class Token:
    """A record that something happened before.

    A pytree: it can be carried by loops, and passed to and returned by any function.
    """

    def __init__(self, buf=(), along=None):
        self.sent, self._along = buf, along

    def block_until_ready(self):
        """The token, once the values sent with it have been computed."""
        for x in tree_leaves(self.sent):
            x.block_until_ready()
        return self

    def __repr__(self):
        return "Token()"


register_pytree_node(Token, lambda t: ((t.sent,), t._along), lambda along, sent: Token(*sent, along))


def _is_token(x):
    return isinstance(x, Token)


def _path(axis_name, perm):
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    return names, tuple((int(a), int(b)) for a, b in perm)


def create_token(_: Any = None) -> Token:
    """A token without values. The argument is not read.

    Returns:
        Token.

    >>> lax.after_all(lax.create_token(), lax.create_token())
    Token()
    """
    return Token()


def after_all(*operands: Token) -> Token:
    """A token with the values of all tokens `operands`.

    Args:
        *operands: tokens.

    Returns:
        Token.

    Raises:
        TypeError: one is not a token.
    """
    for t in operands:
        if not isinstance(t, Token):
            raise TypeError(f"after_all takes tokens, got {type(t)}")
    return Token()


@overload
def psend(x: ArrayLike, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Token: ...


@overload
def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any: ...


def psend(x: Any, axis_name: Hashable | Sequence[Hashable], perm: Sequence[tuple[int, int]]) -> Any:
    """Sends arrays along pairs of positions of the named axis.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a sequence of names.
        perm: sequence of pairs (source, destination).

    Returns:
        Token with which `precv` receives the array; for a pytree, a pytree of tokens.

    Raises:
        ValueError: `perm` has a source or destination twice.
    """
    path = _path(axis_name, perm)
    return tree_map(lambda leaf: Token(ppermute(leaf, axis_name, perm), path), x)


def precv(token: Any, out_shape: Any, axis_name: Hashable | Sequence[Hashable], perm: Sequence[tuple[int, int]]) -> Any:
    """The array sent with a token, as `ppermute` returns it: zeros at positions without a source.

    Args:
        token: of a `psend` along the same axis and pairs, or a pytree of such.
        out_shape: an array or `ShapeDtypeStruct` like the one sent, or a pytree of those.
        axis_name, perm: those of the `psend`.

    Returns:
        Pytree like out_shape.

    Raises:
        TypeError: `token` is not a token.
        ValueError: nothing was sent with the token, it was sent along other pairs, or it is not
          like `out_shape`.

    >>> def pass_on(x):
    ...     token = lax.psend(x, "i", [(0, 1), (1, 2)])
    ...     return lax.precv(token, x, "i", [(0, 1), (1, 2)])
    >>> jax.vmap(pass_on, axis_name="i")(jnp.arange(1.0, 4.0))
    Array([0., 1., 2.], dtype=float32)
    """
    tokens, path = tree_leaves(token, is_leaf=_is_token), _path(axis_name, perm)
    for t in tokens if tokens else [token]:
        if not isinstance(t, Token):
            raise TypeError(f"precv takes a token, got {type(t)}")
        if t._along is None:
            raise ValueError("precv: nothing was sent with this token; it must come from a psend along the same axis and pairs")
        if t._along != path:
            raise ValueError(f"precv along {path} of a token that was sent along {t._along}: it must come from a psend along the same")
    types = lambda tree: [(tuple(x.shape), x.dtype) for x in tree_leaves(tree)]
    sent = tree_map(lambda t: t.sent, token, is_leaf=_is_token)
    if tree_structure(sent) != tree_structure(out_shape) or types(sent) != types(out_shape):
        raise ValueError(f"precv: {types(out_shape)} was to be received with a token of {types(sent)}; it must come from a psend of the same")
    return sent
