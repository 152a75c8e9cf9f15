"""The tables of rules for primitives defined in Python: `ad` for derivatives, `batching` for vmap, `mlir` for lowerings; `partial_eval`, what programs are cut to."""

from . import xla as xla
from . import pxla as pxla
from . import partial_eval as partial_eval
from . import mlir as mlir
from . import batching as batching
from . import ad as ad

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]
