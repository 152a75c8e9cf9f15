"""Every block of code in the documents runs, page by page: Python from top to bottom, sessions (`>>>`) with what they print.

`FERRAX_BLESS=1` writes into the sessions what they print now; read the diff.
"""

import ast
import contextlib
import doctest
import importlib.util
import io
import os
import pathlib
import platform
import re
import shutil
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LIBRARIES = ("flax", "optax", "equinox", "diffrax", "numpyro", "torch")


def wanted(code):
    return [name for name in LIBRARIES if re.search(rf"^(>>> )?(import|from) {name}\b", code, re.M)]


@pytest.mark.ours
@pytest.mark.usefixtures("whole_tracebacks")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_code_runs(page, tmp_path, monkeypatch, jax, jnp):
    if page.stem == "plans" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the plan that is shown is of an x86-64 machine")
    monkeypatch.chdir(tmp_path)
    text, names, output = page.read_text(), {"__name__": "page"}, []
    blocks = [m for m in BLOCK.finditer(text) if m[1] in ("python", "pycon")]
    lacking = {name for m in blocks for name in wanted(m[2]) if importlib.util.find_spec(name) is None}
    lacking |= {"a C compiler" for m in blocks if '"cc"' in m[2] and shutil.which("cc") is None}
    if lacking:
        pytest.skip(f"needs {', '.join(sorted(lacking))}")
    written = text
    for m in blocks:
        line = text[: m.start()].count("\n") + 1
        if m[1] == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * line + m[2], page.name, "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(m[2], names, page.name, str(page), line)
        if os.environ.get("FERRAX_BLESS"):
            written = written.replace(m[2], blessed(session))
        else:
            doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(session, out=output.append, clear_globs=False)
        names = session.globs
    assert not output, "".join(output)
    if written != text:
        page.write_text(written)


def blessed(session):
    """The session's text with what it prints now."""
    out = []
    for example in session.examples:
        first, *more = example.source.rstrip("\n").split("\n")
        out += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(example.source, "session", "single"), session.globs)
            except Exception as e:
                summary = f"{type(e).__module__}.{type(e).__qualname__}: {e}".removeprefix("builtins.").splitlines()[0]
                printed = io.StringIO(f"Traceback (most recent call last):\n    ...\n{summary.rstrip('.')}...\n")
        out += ["<BLANKLINE>" if not line.strip() else line for line in printed.getvalue().rstrip("\n").split("\n")] if printed.getvalue() else []
    return "\n".join(out) + "\n"


@pytest.mark.ours
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_rust_in_a_program(page):
    """Rust in the documents is cut out of the examples and documentation of the crate, which its own tests compile and run."""
    normal = lambda code: re.sub(r"\s+", " ", re.sub(r"^\s*//[/!] ?", "", code, flags=re.M)).strip()
    sources = [normal(p.read_text()) for folder in ("examples", "src") for p in (ROOT / "crates/ferrax" / folder).glob("*.rs")]
    for m in BLOCK.finditer(page.read_text()):
        if m[1] == "rust":
            assert any(normal(m[2]) in source for source in sources), m[2]


@pytest.mark.ours
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text()))):
        if not target.startswith(("http", "#", "reference/")):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: {target}"


@pytest.mark.ours
def test_every_kind_of_error_has_a_paragraph(jax):
    text = (ROOT / "docs/errors.md").read_text()
    missing = [name for name in jax.errors.__all__ if f"## {name}\n" not in text]
    assert not missing, missing


@pytest.mark.ours
def test_every_example_has_a_page_and_a_picture():
    gallery = (ROOT / "docs/gallery.md").read_text()
    for p in (ROOT / "examples").glob("*.py"):
        if p.stem != "gallery":
            page = f"gallery/{p.stem.replace('_', '-')}"
            title = ast.get_docstring(ast.parse(p.read_text())).split("\n")[0].removesuffix(".")
            assert (ROOT / "docs" / f"{page}.md").read_text() == f"# {title}\n\n```{{example}} {p.stem}\n```\n"
            assert f"| [![{title}](pictures/{p.stem}.png)]({page}.md) | [{title}]({page}.md) |" in gallery
            assert re.search(f"^{page}$", gallery, re.M)
            assert (ROOT / f"docs/pictures/{p.stem}.png").exists()


@pytest.mark.ours
def test_every_page_is_in_the_contents():
    index = (ROOT / "docs/index.md").read_text()
    listed = set(re.findall(r"^([\w-]+)$", index, re.M))
    assert {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"} <= listed


@pytest.mark.ours
def test_versions_of_python_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    support = (ROOT / "docs/support.md").read_text()
    for classifier in project["classifiers"]:
        if re.search(r":: 3\.\d+$", classifier):
            assert classifier.rsplit(" ", 1)[1] in support


@pytest.mark.ours
def test_figures_are_those_of_the_readme():
    """One run of the bench stands in both places."""
    rows = re.findall(r"^\| (?:eager|jitted|tracing|first call|import|wheel).*$", (ROOT / "README.md").read_text(), re.M)
    assert rows and all(row in (ROOT / "docs/performance.md").read_text() for row in rows)
