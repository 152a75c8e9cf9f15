"""The same programs on a GPU and on cores. Without an adapter nothing runs here, unless FERRAX_REQUIRE_GPU says that this is a failure."""

import os

import numpy as np
import pytest
from conftest import ON_JAX

pytestmark = pytest.mark.skipif(ON_JAX, reason="JAX from PyPI has no such device")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def programs():
    def cross_entropy(jax, jnp, x):
        return -(jax.nn.one_hot(jnp.array([0, 1, 2]), 4) * jax.nn.log_softmax(x)).sum()

    return {
        "elementwise": lambda jax, jnp, x: jnp.sin(x) * 2 + x,
        "softmax": lambda jax, jnp, x: jax.nn.softmax(x),
        "matmul": lambda jax, jnp, x: x @ x.T,
        "grad": lambda jax, jnp, x: jax.grad(lambda x: jnp.tanh(x @ x.T).sum())(x),
        "cross_entropy": lambda jax, jnp, x: jax.grad(lambda x: cross_entropy(jax, jnp, x))(x),
        "hessian": lambda jax, jnp, x: jax.hessian(lambda y: jnp.exp(y).prod())(x[0] / 10),
        "vmap": lambda jax, jnp, x: jax.vmap(lambda row: jnp.cumsum(row) * jnp.max(row))(x),
        "slice": lambda jax, jnp, x: x[1:, ::2],
        "gather": lambda jax, jnp, x: x[jnp.array([2, 0, 1])],
        "set": lambda jax, jnp, x: x.at[1].set(7.0),
        "add": lambda jax, jnp, x: x.at[jnp.array([0, 0, 2])].add(1.0),
        "sort": lambda jax, jnp, x: jnp.sort(x[::-1], axis=0),
        "argsort": lambda jax, jnp, x: jnp.argsort(-x, axis=1),
        "argmax": lambda jax, jnp, x: jnp.argmax(x, axis=1),
        "concatenate": lambda jax, jnp, x: jnp.concatenate([x, x * 2, x.T.reshape(3, 4)]),
        "pad": lambda jax, jnp, x: jnp.pad(x, ((1, 2), (0, 1))),
        "scan": lambda jax, jnp, x: jax.lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x),
        "while": lambda jax, jnp, x: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x)),
        "cond": lambda jax, jnp, x: jax.lax.cond(x.sum() > 3, lambda x: x * 2, lambda x: x, x),
        "bfloat16": lambda jax, jnp, x: (x.astype(jnp.bfloat16) * 3).astype(jnp.float32),
        "integers": lambda jax, jnp, x: x.astype(int) // 3 % 2,
        "bernoulli": lambda jax, jnp, x: x * jax.random.bernoulli(jax.random.key(1), 0.5, x.shape),
    }


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", programs())
def test_programs_agree_with_cores(jax, jnp, gpu, name, staged):
    def f(x):
        return programs()[name](jax, jnp, x)

    f = jax.jit(f) if staged else f
    there = jax.tree_util.tree_leaves(f(jax.device_put(X, gpu)))
    here = jax.tree_util.tree_leaves(f(jax.device_put(X, jax.devices("cpu")[0])))
    for a, b in zip(there, here, strict=True):
        assert a.devices() == {gpu} and b.devices() != {gpu}
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


def test_random_bits_are_the_same_everywhere(jax, gpu):
    here = np.asarray(jax.random.bits(jax.random.key(7), (100,)))
    with jax.default_device(gpu):
        there = jax.random.bits(jax.random.key(7), (100,))
    assert there.devices() == {gpu}
    np.testing.assert_array_equal(np.asarray(there), here)


