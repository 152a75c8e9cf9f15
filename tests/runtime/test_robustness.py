"""Bad input and hard circumstances, each in a process of its own: it answers with an exception and lives."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

HEADER = """
def caught(f):
    try: return "no error: " + repr(f())
    except Exception as e: return f"{type(e).__name__}: {e}"
"""


CYCLES = """
import numpy as np
cycle = []
cycle.append(cycle)
deep = 1.0
for _ in range(100_000): deep = [deep]
class Endless:
    def __iter__(self): yield self
x = jnp.ones(3)
"""


@pytest.mark.ours
@pytest.mark.parametrize("given", ["cycle", "deep", "Endless()", "np.longdouble(1)", "(np.clongdouble(1),)"])
def test_containers_that_hold_themselves_are_refused(forked_child, given):
    """As a parameter, an argument, an index, an axis, a shape: recursion in Rust ends as Python's does."""
    calls = [
        "jax.lax.rev_p.bind(x, dimensions={})",
        "jax.lax.rev(x, {})",
        "jnp.asarray({})",
        "x[{}]",
        "x.at[{}].set(1.0)",
        "x.reshape({})",
        "jax.jit(lambda x: x)({})",
    ]
    lines = "".join(f"print(caught(lambda: {call.format(given)})[:60])\n" for call in calls)
    printed = forked_child(HEADER + CYCLES + lines + "print(float(x.sum()))").splitlines()
    assert len(printed) == len(calls) + 1 and printed[-1] == "3.0"
    assert not any(line.startswith("no error") for line in printed), printed


@pytest.mark.ours
@pytest.mark.parametrize(
    "code, words",
    [
        ("jnp.zeros((2**31, 2**31))", "larger than any memory"),
        ("jnp.ones((2**62,))", "larger than any memory"),
        ("jnp.broadcast_to(1.0, (2**40, 2**40))", "larger than any memory"),
        ("jnp.zeros(2**44)", "MemoryError"),
        ("jnp.arange(3).reshape(2, 2)", "cannot reshape array of shape (3,) (size 3) into shape (2, 2) (size 4)"),
        ("jax.vmap(lambda x: x if x > 0 else -x)(jnp.arange(3.0))", "TracerBoolConversionError"),
        ("jax.lax.scan(lambda c, x: (c.astype(int), x), 1.0, jnp.arange(3))", "TypeError"),
    ],
)
def test_an_exception_and_no_abort(forked_child, code, words):
    assert words in forked_child(HEADER + f"print(caught(lambda: {code}))\nprint(float(jnp.ones(3).sum()))")


def test_a_forked_child_computes(child):
    out = child("""
        import os
        x = jnp.ones((200, 200)); f = jax.jit(lambda a: (a @ a).sum())
        f(x).block_until_ready()
        pid = os.fork()
        if pid == 0:
            print("child", float(f(x)), float((x + 1).sum()), flush=True); os._exit(0)
        _, status = os.waitpid(pid, 0)
        print("parent", status, float(f(x)))
        """)
    assert "child 8000000.0 80000.0" in out and "parent 0 8000000.0" in out


@pytest.mark.ours
def test_threads(child):
    out = child("""
        import threading
        f, got = jax.jit(lambda x: x * 2), []
        run = lambda: got.append(float(f(3.0) + jnp.ones(4).sum()))
        threads = [threading.Thread(target=run) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(got)
        """)
    assert out.strip() == str([10.0] * 8)


@pytest.mark.ours
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_an_interrupt_ends_a_long_run():
    code = textwrap.dedent("""
        import signal
        import ferrax as jax, ferrax.numpy as jnp
        from ferrax import lax
        def interrupt(_, frame):                     # a signal before or after the wait is not what is tested
            if frame.f_code.co_name == "block_until_ready": raise KeyboardInterrupt
        signal.signal(signal.SIGINT, interrupt)
        f = jax.jit(lambda x: lax.while_loop(lambda v: v[0] < 2 * 10**9, lambda v: (v[0] + 1, jnp.sin(v[1])), (x, 1.0)))
        y = f(0)
        print("running", flush=True)
        try: jax.block_until_ready(y)
        except KeyboardInterrupt: print("interrupted", float(jax.jit(lambda x: x + 1)(1.0)))
        """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "running\n"
        deadline = time.monotonic() + 60
        while p.poll() is None and time.monotonic() < deadline:
            p.send_signal(signal.SIGINT)  # until it is inside the wait
            try:
                p.wait(0.5)
            except subprocess.TimeoutExpired:
                pass
        assert p.stdout.read() == "interrupted 2.0\n" and p.returncode == 0


@pytest.mark.ours
def test_jit_in_a_loop_holds_no_memory(child):
    out = child("""
        import resource
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(300): jax.jit(lambda x: x + 1)(1.0)
        before = peak()
        for i in range(1500): jax.jit(lambda x: x + 1)(1.0)
        print(peak() - before)
        """)
    assert int(out) < 8192  # KiB; a leak of one trace a turn would be several times this


@pytest.mark.parametrize(
    "program",
    [
        "jnp.zeros((2**40,))",
        "jnp.ones((2**40,)) + 1",
        "jax.jit(lambda: jnp.ones((2**40,)))().block_until_ready()",
        "jnp.outer(jnp.ones(2**22), jnp.ones(2**22)).block_until_ready()",
    ],
)
def test_more_than_the_machine_has_is_an_error(program):
    """Terabytes are refused before they are promised: nothing is killed, and the process goes on."""
    code = f"""
import ferrax as jax, ferrax.numpy as jnp
try:
    {program}
except (MemoryError, RuntimeError) as e:
    print("refused", "memory" in str(e))
print(float(jnp.ones(3).sum()))
"""
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (r.returncode, r.stdout) == (0, "refused True\n3.0\n"), r.stdout + r.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
@pytest.mark.parametrize(
    "program",
    [
        "jnp.sort(x)",
        "jnp.argsort(x)",
        "jax.lax.sort((x, x, x), num_keys=2)[0]",
        "(x[:, None] * jnp.ones(8)).sum(1)[jnp.argsort(x)]",
        "jnp.array(np.asarray(x + 1))",
    ],
)
def test_memory_that_is_refused_is_an_error(program):
    """The system gives no more: what a run asks for is refused with the bytes it wanted, and nothing aborts."""
    code = f"""
import resource
import ferrax as jax, ferrax.numpy as jnp, numpy as np
n = 1 << 24
x = jnp.arange(n, dtype=jnp.float32).block_until_ready()
for small in (jnp.arange(8.0), jnp.arange(300000.0)):  # the pool of threads, and all code, stand
    jnp.sort(small), jnp.argsort(small).block_until_ready()
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for room in range(20, 400, 20):
    resource.setrlimit(resource.RLIMIT_AS, (held + (room << 20), resource.RLIM_INFINITY))
    try:
        {program}.block_until_ready()
    except (MemoryError, RuntimeError) as e:
        assert "bytes" in str(e) or "memory" in str(e).lower(), e
        print("refused")
    else:
        break  # that is room enough
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(float(jnp.ones(3).sum()))
"""
    # addresses that the allocator has reserved count as held, and would be used first
    limits = {"FERRAX_NUM_THREADS": "2", "MIMALLOC_ARENA_RESERVE": "0"}
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env={**os.environ, **limits})
    lines = r.stdout.split()
    assert (r.returncode, lines[0], lines[-1]) == (0, "refused", "3.0"), r.stdout + r.stderr
