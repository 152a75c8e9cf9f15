"""The other processes of a run, as this one sees them. The core of this is in the extension, and
exchanges the reports of processes about their calls (`peers/calls.rs` says how); this module has
the locations of threads, the detection of processes that have died, and the texts of errors.

Invariant: a wait ends with an error only for a known cause (the process has ended, its call
differs, it has abandoned the call or finished), or, if nothing is received, after the timeout.
"""

import hashlib
import logging
import os
import signal
import socket
import sys
import threading
import time

LOOK = 0.2  # seconds between two looks at the other processes
CIRCLE = 10  # processes may wait for each other this many times as long as one may be silent

logger = logging.getLogger("ferrax.distributed")


class Different(RuntimeError):
    """Two processes of a run have begun to run different programs."""


class Gone(RuntimeError):
    """A process that this one waits for has died, has ended, or has abandoned the call."""


def here():
    """The facts from which other processes can detect the end of this one."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "space": _read_link("/proc/self/ns/pid"), "begun": _begun(os.getpid())}


def _read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _begun(pid):
    """The start time of a process in ticks; None if it does not exist or is a zombie; "" if the
    system does not provide it.
    """
    if not os.path.isdir("/proc/self"):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return ""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def user_line():
    """`, at file:line in function` of the user's code that the main thread runs; empty if it runs
    none.
    """
    frame = sys._current_frames().get(threading.main_thread().ident)
    ours = os.path.dirname(os.path.dirname(__file__))
    while frame is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    return "" if frame is None else f", at {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def digest_of(text):
    """64 bits of a text, equal in all processes."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def named(processes):
    """`process 1`, or `processes 1, 2`."""
    return f"process{'es' if len(processes) > 1 else ''} {', '.join(map(str, processes))}"


def first_difference(mine, theirs):
    """The first line in which two texts differ, for the end of a message."""
    if theirs is None:
        return f" The program of the other process is not known; that of this one:\n{mine}"
    a, b = mine.splitlines(), theirs.splitlines()
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return f" They differ in line {i + 1}:\n  here:  {x.strip()}\n  there: {y.strip()}"
    if len(a) != len(b):
        longer, where = (a, "here") if len(a) > len(b) else (b, "there")
        return f" The program {where} is longer, from line {min(len(a), len(b)) + 1} on:\n  {longer[min(len(a), len(b))].strip()}"
    return f" Both are\n{mine}"


