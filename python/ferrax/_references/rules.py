"""Functions with user-defined rules (`custom_jvp`, `custom_vjp`, `custom_vmap`) that take or
capture mutable references.

Such a call is compiled as a function of values that returns the new values. Its rule is the user's,
called with references that hold these values.

Invariant: the user's function and rules get the references of the call themselves, never
replacements.

    @custom_vjp
    def stash(ref, x): return x
    stash.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (None, ref.__setitem__(..., ct) or ct))
"""

from .._trees import flat as _flat
from .._trees.flat import name_of, zeros
from .._trees.prefixes import broadcast_prefix
from ..tree_util import register_pytree_node, tree_flatten, tree_leaves
from .backward import as_cotangent, backward_of, from_cotangent
from .refs import Ref, bound, cannot_return, check_aliases, settle, values_of


def given_refs(what, fun, args):
    """The references among the arguments of a call; ValueError if one is passed twice."""
    if not _flat.references.seen:
        return []
    refs = [x for x in tree_leaves(args) if isinstance(x, Ref)]
    if refs:
        check_aliases(what, fun, args, {})
    return refs


class _Refs:
    """The references of a call: the arguments without them, and whole again."""

    def __init__(self, refs, args):
        self.refs, self.leaves, self.tree = refs, *tree_flatten(args)
        self.others = [x for x in self.leaves if not isinstance(x, Ref)]

    def whole(self, others, of_ref=lambda ref: ref):
        """The arguments with other leaves, and something for each reference."""
        given = iter(others)
        return self.tree.unflatten([of_ref(x) if isinstance(x, Ref) else next(given) for x in self.leaves])

    def parts(self, leaves):
        """One entry per argument leaf, as ({reference: entry}, entries of the others)."""
        own = {id(x): e for x, e in zip(self.leaves, leaves, strict=True) if isinstance(x, Ref)}
        return own, [e for x, e in zip(self.leaves, leaves, strict=True) if not isinstance(x, Ref)]


def _checked(fun, what, out):
    for x in tree_leaves(out):
        if isinstance(x, Ref):
            raise ValueError(cannot_return(fun, what, x))
    return out


def _like(made, fun):
    made.__name__ = made.__qualname__ = name_of(fun)
    return made


def _changed(before, after):
    return [a is not b for a, b in zip(before, after, strict=True)]


def _written(changed, refs, values):
    """The references that were written to, and their values.

    References that were only read keep theirs, under every derivative.
    """
    pairs = [(r, v) for r, v, c in zip(refs, values, changed, strict=True) if c]
    return [r for r, _ in pairs], [v for _, v in pairs]


# ---------------------------------------------------------------- custom_jvp


def call_custom_jvp(custom, static, merge, dyn, refs):
    """The call of a `custom_jvp` function with references in its reach."""
    parts, changed = _Refs(refs, dyn), []

    def primal(values, *others):
        with bound(refs, values):
            out, after = _checked(custom.fun, "custom_jvp", custom.fun(*merge(parts.whole(others)))), values_of(refs)
        changed[:] = _changed(values, after)
        return out, after

    def rule(primals, tangents):
        (values, *others), (dvalues, *dothers) = primals, tangents
        with bound(refs, values):
            zero = {id(r): zeros(v.aval) for r, v in zip(refs, values, strict=True)}
            pair = custom.jvp(*static, parts.whole(others), parts.whole(dothers, lambda r: zero[id(r)]))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                return pair
            after = values_of(refs)
        changed[:] = _changed(values, after)
        dafter = [zeros(v.aval) if c else d for v, d, c in zip(after, dvalues, changed, strict=True)]
        return (pair[0], after), (pair[1], dafter)

    inner = type(custom)(_like(primal, custom.fun))
    inner.defjvp(_like(rule, custom.jvp), symbolic_zeros=custom.symbolic_zeros)
    out, values = inner(values_of(refs), *parts.others)
    settle(*_written(changed, refs, values), strip=True)
    return out


# ---------------------------------------------------------------- custom_vjp


class _Reference:
    """In residuals, represents a reference of the call by its number."""

    def __init__(self, i):
        self.i = i


register_pytree_node(_Reference, lambda r: ((), r.i), lambda i, _: _Reference(i))


