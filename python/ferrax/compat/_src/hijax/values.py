"""Values of hijax types: objects that consist of arrays and pass through transformations as them.

    register_hitype(QArray, lambda q: QArrayTy(q.qvalue.shape))
    jit(lambda q: dequantize(q))(q)

A value is flattened into the arrays of `lower_val` and then one array for each array of its tangent
type: zeros, whose tangents are the value's. So the tangent of a value may be of another type, such
as a float array for a value of integers.

Invariant: a value that is made of others by an operation carries its tangent; one that Python makes
has none.
"""

from __future__ import annotations

import contextlib
import sys
import threading

from .... import _core
from ...._references.refs import Ref
from ...._tracing.vmappable import carried
from ...._trees.flat import zeros
from ...._trees.prefixes import broadcast_prefix
from ....interpreters import ad
from ....tree_util import register_pytree_node, tree_flatten

__all__ = [
    "array_types",
    "arrays_of",
    "arrays_of_change",
    "change_of",
    "cotangent_type",
    "count",
    "is_type",
    "is_value",
    "register",
    "tangent_types",
    "type_of",
    "value_of",
]

_types = carried.types

# Types of arrays have the methods of hijax types too: an array consists of itself.
for _name, _doc, _method in [
    ("lo_ty", "The types of the arrays that a value consists of: this one.", lambda aval: [aval]),
    ("lower_val", "The arrays that a value consists of: itself.", lambda aval, x: [x]),
    ("raise_val", "The value that consists of an array.", lambda aval, x: x),
    ("to_ct_aval", "The type of cotangents: that of tangents.", lambda aval: aval.to_tangent_aval()),
    ("normalize", "The type itself, which has one form.", lambda aval: aval),
]:
    _method.__doc__ = _doc
    setattr(_core.ShapedArray, _name, _method)


def is_type(aval):
    """Whether a type is a hijax type."""
    return not isinstance(aval, _core.ShapedArray) and hasattr(aval, "lower_val")


def is_value(x):
    """Whether x is a value of such a type."""
    return type(x) in _types


def type_of(x):
    """The type of a value."""
    return _types[type(x)](x)


def tangent_types(aval):
    """The types of the arrays that carry a tangent; none where the type has no tangents."""
    try:
        tangent = aval.to_tangent_aval()
    except (AssertionError, NotImplementedError):
        return []
    return list(tangent.lo_ty()) if is_type(tangent) else [tangent]


def cotangent_type(aval):
    """The type of cotangents."""
    return aval.to_ct_aval() if is_type(aval) else aval.to_tangent_aval()


# ---------------------------------------------------------------- mutable values
# Their arrays are held by references, which transformations know; the object has the present ones only while an operation works on it.


def is_mutable(x):
    """Whether x is a mutable value."""
    if type(x) not in _types:
        return False
    try:
        return bool(getattr(type_of(x), "has_qdd", False))
    except (AttributeError, TypeError):  # of place-holders, which have no type
        return False


class _Moving(threading.local):
    """on: whether arrays move between an object and its references, by operations that leave both
    as they are.
    """

    on = False


_moving = _Moving()


@contextlib.contextmanager
def _as_they_are():
    before, _moving.on = _moving.on, True
    try:
        yield
    finally:
        _moving.on = before


def is_moving():
    """Whether operations leave references alone."""
    return _moving.on


def _kept(x, name):
    """The attribute that was stored on a value; None if none was.

    Its class may define how attributes are found.
    """
    try:
        return object.__getattribute__(x, "__dict__").get(name)
    except AttributeError:
        return None


class _References:
    """The references of objects that have no place for them, by identity, while the objects are
    used elsewhere too.
    """

    def __init__(self):
        self._of, self._sweep_at = {}, 64

    def get(self, x):
        return found[1] if (found := self._of.get(id(x))) is not None else None

    def put(self, x, refs):
        self._of[id(x)] = x, refs
        if len(self._of) > self._sweep_at:
            # used here alone: by the entry, by the loop's variable, and by the count's argument
            for key, (own, _) in list(self._of.items()):
                if sys.getrefcount(own) <= 3:
                    del self._of[key]
            self._sweep_at = max(64, 2 * len(self._of))


class _PlaceHolders(tuple):
    """(leaves, data) of a node whose leaves are not arrays."""


_references = _References()


