"""The supported parts of SciPy's interface."""

import importlib as _importlib

from .._late import late as _late

_MODULES = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")


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
