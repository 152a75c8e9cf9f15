"""Conditionals and loops without outputs per step: cond, switch, while_loop.

Invariant: each emits one `cond`, `while` or `scan` equation whose bodies are programs; arrays that
the bodies capture become operands.

    >>> jax.lax.while_loop(lambda x: x < 10, lambda x: 2 * x, 3)
    Array(12, dtype=int32, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import _core
from .._base.differences import is_leaf_structure, tree_differences
from .._base.dtypes import dtype_of, is_bool, is_integer
from .._base.flags import inert
from .._base.tracebacks import api_boundary
from .._core import bind
from .._trees import flat as _flat
from .._trees.flat import describe
from ..errors import ConcretizationTypeError
from ..tree_util import keystr, tree_map
from ._bodies import (
    Body,
    as_array,
    aval_of,
    check_carry,
    enumerated,
    pcast_advice,
    promote_weak,
    refuse_ref_carry,
    same_type,
    share_consts,
    type_string,
    why_differ,
)
from ._creation import convert_element_type

if TYPE_CHECKING:
    from ..typing import ArrayLike

_T = TypeVar("_T")

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten
_absent = type("_Absent", (), {"__repr__": lambda self: "<not given>"})()


def _tuple(out):
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _branches(what, index, funs, names, operands, order):
    """The outputs of a branch, with the values of references that it closes over or takes."""
    if _flat.references.seen and any(isinstance(x, _flat.references.Ref) for x in tree_flatten(operands)[0]):
        for fun in funs:
            _flat.references.check_aliases(what, fun, operands, {})
        funs, operands = _without_refs(funs, operands)

    def threaded(refs):
        def branch(fun):
            def run(values, *operands):
                with _flat.references.bound(refs, values):
                    return fun(*operands), _flat.references.values_of(refs)

            return run

        within = {id(f): branch(f) for f in funs}
        out, values = _traced_branches(what, index, [within[id(f)] for f in funs], names, (_flat.references.values_of(refs), *operands), order)
        _flat.references.settle(refs, values)
        return out

    return _flat.references.thread_references(lambda: _traced_branches(what, index, funs, names, operands, order), threaded)


def _without_refs(funs, operands):
    """The branches as functions that have the references among their operands in reach, and the
    other operands.
    """
    leaves, tree = tree_flatten(operands)
    is_ref = [isinstance(x, _flat.references.Ref) for x in leaves]

    def branch(fun):
        def run(*others):
            rest = iter(others)
            return fun(*tree_unflatten(tree, [x if r else next(rest) for x, r in zip(leaves, is_ref, strict=True)]))

        run.__wrapped__ = fun  # errors name the user's function
        return run

    within = {id(f): branch(f) for f in funs}
    return [within[id(f)] for f in funs], tuple([x for x, r in zip(leaves, is_ref, strict=True) if not r])


def _traced_branches(what, index, funs, names, operands, order):
    flat, tree = tree_flatten(operands)
    flat = [as_array(x) for x in flat]
    avals = [aval_of(x) for x in flat]
    made = {}  # a function that is several branches is traced once
    for f in funs:
        if id(f) not in made:
            made[id(f)] = Body.of(f, tree, avals, what)
    bodies = [made[id(f)] for f in funs]
    for body, name, f in zip(bodies[1:], names[1:], funs[1:], strict=True):
        _check_branches(what, bodies[0], body, names[0], name, (funs[0], f))
    return _emit_branches(index, bodies, flat, order)


def _check_branches(what, a, b, name_a, name_b, funs):
    who = f"{name_a} is {describe(funs[0])}\n{name_b} is {describe(funs[1])}\n\n"
    if a.out_tree != b.out_tree:
        ta = tree_unflatten(a.out_tree, [object() for _ in a.out_avals])
        tb = tree_unflatten(b.out_tree, [object() for _ in b.out_avals])
        lines = []
        for path, ka, kb, why in tree_differences(ta, tb):
            at = f" at path {keystr(path)}" if path else ""
            lines.append(f"{name_a} output{at} is a {ka} but {name_b} output{at} is a {kb}, {why}.")
        raise TypeError(
            f"{what} branch outputs must have the same pytree structure, but they differ:\n\n{who}"
            + "\n".join(lines)
            + f"\n\nRevise {name_a} and/or {name_b} so that they have the same pytree structure."
        )
    lines, cures = [], []
    paths = [p for p, _ in _core.tree_flatten_with_path(tree_unflatten(a.out_tree, [object() for _ in a.out_avals]))[0]]
    for path, x, y in zip(paths, a.out_avals, b.out_avals, strict=True):
        if not same_type(x, y):
            at = f" at path {keystr(path)}" if path else ""
            lines.append(
                f"the output of {name_a}{at} has type {type_string(x)} but the corresponding output of {name_b} has type {type_string(y)}, {why_differ(x, y)}"
            )
            cures += [(y.vma - x.vma, f" to the output of {name_a}{at}"), (x.vma - y.vma, f" to the output of {name_b}{at}")]
    if lines:
        raise TypeError(
            f"{what} branches must have equal output types but they differ.\n\n{who}"
            + enumerated(lines)
            + "\n\n"
            + pcast_advice(cures)
            + f"Revise {name_a} and/or {name_b} so that all output types match."
        )


def _emit_branches(index, bodies, operands, order):
    """The `cond` equation. bodies: in the order in which they were traced; order: the number of the
    body for each index.
    """
    consts, positions = share_consts(bodies)
    # An output that is the same operand in every branch needs no equation.
    forwards = [f if all(b.forwards[i] == f for b in bodies) else None for i, f in enumerate(bodies[0].forwards)]
    keep = [i for i, f in enumerate(forwards) if f is None]
    avals = [aval_of(c) for c in consts] + [aval_of(x) for x in operands]
    arguments = range(len(consts), len(avals))
    if _core.get_aval(index).vma:
        # where positions take different branches, each has a part of its own in the operands' cotangents
        consts, operands = ([_core.varying(x, _core.get_aval(index).vma) for x in xs] for xs in (consts, operands))
    programs = []
    for body, mine in ((bodies[i], positions[i]) for i in order):
        whole = mine == list(range(len(consts))) and len(keep) == len(forwards)
        programs.append(body.program if whole else body.rewired(mine, arguments, keep, avals))
    needed = keep or any(p.effects for p in programs)
    outs = iter(_tuple(bind("cond", index, *consts, *operands, branches=tuple(programs))) if needed else ())
    return tree_unflatten(bodies[0].out_tree, [next(outs) if f is None else operands[f] for f in forwards])


def _operands(operands, operand):
    """The operands of a branch, given one by one or as the keyword `operand`."""
    if operand is _absent or (operand is None and operands):
        return operands
    if operands:
        raise TypeError(f"if 'operand' keyword is passed then no positional operands can be passed, got operand={operand} and positional operands {operands}")
    return (operand,)


@overload
def cond(pred: ArrayLike, true_fun: Callable[..., _T], false_fun: Callable[..., Any], *operands: Any, operand: Any = ..., linear: Any = None) -> _T: ...


@overload
def cond(pred: ArrayLike, true_operand: Any, true_fun: Callable[..., _T], false_operand: Any, false_fun: Callable[..., Any], /) -> _T: ...


@api_boundary
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = _absent, linear: Any = None) -> _T:
    """true_fun(*operands) if pred else false_fun(*operands), with `pred` known only when the
    program runs.

    Under `vmap` with a batched `pred` both branches run and the result is selected.

    Args:
        pred: scalar, boolean or numeric (other than 0 is true).
        true_fun, false_fun: functions of the operands; both are traced and return trees of equal
          structure and types.
        *operands: pytrees.
        operand: one operand by keyword, in place of `operands`.
        linear: deprecated, not read.

    Returns:
        The result of the chosen function.

    Raises:
        TypeError: if the branches differ in type, one is not callable, or pred is not a scalar.

    >>> jax.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if linear is not None:
        inert("cond", "linear", "derivatives find out by themselves")
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        # The older form: cond(pred, true_operand, true_fun, false_operand, false_fun).
        true_operand, true_fun, false_operand, false_fun = true_fun, false_fun, *operands
        t, f = true_fun, false_fun
        return cond(pred, lambda a, _: t(a), lambda _, b: f(b), true_operand, false_operand)
    operands = _operands(operands, operand)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if pred is None:
        raise TypeError("cond predicate is None")
    if isinstance(pred, (str, list, tuple, dict)):
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}")
    if not isinstance(pred, (bool, int, float, complex, np.generic, np.ndarray, _core.Array)):
        raise TypeError(f"Pred type must be either boolean or number, got {pred}.")
    if np.shape(pred) != ():
        raise TypeError(f"Pred must be a scalar, got {pred} of shape {np.shape(pred)}.")
    dtype = dtype_of(pred)
    if not is_bool(dtype):
        # bfloat16 has none of NumPy's kinds, so it cannot be a predicate.
        if dtype.kind not in "iuf":
            raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
        pred = bind("ne", pred, dtype.type(0))
    if _core.config_get("jax_disable_jit") and not isinstance(pred, _core.Tracer):
        return true_fun(*operands) if pred else false_fun(*operands)
    index = convert_element_type(pred, np.int32)
    # Traced in the order written, stored in the order of the index: false first.
    return _branches("cond", index, (true_fun, false_fun), ("true_fun", "false_fun"), operands, (1, 0))