def references(x):
    """The references that hold a value's arrays."""
    return _references.get(x)


def load(x):
    """Gives the object the present arrays."""
    if (refs := references(x)) is None:
        store(x)
        return
    with _as_they_are():
        type_of(x).update_from_loval(x.cur_qdd(), x, *[r[...] for r in refs])


def store(x):
    """Writes the object's arrays to its references, which are made anew where their types
    change.
    """
    with _as_they_are():
        arrays, refs = list(type_of(x).read_loval(x.cur_qdd(), x)), references(x)
    if refs is not None and [r.aval.inner_aval for r in refs] == [_core.get_aval(a) for a in arrays]:
        for r, a in zip(refs, arrays, strict=True):
            r[...] = a
    else:
        _references.put(x, [Ref(a) for a in arrays])


def _mutable_of(aval, qdd, leaves):
    is_ref = all(isinstance(leaf, Ref) for leaf in leaves)
    with _as_they_are():
        x = aval.new_from_loval(qdd, *[leaf[...] if is_ref else leaf for leaf in leaves])
    if is_ref:
        _references.put(x, list(leaves))
    elif not all(isinstance(leaf, _core.Array) for leaf in leaves):  # place-holders, which are kept as they are
        _references.put(x, _PlaceHolders((tuple(leaves), (aval, qdd))))
    return x


def array_types(aval):
    """The types of all arrays of a value."""
    return [*aval.lo_ty(), *tangent_types(aval)]


def count(aval):
    """The number of arrays of a value."""
    return len(array_types(aval))


def _carriers(x):
    """The arrays that carry the tangent of a value that an operation made; None for another."""
    return _kept(x, "_hijax_carriers")


def arrays_of(aval, x):
    """The arrays of a value."""
    own = _carriers(x)
    kinds = tangent_types(aval)
    if own is None or len(own) != len(kinds):
        own = [zeros(t) for t in kinds]
    return [*aval.lower_val(x), *own]


def value_of(aval, arrays):
    """The value of a type that consists of arrays."""
    n = len(aval.lo_ty())
    x = aval.raise_val(*arrays[:n])
    if len(arrays) > n:
        with contextlib.suppress(AttributeError):  # of a class with slots: its values have no tangents
            object.__setattr__(x, "_hijax_carriers", tuple(arrays[n:]))
    return x


def change_of(aval, arrays):
    """A tangent or cotangent, from the arrays that carry it, which may be `Zero`."""
    tangent = aval.to_tangent_aval() if arrays else None
    if not arrays or all(type(t) is ad.Zero for t in arrays):
        return ad.Zero(tangent)
    if not is_type(tangent):
        return arrays[0]
    return tangent.raise_val(*map(ad.instantiate_zeros, arrays))


def arrays_of_change(aval, change):
    """The opposite."""
    kinds = tangent_types(aval)
    if change is None or type(change) is ad.Zero:
        return [ad.Zero(t) for t in kinds]
    tangent = aval.to_tangent_aval()
    return list(tangent.lower_val(change)) if is_type(tangent) else [change]


def register(cls, type_of_value):
    """Makes a class the class of values of a hijax type: a node of pytrees whose children are its
    arrays.
    """
    new = cls not in _types
    _types[cls] = type_of_value
    if not new:
        return

    def flatten(x):
        if isinstance(kept := references(x), _PlaceHolders):
            return kept
        if is_mutable(x):
            load(x)
            return tuple(references(x)), (type_of_value(x), x.cur_qdd())
        try:
            aval = type_of_value(x)
            return tuple(arrays_of(aval, x)), aval
        except (AttributeError, TypeError):
            kept = _kept(x, "_hijax_leaves")
            if kept is None:
                raise
            return kept

    def unflatten(aval, leaves):
        if isinstance(aval, tuple):
            return _mutable_of(*aval, list(leaves))
        x = value_of(aval, list(leaves))
        # of place-holders, which have no type
        if not all(hasattr(leaf, "dtype") for leaf in leaves):
            with contextlib.suppress(AttributeError):
                object.__setattr__(x, "_hijax_leaves", (tuple(leaves), aval))
        return x

    register_pytree_node(cls, flatten, unflatten)
    carried.differentiated, carried.specs, carried.mapped = _differentiated, (MappingSpec,), _mapped


# ---------------------------------------------------------------- as arguments of transformations


