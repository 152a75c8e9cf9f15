"""What the array API standard 2024.12 lets a library ask."""

import numpy as np
import pytest

WIDE = {"int64", "uint64", "float64", "complex128"}


@pytest.mark.parametrize("wide", [False, True])
def test_dtypes_of_the_standard(jax, jnp, wide):
    with jax.enable_x64(wide):
        info = jnp.__array_namespace_info__()
        bits = 64 if wide else 32
        names = {"real floating": f"float{bits}", "complex floating": f"complex{2 * bits}", "integral": f"int{bits}", "indexing": f"int{bits}"}
        assert info.default_dtypes() == {kind: np.dtype(name) for kind, name in names.items()} == info.default_dtypes(device=jax.devices()[0])
        of = {
            "bool": {"bool"}, "signed integer": {"int8", "int16", "int32", "int64"}, "unsigned integer": {"uint8", "uint16", "uint32", "uint64"},
            "real floating": {"float32", "float64"}, "complex floating": {"complex64", "complex128"},
        }  # fmt: skip
        of["integral"] = of["signed integer"] | of["unsigned integer"]
        of["numeric"] = of["integral"] | of["real floating"] | of["complex floating"]
        of[None] = of["numeric"] | {"bool"}
        of["bool", "integral"] = of["bool"] | of["integral"]
        for kind, names in of.items():
            assert info.dtypes(kind=kind) == {n: np.dtype(n) for n in names - (set() if wide else WIDE)}, kind


def test_devices_and_capabilities_of_the_standard(jax, jnp):
    info = jnp.zeros(2).__array_namespace__().__array_namespace_info__()
    assert info.devices() == [None, *jax.devices()] and info.default_device() is None
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}


@pytest.mark.ours
def test_unknown_kinds(jnp):
    for kind in ("x", ("bool", "x")):
        with pytest.raises(ValueError, match="kind 'x' is unknown"):
            jnp.__array_namespace_info__().dtypes(kind=kind)


def test_the_version_that_libraries_ask_for(jax, jnp):
    assert jnp.__array_api_version__ == "2024.12" and jnp.ones(2).__array_namespace__(api_version=jnp.__array_api_version__) is jnp
