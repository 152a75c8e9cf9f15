"""Enqueued runs: waiting, interrupts, forks and the end of the process.

Each program runs in a process of its own under a time limit, which is what fails where something hangs.
"""

import sys

import pytest

pytestmark = [pytest.mark.ours]
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks differ there")

# A scalar that is not there yet when it is returned: a call with callbacks waits for its run unless its inputs are still to come.
PENDING = """
import ferrax
pending = ferrax.jit(lambda x: ferrax.lax.fori_loop(0, 3_000_000, lambda i, y: jnp.sin(y) * 0 + x, jnp.float32(0)))
"""

# An interrupt while `wait()` waits: its handler runs in the main thread's next look up, wherever that is, so it must be inside `wait`.
INTERRUPT = """
import signal, threading, time
from ferrax import lax
endless = jax.jit(lambda x: lax.fori_loop(0, 2**31 - 2, lambda i, x: jnp.sin(x) + 1, x))
def interrupted(wait):
    done = threading.Event()
    def send():
        while not done.wait(0.05): signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    sender = threading.Thread(target=send)
    try:
        sender.start(); wait(); raise AssertionError("the wait was not interrupted")
    except KeyboardInterrupt:
        pass
    finally:
        while True:
            try: done.set(); sender.join(); break
            except KeyboardInterrupt: pass
        try: time.sleep(0)
        except KeyboardInterrupt: pass
def fails(f, words):
    try: f()
    except RuntimeError as e: assert words in str(e), e
    else: raise AssertionError("nothing was raised")
"""


@posix
@pytest.mark.parametrize("wait", ["y.block_until_ready()", "np.asarray(y)", "float(y[0])", "(jax.effects_barrier(), time.sleep(60))"])
def test_after_an_interrupt_other_work_continues(child, wait):
    child(INTERRUPT + f"y = endless(jnp.ones(1000))\ninterrupted(lambda: {wait})\nassert (jnp.ones(3) + 1).tolist() == [2, 2, 2]", timeout=60)


@posix
def test_an_interrupt_cancels_the_awaited_run_and_its_inputs(child):
    child(
        INTERRUPT
        + """
y = endless(jnp.ones(1000))
z = jax.jit(lambda y: (y @ y) + 1)(y)
w = jax.jit(lambda a: a @ a)(jnp.ones((300, 300)))
interrupted(lambda: z.block_until_ready())
assert float(w[0, 0]) == 300            # stood in the queue behind what was cancelled
fails(lambda: np.asarray(z), "cancelled")
fails(lambda: np.asarray(y), "cancelled")
""",
        timeout=60,
    )


@posix
def test_a_run_that_another_thread_awaits_is_not_cancelled(child):
    child(
        PENDING
        + INTERRUPT
        + """
go = threading.Event()
slow = jax.jit(lambda x: jax.pure_callback(lambda x: (go.wait(), x)[1], jax.ShapeDtypeStruct((), np.float32), x))
y = slow(pending(3))
got = []
other = threading.Thread(target=lambda: got.append(float(y)))
other.start(); time.sleep(0.2)          # the other thread most likely waits by now; if not, the next line is what it meets
z = jax.jit(lambda y: y + 1)(y)
interrupted(lambda: z.block_until_ready())
go.set(); other.join()
assert got == [3.0] and float(y) == 3.0
fails(lambda: float(z), "cancelled")
""",
        timeout=60,
    )


@posix
def test_one_long_kernel_is_no_deafness(child):
    child(
        INTERRUPT
        + """
whole = jax.jit(lambda s: jnp.sum(jnp.broadcast_to(s, (1 << 20, 1 << 16))))
y = whole(jnp.float32(1))
interrupted(lambda: y.block_until_ready())
assert float(jax.jit(lambda a: (a @ a).sum())(jnp.ones((100, 100)))) == 1e6
""",
        timeout=60,
    )


@posix
def test_an_interrupt_while_handing_over(child):
    child(
        INTERRUPT
        + """
y = endless(jnp.ones(1000))
f = jax.jit(lambda y: y @ y)
def hand_over():
    kept = [f(y) for _ in range(1000)]
interrupted(hand_over)
interrupted(lambda: y.block_until_ready())
assert float(f(jnp.ones(3))) == 3
""",
        timeout=60,
    )


