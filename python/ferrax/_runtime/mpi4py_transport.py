"""Messages between processes by mpi4py: `_core.MpiTransport` in Python, for MPI libraries that do not
allow calls from several threads or whose functions are not found.

A message is a header (its number, a digest, its length) and bytes. A short message is one piece; a
long one is a header followed by several pieces.

Invariant: nothing here blocks; an abandoned transfer completes by itself.
"""

import struct

HEADER = struct.Struct("<QQQ")
SHORT = 3 << 10  # the bytes of a message that is sent in one piece
PIECE = 1 << 30


class Transport:
    """Messages over one communicator.

    Args:
        mpi: the module `mpi4py.MPI`, initialised.
        comm: the communicator, which nothing else uses.
        tags: the number of tags.
        lock: held around calls to MPI.
    """

    def __init__(self, mpi, comm, tags, lock):
        self.mpi, self.comm, self.lock, self._tags = mpi, comm, lock, tags
        self._sent, self._taken = [0] * comm.Get_size(), [0] * comm.Get_size()
        self.early = {}  # messages that no transfer expects yet, by sender and number
        self.abandoned = []  # requests of abandoned transfers, with their memory

    def begin(self, number, digest, receivers, messages, senders):
        """Starts to send messages, and to receive one from each of `senders`."""
        with self.lock:
            self.abandoned = [x for x in self.abandoned if not x[0].Test()]
            sends = [s for p, message in zip(receivers, messages, strict=True) for s in self._send(p, number, digest, message)]
        return Transfer(self, number, digest, senders, sends)

    def _send(self, peer, number, digest, message):
        header = HEADER.pack(number, digest, len(message))
        self._sent[peer] += 1
        pieces = [header + bytes(message)] if len(message) <= SHORT else [header, *_pieces(message)]
        return [(self.comm.Isend([p, self.mpi.BYTE], dest=peer, tag=self.tag(number)), p, peer) for p in pieces]

    def sent(self):
        """How many messages this process has sent to each."""
        return list(self._sent)

    def taken(self):
        """How many messages this process has taken from each."""
        return list(self._taken)

    def close(self):
        """Stops all exchanges."""

    def tag(self, number):
        """The tag of a message; several numbers may share one."""
        return number % self._tags

    def take(self, peer, tag):
        """Receives a message that has begun to arrive with a tag, whichever transfer it is for; its
        pieces are the next messages with this tag. Returns whether there was one.
        """
        mpi, comm, status = self.mpi, self.comm, self.mpi.Status()
        message = comm.Improbe(source=peer, tag=tag, status=status)
        if message is None:
            return False
        first = bytearray(status.Get_count(mpi.BYTE))
        message.Irecv([first, mpi.BYTE]).Wait()  # it is short, and has arrived
        number, digest, length = HEADER.unpack_from(first)
        if length <= SHORT:
            arrived = digest, memoryview(first)[HEADER.size :], []
        else:
            whole = bytearray(length)
            arrived = digest, whole, [comm.Irecv([p, mpi.BYTE], source=peer, tag=status.Get_tag()) for p in _pieces(whole)]
        self.early[peer, number] = arrived
        self._taken[peer] += 1
        return True


class Transfer:
    """Messages to and from other processes, in transit."""

    def __init__(self, transport, number, digest, senders, sends):
        self._transport, self._number, self._digest, self._senders = transport, number, digest, senders
        self._sends, self._arriving, self._found, self._wrong = sends, {}, {}, []

    def poll(self):
        """The messages in the order of the senders, once all have arrived and this process's own have
        left; else None.
        """
        with self._transport.lock:
            for peer in self._senders:
                self._look(peer)
            self._sends = [s for s in self._sends if not s[0].Test()]
        if self._sends or len(self._found) < len(self._senders):
            return None
        return [self._found[p] for p in self._senders]

    def _look(self, peer):
        known, early = self._arriving, self._transport.early
        if peer in self._found or peer in self._wrong:
            return
        if peer not in known:
            if (peer, self._number) not in early:
                self._transport.take(peer, self._transport.tag(self._number))
            if (peer, self._number) not in early:
                return
            digest, whole, pieces = early.pop((peer, self._number))
            if digest != self._digest:
                self._wrong.append(peer)
                self._keep(whole, pieces)
                return
            known[peer] = whole, pieces
        if all(p.Test() for p in known[peer][1]):
            self._found[peer] = bytes(known.pop(peer)[0])

    def _keep(self, whole, pieces):
        self._transport.abandoned += [(request, whole) for request in pieces]

    def missing(self):
        """The processes that have not sent yet; if all have, those that have not received this
        process's messages yet.
        """
        return [p for p in self._senders if p not in self._found] or sorted({peer for _, _, peer in self._sends})

    def receives_from(self, peer):
        """Whether a message is expected from a process."""
        return peer in self._senders

    def wrong(self):
        """The processes whose message belongs to another program."""
        return list(self._wrong)

    def has_none(self, peer, sent):
        """Whether a process that has sent `sent` messages in all has sent none for this transfer, which
        holds if all of them have arrived.
        """
        with self._transport.lock:
            while self._transport.take(peer, self._transport.mpi.ANY_TAG):
                pass
            self._look(peer)
            known = peer in self._found or peer in self._arriving or peer in self._wrong
            return self._transport.taken()[peer] >= sent and not known

    def cancel(self):
        """Abandons the transfer: pending requests complete by themselves, and their memory is kept
        until then.
        """
        with self._transport.lock:
            self._transport.abandoned += self._sends
            for whole, pieces in self._arriving.values():
                self._keep(whole, pieces)
            self._sends, self._arriving = [], {}


class Wire:
    """Statuses of processes, over a communicator that nothing else uses; each is short.

    Args:
        mpi: the module `mpi4py.MPI`, initialised.
        comm: the communicator.
        lock: held around calls to MPI.
    """

    def __init__(self, mpi, comm, lock):
        self._mpi, self._comm, self._lock = mpi, comm, lock

    def send(self, to, data):
        """Starts to send bytes; returns an object with `Test()`, which keeps them alive."""
        with self._lock:
            return _Sending(self._comm.Isend([data, self._mpi.BYTE], dest=to, tag=0), data, self._lock)

    def take(self, source):
        """The next bytes of a process; None while there are none."""
        status = self._mpi.Status()
        with self._lock:
            message = self._comm.Improbe(source=source, tag=0, status=status)
            if message is None:
                return None
            data = bytearray(status.Get_count(self._mpi.BYTE))
            message.Irecv([data, self._mpi.BYTE]).Wait()  # it is short, and has arrived
        return bytes(data)


class _Sending:
    def __init__(self, request, data, lock):
        self._request, self._data, self._lock = request, data, lock

    def Test(self):
        with self._lock:
            return self._request.Test()


def _pieces(message):
    """A long message in transit."""
    return [memoryview(message)[i : i + PIECE] for i in range(0, len(message), PIECE)]
