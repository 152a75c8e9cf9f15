"""Programs that tests hand to child processes as strings use no undefined name: linters do not look into strings, and many of them run by night alone.

A program is a string of several lines that is valid Python. It may be joined of pieces, so it knows the names that other strings define: those of its
function, and those of the module outside of tests. What an f-string inserts is not examined.
"""

import ast
import builtins
import importlib
import pathlib
import re
import symtable
import textwrap

import pytest

TESTS = pathlib.Path(__file__).parents[1]
RUNS = re.compile(r"child\(|\(child|\bon_\w+\(|\"-c\"|^from processes import", re.M)  # what a module that runs programs contains
KNOWN = {*dir(builtins), "__file__", "__name__", "jax", "jnp", "np"}  # `conftest.IMPORTS` with Python's own
INSERTED = "_inserted"


def string(node):
    """The text of a literal, with what it inserts as a name."""
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else INSERTED for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def scopes(table):
    yield table
    for inner in table.get_children():
        yield from scopes(inner)


def names(text):
    """(names that a program defines, names that it takes from outside); None for other texts, and for lists of expressions."""
    text = textwrap.dedent(text)
    filled = re.sub(r"\{(\w+)(!r)?\}", INSERTED, text.replace("{library}", "ferrax")).replace("{{", "{").replace("}}", "}")  # for `str.format`
    for program in (text, filled):
        try:
            top = symtable.symtable(program, "<string>", "exec")
            break
        except (SyntaxError, ValueError):
            continue
    else:
        return None
    stars = re.findall(r"^from ([\w.]+) import \*", program, re.M)
    if all(isinstance(statement, ast.Expr) for statement in ast.parse(program).body):
        return None
    defined = {INSERTED, *(name for module in stars for name in dir(importlib.import_module(module)))}
    used = set()
    for scope in scopes(top):
        for s in scope.get_symbols():
            if (s.is_assigned() or s.is_imported() or s.is_namespace()) and (scope is top or s.is_declared_global()):
                defined.add(s.get_name())
            elif s.is_global() or (scope is top and s.is_referenced()):
                used.add(s.get_name())
    return defined, used - defined


def literals(node):
    """String literals with their lines, without docstrings and tables of words or lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and string(child.value):
            continue
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr in ("split", "splitlines"):
            continue
        if isinstance(child, (ast.Constant, ast.JoinedStr)):
            yield child.lineno, string(child)
        else:
            yield from literals(child)


def pieces(node):
    """(line, (names defined, names taken)) of the strings that are programs or pieces of one."""
    found = ((line, names(text)) for line, text in literals(node) if "\n" in text)
    return [(line, both) for line, both in found if both]


def outside_of_tests(tree):
    """Names that pieces outside of tests define, also in modules beside the folders of tests that this one imports, and names that `replace` and `format` fill in."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (source := TESTS / f"{node.module}.py").exists():
            found |= outside_of_tests(ast.parse(source.read_text()))
        elif not getattr(node, "name", "").startswith("test_"):
            found.update(*(defined for _, (defined, _) in pieces(node)))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    filled = [string(call.args[0]).strip("{}") for call in calls if call.func.attr == "replace" and call.args]
    return found.union(filled, (k.arg for call in calls if call.func.attr == "format" for k in call.keywords))


def undefined(source):
    """(line, name) of names that no piece defines."""
    tree = ast.parse(source)
    known = KNOWN | outside_of_tests(tree)
    for node in tree.body:
        programs = pieces(node)
        here = known.union(*(defined for _, (defined, _) in programs))
        yield from ((line, name) for line, (_, used) in programs for name in sorted(used - here))


def test_an_undefined_name_is_found():
    source = '''
SETUP = """
import os
from {library}.sharding import *
kept = lambda x: x
"""
def test_it(child):
    "Some words. \\n \\n missing"
    child(SETUP.format(library="ferrax") + f"""
        total = 0
        def add(x):
            global total
            total += x
            return [os.path, kept, Mesh, {len(SETUP)}, [renamed for x in range(x)]]
        add(jnp.ones(3)); other
    """)
'''
    assert list(undefined(source)) == [(9, "other"), (9, "renamed")]


@pytest.mark.ours
def test_programs_use_no_undefined_name():
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text()
        if RUNS.search(source) and path != pathlib.Path(__file__) and path.parent.name != "typing":  # those are programs of type checkers
            found += [f"{path.relative_to(TESTS.parent)}:{line}: {name}" for line, name in undefined(source)]
    assert not found, "\n".join(found)
