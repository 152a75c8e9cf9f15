"""Jitted functions that use mutable references: the compiled function takes the values of the
references and returns the new ones.

Invariant: a reference given as an argument is a parameter of the compiled function, so that later
calls may give other references; a captured one is fixed.

    jit(lambda r: r.addupdate(1.0))(ref)
    jit(step).lower(ref).compile()(ref)
"""

import functools
import operator

from .. import _core
from .._tracing.trace import ShapeDtypeStruct
from .._trees.flat import argument_names
from ..errors import UnexpectedTracerError
from ..tree_util import keystr, register_pytree_node, tree_flatten, tree_flatten_with_path
from .backward import BackwardRef, BackwardUnknown, backward_of
from .refs import Captured, Ref, bound, cannot_return, check_aliases, is_ref, settle, values_of


class _Place:
    """Where a reference was among the arguments of a jitted function."""

    def __init__(self, i):
        self.i = i


register_pytree_node(_Place, lambda p: ((), p.i), lambda i, _: _Place(i))


class _Referring:
    """A jitted function that uses references.

    The function that is compiled takes their values and returns the new ones. Stored with the
    function.
    """

    def __init__(self, fun, options):
        self.fun, self.closed, self.compiled, self.options = fun, [], {}, options
        # Which of the references among the arguments backward passes write to.
        self.backward = []

    def taking(self, args, kwargs):
        """(the function that takes values, the references that it takes, the arguments with places
        for those among them).
        """
        leaves, tree = tree_flatten((args, kwargs))
        given = [x for x in leaves if is_ref(x)]
        check_aliases("jit", self.fun, args, kwargs, self.closed)
        places = iter(range(len(given)))
        args, kwargs = tree.unflatten([_Place(next(places)) if is_ref(x) else x for x in leaves])
        key = len(self.closed), tuple(self.backward)
        if key not in self.compiled:
            self.compiled[key] = self._jitted(list(self.closed), list(self.backward))
        return self.compiled[key], [*self.closed, *given, *[backward_of(given[i]) for i in self.backward]], args, kwargs

    def call(self, args, kwargs):
        function, refs, args, kwargs = self.taking(args, kwargs)
        out, values = function(values_of(refs), *args, **kwargs)
        settle(refs, values)
        return out

    def again(self, make):
        """`make()`, until it captures no reference that was not known."""
        while True:
            try:
                return make()
            except Captured as e:
                if (e.staging != _core.staging() and _core.staging() is not None) or any(e.ref is r for r in self.closed):
                    raise  # the creator of its program passes it in
                if e.staging != _core.staging():
                    # Its program has ended, or a transformation in between does not pass references on.
                    raise UnexpectedTracerError(str(e)) from None
                self.closed.append(e.ref)
            except BackwardUnknown as e:
                if e.function is not self:
                    raise
                self.backward.append(e.i)

    def _jitted(self, closed, backward):
        def run(values, *args, **kwargs):
            is_place = lambda x: isinstance(x, _Place)
            leaves, tree = tree_flatten((args, kwargs), is_leaf=is_place)
            own = {x.i: Ref(values[len(closed) + x.i]) for x in leaves if is_place(x)}
            for i, r in own.items():
                r._place = self, i
            backs = [BackwardRef.of(own[i], v) for i, v in zip(backward, values[len(closed) + len(own) :], strict=True)]
            names = [x.i if is_place(x) else None for x in leaves]
            args, kwargs = tree.unflatten([own[x.i] if is_place(x) else x for x in leaves])
            with bound(closed, values[: len(closed)]):
                out = self.fun(*args, **kwargs)
                for path, x in tree_flatten_with_path(out)[0]:
                    if isinstance(x, Ref):
                        place = f" at output tree path result{keystr(path)}" if path else ""
                        at = next((i for i, r in own.items() if r is x), None)
                        name = lambda at=at: argument_names(self.fun, args, kwargs)[names.index(at)]
                        raise ValueError(cannot_return(self.fun, "jit", x, None if at is None else name, place))
                return out, values_of([*closed, *[own[i] for i in sorted(own)], *backs])

        functools.update_wrapper(run, self.fun) if hasattr(self.fun, "__name__") else None
        run.__dict__.pop("__wrapped__", None)
        shifted = lambda numbers: [i + 1 if i >= 0 else i for i in map(operator.index, numbers)]
        o = dict(self.options)
        o["static_argnums"] = shifted(o.get("static_argnums") or ())
        o["donate_argnums"] = [0, *shifted(o.get("donate_argnums") or ())]
        threaded = _core.jit(run, **o)
        threaded.__dict__["_threads_refs"] = True
        return threaded


