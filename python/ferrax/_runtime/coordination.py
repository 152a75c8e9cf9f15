"""Names that the processes of a run share: values by key, and barriers. Threads may use them while
the program's own calls run.

    client = coordination.client()
    client.key_value_set("checkpoint/7", "written")
    client.wait_at_barrier("checkpoint/7", 60_000)

Process 0 holds them and serves the others over TCP: on its loopback interface where all processes
share a host. Requests carry a secret that the processes received by MPI.

Invariant: a wait ends within its time limit, and a barrier ends in the same way for all of its
processes: it is passed, or all get the same error.
"""

import json
import logging
import multiprocessing.connection
import os
import secrets
import socket
import threading
import time

from ..errors import JaxRuntimeError

logger = logging.getLogger("ferrax.distributed")

GRACE = 30.0  # seconds by which an answer may exceed the requested time limit
KEPT = 4096  # how many failed barriers are kept, for the processes that arrive later
REQUESTS = frozenset({"set", "get", "try_get", "increment", "delete", "below", "meet"})

_client = None


def client():
    """This process's client; None where the run is one process."""
    return _client


def _failed(kind, text):
    return JaxRuntimeError(f"{kind}: {text}")


# ---------------------------------------------------------------- the store of process 0


class Store:
    """Values by key, and barriers, of a run of `size` processes.

    Any thread may call its methods.
    """

    def __init__(self, size):
        self.size = size
        self._changed = threading.Condition()
        self._values = {}
        self._rounds = {}  # how often each process has come to each barrier
        self._open, self._failed = {}, {}  # barriers by name and round

    def set(self, key, value, overwrite):
        """Sets a value. Raises JaxRuntimeError if there is one and `overwrite` is False."""
        key = _path(key)
        with self._changed:
            if key in self._values and not overwrite:
                raise _failed("ALREADY_EXISTS", f"key {key} already exists.")
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key, seconds):
        """Waits for a value, and returns it. Raises JaxRuntimeError after `seconds`."""
        key = _path(key)
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, min(seconds, threading.TIMEOUT_MAX)):
                raise _failed("DEADLINE_EXCEEDED", f"GetKeyValue() timed out with key: {key} and duration: {round(seconds * 1000)}ms")
            return self._values[key]

    def try_get(self, key):
        """Returns a value. Raises JaxRuntimeError if there is none."""
        key = _path(key)
        with self._changed:
            if key not in self._values:
                raise _failed("NOT_FOUND", f"Config key {key} not found.")
            return self._values[key]

    def increment(self, key, by):
        """Adds `by` to a number and returns the sum. A missing value counts as 0."""
        key = _path(key)
        with self._changed:
            before = self._values.get(key, "0")
            try:
                after = int(before) + by
            except ValueError:
                text = before.encode("latin-1").decode(errors="replace")
                raise _failed("FAILED_PRECONDITION", f'Failed to parse value "{text}" as an integer.') from None
            self._values[key] = str(after)
            self._changed.notify_all()
            return after

    def delete(self, key):
        """Deletes a value and those below it."""
        key = _path(key)
        with self._changed:
            for k in [k for k in self._values if k == key or k.startswith(key + "/")]:
                del self._values[k]

    def below(self, key):
        """Keys and values below a key, sorted."""
        key = _path(key)
        with self._changed:
            return sorted((k, v) for k, v in self._values.items() if k.startswith(key + "/"))

    def meet(self, name, process, members, seconds):
        """Waits until all members have come to the barrier as often as this process. Raises
        JaxRuntimeError after `seconds`, in all processes that come.
        """
        members = frozenset(range(self.size) if members is None else members)
        seconds = min(seconds, threading.TIMEOUT_MAX)
        with self._changed:
            count = self._rounds[name, process] = self._rounds.get((name, process), -1) + 1
            at = name, count
            if at in self._failed:
                raise _failed(*self._failed[at])
            barrier = self._open.setdefault(at, Barrier(members))
            strange = {process, *members} - (barrier.members & frozenset(range(self.size)))
            if strange or members != barrier.members:
                who = min(strange or members ^ barrier.members)
                self._fail(at, "INVALID_ARGUMENT", f"Unexpected task ({who}) that is not in the cluster called the barrier. Barrier Id: {name}::{count}")
            else:
                barrier.here.add(process)
                if barrier.here == members:
                    self._pass(at)
            if not self._changed.wait_for(lambda: barrier.over, seconds):
                missing = sorted(members - barrier.here)
                text = f"Barrier timed out. Id: {name}::{count}. Number of tasks already at the barrier: {len(barrier.here)}/{len(members)}. Missing: {missing}"
                self._fail(at, "DEADLINE_EXCEEDED", text)
            if barrier.error is not None:
                raise _failed(*barrier.error)

    def _pass(self, at):
        (name, count), barrier = at, self._open.pop(at)
        barrier.over = True
        comings = [(name, p) for p in barrier.members]
        if all(self._rounds[c] == count for c in comings):  # no process has come again: the name can be used anew
            for c in comings:
                del self._rounds[c]
            for old in [f for f in self._failed if f[0] == name]:
                del self._failed[old]
        self._changed.notify_all()

    def _fail(self, at, kind, text):
        barrier = self._open.pop(at)
        barrier.over, barrier.error = True, (kind, text)
        self._failed[at] = barrier.error
        if len(self._failed) > KEPT:
            del self._failed[next(iter(self._failed))]
        self._changed.notify_all()


