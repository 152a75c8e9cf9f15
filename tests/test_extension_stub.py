"""The stub of the extension names what the extension has, and nothing else."""

import ast
import importlib
import inspect
import pathlib

import pytest


def stub_names(path):
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                yield node.name
            case ast.AnnAssign():
                yield node.target.id
            case ast.Assign():
                yield from (t.id for t in node.targets)


@pytest.mark.ours
def test_stub_and_extension_agree(jax):
    core = importlib.import_module(f"{jax.__name__}._core")
    path = pathlib.Path(inspect.getfile(jax)).parent / "_core.pyi"
    stub = set(stub_names(path)) - {"Flat", "Leaves"}  # names of types, which the stub makes for itself
    assert stub == {n for n in dir(core) if not n.startswith("_")}
