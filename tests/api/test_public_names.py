"""Every name that a public module lists is there."""

import asyncio
import importlib
import pkgutil
import subprocess
import sys

import pytest


def public_modules(package):
    yield package.__name__
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield module.name


@pytest.mark.ours
def test_listed_names_can_be_read(jax):
    for name in public_modules(jax):
        module = importlib.import_module(name)
        for listed in {*dir(module), *getattr(module, "__all__", ())}:
            assert hasattr(module, listed), f"{name}.{listed}"


@pytest.mark.ours
def test_an_absent_name_is_an_attribute_error(jax):
    for name in public_modules(jax):
        assert not hasattr(importlib.import_module(name), "no_such_name"), name


# Each module alone in a process, so that nothing is loaded yet.
WHOLE = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    there = vars(module)
    print(*(f"{name}.{n}" for n in dir(module) if n not in there and hasattr(module, n)), end="")
    assert vars(module) is there
"""


@pytest.mark.ours
def test_the_dictionary_of_a_module_is_whole(jax):
    names = list(public_modules(jax))
    for some in ([n] for n in ("ferrax", "ferrax.numpy", "ferrax.lax", "ferrax.numpy.linalg", "ferrax.scipy", "ferrax.scipy.stats")):
        done = subprocess.run([sys.executable, "-c", WHOLE, *some], capture_output=True, text=True, check=True)
        assert done.stdout == ""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", WHOLE, *names], capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.ours
def test_values_in_the_dictionaries_of_modules_equal_their_attributes(jax):
    for module in (jax.numpy.linalg, jax.lax, jax.scipy.stats):
        assert all(value is getattr(module, name) for name, value in vars(module).items() if not name.startswith("_"))


@pytest.mark.ours
def test_serialization_names_the_missing_package(jnp, monkeypatch):
    """Without TensorStore the modules can be imported; what needs it names it."""
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    name = "ferrax.experimental.array_serialization.tensorstore_impl"
    for n in [n for n in sys.modules if n.startswith("ferrax.experimental.array_serialization")]:
        monkeypatch.delitem(sys.modules, n)
    module = importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorstore"):
        asyncio.run(module.async_serialize(jnp.ones(3), module.get_tensorstore_spec("/nowhere")))
