"""What the tests share: the library under test, and JAX beside it where it is installed.

Tests take the library as a fixture, `jax`; `FERRAX_TEST_LIB=jax` runs the same tests on JAX itself, which is how an expectation is
checked before it is written down.
"""

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap

import hypothesis
import numpy as np
import pytest

# GPUs that are software count here: the tests run without hardware.
os.environ.setdefault("FERRAX_GPU", "all")

LIBRARY = os.environ.get("FERRAX_TEST_LIB", "ferrax")
ON_JAX = LIBRARY == "jax"
os.environ.setdefault("FERRAX_STRICT_PLANS", "1")  # a fused plan whose bounds are not proved is a failure here
PREFIX = "JAX_" if ON_JAX else "FERRAX_"
MODULES = (
    "numpy",
    "lax",
    "random",
    "nn",
    "nn.initializers",
    "tree",
    "tree_util",
    "ops",
    "errors",
    "test_util",
    "debug",
    "core",
    "scipy.special",
    "scipy.stats",
)

# These run where `cargo xtask test libraries` has installed what they import.
collect_ignore = [] if importlib.util.find_spec("optax") and importlib.util.find_spec("diffrax") else ["libraries"]
# `cargo xtask types` runs these.
collect_ignore += [] if os.environ.get("FERRAX_TYPES") else ["typing"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with interrupts ignored, children inherit it, and then no test could interrupt one.
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def load(name):
    library = importlib.import_module(name)
    for module in MODULES:
        try:
            importlib.import_module(f"{name}.{module}")
        except ModuleNotFoundError:
            pass
    return library


@pytest.fixture(scope="session")
def jax():
    """The library under test."""
    return load(LIBRARY)


@pytest.fixture(scope="session")
def jnp(jax):
    return jax.numpy


@pytest.fixture(scope="session")
def lax(jax):
    return jax.lax


@pytest.fixture(scope="session")
def oracle():
    """JAX itself; the test is skipped where it is not installed."""
    pytest.importorskip("jax")
    return load("jax")


@pytest.fixture
def x64(jax):
    """64-bit types for the length of one test."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="session")
def child():
    """Runs code in a fresh process, with `jax`, `jnp` and `np` bound; gives what it printed. It must exit with 0. `first` runs before the imports."""

    def run(code, *, first="", status=0, timeout=120, **env):
        header = f"{first}\nimport {LIBRARY} as jax, {LIBRARY}.numpy as jnp, numpy as np\n"
        variables = dict(os.environ, **{PREFIX + k: v for k, v in env.items()})
        done = subprocess.run([sys.executable, "-c", header + textwrap.dedent(code)], env=variables, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def close():
    def check(got, want, tol=1e-5):
        np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)

    return check


@pytest.fixture(scope="session")
def gpu(jax):
    """The first GPU. Without one the test is skipped, unless FERRAX_REQUIRE_GPU says that this is a failure."""
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        if os.environ.get("FERRAX_REQUIRE_GPU"):
            raise
        pytest.skip("no GPU adapter")


def pytest_collection_modifyitems(items):
    for item in items:
        if "oracle" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.oracle)
        if ON_JAX and item.get_closest_marker("ours"):
            item.add_marker(pytest.mark.skip(reason="differs from JAX on purpose"))
