"""Status messages between the processes of a run: which calls each makes, which waits for which, which have ended or died.

A *call* is a program that several processes run together, or an exchange on the host. Each process counts its calls with every other process, and the n-th call of
two processes must be the same for both. A waiting process sends the number and the digest of its call to the process that it waits for. That process compares them with its
own call, at once or when it makes the call, and both report the difference. A thread answers, so that a process responds also while it computes or sleeps.

A process that has finished a call says so, and how many messages it has sent: once these have arrived, a wait for another one is in vain.

Invariant: a wait ends with an error only for a known cause (the process has ended, its call differs, it has given up or finished), or, if nothing is received,
after the timeout.
"""

import collections
import dataclasses
import hashlib
import json
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from .. import _core

LOOK = 0.2  # seconds between two polls of the other processes
ASK = 5.0  # seconds after which a waiting process repeats its request
KEPT = 256  # number of calls with one process whose digests are kept
TEXTS = 32  # number of those calls whose program texts are kept

logger = logging.getLogger("ferrax.distributed")


class Different(RuntimeError):
    """Two processes of a run have begun to run different programs."""


class Gone(RuntimeError):
    """A process that this one waits for has died, has ended, or has abandoned the call."""


@dataclasses.dataclass
class Call:
    """A call made together with another process: its digest, its program's text, and its number in this process."""

    digest: int
    text: Callable | None
    number: int


@dataclasses.dataclass
class Peer:
    """The known state of another process."""

    who: dict
    calls: int = 0  # made with it
    made: dict = dataclasses.field(default_factory=dict)  # Call by index
    asked: dict | None = None  # its last question
    answered: dict | None = None  # its last answer
    heard: float = 0.0
    ended: dict | None = None
    given_up: dict = dataclasses.field(default_factory=dict)  # reason by index
    finished: dict = dataclasses.field(default_factory=dict)  # how many messages it had sent, by the index of a call that it has finished
    done: set = dataclasses.field(default_factory=set)  # the indices of calls that this process has finished
    same: int | None = None  # the index of the last call that it has said to have made as this process did
    died: bool = False
    differs: int | None = None  # the index of the first call known to be another there
    compared: bool = False  # whether its digests were compared with this process's
    texts: dict = dataclasses.field(default_factory=dict)  # of its programs, by index
    informed: int | None = None  # the index of the program that it has of this process's


def here():
    """The facts from which other processes can detect the end of this one."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "space": _read_link("/proc/self/ns/pid"), "begun": _begun(os.getpid())}


def _read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _begun(pid):
    """The start time of a process in ticks; None if it does not exist or is a zombie; "" if the system does not provide it."""
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
    """`, at file:line in function` of the user's code that the main thread runs; empty if there is none."""
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
        return f" The other one's program is not known; this one's:\n{mine}"
    a, b = mine.splitlines(), theirs.splitlines()
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return f" They differ in line {i + 1}:\n  here:  {x.strip()}\n  there: {y.strip()}"
    if len(a) != len(b):
        longer, where = (a, "here") if len(a) > len(b) else (b, "there")
        return f" {where.capitalize()} is more, from line {min(len(a), len(b)) + 1} on:\n  {longer[min(len(a), len(b))].strip()}"
    return f" Both are\n{mine}"


