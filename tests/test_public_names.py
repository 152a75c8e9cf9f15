"""Every name that a public module lists is there."""

import importlib
import pkgutil

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
