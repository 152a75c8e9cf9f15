"""Words for another compiler beside operations. None reads them here, and values do not depend on them."""

import contextlib

__all__ = ["set_xla_metadata"]


def set_xla_metadata(x=None, **kwargs):
    """`x`; without it a context manager and decorator.

    Args:
      x: a tree of arrays, or None.
      **kwargs: the words.
    """
    return _Words() if x is None else x


class _Words(contextlib.ContextDecorator):
    """A block that is as it would be without."""

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False
