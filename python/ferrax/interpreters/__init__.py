"""Tables of rules for primitives defined in Python: `ad` for derivatives, `batching` for vmap,
`mlir` for lowerings; `partial_eval` cuts programs.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING

from .._base.late import late as _late
from . import ad, batching, partial_eval

if TYPE_CHECKING:
    from . import mlir as mlir
    from . import pxla as pxla
    from . import xla as xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]


if not TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in ("mlir", "pxla", "xla"):
            return _importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)


_late(__name__)