WIDE = {
    "chain": lambda jnp, jax, x: jnp.sin(x) * 2 + x**2,
    "mixed widths": lambda jnp, jax, x: (x.astype("float32") + 1).astype("float64") + 1e-12,
    "sums": lambda jnp, jax, x: (x.sum(), x.mean(), x.std(), x.argmax()),
    "product": lambda jnp, jax, x: x[:, None] @ x[None] @ x,
    "sort": lambda jnp, jax, x: jnp.sort(-x),
    "gather": lambda jnp, jax, x: x[jnp.array([3, 1, 1])],
    "scatter": lambda jnp, jax, x: x.at[jnp.array([0, 0, 2])].add(1 / 3),
    "solve": lambda jnp, jax, x: jnp.linalg.solve(jnp.eye(8) + x[:, None] * x, x),
    "fft": lambda jnp, jax, x: jnp.fft.fft(x),
    "complex": lambda jnp, jax, x: jnp.abs((x + 1j * x) ** 2),
    "gradient": lambda jnp, jax, x: jax.grad(lambda y: jnp.sum(jnp.tanh(y) ** 3))(x),
    "scan": lambda jnp, jax, x: jax.lax.scan(lambda c, y: (c * 0.5 + y, c), 0.0, x),
    "while": lambda jnp, jax, x: jax.lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 1.5, jnp.abs(x)),
    "cond": lambda jnp, jax, x: jax.lax.cond(x[0] > 0, jnp.cos, jnp.exp, x),
    "random": lambda jnp, jax, x: x + jax.random.normal(jax.random.key(0), (8,), "float64"),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", WIDE)
def test_wide_dtypes_are_computed_by_the_host(jax, gpu, name, jit):
    jnp, cpu = jax.numpy, jax.devices("cpu")[0]
    f = lambda x: WIDE[name](jnp, jax, x)
    with jax.enable_x64(True):
        x = np.linspace(-1, 1, 8) + 1e-12
        here, there = (jax.tree.leaves((jax.jit(f) if jit else f)(jax.device_put(x, d))) for d in (cpu, gpu))
        for a, b in zip(here, there, strict=True):
            assert a.dtype == b.dtype and b.devices() == {gpu}
            np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-14, atol=1e-14)


def test_a_program_of_wide_floats_is_one_step_of_the_host(jax, gpu):
    with jax.enable_x64(True):
        x = jax.device_put(np.arange(6.0), gpu)
        text = jax.jit(lambda x: jax.numpy.sort(x * 2)[::-1].cumsum()).lower(x).compile().as_text()
    assert text.count("on the host") == 1 and "the whole plan on the host" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_that_uses_the_gpu_raises(child, gpu):
    child(
        """
import os, warnings
warnings.simplefilter("ignore")
gpu = jax.devices("gpu")[0]
x = jax.device_put(np.arange(6, dtype=np.float32), gpu)
f = jax.jit(lambda x: jnp.sin(x) * 2)
y = f(x)
pending = [f(y) for _ in range(20)]
pid = os.fork()
if pid == 0:
    uses = [lambda: np.asarray(x), lambda: np.asarray(x + 1), lambda: np.asarray(f(x)), lambda: np.asarray(pending[-1]),
            lambda: jax.device_put(np.ones(3, np.float32), gpu), lambda: jax.device_put(x, jax.devices("cpu")[0])]
    for k, use in enumerate(uses):
        try: use()
        except RuntimeError as e:
            if "forked" not in str(e): print(k, e, flush=True); os._exit(10 + k)
        else: os._exit(30 + k)
    x.delete()
    del x, y, pending, uses, use
    ok = float(jnp.arange(4.0).sum()) == 6 and float(f(jnp.float32(0))) == 0
    os._exit(0 if ok else 9)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
np.testing.assert_allclose(np.asarray(pending[-1]), np.sin(np.asarray(y)) * 2, rtol=1e-5, atol=1e-6)
pid = os.fork()
if pid == 0: raise SystemExit(0)   # the whole way out
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
""",
        timeout=100,
    )


LONG = """
gpu = jax.devices("gpu")[0]
f = jax.jit(lambda x: (x @ x @ x @ x).sum())
x = jax.device_put(np.ones((512, 512), np.float32), gpu)
jax.device_get(f(x))
"""


