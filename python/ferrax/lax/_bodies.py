"""Functions given to control flow, traced to programs.

Invariant: a `Body`'s program takes its captured values first, then the flat arguments; `forwards`
lists the outputs that are arguments returned unchanged.

    captured        arguments
    [c0, c1, ...] + [a0, a1, ...]  -->  program  -->  [out0, out1, ...]
"""

from __future__ import annotations

import inspect

import numpy as np

from .. import _core
from .._base.differences import tree_differences
from .._base.dtypes import canonicalize_dtype, dtype_of, is_key
from .._tracing.cached_traces import remembered, settled
from .._trees import flat as _flat
from .._trees.flat import argument_names, describe
from ..tree_util import keystr

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten


def as_array(x):
    """`x` as an Array. Raises TypeError for a value that is neither an array nor a number."""
    if isinstance(x, _core.Array):
        return x
    _core.get_aval(x)
    return _core.asarray(x)


def _result(x, i, out, fun, what):
    """Leaf i of what `fun` returned, as an Array."""
    try:
        return as_array(x)
    except TypeError:
        path = keystr(_core.tree_flatten_with_path(out)[0][i][0])
        if isinstance(x, _flat.references.Ref):
            at = f" at output tree path result{path}" if path else ""
            raise ValueError(_flat.references.cannot_return(fun, what, x, at=at)) from None
        at = f" at output component {path}" if path else ""
        raise TypeError(f"function {describe(fun)} traced for {what} returned a value of type {type(x)}{at}, which is not a valid JAX type") from None


def refuse_ref_carry(what, fun, init, check_aliases, at):
    """Raises ValueError where a loop's carry has a mutable reference, which the next step would
    return.
    """
    if _flat.references.seen:
        for path, x in _core.tree_flatten_with_path(init, None)[0]:
            if isinstance(x, _flat.references.Ref):
                check_aliases()
                raise ValueError(_flat.references.cannot_return(fun, what, x, at=f" at output tree path {at}{keystr(path)}"))


def aval_of(x):
    """The abstract value of an array."""
    return x.aval


class Body:
    """A function traced on avals: its program, captured values, output tree, and which outputs are
    inputs unchanged.

    It is never changed.
    """

    # Not the function itself: a cache entry must not keep its function alive.
    __slots__ = ("consts", "forwards", "out_avals", "out_tree", "program")

    def __init__(self, fun, in_tree, avals, what="jit", user_fun=None):
        user_fun = user_fun or fun
        found = {}

        def flat(*args):
            out = fun(*tree_unflatten(in_tree, args))
            leaves, tree = tree_flatten(out)
            leaves = [_result(x, i, out, user_fun, what) for i, x in enumerate(leaves)]
            where = {id(a): i for i, a in enumerate(args)}
            found["tree"], found["forwards"] = tree, [where.get(id(x)) for x in leaves]
            return tuple(leaves)

        # errors name the user's function and its arguments; the names are computed when they are needed
        names = lambda: argument_names(user_fun, tree_unflatten(in_tree, [0] * len(avals)), {})
        self.program, consts = _core.make_program(flat, list(avals), user_fun=user_fun, arg_paths=names, what=what)
        self.consts = list(consts)
        self.out_tree, self.forwards = found["tree"], found["forwards"]
        self.out_avals = list(self.program.out_avals)

    @classmethod
    def of(cls, fun, in_tree, avals, what):
        """The body of a function, which may have been traced before."""

        def make():
            body = cls(fun, in_tree, avals, what)
            return body, settled(fun, body.program, body.consts)

        return remembered(fun, (what, in_tree, tuple(avals)), make)

    def rewired(self, const_positions, arg_positions, keep, avals):
        """The program with inputs and outputs chosen anew.

        The new program takes `avals`; captured value i comes from input const_positions[i],
        argument i from input arg_positions[i] (None: not used, zeros will do), and only the outputs
        in `keep` are returned.
        """

        def flat(*args):
            consts = [args[i] for i in const_positions]
            outs = _core.eval_program(self.program, consts, *[args[i] for i in arg_positions])
            return tuple([outs[i] for i in keep])

        program, consts = _core.make_program(flat, list(avals))
        if consts:
            raise AssertionError(f"a closed program captured {len(consts)} values")
        return program

    def with_carry(self, kept, moved, init, keep):
        """The program of a loop's function on the carry's `kept` entries, with `moved` entries as
        leading captured values.

        Entries in neither are not read by the program. keep: the outputs to return.
        """
        n, m = len(moved), len(moved) + len(self.consts)
        avals = [aval_of(init[i]) for i in moved] + [aval_of(c) for c in self.consts] + [aval_of(init[i]) for i in kept]
        where = {i: k for k, i in enumerate(moved)} | {i: m + k for k, i in enumerate(kept)}

        def flat(*args):
            # these are not read, so each key can represent itself
            stand_in = lambda x: x if is_key(x.dtype) else _core.asarray(np.zeros(x.shape, x.dtype))
            unread = {i: stand_in(init[i]) for i in range(len(init)) if i not in where}
            carry = [args[where[i]] if i in where else unread[i] for i in range(len(init))]
            outs = _core.eval_program(self.program, list(args[n:m]), *carry)
            return tuple([outs[i] for i in keep])

        return _core.make_program(flat, avals)[0]

    def uses_argument(self, i) -> bool:
        """Whether any equation or output reads argument i."""
        jaxpr = self.program.jaxpr
        var = jaxpr.invars[i]
        return any(v is var or v == var for eqn in jaxpr.eqns for v in eqn.invars) or any(v is var or v == var for v in jaxpr.outvars)


