"""Programs as graphs: Graphviz text, and pictures that need no Graphviz.

    print(graph.dot(jax.make_jaxpr(f)(x)))                 # for `dot -Tsvg`
    open("f.svg", "w").write(graph.svg(jax.make_jaxpr(f)(x)))

Each equation is a node, each value that one makes for another an edge with its type. An equation
that holds programs (a loop, a branch, a call) is drawn as a box around them in Graphviz text, and
names them in a picture.

Invariant: the program is drawn unchanged; nothing is simplified.
"""

from __future__ import annotations

import html
import itertools
from typing import Any

from ._core import ClosedJaxpr, Jaxpr, Literal

__all__ = ["dot", "svg"]


def _open(program):
    """The open program of an object: a program, a result of `make_jaxpr`, or a traced function.

    Raises TypeError for anything else.
    """
    while not isinstance(program, Jaxpr):
        inner = getattr(program, "jaxpr", None)
        if inner is None or inner is program:
            raise TypeError(f"graph: expected a program, as jax.make_jaxpr(f)(*args) gives, got {type(program)}")
        program = inner
    return program


def _inner(eqn):
    """The inner programs of an equation, with the names of their parameters."""
    for name, value in eqn.params.items():
        for k, p in _programs(value):
            yield (name if k is None else f"{name}[{k}]"), _open(p)


def _short(aval):
    return aval.str_short(short_dtypes=True)


def _title(eqn):
    """The label of a node: the primitive, or the name of the called function."""
    name = eqn.params.get("name")
    return f"{eqn.primitive.name} {name}" if isinstance(name, str) else eqn.primitive.name


def _tooltip(eqn):
    """The source line of an equation, and its plain parameters."""
    plain = [f"{k}={v}" for k, v in eqn.params.items() if not _programs(v)]
    return "\n".join([str(eqn.source_info or ""), *plain]).strip()


def _programs(value):
    """The programs inside a parameter, each with its position; None if the parameter itself is the
    program.
    """
    each = enumerate(value) if isinstance(value, (tuple, list)) else [(None, value)]
    return [(k, p) for k, p in each if isinstance(p, (ClosedJaxpr, Jaxpr))]


# ---- Graphviz