CALLBACK = (
    PENDING
    + """
import threading
go, later = threading.Event(), []
def read(x):
    go.wait(30)
    return np.float32(x + np.asarray(later[0]))
reading = jax.jit(lambda x: jax.pure_callback(read, jax.ShapeDtypeStruct((), np.float32), x))
total = jax.jit(lambda a: (a @ a).sum())
"""
)


def test_a_callback_may_read_what_was_queued_behind_it(child):
    child(
        CALLBACK
        + """
x = reading(pending(1))
behind = jax.jit(lambda x: x * jnp.ones((300, 300)) @ jnp.ones((300, 300)))(x)
later.append(total(jnp.ones((100, 100))))
go.set()
assert float(x) == 1e6 + 1 and abs(float(behind[0, 0]) / 3e8 - 1) < 1e-5
""",
        timeout=60,
    )


def test_a_callback_that_waits_for_itself_raises(child):
    child(
        CALLBACK
        + """
x = reading(pending(1))
later.append(jax.jit(lambda x: (x * jnp.ones((300, 300)) @ jnp.ones((300, 300))).sum())(x)); go.set()
try: float(x)
except jax.errors.JaxRuntimeError as e: assert "waits for a result that needs the very run" in str(e), e
else: raise AssertionError
assert float(total(jnp.ones((100, 100)))) == 1e6
""",
        timeout=60,
    )


def test_the_main_thread_may_set_what_a_callback_waits_for_after_a_later_result(child):
    child(
        CALLBACK
        + """
later.append(0.0)
x = reading(pending(1))
assert float(total(jnp.ones((100, 100)))) == 1e6    # behind a callback that waits
go.set()
assert float(x) == 1
""",
        timeout=60,
    )


def test_callbacks_compute_and_nest(child):
    child(
        """
f = jax.jit(lambda a: jax.pure_callback(lambda a: np.asarray((a @ a).sum()), jax.ShapeDtypeStruct((), np.float32), a, vmap_method="sequential"))
g = jax.jit(lambda a: jax.pure_callback(lambda a: np.asarray(f(a) + f(a * 2)), jax.ShapeDtypeStruct((), np.float32), a, vmap_method="sequential"))
assert float(g(jnp.ones((100, 100)))) == 5e6
assert float(jax.vmap(g)(jnp.ones((3, 100, 100)))[2]) == 5e6
""",
        timeout=60,
    )


def test_pmaps_of_several_threads(child):
    child(
        """
import threading
f = jax.pmap(lambda x: x @ x + jax.lax.psum(x, "i"), axis_name="i")
x = jnp.ones((2, 120, 120))
got = []
def run():
    for _ in range(60): y = f(x)
    got.append(float(y[1, 0, 0]))
threads = [threading.Thread(target=run) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
assert got == [122.0] * 3, got
""",
        timeout=100,
        NUM_CPU_DEVICES="2",
    )


@posix
def test_a_forked_child_has_pending_results(child):
    child(
        """
import os, warnings
warnings.simplefilter("ignore")
square = jax.jit(lambda a: a @ a)
for n in (512, 20, 640):
    x = square(jnp.ones((n, n)))
    y = square(x)   # n x n of n squared, n times: exact in float32
    pid = os.fork()
    if pid == 0:
        os._exit(0 if float(y[0, 0]) == n**2 * n and float(x[0, 0]) == n and float(square(x / n)[0, 0]) == n else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert float(y[0, 0]) == n**3
""",
        timeout=100,
    )


@posix
def test_a_forked_child_does_not_repeat_effects(child):
    out = child(
        PENDING
        + """
import os, warnings, time
warnings.simplefilter("ignore")
begun = []
def slow(x):
    print("effect", flush=True); begun.append(x); time.sleep(0.3); return x
f = jax.jit(lambda x: jax.experimental.io_callback(slow, jax.ShapeDtypeStruct((), np.float32), x))
x, y = f(pending(1)), f(pending(2))
while not begun: time.sleep(0.01)
pid = os.fork()
if pid == 0:
    for z in (x, y):
        try: float(z)
        except RuntimeError as e: assert "forked" in str(e), e
        else: os._exit(7)
    os._exit(0 if float(f(jnp.float32(4))) == 4 else 8)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert float(x) == 1 and float(y) == 2
""",
        timeout=60,
    )
    assert out.count("effect") == 3