@api_boundary
def switch(index: ArrayLike, branches: Sequence[Callable[..., _T]], *operands: Any, operand: Any = _absent) -> _T:
    """branches[index](*operands), with `index` known only when the program runs.

    Args:
        index: integer scalar, clamped to the branches there are.
        branches: sequence of functions of the operands; all are traced and return trees of equal
          structure and types.
        *operands: pytrees.
        operand: one operand by keyword, in place of `operands`.

    Returns:
        The result of the chosen branch.

    Raises:
        TypeError: for an index that is not an integer scalar, or branches that differ in type.
        ValueError: for no branches.

    >>> jax.lax.switch(1, [lambda x: x, lambda x: 10 * x], 5.0)
    Array(50., dtype=float32, weak_type=True)
    """
    operands = _operands(operands, operand)
    if not all(callable(branch) for branch in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if isinstance(index, str) or callable(index):
        raise TypeError(f"Index type must be an integer, got {index}.")
    if np.shape(index) != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {np.shape(index)}.")
    dtype = np.dtype("float32") if index is None else dtype_of(index)
    if not is_integer(dtype):
        raise TypeError(f"Index type must be an integer, got {index} as {dtype}")
    branches = tuple(branches)
    if len(branches) == 0:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    if _core.config_get("jax_disable_jit") and not isinstance(index, _core.Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = convert_element_type(index, np.int32)
    index = bind("clamp", np.int32(0), index, np.int32(len(branches) - 1))
    names = ["branch 0"] + [f"branch{i}" for i in range(1, len(branches))]
    return _branches("switch", index, branches, names, operands, range(len(branches)))


@api_boundary
def while_loop(cond_fun: Callable[[_T], Any], body_fun: Callable[[_T], _T], init_val: _T) -> _T:
    """Runs val = body_fun(val) while cond_fun(val), from init_val.

    Differentiable forwards and, through a tape that grows as the loop runs, in reverse.

    Args:
        cond_fun: function of the carry that returns a boolean scalar.
        body_fun: function of the carry that returns a carry of the same structure, shapes and
          dtypes.
        init_val: pytree: the first carry.

    Returns:
        Pytree like init_val: the last carry.

    Raises:
        TypeError: if the carry changes type, or a function is not callable.
        ValueError: if cond_fun writes to a mutable reference.

    >>> jax.lax.while_loop(lambda x: x < 10, lambda x: 2 * x, 1)
    Array(16, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    refuse_ref_carry("while_body", body_fun, init_val, lambda: _flat.references.check_aliases("while_body", body_fun, (init_val,), {}), "result")
    if _core.config_get("jax_disable_jit"):
        val = tree_map(as_array, init_val)
        try:
            while cond_fun(val):
                val = body_fun(val)
            return val
        except ConcretizationTypeError:
            pass  # a transformation follows the condition: the loop is traced after all

    def loop(cond_fun, body_fun, init_val):
        return while_loop_of(lambda *key: Body.of(cond_fun, *key, "while_cond"), lambda *key: Body.of(body_fun, *key, "while_body"), body_fun, init_val)

    def threaded(refs):
        def test(carry):
            with _flat.references.bound(refs, carry[1]):
                go_on = cond_fun(carry[0])
                if any(a is not b for a, b in zip(_flat.references.values_of(refs), carry[1], strict=True)):
                    raise ValueError("lax.while_loop: cond_fun must not write to a mutable reference")
                return go_on

        def body(carry):
            with _flat.references.bound(refs, carry[1]):
                return body_fun(carry[0]), _flat.references.values_of(refs)

        out, values = loop(test, body, (init_val, _flat.references.values_of(refs)))
        _flat.references.settle(refs, values)
        return out

    return _flat.references.thread_references(lambda: loop(cond_fun, body_fun, init_val), threaded)


def while_loop_of(cond_body, body_body, body_fun, init_val, user_fun=None):
    """The loop of two bodies, for an input structure and avals.

    Errors name the user's `user_fun` instead of `body_fun`.
    """
    init, tree = tree_flatten(init_val)
    init = [as_array(x) for x in init]
    in_tree = tree_flatten((init_val,))[1]
    while True:
        avals = [aval_of(x) for x in init]
        test, body = cond_body(in_tree, avals), body_body(in_tree, avals)
        promoted = promote_weak(init, avals, body.out_avals, user_fun or body_fun) if body.out_tree == tree else None
        if promoted is None:
            break
        init = promoted
    if not is_leaf_structure(test.out_tree):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {test.out_tree}.")
    pred = test.out_avals[0]
    if pred.dtype != np.bool_ or tuple(pred.shape) != ():
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {test.out_avals}.")
    check_carry("while_loop body", body_fun, tree, avals, body.out_tree, body.out_avals)
    return tree_unflatten(tree, _emit_while(test, body, init))


def _emit_while(test, body, init):
    """The `while` equation.

    Entries of the carry that the body hands through and the test ignores become captured values of
    the body.
    """
    moved = [i for i, f in enumerate(body.forwards) if f == i and not test.uses_argument(i)]
    kept = [i for i in range(len(init)) if i not in moved]
    test_program, body_program, body_consts = test.program, body.program, body.consts
    if moved:
        test_program = test.with_carry(kept, [], init, range(1))
        body_program = body.with_carry(kept, moved, init, kept)
        body_consts = [init[i] for i in moved] + body_consts
    outs = bind(
        "while",
        *test.consts,
        *body_consts,
        *[init[i] for i in kept],
        cond_jaxpr=test_program,
        cond_nconsts=len(test.consts),
        body_jaxpr=body_program,
        body_nconsts=len(body_consts),
    )
    outs = iter(_tuple(outs))
    return [init[i] if i in moved else next(outs) for i in range(len(init))]
