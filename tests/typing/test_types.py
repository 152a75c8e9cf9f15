"""Type checkers accept correct programs that use the library and reject each wrong line; the annotations agree with the library at run time.

`cargo xtask types` runs this where mypy and basedpyright are installed. `allowed.txt` lists what stubtest does not compare, with the reasons. The extension
has the only stub, `_core.pyi`; every other module has its annotations inline.
"""

import ast
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT = [HERE / "arrays.py", HERE / "training.py", HERE / "transforms.py"]
WRONG = HERE / "rejected.py"


def output_of(*command):
    """What a command printed. The library is found where it lies."""
    paths = dict.fromkeys(("PYTHONPATH", "MYPYPATH"), str(ROOT / "python"))
    done = subprocess.run([sys.executable, *map(str, command)], env=os.environ | paths, capture_output=True, text=True, cwd=ROOT, timeout=500)
    return done.stdout + done.stderr


def mypy(*files):
    """The lines of each of these files that mypy has something to say about."""
    text = output_of("-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", ROOT / "target" / "mypy", "--show-absolute-path", *files)
    assert "Found " in text or "Success" in text, text
    return {(pathlib.Path(m[1]), int(m[2])): m[3] for m in re.finditer(r"(?m)^(.*?):(\d+): error: (.*)$", text)}


def pyright(tmp_path, *files):
    """The same of basedpyright."""
    project = {"extraPaths": [str(ROOT / "python")], "typeCheckingMode": "standard", "include": [str(f) for f in files]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(project))
    text = output_of("-m", "basedpyright", "-p", tmp_path / "pyrightconfig.json", "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(text[text.index("{") :])["generalDiagnostics"]
    return {(pathlib.Path(d["file"]), d["range"]["start"]["line"] + 1): d["message"] for d in found if d["severity"] == "error"}


def wrong_lines():
    return {(WRONG, i) for i, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# error")}


def test_right_programs_run():
    for program in RIGHT:
        runpy.run_path(str(program))


def test_mypy():
    found = mypy(*RIGHT, WRONG, ROOT / "python" / "ferrax" / "_core.pyi")
    assert {k: v for k, v in found.items() if k[0] != WRONG} == {}
    assert len(wrong_lines()) > 25 and {k for k in found if k[0] == WRONG} == wrong_lines()


def test_pyright(tmp_path):
    found = pyright(tmp_path, *RIGHT, WRONG)
    assert {k: v for k, v in found.items() if k[0] != WRONG} == {}
    assert {k for k in found if k[0] == WRONG} == wrong_lines()


ADOPTED = """
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.experimental import sparse
from jax.scipy.linalg import expm
from jax.scipy.stats import norm
from jax.typing import ArrayLike

def f(x: Array, s: ArrayLike) -> Array:
    return norm.logpdf(jnp.sin(x) * s) + jax.numpy.cos(x) + lax.exp(x) + random.normal(random.key(0), x.shape)

reveal_type(jax.jit(f)(jnp.ones(3), 2.0))
reveal_type(sparse.BCOO.fromdense(jnp.eye(3)).nse)
reveal_type(jax.__version__)
reveal_type(expm(jnp.eye(2)))
jnp.sinn(1)
jax.jit(f)(1)
"""


def test_an_adopted_jax_has_the_types(tmp_path):
    (tmp_path / "site").mkdir()
    assert output_of("-c", "import sys; from ferrax.compat._distributions import adopt; adopt(sys.argv[1])", tmp_path / "site") == ""
    program = tmp_path / "program.py"
    program.write_text(ADOPTED)
    paths = f"{tmp_path / 'site'}{os.pathsep}{ROOT / 'python'}"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", "--follow-imports=silent", program],
        env=os.environ | {"MYPYPATH": paths, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=500,
    )
    found = re.findall(r"program\.py:(\d+): (\w+): (.*)", done.stdout)
    lines = ADOPTED.splitlines()
    revealed = [m.partition('"')[2].rstrip('"') for _, kind, m in found if m.startswith("Revealed")]
    assert revealed == ["ferrax._core.Array", "int", "str", "ferrax._core.Array"], done.stdout
    assert [lines[int(n) - 1] for n, kind, _ in found if kind == "error"] == ["jnp.sinn(1)", "jax.jit(f)(1)", "jax.jit(f)(1)"], done.stdout


def without_annotation(source):
    """The public functions and methods of a module that lack an annotation; `__all__`, where there is one, says which are public."""
    tree = ast.parse(source)
    lists = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__" and isinstance(n.value, ast.List)]
    listed = ast.literal_eval(lists[0]) if lists else None
    for holder in (tree, *(n for n in tree.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_"))):
        for f in holder.body:
            if not isinstance(f, ast.FunctionDef) or (f.name.startswith("_") and f.name not in ("__init__", "__call__")):
                continue
            if holder is tree and listed is not None and f.name not in listed:
                continue
            a = f.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            if f.returns is None or not all(p.annotation for p in given if p.arg not in ("self", "cls")):
                yield f.name


def test_every_public_module_has_types():
    package = ROOT / "python" / "ferrax"
    modules = {
        p.relative_to(package)
        for p in package.rglob("*.py")
        if not any(x.startswith("_") and x != "__init__" for x in p.with_suffix("").relative_to(package).parts)
    }
    modules = {m for m in modules if m.parts[0] != "compat"}
    assert {m.as_posix(): names for m in modules if (names := list(without_annotation((package / m).read_text())))} == {}


def test_annotations_agree_with_the_library(tmp_path):
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nignore_errors = True\ncache_dir = {ROOT / 'target' / 'stubtest'}\n")
    options = ["--concise", "--ignore-disjoint-bases", "--mypy-config-file", tmp_path / "mypy.ini", "--allowlist", HERE / "allowed.txt"]
    assert output_of("-m", "mypy.stubtest", "ferrax", *options) == ""


SAMPLES = """
jit numpy.sum Array.sum lax.scan tree_util.tree_map Array.at scipy.stats.norm.pdf scipy.stats.gamma.cdf scipy.stats.poisson.entropy
experimental.sparse.BCOO.fromdense experimental.sparse.BCOO.todense experimental.sparse.CSR.transpose experimental.pallas.BlockSpec
example_libraries.stax.MaxPool sharding.Mesh.shape sharding.PartitionSpec.update sharding.make_mesh dtypes.itemsize_bits
""".split()


def test_samples_are_not_any(tmp_path):
    """The other tests would pass if every annotation were Any."""
    program = tmp_path / "shown.py"
    modules = "lax tree_util scipy.stats experimental.sparse experimental.pallas example_libraries.stax dtypes"
    program.write_text("\n".join([*(f"import ferrax.{m}" for m in modules.split()), *(f"reveal_type(ferrax.{name})" for name in SAMPLES)]))
    text = output_of("-m", "mypy", "--cache-dir", ROOT / "target" / "mypy", "--follow-imports=silent", program)
    assert text.count("Revealed type is") == len(SAMPLES) and 'Revealed type is "Any"' not in text, text
