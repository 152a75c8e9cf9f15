"""`import jax` served by Ferrax: run, installed and adopted."""

import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.ours

PACKAGES = str(pathlib.Path(__file__).parents[2] / "python")


@pytest.fixture
def python(tmp_path):
    """Runs Python with these arguments in an empty folder; gives what it printed and its errors. `path`: first folders to import from."""

    def run(*args, status=0, path=()):
        variables = dict(os.environ, PYTHONPATH=os.pathsep.join([*map(str, path), PACKAGES]))
        done = subprocess.run([sys.executable, *map(str, args)], env=variables, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    return run


def written(folder, text, name="program.py"):
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


LOOKS = """
import importlib.metadata, sys
import ferrax, jax, jax.numpy as jnp, jaxlib
from jax import lax, nn
from jax.experimental import checkify
import jax.scipy.linalg
print(jnp is ferrax.numpy, sys.modules["jax.numpy"] is jnp, lax is ferrax.lax, nn is ferrax.nn, jax.jit is ferrax.jit)
print(jax.scipy.linalg is sys.modules["ferrax.scipy.linalg"], isinstance(jnp.ones(2), jax.Array), jnp.__spec__.name)
print(jax.__version__, jax.__version_info__, jaxlib.__version__, *map(importlib.metadata.version, ("jax", "jaxlib")))
print(__name__, sys.argv[1:], float(jax.grad(jnp.sin)(0.0)))
"""
SEEN = """True True True True True
True True ferrax.numpy
0.10.2 (0, 10, 2) 0.10.2 0.10.2 0.10.2
__main__ ['a', '-b'] 1.0
"""


def test_a_program(python, tmp_path):
    written(tmp_path / "sub", "x = 1", "beside.py")
    place = written(tmp_path / "sub", f"import beside\n{LOOKS}")
    assert python("-m", "ferrax", place, "a", "-b")[0] == SEEN


def test_a_module(python, tmp_path):
    written(tmp_path, LOOKS, "module.py")
    assert python("-m", "ferrax", "-m", "module", "a", "-b")[0] == SEEN


def test_a_line(python):
    assert python("-m", "ferrax", "-c", LOOKS, "a", "-b")[0] == SEEN


def test_the_exit_status_is_the_program_s(python, tmp_path):
    python("-m", "ferrax", written(tmp_path, "import jax, sys; sys.exit(7)"), status=7)


def test_pytest_runs(python, tmp_path):
    written(tmp_path, "import jax.numpy as jnp\ndef test(): assert jnp.arange(4).sum() == 6\n", "test_one.py")
    assert "1 passed" in python("-m", "ferrax", "-m", "pytest", "-q", "-p", "no:cacheprovider")[0]


def test_processes_that_a_program_starts(python, tmp_path):
    text = """
        import concurrent.futures, multiprocessing, jax, jax.numpy as jnp

        def work(n):
            return jax.__version__, float(jnp.arange(n).sum()), jax.numpy.__name__

        if __name__ == "__main__":
            with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                print(pool.submit(work, 4).result())
    """
    place = written(tmp_path, "\n".join(line[8:] for line in text.splitlines()))
    assert python("-m", "ferrax", place)[0] == "('0.10.2', 6.0, 'jax.numpy')\n"


def test_objects_of_a_program_can_be_pickled(python, tmp_path):
    text = "import jax, pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x, pickle.loads(pickle.dumps(jax.numpy.arange(2))))"
    assert python("-m", "ferrax", written(tmp_path, text))[0] == "1 [0 1]\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["-m"], "-m wants an argument"),
        (["--fast"], "there is no option --fast"),
        (["absent.py"], "can't open 'absent.py': No such file or directory"),
        (["adopt", "now"], "usage: python -m ferrax adopt"),
    ],
)
def test_unknown_commands(python, args, says):
    assert says in python("-m", "ferrax", *args, status=1)[1]


def test_help(python):
    assert "python -m ferrax adopt" in python("-m", "ferrax", "--help")[0]


