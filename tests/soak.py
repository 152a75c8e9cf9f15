"""Everything at once, for a given time: threads, programs, callbacks, interrupts, forks, devices, exceptions, cleared caches.

    python tests/soak.py --seconds 60 --seed 0

The main thread is interrupted and forks; the others compute what they can check. Invariant: a wrong value, an error in a thread that was not
interrupted, a thread that stands still, a child that does not end and memory that grows all end the run with an exit status that is not 0.
The draws are a function of the seed; how the threads interleave is not.
"""

import argparse
import collections
import contextlib
import faulthandler
import gc
import logging
import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
import warnings

os.environ.setdefault("FERRAX_NUM_CPU_DEVICES", "3")

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax

STILL = int(os.environ.get("STILL", 60))  # seconds after which a thread is said to hang
GROWTH = 300  # MiB over the level after the first tenth
count = collections.Counter()
beats = {}
failures = []
end = threading.Event()


def expect(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4)


# ---- what the workers do: each returns what it can check

scaled = jax.jit(lambda x, k: jnp.sin(x) * k + x @ x)
looped = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, x))
scanned = jax.jit(jax.grad(lambda x: lax.scan(lambda c, a: (c * a, c), 1.0, x)[0]))
donating = jax.jit(lambda x: x + 1, donate_argnums=0)
mapped = jax.pmap(lambda x: lax.psum(x @ x, "i"), axis_name="i")
scalar = jax.ShapeDtypeStruct((), np.float32)
called = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(jnp.sum(x * 2)), scalar, x))
heard = []
printed = jax.jit(lambda x: (jax.debug.callback(lambda v: heard.append(float(v)), x), x * 3)[1])


def programs(r):
    n = r.choice([3, 40, 200])
    expect(scaled(jnp.ones((n, n)), 2.0)[0, 0], np.sin(1.0) * 2 + n)
    expect(looped(jnp.zeros(n), 60), 2.0)


def gradients(r):
    x = jnp.array([r.uniform(1, 2) for _ in range(5)])
    expect(scanned(x)[0], np.prod(np.asarray(x)[1:]))
    expect(jax.vmap(jax.grad(lambda x: x**3))(x), 3 * np.asarray(x) ** 2)


def callbacks(r):
    n = r.choice([2, 300])
    expect(called(jnp.ones((n, n))), 2 * n * n)
    expect(printed(jnp.float32(n)), 3 * n)


def waiting_callbacks(r):
    go, later = threading.Event(), []

    def read(x):
        go.wait(STILL)
        return np.float32(x + np.asarray(later[0]))

    def hand_on():
        later.append(jax.jit(lambda a: (a @ a).sum())(jnp.ones((50, 50))))
        go.set()

    # the call itself waits for its callback where its input is there
    other = threading.Thread(target=hand_on)
    other.start()
    try:
        x = jax.jit(lambda x: jax.pure_callback(read, scalar, x))(r.choice([jnp.float32(1), looped(jnp.float32(1), 200_000) - 1]))
    finally:
        other.join()
    expect(x, 50.0**3 + 1)


def raising_callbacks(r):
    def bad(x):
        raise ValueError("meant")

    bystander = scaled(jnp.ones((40, 40)), 1.0)
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        float(jax.jit(lambda x: jax.pure_callback(bad, scalar, x))(jnp.float32(1)))
        raise AssertionError("a callback's exception was lost")
    expect(bystander[0, 0], np.sin(1.0) + 40)


def devices(r):
    d = r.choice(jax.devices())
    with d:
        x = jnp.arange(1000.0)
        expect(x.sum(), 499500)
    expect(jax.device_put(x, r.choice(jax.devices())).sum(), 499500)


def pmaps(r):
    n = r.choice([4, 100])
    expect(mapped(jnp.ones((3, n, n)))[2, 0, 0], 3 * n)


def donations(r):
    x = jnp.ones(r.choice([3, 100_000]))
    for _ in range(5):
        x = donating(x)
    expect(x[0], 6)


def exceptions(r):
    for wrong in (lambda: jnp.ones(3) + jnp.ones(4), lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0), lambda: jnp.zeros(2**60)):
        try:
            wrong()
        except (TypeError, ValueError, MemoryError, RuntimeError):
            continue
        raise AssertionError("nothing was refused")


