"""`jax._src.numpy.vectorize`: how signatures of core axes are read, and shapes fitted to them.

Invariant: in the words of NumPy's `vectorize`, as JAX's are.
"""

import re

from .... import numpy

__all__ = ["apply_excluded", "check_output_dims", "parse_gufunc_signature", "parse_input_dimensions"]

_AXIS = r"\w+"
_AXES = rf"(?:{_AXIS}(?:,{_AXIS})*,?)?"
_ARGUMENT = rf"\({_AXES}\)"
_ARGUMENTS = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"
_SIGNATURE = f"^{_ARGUMENTS}->{_ARGUMENTS}$"


def parse_gufunc_signature(signature):
    """The names of the core axes of each argument, and of each result.

    Raises:
        ValueError: it is not a signature.
    """
    if not re.match(_SIGNATURE, signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = ([tuple(re.findall(_AXIS, a)) for a in re.findall(_ARGUMENT, side)] for side in signature.split("->"))
    return tuple(sides)


def _update_dim_sizes(dim_sizes, shape, core_dims, error_context="", *, is_input):
    n = len(core_dims)
    if is_input and len(shape) < n:
        raise ValueError(f"input with shape {shape} does not have enough dimensions for all core dimensions {core_dims} {error_context}")
    if not is_input and len(shape) != n:
        raise ValueError(f"output shape {shape} does not match core dimensions {core_dims} {error_context}")
    for dim, size in zip(core_dims, shape[len(shape) - n :], strict=True):
        if dim_sizes.setdefault(dim, size) != size:
            raise ValueError(f"inconsistent size for core dimension {dim!r}: {size} vs {dim_sizes[dim]} {error_context}")


def parse_input_dimensions(args, input_core_dims, error_context=""):
    """(the shape before the core axes, the sizes of these by their names) of arguments."""
    if len(args) != len(input_core_dims):
        raise TypeError(f"wrong number of positional arguments: expected {len(input_core_dims)}, got {len(args)} {error_context}")
    shapes, sizes = [], {}
    for arg, core_dims in zip(args, input_core_dims, strict=True):
        _update_dim_sizes(sizes, arg.shape, core_dims, error_context, is_input=True)
        shapes.append(arg.shape[: arg.ndim - len(core_dims)])
    return numpy.broadcast_shapes(*shapes), sizes


def check_output_dims(func, dim_sizes, expected_output_core_dims, error_context=""):
    """`func`, with a check of the core axes of its results."""

    def wrapped(*args):
        out = func(*args)
        shapes = [x.shape for x in out] if isinstance(out, tuple) else [out.shape]
        expected = expected_output_core_dims
        sizes = dict(dim_sizes)
        if expected is None:
            return out
        if len(shapes) != len(expected):
            raise TypeError(f"wrong number of output arguments: expected {len(expected)}, got {len(shapes)} {error_context}")
        for shape, core_dims in zip(shapes, expected, strict=True):
            _update_dim_sizes(sizes, shape, core_dims, error_context, is_input=False)
        return out

    return wrapped


def apply_excluded(func, excluded, args, kwargs):
    """(a function of the other arguments, these, the other keyword arguments), with the excluded
    arguments bound.
    """
    if not excluded:
        return func, args, kwargs
    names = {e for e in excluded if isinstance(e, str)}
    fixed = {i: args[i] for i in sorted(set(excluded) - names) if i < len(args)}
    fixed_kwargs = {k: v for k, v in kwargs.items() if k in names}
    rest = tuple(a for i, a in enumerate(args) if i not in fixed)

    def new_func(*given, **keywords):
        given = list(given)
        for i, value in fixed.items():
            given.insert(i, value)
        return func(*given, **keywords, **fixed_kwargs)

    return new_func, rest, {k: v for k, v in kwargs.items() if k not in names}
