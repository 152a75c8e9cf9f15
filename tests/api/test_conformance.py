"""The conformance suite (conformance.py): every public function has its line, its parameters and its row, and no difference from JAX lacks a reason.

With JAX beside, a fifth of the cases runs; `HYPOTHESIS_PROFILE=long` runs them all.
"""

import functools
import importlib
import inspect
import json
import os
import pathlib
import subprocess
import sys
import types

import conformance
import conformance_settings
import pytest
from conformance_reasons import REASONS

pytestmark = pytest.mark.ours
SCRIPT = pathlib.Path(conformance.__file__)
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
MODULES = sorted({line.module for table in conformance.TABLES for line in conformance.read(table)})
# Parameters that no form gives, and why.
UNTRIED = {
    "jax.numpy.einsum": {"_dot_general"},  # another product, for quantisation
    "jax.numpy.ufunc": {"name", "nargs", "call", "reductions", "primitive"},  # made by the library
    "jax.numpy.set_printoptions": {
        *"threshold edgeitems linewidth suppress nanstr infstr formatter sign floatmode legacy override_repr".split()
    },  # numpy's own
    "jax.lax.cond": {"linear"},  # of earlier versions
    "jax.lax.all_gather": {"to"},  # of arrays in parts
    **{f"jax.lax.{n}": {"axis_index_groups"} for n in ("all_to_all", "psum_scatter", "pswapaxes")},  # JAX has none under `vmap`
    "jax.lax.linalg.eig": {"implementation", "use_magma"},  # choose nothing
    "jax.lax.linalg.eigh": {"implementation"},
    "jax.scipy.linalg.eigh_tridiagonal": {"key"},
    "jax.scipy.spatial.transform.Rotation": {"quat"},  # made by its class methods
    "jax.scipy.spatial.transform.Slerp": {"times", "timedelta", "rotations", "rotvecs"},
    "jax.scipy.stats.multivariate_normal.logpdf": {"allow_singular"},  # refused with True on both
    "jax.random.key": {"dtype"},
    "jax.random.wrap_key_data": {"dtype"},
    "jax.image.ResizeMethod": {"value", "names", "module", "qualname", "type", "start", "boundary"},  # an enumeration's
}


@pytest.fixture(scope="module")
def lines():
    """{function: its line}"""
    return {f"{line.module}.{name}": line for table in conformance.TABLES for line, name in conformance.functions(table)}


def test_a_function_has_one_line(lines):
    names = [f"{line.module}.{name}" for table in conformance.TABLES for line, name in conformance.functions(table)]
    assert sorted(names) == sorted(lines)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_has_a_line(jax, lines, module):
    holder = importlib.import_module(module.replace("jax", jax.__name__, 1))
    listed = getattr(holder, "__all__", None)
    for name in listed or dir(holder):
        value = getattr(holder, name, None)
        if name.startswith("_") or not callable(value) or isinstance(value, types.ModuleType) or f"{module}.{name}" in MODULES:
            continue
        if isinstance(value, type) and (issubclass(value, BaseException) or value.__module__ == "typing"):
            continue
        if name.endswith("_p") and hasattr(value, "bind"):
            continue
        if listed is None and module.startswith("jax.scipy.") and value.__module__ != holder.__name__:
            continue  # what the module itself uses
        assert f"{module}.{name}" in lines


@pytest.mark.parametrize("function", [f"{line.module}.{name}" for t in conformance.TABLES for line, name in conformance.functions(t)])
def test_each_function_exists_and_accepts_its_parameters(jax, lines, function):
    line, name = lines[function], function.rpartition(".")[2]
    if line.reason:
        return
    value = conformance.function_of(jax, function)
    _, missing = conformance.tried(jax, line, name)
    assert set(missing) == UNTRIED.get(function, set()), inspect.signature(value)
    cases = [str(case) for case in conformance.cases_of(line, name)]
    assert len(cases) >= 20 and cases == [str(case) for case in conformance.cases_of(line, name)]


@pytest.mark.parametrize("table", conformance.TABLES)
def test_cases_are_calls(jax, table):
    """A form that no operands fit would compare nothing but errors."""
    for line, name in conformance.functions(table):
        if not line.reason:
            forms = conformance.cases_of(line, name)[:: max(1, len(line.forms))][:4]
            results = [conformance.outcome(jax, case) for case in forms]
            assert any(not isinstance(s, conformance.Wrong) for s in results), f"{forms[0]}: {results[0]}"
    jax.config.update("jax_enable_x64", False)


def test_the_page_is_up_to_date(jax):
    text = conformance.page(jax, conformance.written())
    if os.environ.get("FERRAX_BLESS"):
        conformance.PAGE.write_text(text)
    assert conformance.PAGE.read_text() == text, "docs/conformance.md: run `FERRAX_BLESS=1 pytest tests/api/test_conformance.py`"


def test_the_page_gives_no_difference_without_a_reason(jax):
    reasons = {reason for _, _, reason in REASONS}
    for function, (differ, why) in conformance.written().items():
        assert bool(differ) == bool(why) and "no reason" not in why, function
        assert not why or any(reason in why for reason in reasons), function


@functools.cache
def compared(table):
    """[(case, what differs)] of a table, in a process of its own: JAX keeps what it compiles."""
    command = [sys.executable, str(SCRIPT), table, "--json", "--step", "1" if LONG else "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200, check=True)
    found = json.loads(done.stdout)
    assert found, table
    return [(case, what) for _, _, differ in found.values() for case, what in differ]


@pytest.mark.oracle
@pytest.mark.parametrize("table", conformance.TABLES)
def test_every_difference_has_its_reason(oracle, table):
    new = [f"{case}\n    {what}" for case, what in compared(table) if not conformance.why(case, what)]
    assert not new, "\n".join(new)


@pytest.mark.oracle
@pytest.mark.skipif(not LONG, reason="a fifth of the cases need not have every difference")
def test_no_reason_is_stale(oracle):
    needed = {conformance.why(case, what) for table in conformance.TABLES for case, what in compared(table)}
    assert not {reason for _, _, reason in REASONS} - needed


@pytest.fixture(scope="module")
def sample():
    return list(conformance_settings.cases(conformance.TABLES, step=conformance_settings.STEP))


@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.nightly)], ids=["a fourth", "all"])
@pytest.mark.parametrize("mode", conformance_settings.MODES)
def test_a_setting_refuses_what_jax_refuses(jax, sample, mode, part):
    """A sample of the cases under each setting: those refused are the ones that JAX refuses (golden/settings.txt). A fourth of it is another one for each."""
    found, ran = set(), set()
    for function, number, case in sample[list(conformance_settings.MODES).index(mode) % part :: part]:
        ran.add(f"{function} {number}")
        what = conformance_settings.refused(jax, case, mode)
        if what and what.startswith("raises"):
            found.add(f"{function} {number}")
    jax.config.update("jax_enable_x64", False)
    golden = conformance_settings.golden()[mode]
    assert found == golden & ran and (part > 1 or golden <= ran)
