"""Processes of a run under MPI for a given time: random programs in step, with interrupts, failing callbacks, and processes that are killed.

    python tests/soak_processes.py --seconds 60 --processes 4 --devices 2

Rounds of some seconds follow each other. In each one all processes call the same random programs (`process_programs.py`). By mode, in addition:

- raise: a callback raises in one of them; all go on with the next program.
- shaken: one of them is interrupted while it waits for another one, again and again; all go on with the next program.
- interrupt, caught: one is interrupted anywhere, once. If it does not leave its program as all others do, they run different programs from then on and must be told so.
- kill: one ends by `kill -9`. The others must be gone in ten seconds (`--gone`), and one, or the launcher, must have named it.

Invariant: a wrong value, an error without a cause, a process that is left, and two minutes in which no process completes a program, although there are cores for them, are failures.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np

STILL = 120  # seconds without a completed program, all processes asleep or at work, after which a round hangs: those in which they wait for a core do not count


def inside(args):
    """What each process does in a round."""
    import ferrax as jax
    from ferrax.experimental import multihost_utils
    from process_programs import check

    jax.distributed.initialize()
    me, told, begun, counts = jax.process_index(), 0.0, time.monotonic(), {"calls": 0, "raised": 0, "interrupts": 0}
    print(f"pid {os.getpid()} is {me}", flush=True)
    r = np.random.default_rng(args.seed)
    victim, at = int(r.integers(jax.process_count())), float(r.random()) * args.seconds
    if args.mode in ("interrupt", "caught", "kill") and me == victim:

        def strike():
            print(f"strikes {me}", flush=True)
            if args.mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Timer(at, strike).start()
    late = args.seconds + (3 if args.mode in ("interrupt", "caught", "kill") else 0)  # it strikes while all are at work
    while np.asarray(multihost_utils.process_allgather(time.monotonic() - begun)).max() < late:
        if time.monotonic() - told > 1:
            told = time.monotonic()
            print(f"at {counts['calls']}", flush=True)
        try:
            if args.mode == "shaken" and r.random() < 0.8:
                counts["interrupts"] += shake(jax, r, me)
            elif args.mode == "raise" and r.random() < 0.2:
                refuse(jax, int(r.integers(jax.process_count())) == me)
            else:
                problems = check(jax, int(r.integers(1 << 30)))
                assert not problems, problems
        except KeyboardInterrupt:
            if args.mode != "caught":
                raise
        except Exception as e:
            if not re.search("meant|given up", str(e)) or args.mode != "raise":
                raise
            counts["raised"] += 1
        counts["calls"] += 1
    print("counted", " ".join(f"{k}={v}" for k, v in counts.items()), flush=True)


def refuse(jax, bad):
    """A call with a callback that raises in one process."""
    from ferrax.experimental import io_callback
    from ferrax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    a = jax.device_put(np.arange(4.0 * jax.device_count(), dtype=np.float32), NamedSharding(mesh, P("x")))

    def called(x):
        if bad:
            raise ValueError("meant")
        return x

    jax.jit(lambda a: (a * io_callback(called, jax.ShapeDtypeStruct((), a.dtype), a.sum())).sum())(a).block_until_ready()


def shake(jax, r, me):
    """A program that one process waits for while another one has not begun it; whether this process was interrupted while it waited."""
    from ferrax.sharding import NamedSharding, PartitionSpec as P

    n = jax.device_count()
    mesh = jax.make_mesh((n,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    a = jax.device_put(np.arange(4.0 * n, dtype=np.float32), NamedSharding(mesh, P("x")))
    victim, late = (int(k) for k in r.permutation(jax.process_count())[:2])
    pause = 0.05 + 0.3 * float(r.random())
    seconds = pause * float(r.random())
    if me == late:
        time.sleep(pause)
    made = jax.jit(lambda a: (a / a.sum(), a.max()))(a)
    if me != victim:
        try:
            jax.block_until_ready(made)
        except Exception as e:
            if "given up" not in str(e):
                raise
        return False
    end = threading.Event()

    def send():
        end.wait(seconds)
        while not end.wait(0.02):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    armed = []

    def interrupt(number, frame):
        if armed.pop() if armed else False:
            raise KeyboardInterrupt

    before, sender = signal.signal(signal.SIGINT, interrupt), threading.Thread(target=send)
    sender.start()
    try:
        try:
            armed.append(True)
            jax.block_until_ready(made)
        finally:
            armed.clear()
    except KeyboardInterrupt:
        return True
    finally:
        end.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
    return False


def lives(pid):
    """Whether a process runs."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


MODES = ["calm", "raise", "shaken", "interrupt", "caught", "kill"]