class Barrier:
    """One round of a barrier."""

    def __init__(self, members):
        self.members, self.here, self.over, self.error = members, set(), False, None


def _path(key):
    return "/".join(part for part in key.split("/") if part)


# ---------------------------------------------------------------- between processes


def join(engine, people):
    """Makes this process's client; all processes of the run call this together."""
    global _client
    place, store = b"", None
    if engine.rank == 0:
        store = Store(engine.size)
        place = json.dumps(serve(store, alone=len({p["host"] for p in people}) == 1)).encode()
    place = json.loads(engine.broadcast("distributed.initialize: where process 0 answers", 0, place))
    secret = bytes.fromhex(place["secret"])
    _client = Client(engine.rank, engine.size, Service(place["addresses"], secret, store).ask, int.from_bytes(secret[:6]))


def serve(store, alone):
    """Answers requests by threads of this process; gives the addresses and the secret for them."""
    secret = secrets.token_bytes(32)
    listener = multiprocessing.connection.Listener(("127.0.0.1" if alone else "", 0), backlog=128, authkey=secret)
    threading.Thread(target=_accept, args=(listener, store), name="ferrax coordination", daemon=True).start()
    port = listener.address[1]
    hosts = ["127.0.0.1"] if alone else _addresses()
    return {"addresses": [[host, port] for host in hosts], "secret": secret.hex()}


