"""Groups of operations that a compiler is to schedule together. Kernels run in the order of their plan, and values do not depend on it."""

import functools

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name):
    """A decorator: the function's operations are one group.

    name: what the group is called.
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f=None, **meta):
    """`f`, with words for a compiler beside it.

    Args:
      f: a function; None: what is returned decorates one.
      **meta: the words.
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))
