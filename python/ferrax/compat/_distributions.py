"""The distributions `jax` and `jaxlib` that lead to Ferrax, and their installation:
`python -m ferrax adopt`.

Invariant: `pip uninstall jax jaxlib` removes all files that are written, and no file of another
distribution is ever overwritten. The record by which pip and `importlib.metadata` know a
distribution is put in place last, so that one that was cut short is not a distribution, and the
next call mends it.
"""

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import sys
import sysconfig

from .._base.config import __version__

FOLLOWS = FOLLOWS_JAXLIB = "0.10.2"
version_info = tuple(map(int, FOLLOWS.split(".")))
NAMES = ("jax", "jaxlib")
_VERSIONS = {"jax": FOLLOWS, "jaxlib": FOLLOWS_JAXLIB}
_EXTRAS = ("cpu", "cuda", "cuda12", "cuda12-local", "cuda13", "cuda13-local", "rocm7-local", "tpu", "k8s", "xprof", "minimum-jaxlib")
_INSTALLER = "ferrax"
# The packages themselves: a few lines that install Ferrax. Programs that `python -m ferrax` runs hand this folder to their processes.
SHELLS = pathlib.Path(__file__).parent / "shells"


class AdoptError(Exception):
    """An environment cannot be given Ferrax's `jax`; the message says why."""


def metadata(name):
    """The METADATA file of one of the two distributions."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {_VERSIONS[name]}",
        f"Summary: {name}, served by Ferrax {__version__}",
    ]
    # In a work tree Ferrax is importable and no distribution: pip would look for one to install.
    if next(importlib.metadata.distributions(name="ferrax"), None) is not None:
        lines.append("Requires-Dist: ferrax")
    if name == "jax":
        lines += [f"Requires-Dist: jaxlib=={FOLLOWS_JAXLIB}", *(f"Provides-Extra: {extra}" for extra in _EXTRAS)]
    return "\n".join(lines) + "\n"


def _stubs():
    """Files of `jax` for editors and type checkers: for each public module of Ferrax, a module with
    its names.
    """
    root = pathlib.Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        *folders, file = path.relative_to(root).with_suffix("").parts
        if "compat" in folders or any(p.startswith("_") for p in folders) or (file.startswith("_") and file != "__init__"):
            continue
        module = ".".join(["ferrax", *folders, *([] if file == "__init__" else [file])])
        text = f"from {module} import *\n"
        if module == "ferrax":
            text += "from ferrax import __version__ as __version__\n"
        yield "/".join(["jax", *folders, f"{file}.pyi"]), text
    yield "jax/py.typed", ""


def _files(name):
    """The distribution's files by path, except its RECORD."""
    info = f"{name}-{_VERSIONS[name]}.dist-info"
    return {
        f"{name}/__init__.py": (SHELLS / name / "__init__.py").read_text(),
        **(dict(_stubs()) if name == "jax" else {}),
        f"{info}/METADATA": metadata(name),
        f"{info}/INSTALLER": f"{_INSTALLER}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: ferrax\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/REQUESTED": "",
    }, info


def _record(files, info):
    def row(path, text):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(text.encode())}"

    return "\n".join([*(row(path, text) for path, text in files.items()), f"{info}/RECORD,,"]) + "\n"


def _is_ours(folder):
    """Whether a package's folder is one that `adopt` wrote: its only module says so."""
    try:
        return "FERRAX = True" in (folder / "__init__.py").read_text()
    except OSError:
        return not any(folder.glob("**/*.py"))


def _refuse_others(site):
    for name in NAMES:
        for found in importlib.metadata.distributions(name=name, path=[str(site), *sys.path]):
            root = getattr(found, "_path", None)
            if root is not None and (found.read_text("INSTALLER") or "").strip() != _INSTALLER:
                raise AdoptError(
                    f"{name} {found.version} is installed at {root}: `pip uninstall jax jaxlib` first, or use `python -m ferrax program.py`, which leaves it alone"
                )
        spec = importlib.util.find_spec(name)
        folders = {site / name, *(pathlib.Path(p) for p in (spec and spec.submodule_search_locations) or ())}
        for folder in sorted(folders):
            if folder.exists() and not _is_ours(folder):
                raise AdoptError(f"{folder} is a package that Ferrax did not write: remove it first")


def adopt(site=None):
    """Gives an environment the distributions `jax` and `jaxlib` that are Ferrax.

    Args:
        site: the folder of packages; by default that of this interpreter.

    Returns:
        the folder.

    Raises:
        AdoptError: the real JAX is installed, or the folder is not writable.
    """
    site = pathlib.Path(site or sysconfig.get_path("purelib"))
    _refuse_others(site)
    try:
        for name in reversed(NAMES):
            # What an older or unfinished call left: its record goes first, so that pip never sees half of a distribution.
            for info in site.glob(f"{name}-*.dist-info"):
                shutil.rmtree(info)
            files, info = _files(name)
            for path, text in files.items():
                place = site / path.replace(info, f"~{info}")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, newline="\n")
            (site / f"~{info}" / "RECORD").write_text(_record(files, info), newline="\n")
            os.replace(site / f"~{info}", site / info)
    except OSError as e:
        raise AdoptError(f"{site} cannot be written ({e.strerror}): make a virtual environment, `{sys.executable} -m venv`") from None
    importlib.invalidate_caches()
    return site
