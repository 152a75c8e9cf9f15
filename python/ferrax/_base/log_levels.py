"""The flags `jax_logging_level` and `jax_debug_log_modules`: they show records of the loggers
`jax`, `jaxlib` and `ferrax`, on the standard error stream.

    show_from("DEBUG")          # every trace and compilation
    show_from(None)             # as before

Invariant: a logger has the level that the program gave it again as soon as the flag is None or
empty.
"""

import logging
import sys

__all__ = ["show_all_of", "show_from"]

_FORMAT = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")


class _Shown:
    """A handler, and the loggers that it was added to, with the levels they had."""

    def __init__(self, handler):
        self.handler, self.before = handler, []
        handler.setFormatter(_FORMAT)

    def on(self, names, level):
        for name in names:
            logger = logging.getLogger(name)
            self.before.append((logger, logger.level))
            logger.setLevel(level)
            if level != logging.NOTSET:
                logger.addHandler(self.handler)

    def off(self):
        while self.before:
            logger, level = self.before.pop()
            logger.removeHandler(self.handler)
            logger.setLevel(level)


class _Stderr(logging.StreamHandler):
    """The stream that is `sys.stderr` when a record is written, as tests and notebooks exchange
    it.
    """

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


def _roots():
    # Where JAX's loggers are served, they get Ferrax's records (`compat._logs`); a record is shown once.
    ours = logging.getLogger("ferrax")
    return ("jax", "jaxlib") if ours.parent is logging.getLogger("jax") else ("jax", "jaxlib", "ferrax")


_all, _some = _Shown(_Stderr()), _Shown(_Stderr())
_some.handler.addFilter(lambda record: logging.getLogger("jax").level > logging.DEBUG or not _all.before)


def show_from(level):
    """Shows records of a level, given by its name, and of higher ones; None: as by default."""
    _all.off()
    if level is not None:
        _all.on(_roots(), logging.getLevelName(level))


def show_all_of(names):
    """Shows all records of the loggers named, separated by commas."""
    _some.off()
    _some.on([name.strip() for name in names.split(",") if name.strip()] if names else [], logging.DEBUG)
