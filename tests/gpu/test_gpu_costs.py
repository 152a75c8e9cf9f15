"""What programs ask of a GPU: the counts of tests/golden/gpu_costs.txt, to the last dispatch."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ON_JAX

pytestmark = pytest.mark.skipif(ON_JAX, reason="JAX from PyPI has no such device")
TESTS = pathlib.Path(__file__).parents[1]


def test_costs_are_those_of_the_golden_file(gpu):
    if "llvmpipe" not in gpu.description:
        pytest.skip("the file has the counts of lavapipe: limits of adapters decide some of them")
    environment = {**os.environ, "FERRAX_GPU": "software"}
    run = subprocess.run([sys.executable, TESTS / "gpu_costs.py"], env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    golden = (TESTS / "golden" / "gpu_costs.txt").read_text()
    # a row that rises is a regression; one that falls is written by `python tests/gpu_costs.py --write`
    assert run.stdout == golden
