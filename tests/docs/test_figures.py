"""Figures that several pages print are those of docs/figures.json: the wheel's size, the newest full run of the benchmarks, the counts of names.

A new figure is written there first; this test then lists the pages that print an older one.
"""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FIGURES = json.loads((ROOT / "docs" / "figures.json").read_text())
PAGES = {str(p.relative_to(ROOT)): p.read_text() for p in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))}

# What a page may say, with the figure in brackets, and the figure that it has to be.
PRINTED = [
    (r"\| wheel; JAX: installed \| ([\d.]+ MB)", "wheel"),
    (r"[Aa] wheel of ([\w.]+ \w+)", "wheel"),
    (r"<dt>([\d.]+ MB)</dt>", "wheel"),
    (r"<dt>([\d,]+)</dt><dd>of the [\d,]+ public names", "public names"),
    (r"([\d,]+) of the [\d,]+ public names", "public names"),
    (r"of the ([\d,]+) public names", "public names of JAX"),
    (r"([\d,]+) rows of `(?:cargo xtask )?bench steady`", "steady rows"),
    (r"in the geometric mean over ([\d,]+) programs", "steady rows"),
    (r"takes ([\d.]+) times as long, in the geometric mean", "steady mean"),
    (r"geometric mean of JAX's time over Ferrax's is ([\d.]+)", "steady mean"),
    (r"geometric mean of ([\d.]+)", "steady mean"),
    (r"([\d,]+) rows were below \.9", "steady rows below .9"),
    (r"in ([\d,]+) rows\s+it is below \.9", "steady rows below .9"),
    (r"([\d,]+) of them are slower here by a tenth", "steady rows below .9"),
    (r"earlier run,? of\s+([\d,]+) of these", "rows in groups"),
    (r"\| all \| ([\d,]+) \| [\d.]+ \|", "rows in groups"),
    (r"\| all \| [\d,]+ \| ([\d.]+) \|", "mean of groups"),
]


@pytest.mark.parametrize(("pattern", "figure"), PRINTED, ids=[pattern for pattern, _ in PRINTED])
def test_pages_print_the_newest_figures(pattern, figure):
    found = {page: set(re.findall(pattern, text)) for page, text in PAGES.items() if page != "docs/libraries.md"}
    found = {page: seen for page, seen in found.items() if seen}
    assert found, "no page prints it any more"
    assert found == {page: {FIGURES[figure]} for page in found}


def rows(page):
    """The rows of the table that `bench dispatch` writes."""
    return re.findall(r"^\| (?:eager|jitted|tracing|first call[, ]|import|wheel).*\|$", PAGES[page], re.M)


def test_the_table_of_calls_is_the_same_on_each_page():
    assert len(rows("README.md")) > 8
    assert rows("README.md") == rows("docs/performance.md")
