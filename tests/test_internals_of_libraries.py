"""Internals that published libraries import, each as it is used there."""

import importlib
import os
import pathlib
import subprocess
import sys
import warnings

import pytest

pytestmark = pytest.mark.ours

PACKAGES = str(pathlib.Path(__file__).parents[1] / "python")
HEAD = "import numpy as np, pytest\nimport jax as served\n"
PROGRAMS = {
    "types of joiners": """
from jax._src.numpy.index_tricks import CClass, RClass

jnp = served.numpy

class Own(CClass):
    pass

assert Own()[jnp.ones(2), jnp.zeros(2)].shape == (2, 2) and isinstance(jnp.r_, RClass) and isinstance(jnp.c_, CClass)
assert RClass()[0:3, 7].tolist() == [0, 1, 2, 7]
""",
    "updates of wrapped arrays": """
from jax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef

class Ref(_IndexUpdateRef):
    pass

class Helper(_IndexUpdateHelper):
    def __getitem__(self, index):
        return Ref(self.array, index)

x = served.numpy.arange(3.0)
assert Helper(x)[1].set(5.0).tolist() == [0, 5, 2] and isinstance(x.at, _IndexUpdateHelper) and isinstance(x.at[0], _IndexUpdateRef)
""",
    "shardings": """
from jax._src.sharding_impls import canonicalize_sharding

assert canonicalize_sharding(None, "f") is None
with pytest.raises(ValueError, match="not under a mesh context"):
    canonicalize_sharding(served.sharding.PartitionSpec("x"), "f")
with pytest.raises(TypeError, match="only supports instances"):
    canonicalize_sharding("x", "f")
mesh = served.make_mesh((1,), ("x",))
assert canonicalize_sharding(served.sharding.NamedSharding(mesh, served.sharding.PartitionSpec("x")), "f").spec == served.sharding.PartitionSpec("x")
""",
    "dialects": """
import jax._src.lib.mlir.ir as ir
from jax._src.lib.mlir.dialects import func, hlo

for name in (hlo.ReshapeOp, func.CallOp, ir.Type):
    with pytest.raises(NotImplementedError, match="another compiler"):
        name()
""",
    "small names": """
from jax._src import custom_api_util, dispatch, source_info_util
from jax._src.core import JaxprEqnContext, call_p
from jax._src.interpreters import batching, partial_eval
from jax._src.lib import xla_client

assert custom_api_util.register_custom_decorator_type(dict) is dict and call_p.name == "call" and JaxprEqnContext().compute_type is None
assert np.array_equal(batching.make_iota(3), [0, 1, 2]) and xla_client.XlaRuntimeError is served.errors.JaxRuntimeError
assert dispatch.runtime_tokens.clear() is dispatch.runtime_tokens.block_until_ready() is None
frame = source_info_util.user_frame(source_info_util.current())
assert frame.file_name == __file__ and frame.function_name == "<module>" and source_info_util.user_frame(None) is None
for refused in (batching.to_elt, partial_eval.TracingEqn):
    with pytest.raises(NotImplementedError):
        refused()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_libraries_use_them(name, tmp_path):
    place = tmp_path / "program.py"
    place.write_text(HEAD + PROGRAMS[name])
    done = subprocess.run([sys.executable, "-m", "ferrax", place], env=dict(os.environ, PYTHONPATH=PACKAGES), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_what_is_concrete(jax, jnp):
    with warnings.catch_warnings(action="ignore"):
        concrete = importlib.import_module(f"{jax.__name__}.core").is_concrete
    seen = []

    def f(x):
        seen.append((concrete(x), concrete(x[0]), concrete(jnp.sin(x))))
        return x.sum()

    x = jnp.ones(2)
    for g in (f, jax.grad(f), lambda x: jax.jvp(f, (x,), (x,))):
        g(x)
    assert seen == [(True,) * 3] * 3
    seen.clear()
    for g in (jax.jit(f), jax.jit(jax.grad(f)), lambda x: jax.vmap(f)(x[None]), lambda x: jax.vmap(jax.grad(f))(x[None])):
        g(x)
    assert seen == [(False,) * 3] * 4
