"""Examples in docstrings do what they say."""

import ast
import doctest
import enum
import importlib
import inspect
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2] / "python" / "ferrax"
FILES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text()]


def module_of(path):
    return ".".join(["ferrax", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def imported(name):
    """The module; skips where it is written with a library that is not here."""
    if name.startswith("ferrax.experimental.array_serialization."):
        pytest.importorskip("tensorstore")
    return importlib.import_module(name)


@pytest.mark.usefixtures("whole_tracebacks")
@pytest.mark.ours
@pytest.mark.parametrize("name", [module_of(path) for path in FILES])
def test_examples(jax, jnp, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = imported(name)
    names = {"jax": jax, "jnp": jnp, "grad": jax.grad, "jit": jax.jit, "vmap": jax.vmap}
    # `sharding` also for `set_mesh`, which is public under modules that import it
    names |= {name: getattr(jax, name) for name in ("lax", "nn", "random", "sharding")} | vars(module)
    output, seen = [], set()
    for title, text in [*written(module), *made(module)]:
        if (shown := text[text.index(">>> ") :]) not in seen:  # a decorator may have added sections
            seen.add(shown)
            example = doctest.DocTestParser().get_doctest(text, dict(names), title, module.__file__, None)
            doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=output.append)
    assert not output, "".join(output)


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


# The standard of a function's docstring: a sentence, `Args:` with every parameter by name, `Returns:` unless it always raises.
# Without `compat`, whose import makes Ferrax known as jax.
PUBLIC = [
    name
    for name in map(module_of, sorted(ROOT.rglob("*.py")))
    if not any(part.startswith("_") for part in name.split(".")) and not name.startswith("ferrax.compat")
]


def public_functions(holder):
    """(name, function) of what a module offers and Ferrax defines."""
    for name, value in sorted(vars(holder).items()):
        if name not in getattr(holder, "__all__", [name]):
            continue
        ours = str(getattr(value, "__module__", "")).startswith("ferrax")
        if not name.startswith("_") and callable(value) and not isinstance(value, (type, enum.Enum)) and ours:
            yield name, value


def parameters(function):
    """Names of what a function takes; a ufunc's are those of the function it applies."""
    if type(function).__name__ == "ufunc":
        function = function._func
    return [name for name in inspect.signature(function).parameters if not name.startswith("_")]


def section(text, title):
    """The lines of a section, without their indentation; None where there is none."""
    lines = text.splitlines()
    if f"{title}:" not in lines:
        return None
    body = []
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line.strip() and not line.startswith(" "):
            break
        body.append(line)
    return inspect.cleandoc("\n".join(["", *body])).splitlines()


def complaints(name, function):
    """What a docstring lacks of the standard."""
    text = inspect.getdoc(function) or ""
    if not text.split("\n\n")[0].strip().endswith((".", ":")):
        yield f"{name}: no sentence first"
    refused = any("always" in line for line in section(text, "Raises") or ())
    if section(text, "Returns") is None and section(text, "Yields") is None and not refused:
        yield f"{name}: no Returns"
    documented = [
        word.strip(" *") for line in section(text, "Args") or () if (m := re.match(r"(\*{0,2}\w+(, \*{0,2}\w+)*): \S", line)) for word in m[1].split(",")
    ]
    taken = parameters(function)
    if sorted(documented) != sorted(taken):
        yield f"{name}: Args of {documented}, parameters {taken}"


@pytest.mark.ours
@pytest.mark.parametrize("path", PUBLIC)
def test_every_docstring_follows_the_standard(jax, path):
    found = [c for name, function in public_functions(imported(path)) for c in complaints(name, function)]
    assert not found


def public_methods(holder):
    """(name, method) of the classes that a module offers and Ferrax defines."""
    for name, value in sorted(vars(holder).items()):
        if name.startswith("_") or name not in getattr(holder, "__all__", [name]) or not isinstance(value, type) or not value.__module__.startswith("ferrax"):
            continue
        for member, f in vars(value).items():
            f = getattr(f, "__func__", f)
            if not member.startswith("_") and inspect.isfunction(f):
                yield f"{name}.{member}", f


@pytest.mark.ours
@pytest.mark.parametrize("path", PUBLIC)
def test_every_method_has_a_docstring(jax, path):
    assert not [name for name, f in public_methods(imported(path)) if not inspect.getdoc(f)]
