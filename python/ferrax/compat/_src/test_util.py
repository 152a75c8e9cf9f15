"""`jax._src.test_util`: the helpers of JAX's own tests that libraries use.

    class Sines(jtu.JaxTestCase):
        def test_sine(self): self.assertAllClose(jnp.sin(1.0), np.sin(1.0))

Invariant: `JaxTestCase` needs absl-py, as in JAX; the other names do not.
"""

import contextlib
import functools
import unittest
import zlib
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from ... import _core, jit
from ..._base.config import config as _config
from ...dtypes import finfo, issubdtype
from ...extend.backend import get_backend
from ...sharding import Mesh
from ...test_util import check_grads, check_jvp, check_vjp
from ...tree_util import tree_map, tree_structure

__all__ = [
    "check_eq",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "create_mesh",
    "default_tolerance",
    "device_under_test",
    "is_cloud_tpu",
    "is_device_cuda",
    "is_device_rocm",
    "is_device_tpu",
    "iter_eqns",
    "numpy_version",
    "parse_version",
    "rand_bool",
    "rand_default",
    "rand_int",
    "rand_nonzero",
    "rand_not_small",
    "rand_positive",
    "rand_small",
    "rand_uniform",
    "request_cpu_devices",
    "run_on_devices",
    "skip_on_devices",
    "supported_dtypes",
    "test_device_matches",
    "tolerance",
    "with_config",
]

_TOLERANCE = {1: 0.5, 2: 1e-2, 4: 1e-6, 8: 1e-15}


def device_under_test():
    """The platform whose devices arrays are on by default."""
    return get_backend().platform


def test_device_matches(device_types):
    """Whether the default platform is one of some."""
    return device_under_test() in device_types


test_device_matches.__test__ = False  # for pytest


def is_device_cuda():
    """False: there are no such devices."""
    return False


is_device_rocm = is_device_tpu = is_cloud_tpu = lambda *_, **__: False


def supported_dtypes():
    """The dtypes of arrays on the default platform, under the settings there are."""
    names = "bool int4 int8 int16 int32 uint4 uint8 uint16 uint32 bfloat16 float16 float32 complex64"
    wide = " int64 uint64 float64 complex128" if _config.jax_enable_x64 else ""
    return {np.dtype(getattr(ml_dtypes, name, name)) for name in (names + wide).split()}


def parse_version(v):
    """A version as a tuple of numbers."""
    return tuple(int(x) for x in v.split(".")[:3] if x.isdigit())


def numpy_version():
    """NumPy's version as a tuple."""
    return parse_version(np.__version__)


def default_tolerance(dtype):
    """How far values of a dtype may be from others, by its size."""
    dtype = np.dtype(dtype)
    if not issubdtype(dtype, np.inexact):
        return 0
    return _TOLERANCE[np.dtype(finfo(dtype).dtype).itemsize]


def tolerance(dtype, tol=None):
    """The tolerance for a dtype: a number, or that of a dictionary by dtype."""
    by_dtype = {np.dtype(k): v for k, v in tol.items()} if isinstance(tol, dict) else {}
    return by_dtype.get(np.dtype(dtype), default_tolerance(dtype)) if tol is None or isinstance(tol, dict) else tol


def check_eq(xs, ys, err_msg=""):
    """Raises AssertionError unless two pytrees have equal leaves."""
    assert tree_structure(xs) == tree_structure(ys), err_msg
    tree_map(lambda x, y: np.testing.assert_array_equal(np.asarray(x), np.asarray(y), err_msg=err_msg), xs, ys)


