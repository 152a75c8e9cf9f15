"""The `chart` directive: bars drawn from a table that a benchmark wrote into one of these pages.

    :::{chart} performance.md#cost-of-a-call
    :of: JAX
    :over: Ferrax
    eager x + y, n = 10 = adding two small arrays
    import, over numpy's own = import
    :::

Its content names rows and what to call them; without any all rows are drawn but `all`. A bar is the quotient of two columns, or a column of numbers, on a logarithmic scale that begins at 1. Colours are the theme's, so that a chart is light or dark
as its page is. What the chart shows stands in the table that it was drawn from, to which its caption leads.
"""

import html
import math
import pathlib
import re

from docutils import nodes
from docutils.parsers.rst import Directive, directives

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def number(text):
    """A cell's number, in seconds or bytes where it has a unit. None where there is none."""
    found = re.match(r"\s*([\d,.]*\d)\s*(\w+)?", text)
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1.0) if found else None


def table(text, heading):
    """The rows of the first table below a heading: (names of columns, {first cell: cells})."""
    lines = text.split("\n")
    slug = lambda line: re.sub(r"[^a-z0-9]+", "-", line.strip("# ").lower()).strip("-")
    start = next(i for i, line in enumerate(lines) if line.startswith("#") and slug(line) == heading)
    first = next(i for i in range(start, len(lines)) if lines[i].startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([c.replace("\\|", "|").strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows[0], {row[0]: row[1:] for row in rows[2:]}


def svg(bars, unit):
    """Bars as a picture: [(label, value)], longest scale that holds them."""
    top = max(v for _, v in bars)
    ticks = [t for k in range(0, math.ceil(math.log10(top)) + 1) for t in (10**k, 3 * 10**k) if t <= top * 1.05]
    left, width, row = 270, 380, 26
    length = lambda v: max(width * math.log(max(v, 1.0)) / math.log(max(top, 10.0)), 1.5)
    height = row * len(bars) + 26
    out = [f'<svg class="bars" viewBox="0 0 {left + width + 70} {height}" role="img" xmlns="http://www.w3.org/2000/svg">']
    for t in ticks:
        x = left + length(t) if t > 1 else left
        out.append(f'<line x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{height - 20}"/><text class="tick" x="{x:.1f}" y="{height - 6}">{t:g}{unit}</text>')
    for i, (label, v) in enumerate(bars):
        y = 6 + i * row
        out.append(f'<text class="name" x="{left - 8}" y="{y + 15}">{html.escape(label)}</text>')
        out.append(f'<rect x="{left}" y="{y + 3}" width="{length(v):.1f}" height="{row - 9}" rx="2"/>')
        shown = f"{v:.0f}" if v >= 10 else f"{v:.1f}"
        out.append(f'<text class="value" x="{left + length(v) + 6:.1f}" y="{y + 15}">{shown}{unit}</text>')
    return "".join([*out, "</svg>"])


class Chart(Directive):
    """Draws a table of another page."""

    required_arguments, has_content = 1, True
    option_spec = {"of": directives.unchanged_required, "over": directives.unchanged, "sort": directives.flag}  # noqa: RUF012

    def run(self):
        """The picture, with a description for those who cannot see it."""
        page, heading = self.arguments[0].split("#")
        path = pathlib.Path(__file__).parent / page
        self.state.document.settings.record_dependencies.add(str(path))
        names, rows = table(path.read_text(), heading)
        column = lambda name: names.index(name) - 1
        value = lambda cells, name: number(cells[column(name)])
        over = self.options.get("over")
        chosen = [line.rsplit(" = ", 1) for line in self.content if line.strip()] or [[name, name] for name in rows if name != "all"]
        bars = [(label, value(rows[name], self.options["of"]) / (value(rows[name], over) if over else 1.0)) for name, label in chosen]
        if "sort" in self.options:
            bars.sort(key=lambda bar: -bar[1])
        text = "; ".join(f"{label}: {v:.1f} times" for label, v in bars)
        picture = svg(bars, "x").replace("<svg ", f'<svg aria-label="{html.escape(text)}" ', 1)
        return [nodes.raw("", f'<figure class="chart">{picture}</figure>', format="html")]


def setup(app):
    """Registers the directive and its colours."""
    app.add_directive("chart", Chart)
    app.add_css_file("site.css")
    return {"version": "1", "parallel_read_safe": True}
