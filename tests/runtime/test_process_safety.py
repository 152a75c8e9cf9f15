"""Input that has killed processes elsewhere: here each gives an exception, and the process lives.

Every test runs in a process of its own, whose exit status is checked.
"""

import os
import signal
import subprocess
import sys

import pytest

REFUSED = """
def refused(f, *kinds):
    try:
        f()
    except kinds as error:
        assert str(error), "an error says what is wrong"
    else:
        raise AssertionError("nothing was refused")
    assert float(jnp.ones(3).sum()) == 3.0, "and the library goes on"
"""


@pytest.mark.ours
@pytest.mark.parametrize("shape", ["(2**31, 2**31)", "(2**33, 2**33)", "(2**62,)", "(2**62, 4)"])
@pytest.mark.parametrize("make", ["jnp.zeros(shape)", "jnp.broadcast_to(jnp.ones(()), shape) + 1", "jax.jit(lambda: jnp.ones(shape))()"])
def test_sizes_beyond_memory(forked_child, shape, make):
    forked_child(REFUSED + f"shape = {shape}\nrefused(lambda: {make}, ValueError, TypeError, MemoryError, RuntimeError, OverflowError)")


@pytest.mark.ours
@pytest.mark.parametrize(
    "program",
    [
        "jnp.eye(2**40)",
        "jnp.tile(jnp.ones(2**10), 2**60)",
        "jnp.repeat(jnp.ones(2**10), 2**60)",
        "jnp.pad(jnp.ones(3), (2**62, 2**62))",
        "jnp.arange(2**60)",
        "jnp.full((2**31, 2**31), 1)",
        "jnp.linspace(0, 1, 2**60)",
    ],
)
def test_results_beyond_memory(forked_child, program):
    forked_child(REFUSED + f"refused(lambda: {program}, ValueError, TypeError, MemoryError, RuntimeError, OverflowError)")


def test_a_shape_beyond_memory_can_be_reasoned_about(forked_child):
    forked_child("assert jax.eval_shape(lambda: jnp.zeros((2**20, 2**20))).shape == (2**20, 2**20)")


@pytest.mark.parametrize(
    "program, kinds",
    [
        ("jnp.arange(6).reshape(4, 2)", "TypeError"),
        ("jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1])", "ValueError"),
        ("jax.jit(lambda x: x if x > 0 else -x)(1.0)", "jax.errors.TracerBoolConversionError"),
        ("jax.tree_util.tree_map(lambda a, b: a, {'x': 1}, {'y': 1})", "ValueError"),
        ("jax.lax.scan(lambda c, x: (c * 1.5, None), jnp.int32(1), None, length=3)", "TypeError"),
        ("(kept := [], jax.jit(lambda x: (kept.append(x), x)[1])(1.0), kept[0] + 1)", "jax.errors.UnexpectedTracerError"),
        ("(a := jnp.ones(3), jax.jit(lambda x: x + 1, donate_argnums=0)(a), a + 1)", "RuntimeError"),
    ],
)
def test_wrong_programs(forked_child, program, kinds):
    forked_child(REFUSED + f"refused(lambda: {program}, {kinds})")


def test_strict_promotion(forked_child):
    forked_child(
        REFUSED + "jax.config.update('jax_numpy_dtype_promotion', 'strict')\nrefused(lambda: jnp.ones(3) + jnp.ones(3, jnp.int32), ValueError, TypeError)"
    )


@pytest.mark.parametrize("run", ["f(1.0)", "jax.jit(f)(1.0)", "jax.jit(jax.vmap(f))(jnp.ones(3))"])
def test_a_callback_that_raises(forked_child, run):
    forked_child(
        REFUSED
        + f"""
def boom(x):
    raise KeyError("from the callback")
f = lambda x: jax.pure_callback(boom, jax.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential")
try:
    jax.block_until_ready({run})
except Exception as error:
    assert "from the callback" in str(error) or "from the callback" in repr(error.__cause__)
else:
    raise AssertionError("the error was lost")
assert float(jnp.ones(3).sum()) == 3.0
"""
    )


