"""The runtime's log of tracing and compiling, forwarded to loggers with JAX's names.

    logging.getLogger("jax._src.interpreters.pxla").addHandler(mine)    # gets "Compiling jit(f) with global shapes and types ..."

Invariant: a line is logged by the logger with JAX's name and by the handlers of the logger
`ferrax`, and reaches the root's handlers once.
"""

import logging
import re

_LINES = (
    (re.compile(r"Finished tracing "), "jax._src.dispatch", None),
    (re.compile(r"Compiling (.*) with global shapes and types \[(.*)\]\.$", re.S), "jax._src.interpreters.pxla", "types"),
    (re.compile(r"Finished compilation of "), "jax._src.dispatch", "Finished XLA compilation of "),
    (re.compile(r"TRACING CACHE MISS"), "jax._src.interpreters.partial_eval", None),
)


def _tuple(items):
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def renamed(text):
    """JAX's logger for this text, and JAX's form of it."""
    for pattern, name, words in _LINES:
        found = pattern.match(text)
        if found is None:
            continue
        if words == "types":
            types = re.findall(r"\w+\([^()]*\)", found[2])
            mapping = _tuple(["UnspecifiedValue"] * len(types))
            return name, f"Compiling {found[1]} with global shapes and types {_tuple(types)}. Argument mapping: {mapping}."
        return name, text if words is None else words + text[found.end() :]
    return "jax._src.dispatch", text


class Forward(logging.Handler):
    """Passes the lines of the log `ferrax` to loggers with JAX's names."""

    def emit(self, record):
        """Forwards one record."""
        name, text = renamed(record.getMessage())
        logger = logging.getLogger(name)
        if logger.isEnabledFor(record.levelno):
            logger.handle(logger.makeRecord(name, record.levelno, record.pathname, record.lineno, text, (), record.exc_info, record.funcName))


def install():
    """Makes log records available under JAX's names.

    The log `ferrax` has the level of the log `jax` unless it has its own. A second call has no
    effect.
    """
    ours = logging.getLogger("ferrax")
    if any(isinstance(h, Forward) for h in ours.handlers):
        return
    ours.addHandler(Forward())
    ours.propagate = False
    ours.parent = logging.getLogger("jax")