class Watch:
    """The state of the other processes in this process.

    Args:
      mpi: the module `mpi4py.MPI`.
      comm: a communicator for these messages alone.
      people: `here()` of each process.
      lock: held around calls to MPI.
      sent: gives how many messages of exchanges this process has sent to each.
    """

    def __init__(self, mpi, comm, people, lock, sent):
        self._mpi, self._comm, self._lock, self._sent_to = mpi, comm, lock, sent
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._me, self._process = people[self.rank], os.getpid()
        now = time.monotonic()
        self.peers = {p: Peer(who, heard=now) for p, who in enumerate(people) if p != self.rank}
        self._sent, self._numbers, self._places = [], 0, collections.OrderedDict()
        self.waiting = set()  # exchanges that wait
        self.circles = {}  # since when processes wait for each other in a circle, and which, by this process's call
        self._state = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ferrax-watch", daemon=True)

    def begin(self):
        """Starts to watch."""
        self._thread.start()

    # ---- calls

    def call(self, peers, digest, text):
        """The number of a call that this process makes with `peers`."""
        with self._state:
            self._numbers += 1
            number, places = self._numbers, {}
            self._places[number] = places
            while len(self._places) > KEPT * max(1, len(self.peers)):
                self._places.popitem(last=False)
            try:
                for p in peers:
                    self._note(p, Call(digest, text, number), places)
            except BaseException as e:
                self.give_up(number, type(e).__name__)
                raise
        return number

    def _note(self, p, call, places):
        peer = self.peers[p]
        places[p] = index = peer.calls
        peer.made[index] = call
        peer.calls += 1
        if (old := peer.made.get(index - TEXTS)) is not None and peer.differs is None:
            old.text = None
        peer.made.pop(index - KEPT, None)
        if peer.asked is not None:
            self._compare(p)

    def place(self, number, peer):
        """The index of the call of this number among those with a peer; None if it was forgotten."""
        return self._places.get(number, {}).get(peer)

    def give_up(self, number, why):
        """Notifies the peers of a call that this process does not continue it."""
        with self._state:
            for p, index in self._places.get(number, {}).items():
                self._tell(p, {"given_up": index, "why": why, "line": user_line()})

    # ---- messages

    def _tell(self, p, what):
        peer = self.peers[p]
        if peer.died:
            return
        data = json.dumps(what).encode()
        with self._lock:
            self._sent.append((self._comm.Isend([data, self._mpi.BYTE], dest=p, tag=0), data))

    def _heard(self):
        """Processes the messages of others."""
        status = self._mpi.Status()
        while True:
            with self._lock:
                message = self._comm.Improbe(source=self._mpi.ANY_SOURCE, tag=0, status=status)
                if message is None:
                    self._sent = [s for s in self._sent if not s[0].Test()]
                    return
                data = bytearray(status.Get_count(self._mpi.BYTE))
                message.Irecv([data, self._mpi.BYTE]).Wait()  # it has arrived
            with self._state:
                self._take(status.Get_source(), json.loads(data))

    def _take(self, p, what):
        peer = self.peers[p]
        peer.heard = time.monotonic()
        if "waits" in what:
            peer.asked = what
            self._tell(p, {"here": user_line(), "same": self._is_same(p)})
            self._compare(p)
            if what["waits"] in peer.done:
                self._tell(p, {"finished": what["waits"], "sent": self._sent_to()[p]})
            self._hand_on([p], what["call"])
        elif "probe" in what:
            self._hand_on(what["probe"], what["call"])
        elif "circle" in what:
            self.circles.setdefault(what["circle"], (peer.heard, what["path"]))
        elif "ping" in what:
            self._tell(p, {"here": user_line()})
        elif "here" in what:
            peer.answered = what
            if what.get("same") is not None:
                peer.same = what["same"]
        elif "ended" in what:
            peer.ended = what
        elif "given_up" in what:
            peer.given_up[what["given_up"]] = what
        elif "finished" in what:
            peer.finished[what["finished"]] = what["sent"]
        elif "differs" in what:
            index = what["differs"]
            peer.texts[index], peer.compared = what["text"], True
            theirs = {int(i): digest for i, digest in what["digests"].items()}
            other = [i for i, digest in theirs.items() if i in peer.made and peer.made[i].digest != digest]
            self.differ(p, min([index, *other]))

    def _is_same(self, p):
        """The index of the call that a peer waits in, if this process has made it, and no other one, as far as it remembers."""
        peer = self.peers[p]
        index, mine = peer.asked["waits"], peer.made.get(peer.asked["waits"])
        known = index < peer.calls and (mine is None or mine.digest == peer.asked["digest"])
        return index if known else None

    def _compare(self, p):
        """Whether the call that a peer waits in is the one that this process made."""
        peer = self.peers[p]
        mine = peer.made.get(peer.asked["waits"])
        if mine is not None and mine.digest != peer.asked["digest"]:
            self.differ(p, peer.asked["waits"])

    def differ(self, p, index):
        """Records that a call differs on a peer, and sends the peer this process's program, and the digests of the calls before: the first that differs counts."""
        with self._state:
            peer = self.peers[p]
            if peer.differs is None or index < peer.differs:
                peer.differs = index
            if peer.informed is None or peer.differs < peer.informed:
                peer.informed = peer.differs
                digests = {i: call.digest for i, call in peer.made.items() if i <= peer.differs}
                self._tell(p, {"differs": peer.differs, "digests": digests, "text": text_of(peer.made.get(peer.differs))})

    def _hand_on(self, path, number):
        """Forwards a probe to a process that this one waits for, until it reaches one that is not waiting, or returns to its origin."""
        waits = sorted({p for x in list(self.waiting) for p in x.missing()})
        if not waits:
            return
        if path[0] in waits:
            self._tell(path[0], {"circle": number, "path": [*path, self.rank]})
        elif waits[0] not in path:
            self._tell(waits[0], {"probe": [*path, self.rank], "call": number})

    # ---- the thread

    def _run(self):
        while not self._stop.wait(LOOK):
            try:
                self.look()
            except Exception:
                if not self._stop.is_set():
                    logger.exception("process %d cannot watch the others", self.rank)
                return

    def look(self):
        """Receives messages of the other processes and detects which of them have ended."""
        self._heard()
        for number, why in _core.given_up_calls():
            self.give_up(number, why)
        for number in _core.finished_calls():
            self._finished(number)
        for peer in self.peers.values():
            same = (peer.who["host"], peer.who["space"]) == (self._me["host"], self._me["space"])
            if same and not peer.died and peer.ended is None and _begun(peer.who["pid"]) != peer.who["begun"]:
                self._heard()  # its last words
                if peer.ended is None:
                    peer.died = True
                    sys.stderr.write(f"ferrax: {self.died()}, as process {self.rank} of {self.size} sees{user_line()}\n")

    def _finished(self, number):
        """Records that this process has finished a call, and says so to the peers that wait in it."""
        with self._state:
            for p, index in self._places.get(number, {}).items():
                peer = self.peers[p]
                peer.done.add(index)
                peer.done.discard(index - KEPT)
                if peer.asked is not None and peer.asked["waits"] == index:
                    self._tell(p, {"finished": index, "sent": self._sent_to()[p]})

    def ask(self, exchange):
        """Sends a request to the peers that an exchange waits for: whether they make the same call, and their location."""
        with self._state:
            for p in exchange.missing():
                if (mine := self.peers[p].made.get(self.place(exchange.call, p))) is not None:
                    self._tell(p, {"waits": self.place(exchange.call, p), "digest": mine.digest, "call": exchange.call})

    # ---- the end of a wait

    def check(self, exchange):
        """Raises an error if an exchange cannot succeed.

        Raises:
          Gone: a process that it waits for has died, has ended or has abandoned the call.
          Different: one makes another call.
        """
        for p in exchange.missing():
            peer, index = self.peers[p], self.place(exchange.call, p)
            if index is not None and peer.differs is not None and peer.differs <= index:
                self._raise_different(p)
            with self._state:
                if peer.died:
                    raise Gone(f"{self.died()}; process {self.rank} waits for it{user_line()}")
                if index is None:
                    continue
                if (why := peer.given_up.get(index)) is not None:
                    raise Gone(f"process {p} has given up what process {self.rank} waits for{user_line()}. There{why['line']}: {why['why']}")
                if peer.ended is not None and peer.ended["ended"] <= index:
                    what = first_line(peer.made.get(index))
                    raise Gone(
                        f"process {p} has ended after {peer.ended['ended']} calls with process {self.rank}, which waits for it in call {index + 1}{user_line()}:"
                        f" every process must run the same programs in the same order.{what}"
                    )
                sent = peer.finished.get(index, peer.ended and peer.ended["sent"])
            if sent is not None and peer.same == index and exchange.is_in_vain(p, sent):
                what = first_line(peer.made.get(index))
                raise Gone(
                    f"process {p} has finished call {index + 1} with process {self.rank}, which waits in it for a collective that process {p} did not come to"
                    f"{user_line()}: every device must come to the same collectives in the same order, so none may stand under a condition, or in a loop whose"
                    f" number of iterations differs by device.{what}"
                )

    def _raise_different(self, p):
        peer = self.peers[p]
        ends = time.monotonic() + 5
        while not (peer.compared and peer.differs in peer.texts) and time.monotonic() < ends and not peer.died:
            self._heard()
            time.sleep(1e-3)
        text = text_of(peer.made.get(peer.differs))
        detail = first_difference(text, peer.texts.get(peer.differs)) if text is not None else ""
        raise Different(
            f"processes {self.rank} and {p} run different programs in their call {peer.differs + 1}: every process must run the same programs in the same order."
            f"{detail}"
        )

    def died(self):
        """`process 2 (pid 17 on node3) has died` for those that have; empty if all live."""
        gone = [f"process {p} (pid {x.who['pid']} on {x.who['host']})" for p, x in self.peers.items() if x.died]
        return f"{', '.join(gone)} {'have' if len(gone) > 1 else 'has'} died" if gone else ""

    def in_vain(self, exchange, waited, timeout):
        """The reason to abandon an exchange after a long wait; empty while it may still succeed.

        A circle may be temporary, if a process waits in one thread and computes in another: it must persist for the timeout.
        """
        now = time.monotonic()
        if waited <= timeout:
            return ""
        since, path = self.circles.get(exchange.call, (now, ()))
        if now - since > timeout:
            return f"{named(path)} wait for each other"
        silent = [p for p in exchange.missing() if now - self.peers[p].heard > timeout]
        return f"nothing was heard from {named(silent)}" if silent else ""

    def over(self, exchange):
        """Records that an exchange no longer waits."""
        self.waiting.discard(exchange)
        self.circles.pop(exchange.call, None)

    def whereabouts(self, processes):
        """`; process 1 is at file:line in f`, for those that have answered."""
        return "".join(
            f"; process {p} is{self.peers[p].answered['here'].removeprefix(',') or ' in no Python code'}" for p in processes if self.peers[p].answered
        )

    # ---- the end

    def farewell(self, timeout, heartbeat):
        """Notifies the others that this process ends, and waits until all do.

        All are ended where that takes longer than `timeout`, or where one of them is silent for longer than `heartbeat`; None for never.
        """
        if os.getpid() != self._process:
            return
        with self._state:
            for p, peer in self.peers.items():
                self._tell(p, {"ended": peer.calls, "sent": self._sent_to()[p]})
        begun = asked = time.monotonic()
        while late := [p for p, x in self.peers.items() if x.ended is None]:
            self.look()
            if gone := self.died():
                self._end_all(gone)
            now = time.monotonic()
            silent = [p for p in late if heartbeat is not None and now - max(begun, self.peers[p].heard) > heartbeat]
            if silent:
                self._end_all(f"nothing was heard from {named(silent)} for {heartbeat} s (heartbeat_timeout_seconds)")
            if timeout is not None and now - begun > timeout:
                self._end_all(f"{named(late)} did not end within {timeout} s (shutdown_timeout_seconds){self.whereabouts(late)}")
            if now - asked > min(ASK, (heartbeat or math.inf) / 4, (timeout or math.inf) / 4):
                asked = now
                with self._state:
                    for p in late:
                        self._tell(p, {"ping": True})
            time.sleep(5e-3)
        ends = time.monotonic() + 5
        while self._sent and time.monotonic() < ends:
            self._heard()
            time.sleep(1e-3)
        self.stop()

    def stop(self):
        """Ends the thread."""
        self._stop.set()
        self._thread.join(5)

    def _end_all(self, why):
        """Ends all processes, because the others do not end."""
        sys.stderr.write(f"ferrax: {why}; process {self.rank} of {self.size}, which has come to its end, ends all\n")
        self.abort()

    def abort(self):
        """Ends all processes."""
        sys.stderr.flush()
        sys.stdout.flush()
        time.sleep(LOOK)  # the launcher reads it before it writes of its own
        self._mpi.COMM_WORLD.Abort(1)

    def on_terminate(self):
        """From now on, the report of a termination signal names the process that has ended, because launchers terminate the other processes then."""
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


def text_of(call):
    """The text of a call's program; None if it is not known any more."""
    return None if call is None or call.text is None else call.text()


def first_line(call):
    """The beginning of a call's program, as the end of a message."""
    if call is None or call.text is None:
        return ""
    lines = call.text().splitlines()
    return "\n  " + "\n  ".join(x.strip() for x in lines[:3]) + ("\n  .." if len(lines) > 3 else "")
