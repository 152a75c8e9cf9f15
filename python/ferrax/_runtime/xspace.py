"""Profiles in the XSpace format, `*.xplane.pb`, as other tools write them: planes (a host, a
device) of lines (threads) of events.

    for plane in ProfileData.from_file(path).planes:
        for line in plane.lines:
            for event in line.events: print(event.name, event.duration_ns)

Invariant: missing fields have the defaults of protocol buffers; a truncated file is refused.

    >>> data = ProfileData.from_text_proto('planes { name: "host" }')
    >>> [plane.name for plane in data.planes]
    ['host']
"""

from __future__ import annotations

import pathlib
import re
import struct
from typing import TYPE_CHECKING, Any

from ..errors import JaxRuntimeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike


__all__ = ["ProfileData", "ProfileEvent", "ProfileLine", "ProfilePlane"]

# Of each message: its fields' numbers, names and kinds; a message's name is the kind of a field that holds it.
_SCHEMA = {
    "XSpace": {1: ("planes", "XPlane"), 2: ("errors", "string"), 3: ("warnings", "string"), 4: ("hostnames", "string")},
    "XPlane": {
        1: ("id", "int"), 2: ("name", "string"), 3: ("lines", "XLine"), 4: ("event_metadata", "EventEntry"), 5: ("stat_metadata", "StatEntry"),
        6: ("stats", "XStat"),
    },
    "EventEntry": {1: ("key", "int"), 2: ("value", "XEventMetadata")},
    "StatEntry": {1: ("key", "int"), 2: ("value", "XStatMetadata")},
    "XLine": {
        1: ("id", "int"), 10: ("display_id", "int"), 2: ("name", "string"), 11: ("display_name", "string"), 3: ("timestamp_ns", "int"),
        9: ("duration_ps", "int"), 4: ("events", "XEvent"),
    },
    "XEvent": {1: ("metadata_id", "int"), 2: ("offset_ps", "int"), 5: ("num_occurrences", "int"), 3: ("duration_ps", "int"), 4: ("stats", "XStat")},
    "XStat": {
        1: ("metadata_id", "int"), 2: ("double_value", "double"), 3: ("uint64_value", "uint"), 4: ("int64_value", "int"), 5: ("str_value", "string"),
        6: ("bytes_value", "bytes"), 7: ("ref_value", "uint"),
    },
    "XEventMetadata": {
        1: ("id", "int"), 2: ("name", "string"), 4: ("display_name", "string"), 3: ("metadata", "bytes"), 5: ("stats", "XStat"), 6: ("child_id", "int"),
    },
    "XStatMetadata": {1: ("id", "int"), 2: ("name", "string"), 3: ("description", "string")},
}  # fmt: skip
_BY_NAME = {message: {name: (number, kind) for number, (name, kind) in fields.items()} for message, fields in _SCHEMA.items()}


def _varint(data, at):
    n = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number is cut")
        byte = data[at]
        n, shift, at = n | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return n, at


def _signed(n):
    return n - 2**64 if n >= 2**63 else n


