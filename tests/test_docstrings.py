"""Examples in docstrings do what they say."""

import ast
import doctest
import importlib
import inspect
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
    said, seen = [], set()
    for title, text in [*written(module), *made(module)]:
        if text not in seen:
            seen.add(text)
            example = doctest.DocTestParser().get_doctest(text, dict(names), title, module.__file__, None)
            doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
    assert not said, "".join(said)


def written(module):
    """(name, docstring) of what the source gives an example."""
    for node in ast.walk(ast.parse(pathlib.Path(module.__file__).read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ">>> " in (text := ast.get_docstring(node) or ""):
            yield getattr(node, "name", module.__name__), text


def made(module):
    """(name, docstring) of the functions whose docstring a decorator or a factory makes."""
    for name, value in vars(module).items():
        if (
            callable(value)
            and not isinstance(value, type)
            and getattr(value, "__module__", None) == module.__name__
            and ">>> " in (text := inspect.getdoc(value) or "")
        ):
            yield name, text


@pytest.mark.ours
@pytest.mark.parametrize("path", ["nn", "nn.initializers", "random", "scipy.special", "scipy.stats.norm", "scipy.stats.gamma", "numpy.linalg"])
def test_every_function_of_a_module_has_an_example(jax, path):
    holder = importlib.import_module(f"ferrax.{path}")
    functions = {
        n: f for n, f in vars(holder).items() if not n.startswith("_") and inspect.isroutine(inspect.unwrap(f)) and f.__module__.startswith(holder.__name__)
    }
    assert functions and not [n for n, f in functions.items() if ">>> " not in (inspect.getdoc(f) or "")]
