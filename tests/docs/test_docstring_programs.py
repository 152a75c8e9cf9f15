"""The examples in the docstrings of JAX, NumPy and SciPy print here what they print on JAX.

They are taken out of the installed packages when the test runs (docstring_programs.py); an example that JAX itself does not run is not counted.
Numbers may differ by rounding. Every other difference stands below with its reason, by the name of its docstring.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

import pytest
from docstring_programs import differences
from docstring_reasons import REASONS

pytestmark = [pytest.mark.ours, pytest.mark.oracle]
SCRIPT = pathlib.Path(__file__).parents[1].joinpath("docstring_programs.py")
AT_ONCE = 150  # programs to a process: JAX keeps what it compiles


def child(folder, *arguments, programs=None):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], input=json.dumps(programs), cwd=folder, capture_output=True, text=True, timeout=3600, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    pytest.importorskip("jax")
    return child(tmp_path_factory.mktemp("take"), "take", "jax", "numpy", "scipy")


@pytest.fixture(scope="module")
def compared(programs, jax, tmp_path_factory):
    """(examples compared, {docstring: [what differs]})"""
    parts = [programs[i : i + AT_ONCE] for i in range(0, len(programs), AT_ONCE)]

    def prints(library):
        folder, out = tmp_path_factory.mktemp("run"), {}
        for part in parts:
            out.update(child(folder, "run", library, programs=part))
        return out

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(prints, (jax.__name__, "jax"))
    return differences(programs, ours, theirs)


def test_every_difference_has_its_reason_and_no_reason_is_stale(compared):
    count, found = compared
    assert count > 5000
    new = [line for name, lines in found.items() if name not in REASONS for line in lines]
    assert not new, f"{len(new)} of {count} examples:\n" + "\n".join(new)
    assert not set(REASONS) - set(found), f"these print the same: {sorted(set(REASONS) - set(found))}"