def call_custom_vjp(custom, static, merge, dyn, refs, symbolic_zero):
    """The call of a `custom_vjp` function with references in its reach. symbolic_zero: the class of
    zeros that were never made.
    """
    parts, backs = _Refs(refs, dyn), [backward_of(r) for r in refs]
    is_zero = lambda x: isinstance(x, symbolic_zero)
    made = lambda x: x.instantiate() if is_zero(x) else x
    changed = []

    def primal(values, states, *others):
        with bound([*refs, *backs], [*values, *states]):
            out, after = _checked(custom.fun, "custom_vjp", custom.fun(*merge(parts.whole(others)))), values_of(refs)
        changed[:] = _changed(values, after)
        return out, after, states

    def forward(values, states, *others):
        values, states = [v.value for v in values], [s.value for s in states]
        others = others if custom.symbolic_zeros else [x.value for x in others]
        with bound([*refs, *backs], [*values, *states]):
            pair = custom.fwd(*merge(parts.whole(others)))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                return pair
            after = values_of(refs)
        changed[:] = _changed(values, after)
        leaves, tree = tree_flatten(pair[1])
        numbers = {id(r): i for i, r in enumerate(refs)}
        for x in leaves:
            if isinstance(x, Ref) and id(x) not in numbers:
                raise ValueError(
                    f"custom_vjp fwd function {name_of(custom.fwd)} for custom_vjp function {name_of(custom.fun)} returned a mutable array reference of type"
                    f" {x._type()}, which is not an argument: mutable array references cannot be returned."
                )
        kept = tree.unflatten([_Reference(numbers[id(x)]) if isinstance(x, Ref) else x for x in leaves])
        return (_checked(custom.fwd, "custom_vjp fwd", pair[0]), after, states), kept

    def backward(kept, cts):
        out, dvalues, states = cts
        if all(map(is_zero, tree_leaves(out))):  # the rule is not called
            grads, after, own = None, states, {}
        else:
            leaves, tree = tree_flatten(kept, is_leaf=lambda x: isinstance(x, _Reference))
            residuals = tree.unflatten([refs[x.i] if isinstance(x, _Reference) else x for x in leaves])
            leaves, tree = tree_flatten(out)
            out = out if custom.symbolic_zeros else tree.unflatten(map(made, leaves))
            with bound(refs, [from_cotangent(made(s), r.dtype) for r, s in zip(refs, states, strict=True)]):
                grads = custom.bwd(*static, residuals, out)
                after = [as_cotangent(v) for v in values_of(refs)]
            own, grads = parts.parts(_spread(grads, parts))
        gone = changed or [False] * len(refs)
        dvalues = [_sum(own.get(id(r)), None if c or is_zero(d) else d) for r, d, c in zip(refs, dvalues, gone, strict=True)]
        return (dvalues, after, *(grads or [None] * len(parts.others)))

    inner = type(custom)(_like(primal, custom.fun))
    inner.defvjp(_like(forward, custom.fwd), _like(backward, custom.bwd), symbolic_zeros=True)
    out, values, states = inner(values_of(refs), values_of(backs), *parts.others)
    settle(*_written(changed, refs, values), strip=True)
    settle(backs, states)
    return out


def _spread(grads, parts):
    """The result of a `bwd` rule, one entry per leaf of the arguments.

    None is a zero, for a leaf or a subtree.
    """
    args = parts.tree.unflatten([object() for _ in parts.leaves])
    grads = tuple(grads) if isinstance(grads, list) else grads
    try:
        if not isinstance(grads, tuple) or len(grads) != len(args):
            raise ValueError
        return broadcast_prefix(grads, args, prefix_is_leaf=lambda x: x is None)
    except (ValueError, TypeError):
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple of the primal function, and in"
            f" particular must produce a tuple of length equal to the number of arguments to the primal function, but got {type(grads)} for"
            f" primal input structure {parts.tree}."
        ) from None


def _sum(a, b):
    return b if a is None else a if b is None else a + b


# ---------------------------------------------------------------- custom_vmap


def call_custom_vmap(custom, args, refs):
    """The call of a `custom_vmap` function with references in its reach."""
    parts = _Refs(refs, args)

    def primal(values, *others):
        with bound(refs, values):
            return _checked(custom.fun, "custom_vmap", custom.fun(*parts.whole(others))), values_of(refs)

    def rule(axis_size, in_batched, values, *others):
        mapped, *flags = in_batched
        flag = {id(r): b for r, b in zip(refs, mapped, strict=True)}
        with bound(refs, values):
            out, out_batched = custom.vmap_rule(axis_size, list(parts.whole(flags, lambda r: flag[id(r)])), *parts.whole(others))
            return (out, values_of(refs)), (out_batched, list(mapped))

    inner = type(custom)(_like(primal, custom.fun))
    if custom.vmap_rule is not None:
        inner.def_vmap(_like(rule, custom.vmap_rule))
    out, values = inner(values_of(refs), *parts.others)
    settle(refs, values)
    return out
