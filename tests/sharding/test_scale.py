"""The cost model of docs/scale.md: bytes and messages of a step are those of the formula, as the plan says them and as devices and processes count them."""

import json
import pathlib
import subprocess

import pytest
from processes import command

pytestmark = pytest.mark.ours

BENCH = pathlib.Path(__file__).parents[2] / "benches" / "scale.py"


@pytest.mark.parametrize("devices", [(2, 4, 8), pytest.param((16,), marks=pytest.mark.nightly)])
def test_counters_are_the_models(forked_child, devices):
    forked_child(
        f"""
        import importlib.util
        spec = importlib.util.spec_from_file_location("scale", {str(BENCH)!r})
        scale = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scale)
        n, a = scale.sizes()
        for p in {devices}:
            for kind, (_, planned, seen) in scale.counted(jax, scale.KINDS, jax.devices()[:p]).items():
                model = scale.moved(kind, p, n, a, scale.LAYERS)
                assert planned == model, (kind, p, planned, model)
                assert seen == (model[0] * p, model[1] * p), (kind, p, seen, model)
        """,
        NUM_CPU_DEVICES=str(devices[-1]),
    )


def test_the_text_of_a_plan_tells_the_bytes_of_each_collective(forked_child):
    forked_child(
        """
        import re
        from ferrax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
        put = lambda shape, *spec: jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))

        def f(x, w):
            y = jax.lax.fori_loop(0, 3, lambda i, y: y - y.sum(0), x @ w)
            return jnp.roll(y, 1, 0), jnp.sort(x, 1)

        compiled = jax.jit(f).lower(put((16, 32), "a", "b"), put((32, 8), "b")).compile()
        each = re.findall(r"^# (.+) over [ab](?:, b)?: ([0-9.]+) bytes, ([0-9.]+) messages$", compiled.as_text(), re.M)
        costs = compiled.cost_analysis()
        assert sum(float(e[1]) for e in each) == costs["bytes communicated"] and sum(float(e[2]) for e in each) == costs["messages"], (each, costs)
        assert {e[0].split()[0] for e in each} >= {"all-reduce", "all-gather", "collective-permute"}, each
        alone = jax.jit(f).lower(jnp.ones((16, 32)), jnp.ones((32, 8))).compile()
        assert "bytes," not in alone.as_text() and "bytes communicated" not in alone.cost_analysis()
        """,
        NUM_CPU_DEVICES="8",
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