def call_jitted(jitted, error, args, kwargs):
    """Called by the extension (`_base.hooks`) when a jitted function failed with `error`: (result,)
    if references caused it, else None.
    """
    if "_threads_refs" in jitted.__dict__:
        return None  # made by a `_Referring`, which records its captured values
    known = jitted.__dict__.get("_referring")
    captured = isinstance(error, Captured)
    if known is None and not captured and not any(isinstance(x, Ref) for x in tree_flatten((args, kwargs))[0]):
        if not (isinstance(error, TypeError) and f"returned a value of type {Ref}" in str(error)):
            return None
        # It returned a reference of its own: traced again, to say which.
    if captured and error.staging != _core.staging():
        if _core.staging() is None:
            # Its program has ended, or a transformation in between does not pass references on.
            raise UnexpectedTracerError(str(error)) from None
        return None
    if known is None:
        known = jitted.__dict__["_referring"] = _Referring(jitted.__wrapped__, jitted._options())
    if captured:
        if error.staging != _core.staging():
            return None
        if not any(error.ref is r for r in known.closed):
            known.closed.append(error.ref)
    return (known.again(lambda: known.call(args, kwargs)),)


def _type(r):
    """The type of a reference's value, with its layout where it is in parts."""
    traced = isinstance(r, Ref) and isinstance(r._value, _core.Tracer)
    sharding = None if traced else r.sharding
    if sharding is None or len(sharding.device_set) == 1:
        return r._aval if isinstance(r, Ref) else _core.ShapedArray(r.shape, r.dtype)
    return ShapeDtypeStruct(r.shape, r.dtype, sharding=sharding)


def stage_jitted(fun, options, what, error, args, kwargs):
    """Called by the extension (`_base.hooks`) when `jit(fun).lower`, `.trace` or `.eval_shape`
    failed with `error`.

    Returns:
        the stage of a function that uses references; None if it uses none.
    """
    captured = isinstance(error, Captured)
    if not captured and not any(is_ref(x) for x in tree_flatten((args, kwargs))[0]):
        return None
    known = _Referring(fun, options)
    if captured:
        if error.staging != _core.staging():
            return None
        known.closed.append(error.ref)

    def make():
        function, refs, places, keywords = known.taking(args, kwargs)
        types = [_type(r) for r in refs]
        return getattr(function, what)(types, *places, **keywords)

    made = known.again(make)
    return made[0] if what == "eval_shape" else _Stage(known, made)


class _Stage:
    """A stage of a jitted function that uses references: the compiled function takes their values
    and sets them.
    """

    def __init__(self, known, stage):
        self._known, self._stage = known, stage

    def __getattr__(self, name):
        return getattr(self._stage, name)

    def lower(self, **options):
        """The traced function, lowered."""
        return _Stage(self._known, self._stage.lower(**options))

    def compile(self, *args, **options):
        """The lowered function, compiled."""
        return _Stage(self._known, self._stage.compile(*args, **options))

    def __call__(self, *args, **kwargs):
        _, refs, args, kwargs = self._known.taking(args, kwargs)
        out, values = self._stage(values_of(refs), *args, **kwargs)
        settle(refs, values)
        return out
