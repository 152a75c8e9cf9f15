"""The log of tracing and compiling under JAX's names."""

import json
import re
import subprocess
import sys

import pytest

PROGRAM = """
import logging, json
records = []
class Here(logging.Handler):
    def emit(self, record): records.append((record.name, record.levelname, record.getMessage()))
logging.getLogger().addHandler(Here())
import jax, jax.numpy as jnp
def f(x, y=1): return jnp.sin(x) * y
x = jnp.ones(3)
y = jnp.ones(4)
{body}
print(json.dumps(records))
"""
OURS = "import ferrax.compat\nferrax.compat.install()\n"
COMPILES = """
with jax.log_compiles(True):
    jax.jit(f)(x)
    jax.jit(lambda a, b: a + b["k"])(x, {"k": x})
"""
MISSES = """
g = jax.jit(f)
g(x)
with jax.explain_cache_misses(True):
    g(y)
"""


def logged(body, first=""):
    done = subprocess.run([sys.executable, "-c", first + PROGRAM.replace("{body}", body)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return [(name, level, re.sub(r"in [\d.e+-]+ sec", "in T sec", text)) for name, level, text in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.ours
def test_compilations_are_logged_under_the_names_of_jax():
    dispatch, pxla = "jax._src.dispatch", "jax._src.interpreters.pxla"
    assert logged(COMPILES, OURS) == [
        (dispatch, "WARNING", "Finished tracing f for jit in T sec"),
        (pxla, "WARNING", "Compiling jit(f) with global shapes and types (ShapedArray(float32[3]),). Argument mapping: (UnspecifiedValue,)."),
        (dispatch, "WARNING", "Finished XLA compilation of jit(f) in T sec"),
        (dispatch, "WARNING", "Finished tracing <lambda> for jit in T sec"),
        (
            pxla,
            "WARNING",
            "Compiling jit(<lambda>) with global shapes and types (ShapedArray(float32[3]), ShapedArray(float32[3])). Argument mapping: (UnspecifiedValue, UnspecifiedValue).",
        ),
        (dispatch, "WARNING", "Finished XLA compilation of jit(<lambda>) in T sec"),
    ]


@pytest.mark.ours
def test_the_level_of_the_log_jax_counts():
    quiet = logged("jax.jit(f)(x)", OURS)
    debug = logged('logging.getLogger("jax").setLevel(logging.DEBUG)\njax.jit(f)(x)', OURS)
    one = logged('logging.getLogger("jax").setLevel(logging.DEBUG)\nlogging.getLogger("jax._src.dispatch").setLevel(logging.ERROR)\njax.jit(f)(x)', OURS)
    assert quiet == [] and [level for _, level, _ in debug] == ["DEBUG"] * 3
    assert [name for name, *_ in one] == ["jax._src.interpreters.pxla"]


@pytest.mark.ours
def test_listeners_of_durations_hear_as_before():
    body = "import jax.monitoring as m\nm.register_event_duration_secs_listener(lambda event, s, **kw: records.append((event, 'heard', '')))\njax.jit(f)(x)"
    assert [name for name, *_ in logged(body, OURS)] == ["/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"]


@pytest.mark.ours
def test_elsewhere_the_log_has_the_name_of_the_library():
    first = "import sys, ferrax, ferrax.numpy\nsys.modules |= {'jax': ferrax, 'jax.numpy': ferrax.numpy}\n"
    assert {name for name, *_ in logged(COMPILES, first)} == {"ferrax"}


@pytest.mark.parametrize("body", [COMPILES, MISSES], ids=["compiles", "misses"])
def test_the_same_as_jax_tells(oracle, body):
    conversion = "Finished jaxpr to MLIR module conversion"  # there is none here
    place = lambda text: re.sub(r"at \S+:\d+(:\d+)?", "at", text)
    here, there = ([(n, lv, place(t)) for n, lv, t in logged(body, first) if not t.startswith(conversion)] for first in (OURS, ""))
    assert here == there and here


@pytest.mark.ours
def test_an_explained_miss_names_the_settings_that_differ():
    body = """
g = jax.jit(f)
g(x)
with jax.explain_cache_misses(True):
    with jax.numpy_rank_promotion("warn"), jax.default_matmul_precision("high"):
        g(x)
    with jax.debug_nans(True), jax.numpy_rank_promotion("warn"), jax.default_matmul_precision("high"):
        g(x)
"""
    first, second = ([line.strip(" *") for line in text.splitlines()[3:]] for _, _, text in logged(body, OURS))
    assert first == [
        "Tracing context doesn't match, e.g. due to config or context manager.",
        "jax_numpy_rank_promotion differs: now warn and before allow",
        "jax_default_matmul_precision differs: now high and before None",
    ]
    assert second[1:] == ["jax_debug_nans differs: now True and before False"]
