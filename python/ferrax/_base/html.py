"""Display of arrays, programs and shardings in notebooks: `_repr_html_`, without further
dependencies.

Invariant: nothing here raises for a value that `repr` can show; a value that cannot be drawn is
shown as text.
"""

import base64
import html
import linecache
import math
import re
import struct
import zlib

import numpy as np

from .. import _core

_SIDE = 128  # points of a picture along an axis, at most
_LARGE = 1 << 22  # elements that are copied to the host for a picture; of larger arrays only those that are drawn
_HEAD = "font-family:monospace;font-size:90%"
_GREY = "color:#888"
# Dark blue, blue-green, yellow: light grows with the value. And blue, white, red for values of two signs.
_RISING = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], float)
_SIGNED = np.array([[33, 74, 160], [120, 170, 220], [247, 247, 247], [235, 150, 120], [170, 20, 40]], float)


def png(pixels):
    """The PNG file of a picture. pixels: uint8[height, width, 3]."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1).tobytes()
    parts = ((b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*p) for p in parts)


def _image(pixels, caption):
    height, width = pixels.shape[:2]
    scale = max(1, _SIDE // max(height, width))
    data = base64.b64encode(png(pixels)).decode()
    style = f"image-rendering:pixelated;width:{width * scale}px;height:{height * scale}px;border:1px solid #8888"
    return f'<img alt="{caption}" title="{caption}" style="{style}" src="data:image/png;base64,{data}"/>'


def _thinned(x, axes):
    """The host's copy of x with at most `_SIDE` elements along these axes."""
    if x.size > _LARGE:
        x = x[tuple(slice(None, None, max(1, -(-n // _SIDE))) if k in axes else slice(None) for k, n in enumerate(x.shape))]
    x = np.asarray(x)
    for k in axes:
        if x.shape[k] > _SIDE:
            x = np.take(x, np.linspace(0, x.shape[k] - 1, _SIDE).round().astype(int), axis=k)
    return x


def _coloured(values):
    """uint8[.., 3] of real values, with the words for their range."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.full((*values.shape, 3), 160, np.uint8), "no finite values"
    low, high = float(values[finite].min()), float(values[finite].max())
    words = f"{low:.4g} to {high:.4g}"
    table = _RISING
    if low < 0 < high:
        table, high = _SIGNED, max(-low, high)
        low = -high
    span = high - low
    share = np.clip((np.where(finite, values, low) - low) / span if 0 < span < math.inf else np.zeros(values.shape), 0, 1) * (len(table) - 1)
    at = np.minimum(share.astype(int), len(table) - 2)
    colours = table[at] + (table[at + 1] - table[at]) * (share - at)[..., None]
    # Values that are not finite are grey.
    return np.where(finite[..., None], colours.round(), 160).astype(np.uint8), words


def _is_image(x):
    if x.ndim != 3 or x.shape[-1] not in (1, 3, 4) or min(x.shape[:2]) < 8:
        return False
    return x.dtype == np.uint8 or x.dtype.kind == "f"


def _picture(x):
    """A picture of a matrix, or of a stack's first one, or of an image; None for other arrays."""
    if not x.size or x.ndim < 1 or x.dtype.kind not in "biufcV":
        return None
    if _is_image(x):
        values = _thinned(x, (0, 1))
        if values.dtype != np.uint8:
            values = values.astype(float)
            if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
                return None
            values = (values * 255).round().astype(np.uint8)
        rgb = np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values[..., :3]
        return _image(np.ascontiguousarray(rgb), f"{x.shape[0]} by {x.shape[1]} points")
    if x.ndim > 3 or (x.ndim == 1 and x.size < 8):
        return None
    which = ""
    if x.ndim == 3:
        x, which = x[0], "the first: "
    values = _thinned(x, (0, 1) if x.ndim == 2 else (0,))
    values = np.abs(values) if values.dtype.kind == "c" else values
    pixels, words = _coloured(np.atleast_2d(values.astype(float)))
    if pixels.shape[0] == 1:
        pixels = np.repeat(pixels, max(1, pixels.shape[1] // 16), axis=0)
    return _image(pixels, which + words)


def array(x):
    """An array: its type, its sharding, a small picture, its elements.

    None for a tracer, which is shown as text.
    """
    if isinstance(x, _core.Tracer):
        return None
    type_ = f"{x.dtype}[{','.join(map(str, x.shape))}]" + (", weak type" if x.weak_type else "")
    if x.is_deleted():
        return f'<div style="{_HEAD}"><b>Array</b> {html.escape(type_)} <span style="{_GREY}">deleted</span></div>'
    text = html.escape(str(x))
    devices = ", ".join(sorted(map(str, x.devices())))
    head = f'<b>Array</b> {html.escape(type_)} <span style="{_GREY}">{html.escape(devices)}, {_bytes(x.nbytes)}</span>'
    picture = None if isinstance(x.dtype, _core.KeyTy) else _picture(x)
    if picture is None:
        return f'<div style="{_HEAD}">{head}<pre style="margin:4px 0">{text}</pre></div>'
    return f'<div style="{_HEAD}">{head}<div style="margin:4px 0">{picture}</div><details><summary>elements</summary><pre>{text}</pre></details></div>'


def _bytes(n):
    units = ["bytes", "KiB", "MiB", "GiB"]
    while n >= 1024 and len(units) > 1:
        n /= 1024
        units.pop(0)
    return f"{n:.4g} {units[0]}"


# ---- programs

_PLACE = re.compile(r"\s+# ((.*?):(\d+)(?::\d+)? \(.*\))$")


def _line(text):
    """One line of a program, with its line of source."""
    found = _PLACE.search(text)
    if found is None:
        return html.escape(text.strip())
    source = linecache.getline(found[2], int(found[3])).strip()
    place = html.escape(found[1])
    location = f'<span style="{_GREY}" title="{place}">{html.escape(source) if source else place}</span>'
    return f"{html.escape(text[: found.start()].strip())}&#8195;{location}"


def _depth(text):
    return len(text) - len(text.lstrip())


def _folded(lines, opened):
    """Lines as elements; those that are indented deeper than the one before fold under it."""
    out, k = [], 0
    while k < len(lines):
        first, k = lines[k], k + 1
        inner = []
        while k < len(lines) and _depth(lines[k]) > _depth(first):
            inner.append(lines[k])
            k += 1
        if not inner:
            out.append(f"<div>{_line(first)}</div>")
            continue
        last = ""
        if k < len(lines) and lines[k].strip()[:1] in "])}":
            last, k = f"<div>{_line(lines[k])}</div>", k + 1
        body = "".join(_folded(inner, 0))
        state = ' open=""' if opened else ""
        out.append(f'<details{state}><summary>{_line(first)}</summary><div style="margin-left:2em">{body}</div>{last}</details>')
    return out


def program(jaxpr):
    """A program: its equations, parameters and inner programs folded, each with its line of
    source.
    """
    lines = [line for line in jaxpr.pretty_print(source_info=True).splitlines() if line.strip()]
    return f'<div style="{_HEAD};white-space:pre-wrap">{"".join(_folded(lines, 1))}</div>'


# ---- shardings

_TINTS = ("#cde", "#fdc", "#ded", "#ecd", "#eec", "#cee", "#ddd", "#fee")


def sharding(s):
    """A sharding: its text, and the part of each device."""
    head = f'<div style="{_HEAD}"><b>{html.escape(repr(s))}</b></div>'
    grid = _grid(s)
    return head if grid is None else head + grid


def _grid(s):
    spec = getattr(s, "spec", None)
    if spec is None or not hasattr(s.mesh, "devices"):
        return None
    parts = [math.prod(s.mesh.shape[a] for a in spec.axes_of(k)) for k in range(len(spec))]
    cut = [k for k, n in enumerate(parts) if n > 1] or [0][: len(parts)]
    if len(cut) > 2 or math.prod(parts) > 256:
        return None
    holders = {}
    for device, index in s.devices_indices_map(tuple(parts)).items():
        holders.setdefault(tuple((index[k].start or 0) for k in cut), []).append(device.id)
    sizes = [1] * (2 - len(cut)) + [parts[k] for k in cut]
    cells = lambda i, j: holders.get(((i, j)[2 - len(cut) :]), [])
    tint = lambda ids: _TINTS[min(ids, default=0) % len(_TINTS)]
    cell = lambda ids: (
        f'<td style="border:1px solid #888;padding:2px 8px;background:{tint(ids)};color:#000;text-align:center">{", ".join(map(str, sorted(ids)))}</td>'
    )
    rows = "".join("<tr>" + "".join(cell(cells(i, j)) for j in range(sizes[1])) + "</tr>" for i in range(sizes[0]))
    caption = f"devices of each part, axes {', '.join(map(str, cut))}" if cut else "devices"
    return f'<table style="{_HEAD};border-collapse:collapse" title="{caption}">{rows}</table>'