def linear(jax, jnp):
    """Programs of linear algebra and Fourier transforms, of a matrix that is symmetric and positive."""
    la, fft, spl = jnp.linalg, jnp.fft, jax.scipy.linalg
    return {
        "cholesky": la.cholesky,
        "solve": lambda a: la.solve(a, a[:, :1]),
        "inv": la.inv,
        "det": la.det,
        "slogdet": la.slogdet,
        "eigh": lambda a: la.eigh(a)[0],
        "svd": lambda a: la.svd(a, compute_uv=False),
        "qr": lambda a: jnp.abs(la.qr(a)[1]),
        "lu": lambda a: spl.lu(a),
        "lstsq": lambda a: la.lstsq(a, a[:, 0])[0],
        "pinv": la.pinv,
        "expm": lambda a: spl.expm(a / 10),
        "solve_triangular": lambda a: spl.solve_triangular(a, a, lower=True),
        "fft": lambda a: jnp.abs(fft.fft(a)),
        "rfft2": lambda a: jnp.abs(fft.rfft2(a)),
        "irfft": lambda a: fft.irfft(fft.rfft(a)),
        "convolve": lambda a: jax.scipy.signal.fftconvolve(a, a),
        "normal": lambda a: jax.random.multivariate_normal(jax.random.key(0), a[0], a),
        "grad": jax.grad(lambda a: la.slogdet(a)[1] + la.inv(a).sum()),
        "vmap": lambda a: jax.vmap(la.cholesky)(jnp.stack([a, 2 * a])),
        "in a loop": lambda a: jax.lax.fori_loop(0, 3, lambda i, x: la.solve(a, x) * 2, a),
        "in a branch": lambda a: jax.lax.cond(a[0, 0] > 0, la.inv, lambda x: x, a),
    }


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "jit"])
def test_linear_algebra_and_transforms_have_the_values_of_the_cpu(jax, jnp, gpu, staged):
    a = (X @ X.T / 20 + 3 * np.eye(3)).astype(np.float32)
    for name, f in linear(jax, jnp).items():
        f = jax.jit(f) if staged else f
        there = jax.tree_util.tree_leaves(f(jax.device_put(a, gpu)))
        here = jax.tree_util.tree_leaves(f(jax.device_put(a, jax.devices("cpu")[0])))
        for x, y in zip(there, here, strict=True):
            assert x.devices() == {gpu}, name
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_text_of_a_program_names_the_steps_of_the_host(jax, jnp, gpu):
    a = jax.device_put(np.eye(3, dtype=np.float32), gpu)
    assert "on the host" in jax.jit(jnp.linalg.eigh).lower(a).compile().as_text()
    assert "on the host" not in jax.jit(jnp.sin).lower(a).compile().as_text()


def test_wide_integers_under_x64(jax, jnp, gpu):
    programs = {
        "argmax": jnp.argmax,
        "argsort": lambda x: jnp.argsort(x, axis=1),
        "sum": lambda x: x.astype(jnp.int32).sum(),
        "cumsum": lambda x: jnp.cumsum(x.astype(jnp.int64)),
        "index": lambda x: x[jnp.array([2, 0])],
        "set": lambda x: x.at[jnp.array([2, 0]), 1].set(7.0),
        "loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y + i.astype(jnp.float32), x),
        "scan": lambda x: jax.lax.scan(lambda c, row: (c + 1, row * c), jnp.int64(0), x),
        "normal": lambda x: x + jax.random.normal(jax.random.key(0), x.shape, jnp.float32),
        "randint": lambda x: jax.random.randint(jax.random.key(0), (4,), 0, 1 << 40),
        "wide": lambda x: (x.astype(jnp.int64) << 33) // 7 % 1000003,
        "slice": lambda x: jax.lax.dynamic_slice(x, (jnp.int64(1), jnp.int64(1)), (2, 2)),
        "cond": lambda x: jax.lax.cond(x.astype(jnp.int64).sum() > 3, lambda y: y * 2, lambda y: y, x),
    }
    with jax.enable_x64(True):
        for name, f in programs.items():
            for g in (f, jax.jit(f)):
                there = jax.tree_util.tree_leaves(g(jax.device_put(X, gpu)))
                here = jax.tree_util.tree_leaves(g(jax.device_put(X, jax.devices("cpu")[0])))
                for x, y in zip(there, here, strict=True):
                    assert x.dtype == y.dtype, name
                    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, err_msg=name)


