"""The supported parts of SciPy's interface."""

import importlib as _importlib
import typing as _typing

from .._base.late import late as _late

if _typing.TYPE_CHECKING:
    from . import cluster as cluster
    from . import fft as fft
    from . import integrate as integrate
    from . import interpolate as interpolate
    from . import linalg as linalg
    from . import ndimage as ndimage
    from . import optimize as optimize
    from . import signal as signal
    from . import sparse as sparse
    from . import spatial as spatial
    from . import special as special
    from . import stats as stats

_MODULES = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if not name.startswith("_"):
            try:
                return _importlib.import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as e:
                if e.name != f"{__name__}.{name}":
                    raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*[n for n in globals() if not n.startswith("_")], *_MODULES})


_late(__name__)