def share_consts(bodies):
    """The captured values of all bodies without repetition, and for each body the positions of its
    own among them.
    """
    consts, where, positions = [], {}, []
    for body in bodies:
        mine = []
        for c, key in zip(body.consts, _core.identities(body.consts), strict=True):
            key = ("object", id(c)) if key is None else key
            if key not in where:
                where[key] = len(consts)
                consts.append(c)
            mine.append(where[key])
        positions.append(mine)
    return consts, positions


def first_parameter(fun) -> str:
    """The name of fun's first parameter."""
    try:
        return next(iter(inspect.signature(fun).parameters))
    except (TypeError, ValueError, StopIteration):
        return "c"


def check_carry(what, fun, in_tree, in_avals, out_tree, out_avals):
    """Raises TypeError unless a loop's carry keeps its structure and types (weak types aside)."""
    name = first_parameter(fun)
    if in_tree != out_tree:
        a = tree_unflatten(in_tree, [object() for _ in in_avals])
        b = tree_unflatten(out_tree, [object() for _ in out_avals])
        lines = []
        for path, ka, kb, why in tree_differences(a, b):
            here = f"the input carry component {name}{keystr(path)}" if path else f"the input carry {name}"
            lines.append(f"{here} is a {ka} but the corresponding component of the carry output is a {kb}, {why}")
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, but they differ:\n\n"
            + enumerated(lines)
            + "\n\nRevise the function so that the carry output has the same pytree structure as the carry input."
        )
    if all(same_type(a, b) for a, b in zip(in_avals, out_avals, strict=True)):
        return
    paths = [p for p, _ in _core.tree_flatten_with_path(tree_unflatten(in_tree, [object() for _ in in_avals]))[0]]
    lines, cures = [], []
    for path, a, b in zip(paths, in_avals, out_avals, strict=True):
        if not same_type(a, b):
            here = f"the input carry component {name}{keystr(path)}" if path else f"the input carry {name}"
            lines.append(f"{here} has type {type_string(a)} but the corresponding output carry component has type {type_string(b)}, {why_differ(a, b)}")
            cures.append((b.vma - a.vma, f", to the initial carry value corresponding to {here}"))
    raise TypeError(
        f"{what} function carry input and carry output must have equal types, but they differ:\n\n"
        + enumerated(lines)
        + "\n\n"
        + pcast_advice(cures)
        + "Revise the function so that all output types match the corresponding input types."
    )


def enumerated(lines) -> str:
    """One sentence, or a list of several."""
    if len(lines) == 1:
        return lines[0][0].upper() + lines[0][1:] + "."
    return "\n".join([f"  * {line};" for line in lines[:-1]] + [f"  * {lines[-1]}."])


def same_type(a, b) -> bool:
    """Whether two avals agree in shape, dtype, varying manual axes and sharding."""
    return tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype and a.str_short() == b.str_short()


def type_string(aval) -> str:
    """The type in short, such as float32[3] ."""
    return aval.str_short()


def why_differ(a, b) -> str:
    """The clause of an error that describes the difference of two avals."""
    shapes, dtypes = tuple(a.shape) != tuple(b.shape), a.dtype != b.dtype
    if shapes and dtypes:
        return "so the dtypes do not match, and the shapes do not match"
    if shapes or dtypes:
        return "so the shapes do not match" if shapes else "so the dtypes do not match"
    return "so the manual axis types do not match" if a.vma != b.vma else "so the shardings do not match"


def pcast_advice(cures) -> str:
    """JAX's advice for types that vary over different axes. cures: (the axes that one type lacks,
    the value with that type).
    """
    cures = [f"applying `jax.lax.pcast(..., {tuple(sorted(axes))}, to='varying')`{of}" for axes, of in cures if axes]
    if not cures:
        return ""
    text = f"This might be fixed by {cures[0]}.\n" if len(cures) == 1 else "This might be fixed by:\n" + enumerated(cures) + "\n"
    return text + "See https://docs.jax.dev/en/latest/notebooks/shard_map.html#scan-vma for more information.\n\n"


def promote_weak(values, in_avals, out_avals, fun=None):
    """The initial carry with weakly typed entries converted where the body's output has a stronger
    dtype; None if nothing changed.

    For a loop of the library itself (`fun` is its function), entries are made to vary over the
    manual axes of the output: users do not see such loops.
    """
    ours = (getattr(fun, "__module__", None) or "").startswith(__name__.split(".")[0] + ".")
    if len(in_avals) != len(out_avals):
        return None
    changed, out = False, list(values)
    for i, (x, a, b) in enumerate(zip(values, in_avals, out_avals, strict=True)):
        if a.dtype != b.dtype and a.weak_type and tuple(a.shape) == tuple(b.shape):
            dtype = _core.result_type(x, _core.asarray(np.zeros((), b.dtype)) if not b.weak_type else b.dtype.type(0).item())
            if dtype != dtype_of(x):
                # Strongly typed, whether or not the output is: JAX's results of such loops are.
                out[i] = _core.bind("convert_element_type", x, new_dtype=canonicalize_dtype(dtype), weak_type=False)
                changed = True
        if ours and b.vma - a.vma:
            out[i], changed = _core.varying(out[i], b.vma), True
    return out if changed else None