def test_install_in_a_program(python):
    line = "import ferrax.compat; ferrax.compat.install(); ferrax.compat.install()\n"
    assert python("-c", line + LOOKS, "a", "-b")[0] == SEEN


def test_an_imported_jax_stays(python, tmp_path):
    written(tmp_path / "there", "x = 5", "jax/__init__.py")
    line = "import jax, ferrax.compat\ntry: ferrax.compat.install()\nexcept ImportError as e: print(e)\nprint(jax.x)"
    output, _ = python("-c", line, path=[tmp_path / "there"])
    assert "call ferrax.compat.install() before the first `import jax`" in output
    assert output.endswith("\n5\n")


def test_an_installed_jax_is_left_alone(python, tmp_path):
    written(tmp_path / "there", "x = 5", "jax/__init__.py")
    assert python("-m", "ferrax", "-c", "import jax; print(jax.__version__)", path=[tmp_path / "there"])[0] == "0.10.2\n"
    assert python("-c", "import jax; print(jax.x)", path=[tmp_path / "there"])[0] == "5\n"


ASKS = {
    "import jax._src.no_such": ("ModuleNotFoundError", "Ferrax has no module jax._src.no_such, which asking uses"),
    "from jax._src import no_such": ("ImportError", "Ferrax has no jax._src.no_such, which asking uses"),
    "import jax._src; jax._src.no_such": ("AttributeError", "Ferrax has no jax._src.no_such, which asking uses"),
    "import jax; jax.no_such": ("AttributeError", "Ferrax has no jax.no_such, which asking uses"),
    "import jax.experimental.no_such.at_all": ("ModuleNotFoundError", "Ferrax has no module jax.experimental.no_such, which asking uses"),
    "from jax.numpy import no_such": ("ImportError", "Ferrax has no jax.numpy.no_such, which asking uses"),
    "import jax.numpy; jax.numpy.no_such": ("AttributeError", "Ferrax has no jax.numpy.no_such, which asking uses"),
    "import jax; jax.numpy.linalg.no_such": ("AttributeError", "Ferrax has no jax.numpy.linalg.no_such, which asking uses"),
    "import jax; jax.scipy.stats.norm.no_such": ("AttributeError", "Ferrax has no jax.scipy.stats.norm.no_such, which asking uses"),
    "from jax.nn.initializers import no_such": ("ImportError", "Ferrax has no jax.nn.initializers.no_such, which asking uses"),
}


@pytest.mark.parametrize("line", ASKS)
def test_the_error_for_an_absent_name_names_the_importer(python, tmp_path, line):
    written(tmp_path, line, "asking.py")
    error, says = ASKS[line]
    output = python("-m", "ferrax", "-c", "import asking", status=1)[1]
    assert error in output
    assert says in output


def test_an_installed_jax_is_reported_without_a_program(python):
    line = "import ferrax.compat; ferrax.compat.install(); import jax\nfor m in (jax.nn, jax.lax, jax.random, jax.experimental):\n    try: m.no_such\n    except AttributeError as e: print(e)"
    output = python("-c", line)[0].splitlines()
    assert [s.split(",")[0] for s in output] == [f"Ferrax has no jax.{m}.no_such" for m in ("nn", "lax", "random", "experimental")]


def test_the_dictionary_of_jax_is_whole(python):
    line = "import jax, jax._src.core as c; print(set(dir(jax)) <= set(vars(jax)), 'norm' in vars(jax.numpy.linalg), 'Primitive' in vars(c), jax.jit is vars(jax)['jit'])"
    assert python("-m", "ferrax", "-c", line)[0] == "True True True True\n"


def test_find_spec_of_modules(python):
    line = "import importlib.util as u, jax; print(u.find_spec('jax.no_such'), u.find_spec('jax.lax').name.partition('.')[2], hasattr(jax, 'no_such'))"
    assert python("-m", "ferrax", "-c", line)[0] == "None lax False\n"


