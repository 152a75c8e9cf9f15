"""How programs of libraries are recorded and compared (`tests/libraries/outcomes.py`), and what docs/libraries.md says of them."""

import importlib.util
import json
import pathlib
import re
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parents[1]


def loaded(name):
    """A file of tests/libraries as a module."""
    spec = importlib.util.spec_from_file_location(name, HERE / "libraries" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def outcomes():
    return loaded("outcomes")


@pytest.fixture
def page(outcomes, monkeypatch):
    monkeypatch.setitem(sys.modules, "outcomes", outcomes)
    return loaded("page")


@pytest.fixture
def programs(outcomes, tmp_path, monkeypatch):
    """`programs(define)`: the Programs of a function of t, whose records are in a folder of the test."""
    monkeypatch.setattr(outcomes, "VALUES", tmp_path)
    return outcomes.Programs


@pytest.fixture
def checked(outcomes, programs, monkeypatch):
    """`checked(recorded, now)`: records one program and checks the other against it."""

    def run(recorded, now, **options):
        monkeypatch.setattr(outcomes, "ON_JAX", True)
        programs(lambda t: t("one", recorded, **options)).check("one")
        monkeypatch.setattr(outcomes, "ON_JAX", False)
        programs(lambda t: t("one", now, **options)).check("one")

    return run


def divided():
    return 1 // 0


def test_an_error_that_is_not_announced_fails_the_recording(outcomes, programs, monkeypatch):
    monkeypatch.setattr(outcomes, "ON_JAX", True)
    mistaken = programs(lambda t: t("one", lambda: np.no_such_function(3)))
    with pytest.raises(AttributeError, match="no_such_function"):
        mistaken.check("one")
    assert not mistaken.record.exists()


def test_an_error_that_is_not_announced_fails_the_comparison(checked):
    with pytest.raises(ZeroDivisionError):
        checked(lambda: 1, divided)


def test_an_announced_error_is_recorded(outcomes, checked, tmp_path):
    checked(divided, divided, raises=ZeroDivisionError, why="nothing is divided by 0")
    (record,) = tmp_path.iterdir()
    assert json.loads(record.read_text()) == {"one": {"raises": "ZeroDivisionError"}}


@pytest.mark.parametrize("now", [lambda: 1, lambda: {}["key"]], ids=["a result", "another error"])
def test_another_outcome_than_the_announced_error_fails(checked, now):
    with pytest.raises((pytest.fail.Exception, KeyError)):
        checked(divided, now, raises="ZeroDivisionError", why="nothing is divided by 0")


@pytest.mark.parametrize("options", [{"raises": ValueError}, {"why": "it is so"}])
def test_an_announced_error_has_a_reason(programs, options):
    with pytest.raises(ValueError, match=r"raises=.*why="):
        programs(lambda t: t("one", divided, **options)).check("one")


@pytest.mark.parametrize("nothing", [lambda: None, list, lambda: {"a": None}, object, lambda: [1, print], lambda: "<object at 0x7f27b799120>"])
def test_a_program_returns_comparable_results(outcomes, programs, monkeypatch, nothing):
    monkeypatch.setattr(outcomes, "ON_JAX", True)
    with pytest.raises(outcomes.NothingToCompareError):
        programs(lambda t: t("one", nothing)).check("one")


LARGE = np.sin(np.arange(1000, dtype=np.float32))
WHOLE = np.arange(1000)


def changed(x, i, by):
    x = x.copy()
    x[i] += by
    return x


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (LARGE[:5], changed(LARGE[:5], 4, 1e-3)),
        (LARGE[:50], changed(LARGE[:50], 40, 1e-3)),
        (LARGE, changed(LARGE, 999, 0.5)),
        (LARGE, LARGE + np.float32(1e-3)),
        (LARGE, changed(LARGE, 17, np.nan)),
        (WHOLE, changed(WHOLE, 999, 1)),
        (LARGE.astype(np.float64), LARGE.astype(np.float64) * (1 + 1e-9)),
        (LARGE.astype(np.complex64), LARGE + np.complex64(1e-3j)),
        (LARGE[:4], LARGE[:4].astype(np.float64)),
        (LARGE[:4], LARGE[:4].reshape(2, 2)),
        ([LARGE[:4]], [LARGE[:4], 1]),
        (3, 4),
        (3, 3.0),
        (True, 1),
        (1.0, 1.001),
        ("text", "texts"),
    ],
)
def test_wrong_results_are_noticed(checked, recorded, now):
    with pytest.raises(AssertionError):
        checked(lambda: recorded, lambda: now)


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (LARGE, LARGE * np.float32(1 + 1e-6)),
        (LARGE[:7], LARGE[:7] * np.float32(1 + 1e-6)),
        (LARGE.astype(np.float16)[:9], (LARGE * 1.001).astype(np.float16)[:9]),
        (np.array([np.nan, np.inf, -np.inf]), np.array([np.nan, np.inf, -np.inf])),
        (LARGE.astype(np.float64), LARGE.astype(np.float64) * (1 + 1e-13)),
        ({"a": 1.0, "b": (2, "x")}, {"a": 1.0 + 1e-7, "b": (2, "x")}),
    ],
)
def test_rounding_is_accepted(checked, recorded, now):
    checked(lambda: recorded, lambda: now)


