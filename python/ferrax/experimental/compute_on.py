"""`compute_on`: where a part of a program is to run.

A program runs on one device, host and all, so the part runs there.

Invariant: values do not depend on it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")

__all__ = ["compute_on", "compute_on2"]


def _check(compute_type):
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not compute_type.startswith("gpu_stream:"):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`.")


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Context manager and decorator for code that should run on a certain kind of device.

    It runs where the rest runs.

    Args:
        compute_type: "device_host", "device", "tpu_sparsecore" or "gpu_stream:#".

    Yields:
        None.

    Raises:
        TypeError: `compute_type` is not a string.
        ValueError: it is not one of these.

    >>> with compute_on("device_host"): print(jnp.arange(3) + 1)
    [1 2 3]
    """
    _check(compute_type)
    yield


@overload
def compute_on2(f: Callable[_P, _R], *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None) -> Callable[_P, _R]: ...


@overload
def compute_on2(
    f: None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def compute_on2(f: Callable[..., Any] | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None) -> Callable[..., Any]:
    """A function that should run on a certain kind of device. It runs where the rest runs.

    Args:
        f: function of pytrees of arrays; None: a decorator is returned.
        compute_type: "device_host", "device", "tpu_sparsecore" or "gpu_stream:#".
        out_memory_spaces: accepted without effect: a device has one kind of memory.
        compiler_options: accepted without effect.

    Returns:
        A function of the same arguments and results.

    Raises:
        TypeError: `compute_type` is not a string.
        ValueError: it is not one of these.
    """
    _check(compute_type)
    if f is None:
        return functools.partial(compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces, compiler_options=compiler_options)
    return functools.wraps(f)(lambda *args: f(*args))
