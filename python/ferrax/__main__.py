"""`python -m ferrax`: programs that say `import jax`, run by Ferrax.

python -m ferrax program.py ARGS        run a program
python -m ferrax -m MODULE ARGS         run a module, for instance pytest
python -m ferrax -c CODE ARGS           run a line
python -m ferrax adopt                  make this environment's `jax` and `jaxlib` Ferrax, until `pip uninstall jax jaxlib`
python -m ferrax doctor NAME            read an installed library: which names of JAX it uses, and which are absent here
python -m ferrax info                   print facts about this machine and this installation: versions, devices, limits, flags
"""

import sys

from .compat import _doctor, _info
from .compat._distributions import FOLLOWS, AdoptError, adopt
from .compat._programs import run


def _adopt(args):
    if args:
        return "usage: python -m ferrax adopt"
    try:
        site = adopt()
    except AdoptError as e:
        return f"ferrax: {e}"
    print(f"jax and jaxlib {FOLLOWS} in {site} are Ferrax; `pip uninstall jax jaxlib` undoes it")
    return 0


def main(args):
    """Runs the command line; returns its exit status, or the error message to print."""
    if not args or args[0] in ("-h", "--help"):
        print(__doc__.partition("\n\n")[2].rstrip())
        return 0 if args else 2
    if args[0] == "adopt":
        return _adopt(args[1:])
    if args[0] == "doctor":
        return _doctor.main(args[1:])
    if args[0] == "info":
        return "usage: python -m ferrax info" if args[1:] else _info.main()
    if args[0] in ("-m", "-c") and len(args) == 1:
        return f"ferrax: {args[0]} wants an argument"
    if args[0].startswith("-") and args[0] not in ("-m", "-c"):
        return f"ferrax: there is no option {args[0]}; python -m ferrax --help"
    try:
        open(args[0]).close() if args[0] not in ("-m", "-c") else None
    except IsADirectoryError:
        pass
    except OSError as e:
        return f"ferrax: can't open {args[0]!r}: {e.strerror}"
    run(args)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
