"""docs/rules.md is up to date, and its table has no hole: every primitive obeys every transform at every dtype it takes, or says why not.

Before a change lands, one dtype of each class runs for a primitive: which one changes from primitive to primitive. By night all of them run.
"""

import os

import pytest
import rules

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module", params=["a dtype of each class", pytest.param("every dtype", marks=pytest.mark.nightly)])
def table(request, jax):
    return rules.matrix(jax, every_dtype=request.param == "every dtype")


def test_the_table_has_no_hole(table):
    assert not rules.holes(table), "\n".join(rules.holes(table))


def test_the_page_is_up_to_date(table):
    text = rules.page(table)
    if os.environ.get("FERRAX_BLESS"):
        rules.PAGE.write_text(text)
    assert rules.PAGE.read_text() == text, "docs/rules.md: run `python tests/rules.py`"


def test_every_reason_and_convention_is_needed(table):
    seen = {name: {what for kind in kinds.values() if kind for what in kind.values()} for name, kinds in table.items()}
    refused = {name for name, what in seen.items() if any(w not in (rules.HOLDS, rules.NONE) and not w.startswith("wrong") for w in what)}
    assert refused == set(rules.REASONS)
    # these say what the derivative is; for two of them it is what their examples are compared with
    wrong = {name for name, what in seen.items() if any(w.startswith("wrong") for w in what)}
    assert wrong <= set(rules.CONVENTIONS)


def test_jax_has_no_derivative_that_is_missing_here(table, oracle):
    """No derivative is missing that JAX has."""
    with rules.wide_types(oracle):
        examples = rules.table_of_examples(oracle)
        for name in rules.REASONS:
            refused = [d for d in ("float64", "complex128") if table[name][d] and table[name][d]["jvp"] not in (rules.HOLDS, rules.NONE)]
            assert refused, name
            for dtype in refused:
                assert rules.outcome(rules.Case(oracle, examples[name], dtype), "jvp") != rules.HOLDS, (name, dtype)