def caches(r):
    if r.random() < 0.1:
        jax.clear_caches()
    if r.random() < 0.1:
        gc.collect()
    f = jax.jit(lambda x: x * 2 + r.random())
    assert 2 <= float(f(1.0)) <= 3


ACTIONS = [programs, gradients, callbacks, waiting_callbacks, raising_callbacks, devices, pmaps, donations, exceptions, caches]


def work(k, seed):
    r = random.Random(seed * 1000 + k)
    while not end.is_set() and not failures:
        action = r.choice(ACTIONS)
        beats[k] = (time.monotonic(), action.__name__)
        try:
            action(r)
        except BaseException:
            failures.append(f"{action.__name__}: {traceback.format_exc()}")
            return
        count["runs"] += 1
    beats.pop(k, None)


# ---- what the main thread does

endless = jax.jit(lambda x: lax.fori_loop(0, 2**31 - 2, lambda i, x: jnp.sin(x) + 1, x))


class Interrupt:
    """A handler of SIGINT that raises once each time it is armed: one that comes late, on a slow machine, meets no waiting thread."""

    armed = False

    def __call__(self, number, frame):
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def wait(self, x):
        """Waits for `x` under a shower of signals: whether that was interrupted."""
        done = threading.Event()

        def send():
            while not done.wait(0.02):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            try:
                self.armed = True
                x.block_until_ready()
            finally:
                self.armed = False
        except KeyboardInterrupt:
            return True
        finally:
            done.set()
            sender.join()
        return False


interrupt = Interrupt()


def interrupted(r):
    """Waits for what never ends, and is interrupted; only that is lost."""
    own = endless(jnp.ones(r.choice([1, 1000])))
    after = jax.jit(lambda x: x.sum() + 1)(own)
    bystander = scaled(jnp.ones((100, 100)), 1.0)
    if not interrupt.wait(own if r.random() < 0.5 else after):
        failures.append("a wait for what never ends has ended")
    count["interrupts"] += 1
    with contextlib.suppress(RuntimeError):  # what was cancelled says so
        if not own.is_ready():  # only `after` was cancelled with the wait: nothing waits for `own`, which would run for ever
            interrupt.wait(own)
    expect(bystander[0, 0], np.sin(1.0) + 100)


def forked(r):
    pending = scaled(jnp.ones((200, 200)), 1.0)
    pid = os.fork()
    if pid == 0:
        signal.alarm(STILL)
        ok = abs(float(pending[0, 0]) - np.sin(1.0) - 200) < 1e-2 and float(jnp.ones((300, 300)).sum()) == 90000
        os._exit(0 if ok else 7)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        failures.append(f"a forked child ended with {status}")
    count["forks"] += 1


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--threads", type=int, default=4)
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()  # what callbacks raise on purpose is logged, and would bury what is not meant
    signal.signal(signal.SIGINT, interrupt)
    r = random.Random(given.seed)
    start = time.monotonic()
    threads = [threading.Thread(target=work, args=(k, given.seed), daemon=True) for k in range(given.threads)]
    for t in threads:
        t.start()
    level = None
    while time.monotonic() - start < given.seconds and not failures:
        faulthandler.dump_traceback_later(2 * STILL, exit=True)
        r.choice([interrupted, forked, lambda r: jax.effects_barrier(), lambda r: time.sleep(0.05)])(r)
        now = time.monotonic()
        for k, (last, doing) in list(beats.items()):
            if now - last > STILL:
                count["hangs"] += 1
                failures.append(f"thread {k} stands still in {doing}")
        if level is None and now - start > given.seconds / 10:
            level = resident()
    end.set()
    faulthandler.dump_traceback_later(2 * STILL, exit=True)
    for t in threads:
        t.join(STILL)
        count["hangs"] += t.is_alive()
    grown = resident() - (level or resident())
    if grown > GROWTH:
        failures.append(f"memory grew by {grown:.0f} MiB")
    print(
        f"soak: seed {given.seed}, {time.monotonic() - start:.0f} s: {count['runs']} runs, {count['interrupts']} interrupts, "
        f"{count['forks']} forks, {count['hangs']} hangs, {grown:+.0f} MiB"
    )
    for f in failures:
        print(f"soak: {f}")
    if count["hangs"]:
        faulthandler.dump_traceback(all_threads=True)
        sys.stdout.flush()
        os._exit(3)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
