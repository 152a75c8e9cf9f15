"""Child processes of tests: one that does not end in time leaves the stacks of all its threads, and those of its own children, before it is killed.

    done = children.run([sys.executable, "-c", code], timeout=60)  # as subprocess.run, with its output as text
    server = children.ForkServer("import numpy as np", env)  # has imported, and forks a child for each program
    done = server.run("print(np.ones(3))", timeout=60)

Children inherit `PYTHONFAULTHANDLER` from the tests, so that SIGABRT makes them print where each thread is.
"""

import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

GRACE = 10  # seconds in which stacks are written


def descendants(pid):
    """The processes below one, those that began last first; none where the system does not list processes."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, below = [], [pid]
    while below:
        below = [child for parent in below for child in children.get(parent, ())]
        found += below
    return found[::-1]


def native_stacks(pid):
    """Where the threads of a process are in machine code, if there is a program that can tell."""
    commands = (["py-spy", "dump", "--native", "--pid", str(pid)], ["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all backtrace 25"])
    for command in commands:
        if shutil.which(command[0]):
            seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if seen.returncode == 0:
                return f"stacks of process {pid} by {command[0]}:\n{seen.stdout}"
    return ""


def abort(pids):
    """Asks processes for their stacks, which end them; gives what else can be seen of them."""
    seen = "".join(native_stacks(pid) for pid in pids)
    for pid in pids:
        try:
            os.kill(pid, getattr(signal, "SIGABRT", signal.SIGTERM))
        except OSError:
            pass  # it has ended meanwhile
    return seen


def communicate(process, timeout):
    """The output of a process that was started with pipes and as text; an AssertionError with its stacks if it takes longer."""
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        below = descendants(process.pid)
        # what starts others, as mpirun does, passes on what they still print
        seen = abort(below or [process.pid])
    try:
        out, err = process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        for pid in (*descendants(process.pid), process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        out, err = process.communicate()
    raise AssertionError(f"the child did not end within {timeout} s\n{seen}\nstdout: {(out or '')[-3000:]}\nstderr: {(err or '')[-12000:]}")


def run(command, *, timeout, env=None, cwd=None, stdin=None):
    """The ended process, with `stdout` and `stderr` as text."""
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = communicate(process, timeout)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class ForkServer:
    """A process that has run `imports`, and forks itself for each program: a child that starts without the time that imports take.

    Imports must leave the process in a state that can be forked: no devices, no threads of its own.
    """

    MAIN = """
def serve(channel):
    import os, socket, struct, warnings
    while files := socket.recv_fds(channel, 1, 3)[1]:
        with warnings.catch_warnings(action="ignore"): # of the threads of linear algebra, which can be forked
            pid = os.fork()
        if pid == 0:
            channel.close()
            for stream in (1, 2):
                os.dup2(files[stream], stream)
            with open(files[0]) as program:
                return program.read()
        for file in files:
            os.close(file)
        channel.sendall(struct.pack("q", pid))
        channel.sendall(struct.pack("q", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    return "" # the tests have ended
import socket, sys
program = serve(socket.socket(fileno=int(sys.argv.pop())))
del serve, socket, sys
exec(compile(program, "<string>", "exec"))
"""

    def __init__(self, imports, env):
        self.channel, there = socket.socketpair()
        with there:
            command = [sys.executable, "-c", f"{imports}\n{self.MAIN}", str(there.fileno())]
            self.process = subprocess.Popen(command, env=env, pass_fds=[there.fileno()])

    def run(self, program, *, timeout):
        """The ended child, with `stdout` and `stderr` as text."""
        with tempfile.TemporaryFile("w+") as code, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code.write(program)
            code.seek(0)
            self.channel.settimeout(60)
            socket.send_fds(self.channel, [b"."], [f.fileno() for f in (code, out, err)])
            pid = self.receive()
            try:
                self.channel.settimeout(timeout)
                status, seen = self.receive(), None
            except TimeoutError:
                seen = abort([*descendants(pid), pid])
                self.end(pid)
            texts = [(f.seek(0), f.read())[1] for f in (out, err)]
        if seen is not None:
            raise AssertionError(f"the child did not end within {timeout} s\n{seen}\nstdout: {texts[0][-3000:]}\nstderr: {texts[1][-12000:]}")
        return subprocess.CompletedProcess(["fork"], status, *texts)

    def receive(self):
        received = self.channel.recv(8, socket.MSG_WAITALL)
        assert len(received) == 8, "the process that forks children has ended"
        return struct.unpack("q", received)[0]

    def end(self, pid):
        """Waits until a child that was aborted has ended, or kills it."""
        try:
            self.channel.settimeout(GRACE)
            self.receive()
        except TimeoutError:
            for each in (*descendants(pid), pid):
                try:
                    os.kill(each, signal.SIGKILL)
                except OSError:
                    pass
            self.receive()

    def close(self):
        self.channel.close()
        communicate(self.process, 60)
