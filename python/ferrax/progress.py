"""Loops that show how far they are, under `jit` too: `lax`'s loops with a bar.

    step = jax.jit(lambda state, batches: progress.scan(train, state, batches, desc="training"))

The bar is tqdm's or rich's if they are installed, else a line of text. The loop calls the host at
its steps 1, 4, 16, .., and, once the pace is known, about ten times a second.

Invariant: values, derivatives and errors are those of the loop without a bar.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from . import _core, lax
from ._runtime.callback import io_callback
from ._tracing.trace import ShapeDtypeStruct
from .tree_util import tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable


_Carry = TypeVar("_Carry")
_X = TypeVar("_X")
_Y = TypeVar("_Y")
_T = TypeVar("_T")


__all__ = ["Line", "fori_loop", "scan", "while_loop"]

_PER_SECOND = 10
_INT = ShapeDtypeStruct((), np.int32)


class _Bar(Protocol):
    """A bar, to which a loop reports."""

    def update(self, n: int, /) -> Any:
        """Reports that `n` more steps are done."""

    def close(self) -> Any:
        """Reports the end of the loop."""


class Line:
    """A bar of text, one line that is written over: "training:  40% 400/1000 [00:02<00:03]".

    >>> Line(1000, "training").text(0)
    'training:   0% 0/1000'
    """

    def __init__(self, total: int | None, desc: str | None = None, file: IO[str] | None = None) -> None:
        self.total, self.desc, self.file = total, desc, sys.stderr if file is None else file
        self.start, self.n, self.width = time.monotonic(), 0, 0

    def text(self, seconds: float) -> str:
        """The text of the line after so many seconds."""
        head = f"{self.desc}: " if self.desc else ""
        if self.total is None:
            return f"{head}{self.n}" + (f" [{_clock(seconds)}]" if seconds >= 1 else "")
        share = 100 * self.n // self.total if self.total else 100
        left = f"<{_clock(seconds * (self.total - self.n) / self.n)}" if 0 < self.n < self.total else ""
        return f"{head}{share:3d}% {self.n}/{self.total}" + (f" [{_clock(seconds)}{left}]" if seconds >= 1 else "")

    def update(self, n: int) -> None:
        """Reports that `n` more steps are done."""
        self.n += n
        if self.file.isatty():
            text = self.text(time.monotonic() - self.start)
            self.file.write("\r" + text.ljust(self.width))
            self.width = len(text)
            self.file.flush()

    def close(self) -> None:
        """Reports the end of the loop."""
        self.file.write(("\r" if self.width else "") + self.text(time.monotonic() - self.start).ljust(self.width) + "\n")
        self.file.flush()


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"


class _Rich:
    """rich's bar, with tqdm's methods."""

    def __init__(self, total, desc):
        from rich.progress import Progress

        self.progress = Progress(transient=False)
        self.task = self.progress.add_task(desc or "", total=total)
        self.progress.start()

    def update(self, n):
        self.progress.update(self.task, advance=n)

    def close(self):
        self.progress.stop()


def _tqdm(total, desc):
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=desc)


_BARS = {"tqdm": _tqdm, "rich": _Rich, "plain": Line}


def _maker(bar):
    """The constructor of a bar: the named one, or the first available."""
    if callable(bar):
        return bar
    if bar is None:
        bar = next((name for name in ("tqdm", "rich") if importlib.util.find_spec(name)), "plain")
    if bar not in _BARS:
        raise ValueError(f"progress: bar must be one of {', '.join(map(repr, _BARS))}, or a function of (total, desc), got {bar!r}")
    return _BARS[bar]


class _Run:
    """One run of a loop: the time of the last report, and the step of the next one."""

    def __init__(self, bar):
        self.bar, self.done, self.start = bar, 0, time.monotonic()

    def reached(self, done):
        seconds = time.monotonic() - self.start
        self.bar.update(done - self.done)
        self.done = done
        if seconds * _PER_SECOND < 1:
            return 4 * done  # no pace is known yet
        return done + max(int(done / (seconds * _PER_SECOND)), 1)


class _Loop:
    """The host's side of one loop in a program, which may run many times, in several threads at
    once.
    """

    def __init__(self, total, desc, bar):
        self.total, self.desc, self.make = total, desc, _maker(bar)
        self.runs, self.numbers, self.lock = {}, itertools.count(), threading.Lock()

    def begin(self):
        with self.lock:
            number = next(self.numbers) & 0x7FFFFFFF
            for old in [k for k in self.runs if k < number - 64]:
                del self.runs[old]  # a run that ended by an error
            self.runs[number] = _Run(self.make(self.total, self.desc))
        return np.int32(number)

    def reached(self, number, done):
        run = self.runs.get(int(number))
        return np.int32(min(run.reached(int(done)), 2**31 - 1) if run else 2**31 - 1)

    def end(self, number, done):
        with self.lock:
            run = self.runs.pop(int(number), None)
        if run:
            run.bar.update(int(done) - run.done)
            run.bar.close()
        return np.int32(0)


class _Counter:
    """The program's part: (steps done, the step of the next call, the number of the run), carried
    with the loop's own carry.
    """

    def __init__(self, total, desc, bar):
        self.loop = _Loop(total, desc, bar)

    def begin(self):
        number = io_callback(self.loop.begin, _INT)
        return _core.asarray(np.int32(0)), _core.asarray(np.int32(1)), number

    def step(self, counter, n):
        """After `n` more steps."""
        done, wanted, number = counter
        done = lax.add(done, np.int32(n) if isinstance(n, int) else n)
        ask = lambda done, wanted, number: io_callback(self.loop.reached, _INT, number, done)
        return done, lax.cond(lax.ge(done, wanted), ask, lambda done, wanted, number: wanted, done, wanted, number), number

    def end(self, counter):
        done, _, number = counter
        io_callback(self.loop.end, _INT, number, done)


# PERF: the loop runs in pieces without interruption; counting takes place between pieces, one comparison for each.
_PIECES = 256


def _pieces(total):
    """The number of pieces, the number of steps of each, and the number of remaining steps."""
    count = min(_PIECES, total)
    size = total // count if count else 0
    return count, size, total - count * size


def _length(xs, length):
    sizes = [np.shape(x)[0] for x in tree_leaves(xs) if np.ndim(x)]
    return sizes[0] if sizes else length


def scan(
    f: Callable[[_Carry, _X], tuple[_Carry, _Y]],
    init: _Carry,
    xs: _X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> tuple[_Carry, _Y]:
    """`lax.scan` with a bar.

    Args:
        f, init, xs, length, reverse, unroll: as in `lax.scan`.
        desc: str, put in front of the bar.
        bar: "tqdm", "rich", "plain", or a function of (total, desc) that makes an object with
          `update(n)` and `close()`; the first that is installed if None.

    Returns:
        the last carry and the stacked outputs.

    Raises:
        ValueError: the bar does not exist. Also the errors of `lax.scan`.
    """
    total = _length(xs, length)
    if not total or (length is not None and length != total):
        _maker(bar)
        return lax.scan(f, init, xs, length, reverse, unroll)
    counter, (count, size, left) = _Counter(total, desc, bar), _pieces(total)
    main = count * size
    whole = xs if not left else tree_map(lambda x: x[:main], xs)
    cut = tree_map(lambda x: lax.reshape(x, (count, size, *np.shape(x)[1:])), whole)

    def piece(carry, x):
        value, y = lax.scan(f, carry[1], x, size, reverse, unroll)
        return (counter.step(carry[0], size), value), y

    def rest(carry):
        value, y = lax.scan(f, carry[1], tree_map(lambda x: x[main:], xs), left, reverse, unroll)
        return (counter.step(carry[0], left), value), y

    carry = (counter.begin(), init)
    if left and reverse:
        carry, last = rest(carry)
    carry, ys = lax.scan(piece, carry, cut, count, reverse)
    if left and not reverse:
        carry, last = rest(carry)
    ys = tree_map(lambda y: lax.reshape(y, (main, *y.shape[2:])), ys)
    if left:
        ys = tree_map(lambda y, z: lax.concatenate([y, z], 0), ys, last)
    counter.end(carry[0])
    return carry[1], ys


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, _T], _T],
    init_val: _T,
    *,
    unroll: int | bool | None = None,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> _T:
    """`lax.fori_loop` with a progress bar. Where a bound is traced, the bar has no end.

    Args:
        lower: int or integer scalar array, the first index.
        upper: int or integer scalar array, one more than the last index.
        body_fun: `body_fun(index, value)`, which returns the next value.
        init_val: pytree of arrays.
        unroll: int or bool, as in `lax.fori_loop`.
        desc: str, put in front of the bar.
        bar: "tqdm", "rich", "plain", or a function of (total, desc) that makes an object with
          `update(n)` and `close()`; None: the first that is installed.

    Returns:
        The last value.

    Raises:
        ValueError: the bar does not exist.
    """
    if isinstance(lower, _core.Tracer) or isinstance(upper, _core.Tracer):
        dtype = _core.result_type(lower, upper)
        start, stop = (_core.asarray(i, dtype=dtype) for i in (lower, upper))
        one = _core.asarray(1, dtype=dtype)
        body = lambda carry: (lax.add(carry[0], one), body_fun(*carry))
        return while_loop(lambda carry: lax.lt(carry[0], stop), body, (start, init_val), desc=desc, bar=bar)[1]
    total = int(upper) - int(lower)
    if total <= 0:
        _maker(bar)
        return lax.fori_loop(lower, upper, body_fun, init_val, unroll=unroll)
    counter, (count, size, left) = _Counter(total, desc, bar), _pieces(total)

    def piece(k, carry):
        first = lax.add(lax.mul(k, np.int32(size)), np.int32(lower))
        value = lax.fori_loop(0, size, lambda i, c: body_fun(lax.add(first, i), c), carry[1], unroll=unroll)
        return counter.step(carry[0], size), value

    state, value = lax.fori_loop(0, count, piece, (counter.begin(), init_val))
    if left:
        value = lax.fori_loop(int(upper) - left, int(upper), body_fun, value, unroll=unroll)
        state = counter.step(state, left)
    counter.end(state)
    return value


def while_loop(
    cond_fun: Callable[[_T], Any],
    body_fun: Callable[[_T], _T],
    init_val: _T,
    *,
    total: int | None = None,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> _T:
    """`lax.while_loop` with a progress bar.

    Args:
        cond_fun: `cond_fun(value)`, a boolean scalar: whether to continue.
        body_fun: `body_fun(value)`, which returns the next value.
        init_val: pytree of arrays.
        total: int, the number of steps where it is known; None: the bar has no end.
        desc: str, put in front of the bar.
        bar: "tqdm", "rich", "plain", or a function of (total, desc) that makes an object with
          `update(n)` and `close()`; None: the first that is installed.

    Returns:
        The last value.

    Raises:
        ValueError: the bar does not exist.
    """
    counter = _Counter(total, desc, bar)

    def piece(carry):
        (done, wanted, number), value = carry
        more = lambda c: lax.bitwise_and(lax.lt(c[0], wanted), _core.asarray(cond_fun(c[1]), dtype=bool))
        now, value = lax.while_loop(more, lambda c: (lax.add(c[0], np.int32(1)), body_fun(c[1])), (done, value))
        return counter.step((done, wanted, number), lax.sub(now, done)), value

    state, value = lax.while_loop(lambda carry: cond_fun(carry[1]), piece, (counter.begin(), init_val))
    counter.end(state)
    return value