def test_an_array_is_ready_when_the_device_has_made_it(child, gpu):
    child(
        LONG
        + """
import time
def passed(wait):
    y = f(x * 1)
    start = time.perf_counter()
    wait(y)
    waited = time.perf_counter()
    assert y.is_ready()
    np.asarray(y)
    return waited - start, time.perf_counter() - start
for wait in (lambda y: y.block_until_ready(), jax.block_until_ready, lambda y: jax.effects_barrier()):
    waited, read = passed(wait)
    assert waited > 0.5 * read, (waited, read)   # what is left is a copy of four bytes
y = f(x * 1)
seen = y.is_ready()
start = time.perf_counter()
np.asarray(y)
assert not seen or time.perf_counter() - start < 0.2
""",
        timeout=100,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are POSIX's")
def test_an_interrupt_ends_a_wait_for_the_device(child, gpu):
    child(
        LONG.replace("512", "256")
        + """
import signal, threading, time
def told(wait):
    ys = [f(x * i) for i in range(6)]
    sent = []
    def send():
        time.sleep(0.2)
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        wait(ys[-1])
    except KeyboardInterrupt:
        heard = time.perf_counter() - sent[0]
        assert heard < 3, heard                  # 20 ms, on a machine with nothing else to do
    except BaseException as e:
        print(type(e), e)
        raise
    try:
        thread.join()
    except KeyboardInterrupt:
        thread.join()
for wait in (np.asarray, jax.block_until_ready, lambda y: jax.effects_barrier()):
    try:
        told(wait)
    except KeyboardInterrupt:
        pass
assert np.asarray(f(x)) == 256.0 ** 5
""",
        timeout=200,
    )


def test_memory_is_counted(jax, jnp, gpu):
    x = jax.device_put(np.ones(1 << 20, np.float32), gpu)
    stats = gpu.memory_stats()
    assert stats["bytes_in_use"] >= x.nbytes and stats["peak_bytes_in_use"] >= stats["bytes_in_use"]
    assert set(stats) == {"num_allocs", "bytes_in_use", "peak_bytes_in_use", "largest_alloc_size", "bytes_reserved"}
    x.delete()
    assert gpu.memory_stats()["bytes_in_use"] < stats["bytes_in_use"]
    assert jax.devices("cpu")[0].memory_stats() is None


def test_dlpack_tells_the_device(jax, jnp, gpu):
    x = jax.device_put(np.arange(3, dtype=np.float32), gpu)
    kind, index = x.__dlpack_device__()
    assert kind in (7, 8, 12) and index == gpu.id
    for keywords in ({}, {"dl_device": (kind, index)}, {"max_version": (1, 0)}):
        with pytest.raises(BufferError, match="lies in the memory of gpu:0"):
            x.__dlpack__(**keywords)
    with pytest.raises(ValueError, match="takes a copy"):
        x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        np.from_dlpack(x)
    assert jnp.from_dlpack(x).tolist() == [0, 1, 2]
    if tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 1):
        assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    assert jax.device_put(x, jax.devices("cpu")[0]).__dlpack_device__() == (1, 0)


