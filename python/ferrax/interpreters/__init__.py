"""The tables of rules for primitives defined in Python, `ad` for derivatives and `batching` for vmap; and `partial_eval`, what programs are cut to."""

from . import ad, batching, partial_eval

__all__ = ["ad", "batching", "partial_eval"]
