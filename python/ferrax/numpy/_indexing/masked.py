"""Updates at a mask whose values are known only when the program runs: `x.at[mask].set(v)` inside
of `jit` and `vmap`.

    jit(lambda x, m: x.at[m].set(0.0))(x, x < 0)
    jit(lambda x, m: x.at[1:, m].add(row))(x, mask_of_columns)

The number of elements that a mask selects is not known, so the value must be the same for all of
them: it has size 1 along the axis of the mask.

Invariant: the result is that of the same update at the mask's value.
"""

import numpy as np

from ... import _core
from ..._base.dtypes import is_bool
from ..._core import bind


def traced_mask(index):
    """The position of the only traced mask in an index, a tuple; None if it has no such mask, or
    contains another array.
    """
    masks = [k for k, e in enumerate(index) if isinstance(e, _core.Tracer) and is_bool(e.dtype)]
    if len(masks) != 1 or not index[masks[0]].ndim:
        return None
    others = [e for k, e in enumerate(index) if k != masks[0]]
    return (
        masks[0]
        if all(e is None or e is ... or isinstance(e, (slice, int, np.integer)) or (np.ndim(e) == 0 and not is_bool(e.dtype)) for e in others)
        else None
    )


def _stand_in(index, place, n):
    """The index in numpy's terms, with n positions in place of the mask's, and 0 for integers."""
    out = []
    for k, e in enumerate(index):
        if k == place:
            out += [np.zeros(n, int)] * index[place].ndim
        else:
            out.append(e if e is None or e is ... or isinstance(e, slice) else 0)
    return tuple(out)


def masked_update(x, index, place, value, read, write, update):
    """`x` updated where a mask holds.

    index, place: a tuple, and the position of the mask in it. value: the operand of the update, of
    size 1 along the mask's axis; None if the update has no operand.
    read(x, index), write(x, index, y): indexing. update(part, value): the part as the operation
    makes it, all of it.
    """
    mask = index[place]
    around = (*index[:place], *[slice(None)] * mask.ndim, *index[place + 1 :])
    shape = tuple(x.shape)
    empty = np.broadcast_to(np.empty((), bool), tuple(max(n, 1) for n in shape))
    # NumPy determines the position of the mask's elements among the axes of x[index], and of its axes among those of x[around].
    one, two = (empty[_stand_in(index, place, n)].shape for n in (1, 2))
    own = next(i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    before = _axes_before(index[:place], index, len(shape))
    axis = empty[tuple([*[e if e is None or e is ... or isinstance(e, slice) else 0 for e in before], ...])].ndim - (len(shape) - _read(before))
    part = read(x, around)
    expected = shape[_read(before) : _read(before) + mask.ndim]
    if tuple(mask.shape) != expected:
        raise IndexError(f"boolean index did not match shape of indexed array in index {place}: got {tuple(mask.shape)}, expected {list(expected)}")
    spread = bind("broadcast_in_dim", mask, shape=tuple(part.shape), broadcast_dimensions=tuple(range(axis, axis + mask.ndim)))
    if value is not None:
        value = _placed(value, own, len(one), axis, mask.ndim)
    part_after = update(part, value)
    part_after = bind("select_n", spread, part, part_after)
    return write(x, around, part_after)


def _read(entries):
    """How many axes entries read."""
    return sum(1 for e in entries if e is not None)


def _axes_before(entries, index, rank):
    """The entries before the mask, with an ellipsis written out."""
    if not any(e is ... for e in entries):
        return list(entries)
    k = next(i for i, e in enumerate(entries) if e is ...)
    reads = sum(np.ndim(e) if is_mask(e) else e is not None and e is not ... for e in index)
    return [*entries[:k], *[slice(None)] * (rank - reads), *entries[k + 1 :]]


def is_mask(e):
    """Whether part of an index is an array of truths."""
    return hasattr(e, "dtype") and is_bool(e.dtype)


def _placed(value, own, rank, axis, n):
    """A value broadcast against x[index] as one against x[around]: the mask's own axis is replaced
    by the axes that it covers.
    """
    value = value if isinstance(value, _core.Array) else _core.asarray(value)
    shape = (1,) * (rank - value.ndim) + tuple(value.shape)
    extra = len(shape) - rank
    shape = shape[extra:] if extra > 0 and all(m == 1 for m in shape[:extra]) else shape
    if len(shape) != rank or shape[own] != 1:
        raise ValueError(
            f"an update at a traced mask takes a value of size 1 along the mask's axis, since the number of selected elements is not known; got shape"
            f" {tuple(value.shape)}, where that axis is {own - rank}.\nhelp: jnp.where(mask, values, x) takes a value for each element of x"
        )
    rest = shape[:own] + shape[own + 1 :]
    return bind("reshape", value, new_sizes=(*rest[:axis], *(1,) * n, *rest[axis:]), dimensions=None, sharding=None)
