"""The API reference: a page for each public module, with every name of it and its docstring. Sphinx loads this file as an extension.

A page begins with a table of its names. Where it has many, they are in sections, which are the files that define them. Docstrings read as prose with names in backticks, Google's sections, and examples that are indented; here they become reStructuredText.
"""

import importlib
import inspect
import pathlib
import pkgutil
import re

PAGES = pathlib.Path(__file__).parent / "reference"
MANY = 40  # names of a page that is divided into sections
SECTIONS = re.compile(r"(Args|Arguments|Attributes|Keyword Args|Note|Other Parameters|Raises|Returns|Warns|Yields):$")


def public_modules():
    """Names of the modules that users import, the package first."""
    import ferrax

    found = (m.name for m in pkgutil.walk_packages(ferrax.__path__, "ferrax."))
    return ["ferrax", *sorted(name for name in found if not any(part.startswith("_") for part in name.split(".")))]


def public_names(module):
    """What a module offers, name by name: what it lists, or what it has without an underscore. Modules have pages of their own."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = ((name, getattr(module, name)) for name in sorted({*names}, key=str.lower))
    return [(name, value) for name, value in values if not inspect.ismodule(value)]


def entry(module, name, value, seen):
    """The directive for one name. A class that has been shown on another page is named and not shown again."""
    path = f"{module}.{name}"
    if inspect.isclass(value):
        theirs = not value.__module__.startswith("ferrax")
        if theirs or value in seen:
            return [f".. data:: {name}", "", f"   ``{value.__module__}.{value.__qualname__}``" if theirs else f"   :class:`{seen[value]}`", ""]
        seen[value] = path
        exception = issubclass(value, BaseException)
        return [f".. auto{'exception' if exception else 'class'}:: {path}", *([] if exception else ["   :members:"]), ""]
    routine = callable(value) and not hasattr(value, "bind") and (inspect.getdoc(value) != inspect.getdoc(type(value)))
    if routine and str(getattr(value, "__module__", "ferrax")).startswith("ferrax"):
        return [f".. autofunction:: {path}", ""]
    return [f".. data:: {name}", ""]


def section_of(value):
    """The section of a name on a long page: the file that defines it."""
    if type(value).__name__ == "Primitive":
        return "Primitives"
    module = getattr(value, "__module__", None) or ""
    stem = module.rpartition(".")[2].strip("_")
    return stem.replace("_", " ").capitalize() if callable(value) and module.startswith("ferrax.") and stem else "Types and constants"


def sections(names):
    """Names and values by section, the general ones last; one without a title where there are few."""
    if len(names) < MANY:
        return {None: names}
    out = {}
    for name, value in names:
        out.setdefault(section_of(value), []).append((name, value))
    return dict(sorted(out.items(), key=lambda item: (item[0] in ("Types and constants", "Primitives"), item[0])))


def summary(module, names):
    """A table of names, each with the first sentence of its docstring; nothing where no name has one."""
    rows = []
    for name, value in names:
        doc = inspect.getdoc(value) if callable(value) and not hasattr(value, "bind") else None
        first = re.split(r"(?<=[.:])\s|\n\n", doc or "", maxsplit=1)[0].replace("\n", " ").rstrip(":")
        kind = "class" if inspect.isclass(value) else "func"
        if first and str(getattr(value, "__module__", "")).startswith("ferrax"):
            rows += [f"   * - :{kind}:`~{module}.{name}`", f"     - {inline(first)}"]
    return [".. list-table::", "   :widths: 30 70", "", *rows, ""] if rows else []


def write_pages(app):
    """Writes reference/*.rst, those that changed."""
    PAGES.mkdir(exist_ok=True)
    pages, seen = {}, {}
    for name in public_modules():
        module = importlib.import_module(name)
        doc = marked_up((inspect.getdoc(module) or "").splitlines())
        page = [name, "=" * len(name), "", f".. module:: {name}", "", *doc, ""]
        for title, names in sections(public_names(module)).items():
            page += [title, "-" * len(title), ""] if title else []
            page += summary(name, names)
            page += [line for n, value in names for line in entry(name, n, value, seen)]
        pages[f"{name}.rst"] = "\n".join(page)
    listing = "\n".join(f"   {name.removesuffix('.rst')}" for name in pages)
    intro = "Every public module, and every name of it with its docstring. The examples in docstrings are run by the tests."
    pages["index.rst"] = f"API reference\n=============\n\n{intro}\n\n.. toctree::\n   :maxdepth: 1\n\n{listing}\n"
    for old in PAGES.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = PAGES / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def inline(text):
    """A paragraph: what stands in backticks becomes literal, everything else is itself."""
    plain = lambda part: re.sub(r"([*|\\]|_(?!\w))", r"\\\1", part)
    parts = re.split(r"`+", text)
    if len(parts) % 2 == 0:
        return plain(text.replace("`", "'"))
    out = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            out += plain(part)
        elif part.strip():
            glue = "\\ " if out and (out[-1].isalnum() or out[-1] in "'") else ""
            after = parts[i + 1][:1]
            out += f"{glue}``{part.strip()}``" + ("\\ " if after.isalnum() or after == "(" else "")
    return out


def depth(line):
    return len(line) - len(line.lstrip())


def blocks(lines):
    """Runs of lines between empty ones."""
    block = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield block
            block = []


def marked_up(lines):
    """A docstring as reStructuredText."""
    out, section = [], False
    for block in blocks(lines):
        if SECTIONS.match(block[0]):
            section = True
            out += [block[0], *section_items(block[1:]), ""]
        elif block[0].startswith(">>>"):
            out += [*block, ""]
        elif depth(block[0]) == 0 and block[0].rstrip(":") in ("Example", "Examples") and len(block) > 1:
            out += ["**Example**", "", *code(block[1:])]
        elif depth(block[0]) == 0:
            section = False
            # What is indented beneath a paragraph goes on with it.
            out += [*inline("\n".join(line.strip() for line in block)).split("\n"), ""]
        elif section:
            out += [*section_items(block), ""]
        else:
            out += code(block)
    return out


def code(block):
    start = min(map(depth, block))
    lines = [line[start:] for line in block]
    session = lines[0].startswith(">>>")
    language = "pycon" if session else "python" if parses("\n".join(lines)) else "text"
    return [f".. code-block:: {language}", "", *("   " + line for line in lines), ""]


def parses(text):
    try:
        compile(text, "docstring", "exec", flags=0x400)
    except SyntaxError:
        return False
    return True


def section_items(block):
    """Items of a section, each with the lines that go on with it, in one line each."""
    if not block:
        return []
    start, items = depth(block[0]), []
    for line in block:
        if depth(line) <= start or not items:
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    return ["  " + inline(item) for item in items]


def on_docstring(app, what, name, obj, options, lines):
    lines[:] = marked_up([line for line in lines])


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", on_docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True}
