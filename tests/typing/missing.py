"""The lines that stubs lack, as far as they can be read off the library: to be looked at, and given better types than these.

python tests/typing/missing.py            prints them
python tests/typing/missing.py --write    adds them to the stubs of their modules (members of classes are only printed)
"""

import importlib
import inspect
import pathlib
import re
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import test_types

_PLAIN = {bool: "bool", int: "int", str: "str", float: "float"}


def parameter(p):
    """One parameter as a stub has it."""
    shown = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
    if p.default is p.empty:
        return f"{shown}: Any"
    plain = p.default is None or type(p.default) in _PLAIN
    return f"{shown}: {_PLAIN.get(type(p.default), 'Any')} = {repr(p.default) if plain else '...'}"


def signature(f):
    """All of them, with `/` and `*` where they belong."""
    parts, before = [], None
    for p in inspect.signature(f).parameters.values():
        if before is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        parts.append(parameter(p))
        before = p.kind
    return ", ".join(parts + (["/"] if before is inspect.Parameter.POSITIONAL_ONLY else []))


def line(name, value):
    """What a stub says of a name."""
    if isinstance(value, types.ModuleType):
        return f"from {value.__name__.rpartition('.')[0]} import {value.__name__.rpartition('.')[2]} as {name}"
    if callable(value) and not isinstance(value, type):
        try:
            return f"def {name}({signature(value)}) -> Any: ..."
        except (TypeError, ValueError):
            pass
    return f"{name}: Any"


def missing():
    """(module, name, line) of each name that stubtest misses; the line is None for a member of a class."""
    options = ["--concise", "--ignore-disjoint-bases", "--allowlist", test_types.HERE / "allowed.txt"]
    config = test_types.ROOT / "target" / "missing.ini"
    config.parent.mkdir(exist_ok=True)
    config.write_text("[mypy]\nignore_errors = True\n")
    text = test_types.said("-m", "mypy.stubtest", "ferrax", *options, "--mypy-config-file", config)
    for path in re.findall(r"(?m)^(\S+) is not present in stub", text):
        module, _, name = path.rpartition(".")
        try:
            value = getattr(importlib.import_module(module), name)
        except ImportError:
            yield module, name, None
            continue
        yield module, name, line(name, value)


def main(write):
    """Prints what is missing, and writes it if asked; returns the exit status."""
    for module, name, text in missing():
        print(f"{module}: {text}" if text else f"{module}.{name}: a member; write it by hand")
        if write and text:
            source = pathlib.Path(importlib.import_module(module).__file__)
            with source.with_suffix(".pyi").open("a") as stub:
                stub.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
