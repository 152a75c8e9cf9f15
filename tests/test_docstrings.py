"""Examples in docstrings do what they say."""

import ast
import doctest
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1] / "python" / "ferrax"
FILES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text()]


def module_of(path):
    return ".".join(["ferrax", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


@pytest.mark.ours
@pytest.mark.parametrize("name", [module_of(path) for path in FILES])
def test_examples(jax, jnp, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    names = {"jax": jax, "jnp": jnp, "lax": jax.lax, "nn": jax.nn, "random": jax.random, "grad": jax.grad, "jit": jax.jit, "vmap": jax.vmap, **vars(module)}
    nodes = ast.walk(ast.parse(pathlib.Path(module.__file__).read_text()))
    said = []
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ">>> " in (text := ast.get_docstring(node) or ""):
            example = doctest.DocTestParser().get_doctest(text, dict(names), getattr(node, "name", name), module.__file__, None)
            doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
    assert not said, "".join(said)
