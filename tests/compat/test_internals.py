"""Internals that published libraries import, each as it is used there."""

import importlib
import os
import pathlib
import subprocess
import sys
import warnings

import pytest

pytestmark = pytest.mark.ours

PACKAGES = str(pathlib.Path(__file__).parents[2] / "python")
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
    "lines of equations": """
import jax, jax.numpy as jnp
from jax._src import jaxpr_util, source_info_util

def f(x):
    return jnp.sin(x) * 2

closed = jax.make_jaxpr(f)(1.0)
info = closed.eqns[0].source_info
line = f.__code__.co_firstlineno + 1
assert source_info_util.summarize(info) == f"{__file__}:{line}:11 (f)"
for known in (info, info.traceback):
    frame, = source_info_util.user_frames(known)
    assert frame == source_info_util.user_frame(known) and (frame.start_line, frame.start_column, frame.function_name) == (line, 11, "f")
assert source_info_util.user_frames(None) == [] and source_info_util.summarize(source_info_util.new_source_info()) == "unknown"
g = lambda x: jax.lax.cond(x > 0, jnp.sin, lambda x: x * 2, x) + jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x)
inner = jax.make_jaxpr(g)(1.0).jaxpr
counts = jaxpr_util.primitives(inner)
assert counts["sin"] == 1 and counts["mul"] == 2 and sum(counts.values()) == jaxpr_util.count_eqns(inner) == len(list(jaxpr_util.all_eqns(inner)))
assert jaxpr_util.primitives_by_shape(closed.jaxpr) == {"sin :: float32[]": 1, "mul :: float32[]": 1}
assert jaxpr_util.source_locations(closed.jaxpr) == {f"{__file__}:{line}:11 (f)": 2}
""",
    "documents": """
from jax._src import pretty_printer as pp

arguments = pp.join(pp.concat([pp.text(","), pp.brk()]), [pp.text(f"argument{i}") for i in range(3)])
call = pp.group(pp.concat([pp.text("f("), pp.nest(2, pp.concat([pp.brk(""), arguments])), pp.brk(""), pp.text(")")]))
assert call.format(80) == str(call) == "f(argument0, argument1, argument2)"
assert call.format(20) == "f(\\n  argument0,\\n  argument1,\\n  argument2\\n)"
noted = pp.text("a", annotation="first") + pp.brk() + pp.nest(2, pp.text("bcd") + pp.brk() + pp.text("e", annotation="last"))
assert noted.format() == "a   # first\\nbcd\\n  e # last"
places = []
assert pp.group(pp.source_map(noted, "here") + pp.text("!")).format(80, source_map=places) == "a bcd e! # first\\n         # last"
assert places == [[(0, 7, "here")]]
colored = pp.text("p") + pp.keyword(pp.text("q"))
assert colored.format(use_color=True) == "p\\x1b[34;1mq\\x1b[39;22m" and colored.format(use_color=False) == "pq"
assert pp.text("<", href="x").format(output_format=pp.OutputFormat.HTML) == '<a href="x">&lt;</a>'
""",
    "modules of other compilers": """
from jax._src.lazy_loader import attach
from jaxlib.mlir.dialects import func, mhlo, stablehlo
import jaxlib.gpu_solver, jaxlib.lapack, jaxlib.mlir.dialects.gpu
from jaxlib import utils

load, names, listed = attach("jax.scipy", ["linalg"])
assert load("linalg") is served.scipy.linalg and listed == names() == ["linalg"] and utils.safe_map(abs, [-1]) == [1]
with pytest.raises(AttributeError):
    load("nothing")
with pytest.raises(NotImplementedError, match="another compiler"):
    mhlo.ConstantOp()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_internals_work_as_libraries_use_them(name, tmp_path):
    place = tmp_path / "program.py"
    place.write_text(HEAD + PROGRAMS[name])
    done = subprocess.run([sys.executable, "-m", "ferrax", place], env=dict(os.environ, PYTHONPATH=PACKAGES), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_is_concrete(jax, jnp):
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