@posix
def test_threads_may_fork_while_others_compute(child):
    child(
        """
import os, threading, warnings
warnings.simplefilter("ignore")
stop = threading.Event()
f = jax.jit(lambda a: jnp.sin(a @ a).sum())
def compute():
    while not stop.is_set(): float(f(jnp.ones((200, 200)))); float(jnp.arange(10.0).sum())
threads = [threading.Thread(target=compute) for _ in range(2)]
for t in threads: t.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0: os._exit(0 if float(jnp.ones(1000).sum() + f(jnp.zeros((200, 200)))) == 1000 else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
for t in threads: t.join()
""",
        timeout=100,
    )


@posix
def test_threads_may_fork_while_others_initialize(child):
    """What a thread of the parent is making when a child is forked, the child makes itself."""
    child(
        """
import logging, os, threading, time, warnings
warnings.simplefilter("ignore")
known, requested = logging.getLogger, threading.Event()
def slow(name):
    requested.set()
    time.sleep(1)
    return known(name)
logging.getLogger = slow
thread = threading.Thread(target=lambda: jax.jit(lambda x: x + 1)(1.0))
thread.start()
assert requested.wait(20)
pid = os.fork()
if pid == 0:
    logging.getLogger = known
    os._exit(0 if float(jax.jit(lambda x: x * 2)(2.0)) == 4 else 7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
thread.join()
""",
        timeout=60,
    )


@posix
def test_threads_may_fork_while_hooks_of_others_run(child):
    """Hooks that were there before ours run between ours and the fork, and give the interpreter away."""
    child(
        """
import threading, warnings
warnings.simplefilter("ignore")
stop = threading.Event()
f = jax.jit(lambda a: jnp.sin(a @ a).sum())
def compute():
    while not stop.is_set(): float(f(jnp.ones((50, 50)))); float(jnp.arange(10.0).sum())
threads = [threading.Thread(target=compute) for _ in range(3)]
for t in threads: t.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0: os._exit(0 if float(jnp.ones(1000).sum() + f(jnp.zeros((50, 50)))) == 1000 else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
for t in threads: t.join()
""",
        first="import os, time\ngive = lambda: time.sleep(0.001)\nos.register_at_fork(before=give, after_in_parent=give, after_in_child=give)",
        timeout=100,
    )


@posix
def test_children_do_not_miss_the_threads_that_were_entering_the_interpreter(child):
    """Callbacks come from threads that the interpreter does not know, which it writes down under a lock that a fork may find taken."""
    child(
        """
import os, threading, warnings
warnings.simplefilter("ignore")
stop = threading.Event()
f = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct((), np.float32), x))
def call():
    while not stop.is_set():
        for y in [f(jnp.float32(i)) for i in range(20)]: float(y)
threads = [threading.Thread(target=call) for _ in range(3)]
for t in threads: t.start()
for _ in range(400):
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
stop.set()
for t in threads: t.join()
""",
        timeout=100,
    )


def test_effects_happen_before_the_process_ends(child):
    out = child(
        """
jax.jit(lambda x: (jax.debug.print("{}", x), x)[1])(jnp.float32(1))
from ferrax import lax
y = jax.jit(lambda x: lax.fori_loop(0, 2**31 - 2, lambda i, x: jnp.sin(x) + 1, x))(jnp.ones(1000))   # not awaited
""",
        timeout=60,
    )
    assert out == "1.0\n"


def test_an_unread_callback_error_is_printed_at_exit(child):
    import subprocess

    code = """
import ferrax as jax
def bad(x): raise ValueError("a sentence of its own")
jax.jit(lambda x: jax.debug.callback(bad, x))(1.0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "a sentence of its own" in done.stderr and "panicked" not in done.stderr


CALLS = {
    "debug": "jax.debug.callback(bad, x)",
    "ordered": "jax.debug.callback(bad, x, ordered=True)",
    "io": "jax.experimental.io_callback(bad, None, x)",
    "ordered io": "jax.experimental.io_callback(bad, None, x, ordered=True)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_barrier_raises_the_error_of_a_callback(child, call):
    child(
        PENDING
        + f"""