def dot(program: Any) -> str:
    """A program as Graphviz text.

    Args:
        program: ClosedJaxpr, Jaxpr, or an object with a `.jaxpr`.

    Returns:
        str.

    Raises:
        TypeError: `program` is not a program.
    """
    lines = ["digraph program {", '  node [shape=box, fontname="monospace", fontsize=10];', '  edge [fontname="monospace", fontsize=8];']
    _dot(_open(program), lines, itertools.count(), "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _dot(jaxpr, lines, numbers, indent):
    """Adds the nodes and edges of one program; gives the first and the last of its nodes."""
    made, nodes = {}, []

    def node(label, **attributes):
        name = f"n{next(numbers)}"
        rest = "".join(f", {k}={_quoted(v)}" for k, v in attributes.items() if v)
        lines.append(f"{indent}{name} [label={_quoted(label)}{rest}];")
        nodes.append(name)
        return name

    def edges(to, values):
        for v in values:
            if isinstance(v, Literal):
                continue
            lines.append(f"{indent}{made[v]} -> {to} [label={_quoted(_short(v.aval))}];")

    for what, variables in (("in", jaxpr.invars), ("const", jaxpr.constvars)):
        for k, v in enumerate(variables):
            made[v] = node(f"{what} {k}\n{_short(v.aval)}", shape="ellipse")
    for eqn in jaxpr.eqns:
        literals = [str(v.val) for v in eqn.invars if isinstance(v, Literal)]
        name = node(" ".join([_title(eqn), *literals]), tooltip=_tooltip(eqn))
        edges(name, eqn.invars)
        made |= dict.fromkeys(eqn.outvars, name)
        for parameter, inner in _inner(eqn):
            lines.append(f"{indent}subgraph cluster_{next(numbers)} {{")
            lines.append(f"{indent}  label={_quoted(parameter)}; fontname=monospace; fontsize=9; color=grey;")
            first = _dot(inner, lines, numbers, indent + "  ")
            lines.append(f"{indent}}}")
            if first:
                lines.append(f"{indent}{name} -> {first} [style=dotted, arrowhead=none];")
    for k, v in enumerate(jaxpr.outvars):
        edges(node(f"out {k}\n{v.val if isinstance(v, Literal) else _short(v.aval)}", shape="ellipse"), [v])
    return nodes[0] if nodes else None


# ---- pictures

_HIGH, _GAP, _LETTER, _BETWEEN = 26, 34, 7, 18


def svg(program: Any) -> str:
    """A program as an SVG picture: inputs on top, results at the bottom, every equation below its
    operands.

    Args:
        program: ClosedJaxpr, Jaxpr, or an object with a `.jaxpr`.

    Returns:
        str.

    Raises:
        TypeError: `program` is not a program.
    """
    labels, tips, arrows = _nodes(_open(program))
    rows = _rows(len(labels), arrows, last=[k for k, label in enumerate(labels) if label.startswith("out ")])
    widths = [max(len(label) * _LETTER + 16, 40) for label in labels]
    spans = [sum(widths[k] for k in row) + _BETWEEN * (len(row) - 1) for row in rows]
    width, height = max(spans, default=0) + 20, len(rows) * (_HIGH + _GAP) + 10
    place = {}
    for y, (row, span) in enumerate(zip(rows, spans, strict=True)):
        x = (width - span) / 2
        for k in row:
            place[k] = (x + widths[k] / 2, 10 + y * (_HIGH + _GAP))
            x += widths[k] + _BETWEEN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>',
    ]
    for a, b, kind in arrows:
        (x1, y1), (x2, y2) = place[a], place[b]
        y1 += _HIGH
        bend = (y2 - y1) / 2
        path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
        out.append(f'<path d="{path}" fill="none" stroke="#888" marker-end="url(#tip)"><title>{html.escape(kind)}</title></path>')
    for k, label in enumerate(labels):
        x, y = place[k]
        end = label.startswith(("in ", "const ", "out "))
        box = f'x="{x - widths[k] / 2:.1f}" y="{y}" width="{widths[k]}" height="{_HIGH}" rx="{_HIGH // 2 if end else 3}" fill="{"#eef4ff" if end else "#fff8e8"}" stroke="#666"'
        words = f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle" fill="#000">{html.escape(label)}</text>'
        out.append(f"<g><title>{html.escape(tips[k])}</title><rect {box}/>{words}</g>")
    return "\n".join([*out, "</svg>"]) + "\n"


def _nodes(jaxpr):
    """The labels of the nodes, their descriptions, and the arrows between them: (from, to,
    type).
    """
    labels, tips, arrows, made = [], [], [], {}

    def node(label, tip):
        labels.append(label), tips.append(tip)
        return len(labels) - 1

    for what, variables in (("in", jaxpr.invars), ("const", jaxpr.constvars)):
        for k, v in enumerate(variables):
            made[v] = node(f"{what} {k}: {_short(v.aval)}", what)
    for eqn in jaxpr.eqns:
        inner = [f"{name}: {len(p.eqns)} equations" for name, p in _inner(eqn)]
        k = node(_title(eqn) + (" …" if inner else ""), "\n".join(filter(None, [_tooltip(eqn), *inner])))
        arrows += [(made[v], k, _short(v.aval)) for v in eqn.invars if not isinstance(v, Literal)]
        made |= dict.fromkeys(eqn.outvars, k)
    for i, v in enumerate(jaxpr.outvars):
        k = node(f"out {i}: {v.val if isinstance(v, Literal) else _short(v.aval)}", "out")
        if not isinstance(v, Literal):
            arrows.append((made[v], k, _short(v.aval)))
    return labels, tips, arrows


def _rows(n, arrows, last):
    """The nodes in rows, each below all its operands; within a row, in the order of their
    operands.
    """
    needs = [[] for _ in range(n)]
    for a, b, _ in arrows:
        needs[b].append(a)
    depth = [0] * n
    for k in range(n):  # nodes follow their operands
        depth[k] = 1 + max((depth[a] for a in needs[k]), default=-1)
    bottom = max(depth, default=0)
    for k in last:
        depth[k] = bottom
    rows = [[k for k in range(n) if depth[k] == d] for d in range(bottom + 1)] if n else []
    at = {}
    for row in rows:
        row.sort(key=lambda k: sum(at[a] for a in needs[k]) / len(needs[k]) if needs[k] else 0)
        at |= {k: (i + 1) / (len(row) + 1) for i, k in enumerate(row)}
    return rows
