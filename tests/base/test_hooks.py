"""The table of what the extension calls in the package."""

import os
import subprocess
import sys

import ferrax
import pytest
from ferrax import _core
from ferrax._base import hooks as _hooks


def test_every_slot_loads_a_value_of_its_type():
    assert _core.load_hooks() == sum(callable(v) and v.__module__ == _hooks.__name__ for v in vars(_hooks).values())


def test_a_table_that_lacks_a_slot_or_has_one_too_many_is_refused():
    with pytest.raises(TypeError, match=r"without a loader: \[.*\"numpy\".*\]; loaders without a slot: \[\"wrong\"\]"):
        _core.register_hooks("", {"wrong": lambda: None})
    with pytest.raises(TypeError, match="no slot wrong"):
        _core.provide_hook("wrong", None)


def test_the_table_imports_nothing_before_it_is_used():
    code = "import sys, ferrax; print(*sorted(m for m in sys.modules if m in ('ferrax.numpy', 'ferrax.random', 'ferrax._export.traced_sizes')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_an_import_needs_no_module_that_few_programs_use():
    code = "import numpy, sys; before = {*sys.modules}; import ferrax; print(*sorted(m for m in {*sys.modules} - before if not m.startswith('ferrax')))"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    few = {"asyncio", "hashlib", "inspect", "json", "logging", "mpi4py", "multiprocessing", "socket", "subprocess", "traceback", "urllib"}
    assert not few & set(there), there


def test_the_library_knows_its_own_code_however_its_folder_is_spelt():
    parent = os.path.dirname(os.path.dirname(ferrax.__file__))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ferrax as jax, ferrax.numpy as jnp\n"
        "print({e.source_info.file_name for e in jax.make_jaxpr(lambda x: jnp.var(x, axis=0))(jnp.ones((2, 3))).eqns})\n"
    )
    plain, odd = (
        subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
        for folder in (parent, os.path.join(parent, "..", os.path.basename(parent)))
    )
    assert plain.stdout.strip() == odd.stdout.strip() == "{'<string>'}", plain.stderr + odd.stderr
