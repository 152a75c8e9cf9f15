"""Child processes of tests: one that does not end in time leaves the stacks of all its threads, and those of its own children, before it is killed.

    done = children.run([sys.executable, "-c", code], timeout=60)  # as subprocess.run, with its output as text

Children inherit `PYTHONFAULTHANDLER` from the tests, so that SIGABRT makes them print where each thread is.
"""

import os
import pathlib
import shutil
import signal
import subprocess

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
