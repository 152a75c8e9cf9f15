"""What the tests share: the library under test, and JAX beside it where it is installed.

Tests take the library as a fixture, `jax`; `FERRAX_TEST_LIB=jax` runs the same tests on JAX itself, which is how an expectation is
checked before it is written down.

An internal error fails the test that met it, in whichever process, even if the test passes. A test that does not end leaves the stacks of all
threads and children.
"""

import faulthandler
import gc
import importlib
import importlib.util
import os
import pathlib
import signal
import sys
import tempfile
import textwrap
import threading

import children
import hypothesis
import numpy as np
import pytest

# GPUs that are software count here: the tests run without hardware.
os.environ.setdefault("FERRAX_GPU", "all")

LIBRARY = os.environ.get("FERRAX_TEST_LIB", "ferrax")
ON_JAX = LIBRARY == "jax"
os.environ.setdefault("FERRAX_STRICT_PLANS", "1")  # a fused plan whose bounds are not proved is a failure here
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # children that are aborted say where they are
SECONDS = int(os.environ.get("FERRAX_TEST_SECONDS", "1200"))  # what a test may take
PREFIX = "JAX_" if ON_JAX else "FERRAX_"
IMPORTS = f"import {LIBRARY} as jax, {LIBRARY}.numpy as jnp, numpy as np"  # of children
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
# What a change must pass before it lands: `.ci/run` chooses it. Examples are the same each time, so that only a change can make a test fail.
hypothesis.settings.register_profile("landing", deadline=None, max_examples=40, derandomize=True, print_blob=True)
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
        variables = os.environ | {PREFIX + k: v for k, v in env.items()}
        done = children.run([sys.executable, "-c", f"{first}\n{IMPORTS}\n{textwrap.dedent(code)}"], env=variables, timeout=timeout)
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def forked_child(child):
    """As `child`, in a fork of a process that has imported the library: without the time that imports take. For programs that are not about processes."""
    servers = {}

    def run(code, *, first="", timeout=120, **env):
        if first or ON_JAX or sys.platform != "linux":  # JAX and some systems' libraries have threads once they are imported
            return child(code, first=first, timeout=timeout, **env)
        key = tuple(sorted(env.items()))
        if key not in servers:
            servers[key] = children.ForkServer(IMPORTS, os.environ | {PREFIX + k: v for k, v in env.items()})
        done = servers[key].run(textwrap.dedent(code), timeout=timeout)
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
        return done.stdout

    yield run
    for server in servers.values():
        server.close()


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
        if "gpu" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
        if ON_JAX and item.get_closest_marker("ours"):
            item.add_marker(pytest.mark.skip(reason="differs from JAX on purpose"))


class Watch:
    """Looks whether tests end. One that does not is ended, with its stacks and those of its children."""

    def __init__(self):
        self.out = os.dup(2)  # tests' own output is captured
        self.changed, self.test = threading.Event(), None
        threading.Thread(target=self.look, name="watch over tests", daemon=True).start()

    def begin(self, test):
        self.test = test
        self.changed.set()

    def look(self):
        while True:
            self.changed.clear()
            test = self.test
            if self.changed.wait(SECONDS) or test is None:
                continue
            os.write(self.out, f"\n{test} has run for {SECONDS} s\n".encode())
            faulthandler.dump_traceback(self.out)
            os.write(self.out, children.native_stacks(os.getpid()).encode())
            os.write(self.out, children.abort(children.descendants(os.getpid())).encode())
            # without its children it may go on, and fail
            if not self.changed.wait(min(SECONDS, 60)):
                os.write(self.out, f"{test} hangs\n".encode())
                os.abort()


def pytest_collection_finish():
    """Collections, and `live_arrays`, need not go through the objects of twenty thousand tests."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    # not when the module is imported, which children do
    os.environ["FERRAX_FAULTS"] = os.path.join(tempfile.gettempdir(), f"ferrax-faults-{os.getpid()}")
    config.watch = Watch()


def pytest_unconfigure(config):
    pathlib.Path(os.environ.get("FERRAX_FAULTS", "")).unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.config.watch.begin(item.nodeid)
    try:
        return (yield)
    finally:
        item.config.watch.begin(None)


@pytest.fixture(autouse=True)
def no_internal_errors(request):
    """The test fails if this process or a child of it met an internal error, unless it is marked `provokes_faults`."""
    yield
    faults = pathlib.Path(os.environ["FERRAX_FAULTS"])
    if faults.exists():
        text = faults.read_text()
        faults.unlink()
        if request.node.get_closest_marker("provokes_faults"):
            return
        pytest.fail(f"internal errors:\n{text}")


@pytest.fixture
def whole_tracebacks(jax):
    """Errors without the note on frames that are not shown, which doctest would compare."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)
