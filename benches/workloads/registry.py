"""The rows of `steady.py`: what is called, with which arguments, and what it must move or compute at least."""

import numpy as np

ROWS = []
RANDOM = np.random.default_rng(0)


def row(group, text, *args, bytes=None, flops=0, dtype="float32", tolerance=1e-3, x64=False):
    """Registers `make(lib)`, which gives a function of `args` (NumPy arrays). `bytes` defaults to those of arguments and results; `x64`: 64-bit types are on."""

    def register(make):
        ROWS.append(dict(group=group, text=text, args=args, bytes=bytes, flops=flops, dtype=dtype, tolerance=tolerance, x64=x64, make=make))
        return make

    return register


def plain(group, text, f, *args, **facts):
    """A row whose function is `f(lib, *args)`."""
    row(group, text, *args, **facts)(lambda lib: lambda *a: f(lib, *a))


def dtyped(group, text, f, *args, dtype, **facts):
    """As `plain`, in float32 or, with 64-bit types, in float64."""
    plain(group, f"{text}, {dtype}", f, *args, dtype=dtype, x64=dtype == "float64", **facts)


def normal(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def pairs(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def below(n, *shape):
    return RANDOM.integers(0, n, shape).astype(np.int32)