def iter_eqns(jaxpr):
    """The equations of a program, and of those within."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for body in value if isinstance(value, (tuple, list)) else [value]:
                if hasattr(getattr(body, "jaxpr", body), "eqns"):
                    yield from iter_eqns(body)


def create_mesh(mesh_shape, axis_names, iota_order=False, axis_types=None):
    """A mesh of the first devices; skips the test where there are too few."""
    size, devices = int(np.prod(mesh_shape)), _core.devices(None)
    if len(devices) < size:
        raise unittest.SkipTest(f"Test requires {size} global devices and found {len(devices)}.")
    return Mesh(np.array(devices[:size]).reshape(mesh_shape), axis_names, axis_types=axis_types)


def request_cpu_devices(nr_devices):
    """Asks for a number of CPU devices; skips the test where there are others already."""
    if _config.jax_num_cpu_devices < nr_devices:
        try:
            _config.update("jax_num_cpu_devices", nr_devices)
        except RuntimeError:
            raise unittest.SkipTest(f"{nr_devices} devices can no longer be created") from None


def _on(wanted, reason):
    def decorate(test):
        @functools.wraps(test)
        def run(self, *args, **kwargs):
            if not wanted():
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return run

    return decorate


def skip_on_devices(*disabled_devices, skip_reason=None):
    """Skips a test on some platforms."""
    return _on(lambda: device_under_test() not in disabled_devices, skip_reason or f"not on {device_under_test()}")


def run_on_devices(*enabled_devices, skip_reason=None):
    """Runs a test on some platforms only."""
    return _on(lambda: device_under_test() in enabled_devices, skip_reason or f"not on {device_under_test()}")


def with_config(**settings):
    """Gives a test class settings, which hold while its tests run."""

    def decorate(cls):
        cls._default_config = {**getattr(cls, "_default_config", {}), **settings}
        return cls

    return decorate


@contextlib.contextmanager
def _under(settings):
    before = {name: _config.read(name) for name in settings}
    for name, value in settings.items():
        _config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _config.update(name, value)


global_config_context = lambda **settings: _under(settings)


# ---------------------------------------------------------------- random operands


def _draws(draw, scale=1.0, post=lambda x: x):
    def rand(shape, dtype):
        dtype = np.dtype(dtype)
        values = scale * np.asarray(draw(*shape))
        if dtype.kind == "c":
            values = values + 1j * scale * np.asarray(draw(*shape))
        return post(values).astype(dtype)

    return rand


def rand_default(rng, scale=3):
    """Normal numbers: `rand_default(rng)(shape, dtype)`."""
    return _draws(rng.randn, scale)


def rand_nonzero(rng):
    """The same, ones in place of zeros."""
    return _draws(rng.randn, 3, lambda x: np.where(x == 0, 1, x))


def rand_positive(rng):
    """Numbers above one."""
    return _draws(rng.rand, 2, lambda x: x + 1)


def rand_small(rng):
    """Numbers about a thousandth."""
    return _draws(rng.randn, 1e-3)


def rand_not_small(rng, offset=10.0):
    """Numbers at least an offset from zero."""
    return _draws(rng.randn, 3, lambda x: x + np.where(x > 0, offset, -offset))


def rand_uniform(rng, low=0.0, high=1.0):
    """Numbers of an interval."""
    return _draws(rng.rand, 1, lambda x: x * (high - low) + low)


def rand_int(rng, low=0, high=None):
    """Integers of an interval."""
    return lambda shape, dtype: rng.randint(low, high=high, size=shape).astype(dtype)


def rand_bool(rng):
    """Truths."""
    return lambda shape, dtype: (rng.rand(*shape) > 0.5).astype(dtype)


# ---------------------------------------------------------------- the test case


class _Assertions:
    """The additions of `JaxTestCase` to a test case."""

    _default_config: ClassVar[dict[str, Any]] = {}

    def setUp(self):
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(_under(self._default_config))
        self._rng = np.random.RandomState(zlib.adler32(self.id().encode()))

    def rng(self):
        return self._rng

    def assertArraysEqual(self, x, y, *, check_dtypes=True, err_msg="", allow_object_dtype=False, verbose=True):
        if check_dtypes:
            self.assertDtypesMatch(x, y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(self, x, y, *, check_dtypes=True, atol=None, rtol=None, err_msg=""):
        self.assertEqual(np.shape(x), np.shape(y))
        if check_dtypes:
            self.assertDtypesMatch(x, y)
        dtypes = [np.asarray(v).dtype for v in (x, y)]
        near = [max(tolerance(d, tol) for d in dtypes) for tol in (atol, rtol)]
        wide = [np.asarray(v).astype(np.complex128 if d.kind == "c" else np.float64) for v, d in zip((x, y), dtypes, strict=True)]
        np.testing.assert_allclose(*wide, atol=near[0], rtol=near[1], err_msg=err_msg)

    def assertDtypesMatch(self, x, y, *, canonicalize_dtypes=True):
        if canonicalize_dtypes or not _config.jax_enable_x64:
            self.assertEqual(_core.get_aval(x).dtype, _core.get_aval(y).dtype)

    def assertAllClose(self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, canonicalize_dtypes=True, err_msg=""):
        if isinstance(actual, dict):
            self.assertEqual(set(actual), set(desired))
            for k in actual:
                self.assertAllClose(actual[k], desired[k], check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)
        elif isinstance(actual, (list, tuple)) and not hasattr(actual, "__array__"):
            self.assertEqual(len(actual), len(desired))
            for a, d in zip(actual, desired, strict=True):
                self.assertAllClose(a, d, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)
        else:
            self.assertArraysAllClose(actual, desired, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)

    def _CompileAndCheck(self, fun, args_maker, *, check_dtypes=True, tol=None, rtol=None, atol=None, check_cache_misses=True):
        args = args_maker()
        self.assertAllClose(jit(fun)(*args), fun(*args), check_dtypes=check_dtypes, atol=atol or tol, rtol=rtol or tol)

    def _CheckAgainstNumpy(self, numpy_reference_op, lax_op, args_maker, check_dtypes=True, tol=None, atol=None, rtol=None, canonicalize_dtypes=True):
        args = args_maker()
        expected = numpy_reference_op(*args)
        self.assertAllClose(lax_op(*args), expected, check_dtypes=check_dtypes, atol=atol or tol, rtol=rtol or tol)


def __getattr__(name):
    if name in ("JaxTestCase", "JaxTestLoader", "sample_product"):
        from absl.testing import absltest, parameterized

        if name == "sample_product":
            return lambda *groups, **lists: parameterized.product(*groups, **lists)
        if name == "JaxTestLoader":
            return absltest.TestLoader
        made = globals()["JaxTestCase"] = type("JaxTestCase", (_Assertions, parameterized.TestCase), {"__module__": __name__})
        return made
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