def test_software_adapters_are_used_only_on_request(child, gpu):
    kinds = """
import ferrax
try: print([d.device_kind for d in jax.devices("gpu")])
except RuntimeError as e: print("none", "Unknown backend" in str(e))
"""
    name = gpu.device_kind.split(" (")[0]
    software = "llvmpipe" in name
    taken = [child(kinds, GPU=choice).strip() for choice in ("", "all", "software", name[:8].upper(), "0", "no such card")]
    assert taken[5] == "none True" and name in taken[1] and name in taken[3] and name in taken[4]
    assert (taken[0] == "none True" and name in taken[2]) if software else name in taken[0]


def test_to_import_loads_no_driver(child, gpu):
    child(
        """
import os
driver = lambda: os.path.exists("/proc/self/maps") and any(word in open("/proc/self/maps").read() for word in ("libvulkan", "lvp"))
assert not driver()
assert jnp.ones(2).devices() == {jax.devices("gpu")[0]} and jax.default_backend() == "gpu"
""",
        PLATFORMS="gpu,cpu",
    )


@pytest.mark.parametrize("elements", [1, 7, 100, 2048, 2049])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
def test_many_updates_of_few_elements(jax, jnp, gpu, dtype, elements):
    r = np.random.default_rng(elements)
    at = r.integers(-1, elements + 1, 40_000).astype(np.int32)  # some of them outside
    new = r.integers(0, 9, at.size).astype(dtype)  # exact sums
    old = np.arange(elements).astype(dtype)
    if dtype == "float32":
        old[0] = -0.0
    for name in ["add", "min", "max", "multiply"]:
        new = new if name != "multiply" else np.where(np.arange(at.size) < 9, 2, 1).astype(dtype)

        def f(old, at, new, name=name):
            return getattr(old.at[jnp.where(at < 0, elements, at)], name)(new)

        there, here = (np.asarray(jax.jit(f)(*(jax.device_put(v, d) for v in (old, at, new)))) for d in (gpu, jax.devices("cpu")[0]))
        np.testing.assert_array_equal(there, here)
        np.testing.assert_array_equal(np.signbit(there), np.signbit(here))


def test_quotients_and_roots_are_rounded_once(jax, jnp, gpu):
    r = np.random.default_rng(0)
    bits = r.integers(0, 1 << 32, (2, 200_000), dtype=np.uint64).astype(np.uint32)
    bits[:, :9] = [0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]
    bits[1, :81] = np.repeat(bits[1, :9], 9)
    bits[0, :81] = np.tile(bits[0, :9], 9)
    x, y = bits.view(np.float32)
    with np.errstate(all="ignore"):
        wants = [x / y, np.sqrt(x), np.float32(1) / np.sqrt(np.abs(x))]
    got = jax.jit(lambda x, y: (x / y, jnp.sqrt(x), 1 / jnp.sqrt(jnp.abs(x))))(*(jax.device_put(v, gpu) for v in (x, y)))
    for want, there in zip(wants, got, strict=True):
        there = np.asarray(there)
        exact = (there.view(np.uint32) == want.view(np.uint32)) | (np.isnan(there) & np.isnan(want))
        assert exact.all(), (x[~exact][:5], y[~exact][:5], there[~exact][:5], want[~exact][:5])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "int8"])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 65536, 64), (40, 6000, 17), (16, 512, 16), (200, 4096, 100), (65, 1023, 64)])
def test_products_with_long_sums(jax, jnp, gpu, dtype, m, k, n):
    r = np.random.default_rng(k)
    x, y = r.integers(-3, 4, (m, k)), r.integers(-3, 4, (k, n))
    there = jax.jit(jnp.matmul)(*(jax.device_put(jnp.asarray(v, dtype), gpu) for v in (x, y)))
    want = jnp.asarray(x @ y, jnp.int32).astype(dtype)
    np.testing.assert_array_equal(np.asarray(there), np.asarray(want))
    turned = jax.jit(lambda x, y: x.T @ y.T)(*(jax.device_put(jnp.asarray(v, dtype), gpu) for v in (x.T, y.T)))
    np.testing.assert_array_equal(np.asarray(turned), np.asarray(want))