class MappingSpec:
    """The base class of what says, in the place of an axis, how a value is mapped."""


def _differentiated(args, fun):
    leaves, tree = tree_flatten(args, is_leaf=is_value)
    if not any(map(is_value, leaves)):
        return None
    avals = [type_of(x) if is_value(x) else None for x in leaves]
    split = [arrays_of(a, x) if a is not None else [x] for a, x in zip(avals, leaves, strict=True)]
    n_lo = [len(a.lo_ty()) if a is not None else 0 for a in avals]
    changing = tree.unflatten([tuple(own[n:]) if a is not None else own[0] for a, own, n in zip(avals, split, n_lo, strict=True)])

    def of_changing(*changing):
        given = tree.flatten_up_to(changing)
        whole = [value_of(a, [*own[:n], *t]) if a is not None else t for a, own, n, t in zip(avals, split, n_lo, given, strict=True)]
        return fun(*tree.unflatten(whole))

    def restored(cts):
        one = lambda a, t: t if a is None else change_of(a, list(t)) if t else None
        return tree.unflatten([one(a, t) for a, t in zip(avals, tree.flatten_up_to(cts), strict=True)])

    return changing, of_changing, restored


# A size that no array has: where it appears, the type of a mapped value has its axis.
_UNUSUAL = 7919


def _axes(element, spec):
    """The axes along which the arrays of a value are mapped."""
    return [tuple(t.shape).index(_UNUSUAL) if _UNUSUAL in t.shape else None for t in array_types(element.inc_rank(_UNUSUAL, spec))]


def _mapped(fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, mapped_size):
    """`vmap` of a function, of and to values that are mapped by a `MappingSpec`."""
    is_axis = lambda x: x is None or isinstance(x, MappingSpec)
    leaves, tree = tree_flatten((args, kwargs), is_leaf=is_value)
    n_args = len(tree_flatten(args, is_leaf=is_value)[0])
    in_place = tree_flatten(args, is_leaf=is_value)[1].unflatten(range(n_args))
    dims = [*broadcast_prefix(in_axes, in_place, prefix_is_leaf=is_axis), *([0] * (len(leaves) - n_args))]
    if axis_size is None:
        plain = [(x, d) for x, d in zip(leaves, dims, strict=True) if not isinstance(d, MappingSpec)]
        axis_size = mapped_size("vmap", fun, args, kwargs, [x for x, _ in plain], [d for _, d in plain], None)
    arrays, axes, elements = [], [], []
    for x, d in zip(leaves, dims, strict=True):
        element = type_of(x).dec_rank(axis_size, d) if isinstance(d, MappingSpec) else None
        own = [x] if element is None else arrays_of(type_of(x), x)
        arrays += own
        axes += [d] if element is None else _axes(element, d)
        elements.append((element, len(own)))
    mapped = [i for i, d in enumerate(axes) if d is not None]
    found = {}

    def flat(*given):
        whole = list(arrays)
        for i, x in zip(mapped, given, strict=True):
            whole[i] = x
        rest = iter(whole)
        own = [next(rest) if element is None else value_of(element, [next(rest) for _ in range(n)]) for element, n in elements]
        in_args, in_kwargs = tree.unflatten(own)
        outs, found["tree"] = tree_flatten(fun(*in_args, **in_kwargs), is_leaf=is_value)
        specs = broadcast_prefix(out_axes, found["tree"].unflatten(range(len(outs))), prefix_is_leaf=is_axis)
        found["types"] = [(type_of(x), s) if isinstance(s, MappingSpec) else None for x, s in zip(outs, specs, strict=True)]
        found["axes"] = [d for t, s in zip(found["types"], specs, strict=True) for d in ([s] if t is None else _axes(*t))]
        return [a for t, x in zip(found["types"], outs, strict=True) for a in ([x] if t is None else arrays_of(t[0], x))]

    out_dims = lambda i=None: "vmap out_axes" if i is not None else found["axes"]
    results = iter(_core.vmap(flat, [arrays[i] for i in mapped], [axes[i] for i in mapped], axis_size, axis_name, out_dims))
    whole = lambda t: value_of(batched := t[0].inc_rank(axis_size, t[1]), [next(results) for _ in range(count(batched))])
    return found["tree"].unflatten([next(results) if t is None else whole(t) for t in found["types"]])
