"""`VJPHiPrimitive`: operations written in Python with a rule for each transformation, on arrays and
on values of hijax types.

    class Sin(VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()
        def expand(self, x): return jnp.sin(x)
        def jvp(self, primals, tangents): return self(*primals), jnp.cos(primals[0]) * tangents[0]

Invariant: an equation holds arrays alone, those that a hijax value consists of and then those that
carry its tangent; rules get and return the values.
"""

from __future__ import annotations

from typing import Any

from .... import _core
from ...._transforms.vmap import vmap
from ...._trees.flat import is_inexact, zeros
from ...._trees.prefixes import broadcast_prefix
from ....extend.core import Primitive
from ....interpreters import ad, batching
from ....tree_util import tree_flatten, tree_leaves, tree_unflatten
from . import values as hi

__all__ = ["GradAccum", "NullAccum", "RefAccum", "VJPHiPrimitive", "ValAccum", "call_hi_primitive_p"]


# ---------------------------------------------------------------- accumulators of cotangents


class GradAccum:
    """The accumulator to which a backward rule adds the cotangent of one argument. aval: the
    cotangent's type.
    """

    def __init__(self, aval):
        self.aval = aval

    def accum(self, x):
        """Adds a cotangent; None and `Zero` are zeros."""
        raise NotImplementedError

    def freeze(self):
        """The sum."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__}({self.aval})"


class ValAccum(GradAccum):
    """An accumulator that holds a value."""

    def __init__(self, aval, val=None):
        super().__init__(aval)
        self.val = ad.Zero(aval) if val is None else val

    def accum(self, x):
        """Adds a cotangent."""
        if x is None or type(x) is ad.Zero:
            return
        if hi.is_type(self.aval):
            self.val = x if type(self.val) is ad.Zero else self.aval.vspace_add(self.val, x)
        else:
            self.val = ad.add_tangents(self.val, x)

    def freeze(self):
        """The sum."""
        return self.val


class RefAccum(GradAccum):
    """An accumulator that adds to a mutable reference."""

    def __init__(self, aval, ref=None):
        super().__init__(aval)
        self.ref = ref

    def accum(self, x):
        """Adds a cotangent."""
        if x is not None and type(x) is not ad.Zero:
            self.ref.addupdate(x)

    def freeze(self):
        """The sum."""
        return self.ref[...]


class NullAccum(GradAccum):
    """An accumulator of a cotangent that is not requested."""

    def accum(self, x):
        """Does nothing."""

    def freeze(self):
        """A zero."""
        return ad.Zero(self.aval)


# ---------------------------------------------------------------- the class


class VJPHiPrimitive:
    """The base class of such operations.

    A subclass sets `in_avals`, `out_aval` and `params`, and defines `expand` and the rules that it
    needs.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._has("vjp_bwd") and self._has("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def _has(self, name):
        """Whether the subclass defines a rule."""
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def _missing(self, transformation, rules):
        return NotImplementedError(f"for {transformation} support, subclass {type(self)} must implement {rules}")

    def check(self, *arg_tys):
        """Checks the types of the arguments; a subclass may."""

    def expand(self, *args):
        """The operation in terms of others."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in, /, *args):
        """(result, residuals), and optionally which results have tangents."""
        raise self._missing("grad", "`vjp_fwd`")

    def vjp_bwd(self, res, outgrad, /, *arg_accums):
        """Adds the cotangents of the arguments to their accumulators."""
        args_grad = self.vjp_bwd_retval(res, outgrad)
        args_grad = broadcast_prefix(args_grad, self.in_avals, prefix_is_leaf=lambda x: x is None or type(x) is ad.Zero or hi.is_value(x))
        for accum, ct in zip(tree_leaves(arg_accums), args_grad, strict=True):
            accum.accum(ct)

    def vjp_bwd_retval(self, res, outgrad, /):
        """The cotangents of the arguments."""
        raise self._missing("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals, tangents):
        """(result, tangent)."""
        raise self._missing("jvp", "`jvp`")

    def lin(self, nzs_in, *primals):
        """(result, residuals) of the linear map that `linearized` is."""
        raise self._missing("linearize", "`lin` and `linearized`")

    def linearized(self, residuals, *tangents):
        """The tangent of the result."""
        raise self._missing("linearize", "`lin` and `linearized`")

    def transpose(self, out_ct, *maybe_accums):
        """Adds cotangents to the accumulators among the arguments, in which the operation is
        linear.
        """
        raise self._missing("transpose", "`transpose`")

    def batch(self, axis_data, args, dims):
        """(result, its axes) of the mapped operation."""
        out_dim = self.batch_dim_rule(axis_data, dims)
        where = lambda avals, dims: _per_array(avals, broadcast_prefix(dims, avals, prefix_is_leaf=lambda x: x is None))
        mapped = VmapOf(self, axis_data, where(self.in_avals, dims), where(self.out_aval, out_dim))
        return tree_unflatten(self.out_tree, mapped(*tree_leaves(args))), out_dim

    def batch_dim_rule(self, axis_data, dims, /):
        """The mapped axes of the result, from those of the arguments."""
        raise self._missing("vmap", "`batch` or `batch_dim_rule`")

    def dce(self, used_outs):
        """(which arguments are used, which results are made, the operation) where some results are
        not.
        """
        return (True, True, self) if any(tree_leaves(used_outs)) else (False, False, None)

    def remat(self, _policy, *args):
        """(result, how to compute it again)."""
        return self(*args), self

    def __call__(self, *args):
        out = call_hi_primitive_p.bind(*_packed(self.in_avals_flat, _leaves(self.in_tree, args)), _prim=self)
        return tree_unflatten(self.out_tree, _unpacked(self.out_avals_flat, out))

    def __repr__(self):
        return f"{self.__class__.__name__}[{self.params}]"

    def __hash__(self):
        return hash((self.__class__.__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other):
        return type(self) is type(other) and self.params == other.params and self.effects == other.effects and self.in_avals == other.in_avals


def _leaves(tree, values):
    """The leaves of a pytree that has a structure; a hijax value is one leaf."""
    return tree.flatten_up_to(values)


# ---------------------------------------------------------------- values as arrays


def _packed(avals, leaves):
    """The arrays of leaves."""
    return [x for a, leaf in zip(avals, leaves, strict=True) for x in (hi.arrays_of(a, leaf) if hi.is_type(a) else [leaf])]


def _unpacked(avals, arrays):
    """The leaves of arrays."""
    arrays = iter(arrays)
    return [hi.value_of(a, [next(arrays) for _ in range(hi.count(a))]) if hi.is_type(a) else next(arrays) for a in avals]


def _per_array(avals, entries):
    """Entries of leaves, one for each array."""
    return [e for a, e in zip(tree_leaves(avals), entries, strict=True) for _ in range(hi.count(a) if hi.is_type(a) else 1)]


def _types(avals):
    return [t for a in avals for t in (hi.array_types(a) if hi.is_type(a) else [a])]


def _changes(avals, arrays):
    """The tangents or cotangents of leaves, from those of their arrays, which may be `Zero`."""
    arrays, out = iter(arrays), []
    for a in avals:
        if hi.is_type(a):
            own = [next(arrays) for _ in range(hi.count(a))][len(a.lo_ty()) :]
            out.append(hi.change_of(a, own))
        else:
            out.append(next(arrays))
    return out


def _arrays_of_changes(avals, changes):
    """The opposite: one array or `Zero` for each array of the leaves."""
    out = []
    for a, t in zip(avals, changes, strict=True):
        if hi.is_type(a):
            out += [ad.Zero(x.to_tangent_aval()) for x in a.lo_ty()] + hi.arrays_of_change(a, t)
        else:
            out.append(ad.Zero(a.to_tangent_aval()) if t is None else t)
    return out


def _expand(prim, arrays):
    """`expand` on arrays."""
    out = prim.expand(*prim.in_tree.unflatten(_unpacked(prim.in_avals_flat, arrays)))
    return _packed(prim.out_avals_flat, _leaves(prim.out_tree, out))


def _jvp_on(prim, primals, tangents):
    """The tangents that a forward rule gives."""
    of = lambda leaves: prim.in_tree.unflatten(leaves)
    args = of(_unpacked(prim.in_avals_flat, primals))
    changes = of(_changes(prim.in_avals_flat, tangents))
    if prim._has("jvp") or not prim._has("lin"):
        out, moved = prim.jvp(args, changes)
    else:
        nonzero = of([type(t) is not ad.Zero for t in prim.in_tree.flatten_up_to(changes)])
        out, residuals, *_ = prim.lin(nonzero, *args)
        moved = prim.linearized(residuals, *changes)
    return _packed(prim.out_avals_flat, _leaves(prim.out_tree, out)), _arrays_of_changes(prim.out_avals_flat, _leaves(prim.out_tree, moved))


def _forward(prim, nonzero, arrays):
    """(results, residuals, which results have tangents) of `vjp_fwd`."""
    args = prim.in_tree.unflatten(_unpacked(prim.in_avals_flat, arrays))
    out, residuals, *nonzero_out = prim.vjp_fwd(prim.in_tree.unflatten(nonzero), *args)
    nonzero_out = broadcast_prefix(nonzero_out[0], prim.out_aval) if nonzero_out else [True] * len(prim.out_avals_flat)
    return _packed(prim.out_avals_flat, _leaves(prim.out_tree, out)), residuals, nonzero_out


def _backward(prim, nonzero, residuals, cts):
    """The cotangents of the arrays of the arguments that have tangents; None or `Zero` for the
    others.
    """
    accums = [(ValAccum if nz else NullAccum)(hi.cotangent_type(a)) for a, nz in zip(prim.in_avals_flat, nonzero, strict=True)]
    prim.vjp_bwd(residuals, prim.out_tree.unflatten(_changes(prim.out_avals_flat, cts)), *prim.in_tree.unflatten(accums))
    return _arrays_of_changes(prim.in_avals_flat, [acc.freeze() for acc in accums])


# ---------------------------------------------------------------- the primitive and its rules


call_hi_primitive_p = Primitive("call_hi_primitive")
call_hi_primitive_p.multiple_results = True
call_hi_primitive_p.def_impl(lambda *arrays, _prim: _expand(_prim, arrays))
call_hi_primitive_p.def_abstract_eval(lambda *_, _prim: _types(_prim.out_avals_flat))

# The linear map of a reverse rule: operands are residuals, primal operands if a forward rule needs them, and tangents.
call_hi_primitive_linearized_p = Primitive("call_hi_primitive_linearized")
call_hi_primitive_linearized_p.multiple_results = True


class _Residuals:
    """The structure of residuals: their leaves that are arrays are operands, the others are
    kept.
    """

    def __init__(self, residuals):
        leaves, self.tree = tree_flatten(residuals)
        self.arrays = [x for x in leaves if isinstance(x, _core.Array) or hasattr(x, "__array__")]
        self.kept = [None if isinstance(x, _core.Array) or hasattr(x, "__array__") else (x,) for x in leaves]

    def whole(self, arrays):
        arrays = iter(arrays)
        return self.tree.unflatten([next(arrays) if x is None else x[0] for x in self.kept])

    @property
    def n(self):
        return sum(x is None for x in self.kept)


def _live(prim, nonzero_out):
    """Which arrays of the results have tangents."""
    flags = []
    for a, nz in zip(prim.out_avals_flat, nonzero_out, strict=True):
        if hi.is_type(a):
            flags += [False] * len(a.lo_ty()) + [bool(nz) and is_inexact(t.dtype) for t in hi.tangent_types(a)]
        else:
            flags.append(bool(nz) and is_inexact(a.dtype))
    return flags


def _by_type(tangents, prim):
    """Tangents, with `Zero` for values that have none: integers, and the arrays of a hijax value
    except those that carry its tangent.
    """
    out, tangents = [], list(tangents)
    for a in prim.in_avals_flat:
        n = hi.count(a) if hi.is_type(a) else 1
        own, tangents = tangents[:n], tangents[n:]
        lo = len(a.lo_ty()) if hi.is_type(a) else 0
        out += [ad.Zero(t.aval if type(t) is ad.Zero else _core.get_aval(t)) for t in own[:lo]] + own[lo:]
    return out


def _jvp(primals, tangents, *, _prim):
    tangents = _by_type(tangents, _prim)
    active = [t for t in tangents if type(t) is not ad.Zero]
    nonzero = [type(t) is not ad.Zero for t in _changes(_prim.in_avals_flat, tangents)]
    has_forward = _prim._has("jvp") or _prim._has("lin")
    forward = all((owner := _core.trace_of(t)) is None or owner.what in ("vmap", "jvp") for t in active)
    if not has_forward and (forward or not _prim._has("vjp_fwd")):
        raise _prim._missing("jvp", "`jvp`") if forward else _prim._missing("grad", "`vjp_fwd`")
    if forward or not _prim._has("vjp_fwd"):
        return _jvp_on(_prim, primals, tangents)
    outs, residuals, nonzero_out = _forward(_prim, nonzero, primals)
    residuals, live = _Residuals(residuals), _live(_prim, nonzero_out)
    moved = iter(
        call_hi_primitive_linearized_p.bind(
            *residuals.arrays,
            *(primals if has_forward else ()),
            *active,
            _prim=_prim,
            residuals=residuals,
            active=tuple(type(t) is not ad.Zero for t in tangents),
            live=tuple(live),
            has_primals=has_forward,
        )
    )
    return outs, [next(moved) if on else ad.Zero(_core.get_aval(x).to_tangent_aval()) for x, on in zip(outs, live, strict=True)]


def _operands(operands, residuals, active, has_primals):
    """(residuals, primal operands, tangents)."""
    n, m = residuals.n, len(active) if has_primals else 0
    return operands[:n], operands[n : n + m], operands[n + m :]


def _linear_impl(*operands, _prim, residuals, active, live, has_primals):
    if not has_primals:
        raise TypeError(
            "can't apply forward-mode autodiff (jvp) to an operation with a reverse-mode rule alone: "
            f"for jvp support, subclass {type(_prim)} must implement `jvp`"
        )
    _, primals, tangents = _operands(operands, residuals, active, has_primals)
    tangents = iter(tangents)
    tangents = [next(tangents) if on else ad.Zero(t.to_tangent_aval()) for on, t in zip(active, _types(_prim.in_avals_flat), strict=True)]
    return [ad.instantiate_zeros(t) for t, on in zip(_jvp_on(_prim, primals, tangents)[1], live, strict=True) if on]


def _linear_types(*_, _prim, live, **__):
    return [t.to_tangent_aval() for t, on in zip(_types(_prim.out_avals_flat), live, strict=True) if on]


def _linear_transpose(cts, *operands, _prim, residuals, active, live, has_primals):
    cts = iter(cts)
    cts = [next(cts) if on else ad.Zero(t.to_tangent_aval()) for on, t in zip(live, _types(_prim.out_avals_flat), strict=True)]
    nonzero = [type(t) is not ad.Zero for t in _changes(_prim.in_avals_flat, [None if on else ad.Zero(None) for on in active])]
    known, _, linear = _operands(operands, residuals, active, has_primals)
    found = _backward(_prim, nonzero, residuals.whole(known), cts)
    found = [t for t, on in zip(found, active, strict=True) if on]
    return [None] * (len(operands) - len(linear)) + [None if t is None or type(t) is ad.Zero else t for t in found]


def _linear_jvp(operands, tangents, *, _prim, residuals, active, live, has_primals):
    first = len(operands) - sum(active)
    if any(type(t) is not ad.Zero for t in tangents[:first]):
        raise NotImplementedError(f"forward-mode differentiation of the reverse-mode rule of {type(_prim)} before its backward pass")
    bind = lambda last: call_hi_primitive_linearized_p.bind(
        *operands[:first], *last, _prim=_prim, residuals=residuals, active=active, live=live, has_primals=has_primals
    )
    return bind(operands[first:]), bind([ad.instantiate_zeros(t) for t in tangents[first:]])


def _linear_batch(axis, operands, dims, *, _prim, residuals, active, live, has_primals):
    """The linear map of each element."""
    params = {"_prim": _prim, "residuals": residuals, "active": active, "live": live, "has_primals": has_primals}
    mapped = vmap(lambda *xs: tuple(call_hi_primitive_linearized_p.bind(*xs, **params)), list(dims), 0, axis.name, axis.size)
    return list(mapped(*operands)), [0] * sum(live)


def _transpose(cts, *operands, _prim):
    leaves, arrays = [], iter(operands)
    for a in _prim.in_avals_flat:
        own = [next(arrays) for _ in range(hi.count(a) if hi.is_type(a) else 1)]
        if any(ad.is_undefined_primal(x) for x in own):
            leaves.append(ValAccum(hi.cotangent_type(a)))
        else:
            leaves.append(hi.value_of(a, own) if hi.is_type(a) else own[0])
    ct = _prim.out_tree.unflatten(_changes(_prim.out_avals_flat, cts))
    _prim.transpose(ct, *_prim.in_tree.unflatten(leaves))
    changes = [x.freeze() if isinstance(x, ValAccum) else None for x in leaves]
    found = _arrays_of_changes(_prim.in_avals_flat, changes)
    return [t if ad.is_undefined_primal(x) and type(t) is not ad.Zero else None for x, t in zip(operands, found, strict=True)]


def _batch(axis, operands, dims, *, _prim):
    if any(hi.is_type(a) for a in (*_prim.in_avals_flat, *_prim.out_avals_flat)):
        n = len(_types(_prim.out_avals_flat))
        return VmapOf(_prim, axis, list(dims), [0] * n)(*operands), [0] * n
    out, dims = _prim.batch(axis, _prim.in_tree.unflatten(operands), _prim.in_tree.unflatten(dims))
    return _leaves(_prim.out_tree, out), broadcast_prefix(dims, _prim.out_aval, prefix_is_leaf=lambda x: x is None)


ad.primitive_jvps[call_hi_primitive_p] = _jvp
ad.primitive_transposes[call_hi_primitive_p] = _transpose
batching.fancy_primitive_batchers[call_hi_primitive_p] = _batch
call_hi_primitive_linearized_p.def_impl(_linear_impl)
call_hi_primitive_linearized_p.def_abstract_eval(_linear_types)
ad.primitive_jvps[call_hi_primitive_linearized_p] = _linear_jvp
ad.primitive_transposes[call_hi_primitive_linearized_p] = _linear_transpose
batching.fancy_primitive_batchers[call_hi_primitive_linearized_p] = _linear_batch


# ---------------------------------------------------------------- under vmap


class VmapOf(VJPHiPrimitive):
    """An operation mapped over arrays: its rules are the mapped rules.

    The axes are those of its arrays, None where one is not mapped.
    """

    def __init__(self, prim, axis_data, in_dims, out_dims):
        whole = lambda t, d: t if d is None else _with_axis(t, axis_data.size, d)
        self.in_avals = tuple(map(whole, _types(prim.in_avals_flat), in_dims))
        self.out_aval = list(map(whole, _types(prim.out_avals_flat), out_dims))
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": tuple(in_dims), "out_dims": tuple(out_dims)}
        super().__init__()

    def _has(self, name):
        if name == "jvp":
            return self.prim._has("jvp") or self.prim._has("lin")
        return self.prim._has(name) if name == "vjp_fwd" else super()._has(name)

    def _mapped(self, fun, in_axes, out_axes):
        return vmap(fun, in_axes, out_axes, self.axis_data.name, self.axis_data.size, self.axis_data.spmd_name, sum_match=True)

    def expand(self, *arrays):
        """The mapped `expand`."""
        return self._mapped(lambda *xs: _expand(self.prim, xs), self.in_dims, list(self.out_dims))(*arrays)

    def jvp(self, primals, tangents):
        """The mapped forward rule."""
        on = [type(t) is not ad.Zero for t in tangents]
        dims = [d for d, nz in zip(self.in_dims, on, strict=True) if nz]
        avals, live = _types(self.prim.in_avals_flat), []

        def one(primals, changes):
            changes = iter(changes)
            whole = [next(changes) if nz else ad.Zero(a.to_tangent_aval()) for nz, a in zip(on, avals, strict=True)]
            outs, moved = _jvp_on(self.prim, primals, whole)
            live[:] = [type(t) is not ad.Zero for t in moved]
            # which are live is known once the rule has run: a place-holder for the others
            return outs, [t if nz else x for t, x, nz in zip(moved, outs, live, strict=True)]

        axes = list(self.out_dims)
        outs, moved = self._mapped(one, (list(self.in_dims), dims), (axes, axes))(list(primals), [t for t, nz in zip(tangents, on, strict=True) if nz])
        return outs, [t if nz else ad.Zero(_core.get_aval(x).to_tangent_aval()) for t, x, nz in zip(moved, outs, live, strict=True)]

    def vjp_fwd(self, nzs_in, *arrays):
        """The mapped forward pass. Residuals are mapped over their first axis."""
        found = []
        flags = [any(own) for own in self._of_leaves(nzs_in)]

        def one(*xs):
            outs, residuals, nonzero_out = _forward(self.prim, flags, xs)
            residuals = _Residuals(residuals)
            found[:] = [residuals, nonzero_out]
            return outs, residuals.arrays

        outs, arrays = self._mapped(one, self.in_dims, (list(self.out_dims), 0))(*arrays)
        residuals, nonzero_out = found
        return outs, (_Static((residuals, flags)), arrays), _per_array(self.prim.out_aval, nonzero_out)

    def _of_leaves(self, entries):
        """Entries of arrays, together for each leaf of the operation."""
        entries = iter(entries)
        return [[next(entries) for _ in range(hi.count(a) if hi.is_type(a) else 1)] for a in self.prim.in_avals_flat]

    def vjp_bwd_retval(self, res, outgrad):
        """The mapped backward pass: cotangents of arguments that are not mapped are summed."""
        residuals, flags = res[0].value
        avals, found = _types(self.prim.in_avals_flat), []
        outgrad = [ad.instantiate_zeros(ct) for ct in outgrad]
        inexact = [is_inexact(a.dtype) for a in _types(self.prim.out_avals_flat)]

        def one(arrays, cts):
            cts = iter(cts)
            whole = [next(cts) if on else ad.Zero(a.to_tangent_aval()) for a, on in zip(_types(self.prim.out_avals_flat), inexact, strict=True)]
            grads = _backward(self.prim, flags, residuals.whole(arrays), whole)
            found[:] = [g is not None and type(g) is not ad.Zero for g in grads]
            return [g if on else zeros(a.to_tangent_aval()) for g, on, a in zip(grads, found, avals, strict=True) if is_inexact(a.dtype)]

        live_dims = [d for d, on in zip(self.out_dims, inexact, strict=True) if on]
        back_dims = [d for d, a in zip(self.in_dims, avals, strict=True) if is_inexact(a.dtype)]
        cts = [ct for ct, on in zip(outgrad, inexact, strict=True) if on]
        grads = iter(self._mapped(one, (0, live_dims), back_dims)(res[1], cts))
        grads = [next(grads) if is_inexact(a.dtype) else None for a in avals]
        return tuple(g if on else None for g, on in zip(grads, found, strict=True))

    def batch_dim_rule(self, axis_data, dims, /):
        """Every result is mapped over its first axis."""
        return [0] * len(self.out_avals_flat)


class _Static:
    """A residual that is not an array."""

    def __init__(self, value):
        self.value = value


def _with_axis(aval, size, d):
    shape = list(aval.shape)
    shape.insert(d, size)
    return aval.update(shape=tuple(shape))
