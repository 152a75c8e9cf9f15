"""`jax.transfer_guard`: which of the user's values are refused, logged, or let pass, by the guard of each way."""

import logging
import pickle
import threading

import numpy as np
import pytest

N = np.arange(3, dtype=np.float32)
EVERY = ("transfer_guard", "transfer_guard_host_to_device")


@pytest.fixture
def cases(jax, jnp, lax):
    """Implicit transfers from the host, explicit ones, and what transfers nothing."""
    x, key = jnp.arange(3.0), jax.random.key(0)
    add = jax.jit(lambda x: x + 1)
    compiled = add.lower(x).compile()
    add(x)
    # eager operations convert what they make of their own at the first call
    implicit = {
        "operator of an array": lambda: x + N,
        "operator of a number": lambda: x * 2.0,
        "reflected operator": lambda: 2.0 - x,
        "comparison": lambda: x == 1.0,
        "number of numpy": lambda: x + np.float32(1),
        "function": lambda: jnp.sin(N),
        "function of numbers": lambda: jnp.add(x, 1.0),
        "lax function": lambda: lax.sin(1.0),
        "jitted": lambda: add(N),
        "jitted, of a number": lambda: add(1.0),
        "compiled": lambda: compiled(N),
        "array": lambda: jnp.array(N),
        "array of a number": lambda: jnp.array(1.0),
        "asarray of a list": lambda: jnp.asarray([1.0, 2.0]),
        "grad": lambda: jax.grad(lambda v: v**2)(3.0),
        "vmap": lambda: jax.vmap(lambda v: v + 1)(N),
        "scan": lambda: lax.scan(lambda c, v: (c + v, v), x[0] * x[0], N),
        "update": lambda: x.at[:].set(N),
        "concatenate": lambda: jnp.concatenate([x, N]),
        "sort": lambda: jnp.sort(N),
    }
    explicit = {
        "array": lambda: jax.device_put(N),
        "number": lambda: jax.device_put(1.0),
        "tree": lambda: jax.device_put([N, {"a": 1.0}]),
        "device": lambda: jax.device_put(N, jax.devices()[0]),
    }
    none = {
        "sum": lambda: x.sum(),
        "mean": lambda: jnp.sum(x, axis=0, keepdims=True),
        "draw": lambda: jax.random.normal(key, (3,)),
        "constants of a program": lambda: jax.jit(lambda v: v * N + 2.0)(x),
        "to the host": lambda: [np.asarray(x), x.tolist(), x.sum().item(), jax.device_get(x), repr(x), list(x)],
        "pickle": lambda: pickle.loads(pickle.dumps(x)),
        "callback": lambda: jax.pure_callback(lambda v: np.asarray(v), x, x),
        "types alone": lambda: jax.eval_shape(lambda v: v + 1.0, N),
        "where it is": lambda: jax.device_put(x, jax.devices()[0]),
        "compiled": lambda: compiled(x),
    }
    return implicit, explicit, none


def refused(jax, f):
    try:
        f()
    except jax.errors.JaxRuntimeError as e:
        assert str(e).startswith("INVALID_ARGUMENT: Disallowed host-to-device transfer: aval=ShapedArray("), e
        return True
    return False


@pytest.mark.parametrize("guard", EVERY)
def test_disallow(jax, cases, guard):
    implicit, explicit, none = cases
    with getattr(jax, guard)("disallow"):
        assert [name for name, f in implicit.items() if not refused(jax, f)] == []
        assert [name for name, f in {**explicit, **none}.items() if refused(jax, f)] == []
    assert [name for name, f in implicit.items() if refused(jax, f)] == []


@pytest.mark.ours  # JAX's arrays are pickled by way of an explicit transfer
@pytest.mark.parametrize("guard", EVERY)
def test_disallow_explicit(jax, cases, guard):
    implicit, explicit, none = cases
    del none["pickle"]
    with getattr(jax, guard)("disallow_explicit"):
        assert [name for name, f in {**implicit, **explicit}.items() if not refused(jax, f)] == []
        assert [name for name, f in none.items() if refused(jax, f)] == []


@pytest.mark.filterwarnings("ignore:jax_transfer_guard_device_to_host is accepted")
@pytest.mark.parametrize("guard", ["transfer_guard_device_to_host", "transfer_guard_device_to_device"])
def test_other_ways(jax, cases, guard):
    for level in ("disallow", "disallow_explicit"):
        with getattr(jax, guard)(level):
            assert [name for every in cases for name, f in every.items() if refused(jax, f)] == []


@pytest.mark.ours  # JAX's log is that of its runtime
@pytest.mark.parametrize("level", ["log", "log_explicit"])
def test_log(jax, cases, caplog, level):
    implicit, explicit, none = cases
    heard = lambda f: (caplog.clear(), f(), [r for r in caplog.records if "transfer: aval=" in r.getMessage()])[-1]
    with caplog.at_level(logging.WARNING), jax.transfer_guard(level):
        assert [name for name, f in implicit.items() if not heard(f)] == []
        assert [name for name, f in explicit.items() if bool(heard(f)) != (level == "log_explicit")] == []
        assert [name for name, f in none.items() if name != "pickle" and heard(f)] == []


def test_blocks_threads_and_the_process(jax, jnp):
    x = jnp.arange(3.0)
    step = lambda: refused(jax, lambda: x + N)
    seen = []
    with jax.transfer_guard("disallow"):
        thread = threading.Thread(target=lambda: seen.append(step()))
        thread.start()
        thread.join()
        with jax.transfer_guard("allow"):
            seen.append(step())
        with jax.transfer_guard_host_to_device("allow"):
            seen.append(step())
            with jax.transfer_guard("disallow"):
                seen.append(step())
        seen += [step(), jax.config.jax_transfer_guard]
    assert seen == [False, False, False, True, True, "disallow"]
    assert not step() and jax.config.jax_transfer_guard in (None, "allow")
    jax.config.update("jax_transfer_guard", "disallow")
    try:
        thread = threading.Thread(target=lambda: seen.append(step()))
        thread.start()
        thread.join()
        assert seen[-1] and step()
        with jax.transfer_guard_host_to_device("allow"):
            assert not step()
    finally:
        jax.config.update("jax_transfer_guard", None)
    assert not step()
    with pytest.raises(ValueError, match="new enum value must be"), jax.transfer_guard("never"):
        pass


def test_a_program_is_not_traced_again(jax, jnp):
    traced = []
    f = jax.jit(lambda v: traced.append(v) or v + 1)
    x = jnp.arange(3.0)
    f(x)
    with jax.transfer_guard("disallow"):
        f(x)
    assert len(traced) == 1