def _addresses():
    """The addresses at which other hosts may reach this one, the likeliest first."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing: it makes the system choose the outgoing interface
            found.append(s.getsockname()[0])
        except OSError:
            pass
    name = socket.gethostname()
    try:
        found += [x[4][0] for x in socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)]
    except OSError:
        pass
    outside = [a for a in dict.fromkeys(found) if not a.startswith("127.")]
    return [*outside, name, "127.0.0.1"]


def _accept(listener, store):
    while True:
        try:
            connection = listener.accept()
        except (multiprocessing.AuthenticationError, EOFError, OSError) as e:
            logger.warning("a connection to the coordination service was refused: %r", e)
            time.sleep(0.01)
            continue
        threading.Thread(target=_answer, args=(connection, store), name="ferrax coordination", daemon=True).start()


def _answer(connection, store):
    with connection:
        while True:
            try:
                what, *given = json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                return
            try:
                answer = [None, _own(store, what, *given)]
            except JaxRuntimeError as e:
                answer = [str(e), None]
            except Exception as e:  # an invalid request must not end the service
                answer = [f"INTERNAL: {e!r}", None]
            try:
                connection.send_bytes(json.dumps(answer).encode())
            except OSError:
                return


def _own(store, what, *given):
    if what not in REQUESTS:
        raise ValueError(f"unknown request {what!r}")
    return getattr(store, what)(*given)


class Service:
    """Requests to process 0. In process 0 itself they are function calls; in the others each uses a
    connection that no other request uses at the same time.
    """

    def __init__(self, addresses, secret, store):
        self._addresses, self._secret, self._store = [(host, port) for host, port in addresses], secret, store
        self._lock, self._idle, self._process = threading.Lock(), [], os.getpid()

    def ask(self, what, *given):
        """The answer to a request, whose last argument is its time limit in seconds if it waits."""
        if self._process != os.getpid():  # a forked child: connections and store are the parent's
            self._lock, self._idle, self._process, self._store = threading.Lock(), [], os.getpid(), None
        if self._store is not None:
            return _own(self._store, what, *given)
        limit = given[-1] if what in ("get", "meet") else 0
        connection = self._taken()
        try:
            connection.send_bytes(json.dumps([what, *given]).encode())
            if not connection.poll(None if limit > threading.TIMEOUT_MAX / 2 else limit + GRACE):
                raise _failed("UNAVAILABLE", f"process 0 has not answered for {limit + GRACE:.0f} s")
            error, answer = json.loads(connection.recv_bytes())
        except BaseException as e:
            connection.close()
            if isinstance(e, (EOFError, OSError)):
                raise _failed("UNAVAILABLE", "process 0, which holds the keys and barriers of the run, has ended") from e
            raise
        with self._lock:
            self._idle.append(connection)
        if error is not None:
            raise JaxRuntimeError(error)
        return answer

    def _taken(self):
        with self._lock:
            if self._idle:
                return self._idle.pop()
        failures = []
        for address in self._addresses:
            try:
                return multiprocessing.connection.Client(address, authkey=self._secret)
            except (OSError, EOFError, multiprocessing.AuthenticationError) as e:
                failures.append(f"{address[0]}:{address[1]}: {e!r}")
        raise _failed("UNAVAILABLE", "process 0 cannot be reached: " + ", ".join(failures))


class Client:
    """The interface of one process, for any thread. Times are in milliseconds; errors are
    `JaxRuntimeError`s.
    """

    def __init__(self, process, size, ask, run):
        self._process, self._size, self._ask, self._run = process, size, ask, run

    def wait_at_barrier(self, barrier_id, timeout_in_ms, process_ids=None):
        """Waits until all processes, or those named, have come here as often as this one."""
        self._ask("meet", barrier_id, self._process, None if process_ids is None else [int(p) for p in process_ids], timeout_in_ms / 1000)

    def key_value_set(self, key, value, allow_overwrite=False):
        """Sets a value, a string."""
        self.key_value_set_bytes(key, value.encode(), allow_overwrite)

    def key_value_set_bytes(self, key, value, allow_overwrite=False):
        """Sets a value, bytes."""
        self._ask("set", key, bytes(value).decode("latin-1"), bool(allow_overwrite))

    def blocking_key_value_get(self, key, timeout_in_ms):
        """The value of a key, once there is one."""
        return self.blocking_key_value_get_bytes(key, timeout_in_ms).decode()

    def blocking_key_value_get_bytes(self, key, timeout_in_ms):
        """The value of a key as bytes, once there is one."""
        return self._ask("get", key, timeout_in_ms / 1000).encode("latin-1")

    def key_value_try_get(self, key):
        """The value of a key."""
        return self.key_value_try_get_bytes(key).decode()

    def key_value_try_get_bytes(self, key):
        """The value of a key as bytes."""
        return self._ask("try_get", key).encode("latin-1")

    def key_value_increment(self, key, increment):
        """Adds to a number and returns the sum."""
        return self._ask("increment", key, int(increment))

    def key_value_delete(self, key):
        """Deletes a value and all below it."""
        self._ask("delete", key)

    def key_value_dir_get(self, key):
        """Keys below a key, with their values."""
        return [(k, v.decode()) for k, v in self.key_value_dir_get_bytes(key)]

    def key_value_dir_get_bytes(self, key):
        """Keys below a key, with their values as bytes."""
        return [(k, v.encode("latin-1")) for k, v in self._ask("below", key)]

    def get_live_nodes(self, process_ids):
        """The processes that belong to the run, each with a number that differs from run to run.
        All of them are alive: the run ends with the first process that dies.
        """
        return {int(p): self._run * self._size + int(p) for p in process_ids if 0 <= p < self._size}

    def connect(self):
        """Does nothing: a client connects at its first request."""

    def shutdown(self):
        """Does nothing: connections end with the process."""
