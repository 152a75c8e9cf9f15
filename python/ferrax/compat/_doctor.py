"""`python -m ferrax doctor NAME`: which names of JAX an installed library uses, and which of them
are absent here.

    python -m ferrax doctor mujoco-mjx

Invariant: the library is read, not run. A name is looked up as `import jax` under Ferrax finds it;
the library's tests are skipped.
"""

import ast
import collections
import importlib.metadata
import importlib.util
import pathlib
import sys

from .._base.refused import Refused
from . import ABSENT, install, looked_up

__all__ = ["examine", "main", "report"]

_ROOTS = ("jax", "jaxlib")
_FAILS = ("ImportError", "ModuleNotFoundError", "AttributeError", "Exception")


def _sources(name):
    """The files of a library, by the name of its distribution or of its package.

    Raises:
        LookupError: nothing of that name is installed.
    """
    try:
        listed = importlib.metadata.distribution(name).files or ()
        found = [pathlib.Path(f.locate()) for f in listed if f.suffix == ".py" and not _is_test(f.parts)]
        if found:
            return found
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        spec = importlib.util.find_spec(name.replace("-", "_"))
    except ModuleNotFoundError:
        spec = None
    if spec is None or (spec.origin in (None, "built-in") and not spec.submodule_search_locations):
        raise LookupError(f"no library {name!r} is installed here")
    if spec.submodule_search_locations:
        folders = map(pathlib.Path, spec.submodule_search_locations)
        return [p for folder in folders for p in folder.rglob("*.py") if not _is_test(p.relative_to(folder).parts)]
    return [pathlib.Path(spec.origin)]


def _is_test(parts):
    return any(part in ("tests", "test") or part.startswith("test_") or part.endswith("_test.py") for part in parts)


class _Uses(ast.NodeVisitor):
    """The names of JAX in one file: (name, line, whether the file works without it)."""

    def __init__(self):
        self.bound, self.found, self.guards = {}, [], 0

    def read(self, tree):
        for node in ast.walk(tree):  # names bound anywhere in the file
            if isinstance(node, ast.Import):
                for a in node.names:
                    if a.name.partition(".")[0] in _ROOTS:
                        self.bound[a.asname or a.name.partition(".")[0]] = a.name if a.asname else a.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in _ROOTS:
                for a in node.names:
                    self.bound[a.asname or a.name] = f"{node.module}.{a.name}"
        self.visit(tree)
        return self.found

    def _use(self, name, node):
        self.found.append((name, node.lineno, bool(self.guards)))

    def visit_Import(self, node):
        for a in node.names:
            if a.name.partition(".")[0] in _ROOTS:
                self._use(a.name, node)

    def visit_ImportFrom(self, node):
        if not node.level and (node.module or "").partition(".")[0] in _ROOTS:
            for a in node.names:
                self._use(node.module if a.name == "*" else f"{node.module}.{a.name}", node)

    def visit_Attribute(self, node):
        parts, at = [], node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.bound and isinstance(node.ctx, ast.Load):
            self._use(".".join([self.bound[at.id], *reversed(parts)]), node)
        else:
            self.generic_visit(node)

    def visit_Try(self, node):
        caught = {n.id for h in node.handlers for n in ast.walk(h.type or ast.Name("Exception")) if isinstance(n, ast.Name)}
        caught |= {n.attr for h in node.handlers if h.type for n in ast.walk(h.type) if isinstance(n, ast.Attribute)}
        self._within(node.body, bool(caught & set(_FAILS)))
        for part in (*(h.body for h in node.handlers), node.orelse, node.finalbody):
            self._within(part, bool(caught & set(_FAILS)) and part is not node.finalbody)

    def visit_If(self, node):
        test = ast.dump(node.test)
        guarded = any(word in test for word in ("TYPE_CHECKING", "hasattr", "__version", "version"))
        self.visit(node.test)
        self._within([*node.body, *node.orelse], guarded)

    def _within(self, nodes, guarded):
        self.guards += guarded
        for n in nodes:
            self.visit(n)
        self.guards -= guarded


def examine(name):
    """The names of JAX that a library uses: {name: (its object, or `ABSENT`; its uses as (file,
    line, whether the library works without it))}.

    Raises:
        LookupError: it is not installed.
    """
    install()
    uses = collections.defaultdict(list)
    for path in sorted(_sources(name)):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue
        for used, line, guarded in _Uses().read(tree):
            uses[used].append((path, line, guarded))
    return {used: (looked_up(used), places) for used, places in sorted(uses.items())}


def _row(used, places):
    path, line, _ = min(places, key=lambda p: p[2])
    without = " (the library works without it)" if all(g for *_, g in places) else ""
    return f"  {used}: {len(places)} time{'s' if len(places) > 1 else ''}, first {path}:{line}{without}"


def report(name):
    """(lines, how many absent names the library needs) about a library."""
    found = examine(name)
    absent = {u: p for u, (value, p) in found.items() if value is ABSENT}
    # a parent is left out where its children say it
    absent = {u: p for u, p in absent.items() if not any(v.startswith(u + ".") for v in absent)}
    refused = {u: p for u, (value, p) in found.items() if isinstance(value, Refused)}
    needed = sum(not all(g for *_, g in p) for p in absent.values())
    lines = [f"{name} uses {len(found)} names of JAX: {len(absent)} are absent here ({needed} of them needed), {len(refused)} say why they cannot be used."]
    if absent:
        lines += ["absent (also where JAX itself no longer has them):", *(_row(u, p) for u, p in absent.items())]
    if refused:
        lines += ["can be imported, and refuse where they are used:", *(_row(u, p) for u, p in refused.items())]
    return lines, needed


def main(args):
    """Runs the command; returns its exit status, or the error message to print."""
    if len(args) != 1:
        return "usage: python -m ferrax doctor NAME"
    try:
        lines, needed = report(args[0])
    except LookupError as e:
        return f"ferrax: {e}"
    sys.stdout.write("\n".join(lines) + "\n")
    return int(needed > 0)