class Watch:
    """The state of the other processes in this process.

    Args:
        mpi: the module `mpi4py.MPI`.
        people: `here()` of each process.
        rank: this process.
        core: the watch of the extension.
        pumps: whether a Python thread has to drive the core.
    """

    def __init__(self, mpi, people, rank, core, pumps):
        self._mpi, self.core, self._pumps, self._people = mpi, core, pumps, people
        self.rank, self.size, self._process = rank, len(people), os.getpid()
        here = lambda p: (people[p]["host"], people[p]["space"])
        self._beside = [p for p in range(self.size) if p != rank and here(p) == here(rank)]  # whose end this process sees
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ferrax-watch", daemon=True)

    def begin(self):
        """Starts to watch."""
        self._thread.start()

    def _run(self):
        while not self._stop.wait(LOOK):
            try:
                if self._pumps:
                    self.core.pump()
                self.look()
            except Exception:
                if not self._stop.is_set():
                    logger.exception("process %d cannot watch the others", self.rank)
                return

    def look(self):
        """Reports the location of this process if another has requested it, and detects which of the
        others have died.
        """
        if self.core.is_place_wanted():
            self.core.place(user_line())
        for p in self._beside:
            known = lambda p=p: self.core.has_ended(p) or p in self.core.dead()
            if _begun(self._people[p]["pid"]) == self._people[p]["begun"] or known():
                continue
            time.sleep(LOOK)  # it may have reported its end before
            if not known():
                self.core.died(p)
                sys.stderr.write(f"ferrax: {self.died()}, as process {self.rank} of {self.size} sees{user_line()}\n")

    # ---- the end of a wait

    def error(self, cause, missing, waited):
        """The error of a wait of so many seconds for the processes `missing`."""
        kind, peer, index = cause["kind"], cause.get("peer"), cause.get("index")
        if kind == "different":
            detail = first_difference(cause["mine"], cause["theirs"]) if cause["mine"] is not None else ""
            before = "" if cause["first"] else ", or before"
            return Different(
                f"processes {self.rank} and {peer} run different programs in their call {index + 1}{before}: every process must run the same programs in the same"
                f" order.{detail}"
            )
        if kind == "died":
            return Gone(f"{self.died()}; process {self.rank} waits for it{user_line()}")
        if kind == "given up":
            return Gone(f"process {peer} has given up the call that process {self.rank} waits for{user_line()}. Its error{cause['place']}: {cause['why']}")
        if kind == "ended":
            return Gone(
                f"process {peer} has ended after {cause['calls']} calls with process {self.rank}, which waits for it in call {index + 1}{user_line()}:"
                f" every process must run the same programs in the same order.{first_lines(cause['mine'])}"
            )
        if kind == "finished":
            return Gone(
                f"process {peer} has finished call {index + 1} with process {self.rank}, which waits in it for a collective that process {peer} did not come to"
                f"{user_line()}: every device must come to the same collectives in the same order, so none may stand under a condition, or in a loop whose"
                f" number of iterations differs by device.{first_lines(cause['mine'])}"
            )
        why = f"{named(cause['peers'])} wait for each other" if kind == "circle" else f"nothing was heard from {named(cause['peers'])}"
        return TimeoutError(f"process {self.rank} has waited {int(waited)} s for {named(missing)}, and {why}{user_line()}{self.whereabouts(missing)}")

    def died(self):
        """`process 2 (pid 17 on node3) has died`, for those that have died; empty if none has."""
        gone = [f"process {p} (pid {self._people[p]['pid']} on {self._people[p]['host']})" for p in self.core.dead()]
        return f"{', '.join(gone)} {'have' if len(gone) > 1 else 'has'} died" if gone else ""

    def whereabouts(self, processes):
        """`; process 1 is at file:line in f`, for those that have answered."""
        places = {p: self.core.place_of(p) for p in processes}
        return "".join(f"; process {p} is{place.removeprefix(',') or ' in no Python code'}" for p, place in places.items() if place is not None)

    # ---- the end

    def farewell(self, timeout, heartbeat):
        """Notifies the others that this process ends, and waits until all do.

        All are ended if that takes longer than `timeout`, or if one of them is silent for longer
        than `heartbeat`; None: never.
        """
        if os.getpid() != self._process:
            return
        self.core.end()
        self.core.pump()  # rather than wait for the thread
        while (state := self.core.farewell(timeout))[0] != "over":
            how, late = state
            if how == "died":
                self._end_all(self.died())
            elif how == "silent":
                self._end_all(f"nothing was heard from {named(late)} for {heartbeat} s (heartbeat_timeout_seconds)")
            elif how == "late":
                self._end_all(f"{named(late)} did not end within {timeout} s (shutdown_timeout_seconds){self.whereabouts(late)}")
            time.sleep(5e-3)
            self.core.pump()
        ends = time.monotonic() + 5
        while not self.core.is_sent() and time.monotonic() < ends:
            time.sleep(1e-3)
            self.core.pump()
        self.stop()

    def stop(self):
        """Ends the threads."""
        self._stop.set()
        self._thread.join(5)
        self.core.stop()

    def _end_all(self, why):
        """Ends all processes, because the others do not end."""
        sys.stderr.write(f"ferrax: {why}; process {self.rank} of {self.size}, which has come to its end, ends all\n")
        self.abort()

    def abort(self):
        """Ends all processes."""
        sys.stderr.flush()
        sys.stdout.flush()
        time.sleep(LOOK)  # lets the launcher read the output before it writes its own
        self._mpi.COMM_WORLD.Abort(1)

    def on_terminate(self):
        """Makes the report of a termination signal name a process that has died: launchers terminate
        the others then.
        """
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return

        def ended(number, frame):
            if os.getpid() == self._process:
                self.look()
                gone = self.died()
                sys.stderr.write(f"ferrax: process {self.rank} of {self.size} is ended by its launcher{': ' + gone if gone else ''}{user_line()}\n")
                sys.stderr.flush()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, ended)


def first_lines(text):
    """The beginning of a call's program, as the end of a message."""
    if text is None:
        return ""
    lines = text.splitlines()
    return "\n  " + "\n  ".join(x.strip() for x in lines[:3]) + ("\n  .." if len(lines) > 3 else "")
