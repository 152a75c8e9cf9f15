"""einsum: sums of products named by subscripts.

Invariant: operands are contracted two at a time, each pair by one dot_general over shared labels,
after diagonals are taken and labels that occur once are summed. opt_einsum orders three or more
operands; it is imported when it is first needed.

    >>> jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.dtypes import is_bool
from ..._core import bind
from ..._sharding.parts import sharded
from ...lax import dot_general
from .._support.arguments import check_arraylike, constant, convert, converted, ndim_of, operands_of, shape_of, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core import Array
    from ...sharding import NamedSharding, PartitionSpec


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _label(i):
    return _LETTERS[i] if i < 52 else chr(i + 140)


def _parse(subscripts, operands):
    """(labels of each operand, labels of the output, operands), with ellipses replaced by new
    labels.
    """
    if isinstance(subscripts, str):
        text, arrays = subscripts.replace(" ", ""), list(operands)
    else:
        rest = [subscripts, *operands]
        arrays, lists = [], []
        while len(rest) >= 2:
            arrays.append(rest.pop(0))
            lists.append(rest.pop(0))
        out_list = rest.pop(0) if rest else None
        letters = lambda items: "".join("..." if i is Ellipsis else _label(int(i)) for i in items)
        text = ",".join(map(letters, lists)) + ("->" + letters(out_list) if out_list is not None else "")
    if "-" in text or ">" in text:
        if text.count("->") != 1 or text.count("-") > 1 or text.count(">") > 1:
            raise ValueError("Subscripts can only contain one '->'.")
        inputs, output = text.split("->")
    else:
        inputs, output = text, None
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, {len(arrays)}.")
    for c in inputs.replace("...", "").replace(",", "") + (output or "").replace("...", ""):
        if c in ".->":
            raise ValueError("Invalid Ellipses." if c == "." else f"Character '{c}' is not a valid symbol.")
    used = set(inputs + (output or ""))
    free = [c for c in (_label(i) for i in range(600)) if c not in used]
    longest = max([ndim_of(a) - len(t.replace("...", "")) for t, a in zip(terms, arrays, strict=True) if "..." in t], default=0)
    hidden = "".join(free[: max(longest, 0)])
    full = []
    for i, (t, a) in enumerate(zip(terms, arrays, strict=True)):
        if "..." in t:
            n = ndim_of(a) - len(t.replace("...", ""))
            if n < 0:
                raise ValueError("Ellipses lengths do not match.")
            t = t.replace("...", hidden[len(hidden) - n :] if n else "")
        if len(t) != ndim_of(a):
            raise ValueError(f"Einstein sum subscript '{terms[i]}' does not contain the correct number of indices for operand {i}.")
        full.append(t)
    if output is None:
        everything = "".join(full)
        output = hidden + "".join(sorted(c for c in set(everything) if everything.count(c) == 1 and c not in hidden))
    else:
        output = output.replace("...", hidden)
    for c in output:
        if output.count(c) != 1:
            raise ValueError(f"Output character '{c}' appeared more than once in the output.")
        if not any(c in t for t in full):
            raise ValueError(f"Output character '{c}' did not appear in the input")
    return full, output, arrays


def _sizes(terms, arrays):
    sizes = {}
    for i, (t, a) in enumerate(zip(terms, arrays, strict=True)):
        for c, n in zip(t, shape_of(a), strict=True):
            if sizes.get(c, 1) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                raise ValueError(f"Size of label '{c}' for operand {i} ({sizes[c]}) does not match previous terms ({n}).")
    return sizes


def _path(terms, output, sizes, optimize):
    """Groups of positions to contract, in order; new terms are appended to the list.

    Raises TypeError for an `optimize` of an unknown kind.
    """
    n = len(terms)
    if isinstance(optimize, (list, tuple)) and len(optimize) and not isinstance(optimize[0], str):
        return [tuple(p) for p in optimize]
    if isinstance(optimize, (list, tuple)) and len(optimize) and optimize[0] == "einsum_path":
        return [tuple(p) for p in optimize[1:]]
    if not isinstance(optimize, (bool, str)):
        raise TypeError(f"'{type(optimize).__name__}' object is not iterable")
    if n <= 2:
        return [tuple(range(n))]
    if optimize is False:
        return _in_order(n)
    import opt_einsum

    shapes = [tuple([sizes[c] for c in t]) for t in terms]
    kind = "optimal" if optimize is True else optimize
    path, _ = opt_einsum.contract_path(",".join(terms) + "->" + output, *shapes, shapes=True, optimize=kind)
    return [tuple(p) for p in path]


def _in_order(n):
    """The path that contracts from left to right."""
    return [(0, 1)] * (n - 1) if n > 1 else [(0,)]


def _sum(x, labels, gone):
    axes = tuple([i for i, c in enumerate(labels) if c in gone])
    if not axes:
        return x, labels
    return bind("reduce_or" if is_bool(x.dtype) else "reduce_sum", x, axes=axes), "".join(c for c in labels if c not in gone)


def _diagonal(x, labels, needed):
    """Merges repeated labels of one operand: zeroes its elements off the diagonal, then sums."""
    for c in dict.fromkeys(labels):
        k = labels.count(c)
        if k < 2:
            continue
        axes = [i for i, d in enumerate(labels) if d == c]
        shape = tuple(x.shape)
        u32 = np.dtype(np.uint32)
        mask = None
        first = bind("iota", dtype=u32, shape=shape, dimension=axes[0])
        for axis in axes[1:]:
            same = bind("eq", first, bind("iota", dtype=u32, shape=shape, dimension=axis))
            mask = same if mask is None else bind("and", mask, same)
        zeros = bind("broadcast_in_dim", constant(0, x.dtype), shape=shape, broadcast_dimensions=())
        x = bind("select_n", mask, zeros, x)
        # Kept labels keep their last axis.
        drop = axes if c not in needed else axes[:-1]
        x = bind("reduce_or" if is_bool(x.dtype) else "reduce_sum", x, axes=tuple(drop))
        labels = "".join(d for i, d in enumerate(labels) if i not in drop)
    return x, labels


def _contract_pair(x, lx, y, ly, keep, precision, dtype):
    # An axis of size 1 that broadcasts against a longer one carries no label.
    for c in set(lx) & set(ly):
        i, j = lx.index(c), ly.index(c)
        if x.shape[i] != y.shape[j]:
            if x.shape[i] == 1:
                x, lx = bind("squeeze", x, dimensions=(i,)), lx.replace(c, "")
            else:
                y, ly = bind("squeeze", y, dimensions=(j,)), ly.replace(c, "")
    x, lx = _sum(x, lx, set(lx) - set(ly) - set(keep))
    y, ly = _sum(y, ly, set(ly) - set(lx) - set(keep))
    shared = [c for c in lx if c in ly]
    batch = [c for c in shared if c in keep]
    gone = [c for c in shared if c not in keep]

    def product(a, la, b, lb):
        contract = (tuple([la.index(c) for c in gone]), tuple([lb.index(c) for c in gone]))
        together = (tuple([la.index(c) for c in batch]), tuple([lb.index(c) for c in batch]))
        labels = "".join(batch) + "".join(c for c in la if c not in shared) + "".join(c for c in lb if c not in shared)
        return contract, together, labels

    contract, together, labels = product(x, lx, y, ly)
    # The order of operands that needs no transpose afterwards, if there is one.
    if labels != "".join(c for c in keep if c in labels):
        x, lx, y, ly = y, ly, x, lx
        contract, together, labels = product(x, lx, y, ly)
    out = dot_general(x, y, (contract, together), precision=precision, preferred_element_type=dtype)
    return out, labels


def _order(x, labels, output):
    if labels == output:
        return x
    return bind("transpose", x, permutation=tuple([labels.index(c) for c in output]))


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Array] | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum of products by Einstein's notation.

    einsum("ij,jk->ik", a, b) and einsum(a, [0, 1], b, [1, 2], [0, 2]) are the product of two
    matrices.

    Args:
        subscripts: labels of the operands and, behind "->", of the result; or the first operand,
          each operand being followed by a list of labels.
        *operands: arrays of numbers.
        out: not supported; must be None.
        optimize: the order of more than two operands: True, "auto", "greedy", "optimal", False
          (left to right) or a path.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array with an axis for each label of the result, of the promoted dtype.

    Raises:
        ValueError: for subscripts that do not fit.
        NotImplementedError: if `out` is given.

    >>> jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(einsum, locals())
    unsupported("jnp.einsum", out=out)
    if not isinstance(subscripts, str) or operands:
        check_arraylike("einsum", *[a for a in ([] if isinstance(subscripts, str) else [subscripts]) + list(operands) if not isinstance(a, (list, tuple))])
    terms, output, arrays = _parse(subscripts, [converted(a) for a in operands])
    check_arraylike("einsum", *arrays)
    sizes = _sizes(terms, arrays)
    arrays, dtype, weak = operands_of("einsum", arrays, preferred_element_type)
    live = list(zip(arrays, terms, strict=True))
    for group in _path(terms, output, sizes, optimize):
        if len(group) > 2:
            raise NotImplementedError(
                "jax.numpy.einsum does not support simultaneous contraction of 3 or more operands. Typically this means you've passed an "
                "unsupported path to the einsum optimize parameter."
            )
        picked = [live[i] for i in group]
        live = [v for i, v in enumerate(live) if i not in group]
        others = "".join(labels for _, labels in live)
        while picked:
            x, lx = picked.pop(0)
            rest = "".join(labels for _, labels in picked) + others
            if not picked:
                # A lone operand: diagonals, sums, order.
                x, lx = _diagonal(x, lx, set(output) | set(rest))
                x, lx = _sum(x, lx, set(lx) - set(output) - set(rest))
                live.append((x, lx))
                break
            y, ly = picked.pop(0)
            rest = "".join(labels for _, labels in picked) + others
            x, lx = _diagonal(x, lx, set(ly) | set(rest) | set(output))
            y, ly = _diagonal(y, ly, set(lx) | set(rest) | set(output))
            keep = output + "".join(dict.fromkeys(c for c in rest if c not in output))
            out_pair = _contract_pair(x, lx, y, ly, keep, precision, dtype)
            if picked:
                picked.insert(0, out_pair)
            else:
                live.append(out_pair)
    x, labels = live[-1]
    return convert(_order(x, labels, output), dtype, weak=weak)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: bool | str | list[tuple[int, ...]] = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would contract, found by opt_einsum.

    Args:
        subscripts: labels, as for `einsum`.
        *operands: arrays, or anything with a shape.
        optimize: True, "auto", "greedy", "optimal", False (left to right) or a path.

    Returns:
        (path, report): a list of tuples of positions, and opt_einsum's description of the cost.

    >>> jnp.einsum_path("ij,jk,kl", jnp.ones((2, 9)), jnp.ones((9, 9)), jnp.ones((9, 3)))[0]
    [(0, 1), (0, 1)]
    """
    import opt_einsum

    if isinstance(optimize, bool):
        if not optimize:
            terms, *_ = _parse(subscripts, operands)
        optimize = "optimal" if optimize else _in_order(len(terms))
    return opt_einsum.contract_path(subscripts, *operands, optimize=optimize)
