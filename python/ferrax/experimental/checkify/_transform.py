"""`checkify`: a function as one that also returns its first failure.

    err, y = checkify(f, errors=nan_checks)(x)

Invariant: the arguments of the function are captured, and are not parameters of its program; a
function in `vmap` that can fail within a loop or a branch is checked element by element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _core, lax
from ..._base.config import make_user_context
from ..._base.tracebacks import api_boundary
from ..._tracing.picklable import restorable
from ..._transforms.vmap import elements, vmap
from ..._trees import flat as _flat
from ...lax._bodies import Body
from ...tree_util import tree_flatten, tree_leaves
from ._checks import CheckFunction, emit
from ._errors import Error, Site, Sites, State, error_of, slots_of, user_checks
from ._programs import fails_in_some, has_tapes, slots_in
from ._walk import walk

_NO_ARGUMENTS = tree_flatten(())[1]


@api_boundary
def checkify(f: Callable[..., Any], errors: frozenset[Any] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """`f` as a function that also returns its first failure: `(error, out)`.

    Args:
        f: a function that returns a pytree of arrays. Its arguments may be anything: they are
          passed unchanged.
        errors: the checks to make: `user_checks`, `nan_checks`, `div_checks`, `float_checks`,
          `index_checks`, `automatic_checks`, `all_checks`, or a union of them.

    Returns:
        the function. An error does not change the values of `out`; the first error is returned.

    >>> from ferrax.experimental import checkify
    >>> f = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)
    >>> err, y = f(jnp.arange(3.0), 5)
    >>> err.get()
    'out-of-bounds indexing for array of shape (3,): index 5 is out of bounds for axis 0 with size 3.'
    """
    errors = frozenset(errors)

    @restorable(checkify, f, errors)
    @functools.wraps(f, updated=())
    def checked_fun(*args, **kwargs):
        # Arguments are captured, not parameters of the program, so that `f` gets static arguments and other objects unchanged.
        with _Tracing(errors):
            body = Body(lambda: f(*args, **kwargs), _NO_ARGUMENTS, [], "checkify", f)
        jaxpr = body.program.jaxpr
        start = State.empty(sorted(slots_in(jaxpr, errors), key=repr), Sites())

        def run(values, consts):
            state, outs = walk(jaxpr, consts, [], start.like(values), errors)
            return state.values(), outs

        # Tapes exist in programs alone.
        values, outs = (_core.jit(run) if has_tapes(jaxpr) else run)(start.values(), body.consts)
        state = start.like(values)
        return error_of(state.code, list(state.payload.values()), tuple(state.payload), state.sites), body.out_tree.unflatten(outs)

    return checked_fun


# The errors that are looked for, while a function is traced: programs traced meanwhile may contain the results of their checks.
_looked_for = make_user_context(None)


class _Tracing:
    """While a function is traced for these errors."""

    def __init__(self, errors):
        self.errors, self.context = errors, _looked_for(errors)

    def __enter__(self):
        self.before, elements.checked = elements.checked, functools.partial(_of_elements, self.errors)
        self.context.__enter__()

    def __exit__(self, *exc):
        elements.checked = self.before
        self.context.__exit__(*exc)


def _of_elements(errors, fun, args, kwargs, options):
    """`vmap` of a function: if it fails within a loop or a branch, its elements are checked one by
    one, and the first failure of all is checked after.
    """
    in_axes, out_axes, *others = options
    found = []

    @functools.wraps(fun, updated=())
    def of_one(*args, **kwargs):
        with _Tracing(errors):
            body = Body(lambda: fun(*args, **kwargs), _NO_ARGUMENTS, [], "checkify", fun)
        jaxpr = body.program.jaxpr
        if not fails_in_some(jaxpr, errors):
            return [], body.out_tree.unflatten(_core.eval_program(body.program, body.consts))

        def checked_elements():
            state, outs = walk(jaxpr, body.consts, [], State.empty(sorted(slots_in(jaxpr, errors), key=repr), Sites()), errors)
            found[:] = [state]
            return state.values(), outs

        values, outs = _core.jit(checked_elements)()
        return values, body.out_tree.unflatten(outs)

    before, elements.checked = elements.checked, None
    try:
        if _flat.references.seen and any(isinstance(x, _flat.references.Ref) for x in tree_leaves((args, kwargs))):
            return vmap(fun, in_axes, out_axes, *others)(*args, **kwargs)
        values, out = vmap(of_one, in_axes, (0, out_axes), *others)(*args, **kwargs)
    finally:
        elements.checked = before
    for state in found:
        _emit_failures(state, *values)
    return out


def _emit_failures(state, codes, *payload):
    """A check, of all elements, for each place of a function that was checked element by
    element.
    """
    slots, sites = tuple(state.payload), state.sites
    own = slots_of([np.empty(s[0], s[1]) for s in slots])

    def words(site):
        return lambda values, _: site.text(dict(zip(slots, [values[s] for s in own], strict=True)), sites)

    for number, site in sites.table.items():
        result = CheckFunction(Site(site.kind, words(site)), own, False)
        result.inner = True
        emit(result, lax.ne(codes, lax.full_like(codes, number)), payload)
