"""The table of what the extension calls in the package."""

import subprocess
import sys

import pytest
from ferrax import _core, _hooks


def test_every_slot_loads_a_value_of_its_type():
    assert _core.load_hooks() == sum(callable(v) and v.__module__ == _hooks.__name__ for v in vars(_hooks).values())


def test_a_table_that_lacks_a_slot_or_has_one_too_many_is_refused():
    with pytest.raises(TypeError, match=r"without a loader: \[.*\"numpy\".*\]; loaders without a slot: \[\"wrong\"\]"):
        _core.register_hooks({"wrong": lambda: None})
    with pytest.raises(TypeError, match="no slot wrong"):
        _core.provide_hook("wrong", None)


def test_the_table_imports_nothing_before_it_is_asked():
    code = "import sys, ferrax; print(*sorted(m for m in sys.modules if m in ('ferrax.numpy', 'ferrax.random', 'ferrax._symbolic_export')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