def test_the_namespace_of_arrays_has_jax_s_name(python):
    line = "import jax; x = jax.random.normal(jax.random.key(0)); print(x.__array_namespace__().__name__, jax.numpy.__name__, jax.numpy.__spec__.name)"
    assert python("-m", "ferrax", "-c", line)[0] == "jax.numpy jax.numpy ferrax.numpy\n"
    line = "import jax, importlib, ferrax; import jax.numpy as jnp; from jax.numpy import fft, linalg, zeros; print(importlib.reload(jnp) is ferrax.numpy, fft is jnp.fft)"
    assert python("-m", "ferrax", "-c", line)[0] == "True True\n"


def test_numpy_knows_the_names_of_small_floats(python):
    assert python("-m", "ferrax", "-c", "import jax, numpy as np; print(np.dtype('bfloat16'), np.dtype('float8_e4m3fn'))")[0] == "bfloat16 float8_e4m3fn\n"


def test_a_pickle_of_jax_s_array(python):
    # What JAX 0.10.2 writes: its own function, given what numpy's `__reduce__` gives, and whether the type is weak.
    make, args, state = np.arange(3, dtype=np.float32).__reduce__()
    inner = pickle.dumps((make, args, state, {"weak_type": False}), protocol=2)[2:-1]
    text = b"\x80\x02cjax._src.array\n_reconstruct_array\n" + inner + b"R."
    line = f"import pickle, jax; x = pickle.loads({text!r}); print(type(x) is type(jax.numpy.ones(2)), x, x.dtype)"
    assert python("-m", "ferrax", "-c", line)[0] == "True [0. 1. 2.] float32\n"


# ---------------------------------------------------------------- doctor

LIBRARY = """
import jax, jax.numpy as jnp
from jax import lax as l
from jax.experimental import pallas as pl
from jax._src import core
from jax.no_such_module import thing
import jaxlib.mlir.ir as ir

def f(x):
    y = jnp.sin(x) + jnp.no_such(x) + jnp.newaxis
    return l.add(y, core.full_lower(x)), jax.lax.linalg.cholesky, pl.cdiv(1, 2), jnp.linalg.no_norm, ir.F32Type.get()

try:
    from jax import not_this
except ImportError:
    not_this = None
if hasattr(jax, "nor_this"):
    g = jax.nor_this
"""


def test_doctor(python, tmp_path):
    written(tmp_path, LIBRARY, "patient/__init__.py")
    written(tmp_path, "from jax import in_a_test", "patient/tests/test_one.py")
    output, errors = python("-m", "ferrax", "doctor", "patient", status=1, path=[tmp_path])
    lines = output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("can be imported"))
    names = [line.split(":")[0].strip() for line in lines[2:at]]
    assert names == ["jax.no_such_module.thing", "jax.nor_this", "jax.not_this", "jax.numpy.linalg.no_norm", "jax.numpy.no_such"]
    without = [line.endswith("(the library works without it)") for line in lines[2:at]]
    assert without == [False, True, True, False, False]
    assert "5 are absent here (3 of them needed), 1 say why" in lines[0]
    assert "patient/__init__.py:11" in lines[5]
    assert "jaxlib.mlir.ir.F32Type.get: 1 time, first" in lines[at + 1]
    assert errors == ""


def test_doctor_without_findings(python, tmp_path):
    written(tmp_path, "import jax\nx = jax.numpy.ones(3).sum()\n", "healthy.py")
    assert "0 are absent here" in python("-m", "ferrax", "doctor", "healthy", path=[tmp_path])[0]
    assert "no library 'no_such_library' is installed here" in python("-m", "ferrax", "doctor", "no_such_library", status=1)[1]
    assert "usage: python -m ferrax doctor NAME" in python("-m", "ferrax", "doctor", status=1)[1]


# ---------------------------------------------------------------- adopt

ADOPT = "import sys; from ferrax.compat._distributions import adopt, AdoptError\ntry: adopt(sys.argv[1])\nexcept AdoptError as e: print(e)"
needs_no_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="JAX is installed")