class Stillness:
    """How long a process and its descendants have slept, or how much they have computed, since something was heard of them."""

    def __init__(self, pid):
        self.pid, self.heard, self.looked = pid, None, time.monotonic()

    def seconds(self, heard):
        """Seconds asleep or of computation since the time `heard` changed."""
        now, (running, used) = time.monotonic(), self._state()
        if heard != self.heard:
            self.heard, self.asleep, self.used = heard, 0.0, used
        self.asleep += 0.0 if running else now - self.looked
        self.looked = now
        return max(self.asleep, used - self.used)

    def _state(self):
        """Whether one of them has something to do, and the processor time that all have used."""
        stats = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                stats[int(path.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
        family, grown = {self.pid}, True
        while grown:
            more = {p for p, (parent, _) in stats.items() if parent in family} - family
            family, grown = family | more, bool(more)
        running = False
        for path in (t for p in family for t in pathlib.Path(f"/proc/{p}/task").glob("*/stat")):
            with contextlib.suppress(OSError):
                running |= path.read_text().rpartition(")")[2].split()[0] in "RD"
        return running, sum(stats[p][1] for p in family if p in stats) / os.sysconf("SC_CLK_TCK")


# What ends a round after a strike: the cause, in the words of one of the processes, or of a launcher that saw it first and ended them.
CAUSES = {
    "kill": r"process \d+ \(pid \d+ on .*\) has died|process rank \d+ with PID \d+ on node \S+ exited on\s+signal 9",
    "interrupt": r"KeyboardInterrupt|given up|has ended",
    "caught": r"given up|run different programs|has ended|KeyboardInterrupt",
}


def play(args, mode, seed, seconds):
    """A round: a text of its failures, and the counts of its processes."""
    from processes import command

    run, env = command(args.processes, args.devices)
    path = str(pathlib.Path(__file__).parent)
    env = {**env, "PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], path])}
    line = [*run, __file__, "--inside", "--mode", mode, "--seed", str(seed), "--seconds", str(seconds)]
    started = subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    said, errors, struck, heard = [], [], [None], [time.monotonic()]

    def listen():
        for text in started.stdout:
            said.append(text)
            heard[0] = time.monotonic()
            if "strikes" in text:
                struck[0] = time.monotonic()

    readers = [threading.Thread(target=listen), threading.Thread(target=lambda: errors.extend(started.stderr))]
    for x in readers:
        x.start()
    died, looked, still = None, 0.0, Stillness(started.pid)
    while started.poll() is None:
        time.sleep(0.05)
        if mode == "kill" and struck[0] and died is None:
            told = "".join(said)
            victim = re.search(r"strikes (\d+)", told)[1]
            died = None if lives(re.search(rf"pid (\d+) is {victim}\b", told)[1]) else time.monotonic()
        if time.monotonic() - looked < 0.5:
            continue
        looked = time.monotonic()
        if still.seconds(heard[0]) > STILL:
            os.killpg(started.pid, signal.SIGKILL)
            return f"{mode} {seed}: hangs\n{''.join(said)}{''.join(errors)}", collections.Counter(hangs=1)
    # a machine under load kills later than it says so
    took = time.monotonic() - (died or (struck[0] if mode != "kill" else None) or time.monotonic())
    for x in readers:
        x.join()
    told = "".join(said) + "".join(errors)
    counts = collections.Counter(strikes=told.count("strikes"))
    for name, n in re.findall(r"(calls|raised|interrupts)=(\d+)", told):
        counts[name] += int(n)
    time.sleep(0.2)
    left = [pid for pid in re.findall(r"pid (\d+)", "".join(said)) if lives(pid)]
    if left:
        return f"{mode} {seed}: processes {left} are left\n{told}", counts
    if struck[0] is None or (mode == "caught" and started.returncode == 0):
        return ("" if started.returncode == 0 else f"{mode} {seed}: exit status {started.returncode}\n{told}"), counts
    if took > args.gone or not re.search(CAUSES[mode], told):
        return f"{mode} {seed}: ended {took:.1f} s after the strike, without its cause?\n{told}", counts
    return "", counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", default="")
    parser.add_argument("--gone", type=float, default=10, help="seconds in which all processes end after one is killed; more on a machine under load")
    parser.add_argument("--tell", action="store_true", help="print the counts after every ten rounds")
    parser.add_argument("--inside", action="store_true", help="be one of the processes")
    args = parser.parse_args()
    if args.inside:
        return inside(args)
    begun, r, rounds, counts, wrong = time.monotonic(), random.Random(args.seed), collections.Counter(), collections.Counter(), []
    modes = []

    def report():
        print(
            f"{time.monotonic() - begun:.0f} s, rounds {dict(rounds)}, {counts['calls']} programs counted by processes that ended by themselves, {counts['interrupts']} interrupts after"
            f" which all went on, {counts['raised']} failed callbacks, {counts['strikes']} interrupts and kills that ended a round, {counts['hangs']} hangs, {len(wrong)} failures",
            flush=True,
        )

    while time.monotonic() - begun < args.seconds:
        if not modes:
            modes = r.sample(MODES, len(MODES))
        mode = args.mode or modes.pop()
        problem, counted = play(args, mode, r.randrange(1 << 30), min(max(args.seconds / 12, 2), 20))
        rounds[mode] += 1
        counts.update(counted)
        if problem:
            wrong.append(problem)
            print(problem, flush=True)
        if args.tell and sum(rounds.values()) % 10 == 0:
            report()
    report()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
