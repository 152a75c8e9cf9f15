"""`python -m ferrax info`: facts about this machine and this installation, for users and for bug
reports.

Invariant: nothing raises; a device that cannot be opened is listed with the reason.
"""

import importlib.metadata
import importlib.util
import os
import platform
import sys

import numpy as np

from .. import _core
from .._base import config as _config, flags as _flags
from ._distributions import FOLLOWS


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _devices(backend):
    try:
        return _core.devices(backend)
    except RuntimeError as e:
        return str(e).splitlines()[0]


def _size(path):
    """The bytes of the files of the package."""
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(path) for f in files if "__pycache__" not in folder)


def report():
    """The report as pairs of a heading and its lines."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    versions = [
        f"ferrax {_config.__version__} ({_size(folder) / 2**20:.1f} MiB in {folder})",
        f"follows jax {FOLLOWS}",
        f"python {platform.python_version()} ({platform.python_implementation()})",
        *[f"{n} {_version(n)}" for n in ("numpy", "ml_dtypes", "opt_einsum")],
        f"{platform.system()} {platform.release()}, {platform.machine()}",
    ]
    found = []
    for backend in ("cpu", "gpu"):
        devices = _devices(backend)
        if isinstance(devices, str):
            found.append(f"{backend}: none ({devices})")
        else:
            found += [f"{d}: {d.device_kind}" + (f" ({d.description})" if d.description != d.device_kind else "") for d in devices]
    (_, tiers), *adapters = _core.inventory()
    graphics = [line for name, facts in adapters for line in (name, *(f"  {k}: {v}" for k, v in facts))]
    default = _devices(None)
    limits = [
        f"{cores} of {os.cpu_count()} cores may be used, FERRAX_NUM_THREADS={os.environ.get('FERRAX_NUM_THREADS', 'not set')}",
        f"integers of indices: {np.iinfo(np.intp).bits} bits; 64-bit types are {'on' if _core.config_get('jax_enable_x64') else 'off'}",
    ]
    changed = [f"{name} = {value!r}" for name, value in _config.config.values.items() if value != _flags.FLAGS[name].default]
    variables = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("FERRAX_")]
    helpers = [f"{n} {_version(n)}" for n in ("tqdm", "rich", "matplotlib", "jax", "jaxlib") if importlib.util.find_spec(n)]
    return [
        ("versions", versions),
        ("devices", found),
        ("default device", [str(default[0]) if not isinstance(default, str) else f"none ({default})"]),
        ("instructions", [f"{name}: {support}" for name, support in tiers]),
        ("graphics adapters", graphics or ["none"]),
        ("limits", limits),
        ("flags that were set", changed or ["none"]),
        ("environment", variables or ["none"]),
        ("beside it", helpers or ["none"]),
    ]


def text():
    """The report as lines."""
    return "\n".join(line for heading, lines in report() for line in (f"{heading}:", *(f"  {x}" for x in lines)))


def main():
    """Prints the report."""
    sys.stdout.write(text() + "\n")
    return 0
