"""The tables of rules for primitives defined in Python: `ad` for derivatives, `batching` for vmap."""

from . import ad, batching

__all__ = ["ad", "batching"]
