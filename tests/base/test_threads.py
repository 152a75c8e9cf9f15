"""How many threads the CPU uses: the same bits with any number, a setting of the process, changed while programs run."""

import threading

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def programs(jax, jnp):
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    functions = {
        "chain": lambda x: jnp.tanh(x) * jnp.exp(-x * x) / 3,
        "sum": lambda x: jnp.stack([x.sum(), (x * x).sum(0).max()]),
        "product": lambda x: x @ x.T,
        "sort": lambda x: jnp.sort(x.ravel()),
        "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + 300 * jnp.eye(300)),
        "solve": lambda x: jnp.linalg.solve(x, x.T),
        "eigh": lambda x: jnp.linalg.eigvalsh(x),
        "fft": lambda x: jnp.fft.fft2(x).real,
        "scatter": lambda x: jnp.zeros(50).at[jnp.arange(90000) % 50].add(x.ravel()),
        "gradient": jax.grad(lambda x: jnp.sum(jax.nn.softmax(x @ x) * x)),
    }
    return jnp.asarray(x), {name: jax.jit(f) for name, f in functions.items()}


def bits(f, x):
    return np.asarray(f(x)).tobytes()


def test_threads_change_no_bit(jax, programs):
    x, functions = programs
    with jax.set_num_threads(1):
        alone = {name: bits(f, x) for name, f in functions.items()}
    for n in (2, 3, 7, 64):
        with jax.set_num_threads(n):
            assert jax.num_threads() == n
            assert {name: bits(f, x) for name, f in functions.items()} == alone


def test_blocks_nest_and_put_back(jax):
    before = jax.num_threads()
    with jax.set_num_threads(3) as outer:
        assert jax.num_threads() == 3
        with pytest.raises(ZeroDivisionError), jax.set_num_threads(np.int64(2)):
            assert jax.num_threads() == 2
            raise ZeroDivisionError
        assert jax.num_threads() == 3
        with outer:
            jax.set_num_threads(5)
            assert jax.num_threads() == 5
    assert jax.num_threads() == before
    jax.set_num_threads(4)
    assert jax.num_threads() == 4
    jax.set_num_threads(None)
    assert jax.num_threads() == before


@pytest.mark.parametrize("n, error, words", [
    (0, ValueError, "set_num_threads requires 1 to 1024 threads, got 0"),
    (-2, ValueError, "set_num_threads requires 1 to 1024 threads, got -2"),
    (1025, ValueError, "set_num_threads requires 1 to 1024 threads, got 1025"),
    (2**80, ValueError, "set_num_threads requires 1 to 1024 threads, got 1208925819614629174706176"),
    (2.0, TypeError, "set_num_threads requires an integer or None, got 2.0"),
    (True, TypeError, "set_num_threads requires an integer or None, got True"),
    ("2", TypeError, "set_num_threads requires an integer or None, got '2'"),
])  # fmt: skip
def test_other_numbers_are_refused(jax, n, error, words):
    before = jax.num_threads()
    with pytest.raises(error) as e:
        jax.set_num_threads(n)
    assert str(e.value) == words and jax.num_threads() == before


def test_the_environment_sets_the_default(child):
    code = "print(jax.num_threads()); jax.set_num_threads(1); print(jax.num_threads()); jax.set_num_threads(None); print(jax.num_threads())"
    assert child(code, NUM_THREADS="3").split() == ["3", "1", "3"]


def test_while_programs_run_in_other_threads(jax, programs):
    x, functions = programs
    want = {name: bits(f, x) for name, f in functions.items()}
    stop, wrong = threading.Event(), []

    def work(name, f):
        while not stop.is_set():
            if bits(f, x) != want[name]:
                wrong.append(name)

    def switch():
        for n in (1, 2, 5, 3, 1, 8) * 10:
            with jax.set_num_threads(n):
                bits(functions["product"], x)

    workers = [threading.Thread(target=work, args=each) for each in functions.items()]
    switches = [threading.Thread(target=switch) for _ in range(2)]
    before = jax.num_threads()
    for t in (*workers, *switches):
        t.start()
    for t in switches:
        t.join()
    stop.set()
    for t in workers:
        t.join()
    jax.set_num_threads(before)
    assert not wrong


def test_inside_a_traced_function_and_a_callback(jax, jnp):
    def set_to(n):
        jax.set_num_threads(int(n))
        return np.float32(jax.num_threads())

    @jax.jit
    def f(x):
        y = jax.pure_callback(set_to, jax.ShapeDtypeStruct((), jnp.float32), 2)
        return jnp.sum(x @ x) * 0 + y

    x = jnp.ones((400, 400))
    with jax.set_num_threads(1):
        assert f(x) == 2 and jax.num_threads() == 2
    with jax.set_num_threads(3):
        traced = []
        jax.make_jaxpr(lambda x: traced.append(jax.num_threads()) or x)(1.0)
        assert traced == [3]