def test_an_exception_of_the_traced_function_is_unchanged(child):
    child(
        """
class Mine(Exception): pass
def f(x):
    raise Mine("mine")
for g in (f, jax.jit(f), jax.grad(f), jax.vmap(f), jax.jit(jax.grad(f)), lambda x: jax.lax.scan(lambda c, y: f(c), x, None, length=2)):
    try:
        g(jnp.ones(1) if g is not f else 1.0)
    except Mine as error:
        assert str(error).startswith("mine")
    else:
        raise AssertionError("the error was lost")
"""
    )


@pytest.mark.ours
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_computes(child):
    child(
        """
import os, warnings
warnings.simplefilter("ignore")
x = jnp.arange(100_000.0)
f = jax.jit(lambda x: jnp.sum(x * 2 + 1))
assert float(f(x)) > 0
pid = os.fork()
if pid == 0:
    ok = float(f(x)) > 0 and float((jnp.ones((200, 200)) @ jnp.ones((200, 200))).sum()) == 200.0 ** 3
    os._exit(0 if ok else 7)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
""",
        timeout=60,
    )


@pytest.mark.ours
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_an_interrupt_ends_a_long_loop():
    """The plan says when it runs, the loop in it would take hours, and the interrupt must end it as KeyboardInterrupt."""
    code = """
import ferrax as jax, ferrax.numpy as jnp
@jax.jit
def f(x):
    jax.debug.callback(lambda: print("running", flush=True))
    return jax.lax.fori_loop(0, 2**31 - 2, lambda i, x: jnp.sin(x) + 1, x)
try:
    jax.block_until_ready(f(jnp.ones(1000)))
except KeyboardInterrupt:
    assert float(jnp.ones(3).sum()) == 3.0
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "running\n"
            try:
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                raise AssertionError("the loop did not stop") from None
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "interrupted\n"), err


def test_numpy_memory_is_not_shared_with_later_writes(child):
    child(
        """
a = np.arange(10, dtype=np.float32)
x = jnp.array(a)
a[:] = -1
assert np.asarray(x).tolist() == list(range(10))
"""
    )


def test_unaligned_and_strided_views(child):
    child(
        """
raw = bytes(range(256)) * 8
view = np.frombuffer(raw, np.float32, offset=1, count=100)
same = lambda x, y: np.asarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
assert same(jnp.asarray(view), view)
m = np.arange(24, dtype=np.int32).reshape(4, 6)
for v in (m.T, m[::-1], m[:, ::2], m[1:1], np.broadcast_to(m[0], (3, 6)), np.asfortranarray(m)):
    assert same(jnp.asarray(v), v)
"""
    )


def test_deep_programs_do_not_exhaust_the_stack(child):
    child(
        """
import threading
def run():
    def f(x):
        for _ in range(20_000):
            x = x + 1.0
        return x
    assert len(jax.make_jaxpr(f)(0.0).jaxpr.eqns) == 20_000
threading.stack_size(512 * 1024)
t = threading.Thread(target=run); t.start(); t.join()
"""
    )


@pytest.mark.ours
def test_a_signature_for_each_length_holds_no_memory(child):
    out = child("""
        import resource
        f = jax.jit(lambda x: (x * 2 + 1).sum())
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for n in range(1, 1500): f(np.ones(n, np.float32))
        before = peak()
        for n in range(1500, 4500): f(np.ones(n, np.float32))
        print(peak() - before)
        """)
    assert int(out) < 64 * 1024  # KiB


@pytest.mark.ours
def test_captures_of_a_closure_are_not_copied(child):
    out = child("""
        import resource
        x = jnp.ones(1 << 26).block_until_ready()                       # 256 MiB
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = peak()
        print(float(jax.jit(lambda i: x[i])(3)), peak() - before)
        """)
    value, grown = out.split()
    assert value == "1.0" and int(grown) < 32 * 1024