@needs_no_jax
def test_adopted(python, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    assert python("-c", ADOPT, site, path=[site])[0] == ""
    assert python("-c", LOOKS, "a", "-b", path=[site])[0] == SEEN
    assert python("-c", ADOPT, site, path=[site])[0] == "", "again"
    recorded = {row.split(",")[0] for info in site.glob("*.dist-info") for row in (info / "RECORD").read_text().splitlines()}
    there = {str(p.relative_to(site)) for p in site.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert recorded == there


@needs_no_jax
def test_half_an_adoption_is_mended(python, tmp_path):
    site = tmp_path / "site"
    written(site, "", "~jaxlib-0.10.2.dist-info/METADATA")
    (site / "jax").mkdir()
    assert python("-c", ADOPT, site, path=[site])[0] == ""
    assert python("-c", LOOKS, "a", "-b", path=[site])[0] == SEEN
    assert sorted(p.name for p in site.iterdir() if p.name != "__pycache__") == ["jax", "jax-0.10.2.dist-info", "jaxlib", "jaxlib-0.10.2.dist-info"]


@needs_no_jax
@pytest.mark.parametrize("name", ["jax", "jaxlib"])
def test_a_real_jax_is_not_adopted(python, tmp_path, name):
    site = tmp_path / "site"
    info = written(site, f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.9.1\n", f"{name}-0.9.1.dist-info/METADATA")
    module = written(site, "x = 5", f"{name}/__init__.py")
    assert f"{name} 0.9.1 is installed at" in python("-c", ADOPT, site, path=[site])[0]
    info.unlink()
    info.parent.rmdir()
    assert "is a package that Ferrax did not write" in python("-c", ADOPT, site, path=[site])[0]
    assert module.read_text() == "x = 5"
    assert [p.name for p in site.iterdir() if p.name != "__pycache__"] == [name]


# ---------------------------------------------------------------- internals

NAMES_OF_THE_ROOM = """
import importlib
from ferrax.compat._standins import STANDINS
for module, names in STANDINS.items():
    for name in names:
        getattr(importlib.import_module(module), name)
    print(module, importlib.import_module(module) is importlib.import_module(module))
"""


def test_each_listed_name_exists(python):
    lines = python("-m", "ferrax", "-c", NAMES_OF_THE_ROOM)[0].splitlines()
    assert len(lines) > 20 and all(line.endswith(" True") for line in lines)


MIRRORED = """
import importlib, warnings
import jax
from ferrax.compat._standins import MIRRORS
warnings.simplefilter("error")
for internal, publics in MIRRORS.items():
    module = importlib.import_module(internal)
    for public in publics:
        offered = importlib.import_module("ferrax" if public == "ferrax" else f"ferrax.{public}")
        for name in dir(offered):
            if not name.startswith("_"):
                getattr(module, name)
    assert not hasattr(module, "no_such_name") and not hasattr(module, "_no_such_name"), internal
from jax._src import api_util, core, random, tree_util
from jax._src.interpreters import ad, partial_eval
from jax._src.lax import lax
from jax.lib import xla_bridge
from jaxlib import xla_client
import jaxlib._jax
assert core.Tracer is jax.core.Tracer and core.jaxpr_as_fun is jax.extend.core.jaxpr_as_fun and random.PRNGKey is jax.random.PRNGKey
assert lax.dot_general_p is jax.lax.dot_general_p and tree_util.DictKey is jax.tree_util.DictKey
assert isinstance(jax.devices()[0], xla_client.Device) and isinstance(jax.jit(len), jaxlib._jax.PjitFunction)
assert isinstance(jax.numpy.ones(2), jaxlib._jax.ArrayImpl) and xla_bridge.get_backend().platform == jax.devices()[0].platform
"""


def test_internal_modules_have_the_names_of_public_ones(python):
    python("-m", "ferrax", "-c", MIRRORED)


IMPORTED = """
import importlib
from ferrax.compat._imports import _table
from jax.experimental.ode import api_util, ravel_first_arg
assert api_util is importlib.import_module("jax.api_util")
for module, names in _table().items():
    try:
        there = importlib.import_module(module)
    except ModuleNotFoundError as e:  # a library that is not here
        assert e.name == "tensorstore", module
        continue
    for name in names:
        assert getattr(there, name) is not None, (module, name)
    assert not hasattr(there, "no_such_name"), module
"""


def test_imports_of_experimental_modules_are_found_there(python):
    python("-m", "ferrax", "-c", IMPORTED)


UNSPECIFIED = """
import jax
from jax._src.sharding_impls import UNSPECIFIED
from jax.experimental.pjit import pjit
f = lambda x, y: {"a": x + y, "b": x}
for places in (UNSPECIFIED, None), (None, UNSPECIFIED), ((UNSPECIFIED, None), UNSPECIFIED), ([None, UNSPECIFIED], {"a": UNSPECIFIED, "b": None}):
    for jit in (jax.jit, pjit):
        g = jit(f, in_shardings=places[0], out_shardings=places[1])
        assert g(1.0, 2.0)["a"] == 3 and g.lower(1.0, 2.0).compile()(1.0, 2.0)["b"] == 1
assert repr(UNSPECIFIED) == "UnspecifiedValue"
"""


def test_unspecified_shardings_by_name(python):
    python("-m", "ferrax", "-c", UNSPECIFIED)


REFUSING = """
import jax, jax.numpy as jnp, numpy as np
from jax._src import compiler
x = jnp.ones(3)
add = jax.jit(lambda x: x + 2)
add(x)
seen = []
def refuse(backend, *args):
    seen.append(backend.platform)
    raise RuntimeError("no more")
before = compiler.backend_compile_and_load
compiler.backend_compile_and_load = refuse
for f in (lambda: jax.jit(lambda x: x * 3)(x), lambda: jnp.cosh(x), lambda: jax.pmap(lambda x: x - 7)(x[None])):
    try: f()
    except RuntimeError as e: assert str(e) == "no more"
    else: raise AssertionError("was compiled")
assert np.asarray(add(x))[0] == 3                    # was compiled before
compiler.backend_compile_and_load = lambda backend, *args: (seen.append("asked"), before(backend, *args))[1]
assert np.asarray(jnp.cosh(x))[0] > 1
compiler.backend_compile_and_load = before
assert np.asarray(jax.jit(lambda x: x * 5)(x))[0] == 5
assert seen == ["cpu"] * 3 + ["asked"], seen
"""


def test_a_replaced_compile_function_sees_each_program_and_may_raise(python):
    python("-m", "ferrax", "-c", REFUSING)


HIJAX = """
import jax, jax.numpy as jnp
from jax.experimental import hijax
import jax.experimental.hijax
assert jax.experimental.hijax is hijax and jax._src.hijax.VJPHiPrimitive is hijax.VJPHiPrimitive

class Clip(hijax.VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()
    def expand(self, x): return x
    def vjp_fwd(self, nzs_in, x): return self(x), None
    def vjp_bwd_retval(self, _, g): return (jnp.clip(g, -1, 1),)

print(jax.grad(lambda x: 5 * Clip(jax.typeof(x))(x))(3.0))

class Read(hijax.HiPrimitive): pass

try: Read("read").bind(1)
except NotImplementedError as e: print(e)
"""


def test_operations_with_rules_of_their_own(python):
    assert python("-m", "ferrax", "-c", HIJAX)[0] == "1.0\nprimitive read must define `to_lojax`\n"


TEST_UTIL = """
import jax, jax.numpy as jnp, numpy as np
from jax._src import test_util as jtu
print(jtu.device_under_test(), np.dtype("float32") in jtu.supported_dtypes(), jtu.test_device_matches(["cpu", "gpu"]), jtu.is_device_tpu())
jtu.check_grads(jnp.sin, (1.0,), order=1)
jtu.check_eq({"a": jnp.ones(2)}, {"a": np.ones(2)})
x = jtu.rand_default(np.random.RandomState(0))((2, 3), np.complex64)
print(x.shape, x.dtype, jtu.rand_positive(np.random.RandomState(0))((3,), np.float32).min() >= 1)
print([e.primitive.name for e in jtu.iter_eqns(jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2))(1.0))])
print(jtu.create_mesh((1,), ("x",)).shape, jtu.default_tolerance(np.float64), jtu.tolerance(np.float32, {np.float32: 0.25}))
"""


def test_helpers_of_tests(python):
    out = python("-m", "ferrax", "-c", TEST_UTIL)[0].splitlines()
    assert out == ["cpu True True False", "(2, 3) complex64 True", "['scan', 'sin']", "OrderedDict({'x': 1}) 1e-15 0.25"] or out[3].startswith("OrderedDict(")


# What `import jax` imports in JAX 0.10.2, without its internals.
WITH_JAX = """jax jax.api_util jax.core jax.custom_batching jax.custom_derivatives jax.debug jax.distributed jax.dlpack jax.dtypes jax.errors jax.experimental
    jax.experimental.compilation_cache jax.experimental.compilation_cache.compilation_cache jax.export jax.ffi jax.image jax.interpreters jax.interpreters.ad
    jax.interpreters.batching jax.interpreters.partial_eval jax.interpreters.pxla jax.interpreters.xla jax.lax jax.lax.linalg jax.lib jax.monitoring jax.nn
    jax.nn.initializers jax.numpy jax.numpy.fft jax.numpy.linalg jax.ops jax.profiler jax.random jax.ref jax.scipy jax.sharding jax.stages jax.tree
    jax.tree_util jax.typing jax.version jaxlib jaxlib._jax jaxlib.utils jaxlib.version jaxlib.xla_client"""


def test_modules_that_import_jax_imports(python):
    """Programs look for them in `sys.modules`; they are the objects that the attributes are."""
    program = f"""
import sys, functools, jax
names = {WITH_JAX.split()!r}
print([n for n in names if n not in sys.modules])
print([n for n in names if n.split('.')[0] == 'jax' and functools.reduce(getattr, n.split('.')[1:], jax) is not sys.modules[n]])
jax.scipy.special.gammaln, jax.scipy.stats.norm
print([n for n in ("jax.scipy.special", "jax.scipy.stats", "jax.scipy.stats.norm") if n not in sys.modules])
"""
    assert python("-m", "ferrax", "-c", program)[0] == "[]\n[]\n[]\n"


INTERNALS = """
import sys, jax, jax.numpy as jnp
from jax._src import traceback_util, tree_util, core, distributed
from jax._src.state.types import AbstractRef
from jax.experimental import colocated_python as cp
print(dict in tree_util._registry, set in tree_util._registry, isinstance(jax.typeof(jax.new_ref(jnp.ones(2))), AbstractRef))
for x in ((1, 2), [1], {"a": (2,), "b": 1}, None, jax.tree_util.Partial(len, 1)):
    entry = tree_util._registry[type(x)]
    children, data = entry.to_iter(x)
    assert str(entry.from_iter(data, children)) == str(x) and hash(data) is not None
print(core.trace_state_clean(), jax.jit(lambda: core.trace_state_clean())(), distributed.global_state.process_id)
here = sys._getframe()
print(traceback_util.include_frame(here), traceback_util.api_boundary(len)([1]) == 1)
traceback_util.register_exclusion(here.f_code.co_filename)
print(traceback_util.include_frame(here), cp.colocated_cpu_devices(jax.devices()) == tuple(jax.devices()), cp.colocated_python(len)([1]))
mesh = jax.sharding.Mesh(jax.devices(), "x")
print(cp.colocated_cpu_devices(mesh) == mesh)
"""


def test_internals_behave_as_documented(python):
    assert python("-m", "ferrax", "-c", INTERNALS)[0].split() == "True False True True False 0 True True False True 1 True".split()


BACKENDS = """
import jax, os
from jax._src import xla_bridge
print(bool(xla_bridge._backends), xla_bridge._backends.get("cpu"), "cpu" in xla_bridge._backends)
os.environ["XLA_FLAGS"] = "--xla_a=b --xla_force_host_platform_device_count=9 --xla_force_host_platform_device_count=3"
print(jax.device_count(), xla_bridge._backends["cpu"] is jax.devices()[0].client, xla_bridge._backends.get("tpu"), len(xla_bridge._backends))
"""


def test_backends_in_use_and_the_number_of_devices_in_xla_flags(python):
    assert python("-m", "ferrax", "-c", BACKENDS)[0].splitlines() == ["False None False", "3 True None 1"]