def _read(message, data):
    """A message as a dictionary of lists of its fields, in order."""
    out, at, data = {}, 0, memoryview(data)
    fields = _SCHEMA[message]
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 2, 5):
            size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else _varint(data, at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise ValueError("a field is cut")
        else:
            raise ValueError(f"fields of wire type {wire} are not known")
        name, kind = fields.get(tag >> 3, (None, None))
        if name is None:
            continue
        right = {"int": 0, "uint": 0, "double": 1}.get(kind, 2)
        if wire != right:
            raise ValueError(f"{message}.{name} has wire type {wire}")
        out.setdefault(name, []).append(_value(kind, value))
    return out


def _value(kind, value):
    if kind == "int":
        return _signed(value)
    if kind == "uint":
        return value
    if kind == "double":
        return struct.unpack("<d", value)[0]
    if kind == "string":
        return bytes(value).decode(errors="replace")
    return bytes(value) if kind == "bytes" else _read(kind, value)


def _last(message, name, default):
    return message.get(name, (default,))[-1]


def _number(n):
    out = bytearray()
    n %= 2**64
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _write(message, fields):
    """Bytes of (field name, value) pairs, in the order of the fields' numbers."""
    out = []
    for name, value in fields:
        number, kind = _BY_NAME[message][name]
        if kind in ("int", "uint"):
            out.append((number, _number(number << 3) + _number(value)))
        elif kind == "double":
            out.append((number, _number(number << 3 | 1) + struct.pack("<d", value)))
        else:
            data = _write(kind, value) if kind in _SCHEMA else value if isinstance(value, bytes) else value.encode()
            out.append((number, _number(number << 3 | 2) + _number(len(data)) + data))
    return b"".join(data for _, data in sorted(out, key=lambda f: f[0]))


_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<word>[A-Za-z_]\w*)|(?P<number>[-+]?(?:0x[0-9a-fA-F]+|[\d.]+(?:[eE][-+]?\d+)?))|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<mark>[{}:;,<>])"""
)


def _tokens(text):
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"what is {text[at : at + 20]!r}, at {at}?")
        at = found.end()
        if found.lastgroup:
            yield found.lastgroup, found.group()
    yield "end", ""


def _parse(message, tokens, closing):
    """(field name, value) pairs of text, up to the closing mark."""
    out = []
    for kind, word in tokens:
        if word in (";", ",") and kind == "mark":
            continue
        if (kind, word) == closing:
            return out
        if kind != "word" or word not in _BY_NAME[message]:
            raise ValueError(f'Message type "{message}" has no field named "{word}".')
        _, field = _BY_NAME[message][word]
        kind, value = next(tokens)
        if (kind, value) == ("mark", ":"):
            kind, value = next(tokens)
        if field in _SCHEMA:
            if value not in ("{", "<"):
                raise ValueError(f'{word}: expected "{{", found "{value}"')
            out.append((word, _parse(field, tokens, ("mark", "}" if value == "{" else ">"))))
        elif field in ("string", "bytes"):
            if kind != "text":
                raise ValueError(f"{word}: expected text, found {value!r}")
            plain = value[1:-1].encode().decode("unicode_escape").encode("latin-1")
            out.append((word, plain))
        elif kind == "number":
            out.append((word, float(value) if field == "double" else int(value, 0)))
        else:
            raise ValueError(f"{word}: expected a number, found {value!r}")
    raise ValueError("the text ends within a message")


class _Of:
    """A message, and the plane whose metadata name its contents."""

    def __init__(self, message, plane):
        self._message, self._plane = message, plane


def _metadata(plane, name):
    return {_last(e, "key", 0): _last(e, "value", {}) for e in plane.get(name, ())}


def _stats(message, plane):
    """(name, value) of each; both None if the metadata do not contain it, or there is no value."""
    for stat in message.get("stats", ()):
        known = plane.stats.get(_last(stat, "metadata_id", 0))
        value = next((values[-1] for name, values in stat.items() if name != "metadata_id"), None)
        if known is None or value is None:
            yield None, None
            continue
        if "ref_value" in stat:
            value = _last(plane.stats.get(value, {}), "name", "")
        elif "bytes_value" in stat:
            value = value.decode(errors="replace")
        yield _last(known, "name", ""), value


class _Names:
    def __init__(self, plane):
        self.events, self.stats = _metadata(plane, "event_metadata"), _metadata(plane, "stat_metadata")


class ProfileEvent(_Of):
    """Something that happened, with its times in nanoseconds."""

    @property
    def name(self) -> str:
        """The name of the event."""
        return _last(self._plane.events.get(_last(self._message[0], "metadata_id", 0), {}), "name", "")

    @property
    def start_ns(self) -> float:
        """When it began."""
        return float(self._message[1] + _last(self._message[0], "offset_ps", 0) // 1000)

    @property
    def duration_ns(self) -> float:
        """How long it took."""
        return float(_last(self._message[0], "duration_ps", 0) // 1000)

    @property
    def end_ns(self) -> float:
        """When it ended."""
        return self.start_ns + self.duration_ns

    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]:
        """(name, value) of the event's statistics."""
        return _stats(self._message[0], self._plane)


class ProfileLine(_Of):
    """The events of one thread, or of one queue of a device."""

    @property
    def name(self):
        """The line's name."""
        return _last(self._message, "name", "")

    @property
    def events(self):
        """The events, in the file's order."""
        begin = _last(self._message, "timestamp_ns", 0)
        return (ProfileEvent((event, begin), self._plane) for event in self._message.get("events", ()))


class ProfilePlane(_Of):
    """The events of a host or a device."""

    @property
    def name(self) -> str:
        """The plane's name, such as `/host:CPU`."""
        return _last(self._message, "name", "")

    @property
    def lines(self) -> Iterator[Any]:
        """Its threads."""
        return (ProfileLine(line, self._plane) for line in self._message.get("lines", ()))

    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]:
        """(name, value) of the plane's statistics."""
        return _stats(self._message, self._plane)


class ProfileData:
    """A profile that was read.

    Raises:
        RuntimeError: the bytes are not a profile, or are truncated.
    """

    def __init__(self, serialized: bytes) -> None:
        try:
            self._space = _read("XSpace", serialized)
        except ValueError as e:
            raise RuntimeError(f"Failed to parse XSpace from array: {e}") from None

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        """The profile of a message's bytes."""
        return cls(serialized_xspace)

    @classmethod
    def from_file(cls, proto_file_path: PathLike[str] | str) -> ProfileData:
        """The profile of a file.

        Raises:
            JaxRuntimeError: it cannot be read.
        """
        try:
            data = pathlib.Path(proto_file_path).read_bytes()
        except OSError as e:
            raise JaxRuntimeError(f"NOT_FOUND: {proto_file_path}; {e.strerror}") from None
        return cls(data)

    @classmethod
    def from_text_proto(cls, text: str) -> ProfileData:
        """The profile of a message in protocol buffers' text form."""
        return cls(cls.text_proto_to_serialized_xspace(text))

    @staticmethod
    def text_proto_to_serialized_xspace(text: str) -> bytes:
        """A message's text as its bytes.

        Raises:
            ValueError: the text does not have that form.
        """
        return _write("XSpace", _parse("XSpace", _tokens(text), ("end", "")))

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """The hosts and devices."""
        return (ProfilePlane(plane, _Names(plane)) for plane in self._space.get("planes", ()))

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of a name, or None."""
        return next((plane for plane in self.planes if plane.name == name), None)
