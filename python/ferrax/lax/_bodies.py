"""Functions given to control flow, traced to programs.

Invariant: a `Body`'s program takes its captured values first, then the flat arguments; `forwards` says which outputs are arguments
handed through untouched.

    captured        arguments
    [c0, c1, ...] + [a0, a1, ...]  -->  program  -->  [out0, out1, ...]
"""

from __future__ import annotations

import inspect

import numpy as np

from .. import _core
from .._dtypes import canonicalize_dtype, dtype_of
from .._flat import argument_names
from .._traced import remembered, settled

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten


def as_array(x):
    """x as an Array. Raises TypeError for what is no array nor number."""
    if isinstance(x, _core.Array):
        return x
    _core.get_aval(x)
    return _core.asarray(x)


def aval_of(x):
    """The abstract value of an array."""
    return x.aval


class Body:
    """A function traced on avals: its program, captured values, output tree, and which outputs are inputs unchanged. It is never changed."""

    __slots__ = ("consts", "forwards", "fun", "out_avals", "out_tree", "program")

    def __init__(self, fun, in_tree, avals, what="jit", user_fun=None):
        self.fun = fun
        user_fun = user_fun or fun
        found = {}

        def flat(*args):
            leaves, tree = tree_flatten(fun(*tree_unflatten(in_tree, args)))
            leaves = [as_array(x) for x in leaves]
            where = {id(a): i for i, a in enumerate(args)}
            found["tree"], found["forwards"] = tree, [where.get(id(x)) for x in leaves]
            return tuple(leaves)

        # errors name the user's function and its arguments; the names are made when one asks
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
            return body, settled(body.consts)

        return remembered(fun, (what, in_tree, tuple(avals)), make)

    def rewired(self, const_positions, arg_positions, keep, avals):
        """The program with inputs and outputs chosen anew.

        The new program takes `avals`; captured value i comes from input const_positions[i], argument i from input arg_positions[i]
        (None: not used, zeros will do), and only the outputs in `keep` are returned.
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
        """The program of a loop's function on the carry's `kept` entries, with `moved` entries as leading captured values.

        Entries in neither are not read by the program. keep: the outputs that stay.
        """
        n, m = len(moved), len(moved) + len(self.consts)
        avals = [aval_of(init[i]) for i in moved] + [aval_of(c) for c in self.consts] + [aval_of(init[i]) for i in kept]
        where = {i: k for k, i in enumerate(moved)} | {i: m + k for k, i in enumerate(kept)}

        def flat(*args):
            unread = {i: _core.asarray(np.zeros(init[i].shape, init[i].dtype)) for i in range(len(init)) if i not in where}
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
    """The captured values of all bodies, each once, and for each body the positions of its own among them."""
    consts, where, positions = [], {}, []
    for body in bodies:
        mine = []
        for c in body.consts:
            key = id(c)
            if key not in where:
                where[key] = len(consts)
                consts.append(c)
            mine.append(where[key])
        positions.append(mine)
    return consts, positions


def is_leaf_structure(tree) -> bool:
    """Whether the tree is one leaf."""
    return tree.num_leaves == 1 and tree.num_nodes == 1


def _children(x):
    leaves, tree = _core.tree_flatten_with_path(x, is_leaf=lambda y: y is not x)
    return leaves, tree


def tree_differences(a, b, path=()):
    """(path, kind of a, kind of b, explanation) for every place where two trees differ in structure."""
    leaf_a, leaf_b = _is_leaf(a), _is_leaf(b)
    if leaf_a and leaf_b:
        return []
    kind = lambda x, leaf: "pytree leaf" if leaf else str(type(x))
    if leaf_a != leaf_b or type(a) is not type(b):
        return [(path, kind(a, leaf_a), kind(b, leaf_b), "so their Python types differ")]
    (ca, ta), (cb, tb) = _children(a), _children(b)
    if len(ca) != len(cb) and isinstance(a, (tuple, list)):
        name = type(a).__name__
        return [(path, f"{name} of length {len(ca)}", f"{name} of length {len(cb)}", "so the lengths do not match")]
    if len(ca) != len(cb):
        return [(path, f"{type(a)} with {len(ca)} child", f"{type(b)} with {len(cb)} child", "so the numbers of children do not match")]
    if ta != tb:
        ka, kb = _metadata(a), _metadata(b)
        return [(path, f"{type(a)} with pytree metadata {ka}", f"{type(b)} with pytree metadata {kb}", "so the pytree node metadata does not match")]
    out = []
    for (ka, xa), (_, xb) in zip(ca, cb, strict=True):
        out += tree_differences(xa, xb, path + tuple(ka))
    return out


def _metadata(x):
    return tuple(sorted(x)) if isinstance(x, dict) else tuple(getattr(x, "__dict__", {}))


def _is_leaf(x) -> bool:
    return is_leaf_structure(_core.tree_flatten(x)[1])


def keystr(path) -> str:
    """The path as it would be written after the name, such as ['a'][1].x ."""
    return "".join([str(k) for k in path])


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
            + _enumerate(lines)
            + "\n\nRevise the function so that the carry output has the same pytree structure as the carry input."
        )
    if all(same_type(a, b) for a, b in zip(in_avals, out_avals, strict=True)):
        return
    paths = [p for p, _ in _core.tree_flatten_with_path(tree_unflatten(in_tree, [object() for _ in in_avals]))[0]]
    lines = []
    for path, a, b in zip(paths, in_avals, out_avals, strict=True):
        if not same_type(a, b):
            here = f"the input carry component {name}{keystr(path)}" if path else f"the input carry {name}"
            lines.append(f"{here} has type {type_string(a)} but the corresponding output carry component has type {type_string(b)}, {why_differ(a, b)}")
    raise TypeError(
        f"{what} function carry input and carry output must have equal types, but they differ:\n\n"
        + _enumerate(lines)
        + "\n\nRevise the function so that all output types match the corresponding input types."
    )


def _enumerate(lines) -> str:
    if len(lines) == 1:
        return lines[0][0].upper() + lines[0][1:] + "."
    return "\n".join([f"  * {line};" for line in lines[:-1]] + [f"  * {lines[-1]}."])


def same_type(a, b) -> bool:
    """Whether two avals agree in shape and dtype."""
    return tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype


def type_string(aval) -> str:
    """The type in short, such as float32[3] ."""
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def why_differ(a, b) -> str:
    """The clause that says how two avals differ."""
    shapes, dtypes = tuple(a.shape) != tuple(b.shape), a.dtype != b.dtype
    if shapes and dtypes:
        return "so the shapes and dtypes do not match" if len(a.shape) == len(b.shape) else "so the shapes do not match, and the dtypes do not match"
    return "so the shapes do not match" if shapes else "so the dtypes do not match"


def promote_weak(values, in_avals, out_avals):
    """The initial carry with weakly typed entries converted where the body's output has a stronger dtype; None if nothing changed."""
    if len(in_avals) != len(out_avals):
        return None
    changed, out = False, list(values)
    for i, (x, a, b) in enumerate(zip(values, in_avals, out_avals, strict=True)):
        if a.dtype != b.dtype and a.weak_type and tuple(a.shape) == tuple(b.shape):
            dtype = _core.result_type(x, _core.asarray(np.zeros((), b.dtype)) if not b.weak_type else b.dtype.type(0).item())
            if dtype != dtype_of(x):
                out[i] = _core.bind("convert_element_type", x, new_dtype=canonicalize_dtype(dtype), weak_type=bool(b.weak_type))
                changed = True
    return out if changed else None