def test_a_tolerance_can_be_given(checked):
    checked(lambda: 1.0, lambda: 1.001, within=1e-2)


def test_the_dtype_decides_the_tolerance(outcomes):
    relative = [outcomes.tolerance_of(f"{name}[3]")[0] for name in ("float64", "float32", "float16", "bfloat16")]
    assert relative == sorted(relative)
    assert 1e-11 < relative[0] < 1e-10
    assert 1e-5 < relative[1] < 1e-4


def test_programs_run_when_they_are_checked(outcomes, programs, monkeypatch):
    ran = []

    def define(t):
        t("first", lambda: ran.append("first") or 1)
        t("second", lambda: ran.append("second") or 2)

    both = programs(define)
    monkeypatch.setattr(outcomes, "ON_JAX", True)
    assert both.cases() == ["first", "second"]
    assert ran == []
    both.check("second")
    assert ran == ["second"]


def test_programs_do_not_see_each_other(outcomes, programs, monkeypatch):
    def define(t):
        for i in range(3):
            t(f"draw {i}", lambda: (i, np.random.rand(2)))

    monkeypatch.setattr(outcomes, "ON_JAX", True)
    some = programs(define)
    for name in ("draw 2", "draw 0", "draw 1"):
        some.check(name)
    draws = [some.stored[f"draw {i}"] for i in range(3)]
    assert [d[0] for d in draws] == [["int", 0], ["int", 1], ["int", 2]]
    assert draws[0][1] == draws[1][1] == draws[2][1]


def test_names_are_unique(programs):
    def define(t):
        t("one", lambda: 1)
        t("one", lambda: 2)

    with pytest.raises(ValueError, match="two programs"):
        programs(define).names  # noqa: B018


def test_a_program_that_is_not_recorded_is_reported(outcomes, programs, monkeypatch):
    monkeypatch.setattr(outcomes, "ON_JAX", True)
    programs(lambda t: t("one", lambda: 1)).check("one")
    monkeypatch.setattr(outcomes, "ON_JAX", False)
    both = programs(lambda t: (t("one", lambda: 1), t("two", lambda: 2)))
    assert [case.values[0] for case in both.cases()] == ["one", "recorded"]
    with pytest.raises(AssertionError, match="record the programs"):
        both.check("recorded")


# ---- the page


def test_recorded_programs_compute(outcomes):
    for record in sorted((HERE / "libraries" / "values").glob("*.json")):
        for name, seen in json.loads(record.read_text()).items():
            assert (set(seen) == {"raises"}) if isinstance(seen, dict) else seen, f"{record.stem}: {name}"


def test_the_front_page_counts_the_tested_libraries(page):
    named, others = re.search(r"\(libraries\.md\) \(([\w\s,]+) and (\d+) others", (page.PAGE.parent / "index.md").read_text()).groups()
    distributions = {name for *_, names, _ in page.LIBRARIES for name in names.split()}
    assert {name.strip().lower() for name in named.split(",")} <= distributions
    assert len(named.split(",")) + int(others) == len(distributions)


def test_the_page_counts_the_recorded_programs(page):
    text = page.PAGE.read_text()
    assert page.with_table(text) == text, "run tests/libraries/page.py"
    assert sorted(record for *_, record in page.LIBRARIES) == sorted(p.stem for p in (HERE / "libraries" / "values").glob("*.json"))
