"""`python -m ferrax program.py`: a program run with `import jax` served by Ferrax.

Invariant: `sys.argv`, `sys.path`, `__main__` and the exit status are those of plain `python`.
Python processes that it starts (workers of `multiprocessing`, of pytest) find the same `jax`,
through a folder at the front of PYTHONPATH.
"""

import os
import pathlib
import runpy
import sys
import types

from . import absent, install
from ._distributions import SHELLS


def _serve():
    install()
    paths = [str(SHELLS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path.insert(1, str(SHELLS))  # `multiprocessing` hands its workers this list
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def _explain(e):
    """Extends an error about an absent name of Ferrax by where to report it."""
    module = e.obj if isinstance(e, AttributeError) else sys.modules.get(e.name or "")
    # ferrax.numpy has JAX's name; its location says which library it is
    if isinstance(module, types.ModuleType) and "Please report it" not in str(e) and getattr(module.__spec__, "name", "").partition(".")[0] == "ferrax":
        e.add_note(absent("such name", None))


def _exec(text, path):
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __file__=path)
    if path is None:
        del main.__file__
    sys.modules["__main__"] = main
    exec(compile(text, path or "<string>", "exec"), main.__dict__)


def run(args):
    """Runs `PROGRAM ARGS`, `-m MODULE ARGS` or `-c CODE ARGS`.

    Raises:
        FileNotFoundError: the program does not exist.
    """
    _serve()
    try:
        if args[0] == "-m":
            sys.argv = args[1:]
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        elif args[0] == "-c":
            sys.argv = ["-c", *args[2:]]
            sys.path[0] = ""
            _exec(args[1], None)
        else:
            path = pathlib.Path(args[0])
            sys.argv = args
            if path.is_dir() or path.suffix in (".zip", ".pyz"):
                runpy.run_path(args[0], run_name="__main__")
            else:
                sys.path[0] = str(path.resolve().parent)
                _exec(path.read_bytes(), str(path.absolute()))
    except (ImportError, AttributeError) as e:
        _explain(e)
        raise
