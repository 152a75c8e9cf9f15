"""The cost model of docs/scale.md: bytes and messages of a step are those of the formula, as the plan says them and as devices and processes count them."""

import json
import pathlib
import subprocess

import pytest
from processes import command

pytestmark = pytest.mark.ours

BENCH = pathlib.Path(__file__).parents[2] / "benches" / "scale.py"


def test_counters_are_the_models(child):
    child(
        f"""
        import importlib.util
        spec = importlib.util.spec_from_file_location("scale", {str(BENCH)!r})
        scale = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scale)
        n, a = scale.sizes()
        for p in (2, 4, 8, 16):
            for kind, (_, planned, seen) in scale.counted(jax, scale.KINDS, jax.devices()[:p]).items():
                model = scale.moved(kind, p, n, a, scale.LAYERS)
                assert planned == model, (kind, p, planned, model)
                assert seen == (model[0] * p, model[1] * p), (kind, p, seen, model)
        """,
        NUM_CPU_DEVICES="16",
    )


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_processes_count_the_same(processes, devices):
    import importlib.util

    spec = importlib.util.spec_from_file_location("scale", BENCH)
    scale = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scale)
    run, env = command(processes, devices)
    done = subprocess.run([*run, str(BENCH), "--count", ",".join(scale.KINDS)], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    n, a = scale.sizes()
    for kind, (p, planned, total) in json.loads(done.stdout.splitlines()[-1]).items():
        model = scale.moved(kind, p, n, a, scale.LAYERS)
        assert tuple(planned) == model and total == [model[0] * p, model[1] * p], (kind, p, planned, total, model)