def bad(x): raise ValueError("a sentence of its own")
f = jax.jit(lambda x: ({call}, x + 1)[1])
"""
        + """
for _ in range(2):
    f(pending(1))
    try: jax.effects_barrier()
    except jax.errors.JaxRuntimeError as e: assert "a sentence of its own" in str(e)
    else: raise AssertionError("the callback's exception was lost")
jax.effects_barrier()                   # reported once
assert float(jnp.ones(3).sum()) == 3
""",
        timeout=60,
    )


def test_a_captured_scalar_is_the_same_whether_or_not_it_is_ready(jax, jnp):
    s = jax.jit(lambda a: (a @ a).sum())(jnp.ones((800, 800)))
    before = str(jax.make_jaxpr(lambda x: x * s)(1.0))
    s.block_until_ready()
    assert str(jax.make_jaxpr(lambda x: x * s)(1.0)) == before
    small = jnp.float32(1) + 1
    assert str(jax.make_jaxpr(lambda x: x * small)(1.0)) == before


def test_a_finaliser_may_compute_while_caches_are_cleared(child):
    child(
        """
class Noisy:
    def __call__(self, x): return np.asarray(x)
    def __del__(self): jnp.ones(3) + jnp.ones(3); print("finalised")
f = lambda x: jax.pure_callback(Noisy(), jax.ShapeDtypeStruct((), np.float32), x)
assert float(f(jnp.float32(2))) == 2 and float(jax.jit(f)(jnp.float32(2))) == 2
jax.clear_caches()
assert float(f(jnp.float32(2))) == 2
""",
        timeout=60,
    )


@posix
def test_without_threads_the_caller_works(child):
    child(
        """
import os
os.environ["RUST_MIN_STACK"] = str(2**46)   # no thread can have that much
f = jax.jit(lambda a: (jax.debug.print("here"), (a @ a).sum())[1])
assert float(f(jnp.ones((300, 300)))) == 300.0**3
x = jax.jit(lambda a: jax.pure_callback(lambda a: np.asarray(f(a)), jax.ShapeDtypeStruct((), np.float32), a))(jnp.ones((300, 300)))
assert float(x) == 300.0**3
try: jax.block_until_ready(jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.ones(2)))
except RuntimeError as e: assert "thread" in str(e), e
else: raise AssertionError
""",
        timeout=60,
        NUM_CPU_DEVICES="2",
    )


def test_loops_of_unknown_length_run_on_the_calling_thread_while_they_are_brief(child):
    """And can be interrupted, and give the same, when they are not."""
    child(
        INTERRUPT
        + """
count = jax.jit(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, jnp.float32(0))))
count(1)
for n in (3, 3_000_000, 5, 3_000_000, 7, 9, 2): assert int(count(n)[0]) == n
brief = count(3)[1]
assert brief.is_ready()                             # no thread was woken for it
endless = jax.jit(lambda x: lax.while_loop(lambda x: x > 0, lambda x: x * 1.0, x))
for _ in range(2): interrupted(lambda: endless(jnp.ones(())).block_until_ready())
assert int(count(4)[0]) == 4
seen = []
f = jax.jit(lambda n: lax.while_loop(lambda i: i < n, lambda i: jax.pure_callback(lambda i: (seen.append(int(i)), i + 1)[1], jax.ShapeDtypeStruct((), np.int32), i), 0))
assert int(f(3)) == 3 and seen == [0, 1, 2]
""",
        timeout=60,
    )


@posix
def test_a_forked_child_tries_loops_too(child):
    child(
        INTERRUPT
        + """
import os, warnings
warnings.simplefilter("ignore")
count = jax.jit(lambda n: lax.while_loop(lambda i: i < n, lambda i: i + 1, 0))
assert int(count(3)) == 3
pid = os.fork()
if pid == 0:
    long = int(count(20_000_000)) == 20_000_000     # watched by a thread of its own
    os._exit(0 if long and int(count(4)) == 4 else 7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert int(count(5)) == 5
""",
        timeout=60,
    )
