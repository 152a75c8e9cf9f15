"""What the first call of a public function costs in a fresh process, with what it imports and compiles; goals: a median of 2 ms, 20 ms at most.

A process imports the library, makes the operands, and forks for every function: each child calls one, once. `--calls N` lists the N slowest.
"""

import argparse
import compileall
import os
import pathlib
import signal
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
import ferrax
import numpy as np
from golden import result_types

GOALS = {"median": 2.0, "worst": 20.0}  # ms


def calls():
    """One call of each function, and all the other forms of calls."""
    return [text for text, _ in result_types.calls()]


def names():
    """What the calls read, imported on demand, as a program would."""
    env = {"jax": ferrax, "np": np, "n": ferrax.numpy, "nn": ferrax.nn, "sp": ferrax.scipy.special, "st": ferrax.scipy.stats, "lax": ferrax.lax}
    a = ferrax.numpy.asarray(np.array([[0.2, 0.4], [0.6, 0.8]], np.float32))
    return {**env, "a": a, "b": ferrax.numpy.asarray(np.array([[0.3, 0.5], [0.7, 0.9]], np.float32))}


def first(text, env, clock):
    """Milliseconds of the first call in a child of this process; None where it raises."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        took = -1.0
        signal.alarm(5)  # some of the calls are only ever traced: a loop without an end
        try:
            code = compile(text, "<call>", "eval")
            start = clock()
            ferrax.block_until_ready(eval(code, env))
            took = clock() - start
        finally:
            os.write(write, struct.pack("d", took))
            os._exit(0)
    os.close(write)
    data = os.read(read, 8)
    os.close(read)
    os.waitpid(child, 0)
    took = struct.unpack("d", data)[0] if data else -1.0
    return None if took < 0 else 1e3 * took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many is a call's figure")
    parser.add_argument("--cpu", action="store_true", help="processor time in place of the clock's, for a busy machine")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    # As pip leaves a package: whether this environment writes bytecode is not what is asked.
    compileall.compile_dir(pathlib.Path(ferrax.__file__).parent, quiet=2)
    env, times = names(), {}
    for text in calls():
        rounds = [t for t in (first(text, env, clock) for _ in range(options.rounds)) if t is not None]
        if rounds:
            times[text] = min(rounds)
    ordered = sorted(times, key=times.get, reverse=True)
    figures = {"median": float(np.median(list(times.values()))), "worst": times[ordered[0]]}
    print(f"{len(times)} first calls of float32 operands, in processes of their own:")
    for name, value in figures.items():
        print(f"  {name:7} {value:6.2f} ms   goal {GOALS[name]:g} ms{'' if value <= GOALS[name] else '   MISSED'}")
    for text in ordered[: options.calls]:
        print(f"  {times[text]:7.2f} ms   {text}")


if __name__ == "__main__":
    main()
