"""Documents that are laid out to a width (`jax._src.pretty_printer`): text, breaks, groups,
indentation, colours, annotations.

Invariant: a group's breaks are spaces if what follows, up to the next break outside, fits on the
line; else they are ends of lines. Wadler's and Lindig's layout.
"""

import enum
import functools
import html
import sys

__all__ = [
    "CAN_USE_COLOR",
    "Color",
    "Doc",
    "Intensity",
    "OutputFormat",
    "brk",
    "color",
    "concat",
    "group",
    "join",
    "keyword",
    "nest",
    "nil",
    "source_map",
    "text",
    "type_annotation",
]

CAN_USE_COLOR = bool(getattr(sys.stdout, "isatty", bool)())
Color = enum.IntEnum("Color", {name: n for n, name in zip((*range(8), 9), "BLACK RED GREEN YELLOW BLUE MAGENTA CYAN WHITE RESET".split(), strict=True)})
Intensity = enum.IntEnum("Intensity", "DIM NORMAL BRIGHT", start=0)
OutputFormat = enum.Enum("OutputFormat", "TEXT HTML")
_PLAIN = (Color.RESET, Color.RESET, Intensity.NORMAL)
_INTENSITY = {Intensity.DIM: "2", Intensity.NORMAL: "22", Intensity.BRIGHT: "1"}


class Doc:
    """A document. `kind` is its type; `parts` are its contents."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts

    def __add__(self, other):
        return concat([self, other])

    def __repr__(self):
        shown = self.parts[0] if self.kind == "concat" else [p for p in self.parts if p is not None]
        return f"{self.kind}({', '.join(repr(p) if isinstance(p, Doc) else _quoted(p) for p in shown)})"

    def __str__(self):
        return self.format()

    def format(self, width=80, *, use_color=None, output_format=None, separable_lines=False, annotation_prefix=" # ", source_map=None):
        """The text.

        `source_map`, a list, gets the (start, end, source) of its regions for each line; with
        `separable_lines` each line sets its own colours.
        """
        use_color = CAN_USE_COLOR if use_color is None else use_color
        return _Page(use_color, output_format is OutputFormat.HTML, separable_lines).filled(self, width, annotation_prefix, source_map)


def _quoted(p):
    return f'"{p}"' if isinstance(p, str) else str(p)


def nil():
    """The empty document."""
    return Doc("nil")


def text(text, annotation=None, anchor=None, href=None):
    """A text of one line.

    `annotation` is printed at the end of its line; `anchor` and `href` are for HTML.
    """
    return Doc("text", text, annotation, anchor, href)


def concat(children):
    """One after another."""
    return Doc("concat", list(children))


def brk(text=" "):
    """The end of a line, or `text` where the group around it fits on one."""
    return Doc("break", text)


def group(doc):
    """`doc`, whose breaks are either all ends of lines or none."""
    return Doc("group", doc)


def nest(n, doc):
    """`doc`, whose lines are indented by `n` more columns."""
    return Doc("nest", n, doc)


def color(child, foreground=None, background=None, intensity=None):
    """`child` in colours, where a text is formatted with them."""
    return Doc("color", child, foreground, background, intensity)


def source_map(doc, source):
    """`doc`, whose text `format(source_map=)` says to be of `source`."""
    return Doc("source_map", doc, source)


def join(sep, docs):
    """The documents, with `sep` between each two."""
    docs = list(docs)
    return concat([d for i, doc in enumerate(docs) for d in ([sep, doc] if i else [doc])]) if docs else nil()


type_annotation = functools.partial(color, intensity=Intensity.NORMAL, foreground=Color.MAGENTA)
keyword = functools.partial(color, intensity=Intensity.BRIGHT, foreground=Color.BLUE)


def _inner(doc):
    """The inner documents of a document, in order."""
    if doc.kind == "concat":
        return doc.parts[0]
    return [doc.parts[1] if doc.kind == "nest" else doc.parts[0]] if doc.kind in ("nest", "group", "color", "source_map") else []


def _fits(doc, room):
    """Whether the document fits on a line with its breaks as text."""
    agenda = [doc]
    while agenda and room >= 0:
        d = agenda.pop()
        if d.kind in ("text", "break"):
            room -= len(d.parts[0])
        agenda.extend(reversed(_inner(d)))
    return room >= 0


class _Page:
    """Lines under way."""

    def __init__(self, use_color, as_html, separable):
        self.use_color, self.html, self.separable = use_color, as_html, separable
        self.lines, self.column, self.colors = [["", [], []]], 0, _PLAIN

    def _write(self, s, columns, source, colors):
        line = self.lines[-1]
        if self.use_color and s and colors != self.colors:
            line[0] += self._change(colors)
        line[0] += s
        if source is not None and columns:
            regions = line[2]
            if regions and regions[-1][1:] == (self.column, source):
                regions[-1] = (regions[-1][0], self.column + columns, source)
            else:
                regions.append((self.column, self.column + columns, source))
        self.column += columns

    def _change(self, colors):
        now, self.colors = self.colors, colors
        codes = [f"{tens}{new.value}" for tens, new, old in ((3, colors[0], now[0]), (4, colors[1], now[1])) if new != old]
        codes += [_INTENSITY[colors[2]]] if colors[2] != now[2] else []
        return f"\x1b[{';'.join(codes)}m" if codes else ""

    def _end(self):
        if self.use_color and self.separable:
            self.lines[-1][0] += self._change(_PLAIN)

    def _text(self, doc, source, colors):
        s, note, anchor, href = doc.parts
        shown = html.escape(s, quote=False) if self.html else s
        if self.html and (anchor is not None or href is not None):
            named = "".join(f' {k}="{html.escape(v)}"' for k, v in (("id", anchor), ("href", href)) if v is not None)
            shown = f"<a{named}>{shown}</a>"
        self._write(shown, len(s), source, colors)
        if note is not None:
            self.lines[-1][1].append(note)

    def filled(self, doc, width, prefix, regions):
        agenda = [(0, False, doc, None, _PLAIN)]
        while agenda:
            indent, flat, d, source, colors = agenda.pop()
            if d.kind == "text":
                self._text(d, source, colors)
            elif d.kind == "break" and flat:
                self._write(d.parts[0], len(d.parts[0]), source, colors)
            elif d.kind == "break":
                self._end()
                self.lines.append([" " * indent, [], []])
                self.column = indent
            else:
                if d.kind == "nest":
                    indent += d.parts[0]
                elif d.kind == "group":
                    flat = flat or _fits(d.parts[0], width - self.column)
                elif d.kind == "source_map":
                    source = d.parts[1]
                elif d.kind == "color":
                    colors = tuple(own if new is None else new for new, own in zip(d.parts[1:], colors, strict=True))
                agenda.extend((indent, flat, inner, source, colors) for inner in reversed(_inner(d)))
        if self.use_color:
            self.lines[-1][0] += self._change(_PLAIN)
        if regions is not None:
            regions.extend(line[2] for line in self.lines)
        return self._annotated(prefix)

    def _annotated(self, prefix):
        wide = max((len(line) for line, notes, _ in self.lines if notes), default=0)
        out = []
        for line, notes, _ in self.lines:
            out.append(line.ljust(wide) + prefix + notes[0] if notes else line.rstrip(" ") if not self.use_color else line)
            out += [" " * wide + prefix + note for note in notes[1:]]
        return "\n".join(out)
