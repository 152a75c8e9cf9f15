"""The runtime's log of tracing and compiling: lines of the logger `ferrax`, which are parsed while a
listener is registered.

Invariant: the logger's level is restored when the last listener is removed.
"""

import logging
import re
import time

_LINES = (
    (re.compile(r"Finished tracing (.*) for \w+ in ([\d.e+-]+) sec"), "trace"),
    (re.compile(r"Finished compilation of \w+\((.*)\) in ([\d.e+-]+) sec"), "compile"),
)


class Listener(logging.Handler):
    """Calls `tell(kind, name, start, seconds)` for each function traced or compiled, from `open` to
    `close`; times are those of `time.perf_counter`.
    """

    def __init__(self, tell):
        super().__init__(logging.DEBUG)
        self.tell = tell
        self.log = logging.getLogger("ferrax")

    def open(self):
        """Starts listening."""
        self.before = self.log.level, self.log.propagate
        if not self.log.isEnabledFor(logging.DEBUG):
            # records that are read here alone are not passed to the user's handlers
            self.log.setLevel(logging.DEBUG)
            self.quiet = _AtLeast(logging.WARNING if self.before[0] == logging.NOTSET else self.before[0])
            for handler in (*self.log.handlers, *logging.getLogger().handlers):
                handler.addFilter(self.quiet)
        else:
            self.quiet = None
        self.log.addHandler(self)
        return self

    def close(self):
        """Stops listening."""
        if self in self.log.handlers:
            self.log.removeHandler(self)
            self.log.setLevel(self.before[0])
            for handler in (*self.log.handlers, *logging.getLogger().handlers):
                if self.quiet is not None:
                    handler.removeFilter(self.quiet)
        super().close()

    def emit(self, record):
        """Reads one line."""
        now, text = time.perf_counter(), record.getMessage()
        for pattern, kind in _LINES:
            if found := pattern.fullmatch(text):
                seconds = float(found[2])
                self.tell(kind, found[1], now - seconds, seconds)


class _AtLeast(logging.Filter):
    def __init__(self, level):
        super().__init__()
        self.level = level

    def filter(self, record):
        return record.levelno >= self.level or not record.name.startswith("ferrax")
