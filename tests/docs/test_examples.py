"""The programs of examples/ run in their short form and find what they look for: each ends with 0 only if it does."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NEEDS = {
    "digits": ["sklearn"],
    "convnet": ["sklearn", "flax", "optax", "orbax"],
    "neural_ode": ["diffrax", "equinox", "optax"],
    "regression": ["numpyro", "blackjax"],
}
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "gallery")


def run(name, folder, *args):
    source = (EXAMPLES / f"{name}.py").read_text()
    served = ["-m", "ferrax"] if re.search(r"^import jax$", source, re.M) else []
    command = [sys.executable, *served, str(EXAMPLES / f"{name}.py"), *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.ours
@pytest.mark.parametrize("name", [name for name in NAMES if name != "serve"])
def test_example(name, tmp_path):
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    output = run(name, tmp_path, "--short", "--png", "picture.png")
    drawn = importlib.util.find_spec("matplotlib") is not None
    assert (tmp_path / "picture.png").exists() == drawn and ("picture: picture.png" in output) == drawn


@pytest.mark.ours
def test_a_trained_model_is_served_elsewhere(tmp_path, jax):
    output = run("serve", tmp_path, "served", "--steps", "400", "--png", "picture.png")
    assert "f32[n,2] -> f32[n,3]" in output.replace("float32", "f32").replace(" ", "").replace("->", " -> "), output
    assert {p.name for p in (tmp_path / "served").iterdir()} == {"model.ferrax", "points.f32", "logits.f32"}
